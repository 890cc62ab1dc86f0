/* read/metadata_types.c - the columns of each metadata table. */
#include "read/metadata_table.h"

#include <stdlib.h>

static const char *const TEXTS[] = {
    [META_SNAPSHOTS] = "struct<committed_at: timestamptz not null, snapshot_id: long not null, "
                       "parent_id: long, operation: string, "
                       "manifest_list: string, summary: map<string, string>>",
    [META_HISTORY] = "struct<made_current_at: timestamptz not null, snapshot_id: long not null, "
                     "parent_id: long, "
                     "is_current_ancestor: boolean not null>",
    [META_REFS] = "struct<name: string not null, type: string not null, snapshot_id: long not "
                  "null, max_reference_age_in_ms: long, "
                  "min_snapshots_to_keep: int, max_snapshot_age_in_ms: long>",
    [META_LOG] = "struct<timestamp: timestamptz not null, file: string not null, "
                 "latest_snapshot_id: long, latest_schema_id: int, "
                 "latest_sequence_number: long>",
    [META_MANIFESTS] =
        "struct<content: int not null, path: string not null, length: long not null, "
        "partition_spec_id: int not null, "
        "added_snapshot_id: long, added_data_files_count: int, existing_data_files_count: int, "
        "deleted_data_files_count: int, added_delete_files_count: int, "
        "existing_delete_files_count: int, "
        "deleted_delete_files_count: int, partition_summaries: list<struct<contains_null: boolean, "
        "contains_nan: boolean, lower_bound: string, upper_bound: string>>, "
        "reference_snapshot_id: long not null>",
    [META_FILES] =
        "struct<content: int, file_path: string not null, file_format: string not null, spec_id: "
        "int, partition: int, "
        "record_count: long not null, file_size_in_bytes: long not null, column_sizes: map<int, "
        "long>, "
        "value_counts: map<int, long>, null_value_counts: map<int, long>, nan_value_counts: "
        "map<int, long>, "
        "lower_bounds: map<int, binary>, upper_bounds: map<int, binary>, key_metadata: binary, "
        "split_offsets: list<long>, equality_ids: list<int>, sort_order_id: int, first_row_id: "
        "long, "
        "referenced_data_file: string, content_offset: long, content_size_in_bytes: long, "
        "readable_metrics: int>",
    [META_ENTRIES] = "struct<status: int not null, snapshot_id: long, sequence_number: long, "
                     "file_sequence_number: long, "
                     "data_file: int not null, readable_metrics: int>",
    [META_PARTITIONS] =
        "struct<partition: int, spec_id: int, record_count: long not null, file_count: int not "
        "null, "
        "total_data_file_size_in_bytes: long not null, position_delete_record_count: long not "
        "null, "
        "position_delete_file_count: int not null, equality_delete_record_count: long not null, "
        "equality_delete_file_count: int not null, last_updated_at: timestamptz, "
        "last_updated_snapshot_id: long>",
    [META_POSITION_DELETES] =
        "struct<file_path: string not null, pos: long not null, row: int, partition: int, spec_id: "
        "int not null, delete_file_path: string not null, content_offset: long, "
        "content_size_in_bytes: long>",
};

static bool has_field(const tarn_field *fields, int32_t n, int32_t id) {
    for (int32_t i = 0; i < n; i++) {
        if (fields[i].id == id) {
            return true;
        }
    }
    return false;
}

tarn_code metadata_partition_type(metadata_table *t, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_metadata *m = t->metadata;
    int32_t cap = 1;
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_specs; i++) {
        cap += m->specs[i]->n_fields;
    }
    tarn_field *fields = ARENA_ARRAY(&t->arena, tarn_field, (size_t)cap);
    if (fields == NULL) {
        return err_nomem(err);
    }
    /* newest specs first, so that a renamed field goes by its present name */
    for (int32_t i = m->n_specs; i-- > 0;) {
        const tarn_type *type;
        TRY(spec_partition_type(&t->arena, m->specs[i], m, &type, err));
        for (int32_t j = 0; j < type->n_fields; j++) {
            bool is_void = m->specs[i]->fields[j].transform.kind == TRANSFORM_VOID;
            if (!has_field(fields, n, type->fields[j].id) && (!is_void || i == 0)) {
                fields[n] = type->fields[j];
                fields[n++].required = false;
            }
        }
    }
    for (int32_t i = 1; i < n; i++) { /* by id */
        for (int32_t j = i; j > 0 && fields[j - 1].id > fields[j].id; j--) {
            tarn_field swap = fields[j];
            fields[j] = fields[j - 1];
            fields[j - 1] = swap;
        }
    }
    t->partition_type = type_struct(&t->arena, fields, n);
    code = t->partition_type != NULL ? TARN_OK : err_nomem(err);
done:
    return code;
}

static tarn_field optional_field(int32_t id, tarn_str name, const tarn_type *type) {
    tarn_field f;
    memset(&f, 0, sizeof f);
    f.id = id;
    f.name = name;
    f.type = type;
    return f;
}

