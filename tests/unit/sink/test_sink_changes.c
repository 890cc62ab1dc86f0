/* Goal: a table fed by changes or upserts holds exactly the last row of each key, for every kind of
 * deletes, any number of writers, partitions, checkpoints and kills, also where checkpoints are
 * committed behind the stream. Method: random streams over few keys beside a model in memory; the
 * table is read by our own scan after every checkpoint, or, behind the stream, where that stands
 * still. Single rules (B14, null keys, ...) have tests of their own. */
#include "sink_case.h"

#include "dml/dml.h"

#include <stdlib.h>

static tarn_error err;

#define KEYS   24
#define ROUNDS 60

typedef struct model {
    bool there[KEYS];
    int32_t value[KEYS];
} model;

typedef struct stream {
    sink_case t;
    model now, durable;
    uint64_t chance;
    int32_t next_value;
    bool upsert;
    const char *other; /* kind of deletes that jobs take by turns with the first; NULL: none */
    model models[ROUNDS + 1]; /* behind: after each checkpoint, whose number is the offset */
    int pushed;
} stream;

static uint32_t draw(stream *s, uint32_t below) {
    s->chance = s->chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->chance >> 33) % below;
}

static void put_row(char *lines, int32_t id, int32_t value) {
    size_t len = strlen(lines);
    (void)snprintf(lines + len, 8000 - len, "{\"id\":%d,\"day\":%d,\"v\":%d}\n", (int)id,
                   (int)value % 3, (int)value);
}

/* One change of a key, as one or two rows. */
static size_t change(stream *s, char *lines, uint8_t *kinds, size_t n) {
    int32_t id = (int32_t)draw(s, KEYS);
    model *m = &s->now;
    bool remove = draw(s, 4) == 0;
    if (remove && (m->there[id] || s->upsert)) {
        kinds[n++] = TARN_ROW_DELETE;
        put_row(lines, id, m->there[id] ? m->value[id] : 0);
        m->there[id] = false;
        return n;
    }
    if (m->there[id] && !s->upsert) {
        if (draw(s, 3) != 0) { /* else the old row does not come */
            kinds[n++] = TARN_ROW_UPDATE_BEFORE;
            put_row(lines, id, m->value[id]);
        }
        kinds[n++] = TARN_ROW_UPDATE_AFTER;
    } else {
        kinds[n++] = TARN_ROW_INSERT;
    }
    m->there[id] = true;
    m->value[id] = s->next_value++;
    put_row(lines, id, m->value[id]);
    return n;
}

static tarn_code write_some(stream *s) {
    char lines[8000] = "";
    uint8_t kinds[64];
    size_t n = 0;
    for (uint32_t i = draw(s, 20) + 1; i > 0; i--) {
        n = change(s, lines, kinds, n);
    }
    return sink_case_write(&s->t, lines, kinds, &err);
}

static void check(stream *s) {
    char lines[8000] = "";
    for (int32_t id = 0; id < KEYS; id++) {
        if (s->durable.there[id]) {
            put_row(lines, id, s->durable.value[id]);
        }
    }
    sink_case_rows_are(&s->t, lines);
}

