/* Goal: change sets do to a table what the REST specification and Iceberg Java say, and refuse what
 * would break it.
 * Method: small tables made by metadata_new, one rule a test; every change set also goes through
 * its JSON and back. */
#include "fixture.h"

#include "iceberg/change.h"

typedef struct bench {
    tarn_env *env;
    tarn_arena arena;
    const tarn_metadata *m;
    tarn_error err;
} bench;

static void bench_open(bench *b, int32_t version) {
    const tarn_type *root;
    b->env = test_env();
    arena_init(&b->arena, b->env);
    b->err = (tarn_error)TARN_ERROR_INIT;
    tarn_error err = b->err;
    assert_ok(type_from_text(&b->arena, STR("struct<a: long not null, ts: timestamp, s: string>"),
                             &root, &err));
    metadata_new_options options = {.format_version = version,
                                    .root = root,
                                    .partition_by = STR("month(ts)"),
                                    .location = STR("/t")};
    assert_ok(metadata_new(&b->arena, &options, &b->m, &err));
}

static void bench_close(bench *b) {
    arena_release(&b->arena);
    test_env_done(b->env);
}

/* Through JSON and back, then applied. */
static tarn_code apply(bench *b, const tarn_requirement *r, int32_t n_r, const tarn_change *c,
                       int32_t n_c, int64_t now_ms) {
    tarn_change_set set = {n_r, r, n_c, c}, again;
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    json_writer w;
    buf_init(&buf, b->env, 0);
    json_begin(&w, &buf, false, &err);
    assert_ok(change_set_put_json(&set, &w, &err));
    assert_ok(json_end(&w));
    json_value *json = fixture_json(&b->arena, buf_str(&buf));
    assert_ok(change_set_from_json(&b->arena, json, &again, &err));
    buf_release(&buf);
    const tarn_metadata *out;
    tarn_code code = change_apply(&b->arena, b->m, &again, now_ms, &out, &b->err);
    if (code == TARN_OK) {
        b->m = out;
    }
    return code;
}

static tarn_snapshot snapshot(int64_t id, int64_t parent, int64_t sequence, int64_t at) {
    static const tarn_property operation = {{"operation", 9}, {"append", 6}};
    return (tarn_snapshot){.snapshot_id = id,
                           .parent_id = parent,
                           .sequence_number = sequence,
                           .timestamp_ms = at,
                           .manifest_list = STR("/t/metadata/snap.avro"),
                           .summary = {1, &operation},
                           .schema_id = 0,
                           .first_row_id = -1,
                           .added_rows = -1};
}

static tarn_change add(const tarn_snapshot *s) {
    return (tarn_change){.kind = CHANGE_ADD_SNAPSHOT, .snapshot = s};
}
static tarn_change point(const char *ref, int64_t id, bool tag) {
    return (tarn_change){.kind = CHANGE_SET_SNAPSHOT_REF,
                         .ref = {str_of(ref), id, tag, -1, -1, -1}};
}

static tarn_code commit(bench *b, int64_t id, int64_t parent, int64_t sequence, int64_t at) {
    tarn_snapshot s = snapshot(id, parent, sequence, at);
    tarn_change c[] = {add(&s), point("main", id, false)};
    return apply(b, NULL, 0, c, 2, at + 5);
}

static void append_moves_main(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2);
    assert_null(metadata_current_snapshot(b.m));
    int64_t start = b.m->last_updated_ms;
    assert_int_equal(commit(&b, 11, -1, 1, start + 100), TARN_OK);
    assert_int_equal(commit(&b, 12, 11, 2, start + 200), TARN_OK);
    assert_int_equal(b.m->current_snapshot_id, 12);
    assert_int_equal(b.m->last_sequence_number, 2);
    assert_int_equal(b.m->n_snapshot_log, 2);
    assert_true(b.m->snapshot_log[1].timestamp_ms == start + 200);
    assert_true(b.m->last_updated_ms == start + 205);
    assert_true(metadata_is_ancestor(b.m, 12, 11));
    assert_false(metadata_is_ancestor(b.m, 11, 12));
    assert_int_equal(metadata_snapshot_at(b.m, start + 150)->snapshot_id, 11);
    assert_null(metadata_snapshot_at(b.m, start));
    /* the clock going back never takes the table back */
    tarn_change c = {.kind = CHANGE_SET_LOCATION, .text = STR("/u")};
    assert_int_equal(apply(&b, NULL, 0, &c, 1, 5), TARN_OK);
    assert_true(b.m->last_updated_ms == start + 205);
    bench_close(&b);
}

