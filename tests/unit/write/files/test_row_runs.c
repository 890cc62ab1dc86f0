/* Goal: runs in a temporary file, merged, are the order that one sort of all rows gives.
 * Method: random rows of many types in one batch, sorted at once; the same rows in runs of random
 * lengths, more of them than are merged at once, with blocks of a few rows, merged with rows behind
 * them; row numbers are compared one by one. Every allocation failing in turn. */
#include "fail_alloc.h"
#include "unit/table/rows.h"

#include "iceberg/metadata.h"
#include "write/files/row_runs.h"

static tarn_error err;

static uint64_t next_random(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

typedef struct runs_case {
    tarn_env *env;
    tarn_arena arena;
    const tarn_type *root;
    const row_sorter *sorter;
    row_spill spill;
    row_runs runs;
} runs_case;

static tarn_code case_init(runs_case *c, tarn_env *env, const char *by, int64_t memory,
                           tarn_error *e) {
    tarn_code code = TARN_OK;
    tarn_sort_order *order;
    int32_t next_id = 1;
    memset(c, 0, sizeof *c);
    c->env = env;
    arena_init(&c->arena, env);
    TRY(type_from_text(&c->arena,
                       STR("struct<n: int, s: string, d: double, l: list<string>, st: "
                           "struct<k: int>>"),
                       &c->root, e));
    c->root = type_assign_ids(&c->arena, c->root, &next_id);
    order = ARENA_NEW(&c->arena, tarn_sort_order);
    if (c->root == NULL || order == NULL) {
        return err_nomem(e);
    }
    TRY(sort_order_from_text(&c->arena, c->root, str_of(by), order, e));
    TRY(row_sorter_new(&c->arena, c->root, order, &c->sorter, e));
    row_spill_init(&c->spill, env, c->sorter, c->root, memory);
done:
    return code;
}

static void case_release(runs_case *c) {
    row_runs_release(&c->runs, c->env);
    row_spill_release(&c->spill);
    arena_release(&c->arena);
}

/* Keys are few, so that equal ones lie in many runs. */
static tarn_code put_row(tarn_builder *b, int32_t n, uint64_t *seed, tarn_error *e) {
    static const char *const words[] = {"", "a", "a\x01", "ab", "zebra", "z"};
    tarn_code code = TARN_OK;
    uint64_t r = next_random(seed);
    double d = (double)(int)(r % 7) - 3;
    int32_t k = (int32_t)(r / 7 % 50);
    TRY(builder_fixed(&b->children[0], &n, e));
    TRY(r % 5 == 0 ? builder_null(&b->children[1], e)
                   : builder_bytes(&b->children[1], str_of(words[r / 11 % 6]), e));
    TRY(r % 13 == 0 ? builder_null(&b->children[2], e) : builder_fixed(&b->children[2], &d, e));
    for (uint64_t i = 0; i < r % 4; i++) {
        TRY(builder_bytes(&b->children[3].children[0], STR("item"), e));
    }
    TRY(r % 17 == 0 ? builder_null(&b->children[3], e) : builder_close(&b->children[3], e));
    if (r % 19 == 0) {
        TRY(builder_null(&b->children[4], e));
    } else {
        TRY(builder_fixed(&b->children[4].children[0], &k, e));
        TRY(builder_close(&b->children[4], e));
    }
    TRY(builder_close(b, e));
done:
    return code;
}

static tarn_code make_rows(runs_case *c, int32_t rows, tarn_batch *out, tarn_error *e) {
    tarn_builder b;
    uint64_t seed = 4;
    tarn_code code = TARN_OK;
    TRY(builder_init(&b, c->env, c->root, e));
    for (int32_t n = 0; n < rows; n++) {
        TRY(put_row(&b, n, &seed, e));
    }
    TRY(builder_finish_batch(&b, out, e));
done:
    builder_release(&b);
    return code;
}

/* Rows [start, end) of all as a run. */
static tarn_code add_run(runs_case *c, const tarn_batch *all, int32_t start, int32_t end,
                         tarn_batch *part, tarn_error *e) {
    tarn_code code = TARN_OK;
    row_order order;
    int32_t index[2000];
    memset(&order, 0, sizeof order);
    for (int32_t i = start; i < end; i++) {
        index[i - start] = i;
    }
    TRY(batch_gather(c->env, all, index, end - start, part, e));
    TRY(row_order_make(c->sorter, c->env, part, &order, e));
    TRY(row_spill_add(&c->spill, &c->runs, part, &order, e));
    batch_release(part);
done:
    row_order_release(&order);
    return code;
}

/* Appends row numbers in order to out. */
static tarn_code take_batch(runs_case *c, const tarn_batch *batch, int32_t *out, int32_t *n,
                            tarn_buf *text, tarn_error *e) {
    row_order order;
    tarn_batch sorted;
    tarn_view numbers;
    memset(&sorted, 0, sizeof sorted);
    tarn_code code = TARN_OK;
    TRY(row_order_make(c->sorter, c->env, batch, &order, e));
    TRY(batch_gather(c->env, batch, order.rows, order.n, &sorted, e));
    view_column(&sorted, 0, &numbers);
    memcpy(out + *n, numbers.values, (size_t)order.n * sizeof *out);
    *n += (int32_t)order.n;
    if (text != NULL) {
        TRY(rows_write(&sorted, text, e));
    }
done:
    batch_release(&sorted);
    row_order_release(&order);
    return code;
}

/* All rows in runs of up to 40 rows, the rest behind them, merged. */
static tarn_code merge_all(runs_case *c, const tarn_batch *all, int32_t tail, int32_t *out,
                           tarn_buf *text, tarn_error *e) {
    tarn_code code = TARN_OK;
    uint64_t seed = 3;
    int32_t rows = (int32_t)batch_rows(all);
    int32_t n = 0;
    row_merge *merge = NULL;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    for (int32_t at = 0; at < rows - tail;) {
        int32_t some = 1 + (int32_t)(next_random(&seed) % 40);
        int32_t end = at + some < rows - tail ? at + some : rows - tail;
        TRY(add_run(c, all, at, end, &batch, e));
        at = end;
    }
    if (tail > 0) {
        int32_t index[2000];
        for (int32_t i = 0; i < tail; i++) {
            index[i] = rows - tail + i;
        }
        TRY(batch_gather(c->env, all, index, tail, &batch, e));
    }
    TRY(row_merge_open(&c->spill, &c->runs, &batch, &merge, e));
    batch_release(&batch);
    for (;;) {
        TRY(row_merge_next(merge, &batch, e));
        if (batch_rows(&batch) == 0) {
            break;
        }
        TRY(take_batch(c, &batch, out, &n, text, e));
        batch_release(&batch);
    }
    code = n == rows ? TARN_OK : TARN_INTERNAL;
done:
    batch_release(&batch);
    row_merge_free(merge);
    return code;
}

static void merges(const char *by, int32_t rows, int32_t tail, int64_t memory) {
    tarn_env *env = test_env();
    runs_case c;
    tarn_batch all;
    tarn_buf want_text;
    tarn_buf text;
    int32_t n = 0;
    int32_t *want = test_malloc((size_t)rows * sizeof *want);
    int32_t *got = test_malloc((size_t)rows * sizeof *got);
    buf_init(&want_text, env, 0);
    buf_init(&text, env, 0);
    assert_ok(case_init(&c, env, by, memory, &err));
    c.spill.block_bytes = memory == 0 ? 200 : c.spill.block_bytes;
    assert_ok(make_rows(&c, rows, &all, &err));
    assert_ok(take_batch(&c, &all, want, &n, &want_text, &err));
    for (int round = 0; round < 2; round++) {
        buf_reset(&text);
        assert_ok(merge_all(&c, &all, tail, got, &text, &err));
        assert_memory_equal(got, want, (size_t)rows * sizeof *got);
        assert_int_equal(text.len, want_text.len);
        assert_memory_equal(text.data, want_text.data, text.len);
        row_runs_release(&c.runs, env);
        assert_ok(row_spill_clear(&c.spill, &err));
        assert_int_equal(row_spill_bytes(&c.spill), 0);
    }
    buf_release(&text);
    buf_release(&want_text);
    batch_release(&all);
    case_release(&c);
    test_free(want);
    test_free(got);
    test_env_done(env);
}

static void test_merge_is_a_sort(void **state) {
    (void)state;
    static const char *const orders[] = {"n",
                                         "n desc",
                                         "s, d desc",
                                         "s desc nulls first, bucket(5, n)",
                                         "truncate(1, s) nulls last",
                                         "d desc nulls last, s",
                                         "st.k nulls last"};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        merges(orders[i], 300, 0, 0);
        merges(orders[i], 900, 57, 0);   /* fewer runs than are merged at once */
        merges(orders[i], 4000, 900, 0); /* more: joined first */
        merges(orders[i], 3000, 1900, 64 << 20);
    }
    merges("s", 90000, 10, 0); /* joined twice */
}

static void test_merge_memory(void **state) {
    (void)state;
    enum { ROWS = 1700 };
    static int32_t got[ROWS];
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        runs_case c;
        tarn_batch all;
        tarn_error e = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, 0);
        memset(&all, 0, sizeof all);
        assert_ok(case_init(&c, env, "s, d desc", 0, &e));
        assert_ok(make_rows(&c, ROWS, &all, &e));
        atomic_store(&plan.count, 0);
        plan.fail_at = k;
        tarn_code code = merge_all(&c, &all, 100, got, NULL, &e);
        bool failed = plan.failed;
        plan.fail_at = 0;
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        batch_release(&all);
        case_release(&c);
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
        k += test_every() ? 0 : k % 61;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge_is_a_sort),
        cmocka_unit_test(test_merge_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
