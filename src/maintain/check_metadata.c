/* maintain/check_metadata.c - the metadata document alone (spec, "Table Metadata Fields"). What the
 * reader of documents refuses (references and current snapshot that are not there) never comes
 * here. */
#include "iceberg/schema_check.h"
#include "iceberg/spec_text.h"
#include "maintain/check_int.h"

/* Clocks of writers may differ by so much. */
#define CLOCK_SLACK_MS 60000

static tarn_code check_schemas(checker *c, tarn_error *err) {
    const tarn_metadata *m = c->m;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < m->n_schemas; i++) {
        const tarn_schema *s = m->schemas[i];
        const int32_t max = type_max_id(s->root);
        tarn_error why = TARN_ERROR_INIT;
        for (int32_t k = 0; k < i; k++) {
            if (m->schemas[k]->schema_id == s->schema_id) {
                TRY(check_found(c, CHECK_SCHEMA, c->location, err, "schema id %d was there twice",
                                s->schema_id));
            }
        }
        if (max > m->last_column_id) {
            TRY(check_found(c, CHECK_LAST_COLUMN_ID, c->location, err,
                            "schema %d had field id %d and last-column-id was %d", s->schema_id,
                            max, m->last_column_id));
        }
        code = schema_check(s, m->format_version, &why);
        if (code != TARN_OK) {
            TRY(check_is_finding(code) ? check_found(c, CHECK_SCHEMA, c->location, err,
                                                     "schema %d: %s", s->schema_id, why.message)
                                       : err_set(err, code, "%s", why.message));
        }
    }
done:
    return code;
}

/* A partition field id means one thing in all specs of a table (version 2 on; version 1 counts
 * anew in every spec). */
static tarn_code check_field_meaning(checker *c, const tarn_spec *spec,
                                     const tarn_partition_field *f, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < c->m->n_specs && c->m->format_version > 1; i++) {
        const tarn_spec *other = c->m->specs[i];
        for (int32_t k = 0; other->spec_id < spec->spec_id && k < other->n_fields; k++) {
            const tarn_partition_field *g = &other->fields[k];
            if (g->field_id == f->field_id &&
                (g->source_id != f->source_id || g->transform.kind != f->transform.kind) &&
                g->transform.kind != TRANSFORM_VOID && f->transform.kind != TRANSFORM_VOID) {
                TRY(check_found(c, CHECK_SPEC_SOURCE, c->location, err,
                                "partition field id %d was \"%.*s\" in spec %d and \"%.*s\" in "
                                "spec %d",
                                f->field_id, STR_ARG(g->name), other->spec_id, STR_ARG(f->name),
                                spec->spec_id));
            }
        }
    }
done:
    return code;
}

static tarn_code check_spec_field(checker *c, const tarn_spec *spec, int32_t i, tarn_error *err) {
    const tarn_partition_field *f = &spec->fields[i];
    tarn_code code = TARN_OK;
    for (int32_t k = 0; k < i; k++) {
        if (spec->fields[k].field_id == f->field_id) {
            TRY(check_found(c, CHECK_SPEC, c->location, err,
                            "partition field id %d was there twice in spec %d", f->field_id,
                            spec->spec_id));
        }
    }
    if (f->field_id > c->m->last_partition_id) {
        TRY(check_found(c, CHECK_LAST_PARTITION_ID, c->location, err,
                        "spec %d had partition field id %d and last-partition-id was %d",
                        spec->spec_id, f->field_id, c->m->last_partition_id));
    }
    if (f->transform.kind == TRANSFORM_UNKNOWN) {
        TRY(check_found(c, CHECK_TRANSFORM, c->location, err,
                        "transform \"%.*s\" of partition field \"%.*s\" is not known",
                        STR_ARG(f->transform.text), STR_ARG(f->name)));
    } else if (f->transform.kind != TRANSFORM_VOID && check_column(c, f->source_id, NULL) == NULL) {
        TRY(check_found(c, CHECK_SPEC_SOURCE, c->location, err,
                        "source column %d of partition field \"%.*s\" was in no schema",
                        f->source_id, STR_ARG(f->name)));
    }
    TRY(check_field_meaning(c, spec, f, err));
done:
    return code;
}

