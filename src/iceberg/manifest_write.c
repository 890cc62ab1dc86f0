/* iceberg/manifest_write.c - writing one manifest (spec, "Manifests"): entries gather in columns
 * and go out in batches. What the manifest list will say of the file (counts, the least sequence
 * number, partition summaries) is kept on the way.
 *
 * Invariants: 1 an entry without sequence number is ADDED, to inherit the committing snapshot's;
 * 2 the least sequence number is that of live entries, and 0 is a number like any other (B17);
 * 3 data and delete files never share a manifest. */
#include "base/limits.h"
#include "format/avro/avro.h"
#include "iceberg/manifest_int.h"
#include "iceberg/metadata_int.h"

#define ROWS_AT_ONCE  2048
#define V1_BLOCK_SIZE (INT64_C(64) << 20) /* what readers of version 1 expect to be there */

typedef struct field_range { /* summary of one partition field */
    bool has_null, has_nan, has_values;
    tarn_value lower, upper;
    tarn_buf lower_bytes, upper_bytes; /* what lower and upper point to */
} field_range;

struct manifest_writer {
    tarn_env *env;
    tarn_arena arena; /* types and names */
    int32_t version;
    int32_t spec_id;
    bool is_deletes;
    tarn_str path;
    int64_t snapshot_id;
    const tarn_type *tuple;
    int32_t entry_slots[N_ENTRY_FIELDS];
    int32_t file_slots[N_FILE_FIELDS];
    tarn_builder rows;
    avro_writer *avro;
    int64_t pending_bytes; /* roughly, of rows not yet given to avro */
    int32_t files[3];      /* by status */
    int64_t records[3];
    int64_t min_sequence_number; /* -1: none yet */
    field_range *ranges;
};

/* ---- opening ---- */

static tarn_code header_text(tarn_arena *arena, const tarn_schema *schema, const tarn_spec *spec,
                             tarn_str *out, tarn_error *err) {
    tarn_buf buf;
    json_writer w;
    buf_init(&buf, arena->env, 0);
    json_begin(&w, &buf, false, err);
    if (schema != NULL) {
        schema_put_json(schema, &w);
    } else {
        spec_put_fields(spec, &w);
    }
    tarn_code code = json_end(&w);
    if (code == TARN_OK) {
        *out = arena_str(arena, buf_str(&buf));
        code = out->data != NULL ? TARN_OK : err_nomem(err);
    }
    buf_release(&buf);
    return code;
}

static tarn_code open_avro(manifest_writer *w, const manifest_writer_options *o,
                           const tarn_type *type, io_sink *sink, tarn_error *err) {
    avro_write_options options = AVRO_WRITE_OPTIONS_INIT;
    char *spec_id = arena_printf(&w->arena, "%d", w->spec_id);
    char *version = arena_printf(&w->arena, "%d", w->version);
    tarn_str schema = STR_NULL, spec = STR_NULL;
    tarn_code code = TARN_OK;
    const char *schema_id = arena_printf(&w->arena, "%d", o->schema->schema_id);
    if (spec_id == NULL || version == NULL || schema_id == NULL) {
        return err_nomem(err);
    }
    TRY(header_text(&w->arena, o->schema, NULL, &schema, err));
    TRY(header_text(&w->arena, NULL, o->spec, &spec, err));
    TRY(manifest_codec(o->codec, &options, err));
    avro_meta meta[] = {{STR("schema"), schema},
                        {STR("schema-id"), str_of(schema_id)},
                        {STR("partition-spec"), spec},
                        {STR("partition-spec-id"), str_of(spec_id)},
                        {STR("format-version"), str_of(version)},
                        {STR("content"), w->is_deletes ? STR("deletes") : STR("data")}};
    options.record_name = STR("manifest_entry");
    options.meta = meta;
    options.n_meta = w->version == 1 ? 5 : 6;
    TRY(avro_writer_open(w->env, sink, type, &options, &w->avro, err));
done:
    return code;
}

static void free_writer(manifest_writer *w) {
    tarn_env *env = w->env;
    builder_release(&w->rows);
    for (int32_t i = 0; w->ranges != NULL && i < w->tuple->n_fields; i++) {
        buf_release(&w->ranges[i].lower_bytes);
        buf_release(&w->ranges[i].upper_bytes);
    }
    arena_release(&w->arena);
    env_free(env, w);
}

