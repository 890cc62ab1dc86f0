/* Goal: a stream of appends is in the table exactly once whatever happens to its checkpoints:
 * notices late, twice, out of order or never, kills between the steps, a second job, a state set
 * back, expired snapshots, lost files. Method: the room alone on a table_case; a job is "killed" by
 * freeing it between two steps, and another one is opened on its state. */
#include "sink_case.h"

#include "iceberg/evolve.h"

static tarn_error err;

#define ROW1 "{\"id\":1,\"day\":1}\n"
#define ROW2 "{\"id\":2,\"day\":2}\n"
#define ROW3 "{\"id\":3,\"day\":3}\n"
#define ROW4 "{\"id\":4,\"day\":1}\n"

static void start(sink_case *t, tarn_env *env, case_kind kind) {
    sink_case_init(t, env, kind);
    case_table(&t->c, 2, "id int not null, day int", "day", NULL);
    assert_ok(sink_case_open(t, &err));
}

static void offsets_are(const sink_case *t, const char *want) {
    tarn_str offsets = sink_offsets(t->sink);
    if (want == NULL) {
        assert_null(offsets.data);
    } else {
        assert_true(str_is(offsets, want));
    }
}

static void reopen(sink_case *t) {
    sink_case_close(t);
    assert_ok(sink_case_open(t, &err));
}

static tarn_code add_column(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                            tarn_change_set *out, tarn_error *e) {
    (void)ctx;
    tarn_edit edits[2];
    memset(edits, 0, sizeof edits);
    edits[0].kind = EVOLVE_ADD_COLUMN;
    edits[0].path = STR("more");
    edits[0].type = type_primitive(TARN_STRING);
    edits[1].kind = EVOLVE_SET_PARTITION;
    edits[1].text = STR("id");
    return evolve_changes(arena, base, edits, 2, out, e);
}

static void evolve_schema(sink_case *t) {
    commit_outcome outcome;
    assert_ok(
        commit_changes(t->c.env, t->c.catalog, &t->c.ident, add_column, NULL, &outcome, &err));
    table_version_release(outcome.version);
}

static void test_checkpoints(void **state) {
    (void)state;
    for (case_kind kind = 0; kind < CASE_KINDS; kind++) {
        tarn_env *env = test_env();
        sink_case t;
        start(&t, env, kind);
        offsets_are(&t, NULL);
        assert_ok(sink_case_write(&t, ROW1 ROW2, NULL, &err));
        assert_ok(sink_case_checkpoint(&t, "{\"at\":2}", &err));
        offsets_are(&t, "{\"at\":2}");
        assert_ok(sink_case_write(&t, ROW3, NULL, &err));
        assert_ok(sink_case_checkpoint(&t, "{\"at\":3}", &err));
        sink_case_rows_are(&t, ROW1 ROW2 ROW3);
        assert_string_equal(sink_case_summary(&t, SINK_KEY_CHECKPOINT), "2");
        /* gone when the next one's sync has made durable that it is committed */
        assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 1);
        reopen(&t);
        assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 0);
        offsets_are(&t, "{\"at\":3}");
        assert_int_equal(sink_case_snapshots(&t), 2);
        assert_ok(sink_case_write(&t, ROW4, NULL, &err));
        assert_ok(sink_case_checkpoint(&t, NULL, &err));
        offsets_are(&t, "{\"at\":3}");
        assert_string_equal(sink_case_summary(&t, SINK_KEY_CHECKPOINT), "3");
        assert_string_equal(sink_case_summary(&t, SINK_KEY_EPOCH), "2");
        sink_case_close(&t);
        assert_int_equal(sink_case_count(&t, "epoch-", NULL), 1);
        assert_int_equal(sink_case_count(&t, "committed-", NULL), 1);
        case_check_files(&t.c, 0);
        sink_case_done(&t);
        test_env_done(env);
    }
}

/* Durable, then killed before the commit; durable and committed, then killed before it was noted.
 */