static void requirements(void **state) { /* B31 among them */
    (void)state;
    bench b;
    bench_open(&b, 2);
    tarn_requirement absent = {REQUIRE_REF_SNAPSHOT_ID, STR("main"), TARN_NO_SNAPSHOT};
    tarn_requirement at_11 = {REQUIRE_REF_SNAPSHOT_ID, STR("main"), 11};
    tarn_snapshot s = snapshot(11, -1, 1, b.m->last_updated_ms);
    tarn_change c[] = {add(&s), point("main", 11, false)};
    assert_int_equal(apply(&b, &at_11, 1, c, 2, 0), TARN_CONFLICT);
    assert_int_equal(apply(&b, &absent, 1, c, 2, 0), TARN_OK);
    assert_int_equal(apply(&b, &absent, 1, c, 0, 0), TARN_CONFLICT);
    assert_non_null(strstr(b.err.message, "11"));
    assert_int_equal(apply(&b, &at_11, 1, c, 0, 0), TARN_OK);
    static const requirement_kind kinds[] = {
        REQUIRE_LAST_ASSIGNED_FIELD_ID, REQUIRE_CURRENT_SCHEMA_ID,
        REQUIRE_LAST_ASSIGNED_PARTITION_ID, REQUIRE_DEFAULT_SPEC_ID, REQUIRE_DEFAULT_SORT_ORDER_ID};
    int64_t right[] = {3, 0, 1000, 0, 0};
    for (int i = 0; i < 5; i++) {
        tarn_requirement r = {kinds[i], STR_NULL, right[i]};
        assert_int_equal(apply(&b, &r, 1, c, 0, 0), TARN_OK);
        r.number++;
        assert_int_equal(apply(&b, &r, 1, c, 0, 0), TARN_CONFLICT);
    }
    tarn_requirement uuid = {REQUIRE_UUID, b.m->table_uuid, 0},
                     create = {REQUIRE_CREATE, STR_NULL, 0};
    assert_int_equal(apply(&b, &uuid, 1, c, 0, 0), TARN_OK);
    uuid.text = STR("another");
    assert_int_equal(apply(&b, &uuid, 1, c, 0, 0), TARN_CONFLICT);
    assert_int_equal(apply(&b, &create, 1, c, 0, 0), TARN_CONFLICT);
    b.m = NULL;
    assert_int_equal(apply(&b, &uuid, 1, c, 0, 0), TARN_CONFLICT);
    bench_close(&b);
}

static void sequence_numbers_grow(void **state) { /* B31 */
    (void)state;
    bench b;
    bench_open(&b, 2);
    int64_t t = b.m->last_updated_ms;
    assert_int_equal(commit(&b, 11, -1, 4, t), TARN_OK);
    assert_int_equal(commit(&b, 12, 11, 4, t), TARN_CONFLICT); /* made on an older table */
    assert_int_equal(commit(&b, 12, 11, 3, t), TARN_CONFLICT);
    assert_int_equal(commit(&b, 11, 11, 5, t), TARN_INVALID); /* the id is there */
    assert_int_equal(b.m->last_sequence_number, 4);
    assert_int_equal(commit(&b, 12, -1, 4, t), TARN_CONFLICT); /* even without a parent */
    assert_int_equal(commit(&b, 12, 11, 5, t), TARN_OK);
    assert_int_equal(b.m->last_sequence_number, 5);
    bench_close(&b);
}

