/* api/api_sink.c - include/tarn/sink.h: batches of any Arrow schema become rows of the table,
 * committed at the caller's checkpoints (sink/sink.h). */
#include "api/api_outcome.h"
#include "api/handles.h"
#include "dml/dml.h"
#include "sink/sink.h"
#include "table/project.h"

#include <stdatomic.h>

struct tarn_sink {
    tarn_env *env;
    tarn_table *table;
    tarn_arena arena;
    tarn_sink_mode mode;
    const tarn_expr *overwrite_filter;
    tarn_str branch;
    sink_options options;
    sink_job *job;
};

/* The caller's struct may be an older, shorter one; what it lacks is as in TARN_SINK_OPTIONS_INIT.
 */
static tarn_sink_options known_options(const tarn_sink_options *options) {
    tarn_sink_options o = TARN_SINK_OPTIONS_INIT;
    if (options != NULL) {
        size_t size = options->struct_size;
        memcpy(&o, options, size < sizeof o ? size : sizeof o);
        o.struct_size = sizeof o;
    }
    return o;
}

static tarn_code check_options(const tarn_sink_options *o, tarn_error *err) {
    bool replaces = o->mode != TARN_SINK_APPEND;
    if (o->mode == TARN_SINK_OVERWRITE && (o->state_dir != NULL || o->empty_commit_every > 0)) {
        return err_set(err, TARN_INVALID,
                       "a sink that overwrites replaces rows in one commit; it takes no state "
                       "folder and no empty commits");
    }
    if (replaces && (o->changes || o->upsert || o->key != NULL || o->deletes != NULL)) {
        return err_set(err, TARN_INVALID,
                       "changes by key go with appends, not with overwriting or replacing "
                       "partitions");
    }
    if (o->table_offsets != NULL && o->mode == TARN_SINK_OVERWRITE) {
        return err_set(err, TARN_INVALID,
                       "offsets that the table keeps go with appends, not with overwriting");
    }
    if (o->empty_commit_every < 0) {
        return err_set(err, TARN_INVALID, "empty_commit_every was %d; it is 0 or more",
                       o->empty_commit_every);
    }
    return TARN_OK;
}

static tarn_code read_options(tarn_sink *sink, const tarn_sink_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_options *to = &sink->options;
    TRY(check_options(o, err));
    /* A manifest a checkpoint would have the list grow without end. */
    bool is_stream = o->state_dir != NULL || o->table_offsets != NULL;
    sink->mode = o->mode;
    to->append = o->mode == TARN_SINK_REPLACE_PARTITIONS ? COMMIT_REPLACE_PARTITIONS
                 : o->merge_manifests || is_stream       ? COMMIT_MERGE_APPEND
                                                         : COMMIT_FAST_APPEND;
    to->catalog = sink->table->catalog->catalog;
    to->ident = &sink->table->ident;
    to->version = sink->table->version;
    to->memory_bytes = (size_t)o->memory_bytes;
    to->state_dir = str_of(o->state_dir);
    to->sink_id = str_of(o->sink_id);
    to->writers = o->writers;
    to->empty_every = o->empty_commit_every;
    to->distribution = str_of(o->distribution);
    to->upsert = o->upsert;
    to->accept_rollback = o->accept_rollback;
    to->background = o->background;
    to->changes = o->changes || o->key != NULL || o->deletes != NULL;
    to->deletes = str_of(o->deletes);
    to->shared_offsets = str_of(o->table_offsets);
    if (o->key != NULL) {
        TRY(api_names(&sink->arena, o->key, &to->key, &to->n_key, err));
    }
    if (o->branch != NULL) {
        sink->branch = arena_str(&sink->arena, str_of(o->branch));
        if (sink->branch.data == NULL) {
            return err_nomem(err);
        }
    }
    to->branch = sink->branch;
    TRY(api_filter(&sink->arena, o->overwrite_where, &sink->overwrite_filter, err));
    TRY(api_properties(&sink->arena, o->summary_json, "summary", &to->summary, err));
done:
    return code;
}

/* The handle shows what the sink sees. */
static void show_version(tarn_sink *sink) {
    const tarn_table_version *now = sink_version(sink->job);
    if (now != sink->table->version) {
        api_take_version(sink->table, table_version_keep((tarn_table_version *)(uintptr_t)now));
    }
}

