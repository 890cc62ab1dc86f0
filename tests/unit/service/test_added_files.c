/* Goal: which files came since is answered from memory where a snapshot is known and by reading
 * where it is not; memory is bounded; what cannot be read is no answer. Method: made-up snapshots
 * whose manifest lists are nowhere, so that an answer shows that nothing was read, and its lack
 * that something was forgotten. Real ones are in test_rebase.c. */
#include "fail_alloc.h"
#include "table_case.h"

#include "service/added_files.h"

#include <pthread.h>

#define SNAPSHOTS 64
#define THREADS   4

typedef struct bench {
    tarn_env *env;
    table_case c; /* of which the store is used */
    added_files *known;
    tarn_snapshot snapshots[SNAPSHOTS];
    const tarn_snapshot *order[SNAPSHOTS];
    tarn_metadata metadata;
    char lists[SNAPSHOTS][32];
} bench;

/* Snapshot i has id i + 1 and stands on the one before. */
static void bench_begin(bench *b, tarn_env *env) {
    tarn_error err = TARN_ERROR_INIT;
    memset(b, 0, sizeof *b);
    b->env = env;
    case_open(&b->c, env, CASE_DIR_MEMORY);
    assert_ok(added_files_new(env, &b->known, &err));
    for (int i = 0; i < SNAPSHOTS; i++) {
        (void)snprintf(b->lists[i], sizeof b->lists[i], "/nowhere/list-%d.avro", i);
        b->snapshots[i].snapshot_id = i + 1;
        b->snapshots[i].parent_id = i > 0 ? i : TARN_NO_SNAPSHOT;
        b->snapshots[i].sequence_number = i + 1;
        b->snapshots[i].manifest_list = str_of(b->lists[i]);
        b->order[i] = &b->snapshots[i];
    }
    b->metadata.format_version = 2;
    b->metadata.snapshots = b->order;
    b->metadata.n_snapshots = SNAPSHOTS;
}

static void bench_end(bench *b) {
    added_files_free(b->known);
    case_done(&b->c);
    test_env_done(b->env);
}

/* n hashes from first on, by step; in order. */
static added_paths paths_from(bench *b, uint64_t first, uint64_t step, int32_t n) {
    uint64_t *hashes = ARENA_ARRAY(&b->c.arena, uint64_t, (size_t)n + 1);
    assert_non_null(hashes);
    for (int32_t i = 0; i < n; i++) {
        hashes[i] = first + step * (uint64_t)i;
    }
    return (added_paths){hashes, n};
}

static tarn_code ask(bench *b, int head, int64_t since, added_paths paths, int64_t *by) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_snapshot *found;
    uint64_t hash = 0;
    const added_question q = {b->c.catalog->store, &b->metadata, &b->snapshots[head], since, paths};
    tarn_code code = added_files_ask(b->known, &q, &found, &hash, &err);
    *by = code == TARN_OK && found != NULL ? found->snapshot_id : 0;
    return code;
}

static void is_known_by(bench *b, int head, int64_t since, added_paths paths, int64_t want) {
    int64_t by;
    assert_code(ask(b, head, since, paths, &by), TARN_OK);
    assert_int_equal(by, want);
}

static void known_ones_are_not_read(void **state) {
    bench b;
    int64_t by;
    (void)state;
    bench_begin(&b, test_env());
    for (int i = 0; i < 10; i++) {
        added_files_remember(b.known, &b.snapshots[i], paths_from(&b, 1000 * (uint64_t)i, 2, 50));
    }
    is_known_by(&b, 9, 2, paths_from(&b, 5004, 1, 1), 6);
    is_known_by(&b, 9, 2, paths_from(&b, 5005, 1, 1), 0);
    is_known_by(&b, 9, 2, paths_from(&b, 0, 7, 1500), 10); /* the newest is told */
    is_known_by(&b, 9, 6, paths_from(&b, 5004, 1, 1), 0);  /* the client has seen it */
    is_known_by(&b, 4, 2, paths_from(&b, 5004, 1, 1), 0);  /* it is not below the head */
    is_known_by(&b, 9, TARN_NO_SNAPSHOT, paths_from(&b, 2, 1, 1), 1);
    is_known_by(&b, 9, 10, paths_from(&b, 2, 1, 1), 0);
    assert_code(ask(&b, 10, 2, paths_from(&b, 5005, 1, 1), &by), TARN_NOT_FOUND);
    b.snapshots[5].manifest_list = STR("/nowhere/else.avro"); /* another of the same id */
    assert_code(ask(&b, 9, 2, paths_from(&b, 5005, 1, 1), &by), TARN_NOT_FOUND);
    added_files_remember(b.known, &b.snapshots[5], paths_from(&b, 1, 1, 1));
    is_known_by(&b, 9, 2, paths_from(&b, 1, 1, 1), 6);
    bench_end(&b);
}

