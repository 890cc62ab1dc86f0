/* Goal: every store keeps the promises of store/store.h.
 * Method: each case runs on local files (synced and not), memory, and the wrappers around them;
 * what one store does differently it must say by its traits. */
#include "tempdir.h"

#include "store/store.h"

#include <pthread.h>

typedef struct fixture {
    const char *kind;
    tarn_env *env;
    tarn_store *store;
    store_fault_plan plan;
    store_trace trace;
    char folder[64];
    char root[96]; /* paths of a case begin with it */
} fixture;

static const char *const KINDS[] = {"file", "file-synced", "memory", "moved", "trace", "fault"};
#define N_KINDS (sizeof KINDS / sizeof KINDS[0])

static void set_up(fixture *f, const char *kind) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_store *inner = NULL;
    memset(f, 0, sizeof *f);
    f->kind = kind;
    f->env = test_env();
    test_tempdir(f->folder);
    (void)snprintf(f->root, sizeof f->root, "%s/root", f->folder);
    if (strcmp(kind, "memory") == 0 || strcmp(kind, "trace") == 0) {
        assert_ok(store_memory_new(f->env, &inner, &err));
    } else {
        assert_ok(store_file_new(f->env, strcmp(kind, "file-synced") == 0, &inner, &err));
    }
    f->store = inner;
    if (strcmp(kind, "moved") == 0) {
        assert_ok(store_moved_new(inner, STR("s3://gone/place"), str_of(f->root), &f->store, &err));
        (void)snprintf(f->root, sizeof f->root, "s3a://gone/place");
    } else if (strcmp(kind, "trace") == 0) {
        assert_ok(store_trace_new(inner, &f->trace, &f->store, &err));
    } else if (strcmp(kind, "fault") == 0) {
        assert_ok(store_fault_new(inner, &f->plan, &f->store, &err));
    }
}

static void tear_down(fixture *f) {
    store_close(f->store);
    test_tempdir_done(f->folder);
    test_env_done(f->env);
}

static tarn_str path_of(const fixture *f, char out[600], const char *rest) {
    int len = snprintf(out, 600, "%s/%s", f->root, rest);
    return str_make(out, (size_t)len);
}

static void expect_content(fixture *f, tarn_str path, const char *want) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    buf_init(&buf, f->env, 0);
    assert_ok(store_get(f->store, path, 1 << 20, &buf, &err));
    assert_int_equal(buf.len, strlen(want));
    assert_true(str_is(buf_str(&buf), want));
    buf_release(&buf);
}

static void check_create(fixture *f) {
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    tarn_str path = path_of(f, text, "a/b/c.bin");
    store_stat_info info;
    assert_code(store_stat(f->store, path, &info, &err), TARN_NOT_FOUND);
    assert_false(store_exists(f->store, path));
    assert_ok(store_put(f->store, path, STORE_CREATE, STR("first"), &err));
    assert_code(store_put(f->store, path, STORE_CREATE, STR("second"), &err), TARN_CONFLICT);
    expect_content(f, path, "first");
    assert_ok(store_put(f->store, path, STORE_REPLACE, STR("third!"), &err));
    expect_content(f, path, "third!");
    assert_ok(store_stat(f->store, path, &info, &err));
    assert_int_equal(info.size_bytes, 6);
    assert_true(info.modified_ms > INT64_C(1600000000000));
    assert_ok(store_remove(f->store, path, &err));
    assert_code(store_remove(f->store, path, &err), TARN_NOT_FOUND);
    assert_false(store_exists(f->store, path));
    assert_ok(store_put(f->store, path, STORE_CREATE, STR(""), &err));
    expect_content(f, path, "");
}

