/* tests/unit/format/avro_dump.h - avro bytes as lines of JSON, for this room's tests. */
#ifndef FORMAT_TEST_AVRO_DUMP_H
#define FORMAT_TEST_AVRO_DUMP_H

#include "test.h"

#include "base/json.h"
#include "format/avro/avro.h"

/* A fixture's bytes; false: there is no such file. */
static inline bool fixture_read(tarn_env *env, const char *root, const char *name, tarn_buf *out) {
    char path[512];
    char part[4096];
    size_t n;
    tarn_error err = TARN_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "rb");
    buf_init(out, env, 0);
    if (f == NULL) {
        return false;
    }
    while ((n = fread(part, 1, sizeof part, f)) > 0) {
        assert_ok(buf_append(out, part, n, &err));
    }
    fclose(f);
    return true;
}

static inline tarn_code dump_scan(tarn_env *env, avro_file *file, const avro_scan_options *options,
                                  tarn_buf *out, tarn_error *err) {
    avro_scan *scan = NULL;
    tarn_batch batch = {0};
    tarn_code code = avro_scan_open(file, options, &scan, err);
    (void)env;
    while (code == TARN_OK) {
        batch_release(&batch);
        code = avro_scan_next(scan, &batch, err);
        if (code != TARN_OK || batch_rows(&batch) == 0) {
            break;
        }
        code = batch_validate(&batch, err);
        for (int64_t i = 0; i < batch_rows(&batch) && code == TARN_OK; i++) {
            json_writer w;
            json_begin(&w, out, false, err);
            json_put_object(&w);
            for (int32_t c = 0; c < batch.type->n_fields; c++) {
                tarn_view view;
                view_column(&batch, c, &view);
                json_put_name(&w, batch.type->fields[c].name);
                view_put_json(&view, i, &w);
            }
            json_end_object(&w);
            code = json_end(&w);
            if (code == TARN_OK) {
                code = buf_append_char(out, '\n', err);
            }
        }
    }
    batch_release(&batch);
    avro_scan_close(scan);
    return code;
}

/* Whole files; what was read before a failure stays in out. */
static inline tarn_code dump_bytes(tarn_env *env, tarn_str bytes, const avro_scan_options *options,
                                   tarn_buf *out, tarn_error *err) {
    io_source *source = NULL;
    avro_file *file = NULL;
    tarn_code code = io_source_memory(env, "test.avro", bytes.data, bytes.len, &source, err);
    if (code != TARN_OK) {
        return code;
    }
    code = avro_open(env, source, &file, err);
    if (code != TARN_OK) {
        source->close(source);
        return code;
    }
    code = dump_scan(env, file, options, out, err);
    avro_close(file);
    return code;
}

#endif
