/* service/rebase.c - see rebase.h. */
#include "service/rebase.h"

#include "base/map.h"
#include "iceberg/location.h"
#include "iceberg/manifest.h"
#include "read/scan.h"

typedef struct rebase {
    tarn_arena *arena;
    written_files *files;
    const tarn_metadata *base;
    const tarn_change_set *set;
    const tarn_snapshot *sent; /* as the client made it */
    const tarn_snapshot *head; /* of the branch now; NULL: it has none */
    tarn_snapshot *made;
} rebase;

/* Finds the one snapshot and the one branch; false: the commit is of another kind. */
static bool find_parts(rebase *b, tarn_str *branch) {
    const tarn_change *add = NULL;
    const tarn_change *move = NULL;
    for (int32_t i = 0; i < b->set->n_changes; i++) {
        const tarn_change *c = &b->set->changes[i];
        if (c->kind == CHANGE_ADD_SNAPSHOT && add == NULL) {
            add = c;
        } else if (c->kind == CHANGE_SET_SNAPSHOT_REF && move == NULL) {
            move = c;
        } else if (c->kind != CHANGE_SET_PROPERTIES && c->kind != CHANGE_REMOVE_PROPERTIES) {
            return false;
        }
    }
    if (add == NULL || move == NULL || move->ref.is_tag ||
        move->ref.snapshot_id != add->snapshot->snapshot_id) {
        return false;
    }
    b->sent = add->snapshot;
    *branch = move->ref.name;
    return true;
}

static bool is_append(const rebase *b, tarn_str branch) {
    tarn_str operation;
    const tarn_ref *ref = metadata_ref(b->base, branch);
    if (!properties_get(&b->sent->summary, "operation", &operation) ||
        !str_is(operation, "append") || b->sent->manifest_list.len == 0 ||
        metadata_schema_by_id(b->base, b->sent->schema_id) == NULL ||
        metadata_snapshot_by_id(b->base, b->sent->snapshot_id) != NULL ||
        (ref != NULL && ref->is_tag)) {
        return false;
    }
    b->made->parent_id = ref != NULL ? ref->snapshot_id : TARN_NO_SNAPSHOT;
    return b->sent->parent_id == TARN_NO_SNAPSHOT ||
           (ref != NULL && metadata_is_ancestor(b->base, ref->snapshot_id, b->sent->parent_id));
}

