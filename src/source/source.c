/* source/source.c - see source.h: the inputs one behind the other, round and round when they are
 * followed; or a topic's reader. */
#include "source/source.h"

#include "source/source_int.h"

#define LOOK_AGAIN_MS 100

struct row_source {
    source_setup setup;
    source_input *inputs;
    int32_t n;
    int32_t at;
    kafka_source *kafka;
    bool begun;
};

static tarn_code keep_text(source_setup *setup, const char **text, tarn_error *err) {
    if (*text != NULL) {
        *text = arena_strdup(&setup->arena, *text);
        return *text != NULL ? TARN_OK : err_nomem(err);
    }
    return TARN_OK;
}

static tarn_code keep_properties(source_setup *setup, const char *const *given, tarn_error *err) {
    size_t n = 0;
    while (given != NULL && given[n] != NULL) {
        n++;
    }
    const char **kept = ARENA_ARRAY(&setup->arena, const char *, n + 1);
    if (kept == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        kept[i] = arena_strdup(&setup->arena, given[i]);
        if (kept[i] == NULL) {
            return err_nomem(err);
        }
    }
    setup->kafka_properties = kept;
    return TARN_OK;
}

static tarn_code keep_keys(source_setup *setup, const source_options *o, tarn_error *err) {
    tarn_str *keys = ARENA_ARRAY(&setup->arena, tarn_str, (size_t)o->n_keys + 1);
    if (keys == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < o->n_keys; i++) {
        keys[i] = arena_str(&setup->arena, o->keys[i]);
        if (keys[i].data == NULL) {
            return err_nomem(err);
        }
    }
    setup->keys = keys;
    setup->n_keys = o->n_keys;
    return TARN_OK;
}

static tarn_code copy_options(source_setup *setup, const source_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    setup->file = *o->file;
    setup->file.columns = NULL;
    setup->file.where = NULL;
    setup->file.schema = NULL;
    setup->root = o->root;
    setup->kind_column = o->kind_column;
    setup->follow = o->follow;
    setup->grow = o->grow;
    setup->accept_gap = o->accept_gap;
    setup->schema_registry = o->schema_registry;
    setup->kafka_group = o->kafka_group;
    setup->kafka_balance = o->kafka_balance;
    setup->kafka_timeout_ms = o->kafka_timeout_ms;
    TRY(keep_text(setup, &setup->file.format, err));
    TRY(keep_text(setup, &setup->file.compression, err));
    TRY(keep_text(setup, &setup->file.csv_delimiter, err));
    TRY(keep_text(setup, &setup->file.csv_quote, err));
    TRY(keep_text(setup, &setup->file.null_text, err));
    TRY(keep_text(setup, &setup->kind_column, err));
    TRY(keep_text(setup, &setup->schema_registry, err));
    TRY(keep_text(setup, &setup->kafka_group, err));
    TRY(keep_keys(setup, o, err));
    TRY(keep_properties(setup, o->kafka_properties, err));
    if (setup->file.format != NULL) {
        setup->debezium = str_eq_nocase(str_of(setup->file.format), STR("debezium-json"));
        setup->avro_envelope = str_eq_nocase(str_of(setup->file.format), STR("debezium-avro"));
    }
    if ((setup->debezium || setup->avro_envelope) && setup->kind_column != NULL) {
        code = err_set(err, TARN_INVALID,
                       "change envelopes say what rows do: a column that says so too is not taken");
    }
done:
    return code;
}

static tarn_code open_inputs(row_source *s, const char *const *inputs, int32_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (kafka_is_location(inputs[0])) {
        return n == 1 ? kafka_open(&s->setup, inputs[0], &s->kafka, err)
                      : err_set(err, TARN_INVALID,
                                "%s is read alone, not with other inputs; it may name several "
                                "topics",
                                inputs[0]);
    }
    if (s->setup.kafka_balance) {
        return err_set(err, TARN_INVALID, "%s is no Kafka topic, whose partitions are shared",
                       inputs[0]);
    }
    if (s->setup.avro_envelope) {
        return err_set(err, TARN_INVALID, "debezium-avro is read from Kafka topics alone");
    }
    s->inputs = ARENA_ARRAY(&s->setup.arena, source_input, (size_t)n + 1);
    if (s->inputs == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        if (kafka_is_location(inputs[i])) {
            return err_set(err, TARN_INVALID, "%s is read alone, not with other inputs", inputs[i]);
        }
        s->n++;
        TRY(input_init(&s->inputs[i], &s->setup, inputs[i], err));
        if (s->setup.follow && s->inputs[i].kind == INPUT_FILE && n > 1) {
            return err_set(err, TARN_INVALID,
                           "%s cannot be followed beside other inputs: one file that grows, or "
                           "folders, can",
                           inputs[i]);
        }
    }
done:
    return code;
}

