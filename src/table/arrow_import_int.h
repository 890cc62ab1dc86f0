/* table/arrow_import_int.h - what the two halves of importing share. */
#ifndef TABLE_ARROW_IMPORT_INT_H
#define TABLE_ARROW_IMPORT_INT_H

#include "table/array_int.h"
#include "table/arrow_int.h"

typedef struct array_import {
    tarn_env *env;
    array_owner *owner; /* will hold the outside array */
    int depth;
    tarn_error *err;
} array_import;

/* Any array as a canonical one of type, [0, length) behind its own offset. */
tarn_code arrow_import_array(const array_import *im, const struct ArrowSchema *schema,
                             const struct ArrowArray *a, const tarn_type *type,
                             struct ArrowArray *out) TARN_MUST_USE;
/* Leaves whose values must be rewritten; the result has no offset. */
tarn_code arrow_convert(const array_import *im, const struct ArrowSchema *schema,
                        const struct ArrowArray *a, const arrow_format *f, const tarn_type *type,
                        struct ArrowArray *out) TARN_MUST_USE;
/* A list node with 32-bit offsets for a list of another kind, without its child. */
tarn_code arrow_convert_offsets(const array_import *im, const struct ArrowSchema *schema,
                                const struct ArrowArray *a, const arrow_format *f,
                                struct ArrowArray *out) TARN_MUST_USE;
/* Dictionaries, run-end encoding, list views: rows of a child picked by index. */
tarn_code arrow_import_indexed(const array_import *im, const struct ArrowSchema *schema,
                               const struct ArrowArray *a, const arrow_format *f,
                               const tarn_type *type, struct ArrowArray *out) TARN_MUST_USE;
tarn_code arrow_bad_value(const array_import *im, const struct ArrowSchema *schema, int64_t row,
                          const char *what);

#endif