static tarn_code open_writer(manifest_writer *w, const manifest_writer_options *o, io_sink *sink,
                             tarn_str path, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (w->is_deletes && w->version < 2) {
        return err_set(err, TARN_INVALID, "a table of format version 1 had delete files");
    }
    for (int32_t i = 0; i < o->spec->n_fields; i++) {
        if (o->spec->fields[i].transform.kind == TRANSFORM_UNKNOWN) {
            return err_set(err, TARN_UNSUPPORTED,
                           "partition field \"%.*s\" has transform \"%.*s\", which is not known "
                           "here and cannot be written",
                           STR_ARG(o->spec->fields[i].name),
                           STR_ARG(o->spec->fields[i].transform.text));
        }
    }
    TRY(spec_partition_type(&w->arena, o->spec, o->metadata, &w->tuple, err));
    const tarn_type *type =
        manifest_entry_type(&w->arena, w->tuple, w->version, w->entry_slots, w->file_slots);
    w->path = arena_str(&w->arena, path);
    w->ranges = ARENA_ARRAY(&w->arena, field_range, (size_t)w->tuple->n_fields);
    if (type == NULL || w->path.data == NULL || w->ranges == NULL) {
        TRY(err_nomem(err));
    }
    for (int32_t i = 0; i < w->tuple->n_fields; i++) {
        buf_init(&w->ranges[i].lower_bytes, w->env, 0);
        buf_init(&w->ranges[i].upper_bytes, w->env, 0);
    }
    TRY(builder_init(&w->rows, w->env, type, err));
    TRY(open_avro(w, o, type, sink, err));
done:
    return code;
}

tarn_code manifest_writer_new(tarn_env *env, const manifest_writer_options *options, io_sink *sink,
                              tarn_str path, manifest_writer **out, tarn_error *err) {
    manifest_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    arena_init(&w->arena, env);
    w->version = options->format_version;
    w->spec_id = options->spec->spec_id;
    w->is_deletes = options->is_deletes;
    w->snapshot_id = options->snapshot_id;
    w->min_sequence_number = -1;
    tarn_code code = open_writer(w, options, sink, path, err);
    if (code != TARN_OK) {
        free_writer(w);
        return code;
    }
    *out = w;
    return TARN_OK;
}

/* ---- columns ---- */

static tarn_code put_long(tarn_builder *b, int64_t v, bool null, tarn_error *err) {
    if (null) {
        return builder_null(b, err);
    }
    if (b->type->kind == TARN_INT) {
        int32_t v4 = (int32_t)v;
        return builder_fixed(b, &v4, err);
    }
    return builder_fixed(b, &v, err);
}

static tarn_code put_text(tarn_builder *b, tarn_str s, tarn_error *err) {
    return s.data == NULL ? builder_null(b, err) : builder_bytes(b, s, err);
}

static tarn_code put_counts(tarn_builder *b, const metric_count *counts, int32_t n,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    if (n == 0) {
        return builder_null(b, err);
    }
    for (int32_t i = 0; i < n && code == TARN_OK; i++) {
        code = builder_fixed(&b->children[0], &counts[i].id, err);
        if (code == TARN_OK) {
            code = builder_fixed(&b->children[1], &counts[i].count, err);
        }
    }
    return code == TARN_OK ? builder_close(b, err) : code;
}

static tarn_code put_bounds(tarn_builder *b, const metric_bound *bounds, int32_t n,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    if (n == 0) {
        return builder_null(b, err);
    }
    for (int32_t i = 0; i < n && code == TARN_OK; i++) {
        code = builder_fixed(&b->children[0], &bounds[i].id, err);
        if (code == TARN_OK) {
            code = builder_bytes(&b->children[1], bounds[i].bytes, err);
        }
    }
    return code == TARN_OK ? builder_close(b, err) : code;
}

static tarn_code put_list(tarn_builder *b, const void *items, int32_t n, size_t size,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    if (n == 0) {
        return builder_null(b, err);
    }
    for (int32_t i = 0; i < n && code == TARN_OK; i++) {
        code = builder_fixed(&b->children[0], (const char *)items + (size_t)i * size, err);
    }
    return code == TARN_OK ? builder_close(b, err) : code;
}