static void test_recovery(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    int64_t n;
    char name[128];
    start(&t, env, CASE_SQLITE_MEMORY);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_precommit(t.sink, "one", &n, &err));
    assert_int_equal(n, 1);
    assert_ok(sink_case_write(&t, ROW2, NULL, &err));
    assert_ok(sink_precommit(t.sink, "two", &n, &err));
    assert_ok(sink_case_write(&t, ROW3, NULL, &err)); /* never durable: lost with the job */
    assert_int_equal(sink_case_count(&t, "checkpoint-", name), 2);
    assert_int_equal(sink_case_snapshots(&t), 0);
    reopen(&t);
    sink_case_rows_are(&t, ROW1 ROW2);
    offsets_are(&t, "two");
    assert_int_equal(sink_case_snapshots(&t), 2);
    assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 0);
    /* As if the note of it had been lost: the same delta is in the state again. */
    assert_ok(sink_case_write(&t, ROW3, NULL, &err));
    assert_ok(sink_precommit(t.sink, "three", &n, &err));
    assert_int_equal(sink_case_count(&t, "checkpoint-", name), 1);
    char path[300];
    (void)snprintf(path, sizeof path, "%s/%s", t.state_dir, name);
    tarn_buf saved;
    buf_init(&saved, env, 0);
    assert_ok(store_get(t.c.catalog->store, str_of(path), 1 << 20, &saved, &err));
    assert_ok(sink_case_commit(&t, n, &err));
    sink_case_close(&t);
    assert_ok(store_put(t.c.catalog->store, str_of(path), STORE_CREATE, buf_str(&saved), &err));
    assert_ok(sink_case_open(&t, &err));
    assert_int_equal(sink_case_snapshots(&t), 3);
    buf_release(&saved);
    sink_case_rows_are(&t, ROW1 ROW2 ROW3);
    case_check_files(&t.c, 0);
    sink_case_done(&t);
    test_env_done(env);
}

/* The state says 2, the table has 3, whose note was lost: it is found by its number, and by its
 * commit id. */
static void test_lost_note(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    int64_t n;
    char name[128];
    char path[300];
    char note[300];
    tarn_buf delta;
    tarn_buf old;
    start(&t, env, CASE_DIR_MEMORY);
    tarn_store *store = t.c.catalog->store;
    buf_init(&delta, env, 0);
    buf_init(&old, env, 0);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, "one", &err));
    (void)snprintf(note, sizeof note, "%s/committed-00000001-000000000001", t.state_dir);
    assert_ok(store_get(store, str_of(note), 1 << 20, &old, &err));
    assert_ok(sink_case_write(&t, ROW2, NULL, &err));
    assert_ok(sink_precommit(t.sink, "two", &n, &err));
    (void)sink_case_count(&t, "checkpoint-", name);
    (void)snprintf(path, sizeof path, "%s/%s", t.state_dir, name);
    assert_ok(store_get(store, str_of(path), 1 << 20, &delta, &err));
    assert_ok(sink_case_commit(&t, n, &err));
    sink_case_close(&t);
    assert_ok(store_put(store, str_of(path), STORE_REPLACE, buf_str(&delta), &err));
    assert_ok(store_put(store, str_of(note), STORE_REPLACE, buf_str(&old), &err));
    (void)snprintf(note, sizeof note, "%s/committed-00000001-000000000002", t.state_dir);
    assert_ok(store_remove(store, str_of(note), &err));
    assert_ok(sink_case_open(&t, &err));
    offsets_are(&t, "two");
    assert_int_equal(sink_case_snapshots(&t), 2);
    sink_case_rows_are(&t, ROW1 ROW2);
    buf_release(&delta);
    buf_release(&old);
    sink_case_done(&t);
    test_env_done(env);
}

/* A note that a power cut left torn is passed over where its delta is there; else it is damage. */
static void test_torn_note(void **state) {
    (void)state;
    tarn_env *env = test_env();
    for (int there = 0; there < 2; there++) {
        sink_case t;
        int64_t n;
        char name[128];
        char path[300];
        tarn_buf delta;
        start(&t, env, CASE_SQLITE_MEMORY);
        tarn_store *store = t.c.catalog->store;
        buf_init(&delta, env, 0);
        assert_ok(sink_case_write(&t, ROW1, NULL, &err));
        assert_ok(sink_precommit(t.sink, "one", &n, &err));
        (void)sink_case_count(&t, "checkpoint-", name);
        (void)snprintf(path, sizeof path, "%s/%s", t.state_dir, name);
        assert_ok(store_get(store, str_of(path), 1 << 20, &delta, &err));
        assert_ok(sink_case_commit(&t, n, &err));
        sink_case_close(&t);
        if (there) {
            assert_ok(store_put(store, str_of(path), STORE_REPLACE, buf_str(&delta), &err));
        }
        (void)snprintf(path, sizeof path, "%s/committed-00000001-000000000001", t.state_dir);
        assert_ok(store_put(store, str_of(path), STORE_REPLACE, STR("tarn-sink 1 0"), &err));
        assert_code(sink_case_open(&t, &err), there ? TARN_OK : TARN_CORRUPT);
        if (there) {
            offsets_are(&t, "one");
            assert_int_equal(sink_case_snapshots(&t), 1);
        }
        buf_release(&delta);
        sink_case_done(&t);
    }
    test_env_done(env);
}

