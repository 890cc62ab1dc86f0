/* tests/sink_case.h - a sink on a table_case, with its state in a folder of the case: rows go in as
 * lines of JSON, checkpoints are made and committed one by one. */
#ifndef TARN_TEST_SINK_CASE_H
#define TARN_TEST_SINK_CASE_H

#include "table_rows.h"

#include "sink/sink.h"

typedef struct sink_case {
    table_case c;
    char state_dir[128];
    sink_options options; /* open takes these; catalog, ident and version are filled in */
    sink_job *sink;
} sink_case;

static inline void sink_case_init(sink_case *t, tarn_env *env, case_kind kind) {
    memset(t, 0, sizeof *t);
    case_open(&t->c, env, kind);
    (void)snprintf(t->state_dir, sizeof t->state_dir, "%s/state", t->c.folder);
    assert_int_equal(mkdir(t->state_dir, 0700), 0); /* key indexes lie on a disk in any case */
    t->options.state_dir = str_of(t->state_dir);
}

static inline tarn_code sink_case_open(sink_case *t, tarn_error *err) {
    tarn_table_version *version = NULL;
    tarn_code code = catalog_load(t->c.catalog, &t->c.ident, &version, err);
    if (code != TARN_OK) {
        return code;
    }
    t->options.catalog = t->c.catalog;
    t->options.ident = &t->c.ident;
    t->options.version = version;
    t->options.state_store = t->c.catalog->store;
    code = sink_open(t->c.env, &t->options, &t->sink, err);
    table_version_release(version);
    return code;
}

static inline void sink_case_close(sink_case *t) {
    sink_free(t->sink);
    t->sink = NULL;
}

static inline void sink_case_done(sink_case *t) {
    sink_case_close(t);
    case_done(&t->c);
}

static inline tarn_code sink_case_write(sink_case *t, const char *lines, const uint8_t *kinds,
                                        tarn_error *err) {
    tarn_arena arena;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    arena_init(&arena, t->c.env);
    const tarn_type *root = metadata_schema(sink_version(t->sink)->metadata)->root;
    tarn_code code = rows_read(t->c.env, &arena, root, lines, &batch, err);
    if (code == TARN_OK) {
        code = sink_write(t->sink, &batch, kinds, err);
    }
    batch_release(&batch);
    arena_release(&arena);
    return code;
}

static inline tarn_code sink_case_commit(sink_case *t, int64_t checkpoint, tarn_error *err) {
    commit_outcome outcome;
    tarn_code code = sink_commit(t->sink, checkpoint, &outcome, err);
    table_version_release(outcome.version);
    return code;
}

static inline tarn_code sink_case_checkpoint(sink_case *t, const char *offsets, tarn_error *err) {
    int64_t checkpoint;
    tarn_code code = sink_precommit(t->sink, offsets, &checkpoint, err);
    return code == TARN_OK ? sink_case_commit(t, checkpoint, err) : code;
}

/* The table's rows are these lines, in any order. */
static inline void sink_case_rows_are(sink_case *t, const char *lines) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf out;
    scan_options options = case_scan_options();
    arena_init(&arena, t->c.env);
    buf_init(&out, t->c.env, 0);
    assert_ok(case_scan(&t->c, &options, NULL, &out, NULL, &err));
    const char *got = case_sorted(&arena, buf_str(&out));
    const char *want = case_sorted(&arena, str_of(lines));
    assert_string_equal(got, want);
    buf_release(&out);
    arena_release(&arena);
}

static inline int32_t sink_case_snapshots(sink_case *t) {
    tarn_table_version *version = case_load(&t->c);
    int32_t n = version->metadata->n_snapshots;
    table_version_release(version);
    return n;
}

/* A summary entry of main's head, in the case's arena. */
static inline const char *sink_case_summary(sink_case *t, const char *key) {
    tarn_table_version *version = case_load(&t->c);
    const tarn_snapshot *s = metadata_current_snapshot(version->metadata);
    tarn_str value = STR("");
    if (s != NULL) {
        (void)properties_get(&s->summary, key, &value);
    }
    tarn_str copy = arena_str(&t->c.arena, value);
    table_version_release(version);
    return copy.data;
}

typedef struct sink_case_names {
    const char *prefix;
    int count;
    char first[128];
} sink_case_names;

static inline tarn_code sink_case_name(void *ctx, tarn_str name, const store_stat_info *info,
                                       tarn_error *err) {
    sink_case_names *names = ctx;
    (void)info;
    (void)err;
    if (str_starts_with(name, str_of(names->prefix)) && names->count++ == 0) {
        (void)snprintf(names->first, sizeof names->first, "%.*s", STR_ARG(name));
    }
    return TARN_OK;
}

/* How many files of the state begin with this. */
static inline int sink_case_count(sink_case *t, const char *prefix, char first[128]) {
    tarn_error err = TARN_ERROR_INIT;
    sink_case_names names = {prefix, 0, ""};
    assert_ok(
        store_list_folder(t->c.catalog->store, str_of(t->state_dir), sink_case_name, &names, &err));
    if (first != NULL) {
        (void)snprintf(first, 128, "%s", names.first);
    }
    return names.count;
}

#endif
