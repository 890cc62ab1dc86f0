/* iceberg/delete_index.h - which row deletes apply to which data files (spec, "Scan Planning"), as
 * a pure function of manifest entries.
 *
 * A position delete or vector reaches data of its own or an older sequence number; an equality
 * delete strictly older data only; both their own spec and partition, but for equality deletes of
 * an unpartitioned spec, which reach all. A vector takes the place of a file's position deletes.
 * Position deletes that name one data file (referenced_data_file, or equal path bounds) reach that
 * one only. Equality deletes are left out where the bounds of both files prove that no key is
 * common. */
#ifndef ICEBERG_DELETE_INDEX_H
#define ICEBERG_DELETE_INDEX_H

#include "iceberg/manifest.h"

typedef struct delete_index delete_index;

/* Entries are borrowed and must live as long as the index; DELETED ones are ignored. Everything in
 * arena. CORRUPT: two live vectors for one data file. */
tarn_code delete_index_new(tarn_arena *arena, const tarn_metadata *m,
                           const tarn_entry *const *entries, int64_t n, delete_index **out,
                           tarn_error *err) TARN_MUST_USE;
/* The deletes that apply to one data file, in arena, vector first, then position deletes, then
 * equality deletes by sequence number. Fast where there are none: O(log n) however many other
 * deletes there are. */
tarn_code delete_index_find(const delete_index *index, tarn_arena *arena, const tarn_file *data,
                            int64_t sequence_number, const tarn_entry *const **out, int32_t *n,
                            tarn_error *err) TARN_MUST_USE;

/* Of one partition of one spec. */
bool files_share_partition(const tarn_file *a, const tarn_file *b);
/* Bytes that files of one partition of one spec, and only they, have alike; in arena; data NULL: no
 * memory. */
tarn_str file_partition_key(tarn_arena *arena, const tarn_file *file);
/* Whether an equality delete file is of an unpartitioned spec and reaches all data. */
bool delete_is_global(const tarn_metadata *m, const tarn_file *file);
/* The one data file that a position delete file or vector names; len 0: it may be any. */
tarn_str delete_only_file(const tarn_file *file);

#endif
