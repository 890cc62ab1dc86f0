/* Goal: delete, update and merge change just the rows they say, copy-on-write and merge-on-read, in
 * every format version, on tables that have row deletes already, whatever others do meanwhile.
 * Method: rows as JSON before and after; a model of the table under random changes; rivals that
 * commit in between; B16's file; failing allocations. */
#include "table_rows.h"
#include "unit/write/commit/commit_case.h"

#include "dml/dml.h"

static tarn_error err;

#define SCHEMA            "id long not null, day int, tag string"
#define ROW(id, day, tag) "{\"id\":" #id ",\"day\":" #day ",\"tag\":" tag "}\n"

typedef struct change_case {
    table_case c;
    proxy_catalog proxy;
    const char *rival_rows;   /* appended by another before the next commit */
    const char *rival_delete; /* deleted by another before the next commit */
    bool merge_on_read;
    bool snapshot_isolation;
} change_case;

static dml_options options_of(const change_case *d) {
    dml_options options;
    memset(&options, 0, sizeof options);
    options.serializable = !d->snapshot_isolation;
    options.merge_on_read = d->merge_on_read;
    return options;
}

static tarn_code delete_on(change_case *d, tarn_catalog *catalog, const char *where,
                           dml_result *out, tarn_error *e) {
    tarn_arena arena;
    dml_options options = options_of(d);
    memset(out, 0, sizeof *out);
    arena_init(&arena, d->c.env);
    tarn_code code = expr_parse(&arena, str_of(where), &options.filter, e);
    if (code == TARN_OK) {
        code = dml_delete(d->c.env, catalog, &d->c.ident, &options, out, e);
    }
    table_version_release(out->outcome.version);
    out->outcome.version = NULL;
    arena_release(&arena);
    return code;
}

static tarn_code delete_where(change_case *d, const char *where, dml_result *out, tarn_error *e) {
    return delete_on(d, &d->proxy.base, where, out, e);
}

static tarn_code update_where(change_case *d, const char *set, const char *where, dml_result *out,
                              tarn_error *e) {
    tarn_arena arena;
    dml_options options = options_of(d);
    memset(out, 0, sizeof *out);
    arena_init(&arena, d->c.env);
    tarn_code code = expr_parse(&arena, str_of(where), &options.filter, e);
    if (code == TARN_OK) {
        code = dml_update(d->c.env, &d->proxy.base, &d->c.ident, &options, str_of(set), out, e);
    }
    table_version_release(out->outcome.version);
    out->outcome.version = NULL;
    arena_release(&arena);
    return code;
}

static tarn_code merge_rows(change_case *d, const char *columns, const char *lines, const char *key,
                            dml_matched matched, bool insert, dml_result *out, tarn_error *e) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_batch source;
    const tarn_type *type;
    dml_options options = options_of(d);
    tarn_str name = str_of(key);
    dml_merge_options merge;
    memset(&source, 0, sizeof source);
    memset(&merge, 0, sizeof merge);
    memset(out, 0, sizeof *out);
    arena_init(&arena, d->c.env);
    TRY(type_columns_from_text(&arena, str_of(columns), &type, e));
    source.type = type;
    if (lines[0] != '\0') {
        TRY(rows_read(d->c.env, &arena, type, lines, &source, e));
    }
    merge.source = &source;
    merge.key = &name;
    merge.n_key = key != NULL ? 1 : 0;
    merge.matched = matched;
    merge.insert = insert;
    code = dml_merge(d->c.env, &d->proxy.base, &d->c.ident, &options, &merge, out, e);
done:
    table_version_release(out->outcome.version);
    out->outcome.version = NULL;
    batch_release(&source);
    arena_release(&arena);
    return code;
}

static void rival(void *ctx) {
    change_case *d = ctx;
    const char *rows = d->rival_rows;
    const char *where = d->rival_delete;
    d->rival_rows = d->rival_delete = NULL;
    if (rows != NULL) {
        case_append(&d->c, rows);
    }
    if (where != NULL) {
        dml_result result;
        assert_ok(delete_on(d, d->c.catalog, where, &result, &err));
        assert_int_equal(result.outcome.kind, TARN_COMMITTED);
    }
}

