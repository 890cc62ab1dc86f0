/* base/err.h - filling a tarn_error.
 * First failure wins; an upper room adds context to detail and never replaces the code. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>

#include <tarn/error.h>

/* Fills err (may be NULL) and returns code, so that `return err_set(err, TARN_INVALID, "...", ...)`
 * reads well. Messages are lower case, factual, past tense, name the thing and the place, and hold
 * no newline (control characters in arguments are replaced by '?'). Allocates nothing. */
tarn_code err_set(tarn_error *err, tarn_code code, const char *fmt, ...) TARN_PRINTF(3, 4);

/* As err_set, for a failed system call: keeps os_code, picks DENIED, NOT_FOUND or IO by it, adds
 * strerror's text. */
tarn_code err_os(tarn_error *err, int os_code, const char *fmt, ...) TARN_PRINTF(3, 4);

tarn_code err_nomem(tarn_error *err);

/* Appends one piece of context ("file x.parquet", "column a.b") to detail; returns code unchanged.
 */
tarn_code err_add(tarn_error *err, tarn_code code, const char *fmt, ...) TARN_PRINTF(3, 4);

/* Marks an error that was just set as TARN_ERROR_AWAY: what it is about was not there, and the same
 * may succeed later. err_set and err_os take the mark off. */
tarn_code err_set_away(tarn_error *err, tarn_code code);
bool err_is_away(const tarn_error *err);
/* As err_set_away where cause is so marked. */
tarn_code err_as(tarn_error *err, tarn_code code, const tarn_error *cause);

void err_reset(tarn_error *err);

/* Programmer errors. Debug builds abort; release builds go on in the caller's way. */
#ifdef NDEBUG
#define tarn_assert(cond) ((void)0)
#else
void err_assert_failed(const char *file, int line, const char *text) __attribute__((noreturn));
#define tarn_assert(cond) ((cond) ? (void)0 : err_assert_failed(__FILE__, __LINE__, #cond))
#endif

/* Inside a function whose single label is `done:` and whose result variable is `code`. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        code = (expr);                                                                             \
        if (code != TARN_OK) {                                                                     \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

/* A static analyser sees one file at a time; it must know that these never give TARN_OK. */
#ifdef __clang_analyzer__
void err_seen(const tarn_error *err, const char *fmt, ...);
#define err_set(err, code, ...)   (err_seen((err), __VA_ARGS__), (code))
#define err_add(err, code, ...)   (err_seen((err), __VA_ARGS__), (code))
#define err_os(err, os_code, ...) ((void)(os_code), err_seen((err), __VA_ARGS__), TARN_IO)
#define err_nomem(err)            (err_seen((err), ""), TARN_NOMEM)
#endif

#endif
