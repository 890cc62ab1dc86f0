/* write/commit/request_json.c - see request_json.h. */
#include "write/commit/request_json.h"

#include "iceberg/file_json.h"

static const char *const KINDS[] = {
    "append", "merge-append", "overwrite", "replace-partitions", "delete-files", "row-delta"};

bool commit_request_can_travel(const commit_request *request) {
    return !request->check_each && request->filter == NULL && request->conflict_filter == NULL &&
           request->n_shared_ids == 0 && request->properties.count == 0 &&
           request->list_properties.count == 0 && request->origin == NULL;
}

/* ---- writing ---- */

static void put_true(json_writer *w, const char *name, bool value) {
    if (value) {
        json_member_bool(w, name, true);
    }
}

static void put_pairs(json_writer *w, const char *name, const tarn_properties *p) {
    json_put_name(w, str_of(name));
    json_put_object(w);
    for (int32_t i = 0; i < p->count; i++) {
        json_put_name(w, p->items[i].key);
        json_put_string(w, p->items[i].value);
    }
    json_end_object(w);
}

static void put_fence(json_writer *w, const commit_fence *fence) {
    json_put_name(w, STR("fence"));
    json_put_object(w);
    put_pairs(w, "of", &fence->of);
    json_member_str(w, "number", fence->number);
    json_member_i64(w, "at-most", fence->at_most);
    if (fence->step.len > 0) {
        json_member_str(w, "step", fence->step);
        json_member_i64(w, "step-below", fence->step_below);
        if (fence->holds > 0) {
            json_member_i64(w, "holds", fence->holds);
            json_member_i64(w, "holds-step", fence->holds_step);
        }
    }
    json_end_object(w);
}

static void put_files(json_writer *w, const commit_request *r) {
    files_put_json("data-files", r->added, r->n_added, w);
    if (r->n_added_deletes > 0) {
        files_put_json("delete-files", r->added_deletes, r->n_added_deletes, w);
    }
    if (r->n_removed > 0) {
        entries_put_json("removed-data-files", r->removed, r->n_removed, w);
    }
    if (r->n_removed_deletes > 0) {
        entries_put_json("removed-delete-files", r->removed_deletes, r->n_removed_deletes, w);
    }
    if (r->n_referenced > 0) {
        texts_put_json("referenced-data-files", r->referenced, r->n_referenced, w);
    }
}

tarn_code commit_request_put_json(const commit_request *r, tarn_buf *out, tarn_error *err) {
    json_writer w;
    json_begin(&w, out, false, err);
    json_put_object(&w);
    json_member_str(&w, "kind", str_of(KINDS[r->kind]));
    if (r->commit_id != NULL) {
        json_member_str(&w, "commit-id", str_of(r->commit_id));
    }
    put_true(&w, "share", r->share);
    put_true(&w, "merge", r->merge);
    put_true(&w, "allow-empty", r->allow_empty);
    put_true(&w, "check-new-deletes", r->check_new_deletes);
    if (r->branch.len > 0) {
        json_member_str(&w, "branch", r->branch);
    }
    if (r->table_uuid.len > 0) {
        json_member_str(&w, "table-uuid", r->table_uuid);
    }
    if (r->from_snapshot_id != TARN_NO_SNAPSHOT) {
        json_member_i64(&w, "base-snapshot-id", r->from_snapshot_id);
    }
    if (r->mine != NULL) {
        const tarn_properties mine = {1, r->mine};
        put_pairs(&w, "mine", &mine);
    }
    if (r->fence != NULL) {
        put_fence(&w, r->fence);
    }
    if (r->summary.count > 0) {
        put_pairs(&w, "summary", &r->summary);
    }
    put_files(&w, r);
    json_end_object(&w);
    return json_end(&w);
}

/* ---- reading ---- */

static bool is_absent(const json_value *v) {
    return v == NULL || v->kind == JSON_NULL;
}

