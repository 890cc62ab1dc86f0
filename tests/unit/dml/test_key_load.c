/* Goal: an index that is made from nothing knows every row of every key, however often a key comes
 * and however far apart; it stands for its snapshot or is empty, whatever happens; memory stays
 * under its budget, and nothing is left in the folder.
 * Method: rows in chance order beside a model; budgets so small that rows are merged many times;
 * kills at random times; damage to the temporary file; failing allocations. */
#include "dml/key_index.h"

#include "fail_alloc.h"
#include "tempdir.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "iceberg/metadata.h"

#ifdef TARN_ROCKSDB

#include "dml/key_runs.h"

static tarn_error err;
static const int32_t key_ids[] = {1};

static uint64_t mixed(uint64_t x) {
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

static tarn_str number_key(char out[40], uint64_t n) {
    /* different lengths, shared prefixes, one of them the start of others */
    static const char *const starts[] = {"key-", "key-a-longer-prefix-", "key"};
    return str_make(
        out, (size_t)snprintf(out, 40, "%s%llu", starts[n % 3], (unsigned long long)(n / 3)));
}

/* ---- runs ---- */

/* An env whose temporary files lie in a folder of their own. */
static tarn_env *env_in(char folder[64]) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = NULL;
    test_tempdir(folder);
    options.temp_dir = folder;
    assert_ok(tarn_env_new(&options, &env, &err));
    return env;
}

#define RUN_KEYS 20000

/* Every key of [0, RUN_KEYS) comes `times` times, in an order by chance; at position: the turn. */
static void add_rows(key_runs *r, uint64_t times) {
    for (uint64_t i = 0; i < times * RUN_KEYS; i++) {
        char text[40];
        uint64_t n = i * 7919 % RUN_KEYS;
        assert_ok(key_runs_add(r, number_key(text, n),
                               (key_location){(int32_t)(n % 1000), (int64_t)i}, &err));
    }
}

typedef struct seen_rows {
    uint64_t n;
    char last[40];
    size_t last_len;
    int64_t last_position;
    uint64_t fail_after;
} seen_rows;

static tarn_code see_row(void *ctx, tarn_str key, key_location location, tarn_error *e) {
    seen_rows *s = ctx;
    char text[40];
    uint64_t n = (uint64_t)location.position * 7919 % RUN_KEYS;
    int cmp = str_cmp(str_make(s->last, s->last_len), key);
    assert_true(str_eq(key, number_key(text, n)));
    assert_int_equal(location.file, (int32_t)(n % 1000));
    assert_true(s->n == 0 || cmp < 0 || (cmp == 0 && s->last_position < location.position));
    memcpy(s->last, key.data, key.len);
    s->last_len = key.len;
    s->last_position = location.position;
    return ++s->n == s->fail_after ? err_set(e, TARN_LIMIT, "enough") : TARN_OK;
}

static void test_runs_come_out_in_order(void **state) {
    static const size_t memories[] = {32 << 10, 256 << 10, 64 << 20};
    char folder[64];
    tarn_env *env = env_in(folder);
    (void)state;
    for (size_t i = 0; i < 3; i++) { /* two levels of merging, a few runs, one run */
        key_runs r;
        seen_rows s;
        memset(&s, 0, sizeof s);
        key_runs_init(&r, env, memories[i]);
        uint64_t times = i == 0 ? 4 : 2;
        add_rows(&r, times);
        assert_int_equal(r.n, times * RUN_KEYS);
        assert_true(i != 0 || (r.n_runs > 1 && r.runs[0].level >= 1));
        assert_true(tarn_env_memory_now(env) < memories[i] + 16384);
        assert_ok(key_runs_merge(&r, see_row, &s, &err));
        assert_int_equal(s.n, times * RUN_KEYS);
        key_runs_release(&r);
        assert_int_equal(tarn_env_memory_now(env), 0);
    }
    test_tempdir_done(folder);
    test_env_done(env);
}

static tarn_code count_row(void *ctx, tarn_str key, key_location location, tarn_error *e) {
    (void)e;
    assert_int_equal(location.position, (int64_t)key.len);
    ++*(int *)ctx;
    return TARN_OK;
}

