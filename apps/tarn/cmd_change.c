/* apps/tarn/cmd_change.c - delete, update and merge: rows of a table change. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "commands.h"

static void print_id(const tarn_outcome *o, char out[32]) {
    (void)snprintf(out, 32, "null");
    if (o->state == TARN_COMMIT_DONE) {
        (void)snprintf(out, 32, "%" PRId64, o->snapshot_id);
    }
}

static const char *nothing(const tarn_outcome *o) {
    return o->state == TARN_COMMIT_NONE ? "; nothing to commit" : "";
}

/* ---- delete ---- */

static struct { const char *where, *branch; } delete_options;

static const opt_spec DELETE_SPECS[] = {
    {"where", 'w', OPT_TEXT, &delete_options.where, "FILTER",
     "which rows go (required; \"true\" for all)"},
    {"branch", 0, OPT_TEXT, &delete_options.branch, "NAME", "on this branch instead of main"},
};

const opt_command delete_command = {
    "delete",
    "TABLE --where FILTER",
    "remove rows: whole files by metadata, else by rewriting files or marking rows",
    "One commit; the rows stay readable in earlier snapshots. Files that match in part are "
    "rewritten (copy-on-write), or their rows are marked as deleted where the table's property "
    "write.delete.mode is merge-on-read: by position delete files in format version 2, by deletion "
    "vectors in 3.\n\nExamples:\n  tarn delete app.events --where \"at < '2025-01-01'\"\n"
    "  tarn set app.events write.delete.mode=merge-on-read",
    1,
    1,
    DELETE_SPECS,
    sizeof DELETE_SPECS / sizeof DELETE_SPECS[0]};

static void print_delete(const tarn_outcome *o) {
    char id[32];
    print_id(o, id);
    if (the_app.json) {
        printf("{\"snapshot-id\":%s,\"rows-deleted\":%" PRId64 ",\"rows-rewritten\":%" PRId64
               ",\"files-removed\":%d,\"delete-files-added\":%d}\n",
               id, o->rows, o->rows_rewritten, o->files_removed, o->delete_files_added);
    } else if (!the_app.quiet) {
        fprintf(stderr, "%" PRId64 " row%s deleted, %" PRId64 " rewritten, %d file%s removed%s\n",
                o->rows, app_plural(o->rows), o->rows_rewritten, o->files_removed,
                app_plural(o->files_removed), nothing(o));
    }
}

