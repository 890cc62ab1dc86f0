/* read/file_scan.c - one data file's rows as a wanted type: open, map columns by id, prune inside
 * the file, decode, fill in reserved columns, filter, leave out deleted rows. The batches of the
 * format's reader borrow its types; what leaves here has types of this room only. */
#include "format/avro/avro.h"
#include "format/parquet/parquet.h"
#include "read/read_int.h"
#include "read/row_deletes.h"

#include <stdatomic.h>

/* The store's source, with what was read of it counted. */
typedef struct counted_source {
    io_source base;
    io_source *inner;
    atomic_int_fast64_t bytes;
} counted_source;

struct file_scan {
    tarn_env *env;
    tarn_arena arena;
    counted_source opened;
    io_source *source; /* &opened.base until the format or close has closed it */
    file_scan_options options;
    tarn_str path;
    tarn_file file;             /* parts are the caller's */
    bool reserved;              /* read_type has reserved columns */
    const tarn_type *read_type; /* wanted, and what the filter and row deletes need */
    tarn_projection *from_file; /* file -> read_type */
    tarn_projection *to_wanted; /* read_type -> wanted; NULL: the same */
    parquet_file *parquet;
    parquet_scan *parquet_scan;
    avro_file *avro;
    avro_scan *avro_scan;
    uint8_t *selection;
    size_t selection_cap;
    key_rows keys;        /* of the present batch */
    scan_counters pruned; /* counted at open, handed out with the first batch */
    bool counted;
};

static tarn_code counted_read_at(io_source *source, int64_t offset, void *dst, size_t len,
                                 tarn_error *err) {
    counted_source *c = (counted_source *)source;
    (void)atomic_fetch_add_explicit(&c->bytes, (int64_t)len, memory_order_relaxed);
    return c->inner->read_at(c->inner, offset, dst, len, err);
}

static const uint8_t *counted_peek(io_source *source, int64_t offset, size_t len) {
    counted_source *c = (counted_source *)source;
    const uint8_t *bytes = c->inner->peek(c->inner, offset, len);
    if (bytes != NULL) {
        (void)atomic_fetch_add_explicit(&c->bytes, (int64_t)len, memory_order_relaxed);
    }
    return bytes;
}

static void counted_close(io_source *source) {
    io_source *inner = ((counted_source *)source)->inner;
    inner->close(inner);
}

static tarn_code open_source(file_scan *s, tarn_store *store, const tarn_file *file,
                             tarn_error *err) {
    counted_source *c = &s->opened;
    tarn_code code = store_open(store, file->path, file->size_bytes, &c->inner, err);
    if (code == TARN_OK) {
        c->base = *c->inner;
        c->base.read_at = counted_read_at;
        c->base.peek = c->inner->peek != NULL ? counted_peek : NULL;
        c->base.close = counted_close;
        s->source = &c->base;
    }
    return code;
}

/* Identity partition values stand in for columns that an imported file does not have (spec, "Column
 * Projection"). */
static tarn_code partition_constants(file_scan *s, const tarn_file *file, const tarn_spec *spec,
                                     project_options *out, tarn_error *err) {
    int32_t n = spec != NULL ? spec->n_fields : 0;
    project_constant *constants = ARENA_ARRAY(&s->arena, project_constant, (size_t)n + 1);
    size_t count = 0;
    if (constants == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n && i < file->n_partition; i++) {
        const tarn_field *field = type_find_id(s->read_type, spec->fields[i].source_id);
        if (spec->fields[i].transform.kind == TRANSFORM_IDENTITY && field != NULL &&
            file->partition[i].type != NULL) {
            constants[count].field_id = field->id;
            constants[count].value = file->partition[i];
            count++;
        }
    }
    out->constants = constants;
    out->n_constants = count;
    return TARN_OK;
}