/* Keys of no bytes, and keys that no share of the memory holds. */
static void test_runs_of_strange_keys(void **state) {
    char folder[64];
    int n = 0;
    key_runs r;
    tarn_env *env = env_in(folder);
    char *bytes = calloc(1, 1 << 20);
    (void)state;
    key_runs_init(&r, env, 32 << 10);
    for (size_t len = 1 << 20; len > 0; len /= 2) {
        assert_ok(key_runs_add(&r, str_make(bytes, len), (key_location){1, (int64_t)len}, &err));
        assert_ok(key_runs_add(&r, STR(""), (key_location){INT32_MAX, 0}, &err));
    }
    assert_ok(key_runs_merge(&r, count_row, &n, &err));
    assert_int_equal(n, 42);
    key_runs_release(&r);
    key_runs_release(&r);
    free(bytes);
    test_tempdir_done(folder);
    test_env_done(env);
}

/* The temporary file has no name, but this process has it open. */
static void flip_a_bit(const char *folder, off_t at) {
    char path[64];
    char target[256];
    for (int fd = 0; fd < 1024; fd++) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(path, target, sizeof target - 1);
        target[len < 0 ? 0 : len] = '\0';
        if (strncmp(target, folder, strlen(folder)) == 0) {
            uint8_t byte;
            assert_int_equal(pread(fd, &byte, 1, at), 1);
            byte ^= 4;
            assert_int_equal(pwrite(fd, &byte, 1, at), 1);
            return;
        }
    }
    fail_msg("no temporary file is open");
}

static tarn_code any_row(void *ctx, tarn_str key, key_location location, tarn_error *e) {
    (void)ctx;
    (void)key;
    (void)location;
    (void)e;
    return TARN_OK;
}

static void test_runs_that_are_damaged_or_stopped(void **state) {
    char folder[64];
    tarn_env *env = env_in(folder);
    key_runs r;
    (void)state;
    for (off_t at = 0; at < 40; at++) {
        key_runs_init(&r, env, 256 << 10);
        add_rows(&r, 1);
        flip_a_bit(folder, at * 997);
        assert_code(key_runs_merge(&r, any_row, NULL, &err), TARN_CORRUPT);
        assert_non_null(strstr(err.message, "temporary file"));
        key_runs_release(&r);
    }
    seen_rows s;
    memset(&s, 0, sizeof s);
    s.fail_after = 50;
    key_runs_init(&r, env, 256 << 10);
    add_rows(&r, 1);
    assert_code(key_runs_merge(&r, see_row, &s, &err), TARN_LIMIT);
    assert_int_equal(s.n, 50);
    key_runs_release(&r);
    test_tempdir_done(folder);
    test_env_done(env);
}

static void test_runs_without_memory(void **state) {
    bool failed = true;
    (void)state;
    for (uint64_t k = 1; failed; k += k < 60 ? 1 : test_every() ? 23 : 61) {
        fail_alloc plan;
        key_runs r;
        seen_rows s;
        tarn_code code = TARN_OK;
        tarn_env *env = fail_alloc_env(&plan, k);
        memset(&s, 0, sizeof s);
        key_runs_init(&r, env, 32 << 10);
        for (uint64_t i = 0; code == TARN_OK && i < RUN_KEYS * 2; i++) {
            char text[40];
            uint64_t n = i * 7919 % RUN_KEYS;
            key_location at = {(int32_t)(n % 1000), (int64_t)i};
            code = key_runs_add(&r, number_key(text, n), at, &err);
        }
        if (code == TARN_OK) {
            code = key_runs_merge(&r, see_row, &s, &err);
        }
        failed = plan.failed;
        assert_code(code, failed ? TARN_NOMEM : TARN_OK);
        assert_true(failed || s.n == (uint64_t)RUN_KEYS * 2);
        key_runs_release(&r);
        fail_alloc_done(&plan, env);
    }
}

/* ---- the index ---- */

typedef struct fixture {
    tarn_env *env;
    char dir[64];
    char path[128];
    key_index *index;
    key_index_options options;
    int32_t file;
    int logged;
} fixture;

static void count_log(void *ctx, tarn_log_level level, const char *room, const char *event,
                      const char *text) {
    fixture *f = ctx;
    (void)level;
    (void)room;
    (void)text;
    f->logged += strcmp(event, "key_index_emptied") == 0;
}

static void setup(fixture *f) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    memset(f, 0, sizeof *f);
    options.log = count_log;
    options.log_ctx = f;
    options.threads = 2;
    assert_ok(tarn_env_new(&options, &f->env, &err));
    test_tempdir(f->dir);
    (void)snprintf(f->path, sizeof f->path, "%s/keys", f->dir);
    f->options.dir = f->path;
    f->options.table_uuid = STR("7b1e2c9a-0000-4000-8000-000000000001");
    f->options.key_ids = key_ids;
    f->options.n_key_ids = 1;
    f->options.branch = STR("main");
    f->options.memory_bytes = (size_t)8 << 20;
}

