/* source/text_mark.h - how text that was read up to a place is known again: a hash of its first
 * bytes, and of those before the place. Both are stored, so they stay what they are. */
#ifndef SOURCE_TEXT_MARK_H
#define SOURCE_TEXT_MARK_H

#include "base/str.h"

#define MARK_HEAD_BYTES 4096
#define MARK_TAIL_BYTES 256

typedef struct text_mark {
    int64_t head_len; /* bytes of the beginning that head is of */
    uint64_t head;
    size_t n_tail; /* the last bytes, as many as are known */
    char tail[MARK_TAIL_BYTES];
} text_mark;

/* FNV-1a of bytes behind others; of none before: MARK_NOTHING. */
#define MARK_NOTHING UINT64_C(0xCBF29CE484222325)
uint64_t mark_hash(uint64_t before, const char *bytes, size_t len);
/* The text goes on with bytes, which begin at byte at of it. */
void mark_add(text_mark *mark, int64_t at, const char *bytes, size_t len);

#endif
