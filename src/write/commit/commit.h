/* write/commit/commit.h - files become a snapshot. The protocol (docs/ARCHITECTURE.md, "Commit"):
 *
 *   load base -> validate against what changed since from_snapshot_id -> write manifests and list
 *             -> swap (catalog_commit); on CONFLICT: refresh, back off with jitter
 *                (commit.retry.*), and again from validate.
 *
 * Invariants: 1 after the swap was sent only COMMITTED or UNKNOWN is said, unless the catalog
 * refused for certain; 2 under UNKNOWN nothing is removed; 3 what lost attempts wrote is removed
 * only after the fate of the commit is known, and never anything that the table as loaded then
 * refers to (B28, B29); 4 a snapshot id is chosen once per commit and looked for before trying
 * again, so that a commit is never doubled; 5 a fast append reads no manifest. */
#ifndef WRITE_COMMIT_COMMIT_H
#define WRITE_COMMIT_COMMIT_H

#include "catalog/catalog.h"
#include "iceberg/manifest.h"
#include "table/expr.h"
#include "table/file_entry.h"

typedef enum commit_kind {
    COMMIT_FAST_APPEND,  /* one new manifest (or several), everything else as it is */
    COMMIT_MERGE_APPEND, /* the same, then small manifests are merged
                            (commit.manifest.min-count-to-merge, target-size-bytes,
                            commit.manifest-merge.enabled): what streams do, whose list would
                            else have one more each checkpoint */
    COMMIT_OVERWRITE,    /* removes files given and/or all files fully matching filter, adds files:
                            operation overwrite (delete when nothing is added) */
    COMMIT_REPLACE_PARTITIONS, /* dynamic overwrite: every live file in a partition of an added file
                                  goes; validates that tuple's spec */
    COMMIT_DELETE_FILES,       /* removes files given or fully matching filter */
    COMMIT_ROW_DELTA /* adds data and delete files, replaces delete files; operation append
                        (data only), delete (deletes only) or overwrite, as Iceberg's */
} commit_kind;

/* Refused with DENIED where the newest snapshot of the branch whose summary says `of` (the first
 * entry; the others where it has them at all) has a higher number under this key, or has got to
 * this step or beyond it. */
typedef struct commit_fence {
    tarn_properties of;
    tarn_str number; /* key */
    int64_t at_most;
    tarn_str step; /* key; len 0: none */
    int64_t step_below;
    /* What was committed before, with a step: CONFLICT where the branch does not hold it any more
     * (commit_fence_holds). */
    int64_t holds; /* a snapshot; 0: nothing */
    int64_t holds_step;
} commit_fence;

/* A snapshot that somebody made on an older head of the branch, to be made again on the present
 * one: what stays of it. The last three are more to validate, since its maker cannot be asked: each
 * is a reading of what was committed since from_snapshot_id. */
typedef struct commit_origin {
    int64_t snapshot_id; /* CONFLICT where the table has it */
    int32_t schema_id;   /* -1: none */
    const char *operation;
    /* One a file, or NULL: data sequence numbers that were given to it; -1: the snapshot's own. */
    const int64_t *added_sequences;
    const int64_t *added_delete_sequences;
    const tarn_manifest *manifests; /* which hold the added files, and nothing else; n 0: they are
                                       written anew */
    int32_t n_manifests;
    bool no_new_rows;               /* any data file added is a CONFLICT, but those of rewrites */
    bool keeps_reach;               /* the same of those that the added equality deletes reach */
    bool outlives_equality_deletes; /* new equality deletes reach the added files as they did the
                                       removed ones: they are no CONFLICT */
} commit_origin;

/* What the delete manifests of a table were found to hold by commits before, so that a caller with
 * many commits in a row need not read those again that have nothing of what goes. Manifests never
 * change. For one commit at a time. */
typedef struct commit_memory commit_memory;
commit_memory *commit_memory_new(tarn_env *env); /* NULL: no memory for it */
void commit_memory_free(commit_memory *memory);  /* takes NULL */

