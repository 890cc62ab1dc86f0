/* iceberg/manifest_list_write.c - writing a snapshot's manifest list (spec, "Manifest Lists"). What
 * a manifest leaves to the commit (sequence numbers, first row ids) is settled here. */
#include "format/avro/avro.h"
#include "iceberg/manifest_int.h"

typedef struct list_writer {
    tarn_error *err;
    const manifest_list_options *options;
    int32_t slots[N_LIST_FIELDS];
    tarn_builder rows;
} list_writer;

static bool takes_row_ids(const tarn_manifest *m) {
    return !m->is_deletes && m->first_row_id < 0;
}

/* Rows that an entry of the manifest may need ids for; unknown counts as none. */
static int64_t rows_of(const tarn_manifest *m) {
    return (m->added_rows > 0 ? m->added_rows : 0) + (m->existing_rows > 0 ? m->existing_rows : 0);
}

int64_t manifest_assign_row_ids(tarn_manifest *manifests, int32_t n, int64_t next) {
    for (int32_t i = 0; i < n; i++) {
        if (takes_row_ids(&manifests[i])) {
            manifests[i].first_row_id = next;
            next += rows_of(&manifests[i]);
        }
    }
    return next;
}

static tarn_code put_number(list_writer *w, int32_t field, int64_t v) {
    if (w->slots[field] < 0) {
        return TARN_OK;
    }
    tarn_builder *b = &w->rows.children[w->slots[field]];
    if (v < 0) {
        const tarn_field *f = &w->rows.type->fields[w->slots[field]];
        return !f->required ? builder_null(b, w->err)
                            : err_set(w->err, TARN_INVALID,
                                      "a manifest for the list had no %.*s, which is required",
                                      STR_ARG(f->name));
    }
    int32_t v4 = (int32_t)v;
    return b->type->kind == TARN_INT ? builder_fixed(b, &v4, w->err) : builder_fixed(b, &v, w->err);
}

static tarn_code put_bytes(tarn_builder *b, bool here, tarn_str s, tarn_error *err) {
    return here ? builder_bytes(b, s, err) : builder_null(b, err);
}

static tarn_code put_summary(tarn_builder *b, const tarn_field_summary *s, tarn_error *err) {
    tarn_code code = builder_bool(&b->children[S_NULL], s->contains_null, err);
    if (code == TARN_OK) {
        code = s->contains_nan < 0 ? builder_null(&b->children[S_NAN], err)
                                   : builder_bool(&b->children[S_NAN], s->contains_nan != 0, err);
    }
    if (code == TARN_OK) {
        code = put_bytes(&b->children[S_LOWER], s->has_lower, s->lower, err);
    }
    if (code == TARN_OK) {
        code = put_bytes(&b->children[S_UPPER], s->has_upper, s->upper, err);
    }
    return code == TARN_OK ? builder_close(b, err) : code;
}

/* A spec without fields has an empty list, as in Java, whose metadata tables cannot show a null. */
static tarn_code put_summaries(list_writer *w, const tarn_manifest *m) {
    tarn_builder *b = &w->rows.children[w->slots[L_PARTITIONS]];
    if (m->partitions == NULL) {
        return builder_null(b, w->err);
    }
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < m->n_partitions && code == TARN_OK; i++) {
        code = put_summary(&b->children[0], &m->partitions[i], w->err);
    }
    return code == TARN_OK ? builder_close(b, w->err) : code;
}

/* Only a manifest of this very commit may wait for its sequence number. */
static tarn_code settle(list_writer *w, const tarn_manifest *m, int64_t given, int64_t *out) {
    if (given >= 0) {
        *out = given;
        return TARN_OK;
    }
    *out = w->options->sequence_number;
    return m->added_snapshot_id == w->options->snapshot_id
               ? TARN_OK
               : err_set(w->err, TARN_INVALID,
                         "manifest %.*s of snapshot %lld had no sequence number in the list of "
                         "snapshot %lld",
                         STR_ARG(m->path), (long long)m->added_snapshot_id,
                         (long long)w->options->snapshot_id);
}

static tarn_code put_manifest(list_writer *w, const tarn_manifest *m) {
    tarn_error *err = w->err;
    int64_t sequence = 0, least = 0;
    tarn_code code = TARN_OK;
    /* Unknown counts of a version 1 manifest are required later: as in Java, nothing is 0. */
    bool v1 = w->options->format_version == 1;
    int64_t unknown = v1 ? -1 : 0;
    const int64_t counts[] = {m->added_files, m->existing_files, m->deleted_files,
                              m->added_rows,  m->existing_rows,  m->deleted_rows};
    if (v1 && m->is_deletes) {
        return err_set(err, TARN_INVALID, "a table of format version 1 had delete manifests");
    }
    TRY(settle(w, m, m->sequence_number, &sequence));
    TRY(settle(w, m, m->min_sequence_number, &least));
    TRY(builder_bytes(&w->rows.children[w->slots[L_PATH]], m->path, err));
    TRY(put_number(w, L_LENGTH, m->length));
    TRY(put_number(w, L_SPEC, m->spec_id));
    TRY(put_number(w, L_CONTENT, m->is_deletes ? 1 : 0));
    TRY(put_number(w, L_SEQUENCE, sequence));
    TRY(put_number(w, L_MIN_SEQUENCE, least));
    TRY(put_number(w, L_SNAPSHOT, m->added_snapshot_id));
    for (int32_t i = 0; i < 6; i++) {
        TRY(put_number(w, L_ADDED_FILES + i, counts[i] < 0 ? unknown : counts[i]));
    }
    TRY(put_summaries(w, m));
    TRY(put_bytes(&w->rows.children[w->slots[L_KEY]], m->key_metadata.data != NULL, m->key_metadata,
                  err));
    TRY(put_number(w, L_FIRST_ROW, m->first_row_id));
    TRY(builder_close(&w->rows, err));
done:
    return code;
}

