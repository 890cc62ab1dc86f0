/* iceberg/metadata_json.c - the JSON of the parts: properties, specs, sort orders, snapshots, refs
 * (spec, Appendix C), both ways. The whole document is metadata_read.c and metadata_write.c. */
#include <stdio.h>

#include "base/limits.h"
#include "base/map.h"
#include "iceberg/metadata_int.h"

static tarn_code missing(const char *where, const char *name, const json_value *v,
                         const char *wanted, tarn_error *err) {
    return v == NULL ? err_set(err, TARN_CORRUPT, "%s: \"%s\" was missing", where, name)
                     : err_set(err, TARN_CORRUPT, "%s: \"%s\" was not %s", where, name, wanted);
}

tarn_code json_need_i64(const json_value *object, const char *name, const char *where, int64_t *out,
                        tarn_error *err) {
    const json_value *v = json_member(object, name);
    return json_i64(v, out) ? TARN_OK : missing(where, name, v, "a whole number", err);
}

tarn_code json_need_i32(const json_value *object, const char *name, const char *where, int32_t *out,
                        tarn_error *err) {
    const json_value *v = json_member(object, name);
    return json_i32(v, out) ? TARN_OK : missing(where, name, v, "a 32-bit whole number", err);
}

tarn_code json_need_str(const json_value *object, const char *name, const char *where,
                        tarn_str *out, tarn_error *err) {
    const json_value *v = json_member(object, name);
    return json_str(v, out) ? TARN_OK : missing(where, name, v, "a string", err);
}

tarn_code json_want_i64(const json_value *object, const char *name, const char *where,
                        int64_t fallback, int64_t *out, tarn_error *err) {
    if (json_member(object, name) == NULL) {
        *out = fallback;
        return TARN_OK;
    }
    return json_need_i64(object, name, where, out, err);
}

tarn_code json_want_i32(const json_value *object, const char *name, const char *where,
                        int32_t fallback, int32_t *out, tarn_error *err) {
    if (json_member(object, name) == NULL) {
        *out = fallback;
        return TARN_OK;
    }
    return json_need_i32(object, name, where, out, err);
}

tarn_code json_want_array(const json_value *object, const char *name, const char *where,
                          const json_value **out, tarn_error *err) {
    const json_value *v = json_member(object, name);
    if (v != NULL && v->kind != JSON_ARRAY) {
        return missing(where, name, v, "an array", err);
    }
    *out = v;
    return TARN_OK;
}

static bool is_among(tarn_str name, const char *const *known) {
    for (; *known != NULL; known++) {
        if (str_is(name, *known)) {
            return true;
        }
    }
    return false;
}

tarn_code json_unknown(tarn_arena *arena, const json_value *object, const char *const *known,
                       const json_value **out, tarn_error *err) {
    json_value *rest = NULL, *last = NULL;
    for (const json_value *m = object->first; m != NULL; m = m->next) {
        if (is_among(m->name, known)) {
            continue;
        }
        if (rest == NULL) {
            rest = json_new(arena, JSON_OBJECT);
        }
        json_value *copy = ARENA_NEW(arena, json_value);
        if (rest == NULL || copy == NULL) {
            return err_nomem(err);
        }
        *copy = *m;
        copy->next = NULL;
        if (last == NULL) {
            rest->first = copy;
        } else {
            last->next = copy;
        }
        last = copy;
        rest->count++;
    }
    *out = rest;
    return TARN_OK;
}

void json_put_members(json_writer *w, const json_value *object) {
    for (const json_value *m = object != NULL ? object->first : NULL; m != NULL; m = m->next) {
        json_put_name(w, m->name);
        json_put_value(w, m);
    }
}

tarn_code properties_from_json(tarn_arena *arena, const json_value *json, const char *where,
                               tarn_properties *out, tarn_error *err) {
    tarn_properties p = {0, NULL};
    if (json == NULL) {
        *out = p;
        return TARN_OK;
    }
    if (json->kind != JSON_OBJECT || json->count > INT32_MAX) {
        return err_set(err, TARN_CORRUPT, "%s was not an object of strings", where);
    }
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, json->count);
    if (items == NULL) {
        return err_nomem(err);
    }
    for (const json_value *m = json->first; m != NULL; m = m->next) {
        tarn_str value = m->text;
        if (m->kind == JSON_BOOL) {
            value = m->boolean ? STR("true") : STR("false");
        } else if (m->kind != JSON_STRING && m->kind != JSON_NUMBER) {
            return err_set(err, TARN_CORRUPT, "%s: the value of \"%.*s\" was not a string", where,
                           STR_ARG(m->name));
        }
        items[p.count++] = (tarn_property){m->name, value};
    }
    p.items = items;
    *out = p;
    return TARN_OK;
}