/* Others rewrite the table: all of its rows in new files. */
static void compact(stream *s) {
    tarn_arena arena;
    tarn_plan *plan = NULL;
    tarn_scan *scan = NULL;
    data_writer *writer = NULL;
    data_writer_options options;
    write_result written;
    commit_request request;
    commit_outcome outcome;
    table_case *c = &s->t.c;
    arena_init(&arena, c->env);
    memset(&options, 0, sizeof options);
    memset(&written, 0, sizeof written);
    memset(&request, 0, sizeof request);
    tarn_table_version *version = case_load(c);
    scan_options scan_opts = case_scan_options();
    scan_opts.metadata = version->metadata;
    options.metadata = version->metadata;
    assert_ok(plan_new(c->env, c->catalog->store, &scan_opts, &plan, &err));
    assert_ok(scan_open(plan, &scan, &err));
    assert_ok(data_writer_new(c->env, c->catalog->store, &options, &writer, &err));
    for (;;) {
        tarn_batch batch;
        memset(&batch, 0, sizeof batch);
        assert_ok(scan_next(scan, &batch, &err));
        if (batch_rows(&batch) == 0) {
            batch_release(&batch);
            break;
        }
        assert_ok(data_writer_write(writer, &batch, &err));
        batch_release(&batch);
    }
    assert_ok(data_writer_close(writer, &arena, &written, &err));
    tarn_entry *removed = ARENA_ARRAY(&arena, tarn_entry, (size_t)plan->n_tasks + 1);
    for (int64_t i = 0; i < plan->n_tasks; i++) {
        removed[i].file = plan->tasks[i].file;
        removed[i].sequence_number = plan->tasks[i].sequence_number;
    }
    request.kind = COMMIT_OVERWRITE;
    request.added = written.files;
    request.n_added = written.n_files;
    request.removed = removed;
    request.n_removed = (int32_t)plan->n_tasks;
    request.from_snapshot_id = version->metadata->current_snapshot_id;
    if (plan->n_tasks > 0) {
        tarn_code code = commit_run(c->env, c->catalog, &c->ident, NULL, &request, &outcome, &err);
        table_version_release(outcome.version);
        if (!s->t.options.background || code != TARN_CONFLICT) { /* else deletes came first */
            assert_code(code, TARN_OK);
        }
    }
    data_writer_free(writer);
    scan_close(scan);
    plan_free(plan);
    table_version_release(version);
    arena_release(&arena);
}

/* Others move rows: an update that leaves marks at their places, and writes them as they were. */
static void move_some(stream *s) {
    tarn_arena arena;
    char text[32];
    dml_options options;
    dml_result result;
    table_case *c = &s->t.c;
    arena_init(&arena, c->env);
    memset(&options, 0, sizeof options);
    memset(&result, 0, sizeof result);
    options.merge_on_read = true;
    (void)snprintf(text, sizeof text, "id < %u", draw(s, KEYS));
    assert_ok(expr_parse(&arena, str_of(text), &options.filter, &err));
    tarn_code code =
        dml_update(c->env, c->catalog, &c->ident, &options, STR("v = v"), &result, &err);
    if (!s->t.options.background || code != TARN_CONFLICT) { /* else the stream was faster */
        assert_code(code, TARN_OK);
    }
    table_version_release(result.outcome.version);
    arena_release(&arena);
}

/* Somebody beside the stream. */
static void interfere(stream *s) {
    if (draw(s, 2) == 0) {
        compact(s);
    } else {
        move_some(s);
    }
}

static void swap_kinds(stream *s) {
    if (s->other != NULL && draw(s, 2) == 0) {
        tarn_str next = str_of(s->other);
        s->other = s->t.options.deletes.data;
        s->t.options.deletes = next;
    }
}

/* The end of a checkpoint: committed, or durable and killed, or killed before. */
static void checkpoint(stream *s) {
    int64_t n;
    uint32_t what = draw(s, 10);
    if (what == 0) {
        sink_case_close(&s->t);
        s->now = s->durable;
        assert_ok(sink_case_open(&s->t, &err));
    } else if (what == 1) {
        assert_ok(sink_precommit(s->t.sink, "x", &n, &err));
        sink_case_close(&s->t);
        assert_ok(sink_case_open(&s->t, &err));
        s->durable = s->now;
    } else {
        if (what == 2) { /* in the middle: positions that were found are of no use any more */
            interfere(s);
        }
        tarn_code code = sink_case_checkpoint(&s->t, "x", &err);
        if (code == TARN_CONFLICT) {
            assert_int_equal(what, 2);
            assert_code(sink_case_checkpoint(&s->t, "x", &err), TARN_CONFLICT);
            assert_non_null(strstr(err.message, "opened again"));
            sink_case_close(&s->t);
            s->now = s->durable;
            assert_ok(sink_case_open(&s->t, &err));
        } else {
            assert_code(code, TARN_OK);
            s->durable = s->now;
        }
    }
    check(s);
    if (draw(s, 8) == 0) {
        interfere(s);
        check(s);
    }
    if (draw(s, 6) == 0 || s->other != NULL) {
        sink_case_close(&s->t);
        swap_kinds(s);
        assert_ok(sink_case_open(&s->t, &err));
    }
}

