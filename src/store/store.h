/* store/store.h - where bytes rest. Objects are named by path or URI and are immutable once
 * visible; a store says by traits what it can promise, and callers choose a protocol by trait,
 * never by name. Internally locked: any thread. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "base/io.h"

typedef enum store_traits {
    STORE_ATOMIC_CREATE = 1,   /* create-if-absent has one winner */
    STORE_CONDITIONAL_PUT = 2, /* replace only if unchanged (etag) */
    STORE_LIST_CONSISTENT = 4,
    STORE_DURABLE = 8,  /* finish survives power loss */
    STORE_SETTLED = 16, /* a call that reported failure has no effect later on */
    STORE_LOCAL = 32    /* plain paths name files of this machine, as they stand */
} store_traits;

typedef enum store_mode {
    STORE_CREATE, /* CONFLICT when the object exists; never replaces */
    STORE_REPLACE,
    /* As STORE_CREATE, but durable only after the next store_sync, or the next finish of another
     * mode, of this store: for files that nothing names before a pointer moves. */
    STORE_CREATE_LATER,
    /* As STORE_REPLACE, but seen and durable only after the next store_sync, or the next finish of
     * another mode that is durable at once: with all that was finished before it, and never before
     * that is durable. Forgotten when the store is closed first. */
    STORE_REPLACE_LATER
} store_mode;

typedef struct store_stat_info {
    int64_t size_bytes;
    int64_t modified_ms;
} store_stat_info;

typedef tarn_code (*store_list_fn)(void *ctx, tarn_str path, const store_stat_info *info,
                                   tarn_error *err);

/* One name directly below a folder; info NULL: it is a folder. */
typedef tarn_code (*store_folder_fn)(void *ctx, tarn_str name, const store_stat_info *info,
                                     tarn_error *err);

typedef struct tarn_store tarn_store;
typedef struct store_vtable {
    const char *name;
    unsigned (*traits)(tarn_store *store);
    tarn_code (*open)(tarn_store *store, tarn_str path, int64_t size_hint, io_source **out,
                      tarn_error *err); /* size_hint -1: not known */
    /* An object that is there (STORE_CREATE, STORE_CREATE_LATER) is told by CONFLICT at finish, not
     * here. A failed finish other than by CONFLICT may have taken effect (a lost answer): callers
     * to whom it matters look.
     */
    tarn_code (*create)(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                        tarn_error *err);
    tarn_code (*stat)(tarn_store *store, tarn_str path, store_stat_info *out, tarn_error *err);
    tarn_code (*remove)(tarn_store *store, tarn_str path,
                        tarn_error *err); /* NOT_FOUND if absent */
    /* All objects below the folder prefix at any depth, in a stable order; paths begin with prefix
     * as spelled. An absent folder has none. fn may call the store. */
    tarn_code (*list)(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                      tarn_error *err);
    /* What is directly below a folder, by name; an absent folder has nothing. fn may call the
     * store. A folder is there when it was made or something is below it. */
    tarn_code (*list_folder)(tarn_store *store, tarn_str folder, store_folder_fn fn, void *ctx,
                             tarn_error *err);
    tarn_code (*make_folder)(tarn_store *store, tarn_str folder,
                             tarn_error *err); /* CONFLICT when it was made before */
    tarn_code (*remove_folder)(tarn_store *store, tarn_str folder,
                               tarn_error *err); /* NOT_FOUND; CONFLICT when not empty */
    /* What was finished before, and the folders made, are durable when it returns. Optional. */
    tarn_code (*sync)(tarn_store *store, tarn_error *err);
    void (*close)(tarn_store *store);
} store_vtable;

struct tarn_store {
    const store_vtable *vt;
    tarn_env *env;
};

unsigned store_traits_of(tarn_store *store);
tarn_code store_open(tarn_store *store, tarn_str path, int64_t size_hint, io_source **out,
                     tarn_error *err) TARN_MUST_USE;
tarn_code store_create(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                       tarn_error *err) TARN_MUST_USE;
tarn_code store_stat(tarn_store *store, tarn_str path, store_stat_info *out,
                     tarn_error *err) TARN_MUST_USE;
/* Removing goes on when the env was cancelled: it is how cancelled work cleans up after itself. */
tarn_code store_remove(tarn_store *store, tarn_str path, tarn_error *err) TARN_MUST_USE;
tarn_code store_list(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                     tarn_error *err) TARN_MUST_USE;
tarn_code store_list_folder(tarn_store *store, tarn_str folder, store_folder_fn fn, void *ctx,
                            tarn_error *err) TARN_MUST_USE;
