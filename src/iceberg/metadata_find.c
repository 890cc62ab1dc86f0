/* iceberg/metadata_find.c - looking things up in a metadata document. */
#include "iceberg/metadata.h"

const tarn_schema *metadata_schema_by_id(const tarn_metadata *m, int32_t id) {
    for (int32_t i = 0; i < m->n_schemas; i++) {
        if (m->schemas[i]->schema_id == id) {
            return m->schemas[i];
        }
    }
    return NULL;
}

const tarn_schema *metadata_schema(const tarn_metadata *m) {
    return metadata_schema_by_id(m, m->current_schema_id);
}

const tarn_schema *metadata_snapshot_schema(const tarn_metadata *m, const tarn_snapshot *s) {
    const tarn_schema *schema = s->schema_id >= 0 ? metadata_schema_by_id(m, s->schema_id) : NULL;
    return schema != NULL ? schema : metadata_schema(m);
}

const tarn_spec *metadata_spec_by_id(const tarn_metadata *m, int32_t id) {
    for (int32_t i = 0; i < m->n_specs; i++) {
        if (m->specs[i]->spec_id == id) {
            return m->specs[i];
        }
    }
    return NULL;
}

const tarn_spec *metadata_spec(const tarn_metadata *m) {
    return metadata_spec_by_id(m, m->default_spec_id);
}

const tarn_sort_order *metadata_sort_order(const tarn_metadata *m) {
    for (int32_t i = 0; i < m->n_sort_orders; i++) {
        if (m->sort_orders[i]->order_id == m->default_sort_order_id) {
            return m->sort_orders[i];
        }
    }
    return NULL;
}

/* Looks from hint backwards first: a parent mostly stands just before its child. */
static int32_t find_snapshot(const tarn_metadata *m, int64_t id, int32_t hint) {
    for (int32_t i = hint - 1; i >= 0; i--) {
        if (m->snapshots[i]->snapshot_id == id) {
            return i;
        }
    }
    for (int32_t i = hint; i < m->n_snapshots; i++) {
        if (m->snapshots[i]->snapshot_id == id) {
            return i;
        }
    }
    return -1;
}

const tarn_snapshot *metadata_snapshot_by_id(const tarn_metadata *m, int64_t id) {
    int32_t at = find_snapshot(m, id, m->n_snapshots);
    return at < 0 ? NULL : m->snapshots[at];
}

/* Where a snapshot stands, by its sequence number; where they are not in order, the end. */
static int32_t place_of(const tarn_metadata *m, const tarn_snapshot *s) {
    int32_t low = 0;
    int32_t high = m->n_snapshots;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (m->snapshots[middle]->sequence_number < s->sequence_number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < m->n_snapshots && m->snapshots[low] == s ? low : m->n_snapshots;
}

const tarn_snapshot *metadata_parent(const tarn_metadata *m, const tarn_snapshot *s) {
    if (s->parent_id == TARN_NO_SNAPSHOT) {
        return NULL;
    }
    int32_t at = find_snapshot(m, s->parent_id, place_of(m, s));
    return at < 0 ? NULL : m->snapshots[at];
}

const tarn_snapshot *metadata_current_snapshot(const tarn_metadata *m) {
    return m->current_snapshot_id == TARN_NO_SNAPSHOT
               ? NULL
               : metadata_snapshot_by_id(m, m->current_snapshot_id);
}

const tarn_ref *metadata_ref(const tarn_metadata *m, tarn_str name) {
    for (int32_t i = 0; i < m->n_refs; i++) {
        if (str_eq(m->refs[i].name, name)) {
            return &m->refs[i];
        }
    }
    return NULL;
}

const tarn_snapshot *metadata_head(const tarn_metadata *m, tarn_str branch) {
    const tarn_ref *ref = metadata_ref(m, branch);
    return ref != NULL ? metadata_snapshot_by_id(m, ref->snapshot_id)
                       : metadata_current_snapshot(m);
}

const tarn_snapshot *metadata_snapshot_at(const tarn_metadata *m, int64_t timestamp_ms) {
    for (int32_t i = m->n_snapshot_log - 1; i >= 0; i--) {
        if (m->snapshot_log[i].timestamp_ms <= timestamp_ms) {
            return metadata_snapshot_by_id(m, m->snapshot_log[i].snapshot_id);
        }
    }
    return NULL;
}

bool metadata_is_ancestor(const tarn_metadata *m, int64_t descendant_id, int64_t ancestor_id) {
    int32_t at = find_snapshot(m, descendant_id, m->n_snapshots);
    /* No chain is longer than there are snapshots: parents that form a ring end here. */
    for (int32_t steps = 0; at >= 0 && steps <= m->n_snapshots; steps++) {
        if (m->snapshots[at]->snapshot_id == ancestor_id) {
            return true;
        }
        if (m->snapshots[at]->parent_id == TARN_NO_SNAPSHOT) {
            return false;
        }
        at = find_snapshot(m, m->snapshots[at]->parent_id, at);
    }
    return false;
}

bool properties_get(const tarn_properties *p, const char *key, tarn_str *out) {
    for (int32_t i = 0; i < p->count; i++) {
        if (str_is(p->items[i].key, key)) {
            *out = p->items[i].value;
            return true;
        }
    }
    return false;
}

tarn_code properties_i64(const tarn_properties *p, const char *key, int64_t fallback, int64_t *out,
                         tarn_error *err) {
    tarn_str text;
    if (!properties_get(p, key, &text)) {
        *out = fallback;
        return TARN_OK;
    }
    return str_to_i64(str_trim(text), out)
               ? TARN_OK
               : err_set(err, TARN_INVALID, "property %s was \"%.*s\", not a whole number", key,
                         STR_ARG(text));
}

tarn_code properties_bool(const tarn_properties *p, const char *key, bool fallback, bool *out,
                          tarn_error *err) {
    tarn_str text;
    if (!properties_get(p, key, &text)) {
        *out = fallback;
        return TARN_OK;
    }
    return str_to_bool(str_trim(text), out)
               ? TARN_OK
               : err_set(err, TARN_INVALID, "property %s was \"%.*s\", not true or false", key,
                         STR_ARG(text));
}

tarn_str properties_str(const tarn_properties *p, const char *key, const char *fallback) {
    tarn_str text;
    return properties_get(p, key, &text) ? text : str_of(fallback);
}
