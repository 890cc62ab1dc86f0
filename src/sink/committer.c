/* sink/committer.c - see committer.h. */
#include "sink/committer.h"

#include "sink/shared_offsets.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_CHAIN 64 /* snapshots of one swap */

static tarn_str operator_of(const committer *c) {
    return c->options.state != NULL ? sink_state_operator(c->options.state) : STR("writer");
}

void committer_init(committer *c, tarn_env *env, const committer_options *options) {
    memset(c, 0, sizeof *c);
    c->env = env;
    c->options = *options;
    c->committed.snapshot_id = TARN_NO_SNAPSHOT;
    c->fenced[0] = (tarn_property){STR(SINK_KEY_ID), options->sink_id};
    c->fenced[1] = (tarn_property){STR(SINK_KEY_OPERATOR), operator_of(c)};
    c->next_checkpoint = 1;
    c->memory = commit_memory_new(env);
    buf_init(&c->offsets_text, env, 0);
    buf_init(&c->notes, env, 0);
}

void committer_release(committer *c) {
    while (c->pending != NULL) {
        sink_pending *next = c->pending->next;
        sink_pending_free(c->pending);
        c->pending = next;
    }
    commit_memory_free(c->memory);
    c->memory = NULL;
    buf_release(&c->offsets_text);
    buf_release(&c->notes);
}

static void free_first(committer *c) {
    sink_pending *p = c->pending;
    c->pending = p->next;
    sink_pending_free(p);
}

static bool is_empty(const sink_delta *d) {
    return d->written.n_files == 0 && d->written.n_deletes == 0;
}

/* ---- one commit ---- */

/* Before this checkpoint: what came before it is there, and none of another job's that came later.
 */
static commit_fence fence_of(const committer *c, int64_t checkpoint) {
    const sink_committed *last = &c->committed;
    return (commit_fence){.of = {2, c->fenced},
                          .number = STR(SINK_KEY_EPOCH),
                          .at_most = sink_state_epoch(c->options.state),
                          .step = STR(SINK_KEY_CHECKPOINT),
                          .step_below = checkpoint,
                          .holds = last->snapshot_id > 0 ? last->snapshot_id : 0,
                          .holds_step = last->checkpoint};
}

/* Rows that were committed are gone from the branch: that is never passed over in silence, since
 * the source will not bring them again. */
static tarn_code check_moved(committer *c, const tarn_metadata *m, const sink_history *history,
                             tarn_error *err) {
    sink_committed *last = &c->committed;
    char newest[96] = "none of its checkpoints";
    const commit_fence fence = fence_of(c, 0);
    if (fence.holds == 0 || commit_fence_holds(m, c->options.branch, &fence)) {
        return TARN_OK;
    }
    if (history->checkpoint > 0) {
        (void)snprintf(newest, sizeof newest, "checkpoint %" PRId64 " (snapshot %" PRId64 ")",
                       history->checkpoint, history->snapshot_id);
    }
    if (c->options.accept_rollback) {
        env_log(c->env, TARN_LOG_WARN, "sink", "rollback",
                "branch %.*s holds %s, checkpoint %" PRId64 " (snapshot %" PRId64
                ") was taken back",
                STR_ARG(c->options.branch), newest, last->checkpoint, last->snapshot_id);
        last->snapshot_id = history->snapshot_id;
        return TARN_OK;
    }
    return err_set(err, TARN_CONFLICT,
                   "branch %.*s no longer holds checkpoint %" PRId64 " (snapshot %" PRId64
                   ") of sink %.*s, which was committed to it, but %s: move the branch back to "
                   "that snapshot, or go on without the rows that were taken back "
                   "(accept_rollback, --accept-rollback), or with a new state and sink id, to "
                   "read the input again",
                   STR_ARG(c->options.branch), last->checkpoint, last->snapshot_id,
                   STR_ARG(c->options.sink_id), newest);
}

