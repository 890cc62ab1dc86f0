/* thrift.c and parquet_meta.c. Goal: what is written is read again field by field, unknown fields
 * are passed over, damage is an error. Method: a footer with every kind of field, hand-made bytes,
 * and every cut of good bytes. */
#include "../../test.h"

#include "format/parquet/parquet_meta.h"

static parquet_footer make_footer(void) {
    static parquet_element schema[2];
    static parquet_key_value kv[20];
    static parquet_column_order orders[1];
    static parquet_chunk chunk;
    static parquet_row_group group;
    static const int32_t encodings[2] = {PARQUET_PLAIN, PARQUET_RLE_DICTIONARY};
    static const tarn_str path[1] = {{"x", 1}};
    memset(schema, 0, sizeof schema);
    schema[0] = (parquet_element){.name = STR("root"), .num_children = 1};
    THRIFT_SET(&schema[0], PARQUET_ELEMENT_NUM_CHILDREN);
    schema[1] = (parquet_element){.name = STR("x"), .type = PARQUET_INT64, .field_id = 300};
    THRIFT_SET(&schema[1], PARQUET_ELEMENT_TYPE);
    THRIFT_SET(&schema[1], PARQUET_ELEMENT_FIELD_ID);
    THRIFT_SET(&schema[1], PARQUET_ELEMENT_LOGICAL);
    THRIFT_SET(&schema[1].logical, PARQUET_LOGICAL_TIMESTAMP);
    schema[1].logical.timestamp.is_adjusted_to_utc = true;
    THRIFT_SET(&schema[1].logical.timestamp.unit, PARQUET_UNIT_MICROS);
    for (int i = 0; i < 20; i++) {
        kv[i] = (parquet_key_value){.key = STR("key"), .value = STR("value")};
        if (i % 2 == 0) {
            THRIFT_SET(&kv[i], PARQUET_KEY_VALUE_VALUE);
        }
    }
    memset(&chunk, 0, sizeof chunk);
    THRIFT_SET(&chunk, PARQUET_CHUNK_META);
    chunk.meta = (parquet_column_meta){.type = PARQUET_INT64,
                                       .encodings = encodings,
                                       .n_encodings = 2,
                                       .path = path,
                                       .n_path = 1,
                                       .num_values = INT64_MAX,
                                       .data_page_offset = 4,
                                       .dictionary_page_offset = -1};
    THRIFT_SET(&chunk.meta, PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET);
    THRIFT_SET(&chunk.meta, PARQUET_COLUMN_STATISTICS);
    chunk.meta.statistics = (parquet_statistics){.is_max_exact = true, .null_count = INT64_MIN};
    THRIFT_SET(&chunk.meta.statistics, PARQUET_STATS_IS_MAX_EXACT);
    THRIFT_SET(&chunk.meta.statistics, PARQUET_STATS_IS_MIN_EXACT);
    THRIFT_SET(&chunk.meta.statistics, PARQUET_STATS_NULL_COUNT);
    group = (parquet_row_group){.columns = &chunk, .n_columns = 1, .num_rows = 7, .ordinal = -3};
    THRIFT_SET(&group, PARQUET_ROW_GROUP_ORDINAL);
    THRIFT_SET(&orders[0], PARQUET_TYPE_ORDER);
    parquet_footer footer = {.version = 2,
                             .schema = schema,
                             .n_schema = 2,
                             .num_rows = 7,
                             .row_groups = &group,
                             .n_row_groups = 1,
                             .key_values = kv,
                             .n_key_values = 20,
                             .column_orders = orders,
                             .n_column_orders = 1};
    THRIFT_SET(&footer, PARQUET_FOOTER_KEY_VALUES);
    THRIFT_SET(&footer, PARQUET_FOOTER_COLUMN_ORDERS);
    return footer;
}

