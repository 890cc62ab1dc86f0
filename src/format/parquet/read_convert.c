/* format/parquet/read_convert.c - physical values as canonical ones (see README.md for the
 * mapping). */
#include "format/parquet/parquet_read_int.h"

#define US_PER_DAY        INT64_C(86400000000)
#define JULIAN_UNIX_EPOCH INT64_C(2440588)

static bool is_millis(const parquet_element *e) {
    if (THRIFT_HAS(e, PARQUET_ELEMENT_LOGICAL) &&
        THRIFT_HAS(&e->logical, PARQUET_LOGICAL_TIMESTAMP)) {
        return THRIFT_HAS(&e->logical.timestamp.unit, PARQUET_UNIT_MILLIS);
    }
    return THRIFT_HAS(e, PARQUET_ELEMENT_CONVERTED) &&
           e->converted == PARQUET_CONVERTED_TIMESTAMP_MILLIS;
}

static bool is_unsigned(const parquet_element *e) {
    if (THRIFT_HAS(e, PARQUET_ELEMENT_LOGICAL) &&
        THRIFT_HAS(&e->logical, PARQUET_LOGICAL_INTEGER)) {
        return !e->logical.integer.is_signed;
    }
    return THRIFT_HAS(e, PARQUET_ELEMENT_CONVERTED) && e->converted == PARQUET_CONVERTED_UINT_64;
}

static read_convert choose_i32(const parquet_leaf *leaf) {
    switch ((int)leaf->type->kind) {
    case TARN_DECIMAL:
        return CONVERT_I32_DECIMAL;
    case TARN_LONG:
        return CONVERT_U32_LONG;
    case TARN_TIME:
        return CONVERT_I32_MILLIS;
    default:
        return CONVERT_COPY;
    }
}

static read_convert choose_i64(const parquet_leaf *leaf) {
    switch ((int)leaf->type->kind) {
    case TARN_DECIMAL:
        return is_unsigned(leaf->element) ? CONVERT_U64_DECIMAL : CONVERT_I64_DECIMAL;
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
        return is_millis(leaf->element) ? CONVERT_I64_MILLIS : CONVERT_COPY;
    default:
        return CONVERT_COPY;
    }
}

read_convert convert_choose(const parquet_leaf *leaf) {
    if (leaf->type == NULL || leaf->type->kind == TARN_UNKNOWN) {
        return CONVERT_NOTHING;
    }
    const bool decimal = leaf->type->kind == TARN_DECIMAL;
    switch ((parquet_physical)leaf->physical) {
    case PARQUET_BOOLEAN:
        return CONVERT_BOOL;
    case PARQUET_INT32:
        return choose_i32(leaf);
    case PARQUET_INT64:
        return choose_i64(leaf);
    case PARQUET_INT96:
        return CONVERT_INT96;
    case PARQUET_FLOAT:
    case PARQUET_DOUBLE:
        return CONVERT_COPY;
    case PARQUET_BYTE_ARRAY:
        return decimal ? CONVERT_BYTES_DECIMAL : CONVERT_BYTES;
    case PARQUET_FIXED_LEN_BYTE_ARRAY:
        break;
    }
    if (decimal) {
        return CONVERT_FIXED_DECIMAL;
    }
    return leaf->type->kind == TARN_FLOAT ? CONVERT_FLOAT16 : CONVERT_COPY;
}

size_t physical_width(const parquet_leaf *leaf) {
    switch ((parquet_physical)leaf->physical) {
    case PARQUET_INT32:
    case PARQUET_FLOAT:
        return 4;
    case PARQUET_INT64:
    case PARQUET_DOUBLE:
        return 8;
    case PARQUET_INT96:
        return 12;
    case PARQUET_FIXED_LEN_BYTE_ARRAY:
        return (size_t)leaf->type_length;
    case PARQUET_BOOLEAN:
    case PARQUET_BYTE_ARRAY:
        break;
    }
    return 0;
}

/* Nanoseconds of the day (of any size, B46) and a Julian day, as floored microseconds since 1970.
 */
static bool from_int96(const uint8_t *p, int64_t *out) {
    const int64_t nanos = num_load_i64(p);
    const int64_t day = (int64_t)num_load_i32(p + 8) - JULIAN_UNIX_EPOCH;
    int64_t us = 0;
    return num_mul_i64(day, US_PER_DAY, &us) && num_add_i64(us, num_floor_div(nanos, 1000), out) &&
           *out != INT96_BEYOND;
}

