/* sink/sink.c - see sink.h. */
#include "sink/sink.h"

#include "sink/background.h"
#include "sink/key_places.h"
#include "sink/shared_offsets.h"
#include "sink/task.h"

#define MEMORY_BYTES (128u << 20)

struct sink_job {
    tarn_env *env;
    tarn_arena arena; /* for the sink's life */
    sink_options options;
    tarn_table_version *version;
    tarn_table_version *writing; /* the version that the tasks were made for; NULL: no tasks */
    tarn_table_version *shown;   /* the one before it, whose type the first rows have */
    tarn_store *own_store;       /* of the state, where none was given */
    bool forget;                 /* sink_free removes the state */
    sink_state *state;
    committer committer;
    background behind; /* the committer is its own while something is under way */
    bool in_background;
    sink_progress heard; /* from there, and not told yet */
    tarn_buf notes;      /* of commits, told up to note_at */
    size_t note_at;
    int64_t first_checkpoint; /* that this job makes */
    int32_t n_done;           /* checkpoints that are over, with so many snapshots, the last of */
    int64_t n_snapshots;      /* which is this, and that places do not know of yet */
    int64_t last_snapshot_id;
    tarn_table_version *last_version; /* that it is in; NULL: none */
    sink_keys keys;
    sink_task *tasks;
    int32_t n_tasks;
    int32_t turn; /* the task that the next batch goes to */
    distributor *distributor;
    key_places places; /* where deletes go by position */
    tarn_code broken;
    tarn_error broken_err;
    sink_counts last;
    int64_t checkpoints;
    int32_t open_files;
};

/* ---- opening ---- */

