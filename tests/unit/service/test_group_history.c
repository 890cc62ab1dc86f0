/* Goal: whatever befalls two services on one catalog, every commit that was acknowledged is in the
 * table once, none that was not sent again is there twice, and a client's commits are in its order.
 * Method: histories made from a seed: two leaders, whose groups come in between each other's base
 * and swap, answers and swaps that are lost, restarts, clients that send again what is open or what
 * was answered long ago; the files of the head are counted after every step. A failing seed is
 * printed; TARN_HISTORY_SEED runs it alone, TARN_HISTORIES says how many there are. */
#include "histories.h"
#include "unit/write/commit/commit_case.h"

#include "service/group.h"

#define CLIENTS 6
#define EACH    12
#define STEPS   24

typedef struct history_leader {
    struct history *h;
    proxy_catalog proxy;
    commit_index index;
    commit_group group;
} history_leader;

typedef struct history_client {
    int sent; /* its newest commit's number; answered up to it unless open */
    bool open, resent;
    int64_t answers[EACH]; /* snapshot ids */
} history_client;

typedef struct history {
    table_case c;
    uint64_t random;
    bool trims;
    history_leader leaders[2];
    history_client clients[CLIENTS];
    tarn_file files[CLIENTS][EACH];
    bool busy[CLIENTS]; /* in a group that is being decided */
    int nested;
} history;

static uint32_t chance(history *h, uint32_t n) {
    return history_chance(&h->random, n);
}

typedef struct history_job {
    commit_job job;
    commit_request request;
    char id[32];
    int client, number;
    bool again; /* it was answered before */
} history_job;

static void fill_job(history *h, history_job *j, int client) {
    history_client *c = &h->clients[client];
    memset(j, 0, sizeof *j);
    j->client = client;
    j->number = c->sent;
    j->again = !c->open && c->sent > 0 && chance(h, 8) == 0;
    if (j->again) {
        j->number = (int)chance(h, (uint32_t)c->sent);
    }
    (void)snprintf(j->id, sizeof j->id, "%d-%d", client, j->number);
    j->request = commit_of(j->number % 4 == 3 ? COMMIT_MERGE_APPEND : COMMIT_FAST_APPEND,
                           &h->files[client][j->number], 1);
    j->request.commit_id = j->id;
    j->request.share = j->number % 3 != 0;
    j->job.request = &j->request;
    j->job.resent = c->resent || j->again;
}

static void take_outcome(history *h, history_job *j) {
    history_client *c = &h->clients[j->client];
    tarn_code code = j->job.code;
    if (code == TARN_OK && j->again) {
        assert_true(j->job.repeated || h->trims);
        assert_true(j->job.snapshot_id == c->answers[j->number]);
    } else if (code == TARN_OK) {
        c->answers[c->sent++] = j->job.snapshot_id;
        c->open = c->resent = false;
    } else {
        assert_true(code == TARN_COMMIT_UNKNOWN || code == TARN_CONFLICT || code == TARN_DENIED);
        if (!j->again) {
            c->open = true;
            c->resent |= code == TARN_COMMIT_UNKNOWN;
        }
    }
    table_version_release(j->job.version);
}

static void run_group(history *h, int leader) {
    static const proxy_mode modes[] = {PROXY_PASS,
                                       PROXY_PASS,
                                       PROXY_PASS,
                                       PROXY_APPLIED_UNKNOWN,
                                       PROXY_DROPPED_UNKNOWN,
                                       PROXY_APPLIED_CONFLICT,
                                       PROXY_FAILED};
    history_job jobs[CLIENTS];
    history_leader *l = &h->leaders[leader];
    int n = 0;
    for (int i = 0; i < CLIENTS; i++) {
        if (!h->busy[i] && h->clients[i].sent < EACH && chance(h, 3) > 0) {
            h->busy[i] = true;
            fill_job(h, &jobs[n++], i);
        }
    }
    for (int i = 0; i + 1 < n; i++) {
        jobs[i].job.next = &jobs[i + 1].job;
    }
    if (n == 0) {
        return;
    }
    l->proxy.mode = modes[chance(h, sizeof modes / sizeof modes[0])];
    l->proxy.times = 1;
    l->proxy.blind = false;
    group_run(&l->group, &jobs[0].job);
    for (int i = 0; i < n; i++) {
        h->busy[jobs[i].client] = false;
        take_outcome(h, &jobs[i]);
    }
}

/* Between a leader's base and its swap the other one may have a group of its own. */
static void come_between(void *ctx) {
    history_leader *l = ctx;
    history *h = l->h;
    if (h->nested == 0 && chance(h, 3) == 0) {
        h->nested++;
        run_group(h, l == &h->leaders[0]);
        h->nested--;
    }
}