/* ---- behind the stream ---- */

static int offset_of(stream *s) {
    tarn_buf text;
    bool has = false;
    buf_init(&text, s->t.c.env, 0);
    assert_ok(sink_read_offsets(s->t.sink, &text, &has, &err));
    assert_ok(buf_append_char(&text, '\0', &err));
    int at = has ? atoi((const char *)text.data) : 0;
    buf_release(&text);
    return at;
}

/* What was on its way is in the table up to some checkpoint, and the stream goes on from there. */
static void go_back(stream *s) {
    sink_case_close(&s->t);
    swap_kinds(s);
    assert_ok(sink_case_open(&s->t, &err));
    int at = offset_of(s);
    assert_true(at <= s->pushed);
    s->pushed = at;
    s->now = s->durable = s->models[at];
    check(s);
}

static void flush(stream *s) {
    sink_progress progress;
    tarn_code code = sink_flush(s->t.sink, &progress, &err);
    table_version_release(progress.commit.version);
    if (code != TARN_OK) {
        assert_code(code, TARN_CONFLICT);
        go_back(s);
        return;
    }
    assert_int_equal(offset_of(s), s->pushed);
    s->durable = s->models[s->pushed];
    check(s);
}

static tarn_code push(stream *s) {
    char offset[16];
    (void)snprintf(offset, sizeof offset, "%d", s->pushed + 1);
    s->models[s->pushed + 1] = s->now;
    tarn_code code = sink_push(s->t.sink, offset, &err);
    s->pushed++;
    return code;
}

static void run_behind(stream *s) {
    int rounds = test_every() ? ROUNDS : 12;
    for (int i = 0; i < rounds; i++) {
        tarn_code code = TARN_OK;
        for (uint32_t b = draw(s, 4); b > 0 && code == TARN_OK; b--) {
            code = write_some(s);
        }
        uint32_t what = draw(s, 12);
        if (what < 2) { /* while commits are under way, and rows of the next are */
            interfere(s);
        }
        code = code == TARN_OK ? push(s) : code;
        if (code != TARN_OK || what == 3) {
            assert_true(code == TARN_OK || code == TARN_CONFLICT);
            go_back(s);
        } else if (what > 8) {
            flush(s);
        }
    }
    flush(s);
}

/* The same table goes on, with commits behind the stream. */
static void go_behind(stream *s) {
    sink_case_close(&s->t);
    s->t.options.background = true;
    s->models[0] = s->now = s->durable;
    assert_ok(sink_case_open(&s->t, &err));
    run_behind(s);
}

static void open_stream(stream *s, tarn_env *env, int32_t version, const char *deletes,
                        const char *partition_by, int32_t writers, bool upsert) {
    static const tarn_str key = {"id", 2};
    memset(s, 0, sizeof *s);
    s->upsert = upsert;
    s->chance =
        (uint64_t)version * 77 + (uint64_t)writers * 31 + (upsert ? 7 : 0) + (uint64_t)deletes[0];
    sink_case_init(&s->t, env, CASE_SQLITE_FILE);
    case_table(&s->t.c, version, "id int not null, day int, v int", partition_by, NULL);
    s->t.options.key = &key;
    s->t.options.n_key = 1;
    s->t.options.changes = true;
    s->t.options.upsert = upsert;
    s->t.options.deletes = str_of(deletes);
    s->t.options.writers = writers;
    s->t.options.memory_bytes = 16 << 20;
    assert_ok(sink_case_open(&s->t, &err));
}

static void run_stream(int32_t version, const char *deletes, const char *partition_by,
                       int32_t writers, bool upsert) {
    tarn_env *env = test_env();
    stream *s = malloc(sizeof *s);
    open_stream(s, env, version, deletes, partition_by, writers, upsert);
    int rounds = test_every() ? ROUNDS : 12;
    for (int i = 0; i < rounds; i++) {
        for (uint32_t b = draw(s, 4); b > 0; b--) {
            assert_ok(write_some(s));
        }
        checkpoint(s);
    }
    check(s);
    go_behind(s);
    sink_case_done(&s->t);
    free(s);
    test_env_done(env);
}

