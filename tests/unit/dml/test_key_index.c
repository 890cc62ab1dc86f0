/* Goal: the key index says of every key where its row lies, as a map in memory would; it stands for
 * the last snapshot applied or is empty, whatever happens to the process or the folder; memory
 * stays under its budget. Method: random work beside a model, kills at random times, damage to
 * every file of the folder, failing allocations. */
#include "dml/key_index.h"

#include "fail_alloc.h"
#include "tempdir.h"
#include "test.h"

#include <sys/wait.h>
#include <time.h>

#include "iceberg/metadata.h"

#ifdef TARN_ROCKSDB

#define MODEL_KEYS 3000

static const int32_t key_ids[] = {1, 2};

typedef struct fixture {
    tarn_env *env;
    char dir[64];
    char path[128];
    key_index *index;
    key_index_options options;
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
    tarn_error err = TARN_ERROR_INIT;
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    memset(f, 0, sizeof *f);
    options.log = count_log;
    options.log_ctx = f;
    assert_ok(tarn_env_new(&options, &f->env, &err));
    test_tempdir(f->dir);
    (void)snprintf(f->path, sizeof f->path, "%s/keys", f->dir);
    f->options.dir = f->path;
    f->options.table_uuid = STR("7b1e2c9a-0000-4000-8000-000000000001");
    f->options.key_ids = key_ids;
    f->options.n_key_ids = 2;
    f->options.branch = STR("main");
    f->options.memory_bytes = (size_t)8 << 20;
}