static tarn_code open_list(tarn_arena *arena, const manifest_list_options *o, const tarn_type *type,
                           io_sink *sink, avro_writer **out, tarn_error *err) {
    avro_write_options options = AVRO_WRITE_OPTIONS_INIT;
    avro_meta meta[5 + MANIFEST_LIST_MAX_EXTRA];
    size_t n = 0;
    tarn_code code = manifest_codec(o->codec, &options, err);
    const struct {
        const char *key;
        int64_t value;
        bool here;
    } rows[] = {{"snapshot-id", o->snapshot_id, true},
                {"parent-snapshot-id", o->parent_id, true},
                {"sequence-number", o->sequence_number, o->format_version > 1},
                {"first-row-id", o->first_row_id, o->format_version > 2},
                {"format-version", o->format_version, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && code == TARN_OK; i++) {
        if (rows[i].here) {
            char *text = rows[i].value < 0 ? arena_strdup(arena, "null")
                                           : arena_printf(arena, "%lld", (long long)rows[i].value);
            meta[n++] = (avro_meta){str_of(rows[i].key), str_of(text)};
            code = text != NULL ? TARN_OK : err_nomem(err);
        }
    }
    if (code != TARN_OK) {
        return code;
    }
    tarn_assert(o->extra.count <= MANIFEST_LIST_MAX_EXTRA);
    for (int32_t i = 0; i < o->extra.count; i++) {
        meta[n++] = (avro_meta){o->extra.items[i].key, o->extra.items[i].value};
    }
    options.record_name = STR("manifest_file");
    options.meta = meta;
    options.n_meta = n;
    return avro_writer_open(arena->env, sink, type, &options, out, err);
}

static tarn_code put_manifests(list_writer *w, const tarn_manifest *manifests, int32_t n) {
    int64_t next = w->options->format_version >= 3 ? w->options->first_row_id : -1;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < n && code == TARN_OK; i++) {
        tarn_manifest m = manifests[i];
        if (next >= 0 && takes_row_ids(&m)) {
            m.first_row_id = next;
            next += rows_of(&m);
        }
        code = put_manifest(w, &m);
    }
    return code;
}

/* A sink that lends another: the file is whole when the caller finishes that. */
typedef struct lent_sink {
    io_sink base;
    io_sink *inner;
} lent_sink;

static tarn_code lent_write(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    return io_write(((lent_sink *)sink)->inner, data, len, err);
}
static tarn_code lent_finish(io_sink *sink, tarn_error *err) {
    (void)err;
    env_free(sink->env, sink);
    return TARN_OK;
}
static void lent_abort(io_sink *sink) {
    env_free(sink->env, sink);
}

static tarn_code lend_sink(io_sink *sink, io_sink **out, tarn_error *err) {
    lent_sink *lent = env_calloc(sink->env, 1, sizeof *lent);
    if (lent == NULL) {
        return err_nomem(err);
    }
    lent->base.env = sink->env;
    lent->base.name = sink->name;
    lent->base.write = lent_write;
    lent->base.finish = lent_finish;
    lent->base.abort = lent_abort;
    lent->inner = sink;
    *out = &lent->base;
    return TARN_OK;
}

tarn_code manifest_list_write(tarn_env *env, const manifest_list_options *options,
                              const tarn_manifest *manifests, int32_t n, io_sink *sink,
                              tarn_error *err) {
    list_writer w;
    tarn_arena arena;
    avro_writer *avro = NULL;
    io_sink *lent = NULL;
    tarn_batch batch;
    tarn_code code = TARN_OK;
    memset(&w, 0, sizeof w);
    memset(&batch, 0, sizeof batch);
    w.err = err;
    w.options = options;
    arena_init(&arena, env);
    const tarn_type *type = manifest_list_type(&arena, options->format_version, w.slots);
    if (type == NULL) {
        TRY(err_nomem(err));
    }
    TRY(builder_init(&w.rows, env, type, err));
    TRY(put_manifests(&w, manifests, n));
    TRY(builder_finish_batch(&w.rows, &batch, err));
    TRY(lend_sink(sink, &lent, err));
    TRY(open_list(&arena, options, type, lent, &avro, err));
    lent = NULL;
    TRY(avro_writer_write(avro, &batch, err));
    code = avro_writer_finish(avro, NULL, NULL, err);
    avro = NULL;
done:
    if (avro != NULL) {
        avro_writer_abort(avro);
    } else if (lent != NULL) {
        lent->abort(lent);
    }
    batch_release(&batch);
    builder_release(&w.rows);
    arena_release(&arena);
    return code;
}
