/* Goal: rows of a file become rows of the wanted schema by field id, with renames, promotions,
 * defaults and the name mapping (B11), and columns that fit are shared.
 * Method: file and wanted types as JSON, rows as JSON, the read batch made as a reader would from
 * project_read_type. */
#include "rows.h"

#include "table/project.h"

#define FIELD(id, name, type)                                                                      \
    "{\"id\":" id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
#define STRUCT(fields) "{\"type\":\"struct\",\"fields\":[" fields "]}"

static const tarn_type *parse_json_type(tarn_arena *arena, const char *text) {
    tarn_error err = TARN_ERROR_INIT;
    json_value *json = NULL;
    const tarn_type *type = NULL;
    assert_ok(json_parse(arena, str_of(text), "type", &json, &err));
    assert_ok(type_from_json(arena, json, &type, &err));
    return type;
}

typedef struct projection_case {
    const tarn_type *file;
    const tarn_type *wanted;
    project_options options;
    const char *read_text; /* the type that is read */
    const char *rows;      /* as read */
    const char *want;      /* as wanted */
} projection_case;

static void check_case(tarn_env *env, tarn_arena *arena, const projection_case *c) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_projection *plan = NULL;
    tarn_batch in;
    tarn_batch out;
    tarn_batch slice;
    tarn_buf buf;
    buf_init(&buf, env, 0);
    assert_ok(project_plan(arena, c->file, c->wanted, &c->options, &plan, &err));
    assert_ok(type_text(project_read_type(plan), &buf, &err));
    assert_ok(buf_append_char(&buf, '\0', &err));
    assert_string_equal((const char *)buf.data, c->read_text);
    assert_ok(rows_read(env, arena, project_read_type(plan), c->rows, &in, &err));
    int64_t rows = batch_rows(&in);
    /* Once with an offset in every array, once as read. */
    assert_ok(batch_slice(env, &in, rows - 1, 1, &slice, &err));
    assert_ok(project_apply(plan, env, &slice, &out, &err));
    assert_int_equal(batch_rows(&out), 1);
    const char *last = c->want;
    for (int64_t i = 0; i + 1 < rows; i++) {
        last = strchr(last, '\n') + 1;
    }
    rows_check(env, &out, last);
    batch_release(&out);
    assert_ok(project_apply(plan, env, &in, &out, &err));
    assert_null(in.array.release);
    assert_ptr_equal(out.type, c->wanted);
    rows_check(env, &out, c->want);
    batch_release(&out);
    buf_release(&buf);
}

/* clang-format off: the formatter makes stairs of nested macros */
#define LIST_OF(fields)                                                                            \
    "{\"type\":\"list\",\"element-id\":7,\"element-required\":false,\"element\":" STRUCT(fields) "}"
#define COMMA ","

static const char by_id_file[] =
    STRUCT(FIELD("1", "a", "\"int\"") COMMA FIELD("2", "gone", "\"string\"") COMMA FIELD(
        "3", "s", STRUCT(FIELD("4", "x", "\"float\"") COMMA FIELD("5", "y", "\"date\"")))
               COMMA FIELD("6", "l", LIST_OF(FIELD("8", "p", "\"int\""))));

static const char by_id_wanted[] = STRUCT(
    FIELD("6", "items", LIST_OF(FIELD("9", "q", "\"string\"") COMMA FIELD("8", "p", "\"long\"")))
        COMMA FIELD("1", "renamed", "\"long\"") COMMA FIELD(
            "3", "s",
            STRUCT(FIELD("5", "when", "\"timestamp\"") COMMA FIELD("4", "x", "\"double\""))) COMMA
    "{\"id\":10,\"name\":\"d\",\"required\":true,\"type\":\"decimal(5, 2)\","
    "\"initial-default\":\"1.25\"}");

/* clang-format on */