static bool has_position_files(const write_result *w) {
    for (int32_t i = 0; i < w->n_deletes; i++) {
        if (w->deletes[i].content == TARN_CONTENT_POSITION_DELETES &&
            w->deletes[i].format != TARN_FORMAT_PUFFIN) {
            return true;
        }
    }
    return false;
}

/* A table that went on to format version 3 takes vectors only, so what was made durable before has
 * to be made anew from the input. */
static tarn_code check_version(committer *c, const tarn_metadata *m, tarn_error *err) {
    const sink_pending *first = c->pending;
    c->outdated =
        first != NULL && m->format_version > 2 && has_position_files(&first->delta.written);
    if (!c->outdated) {
        return TARN_OK;
    }
    return err_set(err, TARN_CONFLICT,
                   "table %.*s went on to format version %d after checkpoint %" PRId64
                   " of sink %.*s was written, whose position delete files it does not take",
                   STR_ARG(c->options.ident->name), m->format_version, first->delta.checkpoint,
                   STR_ARG(c->options.sink_id));
}

/* What check_base is asked of. */
typedef struct base_check {
    committer *committer;
    const sink_delta *delta;
    tarn_arena *arena;
    tarn_property *shared; /* in the summary; NULL: no offsets are kept there */
} base_check;

/* Asked with every base: the table is still the one, and no newer job of this sink was here
 * (invariant 4). */
static tarn_code check_base(void *ctx, const tarn_metadata *base, tarn_error *err) {
    const base_check *check = ctx;
    committer *c = check->committer;
    sink_history history;
    tarn_code code = TARN_OK;
    if (!str_eq(base->table_uuid, c->options.table_uuid)) {
        return err_set(err, TARN_INVALID,
                       "table %.*s is not the one that this sink was opened for: its uuid is now "
                       "%.*s, and was %.*s",
                       STR_ARG(c->options.ident->name), STR_ARG(base->table_uuid),
                       STR_ARG(c->options.table_uuid));
    }
    if (check->shared != NULL) {
        TRY(shared_offsets_move(check->arena, base, c->options.branch, c->options.shared,
                                check->delta->offsets, &check->shared->value, err));
    }
    if (c->options.state == NULL) {
        return TARN_OK;
    }
    TRY(sink_state_check(c->options.state, err));
    TRY(sink_history_read(base, c->options.branch, c->options.sink_id, operator_of(c), true,
                          &history, err));
    if (history.epoch > sink_state_epoch(c->options.state)) {
        code = err_set(err, TARN_DENIED,
                       "sink %.*s was taken over: job number %" PRId64
                       " of it committed checkpoint %" PRId64 ", after this one, number %" PRId64
                       ", had begun",
                       STR_ARG(c->options.sink_id), history.epoch, history.checkpoint,
                       sink_state_epoch(c->options.state));
        goto done;
    }
    if (history.checkpoint >= check->delta->checkpoint) {
        code = err_set(err, TARN_DENIED,
                       "sink %.*s is at work elsewhere too, with a copy of this state: its "
                       "checkpoint %" PRId64 " is in snapshot %" PRId64
                       " already, and this job's %" PRId64 " is another one",
                       STR_ARG(c->options.sink_id), history.checkpoint, history.snapshot_id,
                       check->delta->checkpoint);
        goto done;
    }
    TRY(check_moved(c, base, &history, err));
    TRY(check_version(c, base, err));
done:
    return code;
}

