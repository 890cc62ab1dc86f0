/* sink/keys_int.h - what keys.c and keys_index.c share. */
#ifndef SINK_KEYS_INT_H
#define SINK_KEYS_INT_H

#include "sink/keys.h"

/* Opens the indexes, and reads from the table what they do not know of `head`. */
tarn_code keys_follow(sink_keys *k, const tarn_metadata *m, int64_t head,
                      tarn_error *err) TARN_MUST_USE;
void keys_close_indexes(sink_keys *k);

#endif
