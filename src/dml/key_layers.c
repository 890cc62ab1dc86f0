/* dml/key_layers.c - see key_layers.h. */
#include "dml/key_layers.h"

void layers_init(key_layers *l, tarn_env *env) {
    memset(l, 0, sizeof *l);
    overlay_init(&l->now, env);
    overlay_init(&l->settled, env);
    for (int32_t i = 0; i < KEY_INDEX_STEPS; i++) {
        overlay_init(&l->steps[i], env);
    }
}

void layers_release(key_layers *l) {
    overlay_release(&l->now);
    overlay_release(&l->settled);
    for (int32_t i = 0; i < l->n_steps; i++) {
        overlay_release(&l->steps[i]);
    }
    l->n_steps = 0;
}

size_t layers_step_bytes(const key_layers *l) {
    size_t bytes = 0;
    for (int32_t i = 0; i < l->n_steps; i++) {
        bytes += l->steps[i].n > 0 ? overlay_bytes_with(&l->steps[i], 0) : 0;
    }
    return bytes;
}

size_t layers_held_bytes(const key_layers *l) {
    size_t settled = l->settled.n > 0 ? overlay_bytes_with(&l->settled, 0) : 0;
    return settled + layers_step_bytes(l);
}

const overlay_entry *layers_find(const key_layers *l, tarn_str key) {
    const uint32_t hash = overlay_hash(key);
    const overlay_entry *e = overlay_find_hashed(&l->now, key, hash);
    for (int32_t i = l->n_steps; e == NULL && i-- > 0;) {
        e = overlay_find_hashed(&l->steps[i], key, hash);
    }
    return e != NULL ? e : overlay_find_hashed(&l->settled, key, hash);
}

tarn_code layers_step(key_layers *l, tarn_error *err) {
    if (l->n_steps == KEY_INDEX_STEPS) {
        return err_set(err, TARN_LIMIT, "%d steps of a key index wait for their snapshots",
                       KEY_INDEX_STEPS);
    }
    l->steps[l->n_steps++] = l->now;
    overlay_init(&l->now, l->now.env);
    return TARN_OK;
}

static tarn_code join(key_overlay *to, key_overlay *from, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (to->n == 0) {
        overlay_release(to);
        *to = *from;
        overlay_init(from, to->env);
        return TARN_OK;
    }
    for (size_t i = 0; i < from->n; i++) {
        const overlay_entry *e = &from->entries[i];
        const key_location location = {e->file, e->position};
        TRY(overlay_set(to, overlay_key(from, e), location, err));
    }
    overlay_release(from);
done:
    return code;
}

tarn_code layers_settle(key_layers *l, int32_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < n; i++) {
        TRY(join(&l->settled, &l->steps[i], err));
    }
    for (int32_t i = n; i < l->n_steps; i++) {
        l->steps[i - n] = l->steps[i];
        overlay_init(&l->steps[i], l->now.env);
    }
    l->n_steps -= n;
done:
    return code;
}

void layers_drop(key_layers *l) {
    overlay_reset(&l->now);
    for (int32_t i = 0; i < l->n_steps; i++) {
        overlay_release(&l->steps[i]);
    }
    l->n_steps = 0;
}
