/* format/text/text_format.c - values as text, straight into a buffer: JSON as the spec's Appendix D
 * has it, or the same without its quotes. */
#include "format/text/text_write_int.h"

#include "base/time.h"
#include "format/text/text_scan.h"
#include "format/variant/variant.h"
#include "table/value.h"

static tarn_str part_name(const tarn_type *type, int32_t i) {
    if (type->kind == TARN_MAP) {
        return i == 0 ? STR("keys") : STR("values");
    }
    return type->fields[i].name;
}

static tarn_code name_member(text_column *column, tarn_arena *arena, tarn_str name, bool first,
                             tarn_error *err) {
    tarn_buf member;
    buf_init(&member, arena->env, 0);
    tarn_code code = TARN_OK;
    TRY(buf_append_str(&member, first ? STR("\"") : STR(",\""), err));
    TRY(json_escape(&member, name, err));
    TRY(buf_append_str(&member, STR("\":"), err));
    column->name = name;
    column->member = arena_str(arena, buf_str(&member));
    code = column->member.data != NULL ? TARN_OK : err_nomem(err);
done:
    buf_release(&member);
    return code;
}

tarn_code text_column_init(text_column *column, tarn_arena *arena, const tarn_type *type,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    bool variant = type->kind == TARN_VARIANT;
    int32_t n = variant ? 2 : type_is_nested(type) ? type->n_fields : 0;
    column->type = type;
    column->children = ARENA_ARRAY(arena, text_column, (size_t)n + 1);
    if (column->children == NULL) {
        return err_nomem(err);
    }
    column->n_children = n;
    for (int32_t i = 0; i < n; i++) {
        const tarn_type *part = variant ? type_primitive(TARN_BINARY) : type->fields[i].type;
        TRY(text_column_init(&column->children[i], arena, part, err));
        TRY(variant ? TARN_OK
                    : name_member(&column->children[i], arena, part_name(type, i), i == 0, err));
    }
done:
    return code;
}

static void bind_children(text_column *column) {
    for (int32_t i = 0; i < column->n_children; i++) {
        view_child(&column->view, i, &column->children[i].view);
        bind_children(&column->children[i]);
    }
}

void text_column_bind(text_column *root, const tarn_batch *batch) {
    for (int32_t i = 0; i < root->n_children; i++) {
        view_column(batch, i, &root->children[i].view);
        bind_children(&root->children[i]);
    }
}

bool text_is_number(const tarn_type *type) {
    tarn_kind kind = type->kind;
    return kind == TARN_INT || kind == TARN_LONG || kind == TARN_FLOAT || kind == TARN_DOUBLE ||
           kind == TARN_DECIMAL;
}

/* ---- short texts ---- */

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

static size_t format_integer(int64_t v, char *out) {
    char text[24];
    char *p = text + sizeof text;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    while (u >= 100) {
        p -= 2;
        memcpy(p, digit_pairs + 2 * (u % 100), 2);
        u /= 100;
    }
    if (u >= 10) {
        p -= 2;
        memcpy(p, digit_pairs + 2 * u, 2);
    } else {
        *--p = (char)('0' + u);
    }
    if (v < 0) {
        *--p = '-';
    }
    size_t len = (size_t)(text + sizeof text - p);
    memcpy(out, p, len);
    return len;
}

static size_t format_literal(const char *text, char *out) {
    size_t len = strlen(text);
    memcpy(out, text, len);
    return len;
}

static int32_t load_i32(const tarn_view *v, int64_t i) {
    return num_load_i32((const uint8_t *)v->values + (size_t)i * 4);
}

static int64_t load_i64(const tarn_view *v, int64_t i) {
    return num_load_i64((const uint8_t *)v->values + (size_t)i * 8);
}

