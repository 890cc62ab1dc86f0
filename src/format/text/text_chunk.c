/* format/text/text_chunk.c - a stream's bytes in pieces of whole records.
 *
 * What follows the last end of a record is carried to the next piece. A record longer than a piece
 * makes the piece grow, up to LIMIT_TEXT_LINE_BYTES. */
#include "format/text/text_int.h"
#include "format/text/text_scan.h"

#define FIRST_READ ((size_t)64 << 10)

void text_chunker_init(text_chunker *c, tarn_env *env, io_stream *stream,
                       const text_options *options) {
    memset(c, 0, sizeof *c);
    c->env = env;
    c->stream = stream;
    c->options = options;
    buf_init(&c->carry, env, 0);
}

void text_chunker_release(text_chunker *c) {
    buf_release(&c->carry);
}

/* Reads until bytes holds want bytes or the stream has ended. Memory grows with what comes. */
static tarn_code fill(text_chunker *c, size_t want, tarn_buf *bytes, tarn_error *err) {
    tarn_code code = TARN_OK;
    while (bytes->len < want && !c->ended) {
        size_t got = 0;
        size_t step = bytes->len > FIRST_READ ? bytes->len : FIRST_READ;
        step = step < want - bytes->len ? step : want - bytes->len;
        TRY(env_check_cancel(c->env, err));
        TRY(buf_reserve(bytes, step + 1 + TEXT_PADDING, err));
        TRY(c->stream->read(c->stream, bytes->data + bytes->len, step, &got, err));
        bytes->len += got;
        c->bytes_read += (int64_t)got;
        c->ended = got == 0;
    }
done:
    return code;
}

/* Bytes of whole records at the front. */
static size_t cut(const text_chunker *c, const tarn_buf *bytes) {
    const char *p = (const char *)bytes->data;
    const char *end = p + bytes->len;
    if (c->ended) {
        return bytes->len;
    }
    if (c->options->kind == TEXT_CSV) {
        size_t mark = !c->started && bytes->len >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        size_t len = text_csv_cut(c->options, p + mark, end);
        return len > 0 ? mark + len : 0;
    }
    const char *line = text_last_line(p, end);
    return line != NULL ? (size_t)(line + 1 - p) : 0;
}

size_t text_cut(const text_options *options, const char *bytes, size_t len, bool all) {
    text_options checked;
    if (all || len == 0) {
        return len;
    }
    if (options->kind == TEXT_CSV) {
        return text_options_check(options, &checked, NULL) == TARN_OK
                   ? text_csv_cut(&checked, bytes, bytes + len)
                   : len;
    }
    const char *line = text_last_line(bytes, bytes + len);
    return line != NULL ? (size_t)(line + 1 - bytes) : 0;
}

tarn_code text_chunker_next(text_chunker *c, size_t target, tarn_buf *bytes, size_t *skip,
                            size_t *len, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t want = target;
    size_t whole = 0;
    buf_reset(bytes);
    TRY(buf_append(bytes, c->carry.data, c->carry.len, err));
    want = want > bytes->len ? want : bytes->len + 1;
    for (;;) {
        TRY(fill(c, want, bytes, err));
        whole = bytes->len > 0 ? cut(c, bytes) : 0;
        if (whole > 0 || c->ended) {
            break;
        }
        if (bytes->len >= LIMIT_TEXT_LINE_BYTES) {
            code = err_set(err, TARN_LIMIT, "%s: a record was longer than %u bytes%s",
                           c->stream->name, LIMIT_TEXT_LINE_BYTES,
                           c->options->kind == TEXT_CSV ? " (a quote may not be closed)" : "");
            goto done;
        }
        want = bytes->len * 2 < LIMIT_TEXT_LINE_BYTES ? bytes->len * 2 : LIMIT_TEXT_LINE_BYTES;
    }
    buf_reset(&c->carry);
    TRY(buf_append(&c->carry, bytes->data + whole, bytes->len - whole, err));
    bytes->len = whole;
    *skip = 0;
    if (!c->started && whole >= 3 && memcmp(bytes->data, "\xEF\xBB\xBF", 3) == 0) {
        *skip = 3;
    }
    c->started = true;
    c->bytes_given += (int64_t)whole;
    if (whole > 0 && bytes->data[whole - 1] != '\n') {
        TRY(buf_append_char(bytes, '\n', err));
    }
    *len = bytes->len;
    TRY(buf_reserve(bytes, TEXT_PADDING, err));
    memset(bytes->data + bytes->len, 0, TEXT_PADDING);
done:
    return code;
}
