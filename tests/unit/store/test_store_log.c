/* Goal: what an append answered is read back, whole and in order, whatever happened to the tail;
 * what was acknowledged and is damaged is told; any number of threads share syncs. Method: logs of
 * a few groups in a folder, opened again after every cut and every changed byte; threads that
 * append at once; every allocation failing once; a disk that is full (RLIMIT_FSIZE). */
#include "fail_alloc.h"

#include "store/store_log.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 8
#define EACH    25

typedef struct folder {
    char path[64];
} folder;

typedef struct seen {
    int n;
    int64_t positions[THREADS * EACH + 16];
    char last[64];
    bool keep;
} seen;

static void folder_open(folder *f) {
    (void)snprintf(f->path, sizeof f->path, "/tmp/tarn-log-XXXXXX");
    assert_non_null(mkdtemp(f->path));
}

static void folder_clear(const folder *f) {
    char path[400];
    DIR *dir = opendir(f->path);
    assert_non_null(dir);
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        (void)snprintf(path, sizeof path, "%s/%s", f->path, e->d_name);
        (void)unlink(path);
    }
    (void)closedir(dir);
}

static void folder_close(const folder *f) {
    folder_clear(f);
    (void)rmdir(f->path);
}

static tarn_code see(void *ctx, const store_log_record *record, bool *keep, tarn_error *err) {
    seen *s = ctx;
    (void)err;
    assert_true(s->n < THREADS * EACH + 16);
    s->positions[s->n++] = record->position;
    assert_true(record->payload.len < sizeof s->last);
    memcpy(s->last, record->payload.data, record->payload.len);
    s->last[record->payload.len] = '\0';
    *keep = s->keep;
    return TARN_OK;
}

static tarn_code open_log(tarn_env *env, const folder *f, int64_t segment, seen *s, store_log **log,
                          tarn_error *err) {
    const store_log_options options = {f->path, "rows", segment};
    s->n = 0;
    return store_log_open(env, &options, see, s, log, err);
}

static tarn_code append(store_log *log, const char *text, int64_t *position, tarn_error *err) {
    store_log_entry e;
    memset(&e, 0, sizeof e);
    e.kind = 1;
    e.parts[0] = str_of("<");
    e.parts[1] = str_of(text);
    e.keep = true;
    tarn_code code = store_log_append(log, &e, err);
    *position = e.position;
    return code;
}

static char *segment_path(const folder *f, int64_t number) {
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/rows-%012lld.log", f->path, (long long)number);
    return path;
}

static size_t read_file(const char *path, char *out, size_t cap) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t n = fread(out, 1, cap, file);
    (void)fclose(file);
    return n;
}