static void test_by_id(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    projection_case c = {
        .file = parse_json_type(&arena, by_id_file),
        .wanted = parse_json_type(&arena, by_id_wanted),
        .read_text = "struct<a: int, s: struct<x: float, y: date>, l: list<struct<p: int>>>",
        .rows = "{\"a\":1,\"s\":{\"x\":0.5,\"y\":\"1970-01-02\"},\"l\":[{\"p\":1},null]}\n"
                "{\"a\":null,\"s\":null,\"l\":null}\n"
                "{\"a\":-7,\"s\":{\"x\":\"NaN\",\"y\":\"1969-12-31\"},\"l\":[{\"p\":null}]}\n",
        .want = "{\"items\":[{\"q\":null,\"p\":1},null],\"renamed\":1,\"s\":{\"when\":"
                "\"1970-01-02T00:00:00.000000\",\"x\":0.5},\"d\":\"1.25\"}\n"
                "{\"items\":null,\"renamed\":null,\"s\":null,\"d\":\"1.25\"}\n"
                "{\"items\":[{\"q\":null,\"p\":null}],\"renamed\":-7,\"s\":{\"when\":"
                "\"1969-12-31T00:00:00.000000\",\"x\":\"NaN\"},\"d\":\"1.25\"}\n"};
    check_case(env, &arena, &c);
    arena_release(&arena);
    test_env_done(env);
}

/* A struct and a map of which only new fields are wanted still know their nulls and lengths. */
static void test_only_new_fields(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    projection_case c = {
        .file = parse_json_type(
            &arena,
            STRUCT(FIELD(
                "1", "s",
                STRUCT(FIELD("2", "x", "\"int\"") "," FIELD(
                    "3", "y", "\"int\""))) "," FIELD("4", "m",
                                                     "{\"type\":\"map\",\"key-id\":5,\"key\":"
                                                     "\"string\",\"value-id\":6,"
                                                     "\"value-required\":false,\"value\":" STRUCT(
                                                         FIELD("7", "v", "\"int\"")) "}"))),
        .wanted = parse_json_type(
            &arena,
            STRUCT(FIELD("1", "s", STRUCT(FIELD("12", "new", "\"int\""))) "," FIELD(
                "4", "m",
                "{\"type\":\"map\",\"key-id\":5,\"key\":\"string\",\"value-id\":6,"
                "\"value-required\":false,\"value\":" STRUCT(FIELD("17", "w", "\"string\"")) "}"))),
        /* Structs are read by their first leaf. */
        .read_text = "struct<s: struct<x: int>, m: map<string, struct<v: int>>>",
        .rows = "{\"s\":{\"x\":1},\"m\":{\"keys\":[\"a\",\"b\"],\"values\":[{\"v\":1},null]}}\n"
                "{\"s\":null,\"m\":{\"keys\":[],\"values\":[]}}\n",
        .want =
            "{\"s\":{\"new\":null},\"m\":{\"keys\":[\"a\",\"b\"],\"values\":[{\"w\":null},null]}"
            "}\n"
            "{\"s\":null,\"m\":{\"keys\":[],\"values\":[]}}\n"};
    check_case(env, &arena, &c);
    arena_release(&arena);
    test_env_done(env);
}

