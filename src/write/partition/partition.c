/* write/partition/partition.c - see partition.h.
 *
 * Each field's transform runs over the whole column. Values become dense codes per field (null is
 * code 0), and the codes of the fields are paired one after another into one dense code per tuple;
 * so a row costs one hash probe a field, and none while the value repeats. A counting sort by code
 * then gives the groups.
 *
 * Invariants: 1 equal tuples have equal keys and unequal ones have not, over the partitioner's
 * life; 2 every row of a batch is in exactly one group; 3 rows of a group rise. */
#include "write/partition/partition.h"

#include "base/map.h"

#define NO_CODE    UINT32_MAX
#define MAX_TUPLES (1u << 24)

/* uint64 -> dense code, open addressing. */
typedef struct code_table {
    uint64_t *keys;
    uint32_t *codes; /* code + 1; 0: free */
    size_t n_slots;
    uint32_t count;
} code_table;

typedef struct field_state {
    int32_t source_id;
    tarn_transform transform;
    const tarn_type *result;
    bool by_bytes;      /* strings, binary, decimals: coded through a map of their bytes */
    code_table fixed;   /* value bits -> code, codes from 1 */
    tarn_map bytes;     /* value bytes -> code */
    tarn_value *values; /* by code; 0 is null */
    size_t values_cap;
    uint32_t n_values;
    code_table pairs; /* (code of the fields before, code of this one) -> tuple code so far */
    uint32_t *pair_prev;
    uint32_t *pair_own;
    size_t pairs_cap;
} field_state;

struct tarn_partitioner {
    tarn_env *env;
    tarn_arena arena;
    int32_t n_fields;
    field_state *fields;
    tarn_value **tuples; /* by final code */
    size_t tuples_cap;
    uint32_t n_tuples;
    uint32_t *row_codes; /* per row of the present batch */
    int32_t *rows;       /* sorted by group */
    size_t rows_cap;
    int32_t *counts; /* per final code, zero between calls */
    size_t counts_cap;
    uint32_t *touched; /* codes of this batch */
    size_t touched_cap;
    partition_group *groups;
    size_t groups_cap;
};

static uint64_t mix(uint64_t v) {
    v ^= v >> 32;
    v *= UINT64_C(0x9e3779b97f4a7c15);
    return v ^ (v >> 29);
}

static tarn_code grow(tarn_partitioner *p, void **array, size_t *cap, size_t need, size_t item,
                      tarn_error *err) {
    if (need <= *cap) {
        return TARN_OK;
    }
    size_t cap_new = *cap * 2 > need ? *cap * 2 : need;
    size_t bytes;
    void *memory = num_mul_size(cap_new, item, &bytes) ? env_realloc(p->env, *array, bytes) : NULL;
    if (memory == NULL) {
        return err_nomem(err);
    }
    *array = memory;
    *cap = cap_new;
    return TARN_OK;
}

static tarn_code table_rehash(tarn_env *env, code_table *t, tarn_error *err) {
    size_t n = t->n_slots == 0 ? 64 : t->n_slots * 2;
    uint64_t *keys = env_calloc(env, n, sizeof *keys);
    uint32_t *codes = env_calloc(env, n, sizeof *codes);
    if (keys == NULL || codes == NULL) {
        env_free(env, keys);
        env_free(env, codes);
        return err_nomem(err);
    }
    for (size_t i = 0; i < t->n_slots; i++) {
        if (t->codes[i] != 0) {
            size_t at = mix(t->keys[i]) & (n - 1);
            while (codes[at] != 0) {
                at = (at + 1) & (n - 1);
            }
            keys[at] = t->keys[i];
            codes[at] = t->codes[i];
        }
    }
    env_free(env, t->keys);
    env_free(env, t->codes);
    t->keys = keys;
    t->codes = codes;
    t->n_slots = n;
    return TARN_OK;
}

