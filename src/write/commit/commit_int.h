/* write/commit/commit_int.h - what the files of this room share: one commit in the making. */
#ifndef WRITE_COMMIT_COMMIT_INT_H
#define WRITE_COMMIT_COMMIT_INT_H

#include "base/map.h"
#include "iceberg/evaluate.h"
#include "iceberg/location.h"
#include "iceberg/summary.h"
#include "write/commit/commit.h"

#define SHARED_IDS_KEY "tarn.commit-ids" /* header of a manifest list */

typedef struct path_list { /* paths in an arena */
    tarn_str *items;
    size_t count, cap;
} path_list;

/* Distinct partition tuples, of any spec. */
typedef struct tuple_set {
    tarn_map keys;
    tarn_file *items; /* spec and partition alone */
    int32_t n, cap;
    bool all; /* a tuple was not known: any partition is meant */
} tuple_set;

/* Lives from the first attempt to the last. */
typedef struct commit_work {
    tarn_env *env;
    tarn_store *store;
    const commit_request *request;
    tarn_arena arena;
    int64_t snapshot_id;  /* chosen once (invariant 4) */
    char uuid[37];        /* part of the names of what we write */
    int32_t n_names;      /* manifests named so far */
    int32_t attempt;      /* from 1 */
    path_list written;    /* every metadata file that any attempt wrote */
    tarn_manifest *added; /* manifests of the request's files, data before deletes: written once,
                             used by every attempt */
    int32_t n_added;
    int32_t added_format; /* the format version they were written for */
} commit_work;

/* One attempt's view of the table and what it makes of it. */
typedef struct commit_attempt {
    commit_work *work;
    tarn_arena arena;
    const tarn_metadata *metadata;
    const tarn_snapshot *parent; /* NULL: first snapshot of the table, or of all branches */
    tarn_str branch;
    const tarn_manifest *manifests; /* of the parent */
    int32_t n_manifests;
    tarn_manifest *list; /* of the new snapshot */
    int32_t n_list, list_cap;
    summary_builder summary;
    tarn_map partitions; /* changed ones, for the count */
    int32_t n_removed;   /* files that this snapshot removes because of the request */
    bool merges;         /* manifests are joined */
    bool has_deletes;    /* the parent has delete files */
    tarn_map gone;       /* where it has: the data files removed, by path */
    tuple_set gone_tuples;
    tarn_map replaced; /* partitions that are replaced, by produce_tuple_key */
    bool replaced_all; /* an unpartitioned replace: everything */
    const tarn_snapshot *snapshot;
} commit_attempt;

struct commit_maker {
    commit_work work;
    commit_attempt attempt;
    bool in_attempt;
    path_list kept; /* of work.written: what the last attempt's snapshot lives by */
    tarn_requirement requirements[2];
    tarn_change changes[3];
};

/* commit_maker.c */
tarn_str request_branch(const commit_request *request);

tarn_code path_list_add(tarn_arena *arena, path_list *list, tarn_str path,
                        tarn_error *err) TARN_MUST_USE;

/* commit_produce.c: the attempt's new snapshot, or NULL when there is nothing to do. */
tarn_code produce_snapshot(commit_attempt *a, tarn_error *err) TARN_MUST_USE;
tarn_code produce_add_manifest(commit_attempt *a, const tarn_manifest *manifest,
                               tarn_error *err) TARN_MUST_USE;
/* A file's spec and partition tuple as bytes: equal tuples, and only they, have equal keys. */
tarn_code produce_tuple_key(tarn_arena *arena, const tarn_file *file, tarn_buf *key,
                            tarn_error *err) TARN_MUST_USE;
tarn_code produce_count_partition(commit_attempt *a, const tarn_file *file,
                                  tarn_error *err) TARN_MUST_USE;
/* commit_tuples.c. A set begins zeroed, and lives in the attempt's arena. */
tarn_code tuple_set_add(commit_attempt *a, tuple_set *set, const tarn_file *file,
                        tarn_error *err) TARN_MUST_USE;
/* Whether the manifest may hold a file of one of them, by its field summaries. */
bool tuple_set_may_hold(const tuple_set *set, const tarn_manifest *manifest);
/* A writer for a new manifest of this commit; its path is noted in work->written first. */
tarn_code produce_manifest_writer(commit_attempt *a, const tarn_spec *spec, bool is_deletes,
                                  tarn_str *path, manifest_writer **out,
                                  tarn_error *err) TARN_MUST_USE;
/* A snapshot's manifests, in the attempt's arena; inline ones (version 1) are UNSUPPORTED. */
tarn_code produce_read_list(commit_attempt *a, const tarn_snapshot *snapshot,
                            const tarn_manifest **out, int32_t *n, tarn_error *err) TARN_MUST_USE;
