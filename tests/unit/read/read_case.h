/* tests/unit/read/read_case.h - a table of the bug cases below the fixtures, scanned with the rooms
 * alone. */
#ifndef READ_TEST_CASE_H
#define READ_TEST_CASE_H

#include "unit/table/rows.h"

#include "read/scan.h"

static tarn_error err;

#define PLACE "/tarn-fixtures/bugs/open"

typedef struct read_case {
    tarn_env *env;
    tarn_store *store;
    tarn_arena arena;
    const tarn_metadata *metadata;
} read_case;

static inline void open_case_in(read_case *c, tarn_env *env, const char *metadata_path) {
    tarn_store *files;
    tarn_buf bytes;
    char path[512];
    memset(c, 0, sizeof *c);
    c->env = env;
    arena_init(&c->arena, c->env);
    buf_init(&bytes, c->env, 0);
    assert_ok(store_file_new(c->env, false, &files, &err));
    assert_ok(store_moved_new(files, STR("file://" PLACE), STR(TARN_TEST_FIXTURES "/bugs"),
                              &c->store, &err));
    (void)snprintf(path, sizeof path, "file://" PLACE "/%s", metadata_path);
    assert_ok(store_get(c->store, str_of(path), 1 << 20, &bytes, &err));
    assert_ok(metadata_parse(&c->arena, arena_str(&c->arena, buf_str(&bytes)), metadata_path,
                             &c->metadata, &err));
    buf_release(&bytes);
}

static inline void open_case(read_case *c, const char *metadata_path) {
    open_case_in(c, test_env(), metadata_path);
}

static inline void close_case(read_case *c) {
    store_close(c->store);
    arena_release(&c->arena);
    test_env_done(c->env);
}

static inline scan_options options_of(read_case *c, const char *where) {
    scan_options options;
    memset(&options, 0, sizeof options);
    options.metadata = c->metadata;
    options.snapshot_id = TARN_NO_SNAPSHOT;
    options.limit = -1;
    if (where != NULL) {
        assert_ok(expr_parse(&c->arena, str_of(where), &options.filter, &err));
    }
    return options;
}

static inline tarn_code scan_text(read_case *c, const scan_options *options, tarn_buf *out,
                                  scan_counters *counters, tarn_error *e) {
    tarn_code code = TARN_OK;
    tarn_plan *plan = NULL;
    tarn_scan *scan = NULL;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    TRY(plan_new(c->env, c->store, options, &plan, e));
    TRY(scan_open(plan, &scan, e));
    do {
        batch_release(&batch);
        TRY(scan_next(scan, &batch, e));
        if (batch_rows(&batch) > 0) {
            TRY(rows_write(&batch, out, e));
        }
    } while (batch_rows(&batch) > 0);
    *counters = *scan_counters_of(scan);
done:
    batch_release(&batch);
    scan_close(scan);
    plan_free(plan);
    return code;
}

static inline int count_rows(read_case *c, const char *where) {
    tarn_buf out;
    scan_counters counters;
    int n = 0;
    scan_options options = options_of(c, where);
    buf_init(&out, c->env, 0);
    assert_ok(scan_text(c, &options, &out, &counters, &err));
    for (size_t i = 0; i < out.len; i++) {
        n += out.data[i] == '\n';
    }
    buf_release(&out);
    return n;
}

#endif
