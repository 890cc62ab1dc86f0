/* write/files/data_writer.h - rows become data files: partitioned fan-out of rolling file writers.
 *
 * Invariants: 1 a file that is not finished is never in a write result; 2 a finished file is in
 * exactly one write result or removed by abort; 3 at most `max_open` files are open, the one
 * written to longest ago is closed first; 4 buffered bytes stay under `memory_bytes` by closing the
 * largest; 5 after a failure in the middle of a batch nothing is handed out any more, so that no
 * batch is committed in part; 6 a file that names a sort order is wholly sorted by it.
 *
 * Sorting (a default sort order, and not keep_order): a partition's rows are held until the writer
 * closes. What does not fit in memory_bytes is sorted and waits as a run in a temporary file
 * (store/store_temp.h); the runs are merged into files of the target size when the writer closes,
 * or when what waits is 32 times the target size, unpacked. Many rows that come in order go into
 * the open file at once, without a detour. Rows that are held (hold) have a number, a column behind
 * all others until they are written, and all wait for the close: what is dropped by then is never
 * written. */
#ifndef WRITE_FILES_DATA_WRITER_H
#define WRITE_FILES_DATA_WRITER_H

#include "iceberg/metadata.h"
#include "store/store.h"
#include "table/batch.h"
#include "table/file_entry.h"

/* Rows lie in a file (data_writer_file) from position on, one behind the other. */
typedef tarn_code (*data_writer_placed)(void *ctx, const tarn_batch *rows, int32_t file,
                                        int64_t position, tarn_error *err);

typedef struct data_writer_options {
    const tarn_metadata
        *metadata;         /* outlives the writer: current schema, properties (write.format.default
                              parquet|avro, write.target-file-size-bytes 512 MB, write.parquet.*) */
    const tarn_spec *spec; /* NULL: the default one */
    int32_t partition_id, task_id; /* parts of file names; with operation_id not those of another
                                      writer of the same kind of files */
    const char *operation_id;      /* uuid text; NULL: a fresh one */
    size_t memory_bytes;           /* 0: 128 MiB */
    int32_t max_open;              /* 0: LIMIT_OPEN_WRITERS */
    /* With equality_ids: equality delete files instead of data files. Batches are rows of `root`
     * (fields of the current schema with their ids, the key and the partition sources among them;
     * outlives the writer), and the files' entries are EQUALITY_DELETES with these ids (format
     * version 2 and up). Without: data files of rows of `root`, which is the current schema with
     * v3's row lineage columns behind (rows that keep their ids). NULL: the current schema. */
    const tarn_type *root;
    const int32_t *equality_ids;
    int32_t n_equality_ids;
    /* Rows keep the order in which they were written, so that data_writer_locate is possible; else
     * rows of a file are sorted where the table has a sort order. */
    bool keep_order;
    /* Rows of a table with a sort order are sorted also where they are to be located: they are held
     * until the close, and data_writer_locate gives their numbers (DATA_HELD). placed (may be NULL)
     * hears where those went that were not dropped. Stands above keep_order. */
    bool hold;
    data_writer_placed placed;
    void *placed_ctx;
    int64_t target_bytes; /* of a file; 0: as the properties say */
} data_writer_options;

/* What a writer hands to a committer; everything lives in the arena that close was given. */
typedef struct write_result {
    tarn_file *files; /* data files */
    int32_t n_files;
    int64_t rows;
    tarn_file *deletes; /* delete files of all kinds */
    int32_t n_deletes;
    int64_t deleted_rows;       /* records in them */
    const tarn_str *referenced; /* data files that must be live when this is committed */
    int32_t n_referenced;
    tarn_entry *removed_deletes; /* delete files that the new ones stand in for */
    int32_t n_removed_deletes;
} write_result;

/* Where a row was put: files are numbered in the order in which the writer began them. */
typedef struct row_location {
    int32_t file;     /* data_writer_file; DATA_HELD */
    int64_t position; /* in it; DATA_HELD: the row's number */
} row_location;
#define DATA_HELD (-1) /* in none yet: for data_writer_drop */

typedef struct data_writer data_writer;
tarn_code data_writer_new(tarn_env *env, tarn_store *store, const data_writer_options *options,
                          data_writer **out, tarn_error *err) TARN_MUST_USE;
/* A batch of the current schema's rows. Required columns are checked (INVALID names the column, and
 * nothing is taken). After any other failure every later call but free fails with the same code. */
tarn_code data_writer_write(data_writer *w, const tarn_batch *batch, tarn_error *err) TARN_MUST_USE;
/* The same, and says where each row went (out: one a row). Needs keep_order or hold. */
tarn_code data_writer_locate(data_writer *w, const tarn_batch *batch, row_location *out,
                             tarn_error *err) TARN_MUST_USE;
/* The row that is held under this number will be in no file. */
tarn_code data_writer_drop(data_writer *w, int64_t number, tarn_error *err) TARN_MUST_USE;
/* Path, spec and partition of a file by number, also of one that is not finished; valid until the
 * close after the next. */
const tarn_file *data_writer_file(const data_writer *w, int32_t number);
/* Finishes all open files and sets all of out: files, or deletes where the writer makes equality
 * deletes. On failure everything written is removed (best effort), and only free is
 * left to call. The writer can go on writing after a successful close (next checkpoint). */
tarn_code data_writer_close(data_writer *w, tarn_arena *arena, write_result *out,
                            tarn_error *err) TARN_MUST_USE;
int32_t data_writer_open_files(const data_writer *w);     /* being written now */
int32_t data_writer_finished_files(const data_writer *w); /* for the next close to hand out */
void data_writer_free(data_writer *w); /* removes files that no close handed out; takes NULL */
/* Removes the files of a result that was definitely not committed; failures are logged. */
int64_t write_result_bytes(const write_result *result); /* of its files */
void write_result_remove(tarn_store *store, const write_result *result);

#endif