static void open_in(change_case *d, tarn_env *env, case_kind kind, int32_t version, bool mor,
                    const char *by) {
    static const char *const properties[] = {"commit.retry.min-wait-ms", "1", NULL};
    memset(d, 0, sizeof *d);
    case_open(&d->c, env, kind);
    case_table(&d->c, version, SCHEMA, by, properties);
    proxy_init(&d->proxy, d->c.catalog);
    d->proxy.before = rival;
    d->proxy.ctx = d;
    d->merge_on_read = mor;
}

static void open_case(change_case *d, case_kind kind, int32_t version, bool mor, const char *by) {
    open_in(d, test_env(), kind, version, mor, by);
}

static void close_case(change_case *d) {
    tarn_env *env = d->c.env;
    case_done(&d->c);
    test_env_done(env);
}

static void check_counts(const dml_result *r, int64_t deleted, int64_t updated, int64_t inserted) {
    assert_int_equal(r->outcome.kind,
                     deleted + updated + inserted > 0 ? TARN_COMMITTED : TARN_NOT_COMMITTED);
    assert_int_equal(r->rows_deleted, deleted);
    assert_int_equal(r->rows_updated, updated);
    assert_int_equal(r->rows_inserted, inserted);
}

/* Live delete files of the current snapshot, and how many data files have more than one vector. */
static void count_deletes(table_case *c, int *files, int *vectors, int *doubled) {
    tarn_arena arena;
    io_source *source;
    const tarn_manifest *manifests;
    int32_t n;
    tarn_map seen;
    tarn_table_version *v = case_load(c);
    arena_init(&arena, c->env);
    map_init(&seen, &arena);
    *files = *vectors = *doubled = 0;
    const tarn_snapshot *s = metadata_current_snapshot(v->metadata);
    assert_ok(store_open(c->catalog->store, s->manifest_list, -1, &source, &err));
    assert_ok(manifest_list_read(&arena, source, &manifests, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        manifest_read_options options = {.want = MANIFEST_WANT_REST};
        manifest_entries entries;
        if (!manifests[i].is_deletes) {
            continue;
        }
        assert_ok(
            store_open(c->catalog->store, manifests[i].path, manifests[i].length, &source, &err));
        assert_ok(
            manifest_read(&arena, source, v->metadata, &manifests[i], &options, &entries, &err));
        source->close(source);
        for (int64_t j = 0; j < entries.count; j++) {
            const tarn_file *f = &entries.items[j].file;
            if (entries.items[j].status == TARN_ENTRY_DELETED) {
                continue;
            }
            bool added = true;
            ++*files;
            if (f->format == TARN_FORMAT_PUFFIN) {
                ++*vectors;
                assert_non_null(map_put(&seen, f->referenced_data_file, &added));
                *doubled += !added;
            }
        }
    }
    arena_release(&arena);
    table_version_release(v);
}

/* Every mode that a version has. */
typedef struct how {
    int32_t version;
    bool merge_on_read;
} how;
static const how HOWS[] = {{1, false}, {2, false}, {2, true}, {3, false}, {3, true}};
#define N_HOWS (sizeof HOWS / sizeof HOWS[0])

/* ---- delete ---- */

static void tell_deletes(case_kind kind, how h, const char *by) {
    change_case d;
    dml_result r;
    int files, vectors, doubled;
    open_case(&d, kind, h.version, h.merge_on_read, by);
    case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "null") ROW(3, 1, "\"b\"") ROW(4, 2, "\"a\""));
    case_append(&d.c, ROW(5, 1, "\"c\"") ROW(6, 1, "\"a\"") ROW(7, 1, "\"d\""));
    assert_ok(delete_where(&d, "id = 2", &r, &err));
    check_counts(&r, 1, 0, 0);
    assert_int_equal(r.rows_kept > 0, !h.merge_on_read);
    assert_int_equal(r.deletes_added, h.merge_on_read ? 1 : 0);
    assert_ok(delete_where(&d, "id = 2", &r, &err));
    check_counts(&r, 0, 0, 0);
    assert_ok(delete_where(&d, "tag = 'a' and id > 1", &r, &err));
    check_counts(&r, 2, 0, 0);
    case_check_rows(&d.c, NULL,
                    ROW(1, 1, "\"a\"") ROW(3, 1, "\"b\"") ROW(5, 1, "\"c\"") ROW(7, 1, "\"d\""));
    count_deletes(&d.c, &files, &vectors, &doubled);
    assert_int_equal(files, h.merge_on_read ? 2 : 0); /* one a data file, merged with the first */
    assert_int_equal(vectors, h.merge_on_read && h.version == 3 ? 2 : 0);
    assert_int_equal(doubled, 0);
    /* what is left of a file goes with it, and its deletes too */
    assert_ok(delete_where(&d, "id in (1, 3)", &r, &err));
    check_counts(&r, 2, 0, 0);
    assert_int_equal(r.files_removed, 1);
    case_check_rows(&d.c, NULL, ROW(5, 1, "\"c\"") ROW(7, 1, "\"d\""));
    count_deletes(&d.c, &files, &vectors, &doubled);
    assert_int_equal(files, h.merge_on_read ? 1 : 0);
    assert_ok(delete_where(&d, "true", &r, &err));
    check_counts(&r, 2, 0, 0);
    case_check_rows(&d.c, NULL, "");
    case_check_files(&d.c, 0);
    close_case(&d);
}

