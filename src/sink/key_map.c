/* sink/key_map.c - see key_map.h. In an index a place is the number of the target's path; that of
 * DELETED_NAME stands for KEY_DELETED, that of HELD_NAME for KEY_HELD until the checkpoint ends. */
#include "sink/key_map.h"

#define DELETED_NAME "-"
#define HELD_NAME    "+"

void key_map_init(key_map *m, tarn_env *env, key_index *index, const char *scratch_dir,
                  size_t memory_bytes) {
    memset(m, 0, sizeof *m);
    m->env = env;
    m->index = index;
    m->scratch_dir = scratch_dir;
    m->memory_bytes = memory_bytes;
    m->no_file[0] = m->no_file[1] = -1;
    arena_init(&m->arena, env);
    overlay_init(&m->overlay, env);
    idmap_init(&m->target_of, &m->arena);
}

void key_map_release(key_map *m) {
    key_index_close(m->scratch);
    overlay_release(&m->overlay);
    env_free(m->env, m->number_of);
    env_free(m->env, m->locations);
    arena_release(&m->arena);
}

static tarn_code reserve(key_map *m, size_t n, tarn_error *err) {
    if (n <= m->cap) {
        return TARN_OK;
    }
    key_location *grown = env_realloc(m->env, m->locations, n * sizeof *grown);
    if (grown == NULL) {
        return err_nomem(err);
    }
    m->locations = grown;
    m->cap = n;
    return TARN_OK;
}

/* ---- numbers of an index ---- */

static tarn_code grow_numbers(key_map *m, int32_t target, tarn_error *err) {
    if (target < m->n_numbers) {
        return TARN_OK;
    }
    int32_t cap = target < INT32_MAX / 2 ? target * 2 + 16 : target + 1;
    int32_t *grown = env_realloc(m->env, m->number_of, (size_t)cap * sizeof *grown);
    if (grown == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = m->n_numbers; i < cap; i++) {
        grown[i] = -1;
    }
    m->number_of = grown;
    m->n_numbers = cap;
    return TARN_OK;
}

static tarn_code number_for(key_map *m, key_index *index, const key_targets *targets,
                            int32_t target, int32_t *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (target == KEY_DELETED || target == KEY_HELD) {
        tarn_str name = target == KEY_HELD ? STR(HELD_NAME) : STR(DELETED_NAME);
        int32_t *known = &m->no_file[target == KEY_HELD];
        if (*known < 0) {
            TRY(key_index_file_number(index, name, known, err));
        }
        *out = *known;
        return TARN_OK;
    }
    TRY(grow_numbers(m, target, err));
    if (m->number_of[target] < 0) {
        int32_t number;
        TRY(key_index_file_number(index, targets->path(targets->ctx, target), &number, err));
        TRY(idmap_set(&m->target_of, number, target, err));
        m->number_of[target] = number;
    }
    *out = m->number_of[target];
done:
    return code;
}

static tarn_code target_for(key_map *m, key_index *index, const key_targets *targets,
                            int32_t number, int32_t *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str path;
    int32_t target;
    if (idmap_get(&m->target_of, number, out)) {
        return TARN_OK;
    }
    TRY(key_index_file_path(index, number, &m->arena, &path, err));
    if (str_is(path, DELETED_NAME)) {
        target = KEY_DELETED;
    } else if (str_is(path, HELD_NAME)) {
        target = KEY_HELD;
    } else {
        TRY(targets->find(targets->ctx, path, &target, err));
    }
    TRY(idmap_set(&m->target_of, number, target, err));
    *out = target;
done:
    return code;
}

/* All rows of the key but the newest. */
static tarn_code tell_older(key_map *m, key_index *index, const key_targets *targets,
                            key_location newest, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_chain chain = key_chain_of(newest);
    for (;;) {
        key_place place;
        TRY(key_index_older(index, &chain, err));
        if (chain.at.file < 0) {
            break;
        }
        place.position = chain.at.position & ~KEY_OLDER;
        TRY(target_for(m, index, targets, chain.at.file, &place.target, err));
        if (place.target >= 0) {
            TRY(targets->older(targets->ctx, place, err));
        }
    }
done:
    return code;
}

