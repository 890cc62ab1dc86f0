/* Goal: what real engines wrote reads as they list it themselves.
 * Method: for every table of the shared fixtures with expected listings, the newest metadata's
 * current snapshot is read down to its files, and each manifest and file is compared with the
 * engine's own manifests and files tables; every other Avro metadata file there is read as well. */
#include <dirent.h>
#include <sys/stat.h>

#include "fixture.h"

#include "base/map.h"
#include "iceberg/manifest.h"

#define SHARED TARN_TEST_SHARED "/fixtures/iceberg"

typedef struct tally {
    int tables, manifests, files, listed_files;
} tally;

/* "/tarn-fixtures/iceberg/x", "file:/tarn-fixtures/iceberg/x" -> where it lies here. */
static const char *here(tarn_arena *arena, tarn_str path) {
    static const char home[] = "/tarn-fixtures/iceberg";
    for (size_t i = 0; i + sizeof home <= path.len; i++) {
        if (memcmp(path.data + i, home, sizeof home - 1) == 0) {
            return arena_printf(arena, "%s%.*s", SHARED,
                                STR_ARG(str_from(path, i + sizeof home - 1)));
        }
    }
    return arena_printf(arena, "%.*s", STR_ARG(path));
}

static io_source *open_file(tarn_arena *arena, const char *path) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_str bytes = fixture_read(arena, path);
    io_source *source = NULL;
    assert_ok(io_source_memory(arena->env, path, bytes.data, bytes.len, &source, &err));
    return source;
}

static int64_t number_of(const json_value *o, const char *name) {
    int64_t v = -1;
    (void)json_i64(json_get(o, name), &v);
    return v;
}

static bool hex_is(const json_value *json, tarn_str bytes) {
    if (!json_is(json, JSON_STRING) || json->text.len != 2 * bytes.len) {
        return false;
    }
    for (size_t i = 0; i < bytes.len; i++) {
        char pair[3];
        snprintf(pair, sizeof pair, "%02x", (unsigned)(uint8_t)bytes.data[i]);
        if (memcmp(pair, json->text.data + 2 * i, 2) != 0) {
            return false;
        }
    }
    return true;
}

/* Lines of NDJSON; one by the text of a member. */
static const json_value *line_of(json_value **lines, int n, const char *member, tarn_str text) {
    for (int i = 0; i < n; i++) {
        tarn_str s;
        if (lines[i] != NULL && json_str(json_get(lines[i], member), &s) && str_eq(s, text)) {
            const json_value *found = lines[i];
            lines[i] = NULL; /* each once */
            return found;
        }
    }
    return NULL;
}

static int read_lines(tarn_arena *arena, const char *path, json_value ***out) {
    tarn_str line, rest = fixture_read(arena, path);
    int n = 0;
    json_value **lines = ARENA_ARRAY(arena, json_value *, 4096);
    while (str_split(&rest, '\n', &line)) {
        if (line.len > 0) {
            assert_true(n < 4096);
            lines[n++] = fixture_json(arena, line);
        }
    }
    *out = lines;
    return n;
}

static void compare_manifest(const tarn_manifest *m, const json_value *want) {
    assert_int_equal(m->length, number_of(want, "length"));
    assert_int_equal(m->spec_id, number_of(want, "spec_id"));
    assert_int_equal(m->is_deletes, number_of(want, "content"));
    assert_int_equal(m->sequence_number, number_of(want, "sequence_number"));
    assert_int_equal(m->min_sequence_number, number_of(want, "min_sequence_number"));
    assert_int_equal(m->added_snapshot_id, number_of(want, "added_snapshot_id"));
    assert_int_equal(m->added_files, number_of(want, "added_files"));
    assert_int_equal(m->existing_files, number_of(want, "existing_files"));
    assert_int_equal(m->deleted_files, number_of(want, "deleted_files"));
    assert_int_equal(m->added_rows, number_of(want, "added_rows"));
    assert_int_equal(m->deleted_rows, number_of(want, "deleted_rows"));
    assert_int_equal(m->first_row_id, number_of(want, "first_row_id"));
    int32_t i = 0;
    const json_value *parts = json_get(want, "partitions");
    for (const json_value *p = parts != NULL ? parts->first : NULL; p != NULL; p = p->next, i++) {
        bool null = false;
        assert_true(i < m->n_partitions);
        assert_true(json_bool(json_get(p, "contains_null"), &null));
        assert_int_equal(m->partitions[i].contains_null, null);
        if (m->partitions[i].has_lower) {
            assert_true(hex_is(json_get(p, "lower_bound"), m->partitions[i].lower));
            assert_true(hex_is(json_get(p, "upper_bound"), m->partitions[i].upper));
        }
    }
}