static void test_changes_delete(void **state) {
    (void)state;
    for (size_t i = 0; i < N_HOWS; i++) {
        tell_deletes(CASE_DIR_MEMORY, HOWS[i], NULL);
        tell_deletes(CASE_SQLITE_FILE, HOWS[i], "day");
    }
}

/* A table changes its mind: copy-on-write applies what merge-on-read left, and the other way. */
static void test_changes_of_mode(void **state) {
    (void)state;
    for (int32_t version = 2; version <= 3; version++) {
        change_case d;
        dml_result r;
        int files, vectors, doubled;
        open_case(&d, CASE_DIR_MEMORY, version, true, NULL);
        case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\"") ROW(3, 1, "\"c\"")
                              ROW(4, 1, "\"d\"") ROW(5, 1, "\"e\""));
        assert_ok(delete_where(&d, "id = 2", &r, &err));
        d.merge_on_read = false;
        assert_ok(update_where(&d, "tag = 'x'", "id = 3", &r, &err));
        check_counts(&r, 0, 1, 0);
        assert_int_equal(r.rows_kept, 3);
        count_deletes(&d.c, &files, &vectors, &doubled);
        assert_int_equal(files, 0);
        d.merge_on_read = true;
        assert_ok(delete_where(&d, "id = 5", &r, &err));
        case_check_rows(&d.c, NULL, ROW(1, 1, "\"a\"") ROW(3, 1, "\"x\"") ROW(4, 1, "\"d\""));
        case_check_files(&d.c, 0);
        close_case(&d);
    }
}

static void test_changes_need_version_2(void **state) {
    (void)state;
    change_case d;
    dml_result r;
    open_case(&d, CASE_DIR_MEMORY, 1, true, NULL);
    case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\""));
    assert_code(delete_where(&d, "id = 1", &r, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "version"));
    err_reset(&err);
    case_check_rows(&d.c, NULL, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\""));
    case_check_files(&d.c, 0);
    close_case(&d);
}

/* ---- update ---- */

static void tell_updates(case_kind kind, how h, const char *by) {
    change_case d;
    dml_result r;
    open_case(&d, kind, h.version, h.merge_on_read, by);
    case_append(&d.c,
                ROW(1, 1, "\"a\"") ROW(2, 1, "null") ROW(3, 2, "\"b\"") ROW(4, null, "\"a\""));
    assert_ok(update_where(&d, "tag = 'z', day = day + 10", "id < 3", &r, &err));
    check_counts(&r, 0, 2, 0);
    case_check_rows(&d.c, NULL,
                    ROW(1, 11, "\"z\"") ROW(2, 11, "\"z\"") ROW(3, 2, "\"b\"")
                        ROW(4, null, "\"a\""));
    assert_ok(update_where(&d, "day = id * 2 - 1, tag = null", "id = 4", &r, &err));
    assert_ok(update_where(&d, "tag = tag || '-' || tag", "day = 2 or day = 7", &r, &err));
    check_counts(&r, 0, 2, 0);
    case_check_rows(&d.c, NULL,
                    ROW(1, 11, "\"z\"") ROW(2, 11, "\"z\"") ROW(3, 2, "\"b-b\"") ROW(4, 7, "null"));
    assert_ok(update_where(&d, "tag = 'none'", "id = 99", &r, &err));
    check_counts(&r, 0, 0, 0);
    assert_ok(update_where(&d, "id = -id", "true", &r, &err));
    check_counts(&r, 0, 4, 0);
    case_check_rows(&d.c, NULL,
                    ROW(-1, 11, "\"z\"") ROW(-2, 11, "\"z\"") ROW(-3, 2, "\"b-b\"")
                        ROW(-4, 7, "null"));
    case_check_files(&d.c, 0);
    close_case(&d);
}

