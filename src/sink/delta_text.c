/* sink/delta_text.c - deltas as JSON: what a checkpoint wrote, as a committer that never saw the
 * writers needs it. Numbers of 64 bits stay numbers (base/json keeps their text); bytes are hex;
 * partition values are in Iceberg's single-value binary form, so that no float or text is bent. */
#include "sink/state.h"

static const char HEX[] = "0123456789abcdef";

/* A member with bytes as hex; data NULL: null. */
static void put_hex(json_writer *w, tarn_str bytes) {
    char small[128];
    if (bytes.data == NULL) {
        json_put_null(w);
        return;
    }
    char *text = small;
    if (bytes.len * 2 > sizeof small) {
        text = env_alloc(w->out->env, bytes.len * 2);
        if (text == NULL) {
            w->code = w->code != TARN_OK ? w->code : err_nomem(w->err);
            return;
        }
    }
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t b = (uint8_t)bytes.data[i];
        text[2 * i] = HEX[b >> 4];
        text[2 * i + 1] = HEX[b & 15];
    }
    json_put_string(w, str_make(text, bytes.len * 2));
    if (text != small) {
        env_free(w->out->env, text);
    }
}

static void put_counts(json_writer *w, const char *name, const metric_count *counts, int32_t n) {
    json_put_name(w, str_of(name));
    json_put_array(w);
    for (int32_t i = 0; i < n; i++) {
        json_put_i64(w, counts[i].id);
        json_put_i64(w, counts[i].count);
    }
    json_end_array(w);
}

static void put_bounds(json_writer *w, const char *name, const metric_bound *bounds, int32_t n) {
    json_put_name(w, str_of(name));
    json_put_array(w);
    for (int32_t i = 0; i < n; i++) {
        json_put_i64(w, bounds[i].id);
        put_hex(w, bounds[i].bytes);
    }
    json_end_array(w);
}

static tarn_code put_partition(json_writer *w, const tarn_file *f, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    arena_init(&arena, w->out->env);
    json_put_name(w, STR("partition"));
    json_put_array(w);
    for (int32_t i = 0; i < f->n_partition; i++) {
        tarn_str bytes = STR_NULL;
        if (!f->partition[i].is_null) {
            TRY(value_to_binary(&arena, &f->partition[i], &bytes, err));
            bytes.data = bytes.data != NULL ? bytes.data : ""; /* empty, not null */
        }
        put_hex(w, bytes);
    }
    json_end_array(w);
done:
    arena_release(&arena);
    return code;
}

static tarn_code put_file(json_writer *w, const tarn_file *f, tarn_error *err) {
    json_put_object(w);
    json_member_str(w, "path", f->path);
    json_member_i64(w, "content", (int64_t)f->content);
    json_member_i64(w, "format", (int64_t)f->format);
    json_member_i64(w, "spec-id", f->spec_id);
    tarn_code code = put_partition(w, f, err);
    json_member_i64(w, "records", f->record_count);
    json_member_i64(w, "bytes", f->size_bytes);
    put_counts(w, "sizes", f->column_sizes, f->n_column_sizes);
    put_counts(w, "values", f->value_counts, f->n_value_counts);
    put_counts(w, "nulls", f->null_counts, f->n_null_counts);
    put_counts(w, "nans", f->nan_counts, f->n_nan_counts);
    put_bounds(w, "lower", f->lower, f->n_lower);
    put_bounds(w, "upper", f->upper, f->n_upper);
    json_put_name(w, STR("key-metadata"));
    put_hex(w, f->key_metadata);
    json_put_name(w, STR("split-offsets"));
    json_put_array(w);
    for (int32_t i = 0; i < f->n_split_offsets; i++) {
        json_put_i64(w, f->split_offsets[i]);
    }
    json_end_array(w);
    json_put_name(w, STR("equality-ids"));
    json_put_array(w);
    for (int32_t i = 0; i < f->n_equality_ids; i++) {
        json_put_i64(w, f->equality_ids[i]);
    }
    json_end_array(w);
    json_member_i64(w, "sort-order-id", f->sort_order_id);
    json_member_i64(w, "first-row-id", f->first_row_id);
    if (f->referenced_data_file.data != NULL) {
        json_member_str(w, "referenced-data-file", f->referenced_data_file);
    }
    json_member_i64(w, "content-offset", f->content_offset);
    json_member_i64(w, "content-size", f->content_size);
    json_end_object(w);
    return code;
}