static tarn_code make_summary(base_check *check, tarn_properties *out, tarn_error *err) {
    const committer *c = check->committer;
    const sink_delta *d = check->delta;
    tarn_arena *arena = check->arena;
    const tarn_properties *own = &c->options.summary;
    *out = *own;
    if (c->options.sink_id.len == 0 && c->options.shared.len == 0) {
        return TARN_OK;
    }
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)own->count + 5);
    sink_state *state = c->options.state;
    char *checkpoint = arena_printf(arena, "%" PRId64, d->checkpoint);
    char *epoch = arena_printf(arena, "%" PRId64, state != NULL ? sink_state_epoch(state) : 0);
    if (items == NULL || checkpoint == NULL || epoch == NULL) {
        return err_nomem(err);
    }
    int32_t n = own->count;
    if (n > 0) {
        memcpy(items, own->items, (size_t)n * sizeof *items);
    }
    if (c->options.shared.len > 0 && d->offsets.data != NULL) {
        check->shared = &items[n];
        items[n++] = (tarn_property){c->options.shared, STR("{}")};
    }
    if (c->options.sink_id.len > 0) {
        items[n++] = (tarn_property){STR(SINK_KEY_ID), c->options.sink_id};
        items[n++] = (tarn_property){STR(SINK_KEY_OPERATOR), operator_of(c)};
    }
    if (state != NULL) { /* else checkpoints have no numbers that outlive the job */
        items[n++] = (tarn_property){STR(SINK_KEY_CHECKPOINT), str_of(checkpoint)};
        items[n++] = (tarn_property){STR(SINK_KEY_EPOCH), str_of(epoch)};
    }
    out->items = items;
    out->count = n;
    return TARN_OK;
}

/* What check_base asks, for a catalog that decides by itself. */
static tarn_code make_fence(const base_check *check, const commit_fence **out, tarn_error *err) {
    const committer *c = check->committer;
    if (c->options.state == NULL) {
        return TARN_OK;
    }
    commit_fence *fence = ARENA_NEW(check->arena, commit_fence);
    if (fence == NULL) {
        return err_nomem(err);
    }
    *fence = fence_of(c, check->delta->checkpoint);
    if (c->options.accept_rollback) {
        fence->holds = 0;
    }
    *out = fence;
    return TARN_OK;
}

static void count_commit(committer *c, const commit_outcome *out, int64_t ms) {
    committer_counts *both[2] = {&c->counts, &c->last};
    memset(&c->swap, 0, sizeof c->swap);
    c->swap.retries = out->attempts > 1 ? out->attempts - 1 : 0;
    c->swap.commit_ms = ms;
    for (int i = 0; i < 2; i++) {
        both[i]->retries += out->attempts > 1 ? out->attempts - 1 : 0;
        both[i]->commit_ms += ms;
    }
}

static void add_result(committer_counts *to, const write_result *w) {
    to->commits++;
    to->rows += w->rows;
    to->deleted_rows += w->deleted_rows;
    to->data_files += w->n_files;
    to->delete_files += w->n_deletes;
    to->bytes += write_result_bytes(w);
}

void committer_count(committer *c, const write_result *w) {
    add_result(&c->counts, w);
    add_result(&c->last, w);
}

/* Deltas are committed in their order, by whomever. */
static int64_t known_before(const committer *c, const sink_delta *d) {
    return c->committed.snapshot_id > 0 && c->committed.checkpoint < d->checkpoint
               ? c->committed.snapshot_id
               : 0;
}

static tarn_code fill_request(base_check *check, commit_request *request, tarn_error *err) {
    committer *c = check->committer;
    const sink_delta *d = check->delta;
    tarn_code code = TARN_OK;
    const write_result *w = &d->written;
    bool row_delta = w->n_deletes > 0 || w->n_removed_deletes > 0;
    memset(request, 0, sizeof *request);
    request->kind = row_delta ? COMMIT_ROW_DELTA : c->options.append;
    request->merge = row_delta; /* as Iceberg's row deltas do */
    request->added = w->files;
    request->n_added = w->n_files;
    request->added_deletes = w->deletes;
    request->n_added_deletes = w->n_deletes;
    request->removed_deletes = w->removed_deletes;
    request->n_removed_deletes = w->n_removed_deletes;
    request->referenced = w->referenced;
    request->n_referenced = w->n_referenced;
    /* A vector holds all deletes of its file; and a row that others deleted since may have been
     * moved by them, so that its key has another place. */
    request->check_new_deletes = w->n_referenced > 0;
    request->branch = c->options.branch;
    request->from_snapshot_id = w->n_referenced > 0 ? d->base_snapshot_id : TARN_NO_SNAPSHOT;
    c->mine = (tarn_property){STR(SINK_KEY_ID), c->options.sink_id};
    request->mine = c->options.sink_id.len > 0 ? &c->mine : NULL; /* what came before is known */
    request->commit_id = c->options.state != NULL ? d->commit_id : NULL;
    request->id_is_after = known_before(c, d);
    request->allow_empty = is_empty(d);
    request->table_uuid = c->options.table_uuid;
    request->share = c->options.sink_id.len == 0;
    TRY(make_fence(check, &request->fence, err));
    request->check = check_base;
    request->check_ctx = check;
    request->memory = c->memory;
    TRY(make_summary(check, &request->summary, err));
    request->check_each = check->shared != NULL;
done:
    return code;
}

