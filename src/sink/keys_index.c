/* sink/keys_index.c - key indexes in step with the table (keys.h, invariants 1 and 2). */
#include "base/map.h"
#include "sink/keys_int.h"
#include "store/store_tail.h"

#define MOST_TASKS 256 /* whose indexes are looked for when there are others now */

void keys_close_indexes(sink_keys *k) {
    for (int32_t i = 0; k->indexes != NULL && i < k->options.n_tasks; i++) {
        key_index_close(k->indexes[i]);
        k->indexes[i] = NULL;
    }
    k->indexes = NULL;
}

static char *index_dir(sink_keys *k, int32_t i, int32_t n) {
    return arena_printf(&k->now, "%.*s/keys-%d-of-%d", (int)k->options.state_dir.len,
                        k->options.state_dir.data, i + 1, n);
}

/* Indexes of another number of tasks: keys are spread otherwise now, so they only take room. What
 * another process has open stays. */
static void remove_others(sink_keys *k) {
    for (int32_t n = 1; n <= MOST_TASKS; n++) {
        for (int32_t i = 0; i < n && n != k->options.n_tasks; i++) {
            tarn_error ignored = TARN_ERROR_INIT;
            key_index_options scratch = {.dir = index_dir(k, i, n)};
            key_index *index = NULL;
            if (scratch.dir == NULL || !store_is_folder(scratch.dir)) {
                break;
            }
            if (key_index_open(k->env, &scratch, &index, &ignored) == TARN_OK) {
                key_index_close(index); /* with all that it has */
            }
        }
    }
}

tarn_code keys_open(sink_keys *k, const tarn_metadata *m, tarn_error *err) {
    tarn_code code = TARN_OK;
    const keys_options *o = &k->options;
    size_t memory = o->memory_bytes / (size_t)o->n_tasks;
    if (k->indexes != NULL || (k->kind != DELETE_POSITION && k->kind != DELETE_VECTOR)) {
        return TARN_OK;
    }
    k->indexes = ARENA_ARRAY(&k->arena, key_index *, (size_t)o->n_tasks + 1);
    if (k->indexes == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < o->n_tasks; i++) {
        key_index_options options;
        memset(&options, 0, sizeof options);
        options.dir = index_dir(k, i, o->n_tasks);
        if (options.dir == NULL) {
            code = err_nomem(err);
            goto done;
        }
        options.table_uuid = m->table_uuid;
        options.key_ids = k->ids;
        options.n_key_ids = k->n_ids;
        options.branch = o->branch;
        options.memory_bytes = memory;
        TRY(key_index_open(k->env, &options, &k->indexes[i], err));
    }
    remove_others(k);
done:
    if (code != TARN_OK) {
        keys_close_indexes(k);
    }
    return code;
}

/* ---- reading the table ---- */

typedef struct key_fill {
    sink_keys *keys;
    const tarn_type *wanted; /* the key's columns and _pos */
    key_rows rows;
    int32_t *numbers; /* of the file, by task */
    tarn_str **lists; /* keys of a batch, by task */
    key_location **locations;
    key_location **before;
    size_t *counts;
    size_t cap;
    bool from_nothing;   /* the indexes are empty: all rows are loaded, and none is looked for */
    tarn_plan *plan;     /* of the table that is read */
    tarn_map live;       /* path -> its task */
    tarn_idmap *task_of; /* by task: number of a file -> its task in the plan, -1: it is gone */
} key_fill;

static tarn_code reserve_fill(key_fill *f, size_t n, tarn_error *err) {
    sink_keys *k = f->keys;
    if (n <= f->cap) {
        return TARN_OK;
    }
    for (int32_t i = 0; i < k->options.n_tasks; i++) {
        tarn_str *list = env_realloc(k->env, f->lists[i], n * sizeof *list);
        if (list == NULL) {
            return err_nomem(err);
        }
        f->lists[i] = list;
        key_location *locations = env_realloc(k->env, f->locations[i], n * sizeof *locations);
        if (locations == NULL) {
            return err_nomem(err);
        }
        f->locations[i] = locations;
        key_location *before = env_realloc(k->env, f->before[i], n * sizeof *before);
        if (before == NULL) {
            return err_nomem(err);
        }
        f->before[i] = before;
    }
    f->cap = n;
    return TARN_OK;
}

