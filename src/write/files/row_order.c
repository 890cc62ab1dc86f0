/* write/files/row_order.c - see row_order.h.
 *
 * A key is, for each field: a byte that puts nulls first or last, then the value so that unsigned
 * bytes compare as values do (big-endian, sign turned; text with its zeros escaped and an end), all
 * of its bits turned where the order descends. Ranks hold the first 8 bytes in which keys differ,
 * so that most comparisons look no further; a merge sort keeps equal rows in their order. */
#include "write/files/row_order.h"

#define PREFIX_BYTES 8
#define FIXED_MOST   17 /* bytes of a value without end: null byte and a decimal */
#define RUN_ROWS     12 /* sorted by insertion before merging */

struct row_sorter {
    int32_t n_fields;
    const tarn_sort_field *fields;
    const tarn_type **results; /* of the transforms */
};

tarn_code row_sorter_new(tarn_arena *arena, const tarn_type *root, const tarn_sort_order *order,
                         const row_sorter **out, tarn_error *err) {
    *out = NULL;
    if (order == NULL || order->n_fields == 0) {
        return TARN_OK;
    }
    row_sorter *s = ARENA_NEW(arena, row_sorter);
    const tarn_type **results = ARENA_ARRAY(arena, const tarn_type *, (size_t)order->n_fields);
    if (s == NULL || results == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < order->n_fields; i++) {
        const tarn_sort_field *field = &order->fields[i];
        const tarn_field *source = type_find_id(root, field->source_id);
        if (source == NULL || field->transform.kind == TRANSFORM_UNKNOWN ||
            type_is_nested(source->type)) {
            return TARN_OK;
        }
        tarn_code code =
            transform_result_type(arena, &field->transform, source->type, &results[i], err);
        if (code != TARN_OK) {
            return code;
        }
    }
    s->n_fields = order->n_fields;
    s->fields = order->fields;
    s->results = results;
    *out = s;
    return TARN_OK;
}

static size_t put_be64(uint8_t *out, uint64_t v) {
    v = __builtin_bswap64(v);
    memcpy(out, &v, sizeof v);
    return sizeof v;
}

static size_t put_be32(uint8_t *out, uint32_t v) {
    v = __builtin_bswap32(v);
    memcpy(out, &v, sizeof v);
    return sizeof v;
}

/* -0.0 before 0.0, every NaN last (spec, "Sorting"). */
static size_t put_f64(uint8_t *out, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (v != v) {
        bits = UINT64_C(0x7ff8000000000000);
    }
    return put_be64(out, bits >> 63 != 0 ? ~bits : bits | UINT64_C(0x8000000000000000));
}

static size_t put_f32(uint8_t *out, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (v != v) {
        bits = UINT32_C(0x7fc00000);
    }
    return put_be32(out, bits >> 31 != 0 ? ~bits : bits | UINT32_C(0x80000000));
}

/* 0 becomes 0 255, and 0 1 ends it: so a text lies before those that it begins. */
static size_t put_text(uint8_t *out, tarn_str text) {
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        out[n++] = byte;
        if (byte == 0) {
            out[n++] = 255;
        }
    }
    out[n++] = 0;
    out[n++] = 1;
    return n;
}