/* Several that wait are one swap, and a snapshot each, as if they had been committed alone. */
static void test_chain(void **state) {
    (void)state;
    for (case_kind kind = 0; kind < CASE_KINDS; kind++) {
        tarn_env *env = test_env();
        sink_case t;
        int64_t n;
        sink_case_init(&t, env, kind);
        case_table(&t.c, 2 + (int)kind % 2, "id int not null, day int", "day", NULL);
        assert_ok(sink_case_open(&t, &err));
        assert_ok(sink_case_write(&t, ROW1, NULL, &err));
        assert_ok(sink_precommit(t.sink, "one", &n, &err));
        assert_ok(sink_case_write(&t, ROW2, NULL, &err));
        assert_ok(sink_precommit(t.sink, "two", &n, &err));
        assert_ok(sink_precommit(t.sink, "nothing", &n, &err));
        assert_ok(sink_case_write(&t, ROW3, NULL, &err));
        assert_ok(sink_precommit(t.sink, "three", &n, &err));
        assert_ok(sink_case_write(&t, ROW4, NULL, &err));
        assert_ok(sink_precommit(t.sink, "four", &n, &err));
        assert_ok(sink_case_commit(&t, n, &err));
        offsets_are(&t, "four");
        assert_int_equal(sink_case_snapshots(&t), 4);
        sink_case_rows_are(&t, ROW1 ROW2 ROW3 ROW4);
        tarn_table_version *version = case_load(&t.c);
        const tarn_metadata *m = version->metadata;
        for (int32_t i = 0; i < 4; i++) {
            const tarn_snapshot *s = m->snapshots[i];
            assert_int_equal(s->sequence_number, i + 1);
            assert_int_equal(s->first_row_id, m->format_version > 2 ? i : -1);
            assert_true(i == 0 ? s->parent_id == TARN_NO_SNAPSHOT
                               : s->parent_id == m->snapshots[i - 1]->snapshot_id);
        }
        table_version_release(version);
        assert_string_equal(sink_case_summary(&t, SINK_KEY_CHECKPOINT), "5");
        assert_string_equal(sink_case_summary(&t, "total-records"), "4");
        case_check_files(&t.c, 0);
        sink_case_done(&t);
        test_env_done(env);
    }
}

static void test_notices(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    int64_t n[3];
    start(&t, env, CASE_SQLITE_MEMORY);
    static const char *const rows[] = {ROW1, ROW2, ROW3};
    for (int i = 0; i < 3; i++) { /* the first notice never comes, the second one late */
        assert_ok(sink_case_write(&t, rows[i], NULL, &err));
        assert_ok(sink_precommit(t.sink, rows[i], &n[i], &err));
    }
    assert_ok(sink_case_commit(&t, n[1], &err));
    assert_int_equal(sink_case_snapshots(&t), 2);
    sink_case_rows_are(&t, ROW1 ROW2);
    offsets_are(&t, ROW2);
    assert_ok(sink_case_commit(&t, n[1], &err)); /* twice */
    assert_ok(sink_case_commit(&t, n[0], &err)); /* out of order */
    assert_int_equal(sink_case_snapshots(&t), 2);
    assert_ok(sink_case_commit(&t, n[2] + 100, &err)); /* of a checkpoint that never was */
    assert_int_equal(sink_case_snapshots(&t), 3);
    sink_case_rows_are(&t, ROW1 ROW2 ROW3);
    sink_case_done(&t);
    test_env_done(env);
}

/* Another system decides what is complete: what came after is dropped, and its files too. */
static void test_restore_point(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    int64_t n;
    start(&t, env, CASE_SQLITE_MEMORY);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_precommit(t.sink, "one", &n, &err));
    assert_ok(sink_case_write(&t, ROW2, NULL, &err));
    assert_ok(sink_precommit(t.sink, "two", &n, &err));
    sink_case_close(&t);
    t.options.hold = true;
    t.options.complete = 1;
    assert_ok(sink_case_open(&t, &err));
    sink_case_rows_are(&t, ROW1);
    offsets_are(&t, "one");
    assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 0);
    case_check_files(&t.c, 0);
    assert_ok(sink_case_write(&t, ROW2, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, "two again", &err));
    sink_case_rows_are(&t, ROW1 ROW2);
    sink_case_done(&t);
    test_env_done(env);
}