/* ---- keys that the table holds more than once ---- */

static tarn_code plan_task_of(key_fill *f, int32_t i, int32_t number, int32_t *out,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_keys *k = f->keys;
    tarn_str path;
    if (idmap_get(&f->task_of[i], number, out)) {
        return TARN_OK;
    }
    TRY(key_index_file_path(k->indexes[i], number, &k->now, &path, err));
    const map_entry *e = map_find(&f->live, path);
    int32_t at = e != NULL ? (int32_t)e->value.i64 : -1;
    TRY(idmap_set(&f->task_of[i], number, at, err));
    *out = at;
done:
    return code;
}

/* Whether there is a row at a place. One that an equality delete took counts: to delete it again
 * changes nothing. */
static tarn_code is_live(key_fill *f, int32_t i, key_location at, bool *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_positions *deleted = NULL;
    int32_t task;
    *out = false;
    TRY(plan_task_of(f, i, at.file, &task, err));
    if (task >= 0) {
        TRY(task_positions(f->plan, &f->plan->tasks[task], &deleted, err));
        *out = deleted == NULL || !positions_has(deleted, at.position & ~KEY_OLDER);
    }
done:
    return code;
}

/* A key lay somewhere before it was read here: in a file that is gone, mostly, or as a row that was
 * deleted since. Else the table holds it twice, and both rows are known from now on. */
static tarn_code keep_older(key_fill *f, int32_t i, size_t at, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_index *index = f->keys->indexes[i];
    key_location here = f->locations[i][at];
    key_chain chain = key_chain_of(f->before[i][at]);
    bool more = (chain.at.position & KEY_OLDER) != 0;
    bool live = false;
    while (chain.at.file >= 0) {
        bool same = chain.at.file == here.file && (chain.at.position & ~KEY_OLDER) == here.position;
        if (!same) {
            TRY(is_live(f, i, chain.at, &live, err));
        }
        if (live || !more) {
            break;
        }
        TRY(key_index_older(index, &chain, err));
    }
    if (live) {
        TRY(key_index_put_older(index, f->lists[i][at], here, chain.at, err));
    }
done:
    return code;
}

static tarn_code add_keys(key_fill *f, int32_t i, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (f->from_nothing) {
        return key_index_load(f->keys->indexes[i], f->lists[i], f->locations[i], f->counts[i], err);
    }
    TRY(key_index_add(f->keys->indexes[i], f->lists[i], f->locations[i], f->counts[i], f->before[i],
                      err));
    for (size_t at = 0; at < f->counts[i]; at++) {
        if (f->before[i][at].file >= 0) {
            TRY(keep_older(f, i, at, err));
        }
    }
done:
    return code;
}

static tarn_code put_batch(key_fill *f, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_keys *k = f->keys;
    tarn_view position;
    size_t rows = (size_t)batch_rows(batch);
    TRY(reserve_fill(f, rows, err));
    TRY(key_encode(&f->rows, batch, k->ids, k->n_ids, err));
    view_column(batch, f->wanted->n_fields - 1, &position);
    memset(f->counts, 0, (size_t)k->options.n_tasks * sizeof *f->counts);
    for (size_t row = 0; row < rows; row++) {
        tarn_str key = key_at(&f->rows, (int64_t)row);
        int32_t task = keys_task(key, k->options.n_tasks);
        size_t at = f->counts[task]++;
        f->lists[task][at] = key;
        f->locations[task][at].file = f->numbers[task];
        f->locations[task][at].position = ((const int64_t *)position.values)[row];
    }
    for (int32_t i = 0; i < k->options.n_tasks; i++) {
        TRY(add_keys(f, i, err));
    }
done:
    return code;
}