static void compare_counts(const json_value *want, const metric_count *counts, int32_t n) {
    size_t seen = 0;
    for (int32_t i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", counts[i].id);
        if (json_get(want, id) != NULL) {
            assert_int_equal(number_of(want, id), counts[i].count);
            seen++;
        }
    }
    assert_true(want == NULL || want->kind == JSON_NULL || seen == want->count);
}

static void compare_bounds(const json_value *want, const metric_bound *bounds, int32_t n) {
    size_t seen = 0;
    for (int32_t i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", bounds[i].id);
        if (json_get(want, id) != NULL) {
            assert_true(hex_is(json_get(want, id), bounds[i].bytes));
            seen++;
        }
    }
    assert_true(want == NULL || want->kind == JSON_NULL || seen == want->count);
}

static void compare_partition(const tarn_metadata *m, const tarn_file *f, const json_value *want) {
    const tarn_spec *spec = metadata_spec_by_id(m, f->spec_id);
    const json_value *tuple = json_get(want, "partition");
    for (int32_t i = 0; i < f->n_partition && json_is(tuple, JSON_OBJECT); i++) {
        const json_value *v = NULL;
        for (const json_value *p = tuple->first; p != NULL; p = p->next) {
            v = str_eq(p->name, spec->fields[i].name) ? p : v;
        }
        if (v == NULL) {
            continue; /* renamed since: listings show all specs under the newest names */
        }
        const tarn_value *got = &f->partition[i];
        assert_int_equal(got->is_null, v->kind == JSON_NULL);
        if (got->is_null || got->type->kind == TARN_UNKNOWN) {
            continue;
        }
        tarn_value want_value;
        tarn_arena arena;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = test_env();
        arena_init(&arena, env);
        assert_ok(value_from_json(&arena, got->type, v, &want_value, &err));
        assert_true(value_eq(got, &want_value));
        arena_release(&arena);
        test_env_done(env);
    }
}

static void compare_file(const tarn_metadata *m, const tarn_entry *e, const json_value *want) {
    const tarn_file *f = &e->file;
    assert_int_equal(f->content, number_of(want, "content"));
    assert_int_equal(f->record_count, number_of(want, "record_count"));
    assert_int_equal(f->size_bytes, number_of(want, "file_size_in_bytes"));
    assert_int_equal(e->sequence_number, number_of(want, "data_sequence_number"));
    assert_int_equal(e->file_sequence_number, number_of(want, "file_sequence_number"));
    assert_int_equal(f->first_row_id, number_of(want, "first_row_id"));
    compare_counts(json_get(want, "column_sizes"), f->column_sizes, f->n_column_sizes);
    compare_counts(json_get(want, "value_counts"), f->value_counts, f->n_value_counts);
    compare_counts(json_get(want, "null_value_counts"), f->null_counts, f->n_null_counts);
    compare_counts(json_get(want, "nan_value_counts"), f->nan_counts, f->n_nan_counts);
    compare_bounds(json_get(want, "lower_bounds"), f->lower, f->n_lower);
    compare_bounds(json_get(want, "upper_bounds"), f->upper, f->n_upper);
    compare_partition(m, f, want);
}

