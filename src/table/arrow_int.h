/* table/arrow_int.h - Arrow format strings taken apart, for reading schemas and importing arrays.
 */
#ifndef TABLE_ARROW_INT_H
#define TABLE_ARROW_INT_H

#include "table/batch.h"

typedef enum arrow_layout {
    ARROW_NULL,
    ARROW_BOOL,
    ARROW_INT,       /* width 1, 2, 4, 8; is_signed */
    ARROW_FLOAT,     /* width 2, 4, 8 */
    ARROW_DECIMAL,   /* width 4, 8, 16, 32; precision, scale */
    ARROW_DATE,      /* width 4: days; 8: milliseconds */
    ARROW_TIME,      /* width 4 or 8; per_second */
    ARROW_TIMESTAMP, /* per_second; zoned */
    ARROW_FIXED,     /* width */
    ARROW_BYTES,     /* width of offsets 4 or 8; is_text */
    ARROW_VIEWS,     /* is_text */
    ARROW_STRUCT,
    ARROW_LIST,       /* width of offsets 4 or 8 */
    ARROW_LIST_VIEW,  /* width of offsets and sizes 4 or 8 */
    ARROW_FIXED_LIST, /* width: items of each list */
    ARROW_MAP,
    ARROW_RUNS, /* run-end encoded */
    ARROW_DICTIONARY
} arrow_layout;

typedef struct arrow_format {
    arrow_layout layout;
    int32_t width;
    bool is_signed;
    bool is_text;
    bool zoned;
    int32_t precision;
    int32_t scale;
    int64_t per_second;
} arrow_format;

/* INVALID for a format that is malformed, UNSUPPORTED for one that tarn has no type for. */
tarn_code arrow_read_format(const struct ArrowSchema *schema, arrow_format *out,
                            tarn_error *err) TARN_MUST_USE;

#endif