static tarn_code fill_file(key_fill *f, const scan_task *task, tarn_error *err) {
    tarn_code code = TARN_OK;
    file_scan_options options;
    file_scan *scan = NULL;
    scan_counters counters;
    memset(&options, 0, sizeof options);
    memset(&counters, 0, sizeof counters);
    options.wanted = f->wanted;
    options.parallel = true;
    for (int32_t i = 0; i < f->keys->options.n_tasks; i++) {
        TRY(key_index_file_number(f->keys->indexes[i], task->file.path, &f->numbers[i], err));
    }
    TRY(task_scan_open(f->plan, task, &options, &scan, err));
    for (;;) {
        tarn_batch batch;
        memset(&batch, 0, sizeof batch);
        TRY(file_scan_next(scan, &batch, &counters, err));
        if (batch_rows(&batch) == 0) {
            batch_release(&batch);
            break;
        }
        code = put_batch(f, &batch, err);
        batch_release(&batch);
        if (code != TARN_OK) {
            goto done;
        }
    }
done:
    if (scan != NULL) {
        file_scan_close(scan);
    }
    return code;
}

static tarn_code make_wanted(sink_keys *k, const tarn_type **out, tarn_error *err) {
    int32_t n = k->type->n_fields;
    tarn_field *fields = ARENA_ARRAY(&k->now, tarn_field, (size_t)n + 1);
    if (fields == NULL) {
        return err_nomem(err);
    }
    memcpy(fields, k->type->fields, (size_t)n * sizeof *fields);
    fields[n].id = FIELD_ID_POS;
    fields[n].name = STR("_pos");
    fields[n].type = type_primitive(TARN_LONG);
    *out = type_struct(&k->now, fields, n + 1);
    return *out != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code init_fill(key_fill *f, sink_keys *k, tarn_plan *plan, tarn_error *err) {
    size_t n = (size_t)k->options.n_tasks;
    memset(f, 0, sizeof *f);
    f->keys = k;
    f->plan = plan;
    key_rows_init(&f->rows, k->env);
    f->numbers = ARENA_ARRAY(&k->now, int32_t, n);
    f->lists = ARENA_ARRAY(&k->now, tarn_str *, n);
    f->locations = ARENA_ARRAY(&k->now, key_location *, n);
    f->before = ARENA_ARRAY(&k->now, key_location *, n);
    f->counts = ARENA_ARRAY(&k->now, size_t, n);
    f->task_of = ARENA_ARRAY(&k->now, tarn_idmap, n);
    if (f->numbers == NULL || f->lists == NULL || f->locations == NULL || f->before == NULL ||
        f->counts == NULL || f->task_of == NULL) {
        f->counts = NULL;
        return err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        idmap_init(&f->task_of[i], &k->now);
    }
    map_init(&f->live, &k->now);
    for (int64_t i = 0; i < plan->n_tasks; i++) {
        map_entry *e = map_put(&f->live, plan->tasks[i].file.path, NULL);
        if (e == NULL) {
            return err_nomem(err);
        }
        e->value.i64 = i;
    }
    return make_wanted(k, &f->wanted, err);
}

static void release_fill(key_fill *f) {
    for (int32_t i = 0; f->counts != NULL && i < f->keys->options.n_tasks; i++) {
        env_free(f->keys->env, f->lists[i]);
        env_free(f->keys->env, f->locations[i]);
        env_free(f->keys->env, f->before[i]);
    }
    key_rows_release(&f->rows);
}

static tarn_code open_plan(sink_keys *k, const tarn_metadata *m, int64_t snapshot_id,
                           tarn_plan **out, tarn_error *err) {
    scan_options options;
    memset(&options, 0, sizeof options);
    options.metadata = m;
    options.snapshot_id = snapshot_id;
    options.limit = -1;
    return plan_new(k->env, k->store, &options, out, err);
}

static tarn_code known_files(sink_keys *k, const tarn_metadata *m, int64_t snapshot_id,
                             tarn_map *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_plan *plan = NULL;
    TRY(open_plan(k, m, snapshot_id, &plan, err));
    for (int64_t i = 0; i < plan->n_tasks; i++) {
        tarn_str path = arena_str(&k->now, plan->tasks[i].file.path);
        if (path.data == NULL || map_put(out, path, NULL) == NULL) {
            code = err_nomem(err);
            goto done;
        }
    }
done:
    plan_free(plan);
    return code;
}

/* The snapshot that all indexes stand for, if the table's head comes from it. */
static int64_t common_snapshot(const sink_keys *k, const tarn_metadata *m, int64_t head) {
    int64_t from = key_index_snapshot(k->indexes[0]);
    for (int32_t i = 1; i < k->options.n_tasks; i++) {
        if (key_index_snapshot(k->indexes[i]) != from) {
            return TARN_NO_SNAPSHOT;
        }
    }
    bool known = from != TARN_NO_SNAPSHOT && metadata_snapshot_by_id(m, from) != NULL &&
                 (from == head || metadata_is_ancestor(m, head, from));
    return known ? from : TARN_NO_SNAPSHOT;
}

/* Rows that were deleted since `from` may still be in the indexes: deleting them again changes
 * nothing. Files that are gone are not found by those who look a place up. */
static tarn_code read_new_files(sink_keys *k, const tarn_metadata *m, int64_t from, int64_t head,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_plan *plan = NULL;
    tarn_map known;
    key_fill fill;
    memset(&fill, 0, sizeof fill);
    map_init(&known, &k->now);
    if (from == TARN_NO_SNAPSHOT) {
        for (int32_t i = 0; i < k->options.n_tasks; i++) {
            TRY(key_index_clear(k->indexes[i], err));
        }
    } else {
        TRY(known_files(k, m, from, &known, err));
    }
    TRY(open_plan(k, m, head, &plan, err));
    TRY(init_fill(&fill, k, plan, err));
    fill.from_nothing = from == TARN_NO_SNAPSHOT;
    int64_t files = 0;
    for (int64_t i = 0; i < plan->n_tasks; i++) {
        tarn_str path = plan->tasks[i].file.path;
        bool once = map_find(&fill.live, path)->value.i64 == i; /* named twice: a broken table */
        if (once && map_find(&known, path) == NULL) {
            TRY(fill_file(&fill, &plan->tasks[i], err));
            files++;
        }
    }
    for (int32_t i = 0; i < k->options.n_tasks; i++) {
        TRY(key_index_apply(k->indexes[i], head, err));
    }
    env_log(k->env, TARN_LOG_INFO, "sink", "keys", "snapshot=%lld files=%lld from=%lld",
            (long long)head, (long long)files, (long long)from);
done:
    release_fill(&fill);
    plan_free(plan);
    return code;
}

tarn_code keys_follow(sink_keys *k, const tarn_metadata *m, int64_t head, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(keys_open(k, m, err));
    int64_t from = common_snapshot(k, m, head);
    if (head == TARN_NO_SNAPSHOT) { /* nothing was ever committed */
        for (int32_t i = 0; i < k->options.n_tasks; i++) {
            TRY(key_index_clear(k->indexes[i], err));
        }
    } else if (from != head) {
        code = read_new_files(k, m, from, head, err);
        if (code == TARN_CORRUPT &&
            from != TARN_NO_SNAPSHOT) { /* perhaps the index, not the table */
            env_log(k->env, TARN_LOG_WARN, "sink", "keys", "made anew: %s", err->message);
            err_reset(err);
            code = read_new_files(k, m, TARN_NO_SNAPSHOT, head, err);
        }
    }
done:
    if (code != TARN_OK) {
        keys_close_indexes(k);
    }
    return code;
}

tarn_code keys_step(sink_keys *k, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; k->indexes != NULL && i < k->options.n_tasks && code == TARN_OK; i++) {
        code = key_index_step(k->indexes[i], err);
    }
    return code;
}

tarn_code keys_settle(sink_keys *k, int32_t n, int64_t snapshot_id, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; k->indexes != NULL && i < k->options.n_tasks && code == TARN_OK; i++) {
        code = key_index_settle(k->indexes[i], n, snapshot_id, err);
    }
    return code;
}

bool keys_are_full(const sink_keys *k) {
    bool full = false;
    for (int32_t i = 0; k->indexes != NULL && i < k->options.n_tasks; i++) {
        full = full || key_index_is_full(k->indexes[i]);
    }
    return full;
}

void keys_discard(sink_keys *k) {
    for (int32_t i = 0; k->indexes != NULL && i < k->options.n_tasks; i++) {
        tarn_error err = TARN_ERROR_INIT;
        if (key_index_discard(k->indexes[i], &err) != TARN_OK) {
            env_log(k->env, TARN_LOG_WARN, "sink", "keys", "%s", err.message);
            keys_close_indexes(k);
        }
    }
}
