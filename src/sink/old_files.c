/* sink/old_files.c - see old_files.h. */
#include "sink/old_files.h"

/* What is replaced stays in memory until it is planned anew, which is when it is more than what is
 * there: so that planning costs a checkpoint no more than it brings. */
#define MIN_LATER 4096

static tarn_code add_file(old_files *old, const tarn_file *file, const scan_task *task,
                          tarn_error *err) {
    old_file *of = ARENA_NEW(&old->arena, old_file);
    map_entry *e = of != NULL ? map_put(&old->by_path, file->path, NULL) : NULL;
    if (e == NULL) {
        return err_nomem(err);
    }
    of->file = file;
    of->task = task;
    e->value.ptr = of;
    return TARN_OK;
}

tarn_code old_files_open(old_files *old, tarn_env *env, tarn_store *store, const tarn_metadata *m,
                         int64_t snapshot_id, tarn_error *err) {
    tarn_code code = TARN_OK;
    scan_options options;
    memset(old, 0, sizeof *old);
    old->env = env;
    old->store = store;
    old->snapshot_id = snapshot_id;
    old->turn = 1;
    arena_init(&old->arena, env);
    map_init(&old->by_path, &old->arena);
    if (snapshot_id == TARN_NO_SNAPSHOT) {
        return TARN_OK;
    }
    memset(&options, 0, sizeof options);
    options.metadata = m;
    options.snapshot_id = snapshot_id;
    options.limit = -1;
    TRY(plan_new(env, store, &options, &old->plan, err));
    for (int64_t i = 0; i < old->plan->n_tasks; i++) {
        TRY(add_file(old, &old->plan->tasks[i].file, &old->plan->tasks[i], err));
    }
done:
    if (code != TARN_OK) {
        old_files_close(old);
    }
    return code;
}

bool old_files_go_on(old_files *old, int64_t snapshot_id) {
    if (old->env == NULL || old->snapshot_id != snapshot_id ||
        old->n_later > MIN_LATER + 2 * (int64_t)old->by_path.count) {
        return false;
    }
    old->turn++;
    return true;
}

old_file *old_files_find(const old_files *old, tarn_str path) {
    const map_entry *e = map_find(&old->by_path, path);
    return e != NULL ? e->value.ptr : NULL;
}

tarn_code old_file_deleted(const old_files *old, const old_file *file,
                           const tarn_positions **before, tarn_positions **made,
                           const tarn_entry *const **replaced, int32_t *n_replaced,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    const scan_task *task = file->task;
    int32_t n = 0;
    *before = NULL;
    *made = NULL;
    *n_replaced = 0;
    if (file->vector != NULL) {
        TRY(vector_positions(old->env, old->store, file->vector, made, err));
        *before = *made;
        *replaced = (const tarn_entry *const *)&file->vector;
        *n_replaced = 1;
    } else if (task != NULL) {
        TRY(task_positions(old->plan, task, before, err));
        while (n < task->n_deletes &&
               task->deletes[n]->file.content == TARN_CONTENT_POSITION_DELETES) {
            n++; /* equality deletes come last, and stay */
        }
        *replaced = task->deletes;
        *n_replaced = n;
    }
done:
    return code;
}

/* Its snapshot is not known yet, nor asked for where a vector is read or replaced. */
static tarn_code add_vector(old_files *old, const tarn_file *file, tarn_error *err) {
    old_file *of = old_files_find(old, file->referenced_data_file);
    if (of == NULL) {
        return TARN_OK;
    }
    if (of->vector == NULL) {
        of->vector = ARENA_NEW(&old->arena, tarn_entry);
        if (of->vector == NULL) {
            return err_nomem(err);
        }
    }
    of->vector->status = TARN_ENTRY_ADDED;
    of->vector->snapshot_id = TARN_NO_SNAPSHOT;
    of->vector->file = *file;
    return TARN_OK;
}

static tarn_code add_one(old_files *old, const tarn_file *file, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_file *copy = ARENA_NEW(&old->arena, tarn_file);
    if (copy == NULL) {
        return err_nomem(err);
    }
    TRY(file_copy(&old->arena, file, copy, err));
    if (file->content == TARN_CONTENT_DATA) {
        TRY(add_file(old, copy, NULL, err));
    } else {
        TRY(add_vector(old, copy, err));
    }
    old->n_later++;
done:
    return code;
}

tarn_code old_files_add(old_files *old, const write_result *written, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < written->n_files; i++) {
        TRY(add_one(old, &written->files[i], err));
    }
    for (int32_t i = 0; i < written->n_deletes; i++) {
        if (written->deletes[i].format == TARN_FORMAT_PUFFIN) {
            TRY(add_one(old, &written->deletes[i], err));
        }
    }
done:
    if (code != TARN_OK) {
        old_files_close(old);
    }
    return code;
}

void old_files_moved(old_files *old, int64_t snapshot_id) {
    old->snapshot_id = snapshot_id;
}

void old_files_close(old_files *old) {
    if (old->env == NULL) {
        return;
    }
    plan_free(old->plan);
    arena_release(&old->arena);
    memset(old, 0, sizeof *old);
}
