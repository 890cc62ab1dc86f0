/* source/kind_column.c - see kind_column.h. */
#include "source/kind_column.h"

#include "base/json.h"
#include "table/row_kind.h"

static tarn_code row_json(const tarn_batch *batch, int64_t row, tarn_buf *out, tarn_error *err) {
    json_writer w;
    tarn_view view;
    json_begin(&w, out, false, err);
    json_put_object(&w);
    for (int32_t i = 0; i < batch->type->n_fields; i++) {
        view_column(batch, i, &view);
        json_put_name(&w, batch->type->fields[i].name);
        view_put_json(&view, row, &w);
    }
    json_end_object(&w);
    return json_end(&w);
}

typedef struct row_check {
    tarn_env *env;
    const tarn_batch *batch;
    const kind_rules *rules;
    tarn_view kinds;
    tarn_view *keys;
    const tarn_field **key_fields;
    int32_t n_keys;
} row_check;

static tarn_code find_keys(row_check *c, tarn_error *err) {
    const tarn_type *type = c->batch->type;
    c->keys = env_calloc(c->env, (size_t)c->rules->n_keys + 1, sizeof *c->keys);
    c->key_fields = env_calloc(c->env, (size_t)c->rules->n_keys + 1, sizeof *c->key_fields);
    if (c->keys == NULL || c->key_fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t k = 0; k < c->rules->n_keys; k++) {
        for (int32_t i = 0; i < type->n_fields; i++) {
            if (str_eq(type->fields[i].name, c->rules->keys[k])) {
                view_column(c->batch, i, &c->keys[c->n_keys]);
                c->key_fields[c->n_keys++] = &type->fields[i];
                break;
            }
        }
    }
    return TARN_OK;
}

/* The first key column that the row lacks; NULL: none. */
static const tarn_field *find_null_key(const row_check *c, int64_t row) {
    for (int32_t i = 0; i < c->n_keys; i++) {
        if (view_is_null(&c->keys[i], row)) {
            return c->key_fields[i];
        }
    }
    return NULL;
}

static tarn_code tell(const row_check *c, int64_t row, const tarn_field *key, tarn_error *err) {
    tarn_code code = TARN_OK;
    const kind_rules *rules = c->rules;
    tarn_buf raw;
    tarn_buf reason;
    buf_init(&raw, c->env, 0);
    buf_init(&reason, c->env, 0);
    TRY(row_json(c->batch, row, &raw, err));
    if (key != NULL) {
        TRY(buf_printf(&reason, err, "column %.*s: a key value was null or absent",
                       STR_ARG(key->name)));
    } else if (view_is_null(&c->kinds, row)) {
        TRY(buf_printf(&reason, err, "column %.*s: the kind of the row was null",
                       STR_ARG(c->batch->type->fields[rules->at].name)));
    } else {
        TRY(buf_printf(
            &reason, err, "column %.*s: \"%.*s\" was no kind of row (c r u d, I U D, +I -U +U -D)",
            STR_ARG(c->batch->type->fields[rules->at].name), STR_ARG(view_bytes(&c->kinds, row))));
    }
    code = rules->reject(rules->ctx, row, buf_str(&raw), buf_str(&reason), err);
done:
    buf_release(&raw);
    buf_release(&reason);
    return code;
}

static bool read_kind(const row_check *c, int64_t row, uint8_t *kind) {
    *kind = TARN_ROW_INSERT;
    return c->rules->at < 0 ||
           (!view_is_null(&c->kinds, row) && row_kind_parse(view_bytes(&c->kinds, row), kind));
}

/* Good rows into selection, their kinds into kinds. */
static tarn_code check_rows(row_check *c, tarn_buf *kinds, uint8_t *selection, int64_t *n_good,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t rows = batch_rows(c->batch);
    bool has_kinds = c->rules->at >= 0;
    if (has_kinds) {
        buf_reset(kinds);
        TRY(buf_reserve(kinds, (size_t)rows, err));
        view_column(c->batch, c->rules->at, &c->kinds);
    }
    for (int64_t i = 0; i < rows; i++) {
        uint8_t kind;
        const tarn_field *lacks = find_null_key(c, i);
        if (lacks != NULL || !read_kind(c, i, &kind)) {
            TRY(tell(c, i, lacks, err));
            continue;
        }
        if (has_kinds) {
            kinds->data[kinds->len++] = kind;
        }
        bit_set(selection, i);
        ++*n_good;
    }
done:
    return code;
}

tarn_code kind_column_read(tarn_env *env, tarn_batch *batch, const kind_rules *rules,
                           tarn_buf *kinds, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t rows = batch_rows(batch);
    int64_t n_good = 0;
    row_check c;
    tarn_batch kept;
    uint8_t *selection = NULL;
    memset(&kept, 0, sizeof kept);
    memset(&c, 0, sizeof c);
    c.env = env;
    c.batch = batch;
    c.rules = rules;
    TRY(find_keys(&c, err));
    if (rules->at < 0 && c.n_keys == 0) {
        goto done;
    }
    selection = env_calloc(env, bit_bytes(rows) + 8, 1);
    if (selection == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(check_rows(&c, kinds, selection, &n_good, err));
    if (n_good < rows) {
        TRY(batch_filter(env, batch, selection, &kept, err));
        batch_release(batch);
        batch_move(batch, &kept);
    }
done:
    env_free(env, selection);
    env_free(env, c.keys);
    env_free(env, c.key_fields);
    return code;
}