static void open_index(fixture *f) {
    assert_ok(key_index_open(f->env, &f->options, &f->index, &err));
}

static void close_index(fixture *f) {
    key_index_close(f->index);
    f->index = NULL;
}

static void teardown(fixture *f) {
    close_index(f);
    test_tempdir_done(f->dir);
    test_env_done(f->env);
}

/* How often the table holds key n: most of them once. */
static uint64_t times_of(uint64_t n) {
    uint64_t chance = mixed(n) % 100;
    return chance == 0 ? 5 : chance < 5 ? 3 : chance < 10 ? 2 : 1;
}

/* Row i of the table is key i % n, where the key comes so often: rows of one key lie far apart. */
static bool row_is_there(uint64_t i, uint64_t n) {
    return i / n < times_of(i % n);
}

#define AT_ONCE 3000

/* Loads five passes over n keys; the position of a row is its number. */
static tarn_code load_rows(fixture *f, uint64_t n) {
    static char texts[AT_ONCE][40];
    static tarn_str keys[AT_ONCE];
    static key_location at[AT_ONCE];
    size_t some = 0;
    tarn_code code =
        key_index_file_number(f->index, STR("file:///t/data/a.parquet"), &f->file, &err);
    for (uint64_t i = 0; code == TARN_OK && i < 5 * n; i++) {
        if (row_is_there(i, n)) {
            keys[some] = number_key(texts[some], i % n);
            at[some++] = (key_location){f->file, (int64_t)i};
        }
        if (some == AT_ONCE || i + 1 == 5 * n) {
            code = key_index_load(f->index, keys, at, some, &err);
            some = 0;
        }
    }
    return code;
}

/* All rows of key k, newest first. */
static bool key_is_right(fixture *f, uint64_t k, uint64_t n) {
    char text[40];
    tarn_str key = number_key(text, k);
    key_location at;
    assert_ok(key_index_find(f->index, &key, 1, &at, &err));
    key_chain chain = key_chain_of(at);
    bool right = ((at.position & KEY_OLDER) != 0) == (times_of(k) > 1);
    for (uint64_t turn = times_of(k); turn-- > 0;) {
        right = right && chain.at.file == f->file &&
                (chain.at.position & ~KEY_OLDER) == (int64_t)(turn * n + k);
        assert_ok(key_index_older(f->index, &chain, &err));
    }
    return right && chain.at.file == -1;
}

static void all_are_right(fixture *f, uint64_t n, uint64_t every) {
    char text[40];
    for (uint64_t k = 0; k < n; k += every) {
        if (!key_is_right(f, k, n)) {
            fail_msg("key %llu of %llu", (unsigned long long)k, (unsigned long long)n);
        }
    }
    tarn_str absent = number_key(text, n);
    key_location at;
    assert_ok(key_index_find(f->index, &absent, 1, &at, &err));
    assert_int_equal(at.file, -1);
}

/* Only what RocksDB made is there. */
static void folder_is_clean(const fixture *f) {
    DIR *dir = opendir(f->path);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        assert_null(strstr(e->d_name, "pending"));
    }
    (void)closedir(dir);
}

static void test_all_rows_of_all_keys(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 10, 2000, 18000, 150000}; /* in memory, and beyond */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t n = sizes[i];
        uint64_t every = n > 20000 ? 7 : 1;
        fixture f;
        setup(&f);
        open_index(&f);
        assert_ok(load_rows(&f, n));
        assert_ok(key_index_apply(f.index, 77, &err));
        folder_is_clean(&f);
        all_are_right(&f, n, every);
        close_index(&f);
        open_index(&f);
        assert_int_equal(f.logged, 0);
        assert_int_equal(key_index_snapshot(f.index), 77);
        all_are_right(&f, n, every);
        /* What comes later goes on top, and is as well forgotten. */
        char text[40];
        tarn_str key = number_key(text, 0);
        key_location at = {f.file, 99};
        key_location before;
        assert_ok(key_index_put(f.index, &key, &at, 1, &err));
        assert_ok(key_index_find(f.index, &key, 1, &before, &err));
        assert_int_equal(before.position, 99);
        assert_ok(key_index_discard(f.index, &err));
        assert_true(key_is_right(&f, 0, n));
        /* More rows of the table, found beside those that were loaded. */
        at.position = (int64_t)(9 * n);
        assert_ok(key_index_add(f.index, &key, &at, 1, &before, &err));
        assert_int_equal(before.position & ~KEY_OLDER, (int64_t)((times_of(0) - 1) * n));
        assert_ok(key_index_put_older(f.index, key, at, before, &err));
        assert_ok(key_index_apply(f.index, 78, &err));
        key_chain chain = key_chain_of(at);
        assert_ok(key_index_older(f.index, &chain, &err));
        assert_true(chain.at.file == before.file && chain.at.position == before.position);
        teardown(&f);
    }
}

