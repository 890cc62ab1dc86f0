/* iceberg/file_json.c - see file_json.h. Numbers of 64 bits stay numbers: base/json keeps their
 * text. */
#include "iceberg/file_json.h"

#include "base/limits.h"

#define MAX_ITEMS (INT32_MAX / 2)

static const char HEX[] = "0123456789ABCDEF";
static const char *const CONTENTS[] = {"data", "position-deletes", "equality-deletes"};
static const char *const FORMATS[] = {"parquet", "avro", "orc", "puffin", "other"};

/* ---- writing ---- */

static void put_hex(json_writer *w, tarn_str bytes) {
    char small[128];
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

static void put_array(json_writer *w, const char *name) {
    json_put_name(w, str_of(name));
    json_put_array(w);
}

static void put_counts(json_writer *w, const char *name, const metric_count *counts, int32_t n) {
    if (n == 0) {
        return;
    }
    json_put_name(w, str_of(name));
    json_put_object(w);
    put_array(w, "keys");
    for (int32_t i = 0; i < n; i++) {
        json_put_i64(w, counts[i].id);
    }
    json_end_array(w);
    put_array(w, "values");
    for (int32_t i = 0; i < n; i++) {
        json_put_i64(w, counts[i].count);
    }
    json_end_array(w);
    json_end_object(w);
}

static void put_bounds(json_writer *w, const char *name, const metric_bound *bounds, int32_t n) {
    if (n == 0) {
        return;
    }
    json_put_name(w, str_of(name));
    json_put_object(w);
    put_array(w, "keys");
    for (int32_t i = 0; i < n; i++) {
        json_put_i64(w, bounds[i].id);
    }
    json_end_array(w);
    put_array(w, "values");
    for (int32_t i = 0; i < n; i++) {
        put_hex(w, bounds[i].bytes);
    }
    json_end_array(w);
    json_end_object(w);
}

static void put_if(json_writer *w, const char *name, int64_t value) {
    if (value >= 0) {
        json_member_i64(w, name, value);
    }
}

static void put_lists(json_writer *w, const tarn_file *f) {
    if (f->n_split_offsets > 0) {
        put_array(w, "split-offsets");
        for (int32_t i = 0; i < f->n_split_offsets; i++) {
            json_put_i64(w, f->split_offsets[i]);
        }
        json_end_array(w);
    }
    if (f->n_equality_ids > 0) {
        put_array(w, "equality-ids");
        for (int32_t i = 0; i < f->n_equality_ids; i++) {
            json_put_i64(w, f->equality_ids[i]);
        }
        json_end_array(w);
    }
}

void file_put_json(const tarn_file *f, json_writer *w) {
    json_put_object(w);
    json_member_str(w, "content", str_of(CONTENTS[f->content]));
    json_member_str(w, "file-path", f->path);
    json_member_str(w, "file-format", str_of(FORMATS[f->format]));
    json_member_i64(w, "spec-id", f->spec_id);
    put_array(w, "partition");
    for (int32_t i = 0; i < f->n_partition; i++) {
        value_put_json(&f->partition[i], w);
    }
    json_end_array(w);
    json_member_i64(w, "record-count", f->record_count);
    json_member_i64(w, "file-size-in-bytes", f->size_bytes);
    put_counts(w, "column-sizes", f->column_sizes, f->n_column_sizes);
    put_counts(w, "value-counts", f->value_counts, f->n_value_counts);
    put_counts(w, "null-value-counts", f->null_counts, f->n_null_counts);
    put_counts(w, "nan-value-counts", f->nan_counts, f->n_nan_counts);
    put_bounds(w, "lower-bounds", f->lower, f->n_lower);
    put_bounds(w, "upper-bounds", f->upper, f->n_upper);
    if (f->key_metadata.data != NULL) {
        json_put_name(w, STR("key-metadata"));
        put_hex(w, f->key_metadata);
    }
    put_lists(w, f);
    put_if(w, "sort-order-id", f->sort_order_id);
    put_if(w, "first-row-id", f->first_row_id);
    if (f->referenced_data_file.data != NULL) {
        json_member_str(w, "referenced-data-file", f->referenced_data_file);
    }
    put_if(w, "content-offset", f->content_offset);
    put_if(w, "content-size-in-bytes", f->content_size);
    json_end_object(w);
}

void files_put_json(const char *name, const tarn_file *files, int32_t n, json_writer *w) {
    put_array(w, name);
    for (int32_t i = 0; i < n; i++) {
        file_put_json(&files[i], w);
    }
    json_end_array(w);
}

void entries_put_json(const char *name, const tarn_entry *entries, int32_t n, json_writer *w) {
    put_array(w, name);
    for (int32_t i = 0; i < n; i++) {
        json_put_object(w);
        json_member_i64(w, "snapshot-id", entries[i].snapshot_id);
        json_member_i64(w, "sequence-number", entries[i].sequence_number);
        json_member_i64(w, "file-sequence-number", entries[i].file_sequence_number);
        json_put_name(w, STR("file"));
        file_put_json(&entries[i].file, w);
        json_end_object(w);
    }
    json_end_array(w);
}

void texts_put_json(const char *name, const tarn_str *texts, int32_t n, json_writer *w) {
    put_array(w, name);
    for (int32_t i = 0; i < n; i++) {
        json_put_string(w, texts[i]);
    }
    json_end_array(w);
}

/* ---- reading ---- */

static tarn_code bad_member(const char *name, tarn_error *err) {
    return err_set(err, TARN_INVALID, "member \"%s\" of a file is missing or not what it should be",
                   name);
}

static bool is_absent(const json_value *v) {
    return v == NULL || v->kind == JSON_NULL;
}

static tarn_code get_i64(const json_value *json, const char *name, int64_t *out, tarn_error *err) {
    return json_i64(json_get(json, name), out) ? TARN_OK : bad_member(name, err);
}

/* -1: absent. */
static tarn_code get_if(const json_value *json, const char *name, int64_t *out, tarn_error *err) {
    const json_value *v = json_get(json, name);
    *out = -1;
    return is_absent(v) || json_i64(v, out) ? TARN_OK : bad_member(name, err);
}

static tarn_code read_hex(tarn_arena *arena, const json_value *json, const char *name,
                          tarn_str *out, tarn_error *err) {
    tarn_str text;
    if (!json_str(json, &text) || text.len % 2 != 0) {
        return bad_member(name, err);
    }
    char *bytes = arena_alloc(arena, text.len / 2 + 1);
    if (bytes == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < text.len / 2; i++) {
        int high = str_hex_digit(text.data[2 * i]);
        int low = str_hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return bad_member(name, err);
        }
        bytes[i] = (char)(high * 16 + low);
    }
    *out = str_make(bytes, text.len / 2);
    return TARN_OK;
}

