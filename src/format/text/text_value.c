/* format/text/text_value.c - primitives from their text, straight into builders.
 *
 * The common shapes (whole numbers, plain decimals and floats, YYYY-MM-DD and timestamps of fixed
 * width) are read here; everything else goes to the parsers of base and table, so both agree on
 * what is valid. Texts are followed by TEXT_PADDING readable bytes. */
#include "base/time.h"
#include "format/text/text_int.h"
#include "format/text/text_scan.h"
#include "table/value.h"

#define SHOWN_BYTES 60

static tarn_code bad_value(text_decoder *d, const text_node *node, tarn_str text) {
    int shown = (int)(text.len < SHOWN_BYTES ? text.len : SHOWN_BYTES);
    return text_bad(d, node, "\"%.*s%s\" was not a valid %s", shown, text.data,
                    text.len > SHOWN_BYTES ? "..." : "", type_kind_name(node->kind));
}

bool text_is_null(const text_plan *plan, tarn_str cell) {
    if (cell.len == 0) {
        return plan->null_empty;
    }
    if (!plan->null_begins[(unsigned char)cell.data[0]]) {
        return false;
    }
    for (int32_t i = 0; i < plan->options.n_null_texts; i++) {
        if (str_eq(plan->options.null_texts[i], cell)) {
            return true;
        }
    }
    return false;
}

tarn_code text_put_null(text_decoder *d, const text_node *node, tarn_builder *b) {
    if (node->required && !(d->plan->has_kinds && node->parent == &d->plan->root)) {
        return text_bad(d, node, "a required value was null or absent");
    }
    if (b->validity == NULL || b->length == b->capacity || b->n_children > 0) {
        return builder_null(b, d->err);
    }
    int32_t width = type_width(node->type);
    bit_clear(b->validity, b->length);
    if (b->offsets != NULL) {
        b->offsets[b->length + 1] = b->offsets[b->length];
    } else if (width == 8) {
        memset(b->values + (size_t)b->length * 8, 0, 8);
    } else if (width == 4) {
        memset(b->values + (size_t)b->length * 4, 0, 4);
    } else if (width > 0) {
        memset(b->values + (size_t)b->length * (size_t)width, 0, (size_t)width);
    } else {
        bit_clear(b->values, b->length);
    }
    b->length++;
    b->null_count++;
    return TARN_OK;
}

tarn_code text_put_absent(text_decoder *d, const text_node *node, tarn_builder *b) {
    if (node->fallback == NULL) {
        return text_put_null(d, node, b);
    }
    return type_is_nested(node->type) ? builder_default(b, node->fallback, true, d->err)
                                      : builder_value(b, &node->absent, d->err);
}

/* ---- numbers ---- */

/* Digits with at most one point, no exponent: value is *digits / 10^*places. false: anything else,
 * or more than 18 digits. */
static bool read_plain(tarn_str text, bool *negative, uint64_t *digits, int32_t *places) {
    const char *p = text.data;
    const char *end = p + text.len;
    if (text.len > 20) {
        return false;
    }
    *negative = text.len > 0 && *p == '-';
    p += *negative;
    const char *point = NULL;
    const char *start = p;
    uint64_t v = 0;
    for (; p < end; p++) {
        if (text_is_digit(*p)) {
            v = v * 10 + (uint64_t)(*p - '0');
        } else if (*p == '.' && point == NULL && p > start) {
            point = p;
        } else {
            return false;
        }
    }
    *digits = v;
    *places = point != NULL ? (int32_t)(p - point - 1) : 0;
    return p - start - (point != NULL) <= 18 && p > start && (point == NULL || *places > 0);
}

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static tarn_code put_double(text_decoder *d, const text_node *node, tarn_builder *b,
                            tarn_str text) {
    bool negative;
    uint64_t digits;
    int32_t places;
    double v;
    /* Both parts are exact doubles, so the quotient is rounded once. */
    if (read_plain(text, &negative, &digits, &places) && digits <= UINT64_C(1) << 53 &&
        places <= 22) {
        v = (double)digits / powers_of_ten[places];
        v = negative ? -v : v;
    } else if (!str_to_f64(text, &v)) {
        return bad_value(d, node, text);
    }
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return text_append_i64(b, bits, d->err);
}

static tarn_code put_float(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str text) {
    bool negative;
    uint64_t digits;
    int32_t places;
    float v;
    if (read_plain(text, &negative, &digits, &places) && digits <= UINT64_C(1) << 24 &&
        places <= 10) {
        v = (float)digits / (float)powers_of_ten[places];
        v = negative ? -v : v;
    } else if (!str_to_f32(text, &v)) {
        double wide;
        return str_to_f64(text, &wide)
                   ? text_bad(d, node, "%.*s was out of the range of a float", STR_ARG(text))
                   : bad_value(d, node, text);
    }
    int32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return text_append_i32(b, bits, d->err);
}