/* What becomes durable later is there at once, has one winner too, and may go before the sync. */
static void check_later(fixture *f) {
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    char folder[600];
    assert_ok(store_sync(f->store, &err)); /* nothing waits */
    tarn_str path = path_of(f, text, "later/a/b.bin");
    assert_ok(store_put(f->store, path, STORE_CREATE_LATER, STR("first"), &err));
    expect_content(f, path, "first");
    assert_code(store_put(f->store, path, STORE_CREATE_LATER, STR("second"), &err), TARN_CONFLICT);
    assert_code(store_put(f->store, path, STORE_CREATE, STR("third"), &err), TARN_CONFLICT);
    assert_ok(store_sync(f->store, &err));
    expect_content(f, path, "first");
    for (int i = 0; i < 300; i++) { /* more than a store keeps waiting */
        char name[32];
        (void)snprintf(name, sizeof name, "later/%d/%d", i % 100, i);
        assert_ok(store_put(f->store, path_of(f, text, name), STORE_CREATE_LATER, STR("x"), &err));
    }
    assert_ok(store_sync(f->store, &err));
    path = path_of(f, text, "gone/x");
    assert_ok(store_put(f->store, path, STORE_CREATE_LATER, STR("x"), &err));
    assert_ok(store_remove(f->store, path, &err));
    store_discard_folder(f->store, path_of(f, folder, "gone"));
    assert_ok(store_sync(f->store, &err));
    assert_ok(store_put(f->store, path, STORE_CREATE, STR("again"), &err));
    expect_content(f, path, "again");
}

/* What gets its name later replaces what is there, in the order in which it came. */
static void check_named_later(fixture *f) {
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    char other[600];
    tarn_str path = path_of(f, text, "named/x");
    assert_ok(store_put(f->store, path, STORE_REPLACE_LATER, STR("first"), &err));
    assert_ok(store_sync(f->store, &err));
    expect_content(f, path, "first");
    assert_ok(store_put(f->store, path, STORE_REPLACE_LATER, STR("second"), &err));
    assert_ok(store_put(f->store, path, STORE_REPLACE_LATER, STR("third"), &err));
    assert_ok(store_put(f->store, path_of(f, other, "named/y"), STORE_REPLACE, STR("y"), &err));
    expect_content(f, path, "third");
    for (int i = 0; i < 100; i++) { /* more than a store keeps waiting */
        char name[32];
        (void)snprintf(name, sizeof name, "named/%d", i);
        assert_ok(
            store_put(f->store, path_of(f, other, name), STORE_REPLACE_LATER, STR("n"), &err));
    }
    assert_ok(store_sync(f->store, &err));
    expect_content(f, path_of(f, other, "named/0"), "n");
    expect_content(f, path_of(f, other, "named/99"), "n");
}

static void check_ranges(fixture *f) {
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    char got[8] = {0};
    io_source *source = NULL;
    tarn_str path = path_of(f, text, "ranges");
    assert_ok(store_put(f->store, path, STORE_CREATE, STR("0123456789"), &err));
    assert_ok(store_open(f->store, path, -1, &source, &err));
    assert_int_equal(source->size_bytes, 10);
    assert_ok(io_read_at(source, 3, got, 4, &err));
    assert_memory_equal(got, "3456", 4);
    assert_ok(io_read_at(source, 10, got, 0, &err));
    assert_code(io_read_at(source, 8, got, 4, &err), TARN_CORRUPT);
    assert_code(io_read_at(source, -1, got, 1, &err), TARN_CORRUPT);
    assert_code(io_read_at(source, INT64_MAX, got, 4, &err), TARN_CORRUPT);
    /* An object that goes while it is read stays readable. */
    assert_ok(store_put(f->store, path, STORE_REPLACE, STR("xxx"), &err));
    assert_ok(store_remove(f->store, path, &err));
    assert_ok(io_read_at(source, 6, got, 4, &err));
    assert_memory_equal(got, "6789", 4);
    source->close(source);
    assert_code(store_open(f->store, path, -1, &source, &err), TARN_NOT_FOUND);
    assert_non_null(strstr(err.message, "ranges"));
}