/* *out NULL: absent. */
static tarn_code get_array(const json_value *json, const char *name, const json_value **out,
                           tarn_error *err) {
    *out = json_get(json, name);
    if (is_absent(*out)) {
        *out = NULL;
        return TARN_OK;
    }
    return (*out)->kind == JSON_ARRAY && (*out)->count <= MAX_ITEMS ? TARN_OK
                                                                    : bad_member(name, err);
}

/* {"keys":[...],"values":[...]} of one length; NULL: absent. */
static tarn_code get_map(const json_value *json, const char *name, const json_value **keys,
                         const json_value **values, tarn_error *err) {
    const json_value *map = json_get(json, name);
    tarn_code code = TARN_OK;
    *keys = *values = NULL;
    if (is_absent(map)) {
        return TARN_OK;
    }
    TRY(get_array(map, "keys", keys, err));
    TRY(get_array(map, "values", values, err));
    if (*keys == NULL || *values == NULL || (*keys)->count != (*values)->count) {
        code = bad_member(name, err);
    }
done:
    return code;
}

static tarn_code get_counts(tarn_arena *arena, const json_value *json, const char *name,
                            const metric_count **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *keys, *values;
    TRY(get_map(json, name, &keys, &values, err));
    if (keys == NULL) {
        goto done;
    }
    metric_count *counts = ARENA_ARRAY(arena, metric_count, keys->count + 1);
    if (counts == NULL) {
        return err_nomem(err);
    }
    const json_value *key = keys->first;
    const json_value *value = values->first;
    for (*n = 0; key != NULL; key = key->next, value = value->next, (*n)++) {
        if (!json_i32(key, &counts[*n].id) || !json_i64(value, &counts[*n].count)) {
            return bad_member(name, err);
        }
    }
    *out = counts;
done:
    return code;
}