static tarn_code put_decimal(text_decoder *d, const text_node *node, tarn_builder *b,
                             tarn_str text) {
    bool negative;
    uint64_t digits;
    int32_t places;
    int32_t scale = node->type->scale;
    tarn_int128 v;
    if (read_plain(text, &negative, &digits, &places) && places <= scale && scale - places <= 19) {
        v = (tarn_int128)digits * num_pow10_i128(scale - places);
        if (v >= num_pow10_i128(node->type->precision)) {
            return text_bad(d, node, "%.*s did not fit decimal(%d, %d)", STR_ARG(text),
                            (int)node->type->precision, (int)scale);
        }
        v = negative ? -v : v;
    } else {
        tarn_error why = TARN_ERROR_INIT;
        if (value_parse_decimal(text, node->type->precision, scale, &v, &why) != TARN_OK) {
            return text_bad(d, node, "%s", why.message);
        }
    }
    return builder_fixed(b, &v, d->err);
}

static tarn_code put_integer(text_decoder *d, const text_node *node, tarn_builder *b,
                             tarn_str text) {
    int64_t v;
    if (!str_to_i64(text, &v)) {
        return bad_value(d, node, text);
    }
    if (node->kind == TARN_LONG) {
        return text_append_i64(b, v, d->err);
    }
    if (v < INT32_MIN || v > INT32_MAX) {
        return text_bad(d, node, "%lld was out of the range of an int", (long long)v);
    }
    return text_append_i32(b, (int32_t)v, d->err);
}

/* ---- dates and times ---- */

/* Whether the bytes of v that mask covers with 0xFF are all digits. */
static inline bool all_digits(uint64_t v, uint64_t mask) {
    uint64_t from_zero = v ^ (TEXT_ONES * '0');
    return (((from_zero + TEXT_ONES * 0x76) | from_zero) & TEXT_HIGHS & mask) == 0;
}

static inline int32_t two_digits(const char *p) {
    return (p[0] - '0') * 10 + (p[1] - '0');
}

/* "YYYY-MM-DD" at p. The last one is remembered: dates repeat. */
static bool read_date(text_decoder *d, const char *p, int32_t *days) {
    uint64_t head = num_load_u64(p);
    uint64_t tail = num_load_u64(p + 2);
    if (head == d->date_text[0] && tail == d->date_text[1]) {
        *days = d->date_text_days;
        return true;
    }
    if (!time_parse_date(str_make(p, 10), days)) {
        return false;
    }
    d->date_text[0] = head;
    d->date_text[1] = tail;
    d->date_text_days = *days;
    return true;
}

/* "HH:MM:SS" at p. */
static bool read_clock(const char *p, int64_t *seconds) {
    uint64_t v = num_load_u64(p);
    if (p[2] != ':' || p[5] != ':' || !all_digits(v, UINT64_C(0xFFFF00FFFF00FFFF))) {
        return false;
    }
    int32_t hour = two_digits(p);
    int32_t minute = two_digits(p + 3);
    int32_t second = two_digits(p + 6);
    *seconds = hour * 3600 + minute * 60 + second;
    return hour < 24 && minute < 60 && second < 60;
}

static const int32_t pow10_small[] = {1,      10,      100,      1000,      10000,
                                      100000, 1000000, 10000000, 100000000, 1000000000};

/* "YYYY-MM-DDTHH:MM:SS[.f][Z|+00:00]" with fractions no finer than the unit; false sends the text
 * to the full parser. */
static bool read_timestamp(text_decoder *d, tarn_str text, int sub_digits, bool *zoned,
                           int64_t *out) {
    const char *p = text.data;
    const char *end = p + text.len;
    int32_t days;
    int64_t seconds;
    if (text.len < 19 || (p[10] != 'T' && p[10] != ' ') || !text_is_digit(p[0]) ||
        !read_date(d, p, &days) || !read_clock(p + 11, &seconds)) {
        return false;
    }
    int64_t fraction = 0;
    p += 19;
    if (p < end && *p == '.') {
        const char *start = ++p;
        while (p < end && text_is_digit(*p) && p - start < sub_digits) {
            fraction = fraction * 10 + (*p++ - '0');
        }
        if (p == start) {
            return false;
        }
        fraction *= pow10_small[sub_digits - (p - start)];
    }
    tarn_str rest = str_make(p, (size_t)(end - p));
    *zoned = rest.len > 0;
    if (rest.len > 0 && !str_eq(rest, STR("Z")) && !str_eq(rest, STR("+00:00"))) {
        return false;
    }
    int64_t whole = (int64_t)days * 86400 + seconds;
    return num_mul_i64(whole, pow10_small[sub_digits], &whole) && num_add_i64(whole, fraction, out);
}

