/* service/intake_table.c - what waits for one table becomes files, and the files one snapshot.
 *
 *   look at the table -> (what it has already is passed) -> files -> commit -> note in the log
 *
 * Invariants: 1 files that a commit may have taken are never removed, and the same files are tried
 * again until the table says what became of them; 2 a commit is refused where its base has the
 * rows already (check_base), which is asked with every base, and the swap is from that base. */
#include "service/intake_int.h"

#include <inttypes.h>
#include <stdio.h>

#define COMMIT_BYTES ((int64_t)64 << 20) /* the most of one commit, but for one request */
#define WRITER_BYTES ((size_t)48 << 20)

/* ---- what the table says ---- */

/* Up to which position it has rows; -1: it says nothing. */
static int64_t read_position(const intake_table *t, const tarn_metadata *m) {
    tarn_str text;
    int64_t position;
    return properties_get(&m->properties, t->in->property, &text) && str_to_i64(text, &position)
               ? position
               : -1;
}

/* ---- items that are done ---- */

static void note_committed(intake_table *t, int64_t end) {
    intake *in = t->in;
    tarn_error err = TARN_ERROR_INIT;
    store_log_entry entry;
    tarn_buf text;
    memset(&entry, 0, sizeof entry);
    buf_init(&text, in->env, 0);
    tarn_code code = intake_note_write(t->identity, end, &text, &err);
    entry.kind = INTAKE_NOTE;
    entry.parts[0] = buf_str(&text);
    code = code == TARN_OK ? store_log_append(in->log, &entry, &err) : code;
    if (code != TARN_OK) { /* then the table is asked after a restart */
        env_log(in->env, TARN_LOG_WARN, "service", "intake", "%s", err.message);
    }
    buf_release(&text);
}

/* Those who wait for it; under the lock. */
static void tell_waiters(const intake_item *item, int64_t snapshot_id) {
    for (intake_waiter *w = item->waiters; w != NULL; w = w->next) {
        w->done = true;
        w->rejected = item->rejected;
        w->snapshot_id = item->rejected < item->rows ? snapshot_id : TARN_NO_SNAPSHOT;
    }
}

/* The first items, up to a position, are in the table, or were rejected. */
static void finish_items(intake_table *t, int64_t end, int64_t snapshot_id) {
    intake *in = t->in;
    intake_item *done = NULL;
    (void)pthread_mutex_lock(&in->lock);
    while (t->first != NULL && t->first->durable && t->first->position < end) {
        intake_item *item = t->first;
        t->first = item->next;
        t->last = t->first != NULL ? t->last : NULL;
        t->bytes -= item->bytes;
        in->waiting_bytes -= item->bytes;
        in->decoded_bytes -= item->batches.n > 0 ? item->bytes : 0;
        tell_waiters(item, snapshot_id);
        item->next = done;
        done = item;
    }
    t->committed = end;
    t->since_ms = env_now_ms(in->env);
    (void)pthread_cond_broadcast(&in->moved);
    (void)pthread_mutex_unlock(&in->lock);
    while (done != NULL) {
        intake_item *next = done->next;
        store_log_release(in->log, &done->place);
        intake_item_free(in->env, done);
        done = next;
    }
    note_committed(t, end);
}

static void drop_work(intake_table *t, bool remove_files) {
    if (remove_files) {
        write_result_remove(t->in->catalog->store, &t->work.written);
    }
    arena_release(&t->work.arena);
    memset(&t->work, 0, sizeof t->work);
}

/* Those that are durable, in their order, as many as go into one commit. */
static void take_items(intake_table *t) {
    intake *in = t->in;
    intake_work *w = &t->work;
    memset(w, 0, sizeof *w);
    arena_init(&w->arena, in->env);
    (void)pthread_mutex_lock(&in->lock);
    for (const intake_item *i = t->first; i != NULL && i->durable; i = i->next) {
        if (w->n_items > 0 && w->bytes + i->bytes > COMMIT_BYTES) {
            break;
        }
        w->first = w->n_items == 0 ? i->position : w->first;
        w->end = i->position + 1;
        w->bytes += i->bytes;
        w->n_items++;
    }
    (void)pthread_mutex_unlock(&in->lock);
}

/* Of the work's items, the one behind its i-th; what is behind the last belongs to those who take
 * rows. */
