/* sink/sink.c - see sink.h. */
#include "sink/sink.h"

#include "sink/task.h"

#define MEMORY_BYTES (128u << 20)

struct sink_job {
    tarn_env *env;
    tarn_arena arena; /* for the sink's life */
    sink_options options;
    tarn_table_version *version;
    tarn_table_version *writing; /* the version that the tasks were made for; NULL: no tasks */
    tarn_store *own_store;       /* of the state, where none was given */
    sink_state *state;
    committer committer;
    sink_task *tasks;
    int32_t n_tasks;
    int32_t turn; /* the task that the next batch goes to */
    tarn_code broken;
    tarn_error broken_err;
    sink_counts total, last;
};

/* ---- opening ---- */

static tarn_code open_state(sink_job *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_state_options options;
    tarn_store *store = s->options.state_store;
    if (s->options.state_dir.len == 0) {
        return TARN_OK;
    }
    if (store == NULL) {
        TRY(store_for_location(s->env, s->options.state_dir, &s->own_store, err));
        store = s->own_store;
    }
    if ((store_traits_of(store) & (STORE_ATOMIC_CREATE | STORE_LIST_CONSISTENT)) !=
        (STORE_ATOMIC_CREATE | STORE_LIST_CONSISTENT)) {
        return err_set(err, TARN_UNSUPPORTED,
                       "sink state %.*s lies where files are not created atomically",
                       STR_ARG(s->options.state_dir));
    }
    memset(&options, 0, sizeof options);
    options.store = store;
    options.dir = s->options.state_dir;
    options.table = s->options.ident->name;
    options.table_uuid = s->version->metadata->table_uuid;
    options.branch = s->options.branch;
    options.sink_id = s->options.sink_id;
    TRY(sink_state_open(s->env, &options, &s->state, err));
    s->options.sink_id = sink_state_id(s->state);
done:
    return code;
}

static tarn_code copy_options(sink_job *s, tarn_error *err) {
    sink_options *o = &s->options;
    tarn_str branch = o->branch.len > 0 ? o->branch : STR(TARN_MAIN_BRANCH);
    o->branch = arena_str(&s->arena, branch);
    o->state_dir = arena_str(&s->arena, o->state_dir);
    o->sink_id = arena_str(&s->arena, o->sink_id);
    if (o->branch.data == NULL || o->state_dir.data == NULL || o->sink_id.data == NULL) {
        return err_nomem(err);
    }
    if (o->writers < 0 || o->writers > SINK_MAX_WRITERS) {
        return err_set(err, TARN_INVALID, "a sink has 1 to %d writers, not %d", SINK_MAX_WRITERS,
                       o->writers);
    }
    s->n_tasks = o->writers > 0 ? o->writers : 1;
    return TARN_OK;
}

static tarn_code recover(sink_job *s, tarn_error *err) {
    committer_options options;
    commit_outcome outcome;
    memset(&options, 0, sizeof options);
    options.catalog = s->options.catalog;
    options.ident = s->options.ident;
    options.branch = s->options.branch;
    options.append = s->options.append;
    options.summary = s->options.summary;
    options.table_uuid = arena_str(&s->arena, s->version->metadata->table_uuid);
    options.sink_id = s->options.sink_id;
    options.state = s->state;
    options.empty_every = s->options.empty_every;
    committer_init(&s->committer, s->env, &options);
    if (options.table_uuid.data == NULL) {
        return err_nomem(err);
    }
    if (s->state == NULL) {
        return TARN_OK;
    }
    tarn_code code = committer_recover(&s->committer, s->version,
                                       s->options.hold ? s->options.complete : -1, &outcome, err);
    sink_adopt(s, outcome.version);
    return code;
}

tarn_code sink_open(tarn_env *env, const sink_options *options, sink_job **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_job *s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->env = env;
    s->options = *options;
    s->version = table_version_keep(options->version);
    arena_init(&s->arena, env);
    TRY(copy_options(s, err));
    TRY(open_state(s, err));
    TRY(recover(s, err));
    *out = s;
    s = NULL;
done:
    sink_free(s);
    return code;
}

const tarn_table_version *sink_version(const sink_job *s) {
    return s->tasks != NULL ? s->writing : s->version;
}

tarn_str sink_offsets(const sink_job *s) {
    return s->committer.committed.offsets;
}

/* ---- tasks ---- */

static void free_tasks(sink_job *s) {
    for (int32_t i = 0; s->tasks != NULL && i < s->n_tasks; i++) {
        if (s->tasks[i].env != NULL) {
            task_release(&s->tasks[i]);
        }
    }
    env_free(s->env, s->tasks);
    s->tasks = NULL;
    table_version_release(s->writing);
    s->writing = NULL;
}

