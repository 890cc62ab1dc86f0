/* table/key_rows.c - key columns become bytes, a whole column at a time.
 *
 * A key is its columns one after the other, each a byte that says whether there is a value, then
 * the value: words of 8 bytes, booleans of 1, decimals and uuids of 16, fixed of their length,
 * strings and binaries of a length (4 bytes) and their bytes. The first byte and the lengths make
 * the text of a key readable in one way only, so that different keys have different bytes. Sizes of
 * all rows are summed up first; then each column is written at its rows' places. */
#include "table/key_rows.h"

#define KEY_BYTES_MAX ((size_t)UINT32_MAX)

typedef enum key_form {
    FORM_BOOL,
    FORM_I32,
    FORM_I64,
    FORM_F32,
    FORM_F64,
    FORM_BLOCK, /* as many bytes as the type is wide */
    FORM_TEXT,
    FORM_NULL, /* only nulls */
    FORM_NONE  /* no key can be of this type */
} key_form;

void key_rows_init(key_rows *k, tarn_env *env) {
    memset(k, 0, sizeof *k);
    buf_init(&k->bytes, env, KEY_BYTES_MAX);
}

void key_rows_release(key_rows *k) {
    env_free(k->bytes.env, k->offsets);
    buf_release(&k->bytes);
    memset(k, 0, sizeof *k);
}

static key_form form_of(const tarn_type *type) {
    switch (type->kind) {
    case TARN_BOOLEAN:
        return FORM_BOOL;
    case TARN_INT:
    case TARN_DATE:
        return FORM_I32;
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return FORM_I64;
    case TARN_FLOAT:
        return FORM_F32;
    case TARN_DOUBLE:
        return FORM_F64;
    case TARN_DECIMAL:
    case TARN_UUID:
    case TARN_FIXED:
        return FORM_BLOCK;
    case TARN_STRING:
    case TARN_BINARY:
        return FORM_TEXT;
    case TARN_UNKNOWN:
        return FORM_NULL;
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return FORM_NONE;
}

/* Bytes of a value besides the one that says it is there; of a text, those besides its own. */
static uint32_t form_size(const tarn_type *type, key_form form) {
    switch (form) {
    case FORM_BOOL:
        return 1;
    case FORM_I32:
    case FORM_I64:
    case FORM_F32:
    case FORM_F64:
        return 8;
    case FORM_BLOCK:
        return (uint32_t)type_width(type);
    case FORM_TEXT:
        return 4;
    case FORM_NULL:
    case FORM_NONE:
        break;
    }
    return 0;
}

/* ---- sizes ---- */

/* Adds what a column takes of each row to sizes, or to *common where all rows take the same. */
static void add_sizes(const tarn_view *v, key_form form, int64_t rows, uint64_t *sizes,
                      uint64_t *common) {
    const uint32_t size = form_size(v->type, form);
    const bool nulls = v->validity != NULL && form != FORM_NULL;
    *common += 1;
    if (!nulls) {
        *common += size;
    }
    for (int64_t i = 0; i < rows && nulls; i++) {
        sizes[i] += view_is_null(v, i) ? 0 : size;
    }
    for (int64_t i = 0; i < rows && form == FORM_TEXT; i++) {
        sizes[i] += view_is_null(v, i) ? 0 : (uint64_t)(v->offsets[i + 1] - v->offsets[i]);
    }
}

/* Sizes become the rows' beginnings. */
static tarn_code place_rows(key_rows *k, int64_t rows, const uint64_t *sizes, uint64_t common,
                            tarn_error *err) {
    uint64_t at = 0;
    for (int64_t i = 0; i < rows; i++) {
        k->offsets[i] = (uint32_t)at;
        at += sizes[i] + common;
        if (at > KEY_BYTES_MAX) {
            return err_set(err, TARN_LIMIT, "the keys of %lld rows took more than %zu bytes",
                           (long long)rows, KEY_BYTES_MAX);
        }
    }
    k->offsets[rows] = (uint32_t)at;
    return TARN_OK;
}

/* ---- values ---- */

/* What == says of floats: one zero, and one NaN though it equals nothing. */
static inline uint64_t double_word(double d) {
    uint64_t word = UINT64_C(0x7ff8000000000000);
    if (d == 0) {
        return 0;
    }
    if (d == d) {
        memcpy(&word, &d, sizeof word);
    }
    return word;
}

static inline uint64_t load_word(const tarn_view *v, int64_t i, key_form form) {
    const uint8_t *values = v->values;
    float f;
    double d;
    switch (form) {
    case FORM_I32:
        return (uint64_t)(int64_t)num_load_i32(values + i * 4);
    case FORM_F32:
        memcpy(&f, values + i * 4, sizeof f);
        return double_word((double)f);
    case FORM_F64:
        memcpy(&d, values + i * 8, sizeof d);
        return double_word(d);
    case FORM_BOOL:
    case FORM_I64:
    case FORM_BLOCK:
    case FORM_TEXT:
    case FORM_NULL:
    case FORM_NONE:
        break;
    }
    return num_load_u64(values + i * 8);
}

/* Writes a column of words at *at of each row, moving it; form is known where this is called. */
static inline void put_words(uint8_t *bytes, uint32_t *at, const tarn_view *v, int64_t rows,
                             key_form form) {
    for (int64_t i = 0; i < rows; i++) {
        uint8_t *p = bytes + at[i];
        const bool here = v->validity == NULL || bit_get(v->validity, v->start + i);
        *p = here;
        if (here) {
            uint64_t word = load_word(v, i, form);
            memcpy(p + 1, &word, sizeof word);
        }
        at[i] += here ? 9 : 1;
    }
}

static void put_bools(uint8_t *bytes, uint32_t *at, const tarn_view *v, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        bool here = !view_is_null(v, i);
        bytes[at[i]++] = here;
        if (here) {
            bytes[at[i]++] = view_bool(v, i);
        }
    }
}

