/* Goal: edits give changes that keep every id meaning what it meant.
 * Method: small tables, one rule a test; the change set is applied and the result looked at. */
#include "fixture.h"

#include "iceberg/evolve.h"
#include "iceberg/summary.h"

typedef struct bench {
    tarn_env *env;
    tarn_arena arena;
    const tarn_metadata *m;
    tarn_change_set set;
    tarn_error err;
} bench;

static void bench_open(bench *b, int32_t version, const char *type, const char *by,
                       const tarn_property *property) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *root;
    memset(b, 0, sizeof *b);
    b->env = test_env();
    arena_init(&b->arena, b->env);
    assert_ok(type_from_text(&b->arena, str_of(type), &root, &err));
    metadata_new_options options = {.format_version = version,
                                    .root = root,
                                    .partition_by = str_of(by),
                                    .location = STR("/t"),
                                    .properties = {property != NULL ? 1 : 0, property}};
    assert_ok(metadata_new(&b->arena, &options, &b->m, &err));
}

static void bench_close(bench *b) {
    arena_release(&b->arena);
    test_env_done(b->env);
}

static tarn_code edit(bench *b, const tarn_edit *edits, int32_t n) {
    b->err = (tarn_error)TARN_ERROR_INIT;
    tarn_code code = evolve_changes(&b->arena, b->m, edits, n, &b->set, &b->err);
    if (code == TARN_OK) {
        code = change_apply(&b->arena, b->m, &b->set, 0, &b->m, &b->err);
    }
    return code;
}

static tarn_code edit_one(bench *b, tarn_edit e) {
    return edit(b, &e, 1);
}

static const tarn_field *field(const bench *b, const char *path) {
    return type_find_name(metadata_schema(b->m)->root, str_of(path), true);
}

#define LONG   type_primitive(TARN_LONG)
#define STRING type_primitive(TARN_STRING)

static void columns_come_and_go(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2, "struct<a: int, p: struct<x: int>, l: list<struct<y: int>>>", "", NULL);
    int32_t last = b.m->last_column_id;
    tarn_edit add[] = {
        {.kind = EVOLVE_ADD_COLUMN, .path = STR("n"), .type = LONG, .doc = STR("a doc")},
        {.kind = EVOLVE_ADD_COLUMN, .path = STR("p.z"), .type = STRING},
        {.kind = EVOLVE_ADD_COLUMN, .path = STR("l.w"), .type = STRING}};
    assert_int_equal(edit(&b, add, 3), TARN_OK);
    assert_int_equal(field(&b, "n")->id, last + 1);
    assert_true(str_is(field(&b, "n")->doc, "a doc"));
    assert_int_equal(field(&b, "p.z")->id, last + 2);
    assert_int_equal(field(&b, "l.element.w")->id, last + 3);
    assert_int_equal(b.m->last_column_id, last + 3);
    assert_int_equal(b.m->n_schemas, 2);
    assert_int_equal(b.m->current_schema_id, 1);
    assert_int_equal(edit(&b, add, 1), TARN_INVALID); /* is there */
    tarn_edit drop = {.kind = EVOLVE_DROP_COLUMN, .path = STR("n")};
    assert_int_equal(edit_one(&b, drop), TARN_OK);
    assert_null(field(&b, "n"));
    assert_int_equal(edit_one(&b, drop), TARN_INVALID);
    assert_int_equal(edit(&b, add, 1), TARN_OK); /* the name again, never the id */
    assert_int_equal(field(&b, "n")->id, last + 4);
    drop.path = STR("l.element");
    assert_int_equal(edit_one(&b, drop), TARN_INVALID);
    tarn_edit needed = {
        .kind = EVOLVE_ADD_COLUMN, .path = STR("r"), .type = LONG, .required = true};
    assert_int_equal(edit_one(&b, needed), TARN_INVALID);
    needed.path = STR("nothing.r");
    needed.required = false;
    assert_int_equal(edit_one(&b, needed), TARN_INVALID);
    const tarn_type *nested;
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(type_from_text(&b.arena, STR("map<string, struct<k: int>>"), &nested, &err));
    tarn_edit deep = {.kind = EVOLVE_ADD_COLUMN, .path = STR("m"), .type = nested};
    assert_int_equal(edit_one(&b, deep), TARN_OK);
    assert_int_equal(field(&b, "m")->id, last + 5);
    assert_int_equal(field(&b, "m.value.k")->id, last + 8);
    bench_close(&b);
}

