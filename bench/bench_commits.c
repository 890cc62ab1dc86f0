/* bench/bench_commits.c - what a commit costs after many: does it grow?
 * room: dml
 *
 *     bench_commits dir|sqlite FOLDER append|delta|vector COMMITS
 *
 * append: one data file a commit, fast append. delta: one data and one equality delete file a
 * commit, manifests merged. vector: one data file a commit, and new vectors for the eight newest
 * data files in place of the ones before (format version 3), manifests merged. No data files exist.
 * Each commit starts from the version that the one before gave, as a sink's do. Prints
 * commits so far, and of the last tenth of them milliseconds a commit: median, largest, and mean of
 * processor time; then the bytes of the last metadata. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "write/commit/commit.h"

#define NEWEST 8

typedef struct bench {
    tarn_env *env;
    tarn_catalog *catalog;
    tarn_arena arena;
    tarn_error err;
    tarn_ident ident;
    tarn_table_version *version;
    tarn_file data[NEWEST];    /* a ring of the newest data files */
    tarn_file vectors[NEWEST]; /* and of their vectors */
    bool has_vector[NEWEST];
} bench;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(bench *b, tarn_code code) {
    if (code != TARN_OK) {
        fprintf(stderr, "%s %s\n", b->err.message, b->err.detail);
        exit(1);
    }
}

static void open_table(bench *b, const char *kind, const char *folder, bool v3) {
    static const tarn_str level = {"n", 1};
    tarn_store *store = NULL;
    metadata_new_options o;
    char *db = arena_printf(&b->arena, "%s/catalog.db", folder);
    memset(&o, 0, sizeof o);
    b->ident = (tarn_ident){1, &level, STR("t")};
    tarn_ident ns = {1, &level, STR_NULL};
    check(b, store_file_new(b->env, true, &store, &b->err));
    if (strcmp(kind, "dir") == 0) {
        check(b, catalog_dir_new(b->env, store, str_of(folder), &b->catalog, &b->err));
    } else {
        check(b, catalog_sqlite_new(b->env, store, str_of(db), STR("tarn"), str_of(folder),
                                    &b->catalog, &b->err));
    }
    check(b, catalog_create_namespace(b->catalog, &ns, NULL, &b->err));
    o.format_version = v3 ? 3 : 2;
    check(b, type_from_text(&b->arena, STR("struct<id: long, name: string>"), &o.root, &b->err));
    check(b, catalog_create(b->catalog, &b->ident, &o, &b->version, &b->err));
}

static tarn_file make_file(bench *b, const char *what, int64_t i, tarn_content content) {
    static const int32_t key[] = {1};
    tarn_file f;
    tarn_value lower = value_i64(type_primitive(TARN_LONG), i * 1000);
    tarn_value upper = value_i64(type_primitive(TARN_LONG), i * 1000 + 999);
    metric_count *counts = ARENA_ARRAY(&b->arena, metric_count, 4);
    metric_bound *bounds = ARENA_ARRAY(&b->arena, metric_bound, 2);
    memset(&f, 0, sizeof f);
    for (int c = 0; c < 2; c++) {
        counts[c] = (metric_count){c + 1, 1000};
        counts[2 + c] = (metric_count){c + 1, 0};
    }
    check(b, value_to_binary(&b->arena, &lower, &bounds[0].bytes, &b->err));
    check(b, value_to_binary(&b->arena, &upper, &bounds[1].bytes, &b->err));
    bounds[0].id = bounds[1].id = 1;
    f.content = content;
    f.path = str_of(arena_printf(
        &b->arena, "/warehouse/n/t/data/%s-%lld-5a1a1a5e-0000-4000-8000-000000000000.parquet", what,
        (long long)i));
    f.record_count = 1000;
    f.size_bytes = 50000;
    f.value_counts = counts;
    f.null_counts = counts + 2;
    f.n_value_counts = f.n_null_counts = 2;
    f.lower = bounds;
    f.upper = bounds + 1;
    f.n_lower = f.n_upper = 1;
    f.sort_order_id = 0;
    f.first_row_id = f.content_offset = f.content_size = -1;
    if (content == TARN_CONTENT_EQUALITY_DELETES) {
        f.equality_ids = key;
        f.n_equality_ids = 1;
    }
    return f;
}

