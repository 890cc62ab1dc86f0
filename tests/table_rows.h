/* tests/table_rows.h - rows into and out of a table_case: needs the rooms write/files, write/commit
 * and read. */
#ifndef TARN_TEST_TABLE_ROWS_H
#define TARN_TEST_TABLE_ROWS_H

#include "table_case.h"

#include "read/scan.h"
#include "write/commit/commit.h"
#include "write/files/data_writer.h"

/* Data files of these rows for version's schema and spec; not committed. */
static inline tarn_code case_write(table_case *c, const tarn_table_version *version,
                                   const char *lines, tarn_arena *arena, write_result *out,
                                   tarn_error *err) {
    tarn_code code = TARN_OK;
    data_writer_options options;
    data_writer *writer = NULL;
    tarn_batch batch;
    memset(&options, 0, sizeof options);
    memset(&batch, 0, sizeof batch);
    options.metadata = version->metadata;
    TRY(rows_read(c->env, arena, metadata_schema(version->metadata)->root, lines, &batch, err));
    TRY(data_writer_new(c->env, c->catalog->store, &options, &writer, err));
    TRY(data_writer_write(writer, &batch, err));
    TRY(data_writer_close(writer, arena, out, err));
done:
    batch_release(&batch);
    data_writer_free(writer);
    return code;
}

/* Writes and commits, as a sink does: files of a commit that failed for certain are removed. */
static inline tarn_code case_commit_rows(table_case *c, commit_kind kind, const char *lines,
                                         const char *branch, commit_outcome *outcome,
                                         tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_table_version *version = NULL;
    tarn_arena arena;
    write_result written;
    commit_request request;
    memset(&written, 0, sizeof written);
    memset(&request, 0, sizeof request);
    memset(outcome, 0, sizeof *outcome);
    arena_init(&arena, c->env);
    TRY(catalog_load(c->catalog, &c->ident, &version, err));
    TRY(case_write(c, version, lines, &arena, &written, err));
    request.kind = kind;
    request.added = written.files;
    request.n_added = written.n_files;
    request.branch = str_of(branch);
    request.from_snapshot_id = TARN_NO_SNAPSHOT;
    code = commit_run(c->env, c->catalog, &c->ident, version, &request, outcome, err);
    if (code != TARN_OK && outcome->kind == TARN_NOT_COMMITTED) {
        write_result_remove(c->catalog->store, &written);
    }
    table_version_release(outcome->version);
    outcome->version = NULL;
done:
    arena_release(&arena);
    table_version_release(version);
    return code;
}

static inline void case_append(table_case *c, const char *lines) {
    tarn_error err = TARN_ERROR_INIT;
    commit_outcome outcome;
    assert_ok(case_commit_rows(c, COMMIT_FAST_APPEND, lines, NULL, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
}

static inline int case_line_cmp(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The lines of text, sorted, joined again; in arena. */
static inline char *case_sorted(tarn_arena *arena, tarn_str text) {
    size_t n = 0;
    tarn_str rest = text;
    tarn_str line;
    const char **lines = arena_alloc(arena, (text.len + 1) * sizeof *lines);
    assert_non_null(lines);
    while (text.len > 0 && str_split(&rest, '\n', &line)) {
        if (line.len > 0) {
            lines[n++] = arena_str(arena, line).data;
        }
    }
    qsort(lines, n, sizeof *lines, case_line_cmp);
    char *out = arena_alloc(arena, text.len + n + 1);
    assert_non_null(out);
    char *at = out;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(lines[i]);
        memcpy(at, lines[i], len);
        at[len] = '\n';
        at += len + 1;
    }
    *at = '\0';
    return out;
}

/* Scans into lines of JSON in scan order. options: metadata and filter are filled here. */
static inline tarn_code case_scan(table_case *c, scan_options *options, const char *where,
                                  tarn_buf *out, scan_counters *counters, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_table_version *version = NULL;
    tarn_plan *plan = NULL;
    tarn_scan *scan = NULL;
    tarn_arena arena;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    arena_init(&arena, c->env);
    TRY(catalog_load(c->catalog, &c->ident, &version, err));
    options->metadata = version->metadata;
    options->filter = NULL;
    if (where != NULL) {
        TRY(expr_parse(&arena, str_of(where), &options->filter, err));
    }
    TRY(plan_new(c->env, c->catalog->store, options, &plan, err));
    TRY(scan_open(plan, &scan, err));
    do {
        batch_release(&batch);
        TRY(scan_next(scan, &batch, err));
        if (batch_rows(&batch) > 0) {
            TRY(batch_validate(&batch, err));
            TRY(rows_write(&batch, out, err));
        }
    } while (batch_rows(&batch) > 0);
    if (counters != NULL) {
        *counters = *scan_counters_of(scan);
    }
done:
    batch_release(&batch);
    scan_close(scan);
    plan_free(plan);
    table_version_release(version);
    arena_release(&arena);
    return code;
}

static inline scan_options case_scan_options(void) {
    scan_options options;
    memset(&options, 0, sizeof options);
    options.snapshot_id = TARN_NO_SNAPSHOT;
    options.limit = -1;
    return options;
}

/* The rows of the table that match, sorted, are these lines. */
static inline void case_check_rows_of(table_case *c, scan_options *options, const char *where,
                                      const char *want) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    tarn_arena arena;
    arena_init(&arena, c->env);
    buf_init(&buf, c->env, 0);
    assert_ok(case_scan(c, options, where, &buf, NULL, &err));
    assert_string_equal(case_sorted(&arena, buf_str(&buf)), case_sorted(&arena, str_of(want)));
    buf_release(&buf);
    arena_release(&arena);
}

static inline void case_check_rows(table_case *c, const char *where, const char *want) {
    scan_options options = case_scan_options();
    case_check_rows_of(c, &options, where, want);
}

#endif
