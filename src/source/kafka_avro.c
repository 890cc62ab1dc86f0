/* source/kafka_avro.c - Avro messages in the wire format of schema registries: a zero byte, the
 * schema's number in four bytes (biggest first), the datum.
 *
 * A run of messages of one schema becomes an Avro container file in memory, a block a message, so
 * that a message that is too short or too long is found; where one is bad, the run is decoded again
 * message by message, and the bad ones are told. Rows are messages, until kinds of rows or
 * envelopes take some out or give two. */
#include "source/kafka_avro_int.h"

#ifdef TARN_KAFKA

#include "source/kind_column.h"
#include "table/project.h"

#define RUN_MESSAGES 16384
#define RUN_BYTES    ((size_t)8 << 20)
#define SYNC         "tarn-kafka-block" /* 16 bytes */

void kafka_avro_free(kafka_avro *a) {
    if (a == NULL) {
        return;
    }
    tarn_env *env = a->env;
    avro_scan_close(a->scan);
    avro_close(a->avro);
    if (a->held != NULL) {
        rd_kafka_message_destroy(a->held);
    }
    registry_free(a->registry);
    buf_release(&a->blocks);
    buf_release(&a->ends);
    buf_release(&a->keys);
    buf_release(&a->key_ends);
    buf_release(&a->header);
    buf_release(&a->file);
    buf_release(&a->key_file);
    buf_release(&a->kinds);
    arena_release(&a->arena);
    env_free(env, a);
}

static tarn_code avro_begin(kafka_source *k, tarn_error *err) {
    tarn_env *env = k->setup->env;
    kafka_avro *a = env_calloc(env, 1, sizeof *a);
    if (a == NULL) {
        return err_nomem(err);
    }
    a->env = env;
    arena_init(&a->arena, env);
    buf_init(&a->blocks, env, 0);
    buf_init(&a->ends, env, 0);
    buf_init(&a->keys, env, 0);
    buf_init(&a->key_ends, env, 0);
    buf_init(&a->header, env, 0);
    buf_init(&a->file, env, 0);
    buf_init(&a->key_file, env, 0);
    buf_init(&a->kinds, env, 0);
    tarn_code code = registry_new(env, k->setup->schema_registry, &a->registry, err);
    if (code != TARN_OK) {
        kafka_avro_free(a);
        return code;
    }
    k->avro = a;
    return TARN_OK;
}

/* ---- a container file ---- */

static tarn_code put_long(tarn_buf *out, size_t value, tarn_error *err) {
    uint64_t v = (uint64_t)value << 1;
    tarn_code code = TARN_OK;
    for (; v >= 0x80 && code == TARN_OK; v >>= 7) {
        code = buf_append_char(out, (char)(v | 0x80), err);
    }
    return code == TARN_OK ? buf_append_char(out, (char)v, err) : code;
}

static tarn_code put_text(tarn_buf *out, tarn_str text, tarn_error *err) {
    tarn_code code = put_long(out, text.len, err);
    return code == TARN_OK ? buf_append_str(out, text, err) : code;
}

static tarn_code put_header(tarn_buf *out, tarn_str schema, tarn_error *err) {
    tarn_code code = TARN_OK;
    buf_reset(out);
    TRY(buf_append(out, "Obj\1", 4, err));
    TRY(put_long(out, 2, err));
    TRY(put_text(out, STR("avro.schema"), err));
    TRY(put_text(out, schema, err));
    TRY(put_text(out, STR("avro.codec"), err));
    TRY(put_text(out, STR("null"), err));
    TRY(put_long(out, 0, err));
    code = buf_append(out, SYNC, 16, err);
done:
    return code;
}

static tarn_code put_block(tarn_buf *out, tarn_str datum, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(put_long(out, 1, err));
    TRY(put_text(out, datum, err));
    code = buf_append(out, SYNC, 16, err);
done:
    return code;
}

tarn_code kafka_avro_put_file(tarn_buf *out, tarn_str schema, tarn_str datum, tarn_error *err) {
    tarn_code code = put_header(out, schema, err);
    return code == TARN_OK ? put_block(out, datum, err) : code;
}

/* Where the first i of them end. */
static size_t end_of(const tarn_buf *ends, int64_t i) {
    size_t end = 0;
    if (i > 0) {
        memcpy(&end, ends->data + (size_t)(i - 1) * sizeof end, sizeof end);
    }
    return end;
}

/* ---- runs ---- */

bool kafka_avro_wire_id(const void *bytes, size_t len, int32_t *id) {
    const uint8_t *p = bytes;
    if (p == NULL || len < 5 || p[0] != 0) {
        return false;
    }
    *id = (int32_t)((uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4]);
    return true;
}