typedef struct commit_request {
    commit_kind kind;
    const tarn_file *added;
    int32_t n_added;
    const tarn_entry
        *removed; /* data files to remove, as planned (path is the key); each must still be live */
    int32_t n_removed;
    /* Row deltas (also with COMMIT_OVERWRITE): */
    const tarn_file *added_deletes; /* position and equality delete files, vectors */
    int32_t n_added_deletes;
    const tarn_entry *removed_deletes; /* delete files that added ones stand in for; CONFLICT when
                                          one is gone */
    int32_t n_removed_deletes;
    const tarn_str *referenced; /* data files that must still be live, and for which nobody may have
                                   added row deletes since from_snapshot_id where
                                   check_new_deletes is set: else CONFLICT */
    int32_t n_referenced;
    bool check_new_deletes; /* position deletes, vectors, and rewrites (also of the `removed`) */
    bool merge;             /* small manifests are merged as by COMMIT_MERGE_APPEND, any kind */
    const tarn_expr
        *filter; /* overwrite/delete by filter: bound to the current schema; NULL: none. A file that
                    matches only in part is INVALID here: dml rewrites those first */
    tarn_str branch;           /* len 0: main. One that is not there begins at main's head */
    int64_t from_snapshot_id;  /* the snapshot the work was based on (validation starts after it);
                                  TARN_NO_SNAPSHOT: none */
    const tarn_property *mine; /* NULL, or: snapshots whose summary holds it are the caller's own,
                                  known to the work though it is based on older ones (commits in
                                  flight); what they did is no conflict */
    const tarn_expr *conflict_filter; /* serializable: a data file added since from_snapshot_id that
                                         may hold rows of it is a CONFLICT; NULL: not checked */
    tarn_properties summary;          /* extra summary entries */
    tarn_properties properties;       /* of the table, set with the snapshot */
    const char *commit_id; /* NULL, or a key kept in the summary as "tarn.commit-id": a snapshot of
                              the branch that has it already means COMMITTED */
    int64_t id_is_after;   /* with commit_id: a snapshot that was there before anything of this id
                              could be, so that only newer ones are looked at; 0: not known */
    bool allow_empty;      /* a snapshot also where nothing is added and nothing removed */
    const commit_origin *origin; /* NULL: a new snapshot */
    tarn_str table_uuid;         /* len 0, or: CONFLICT where the base is another table */
    const commit_fence *fence;   /* NULL: none */
    /* A catalog with batch commit may put this append into one snapshot with others. */
    bool share;
    /* Of such a snapshot: the ids of all, kept in the header of its manifest list (a summary would
     * make every later metadata document longer). */
    const tarn_str *shared_ids;
    int32_t n_shared_ids;
    tarn_properties list_properties; /* more entries of that header, which who knows them reads */
    /* Asked with the base of every attempt before anything is made of it; its error ends the
     * commit. NULL: nothing to ask. With check_each the answer matters for the very base that is
     * swapped, and what entries of summary hold may be set by it: a catalog with batch commit is
     * not asked to make such a snapshot, nor one with properties. */
    tarn_code (*check)(void *ctx, const tarn_metadata *base, tarn_error *err);
    void *check_ctx;
    bool check_each;
    commit_memory *memory; /* NULL: none */
} commit_request;

typedef struct commit_outcome {
    tarn_outcome_kind kind;
    int64_t snapshot_id; /* committed or unknown: the one to look for; nothing to do:
                            TARN_NO_SNAPSHOT */
    int32_t attempts;
    tarn_table_version
        *version; /* committed: the new version, to be released by the caller (NULL where a batch
                     commit was, and it could not be read again); else NULL */
} commit_outcome;

/* base NULL: loads it. outcome is always filled. Files of the request are never removed here. */
tarn_code commit_run(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     tarn_table_version *base, const commit_request *request,
                     commit_outcome *outcome, tarn_error *err) TARN_MUST_USE;