static void test_changes_update(void **state) {
    (void)state;
    for (size_t i = 0; i < N_HOWS; i++) {
        tell_updates(CASE_DIR_FILE, HOWS[i], NULL);
        tell_updates(CASE_SQLITE_MEMORY, HOWS[i], "day");
    }
}

static void refuse_update(change_case *d, const char *set, tarn_code want, const char *says) {
    dml_result r;
    assert_code(update_where(d, set, "true", &r, &err), want);
    if (strstr(err.message, says) == NULL && strstr(err.detail, says) == NULL) {
        fail_msg("SET %s: %s (%s) does not say %s", set, err.message, err.detail, says);
    }
    err_reset(&err);
    case_check_files(&d->c, 0);
}

static void test_changes_bad_sets(void **state) {
    (void)state;
    change_case d;
    open_case(&d, CASE_DIR_MEMORY, 2, false, NULL);
    case_append(&d.c, ROW(1, 2147483647, "\"a\"") ROW(9223372036854775807, 1, "\"b\""));
    refuse_update(&d, "", TARN_INVALID, "name");
    refuse_update(&d, "tag", TARN_INVALID, "=");
    refuse_update(&d, "tag = ", TARN_INVALID, "missing");
    refuse_update(&d, "tag = 'a", TARN_INVALID, "quote");
    refuse_update(&d, "tag = (1", TARN_INVALID, "parenthesis");
    refuse_update(&d, "tag = 'a' tag", TARN_INVALID, "expected");
    refuse_update(&d, "tag = 'a', tag = 'b'", TARN_INVALID, "twice");
    refuse_update(&d, "nothing = 1", TARN_INVALID, "nothing");
    refuse_update(&d, "day = nothing", TARN_INVALID, "nothing");
    refuse_update(&d, "day = 'abc'", TARN_INVALID, "day");
    refuse_update(&d, "day = 1.5", TARN_INVALID, "day");
    refuse_update(&d, "day = 3000000000", TARN_INVALID, "day");
    refuse_update(&d, "day = day + 1", TARN_INVALID, "too large");
    refuse_update(&d, "id = id + 1", TARN_INVALID, "too large");
    refuse_update(&d, "id = null", TARN_INVALID, "id");
    refuse_update(&d, "day = tag + 1", TARN_INVALID, "string");
    refuse_update(&d, "tag = id || tag", TARN_INVALID, "long");
    refuse_update(&d, "day = day / 0", TARN_INVALID, "zero");
    dml_result r;
    assert_code(update_where(&d, "tag = 'x'", "nothing = 1", &r, &err), TARN_INVALID);
    err_reset(&err);
    close_case(&d);
}

/* ---- merge ---- */

