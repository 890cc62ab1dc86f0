/* base/err.c - filling a tarn_error. Every failure of the library passes here.
 * Invariants: nothing is allocated; both texts always end with NUL, hold no control character and
 * are not cut inside a UTF-8 sequence. */
#include "base/err.h"

/* What err.h tells an analyser in their place. */
#undef err_set
#undef err_add
#undef err_os
#undef err_nomem

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tarn_code_name(tarn_code code) {
    switch (code) {
#define CODE_NAME(name, number, text)                                                              \
    case TARN_##name:                                                                              \
        return #name;
        TARN_CODE_MAP(CODE_NAME)
#undef CODE_NAME
    }
    return "UNKNOWN_CODE";
}

const char *tarn_code_text(tarn_code code) {
    switch (code) {
#define CODE_TEXT(name, number, text)                                                              \
    case TARN_##name:                                                                              \
        return text;
        TARN_CODE_MAP(CODE_TEXT)
#undef CODE_TEXT
    }
    return "a code this version does not know";
}

/* Drops a UTF-8 sequence that the end of the field has cut. */
static void trim_cut_sequence(char *text, size_t len) {
    size_t start = len;
    while (start > 0 && len - start < 3 && ((unsigned char)text[start - 1] & 0xC0) == 0x80) {
        start--;
    }
    if (start == 0) {
        return;
    }
    unsigned char lead = (unsigned char)text[start - 1];
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (need > 1 && len - (start - 1) < need) {
        text[start - 1] = '\0';
    }
}

/* Formats at text + used; returns the new length. */
static size_t put_text(char *text, size_t used, size_t cap, const char *fmt, va_list args) {
    int wrote = vsnprintf(text + used, cap - used, fmt, args);
    if (wrote < 0) {
        text[used] = '\0';
        return used;
    }
    size_t end = used + (size_t)wrote;
    if (end >= cap) {
        end = cap - 1;
        trim_cut_sequence(text, end);
        end = strlen(text);
    }
    for (size_t i = used; i < end; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7F) {
            text[i] = '?';
        }
    }
    return end;
}

static size_t append_text(char *text, size_t used, size_t cap, const char *fmt, ...)
    TARN_PRINTF(4, 5);
static size_t append_text(char *text, size_t used, size_t cap, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    size_t end = put_text(text, used, cap, fmt, args);
    va_end(args);
    return end;
}

tarn_code err_set(tarn_error *err, tarn_code code, const char *fmt, ...) {
    if (err == NULL) {
        return code;
    }
    /* The arguments may point into err itself, so the text is made aside. */
    char text[sizeof err->message];
    va_list args;
    va_start(args, fmt);
    size_t len = put_text(text, 0, sizeof text, fmt, args);
    va_end(args);
    memcpy(err->message, text, len + 1);
    err->detail[0] = '\0';
    err->code = code;
    err->os_code = 0;
    err->flags = 0;
    return code;
}

static tarn_code code_of_os(int os_code) {
    switch (os_code) {
    case EACCES:
    case EPERM:
    case EROFS:
        return TARN_DENIED;
    case ENOENT:
    case ENOTDIR:
        return TARN_NOT_FOUND;
    default:
        return TARN_IO;
    }
}

tarn_code err_os(tarn_error *err, int os_code, const char *fmt, ...) {
    tarn_code code = code_of_os(os_code);
    if (err == NULL) {
        return code;
    }
    char text[sizeof err->message];
    char why[128];
    va_list args;
    va_start(args, fmt);
    size_t len = put_text(text, 0, sizeof text, fmt, args);
    va_end(args);
    if (strerror_r(os_code, why, sizeof why) != 0) {
        (void)snprintf(why, sizeof why, "system error %d", os_code);
    }
    len = append_text(text, len, sizeof text, ": %s", why);
    memcpy(err->message, text, len + 1);
    err->detail[0] = '\0';
    err->code = code;
    err->os_code = os_code;
    err->flags = 0;
    return code;
}

tarn_code err_nomem(tarn_error *err) {
    return err_set(err, TARN_NOMEM, "memory could not be had");
}

tarn_code err_add(tarn_error *err, tarn_code code, const char *fmt, ...) {
    if (err == NULL) {
        return code;
    }
    char text[sizeof err->detail];
    va_list args;
    va_start(args, fmt);
    (void)put_text(text, 0, sizeof text, fmt, args);
    va_end(args);
    const char *what = strncmp(text, "file ", 5) == 0 ? text + 5 : text;
    if (strstr(err->message, what) != NULL) { /* said already */
        return code;
    }
    size_t used = strlen(err->detail);
    if (used > 0) {
        used = append_text(err->detail, used, sizeof err->detail, ", ");
    }
    (void)append_text(err->detail, used, sizeof err->detail, "%s", text);
    return code;
}

tarn_code err_set_away(tarn_error *err, tarn_code code) {
    if (err != NULL) {
        err->flags |= TARN_ERROR_AWAY;
    }
    return code;
}

bool err_is_away(const tarn_error *err) {
    return err != NULL && (err->flags & TARN_ERROR_AWAY) != 0;
}

tarn_code err_as(tarn_error *err, tarn_code code, const tarn_error *cause) {
    return err_is_away(cause) ? err_set_away(err, code) : code;
}

void err_reset(tarn_error *err) {
    if (err == NULL) {
        return;
    }
    err->code = TARN_OK;
    err->os_code = 0;
    err->flags = 0;
    err->message[0] = '\0';
    err->detail[0] = '\0';
}

#ifndef NDEBUG
/* A debug build stops at once: the stack of the first wrong step is worth more than going on. */
void err_assert_failed(const char *file, int line, const char *text) {
    (void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, text);
    abort();
}
#endif