static tarn_code run_commit(committer *c, const sink_delta *d, commit_outcome *out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    commit_request request;
    arena_init(&arena, c->env);
    memset(out, 0, sizeof *out);
    out->snapshot_id = TARN_NO_SNAPSHOT;
    base_check check = {c, d, &arena, NULL};
    TRY(fill_request(&check, &request, err));
    int64_t started = env_now_ms(c->env);
    code = commit_run(c->env, c->options.catalog, c->options.ident, NULL, &request, out, err);
    count_commit(c, out, env_now_ms(c->env) - started);
done:
    arena_release(&arena);
    return code;
}

static tarn_code keep_offsets(committer *c, const sink_delta *d, int64_t snapshot_id,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    c->committed.checkpoint = d->checkpoint;
    c->committed.snapshot_id = snapshot_id;
    c->committed.epoch = d->epoch;
    if (d->offsets.data == NULL) {
        goto done; /* what was said before still holds */
    }
    tarn_buf text;
    buf_init(&text, c->env, 0);
    code = buf_reserve(&text, d->offsets.len + 1, err);
    if (code == TARN_OK) {
        code = buf_append_str(&text, d->offsets, err);
    }
    if (code != TARN_OK) {
        buf_release(&text);
        return code;
    }
    buf_release(&c->offsets_text);
    c->offsets_text = text;
    c->committed.offsets = buf_str(&c->offsets_text);
done:
    return code;
}

/* The first pending delta is in the table, or has nothing that should be. */
static tarn_code finish_first(committer *c, int64_t snapshot_id, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_delta *d = &c->pending->delta;
    TRY(keep_offsets(c, d, snapshot_id, err));
    if (c->options.state != NULL) {
        TRY(sink_state_commit(c->options.state, &c->committed, err));
        sink_state_done(c->options.state, d);
    }
    free_first(c);
done:
    return code;
}

static void drop_files(committer *c, const sink_delta *d) {
    write_result_remove(c->options.catalog->store, &d->written);
}

/* A delta that will not be committed by this job. A newer job that read the state before the delta
 * was gone from it may commit it all the same; one that begins later can't know of it: so its files
 * go only if there is no newer one by now (state.h, invariant 3). */
static tarn_code give_up(committer *c, const sink_delta *d, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_state *state = c->options.state;
    if (state != NULL) {
        TRY(sink_state_drop(state, d, err));
        TRY(sink_state_check(state, err));
    }
    drop_files(c, d);
done:
    return code;
}

/* Without a state a commit is the caller's once: what failed is gone, what may have happened is
 * left alone. */
static void forget_failed(committer *c, const commit_outcome *out) {
    if (out->kind == TARN_NOT_COMMITTED) {
        drop_files(c, &c->pending->delta);
    }
    free_first(c);
}

/* Told of at most: where memory is short a note is missing, and the commit is one all the same. */
static void note_commit(committer *c, const sink_delta *d, int64_t snapshot_id) {
    tarn_error ignored = TARN_ERROR_INIT;
    committer_note note = {d->checkpoint, snapshot_id, c->swap};
    add_result(&note.counts, &d->written);
    if (c->notes.len < COMMITTER_NOTES * sizeof note) {
        ignored.code = buf_append(&c->notes, &note, sizeof note, &ignored);
    }
}