static void tell_merges(case_kind kind, how h, const char *by) {
    change_case d;
    dml_result r;
    open_case(&d, kind, h.version, h.merge_on_read, by);
    case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\"") ROW(3, 2, "\"c\""));
    assert_ok(merge_rows(&d, SCHEMA, ROW(2, 9, "\"B\"") ROW(4, 4, "null"), "id", DML_MATCHED_UPDATE,
                         true, &r, &err));
    check_counts(&r, 0, 1, 1);
    case_check_rows(&d.c, NULL,
                    ROW(1, 1, "\"a\"") ROW(2, 9, "\"B\"") ROW(3, 2, "\"c\"") ROW(4, 4, "null"));
    /* columns that the source lacks stay, and are null in new rows */
    assert_ok(merge_rows(&d, "tag string, id long",
                         "{\"tag\":\"T\",\"id\":3}\n"
                         "{\"tag\":\"N\",\"id\":7}\n",
                         "id", DML_MATCHED_UPDATE, true, &r, &err));
    check_counts(&r, 0, 1, 1);
    case_check_rows(&d.c, NULL,
                    ROW(1, 1, "\"a\"") ROW(2, 9, "\"B\"") ROW(3, 2, "\"T\"") ROW(4, 4, "null")
                        ROW(7, null, "\"N\""));
    assert_ok(merge_rows(&d, SCHEMA, ROW(1, 0, "null") ROW(8, 0, "null"), "id", DML_MATCHED_DELETE,
                         false, &r, &err));
    check_counts(&r, 1, 0, 0);
    assert_ok(merge_rows(&d, SCHEMA, ROW(2, 0, "null") ROW(8, 8, "\"e\""), "id", DML_MATCHED_IGNORE,
                         true, &r, &err));
    check_counts(&r, 0, 0, 1);
    assert_ok(
        merge_rows(&d, SCHEMA, ROW(99, 0, "null"), "id", DML_MATCHED_UPDATE, false, &r, &err));
    check_counts(&r, 0, 0, 0);
    assert_ok(merge_rows(&d, SCHEMA, "", "id", DML_MATCHED_UPDATE, true, &r, &err));
    check_counts(&r, 0, 0, 0);
    case_check_rows(&d.c, NULL,
                    ROW(2, 9, "\"B\"") ROW(3, 2, "\"T\"") ROW(4, 4, "null") ROW(7, null, "\"N\"")
                        ROW(8, 8, "\"e\""));
    case_check_files(&d.c, 0);
    close_case(&d);
}

static void test_changes_merge(void **state) {
    (void)state;
    for (size_t i = 0; i < N_HOWS; i++) {
        tell_merges(CASE_DIR_MEMORY, HOWS[i], NULL);
        tell_merges(CASE_SQLITE_FILE, HOWS[i], "day");
    }
}

static void refuse_merge(change_case *d, const char *columns, const char *lines, const char *key,
                         const char *says) {
    dml_result r;
    assert_code(merge_rows(d, columns, lines, key, DML_MATCHED_UPDATE, true, &r, &err),
                TARN_INVALID);
    if (strstr(err.message, says) == NULL) {
        fail_msg("%s does not say %s", err.message, says);
    }
    err_reset(&err);
    case_check_files(&d->c, 0);
}

static void test_changes_bad_merges(void **state) {
    (void)state;
    change_case d;
    open_case(&d, CASE_DIR_MEMORY, 2, false, NULL);
    case_append(&d.c, ROW(1, 1, "\"a\""));
    refuse_merge(&d, SCHEMA, ROW(5, 1, "null") ROW(6, 1, "null") ROW(5, 2, "null"), "id", "id = 5");
    refuse_merge(&d, "id long, day int, tag string", ROW(1, 1, "null") ROW(null, 1, "null"), "id",
                 "null");
    refuse_merge(&d, SCHEMA, ROW(1, 1, "null"), "nothing", "nothing");
    refuse_merge(&d, SCHEMA, ROW(1, 1, "null"), NULL, "identifier");
    refuse_merge(&d, "id long, extra int", "{\"id\":1,\"extra\":2}\n", "id", "extra");
    refuse_merge(&d, "day int, tag string", "{\"day\":1,\"tag\":\"a\"}\n", "id", "id");
    refuse_merge(&d, "day int, tag string", "{\"day\":1,\"tag\":\"z\"}\n", "tag",
                 "id"); /* required */
    close_case(&d);
}

/* ---- others meanwhile ---- */

