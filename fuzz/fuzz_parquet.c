/* Fuzz target: Parquet files (format/parquet/parquet.h): opened, pruned by a filter on the first
 * column, scanned, batches checked.
 * rooms: format */
#include "fuzz.h"

#include "format/parquet/parquet.h"

#define ROWS_MAX 100000

static void scan_all(parquet_file *file, const parquet_scan_options *options) {
    tarn_error err = TARN_ERROR_INIT;
    parquet_scan *scan = NULL;
    tarn_code code = parquet_scan_open(file, options, &scan, &err);
    fuzz_check_error(code, &err);
    int64_t rows = 0;
    int64_t got = 1;
    while (code == TARN_OK && got > 0 && rows < ROWS_MAX) {
        tarn_batch batch;
        int64_t first_row = -1;
        memset(&batch, 0, sizeof batch);
        code = parquet_scan_next(scan, &batch, &first_row, &err);
        fuzz_check_error(code, &err);
        got = code == TARN_OK ? batch_rows(&batch) : 0;
        if (got > 0) {
            fuzz_check(batch_validate(&batch, &err) == TARN_OK);
            fuzz_check(first_row >= 0 && first_row + got <= parquet_file_rows(file));
        }
        batch_release(&batch);
        rows += got;
    }
    fuzz_check(code != TARN_OK || rows <= parquet_file_rows(file));
    parquet_scan_close(scan);
}

/* A filter on the first leaf: pruning looks at statistics, bloom filters, dictionaries, indexes. */
static void prune(tarn_env *env, parquet_file *file) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    const tarn_type *root = parquet_file_schema(file)->root;
    const tarn_expr *expr = NULL;
    const tarn_expr *bound = NULL;
    int32_t groups = parquet_group_count(file);
    uint8_t *wanted = arena_calloc(&arena, (size_t)groups + 1, 1);
    fuzz_check(wanted != NULL);
    memset(wanted, 1, (size_t)groups);
    if (root->n_fields > 0) {
        tarn_buf text;
        buf_init(&text, env, 0);
        fuzz_check(buf_printf(&text, &err, "\"%.*s\" = 4", STR_ARG(root->fields[0].name)) ==
                   TARN_OK);
        if (expr_parse(&arena, buf_str(&text), &expr, &err) == TARN_OK &&
            expr_bind(&arena, expr, root, true, &bound, &err) == TARN_OK) {
            parquet_pruned pruned;
            memset(&pruned, 0, sizeof pruned);
            tarn_code code = parquet_prune(file, bound, NULL, &arena, wanted, &pruned, &err);
            fuzz_check_error(code, &err);
            if (code == TARN_OK) {
                parquet_scan_options options = {
                    .groups = wanted, .ranges = pruned.ranges, .n_ranges = pruned.n_ranges};
                scan_all(file, &options);
            }
        }
        buf_release(&text);
    }
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    parquet_file *file = NULL;
    parquet_options options = {.skip_checksums = true};
    fuzz_check(io_source_memory(env, "input", data, size, &source, &err) == TARN_OK);
    tarn_code code = parquet_open(env, source, &options, &file, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        scan_all(file, NULL);
        prune(env, file);
        parquet_close(file);
    }
    source->close(source);
    fuzz_env_done(env);
    return 0;
}
