/* iceberg/change_json.c - change sets as the REST catalog sends them (REST specification,
 * CommitTableRequest: TableRequirement, TableUpdate), both ways. */
#include "iceberg/change.h"
#include "iceberg/metadata_int.h"

/* How each kind is called, and by which member it carries what it carries. */
typedef enum payload {
    PAYLOAD_TEXT,
    PAYLOAD_NUMBER,
    PAYLOAD_SCHEMA,
    PAYLOAD_SPEC,
    PAYLOAD_ORDER,
    PAYLOAD_SNAPSHOT,
    PAYLOAD_REF,
    PAYLOAD_PAIRS,
    PAYLOAD_KEYS,
    PAYLOAD_IDS,
    PAYLOAD_ONE_ID,
    PAYLOAD_JSON
} payload;

static const struct {
    change_kind kind;
    const char *action;
    payload payload;
    const char *member;
    const char *old_member; /* of earlier clients */
} actions[] = {
    {CHANGE_ASSIGN_UUID, "assign-uuid", PAYLOAD_TEXT, "uuid", NULL},
    {CHANGE_UPGRADE_FORMAT_VERSION, "upgrade-format-version", PAYLOAD_NUMBER, "format-version",
     NULL},
    {CHANGE_ADD_SCHEMA, "add-schema", PAYLOAD_SCHEMA, "schema", NULL},
    {CHANGE_SET_CURRENT_SCHEMA, "set-current-schema", PAYLOAD_NUMBER, "schema-id", NULL},
    {CHANGE_ADD_SPEC, "add-spec", PAYLOAD_SPEC, "spec", NULL},
    {CHANGE_SET_DEFAULT_SPEC, "set-default-spec", PAYLOAD_NUMBER, "spec-id", NULL},
    {CHANGE_ADD_SORT_ORDER, "add-sort-order", PAYLOAD_ORDER, "sort-order", NULL},
    {CHANGE_SET_DEFAULT_SORT_ORDER, "set-default-sort-order", PAYLOAD_NUMBER, "sort-order-id",
     NULL},
    {CHANGE_ADD_SNAPSHOT, "add-snapshot", PAYLOAD_SNAPSHOT, "snapshot", NULL},
    {CHANGE_SET_SNAPSHOT_REF, "set-snapshot-ref", PAYLOAD_REF, "ref-name", NULL},
    {CHANGE_REMOVE_SNAPSHOTS, "remove-snapshots", PAYLOAD_IDS, "snapshot-ids", NULL},
    {CHANGE_REMOVE_SNAPSHOT_REF, "remove-snapshot-ref", PAYLOAD_TEXT, "ref-name", NULL},
    {CHANGE_SET_LOCATION, "set-location", PAYLOAD_TEXT, "location", NULL},
    {CHANGE_SET_PROPERTIES, "set-properties", PAYLOAD_PAIRS, "updates", "updated"},
    {CHANGE_REMOVE_PROPERTIES, "remove-properties", PAYLOAD_KEYS, "removals", "removed"},
    {CHANGE_REMOVE_PARTITION_SPECS, "remove-partition-specs", PAYLOAD_IDS, "spec-ids", NULL},
    {CHANGE_REMOVE_SCHEMAS, "remove-schemas", PAYLOAD_IDS, "schema-ids", NULL},
    {CHANGE_SET_STATISTICS, "set-statistics", PAYLOAD_JSON, "statistics", NULL},
    {CHANGE_REMOVE_STATISTICS, "remove-statistics", PAYLOAD_ONE_ID, "snapshot-id", NULL},
    {CHANGE_SET_PARTITION_STATISTICS, "set-partition-statistics", PAYLOAD_JSON,
     "partition-statistics", NULL},
    {CHANGE_REMOVE_PARTITION_STATISTICS, "remove-partition-statistics", PAYLOAD_ONE_ID,
     "snapshot-id", NULL},
    {CHANGE_ADD_ENCRYPTION_KEY, "add-encryption-key", PAYLOAD_JSON, "encryption-key", NULL},
    {CHANGE_REMOVE_ENCRYPTION_KEY, "remove-encryption-key", PAYLOAD_TEXT, "key-id", NULL},
};
#define N_ACTIONS (sizeof actions / sizeof actions[0])