static void memory_is_bounded(void **state) {
    enum { HALF = ADDED_FILES_MOST / 2 - ADDED_FILES_SNAPSHOT };
    bench b;
    int64_t by, least = 0;
    (void)state;
    bench_begin(&b, test_env());
    added_paths many = paths_from(&b, 0, 2, HALF);
    const int64_t before = (int64_t)tarn_env_memory_now(b.env);
    for (int i = 0; i < 12; i++) {
        added_files_remember(b.known, &b.snapshots[i], many);
        int64_t now = (int64_t)tarn_env_memory_now(b.env) - before;
        assert_true(now < 2 * ADDED_FILES_MOST * (int64_t)sizeof(uint64_t) + (1 << 20));
        least = i == 3 ? now : least;
    }
    assert_true(least > ADDED_FILES_MOST * (int64_t)sizeof(uint64_t)); /* four are remembered */
    is_known_by(&b, 11, 10, paths_from(&b, 1, 2, 1), 0);
    assert_code(ask(&b, 11, 5, paths_from(&b, 1, 2, 1), &by), TARN_LIMIT);
    assert_code(ask(&b, 3, 3, paths_from(&b, 1, 2, 1), &by), TARN_NOT_FOUND);

    added_files_remember(b.known, &b.snapshots[12],
                         paths_from(&b, 1, 2, (int32_t)ADDED_FILES_MOST));
    assert_code(ask(&b, 12, 12, paths_from(&b, 0, 2, 1), &by), TARN_NOT_FOUND);
    bench_end(&b);
}

static void histories_that_are_wrong(void **state) {
    bench b;
    int64_t by;
    (void)state;
    bench_begin(&b, test_env());
    for (int i = 0; i < 10; i++) {
        added_files_remember(b.known, &b.snapshots[i], paths_from(&b, 10, 1, 1));
    }
    assert_code(ask(&b, 9, 40, paths_from(&b, 1, 1, 1), &by), TARN_CONFLICT); /* no ancestor */
    b.snapshots[3].parent_id = 4711;                                          /* that has expired */
    assert_code(ask(&b, 9, TARN_NO_SNAPSHOT, paths_from(&b, 1, 1, 1), &by), TARN_CONFLICT);
    b.snapshots[3].parent_id = 9; /* a ring */
    assert_code(ask(&b, 9, 1, paths_from(&b, 1, 1, 1), &by), TARN_LIMIT);
    bench_end(&b);
}

/* Whatever allocation fails, a snapshot is known as it is or not at all. */
static void without_memory(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    (void)state;
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_env *env = fail_alloc_env(&plan, k);
        const uint64_t hashes[] = {1, 5};
        const tarn_snapshot s = {.snapshot_id = 7, .parent_id = 3, .manifest_list = STR("list")};
        const tarn_snapshot *order = &s, *by = NULL;
        const tarn_metadata m = {.n_snapshots = 1, .snapshots = &order};
        const added_question q = {NULL, &m, &s, 7, {hashes, 2}};
        added_files *known = NULL;
        uint64_t hash;
        if (added_files_new(env, &known, &err) == TARN_OK) {
            added_files_remember(known, &s, (added_paths){hashes, 2});
            assert_ok(added_files_ask(known, &q, &by, &hash, &err));
        }
        added_files_free(known);
        fail_alloc_done(&plan, env);
        if (!plan.failed) {
            break;
        }
    }
}

static void *work(void *ctx) {
    bench *b = ctx;
    const uint64_t hashes[] = {3, 4};
    for (int round = 0; round < 200; round++) {
        int64_t by;
        for (int i = 0; i < SNAPSHOTS; i++) {
            added_files_remember(b->known, &b->snapshots[i],
                                 (added_paths){i == 9 ? hashes + 1 : hashes, 1});
        }
        assert_code(ask(b, 40, 2, (added_paths){hashes + 1, 1}, &by), TARN_OK);
        assert_int_equal(by, 10);
    }
    return NULL;
}

static void several_threads(void **state) {
    bench b;
    pthread_t threads[THREADS];
    (void)state;
    bench_begin(&b, test_env());
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, &b), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    bench_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_ones_are_not_read),  cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(histories_that_are_wrong), cmocka_unit_test(without_memory),
        cmocka_unit_test(several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
