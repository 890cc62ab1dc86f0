/* api/api_sink.c - include/tarn/sink.h: batches of any Arrow schema become rows of the table,
 * committed at the caller's checkpoints. */
#include "api/api_outcome.h"
#include "api/handles.h"
#include "dml/dml.h"
#include "table/project.h"
#include "write/files/data_writer.h"

struct tarn_sink {
    tarn_env *env;
    tarn_table *table;
    tarn_table_version *version; /* whose schema and spec rows are written for */
    tarn_arena arena;
    tarn_sink_mode mode;
    const tarn_expr *overwrite_filter;
    tarn_str branch;
    bool merge_manifests;
    size_t memory_bytes;
    tarn_properties summary;
    data_writer *writer;
};

static tarn_code read_options(tarn_sink *sink, const tarn_sink_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    sink->mode = o->mode;
    sink->merge_manifests = o->merge_manifests;
    sink->memory_bytes = (size_t)o->memory_bytes;
    if (o->branch != NULL) {
        sink->branch = arena_str(&sink->arena, str_of(o->branch));
        if (sink->branch.data == NULL) {
            return err_nomem(err);
        }
    }
    TRY(api_filter(&sink->arena, o->overwrite_where, &sink->overwrite_filter, err));
    TRY(api_properties(&sink->arena, o->summary_json, "summary", &sink->summary, err));
done:
    return code;
}

tarn_code tarn_sink_open(tarn_table *table, const tarn_sink_options *options, tarn_sink **out,
                         tarn_error *err) {
    API_ERROR(err);
    tarn_sink_options defaults = TARN_SINK_OPTIONS_INIT;
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
    sink->version = table_version_keep(table->version);
    arena_init(&sink->arena, table->env);
    TRY(read_options(sink, options != NULL ? options : &defaults, err));
    *out = sink;
    sink = NULL;
done:
    tarn_sink_free(sink);
    return code;
}

static tarn_code ensure_writer(tarn_sink *sink, tarn_error *err) {
    data_writer_options options;
    if (sink->writer != NULL) {
        return TARN_OK;
    }
    memset(&options, 0, sizeof options);
    options.metadata = sink->version->metadata;
    options.memory_bytes = sink->memory_bytes;
    return data_writer_new(sink->env, sink->table->catalog->catalog->store, &options, &sink->writer,
                           err);
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

static void release_lent(struct ArrowArray *array) {
    array->release = NULL;
}

tarn_code tarn_sink_write(tarn_sink *sink, const struct ArrowSchema *schema,
                          struct ArrowArray *array, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    const tarn_type *input;
    const tarn_type *root = metadata_schema(sink->version->metadata)->root;
    tarn_projection *plan;
    project_options options;
    tarn_batch in;
    tarn_batch rows;
    struct ArrowArray lent = *array; /* stays the caller's until all of it was written */
    lent.release = release_lent;
    memset(&in, 0, sizeof in);
    memset(&rows, 0, sizeof rows);
    memset(&options, 0, sizeof options);
    options.by_name = true;
    options.file = "batch";
    arena_init(&arena, sink->env);
    TRY(type_from_arrow(&arena, schema, &input, err));
    TRY(check_columns(input, root, err));
    TRY(project_plan(&arena, input, root, &options, &plan, err));
    TRY(ensure_writer(sink, err));
    TRY(batch_import(sink->env, schema, &lent, input, &in, err));
    TRY(project_apply(plan, sink->env, &in, &rows, err));
    TRY(data_writer_write(sink->writer, &rows, err));
done:
    batch_release(&in);
    batch_release(&rows);
    arena_release(&arena);
    if (code == TARN_OK) {
        array->release(array);
    }
    return code;
}

static tarn_code commit_append(tarn_sink *sink, const write_result *written,
                               commit_outcome *outcome, tarn_error *err) {
    commit_request request;
    memset(&request, 0, sizeof request);
    request.kind = sink->mode == TARN_SINK_REPLACE_PARTITIONS ? COMMIT_REPLACE_PARTITIONS
                   : sink->merge_manifests                    ? COMMIT_MERGE_APPEND
                                                              : COMMIT_FAST_APPEND;
    request.added = written->files;
    request.n_added = written->n_files;
    request.branch = sink->branch;
    request.from_snapshot_id = TARN_NO_SNAPSHOT;
    request.summary = sink->summary;
    return commit_run(sink->env, sink->table->catalog->catalog, &sink->table->ident, NULL, &request,
                      outcome, err);
}

static tarn_code commit_overwrite(tarn_sink *sink, const write_result *written,
                                  tarn_outcome *outcome, commit_outcome *commit, tarn_error *err) {
    dml_options options;
    dml_result result;
    memset(&options, 0, sizeof options);
    memset(&result, 0, sizeof result);
    options.branch = sink->branch;
    options.filter = sink->overwrite_filter;
    tarn_code code = dml_overwrite(sink->env, sink->table->catalog->catalog, &sink->table->ident,
                                   &options, written->files, written->n_files, &result, err);
    *commit = result.outcome;
    outcome->files_removed = result.files_removed;
    outcome->rows_rewritten = result.rows_kept;
    return code;
}

tarn_code tarn_sink_commit(tarn_sink *sink, tarn_outcome *outcome, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    write_result written;
    commit_outcome commit;
    memset(&written, 0, sizeof written);
    memset(&commit, 0, sizeof commit);
    arena_init(&arena, sink->env);
    api_reset_outcome(outcome);
    if (sink->writer != NULL) {
        code = data_writer_close(sink->writer, &arena, &written, err);
        if (code != TARN_OK) { /* its rows are gone, and the next ones begin afresh */
            data_writer_free(sink->writer);
            sink->writer = NULL;
            goto done;
        }
    }
    if (written.n_files == 0 && sink->mode != TARN_SINK_OVERWRITE) {
        goto done;
    }
    code = sink->mode == TARN_SINK_OVERWRITE
               ? commit_overwrite(sink, &written, outcome, &commit, err)
               : commit_append(sink, &written, &commit, err);
    api_fill_outcome(outcome, &commit);
    if (code == TARN_OK) {
        outcome->rows = written.rows;
        outcome->files_added = written.n_files;
        api_take_version(sink->table, commit.version);
    } else if (commit.kind == TARN_NOT_COMMITTED) {
        write_result_remove(sink->table->catalog->catalog->store, &written);
    }
done:
    arena_release(&arena);
    return code;
}

void tarn_sink_free(tarn_sink *sink) {
    if (sink == NULL) {
        return;
    }
    data_writer_free(sink->writer);
    table_version_release(sink->version);
    arena_release(&sink->arena);
    env_free(sink->env, sink);
}