static void test_equality(void **state) {
    (void)state;
    for (int32_t version = 2; version <= 3; version++) {
        for (int32_t writers = 1; writers <= 3; writers += 2) {
            run_stream(version, "equality", NULL, writers, true);
            run_stream(version, "equality", NULL, writers, false);
            run_stream(version, "equality", "bucket(4, id)", writers, true);
        }
    }
}

static void test_position(void **state) {
    (void)state;
    for (int32_t writers = 1; writers <= 3; writers += 2) {
        run_stream(2, "position", NULL, writers, true);
        run_stream(2, "position", "day", writers, false);
    }
}

static void test_vector(void **state) {
    (void)state;
    for (int32_t writers = 1; writers <= 3; writers += 2) {
        run_stream(3, "vector", NULL, writers, true);
        run_stream(3, "vector", "day", writers, false);
    }
}

static void run_kinds(int32_t version, const char *deletes, const char *other, int32_t writers,
                      bool upsert) {
    tarn_env *env = test_env();
    stream *s = malloc(sizeof *s);
    open_stream(s, env, version, deletes, NULL, writers, upsert);
    s->other = other;
    int rounds = test_every() ? 60 : 12;
    for (int i = 0; i < rounds; i++) {
        assert_ok(write_some(s));
        assert_ok(write_some(s));
        checkpoint(s);
    }
    go_behind(s);
    sink_case_done(&s->t);
    free(s);
    test_env_done(env);
}

/* Jobs of one state go from one kind of deletes to another and back: an index that stands for an
 * older snapshot is brought to the head, whatever deleted rows in between. */
static void test_kinds(void **state) {
    (void)state;
    for (int32_t writers = 1; writers <= 3; writers += 2) {
        run_kinds(2, "position", "equality", writers, true);
        run_kinds(2, "equality", "position", writers, false);
        run_kinds(3, "vector", "equality", writers, true);
        run_kinds(3, "equality", "vector", writers, false);
    }
}

/* B14: within one checkpoint, and with more keys than memory holds. */
static void test_one_checkpoint(void **state) {
    (void)state;
    static const char *const deletes[] = {"equality", "position"};
    for (int i = 0; i < 2; i++) {
        tarn_env *env = test_env();
        stream *s = malloc(sizeof *s);
        open_stream(s, env, 2, deletes[i], NULL, 1, true);
        static const uint8_t kinds[] = {TARN_ROW_INSERT, TARN_ROW_INSERT, TARN_ROW_DELETE,
                                        TARN_ROW_INSERT, TARN_ROW_INSERT};
        assert_ok(sink_case_write(&s->t,
                                  "{\"id\":1,\"v\":1}\n{\"id\":2,\"v\":1}\n{\"id\":2,\"v\":1}\n"
                                  "{\"id\":3,\"v\":1}\n{\"id\":1,\"v\":2}\n",
                                  kinds, &err));
        assert_ok(sink_case_write(&s->t, "{\"id\":3,\"v\":2}\n", NULL, &err));
        assert_ok(sink_case_checkpoint(&s->t, NULL, &err));
        sink_case_rows_are(&s->t,
                           "{\"id\":1,\"day\":null,\"v\":2}\n{\"id\":3,\"day\":null,\"v\":2}\n");
        assert_int_equal(sink_case_snapshots(&s->t), 1);
        sink_case_done(&s->t);
        free(s);
        test_env_done(env);
    }
}

static void write_many(sink_case *t, int from, int to, int v) {
    tarn_buf lines;
    buf_init(&lines, t->c.env, 0);
    for (int i = from; i < to; i++) {
        assert_ok(buf_printf(&lines, &err, "{\"id\":%d,\"v\":%d}\n", i, v));
        if (i % 8192 == 8191 || i == to - 1) {
            assert_ok(buf_append_char(&lines, '\0', &err));
            assert_ok(sink_case_write(t, (const char *)lines.data, NULL, &err));
            buf_reset(&lines);
        }
    }
    buf_release(&lines);
}

static int64_t count_rows(sink_case *t, const char *where) {
    tarn_buf out;
    scan_options options = case_scan_options();
    buf_init(&out, t->c.env, 0);
    assert_ok(case_scan(&t->c, &options, where, &out, NULL, &err));
    int64_t rows = 0;
    for (size_t i = 0; i < out.len; i++) {
        rows += out.data[i] == '\n' ? 1 : 0;
    }
    buf_release(&out);
    return rows;
}

