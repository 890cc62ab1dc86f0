/* read/plan_deletes.c - which delete files a plan's tasks need, and their content once loaded.
 *
 * Positions and vectors fill one set a task; equality deletes fill one set of keys for all delete
 * files of the same key columns and scope (all data, or one partition), each key with the highest
 * sequence number that deletes it, so that tasks of any age can share it. A task is ready when all
 * delete files of its positions and of its key sets are loaded. Who needs a file that nobody loads
 * takes it; who finds all taken waits.
 * Invariants: 1 a delete file goes from WAITING over LOADING to LOADED or FAILED, once; 2 what it
 * fills is read only when it, and all others that fill the same, are LOADED; 3 who loads waits for
 * nobody, so waiting ends. */
#include "read/plan_deletes.h"

#include "base/limits.h"
#include "iceberg/delete_index.h"
#include "read/delete_load.h"

#include <stdlib.h>

typedef enum file_state { WAITING, LOADING, LOADED, FAILED } file_state;

typedef struct key_group key_group;

typedef struct delete_file {
    const tarn_entry *entry;
    file_state state;
    tarn_code code; /* of a failed one */
    tarn_error err;
    key_group *group;        /* equality deletes */
    delete_target **targets; /* others */
    int32_t n_targets;
} delete_file;

struct key_group {
    row_delete_keys keys;
    key_set *set;
    const tarn_type *key_type;
    delete_file **files;
    int32_t n_files;
    int64_t seen_by; /* task that counted it last, + 1 */
    key_group *next;
};

typedef struct task_state {
    delete_target target;
    delete_file **files; /* of positions and vectors */
    int32_t n_files;
    key_group **groups;
    int32_t n_groups;
    const tarn_type *key_type;
    row_deletes all, positions; /* views, made when ready */
    bool viewed;                /* positions are in both */
} task_state;

struct plan_deletes {
    tarn_env *env;
    tarn_plan *plan;
    tarn_arena arena;
    task_state *tasks; /* one a task of the plan */
    tarn_map files;    /* entry (its address) to delete_file */
    tarn_map groups;   /* key columns and scope to key_group */
    key_group *first_group;
    key_budget budget;
    pthread_mutex_t lock; /* states */
    pthread_mutex_t fill; /* what is filled */
    pthread_cond_t changed;
};

/* ---- making ---- */

static int compare_ids(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The field of an id: as the plan's schema has it, else the present one, else the newest that had
 * it (spec, "Equality Delete Files": columns that were dropped later). */
static const tarn_schema *schema_of_id(const tarn_plan *plan, int32_t id) {
    const tarn_metadata *m = plan->options.metadata;
    if (type_find_id(plan->schema->root, id) != NULL) {
        return plan->schema;
    }
    if (type_find_id(metadata_schema(m)->root, id) != NULL) {
        return metadata_schema(m);
    }
    const tarn_schema *found = NULL;
    for (int32_t i = 0; i < m->n_schemas; i++) {
        if (type_find_id(m->schemas[i]->root, id) != NULL &&
            (found == NULL || found->schema_id < m->schemas[i]->schema_id)) {
            found = m->schemas[i];
        }
    }
    return found;
}

static tarn_code type_of_keys(plan_deletes *d, const tarn_entry *entry, key_group *g,
                              tarn_error *err) {
    static const tarn_type nothing = {.kind = TARN_STRUCT};
    const tarn_type *type = &nothing;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < g->keys.n_ids; i++) {
        const int32_t id = g->keys.ids[i];
        const tarn_schema *schema = schema_of_id(d->plan, id);
        const tarn_type *part = NULL;
        if (schema == NULL) {
            code = err_set(err, TARN_CORRUPT,
                           "delete file %.*s compared column id %d, which no schema has",
                           STR_ARG(entry->file.path), (int)id);
            goto done;
        }
        TRY(columns_of_ids(&d->arena, schema->root, &id, 1, &part, err));
        TRY(columns_merge(&d->arena, type, part, &type, err));
    }
    code = columns_optional(&d->arena, type, &g->key_type, err);
done:
    return code;
}