static tarn_code check_specs(checker *c, tarn_error *err) {
    const tarn_metadata *m = c->m;
    const tarn_spec *now = metadata_spec(m);
    tarn_code code = TARN_OK;
    tarn_error why = TARN_ERROR_INIT;
    for (int32_t i = 0; i < m->n_specs; i++) {
        for (int32_t k = 0; k < i; k++) {
            if (m->specs[k]->spec_id == m->specs[i]->spec_id) {
                TRY(check_found(c, CHECK_SPEC, c->location, err, "spec id %d was there twice",
                                m->specs[i]->spec_id));
            }
        }
        for (int32_t k = 0; k < m->specs[i]->n_fields; k++) {
            TRY(check_spec_field(c, m->specs[i], k, err));
        }
    }
    code = now != NULL ? spec_check_sources(metadata_schema(m)->root, now, &why) : TARN_OK;
    if (code != TARN_OK) {
        TRY(check_is_finding(code)
                ? check_found(c, CHECK_SPEC, c->location, err, "the default spec %d: %s (%s)",
                              now->spec_id, why.message, why.detail)
                : err_set(err, code, "%s", why.message));
    }
done:
    return code;
}

static tarn_code check_orders(checker *c, tarn_error *err) {
    const tarn_metadata *m = c->m;
    const tarn_sort_order *now = metadata_sort_order(m);
    tarn_code code = TARN_OK;
    tarn_error why = TARN_ERROR_INIT;
    for (int32_t i = 0; i < m->n_sort_orders; i++) {
        for (int32_t k = 0; k < i; k++) {
            if (m->sort_orders[k]->order_id == m->sort_orders[i]->order_id) {
                TRY(check_found(c, CHECK_SORT_ORDER, c->location, err,
                                "sort order id %d was there twice", m->sort_orders[i]->order_id));
            }
        }
    }
    code = now != NULL ? sort_order_check_sources(metadata_schema(m)->root, now, &why) : TARN_OK;
    if (code != TARN_OK) {
        TRY(check_is_finding(code) ? check_found(c, CHECK_SORT_ORDER, c->location, err,
                                                 "the default sort order %d: %s (%s)",
                                                 now->order_id, why.message, why.detail)
                                   : err_set(err, code, "%s", why.message));
    }
done:
    return code;
}

/* Sequence numbers only rise from parent to child, and no two snapshots share one. */
static tarn_code check_sequence(checker *c, const tarn_snapshot *s, int32_t index,
                                tarn_error *err) {
    const tarn_snapshot *parent =
        s->parent_id != TARN_NO_SNAPSHOT ? metadata_snapshot_by_id(c->m, s->parent_id) : NULL;
    tarn_code code = TARN_OK;
    if (s->sequence_number > c->m->last_sequence_number) {
        TRY(check_found(c, CHECK_SEQUENCE, c->location, err,
                        "snapshot %lld had sequence number %lld and last-sequence-number was %lld",
                        (long long)s->snapshot_id, (long long)s->sequence_number,
                        (long long)c->m->last_sequence_number));
    }
    if (parent != NULL && parent->sequence_number >= s->sequence_number && s->sequence_number > 0) {
        TRY(check_found(c, CHECK_SEQUENCE, c->location, err,
                        "snapshot %lld had sequence number %lld, its parent %lld had %lld",
                        (long long)s->snapshot_id, (long long)s->sequence_number,
                        (long long)parent->snapshot_id, (long long)parent->sequence_number));
    }
    for (int32_t k = 0; k < index && s->sequence_number > 0; k++) {
        const tarn_snapshot *other = c->m->snapshots[k];
        if (other->sequence_number == s->sequence_number) {
            TRY(check_found(c, CHECK_SEQUENCE, c->location, err,
                            "snapshots %lld and %lld had the same sequence number %lld",
                            (long long)other->snapshot_id, (long long)s->snapshot_id,
                            (long long)s->sequence_number));
        }
    }
done:
    return code;
}

static tarn_code check_row_ids(checker *c, const tarn_snapshot *s, tarn_error *err) {
    int64_t end = 0;
    if (s->first_row_id < 0 || s->added_rows < 0) {
        return TARN_OK;
    }
    if (!num_add_i64(s->first_row_id, s->added_rows, &end) || end > c->m->next_row_id) {
        return check_found(c, CHECK_ROW_IDS, c->location, err,
                           "snapshot %lld took row ids from %lld on for %lld rows and next-row-id "
                           "was %lld",
                           (long long)s->snapshot_id, (long long)s->first_row_id,
                           (long long)s->added_rows, (long long)c->m->next_row_id);
    }
    return TARN_OK;
}

