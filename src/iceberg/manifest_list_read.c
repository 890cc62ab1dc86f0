/* iceberg/manifest_list_read.c - a snapshot's manifests (spec, "Manifest Lists"). Lists are short:
 * rows are taken one by one. Version 1 lists know no content and no sequence numbers (0), and may
 * not know their counts (-1). */
#include "format/avro/avro.h"
#include "iceberg/manifest_int.h"

typedef struct list_reader {
    tarn_arena *arena;
    tarn_error *err;
    const char *name;
    int32_t slots[N_LIST_FIELDS];
    tarn_manifest *items;
    int32_t count, cap;
} list_reader;

typedef struct list_columns {
    tarn_view views[N_LIST_FIELDS];
    tarn_view summaries; /* elements of partitions */
    tarn_view parts[N_SUMMARY_FIELDS];
    bool has_part[N_SUMMARY_FIELDS];
} list_columns;

static tarn_code wrong(const list_reader *r, const char *what, const char *field) {
    return err_set(r->err, TARN_CORRUPT, "manifest list %s: field %s %s", r->name, field, what);
}

static bool fits(tarn_kind kind, field_shape shape) {
    if (shape == SHAPE_INT || shape == SHAPE_LONG) {
        return kind == TARN_INT || kind == TARN_LONG;
    }
    if (shape == SHAPE_SUMMARIES) {
        return kind == TARN_LIST;
    }
    return kind == (shape == SHAPE_STRING    ? TARN_STRING
                    : shape == SHAPE_BOOLEAN ? TARN_BOOLEAN
                                             : TARN_BINARY);
}

static tarn_code find_fields(list_reader *r, const tarn_type *type) {
    manifest_find_fields(type, list_rows, N_LIST_FIELDS, r->slots);
    for (int32_t i = 0; i < N_LIST_FIELDS; i++) {
        if (r->slots[i] < 0 && (i == L_PATH || i == L_LENGTH || i == L_SPEC)) {
            return wrong(r, "was missing", list_rows[i].name);
        }
        if (r->slots[i] >= 0 && !fits(type->fields[r->slots[i]].type->kind, list_rows[i].shape)) {
            return wrong(r, "was of another type", list_rows[i].name);
        }
    }
    return TARN_OK;
}

static int64_t number(const list_reader *r, const list_columns *c, int32_t field, int64_t row,
                      int64_t fallback) {
    const tarn_view *v = &c->views[field];
    if (r->slots[field] < 0 || view_is_null(v, row)) {
        return fallback;
    }
    return v->type->kind == TARN_INT ? ((const int32_t *)v->values)[row]
                                     : ((const int64_t *)v->values)[row];
}

/* Counts beyond 32 bits were never written; what does not fit is not known. */
static int32_t small_number(const list_reader *r, const list_columns *c, int32_t field, int64_t row,
                            int32_t fallback) {
    int64_t v = number(r, c, field, row, fallback);
    return v == (int32_t)v ? (int32_t)v : fallback;
}

/* A copy, data NULL for null. */
static tarn_code take_bytes(list_reader *r, const tarn_view *v, bool here, int64_t row,
                            tarn_str *out) {
    *out = STR_NULL;
    if (!here || view_is_null(v, row)) {
        return TARN_OK;
    }
    *out = arena_str(r->arena, view_bytes(v, row));
    return out->data != NULL ? TARN_OK : err_nomem(r->err);
}

static tarn_code open_summaries(list_reader *r, list_columns *c) {
    int32_t slots[N_SUMMARY_FIELDS];
    view_child(&c->views[L_PARTITIONS], 0, &c->summaries);
    const tarn_type *type = c->summaries.type;
    if (type->kind != TARN_STRUCT) {
        return wrong(r, "was of another type", "partitions");
    }
    manifest_find_fields(type, summary_rows, N_SUMMARY_FIELDS, slots);
    for (int32_t i = 0; i < N_SUMMARY_FIELDS; i++) {
        c->has_part[i] = slots[i] >= 0;
        if (slots[i] < 0) {
            continue;
        }
        if (!fits(type->fields[slots[i]].type->kind, summary_rows[i].shape)) {
            return wrong(r, "was of another type", summary_rows[i].name);
        }
        view_child(&c->summaries, slots[i], &c->parts[i]);
    }
    return TARN_OK;
}

static tarn_code take_summary(list_reader *r, const list_columns *c, int64_t k,
                              tarn_field_summary *s) {
    tarn_code code = take_bytes(r, &c->parts[S_LOWER], c->has_part[S_LOWER], k, &s->lower);
    if (code == TARN_OK) {
        code = take_bytes(r, &c->parts[S_UPPER], c->has_part[S_UPPER], k, &s->upper);
    }
    s->has_lower = s->lower.data != NULL;
    s->has_upper = s->upper.data != NULL;
    /* Nothing said of nulls: there may be some. */
    s->contains_null = !c->has_part[S_NULL] || view_is_null(&c->parts[S_NULL], k) ||
                       view_bool(&c->parts[S_NULL], k);
    bool nan_known = c->has_part[S_NAN] && !view_is_null(&c->parts[S_NAN], k);
    s->contains_nan = nan_known ? (int8_t)view_bool(&c->parts[S_NAN], k) : -1;
    return code;
}

