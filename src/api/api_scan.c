/* api/api_scan.c - include/tarn/scan.h: a scan or a metadata table as an Arrow stream. */
#include <errno.h>
#include <stdio.h>

#include "api/handles.h"
#include "read/changes.h"
#include "read/scan.h"

typedef struct stream_state {
    tarn_env *env;
    tarn_catalog_handle *catalog;
    tarn_table_version *version;
    tarn_arena arena;
    scan_options options;
    tarn_plan *plan; /* either these two */
    tarn_scan *scan;
    metadata_table *meta; /* or this */
    changes *changed;     /* or this */
    tarn_scan_stats *stats;
    tarn_error err;
    char error_text[sizeof(((tarn_error *)NULL)->message) + sizeof(((tarn_error *)NULL)->detail) +
                    4];
    bool ended;
} stream_state;

static void free_state(stream_state *s) {
    if (s == NULL) {
        return;
    }
    tarn_env *env = s->env;
    scan_close(s->scan);
    plan_free(s->plan);
    metadata_table_close(s->meta);
    changes_close(s->changed);
    table_version_release(s->version);
    handle_release(s->catalog);
    arena_release(&s->arena);
    env_free(env, s);
}

static void fill_stats(stream_state *s) {
    if (s->stats == NULL || s->scan == NULL) {
        return;
    }
    const scan_counters *c = scan_counters_of(s->scan);
    s->stats->manifests = c->manifests;
    s->stats->manifests_skipped = c->manifests_skipped;
    s->stats->files = c->files;
    s->stats->files_skipped = c->files_skipped;
    s->stats->row_groups = c->row_groups;
    s->stats->row_groups_skipped = c->row_groups_skipped;
    s->stats->pages_skipped = c->pages_skipped;
    s->stats->rows_read = c->rows_read;
    s->stats->rows_matched = c->rows_matched;
    s->stats->bytes_read = c->bytes_read;
    if (s->stats->struct_size >= sizeof *s->stats) {
        s->stats->snapshot_id =
            s->plan->snapshot != NULL ? s->plan->snapshot->snapshot_id : TARN_NO_SNAPSHOT;
    }
}

/* Arrow's streams speak errno. */
static int errno_of(tarn_code code) {
    switch (code) {
    case TARN_OK:
        return 0;
    case TARN_NOMEM:
        return ENOMEM;
    case TARN_INVALID:
        return EINVAL;
    case TARN_CORRUPT:
        return EBADMSG;
    case TARN_LIMIT:
        return EOVERFLOW;
    case TARN_INTERNAL:
        return ENOTRECOVERABLE;
    case TARN_NOT_FOUND:
        return ENOENT;
    case TARN_CANCELLED:
        return ECANCELED;
    case TARN_DENIED:
        return EACCES;
    case TARN_UNSUPPORTED:
        return ENOTSUP;
    case TARN_CONFLICT:
    case TARN_COMMIT_UNKNOWN:
    case TARN_IO:
        break;
    }
    return EIO;
}

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    stream_state *s = stream->private_data;
    const tarn_type *type = s->meta != NULL      ? metadata_table_type(s->meta)
                            : s->changed != NULL ? changes_type(s->changed)
                                                 : s->plan->output;
    return errno_of(type_to_arrow(s->env, type, out, &s->err));
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    stream_state *s = stream->private_data;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    memset(out, 0, sizeof *out);
    if (s->ended) {
        return 0;
    }
    tarn_code code = s->meta != NULL      ? metadata_table_next(s->meta, &batch, &s->err)
                     : s->changed != NULL ? changes_next(s->changed, &batch, &s->err)
                                          : scan_next(s->scan, &batch, &s->err);
    fill_stats(s);
    if (code != TARN_OK) {
        return errno_of(code);
    }
    s->ended = batch_rows(&batch) == 0;
    if (s->ended) {
        batch_release(&batch);
    } else {
        *out = batch.array;
    }
    return 0;
}

static const char *stream_error(struct ArrowArrayStream *stream) {
    stream_state *s = stream->private_data;
    if (s->err.code == TARN_OK) {
        return NULL;
    }
    bool more = s->err.detail[0] != '\0';
    snprintf(s->error_text, sizeof s->error_text, "%s%s%s%s", s->err.message, more ? " (" : "",
             s->err.detail, more ? ")" : "");
    return s->error_text;
}

static void stream_release(struct ArrowArrayStream *stream) {
    free_state(stream->private_data);
    stream->private_data = NULL;
    stream->release = NULL;
}

/* Which snapshot, and whether with its schema of then: a branch is read as the table is now, a tag
 * or an old snapshot as it was. */
static tarn_code choose_snapshot(const tarn_metadata *m, const tarn_scan_options *o,
                                 scan_options *out, tarn_error *err) {
    int chosen = (o->snapshot_id >= 0) + (o->as_of_ms >= 0) + (o->ref != NULL);
    out->snapshot_id = TARN_NO_SNAPSHOT;
    if (chosen > 1) {
        return err_set(err, TARN_INVALID,
                       "a snapshot can be chosen by id, by time or by ref, one of them");
    }
    if (o->snapshot_id >= 0) {
        out->snapshot_id = o->snapshot_id;
        out->snapshot_schema = true;
    } else if (o->as_of_ms >= 0) {
        const tarn_snapshot *s = metadata_snapshot_at(m, o->as_of_ms);
        if (s == NULL) {
            return err_set(err, TARN_NOT_FOUND, "the table had no snapshot at %lld ms",
                           (long long)o->as_of_ms);
        }
        out->snapshot_id = s->snapshot_id;
        out->snapshot_schema = true;
    } else if (o->ref != NULL) {
        const tarn_ref *ref = metadata_ref(m, str_of(o->ref));
        if (ref == NULL && !str_is(str_of(o->ref), TARN_MAIN_BRANCH)) {
            return err_set(err, TARN_NOT_FOUND, "there is no branch or tag %s", o->ref);
        }
        out->snapshot_id = ref != NULL ? ref->snapshot_id : TARN_NO_SNAPSHOT;
        out->snapshot_schema = ref != NULL && ref->is_tag;
    }
    return TARN_OK;
}

