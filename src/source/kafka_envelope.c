/* source/kafka_envelope.c - Debezium's envelopes as Avro: before, after and op of messages become
 * rows and their kinds. A delete without the row before it is known by its message's key, a datum
 * with a schema of its own. */
#include "source/kafka_avro_int.h"

#ifdef TARN_KAFKA

#include <stdio.h>

#include "table/row_kind.h"

typedef struct envelopes {
    kafka_source *kafka;
    tarn_view before, after, op;
    tarn_view *before_columns, *after_columns;
    int32_t n;
    const uint8_t *is_key;  /* one a column */
    tarn_view *key_columns; /* of one message's key, where it has them */
    bool *key_has;
    int64_t first; /* the batch's first message in the run */
    tarn_builder rows;
} envelopes;

static tarn_code put_image(envelopes *e, const tarn_view *columns, int64_t row, uint8_t kind,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < e->n; i++) {
        TRY(builder_view(&e->rows.children[i], &columns[i], row, 1, err));
    }
    TRY(builder_close(&e->rows, err));
    code = buf_append_char(&e->kafka->avro->kinds, (char)kind, err);
done:
    return code;
}

static tarn_code reject_change(envelopes *e, int64_t row, tarn_str reason, tarn_error *err) {
    return kafka_reject(e->kafka, e->kafka->n_given + row + 1,
                        kafka_avro_datum(e->kafka->avro, e->first + row), reason, err);
}

/* The name of a key column that the image lacks; data NULL: it has its key. */
static tarn_str null_key(const envelopes *e, const tarn_view *columns, int64_t row) {
    for (int32_t i = 0; i < e->n; i++) {
        if (e->is_key[i] && view_is_null(&columns[i], row)) {
            return e->kafka->avro->type->fields[i].name;
        }
    }
    return STR_NULL;
}

static tarn_code put_images(envelopes *e, int64_t row, int before_kind, int after_kind,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str lacks = before_kind >= 0 ? null_key(e, e->before_columns, row) : STR_NULL;
    if (lacks.data == NULL && after_kind >= 0) {
        lacks = null_key(e, e->after_columns, row);
    }
    if (lacks.data != NULL) {
        char words[256];
        int len = snprintf(words, sizeof words, "column %.*s: a key value was null or absent",
                           (int)(lacks.len < 128 ? lacks.len : 128), lacks.data);
        return reject_change(e, row, str_make(words, (size_t)len), err);
    }
    TRY(before_kind >= 0 ? put_image(e, e->before_columns, row, (uint8_t)before_kind, err)
                         : TARN_OK);
    code =
        after_kind >= 0 ? put_image(e, e->after_columns, row, (uint8_t)after_kind, err) : TARN_OK;
done:
    return code;
}

/* ---- deletes that are known by their key ---- */

static tarn_str key_of(const envelopes *e, int64_t row) {
    return kafka_avro_key(e->kafka->avro, e->first + row);
}

static bool is_delete_by_key(const envelopes *e, int64_t row) {
    return view_is_null(&e->before, row) && !view_is_null(&e->op, row) &&
           str_is(view_bytes(&e->op, row), "d");
}

/* Before anything is told: a registry that is away is asked again, for all of the batch. What else
 * is wrong with a schema is said with its message. */
static tarn_code get_key_schemas(const envelopes *e, int64_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int64_t i = 0; i < n && code != TARN_IO; i++) {
        tarn_str key = is_delete_by_key(e, i) ? key_of(e, i) : STR_NULL;
        tarn_str schema;
        int32_t id;
        if (kafka_avro_wire_id(key.data, key.len, &id)) {
            err_reset(err);
            code = registry_schema(e->kafka->avro->registry, id, &schema, err);
        }
    }
    if (code != TARN_IO) {
        err_reset(err);
    }
    return code == TARN_IO ? code : TARN_OK;
}

typedef struct message_key {
    avro_file *file;
    avro_scan *scan;
    tarn_batch row;
} message_key;

static void close_key(message_key *key) {
    batch_release(&key->row);
    avro_scan_close(key->scan);
    avro_close(key->file);
}

