/* base/str_num.c - numbers from text and to text, whatever the locale of the process is. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
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

static bool num_grammar(tarn_str s) {
    size_t i = 0;
    size_t digits = 0;
    if (i < s.len && (s.data[i] == '-' || s.data[i] == '+')) {
        i++;
    }
    for (; i < s.len && s.data[i] >= '0' && s.data[i] <= '9'; i++) {
        digits++;
    }
    if (i < s.len && s.data[i] == '.') {
        for (i++; i < s.len && s.data[i] >= '0' && s.data[i] <= '9'; i++) {
            digits++;
        }
    }
    if (digits == 0) {
        return false;
    }
    if (i < s.len && (s.data[i] == 'e' || s.data[i] == 'E')) {
        i++;
        if (i < s.len && (s.data[i] == '-' || s.data[i] == '+')) {
            i++;
        }
        size_t from = i;
        for (; i < s.len && s.data[i] >= '0' && s.data[i] <= '9'; i++) {
        }
        if (i == from) {
            return false;
        }
    }
    return i == s.len;
}
static bool special(tarn_str s, double *out) {
    bool negative = s.len > 0 && s.data[0] == '-';
    tarn_str t = s.len > 0 && (negative || s.data[0] == '+') ? str_from(s, 1) : s;
    if (str_eq_nocase(t, STR("nan"))) {
        *out = (double)NAN;
        return true;
    }
    if (str_eq_nocase(t, STR("infinity")) || str_eq_nocase(t, STR("inf"))) {
        *out = negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    return false;
}
bool str_to_f64(tarn_str s, double *out) {
    char text[1024];
    if (special(s, out)) {
        return true;
    }
    if (s.len >= sizeof text || !num_grammar(s)) {
        return false;
    }
    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    double v = strtod(text, NULL);
    if (isinf(v)) {
        return false;
    }
    *out = v;
    return true;
}
bool str_to_f32(tarn_str s, float *out) {
    char text[1024];
    double d;
    if (special(s, &d)) {
        *out = (float)d;
        return true;
    }
    if (s.len >= sizeof text || !num_grammar(s)) {
        return false;
    }
    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    float v = strtof(text, NULL);
    if (isinf(v)) {
        return false;
    }
    *out = v;
    return true;
}
static size_t finish(double v, char out[32]) {
    if (isnan(v)) {
        memcpy(out, "NaN", 4);
        return 3;
    }
    if (isinf(v)) {
        return (size_t)snprintf(out, 32, "%sInfinity", v < 0 ? "-" : "");
    }
    if (strpbrk(out, ".e") == NULL) {
        strcat(out, ".0");
    }
    return strlen(out);
}
size_t str_from_f64(double v, char out[32]) {
    for (int p = 1; p <= 17; p++) {
        (void)snprintf(out, 32, "%.*g", p, v);
        if (strtod(out, NULL) == v) {
            break;
        }
    }
    return finish(v, out);
}
size_t str_from_f32(float v, char out[32]) {
    for (int p = 1; p <= 9; p++) {
        (void)snprintf(out, 32, "%.*g", p, (double)v);
        if (strtof(out, NULL) == v) {
            break;
        }
    }
    return finish((double)v, out);
}