static tarn_code find_indexed(key_map *m, key_index *index, const key_targets *targets,
                              const tarn_str *keys, size_t n, key_place *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(reserve(m, n, err));
    TRY(key_index_find(index, keys, n, m->locations, err));
    for (size_t i = 0; i < n; i++) {
        out[i].target = KEY_ABSENT;
        out[i].position = m->locations[i].position & ~KEY_OLDER;
        if (m->locations[i].file >= 0) {
            TRY(target_for(m, index, targets, m->locations[i].file, &out[i].target, err));
        }
        if ((m->locations[i].position & KEY_OLDER) != 0) {
            TRY(tell_older(m, index, targets, m->locations[i], err));
        }
    }
done:
    return code;
}

/* Keys with a place first, then those without. */
static tarn_code put_indexed(key_map *m, key_index *index, const key_targets *targets,
                             tarn_str *keys, const key_place *places, size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n_put = 0;
    TRY(reserve(m, n, err));
    for (size_t i = 0; i < n; i++) {
        if (places[i].target == KEY_ABSENT) {
            continue;
        }
        key_location *to = &m->locations[n_put];
        TRY(number_for(m, index, targets, places[i].target, &to->file, err));
        to->position = places[i].target == KEY_DELETED ? 0 : places[i].position;
        tarn_str key = keys[i];
        keys[i] = keys[n_put];
        keys[n_put++] = key;
    }
    TRY(key_index_put(index, keys, m->locations, n_put, err));
    TRY(key_index_remove(index, keys + n_put, n - n_put, err));
done:
    return code;
}

/* ---- the keys of one checkpoint ---- */

static tarn_code spill(key_map *m, const key_targets *targets, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_index_options options;
    key_index *scratch = NULL;
    memset(&options, 0, sizeof options);
    if (m->scratch_dir == NULL) {
        return err_set(
            err, TARN_LIMIT,
            "the keys of one checkpoint took more than %zu bytes: make checkpoints of fewer "
            "rows, or give more memory; a sink with a state folder keeps them on disk",
            m->memory_bytes);
    }
    options.dir = m->scratch_dir;
    options.memory_bytes = m->memory_bytes;
    TRY(key_index_open(m->env, &options, &scratch, err));
    for (size_t i = 0; i < m->overlay.n; i++) {
        const overlay_entry *e = &m->overlay.entries[i];
        tarn_str key = overlay_key(&m->overlay, e);
        key_place place = {e->file, e->position};
        TRY(put_indexed(m, scratch, targets, &key, &place, 1, err));
    }
    overlay_release(&m->overlay);
    overlay_init(&m->overlay, m->env);
    m->scratch = scratch;
    scratch = NULL;
    env_log(m->env, TARN_LOG_INFO, "sink", "spill", "keys of a checkpoint go to %s",
            m->scratch_dir);
done:
    key_index_close(scratch);
    return code;
}

static void find_overlay(const key_map *m, const tarn_str *keys, size_t n, key_place *out) {
    for (size_t i = 0; i < n; i++) {
        const overlay_entry *e = overlay_find(&m->overlay, keys[i]);
        out[i].target = e != NULL ? e->file : KEY_ABSENT;
        out[i].position = e != NULL ? e->position : 0;
    }
}

tarn_code key_map_find(key_map *m, const key_targets *targets, const tarn_str *keys, size_t n,
                       key_place *out, tarn_error *err) {
    key_index *index = m->index != NULL ? m->index : m->scratch;
    if (index != NULL) {
        return find_indexed(m, index, targets, keys, n, out, err);
    }
    find_overlay(m, keys, n, out);
    return TARN_OK;
}

tarn_code key_map_put(key_map *m, const key_targets *targets, tarn_str *keys,
                      const key_place *places, size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_index *index = m->index != NULL ? m->index : m->scratch;
    size_t i = 0;
    for (; index == NULL && i < n; i++) {
        if (overlay_bytes_with(&m->overlay, keys[i].len) > m->memory_bytes) {
            TRY(spill(m, targets, err));
            index = m->scratch;
            break;
        }
        key_location location = {places[i].target, places[i].position};
        TRY(overlay_set(&m->overlay, keys[i], location, err));
    }
    if (index != NULL) {
        TRY(put_indexed(m, index, targets, keys + i, places + i, n - i, err));
    }
done:
    return code;
}