static void open_index(fixture *f) {
    tarn_error err = TARN_ERROR_INIT;
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

static tarn_str number_key(char out[24], int64_t n) {
    /* different lengths, shared prefixes */
    return str_make(
        out, (size_t)snprintf(out, 24, "%s%lld", n % 3 == 0 ? "a-long-prefix-" : "", (long long)n));
}

static void put_one(fixture *f, int64_t n, key_location at) {
    tarn_error err = TARN_ERROR_INIT;
    char text[24];
    tarn_str key = number_key(text, n);
    assert_ok(key_index_put(f->index, &key, &at, 1, &err));
}

static key_location find_one(fixture *f, int64_t n) {
    tarn_error err = TARN_ERROR_INIT;
    char text[24];
    tarn_str key = number_key(text, n);
    key_location at = {-7, -7};
    assert_ok(key_index_find(f->index, &key, 1, &at, &err));
    return at;
}

static int32_t file_number(fixture *f, int n) {
    tarn_error err = TARN_ERROR_INIT;
    char text[64];
    int32_t out = -1;
    (void)snprintf(text, sizeof text, "file:///t/data/%05d.parquet", n);
    assert_ok(key_index_file_number(f->index, str_of(text), &out, &err));
    return out;
}

static void apply(fixture *f, int64_t snapshot) {
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(key_index_apply(f->index, snapshot, &err));
    assert_int_equal(key_index_snapshot(f->index), snapshot);
}

static void checks_all(fixture *f, const key_location *model, size_t n) {
    tarn_error err = TARN_ERROR_INIT;
    char(*texts)[24] = calloc(n, sizeof *texts);
    tarn_str *keys = calloc(n, sizeof *keys);
    key_location *found = calloc(n, sizeof *found);
    for (size_t i = 0; i < n; i++) {
        keys[i] = number_key(texts[i], (int64_t)i);
    }
    assert_ok(key_index_find(f->index, keys, n, found, &err));
    for (size_t i = 0; i < n; i++) {
        if (found[i].file != model[i].file ||
            (model[i].file >= 0 && found[i].position != model[i].position)) {
            fail_msg("key %zu: file %d position %lld, not file %d position %lld", i, found[i].file,
                     (long long)found[i].position, model[i].file, (long long)model[i].position);
        }
    }
    free(texts);
    free(keys);
    free(found);
}

static void test_starts_empty_and_keeps_what_was_applied(void **state) {
    fixture f;
    (void)state;
    setup(&f);
    open_index(&f);
    assert_int_equal(key_index_snapshot(f.index), TARN_NO_SNAPSHOT);
    int32_t file = file_number(&f, 1);
    assert_int_equal(find_one(&f, 5).file, -1);
    put_one(&f, 5, (key_location){file, 77});
    assert_int_equal(find_one(&f, 5).position, 77);
    apply(&f, 1001);
    close_index(&f);
    open_index(&f);
    assert_int_equal(f.logged, 0);
    assert_int_equal(key_index_snapshot(f.index), 1001);
    assert_int_equal(find_one(&f, 5).position, 77);
    assert_int_equal(find_one(&f, 5).file, file);
    teardown(&f);
}

static void test_what_was_not_applied_is_forgotten(void **state) {
    fixture f;
    (void)state;
    setup(&f);
    open_index(&f);
    int32_t file = file_number(&f, 1);
    put_one(&f, 1, (key_location){file, 1});
    apply(&f, 7);
    put_one(&f, 1, (key_location){file, 2});
    put_one(&f, 2, (key_location){file, 3});
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(key_index_discard(f.index, &err));
    assert_int_equal(find_one(&f, 1).position, 1);
    assert_int_equal(find_one(&f, 2).file, -1);
    put_one(&f, 1, (key_location){file, 9});
    close_index(&f);
    open_index(&f);
    assert_int_equal(key_index_snapshot(f.index), 7);
    assert_int_equal(find_one(&f, 1).position, 1);
    teardown(&f);
}

static void test_paths_and_numbers(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    fixture f;
    tarn_arena arena;
    tarn_str path;
    (void)state;
    setup(&f);
    arena_init(&arena, f.env);
    open_index(&f);
    int32_t one = file_number(&f, 1);
    apply(&f, 1);
    int32_t two = file_number(&f, 2);
    assert_int_not_equal(one, two);
    assert_int_equal(file_number(&f, 1), one);
    assert_ok(key_index_discard(f.index, &err));
    assert_int_equal(file_number(&f, 2), two);
    assert_ok(key_index_file_path(f.index, two, &arena, &path, &err));
    assert_true(str_is(path, "file:///t/data/00002.parquet"));
    apply(&f, 2);
    close_index(&f);
    open_index(&f);
    assert_int_equal(file_number(&f, 2), two);
    assert_ok(key_index_file_path(f.index, one, &arena, &path, &err));
    assert_true(str_is(path, "file:///t/data/00001.parquet"));
    assert_code(key_index_file_path(f.index, two + 1, &arena, &path, &err), TARN_NOT_FOUND);
    assert_code(key_index_file_path(f.index, -1, &arena, &path, &err), TARN_NOT_FOUND);
    tarn_str key = STR("k");
    key_location bad = {two + 1, 0};
    assert_code(key_index_put(f.index, &key, &bad, 1, &err), TARN_INVALID);
    bad = (key_location){one, -1};
    assert_code(key_index_put(f.index, &key, &bad, 1, &err), TARN_INVALID);
    arena_release(&arena);
    teardown(&f);
}

static void test_agrees_with_a_model(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    fixture f;
    static key_location applied[MODEL_KEYS];
    static key_location now[MODEL_KEYS];
    uint64_t seed = 42;
    (void)state;
    setup(&f);
    open_index(&f);
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        applied[i] = now[i] = (key_location){-1, 0};
    }
    for (int step = 0; step < 60; step++) {
        int32_t file = file_number(&f, step);
        for (int i = 0; i < 400; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t key = (size_t)(seed >> 33) % MODEL_KEYS;
            if ((seed >> 20) % 5 == 0) {
                char text[24];
                tarn_str k = number_key(text, (int64_t)key);
                assert_ok(key_index_remove(f.index, &k, 1, &err));
                now[key] = (key_location){-1, 0};
            } else {
                now[key] = (key_location){file, (int64_t)(seed >> 30)};
                put_one(&f, (int64_t)key, now[key]);
            }
        }
        checks_all(&f, now, MODEL_KEYS);
        if (step % 4 == 3) {
            assert_ok(key_index_discard(f.index, &err));
            memcpy(now, applied, sizeof now);
        } else {
            apply(&f, step + 1);
            memcpy(applied, now, sizeof now);
        }
        if (step % 7 == 6) {
            close_index(&f);
            open_index(&f);
        }
        checks_all(&f, applied, MODEL_KEYS);
    }
    assert_int_equal(f.logged, 0);
    teardown(&f);
}

