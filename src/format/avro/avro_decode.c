/* format/avro/avro_decode.c - runs a decode plan: bytes of one unpacked block into builders.
 *
 * Invariants: 1 nothing is read at or beyond d->end; 2 an array's count is believed only as far as
 * the bytes that are left could hold (items without bytes: AVRO_EMPTY_ITEMS); 3 every op with a
 * builder gives it exactly one value, so that the children of a struct stay level. After a failure
 * the builders hold half a row and are only good for release. */
#include "base/limits.h"
#include "format/avro/avro_op.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static tarn_code run(avro_decoder *d, const avro_op *op, const avro_op *stop, tarn_error *err);

static tarn_code wrong(avro_decoder *d, const uint8_t *p, const char *reason) {
    d->p = p;
    d->reason = reason;
    return TARN_CORRUPT;
}

/* Any length. What a tenth byte holds beyond 64 bits is dropped, as by Avro's own libraries: a file
 * is not refused for one number that its writer let overflow. */
static bool get_long_varint(const uint8_t **pp, const uint8_t *end, int64_t *out) {
    uint64_t u = 0;
    const uint8_t *p = *pp;
    for (unsigned shift = 0; shift < 70 && p < end; shift += 7) {
        uint8_t byte = *p++;
        u |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = num_unzigzag(u);
            *pp = p;
            return true;
        }
    }
    return false;
}

