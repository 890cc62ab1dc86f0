/* tarn/sink.h - rows into a table. A sink takes batches, writes data files, and commits them at
 * checkpoints; what was not committed is removed when the sink is freed. One thread at a time per
 * sink; any number of sinks and processes per table. */
#ifndef TARN_SINK_H
#define TARN_SINK_H

#include <tarn/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_sink tarn_sink;

typedef enum tarn_sink_mode {
    TARN_SINK_APPEND = 0,
    TARN_SINK_OVERWRITE =
        1, /* replaces rows matching `overwrite_where` (NULL: all rows) in one commit */
    TARN_SINK_REPLACE_PARTITIONS = 2 /* dynamic partition overwrite */
} tarn_sink_mode;

typedef struct tarn_sink_options {
    uint32_t struct_size;
    tarn_sink_mode mode;
    const char *overwrite_where; /* @borrow */
    const char *branch;          /* NULL: main. @borrow */
    bool merge_manifests;  /* merge append instead of fast append (Iceberg's default for batch jobs)
                            */
    uint64_t memory_bytes; /* for open files; 0: 128 MiB */
    const char *summary_json; /* extra snapshot summary entries; NULL: none. @borrow */
} tarn_sink_options;

#define TARN_SINK_OPTIONS_INIT                                                                     \
    { sizeof(tarn_sink_options), TARN_SINK_APPEND, NULL, NULL, false, 0, NULL }

TARN_API TARN_MUST_USE tarn_code
tarn_sink_open(tarn_table *table,                /* @keep */
               const tarn_sink_options *options, /* @borrow, may be NULL */
               tarn_sink **out,                  /* @give: tarn_sink_free */
               tarn_error *err /* @borrow, may be NULL */);
/* Writes one batch. Columns are matched by name to the table's; narrower types are widened, missing
 * optional columns are null; anything else is INVALID naming the column, and the batch is not
 * taken. After a failure of another kind all rows since the last commit may be lost: then the next
 * tarn_sink_commit fails too, commits nothing, and the sink begins afresh. array is moved on
 * success. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code tarn_sink_write(tarn_sink *sink,                  /* @borrow */
                                                 const struct ArrowSchema *schema, /* @borrow */
                                                 struct ArrowArray *array,         /* @take */
                                                 tarn_error *err /* @borrow, may be NULL */);
/* Commits everything written since the last commit as one snapshot. Nothing written: no snapshot,
 * TARN_COMMIT_NONE and OK. CONFLICT and others: nothing was committed and the files are removed.
 * COMMIT_UNKNOWN: files are kept. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code tarn_sink_commit(tarn_sink *sink,       /* @borrow */
                                                  tarn_outcome *outcome, /* @borrow */
                                                  tarn_error *err /* @borrow, may be NULL */);
TARN_API void tarn_sink_free(tarn_sink *sink /* @take, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
