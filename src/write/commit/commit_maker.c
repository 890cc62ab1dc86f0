/* write/commit/commit_maker.c - one commit in the making, without a catalog: a base goes in,
 * changes come out, as often as there are bases; what lost attempts wrote goes at the end
 * (commit.h, invariants 2 to 4). */
#include "write/commit/commit_int.h"

tarn_str request_branch(const commit_request *request) {
    return request->branch.len > 0 ? request->branch : STR(TARN_MAIN_BRANCH);
}

/* From the branch's newest snapshot back to the one before until (0: to the first). */
static const tarn_snapshot *find_back(const tarn_metadata *m, tarn_str branch, tarn_property wanted,
                                      int64_t until, bool *cut) {
    const tarn_ref *ref = metadata_ref(m, branch);
    const tarn_snapshot *s = ref != NULL ? metadata_snapshot_by_id(m, ref->snapshot_id) : NULL;
    *cut = false;
    /* No chain is longer than there are snapshots: parents that form a ring end here. */
    for (int32_t steps = 0; s != NULL && steps < m->n_snapshots && s->snapshot_id != until;
         steps++) {
        for (int32_t i = 0; i < s->summary.count; i++) {
            const tarn_property *p = &s->summary.items[i];
            if (str_eq(p->key, wanted.key) && str_eq(p->value, wanted.value)) {
                return s;
            }
        }
        const tarn_snapshot *parent = metadata_parent(m, s);
        *cut = parent == NULL && s->parent_id != TARN_NO_SNAPSHOT;
        s = parent;
    }
    return NULL;
}

const tarn_snapshot *commit_find_summary(const tarn_metadata *m, tarn_str branch, const char *key,
                                         tarn_str value, bool *cut) {
    bool ignored;
    const tarn_property wanted = {str_of(key), value};
    return find_back(m, branch, wanted, 0, cut != NULL ? cut : &ignored);
}

const tarn_snapshot *commit_find_id(const tarn_metadata *m, const commit_request *request) {
    bool ignored;
    const tarn_property wanted = {STR("tarn.commit-id"), str_of(request->commit_id)};
    return request->commit_id != NULL
               ? find_back(m, request_branch(request), wanted, request->id_is_after, &ignored)
               : NULL;
}

static bool fence_is_of(const commit_fence *fence, const tarn_snapshot *s) {
    for (int32_t i = 0; i < fence->of.count; i++) {
        tarn_property want = fence->of.items[i];
        bool found = false;
        for (int32_t j = 0; j < s->summary.count && !found; j++) {
            found = str_eq(s->summary.items[j].key, want.key);
            if (found && !str_eq(s->summary.items[j].value, want.value)) {
                return false;
            }
        }
        if (i == 0 && !found) {
            return false;
        }
    }
    return fence->of.count > 0;
}

static bool is_above(const tarn_snapshot *s, tarn_str key, int64_t at_most, int64_t *out) {
    for (int32_t i = 0; i < s->summary.count; i++) {
        if (str_eq(s->summary.items[i].key, key)) {
            return str_to_i64(s->summary.items[i].value, out) && *out > at_most;
        }
    }
    return false;
}

static tarn_code ask_fence(const commit_fence *fence, const tarn_snapshot *s, tarn_error *err) {
    int64_t number;
    if (is_above(s, fence->number, fence->at_most, &number)) {
        return err_set(err, TARN_DENIED,
                       "%.*s %.*s was taken over: snapshot %lld has %.*s %lld, after %lld",
                       STR_ARG(fence->of.items[0].key), STR_ARG(fence->of.items[0].value),
                       (long long)s->snapshot_id, STR_ARG(fence->number), (long long)number,
                       (long long)fence->at_most);
    }
    if (fence->step.len > 0 && is_above(s, fence->step, fence->step_below - 1, &number)) {
        return err_set(err, TARN_DENIED,
                       "another one is at work as %.*s %.*s: snapshot %lld has %.*s %lld already, "
                       "and %lld was to be committed",
                       STR_ARG(fence->of.items[0].key), STR_ARG(fence->of.items[0].value),
                       (long long)s->snapshot_id, STR_ARG(fence->step), (long long)number,
                       (long long)fence->step_below);
    }
    return TARN_OK;
}

static tarn_code check_fence(const tarn_metadata *m, const commit_request *request,
                             tarn_error *err) {
    const commit_fence *fence = request->fence;
    const tarn_snapshot *s = metadata_head(m, request_branch(request));
    for (int32_t steps = 0; s != NULL && steps < m->n_snapshots; steps++) {
        if (fence_is_of(fence, s)) {
            return ask_fence(fence, s, err);
        }
        s = metadata_parent(m, s);
    }
    return TARN_OK;
}