/* Text of values whose length is bounded; 0 for other kinds. */
static size_t format_short(const tarn_view *v, int64_t i, char out[TEXT_VALUE_BYTES]) {
    float f32;
    double f64;
    char uuid[37];
    const uint8_t *values = v->values;
    switch ((int)v->type->kind) {
    case TARN_BOOLEAN:
        return format_literal(view_bool(v, i) ? "true" : "false", out);
    case TARN_INT:
        return format_integer(load_i32(v, i), out);
    case TARN_LONG:
        return format_integer(load_i64(v, i), out);
    case TARN_FLOAT:
        memcpy(&f32, values + (size_t)i * 4, 4);
        return str_from_f32(f32, out);
    case TARN_DOUBLE:
        memcpy(&f64, values + (size_t)i * 8, 8);
        return str_from_f64(f64, out);
    case TARN_DECIMAL:
        return value_format_decimal(num_load_i128(values + (size_t)i * 16), v->type->scale, out);
    case TARN_DATE:
        return time_format_date(load_i32(v, i), out);
    case TARN_TIME:
        return time_format_time(load_i64(v, i), out);
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
        return time_format_timestamp(load_i64(v, i), 6, v->type->kind == TARN_TIMESTAMPTZ, out);
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return time_format_timestamp(load_i64(v, i), 9, v->type->kind == TARN_TIMESTAMPTZ_NS, out);
    case TARN_UUID:
        value_format_uuid(values + (size_t)i * 16, uuid);
        memcpy(out, uuid, 36);
        return 36;
    default:
        return 0;
    }
}

/* ---- long texts ---- */

static tarn_code put_hex(tarn_str bytes, tarn_buf *out, tarn_error *err) {
    static const char digits[] = "0123456789abcdef";
    tarn_code code = buf_reserve(out, bytes.len * 2, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *to = out->data + out->len;
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t byte = (uint8_t)bytes.data[i];
        *to++ = (uint8_t)digits[byte >> 4];
        *to++ = (uint8_t)digits[byte & 15];
    }
    out->len += bytes.len * 2;
    return TARN_OK;
}

static tarn_str bytes_at(const tarn_view *v, int64_t i) {
    if (v->type->kind == TARN_FIXED) {
        size_t width = (size_t)v->type->length;
        return str_make((const uint8_t *)v->values + (size_t)i * width, width);
    }
    return view_bytes(v, i);
}

/* Bytes at the front of s that JSON takes as they are. Does not read past s. */
static size_t plain_length(tarn_str s) {
    size_t i = 0;
    for (; i + 8 <= s.len; i += 8) {
        uint64_t v = num_load_u64(s.data + i);
        uint64_t quote = v ^ (TEXT_ONES * '"');
        uint64_t slash = v ^ (TEXT_ONES * '\\');
        uint64_t hit = (quote - TEXT_ONES) & ~quote;
        hit |= (slash - TEXT_ONES) & ~slash;
        hit |= (v - TEXT_ONES * 0x20) & ~v;
        hit &= TEXT_HIGHS;
        if (hit != 0) {
            return i + (size_t)(__builtin_ctzll(hit) >> 3);
        }
    }
    for (; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c < 0x20 || c == '"' || c == '\\') {
            return i;
        }
    }
    return s.len;
}

static tarn_code put_json_string(tarn_str s, tarn_buf *out, tarn_error *err) {
    tarn_code code = buf_reserve(out, s.len + 2, err);
    if (code != TARN_OK) {
        return code;
    }
    size_t plain = plain_length(s);
    uint8_t *to = out->data + out->len;
    *to++ = '"';
    if (plain > 0) {
        memcpy(to, s.data, plain);
    }
    out->len += plain + 1;
    if (plain < s.len) {
        code = json_escape(out, str_from(s, plain), err);
    }
    return code == TARN_OK ? buf_append_char(out, '"', err) : code;
}

/* ---- JSON ---- */