tarn_code tarn_sink_open(tarn_table *table, const tarn_sink_options *options, tarn_sink **out,
                         tarn_error *err) {
    API_ERROR(err);
    tarn_sink_options known = known_options(options);
    tarn_code code = api_check_writable(table, err);
    if (code != TARN_OK) {
        return code;
    }
    tarn_sink *sink = env_calloc(table->env, 1, sizeof *sink);
    if (sink == NULL) {
        return err_nomem(err);
    }
    sink->env = table->env;
    sink->table = table;
    arena_init(&sink->arena, table->env);
    TRY(read_options(sink, &known, err));
    TRY(sink_open(sink->env, &sink->options, &sink->job, err));
    show_version(sink);
    *out = sink;
    sink = NULL;
done:
    tarn_sink_free(sink);
    return code;
}

/* The rest of a poll or flush. */
static void show_progress(tarn_sink *sink, sink_progress *progress, tarn_outcome *outcome) {
    if (outcome != NULL && (progress->any || progress->commit.kind == TARN_OUTCOME_UNKNOWN)) {
        api_fill_outcome(outcome, &progress->commit);
        outcome->rows = progress->rows;
        outcome->files_added = progress->files;
    }
    table_version_release(progress->commit.version);
    show_version(sink);
}

static tarn_code poll_sink(tarn_sink *sink, bool wait, tarn_outcome *outcome, tarn_error *err) {
    sink_progress progress;
    tarn_code code =
        wait ? sink_flush(sink->job, &progress, err) : sink_poll(sink->job, &progress, err);
    show_progress(sink, &progress, outcome);
    return code;
}

static tarn_code check_columns(const tarn_type *input, const tarn_type *root, tarn_error *err) {
    for (int32_t i = 0; i < input->n_fields; i++) {
        if (type_child(root, input->fields[i].name) == NULL) {
            return err_set(err, TARN_INVALID, "the table has no column %.*s",
                           STR_ARG(input->fields[i].name));
        }
    }
    for (int32_t i = 0; i < root->n_fields; i++) {
        const tarn_field *f = &root->fields[i];
        if (f->required && f->write_default == NULL && type_child(input, f->name) == NULL) {
            return err_set(err, TARN_INVALID, "column %.*s is required and was not given",
                           STR_ARG(f->name));
        }
    }
    return TARN_OK;
}

/* The caller's array behind a batch that shares its memory. It stays the caller's where the write
 * fails; where it was taken, it goes when the last batch that looks into it goes, which is after
 * the call, and on another thread, where a task still has rows of it to write. */
typedef struct array_loan {
    tarn_env *env;
    atomic_int holders;      /* the call, and the batches together */
    struct ArrowArray array; /* release NULL: the caller still has it */
} array_loan;

static void drop_loan(array_loan *loan) {
    if (atomic_fetch_sub(&loan->holders, 1) == 1) {
        if (loan->array.release != NULL) {
            loan->array.release(&loan->array);
        }
        env_free(loan->env, loan);
    }
}

static void release_lent(struct ArrowArray *array) {
    drop_loan(array->private_data);
    array->release = NULL;
}

static tarn_code import_lent(array_loan *loan, const struct ArrowSchema *schema,
                             const struct ArrowArray *array, const tarn_type *type, tarn_batch *out,
                             tarn_error *err) {
    struct ArrowArray lent = *array;
    lent.release = release_lent;
    lent.private_data = loan;
    tarn_code code = batch_import(loan->env, schema, &lent, type, out, err);
    if (code == TARN_OK) {
        atomic_fetch_add(&loan->holders, 1);
    }
    return code;
}

static array_loan *loan_new(tarn_env *env) {
    array_loan *loan = env_calloc(env, 1, sizeof *loan);
    if (loan != NULL) {
        loan->env = env;
        atomic_init(&loan->holders, 1);
    }
    return loan;
}

/* What a failed checkpoint left goes before the next rows. */
static tarn_code commit_waiting(tarn_sink *sink, tarn_error *err) {
    commit_outcome commit;
    if (!sink_waits(sink->job)) {
        return TARN_OK;
    }
    tarn_code code = sink_commit(sink->job, INT64_MAX, &commit, err);
    table_version_release(commit.version);
    return code;
}

