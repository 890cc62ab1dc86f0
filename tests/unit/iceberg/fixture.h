/* tests/unit/iceberg/fixture.h - reading test inputs: whole files, lines of gzipped NDJSON. */
#ifndef TEST_ICEBERG_FIXTURE_H
#define TEST_ICEBERG_FIXTURE_H

#include "test.h"

#include "base/arena.h"
#include "base/json.h"
#include "format/codec.h"

static inline bool fixture_exists(const char *path) {
    FILE *f = fopen(path, "rb");
    if (f != NULL) {
        fclose(f);
    }
    return f != NULL;
}

/* The bytes of a file, in the arena. */
static inline tarn_str fixture_read(tarn_arena *arena, const char *path) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fail_msg("%s could not be opened", path);
    }
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *data = arena_alloc(arena, (size_t)size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, f), size);
    data[size] = '\0';
    fclose(f);
    return str_make(data, (size_t)size);
}

static inline tarn_str fixture_unpack(tarn_arena *arena, tarn_str packed) {
    tarn_error err = TARN_ERROR_INIT;
    codec_ctx ctx;
    tarn_buf buf;
    codec_ctx_init(&ctx, arena->env);
    buf_init(&buf, arena->env, 64u << 20);
    assert_ok(codec_decompress_buf(&ctx, CODEC_GZIP, packed, &buf, &err));
    tarn_str text = arena_str(arena, buf_str(&buf));
    buf_release(&buf);
    codec_ctx_release(&ctx);
    return text;
}

static inline json_value *fixture_json(tarn_arena *arena, tarn_str text) {
    tarn_error err = TARN_ERROR_INIT;
    json_value *json = NULL;
    assert_ok(json_parse(arena, text, "fixture", &json, &err));
    return json;
}

static inline tarn_str fixture_str(const json_value *object, const char *name) {
    tarn_str s = STR_NULL;
    assert_true(json_str(json_get(object, name), &s));
    return s;
}

/* An env whose allocator fails once, after `left` more calls. */
typedef struct faulty {
    int64_t left;
    tarn_allocator allocator;
} faulty;
static inline void *faulty_alloc(void *ctx, size_t size) {
    faulty *f = ctx;
    return f->left-- == 0 ? NULL : malloc(size);
}
static inline void *faulty_realloc(void *ctx, void *ptr, size_t old_size, size_t size) {
    faulty *f = ctx;
    (void)old_size;
    return f->left-- == 0 ? NULL : realloc(ptr, size);
}
static inline void faulty_free(void *ctx, void *ptr, size_t size) {
    (void)ctx;
    (void)size;
    free(ptr);
}
static inline tarn_env *faulty_env(faulty *f) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = NULL;
    f->left = INT64_MAX;
    f->allocator = (tarn_allocator){f, faulty_alloc, faulty_realloc, faulty_free};
    options.allocator = &f->allocator;
    assert_ok(tarn_env_new(&options, &env, &err));
    return env;
}

#endif