tarn_code produce_read_manifest(commit_attempt *a, tarn_arena *arena, const tarn_manifest *manifest,
                                unsigned want, bool live_only, manifest_entries *out,
                                tarn_error *err) TARN_MUST_USE;

/* Manifests written anew, one after the other of a kind; begins zeroed. */
typedef struct manifest_rewriter {
    manifest_writer *writer; /* NULL: none is open */
    tarn_str path;
    int32_t spec_id;
    int32_t place; /* in the list */
    int64_t target_bytes;
} manifest_rewriter;
/* commit_filter.c: the parent's data manifests without what the request removes; rewritten where
 * they held some of it. */
tarn_code filter_manifests(commit_attempt *a, tarn_error *err) TARN_MUST_USE;
/* The manifest's other live entries as EXISTING and those that go as DELETED, in its place: in a
 * manifest of their own or, where manifests are joined, in one with what was rewritten before. */
tarn_code filter_rewrite(commit_attempt *a, manifest_rewriter *rw, const tarn_manifest *manifest,
                         const manifest_entries *entries, const uint8_t *goes,
                         tarn_error *err) TARN_MUST_USE;
tarn_code filter_rewritten(commit_attempt *a, manifest_rewriter *rw,
                           tarn_error *err) TARN_MUST_USE; /* the last one is done */
bool filter_is_spent(const tarn_manifest *manifest);       /* holds no live file */
/* Whether its entries can be written anew, and with which spec. */
tarn_code filter_rewritable(const commit_attempt *a, const tarn_manifest *manifest,
                            const tarn_spec **out, tarn_error *err) TARN_MUST_USE;
tarn_code filter_note_removed(commit_attempt *a, const tarn_file *file, tarn_error *err)
    TARN_MUST_USE; /* a file that this snapshot removes */

/* commit_regroup.c: delete manifests of one spec that are written anew together; begins zeroed. */
typedef struct regroup {
    tarn_arena arena;    /* of the lists */
    tarn_arena *entries; /* of the manifests' entries */
    int32_t n_manifests, cap_manifests;
    const tarn_spec *spec;
    const tarn_entry **live, **gone;
    int32_t n_live, n_gone, cap; /* cap of either */
} regroup;
/* Entries of a delete manifest of which some go. Takes their arena where it succeeds. */
tarn_code regroup_take(commit_attempt *a, regroup *g, const tarn_manifest *manifest,
                       const manifest_entries *entries, const uint8_t *goes, tarn_arena *arena,
                       tarn_error *err) TARN_MUST_USE;
/* Writes what was taken to manifests at the end of a->list. */
tarn_code regroup_write(commit_attempt *a, regroup *g, tarn_error *err) TARN_MUST_USE;
void regroup_release(regroup *g);

/* commit_memory.c: what a caller's earlier commits found in delete manifests, as hashes (str_hash)
 * of what entry_goes (commit_deletes.c) asks for. */
typedef struct known_manifest known_manifest;
/* NULL: it was not read yet, or the memory is NULL. Those that are not asked for between two
 * commit_memory_forget are forgotten. */
const known_manifest *commit_memory_find(commit_memory *memory, const tarn_manifest *manifest);
bool known_manifest_may_hold(const known_manifest *known, uint64_t hash);
/* Where there is no memory for it, it is not remembered. */
void commit_memory_keep(commit_memory *memory, const tarn_manifest *manifest,
                        const uint64_t *hashes, size_t n);
void commit_memory_forget(commit_memory *memory);
/* commit_deletes.c: whether the request's delete files may be in a table of this version. */
tarn_code deletes_check(commit_attempt *a, tarn_error *err) TARN_MUST_USE;
/* The parent's delete manifests, without what the request replaces, what concerned only files that
 * are gone, and what is older than all data. */
tarn_code deletes_filter(commit_attempt *a, tarn_error *err) TARN_MUST_USE;
/* commit_merge.c: small manifests of a->list joined (merge append). */
tarn_code merge_manifests(commit_attempt *a, tarn_error *err) TARN_MUST_USE;
tarn_code merge_is_wanted(const commit_attempt *a, bool *out, tarn_error *err) TARN_MUST_USE;
#define MERGE_TARGET_BYTES (8 << 20) /* commit.manifest.target-size-bytes */
#define MERGE_MIN_COUNT    100       /* commit.manifest.min-count-to-merge */
/* commit_validate.c: CONFLICT when what happened since request->from_snapshot_id stands against the
 * request. */
tarn_code validate_history(commit_attempt *a, tarn_error *err) TARN_MUST_USE;

#endif
