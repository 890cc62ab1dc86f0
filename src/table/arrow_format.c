/* table/arrow_format.c - the format strings of the Arrow C data interface ("Data type description
 * -- format strings"). */
#include "table/arrow_int.h"

static tarn_code bad_format(const struct ArrowSchema *schema, tarn_code code, tarn_error *err) {
    tarn_str name = str_of(schema->name != NULL ? schema->name : "");
    tarn_str format = str_of(schema->format != NULL ? schema->format : "");
    return err_set(err, code, "column %.*s had the Arrow format \"%.*s\", which %s", STR_ARG(name),
                   STR_ARG(format),
                   code == TARN_INVALID ? "was not valid" : "has no type in a table");
}

static arrow_format make_int(int32_t width, bool is_signed) {
    arrow_format f = {.layout = ARROW_INT, .width = width, .is_signed = is_signed};
    return f;
}

static arrow_format make(arrow_layout layout, int32_t width) {
    arrow_format f = {.layout = layout, .width = width};
    return f;
}

static bool read_letter(char letter, arrow_format *out) {
    static const char ints[] = "cCsSiIlL";
    const char *at = strchr(ints, letter);
    if (letter != '\0' && at != NULL) {
        *out = make_int(1 << ((at - ints) / 2), (at - ints) % 2 == 0);
        return true;
    }
    switch (letter) {
    case 'n':
        *out = make(ARROW_NULL, 0);
        return true;
    case 'b':
        *out = make(ARROW_BOOL, 0);
        return true;
    case 'e':
        *out = make(ARROW_FLOAT, 2);
        return true;
    case 'f':
        *out = make(ARROW_FLOAT, 4);
        return true;
    case 'g':
        *out = make(ARROW_FLOAT, 8);
        return true;
    case 'z':
    case 'u':
    case 'Z':
    case 'U':
        *out = make(ARROW_BYTES, letter == 'z' || letter == 'u' ? 4 : 8);
        out->is_text = letter == 'u' || letter == 'U';
        return true;
    default:
        return false;
    }
}

/* d:precision,scale[,bits] */
static bool read_decimal(tarn_str text, arrow_format *out) {
    tarn_str piece;
    int32_t numbers[3] = {0, 0, 128};
    int n = 0;
    while (str_split(&text, ',', &piece)) {
        if (n == 3 || !str_to_i32(piece, &numbers[n])) {
            return false;
        }
        n++;
    }
    if (n < 2 || numbers[0] < 1 || numbers[0] > 76 || numbers[1] < -76 || numbers[1] > 76) {
        return false;
    }
    *out = make(ARROW_DECIMAL, numbers[2] / 8);
    out->precision = numbers[0];
    out->scale = numbers[1];
    return numbers[2] == 32 || numbers[2] == 64 || numbers[2] == 128 || numbers[2] == 256;
}

static int64_t unit_per_second(char unit) {
    switch (unit) {
    case 's':
        return 1;
    case 'm':
        return 1000;
    case 'u':
        return 1000000;
    case 'n':
        return 1000000000;
    default:
        return 0;
    }
}

/* td?, tt?, ts?:zone */
static bool read_time(tarn_str text, arrow_format *out) {
    if (text.len < 3) {
        return false;
    }
    char unit = text.data[2];
    int64_t per_second = unit_per_second(unit);
    if (text.data[1] == 'd' && text.len == 3 && (unit == 'D' || unit == 'm')) {
        *out = make(ARROW_DATE, unit == 'D' ? 4 : 8);
        return true;
    }
    if (text.data[1] == 't' && text.len == 3 && per_second != 0) {
        *out = make(ARROW_TIME, per_second <= 1000 ? 4 : 8);
        out->per_second = per_second;
        return true;
    }
    if (text.data[1] == 's' && text.len > 3 && text.data[3] == ':' && per_second != 0) {
        *out = make(ARROW_TIMESTAMP, 8);
        out->per_second = per_second;
        out->zoned = text.len > 4;
        return true;
    }
    return false;
}

static bool read_nested(tarn_str text, arrow_format *out) {
    static const struct {
        const char *text;
        arrow_layout layout;
        int32_t width;
    } plain[] = {{"+s", ARROW_STRUCT, 0},     {"+l", ARROW_LIST, 4},       {"+L", ARROW_LIST, 8},
                 {"+vl", ARROW_LIST_VIEW, 4}, {"+vL", ARROW_LIST_VIEW, 8}, {"+m", ARROW_MAP, 4},
                 {"+r", ARROW_RUNS, 0}};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (str_is(text, plain[i].text)) {
            *out = make(plain[i].layout, plain[i].width);
            return true;
        }
    }
    *out = make(ARROW_FIXED_LIST, 0);
    return str_starts_with(text, STR("+w:")) && str_to_i32(str_from(text, 3), &out->width) &&
           out->width >= 0;
}

tarn_code arrow_read_format(const struct ArrowSchema *schema, arrow_format *out, tarn_error *err) {
    if (schema->format == NULL) {
        return bad_format(schema, TARN_INVALID, err);
    }
    tarn_str text = str_of(schema->format);
    if (schema->dictionary != NULL) {
        bool good = text.len == 1 && read_letter(text.data[0], out) && out->layout == ARROW_INT;
        out->layout = ARROW_DICTIONARY;
        return good ? TARN_OK : bad_format(schema, TARN_INVALID, err);
    }
    if (text.len == 1 && read_letter(text.data[0], out)) {
        return TARN_OK;
    }
    if (str_is(text, "vz") || str_is(text, "vu")) {
        *out = make(ARROW_VIEWS, 16);
        out->is_text = text.data[1] == 'u';
        return TARN_OK;
    }
    if (str_starts_with(text, STR("d:"))) {
        bool good = read_decimal(str_from(text, 2), out);
        return good ? TARN_OK : bad_format(schema, TARN_INVALID, err);
    }
    if (str_starts_with(text, STR("w:"))) {
        *out = make(ARROW_FIXED, 0);
        bool good = str_to_i32(str_from(text, 2), &out->width) && out->width > 0;
        return good ? TARN_OK : bad_format(schema, TARN_INVALID, err);
    }
    if (str_starts_with(text, STR("t")) && read_time(text, out)) {
        return TARN_OK;
    }
    if (str_starts_with(text, STR("+")) && read_nested(text, out)) {
        return TARN_OK;
    }
    return bad_format(schema, TARN_UNSUPPORTED, err);
}