static void check_large(fixture *f) {
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    io_sink *sink = NULL;
    tarn_buf buf;
    uint8_t block[70001];
    uint64_t sum = 0;
    tarn_str path = path_of(f, text, "large");
    buf_init(&buf, f->env, 0);
    assert_ok(store_create(f->store, path, STORE_CREATE, &sink, &err));
    for (size_t i = 0; i < 40; i++) { /* small and large pieces in turn */
        size_t len = i % 3 == 0 ? sizeof block : i % 3 == 1 ? 17 : 3000;
        memset(block, (int)i, len);
        sum += i * len;
        assert_ok(io_write(sink, block, len, &err));
    }
    assert_false(store_exists(f->store, path)); /* nothing before finish */
    int64_t written = sink->written_bytes;
    assert_ok(sink->finish(sink, &err));
    assert_code(store_get(f->store, path, 1000, &buf, &err), TARN_LIMIT);
    assert_ok(store_get(f->store, path, 8 << 20, &buf, &err));
    assert_int_equal(buf.len, written);
    for (size_t i = 0; i < buf.len; i++) {
        sum -= buf.data[i];
    }
    assert_int_equal(sum, 0);
    buf_release(&buf);
}

static void check_abort(fixture *f) {
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    io_sink *sink = NULL;
    tarn_str path = path_of(f, text, "aborted");
    assert_ok(store_create(f->store, path, STORE_CREATE, &sink, &err));
    assert_ok(io_write(sink, "abc", 3, &err));
    sink->abort(sink);
    assert_false(store_exists(f->store, path));
    assert_ok(store_create(f->store, path, STORE_REPLACE, &sink, &err));
    sink->abort(sink);
    assert_false(store_exists(f->store, path));
}

typedef struct listing {
    const fixture *f;
    char text[4096];
    int count;
    int stop_after;
    bool removing;
} listing;

static tarn_code note_path(void *ctx, tarn_str path, const store_stat_info *info, tarn_error *err) {
    listing *l = ctx;
    size_t len = strlen(l->text);
    size_t skip = strlen(l->f->root) + 1;
    assert_true(info->size_bytes >= 0);
    assert_true(path.len > skip);
    assert_memory_equal(path.data, l->f->root, skip - 1);
    (void)snprintf(l->text + len, sizeof l->text - len, "%.*s:%d\n", (int)(path.len - skip),
                   path.data + skip, (int)info->size_bytes);
    l->count++;
    if (l->stop_after > 0 && l->count == l->stop_after) {
        return err_set(err, TARN_INVALID, "stopped");
    }
    return l->removing ? store_remove(l->f->store, path, err) : TARN_OK;
}

static void check_list(fixture *f) {
    static const char *const NAMES[] = {"t/b",     "t/a",  "t/a.d/y", "t/a/", "t2/a",
                                        "t/a.d/x", "t/.h", "t/c d",   "u"};
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (NAMES[i][strlen(NAMES[i]) - 1] != '/') {
            assert_ok(
                store_put(f->store, path_of(f, text, NAMES[i]), STORE_CREATE, STR("xy"), &err));
        }
    }
    listing l = {.f = f};
    assert_ok(store_list(f->store, path_of(f, text, "t"), note_path, &l, &err));
    assert_string_equal(l.text, "t/.h:2\nt/a:2\nt/a.d/x:2\nt/a.d/y:2\nt/b:2\nt/c d:2\n");
    listing absent = {.f = f};
    assert_ok(store_list(f->store, path_of(f, text, "absent"), note_path, &absent, &err));
    assert_int_equal(absent.count, 0);
    listing stopped = {.f = f, .stop_after = 2};
    assert_code(store_list(f->store, path_of(f, text, "t"), note_path, &stopped, &err),
                TARN_INVALID);
    assert_string_equal(err.message, "stopped");
    assert_int_equal(stopped.count, 2);
    listing removing = {.f = f, .removing = true};
    assert_ok(store_list(f->store, path_of(f, text, "t"), note_path, &removing, &err));
    assert_int_equal(removing.count, 6);
    listing after = {.f = f};
    assert_ok(store_list(f->store, path_of(f, text, "t"), note_path, &after, &err));
    assert_int_equal(after.count, 0);
}

