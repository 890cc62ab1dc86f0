/* read/metadata_deletes.c - the metadata table position_deletes: what the live position delete
 * files and deletion vectors say, as it stands in them, a batch at a time. Deletes of rows that
 * others take too, or of files that are gone, are there as well. The column row is the deleted row
 * where a delete file repeats it, which few do. */
#include "read/delete_load.h"
#include "read/metadata_table.h"

#define BATCH_ROWS          16384
#define FIELD_ID_DELETE_ROW 2147483544

struct delete_cursor {
    tarn_env *env;
    tarn_arena arena; /* of one manifest: entries, a vector's data file */
    manifest_entries entries;
    const tarn_type *wanted; /* of a file: path, position, row */
    int64_t at;              /* the next entry */
    const tarn_file *file;   /* that is being given; NULL: none */
    file_scan *scan;         /* of a file */
    delete_target target;    /* of a vector */
    int64_t from;            /* the next position of it */
    int64_t *list;           /* room for a batch of positions */
};

static void close_file(delete_cursor *c) {
    file_scan_close(c->scan);
    positions_free(c->target.positions);
    c->scan = NULL;
    c->target.positions = NULL;
    c->file = NULL;
}

void delete_cursor_free(delete_cursor *c) {
    if (c == NULL) {
        return;
    }
    close_file(c);
    env_free(c->env, c->list);
    arena_release(&c->arena);
    env_free(c->env, c);
}