static void defaults_need_version_3(void **state) {
    (void)state;
    for (int32_t version = 2; version <= 3; version++) {
        bench b;
        bench_open(&b, version, "struct<a: int>", "", NULL);
        tarn_edit e = {.kind = EVOLVE_ADD_COLUMN,
                       .path = STR("r"),
                       .type = LONG,
                       .required = true,
                       .default_value = fixture_json(&b.arena, STR("7"))};
        assert_int_equal(edit_one(&b, e), version == 3 ? TARN_OK : TARN_INVALID);
        e.path = STR("q");
        e.default_value = fixture_json(&b.arena, STR("\"x\""));
        assert_int_not_equal(edit_one(&b, e), TARN_OK);
        bench_close(&b);
    }
}

static void types_only_widen(void **state) {
    (void)state;
    bench b;
    const tarn_type *wide, *narrow;
    tarn_error err = TARN_ERROR_INIT;
    bench_open(&b, 2, "struct<a: int, f: float, d: decimal(9, 2), t: date, m: map<int, int>>", "",
               NULL);
    assert_ok(type_from_text(&b.arena, STR("decimal(18, 2)"), &wide, &err));
    assert_ok(type_from_text(&b.arena, STR("decimal(9, 3)"), &narrow, &err));
    tarn_edit good[] = {
        {.kind = EVOLVE_UPDATE_TYPE, .path = STR("a"), .type = LONG},
        {.kind = EVOLVE_UPDATE_TYPE, .path = STR("f"), .type = type_primitive(TARN_DOUBLE)},
        {.kind = EVOLVE_UPDATE_TYPE, .path = STR("d"), .type = wide},
        {.kind = EVOLVE_UPDATE_TYPE, .path = STR("m.value"), .type = LONG}};
    assert_int_equal(edit(&b, good, 4), TARN_OK);
    assert_int_equal(field(&b, "a")->type->kind, TARN_LONG);
    assert_int_equal(field(&b, "a")->id, 1);
    assert_int_equal(field(&b, "m.value")->type->kind, TARN_LONG);
    tarn_edit bad[] = {
        {.kind = EVOLVE_UPDATE_TYPE, .path = STR("a"), .type = type_primitive(TARN_INT)},
        {.kind = EVOLVE_UPDATE_TYPE, .path = STR("d"), .type = narrow},
        {.kind = EVOLVE_UPDATE_TYPE, .path = STR("m.key"), .type = LONG},
        {.kind = EVOLVE_UPDATE_TYPE, .path = STR("t"), .type = type_primitive(TARN_TIMESTAMP)}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(edit_one(&b, bad[i]), TARN_INVALID);
    }
    bench_close(&b);
}

static void moves(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2, "struct<a: int, b: int, c: int, p: struct<x: int, y: int>>", "", NULL);
    tarn_edit e[] = {{.kind = EVOLVE_MOVE_FIRST, .path = STR("c")},
                     {.kind = EVOLVE_MOVE_AFTER, .path = STR("a"), .other = STR("b")},
                     {.kind = EVOLVE_MOVE_BEFORE, .path = STR("p"), .other = STR("b")},
                     {.kind = EVOLVE_MOVE_FIRST, .path = STR("p.y")}};
    assert_int_equal(edit(&b, e, 4), TARN_OK);
    const tarn_type *root = metadata_schema(b.m)->root;
    static const char *const want[] = {"c", "p", "b", "a"};
    for (int i = 0; i < 4; i++) {
        assert_true(str_is(root->fields[i].name, want[i]));
    }
    assert_true(str_is(field(&b, "p")->type->fields[0].name, "y"));
    tarn_edit bad = {.kind = EVOLVE_MOVE_BEFORE, .path = STR("a"), .other = STR("p.x")};
    assert_int_equal(edit_one(&b, bad), TARN_INVALID);
    bad.other = STR("a");
    assert_int_equal(edit_one(&b, bad), TARN_INVALID);
    bench_close(&b);
}

