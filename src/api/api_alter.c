/* api/api_alter.c - tarn_table_alter: a list of edits in JSON becomes one change set, applied to
 * whatever the table is when the commit succeeds. */
#include "api/api_outcome.h"
#include "api/handles.h"
#include "iceberg/evolve.h"
#include "store/store_path.h"
#include "table/value.h"

#define MAX_EDITS 10000

typedef struct alter_work {
    const json_value *edits;
} alter_work;

static tarn_str member_str(const json_value *edit, const char *name) {
    tarn_str s = STR_NULL;
    return json_str(json_get(edit, name), &s) ? s : STR_NULL;
}

static tarn_code need_str(const json_value *edit, tarn_str op, const char *name, tarn_str *out,
                          tarn_error *err) {
    if (!json_str(json_get(edit, name), out)) {
        return err_set(err, TARN_INVALID, "edit %.*s needs member %s, a text", STR_ARG(op), name);
    }
    return TARN_OK;
}

/* ---- edits of schema, spec and order ---- */

typedef struct op_rule {
    const char *op;
    evolve_kind kind;
    const char *path, *other, *new_name, *text; /* members to read, NULL: none */
    bool type;
} op_rule;

static const op_rule OPS[] = {
    {"add-column", EVOLVE_ADD_COLUMN, "path", NULL, NULL, NULL, true},
    {"drop-column", EVOLVE_DROP_COLUMN, "path", NULL, NULL, NULL, false},
    {"rename-column", EVOLVE_RENAME_COLUMN, "path", NULL, "name", NULL, false},
    {"update-type", EVOLVE_UPDATE_TYPE, "path", NULL, NULL, NULL, true},
    {"make-optional", EVOLVE_MAKE_OPTIONAL, "path", NULL, NULL, NULL, false},
    {"update-doc", EVOLVE_UPDATE_DOC, "path", NULL, NULL, NULL, false},
    {"move-first", EVOLVE_MOVE_FIRST, "path", NULL, NULL, NULL, false},
    {"move-before", EVOLVE_MOVE_BEFORE, "path", "other", NULL, NULL, false},
    {"move-after", EVOLVE_MOVE_AFTER, "path", "other", NULL, NULL, false},
    {"set-identifiers", EVOLVE_SET_IDENTIFIERS, NULL, NULL, NULL, "columns", false},
    {"add-partition-field", EVOLVE_ADD_PARTITION_FIELD, NULL, NULL, NULL, "transform", false},
    {"drop-partition-field", EVOLVE_DROP_PARTITION_FIELD, NULL, NULL, NULL, "name", false},
    {"rename-partition-field", EVOLVE_RENAME_PARTITION_FIELD, "name", NULL, "to", NULL, false},
    {"set-partition-by", EVOLVE_SET_PARTITION, NULL, NULL, NULL, "text", false},
    {"set-sort-order", EVOLVE_SET_SORT_ORDER, NULL, NULL, NULL, "text", false},
};

static const op_rule *find_op(tarn_str op) {
    for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++) {
        if (str_is(op, OPS[i].op)) {
            return &OPS[i];
        }
    }
    return NULL;
}

/* "columns" may be a list of names as well as one text. */
static tarn_code read_text(tarn_arena *arena, const json_value *edit, tarn_str op, const char *name,
                           tarn_str *out, tarn_error *err) {
    const json_value *value = json_get(edit, name);
    if (!json_is(value, JSON_ARRAY)) {
        return need_str(edit, op, name, out, err);
    }
    char *text = arena_strdup(arena, "");
    for (const json_value *item = value->first; item != NULL && text != NULL; item = item->next) {
        text = arena_printf(arena, "%s%s%.*s", text, text[0] != '\0' ? "," : "",
                            (int)item->text.len, item->text.data);
    }
    if (text == NULL) {
        return err_nomem(err);
    }
    *out = str_of(text);
    return TARN_OK;
}

static tarn_code read_type(tarn_arena *arena, const json_value *edit, tarn_str op,
                           const tarn_type **out, tarn_error *err) {
    const json_value *value = json_get(edit, "type");
    tarn_str text;
    if (json_is(value, JSON_OBJECT)) {
        return api_blame_caller(type_from_json(arena, value, out, err), err);
    }
    tarn_code code = need_str(edit, op, "type", &text, err);
    return code == TARN_OK ? type_from_text(arena, text, out, err) : code;
}

