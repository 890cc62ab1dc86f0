/* api/api_source.c - include/tarn/source.h: the face of the room source. */
#include <tarn/source.h>

#include "api/handles.h"
#include "source/source.h"

struct tarn_source {
    tarn_env *env;
    tarn_arena arena;
    row_source *source;
};

/* {"name": "value"} as names and values by turns. */
static tarn_code read_properties(tarn_source *s, const char *json, const char *const **out,
                                 tarn_error *err) {
    tarn_properties properties;
    tarn_code code = api_properties(&s->arena, json, "Kafka properties", &properties, err);
    if (code != TARN_OK) {
        return code;
    }
    const char **list = ARENA_ARRAY(&s->arena, const char *, (size_t)properties.count * 2 + 1);
    if (list == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < properties.count; i++) {
        list[2 * i] = arena_str(&s->arena, properties.items[i].key).data;
        list[2 * i + 1] = arena_str(&s->arena, properties.items[i].value).data;
        if (list[2 * i] == NULL || list[2 * i + 1] == NULL) {
            return err_nomem(err);
        }
    }
    *out = list;
    return TARN_OK;
}

/* The caller's struct may be an older, shorter one. */
static tarn_source_options known_options(const tarn_source_options *options) {
    tarn_source_options o = TARN_SOURCE_OPTIONS_INIT;
    if (options != NULL) {
        size_t size = options->struct_size;
        memcpy(&o, options, size < sizeof o ? size : sizeof o);
        o.struct_size = sizeof o;
    }
    return o;
}

static tarn_code open_source(tarn_source *s, const char *const *inputs, int32_t n,
                             const tarn_source_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    source_options options;
    memset(&options, 0, sizeof options);
    options.file = &o->file;
    options.kind_column = o->op_column;
    options.follow = o->follow;
    options.grow = o->grow;
    options.accept_gap = o->accept_gap;
    options.schema_registry = o->schema_registry;
    options.kafka_group = o->kafka_group;
    options.kafka_balance = o->kafka_balance;
    options.kafka_timeout_ms = o->kafka_timeout_ms;
    if (o->file.schema != NULL) {
        TRY(type_from_arrow(&s->arena, o->file.schema, &options.root, err));
        TRY(type_defaults_from_arrow(&s->arena, o->file.schema, options.root, &options.root, err));
    }
    TRY(api_names(&s->arena, o->key, &options.keys, &options.n_keys, err));
    TRY(read_properties(s, o->kafka_properties_json, &options.kafka_properties, err));
    code = source_open(s->env, inputs, n, &options, &s->source, err);
done:
    return code;
}

tarn_code tarn_source_open(tarn_env *env, const char *const *inputs, int32_t n_inputs,
                           const tarn_source_options *options, tarn_source **out, tarn_error *err) {
    API_ERROR(err);
    tarn_source_options known = known_options(options);
    tarn_source *s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->env = env;
    arena_init(&s->arena, env);
    tarn_code code = open_source(s, inputs, n_inputs, &known, err);
    if (code != TARN_OK) {
        tarn_source_close(s);
        return code;
    }
    *out = s;
    return TARN_OK;
}

tarn_code tarn_source_seek(tarn_source *s, const char *offsets, tarn_error *err) {
    API_ERROR(err);
    return api_blame_caller(source_seek(s->source, str_of(offsets), err), err);
}

tarn_code tarn_source_next(tarn_source *s, int64_t timeout_ms, struct ArrowSchema *schema,
                           struct ArrowArray *array, const uint8_t **kinds, bool *ended,
                           tarn_error *err) {
    API_ERROR(err);
    tarn_batch batch;
    const uint8_t *row_kinds = NULL;
    bool end = false;
    tarn_code code = source_next(s->source, timeout_ms, &batch, &row_kinds, &end, err);
    if (code == TARN_OK && batch_rows(&batch) > 0) {
        code = type_to_arrow(s->env, batch.type, schema, err);
    } else if (code == TARN_OK) {
        memset(schema, 0, sizeof *schema);
        batch_release(&batch);
    }
    if (code != TARN_OK) {
        batch_release(&batch);
        return code;
    }
    *array = batch.array;
    *kinds = row_kinds;
    *ended = end;
    return TARN_OK;
}

tarn_code tarn_source_offsets(tarn_source *s, char **out, tarn_error *err) {
    API_ERROR(err);
    tarn_buf text;
    buf_init(&text, s->env, 0);
    tarn_code code = source_put_offsets(s->source, &text, err);
    code = code == TARN_OK ? api_give_text(s->env, &text, out, err) : code;
    buf_release(&text);
    return code;
}

tarn_balance tarn_source_balance(const tarn_source *s) {
    switch (source_turn_of(s->source)) {
    case SOURCE_GIVES_UP:
        return TARN_BALANCE_GIVES_UP;
    case SOURCE_TAKES_OVER:
        return TARN_BALANCE_TAKES_OVER;
    case SOURCE_READS:
        break;
    }
    return TARN_BALANCE_READS;
}

tarn_code tarn_source_committed(tarn_source *s, const char *offsets, tarn_error *err) {
    API_ERROR(err);
    return api_blame_caller(source_committed(s->source, str_of(offsets), err), err);
}

const char *tarn_source_name(const tarn_source *s) {
    return source_name(s->source);
}

void tarn_source_progress(const tarn_source *s, int64_t *done, int64_t *total) {
    source_progress(s->source, done, total);
}

int64_t tarn_source_taken(const tarn_source *s) {
    return source_taken(s->source);
}

void tarn_source_close(tarn_source *s) {
    if (s == NULL) {
        return;
    }
    tarn_env *env = s->env;
    source_close(s->source);
    arena_release(&s->arena);
    env_free(env, s);
}