static const struct {
    requirement_kind kind;
    const char *type;
    const char *member; /* NULL: none */
} demands[] = {
    {REQUIRE_CREATE, "assert-create", NULL},
    {REQUIRE_UUID, "assert-table-uuid", "uuid"},
    {REQUIRE_REF_SNAPSHOT_ID, "assert-ref-snapshot-id", "snapshot-id"},
    {REQUIRE_LAST_ASSIGNED_FIELD_ID, "assert-last-assigned-field-id", "last-assigned-field-id"},
    {REQUIRE_CURRENT_SCHEMA_ID, "assert-current-schema-id", "current-schema-id"},
    {REQUIRE_LAST_ASSIGNED_PARTITION_ID, "assert-last-assigned-partition-id",
     "last-assigned-partition-id"},
    {REQUIRE_DEFAULT_SPEC_ID, "assert-default-spec-id", "default-spec-id"},
    {REQUIRE_DEFAULT_SORT_ORDER_ID, "assert-default-sort-order-id", "default-sort-order-id"},
};
#define N_DEMANDS (sizeof demands / sizeof demands[0])

/* ---- writing ---- */

static void put_requirement(const tarn_requirement *r, json_writer *w) {
    const char *member = NULL;
    json_put_object(w);
    for (size_t i = 0; i < N_DEMANDS; i++) {
        if (demands[i].kind == r->kind) {
            json_member_str(w, "type", str_of(demands[i].type));
            member = demands[i].member;
        }
    }
    if (r->kind == REQUIRE_UUID) {
        json_member_str(w, member, r->text);
    } else if (r->kind == REQUIRE_REF_SNAPSHOT_ID) {
        json_member_str(w, "ref", r->text);
        json_put_name(w, str_of(member));
        if (r->number == TARN_NO_SNAPSHOT) {
            json_put_null(w); /* "the reference must not exist" (B31) */
        } else {
            json_put_i64(w, r->number);
        }
    } else if (member != NULL) {
        json_member_i64(w, member, r->number);
    }
    json_end_object(w);
}

static void put_keys(const tarn_properties *p, json_writer *w) {
    json_put_array(w);
    for (int32_t i = 0; i < p->count; i++) {
        json_put_string(w, p->items[i].key);
    }
    json_end_array(w);
}

static void put_ids(const tarn_change *c, json_writer *w) {
    json_put_array(w);
    for (int32_t i = 0; i < c->n_ids; i++) {
        json_put_i64(w, c->ids[i]);
    }
    json_end_array(w);
}

static void put_payload(const tarn_change *c, payload kind, int32_t version, json_writer *w) {
    switch (kind) {
    case PAYLOAD_TEXT:
        json_put_string(w, c->text);
        break;
    case PAYLOAD_NUMBER:
        json_put_i64(w, c->number);
        break;
    case PAYLOAD_SCHEMA:
        schema_put_json(c->schema, w);
        if (c->number > 0) {
            json_member_i64(w, "last-column-id", c->number);
        }
        break;
    case PAYLOAD_SPEC:
        spec_put_json(c->spec, w);
        break;
    case PAYLOAD_ORDER:
        sort_order_put_json(c->sort_order, w);
        break;
    case PAYLOAD_SNAPSHOT:
        snapshot_put_json(c->snapshot, version, w);
        break;
    case PAYLOAD_REF:
        json_put_string(w, c->ref.name);
        ref_put_members(&c->ref, w);
        break;
    case PAYLOAD_PAIRS:
        properties_put_json(&c->properties, w);
        break;
    case PAYLOAD_KEYS:
        put_keys(&c->properties, w);
        break;
    case PAYLOAD_IDS:
        put_ids(c, w);
        break;
    case PAYLOAD_ONE_ID:
        json_put_i64(w, c->n_ids > 0 ? c->ids[0] : 0);
        break;
    case PAYLOAD_JSON:
        json_put_value(w, c->json);
        break;
    }
}

static void put_change(const tarn_change *c, json_writer *w) {
    json_put_object(w);
    for (size_t i = 0; i < N_ACTIONS; i++) {
        if (actions[i].kind != c->kind) {
            continue;
        }
        json_member_str(w, "action", str_of(actions[i].action));
        if (c->kind == CHANGE_SET_STATISTICS) { /* still asked for by older servers */
            int64_t id;
            if (json_i64(json_get(c->json, "snapshot-id"), &id)) {
                json_member_i64(w, "snapshot-id", id);
            }
        }
        json_put_name(w, str_of(actions[i].member));
        /* A snapshot of version 1 has sequence number 0, and says none. */
        put_payload(c, actions[i].payload, 1, w);
    }
    json_end_object(w);
}

void change_set_put_members(const tarn_change_set *set, json_writer *w) {
    json_put_name(w, STR("requirements"));
    json_put_array(w);
    for (int32_t i = 0; i < set->n_requirements; i++) {
        put_requirement(&set->requirements[i], w);
    }
    json_end_array(w);
    json_put_name(w, STR("updates"));
    json_put_array(w);
    for (int32_t i = 0; i < set->n_changes; i++) {
        put_change(&set->changes[i], w);
    }
    json_end_array(w);
}

