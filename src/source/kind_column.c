/* source/kind_column.c - see kind_column.h. */
#include "source/kind_column.h"

#include "base/json.h"
#include "table/row_kind.h"

static tarn_code row_json(const tarn_batch *batch, int64_t row, tarn_buf *out, tarn_error *err) {
    json_writer w;
    tarn_view view;
    json_begin(&w, out, false, err);
    json_put_object(&w);
    for (int32_t i = 0; i < batch->type->n_fields; i++) {
        view_column(batch, i, &view);
        json_put_name(&w, batch->type->fields[i].name);
        view_put_json(&view, row, &w);
    }
    json_end_object(&w);
    return json_end(&w);
}

typedef struct bad_kinds {
    tarn_env *env;
    const tarn_batch *batch;
    const tarn_field *field;
    kind_reject_fn reject;
    void *ctx;
} bad_kinds;

static tarn_code tell(const bad_kinds *bad, const tarn_view *view, int64_t row, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf raw;
    tarn_buf reason;
    buf_init(&raw, bad->env, 0);
    buf_init(&reason, bad->env, 0);
    TRY(row_json(bad->batch, row, &raw, err));
    if (view_is_null(view, row)) {
        TRY(buf_printf(&reason, err, "column %.*s: the kind of the row was null",
                       STR_ARG(bad->field->name)));
    } else {
        TRY(buf_printf(&reason, err,
                       "column %.*s: \"%.*s\" was no kind of row (c r u d, I U D, +I -U +U -D)",
                       STR_ARG(bad->field->name), STR_ARG(view_bytes(view, row))));
    }
    code = bad->reject(bad->ctx, row, buf_str(&raw), buf_str(&reason), err);
done:
    buf_release(&raw);
    buf_release(&reason);
    return code;
}

tarn_code kind_column_read(tarn_env *env, tarn_batch *batch, int32_t at, tarn_buf *kinds,
                           kind_reject_fn reject, void *ctx, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t rows = batch_rows(batch);
    bad_kinds bad = {env, batch, &batch->type->fields[at], reject, ctx};
    tarn_view view;
    tarn_batch kept;
    uint8_t *selection = env_calloc(env, bit_bytes(rows) + 8, 1);
    memset(&kept, 0, sizeof kept);
    if (selection == NULL) {
        return err_nomem(err);
    }
    buf_reset(kinds);
    TRY(buf_reserve(kinds, (size_t)rows, err));
    view_column(batch, at, &view);
    for (int64_t i = 0; i < rows; i++) {
        uint8_t kind;
        if (!view_is_null(&view, i) && row_kind_parse(view_bytes(&view, i), &kind)) {
            kinds->data[kinds->len++] = kind;
            bit_set(selection, i);
        } else {
            TRY(tell(&bad, &view, i, err));
        }
    }
    if ((int64_t)kinds->len < rows) {
        TRY(batch_filter(env, batch, selection, &kept, err));
        batch_release(batch);
        batch_move(batch, &kept);
    }
done:
    env_free(env, selection);
    return code;
}