static tarn_code open_state(sink_job *s, tarn_error *err) {
    const unsigned same = STORE_LOCAL | STORE_DURABLE;
    tarn_code code = TARN_OK;
    sink_state_options options;
    tarn_str path;
    tarn_store *store = s->options.state_store;
    if (s->options.state_dir.len == 0) {
        return TARN_OK;
    }
    /* In the table's own store one sync serves files and state. */
    if (store == NULL && store_local_path(s->options.state_dir, &path) &&
        (store_traits_of(s->options.catalog->store) & same) == same) {
        store = s->options.catalog->store;
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
    TRY(sink_state_key(s->state, s->keys.ids, s->keys.n_ids, s->version->metadata, err));
done:
    return code;
}

static tarn_code copy_options(sink_job *s, tarn_error *err) {
    sink_options *o = &s->options;
    tarn_str branch = o->branch.len > 0 ? o->branch : STR(TARN_MAIN_BRANCH);
    o->branch = arena_str(&s->arena, branch);
    o->state_dir = arena_str(&s->arena, o->state_dir);
    o->sink_id = arena_str(&s->arena, o->sink_id);
    o->distribution = arena_str(&s->arena, o->distribution);
    o->deletes = arena_str(&s->arena, o->deletes);
    o->memory_bytes = o->memory_bytes != 0 ? o->memory_bytes : MEMORY_BYTES;
    if (o->branch.data == NULL || o->state_dir.data == NULL || o->sink_id.data == NULL ||
        o->distribution.data == NULL || o->deletes.data == NULL) {
        return err_nomem(err);
    }
    if (o->writers < 0 || o->writers > SINK_MAX_WRITERS) {
        return err_set(err, TARN_INVALID, "a sink has 1 to %d writers, not %d", SINK_MAX_WRITERS,
                       o->writers);
    }
    s->n_tasks = o->writers > 0 ? o->writers : 1;
    return TARN_OK;
}

static tarn_code open_keys(sink_job *s, tarn_error *err) {
    keys_options options;
    const sink_options *o = &s->options;
    memset(&options, 0, sizeof options);
    options.wanted = o->changes || o->upsert;
    options.upsert = o->upsert;
    options.names = o->key;
    options.n_names = o->n_key;
    options.deletes = o->deletes;
    if (!store_local_path(o->state_dir, &options.state_dir)) { /* indexes lie on a disk */
        options.state_dir = STR_NULL;
    }
    options.branch = o->branch;
    options.memory_bytes = o->memory_bytes / 2;
    options.n_tasks = s->n_tasks;
    options.shared = o->shared_offsets.len > 0;
    if (options.wanted && o->append == COMMIT_REPLACE_PARTITIONS) {
        return err_set(err, TARN_INVALID,
                       "changes by key go with appends, not with replacing partitions");
    }
    return keys_init(&s->keys, s->env, o->catalog->store, &options, s->version->metadata, err);
}

/* A checkpoint whose deletes no longer fit the table can't be committed as it stands. */
static bool fits_no_more(const sink_job *s, const commit_outcome *out) {
    const sink_pending *first = s->committer.pending;
    return s->state != NULL && out->kind == TARN_NOT_COMMITTED && out->attempts > 0 &&
           first != NULL && (first->delta.written.n_referenced > 0 || s->committer.outdated);
}

static tarn_code check_shared(sink_job *s, tarn_error *err) {
    const sink_options *o = &s->options;
    if (o->shared_offsets.len == 0) {
        return TARN_OK;
    }
    if (o->state_dir.len > 0) {
        return err_set(err, TARN_INVALID,
                       "offsets that the table keeps take no state folder: a sink's own would not "
                       "know what other sinks read since");
    }
    if (o->append == COMMIT_REPLACE_PARTITIONS) {
        return err_set(err, TARN_INVALID,
                       "offsets that the table keeps go with appends, not with replacing "
                       "partitions");
    }
    char *key = arena_printf(&s->arena, "%s%.*s", SHARED_OFFSETS_PREFIX, (int)o->shared_offsets.len,
                             o->shared_offsets.data);
    s->options.shared_offsets = str_of(key);
    return key != NULL ? TARN_OK : err_nomem(err);
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
    options.accept_rollback = s->options.accept_rollback;
    options.shared = s->options.shared_offsets;
    committer_init(&s->committer, s->env, &options);
    if (options.table_uuid.data == NULL) {
        return err_nomem(err);
    }
    if (s->state == NULL) {
        return TARN_OK;
    }
    tarn_code code = committer_recover(&s->committer, s->version,
                                       s->options.hold ? s->options.complete : -1, &outcome, err);
    if (code == TARN_CONFLICT && fits_no_more(s, &outcome)) {
        env_log(s->env, TARN_LOG_WARN, "sink", "recover", "checkpoint given up: %s", err->message);
        code = committer_drop_all(&s->committer, err);
    }
    sink_adopt(s, outcome.version);
    return code;
}

static bool is_indexed(const sink_job *s) {
    return s->keys.kind == DELETE_POSITION || s->keys.kind == DELETE_VECTOR;
}

/* Before the epoch is taken, so that a job that cannot have the indexes stops nobody. */
static tarn_code open_places(sink_job *s, tarn_error *err) {
    if (!is_indexed(s)) {
        return TARN_OK;
    }
    key_places_init(&s->places, s->env, s->options.catalog->store, &s->keys);
    return keys_open(&s->keys, s->version->metadata, err);
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
    buf_init(&s->notes, env, 0);
    TRY(copy_options(s, err));
    TRY(check_shared(s, err));
    TRY(open_keys(s, err));
    TRY(open_state(s, err));
    TRY(open_places(s, err));
    TRY(recover(s, err));
    s->first_checkpoint = s->committer.next_checkpoint;
    if (options->background && s->state != NULL) {
        TRY(background_init(&s->behind, env, &s->committer, err));
        s->in_background = true;
    }
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

tarn_str sink_key_column(const sink_job *s, int32_t i) {
    if (s->keys.kind == DELETE_NONE || i >= s->keys.n_ids) {
        return STR_NULL;
    }
    const tarn_type *root = metadata_schema(sink_version(s)->metadata)->root;
    const tarn_field *field = type_find_id(root, s->keys.ids[i]);
    return field != NULL ? field->name : STR_NULL;
}

tarn_code sink_shared_offsets(sink_job *s, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_table_version *now = NULL;
    json_value *json;
    json_writer w;
    tarn_arena arena;
    arena_init(&arena, s->env);
    TRY(catalog_load(s->options.catalog, s->options.ident, &now, err));
    TRY(shared_offsets_find(&arena, now->metadata, s->options.branch, s->options.shared_offsets,
                            &json, err));
    if (json != NULL) {
        json_begin(&w, out, false, err);
        json_put_value(&w, json);
        code = json_end(&w);
    }
done:
    table_version_release(now);
    arena_release(&arena);
    return code;
}

tarn_code sink_read_offsets(sink_job *s, tarn_buf *out, bool *has, tarn_error *err) {
    if (s->in_background) {
        return background_offsets(&s->behind, out, has, err);
    }
    *has = sink_offsets(s).data != NULL;
    return *has ? buf_append_str(out, sink_offsets(s), err) : TARN_OK;
}

/* ---- tasks ---- */

static int64_t head_of(const sink_job *s, const tarn_table_version *version) {
    const tarn_snapshot *head = metadata_head(version->metadata, s->options.branch);
    return head != NULL ? head->snapshot_id : TARN_NO_SNAPSHOT;
}

static void free_tasks(sink_job *s) {
    for (int32_t i = 0; s->tasks != NULL && i < s->n_tasks; i++) {
        if (s->tasks[i].env != NULL) {
            task_release(&s->tasks[i]);
        }
    }
    env_free(s->env, s->tasks);
    s->tasks = NULL;
    distributor_free(s->distributor);
    s->distributor = NULL;
    table_version_release(s->writing);
    s->writing = NULL;
    table_version_release(s->shown);
    s->shown = NULL;
}

bool sink_waits(const sink_job *s) {
    return is_indexed(s) && !s->in_background && s->committer.pending != NULL;
}

static void fill_delta(const sink_job *s, int32_t task, delta_options *o) {
    const sink_keys *k = &s->keys;
    memset(o, 0, sizeof *o);
    o->store = s->options.catalog->store;
    o->metadata = s->writing->metadata;
    o->task_id = task;
    o->memory_bytes = s->options.memory_bytes / (size_t)s->n_tasks / (is_indexed(s) ? 2 : 1);
    o->kind = k->kind;
    o->upsert = k->options.upsert;
    o->key_ids = k->ids;
    o->n_key_ids = k->n_ids;
    o->key_type = k->type;
    o->key_specs = k->specs;
    o->n_key_specs = k->n_specs;
    o->scratch_dir = k->scratch != NULL ? k->scratch[task] : NULL;
    o->index = k->indexes != NULL ? k->indexes[task] : NULL;
    o->old = &s->places.old;
}

/* Deletes by position are made for the newest head, so that what others did before this checkpoint
 * is no conflict. Rows that are on their way have the schema that the caller saw. */
static tarn_code refresh(sink_job *s, tarn_table_version **out, tarn_error *err) {
    tarn_table_version *now;
    tarn_code code = catalog_load(s->options.catalog, s->options.ident, &now, err);
    if (code != TARN_OK) {
        return code;
    }
    if (!str_eq(now->metadata->table_uuid, s->version->metadata->table_uuid)) {
        table_version_release(now); /* the commit says so */
        now = table_version_keep(s->version);
    } else if (now->metadata->current_schema_id == s->version->metadata->current_schema_id) {
        table_version_release(s->shown);
        s->shown = s->version;
        s->version = table_version_keep(now);
    }
    *out = now;
    return TARN_OK;
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

/* Takes in what happened in the background. */
static tarn_code hear(sink_job *s, tarn_error *err) {
    background_result now;
    sink_progress *heard = &s->heard;
    background_take(&s->behind, &now);
    if (now.outcome.version != NULL) {
        table_version_release(s->last_version);
        s->last_version = table_version_keep(now.outcome.version);
        table_version_release(heard->commit.version);
    } else {
        now.outcome.version = heard->commit.version;
    }
    heard->commit = now.outcome;
    heard->rows += now.rows;
    heard->files += now.files;
    heard->any = heard->any || now.any;
    s->n_done += now.done;
    s->n_snapshots += now.commits;
    s->last_snapshot_id = now.outcome.snapshot_id;
    if (now.code != TARN_OK) {
        key_places_lose(&s->places); /* what was dropped does not settle */
        break_sink(s, now.code, &now.err);
        if (err != NULL) {
            *err = now.err;
        }
    }
    return now.code;
}

/* Between checkpoints only: tasks look into what changes by it. */
static void settle(sink_job *s) {
    if (is_indexed(s)) {
        key_places_settle(&s->places, s->n_done, s->n_snapshots, s->last_version,
                          s->last_snapshot_id);
    }
    s->n_done = 0;
    s->n_snapshots = 0;
}

/* Where rows lie, for deletes by position: with what is on its way to the table (*now NULL), or,
 * where that is not known, with nothing on its way, as the table is now. */
static tarn_code begin_places(sink_job *s, tarn_table_version **now, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (s->in_background) {
        TRY(hear(s, err));
        settle(s);
    }
    if (key_places_go_on(&s->places)) {
        return TARN_OK;
    }
    if (s->places.on_way > 0 && s->in_background) {
        background_wait(&s->behind);
        TRY(hear(s, err));
        settle(s);
    }
    key_places_clear(&s->places);
    TRY(refresh(s, now, err));
done:
    return code;
}

static tarn_code make_tasks(sink_job *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_table_version *now = NULL;
    if (s->tasks != NULL) {
        return TARN_OK;
    }
    if (is_indexed(s)) {
        TRY(begin_places(s, &now, err));
    }
    if (sink_waits(s)) {
        code = err_set(err, TARN_INVALID,
                       "with deletes by position a checkpoint is committed before rows of the next "
                       "are written");
        goto done;
    }
    s->tasks = env_calloc(s->env, (size_t)s->n_tasks, sizeof *s->tasks);
    if (s->tasks == NULL) {
        code = err_nomem(err);
        goto done;
    }
    s->writing = table_version_keep(s->version);
    const tarn_metadata *m = s->writing->metadata;
    if (now != NULL) {
        TRY(keys_begin(&s->keys, now->metadata, head_of(s, now), true, err));
        TRY(key_places_begin(&s->places, now, head_of(s, now), err));
    } else {
        TRY(keys_begin(&s->keys, m, head_of(s, s->writing), false, err));
    }
    TRY(distributor_new(s->env, m, s->options.distribution, &s->keys, s->n_tasks, &s->distributor,
                        err));
    for (int32_t i = 0; i < s->n_tasks; i++) {
        delta_options options;
        delta_writer *writer;
        fill_delta(s, i, &options);
        TRY(delta_writer_new(s->env, &options, &writer, err));
        task_init(&s->tasks[i], s->env, writer, s->n_tasks == 1);
    }
done:
    table_version_release(now);
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

static tarn_code check_kinds(const sink_job *s, const uint8_t *kinds, int64_t rows,
                             tarn_error *err) {
    for (int64_t i = 0; kinds != NULL && i < rows; i++) {
        if (kinds[i] > TARN_ROW_DELETE) {
            return err_set(err, TARN_INVALID, "row %lld of a batch had kind %d; kinds are 0 to 3",
                           (long long)i + 1, kinds[i]);
        }
        if (kinds[i] != TARN_ROW_INSERT && s->keys.kind == DELETE_NONE) {
            return err_set(err, TARN_INVALID,
                           "row %lld of a batch was an update or a delete; the sink was opened for "
                           "appends, without a key",
                           (long long)i + 1);
        }
    }
    return TARN_OK;
}

static tarn_code write_some(sink_job *s, int32_t task, const tarn_batch *batch,
                            const uint8_t *kinds, const task_rows *rows, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch some;
    uint8_t *some_kinds = NULL;
    memset(&some, 0, sizeof some);
    TRY(batch_gather(s->env, batch, rows->rows, rows->n, &some, err));
    if (kinds != NULL) {
        some_kinds = env_alloc(s->env, (size_t)rows->n);
        if (some_kinds == NULL) {
            code = err_nomem(err);
            goto done;
        }
        for (int64_t i = 0; i < rows->n; i++) {
            some_kinds[i] = kinds[rows->rows[i]];
        }
    }
    TRY(task_write(&s->tasks[task], &some, some_kinds, err));
done:
    env_free(s->env, some_kinds);
    batch_release(&some);
    return code;
}

static tarn_code write_rows(sink_job *s, tarn_batch *batch, const uint8_t *kinds, tarn_error *err) {
    tarn_code code = TARN_OK;
    const task_rows *lists;
    if (distributor_is_whole(s->distributor)) {
        sink_task *task = &s->tasks[s->turn % s->n_tasks];
        s->turn = (s->turn + 1) % s->n_tasks;
        return task_write(task, batch, kinds, err);
    }
    TRY(distributor_route(s->distributor, batch, &lists, err));
    for (int32_t i = 0; i < s->n_tasks; i++) {
        if (lists[i].n > 0) {
            TRY(write_some(s, i, batch, kinds, &lists[i], err));
        }
    }
done:
    return code;
}

tarn_code sink_write(sink_job *s, tarn_batch *batch, const uint8_t *kinds, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (s->in_background && s->broken == TARN_OK && background_failed(&s->behind, err)) {
        break_sink(s, err->code, err);
        return s->broken;
    }
    if (s->broken != TARN_OK) {
        return refuse_broken(s, err);
    }
    TRY(check_required(metadata_schema(sink_version(s)->metadata)->root, batch, err));
    TRY(check_kinds(s, kinds, batch_rows(batch), err));
    TRY(keys_check(&s->keys, batch, err));
    TRY(make_tasks(s, err));
    code = write_rows(s, batch, kinds, err);
    if (code == TARN_OK) {
        batch_release(batch);
    } else if (code != TARN_INVALID || s->n_tasks > 1 || s->keys.kind != DELETE_NONE) {
        break_sink(s, code, err); /* part of the batch may be in */
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

/* Files of this checkpoint are live when its snapshot is; only older ones can be taken away. */
static tarn_code keep_old_referenced(sink_job *s, tarn_arena *arena, write_result *r,
                                     tarn_error *err) {
    int32_t n = 0;
    tarn_str *old = ARENA_ARRAY(arena, tarn_str, (size_t)r->n_referenced + 1);
    if (old == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < r->n_referenced && s->places.old.env != NULL; i++) {
        if (old_files_find(&s->places.old, r->referenced[i]) != NULL) {
            old[n++] = r->referenced[i];
        }
    }
    r->referenced = old;
    r->n_referenced = n;
    return TARN_OK;
}

/* Deletes by position of all tasks, as one: a data file gets one vector. */
static tarn_code close_deletes(sink_job *s, tarn_arena *arena, write_result *all, tarn_error *err) {
    tarn_code code = TARN_OK;
    delete_writer_options options;
    delete_writer *writer = NULL;
    bool any = false;
    for (int32_t i = 0; i < s->n_tasks; i++) {
        any = any || delta_writer_has_deletes(s->tasks[i].writer);
    }
    if (!any) {
        return TARN_OK;
    }
    memset(&options, 0, sizeof options);
    options.metadata = s->writing->metadata;
    options.kind = s->writing->metadata->format_version > 2 ? DELETE_VECTOR : DELETE_POSITION;
    TRY(delete_writer_new(s->env, s->options.catalog->store, &options, &writer, err));
    for (int32_t i = 0; i < s->n_tasks; i++) {
        TRY(delta_writer_give(s->tasks[i].writer, writer, err));
    }
    TRY(delete_writer_close(writer, arena, all, err));
    TRY(keep_old_referenced(s, arena, all, err));
done:
    delete_writer_free(writer);
    return code;
}

static tarn_code close_tasks(sink_job *s, tarn_arena *arena, write_result *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    write_result all;
    memset(&all, 0, sizeof all);
    for (int32_t i = 0; i < s->n_tasks; i++) {
        TRY(task_flush(&s->tasks[i], err));
    }
    s->open_files = 0;
    for (int32_t i = 0; i < s->n_tasks; i++) {
        s->open_files += delta_writer_open_files(s->tasks[i].writer);
    }
    for (int32_t i = 0; i < s->n_tasks; i++) {
        write_result one;
        memset(&one, 0, sizeof one);
        TRY(delta_writer_close(s->tasks[i].writer, arena, &one, err));
        atomic_store(&s->tasks[i].finished_files, 0);
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
    TRY(close_deletes(s, arena, &all, err));
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
    s->last.bytes = write_result_bytes(r);
    s->last.checkpoints = 1;
    s->checkpoints++;
}

tarn_code sink_take(sink_job *s, tarn_arena *arena, write_result *out, tarn_error *err) {
    memset(out, 0, sizeof *out);
    if (s->tasks == NULL) { /* nothing came */
        memset(&s->last, 0, sizeof s->last);
        return TARN_OK;
    }
    tarn_code code = close_tasks(s, arena, out, err);
    free_tasks(s); /* the next ones are made for the version that there is then */
    if (code == TARN_OK) {
        count_result(s, out);
    }
    return code;
}

/* The files are closed; *out is the caller's. */
static tarn_code make_pending(sink_job *s, const char *offsets, sink_pending **out,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    if (s->broken != TARN_OK) {
        return refuse_broken(s, err);
    }
    sink_pending *p = sink_pending_new(s->env);
    if (p == NULL) {
        return err_nomem(err);
    }
    p->delta.base_snapshot_id =
        is_indexed(s) && s->tasks != NULL ? s->places.base : head_of(s, sink_version(s));
    p->delta.offsets = STR_NULL;
    if (offsets != NULL) {
        p->delta.offsets = arena_str(&p->arena, str_of(offsets));
        if (p->delta.offsets.data == NULL) {
            code = err_nomem(err);
            goto done;
        }
    }
    code = sink_take(s, &p->arena, &p->delta.written, err);
    if (code != TARN_OK) {
        break_sink(s, code, err);
        goto done;
    }
    *out = p;
    p = NULL;
done:
    sink_pending_free(p);
    return code;
}

tarn_code sink_precommit(sink_job *s, const char *offsets, int64_t *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_pending *p = NULL;
    TRY(make_pending(s, offsets, &p, err));
    if (is_indexed(s)) {
        key_places_push(&s->places, &p->delta.written);
    }
    int64_t number = s->committer.next_checkpoint;
    code = committer_add(&s->committer, p, err);
    *out = number;
    if (code != TARN_OK) {
        key_places_lose(&s->places);
        break_sink(s, code, err);
    }
done:
    return code;
}

/* ---- in the background ---- */

bool sink_is_background(const sink_job *s) {
    return s->in_background;
}

tarn_code sink_push(sink_job *s, const char *offsets, tarn_error *err) {
    sink_pending *p = NULL;
    tarn_code code = TARN_OK;
    TRY(make_pending(s, offsets, &p, err));
    if (is_indexed(s)) {
        key_places_push(&s->places, &p->delta.written);
    }
    background_push(&s->behind, p);
    while (is_indexed(s) && key_places_are_full(&s->places)) {
        background_wait_for(&s->behind, s->places.on_way - 1);
        TRY(hear(s, err));
        settle(s);
    }
done:
    return code;
}

tarn_code sink_poll(sink_job *s, sink_progress *out, tarn_error *err) {
    tarn_code code = hear(s, err);
    *out = s->heard;
    if (out->commit.version != NULL) {
        sink_adopt(s, table_version_keep(out->commit.version));
    }
    s->heard.commit.version = NULL;
    s->heard.rows = 0;
    s->heard.files = 0;
    s->heard.any = false;
    if (s->tasks == NULL) {
        settle(s);
    }
    return code;
}

tarn_code sink_flush(sink_job *s, sink_progress *out, tarn_error *err) {
    background_wait(&s->behind);
    return sink_poll(s, out, err);
}

bool sink_next_commit(sink_job *s, committer_note *out) {
    if (s->note_at == s->notes.len) {
        buf_reset(&s->notes);
        s->note_at = 0;
        if (s->in_background) {
            background_notes(&s->behind, &s->notes);
        } else {
            tarn_buf told = s->notes;
            s->notes = s->committer.notes;
            s->committer.notes = told;
        }
    }
    if (s->note_at == s->notes.len) {
        return false;
    }
    memcpy(out, s->notes.data + s->note_at, sizeof *out);
    s->note_at += sizeof *out;
    out->checkpoint = out->checkpoint - s->first_checkpoint + 1;
    return true;
}

/* ---- commits ---- */

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
    if (code == TARN_CONFLICT && fits_no_more(s, out)) {
        give_up(s, code, err);
    }
    if (out->version != NULL) {
        sink_adopt(s, table_version_keep(out->version));
    }
    /* One that failed and is still there is committed later, with what the indexes hold of it. */
    s->n_done = s->places.on_way - committer_pending(&s->committer);
    s->n_snapshots = s->committer.last.commits;
    s->last_snapshot_id = out->snapshot_id;
    table_version_release(s->last_version);
    s->last_version = table_version_keep(s->version);
    if (code != TARN_OK && s->committer.pending == NULL) {
        key_places_lose(&s->places);
    }
    settle(s);
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

/* What is in the table, not what was written for it. */
static void fill_total(const sink_job *s, const committer_counts *counts, sink_counts *out) {
    out->rows = counts->rows;
    out->deleted_rows = counts->deleted_rows;
    out->data_files = counts->data_files;
    out->delete_files = counts->delete_files;
    out->bytes = counts->bytes;
    out->checkpoints = s->checkpoints;
}

void sink_stats_get(sink_job *s, sink_stats *out) {
    memset(out, 0, sizeof *out);
    out->last = s->last;
    out->writers = s->n_tasks;
    out->open_files = s->open_files;
    if (s->tasks != NULL && s->n_tasks == 1) {
        out->open_files = delta_writer_open_files(s->tasks[0].writer);
    }
    for (int32_t i = 0; s->tasks != NULL && i < s->n_tasks; i++) {
        out->finished_files += atomic_load(&s->tasks[i].finished_files);
    }
    if (s->in_background) {
        out->pending = background_counts(&s->behind, &out->commits, &out->last_commits);
    } else {
        out->commits = s->committer.counts;
        out->last_commits = s->committer.last;
        out->pending = committer_pending(&s->committer);
    }
    fill_total(s, &out->commits, &out->total);
}

void sink_note_taken(sink_job *s, const write_result *taken) {
    committer_count(&s->committer, taken);
}

void sink_forget(sink_job *s) {
    s->forget = true;
}

void sink_free(sink_job *s) {
    if (s == NULL) {
        return;
    }
    free_tasks(s); /* also what is left of tasks that could not be made */
    background_release(&s->behind);
    table_version_release(s->heard.commit.version);
    table_version_release(s->last_version);
    key_places_release(&s->places);
    if (s->committer.env != NULL) {
        committer_release(&s->committer);
    }
    keys_release(&s->keys);
    buf_release(&s->notes);
    if (s->state != NULL && s->forget) {
        sink_state_remove(s->state);
    } else {
        sink_state_close(s->state);
    }
    store_close(s->own_store);
    table_version_release(s->version);
    arena_release(&s->arena);
    env_free(s->env, s);
}
