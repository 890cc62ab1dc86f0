/* tests/unit/format/parquet_dump.h - rows of a Parquet file as NDJSON, and comparing such rows. */
#ifndef PARQUET_DUMP_H
#define PARQUET_DUMP_H

#include <fcntl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "format/parquet/parquet.h"

/* A whole file of the disk; freed by free(). */
static inline uint8_t *dump_load(const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return NULL;
    }
    fseek(f, 0, SEEK_END);
    *len = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*len + 1);
    if (bytes != NULL && fread(bytes, 1, *len, f) != *len) {
        free(bytes);
        bytes = NULL;
    }
    fclose(f);
    return bytes;
}

static inline tarn_code dump_batch(const tarn_batch *batch, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int64_t row = 0; row < batch_rows(batch) && code == TARN_OK; row++) {
        json_writer w;
        json_begin(&w, out, false, err);
        json_put_object(&w);
        for (int32_t i = 0; i < batch->type->n_fields; i++) {
            tarn_view view;
            view_column(batch, i, &view);
            json_put_name(&w, batch->type->fields[i].name);
            view_put_json(&view, row, &w);
        }
        json_end_object(&w);
        code = json_end(&w);
        if (code == TARN_OK) {
            code = buf_append_char(out, '\n', err);
        }
    }
    return code;
}

/* Everything that a scan gives; out may be NULL. Checks every batch and that row numbers rise. */
static inline tarn_code dump_scan(parquet_file *file, const parquet_scan_options *options,
                                  tarn_buf *out, int64_t *rows, tarn_error *err) {
    parquet_scan *scan = NULL;
    tarn_code code = parquet_scan_open(file, options, &scan, err);
    int64_t next = 0;
    *rows = 0;
    while (code == TARN_OK) {
        tarn_batch batch = {0};
        int64_t first = -1;
        code = parquet_scan_next(scan, &batch, &first, err);
        if (code != TARN_OK || batch_rows(&batch) == 0) {
            batch_release(&batch);
            break;
        }
        code = first < next ? err_set(err, TARN_INTERNAL, "row numbers went back") : TARN_OK;
        next = first + batch_rows(&batch);
        *rows += batch_rows(&batch);
        if (code == TARN_OK) {
            code = batch_validate(&batch, err);
        }
        if (code == TARN_OK && out != NULL) {
            code = dump_batch(&batch, out, err);
        }
        batch_release(&batch);
    }
    parquet_scan_close(scan);
    return code;
}

static inline tarn_code dump_memory(tarn_env *env, const char *name, const uint8_t *bytes,
                                    size_t len, const parquet_options *options, tarn_buf *out,
                                    tarn_error *err) {
    io_source *source = NULL;
    parquet_file *file = NULL;
    int64_t rows = 0;
    tarn_code code = io_source_memory(env, name, bytes, len, &source, err);
    if (code != TARN_OK) {
        return code;
    }
    code = parquet_open(env, source, options, &file, err);
    if (code == TARN_OK) {
        code = dump_scan(file, NULL, out, &rows, err);
    }
    if (code == TARN_OK && rows != parquet_file_rows(file)) {
        code = err_set(err, TARN_INTERNAL, "rows were lost");
    }
    parquet_close(file);
    source->close(source);
    return code;
}

/* Same JSON value: numbers by value, members by name, timestamps whatever zeros end them. */
static inline bool dump_same_text(tarn_str a, tarn_str b) {
    if (str_eq(a, b)) {
        return true;
    }
    size_t dot = 0;
    if (a.len < 20 || b.len < 19 || a.data[4] != '-' || !str_find_char(a, '.', &dot)) {
        return false;
    }
    while (a.len > dot && a.len != b.len && a.data[a.len - 1] == '0') {
        a.len--;
    }
    return str_eq(a, b);
}

static inline bool dump_same_number(tarn_str a, tarn_str b) {
    double x = 0, y = 0;
    if (str_eq(a, b) || !str_to_f64(a, &x) || !str_to_f64(b, &y)) {
        return str_eq(a, b);
    }
    /* Five digits or fewer: it may be the text of a half float. */
    const double off = x > y ? x - y : y - x;
    size_t dot = 0;
    return x == y || (b.len <= 7 && str_find_char(b, '.', &dot) && off <= (y < 0 ? -y : y) / 2048);
}

static inline bool dump_same(const json_value *a, const json_value *b) {
    if (a->kind == JSON_STRING && b->kind == JSON_NUMBER) {
        return str_eq(a->text, b->text); /* unsigned longs are decimals here */
    }
    if (a->kind != b->kind || a->count != b->count) {
        return false;
    }
    if (a->kind == JSON_NUMBER) {
        return dump_same_number(a->text, b->text);
    }
    if (a->kind == JSON_STRING) {
        return dump_same_text(a->text, b->text) || dump_same_text(b->text, a->text);
    }
    if (a->kind == JSON_BOOL) {
        return a->boolean == b->boolean;
    }
    const json_value *y = b->first;
    for (const json_value *x = a->first; x != NULL; x = x->next, y = y->next) {
        if (!dump_same(x, y) || !str_eq(x->name, y->name)) {
            return false;
        }
    }
    return true;
}

/* Compares line by line; the first line that differs is printed. */
static inline bool dump_compare(tarn_env *env, const char *name, tarn_str got, tarn_str want) {
    tarn_str a, b;
    tarn_error err = TARN_ERROR_INIT;
    bool same = true;
    for (int64_t line = 0; same; line++) {
        const bool more_a = got.len > 0 && str_split(&got, '\n', &a);
        const bool more_b = want.len > 0 && str_split(&want, '\n', &b);
        if (!more_a || !more_b) {
            same = more_a == more_b;
            if (!same) {
                printf("%s: %s at line %lld\n", name, more_a ? "too many rows" : "rows missing",
                       (long long)line);
            }
            break;
        }
        tarn_arena arena;
        json_value *x = NULL, *y = NULL;
        arena_init(&arena, env);
        same = json_parse(&arena, a, "got", &x, &err) == TARN_OK &&
               json_parse(&arena, b, "want", &y, &err) == TARN_OK && dump_same(x, y);
        if (!same) {
            printf("%s: row %lld\n  got  %.*s\n  want %.*s\n", name, (long long)line, STR_ARG(a),
                   STR_ARG(b));
        }
        arena_release(&arena);
    }
    return same;
}

#endif
