/* iceberg/manifest_read.c - a manifest's entries (spec, "Manifests"). Avro blocks are decoded into
 * columns of which only the wanted ones are read; the columns go over into the entries batch by
 * batch. What a column's rows point to (paths, bounds, counts) is copied in one piece per column,
 * so an entry costs no allocation of its own.
 *
 * Fields are found by id, or by name in a file without ids (B23); partition values by the ids of
 * the partition fields, whatever their names (B22). What entries leave out is inherited from the
 * manifest ("Sequence Number Inheritance", "First Row ID Inheritance"). */
#include "base/limits.h"
#include "format/avro/avro.h"
#include "iceberg/manifest_int.h"

typedef struct entry_reader {
    tarn_arena *arena;
    tarn_error *err;
    const char *name;
    const tarn_manifest *manifest; /* or NULL */
    const manifest_read_options *options;
    int32_t version; /* of the file's header */
    const tarn_spec *spec;
    const tarn_type *tuple; /* the spec's partition type */
    int32_t *tuple_slots;   /* the file's partition child for each field of the spec; -1: none */
    avro_file *file;
    int32_t entry_slots[N_ENTRY_FIELDS];
    int32_t file_slots[N_FILE_FIELDS];
    tarn_entry *items;
    int64_t count, cap;
    int64_t next_row_id;
} entry_reader;

/* One column of a batch; length 0 stands for a column that is not there. */
typedef struct column {
    bool here;
    tarn_view view;
    const char *copied; /* bytes of the column, in the arena; row i at offsets[i] - offsets[0] */
} column;

/* A list or map column, its items copied whole. */
typedef struct item_column {
    bool here;
    tarn_view view, keys, values;
    const char *copied; /* bytes of bounds */
    union {
        metric_count *counts;
        metric_bound *bounds;
        int64_t *longs;
        int32_t *ints;
    } at; /* where the next row's items go */
} item_column;

typedef struct batch_columns {
    column entry[N_ENTRY_FIELDS];
    column file[N_FILE_FIELDS];
    item_column items[N_FILE_FIELDS];
    tarn_value *tuples; /* of this batch's rows, n_fields each */
} batch_columns;

/* ---- the schema ---- */

static tarn_code wrong(const entry_reader *r, const char *what, const char *field) {
    return err_set(r->err, TARN_CORRUPT, "manifest %s: field %s %s", r->name, field, what);
}

/* Writers differ on int and long (equality ids, counts): both are read. */
static bool is_whole(const tarn_type *type) {
    return type->kind == TARN_INT || type->kind == TARN_LONG;
}

static bool fits(const tarn_type *type, field_shape shape) {
    tarn_kind kind = type->kind;
    switch (shape) {
    case SHAPE_INT:
    case SHAPE_LONG:
        return is_whole(type);
    case SHAPE_STRING:
        return kind == TARN_STRING;
    case SHAPE_BYTES:
        return kind == TARN_BINARY;
    case SHAPE_BOOLEAN:
        return kind == TARN_BOOLEAN;
    case SHAPE_STRUCT:
        return kind == TARN_STRUCT;
    case SHAPE_COUNTS:
        return kind == TARN_MAP && is_whole(type->fields[0].type) && is_whole(type->fields[1].type);
    case SHAPE_BOUNDS:
        return kind == TARN_MAP && is_whole(type->fields[0].type) &&
               type->fields[1].type->kind == TARN_BINARY;
    case SHAPE_LONGS:
    case SHAPE_INTS:
        return kind == TARN_LIST && is_whole(type->fields[0].type);
    case SHAPE_SUMMARIES:
        return kind == TARN_LIST && type->fields[0].type->kind == TARN_STRUCT;
    }
    return false;
}

