/* tests/unit/write/commit/commit_case.h - commits of made-up files: their bytes say nothing, their
 * entries all. Files are named by one word; a table's state is told as text. */
#ifndef COMMIT_CASE_H
#define COMMIT_CASE_H

#include "table_case.h"

#include "write/commit/commit.h"

#include <stdatomic.h>

/* ---- a catalog between the commit and the real one ---- */

typedef enum proxy_mode {
    PROXY_PASS,
    PROXY_APPLIED_UNKNOWN,  /* applies, loses the answer */
    PROXY_DROPPED_UNKNOWN,  /* does not apply, loses the answer */
    PROXY_APPLIED_CONFLICT, /* applies; a resent request is answered by a conflict (B28, B29) */
    PROXY_FAILED            /* refuses for certain, not by conflict */
} proxy_mode;

typedef struct proxy_catalog {
    tarn_catalog base;
    tarn_catalog *inner;
    _Atomic(proxy_mode) mode;
    int64_t times;             /* how many commits the mode holds for */
    void (*before)(void *ctx); /* called before each commit, where set */
    void *ctx;
    atomic_bool blind; /* loads fail while it is set */
} proxy_catalog;

static tarn_code proxy_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                            tarn_error *e) {
    proxy_catalog *p = (proxy_catalog *)c;
    if (p->blind) {
        return err_set(e, TARN_IO, "the catalog did not answer");
    }
    return catalog_load(p->inner, table, out, e);
}

static tarn_code proxy_commit(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                              const tarn_change_set *set, tarn_outcome_kind *outcome,
                              tarn_table_version **out, tarn_error *e) {
    proxy_catalog *p = (proxy_catalog *)c;
    if (p->before != NULL) {
        p->before(p->ctx);
    }
    if (p->mode == PROXY_PASS || p->times-- <= 0) {
        return catalog_commit(p->inner, table, base, set, outcome, out, e);
    }
    if (p->mode == PROXY_FAILED) {
        *outcome = TARN_NOT_COMMITTED;
        return err_set(e, TARN_DENIED, "not allowed");
    }
    if (p->mode != PROXY_DROPPED_UNKNOWN) {
        tarn_error inner = TARN_ERROR_INIT;
        tarn_code code = catalog_commit(p->inner, table, base, set, outcome, NULL, &inner);
        if (code == TARN_CONFLICT) { /* the base was an old one */
            return err_set(e, code, "%s", inner.message);
        }
        if (code != TARN_OK) {
            fail_msg("%s", inner.message);
        }
    }
    *outcome = p->mode == PROXY_APPLIED_CONFLICT ? TARN_NOT_COMMITTED : TARN_OUTCOME_UNKNOWN;
    return p->mode == PROXY_APPLIED_CONFLICT
               ? err_set(e, TARN_CONFLICT, "the head had moved")
               : err_set(e, TARN_COMMIT_UNKNOWN, "the answer was lost");
}

static const catalog_vtable PROXY_VTABLE = {
    .name = "proxy", .load = proxy_load, .commit = proxy_commit};

static inline void proxy_init(proxy_catalog *p, tarn_catalog *inner) {
    memset(p, 0, sizeof *p);
    p->base.vt = &PROXY_VTABLE;
    p->base.env = inner->env;
    p->base.store = inner->store;
    p->inner = inner;
    p->times = INT64_MAX;
}

/* ---- made-up files ---- */

/* name: "f1"; part: value of an int partition field, INT32_MIN null; rows are part's own numbers
 * from low on. */
