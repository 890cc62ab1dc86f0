/* catalog/remote_commit.c - what creates and changes tables of a REST catalog.
 *
 * Invariants of a commit
 * 1. An answer of the server is believed: 2xx is COMMITTED, a refusal (4xx) of the first request
 *    NOT_COMMITTED.
 * 2. No answer, 5xx, or one that cannot be read leaves it open, and so does a refusal of a request
 *    that came after such a one: it may be refused because the first was taken. Then the table is
 *    loaded. What we wanted is there: COMMITTED. Else the commit is sent again, and comes to the
 * same whether the first still arrives or not, since a snapshot's id can be added once. Our
 * snapshot is not there, a requirement of ours does not hold any more, and that was the clear
 * answer to the last sending too: NOT_COMMITTED, for it can never be taken. (Where it was not the
 * answer, we ask again: a server may take what is stale.) Where the server is away it is waited
 * for, if that is wanted, and looked at then. Else UNKNOWN.
 * 3. A commit is taken on its base or not at all, by servers of tarn too (REMOTE_EXACT). */
#include "base/limits.h"
#include "catalog/catalog_rest_int.h"

#define ONE_TABLE     "namespaces/{namespace}/tables/{table}"
#define TRIES         5
#define FIRST_WAIT_MS 100
#define MAY_BE_UNSEEN 2

typedef struct remote_work {
    remote_catalog *self;
    tarn_arena arena;
    const tarn_ident *table;
    const char *label, *path;
    tarn_table_version *base; /* NULL: a new table */
    const tarn_change_set *set;
    tarn_buf body;
    char key[37]; /* of a table that is made */
    catalog_outage outage;
} remote_work;

/* ---- is it there? ---- */

static bool has_all_snapshots(const tarn_change_set *set, const tarn_metadata *m) {
    for (int32_t i = 0; i < set->n_changes; i++) {
        if (set->changes[i].kind == CHANGE_ADD_SNAPSHOT &&
            metadata_snapshot_by_id(m, set->changes[i].snapshot->snapshot_id) == NULL) {
            return false;
        }
    }
    return true;
}

static bool has_properties(const tarn_change *c, const tarn_metadata *m) {
    bool set = c->kind == CHANGE_SET_PROPERTIES;
    for (int32_t i = 0; i < c->properties.count; i++) {
        tarn_property want = c->properties.items[i];
        bool found = false;
        bool same = false;
        for (int32_t j = 0; j < m->properties.count && !found; j++) {
            found = str_eq(m->properties.items[j].key, want.key);
            same = found && str_eq(m->properties.items[j].value, want.value);
        }
        if (set ? !same : found) {
            return false;
        }
    }
    return true;
}

static bool has_no_snapshots(const tarn_change *c, const tarn_metadata *m) {
    for (int32_t i = 0; i < c->n_ids; i++) {
        if (metadata_snapshot_by_id(m, c->ids[i]) != NULL) {
            return false;
        }
    }
    return true;
}

/* The schema, spec and order that are current, as text. */
static bool put_shape(remote_work *w, const tarn_metadata *m, tarn_str *out) {
    tarn_buf text;
    json_writer j;
    buf_init(&text, w->arena.env, 0);
    json_begin(&j, &text, false, NULL);
    json_put_array(&j);
    schema_put_json(metadata_schema(m), &j);
    spec_put_json(metadata_spec(m), &j);
    if (metadata_sort_order(m) != NULL) {
        sort_order_put_json(metadata_sort_order(m), &j);
    }
    json_end_array(&j);
    bool whole = json_end(&j) == TARN_OK;
    *out = whole ? arena_str(&w->arena, buf_str(&text)) : STR_NULL;
    buf_release(&text);
    return out->data != NULL;
}

static bool has_shape(remote_work *w, const tarn_metadata *want, const tarn_metadata *m) {
    tarn_str a;
    tarn_str b;
    return want != NULL && put_shape(w, want, &a) && put_shape(w, m, &b) && str_eq(a, b);
}

static bool has_ref(const tarn_change *c, const tarn_metadata *m) {
    const tarn_ref *ref = metadata_ref(m, c->ref.name);
    return ref != NULL && ref->snapshot_id == c->ref.snapshot_id;
}

