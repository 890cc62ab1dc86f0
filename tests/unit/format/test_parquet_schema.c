/* parquet_schema.c, parquet_schema_make.c. Goal: a type made into a Parquet schema and read back is
 * the type; levels are right; legacy forms mean what the rules of backward compatibility say.
 * Method: a type of everything both ways, and hand-made elements. */
#include "../../test.h"

#include "format/parquet/parquet_schema.h"

static void assert_type_text(tarn_env *env, const tarn_type *type, const char *want) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf text;
    buf_init(&text, env, 0);
    assert_ok(type_text(type, &text, &err));
    assert_ok(buf_append_char(&text, '\0', &err));
    assert_string_equal((const char *)text.data, want);
    buf_release(&text);
}

static void test_both_ways(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_type *type = NULL;
    const parquet_schema *made = NULL, *read = NULL;
    arena_init(&arena, env);
    assert_ok(type_from_text(
        &arena,
        STR("struct<a: int, b: long, c: float, d: double, e: decimal(9, 2), f: decimal(18, 0), g: "
            "decimal(38, 10), h: date, i: time, j: timestamp, k: timestamptz, l: timestamp_ns, m: "
            "timestamptz_ns, n: string, o: uuid, p: fixed[7], q: binary, r: boolean, s: "
            "list<list<int>>, t: map<string, struct<x: int, y: list<string>>>, u: struct<v: int>>"),
        &type, &err));
    int32_t next_id = 1;
    type = type_assign_ids(&arena, type, &next_id);
    assert_ok(parquet_schema_from_type(&arena, type, "table", &made, &err));
    assert_ok(
        parquet_schema_from_elements(&arena, made->elements, made->n_elements, false, &read, &err));
    assert_true(type_eq(read->root, type));
    assert_int_equal(read->n_leaves, made->n_leaves);
    assert_int_equal(read->n_nodes, made->n_nodes);
    for (int32_t i = 0; i < made->n_leaves; i++) {
        const parquet_leaf *a = &made->leaves[i], *b = &read->leaves[i];
        assert_true(a->max_def == b->max_def && a->max_rep == b->max_rep && a->node == b->node);
        assert_true(str_eq(a->path, b->path) && a->n_parts == b->n_parts);
    }
    for (int32_t i = 0; i < made->n_nodes; i++) {
        const parquet_node *a = &made->nodes[i], *b = &read->nodes[i];
        assert_true(a->leaf == b->leaf && a->span == b->span && a->def == b->def);
        assert_true(a->def_entry == b->def_entry && a->rep == b->rep);
        assert_true(a->first_leaf == b->first_leaf && a->end_leaf == b->end_leaf);
    }
    const parquet_leaf *last = &made->leaves[made->n_leaves - 2];
    assert_true(str_is(last->path, "t.key_value.value.y.list.element"));
    assert_int_equal(last->max_rep, 2);
    assert_int_equal(last->max_def, 6);
    arena_release(&arena);
    test_env_done(env);
}

typedef struct shape {
    const char *name;
    int32_t children; /* -1: a leaf of type int32 */
    int32_t repetition;
    int32_t converted; /* -1: none */
} shape;

#define LEAF (-1)
#define NONE (-1)

typedef struct legacy_case {
    shape elements[8];
    int32_t n;
    const char *type;
} legacy_case;

