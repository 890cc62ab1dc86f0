/* format/parquet/thrift.c - see thrift.h. The wire: a struct is a run of fields, each a byte of id
 * delta and wire type (the id follows as a varint when the delta is 0), up to a zero byte. */
#include "format/parquet/thrift.h"

#include "base/num.h"

enum {
    WIRE_STOP = 0,
    WIRE_TRUE = 1,
    WIRE_FALSE = 2,
    WIRE_BYTE = 3,
    WIRE_I16 = 4,
    WIRE_I32 = 5,
    WIRE_I64 = 6,
    WIRE_DOUBLE = 7,
    WIRE_BINARY = 8,
    WIRE_LIST = 9,
    WIRE_SET = 10,
    WIRE_MAP = 11,
    WIRE_STRUCT = 12
};

/* Nothing in parquet.thrift is nested deeper than 8; what is skipped may be new, but not endless.
 */
#define MAX_SKIP_DEPTH 32

typedef struct decoder {
    tarn_arena *arena;
    const uint8_t *start, *at, *end;
    const char *what;
    tarn_error *err;
} decoder;

static tarn_code bad(decoder *d, const char *problem, const char *name) {
    return err_set(d->err, TARN_CORRUPT, "%s: %s (%s at byte %zu)", d->what, problem, name,
                   (size_t)(d->at - d->start));
}

static tarn_code skip_value(decoder *d, int wire, bool in_list, int depth);

static tarn_code skip_bytes(decoder *d, uint64_t n) {
    if (n > (uint64_t)(d->end - d->at)) {
        return bad(d, "ended within a value", "unknown field");
    }
    d->at += n;
    return TARN_OK;
}

/* Reads the header of a field; *wire is WIRE_STOP at the end of the struct. */
static tarn_code get_field_header(decoder *d, int64_t *id, int *wire, const char *name) {
    if (d->at >= d->end) {
        return bad(d, "ended within a struct", name);
    }
    uint8_t byte = *d->at++;
    *wire = byte & 15;
    if (*wire == WIRE_STOP) {
        return TARN_OK;
    }
    if (byte >> 4 != 0) {
        *id += byte >> 4;
    } else if (!num_get_varint(&d->at, d->end, id)) {
        return bad(d, "had a bad field id", name);
    }
    return *id < -32768 || *id > 32767 ? bad(d, "had a field id out of range", name) : TARN_OK;
}

static tarn_code get_list_header(decoder *d, uint64_t *count, int *wire, const char *name) {
    if (d->at >= d->end) {
        return bad(d, "ended within a list", name);
    }
    uint8_t byte = *d->at++;
    *wire = byte & 15;
    *count = byte >> 4;
    if (*count == 15 && !num_get_uvarint(&d->at, d->end, count)) {
        return bad(d, "had a bad list length", name);
    }
    /* Every item takes a byte at least. */
    return *count > (uint64_t)(d->end - d->at) ? bad(d, "had a list longer than its bytes", name)
                                               : TARN_OK;
}

static tarn_code skip_struct(decoder *d, int depth) {
    int64_t id = 0;
    for (;;) {
        int wire = 0;
        tarn_code code = get_field_header(d, &id, &wire, "unknown field");
        if (code != TARN_OK || wire == WIRE_STOP) {
            return code;
        }
        code = skip_value(d, wire, false, depth + 1);
        if (code != TARN_OK) {
            return code;
        }
    }
}

