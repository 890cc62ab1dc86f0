/* table/value_decimal.c - decimals and uuids as text.
 *
 * A decimal's text may have a fraction and a signed exponent; the exponent moves the point and its
 * sign is kept (B10). Nothing is ever rounded: a digit that does not fit is an error. */
#include "table/value.h"

/* A decimal text taken apart: digits [first, end) with the point after `whole` of them. */
typedef struct decimal_parts {
    bool negative;
    tarn_uint128 digits; /* significant digits without trailing zeros */
    int64_t exponent;    /* value is digits * 10^exponent */
} decimal_parts;

#define MAX_EXPONENT 100000

/* [e|E] sign digits; the exponent saturates, since anything beyond is refused or zero anyway. */
static bool parse_exponent(const char *p, const char *end, int64_t *exponent) {
    bool negative = false;
    if (p < end && (*p == '+' || *p == '-')) {
        negative = *p == '-';
        p++;
    }
    if (p == end) {
        return false;
    }
    int64_t value = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9') {
            return false;
        }
        value = value < MAX_EXPONENT ? value * 10 + (*p - '0') : value;
    }
    *exponent = negative ? -value : value;
    return true;
}

/* false: not a number, or more than 38 significant digits (*too_long). */
static bool take_apart(tarn_str text, decimal_parts *out, bool *too_long) {
    const char *p = text.data;
    const char *end = p + text.len;
    bool any = false;
    bool point = false;
    int64_t zeros = 0; /* held back: they count only when a digit follows */
    int32_t kept = 0;
    memset(out, 0, sizeof *out);
    *too_long = false;
    if (p < end && (*p == '-' || *p == '+')) {
        out->negative = *p == '-';
        p++;
    }
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (*p < '0' || *p > '9') {
            return false;
        }
        any = true;
        out->exponent -= point ? 1 : 0;
        if (*p == '0') {
            zeros += out->digits != 0 ? 1 : 0;
            continue;
        }
        if (kept + zeros >= 38) {
            *too_long = true;
            zeros = 0;
            continue;
        }
        for (; zeros > 0; zeros--) {
            out->digits *= 10;
            kept++;
        }
        out->digits *= 10;
        out->digits += (unsigned)(*p - '0');
        kept++;
    }
    out->exponent += zeros;
    int64_t exponent = 0;
    if (!any || (p < end && !parse_exponent(p + 1, end, &exponent))) {
        *too_long = false;
        return false;
    }
    out->exponent += exponent;
    return !*too_long;
}

tarn_code value_parse_decimal(tarn_str text, int32_t precision, int32_t scale, tarn_int128 *out,
                              tarn_error *err) {
    decimal_parts parts;
    bool too_long;
    if (text.len == 0 || (!take_apart(text, &parts, &too_long) && !too_long)) {
        return err_set(err, TARN_INVALID, "\"%.*s\" was not a decimal", STR_ARG(text));
    }
    int64_t shift = parts.exponent + scale; /* digits * 10^shift is the unscaled value */
    if (too_long) {
        return err_set(err, TARN_INVALID, "%.*s did not fit decimal(%d, %d)", STR_ARG(text),
                       (int)precision, (int)scale);
    }
    if (parts.digits == 0) {
        *out = 0;
        return TARN_OK;
    }
    if (shift < 0) {
        return err_set(err, TARN_INVALID, "%.*s had more fraction digits than decimal(%d, %d)",
                       STR_ARG(text), (int)precision, (int)scale);
    }
    tarn_int128 digits = (tarn_int128)parts.digits;
    if (shift > 38 || num_digits_i128(digits) + shift > precision) {
        return err_set(err, TARN_INVALID, "%.*s did not fit decimal(%d, %d)", STR_ARG(text),
                       (int)precision, (int)scale);
    }
    digits *= num_pow10_i128((int32_t)shift);
    *out = parts.negative ? -digits : digits;
    return TARN_OK;
}

size_t value_format_decimal(tarn_int128 v, int32_t scale, char out[64]) {
    char digits[48];
    size_t n = 0;
    tarn_uint128 u = v < 0 ? -(tarn_uint128)v : (tarn_uint128)v;
    do {
        digits[n++] = (char)('0' + (int)(u % 10));
        u /= 10;
    } while (u != 0 && n < 40);
    while (n <= (size_t)scale) { /* at least one digit before the point */
        digits[n++] = '0';
    }
    size_t len = 0;
    if (v < 0) {
        out[len++] = '-';
    }
    while (n > 0) {
        out[len++] = digits[--n];
        if (n == (size_t)scale && scale > 0) {
            out[len++] = '.';
        }
    }
    out[len] = '\0';
    return len;
}

bool value_parse_uuid(tarn_str text, uint8_t out[16]) {
    size_t at = 0;
    uint8_t bytes[16];
    if (text.len != 36 && text.len != 32) {
        return false;
    }
    for (size_t i = 0; i < 16; i++) {
        bool dash = text.len == 36 && (i == 4 || i == 6 || i == 8 || i == 10);
        if (dash && text.data[at++] != '-') {
            return false;
        }
        int high = str_hex_digit(text.data[at]);
        int low = str_hex_digit(text.data[at + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i] = (uint8_t)(high * 16 + low);
        at += 2;
    }
    memcpy(out, bytes, 16);
    return true;
}

void value_format_uuid(const uint8_t in[16], char out[37]) {
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            out[at++] = '-';
        }
        out[at++] = digits[in[i] >> 4];
        out[at++] = digits[in[i] & 15];
    }
    out[at] = '\0';
}