static tarn_code new_group(plan_deletes *d, const tarn_entry *entry, const int32_t *ids,
                           int32_t n_ids, key_group **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_group *g = ARENA_NEW(&d->arena, key_group);
    if (g == NULL) {
        return err_nomem(err);
    }
    g->keys.ids = ids;
    g->keys.n_ids = n_ids;
    TRY(type_of_keys(d, entry, g, err));
    TRY(key_set_new(d->env, &d->budget, &g->set, err));
    g->keys.set = g->set;
    g->next = d->first_group;
    d->first_group = g;
    *out = g;
done:
    return code;
}

/* Rising, each once. */
static int32_t sort_ids(int32_t *ids, int32_t n) {
    int32_t distinct = 0;
    qsort(ids, (size_t)n, sizeof *ids, compare_ids);
    for (int32_t i = 0; i < n; i++) {
        if (distinct == 0 || ids[distinct - 1] != ids[i]) {
            ids[distinct++] = ids[i];
        }
    }
    return distinct;
}

/* The group of an equality delete file: its columns, in whatever order they are named, and what it
 * reaches, all data or one partition. */
static tarn_code find_group(plan_deletes *d, const tarn_entry *entry, key_group **out,
                            tarn_error *err) {
    const tarn_file *f = &entry->file;
    const tarn_str scope =
        delete_is_global(d->plan->options.metadata, f) ? STR("") : file_partition_key(&d->arena, f);
    const size_t bytes = (size_t)f->n_equality_ids * sizeof(int32_t);
    int32_t *ids = arena_alloc(&d->arena, bytes + scope.len);
    if (ids == NULL || scope.data == NULL) {
        return err_nomem(err);
    }
    memcpy(ids, f->equality_ids, bytes);
    const int32_t n_ids = sort_ids(ids, f->n_equality_ids);
    memcpy(ids + n_ids, scope.data, scope.len);
    const tarn_str key = str_make(ids, (size_t)n_ids * sizeof *ids + scope.len);
    map_entry *slot = map_put(&d->groups, key, NULL);
    if (slot == NULL) {
        return err_nomem(err);
    }
    tarn_code code = TARN_OK;
    if (slot->value.ptr == NULL) {
        key_group *made = NULL;
        code = new_group(d, entry, ids, n_ids, &made, err);
        slot->value.ptr = made;
    }
    *out = slot->value.ptr;
    return code;
}

static delete_file *known_file(const plan_deletes *d, const tarn_entry *entry) {
    const map_entry *slot = map_find(&d->files, str_make(&entry, sizeof entry));
    return slot != NULL ? slot->value.ptr : NULL;
}

/* First pass: all delete files and groups, with how many targets and files they have. */
static tarn_code count_file(plan_deletes *d, const tarn_entry *entry, tarn_error *err) {
    delete_file *file = known_file(d, entry);
    if (file == NULL) {
        file = ARENA_NEW(&d->arena, delete_file);
        if (file == NULL) {
            return err_nomem(err);
        }
        file->entry = entry;
        map_entry *slot = map_put(&d->files, str_make(&file->entry, sizeof file->entry), NULL);
        if (slot == NULL) {
            return err_nomem(err);
        }
        slot->value.ptr = file;
        if (entry->file.content == TARN_CONTENT_EQUALITY_DELETES) {
            tarn_code code = find_group(d, entry, &file->group, err);
            if (code != TARN_OK) {
                return code;
            }
            file->group->n_files++;
        }
    }
    file->n_targets += file->group == NULL;
    return TARN_OK;
}

static tarn_code make_room(plan_deletes *d, tarn_error *err) {
    for (size_t i = 0; i < d->files.count; i++) {
        delete_file *file = d->files.entries[i].value.ptr;
        file->targets = ARENA_ARRAY(&d->arena, delete_target *, (size_t)file->n_targets);
        if (file->targets == NULL) {
            return err_nomem(err);
        }
        file->n_targets = 0;
    }
    for (key_group *g = d->first_group; g != NULL; g = g->next) {
        g->files = ARENA_ARRAY(&d->arena, delete_file *, (size_t)g->n_files);
        if (g->files == NULL) {
            return err_nomem(err);
        }
        g->n_files = 0;
    }
    for (size_t i = 0; i < d->files.count; i++) {
        delete_file *file = d->files.entries[i].value.ptr;
        if (file->group != NULL) {
            file->group->files[file->group->n_files++] = file;
        }
    }
    return TARN_OK;
}

