/* service/sent_snapshot.c - see sent_snapshot.h. What a manifest says is held against the list that
 * names it, the table, and the snapshot; the list against that of the parent. */
#include "service/sent_snapshot.h"

#include "base/map.h"
#include "format/avro/avro.h"
#include "read/scan.h"
#include "service/file_check.h"
#include "service/sent_match.h"

typedef struct sent_reader {
    tarn_arena *arena;
    tarn_store *store;
    const service_places *places;
    sent_snapshot *out;
    tarn_error *err;
} sent_reader;

/* Of the client's making: what is wrong with it is no fault of the table's. */
static tarn_code as_invalid(const sent_reader *r, tarn_code code, const char *what, tarn_str path) {
    if (code == TARN_NOT_FOUND) {
        return err_set(r->err, TARN_INVALID, "%s %.*s does not exist", what, STR_ARG(path));
    }
    if (code == TARN_CORRUPT || code == TARN_LIMIT || code == TARN_UNSUPPORTED) {
        tarn_error why = *r->err;
        return err_set(r->err, TARN_INVALID, "%s %.*s cannot be read: %s", what, STR_ARG(path),
                       why.message);
    }
    return code;
}

/* ---- places ---- */

/* Below the table's own location, or where clients may put tables. */
static tarn_code check_place(const sent_reader *r, const char *what, tarn_str path) {
    tarn_error why = TARN_ERROR_INIT;
    if (places_allow(r->places, path, &why) == TARN_OK || places_are_own(r->out->metadata, path)) {
        return TARN_OK;
    }
    return err_set(r->err, TARN_INVALID, "%s %.*s: %s", what, STR_ARG(path), why.message);
}

/* ---- one manifest ---- */

static tarn_code lies(const sent_reader *r, const tarn_manifest *m, const char *what) {
    return err_set(r->err, TARN_INVALID, "manifest %.*s: %s", STR_ARG(m->path), what);
}

static tarn_code lies_of(const sent_reader *r, const tarn_manifest *m, const tarn_file *file,
                         const char *what) {
    return err_set(r->err, TARN_INVALID, "manifest %.*s: file %.*s %s", STR_ARG(m->path),
                   STR_ARG(file->path), what);
}

/* What the list says of a manifest of the snapshot's own. */
static tarn_code check_listed(const sent_reader *r, const tarn_manifest *m) {
    const tarn_snapshot *s = r->out->snapshot;
    const int32_t version = r->out->metadata->format_version;
    if (m->added_snapshot_id != s->snapshot_id) {
        return lies(r, m,
                    "it is not in the parent's list, and the list says that another "
                    "snapshot added it");
    }
    if (version > 1 && m->sequence_number != s->sequence_number) {
        return lies(r, m, "its sequence number in the list is not the snapshot's");
    }
    if (version < 2 && m->is_deletes) {
        return lies(r, m, "tables of format version 1 have no delete files");
    }
    if (metadata_spec_by_id(r->out->metadata, m->spec_id) == NULL && m->spec_id >= 0) {
        return lies(r, m, "it has a partition spec that the table lacks");
    }
    return TARN_OK;
}

/* Ids that this snapshot gives to so many rows are those that it says it gives: others have the
 * rest, before and after. */
static tarn_code check_row_ids(const sent_reader *r, const tarn_manifest *m, int64_t rows) {
    const tarn_snapshot *s = r->out->snapshot;
    if (r->out->metadata->format_version < 3 || m->is_deletes || m->first_row_id < 0 ||
        s->first_row_id < 0 || s->added_rows < 0) {
        return TARN_OK;
    }
    return m->first_row_id < s->first_row_id ||
                   m->first_row_id - s->first_row_id > s->added_rows - rows
               ? lies(r, m, "its row ids are not among those that the snapshot says it gives")
               : TARN_OK;
}

/* The schema that its files were written with. Readers use the table's own, so that nothing hangs
 * on it but whether the files are this table's: what cannot be understood is let through. */
static tarn_code check_header_schema(const sent_reader *r, const tarn_manifest *m,
                                     const avro_file *file) {
    tarn_error unused = TARN_ERROR_INIT;
    tarn_str text;
    json_value *json;
    const tarn_schema *schema;
    if (!avro_file_meta(file, "schema", &text) ||
        json_parse(r->arena, text, "schema", &json, &unused) != TARN_OK ||
        schema_from_json(r->arena, json, &schema, &unused) != TARN_OK) {
        return TARN_OK;
    }
    return file_check_columns(r->out->metadata, schema->root, "manifest", m->path, r->err);
}

