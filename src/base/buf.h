/* base/buf.h - a growing byte buffer that is born with a maximum. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

typedef struct tarn_buf {
    tarn_env *env;
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t max; /* reaching it is LIMIT */
} tarn_buf;

void buf_init(tarn_buf *buf, tarn_env *env, size_t max_bytes); /* max 0: SIZE_MAX / 2 */
void buf_release(tarn_buf *buf);                               /* also of a zeroed one */
void buf_reset(tarn_buf *buf);                                 /* len = 0, keeps memory */
/* Room for extra more bytes at data + len; len is not changed. NOMEM or LIMIT. */
tarn_code buf_reserve(tarn_buf *buf, size_t extra, tarn_error *err) TARN_MUST_USE;
tarn_code buf_append(tarn_buf *buf, const void *data, size_t len, tarn_error *err) TARN_MUST_USE;
tarn_code buf_append_str(tarn_buf *buf, tarn_str s, tarn_error *err) TARN_MUST_USE;
tarn_code buf_append_char(tarn_buf *buf, char c, tarn_error *err) TARN_MUST_USE;
tarn_code buf_printf(tarn_buf *buf, tarn_error *err, const char *fmt, ...)
    TARN_PRINTF(3, 4) TARN_MUST_USE;
static inline tarn_str buf_str(const tarn_buf *buf) {
    return str_make(buf->data, buf->len);
}

#endif