/* Puts keys [0, n) at position base + key of a new file. */
static void put_many(fixture *f, size_t n, int64_t base) {
    tarn_error err = TARN_ERROR_INIT;
    enum { ONCE = 5000 };
    static char texts[ONCE][24];
    static tarn_str keys[ONCE];
    static key_location at[ONCE];
    int32_t file = file_number(f, (int)base);
    for (size_t done = 0; done < n; done += ONCE) {
        size_t some = n - done < ONCE ? n - done : ONCE;
        for (size_t i = 0; i < some; i++) {
            keys[i] = number_key(texts[i], (int64_t)(done + i));
            at[i] = (key_location){file, base + (int64_t)(done + i)};
        }
        assert_ok(key_index_put(f->index, keys, at, some, &err));
    }
}

/* Checkpoints whose snapshots come late: any number of steps behind, settled some at a time. */
static void test_steps_agree_with_a_model(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    fixture f;
    static key_location models[KEY_INDEX_STEPS + 1][MODEL_KEYS]; /* [0]: settled */
    int32_t n = 0;
    uint64_t seed = 7;
    (void)state;
    setup(&f);
    open_index(&f);
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        models[0][i] = (key_location){-1, 0};
    }
    for (int step = 0; step < 150; step++) {
        int32_t file = file_number(&f, step);
        memcpy(models[n + 1], models[n], sizeof models[0]);
        for (int i = 0; i < 60; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t key = (size_t)(seed >> 33) % MODEL_KEYS;
            models[n + 1][key] = (key_location){file, (int64_t)(seed >> 30)};
            put_one(&f, (int64_t)key, models[n + 1][key]);
        }
        checks_all(&f, models[n + 1], MODEL_KEYS);
        assert_ok(key_index_step(f.index, &err));
        n++;
        assert_int_equal(key_index_is_full(f.index), n == KEY_INDEX_STEPS);
        int32_t some = key_index_is_full(f.index) ? n : (int32_t)((seed >> 40) % 8) % (n + 1);
        if (some > 0) {
            assert_ok(key_index_settle(f.index, some, step, &err));
            assert_int_equal(key_index_snapshot(f.index), step);
            memmove(models[0], models[some], (size_t)(n - some + 1) * sizeof models[0]);
            n -= some;
        }
        checks_all(&f, models[n], MODEL_KEYS);
        if (step % 11 == 10) { /* what did not settle is forgotten */
            if (step % 2 == 0) {
                assert_ok(key_index_discard(f.index, &err));
            } else {
                close_index(&f);
                open_index(&f);
            }
            n = 0;
            checks_all(&f, models[0], MODEL_KEYS);
        }
    }
    assert_code(key_index_settle(f.index, n + 1, 1, &err), TARN_INVALID);
    for (; n < KEY_INDEX_STEPS; n++) {
        assert_ok(key_index_step(f.index, &err));
    }
    assert_code(key_index_step(f.index, &err), TARN_LIMIT);
    assert_int_equal(f.logged, 0);
    teardown(&f);
}

/* Steps that outgrow memory: seen all the same, and whole once the last of them settled. */
static void test_steps_that_memory_does_not_hold(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    fixture f;
    enum { MANY = 60000 };
    (void)state;
    setup(&f);
    open_index(&f);
    put_many(&f, 100, 9000000);
    apply(&f, 1);
    put_many(&f, 1000, 1000000);
    assert_ok(key_index_step(f.index, &err));
    assert_false(key_index_is_full(f.index));
    put_many(&f, MANY, 2000000);
    assert_ok(key_index_step(f.index, &err));
    put_many(&f, 50, 3000000);
    assert_ok(key_index_settle(f.index, 1, 2, &err));
    assert_int_equal(find_one(&f, 3).position, 3000003);
    assert_int_equal(find_one(&f, 99).position, 2000099);
    assert_ok(key_index_settle(f.index, 1, 3, &err));
    apply(&f, 4);
    close_index(&f);
    open_index(&f);
    assert_int_equal(f.logged, 0);
    assert_int_equal(key_index_snapshot(f.index), 4);
    assert_int_equal(find_one(&f, 3).position, 3000003);
    assert_int_equal(find_one(&f, MANY - 1).position, 2000000 + MANY - 1);
    put_many(&f, MANY, 4000000);
    assert_ok(key_index_step(f.index, &err));
    assert_ok(key_index_discard(f.index, &err)); /* its snapshot never came */
    assert_int_equal(key_index_snapshot(f.index), TARN_NO_SNAPSHOT);
    assert_int_equal(find_one(&f, 3).file, -1);
    assert_int_equal(f.logged, 1);
    teardown(&f);
}

