/* api/api_file_write.c - include/tarn/file.h, writing. */
#include "api/handles.h"
#include "format/parquet/parquet_write.h"
#include "source/file_reader.h"
#include "store/store_stdio.h"

/* ---- a caller's schema, kept ---- */

typedef struct schema_copy_state {
    tarn_env *env;
    tarn_arena arena; /* of everything but the root structure */
} schema_copy_state;

static void schema_copy_release(struct ArrowSchema *schema) {
    schema_copy_state *state = schema->private_data;
    tarn_env *env = state->env;
    arena_release(&state->arena);
    env_free(env, state);
    memset(schema, 0, sizeof *schema);
}

static void schema_part_release(struct ArrowSchema *schema) {
    schema->release = NULL;
}

/* Length of Arrow's metadata encoding: a count, then lengths and bytes of keys and values. */
static size_t metadata_bytes(const char *metadata) {
    size_t at = 4;
    for (int32_t n = num_load_i32(metadata) * 2; n > 0; n--) {
        at += 4 + (size_t)num_load_i32(metadata + at);
    }
    return at;
}

static bool schema_copy_part(tarn_arena *arena, const struct ArrowSchema *from,
                             struct ArrowSchema *to) {
    memset(to, 0, sizeof *to);
    to->format = arena_strdup(arena, from->format);
    to->name = from->name != NULL ? arena_strdup(arena, from->name) : NULL;
    to->metadata =
        from->metadata != NULL
            ? arena_str(arena, str_make(from->metadata, metadata_bytes(from->metadata))).data
            : NULL;
    to->flags = from->flags;
    to->n_children = from->n_children;
    to->children = ARENA_ARRAY(arena, struct ArrowSchema *, (size_t)from->n_children + 1);
    to->release = schema_part_release;
    bool ok = to->format != NULL && to->children != NULL;
    for (int64_t i = 0; ok && i < from->n_children; i++) {
        to->children[i] = ARENA_NEW(arena, struct ArrowSchema);
        ok = to->children[i] != NULL && schema_copy_part(arena, from->children[i], to->children[i]);
    }
    if (ok && from->dictionary != NULL) {
        to->dictionary = ARENA_NEW(arena, struct ArrowSchema);
        ok = to->dictionary != NULL && schema_copy_part(arena, from->dictionary, to->dictionary);
    }
    return ok;
}

static tarn_code schema_copy(tarn_env *env, const struct ArrowSchema *from, struct ArrowSchema *to,
                             tarn_error *err) {
    schema_copy_state *state = env_calloc(env, 1, sizeof *state);
    if (state == NULL) {
        return err_nomem(err);
    }
    state->env = env;
    arena_init(&state->arena, env);
    bool ok = schema_copy_part(&state->arena, from, to);
    to->private_data = state;
    to->release = schema_copy_release;
    if (!ok) {
        to->release(to);
        return err_nomem(err);
    }
    return TARN_OK;
}

/* ---- writing ---- */

struct tarn_file_writer {
    tarn_env *env;
    tarn_arena arena;
    tarn_store *store;
    const tarn_type *root;     /* canonical, as type_from_arrow gave it */
    struct ArrowSchema schema; /* our own copy, by which arrays are imported */
    parquet_write_options parquet_options;
    io_sink *sink; /* text: ours until close */
    parquet_writer *parquet;
    avro_writer *avro;
    text_writer *text;
};

static tarn_code open_sink(tarn_file_writer *w, const char *path, const tarn_file_options *o,
                           codec_kind codec, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (strcmp(path, "-") == 0) {
        TRY(store_stdout(w->env, &w->sink, err));
    } else {
        TRY(store_for_location(w->env, str_of(path), &w->store, err));
        TRY(store_create(w->store, str_of(path), STORE_REPLACE, &w->sink, err));
    }
    if (o->compression != NULL && !codec_from_name(str_of(o->compression), &codec)) {
        return err_set(err, TARN_INVALID, "\"%s\" is no compression", o->compression);
    }
    if (codec != CODEC_NONE) {
        io_sink *packed = NULL;
        TRY(codec_sink_open(w->env, codec, CODEC_LEVEL_DEFAULT, w->sink, &packed, err));
        w->sink = packed;
    }
done:
    return code;
}