tarn_code tarn_sink_write_changes(tarn_sink *sink, const struct ArrowSchema *schema,
                                  struct ArrowArray *array, const uint8_t *kinds, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    const tarn_type *input;
    const tarn_type *root;
    tarn_projection *plan;
    project_options options;
    tarn_batch in;
    tarn_batch rows;
    array_loan *loan = loan_new(sink->env);
    memset(&in, 0, sizeof in);
    memset(&rows, 0, sizeof rows);
    memset(&options, 0, sizeof options);
    options.by_name = true;
    options.writes = true;
    options.file = "batch";
    arena_init(&arena, sink->env);
    if (loan == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(commit_waiting(sink, err));
    root = metadata_schema(sink_version(sink->job)->metadata)->root;
    TRY(type_from_arrow(&arena, schema, &input, err));
    TRY(check_columns(input, root, err));
    TRY(project_plan(&arena, input, root, &options, &plan, err));
    TRY(import_lent(loan, schema, array, input, &in, err));
    TRY(project_apply(plan, sink->env, &in, &rows, err));
    TRY(sink_write(sink->job, &rows, kinds, err));
    loan->array = *array;
    array->release = NULL;
done:
    batch_release(&in);
    batch_release(&rows);
    arena_release(&arena);
    if (loan != NULL) {
        drop_loan(loan);
    }
    return code;
}

tarn_code tarn_sink_write(tarn_sink *sink, const struct ArrowSchema *schema,
                          struct ArrowArray *array, tarn_error *err) {
    return tarn_sink_write_changes(sink, schema, array, NULL, err);
}

static tarn_code commit_overwrite(tarn_sink *sink, tarn_outcome *outcome, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    write_result written;
    dml_options options;
    dml_result result;
    memset(&options, 0, sizeof options);
    memset(&result, 0, sizeof result);
    arena_init(&arena, sink->env);
    TRY(sink_take(sink->job, &arena, &written, err));
    options.branch = sink->branch;
    options.makes_branch = true;
    options.filter = sink->overwrite_filter;
    code = dml_overwrite(sink->env, sink->table->catalog->catalog, &sink->table->ident, &options,
                         written.files, written.n_files, &result, err);
    outcome->files_removed = result.files_removed;
    outcome->rows_rewritten = result.rows_kept;
    api_fill_outcome(outcome, &result.outcome);
    if (code == TARN_OK) {
        outcome->rows = written.rows;
        outcome->files_added = written.n_files;
        if (result.outcome.kind == TARN_COMMITTED) {
            sink_note_taken(sink->job, &written);
        }
        sink_adopt(sink->job, result.outcome.version);
        show_version(sink);
    } else if (result.outcome.kind == TARN_NOT_COMMITTED) {
        write_result_remove(sink->table->catalog->catalog->store, &written);
    }
done:
    arena_release(&arena);
    return code;
}

tarn_code tarn_sink_checkpoint(tarn_sink *sink, const char *offsets, tarn_outcome *outcome,
                               tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    int64_t checkpoint;
    commit_outcome commit;
    api_reset_outcome(outcome);
    if (sink->mode == TARN_SINK_OVERWRITE) {
        return commit_overwrite(sink, outcome, err);
    }
    if (sink_is_background(sink->job)) {
        TRY(sink_push(sink->job, offsets, err));
        return poll_sink(sink, false, outcome, err);
    }
    TRY(sink_precommit(sink->job, offsets, &checkpoint, err));
    code = sink_commit(sink->job, checkpoint, &commit, err);
    api_fill_outcome(outcome, &commit);
    table_version_release(commit.version);
    if (code == TARN_OK) {
        sink_last_commit(sink->job, &outcome->rows, &outcome->files_added);
        show_version(sink);
    }
done:
    return code;
}

tarn_code tarn_sink_flush(tarn_sink *sink, tarn_outcome *outcome, tarn_error *err) {
    API_ERROR(err);
    api_reset_outcome(outcome);
    return sink_is_background(sink->job) ? poll_sink(sink, true, outcome, err) : TARN_OK;
}

tarn_code tarn_sink_commit(tarn_sink *sink, tarn_outcome *outcome, tarn_error *err) {
    if (!sink_is_background(sink->job)) {
        return tarn_sink_checkpoint(sink, NULL, outcome, err);
    }
    API_ERROR(err);
    api_reset_outcome(outcome);
    tarn_code code = sink_push(sink->job, NULL, err);
    return code == TARN_OK ? poll_sink(sink, true, outcome, err) : code;
}

tarn_code tarn_sink_key(const tarn_sink *sink, char **out, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_buf text;
    buf_init(&text, sink->env, 0);
    *out = NULL;
    tarn_str name = sink_key_column(sink->job, 0);
    for (int32_t i = 1; name.data != NULL; i++) {
        TRY(buf_append_char(&text, '"', err));
        for (size_t at = 0; at < name.len; at++) {
            TRY(name.data[at] == '"' ? buf_append_char(&text, '"', err) : TARN_OK);
            TRY(buf_append_char(&text, name.data[at], err));
        }
        TRY(buf_append_char(&text, '"', err));
        name = sink_key_column(sink->job, i);
        TRY(name.data != NULL ? buf_append_char(&text, ',', err) : TARN_OK);
    }
    code = text.len > 0 ? api_give_text(sink->env, &text, out, err) : TARN_OK;
done:
    buf_release(&text);
    return code;
}

tarn_code tarn_sink_offsets(tarn_sink *sink, char **out, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_buf text;
    bool has;
    *out = NULL;
    buf_init(&text, sink->env, 0);
    if (sink->options.shared_offsets.len > 0) {
        TRY(sink_shared_offsets(sink->job, &text, err));
        has = text.len > 0;
    } else {
        TRY(sink_read_offsets(sink->job, &text, &has, err));
    }
    if (has) {
        return api_give_text(sink->env, &text, out, err);
    }
done:
    buf_release(&text);
    return code;
}

static void fill_numbers(tarn_sink_numbers *out, const sink_counts *counts,
                         const committer_counts *commits) {
    out->checkpoints = counts->checkpoints;
    out->rows = counts->rows;
    out->deleted_rows = counts->deleted_rows;
    out->data_files = counts->data_files;
    out->delete_files = counts->delete_files;
    out->bytes = counts->bytes;
    out->commits = commits->commits;
    out->retries = commits->retries;
    out->commit_ms = commits->commit_ms;
}

bool tarn_sink_next_commit(tarn_sink *sink, tarn_sink_committed *out) {
    committer_note note;
    tarn_sink_committed all = TARN_SINK_COMMITTED_INIT;
    size_t size = out->struct_size < sizeof all ? out->struct_size : sizeof all;
    if (!sink_next_commit(sink->job, &note)) {
        return false;
    }
    const sink_counts counts = {note.counts.rows,       note.counts.deleted_rows,
                                note.counts.data_files, note.counts.delete_files,
                                note.counts.bytes,      1};
    all.struct_size = out->struct_size;
    all.checkpoint = note.checkpoint;
    all.snapshot_id = note.snapshot_id;
    fill_numbers(&all.numbers, &counts, &note.counts);
    memcpy(out, &all, size);
    return true;
}

void tarn_sink_stats_get(const tarn_sink *sink, tarn_sink_stats *out) {
    sink_stats stats;
    tarn_sink_stats all = TARN_SINK_STATS_INIT;
    size_t size = out->struct_size < sizeof all ? out->struct_size : sizeof all;
    sink_stats_get(sink->job, &stats);
    all.struct_size = out->struct_size;
    all.writers = stats.writers;
    all.pending = stats.pending;
    all.memory_bytes = tarn_env_memory_now(sink->env);
    all.memory_peak_bytes = tarn_env_memory_peak(sink->env);
    fill_numbers(&all.total, &stats.total, &stats.commits);
    fill_numbers(&all.last, &stats.last, &stats.last_commits);
    all.open_files = stats.open_files;
    all.finished_files = stats.finished_files;
    memcpy(out, &all, size); /* the caller's may be an older, shorter one */
}

void tarn_sink_forget(tarn_sink *sink) {
    sink_forget(sink->job);
}

void tarn_sink_free(tarn_sink *sink) {
    if (sink == NULL) {
        return;
    }
    sink_free(sink->job);
    arena_release(&sink->arena);
    env_free(sink->env, sink);
}
