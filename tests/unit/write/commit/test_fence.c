/* Goal: a branch that was moved back behind a snapshot is told from one that holds it, one that
 * holds a newer one of the same, and one whose history is cut.
 * Method: made-up histories of one table, that differ in one thing. */
#include "test.h"

#include "write/commit/commit.h"

#define N 4

typedef struct bench {
    tarn_snapshot snapshots[N];
    const tarn_snapshot *order[N];
    tarn_property summaries[N][2];
    char steps[N][16];
    tarn_ref ref;
    tarn_metadata metadata;
} bench;

/* Snapshot i has id 10 + i, stands on the one before, and is of sink s with step i. */
static void bench_begin(bench *b) {
    memset(b, 0, sizeof *b);
    for (int i = 0; i < N; i++) {
        tarn_snapshot *s = &b->snapshots[i];
        s->snapshot_id = 10 + i;
        s->parent_id = i > 0 ? 9 + i : TARN_NO_SNAPSHOT;
        s->sequence_number = i + 1;
        (void)snprintf(b->steps[i], sizeof b->steps[i], "%d", i);
        b->summaries[i][0] = (tarn_property){STR("sink"), STR("s")};
        b->summaries[i][1] = (tarn_property){STR("step"), str_of(b->steps[i])};
        s->summary = (tarn_properties){2, b->summaries[i]};
        b->order[i] = s;
    }
    b->ref = (tarn_ref){STR("main"), 13, false, -1, -1, -1};
    b->metadata = (tarn_metadata){.format_version = 2,
                                  .snapshots = b->order,
                                  .n_snapshots = N,
                                  .current_snapshot_id = 13,
                                  .refs = &b->ref,
                                  .n_refs = 1};
}

static bool holds(const bench *b, int64_t id, int64_t step) {
    static const tarn_property of = {{"sink", 4}, {"s", 1}};
    const commit_fence fence = {.of = {1, &of},
                                .number = STR("epoch"),
                                .step = STR("step"),
                                .holds = id,
                                .holds_step = step};
    return commit_fence_holds(&b->metadata, STR("main"), &fence);
}

static void test_fence_holds(void **state) {
    bench b;
    (void)state;
    bench_begin(&b);
    assert_true(holds(&b, 13, 3));
    assert_true(holds(&b, 13, 7)); /* empty checkpoints came after it */
    assert_true(holds(&b, 4711, 2));
    assert_true(holds(&b, 4711, 3));
    assert_false(holds(&b, 4711, 4));
    b.summaries[3][0].value = STR("t"); /* another's says nothing */
    assert_true(holds(&b, 4711, 2));
    assert_false(holds(&b, 4711, 3));
    b.summaries[2][1].value = STR("0"); /* and so does one without a step */
    assert_false(holds(&b, 4711, 2));
    assert_true(holds(&b, 4711, 1));
}

static void test_fence_without_a_history(void **state) {
    bench b;
    (void)state;
    bench_begin(&b);
    for (int i = 0; i < N; i++) {
        b.summaries[i][0].value = STR("t");
    }
    assert_true(holds(&b, 11, 1));
    assert_false(holds(&b, 4711, 1)); /* back to the first, it is not there */
    b.snapshots[1].parent_id = 4711;  /* that has expired */
    assert_true(holds(&b, 42, 1));
    b.metadata.n_refs = 0; /* the branch is gone, and its history with it */
    assert_false(holds(&b, 42, 1));
    b.metadata.current_snapshot_id = TARN_NO_SNAPSHOT;
    assert_false(holds(&b, 42, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fence_holds),
        cmocka_unit_test(test_fence_without_a_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