static void test_two_jobs(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    sink_case other;
    int64_t n;
    start(&t, env, CASE_SQLITE_MEMORY);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_precommit(t.sink, "one", &n, &err));
    other = t;
    other.sink = NULL;
    assert_ok(sink_case_open(&other, &err)); /* adopts and commits what the first had */
    sink_case_rows_are(&t, ROW1);
    offsets_are(&other, "one");
    assert_ok(sink_case_commit(&t, n, &err)); /* it is in the table, whoever put it there */
    assert_int_equal(sink_case_snapshots(&t), 1);
    assert_ok(sink_case_write(&t, ROW2, NULL, &err));
    assert_code(sink_case_checkpoint(&t, "old two", &err), TARN_DENIED);
    assert_non_null(strstr(err.message, "taken over"));
    assert_ok(sink_case_write(&other, ROW3, NULL, &err));
    assert_ok(sink_case_checkpoint(&other, "new two", &err));
    sink_case_rows_are(&t, ROW1 ROW3);
    sink_case_close(&other);
    sink_case_close(&t);
    /* What the fenced job left is shadowed by the number that the newer one committed. */
    assert_ok(sink_case_open(&t, &err));
    sink_case_rows_are(&t, ROW1 ROW3);
    offsets_are(&t, "new two");
    assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 0);
    sink_case_done(&t);
    test_env_done(env);
}

/* Its state as it is, in another folder: of the same sink. */
static void copy_state(const sink_case *t, sink_case *other) {
    static const char *const names[] = {"sink", "epoch-00000001",
                                        "committed-00000001-000000000001"};
    char path[300];
    char to[300];
    *other = *t;
    other->sink = NULL;
    (void)snprintf(other->state_dir, sizeof other->state_dir, "%s/copy", t->c.folder);
    other->options.state_dir = str_of(other->state_dir);
    for (int i = 0; i < 3; i++) {
        tarn_buf bytes;
        buf_init(&bytes, t->c.env, 0);
        (void)snprintf(path, sizeof path, "%s/%s", t->state_dir, names[i]);
        (void)snprintf(to, sizeof to, "%s/%s", other->state_dir, names[i]);
        assert_ok(store_get(t->c.catalog->store, str_of(path), 1 << 20, &bytes, &err));
        assert_ok(store_put(t->c.catalog->store, str_of(to), STORE_CREATE, buf_str(&bytes), &err));
        buf_release(&bytes);
    }
}

/* A copied state: the folders are not one, so the table's summaries tell. */
static void test_copied_state(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    sink_case other;
    start(&t, env, CASE_DIR_MEMORY);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, "one", &err));
    copy_state(&t, &other);
    assert_ok(sink_case_open(&other, &err));
    assert_ok(sink_case_write(&other, ROW2, NULL, &err));
    assert_ok(sink_case_checkpoint(&other, "two", &err));
    assert_ok(sink_case_write(&t, ROW3, NULL, &err));
    assert_code(sink_case_checkpoint(&t, "other two", &err), TARN_DENIED);
    sink_case_rows_are(&t, ROW1 ROW2);
    sink_case_close(&other);
    sink_case_done(&t);
    test_env_done(env);
}

/* Two jobs that both began on a state and its copy before either committed: they have one number.
 */
static void test_copied_state_at_once(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    sink_case other;
    start(&t, env, CASE_DIR_MEMORY);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, "one", &err));
    sink_case_close(&t);
    copy_state(&t, &other);
    assert_ok(sink_case_open(&t, &err));
    assert_ok(sink_case_open(&other, &err));
    assert_ok(sink_case_write(&t, ROW2, NULL, &err));
    assert_ok(sink_case_write(&other, ROW2, NULL, &err));
    assert_ok(sink_case_checkpoint(&other, "two", &err));
    assert_code(sink_case_checkpoint(&t, "two", &err), TARN_DENIED);
    assert_non_null(strstr(err.message, "elsewhere"));
    sink_case_rows_are(&t, ROW1 ROW2);
    sink_case_close(&other);
    sink_case_done(&t);
    test_env_done(env);
}