/* The first snapshot of a table that is replaced whole may be late: it stands on nothing, and the
 * last number stays the highest. */
static void replaced_tables_begin_anew(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2);
    int64_t t = b.m->last_updated_ms;
    assert_int_equal(commit(&b, 11, -1, 4, t), TARN_OK);
    tarn_snapshot late = snapshot(12, -1, 2, t + 1);
    tarn_change changes[] = {{.kind = CHANGE_REMOVE_SNAPSHOT_REF, .text = STR("main")},
                             add(&late),
                             point("main", 12, false)};
    assert_int_equal(apply(&b, NULL, 0, changes + 1, 2, t + 1), TARN_CONFLICT);
    assert_int_equal(apply(&b, NULL, 0, changes, 3, t + 1), TARN_OK);
    assert_int_equal(b.m->last_sequence_number, 4);
    assert_int_equal(b.m->current_snapshot_id, 12);
    bench_close(&b);
}

static void references(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2);
    int64_t t = b.m->last_updated_ms;
    assert_int_equal(commit(&b, 11, -1, 1, t), TARN_OK);
    assert_int_equal(commit(&b, 12, 11, 2, t + 1), TARN_OK);
    tarn_change tag = point("v1", 11, true), unknown = point("x", 99, false),
                main_tag = point("main", 11, true), back = point("main", 11, false);
    assert_int_equal(apply(&b, NULL, 0, &tag, 1, t + 2), TARN_OK);
    assert_int_equal(apply(&b, NULL, 0, &unknown, 1, t + 2), TARN_INVALID);
    assert_int_equal(apply(&b, NULL, 0, &main_tag, 1, t + 2), TARN_INVALID);
    assert_true(metadata_ref(b.m, STR("v1"))->is_tag);
    assert_int_equal(apply(&b, NULL, 0, &back, 1, t + 7), TARN_OK); /* rollback */
    assert_int_equal(b.m->current_snapshot_id, 11);
    assert_int_equal(b.m->n_snapshot_log, 3);
    assert_true(b.m->snapshot_log[2].timestamp_ms == t + 7);
    tarn_change drop = {.kind = CHANGE_REMOVE_SNAPSHOT_REF, .text = STR("v1")};
    assert_int_equal(apply(&b, NULL, 0, &drop, 1, t + 8), TARN_OK);
    assert_null(metadata_ref(b.m, STR("v1")));
    bench_close(&b);
}

static void removed_snapshots_take_what_hangs_on_them(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2);
    int64_t t = b.m->last_updated_ms;
    assert_int_equal(commit(&b, 11, -1, 1, t + 1), TARN_OK);
    assert_int_equal(commit(&b, 12, 11, 2, t + 2), TARN_OK);
    assert_int_equal(commit(&b, 13, 12, 3, t + 3), TARN_OK);
    json_value *stats = fixture_json(
        &b.arena, STR("{\"snapshot-id\":12,\"statistics-path\":\"p\",\"file-size-in-bytes\":4,"
                      "\"file-footer-size-in-bytes\":2,\"blob-metadata\":[]}"));
    tarn_change c[] = {{.kind = CHANGE_SET_STATISTICS, .json = stats}, point("old", 12, false)};
    assert_int_equal(apply(&b, NULL, 0, c, 2, t + 4), TARN_OK);
    assert_int_equal(apply(&b, NULL, 0, c, 1, t + 4), TARN_OK); /* replaces, does not add */
    assert_int_equal(b.m->statistics->count, 1);
    int64_t gone[] = {12}, current[] = {13};
    tarn_change remove = {.kind = CHANGE_REMOVE_SNAPSHOTS, .n_ids = 1, .ids = gone};
    assert_int_equal(apply(&b, NULL, 0, &remove, 1, t + 5), TARN_OK);
    assert_int_equal(b.m->n_snapshots, 2);
    assert_int_equal(b.m->n_refs, 1);
    assert_int_equal(b.m->statistics->count, 0);
    /* history before the hole is cut off */
    assert_int_equal(b.m->n_snapshot_log, 1);
    assert_int_equal(b.m->snapshot_log[0].snapshot_id, 13);
    remove.ids = current;
    assert_int_equal(apply(&b, NULL, 0, &remove, 1, t + 6), TARN_INVALID);
    bench_close(&b);
}