static tarn_code fill_options(stream_state *s, const tarn_scan_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    s->options.metadata = s->version->metadata;
    s->options.case_insensitive = o->case_insensitive;
    s->options.limit = o->limit;
    s->options.batch_rows = o->batch_rows;
    s->options.no_prune = o->no_prune;
    s->options.appends = o->from_snapshot_id >= 0;
    s->options.from_snapshot_id = o->from_snapshot_id > 0 ? o->from_snapshot_id : TARN_NO_SNAPSHOT;
    if (s->options.appends && o->metadata_table != NULL) {
        return err_set(err, TARN_INVALID, "a metadata table has no appended rows");
    }
    TRY(choose_snapshot(s->options.metadata, o, &s->options, err));
    TRY(api_names(&s->arena, o->columns, &s->options.columns, &s->options.n_columns, err));
    TRY(api_filter(&s->arena, o->where, &s->options.filter, err));
done:
    return code;
}

static tarn_code open_reading(stream_state *s, const tarn_scan_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_store *store = s->catalog->catalog->store;
    if (o->metadata_table != NULL) {
        return metadata_table_open(s->env, store, s->options.metadata,
                                   s->version->metadata_location, str_of(o->metadata_table),
                                   &s->options, &s->meta, err);
    }
    TRY(plan_new(s->env, store, &s->options, &s->plan, err));
    TRY(scan_open(s->plan, &s->scan, err));
done:
    return code;
}

static stream_state *new_state(tarn_table *table) {
    stream_state *s = env_calloc(table->env, 1, sizeof *s);
    if (s != NULL) {
        s->env = table->env;
        s->catalog = handle_keep(table->catalog);
        s->version = table_version_keep(table->version);
        s->err = (tarn_error)TARN_ERROR_INIT;
        arena_init(&s->arena, table->env);
    }
    return s;
}

static void give_stream(stream_state *s, struct ArrowArrayStream *out) {
    memset(out, 0, sizeof *out);
    out->get_schema = stream_schema;
    out->get_next = stream_next;
    out->get_last_error = stream_error;
    out->release = stream_release;
    out->private_data = s;
}

tarn_code tarn_table_scan(tarn_table *table, const tarn_scan_options *options,
                          struct ArrowArrayStream *out, tarn_scan_stats *stats, tarn_error *err) {
    API_ERROR(err);
    tarn_scan_options known = TARN_SCAN_OPTIONS_INIT;
    const tarn_scan_options *o = &known;
    tarn_code code = TARN_OK;
    if (options != NULL) { /* of an older caller it may be shorter */
        const size_t size = options->struct_size;
        memcpy(&known, options, size < sizeof known ? size : sizeof known);
    }
    stream_state *s = new_state(table);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->stats = stats;
    TRY(fill_options(s, o, err));
    TRY(open_reading(s, o, err));
    fill_stats(s);
    give_stream(s, out);
    s = NULL;
done:
    free_state(s);
    return api_about_table(table, code, err);
}

static tarn_code open_changes(stream_state *s, const tarn_changes_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_metadata *m = s->version->metadata;
    changes_options options;
    tarn_scan_options where = TARN_SCAN_OPTIONS_INIT;
    memset(&options, 0, sizeof options);
    where.ref = o->ref;
    where.snapshot_id = o->to_snapshot_id;
    TRY(choose_snapshot(m, &where, &s->options, err));
    options.metadata = m;
    options.from_snapshot_id = o->from_snapshot_id > 0 ? o->from_snapshot_id : TARN_NO_SNAPSHOT;
    options.to_snapshot_id = s->options.snapshot_id;
    options.net = o->net;
    options.batch_rows = o->batch_rows;
    options.limit = o->limit;
    TRY(api_names(&s->arena, o->columns, &options.columns, &options.n_columns, err));
    TRY(api_filter(&s->arena, o->where, &options.filter, err));
    if (o->key != NULL) {
        TRY(api_names(&s->arena, o->key, &options.key, &options.n_key, err));
    }
    code = changes_open(s->env, s->catalog->catalog->store, &options, &s->changed, err);
done:
    return code;
}

tarn_code tarn_table_changes(tarn_table *table, const tarn_changes_options *options,
                             struct ArrowArrayStream *out, tarn_error *err) {
    API_ERROR(err);
    tarn_changes_options o = TARN_CHANGES_OPTIONS_INIT;
    tarn_code code = TARN_OK;
    if (options != NULL) {
        const size_t size = options->struct_size;
        memcpy(&o, options, size < sizeof o ? size : sizeof o);
    }
    stream_state *s = new_state(table);
    if (s == NULL) {
        return err_nomem(err);
    }
    TRY(open_changes(s, &o, err));
    give_stream(s, out);
    s = NULL;
done:
    free_state(s);
    return api_about_table(table, code, err);
}
