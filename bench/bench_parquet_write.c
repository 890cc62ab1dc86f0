/* bench/bench_parquet_write.c - how fast rows become a Parquet file. room: format
 *
 *     bench_parquet_write [rows] [codec] [level] [threads]
 *
 * Writes rows shaped like the order lines of a well-known benchmark (keys, decimals, flags, dates,
 * short comments) into memory that is thrown away, one figure a round. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "format/parquet/parquet_write.h"

#define BATCH_ROWS 65536

static const char TYPE[] =
    "struct<orderkey: long, partkey: long, linenumber: int, quantity: decimal(15,2), "
    "price: decimal(15,2), discount: decimal(15,2), flag: string, shipdate: date, "
    "commitdate: date, mode: string, comment: string>";

static uint64_t state = 88172645463325252u;

static uint64_t below(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

static tarn_code put_long(tarn_builder *b, int64_t v, tarn_error *err) {
    return builder_fixed(b, &v, err);
}

static tarn_code put_int(tarn_builder *b, int32_t v, tarn_error *err) {
    return builder_fixed(b, &v, err);
}

static tarn_code put_decimal(tarn_builder *b, int64_t v, tarn_error *err) {
    tarn_int128 wide = v;
    return builder_fixed(b, &wide, err);
}

static tarn_code put_comment(tarn_builder *b, tarn_error *err) {
    static const char *const words[] = {"furiously", "ironic",  "requests", "sleep",  "carefully",
                                        "final",     "regular", "accounts", "boldly", "express"};
    char text[80];
    size_t len = 0;
    for (uint64_t n = 1 + below(4); n > 0; n--) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s ", words[below(10)]);
    }
    return builder_bytes(b, str_make(text, len - below(4)), err);
}

static tarn_code put_row(tarn_builder *b, int64_t i, tarn_error *err) {
    static const char *const flags[] = {"A", "N", "R"};
    static const char *const modes[] = {"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"};
    tarn_code code = TARN_OK;
    tarn_builder *c = b->children;
    int32_t day = 8035 + (int32_t)below(2465);
    TRY(put_long(&c[0], i / 4 * 4 + 1, err));
    TRY(put_long(&c[1], 1 + (int64_t)below(400000), err));
    TRY(put_int(&c[2], (int32_t)(i % 4) + 1, err));
    TRY(put_decimal(&c[3], 100 * (1 + (int64_t)below(50)), err));
    TRY(put_decimal(&c[4], 90000 + (int64_t)below(10000000), err));
    TRY(put_decimal(&c[5], (int64_t)below(11), err));
    TRY(builder_bytes(&c[6], str_of(flags[below(3)]), err));
    TRY(put_int(&c[7], day, err));
    TRY(put_int(&c[8], day + (int32_t)below(60), err));
    TRY(builder_bytes(&c[9], str_of(modes[below(7)]), err));
    TRY(put_comment(&c[10], err));
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code drop_bytes(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    (void)data;
    (void)err;
    sink->written_bytes += (int64_t)len;
    return TARN_OK;
}

static tarn_code finish_nothing(io_sink *sink, tarn_error *err) {
    (void)sink;
    (void)err;
    return TARN_OK;
}

static void abort_nothing(io_sink *sink) {
    (void)sink;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static tarn_code write_once(tarn_env *env, const tarn_batch *batches, size_t n,
                            const parquet_write_options *options, tarn_file *file,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    parquet_writer *w = NULL;
    io_sink sink = {.env = env,
                    .name = "nowhere",
                    .write = drop_bytes,
                    .finish = finish_nothing,
                    .abort = abort_nothing};
    arena_init(&arena, env);
    TRY(parquet_writer_new(env, batches[0].type, options, &sink, &w, err));
    for (size_t i = 0; i < n; i++) {
        TRY(parquet_writer_write(w, &batches[i], err));
    }
    TRY(parquet_writer_close(w, &arena, file, err));
done:
    parquet_writer_free(w);
    arena_release(&arena);
    return code;
}

static tarn_code run(tarn_env *env, int64_t rows, const parquet_write_options *options,
                     tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    const tarn_type *type = NULL;
    tarn_builder b = {0};
    size_t n = 0;
    arena_init(&arena, env);
    tarn_batch *batches = ARENA_ARRAY(&arena, tarn_batch, (size_t)(rows / BATCH_ROWS) + 1);
    TRY(batches == NULL ? err_nomem(err) : TARN_OK);
    TRY(type_from_text(&arena, str_of(TYPE), &type, err));
    TRY(builder_init(&b, env, type, err));
    for (int64_t i = 0; i < rows; i++) {
        TRY(put_row(&b, i, err));
        if (b.length == BATCH_ROWS || i + 1 == rows) {
            TRY(builder_finish_batch(&b, &batches[n], err));
            n++;
        }
    }
    for (int round = 0; round < 5; round++) {
        tarn_file file = {0};
        double start = now();
        TRY(write_once(env, batches, n, options, &file, err));
        double took = now() - start;
        printf("%.3f s  %.2f M rows/s  %.1f MB/s of file  %lld bytes\n", took,
               (double)rows / took / 1e6, (double)file.size_bytes / took / 1e6,
               (long long)file.size_bytes);
    }
done:
    for (size_t i = 0; i < n; i++) {
        batch_release(&batches[i]);
    }
    builder_release(&b);
    arena_release(&arena);
    return code;
}

int main(int argc, char **argv) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = NULL;
    tarn_env_options settings = TARN_ENV_OPTIONS_INIT;
    parquet_write_options options;
    int64_t rows = argc > 1 ? atoll(argv[1]) : 2000000;
    parquet_write_options_init(&options);
    settings.threads = argc > 4 ? (uint32_t)atoi(argv[4]) : 1;
    if (argc > 2 && !codec_from_name(str_of(argv[2]), &options.codec)) {
        fprintf(stderr, "unknown codec %s\n", argv[2]);
        return 2;
    }
    options.level = argc > 3 ? atoi(argv[3]) : CODEC_LEVEL_DEFAULT;
    tarn_code code = tarn_env_new(&settings, &env, &err);
    if (code == TARN_OK && rows > 0) {
        code = run(env, rows, &options, &err);
    }
    if (code != TARN_OK) {
        fprintf(stderr, "%s: %s\n", tarn_code_name(code), err.message);
    }
    tarn_env_free(env);
    return code == TARN_OK ? 0 : 1;
}