tarn_code change_set_put_json(const tarn_change_set *set, json_writer *w, tarn_error *err) {
    (void)err; /* the writer keeps its own */
    json_put_object(w);
    change_set_put_members(set, w);
    json_end_object(w);
    return w->code;
}

/* ---- reading ---- */

static tarn_code requirement_from_json(const json_value *j, tarn_requirement *r, tarn_error *err) {
    tarn_str type;
    const char *member = NULL;
    size_t i = 0;
    tarn_code code = json_need_str(j, "type", "requirement", &type, err);
    if (code != TARN_OK) {
        return code;
    }
    while (i < N_DEMANDS && !str_is(type, demands[i].type)) {
        i++;
    }
    if (i == N_DEMANDS) {
        return err_set(err, TARN_INVALID, "requirement \"%.*s\" is unknown", STR_ARG(type));
    }
    r->kind = demands[i].kind;
    member = demands[i].member;
    if (r->kind == REQUIRE_UUID) {
        return json_need_str(j, member, demands[i].type, &r->text, err);
    }
    if (r->kind == REQUIRE_REF_SNAPSHOT_ID) {
        code = json_need_str(j, "ref", demands[i].type, &r->text, err);
        return code == TARN_OK
                   ? json_want_i64(j, member, demands[i].type, TARN_NO_SNAPSHOT, &r->number, err)
                   : code;
    }
    return member == NULL ? TARN_OK : json_need_i64(j, member, demands[i].type, &r->number, err);
}

static tarn_code ids_from_json(tarn_arena *arena, const json_value *j, tarn_change *c,
                               tarn_error *err) {
    bool one = j->kind == JSON_NUMBER;
    int64_t *ids = ARENA_ARRAY(arena, int64_t, one ? 1 : j->count);
    if (ids == NULL) {
        return err_nomem(err);
    }
    for (const json_value *v = one ? j : j->first; v != NULL; v = one ? NULL : v->next) {
        if (!json_i64(v, &ids[c->n_ids++])) {
            return err_set(err, TARN_INVALID, "an id to remove was not a whole number");
        }
    }
    c->ids = ids;
    return TARN_OK;
}

static tarn_code parts_from_json(tarn_arena *arena, const json_value *j, payload kind,
                                 tarn_change *c, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (kind == PAYLOAD_SCHEMA) {
        return schema_from_json(arena, j, &c->schema, err);
    }
    if (kind == PAYLOAD_SPEC) {
        tarn_spec *spec = ARENA_NEW(arena, tarn_spec);
        code = spec != NULL ? spec_from_json(arena, j, spec, err) : err_nomem(err);
        c->spec = spec;
    } else if (kind == PAYLOAD_ORDER) {
        tarn_sort_order *order = ARENA_NEW(arena, tarn_sort_order);
        code = order != NULL ? sort_order_from_json(arena, j, order, err) : err_nomem(err);
        c->sort_order = order;
    } else {
        tarn_snapshot *snapshot = ARENA_NEW(arena, tarn_snapshot);
        code = snapshot != NULL ? snapshot_from_json(arena, j, snapshot, err) : err_nomem(err);
        c->snapshot = snapshot;
    }
    return code;
}

static tarn_code payload_from_json(tarn_arena *arena, const json_value *change, size_t action,
                                   tarn_change *c, tarn_error *err) {
    const char *member = actions[action].member, *name = actions[action].action;
    const json_value *j = json_member(change, member);
    if (j == NULL && actions[action].old_member != NULL) {
        j = json_member(change, actions[action].old_member);
    }
    if (j == NULL) {
        return err_set(err, TARN_INVALID, "%s: \"%s\" was missing", name, member);
    }
    switch (actions[action].payload) {
    case PAYLOAD_TEXT:
        return json_need_str(change, member, name, &c->text, err);
    case PAYLOAD_NUMBER:
        return json_need_i32(change, member, name, &c->number, err);
    case PAYLOAD_SCHEMA:
    case PAYLOAD_SPEC:
    case PAYLOAD_ORDER:
    case PAYLOAD_SNAPSHOT:
        if (j->kind != JSON_OBJECT) {
            break;
        }
        return parts_from_json(arena, j, actions[action].payload, c, err);
    case PAYLOAD_REF:
        return j->kind == JSON_STRING ? ref_from_json(change, j->text, &c->ref, err)
                                      : json_need_str(change, member, name, &c->text, err);
    case PAYLOAD_PAIRS:
        return properties_from_json(arena, j, name, &c->properties, err);
    case PAYLOAD_KEYS:
        return properties_keys_from_json(arena, j, &c->properties, err);
    case PAYLOAD_IDS:
    case PAYLOAD_ONE_ID:
        if (j->kind != (actions[action].payload == PAYLOAD_IDS ? JSON_ARRAY : JSON_NUMBER)) {
            break;
        }
        return ids_from_json(arena, j, c, err);
    case PAYLOAD_JSON:
        if (j->kind != JSON_OBJECT) {
            break;
        }
        c->json = j;
        return TARN_OK;
    }
    return err_set(err, TARN_INVALID, "%s: \"%s\" was of the wrong kind", name, member);
}

