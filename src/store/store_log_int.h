/* store/store_log_int.h - the bytes of store_log.h's segments, and reading them back.
 *
 *   segment: head, then records   record: head, then its payload   all little-endian */
#ifndef STORE_STORE_LOG_INT_H
#define STORE_STORE_LOG_INT_H

#include "base/num.h"
#include "store/store_log.h"

#define STORE_LOG_PAYLOAD_BYTES (1u << 30) /* the longest of one record */

typedef struct segment_head {
    char magic[8];
    uint32_t crc; /* of all behind it */
    uint32_t version;
    int64_t number;
    int64_t first_position;
    int64_t prev_number; /* the segment that was written to before; -1: none */
    int64_t prev_bytes;  /* how much of it was durable */
    char id[40];
} segment_head;

typedef struct record_head {
    uint32_t magic;
    uint32_t crc; /* of all behind it */
    uint32_t kind;
    uint32_t length;
    uint32_t body_crc;
    uint32_t segment; /* the low bits of its number */
    int64_t position;
    int64_t synced; /* offset up to which the segment was durable when this was written */
    int64_t time_ms;
} record_head;

void segment_head_fill(segment_head *head, const char *id, int64_t number, int64_t first_position,
                       int64_t prev_number, int64_t prev_bytes);
void record_head_fill(record_head *head, const store_log_entry *e, int64_t synced);

char *log_scan_copy(tarn_env *env, const char *text); /* NULL: no memory */
char *log_scan_path(tarn_env *env, const char *dir, const char *name, int64_t number); /* too */
/* Numbers of the segments that are there, rising; the caller's. */
tarn_code log_scan_list(tarn_env *env, const char *dir, const char *name, int64_t **out, size_t *n,
                        tarn_error *err) TARN_MUST_USE;

typedef struct scan_result {
    int64_t bytes; /* up to the end of the last record; 0: not even a head */
    int64_t first_position, prev_number, prev_bytes;
    char id[37];
} scan_result;
tarn_code log_scan_head(tarn_env *env, const char *path, int64_t number, scan_result *out,
                        tarn_error *err) TARN_MUST_USE;
/* Gives every record to fn. limit: so much was durable, and there is no more; -1: not known. */
tarn_code log_scan_segment(tarn_env *env, const char *path, int64_t number, int64_t limit,
                           store_log_fn fn, void *ctx, scan_result *out,
                           tarn_error *err) TARN_MUST_USE;
/* The record at place, in bytes. */
tarn_code log_scan_one(const char *path, const store_log_place *place, tarn_buf *bytes,
                       store_log_record *out, tarn_error *err) TARN_MUST_USE;

#endif
