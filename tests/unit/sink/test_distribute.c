/* Goal: every row goes to exactly one task, those that belong together to the same one, and ranges
 * part what the sort order parts. Method: batches of known rows through distributors of each mode.
 */
#include "sink_case.h"

#include "sink/distribute.h"

static tarn_error err;

#define TASKS 4
#define ROWS  1000

typedef struct spread {
    table_case c;
    tarn_arena arena;
    tarn_table_version *version;
    sink_keys keys;
    tarn_batch batch;
    int32_t task_of[ROWS];
} spread;

static void start(spread *s, tarn_env *env, const char *partition_by, const char *sort_by) {
    memset(s, 0, sizeof *s);
    case_open(&s->c, env, CASE_DIR_MEMORY);
    arena_init(&s->arena, env);
    metadata_new_options options;
    memset(&options, 0, sizeof options);
    options.partition_by = str_of(partition_by);
    options.sort_by = str_of(sort_by);
    assert_ok(type_from_text(&s->c.arena, STR("struct<id: int, day: int>"), &options.root, &err));
    assert_ok(catalog_create(s->c.catalog, &s->c.ident, &options, NULL, &err));
    s->version = case_load(&s->c);
    tarn_buf lines;
    buf_init(&lines, env, 0);
    for (int i = 0; i < ROWS; i++) {
        if (i % 10 == 9) {
            assert_ok(buf_printf(&lines, &err, "{\"id\":null,\"day\":%d}\n", i % 7));
        } else {
            assert_ok(buf_printf(&lines, &err, "{\"id\":%d,\"day\":%d}\n", i * 7919 % ROWS, i % 7));
        }
    }
    assert_ok(buf_append_char(&lines, '\0', &err));
    assert_ok(rows_read(env, &s->arena, metadata_schema(s->version->metadata)->root,
                        (const char *)lines.data, &s->batch, &err));
    buf_release(&lines);
}

static void done(spread *s) {
    batch_release(&s->batch);
    table_version_release(s->version);
    arena_release(&s->arena);
    case_done(&s->c);
}

static void route(spread *s, distributor *d) {
    const task_rows *lists;
    int64_t rows = 0;
    assert_ok(distributor_route(d, &s->batch, &lists, &err));
    memset(s->task_of, -1, sizeof s->task_of);
    for (int32_t i = 0; i < TASKS; i++) {
        rows += lists[i].n;
        for (int64_t r = 0; r < lists[i].n; r++) {
            assert_int_equal(s->task_of[lists[i].rows[r]], -1);
            assert_true(r == 0 || lists[i].rows[r] > lists[i].rows[r - 1]);
            s->task_of[lists[i].rows[r]] = i;
        }
    }
    assert_int_equal(rows, ROWS);
}

static void test_modes(void **state) {
    (void)state;
    tarn_env *env = test_env();
    distributor *d = NULL;
    spread *s = malloc(sizeof *s);
    start(s, env, "day", NULL);
    const tarn_metadata *m = s->version->metadata;
    assert_ok(distributor_new(env, m, STR("none"), &s->keys, TASKS, &d, &err));
    assert_true(distributor_is_whole(d));
    distributor_free(d);
    assert_ok(distributor_new(env, m, STR("hash"), &s->keys, TASKS, &d, &err));
    route(s, d);
    for (int i = 7; i < ROWS; i++) {
        assert_int_equal(s->task_of[i], s->task_of[i - 7]);
    }
    distributor_free(d);
    assert_code(distributor_new(env, m, STR("sideways"), &s->keys, TASKS, &d, &err), TARN_INVALID);
    static const int32_t ids[] = {1};
    s->keys.kind = DELETE_EQUALITY;
    s->keys.ids = ids;
    s->keys.n_ids = 1;
    assert_code(distributor_new(env, m, STR("range"), &s->keys, TASKS, &d, &err), TARN_INVALID);
    assert_ok(distributor_new(env, m, STR_NULL, &s->keys, TASKS, &d, &err));
    route(s, d);
    for (int i = 19; i < ROWS; i += 10) { /* null keys are one key here; the sink refuses them */
        assert_int_equal(s->task_of[i], s->task_of[9]);
    }
    distributor_free(d);
    done(s);
    free(s);
    test_env_done(env);
}

static void test_ranges(void **state) {
    (void)state;
    static const char *const orders[] = {"id", "id desc nulls last"};
    for (int o = 0; o < 2; o++) {
        tarn_env *env = test_env();
        distributor *d = NULL;
        spread *s = malloc(sizeof *s);
        int32_t count[TASKS] = {0};
        start(s, env, NULL, orders[o]);
        assert_ok(
            distributor_new(env, s->version->metadata, STR("range"), &s->keys, TASKS, &d, &err));
        route(s, d);
        for (int i = 0; i < ROWS; i++) {
            count[s->task_of[i]]++;
            if (i % 10 == 9) {
                assert_int_equal(s->task_of[i], o == 0 ? 0 : TASKS - 1);
                continue;
            }
            for (int k = i + 1; k < ROWS; k += 37) {
                if (k % 10 != 9 && i * 7919 % ROWS < k * 7919 % ROWS) {
                    assert_true(o == 0 ? s->task_of[i] <= s->task_of[k]
                                       : s->task_of[i] >= s->task_of[k]);
                }
            }
        }
        for (int i = 0; i < TASKS; i++) {
            assert_in_range(count[i], ROWS / TASKS - 20, ROWS / TASKS + 20);
        }
        distributor_free(d);
        done(s);
        free(s);
        test_env_done(env);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