/* A text is read as the column's type, as in filters; anything else is the value itself. */
static tarn_code read_default(tarn_arena *arena, const json_value *json, tarn_edit *out,
                              tarn_error *err) {
    const json_value *given = json_get(json, "default");
    tarn_code code = TARN_OK;
    tarn_str text;
    tarn_value value;
    json_writer writer;
    json_value *parsed = NULL;
    tarn_buf buf;
    buf_init(&buf, arena->env, 0);
    if (!json_str(given, &text) || type_is_nested(out->type)) {
        out->default_value = given;
        goto done;
    }
    TRY(value_from_text(arena, out->type, text, &value, err));
    json_begin(&writer, &buf, false, err);
    value_put_json(&value, &writer);
    TRY(json_end(&writer));
    tarn_str kept = arena_str(arena, buf_str(&buf));
    if (kept.data == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(json_parse(arena, kept, "the default", &parsed, err));
    out->default_value = parsed;
done:
    buf_release(&buf);
    return code;
}

static tarn_code read_edit(tarn_arena *arena, const json_value *json, const op_rule *rule,
                           tarn_edit *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str op = str_of(rule->op);
    memset(out, 0, sizeof *out);
    out->kind = rule->kind;
    out->doc = member_str(json, "doc");
    (void)json_bool(json_get(json, "required"), &out->required);
    if (rule->kind == EVOLVE_ADD_COLUMN && json_get(json, "name") != NULL) {
        TRY(need_str(json, op, "name", &out->new_name, err));
        out->path = member_str(json, "parent");
    } else if (rule->path != NULL) {
        TRY(need_str(json, op, rule->path, &out->path, err));
    }
    if (rule->other != NULL) {
        TRY(need_str(json, op, rule->other, &out->other, err));
    }
    if (rule->new_name != NULL) {
        TRY(need_str(json, op, rule->new_name, &out->new_name, err));
    }
    if (rule->text != NULL) {
        TRY(read_text(arena, json, op, rule->text, &out->text, err));
    }
    if (rule->kind == EVOLVE_ADD_PARTITION_FIELD) {
        out->new_name = member_str(json, "name");
    }
    if (rule->type) {
        TRY(read_type(arena, json, op, &out->type, err));
    }
    if (rule->kind == EVOLVE_ADD_COLUMN) {
        TRY(read_default(arena, json, out, err));
    }
done:
    return code;
}

/* ---- edits that are one change each ---- */

static tarn_code make_removed_keys(tarn_arena *arena, const json_value *edit, tarn_properties *out,
                                   tarn_error *err) {
    const json_value *keys = json_get(edit, "keys");
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (keys != NULL ? keys->count : 0) + 1);
    if (items == NULL) {
        return err_nomem(err);
    }
    out->items = items;
    out->count = 0;
    for (const json_value *key = keys != NULL ? keys->first : NULL; key != NULL; key = key->next) {
        items[out->count++].key = key->text;
    }
    return TARN_OK;
}

static tarn_code make_set_properties(tarn_arena *arena, const json_value *edit,
                                     tarn_properties *out, tarn_error *err) {
    const json_value *map = json_get(edit, "properties");
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (map != NULL ? map->count : 0) + 1);
    if (items == NULL) {
        return err_nomem(err);
    }
    out->items = items;
    out->count = 0;
    for (const json_value *member = map != NULL ? map->first : NULL; member != NULL;
         member = member->next) {
        if (member->kind != JSON_STRING && member->kind != JSON_NUMBER &&
            member->kind != JSON_BOOL) {
            return err_set(err, TARN_INVALID, "property %.*s was not a text",
                           STR_ARG(member->name));
        }
        items[out->count].key = member->name;
        items[out->count++].value = member->kind == JSON_BOOL
                                        ? (member->boolean ? STR("true") : STR("false"))
                                        : member->text;
    }
    return TARN_OK;
}

/* A ref that is there is only moved when that is asked for, and stays what it is. */
static tarn_code check_ref_is_free(const tarn_metadata *base, const json_value *edit,
                                   const tarn_ref *ref, tarn_error *err) {
    const tarn_ref *there = metadata_ref(base, ref->name);
    bool replace = false;
    (void)json_bool(json_get(edit, "replace"), &replace);
    if (there == NULL || (replace && there->is_tag == ref->is_tag)) {
        return TARN_OK;
    }
    return err_set(err, TARN_CONFLICT, "%.*s is a %s already%s", STR_ARG(ref->name),
                   there->is_tag ? "tag" : "branch",
                   there->is_tag == ref->is_tag ? " and was not asked to be replaced" : "");
}