/* Second pass: what a task needs. before: the task before, whose key columns often are the same. */
static tarn_code fill_task(plan_deletes *d, const scan_task *task, task_state *state,
                           const task_state *before, tarn_error *err) {
    const int64_t stamp = state - d->tasks + 1;
    tarn_code code = TARN_OK;
    state->target.path = task->file.path;
    if (task->n_deletes == 0) {
        return TARN_OK;
    }
    state->files = ARENA_ARRAY(&d->arena, delete_file *, (size_t)task->n_deletes);
    state->groups = ARENA_ARRAY(&d->arena, key_group *, (size_t)task->n_deletes);
    if (state->files == NULL || state->groups == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < task->n_deletes; i++) {
        delete_file *file = known_file(d, task->deletes[i]);
        if (file->group == NULL) {
            file->targets[file->n_targets++] = &state->target;
            state->files[state->n_files++] = file;
        } else if (file->group->seen_by != stamp) {
            file->group->seen_by = stamp;
            state->groups[state->n_groups++] = file->group;
        }
    }
    if (before != NULL && before->n_groups == state->n_groups && state->n_groups > 0 &&
        memcmp(before->groups, state->groups, (size_t)state->n_groups * sizeof(key_group *)) == 0) {
        state->key_type = before->key_type;
        return TARN_OK;
    }
    for (int32_t i = 0; i < state->n_groups; i++) {
        const tarn_type *type = state->groups[i]->key_type;
        if (state->key_type == NULL) {
            state->key_type = type;
        } else {
            TRY(columns_merge(&d->arena, state->key_type, type, &state->key_type, err));
        }
    }
done:
    return code;
}

static tarn_code collect(plan_deletes *d, tarn_error *err) {
    const tarn_plan *plan = d->plan;
    tarn_code code = TARN_OK;
    for (int64_t i = 0; i < plan->n_tasks; i++) {
        for (int32_t k = 0; k < plan->tasks[i].n_deletes; k++) {
            TRY(count_file(d, plan->tasks[i].deletes[k], err));
        }
    }
    TRY(make_room(d, err));
    d->tasks = ARENA_ARRAY(&d->arena, task_state, (size_t)plan->n_tasks);
    if (d->tasks == NULL) {
        return err_nomem(err);
    }
    for (int64_t i = 0; i < plan->n_tasks; i++) {
        TRY(fill_task(d, &plan->tasks[i], &d->tasks[i], i > 0 ? &d->tasks[i - 1] : NULL, err));
    }
done:
    return code;
}

tarn_code plan_deletes_new(tarn_plan *plan, plan_deletes **out, tarn_error *err) {
    bool any = false;
    for (int64_t i = 0; i < plan->n_tasks; i++) {
        any = any || plan->tasks[i].n_deletes > 0;
    }
    *out = NULL;
    if (!any) {
        return TARN_OK;
    }
    plan_deletes *d = env_calloc(plan->env, 1, sizeof *d);
    if (d == NULL) {
        return err_nomem(err);
    }
    d->env = plan->env;
    d->plan = plan;
    d->budget.max_bytes = LIMIT_DELETE_KEY_BYTES;
    arena_init(&d->arena, plan->env);
    map_init(&d->files, &d->arena);
    map_init(&d->groups, &d->arena);
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->fill, NULL);
    pthread_cond_init(&d->changed, NULL);
    tarn_code code = collect(d, err);
    if (code == TARN_OK) {
        *out = d;
    } else {
        plan_deletes_free(d);
    }
    return code;
}

void plan_deletes_free(plan_deletes *d) {
    if (d == NULL) {
        return;
    }
    for (key_group *g = d->first_group; g != NULL; g = g->next) {
        key_set_free(g->set);
    }
    for (int64_t i = 0; d->tasks != NULL && i < d->plan->n_tasks; i++) {
        positions_free(d->tasks[i].target.positions);
    }
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->fill);
    pthread_cond_destroy(&d->changed);
    arena_release(&d->arena);
    env_free(d->env, d);
}

/* ---- loading ---- */

