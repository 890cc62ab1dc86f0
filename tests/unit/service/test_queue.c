/* Goal: many threads that commit to several tables at once each get their own outcome, and every
 * commit is in its table once.
 * Method: threads that each send appends, some of them twice and some that must be refused, while
 * another catalog client moves the pointers; then the tables' snapshots are counted. */
#include "unit/write/commit/commit_case.h"

#include "service/commit_index.h"
#include "service/queue.h"

#include <pthread.h>

#define THREADS 8
#define EACH    12

typedef struct queue_case {
    table_case c;
    commit_queues *queues;
    tarn_file files[THREADS][EACH];
    int64_t snapshots[THREADS][EACH];
} queue_case;

typedef struct sender {
    queue_case *q;
    int number;
    pthread_t thread;
    int wrong;
} sender;

static tarn_code send_one(sender *s, int i, bool refused, int64_t *snapshot_id) {
    char id[32];
    commit_job job;
    commit_request r = commit_of(COMMIT_FAST_APPEND, &s->q->files[s->number][i], 1);
    memset(&job, 0, sizeof job);
    (void)snprintf(id, sizeof id, "%d-%d%s", s->number, i, refused ? "-no" : "");
    r.commit_id = id;
    r.share = i % 3 != 0;
    r.table_uuid = refused ? STR("another table") : STR_NULL;
    job.request = &r;
    tarn_code code = commit_queue_run(s->q->queues, &s->q->c.ident, &job);
    s->wrong +=
        code == TARN_OK && metadata_snapshot_by_id(job.version->metadata, job.snapshot_id) == NULL;
    *snapshot_id = job.snapshot_id;
    table_version_release(job.version);
    return code;
}

static void *send_all(void *ctx) {
    sender *s = ctx;
    for (int i = 0; i < EACH; i++) {
        int64_t again;
        int64_t *first = &s->q->snapshots[s->number][i];
        s->wrong += send_one(s, i, false, first) != TARN_OK;
        s->wrong += send_one(s, i, false, &again) != TARN_OK || again != *first;
        s->wrong += i % 4 == 0 && send_one(s, i, true, &again) != TARN_CONFLICT;
    }
    return NULL;
}

static void *move_pointer(void *ctx) {
    queue_case *q = ctx;
    for (int i = 0; i < EACH; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "rival%d", i);
        commit_append_file(&q->c, name, i);
    }
    return NULL;
}

static void check_once(queue_case *q) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_table_version *version = case_load(&q->c);
    const tarn_snapshot *head = metadata_current_snapshot(version->metadata);
    tarn_str files = STR_NULL;
    assert_true(properties_get(&head->summary, "total-data-files", &files));
    int64_t n = 0;
    assert_true(str_to_i64(files, &n));
    assert_int_equal(n, THREADS * EACH + EACH);
    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < EACH; i++) {
            int64_t found;
            char id[32];
            (void)snprintf(id, sizeof id, "%d-%d", t, i);
            assert_ok(commit_index_search(q->c.env, q->c.catalog->store, version->metadata,
                                          STR(TARN_MAIN_BRANCH), str_of(id), &found, &err));
            assert_true(found == q->snapshots[t][i]);
        }
    }
    table_version_release(version);
}

static void test_queue_many(void **state) {
    (void)state;
    /* Where no two commits come together there are more metadata files than a log holds. */
    static const char *const QUICK[] = {"commit.retry.min-wait-ms",
                                        "1",
                                        "commit.retry.max-wait-ms",
                                        "20",
                                        "write.metadata.previous-versions-max",
                                        "1000",
                                        NULL};
    static const case_kind kinds[] = {CASE_DIR_MEMORY, CASE_SQLITE_FILE};
    for (int k = 0; k < 2; k++) {
        static queue_case q;
        sender senders[THREADS];
        pthread_t rival;
        service_counters counters;
        tarn_error err = TARN_ERROR_INIT;
        memset(&q, 0, sizeof q);
        memset(&counters, 0, sizeof counters);
        tarn_env *env = test_env();
        case_open(&q.c, env, kinds[k]);
        case_table(&q.c, 2, "p int, v string", "p", QUICK);
        for (int t = 0; t < THREADS; t++) {
            for (int i = 0; i < EACH; i++) {
                char name[32];
                (void)snprintf(name, sizeof name, "f%d-%d", t, i);
                q.files[t][i] = commit_file(&q.c, name, i, 1);
            }
        }
        assert_ok(commit_queues_new(env, q.c.catalog, &counters, &q.queues, &err));
        for (int t = 0; t < THREADS; t++) {
            senders[t] = (sender){&q, t, 0, 0};
            assert_int_equal(pthread_create(&senders[t].thread, NULL, send_all, &senders[t]), 0);
        }
        assert_int_equal(pthread_create(&rival, NULL, move_pointer, &q), 0);
        for (int t = 0; t < THREADS; t++) {
            (void)pthread_join(senders[t].thread, NULL);
            assert_int_equal(senders[t].wrong, 0);
        }
        (void)pthread_join(rival, NULL);
        commit_queues_free(q.queues);
        check_once(&q);
        case_check_files(&q.c, 0);
        case_done(&q.c);
        test_env_done(env);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_queue_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
