/* Goal: arenas, buffers and maps keep what is put into them, stay inside their limits, and give all
 * memory back, also when an allocation fails.
 * Method: many sizes with a pattern in each block; every allocation made to fail in turn. */
#include "fail_alloc.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"

static void test_arena_blocks_are_apart(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    enum { COUNT = 3000 };
    static unsigned char *blocks[COUNT];
    static size_t sizes[COUNT];
    uint32_t seed = 1;
    for (int i = 0; i < COUNT; i++) {
        seed = seed * 1103515245u + 12345u;
        sizes[i] = i % 100 == 99 ? seed % 100000 : seed % 200;
        blocks[i] = arena_alloc(&arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], i & 0xFF, sizes[i]);
    }
    size_t sum = 0;
    for (int i = 0; i < COUNT; i++) {
        sum += sizes[i];
        for (size_t j = 0; j < sizes[i]; j++) {
            assert_int_equal(blocks[i][j], i & 0xFF);
        }
    }
    assert_true(arena.used_bytes >= sum);
    assert_true(tarn_env_memory_now(env) < 3 * sum);
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_calloc(&arena, SIZE_MAX / 2, 4));
    tarn_arena other;
    arena_init(&other, env);
    arena_move(&other, &arena);
    assert_int_equal(blocks[COUNT - 1][0], (COUNT - 1) & 0xFF);
    arena_release(&arena);
    arena_release(&other);
    arena_release(&other);
    tarn_arena zeroed;
    memset(&zeroed, 0, sizeof zeroed);
    arena_release(&zeroed);
    test_env_done(env);
}

static void test_arena_grow(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    /* The last allocation grows in place, from a small one to a block of its own and on. */
    size_t size = 1;
    unsigned char *p = arena_grow(&arena, NULL, 0, size);
    p[0] = 0;
    while (size < 300000) {
        size_t more = size + 1 + size / 3;
        p = arena_grow(&arena, p, size, more);
        assert_non_null(p);
        for (size_t i = size; i < more; i++) {
            p[i] = (unsigned char)i;
        }
        size = more;
    }
    /* Not the last any more: moves, and the old content comes along. */
    char *between = arena_strdup(&arena, "between");
    unsigned char *q = arena_grow(&arena, p, size, size + 100);
    assert_non_null(q);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(q[i], (unsigned char)i);
    }
    assert_ptr_equal(arena_grow(&arena, q, size, 5), q);
    assert_string_equal(between, "between");
    assert_null(arena_grow(&arena, q, 5, SIZE_MAX));
    char *small = arena_strdup(&arena, "abc");
    char *grown = arena_grow(&arena, small, 4, 10);
    assert_ptr_equal(grown, small);
    (void)arena_alloc(&arena, 1);
    char *moved = arena_grow(&arena, grown, 10, 50);
    assert_ptr_not_equal(moved, grown);
    assert_string_equal(moved, "abc");
    arena_release(&arena);
    test_env_done(env);
}

static void test_arena_texts(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    tarn_str s = arena_str(&arena, str_sub(STR("hello"), 1, 3));
    assert_string_equal(s.data, "ell");
    assert_int_equal(s.len, 3);
    s = arena_str(&arena, STR_NULL);
    assert_non_null(s.data);
    assert_string_equal(s.data, "");
    char big[1000];
    memset(big, 'b', sizeof big - 1);
    big[999] = '\0';
    assert_string_equal(arena_printf(&arena, "%s", big), big);
    assert_string_equal(arena_printf(&arena, "%d-%s", 5, "x"), "5-x");
    arena_release(&arena);
    test_env_done(env);
}