static tarn_code commit_first(committer *c, commit_outcome *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_delta *d = &c->pending->delta;
    bool replaces = c->options.append == COMMIT_REPLACE_PARTITIONS;
    bool moves = false;
    if (c->options.shared.len > 0) {
        code = shared_offsets_any(c->env, d->offsets, &moves, err);
    }
    if (code != TARN_OK) {
        drop_files(c, d);
        free_first(c);
        return code;
    }
    if (is_empty(d) && !moves) {
        c->empty_in_row++;
        if (c->options.empty_every == 0 || c->empty_in_row < c->options.empty_every || replaces) {
            return finish_first(c, c->committed.snapshot_id, err);
        }
    }
    commit_outcome now;
    code = run_commit(c, d, &now, err);
    table_version_release(out->version);
    *out = now;
    if (code != TARN_OK) {
        if (c->options.state == NULL) {
            forget_failed(c, out);
        }
        return code;
    }
    c->empty_in_row = 0;
    c->rows += d->written.rows;
    c->files += d->written.n_files;
    committer_count(c, &d->written);
    note_commit(c, d, out->snapshot_id);
    return finish_first(c, out->snapshot_id, err);
}

/* ---- several at once ---- */

/* Its snapshot can be made on one that is not in the table yet. */
static bool is_chainable(const committer *c, const sink_delta *d) {
    return c->options.state != NULL && c->options.append != COMMIT_REPLACE_PARTITIONS &&
           !is_empty(d);
}

static int32_t count_chain(const committer *c, int64_t up_to) {
    int32_t n = 0;
    const sink_pending *p = c->pending;
    while (p != NULL && p->delta.checkpoint <= up_to && n < MAX_CHAIN &&
           is_chainable(c, &p->delta)) {
        n++;
        p = p->next;
    }
    return n;
}

static tarn_code make_requests(committer *c, tarn_arena *arena, int32_t n, commit_request *requests,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    const sink_pending *p = c->pending;
    base_check *checks = ARENA_ARRAY(arena, base_check, (size_t)n);
    if (checks == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++, p = p->next) {
        checks[i] = (base_check){c, &p->delta, arena, NULL};
        TRY(fill_request(&checks[i], &requests[i], err));
    }
done:
    return code;
}

/* The first n are in the table: the last one's note stands for all. */
static tarn_code finish_chain(committer *c, int32_t n, const int64_t *ids, tarn_error *err) {
    tarn_code code = TARN_OK;
    const sink_pending *p = c->pending;
    for (int32_t i = 0; i < n; i++, p = p->next) {
        TRY(keep_offsets(c, &p->delta, ids[n - 1], err));
        note_commit(c, &p->delta, ids[i]);
        committer_count(c, &p->delta.written);
        c->rows += p->delta.written.rows;
        c->files += p->delta.written.n_files;
    }
    TRY(sink_state_commit(c->options.state, &c->committed, err));
    for (int32_t i = 0; i < n; i++) {
        sink_state_done(c->options.state, &c->pending->delta);
        free_first(c);
    }
    c->empty_in_row = 0;
done:
    return code;
}