/* The slot's code for key; a key not seen before gets next_code and *added. */
static tarn_code table_code(tarn_env *env, code_table *t, uint64_t key, uint32_t next_code,
                            uint32_t *code, bool *added, tarn_error *err) {
    if ((size_t)t->count * 2 >= t->n_slots) {
        tarn_code status = table_rehash(env, t, err);
        if (status != TARN_OK) {
            return status;
        }
    }
    size_t at = mix(key) & (t->n_slots - 1);
    while (t->codes[at] != 0) {
        if (t->keys[at] == key) {
            *code = t->codes[at] - 1;
            *added = false;
            return TARN_OK;
        }
        at = (at + 1) & (t->n_slots - 1);
    }
    t->keys[at] = key;
    t->codes[at] = next_code + 1;
    t->count++;
    *code = next_code;
    *added = true;
    return TARN_OK;
}

static tarn_code add_value(tarn_partitioner *p, field_state *f, const tarn_value *value,
                           tarn_error *err) {
    tarn_code code = grow(p, (void **)&f->values, &f->values_cap, (size_t)f->n_values + 1,
                          sizeof *f->values, err);
    if (code == TARN_OK) {
        code = value_copy(&p->arena, value, &f->values[f->n_values], err);
    }
    if (code == TARN_OK) {
        f->n_values++;
    }
    return code;
}

/* Bits that say which value a fixed-width one is: -0.0 and 0.0 differ as Iceberg's identity does,
 * all NaN are one. */