/* A message without a datum: passed, or told, and done. */
static tarn_code pass_message(kafka_source *k, const rd_kafka_message_t *m, tarn_error *err) {
    int64_t number = k->n_given + (int64_t)(k->origins.len / sizeof(kafka_origin)) + 1;
    tarn_code code = kafka_hand_on(k, m, err);
    if (code == TARN_OK && m->payload != NULL) {
        code = kafka_reject(k, number, str_make(m->payload, m->len),
                            STR("the message did not begin with the number of a schema"), err);
    } else if (code == TARN_OK && kafka_is_lost_delete(k, m)) {
        code = kafka_reject(k, number, str_make(m->key, m->key_len), STR(KAFKA_LOST_DELETE), err);
    }
    if (code == TARN_OK) {
        kafka_given(k, number);
    }
    return code;
}

static tarn_code add_message(kafka_source *k, const rd_kafka_message_t *m, tarn_error *err) {
    kafka_avro *a = k->avro;
    tarn_str datum = str_make((const char *)m->payload + 5, m->len - 5);
    tarn_code code = TARN_OK;
    TRY(put_block(&a->blocks, datum, err));
    TRY(buf_append(&a->ends, &a->blocks.len, sizeof a->blocks.len, err));
    if (k->setup->avro_envelope) {
        TRY(buf_append(&a->keys, m->key, m->key != NULL ? m->key_len : 0, err));
        TRY(buf_append(&a->key_ends, &a->keys.len, sizeof a->keys.len, err));
    }
    a->n++;
    code = kafka_hand_on(k, m, err);
done:
    return code;
}

static tarn_code begin_run(kafka_source *k, int32_t id, tarn_error *err) {
    kafka_avro *a = k->avro;
    tarn_str schema;
    tarn_code code = registry_schema(a->registry, id, &schema, err);
    a->n = 0;
    a->given = 0;
    buf_reset(&a->blocks);
    buf_reset(&a->ends);
    buf_reset(&a->keys);
    buf_reset(&a->key_ends);
    arena_release(&a->arena);
    a->type = NULL;
    return code == TARN_OK ? put_header(&a->header, schema, err) : code;
}

/* The registry will be there again: told, and waited for. */
static tarn_code wait_for_registry(kafka_source *k, tarn_error *err) {
    kafka_trouble(k, "the schema registry", err->message);
    err_reset(err);
    tarn_code code = kafka_patience(k, err);
    if (code == TARN_OK) {
        env_sleep_ms(k->avro->env, 200);
    }
    return code;
}

/* Messages of one schema. No rows and no error: none came in time, or the registry is away. */
static tarn_code gather_run(kafka_source *k, int64_t timeout_ms, tarn_error *err) {
    kafka_avro *a = k->avro;
    tarn_code code = TARN_OK;
    int32_t run = -1;
    int32_t id = -1;
    a->n = 0;
    while (a->n < RUN_MESSAGES && a->blocks.len < RUN_BYTES) {
        if (a->held == NULL) {
            TRY(kafka_take(k, timeout_ms, &a->held, err));
        }
        if (a->held == NULL) {
            break;
        }
        bool good = kafka_avro_wire_id(a->held->payload, a->held->len, &id);
        if (a->n > 0 && (!good || id != run)) {
            break;
        }
        if (good && a->n == 0) {
            TRY(begin_run(k, id, err));
            kafka_came(k);
            run = id;
        }
        TRY(good ? add_message(k, a->held, err) : pass_message(k, a->held, err));
        rd_kafka_message_destroy(a->held);
        a->held = NULL;
        timeout_ms = 0;
    }
    a->step = a->n;
    a->ended = a->n == 0 && a->held == NULL && kafka_all_done(k);
done:
    return code == TARN_IO && a->n == 0 ? wait_for_registry(k, err) : code;
}

/* ---- decoding ---- */

static void close_part(kafka_avro *a) {
    avro_scan_close(a->scan);
    avro_close(a->avro);
    a->scan = NULL;
    a->avro = NULL;
}

/* Columns that the table lacks are not decoded, if they are to be ignored. */
static tarn_code select_columns(kafka_source *k, uint8_t **out, tarn_error *err) {
    kafka_avro *a = k->avro;
    const source_setup *s = k->setup;
    const tarn_type *type = avro_file_type(a->avro);
    *out = NULL;
    if (!s->file.ignore_unknown || s->root == NULL || s->avro_envelope) {
        return TARN_OK;
    }
    uint8_t *selected = ARENA_ARRAY(&a->arena, uint8_t, (size_t)type_node_count(type) + 1);
    if (selected == NULL) {
        return err_nomem(err);
    }
    int32_t node = 0;
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *f = &type->fields[i];
        int32_t span = type_field_span(f);
        bool wanted = type_child(s->root, f->name) != NULL ||
                      (s->kind_column != NULL && str_is(f->name, s->kind_column));
        memset(selected + node, wanted, (size_t)span);
        node += span;
    }
    *out = selected;
    return TARN_OK;
}