static void put_blocks(uint8_t *bytes, uint32_t *at, const tarn_view *v, int64_t rows) {
    const uint32_t width = (uint32_t)type_width(v->type);
    for (int64_t i = 0; i < rows; i++) {
        bool here = !view_is_null(v, i);
        bytes[at[i]++] = here;
        if (here && width > 0) {
            memcpy(bytes + at[i], (const uint8_t *)v->values + (size_t)i * width, width);
            at[i] += width;
        }
    }
}

static void put_texts(uint8_t *bytes, uint32_t *at, const tarn_view *v, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        bool here = !view_is_null(v, i);
        bytes[at[i]++] = here;
        if (here) {
            tarn_str text = view_bytes(v, i);
            uint32_t len = (uint32_t)text.len;
            memcpy(bytes + at[i], &len, sizeof len);
            if (len > 0) {
                memcpy(bytes + at[i] + sizeof len, text.data, len);
            }
            at[i] += (uint32_t)sizeof len + len;
        }
    }
}

static void put_column(uint8_t *bytes, uint32_t *at, const tarn_view *v, int64_t rows) {
    const key_form form = form_of(v->type);
    switch (form) {
    case FORM_BOOL:
        put_bools(bytes, at, v, rows);
        break;
    case FORM_I32:
        put_words(bytes, at, v, rows, FORM_I32);
        break;
    case FORM_I64:
        put_words(bytes, at, v, rows, FORM_I64);
        break;
    case FORM_F32:
        put_words(bytes, at, v, rows, FORM_F32);
        break;
    case FORM_F64:
        put_words(bytes, at, v, rows, FORM_F64);
        break;
    case FORM_BLOCK:
        put_blocks(bytes, at, v, rows);
        break;
    case FORM_TEXT:
        put_texts(bytes, at, v, rows);
        break;
    case FORM_NULL:
    case FORM_NONE:
        for (int64_t i = 0; i < rows; i++) {
            bytes[at[i]++] = 0;
        }
        break;
    }
}

/* ---- all of it ---- */

static tarn_code reserve_rows(key_rows *k, int64_t rows, tarn_error *err) {
    const size_t need = (size_t)rows + 1;
    if (need > k->cap) {
        uint32_t *offsets = env_realloc(k->bytes.env, k->offsets, need * sizeof *offsets);
        if (offsets == NULL) {
            return err_nomem(err);
        }
        k->offsets = offsets;
        k->cap = need;
    }
    return TARN_OK;
}

static tarn_code open_columns(tarn_env *env, const tarn_batch *batch, const int32_t *key_ids,
                              int32_t n, tarn_path_view *columns, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < n; i++) {
        TRY(path_view_init(&columns[i], env, batch, key_ids[i], err));
        if (form_of(columns[i].view.type) == FORM_NONE) {
            code = err_set(err, TARN_INVALID, "the column with field id %d is a %s, and no key",
                           (int)key_ids[i], type_kind_name(columns[i].view.type->kind));
            goto done;
        }
    }
done:
    return code;
}

tarn_code key_encode(key_rows *k, const tarn_batch *batch, const int32_t *key_ids, int32_t n,
                     tarn_error *err) {
    tarn_env *env = k->bytes.env;
    const int64_t rows = batch_rows(batch);
    tarn_code code = TARN_OK;
    uint64_t common = 0;
    k->rows = 0;
    buf_reset(&k->bytes);
    tarn_path_view *columns = env_calloc(env, (size_t)n + 1, sizeof *columns);
    uint64_t *sizes = env_calloc(env, (size_t)rows + 1, sizeof *sizes);
    if (columns == NULL || sizes == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(reserve_rows(k, rows, err));
    TRY(open_columns(env, batch, key_ids, n, columns, err));
    for (int32_t i = 0; i < n; i++) {
        add_sizes(&columns[i].view, form_of(columns[i].view.type), rows, sizes, &common);
    }
    TRY(place_rows(k, rows, sizes, common, err));
    TRY(buf_reserve(&k->bytes, (size_t)k->offsets[rows] + 1, err));
    for (int32_t i = 0; i < n; i++) {
        put_column(k->bytes.data, k->offsets, &columns[i].view, rows);
    }
    k->bytes.len = k->offsets[rows];
    /* each row's place has moved to the row's end: the next one's beginning */
    memmove(k->offsets + 1, k->offsets, (size_t)rows * sizeof *k->offsets);
    k->offsets[0] = 0;
    k->rows = rows;
done:
    for (int32_t i = 0; i < n && columns != NULL; i++) {
        path_view_release(&columns[i]);
    }
    env_free(env, columns);
    env_free(env, sizes);
    return code;
}
