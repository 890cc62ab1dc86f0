/* bench/bench_files.c - metadata at size: tables of many file entries, appended and planned.
 * room: dml
 *
 *     bench_files FOLDER FILES MANIFESTS
 *
 * Makes a table of FILES entries in MANIFESTS commits, and another in one commit; no data files
 * exist. Prints "append-seconds" of the single commit, "plan-seconds" for one filtered and one
 * whole plan, "decode-rate" (manifest entries a second on one thread, path, partition and counts
 * only), and the first table's "metadata" file. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "read/scan.h"
#include "write/commit/commit.h"

typedef struct bench {
    tarn_env *env;
    tarn_catalog *catalog;
    tarn_arena arena;
    tarn_error err;
} bench;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(bench *b, tarn_code code) {
    if (code != TARN_OK) {
        fprintf(stderr, "%s %s\n", b->err.message, b->err.detail);
        exit(1);
    }
}

static tarn_ident ident_of(const char *name) {
    static const tarn_str levels[] = {{"n", 1}};
    return (tarn_ident){1, levels, str_of(name)};
}

static void create(bench *b, const tarn_ident *ident) {
    metadata_new_options o;
    tarn_table_version *version = NULL;
    memset(&o, 0, sizeof o);
    check(b, type_from_text(&b->arena, STR("struct<id: long, name: string, amount: double>"),
                            &o.root, &b->err));
    check(b, catalog_create(b->catalog, ident, &o, &version, &b->err));
    table_version_release(version);
}

/* Entries as a writer makes them: counts and bounds of three columns. */
static tarn_file *make_files(bench *b, tarn_arena *arena, int64_t first, int32_t n) {
    tarn_file *files = ARENA_ARRAY(arena, tarn_file, (size_t)n);
    for (int32_t i = 0; i < n && files != NULL; i++) {
        int64_t low = (first + i) * 1000;
        tarn_value lower = value_i64(type_primitive(TARN_LONG), low);
        tarn_value upper = value_i64(type_primitive(TARN_LONG), low + 999);
        metric_count *counts = ARENA_ARRAY(arena, metric_count, 9);
        metric_bound *bounds = ARENA_ARRAY(arena, metric_bound, 4);
        for (int c = 0; c < 3; c++) {
            counts[c] = (metric_count){c + 1, 8000};
            counts[3 + c] = (metric_count){c + 1, 1000};
            counts[6 + c] = (metric_count){c + 1, 0};
        }
        check(b, value_to_binary(arena, &lower, &bounds[0].bytes, &b->err));
        check(b, value_to_binary(arena, &upper, &bounds[2].bytes, &b->err));
        bounds[0].id = bounds[2].id = 1;
        bounds[1] = (metric_bound){2, STR("a customer's name")};
        bounds[3] = (metric_bound){2, STR("z customer's name")};
        tarn_file *f = &files[i];
        f->format = TARN_FORMAT_PARQUET;
        f->path = str_of(arena_printf(
            arena, "/warehouse/n/t/data/00000-%lld-5a1a1a5e-0000-4000-8000-000000000000.parquet",
            (long long)(first + i)));
        f->record_count = 1000;
        f->size_bytes = 50000;
        f->column_sizes = counts;
        f->value_counts = counts + 3;
        f->null_counts = counts + 6;
        f->n_column_sizes = f->n_value_counts = f->n_null_counts = 3;
        f->lower = bounds;
        f->upper = bounds + 2;
        f->n_lower = f->n_upper = 2;
        f->sort_order_id = 0;
        f->first_row_id = f->content_offset = f->content_size = -1;
    }
    return files;
}

static double append(bench *b, const tarn_ident *ident, int64_t first, int32_t n) {
    tarn_arena arena;
    commit_request request;
    commit_outcome outcome;
    arena_init(&arena, b->env);
    memset(&request, 0, sizeof request);
    request.kind = COMMIT_FAST_APPEND;
    request.added = make_files(b, &arena, first, n);
    request.n_added = n;
    request.from_snapshot_id = TARN_NO_SNAPSHOT;
    double start = now();
    check(b, commit_run(b->env, b->catalog, ident, NULL, &request, &outcome, &b->err));
    double seconds = now() - start;
    table_version_release(outcome.version);
    arena_release(&arena);
    return seconds;
}