static inline tarn_file commit_file(table_case *c, const char *name, int32_t part, int64_t rows) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_table_version *version = case_load(c);
    const tarn_metadata *m = version->metadata;
    tarn_file f;
    memset(&f, 0, sizeof f);
    f.path = str_of(arena_printf(&c->arena, "%.*s/data/%s.parquet", STR_ARG(m->location), name));
    if (!store_exists(c->catalog->store, f.path)) {
        assert_ok(store_put(c->catalog->store, f.path, STORE_CREATE, STR("x"), &err));
    }
    f.spec_id = m->default_spec_id;
    f.n_partition = metadata_spec(m)->n_fields;
    if (f.n_partition > 0) {
        tarn_value *tuple = ARENA_ARRAY(&c->arena, tarn_value, 2);
        tuple[0] = part == INT32_MIN ? value_null(type_primitive(TARN_INT))
                                     : value_i32(type_primitive(TARN_INT), part);
        f.partition = tuple;
    }
    metric_count *counts = ARENA_ARRAY(&c->arena, metric_count, 2);
    metric_bound *bounds = ARENA_ARRAY(&c->arena, metric_bound, 2);
    tarn_value bound = value_i32(type_primitive(TARN_INT), part);
    counts[0] = (metric_count){1, rows};
    counts[1] = (metric_count){1, 0};
    bounds[0].id = 1;
    assert_ok(value_to_binary(&c->arena, &bound, &bounds[0].bytes, &err));
    f.n_value_counts = f.n_null_counts = 1;
    f.value_counts = &counts[0];
    f.null_counts = &counts[1];
    f.n_lower = f.n_upper = part != INT32_MIN;
    f.lower = f.upper = bounds;
    f.record_count = rows;
    f.size_bytes = 1;
    f.sort_order_id = 0;
    f.first_row_id = f.content_offset = f.content_size = -1;
    table_version_release(version);
    return f;
}

/* A delete file of the partition, of that many rows. */
static inline tarn_file commit_delete_file(table_case *c, const char *name, tarn_content content,
                                           int32_t part, int64_t rows) {
    static const int32_t KEY[] = {1};
    tarn_file f = commit_file(c, name, part, rows);
    f.content = content;
    if (content == TARN_CONTENT_EQUALITY_DELETES) {
        f.n_equality_ids = 1;
        f.equality_ids = KEY;
    } else {
        f.n_value_counts = f.n_null_counts = f.n_lower = f.n_upper = 0;
    }
    return f;
}

/* Position deletes that name one data file. */
static inline tarn_file commit_position_file(table_case *c, const char *name, const tarn_file *data,
                                             int64_t rows) {
    tarn_file f = commit_delete_file(c, name, TARN_CONTENT_POSITION_DELETES, 0, rows);
    f.partition = data->partition;
    f.referenced_data_file = data->path;
    return f;
}

/* A vector at an offset of a Puffin file. */
static inline tarn_file commit_vector(table_case *c, const char *name, const tarn_file *data,
                                      int64_t offset, int64_t rows) {
    tarn_file f = commit_position_file(c, name, data, rows);
    f.format = TARN_FORMAT_PUFFIN;
    f.content_offset = offset;
    f.content_size = 10;
    f.size_bytes = 100;
    return f;
}

static inline tarn_entry commit_entry(tarn_file f) {
    tarn_entry e;
    memset(&e, 0, sizeof e);
    e.sequence_number = e.file_sequence_number = -1;
    e.file = f;
    return e;
}

static inline commit_request commit_of(commit_kind kind, const tarn_file *added, int32_t n) {
    commit_request r;
    memset(&r, 0, sizeof r);
    r.kind = kind;
    r.added = added;
    r.n_added = n;
    r.from_snapshot_id = TARN_NO_SNAPSHOT;
    return r;
}

/* Runs it on the newest version; the version that came of it is let go. */
static inline tarn_code commit_now(table_case *c, tarn_catalog *catalog, const commit_request *r,
                                   commit_outcome *outcome, tarn_error *err) {
    tarn_code code = commit_run(c->env, catalog, &c->ident, NULL, r, outcome, err);
    if (code == TARN_OK && outcome->kind == TARN_COMMITTED) {
        assert_non_null(outcome->version);
    }
    table_version_release(outcome->version);
    outcome->version = NULL;
    return code;
}