static intake_item *next_item(const intake_table *t, const intake_item *item, int32_t i) {
    return i + 1 < t->work.n_items ? item->next : NULL;
}

/* ---- files ---- */

static tarn_code read_item(intake_table *t, const intake_item *item, tarn_buf *bytes,
                           intake_rows *rows, tarn_error *err) {
    tarn_code code = TARN_OK;
    store_log_record record = {INTAKE_ROWS, item->position, 0, item->place, STR_NULL};
    TRY(store_log_read(t->in->log, &item->place, bytes, err));
    record.payload = buf_str(bytes);
    TRY(intake_rows_read(&record, rows, err));
done:
    return code;
}

/* From the log: its batches were not kept, or are of another schema. */
static tarn_code decode_item(intake_table *t, intake_item *item, const tarn_type *root,
                             intake_rejects *rejects, intake_batches *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf bytes;
    intake_rows rows;
    buf_init(&bytes, t->in->env, 0);
    TRY(read_item(t, item, &bytes, &rows, err));
    int64_t before = rejects->n;
    rejects->position = item->position;
    TRY(intake_decode(t->in->env, rows.body, root, intake_reject_row, rejects, out, err));
    item->rejected = rejects->n - before;
done:
    buf_release(&bytes);
    return code;
}

static tarn_code reject_item(intake_table *t, intake_item *item, intake_rejects *rejects,
                             tarn_str reason, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t before = rejects->n;
    tarn_buf bytes;
    intake_rows rows;
    buf_init(&bytes, t->in->env, 0);
    TRY(read_item(t, item, &bytes, &rows, err));
    rejects->position = item->position;
    rejects->reason = reason;
    code = intake_reject_body(rejects, rows.body, err);
    rejects->reason = STR_NULL;
    item->rejected = rejects->n - before;
done:
    buf_release(&bytes);
    return code;
}

static tarn_code write_batches(data_writer *writer, const intake_batches *batches,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < batches->n && code == TARN_OK; i++) {
        code = data_writer_write(writer, &batches->items[i], err);
    }
    return code;
}

/* *poison: the table does not take the item's rows, whatever is tried. */
static tarn_code write_item(intake_table *t, intake_item *item, const tarn_metadata *m,
                            data_writer *writer, intake_rejects *rejects, bool *poison,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_batches own;
    memset(&own, 0, sizeof own);
    item->rejected = 0;
    if (item->reason != NULL) {
        return reject_item(t, item, rejects, str_of(item->reason), err);
    }
    bool fits =
        item->batches.n > 0 && item->version->metadata->current_schema_id == m->current_schema_id;
    if (!fits) {
        TRY(decode_item(t, item, metadata_schema(m)->root, rejects, &own, err));
    }
    code = write_batches(writer, fits ? &item->batches : &own, err);
    *poison = code == TARN_INVALID || code == TARN_LIMIT || code == TARN_UNSUPPORTED;
done:
    intake_batches_release(&own);
    return code;
}

static tarn_code write_once(intake_table *t, const tarn_metadata *m, intake_rejects *rejects,
                            intake_item **poison, tarn_error *err) {
    tarn_code code = TARN_OK;
    data_writer *writer = NULL;
    data_writer_options options;
    intake_item *item = t->first;
    bool bad = false;
    memset(&options, 0, sizeof options);
    options.metadata = m;
    options.memory_bytes = WRITER_BYTES;
    TRY(data_writer_new(t->in->env, t->in->catalog->store, &options, &writer, err));
    for (int32_t i = 0; i < t->work.n_items; i++) {
        *poison = item;
        TRY(write_item(t, item, m, writer, rejects, &bad, err));
        item = next_item(t, item, i);
    }
    TRY(data_writer_close(writer, &t->work.arena, &t->work.written, err));
done:
    *poison = bad ? *poison : NULL;
    data_writer_free(writer);
    return code;
}

static void drop_decoded(intake_table *t) {
    intake *in = t->in;
    intake_item *item = t->first;
    int64_t bytes = 0;
    for (int32_t i = 0; i < t->work.n_items; i++) {
        bytes += item->batches.n > 0 ? item->bytes : 0;
        intake_batches_release(&item->batches);
        item = next_item(t, item, i);
    }
    (void)pthread_mutex_lock(&in->lock);
    in->decoded_bytes -= bytes;
    (void)pthread_mutex_unlock(&in->lock);
}

