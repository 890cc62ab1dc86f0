/* api/handles.h - what the opaque handles of include/tarn are, and helpers of this room. */
#ifndef API_HANDLES_H
#define API_HANDLES_H

#include <tarn/tarn.h>

#include "base/arena.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "table/expr.h"

struct tarn_catalog_handle {
    tarn_env *env;
    tarn_catalog *catalog;
    int32_t refs; /* atomic: tables, streams and sinks keep it */
};

struct tarn_table {
    tarn_env *env;
    tarn_catalog_handle *catalog;
    tarn_arena arena; /* ident */
    tarn_ident ident;
    tarn_table_version *version;
    bool read_only; /* opened by path */
};

tarn_catalog_handle *handle_keep(tarn_catalog_handle *catalog);
void handle_release(tarn_catalog_handle *catalog); /* takes NULL */

/* An error to fill when the caller gave none. */
#define API_ERROR(err)                                                                             \
    tarn_error api_error_ = TARN_ERROR_INIT;                                                       \
    if ((err) == NULL) {                                                                           \
        (err) = &api_error_;                                                                       \
    }                                                                                              \
    err_reset(err)

/* code, with the table's name where the caller asked for what it has not, or for nonsense. */
tarn_code api_about_table(const tarn_table *table, tarn_code code, tarn_error *err);
/* Moves a buffer's text into an allocation of the caller's (tarn_text_free); releases the buffer.
 */
tarn_code api_give_text(tarn_env *env, tarn_buf *text, char **out, tarn_error *err) TARN_MUST_USE;
/* JSON that the caller gave: what it breaks is the caller's doing (INVALID), not stored bytes'
 * (CORRUPT). */
tarn_code api_blame_caller(tarn_code code, tarn_error *err);
tarn_code api_json(tarn_arena *arena, const char *text, const char *what, json_value **out,
                   tarn_error *err) TARN_MUST_USE;
/* {"k":"v"} into properties; NULL text: none. Numbers and booleans are taken as their text. */
tarn_code api_properties(tarn_arena *arena, const char *json, const char *what,
                         tarn_properties *out, tarn_error *err) TARN_MUST_USE;
/* "a, b.c, `x,y`" into names. */
tarn_code api_names(tarn_arena *arena, const char *text, const tarn_str **out, int32_t *n,
                    tarn_error *err) TARN_MUST_USE;
tarn_code api_filter(tarn_arena *arena, const char *text, const tarn_expr **out,
                     tarn_error *err) TARN_MUST_USE; /* NULL text: NULL */

#endif