static void group_commit_leaves_one_log_entry(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2);
    int64_t t = b.m->last_updated_ms;
    tarn_snapshot s = snapshot(11, -1, 1, t + 1), u = snapshot(12, 11, 2, t + 2);
    tarn_change c[] = {add(&s), point("main", 11, false), add(&u), point("main", 12, false)};
    assert_int_equal(apply(&b, NULL, 0, c, 4, t + 3), TARN_OK);
    assert_int_equal(b.m->n_snapshots, 2);
    assert_int_equal(b.m->n_snapshot_log, 1);
    assert_int_equal(b.m->snapshot_log[0].snapshot_id, 12);
    bench_close(&b);
}

static void versions(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 1);
    int64_t t = b.m->last_updated_ms;
    tarn_change up = {.kind = CHANGE_UPGRADE_FORMAT_VERSION, .number = 2};
    assert_int_equal(commit(&b, 11, -1, 0, t), TARN_OK); /* v1: all are 0 */
    assert_int_equal(commit(&b, 12, 11, 0, t), TARN_OK);
    assert_int_equal(apply(&b, NULL, 0, &up, 1, t), TARN_OK);
    assert_int_equal(b.m->last_sequence_number, 0);
    up.number = 1;
    assert_int_equal(apply(&b, NULL, 0, &up, 1, t), TARN_INVALID);
    up.number = 4;
    assert_int_equal(apply(&b, NULL, 0, &up, 1, t), TARN_INVALID);
    assert_int_equal(commit(&b, 13, 12, 1, t), TARN_OK);
    up.number = 3;
    assert_int_equal(apply(&b, NULL, 0, &up, 1, t), TARN_OK);
    assert_int_equal(b.m->next_row_id, 0);
    assert_int_equal(commit(&b, 14, 13, 2, t), TARN_INVALID); /* v3 snapshots count rows */
    tarn_snapshot s = snapshot(14, 13, 2, t);
    s.first_row_id = 0;
    s.added_rows = 70;
    tarn_change c = add(&s);
    assert_int_equal(apply(&b, NULL, 0, &c, 1, t), TARN_OK);
    assert_int_equal(b.m->next_row_id, 70);
    s = snapshot(15, 14, 3, t);
    s.first_row_id = 69;
    s.added_rows = 1;
    assert_int_equal(apply(&b, NULL, 0, &c, 1, t), TARN_INVALID);
    bench_close(&b);
}

static void schemas_and_specs_are_reused(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2);
    tarn_schema same = *metadata_schema(b.m);
    same.schema_id = 77;
    tarn_change c[] = {{.kind = CHANGE_ADD_SCHEMA, .schema = &same},
                       {.kind = CHANGE_SET_CURRENT_SCHEMA, .number = -1}};
    assert_int_equal(apply(&b, NULL, 0, c, 2, 0), TARN_OK);
    assert_int_equal(b.m->n_schemas, 1);
    tarn_partition_field f = {1, 1001, STR("a_bucket"), {TRANSFORM_BUCKET, 4, STR_NULL}};
    tarn_spec spec = {9, 1, &f}, none = {0, 0, NULL};
    tarn_change d[] = {{.kind = CHANGE_ADD_SPEC, .spec = &spec},
                       {.kind = CHANGE_SET_DEFAULT_SPEC, .number = -1}};
    assert_int_equal(apply(&b, NULL, 0, d, 2, 0), TARN_OK);
    assert_int_equal(b.m->default_spec_id, 1);
    assert_int_equal(b.m->last_partition_id, 1001);
    d[0].spec = &none;
    assert_int_equal(apply(&b, NULL, 0, d, 2, 0), TARN_OK);
    assert_int_equal(b.m->default_spec_id, 2);
    int64_t ids[] = {1, 2};
    tarn_change remove = {.kind = CHANGE_REMOVE_PARTITION_SPECS, .n_ids = 1, .ids = ids};
    assert_int_equal(apply(&b, NULL, 0, &remove, 1, 0), TARN_OK);
    assert_int_equal(b.m->n_specs, 2);
    remove.ids = ids + 1;
    assert_int_equal(apply(&b, NULL, 0, &remove, 1, 0), TARN_INVALID);
    f.field_id = 1000; /* month(ts)'s */
    spec.spec_id = 5;
    d[0].spec = &spec;
    assert_int_equal(apply(&b, NULL, 0, d, 2, 0), TARN_INVALID);
    tarn_change wrong = {.kind = CHANGE_SET_CURRENT_SCHEMA, .number = 5};
    assert_int_equal(apply(&b, NULL, 0, &wrong, 1, 0), TARN_INVALID);
    wrong.number = -1;
    assert_int_equal(apply(&b, NULL, 0, &wrong, 1, 0), TARN_INVALID);
    bench_close(&b);
}