static tarn_code find_fields(entry_reader *r, const tarn_type *type) {
    manifest_find_fields(type, entry_rows, N_ENTRY_FIELDS, r->entry_slots);
    for (int32_t i = 0; i < N_ENTRY_FIELDS; i++) {
        int32_t slot = r->entry_slots[i];
        if (slot >= 0 && !fits(type->fields[slot].type, entry_rows[i].shape)) {
            return wrong(r, "was of another type", entry_rows[i].name);
        }
    }
    if (r->entry_slots[E_STATUS] < 0 || r->entry_slots[E_FILE] < 0) {
        return wrong(r, "was missing", r->entry_slots[E_FILE] < 0 ? "data_file" : "status");
    }
    const tarn_type *file = type->fields[r->entry_slots[E_FILE]].type;
    manifest_find_fields(file, file_rows, N_FILE_FIELDS, r->file_slots);
    for (int32_t i = 0; i < N_FILE_FIELDS; i++) {
        int32_t slot = r->file_slots[i];
        if (slot >= 0 && !fits(file->fields[slot].type, file_rows[i].shape)) {
            return wrong(r, "was of another type", file_rows[i].name);
        }
    }
    static const int needed[] = {F_PATH, F_RECORDS, F_SIZE};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (r->file_slots[needed[i]] < 0) {
            return wrong(r, "was missing", file_rows[needed[i]].name);
        }
    }
    return TARN_OK;
}

/* Marks the nodes to read in preorder; a struct's own node comes before its children's. */
static void select_fields(const entry_reader *r, const tarn_type *type, uint8_t *selected) {
    unsigned want = r->options->want;
    int32_t node = 0;
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *f = &type->fields[i];
        bool is_file = i == r->entry_slots[E_FILE];
        for (int32_t k = 0; k < N_ENTRY_FIELDS && !is_file; k++) {
            if (r->entry_slots[k] == i) {
                memset(selected + node, 1, (size_t)type_field_span(f));
            }
        }
        int32_t below = node + 1;
        for (int32_t j = 0; is_file && j < f->type->n_fields; j++) {
            for (int32_t k = 0; k < N_FILE_FIELDS; k++) {
                bool wanted = file_rows[k].want == 0 || (file_rows[k].want & want) != 0;
                if (r->file_slots[k] == j && wanted && k != F_BLOCK_SIZE) {
                    memset(selected + below, 1, (size_t)type_field_span(&f->type->fields[j]));
                }
            }
            below += type_field_span(&f->type->fields[j]);
        }
        node += type_field_span(f);
    }
}

/* The file's child for each field of the spec. */
static tarn_code match_tuple(entry_reader *r, const tarn_type *file_tuple) {
    int32_t n = r->spec->n_fields;
    bool by_name = true;
    r->tuple_slots = ARENA_ARRAY(r->arena, int32_t, (size_t)n);
    if (r->tuple_slots == NULL) {
        return err_nomem(r->err);
    }
    for (int32_t i = 0; file_tuple != NULL && i < file_tuple->n_fields; i++) {
        by_name &= file_tuple->fields[i].id == TARN_NO_ID;
    }
    for (int32_t k = 0; k < n; k++) {
        r->tuple_slots[k] = -1;
        for (int32_t i = 0; file_tuple != NULL && i < file_tuple->n_fields; i++) {
            const tarn_field *f = &file_tuple->fields[i];
            if (by_name ? str_eq(f->name, r->spec->fields[k].name)
                        : f->id == r->spec->fields[k].field_id) {
                r->tuple_slots[k] = i;
            }
        }
    }
    return TARN_OK;
}

/* ---- columns ---- */

static tarn_code copy_bytes(entry_reader *r, const tarn_view *view, const char **out) {
    size_t len = (size_t)(view->offsets[view->length] - view->offsets[0]);
    char *copy = arena_alloc(r->arena, len);
    if (copy == NULL) {
        return err_nomem(r->err);
    }
    if (len > 0) {
        memcpy(copy, view->bytes + view->offsets[0], len);
    }
    *out = copy;
    return TARN_OK;
}

static tarn_str copied_bytes(const column *c, int64_t i) {
    return str_make(c->copied + (c->view.offsets[i] - c->view.offsets[0]),
                    (size_t)(c->view.offsets[i + 1] - c->view.offsets[i]));
}