tarn_code source_open(tarn_env *env, const char *const *inputs, int32_t n,
                      const source_options *options, row_source **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (n < 1) {
        return err_set(err, TARN_INVALID, "a source needs an input");
    }
    row_source *s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->setup.env = env;
    arena_init(&s->setup.arena, env);
    TRY(copy_options(&s->setup, options, err));
    TRY(open_inputs(s, inputs, n, err));
    *out = s;
    s = NULL;
done:
    source_close(s);
    return code;
}

void source_close(row_source *s) {
    if (s == NULL) {
        return;
    }
    tarn_env *env = s->setup.env;
    kafka_close(s->kafka);
    for (int32_t i = 0; i < s->n; i++) {
        input_release(&s->inputs[i]);
    }
    arena_release(&s->setup.arena);
    env_free(env, s);
}

/* ---- rows ---- */

/* One look at every input that may have rows. */
static tarn_code look_round(row_source *s, int64_t timeout_ms, tarn_batch *out,
                            const uint8_t **kinds, tarn_error *err) {
    for (int32_t tried = 0; tried < s->n; tried++) {
        source_input *in = &s->inputs[s->at];
        tarn_code code = input_next(in, s->n == 1 ? timeout_ms : 0, out, kinds, err);
        if (code != TARN_OK || batch_rows(out) > 0) {
            return code;
        }
        if (!in->done && !s->setup.follow) { /* a pipe that has nothing now */
            return TARN_OK;
        }
        s->at = (s->at + 1) % s->n;
    }
    return TARN_OK;
}

static bool all_done(const row_source *s) {
    for (int32_t i = 0; i < s->n; i++) {
        if (!s->inputs[i].done) {
            return false;
        }
    }
    return true;
}

static tarn_code next_of_inputs(row_source *s, int64_t timeout_ms, tarn_batch *out,
                                const uint8_t **kinds, bool *ended, tarn_error *err) {
    int64_t waited = 0;
    for (;;) {
        int64_t left = timeout_ms < 0 ? -1 : timeout_ms > waited ? timeout_ms - waited : 0;
        tarn_code code = look_round(s, left, out, kinds, err);
        *ended = code == TARN_OK && batch_rows(out) == 0 && all_done(s);
        if (code != TARN_OK || batch_rows(out) > 0 || *ended) {
            return code;
        }
        code = env_check_cancel(s->setup.env, err);
        if (code != TARN_OK || (timeout_ms >= 0 && waited >= timeout_ms)) {
            return code;
        }
        int64_t pause = left >= 0 && left < LOOK_AGAIN_MS ? left : LOOK_AGAIN_MS;
        env_sleep_ms(s->setup.env, pause);
        waited += pause > 0 ? pause : 1;
    }
}

tarn_code source_next(row_source *s, int64_t timeout_ms, tarn_batch *out, const uint8_t **kinds,
                      bool *ended, tarn_error *err) {
    s->setup.pieces = timeout_ms >= 0;
    s->begun = true;
    memset(out, 0, sizeof *out);
    *kinds = NULL;
    *ended = false;
    return s->kafka != NULL ? kafka_next(s->kafka, timeout_ms, out, kinds, ended, err)
                            : next_of_inputs(s, timeout_ms, out, kinds, ended, err);
}

/* ---- offsets ---- */

tarn_code source_put_offsets(row_source *s, tarn_buf *out, tarn_error *err) {
    json_writer w;
    json_begin(&w, out, false, err);
    json_put_object(&w);
    if (s->kafka != NULL) {
        json_put_name(&w, STR("kafka"));
        kafka_put(s->kafka, &w);
    } else {
        json_put_name(&w, STR("inputs"));
        json_put_array(&w);
        for (int32_t i = 0; i < s->n; i++) {
            input_put(&s->inputs[i], &w);
        }
        json_end_array(&w);
    }
    json_end_object(&w);
    return json_end(&w);
}