static tarn_code put_files(json_writer *w, const char *name, const tarn_file *files, int32_t n,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    json_put_name(w, str_of(name));
    json_put_array(w);
    for (int32_t i = 0; i < n && code == TARN_OK; i++) {
        code = put_file(w, &files[i], err);
    }
    json_end_array(w);
    return code;
}

static tarn_code put_entries(json_writer *w, const write_result *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    json_put_name(w, STR("removed-deletes"));
    json_put_array(w);
    for (int32_t i = 0; i < r->n_removed_deletes && code == TARN_OK; i++) {
        const tarn_entry *e = &r->removed_deletes[i];
        json_put_object(w);
        json_member_i64(w, "snapshot-id", e->snapshot_id);
        json_member_i64(w, "sequence-number", e->sequence_number);
        json_member_i64(w, "file-sequence-number", e->file_sequence_number);
        json_put_name(w, STR("file"));
        code = put_file(w, &e->file, err);
        json_end_object(w);
    }
    json_end_array(w);
    return code;
}

tarn_code delta_write(const sink_identity *who, const sink_delta *delta, tarn_buf *out,
                      tarn_error *err) {
    tarn_code code = TARN_OK;
    json_writer w;
    const write_result *r = &delta->written;
    json_begin(&w, out, false, err);
    json_put_object(&w);
    json_member_str(&w, "table-uuid", who->table_uuid);
    json_member_str(&w, "branch", who->branch);
    json_member_str(&w, "sink-id", who->sink_id);
    json_member_i64(&w, "checkpoint", delta->checkpoint);
    json_member_i64(&w, "epoch", delta->epoch);
    json_member_str(&w, "commit-id", str_of(delta->commit_id));
    json_member_i64(&w, "base-snapshot-id", delta->base_snapshot_id);
    if (delta->offsets.data != NULL) {
        json_member_str(&w, "offsets", delta->offsets);
    }
    json_member_i64(&w, "rows", r->rows);
    json_member_i64(&w, "deleted-rows", r->deleted_rows);
    TRY(put_files(&w, "files", r->files, r->n_files, err));
    TRY(put_files(&w, "deletes", r->deletes, r->n_deletes, err));
    json_put_name(&w, STR("referenced"));
    json_put_array(&w);
    for (int32_t i = 0; i < r->n_referenced; i++) {
        json_put_string(&w, r->referenced[i]);
    }
    json_end_array(&w);
    TRY(put_entries(&w, r, err));
    json_end_object(&w);
    TRY(json_end(&w));
done:
    return code;
}

/* ---- reading ---- */

typedef struct delta_reader {
    tarn_arena *arena;
    const tarn_metadata *metadata;
    const char *what;
} delta_reader;

static tarn_code bad_member(const delta_reader *r, const char *name, tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "checkpoint file %s had no usable \"%s\"", r->what, name);
}

static tarn_code get_i64(const delta_reader *r, const json_value *json, const char *name,
                         int64_t *out, tarn_error *err) {
    return json_i64(json_get(json, name), out) ? TARN_OK : bad_member(r, name, err);
}

static tarn_code get_i32(const delta_reader *r, const json_value *json, const char *name,
                         int32_t *out, tarn_error *err) {
    return json_i32(json_get(json, name), out) ? TARN_OK : bad_member(r, name, err);
}