/* Same, but data NULL for null. */
static tarn_str some_bytes(const column *c, int64_t i) {
    return c->here && !view_is_null(&c->view, i) ? copied_bytes(c, i) : STR_NULL;
}

static inline int64_t whole_at(const tarn_view *v, int64_t i) {
    return v->type->kind == TARN_INT ? ((const int32_t *)v->values)[i]
                                     : ((const int64_t *)v->values)[i];
}

static inline int64_t number(const column *c, int64_t i, int64_t fallback) {
    if (!c->here || view_is_null(&c->view, i)) {
        return fallback;
    }
    return whole_at(&c->view, i);
}

static tarn_code open_items(entry_reader *r, item_column *c, field_shape shape) {
    int32_t first = c->view.offsets[0], last = c->view.offsets[c->view.length];
    size_t n = (size_t)(last - first);
    view_child(&c->view, 0, &c->keys);
    size_t size = shape == SHAPE_COUNTS   ? sizeof(metric_count)
                  : shape == SHAPE_BOUNDS ? sizeof(metric_bound)
                  : shape == SHAPE_LONGS  ? sizeof(int64_t)
                                          : sizeof(int32_t);
    /* With a filter of ids no more than those are kept for each row. */
    if ((shape == SHAPE_COUNTS || shape == SHAPE_BOUNDS) && r->options->stat_ids != NULL) {
        size_t most = (size_t)c->view.length * (size_t)r->options->n_stat_ids;
        n = most < n ? most : n;
    }
    void *items = arena_alloc(r->arena, n * size);
    if (items == NULL) {
        return err_nomem(r->err);
    }
    c->at.ints = items;
    if (shape == SHAPE_COUNTS || shape == SHAPE_BOUNDS) {
        view_child(&c->view, 1, &c->values);
    }
    return shape == SHAPE_BOUNDS && r->options->stat_ids == NULL
               ? copy_bytes(r, &c->values, &c->copied)
               : TARN_OK;
}

static bool id_wanted(const manifest_read_options *o, int32_t id) {
    for (int32_t i = 0; i < o->n_stat_ids; i++) {
        if (o->stat_ids[i] == id) {
            return true;
        }
    }
    return o->stat_ids == NULL;
}

static void take_counts(const entry_reader *r, item_column *c, int64_t row, int32_t *n,
                        const metric_count **out) {
    *n = 0;
    *out = NULL;
    if (!c->here || view_is_null(&c->view, row)) {
        return;
    }
    metric_count *items = c->at.counts;
    int32_t kept = 0;
    for (int32_t k = c->view.offsets[row]; k < c->view.offsets[row + 1]; k++) {
        int32_t id = (int32_t)whole_at(&c->keys, k);
        if (id_wanted(r->options, id) && !view_is_null(&c->values, k) &&
            (r->options->stat_ids == NULL || kept < r->options->n_stat_ids)) {
            items[kept++] = (metric_count){id, whole_at(&c->values, k)};
        }
    }
    c->at.counts += kept;
    *n = kept;
    *out = items;
}

static tarn_code take_bounds(const entry_reader *r, item_column *c, int64_t row, int32_t *n,
                             const metric_bound **out) {
    *n = 0;
    *out = NULL;
    if (!c->here || view_is_null(&c->view, row)) {
        return TARN_OK;
    }
    metric_bound *items = c->at.bounds;
    int32_t kept = 0;
    for (int32_t k = c->view.offsets[row]; k < c->view.offsets[row + 1]; k++) {
        int32_t id = (int32_t)whole_at(&c->keys, k);
        if (view_is_null(&c->values, k) || !id_wanted(r->options, id)) {
            continue;
        }
        tarn_str bytes = view_bytes(&c->values, k);
        if (r->options->stat_ids == NULL) {
            bytes.data = c->copied + (c->values.offsets[k] - c->values.offsets[0]);
        } else {
            bytes = arena_str(r->arena, bytes);
            if (bytes.data == NULL) {
                return err_nomem(r->err);
            }
            if (kept == r->options->n_stat_ids) {
                break; /* an id was there twice */
            }
        }
        items[kept++] = (metric_bound){id, bytes};
    }
    c->at.bounds += kept;
    *n = kept;
    *out = items;
    return TARN_OK;
}