static void test_large_checkpoints(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    fixture f;
    enum { MANY = 200000 };
    (void)state;
    setup(&f);
    open_index(&f);
    put_many(&f, 25000, 10); /* a sorted file, but within memory */
    apply(&f, 1);
    assert_int_equal(find_one(&f, 24999).position, 10 + 24999);
    put_many(&f, MANY, 1000000); /* spilled */
    assert_int_equal(find_one(&f, 3).position, 1000003);
    assert_int_equal(find_one(&f, MANY - 1).position, 1000000 + MANY - 1);
    apply(&f, 2);
    close_index(&f);
    open_index(&f);
    assert_int_equal(f.logged, 0);
    assert_int_equal(key_index_snapshot(f.index), 2);
    for (int64_t i = 0; i < MANY; i += 777) {
        assert_int_equal(find_one(&f, i).position, 1000000 + i);
    }
    put_many(&f, MANY, 5000000); /* discarded after a spill: empty, and says so */
    assert_ok(key_index_discard(f.index, &err));
    assert_int_equal(f.logged, 1);
    assert_int_equal(key_index_snapshot(f.index), TARN_NO_SNAPSHOT);
    assert_int_equal(find_one(&f, 3).file, -1);
    put_many(&f, MANY, 20);
    close_index(&f); /* closed in the middle of one */
    open_index(&f);
    assert_int_equal(f.logged, 2);
    assert_int_equal(key_index_snapshot(f.index), TARN_NO_SNAPSHOT);
    assert_int_equal(find_one(&f, 3).file, -1);
    teardown(&f);
}

static void test_anothers_index_is_emptied(void **state) {
    static const int32_t other_ids[] = {2, 1};
    fixture f;
    (void)state;
    setup(&f);
    for (int what = 0; what < 4; what++) {
        key_index_options mine = f.options;
        open_index(&f);
        put_one(&f, 1, (key_location){file_number(&f, 1), 4});
        apply(&f, 5);
        close_index(&f);
        if (what == 0) {
            f.options.table_uuid = STR("7b1e2c9a-0000-4000-8000-000000000002");
        } else if (what == 1) {
            f.options.key_ids = other_ids;
        } else if (what == 2) {
            f.options.n_key_ids = 1;
        } else {
            f.options.branch = STR("audit");
        }
        f.logged = 0;
        open_index(&f);
        assert_int_equal(f.logged, 1);
        assert_int_equal(key_index_snapshot(f.index), TARN_NO_SNAPSHOT);
        assert_int_equal(find_one(&f, 1).file, -1);
        close_index(&f);
        f.options = mine;
    }
    teardown(&f);
}

static void test_scratch_is_gone_at_close(void **state) {
    fixture f;
    (void)state;
    setup(&f);
    f.options.table_uuid = STR_NULL;
    open_index(&f);
    put_many(&f, 100000, 3);
    assert_int_equal(find_one(&f, 99999).position, 3 + 99999);
    close_index(&f);
    assert_int_not_equal(access(f.path, F_OK), 0);
    teardown(&f);
}

static void test_one_process_at_a_time(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    fixture f;
    key_index *second = NULL;
    (void)state;
    setup(&f);
    open_index(&f);
    put_one(&f, 1, (key_location){file_number(&f, 1), 4});
    apply(&f, 5);
    assert_code(key_index_open(f.env, &f.options, &second, &err), TARN_IO);
    assert_non_null(strstr(err.message, "is in use: another job has this state folder"));
    assert_null(second);
    assert_int_equal(find_one(&f, 1).position, 4);
    assert_int_equal(key_index_snapshot(f.index), 5);
    teardown(&f);
}

/* Damages one file of the folder in one way; false: no more files. */
static bool damage_file(const char *folder, int which, bool cut, char name[256]) {
    char path[512];
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = 0;
    bool found = false;
    for (struct dirent *e = readdir(dir); e != NULL && !found; e = readdir(dir)) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, "LOCK") == 0 ||
            strncmp(e->d_name, "LOG", 3) == 0 || strncmp(e->d_name, "OPTIONS", 7) == 0) {
            continue;
        }
        if (n++ == which) {
            found = true;
            (void)snprintf(name, 256, "%s", e->d_name);
        }
    }
    (void)closedir(dir);
    if (!found) {
        return false;
    }
    int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_true(len > 0 && len < (int)sizeof path);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    if (cut) {
        assert_int_equal(truncate(path, st.st_size / 2), 0);
    } else {
        assert_int_equal(unlink(path), 0);
    }
    return true;
}