/* *done: they are committed. Whatever else happened, one by one finds out what is in the table. */
static tarn_code commit_chained(committer *c, int32_t n, bool *done, commit_outcome *out,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    commit_outcome now;
    tarn_error refused = TARN_ERROR_INIT;
    int64_t started = env_now_ms(c->env);
    arena_init(&arena, c->env);
    commit_request *requests = ARENA_ARRAY(&arena, commit_request, (size_t)n);
    int64_t *ids = ARENA_ARRAY(&arena, int64_t, (size_t)n);
    *done = false;
    if (requests == NULL || ids == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(make_requests(c, &arena, n, requests, err));
    const commit_chain chain = {requests, n, ids};
    tarn_code chained =
        commit_run_chain(c->env, c->options.catalog, c->options.ident, &chain, &now, &refused);
    if (chained == TARN_NOMEM || chained == TARN_CANCELLED || chained == TARN_DENIED) {
        code = err_set(err, chained, "%s", refused.message);
        goto done;
    }
    if (chained != TARN_OK && err_is_away(&refused)) { /* it was waited for long enough */
        table_version_release(out->version);
        *out = now;
        code = err_as(err, err_set(err, chained, "%s", refused.message), &refused);
        goto done;
    }
    if (chained != TARN_OK) {
        env_log(c->env, TARN_LOG_INFO, "sink", "chain", "%s", refused.message);
        goto done;
    }
    *done = true;
    count_commit(c, &now, env_now_ms(c->env) - started);
    table_version_release(out->version);
    *out = now;
    code = finish_chain(c, n, ids, err);
done:
    arena_release(&arena);
    return code;
}

tarn_code committer_run(committer *c, int64_t up_to, commit_outcome *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    out->snapshot_id = TARN_NO_SNAPSHOT;
    c->rows = 0;
    c->files = 0;
    memset(&c->last, 0, sizeof c->last);
    while (code == TARN_OK && c->pending != NULL && c->pending->delta.checkpoint <= up_to) {
        int32_t n = count_chain(c, up_to);
        bool done = false;
        if (n > 1) {
            TRY(commit_chained(c, n, &done, out, err));
        }
        for (int32_t i = 0; !done && i < (n > 1 ? n : 1); i++) {
            TRY(commit_first(c, out, err));
        }
    }
done:
    return code;
}

/* ---- making durable, giving up ---- */

/* From the newest (invariant 5); c->next_checkpoint is the first one's number. */
static void drop_unadded(committer *c, sink_pending *p, bool named) {
    tarn_error ignored = TARN_ERROR_INIT;
    if (p->next != NULL) {
        drop_unadded(c, p->next, named);
    }
    if (!named) {
        drop_files(c, &p->delta);
    } else if (give_up(c, &p->delta, &ignored) != TARN_OK) {
        env_log(c->env, TARN_LOG_WARN, "sink", "cleanup", "checkpoint %" PRId64 ": %s",
                p->delta.checkpoint, ignored.message);
        if (c->next_checkpoint <= p->delta.checkpoint) {
            c->next_checkpoint = p->delta.checkpoint + 1; /* its number may be taken */
        }
    }
    sink_pending_free(p);
}

/* Their files are durable before the state names them: by the same sync where both lie in one
 * store, which gives names last. */
static tarn_code put_all(committer *c, sink_pending *p, bool *named, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_state *state = c->options.state;
    tarn_store *store = c->options.catalog->store;
    if (!sink_state_is_in(state, store)) {
        TRY(store_sync(store, err));
    }
    *named = true;
    for (; p != NULL; p = p->next) {
        TRY(sink_state_put(state, &p->delta, err));
    }
    TRY(sink_state_sync(state, err));
    TRY(sink_state_check(state, err));
done:
    return code;
}

/* Checkpoint and epoch of the newest delta. */
static void stream_end(const committer *c, int64_t out[2]) {
    out[0] = c->committed.checkpoint;
    out[1] = c->committed.epoch;
    for (const sink_pending *p = c->pending; p != NULL; p = p->next) {
        out[0] = p->delta.checkpoint;
        out[1] = p->delta.epoch;
    }
}

tarn_code committer_add(committer *c, sink_pending *first, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_state *state = c->options.state;
    bool named = false; /* the state may name the files */
    int64_t next = c->next_checkpoint;
    int64_t after[2];
    stream_end(c, after);
    for (sink_pending *p = first; p != NULL; p = p->next) {
        sink_delta *d = &p->delta;
        d->checkpoint = next++;
        d->epoch = state != NULL ? sink_state_epoch(state) : 0;
        d->after_checkpoint = after[0];
        d->after_epoch = after[1];
        after[0] = d->checkpoint;
        after[1] = d->epoch;
        if (state != NULL) {
            env_uuid_v4(c->env, d->commit_id);
        }
    }
    if (state != NULL) {
        TRY(put_all(c, first, &named, err));
    }
    c->next_checkpoint = next;
    sink_pending **at = &c->pending;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = first;
    first = NULL;
done:
    while (first != NULL && code == TARN_DENIED) { /* a newer job may have read and commit them */
        sink_pending *p = first;
        first = p->next;
        sink_pending_free(p);
    }
    if (first != NULL) {
        drop_unadded(c, first, named);
    }
    return code;
}

tarn_code committer_drop_all(committer *c, tarn_error *err) {
    tarn_code code = TARN_OK;
    while (c->pending != NULL) { /* from the newest (invariant 5) */
        sink_pending **last = &c->pending;
        while ((*last)->next != NULL) {
            last = &(*last)->next;
        }
        TRY(give_up(c, &(*last)->delta, err));
        sink_pending_free(*last);
        *last = NULL;
    }
done:
    return code;
}

/* ---- after a restart ---- */

/* What is not the stream's (pending.c), from the newest (invariant 5). */
static tarn_code drop_strays(committer *c, int64_t known, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t epoch = c->committed.checkpoint == known ? c->committed.epoch : 0;
    for (const sink_pending *p = c->pending; p != NULL && c->committed.checkpoint < known;
         p = p->next) { /* its note is not there yet: its delta is, the newest of its number */
        epoch = p->delta.checkpoint == known ? p->delta.epoch : epoch;
    }
    sink_pending_mark(c->pending, known, epoch);
    for (;;) {
        sink_pending **stray = NULL;
        for (sink_pending **at = &c->pending; *at != NULL; at = &(*at)->next) {
            stray = (*at)->stray ? at : stray;
        }
        if (stray == NULL) {
            break;
        }
        sink_pending *p = *stray;
        env_log(c->env, TARN_LOG_INFO, "sink", "stray",
                "checkpoint %" PRId64 " of job %" PRId64
                " is given up: what it follows is not there, or not this stream's",
                p->delta.checkpoint, p->delta.epoch);
        TRY(give_up(c, &p->delta, err));
        *stray = p->next;
        sink_pending_free(p);
    }
done:
    return code;
}

static tarn_code check_file(committer *c, const sink_delta *d, const tarn_file *file,
                            tarn_error *err) {
    store_stat_info info;
    tarn_code code = store_stat(c->options.catalog->store, file->path, &info, err);
    if (code == TARN_OK && file->format != TARN_FORMAT_PUFFIN &&
        info.size_bytes != file->size_bytes) {
        code = err_set(err, TARN_CORRUPT,
                       "file %.*s has %" PRId64 " bytes, and was written with "
                       "%" PRId64,
                       STR_ARG(file->path), info.size_bytes, file->size_bytes);
    }
    if (code == TARN_NOT_FOUND || code == TARN_CORRUPT) {
        tarn_error first = *err;
        code = err_set(err, code,
                       "checkpoint %" PRId64 " of sink %.*s can't be committed: %s; remove its "
                       "file checkpoint-%012" PRId64 "-%08" PRId64 " from the state to read the "
                       "input again from checkpoint %" PRId64,
                       d->checkpoint, STR_ARG(c->options.sink_id), first.message, d->checkpoint,
                       d->epoch, c->committed.checkpoint);
    }
    return code;
}

/* Clean-up of others may have run since (B37). */
static tarn_code check_files(committer *c, const sink_delta *d, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < d->written.n_files; i++) {
        TRY(check_file(c, d, &d->written.files[i], err));
    }
    for (int32_t i = 0; i < d->written.n_deletes; i++) {
        TRY(check_file(c, d, &d->written.deletes[i], err));
    }
done:
    return code;
}