static void take_longs(item_column *c, int64_t row, int32_t *n, const int64_t **out) {
    if (c->here && !view_is_null(&c->view, row)) {
        int32_t from = c->view.offsets[row];
        *n = c->view.offsets[row + 1] - from;
        for (int32_t i = 0; i < *n; i++) {
            c->at.longs[i] = whole_at(&c->keys, from + i);
        }
        *out = c->at.longs;
        c->at.longs += *n;
    }
}

static void take_ints(item_column *c, int64_t row, int32_t *n, const int32_t **out) {
    if (c->here && !view_is_null(&c->view, row)) {
        int32_t from = c->view.offsets[row];
        *n = c->view.offsets[row + 1] - from;
        for (int32_t i = 0; i < *n; i++) {
            c->at.ints[i] = (int32_t)whole_at(&c->keys, from + i);
        }
        *out = c->at.ints;
        c->at.ints += *n;
    }
}

/* ---- partition tuples ---- */

/* A value of the file's type as one of the spec's: manifests older than a promotion hold the
 * narrower type, and some writers leave logical types out. */
static bool adapt_value(tarn_value *v, const tarn_type *type) {
    tarn_kind from = v->type->kind, to = type->kind;
    v->type = type;
    if (v->is_null || from == to || to == TARN_UNKNOWN) {
        return true;
    }
    bool from_i32 = from == TARN_INT || from == TARN_DATE,
         from_i64 = from >= TARN_TIME && from <= TARN_TIMESTAMPTZ_NS;
    if (from_i32 && (to == TARN_INT || to == TARN_DATE)) {
        return true;
    }
    if (from == TARN_INT && to == TARN_LONG) {
        v->as.i64 = v->as.i32;
        return true;
    }
    if ((from_i64 || from == TARN_LONG) && to >= TARN_TIME && to <= TARN_TIMESTAMPTZ_NS) {
        return true;
    }
    if (from == TARN_FLOAT && to == TARN_DOUBLE) {
        v->as.f64 = (double)v->as.f32;
        return true;
    }
    if (from == TARN_DATE && (to == TARN_TIMESTAMP || to == TARN_TIMESTAMP_NS)) {
        int64_t day = to == TARN_TIMESTAMP ? INT64_C(86400000000) : INT64_C(86400000000000);
        return num_mul_i64(v->as.i32, day, &v->as.i64);
    }
    bool bytes = from == TARN_BINARY || from == TARN_FIXED || from == TARN_STRING;
    return bytes && (to == TARN_BINARY || to == TARN_STRING ||
                     ((to == TARN_FIXED || to == TARN_UUID) &&
                      v->as.bytes.len == (size_t)(to == TARN_UUID ? 16 : type->length)));
}

static tarn_code fill_tuple_column(entry_reader *r, const tarn_view *view, int32_t k,
                                   tarn_value *tuples) {
    const tarn_type *type = r->tuple->fields[k].type;
    if (type->kind == TARN_UNKNOWN) {
        type = view->type; /* its source is gone: what is there is all that is known */
    }
    size_t stride = (size_t)r->spec->n_fields, width = (size_t)type_width(view->type);
    column c = {true, *view, NULL};
    bool by_bytes = view->offsets != NULL;
    bool fixed = view->type->kind == TARN_UUID || view->type->kind == TARN_FIXED;
    tarn_code code = by_bytes ? copy_bytes(r, view, &c.copied) : TARN_OK;
    if (code == TARN_OK && fixed) {
        char *copy = arena_alloc(r->arena, width * (size_t)view->length);
        if (copy == NULL) {
            return err_nomem(r->err);
        }
        memcpy(copy, view->values, width * (size_t)view->length);
        c.copied = copy;
    }
    for (int64_t i = 0; i < view->length && code == TARN_OK; i++) {
        tarn_value *v = &tuples[(size_t)i * stride + (size_t)k];
        view_value(view, i, v);
        if (!v->is_null && (by_bytes || fixed)) {
            v->as.bytes =
                by_bytes ? copied_bytes(&c, i) : str_make(c.copied + width * (size_t)i, width);
        }
        if (!adapt_value(v, type)) {
            tarn_str name = r->spec->fields[k].name;
            code = err_set(r->err, TARN_CORRUPT,
                           "manifest %s: partition field \"%.*s\" held %s where %s belongs",
                           r->name, STR_ARG(name), type_kind_name(view->type->kind),
                           type_kind_name(type->kind));
        }
    }
    return code;
}

