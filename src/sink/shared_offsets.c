/* sink/shared_offsets.c - see shared_offsets.h. */
#include "sink/shared_offsets.h"

#include <inttypes.h>

#define MAX_LEVELS 8 /* of objects in objects */

static tarn_code refuse_lost(tarn_str branch, tarn_str key, int64_t at, tarn_error *err) {
    return err_set(err, TARN_CORRUPT,
                   "snapshots before %" PRId64
                   " of branch %.*s have expired, and those after it do "
                   "not say where the stream %.*s stands: set the table's property of that name to "
                   "what it should go on from, {} for the beginning",
                   at, STR_ARG(branch), STR_ARG(key));
}

/* Some writers drop the parent's id together with the parent, so a snapshot without one is the
 * table's first only where its number says so. */
static bool is_first(const tarn_snapshot *s) {
    return s->parent_id == TARN_NO_SNAPSHOT && s->sequence_number == 1;
}

/* The newest entry; len 0: there was never one. */
static tarn_code find_text(const tarn_metadata *m, tarn_str branch, tarn_str key, tarn_str *out,
                           tarn_error *err) {
    const tarn_snapshot *s = metadata_head(m, branch);
    *out = STR("");
    for (int32_t steps = 0; s != NULL && steps <= m->n_snapshots; steps++) {
        if (properties_get(&s->summary, key.data, out)) {
            return TARN_OK;
        }
        const tarn_snapshot *parent = metadata_parent(m, s);
        if (parent == NULL && !is_first(s) && !properties_get(&m->properties, key.data, out)) {
            return refuse_lost(branch, key, s->snapshot_id, err);
        }
        s = parent;
    }
    return TARN_OK;
}

tarn_code shared_offsets_find(tarn_arena *arena, const tarn_metadata *m, tarn_str branch,
                              tarn_str key, json_value **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str text;
    *out = NULL;
    TRY(find_text(m, branch, key, &text, err));
    if (text.len > 0) {
        TRY(json_parse(arena, text, key.data, out, err));
        if (!json_is(*out, JSON_OBJECT)) {
            code = err_set(err, TARN_CORRUPT, "%.*s is no JSON object", STR_ARG(key));
        }
    }
done:
    return code;
}

static json_value *find_member(const json_value *object, tarn_str name) {
    json_value *v = object != NULL ? object->first : NULL;
    while (v != NULL && !str_eq(v->name, name)) {
        v = v->next;
    }
    return v;
}

static bool read_pair(const json_value *v, int64_t *from, int64_t *to) {
    return json_is(v, JSON_ARRAY) && v->count == 2 && json_i64(v->first, from) &&
           json_i64(v->first->next, to) && *from >= -1 && *to >= *from && *to >= 0;
}

static tarn_code refuse_taken(const json_value *move, int64_t from, int64_t stands,
                              tarn_error *err) {
    return err_set(err, TARN_CONFLICT,
                   "part %.*s of the input stands at %" PRId64 " in the table, and was read from "
                   "%" PRId64 ": another process has taken it over",
                   STR_ARG(move->name), stands, from);
}

static tarn_code put_member(tarn_arena *arena, json_value *object, tarn_str name, json_value *item,
                            tarn_error *err) {
    tarn_str copy = arena_str(arena, name);
    return item != NULL && copy.data != NULL && json_put(arena, object, copy.data, item)
               ? TARN_OK
               : err_nomem(err);
}

static tarn_code move_level(tarn_arena *arena, json_value *now, const json_value *moves, int levels,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    for (const json_value *v = moves->first; v != NULL; v = v->next) {
        json_value *have = find_member(now, v->name);
        int64_t from;
        int64_t to;
        int64_t stands = -1;
        if (json_is(v, JSON_OBJECT) && levels > 0 && (have == NULL || have->kind == v->kind)) {
            if (have == NULL) {
                have = json_new(arena, JSON_OBJECT);
                TRY(put_member(arena, now, v->name, have, err));
            }
            TRY(move_level(arena, have, v, levels - 1, err));
            continue;
        }
        if (!read_pair(v, &from, &to) || (have != NULL && !json_i64(have, &stands))) {
            return err_set(err, TARN_INVALID, "the offsets of part %.*s are no offsets",
                           STR_ARG(v->name));
        }
        if (stands != from) {
            return refuse_taken(v, from, stands, err);
        }
        TRY(put_member(arena, now, v->name, json_new_i64(arena, to), err));
    }
done:
    return code;
}

tarn_code shared_offsets_move(tarn_arena *arena, const tarn_metadata *m, tarn_str branch,
                              tarn_str key, tarn_str moves, tarn_str *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    json_value *now;
    json_value *json;
    json_writer w;
    tarn_buf text;
    buf_init(&text, arena->env, 0);
    TRY(shared_offsets_find(arena, m, branch, key, &now, err));
    TRY(json_parse(arena, moves, "the offsets of a checkpoint", &json, err));
    now = now != NULL ? now : json_new(arena, JSON_OBJECT);
    if (now == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(move_level(arena, now, json, MAX_LEVELS, err));
    json_begin(&w, &text, false, err);
    json_put_value(&w, now);
    TRY(json_end(&w));
    *out = arena_str(arena, buf_str(&text));
    code = out->data != NULL ? TARN_OK : err_nomem(err);
done:
    buf_release(&text);
    return code;
}

static bool has_pairs(const json_value *v, int levels) {
    if (json_is(v, JSON_ARRAY)) {
        return true;
    }
    for (v = json_is(v, JSON_OBJECT) && levels > 0 ? v->first : NULL; v != NULL; v = v->next) {
        if (has_pairs(v, levels - 1)) {
            return true;
        }
    }
    return false;
}

tarn_code shared_offsets_any(tarn_env *env, tarn_str moves, bool *out, tarn_error *err) {
    tarn_arena arena;
    json_value *json;
    *out = false;
    if (moves.len == 0) {
        return TARN_OK;
    }
    arena_init(&arena, env);
    tarn_code code = json_parse(&arena, moves, "the offsets of a checkpoint", &json, err);
    if (code == TARN_OK) {
        *out = has_pairs(json, MAX_LEVELS + 1);
    }
    arena_release(&arena);
    return code;
}