static tarn_code open_parquet_writer(tarn_file_writer *w, const tarn_file_options *o,
                                     tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_properties properties;
    TRY(api_properties(&w->arena, o->properties_json, "properties", &properties, err));
    parquet_property *items =
        ARENA_ARRAY(&w->arena, parquet_property, (size_t)properties.count + 2);
    if (items == NULL) {
        return err_nomem(err);
    }
    size_t n = 0;
    for (int32_t i = 0; i < properties.count; i++) {
        items[n].key = properties.items[i].key;
        items[n++].value = properties.items[i].value;
    }
    if (o->codec != NULL) {
        items[n].key = STR("write.parquet.compression-codec");
        items[n++].value = str_of(o->codec);
    }
    parquet_write_options_init(&w->parquet_options);
    TRY(parquet_write_options_parse(&w->arena, items, n, false, &w->parquet_options, err));
    TRY(parquet_writer_new(w->env, w->root, &w->parquet_options, w->sink, &w->parquet, err));
    w->sink = NULL;
done:
    return code;
}

static tarn_code open_avro_writer(tarn_file_writer *w, const tarn_file_options *o,
                                  tarn_error *err) {
    avro_write_options options = AVRO_WRITE_OPTIONS_INIT;
    if (o->codec != NULL && !codec_from_name(str_of(o->codec), &options.codec)) {
        return err_set(err, TARN_INVALID, "\"%s\" is no codec", o->codec);
    }
    tarn_code code = avro_writer_open(w->env, w->sink, w->root, &options, &w->avro, err);
    if (code == TARN_OK) {
        w->sink = NULL;
    }
    return code;
}

static tarn_code open_kind(tarn_file_writer *w, const char *path, const tarn_file_options *o,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    file_kind kind;
    codec_kind codec;
    text_options text;
    TRY(file_kind_for_writing(path, o, &kind, &codec, err));
    TRY(open_sink(w, path, o, kind == FILE_PARQUET || kind == FILE_AVRO ? CODEC_NONE : codec, err));
    if (kind == FILE_PARQUET) {
        code = open_parquet_writer(w, o, err);
    } else if (kind == FILE_AVRO) {
        code = open_avro_writer(w, o, err);
    } else {
        TRY(file_text_options(&w->arena, o, kind, &text, err));
        TRY(text_writer_new(w->env, w->root, &text, w->sink, &w->text, err));
    }
done:
    return code;
}

tarn_code tarn_file_writer_open(tarn_env *env, const char *path, const struct ArrowSchema *schema,
                                const tarn_file_options *options, tarn_file_writer **out,
                                tarn_error *err) {
    API_ERROR(err);
    tarn_file_options defaults = TARN_FILE_OPTIONS_INIT;
    tarn_code code = TARN_OK;
    tarn_file_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    arena_init(&w->arena, env);
    TRY(type_from_arrow(&w->arena, schema, &w->root, err));
    TRY(schema_copy(env, schema, &w->schema, err));
    TRY(open_kind(w, path, options != NULL ? options : &defaults, err));
    *out = w;
    w = NULL;
done:
    tarn_file_writer_abort(w);
    return code;
}

tarn_code tarn_file_writer_write(tarn_file_writer *w, struct ArrowArray *array, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    TRY(batch_import(w->env, &w->schema, array, w->root, &batch, err));
    if (w->parquet != NULL) {
        code = parquet_writer_write(w->parquet, &batch, err);
    } else if (w->avro != NULL) {
        code = avro_writer_write(w->avro, &batch, err);
    } else {
        code = text_writer_write(w->text, &batch, err);
    }
done:
    batch_release(&batch);
    return code;
}

tarn_code tarn_file_writer_close(tarn_file_writer *w, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    if (w->parquet != NULL) {
        code = parquet_writer_close(w->parquet, &w->arena, NULL, err);
    } else if (w->avro != NULL) {
        avro_writer *avro = w->avro;
        w->avro = NULL;
        code = avro_writer_finish(avro, NULL, NULL, err);
    } else {
        TRY(text_writer_flush(w->text, err));
        io_sink *sink = w->sink;
        w->sink = NULL;
        code = sink->finish(sink, err);
    }
done:
    tarn_file_writer_abort(w);
    return code;
}

void tarn_file_writer_abort(tarn_file_writer *w) {
    if (w == NULL) {
        return;
    }
    tarn_env *env = w->env;
    parquet_writer_free(w->parquet);
    avro_writer_abort(w->avro);
    text_writer_free(w->text);
    if (w->sink != NULL) {
        w->sink->abort(w->sink);
    }
    store_close(w->store);
    if (w->schema.release != NULL) {
        w->schema.release(&w->schema);
    }
    arena_release(&w->arena);
    env_free(env, w);
}
