/* write/commit/commit_deletes.c - delete files in a commit.
 *
 * What goes out of the parent's delete manifests: files that the request replaces (each must still
 * be there, else somebody else replaced it: CONFLICT), position deletes and vectors that name a
 * data file which this snapshot removes, those in replaced partitions, and files older than all
 * live data, which reach nothing any more (spec, "Scan Planning": a delete never reaches newer
 * data).
 *
 * Invariants: 1 a data file never has two live vectors (spec, "Deletion Vectors"); 2 the least data
 * sequence number comes from manifests as they stand, 0 is one like any other (B17): a delete file
 * is dropped only when it is below it. */
#include "iceberg/delete_index.h"
#include "write/commit/commit_int.h"

/* A delete file as a key: its path, for a vector with its place in the file. */
static tarn_code make_key(const tarn_file *file, tarn_buf *key, tarn_error *err) {
    buf_reset(key);
    tarn_code code = buf_append_str(key, file->path, err);
    if (code == TARN_OK && file->content_offset >= 0) {
        code = buf_printf(key, err, "#%lld", (long long)file->content_offset);
    }
    return code;
}

static bool is_vector(const tarn_file *file) {
    return file->content == TARN_CONTENT_POSITION_DELETES && file->format == TARN_FORMAT_PUFFIN;
}

/* ---- what may be added ---- */

static tarn_code check_file(const tarn_metadata *m, const tarn_file *file, tarn_error *err) {
    const char *wrong = NULL;
    if (m->format_version < 2) {
        wrong = "row deletes need format version 2";
    } else if (file->content == TARN_CONTENT_DATA) {
        wrong = "it is a data file";
    } else if (file->content == TARN_CONTENT_EQUALITY_DELETES && file->n_equality_ids == 0) {
        wrong = "it names no equality columns";
    } else if (is_vector(file) && m->format_version < 3) {
        wrong = "deletion vectors need format version 3";
    } else if (is_vector(file) && (file->referenced_data_file.len == 0 ||
                                   file->content_offset < 0 || file->content_size < 0)) {
        wrong = "a vector names its data file and its place";
    } else if (file->content == TARN_CONTENT_POSITION_DELETES && !is_vector(file) &&
               m->format_version >= 3) {
        wrong = "from format version 3 on position deletes are vectors";
    }
    return wrong == NULL ? TARN_OK
                         : err_set(err, TARN_INVALID, "delete file %.*s cannot be added: %s",
                                   STR_ARG(file->path), wrong);
}

tarn_code deletes_check(commit_attempt *a, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    tarn_map vectors;
    tarn_map removed;
    map_init(&vectors, &a->arena);
    map_init(&removed, &a->arena);
    for (int32_t i = 0; i < request->n_added_deletes; i++) {
        const tarn_file *file = &request->added_deletes[i];
        bool added = true;
        TRY(check_file(a->metadata, file, err));
        if (is_vector(file) && map_put(&vectors, file->referenced_data_file, &added) == NULL) {
            return err_nomem(err);
        }
        if (!added) {
            return err_set(err, TARN_INVALID, "two deletion vectors were added for data file %.*s",
                           STR_ARG(file->referenced_data_file));
        }
    }
    for (int32_t i = 0; i < request->n_removed && request->n_referenced > 0; i++) {
        if (map_put(&removed, request->removed[i].file.path, NULL) == NULL) {
            return err_nomem(err);
        }
    }
    for (int32_t i = 0; i < request->n_referenced; i++) {
        if (map_find(&removed, request->referenced[i]) != NULL) {
            return err_set(err, TARN_INVALID,
                           "data file %.*s was to be removed and have rows deleted in one commit",
                           STR_ARG(request->referenced[i]));
        }
    }
done:
    return code;
}

/* ---- what goes ---- */

typedef struct deletes_state {
    tarn_map replaced; /* request->removed_deletes by make_key; value 1 once found */
    tarn_map vectors;  /* data files that get a vector */
    tuple_set tuples;  /* where either lies */
    int64_t least_sequence;
    tarn_buf key;
    regroup group; /* manifests to be written anew */
    bool *taken;   /* one a manifest of the parent: it is in there, or was */
} deletes_state;

static tarn_code init_state(commit_attempt *a, deletes_state *s, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    map_init(&s->replaced, &a->arena);
    map_init(&s->vectors, &a->arena);
    s->taken = ARENA_ARRAY(&a->arena, bool, (size_t)a->n_manifests + 1);
    if (s->taken == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < request->n_removed_deletes; i++) {
        const tarn_file *file = &request->removed_deletes[i].file;
        TRY(make_key(file, &s->key, err));
        tarn_str kept = arena_str(&a->arena, buf_str(&s->key));
        if (kept.data == NULL || map_put(&s->replaced, kept, NULL) == NULL) {
            return err_nomem(err);
        }
        TRY(tuple_set_add(a, &s->tuples, file, err));
    }
    for (int32_t i = 0; i < request->n_added_deletes; i++) {
        const tarn_file *file = &request->added_deletes[i];
        if (!is_vector(file)) {
            continue;
        }
        if (map_put(&s->vectors, file->referenced_data_file, NULL) == NULL) {
            return err_nomem(err);
        }
        TRY(tuple_set_add(a, &s->tuples, file, err));
    }
    s->least_sequence = a->metadata->last_sequence_number;
    for (int32_t i = 0; i < a->n_list; i++) {
        const tarn_manifest *m = &a->list[i];
        if (!m->is_deletes && !filter_is_spent(m) && m->min_sequence_number >= 0 &&
            m->min_sequence_number < s->least_sequence) {
            s->least_sequence = m->min_sequence_number;
        }
    }
done:
    return code;
}