static void test_legacy_forms(void **state) {
    (void)state;
    static const legacy_case cases[] = {
        {{{"r", 1, 0, NONE}, {"x", LEAF, PARQUET_REPEATED, NONE}},
         2,
         "struct<x: list<int not null> not null>"},
        {{{"r", 1, 0, NONE},
          {"x", 1, PARQUET_OPTIONAL, PARQUET_CONVERTED_LIST},
          {"element", LEAF, PARQUET_REPEATED, NONE}},
         3,
         "struct<x: list<int not null>>"},
        {{{"r", 1, 0, NONE},
          {"x", 1, PARQUET_OPTIONAL, PARQUET_CONVERTED_LIST},
          {"element", 2, PARQUET_REPEATED, NONE},
          {"a", LEAF, PARQUET_REQUIRED, NONE},
          {"b", LEAF, PARQUET_REQUIRED, NONE}},
         5,
         "struct<x: list<struct<a: int not null, b: int not null> not null>>"},
        {{{"r", 1, 0, NONE},
          {"x", 1, PARQUET_OPTIONAL, PARQUET_CONVERTED_LIST},
          {"array", 1, PARQUET_REPEATED, NONE},
          {"a", LEAF, PARQUET_REQUIRED, NONE}},
         4,
         "struct<x: list<struct<a: int not null> not null>>"},
        {{{"r", 1, 0, NONE},
          {"x", 1, PARQUET_OPTIONAL, PARQUET_CONVERTED_LIST},
          {"x_tuple", 1, PARQUET_REPEATED, NONE},
          {"a", LEAF, PARQUET_REQUIRED, NONE}},
         4,
         "struct<x: list<struct<a: int not null> not null>>"},
        {{{"r", 1, 0, NONE},
          {"x", 1, PARQUET_OPTIONAL, PARQUET_CONVERTED_LIST},
          {"bag", 1, PARQUET_REPEATED, NONE},
          {"array_element", LEAF, PARQUET_OPTIONAL, NONE}},
         4,
         "struct<x: list<int>>"},
        {{{"r", 1, 0, NONE},
          {"x", 1, PARQUET_OPTIONAL, PARQUET_CONVERTED_LIST},
          {"list", 1, PARQUET_REPEATED, NONE},
          {"e", LEAF, PARQUET_REPEATED, NONE}},
         4,
         "struct<x: list<struct<e: list<int not null> not null> not null>>"},
        {{{"r", 1, 0, NONE},
          {"x", 1, PARQUET_OPTIONAL, PARQUET_CONVERTED_MAP_KEY_VALUE},
          {"map", 2, PARQUET_REPEATED, NONE},
          {"key", LEAF, PARQUET_REQUIRED, NONE},
          {"value", LEAF, PARQUET_OPTIONAL, NONE}},
         5,
         "struct<x: map<int, int>>"},
        {{{"r", 1, 0, NONE},
          {"x", 1, PARQUET_OPTIONAL, PARQUET_CONVERTED_MAP},
          {"map", 2, PARQUET_REPEATED, PARQUET_CONVERTED_MAP_KEY_VALUE},
          {"k", LEAF, PARQUET_REQUIRED, NONE},
          {"v", LEAF, PARQUET_OPTIONAL, NONE}},
         5,
         "struct<x: map<int, int>>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_env *env = test_env();
        tarn_error err = TARN_ERROR_INIT;
        tarn_arena arena;
        parquet_element elements[8];
        const parquet_schema *schema = NULL;
        arena_init(&arena, env);
        memset(elements, 0, sizeof elements);
        for (int32_t k = 0; k < cases[i].n; k++) {
            const shape *s = &cases[i].elements[k];
            parquet_element *e = &elements[k];
            e->name = str_of(s->name);
            e->repetition = s->repetition;
            e->num_children = s->children;
            e->type = PARQUET_INT32;
            e->converted = s->converted;
            THRIFT_SET(e,
                       s->children == LEAF ? PARQUET_ELEMENT_TYPE : PARQUET_ELEMENT_NUM_CHILDREN);
            THRIFT_SET(e, PARQUET_ELEMENT_REPETITION);
            e->has |= s->converted != NONE ? THRIFT_BIT(PARQUET_ELEMENT_CONVERTED) : 0;
        }
        assert_ok(parquet_schema_from_elements(&arena, elements, cases[i].n, false, &schema, &err));
        assert_type_text(env, schema->root, cases[i].type);
        arena_release(&arena);
        test_env_done(env);
    }
}

static void test_bad_schemas(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    parquet_element elements[300];
    const parquet_schema *schema = NULL;
    const tarn_type *type = NULL;
    arena_init(&arena, env);
    memset(elements, 0, sizeof elements);
    for (int i = 0; i < 300; i++) {
        elements[i].name = STR("x");
        elements[i].num_children = 1;
        THRIFT_SET(&elements[i], PARQUET_ELEMENT_NUM_CHILDREN);
    }
    assert_code(parquet_schema_from_elements(&arena, elements, 300, false, &schema, &err),
                TARN_LIMIT);
    assert_code(parquet_schema_from_elements(&arena, elements, 20, false, &schema, &err),
                TARN_CORRUPT); /* children are missing */
    elements[0].num_children = -1;
    assert_code(parquet_schema_from_elements(&arena, elements, 1, false, &schema, &err),
                TARN_CORRUPT);
    elements[0].num_children = 0;
    assert_code(parquet_schema_from_elements(&arena, elements, 2, false, &schema, &err),
                TARN_CORRUPT); /* too many elements */
    assert_code(parquet_schema_from_elements(&arena, elements, 0, false, &schema, &err),
                TARN_CORRUPT);
    /* Nothing that Parquet could hold. */
    assert_ok(type_from_text(&arena, STR("struct<a: struct<b: unknown>>"), &type, &err));
    assert_code(parquet_schema_from_type(&arena, type, "table", &schema, &err), TARN_INVALID);
    arena_release(&arena);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_ways),
                                       cmocka_unit_test(test_legacy_forms),
                                       cmocka_unit_test(test_bad_schemas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
