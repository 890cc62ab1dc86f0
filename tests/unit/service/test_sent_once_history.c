/* Goal: whatever befalls two services that merge small files before the commit, and whoever sends a
 * file how often, under which ids, each acknowledged commit's rows are in the table once, others
 * are not, the table names no file that is gone, and what a service can know is taken once.
 * Method: histories made from a seed, of real files: two leaders whose groups come in between each
 * other's base and swap, answers and swaps that are lost, restarts, clocks that jump, a slow
 * catalog, commits beside the services, files that are sent again under their own id and others.
 * The table is read after every step. TARN_HISTORY_SEED runs one history, TARN_HISTORIES says how
 * many there are. */
#include "histories.h"
#include "table_rows.h"
#include "unit/write/commit/commit_case.h"

#include "service/compact.h"
#include "service/group.h"

#define FILES 24
#define OPS   80
#define JOBS  5
#define STEPS 20

static tarn_error err;

typedef struct one_op {
    commit_request request;
    tarn_file files[3];
    int which[3]; /* the files' numbers */
    char id[16];
    bool done, resent;
    int64_t snapshot_id;
} one_op;

typedef struct once_leader {
    struct once_history *h;
    proxy_catalog proxy;
    commit_index index;
    file_index files;
    service_counters counters;
    commit_group group;
} once_leader;

typedef struct once_history {
    table_case c;
    uint64_t random;
    atomic_llong now_us; /* merges on the pool look at it */
    once_leader leaders[2];
    tarn_file files[FILES];
    int there[FILES]; /* commits of it that were acknowledged */
    one_op ops[OPS];
    int n_ops;
    bool busy[OPS];
    int nested;
} once_history;

static uint32_t chance(once_history *h, uint32_t n) {
    return history_chance(&h->random, n);
}

static int64_t tell_time(void *ctx) {
    return ((once_history *)ctx)->now_us++;
}

static void no_sleep(void *ctx, int64_t ms) {
    ((once_history *)ctx)->now_us += ms * 1000;
}

/* ---- what is sent ---- */

/* Of up to three different files, whatever became of them before. */
static one_op *new_op(once_history *h) {
    one_op *op = &h->ops[h->n_ops];
    int n = 1 + (int)chance(h, 3);
    int first = (int)chance(h, FILES);
    memset(op, 0, sizeof *op);
    for (int i = 0; i < n; i++) {
        op->which[i] = (first + i) % FILES;
        op->files[i] = h->files[op->which[i]];
    }
    (void)snprintf(op->id, sizeof op->id, "op-%d", h->n_ops++);
    op->request = commit_of(COMMIT_FAST_APPEND, op->files, n);
    op->request.commit_id = op->id;
    op->request.share = chance(h, 6) > 0;
    return op;
}

static one_op *pick_op(once_history *h) {
    if (h->n_ops > 0 && (h->n_ops == OPS || chance(h, 3) == 0)) {
        return &h->ops[chance(h, (uint32_t)h->n_ops)];
    }
    return new_op(h);
}

/* As a server looks when the request comes in. */
static void fill_job(once_history *h, commit_job *job, one_op *op) {
    memset(job, 0, sizeof *job);
    job->request = &op->request;
    job->resent = op->resent;
    job->err = (tarn_error)TARN_ERROR_INIT;
    for (int32_t i = 0; i < op->request.n_added; i++) {
        if (job->absent.len == 0 && !store_exists(h->c.catalog->store, op->files[i].path)) {
            job->absent = op->files[i].path;
        }
    }
}

static bool has_one_there(const once_history *h, const one_op *op) {
    bool there = false;
    for (int32_t i = 0; i < op->request.n_added; i++) {
        there = there || h->there[op->which[i]] > 0;
    }
    return there;
}

/* Twice is taken only what is older than the history that the service read. */
static void take_done(once_history *h, const once_leader *l, one_op *op, const commit_job *job) {
    if (op->done) {
        assert_true(job->repeated && job->snapshot_id == op->snapshot_id);
        return;
    }
    for (int32_t i = 0; i < op->request.n_added; i++) {
        if (h->there[op->which[i]]++ > 0 && l->files.since_ms == INT64_MIN) {
            fail_msg("file %d was taken twice, the second time as %s", op->which[i], op->id);
        }
    }
    op->done = true;
    op->snapshot_id = job->snapshot_id;
}

static void take_outcomes(once_history *h, const once_leader *l, commit_job *jobs,
                          one_op *const *ops, int n) {
    bool decided = true;
    for (int i = 0; i < n; i++) {
        tarn_code code = jobs[i].code;
        if (code == TARN_OK) {
            take_done(h, l, ops[i], &jobs[i]);
        } else if (code != TARN_INVALID) {
            assert_true(code == TARN_COMMIT_UNKNOWN || code == TARN_CONFLICT ||
                        code == TARN_DENIED);
            ops[i]->resent |= code == TARN_COMMIT_UNKNOWN;
            decided = false;
        }
        table_version_release(jobs[i].version);
    }
    for (int i = 0; i < n && decided; i++) {
        if (jobs[i].code == TARN_INVALID && !has_one_there(h, ops[i])) {
            fail_msg("%s was refused for nothing: %s", ops[i]->id, jobs[i].err.message);
        }
    }
}

/* ---- what happens ---- */

