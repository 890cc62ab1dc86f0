/* tests/unit/format/parquet_write_case.h - rows of JSON lines to the bytes of a Parquet file, and
 * its pages as a plain walk over headers sees them. For the tests of the Parquet writer. */
#ifndef FORMAT_TEST_PARQUET_WRITE_CASE_H
#define FORMAT_TEST_PARQUET_WRITE_CASE_H

#include "unit/table/rows.h"

#include "format/parquet/parquet_meta.h"
#include "format/parquet/parquet_write.h"

typedef struct write_case {
    tarn_env *env;
    tarn_arena arena;
    const tarn_type *type;
    parquet_write_options options;
    tarn_buf bytes;
    tarn_file file;
    const parquet_footer *footer;
} write_case;

/* properties: "key=value" lines; type: an Iceberg struct as JSON. */
static inline tarn_code case_open(write_case *c, tarn_env *env, const char *type,
                                  const char *properties, tarn_error *err) {
    tarn_code code = TARN_OK;
    json_value *json = NULL;
    parquet_property pairs[16];
    size_t n = 0;
    tarn_str rest = str_of(properties);
    tarn_str line;
    memset(c, 0, sizeof *c);
    c->env = env;
    arena_init(&c->arena, env);
    buf_init(&c->bytes, env, 0);
    while (str_split(&rest, '\n', &line)) {
        size_t at = 0;
        if (n < 16 && str_find_char(line, '=', &at)) {
            pairs[n++] = (parquet_property){str_sub(line, 0, at), str_from(line, at + 1)};
        }
    }
    parquet_write_options_init(&c->options);
    TRY(parquet_write_options_parse(&c->arena, pairs, n, false, &c->options, err));
    TRY(json_parse(&c->arena, str_of(type), "type", &json, err));
    TRY(type_from_json(&c->arena, json, &c->type, err));
done:
    return code;
}

static inline void case_close(write_case *c) {
    buf_release(&c->bytes);
    arena_release(&c->arena);
}

/* Writes the lines as one batch into sink (taken). */
static inline tarn_code case_write_to(write_case *c, const char *lines, io_sink *sink,
                                      tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    parquet_writer *w = NULL;
    memset(&batch, 0, sizeof batch);
    code = parquet_writer_new(c->env, c->type, &c->options, sink, &w, err);
    if (code != TARN_OK) {
        sink->abort(sink);
        return code;
    }
    TRY(rows_read(c->env, &c->arena, c->type, lines, &batch, err));
    TRY(parquet_writer_write(w, &batch, err));
    TRY(parquet_writer_close(w, &c->arena, &c->file, err));
done:
    parquet_writer_free(w);
    batch_release(&batch);
    return code;
}

/* Also reads the footer back. */
static inline tarn_code case_write(write_case *c, const char *lines, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_sink *sink = NULL;
    parquet_footer *footer = ARENA_NEW(&c->arena, parquet_footer);
    buf_reset(&c->bytes);
    if (footer == NULL) {
        return err_nomem(err);
    }
    TRY(io_sink_memory(c->env, &c->bytes, &sink, err));
    TRY(case_write_to(c, lines, sink, err));
    size_t len = num_load_u32(c->bytes.data + c->bytes.len - 8);
    tarn_str text = str_make(c->bytes.data + c->bytes.len - 8 - len, len);
    TRY(thrift_decode(&c->arena, &parquet_footer_thrift, text, "footer", footer, NULL, err));
    c->footer = footer;
done:
    return code;
}

typedef struct page_seen {
    parquet_page_header header;
    const uint8_t *body;
    int64_t offset;
} page_seen;

/* The pages of a column chunk in file order; returns how many. */
static inline size_t case_pages(const write_case *c, int32_t group, int32_t column, page_seen *out,
                                size_t cap) {
    const parquet_column_meta *meta = &c->footer->row_groups[group].columns[column].meta;
    int64_t at = THRIFT_HAS(meta, PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET)
                     ? meta->dictionary_page_offset
                     : meta->data_page_offset;
    int64_t end = at + meta->total_compressed_size;
    size_t n = 0;
    while (at < end) {
        size_t used = 0;
        tarn_error err = TARN_ERROR_INIT;
        assert_true(n < cap);
        assert_ok(thrift_decode(NULL, &parquet_page_header_thrift,
                                str_make(c->bytes.data + at, (size_t)(end - at)), "page",
                                &out[n].header, &used, &err));
        out[n].offset = at;
        out[n].body = c->bytes.data + at + used;
        assert_int_equal((uint32_t)out[n].header.crc,
                         num_crc32(0, out[n].body, (size_t)out[n].header.compressed_size));
        at += (int64_t)used + out[n].header.compressed_size;
        n++;
    }
    assert_int_equal(at, end);
    return n;
}

/* A bound as hex, "none" without one. */
static inline const char *case_bound(const write_case *c, int32_t id, bool upper, char out[200]) {
    tarn_str bytes;
    size_t n = 0;
    if (!metric_find_bound(upper ? c->file.upper : c->file.lower,
                           upper ? c->file.n_upper : c->file.n_lower, id, &bytes)) {
        return "none";
    }
    for (size_t i = 0; i < bytes.len && i < 99; i++) {
        n += (size_t)snprintf(out + n, 3, "%02x", (unsigned)(uint8_t)bytes.data[i]);
    }
    out[n] = 0;
    return out;
}

#endif