static size_t put_value(uint8_t *out, const tarn_value *v) {
    switch (v->type->kind) {
    case TARN_BOOLEAN:
        out[0] = v->as.boolean;
        return 1;
    case TARN_INT:
    case TARN_DATE:
        return put_be32(out, (uint32_t)v->as.i32 ^ UINT32_C(0x80000000));
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return put_be64(out, (uint64_t)v->as.i64 ^ UINT64_C(0x8000000000000000));
    case TARN_FLOAT:
        return put_f32(out, v->as.f32);
    case TARN_DOUBLE:
        return put_f64(out, v->as.f64);
    case TARN_DECIMAL: {
        tarn_uint128 bits = (tarn_uint128)v->as.i128;
        put_be64(out, (uint64_t)(bits >> 64) ^ UINT64_C(0x8000000000000000));
        return 8 + put_be64(out + 8, (uint64_t)bits);
    }
    case TARN_STRING:
    case TARN_UUID:
    case TARN_FIXED:
    case TARN_BINARY:
        return put_text(out, v->as.bytes);
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return 0; /* without an order: all are alike */
}

static tarn_code put_field(const tarn_sort_field *field, const tarn_view *column, int64_t row,
                           tarn_buf *out, tarn_error *err) {
    tarn_value v;
    view_value(column, row, &v);
    size_t most = FIXED_MOST;
    if (!v.is_null && (type_is_var(v.type) || v.type->kind == TARN_FIXED)) {
        most += v.as.bytes.len * 2 + 2;
    } else if (!v.is_null && v.type->kind == TARN_UUID) {
        most += 16 * 2 + 2;
    }
    tarn_code code = buf_reserve(out, most, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *at = out->data + out->len;
    at[0] = v.is_null == field->nulls_last;
    size_t n = 1;
    if (!v.is_null) {
        n += put_value(at + 1, &v);
    }
    for (size_t i = 1; field->descending && i < n; i++) {
        at[i] = (uint8_t)~at[i];
    }
    out->len += n;
    return TARN_OK;
}

/* A sort field's values for a batch. */
typedef struct sort_column {
    tarn_path_view source;
    struct ArrowArray values; /* of a transform other than identity */
    tarn_view view;
} sort_column;

static tarn_code open_column(const row_sorter *s, int32_t i, tarn_env *env, const tarn_batch *batch,
                             sort_column *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder builder;
    const tarn_sort_field *field = &s->fields[i];
    memset(&builder, 0, sizeof builder);
    TRY(path_view_init(&out->source, env, batch, field->source_id, err));
    out->view = out->source.view;
    if (field->transform.kind == TRANSFORM_IDENTITY) {
        goto done;
    }
    TRY(builder_init(&builder, env, s->results[i], err));
    if (field->transform.kind == TRANSFORM_VOID) {
        TRY(builder_nulls(&builder, batch_rows(batch), err));
    } else {
        TRY(transform_column(&field->transform, &out->source.view, &builder, err));
    }
    TRY(builder_finish(&builder, &out->values, err));
    view_array(&out->values, s->results[i], &out->view);
done:
    builder_release(&builder);
    return code;
}

static tarn_code make_keys(const row_sorter *s, const tarn_batch *batch, row_order *order,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    sort_column *columns = env_calloc(order->env, (size_t)s->n_fields, sizeof *columns);
    if (columns == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < s->n_fields; i++) {
        TRY(open_column(s, i, order->env, batch, &columns[i], err));
    }
    for (int64_t row = 0; row < order->n; row++) {
        for (int32_t i = 0; i < s->n_fields; i++) {
            TRY(put_field(&s->fields[i], &columns[i].view, row, &order->keys, err));
        }
        order->ends[row] = order->keys.len;
    }
done:
    for (int32_t i = 0; i < s->n_fields; i++) {
        path_view_release(&columns[i].source);
        if (columns[i].values.release != NULL) {
            columns[i].values.release(&columns[i].values);
        }
    }
    env_free(order->env, columns);
    return code;
}

static tarn_str key_of(const row_order *order, int32_t row) {
    size_t start = row == 0 ? 0 : order->ends[row - 1];
    return str_make(order->keys.data + start, order->ends[row] - start);
}

tarn_str row_order_key(const row_order *order, int64_t rank) {
    return key_of(order, order->rows[rank]);
}

static bool is_above(const row_order *order, const row_rank *a, const row_rank *b) {
    if (a->prefix != b->prefix) {
        return a->prefix > b->prefix;
    }
    size_t seen = order->shared + PREFIX_BYTES;
    return str_cmp(str_from(key_of(order, a->row), seen), str_from(key_of(order, b->row), seen)) >
           0;
}

static void sort_run(const row_order *order, row_rank *ranks, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        row_rank rank = ranks[i];
        int64_t at = i;
        for (; at > 0 && is_above(order, &ranks[at - 1], &rank); at--) {
            ranks[at] = ranks[at - 1];
        }
        ranks[at] = rank;
    }
}

static void merge_runs(const row_order *order, const row_rank *from, int64_t half, int64_t n,
                       row_rank *to) {
    int64_t a = 0;
    int64_t b = half;
    if (half >= n || !is_above(order, &from[half - 1], &from[half])) {
        memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        bool second = a == half || (b < n && is_above(order, &from[a], &from[b]));
        to[i] = second ? from[b++] : from[a++];
    }
}

/* Sorts ranks, with room for as many in spare; returns which of the two holds the result. */
static row_rank *sort_ranks(const row_order *order, row_rank *ranks, row_rank *spare) {
    int64_t n = order->n;
    for (int64_t start = 0; start < n; start += RUN_ROWS) {
        sort_run(order, ranks + start, n - start < RUN_ROWS ? n - start : RUN_ROWS);
    }
    for (int64_t half = RUN_ROWS; half < n; half *= 2) {
        for (int64_t start = 0; start < n; start += 2 * half) {
            int64_t rows = n - start < 2 * half ? n - start : 2 * half;
            merge_runs(order, ranks + start, half, rows, spare + start);
        }
        row_rank *sorted = spare;
        spare = ranks;
        ranks = sorted;
    }
    return ranks;
}

static size_t shared_bytes(const row_order *order) {
    tarn_str first = order->n > 0 ? key_of(order, 0) : STR("");
    size_t shared = first.len;
    for (int64_t i = 1; i < order->n && shared > 0; i++) {
        tarn_str key = key_of(order, (int32_t)i);
        size_t n = 0;
        while (n < shared && n < key.len && key.data[n] == first.data[n]) {
            n++;
        }
        shared = n;
    }
    return shared;
}

static uint64_t prefix_of(tarn_str key) {
    uint8_t bytes[PREFIX_BYTES] = {0};
    memcpy(bytes, key.data, key.len < PREFIX_BYTES ? key.len : PREFIX_BYTES);
    return num_load_be64(bytes);
}

tarn_code row_order_make(const row_sorter *sorter, tarn_env *env, const tarn_batch *batch,
                         row_order *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = (size_t)batch_rows(batch);
    row_rank *ranks = NULL;
    memset(out, 0, sizeof *out);
    out->env = env;
    out->n = (int64_t)n;
    buf_init(&out->keys, env, 0);
    out->rows = env_calloc(env, n + 1, sizeof *out->rows);
    out->ends = env_calloc(env, n + 1, sizeof *out->ends);
    ranks = env_calloc(env, 2 * n + 1, sizeof *ranks);
    if (out->rows == NULL || out->ends == NULL || ranks == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(make_keys(sorter, batch, out, err));
    out->shared = shared_bytes(out);
    for (size_t i = 0; i < n; i++) {
        ranks[i].row = (int32_t)i;
        ranks[i].prefix = prefix_of(str_from(key_of(out, (int32_t)i), out->shared));
    }
    const row_rank *sorted = sort_ranks(out, ranks, ranks + n);
    out->as_came = true;
    for (size_t i = 0; i < n; i++) {
        out->rows[i] = sorted[i].row;
        out->as_came = out->as_came && sorted[i].row == (int32_t)i;
    }
done:
    env_free(env, ranks);
    return code;
}

void row_order_release(row_order *order) {
    if (order->env == NULL) {
        return;
    }
    env_free(order->env, order->rows);
    env_free(order->env, order->ends);
    buf_release(&order->keys);
    order->env = NULL;
}