/* IEEE 754 half to single. */
static float from_half(uint16_t half) {
    const uint32_t sign = (uint32_t)(half >> 15) << 31;
    const uint32_t exponent = (half >> 10) & 31;
    uint32_t fraction = half & 1023;
    uint32_t bits = 0;
    if (exponent == 31) {
        bits = sign | 0x7f800000U | fraction << 13;
    } else if (exponent != 0) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else if (fraction == 0) {
        bits = sign;
    } else {
        uint32_t shift = 0;
        while ((fraction & 1024) == 0) {
            fraction <<= 1;
            shift++;
        }
        bits = sign | (113 - shift) << 23 | (fraction & 1023) << 13;
    }
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

bool convert_decimal_bytes(const uint8_t *p, size_t len, uint8_t *dst) {
    tarn_int128 v = 0;
    if (!num_get_be_i128(p, len, &v)) {
        return false;
    }
    num_store_i128(dst, v);
    return true;
}

static void put_wide(uint8_t *dst, int64_t high, uint64_t low) {
    memcpy(dst, &low, 8);
    memcpy(dst + 8, &high, 8);
}

static void fixed_decimal(const uint8_t *raw, size_t width, uint8_t *dst) {
    uint8_t bytes[16];
    memset(bytes, (raw[0] & 0x80) != 0 ? 0xff : 0, sizeof bytes);
    memcpy(bytes + 16 - width, raw, width);
    put_wide(dst, (int64_t)num_load_be64(bytes), num_load_be64(bytes + 8));
}

/* Big-endian two's complement of up to 16 bytes, the hot case of decimals. Whole words are loaded
 * where they stay within the values. */
static void fixed_decimals(const uint8_t *raw, size_t width, size_t n, uint8_t *dst) {
    const int shift = (int)(8 * ((width <= 8 ? 8 : 16) - width));
    const uint8_t *end = raw + width * n;
    for (; width <= 8 && end - raw >= 8; raw += width, dst += 16) {
        const int64_t v = (int64_t)num_load_be64(raw) >> shift;
        put_wide(dst, v >> 63, (uint64_t)v);
    }
    for (; width > 8 && raw < end; raw += width, dst += 16) {
        put_wide(dst, (int64_t)num_load_be64(raw) >> shift, num_load_be64(raw + width - 8));
    }
    for (; raw < end; raw += width, dst += 16) {
        fixed_decimal(raw, width, dst);
    }
}

static size_t to_micros(const uint8_t *raw, size_t n, uint8_t *dst) {
    for (size_t i = 0; i < n; i++) {
        int64_t v = 0;
        if (!num_mul_i64(num_load_i64(raw + i * 8), 1000, &v)) {
            return i;
        }
        memcpy(dst + i * 8, &v, 8);
    }
    return n;
}

static void widen_i64(const uint8_t *raw, size_t n, bool is_signed, uint8_t *dst) {
    for (size_t i = 0; i < n; i++) {
        const int64_t low = num_load_i64(raw + i * 8);
        const int64_t high = is_signed ? low >> 63 : 0;
        memcpy(dst + i * 16, &low, 8);
        memcpy(dst + i * 16 + 8, &high, 8);
    }
}

static void widen_i32(const uint8_t *raw, size_t n, uint8_t *dst) {
    for (size_t i = 0; i < n; i++) {
        const int64_t low = num_load_i32(raw + i * 4);
        const int64_t high = low >> 63;
        memcpy(dst + i * 16, &low, 8);
        memcpy(dst + i * 16 + 8, &high, 8);
    }
}

size_t convert_fixed(read_convert how, const uint8_t *raw, size_t raw_width, size_t n,
                     uint8_t *dst) {
    switch (how) {
    case CONVERT_COPY:
        memcpy(dst, raw, n * raw_width);
        return n;
    case CONVERT_U32_LONG:
        for (size_t i = 0; i < n; i++) {
            const int64_t v = num_load_u32(raw + i * 4);
            memcpy(dst + i * 8, &v, 8);
        }
        return n;
    case CONVERT_I32_MILLIS:
        for (size_t i = 0; i < n; i++) {
            const int64_t v = (int64_t)num_load_i32(raw + i * 4) * 1000;
            memcpy(dst + i * 8, &v, 8);
        }
        return n;
    case CONVERT_I64_MILLIS:
        return to_micros(raw, n, dst);
    case CONVERT_I32_DECIMAL:
        widen_i32(raw, n, dst);
        return n;
    case CONVERT_I64_DECIMAL:
    case CONVERT_U64_DECIMAL:
        widen_i64(raw, n, how == CONVERT_I64_DECIMAL, dst);
        return n;
    case CONVERT_FIXED_DECIMAL:
        if (raw_width <= 16) {
            fixed_decimals(raw, raw_width, n, dst);
            return n;
        }
        for (size_t i = 0; i < n; i++) {
            if (!convert_decimal_bytes(raw + i * raw_width, raw_width, dst + i * 16)) {
                return i;
            }
        }
        return n;
    case CONVERT_INT96:
        for (size_t i = 0; i < n; i++) {
            int64_t v = 0;
            if (!from_int96(raw + i * 12, &v)) {
                return i;
            }
            memcpy(dst + i * 8, &v, 8);
        }
        return n;
    case CONVERT_FLOAT16:
        for (size_t i = 0; i < n; i++) {
            const float v = from_half(num_load_u16(raw + i * 2));
            memcpy(dst + i * 4, &v, 4);
        }
        return n;
    case CONVERT_NOTHING:
    case CONVERT_BYTES:
    case CONVERT_BOOL:
    case CONVERT_BYTES_DECIMAL:
        break;
    }
    return 0;
}

/* Values [0, n) of one run: the bytes together are valid, and no value begins inside a character.
 */
bool convert_utf8_ok(const uint8_t *bytes, const int32_t *offsets, int64_t n) {
    const size_t start = (size_t)offsets[0];
    const size_t len = (size_t)offsets[n] - start;
    uint64_t high = 0;
    size_t i = 0;
    if (len == 0) { /* there may be no bytes at all */
        return true;
    }
    const uint8_t *p = bytes + start;
    for (; i + 32 <= len; i += 32) {
        high |= num_load_u64(p + i) | num_load_u64(p + i + 8) | num_load_u64(p + i + 16) |
                num_load_u64(p + i + 24);
    }
    for (; i < len; i++) {
        high |= p[i];
    }
    if ((high & UINT64_C(0x8080808080808080)) == 0) {
        return true;
    }
    if (!str_utf8_valid(str_make(p, len))) {
        return false;
    }
    for (int64_t k = 1; k < n; k++) {
        if (offsets[k] < offsets[n] && (bytes[offsets[k]] & 0xc0) == 0x80) {
            return false;
        }
    }
    return true;
}