static void test_changes_rivals(void **state) {
    (void)state;
    for (size_t i = 1; i < N_HOWS; i++) {
        change_case d;
        dml_result r;
        int files, vectors, doubled;
        open_case(&d, CASE_SQLITE_MEMORY, HOWS[i].version, HOWS[i].merge_on_read, NULL);
        case_append(&d.c,
                    ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\"") ROW(3, 1, "\"c\"") ROW(4, 1, "\"d\""));
        d.rival_delete = "id = 1"; /* of the same file: neither is lost */
        assert_ok(delete_where(&d, "id = 2", &r, &err));
        case_check_rows(&d.c, NULL, ROW(3, 1, "\"c\"") ROW(4, 1, "\"d\""));
        d.rival_delete = "id = 3"; /* of the very row: it is not brought back */
        assert_ok(update_where(&d, "tag = 'x'", "id = 3", &r, &err));
        check_counts(&r, 0, 0, 0);
        case_check_rows(&d.c, NULL, ROW(4, 1, "\"d\""));
        d.rival_rows = ROW(5, 1, "\"d\""); /* serializable: it is seen */
        assert_ok(update_where(&d, "tag = 'x'", "tag = 'd'", &r, &err));
        check_counts(&r, 0, 2, 0);
        d.snapshot_isolation = true;
        d.rival_rows = ROW(6, 1, "\"x\"");
        assert_ok(update_where(&d, "tag = 'y'", "tag = 'x'", &r, &err));
        check_counts(&r, 0, 2, 0);
        case_check_rows(&d.c, NULL, ROW(4, 1, "\"y\"") ROW(5, 1, "\"y\"") ROW(6, 1, "\"x\""));
        d.snapshot_isolation = false;
        d.rival_rows = ROW(9, 1, "\"new\""); /* a merge inserts no key that is there by now */
        assert_ok(
            merge_rows(&d, SCHEMA, ROW(9, 2, "\"m\""), "id", DML_MATCHED_UPDATE, true, &r, &err));
        check_counts(&r, 0, 1, 0);
        case_check_rows(&d.c, "id = 9", ROW(9, 2, "\"m\""));
        count_deletes(&d.c, &files, &vectors, &doubled);
        assert_int_equal(doubled, 0);
        case_check_files(&d.c, 0);
        close_case(&d);
    }
}

static void test_changes_refused(void **state) {
    (void)state;
    for (size_t i = 1; i < N_HOWS; i++) {
        change_case d;
        dml_result r;
        open_case(&d, CASE_DIR_MEMORY, HOWS[i].version, HOWS[i].merge_on_read, NULL);
        case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\""));
        d.proxy.mode = PROXY_FAILED;
        assert_code(update_where(&d, "tag = 'x'", "id = 1", &r, &err), TARN_DENIED);
        err_reset(&err);
        case_check_files(&d.c, 0); /* neither data nor delete files stay */
        d.proxy.mode = PROXY_APPLIED_UNKNOWN;
        assert_ok(update_where(&d, "tag = 'x'", "id = 1", &r, &err));
        case_check_rows(&d.c, NULL, ROW(1, 1, "\"x\"") ROW(2, 1, "\"b\""));
        close_case(&d);
    }
}

/* ---- row lineage ---- */

static void check_lineage(change_case *d, const char *want) {
    static const tarn_str columns[] = {{"id", 2}, {"_row_id", 7}};
    scan_options options = case_scan_options();
    options.columns = columns;
    options.n_columns = 2;
    case_check_rows_of(&d->c, &options, NULL, want);
}

static void check_updated(change_case *d, const char *want) {
    static const tarn_str columns[] = {{"id", 2}, {"_last_updated_sequence_number", 29}};
    scan_options options = case_scan_options();
    options.columns = columns;
    options.n_columns = 2;
    case_check_rows_of(&d->c, &options, NULL, want);
}

static void test_changes_keep_row_ids(void **state) {
    (void)state;
    for (int mor = 0; mor < 2; mor++) {
        change_case d;
        dml_result r;
        open_case(&d, CASE_DIR_MEMORY, 3, mor == 1, NULL);
        case_append(&d.c, ROW(10, 1, "\"a\"") ROW(11, 1, "\"b\"") ROW(12, 1, "\"c\""));
        assert_ok(update_where(&d, "tag = 'x'", "id = 11", &r, &err));
        check_lineage(&d, "{\"id\":10,\"_row_id\":0}\n{\"id\":11,\"_row_id\":1}\n"
                          "{\"id\":12,\"_row_id\":2}\n");
        check_updated(&d, "{\"id\":10,\"_last_updated_sequence_number\":1}\n"
                          "{\"id\":11,\"_last_updated_sequence_number\":2}\n"
                          "{\"id\":12,\"_last_updated_sequence_number\":1}\n");
        assert_ok(merge_rows(&d, SCHEMA, ROW(12, 2, "\"m\"") ROW(13, 2, "\"n\""), "id",
                             DML_MATCHED_UPDATE, true, &r, &err));
        check_updated(&d, "{\"id\":10,\"_last_updated_sequence_number\":1}\n"
                          "{\"id\":11,\"_last_updated_sequence_number\":2}\n"
                          "{\"id\":12,\"_last_updated_sequence_number\":3}\n"
                          "{\"id\":13,\"_last_updated_sequence_number\":3}\n");
        close_case(&d);
    }
}