static tarn_code make_tasks(sink_job *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t memory = s->options.memory_bytes != 0 ? s->options.memory_bytes : MEMORY_BYTES;
    if (s->tasks != NULL) {
        return TARN_OK;
    }
    s->tasks = env_calloc(s->env, (size_t)s->n_tasks, sizeof *s->tasks);
    if (s->tasks == NULL) {
        return err_nomem(err);
    }
    s->writing = table_version_keep(s->version);
    for (int32_t i = 0; i < s->n_tasks; i++) {
        delta_options options;
        delta_writer *writer;
        memset(&options, 0, sizeof options);
        options.store = s->options.catalog->store;
        options.metadata = s->writing->metadata;
        options.task_id = i;
        options.memory_bytes = memory / (size_t)s->n_tasks;
        TRY(delta_writer_new(s->env, &options, &writer, err));
        task_init(&s->tasks[i], s->env, writer, s->n_tasks == 1);
    }
done:
    if (code != TARN_OK) {
        free_tasks(s);
    }
    return code;
}

/* ---- writing ---- */

static tarn_code refuse_broken(const sink_job *s, tarn_error *err) {
    return err_set(err, s->broken,
                   "the sink lost rows and must be opened again, to go on from the offsets of its "
                   "last checkpoint: %s",
                   s->broken_err.message);
}

/* Rows were lost. With a state, the stream must go back to where they were; without, the caller was
 * told by the code, and begins afresh after the next checkpoint has failed too. */
static void break_sink(sink_job *s, tarn_code code, const tarn_error *err) {
    if (s->state != NULL && s->broken == TARN_OK) {
        s->broken = code;
        s->broken_err = *err;
        free_tasks(s);
    }
}

static tarn_code check_required(const tarn_type *root, const tarn_batch *batch, tarn_error *err) {
    for (int32_t i = 0; i < root->n_fields; i++) {
        tarn_view column;
        if (!root->fields[i].required) {
            continue;
        }
        view_column(batch, i, &column);
        if (view_null_count(&column) > 0) {
            return err_set(err, TARN_INVALID, "column %.*s is required and held a null",
                           STR_ARG(root->fields[i].name));
        }
    }
    return TARN_OK;
}

static tarn_code write_rows(sink_job *s, tarn_batch *batch, const uint8_t *kinds, tarn_error *err) {
    sink_task *task = &s->tasks[s->turn];
    s->turn = (s->turn + 1) % s->n_tasks;
    return task_write(task, batch, kinds, err);
}

tarn_code sink_write(sink_job *s, tarn_batch *batch, const uint8_t *kinds, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (s->broken != TARN_OK) {
        return refuse_broken(s, err);
    }
    TRY(check_required(metadata_schema(sink_version(s)->metadata)->root, batch, err));
    TRY(make_tasks(s, err));
    code = write_rows(s, batch, kinds, err);
    if (code == TARN_OK) {
        batch_release(batch);
    } else if (code != TARN_INVALID) {
        break_sink(s, code, err);
    }
done:
    return code;
}

/* ---- checkpoints ---- */

static tarn_code append_items(tarn_arena *arena, void **items, int32_t *n, const void *more,
                              int32_t n_more, size_t size) {
    if (n_more == 0) {
        return TARN_OK;
    }
    char *grown = arena_alloc(arena, ((size_t)*n + (size_t)n_more) * size);
    if (grown == NULL) {
        return TARN_NOMEM;
    }
    if (*n > 0) {
        memcpy(grown, *items, (size_t)*n * size);
    }
    memcpy(grown + (size_t)*n * size, more, (size_t)n_more * size);
    *items = grown;
    *n += n_more;
    return TARN_OK;
}

static tarn_code add_result(tarn_arena *arena, write_result *all, const write_result *one,
                            tarn_error *err) {
    void *files = all->files;
    void *deletes = all->deletes;
    void *referenced = (void *)(uintptr_t)all->referenced;
    void *removed = all->removed_deletes;
    if (append_items(arena, &files, &all->n_files, one->files, one->n_files, sizeof *one->files) !=
            TARN_OK ||
        append_items(arena, &deletes, &all->n_deletes, one->deletes, one->n_deletes,
                     sizeof *one->deletes) != TARN_OK ||
        append_items(arena, &referenced, &all->n_referenced, one->referenced, one->n_referenced,
                     sizeof *one->referenced) != TARN_OK ||
        append_items(arena, &removed, &all->n_removed_deletes, one->removed_deletes,
                     one->n_removed_deletes, sizeof *one->removed_deletes) != TARN_OK) {
        return err_nomem(err);
    }
    all->files = files;
    all->deletes = deletes;
    all->referenced = referenced;
    all->removed_deletes = removed;
    all->rows += one->rows;
    all->deleted_rows += one->deleted_rows;
    return TARN_OK;
}