static void test_many_keys(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    static const tarn_str key = {"id", 2};
    sink_case_init(&t, env, CASE_SQLITE_FILE);
    case_table(&t.c, 2, "id int not null, v int", NULL, NULL);
    t.options.key = &key;
    t.options.n_key = 1;
    t.options.upsert = true;
    t.options.deletes = STR("equality");
    t.options.memory_bytes = 8 << 20; /* the keys alone take more than their part of it */
    assert_ok(sink_case_open(&t, &err));
    write_many(&t, 0, 120000, 1);
    assert_true(sink_case_count(&t, "scratch-", NULL) == 1);
    write_many(&t, 0, 100, 2);
    assert_ok(sink_case_checkpoint(&t, NULL, &err));
    assert_int_equal(sink_case_snapshots(&t), 1);
    assert_int_equal(count_rows(&t, NULL), 120000);
    assert_int_equal(count_rows(&t, "v = 2"), 100);
    sink_case_done(&t);
    /* Without a place to spill to, the limit is told. */
    sink_case_init(&t, env, CASE_SQLITE_FILE);
    case_table(&t.c, 2, "id int not null, v int", NULL, NULL);
    t.options.key = &key;
    t.options.n_key = 1;
    t.options.upsert = true;
    t.options.deletes = STR("equality");
    t.options.memory_bytes = 1 << 20;
    t.options.state_dir = STR_NULL;
    assert_ok(sink_case_open(&t, &err));
    tarn_buf lines;
    buf_init(&lines, env, 0);
    for (int i = 0; i < 60000; i++) {
        assert_ok(buf_printf(&lines, &err, "{\"id\":%d,\"v\":1}\n", i));
    }
    assert_ok(buf_append_char(&lines, '\0', &err));
    assert_code(sink_case_write(&t, (const char *)lines.data, NULL, &err), TARN_LIMIT);
    assert_non_null(strstr(err.message, "state folder"));
    buf_release(&lines);
    sink_case_done(&t);
    test_env_done(env);
}

static tarn_code try_open(sink_case *t, const char *key, const char *deletes) {
    static tarn_str name;
    name = str_of(key);
    t->options.key = key != NULL ? &name : NULL;
    t->options.n_key = key != NULL ? 1 : 0;
    t->options.deletes = str_of(deletes);
    t->options.upsert = true;
    tarn_code code = sink_case_open(t, &err);
    sink_case_close(t);
    return code;
}

static void test_refusals(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    sink_case_init(&t, env, CASE_SQLITE_FILE);
    case_table(&t.c, 2, "id int not null, f double, day int, s struct<x: int>", "day", NULL);
    assert_code(try_open(&t, NULL, "equality"), TARN_INVALID);
    assert_non_null(strstr(err.message, "identifier"));
    assert_code(try_open(&t, "nope", "equality"), TARN_INVALID);
    assert_code(try_open(&t, "f", "equality"), TARN_INVALID);
    assert_code(try_open(&t, "s", "equality"), TARN_INVALID);
    assert_code(try_open(&t, "s.x", "equality"), TARN_UNSUPPORTED);
    assert_code(try_open(&t, "id", NULL), TARN_INVALID);
    assert_non_null(strstr(err.message, "tarn.row-deletes"));
    assert_code(try_open(&t, "id", "sideways"), TARN_INVALID);
    assert_code(try_open(&t, "id", "vector"), TARN_INVALID);
    t.options.append = COMMIT_REPLACE_PARTITIONS;
    assert_code(try_open(&t, "id", "position"), TARN_INVALID);
    t.options.append = COMMIT_FAST_APPEND;
    t.options.state_dir = STR_NULL;
    assert_code(try_open(&t, "id", "position"), TARN_INVALID);
    assert_non_null(strstr(err.message, "state folder"));
    t.options.state_dir = str_of(t.state_dir);
    assert_code(try_open(&t, "id", "equality"), TARN_OK);
    assert_ok(sink_case_open(&t, &err));
    assert_code(sink_case_write(&t, "{\"id\":1,\"day\":1}\n", NULL, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "day"));
    sink_case_close(&t);
    t.options.deletes = STR("position");
    tarn_str names[2] = {STR("id"), STR("day")};
    t.options.key = names;
    t.options.n_key = 2;
    assert_ok(sink_case_open(&t, &err));
    assert_code(sink_case_write(&t, "{\"id\":1,\"day\":1}\n{\"id\":2}\n", NULL, &err),
                TARN_INVALID);
    assert_non_null(strstr(err.message, "day"));
    assert_non_null(strstr(err.message, "row 2"));
    static const uint8_t bad[] = {4};
    assert_code(sink_case_write(&t, "{\"id\":1,\"day\":1}\n", bad, &err), TARN_INVALID);
    sink_case_close(&t);
    t.options.upsert = false;
    assert_ok(sink_case_open(&t, &err));
    static const uint8_t gone[] = {TARN_ROW_DELETE};
    assert_code(sink_case_write(&t, "{\"id\":1,\"day\":1}\n", gone, &err), TARN_INVALID);
    sink_case_done(&t);
    test_env_done(env);
}