static void test_foreign_state(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    char path[300];
    start(&t, env, CASE_SQLITE_MEMORY);
    sink_case_close(&t);
    t.options.sink_id = STR("somebody");
    assert_code(sink_case_open(&t, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "of sink"));
    t.options.sink_id = STR_NULL;
    t.options.branch = STR("audit");
    assert_code(sink_case_open(&t, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "branch"));
    t.options.branch = STR_NULL;
    t.c.ident.name = STR("other");
    case_table(&t.c, 2, "id int not null, day int", "day", NULL);
    assert_code(sink_case_open(&t, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "uuid"));
    t.c.ident.name = STR("t");
    (void)snprintf(path, sizeof path, "%s/sink", t.state_dir);
    static const char *const bad[] = {"",
                                      "tarn-sink",
                                      "tarn-sink 1 00000000 2\n{}",
                                      "tarn-sink 1 00000000 3\n{}",
                                      "tarn-sink 2 0 2\n{}",
                                      "{\"sink-id\":1}\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_ok(store_put(t.c.catalog->store, str_of(path), STORE_REPLACE, str_of(bad[i]), &err));
        tarn_code code = sink_case_open(&t, &err);
        assert_true(code == TARN_CORRUPT || code == TARN_UNSUPPORTED);
        assert_non_null(strstr(err.message, path));
    }
    sink_case_done(&t);
    test_env_done(env);
}

/* Every byte of a delta that changes is noticed. */
static void test_damaged_delta(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    int64_t n;
    char name[128];
    char path[300];
    tarn_buf bytes;
    start(&t, env, CASE_SQLITE_MEMORY);
    buf_init(&bytes, env, 0);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_precommit(t.sink, "one", &n, &err));
    (void)sink_case_count(&t, "checkpoint-", name);
    (void)snprintf(path, sizeof path, "%s/%s", t.state_dir, name);
    assert_ok(store_get(t.c.catalog->store, str_of(path), 1 << 20, &bytes, &err));
    sink_case_close(&t);
    for (size_t i = 0; i < bytes.len; i += test_every() ? 1 : 17) {
        bytes.data[i] ^= 4;
        assert_ok(
            store_put(t.c.catalog->store, str_of(path), STORE_REPLACE, buf_str(&bytes), &err));
        tarn_code code = sink_case_open(&t, &err);
        assert_true(code == TARN_CORRUPT || code == TARN_UNSUPPORTED);
        assert_non_null(strstr(err.message, name));
        bytes.data[i] ^= 4;
    }
    assert_ok(store_put(t.c.catalog->store, str_of(path), STORE_REPLACE, buf_str(&bytes), &err));
    assert_ok(sink_case_open(&t, &err));
    sink_case_rows_are(&t, ROW1);
    buf_release(&bytes);
    sink_case_done(&t);
    test_env_done(env);
}

static void test_missing_files(void **state) { /* B37 */
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    int64_t n;
    start(&t, env, CASE_SQLITE_MEMORY);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, "one", &err));
    assert_ok(sink_case_write(&t, ROW2, NULL, &err));
    assert_ok(sink_precommit(t.sink, "two", &n, &err));
    sink_case_close(&t);
    case_files files;
    tarn_table_version *version = case_load(&t.c);
    case_files_init(&t.c, &files);
    case_name_snapshot(&t.c, &files, version->metadata,
                       metadata_current_snapshot(version->metadata));
    assert_ok(store_list(t.c.catalog->store, version->metadata->location, case_find, &files, &err));
    tarn_str lost = STR_NULL;
    for (size_t i = 0; i < files.found.count; i++) {
        tarn_str path = files.found.entries[i].key;
        if (str_ends_with(path, STR(".parquet")) && map_find(&files.named, path) == NULL) {
            lost = path;
        }
    }
    assert_non_null(lost.data);
    assert_ok(store_remove(t.c.catalog->store, lost, &err));
    assert_code(sink_case_open(&t, &err), TARN_NOT_FOUND);
    assert_non_null(strstr(err.message, "checkpoint-"));
    char name[128];
    (void)snprintf(name, sizeof name, "%.*s", (int)lost.len, lost.data);
    assert_non_null(strstr(err.message, strrchr(name, '/')));
    arena_release(&files.arena);
    table_version_release(version);
    sink_case_rows_are(&t, ROW1);
    sink_case_done(&t);
    test_env_done(env);
}

