/* bench/bench_parquet_read.c - how fast a Parquet file becomes batches. room: format
 *
 *     bench_parquet_read FILE [rounds] [parallel]
 *
 * The file is loaded into memory first, so that only decoding is measured; one figure a round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/parquet/parquet.h"

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint8_t *load(const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
        return NULL;
    }
    *len = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*len);
    if (bytes != NULL && fread(bytes, 1, *len, f) != *len) {
        free(bytes);
        bytes = NULL;
    }
    fclose(f);
    return bytes;
}

static tarn_code read_all(parquet_file *file, bool parallel, int64_t *rows, tarn_error *err) {
    const parquet_scan_options options = {.parallel = parallel};
    parquet_scan *scan = NULL;
    int64_t got = 1;
    tarn_code code = parquet_scan_open(file, &options, &scan, err);
    while (code == TARN_OK && got > 0) {
        tarn_batch batch = {0};
        code = parquet_scan_next(scan, &batch, NULL, err);
        got = code == TARN_OK ? batch_rows(&batch) : 0;
        *rows += got;
        batch_release(&batch);
    }
    parquet_scan_close(scan);
    return code;
}

static tarn_code run(tarn_env *env, int argc, char **argv, tarn_error *err) {
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    io_source *source = NULL;
    parquet_file *file = NULL;
    size_t len = 0;
    tarn_code code = TARN_OK;
    uint8_t *bytes = load(argv[1], &len);
    if (bytes == NULL) {
        return err_set(err, TARN_IO, "%s could not be read", argv[1]);
    }
    TRY(io_source_memory(env, argv[1], bytes, len, &source, err));
    TRY(parquet_open(env, source, NULL, &file, err));
    for (int round = 0; round < rounds; round++) {
        int64_t rows = 0;
        const double start = now_s();
        TRY(read_all(file, argc > 3, &rows, err));
        const double seconds = now_s() - start;
        printf("%lld rows, %.1f MB in %.4f s: %.1f M rows/s\n", (long long)rows, (double)len / 1e6,
               seconds, (double)rows / seconds / 1e6);
    }
done:
    parquet_close(file);
    if (source != NULL) {
        source->close(source);
    }
    free(bytes);
    return code;
}

int main(int argc, char **argv) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_parquet_read FILE [rounds] [parallel]\n");
        return 2;
    }
    tarn_code code = tarn_env_new(NULL, &env, &err);
    if (code == TARN_OK) {
        code = run(env, argc, argv, &err);
    }
    if (code != TARN_OK) {
        fprintf(stderr, "%s\n", err.message);
    }
    tarn_env_free(env);
    return code == TARN_OK ? 0 : 1;
}