static tarn_code fill_tuples(entry_reader *r, const tarn_view *tuple, int64_t rows,
                             tarn_value **out) {
    int32_t n = r->spec->n_fields;
    tarn_value *tuples = arena_alloc(r->arena, (size_t)rows * (size_t)n * sizeof *tuples);
    if (tuples == NULL) {
        return err_nomem(r->err);
    }
    for (int32_t k = 0; k < n; k++) {
        if (r->tuple_slots[k] < 0 || tuple == NULL) {
            for (int64_t i = 0; i < rows; i++) {
                tuples[i * n + k] = value_null(r->tuple->fields[k].type);
            }
            continue;
        }
        tarn_view view;
        view_child(tuple, r->tuple_slots[k], &view);
        tarn_code code = type_is_nested(view.type) ? wrong(r, "held a nested value", "partition")
                                                   : fill_tuple_column(r, &view, k, tuples);
        if (code != TARN_OK) {
            return code;
        }
    }
    *out = tuples;
    return TARN_OK;
}

/* ---- entries ---- */

static tarn_file_format format_of(tarn_str text) {
    static const struct {
        const char *name;
        tarn_file_format format;
    } formats[] = {{"parquet", TARN_FORMAT_PARQUET},
                   {"avro", TARN_FORMAT_AVRO},
                   {"orc", TARN_FORMAT_ORC},
                   {"puffin", TARN_FORMAT_PUFFIN}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (str_eq_nocase(text, str_of(formats[i].name))) {
            return formats[i].format;
        }
    }
    return TARN_FORMAT_OTHER;
}

/* spec: "Sequence Number Inheritance". A manifest of sequence 0 (v1) gives 0 to all (B17). */
static void inherit(const entry_reader *r, tarn_entry *e) {
    const tarn_manifest *m = r->manifest;
    if (m == NULL) {
        if (r->version == 1) {
            e->sequence_number = e->sequence_number < 0 ? 0 : e->sequence_number;
            e->file_sequence_number = e->file_sequence_number < 0 ? 0 : e->file_sequence_number;
        }
        return;
    }
    e->snapshot_id = e->snapshot_id < 0 ? m->added_snapshot_id : e->snapshot_id;
    if (m->sequence_number == 0 || e->status == TARN_ENTRY_ADDED) {
        e->sequence_number = e->sequence_number < 0 ? m->sequence_number : e->sequence_number;
        e->file_sequence_number =
            e->file_sequence_number < 0 ? m->sequence_number : e->file_sequence_number;
    }
}

/* spec: "First Row ID Inheritance": counted over entries without one, in their order. */
static tarn_code inherit_row_id(entry_reader *r, tarn_entry *e) {
    if (r->manifest == NULL || e->file.content != TARN_CONTENT_DATA ||
        e->status == TARN_ENTRY_DELETED) {
        return TARN_OK;
    }
    if (r->next_row_id < 0) {
        if (r->manifest->sequence_number >= 0) { /* before its commit a manifest has none to give */
            e->file.first_row_id = -1;
        }
        return TARN_OK;
    }
    if (e->file.first_row_id < 0) {
        e->file.first_row_id = r->next_row_id;
        if (e->file.record_count < 0 ||
            !num_add_i64(r->next_row_id, e->file.record_count, &r->next_row_id)) {
            return wrong(r, "was out of range", "record_count");
        }
    }
    return TARN_OK;
}