/* Tuples are read as the list's spec says, and so they must have been written. */
static tarn_code check_header(const sent_reader *r, const tarn_manifest *m) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    avro_file *file = NULL;
    tarn_str text;
    int32_t id;
    TRY(store_open(r->store, m->path, -1, &source, r->err));
    if (source->size_bytes != m->length) {
        code = err_set(r->err, TARN_INVALID, "manifest %.*s has %lld bytes, and the list says %lld",
                       STR_ARG(m->path), (long long)source->size_bytes, (long long)m->length);
        goto done;
    }
    TRY(avro_open(r->arena->env, source, &file, r->err));
    source = NULL;
    if (avro_file_meta(file, "partition-spec-id", &text) && m->spec_id >= 0 &&
        (!str_to_i32(text, &id) || id != m->spec_id)) {
        code = lies(r, m, "it was written for another partition spec than the list says");
        goto done;
    }
    if (avro_file_meta(file, "content", &text) &&
        !str_is(text, m->is_deletes ? "deletes" : "data")) {
        code = lies(r, m, "its content is not what the list says");
        goto done;
    }
    TRY(check_header_schema(r, m, file));
done:
    avro_close(file);
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

static tarn_code check_numbers(const sent_reader *r, const tarn_manifest *m, const tarn_entry *e) {
    const tarn_snapshot *s = r->out->snapshot;
    if (e->status == TARN_ENTRY_ADDED && e->snapshot_id >= 0 && e->snapshot_id != s->snapshot_id) {
        return lies_of(r, m, &e->file, "was added by another snapshot");
    }
    if (r->out->metadata->format_version == 1 || e->status == TARN_ENTRY_DELETED) {
        return TARN_OK;
    }
    if (e->sequence_number > s->sequence_number || e->file_sequence_number > s->sequence_number) {
        return lies_of(r, m, &e->file, "has a sequence number above the snapshot's");
    }
    if (e->sequence_number >= 0 && e->sequence_number < m->min_sequence_number) {
        return lies_of(r, m, &e->file, "has a sequence number below the least one in the list");
    }
    return e->status == TARN_ENTRY_EXISTING && e->sequence_number < 0
               ? lies_of(r, m, &e->file, "was there before and has no sequence number")
               : TARN_OK;
}

static tarn_code check_entry(const sent_reader *r, const tarn_manifest *m, const tarn_entry *e) {
    const tarn_file *f = &e->file;
    tarn_code code = TARN_OK;
    if ((f->content == TARN_CONTENT_DATA) == m->is_deletes) {
        return lies_of(r, m, f, "is of a content that the manifest cannot have");
    }
    if (f->size_bytes < 0) {
        return lies_of(r, m, f, "has a negative size");
    }
    TRY(check_numbers(r, m, e));
    if (e->status != TARN_ENTRY_DELETED && !manifest_may_hold(m, f->partition, f->n_partition)) {
        return lies_of(r, m, f, "lies outside the partitions that the list says");
    }
    if (e->status == TARN_ENTRY_ADDED) {
        TRY(check_place(r, "file", f->path));
        code = file_check_entry(r->out->metadata, f, r->err);
        TRY(code == TARN_OK ? code : err_add(r->err, code, "manifest %.*s", STR_ARG(m->path)));
    }
done:
    return code;
}

typedef struct sent_counts {
    int64_t files[3], rows[3]; /* by status */
} sent_counts;

static tarn_code check_counts(const sent_reader *r, const tarn_manifest *m, const sent_counts *c) {
    const struct {
        const char *what;
        int64_t listed, found;
    } all[] = {{"added files", m->added_files, c->files[TARN_ENTRY_ADDED]},
               {"existing files", m->existing_files, c->files[TARN_ENTRY_EXISTING]},
               {"deleted files", m->deleted_files, c->files[TARN_ENTRY_DELETED]},
               {"added rows", m->added_rows, c->rows[TARN_ENTRY_ADDED]},
               {"existing rows", m->existing_rows, c->rows[TARN_ENTRY_EXISTING]},
               {"deleted rows", m->deleted_rows, c->rows[TARN_ENTRY_DELETED]}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].listed >= 0 && all[i].listed != all[i].found) {
            return err_set(r->err, TARN_INVALID,
                           "manifest %.*s has %lld %s, and the list says %lld", STR_ARG(m->path),
                           (long long)all[i].found, all[i].what, (long long)all[i].listed);
        }
    }
    return TARN_OK;
}