static void test_damage_is_never_a_wrong_answer(void **state) {
    fixture f;
    char name[256];
    bool more = true;
    int emptied = 0;
    (void)state;
    for (int which = 0; more; which++) {
        for (int cut = 0; cut < 2 && more; cut++) {
            setup(&f);
            open_index(&f);
            put_many(&f, 30000, 3); /* sorted file */
            apply(&f, 8);
            put_one(&f, 1, (key_location){0, 99}); /* log */
            apply(&f, 9);
            close_index(&f);
            more = damage_file(f.path, which, cut == 1, name);
            open_index(&f);
            int64_t stands_for = key_index_snapshot(f.index);
            int64_t want = stands_for == 9 ? 99 : 4;
            if (stands_for == TARN_NO_SNAPSHOT) {
                emptied++;
                assert_int_equal(find_one(&f, 1).file, -1);
                assert_int_equal(find_one(&f, 29999).file, -1);
                put_many(&f, 10, 3); /* and it goes on */
                apply(&f, 10);
            } else {
                assert_int_equal(find_one(&f, 1).position, want);
                assert_int_equal(find_one(&f, 29999).position, 3 + 29999);
            }
            teardown(&f);
        }
    }
    assert_true(emptied >= 4);
}

static void test_a_flipped_bit_is_corrupt(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    fixture f;
    (void)state;
    setup(&f);
    open_index(&f);
    put_many(&f, 30000, 3);
    apply(&f, 8);
    close_index(&f);
    DIR *dir = opendir(f.path);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        char path[512];
        size_t len = strlen(e->d_name);
        struct stat st;
        if (len > 4 && strcmp(e->d_name + len - 4, ".sst") == 0) {
            assert_true(snprintf(path, sizeof path, "%s/%s", f.path, e->d_name) > 0);
            assert_int_equal(stat(path, &st), 0);
            if (st.st_size < 100000) {
                continue;
            }
            FILE *file = fopen(path, "r+b");
            assert_non_null(file);
            assert_int_equal(fseek(file, 9000, SEEK_SET), 0);
            int c = fgetc(file);
            assert_int_equal(fseek(file, 9000, SEEK_SET), 0);
            assert_int_not_equal(fputc(c ^ 4, file), EOF);
            assert_int_equal(fclose(file), 0);
        }
    }
    (void)closedir(dir);
    open_index(&f);
    assert_int_equal(f.logged, 0);
    int corrupt = 0;
    for (int64_t i = 0; i < 30000; i++) {
        char text[24];
        tarn_str key = number_key(text, i);
        key_location at;
        tarn_code code = key_index_find(f.index, &key, 1, &at, &err);
        if (code == TARN_OK) {
            assert_int_equal(at.position, 3 + i);
        } else {
            assert_code(code, TARN_CORRUPT);
            corrupt++;
        }
    }
    assert_true(corrupt > 0);
    assert_ok(key_index_clear(f.index, &err));
    put_many(&f, 10, 3);
    apply(&f, 9);
    assert_int_equal(find_one(&f, 9).position, 12);
    teardown(&f);
}

/* The child: checkpoints until it is killed. Every key of checkpoint c is at position c. */
static void run_checkpoints(fixture *f, int64_t from, size_t keys) {
    open_index(f);
    for (int64_t c = from;; c++) {
        int32_t file = file_number(f, (int)c % 1000);
        for (size_t i = 0; i < keys; i++) {
            put_one(f, (int64_t)i, (key_location){file, c});
        }
        apply(f, c);
    }
}