static tarn_code open_part(kafka_source *k, tarn_error *err) {
    kafka_avro *a = k->avro;
    tarn_code code = TARN_OK;
    io_source *memory = NULL;
    avro_scan_options options;
    uint8_t *selected;
    size_t from = end_of(&a->ends, a->given);
    size_t to = end_of(&a->ends, a->given + a->step);
    memset(&options, 0, sizeof options);
    buf_reset(&a->file);
    TRY(buf_append_str(&a->file, buf_str(&a->header), err));
    TRY(buf_append(&a->file, a->blocks.data + from, to - from, err));
    TRY(io_source_memory(a->env, k->location, a->file.data, a->file.len, &memory, err));
    code = avro_open(a->env, memory, &a->avro, err);
    if (code != TARN_OK) {
        memory->close(memory);
        return code;
    }
    TRY(select_columns(k, &selected, err));
    options.selected = selected;
    options.batch_rows = k->setup->file.batch_rows;
    code = avro_scan_open(a->avro, &options, &a->scan, err);
done:
    return code;
}

/* Of a block: one record (one byte), its length, the datum, the mark. */
tarn_str kafka_avro_datum(const kafka_avro *a, int64_t i) {
    size_t from = end_of(&a->ends, i) + 1;
    size_t end = end_of(&a->ends, i + 1) - 16;
    while (from < end && a->blocks.data[from] >= 0x80) {
        from++;
    }
    return str_make(a->blocks.data + from + 1, end - from - 1);
}

tarn_str kafka_avro_key(const kafka_avro *a, int64_t i) {
    size_t from = end_of(&a->key_ends, i);
    return str_make(a->keys.data + from, end_of(&a->key_ends, i + 1) - from);
}

/* Rows of the run, one a message. */
static tarn_code decode(kafka_source *k, tarn_batch *out, tarn_error *err) {
    kafka_avro *a = k->avro;
    tarn_code code = a->scan == NULL ? open_part(k, err) : TARN_OK;
    code = code == TARN_OK ? avro_scan_next(a->scan, out, err) : code;
    if (code == TARN_OK && batch_rows(out) > 0) {
        a->given += batch_rows(out);
        return TARN_OK;
    }
    close_part(a);
    if (code != TARN_CORRUPT) {
        return code;
    }
    if (a->step > 1) {
        a->step = 1;
        err_reset(err);
        return TARN_OK;
    }
    tarn_str raw = kafka_avro_datum(a, a->given);
    tarn_error why = *err;
    err_reset(err);
    a->given++;
    return kafka_reject(k, k->n_given + 1, raw, str_of(why.message), err);
}

/* ---- whether rows fit ---- */

/* Of a type, which is the rows' or, of envelopes, their images'. */
static tarn_code find_misfit(const source_setup *s, const tarn_type *type, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_projection *plan;
    project_options options;
    for (int32_t i = 0; i < type->n_fields && !s->file.ignore_unknown; i++) {
        tarn_str name = type->fields[i].name;
        if (type_child(s->root, name) == NULL &&
            (s->kind_column == NULL || !str_is(name, s->kind_column))) {
            return err_set(err, TARN_INVALID, "field %.*s was not in the schema", STR_ARG(name));
        }
    }
    memset(&options, 0, sizeof options);
    options.by_name = true;
    options.writes = true;
    options.file = "message";
    arena_init(&arena, s->env);
    code = project_plan(&arena, type, s->root, &options, &plan, err);
    arena_release(&arena);
    return code;
}

/* The table was made of the first rows. */
static tarn_code keep_first(source_setup *s, const tarn_type *type, tarn_error *err) {
    int32_t next_id = 1;
    const tarn_type *copy = type_copy(&s->arena, type);
    s->root = copy != NULL ? type_assign_ids(&s->arena, copy, &next_id) : NULL;
    return s->root != NULL ? TARN_OK : err_nomem(err);
}

/* Messages of a schema that came since may have what the table lacks, or other types: they are bad
 * ones, and the batch goes, unless the schema grows with them. */
static tarn_code check_fit(kafka_source *k, int64_t before, tarn_batch *batch, tarn_error *err) {
    source_setup *s = k->setup;
    kafka_avro *a = k->avro;
    const tarn_type *type = batch->type;
    tarn_error why = TARN_ERROR_INIT;
    if (s->grow) {
        return TARN_OK;
    }
    if (s->avro_envelope) {
        const tarn_field *image = type_child(type, STR("after"));
        type = image != NULL ? image->type : type;
        if (image == NULL || type->kind != TARN_STRUCT) {
            return TARN_OK;
        }
    }
    if (s->root == NULL) {
        return keep_first(s, type, err);
    }
    tarn_code code = find_misfit(s, type, &why);
    if (code == TARN_OK || code == TARN_NOMEM) {
        return code == TARN_OK ? TARN_OK : err_nomem(err);
    }
    code = TARN_OK;
    for (int64_t i = before; i < a->given && code == TARN_OK; i++) {
        code = kafka_reject(k, k->n_given + i - before + 1, kafka_avro_datum(a, i),
                            str_of(why.message), err);
    }
    batch_release(batch);
    return code;
}