static double plan(bench *b, const tarn_metadata *m, const char *where, int64_t *tasks) {
    scan_options options;
    tarn_plan *p;
    memset(&options, 0, sizeof options);
    options.metadata = m;
    options.snapshot_id = TARN_NO_SNAPSHOT;
    options.limit = -1;
    if (where != NULL) {
        check(b, expr_parse(&b->arena, str_of(where), &options.filter, &b->err));
    }
    double start = now();
    check(b, plan_new(b->env, b->catalog->store, &options, &p, &b->err));
    double seconds = now() - start;
    *tasks = p->n_tasks;
    plan_free(p);
    return seconds;
}

/* Entries a second of every manifest of the current snapshot, one after another. */
static double decode_rate(bench *b, const tarn_metadata *m) {
    tarn_arena arena;
    io_source *source;
    const tarn_manifest *manifests;
    int32_t n;
    int64_t entries = 0;
    double seconds = 0;
    arena_init(&arena, b->env);
    check(b, store_open(b->catalog->store, metadata_current_snapshot(m)->manifest_list, -1, &source,
                        &b->err));
    check(b, manifest_list_read(&arena, source, &manifests, &n, &b->err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        tarn_arena scratch;
        manifest_entries some;
        manifest_read_options options;
        memset(&options, 0, sizeof options);
        arena_init(&scratch, b->env);
        double start = now();
        check(b, store_open(b->catalog->store, manifests[i].path, -1, &source, &b->err));
        check(b, manifest_read(&scratch, source, m, &manifests[i], &options, &some, &b->err));
        source->close(source);
        seconds += now() - start;
        entries += some.count;
        arena_release(&scratch);
    }
    arena_release(&arena);
    return (double)entries / seconds;
}

int main(int argc, char **argv) {
    bench b;
    tarn_store *store;
    tarn_table_version *version;
    int64_t one;
    int64_t all;
    if (argc != 4) {
        fprintf(stderr, "usage: bench_files FOLDER FILES MANIFESTS\n");
        return 2;
    }
    memset(&b, 0, sizeof b);
    b.err = (tarn_error)TARN_ERROR_INIT;
    int32_t files = atoi(argv[2]);
    int32_t manifests = atoi(argv[3]);
    check(&b, tarn_env_new(NULL, &b.env, &b.err));
    arena_init(&b.arena, b.env);
    check(&b, store_file_new(b.env, false, &store, &b.err));
    check(&b, catalog_dir_new(b.env, store, str_of(argv[1]), &b.catalog, &b.err));
    tarn_ident ns = {1, ident_of("").levels, STR_NULL};
    tarn_ident many = ident_of("many");
    tarn_ident single = ident_of("single");
    check(&b, catalog_create_namespace(b.catalog, &ns, NULL, &b.err));
    create(&b, &many);
    create(&b, &single);
    for (int32_t i = 0; i < manifests; i++) {
        append(&b, &many, (int64_t)i * (files / manifests), files / manifests);
    }
    printf("append-seconds %.3f\n", append(&b, &single, 0, files));
    check(&b, catalog_load(b.catalog, &many, &version, &b.err));
    double filtered = plan(&b, version->metadata, "id = 12345", &one);
    double whole = plan(&b, version->metadata, NULL, &all);
    printf("plan-seconds %.3f\nplan-filtered %.3f %lld files\nplan-whole %.3f %lld files\n",
           filtered + whole, filtered, (long long)one, whole, (long long)all);
    printf("decode-rate %.0f\n", decode_rate(&b, version->metadata));
    printf("metadata %.*s\n", STR_ARG(version->metadata_location));
    table_version_release(version);
    catalog_close(b.catalog);
    arena_release(&b.arena);
    tarn_env_free(b.env);
    return 0;
}