static tarn_code take_summaries(list_reader *r, const list_columns *c, int64_t row,
                                tarn_manifest *m) {
    const tarn_view *v = &c->views[L_PARTITIONS];
    if (r->slots[L_PARTITIONS] < 0 || view_is_null(v, row)) {
        return TARN_OK;
    }
    int32_t from = v->offsets[row], n = v->offsets[row + 1] - from;
    tarn_field_summary *items = ARENA_ARRAY(r->arena, tarn_field_summary, (size_t)n);
    tarn_code code = items == NULL ? err_nomem(r->err) : TARN_OK;
    for (int32_t i = 0; i < n && code == TARN_OK; i++) {
        code = take_summary(r, c, from + i, &items[i]);
    }
    m->n_partitions = n;
    m->partitions = items;
    return code;
}

static tarn_code take_manifest(list_reader *r, const list_columns *c, int64_t row,
                               tarn_manifest *m) {
    memset(m, 0, sizeof *m);
    tarn_code code = take_bytes(r, &c->views[L_PATH], true, row, &m->path);
    if (code == TARN_OK && m->path.len == 0) {
        code = wrong(r, "was empty", "manifest_path");
    }
    if (code == TARN_OK) {
        code = take_bytes(r, &c->views[L_KEY], r->slots[L_KEY] >= 0, row, &m->key_metadata);
    }
    if (code != TARN_OK) {
        return code;
    }
    int64_t content = number(r, c, L_CONTENT, row, 0);
    m->length = number(r, c, L_LENGTH, row, -1);
    m->spec_id = small_number(r, c, L_SPEC, row, -1);
    if (content < 0 || content > 1 || m->length < 0) {
        return wrong(r, "was out of range", m->length < 0 ? "manifest_length" : "content");
    }
    m->is_deletes = content == 1;
    m->sequence_number = number(r, c, L_SEQUENCE, row, 0);
    m->min_sequence_number = number(r, c, L_MIN_SEQUENCE, row, 0);
    m->added_snapshot_id = number(r, c, L_SNAPSHOT, row, -1);
    m->added_files = small_number(r, c, L_ADDED_FILES, row, -1);
    m->existing_files = small_number(r, c, L_EXISTING_FILES, row, -1);
    m->deleted_files = small_number(r, c, L_DELETED_FILES, row, -1);
    m->added_rows = number(r, c, L_ADDED_ROWS, row, -1);
    m->existing_rows = number(r, c, L_EXISTING_ROWS, row, -1);
    m->deleted_rows = number(r, c, L_DELETED_ROWS, row, -1);
    m->first_row_id = number(r, c, L_FIRST_ROW, row, -1);
    return take_summaries(r, c, row, m);
}

static tarn_code reserve_manifests(list_reader *r, int64_t more) {
    if (more > INT32_MAX / 2 - r->count) {
        return err_set(r->err, TARN_LIMIT, "manifest list %s had too many rows", r->name);
    }
    int32_t need = r->count + (int32_t)more;
    if (need <= r->cap) {
        return TARN_OK;
    }
    int32_t cap = r->cap * 2 > need ? r->cap * 2 : need;
    tarn_manifest *items = arena_grow(r->arena, r->items, (size_t)r->count * sizeof *items,
                                      (size_t)cap * sizeof *items);
    if (items == NULL) {
        return err_nomem(r->err);
    }
    r->items = items;
    r->cap = cap;
    return TARN_OK;
}

static tarn_code take_batch(list_reader *r, const tarn_batch *batch) {
    list_columns c;
    memset(&c, 0, sizeof c);
    for (int32_t i = 0; i < N_LIST_FIELDS; i++) {
        if (r->slots[i] >= 0) {
            view_column(batch, r->slots[i], &c.views[i]);
        }
    }
    tarn_code code = r->slots[L_PARTITIONS] >= 0 ? open_summaries(r, &c) : TARN_OK;
    if (code == TARN_OK) {
        code = reserve_manifests(r, batch_rows(batch));
    }
    for (int64_t i = 0; i < batch_rows(batch) && code == TARN_OK; i++) {
        code = take_manifest(r, &c, i, &r->items[r->count]);
        r->count++;
    }
    return code;
}

tarn_code manifest_list_read(tarn_arena *arena, io_source *source, const tarn_manifest **out,
                             int32_t *n, tarn_error *err) {
    list_reader r;
    io_source *lent = NULL;
    avro_file *file = NULL;
    avro_scan *scan = NULL;
    tarn_batch batch;
    tarn_code code = TARN_OK;
    memset(&r, 0, sizeof r);
    memset(&batch, 0, sizeof batch);
    r.arena = arena;
    r.err = err;
    r.name = source->name;
    TRY(manifest_lend_source(source, &lent, err));
    TRY(avro_open(arena->env, lent, &file, err));
    lent = NULL;
    TRY(find_fields(&r, avro_file_type(file)));
    TRY(avro_scan_open(file, NULL, &scan, err));
    for (;;) {
        TRY(avro_scan_next(scan, &batch, err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        TRY(take_batch(&r, &batch));
        batch_release(&batch);
    }
    *out = r.items;
    *n = r.count;
done:
    batch_release(&batch);
    avro_scan_close(scan);
    if (lent != NULL) {
        lent->close(lent);
    }
    avro_close(file);
    return code;
}

tarn_code manifest_list_property(tarn_arena *arena, io_source *source, const char *key,
                                 tarn_str *out, tarn_error *err) {
    io_source *lent = NULL;
    avro_file *file = NULL;
    tarn_str value;
    tarn_code code = TARN_OK;
    *out = STR_NULL;
    TRY(manifest_lend_source(source, &lent, err));
    TRY(avro_open(arena->env, lent, &file, err));
    lent = NULL;
    if (avro_file_meta(file, key, &value)) {
        *out = arena_str(arena, value);
        code = out->data != NULL ? TARN_OK : err_nomem(err);
    }
done:
    if (lent != NULL) {
        lent->close(lent);
    }
    avro_close(file);
    return code;
}