static void test_every_key_twice(void **state) {
    enum { N = 120000 };
    fixture f;
    (void)state;
    setup(&f);
    open_index(&f);
    int32_t files[2];
    assert_ok(key_index_file_number(f.index, STR("a"), &files[0], &err));
    assert_ok(key_index_file_number(f.index, STR("b"), &files[1], &err));
    for (uint64_t i = 0; i < 2 * N; i++) { /* links do not fit into memory either */
        char text[40];
        tarn_str key = number_key(text, i % N);
        key_location at = {files[i / N], (int64_t)(i % N)};
        assert_ok(key_index_load(f.index, &key, &at, 1, &err));
    }
    assert_ok(key_index_apply(f.index, 5, &err));
    for (uint64_t i = 0; i < N; i += 11) {
        char text[40];
        tarn_str key = number_key(text, i);
        key_location at;
        assert_ok(key_index_find(f.index, &key, 1, &at, &err));
        assert_int_equal(at.file, files[1]);
        assert_int_equal(at.position, (int64_t)i | KEY_OLDER);
        key_chain chain = key_chain_of(at);
        assert_ok(key_index_older(f.index, &chain, &err));
        assert_int_equal(chain.at.file, files[0]);
        assert_int_equal(chain.at.position, (int64_t)i);
        assert_ok(key_index_older(f.index, &chain, &err));
        assert_int_equal(chain.at.file, -1);
    }
    teardown(&f);
}

static void test_a_row_that_is_named_twice_is_one(void **state) {
    fixture f;
    (void)state;
    setup(&f);
    open_index(&f);
    assert_ok(key_index_file_number(f.index, STR("a"), &f.file, &err));
    tarn_str keys[3] = {STR("k"), STR("k"), STR("k")};
    const key_location at[3] = {{f.file, 4}, {f.file, 4}, {f.file, 4}};
    assert_ok(key_index_load(f.index, keys, at, 3, &err));
    assert_ok(key_index_apply(f.index, 5, &err));
    key_location found;
    assert_ok(key_index_find(f.index, keys, 1, &found, &err));
    assert_int_equal(found.position, 4);
    teardown(&f);
}

static void test_only_into_an_empty_index(void **state) {
    fixture f;
    (void)state;
    setup(&f);
    open_index(&f);
    assert_ok(key_index_file_number(f.index, STR("a"), &f.file, &err));
    tarn_str key = STR("k");
    key_location at = {f.file + 1, 4};
    assert_code(key_index_load(f.index, &key, &at, 1, &err), TARN_INVALID);
    at.file = f.file;
    assert_ok(key_index_put(f.index, &key, &at, 1, &err));
    assert_code(key_index_load(f.index, &key, &at, 1, &err), TARN_INVALID);
    assert_ok(key_index_apply(f.index, 1, &err));
    assert_code(key_index_load(f.index, &key, &at, 1, &err), TARN_INVALID);
    close_index(&f);
    open_index(&f);
    assert_code(key_index_load(f.index, &key, &at, 1, &err), TARN_INVALID);
    assert_ok(key_index_clear(f.index, &err));
    assert_ok(load_rows(&f, 30000));
    assert_ok(key_index_discard(f.index, &err)); /* and nothing of it is known */
    assert_ok(key_index_apply(f.index, 2, &err));
    assert_ok(key_index_find(f.index, &key, 1, &at, &err));
    assert_int_equal(at.file, -1);
    assert_ok(load_rows(&f, 100));
    assert_ok(key_index_clear(f.index, &err));
    assert_ok(load_rows(&f, 30000));
    assert_ok(key_index_apply(f.index, 3, &err));
    all_are_right(&f, 30000, 7);
    teardown(&f);
}

