/* tarn/error.h - how every call of libtarn says what went wrong.
 *
 * A fallible function returns a tarn_code and, where the caller gave one, fills a tarn_error with
 * the facts. The error is caller-owned and of fixed size, so that running out of memory can be told
 * too. Outputs of a function are written only on success, unless its comment says otherwise. */
#ifndef TARN_ERROR_H
#define TARN_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TARN_API               __attribute__((visibility("default")))
#define TARN_MUST_USE          __attribute__((warn_unused_result))
#define TARN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TARN_API
#define TARN_MUST_USE
#define TARN_PRINTF(fmt, args)
#endif

/* The codes: name, number (pinned for ever), and who is at fault with what is true of the table. */
#define TARN_CODE_MAP(X)                                                                           \
    X(OK, 0, "success")                                                                            \
    X(NOMEM, 1, "memory could not be had; this call committed nothing")                            \
    X(INVALID, 2, "the caller's argument or input is wrong; this call committed nothing")          \
    X(NOT_FOUND, 3, "the thing named does not exist")                                              \
    X(CONFLICT, 4, "somebody else's change stands against this one; nothing was committed")        \
    X(COMMIT_UNKNOWN, 5, "the commit was sent and its answer is not known; do not clean up")       \
    X(CORRUPT, 6, "stored bytes do not follow their specification")                                \
    X(IO, 7, "the operating system or a remote store failed")                                      \
    X(LIMIT, 8, "a limit of docs/limits.md was reached")                                           \
    X(INTERNAL, 9, "a fault in tarn itself; the handle only closes from here on")                  \
    X(CANCELLED, 10, "the caller cancelled; this call committed nothing")                          \
    X(DENIED, 11, "permission was refused")                                                        \
    X(UNSUPPORTED, 12, "valid, but not something this version can do")

typedef enum tarn_code {
#define TARN_CODE_ENUM(name, number, text) TARN_##name = number,
    TARN_CODE_MAP(TARN_CODE_ENUM)
#undef TARN_CODE_ENUM
} tarn_code;

typedef struct tarn_error {
    uint32_t struct_size; /* sizeof(tarn_error) of the caller; TARN_ERROR_INIT sets it */
    tarn_code code;
    int32_t os_code;   /* errno where there is one, else 0 */
    uint32_t flags;    /* TARN_ERROR_*, else 0 */
    char message[512]; /* one line, no newline: names the thing and the place */
    char detail[512];  /* more of the place: file, offset, key; may be empty */
} tarn_error;

/* A server or database was not there (not reached, no answer, 502, 503, 504): the same call may
 * succeed later. @since 0.2 */
#define TARN_ERROR_AWAY 1u

#define TARN_ERROR_INIT                                                                            \
    {                                                                                              \
        sizeof(tarn_error), TARN_OK, 0, 0, {0}, {                                                  \
            0                                                                                      \
        }                                                                                          \
    }

/* The name of a code ("CONFLICT") and its general meaning. Never NULL. No I/O. @since 0.1 */
TARN_API const char *tarn_code_name(tarn_code code);
TARN_API const char *tarn_code_text(tarn_code code);

#ifdef __cplusplus
}
#endif
#endif