/* ---- B16 ---- */

static void copy_folder(const char *from, const char *to) {
    DIR *dir = opendir(from);
    assert_non_null(dir);
    assert_int_equal(mkdir(to, 0700), 0);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char source[512], target[512];
        static char bytes[1 << 20];
        struct stat st;
        (void)snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        (void)snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        assert_int_equal(stat(source, &st), 0);
        if (S_ISDIR(st.st_mode)) {
            if (entry->d_name[0] != '.') {
                copy_folder(source, target);
            }
            continue;
        }
        FILE *in = fopen(source, "rb");
        FILE *out = fopen(target, "wb");
        assert_non_null(in);
        assert_non_null(out);
        size_t n = fread(bytes, 1, sizeof bytes, in);
        assert_true(n < sizeof bytes);
        assert_int_equal(fwrite(bytes, 1, n, out), n);
        (void)fclose(in);
        assert_int_equal(fclose(out), 0);
    }
    (void)closedir(dir);
}

/* Positions count from the file's first row, whatever row groups were skipped on the way there. */
static void test_changes_positions_of_row_groups(void **state) {
    static const tarn_str level = {"B16", 3};
    (void)state;
    change_case d;
    char path[160];
    dml_result r;
    tarn_store *files, *moved;
    const tarn_positions *gone = NULL;
    tarn_plan *plan;
    memset(&d, 0, sizeof d);
    tarn_env *env = test_env();
    case_open(&d.c, env, CASE_DIR_FILE);
    catalog_close(d.c.catalog);
    (void)snprintf(path, sizeof path, "%s/tbl", d.c.folder);
    copy_folder(TARN_TEST_FIXTURES "/bugs/B16/tbl", path);
    assert_ok(store_file_new(env, false, &files, &err));
    assert_ok(store_moved_new(files, STR("file:///tarn-fixtures/bugs/open/B16/tbl"), str_of(path),
                              &moved, &err));
    assert_ok(
        catalog_dir_new(env, moved, STR("file:///tarn-fixtures/bugs/open"), &d.c.catalog, &err));
    d.c.ident = (tarn_ident){1, &level, STR("tbl")};
    proxy_init(&d.proxy, d.c.catalog);
    d.merge_on_read = true;
    assert_ok(delete_where(&d, "id = 350", &r, &err));
    assert_int_equal(r.rows_deleted, 1);
    assert_int_equal(r.deletes_added, 1);
    tarn_table_version *v = case_load(&d.c);
    scan_options options = case_scan_options();
    options.metadata = v->metadata;
    assert_ok(plan_new(env, d.c.catalog->store, &options, &plan, &err));
    assert_int_equal(plan->n_tasks, 1);
    assert_ok(task_positions(plan, &plan->tasks[0], &gone, &err));
    assert_true(positions_has(gone, 350));
    assert_false(positions_has(gone, 50));
    assert_int_equal(positions_count(gone), 7);
    plan_free(plan);
    table_version_release(v);
    close_case(&d);
}

/* ---- a model ---- */

#define MODEL_IDS 60

typedef struct model_row {
    bool there;
    int day;
    char tag[24];
} model_row;

static void check_model(change_case *d, const model_row *rows) {
    tarn_buf want;
    buf_init(&want, d->c.env, 0);
    for (int i = 0; i < MODEL_IDS; i++) {
        if (rows[i].there) {
            assert_ok(buf_printf(&want, &err, "{\"id\":%d,\"day\":%d,\"tag\":\"%s\"}\n", i,
                                 rows[i].day, rows[i].tag));
        }
    }
    assert_ok(buf_append_char(&want, '\0', &err));
    case_check_rows(&d->c, NULL, (const char *)want.data);
    buf_release(&want);
}

static uint32_t chance(uint64_t *seed, uint32_t below) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

static void model_append(change_case *d, model_row *rows, uint64_t *seed) {
    char text[4096] = "";
    size_t n = 0;
    for (int i = 0; i < MODEL_IDS; i++) {
        if (!rows[i].there && chance(seed, 2) == 0) {
            rows[i].there = true;
            rows[i].day = (int)chance(seed, 3);
            (void)snprintf(rows[i].tag, sizeof rows[i].tag, "a%u", chance(seed, 5));
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "{\"id\":%d,\"day\":%d,\"tag\":\"%s\"}\n", i, rows[i].day,
                                  rows[i].tag);
        }
    }
    if (n > 0) {
        case_append(&d->c, text);
    }
}

