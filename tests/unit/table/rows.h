/* tests/unit/table/rows.h - batches from lines of JSON and back, for this room's tests. */
#ifndef TABLE_TEST_ROWS_H
#define TABLE_TEST_ROWS_H

#include "test.h"

#include "table/batch.h"

static inline tarn_code rows_append(tarn_builder *b, tarn_arena *arena, const json_value *json,
                                    tarn_error *err) {
    const tarn_type *type = b->type;
    tarn_code code = TARN_OK;
    if (json == NULL || json->kind == JSON_NULL) {
        return builder_null(b, err);
    }
    if (type->kind == TARN_STRUCT) {
        for (int32_t i = 0; i < type->n_fields; i++) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", STR_ARG(type->fields[i].name));
            TRY(rows_append(&b->children[i], arena, json_get(json, name), err));
        }
        return builder_close(b, err);
    }
    if (type->kind == TARN_LIST || type->kind == TARN_MAP) {
        for (int32_t part = 0; part < b->n_children; part++) {
            const json_value *items =
                type->kind == TARN_LIST ? json : json_get(json, part == 0 ? "keys" : "values");
            for (const json_value *item = items->first; item != NULL; item = item->next) {
                TRY(rows_append(&b->children[part], arena, item, err));
            }
        }
        return builder_close(b, err);
    }
    tarn_value v;
    TRY(value_from_json(arena, type, json, &v, err));
    return builder_value(b, &v, err);
done:
    return code;
}

/* lines: JSON objects separated by newlines. */
static inline tarn_code rows_read(tarn_env *env, tarn_arena *arena, const tarn_type *type,
                                  const char *lines, tarn_batch *out, tarn_error *err) {
    tarn_builder b;
    tarn_str rest = str_of(lines);
    tarn_str line;
    tarn_code code = builder_init(&b, env, type, err);
    if (code != TARN_OK) {
        return code;
    }
    while (str_split(&rest, '\n', &line)) {
        json_value *json = NULL;
        if (line.len > 0) {
            TRY(json_parse(arena, line, "rows", &json, err));
            TRY(rows_append(&b, arena, json, err));
        }
    }
    TRY(builder_finish_batch(&b, out, err));
done:
    builder_release(&b);
    return code;
}

static inline tarn_code rows_write(const tarn_batch *batch, tarn_buf *out, tarn_error *err) {
    tarn_view root;
    view_array(&batch->array, batch->type, &root);
    root.validity = NULL;
    for (int64_t i = 0; i < batch_rows(batch); i++) {
        json_writer w;
        json_begin(&w, out, false, err);
        view_put_json(&root, i, &w);
        tarn_code code = json_end(&w);
        if (code == TARN_OK) {
            code = buf_append_char(out, '\n', err);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static inline void rows_check(tarn_env *env, const tarn_batch *batch, const char *want) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    buf_init(&buf, env, 0);
    assert_ok(batch_validate(batch, &err));
    assert_ok(rows_write(batch, &buf, &err));
    assert_ok(buf_append_char(&buf, '\0', &err));
    assert_string_equal((const char *)buf.data, want);
    buf_release(&buf);
}

/* An allocator that fails from the n-th call on, once. */
typedef struct failing_memory {
    int64_t left; /* calls until the failure */
    bool failed;
} failing_memory;

static inline void *failing_alloc(void *ctx, size_t n) {
    failing_memory *m = ctx;
    if (m->left-- == 0) {
        m->failed = true;
        return NULL;
    }
    return malloc(n);
}
static inline void *failing_realloc(void *ctx, void *p, size_t old, size_t n) {
    failing_memory *m = ctx;
    (void)old;
    if (m->left-- == 0) {
        m->failed = true;
        return NULL;
    }
    return realloc(p, n);
}
static inline void failing_free(void *ctx, void *p, size_t n) {
    (void)ctx;
    (void)n;
    free(p);
}

/* Runs body with the 0th, 1st, ... allocation failing until it goes through; each failure must be
 * NOMEM and leave nothing. */
static inline void each_failure(tarn_code (*body)(tarn_env *env, tarn_error *err)) {
    for (int64_t n = 0;; n++) {
        failing_memory memory = {.left = INT64_MAX};
        tarn_allocator allocator = {&memory, failing_alloc, failing_realloc, failing_free};
        tarn_env_options options = TARN_ENV_OPTIONS_INIT;
        tarn_env *env = NULL;
        tarn_error err = TARN_ERROR_INIT;
        options.threads = 1;
        options.allocator = &allocator;
        assert_ok(tarn_env_new(&options, &env, &err));
        memory.left = n;
        tarn_code code = body(env, &err);
        assert_int_equal(tarn_env_memory_now(env), 0);
        memory.left = INT64_MAX;
        tarn_env_free(env);
        if (!memory.failed) {
            assert_int_equal(code, TARN_OK);
            return;
        }
        assert_int_equal(code, TARN_NOMEM);
    }
}

#endif