int cmd_delete(int argc, char **argv) {
    int n;
    int status;
    tarn_table *table = NULL;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    const char **args = command_begin(&delete_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    if (delete_options.where == NULL) {
        return app_usage("delete needs --where FILTER");
    }
    tarn_code code = app_table(args[0], &table, NULL);
    if (code == TARN_OK) {
        code = tarn_table_delete(table, delete_options.where, delete_options.branch, &outcome,
                                 &the_app.err);
    }
    tarn_table_free(table);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    print_delete(&outcome);
    return 0;
}

/* ---- update ---- */

static struct { const char *set, *where, *branch; } update_options;

static const opt_spec UPDATE_SPECS[] = {
    {"set", 's', OPT_TEXT, &update_options.set, "ASSIGNMENTS",
     "\"column = value, ...\" (required): literals, columns as they were,\n+ - * / of numbers, || "
     "of "
     "texts, null"},
    {"where", 'w', OPT_TEXT, &update_options.where, "FILTER",
     "which rows change (required; \"true\" for all)"},
    {"branch", 0, OPT_TEXT, &update_options.branch, "NAME", "on this branch instead of main"},
};

const opt_command update_command = {
    "update",
    "TABLE --set ASSIGNMENTS --where FILTER",
    "set columns of the rows for which a filter is true",
    "One commit. Files that hold such rows are rewritten (copy-on-write), or the rows are marked "
    "as deleted and written anew where the table's property write.update.mode is merge-on-read. A "
    "value that a column cannot hold ends it, and nothing is changed.\n\nExamples:\n"
    "  tarn update app.users --set \"city = 'Bern'\" --where \"id = 7\"\n"
    "  tarn update app.items --set \"price = price * 1.1, note = null\" --where \"kind = 'a'\"",
    1,
    1,
    UPDATE_SPECS,
    sizeof UPDATE_SPECS / sizeof UPDATE_SPECS[0]};

static void print_update(const tarn_outcome *o) {
    char id[32];
    print_id(o, id);
    if (the_app.json) {
        printf("{\"snapshot-id\":%s,\"rows-updated\":%" PRId64 ",\"rows-rewritten\":%" PRId64
               ",\"files-added\":%d,\"files-removed\":%d,\"delete-files-added\":%d}\n",
               id, o->rows, o->rows_rewritten, o->files_added, o->files_removed,
               o->delete_files_added);
    } else if (!the_app.quiet) {
        fprintf(stderr, "%" PRId64 " row%s updated, %" PRId64 " rewritten as they were%s\n",
                o->rows, app_plural(o->rows), o->rows_rewritten, nothing(o));
    }
}

int cmd_update(int argc, char **argv) {
    int n;
    int status;
    tarn_table *table = NULL;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    const char **args = command_begin(&update_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    if (update_options.set == NULL || update_options.where == NULL) {
        return app_usage("update needs --set ASSIGNMENTS and --where FILTER");
    }
    tarn_code code = app_table(args[0], &table, NULL);
    if (code == TARN_OK) {
        code = tarn_table_update(table, update_options.set, update_options.where,
                                 update_options.branch, &outcome, &the_app.err);
    }
    tarn_table_free(table);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    print_update(&outcome);
    return 0;
}

/* ---- merge ---- */

static struct { const char *key, *matched, *not_matched, *branch, *format; } merge_options;

static const opt_spec MERGE_SPECS[] = {
    {"key", 'k', OPT_TEXT, &merge_options.key, "NAMES",
     "comma separated (default: the table's identifier fields)"},
    {"when-matched", 0, OPT_TEXT, &merge_options.matched, "WHAT",
     "update (default), delete or ignore rows whose key is in the file"},
    {"when-not-matched", 0, OPT_TEXT, &merge_options.not_matched, "WHAT",
     "insert (default) or ignore rows of the file whose key the table lacks"},
    {"format", 'f', OPT_TEXT, &merge_options.format, "NAME",
     "parquet, avro, ndjson or csv (default: by name, then by content)"},
    {"branch", 0, OPT_TEXT, &merge_options.branch, "NAME", "on this branch instead of main"},
};

const opt_command merge_command = {
    "merge",
    "TABLE FILE [--key NAMES]",
    "update, delete and add rows from a file, by key",
    "One commit. Columns are matched by name; those that the file lacks stay as they are, and are "
    "null or their default in new rows. A key that is twice in the file, or null, ends it. The "
    "file "
    "is held in memory. Files of the table that hold matched rows are rewritten (copy-on-write), "
    "or "
    "the rows are marked as deleted where the property write.merge.mode is "
    "merge-on-read.\n\nExamples:\n"
    "  tarn merge app.users new.csv --key id\n"
    "  tarn merge app.users gone.parquet --key id --when-matched delete --when-not-matched ignore",
    2,
    2,
    MERGE_SPECS,
    sizeof MERGE_SPECS / sizeof MERGE_SPECS[0]};

/* A file's rows as a stream; it lives until the stream is released. */
typedef struct file_stream {
    tarn_file_reader *reader;
    tarn_error err;
} file_stream;

static int stream_status(tarn_code code) {
    return code == TARN_OK                                ? 0
           : code == TARN_INVALID || code == TARN_CORRUPT ? EINVAL
           : code == TARN_NOMEM                           ? ENOMEM
                                                          : EIO;
}

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    file_stream *s = stream->private_data;
    return stream_status(tarn_file_schema(s->reader, out, &s->err));
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    file_stream *s = stream->private_data;
    return stream_status(tarn_file_next(s->reader, out, &s->err));
}

static const char *stream_error(struct ArrowArrayStream *stream) {
    file_stream *s = stream->private_data;
    return s->err.message;
}

static void stream_release(struct ArrowArrayStream *stream) {
    file_stream *s = stream->private_data;
    tarn_file_close(s->reader);
    stream->release = NULL;
}

static const struct ArrowSchema *child_named(const struct ArrowSchema *schema, const char *name) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (strcmp(schema->children[i]->name, name) == 0) {
            return schema->children[i];
        }
    }
    return NULL;
}

/* Text has no types of its own: the columns that it has are read as the table's. */
static tarn_code reopen_text(const char *path, tarn_file_options *o, const struct ArrowSchema *seen,
                             const struct ArrowSchema *table, tarn_file_reader **reader) {
    struct ArrowSchema wanted = *table;
    tarn_code code = TARN_OK;
    wanted.n_children = 0;
    wanted.children = calloc((size_t)seen->n_children + 1, sizeof *wanted.children);
    if (wanted.children == NULL) {
        return app_error(TARN_NOMEM, "memory could not be had");
    }
    for (int64_t i = 0; i < seen->n_children && code == TARN_OK; i++) {
        const struct ArrowSchema *child = child_named(table, seen->children[i]->name);
        if (child == NULL) {
            code = app_error(TARN_INVALID, "%s has column %s, which the table lacks", path,
                             seen->children[i]->name);
        } else {
            wanted.children[wanted.n_children++] = (struct ArrowSchema *)(uintptr_t)child;
        }
    }
    if (code == TARN_OK) {
        tarn_file_close(*reader);
        *reader = NULL;
        o->schema = &wanted;
        code = tarn_file_open(the_app.env, path, o, reader, &the_app.err);
    }
    free(wanted.children);
    return code;
}