static int hex_digit(char c) {
    const char *at = c != '\0' ? strchr(HEX, c) : NULL;
    return at != NULL ? (int)(at - HEX) : -1;
}

/* null: data NULL. */
static tarn_code read_hex(const delta_reader *r, const json_value *json, const char *name,
                          tarn_str *out, tarn_error *err) {
    tarn_str text;
    *out = STR_NULL;
    if (json == NULL || json->kind == JSON_NULL) {
        return TARN_OK;
    }
    if (!json_str(json, &text) || text.len % 2 != 0) {
        return bad_member(r, name, err);
    }
    char *bytes = arena_alloc(r->arena, text.len / 2 + 1);
    if (bytes == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < text.len / 2; i++) {
        int high = hex_digit(text.data[2 * i]);
        int low = hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return bad_member(r, name, err);
        }
        bytes[i] = (char)(high * 16 + low);
    }
    *out = str_make(bytes, text.len / 2);
    return TARN_OK;
}

static tarn_code get_array(const delta_reader *r, const json_value *json, const char *name,
                           const json_value **out, tarn_error *err) {
    *out = json_get(json, name);
    return json_is(*out, JSON_ARRAY) && (*out)->count <= INT32_MAX / 2 ? TARN_OK
                                                                       : bad_member(r, name, err);
}

static tarn_code get_counts(const delta_reader *r, const json_value *json, const char *name,
                            const metric_count **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    TRY(get_array(r, json, name, &list, err));
    metric_count *counts = ARENA_ARRAY(r->arena, metric_count, list->count / 2 + 1);
    if (counts == NULL) {
        return err_nomem(err);
    }
    const json_value *v = list->first;
    *n = (int32_t)(list->count / 2);
    for (int32_t i = 0; i < *n; i++) {
        if (!json_i32(v, &counts[i].id) || !json_i64(v->next, &counts[i].count)) {
            return bad_member(r, name, err);
        }
        v = v->next->next;
    }
    *out = counts;
done:
    return code;
}

static tarn_code get_bounds(const delta_reader *r, const json_value *json, const char *name,
                            const metric_bound **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    TRY(get_array(r, json, name, &list, err));
    metric_bound *bounds = ARENA_ARRAY(r->arena, metric_bound, list->count / 2 + 1);
    if (bounds == NULL) {
        return err_nomem(err);
    }
    const json_value *v = list->first;
    *n = (int32_t)(list->count / 2);
    for (int32_t i = 0; i < *n; i++) {
        if (!json_i32(v, &bounds[i].id)) {
            return bad_member(r, name, err);
        }
        TRY(read_hex(r, v->next, name, &bounds[i].bytes, err));
        v = v->next->next;
    }
    *out = bounds;
done:
    return code;
}

static tarn_code get_partition(const delta_reader *r, const json_value *json, tarn_file *f,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    const tarn_type *type;
    const tarn_spec *spec = metadata_spec_by_id(r->metadata, f->spec_id);
    TRY(get_array(r, json, "partition", &list, err));
    if (spec == NULL) {
        return err_set(err, TARN_CONFLICT,
                       "checkpoint file %s was written for partition spec %d, which the table has "
                       "no more",
                       r->what, f->spec_id);
    }
    TRY(spec_partition_type(r->arena, spec, r->metadata, &type, err));
    if ((size_t)type->n_fields != list->count) {
        return bad_member(r, "partition", err);
    }
    tarn_value *values = ARENA_ARRAY(r->arena, tarn_value, list->count + 1);
    if (values == NULL) {
        return err_nomem(err);
    }
    const json_value *v = list->first;
    for (int32_t i = 0; i < type->n_fields; i++, v = v->next) {
        tarn_str bytes;
        TRY(read_hex(r, v, "partition", &bytes, err));
        if (bytes.data == NULL) {
            values[i] = value_null(type->fields[i].type);
        } else {
            TRY(value_from_binary(type->fields[i].type, bytes, &values[i], err));
        }
    }
    f->partition = values;
    f->n_partition = type->n_fields;
done:
    return code;
}