static tarn_code close_tasks(sink_job *s, tarn_arena *arena, write_result *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    write_result all;
    memset(&all, 0, sizeof all);
    for (int32_t i = 0; i < s->n_tasks; i++) {
        TRY(task_flush(&s->tasks[i], err));
    }
    for (int32_t i = 0; i < s->n_tasks; i++) {
        write_result one;
        memset(&one, 0, sizeof one);
        TRY(delta_writer_close(s->tasks[i].writer, arena, &one, err));
        if (s->n_tasks == 1) {
            all = one;
            break;
        }
        code = add_result(arena, &all, &one, err);
        if (code != TARN_OK) {
            write_result_remove(s->options.catalog->store, &one);
            goto done;
        }
    }
    *out = all;
done:
    if (code != TARN_OK) {
        write_result_remove(s->options.catalog->store, &all);
    }
    return code;
}

static void count_result(sink_job *s, const write_result *r) {
    memset(&s->last, 0, sizeof s->last);
    s->last.rows = r->rows;
    s->last.deleted_rows = r->deleted_rows;
    s->last.data_files = r->n_files;
    s->last.delete_files = r->n_deletes;
    for (int32_t i = 0; i < r->n_files; i++) {
        s->last.bytes += r->files[i].size_bytes;
    }
    for (int32_t i = 0; i < r->n_deletes; i++) {
        s->last.bytes += r->deletes[i].size_bytes;
    }
    s->last.checkpoints = 1;
    s->total.rows += s->last.rows;
    s->total.deleted_rows += s->last.deleted_rows;
    s->total.data_files += s->last.data_files;
    s->total.delete_files += s->last.delete_files;
    s->total.bytes += s->last.bytes;
    s->total.checkpoints++;
}

tarn_code sink_take(sink_job *s, tarn_arena *arena, write_result *out, tarn_error *err) {
    memset(out, 0, sizeof *out);
    if (s->tasks == NULL) {
        return TARN_OK;
    }
    tarn_code code = close_tasks(s, arena, out, err);
    free_tasks(s); /* the next ones are made for the version that there is then */
    if (code == TARN_OK) {
        count_result(s, out);
    }
    return code;
}

static int64_t head_of(const sink_job *s) {
    const tarn_ref *ref = metadata_ref(s->version->metadata, s->options.branch);
    return ref != NULL ? ref->snapshot_id : TARN_NO_SNAPSHOT;
}

tarn_code sink_precommit(sink_job *s, const char *offsets, int64_t *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_pending *p;
    if (s->broken != TARN_OK) {
        return refuse_broken(s, err);
    }
    p = sink_pending_new(s->env);
    if (p == NULL) {
        return err_nomem(err);
    }
    p->delta.base_snapshot_id = head_of(s);
    p->delta.offsets = STR_NULL;
    if (offsets != NULL) {
        p->delta.offsets = arena_str(&p->arena, str_of(offsets));
        if (p->delta.offsets.data == NULL) {
            code = err_nomem(err);
            goto done;
        }
    }
    code = sink_take(s, &p->arena, &p->delta.written, err);
    if (code == TARN_OK) {
        int64_t number = s->committer.next_checkpoint;
        code = committer_add(&s->committer, p, err);
        p = NULL;
        *out = number;
    }
    if (code != TARN_OK) {
        break_sink(s, code, err);
    }
done:
    sink_pending_free(p);
    return code;
}

/* A checkpoint whose deletes no longer fit the table can't be committed as it stands: it is given
 * up with all after it, and its rows come again (invariant 2). */
static void give_up(sink_job *s, tarn_code code, const tarn_error *err) {
    tarn_error failed = TARN_ERROR_INIT;
    break_sink(s, code, err);
    if (committer_drop_all(&s->committer, &failed) != TARN_OK) {
        env_log(s->env, TARN_LOG_WARN, "sink", "cleanup", "%s", failed.message);
    }
}

tarn_code sink_commit(sink_job *s, int64_t checkpoint, commit_outcome *out, tarn_error *err) {
    tarn_code code = committer_run(&s->committer, checkpoint, out, err);
    if (code == TARN_CONFLICT && s->state != NULL && out->kind == TARN_NOT_COMMITTED &&
        s->committer.pending != NULL && s->committer.pending->delta.written.n_referenced > 0) {
        give_up(s, code, err);
    }
    if (out->version != NULL) {
        sink_adopt(s, table_version_keep(out->version));
    }
    return code;
}

void sink_last_commit(const sink_job *s, int64_t *rows, int32_t *files) {
    *rows = s->committer.rows;
    *files = s->committer.files;
}

void sink_adopt(sink_job *s, tarn_table_version *version) {
    if (version != NULL) {
        table_version_release(s->version);
        s->version = version;
    }
}

const sink_counts *sink_counts_of(const sink_job *s, const sink_counts **last,
                                  const committer_counts **commits) {
    *last = &s->last;
    *commits = &s->committer.counts;
    return &s->total;
}

void sink_free(sink_job *s) {
    if (s == NULL) {
        return;
    }
    free_tasks(s);
    if (s->committer.env != NULL) {
        committer_release(&s->committer);
    }
    sink_state_close(s->state);
    store_close(s->own_store);
    table_version_release(s->version);
    arena_release(&s->arena);
    env_free(s->env, s);
}
