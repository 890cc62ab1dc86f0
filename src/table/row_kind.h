/* table/row_kind.h - what a row of a change stream does to the row of its key. A batch of changes
 * is a batch and one kind a row, in the order in which they happened. */
#ifndef TABLE_ROW_KIND_H
#define TABLE_ROW_KIND_H

#include "base/str.h"

typedef enum tarn_row_kind {
    TARN_ROW_INSERT = 0,        /* +I: a row; in upsert mode it takes the place of its key's row */
    TARN_ROW_UPDATE_BEFORE = 1, /* -U: the row as it was */
    TARN_ROW_UPDATE_AFTER = 2,  /* +U: the row as it is now */
    TARN_ROW_DELETE = 3         /* -D */
} tarn_row_kind;

/* Whether a row takes its key's row away. */
static inline bool row_kind_deletes(uint8_t kind) {
    return kind == TARN_ROW_UPDATE_BEFORE || kind == TARN_ROW_DELETE;
}

/* The ways in which streams spell it: c r u d, I U D, +I -U +U -D. */
static inline bool row_kind_parse(tarn_str text, uint8_t *kind) {
    static const char letters[] = "crIudUD";
    static const uint8_t kinds[] = {TARN_ROW_INSERT,       TARN_ROW_INSERT, TARN_ROW_INSERT,
                                    TARN_ROW_UPDATE_AFTER, TARN_ROW_DELETE, TARN_ROW_UPDATE_AFTER,
                                    TARN_ROW_DELETE};
    bool before = str_is(text, "-U");
    if (before || str_is(text, "+U") || str_is(text, "+I") || str_is(text, "-D")) {
        *kind = before                ? TARN_ROW_UPDATE_BEFORE
                : text.data[0] == '-' ? TARN_ROW_DELETE
                : text.data[1] == 'I' ? TARN_ROW_INSERT
                                      : TARN_ROW_UPDATE_AFTER;
        return true;
    }
    const char *at = text.len == 1 && text.data[0] != '\0' ? strchr(letters, text.data[0]) : NULL;
    if (at != NULL) {
        *kind = kinds[at - letters];
    }
    return at != NULL;
}

#endif
