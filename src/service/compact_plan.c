/* service/compact_plan.c - see compact_plan.h. */
#include "service/compact_plan.h"

#include "base/map.h"
#include "write/files/file_writer.h"

static tarn_code read_bound(const tarn_metadata *m, const char *key, int64_t fallback, int64_t *out,
                            tarn_error *err) {
    tarn_code code = properties_i64(&m->properties, key, fallback, out, err);
    return code == TARN_OK && *out <= 0
               ? err_set(err, TARN_INVALID, "property %s was %lld, and must be positive", key,
                         (long long)*out)
               : code;
}

tarn_code compact_policy_read(const tarn_metadata *m, compact_policy *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t target;
    memset(out, 0, sizeof *out);
    TRY(properties_bool(&m->properties, COMPACT_PROPERTY, false, &out->wanted, err));
    if (!out->wanted) {
        return TARN_OK;
    }
    TRY(file_target_bytes(m, false, &target, err));
    TRY(read_bound(m, COMPACT_PROPERTY ".target-file-bytes", target, &out->target_bytes, err));
    TRY(read_bound(m, COMPACT_PROPERTY ".max-file-bytes", INT64_C(8) << 20, &out->max_file_bytes,
                   err));
    TRY(read_bound(m, COMPACT_PROPERTY ".min-files", 2, &out->min_files, err));
    TRY(read_bound(m, COMPACT_PROPERTY ".max-group-bytes", INT64_C(128) << 20,
                   &out->max_group_bytes, err));
    TRY(read_bound(m, COMPACT_PROPERTY ".max-group-files", 4096, &out->max_group_files, err));
    TRY(read_bound(m, COMPACT_PROPERTY ".max-ms", 2000, &out->max_ms, err));
    out->min_files = out->min_files < 2 ? 2 : out->min_files; /* one file alone gains nothing */
done:
    return code;
}

/* An order that is not the table's own could not be kept, nor a promise of it. */
static bool can_merge(const tarn_metadata *m, const compact_policy *policy, const tarn_file *f) {
    const tarn_spec *spec = metadata_spec_by_id(m, f->spec_id);
    return f->content == TARN_CONTENT_DATA &&
           (f->format == TARN_FORMAT_PARQUET || f->format == TARN_FORMAT_AVRO) &&
           f->record_count > 0 && f->size_bytes < policy->max_file_bytes &&
           f->key_metadata.data == NULL && spec != NULL && spec->n_fields == f->n_partition &&
           (f->sort_order_id <= 0 || f->sort_order_id == m->default_sort_order_id);
}

static tarn_code put_key(tarn_arena *arena, const tarn_file *f, tarn_str *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf key;
    buf_init(&key, arena->env, 0);
    TRY(buf_printf(&key, err, "%d %d %d", f->spec_id, (int)f->format,
                   f->sort_order_id < 0 ? 0 : f->sort_order_id));
    for (int32_t i = 0; i < f->n_partition; i++) {
        tarn_str bytes = STR_NULL;
        if (!f->partition[i].is_null) {
            TRY(value_to_binary(arena, &f->partition[i], &bytes, err));
        }
        TRY(buf_printf(&key, err, " %c%zu:", f->partition[i].is_null ? 'n' : 'v', bytes.len));
        TRY(buf_append_str(&key, bytes, err));
    }
    *out = arena_str(arena, buf_str(&key));
    code = out->data != NULL ? TARN_OK : err_nomem(err);
done:
    buf_release(&key);
    return code;
}

typedef struct planner {
    tarn_arena *arena;
    const compact_policy *policy;
    tarn_map keys; /* to the set that is open, by its number */
    compact_set *sets;
    int32_t n, cap;
} planner;

static tarn_code begin_set(planner *p, int64_t *number, tarn_error *err) {
    if (p->n == p->cap) {
        int32_t cap = p->cap == 0 ? 16 : p->cap * 2;
        compact_set *sets = arena_grow(p->arena, p->sets, (size_t)p->cap * sizeof *sets,
                                       (size_t)cap * sizeof *sets);
        if (sets == NULL) {
            return err_nomem(err);
        }
        p->sets = sets;
        p->cap = cap;
    }
    memset(&p->sets[p->n], 0, sizeof *p->sets);
    *number = p->n++;
    return TARN_OK;
}

static tarn_code add_file(planner *p, const tarn_file *f, int32_t index, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str key;
    bool added;
    TRY(put_key(p->arena, f, &key, err));
    map_entry *e = map_put(&p->keys, key, &added);
    if (e == NULL) {
        return err_nomem(err);
    }
    if (added || p->sets[e->value.i64].bytes + f->size_bytes > p->policy->target_bytes) {
        TRY(begin_set(p, &e->value.i64, err));
    }
    compact_set *set = &p->sets[e->value.i64];
    if (set->n == set->cap) {
        int32_t cap = set->cap == 0 ? 8 : set->cap * 2;
        int32_t *items = arena_grow(p->arena, set->items, (size_t)set->cap * sizeof *items,
                                    (size_t)cap * sizeof *items);
        if (items == NULL) {
            return err_nomem(err);
        }
        set->items = items;
        set->cap = cap;
    }
    set->items[set->n++] = index;
    set->bytes += f->size_bytes;
    set->rows += f->record_count;
done:
    return code;
}

tarn_code compact_plan(tarn_arena *arena, const tarn_metadata *m, const compact_policy *policy,
                       const tarn_file *const *files, int32_t n, compact_set **out, int32_t *n_out,
                       tarn_error *err) {
    tarn_code code = TARN_OK;
    planner p = {.arena = arena, .policy = policy};
    map_init(&p.keys, arena);
    for (int32_t i = 0; i < n; i++) {
        if (can_merge(m, policy, files[i])) {
            TRY(add_file(&p, files[i], i, err));
        }
    }
    *n_out = 0;
    for (int32_t i = 0; i < p.n; i++) {
        if (p.sets[i].n >= policy->min_files) {
            p.sets[(*n_out)++] = p.sets[i];
        }
    }
    *out = p.sets;
done:
    return code;
}