static void test_kills_leave_a_whole_snapshot_or_nothing(void **state) {
    fixture f;
    uint64_t seed = 7;
    int whole = 0;
    (void)state;
    setup(&f);
    int rounds = test_every() ? 200 : 24;
    for (int round = 0; round < rounds || (whole == 0 && round < 600); round++) {
        size_t keys = round % 3 == 0 ? 50 : round % 3 == 1 ? 25000 : 70000;
        int64_t last = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            run_checkpoints(&f, round * 100000 + 1, keys);
            _exit(0);
        }
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        /* Where nothing was whole by now the machine is slow: longer and longer. */
        int64_t most = whole == 0 && round >= rounds ? 400 + 200 * (int64_t)(round - rounds) : 400;
        int64_t ms = 10 + (int64_t)(seed >> 33) % most;
        struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
        (void)nanosleep(&wait, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        child = fork(); /* RocksDB's threads must not live in this process, which forks again */
        assert_true(child >= 0);
        if (child == 0) {
            open_index(&f);
            last = key_index_snapshot(f.index);
            bool ok = true;
            for (size_t i = 0; i < 50; i++) {
                key_location at = find_one(&f, (int64_t)i);
                ok = ok && (last == TARN_NO_SNAPSHOT ? at.file == -1 : at.position == last);
            }
            close_index(&f);
            _exit(!ok ? 2 : last == TARN_NO_SNAPSHOT ? 1 : 0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 2);
        whole += WEXITSTATUS(status) == 0;
    }
    assert_true(whole > 0);
    teardown(&f);
}

static int64_t resident_bytes(void) {
    long long size = 0;
    long long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lld %lld", &size, &resident), 2);
    (void)fclose(file);
    return resident * (int64_t)sysconf(_SC_PAGESIZE);
}

static void test_memory_is_bounded(void **state) {
    fixture f;
    (void)state;
    setup(&f);
    f.options.memory_bytes = (size_t)16 << 20;
    open_index(&f);
    int64_t before = resident_bytes();
    for (int64_t c = 0; c < 4; c++) {
        put_many(&f, 500000, c);
        assert_true(tarn_env_memory_now(f.env) < (8 << 20));
        apply(&f, c + 1);
        assert_int_equal(find_one(&f, 499999).position, c + 499999);
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(resident_bytes() - before < (40 << 20));
#else
    (void)before;
#endif
    teardown(&f);
}

static tarn_code work_once(fixture *f, tarn_error *err) {
    tarn_code code = key_index_open(f->env, &f->options, &f->index, err);
    for (int64_t n = 0; code == TARN_OK && n < 2000; n++) {
        char text[24];
        tarn_str key = number_key(text, n);
        int32_t file = 0;
        code = key_index_file_number(f->index, n % 50 == 0 ? key : STR("f"), &file, err);
        key_location at = {file, n};
        if (code == TARN_OK) {
            code = key_index_put(f->index, &key, &at, 1, err);
        }
        if (code == TARN_OK) {
            code = key_index_find(f->index, &key, 1, &at, err);
        }
    }
    return code == TARN_OK ? key_index_apply(f->index, 3, err) : code;
}

static void test_no_memory_is_said_and_survived(void **state) {
    fixture f;
    bool failed = true;
    (void)state;
    for (uint64_t k = 1; failed; k += k < 40 ? 1 : test_every() ? 13 : 97) {
        tarn_error err = TARN_ERROR_INIT;
        fail_alloc plan;
        fixture g;
        setup(&f);
        g = f;
        g.env = fail_alloc_env(&plan, k);
        tarn_code code = work_once(&g, &err);
        failed = plan.failed;
        assert_code(code, failed ? TARN_NOMEM : TARN_OK);
        key_index_close(g.index);
        fail_alloc_done(&plan, g.env);
        open_index(&f);
        assert_int_equal(key_index_snapshot(f.index), failed ? TARN_NO_SNAPSHOT : 3);
        teardown(&f);
    }
}

/* Rows of a key one by one, newest first, from the place that is found. */
static void chain_is(fixture *f, int64_t n, const int64_t *positions, size_t count) {
    tarn_error err = TARN_ERROR_INIT;
    key_location newest = find_one(f, n);
    key_chain chain = key_chain_of(newest);
    assert_int_equal((newest.position & KEY_OLDER) != 0, count > 1);
    for (size_t i = 0; i < count; i++) {
        assert_true(chain.at.file >= 0);
        assert_int_equal(chain.at.position & ~KEY_OLDER, positions[i]);
        assert_ok(key_index_older(f->index, &chain, &err));
    }
    assert_int_equal(chain.at.file, -1);
}

/* Goal: of a key with several rows all are found, after a close, a discard and a removal too, and
 * rows that go round end. Method: a key of three rows beside one of one row. */
static void test_older_rows_of_a_key(void **state) {
    fixture f;
    tarn_error err = TARN_ERROR_INIT;
    (void)state;
    setup(&f);
    open_index(&f);
    int32_t file = file_number(&f, 1);
    char texts[2][24];
    tarn_str keys[3] = {number_key(texts[0], 1), number_key(texts[1], 2), STR_NULL};
    keys[2] = keys[0];
    const key_location at[3] = {{file, 10}, {file, 20}, {file, 30}};
    key_location before[3];
    assert_ok(key_index_add(f.index, keys, at, 3, before, &err));
    assert_int_equal(before[0].file, -1);
    assert_int_equal(before[1].file, -1);
    assert_int_equal(before[2].file, file); /* of the list itself */
    assert_int_equal(before[2].position, 10);
    assert_ok(key_index_put_older(f.index, keys[0], at[2], before[2], &err));
    apply(&f, 1);
    close_index(&f);
    open_index(&f);
    const key_location newest = {file, 40};
    assert_ok(key_index_add(f.index, keys, &newest, 1, before, &err));
    assert_int_equal(before[0].position & ~KEY_OLDER, 30);
    assert_ok(key_index_put_older(f.index, keys[0], newest, before[0], &err));
    chain_is(&f, 1, (const int64_t[]){40, 30, 10}, 3);
    chain_is(&f, 2, (const int64_t[]){20}, 1);
    assert_code(key_index_put_older(f.index, keys[0], newest, at[1], &err), TARN_CORRUPT);
    assert_ok(key_index_discard(f.index, &err));
    chain_is(&f, 1, (const int64_t[]){30, 10}, 2);
    assert_ok(key_index_put_older(f.index, keys[0], at[0], at[2], &err)); /* round and round */
    chain_is(&f, 1, (const int64_t[]){10, 30}, 2);
    assert_ok(key_index_remove(f.index, keys, 1, &err));
    assert_int_equal(find_one(&f, 1).file, -1);
    teardown(&f);
}

/* Goal: a key that comes twice in a list is seen, also where memory is written in between. */
static void test_older_rows_beyond_memory(void **state) {
    enum { N = 120000 };
    fixture f;
    tarn_error err = TARN_ERROR_INIT;
    (void)state;
    setup(&f);
    open_index(&f);
    int32_t file = file_number(&f, 1);
    char(*texts)[24] = calloc(N, sizeof *texts);
    tarn_str *keys = calloc(N, sizeof *keys);
    key_location *at = calloc(N, sizeof *at);
    key_location *before = calloc(N, sizeof *before);
    for (size_t i = 0; i < N; i++) {
        keys[i] = number_key(texts[i], (int64_t)(i % (N / 2)));
        at[i] = (key_location){file, (int64_t)i};
    }
    assert_ok(key_index_add(f.index, keys, at, N, before, &err));
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(before[i].file, i < N / 2 ? -1 : file);
        assert_true(i < N / 2 || before[i].position == (int64_t)i - N / 2);
    }
    apply(&f, 1);
    free(texts);
    free(keys);
    free(at);
    free(before);
    teardown(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills_leave_a_whole_snapshot_or_nothing), /* forks: first */
        cmocka_unit_test(test_older_rows_of_a_key),
        cmocka_unit_test(test_older_rows_beyond_memory),
        cmocka_unit_test(test_starts_empty_and_keeps_what_was_applied),
        cmocka_unit_test(test_what_was_not_applied_is_forgotten),
        cmocka_unit_test(test_paths_and_numbers),
        cmocka_unit_test(test_agrees_with_a_model),
        cmocka_unit_test(test_steps_agree_with_a_model),
        cmocka_unit_test(test_steps_that_memory_does_not_hold),
        cmocka_unit_test(test_large_checkpoints),
        cmocka_unit_test(test_anothers_index_is_emptied),
        cmocka_unit_test(test_scratch_is_gone_at_close),
        cmocka_unit_test(test_one_process_at_a_time),
        cmocka_unit_test(test_damage_is_never_a_wrong_answer),
        cmocka_unit_test(test_a_flipped_bit_is_corrupt),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_no_memory_is_said_and_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_a_build_without_it_says_so(void **state) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    key_index *index = NULL;
    key_index_options options;
    (void)state;
    memset(&options, 0, sizeof options);
    assert_code(key_index_open(env, &options, &index, &err), TARN_UNSUPPORTED);
    assert_non_null(strstr(err.message, "TARN_ROCKSDB"));
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_build_without_it_says_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