void properties_put_json(const tarn_properties *p, json_writer *w) {
    json_put_object(w);
    for (int32_t i = 0; i < p->count; i++) {
        json_put_name(w, p->items[i].key);
        json_put_string(w, p->items[i].value);
    }
    json_end_object(w);
}

tarn_code properties_keys_from_json(tarn_arena *arena, const json_value *json, tarn_properties *out,
                                    tarn_error *err) {
    int32_t n = 0;
    if (json->kind != JSON_ARRAY || json->count > INT32_MAX) {
        return err_set(err, TARN_INVALID, "property keys to remove were no array");
    }
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, json->count);
    if (items == NULL) {
        return err_nomem(err);
    }
    for (const json_value *v = json->first; v != NULL; v = v->next) {
        if (!json_str(v, &items[n++].key)) {
            return err_set(err, TARN_INVALID, "a property key to remove was not a string");
        }
    }
    *out = (tarn_properties){n, items};
    return TARN_OK;
}

tarn_code properties_with(tarn_arena *arena, const tarn_properties *old, const tarn_properties *set,
                          tarn_properties *out, tarn_error *err) {
    tarn_property *items =
        ARENA_ARRAY(arena, tarn_property, (size_t)old->count + (size_t)set->count);
    tarn_map index;
    map_init(&index, arena);
    if (items == NULL) {
        return err_nomem(err);
    }
    int32_t n = 0;
    for (int32_t i = 0; i < old->count + set->count; i++) {
        const tarn_property *p = i < old->count ? &old->items[i] : &set->items[i - old->count];
        bool added;
        map_entry *e = map_put(&index, p->key, &added);
        if (e == NULL) {
            return err_nomem(err);
        }
        if (added) {
            e->value.i64 = n++;
        }
        items[e->value.i64] = *p;
    }
    *out = (tarn_properties){n, items};
    return TARN_OK;
}

tarn_code properties_without(tarn_arena *arena, const tarn_properties *old,
                             const tarn_properties *keys, tarn_properties *out, tarn_error *err) {
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)old->count);
    if (items == NULL) {
        return err_nomem(err);
    }
    int32_t n = 0;
    for (int32_t i = 0; i < old->count; i++) {
        bool gone = false;
        for (int32_t k = 0; k < keys->count && !gone; k++) {
            gone = str_eq(keys->items[k].key, old->items[i].key);
        }
        if (!gone) {
            items[n++] = old->items[i];
        }
    }
    *out = (tarn_properties){n, items};
    return TARN_OK;
}

/* ---- partition specs and sort orders ---- */

void transform_put_json(const tarn_transform *transform, json_writer *w) {
    char text[32];
    if (transform->kind == TRANSFORM_UNKNOWN) {
        json_put_string(w, transform->text);
    } else if (transform->kind == TRANSFORM_BUCKET || transform->kind == TRANSFORM_TRUNCATE) {
        snprintf(text, sizeof text, "%s[%d]", transform_name(transform->kind), transform->param);
        json_put_string(w, str_of(text));
    } else {
        json_put_string(w, str_of(transform_name(transform->kind)));
    }
}

void spec_put_fields(const tarn_spec *spec, json_writer *w) {
    json_put_array(w);
    for (int32_t i = 0; i < spec->n_fields; i++) {
        const tarn_partition_field *f = &spec->fields[i];
        json_put_object(w);
        json_member_str(w, "name", f->name);
        json_put_name(w, STR("transform"));
        transform_put_json(&f->transform, w);
        json_member_i64(w, "source-id", f->source_id);
        json_member_i64(w, "field-id", f->field_id);
        json_end_object(w);
    }
    json_end_array(w);
}

void spec_put_json(const tarn_spec *spec, json_writer *w) {
    json_put_object(w);
    json_member_i64(w, "spec-id", spec->spec_id);
    json_put_name(w, STR("fields"));
    spec_put_fields(spec, w);
    json_end_object(w);
}

