/* bench/bench_avro.c - how fast manifest entries are written and read. room: format
 *
 *     bench_avro [entries] [columns with statistics]
 *
 * Writes entries as Iceberg's manifests have them (one partition field, statistics maps for every
 * column) into memory and reads them back: whole, and only what pruning by partition needs (path,
 * partition, record_count, file_size_in_bytes). One thread. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "format/avro/avro.h"

static const char ENTRY_TYPE[] =
    "{\"type\":\"struct\",\"fields\":["
    "{\"id\":0,\"name\":\"status\",\"required\":true,\"type\":\"int\"},"
    "{\"id\":1,\"name\":\"snapshot_id\",\"required\":false,\"type\":\"long\"},"
    "{\"id\":3,\"name\":\"sequence_number\",\"required\":false,\"type\":\"long\"},"
    "{\"id\":4,\"name\":\"file_sequence_number\",\"required\":false,\"type\":\"long\"},"
    "{\"id\":2,\"name\":\"data_file\",\"required\":true,\"type\":{\"type\":\"struct\",\"fields\":["
    "{\"id\":134,\"name\":\"content\",\"required\":true,\"type\":\"int\"},"
    "{\"id\":100,\"name\":\"file_path\",\"required\":true,\"type\":\"string\"},"
    "{\"id\":101,\"name\":\"file_format\",\"required\":true,\"type\":\"string\"},"
    "{\"id\":102,\"name\":\"partition\",\"required\":true,\"type\":{\"type\":\"struct\",\"fields\":"
    "["
    "{\"id\":1000,\"name\":\"day\",\"required\":false,\"type\":\"date\"}]}},"
    "{\"id\":103,\"name\":\"record_count\",\"required\":true,\"type\":\"long\"},"
    "{\"id\":104,\"name\":\"file_size_in_bytes\",\"required\":true,\"type\":\"long\"},"
    "{\"id\":108,\"name\":\"column_sizes\",\"required\":false,\"type\":{\"type\":\"map\",\"key-"
    "id\":"
    "117,\"key\":\"int\",\"value-id\":118,\"value-required\":true,\"value\":\"long\"}},"
    "{\"id\":109,\"name\":\"value_counts\",\"required\":false,\"type\":{\"type\":\"map\",\"key-"
    "id\":"
    "119,\"key\":\"int\",\"value-id\":120,\"value-required\":true,\"value\":\"long\"}},"
    "{\"id\":110,\"name\":\"null_value_counts\",\"required\":false,\"type\":{\"type\":\"map\","
    "\"key-id\":121,\"key\":\"int\",\"value-id\":122,\"value-required\":true,\"value\":\"long\"}},"
    "{\"id\":125,\"name\":\"lower_bounds\",\"required\":false,\"type\":{\"type\":\"map\",\"key-"
    "id\":"
    "126,\"key\":\"int\",\"value-id\":127,\"value-required\":true,\"value\":\"binary\"}},"
    "{\"id\":128,\"name\":\"upper_bounds\",\"required\":false,\"type\":{\"type\":\"map\",\"key-"
    "id\":"
    "129,\"key\":\"int\",\"value-id\":130,\"value-required\":true,\"value\":\"binary\"}},"
    "{\"id\":132,\"name\":\"split_offsets\",\"required\":false,\"type\":{\"type\":\"list\","
    "\"element-id\":133,\"element-required\":true,\"element\":\"long\"}},"
    "{\"id\":140,\"name\":\"sort_order_id\",\"required\":false,\"type\":\"int\"}]}}]}";

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(tarn_code code, const tarn_error *err) {
    if (code != TARN_OK) {
        fprintf(stderr, "%s: %s\n", tarn_code_name(code), err->message);
        exit(1);
    }
}

static tarn_code put_i64(tarn_builder *b, int64_t v, tarn_error *err) {
    return builder_fixed(b, &v, err);
}

static tarn_code put_i32(tarn_builder *b, int32_t v, tarn_error *err) {
    return builder_fixed(b, &v, err);
}

static tarn_code put_map(tarn_builder *b, int columns, int64_t row, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int c = 1; c <= columns; c++) {
        TRY(put_i32(&b->children[0], c, err));
        if (b->children[1].type->kind == TARN_LONG) {
            TRY(put_i64(&b->children[1], (row * 7919 + c * 104729) % 1000000, err));
        } else {
            TRY(builder_bytes(&b->children[1], str_make("abcdefghijklmnop", 8), err));
        }
    }
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code put_entry(tarn_builder *b, int64_t row, int columns, tarn_error *err) {
    tarn_builder *file = &b->children[4];
    char path[160];
    int n = snprintf(path, sizeof path,
                     "s3://bucket/warehouse/db/table/data/day=2024-01-%02d/"
                     "%05d-%d-0123abcd-0000-4000-8000-%012d-00001.parquet",
                     (int)(row % 28) + 1, (int)(row % 1000), (int)row, (int)row);
    tarn_code code = TARN_OK;
    TRY(put_i32(&b->children[0], 1, err));
    TRY(put_i64(&b->children[1], 4611686018427387904 + row / 1000, err));
    TRY(put_i64(&b->children[2], row / 1000, err));
    TRY(put_i64(&b->children[3], row / 1000, err));
    TRY(put_i32(&file->children[0], 0, err));
    TRY(builder_bytes(&file->children[1], str_make(path, (size_t)n), err));
    TRY(builder_bytes(&file->children[2], STR("PARQUET"), err));
    TRY(put_i32(&file->children[3].children[0], (int32_t)(19723 + row % 28), err));
    TRY(builder_close(&file->children[3], err));
    TRY(put_i64(&file->children[4], 1000000 + row, err));
    TRY(put_i64(&file->children[5], 123456789 + row, err));
    for (int m = 6; m <= 10; m++) {
        TRY(put_map(&file->children[m], columns, row, err));
    }
    TRY(put_i64(&file->children[11].children[0], 4, err));
    TRY(builder_close(&file->children[11], err));
    TRY(put_i32(&file->children[12], 0, err));
    TRY(builder_close(file, err));
    TRY(builder_close(b, err));
done:
    return code;
}

static void write_entries(tarn_env *env, const tarn_type *type, codec_kind codec, int64_t entries,
                          int columns, tarn_buf *out) {
    tarn_error err = TARN_ERROR_INIT;
    avro_write_options options = AVRO_WRITE_OPTIONS_INIT;
    io_sink *sink = NULL;
    avro_writer *writer = NULL;
    tarn_builder b;
    double spent = 0;
    options.record_name = STR("manifest_entry");
    options.codec = codec;
    check(io_sink_memory(env, out, &sink, &err), &err);
    check(avro_writer_open(env, sink, type, &options, &writer, &err), &err);
    check(builder_init(&b, env, type, &err), &err);
    for (int64_t row = 0; row < entries;) {
        tarn_batch batch;
        for (int64_t i = 0; i < 4096 && row < entries; i++, row++) {
            check(put_entry(&b, row, columns, &err), &err);
        }
        check(builder_finish_batch(&b, &batch, &err), &err);
        double start = now_s();
        check(avro_writer_write(writer, &batch, &err), &err);
        spent += now_s() - start;
        batch_release(&batch);
    }
    double start = now_s();
    check(avro_writer_finish(writer, NULL, NULL, &err), &err);
    spent += now_s() - start;
    builder_release(&b);
    printf("write %-8s %8.3f M entries/s  %zu bytes\n", codec_name(codec),
           (double)entries / spent * 1e-6, out->len);
}

static void read_entries(avro_file *file, const uint8_t *selected, const char *what) {
    tarn_error err = TARN_ERROR_INIT;
    double best = 1e9;
    int64_t rows = 0;
    for (int round = 0; round < 5; round++) {
        avro_scan_options options = {.selected = selected};
        avro_scan *scan = NULL;
        tarn_batch batch;
        int64_t n;
        double start = now_s();
        rows = 0;
        check(avro_scan_open(file, &options, &scan, &err), &err);
        do {
            check(avro_scan_next(scan, &batch, &err), &err);
            n = batch_rows(&batch);
            rows += n;
            batch_release(&batch);
        } while (n > 0);
        avro_scan_close(scan);
        double took = now_s() - start;
        best = took < best ? took : best;
    }
    printf("  read %-8s %8.3f M entries/s\n", what, (double)rows / best * 1e-6);
}

static void select_named(const tarn_type *type, const char *path, uint8_t *selected) {
    for (int32_t node = 0; node < type_node_count(type); node++) {
        const tarn_field *field = type_node(type, node);
        if (str_is(field->name, path)) {
            memset(selected + node, 1, (size_t)type_field_span(field));
        }
    }
}

int main(int argc, char **argv) {
    static const codec_kind codecs[] = {CODEC_NONE, CODEC_DEFLATE, CODEC_SNAPPY, CODEC_ZSTD};
    int64_t entries = argc > 1 ? atoll(argv[1]) : 200000;
    int columns = argc > 2 ? atoi(argv[2]) : 10;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = NULL;
    tarn_arena arena;
    json_value *json = NULL;
    const tarn_type *type = NULL;
    check(tarn_env_new(NULL, &env, &err), &err);
    arena_init(&arena, env);
    check(json_parse(&arena, str_of(ENTRY_TYPE), "type", &json, &err), &err);
    check(type_from_json(&arena, json, &type, &err), &err);
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        tarn_buf bytes;
        io_source *source = NULL;
        avro_file *file = NULL;
        uint8_t selected[64] = {0};
        buf_init(&bytes, env, 0);
        write_entries(env, type, codecs[i], entries, columns, &bytes);
        check(io_source_memory(env, "bench", bytes.data, bytes.len, &source, &err), &err);
        check(avro_open(env, source, &file, &err), &err);
        select_named(avro_file_type(file), "file_path", selected);
        select_named(avro_file_type(file), "partition", selected);
        select_named(avro_file_type(file), "record_count", selected);
        select_named(avro_file_type(file), "file_size_in_bytes", selected);
        read_entries(file, selected, "pruning");
        read_entries(file, NULL, "whole");
        avro_close(file);
        buf_release(&bytes);
    }
    arena_release(&arena);
    tarn_env_free(env);
    return 0;
}
