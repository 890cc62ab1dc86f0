/* sink/state_int.h - what the files of the state share. */
#ifndef SINK_STATE_INT_H
#define SINK_STATE_INT_H

#include "sink/state.h"

/* A file that is of no use once what stands in for it is durable. */
typedef struct spent_file {
    bool is_delta; /* checkpoint-first-second, else committed-first-second */
    int64_t first, second;
} spent_file;

struct sink_state {
    tarn_env *env;
    tarn_store *store;
    tarn_arena arena; /* for the state's life */
    tarn_str dir;
    sink_identity who;
    int64_t epoch;
    spent_file note; /* the newest that was read or written */
    bool has_note;
    tarn_buf spent; /* of spent_file */
};

/* The path of a file of the folder. */
tarn_code state_path(sink_state *s, tarn_arena *arena, const char *name, char **out,
                     tarn_error *err) TARN_MUST_USE;
tarn_code state_document_put(sink_state *s, const char *path, store_mode mode, tarn_str body,
                             tarn_error *err) TARN_MUST_USE;
/* NOT_FOUND; CORRUPT names the file. */
tarn_code state_document_get(sink_state *s, tarn_arena *arena, const char *path, json_value **out,
                             tarn_error *err) TARN_MUST_USE;
/* Whether a checkpoint was ever durable in it. */
tarn_code state_has_rows(sink_state *s, tarn_arena *arena, bool *out,
                         tarn_error *err) TARN_MUST_USE;

#endif