static void identifiers(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2, "struct<a: int not null, b: string not null, c: int, d: double not null>", "",
               NULL);
    tarn_edit set = {.kind = EVOLVE_SET_IDENTIFIERS, .text = STR("a, b")};
    assert_int_equal(edit_one(&b, set), TARN_OK);
    assert_int_equal(metadata_schema(b.m)->n_identifier_ids, 2);
    tarn_edit drop = {.kind = EVOLVE_DROP_COLUMN, .path = STR("a")};
    assert_int_equal(edit_one(&b, drop), TARN_INVALID);
    tarn_edit loosen = {.kind = EVOLVE_MAKE_OPTIONAL, .path = STR("b")};
    assert_int_equal(edit_one(&b, loosen), TARN_INVALID);
    set.text = STR("c");
    assert_int_equal(edit_one(&b, set), TARN_INVALID);
    set.text = STR("d");
    assert_int_equal(edit_one(&b, set), TARN_INVALID);
    set.text = STR("");
    assert_int_equal(edit_one(&b, set), TARN_OK);
    assert_int_equal(metadata_schema(b.m)->n_identifier_ids, 0);
    assert_int_equal(edit_one(&b, loosen), TARN_OK);
    assert_false(field(&b, "b")->required);
    bench_close(&b);
}

static void renames_extend_the_mapping(void **state) { /* B11 */
    (void)state;
    bench b;
    tarn_property mapping = {
        STR("schema.name-mapping.default"),
        STR("[{\"field-id\":1,\"names\":[\"a\"]},{\"field-id\":2,\"names\":[\"b\",\"new\"]},"
            "{\"field-id\":3,\"names\":[\"p\"],\"fields\":[{\"field-id\":4,\"names\":[\"x\"]}]}]")};
    bench_open(&b, 2, "struct<a: int, b: int, p: struct<x: int>>", "", &mapping);
    tarn_edit e[] = {{.kind = EVOLVE_RENAME_COLUMN, .path = STR("a"), .new_name = STR("new")},
                     {.kind = EVOLVE_RENAME_COLUMN, .path = STR("p.x"), .new_name = STR("xx")},
                     {.kind = EVOLVE_ADD_COLUMN, .path = STR("p.q"), .type = LONG}};
    assert_int_equal(edit(&b, e, 3), TARN_OK);
    assert_int_equal(field(&b, "new")->id, 1);
    tarn_str text = properties_str(&b.m->properties, "schema.name-mapping.default", "");
    assert_true(str_is(
        text, "[{\"field-id\":1,\"names\":[\"a\",\"new\"]},{\"field-id\":2,\"names\":[\"b\"]},{"
              "\"field-id\":3,\"names\":[\"p\"],\"fields\":[{\"field-id\":4,\"names\":[\"x\","
              "\"xx\"]},{\"field-id\":5,\"names\":[\"q\"]}]}]"));
    tarn_edit taken = {.kind = EVOLVE_RENAME_COLUMN, .path = STR("b"), .new_name = STR("new")};
    assert_int_equal(edit_one(&b, taken), TARN_INVALID);
    bench_close(&b);
}

static void column_properties_follow(void **state) {
    (void)state;
    bench b;
    tarn_property mode = {STR("write.metadata.metrics.column.a"), STR("counts")};
    bench_open(&b, 2, "struct<a: int, b: int>", "", &mode);
    tarn_edit rename = {.kind = EVOLVE_RENAME_COLUMN, .path = STR("a"), .new_name = STR("z")};
    assert_int_equal(edit_one(&b, rename), TARN_OK);
    assert_int_equal(b.m->properties.count, 1);
    assert_true(str_is(b.m->properties.items[0].key, "write.metadata.metrics.column.z"));
    tarn_edit drop = {.kind = EVOLVE_DROP_COLUMN, .path = STR("z")};
    assert_int_equal(edit_one(&b, drop), TARN_OK);
    assert_int_equal(b.m->properties.count, 0);
    bench_close(&b);
}