/* A zone may lack in the text where the type has one (it is UTC then), not the other way round,
 * since dropping it would move the value. A date alone is its midnight. */
static tarn_code put_timestamp(text_decoder *d, const text_node *node, tarn_builder *b,
                               tarn_str text) {
    bool nanos = node->kind == TARN_TIMESTAMP_NS || node->kind == TARN_TIMESTAMPTZ_NS;
    bool wants_zone = node->kind == TARN_TIMESTAMPTZ || node->kind == TARN_TIMESTAMPTZ_NS;
    int sub_digits = nanos ? 9 : 6;
    bool zoned = false;
    int64_t v;
    int32_t days;
    if (!read_timestamp(d, text, sub_digits, &zoned, &v) &&
        !time_parse_timestamp(text, sub_digits, &zoned, &v)) {
        int64_t per_day = nanos ? TIME_US_PER_DAY * 1000 : TIME_US_PER_DAY;
        if (!time_parse_date(text, &days) || !num_mul_i64(days, per_day, &v)) {
            return bad_value(d, node, text);
        }
        zoned = false;
    }
    if (zoned && !wants_zone) {
        return text_bad(d, node, "\"%.*s\" has a zone offset, which a %s does not keep",
                        STR_ARG(text), type_kind_name(node->kind));
    }
    return text_append_i64(b, v, d->err);
}

static tarn_code put_date(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str text) {
    int32_t days;
    bool good = text.len == 10 ? read_date(d, text.data, &days) : time_parse_date(text, &days);
    return good ? text_append_i32(b, days, d->err) : bad_value(d, node, text);
}

static tarn_code put_time(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str text) {
    int64_t us;
    return time_parse_time(text, &us) ? text_append_i64(b, us, d->err) : bad_value(d, node, text);
}

/* ---- bytes ---- */

/* Decoded right into the builder, and taken back if it is no hex. */
static tarn_code put_hex(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str text) {
    tarn_code code = TARN_OK;
    size_t len = text.len / 2;
    bool fixed = node->kind == TARN_FIXED;
    if (text.len % 2 != 0) {
        return bad_value(d, node, text);
    }
    if (fixed && len != (size_t)node->type->length) {
        return text_bad(d, node, "%zu bytes were given and not the %d of fixed[%d]", len,
                        (int)node->type->length, (int)node->type->length);
    }
    TRY(text_room(b, d->err));
    if (!fixed) {
        TRY(builder_reserve_bytes(b, len > 0 ? len : 1, d->err)); /* so that there are bytes */
    }
    uint8_t *to = fixed ? b->values + (size_t)b->length * len : b->bytes + b->bytes_len;
    for (size_t i = 0; i < len; i++) {
        int high = str_hex_digit(text.data[2 * i]);
        int low = str_hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return bad_value(d, node, text);
        }
        to[i] = (uint8_t)(high * 16 + low);
    }
    b->length++;
    if (!fixed) {
        b->bytes_len += len;
        b->offsets[b->length] = (int32_t)b->bytes_len;
    }
done:
    return code;
}

static tarn_code put_uuid(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str text) {
    uint8_t uuid[16];
    return value_parse_uuid(text, uuid) ? builder_fixed(b, uuid, d->err) : bad_value(d, node, text);
}

static tarn_code put_string(text_decoder *d, const text_node *node, tarn_builder *b,
                            tarn_str text) {
    if (!text_is_ascii(text.data, text.len) && !str_utf8_valid(text)) {
        return text_bad(d, node, "a string was not valid UTF-8");
    }
    return text_append_bytes(b, text.data, text.len, d->err);
}

tarn_code text_put_text(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str text) {
    bool truth;
    switch ((int)node->kind) {
    case TARN_STRING:
        return put_string(d, node, b, text);
    case TARN_INT:
    case TARN_LONG:
        return put_integer(d, node, b, text);
    case TARN_DOUBLE:
        return put_double(d, node, b, text);
    case TARN_FLOAT:
        return put_float(d, node, b, text);
    case TARN_DECIMAL:
        return put_decimal(d, node, b, text);
    case TARN_BOOLEAN:
        return str_to_bool(text, &truth) ? builder_bool(b, truth, d->err)
                                         : bad_value(d, node, text);
    case TARN_DATE:
        return put_date(d, node, b, text);
    case TARN_TIME:
        return put_time(d, node, b, text);
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return put_timestamp(d, node, b, text);
    case TARN_UUID:
        return put_uuid(d, node, b, text);
    case TARN_FIXED:
    case TARN_BINARY:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
        return put_hex(d, node, b, text);
    default:
        return text_bad(d, node, "a value was given to a column of type %s",
                        type_kind_name(node->kind));
    }
}