static void read_files(tarn_arena *arena, const tarn_metadata *m, tarn_str path,
                       const tarn_manifest *manifest, json_value **lines, int n, tally *t) {
    tarn_error err = TARN_ERROR_INIT;
    manifest_entries entries;
    manifest_read_options options = {MANIFEST_WANT_ALL, NULL, 0, true};
    io_source *source = open_file(arena, here(arena, path));
    tarn_code code = manifest_read(arena, source, m, manifest, &options, &entries, &err);
    source->close(source);
    assert_ok(code);
    for (int64_t i = 0; i < entries.count; i++) {
        const json_value *want = line_of(lines, n, "file_path", entries.items[i].file.path);
        t->files++;
        if (want != NULL) {
            compare_file(m, &entries.items[i], want);
            t->listed_files++;
        }
    }
}

static void check_table(const char *folder, tally *t) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    const char *about_path = arena_printf(&arena, "%s/about.json", folder);
    const char *manifests_path = arena_printf(&arena, "%s/manifests.ndjson", folder);
    const char *files_path = arena_printf(&arena, "%s/files.ndjson", folder);
    if (!fixture_exists(about_path) || !fixture_exists(manifests_path) ||
        !fixture_exists(files_path)) {
        arena_release(&arena);
        test_env_done(env);
        return;
    }
    json_value *about = fixture_json(&arena, fixture_read(&arena, about_path));
    const char *path = here(&arena, fixture_str(about, "metadata"));
    const tarn_metadata *m;
    assert_ok(metadata_parse(&arena, fixture_read(&arena, path), path, &m, &err));
    const tarn_snapshot *s = metadata_current_snapshot(m);
    json_value **want, **files;
    int n_want = read_lines(&arena, manifests_path, &want);
    int n_files = read_lines(&arena, files_path, &files);
    if (s != NULL && s->manifest_list.len > 0) {
        const tarn_manifest *list;
        int32_t n;
        io_source *source = open_file(&arena, here(&arena, s->manifest_list));
        assert_ok(manifest_list_read(&arena, source, &list, &n, &err));
        source->close(source);
        assert_int_equal(n, n_want);
        for (int32_t i = 0; i < n; i++) {
            const json_value *line = line_of(want, n_want, "path", list[i].path);
            assert_non_null(line);
            compare_manifest(&list[i], line);
            read_files(&arena, m, list[i].path, &list[i], files, n_files, t);
            t->manifests++;
        }
    }
    for (int32_t i = 0; s != NULL && i < s->n_manifests; i++) { /* of version 1, inline */
        read_files(&arena, m, s->manifests[i], NULL, files, n_files, t);
    }
    for (int i = 0; i < n_files; i++) {
        if (files[i] != NULL) { /* every listed file was found */
            fail_msg("%s: %.*s", folder, STR_ARG(fixture_str(files[i], "file_path")));
        }
    }
    t->tables++;
    arena_release(&arena);
    test_env_done(env);
}

static void listed_tables(void **state) {
    (void)state;
    tally t = {0, 0, 0, 0};
    static const char *const groups[] = {"spark", "spark143", "java",   "java_old",
                                         "flink", "jdbc",     "duckdb", "pyiceberg"};
    if (!fixture_exists(TARN_TEST_SHARED "/fixtures/README.md")) {
        skip();
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/expected/%s", SHARED, groups[i]);
        DIR *dir = opendir(path);
        struct dirent *e;
        while (dir != NULL && (e = readdir(dir)) != NULL) {
            if (e->d_name[0] != '.') {
                char folder[2048];
                snprintf(folder, sizeof folder, "%s/%s", path, e->d_name);
                check_table(folder, &t);
            }
        }
        if (dir != NULL) {
            closedir(dir);
        }
    }
    print_message("%d tables, %d manifests, %d files, %d compared\n", t.tables, t.manifests,
                  t.files, t.listed_files);
    assert_true(t.tables > 100 && t.listed_files > 500);
}

/* ---- everything there is ---- */

typedef struct walker {
    tarn_arena arena; /* of seen */
    tarn_map seen;    /* paths read already */
    const char *home; /* in metadata */
    const char *there;
    int metadata, lists, manifests;
    int64_t entries;
} walker;