static tarn_code take_rest(entry_reader *r, batch_columns *c, int64_t row, tarn_file *f) {
    f->key_metadata = some_bytes(&c->file[F_KEY], row);
    take_longs(&c->items[F_SPLITS], row, &f->n_split_offsets, &f->split_offsets);
    take_ints(&c->items[F_EQUALITY], row, &f->n_equality_ids, &f->equality_ids);
    f->sort_order_id = (int32_t)number(&c->file[F_SORT], row, -1);
    f->first_row_id = number(&c->file[F_FIRST_ROW], row, -1);
    f->referenced_data_file = some_bytes(&c->file[F_REFERENCED], row);
    f->content_offset = number(&c->file[F_OFFSET], row, -1);
    f->content_size = number(&c->file[F_LENGTH], row, -1);
    (void)r;
    return TARN_OK;
}

static tarn_code take_stats(entry_reader *r, batch_columns *c, int64_t row, tarn_file *f) {
    take_counts(r, &c->items[F_VALUE_COUNTS], row, &f->n_value_counts, &f->value_counts);
    take_counts(r, &c->items[F_NULL_COUNTS], row, &f->n_null_counts, &f->null_counts);
    take_counts(r, &c->items[F_NAN_COUNTS], row, &f->n_nan_counts, &f->nan_counts);
    tarn_code code = take_bounds(r, &c->items[F_LOWER], row, &f->n_lower, &f->lower);
    return code == TARN_OK ? take_bounds(r, &c->items[F_UPPER], row, &f->n_upper, &f->upper) : code;
}

static tarn_code take_entry(entry_reader *r, batch_columns *c, int64_t row, tarn_entry *e) {
    tarn_file *f = &e->file;
    int64_t status = number(&c->entry[E_STATUS], row, -1);
    int64_t content = number(&c->file[F_CONTENT], row, 0);
    if (status < TARN_ENTRY_EXISTING || status > TARN_ENTRY_DELETED) {
        return wrong(r, "was none of 0 to 2", "status");
    }
    if (content < TARN_CONTENT_DATA || content > TARN_CONTENT_EQUALITY_DELETES) {
        return wrong(r, "was none of 0 to 2", "content");
    }
    e->status = (tarn_entry_status)status;
    e->snapshot_id = number(&c->entry[E_SNAPSHOT], row, -1);
    e->sequence_number = number(&c->entry[E_SEQUENCE], row, -1);
    e->file_sequence_number = number(&c->entry[E_FILE_SEQUENCE], row, -1);
    inherit(r, e);
    f->content = (tarn_content)content;
    f->path = some_bytes(&c->file[F_PATH], row);
    f->record_count = number(&c->file[F_RECORDS], row, -1);
    f->size_bytes = number(&c->file[F_SIZE], row, -1);
    if (f->path.len == 0 || f->record_count < 0) {
        return wrong(r, "was missing or negative", f->path.len == 0 ? "file_path" : "record_count");
    }
    if (f->record_count > LIMIT_FILE_ROWS) {
        return err_set(r->err, TARN_LIMIT,
                       "manifest %s: file %.*s had %lld rows; the limit is %lld", r->name,
                       STR_ARG(f->path), (long long)f->record_count, LIMIT_FILE_ROWS);
    }
    const column *format = &c->file[F_FORMAT];
    f->format = format->here && !view_is_null(&format->view, row)
                    ? format_of(view_bytes(&format->view, row))
                    : TARN_FORMAT_OTHER;
    f->spec_id = r->spec->spec_id;
    f->n_partition = r->spec->n_fields;
    f->partition = c->tuples + row * r->spec->n_fields;
    f->sort_order_id = -1;
    f->first_row_id = f->content_offset = f->content_size = -1;
    tarn_code code = TARN_OK;
    if (r->options->want & MANIFEST_WANT_STATS) {
        code = take_stats(r, c, row, f);
    }
    if (r->options->want & MANIFEST_WANT_COLUMN_SIZES) {
        take_counts(r, &c->items[F_COLUMN_SIZES], row, &f->n_column_sizes, &f->column_sizes);
    }
    if (code == TARN_OK && (r->options->want & MANIFEST_WANT_REST)) {
        code = take_rest(r, c, row, f);
    }
    return code == TARN_OK ? inherit_row_id(r, e) : code;
}

