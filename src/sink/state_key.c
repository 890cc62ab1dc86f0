/* sink/state_key.c - the key that rows of a state are changed by: written when a job first changes
 * rows by one, and held against every job after it once there was a checkpoint.
 *
 * Rows that were written by one key may hold another one twice, of which an index knows one row
 * only; and a job that leaves its key out doubles what it was to replace. So neither is done with a
 * state that has a key, unless the table itself says that its rows have another key now. The kind
 * of deletes may change: an index is brought up to the table's head before it is used. */
#include "sink/state_int.h"

typedef struct id_list {
    int32_t *ids;
    int32_t n;
} id_list;

static bool has_id(const int32_t *ids, int32_t n, int32_t id) {
    for (int32_t i = 0; i < n; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* As sets; no id is twice in either. */
static bool same_ids(const int32_t *a, int32_t n_a, const int32_t *b, int32_t n_b) {
    for (int32_t i = 0; i < n_a; i++) {
        if (!has_id(b, n_b, a[i])) {
            return false;
        }
    }
    return n_a == n_b;
}

static tarn_code write_key(sink_state *s, const char *path, const int32_t *ids, int32_t n,
                           const tarn_schema *schema, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf body;
    json_writer w;
    buf_init(&body, s->env, 0);
    json_begin(&w, &body, false, err);
    json_put_object(&w);
    json_put_name(&w, STR("key"));
    json_put_array(&w);
    for (int32_t i = 0; i < n; i++) {
        json_put_i64(&w, ids[i]);
    }
    json_end_array(&w);
    json_put_name(&w, STR("identifier-fields"));
    json_put_array(&w);
    for (int32_t i = 0; i < schema->n_identifier_ids; i++) {
        json_put_i64(&w, schema->identifier_ids[i]);
    }
    json_end_array(&w);
    json_end_object(&w);
    TRY(json_end(&w));
    TRY(state_document_put(s, path, STORE_REPLACE, buf_str(&body), err));
done:
    buf_release(&body);
    return code;
}

static tarn_code read_ids(tarn_arena *arena, const json_value *json, const char *name,
                          const char *path, id_list *out, tarn_error *err) {
    const json_value *list = json_get(json, name);
    if (list == NULL || list->kind != JSON_ARRAY) {
        return err_set(err, TARN_CORRUPT, "sink state file %s was damaged: no list \"%s\"", path,
                       name);
    }
    out->ids = ARENA_ARRAY(arena, int32_t, (size_t)list->count + 1);
    out->n = 0;
    if (out->ids == NULL) {
        return err_nomem(err);
    }
    for (const json_value *item = list->first; item != NULL; item = item->next) {
        if (!json_i32(item, &out->ids[out->n])) {
            return err_set(err, TARN_CORRUPT,
                           "sink state file %s was damaged: \"%s\" holds what is no field id", path,
                           name);
        }
        out->n++;
    }
    return TARN_OK;
}

static tarn_code name_ids(tarn_buf *out, const int32_t *ids, int32_t n, const tarn_schema *schema,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < n; i++) {
        const tarn_field *field = type_find_id(schema->root, ids[i]);
        TRY(buf_append_str(out, i > 0 ? STR(", ") : STR(""), err));
        if (field != NULL) {
            TRY(buf_append_str(out, field->name, err));
        } else {
            TRY(buf_printf(out, err, "field %d, which was dropped", ids[i]));
        }
    }
done:
    return code;
}

static tarn_code refuse(sink_state *s, const id_list *had, const int32_t *ids, int32_t n,
                        const tarn_schema *schema, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf before, now;
    buf_init(&before, s->env, 0);
    buf_init(&now, s->env, 0);
    TRY(name_ids(&before, had->ids, had->n, schema, err));
    TRY(name_ids(&now, ids, n, schema, err));
    if (n == 0) {
        code = err_set(err, TARN_INVALID,
                       "sink state %.*s is of a stream that changes rows by key (%.*s); this one "
                       "only adds rows, which would double them: open it as before, or with a "
                       "state folder of its own",
                       STR_ARG(s->dir), STR_ARG(buf_str(&before)));
    } else {
        code = err_set(err, TARN_INVALID,
                       "sink state %.*s is of a stream that changes rows by key (%.*s), not by key "
                       "(%.*s): open it with the key of before, make the other one the table's "
                       "identifier fields, or take a new state folder",
                       STR_ARG(s->dir), STR_ARG(buf_str(&before)), STR_ARG(buf_str(&now)));
    }
done:
    buf_release(&now);
    buf_release(&before);
    return code;
}

tarn_code sink_state_key(sink_state *s, const int32_t *ids, int32_t n, const tarn_metadata *m,
                         tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    char *path;
    json_value *json;
    id_list had, declared;
    const tarn_schema *schema = metadata_schema(m);
    arena_init(&arena, s->env);
    TRY(state_path(s, &arena, "key", &path, err));
    code = state_document_get(s, &arena, path, &json, err);
    if (code == TARN_NOT_FOUND) {
        err_reset(err);
        code = n > 0 ? write_key(s, path, ids, n, schema, err) : TARN_OK;
        goto done;
    }
    if (code != TARN_OK) {
        goto done;
    }
    TRY(read_ids(&arena, json, "key", path, &had, err));
    TRY(read_ids(&arena, json, "identifier-fields", path, &declared, err));
    if (same_ids(ids, n, had.ids, had.n)) {
        goto done;
    }
    const int32_t *fields = schema->identifier_ids;
    int32_t n_fields = schema->n_identifier_ids;
    bool is_declared =
        n > 0 && same_ids(ids, n, fields, n_fields) && !same_ids(ids, n, declared.ids, declared.n);
    bool has_rows;
    TRY(state_has_rows(s, &arena, &has_rows, err));
    code = is_declared || had.n == 0 || !has_rows ? write_key(s, path, ids, n, schema, err)
                                                  : refuse(s, &had, ids, n, schema, err);
done:
    arena_release(&arena);
    return code;
}
