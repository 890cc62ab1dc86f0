/* table/positions.h - a set of row positions within one data file: what position deletes and
 * deletion vectors mean. A bitmap (CRoaring) by the upper 32 bits, so that sparse and dense sets
 * are both small. Positions are 0 and up. One thread at a time to change, any number to read. */
#ifndef TABLE_POSITIONS_H
#define TABLE_POSITIONS_H

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"

#include <stddef.h>

typedef struct tarn_positions tarn_positions;

tarn_code positions_new(tarn_env *env, tarn_positions **out, tarn_error *err) TARN_MUST_USE;
void positions_free(tarn_positions *p); /* takes NULL */
/* INVALID: a negative position, or one beyond what a deletion vector can hold. Sorted runs are
 * fastest. */
tarn_code positions_add(tarn_positions *p, const int64_t *positions, size_t n,
                        tarn_error *err) TARN_MUST_USE;
tarn_code positions_add_all(tarn_positions *p, const tarn_positions *from,
                            tarn_error *err) TARN_MUST_USE;
bool positions_has(const tarn_positions *p, int64_t position);
int64_t positions_count(const tarn_positions *p);
int64_t positions_max(const tarn_positions *p);  /* -1: empty */
size_t positions_bytes(const tarn_positions *p); /* memory, roughly */
/* Clears bit i of keep for every position start + i, 0 <= i < n, that is in p; returns how many
 * bits it cleared that were set. */
int64_t positions_clear(const tarn_positions *p, int64_t start, int64_t n, uint8_t *keep);
/* All positions, rising; out has room for positions_count. */
void positions_list(const tarn_positions *p, int64_t *out);
/* The first cap of those that are from or above; returns how many there were. */
size_t positions_from(const tarn_positions *p, int64_t from, int64_t *out, size_t cap);
/* The 64-bit roaring "portable" layout of deletion-vector-v1 (Puffin spec): no magic, length or
 * checksum around it. Reading checks all of it; what names a file is the caller's to add. */
tarn_code positions_write(const tarn_positions *p, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
tarn_code positions_read(tarn_env *env, const uint8_t *bytes, size_t len, tarn_positions **out,
                         tarn_error *err) TARN_MUST_USE;

#endif