static void test_name_mapping(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    json_value *mapping = NULL;
    const tarn_type *file = NULL;
    tarn_projection *plan = NULL;
    arena_init(&arena, env);
    assert_ok(type_from_text(
        &arena,
        STR("struct<first: string, second: string, third: string, n: int, s: struct<x: int>>"),
        &file, &err));
    assert_ok(json_parse(&arena,
                         STR("[{\"field-id\":1,\"names\":[\"first\"]},{\"field-id\":2,\"names\":["
                             "\"second\",\"renamed\"]},{\"field-id\":3,\"names\":[\"third\"]},"
                             "{\"field-id\":4,\"names\":[\"n\"]},{\"field-id\":5,\"names\":[\"s\"],"
                             "\"fields\":[{\"field-id\":6,\"names\":[\"x\"]}]}]"),
                         "mapping", &mapping, &err));
    projection_case c = {
        .file = file,
        .wanted = parse_json_type(
            &arena,
            STRUCT(
                FIELD("1", "first", "\"string\"") "," FIELD("2", "renamed", "\"string\"") "," FIELD(
                    "4", "n", "\"int\"") "," FIELD("5", "t", STRUCT(FIELD("6", "z", "\"int\""))))),
        .options = {.name_mapping = mapping},
        .read_text = "struct<first: string, second: string, n: int, s: struct<x: int>>",
        .rows = "{\"first\":\"aaa\",\"second\":\"bbb\",\"n\":7,\"s\":{\"x\":5}}\n",
        .want = "{\"first\":\"aaa\",\"renamed\":\"bbb\",\"n\":7,\"t\":{\"z\":5}}\n"};
    check_case(env, &arena, &c);

    /* Without a mapping nothing is found, not by name either. */
    c.options.name_mapping = NULL;
    c.read_text = "struct<>";
    c.rows = "{}\n{}\n";
    c.want = "{\"first\":null,\"renamed\":null,\"n\":null,\"t\":null}\n"
             "{\"first\":null,\"renamed\":null,\"n\":null,\"t\":null}\n";
    check_case(env, &arena, &c);

    /* A required column then is an error that names the file and what is missing. */
    const tarn_type *required = parse_json_type(
        &arena, "{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"first\",\"required\":true,"
                "\"type\":\"string\"}]}");
    c.options.file = "x.parquet";
    assert_code(project_plan(&arena, file, required, &c.options, &plan, &err), TARN_CORRUPT);
    assert_non_null(strstr(err.message, "x.parquet"));
    assert_non_null(strstr(err.message, "name mapping"));

    /* Constants stand in for missing columns, and only for those. */
    project_constant constant = {1, value_str(type_primitive(TARN_STRING), STR("part"))};
    c.options.constants = &constant;
    c.options.n_constants = 1;
    c.want = "{\"first\":\"part\",\"renamed\":null,\"n\":null,\"t\":null}\n"
             "{\"first\":\"part\",\"renamed\":null,\"n\":null,\"t\":null}\n";
    check_case(env, &arena, &c);
    arena_release(&arena);
    test_env_done(env);
}

static void test_by_name_and_sharing(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_type *file = NULL;
    const tarn_type *wanted = NULL;
    tarn_projection *plan = NULL;
    project_options options = {.by_name = true};
    tarn_batch in;
    tarn_batch out;
    arena_init(&arena, env);
    assert_ok(type_from_text(&arena, STR("struct<a: int, b: string>"), &file, &err));
    assert_ok(type_from_text(&arena, STR("struct<b: string, c: int, a: int>"), &wanted, &err));
    assert_ok(project_plan(&arena, file, wanted, &options, &plan, &err));
    assert_int_equal(project_source_node(plan, 77), -1);
    assert_ok(rows_read(env, &arena, file, "{\"a\":1,\"b\":\"x\"}\n", &in, &err));
    const void *bytes = in.array.children[1]->buffers[2];
    assert_ok(project_apply(plan, env, &in, &out, &err));
    assert_ptr_equal(out.array.children[0]->buffers[2], bytes);
    rows_check(env, &out, "{\"b\":\"x\",\"c\":null,\"a\":1}\n");
    batch_release(&out);

    assert_ok(type_from_text(&arena, STR("struct<a: boolean>"), &wanted, &err));
    assert_code(project_plan(&arena, file, wanted, &options, &plan, &err), TARN_INVALID);
    arena_release(&arena);
    test_env_done(env);
}

