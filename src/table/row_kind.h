/* table/row_kind.h - what a row of a change stream does to the row of its key. A batch of changes
 * is a batch and one kind a row, in the order in which they happened. */
#ifndef TABLE_ROW_KIND_H
#define TABLE_ROW_KIND_H

#include <stdint.h>

typedef enum tarn_row_kind {
    TARN_ROW_INSERT = 0,        /* +I: a row; in upsert mode it takes the place of its key's row */
    TARN_ROW_UPDATE_BEFORE = 1, /* -U: the row as it was */
    TARN_ROW_UPDATE_AFTER = 2,  /* +U: the row as it is now */
    TARN_ROW_DELETE = 3         /* -D */
} tarn_row_kind;

#endif
