/* tests/torture/operations.h - operations that are tortured, each with the rows before and after
 * it. */
#ifndef TARN_TEST_OPERATIONS_H
#define TARN_TEST_OPERATIONS_H

#include "table_rows.h"

#include "dml/dml.h"

#define PER_TABLE                                                                                  \
    8 /* calls that are struck before a fresh table takes over: its history is short */

typedef struct fault_run {
    table_case c;
    bool after;
    char name[16];             /* of the table */
    int orphans;               /* that earlier runs had a right to leave */
    char old[4000], new[4000]; /* rows before, and as the operation makes them */
    int32_t next_id;
    int32_t version; /* of the table's format */
} fault_run;

static inline void add_row(char *rows, int32_t id) {
    size_t len = strlen(rows);
    (void)snprintf(rows + len, 4000 - len, "{\"id\":%d,\"day\":%d}\n", (int)id, (int)id % 3);
}

/* ---- operations: each may fail, and says what became of it ---- */

typedef struct operation {
    const char *name;
    void (*prepare)(fault_run *r); /* clean: old and new rows are set */
    tarn_code (*run)(fault_run *r, commit_outcome *outcome, tarn_error *e);
    int32_t version; /* of the format of the tables that it is done to */
} operation;

static inline tarn_code overwrite(fault_run *r, const char *where, const char *rows,
                                  commit_outcome *outcome, tarn_error *e) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_table_version *version = NULL;
    dml_options options;
    dml_result result;
    write_result written;
    memset(&options, 0, sizeof options);
    memset(&result, 0, sizeof result);
    memset(&written, 0, sizeof written);
    options.serializable = true;
    arena_init(&arena, r->c.env);
    if (where != NULL) {
        TRY(expr_parse(&arena, str_of(where), &options.filter, e));
    }
    if (rows != NULL) {
        TRY(catalog_load(r->c.catalog, &r->c.ident, &version, e));
        TRY(case_write(&r->c, version, rows, &arena, &written, e));
    }
    code = dml_overwrite(r->c.env, r->c.catalog, &r->c.ident, &options, written.files,
                         written.n_files, &result, e);
    if (code != TARN_OK && result.outcome.kind == TARN_NOT_COMMITTED) {
        write_result_remove(r->c.catalog->store, &written);
    }
    table_version_release(result.outcome.version);
done:
    *outcome = result.outcome;
    outcome->version = NULL;
    table_version_release(version);
    arena_release(&arena);
    return code;
}

static inline void prepare_append(fault_run *r) {
    (void)snprintf(r->new, sizeof r->new, "%s", r->old);
    add_row(r->new, r->next_id);
}

static inline tarn_code run_append_kind(fault_run *r, commit_kind kind, commit_outcome *outcome,
                                        tarn_error *e) {
    char row[64] = "";
    add_row(row, r->next_id);
    return case_commit_rows(&r->c, kind, row, NULL, outcome, e);
}

static inline tarn_code run_append(fault_run *r, commit_outcome *outcome, tarn_error *e) {
    return run_append_kind(r, COMMIT_FAST_APPEND, outcome, e);
}

static inline tarn_code run_merge(fault_run *r, commit_outcome *outcome, tarn_error *e) {
    return run_append_kind(r, COMMIT_MERGE_APPEND, outcome, e);
}

static inline void fill_three(fault_run *r) {
    tarn_error err = TARN_ERROR_INIT;
    commit_outcome outcome;
    r->old[0] = '\0';
    for (int32_t id = 0; id < 6; id++) {
        add_row(r->old, id);
    }
    assert_ok(overwrite(r, NULL, r->old, &outcome, &err));
}

static inline void prepare_overwrite(fault_run *r) {
    fill_three(r);
    r->new[0] = '\0';
    add_row(r->new, 0);
    add_row(r->new, 3);
    add_row(r->new, 100);
}

static inline tarn_code run_overwrite(fault_run *r, commit_outcome *outcome, tarn_error *e) {
    char row[64] = "";
    add_row(row, 100);
    return overwrite(r, "id in (1, 2, 4, 5)", row, outcome, e);
}