/* want: the base with all changes; NULL: not known. */
static bool has_change(remote_work *w, const tarn_change *c, const tarn_metadata *want,
                       const tarn_metadata *m) {
    switch (c->kind) {
    case CHANGE_ASSIGN_UUID:
        return str_eq(m->table_uuid, c->text);
    case CHANGE_UPGRADE_FORMAT_VERSION:
        return m->format_version >= c->number;
    case CHANGE_ADD_SCHEMA:
    case CHANGE_SET_CURRENT_SCHEMA:
    case CHANGE_ADD_SPEC:
    case CHANGE_SET_DEFAULT_SPEC:
    case CHANGE_ADD_SORT_ORDER:
    case CHANGE_SET_DEFAULT_SORT_ORDER:
        return has_shape(w, want, m);
    case CHANGE_SET_SNAPSHOT_REF:
        return has_ref(c, m);
    case CHANGE_REMOVE_SNAPSHOT_REF:
        return metadata_ref(m, c->text) == NULL;
    case CHANGE_REMOVE_SNAPSHOTS:
        return has_no_snapshots(c, m);
    case CHANGE_SET_LOCATION:
        return str_eq(m->location, c->text);
    case CHANGE_SET_PROPERTIES:
    case CHANGE_REMOVE_PROPERTIES:
        return has_properties(c, m);
    case CHANGE_ADD_SNAPSHOT:
        return metadata_snapshot_by_id(m, c->snapshot->snapshot_id) != NULL;
    case CHANGE_REMOVE_PARTITION_SPECS:
    case CHANGE_REMOVE_SCHEMAS:
    case CHANGE_SET_STATISTICS:
    case CHANGE_REMOVE_STATISTICS:
    case CHANGE_SET_PARTITION_STATISTICS:
    case CHANGE_REMOVE_PARTITION_STATISTICS:
    case CHANGE_ADD_ENCRYPTION_KEY:
    case CHANGE_REMOVE_ENCRYPTION_KEY:
        return false;
    }
    return false;
}

static bool is_visible(remote_work *w, const tarn_metadata *m) {
    const tarn_metadata *want = NULL;
    if (change_set_count(w->set, CHANGE_ADD_SNAPSHOT) > 0) {
        return has_all_snapshots(w->set, m);
    }
    if (w->base == NULL) { /* a new table's uuid is nobody else's */
        for (int32_t i = 0; i < w->set->n_changes; i++) {
            if (w->set->changes[i].kind == CHANGE_ASSIGN_UUID) {
                return str_eq(m->table_uuid, w->set->changes[i].text);
            }
        }
        return false;
    }
    if (change_apply(&w->arena, w->base->metadata, w->set, env_now_ms(w->arena.env), &want, NULL) !=
        TARN_OK) {
        want = NULL;
    }
    for (int32_t i = 0; i < w->set->n_changes; i++) {
        if (!has_change(w, &w->set->changes[i], want, m)) {
            return false;
        }
    }
    return true;
}

typedef enum verdict { TAKEN, REFUSED, OPEN, UNSEEN, NOBODY_KNOWS } verdict;

/* After a request without a clear answer (invariant 2). *now: what is there, for TAKEN; why: for
 * UNSEEN. */
static verdict look_again(remote_work *w, tarn_table_version **now, tarn_error *why) {
    remote_catalog *self = w->self;
    remote_cache_drop(self, w->path);
    tarn_code code = remote_load(&self->base, w->table, now, why);
    if (code == TARN_NOT_FOUND) {
        return w->base == NULL ? OPEN : NOBODY_KNOWS;
    }
    if (code != TARN_OK) {
        return UNSEEN;
    }
    if (is_visible(w, (*now)->metadata)) {
        return TAKEN;
    }
    if (w->base != NULL && str_eq((*now)->metadata_location, w->base->metadata_location)) {
        return OPEN;
    }
    if (change_set_count(w->set, CHANGE_ADD_SNAPSHOT) == 0 && w->base != NULL) {
        return NOBODY_KNOWS; /* done, and undone since? */
    }
    return change_check((*now)->metadata, w->set, NULL) == TARN_OK ? OPEN : REFUSED;
}

/* ---- committing ---- */

static tarn_code send_commit(remote_work *w, tarn_table_version **out, remote_reply *reply,
                             tarn_error *err) {
    tarn_code code;
    tarn_table_version *version = table_version_new(w->arena.env);
    if (version == NULL) {
        *reply = (remote_reply){0};
        return err_nomem(err);
    }
    const remote_request request = {.method = "POST",
                                    .endpoint = ONE_TABLE,
                                    .path = w->path,
                                    .body = buf_str(&w->body),
                                    .waited = true,
                                    .exact = true};
    TRY(remote_send(w->self->client, &version->arena, &request, reply, err));
    code = remote_take_version(w->self, version, reply->json, w->label, err);
    if (code != TARN_OK) { /* it was taken, but by what it was answered nothing can be said of it */
        reply->unclear = true;
        goto done;
    }
    remote_cache_put(w->self, w->path, reply->etag, version);
    *out = version;
    version = NULL;
done:
    table_version_release(version);
    return code;
}