static tarn_code get_ids(const delta_reader *r, const json_value *json, tarn_file *f,
                         tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    TRY(get_array(r, json, "split-offsets", &list, err));
    int64_t *offsets = ARENA_ARRAY(r->arena, int64_t, list->count + 1);
    const json_value *v = list->first;
    if (offsets == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < list->count; i++, v = v->next) {
        if (!json_i64(v, &offsets[i])) {
            return bad_member(r, "split-offsets", err);
        }
    }
    f->split_offsets = offsets;
    f->n_split_offsets = (int32_t)list->count;
    TRY(get_array(r, json, "equality-ids", &list, err));
    int32_t *ids = ARENA_ARRAY(r->arena, int32_t, list->count + 1);
    if (ids == NULL) {
        return err_nomem(err);
    }
    v = list->first;
    for (size_t i = 0; i < list->count; i++, v = v->next) {
        if (!json_i32(v, &ids[i])) {
            return bad_member(r, "equality-ids", err);
        }
    }
    f->equality_ids = ids;
    f->n_equality_ids = (int32_t)list->count;
done:
    return code;
}

static tarn_code get_file(const delta_reader *r, const json_value *json, tarn_file *f,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t content;
    int32_t format;
    memset(f, 0, sizeof *f);
    if (!json_str(json_get(json, "path"), &f->path) || f->path.len == 0) {
        return bad_member(r, "path", err);
    }
    TRY(get_i32(r, json, "content", &content, err));
    TRY(get_i32(r, json, "format", &format, err));
    if (content < 0 || content > TARN_CONTENT_EQUALITY_DELETES || format < 0 ||
        format > TARN_FORMAT_OTHER) {
        return bad_member(r, "content", err);
    }
    f->content = (tarn_content)content;
    f->format = (tarn_file_format)format;
    TRY(get_i32(r, json, "spec-id", &f->spec_id, err));
    TRY(get_partition(r, json, f, err));
    TRY(get_i64(r, json, "records", &f->record_count, err));
    TRY(get_i64(r, json, "bytes", &f->size_bytes, err));
    TRY(get_counts(r, json, "sizes", &f->column_sizes, &f->n_column_sizes, err));
    TRY(get_counts(r, json, "values", &f->value_counts, &f->n_value_counts, err));
    TRY(get_counts(r, json, "nulls", &f->null_counts, &f->n_null_counts, err));
    TRY(get_counts(r, json, "nans", &f->nan_counts, &f->n_nan_counts, err));
    TRY(get_bounds(r, json, "lower", &f->lower, &f->n_lower, err));
    TRY(get_bounds(r, json, "upper", &f->upper, &f->n_upper, err));
    TRY(read_hex(r, json_get(json, "key-metadata"), "key-metadata", &f->key_metadata, err));
    TRY(get_ids(r, json, f, err));
    TRY(get_i32(r, json, "sort-order-id", &f->sort_order_id, err));
    TRY(get_i64(r, json, "first-row-id", &f->first_row_id, err));
    (void)json_str(json_get(json, "referenced-data-file"), &f->referenced_data_file);
    TRY(get_i64(r, json, "content-offset", &f->content_offset, err));
    TRY(get_i64(r, json, "content-size", &f->content_size, err));
done:
    return code;
}

static tarn_code get_files(const delta_reader *r, const json_value *json, const char *name,
                           tarn_file **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    TRY(get_array(r, json, name, &list, err));
    tarn_file *files = ARENA_ARRAY(r->arena, tarn_file, list->count + 1);
    const json_value *v = list->first;
    if (files == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < list->count; i++, v = v->next) {
        TRY(get_file(r, v, &files[i], err));
    }
    *out = files;
    *n = (int32_t)list->count;
done:
    return code;
}