static inline void commit_append_file(table_case *c, const char *name, int32_t part) {
    tarn_error err = TARN_ERROR_INIT;
    commit_outcome outcome;
    tarn_file f = commit_file(c, name, part, 10);
    commit_request r = commit_of(COMMIT_FAST_APPEND, &f, 1);
    assert_ok(commit_now(c, c->catalog, &r, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
}

static inline void commit_remove(table_case *c, const tarn_file *f) {
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(store_remove(c->catalog->store, f->path, &err));
}

/* ---- the state of a table as text ---- */

static inline void state_entry(tarn_buf *out, const tarn_entry *e, int64_t snapshot_id) {
    tarn_error err = TARN_ERROR_INIT;
    static const char MARKS[] = {'=', '+', '-'};
    size_t slash = 0;
    (void)str_find_last_char(e->file.path, '/', &slash);
    tarn_str name = str_from(e->file.path, slash + 1);
    name.len -= strlen(".parquet");
    assert_ok(buf_printf(out, &err, " %c%.*s", MARKS[e->status], STR_ARG(name)));
    if (e->file.content_offset >= 0) {
        assert_ok(buf_printf(out, &err, "#%lld", (long long)e->file.content_offset));
    }
    assert_ok(buf_printf(out, &err, "@%lld%s", (long long)e->sequence_number,
                         e->snapshot_id == snapshot_id ? "" : "'"));
}

/* One line a manifest: "seq/min add exist del: +f1@2 =f0@1' -f3@1" where ' marks entries that an
 * older snapshot added or removed; delete manifests begin with D, a vector's offset follows #. */
static inline void state_snapshot(table_case *c, const tarn_metadata *m, const tarn_snapshot *s,
                                  tarn_buf *out) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    io_source *source;
    const tarn_manifest *manifests;
    int32_t n;
    arena_init(&arena, c->env);
    assert_ok(store_open(c->catalog->store, s->manifest_list, -1, &source, &err));
    assert_ok(manifest_list_read(&arena, source, &manifests, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        const tarn_manifest *f = &manifests[i];
        manifest_read_options options = {.want = MANIFEST_WANT_REST};
        manifest_entries entries;
        assert_ok(store_open(c->catalog->store, f->path, f->length, &source, &err));
        assert_ok(manifest_read(&arena, source, m, f, &options, &entries, &err));
        source->close(source);
        assert_ok(buf_printf(out, &err, "%s%lld/%lld %d %d %d:", f->is_deletes ? "D " : "",
                             (long long)f->sequence_number, (long long)f->min_sequence_number,
                             f->added_files, f->existing_files, f->deleted_files));
        for (int64_t j = 0; j < entries.count; j++) {
            state_entry(out, &entries.items[j], s->snapshot_id);
        }
        assert_ok(buf_append_char(out, '\n', &err));
    }
    arena_release(&arena);
}

static inline void state_check(table_case *c, const char *branch, const char *want) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_table_version *version = case_load(c);
    const tarn_ref *ref = metadata_ref(version->metadata, str_of(branch));
    tarn_buf out;
    buf_init(&out, c->env, 0);
    if (ref != NULL) {
        state_snapshot(c, version->metadata,
                       metadata_snapshot_by_id(version->metadata, ref->snapshot_id), &out);
    }
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal((const char *)out.data, want);
    buf_release(&out);
    table_version_release(version);
}

/* The head's summary holds these: key, value, key, value, ..., NULL; value NULL: is not there. */
static inline void state_check_summary(table_case *c, const char *const *pairs) {
    tarn_table_version *version = case_load(c);
    const tarn_snapshot *s = metadata_current_snapshot(version->metadata);
    assert_non_null(s);
    for (int i = 0; pairs[i] != NULL; i += 2) {
        tarn_str value = STR_NULL;
        bool there = properties_get(&s->summary, pairs[i], &value);
        if (pairs[i + 1] == NULL ? there : !there || !str_is(value, pairs[i + 1])) {
            fail_msg("summary %s is %.*s", pairs[i], STR_ARG(value));
        }
    }
    table_version_release(version);
}

#endif
