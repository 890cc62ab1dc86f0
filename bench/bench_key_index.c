/* bench/bench_key_index.c - how fast the key index finds and puts. room: dml
 *
 *     bench_key_index FOLDER [million keys] [million upserts] [MiB of memory] [rows per checkpoint]
 *
 * Fills an index of the folder with keys in the order of a shuffled table, as where a table is read
 * (key_index_load), where the folder has none yet. Then upserts keys drawn at random from all of
 * them (find, then put), in batches of 65,536 and checkpoints of a million; three rounds, since
 * compaction comes late. Says rows a second and the largest resident size; every key has to be
 * found. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sys/resource.h>

#include "base/num.h"
#include "dml/key_index.h"

#define BATCH 65536
#define SHOWN 5000000 /* rows between two lines of a filling */

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double processor_s(void) {
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void check(tarn_code code, const tarn_error *err) {
    if (code != TARN_OK) {
        fprintf(stderr, "%s: %s\n", tarn_code_name(code), err->message);
        exit(1);
    }
}

static uint64_t mixed(uint64_t x) {
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

typedef struct rows {
    uint8_t bytes[BATCH][9];
    tarn_str keys[BATCH];
    key_location at[BATCH];
} rows;

/* The bytes of a long key: present, then 8 bytes. Keys are 0, 7, 14...: ids with gaps. */
static void set_key(rows *r, size_t i, uint64_t n) {
    uint64_t v = n * 7;
    r->bytes[i][0] = 1;
    memcpy(r->bytes[i] + 1, &v, 8);
    r->keys[i] = str_make(r->bytes[i], 9);
}

static void say(const char *what, uint64_t n, double start, double used) {
    printf("%s: %llu rows, %.0f rows/s, %.2f us of processor a row\n", what, (unsigned long long)n,
           (double)n / (now_s() - start), 1e6 * (processor_s() - used) / (double)n);
}

static void fill(key_index *index, rows *r, uint64_t n, tarn_error *err) {
    uint64_t step = UINT64_C(2654435761) % n | 1;
    while (n % step == 0 && step > 1) {
        step += 2;
    }
    uint64_t key = 0;
    int32_t file = 0;
    double start = now_s();
    double used = processor_s();
    for (uint64_t done = 0; done < n;) {
        size_t some = n - done < BATCH ? (size_t)(n - done) : BATCH;
        if (done / 1000000 != (done + some) / 1000000 || done == 0) {
            char path[64];
            (void)snprintf(path, sizeof path, "file:///t/data/%08lld.parquet",
                           (long long)(done / 1000000));
            check(key_index_file_number(index, str_of(path), &file, err), err);
        }
        for (size_t i = 0; i < some; i++) {
            set_key(r, i, key);
            r->at[i] = (key_location){file, (int64_t)(done + i)};
            key = (key + step) % n;
        }
        check(key_index_load(index, r->keys, r->at, some, err), err);
        done += some;
        if (done / SHOWN != (done - some) / SHOWN) {
            say("filling", done, start, used);
        }
    }
    check(key_index_apply(index, 1, err), err);
    say("fill", n, start, used);
}

static void upsert(key_index *index, rows *r, uint64_t n, uint64_t upserts, uint64_t checkpoint,
                   tarn_error *err) {
    static key_location found[BATCH];
    double start = now_s();
    double used = processor_s();
    double find_s = 0;
    uint64_t waiting = 0;
    int64_t snapshot = 1;
    int32_t file = 0;
    check(key_index_file_number(index, STR("file:///t/data/upserts.parquet"), &file, err), err);
    for (uint64_t done = 0; done < upserts; done += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            set_key(r, i, mixed(done + i + 1) % n);
            r->at[i] = (key_location){file, (int64_t)(done + i)};
        }
        double before = now_s();
        check(key_index_find(index, r->keys, BATCH, found, err), err);
        find_s += now_s() - before;
        for (size_t i = 0; i < BATCH; i++) {
            if (found[i].file < 0) {
                fprintf(stderr, "a key was not found\n");
                exit(1);
            }
        }
        check(key_index_put(index, r->keys, r->at, BATCH, err), err);
        waiting += BATCH;
        if (waiting >= checkpoint) {
            check(key_index_apply(index, ++snapshot, err), err);
            waiting = 0;
        }
    }
    check(key_index_apply(index, ++snapshot, err), err);
    double all = now_s() - start;
    printf("upsert: %.0f rows/s (%.0f %% of the time in find), %.2f us of processor a row\n",
           (double)upserts / all, 100 * find_s / all,
           1e6 * (processor_s() - used) / (double)upserts);
}

int main(int argc, char **argv) {
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2) {
        fprintf(stderr, "usage: bench_key_index FOLDER [million keys] [million upserts] [MiB] "
                        "[rows per checkpoint]\n");
        return 2;
    }
    uint64_t n = (uint64_t)(1e6 * (argc > 2 ? strtod(argv[2], NULL) : 1));
    uint64_t upserts = (uint64_t)(1e6 * (argc > 3 ? strtod(argv[3], NULL) : 2));
    size_t memory = (size_t)((argc > 4 ? strtod(argv[4], NULL) : 512) * (1 << 20));
    uint64_t checkpoint = argc > 5 ? strtoull(argv[5], NULL, 10) : 1000000;
    static const int32_t ids[] = {1};
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = NULL;
    key_index *index = NULL;
    check(tarn_env_new(NULL, &env, &err), &err);
    rows *r = malloc(sizeof *r);
    if (r == NULL) {
        return 1;
    }
    key_index_options options;
    memset(&options, 0, sizeof options);
    options.dir = argv[1];
    options.table_uuid = STR("bench");
    options.key_ids = ids;
    options.n_key_ids = 1;
    options.branch = STR("main");
    options.memory_bytes = memory;
    check(key_index_open(env, &options, &index, &err), &err);
    printf("%llu keys, %zu MiB\n", (unsigned long long)n, memory >> 20);
    if (key_index_snapshot(index) == -1) {
        fill(index, r, n, &err);
    }
    for (int round = 0; round < 3; round++) {
        upsert(index, r, n, upserts, checkpoint, &err);
    }
    key_index_close(index);
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("memory: %ld MiB at most\n", usage.ru_maxrss / 1024);
    free(r);
    tarn_env_free(env);
    return 0;
}
