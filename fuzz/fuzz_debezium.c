/* Fuzz target: records that are changes (format/text/text_change.c): envelopes with and without
 * schemas and keys, their schema inferred and given, and a column of kinds. Every row has a kind,
 * and where a reader stands never goes back nor past the end.
 * rooms: format */
#include "text_target.h"

#include "table/row_kind.h"

static void read_changes(tarn_env *env, tarn_str bytes, const tarn_type *root, bool debezium) {
    tarn_error err = TARN_ERROR_INIT;
    text_reader *reader = NULL;
    text_options options = {.kind = TEXT_NDJSON,
                            .ignore_unknown = true,
                            .reject = skip_record,
                            .chunk_bytes = CHUNK_BYTES,
                            .batch_rows = 2,
                            .debezium = debezium,
                            .kind_column = debezium ? 0 : 3};
    io_stream *stream = open_stream(env, bytes);
    int64_t before = 0;
    int64_t got = 1;
    tarn_code code = text_reader_open(env, stream, root, &options, &reader, &err);
    fuzz_check(code == TARN_OK);
    while (code == TARN_OK && got > 0) {
        tarn_batch batch;
        int64_t at;
        int64_t lines;
        memset(&batch, 0, sizeof batch);
        code = text_reader_next(reader, &batch, &err);
        fuzz_check_error(code, &err);
        got = code == TARN_OK ? batch_rows(&batch) : 0;
        const uint8_t *kinds = text_reader_kinds(reader);
        for (int64_t i = 0; i < got; i++) {
            fuzz_check(kinds[i] <= TARN_ROW_DELETE);
        }
        fuzz_check(got == 0 || batch_validate(&batch, &err) == TARN_OK);
        text_reader_position(reader, &at, &lines);
        fuzz_check(at >= before && at <= (int64_t)bytes.len && lines >= 0);
        before = at;
        batch_release(&batch);
    }
    text_reader_close(reader);
}

static void infer_changes(tarn_env *env, tarn_arena *arena, tarn_str bytes) {
    tarn_error err = TARN_ERROR_INIT;
    text_options options = {.kind = TEXT_NDJSON, .debezium = true};
    const tarn_type *root = NULL;
    io_stream *stream = open_stream(env, bytes);
    tarn_code code = text_infer(arena, &stream, &options, 0, &root, &err);
    fuzz_check_error(code, &err);
    stream->close(stream);
    int32_t next_id = 1;
    if (code == TARN_OK && root->n_fields > 0) {
        root = type_assign_ids(arena, root, &next_id);
        read_changes(env, bytes, root, true);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_type *root = NULL;
    int32_t next_id = 1;
    tarn_str bytes = str_make(data, size);
    arena_init(&arena, env);
    fuzz_check(type_from_text(&arena, str_of(text_schema), &root, &err) == TARN_OK);
    root = type_assign_ids(&arena, root, &next_id);
    fuzz_check(root != NULL);
    read_changes(env, bytes, root, true);
    read_changes(env, bytes, root, false);
    infer_changes(env, &arena, bytes);
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
