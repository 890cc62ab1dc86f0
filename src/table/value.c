/* table/value.c - comparing, hashing, copying values, and their single-value binary form (spec,
 * Appendix D "Binary single-value serialization").
 *
 * Invariant: which member of `as` holds the value follows from the kind alone; slot_of says it once
 * for the whole file. */
#include "table/value.h"

typedef enum value_slot {
    SLOT_NONE,
    SLOT_BOOL,
    SLOT_I32,
    SLOT_I64,
    SLOT_F32,
    SLOT_F64,
    SLOT_I128,
    SLOT_BYTES
} value_slot;

static value_slot slot_of(tarn_kind kind) {
    switch (kind) {
    case TARN_BOOLEAN:
        return SLOT_BOOL;
    case TARN_INT:
    case TARN_DATE:
        return SLOT_I32;
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return SLOT_I64;
    case TARN_FLOAT:
        return SLOT_F32;
    case TARN_DOUBLE:
        return SLOT_F64;
    case TARN_DECIMAL:
        return SLOT_I128;
    case TARN_STRING:
    case TARN_UUID:
    case TARN_FIXED:
    case TARN_BINARY:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
        return SLOT_BYTES;
    case TARN_UNKNOWN:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        return SLOT_NONE;
    }
    return SLOT_NONE;
}

static tarn_value make_value(const tarn_type *type) {
    tarn_value v = value_null(type);
    v.is_null = false;
    return v;
}

tarn_value value_i32(const tarn_type *type, int32_t v) {
    tarn_value value = make_value(type);
    value.as.i32 = v;
    return value;
}

tarn_value value_i64(const tarn_type *type, int64_t v) {
    tarn_value value = make_value(type);
    value.as.i64 = v;
    return value;
}

tarn_value value_str(const tarn_type *type, tarn_str s) {
    tarn_value value = make_value(type);
    value.as.bytes = s;
    return value;
}

static int cmp_f64(double a, double b) {
    if (a < b) {
        return -1;
    }
    if (a > b) {
        return 1;
    }
    if (a == b) { /* only zeros differ in bits here: -0.0 sorts first */
        return (int)(__builtin_signbit(b) != 0) - (int)(__builtin_signbit(a) != 0);
    }
    bool a_nan = a != a;
    bool b_nan = b != b;
    return (int)a_nan - (int)b_nan;
}

int value_cmp(const tarn_value *a, const tarn_value *b) {
    switch (slot_of(a->type->kind)) {
    case SLOT_BOOL:
        return (int)a->as.boolean - (int)b->as.boolean;
    case SLOT_I32:
        return (a->as.i32 > b->as.i32) - (a->as.i32 < b->as.i32);
    case SLOT_I64:
        return (a->as.i64 > b->as.i64) - (a->as.i64 < b->as.i64);
    case SLOT_F32:
        return cmp_f64((double)a->as.f32, (double)b->as.f32);
    case SLOT_F64:
        return cmp_f64(a->as.f64, b->as.f64);
    case SLOT_I128:
        return (a->as.i128 > b->as.i128) - (a->as.i128 < b->as.i128);
    case SLOT_BYTES:
        return str_cmp(a->as.bytes, b->as.bytes);
    case SLOT_NONE:
        return 0;
    }
    return 0;
}

bool value_eq(const tarn_value *a, const tarn_value *b) {
    if (a->is_null || b->is_null) {
        return a->is_null == b->is_null;
    }
    return slot_of(a->type->kind) == slot_of(b->type->kind) && value_cmp(a, b) == 0;
}

static uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

static uint64_t hash_f64(double d) {
    uint64_t bits;
    if (d != d) {
        return mix(UINT64_C(0x7ff8000000000000)); /* every NaN is equal */
    }
    memcpy(&bits, &d, sizeof bits);
    return mix(bits);
}

uint64_t value_hash(const tarn_value *v) {
    if (v->is_null || v->type == NULL) {
        return UINT64_C(0x9e3779b97f4a7c15);
    }
    switch (slot_of(v->type->kind)) {
    case SLOT_BOOL:
        return mix(v->as.boolean ? 2 : 1);
    case SLOT_I32:
        return mix((uint64_t)(int64_t)v->as.i32);
    case SLOT_I64:
        return mix((uint64_t)v->as.i64);
    case SLOT_F32:
        return hash_f64((double)v->as.f32);
    case SLOT_F64:
        return hash_f64(v->as.f64);
    case SLOT_I128: {
        tarn_uint128 u = (tarn_uint128)v->as.i128;
        return mix((uint64_t)u) ^ mix((uint64_t)(u >> 64) + UINT64_C(0x9e3779b97f4a7c15));
    }
    case SLOT_BYTES:
        return str_hash(v->as.bytes);
    case SLOT_NONE:
        return 0;
    }
    return 0;
}