static tarn_code settle(remote_work *w, tarn_outcome_kind *outcome, tarn_table_version **out,
                        tarn_error *err) {
    bool unclear = false;
    bool refused = false; /* by the last answer that was clear */
    verdict seen = OPEN;
    int unseen = 0;
    tarn_error cause = TARN_ERROR_INIT;
    tarn_error why = TARN_ERROR_INIT;
    for (int i = 0; i < TRIES && seen != NOBODY_KNOWS; i++) {
        tarn_table_version *now = NULL;
        if (seen == OPEN) {
            remote_reply reply;
            tarn_code code = send_commit(w, out, &reply, &cause);
            unclear = unclear || reply.unclear;
            refused = code == TARN_CONFLICT && !reply.unclear;
            *outcome = code == TARN_OK ? TARN_COMMITTED : TARN_NOT_COMMITTED;
            if (code == TARN_OK || !unclear) {
                return code == TARN_OK
                           ? TARN_OK
                           : err_as(err, err_set(err, code, "%s", cause.message), &cause);
            }
        }
        seen = look_again(w, &now, &why);
        if (seen == TAKEN) {
            *outcome = TARN_COMMITTED;
            *out = now;
            return TARN_OK;
        }
        table_version_release(now);
        if (seen == UNSEEN && catalog_wait(&w->self->base, &w->outage, &why)) {
            i = -1; /* as if it had not been away */
            unseen = 0;
            continue;
        }
        unseen += seen == UNSEEN;
        if (unseen == MAY_BE_UNSEEN) {
            break; /* each look was several requests */
        }
        if (seen == REFUSED && refused) {
            *outcome = TARN_NOT_COMMITTED;
            return err_set(err, TARN_CONFLICT, "table %s was changed by another commit: %s",
                           w->label, cause.message);
        }
        seen = seen == REFUSED ? OPEN : seen;
        env_sleep_ms(w->arena.env, (int64_t)FIRST_WAIT_MS << i);
    }
    *outcome = TARN_OUTCOME_UNKNOWN;
    (void)err_set(err, TARN_COMMIT_UNKNOWN, "commit of table %s was sent: %s", w->label,
                  cause.message);
    return err_as(err, TARN_COMMIT_UNKNOWN, seen == UNSEEN ? &why : NULL);
}

static tarn_code begin_work(remote_work *w, tarn_catalog *c, const tarn_ident *table,
                            tarn_error *err) {
    w->self = (remote_catalog *)c;
    w->table = table;
    arena_init(&w->arena, c->env);
    buf_init(&w->body, c->env, LIMIT_METADATA_JSON_BYTES);
    w->label = ident_label(&w->arena, table);
    w->path = remote_table_path(w->self->client, &w->arena, table);
    return w->path != NULL ? TARN_OK : err_nomem(err);
}

static void end_work(remote_work *w) {
    buf_release(&w->body);
    arena_release(&w->arena);
}

tarn_code remote_commit_table(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                              const tarn_change_set *set, tarn_outcome_kind *outcome,
                              tarn_table_version **out, tarn_error *err) {
    remote_work w = {.base = base, .set = set};
    tarn_table_version *version = NULL;
    json_writer j;
    tarn_code code;
    *outcome = TARN_NOT_COMMITTED;
    TRY(begin_work(&w, c, table, err));
    /* A change that cannot be made is found here, in our words and without a journey. */
    TRY(change_check(base != NULL ? base->metadata : NULL, set, err));
    json_begin(&j, &w.body, false, err);
    json_put_object(&j);
    json_put_name(&j, STR("identifier")); /* asked for by some servers */
    remote_put_ident(&j, table);
    change_set_put_members(set, &j);
    json_end_object(&j);
    TRY(json_end(&j));
    code = settle(&w, outcome, &version, err);
    catalog_wait_end(c, &w.outage, code == TARN_OK || !err_is_away(err));
    TRY(code);
    env_log(c->env, TARN_LOG_INFO, "catalog", "commit", "table=%s metadata=%.*s", w.label,
            STR_ARG(version->metadata_location));
    if (out != NULL) {
        *out = table_version_keep(version);
    }
done:
    table_version_release(version);
    end_work(&w);
    return code;
}