bool commit_fence_holds(const tarn_metadata *m, tarn_str branch, const commit_fence *fence) {
    const tarn_snapshot *s = metadata_head(m, branch);
    int64_t step;
    for (int32_t steps = 0; s != NULL && steps <= m->n_snapshots; steps++) {
        if (s->snapshot_id == fence->holds) {
            return true;
        }
        if (fence_is_of(fence, s) && is_above(s, fence->step, 0, &step)) {
            return step >= fence->holds_step;
        }
        if (s->parent_id == TARN_NO_SNAPSHOT) {
            return false;
        }
        s = metadata_parent(m, s);
        if (s == NULL) {
            return metadata_ref(m, branch) != NULL; /* what was before is not known */
        }
    }
    return s != NULL;
}

static tarn_code check_held(const tarn_metadata *m, const commit_request *request,
                            tarn_error *err) {
    const commit_fence *fence = request->fence;
    if (fence->holds <= 0 || fence->step.len == 0 ||
        commit_fence_holds(m, request_branch(request), fence)) {
        return TARN_OK;
    }
    return err_set(err, TARN_CONFLICT,
                   "branch %.*s no longer holds snapshot %lld, with %.*s %lld of %.*s",
                   STR_ARG(request_branch(request)), (long long)fence->holds, STR_ARG(fence->step),
                   (long long)fence->holds_step, STR_ARG(fence->of.items[0].value));
}

tarn_code commit_check_base(const tarn_metadata *m, const commit_request *request,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    if (request->table_uuid.len > 0 && !str_eq(m->table_uuid, request->table_uuid)) {
        return err_set(err, TARN_CONFLICT,
                       "the table's uuid is %.*s, and the commit was made for %.*s",
                       STR_ARG(m->table_uuid), STR_ARG(request->table_uuid));
    }
    if (request->fence != NULL) {
        TRY(check_fence(m, request, err));
        TRY(check_held(m, request, err));
    }
done:
    return code;
}