static const char *format_name(tarn_file_format format) {
    switch (format) {
    case TARN_FORMAT_PARQUET:
        return "PARQUET";
    case TARN_FORMAT_AVRO:
        return "AVRO";
    case TARN_FORMAT_ORC:
        return "ORC";
    case TARN_FORMAT_PUFFIN:
        return "PUFFIN";
    case TARN_FORMAT_OTHER:
        break;
    }
    return NULL;
}

static tarn_code put_tuple(manifest_writer *w, tarn_builder *b, const tarn_file *f,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < w->tuple->n_fields && code == TARN_OK; i++) {
        tarn_value v = f->partition[i];
        v.type = w->tuple->fields[i].type;
        code = v.is_null ? builder_null(&b->children[i], err)
                         : builder_value(&b->children[i], &v, err);
    }
    return code == TARN_OK ? builder_close(b, err) : code;
}

static tarn_code put_file_field(manifest_writer *w, tarn_builder *b, int32_t field,
                                const tarn_file *f, tarn_error *err) {
    switch (field) {
    case F_CONTENT:
        return put_long(b, (int64_t)f->content, false, err);
    case F_PATH:
        return builder_bytes(b, f->path, err);
    case F_FORMAT:
        return builder_bytes(b, str_of(format_name(f->format)), err);
    case F_PARTITION:
        return put_tuple(w, b, f, err);
    case F_RECORDS:
        return put_long(b, f->record_count, false, err);
    case F_SIZE:
        return put_long(b, f->size_bytes, false, err);
    case F_BLOCK_SIZE:
        return put_long(b, V1_BLOCK_SIZE, false, err);
    case F_COLUMN_SIZES:
        return put_counts(b, f->column_sizes, f->n_column_sizes, err);
    case F_VALUE_COUNTS:
        return put_counts(b, f->value_counts, f->n_value_counts, err);
    case F_NULL_COUNTS:
        return put_counts(b, f->null_counts, f->n_null_counts, err);
    case F_NAN_COUNTS:
        return put_counts(b, f->nan_counts, f->n_nan_counts, err);
    case F_LOWER:
        return put_bounds(b, f->lower, f->n_lower, err);
    case F_UPPER:
        return put_bounds(b, f->upper, f->n_upper, err);
    case F_KEY:
        return put_text(b, f->key_metadata, err);
    case F_SPLITS:
        return put_list(b, f->split_offsets, f->n_split_offsets, sizeof(int64_t), err);
    case F_EQUALITY:
        return put_list(b, f->equality_ids, f->n_equality_ids, sizeof(int32_t), err);
    case F_SORT:
        return put_long(b, f->sort_order_id, f->sort_order_id < 0, err);
    case F_FIRST_ROW:
        return put_long(b, f->first_row_id, f->first_row_id < 0, err);
    case F_REFERENCED:
        return put_text(b, f->referenced_data_file, err);
    case F_OFFSET:
        return put_long(b, f->content_offset, f->content_offset < 0, err);
    default:
        return put_long(b, f->content_size, f->content_size < 0, err);
    }
}