/* ---- what rows do ---- */

int32_t kafka_avro_field(const tarn_type *type, tarn_str name) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        if (str_eq(type->fields[i].name, name)) {
            return i;
        }
    }
    return -1;
}

typedef struct bad_message {
    kafka_source *kafka;
    int64_t before; /* messages given before the batch */
} bad_message;

static tarn_code on_bad_kind(void *ctx, int64_t row, tarn_str raw, tarn_str reason,
                             tarn_error *err) {
    const bad_message *bad = ctx;
    return kafka_reject(bad->kafka, bad->before + row + 1, raw, reason, err);
}

static tarn_code check_rows(kafka_source *k, tarn_batch *batch, int32_t kind_at, tarn_error *err) {
    bad_message bad = {k, k->n_given};
    const kind_rules rules = {kind_at, k->setup->keys, k->setup->n_keys, on_bad_kind, &bad};
    return kind_column_read(k->avro->env, batch, &rules, &k->avro->kinds, err);
}

static tarn_code read_kind_column(kafka_source *k, tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    kafka_avro *a = k->avro;
    tarn_projection *plan;
    project_options options;
    tarn_batch rows;
    int32_t next_id = 1;
    memset(&rows, 0, sizeof rows);
    memset(&options, 0, sizeof options);
    const tarn_type *all = type_assign_ids(&a->arena, batch->type, &next_id);
    int32_t at = kafka_avro_field(batch->type, str_of(k->setup->kind_column));
    tarn_field *fields = ARENA_ARRAY(&a->arena, tarn_field, (size_t)batch->type->n_fields + 1);
    if (all == NULL || fields == NULL) {
        return err_nomem(err);
    }
    if (at < 0 || all->fields[at].type->kind != TARN_STRING) {
        return err_set(err, TARN_INVALID,
                       "%s: messages have no column %s of strings, which says "
                       "what rows do",
                       k->location, k->setup->kind_column);
    }
    TRY(check_rows(k, batch, at, err));
    int32_t n = 0;
    for (int32_t i = 0; i < all->n_fields; i++) {
        if (i != at) {
            fields[n++] = all->fields[i];
        }
    }
    a->type = type_struct(&a->arena, fields, n);
    if (a->type == NULL) {
        return err_nomem(err);
    }
    if (batch_rows(batch) > 0) {
        options.whole = true;
        options.file = k->location;
        TRY(project_plan(&a->arena, all, a->type, &options, &plan, err));
        TRY(project_apply(plan, a->env, batch, &rows, err));
        batch_release(batch);
        batch_move(batch, &rows);
    }
done:
    return code;
}

/* ---- giving ---- */

tarn_code kafka_avro_next(kafka_source *k, int64_t timeout_ms, tarn_batch *out,
                          const uint8_t **kinds, bool *ended, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    if (k->avro == NULL) {
        TRY(avro_begin(k, err));
    }
    kafka_avro *a = k->avro;
    while (batch_rows(&batch) == 0) {
        batch_release(&batch);
        if (a->given >= a->n) {
            close_part(a);
            TRY(gather_run(k, timeout_ms, err));
            *ended = a->ended;
        }
        if (a->n == 0) {
            break;
        }
        int64_t before = a->given;
        TRY(decode(k, &batch, err));
        if (batch_rows(&batch) > 0) {
            TRY(check_fit(k, before, &batch, err));
        }
        if (batch_rows(&batch) > 0 && k->setup->kind_column != NULL) {
            TRY(read_kind_column(k, &batch, err));
        } else if (batch_rows(&batch) > 0 && k->setup->avro_envelope) {
            code = kafka_envelopes_open(k, &batch, err);
            if (code == TARN_IO) { /* the same messages once more */
                a->given = before;
                a->step = a->n - before;
                close_part(a);
                batch_release(&batch);
                code = wait_for_registry(k, err);
                goto done;
            }
            if (code != TARN_OK) {
                goto done;
            }
        } else if (batch_rows(&batch) > 0) {
            TRY(check_rows(k, &batch, -1, err));
        }
        kafka_given(k, k->n_given + a->given - before);
    }
    if (batch_rows(&batch) > 0) {
        batch_move(out, &batch);
        *kinds = k->setup->kind_column != NULL || k->setup->avro_envelope ? a->kinds.data : NULL;
    }
done:
    batch_release(&batch);
    return code;
}

#endif