static tarn_code bad_member(const char *name, tarn_error *err) {
    return err_set(err, TARN_INVALID, "member \"%s\" is missing or not what it should be", name);
}

static tarn_code get_flag(const json_value *json, const char *name, bool *out, tarn_error *err) {
    const json_value *v = json_get(json, name);
    *out = false;
    return is_absent(v) || json_bool(v, out) ? TARN_OK : bad_member(name, err);
}

static tarn_code get_text(const json_value *json, const char *name, tarn_str *out,
                          tarn_error *err) {
    const json_value *v = json_get(json, name);
    *out = STR_NULL;
    return is_absent(v) || json_str(v, out) ? TARN_OK : bad_member(name, err);
}

static tarn_code get_pairs(tarn_arena *arena, const json_value *json, const char *name,
                           tarn_properties *out, tarn_error *err) {
    const json_value *v = json_get(json, name);
    memset(out, 0, sizeof *out);
    if (is_absent(v)) {
        return TARN_OK;
    }
    tarn_property *items =
        v->kind == JSON_OBJECT ? ARENA_ARRAY(arena, tarn_property, v->count + 1) : NULL;
    if (v->kind != JSON_OBJECT) {
        return bad_member(name, err);
    }
    if (items == NULL) {
        return err_nomem(err);
    }
    for (const json_value *m = v->first; m != NULL; m = m->next) {
        if (m->kind != JSON_STRING) {
            return bad_member(name, err);
        }
        items[out->count++] = (tarn_property){m->name, m->text};
    }
    out->items = items;
    return TARN_OK;
}

static tarn_code get_flags(const json_value *json, commit_request *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(get_flag(json, "share", &out->share, err));
    TRY(get_flag(json, "merge", &out->merge, err));
    TRY(get_flag(json, "allow-empty", &out->allow_empty, err));
    TRY(get_flag(json, "check-new-deletes", &out->check_new_deletes, err));
done:
    return code;
}

/* What is not known may be what matters: a misspelt list of files is not passed over. */
static tarn_code check_members(const json_value *json, tarn_error *err) {
    static const char *const NAMES[] = {"kind",
                                        "commit-id",
                                        "share",
                                        "merge",
                                        "allow-empty",
                                        "check-new-deletes",
                                        "branch",
                                        "table-uuid",
                                        "base-snapshot-id",
                                        "mine",
                                        "fence",
                                        "summary",
                                        "data-files",
                                        "delete-files",
                                        "removed-data-files",
                                        "removed-delete-files",
                                        "referenced-data-files",
                                        NULL};
    static const char *const FENCE[] = {"of",         "number", "at-most",    "step",
                                        "step-below", "holds",  "holds-step", NULL};
    const json_value *odd = json_stranger(json, NAMES);
    if (odd != NULL) {
        return err_set(err, TARN_INVALID, "member \"%.*s\" is not known", STR_ARG(odd->name));
    }
    odd = json_stranger(json_get(json, "fence"), FENCE);
    return odd == NULL ? TARN_OK
                       : err_set(err, TARN_INVALID, "member \"%.*s\" of \"fence\" is not known",
                                 STR_ARG(odd->name));
}

static tarn_code get_kind(const json_value *json, commit_kind *out, tarn_error *err) {
    tarn_str text = STR_NULL;
    (void)json_str(json_get(json, "kind"), &text);
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (str_is(text, KINDS[i])) {
            *out = (commit_kind)i;
            return TARN_OK;
        }
    }
    return err_set(err, TARN_INVALID,
                   "member \"kind\" is %s%.*s%s: it is one of append, merge-append, overwrite, "
                   "replace-partitions, delete-files, row-delta",
                   text.data != NULL ? "\"" : "missing or no text", STR_ARG(text),
                   text.data != NULL ? "\"" : "");
}

bool commit_id_is_good(tarn_str id) {
    bool good = id.len > 0 && id.len <= COMMIT_ID_MAX_BYTES;
    for (size_t i = 0; good && i < id.len; i++) {
        good = (uint8_t)id.data[i] > 0x20 && id.data[i] != 0x7f;
    }
    return good;
}