static void partitions_version_2(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2, "struct<a: int, ts: timestamp, s: string>", "day(ts)", NULL);
    tarn_edit add = {.kind = EVOLVE_ADD_PARTITION_FIELD, .text = STR("bucket(16, s)")};
    assert_int_equal(edit_one(&b, add), TARN_OK);
    const tarn_spec *spec = metadata_spec(b.m);
    assert_int_equal(spec->n_fields, 2);
    assert_true(str_is(spec->fields[1].name, "s_bucket_16"));
    assert_int_equal(spec->fields[1].field_id, 1001);
    assert_int_equal(edit_one(&b, add), TARN_INVALID);
    tarn_edit drop = {.kind = EVOLVE_DROP_PARTITION_FIELD, .text = STR("day(ts)")};
    assert_int_equal(edit_one(&b, drop), TARN_OK);
    spec = metadata_spec(b.m);
    assert_int_equal(spec->n_fields, 1);
    assert_int_equal(spec->fields[0].field_id, 1001);
    /* back again: the old id and name */
    add.text = STR("day(ts)");
    assert_int_equal(edit_one(&b, add), TARN_OK);
    spec = metadata_spec(b.m);
    assert_int_equal(spec->fields[1].field_id, 1000);
    assert_true(str_is(spec->fields[1].name, "ts_day"));
    assert_int_equal(b.m->last_partition_id, 1001);
    tarn_edit set = {.kind = EVOLVE_SET_PARTITION, .text = STR("")};
    assert_int_equal(edit_one(&b, set), TARN_OK);
    assert_int_equal(metadata_spec(b.m)->n_fields, 0);
    int32_t n_specs = b.m->n_specs;
    set.text = STR("day(ts)"); /* the first spec again: nothing is added */
    assert_int_equal(edit_one(&b, set), TARN_OK);
    assert_int_equal(b.m->default_spec_id, 0);
    assert_int_equal(b.m->n_specs, n_specs);
    tarn_edit rename = {
        .kind = EVOLVE_RENAME_PARTITION_FIELD, .path = STR("ts_day"), .new_name = STR("d")};
    assert_int_equal(edit_one(&b, rename), TARN_OK);
    assert_true(str_is(metadata_spec(b.m)->fields[0].name, "d"));
    assert_int_equal(metadata_spec(b.m)->fields[0].field_id, 1000);
    tarn_edit source = {.kind = EVOLVE_DROP_COLUMN, .path = STR("ts")};
    assert_int_equal(edit_one(&b, source), TARN_INVALID);
    bench_close(&b);
}

static void partitions_version_1(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 1, "struct<a: int, ts: timestamp, s: string>", "day(ts), a", NULL);
    tarn_edit drop = {.kind = EVOLVE_DROP_PARTITION_FIELD, .text = STR("ts_day")};
    assert_int_equal(edit_one(&b, drop), TARN_OK);
    const tarn_spec *spec = metadata_spec(b.m);
    assert_int_equal(spec->n_fields, 2); /* it stays in its place */
    assert_int_equal(spec->fields[0].transform.kind, TRANSFORM_VOID);
    assert_int_equal(spec->fields[1].field_id, 1001);
    tarn_edit add = {.kind = EVOLVE_ADD_PARTITION_FIELD, .text = STR("day(ts)")};
    add.new_name = STR("ts_day");
    assert_int_equal(edit_one(&b, add), TARN_OK);
    spec = metadata_spec(b.m);
    assert_int_equal(spec->n_fields, 3);
    assert_true(str_is(spec->fields[0].name, "ts_day_1000"));
    assert_int_equal(spec->fields[2].field_id, 1002);
    bench_close(&b);
}