static tarn_code make_projections(file_scan *s, const tarn_type *file_type, const tarn_file *file,
                                  const tarn_spec *spec, tarn_error *err) {
    tarn_code code = TARN_OK;
    project_options options;
    project_options plain;
    memset(&options, 0, sizeof options);
    memset(&plain, 0, sizeof plain);
    options.name_mapping = s->options.name_mapping;
    options.by_name = s->options.by_name;
    options.file = arena_str(&s->arena, s->path).data;
    plain.file = options.file;
    plain.whole = true;
    if (options.file == NULL) {
        return err_nomem(err);
    }
    TRY(partition_constants(s, file, spec, &options, err));
    TRY(project_plan(&s->arena, file_type, s->read_type, &options, &s->from_file, err));
    if (s->read_type != s->options.wanted) {
        TRY(project_plan(&s->arena, s->read_type, s->options.wanted, &plain, &s->to_wanted, err));
    }
done:
    return code;
}

static tarn_code open_parquet(file_scan *s, const tarn_file *file, const tarn_spec *spec,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    parquet_scan_options scan;
    parquet_pruned pruned;
    memset(&scan, 0, sizeof scan);
    memset(&pruned, 0, sizeof pruned);
    TRY(parquet_open(s->env, s->source, NULL, &s->parquet, err));
    TRY(make_projections(s, parquet_file_schema(s->parquet)->root, file, spec, err));
    int32_t n = parquet_group_count(s->parquet);
    uint8_t *groups = ARENA_ARRAY(&s->arena, uint8_t, (size_t)n + 1);
    if (groups == NULL) {
        code = err_nomem(err);
        goto done;
    }
    memset(groups, 1, (size_t)n);
    if (s->options.end > 0) {
        memset(groups, 0, (size_t)n);
        parquet_groups_within(s->parquet, s->options.start, s->options.end, groups);
    }
    for (int32_t i = 0; i < n; i++) {
        s->pruned.row_groups += groups[i];
    }
    if (s->options.filter != NULL && !s->options.no_prune && !s->options.invert) {
        TRY(parquet_prune(s->parquet, s->options.filter, s->from_file, &s->arena, groups, &pruned,
                          err));
        s->pruned.row_groups_skipped = s->pruned.row_groups - pruned.groups_kept;
        s->pruned.pages_skipped = pruned.pages_skipped;
    }
    scan.groups = groups;
    scan.selected = project_selected(s->from_file);
    scan.ranges = pruned.ranges;
    scan.n_ranges = pruned.n_ranges;
    scan.batch_rows = s->options.batch_rows;
    scan.parallel = s->options.parallel;
    scan.reject = s->options.reject;
    scan.reject_ctx = s->options.reject_ctx;
    TRY(parquet_scan_open(s->parquet, &scan, &s->parquet_scan, err));
done:
    return code;
}

static bool takes_positions(const row_deletes *d) {
    return d != NULL && d->positions != NULL;
}

static tarn_code open_avro(file_scan *s, const tarn_file *file, const tarn_spec *spec,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    avro_scan_options scan;
    memset(&scan, 0, sizeof scan);
    TRY(avro_open(s->env, s->source, &s->avro, err));
    s->source = NULL; /* the file's now */
    TRY(make_projections(s, avro_file_type(s->avro), file, spec, err));
    scan.selected = project_selected(s->from_file);
    scan.start = s->options.start;
    scan.end = s->options.end;
    scan.batch_rows = s->options.batch_rows;
    scan.numbered = reserved_any(s->read_type, true) || takes_positions(s->options.deletes) ||
                    takes_positions(s->options.only);
    TRY(avro_scan_open(s->avro, &scan, &s->avro_scan, err));
done:
    return code;
}

static tarn_code open_format(file_scan *s, const tarn_file *file, const tarn_spec *spec,
                             tarn_error *err) {
    switch (file->format) {
    case TARN_FORMAT_PARQUET:
        return open_parquet(s, file, spec, err);
    case TARN_FORMAT_AVRO:
        return open_avro(s, file, spec, err);
    case TARN_FORMAT_ORC:
        return err_set(err, TARN_UNSUPPORTED, "file %.*s is ORC, which this version does not read",
                       STR_ARG(file->path));
    case TARN_FORMAT_PUFFIN:
    case TARN_FORMAT_OTHER:
        break;
    }
    return err_set(err, TARN_UNSUPPORTED, "file %.*s is in no format of data files",
                   STR_ARG(file->path));
}

