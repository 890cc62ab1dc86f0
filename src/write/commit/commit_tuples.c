/* write/commit/commit_tuples.c - partition tuples: as keys, and as sets that say which manifests
 * need not be opened. */
#include "write/commit/commit_int.h"

tarn_code produce_tuple_key(tarn_arena *arena, const tarn_file *file, tarn_buf *key,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    buf_reset(key);
    TRY(buf_printf(key, err, "%d|", file->spec_id));
    for (int32_t i = 0; i < file->n_partition; i++) {
        tarn_str bytes = STR_NULL;
        if (!file->partition[i].is_null) {
            TRY(value_to_binary(arena, &file->partition[i], &bytes, err));
        }
        TRY(buf_printf(key, err, "%c%zu:", file->partition[i].is_null ? 'n' : 'v', bytes.len));
        TRY(buf_append_str(key, bytes, err));
    }
done:
    return code;
}

/* Spec and partition of the file alone, in the attempt's arena. */
static tarn_code copy_tuple(commit_attempt *a, const tarn_file *file, tarn_file *out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_value *values = ARENA_ARRAY(&a->arena, tarn_value, (size_t)file->n_partition + 1);
    if (values == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < file->n_partition; i++) {
        TRY(value_copy(&a->arena, &file->partition[i], &values[i], err));
    }
    memset(out, 0, sizeof *out);
    out->spec_id = file->spec_id;
    out->n_partition = file->n_partition;
    out->partition = values;
done:
    return code;
}

static tarn_code grow_set(commit_attempt *a, tuple_set *set, tarn_error *err) {
    int32_t cap = set->cap == 0 ? 16 : set->cap * 2;
    tarn_file *items = arena_grow(&a->arena, set->items, (size_t)set->cap * sizeof *items,
                                  (size_t)cap * sizeof *items);
    if (items == NULL) {
        return err_nomem(err);
    }
    set->items = items;
    set->cap = cap;
    return TARN_OK;
}

tarn_code tuple_set_add(commit_attempt *a, tuple_set *set, const tarn_file *file, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool added;
    tarn_buf key;
    const tarn_spec *spec = metadata_spec_by_id(a->metadata, file->spec_id);
    if (set->keys.arena == NULL) {
        map_init(&set->keys, &a->arena);
    }
    if (spec == NULL || spec->n_fields != file->n_partition) {
        set->all = true; /* named by its path alone */
        return TARN_OK;
    }
    buf_init(&key, a->work->env, 0);
    TRY(produce_tuple_key(&a->arena, file, &key, err));
    if (map_find(&set->keys, buf_str(&key)) != NULL) {
        goto done;
    }
    if (set->n == set->cap) {
        TRY(grow_set(a, set, err));
    }
    tarn_str kept = arena_str(&a->arena, buf_str(&key));
    if (kept.data == NULL || map_put(&set->keys, kept, &added) == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(copy_tuple(a, file, &set->items[set->n], err));
    set->n++;
done:
    buf_release(&key);
    return code;
}

bool tuple_set_may_hold(const tuple_set *set, const tarn_manifest *manifest) {
    bool may = set->all;
    for (int32_t i = 0; i < set->n && !may; i++) {
        may = set->items[i].spec_id == manifest->spec_id &&
              manifest_may_hold(manifest, set->items[i].partition, set->items[i].n_partition);
    }
    return may;
}