static tarn_code make_ref(const tarn_metadata *base, const json_value *edit, tarn_ref *out,
                          tarn_error *err) {
    tarn_str type = member_str(edit, "type");
    memset(out, 0, sizeof *out);
    out->max_ref_age_ms = -1;
    out->max_snapshot_age_ms = -1;
    out->min_snapshots_to_keep = -1;
    out->snapshot_id = base->current_snapshot_id;
    (void)json_i64(json_get(edit, "snapshot-id"), &out->snapshot_id);
    (void)json_i64(json_get(edit, "max-ref-age-ms"), &out->max_ref_age_ms);
    (void)json_i64(json_get(edit, "max-snapshot-age-ms"), &out->max_snapshot_age_ms);
    (void)json_i32(json_get(edit, "min-snapshots-to-keep"), &out->min_snapshots_to_keep);
    out->is_tag = str_is(type, "tag");
    if (type.len > 0 && !out->is_tag && !str_is(type, "branch")) {
        return err_set(err, TARN_INVALID, "ref type %.*s is neither branch nor tag", STR_ARG(type));
    }
    if (out->snapshot_id == TARN_NO_SNAPSHOT) {
        return err_set(err, TARN_INVALID, "the table has no snapshot that a ref could name");
    }
    tarn_code code = need_str(edit, STR("set-ref"), "name", &out->name, err);
    return code == TARN_OK ? check_ref_is_free(base, edit, out, err) : code;
}

static tarn_code make_rollback(const tarn_metadata *base, const json_value *edit, tarn_ref *out,
                               tarn_error *err) {
    const tarn_ref *main_ref = metadata_ref(base, STR(TARN_MAIN_BRANCH));
    int64_t id;
    if (!json_i64(json_get(edit, "snapshot-id"), &id)) {
        return err_set(err, TARN_INVALID, "edit rollback needs member snapshot-id, a number");
    }
    if (main_ref == NULL || !metadata_is_ancestor(base, main_ref->snapshot_id, id)) {
        return err_set(err, TARN_INVALID, "snapshot %lld is no ancestor of the current one",
                       (long long)id);
    }
    *out = *main_ref;
    out->snapshot_id = id;
    return TARN_OK;
}

/* Without main a table has no current snapshot: all its rows would be gone from sight. */
static tarn_code make_ref_removal(const tarn_metadata *base, const json_value *edit, tarn_str *out,
                                  tarn_error *err) {
    tarn_str name;
    tarn_code code = need_str(edit, STR("remove-ref"), "name", &name, err);
    if (code != TARN_OK) {
        return code;
    }
    if (str_is(name, TARN_MAIN_BRANCH)) {
        return err_set(err, TARN_INVALID, "branch main is the table itself and was not removed");
    }
    if (metadata_ref(base, name) == NULL) {
        return err_set(err, TARN_NOT_FOUND, "there is no branch or tag %.*s", STR_ARG(name));
    }
    *out = name;
    return TARN_OK;
}

static tarn_code make_change(tarn_arena *arena, const tarn_metadata *base, const json_value *edit,
                             tarn_str op, tarn_change *out, tarn_error *err) {
    memset(out, 0, sizeof *out);
    if (str_is(op, "set-properties")) {
        out->kind = CHANGE_SET_PROPERTIES;
        return make_set_properties(arena, edit, &out->properties, err);
    }
    if (str_is(op, "remove-properties")) {
        out->kind = CHANGE_REMOVE_PROPERTIES;
        return make_removed_keys(arena, edit, &out->properties, err);
    }
    if (str_is(op, "set-ref")) {
        out->kind = CHANGE_SET_SNAPSHOT_REF;
        return make_ref(base, edit, &out->ref, err);
    }
    if (str_is(op, "rollback")) {
        out->kind = CHANGE_SET_SNAPSHOT_REF;
        return make_rollback(base, edit, &out->ref, err);
    }
    if (str_is(op, "remove-ref")) {
        out->kind = CHANGE_REMOVE_SNAPSHOT_REF;
        return make_ref_removal(base, edit, &out->text, err);
    }
    if (str_is(op, "set-location")) {
        out->kind = CHANGE_SET_LOCATION;
        tarn_code code = need_str(edit, op, "location", &out->text, err);
        return code == TARN_OK ? store_absolute(arena, out->text, &out->text, err) : code;
    }
    if (str_is(op, "upgrade-format-version")) {
        out->kind = CHANGE_UPGRADE_FORMAT_VERSION;
        return json_i32(json_get(edit, "version"), &out->number)
                   ? TARN_OK
                   : err_set(err, TARN_INVALID,
                             "edit upgrade-format-version needs member version, a number");
    }
    return err_set(err, TARN_INVALID, "\"%.*s\" is no edit", STR_ARG(op));
}

