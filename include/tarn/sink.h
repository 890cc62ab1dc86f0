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
    const char *branch;    /* NULL: main. One that is not there begins at main's snapshot, as it is
                              when the first commit makes the branch. @borrow */
    bool merge_manifests;  /* merge append instead of fast append: small manifests are joined as the
                              table's commit.manifest.* say. With state_dir or table_offsets always,
                              as commits go on and on, unless commit.manifest-merge.enabled is false
                            */
    uint64_t memory_bytes; /* for open files; 0: 128 MiB */
    const char *summary_json; /* extra snapshot summary entries; NULL: none. @borrow */
    /* Changes by key: */
    bool upsert;         /* an insert takes the place of all rows of its key */
    const char *key;     /* columns of the key, comma separated; NULL: the identifier fields. A
                            state_dir with rows keeps its key: another, or none, is INVALID, unless
                            it became the table's identifier fields. @borrow */
    const char *deletes; /* "equality", "position", "vector"; NULL: the table's property
                            tarn.row-deletes. @borrow */
    /* Streams: */
    const char *state_dir; /* folder for checkpoints that are not committed yet, offsets and the key
                              index; NULL: none, no recovery. @borrow */
    const char *sink_id;   /* who writes, over restarts; NULL: the one in state_dir, or a fresh one.
                              @borrow */
    int32_t writers;       /* task writers side by side; 0: 1 */
    const char *distribution; /* "none", "hash", "range"; NULL: write.distribution-mode. @borrow */
    int32_t empty_commit_every; /* checkpoints without rows commit every so many times; 0: never */
    bool changes; /* rows come with kinds (tarn_sink_write_changes): needs a key and a kind of
                     deletes, as upsert does. Implied by key and by deletes */
    bool accept_rollback; /* where the branch was rolled back or moved, and no longer holds the last
                             checkpoint that the state says was committed, go on without what was
                             taken back; else that is CONFLICT, at open and at every commit */
    const char *table_offsets; /* name under which the table itself keeps the offsets of
                                  checkpoints, in its snapshots, instead of a state_dir: for sources
                                  that share their input with others (tarn_source_options'
                                  kafka_balance). NULL: it does not. @borrow */
    bool background; /* checkpoints become durable and are committed beside the writing that goes
                        on, several with one move of the table's pointer where the disk is slower
                        than the stream. Needs state_dir */
} tarn_sink_options;

#define TARN_SINK_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(tarn_sink_options), TARN_SINK_APPEND, NULL, NULL, false, 0, NULL, false, NULL,      \
            NULL, NULL, NULL, 0, NULL, 0, false, false, NULL, false                                \
    }

TARN_API TARN_MUST_USE tarn_code
tarn_sink_open(tarn_table *table,                /* @keep */
               const tarn_sink_options *options, /* @borrow, may be NULL */
               tarn_sink **out,                  /* @give: tarn_sink_free */
               tarn_error *err /* @borrow, may be NULL */);
/* Writes one batch. Columns are matched by name to the table's; narrower types are widened, missing
 * optional columns are null; anything else is INVALID naming the column, and the batch is not
 * taken. After a failure of another kind all rows since the last commit may be lost: then the next
 * tarn_sink_commit fails too, commits nothing, and the sink begins afresh. array is moved on
 * success, and released once its rows are written: at the latest by the next checkpoint, and with
 * several writers perhaps on another thread. @since 0.1 */
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
/* The same with a kind for each row: 0 insert, 1 update-before, 2 update-after, 3 delete (kinds:
 * one a row; NULL: inserts). Deletes and updates need a key. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_sink_write_changes(tarn_sink *sink,                  /* @borrow */
                        const struct ArrowSchema *schema, /* @borrow */
                        struct ArrowArray *array,         /* @take */
                        const uint8_t *kinds,             /* @borrow, may be NULL */
                        tarn_error *err /* @borrow, may be NULL */);
/* What a source said at the last checkpoint that this sink made durable in its state_dir, committed
 * by now; NULL in *out: there is none. Read right after open, to go on from there. With
 * table_offsets: what the table says now, which others may have moved. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code tarn_sink_offsets(tarn_sink *sink, /* @borrow */
                                                   char **out,      /* @give: tarn_text_free */
                                                   tarn_error *err /* @borrow, may be NULL */);