static tarn_code note_name(void *ctx, tarn_str name, const store_stat_info *info, tarn_error *err) {
    listing *l = ctx;
    size_t len = strlen(l->text);
    (void)snprintf(l->text + len, sizeof l->text - len, "%.*s%s ", (int)name.len, name.data,
                   info == NULL ? "/" : "");
    l->count++;
    (void)err;
    return TARN_OK;
}

static void expect_folder(fixture *f, const char *folder, const char *want) {
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    listing l = {.f = f};
    assert_ok(store_list_folder(f->store, path_of(f, text, folder), note_name, &l, &err));
    assert_string_equal(l.text, want);
}

static void check_folders(fixture *f) {
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    listing l = {.f = f};
    expect_folder(f, "w", "");
    assert_ok(store_make_folder(f->store, path_of(f, text, "w/empty"), &err));
    assert_code(store_make_folder(f->store, path_of(f, text, "w/empty"), &err), TARN_CONFLICT);
    assert_code(store_make_folder(f->store, path_of(f, text, "w/empty/"), &err), TARN_CONFLICT);
    expect_folder(f, "w", "empty/ ");
    expect_folder(f, "w/empty", "");
    assert_ok(store_put(f->store, path_of(f, text, "w/a.d/x"), STORE_CREATE, STR("1"), &err));
    assert_ok(store_put(f->store, path_of(f, text, "w/a/x"), STORE_CREATE, STR("1"), &err));
    assert_ok(store_put(f->store, path_of(f, text, "w/a/y"), STORE_CREATE, STR("1"), &err));
    assert_ok(store_put(f->store, path_of(f, text, "w/b"), STORE_CREATE, STR("1"), &err));
    expect_folder(f, "w", "a/ a.d/ b empty/ ");
    expect_folder(f, "w/", "a/ a.d/ b empty/ ");
    expect_folder(f, "w/b", "");
    assert_ok(store_list(f->store, path_of(f, text, "w/empty"), note_path, &l, &err));
    assert_int_equal(l.count, 0); /* a folder is not an object */
    assert_code(store_remove_folder(f->store, path_of(f, text, "w"), &err), TARN_CONFLICT);
    assert_code(store_remove_folder(f->store, path_of(f, text, "w/a"), &err), TARN_CONFLICT);
    assert_code(store_remove_folder(f->store, path_of(f, text, "w/no"), &err), TARN_NOT_FOUND);
    assert_ok(store_remove_folder(f->store, path_of(f, text, "w/empty"), &err));
    assert_code(store_remove_folder(f->store, path_of(f, text, "w/empty"), &err), TARN_NOT_FOUND);
    expect_folder(f, "w", "a/ a.d/ b ");
}

/* B04, B65: names are bytes; nothing is decoded, cut or folded. */
static void check_names(fixture *f) {
    static const char *const NAMES[] = {"a b",
                                        "a%20b",
                                        "a+b",
                                        "a%2Bb",
                                        "a#b",
                                        "a?b=c",
                                        "a&b",
                                        "a%b",
                                        "a%25b",
                                        "a=b:c",
                                        "\xc3\xa4\xe2\x82\xac",
                                        "a\\b",
                                        "a'b\"c",
                                        "a*[b]",
                                        "~a",
                                        "my%23str%25col=x+y",
                                        "..a",
                                        ".a",
                                        "a;b,c",
                                        "a\tb\n",
                                        "\xff\xfe",
                                        "%2e%2e"};
    size_t n = sizeof NAMES / sizeof NAMES[0];
    tarn_error err = TARN_ERROR_INIT;
    char text[600];
    char inner[300];
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(inner, sizeof inner, "names/%s", NAMES[i]);
        assert_ok(
            store_put(f->store, path_of(f, text, inner), STORE_CREATE, str_of(NAMES[i]), &err));
    }
    listing l = {.f = f};
    assert_ok(store_list(f->store, path_of(f, text, "names"), note_path, &l, &err));
    assert_int_equal(l.count, n);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(inner, sizeof inner, "names/%s", NAMES[i]);
        expect_content(f, path_of(f, text, inner), NAMES[i]);
        assert_non_null(strstr(l.text, inner));
        assert_ok(store_remove(f->store, path_of(f, text, inner), &err));
    }
    memset(inner, 'n', 255);
    inner[255] = 0;
    assert_ok(store_put(f->store, path_of(f, text, inner), STORE_CREATE, STR("long"), &err));
    expect_content(f, path_of(f, text, inner), "long");
}

