/* Goal: a copied file description shares nothing with its source.
 * Method: copy from an arena that is freed before the copy is read, every allocation failing. */
#include "rows.h"

#include "table/file_entry.h"

static tarn_code copy_and_check(tarn_env *env, tarn_error *err) {
    tarn_arena source;
    tarn_arena target;
    tarn_file copy;
    tarn_code code;
    arena_init(&source, env);
    arena_init(&target, env);
    int64_t *offsets = ARENA_ARRAY(&source, int64_t, 2);
    int32_t *ids = ARENA_ARRAY(&source, int32_t, 1);
    metric_count *counts = ARENA_ARRAY(&source, metric_count, 1);
    metric_bound *bounds = ARENA_ARRAY(&source, metric_bound, 1);
    tarn_value *partition = ARENA_ARRAY(&source, tarn_value, 2);
    const tarn_type *decimal = type_decimal(&source, 9, 2);
    tarn_str path = arena_str(&source, STR("data/a.parquet"));
    tarn_str bound = arena_str(&source, STR("lower"));
    if (offsets == NULL || ids == NULL || counts == NULL || bounds == NULL || partition == NULL ||
        decimal == NULL || path.data == NULL || bound.data == NULL) {
        code = err_nomem(err);
        goto done;
    }
    offsets[1] = 4;
    ids[0] = 9;
    counts[0] = (metric_count){3, 77};
    bounds[0] = (metric_bound){3, bound};
    partition[0] = value_str(type_primitive(TARN_STRING), path);
    partition[1] = value_null(decimal);
    tarn_file file = {.path = path,
                      .n_partition = 2,
                      .partition = partition,
                      .n_value_counts = 1,
                      .value_counts = counts,
                      .n_lower = 1,
                      .lower = bounds,
                      .n_split_offsets = 2,
                      .split_offsets = offsets,
                      .n_equality_ids = 1,
                      .equality_ids = ids};
    TRY(file_copy(&target, &file, &copy, err));
    arena_release(&source);

    int64_t count = 0;
    tarn_str found = STR_NULL;
    assert_true(str_is(copy.path, "data/a.parquet"));
    assert_true(str_is(copy.partition[0].as.bytes, "data/a.parquet"));
    assert_int_equal(copy.partition[1].type->scale, 2);
    assert_true(metric_find_count(copy.value_counts, copy.n_value_counts, 3, &count));
    assert_true(count == 77);
    assert_false(metric_find_count(copy.value_counts, copy.n_value_counts, 4, &count));
    assert_true(metric_find_bound(copy.lower, copy.n_lower, 3, &found));
    assert_true(str_is(found, "lower"));
    assert_true(copy.split_offsets[1] == 4 && copy.equality_ids[0] == 9);
    assert_null(copy.key_metadata.data);
done:
    arena_release(&source);
    arena_release(&target);
    return code;
}

static void test_copy(void **state) {
    (void)state;
    each_failure(copy_and_check);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