static tarn_code load_file(plan_deletes *d, const delete_file *file, tarn_error *err) {
    const delete_loader l = {d->env, d->plan->store, d->plan->options.metadata,
                             d->plan->name_mapping, &d->fill};
    if (file->group != NULL) {
        return load_keys(&l, file->entry, file->group->key_type, &file->group->keys,
                         file->group->set, err);
    }
    if (file->entry->file.format == TARN_FORMAT_PUFFIN) {
        return load_vector(&l, file->entry, file->targets, file->n_targets, err);
    }
    return load_positions(&l, file->entry, file->targets, file->n_targets, err);
}

/* What is left of a list: a file to load, or whether others load some, or failed. */
typedef struct list_state {
    delete_file *waiting, *failed;
    bool loading;
} list_state;

static void look_at(delete_file *const *files, int32_t n, list_state *out) {
    for (int32_t i = 0; i < n; i++) {
        switch (files[i]->state) {
        case WAITING:
            out->waiting = out->waiting != NULL ? out->waiting : files[i];
            break;
        case LOADING:
            out->loading = true;
            break;
        case FAILED:
            out->failed = files[i];
            break;
        case LOADED:
            break;
        }
    }
}

/* Under the lock, which is let go while a file is read or others are waited for. */
static tarn_code load_task(plan_deletes *d, const task_state *state, bool without_keys,
                           tarn_error *err) {
    for (;;) {
        list_state left = {NULL, NULL, false};
        look_at(state->files, state->n_files, &left);
        for (int32_t i = 0; i < state->n_groups && !without_keys; i++) {
            look_at(state->groups[i]->files, state->groups[i]->n_files, &left);
        }
        if (left.failed != NULL) {
            if (err != NULL) {
                *err = left.failed->err;
            }
            return left.failed->code;
        }
        if (left.waiting != NULL) {
            tarn_error problem = TARN_ERROR_INIT;
            left.waiting->state = LOADING;
            pthread_mutex_unlock(&d->lock);
            tarn_code code = load_file(d, left.waiting, &problem);
            pthread_mutex_lock(&d->lock);
            left.waiting->code = code;
            left.waiting->err = problem;
            left.waiting->state = code == TARN_OK ? LOADED : FAILED;
            pthread_cond_broadcast(&d->changed);
        } else if (left.loading) {
            pthread_cond_wait(&d->changed, &d->lock);
        } else {
            return TARN_OK;
        }
    }
}

/* Under the lock. Positions that none were found for are none. */
static tarn_code make_views(plan_deletes *d, task_state *state, bool without_keys,
                            tarn_error *err) {
    if (!state->viewed) { /* once: those who have a view read it without the lock */
        state->positions.positions = state->target.positions;
        state->all.positions = state->target.positions;
        state->viewed = true;
    }
    if (without_keys || state->all.keys != NULL || state->n_groups == 0) {
        return TARN_OK;
    }
    row_delete_keys *keys = ARENA_ARRAY(&d->arena, row_delete_keys, (size_t)state->n_groups);
    if (keys == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < state->n_groups; i++) {
        if (key_set_count(state->groups[i]->set) > 0) {
            keys[state->all.n_keys++] = state->groups[i]->keys;
        }
    }
    state->all.keys = keys;
    state->all.key_type = state->all.n_keys > 0 ? state->key_type : NULL;
    return TARN_OK;
}

tarn_code plan_deletes_of(plan_deletes *d, const scan_task *task, bool without_keys,
                          const row_deletes **out, tarn_error *err) {
    *out = NULL;
    if (d == NULL || task->n_deletes == 0) {
        return TARN_OK;
    }
    tarn_assert(task >= d->plan->tasks && task < d->plan->tasks + d->plan->n_tasks);
    task_state *state = &d->tasks[task - d->plan->tasks];
    pthread_mutex_lock(&d->lock);
    tarn_code code = load_task(d, state, without_keys, err);
    if (code == TARN_OK) {
        code = make_views(d, state, without_keys, err);
    }
    const row_deletes *made = without_keys ? &state->positions : &state->all;
    if (code == TARN_OK && (made->positions != NULL || made->n_keys > 0)) {
        *out = made;
    }
    pthread_mutex_unlock(&d->lock);
    return code;
}