static void check_bad_paths(fixture *f) {
    tarn_error err = TARN_ERROR_INIT;
    store_stat_info info;
    char long_path[17000];
    memset(long_path, 'x', sizeof long_path);
    assert_code(store_stat(f->store, STR(""), &info, &err), TARN_INVALID);
    assert_code(store_stat(f->store, STR("/a\0b"), &info, &err), TARN_INVALID);
    assert_code(store_stat(f->store, str_make(long_path, sizeof long_path), &info, &err),
                TARN_LIMIT);
    tarn_env_cancel(f->env);
    assert_code(store_stat(f->store, STR("/a"), &info, &err), TARN_CANCELLED);
    tarn_env_cancel_reset(f->env);
}

typedef struct racer {
    fixture *f;
    int id;
    int wins, losses, others;
} racer;

static void *race(void *ctx) {
    racer *r = ctx;
    for (int i = 0; i < 60; i++) {
        char name[40];
        char text[600];
        char body[40];
        (void)snprintf(name, sizeof name, "race/v%d", i);
        (void)snprintf(body, sizeof body, "by %d", r->id);
        tarn_code code =
            store_put(r->f->store, path_of(r->f, text, name), STORE_CREATE, str_of(body), NULL);
        r->wins += code == TARN_OK;
        r->losses += code == TARN_CONFLICT;
        r->others += code != TARN_OK && code != TARN_CONFLICT;
    }
    return NULL;
}

static void check_race(fixture *f) {
    assert_true(store_traits_of(f->store) & STORE_ATOMIC_CREATE);
    pthread_t threads[4];
    racer racers[4];
    for (int i = 0; i < 4; i++) {
        racers[i] = (racer){f, i, 0, 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    int wins = 0;
    int losses = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        wins += racers[i].wins;
        losses += racers[i].losses;
        assert_int_equal(racers[i].others, 0);
    }
    assert_int_equal(wins, 60);
    assert_int_equal(losses, 180);
}

static void run_all_kinds(void (*check)(fixture *f)) {
    for (size_t i = 0; i < N_KINDS; i++) {
        fixture f;
        print_message("%s\n", KINDS[i]);
        set_up(&f, KINDS[i]);
        check(&f);
        tear_down(&f);
    }
}

#define CASE(name)                                                                                 \
    static void conforms_##name(void **state) {                                                    \
        (void)state;                                                                               \
        run_all_kinds(check_##name);                                                               \
    }
CASE(create)
CASE(later)
CASE(named_later)
CASE(ranges)
CASE(large)
CASE(abort)
CASE(list)
CASE(folders)
CASE(names)
CASE(bad_paths)
CASE(race)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conforms_create),      cmocka_unit_test(conforms_later),
        cmocka_unit_test(conforms_named_later), cmocka_unit_test(conforms_ranges),
        cmocka_unit_test(conforms_large),       cmocka_unit_test(conforms_abort),
        cmocka_unit_test(conforms_list),        cmocka_unit_test(conforms_folders),
        cmocka_unit_test(conforms_names),       cmocka_unit_test(conforms_bad_paths),
        cmocka_unit_test(conforms_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
