/* bench/bench_writers.c - writers that commit to one table at the same time without a service: each
 * loads, swaps and tries again.
 * room: write/commit
 *
 *     bench_writers DATABASE FOLDER WRITERS COMMITS
 *
 * DATABASE: sqlite:FILE or postgresql://...; FOLDER: the warehouse. Every writer is a thread with a
 * catalog of its own and makes COMMITS appends of one file (no data files exist). Prints commits in
 * a second, milliseconds a commit (median, 99 of 100, largest), and the attempts they took. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "write/commit/commit.h"

typedef struct writer {
    tarn_env *env;
    const char *database, *folder;
    int number, commits, failed;
    long attempts;
    double *ms; /* of each commit */
    pthread_t thread;
} writer;

static const tarn_str LEVEL = {"n", 1};
static const tarn_ident TABLE = {1, &LEVEL, {"t", 1}};

static void check(tarn_code code, const tarn_error *err) {
    if (code != TARN_OK) {
        fprintf(stderr, "%s %s\n", err->message, err->detail);
        exit(1);
    }
}

static tarn_catalog *open_catalog(const writer *w) {
    tarn_store *store = NULL;
    tarn_catalog *catalog = NULL;
    tarn_error err = TARN_ERROR_INIT;
    check(store_file_new(w->env, true, &store, &err), &err);
    if (strncmp(w->database, "sqlite:", 7) == 0) {
        check(catalog_sqlite_new(w->env, store, str_of(w->database + 7), STR("tarn"),
                                 str_of(w->folder), &catalog, &err),
              &err);
    } else {
        check(catalog_postgres_new(w->env, store, str_of(w->database), STR("tarn"),
                                   str_of(w->folder), &catalog, &err),
              &err);
    }
    return catalog;
}

static void make_table(tarn_catalog *catalog) {
    metadata_new_options o;
    tarn_arena arena;
    tarn_error err = TARN_ERROR_INIT;
    const tarn_ident ns = {1, &LEVEL, STR_NULL};
    static const tarn_property many[] = {{{"commit.retry.num-retries", 24}, {"1000", 4}}};
    memset(&o, 0, sizeof o);
    o.properties = (tarn_properties){1, many};
    arena_init(&arena, catalog->env);
    check(type_from_text(&arena, STR("struct<id: long>"), &o.root, &err), &err);
    check(catalog_create_namespace(catalog, &ns, NULL, &err), &err);
    check(catalog_create(catalog, &TABLE, &o, NULL, &err), &err);
    arena_release(&arena);
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void *run(void *ctx) {
    writer *w = ctx;
    tarn_catalog *catalog = open_catalog(w);
    for (int i = 0; i < w->commits; i++) {
        char path[1024];
        tarn_error err = TARN_ERROR_INIT;
        commit_outcome outcome;
        commit_request r;
        tarn_file f;
        memset(&f, 0, sizeof f);
        memset(&r, 0, sizeof r);
        snprintf(path, sizeof path, "%s/n/t/data/f-%d-%d.parquet", w->folder, w->number, i);
        f.path = str_of(path);
        f.record_count = 1;
        f.size_bytes = 1000;
        f.sort_order_id = -1;
        f.first_row_id = f.content_offset = f.content_size = -1;
        r.kind = COMMIT_MERGE_APPEND;
        r.added = &f;
        r.n_added = 1;
        r.from_snapshot_id = TARN_NO_SNAPSHOT;
        double began = now_ms();
        w->failed += commit_run(w->env, catalog, &TABLE, NULL, &r, &outcome, &err) != TARN_OK;
        w->ms[i] = now_ms() - began;
        w->attempts += outcome.attempts;
        table_version_release(outcome.version);
    }
    catalog_close(catalog);
    return NULL;
}

int main(int argc, char **argv) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = NULL;
    tarn_error err = TARN_ERROR_INIT;
    struct timespec a, b;
    if (argc != 5) {
        fprintf(stderr, "usage: bench_writers DATABASE FOLDER WRITERS COMMITS\n");
        return 2;
    }
    int n = atoi(argv[3]);
    long attempts = 0;
    int failed = 0;
    check(tarn_env_new(&options, &env, &err), &err);
    writer *writers = calloc((size_t)n, sizeof *writers);
    double *ms = calloc((size_t)n * (size_t)atoi(argv[4]), sizeof *ms);
    if (writers == NULL || ms == NULL) {
        return 1;
    }
    for (int i = 0; i < n; i++) {
        writers[i] = (writer){.env = env,
                              .database = argv[1],
                              .folder = argv[2],
                              .number = i,
                              .commits = atoi(argv[4]),
                              .ms = ms + (size_t)i * (size_t)atoi(argv[4])};
    }
    tarn_catalog *catalog = open_catalog(&writers[0]);
    make_table(catalog);
    catalog_close(catalog);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < n; i++) {
        if (pthread_create(&writers[i].thread, NULL, run, &writers[i]) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < n; i++) {
        (void)pthread_join(writers[i].thread, NULL);
        attempts += writers[i].attempts;
        failed += writers[i].failed;
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    int commits = n * atoi(argv[4]);
    qsort(ms, (size_t)commits, sizeof *ms, compare);
    printf("%d writers: %d commits in %.2f s, %.1f a second; ms median %.1f, p99 %.1f, max %.1f; "
           "%.2f attempts a commit; %d failed\n",
           n, commits, s, commits / s, ms[commits / 2], ms[commits * 99 / 100], ms[commits - 1],
           (double)attempts / commits, failed);
    free(ms);
    free(writers);
    tarn_env_free(env);
    return failed > 0;
}
