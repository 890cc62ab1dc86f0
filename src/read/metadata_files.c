/* read/metadata_files.c - files, entries and partitions: the metadata tables that come from
 * manifests. */
#include "read/metadata_table.h"

/* ---- parts of a file's row ---- */

tarn_code put_partition(const metadata_table *t, tarn_builder *b, int32_t spec_id,
                        const tarn_value *values, int32_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_spec *spec = metadata_spec_by_id(t->metadata, spec_id);
    for (int32_t i = 0; i < t->partition_type->n_fields; i++) {
        const tarn_field *field = &t->partition_type->fields[i];
        const tarn_value *value = NULL;
        for (int32_t j = 0; spec != NULL && j < spec->n_fields && j < n; j++) {
            value = spec->fields[j].field_id == field->id ? &values[j] : value;
        }
        if (value == NULL || value->is_null || value->type == NULL ||
            value->type->kind != field->type->kind) {
            TRY(builder_null(&b->children[i], err));
        } else {
            TRY(builder_value(&b->children[i], value, err));
        }
    }
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code put_count_map(tarn_builder *b, const metric_count *items, int32_t n,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    if (n == 0) {
        return builder_null(b, err);
    }
    for (int32_t i = 0; i < n; i++) {
        TRY(put_i32(&b->children[0], items[i].id, false, err));
        TRY(put_i64(&b->children[1], items[i].count, false, err));
    }
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code put_bound_map(tarn_builder *b, const metric_bound *items, int32_t n,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    if (n == 0) {
        return builder_null(b, err);
    }
    for (int32_t i = 0; i < n; i++) {
        TRY(put_i32(&b->children[0], items[i].id, false, err));
        TRY(builder_bytes(&b->children[1], items[i].bytes, err));
    }
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code put_lists(tarn_builder *offsets, tarn_builder *ids, const tarn_file *f,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < f->n_split_offsets; i++) {
        TRY(put_i64(&offsets->children[0], f->split_offsets[i], false, err));
    }
    TRY(f->n_split_offsets > 0 ? builder_close(offsets, err) : builder_null(offsets, err));
    for (int32_t i = 0; i < f->n_equality_ids; i++) {
        TRY(put_i32(&ids->children[0], f->equality_ids[i], false, err));
    }
    TRY(f->n_equality_ids > 0 ? builder_close(ids, err) : builder_null(ids, err));
done:
    return code;
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
    return "UNKNOWN";
}

/* The columns of META_FILES but readable_metrics, from builder *c on. */
static tarn_code put_file(const metadata_table *t, tarn_builder *c, const tarn_file *f,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(put_i32(c++, (int64_t)f->content, false, err));
    TRY(put_str(c++, f->path, err));
    TRY(put_str(c++, str_of(format_name(f->format)), err));
    TRY(put_i32(c++, f->spec_id, false, err));
    if (t->partition_type->n_fields > 0) {
        TRY(put_partition(t, c++, f->spec_id, f->partition, f->n_partition, err));
    }
    TRY(put_i64(c++, f->record_count, false, err));
    TRY(put_i64(c++, f->size_bytes, false, err));
    TRY(put_count_map(c++, f->column_sizes, f->n_column_sizes, err));
    TRY(put_count_map(c++, f->value_counts, f->n_value_counts, err));
    TRY(put_count_map(c++, f->null_counts, f->n_null_counts, err));
    TRY(put_count_map(c++, f->nan_counts, f->n_nan_counts, err));
    TRY(put_bound_map(c++, f->lower, f->n_lower, err));
    TRY(put_bound_map(c++, f->upper, f->n_upper, err));
    TRY(put_str(c++, f->key_metadata, err));
    TRY(put_lists(c, c + 1, f, err));
    c += 2;
    TRY(put_i32(c++, f->sort_order_id, f->sort_order_id < 0, err));
    TRY(put_i64(c++, f->first_row_id, f->first_row_id < 0, err));
    TRY(put_str(c++, f->referenced_data_file, err));
    TRY(put_i64(c++, f->content_offset, f->content_offset < 0, err));
    TRY(put_i64(c++, f->content_size, f->content_size < 0, err));
done:
    return code;
}

static tarn_code put_count(tarn_builder *b, const metric_count *counts, int32_t n, int32_t id,
                           tarn_error *err) {
    int64_t count = 0;
    bool known = metric_find_count(counts, n, id, &count);
    return put_i64(b, count, !known, err);
}

static tarn_code put_bound(tarn_builder *b, const metric_bound *bounds, int32_t n, int32_t id,
                           tarn_error *err) {
    tarn_str bytes;
    tarn_value value;
    if (!metric_find_bound(bounds, n, id, &bytes) || b->type->kind == TARN_UNKNOWN ||
        b->type->kind == TARN_VARIANT) {
        return builder_null(b, err);
    }
    /* what does not read as a value of the column (cut text, other writers' oddities) is shown as
     * absent here; the raw maps have it */
    tarn_code code = value_from_binary(b->type, bytes, &value, NULL);
    if (code != TARN_OK || (b->type->kind == TARN_STRING && !str_utf8_valid(bytes))) {
        return builder_null(b, err);
    }
    return builder_value(b, &value, err);
}

static tarn_code put_metrics(const metadata_table *t, tarn_builder *b, const tarn_file *f,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < t->metrics_type->n_fields; i++) {
        int32_t id = t->metrics_type->fields[i].id;
        tarn_builder *c = b->children[i].children;
        TRY(put_count(&c[0], f->column_sizes, f->n_column_sizes, id, err));
        TRY(put_count(&c[1], f->value_counts, f->n_value_counts, id, err));
        TRY(put_count(&c[2], f->null_counts, f->n_null_counts, id, err));
        TRY(put_count(&c[3], f->nan_counts, f->n_nan_counts, id, err));
        TRY(put_bound(&c[4], f->lower, f->n_lower, id, err));
        TRY(put_bound(&c[5], f->upper, f->n_upper, id, err));
        TRY(builder_close(&b->children[i], err));
    }
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code put_entry(const metadata_table *t, tarn_builder *b, const tarn_entry *e,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder *c = b->children;
    bool has_metrics = t->metrics_type->n_fields > 0;
    if (t->kind == META_FILES) {
        TRY(put_file(t, c, &e->file, err));
    } else {
        TRY(put_i32(&c[0], (int64_t)e->status, false, err));
        TRY(put_i64(&c[1], e->snapshot_id, e->snapshot_id < 0, err));
        TRY(put_i64(&c[2], e->sequence_number, e->sequence_number < 0, err));
        TRY(put_i64(&c[3], e->file_sequence_number, e->file_sequence_number < 0, err));
        TRY(put_file(t, c[4].children, &e->file, err));
        TRY(builder_close(&c[4], err));
    }
    if (has_metrics) {
        TRY(put_metrics(t, &c[b->n_children - 1], &e->file, err));
    }
    TRY(builder_close(b, err));
done:
    return code;
}

tarn_code metadata_read_entries(metadata_table *t, tarn_arena *arena, const tarn_manifest *manifest,
                                bool live_only, unsigned want, manifest_entries *out,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    manifest_read_options options;
    memset(&options, 0, sizeof options);
    options.want = want;
    options.live_only = live_only;
    TRY(store_open(t->store, manifest->path, manifest->length, &source, err));
    TRY(manifest_read(arena, source, t->metadata, manifest, &options, out, err));
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

tarn_code metadata_rows_files(metadata_table *t, const tarn_manifest *manifest, tarn_builder *b,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    manifest_entries entries;
    arena_init(&arena, t->env);
    TRY(metadata_read_entries(t, &arena, manifest, t->kind == META_FILES, MANIFEST_WANT_ALL,
                              &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        TRY(put_entry(t, b, &entries.items[i], err));
    }
done:
    arena_release(&arena);
    return code;
}

/* ---- partitions ---- */

typedef struct partition_row {
    const tarn_value *values;
    int32_t n, spec_id;
    int64_t records, files, bytes, position_records, position_files, equality_records,
        equality_files;
    const tarn_snapshot *updated;
} partition_row;

typedef struct partition_work {
    metadata_table *t;
    tarn_arena arena;
    tarn_map rows;
    tarn_buf key;
} partition_work;

/* Each spec has partitions of its own, as Iceberg 1.10 shows them: tuples of two specs that agree
 * as rows of the union struct, such as those of nulls, are two. */
static tarn_code partition_key(partition_work *w, const tarn_file *f, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_spec *spec = metadata_spec_by_id(w->t->metadata, f->spec_id);
    buf_reset(&w->key);
    TRY(buf_printf(&w->key, err, "%d:", f->spec_id));
    for (int32_t i = 0; spec != NULL && i < spec->n_fields && i < f->n_partition; i++) {
        tarn_str bytes;
        if (f->partition[i].is_null) {
            continue;
        }
        TRY(value_to_binary(&w->arena, &f->partition[i], &bytes, err));
        TRY(buf_printf(&w->key, err, "%d:%zu:", spec->fields[i].field_id, bytes.len));
        TRY(buf_append_str(&w->key, bytes, err));
    }
done:
    return code;
}

static tarn_code find_row(partition_work *w, const tarn_file *f, partition_row **out,
                          tarn_error *err) {
    tarn_code code = partition_key(w, f, err);
    if (code != TARN_OK) {
        return code;
    }
    map_entry *entry = map_find(&w->rows, buf_str(&w->key));
    if (entry == NULL) {
        tarn_str key = arena_str(&w->arena, buf_str(&w->key));
        partition_row *row = ARENA_NEW(&w->arena, partition_row);
        tarn_file *copy = ARENA_NEW(&w->arena, tarn_file);
        entry =
            key.data != NULL && row != NULL && copy != NULL ? map_put(&w->rows, key, NULL) : NULL;
        if (entry == NULL) {
            return err_nomem(err);
        }
        code = file_copy(&w->arena, f, copy, err);
        row->values = copy->partition;
        row->n = copy->n_partition;
        row->spec_id = copy->spec_id;
        entry->value.ptr = row;
    }
    *out = entry->value.ptr;
    return code;
}

static tarn_code count_entry(partition_work *w, const tarn_entry *e, tarn_error *err) {
    partition_row *row = NULL;
    tarn_code code = find_row(w, &e->file, &row, err);
    if (code != TARN_OK) {
        return code;
    }
    switch (e->file.content) {
    case TARN_CONTENT_DATA:
        row->records += e->file.record_count;
        row->files++;
        row->bytes += e->file.size_bytes;
        row->spec_id = e->file.spec_id;
        break;
    case TARN_CONTENT_POSITION_DELETES:
        row->position_records += e->file.record_count;
        row->position_files++;
        break;
    case TARN_CONTENT_EQUALITY_DELETES:
        row->equality_records += e->file.record_count;
        row->equality_files++;
        break;
    }
    const tarn_snapshot *s = metadata_snapshot_by_id(w->t->metadata, e->snapshot_id);
    if (s != NULL && (row->updated == NULL || s->timestamp_ms > row->updated->timestamp_ms)) {
        row->updated = s;
    }
    return TARN_OK;
}

static tarn_code put_row(const metadata_table *t, tarn_builder *b, const partition_row *r,
                         tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder *c = b->children;
    if (t->partition_type->n_fields > 0) {
        TRY(put_partition(t, c++, r->spec_id, r->values, r->n, err));
        TRY(put_i32(c++, r->spec_id, false, err));
    }
    TRY(put_i64(c++, r->records, false, err));
    TRY(put_i32(c++, r->files, false, err));
    TRY(put_i64(c++, r->bytes, false, err));
    TRY(put_i64(c++, r->position_records, false, err));
    TRY(put_i32(c++, r->position_files, false, err));
    TRY(put_i64(c++, r->equality_records, false, err));
    TRY(put_i32(c++, r->equality_files, false, err));
    TRY(put_i64(c++, r->updated != NULL ? r->updated->timestamp_ms * 1000 : 0, r->updated == NULL,
                err));
    TRY(put_i64(c++, r->updated != NULL ? r->updated->snapshot_id : 0, r->updated == NULL, err));
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code count_manifest(partition_work *w, const tarn_manifest *manifest, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    manifest_entries entries;
    arena_init(&arena, w->t->env);
    TRY(metadata_read_entries(w->t, &arena, manifest, true, 0, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        TRY(count_entry(w, &entries.items[i], err));
    }
done:
    arena_release(&arena);
    return code;
}

tarn_code metadata_rows_partitions(metadata_table *t, tarn_builder *b, tarn_error *err) {
    tarn_code code = TARN_OK;
    partition_work w;
    w.t = t;
    arena_init(&w.arena, t->env);
    map_init(&w.rows, &w.arena);
    buf_init(&w.key, t->env, 0);
    for (int32_t i = 0; i < t->n_manifests; i++) {
        TRY(count_manifest(&w, &t->manifests[i], err));
    }
    for (size_t i = 0; i < w.rows.count; i++) {
        TRY(put_row(t, b, w.rows.entries[i].value.ptr, err));
    }
done:
    buf_release(&w.key);
    arena_release(&w.arena);
    return code;
}
