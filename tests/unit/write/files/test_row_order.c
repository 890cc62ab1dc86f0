/* Goal: rows are put in the order of the specification, whatever the type, direction and place of
 * nulls.
 * Method: random values, small ones and edges often, sorted by keys and then looked at two by two
 * with value_cmp; equal rows keep their order; sort orders that are not known are left alone. */
#include "fail_alloc.h"
#include "unit/table/rows.h"

#include <math.h>

#include "write/files/row_order.h"

static tarn_error err;

static uint64_t next_random(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 20;
}

/* Any bits, or a value near zero. */
static int64_t make_number(uint64_t *seed) {
    int64_t v = (int64_t)(next_random(seed) << 30 ^ next_random(seed));
    return next_random(seed) % 3 == 0 ? v : v % 5;
}

static double make_real(uint64_t *seed) {
    static const double edges[] = {0.0, -0.0, NAN, -NAN, INFINITY, -INFINITY, 1e-310, -1e-310};
    uint64_t r = next_random(seed);
    return r % 3 == 0 ? edges[r / 3 % 8] : (double)make_number(seed) / 16.0;
}

static tarn_value make_value(const tarn_type *type, uint64_t *seed, char room[40]) {
    tarn_value v = value_null(type);
    v.is_null = next_random(seed) % 6 == 0;
    if (v.is_null) {
        return v;
    }
    if (type->kind == TARN_FLOAT) {
        v.as.f32 = (float)make_real(seed);
    } else if (type->kind == TARN_DOUBLE) {
        v.as.f64 = make_real(seed);
    } else if (type->kind == TARN_BOOLEAN) {
        v.as.boolean = next_random(seed) % 2 != 0;
    } else if (type->kind == TARN_INT || type->kind == TARN_DATE) {
        v.as.i32 = (int32_t)make_number(seed);
    } else if (type->kind == TARN_DECIMAL) {
        v.as.i128 = (tarn_int128)make_number(seed) * (1 + (int64_t)(next_random(seed) % 1000));
    } else if (type_is_var(type) || type->kind == TARN_UUID || type->kind == TARN_FIXED) {
        size_t len = next_random(seed) % 12;
        len = type->kind == TARN_UUID ? 16 : type->kind == TARN_FIXED ? 5 : len;
        for (size_t i = 0; i < len; i++) {
            room[i] = type->kind == TARN_STRING ? (char)(next_random(seed) % 3)
                                                : (char)("\0\1\xfe\xff"[next_random(seed) % 4]);
        }
        v.as.bytes = str_make(room, len);
    } else {
        v.as.i64 = make_number(seed);
    }
    return v;
}

#define SCHEMA                                                                                     \
    "struct<n: int, b: boolean, l: long, f: float, d: double, x: decimal(30,2), y: date, t: time," \
    " ts: timestamptz, ns: timestamp_ns, s: string, u: uuid, fx: fixed[5], bin: binary>"

static void make_batch(tarn_env *env, const tarn_type *root, int rows, tarn_batch *out,
                       uint64_t *seed) {
    tarn_builder b;
    assert_ok(builder_init(&b, env, root, &err));
    for (int32_t row = 0; row < rows; row++) {
        assert_ok(builder_fixed(&b.children[0], &row, &err));
        for (int32_t i = 1; i < root->n_fields; i++) {
            char room[40];
            tarn_value v = make_value(root->fields[i].type, seed, room);
            assert_ok(builder_value(&b.children[i], &v, &err));
        }
        assert_ok(builder_close(&b, &err));
    }
    assert_ok(builder_finish_batch(&b, out, &err));
    builder_release(&b);
}

static int compare_rows(const tarn_batch *batch, const tarn_sort_order *order, int32_t a,
                        int32_t b) {
    for (int32_t i = 0; i < order->n_fields; i++) {
        const tarn_sort_field *field = &order->fields[i];
        tarn_view view;
        tarn_value x;
        tarn_value y;
        view_column(batch, field->source_id - 1, &view);
        view_value(&view, a, &x);
        view_value(&view, b, &y);
        if (x.is_null != y.is_null) {
            return x.is_null == field->nulls_last ? 1 : -1;
        }
        int c = x.is_null ? 0 : value_cmp(&x, &y);
        if (c != 0) {
            return field->descending ? -c : c;
        }
    }
    return 0;
}

