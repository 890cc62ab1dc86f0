/* bench/bench_deletes.c - what row deletes cost a read.
 * room: dml
 *
 *     bench_deletes FOLDER [ROWS [ROUNDS]]
 *
 * Makes tables of ROWS rows (10 million) in files of a million, one a kind of deletes, 1 % of the
 * rows deleted: none, position deletes, deletion vectors, equality deletes in one file and in 200;
 * the key is a long, or for "text" a string. Then scans each in turn, whole, ROUNDS times (5), and
 * prints the medians of elapsed and processor time, and how often those of the table without
 * deletes they are. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "read/scan.h"
#include "write/commit/commit.h"
#include "write/files/data_writer.h"
#include "write/files/delete_writer.h"

#define FILE_ROWS  1000000
#define BATCH_ROWS 16384
#define EVERY      100 /* one row of these is deleted */

typedef enum bench_kind { NONE, POSITIONS, VECTORS, KEYS, KEYS_200, TEXT, KINDS } bench_kind;
static const char *const names[KINDS] = {"none",     "position",     "vector",
                                         "equality", "equality-200", "equality-text"};

typedef struct bench {
    tarn_env *env;
    tarn_catalog *catalog;
    tarn_arena arena;
    tarn_error err;
    tarn_ident ident[KINDS];
    double seconds[KINDS][64], cpu[KINDS][64];
    int64_t rows[KINDS];
    int64_t total;
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

/* A row that is deleted, one in EVERY rows, at no fixed distance. */
static int64_t victim(int64_t i) {
    return i * EVERY + (int64_t)(((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % EVERY;
}

static void put_row(bench *b, tarn_builder *rows, int64_t id) {
    static const char *const carriers[] = {"AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN"};
    const double delay = (double)((id * 7919) % 2000) / 10;
    const int64_t time = id * 1000003 % INT64_C(86400000000) + INT64_C(1357000000000000);
    const int32_t distance = (int32_t)(id * 31 % 5000);
    char tail[24];
    (void)snprintf(tail, sizeof tail, "N%07lld", (long long)id);
    check(b, builder_fixed(&rows->children[0], &id, &b->err));
    check(b, builder_bytes(&rows->children[1], str_of(tail), &b->err));
    check(b, builder_bytes(&rows->children[2], str_of(carriers[id * 13 % 8]), &b->err));
    check(b, builder_fixed(&rows->children[3], &distance, &b->err));
    check(b, builder_fixed(&rows->children[4], &delay, &b->err));
    check(b, builder_fixed(&rows->children[5], &time, &b->err));
    check(b, builder_close(rows, &b->err));
}

static void write_rows(bench *b, data_writer *w, const tarn_type *type, int64_t from, int64_t n) {
    tarn_builder rows;
    check(b, builder_init(&rows, b->env, type, &b->err));
    for (int64_t i = 0; i < n; i += BATCH_ROWS) {
        tarn_batch batch;
        for (int64_t k = i; k < n && k < i + BATCH_ROWS; k++) {
            put_row(b, &rows, from + k);
        }
        check(b, builder_finish_batch(&rows, &batch, &b->err));
        check(b, data_writer_write(w, &batch, &b->err));
        batch_release(&batch);
    }
    builder_release(&rows);
}

static void commit(bench *b, const tarn_ident *ident, const write_result *r) {
    commit_request request;
    commit_outcome outcome;
    memset(&request, 0, sizeof request);
    request.kind = COMMIT_ROW_DELTA;
    request.added = r->files;
    request.n_added = r->n_files;
    request.added_deletes = r->deletes;
    request.n_added_deletes = r->n_deletes;
    request.from_snapshot_id = TARN_NO_SNAPSHOT;
    check(b, commit_run(b->env, b->catalog, ident, NULL, &request, &outcome, &b->err));
    table_version_release(outcome.version);
}

static void add_data(bench *b, const tarn_metadata *m, const tarn_ident *ident, write_result *r) {
    for (int64_t from = 0; from < b->total; from += FILE_ROWS) {
        data_writer_options options;
        data_writer *w;
        write_result one;
        memset(&options, 0, sizeof options);
        options.metadata = m;
        options.keep_order = true;
        check(b, data_writer_new(b->env, b->catalog->store, &options, &w, &b->err));
        write_rows(b, w, metadata_schema(m)->root, from,
                   b->total - from < FILE_ROWS ? b->total - from : FILE_ROWS);
        memset(&one, 0, sizeof one);
        check(b, data_writer_close(w, &b->arena, &one, &b->err));
        data_writer_free(w);
        commit(b, ident, &one);
        r->files[r->n_files++] = one.files[0];
    }
}

static void delete_positions(bench *b, const tarn_metadata *m, bench_kind kind,
                             const write_result *data) {
    delete_writer_options options;
    delete_writer *w;
    write_result r;
    memset(&options, 0, sizeof options);
    memset(&r, 0, sizeof r);
    options.metadata = m;
    options.kind = kind == VECTORS ? DELETE_VECTOR : DELETE_POSITION;
    check(b, delete_writer_new(b->env, b->catalog->store, &options, &w, &b->err));
    for (int64_t i = 0; i < b->total / EVERY; i++) {
        const int64_t position = victim(i) % FILE_ROWS;
        check(b, delete_writer_add(w, &data->files[victim(i) / FILE_ROWS], &position, 1, &b->err));
    }
    check(b, delete_writer_close(w, &b->arena, &r, &b->err));
    delete_writer_free(w);
    commit(b, &b->ident[kind], &r);
}

static void delete_keys(bench *b, const tarn_metadata *m, bench_kind kind) {
    const int32_t key = kind == TEXT ? 2 : 1;
    const tarn_field *field = type_find_id(metadata_schema(m)->root, key);
    const tarn_type *type = type_struct(&b->arena, field, 1);
    const int64_t files = kind == KEYS_200 ? 200 : 1;
    const int64_t keys = b->total / EVERY;
    write_result all;
    memset(&all, 0, sizeof all);
    all.deletes = ARENA_ARRAY(&b->arena, tarn_file, (size_t)files);
    for (int64_t f = 0; f < files; f++) {
        data_writer_options options;
        data_writer *w;
        write_result one;
        tarn_builder rows;
        tarn_batch batch;
        memset(&options, 0, sizeof options);
        memset(&one, 0, sizeof one);
        options.metadata = m;
        options.root = type;
        options.equality_ids = &key;
        options.n_equality_ids = 1;
        check(b, data_writer_new(b->env, b->catalog->store, &options, &w, &b->err));
        check(b, builder_init(&rows, b->env, type, &b->err));
        for (int64_t i = f; i < keys; i += files) {
            const int64_t id = victim(i);
            char tail[24];
            (void)snprintf(tail, sizeof tail, "N%07lld", (long long)id);
            check(b, key == 1 ? builder_fixed(&rows.children[0], &id, &b->err)
                              : builder_bytes(&rows.children[0], str_of(tail), &b->err));
            check(b, builder_close(&rows, &b->err));
        }
        check(b, builder_finish_batch(&rows, &batch, &b->err));
        check(b, data_writer_write(w, &batch, &b->err));
        batch_release(&batch);
        builder_release(&rows);
        check(b, data_writer_close(w, &b->arena, &one, &b->err));
        data_writer_free(w);
        all.deletes[all.n_deletes++] = one.deletes[0];
    }
    commit(b, &b->ident[kind], &all);
}

static void make_table(bench *b, bench_kind kind) {
    static const tarn_str level = {"n", 1};
    metadata_new_options o;
    tarn_table_version *version;
    write_result data;
    memset(&o, 0, sizeof o);
    memset(&data, 0, sizeof data);
    data.files = ARENA_ARRAY(&b->arena, tarn_file, (size_t)(b->total / FILE_ROWS) + 1);
    b->ident[kind] = (tarn_ident){1, &level, str_of(names[kind])};
    o.format_version = kind == VECTORS ? 3 : 2;
    check(b, type_columns_from_text(&b->arena,
                                    STR("id long, tail string, carrier string, distance int, "
                                        "delay double, time timestamp"),
                                    &o.root, &b->err));
    if (catalog_load(b->catalog, &b->ident[kind], &version, NULL) == TARN_OK) {
        table_version_release(version); /* of an earlier run */
        return;
    }
    check(b, catalog_create(b->catalog, &b->ident[kind], &o, &version, &b->err));
    add_data(b, version->metadata, &b->ident[kind], &data);
    if (kind == POSITIONS || kind == VECTORS) {
        delete_positions(b, version->metadata, kind, &data);
    } else if (kind != NONE) {
        delete_keys(b, version->metadata, kind);
    }
    table_version_release(version);
}

static void scan_table(bench *b, bench_kind kind, int round) {
    tarn_table_version *version;
    scan_options options;
    tarn_plan *plan;
    tarn_scan *scan;
    tarn_batch batch;
    memset(&options, 0, sizeof options);
    memset(&batch, 0, sizeof batch);
    check(b, catalog_load(b->catalog, &b->ident[kind], &version, &b->err));
    const double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    options.metadata = version->metadata;
    options.snapshot_id = TARN_NO_SNAPSHOT;
    options.limit = -1;
    b->rows[kind] = 0;
    check(b, plan_new(b->env, b->catalog->store, &options, &plan, &b->err));
    check(b, scan_open(plan, &scan, &b->err));
    do {
        batch_release(&batch);
        check(b, scan_next(scan, &batch, &b->err));
        b->rows[kind] += batch_rows(&batch);
    } while (batch_rows(&batch) > 0);
    scan_close(scan);
    plan_free(plan);
    b->seconds[kind][round] = now(CLOCK_MONOTONIC) - start;
    b->cpu[kind][round] = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    table_version_release(version);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static bench b;
    const int rounds = argc > 3 ? atoi(argv[3]) : 5;
    tarn_store *store = NULL;
    tarn_ident ns = {1, (const tarn_str[]){{"n", 1}}, STR_NULL};
    if (argc < 2 || rounds < 1 || rounds > 64) {
        fprintf(stderr, "usage: bench_deletes FOLDER [ROWS [ROUNDS]]\n");
        return 2;
    }
    b.total = argc > 2 ? atoll(argv[2]) : 10 * FILE_ROWS;
    check(&b, tarn_env_new(NULL, &b.env, &b.err));
    arena_init(&b.arena, b.env);
    check(&b, store_file_new(b.env, false, &store, &b.err));
    check(&b, catalog_dir_new(b.env, store, str_of(argv[1]), &b.catalog, &b.err));
    (void)catalog_create_namespace(b.catalog, &ns, NULL, NULL);
    for (int kind = 0; kind < KINDS; kind++) {
        make_table(&b, (bench_kind)kind);
    }
    for (int round = 0; round < rounds; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            scan_table(&b, (bench_kind)kind, round);
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        qsort(b.seconds[kind], (size_t)rounds, sizeof(double), compare_doubles);
        qsort(b.cpu[kind], (size_t)rounds, sizeof(double), compare_doubles);
        const double wall = b.seconds[kind][rounds / 2], cpu = b.cpu[kind][rounds / 2];
        printf("%-14s %7.3f s %5.2f x, processor %7.3f s %5.2f x, %lld rows\n", names[kind], wall,
               wall / b.seconds[NONE][rounds / 2], cpu, cpu / b.cpu[NONE][rounds / 2],
               (long long)b.rows[kind]);
    }
    printf("peak %lld MiB\n", (long long)(tarn_env_memory_peak(b.env) >> 20));
    arena_release(&b.arena);
    catalog_close(b.catalog);
    tarn_env_free(b.env);
    return 0;
}