static int32_t make_vectors(bench *b, int64_t i, tarn_file *vectors, tarn_entry *removed,
                            int32_t *n_removed) {
    int32_t n = 0;
    *n_removed = 0;
    for (int32_t k = 0; k < NEWEST && k < i; k++) {
        tarn_file v = make_file(b, "vector", i, TARN_CONTENT_POSITION_DELETES);
        v.n_value_counts = v.n_null_counts = v.n_lower = v.n_upper = 0;
        v.format = TARN_FORMAT_PUFFIN;
        v.referenced_data_file = b->data[k].path;
        v.content_offset = 4 + 100 * k;
        v.content_size = 100;
        if (b->has_vector[k]) {
            memset(&removed[*n_removed], 0, sizeof *removed);
            removed[(*n_removed)++].file = b->vectors[k];
        }
        b->vectors[k] = vectors[n++] = v;
        b->has_vector[k] = true;
    }
    return n;
}

static double commit(bench *b, const char *what, int64_t i) {
    commit_request r;
    commit_outcome outcome;
    tarn_file vectors[NEWEST];
    tarn_entry removed[NEWEST];
    memset(&r, 0, sizeof r);
    tarn_file f = make_file(b, "data", i, TARN_CONTENT_DATA);
    tarn_file e = make_file(b, "equality", i, TARN_CONTENT_EQUALITY_DELETES);
    r.kind = strcmp(what, "append") == 0 ? COMMIT_FAST_APPEND : COMMIT_ROW_DELTA;
    r.merge = r.kind == COMMIT_ROW_DELTA;
    r.added = &f;
    r.n_added = 1;
    r.from_snapshot_id = b->version->metadata->current_snapshot_id;
    if (strcmp(what, "delta") == 0) {
        r.added_deletes = &e;
        r.n_added_deletes = 1;
    } else if (strcmp(what, "vector") == 0) {
        r.n_added_deletes = make_vectors(b, i, vectors, removed, &r.n_removed_deletes);
        r.added_deletes = vectors;
        r.removed_deletes = removed;
        b->data[i % NEWEST] = f;
        b->has_vector[i % NEWEST] = false;
    }
    double start = now(CLOCK_MONOTONIC);
    check(b, commit_run(b->env, b->catalog, &b->ident, b->version, &r, &outcome, &b->err));
    double seconds = now(CLOCK_MONOTONIC) - start;
    table_version_release(b->version);
    b->version = outcome.version;
    return seconds * 1e3;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    bench b;
    if (argc != 5 || atoll(argv[4]) < 10) {
        fprintf(stderr, "usage: bench_commits dir|sqlite FOLDER append|delta|vector COMMITS\n");
        return 2;
    }
    int64_t n = atoll(argv[4]) / 10;
    double *times = calloc((size_t)n, sizeof *times);
    memset(&b, 0, sizeof b);
    b.err = (tarn_error)TARN_ERROR_INIT;
    if (times == NULL || tarn_env_new(NULL, &b.env, &b.err) != TARN_OK) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    arena_init(&b.arena, b.env);
    open_table(&b, argv[1], argv[2], strcmp(argv[3], "vector") == 0);
    for (int64_t tenth = 0; tenth < 10; tenth++) {
        double start = now(CLOCK_PROCESS_CPUTIME_ID);
        for (int64_t i = 0; i < n; i++) {
            times[i] = commit(&b, argv[3], tenth * n + i);
        }
        double cpu = (now(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e3 / (double)n;
        qsort(times, (size_t)n, sizeof *times, by_value);
        printf("%lld %.2f %.2f %.2f\n", (long long)(tenth + 1) * n, times[n / 2], times[n - 1],
               cpu);
    }
    io_source *source = NULL;
    check(&b, store_open(b.catalog->store, b.version->metadata_location, -1, &source, &b.err));
    printf("metadata %lld\n", (long long)source->size_bytes);
    source->close(source);
    table_version_release(b.version);
    catalog_close(b.catalog);
    arena_release(&b.arena);
    tarn_env_free(b.env);
    free(times);
    return 0;
}