static void test_empty(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    sink_case_init(&t, env, CASE_SQLITE_MEMORY);
    case_table(&t.c, 2, "id int not null, day int", "day", NULL);
    t.options.empty_every = 3;
    assert_ok(sink_case_open(&t, &err));
    for (int i = 1; i <= 7; i++) {
        char offsets[16];
        (void)snprintf(offsets, sizeof offsets, "%d", i);
        assert_ok(sink_case_checkpoint(&t, offsets, &err));
        offsets_are(&t, offsets);
        assert_int_equal(sink_case_snapshots(&t), i / 3);
    }
    assert_string_equal(sink_case_summary(&t, SINK_KEY_CHECKPOINT), "6");
    reopen(&t);
    offsets_are(&t, "7");
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, NULL, &err));
    assert_string_equal(sink_case_summary(&t, SINK_KEY_CHECKPOINT), "8");
    sink_case_done(&t);
    test_env_done(env);
}

static void test_replace_partitions(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    sink_case_init(&t, env, CASE_SQLITE_MEMORY);
    case_table(&t.c, 2, "id int not null, day int", "day", NULL);
    t.options.append = COMMIT_REPLACE_PARTITIONS;
    assert_ok(sink_case_open(&t, &err));
    assert_ok(sink_case_write(&t, ROW1 ROW2, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, NULL, &err));
    assert_ok(sink_case_write(&t, ROW4, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, NULL, &err));
    sink_case_rows_are(&t, ROW2 ROW4);
    sink_case_done(&t);
    test_env_done(env);
}

/* Others change the table meanwhile: the sink goes on with the new columns and partitions; a table
 * that is gone, or another under its name, is told. */
static void test_changed_table(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    start(&t, env, CASE_SQLITE_MEMORY);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    evolve_schema(&t);
    assert_ok(sink_case_checkpoint(&t, "one", &err)); /* written for the schema before */
    assert_ok(sink_case_write(&t, "{\"id\":2,\"day\":2,\"more\":\"x\"}\n", NULL, &err));
    assert_ok(sink_case_checkpoint(&t, "two", &err));
    sink_case_rows_are(&t, "{\"id\":1,\"day\":1,\"more\":null}\n"
                           "{\"id\":2,\"day\":2,\"more\":\"x\"}\n");
    assert_ok(catalog_drop(t.c.catalog, &t.c.ident, &err));
    assert_ok(sink_case_write(&t, ROW3, NULL, &err));
    assert_code(sink_case_checkpoint(&t, "three", &err), TARN_NOT_FOUND);
    case_table(&t.c, 2, "id int not null, day int", "day", NULL);
    assert_code(sink_case_commit(&t, 3, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "uuid"));
    sink_case_close(&t);
    assert_code(sink_case_open(&t, &err), TARN_INVALID);
    sink_case_rows_are(&t, "");
    sink_case_done(&t);
    test_env_done(env);
}

static void test_many_writers(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    tarn_buf rows;
    sink_case_init(&t, env, CASE_SQLITE_MEMORY);
    case_table(&t.c, 2, "id int not null, day int", "day", NULL);
    t.options.writers = 4;
    assert_ok(sink_case_open(&t, &err));
    buf_init(&rows, env, 0);
    for (int i = 0; i < 60; i++) {
        char row[64];
        (void)snprintf(row, sizeof row, "{\"id\":%d,\"day\":%d}\n", i, i % 3);
        assert_ok(buf_append_str(&rows, str_of(row), &err));
        assert_ok(sink_case_write(&t, row, NULL, &err));
        if (i % 20 == 19) {
            assert_ok(sink_case_checkpoint(&t, NULL, &err));
        }
    }
    assert_ok(buf_append_char(&rows, '\0', &err));
    sink_case_rows_are(&t, (const char *)rows.data);
    assert_int_equal(sink_case_snapshots(&t), 3);
    case_check_files(&t.c, 0);
    buf_release(&rows);
    sink_case_done(&t);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_lost_note),
        cmocka_unit_test(test_torn_note),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_notices),
        cmocka_unit_test(test_restore_point),
        cmocka_unit_test(test_two_jobs),
        cmocka_unit_test(test_copied_state),
        cmocka_unit_test(test_copied_state_at_once),
        cmocka_unit_test(test_foreign_state),
        cmocka_unit_test(test_damaged_delta),
        cmocka_unit_test(test_missing_files),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_replace_partitions),
        cmocka_unit_test(test_many_writers),
        cmocka_unit_test(test_changed_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