/* "source-id", or v3's "source-ids" while it names one source: no transform takes more. */
static tarn_code source_id_from_json(const json_value *field, const char *where, int32_t *out,
                                     tarn_error *err) {
    const json_value *ids = json_member(field, "source-ids");
    if (json_member(field, "source-id") != NULL || ids == NULL) {
        return json_need_i32(field, "source-id", where, out, err);
    }
    if (ids->kind != JSON_ARRAY || !json_i32(ids->first, out)) {
        return err_set(err, TARN_CORRUPT, "%s: \"source-ids\" was not an array of numbers", where);
    }
    return ids->count == 1
               ? TARN_OK
               : err_set(err, TARN_UNSUPPORTED, "%s: a transform of %zu sources is not supported",
                         where, ids->count);
}

tarn_code spec_fields_from_json(tarn_arena *arena, const json_value *json, tarn_spec *out,
                                tarn_error *err) {
    static const char where[] = "partition spec";
    if (json->kind != JSON_ARRAY || json->count > LIMIT_SCHEMA_FIELDS) {
        return err_set(err, TARN_CORRUPT, "a partition spec's fields were not an array");
    }
    tarn_partition_field *fields = ARENA_ARRAY(arena, tarn_partition_field, json->count);
    if (fields == NULL) {
        return err_nomem(err);
    }
    int32_t n = 0;
    for (const json_value *j = json->first; j != NULL; j = j->next, n++) {
        tarn_str text = STR_NULL;
        tarn_partition_field *f = &fields[n];
        tarn_code code = source_id_from_json(j, where, &f->source_id, err);
        if (code == TARN_OK) { /* v1 writers left the id out: spec, "Partition Evolution" */
            code =
                json_want_i32(j, "field-id", where, TARN_FIRST_PARTITION_ID + n, &f->field_id, err);
        }
        if (code == TARN_OK) {
            code = json_need_str(j, "name", where, &f->name, err);
        }
        if (code == TARN_OK) {
            code = json_need_str(j, "transform", where, &text, err);
        }
        if (code == TARN_OK) {
            code = transform_parse(arena, text, &f->transform, err);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    out->n_fields = n;
    out->fields = fields;
    return TARN_OK;
}

tarn_code spec_from_json(tarn_arena *arena, const json_value *json, tarn_spec *out,
                         tarn_error *err) {
    tarn_spec spec = {0, 0, NULL};
    const json_value *fields = json_member(json, "fields");
    tarn_code code = json_want_i32(json, "spec-id", "partition spec", 0, &spec.spec_id, err);
    if (code == TARN_OK && fields == NULL) {
        code = err_set(err, TARN_CORRUPT, "partition spec: \"fields\" was missing");
    }
    if (code == TARN_OK) {
        code = spec_fields_from_json(arena, fields, &spec, err);
    }
    if (code == TARN_OK) {
        *out = spec;
    }
    return code;
}

void sort_order_put_json(const tarn_sort_order *order, json_writer *w) {
    json_put_object(w);
    json_member_i64(w, "order-id", order->order_id);
    json_put_name(w, STR("fields"));
    json_put_array(w);
    for (int32_t i = 0; i < order->n_fields; i++) {
        const tarn_sort_field *f = &order->fields[i];
        json_put_object(w);
        json_put_name(w, STR("transform"));
        transform_put_json(&f->transform, w);
        json_member_i64(w, "source-id", f->source_id);
        json_member_str(w, "direction", f->descending ? STR("desc") : STR("asc"));
        json_member_str(w, "null-order", f->nulls_last ? STR("nulls-last") : STR("nulls-first"));
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

static tarn_code sort_field_from_json(tarn_arena *arena, const json_value *json, tarn_sort_field *f,
                                      tarn_error *err) {
    static const char where[] = "sort order";
    tarn_str text = STR_NULL, direction = STR_NULL, nulls = STR_NULL;
    tarn_code code = source_id_from_json(json, where, &f->source_id, err);
    if (code == TARN_OK) {
        code = json_need_str(json, "transform", where, &text, err);
    }
    if (code == TARN_OK) {
        code = json_need_str(json, "direction", where, &direction, err);
    }
    if (code == TARN_OK) {
        code = json_need_str(json, "null-order", where, &nulls, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    f->descending = str_eq_nocase(direction, STR("desc"));
    f->nulls_last = str_eq_nocase(nulls, STR("nulls-last"));
    if ((!f->descending && !str_eq_nocase(direction, STR("asc"))) ||
        (!f->nulls_last && !str_eq_nocase(nulls, STR("nulls-first")))) {
        return err_set(err, TARN_CORRUPT, "sort order: direction \"%.*s\", null order \"%.*s\"",
                       STR_ARG(direction), STR_ARG(nulls));
    }
    return transform_parse(arena, text, &f->transform, err);
}

tarn_code sort_order_from_json(tarn_arena *arena, const json_value *json, tarn_sort_order *out,
                               tarn_error *err) {
    tarn_sort_order order = {0, 0, NULL};
    const json_value *fields = json_member(json, "fields");
    tarn_code code = json_need_i32(json, "order-id", "sort order", &order.order_id, err);
    if (code != TARN_OK) {
        return code;
    }
    if (!json_is(fields, JSON_ARRAY) || fields->count > LIMIT_SCHEMA_FIELDS) {
        return err_set(err, TARN_CORRUPT, "sort order: \"fields\" was not an array");
    }
    tarn_sort_field *items = ARENA_ARRAY(arena, tarn_sort_field, fields->count);
    if (items == NULL) {
        return err_nomem(err);
    }
    for (const json_value *j = fields->first; j != NULL && code == TARN_OK; j = j->next) {
        code = sort_field_from_json(arena, j, &items[order.n_fields++], err);
    }
    if (code == TARN_OK) {
        order.fields = items;
        *out = order;
    }
    return code;
}

/* ---- snapshots and references ---- */

static const char *const snapshot_members[] = {"snapshot-id",
                                               "parent-snapshot-id",
                                               "sequence-number",
                                               "timestamp-ms",
                                               "summary",
                                               "manifest-list",
                                               "manifests",
                                               "schema-id",
                                               "first-row-id",
                                               "added-rows",
                                               NULL};

static tarn_code inline_manifests(tarn_arena *arena, const json_value *json, const char *where,
                                  tarn_snapshot *s, tarn_error *err) {
    const json_value *array = NULL;
    tarn_code code = json_want_array(json, "manifests", where, &array, err);
    if (code != TARN_OK || array == NULL) {
        return code;
    }
    tarn_str *paths = ARENA_ARRAY(arena, tarn_str, array->count);
    if (paths == NULL) {
        return err_nomem(err);
    }
    for (const json_value *j = array->first; j != NULL; j = j->next) {
        if (!json_str(j, &paths[s->n_manifests++])) {
            return err_set(err, TARN_CORRUPT, "%s: a manifest's path was not a string", where);
        }
    }
    s->manifests = paths;
    return TARN_OK;
}

tarn_code snapshot_from_json(tarn_arena *arena, const json_value *json, tarn_snapshot *out,
                             tarn_error *err) {
    tarn_snapshot s;
    memset(&s, 0, sizeof s);
    char where[48] = "snapshot";
    tarn_code code = TARN_OK;
    if (!json_is(json, JSON_OBJECT)) {
        return err_set(err, TARN_CORRUPT, "a snapshot was not an object");
    }
    TRY(json_need_i64(json, "snapshot-id", where, &s.snapshot_id, err));
    snprintf(where, sizeof where, "snapshot %lld", (long long)s.snapshot_id);
    TRY(json_want_i64(json, "parent-snapshot-id", where, TARN_NO_SNAPSHOT, &s.parent_id, err));
    TRY(json_want_i64(json, "sequence-number", where, 0, &s.sequence_number, err));
    TRY(json_need_i64(json, "timestamp-ms", where, &s.timestamp_ms, err));
    TRY(json_want_i32(json, "schema-id", where, -1, &s.schema_id, err));
    TRY(json_want_i64(json, "first-row-id", where, -1, &s.first_row_id, err));
    TRY(json_want_i64(json, "added-rows", where, -1, &s.added_rows, err));
    TRY(properties_from_json(arena, json_member(json, "summary"), where, &s.summary, err));
    if (json_member(json, "manifest-list") != NULL) {
        TRY(json_need_str(json, "manifest-list", where, &s.manifest_list, err));
    } else {
        TRY(inline_manifests(arena, json, where, &s, err));
    }
    TRY(json_unknown(arena, json, snapshot_members, &s.extra, err));
    if (s.sequence_number < 0) {
        TRY(err_set(err, TARN_CORRUPT, "%s: sequence number %lld was negative", where,
                    (long long)s.sequence_number));
    }
    *out = s;
done:
    return code;
}

static void put_summary(const tarn_properties *summary, json_writer *w) {
    tarn_str operation;
    json_put_name(w, STR("summary"));
    json_put_object(w);
    /* Readers insist on an operation; "overwrite" is what Java takes a summary without one for. */
    if (!properties_get(summary, "operation", &operation)) {
        operation = STR("overwrite");
    }
    json_member_str(w, "operation", operation);
    for (int32_t i = 0; i < summary->count; i++) {
        if (!str_is(summary->items[i].key, "operation")) {
            json_put_name(w, summary->items[i].key);
            json_put_string(w, summary->items[i].value);
        }
    }
    json_end_object(w);
}

void snapshot_put_json(const tarn_snapshot *s, int32_t format_version, json_writer *w) {
    json_put_object(w);
    if (format_version > 1 || s->sequence_number > 0) {
        json_member_i64(w, "sequence-number", s->sequence_number);
    }
    json_member_i64(w, "snapshot-id", s->snapshot_id);
    if (s->parent_id != TARN_NO_SNAPSHOT) {
        json_member_i64(w, "parent-snapshot-id", s->parent_id);
    }
    json_member_i64(w, "timestamp-ms", s->timestamp_ms);
    if (s->summary.count > 0) {
        put_summary(&s->summary, w);
    }
    if (s->manifest_list.len > 0) {
        json_member_str(w, "manifest-list", s->manifest_list);
    } else {
        json_put_name(w, STR("manifests"));
        json_put_array(w);
        for (int32_t i = 0; i < s->n_manifests; i++) {
            json_put_string(w, s->manifests[i]);
        }
        json_end_array(w);
    }
    if (s->schema_id >= 0) {
        json_member_i64(w, "schema-id", s->schema_id);
    }
    if (s->first_row_id >= 0) {
        json_member_i64(w, "first-row-id", s->first_row_id);
    }
    if (s->added_rows >= 0) {
        json_member_i64(w, "added-rows", s->added_rows);
    }
    json_put_members(w, s->extra);
    json_end_object(w);
}

tarn_code ref_from_json(const json_value *json, tarn_str name, tarn_ref *out, tarn_error *err) {
    tarn_ref ref = {name, 0, false, -1, -1, -1};
    tarn_str type = STR_NULL;
    static const char where[] = "snapshot reference";
    tarn_code code = TARN_OK;
    if (!json_is(json, JSON_OBJECT)) {
        return err_set(err, TARN_CORRUPT, "reference %.*s was not an object", STR_ARG(name));
    }
    TRY(json_need_i64(json, "snapshot-id", where, &ref.snapshot_id, err));
    TRY(json_need_str(json, "type", where, &type, err));
    TRY(json_want_i64(json, "max-ref-age-ms", where, -1, &ref.max_ref_age_ms, err));
    TRY(json_want_i64(json, "max-snapshot-age-ms", where, -1, &ref.max_snapshot_age_ms, err));
    TRY(json_want_i32(json, "min-snapshots-to-keep", where, -1, &ref.min_snapshots_to_keep, err));
    ref.is_tag = str_eq_nocase(type, STR("tag"));
    if (!ref.is_tag && !str_eq_nocase(type, STR("branch"))) {
        TRY(err_set(err, TARN_CORRUPT, "reference %.*s was of type \"%.*s\"", STR_ARG(name),
                    STR_ARG(type)));
    }
    *out = ref;
done:
    return code == TARN_OK ? code : err_add(err, code, "reference %.*s", STR_ARG(name));
}

void ref_put_members(const tarn_ref *ref, json_writer *w) {
    json_member_i64(w, "snapshot-id", ref->snapshot_id);
    json_member_str(w, "type", ref->is_tag ? STR("tag") : STR("branch"));
    if (ref->max_ref_age_ms >= 0) {
        json_member_i64(w, "max-ref-age-ms", ref->max_ref_age_ms);
    }
    if (ref->max_snapshot_age_ms >= 0) {
        json_member_i64(w, "max-snapshot-age-ms", ref->max_snapshot_age_ms);
    }
    if (ref->min_snapshots_to_keep >= 0) {
        json_member_i64(w, "min-snapshots-to-keep", ref->min_snapshots_to_keep);
    }
}
