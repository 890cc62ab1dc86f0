/* write/files/delete_writer.h - row deletes become delete files: position delete files or, in
 * format version 3, deletion vectors. (Equality delete files are rows of key columns: data_writer
 * writes them.)
 *
 * Invariants: 1 within a file positions are sorted by path, then position, each once (spec,
 * "Position Delete Files"); 2 a close gives at most one vector per data file, and all vectors of
 * one close share Puffin files that roll at the target size; 3 memory is bounded: what is collected
 * is a bitmap per data file; 4 as in data_writer, a file that is not finished is in no result. */
#ifndef WRITE_FILES_DELETE_WRITER_H
#define WRITE_FILES_DELETE_WRITER_H

#include "table/positions.h"
#include "write/files/data_writer.h"

typedef enum delete_kind {
    DELETE_NONE = 0, /* not chosen */
    DELETE_EQUALITY,
    DELETE_POSITION,
    DELETE_VECTOR
} delete_kind;

typedef struct delete_writer_options {
    const tarn_metadata *metadata; /* outlives the writer; vectors need format version 3, position
                                      deletes version 2 (INVALID otherwise, with why) */
    delete_kind kind;              /* DELETE_POSITION or DELETE_VECTOR */
    int32_t partition_id, task_id;
    const char *operation_id; /* NULL: a fresh one */
} delete_writer_options;

typedef struct delete_writer delete_writer;
tarn_code delete_writer_new(tarn_env *env, tarn_store *store, const delete_writer_options *options,
                            delete_writer **out, tarn_error *err) TARN_MUST_USE;
/* Rows of one data file, named by its path and entry (spec and partition; copied on first sight).
 * Positions in any order, twice or not. */
tarn_code delete_writer_add(delete_writer *w, const tarn_file *data, const int64_t *positions,
                            size_t n, tarn_error *err) TARN_MUST_USE;
/* What is deleted in that file already, by the vector or position deletes before: a vector must
 * hold all of it. before: the delete file entries (tarn_entry) that this one replaces; they come
 * out in the result's removed_deletes. For position deletes of file granularity the same holds. */
tarn_code delete_writer_merge(delete_writer *w, const tarn_file *data, const tarn_positions *before,
                              const tarn_entry *const *replaced, int32_t n_replaced,
                              tarn_error *err) TARN_MUST_USE;
/* Granularity of position deletes: write.delete.granularity (partition | file; default file), as
 * Iceberg's. Adds to out (files already there stay): deletes, referenced, removed_deletes. */
tarn_code delete_writer_close(delete_writer *w, tarn_arena *arena, write_result *out,
                              tarn_error *err) TARN_MUST_USE;
void delete_writer_free(delete_writer *w); /* takes NULL */

#endif
