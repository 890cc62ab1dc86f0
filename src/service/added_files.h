/* service/added_files.h - which data files snapshots have added: asked for a commit that is put on
 * a newer head, since its client may have looked whether its files are in the table, of the head
 * that it saw (add_files of PyIceberg and Spark).
 *
 * Invariants: 1 a snapshot's files never change, so what is known of it holds whatever becomes of
 * the commit that it was made for; the same id with another manifest list is another snapshot; 2
 * memory is bounded by ADDED_FILES_MOST; what is not known is read, and what cannot be read is no
 * answer; 3 more than is remembered at once is not looked through, so that no commit makes the
 * others wait for it. Paths are known by file_index_hash: two of one hash count as one file. One
 * memory for all tables; any thread. */
#ifndef SERVICE_ADDED_FILES_H
#define SERVICE_ADDED_FILES_H

#include "iceberg/metadata.h"
#include "store/store.h"
#include "table/file_entry.h"

/* Hashes in a generation, of which there are two; a snapshot counts as some more. */
#define ADDED_FILES_MOST     (INT64_C(1) << 20)
#define ADDED_FILES_SNAPSHOT 32

/* Files by the hashes of their paths, in order. */
typedef struct added_paths {
    const uint64_t *hashes;
    int32_t n;
} added_paths;

tarn_code added_paths_of(tarn_arena *arena, const tarn_file *files, int32_t n, added_paths *out,
                         tarn_error *err) TARN_MUST_USE;

typedef struct added_files added_files;

tarn_code added_files_new(tarn_env *env, added_files **out, tarn_error *err) TARN_MUST_USE;
void added_files_free(added_files *known); /* takes NULL */
/* What the snapshot adds; where there is no memory for it, it is read when it is asked for. */
void added_files_remember(added_files *known, const tarn_snapshot *s, added_paths paths);

typedef struct added_question {
    tarn_store *store;
    const tarn_metadata *metadata;
    const tarn_snapshot *head; /* NULL: there is none */
    int64_t since_id;          /* TARN_NO_SNAPSHOT: since ever */
    added_paths paths;
} added_question;

/* Whether head or one of its ancestors after since_id added one of these, whatever became of it:
 * which did (NULL: none), and the hash. CONFLICT: the history has not all of them; LIMIT: they are
 * too many. */
tarn_code added_files_ask(added_files *known, const added_question *question,
                          const tarn_snapshot **by, uint64_t *hash, tarn_error *err) TARN_MUST_USE;

#endif