static inline bool get_varint(const uint8_t **pp, const uint8_t *end, int64_t *out) {
    const uint8_t *p = *pp;
    if (LIKELY(end - p >= 2)) {
        if (p[0] < 0x80) {
            *out = num_unzigzag(p[0]);
            *pp = p + 1;
            return true;
        }
        if (p[1] < 0x80) {
            *out = num_unzigzag((uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7);
            *pp = p + 2;
            return true;
        }
    }
    return get_long_varint(pp, end, out);
}

/* A length and the bytes behind it. */
static inline bool get_sized(const uint8_t **pp, const uint8_t *end, tarn_str *out) {
    int64_t len;
    if (UNLIKELY(!get_varint(pp, end, &len) || len < 0 || len > end - *pp)) {
        return false;
    }
    *out = str_make(*pp, (size_t)len);
    *pp += len;
    return true;
}

/* Past n varints, eight bytes at a time: a varint ends where the top bit is clear. NULL at the end.
 */
static const uint8_t *skip_varints(const uint8_t *p, const uint8_t *end, size_t n) {
    const uint64_t tops = UINT64_C(0x8080808080808080);
    while (n > 0 && end - p >= 8) {
        uint64_t ends = ~num_load_u64(p) & tops;
        size_t found = (size_t)(((ends >> 7) * UINT64_C(0x0101010101010101)) >> 56);
        if (found < n) {
            n -= found;
            p += 8;
            continue;
        }
        for (; n > 1; n--) {
            ends &= ends - 1;
        }
        return p + (__builtin_ctzll(ends) / 8) + 1;
    }
    for (; n > 0 && p < end; p++) {
        n -= *p < 0x80;
    }
    return n == 0 ? p : NULL;
}

/* ---- into builders ---- */

static inline tarn_code need_row(tarn_builder *b, tarn_error *err) {
    if (LIKELY(b->length < b->capacity)) {
        return TARN_OK;
    }
    int64_t more = b->length < 256 ? 256 : b->length;
    return builder_reserve(b, more, err);
}

static inline void end_row(tarn_builder *b) {
    if (b->validity != NULL) {
        bit_set(b->validity, b->length);
    }
    b->length++;
}

static inline tarn_code put_i64(tarn_builder *b, int64_t v, tarn_error *err) {
    tarn_code code = need_row(b, err);
    if (LIKELY(code == TARN_OK)) {
        memcpy(b->values + b->length * 8, &v, 8);
        end_row(b);
    }
    return code;
}

static inline tarn_code put_i32(tarn_builder *b, int32_t v, tarn_error *err) {
    tarn_code code = need_row(b, err);
    if (LIKELY(code == TARN_OK)) {
        memcpy(b->values + b->length * 4, &v, 4);
        end_row(b);
    }
    return code;
}

static inline tarn_code put_bytes(tarn_builder *b, tarn_str v, tarn_error *err) {
    tarn_code code = need_row(b, err);
    if (LIKELY(code == TARN_OK) && UNLIKELY(v.len > b->bytes_cap - b->bytes_len)) {
        code = builder_reserve_bytes(b, v.len, err);
    }
    if (UNLIKELY(code != TARN_OK)) {
        return code;
    }
    if (v.len > 0) {
        memcpy(b->bytes + b->bytes_len, v.data, v.len);
    }
    b->bytes_len += v.len;
    b->offsets[b->length + 1] = (int32_t)b->bytes_len;
    end_row(b);
    return TARN_OK;
}

/* The plain text of most columns is settled by its first look. */
static inline bool is_text(tarn_str s) {
    const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t seen = 0;
    size_t i = 0;
    for (; i + 8 <= s.len; i += 8) {
        seen |= num_load_u64(s.data + i);
    }
    for (; i < s.len; i++) {
        seen |= (uint8_t)s.data[i];
    }
    return LIKELY((seen & tops) == 0) || str_utf8_valid(s);
}

static tarn_code put_decimal(avro_decoder *d, const avro_op *op, const uint8_t **pp,
                             tarn_error *err) {
    tarn_str bytes;
    tarn_int128 v;
    uint8_t stored[16];
    if (op->n > 0) {
        if (op->n > (size_t)(d->end - *pp)) {
            return wrong(d, *pp, "a decimal passed the end");
        }
        bytes = str_make(*pp, op->n);
        *pp += op->n;
    } else if (!get_sized(pp, d->end, &bytes)) {
        return wrong(d, *pp, "a decimal's length passed the end");
    }
    if (!num_get_be_i128((const uint8_t *)bytes.data, bytes.len, &v)) {
        return wrong(d, *pp, "a decimal had more than 38 digits");
    }
    num_store_i128(stored, v);
    return builder_fixed(op->b, stored, err);
}

/* Values that are not worth a place in the hot loop. */
static tarn_code run_rare(avro_decoder *d, const avro_op *op, const uint8_t **pp, tarn_error *err) {
    int64_t v = 0;
    tarn_str text;
    uint8_t uuid[16];
    if (op->code == AVRO_OP_NULL) {
        return builder_null(op->b, err);
    }
    if (op->code == AVRO_OP_DECIMAL) {
        return put_decimal(d, op, pp, err);
    }
    if (op->code == AVRO_OP_SCALED) {
        if (!get_varint(pp, d->end, &v) || !num_mul_i64(v, (int64_t)op->n, &v)) {
            return wrong(d, *pp, "a time was out of range");
        }
        return put_i64(op->b, v, err);
    }
    if (op->code == AVRO_OP_ENUM) {
        if (!get_varint(pp, d->end, &v) || v < 0 || v >= op->schema->n) {
            return wrong(d, *pp, "an enum had no such symbol");
        }
        return put_bytes(op->b, op->schema->symbols[v], err);
    }
    if (op->code == AVRO_OP_UUID_TEXT) {
        if (!get_sized(pp, d->end, &text) || !value_parse_uuid(text, uuid)) {
            return wrong(d, *pp, "a uuid's text was not one");
        }
        return builder_fixed(op->b, uuid, err);
    }
    if (*pp >= d->end || **pp > 1) {
        return wrong(d, *pp, "a boolean was neither 0 nor 1");
    }
    return builder_bool(op->b, *(*pp)++ != 0, err);
}

/* Strings, lists and maps whose column had a null before: no need to look at their type. */
static inline tarn_code put_null(tarn_builder *b, tarn_error *err) {
    if (b->offsets == NULL || b->validity == NULL || b->length == b->capacity) {
        return builder_null(b, err);
    }
    b->offsets[b->length + 1] = b->offsets[b->length];
    bit_clear(b->validity, b->length);
    b->length++;
    b->null_count++;
    return TARN_OK;
}

/* ---- nested ---- */

/* The head of the next block of an array or map: its count (0 at the end) and, where the writer
 * gave it, its size in bytes (else -1). */
static tarn_code get_items_head(avro_decoder *d, const avro_op *op, int64_t *count, int64_t *size) {
    *size = -1;
    if (UNLIKELY(!get_varint(&d->p, d->end, count))) {
        return wrong(d, d->p, "an array's count passed the end");
    }
    if (*count < 0) {
        if (*count == INT64_MIN || !get_varint(&d->p, d->end, size) || *size < 0 ||
            *size > d->end - d->p) {
            return wrong(d, d->p, "an array's size passed the end");
        }
        *count = -*count;
    }
    uint64_t left = (uint64_t)(*size >= 0 ? *size : d->end - d->p);
    if (op->min_bytes > 0) {
        if (UNLIKELY((uint64_t)*count > left / op->min_bytes)) {
            return wrong(d, d->p, "an array's count was more than its bytes can hold");
        }
        return TARN_OK;
    }
    d->empty_items += (uint64_t)*count;
    if ((uint64_t)*count > AVRO_EMPTY_ITEMS || d->empty_items > AVRO_EMPTY_ITEMS) {
        return wrong(d, d->p, "arrays held too many items without bytes");
    }
    return TARN_OK;
}

static tarn_code skip_flat(avro_decoder *d, const avro_op *op, int64_t count) {
    const uint8_t *p = d->p;
    const uint8_t *const end = d->end;
    tarn_str bytes;
    if (op->n_sized == 0) {
        /* no overflow: count is at most the bytes that are left, over n */
        p = skip_varints(p, end, (size_t)count * op->n);
        count = 0;
    }
    for (; count > 0; count--) {
        if (op->n == 1 && LIKELY(p < end) && *p < 0x80) {
            p++;
        } else if (op->n > 0) {
            p = skip_varints(p, end, op->n);
        }
        for (size_t i = op->n_sized; i > 0 && p != NULL; i--) {
            p = get_sized(&p, end, &bytes) ? p : NULL;
        }
        if (UNLIKELY(p == NULL)) {
            break;
        }
    }
    if (UNLIKELY(p == NULL)) {
        return wrong(d, d->p, "an array passed the end");
    }
    d->p = p;
    return TARN_OK;
}

static tarn_code skip_items(avro_decoder *d, const avro_op *op, tarn_error *err) {
    for (;;) {
        int64_t count;
        int64_t size;
        tarn_code code = get_items_head(d, op, &count, &size);
        if (code != TARN_OK || count == 0) {
            return code;
        }
        if (size >= 0) {
            d->p += size;
        } else if (op->flat) {
            code = skip_flat(d, op, count);
        } else {
            for (; count > 0 && code == TARN_OK; count--) {
                code = run(d, op + 1, op + op->span, err);
            }
        }
        if (code != TARN_OK) {
            return code;
        }
    }
}

static tarn_code read_items(avro_decoder *d, const avro_op *op, tarn_error *err) {
    for (;;) {
        int64_t count;
        int64_t size;
        tarn_code code = get_items_head(d, op, &count, &size);
        if (code != TARN_OK) {
            return code;
        }
        if (count == 0) {
            return builder_close(op->b, err);
        }
        if (count > INT32_MAX - op->b->children[0].length) {
            return err_set(err, TARN_LIMIT, "a batch held more than %d items of arrays", INT32_MAX);
        }
        const uint8_t *start = d->p;
        for (; count > 0; count--) {
            code = run(d, op + 1, op + op->span, err);
            if (UNLIKELY(code != TARN_OK)) {
                return code;
            }
        }
        if (UNLIKELY(size >= 0 && d->p - start != size)) {
            return wrong(d, d->p, "an array's block was not as long as it said");
        }
    }
}

static tarn_code get_branch(avro_decoder *d, const avro_op *op, int64_t *branch) {
    if (!get_varint(&d->p, d->end, branch) || *branch < 0 || *branch >= op->schema->n) {
        return wrong(d, d->p, "a union had no such branch");
    }
    return TARN_OK;
}

static tarn_code read_union(avro_decoder *d, const avro_op *op, tarn_error *err) {
    int64_t branch;
    tarn_builder *b = op->b;
    tarn_code code = get_branch(d, op, &branch);
    if (code != TARN_OK) {
        return code;
    }
    if (branch == op->null_at) {
        return builder_null(b, err);
    }
    code = run(d, op + op->jumps[branch], op + op->jumps[branch + 1], err);
    for (int32_t i = 0; i < b->n_children && code == TARN_OK; i++) {
        if (b->children[i].length == b->length) {
            code = builder_null(&b->children[i], err);
        }
    }
    return code == TARN_OK ? builder_close(b, err) : code;
}

/* Ops that start others. */
static tarn_code run_nested(avro_decoder *d, const avro_op *op, tarn_error *err) {
    int64_t branch;
    tarn_code code = TARN_OK;
    if (op->code == AVRO_OP_ITEMS) {
        return read_items(d, op, err);
    }
    if (op->code == AVRO_OP_SKIP_ITEMS) {
        return skip_items(d, op, err);
    }
    if (op->code == AVRO_OP_UNION) {
        return read_union(d, op, err);
    }
    if (op->code == AVRO_OP_SKIP_UNION) {
        code = get_branch(d, op, &branch);
        return code == TARN_OK ? run(d, op + op->jumps[branch], op + op->jumps[branch + 1], err)
                               : code;
    }
    /* OPTIONAL, SKIP_OPTIONAL */
    if (UNLIKELY(d->p >= d->end || (*d->p != 0 && *d->p != 2))) {
        return wrong(d, d->p, "a union had no such branch");
    }
    branch = *d->p++ >> 1;
    if (branch != op->null_at) {
        return run(d, op + 1, op + op->span, err);
    }
    return op->code == AVRO_OP_OPTIONAL ? put_null(op->b, err) : TARN_OK;
}

/* tidy: long, the one switch over all ops */
static tarn_code run(avro_decoder *d, const avro_op *op, const avro_op *stop, tarn_error *err) {
    const uint8_t *p = d->p;
    const uint8_t *const end = d->end;
    tarn_code code = TARN_OK;
    int64_t v;
    tarn_str bytes;
    for (; op < stop; op += op->span) {
        switch (op->code) {
        case AVRO_OP_SKIP_VARINTS:
            if (op->n == 1 && LIKELY(p < end) && *p < 0x80) {
                p++;
                break;
            }
            p = skip_varints(p, end, op->n);
            if (UNLIKELY(p == NULL)) {
                return wrong(d, end, "a number passed the end");
            }
            break;
        case AVRO_OP_SKIP_BYTES:
            if (UNLIKELY(op->n > (size_t)(end - p))) {
                return wrong(d, p, "a value passed the end");
            }
            p += op->n;
            break;
        case AVRO_OP_SKIP_SIZED:
            for (size_t i = op->n; i > 0; i--) {
                if (UNLIKELY(!get_sized(&p, end, &bytes))) {
                    return wrong(d, p, "a length passed the end");
                }
            }
            break;
        case AVRO_OP_INT:
            if (UNLIKELY(!get_varint(&p, end, &v) || v != (int32_t)v)) {
                return wrong(d, p, "an int passed the end or its range");
            }
            code = put_i32(op->b, (int32_t)v, err);
            break;
        case AVRO_OP_LONG:
            if (UNLIKELY(!get_varint(&p, end, &v))) {
                return wrong(d, p, "a long passed the end or had more than 10 bytes");
            }
            code = put_i64(op->b, v, err);
            break;
        case AVRO_OP_FIXED:
            if (UNLIKELY(op->n > (size_t)(end - p))) {
                return wrong(d, p, "a value passed the end");
            }
            code = builder_fixed(op->b, p, err);
            p += op->n;
            break;
        case AVRO_OP_BYTES:
        case AVRO_OP_STRING:
            if (UNLIKELY(!get_sized(&p, end, &bytes))) {
                return wrong(d, p, "a length passed the end");
            }
            if (op->code == AVRO_OP_STRING && UNLIKELY(!is_text(bytes))) {
                return wrong(d, p, "a string was not UTF-8");
            }
            code = put_bytes(op->b, bytes, err);
            break;
        case AVRO_OP_CLOSE:
            code = builder_close(op->b, err);
            break;
        case AVRO_OP_NULL:
        case AVRO_OP_BOOLEAN:
        case AVRO_OP_SCALED:
        case AVRO_OP_ENUM:
        case AVRO_OP_UUID_TEXT:
        case AVRO_OP_DECIMAL:
            code = run_rare(d, op, &p, err);
            break;
        case AVRO_OP_SKIP_OPTIONAL:
        case AVRO_OP_SKIP_UNION:
        case AVRO_OP_SKIP_ITEMS:
        case AVRO_OP_OPTIONAL:
        case AVRO_OP_UNION:
        case AVRO_OP_ITEMS:
            d->p = p;
            code = run_nested(d, op, err);
            p = d->p;
            break;
        }
        if (UNLIKELY(code != TARN_OK)) {
            return code;
        }
    }
    d->p = p;
    return TARN_OK;
}

tarn_code avro_decode(avro_decoder *d, int64_t count, const uint8_t *soft_end, int64_t *done,
                      tarn_error *err) {
    int64_t n = 0;
    d->reason = NULL;
    d->empty_items = 0;
    while (n < count) {
        tarn_code code = run(d, d->ops, d->ops + d->n_ops, err);
        if (UNLIKELY(code != TARN_OK)) {
            return code;
        }
        n++;
        if (UNLIKELY(d->p >= soft_end) && d->min_bytes > 0) {
            break;
        }
    }
    *done = n;
    return TARN_OK;
}