/* The bench with root as its current schema, and what came of it. */
static tarn_code set_schema(bench *b, const char *text, bool anew, int64_t next_snapshot) {
    const tarn_type *root;
    tarn_error err = TARN_ERROR_INIT;
    int32_t next = 1;
    assert_ok(type_from_text(&b->arena, str_of(text), &root, &err));
    root = type_assign_ids(&b->arena, root, &next);
    tarn_schema schema = {.schema_id = 90, .root = root};
    tarn_snapshot s = snapshot(next_snapshot, -1, next_snapshot, b->m->last_updated_ms);
    tarn_change c[] = {{.kind = CHANGE_REMOVE_SNAPSHOT_REF, .text = STR("main")},
                       {.kind = CHANGE_ADD_SCHEMA, .schema = &schema},
                       {.kind = CHANGE_SET_CURRENT_SCHEMA, .number = -1},
                       add(&s),
                       point("main", next_snapshot, false)};
    s.schema_id = b->m->n_schemas;
    return anew ? apply(b, NULL, 0, c, 5, 0) : apply(b, NULL, 0, c + 1, 2, 0);
}

/* Ids are given in order, so that the third column is column 3 whatever its name. */
#define WIDE "struct<a: long not null, ts: timestamp, s: string, i: int, f: float, d: decimal(9, 2)"