static char *copy_text(tarn_env *env, const char *text) {
    char *copy = env_alloc(env, strlen(text) + 1);
    if (copy != NULL) {
        memcpy(copy, text, strlen(text) + 1);
    }
    return copy;
}

static tarn_code write_files(intake_table *t, const tarn_metadata *m, const char *ident,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_rejects rejects;
    intake_item *poison = NULL;
    intake_rejects_begin(&rejects, t, ident);
    do {
        buf_reset(&rejects.text);
        rejects.n = 0;
        code = write_once(t, m, &rejects, &poison, err);
        if (poison != NULL) { /* all again, without it */
            poison->reason = copy_text(t->in->env, err->message);
            code = poison->reason != NULL ? code : err_nomem(err);
        }
    } while (poison != NULL && poison->reason != NULL);
    TRY(code);
    TRY(intake_rejects_end(&rejects, err));
    drop_decoded(t);
    t->work.ready = true;
done:
    if (code != TARN_OK) {
        write_result_remove(t->in->catalog->store, &t->work.written);
    }
    buf_release(&rejects.text);
    return code;
}

/* ---- the commit ---- */

typedef struct base_check {
    const intake_table *t;
    int64_t found; /* the base has rows of the log up to here, ours among them; -1: no */
} base_check;

static tarn_code check_base(void *ctx, const tarn_metadata *base, tarn_error *err) {
    base_check *c = ctx;
    c->found = -1;
    if (!str_eq(intake_identity(base, c->t->identity), c->t->identity)) {
        return err_set(err, TARN_NOT_FOUND, "the table is another one than rows were taken for");
    }
    int64_t found = read_position(c->t, base);
    if (found > c->t->work.first) {
        c->found = found;
        return err_set(err, TARN_CONFLICT,
                       "the table has rows up to position %" PRId64 " of the log already", found);
    }
    return TARN_OK;
}

/* The base had the rows: by these files, or by those of a process before this one. */
static void pass_known(intake_table *t, int64_t found) {
    bool ours = t->work.sent && found == t->work.end;
    int64_t end = found < t->work.end ? found : t->work.end;
    drop_work(t, !ours);
    finish_items(t, end, TARN_NO_SNAPSHOT);
}

static tarn_code commit_work(intake_table *t, const tarn_ident *ident, tarn_error *err) {
    intake *in = t->in;
    intake_work *w = &t->work;
    char position[24];
    base_check check = {t, -1};
    tarn_property entry = {str_of(in->property), STR_NULL};
    commit_request request;
    commit_job job;
    memset(&request, 0, sizeof request);
    memset(&job, 0, sizeof job);
    job.err = (tarn_error)TARN_ERROR_INIT;
    (void)snprintf(position, sizeof position, "%" PRId64, w->end);
    entry.value = str_of(position);
    request.kind = COMMIT_MERGE_APPEND;
    request.added = w->written.files;
    request.n_added = w->written.n_files;
    request.from_snapshot_id = TARN_NO_SNAPSHOT;
    request.properties = (tarn_properties){1, &entry};
    request.check = check_base;
    request.check_ctx = &check;
    request.check_each = true;
    job.request = &request;
    tarn_code code = commit_queue_run(in->queues, ident, &job);
    if (code == TARN_OK) {
        int64_t end = w->end;
        (void)atomic_fetch_add(&in->counters.commits, 1);
        (void)atomic_fetch_add(&in->counters.committed_rows, w->written.rows);
        (void)pthread_mutex_lock(&in->lock);
        intake_see_table(t, job.version);
        (void)pthread_mutex_unlock(&in->lock);
        table_version_release(job.version);
        drop_work(t, false);
        finish_items(t, end, job.snapshot_id);
    } else if (check.found >= 0) {
        pass_known(t, check.found);
        code = TARN_OK;
    } else {
        *err = job.err;
        w->sent = true;
    }
    return code;
}

/* ---- the table ---- */

static tarn_code reject_all(intake_table *t, const char *ident, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_rejects rejects;
    intake_item *item = t->first;
    intake_rejects_begin(&rejects, t, ident);
    for (int32_t i = 0; i < t->work.n_items; i++) {
        TRY(reject_item(t, item, &rejects, STR("the table is gone"), err));
        item = next_item(t, item, i);
    }
    TRY(intake_rejects_end(&rejects, err));
    int64_t end = t->work.end;
    drop_work(t, !t->work.sent);
    finish_items(t, end, TARN_NO_SNAPSHOT);
done:
    buf_release(&rejects.text);
    return code;
}

