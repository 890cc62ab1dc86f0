/* iceberg/metadata_write.c - a metadata document as JSON. Members come in the order that Iceberg
 * Java writes them; nothing is written as null, because readers differ on what null means (B26). */
#include "iceberg/metadata_int.h"

#define LOG_ENTRY_BYTES 66
#define OTHER_BYTES     32768

static void put_schemas(const tarn_metadata *m, json_writer *w) {
    const tarn_schema *schema = metadata_schema(m);
    if (m->format_version == 1 && schema != NULL) { /* for readers that know no "schemas" */
        json_put_name(w, STR("schema"));
        schema_put_json(schema, w);
    }
    json_member_i64(w, "current-schema-id", m->current_schema_id);
    json_put_name(w, STR("schemas"));
    json_put_array(w);
    for (int32_t i = 0; i < m->n_schemas; i++) {
        schema_put_json(m->schemas[i], w);
    }
    json_end_array(w);
}

static void put_specs(const tarn_metadata *m, json_writer *w) {
    const tarn_spec *spec = metadata_spec(m);
    if (m->format_version == 1 && spec != NULL) {
        json_put_name(w, STR("partition-spec"));
        spec_put_fields(spec, w);
    }
    json_member_i64(w, "default-spec-id", m->default_spec_id);
    json_put_name(w, STR("partition-specs"));
    json_put_array(w);
    for (int32_t i = 0; i < m->n_specs; i++) {
        spec_put_json(m->specs[i], w);
    }
    json_end_array(w);
    json_member_i64(w, "last-partition-id", m->last_partition_id);
    json_member_i64(w, "default-sort-order-id", m->default_sort_order_id);
    json_put_name(w, STR("sort-orders"));
    json_put_array(w);
    for (int32_t i = 0; i < m->n_sort_orders; i++) {
        sort_order_put_json(m->sort_orders[i], w);
    }
    json_end_array(w);
}

static void put_snapshots(const tarn_metadata *m, json_writer *w) {
    json_put_name(w, STR("refs"));
    json_put_object(w);
    for (int32_t i = 0; i < m->n_refs; i++) {
        json_put_name(w, m->refs[i].name);
        json_put_object(w);
        ref_put_members(&m->refs[i], w);
        json_end_object(w);
    }
    json_end_object(w);
    json_put_name(w, STR("snapshots"));
    json_put_array(w);
    for (int32_t i = 0; i < m->n_snapshots; i++) {
        const tarn_snapshot *s = m->snapshots[i];
        if (s->text.len > 0 && s->text_version == m->format_version) {
            json_put_raw(w, s->text);
        } else {
            snapshot_put_json(s, m->format_version, w);
        }
    }
    json_end_array(w);
}

static void put_array(const char *name, const json_value *array, json_writer *w) {
    json_put_name(w, str_of(name));
    if (array != NULL) {
        json_put_value(w, array);
    } else {
        json_put_array(w);
        json_end_array(w);
    }
}

/* Every commit writes all of it: so not member by member. */
static void put_log_entry(const tarn_snapshot_log_entry *entry, json_writer *w) {
    static const char time_key[] = "{\"timestamp-ms\":", id_key[] = ",\"snapshot-id\":";
    char text[sizeof time_key + sizeof id_key + 48];
    size_t n = sizeof time_key - 1;
    memcpy(text, time_key, n);
    n += str_from_i64(entry->timestamp_ms, text + n);
    memcpy(text + n, id_key, sizeof id_key - 1);
    n += sizeof id_key - 1;
    n += str_from_i64(entry->snapshot_id, text + n);
    text[n++] = '}';
    json_put_raw(w, str_make(text, n));
}

static void put_logs(const tarn_metadata *m, json_writer *w) {
    json_put_name(w, STR("snapshot-log"));
    json_put_array(w);
    for (int32_t i = 0; i < m->n_snapshot_log; i++) {
        put_log_entry(&m->snapshot_log[i], w);
    }
    json_end_array(w);
    json_put_name(w, STR("metadata-log"));
    json_put_array(w);
    for (int32_t i = 0; i < m->n_metadata_log; i++) {
        json_put_object(w);
        json_member_i64(w, "timestamp-ms", m->metadata_log[i].timestamp_ms);
        json_member_str(w, "metadata-file", m->metadata_log[i].metadata_file);
        json_end_object(w);
    }
    json_end_array(w);
}

/* About what the parts will take that grow with every commit, so that room is made once. */
static size_t guess_bytes(const tarn_metadata *m) {
    size_t n = (size_t)m->n_snapshot_log * LOG_ENTRY_BYTES;
    for (int32_t i = 0; i < m->n_snapshots; i++) {
        n += m->snapshots[i]->text.len + 1;
    }
    return n;
}

tarn_code metadata_write(const tarn_metadata *m, tarn_buf *out, tarn_error *err) {
    json_writer w;
    size_t guess = guess_bytes(m);
    tarn_code code = guess > 0 ? buf_reserve(out, guess + OTHER_BYTES, err) : TARN_OK;
    if (code != TARN_OK) {
        return code;
    }
    json_begin(&w, out, false, err);
    json_put_object(&w);
    json_member_i64(&w, "format-version", m->format_version);
    if (m->table_uuid.len > 0) {
        json_member_str(&w, "table-uuid", m->table_uuid);
    }
    json_member_str(&w, "location", m->location);
    if (m->format_version > 1) {
        json_member_i64(&w, "last-sequence-number", m->last_sequence_number);
    }
    json_member_i64(&w, "last-updated-ms", m->last_updated_ms);
    json_member_i64(&w, "last-column-id", m->last_column_id);
    put_schemas(m, &w);
    put_specs(m, &w);
    json_put_name(&w, STR("properties"));
    properties_put_json(&m->properties, &w);
    /* Version 3 leaves it out; older readers insist on a number. */
    if (m->format_version < 3 || m->current_snapshot_id != TARN_NO_SNAPSHOT) {
        json_member_i64(&w, "current-snapshot-id", m->current_snapshot_id);
    }
    if (m->format_version >= 3) {
        json_member_i64(&w, "next-row-id", m->next_row_id);
    }
    if (m->encryption_keys != NULL && m->encryption_keys->count > 0) {
        put_array("encryption-keys", m->encryption_keys, &w);
    }
    put_snapshots(m, &w);
    put_array("statistics", m->statistics, &w);
    put_array("partition-statistics", m->partition_statistics, &w);
    put_logs(m, &w);
    json_put_members(&w, m->extra);
    json_end_object(&w);
    return json_end(&w);
}