static void test_buf_grows_to_its_max(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    buf_init(&buf, env, 1000);
    for (int i = 0; i < 100; i++) {
        assert_ok(buf_append(&buf, "0123456789", 10, &err));
    }
    assert_int_equal(buf.len, 1000);
    assert_true(buf.cap <= 1000);
    assert_code(buf_append_char(&buf, 'x', &err), TARN_LIMIT);
    assert_code(buf_printf(&buf, &err, "x"), TARN_LIMIT);
    assert_code(buf_reserve(&buf, SIZE_MAX, &err), TARN_LIMIT);
    assert_int_equal(buf.len, 1000);
    assert_ok(buf_append(&buf, NULL, 0, &err));
    buf_reset(&buf);
    assert_ok(buf_append_str(&buf, STR("abc"), &err));
    assert_ok(buf_append_char(&buf, 'd', &err));
    char big[600];
    memset(big, 'b', sizeof big - 1);
    big[599] = '\0';
    assert_ok(buf_printf(&buf, &err, "%s-%d", big, 7));
    assert_int_equal(buf.len, 4 + 599 + 2);
    assert_true(str_ends_with(buf_str(&buf), STR("bb-7")));
    buf_release(&buf);
    buf_release(&buf);
    buf_init(&buf, env, 0);
    assert_ok(buf_reserve(&buf, 0, &err));
    assert_non_null(buf.data);
    buf_release(&buf);
    tarn_buf zeroed;
    memset(&zeroed, 0, sizeof zeroed);
    buf_release(&zeroed);
    test_env_done(env);
}

static void test_map_keeps_insert_order(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    tarn_map map;
    map_init(&map, &arena);
    assert_null(map_find(&map, STR("x")));
    enum { COUNT = 20000 };
    for (int i = 0; i < COUNT; i++) {
        bool added = false;
        map_entry *e = map_put(&map, str_of(arena_printf(&arena, "key%d", i)), &added);
        assert_non_null(e);
        assert_true(added);
        assert_int_equal(e->value.i64, 0);
        e->value.i64 = i;
    }
    for (int i = 0; i < COUNT; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "key%d", i);
        bool added = true;
        map_entry *e = map_put(&map, str_of(key), &added);
        assert_false(added);
        assert_int_equal(e->value.i64, i);
        assert_ptr_equal(map_find(&map, str_of(key)), e);
        assert_int_equal(map.entries[i].value.i64, i);
    }
    assert_int_equal(map.count, COUNT);
    assert_null(map_find(&map, STR("key")));
    assert_non_null(map_put(&map, STR_NULL, NULL));
    assert_non_null(map_find(&map, STR("")));
    tarn_idmap ids;
    tarn_error err = TARN_ERROR_INIT;
    int32_t v = 0;
    idmap_init(&ids, &arena);
    assert_false(idmap_get(&ids, 0, &v));
    for (int32_t i = -5000; i < 5000; i++) {
        assert_ok(idmap_set(&ids, i * 65536, i, &err));
        assert_ok(idmap_set(&ids, i * 65536, i + 1, &err));
    }
    assert_ok(idmap_set(&ids, INT32_MIN + 1, 1, &err));
    assert_ok(idmap_set(&ids, INT32_MAX, 2, &err));
    for (int32_t i = -5000; i < 5000; i++) {
        assert_true(idmap_get(&ids, i * 65536, &v));
        assert_int_equal(v, i + 1);
    }
    assert_int_equal(ids.count, 10002);
    assert_false(idmap_get(&ids, 3, &v));
    arena_release(&arena);
    test_env_done(env);
}

static tarn_code fill_all(tarn_env *env, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_buf buf;
    tarn_map map;
    tarn_idmap ids;
    arena_init(&arena, env);
    buf_init(&buf, env, 0);
    map_init(&map, &arena);
    idmap_init(&ids, &arena);
    char *grown = NULL;
    for (int i = 0; i < 300; i++) {
        char *key = arena_printf(&arena, "%0*d", i, i);
        if (key == NULL || map_put(&map, str_of(key), NULL) == NULL) {
            code = err_nomem(err);
            goto done;
        }
        TRY(idmap_set(&ids, i, i, err));
        TRY(buf_printf(&buf, err, "%0*d", i * 3, i));
        TRY(buf_append_str(&buf, str_of(key), err));
        grown = arena_grow(&arena, grown, (size_t)i * 20, (size_t)(i + 1) * 20);
        if (grown == NULL) {
            code = err_nomem(err);
            goto done;
        }
    }
    assert_int_equal(map.count, 300);
done:
    buf_release(&buf);
    arena_release(&arena);
    return code;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_code code = fill_all(env, &err);
        bool failed = atomic_load(&plan.failed);
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        assert_int_equal(err.code, code);
        fail_alloc_done(&plan, env);
        if (!failed) {
            assert_true(k > 20);
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_blocks_are_apart),
        cmocka_unit_test(test_arena_grow),
        cmocka_unit_test(test_arena_texts),
        cmocka_unit_test(test_buf_grows_to_its_max),
        cmocka_unit_test(test_map_keeps_insert_order),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