/* As written: nothing is inherited, and the list's counts are not yet believed. */
static tarn_code read_entries(const sent_reader *r, const tarn_manifest *m, manifest_entries *out) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    tarn_manifest raw = *m;
    manifest_read_options options = {.want = MANIFEST_WANT_ALL};
    raw.added_snapshot_id = raw.first_row_id = -1;
    raw.sequence_number = r->out->metadata->format_version > 1 ? -1 : 0;
    raw.added_files = raw.existing_files = raw.deleted_files = -1;
    TRY(store_open(r->store, m->path, -1, &source, r->err));
    TRY(manifest_read(r->arena, source, r->out->metadata, &raw, &options, out, r->err));
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

/* foreign: not the snapshot's own, but described otherwise than its parent does. */
static tarn_code read_manifest(const sent_reader *r, const tarn_manifest *m, bool foreign,
                               manifest_entries *out) {
    tarn_code code = TARN_OK;
    sent_counts counts;
    int64_t without_ids = 0;
    memset(&counts, 0, sizeof counts);
    if (!foreign) {
        TRY(check_listed(r, m));
    }
    TRY(check_place(r, "manifest", m->path));
    TRY(as_invalid(r, check_header(r, m), "manifest", m->path));
    TRY(as_invalid(r, read_entries(r, m, out), "manifest", m->path));
    for (int64_t i = 0; i < out->count; i++) {
        const tarn_entry *e = &out->items[i];
        counts.files[e->status]++;
        if (!num_add_i64(counts.rows[e->status], e->file.record_count, &counts.rows[e->status])) {
            code = lies_of(r, m, &e->file, "has more rows than can be counted");
            goto done;
        }
        if (e->status != TARN_ENTRY_DELETED && e->file.first_row_id < 0 &&
            !num_add_i64(without_ids, e->file.record_count, &without_ids)) {
            without_ids = INT64_MAX;
        }
        if (!foreign) {
            TRY(check_entry(r, m, e));
        } else if (e->status != TARN_ENTRY_DELETED &&
                   !manifest_may_hold(m, e->file.partition, e->file.n_partition)) {
            code = lies_of(r, m, &e->file, "lies outside the partitions that the list says");
            goto done;
        }
    }
    TRY(check_counts(r, m, &counts));
    if (!foreign) {
        TRY(check_row_ids(r, m, without_ids));
    }
done:
    return code;
}

/* ---- the list against the parent's ---- */

static bool same_or_unknown(int64_t was, int64_t is) {
    return was < 0 || is < 0 || was == is;
}

/* Nothing that would change what the manifest means. Row ids come when a table goes to version 3.
 */
static bool same_manifest(const tarn_manifest *was, const tarn_manifest *is) {
    return was->length == is->length && was->spec_id == is->spec_id &&
           was->is_deletes == is->is_deletes && was->sequence_number == is->sequence_number &&
           was->added_snapshot_id == is->added_snapshot_id &&
           (was->first_row_id < 0 || was->first_row_id == is->first_row_id);
}

static bool same_bound(bool was, tarn_str a, bool is, tarn_str b) {
    return was == is && (!was || str_eq(a, b));
}

static bool same_words(const tarn_manifest *was, const tarn_manifest *is) {
    bool same = was->min_sequence_number == is->min_sequence_number &&
                same_or_unknown(was->added_files, is->added_files) &&
                same_or_unknown(was->existing_files, is->existing_files) &&
                same_or_unknown(was->deleted_files, is->deleted_files) &&
                same_or_unknown(was->added_rows, is->added_rows) &&
                same_or_unknown(was->existing_rows, is->existing_rows) &&
                same_or_unknown(was->deleted_rows, is->deleted_rows) &&
                (is->partitions == NULL || was->n_partitions == is->n_partitions);
    for (int32_t i = 0; same && is->partitions != NULL && i < is->n_partitions; i++) {
        const tarn_field_summary *a = &was->partitions[i], *b = &is->partitions[i];
        same = a->contains_null == b->contains_null &&
               same_or_unknown(a->contains_nan, b->contains_nan) &&
               same_bound(a->has_lower, a->lower, b->has_lower, b->lower) &&
               same_bound(a->has_upper, a->upper, b->has_upper, b->upper);
    }
    return same;
}