static void run_group(once_history *h, int leader) {
    static const proxy_mode modes[] = {PROXY_PASS,
                                       PROXY_PASS,
                                       PROXY_PASS,
                                       PROXY_APPLIED_UNKNOWN,
                                       PROXY_DROPPED_UNKNOWN,
                                       PROXY_APPLIED_CONFLICT,
                                       PROXY_FAILED};
    once_leader *l = &h->leaders[leader];
    commit_job jobs[JOBS];
    one_op *ops[JOBS];
    int n = 0;
    for (int i = 0; i < JOBS; i++) {
        one_op *op = pick_op(h);
        if (!h->busy[op - h->ops]) {
            h->busy[op - h->ops] = true;
            fill_job(h, &jobs[n], op);
            ops[n++] = op;
        }
    }
    for (int i = 0; i + 1 < n; i++) {
        jobs[i].next = &jobs[i + 1];
    }
    if (n == 0) {
        return;
    }
    l->proxy.mode = modes[chance(h, sizeof modes / sizeof modes[0])];
    l->proxy.times = 1;
    group_run(&l->group, jobs);
    for (int i = 0; i < n; i++) {
        h->busy[ops[i] - h->ops] = false;
    }
    take_outcomes(h, l, jobs, ops, n);
}

/* Somebody who asks no service commits a file that no service took. */
static void commit_beside(once_history *h) {
    int which = (int)chance(h, FILES);
    commit_outcome outcome;
    const commit_request request = commit_of(COMMIT_FAST_APPEND, &h->files[which], 1);
    if (h->there[which] == 0) {
        assert_ok(commit_now(&h->c, h->c.catalog, &request, &outcome, &err));
        h->there[which] = 1;
    }
}

static void come_between(void *ctx) {
    once_leader *l = ctx;
    once_history *h = l->h;
    if (h->nested > 0) {
        return;
    }
    h->nested++;
    uint32_t what = chance(h, 6);
    if (what < 2) {
        run_group(h, l == &h->leaders[0]);
    } else if (what == 2) {
        commit_beside(h);
    } else if (what == 3) {
        h->now_us += COMPACT_REMOVE_US + 1;
    }
    h->nested--;
}

static void end_leader(once_leader *l) {
    table_version_release(l->group.known);
    l->group.known = NULL;
    commit_index_release(&l->index);
    file_index_release(&l->files);
}

static void begin_leader(once_leader *l) {
    once_history *h = l->h;
    commit_index_init(&l->index, h->c.env);
    file_index_init(&l->files, h->c.env);
    l->group = (commit_group){h->c.env, &l->proxy.base, &h->c.ident, &l->index,
                              NULL,     &l->counters,   &l->files};
}

static void check_rows(once_history *h) {
    tarn_buf text;
    scan_options options = case_scan_options();
    buf_init(&text, h->c.env, 0);
    assert_ok(case_scan(&h->c, &options, NULL, &text, NULL, &err));
    assert_ok(buf_append_char(&text, '\0', &err));
    for (int i = 0; i < FILES; i++) {
        char row[16];
        int n = 0;
        (void)snprintf(row, sizeof row, "\"r%d\"", i);
        for (const char *at = (const char *)text.data; (at = strstr(at, row)) != NULL; at++) {
            n++;
        }
        if (n != h->there[i]) {
            fail_msg("the row of file %d is there %d times, and not %d", i, n, h->there[i]);
        }
    }
    buf_release(&text);
}

static void open_history(once_history *h, tarn_env **env, uint64_t seed) {
    static const char *const policy[] = {"tarn.compact-before-commit", "true",
                                         "commit.retry.min-wait-ms", "1", NULL};
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    memset(h, 0, sizeof *h);
    h->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    h->now_us = INT64_C(1700000000000000);
    options.clock_us = tell_time;
    options.sleep_ms = no_sleep;
    options.ctx = h;
    assert_ok(tarn_env_new(&options, env, &err));
    case_open(&h->c, *env, chance(h, 4) == 0 ? CASE_SQLITE_MEMORY : CASE_DIR_MEMORY);
    case_table(&h->c, 2 + (int32_t)chance(h, 2), "p int, v string", "p", policy);
    tarn_table_version *version = case_load(&h->c);
    for (int i = 0; i < FILES; i++) {
        char line[64];
        write_result written;
        (void)snprintf(line, sizeof line, "{\"p\":%d,\"v\":\"r%d\"}\n", i % 2, i);
        assert_ok(case_write(&h->c, version, line, &h->c.arena, &written, &err));
        h->files[i] = written.files[0];
    }
    table_version_release(version);
    for (int i = 0; i < 2; i++) {
        once_leader *l = &h->leaders[i];
        l->h = h;
        proxy_init(&l->proxy, h->c.catalog);
        l->proxy.before = come_between;
        l->proxy.ctx = l;
        begin_leader(l);
    }
}

static int64_t merged;

static void run_history(uint64_t seed) {
    static once_history h;
    tarn_env *env;
    char first[256];
    print_message("history %llu\n", (unsigned long long)seed);
    open_history(&h, &env, seed);
    for (int step = 0; step < STEPS; step++) {
        uint32_t what = chance(&h, 12);
        once_leader *l = &h.leaders[chance(&h, 2)];
        if (what < 2) {
            end_leader(l);
            begin_leader(l);
        } else if (what < 4) {
            h.now_us += (int64_t)chance(&h, what == 2 ? 100 : 2000) * 1000000;
        }
        run_group(&h, (int)chance(&h, 2));
        check_rows(&h);
    }
    for (int i = 0; i < 2; i++) {
        merged += h.leaders[i].counters.merged_files[0];
        end_leader(&h.leaders[i]);
    }
    (void)case_count_orphans(&h.c, first); /* all that is named is there */
    case_done(&h.c);
    test_env_done(env);
}

static void test_sent_once_histories(void **state) {
    (void)state;
    merged = 0;
    uint64_t n = run_histories(run_history, 40);
    assert_true(merged > (int64_t)n);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sent_once_histories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
