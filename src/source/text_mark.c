/* source/text_mark.c - see text_mark.h. */
#include "source/text_mark.h"

uint64_t mark_hash(uint64_t before, const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) {
        before = (before ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001B3);
    }
    return before;
}

static void add_head(text_mark *mark, int64_t at, const char *bytes, size_t len) {
    int64_t known = mark->head_len - at; /* of bytes */
    if (known < 0 || (uint64_t)known >= len || mark->head_len >= MARK_HEAD_BYTES) {
        return;
    }
    size_t more = len - (size_t)known;
    size_t room = (size_t)(MARK_HEAD_BYTES - mark->head_len);
    more = more < room ? more : room;
    mark->head = mark_hash(mark->head_len > 0 ? mark->head : MARK_NOTHING, bytes + known, more);
    mark->head_len += (int64_t)more;
}

void mark_add(text_mark *mark, int64_t at, const char *bytes, size_t len) {
    add_head(mark, at, bytes, len);
    if (len >= MARK_TAIL_BYTES) {
        memcpy(mark->tail, bytes + (len - MARK_TAIL_BYTES), MARK_TAIL_BYTES);
        mark->n_tail = MARK_TAIL_BYTES;
        return;
    }
    size_t keep = MARK_TAIL_BYTES - len;
    keep = mark->n_tail < keep ? mark->n_tail : keep;
    memmove(mark->tail, mark->tail + (mark->n_tail - keep), keep);
    if (len > 0) {
        memcpy(mark->tail + keep, bytes, len);
    }
    mark->n_tail = keep + len;
}