static void test_memory_is_bounded(void **state) {
    fixture f;
    (void)state;
    setup(&f);
    open_index(&f);
    int64_t most = 0;
    assert_ok(key_index_file_number(f.index, STR("a"), &f.file, &err));
    for (uint64_t i = 0; i < 1000000; i++) {
        char text[40];
        tarn_str key = number_key(text, mixed(i) % 500000);
        key_location at = {f.file, (int64_t)i};
        assert_ok(key_index_load(f.index, &key, &at, 1, &err));
        most =
            most > (int64_t)tarn_env_memory_now(f.env) ? most : (int64_t)tarn_env_memory_now(f.env);
    }
    assert_ok(key_index_apply(f.index, 1, &err));
    assert_true(most > (1 << 19));
    assert_true(most < (2 << 20)); /* three sixteenths of the budget */
    assert_true(tarn_env_memory_peak(f.env) < (3 << 20));
    teardown(&f);
}

/* The child: makes the index from nothing again and again, and lets it be for a while, until it is
 * killed. */
static void load_until_killed(fixture *f, uint64_t n) {
    const struct timespec rest = {0, 300000000};
    for (int64_t snapshot = 1;; snapshot++) {
        open_index(f);
        if (key_index_clear(f->index, &err) != TARN_OK || load_rows(f, n) != TARN_OK ||
            key_index_apply(f->index, snapshot, &err) != TARN_OK) {
            _exit(9);
        }
        close_index(f);
        (void)nanosleep(&rest, NULL);
    }
}

/* The other child: what is there. 0: all, 1: nothing. */
static int look(fixture *f, uint64_t n) {
    open_index(f);
    bool ok =
        key_index_file_number(f->index, STR("file:///t/data/a.parquet"), &f->file, &err) == TARN_OK;
    bool empty = key_index_snapshot(f->index) == TARN_NO_SNAPSHOT;
    for (uint64_t k = 0; k < n; k += 97) {
        char text[40];
        tarn_str key = number_key(text, k);
        key_location at;
        ok = ok && key_index_find(f->index, &key, 1, &at, &err) == TARN_OK;
        ok = ok && (empty ? at.file == -1 : key_is_right(f, k, n));
    }
    close_index(f);
    return !ok ? 2 : empty ? 1 : 0;
}

static void test_kills_leave_all_or_nothing(void **state) {
    const uint64_t n = 30000; /* what an earlier round left is as good */
    fixture f;
    uint64_t seed = 11;
    int counts[2] = {0, 0};
    (void)state;
    setup(&f);
    int rounds = test_every() ? 40 : 16;
    for (int round = 0; round < rounds || (counts[0] == 0 && round < 300); round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            load_until_killed(&f, n);
        }
        seed = mixed(seed + 1);
        /* Longer and longer, until a slow machine too was whole once. */
        int64_t ms = 10 + (int64_t)(seed % (uint64_t)(400 + round * round * 2));
        struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
        (void)nanosleep(&wait, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            _exit(look(&f, n));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        counts[WEXITSTATUS(status)]++;
    }
    assert_true(counts[0] > 0);
    teardown(&f);
}

static void test_no_memory_is_said_and_survived(void **state) {
    bool failed = true;
    (void)state;
    for (uint64_t k = 1; failed; k += k < 40 ? 1 : test_every() ? 17 : 37) {
        fail_alloc plan;
        fixture f;
        setup(&f);
        fixture g = f;
        g.env = fail_alloc_env(&plan, k);
        tarn_code code = key_index_open(g.env, &g.options, &g.index, &err);
        if (code == TARN_OK) {
            code = load_rows(&g, 25000);
        }
        if (code == TARN_OK) {
            code = key_index_apply(g.index, 3, &err);
        }
        failed = plan.failed;
        assert_code(code, failed ? TARN_NOMEM : TARN_OK);
        key_index_close(g.index);
        fail_alloc_done(&plan, g.env);
        open_index(&f);
        assert_int_equal(key_index_snapshot(f.index), failed ? TARN_NO_SNAPSHOT : 3);
        teardown(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills_leave_all_or_nothing), /* forks: first */
        cmocka_unit_test(test_runs_come_out_in_order),
        cmocka_unit_test(test_runs_of_strange_keys),
        cmocka_unit_test(test_runs_that_are_damaged_or_stopped),
        cmocka_unit_test(test_runs_without_memory),
        cmocka_unit_test(test_all_rows_of_all_keys),
        cmocka_unit_test(test_every_key_twice),
        cmocka_unit_test(test_a_row_that_is_named_twice_is_one),
        cmocka_unit_test(test_only_into_an_empty_index),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_no_memory_is_said_and_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_a_build_without_it_says_so(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    (void)state;
    assert_code(key_index_load(NULL, NULL, NULL, 0, &err), TARN_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_build_without_it_says_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
