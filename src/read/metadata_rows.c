/* read/metadata_rows.c - rows of the metadata tables that come from the metadata document and the
 * manifest list alone. */
#include "read/metadata_table.h"

tarn_code put_i64(tarn_builder *b, int64_t v, bool is_null, tarn_error *err) {
    return is_null ? builder_null(b, err) : builder_fixed(b, &v, err);
}

tarn_code put_i32(tarn_builder *b, int64_t v, bool is_null, tarn_error *err) {
    int32_t narrow = (int32_t)v;
    return is_null ? builder_null(b, err) : builder_fixed(b, &narrow, err);
}

tarn_code put_str(tarn_builder *b, tarn_str s, tarn_error *err) {
    return s.data == NULL ? builder_null(b, err) : builder_bytes(b, s, err);
}

tarn_code put_bool(tarn_builder *b, bool v, bool is_null, tarn_error *err) {
    return is_null ? builder_null(b, err) : builder_bool(b, v, err);
}

static tarn_code put_summary(tarn_builder *b, const tarn_properties *summary, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < summary->count; i++) {
        if (!str_is(summary->items[i].key, "operation")) {
            TRY(builder_bytes(&b->children[0], summary->items[i].key, err));
            TRY(builder_bytes(&b->children[1], summary->items[i].value, err));
        }
    }
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code put_snapshot(tarn_builder *b, const tarn_snapshot *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder *c = b->children;
    tarn_str operation = STR_NULL;
    (void)properties_get(&s->summary, "operation", &operation);
    TRY(put_i64(&c[0], s->timestamp_ms * 1000, false, err));
    TRY(put_i64(&c[1], s->snapshot_id, false, err));
    TRY(put_i64(&c[2], s->parent_id, s->parent_id == TARN_NO_SNAPSHOT, err));
    TRY(put_str(&c[3], operation, err));
    TRY(put_str(&c[4], s->manifest_list, err));
    TRY(put_summary(&c[5], &s->summary, err));
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code put_history(const metadata_table *t, tarn_builder *b,
                             const tarn_snapshot_log_entry *e, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder *c = b->children;
    const tarn_snapshot *s = metadata_snapshot_by_id(t->metadata, e->snapshot_id);
    const tarn_snapshot *current = metadata_current_snapshot(t->metadata);
    int64_t parent = s != NULL ? s->parent_id : TARN_NO_SNAPSHOT;
    TRY(put_i64(&c[0], e->timestamp_ms * 1000, false, err));
    TRY(put_i64(&c[1], e->snapshot_id, false, err));
    TRY(put_i64(&c[2], parent, parent == TARN_NO_SNAPSHOT, err));
    TRY(put_bool(&c[3],
                 current != NULL &&
                     metadata_is_ancestor(t->metadata, current->snapshot_id, e->snapshot_id),
                 false, err));
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code put_ref(tarn_builder *b, const tarn_ref *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder *c = b->children;
    TRY(put_str(&c[0], r->name, err));
    TRY(put_str(&c[1], r->is_tag ? STR("TAG") : STR("BRANCH"), err));
    TRY(put_i64(&c[2], r->snapshot_id, false, err));
    TRY(put_i64(&c[3], r->max_ref_age_ms, r->max_ref_age_ms < 0, err));
    TRY(put_i32(&c[4], r->min_snapshots_to_keep, r->min_snapshots_to_keep < 0, err));
    TRY(put_i64(&c[5], r->max_snapshot_age_ms, r->max_snapshot_age_ms < 0, err));
    TRY(builder_close(b, err));
done:
    return code;
}

/* A metadata document and the newest snapshot of main when it was replaced. */
static tarn_code put_log_entry(const metadata_table *t, tarn_builder *b, int64_t timestamp_ms,
                               tarn_str file, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder *c = b->children;
    const tarn_snapshot *s = metadata_snapshot_at(t->metadata, timestamp_ms);
    TRY(put_i64(&c[0], timestamp_ms * 1000, false, err));
    TRY(put_str(&c[1], file, err));
    TRY(put_i64(&c[2], s != NULL ? s->snapshot_id : 0, s == NULL, err));
    TRY(put_i32(&c[3], s != NULL ? s->schema_id : 0, s == NULL || s->schema_id < 0, err));
    TRY(put_i64(&c[4], s != NULL ? s->sequence_number : 0, s == NULL, err));
    TRY(builder_close(b, err));
done:
    return code;
}

tarn_code metadata_rows_small(metadata_table *t, tarn_builder *b, tarn_error *err) {
    const tarn_metadata *m = t->metadata;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; t->kind == META_SNAPSHOTS && i < m->n_snapshots; i++) {
        TRY(put_snapshot(b, m->snapshots[i], err));
    }
    for (int32_t i = 0; t->kind == META_HISTORY && i < m->n_snapshot_log; i++) {
        TRY(put_history(t, b, &m->snapshot_log[i], err));
    }
    for (int32_t i = 0; t->kind == META_REFS && i < m->n_refs; i++) {
        TRY(put_ref(b, &m->refs[i], err));
    }
    for (int32_t i = 0; t->kind == META_LOG && i < m->n_metadata_log; i++) {
        TRY(put_log_entry(t, b, m->metadata_log[i].timestamp_ms, m->metadata_log[i].metadata_file,
                          err));
    }
    if (t->kind == META_LOG) {
        TRY(put_log_entry(t, b, m->last_updated_ms, t->metadata_location, err));
    }
done:
    return code;
}

/* ---- manifests ---- */

static tarn_code put_human(tarn_builder *b, const tarn_transform *transform, const tarn_type *type,
                           bool has, tarn_str bytes, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf text;
    tarn_value value;
    if (!has || bytes.data == NULL) {
        return builder_null(b, err);
    }
    buf_init(&text, b->env, 0);
    TRY(value_from_binary(type, bytes, &value, err));
    TRY(transform_human(transform, &value, &text, err));
    /* a bound may be cut inside a character (B07) */
    TRY(str_utf8_valid(buf_str(&text)) ? builder_bytes(b, buf_str(&text), err)
                                       : builder_null(b, err));
done:
    buf_release(&text);
    return code;
}

static tarn_code put_summaries(metadata_table *t, tarn_builder *b, const tarn_manifest *manifest,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_spec *spec = metadata_spec_by_id(t->metadata, manifest->spec_id);
    tarn_builder *item = &b->children[0];
    const tarn_type *type = NULL;
    if (spec != NULL && manifest->n_partitions > 0) {
        TRY(spec_partition_type(&t->arena, spec, t->metadata, &type, err));
    }
    for (int32_t i = 0; type != NULL && i < manifest->n_partitions && i < spec->n_fields; i++) {
        const tarn_field_summary *s = &manifest->partitions[i];
        TRY(put_bool(&item->children[0], s->contains_null, false, err));
        TRY(put_bool(&item->children[1], s->contains_nan > 0, s->contains_nan < 0, err));
        TRY(put_human(&item->children[2], &spec->fields[i].transform, type->fields[i].type,
                      s->has_lower, s->lower, err));
        TRY(put_human(&item->children[3], &spec->fields[i].transform, type->fields[i].type,
                      s->has_upper, s->upper, err));
        TRY(builder_close(item, err));
    }
    TRY(builder_close(b, err));
done:
    return code;
}

static tarn_code put_counts(tarn_builder *c, const tarn_manifest *m, bool mine, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(put_i32(&c[0], mine ? m->added_files : 0, mine && m->added_files < 0, err));
    TRY(put_i32(&c[1], mine ? m->existing_files : 0, mine && m->existing_files < 0, err));
    TRY(put_i32(&c[2], mine ? m->deleted_files : 0, mine && m->deleted_files < 0, err));
done:
    return code;
}

tarn_code metadata_rows_manifests(metadata_table *t, tarn_builder *b, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder *c = b->children;
    for (int32_t i = 0; i < t->n_manifests; i++) {
        const tarn_manifest *m = &t->manifests[i];
        TRY(put_i32(&c[0], m->is_deletes, false, err));
        TRY(put_str(&c[1], m->path, err));
        TRY(put_i64(&c[2], m->length, false, err));
        /* version 1 lists manifests without their spec: the first, as Iceberg Java takes it */
        TRY(put_i32(&c[3], m->spec_id < 0 ? 0 : m->spec_id, false, err));
        TRY(put_i64(&c[4], m->added_snapshot_id, m->added_snapshot_id < 0, err));
        TRY(put_counts(&c[5], m, !m->is_deletes, err));
        TRY(put_counts(&c[8], m, m->is_deletes, err));
        TRY(put_summaries(t, &c[11], m, err));
        if (t->all) {
            TRY(put_i64(&c[12], t->snapshot->snapshot_id, false, err));
        }
        TRY(builder_close(b, err));
    }
done:
    return code;
}