static void test_other_encodings(void **state) {
    (void)state;
    static const struct {
        const char *from;
        const char *to;
        const char *value;
        const char *want; /* NULL: refused */
    } cases[] = {
        {"fixed[16]", "uuid", "\"f79c3e09677c4bbda4793f349cb785e7\"",
         "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\""},
        {"binary", "string", "\"616263\"", "\"abc\""},
        {"binary", "string", "\"ff\"", NULL},
        {"decimal(5, 2)", "decimal(9, 2)", "\"1.50\"", "\"1.50\""},
        {"timestamp_ns", "timestamp", "\"2020-01-01T00:00:00.000001000\"",
         "\"2020-01-01T00:00:00.000001\""},
        {"timestamp_ns", "timestamp", "\"2020-01-01T00:00:00.000001001\"", NULL},
        {"timestamp", "timestamp_ns", "\"2300-01-01T00:00:00.000000\"", NULL},
        {"timestamp", "timestamptz", "\"2020-01-01T00:00:00.000000\"",
         "\"2020-01-01T00:00:00.000000+00:00\""},
        {"unknown", "int", "null", "null"},
        {"fixed[2]", "binary", "\"0102\"", "\"0102\""},
        {"date", "timestamp_ns", "\"1970-01-02\"", "\"1970-01-02T00:00:00.000000000\""},
    };
    tarn_env *env = test_env();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_arena arena;
        tarn_projection *plan = NULL;
        tarn_batch in;
        tarn_batch out;
        project_options options = {.by_name = true};
        char text[256];
        const tarn_type *file = NULL;
        const tarn_type *wanted = NULL;
        arena_init(&arena, env);
        snprintf(text, sizeof text, "struct<v: %s>", cases[i].from);
        assert_ok(type_from_text(&arena, str_of(text), &file, &err));
        snprintf(text, sizeof text, "struct<v: %s>", cases[i].to);
        assert_ok(type_from_text(&arena, str_of(text), &wanted, &err));
        assert_ok(project_plan(&arena, file, wanted, &options, &plan, &err));
        snprintf(text, sizeof text, "{\"v\":null}\n{\"v\":%s}\n", cases[i].value);
        assert_ok(rows_read(env, &arena, file, text, &in, &err));
        tarn_code code = project_apply(plan, env, &in, &out, &err);
        if (cases[i].want == NULL) {
            assert_int_equal(code, TARN_CORRUPT);
            rows_check(env, &in, text); /* untouched */
            batch_release(&in);
        } else {
            assert_ok(code);
            snprintf(text, sizeof text, "{\"v\":null}\n{\"v\":%s}\n", cases[i].want);
            rows_check(env, &out, text);
            batch_release(&out);
        }
        arena_release(&arena);
    }
    test_env_done(env);
}

static tarn_code exercise(tarn_env *env, tarn_error *err) {
    tarn_arena arena;
    const tarn_type *file = NULL;
    const tarn_type *wanted = NULL;
    tarn_projection *plan = NULL;
    project_options options = {.by_name = true};
    tarn_batch in = {0};
    tarn_batch out = {0};
    tarn_code code;
    arena_init(&arena, env);
    TRY(type_from_text(&arena, STR("struct<a: int, s: struct<x: int>, m: map<string, int>>"), &file,
                       err));
    TRY(type_from_text(
        &arena,
        STR("struct<m: map<string, long>, s: struct<y: string, x: int>, z: list<int>, a: long>"),
        &wanted, err));
    TRY(project_plan(&arena, file, wanted, &options, &plan, err));
    TRY(rows_read(env, &arena, project_read_type(plan),
                  "{\"a\":1,\"s\":{\"x\":3},\"m\":{\"keys\":[\"k\"],\"values\":[4]}}\n"
                  "{\"a\":null,\"s\":null,\"m\":null}\n",
                  &in, err));
    TRY(project_apply(plan, env, &in, &out, err));
done:
    batch_release(&in);
    batch_release(&out);
    arena_release(&arena);
    return code;
}

static void test_without_memory(void **state) {
    (void)state;
    each_failure(exercise);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_id),           cmocka_unit_test(test_only_new_fields),
        cmocka_unit_test(test_name_mapping),    cmocka_unit_test(test_by_name_and_sharing),
        cmocka_unit_test(test_other_encodings), cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