static tarn_code open_key(kafka_source *k, tarn_str bytes, message_key *out, tarn_error *err) {
    kafka_avro *a = k->avro;
    tarn_code code = TARN_OK;
    io_source *memory = NULL;
    tarn_str schema;
    int32_t id;
    if (!kafka_avro_wire_id(bytes.data, bytes.len, &id)) {
        return err_set(err, TARN_CORRUPT, "%s",
                       bytes.len == 0 ? "there is none"
                                      : "it does not begin with the number of a schema");
    }
    TRY(registry_schema(a->registry, id, &schema, err));
    TRY(kafka_avro_put_file(&a->key_file, schema, str_from(bytes, 5), err));
    TRY(io_source_memory(a->env, "its datum", a->key_file.data, a->key_file.len, &memory, err));
    code = avro_open(a->env, memory, &out->file, err);
    if (code != TARN_OK) {
        memory->close(memory);
        return code;
    }
    TRY(avro_scan_open(out->file, NULL, &out->scan, err));
    code = avro_scan_next(out->scan, &out->row, err);
    if (code == TARN_OK && batch_rows(&out->row) != 1) {
        code = err_set(err, TARN_CORRUPT, "its datum is not whole");
    }
done:
    return code;
}

/* The key's columns of the image; the others stay empty, which is null. */
static tarn_code find_key_columns(const envelopes *e, const tarn_batch *row, tarn_view *columns,
                                  bool *there, tarn_error *err) {
    const tarn_type *image = e->kafka->avro->type;
    for (int32_t i = 0; i < e->n; i++) {
        int32_t at = kafka_avro_field(row->type, image->fields[i].name);
        there[i] = false;
        if (at < 0) {
            if (e->is_key[i]) {
                return err_set(err, TARN_CORRUPT, "it has no column %.*s",
                               STR_ARG(image->fields[i].name));
            }
            continue;
        }
        if (!type_same_shape(row->type->fields[at].type, image->fields[i].type)) {
            return err_set(err, TARN_CORRUPT, "its column %.*s has another type than the row's",
                           STR_ARG(image->fields[i].name));
        }
        view_column(row, at, &columns[i]);
        there[i] = !view_is_null(&columns[i], 0);
        if (e->is_key[i] && !there[i]) {
            return err_set(err, TARN_CORRUPT, "its column %.*s is null",
                           STR_ARG(image->fields[i].name));
        }
    }
    return TARN_OK;
}

static tarn_code put_key(envelopes *e, const message_key *key, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(find_key_columns(e, &key->row, e->key_columns, e->key_has, err));
    for (int32_t i = 0; i < e->n; i++) {
        TRY(e->key_has[i] ? builder_view(&e->rows.children[i], &e->key_columns[i], 0, 1, err)
                          : builder_null(&e->rows.children[i], err));
    }
    TRY(builder_close(&e->rows, err));
    code = buf_append_char(&e->kafka->avro->kinds, (char)TARN_ROW_DELETE, err);
done:
    return code;
}

static tarn_code put_delete_by_key(envelopes *e, int64_t row, tarn_error *err) {
    message_key key;
    memset(&key, 0, sizeof key);
    tarn_code code = open_key(e->kafka, key_of(e, row), &key, err);
    code = code == TARN_OK ? put_key(e, &key, err) : code;
    close_key(&key);
    if (code == TARN_CORRUPT || code == TARN_UNSUPPORTED) {
        char words[256];
        int len =
            snprintf(words, sizeof words,
                     "a delete without the row before it, nor by its key: %.180s", err->message);
        err_reset(err);
        code = reject_change(e, row, str_make(words, (size_t)len), err);
    }
    return code;
}

/* ---- changes ---- */

static tarn_code put_change(envelopes *e, int64_t row, tarn_error *err) {
    bool had = !view_is_null(&e->before, row);
    bool has = !view_is_null(&e->after, row);
    tarn_str op = view_is_null(&e->op, row) ? STR("") : view_bytes(&e->op, row);
    if ((str_is(op, "c") || str_is(op, "r")) && has) {
        return put_images(e, row, -1, TARN_ROW_INSERT, err);
    }
    if (str_is(op, "u") && has) {
        return put_images(e, row, had ? TARN_ROW_UPDATE_BEFORE : -1, TARN_ROW_UPDATE_AFTER, err);
    }
    if (str_is(op, "d")) {
        return had ? put_images(e, row, TARN_ROW_DELETE, -1, err) : put_delete_by_key(e, row, err);
    }
    const char *reason = str_is(op, "t")
                             ? "op \"t\" (truncate) is not taken: it names no row"
                             : "the \"op\" was none of c, r, u, d, or its row was not there";
    return reject_change(e, row, str_of(reason), err);
}

