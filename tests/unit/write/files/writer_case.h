/* tests/unit/write/files/writer_case.h - a table in memory whose store may fail, and files of it
 * read back. */
#ifndef WRITER_CASE_H
#define WRITER_CASE_H

#include "fail_alloc.h"
#include "unit/format/parquet_dump.h"
#include "unit/table/rows.h"

#include "base/map.h"
#include "format/avro/avro.h"
#include "iceberg/metadata.h"
#include "store/store.h"
#include "write/files/data_writer.h"

static tarn_error err;

typedef struct writer_case {
    tarn_env *env;
    tarn_arena arena;
    store_fault_plan plan;
    tarn_store *store;
    const tarn_metadata *metadata;
    data_writer_options options;
} writer_case;

/* What a table is made of; all but schema may be zero. */
typedef struct table_shape {
    const char *schema, *by, *order;
    int32_t version;
    tarn_property properties[4];
    int32_t n_properties;
} table_shape;

static inline tarn_code case_open(writer_case *c, tarn_env *env, const table_shape *shape,
                                  tarn_error *e) {
    tarn_code code = TARN_OK;
    metadata_new_options options;
    tarn_store *memory = NULL;
    memset(c, 0, sizeof *c);
    memset(&options, 0, sizeof options);
    c->env = env;
    arena_init(&c->arena, env);
    options.location = STR("/t");
    options.format_version = shape->version;
    options.partition_by = str_of(shape->by);
    options.sort_by = str_of(shape->order);
    options.properties = (tarn_properties){shape->n_properties, shape->properties};
    TRY(store_memory_new(env, &memory, e));
    TRY(store_fault_new(memory, &c->plan, &c->store, e));
    memory = NULL;
    TRY(type_from_text(&c->arena, str_of(shape->schema), &options.root, e));
    TRY(metadata_new(&c->arena, &options, &c->metadata, e));
    c->options.metadata = c->metadata;
done:
    store_close(memory);
    return code;
}

static inline void close_case(writer_case *c) {
    store_close(c->store);
    arena_release(&c->arena);
}

static inline tarn_code count_object(void *ctx, tarn_str path, const store_stat_info *info,
                                     tarn_error *e) {
    (void)path;
    (void)info;
    (void)e;
    ++*(int *)ctx;
    return TARN_OK;
}

static inline int objects(writer_case *c) {
    int n = 0;
    c->plan.fail_at = 0;
    assert_ok(store_list(c->store, STR("/t"), count_object, &n, &err));
    return n;
}

/* ---- files read back ---- */

static inline void read_parquet(writer_case *c, io_source *source, tarn_buf *out) {
    parquet_file *file = NULL;
    int64_t rows = 0;
    assert_ok(parquet_open(c->env, source, NULL, &file, &err));
    assert_ok(dump_scan(file, NULL, out, &rows, &err));
    parquet_close(file);
}

static inline void read_avro(writer_case *c, io_source *source, tarn_buf *out) {
    avro_file *file = NULL;
    avro_scan *scan = NULL;
    assert_ok(avro_open(c->env, source, &file, &err));
    assert_ok(avro_scan_open(file, NULL, &scan, &err));
    for (;;) {
        tarn_batch batch = {0};
        assert_ok(avro_scan_next(scan, &batch, &err));
        if (batch_rows(&batch) == 0) {
            batch_release(&batch);
            break;
        }
        assert_ok(dump_batch(&batch, out, &err));
        batch_release(&batch);
    }
    avro_scan_close(scan);
    avro_close(file);
}

/* Rows of a file as lines of JSON, ended by NUL; out is to be released. */
static inline void read_back(writer_case *c, const tarn_file *f, tarn_buf *out) {
    tarn_buf bytes;
    io_source *source = NULL;
    buf_init(&bytes, c->env, 0);
    buf_init(out, c->env, 0);
    assert_ok(store_get(c->store, f->path, 1u << 30, &bytes, &err));
    assert_int_equal(bytes.len, f->size_bytes);
    assert_ok(io_source_memory(c->env, "file", bytes.data, bytes.len, &source, &err));
    if (f->format == TARN_FORMAT_PARQUET) {
        read_parquet(c, source, out);
        source->close(source);
    } else {
        read_avro(c, source, out); /* the file has the source */
    }
    assert_ok(buf_append_char(out, '\0', &err));
    buf_release(&bytes);
}

#endif