static inline void prepare_delete(fault_run *r) {
    fill_three(r);
    r->new[0] = '\0';
    add_row(r->new, 0);
    add_row(r->new, 5);
}

static inline tarn_code run_delete(fault_run *r, commit_outcome *outcome, tarn_error *e) {
    return overwrite(r, "id = 2 or id = 3 or day = 1", NULL, outcome, e);
}

/* Row deletes, and new rows where set is given. */
static inline tarn_code change_rows(fault_run *r, const char *where, const char *set,
                                    commit_outcome *outcome, tarn_error *e) {
    tarn_arena arena;
    dml_options options;
    dml_result result;
    memset(&options, 0, sizeof options);
    memset(&result, 0, sizeof result);
    options.serializable = true;
    options.merge_on_read = true;
    arena_init(&arena, r->c.env);
    tarn_code code = expr_parse(&arena, str_of(where), &options.filter, e);
    if (code == TARN_OK) {
        code = set == NULL ? dml_delete(r->c.env, r->c.catalog, &r->c.ident, &options, &result, e)
                           : dml_update(r->c.env, r->c.catalog, &r->c.ident, &options, str_of(set),
                                        &result, e);
    }
    table_version_release(result.outcome.version);
    *outcome = result.outcome;
    outcome->version = NULL;
    arena_release(&arena);
    return code;
}

/* A file has row deletes already, which the operation replaces (a vector) or adds to. */
static inline void prepare_update(fault_run *r) {
    tarn_error err = TARN_ERROR_INIT;
    commit_outcome outcome;
    fill_three(r);
    assert_ok(change_rows(r, "id = 1", NULL, &outcome, &err));
    r->old[0] = '\0';
    r->new[0] = '\0';
    for (int32_t id = 0; id < 6; id++) {
        if (id != 1) {
            add_row(r->old, id);
        }
        if (id != 1 && id != 0 && id != 4) {
            add_row(r->new, id);
        }
    }
    (void)strcat(r->new, "{\"id\":0,\"day\":9}\n{\"id\":4,\"day\":9}\n");
}

static inline tarn_code run_update(fault_run *r, commit_outcome *outcome, tarn_error *e) {
    return change_rows(r, "id in (0, 4)", "day = 9", outcome, e);
}

static const operation OPERATIONS[] = {
    {"append", prepare_append, run_append, 2},
    {"merge append", prepare_append, run_merge, 2},
    {"overwrite", prepare_overwrite, run_overwrite, 2},
    {"delete", prepare_delete, run_delete, 2},
    {"update by position deletes", prepare_update, run_update, 2},
    {"update by vectors", prepare_update, run_update, 3},
};

static inline bool shows(fault_run *r, const char *rows) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    tarn_arena arena;
    scan_options options = case_scan_options();
    arena_init(&arena, r->c.env);
    buf_init(&buf, r->c.env, 0);
    assert_ok(case_scan(&r->c, &options, NULL, &buf, NULL, &err));
    bool same = strcmp(case_sorted(&arena, buf_str(&buf)), case_sorted(&arena, str_of(rows))) == 0;
    buf_release(&buf);
    arena_release(&arena);
    return same;
}

static inline void fresh_table(fault_run *r, int64_t k) {
    static const char *const properties[] = {"commit.retry.min-wait-ms",
                                             "1",
                                             "commit.manifest.min-count-to-merge",
                                             "2",
                                             "write.metadata.previous-versions-max",
                                             "3",
                                             "write.metadata.delete-after-commit.enabled",
                                             "true",
                                             NULL};
    (void)snprintf(r->name, sizeof r->name, "t%d", (int)k);
    r->c.ident.name = str_of(r->name);
    case_table(&r->c, r->version, "id int not null, day int", "day", properties);
    r->old[0] = '\0';
    r->next_id = 1;
    r->orphans = 0;
    add_row(r->old, 0);
    case_append(&r->c, r->old);
}

#endif