static tarn_code check_snapshots(checker *c, tarn_error *err) {
    const tarn_metadata *m = c->m;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < m->n_snapshots; i++) {
        const tarn_snapshot *s = m->snapshots[i];
        const long long id = s->snapshot_id;
        tarn_str operation;
        if (metadata_snapshot_by_id(m, s->snapshot_id) != s) {
            TRY(check_found(c, CHECK_SNAPSHOT, c->location, err, "snapshot id %lld was there twice",
                            id));
        }
        if (s->parent_id == s->snapshot_id) {
            TRY(check_found(c, CHECK_SNAPSHOT, c->location, err, "snapshot %lld was its own parent",
                            id));
        }
        if (m->format_version > 1 && s->sequence_number > 0 &&
            !properties_get(&s->summary, "operation", &operation)) {
            TRY(check_found(c, CHECK_SUMMARY, c->location, err,
                            "the summary of snapshot %lld had no operation", id));
        }
        if (s->schema_id >= 0 && metadata_schema_by_id(m, s->schema_id) == NULL) {
            TRY(check_found(c, CHECK_SNAPSHOT_SCHEMA, c->location, err,
                            "schema %d of snapshot %lld was missing from the schemas", s->schema_id,
                            id));
        }
        if (s->timestamp_ms > m->last_updated_ms + CLOCK_SLACK_MS) {
            TRY(check_found(c, CHECK_SNAPSHOT_TIME, c->location, err,
                            "snapshot %lld was made at %lld, after last-updated-ms %lld", id,
                            (long long)s->timestamp_ms, (long long)m->last_updated_ms));
        }
        TRY(check_sequence(c, s, i, err));
        TRY(check_row_ids(c, s, err));
    }
done:
    return code;
}

static tarn_code check_logs(checker *c, tarn_error *err) {
    const tarn_metadata *m = c->m;
    tarn_code code = TARN_OK;
    for (int32_t i = 1; i < m->n_snapshot_log; i++) {
        if (m->snapshot_log[i].timestamp_ms + CLOCK_SLACK_MS <
            m->snapshot_log[i - 1].timestamp_ms) {
            TRY(check_found(c, CHECK_LOG, c->location, err,
                            "entry %d of snapshot-log (snapshot %lld) was older than the one "
                            "before",
                            i, (long long)m->snapshot_log[i].snapshot_id));
        }
    }
    for (int32_t i = 1; i < m->n_metadata_log; i++) {
        if (m->metadata_log[i].timestamp_ms + CLOCK_SLACK_MS <
            m->metadata_log[i - 1].timestamp_ms) {
            TRY(check_found(c, CHECK_LOG, c->location, err,
                            "entry %d of metadata-log (%.*s) was older than the one before", i,
                            STR_ARG(m->metadata_log[i].metadata_file)));
        }
    }
    if (m->n_metadata_log > 0 &&
        m->metadata_log[m->n_metadata_log - 1].timestamp_ms > m->last_updated_ms + CLOCK_SLACK_MS) {
        TRY(check_found(c, CHECK_LOG, c->location, err,
                        "the last entry of metadata-log was newer than last-updated-ms %lld",
                        (long long)m->last_updated_ms));
    }
done:
    return code;
}

/* Statistics files of a snapshot: both kinds have snapshot-id, statistics-path and
 * file-size-in-bytes. */
static tarn_code check_statistics(checker *c, const json_value *list, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (const json_value *j = list != NULL ? list->first : NULL; j != NULL; j = j->next) {
        int64_t id = TARN_NO_SNAPSHOT, size = -1;
        tarn_str path = STR("");
        store_stat_info info;
        tarn_error why = TARN_ERROR_INIT;
        if (!json_i64(json_get(j, "snapshot-id"), &id) ||
            !json_str(json_get(j, "statistics-path"), &path)) {
            TRY(check_found(c, CHECK_STATISTICS, c->location, err,
                            "a statistics file had no snapshot-id or no statistics-path"));
            continue;
        }
        if (metadata_snapshot_by_id(c->m, id) == NULL) {
            TRY(check_found(c, CHECK_STATISTICS, c->location, err,
                            "statistics file %.*s was of snapshot %lld, which the table has not",
                            STR_ARG(path), (long long)id));
        }
        code = store_stat(c->store, path, &info, &why);
        if (code == TARN_OK && json_i64(json_get(j, "file-size-in-bytes"), &size) &&
            size != info.size_bytes) {
            code = check_found(c, CHECK_STATISTICS, path, err,
                               "file-size-in-bytes was %lld and the file has %lld bytes",
                               (long long)size, (long long)info.size_bytes);
        } else if (check_is_finding(code)) {
            code = check_found(c, CHECK_STATISTICS, path, err,
                               "the statistics file could not be found: %s", why.message);
        } else if (code != TARN_OK) {
            code = err_set(err, code, "%s", why.message);
        }
        TRY(code);
    }
done:
    return code;
}

tarn_code check_metadata(checker *c, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(check_schemas(c, err));
    TRY(check_specs(c, err));
    TRY(check_orders(c, err));
    TRY(check_snapshots(c, err));
    TRY(check_logs(c, err));
    TRY(check_statistics(c, c->m->statistics, err));
    TRY(check_statistics(c, c->m->partition_statistics, err));
done:
    return code;
}
