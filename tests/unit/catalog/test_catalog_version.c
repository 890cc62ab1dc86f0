/* Goal: versions that were made one of the other share their snapshots, so that a commit costs the
 * same after a thousand others; what is written is to the byte what it would be without that; and a
 * document is taken from memory only while it is the one that is there.
 * Method: commits of snapshots without files over a store in memory, with an allocator that counts;
 * random histories whose every document is read from the store and written anew. */
#include "torture.h"

#include "catalog/catalog_int.h"

#define STEPS 400

static tarn_error err;

typedef struct fixture {
    tarn_env *env;
    tarn_arena arena;
    tarn_catalog *dir;
    tarn_store *store;
    tarn_ident table;
    int64_t next_id;
} fixture;

static void create_table(fixture *f, int32_t format_version) {
    metadata_new_options options = {.format_version = format_version};
    assert_ok(type_from_text(&f->arena, STR("struct<id: long>"), &options.root, &err));
    assert_ok(catalog_create(f->dir, &f->table, &options, NULL, &err));
}

static void open_in(fixture *f, tarn_env *env, int32_t format_version) {
    memset(f, 0, sizeof *f);
    f->env = env;
    f->next_id = 100;
    arena_init(&f->arena, env);
    assert_ok(store_memory_new(env, &f->store, &err));
    assert_ok(catalog_dir_new(env, f->store, STR("/w"), &f->dir, &err));
    assert_ok(ident_parse(&f->arena, STR("ns.t"), false, &f->table, &err));
    tarn_ident ns = {1, f->table.levels, STR_NULL};
    assert_ok(catalog_create_namespace(f->dir, &ns, NULL, &err));
    create_table(f, format_version);
}

static void close_all(fixture *f) {
    catalog_close(f->dir);
    arena_release(&f->arena);
}

static tarn_table_version *load(fixture *f) {
    tarn_table_version *v = NULL;
    assert_ok(catalog_load(f->dir, &f->table, &v, &err));
    return v;
}

static tarn_table_version *commit(fixture *f, const tarn_change *changes, int32_t n) {
    tarn_table_version *base = load(f);
    tarn_table_version *v = NULL;
    tarn_outcome_kind outcome;
    const tarn_change_set set = {0, NULL, n, changes};
    assert_ok(catalog_commit(f->dir, &f->table, base, &set, &outcome, &v, &err));
    table_version_release(base);
    return v;
}

/* A snapshot whose texts need escapes, on top of main. */
static tarn_table_version *add_snapshot(fixture *f) {
    const tarn_property summary[] = {{STR("operation"), STR("append")},
                                     {STR("line\n\"quoted\""), STR("\\ \xC3\xA4 \x01")},
                                     {STR("empty"), STR("")}};
    tarn_table_version *base = load(f);
    const tarn_metadata *m = base->metadata;
    tarn_snapshot s = {.snapshot_id = f->next_id++,
                       .parent_id = m->current_snapshot_id,
                       .sequence_number = m->last_sequence_number + 1,
                       .timestamp_ms = m->last_updated_ms + 1,
                       .manifest_list = STR("/w/ns/t/metadata/snap-\"1\".avro"),
                       .summary = {3, summary},
                       .schema_id = 0,
                       .first_row_id = m->format_version > 2 ? m->next_row_id : -1,
                       .added_rows = m->format_version > 2 ? 0 : -1};
    const tarn_change changes[] = {
        {.kind = CHANGE_ADD_SNAPSHOT, .snapshot = &s},
        {.kind = CHANGE_SET_SNAPSHOT_REF, .ref = {STR("main"), s.snapshot_id, false, -1, -1, -1}}};
    tarn_table_version *v = commit(f, changes, 2);
    table_version_release(base);
    return v;
}

static void add_many(fixture *f, int n) {
    for (int i = 0; i < n; i++) {
        table_version_release(add_snapshot(f));
    }
}

/* ---- what it costs ---- */

typedef struct counter {
    tarn_allocator allocator;
    int64_t calls, bytes;
} counter;

static void *count_alloc(void *ctx, size_t size) {
    counter *c = ctx;
    c->calls++;
    c->bytes += (int64_t)size;
    return malloc(size);
}

static void *count_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    counter *c = ctx;
    c->calls++;
    c->bytes += (int64_t)new_size - (int64_t)old_size;
    return realloc(ptr, new_size);
}

static void count_free(void *ctx, void *ptr, size_t size) {
    (void)ctx;
    (void)size;
    free(ptr);
}

/* What ten loads and commits take on average. */
static void measure(fixture *f, counter *c, int64_t *calls, int64_t *bytes, int64_t *document) {
    int64_t calls_before = c->calls;
    int64_t bytes_before = c->bytes;
    add_many(f, 10);
    *calls = (c->calls - calls_before) / 10;
    *bytes = (c->bytes - bytes_before) / 10;
    tarn_table_version *v = load(f);
    *document = v->document_bytes;
    table_version_release(v);
}