static tarn_code change_from_json(tarn_arena *arena, const json_value *j, tarn_change *c,
                                  tarn_error *err) {
    tarn_str action;
    tarn_code code = json_need_str(j, "action", "update", &action, err);
    for (size_t i = 0; code == TARN_OK && i < N_ACTIONS; i++) {
        if (str_is(action, actions[i].action)) {
            c->kind = actions[i].kind;
            code = payload_from_json(arena, j, i, c, err);
            if (code == TARN_OK && c->kind == CHANGE_ADD_SCHEMA) {
                code = json_want_i32(j, "last-column-id", "add-schema", 0, &c->number, err);
            }
            return code;
        }
    }
    return code != TARN_OK
               ? code
               : err_set(err, TARN_INVALID, "update \"%.*s\" is unknown", STR_ARG(action));
}

/* What a client sends is an argument, not stored bytes: what is wrong with it is INVALID. */
static tarn_code as_invalid(tarn_code code, tarn_error *err) {
    if (code == TARN_CORRUPT) {
        if (err != NULL) {
            err->code = TARN_INVALID;
        }
        return TARN_INVALID;
    }
    return code;
}

tarn_code change_set_from_json(tarn_arena *arena, const json_value *json, tarn_change_set *out,
                               tarn_error *err) {
    const json_value *requirements = NULL, *updates = NULL;
    tarn_requirement *r = NULL;
    tarn_change *c = NULL;
    int32_t n = 0;
    tarn_code code = TARN_OK;
    TRY(json_want_array(json, "requirements", "change set", &requirements, err));
    TRY(json_want_array(json, "updates", "change set", &updates, err));
    r = ARENA_ARRAY(arena, tarn_requirement, requirements != NULL ? requirements->count : 0);
    c = ARENA_ARRAY(arena, tarn_change, updates != NULL ? updates->count : 0);
    if (r == NULL || c == NULL) {
        TRY(err_nomem(err));
    }
    for (const json_value *j = requirements != NULL ? requirements->first : NULL; j != NULL;
         j = j->next) {
        TRY(requirement_from_json(j, &r[n++], err));
    }
    int32_t n_requirements = n;
    n = 0;
    for (const json_value *j = updates != NULL ? updates->first : NULL; j != NULL; j = j->next) {
        TRY(change_from_json(arena, j, &c[n++], err));
    }
    *out = (tarn_change_set){n_requirements, r, n, c};
done:
    return as_invalid(code, err);
}

tarn_code change_set_create(tarn_arena *arena, const tarn_metadata *m, tarn_change_set *out,
                            tarn_error *err) {
    tarn_requirement *r = ARENA_NEW(arena, tarn_requirement);
    tarn_change *c = ARENA_ARRAY(arena, tarn_change, 10);
    int32_t n = 0;
    if (r == NULL || c == NULL) {
        return err_nomem(err);
    }
    r->kind = REQUIRE_CREATE;
    if (m->table_uuid.len > 0) {
        c[n++] = (tarn_change){.kind = CHANGE_ASSIGN_UUID, .text = m->table_uuid};
    }
    c[n++] = (tarn_change){.kind = CHANGE_UPGRADE_FORMAT_VERSION, .number = m->format_version};
    c[n++] = (tarn_change){
        .kind = CHANGE_ADD_SCHEMA, .schema = metadata_schema(m), .number = m->last_column_id};
    c[n++] = (tarn_change){.kind = CHANGE_SET_CURRENT_SCHEMA, .number = -1};
    c[n++] = (tarn_change){.kind = CHANGE_ADD_SPEC, .spec = metadata_spec(m)};
    c[n++] = (tarn_change){.kind = CHANGE_SET_DEFAULT_SPEC, .number = -1};
    if (metadata_sort_order(m) != NULL) {
        c[n++] = (tarn_change){.kind = CHANGE_ADD_SORT_ORDER, .sort_order = metadata_sort_order(m)};
        c[n++] = (tarn_change){.kind = CHANGE_SET_DEFAULT_SORT_ORDER, .number = -1};
    }
    c[n++] = (tarn_change){.kind = CHANGE_SET_LOCATION, .text = m->location};
    if (m->properties.count > 0) {
        c[n++] = (tarn_change){.kind = CHANGE_SET_PROPERTIES, .properties = m->properties};
    }
    *out = (tarn_change_set){1, r, n, c};
    return TARN_OK;
}