static tarn_code make_wanted(metadata_table *t, tarn_error *err) {
    const tarn_type *known = delete_position_type();
    tarn_field *fields = ARENA_ARRAY(&t->arena, tarn_field, 3);
    if (fields == NULL) {
        return err_nomem(err);
    }
    memcpy(fields, known->fields, 2 * sizeof *fields);
    fields[2] = (tarn_field){.id = FIELD_ID_DELETE_ROW, .name = STR("row")};
    tarn_code code =
        columns_optional(&t->arena, metadata_schema(t->metadata)->root, &fields[2].type, err);
    if (code != TARN_OK) {
        return code;
    }
    t->cursor->wanted = type_struct(&t->arena, fields, 3);
    return t->cursor->wanted != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code make_cursor(metadata_table *t, tarn_error *err) {
    delete_cursor *c = env_calloc(t->env, 1, sizeof *c);
    if (c == NULL) {
        return err_nomem(err);
    }
    t->cursor = c;
    c->env = t->env;
    arena_init(&c->arena, t->env);
    c->list = env_alloc(t->env, BATCH_ROWS * sizeof *c->list);
    return c->list != NULL ? make_wanted(t, err) : err_nomem(err);
}

static tarn_code open_vector(metadata_table *t, const tarn_entry *e, tarn_error *err) {
    delete_cursor *c = t->cursor;
    delete_target *target = &c->target;
    pthread_mutex_t fill;
    delete_loader loader = {
        .env = t->env, .store = t->store, .metadata = t->metadata, .fill = &fill};
    (void)pthread_mutex_init(&fill, NULL);
    target->path = e->file.referenced_data_file;
    c->from = 0;
    tarn_code code = load_vector(&loader, e, &target, 1, err);
    (void)pthread_mutex_destroy(&fill);
    return code;
}

static tarn_code open_file(metadata_table *t, const tarn_entry *e, tarn_error *err) {
    file_scan_options options;
    t->cursor->file = &e->file;
    if (e->file.format == TARN_FORMAT_PUFFIN) {
        return open_vector(t, e, err);
    }
    memset(&options, 0, sizeof options);
    options.wanted = t->cursor->wanted;
    options.batch_rows = BATCH_ROWS;
    return file_scan_open(t->env, t->store, &e->file, NULL, &options, &t->cursor->scan, err);
}

static tarn_code open_manifest(metadata_table *t, const tarn_manifest *manifest, tarn_error *err) {
    delete_cursor *c = t->cursor;
    arena_release(&c->arena);
    arena_init(&c->arena, t->env);
    c->at = 0;
    return metadata_read_entries(t, &c->arena, manifest, true, MANIFEST_WANT_ALL, &c->entries, err);
}

/* The next delete file of positions; c->file NULL: there is none. */
static tarn_code next_file(metadata_table *t, tarn_error *err) {
    tarn_code code = TARN_OK;
    delete_cursor *c = t->cursor;
    while (c->file == NULL) {
        while (c->at == c->entries.count) {
            if (t->at == t->n_manifests) {
                return TARN_OK;
            }
            const tarn_manifest *manifest = &t->manifests[t->at++];
            if (manifest->is_deletes) {
                TRY(open_manifest(t, manifest, err));
            }
        }
        const tarn_entry *e = &c->entries.items[c->at++];
        if (e->file.content == TARN_CONTENT_POSITION_DELETES) {
            TRY(open_file(t, e, err));
        }
    }
done:
    return code;
}

typedef struct deleted_row {
    tarn_str path;
    int64_t pos;
    const tarn_view *rows; /* NULL: it is not known */
    int64_t at;
} deleted_row;

static tarn_code put_delete(const metadata_table *t, tarn_builder *b, const deleted_row *row,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_file *f = t->cursor->file;
    const bool vector = f->format == TARN_FORMAT_PUFFIN;
    tarn_builder *c = b->children;
    TRY(put_str(c++, row->path, err));
    TRY(put_i64(c++, row->pos, false, err));
    TRY(row->rows != NULL ? builder_view(c, row->rows, row->at, 1, err) : builder_null(c, err));
    c++;
    if (t->partition_type->n_fields > 0) {
        TRY(put_partition(t, c++, f->spec_id, f->partition, f->n_partition, err));
    }
    TRY(put_i32(c++, f->spec_id, false, err));
    TRY(put_str(c++, f->path, err));
    if (t->metadata->format_version > 2) {
        TRY(put_i64(c++, f->content_offset, !vector, err));
        TRY(put_i64(c++, f->content_size, !vector, err));
    }
    code = builder_close(b, err);
done:
    return code;
}

static tarn_code put_of_vector(metadata_table *t, tarn_builder *b, tarn_error *err) {
    tarn_code code = TARN_OK;
    delete_cursor *c = t->cursor;
    const size_t n = c->target.positions != NULL
                         ? positions_from(c->target.positions, c->from, c->list, BATCH_ROWS)
                         : 0;
    for (size_t i = 0; i < n; i++) {
        const deleted_row row = {c->target.path, c->list[i], NULL, 0};
        TRY(put_delete(t, b, &row, err));
    }
    if (n == 0) {
        close_file(c);
    } else {
        c->from = c->list[n - 1] + 1;
    }
done:
    return code;
}

static tarn_code put_of_file(metadata_table *t, tarn_builder *b, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    tarn_view paths, positions, deleted;
    scan_counters counters;
    memset(&batch, 0, sizeof batch);
    memset(&counters, 0, sizeof counters);
    TRY(file_scan_next(t->cursor->scan, &batch, &counters, err));
    const int64_t rows = batch_rows(&batch);
    if (rows == 0) {
        close_file(t->cursor);
        goto done;
    }
    view_column(&batch, 0, &paths);
    view_column(&batch, 1, &positions);
    view_column(&batch, 2, &deleted);
    if (view_null_count(&paths) > 0 || view_null_count(&positions) > 0) {
        code = err_set(err, TARN_CORRUPT, "delete file %.*s had a row without a file or position",
                       STR_ARG(t->cursor->file->path));
        goto done;
    }
    const int64_t *values = positions.values;
    for (int64_t i = 0; i < rows; i++) {
        const deleted_row row = {view_bytes(&paths, i), values[i], &deleted, i};
        TRY(put_delete(t, b, &row, err));
    }
done:
    batch_release(&batch);
    return code;
}

tarn_code metadata_rows_deletes(metadata_table *t, tarn_builder *b, bool *more, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (t->cursor == NULL) {
        TRY(make_cursor(t, err));
    }
    TRY(next_file(t, err));
    *more = t->cursor->file != NULL;
    if (*more) {
        code = t->cursor->scan != NULL ? put_of_file(t, b, err) : put_of_vector(t, b, err);
    }
done:
    return code;
}