static tarn_code get_bounds(tarn_arena *arena, const json_value *json, const char *name,
                            const metric_bound **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *keys, *values;
    TRY(get_map(json, name, &keys, &values, err));
    if (keys == NULL) {
        goto done;
    }
    metric_bound *bounds = ARENA_ARRAY(arena, metric_bound, keys->count + 1);
    if (bounds == NULL) {
        return err_nomem(err);
    }
    const json_value *key = keys->first;
    const json_value *value = values->first;
    for (*n = 0; key != NULL; key = key->next, value = value->next, (*n)++) {
        if (!json_i32(key, &bounds[*n].id)) {
            return bad_member(name, err);
        }
        TRY(read_hex(arena, value, name, &bounds[*n].bytes, err));
    }
    *out = bounds;
done:
    return code;
}

static tarn_code get_partition(tarn_arena *arena, const json_value *json, const tarn_metadata *m,
                               tarn_file *f, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    const tarn_type *type;
    const tarn_spec *spec = metadata_spec_by_id(m, f->spec_id);
    TRY(get_array(json, "partition", &list, err));
    if (spec == NULL) {
        return err_set(err, TARN_CONFLICT,
                       "file %.*s was written for partition spec %d, which the table lacks",
                       STR_ARG(f->path), f->spec_id);
    }
    if (spec->n_fields == 0 && (list == NULL || list->count == 0)) {
        goto done;
    }
    TRY(spec_partition_type(arena, spec, m, &type, err));
    if (list == NULL || (size_t)type->n_fields != list->count) {
        return bad_member("partition", err);
    }
    tarn_value *values = ARENA_ARRAY(arena, tarn_value, list->count + 1);
    if (values == NULL) {
        return err_nomem(err);
    }
    const json_value *v = list->first;
    for (int32_t i = 0; i < type->n_fields; i++, v = v->next) {
        TRY(value_from_json(arena, type->fields[i].type, v, &values[i], err));
    }
    f->partition = values;
    f->n_partition = type->n_fields;
done:
    return code;
}

static tarn_code get_lists(tarn_arena *arena, const json_value *json, tarn_file *f,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    TRY(get_array(json, "split-offsets", &list, err));
    if (list != NULL) {
        int64_t *offsets = ARENA_ARRAY(arena, int64_t, list->count + 1);
        if (offsets == NULL) {
            return err_nomem(err);
        }
        for (const json_value *v = list->first; v != NULL; v = v->next) {
            if (!json_i64(v, &offsets[f->n_split_offsets++])) {
                return bad_member("split-offsets", err);
            }
        }
        f->split_offsets = offsets;
    }
    TRY(get_array(json, "equality-ids", &list, err));
    if (list != NULL) {
        int32_t *ids = ARENA_ARRAY(arena, int32_t, list->count + 1);
        if (ids == NULL) {
            return err_nomem(err);
        }
        for (const json_value *v = list->first; v != NULL; v = v->next) {
            if (!json_i32(v, &ids[f->n_equality_ids++])) {
                return bad_member("equality-ids", err);
            }
        }
        f->equality_ids = ids;
    }
done:
    return code;
}

static tarn_code get_word(const json_value *json, const char *name, const char *const *words, int n,
                          int *out, tarn_error *err) {
    tarn_str text = STR_NULL;
    (void)json_str(json_get(json, name), &text);
    for (int i = 0; i < n; i++) {
        if (str_eq_nocase(text, str_of(words[i]))) {
            *out = i;
            return TARN_OK;
        }
    }
    return bad_member(name, err);
}

static tarn_code get_numbers(const json_value *json, tarn_file *f, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t order;
    TRY(get_i64(json, "record-count", &f->record_count, err));
    if (f->record_count > LIMIT_FILE_ROWS) {
        return err_set(err, TARN_LIMIT, "a file of %lld rows; the limit is %lld",
                       (long long)f->record_count, LIMIT_FILE_ROWS);
    }
    TRY(get_i64(json, "file-size-in-bytes", &f->size_bytes, err));
    TRY(get_if(json, "sort-order-id", &order, err));
    TRY(get_if(json, "first-row-id", &f->first_row_id, err));
    TRY(get_if(json, "content-offset", &f->content_offset, err));
    TRY(get_if(json, "content-size-in-bytes", &f->content_size, err));
    if (order < -1 || order > INT32_MAX) {
        return bad_member("sort-order-id", err);
    }
    f->sort_order_id = (int32_t)order;
done:
    return code;
}