static void rows_stay_readable(void **state) {
    (void)state;
    static const struct {
        const char *schema, *refused; /* NULL: taken */
    } steps[] = {
        {WIDE ", n: struct<x: int>, l: list<int>>", NULL},
        {"struct<a: string, ts: timestamp>",
         "column \"a\" (id 1) of type long cannot become string: rows of the table hold it"},
        {"struct<a: int, ts: timestamp>",
         "column \"a\" (id 1) of type long cannot become int: rows of the table hold it"},
        {"struct<a: long, ts: timestamptz>",
         "column \"ts\" (id 2) of type timestamp cannot become timestamptz: rows of the table hold "
         "it"},
        {WIDE ", n: int>",
         "column \"n\" (id 7) of type struct cannot become int: rows of the table hold it"},
        {"struct<a: long, ts: timestamp, s: struct<x: int>>",
         "column \"s\" (id 3) of type string cannot become struct: rows of the table hold it"},
        {"struct<a: long, ts: timestamp, s: string, i: int, f: float, d: decimal(8, 2)>",
         "column \"d\" (id 6) of type decimal cannot become decimal: rows of the table hold it"},
        /* promotions, another name, required or not */
        {"struct<b: long, ts: timestamp not null, s: binary, i: long, f: double, d: decimal(20, "
         "2)>",
         NULL},
        {"struct<b: long, ts: timestamp>", NULL}, /* columns go */
        {"struct<b: long, ts: timestamp, s: boolean>",
         "column \"s\" (id 3) of type string cannot become boolean: rows of the table hold it"},
        {"struct<b: long, ts: timestamp, s: string>", NULL}, /* no row was written meanwhile */
    };
    bench b;
    bench_open(&b, 2);
    int64_t t = b.m->last_updated_ms;
    assert_int_equal(set_schema(&b, "struct<a: string, ts: timestamp>", false, 0), TARN_OK);
    assert_int_equal(set_schema(&b, "struct<a: long not null, ts: timestamp, s: string>", false, 0),
                     TARN_OK); /* there are no rows */
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        b.err = (tarn_error)TARN_ERROR_INIT;
        assert_int_equal(set_schema(&b, steps[i].schema, false, 0),
                         steps[i].refused == NULL ? TARN_OK : TARN_INVALID);
        assert_string_equal(b.err.message, steps[i].refused == NULL ? "" : steps[i].refused);
        if (i == 0) {
            tarn_snapshot s = snapshot(11, -1, 1, t);
            s.schema_id = b.m->current_schema_id;
            tarn_change c[] = {add(&s), point("main", 11, false)};
            assert_int_equal(apply(&b, NULL, 0, c, 2, t + 5), TARN_OK);
        }
    }
    b.err = (tarn_error)TARN_ERROR_INIT; /* a table that is replaced keeps names' ids */
    assert_int_equal(set_schema(&b, "struct<a: string, ts: timestamp>", true, 12), TARN_OK);
    assert_int_equal(set_schema(&b, "struct<a: string, ts: timestamp, s: int>", false, 0), TARN_OK);
    assert_int_equal(set_schema(&b, "struct<a: long, ts: timestamp>", false, 0), TARN_INVALID);
    bench_close(&b);
}

/* A table that somebody left odd takes the changes that do not make it odder. */
static void odd_schemas_stop_nothing(void **state) {
    (void)state;
    bench b;
    const tarn_type *root;
    tarn_error err = TARN_ERROR_INIT;
    bench_open(&b, 2);
    int64_t t = b.m->last_updated_ms;
    assert_int_equal(commit(&b, 11, -1, 1, t), TARN_OK);
    int32_t next = 1;
    assert_ok(type_from_text(&b.arena, STR("struct<a: string, ts: timestamp>"), &root, &err));
    root = type_assign_ids(&b.arena, root, &next);
    tarn_schema odd = {.schema_id = 1, .root = root};
    const tarn_schema *schemas[] = {b.m->schemas[0], &odd};
    tarn_metadata m = *b.m;
    m.schemas = schemas;
    m.n_schemas = 2;
    m.current_schema_id = 1;
    b.m = &m;
    assert_int_equal(
        set_schema(&b, "struct<a: string, ts: timestamp, s: string, n: int>", false, 0), TARN_OK);
    assert_int_equal(set_schema(&b, "struct<a: boolean, ts: timestamp>", false, 0), TARN_INVALID);
    bench_close(&b);
}

static void properties(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2);
    tarn_property set[] = {{STR("a"), STR("1")}, {STR("b"), STR("2")}, {STR("a"), STR("3")}};
    tarn_property gone[] = {{STR("b"), STR_NULL}, {STR("zz"), STR_NULL}};
    tarn_change c[] = {{.kind = CHANGE_SET_PROPERTIES, .properties = {2, set}},
                       {.kind = CHANGE_SET_PROPERTIES, .properties = {1, set + 2}},
                       {.kind = CHANGE_REMOVE_PROPERTIES, .properties = {2, gone}}};
    assert_int_equal(apply(&b, NULL, 0, c, 3, 0), TARN_OK);
    assert_int_equal(b.m->properties.count, 1);
    assert_true(str_is(properties_str(&b.m->properties, "a", ""), "3"));
    bench_close(&b);
}