/* ---- keys that the table holds more than once ---- */

/* Rows of somebody who knows of no key: one data file a call and writer. */
static void append(sink_case *t, const char *lines) {
    sink_case plain = *t;
    memset(&plain.options, 0, sizeof plain.options);
    plain.sink = NULL;
    assert_ok(sink_case_open(&plain, &err));
    assert_ok(sink_case_write(&plain, lines, NULL, &err));
    assert_ok(sink_case_checkpoint(&plain, NULL, &err));
    sink_case_close(&plain);
}

static void upsert(sink_case *t, const char *lines) {
    assert_ok(sink_case_write(t, lines, NULL, &err));
    assert_ok(sink_case_checkpoint(t, NULL, &err));
}

static void open_again(sink_case *t) {
    sink_case_close(t);
    assert_ok(sink_case_open(t, &err));
}

static void run_duplicates(int32_t version, const char *deletes, int32_t writers,
                           const char *partition_by) {
    tarn_env *env = test_env();
    stream *s = malloc(sizeof *s);
    open_stream(s, env, version, deletes, partition_by, writers, true);
    sink_case *t = &s->t;
    static const uint8_t gone[] = {TARN_ROW_DELETE};
    sink_case_close(t);
    /* There before the stream: in one file, and in two. */
    append(t, "{\"id\":1,\"day\":0,\"v\":1}\n{\"id\":1,\"day\":0,\"v\":2}\n"
              "{\"id\":2,\"day\":0,\"v\":3}\n{\"id\":3,\"day\":0,\"v\":4}\n"
              "{\"id\":4,\"day\":0,\"v\":5}\n");
    append(t, "{\"id\":1,\"day\":1,\"v\":6}\n{\"id\":3,\"day\":0,\"v\":7}\n");
    assert_ok(sink_case_open(t, &err));
    upsert(t, "{\"id\":1,\"day\":0,\"v\":8}\n");
    sink_case_rows_are(t, "{\"id\":1,\"day\":0,\"v\":8}\n{\"id\":2,\"day\":0,\"v\":3}\n"
                          "{\"id\":3,\"day\":0,\"v\":4}\n{\"id\":3,\"day\":0,\"v\":7}\n"
                          "{\"id\":4,\"day\":0,\"v\":5}\n");
    /* The index was closed in between. */
    open_again(t);
    assert_ok(sink_case_write(t, "{\"id\":3,\"day\":0,\"v\":0}\n", gone, &err));
    upsert(t, "{\"id\":1,\"day\":0,\"v\":9}\n");
    sink_case_rows_are(t, "{\"id\":1,\"day\":0,\"v\":9}\n{\"id\":2,\"day\":0,\"v\":3}\n"
                          "{\"id\":4,\"day\":0,\"v\":5}\n");
    /* Beside the stream, which is told of the table's snapshots only. */
    append(t, "{\"id\":2,\"day\":1,\"v\":10}\n{\"id\":3,\"day\":1,\"v\":11}\n");
    append(t, "{\"id\":2,\"day\":1,\"v\":12}\n{\"id\":1,\"day\":1,\"v\":13}\n");
    upsert(t, "{\"id\":4,\"day\":0,\"v\":14}\n");
    /* Some of a key's rows move, by others. */
    compact(s);
    append(t, "{\"id\":1,\"day\":2,\"v\":15}\n");
    upsert(t, "{\"id\":2,\"day\":0,\"v\":16}\n{\"id\":1,\"day\":0,\"v\":17}\n");
    open_again(t);
    sink_case_rows_are(t, "{\"id\":1,\"day\":0,\"v\":17}\n{\"id\":2,\"day\":0,\"v\":16}\n"
                          "{\"id\":3,\"day\":1,\"v\":11}\n{\"id\":4,\"day\":0,\"v\":14}\n");
    sink_case_done(t);
    free(s);
    test_env_done(env);
}