static tarn_code entry_goes(commit_attempt *a, deletes_state *s, const tarn_entry *entry,
                            bool *goes, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_file *file = &entry->file;
    tarn_str only = delete_only_file(file);
    *goes = a->replaced_all || (only.len > 0 && map_find(&a->gone, only) != NULL) ||
            (entry->sequence_number >= 0 && entry->sequence_number < s->least_sequence);
    if (s->replaced.count > 0) {
        TRY(make_key(file, &s->key, err));
        map_entry *named = map_find(&s->replaced, buf_str(&s->key));
        if (named != NULL) {
            a->n_removed += named->value.i64 == 0;
            named->value.i64 = 1;
            *goes = true;
        }
    }
    if (a->replaced.count > 0 && !*goes) {
        TRY(produce_tuple_key(&a->arena, file, &s->key, err));
        *goes = map_find(&a->replaced, buf_str(&s->key)) != NULL;
    }
    if (!*goes && is_vector(file) && map_find(&s->vectors, only) != NULL) {
        code = err_set(err, TARN_CONFLICT,
                       "data file %.*s has a deletion vector that the new one does not replace",
                       STR_ARG(only));
    }
done:
    return code;
}

static bool may_hold_any(const known_manifest *known, const tarn_map *names) {
    bool may = false;
    for (size_t i = 0; i < names->count && !may; i++) {
        may = known_manifest_may_hold(known, names->entries[i].hash);
    }
    return may;
}

/* Whether the manifest may hold something that goes, or that must not be there. */
static bool may_hold(const commit_attempt *a, const deletes_state *s,
                     const tarn_manifest *manifest) {
    const known_manifest *known = commit_memory_find(a->work->request->memory, manifest);
    if (a->replaced_all || a->replaced.count > 0 ||
        manifest->min_sequence_number < s->least_sequence) {
        return true;
    }
    if (!tuple_set_may_hold(&s->tuples, manifest) &&
        !tuple_set_may_hold(&a->gone_tuples, manifest)) {
        return false;
    }
    return known == NULL || may_hold_any(known, &s->replaced) || may_hold_any(known, &s->vectors) ||
           may_hold_any(known, &a->gone);
}

/* A manifest that stays as it is will mostly be asked for the same kinds of things again. */
static tarn_code remember(commit_attempt *a, deletes_state *s, const tarn_manifest *manifest,
                          const manifest_entries *entries, tarn_arena *arena, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = 0;
    if (a->work->request->memory == NULL) {
        return TARN_OK;
    }
    uint64_t *hashes = ARENA_ARRAY(arena, uint64_t, (size_t)entries->count * 2 + 1);
    if (hashes == NULL) {
        return err_nomem(err);
    }
    for (int64_t i = 0; i < entries->count; i++) {
        const tarn_file *file = &entries->items[i].file;
        tarn_str only = delete_only_file(file);
        TRY(make_key(file, &s->key, err));
        hashes[n++] = str_hash(buf_str(&s->key));
        if (only.len > 0) {
            hashes[n++] = str_hash(only);
        }
    }
    commit_memory_keep(a->work->request->memory, manifest, hashes, n);
done:
    return code;
}

static tarn_code filter_one(commit_attempt *a, deletes_state *s, const tarn_manifest *manifest,
                            bool *taken, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    manifest_entries entries;
    arena_init(&arena, a->work->env);
    TRY(produce_read_manifest(a, &arena, manifest, MANIFEST_WANT_ALL, true, &entries, err));
    uint8_t *goes = ARENA_ARRAY(&arena, uint8_t, (size_t)entries.count + 1);
    if (goes == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (int64_t i = 0; i < entries.count; i++) {
        bool go;
        TRY(entry_goes(a, s, &entries.items[i], &go, err));
        goes[i] = go;
        *taken |= go;
    }
    if (*taken) {
        TRY(regroup_take(a, &s->group, manifest, &entries, goes, &arena, err));
    } else {
        TRY(remember(a, s, manifest, &entries, &arena, err));
    }
done:
    arena_release(&arena);
    return code;
}

/* What is written anew comes first, and then what stays. */
static tarn_code filter_all(commit_attempt *a, deletes_state *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < a->n_manifests; i++) {
        const tarn_manifest *manifest = &a->manifests[i];
        if (manifest->is_deletes && !filter_is_spent(manifest) && may_hold(a, s, manifest)) {
            TRY(filter_one(a, s, manifest, &s->taken[i], err));
        }
    }
    TRY(regroup_write(a, &s->group, err));
    for (int32_t i = 0; i < a->n_manifests; i++) {
        const tarn_manifest *manifest = &a->manifests[i];
        if (manifest->is_deletes && !filter_is_spent(manifest) && !s->taken[i]) {
            TRY(produce_add_manifest(a, manifest, err));
        }
    }
done:
    return code;
}

tarn_code deletes_filter(commit_attempt *a, tarn_error *err) {
    tarn_code code = TARN_OK;
    deletes_state s;
    memset(&s, 0, sizeof s);
    buf_init(&s.key, a->work->env, 0);
    TRY(init_state(a, &s, err));
    TRY(filter_all(a, &s, err));
    commit_memory_forget(a->work->request->memory);
    for (size_t i = 0; i < s.replaced.count; i++) {
        if (s.replaced.entries[i].value.i64 == 0) {
            code = err_set(err, TARN_CONFLICT, "delete file %.*s was replaced by another commit",
                           STR_ARG(s.replaced.entries[i].key));
            goto done;
        }
    }
done:
    regroup_release(&s.group);
    buf_release(&s.key);
    return code;
}