tarn_code store_make_folder(tarn_store *store, tarn_str folder, tarn_error *err) TARN_MUST_USE;
tarn_code store_remove_folder(tarn_store *store, tarn_str folder, tarn_error *err) TARN_MUST_USE;
/* The barrier before a pointer moves: everything finished so far is durable. A failure means that
 * it may not be. */
tarn_code store_sync(tarn_store *store, tarn_error *err) TARN_MUST_USE;
void store_close(tarn_store *store); /* takes NULL */

/* Whole small objects. */
tarn_code store_put(tarn_store *store, tarn_str path, store_mode mode, tarn_str bytes,
                    tarn_error *err) TARN_MUST_USE;
tarn_code store_get(tarn_store *store, tarn_str path, size_t max_bytes, tarn_buf *out,
                    tarn_error *err) TARN_MUST_USE;
bool store_exists(tarn_store *store, tarn_str path);
/* Removes what is of no use any more; a failure leaves an orphan and is only logged. */
void store_discard(tarn_store *store, tarn_str path);
void store_discard_folder(tarn_store *store, tarn_str folder); /* if empty */

/* Local files. Takes absolute or relative paths, file:PATH, file:/PATH, file:///PATH,
 * file://localhost/PATH; URIs are percent-decoded? NO: paths in metadata are literal (spec, "Paths
 * in Metadata"). A sink writes a temporary file beside the target (".NAME.tmp-xxxx"), syncs it,
 * links it to its name (STORE_CREATE, so that there is one winner) or renames it, and syncs the
 * folder. Missing folders are made. */
tarn_code store_file_new(tarn_env *env, bool sync, tarn_store **out, tarn_error *err) TARN_MUST_USE;
/* A map in memory with all traits. */
tarn_code store_memory_new(tarn_env *env, tarn_store **out, tarn_error *err) TARN_MUST_USE;
/* Wrappers: take ownership of inner on success. */
/* Reads paths below from as if they were below to (a table that was copied elsewhere); several
 * pairs may be stacked. Scheme spellings of from ("file:/x", "/x") match each other. */
tarn_code store_moved_new(tarn_store *inner, tarn_str from, tarn_str to, tarn_store **out,
                          tarn_error *err) TARN_MUST_USE;

/* Faults for tests: the k-th call from now on fails (or "the process dies there" through die). One
 * call each: open, read_at, create, write, finish, stat, remove, list, list_folder, make_folder,
 * remove_folder, sync. */
typedef struct store_fault_plan {
    int64_t fail_at;       /* 1: the next call; 0: never */
    bool fail_forever;     /* all later ones too */
    bool after;            /* the call takes effect, then reports failure (a lost answer) */
    tarn_code code;        /* what to report; TARN_OK: TARN_IO */
    void (*die)(void);     /* called instead of failing when set */
    int64_t calls;         /* counted */
    const char *last_call; /* "finish", ... */
    const char *struck;    /* the call that failed last; NULL: none did */
} store_fault_plan;
tarn_code
store_fault_new(tarn_store *inner, store_fault_plan *plan, tarn_store **out,
                tarn_error *err) TARN_MUST_USE; /* plan is kept, used under the store's lock */

/* Counts of what was asked of the store. */
typedef struct store_trace {
    int64_t opens, reads, read_bytes, creates, writes, written_bytes, stats, removes, lists;
    int64_t folders; /* lists of one folder, folders made and removed */
} store_trace;
tarn_code store_trace_new(tarn_store *inner, store_trace *trace, tarn_store **out,
                          tarn_error *err) TARN_MUST_USE; /* kept; atomics inside */

/* "s3" of "s3://b/k", "file" of "file:/x"; empty for a plain path (also for "a:b"). */
tarn_str store_scheme(tarn_str location);
/* The plain path of a local location; false for another scheme or another host. Nothing is decoded.
 */
bool store_local_path(tarn_str location, tarn_str *path);
/* Whether path is base or lies below it, whatever the spelling of a local (file:/x, /x) or S3
 * (s3, s3a, s3n) scheme; *rest (may be NULL) is what follows base: empty or "/...". */
bool store_path_below(tarn_str base, tarn_str path, tarn_str *rest);

/* The store for a location by its scheme: none and file: are local; others are UNSUPPORTED naming
 * the scheme. */
tarn_code store_for_location(tarn_env *env, tarn_str location, tarn_store **out,
                             tarn_error *err) TARN_MUST_USE;
/* base + "/" + rest with exactly one slash. */
char *store_join(tarn_arena *arena, tarn_str base, tarn_str rest);

#endif
