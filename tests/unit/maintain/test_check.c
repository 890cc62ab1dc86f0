/* Goal: the check names what is wrong with a table and stays silent about what is right. Method:
 * tables of the bug cases (B01, B05, B23) and of Spark below the fixtures are checked with the room
 * alone; every allocation fails once; documents are edited in memory. */
#include "fail_alloc.h"

#include "maintain/check.h"

typedef struct seen {
    char rule[64]; /* of the last finding */
    char message[512];
    int64_t n;
    int64_t end_at; /* the call that fails; 0: none */
} seen;

static tarn_code on_finding(void *ctx, const check_finding *f, tarn_error *err) {
    seen *s = ctx;
    assert_true(f->place.len > 0 && f->message.len > 0 && strlen(f->section) > 0);
    snprintf(s->rule, sizeof s->rule, "%s", f->rule);
    snprintf(s->message, sizeof s->message, "%.*s", STR_ARG(f->message));
    return ++s->n == s->end_at ? err_set(err, TARN_CANCELLED, "enough") : TARN_OK;
}

/* from stands in the document and becomes to, before it is read; NULL: as it is. */
static tarn_code check_edited(tarn_env *env, const char *path, const char *from, const char *to,
                              seen *s, check_counts *counts, tarn_error *err) {
    tarn_store *files = NULL, *moved = NULL;
    tarn_arena arena;
    tarn_buf bytes, edited;
    const tarn_metadata *m = NULL;
    const check_options options = {.deep = true, .found = on_finding, .ctx = s};
    tarn_code code = TARN_OK;
    arena_init(&arena, env);
    buf_init(&bytes, env, 0);
    buf_init(&edited, env, 0);
    TRY(store_file_new(env, false, &files, err));
    TRY(store_moved_new(files, STR("/tarn-fixtures/bugs/open"), STR(TARN_TEST_FIXTURES "/bugs"),
                        &moved, err));
    files = NULL;
    TRY(store_get(moved, str_of(path), 1 << 20, &bytes, err));
    tarn_str text = buf_str(&bytes);
    if (from != NULL) {
        TRY(buf_append_char(&bytes, '\0', err));
        const char *at = strstr((const char *)bytes.data, from);
        assert_non_null(at);
        const size_t before = (size_t)(at - (const char *)bytes.data);
        TRY(buf_append(&edited, bytes.data, before, err));
        TRY(buf_append(&edited, to, strlen(to), err));
        TRY(buf_append(&edited, at + strlen(from), bytes.len - 1 - before - strlen(from), err));
        text = buf_str(&edited);
    }
    TRY(metadata_parse(&arena, text, path, &m, err));
    TRY(check_table(env, moved, m, str_of(path), &options, counts, err));
done:
    buf_release(&bytes);
    buf_release(&edited);
    arena_release(&arena);
    store_close(moved);
    store_close(files);
    return code;
}

static void check_path(const char *path, const char *from, const char *to, seen *s,
                       check_counts *counts) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    memset(s, 0, sizeof *s);
    assert_ok(check_edited(env, path, from, to, s, counts, &err));
    assert_int_equal(s->n, counts->errors + counts->warnings);
    test_env_done(env);
}

#define BUG(name) "/tarn-fixtures/bugs/open/" name "/metadata/v1.metadata.json"

/* B01: a value that wrapped around is no multiple of the width. */
static void test_b01_wrapped_value(void **state) {
    (void)state;
    seen s;
    check_counts counts;
    check_path(BUG("B01/wrapped"), NULL, NULL, &s, &counts);
    assert_int_equal(counts.errors, 1);
    assert_int_equal(counts.warnings, 0);
    assert_string_equal(s.rule, "partition-value");
    assert_non_null(strstr(s.message, "2147477296"));
    assert_non_null(strstr(s.message, "impossible for truncate[10000]"));
}

/* B23: every deviation of a header is named, and but for the missing ids none is an error. */
static void test_b23_headers(void **state) {
    (void)state;
    static const struct {
        const char *path, *rule, *says;
        int64_t errors, warnings;
    } cases[] = {
        {BUG("B23/codec_missing"), "manifest-header", "\"avro.codec\" was missing", 0, 1},
        {BUG("B23/no_content"), "manifest-header", "\"content\" was missing; \"data\"", 0, 1},
        {BUG("B23/no_field_ids"), "field-ids", "no field-id", 1, 0},
        {BUG("B23/no_format_version"), "manifest-header", "\"format-version\" was missing", 0, 1},
        {BUG("B23/no_schema_id"), "manifest-schema-id", "\"schema-id\" was missing", 0, 1},
        {BUG("B23/no_spec"), "manifest-header", "\"partition-spec-id\" was missing; 0", 0, 2},
        {BUG("B23/record_names"), "manifest-header", "\"manifest\" where \"manifest_entry\"", 0, 2},
        {BUG("B23/schema_is_entry_schema"), "manifest-header", "held field \"status\"", 0, 1},
        {BUG("B23/spec_whole_object"), "manifest-header", "the whole spec object", 0, 1},
        {BUG("B23/unpartitioned_bad_schema"), "manifest-header", "held field \"status\"", 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen s;
        check_counts counts;
        check_path(cases[i].path, NULL, NULL, &s, &counts);
        assert_int_equal(counts.errors, cases[i].errors);
        assert_int_equal(counts.warnings, cases[i].warnings);
        assert_string_equal(s.rule, cases[i].rule);
        if (strstr(s.message, cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].path, s.message);
        }
        assert_int_equal(counts.files, 1);
        assert_int_equal(counts.opened, 1);
    }
}

/* Documents that contradict themselves. */
static void test_edited_documents(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *rule;
    } cases[] = {
        {"\"last-column-id\": 1", "\"last-column-id\": 0", "last-column-id"},
        {"\"last-partition-id\": 1000", "\"last-partition-id\": 999", "last-partition-id"},
        {"\"last-sequence-number\": 1", "\"last-sequence-number\": 0", "sequence-number"},
        {"\"source-id\": 1", "\"source-id\": 7", "partition-source"},
        {"truncate[10000]", "rhumb", "unknown-transform"},
        {"snap-1001.avro", "snap-1002.avro", "manifest-list-unreadable"},
    };
    seen clean;
    check_counts before;
    check_path(BUG("B01/wrapped"), NULL, NULL, &clean, &before);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = test_env();
        seen s = {.end_at = 1};
        check_counts counts;
        /* the document's own findings come first: the one that ends it is the one looked for */
        tarn_code code =
            check_edited(env, BUG("B01/wrapped"), cases[i].from, cases[i].to, &s, &counts, &err);
        assert_code(code, TARN_CANCELLED);
        if (strcmp(s.rule, cases[i].rule) != 0) {
            fail_msg("%s: %s (%s)", cases[i].to, s.rule, s.message);
        }
        test_env_done(env);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    for (uint64_t k = 1;; k += test_every() ? 1 : 7) {
        tarn_error err = TARN_ERROR_INIT;
        fail_alloc plan;
        seen s = {0};
        check_counts counts;
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_code code = check_edited(env, BUG("B01/wrapped"), NULL, NULL, &s, &counts, &err);
        const bool failed = plan.failed;
        assert_code(code, failed ? TARN_NOMEM : TARN_OK);
        assert_true(!failed || strlen(err.message) > 0);
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_b01_wrapped_value),
        cmocka_unit_test(test_b23_headers),
        cmocka_unit_test(test_edited_documents),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
