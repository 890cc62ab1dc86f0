/* tests/unit/service/compact_case.h - groups of appends of real files to a table that wants them
 * merged: two partitions, a row a file, each job one file. */
#ifndef COMPACT_CASE_H
#define COMPACT_CASE_H

#include "table_rows.h"
#include "unit/write/commit/commit_case.h"

#include "service/compact.h"
#include "service/group.h"

#define JOBS 6

typedef struct compact_case {
    table_case c;
    proxy_catalog proxy;
    commit_index index;
    file_index files;
    service_counters counters;
    commit_group group;
    tarn_table_version *base; /* that files are written for */
    write_result written[JOBS];
    commit_request requests[JOBS];
    commit_job jobs[JOBS];
    char ids[JOBS][16];
    int rivals;
} compact_case;

/* The time that merges have is no matter to most tests. */
static const char *const compact_policy_on[] = {
    "tarn.compact-before-commit", "true", "tarn.compact-before-commit.max-ms", "600000", NULL};

static inline void compact_rival(void *ctx) {
    compact_case *g = ctx;
    if (g->rivals > 0) {
        g->rivals--;
        case_append(&g->c, "{\"p\":7,\"v\":\"rival\"}\n");
    }
}

static inline void compact_open_on(compact_case *g, tarn_env *env, case_kind kind, int32_t version,
                                   const char *const *properties) {
    memset(g, 0, sizeof *g);
    case_open(&g->c, env, kind);
    case_table(&g->c, version, "p int, v string", "p", properties);
    proxy_init(&g->proxy, g->c.catalog);
    g->proxy.before = compact_rival;
    g->proxy.ctx = g;
    commit_index_init(&g->index, env);
    file_index_init(&g->files, env);
    g->group =
        (commit_group){env, &g->proxy.base, &g->c.ident, &g->index, NULL, &g->counters, &g->files};
    g->base = case_load(&g->c);
}

static inline void compact_let_go(compact_case *g) {
    for (int i = 0; i < JOBS; i++) {
        table_version_release(g->jobs[i].version);
        g->jobs[i].version = NULL;
    }
}

static inline void compact_close(compact_case *g) {
    compact_let_go(g);
    table_version_release(g->base);
    table_version_release(g->group.known);
    commit_index_release(&g->index);
    file_index_release(&g->files);
    case_done(&g->c);
}

/* Job i appends these rows under the id "ci". */
static inline tarn_code compact_set_job(compact_case *g, int i, const char *lines,
                                        tarn_error *err) {
    memset(&g->jobs[i], 0, sizeof g->jobs[i]);
    tarn_code code = case_write(&g->c, g->base, lines, &g->c.arena, &g->written[i], err);
    if (code == TARN_OK) {
        (void)snprintf(g->ids[i], sizeof g->ids[i], "c%d", i);
        g->requests[i] = commit_of(COMMIT_FAST_APPEND, g->written[i].files, g->written[i].n_files);
        g->requests[i].commit_id = g->ids[i];
        g->requests[i].share = true;
        g->jobs[i].request = &g->requests[i];
        g->jobs[i].err = (tarn_error)TARN_ERROR_INIT;
        if (i > 0) {
            g->jobs[i - 1].next = &g->jobs[i];
        }
    }
    return code;
}

/* n jobs; job i has the row {"p":i%2,"v":"ri"}. */
static inline void compact_make_jobs(compact_case *g, int n) {
    tarn_error err = TARN_ERROR_INIT;
    for (int i = 0; i < n; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "{\"p\":%d,\"v\":\"r%d\"}\n", i % 2, i);
        assert_ok(compact_set_job(g, i, line, &err));
    }
}

/* The table has the rows of jobs [0, n) once, besides those of rivals, in that many files. */
static inline void compact_check(compact_case *g, int n, int rivals, int32_t files) {
    char want[512] = "";
    for (int i = 0; i < n; i++) {
        size_t len = strlen(want);
        (void)snprintf(want + len, sizeof want - len, "{\"p\":%d,\"v\":\"r%d\"}\n", i % 2, i);
    }
    for (int i = 0; i < rivals; i++) {
        size_t len = strlen(want);
        (void)snprintf(want + len, sizeof want - len, "{\"p\":7,\"v\":\"rival\"}\n");
    }
    case_check_rows(&g->c, NULL, want);
    if (files >= 0) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", files);
        const char *const summary[] = {"total-data-files", text, NULL};
        state_check_summary(&g->c, summary);
    }
}

/* Of the first n jobs' files: how many are still there. */
static inline int compact_originals(compact_case *g, int n) {
    int there = 0;
    for (int i = 0; i < n; i++) {
        for (int32_t k = 0; k < g->written[i].n_files; k++) {
            there += store_exists(g->c.catalog->store, g->written[i].files[k].path);
        }
    }
    return there;
}

#endif