tarn_code value_copy(tarn_arena *arena, const tarn_value *v, tarn_value *out, tarn_error *err) {
    tarn_value copy = *v;
    if (!v->is_null && v->type != NULL && slot_of(v->type->kind) == SLOT_BYTES) {
        copy.as.bytes = arena_str(arena, v->as.bytes);
        if (copy.as.bytes.data == NULL) {
            return err_nomem(err);
        }
    }
    *out = copy;
    return TARN_OK;
}

/* ---- binary ---- */

static tarn_code bad_length(const tarn_type *type, size_t len, tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "a stored %s value had %zu bytes", type_kind_name(type->kind),
                   len);
}

/* Four bytes where eight belong: a value stored before its column was promoted (spec, "Schema
 * Evolution": int to long, float to double, date to timestamp). */
static bool read_promoted(tarn_kind kind, int32_t v, int64_t *out) {
    int64_t per_day = kind == TARN_TIMESTAMP      ? INT64_C(86400000000)
                      : kind == TARN_TIMESTAMP_NS ? INT64_C(86400000000000)
                                                  : 0;
    if (kind == TARN_LONG) {
        *out = v;
        return true;
    }
    return per_day != 0 && num_mul_i64(v, per_day, out);
}

tarn_code value_from_binary(const tarn_type *type, tarn_str bytes, tarn_value *out,
                            tarn_error *err) {
    tarn_value v = make_value(type);
    size_t len = bytes.len;
    bool good = false;
    switch (slot_of(type->kind)) {
    case SLOT_BOOL:
        good = len == 1;
        v.as.boolean = good && bytes.data[0] != 0;
        break;
    case SLOT_I32:
        good = len == 4;
        v.as.i32 = good ? num_load_i32(bytes.data) : 0;
        break;
    case SLOT_I64:
        good = len == 8 ||
               (len == 4 && read_promoted(type->kind, num_load_i32(bytes.data), &v.as.i64));
        if (len == 8) {
            v.as.i64 = num_load_i64(bytes.data);
        }
        break;
    case SLOT_F32:
        good = len == 4;
        if (good) {
            memcpy(&v.as.f32, bytes.data, 4);
        }
        break;
    case SLOT_F64:
        good = len == 8 || len == 4;
        if (len == 8) {
            memcpy(&v.as.f64, bytes.data, 8);
        } else if (len == 4) {
            float f;
            memcpy(&f, bytes.data, 4);
            v.as.f64 = (double)f;
        }
        break;
    case SLOT_I128:
        good = len > 0 && num_get_be_i128((const uint8_t *)bytes.data, len, &v.as.i128);
        break;
    case SLOT_BYTES:
        /* Bounds of fixed columns may be cut short. */
        good = (type->kind != TARN_UUID || len == 16) &&
               (type->kind != TARN_FIXED || len <= (size_t)type->length);
        v.as.bytes = bytes;
        break;
    case SLOT_NONE:
        good = type->kind == TARN_UNKNOWN;
        v.is_null = true;
        break;
    }
    if (!good) {
        return bad_length(type, len, err);
    }
    *out = v;
    return TARN_OK;
}

static size_t put_number(const tarn_value *v, uint8_t out[16]) {
    switch (slot_of(v->type->kind)) {
    case SLOT_BOOL:
        out[0] = v->as.boolean ? 1 : 0;
        return 1;
    case SLOT_I32:
        memcpy(out, &v->as.i32, 4);
        return 4;
    case SLOT_I64:
        memcpy(out, &v->as.i64, 8);
        return 8;
    case SLOT_F32:
        memcpy(out, &v->as.f32, 4);
        return 4;
    case SLOT_F64:
        memcpy(out, &v->as.f64, 8);
        return 8;
    case SLOT_I128:
        return num_put_be_i128(v->as.i128, out);
    case SLOT_BYTES:
    case SLOT_NONE:
        return 0;
    }
    return 0;
}

tarn_code value_to_binary(tarn_arena *arena, const tarn_value *v, tarn_str *out, tarn_error *err) {
    uint8_t number[16];
    if (v->is_null || slot_of(v->type->kind) == SLOT_NONE) {
        return err_set(err, TARN_INVALID, "a null value has no binary form");
    }
    tarn_str bytes = v->as.bytes;
    if (slot_of(v->type->kind) != SLOT_BYTES) {
        bytes = str_make(number, put_number(v, number));
    }
    bytes = arena_str(arena, bytes);
    if (bytes.data == NULL) {
        return err_nomem(err);
    }
    *out = bytes;
    return TARN_OK;
}