static tarn_code get_referenced(const delta_reader *r, const json_value *json, write_result *out,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    TRY(get_array(r, json, "referenced", &list, err));
    tarn_str *paths = ARENA_ARRAY(r->arena, tarn_str, list->count + 1);
    const json_value *v = list->first;
    if (paths == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < list->count; i++, v = v->next) {
        if (!json_str(v, &paths[i])) {
            return bad_member(r, "referenced", err);
        }
    }
    out->referenced = paths;
    out->n_referenced = (int32_t)list->count;
done:
    return code;
}

static tarn_code get_entries(const delta_reader *r, const json_value *json, write_result *out,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    TRY(get_array(r, json, "removed-deletes", &list, err));
    tarn_entry *entries = ARENA_ARRAY(r->arena, tarn_entry, list->count + 1);
    const json_value *v = list->first;
    if (entries == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < list->count; i++, v = v->next) {
        entries[i].status = TARN_ENTRY_EXISTING;
        TRY(get_i64(r, v, "snapshot-id", &entries[i].snapshot_id, err));
        TRY(get_i64(r, v, "sequence-number", &entries[i].sequence_number, err));
        TRY(get_i64(r, v, "file-sequence-number", &entries[i].file_sequence_number, err));
        TRY(get_file(r, json_get(v, "file"), &entries[i].file, err));
    }
    out->removed_deletes = entries;
    out->n_removed_deletes = (int32_t)list->count;
done:
    return code;
}

static tarn_code check_owner(const delta_reader *r, const sink_identity *who,
                             const json_value *json, tarn_error *err) {
    tarn_str uuid = STR_NULL;
    tarn_str branch = STR_NULL;
    tarn_str sink = STR_NULL;
    (void)json_str(json_get(json, "table-uuid"), &uuid);
    (void)json_str(json_get(json, "branch"), &branch);
    (void)json_str(json_get(json, "sink-id"), &sink);
    if (!str_eq(uuid, who->table_uuid) || !str_eq(branch, who->branch)) {
        return err_set(err, TARN_INVALID,
                       "checkpoint file %s is of table %.*s, branch %.*s, not of %.*s, branch %.*s",
                       r->what, STR_ARG(uuid), STR_ARG(branch), STR_ARG(who->table_uuid),
                       STR_ARG(who->branch));
    }
    if (!str_eq(sink, who->sink_id)) {
        return err_set(err, TARN_INVALID, "checkpoint file %s is of sink %.*s, not of %.*s",
                       r->what, STR_ARG(sink), STR_ARG(who->sink_id));
    }
    return TARN_OK;
}

tarn_code delta_read(tarn_arena *arena, const sink_identity *who, const json_value *json,
                     const tarn_metadata *m, const char *what, sink_delta *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str id;
    delta_reader r = {arena, m, what};
    TRY(check_owner(&r, who, json, err));
    TRY(get_i64(&r, json, "checkpoint", &out->checkpoint, err));
    TRY(get_i64(&r, json, "epoch", &out->epoch, err));
    TRY(get_i64(&r, json, "base-snapshot-id", &out->base_snapshot_id, err));
    if (!json_str(json_get(json, "commit-id"), &id) || id.len != sizeof out->commit_id - 1) {
        return bad_member(&r, "commit-id", err);
    }
    memcpy(out->commit_id, id.data, id.len);
    out->commit_id[id.len] = '\0';
    out->offsets = STR_NULL;
    (void)json_str(json_get(json, "offsets"), &out->offsets);
    TRY(get_i64(&r, json, "rows", &out->written.rows, err));
    TRY(get_i64(&r, json, "deleted-rows", &out->written.deleted_rows, err));
    TRY(get_files(&r, json, "files", &out->written.files, &out->written.n_files, err));
    TRY(get_files(&r, json, "deletes", &out->written.deletes, &out->written.n_deletes, err));
    TRY(get_referenced(&r, json, &out->written, err));
    TRY(get_entries(&r, json, &out->written, err));
done:
    return code;
}