static void costs_the_same_after_many(void **state) {
    (void)state;
    counter c = {.calls = 0};
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = NULL;
    fixture f;
    int64_t calls[2], bytes[2], document[2];
    c.allocator = (tarn_allocator){&c, count_alloc, count_realloc, count_free};
    options.allocator = &c.allocator;
    options.threads = 1;
    assert_ok(tarn_env_new(&options, &env, &err));
    open_in(&f, env, 2);
    add_many(&f, 140); /* the log of metadata files is full */
    measure(&f, &c, &calls[0], &bytes[0], &document[0]);
    add_many(&f, 850);
    measure(&f, &c, &calls[1], &bytes[1], &document[1]);
    /* The document is made once, and copied once by the store; and a pointer a snapshot. A tree of
     * its JSON, or copies of its snapshots, would be many times as much. */
    assert_true(calls[1] <= calls[0] + 8);
    assert_true(bytes[1] - bytes[0] <= 3 * (document[1] - document[0]));
    close_all(&f);
    tarn_env_free(env);
}

/* ---- what is shared ---- */

static void shares_snapshots(void **state) {
    (void)state;
    fixture f;
    open_in(&f, test_env(), 2);
    tarn_table_version *first = add_snapshot(&f);
    tarn_table_version *second = add_snapshot(&f);
    const tarn_snapshot *s = second->metadata->snapshots[0];
    assert_ptr_equal(first->metadata->snapshots[0], s);
    table_version_release(first);
    add_many(&f, 3);
    table_version_release(second);
    tarn_table_version *last = load(&f);
    assert_ptr_equal(last->metadata->snapshots[0], s);
    assert_int_equal(s->snapshot_id, 100);
    assert_true(str_is(s->summary.items[1].value, "\\ \xC3\xA4 \x01"));
    table_version_release(last);
    /* another format writes them in another way */
    const tarn_change up = {.kind = CHANGE_UPGRADE_FORMAT_VERSION, .number = 3};
    last = commit(&f, &up, 1);
    assert_int_equal(last->metadata->snapshots[0]->text_version, 3);
    table_version_release(last);
    close_all(&f);
    test_env_done(f.env);
}

/* Snapshots that expired do not stay in memory for good. */
static void forgets_expired_snapshots(void **state) {
    (void)state;
    fixture f;
    open_in(&f, test_env(), 2);
    tarn_table_version *v = NULL;
    size_t most = 0;
    for (int round = 0; round < 12; round++) {
        int64_t ids[100];
        int32_t n = 0;
        add_many(&f, 100);
        v = load(&f);
        for (int32_t i = 0; i + 1 < v->metadata->n_snapshots; i++) {
            ids[n++] = v->metadata->snapshots[i]->snapshot_id;
        }
        table_version_release(v);
        const tarn_change expire = {.kind = CHANGE_REMOVE_SNAPSHOTS, .ids = ids, .n_ids = n};
        v = commit(&f, &expire, 1);
        assert_int_equal(v->metadata->n_snapshots, 1);
        size_t bytes = table_version_bytes(v);
        most = round == 4 ? bytes : most;
        assert_true(round <= 4 || bytes <= most + most / 2);
        table_version_release(v);
    }
    close_all(&f);
    test_env_done(f.env);
}

/* ---- what is written ---- */

static void expect_as_parsed(fixture *f, const tarn_table_version *v) {
    tarn_buf there, from_memory, from_store;
    tarn_arena arena;
    const tarn_metadata *m = NULL;
    arena_init(&arena, f->env);
    buf_init(&there, f->env, 0);
    buf_init(&from_memory, f->env, 0);
    buf_init(&from_store, f->env, 0);
    assert_ok(store_get(f->store, v->metadata_location, 1 << 30, &there, &err));
    assert_ok(metadata_parse(&arena, buf_str(&there), "t", &m, &err));
    assert_ok(metadata_write(m, &from_store, &err));
    assert_ok(metadata_write(v->metadata, &from_memory, &err));
    assert_true(str_eq(buf_str(&there), buf_str(&from_store)));
    assert_true(str_eq(buf_str(&there), buf_str(&from_memory)));
    buf_release(&from_store);
    buf_release(&from_memory);
    buf_release(&there);
    arena_release(&arena);
}