static tarn_code skip_items(decoder *d, uint64_t count, int wire, int depth) {
    for (uint64_t i = 0; i < count; i++) {
        tarn_code code = skip_value(d, wire, true, depth + 1);
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static tarn_code skip_map(decoder *d, int depth) {
    uint64_t count = 0;
    if (!num_get_uvarint(&d->at, d->end, &count)) {
        return bad(d, "had a bad map length", "unknown field");
    }
    if (count == 0) {
        return TARN_OK;
    }
    if (d->at >= d->end || count > (uint64_t)(d->end - d->at)) {
        return bad(d, "had a map longer than its bytes", "unknown field");
    }
    uint8_t kinds = *d->at++;
    for (uint64_t i = 0; i < count; i++) {
        tarn_code code = skip_value(d, kinds >> 4, true, depth + 1);
        if (code == TARN_OK) {
            code = skip_value(d, kinds & 15, true, depth + 1);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static tarn_code skip_value(decoder *d, int wire, bool in_list, int depth) {
    uint64_t n = 0;
    int item = 0;
    if (depth > MAX_SKIP_DEPTH) {
        return bad(d, "was nested too deeply", "unknown field");
    }
    switch (wire) {
    case WIRE_TRUE:
    case WIRE_FALSE:
        return in_list ? skip_bytes(d, 1) : TARN_OK;
    case WIRE_BYTE:
        return skip_bytes(d, 1);
    case WIRE_I16:
    case WIRE_I32:
    case WIRE_I64:
        return num_get_uvarint(&d->at, d->end, &n) ? TARN_OK
                                                   : bad(d, "had a bad number", "unknown field");
    case WIRE_DOUBLE:
        return skip_bytes(d, 8);
    case WIRE_BINARY:
        return num_get_uvarint(&d->at, d->end, &n) ? skip_bytes(d, n)
                                                   : bad(d, "had a bad length", "unknown field");
    case WIRE_LIST:
    case WIRE_SET: {
        tarn_code code = get_list_header(d, &n, &item, "unknown field");
        return code == TARN_OK ? skip_items(d, n, item, depth) : code;
    }
    case WIRE_MAP:
        return skip_map(d, depth);
    case WIRE_STRUCT:
        return skip_struct(d, depth);
    default:
        return bad(d, "had an unknown wire type", "unknown field");
    }
}

static tarn_code decode_struct(decoder *d, const thrift_struct *type, void *out);

static tarn_code get_int(decoder *d, int wire, int64_t min, int64_t max, int64_t *out,
                         const char *name) {
    if (wire == WIRE_BYTE) {
        if (d->at >= d->end) {
            return bad(d, "ended within a number", name);
        }
        *out = (int8_t)*d->at++;
    } else if (wire != WIRE_I16 && wire != WIRE_I32 && wire != WIRE_I64) {
        return bad(d, "had a field of another kind", name);
    } else if (!num_get_varint(&d->at, d->end, out)) {
        return bad(d, "had a bad number", name);
    }
    return *out < min || *out > max ? bad(d, "had a number out of range", name) : TARN_OK;
}

static tarn_code get_binary(decoder *d, int wire, tarn_str *out, const char *name) {
    uint64_t len = 0;
    if (wire != WIRE_BINARY) {
        return bad(d, "had a field of another kind", name);
    }
    if (!num_get_uvarint(&d->at, d->end, &len) || len > (uint64_t)(d->end - d->at)) {
        return bad(d, "had a length beyond its end", name);
    }
    *out = str_make(d->at, (size_t)len);
    d->at += len;
    return TARN_OK;
}

static tarn_code get_bool(decoder *d, int wire, bool in_list, bool *out, const char *name) {
    if (wire != WIRE_TRUE && wire != WIRE_FALSE) {
        return bad(d, "had a field of another kind", name);
    }
    if (in_list) {
        if (d->at >= d->end) {
            return bad(d, "ended within a list", name);
        }
        wire = *d->at++;
    }
    *out = wire == WIRE_TRUE;
    return TARN_OK;
}

/* One value of a kind that is not a list, into dst. */
static tarn_code decode_value(decoder *d, int kind, const thrift_struct *type, int wire,
                              bool in_list, void *dst, const char *name) {
    int64_t number = 0;
    tarn_code code = TARN_OK;
    switch ((thrift_kind)kind) {
    case THRIFT_BOOL:
        return get_bool(d, wire, in_list, dst, name);
    case THRIFT_I8:
        code = get_int(d, wire, INT8_MIN, INT8_MAX, &number, name);
        *(int8_t *)dst = (int8_t)number;
        return code;
    case THRIFT_I16:
        code = get_int(d, wire, INT16_MIN, INT16_MAX, &number, name);
        *(int16_t *)dst = (int16_t)number;
        return code;
    case THRIFT_I32:
        code = get_int(d, wire, INT32_MIN, INT32_MAX, &number, name);
        *(int32_t *)dst = (int32_t)number;
        return code;
    case THRIFT_I64:
        code = get_int(d, wire, INT64_MIN, INT64_MAX, &number, name);
        *(int64_t *)dst = number;
        return code;
    case THRIFT_DOUBLE:
        if (wire != WIRE_DOUBLE || d->end - d->at < 8) {
            return bad(d, "had a bad double", name);
        }
        memcpy(dst, d->at, 8);
        d->at += 8;
        return TARN_OK;
    case THRIFT_BINARY:
        return get_binary(d, wire, dst, name);
    case THRIFT_STRUCT:
        return wire == WIRE_STRUCT ? decode_struct(d, type, dst)
                                   : bad(d, "had a field of another kind", name);
    case THRIFT_EMPTY:
    case THRIFT_SEEN:
    case THRIFT_LIST:
        break;
    }
    return skip_value(d, wire, in_list, 0);
}

static size_t item_size(const thrift_field *field) {
    switch ((thrift_kind)field->item) {
    case THRIFT_BOOL:
        return sizeof(bool);
    case THRIFT_I8:
        return 1;
    case THRIFT_I16:
        return 2;
    case THRIFT_I32:
        return 4;
    case THRIFT_I64:
    case THRIFT_DOUBLE:
        return 8;
    case THRIFT_BINARY:
        return sizeof(tarn_str);
    case THRIFT_STRUCT:
        return field->type->size;
    case THRIFT_LIST:
    case THRIFT_EMPTY:
    case THRIFT_SEEN:
        break;
    }
    return 0; /* no description has such lists */
}

/* Memory follows what was really decoded: a list that only claims many items gets few. */
static tarn_code decode_list(decoder *d, const thrift_field *field, int wire, void *object) {
    uint64_t count = 0;
    int item_wire = 0;
    if (wire != WIRE_LIST && wire != WIRE_SET) {
        return bad(d, "had a field of another kind", field->name);
    }
    tarn_code code = get_list_header(d, &count, &item_wire, field->name);
    if (code != TARN_OK) {
        return code;
    }
    if (count > INT32_MAX) {
        return bad(d, "had a list too long", field->name);
    }
    size_t size = item_size(field);
    size_t cap = count < 64 ? (size_t)count : 64;
    uint8_t *items = arena_alloc(d->arena, cap * size);
    for (size_t i = 0; i < count && items != NULL; i++) {
        if (i == cap) {
            size_t more = cap * 2 < count ? cap * 2 : (size_t)count;
            items = arena_grow(d->arena, items, cap * size, more * size);
            cap = more;
            if (items == NULL) {
                break;
            }
        }
        code = decode_value(d, field->item, field->type, item_wire, true, items + i * size,
                            field->name);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (items == NULL) {
        return err_nomem(d->err);
    }
    const int32_t n = (int32_t)count;
    memcpy((uint8_t *)object + field->offset, &items, sizeof items);
    memcpy((uint8_t *)object + field->counter, &n, sizeof n);
    return TARN_OK;
}

static const thrift_field *find_field(const thrift_struct *type, int64_t id) {
    for (size_t i = 0; i < type->n_fields; i++) {
        if (type->fields[i].id == id) {
            return &type->fields[i];
        }
    }
    return NULL;
}

static tarn_code decode_struct(decoder *d, const thrift_struct *type, void *out) {
    uint32_t has = 0;
    int64_t id = 0;
    memset(out, 0, type->size);
    for (;;) {
        int wire = 0;
        tarn_code code = get_field_header(d, &id, &wire, type->name);
        if (code != TARN_OK) {
            return code;
        }
        if (wire == WIRE_STOP) {
            break;
        }
        const thrift_field *field = find_field(type, id);
        if (field == NULL) {
            code = skip_value(d, wire, false, 0);
        } else if (field->kind == THRIFT_LIST) {
            code = decode_list(d, field, wire, out);
        } else {
            code = decode_value(d, field->kind, field->type, wire, false,
                                (uint8_t *)out + field->offset, field->name);
        }
        if (code != TARN_OK) {
            return code;
        }
        has |= field != NULL ? THRIFT_BIT(field->id) : 0;
    }
    for (size_t i = 0; i < type->n_fields; i++) {
        if (type->fields[i].required && (has & THRIFT_BIT(type->fields[i].id)) == 0) {
            return err_set(d->err, TARN_CORRUPT, "%s: %s lacked its field %s (byte %zu)", d->what,
                           type->name, type->fields[i].name, (size_t)(d->at - d->start));
        }
    }
    memcpy(out, &has, sizeof has);
    return TARN_OK;
}

tarn_code thrift_decode(tarn_arena *arena, const thrift_struct *type, tarn_str data,
                        const char *what, void *out, size_t *used, tarn_error *err) {
    const uint8_t *start = (const uint8_t *)data.data;
    if (data.len == 0) {
        return err_set(err, TARN_CORRUPT, "%s: there were no bytes", what);
    }
    decoder d = {arena, start, start, start + data.len, what, err};
    tarn_code code = decode_struct(&d, type, out);
    if (code == TARN_OK && used != NULL) {
        *used = (size_t)(d.at - d.start);
    }
    return code;
}

/* ---- writing ---- */

typedef struct encoder {
    tarn_buf *out;
    tarn_error *err;
} encoder;

static tarn_code encode_struct(encoder *e, const thrift_struct *type, const void *object);

static tarn_code put_byte(encoder *e, int byte) {
    return buf_append_char(e->out, (char)(uint8_t)byte, e->err);
}

static tarn_code put_varint(encoder *e, int64_t v) {
    uint8_t bytes[10];
    return buf_append(e->out, bytes, num_put_varint(bytes, v), e->err);
}

static tarn_code put_binary(encoder *e, tarn_str s) {
    uint8_t bytes[10];
    tarn_code code = buf_append(e->out, bytes, num_put_uvarint(bytes, s.len), e->err);
    return code == TARN_OK ? buf_append(e->out, s.data, s.len, e->err) : code;
}

static int wire_of(int kind) {
    static const uint8_t wires[] = {
        [THRIFT_BOOL] = WIRE_TRUE,     [THRIFT_I8] = WIRE_BYTE,       [THRIFT_I16] = WIRE_I16,
        [THRIFT_I32] = WIRE_I32,       [THRIFT_I64] = WIRE_I64,       [THRIFT_DOUBLE] = WIRE_DOUBLE,
        [THRIFT_BINARY] = WIRE_BINARY, [THRIFT_STRUCT] = WIRE_STRUCT, [THRIFT_LIST] = WIRE_LIST,
        [THRIFT_EMPTY] = WIRE_STRUCT,
    };
    return wires[kind];
}

static tarn_code encode_value(encoder *e, int kind, const thrift_struct *type, const void *src) {
    switch ((thrift_kind)kind) {
    case THRIFT_BOOL: /* only in lists: a field's value is its wire type */
        return put_byte(e, *(const bool *)src ? WIRE_TRUE : WIRE_FALSE);
    case THRIFT_I8:
        return put_byte(e, *(const int8_t *)src);
    case THRIFT_I16:
        return put_varint(e, *(const int16_t *)src);
    case THRIFT_I32:
        return put_varint(e, *(const int32_t *)src);
    case THRIFT_I64:
        return put_varint(e, *(const int64_t *)src);
    case THRIFT_DOUBLE:
        return buf_append(e->out, src, 8, e->err);
    case THRIFT_BINARY:
        return put_binary(e, *(const tarn_str *)src);
    case THRIFT_STRUCT:
        return encode_struct(e, type, src);
    case THRIFT_EMPTY:
        return put_byte(e, WIRE_STOP);
    case THRIFT_LIST: /* see encode_struct: neither gets here */
    case THRIFT_SEEN:
        break;
    }
    return err_set(e->err, TARN_INTERNAL, "a thrift field had kind %d", kind);
}

static tarn_code encode_list(encoder *e, const thrift_field *field, const void *object) {
    const uint8_t *items = NULL;
    int32_t count = 0;
    memcpy(&items, (const uint8_t *)object + field->offset, sizeof items);
    memcpy(&count, (const uint8_t *)object + field->counter, sizeof count);
    int wire = wire_of(field->item);
    tarn_code code = put_byte(e, (count < 15 ? count << 4 : 0xf0) | wire);
    if (code == TARN_OK && count >= 15) {
        uint8_t bytes[10];
        code = buf_append(e->out, bytes, num_put_uvarint(bytes, (uint64_t)count), e->err);
    }
    size_t size = item_size(field);
    for (int32_t i = 0; i < count && code == TARN_OK; i++) {
        code = encode_value(e, field->item, field->type, items + (size_t)i * size);
    }
    return code;
}

static tarn_code encode_struct(encoder *e, const thrift_struct *type, const void *object) {
    uint32_t has = 0;
    uint8_t last = 0;
    memcpy(&has, object, sizeof has);
    for (size_t i = 0; i < type->n_fields; i++) {
        const thrift_field *field = &type->fields[i];
        const uint8_t *src = (const uint8_t *)object + field->offset;
        if (field->kind == THRIFT_SEEN ||
            (!field->required && (has & THRIFT_BIT(field->id)) == 0)) {
            continue;
        }
        int wire = wire_of(field->kind);
        if (field->kind == THRIFT_BOOL && !*(const bool *)src) {
            wire = WIRE_FALSE;
        }
        tarn_code code = TARN_OK;
        if (field->id - last <= 15) {
            code = put_byte(e, (field->id - last) << 4 | wire);
        } else {
            code = put_byte(e, wire);
            if (code == TARN_OK) {
                code = put_varint(e, field->id);
            }
        }
        last = field->id;
        if (code == TARN_OK && field->kind == THRIFT_LIST) {
            code = encode_list(e, field, object);
        } else if (code == TARN_OK && field->kind != THRIFT_BOOL) {
            code = encode_value(e, field->kind, field->type, src);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    return put_byte(e, WIRE_STOP);
}

tarn_code thrift_encode(const thrift_struct *type, const void *object, tarn_buf *out,
                        tarn_error *err) {
    encoder e = {out, err};
    return encode_struct(&e, type, object);
}