static tarn_code open_source(tarn_table *table, const char *path, tarn_file_reader **reader) {
    tarn_file_options o = TARN_FILE_OPTIONS_INIT;
    struct ArrowSchema seen;
    struct ArrowSchema columns;
    o.format = merge_options.format;
    tarn_code code = tarn_file_open(the_app.env, path, &o, reader, &the_app.err);
    if (code != TARN_OK) {
        return code;
    }
    const char *format = tarn_file_reader_format(*reader);
    if (strcmp(format, "ndjson") != 0 && strcmp(format, "csv") != 0) {
        return TARN_OK;
    }
    code = tarn_file_schema(*reader, &seen, &the_app.err);
    if (code != TARN_OK) {
        return code;
    }
    code = tarn_table_schema_arrow(table, &columns, &the_app.err);
    if (code == TARN_OK) {
        /* A file without rows tells no columns, and changes nothing. */
        code = reopen_text(path, &o, seen.n_children > 0 ? &seen : &columns, &columns, reader);
        columns.release(&columns);
    }
    seen.release(&seen);
    return code;
}

static tarn_code read_choices(tarn_merge_options *o) {
    const char *matched = merge_options.matched != NULL ? merge_options.matched : "update";
    const char *rest = merge_options.not_matched != NULL ? merge_options.not_matched : "insert";
    o->key = merge_options.key;
    o->branch = merge_options.branch;
    if (strcmp(matched, "delete") == 0) {
        o->matched = TARN_MATCHED_DELETE;
    } else if (strcmp(matched, "ignore") == 0) {
        o->matched = TARN_MATCHED_IGNORE;
    } else if (strcmp(matched, "update") != 0) {
        return app_error(TARN_INVALID, "--when-matched is update, delete or ignore, not \"%s\"",
                         matched);
    }
    o->ignore_not_matched = strcmp(rest, "ignore") == 0;
    if (!o->ignore_not_matched && strcmp(rest, "insert") != 0) {
        return app_error(TARN_INVALID, "--when-not-matched is insert or ignore, not \"%s\"", rest);
    }
    return TARN_OK;
}

static tarn_code merge_file(const char *name, const char *path, tarn_outcome *outcome) {
    tarn_table *table = NULL;
    tarn_merge_options o = TARN_MERGE_OPTIONS_INIT;
    file_stream source = {NULL, TARN_ERROR_INIT};
    struct ArrowArrayStream stream = {stream_schema, stream_next, stream_error, stream_release,
                                      &source};
    tarn_code code = read_choices(&o);
    if (code == TARN_OK && strcmp(path, "-") == 0) {
        code = app_error(TARN_INVALID, "merge reads a file, which it looks into twice, not -");
    }
    if (code == TARN_OK) {
        code = app_table(name, &table, NULL);
    }
    if (code == TARN_OK) {
        code = open_source(table, path, &source.reader);
    }
    if (code == TARN_OK) {
        code = tarn_table_merge(table, &stream, &o, outcome, &the_app.err);
    } else {
        tarn_file_close(source.reader);
    }
    tarn_table_free(table);
    return code;
}

static void print_merge(const tarn_outcome *o) {
    char id[32];
    print_id(o, id);
    if (the_app.json) {
        printf("{\"snapshot-id\":%s,\"rows-changed\":%" PRId64 ",\"rows-inserted\":%" PRId64
               ",\"rows-rewritten\":%" PRId64
               ",\"files-added\":%d,\"files-removed\":%d,\"delete-files-added\":%d}\n",
               id, o->rows, o->rows_inserted, o->rows_rewritten, o->files_added, o->files_removed,
               o->delete_files_added);
    } else if (!the_app.quiet) {
        const char *matched = merge_options.matched;
        bool gone = matched != NULL && strcmp(matched, "delete") == 0;
        fprintf(stderr, "%" PRId64 " row%s %s, %" PRId64 " added%s\n", o->rows, app_plural(o->rows),
                gone ? "deleted" : "changed", o->rows_inserted, nothing(o));
    }
}

int cmd_merge(int argc, char **argv) {
    int n;
    int status;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    const char **args = command_begin(&merge_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    tarn_code code = merge_file(args[0], args[1], &outcome);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    print_merge(&outcome);
    return 0;
}
