/* Goal: what is appended is what a scan gives, on every catalog and store.
 * Method: a few rows into plain and partitioned tables, in Parquet and Avro, scanned whole and by
 * filter. */
#include "table_rows.h"

static void append_and_scan(case_kind kind, int32_t version, const char *partition_by,
                            const char *format) {
    const char *properties[] = {"write.format.default", format, NULL};
    tarn_env *env = test_env();
    table_case c;
    case_open(&c, env, kind);
    case_table(&c, version, "id long not null, name string, at date", partition_by, properties);
    case_check_rows(&c, NULL, "");
    case_append(&c, "{\"id\":1,\"name\":\"a\",\"at\":\"2020-01-01\"}\n"
                    "{\"id\":2,\"name\":null,\"at\":\"2020-02-01\"}\n"
                    "{\"id\":3,\"name\":\"\",\"at\":null}\n");
    case_append(&c, "{\"id\":4,\"name\":\"b\",\"at\":\"2020-01-15\"}\n");
    case_check_rows(&c, NULL,
                    "{\"id\":1,\"name\":\"a\",\"at\":\"2020-01-01\"}\n"
                    "{\"id\":2,\"name\":null,\"at\":\"2020-02-01\"}\n"
                    "{\"id\":3,\"name\":\"\",\"at\":null}\n"
                    "{\"id\":4,\"name\":\"b\",\"at\":\"2020-01-15\"}\n");
    case_check_rows(&c, "at < date '2020-01-31' and id > 1",
                    "{\"id\":4,\"name\":\"b\",\"at\":\"2020-01-15\"}\n");
    case_check_rows(&c, "name is null", "{\"id\":2,\"name\":null,\"at\":\"2020-02-01\"}\n");
    case_check_rows(&c, "at is null", "{\"id\":3,\"name\":\"\",\"at\":null}\n");
    case_check_files(&c, 0);
    case_done(&c);
    test_env_done(env);
}

static void test_append_scan(void **state) {
    (void)state;
    static const char *const SPECS[] = {NULL, "month(at)", "name, bucket(4, id)"};
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        for (int spec = 0; spec < 3; spec++) {
            for (int version = 1; version <= 2; version++) {
                append_and_scan((case_kind)kind, version, SPECS[spec],
                                (kind + spec) % 2 == 0 ? "parquet" : "avro");
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_append_scan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