/* All but where the branch stood. */
static tarn_code check_others(const rebase *b, tarn_error *err) {
    for (int32_t i = 0; i < b->set->n_requirements; i++) {
        tarn_change_set one = {1, &b->set->requirements[i], 0, NULL};
        if (b->set->requirements[i].kind != REQUIRE_REF_SNAPSHOT_ID) {
            tarn_code code = change_check(b->base, &one, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    return TARN_OK;
}

static tarn_code read_list(const rebase *b, const tarn_snapshot *s, const tarn_manifest **out,
                           int32_t *n, tarn_error *err) {
    *out = NULL;
    *n = 0;
    if (s == NULL) {
        return TARN_OK;
    }
    if (s->manifest_list.len == 0) {
        return err_set(err, TARN_CONFLICT, "snapshot %lld lists its manifests inline",
                       (long long)s->snapshot_id);
    }
    return snapshot_manifests(b->arena, b->files->store, s, out, n, err);
}

/* Only adds data files, by the snapshot that was sent. */
static bool only_adds(const rebase *b, const tarn_manifest *m) {
    return m->added_snapshot_id == b->sent->snapshot_id && !m->is_deletes &&
           m->existing_files == 0 && m->deleted_files == 0 && m->added_files >= 0 &&
           metadata_spec_by_id(b->base, m->spec_id) != NULL;
}

/* The new manifests of what was sent, then those of the head. */
static tarn_code join_lists(rebase *b, tarn_manifest **out, int32_t *n, tarn_error *err) {
    const tarn_manifest *sent, *old, *now;
    int32_t n_sent, n_old, n_now;
    tarn_code code = TARN_OK;
    tarn_map known;
    map_init(&known, b->arena);
    const tarn_snapshot *parent = b->sent->parent_id != TARN_NO_SNAPSHOT
                                      ? metadata_snapshot_by_id(b->base, b->sent->parent_id)
                                      : NULL;
    TRY(read_list(b, b->sent, &sent, &n_sent, err));
    TRY(read_list(b, parent, &old, &n_old, err));
    TRY(read_list(b, b->head, &now, &n_now, err));
    tarn_manifest *list = ARENA_ARRAY(b->arena, tarn_manifest, (size_t)n_sent + (size_t)n_now + 1);
    if (list == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n_old; i++) {
        if (map_put(&known, old[i].path, NULL) == NULL) {
            return err_nomem(err);
        }
    }
    int32_t kept = 0;
    *n = 0;
    for (int32_t i = 0; i < n_sent; i++) {
        if (map_find(&known, sent[i].path) != NULL) {
            kept++;
        } else if (only_adds(b, &sent[i])) {
            list[*n] = sent[i];
            list[*n].sequence_number = list[*n].min_sequence_number = -1; /* the new snapshot's */
            list[*n].first_row_id = -1;
            (*n)++;
        } else {
            return err_set(err, TARN_CONFLICT,
                           "requirement failed: the branch has changed, and manifest %.*s does "
                           "more than add files",
                           STR_ARG(sent[i].path));
        }
    }
    if (kept != n_old) {
        return err_set(err, TARN_CONFLICT,
                       "requirement failed: the branch has changed, and the append left out %d "
                       "manifests of its parent",
                       n_old - kept);
    }
    if (n_now > 0) {
        memcpy(list + *n, now, (size_t)n_now * sizeof *list);
        *n += n_now;
    }
    *out = list;
done:
    return code;
}

static int64_t count_of(const tarn_properties *p, const char *key, int64_t fallback) {
    tarn_str text;
    int64_t n;
    return p != NULL && properties_get(p, key, &text) && str_to_i64(text, &n) ? n : fallback;
}

/* The summary as it was sent, with the totals of the head and what this one adds. */
static tarn_code make_summary(rebase *b, tarn_error *err) {
    static const struct {
        const char *total, *added;
    } TOTALS[] = {
        {"total-records", "added-records"},       {"total-data-files", "added-data-files"},
        {"total-files-size", "added-files-size"}, {"total-delete-files", NULL},
        {"total-position-deletes", NULL},         {"total-equality-deletes", NULL}};
    const tarn_properties *in = &b->sent->summary;
    const tarn_properties *before = b->head != NULL ? &b->head->summary : NULL;
    tarn_property *items = ARENA_ARRAY(b->arena, tarn_property, (size_t)in->count + 1);
    if (items == NULL) {
        return err_nomem(err);
    }
    int32_t n = 0;
    for (int32_t i = 0; i < in->count; i++) {
        items[n] = in->items[i];
        bool total = false;
        int64_t value = -1;
        for (size_t t = 0; t < sizeof TOTALS / sizeof TOTALS[0]; t++) {
            if (str_is(in->items[i].key, TOTALS[t].total)) {
                int64_t base = count_of(before, TOTALS[t].total, before == NULL ? 0 : -1);
                int64_t added = TOTALS[t].added != NULL ? count_of(in, TOTALS[t].added, 0) : 0;
                total = true;
                value = base >= 0 ? base + added : -1;
            }
        }
        if (total && value < 0) {
            continue; /* the head's own is unknown */
        }
        if (total) {
            items[n].value = str_of(arena_printf(b->arena, "%lld", (long long)value));
            if (items[n].value.data == NULL) {
                return err_nomem(err);
            }
        }
        n++;
    }
    b->made->summary = (tarn_properties){n, items};
    return TARN_OK;
}

static tarn_code write_list(rebase *b, tarn_manifest *list, int32_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_sink *sink = NULL;
    manifest_list_options options;
    char uuid[37];
    memset(&options, 0, sizeof options);
    env_uuid_v4(b->arena->env, uuid);
    char *name =
        arena_printf(b->arena, "snap-%lld-1-%s.avro", (long long)b->made->snapshot_id, uuid);
    if (name == NULL) {
        return err_nomem(err);
    }
    options.format_version = b->base->format_version;
    options.snapshot_id = b->made->snapshot_id;
    options.parent_id = b->made->parent_id;
    options.sequence_number = b->made->sequence_number;
    options.first_row_id = b->made->first_row_id;
    options.codec = properties_str(&b->base->properties, "write.avro.compression-codec", "gzip");
    TRY(location_metadata_file(b->arena, b->base, str_of(name), &b->made->manifest_list, err));
    TRY(written_add(b->files, b->made->manifest_list, err));
    TRY(store_create(b->files->store, b->made->manifest_list, STORE_CREATE_LATER, &sink, err));
    code = manifest_list_write(b->arena->env, &options, list, n, sink, err);
    if (code != TARN_OK) {
        sink->abort(sink);
        goto done;
    }
    TRY(sink->finish(sink, err));
done:
    return code;
}

static void number_snapshot(rebase *b, tarn_manifest *list, int32_t n) {
    const tarn_metadata *m = b->base;
    tarn_snapshot *s = b->made;
    s->sequence_number = m->format_version == 1 ? 0 : m->last_sequence_number + 1;
    s->timestamp_ms = env_now_ms(b->arena->env);
    if (s->timestamp_ms <= m->last_updated_ms) {
        s->timestamp_ms = m->last_updated_ms + 1;
    }
    s->first_row_id = s->added_rows = -1;
    if (m->format_version >= 3) {
        s->first_row_id = m->next_row_id;
        s->added_rows = manifest_assign_row_ids(list, n, m->next_row_id) - m->next_row_id;
    }
}

static tarn_code swap_snapshot(rebase *b, tarn_change_set *out, tarn_error *err) {
    tarn_change *changes = ARENA_ARRAY(b->arena, tarn_change, (size_t)b->set->n_changes);
    if (changes == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < b->set->n_changes; i++) {
        changes[i] = b->set->changes[i];
        if (changes[i].kind == CHANGE_ADD_SNAPSHOT) {
            changes[i].snapshot = b->made;
        }
    }
    memset(out, 0, sizeof *out); /* its requirements were checked */
    out->changes = changes;
    out->n_changes = b->set->n_changes;
    return TARN_OK;
}

tarn_code rebase_append(written_files *files, const tarn_metadata *base, const tarn_change_set *set,
                        tarn_change_set *out, tarn_error *err) {
    rebase b = {files->arena, files, base, set, NULL, NULL, ARENA_NEW(files->arena, tarn_snapshot)};
    tarn_code code = TARN_OK;
    tarn_str branch;
    tarn_manifest *list = NULL;
    int32_t n = 0;
    if (b.made == NULL) {
        return err_nomem(err);
    }
    if (!find_parts(&b, &branch) || !is_append(&b, branch)) {
        code = change_check(base, set, err);
        return code != TARN_OK ? code
                               : err_set(err, TARN_CONFLICT,
                                         "requirement failed: the table has changed, and the "
                                         "commit is no append that could follow");
    }
    int64_t parent_id = b.made->parent_id;
    *b.made = *b.sent;
    b.made->parent_id = parent_id;
    b.head = parent_id != TARN_NO_SNAPSHOT ? metadata_snapshot_by_id(base, parent_id) : NULL;
    TRY(check_others(&b, err));
    TRY(join_lists(&b, &list, &n, err));
    number_snapshot(&b, list, n);
    TRY(make_summary(&b, err));
    TRY(write_list(&b, list, n, err));
    TRY(swap_snapshot(&b, out, err));
done:
    return code;
}