static tarn_code name_file(const tarn_file *file, tarn_code code, tarn_error *err) {
    return err_add(err, code, "%s file %.*s",
                   file->content == TARN_CONTENT_DATA ? "data" : "delete", STR_ARG(file->path));
}

tarn_code file_scan_open(tarn_env *env, tarn_store *store, const tarn_file *file,
                         const tarn_spec *spec, const file_scan_options *options, file_scan **out,
                         tarn_error *err) {
    tarn_code code = TARN_OK;
    file_scan *s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->env = env;
    s->options = *options;
    s->path = file->path;
    s->file = *file;
    arena_init(&s->arena, env);
    key_rows_init(&s->keys, env);
    /* the filter may name columns of the table that wanted lacks: its fields carry their own types
     */
    const tarn_type *root = options->root != NULL ? options->root : options->wanted;
    TRY(columns_with_filter(&s->arena, root, options->wanted, options->filter, &s->read_type, err));
    if (options->deletes != NULL) {
        TRY(columns_merge(&s->arena, s->read_type, options->deletes->key_type, &s->read_type, err));
    }
    if (options->only != NULL) {
        TRY(columns_merge(&s->arena, s->read_type, options->only->key_type, &s->read_type, err));
    }
    s->reserved = reserved_any(s->read_type, false);
    TRY(open_source(s, store, file, err));
    TRY(open_format(s, file, spec, err));
    *out = s;
    s = NULL;
done:
    if (s != NULL) {
        file_scan_close(s);
    }
    return code == TARN_OK ? code : name_file(file, code, err);
}

/* first_row: the number of the batch's first row in the file. */
static tarn_code next_of_format(file_scan *s, tarn_batch *out, int64_t *first_row,
                                tarn_error *err) {
    if (s->parquet_scan != NULL) {
        return parquet_scan_next(s->parquet_scan, out, first_row, err);
    }
    tarn_code code = avro_scan_next(s->avro_scan, out, err);
    *first_row = avro_scan_first_row(s->avro_scan);
    return code;
}

static tarn_code reserve_selection(file_scan *s, int64_t rows, tarn_error *err) {
    size_t bytes = bit_bytes(rows) + 8;
    if (bytes > s->selection_cap) {
        uint8_t *selection = env_realloc(s->env, s->selection, bytes);
        if (selection == NULL) {
            return err_nomem(err);
        }
        s->selection = selection;
        s->selection_cap = bytes;
    }
    return TARN_OK;
}

/* Of the selected rows, those that the deletes of `only` take. */
static tarn_code keep_taken(file_scan *s, const tarn_batch *batch, int64_t first_row, int64_t *kept,
                            tarn_error *err) {
    const size_t bytes = bit_bytes(batch_rows(batch));
    int64_t left = *kept;
    uint8_t *others = env_alloc(s->env, bytes + 8);
    if (others == NULL) {
        return err_nomem(err);
    }
    memcpy(others, s->selection, bytes);
    tarn_code code = row_deletes_apply(s->options.only, batch, first_row,
                                       s->options.sequence_number, &s->keys, others, &left, err);
    for (size_t i = 0; i < bytes && code == TARN_OK; i++) {
        s->selection[i] = (uint8_t)(s->selection[i] & ~others[i]);
    }
    *kept -= left;
    env_free(s->env, others);
    return code;
}