typedef struct parent_list {
    const tarn_manifest *items;
    int32_t n;
    tarn_map by_path; /* to the item; value NULL: it was seen */
} parent_list;

static tarn_code index_parent(const sent_reader *r, parent_list *p) {
    map_init(&p->by_path, r->arena);
    for (int32_t i = 0; i < p->n; i++) {
        map_entry *e = map_put(&p->by_path, p->items[i].path, NULL);
        if (e == NULL) {
            return err_nomem(r->err);
        }
        e->value.ptr = (void *)(uintptr_t)&p->items[i];
    }
    return TARN_OK;
}

static tarn_code check_carried(const sent_reader *r, const tarn_manifest *was,
                               const tarn_manifest *is) {
    manifest_entries unused;
    if (!same_manifest(was, is)) {
        return lies(r, is, "the list says of it what the parent's list does not");
    }
    if (was->first_row_id < 0 && is->added_rows >= 0 && is->existing_rows >= 0) {
        int64_t rows;
        tarn_code code =
            num_add_i64(is->added_rows, is->existing_rows, &rows)
                ? check_row_ids(r, is, rows)
                : lies(r, is, "the list says that it has more rows than can be counted");
        if (code != TARN_OK) {
            return code;
        }
    }
    return same_words(was, is) || is->key_metadata.data != NULL
               ? TARN_OK
               : read_manifest(r, is, true, &unused);
}

static tarn_code take_own(sent_reader *r, const tarn_manifest *m, sent_manifest *own) {
    sent_snapshot *s = r->out;
    if (m->key_metadata.data != NULL) { /* encrypted: only its writers can read it */
        s->understood = false;
        return check_place(r, "manifest", m->path);
    }
    own->listed = *m;
    s->n_own++;
    return read_manifest(r, m, false, &own->entries);
}

static tarn_code compare_lists(sent_reader *r, parent_list *p) {
    sent_snapshot *s = r->out;
    tarn_code code = TARN_OK;
    sent_manifest *own = ARENA_ARRAY(r->arena, sent_manifest, (size_t)s->n_list + 1);
    tarn_manifest *dropped = ARENA_ARRAY(r->arena, tarn_manifest, (size_t)p->n + 1);
    if (own == NULL || dropped == NULL) {
        return err_nomem(r->err);
    }
    TRY(index_parent(r, p));
    s->own = own;
    s->dropped = dropped;
    for (int32_t i = 0; i < s->n_list; i++) {
        map_entry *e = map_find(&p->by_path, s->list[i].path);
        if (e == NULL) {
            e = map_put(&p->by_path, s->list[i].path, NULL);
            TRY(e != NULL ? take_own(r, &s->list[i], &own[s->n_own]) : err_nomem(r->err));
        } else if (e->value.ptr == NULL) {
            TRY(lies(r, &s->list[i], "it is in the list twice"));
        } else {
            TRY(check_carried(r, e->value.ptr, &s->list[i]));
            e->value.ptr = NULL;
        }
    }
    for (int32_t i = 0; i < p->n; i++) {
        const tarn_manifest *m = &p->items[i];
        if (map_find(&p->by_path, m->path)->value.ptr != NULL &&
            (m->added_files != 0 || m->existing_files != 0)) {
            dropped[s->n_dropped++] = *m;
            s->understood &= m->key_metadata.data == NULL;
        }
    }
done:
    return code;
}

/* ---- the snapshots of a commit ---- */

static tarn_code read_parent(const sent_reader *r, const sent_snapshot *before, int32_t n_before,
                             parent_list *p) {
    const sent_snapshot *s = r->out;
    const int64_t id = s->snapshot->parent_id;
    memset(p, 0, sizeof *p);
    if (id == TARN_NO_SNAPSHOT) {
        return TARN_OK;
    }
    for (int32_t i = 0; i < n_before; i++) {
        if (before[i].snapshot->snapshot_id == id) {
            p->items = before[i].list;
            p->n = before[i].n_list;
            return TARN_OK;
        }
    }
    const tarn_snapshot *parent = metadata_snapshot_by_id(s->metadata, id);
    if (parent == NULL) {
        return err_set(r->err, TARN_CONFLICT,
                       "requirement failed: snapshot %lld, the parent of snapshot %lld, is not in "
                       "the table",
                       (long long)id, (long long)s->snapshot->snapshot_id);
    }
    tarn_code code = snapshot_manifests(r->arena, r->store, parent, &p->items, &p->n, r->err);
    if (code == TARN_NOT_FOUND) { /* not the client's fault, nor a table that is not there */
        tarn_error why = *r->err;
        code = err_set(r->err, TARN_CORRUPT, "snapshot %lld: %s", (long long)id, why.message);
    }
    return code;
}