/* ---- all of them together ---- */

static tarn_code join_sets(tarn_arena *arena, const tarn_change_set *evolved,
                           const tarn_change *single, int32_t n_single, const tarn_metadata *base,
                           tarn_change_set *out, tarn_error *err) {
    tarn_change *changes =
        ARENA_ARRAY(arena, tarn_change, (size_t)evolved->n_changes + (size_t)n_single + 1);
    tarn_requirement *requirements =
        ARENA_ARRAY(arena, tarn_requirement, (size_t)evolved->n_requirements + 1);
    if (changes == NULL || requirements == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < evolved->n_changes; i++) {
        changes[i] = evolved->changes[i];
    }
    for (int32_t i = 0; i < n_single; i++) {
        changes[evolved->n_changes + i] = single[i];
    }
    for (int32_t i = 0; i < evolved->n_requirements; i++) {
        requirements[i] = evolved->requirements[i];
    }
    out->n_requirements = evolved->n_requirements;
    if (evolved->n_requirements == 0 && base->table_uuid.len > 0) {
        requirements[0].kind = REQUIRE_UUID;
        requirements[0].text = base->table_uuid;
        out->n_requirements = 1;
    }
    out->changes = changes;
    out->n_changes = evolved->n_changes + n_single;
    out->requirements = requirements;
    return TARN_OK;
}

static tarn_code make_alter(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                            tarn_change_set *out, tarn_error *err) {
    const alter_work *work = ctx;
    tarn_code code = TARN_OK;
    size_t n = work->edits->count;
    int32_t n_edits = 0;
    int32_t n_single = 0;
    tarn_change_set evolved;
    tarn_edit *edits = ARENA_ARRAY(arena, tarn_edit, n + 1);
    tarn_change *single = ARENA_ARRAY(arena, tarn_change, n + 1);
    memset(&evolved, 0, sizeof evolved);
    if (edits == NULL || single == NULL) {
        return err_nomem(err);
    }
    for (const json_value *edit = work->edits->first; edit != NULL; edit = edit->next) {
        tarn_str op;
        TRY(need_str(edit, STR("of the list"), "op", &op, err));
        const op_rule *rule = find_op(op);
        if (rule != NULL) {
            TRY(read_edit(arena, edit, rule, &edits[n_edits++], err));
        } else {
            TRY(make_change(arena, base, edit, op, &single[n_single++], err));
        }
    }
    if (n_edits > 0) {
        TRY(evolve_changes(arena, base, edits, n_edits, &evolved, err));
    }
    TRY(join_sets(arena, &evolved, single, n_single, base, out, err));
done:
    return code;
}

tarn_code tarn_table_alter(tarn_table *table, const char *edits_json, tarn_outcome *outcome,
                           tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    alter_work work;
    json_value *edits;
    commit_outcome commit;
    arena_init(&arena, table->env);
    api_reset_outcome(outcome);
    TRY(api_check_writable(table, err));
    TRY(api_json(&arena, edits_json, "edits", &edits, err));
    if (edits->kind != JSON_ARRAY || edits->count > MAX_EDITS) {
        code = err_set(err, TARN_INVALID, "edits were not a JSON array of at most %d objects",
                       MAX_EDITS);
        goto done;
    }
    work.edits = edits;
    code = commit_changes(table->env, table->catalog->catalog, &table->ident, make_alter, &work,
                          &commit, err);
    api_fill_outcome(outcome, &commit);
    if (code == TARN_OK) {
        api_take_version(table, commit.version);
    }
done:
    arena_release(&arena);
    return api_about_table(table, code, err);
}
