/* api/api_change.c - row-level changes of include/tarn/table.h: delete, update, merge. */
#include "api/api_outcome.h"
#include "api/handles.h"
#include "dml/dml.h"

#include <errno.h>

/* "merge-on-read" or "copy-on-write", "serializable" or "snapshot": the second is *out. */
static tarn_code read_choice(const tarn_table *table, const char *property, const char *usual,
                             const char *other, bool *out, tarn_error *err) {
    tarn_str value = properties_str(&table->version->metadata->properties, property, usual);
    *out = str_eq_nocase(value, str_of(other));
    if (!*out && !str_eq_nocase(value, str_of(usual))) {
        return err_set(err, TARN_INVALID, "property %s is \"%.*s\"; it is %s or %s", property,
                       STR_ARG(value), usual, other);
    }
    return TARN_OK;
}

typedef struct change_names {
    const char *mode, *isolation;
} change_names;

static tarn_code read_properties(const tarn_table *table, const change_names *names,
                                 dml_options *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool snapshot;
    TRY(api_check_writable(table, err));
    TRY(read_choice(table, names->mode, "copy-on-write", "merge-on-read", &out->merge_on_read,
                    err));
    TRY(read_choice(table, names->isolation, "serializable", "snapshot", &snapshot, err));
    out->serializable = !snapshot;
    if (out->merge_on_read && table->version->metadata->format_version < 2) {
        return err_set(err, TARN_INVALID,
                       "property %s is merge-on-read, which needs format version 2 or 3; the table "
                       "has 1",
                       names->mode);
    }
done:
    return code;
}

static tarn_code finish_change(tarn_table *table, tarn_code code, const dml_result *result,
                               tarn_outcome *outcome) {
    api_fill_outcome(outcome, &result->outcome);
    if (code == TARN_OK) {
        outcome->rows = result->rows_deleted + result->rows_updated;
        outcome->rows_inserted = result->rows_inserted;
        outcome->rows_rewritten = result->rows_kept;
        outcome->files_removed = result->files_removed;
        outcome->files_added = result->files_added;
        outcome->delete_files_added = result->deletes_added;
        api_take_version(table, result->outcome.version);
    }
    return code;
}

static tarn_code change_rows(tarn_table *table, const char *set, const char *where,
                             const char *branch, tarn_outcome *outcome, tarn_error *err) {
    static const change_names deletes = {"write.delete.mode", "write.delete.isolation-level"};
    static const change_names updates = {"write.update.mode", "write.update.isolation-level"};
    tarn_code code = TARN_OK;
    tarn_arena arena;
    dml_options options;
    dml_result result;
    memset(&options, 0, sizeof options);
    memset(&result, 0, sizeof result);
    arena_init(&arena, table->env);
    api_reset_outcome(outcome);
    TRY(read_properties(table, set != NULL ? &updates : &deletes, &options, err));
    TRY(api_filter(&arena, where, &options.filter, err));
    options.branch = str_of(branch);
    code = set != NULL ? dml_update(table->env, table->catalog->catalog, &table->ident, &options,
                                    str_of(set), &result, err)
                       : dml_delete(table->env, table->catalog->catalog, &table->ident, &options,
                                    &result, err);
    code = finish_change(table, code, &result, outcome);
done:
    arena_release(&arena);
    return api_about_table(table, code, err);
}

tarn_code tarn_table_delete(tarn_table *table, const char *where, const char *branch,
                            tarn_outcome *outcome, tarn_error *err) {
    API_ERROR(err);
    return change_rows(table, NULL, where, branch, outcome, err);
}

tarn_code tarn_table_update(tarn_table *table, const char *set, const char *where,
                            const char *branch, tarn_outcome *outcome, tarn_error *err) {
    API_ERROR(err);
    if (set == NULL) {
        api_reset_outcome(outcome);
        return err_set(err, TARN_INVALID, "an update needs what to set");
    }
    return change_rows(table, set, where, branch, outcome, err);
}

/* ---- merge ---- */

/* The batches of a stream, one behind the other. */
typedef struct source_rows {
    tarn_env *env;
    const tarn_type *type;
    tarn_batch **batches; /* each its own block, so that growing moves pointers only */
    size_t n, cap;
} source_rows;

static tarn_code stream_failed(struct ArrowArrayStream *source, int status, tarn_error *err) {
    const char *text = source->get_last_error(source);
    tarn_code code = status == EINVAL ? TARN_INVALID : status == ENOMEM ? TARN_NOMEM : TARN_IO;
    return err_set(err, code, "the source's rows could not be read: %s",
                   text != NULL ? text : "no reason given");
}