static tarn_code put_entry_fields(manifest_writer *w, const tarn_entry *e, tarn_error *err) {
    tarn_builder *columns = w->rows.children;
    int64_t values[] = {(int64_t)e->status, e->snapshot_id, e->sequence_number,
                        e->file_sequence_number};
    for (int32_t i = E_STATUS; i <= E_FILE_SEQUENCE; i++) {
        if (w->entry_slots[i] >= 0) {
            tarn_code code = put_long(&columns[w->entry_slots[i]], values[i], values[i] < 0, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    tarn_builder *file = &columns[w->entry_slots[E_FILE]];
    for (int32_t i = 0; i < N_FILE_FIELDS; i++) {
        if (w->file_slots[i] >= 0) {
            tarn_code code = put_file_field(w, &file->children[w->file_slots[i]], i, &e->file, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    tarn_code code = builder_close(file, err);
    return code == TARN_OK ? builder_close(&w->rows, err) : code;
}

/* ---- summaries ---- */

static bool is_nan(const tarn_value *v) {
    return (v->type->kind == TARN_FLOAT && v->as.f32 != v->as.f32) ||
           (v->type->kind == TARN_DOUBLE && v->as.f64 != v->as.f64);
}

static bool has_bytes(const tarn_type *type) {
    return type_is_var(type) || type->kind == TARN_FIXED || type->kind == TARN_UUID;
}

static tarn_code keep_value(tarn_value *kept, tarn_buf *bytes, const tarn_value *v,
                            tarn_error *err) {
    *kept = *v;
    if (!has_bytes(v->type)) {
        return TARN_OK;
    }
    buf_reset(bytes);
    tarn_code code = buf_append_str(bytes, v->as.bytes, err);
    kept->as.bytes = buf_str(bytes);
    return code;
}

static tarn_code note_tuple(manifest_writer *w, const tarn_file *f, tarn_error *err) {
    for (int32_t i = 0; i < w->tuple->n_fields; i++) {
        field_range *range = &w->ranges[i];
        tarn_value v = f->partition[i];
        v.type = w->tuple->fields[i].type;
        if (v.is_null) {
            range->has_null = true;
            continue;
        }
        if (is_nan(&v)) {
            range->has_nan = true;
            continue;
        }
        tarn_code code = TARN_OK;
        if (!range->has_values || value_cmp(&v, &range->lower) < 0) {
            code = keep_value(&range->lower, &range->lower_bytes, &v, err);
        }
        if (code == TARN_OK && (!range->has_values || value_cmp(&v, &range->upper) > 0)) {
            code = keep_value(&range->upper, &range->upper_bytes, &v, err);
        }
        if (code != TARN_OK) {
            return code;
        }
        range->has_values = true;
    }
    return TARN_OK;
}

/* ---- adding ---- */

static tarn_code check_tuple(const manifest_writer *w, const tarn_file *f, tarn_error *err) {
    if (f->spec_id != w->spec_id || f->n_partition != w->tuple->n_fields) {
        return err_set(err, TARN_INVALID,
                       "file %.*s of spec %d with %d partition values came to a manifest of spec "
                       "%d with %d",
                       STR_ARG(f->path), f->spec_id, f->n_partition, w->spec_id,
                       w->tuple->n_fields);
    }
    for (int32_t i = 0; i < f->n_partition; i++) {
        const tarn_value *v = &f->partition[i];
        tarn_kind want = w->tuple->fields[i].type->kind;
        bool same = v->is_null || v->type->kind == want ||
                    (v->type->kind == TARN_INT && want == TARN_DATE) ||
                    (v->type->kind == TARN_DATE && want == TARN_INT);
        if (!same) {
            return err_set(err, TARN_INVALID, "file %.*s: partition value %d was %s instead of %s",
                           STR_ARG(f->path), i, type_kind_name(v->type->kind),
                           type_kind_name(want));
        }
    }
    return TARN_OK;
}

static tarn_code check_entry(const manifest_writer *w, const tarn_entry *e, tarn_error *err) {
    const tarn_file *f = &e->file;
    if (w->is_deletes != (f->content != TARN_CONTENT_DATA)) {
        return err_set(err, TARN_INVALID, "file %.*s of content %d came to a manifest of %s",
                       STR_ARG(f->path), (int)f->content, w->is_deletes ? "deletes" : "data");
    }
    if (f->path.len == 0 || f->record_count < 0 || f->size_bytes < 0 ||
        format_name(f->format) == NULL) {
        return err_set(err, TARN_INVALID,
                       "file \"%.*s\" with %lld records, %lld bytes, format %d cannot be listed",
                       STR_ARG(f->path), (long long)f->record_count, (long long)f->size_bytes,
                       (int)f->format);
    }
    if (f->record_count > LIMIT_FILE_ROWS) {
        return err_set(err, TARN_LIMIT, "file %.*s has %lld rows; the limit is %lld",
                       STR_ARG(f->path), (long long)f->record_count, LIMIT_FILE_ROWS);
    }
    if (e->sequence_number < 0 && e->status != TARN_ENTRY_ADDED && w->version > 1) {
        return err_set(err, TARN_INVALID, "file %.*s that was there before had no sequence number",
                       STR_ARG(f->path));
    }
    return check_tuple(w, f, err);
}

static tarn_code flush_rows(manifest_writer *w, tarn_error *err) {
    tarn_batch batch;
    if (w->rows.length == 0) {
        return TARN_OK;
    }
    tarn_code code = builder_finish_batch(&w->rows, &batch, err);
    if (code == TARN_OK) {
        code = avro_writer_write(w->avro, &batch, err);
        batch_release(&batch);
    }
    w->pending_bytes = 0;
    return code;
}

tarn_code manifest_writer_add(manifest_writer *w, const tarn_entry *entry, tarn_error *err) {
    const tarn_file *f = &entry->file;
    int64_t before = w->rows.length;
    tarn_code code = check_entry(w, entry, err);
    if (code != TARN_OK) {
        return code;
    }
    code = put_entry_fields(w, entry, err);
    if (code == TARN_OK) {
        code = note_tuple(w, f, err);
    }
    if (code != TARN_OK) {
        builder_truncate(&w->rows, before);
        return code;
    }
    w->files[entry->status]++;
    w->records[entry->status] += f->record_count;
    if (entry->status != TARN_ENTRY_DELETED && entry->sequence_number >= 0 &&
        (w->min_sequence_number < 0 || entry->sequence_number < w->min_sequence_number)) {
        w->min_sequence_number = entry->sequence_number;
    }
    /* Each metric packs into a few bytes; this only steers rolling. */
    w->pending_bytes += (int64_t)f->path.len / 2 + 24 + 4 * (f->n_value_counts + f->n_null_counts) +
                        8 * (f->n_lower + f->n_upper) + 4 * f->n_column_sizes;
    return w->rows.length >= ROWS_AT_ONCE ? flush_rows(w, err) : TARN_OK;
}

int64_t manifest_writer_bytes(const manifest_writer *w) {
    return avro_writer_bytes(w->avro) + w->pending_bytes;
}

/* ---- closing ---- */

static tarn_code put_range(tarn_arena *arena, const field_range *range, const tarn_type *type,
                           tarn_field_summary *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool floating = type->kind == TARN_FLOAT || type->kind == TARN_DOUBLE;
    s->contains_null = range->has_null;
    s->contains_nan = floating ? (int8_t)range->has_nan : 0;
    s->has_lower = s->has_upper = range->has_values;
    if (range->has_values) {
        code = value_to_binary(arena, &range->lower, &s->lower, err);
    }
    if (code == TARN_OK && range->has_values) {
        code = value_to_binary(arena, &range->upper, &s->upper, err);
    }
    return code;
}

/* Bounds that are only lent by the value come into the arena. */
static tarn_code own(tarn_arena *arena, tarn_str *s, tarn_error *err) {
    *s = arena_str(arena, *s);
    return s->data != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code fill_manifest(const manifest_writer *w, tarn_arena *arena, tarn_manifest *out,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_field_summary *parts = ARENA_ARRAY(arena, tarn_field_summary, (size_t)w->tuple->n_fields);
    memset(out, 0, sizeof *out);
    out->path = arena_str(arena, w->path);
    if (parts == NULL || out->path.data == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < w->tuple->n_fields; i++) {
        TRY(put_range(arena, &w->ranges[i], w->tuple->fields[i].type, &parts[i], err));
        if (parts[i].has_lower) {
            TRY(own(arena, &parts[i].lower, err));
            TRY(own(arena, &parts[i].upper, err));
        }
    }
    out->spec_id = w->spec_id;
    out->is_deletes = w->is_deletes;
    out->sequence_number = w->version == 1 ? 0 : -1;
    out->min_sequence_number = w->version == 1 ? 0 : w->min_sequence_number;
    out->added_snapshot_id = w->snapshot_id;
    out->added_files = w->files[TARN_ENTRY_ADDED];
    out->existing_files = w->files[TARN_ENTRY_EXISTING];
    out->deleted_files = w->files[TARN_ENTRY_DELETED];
    out->added_rows = w->records[TARN_ENTRY_ADDED];
    out->existing_rows = w->records[TARN_ENTRY_EXISTING];
    out->deleted_rows = w->records[TARN_ENTRY_DELETED];
    out->n_partitions = w->tuple->n_fields;
    out->partitions = parts;
    out->first_row_id = -1;
done:
    return code;
}

tarn_code manifest_writer_close(manifest_writer *w, tarn_arena *arena, tarn_manifest *out,
                                tarn_error *err) {
    tarn_manifest m;
    tarn_code code = fill_manifest(w, arena, &m, err);
    if (code == TARN_OK) {
        code = flush_rows(w, err);
    }
    if (code == TARN_OK) {
        code = avro_writer_finish(w->avro, &m.length, NULL, err);
    } else {
        avro_writer_abort(w->avro);
    }
    if (code == TARN_OK) {
        *out = m;
    }
    free_writer(w);
    return code;
}

void manifest_writer_abort(manifest_writer *w) {
    if (w != NULL) {
        avro_writer_abort(w->avro);
        free_writer(w);
    }
}