static void sort_orders(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2, "struct<a: int, s: string>", "", NULL);
    tarn_edit set = {.kind = EVOLVE_SET_SORT_ORDER, .text = STR("a desc, s")};
    assert_int_equal(edit_one(&b, set), TARN_OK);
    assert_int_equal(b.m->default_sort_order_id, 1);
    assert_int_equal(metadata_sort_order(b.m)->n_fields, 2);
    set.text = STR("");
    assert_int_equal(edit_one(&b, set), TARN_OK);
    assert_int_equal(b.m->default_sort_order_id, 0);
    bench_close(&b);
}

static void edits_carry_requirements(void **state) {
    (void)state;
    bench b;
    bench_open(&b, 2, "struct<a: int>", "", NULL);
    const tarn_metadata *before = b.m;
    tarn_edit e = {.kind = EVOLVE_ADD_COLUMN, .path = STR("n"), .type = LONG};
    assert_int_equal(edit_one(&b, e), TARN_OK);
    assert_int_equal(b.set.n_requirements, 3);
    /* the same change set on the table as it is now */
    tarn_error err = TARN_ERROR_INIT;
    assert_int_equal(change_check(b.m, &b.set, &err), TARN_CONFLICT);
    assert_ok(change_check(before, &b.set, &err));
    bench_close(&b);
}

static tarn_str value_of(const tarn_properties *p, const char *key) {
    tarn_str v = STR_NULL;
    (void)properties_get(p, key, &v);
    return v;
}

static void summaries(void **state) {
    (void)state;
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    bench_open(&b, 2, "struct<a: int>", "", NULL);
    summary_builder s = {.changed_partitions = 2};
    tarn_file f = {.record_count = 10, .size_bytes = 100, .content_size = -1};
    summary_add(&s.added, &f);
    f.content = TARN_CONTENT_POSITION_DELETES;
    f.format = TARN_FORMAT_PUFFIN;
    f.content_size = 7;
    summary_add(&s.added, &f);
    tarn_property extra[] = {{STR("app"), STR("x")}, {STR("total-records"), STR("9")}};
    tarn_properties given = {2, extra}, out, next;
    assert_ok(summary_make(&b.arena, "append", &s, &given, NULL, &out, &err));
    assert_true(str_is(out.items[0].key, "operation"));
    assert_true(str_is(value_of(&out, "app"), "x"));
    assert_true(str_is(value_of(&out, "added-records"), "10"));
    assert_true(str_is(value_of(&out, "added-files-size"), "107"));
    assert_true(str_is(value_of(&out, "added-dvs"), "1"));
    assert_true(str_is(value_of(&out, "added-delete-files"), "1"));
    assert_null(value_of(&out, "deleted-records").data);
    assert_true(str_is(value_of(&out, "changed-partition-count"), "2"));
    assert_true(str_is(value_of(&out, "total-records"), "10"));
    assert_true(str_is(value_of(&out, "total-position-deletes"), "10"));
    tarn_snapshot parent = {.summary = out};
    summary_builder gone = {.changed_partitions = -1};
    f = (tarn_file){.record_count = 4, .size_bytes = 50, .content_size = -1};
    summary_add(&gone.removed, &f);
    assert_ok(summary_make(&b.arena, "delete", &gone, NULL, &parent, &next, &err));
    assert_true(str_is(value_of(&next, "deleted-records"), "4"));
    assert_true(str_is(value_of(&next, "total-records"), "6"));
    assert_true(str_is(value_of(&next, "total-data-files"), "0"));
    assert_null(value_of(&next, "changed-partition-count").data);
    parent.summary = (tarn_properties){1, extra}; /* a parent that does not know */
    assert_ok(summary_make(&b.arena, "append", &s, NULL, &parent, &next, &err));
    assert_null(value_of(&next, "total-records").data);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_come_and_go),
        cmocka_unit_test(defaults_need_version_3),
        cmocka_unit_test(types_only_widen),
        cmocka_unit_test(moves),
        cmocka_unit_test(identifiers),
        cmocka_unit_test(renames_extend_the_mapping),
        cmocka_unit_test(column_properties_follow),
        cmocka_unit_test(partitions_version_2),
        cmocka_unit_test(partitions_version_1),
        cmocka_unit_test(sort_orders),
        cmocka_unit_test(edits_carry_requirements),
        cmocka_unit_test(summaries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