static tarn_table_version *step(fixture *f, uint64_t chance) {
    tarn_table_version *base = load(f);
    const tarn_metadata *m = base->metadata;
    tarn_property pair = {STR("n"), STR("\"x\"")};
    tarn_change change = {.kind = CHANGE_SET_PROPERTIES, .properties = {1, &pair}};
    int64_t ids[32];
    int32_t n = 0;
    tarn_table_version *v = NULL;
    if (chance % 8 < 5 || m->n_snapshots < 3) {
        v = add_snapshot(f);
    } else if (chance % 8 == 5) { /* some go, from anywhere */
        for (int32_t i = 0; i < m->n_snapshots && n < 32; i++) {
            if ((chance >> (8 + i % 48) & 3) == 0 &&
                m->snapshots[i]->snapshot_id != m->current_snapshot_id) {
                ids[n++] = m->snapshots[i]->snapshot_id;
            }
        }
        change = (tarn_change){.kind = CHANGE_REMOVE_SNAPSHOTS, .ids = ids, .n_ids = n};
        v = commit(f, &change, 1);
    } else if (chance % 8 == 6) { /* main goes back, or a tag is set */
        const tarn_snapshot *s = m->snapshots[(chance >> 8) % (uint64_t)m->n_snapshots];
        bool tag = (chance & 16) != 0;
        change = (tarn_change){
            .kind = CHANGE_SET_SNAPSHOT_REF,
            .ref = {tag ? STR("a tag") : STR("main"), s->snapshot_id, tag, -1, -1, -1}};
        v = commit(f, &change, 1);
    } else {
        v = commit(f, &change, 1);
    }
    table_version_release(base);
    return v;
}

static void writes_what_it_would_anyway(void **state) {
    (void)state;
    for (int32_t version = 1; version <= 3; version++) {
        fixture f;
        uint64_t seed = 4711;
        open_in(&f, test_env(), version);
        for (int i = 0; i < STEPS; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            tarn_table_version *v = step(&f, seed >> 8);
            expect_as_parsed(&f, v);
            table_version_release(v);
        }
        close_all(&f);
        test_env_done(f.env);
    }
}

/* ---- what is in memory, and what is there ---- */

/* Another process drops the table and makes it anew, with as many versions of the same size. */
static void sees_another_table_under_the_name(void **state) {
    (void)state;
    fixture f;
    tarn_arena arena;
    tarn_outcome_kind outcome;
    open_in(&f, test_env(), 2);
    arena_init(&arena, f.env);
    tarn_table_version *old = add_snapshot(&f);
    tarn_str uuid = arena_str(&arena, old->metadata->table_uuid);
    assert_ok(catalog_drop(f.dir, &f.table, &err));
    create_table(&f, 2);
    f.next_id = 100;
    tarn_table_version *made = add_snapshot(&f);
    assert_true(str_eq(made->metadata_location, old->metadata_location));
    table_version_release(made);
    tarn_table_version *now = load(&f);
    assert_false(str_eq(now->metadata->table_uuid, uuid));
    tarn_property pair = {STR("a"), STR("b")};
    const tarn_change change = {.kind = CHANGE_SET_PROPERTIES, .properties = {1, &pair}};
    const tarn_change_set set = {0, NULL, 1, &change};
    assert_int_equal(catalog_commit(f.dir, &f.table, old, &set, &outcome, NULL, &err),
                     TARN_CONFLICT);
    table_version_release(now);
    table_version_release(old);
    arena_release(&arena);
    close_all(&f);
    test_env_done(f.env);
}

/* The document that is remembered is not the one that is there: found by its beginning alone. */
static void reads_a_document_that_changed(void **state) {
    (void)state;
    fixture f;
    tarn_buf text;
    open_in(&f, test_env(), 2);
    tarn_table_version *v = add_snapshot(&f);
    buf_init(&text, f.env, 0);
    assert_ok(store_get(f.store, v->metadata_location, 1 << 30, &text, &err));
    char *uuid = strstr((char *)text.data, "table-uuid") + 13;
    uuid[0] = uuid[0] == 'a' ? 'b' : 'a';
    assert_ok(store_put(f.store, v->metadata_location, STORE_REPLACE, buf_str(&text), &err));
    tarn_table_version *now = load(&f);
    assert_int_equal(now->metadata->table_uuid.data[0], uuid[0]);
    assert_ptr_not_equal(now, v);
    table_version_release(now);
    now = load(&f);
    tarn_table_version *again = load(&f);
    assert_ptr_equal(now, again);
    table_version_release(again);
    table_version_release(now);
    table_version_release(v);
    buf_release(&text);
    close_all(&f);
    test_env_done(f.env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_the_same_after_many),
        cmocka_unit_test(shares_snapshots),
        cmocka_unit_test(forgets_expired_snapshots),
        cmocka_unit_test(writes_what_it_would_anyway),
        cmocka_unit_test(sees_another_table_under_the_name),
        cmocka_unit_test(reads_a_document_that_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