/* A change takes all rows that the table holds of its key. */
static void test_duplicates(void **state) {
    (void)state;
    for (int32_t writers = 1; writers <= 3; writers += 2) {
        run_duplicates(2, "position", writers, NULL);
        run_duplicates(3, "vector", writers, "day");
        run_duplicates(2, "equality", writers, NULL);
    }
}

/* Rows that others moved or replaced are no duplicates: one row is deleted, not its old place too.
 */
static void test_no_duplicates(void **state) {
    (void)state;
    tarn_env *env = test_env();
    stream *s = malloc(sizeof *s);
    char other_dir[160];
    open_stream(s, env, 2, "position", NULL, 1, true);
    sink_case *t = &s->t;
    upsert(t, "{\"id\":1,\"day\":0,\"v\":1}\n{\"id\":2,\"day\":0,\"v\":2}\n");
    sink_case other = *t;
    (void)snprintf(other_dir, sizeof other_dir, "%s-of-another", t->state_dir);
    assert_int_equal(mkdir(other_dir, 0700), 0);
    other.options.state_dir = str_of(other_dir);
    other.sink = NULL;
    assert_ok(sink_case_open(&other, &err));
    upsert(&other, "{\"id\":1,\"day\":0,\"v\":3}\n");
    sink_case_close(&other);
    upsert(t, "{\"id\":1,\"day\":0,\"v\":4}\n");
    assert_string_equal(sink_case_summary(t, "added-position-deletes"), "1");
    compact(s);
    upsert(t, "{\"id\":1,\"day\":0,\"v\":5}\n");
    assert_string_equal(sink_case_summary(t, "added-position-deletes"), "1");
    sink_case_rows_are(t, "{\"id\":1,\"day\":0,\"v\":5}\n{\"id\":2,\"day\":0,\"v\":2}\n");
    sink_case_done(t);
    free(s);
    test_env_done(env);
}

static void test_duplicates_of_columns(void **state) {
    (void)state;
    tarn_env *env = test_env();
    stream *s = malloc(sizeof *s);
    open_stream(s, env, 3, "vector", NULL, 1, true);
    sink_case *t = &s->t;
    tarn_str names[2] = {STR("day"), STR("id")};
    sink_case_close(t);
    t->options.key = names;
    t->options.n_key = 2;
    append(t, "{\"id\":1,\"day\":1,\"v\":1}\n{\"id\":1,\"day\":2,\"v\":2}\n"
              "{\"id\":2,\"day\":1,\"v\":3}\n{\"id\":1,\"day\":2,\"v\":4}\n");
    assert_ok(sink_case_open(t, &err));
    upsert(t, "{\"id\":1,\"day\":2,\"v\":5}\n{\"id\":2,\"day\":2,\"v\":6}\n");
    sink_case_rows_are(t, "{\"id\":1,\"day\":1,\"v\":1}\n{\"id\":1,\"day\":2,\"v\":5}\n"
                          "{\"id\":2,\"day\":1,\"v\":3}\n{\"id\":2,\"day\":2,\"v\":6}\n");
    sink_case_done(t);
    free(s);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_checkpoint), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_equality),       cmocka_unit_test(test_position),
        cmocka_unit_test(test_vector),         cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_kinds),          cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_no_duplicates),  cmocka_unit_test(test_duplicates_of_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
