/* base/str_num.c - whole numbers from text and to text. Floats are in base/str_float.c. */
#include "base/str.h"

static bool parse_digits(const char *p, const char *end, uint64_t max, uint64_t *out) {
    if (p == end) {
        return false;
    }
    uint64_t v = 0;
    for (; p < end; p++) {
        unsigned digit = (unsigned)(unsigned char)*p - '0';
        if (digit > 9 || v > (max - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

bool str_to_u64(tarn_str s, uint64_t *out) {
    size_t sign = s.len > 0 && s.data[0] == '+' ? 1 : 0;
    return s.len > 0 && parse_digits(s.data + sign, s.data + s.len, UINT64_MAX, out);
}

bool str_to_i64(tarn_str s, int64_t *out) {
    if (s.len == 0) {
        return false;
    }
    bool negative = s.data[0] == '-';
    size_t sign = negative || s.data[0] == '+' ? 1 : 0;
    uint64_t v;
    if (!parse_digits(s.data + sign, s.data + s.len, (uint64_t)INT64_MAX + negative, &v)) {
        return false;
    }
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

bool str_to_i32(tarn_str s, int32_t *out) {
    int64_t v;
    if (!str_to_i64(s, &v) || v < INT32_MIN || v > INT32_MAX) {
        return false;
    }
    *out = (int32_t)v;
    return true;
}

size_t str_from_i64(int64_t v, char out[24]) {
    char digits[20];
    size_t n = 0;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        digits[n++] = (char)('0' + u % 10);
        u /= 10;
    } while (u > 0);
    size_t len = 0;
    if (v < 0) {
        out[len++] = '-';
    }
    while (n > 0) {
        out[len++] = digits[--n];
    }
    out[len] = '\0';
    return len;
}