static tarn_code open_columns(entry_reader *r, const tarn_batch *batch, batch_columns *c) {
    tarn_view file, tuple;
    bool tupled = r->file_slots[F_PARTITION] >= 0;
    tarn_code code = TARN_OK;
    memset(c, 0, sizeof *c);
    for (int32_t i = 0; i < N_ENTRY_FIELDS; i++) {
        if (r->entry_slots[i] >= 0) {
            c->entry[i].here = true;
            view_column(batch, r->entry_slots[i], &c->entry[i].view);
        }
    }
    file = c->entry[E_FILE].view;
    for (int32_t i = 0; i < N_FILE_FIELDS && code == TARN_OK; i++) {
        field_shape shape = file_rows[i].shape;
        if (r->file_slots[i] < 0) {
            continue;
        }
        if (shape == SHAPE_STRUCT) {
            view_child(&file, r->file_slots[i], &tuple);
        } else if (shape == SHAPE_INT || shape == SHAPE_LONG) {
            c->file[i].here = true;
            view_child(&file, r->file_slots[i], &c->file[i].view);
        } else if (shape == SHAPE_STRING || shape == SHAPE_BYTES) {
            c->file[i].here = true;
            view_child(&file, r->file_slots[i], &c->file[i].view);
            if (i != F_FORMAT) {
                code = copy_bytes(r, &c->file[i].view, &c->file[i].copied);
            }
        } else {
            c->items[i].here = true;
            view_child(&file, r->file_slots[i], &c->items[i].view);
            code = open_items(r, &c->items[i], shape);
        }
    }
    return code == TARN_OK ? fill_tuples(r, tupled ? &tuple : NULL, batch_rows(batch), &c->tuples)
                           : code;
}

static tarn_code reserve_entries(entry_reader *r, int64_t more) {
    if (r->count + more <= r->cap) {
        return TARN_OK;
    }
    int64_t cap = r->cap * 2 > r->count + more ? r->cap * 2 : r->count + more;
    if ((uint64_t)cap > LIMIT_MANIFEST_BYTES / 8) {
        return err_set(r->err, TARN_LIMIT, "manifest %s had more than %llu entries", r->name,
                       (unsigned long long)(LIMIT_MANIFEST_BYTES / 8));
    }
    tarn_entry *items = arena_grow(r->arena, r->items, (size_t)r->count * sizeof *items,
                                   (size_t)cap * sizeof *items);
    if (items == NULL) {
        return err_nomem(r->err);
    }
    r->items = items;
    r->cap = cap;
    return TARN_OK;
}

static tarn_code take_batch(entry_reader *r, const tarn_batch *batch) {
    batch_columns columns;
    tarn_code code = open_columns(r, batch, &columns);
    if (code == TARN_OK) {
        code = reserve_entries(r, batch_rows(batch));
    }
    for (int64_t i = 0; i < batch_rows(batch) && code == TARN_OK; i++) {
        tarn_entry *e = &r->items[r->count];
        if (r->options->live_only &&
            number(&columns.entry[E_STATUS], i, -1) == TARN_ENTRY_DELETED) {
            continue;
        }
        memset(e, 0, sizeof *e);
        code = take_entry(r, &columns, i, e);
        r->count++;
    }
    return code;
}

/* ---- the whole ---- */

/* Room for the entries that the list promised, as far as a file of this size can hold them. */
static tarn_code reserve_promised(entry_reader *r, int64_t size_bytes) {
    const tarn_manifest *m = r->manifest;
    if (m == NULL || m->added_files < 0 || m->existing_files < 0 || m->deleted_files < 0) {
        return TARN_OK;
    }
    int64_t n = (int64_t)m->added_files + m->existing_files +
                (r->options->live_only ? 0 : m->deleted_files);
    int64_t most = size_bytes / 16 + 16;
    return reserve_entries(r, n < most ? n : most);
}

