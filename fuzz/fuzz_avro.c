/* Fuzz target: Avro container files (format/avro/avro.h): opened, scanned whole and in two
 * ranges, batches checked.
 * rooms: format */
#include "fuzz.h"

#include "format/avro/avro.h"

#define ROWS_MAX 100000

/* Rows from start to end; -1 when the scan failed. */
static int64_t scan_rows(avro_file *file, int64_t start, int64_t end) {
    tarn_error err = TARN_ERROR_INIT;
    avro_scan_options options = {.start = start, .end = end, .batch_rows = 64};
    avro_scan *scan = NULL;
    tarn_code code = avro_scan_open(file, &options, &scan, &err);
    fuzz_check_error(code, &err);
    if (code != TARN_OK) {
        return -1;
    }
    int64_t rows = 0;
    while (rows < ROWS_MAX) {
        tarn_batch batch;
        memset(&batch, 0, sizeof batch);
        code = avro_scan_next(scan, &batch, &err);
        fuzz_check_error(code, &err);
        int64_t got = code == TARN_OK ? batch_rows(&batch) : 0;
        if (code == TARN_OK && got > 0) {
            fuzz_check(batch_validate(&batch, &err) == TARN_OK);
        }
        batch_release(&batch);
        if (got == 0) {
            break;
        }
        rows += got;
    }
    avro_scan_close(scan);
    return code == TARN_OK ? rows : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    avro_file *file = NULL;
    fuzz_check(io_source_memory(env, "input", data, size, &source, &err) == TARN_OK);
    tarn_code code = avro_open(env, source, &file, &err);
    fuzz_check_error(code, &err);
    if (code != TARN_OK) {
        source->close(source);
    } else {
        /* Damage may look like a sync marker, so ranges need not add up here. */
        (void)scan_rows(file, 0, 0);
        (void)scan_rows(file, 0, (int64_t)size / 2);
        (void)scan_rows(file, (int64_t)size / 2, (int64_t)size);
        avro_close(file);
    }
    fuzz_env_done(env);
    return 0;
}