/* The rows' type: after's columns, of which rows that delete may lack some. */
static tarn_code image_type(kafka_source *k, const tarn_type *envelope, envelopes *e,
                            tarn_error *err) {
    kafka_avro *a = k->avro;
    int32_t before = kafka_avro_field(envelope, STR("before"));
    int32_t after = kafka_avro_field(envelope, STR("after"));
    int32_t op = kafka_avro_field(envelope, STR("op"));
    if (before < 0 || after < 0 || op < 0 || envelope->fields[op].type->kind != TARN_STRING ||
        envelope->fields[after].type->kind != TARN_STRUCT ||
        !type_same_shape(envelope->fields[before].type, envelope->fields[after].type)) {
        return err_set(err, TARN_INVALID,
                       "%s: messages are no change envelopes (before, after, op)", k->location);
    }
    const tarn_type *image = envelope->fields[after].type;
    tarn_field *fields = ARENA_ARRAY(&a->arena, tarn_field, (size_t)image->n_fields + 1);
    e->before_columns = ARENA_ARRAY(&a->arena, tarn_view, (size_t)image->n_fields + 1);
    e->after_columns = ARENA_ARRAY(&a->arena, tarn_view, (size_t)image->n_fields + 1);
    const tarn_type *copy = type_copy(&a->arena, image);
    uint8_t *is_key = ARENA_ARRAY(&a->arena, uint8_t, (size_t)image->n_fields + 1);
    e->key_columns = ARENA_ARRAY(&a->arena, tarn_view, (size_t)image->n_fields + 1);
    e->key_has = ARENA_ARRAY(&a->arena, bool, (size_t)image->n_fields + 1);
    if (e->key_columns == NULL || e->key_has == NULL || is_key == NULL || fields == NULL ||
        copy == NULL || e->before_columns == NULL || e->after_columns == NULL) {
        return err_nomem(err);
    }
    e->n = image->n_fields;
    for (int32_t i = 0; i < e->n; i++) {
        fields[i] = copy->fields[i];
        fields[i].required = false;
        for (int32_t j = 0; j < k->setup->n_keys; j++) {
            is_key[i] |= str_eq(fields[i].name, k->setup->keys[j]);
        }
    }
    e->is_key = is_key;
    a->type = type_struct(&a->arena, fields, e->n);
    return a->type != NULL ? TARN_OK : err_nomem(err);
}

tarn_code kafka_envelopes_open(kafka_source *k, tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    kafka_avro *a = k->avro;
    envelopes e;
    tarn_batch rows;
    int64_t n = batch_rows(batch);
    memset(&e, 0, sizeof e);
    memset(&rows, 0, sizeof rows);
    e.kafka = k;
    e.first = a->given - n;
    buf_reset(&a->kinds);
    TRY(image_type(k, batch->type, &e, err));
    view_column(batch, kafka_avro_field(batch->type, STR("before")), &e.before);
    view_column(batch, kafka_avro_field(batch->type, STR("after")), &e.after);
    view_column(batch, kafka_avro_field(batch->type, STR("op")), &e.op);
    for (int32_t i = 0; i < e.n; i++) {
        view_child(&e.before, i, &e.before_columns[i]);
        view_child(&e.after, i, &e.after_columns[i]);
    }
    TRY(get_key_schemas(&e, n, err));
    TRY(builder_init(&e.rows, a->env, a->type, err));
    for (int64_t i = 0; i < n; i++) {
        TRY(put_change(&e, i, err));
    }
    TRY(builder_finish_batch(&e.rows, &rows, err));
    batch_release(batch);
    batch_move(batch, &rows);
done:
    builder_release(&e.rows);
    return code;
}

#endif