static tarn_code find_spec(entry_reader *r, const tarn_metadata *m) {
    tarn_str text;
    int32_t id = 0;
    if (avro_file_meta(r->file, "format-version", &text) && !str_to_i32(text, &r->version)) {
        return wrong(r, "was not a number", "format-version of the header");
    }
    if (r->manifest != NULL && r->manifest->spec_id >= 0) { /* -1: named in the metadata (v1) */
        id = r->manifest->spec_id;
    } else if (avro_file_meta(r->file, "partition-spec-id", &text) && !str_to_i32(text, &id)) {
        return wrong(r, "was not a number", "partition-spec-id of the header");
    }
    r->spec = metadata_spec_by_id(m, id);
    if (r->spec == NULL) {
        return err_set(r->err, TARN_CORRUPT, "manifest %s: partition spec %d is not in the table",
                       r->name, id);
    }
    return spec_partition_type(r->arena, r->spec, m, &r->tuple, r->err);
}

static tarn_code scan_entries(entry_reader *r) {
    const tarn_type *type = avro_file_type(r->file);
    avro_scan *scan = NULL;
    tarn_batch batch;
    avro_scan_options options;
    memset(&batch, 0, sizeof batch);
    memset(&options, 0, sizeof options);
    size_t n_nodes = (size_t)type_node_count(type);
    uint8_t *selected = arena_calloc(r->arena, n_nodes, 1);
    tarn_code code = selected == NULL ? err_nomem(r->err) : find_fields(r, type);
    if (code == TARN_OK) {
        if (type->fields[r->entry_slots[E_FILE]].id == TARN_NO_ID) {
            env_log(r->arena->env, TARN_LOG_WARN, "iceberg", "manifest_without_ids", "path=%s",
                    r->name);
        }
        select_fields(r, type, selected);
        options.selected = selected;
        code = avro_scan_open(r->file, &options, &scan, r->err);
    }
    if (code == TARN_OK) { /* the same fields, by their places among what is read */
        code = find_fields(r, avro_scan_type(scan));
    }
    if (code == TARN_OK) {
        const tarn_type *file = avro_scan_type(scan)->fields[r->entry_slots[E_FILE]].type;
        int32_t slot = r->file_slots[F_PARTITION];
        code = match_tuple(r, slot >= 0 ? file->fields[slot].type : NULL);
    }
    while (code == TARN_OK) {
        code = avro_scan_next(scan, &batch, r->err);
        if (code != TARN_OK || batch_rows(&batch) == 0) {
            break;
        }
        code = take_batch(r, &batch);
        batch_release(&batch);
    }
    batch_release(&batch);
    avro_scan_close(scan);
    return code;
}

tarn_code manifest_read(tarn_arena *arena, io_source *source, const tarn_metadata *m,
                        const tarn_manifest *manifest, const manifest_read_options *options,
                        manifest_entries *out, tarn_error *err) {
    static const manifest_read_options all = {MANIFEST_WANT_ALL, NULL, 0, false};
    entry_reader r;
    io_source *lent = NULL;
    tarn_code code = TARN_OK;
    memset(&r, 0, sizeof r);
    r.arena = arena;
    r.err = err;
    r.name = source->name;
    r.manifest = manifest;
    r.options = options != NULL ? options : &all;
    r.version = 1; /* the oldest headers have no format-version */
    r.next_row_id = manifest != NULL && !manifest->is_deletes ? manifest->first_row_id : -1;
    TRY(manifest_lend_source(source, &lent, err));
    TRY(avro_open(arena->env, lent, &r.file, err));
    lent = NULL;
    TRY(find_spec(&r, m));
    TRY(reserve_promised(&r, source->size_bytes));
    TRY(scan_entries(&r));
    *out = (manifest_entries){r.count, r.items};
done:
    if (lent != NULL) {
        lent->close(lent);
    }
    avro_close(r.file);
    return code;
}
