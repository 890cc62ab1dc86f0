/* service/file_index.h - which data files a table was given, and which of them were merged away: so
 * that a file that comes again under another id is refused, is not merged, and is never removed
 * while the table names it (docs/decisions/0010-files-are-sent-once.md).
 *
 * Invariants: 1 every file that a snapshot added which came after since_ms is known, whoever
 * committed it; 2 so a file that was written later than that and is not known is in no snapshot:
 * the older ones were made before it was written. What is older may be anywhere: it is not fresh;
 * 3 files that were merged away are told by the snapshots that hold what they were merged to
 * (FILE_INDEX_KEY of their manifest lists), so that any server on the table knows them before it
 * can commit on top. Paths are known by a hash that is the same for all spellings of a path. Memory
 * is bounded: since_ms moves on when the oldest are forgotten. One thread at a time. */
#ifndef SERVICE_FILE_INDEX_H
#define SERVICE_FILE_INDEX_H

#include "base/map.h"
#include "iceberg/metadata.h"
#include "store/store.h"
#include "table/file_entry.h"

/* In a snapshot's summary: how many originals its merged files stand for. */
#define COMPACT_SUMMARY "tarn.compacted-files"
/* In the header of a manifest list: hashes of the files that were merged away, one a line. */
#define FILE_INDEX_KEY "tarn.compacted-paths"

#define FILE_INDEX_PATHS     100000  /* known at least, once there were so many */
#define FILE_INDEX_SNAPSHOTS 2000    /* read back at most when a table is first met */
#define FILE_INDEX_BACK_MS   3600000 /* and no older ones than that */
#define FILE_INDEX_SKEW_MS   60000   /* by which clocks may differ, as Iceberg has it */

/* The newest paths, to the snapshots that said them. */
typedef struct path_memory {
    tarn_env *env;
    struct {
        tarn_arena arena;
        tarn_map paths;   /* by their hashes */
        int64_t until_ms; /* time of the newest snapshot in it */
    } generations[2];     /* the newer first */
} path_memory;

typedef struct file_index {
    path_memory added; /* TARN_NO_SNAPSHOT: removed since; older snapshots name it */
    path_memory merged;
    char uuid[64];  /* of the table that it is about */
    int64_t newest; /* the last snapshot that was read; TARN_NO_SNAPSHOT: none */
    int64_t since_ms;
    bool begun;
} file_index;

void file_index_init(file_index *index, tarn_env *env);
void file_index_release(file_index *index);
/* Reads what m has and is not known. A manifest that cannot be read is logged, and nothing that is
 * older than its snapshot is fresh. */
tarn_code file_index_follow(file_index *index, tarn_store *store, const tarn_metadata *m,
                            tarn_error *err) TARN_MUST_USE;
/* Whether a snapshot is known to name it; *by: which added it, TARN_NO_SNAPSHOT where it was
 * removed since. by may be NULL. */
bool file_index_has(const file_index *index, tarn_str path, int64_t *by);
/* Whether it was merged away, and by which snapshot. */
bool file_index_merged(const file_index *index, tarn_str path, int64_t *by);
/* Whether it is certain that no snapshot names it, or ever did, as a file of its own. NOT_FOUND: it
 * is not there. */
tarn_code file_index_fresh(const file_index *index, tarn_store *store, tarn_str path, bool *out,
                           tarn_error *err) TARN_MUST_USE;
uint64_t file_index_hash(tarn_str path);
/* The text under FILE_INDEX_KEY; in arena. */
tarn_code file_index_text(tarn_arena *arena, const tarn_str *paths, int32_t n, tarn_str *out,
                          tarn_error *err) TARN_MUST_USE;

#endif