/* It may have another name by now, in its namespace. out: its ident as text, in arena; NULL: none.
 */
static tarn_code find_renamed(intake_table *t, tarn_arena *arena, const tarn_ident *ident,
                              tarn_ident *out, tarn_table_version **version, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_ident ns = *ident;
    tarn_ident *items;
    int32_t n;
    ns.name = STR_NULL;
    *version = NULL;
    code = catalog_list_tables(t->in->catalog, arena, &ns, &items, &n, err);
    if (code == TARN_NOT_FOUND) {
        return TARN_OK;
    }
    TRY(code);
    for (int32_t i = 0; i < n && *version == NULL; i++) {
        tarn_table_version *v;
        code = catalog_load(t->in->catalog, &items[i], &v, err);
        if (code == TARN_NOT_FOUND) { /* it went meanwhile */
            err_reset(err);
            code = TARN_OK;
            continue;
        }
        TRY(code); /* it could be this one */
        if (str_eq(v->metadata->table_uuid, t->identity)) {
            *out = items[i];
            *version = v;
        } else {
            table_version_release(v);
        }
    }
done:
    return code;
}

/* *version NULL: the table is gone. */
static tarn_code look(intake_table *t, tarn_arena *arena, tarn_str text, tarn_ident *ident,
                      tarn_table_version **version, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool fresh = t->uncertain || t->failures > 0;
    *version = NULL;
    TRY(ident_parse(arena, text, false, ident, err));
    for (int i = fresh ? 1 : 0; i < 2; i++) {
        code = commit_queue_look(t->in->queues, ident, i > 0, version, err);
        if (code == TARN_OK && str_eq(intake_identity((*version)->metadata, text), t->identity)) {
            return TARN_OK;
        }
        if (code == TARN_OK) {
            table_version_release(*version);
        }
        *version = NULL;
        if (code != TARN_OK && code != TARN_NOT_FOUND) {
            return code;
        }
    }
    code = find_renamed(t, arena, ident, ident, version, err);
done:
    return code;
}

/* Rows that the table has already, after a restart. */
static bool pass_committed(intake_table *t, const tarn_metadata *m, tarn_error *err,
                           tarn_code *code) {
    store_log_stats stats;
    int64_t found = read_position(t, m);
    store_log_count(t->in->log, &stats);
    if (found > stats.next_position) {
        *code = err_set(err, TARN_CORRUPT,
                        "the table has rows up to position %" PRId64 " of this log, which ends at "
                        "%" PRId64 ": it was set back",
                        found, stats.next_position);
        return true;
    }
    t->uncertain = false;
    if (found <= t->work.first) {
        return false;
    }
    int64_t end = found < t->work.end ? found : t->work.end;
    t->uncertain = true; /* what comes behind is asked again */
    drop_work(t, false);
    finish_items(t, end, TARN_NO_SNAPSHOT);
    return true;
}

tarn_code intake_table_run(intake_table *t, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake *in = t->in;
    tarn_arena arena;
    tarn_ident ident;
    tarn_table_version *version = NULL;
    arena_init(&arena, in->env);
    if (!t->work.ready) {
        take_items(t);
    }
    if (t->work.n_items == 0) {
        goto done;
    }
    (void)pthread_mutex_lock(&in->lock);
    const char *text = t->ident;
    (void)pthread_mutex_unlock(&in->lock);
    TRY(look(t, &arena, str_of(text), &ident, &version, err));
    if (version == NULL) {
        code = reject_all(t, text, err);
        goto done;
    }
    if (t->uncertain && !t->work.ready && pass_committed(t, version->metadata, err, &code)) {
        goto done;
    }
    if (!t->work.ready) {
        TRY(write_files(t, version->metadata, text, err));
    }
    if (t->work.written.n_files == 0) { /* all were rejected */
        int64_t end = t->work.end;
        drop_work(t, false);
        finish_items(t, end, TARN_NO_SNAPSHOT);
        goto done;
    }
    code = commit_work(t, &ident, err);
done:
    if (!t->work.ready) {
        drop_work(t, false);
    }
    table_version_release(version);
    arena_release(&arena);
    return code;
}