static tarn_code add_batch(source_rows *rows, tarn_batch **out, tarn_error *err) {
    if (rows->n == rows->cap) {
        size_t cap = rows->cap == 0 ? 16 : rows->cap * 2;
        tarn_batch **batches = env_realloc(rows->env, rows->batches, cap * sizeof(tarn_batch *));
        if (batches == NULL) {
            return err_nomem(err);
        }
        rows->batches = batches;
        rows->cap = cap;
    }
    tarn_batch *batch = env_calloc(rows->env, 1, sizeof *batch);
    if (batch == NULL) {
        return err_nomem(err);
    }
    rows->batches[rows->n++] = batch;
    *out = batch;
    return TARN_OK;
}

static tarn_code read_batches(source_rows *rows, struct ArrowArrayStream *source,
                              const struct ArrowSchema *schema, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (;;) {
        struct ArrowArray array;
        tarn_batch *batch = NULL;
        memset(&array, 0, sizeof array);
        TRY(env_check_cancel(rows->env, err));
        int status = source->get_next(source, &array);
        if (status != 0) {
            code = stream_failed(source, status, err);
            goto done;
        }
        if (array.release == NULL) {
            break;
        }
        code = add_batch(rows, &batch, err);
        if (code == TARN_OK) {
            code = batch_import(rows->env, schema, &array, rows->type, batch, err);
        }
        if (code != TARN_OK && array.release != NULL) {
            array.release(&array);
        }
        TRY(code);
    }
done:
    return code;
}

static void free_rows(source_rows *rows) {
    for (size_t i = 0; i < rows->n; i++) {
        batch_release(rows->batches[i]);
        env_free(rows->env, rows->batches[i]);
    }
    env_free(rows->env, rows->batches);
}

/* All of the stream as one batch; no rows where it has none. */
static tarn_code read_source(tarn_env *env, tarn_arena *arena, struct ArrowArrayStream *source,
                             tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    struct ArrowSchema schema;
    source_rows rows;
    memset(&schema, 0, sizeof schema);
    memset(&rows, 0, sizeof rows);
    rows.env = env;
    int status = source->get_schema(source, &schema);
    if (status != 0) {
        return stream_failed(source, status, err);
    }
    TRY(type_from_arrow(arena, &schema, &rows.type, err));
    TRY(read_batches(&rows, source, &schema, err));
    if (rows.n > 0) {
        TRY(batch_concat(env, (const tarn_batch *const *)rows.batches, rows.n, out, err));
    }
    out->type = rows.type;
done:
    free_rows(&rows);
    schema.release(&schema);
    return code;
}

static tarn_merge_options known_merge(const tarn_merge_options *options) {
    tarn_merge_options o = TARN_MERGE_OPTIONS_INIT;
    if (options != NULL) {
        size_t size = options->struct_size;
        memcpy(&o, options, size < sizeof o ? size : sizeof o);
        o.struct_size = sizeof o;
    }
    return o;
}

tarn_code tarn_table_merge(tarn_table *table, struct ArrowArrayStream *source,
                           const tarn_merge_options *options, tarn_outcome *outcome,
                           tarn_error *err) {
    static const change_names merges = {"write.merge.mode", "write.merge.isolation-level"};
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_merge_options known = known_merge(options);
    tarn_arena arena;
    tarn_batch rows;
    dml_options dml;
    dml_merge_options merge;
    dml_result result;
    memset(&rows, 0, sizeof rows);
    memset(&dml, 0, sizeof dml);
    memset(&merge, 0, sizeof merge);
    memset(&result, 0, sizeof result);
    arena_init(&arena, table->env);
    api_reset_outcome(outcome);
    TRY(read_properties(table, &merges, &dml, err));
    TRY(api_names(&arena, known.key, &merge.key, &merge.n_key, err));
    TRY(read_source(table->env, &arena, source, &rows, err));
    dml.branch = str_of(known.branch);
    merge.source = &rows;
    merge.matched = known.matched == TARN_MATCHED_UPDATE   ? DML_MATCHED_UPDATE
                    : known.matched == TARN_MATCHED_DELETE ? DML_MATCHED_DELETE
                                                           : DML_MATCHED_IGNORE;
    merge.insert = !known.ignore_not_matched;
    code =
        dml_merge(table->env, table->catalog->catalog, &table->ident, &dml, &merge, &result, err);
    code = finish_change(table, code, &result, outcome);
done:
    batch_release(&rows);
    source->release(source);
    arena_release(&arena);
    return api_about_table(table, code, err);
}