static void write_file(const char *path, const char *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Three records in the first segment, each a group of its own; ends are where each ends. */
static size_t make_log(tarn_env *env, const folder *f, char *bytes, size_t cap, size_t ends[4]) {
    tarn_error err = TARN_ERROR_INIT;
    store_log *log;
    seen s = {0};
    assert_ok(open_log(env, f, 1 << 20, &s, &log, &err));
    for (int i = 0; i < 4; i++) {
        struct stat info;
        int64_t position;
        if (i > 0) {
            assert_ok(append(log, "some text", &position, &err));
            assert_int_equal(position, i - 1);
        }
        assert_int_equal(stat(segment_path(f, 0), &info), 0);
        ends[i] = (size_t)info.st_size;
    }
    store_log_close(log);
    return read_file(segment_path(f, 0), bytes, cap);
}

static int whole_before(const size_t ends[4], size_t at) {
    int n = 0;
    while (n < 3 && at >= ends[n + 1]) {
        n++;
    }
    return n;
}

static void test_log_torn(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    folder f;
    char bytes[2048];
    size_t ends[4];
    folder_open(&f);
    size_t n = make_log(env, &f, bytes, sizeof bytes, ends);
    for (size_t cut = 0; cut <= n; cut++) {
        store_log *log;
        seen s = {0};
        int64_t position;
        folder_clear(&f);
        write_file(segment_path(&f, 0), bytes, cut);
        assert_ok(open_log(env, &f, 1 << 20, &s, &log, &err));
        assert_int_equal(s.n, whole_before(ends, cut));
        assert_ok(append(log, "more", &position, &err));
        assert_true(position >= s.n);
        store_log_close(log);
        int before = s.n;
        assert_ok(open_log(env, &f, 1 << 20, &s, &log, &err));
        assert_int_equal(s.n, before + 1);
        assert_string_equal(s.last, "<more");
        store_log_close(log);
    }
    folder_close(&f);
    test_env_done(env);
}

/* A changed byte of a record that others stand behind is told; of the last one it may have been a
 * torn tail, as nothing says that it was durable, unless a segment followed. */
static void test_log_damaged(void **state) {
    (void)state;
    tarn_env *env = test_env();
    folder f;
    char bytes[2048];
    size_t ends[4];
    folder_open(&f);
    size_t n = make_log(env, &f, bytes, sizeof bytes, ends);
    for (int followed = 0; followed < 2; followed++) {
        for (size_t at = 0; at < n; at++) {
            tarn_error err = TARN_ERROR_INIT;
            store_log *log = NULL;
            seen s = {0};
            folder_clear(&f);
            write_file(segment_path(&f, 0), bytes, n);
            if (followed > 0) {
                assert_ok(open_log(env, &f, 1 << 20, &s, &log, &err));
                store_log_close(log);
            }
            bytes[at] = (char)(bytes[at] ^ 0x10);
            write_file(segment_path(&f, 0), bytes, n);
            bytes[at] = (char)(bytes[at] ^ 0x10);
            tarn_code code = open_log(env, &f, 1 << 20, &s, &log, &err);
            if (at >= ends[2] && followed == 0) {
                assert_code(code, TARN_OK);
                assert_int_equal(s.n, 2);
                store_log_close(log);
                continue;
            }
            if (at >= 12 && at < 16) { /* the version */
                assert_true(code == TARN_CORRUPT || code == TARN_UNSUPPORTED);
                continue;
            }
            assert_code(code, TARN_CORRUPT);
            assert_non_null(strstr(err.message, "rows-000000000000.log"));
            assert_non_null(strstr(err.message, "offset"));
        }
    }
    folder_close(&f);
    test_env_done(env);
}

typedef struct appender {
    store_log *log;
    pthread_t thread;
    int wrong;
} appender;

static void *append_all(void *ctx) {
    appender *a = ctx;
    int64_t last = -1;
    for (int i = 0; i < EACH; i++) {
        tarn_error err = TARN_ERROR_INIT;
        int64_t position;
        a->wrong += append(a->log, "x", &position, &err) != TARN_OK || position <= last;
        last = position;
    }
    return NULL;
}

static void test_log_threads(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    folder f;
    store_log *log;
    store_log_stats stats;
    appender all[THREADS];
    static seen s;
    folder_open(&f);
    assert_ok(open_log(env, &f, 1000, &s, &log, &err)); /* many segments */
    for (int i = 0; i < THREADS; i++) {
        all[i] = (appender){log, 0, 0};
        assert_int_equal(pthread_create(&all[i].thread, NULL, append_all, &all[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].wrong, 0);
    }
    store_log_count(log, &stats);
    assert_int_equal(stats.records, THREADS * EACH);
    assert_true(stats.syncs <= stats.records && stats.segments > 2);
    store_log_close(log);
    assert_ok(open_log(env, &f, 1000, &s, &log, &err));
    assert_int_equal(s.n, THREADS * EACH);
    for (int i = 0; i < s.n; i++) {
        assert_int_equal(s.positions[i], i);
    }
    store_log_close(log);
    folder_close(&f);
    test_env_done(env);
}

static tarn_code see_again(void *ctx, const store_log_record *record, bool *keep, tarn_error *err) {
    seen *s = ctx;
    (void)record;
    (void)keep;
    (void)err;
    s->n++;
    return TARN_OK;
}

/* Segments go when nothing of them is kept, also from the middle; positions go on all the same. */
static void test_log_released(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    folder f;
    store_log *log;
    seen s = {0};
    int64_t position;
    store_log_place places[4];
    folder_open(&f);
    assert_ok(open_log(env, &f, 1, &s, &log, &err)); /* a segment for each */
    for (int i = 0; i < 4; i++) {
        store_log_entry e;
        tarn_buf text;
        memset(&e, 0, sizeof e);
        e.kind = 7;
        e.parts[1] = str_of(i % 2 == 0 ? "even" : "odd");
        e.keep = true;
        assert_ok(store_log_append(log, &e, &err));
        places[i] = e.place;
        buf_init(&text, env, 0);
        assert_ok(store_log_read(log, &places[i], &text, &err));
        assert_true(str_eq(buf_str(&text), e.parts[1]));
        buf_release(&text);
    }
    for (int i = 2; i >= 1; i--) {
        int64_t segment;
        bool oldest;
        bool found;
        s.n = 0;
        assert_ok(
            store_log_find_free(log, INT64_MAX, see_again, &s, &segment, &oldest, &found, &err));
        assert_false(found);
        store_log_release(log, &places[i]);
        assert_ok(store_log_find_free(log, 0, see_again, &s, &segment, &oldest, &found, &err));
        assert_false(found); /* not old enough */
        assert_ok(
            store_log_find_free(log, INT64_MAX, see_again, &s, &segment, &oldest, &found, &err));
        assert_true(found && !oldest && s.n == 1 && segment == places[i].segment);
        store_log_remove(log, segment);
    }
    char id[37];
    memcpy(id, store_log_id(log), sizeof id);
    store_log_close(log);
    s.keep = false;
    assert_ok(open_log(env, &f, 1, &s, &log, &err));
    assert_int_equal(s.n, 2);
    assert_int_equal(s.positions[1], 3);
    assert_string_equal(store_log_id(log), id);
    for (bool found = true; found;) {
        int64_t segment;
        bool oldest;
        assert_ok(
            store_log_find_free(log, INT64_MAX, see_again, &s, &segment, &oldest, &found, &err));
        if (found) {
            store_log_remove(log, segment);
        }
    }
    store_log_close(log);
    assert_ok(open_log(env, &f, 1, &s, &log, &err)); /* empty, but no position comes again */
    assert_int_equal(s.n, 0);
    assert_ok(append(log, "x", &position, &err));
    assert_int_equal(position, 4);
    store_log *second = NULL;
    assert_code(open_log(env, &f, 1, &s, &second, &err), TARN_CONFLICT);
    store_log_close(log);
    folder_close(&f);
    test_env_done(env);
}

static void release_one(store_log *log, int64_t number) {
    tarn_error err = TARN_ERROR_INIT;
    const store_log_place place = {number, 0, 0};
    seen s = {0};
    int64_t segment;
    bool oldest;
    bool found;
    store_log_release(log, &place);
    assert_ok(store_log_find_free(log, INT64_MAX, see_again, &s, &segment, &oldest, &found, &err));
    assert_true(found && segment == number);
    store_log_remove(log, segment);
}

/* Where the segment behind one is gone, damage to its last record is told all the same, and a tail
 * that was torn before is none. */
static void test_log_holes(void **state) {
    (void)state;
    tarn_env *env = test_env();
    folder f;
    folder_open(&f);
    for (int torn = 0; torn < 2; torn++) {
        tarn_error err = TARN_ERROR_INIT;
        char bytes[2048];
        size_t ends[4];
        store_log *log;
        seen s = {.keep = true};
        int64_t position;
        folder_clear(&f);
        size_t n = make_log(env, &f, bytes, sizeof bytes, ends);
        write_file(segment_path(&f, 0), bytes, n - (size_t)torn);
        assert_ok(open_log(env, &f, 1, &s, &log, &err)); /* a segment for each */
        assert_int_equal(s.n, 3 - torn);
        assert_ok(append(log, "one", &position, &err));
        assert_ok(append(log, "two", &position, &err));
        release_one(log, 1);
        store_log_close(log);
        assert_ok(open_log(env, &f, 1, &s, &log, &err));
        assert_int_equal(s.n, 4 - torn);
        store_log_close(log);
        n = read_file(segment_path(&f, 0), bytes, sizeof bytes);
        assert_int_equal(n, ends[3 - torn]);
        bytes[n - 1] = (char)(bytes[n - 1] ^ 1);
        write_file(segment_path(&f, 0), bytes, n);
        log = NULL;
        assert_code(open_log(env, &f, 1, &s, &log, &err), TARN_CORRUPT);
        write_file(segment_path(&f, 0), bytes, n - 1);
        assert_code(open_log(env, &f, 1, &s, &log, &err), TARN_CORRUPT);
    }
    folder_close(&f);
    test_env_done(env);
}

/* A write that fails leaves nothing, and the next one works. */
static void test_log_full(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    folder f;
    store_log *log;
    seen s = {0};
    int64_t position;
    struct rlimit before;
    struct rlimit small;
    folder_open(&f);
    assert_ok(open_log(env, &f, 1 << 20, &s, &log, &err));
    assert_ok(append(log, "first", &position, &err));
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 170; /* in the middle of the record */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tarn_code code = append(log, "second", &position, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_code(code, TARN_IO);
    assert_ok(append(log, "third", &position, &err));
    store_log_close(log);
    assert_ok(open_log(env, &f, 1 << 20, &s, &log, &err));
    assert_int_equal(s.n, 2);
    assert_string_equal(s.last, "<third");
    assert_int_equal(s.positions[1], position);
    store_log_close(log);
    folder_close(&f);
    test_env_done(env);
}

static tarn_code live(tarn_env *env, const folder *f, int *acknowledged, tarn_error *err) {
    tarn_code code = TARN_OK;
    store_log *log = NULL;
    seen s = {0};
    int64_t position;
    TRY(open_log(env, f, 150, &s, &log, err));
    for (int i = 0; i < 3; i++) {
        TRY(append(log, "text", &position, err));
        ++*acknowledged;
    }
done:
    store_log_close(log);
    return code;
}

static void test_log_memory(void **state) {
    (void)state;
    folder f;
    folder_open(&f);
    for (uint64_t k = 1;; k++) {
        tarn_error err = TARN_ERROR_INIT;
        fail_alloc plan;
        int acknowledged = 0;
        folder_clear(&f);
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_code code = live(env, &f, &acknowledged, &err);
        code = code == TARN_OK ? live(env, &f, &acknowledged, &err) : code;
        fail_alloc_done(&plan, env);
        assert_code(code, plan.failed ? TARN_NOMEM : TARN_OK);
        store_log *log;
        seen s = {0};
        env = test_env();
        assert_ok(open_log(env, &f, 150, &s, &log, &err));
        assert_int_equal(s.n, acknowledged);
        store_log_close(log);
        test_env_done(env);
        if (!plan.failed) {
            break;
        }
    }
    folder_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_torn),    cmocka_unit_test(test_log_damaged),
        cmocka_unit_test(test_log_threads), cmocka_unit_test(test_log_released),
        cmocka_unit_test(test_log_holes),   cmocka_unit_test(test_log_full),
        cmocka_unit_test(test_log_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