static tarn_code get_commit_id(tarn_arena *arena, const json_value *json, const char **out,
                               tarn_error *err) {
    tarn_str text;
    tarn_code code = get_text(json, "commit-id", &text, err);
    *out = NULL;
    if (code != TARN_OK || text.data == NULL) {
        return code;
    }
    if (!commit_id_is_good(text)) {
        return err_set(err, TARN_INVALID, "member \"commit-id\" is not " COMMIT_ID_RULE);
    }
    *out = arena_str(arena, text).data;
    return *out != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code get_fence(tarn_arena *arena, const json_value *json, const commit_fence **out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    const json_value *v = json_get(json, "fence");
    *out = NULL;
    if (is_absent(v)) {
        return TARN_OK;
    }
    commit_fence *fence = ARENA_NEW(arena, commit_fence);
    if (fence == NULL) {
        return err_nomem(err);
    }
    TRY(get_pairs(arena, v, "of", &fence->of, err));
    TRY(get_text(v, "number", &fence->number, err));
    if (fence->of.count == 0 || fence->number.len == 0 ||
        !json_i64(json_get(v, "at-most"), &fence->at_most)) {
        return bad_member("fence", err);
    }
    if (!is_absent(json_get(v, "step"))) {
        TRY(get_text(v, "step", &fence->step, err));
        if (!json_i64(json_get(v, "step-below"), &fence->step_below)) {
            return bad_member("fence", err);
        }
        if (!is_absent(json_get(v, "holds")) &&
            (!json_i64(json_get(v, "holds"), &fence->holds) ||
             !json_i64(json_get(v, "holds-step"), &fence->holds_step))) {
            return bad_member("fence", err);
        }
    }
    *out = fence;
done:
    return code;
}

static tarn_code get_files(tarn_arena *arena, const json_value *json, const tarn_metadata *m,
                           commit_request *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_file *files;
    tarn_entry *entries;
    TRY(files_from_json(arena, json, "data-files", m, &files, &out->n_added, err));
    out->added = files;
    TRY(files_from_json(arena, json, "delete-files", m, &files, &out->n_added_deletes, err));
    out->added_deletes = files;
    TRY(entries_from_json(arena, json, "removed-data-files", m, &entries, &out->n_removed, err));
    out->removed = entries;
    TRY(entries_from_json(arena, json, "removed-delete-files", m, &entries, &out->n_removed_deletes,
                          err));
    out->removed_deletes = entries;
    TRY(texts_from_json(arena, json, "referenced-data-files", &out->referenced, &out->n_referenced,
                        err));
done:
    return code;
}

tarn_code commit_request_from_json(tarn_arena *arena, const json_value *json,
                                   const tarn_metadata *m, commit_request *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_properties mine;
    memset(out, 0, sizeof *out);
    out->from_snapshot_id = TARN_NO_SNAPSHOT;
    TRY(check_members(json, err));
    TRY(get_kind(json, &out->kind, err));
    TRY(get_flags(json, out, err));
    TRY(get_commit_id(arena, json, &out->commit_id, err));
    TRY(get_text(json, "branch", &out->branch, err));
    TRY(get_text(json, "table-uuid", &out->table_uuid, err));
    const json_value *base = json_get(json, "base-snapshot-id");
    if (!is_absent(base) && !json_i64(base, &out->from_snapshot_id)) {
        return bad_member("base-snapshot-id", err);
    }
    TRY(get_pairs(arena, json, "mine", &mine, err));
    if (mine.count > 1) {
        return bad_member("mine", err);
    }
    out->mine = mine.count == 1 ? mine.items : NULL;
    TRY(get_fence(arena, json, &out->fence, err));
    TRY(get_pairs(arena, json, "summary", &out->summary, err));
    TRY(get_files(arena, json, m, out, err));
done:
    return code;
}