static void check_order(tarn_env *env, tarn_arena *arena, const tarn_type *root, const char *text,
                        int rows, uint64_t *seed) {
    tarn_sort_order by;
    const row_sorter *sorter = NULL;
    tarn_batch batch;
    row_order order;
    assert_ok(sort_order_from_text(arena, root, str_of(text), &by, &err));
    assert_ok(row_sorter_new(arena, root, &by, &sorter, &err));
    assert_non_null(sorter);
    make_batch(env, root, rows, &batch, seed);
    assert_ok(row_order_make(sorter, env, &batch, &order, &err));
    assert_int_equal(order.n, rows);
    for (int i = 1; i < rows; i++) {
        int c = compare_rows(&batch, &by, order.rows[i - 1], order.rows[i]);
        int keys = str_cmp(row_order_key(&order, i - 1), row_order_key(&order, i));
        if (c > 0 || (c == 0 && order.rows[i - 1] >= order.rows[i]) || (c < 0) != (keys < 0)) {
            fail_msg("order %s: rows %d and %d: %d, %d", text, order.rows[i - 1], order.rows[i], c,
                     keys);
        }
    }
    row_order_release(&order);
    batch_release(&batch);
}

static void test_order_of_types(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    const tarn_type *root = NULL;
    uint64_t seed = 3;
    int32_t next_id = 1;
    arena_init(&arena, env);
    assert_ok(type_from_text(&arena, str_of(SCHEMA), &root, &err));
    root = type_assign_ids(&arena, root, &next_id);
    for (int32_t i = 1; i < root->n_fields; i++) {
        static const char *const ways[] = {"", " desc", " asc nulls last", " desc nulls first"};
        for (size_t way = 0; way < 4; way++) {
            char text[80];
            (void)snprintf(text, sizeof text, "%.*s%s, l desc, s", STR_ARG(root->fields[i].name),
                           ways[way]);
            check_order(env, &arena, root, text, 500, &seed);
        }
    }
    for (int rows = 1; rows < 60; rows++) { /* all lengths of runs */
        check_order(env, &arena, root, "b, y", rows, &seed);
    }
    arena_release(&arena);
    test_env_done(env);
}

/* What cannot be sorted by is left alone. */
static void test_order_not_known(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    const tarn_type *root = NULL;
    const row_sorter *sorter = NULL;
    int32_t next_id = 1;
    tarn_sort_field field = {.source_id = 99};
    tarn_sort_order order = {.order_id = 1, .n_fields = 1, .fields = &field};
    arena_init(&arena, env);
    assert_ok(type_from_text(&arena, STR("struct<a: int>"), &root, &err));
    root = type_assign_ids(&arena, root, &next_id);
    assert_ok(row_sorter_new(&arena, root, &order, &sorter, &err));
    assert_null(sorter);
    field.source_id = 1;
    field.transform.kind = TRANSFORM_UNKNOWN;
    assert_ok(row_sorter_new(&arena, root, &order, &sorter, &err));
    assert_null(sorter);
    assert_ok(row_sorter_new(&arena, root, NULL, &sorter, &err));
    assert_null(sorter);
    order.n_fields = 0;
    assert_ok(row_sorter_new(&arena, root, &order, &sorter, &err));
    assert_null(sorter);
    arena_release(&arena);
    test_env_done(env);
}

/* By transforms, and every allocation failing. */
static tarn_code sort_by_transforms(tarn_env *env, tarn_error *e) {
    tarn_code code;
    tarn_arena arena;
    tarn_batch batch = {0};
    row_order order = {0};
    const tarn_type *root = NULL;
    const row_sorter *sorter = NULL;
    tarn_sort_order by;
    int32_t next_id = 1;
    static const int32_t want[] = {2, 0, 3, 1};
    arena_init(&arena, env);
    TRY(type_from_text(&arena, STR("struct<s: string, n: struct<i: int>>"), &root, e));
    root = type_assign_ids(&arena, root, &next_id);
    if (root == NULL) {
        code = err_nomem(e);
        goto done;
    }
    TRY(sort_order_from_text(&arena, root, STR("truncate(10, n.i) desc, truncate(1, s)"), &by, e));
    TRY(row_sorter_new(&arena, root, &by, &sorter, e));
    TRY(rows_read(env, &arena, root,
                  "{\"s\":\"bz\",\"n\":{\"i\":19}}\n{\"s\":\"a\",\"n\":{\"i\":5}}\n"
                  "{\"s\":\"az\",\"n\":{\"i\":12}}\n{\"s\":\"ba\",\"n\":{\"i\":11}}",
                  &batch, e));
    TRY(row_order_make(sorter, env, &batch, &order, e));
    assert_memory_equal(order.rows, want, sizeof want);
done:
    row_order_release(&order);
    batch_release(&batch);
    arena_release(&arena);
    return code;
}

static void test_order_of_transforms(void **state) {
    (void)state;
    each_failure(sort_by_transforms);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_types),
        cmocka_unit_test(test_order_not_known),
        cmocka_unit_test(test_order_of_transforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