/* ---- creating ---- */

static tarn_code put_create(remote_work *w, const tarn_metadata *m, bool placed, tarn_error *err) {
    json_writer j;
    const tarn_sort_order *order = metadata_sort_order(m);
    char version[24];
    size_t len = str_from_i64(m->format_version, version);
    json_begin(&j, &w->body, false, err);
    json_put_object(&j);
    json_member_str(&j, "name", w->table->name);
    if (placed) {
        json_member_str(&j, "location", m->location);
    }
    json_put_name(&j, STR("schema"));
    schema_put_json(metadata_schema(m), &j);
    if (metadata_spec(m)->n_fields > 0) {
        json_put_name(&j, STR("partition-spec"));
        spec_put_json(metadata_spec(m), &j);
    }
    if (order != NULL && order->n_fields > 0) {
        json_put_name(&j, STR("write-order"));
        sort_order_put_json(order, &j);
    }
    json_member_bool(&j, "stage-create", false);
    json_put_name(&j, STR("properties"));
    json_put_object(&j);
    json_member_str(&j, "format-version", str_make(version, len));
    for (int32_t i = 0; i < m->properties.count; i++) {
        json_put_name(&j, m->properties.items[i].key);
        json_put_string(&j, m->properties.items[i].value);
    }
    json_end_object(&j);
    json_end_object(&j);
    return json_end(&j);
}

static tarn_code send_create(remote_work *w, tarn_table_version **out, remote_reply *reply,
                             tarn_error *err) {
    tarn_code code;
    tarn_table_version *version = table_version_new(w->arena.env);
    if (version == NULL) {
        *reply = (remote_reply){0};
        return err_nomem(err);
    }
    const remote_request request = {
        .method = "POST",
        .endpoint = "namespaces/{namespace}/tables",
        .path = remote_namespace_path(w->self->client, &w->arena, w->table, "/tables"),
        .key = remote_takes_keys(w->self->client) ? str_of(w->key) : STR_NULL,
        .body = buf_str(&w->body)};
    TRY(remote_send(w->self->client, &version->arena, &request, reply, err));
    code = remote_take_version(w->self, version, reply->json, w->label, err);
    reply->unclear = reply->unclear || code != TARN_OK;
    if (code == TARN_OK) {
        remote_cache_put(w->self, w->path, reply->etag, version);
        *out = version;
        version = NULL;
    }
done:
    table_version_release(version);
    return code;
}

/* Whether the table that is there is the one that was asked for: empty and of its shape. */
static bool is_ours(remote_work *w, const tarn_metadata *want, const tarn_metadata *m) {
    return m->n_snapshots == 0 && has_shape(w, want, m);
}

tarn_code remote_create_table(tarn_catalog *c, const tarn_ident *table,
                              const metadata_new_options *options, tarn_table_version **out,
                              tarn_error *err) {
    remote_work w = {0};
    metadata_new_options filled = *options;
    const tarn_metadata *m = NULL;
    tarn_table_version *version = NULL;
    bool unclear = false;
    tarn_code code;
    TRY(begin_work(&w, c, table, err));
    bool placed = filled.location.len > 0;
    filled.location = placed ? filled.location : STR("/"); /* the server chooses */
    TRY(metadata_new(&w.arena, &filled, &m, err));
    TRY(put_create(&w, m, placed, err));
    /* A request that was given up for lost and arrives when the table was dropped again. */
    env_uuid_v4(c->env, w.key);
    for (int i = 0; i < TRIES; i++) {
        remote_reply reply;
        tarn_table_version *now = NULL;
        code = send_create(&w, &version, &reply, err);
        unclear = unclear || reply.unclear;
        if (code == TARN_OK || !unclear) {
            break;
        }
        remote_cache_drop(w.self, w.path);
        tarn_code found = remote_load(c, table, &now, NULL);
        if (found == TARN_OK && is_ours(&w, m, now->metadata)) {
            err_reset(err);
            code = TARN_OK;
            version = now;
            break;
        }
        table_version_release(now);
        if (found != TARN_NOT_FOUND) {
            break;
        }
        env_sleep_ms(c->env, (int64_t)FIRST_WAIT_MS << i);
    }
    if (code == TARN_OK && out != NULL) {
        *out = table_version_keep(version);
    }
done:
    table_version_release(version);
    end_work(&w);
    return code;
}