/* A checkpoint: everything written so far, and where the source stands (a JSON text of its own),
 * become durable in state_dir, then are committed. Once this was called, a kill at any point loses
 * and doubles nothing: the next tarn_sink_open of this state commits what was durable, exactly
 * once. Without state_dir it is tarn_sink_commit.
 *
 * With table_offsets: offsets are a balanced source's, from where to where its rows were read, and
 * the commit is refused with CONFLICT where the table does not stand where they begin, since
 * somebody else read those rows: they are dropped, and read again from tarn_sink_offsets, as after
 * COMMIT_UNKNOWN.
 *
 * With background it only hands the checkpoint over: outcome is that of what was committed since it
 * was last asked (the last snapshot; rows and files of all), TARN_COMMIT_NONE where nothing was,
 * and a failure is one of an earlier checkpoint: then the sink is to be opened again, to go on from
 * tarn_sink_offsets. tarn_sink_commit waits. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_sink_checkpoint(tarn_sink *sink,       /* @borrow */
                     const char *offsets,   /* @borrow, may be NULL */
                     tarn_outcome *outcome, /* @borrow */
                     tarn_error *err /* @borrow, may be NULL */);
/* With background: waits until every checkpoint so far is committed; outcome as from
 * tarn_sink_checkpoint. Else, or when nothing is under way, there is nothing to wait for:
 * TARN_COMMIT_NONE. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code tarn_sink_flush(tarn_sink *sink,       /* @borrow */
                                                 tarn_outcome *outcome, /* @borrow */
                                                 tarn_error *err /* @borrow, may be NULL */);
/* The columns of the sink's key, comma separated, each between double quotes: a source's key. NULL
 * in *out: the sink was opened for appends. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code tarn_sink_key(const tarn_sink *sink, /* @borrow */
                                               char **out,            /* @give: tarn_text_free */
                                               tarn_error *err /* @borrow, may be NULL */);
/* What a sink did. As total: what is in the table since it was opened, which includes what an
 * earlier job had left in its state; what was given up, to be made again, is never counted, so no
 * number goes down. As last: what the last checkpoint wrote, and the last commits. */
typedef struct tarn_sink_numbers {
    int64_t checkpoints;  /* with or without rows */
    int64_t rows;         /* written to data files */
    int64_t deleted_rows; /* entries of delete files; a vector counts all it holds */
    int64_t data_files, delete_files;
    int64_t bytes;   /* of both kinds of files */
    int64_t commits; /* snapshots made */
    int64_t retries; /* of commits that others were in the way of */
    int64_t commit_ms;
} tarn_sink_numbers;
/* A checkpoint that became a snapshot. */
typedef struct tarn_sink_committed {
    uint32_t struct_size;
    int64_t checkpoint, snapshot_id;
    tarn_sink_numbers numbers; /* its own; commit_ms and retries are of the commit, which may have
                                  made snapshots of others too */
} tarn_sink_committed;
#define TARN_SINK_COMMITTED_INIT                                                                   \
    {                                                                                              \
        sizeof(tarn_sink_committed), 0, 0, {                                                       \
            0, 0, 0, 0, 0, 0, 0, 0, 0                                                              \
        }                                                                                          \
    }
/* The oldest one that was not told of yet; false: there is none. The first checkpoint that this
 * sink made is number 1, those that another job left and its opening committed come before it: 0,
 * -1 ... Those without rows make none and are not told of. At most 1024 are kept for a caller that
 * does not ask. @since 0.2 */
TARN_API bool tarn_sink_next_commit(tarn_sink *sink, /* @borrow */
                                    tarn_sink_committed *out /* @borrow, begins as its _INIT */);

typedef struct tarn_sink_stats {
    uint32_t struct_size;
    int32_t writers;            /* side by side */
    int32_t pending;            /* checkpoints that are durable and not committed */
    uint64_t memory_bytes;      /* of the whole env, now */
    uint64_t memory_peak_bytes; /* the same, at most */
    tarn_sink_numbers total, last;
    int32_t open_files;     /* data files being written */
    int32_t finished_files; /* of both kinds; they wait for the next checkpoint, and each takes some
                               3 KB until it is committed: make one before they take too much */
} tarn_sink_stats;

#define TARN_SINK_STATS_INIT                                                                       \
    {                                                                                              \
        sizeof(tarn_sink_stats), 0, 0, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0},                          \
            {0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0                                                      \
    }

/* Cheap; between the other calls of the same thread. @since 0.2 */
TARN_API void tarn_sink_stats_get(const tarn_sink *sink, /* @borrow */
                                  tarn_sink_stats *out /* @borrow */);
/* The table is gone, or about to be dropped: what state_dir remembers of it is of no more use, and
 * is removed by tarn_sink_free. Nothing without state_dir. @since 0.2 */
TARN_API void tarn_sink_forget(tarn_sink *sink /* @borrow */);
TARN_API void tarn_sink_free(tarn_sink *sink /* @take, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
