/* source/rotated.h - which of the files beside a followed one came behind another, by what their
 * names and times say. Pure. */
#ifndef SOURCE_ROTATED_H
#define SOURCE_ROTATED_H

#include "store/store_beside.h"

typedef struct rotated_next {
    int32_t file;     /* the oldest one behind; -1: none but the named file */
    int64_t missing;  /* the number of a file between, which is not there; -1: all are */
    bool sure;        /* of missing: times tell which way numbers go */
    int32_t disputed; /* one that its name puts on the other side than its time; -1: none */
} rotated_next;

/* Whether the file has a name that rotation gives: the followed file's with numbers or a date in or
 * behind it, packed or not. */
bool rotated_is(const store_beside_list *list, int32_t file);
/* By its name. */
bool rotated_is_packed(tarn_str name);
/* What comes behind file at, which was written last at modified; at -1: it is not there any more,
 * and only files that were written since are known to be behind it. */
void rotated_find_next(const store_beside_list *list, int32_t at, int64_t modified,
                       rotated_next *out);

#endif
