/* read/reserved.c - reserved columns, made for each batch. */
#include "read/reserved.h"

static const tarn_type string_type = {.kind = TARN_STRING};
static const tarn_type long_type = {.kind = TARN_LONG};

static const tarn_field fields[RESERVED_FIELDS] = {
    {.id = FIELD_ID_FILE, .name = {"_file", 5}, .type = &string_type},
    {.id = FIELD_ID_POS, .name = {"_pos", 4}, .type = &long_type},
    {.id = FIELD_ID_ROW_ID, .name = {"_row_id", 7}, .type = &long_type},
    {.id = FIELD_ID_LAST_UPDATED_SEQUENCE,
     .name = {"_last_updated_sequence_number", 29},
     .type = &long_type},
};

const tarn_field *reserved_field_at(int32_t i) {
    return &fields[i];
}

bool reserved_any(const tarn_type *type, bool with_rows) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        int32_t id = type->fields[i].id;
        bool rows = id == FIELD_ID_POS || id == FIELD_ID_ROW_ID;
        if (rows || (!with_rows && (id == FIELD_ID_FILE || id == FIELD_ID_LAST_UPDATED_SEQUENCE))) {
            return true;
        }
    }
    return false;
}

typedef struct filler {
    const tarn_file *file;
    int64_t sequence_number;
    int64_t first_row;
    int64_t rows;
} filler;

static tarn_code fill_path(tarn_builder *b, const filler *f, tarn_error *err) {
    const tarn_str path = f->file->path;
    size_t bytes;
    if (!num_mul_size(path.len, (size_t)f->rows, &bytes)) {
        return err_nomem(err);
    }
    tarn_code code = builder_reserve_bytes(b, bytes, err);
    for (int64_t i = 0; i < f->rows && code == TARN_OK; i++) {
        code = builder_bytes(b, path, err);
    }
    return code;
}

/* Rows of their own value keep it; the others get first, and step more a row. */
static tarn_code fill_longs(tarn_builder *b, const filler *f, const tarn_view *own, int64_t first,
                            int64_t step, tarn_error *err) {
    tarn_code code = builder_reserve(b, f->rows, err);
    if (code != TARN_OK) {
        return code;
    }
    int64_t *values = (int64_t *)(void *)b->values + b->length;
    for (int64_t i = 0; i < f->rows; i++) {
        values[i] = first + i * step;
    }
    const int64_t *have = own != NULL ? own->values : NULL;
    for (int64_t i = 0; i < f->rows && have != NULL; i++) {
        values[i] = view_is_null(own, i) ? values[i] : have[i];
    }
    if (b->validity != NULL) {
        bit_fill(b->validity, b->length, f->rows, true);
    }
    b->length += f->rows;
    return TARN_OK;
}

static tarn_code fill_column(tarn_builder *b, int32_t id, const filler *f, const tarn_view *own,
                             tarn_error *err) {
    const int64_t row_id = f->file->first_row_id;
    int64_t first = 0;
    if (id == FIELD_ID_FILE) {
        return fill_path(b, f, err);
    }
    if (id == FIELD_ID_POS) {
        return fill_longs(b, f, NULL, f->first_row, 1, err);
    }
    if (row_id < 0) {
        return builder_nulls(b, f->rows, err); /* the file is older than the table's lineage */
    }
    if (id == FIELD_ID_LAST_UPDATED_SEQUENCE) {
        return fill_longs(b, f, own, f->sequence_number, 0, err);
    }
    if (!num_add_i64(row_id, f->first_row, &first) || first > INT64_MAX - f->rows) {
        return err_set(err, TARN_CORRUPT, "the row ids of file %.*s, from %lld on, were too large",
                       STR_ARG(f->file->path), (long long)row_id);
    }
    return fill_longs(b, f, own, first, 1, err);
}

static tarn_code make_column(tarn_env *env, const tarn_batch *batch, int32_t column,
                             const filler *f, struct ArrowArray *out, tarn_error *err) {
    const tarn_field *field = &batch->type->fields[column];
    tarn_builder b;
    tarn_view own;
    tarn_code code = builder_init(&b, env, field->type, err);
    if (code != TARN_OK) {
        return code;
    }
    view_column(batch, column, &own);
    TRY(fill_column(&b, field->id, f, &own, err));
    TRY(builder_finish(&b, out, err));
done:
    builder_release(&b);
    return code;
}

static bool is_reserved(int32_t id) {
    return id == FIELD_ID_FILE || id == FIELD_ID_POS || id == FIELD_ID_ROW_ID ||
           id == FIELD_ID_LAST_UPDATED_SEQUENCE;
}

/* The batch anew with these columns in place of its own where there are any. */
static tarn_code take_columns(tarn_env *env, tarn_batch *batch, struct ArrowArray *made,
                              tarn_error *err) {
    tarn_batch out;
    for (int32_t i = 0; i < batch->type->n_fields; i++) {
        if (made[i].release == NULL) {
            made[i] = *batch->array.children[i];
            batch->array.children[i]->release = NULL;
        }
    }
    tarn_code code = batch_assemble(env, batch->type, batch_rows(batch), made, &out, err);
    if (code == TARN_OK) {
        batch_release(batch);
        *batch = out;
    }
    return code;
}

tarn_code reserved_fill(tarn_env *env, tarn_batch *batch, const tarn_file *file,
                        int64_t sequence_number, int64_t first_row, tarn_error *err) {
    const filler f = {file, sequence_number, first_row, batch_rows(batch)};
    const int32_t n = batch->type->n_fields;
    tarn_code code = TARN_OK;
    struct ArrowArray *made = env_calloc(env, (size_t)n + 1, sizeof *made);
    if (made == NULL) {
        return err_nomem(err);
    }
    tarn_assert(batch->array.offset == 0);
    for (int32_t i = 0; i < n; i++) {
        if (is_reserved(batch->type->fields[i].id)) {
            TRY(make_column(env, batch, i, &f, &made[i], err));
        }
    }
    code = take_columns(env, batch, made, err);
done:
    for (int32_t i = 0; i < n; i++) {
        if (made[i].release != NULL) {
            made[i].release(&made[i]);
        }
    }
    env_free(env, made);
    return code;
}