/* Whether the table has this delta already (invariant 3). */
static tarn_code is_committed(committer *c, const tarn_metadata *m, const sink_history *history,
                              const sink_delta *d, bool *out, tarn_error *err) {
    *out = d->checkpoint <= c->committed.checkpoint || d->checkpoint <= history->checkpoint;
    if (*out || is_empty(d) || sink_history_reaches(m, c->options.branch, d->base_snapshot_id)) {
        return TARN_OK; /* commit_run looks for the commit id */
    }
    return sink_history_has_files(c->env, c->options.catalog->store, m, d, out, err);
}

static tarn_code recover_first(committer *c, const tarn_metadata *m, const sink_history *history,
                               commit_outcome *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const sink_delta *d = &c->pending->delta;
    bool done;
    TRY(is_committed(c, m, history, d, &done, err));
    if (done && d->checkpoint <= c->committed.checkpoint) {
        /* what was read may not be durable, and the delta goes on the word of it */
        TRY(sink_state_commit(c->options.state, &c->committed, err));
        sink_state_done(c->options.state, d);
        free_first(c);
    } else if (done) {
        if (!is_empty(d)) {
            committer_count(c, &d->written);
        }
        code = finish_first(c, history->snapshot_id, err);
    } else {
        TRY(check_files(c, d, err));
        code = commit_first(c, out, err);
    }
done:
    return code;
}