static tarn_code read_one(sent_reader *r, const sent_snapshot *before, int32_t n_before) {
    sent_snapshot *s = r->out;
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    parent_list parent;
    const tarn_str path = s->snapshot->manifest_list;
    s->understood = path.len > 0;
    if (s->snapshot->schema_id >= 0 &&
        metadata_schema_by_id(s->metadata, s->snapshot->schema_id) == NULL) {
        return err_set(r->err, TARN_INVALID, "snapshot %lld has schema %d, which the table lacks",
                       (long long)s->snapshot->snapshot_id, s->snapshot->schema_id);
    }
    if (path.len == 0) { /* inline manifests: version 1 alone, and nobody writes them any more */
        return TARN_OK;
    }
    TRY(check_place(r, "manifest list", path));
    code = store_open(r->store, path, -1, &source, r->err);
    if (code == TARN_OK) {
        code = manifest_list_read(r->arena, source, &s->list, &s->n_list, r->err);
    }
    TRY(as_invalid(r, code, "manifest list", path));
    TRY(read_parent(r, before, n_before, &parent));
    TRY(compare_lists(r, &parent));
    if (s->understood) {
        TRY(sent_match(r->arena, r->store, s, r->err));
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

static bool adds_words(change_kind kind) {
    static const change_kind words[] = {CHANGE_ASSIGN_UUID,    CHANGE_UPGRADE_FORMAT_VERSION,
                                        CHANGE_ADD_SCHEMA,     CHANGE_SET_CURRENT_SCHEMA,
                                        CHANGE_ADD_SPEC,       CHANGE_SET_DEFAULT_SPEC,
                                        CHANGE_ADD_SORT_ORDER, CHANGE_SET_DEFAULT_SORT_ORDER,
                                        CHANGE_SET_LOCATION,   CHANGE_SET_PROPERTIES};
    bool adds = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        adds |= words[i] == kind;
    }
    return adds;
}

/* The table with the schemas, specs and places that the commit gives it. NULL in *out: they do not
 * hold, which the commit itself will say. */
static tarn_code add_words(tarn_arena *arena, const tarn_metadata *base, const tarn_change_set *set,
                           const tarn_metadata **out, tarn_error *err) {
    tarn_change_set words = {0, NULL, 0, NULL};
    tarn_error unused = TARN_ERROR_INIT;
    tarn_change *changes = ARENA_ARRAY(arena, tarn_change, (size_t)set->n_changes + 1);
    if (changes == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < set->n_changes; i++) {
        if (adds_words(set->changes[i].kind)) {
            changes[words.n_changes++] = set->changes[i];
        }
    }
    words.changes = changes;
    *out = base;
    if (base == NULL) {
        words.requirements = set->requirements;
        words.n_requirements = set->n_requirements;
    }
    if (base == NULL || words.n_changes > 0) {
        tarn_code code = change_apply(arena, base, &words, env_now_ms(arena->env), out, &unused);
        *out = code == TARN_OK ? *out : NULL;
        return code == TARN_NOMEM ? err_nomem(err) : TARN_OK;
    }
    return TARN_OK;
}

tarn_code sent_snapshots_read(tarn_arena *arena, tarn_store *store, const service_places *places,
                              const tarn_metadata *base, const tarn_change_set *set,
                              const sent_snapshot **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_metadata *metadata;
    sent_reader r = {.arena = arena, .store = store, .places = places, .err = err};
    sent_snapshot *all = ARENA_ARRAY(arena, sent_snapshot, (size_t)set->n_changes + 1);
    int32_t count = 0;
    if (all == NULL) {
        return err_nomem(err);
    }
    TRY(add_words(arena, base, set, &metadata, err));
    for (int32_t i = 0; metadata != NULL && i < set->n_changes; i++) {
        const tarn_snapshot *s = set->changes[i].snapshot;
        if (set->changes[i].kind == CHANGE_ADD_SNAPSHOT &&
            metadata_snapshot_by_id(metadata, s->snapshot_id) == NULL) {
            r.out = &all[count];
            r.out->snapshot = s;
            r.out->metadata = metadata;
            TRY(read_one(&r, all, count));
            count++;
        }
    }
    *out = all;
    *n = count;
done:
    return code;
}
