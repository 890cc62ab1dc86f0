/* base/buf.c - a growing byte buffer. Everything that is written out is first made here.
 * Invariants: len <= cap <= max; a failed call leaves len and the bytes before it as they were. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/num.h"

#define FIRST_CAP ((size_t)64)

void buf_init(tarn_buf *buf, tarn_env *env, size_t max_bytes) {
    buf->env = env;
    buf->data = NULL;
    buf->len = 0;
    buf->cap = 0;
    buf->max = max_bytes == 0 || max_bytes > SIZE_MAX / 2 ? SIZE_MAX / 2 : max_bytes;
}

void buf_release(tarn_buf *buf) {
    if (buf->data != NULL) {
        env_free(buf->env, buf->data);
    }
    buf->data = NULL;
    buf->len = 0;
    buf->cap = 0;
}

void buf_reset(tarn_buf *buf) {
    buf->len = 0;
}

static tarn_code grow(tarn_buf *buf, size_t extra, tarn_error *err) {
    size_t need;
    if (!num_add_size(buf->len, extra, &need) || need > buf->max) {
        return err_set(err, TARN_LIMIT, "a buffer of %zu bytes could not take %zu more, limit %zu",
                       buf->len, extra, buf->max);
    }
    size_t cap = buf->cap < FIRST_CAP ? FIRST_CAP : buf->cap + buf->cap / 2;
    if (cap < need) {
        cap = need;
    }
    if (cap > buf->max) {
        cap = buf->max;
    }
    uint8_t *data = env_realloc(buf->env, buf->data, cap);
    if (data == NULL) {
        return err_nomem(err);
    }
    buf->data = data;
    buf->cap = cap;
    return TARN_OK;
}

tarn_code buf_reserve(tarn_buf *buf, size_t extra, tarn_error *err) {
    if (buf->data != NULL && buf->cap - buf->len >= extra) {
        return TARN_OK;
    }
    return grow(buf, extra, err);
}

tarn_code buf_append(tarn_buf *buf, const void *data, size_t len, tarn_error *err) {
    if (len == 0) {
        return TARN_OK;
    }
    if (buf->cap - buf->len < len) {
        tarn_code code = grow(buf, len, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    return TARN_OK;
}

tarn_code buf_append_str(tarn_buf *buf, tarn_str s, tarn_error *err) {
    return buf_append(buf, s.data, s.len, err);
}

tarn_code buf_append_char(tarn_buf *buf, char c, tarn_error *err) {
    if (buf->cap == buf->len) {
        tarn_code code = grow(buf, 1, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    buf->data[buf->len++] = (uint8_t)c;
    return TARN_OK;
}

tarn_code buf_printf(tarn_buf *buf, tarn_error *err, const char *fmt, ...) {
    char small[256];
    va_list args;
    va_start(args, fmt);
    int wrote = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    if (wrote < 0) {
        return err_set(err, TARN_INTERNAL, "a format could not be written: %s", fmt);
    }
    size_t len = (size_t)wrote;
    if (len < sizeof small) {
        return buf_append(buf, small, len, err);
    }
    /* vsnprintf wants room for the NUL too, which is not kept: it may pass max by that one byte. */
    char *text = env_alloc(buf->env, len + 1);
    if (text == NULL) {
        return err_nomem(err);
    }
    va_start(args, fmt);
    (void)vsnprintf(text, len + 1, fmt, args);
    va_end(args);
    tarn_code code = buf_append(buf, text, len, err);
    env_free(buf->env, text);
    return code;
}
