/* api/api_file.c - include/tarn/file.h, reading: the face of source's file_reader. */
#include "api/handles.h"
#include "source/file_reader.h"

struct tarn_file_reader {
    tarn_env *env;
    tarn_arena arena; /* names and filter */
    file_reader *reader;
};

static tarn_code open_reader(tarn_file_reader *r, const char *path, const tarn_file_options *o,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    file_request request;
    memset(&request, 0, sizeof request);
    request.options = o;
    request.debezium = o->format != NULL && str_is(str_of(o->format), "debezium-json");
    if (request.debezium) {
        return err_set(err, TARN_INVALID,
                       "debezium-json is a change stream, which a source reads (tarn ingest)");
    }
    TRY(api_names(&r->arena, o->columns, &request.columns, &request.n_columns, err));
    TRY(api_filter(&r->arena, o->where, &request.where, err));
    code = file_reader_open(r->env, path, &request, &r->reader, err);
done:
    return code;
}

tarn_code tarn_file_open(tarn_env *env, const char *path, const tarn_file_options *options,
                         tarn_file_reader **out, tarn_error *err) {
    API_ERROR(err);
    tarn_file_options defaults = TARN_FILE_OPTIONS_INIT;
    tarn_file_reader *r = env_calloc(env, 1, sizeof *r);
    if (r == NULL) {
        return err_nomem(err);
    }
    r->env = env;
    arena_init(&r->arena, env);
    tarn_code code = open_reader(r, path, options != NULL ? options : &defaults, err);
    if (code != TARN_OK) {
        tarn_file_close(r);
        return code;
    }
    *out = r;
    return TARN_OK;
}

void tarn_file_close(tarn_file_reader *r) {
    if (r == NULL) {
        return;
    }
    tarn_env *env = r->env;
    file_reader_close(r->reader);
    arena_release(&r->arena);
    env_free(env, r);
}

const char *tarn_file_reader_format(const tarn_file_reader *r) {
    return file_reader_format(r->reader);
}

tarn_code tarn_file_schema(tarn_file_reader *r, struct ArrowSchema *out, tarn_error *err) {
    API_ERROR(err);
    return type_to_arrow(r->env, file_reader_type(r->reader), out, err);
}

void tarn_file_progress(const tarn_file_reader *r, int64_t *done_bytes, int64_t *total_bytes) {
    file_reader_progress(r->reader, done_bytes, total_bytes);
}

tarn_code tarn_file_next(tarn_file_reader *r, struct ArrowArray *out, tarn_error *err) {
    API_ERROR(err);
    tarn_batch batch;
    tarn_code code = file_reader_next(r->reader, &batch, err);
    if (code == TARN_OK) {
        *out = batch.array;
    }
    return code;
}

tarn_code tarn_file_native_schema(tarn_file_reader *r, char **text_out, tarn_error *err) {
    API_ERROR(err);
    tarn_buf text;
    buf_init(&text, r->env, 0);
    tarn_code code = file_reader_schema_text(r->reader, &text, err);
    code = code == TARN_OK ? api_give_text(r->env, &text, text_out, err) : code;
    buf_release(&text);
    return code;
}

tarn_code tarn_file_meta_json(tarn_file_reader *r, char **json_out, tarn_error *err) {
    API_ERROR(err);
    tarn_buf text;
    buf_init(&text, r->env, 0);
    tarn_code code = file_reader_meta_json(r->reader, &text, err);
    code = code == TARN_OK ? api_give_text(r->env, &text, json_out, err) : code;
    buf_release(&text);
    return code;
}