static void test_footer_round(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf bytes, again;
    arena_init(&arena, env);
    buf_init(&bytes, env, 0);
    buf_init(&again, env, 0);
    const parquet_footer footer = make_footer();
    assert_ok(thrift_encode(&parquet_footer_thrift, &footer, &bytes, &err));
    parquet_footer got;
    size_t used = 0;
    assert_ok(thrift_decode(&arena, &parquet_footer_thrift, buf_str(&bytes), "footer", &got, &used,
                            &err));
    assert_int_equal(used, bytes.len);
    assert_int_equal(got.n_key_values, 20);
    assert_true(THRIFT_HAS(&got.key_values[0], PARQUET_KEY_VALUE_VALUE));
    assert_false(THRIFT_HAS(&got.key_values[1], PARQUET_KEY_VALUE_VALUE));
    assert_false(THRIFT_HAS(&got, PARQUET_FOOTER_CREATED_BY));
    assert_int_equal(got.schema[1].field_id, 300);
    assert_true(got.schema[1].logical.timestamp.is_adjusted_to_utc);
    const parquet_chunk *chunk = &got.row_groups[0].columns[0];
    assert_true(chunk->meta.num_values == INT64_MAX);
    assert_true(chunk->meta.statistics.null_count == INT64_MIN);
    assert_true(chunk->meta.statistics.is_max_exact);
    assert_false(chunk->meta.statistics.is_min_exact);
    assert_true(THRIFT_HAS(&chunk->meta.statistics, PARQUET_STATS_IS_MIN_EXACT));
    assert_int_equal(chunk->meta.encodings[1], PARQUET_RLE_DICTIONARY);
    assert_int_equal(got.row_groups[0].ordinal, -3);
    assert_ok(thrift_encode(&parquet_footer_thrift, &got, &again, &err));
    assert_int_equal(again.len, bytes.len);
    assert_memory_equal(again.data, bytes.data, bytes.len);
    /* Every cut is an error. */
    for (size_t len = 0; len < bytes.len; len++) {
        assert_code(thrift_decode(&arena, &parquet_footer_thrift, str_make(bytes.data, len),
                                  "footer", &got, NULL, &err),
                    TARN_CORRUPT);
    }
    buf_release(&bytes);
    buf_release(&again);
    arena_release(&arena);
    test_env_done(env);
}

typedef struct raw_case {
    const char *bytes;
    size_t len;
    tarn_code code;
} raw_case;

/* Dictionary page headers (num_values 1, encoding 2, is_sorted 3) in a page header, by hand. */
static void test_raw_bytes(void **state) {
    (void)state;
#define RAW(text) text, sizeof text - 1
    static const raw_case cases[] = {
        {RAW("\x15\x00\x15\x08\x15\x08\x00"), TARN_OK},
        /* unknown fields: list of i32, map of binary to bool, struct, double, set, long id form */
        {RAW("\x15\x00\x15\x08\x15\x08\x79\x25\x02\x04\x1b\x01\x82\x01\x61\x01\x1c\x11\x00\x17"
             "12345678\x1a\x11\x01\x0c\xd0\x0f\x00\x00"),
         TARN_OK},
        {RAW("\x15\x00\x15\x08\x00"), TARN_CORRUPT},             /* lacks compressed_size */
        {RAW("\x18\x00\x15\x08\x15\x08\x00"), TARN_CORRUPT},     /* type is a binary */
        {RAW("\x15\x00\x15\x08\x15\x08\x1d\x00"), TARN_CORRUPT}, /* unknown wire type */
        {RAW("\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x15\x08\x15\x08\x00"), TARN_CORRUPT},
        {RAW("\x15\xff\xff\xff\xff\x7f\x15\x08\x15\x08\x00"), TARN_CORRUPT}, /* beyond i32 */
        {RAW("\x15\x00\x15\x08\x15\x08\x79\xf5\xff\xff\xff\x7f\x00"), TARN_CORRUPT}, /* long list */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_error err = TARN_ERROR_INIT;
        parquet_page_header h;
        assert_code(thrift_decode(NULL, &parquet_page_header_thrift,
                                  str_make(cases[i].bytes, cases[i].len), "page header", &h, NULL,
                                  &err),
                    cases[i].code);
    }
    /* Nesting of what is skipped has an end. */
    char deep[4000];
    tarn_error err = TARN_ERROR_INIT;
    parquet_page_header h;
    memset(deep, 0x1c, sizeof deep);
    assert_code(thrift_decode(NULL, &parquet_page_header_thrift, str_make(deep, sizeof deep),
                              "page header", &h, NULL, &err),
                TARN_CORRUPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_footer_round),
                                       cmocka_unit_test(test_raw_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