static tarn_code seek_inputs(row_source *s, const json_value *list, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str path;
    int32_t i = 0;
    for (const json_value *v = list->first; v != NULL; v = v->next, i++) {
        TRY(input_read_name(&s->setup.arena, json_get(v, "path"), &path, err));
        if (path.data == NULL) {
            return err_set(err, TARN_INVALID, "the offsets name an input without a path");
        }
        if (i >= s->n || !str_is(path, s->inputs[i].path)) {
            return err_set(
                err, TARN_INVALID,
                "the offsets to go on from are of other inputs: of %.*s, where %s is given "
                "now",
                STR_ARG(path), i < s->n ? s->inputs[i].path : "nothing");
        }
        TRY(input_seek(&s->inputs[i], v, err));
    }
done:
    return code;
}

/* Comes again and again, so nothing of it is kept. */
static tarn_code seek_shared(row_source *s, tarn_str offsets, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    json_value *json = NULL;
    arena_init(&arena, s->setup.env);
    if (offsets.len > 0) {
        TRY(json_parse(&arena, offsets, "the offsets of a source", &json, err));
    }
    code = kafka_seek(s->kafka, json_get(json, "kafka"), err);
done:
    arena_release(&arena);
    return code;
}

tarn_code source_seek(row_source *s, tarn_str offsets, tarn_error *err) {
    tarn_code code = TARN_OK;
    json_value *json;
    if (s->setup.kafka_balance) {
        return seek_shared(s, offsets, err);
    }
    if (s->begun) {
        return err_set(err, TARN_INVALID, "a source is sought before rows are read of it");
    }
    code = json_parse(&s->setup.arena, offsets, "the offsets of a source", &json, err);
    if (code != TARN_OK) {
        return code;
    }
    const json_value *list = json_get(json, "inputs");
    const json_value *topics = json_get(json, "kafka");
    if (s->kafka != NULL && json_is(topics, JSON_OBJECT)) {
        return kafka_seek(s->kafka, topics, err);
    }
    if (s->kafka == NULL && json_is(list, JSON_ARRAY)) {
        return seek_inputs(s, list, err);
    }
    return err_set(err, TARN_INVALID, "the offsets are of other inputs: %s",
                   s->kafka != NULL ? "files, not Kafka topics" : "not files");
}

source_turn source_turn_of(const row_source *s) {
    return s->kafka != NULL && s->setup.kafka_balance ? kafka_turn(s->kafka) : SOURCE_READS;
}

tarn_code source_committed(row_source *s, tarn_str offsets, tarn_error *err) {
    tarn_arena arena;
    json_value *json;
    if (s->kafka == NULL) {
        return TARN_OK;
    }
    arena_init(&arena, s->setup.env);
    tarn_code code = json_parse(&arena, offsets, "the offsets of a source", &json, err);
    const json_value *topics = code == TARN_OK ? json_get(json, "kafka") : NULL;
    if (code == TARN_OK && json_is(topics, JSON_OBJECT)) {
        code = kafka_committed(s->kafka, topics, err);
    }
    arena_release(&arena);
    return code;
}

const char *source_name(const row_source *s) {
    if (s->kafka != NULL) {
        return kafka_name(s->kafka);
    }
    const source_input *in = &s->inputs[s->at];
    return in->file != NULL ? in->file : in->path;
}

int64_t source_taken(const row_source *s) {
    int64_t taken = s->kafka != NULL ? kafka_taken(s->kafka) : 0;
    for (int32_t i = 0; i < s->n; i++) {
        taken += input_taken(&s->inputs[i]);
    }
    return taken;
}

void source_progress(const row_source *s, int64_t *done, int64_t *total) {
    *done = 0;
    *total = 0;
    if (s->kafka != NULL) {
        kafka_progress(s->kafka, done, total);
        return;
    }
    for (int32_t i = 0; i < s->n; i++) {
        input_progress(&s->inputs[i], done, total);
    }
    *total = s->setup.follow ? -1 : *total;
}