static tarn_code get_metrics(tarn_arena *arena, const json_value *json, tarn_file *f,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(get_counts(arena, json, "column-sizes", &f->column_sizes, &f->n_column_sizes, err));
    TRY(get_counts(arena, json, "value-counts", &f->value_counts, &f->n_value_counts, err));
    TRY(get_counts(arena, json, "null-value-counts", &f->null_counts, &f->n_null_counts, err));
    TRY(get_counts(arena, json, "nan-value-counts", &f->nan_counts, &f->n_nan_counts, err));
    TRY(get_bounds(arena, json, "lower-bounds", &f->lower, &f->n_lower, err));
    TRY(get_bounds(arena, json, "upper-bounds", &f->upper, &f->n_upper, err));
done:
    return code;
}

tarn_code file_from_json(tarn_arena *arena, const json_value *json, const tarn_metadata *m,
                         tarn_file *f, tarn_error *err) {
    tarn_code code = TARN_OK;
    int content = 0;
    int format = 0;
    memset(f, 0, sizeof *f);
    if (!json_str(json_get(json, "file-path"), &f->path) || f->path.len == 0) {
        return bad_member("file-path", err);
    }
    TRY(get_word(json, "content", CONTENTS, 3, &content, err));
    TRY(get_word(json, "file-format", FORMATS, 5, &format, err));
    f->content = (tarn_content)content;
    f->format = (tarn_file_format)format;
    if (!json_i32(json_get(json, "spec-id"), &f->spec_id)) {
        return bad_member("spec-id", err);
    }
    TRY(get_partition(arena, json, m, f, err));
    TRY(get_numbers(json, f, err));
    TRY(get_metrics(arena, json, f, err));
    if (!is_absent(json_get(json, "key-metadata"))) {
        TRY(read_hex(arena, json_get(json, "key-metadata"), "key-metadata", &f->key_metadata, err));
    }
    TRY(get_lists(arena, json, f, err));
    const json_value *referenced = json_get(json, "referenced-data-file");
    if (!is_absent(referenced) && !json_str(referenced, &f->referenced_data_file)) {
        code = bad_member("referenced-data-file", err);
    }
done:
    return code;
}

tarn_code files_from_json(tarn_arena *arena, const json_value *object, const char *name,
                          const tarn_metadata *m, tarn_file **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    *out = NULL;
    *n = 0;
    TRY(get_array(object, name, &list, err));
    if (list == NULL) {
        goto done;
    }
    *out = ARENA_ARRAY(arena, tarn_file, list->count + 1);
    if (*out == NULL) {
        return err_nomem(err);
    }
    for (const json_value *v = list->first; v != NULL; v = v->next) {
        TRY(file_from_json(arena, v, m, &(*out)[(*n)++], err));
    }
done:
    return code;
}

tarn_code entries_from_json(tarn_arena *arena, const json_value *object, const char *name,
                            const tarn_metadata *m, tarn_entry **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    *out = NULL;
    *n = 0;
    TRY(get_array(object, name, &list, err));
    if (list == NULL) {
        goto done;
    }
    *out = ARENA_ARRAY(arena, tarn_entry, list->count + 1);
    if (*out == NULL) {
        return err_nomem(err);
    }
    for (const json_value *v = list->first; v != NULL; v = v->next) {
        tarn_entry *e = &(*out)[(*n)++];
        e->status = TARN_ENTRY_EXISTING;
        TRY(get_if(v, "snapshot-id", &e->snapshot_id, err));
        TRY(get_if(v, "sequence-number", &e->sequence_number, err));
        TRY(get_if(v, "file-sequence-number", &e->file_sequence_number, err));
        TRY(file_from_json(arena, json_get(v, "file"), m, &e->file, err));
    }
done:
    return code;
}

tarn_code texts_from_json(tarn_arena *arena, const json_value *object, const char *name,
                          const tarn_str **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *list;
    *out = NULL;
    *n = 0;
    TRY(get_array(object, name, &list, err));
    if (list == NULL) {
        goto done;
    }
    tarn_str *texts = ARENA_ARRAY(arena, tarn_str, list->count + 1);
    if (texts == NULL) {
        return err_nomem(err);
    }
    for (const json_value *v = list->first; v != NULL; v = v->next) {
        if (!json_str(v, &texts[(*n)++])) {
            return bad_member(name, err);
        }
    }
    *out = texts;
done:
    return code;
}