/* Which rows of batch (of read_type) are kept; selection is only made where some may not be. */
static tarn_code choose_rows(file_scan *s, const tarn_batch *batch, int64_t first_row,
                             int64_t *kept, tarn_error *err) {
    tarn_code code = TARN_OK;
    const int64_t rows = batch_rows(batch);
    *kept = rows;
    if (s->options.filter == NULL && s->options.deletes == NULL && s->options.only == NULL) {
        return TARN_OK;
    }
    TRY(reserve_selection(s, rows, err));
    if (s->options.filter != NULL) {
        TRY(expr_eval(s->env, s->options.filter, batch, s->selection, kept, err));
        if (s->options.invert) {
            for (size_t i = 0; i < bit_bytes(rows); i++) {
                s->selection[i] = (uint8_t)~s->selection[i];
            }
            *kept = rows - *kept;
        }
    } else {
        bit_fill(s->selection, 0, rows, true);
    }
    if (s->options.deletes != NULL) {
        TRY(row_deletes_apply(s->options.deletes, batch, first_row, s->options.sequence_number,
                              &s->keys, s->selection, kept, err));
    }
    if (s->options.only != NULL && *kept > 0) {
        TRY(keep_taken(s, batch, first_row, kept, err));
    }
done:
    return code;
}

/* Rows of batch (of read_type) that are kept, as wanted. */
static tarn_code filter_batch(file_scan *s, tarn_batch *batch, int64_t first_row, tarn_batch *out,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch wanted;
    int64_t rows = batch_rows(batch);
    int64_t kept = rows;
    memset(&wanted, 0, sizeof wanted);
    TRY(choose_rows(s, batch, first_row, &kept, err));
    if (kept == 0) {
        goto done;
    }
    if (s->to_wanted != NULL) {
        TRY(project_apply(s->to_wanted, s->env, batch, &wanted, err));
    } else {
        batch_move(&wanted, batch);
    }
    if (kept == rows) {
        batch_move(out, &wanted);
    } else {
        TRY(batch_filter(s->env, &wanted, s->selection, out, err));
    }
done:
    batch_release(&wanted);
    return code;
}

tarn_code file_scan_next(file_scan *s, tarn_batch *out, scan_counters *counters, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch raw;
    tarn_batch read;
    int64_t first_row = 0;
    memset(&raw, 0, sizeof raw);
    memset(&read, 0, sizeof read);
    memset(out, 0, sizeof *out);
    if (!s->counted) {
        counters->row_groups += s->pruned.row_groups;
        counters->row_groups_skipped += s->pruned.row_groups_skipped;
        counters->pages_skipped += s->pruned.pages_skipped;
        s->counted = true;
    }
    while (batch_rows(out) == 0) {
        TRY(next_of_format(s, &raw, &first_row, err));
        if (batch_rows(&raw) == 0) {
            break;
        }
        counters->rows_read += batch_rows(&raw);
        TRY(project_apply(s->from_file, s->env, &raw, &read, err));
        if (s->reserved) {
            TRY(reserved_fill(s->env, &read, &s->file, s->options.sequence_number, first_row, err));
        }
        TRY(filter_batch(s, &read, first_row, out, err));
        batch_release(&read);
        counters->rows_matched += batch_rows(out);
    }
done:
    counters->bytes_read += atomic_exchange(&s->opened.bytes, 0);
    batch_release(&raw);
    batch_release(&read);
    return code == TARN_OK ? code : name_file(&s->file, code, err);
}

bool file_scan_has(const file_scan *s, int32_t field_id) {
    const tarn_type *type =
        s->parquet != NULL ? parquet_file_schema(s->parquet)->root : avro_file_type(s->avro);
    return type_find_id(type, field_id) != NULL;
}

void file_scan_close(file_scan *s) {
    if (s == NULL) {
        return;
    }
    parquet_scan_close(s->parquet_scan);
    parquet_close(s->parquet);
    avro_scan_close(s->avro_scan);
    avro_close(s->avro);
    if (s->source != NULL) {
        s->source->close(s->source);
    }
    env_free(s->env, s->selection);
    key_rows_release(&s->keys);
    arena_release(&s->arena);
    env_free(s->env, s);
}