/* The same in steps, for callers with a swap of their own (invariants 2 to 5 hold of them too). */
typedef struct commit_maker commit_maker;
/* request outlives it. */
tarn_code commit_maker_new(tarn_env *env, tarn_store *store, const commit_request *request,
                           commit_maker **out, tarn_error *err) TARN_MUST_USE;
/* The changes for this base, which may be one that no document holds yet; both live until the next
 * attempt or the end. No changes: there is nothing to do. CONFLICT: refused for this base. What was
 * written is durable after the next store_sync. That the request's commit id is in the base already
 * is the caller's to ask (commit_find_id). */
tarn_code commit_maker_attempt(commit_maker *maker, const tarn_metadata *base, tarn_change_set *out,
                               tarn_error *err) TARN_MUST_USE;
int64_t commit_maker_snapshot_id(const commit_maker *maker);
/* Whether the last attempt made the snapshot as it is in the table: an earlier one's request may
 * have arrived late, and been put on a newer head by its server. */
bool commit_maker_made(const commit_maker *maker, const tarn_snapshot *s);
/* Every file that any attempt wrote; lives as long as the maker. */
void commit_maker_written(const commit_maker *maker, const tarn_str **out, int32_t *n);
/* What became of the last attempt: COMMITTED removes what lost attempts wrote, NOT_COMMITTED all
 * that was written, UNKNOWN nothing. Frees. Takes NULL. */
void commit_maker_end(commit_maker *maker, tarn_outcome_kind outcome);
/* What a request says of the table as it is: uuid and fence. */
tarn_code commit_check_base(const tarn_metadata *base, const commit_request *request,
                            tarn_error *err) TARN_MUST_USE;
/* Whether the branch still holds the snapshot fence->holds, or a newer one of the same, by its
 * step. It was moved back where it holds an older one, or everything to its first snapshot without
 * it; snapshots that expired prove nothing. */
bool commit_fence_holds(const tarn_metadata *m, tarn_str branch, const commit_fence *fence);
/* The ids in a shared snapshot's manifest list, one a line; len 0: it is no shared one. */
#define COMMIT_SHARED_COUNT "tarn.commit-count" /* summary: of a shared snapshot */
tarn_code commit_shared_ids(tarn_arena *arena, tarn_store *store, const tarn_snapshot *s,
                            tarn_str *out, tarn_error *err) TARN_MUST_USE;
/* The snapshot of the request's branch that carries its commit id; NULL: none. */
const tarn_snapshot *commit_find_id(const tarn_metadata *m, const commit_request *request);

/* commit_chain.c: several commits of one branch as so many snapshots, one on the other, with one
 * swap: the table gets all of them or none. Each has files, or allow_empty. One attempt: a failure
 * is followed by commit_run for each, with commit ids, also after UNKNOWN. Only the last goes to
 * the snapshot log, as of a branch that passed through the others. */
typedef struct commit_chain {
    const commit_request *requests;
    int32_t n;             /* at least 1 */
    int64_t *snapshot_ids; /* one for each */
} commit_chain;
tarn_code commit_run_chain(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                           const commit_chain *requests, commit_outcome *outcome,
                           tarn_error *err) TARN_MUST_USE; /* outcome: of the last */

/* The newest snapshot of the branch whose summary holds key with this value; NULL: none. cut (may
 * be NULL) says that the history was not whole, since ancestors were expired, and so that an older
 * one may have been there. Pure. */
const tarn_snapshot *commit_find_summary(const tarn_metadata *m, tarn_str branch, const char *key,
                                         tarn_str value, bool *cut);

/* Metadata-only commits (schema, properties, refs): make is called with each base until the swap
 * succeeds. */
typedef tarn_code (*commit_make_fn)(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                                    tarn_change_set *out, tarn_error *err);
tarn_code commit_changes(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                         commit_make_fn make, void *ctx, commit_outcome *outcome,
                         tarn_error *err) TARN_MUST_USE;

#endif