static bool is_bare(const tarn_view *v, size_t len, const char *text) {
    switch ((int)v->type->kind) {
    case TARN_BOOLEAN:
    case TARN_INT:
    case TARN_LONG:
        return true;
    case TARN_FLOAT:
    case TARN_DOUBLE:
        return text_is_digit(text[len - 1]); /* not NaN, not Infinity */
    default:
        return false;
    }
}

static tarn_code put_json_items(const text_column *item, int32_t start, int32_t end, tarn_buf *out,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(buf_append_char(out, '[', err));
    for (int32_t i = start; i < end; i++) {
        if (i > start) {
            TRY(buf_append_char(out, ',', err));
        }
        TRY(text_put_json(item, i, out, err));
    }
    code = buf_append_char(out, ']', err);
done:
    return code;
}

/* Structs by name; maps as {"keys": [...], "values": [...]}. */
static tarn_code put_json_object(const text_column *column, int64_t i, tarn_buf *out,
                                 tarn_error *err) {
    tarn_code code = TARN_OK;
    bool map = column->type->kind == TARN_MAP;
    TRY(buf_append_char(out, '{', err));
    for (int32_t c = 0; c < column->n_children; c++) {
        TRY(buf_append_str(out, column->children[c].member, err));
        if (map) {
            TRY(put_json_items(&column->children[c], column->view.offsets[i],
                               column->view.offsets[i + 1], out, err));
        } else {
            TRY(text_put_json(&column->children[c], i, out, err));
        }
    }
    code = buf_append_char(out, '}', err);
done:
    return code;
}

static tarn_code put_variant(const text_column *column, int64_t i, tarn_buf *out, tarn_error *err) {
    tarn_code code = variant_to_json(view_bytes(&column->children[0].view, i),
                                     view_bytes(&column->children[1].view, i), out, err);
    return code == TARN_OK ? code : err_add(err, code, "column %.*s", STR_ARG(column->name));
}

tarn_code text_put_json(const text_column *column, int64_t i, tarn_buf *out, tarn_error *err) {
    const tarn_view *v = &column->view;
    if (view_is_null(v, i)) {
        return buf_append_str(out, STR("null"), err);
    }
    tarn_code code = buf_reserve(out, TEXT_VALUE_BYTES + 2, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *to = out->data + out->len;
    size_t len = format_short(v, i, (char *)to + 1);
    if (len > 0) {
        if (is_bare(v, len, (char *)to + 1)) {
            memmove(to, to + 1, len);
            out->len += len;
        } else {
            to[0] = '"';
            to[len + 1] = '"';
            out->len += len + 2;
        }
        return TARN_OK;
    }
    switch ((int)v->type->kind) {
    case TARN_STRING:
        return put_json_string(view_bytes(v, i), out, err);
    case TARN_LIST:
        return put_json_items(&column->children[0], v->offsets[i], v->offsets[i + 1], out, err);
    case TARN_VARIANT:
        return put_variant(column, i, out, err);
    case TARN_STRUCT:
    case TARN_MAP:
        return put_json_object(column, i, out, err);
    default:
        TRY(buf_append_char(out, '"', err));
        TRY(put_hex(bytes_at(v, i), out, err));
        code = buf_append_char(out, '"', err);
    }
done:
    return code;
}

tarn_code text_put_plain(const text_column *column, int64_t i, tarn_buf *out, tarn_error *err) {
    const tarn_view *v = &column->view;
    tarn_code code = buf_reserve(out, TEXT_VALUE_BYTES, err);
    if (code != TARN_OK) {
        return code;
    }
    size_t len = format_short(v, i, (char *)out->data + out->len);
    if (len > 0) {
        out->len += len;
        return TARN_OK;
    }
    if (v->type->kind == TARN_STRING) {
        return buf_append_str(out, view_bytes(v, i), err);
    }
    if (column->n_children > 0 || type_is_nested(v->type)) {
        return text_put_json(column, i, out, err);
    }
    return put_hex(bytes_at(v, i), out, err);
}