static uint64_t fixed_bits(const tarn_value *v) {
    switch (v->type->kind) {
    case TARN_BOOLEAN:
        return v->as.boolean;
    case TARN_INT:
    case TARN_DATE:
        return (uint64_t)(int64_t)v->as.i32;
    case TARN_FLOAT: {
        uint32_t bits;
        memcpy(&bits, &v->as.f32, sizeof bits);
        return v->as.f32 != v->as.f32 ? UINT32_C(0x7fc00000) : bits;
    }
    case TARN_DOUBLE: {
        uint64_t bits;
        memcpy(&bits, &v->as.f64, sizeof bits);
        return v->as.f64 != v->as.f64 ? UINT64_C(0x7ff8000000000000) : bits;
    }
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
    case TARN_DECIMAL:
    case TARN_STRING:
    case TARN_UUID:
    case TARN_FIXED:
    case TARN_BINARY:
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return (uint64_t)v->as.i64;
}

static tarn_code value_code(tarn_partitioner *p, field_state *f, const tarn_value *v, uint32_t *out,
                            tarn_error *err) {
    if (v->is_null) {
        *out = 0;
        return TARN_OK;
    }
    if (!f->by_bytes) {
        bool added;
        tarn_code code =
            table_code(p->env, &f->fixed, fixed_bits(v), f->n_values, out, &added, err);
        return code == TARN_OK && added ? add_value(p, f, v, err) : code;
    }
    tarn_str key =
        v->type->kind == TARN_DECIMAL ? str_make(&v->as.i128, sizeof v->as.i128) : v->as.bytes;
    map_entry *entry = map_find(&f->bytes, key);
    if (entry == NULL) {
        tarn_str kept = arena_str(&p->arena, key);
        entry = kept.data != NULL ? map_put(&f->bytes, kept, NULL) : NULL;
        if (entry == NULL) {
            return err_nomem(err);
        }
        entry->value.i64 = f->n_values;
        tarn_code code = add_value(p, f, v, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    *out = (uint32_t)entry->value.i64;
    return TARN_OK;
}

/* (code of the fields before, own code) -> tuple code so far. */
static tarn_code pair_code(tarn_partitioner *p, field_state *f, uint32_t prev, uint32_t own,
                           uint32_t *out, tarn_error *err) {
    bool added;
    uint32_t next = f->pairs.count;
    tarn_code code = TARN_OK;
    TRY(table_code(p->env, &f->pairs, (uint64_t)prev << 32 | own, next, out, &added, err));
    if (added) {
        if (next >= MAX_TUPLES) {
            return err_set(err, TARN_LIMIT, "more than %u partitions were written at once",
                           MAX_TUPLES);
        }
        size_t cap = f->pairs_cap;
        TRY(grow(p, (void **)&f->pair_prev, &cap, (size_t)next + 1, sizeof *f->pair_prev, err));
        cap = f->pairs_cap;
        TRY(grow(p, (void **)&f->pair_own, &cap, (size_t)next + 1, sizeof *f->pair_own, err));
        f->pairs_cap = cap;
        f->pair_prev[next] = prev;
        f->pair_own[next] = own;
    }
done:
    return code;
}

static tarn_code add_tuple(tarn_partitioner *p, uint32_t final, tarn_error *err) {
    tarn_code code =
        grow(p, (void **)&p->tuples, &p->tuples_cap, (size_t) final + 1, sizeof *p->tuples, err);
    tarn_value *tuple =
        code == TARN_OK ? ARENA_ARRAY(&p->arena, tarn_value, (size_t)p->n_fields + 1) : NULL;
    if (tuple == NULL) {
        return code != TARN_OK ? code : err_nomem(err);
    }
    uint32_t at = final;
    for (int32_t i = p->n_fields; i-- > 0;) {
        tuple[i] = p->fields[i].values[p->fields[i].pair_own[at]];
        at = p->fields[i].pair_prev[at];
    }
    tarn_assert(final == p->n_tuples);
    p->tuples[final] = tuple;
    p->n_tuples = final + 1;
    return TARN_OK;
}

/* Folds one field's column into the codes of the rows. */
static tarn_code code_field(tarn_partitioner *p, field_state *f, const tarn_view *column,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    uint32_t last_prev = NO_CODE;
    uint32_t last_code = 0;
    tarn_value last = value_null(f->result);
    for (int64_t i = 0; i < column->length; i++) {
        tarn_value v;
        uint32_t own;
        view_value(column, i, &v);
        if (last_prev == p->row_codes[i] && value_eq(&v, &last)) {
            p->row_codes[i] = last_code;
            continue;
        }
        last_prev = p->row_codes[i];
        last = v;
        TRY(value_code(p, f, &v, &own, err));
        TRY(pair_code(p, f, p->row_codes[i], own, &last_code, err));
        p->row_codes[i] = last_code;
    }
done:
    return code;
}

/* The transformed values of one field for a batch. */
static tarn_code transform_field(tarn_partitioner *p, field_state *f, const tarn_batch *batch,
                                 struct ArrowArray *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder builder;
    tarn_path_view source;
    memset(&builder, 0, sizeof builder);
    memset(&source, 0, sizeof source);
    TRY(builder_init(&builder, p->env, f->result, err));
    if (f->transform.kind == TRANSFORM_VOID) {
        TRY(builder_nulls(&builder, batch_rows(batch), err));
    } else {
        TRY(path_view_init(&source, p->env, batch, f->source_id, err));
        TRY(transform_column(&f->transform, &source.view, &builder, err));
    }
    TRY(builder_finish(&builder, out, err));
done:
    path_view_release(&source);
    builder_release(&builder);
    return code;
}

tarn_code partitioner_new(tarn_env *env, const tarn_type *root, const tarn_spec *spec,
                          const tarn_type *partition_type, tarn_partitioner **out,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_partitioner *p = env_calloc(env, 1, sizeof *p);
    if (p == NULL) {
        return err_nomem(err);
    }
    p->env = env;
    arena_init(&p->arena, env);
    p->fields = ARENA_ARRAY(&p->arena, field_state, (size_t)spec->n_fields + 1);
    if (p->fields == NULL) {
        code = err_nomem(err);
        goto done;
    }
    p->n_fields = spec->n_fields;
    for (int32_t i = 0; i < spec->n_fields; i++) {
        const tarn_partition_field *from = &spec->fields[i];
        field_state *f = &p->fields[i];
        f->source_id = from->source_id;
        f->transform = from->transform;
        f->result = partition_type->fields[i].type;
        map_init(&f->bytes, &p->arena);
        if (f->transform.kind == TRANSFORM_UNKNOWN) {
            code = err_set(err, TARN_UNSUPPORTED,
                           "partition field %.*s has transform %.*s, which cannot be written",
                           STR_ARG(from->name), STR_ARG(from->transform.text));
            goto done;
        }
        if (f->transform.kind != TRANSFORM_VOID && type_find_id(root, from->source_id) == NULL) {
            code = err_set(err, TARN_INVALID,
                           "partition field %.*s takes column id %d, which the schema lacks",
                           STR_ARG(from->name), from->source_id);
            goto done;
        }
        f->by_bytes = type_is_var(f->result) || f->result->kind == TARN_DECIMAL ||
                      f->result->kind == TARN_UUID || f->result->kind == TARN_FIXED;
        tarn_value null = value_null(f->result);
        TRY(add_value(p, f, &null, err));
    }
    *out = p;
    p = NULL;
done:
    partitioner_free(p);
    return code;
}

/* Counting sort of the rows by code. */
static tarn_code group_rows(tarn_partitioner *p, int64_t rows, size_t *n_groups, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = 0;
    size_t cap = p->counts_cap;
    TRY(grow(p, (void **)&p->counts, &cap, (size_t)p->n_tuples + 1, sizeof *p->counts, err));
    memset(p->counts + p->counts_cap, 0, (cap - p->counts_cap) * sizeof *p->counts);
    p->counts_cap = cap;
    TRY(grow(p, (void **)&p->touched, &p->touched_cap, (size_t)p->n_tuples + 1, sizeof *p->touched,
             err));
    for (int64_t i = 0; i < rows; i++) {
        uint32_t key = p->row_codes[i];
        if (p->counts[key]++ == 0) {
            p->touched[n++] = key;
        }
    }
    TRY(grow(p, (void **)&p->groups, &p->groups_cap, n + 1, sizeof *p->groups, err));
    int32_t start = 0;
    for (size_t g = 0; g < n; g++) {
        uint32_t key = p->touched[g];
        p->groups[g] = (partition_group){key, p->tuples[key], p->rows + start, p->counts[key]};
        int32_t count = p->counts[key];
        p->counts[key] = start;
        start += count;
    }
    for (int64_t i = 0; i < rows; i++) {
        p->rows[p->counts[p->row_codes[i]]++] = (int32_t)i;
    }
    *n_groups = n;
done:
    for (size_t g = 0; g < n; g++) {
        p->counts[p->touched[g]] = 0;
    }
    return code;
}

tarn_code partitioner_split(tarn_partitioner *p, const tarn_batch *batch,
                            const partition_group **groups, size_t *n_groups, tarn_error *err) {
    tarn_code code = TARN_OK;
    struct ArrowArray values;
    int64_t rows = batch_rows(batch);
    memset(&values, 0, sizeof values);
    size_t cap = p->rows_cap;
    TRY(grow(p, (void **)&p->row_codes, &cap, (size_t)rows + 1, sizeof *p->row_codes, err));
    cap = p->rows_cap;
    TRY(grow(p, (void **)&p->rows, &cap, (size_t)rows + 1, sizeof *p->rows, err));
    p->rows_cap = cap;
    memset(p->row_codes, 0, (size_t)rows * sizeof *p->row_codes);
    for (int32_t i = 0; i < p->n_fields; i++) {
        tarn_view column;
        TRY(transform_field(p, &p->fields[i], batch, &values, err));
        view_array(&values, p->fields[i].result, &column);
        TRY(code_field(p, &p->fields[i], &column, err));
        values.release(&values);
        values.release = NULL;
    }
    uint32_t n_codes = p->n_fields == 0 ? 1 : p->fields[p->n_fields - 1].pairs.count;
    while (p->n_tuples < n_codes) {
        TRY(add_tuple(p, p->n_tuples, err));
    }
    TRY(group_rows(p, rows, n_groups, err));
    *groups = p->groups;
done:
    if (values.release != NULL) {
        values.release(&values);
    }
    return code;
}

void partitioner_free(tarn_partitioner *p) {
    if (p == NULL) {
        return;
    }
    tarn_env *env = p->env;
    for (int32_t i = 0; i < p->n_fields; i++) {
        field_state *f = &p->fields[i];
        env_free(env, f->fixed.keys);
        env_free(env, f->fixed.codes);
        env_free(env, f->pairs.keys);
        env_free(env, f->pairs.codes);
        env_free(env, f->pair_prev);
        env_free(env, f->pair_own);
        env_free(env, f->values);
    }
    env_free(env, p->tuples);
    env_free(env, p->row_codes);
    env_free(env, p->rows);
    env_free(env, p->counts);
    env_free(env, p->touched);
    env_free(env, p->groups);
    arena_release(&p->arena);
    env_free(env, p);
}