static bool first_time(walker *w, const char *path) {
    bool added;
    tarn_str key = str_of(arena_strdup(&w->arena, path));
    assert_non_null(map_put(&w->seen, key, &added));
    return added;
}

/* NULL: the path lies elsewhere, or the file is not there (expired, or missing on purpose). */
static const char *find_file(walker *w, tarn_arena *arena, tarn_str path) {
    size_t len = strlen(w->home);
    for (size_t i = 0; i + len <= path.len; i++) {
        if (memcmp(path.data + i, w->home, len) == 0) {
            char *local = arena_printf(arena, "%s%.*s", w->there, STR_ARG(str_from(path, i + len)));
            return fixture_exists(local) ? local : NULL;
        }
    }
    return NULL;
}

static void visit_manifest(walker *w, const tarn_metadata *m, tarn_str path,
                           const tarn_manifest *manifest) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    manifest_entries entries;
    arena_init(&arena, env);
    const char *local = find_file(w, &arena, path);
    if (local != NULL && first_time(w, local)) {
        io_source *source = open_file(&arena, local);
        tarn_code code = manifest_read(&arena, source, m, manifest, NULL, &entries, &err);
        source->close(source);
        if (code == TARN_OK) {
            w->manifests++;
            w->entries += entries.count;
        } else if (code != TARN_UNSUPPORTED) {
            fail_msg("%s: %s", local, err.message);
        }
    }
    arena_release(&arena);
    test_env_done(env);
}

static void visit_snapshot(walker *w, tarn_arena *arena, const tarn_metadata *m,
                           const tarn_snapshot *s) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_manifest *list;
    int32_t n;
    for (int32_t i = 0; i < s->n_manifests; i++) {
        visit_manifest(w, m, s->manifests[i], NULL);
    }
    const char *local = find_file(w, arena, s->manifest_list);
    if (local == NULL || !first_time(w, local)) {
        return;
    }
    io_source *source = open_file(arena, local);
    tarn_code code = manifest_list_read(arena, source, &list, &n, &err);
    source->close(source);
    if (code == TARN_UNSUPPORTED) {
        return;
    }
    assert_ok(code);
    w->lists++;
    for (int32_t i = 0; i < n; i++) {
        visit_manifest(w, m, list[i].path, &list[i]);
    }
}

static void visit_metadata(walker *w, const char *path) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_metadata *m;
    arena_init(&arena, env);
    if (metadata_parse(&arena, fixture_read(&arena, path), path, &m, &err) == TARN_OK) {
        w->metadata++;
        for (int32_t i = 0; i < m->n_snapshots; i++) {
            visit_snapshot(w, &arena, m, m->snapshots[i]);
        }
    }
    arena_release(&arena);
    test_env_done(env);
}

static void walk(walker *w, const char *folder) {
    DIR *dir = opendir(folder);
    struct dirent *e;
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        char path[2048];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &st) != 0) {
            continue;
        }
        if (S_ISDIR(st.st_mode)) {
            walk(w, path);
        } else if (strstr(e->d_name, ".metadata.json") != NULL && st.st_size > 0) {
            visit_metadata(w, path);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static void everything_reads(void **state) {
    (void)state;
    if (!fixture_exists(TARN_TEST_SHARED "/fixtures/README.md")) {
        skip();
    }
    static const char *const homes[][2] = {
        {"/tarn-fixtures/iceberg", TARN_TEST_SHARED "/fixtures/iceberg"},
        {"/tarn-fixtures/bugs/open", TARN_TEST_SHARED "/bugs"}};
    for (int i = 0; i < 2; i++) {
        walker w = {.home = homes[i][0], .there = homes[i][1]};
        tarn_env *env = test_env();
        arena_init(&w.arena, env);
        map_init(&w.seen, &w.arena);
        walk(&w, w.there);
        print_message("%s: %d documents, %d lists, %d manifests, %lld entries\n", w.there,
                      w.metadata, w.lists, w.manifests, (long long)w.entries);
        assert_true(w.manifests > (i == 0 ? 400 : 20));
        arena_release(&w.arena);
        test_env_done(env);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(listed_tables),
                                       cmocka_unit_test(everything_reads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