static void model_merge(change_case *d, model_row *rows, uint64_t *seed) {
    char text[4096] = "";
    size_t n = 0;
    dml_result r;
    dml_matched matched = (dml_matched)chance(seed, 3);
    bool insert = chance(seed, 2) == 0;
    for (int i = 0; i < MODEL_IDS; i++) {
        if (chance(seed, 6) != 0) {
            continue;
        }
        int day = (int)chance(seed, 3);
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"id\":%d,\"day\":%d,\"tag\":\"m%d\"}\n",
                              i, day, i);
        if (rows[i].there ? matched == DML_MATCHED_UPDATE : insert) {
            rows[i].there = true;
            rows[i].day = day;
            (void)snprintf(rows[i].tag, sizeof rows[i].tag, "m%d", i);
        } else if (rows[i].there && matched == DML_MATCHED_DELETE) {
            rows[i].there = false;
        }
    }
    assert_ok(merge_rows(d, SCHEMA, text, "id", matched, insert, &r, &err));
}

static void model_step(change_case *d, model_row *rows, uint64_t *seed) {
    char where[128];
    char set[64];
    dml_result r;
    int low = (int)chance(seed, MODEL_IDS);
    int high = low + (int)chance(seed, 12);
    int day = (int)chance(seed, 3);
    uint32_t what = chance(seed, 8);
    (void)snprintf(where, sizeof where, "id >= %d and id <= %d%s%.0d", low, high,
                   day > 0 ? " and day = " : "", day);
    if (what < 2) {
        model_append(d, rows, seed);
    } else if (what < 4) {
        model_merge(d, rows, seed);
    } else if (what < 6) {
        assert_ok(delete_where(d, where, &r, &err));
        for (int i = low; i <= high && i < MODEL_IDS; i++) {
            rows[i].there = rows[i].there && day > 0 && rows[i].day != day;
        }
    } else {
        uint32_t tag = chance(seed, 100);
        (void)snprintf(set, sizeof set, "tag = 'u%u', day = 2 - day", tag);
        assert_ok(update_where(d, set, where, &r, &err));
        for (int i = low; i <= high && i < MODEL_IDS; i++) {
            if (rows[i].there && (day == 0 || rows[i].day == day)) {
                rows[i].day = 2 - rows[i].day;
                (void)snprintf(rows[i].tag, sizeof rows[i].tag, "u%u", tag);
            }
        }
    }
}

static void test_changes_model(void **state) {
    (void)state;
    for (uint64_t run = 0; run < (test_every() ? 60 : 8); run++) {
        change_case d;
        int files, vectors, doubled;
        uint64_t seed = run + 1;
        static model_row rows[MODEL_IDS];
        memset(rows, 0, sizeof rows);
        open_case(&d, run % 2 == 0 ? CASE_DIR_MEMORY : CASE_SQLITE_MEMORY, run / 2 % 2 == 0 ? 2 : 3,
                  true, run % 3 == 0 ? "day" : NULL);
        for (int step = 0; step < 25; step++) {
            d.merge_on_read = chance(&seed, 3) != 0;
            model_step(&d, rows, &seed);
            check_model(&d, rows);
        }
        if (run / 2 % 2 == 1) {
            count_deletes(&d.c, &files, &vectors, &doubled);
            assert_int_equal(doubled, 0);
        }
        case_check_files(&d.c, 0);
        close_case(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_delete),
        cmocka_unit_test(test_changes_of_mode),
        cmocka_unit_test(test_changes_need_version_2),
        cmocka_unit_test(test_changes_update),
        cmocka_unit_test(test_changes_bad_sets),
        cmocka_unit_test(test_changes_merge),
        cmocka_unit_test(test_changes_bad_merges),
        cmocka_unit_test(test_changes_rivals),
        cmocka_unit_test(test_changes_refused),
        cmocka_unit_test(test_changes_keep_row_ids),
        cmocka_unit_test(test_changes_positions_of_row_groups),
        cmocka_unit_test(test_changes_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
