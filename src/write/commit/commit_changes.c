/* write/commit/commit_changes.c - commits of metadata alone: the maker is asked again on every base
 * until a swap succeeds or is refused for good. */
#include "write/commit/commit_int.h"

#define MAX_ATTEMPTS 10

tarn_code commit_changes(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                         commit_make_fn make, void *ctx, commit_outcome *outcome, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(outcome, 0, sizeof *outcome);
    outcome->snapshot_id = TARN_NO_SNAPSHOT;
    for (int32_t attempt = 1;; attempt++) {
        tarn_arena arena;
        tarn_table_version *base = NULL;
        tarn_change_set set;
        memset(&set, 0, sizeof set); /* makers say what they have: a change, or a requirement too */
        arena_init(&arena, env);
        outcome->attempts = attempt;
        outcome->kind = TARN_NOT_COMMITTED;
        code = catalog_load(catalog, table, &base, err);
        if (code == TARN_OK) {
            code = make(ctx, &arena, base->metadata, &set, err);
        }
        bool sent = code == TARN_OK && set.n_changes > 0;
        if (sent) {
            code =
                catalog_commit(catalog, table, base, &set, &outcome->kind, &outcome->version, err);
        }
        table_version_release(base);
        arena_release(&arena);
        if (!sent || code != TARN_CONFLICT || attempt == MAX_ATTEMPTS) {
            return code;
        }
        err_reset(err);
        env_sleep_ms(env, 10 * attempt + (int64_t)(env_random_u64(env) % 50));
    }
}