/* Metrics of one primitive column, bounds in its own type. */
static const tarn_type *column_metrics(tarn_arena *arena, const tarn_type *column) {
    static const char *const counts[] = {"column_size", "value_count", "null_value_count",
                                         "nan_value_count"};
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, 6);
    if (fields == NULL) {
        return NULL;
    }
    for (int i = 0; i < 4; i++) {
        fields[i] = optional_field(TARN_NO_ID, str_of(counts[i]), type_primitive(TARN_LONG));
    }
    fields[4] = optional_field(TARN_NO_ID, STR("lower_bound"), column);
    fields[5] = optional_field(TARN_NO_ID, STR("upper_bound"), column);
    return type_struct(arena, fields, 6);
}

typedef struct metrics_work {
    tarn_arena *arena;
    const tarn_type *schema;
    tarn_field *fields;
    int32_t n;
} metrics_work;

static tarn_code add_metrics(metrics_work *w, const tarn_type *type, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf name;
    buf_init(&name, w->arena->env, 0);
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *f = &type->fields[i];
        if (type_is_nested(f->type)) {
            TRY(add_metrics(w, f->type, err));
        } else {
            buf_reset(&name);
            TRY(type_full_name(w->schema, f->id, &name, err));
            const tarn_type *metrics = column_metrics(w->arena, f->type);
            tarn_str kept = arena_str(w->arena, buf_str(&name));
            if (metrics == NULL || kept.data == NULL) {
                code = err_nomem(err);
                goto done;
            }
            w->fields[w->n++] = optional_field(f->id, kept, metrics);
        }
    }
done:
    buf_release(&name);
    return code;
}

static int by_name(const void *a, const void *b) {
    return str_cmp(((const tarn_field *)a)->name, ((const tarn_field *)b)->name);
}

static tarn_code make_metrics(metadata_table *t, tarn_error *err) {
    metrics_work w;
    w.arena = &t->arena;
    w.schema = metadata_schema(t->metadata)->root;
    w.n = 0;
    w.fields = ARENA_ARRAY(&t->arena, tarn_field, (size_t)type_node_count(w.schema) + 1);
    if (w.fields == NULL) {
        return err_nomem(err);
    }
    tarn_code code = add_metrics(&w, w.schema, err);
    if (code == TARN_OK) {
        qsort(w.fields, (size_t)w.n, sizeof *w.fields, by_name); /* the order that Java gives */
        t->metrics_type = type_struct(&t->arena, w.fields, w.n);
        code = t->metrics_type != NULL ? TARN_OK : err_nomem(err);
    }
    return code;
}

/* The type with its placeholders (partition, data_file, readable_metrics) put in; an empty
 * partition struct and empty metrics are left out, and what only some forms have. */
static tarn_code fill_in(metadata_table *t, metadata_kind kind, bool with_metrics,
                         const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *raw;
    int32_t n = 0;
    TRY(type_from_text(&t->arena, str_of(TEXTS[kind]), &raw, err));
    tarn_field *fields = ARENA_ARRAY(&t->arena, tarn_field, (size_t)raw->n_fields + 1);
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < raw->n_fields; i++) {
        tarn_field f = raw->fields[i];
        bool keep = true;
        if (str_is(f.name, "partition")) {
            f.type = t->partition_type;
            keep = t->partition_type->n_fields > 0;
        } else if (kind == META_PARTITIONS && str_is(f.name, "spec_id")) {
            keep = t->partition_type->n_fields > 0;
        } else if (str_is(f.name, "readable_metrics")) {
            f.type = t->metrics_type;
            keep = with_metrics && t->metrics_type->n_fields > 0;
        } else if (str_is(f.name, "reference_snapshot_id")) {
            keep = t->all;
        } else if (str_is(f.name, "row")) {
            f.type = metadata_schema(t->metadata)->root;
        } else if (kind == META_POSITION_DELETES && str_starts_with(f.name, STR("content_"))) {
            keep = t->metadata->format_version > 2;
        } else if (str_is(f.name, "data_file")) {
            TRY(fill_in(t, META_FILES, false, &f.type, err));
        }
        if (keep) {
            fields[n++] = f;
        }
    }
    *out = type_struct(&t->arena, fields, n);
    code = *out != NULL ? TARN_OK : err_nomem(err);
done:
    return code;
}

tarn_code metadata_table_root(metadata_table *t, const tarn_type **out, tarn_error *err) {
    int32_t next_id = 1;
    const tarn_type *type;
    tarn_code code = make_metrics(t, err);
    if (code == TARN_OK) {
        code = fill_in(t, t->kind, true, &type, err);
    }
    if (code == TARN_OK) {
        *out = type_assign_ids(&t->arena, type, &next_id);
        code = *out != NULL ? TARN_OK : err_nomem(err);
    }
    return code;
}