tarn_code commit_shared_ids(tarn_arena *arena, tarn_store *store, const tarn_snapshot *s,
                            tarn_str *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    tarn_str count;
    *out = STR_NULL;
    if (!properties_get(&s->summary, COMMIT_SHARED_COUNT, &count) || s->manifest_list.len == 0) {
        return TARN_OK;
    }
    TRY(store_open(store, s->manifest_list, -1, &source, err));
    TRY(manifest_list_property(arena, source, SHARED_IDS_KEY, out, err));
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

static tarn_code find_parent(commit_attempt *a, tarn_error *err) {
    const tarn_ref *ref = metadata_ref(a->metadata, a->branch);
    a->parent = metadata_head(a->metadata, a->branch);
    if (ref != NULL && ref->is_tag) {
        return err_set(err, TARN_INVALID, "%.*s is a tag; commits go to branches",
                       STR_ARG(a->branch));
    }
    if (ref != NULL && a->parent == NULL) {
        return err_set(err, TARN_CORRUPT, "branch %.*s names snapshot %lld, which the table lacks",
                       STR_ARG(a->branch), (long long)ref->snapshot_id);
    }
    return TARN_OK;
}

/* Requirements and changes that put a->snapshot at the head of the branch; of one that is made,
 * that nobody else made it. */
static void make_changes(commit_maker *maker, tarn_change_set *set) {
    const commit_attempt *a = &maker->attempt;
    tarn_requirement *requirements = maker->requirements;
    tarn_change *changes = maker->changes;
    const tarn_metadata *m = a->metadata;
    const tarn_ref *ref = metadata_ref(m, a->branch);
    memset(requirements, 0, sizeof maker->requirements);
    memset(changes, 0, sizeof maker->changes);
    int32_t n = 0;
    if (m->table_uuid.len > 0) {
        requirements[n].kind = REQUIRE_UUID;
        requirements[n++].text = m->table_uuid;
    }
    requirements[n].kind = REQUIRE_REF_SNAPSHOT_ID;
    requirements[n].text = a->branch;
    requirements[n++].number = ref != NULL ? ref->snapshot_id : TARN_NO_SNAPSHOT;
    changes[0].kind = CHANGE_ADD_SNAPSHOT;
    changes[0].snapshot = a->snapshot;
    changes[1].kind = CHANGE_SET_SNAPSHOT_REF;
    if (ref != NULL) {
        changes[1].ref = *ref; /* its retention settings stay */
    } else {
        changes[1].ref.max_ref_age_ms = -1;
        changes[1].ref.max_snapshot_age_ms = -1;
        changes[1].ref.min_snapshots_to_keep = -1;
    }
    changes[1].ref.name = a->branch;
    changes[1].ref.snapshot_id = a->snapshot->snapshot_id;
    set->requirements = requirements;
    set->n_requirements = n;
    set->changes = changes;
    changes[2].kind = CHANGE_SET_PROPERTIES;
    changes[2].properties = maker->work.request->properties;
    set->n_changes = changes[2].properties.count > 0 ? 3 : 2;
}

/* The files that the attempt's snapshot lives by. */
static tarn_code note_kept(commit_maker *maker, tarn_error *err) {
    commit_work *work = &maker->work;
    const commit_attempt *a = &maker->attempt;
    tarn_code code = TARN_OK;
    maker->kept.count = 0;
    TRY(path_list_add(&work->arena, &maker->kept, a->snapshot->manifest_list, err));
    for (int32_t i = 0; i < a->n_list; i++) {
        if (a->list[i].added_snapshot_id == work->snapshot_id) {
            tarn_str path = arena_str(&work->arena, a->list[i].path);
            if (path.data == NULL) {
                return err_nomem(err);
            }
            TRY(path_list_add(&work->arena, &maker->kept, path, err));
        }
    }
done:
    return code;
}

static void end_attempt(commit_maker *maker) {
    if (maker->in_attempt) {
        arena_release(&maker->attempt.arena);
        maker->in_attempt = false;
    }
}

tarn_code commit_maker_new(tarn_env *env, tarn_store *store, const commit_request *request,
                           commit_maker **out, tarn_error *err) {
    commit_maker *maker = env_calloc(env, 1, sizeof *maker);
    if (maker == NULL) {
        return err_nomem(err);
    }
    maker->work.env = env;
    maker->work.store = store;
    maker->work.request = request;
    maker->work.snapshot_id =
        request->origin != NULL ? request->origin->snapshot_id : env_random_snapshot_id(env);
    arena_init(&maker->work.arena, env);
    env_uuid_v4(env, maker->work.uuid);
    *out = maker;
    return TARN_OK;
}

int64_t commit_maker_snapshot_id(const commit_maker *maker) {
    return maker->work.snapshot_id;
}

void commit_maker_written(const commit_maker *maker, const tarn_str **out, int32_t *n) {
    *out = maker->work.written.items;
    *n = (int32_t)maker->work.written.count;
}

/* Another one where the table has it, as long as nothing was written under it. */
static tarn_code choose_id(commit_work *work, const tarn_metadata *base, tarn_error *err) {
    const commit_origin *origin = work->request->origin;
    if (origin != NULL && metadata_snapshot_by_id(base, origin->snapshot_id) != NULL) {
        return err_set(err, TARN_CONFLICT, "snapshot %lld is in the table already",
                       (long long)origin->snapshot_id);
    }
    while (origin == NULL && work->written.count == 0 &&
           metadata_snapshot_by_id(base, work->snapshot_id) != NULL) {
        work->snapshot_id = env_random_snapshot_id(work->env);
    }
    return TARN_OK;
}

tarn_code commit_maker_attempt(commit_maker *maker, const tarn_metadata *base, tarn_change_set *out,
                               tarn_error *err) {
    commit_work *work = &maker->work;
    commit_attempt *a = &maker->attempt;
    tarn_code code = TARN_OK;
    end_attempt(maker);
    memset(a, 0, sizeof *a);
    memset(out, 0, sizeof *out);
    a->work = work;
    a->metadata = base;
    a->branch = request_branch(work->request);
    arena_init(&a->arena, work->env);
    maker->in_attempt = true;
    work->attempt++;
    TRY(choose_id(work, base, err));
    TRY(find_parent(a, err));
    if (work->request->check != NULL) {
        TRY(work->request->check(work->request->check_ctx, a->metadata, err));
    }
    TRY(commit_check_base(base, work->request, err));
    TRY(produce_snapshot(a, err));
    if (a->snapshot != NULL) {
        TRY(note_kept(maker, err));
        make_changes(maker, out);
    }
done:
    return code;
}

static bool path_list_has(const path_list *list, tarn_str path) {
    for (size_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i], path)) {
            return true;
        }
    }
    return false;
}

bool commit_maker_made(const commit_maker *maker, const tarn_snapshot *s) {
    return path_list_has(&maker->kept, s->manifest_list);
}

/* Removes what we wrote and the committed snapshot does not name (invariant 3). Failing to is
 * logged, not an error. */
static void clean_up(const commit_maker *maker, bool committed) {
    const commit_work *work = &maker->work;
    for (size_t i = 0; i < work->written.count; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_str path = work->written.items[i];
        if (committed && path_list_has(&maker->kept, path)) {
            continue;
        }
        tarn_code code = store_remove(work->store, path, &err);
        if (code != TARN_OK && code != TARN_NOT_FOUND && store_exists(work->store, path)) {
            env_log(work->env, TARN_LOG_WARN, "commit", "cleanup", "%s", err.message);
        }
    }
}

void commit_maker_end(commit_maker *maker, tarn_outcome_kind outcome) {
    if (maker == NULL) {
        return;
    }
    if (outcome != TARN_OUTCOME_UNKNOWN) {
        clean_up(maker, outcome == TARN_COMMITTED);
    }
    end_attempt(maker);
    arena_release(&maker->work.arena);
    env_free(maker->work.env, maker);
}
