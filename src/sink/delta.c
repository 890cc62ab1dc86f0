/* sink/delta.c - see delta.h. */
#include "sink/delta.h"

struct delta_writer {
    tarn_env *env;
    data_writer *data;
};

tarn_code delta_writer_new(tarn_env *env, const delta_options *options, delta_writer **out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    data_writer_options data;
    delta_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    memset(&data, 0, sizeof data);
    data.metadata = options->metadata;
    data.task_id = options->task_id;
    data.memory_bytes = options->memory_bytes;
    TRY(data_writer_new(env, options->store, &data, &w->data, err));
    *out = w;
    w = NULL;
done:
    delta_writer_free(w);
    return code;
}

tarn_code delta_writer_write(delta_writer *w, const tarn_batch *batch, const uint8_t *kinds,
                             tarn_error *err) {
    (void)kinds;
    return data_writer_write(w->data, batch, err);
}

tarn_code delta_writer_close(delta_writer *w, tarn_arena *arena, write_result *out,
                             tarn_error *err) {
    return data_writer_close(w->data, arena, out, err);
}

void delta_writer_free(delta_writer *w) {
    if (w != NULL) {
        data_writer_free(w->data);
        env_free(w->env, w);
    }
}