/* A state that was set back to an older checkpoint would number its new ones below those that the
 * table has (B34). */
static tarn_code check_rewound(const committer *c, const sink_history *history, int64_t last,
                               tarn_error *err) {
    if (history->checkpoint <= last) {
        return TARN_OK;
    }
    return err_set(err, TARN_CONFLICT,
                   "state of sink %.*s ends with checkpoint %" PRId64 ", but branch %.*s has its "
                   "checkpoint %" PRId64 " (snapshot %" PRId64 "): roll the table back to "
                   "checkpoint %" PRId64 ", or go on with a new state folder and sink id",
                   STR_ARG(c->options.sink_id), last, STR_ARG(c->options.branch),
                   history->checkpoint, history->snapshot_id, last);
}

int32_t committer_pending(const committer *c) {
    int32_t n = 0;
    for (const sink_pending *p = c->pending; p != NULL; p = p->next) {
        n++;
    }
    return n;
}

static int64_t last_checkpoint(const committer *c) {
    int64_t last = c->committed.checkpoint;
    for (const sink_pending *p = c->pending; p != NULL; p = p->next) {
        last = p->delta.checkpoint > last ? p->delta.checkpoint : last;
    }
    return last;
}

tarn_code committer_recover(committer *c, const tarn_table_version *base, int64_t complete,
                            commit_outcome *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_metadata *m = base->metadata;
    sink_history history;
    memset(out, 0, sizeof *out);
    out->snapshot_id = TARN_NO_SNAPSHOT;
    TRY(sink_history_read(m, c->options.branch, c->options.sink_id, operator_of(c), false, &history,
                          err));
    TRY(sink_state_begin(c->options.state, history.epoch + 1, m, &c->committed, &c->pending, err));
    if (c->committed.offsets.data != NULL) {
        TRY(buf_append_str(&c->offsets_text, c->committed.offsets, err));
        c->committed.offsets = buf_str(&c->offsets_text);
    }
    c->next_checkpoint = last_checkpoint(c) + 1; /* a stray's number is not used again */
    int64_t known =
        history.checkpoint > c->committed.checkpoint ? history.checkpoint : c->committed.checkpoint;
    TRY(drop_strays(c, known, err));
    TRY(check_rewound(c, &history, last_checkpoint(c), err));
    TRY(check_moved(c, m, &history, err));
    while (c->pending != NULL && (complete < 0 || c->pending->delta.checkpoint <= complete)) {
        TRY(recover_first(c, m, &history, out, err));
    }
    TRY(committer_drop_all(c, err));
    TRY(sink_state_sync(c->options.state, err)); /* notes and what they stand for, of all jobs */
done:
    return code;
}
