/* tests/sim/sim_rows.c - data files that hold the rows that they are said to hold, for histories in
 * which services merge small files before they commit them: a row is a partition and, as text, its
 * number in the model. Written and read with no fault and nobody in between. */
#include "sim.h"

#include "read/scan.h"
#include "write/files/data_writer.h"

#include <string.h>

static tarn_code fill(tarn_builder *b, int part, int n_rows, const int *rows, tarn_error *err) {
    tarn_code code = TARN_OK;
    const int32_t p = part;
    for (int i = 0; i < n_rows; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", rows[i]);
        TRY(builder_fixed(&b->children[0], &p, err));
        TRY(builder_bytes(&b->children[1], str_of(text), err));
        TRY(builder_close(b, err));
    }
done:
    return code;
}

tarn_file sim_rows_write(int part, int n_rows, const int *rows) {
    const data_writer_options options = {.metadata = sim_table()};
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = TARN_OK;
    tarn_builder b;
    tarn_batch batch;
    data_writer *w = NULL;
    write_result out;
    memset(&b, 0, sizeof b);
    memset(&batch, 0, sizeof batch);
    memset(&out, 0, sizeof out);
    TRY(builder_init(&b, SIM.env, metadata_schema(sim_table())->root, &err));
    TRY(fill(&b, part, n_rows, rows, &err));
    TRY(builder_finish_batch(&b, &batch, &err));
    TRY(data_writer_new(SIM.env, SIM.disk, &options, &w, &err));
    TRY(data_writer_write(w, &batch, &err));
    TRY(data_writer_close(w, &SIM.arena, &out, &err));
    TRY(store_sync(SIM.disk, &err));
done:
    data_writer_free(w);
    batch_release(&batch);
    builder_release(&b);
    if (code != TARN_OK || out.n_files != 1) {
        sim_fail("%d files of %d rows were written: %s", out.n_files, n_rows, err.message);
    }
    return out.files[0];
}

int sim_rows_read(const tarn_file *file, int *rows) {
    const tarn_metadata *m = sim_table();
    const file_scan_options options = {.wanted = metadata_schema(m)->root};
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = TARN_OK;
    scan_counters counters;
    file_scan *scan = NULL;
    tarn_batch batch;
    int n = 0;
    memset(&counters, 0, sizeof counters);
    memset(&batch, 0, sizeof batch);
    TRY(file_scan_open(SIM.env, SIM.disk, file, metadata_spec_by_id(m, file->spec_id), &options,
                       &scan, &err));
    do {
        tarn_view texts;
        batch_release(&batch);
        TRY(file_scan_next(scan, &batch, &counters, &err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        view_column(&batch, 1, &texts);
        for (int64_t i = 0; i < batch_rows(&batch) && n < SIM_MAX_ROWS; i++) {
            int64_t row = 0;
            if (!str_to_i64(view_bytes(&texts, i), &row) || row <= 0 || row >= SIM_MAX_ROWS) {
                sim_fail("%.*s holds what nobody wrote", STR_ARG(file->path));
            }
            rows[n++] = (int)row;
        }
    } while (true);
done:
    batch_release(&batch);
    file_scan_close(scan);
    if (code != TARN_OK || n != file->record_count) {
        sim_fail("%.*s: %d rows of %lld: %s", STR_ARG(file->path), n, (long long)file->record_count,
                 err.message);
    }
    return n;
}
