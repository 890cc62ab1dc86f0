/* sink/key_places.c - see key_places.h. */
#include "sink/key_places.h"

void key_places_init(key_places *p, tarn_env *env, tarn_store *store, sink_keys *keys) {
    memset(p, 0, sizeof *p);
    p->env = env;
    p->store = store;
    p->keys = keys;
    p->base = TARN_NO_SNAPSHOT;
}

static void close_old(key_places *p) {
    old_files_close(&p->old);
    table_version_release(p->planned);
    p->planned = NULL;
}

void key_places_release(key_places *p) {
    if (p->env != NULL) {
        close_old(p);
        table_version_release(p->version);
        memset(p, 0, sizeof *p);
    }
}

void key_places_lose(key_places *p) {
    p->lost = true;
}

void key_places_clear(key_places *p) {
    if (p->lost) {
        keys_discard(p->keys);
        close_old(p);
        p->lost = false;
    }
}

bool key_places_go_on(key_places *p) {
    return p->on_way > 0 && !p->lost && old_files_go_on(&p->old, p->base);
}

tarn_code key_places_begin(key_places *p, tarn_table_version *version, int64_t head,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!old_files_go_on(&p->old, head)) {
        close_old(p);
        p->planned = table_version_keep(version);
        TRY(old_files_open(&p->old, p->env, p->store, version->metadata, head, err));
    }
    table_version_release(p->version);
    p->version = table_version_keep(version);
    p->base = head;
done:
    return code;
}

void key_places_push(key_places *p, const write_result *written) {
    tarn_error err = TARN_ERROR_INIT;
    p->on_way++;
    p->lost = p->lost || p->old.env == NULL; /* an empty one, before the table was looked at */
    if (p->lost) {
        return;
    }
    tarn_code code = old_files_add(&p->old, written, &err);
    code = code == TARN_OK ? keys_step(p->keys, &err) : code;
    if (code != TARN_OK) {
        env_log(p->env, TARN_LOG_WARN, "sink", "places", "%s", err.message);
        key_places_lose(p);
    }
}

bool key_places_are_full(const key_places *p) {
    return p->on_way > 0 && (p->lost || keys_are_full(p->keys));
}

/* Whether the n newest snapshots up to this one lie directly on base. */
static bool lies_on(const tarn_metadata *m, int64_t snapshot_id, int64_t n, int64_t base) {
    for (int64_t i = 0; i < n; i++) {
        const tarn_snapshot *s = metadata_snapshot_by_id(m, snapshot_id);
        if (s == NULL) {
            return false;
        }
        snapshot_id = s->parent_id;
    }
    return snapshot_id == base;
}

void key_places_settle(key_places *p, int32_t n, int64_t snapshots,
                       const tarn_table_version *version, int64_t snapshot_id) {
    tarn_error err = TARN_ERROR_INIT;
    p->on_way -= n;
    if (n == 0 || p->lost) {
        return;
    }
    if (snapshots == 0) { /* nothing but empty ones */
        snapshot_id = p->base;
    } else if (version == NULL || !lies_on(version->metadata, snapshot_id, snapshots, p->base)) {
        key_places_lose(p);
        return;
    }
    if (keys_settle(p->keys, n, snapshot_id, &err) != TARN_OK) {
        env_log(p->env, TARN_LOG_WARN, "sink", "places", "%s", err.message);
        key_places_lose(p);
        return;
    }
    p->base = snapshot_id;
    old_files_moved(&p->old, snapshot_id);
}
