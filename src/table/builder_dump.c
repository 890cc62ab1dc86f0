/* table/builder_dump.c - rows as plain bytes for a temporary file, and back: of each column its
 * head, then its buffers as they lie in memory, then its children. No format for others to read. */
#include "table/batch.h"

#include "base/limits.h"

typedef struct column_head {
    int64_t length;
    int64_t null_count;
    uint64_t bytes_len;
} column_head;

static size_t values_bytes(const tarn_builder *b) {
    return b->type->kind == TARN_BOOLEAN ? bit_bytes(b->length)
                                         : (size_t)b->length * (size_t)type_width(b->type);
}

static size_t offsets_bytes(const tarn_builder *b) {
    return b->offsets != NULL ? ((size_t)b->length + 1) * sizeof *b->offsets : 0;
}

tarn_code builder_dump(const tarn_builder *b, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const column_head head = {b->length, b->null_count, b->bytes_len};
    TRY(buf_append(out, &head, sizeof head, err));
    if (b->length > 0) {
        if (b->validity != NULL && b->null_count > 0) {
            TRY(buf_append(out, b->validity, bit_bytes(b->length), err));
        }
        TRY(buf_append(out, b->values, values_bytes(b), err));
        TRY(buf_append(out, b->offsets, offsets_bytes(b), err));
        TRY(buf_append(out, b->bytes, b->bytes_len, err));
    }
    for (int32_t i = 0; i < b->n_children; i++) {
        TRY(builder_dump(&b->children[i], out, err));
    }
done:
    return code;
}

static tarn_code take(tarn_str *rest, void *dst, size_t len, tarn_error *err) {
    if (len > rest->len) {
        return err_set(err, TARN_CORRUPT, "rows in a temporary file were cut short");
    }
    if (len > 0) {
        memcpy(dst, rest->data, len);
        *rest = str_from(*rest, len);
    }
    return TARN_OK;
}

static tarn_code load_column(tarn_builder *b, tarn_str *rest, tarn_error *err) {
    tarn_code code = TARN_OK;
    column_head head;
    TRY(take(rest, &head, sizeof head, err));
    if (head.length < 0 || head.length > INT32_MAX || head.bytes_len > LIMIT_BATCH_BYTES) {
        return err_set(err, TARN_CORRUPT, "rows in a temporary file were not as written");
    }
    if (head.length > 0) {
        TRY(builder_reserve(b, head.length, err));
        b->length = head.length;
        b->null_count = head.null_count;
        if (head.null_count > 0 && b->type->kind != TARN_UNKNOWN) {
            TRY(builder_need_validity(b, err));
            TRY(take(rest, b->validity, bit_bytes(head.length), err));
        }
        TRY(take(rest, b->values, values_bytes(b), err));
        TRY(take(rest, b->offsets, offsets_bytes(b), err));
        if (head.bytes_len > 0) {
            TRY(builder_reserve_bytes(b, (size_t)head.bytes_len, err));
            TRY(take(rest, b->bytes, (size_t)head.bytes_len, err));
            b->bytes_len = (size_t)head.bytes_len;
        }
    }
    for (int32_t i = 0; i < b->n_children; i++) {
        TRY(load_column(&b->children[i], rest, err));
    }
done:
    return code;
}

tarn_code builder_load(tarn_builder *b, tarn_str bytes, tarn_error *err) {
    tarn_assert(b->length == 0);
    return load_column(b, &bytes, err);
}