static void created_from_nothing(void **state) {
    (void)state;
    for (int32_t version = 1; version <= 3; version++) {
        bench b;
        bench_open(&b, version);
        const tarn_metadata *wanted = b.m;
        tarn_error err = TARN_ERROR_INIT;
        tarn_change_set set;
        assert_ok(change_set_create(&b.arena, wanted, &set, &err));
        b.m = NULL;
        tarn_code code = apply(&b, set.requirements, set.n_requirements, set.changes, set.n_changes,
                               wanted->last_updated_ms);
        err = b.err;
        assert_ok(code);
        tarn_buf x, y;
        buf_init(&x, b.env, 0);
        buf_init(&y, b.env, 0);
        assert_ok(metadata_write(wanted, &x, &err));
        assert_ok(metadata_write(b.m, &y, &err));
        assert_true(str_eq(buf_str(&x), buf_str(&y)));
        buf_release(&x);
        buf_release(&y);
        bench_close(&b);
    }
}

static void metadata_log_is_trimmed(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2);
    tarn_error err = TARN_ERROR_INIT;
    tarn_property most = {STR("write.metadata.previous-versions-max"), STR("2")};
    tarn_change c = {.kind = CHANGE_SET_PROPERTIES, .properties = {1, &most}};
    assert_int_equal(apply(&b, NULL, 0, &c, 1, 0), TARN_OK);
    static const char *const files[] = {"f1", "f2", "f3"};
    const tarn_str *removed = NULL;
    int32_t n_removed = 0;
    for (int i = 0; i < 3; i++) {
        assert_ok(change_log_previous(&b.arena, b.m, str_of(files[i]), 100 + i, &b.m, &removed,
                                      &n_removed, &err));
        assert_int_equal(n_removed, i < 2 ? 0 : 1);
    }
    assert_true(str_is(removed[0], "f1"));
    assert_int_equal(b.m->n_metadata_log, 2);
    assert_true(str_is(b.m->metadata_log[1].metadata_file, "f3"));
    bench_close(&b);
}

static void bad_json(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"updates\":[{\"action\":\"fly\"}]}",
        "{\"updates\":[{\"action\":\"set-location\"}]}",
        "{\"updates\":[{\"action\":\"add-snapshot\",\"snapshot\":7}]}",
        "{\"updates\":[{\"action\":\"remove-snapshots\",\"snapshot-ids\":{}}]}",
        "{\"updates\":[{\"action\":\"remove-properties\",\"removals\":[1]}]}",
        "{\"requirements\":[{\"type\":\"assert-luck\"}]}",
        "{\"requirements\":[{\"type\":\"assert-default-spec-id\"}]}",
        "{\"requirements\":7}"};
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_change_set set;
        json_value *json = fixture_json(&arena, str_of(texts[i]));
        assert_int_equal(change_set_from_json(&arena, json, &set, &err), TARN_INVALID);
        assert_int_equal(err.code, TARN_INVALID);
    }
    tarn_change_set set;
    tarn_error err = TARN_ERROR_INIT;
    json_value *json = fixture_json(
        &arena,
        STR("{\"requirements\":[{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"main\","
            "\"snapshot-id\":null}],\"updates\":[{\"action\":\"set-properties\",\"updated\":"
            "{\"x\":\"y\"}}]}"));
    assert_ok(change_set_from_json(&arena, json, &set, &err));
    assert_int_equal(set.requirements[0].number, TARN_NO_SNAPSHOT);
    assert_int_equal(set.changes[0].properties.count, 1);
    arena_release(&arena);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_moves_main),
        cmocka_unit_test(requirements),
        cmocka_unit_test(sequence_numbers_grow),
        cmocka_unit_test(replaced_tables_begin_anew),
        cmocka_unit_test(references),
        cmocka_unit_test(removed_snapshots_take_what_hangs_on_them),
        cmocka_unit_test(group_commit_leaves_one_log_entry),
        cmocka_unit_test(versions),
        cmocka_unit_test(schemas_and_specs_are_reused),
        cmocka_unit_test(rows_stay_readable),
        cmocka_unit_test(odd_schemas_stop_nothing),
        cmocka_unit_test(properties),
        cmocka_unit_test(created_from_nothing),
        cmocka_unit_test(metadata_log_is_trimmed),
        cmocka_unit_test(bad_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