static void restart(history_leader *l) {
    table_version_release(l->group.known);
    l->group.known = NULL;
    commit_index_release(&l->index);
    commit_index_init(&l->index, l->h->c.env);
}

static void find_file(history *h, const tarn_entry *e, int64_t sequence[CLIENTS][EACH]) {
    for (int i = 0; i < CLIENTS; i++) {
        for (int k = 0; k < EACH; k++) {
            if (str_eq(h->files[i][k].path, e->file.path)) {
                assert_true(sequence[i][k] == 0); /* once */
                sequence[i][k] = e->sequence_number;
                return;
            }
        }
    }
    fail_msg("%.*s is nobody's", STR_ARG(e->file.path));
}

static void read_head(history *h, int64_t sequence[CLIENTS][EACH]) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_manifest *manifests;
    int32_t n = 0;
    io_source *source;
    tarn_table_version *version = case_load(&h->c);
    const tarn_snapshot *s = metadata_current_snapshot(version->metadata);
    arena_init(&arena, h->c.env);
    if (s != NULL) {
        assert_ok(store_open(h->c.catalog->store, s->manifest_list, -1, &source, &err));
        assert_ok(manifest_list_read(&arena, source, &manifests, &n, &err));
        source->close(source);
    }
    for (int32_t i = 0; i < n; i++) {
        manifest_read_options options = {.live_only = true};
        manifest_entries entries;
        assert_ok(store_open(h->c.catalog->store, manifests[i].path, -1, &source, &err));
        assert_ok(manifest_read(&arena, source, version->metadata, &manifests[i], &options,
                                &entries, &err));
        source->close(source);
        for (int64_t k = 0; k < entries.count; k++) {
            find_file(h, &entries.items[k], sequence);
        }
    }
    arena_release(&arena);
    table_version_release(version);
}

static void check_head(history *h) {
    int64_t sequence[CLIENTS][EACH];
    memset(sequence, 0, sizeof sequence);
    read_head(h, sequence);
    for (int i = 0; i < CLIENTS; i++) {
        const history_client *c = &h->clients[i];
        for (int k = 0; k < EACH; k++) {
            bool there = sequence[i][k] > 0;
            assert_true(k < c->sent ? there : !there || (k == c->sent && c->resent));
            assert_true(k == 0 || !there || sequence[i][k] >= sequence[i][k - 1]);
        }
    }
}

static void open_history(history *h, tarn_env *env, uint64_t seed) {
    static const char *const plain[] = {"commit.manifest.min-count-to-merge", "3", NULL};
    static const char *const trims[] = {"commit.manifest.min-count-to-merge",
                                        "3",
                                        "tarn.expire-on-commit",
                                        "true",
                                        "history.expire.max-snapshot-age-ms",
                                        "0",
                                        "history.expire.min-snapshots-to-keep",
                                        "3",
                                        NULL};
    memset(h, 0, sizeof *h);
    h->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    h->trims = chance(h, 4) == 0;
    case_open(&h->c, env, chance(h, 4) == 0 ? CASE_SQLITE_MEMORY : CASE_DIR_MEMORY);
    case_table(&h->c, 2 + (int32_t)chance(h, 2), "p int, v string", "p", h->trims ? trims : plain);
    for (int i = 0; i < CLIENTS; i++) {
        for (int k = 0; k < EACH; k++) {
            char name[32];
            (void)snprintf(name, sizeof name, "f%d-%d", i, k);
            h->files[i][k] = commit_file(&h->c, name, k % 2, 1);
        }
    }
    for (int i = 0; i < 2; i++) {
        history_leader *l = &h->leaders[i];
        l->h = h;
        proxy_init(&l->proxy, h->c.catalog);
        l->proxy.before = come_between;
        l->proxy.ctx = l;
        commit_index_init(&l->index, env);
        l->group = (commit_group){env, &l->proxy.base, &h->c.ident, &l->index, NULL, NULL, NULL};
    }
}

static void run_history(uint64_t seed) {
    static history h;
    tarn_env *env = test_env();
    print_message("history %llu\n", (unsigned long long)seed);
    open_history(&h, env, seed);
    /* What a policy dropped is no longer told to others: then one service, without restarts. */
    for (int step = 0; step < STEPS; step++) {
        if (!h.trims && chance(&h, 5) == 0) {
            restart(&h.leaders[chance(&h, 2)]);
        }
        h.nested = h.trims;
        run_group(&h, h.trims ? 0 : (int)chance(&h, 2));
        check_head(&h);
    }
    for (int i = 0; i < 2; i++) {
        restart(&h.leaders[i]);
        commit_index_release(&h.leaders[i].index);
    }
    case_done(&h.c);
    test_env_done(env);
}

static void test_group_histories(void **state) {
    (void)state;
    (void)run_histories(run_history, 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_group_histories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
