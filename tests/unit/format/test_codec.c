/* Goal: every codec gives back what it was given, into exact and growing room, and whatever is done
 * to packed bytes ends in an error with bounded memory. Method: round trips over sizes and kinds of
 * data, damage at every byte, streams cut in small reads, failing allocations. */
#include "test.h"

#include "fail_alloc.h"
#include "format/codec.h"

#define N_KINDS 10

static void fill(uint8_t *data, size_t len, int kind) {
    uint32_t x = 12345;
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (uint8_t)(kind == 0 ? 'a' : kind == 1 ? (i / 7) % 31 : x >> 24);
    }
}

static void test_codec_round_trip(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 100, 4096, 300001};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    uint8_t *data = malloc(300001);
    uint8_t *back = malloc(300002);
    codec_ctx ctx;
    codec_ctx_init(&ctx, env);
    for (int k = 0; k < N_KINDS; k++) {
        for (size_t s = 0; s < 18; s++) {
            size_t len = sizes[s / 3];
            tarn_buf packed;
            tarn_buf grown;
            buf_init(&packed, env, 0);
            buf_init(&grown, env, 0);
            fill(data, len, (int)(s % 3));
            assert_ok(buf_append(&packed, "head", 4, &err)); /* compress appends */
            assert_ok(codec_compress(&ctx, (codec_kind)k, CODEC_LEVEL_DEFAULT, str_make(data, len),
                                     &packed, &err));
            tarn_str body = str_from(buf_str(&packed), 4);
            assert_ok(codec_decompress(&ctx, (codec_kind)k, body, back, len, &err));
            assert_memory_equal(back, data, len);
            assert_ok(codec_decompress_buf(&ctx, (codec_kind)k, body, &grown, &err));
            assert_int_equal(grown.len, len);
            assert_true(len == 0 || memcmp(grown.data, data, len) == 0);
            assert_code(codec_decompress(&ctx, (codec_kind)k, body, back, len + 1, &err),
                        TARN_CORRUPT);
            if (len > 0) {
                assert_code(codec_decompress(&ctx, (codec_kind)k, body, back, len - 1, &err),
                            TARN_CORRUPT);
            }
            buf_release(&packed);
            buf_release(&grown);
        }
    }
    codec_ctx_release(&ctx);
    free(data);
    free(back);
    test_env_done(env);
}

static void test_codec_limit(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    size_t len = 64u << 20;
    uint8_t *zeros = calloc(1, len);
    codec_ctx ctx;
    codec_ctx_init(&ctx, env);
    for (int k = 1; k < N_KINDS; k++) {
        tarn_buf packed;
        tarn_buf grown;
        buf_init(&packed, env, 0);
        assert_ok(codec_compress(&ctx, (codec_kind)k, CODEC_LEVEL_DEFAULT, str_make(zeros, len),
                                 &packed, &err));
        tarn_buf small;
        buf_init(&small, env, 0); /* without the room that packing had reserved */
        assert_ok(buf_append_str(&small, buf_str(&packed), &err));
        buf_release(&packed);
        uint64_t before = tarn_env_memory_now(env);
        buf_init(&grown, env, 1 << 20);
        assert_code(codec_decompress_buf(&ctx, (codec_kind)k, buf_str(&small), &grown, &err),
                    TARN_LIMIT);
        assert_true(grown.cap <= 1 << 20);
        assert_true(tarn_env_memory_now(env) < before + (3u << 20));
        buf_release(&grown);
        buf_release(&small);
    }
    codec_ctx_release(&ctx);
    free(zeros);
    test_env_done(env);
}

static void test_codec_damaged(void **state) {
    (void)state;
    tarn_env *env = test_env();
    uint8_t data[2000];
    uint8_t back[2000];
    codec_ctx ctx;
    codec_ctx_init(&ctx, env);
    fill(data, sizeof data, 1);
    for (int k = 0; k < N_KINDS; k++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_buf packed;
        buf_init(&packed, env, 0);
        assert_ok(codec_compress(&ctx, (codec_kind)k, CODEC_LEVEL_DEFAULT,
                                 str_make(data, sizeof data), &packed, &err));
        for (size_t at = 0; at < packed.len * 8; at++) {
            tarn_buf grown;
            buf_init(&grown, env, 1 << 20);
            packed.data[at / 8] ^= (uint8_t)(1u << (at % 8));
            tarn_code code =
                codec_decompress(&ctx, (codec_kind)k, buf_str(&packed), back, sizeof back, &err);
            assert_true(code == TARN_OK || code == TARN_CORRUPT);
            code = codec_decompress_buf(&ctx, (codec_kind)k, buf_str(&packed), &grown, &err);
            assert_int_not_equal(code, TARN_NOMEM);
            packed.data[at / 8] ^= (uint8_t)(1u << (at % 8));
            tarn_str part = str_sub(buf_str(&packed), 0, at / 8);
            if (k != CODEC_NONE) {
                assert_code(codec_decompress(&ctx, (codec_kind)k, part, back, sizeof back, &err),
                            TARN_CORRUPT);
            }
            buf_release(&grown);
        }
        buf_release(&packed);
    }
    codec_ctx_release(&ctx);
    test_env_done(env);
}

static void test_codec_names(void **state) {
    (void)state;
    codec_kind kind;
    for (int k = 0; k < N_KINDS; k++) {
        assert_true(codec_from_name(str_of(codec_name((codec_kind)k)), &kind));
        assert_int_equal(kind, k);
    }
    assert_true(codec_from_name(STR("ZStandard"), &kind) && kind == CODEC_ZSTD);
    assert_true(codec_from_name(STR("UNCOMPRESSED"), &kind) && kind == CODEC_NONE);
    assert_true(codec_from_name(STR("lz4"), &kind) && kind == CODEC_LZ4_RAW);
    assert_false(codec_from_name(STR("lzo"), &kind));
    assert_int_equal(codec_sniff("\x1f\x8b\x08\x00", 4), CODEC_GZIP);
    assert_int_equal(codec_sniff("\x28\xb5\x2f\xfd", 4), CODEC_ZSTD);
    assert_int_equal(codec_sniff("{\"a\"", 4), CODEC_NONE);
    assert_int_equal(codec_sniff("", 0), CODEC_NONE);
}

static void test_codec_levels(void **state) {
    (void)state;
    static const struct {
        codec_kind kind;
        int level;
        tarn_code code;
    } cases[] = {{CODEC_GZIP, 9, TARN_OK},         {CODEC_GZIP, 13, TARN_INVALID},
                 {CODEC_ZSTD, 19, TARN_OK},        {CODEC_ZSTD, -5, TARN_OK},
                 {CODEC_ZSTD, 99, TARN_INVALID},   {CODEC_BROTLI, 11, TARN_OK},
                 {CODEC_BROTLI, 12, TARN_INVALID}, {CODEC_BZIP2, 9, TARN_OK},
                 {CODEC_BZIP2, 10, TARN_INVALID},  {CODEC_SNAPPY, 77, TARN_OK}};
    tarn_env *env = test_env();
    codec_ctx ctx;
    codec_ctx_init(&ctx, env);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_buf packed;
        buf_init(&packed, env, 0);
        assert_code(
            codec_compress(&ctx, cases[i].kind, cases[i].level, STR("hello"), &packed, &err),
            cases[i].code);
        buf_release(&packed);
    }
    codec_ctx_release(&ctx);
    test_env_done(env);
}

/* Hadoop's writers put several packed chunks behind one total; old Parquet writers wrote no frame.
 */
static void test_codec_lz4_hadoop_forms(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    codec_ctx ctx;
    tarn_buf raw;
    tarn_buf framed;
    uint8_t back[10];
    codec_ctx_init(&ctx, env);
    buf_init(&raw, env, 0);
    buf_init(&framed, env, 0);
    assert_ok(codec_compress(&ctx, CODEC_LZ4_RAW, 0, STR("hello"), &raw, &err));
    uint8_t head[8] = {0, 0, 0, 10, 0, 0, 0, (uint8_t)raw.len};
    assert_ok(buf_append(&framed, head, 8, &err));
    assert_ok(buf_append_str(&framed, buf_str(&raw), &err));
    assert_ok(buf_append(&framed, head + 4, 4, &err));
    assert_ok(buf_append_str(&framed, buf_str(&raw), &err));
    assert_ok(codec_decompress(&ctx, CODEC_LZ4_HADOOP, buf_str(&framed), back, 10, &err));
    assert_memory_equal(back, "hellohello", 10);
    assert_ok(codec_decompress(&ctx, CODEC_LZ4_HADOOP, buf_str(&raw), back, 5, &err));
    assert_memory_equal(back, "hello", 5);
    buf_release(&raw);
    buf_release(&framed);
    codec_ctx_release(&ctx);
    test_env_done(env);
}

/* A stream over bytes that gives at most step at once. */
typedef struct slow_stream {
    io_stream base;
    tarn_str left;
    size_t step;
    bool closed;
} slow_stream;

static tarn_code read_slow(io_stream *base, void *dst, size_t cap, size_t *got, tarn_error *err) {
    slow_stream *s = (slow_stream *)base;
    size_t n = s->left.len < s->step ? s->left.len : s->step;
    (void)err;
    n = n < cap ? n : cap;
    memcpy(dst, s->left.data, n);
    s->left = str_from(s->left, n);
    *got = n;
    return TARN_OK;
}

static void close_slow(io_stream *base) {
    ((slow_stream *)base)->closed = true;
}

static tarn_code read_packed(tarn_env *env, codec_kind kind, tarn_str packed, size_t step,
                             tarn_buf *out, tarn_error *err) {
    slow_stream slow = {{env, "slow", read_slow, close_slow}, packed, step, false};
    io_stream *stream = NULL;
    uint8_t part[1000];
    size_t got = 1;
    tarn_code code = codec_stream_open(env, kind, &slow.base, &stream, err);
    if (code != TARN_OK) {
        return code;
    }
    while (code == TARN_OK && got > 0) {
        code = stream->read(stream, part, sizeof part, &got, err);
        if (code == TARN_OK) {
            code = buf_append(out, part, got, err);
        }
    }
    stream->close(stream);
    assert_true(slow.closed);
    return code;
}

static tarn_code write_packed(tarn_env *env, codec_kind kind, tarn_str data, size_t step,
                              tarn_buf *out, tarn_error *err) {
    io_sink *inner = NULL;
    io_sink *sink = NULL;
    tarn_code code = io_sink_memory(env, out, &inner, err);
    if (code != TARN_OK) {
        return code;
    }
    code = codec_sink_open(env, kind, CODEC_LEVEL_DEFAULT, inner, &sink, err);
    if (code != TARN_OK) {
        inner->abort(inner);
        return code;
    }
    while (data.len > 0 && code == TARN_OK) {
        tarn_str part = str_sub(data, 0, step);
        code = io_write(sink, part.data, part.len, err);
        data = str_from(data, part.len);
    }
    if (code != TARN_OK) {
        sink->abort(sink);
        return code;
    }
    return sink->finish(sink, err);
}

static void test_codec_streams(void **state) {
    (void)state;
    static const codec_kind kinds[] = {CODEC_NONE, CODEC_GZIP, CODEC_ZSTD};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    uint8_t *data = malloc(200000);
    codec_ctx ctx;
    codec_ctx_init(&ctx, env);
    fill(data, 200000, 2);
    for (size_t k = 0; k < 3; k++) {
        tarn_buf packed;
        tarn_buf back;
        buf_init(&packed, env, 0);
        buf_init(&back, env, 0);
        /* one member from a sink, one of nothing, one from the whole-buffer codec */
        assert_ok(write_packed(env, kinds[k], str_make(data, 150000), 777, &packed, &err));
        assert_ok(write_packed(env, kinds[k], STR(""), 777, &packed, &err));
        assert_ok(codec_compress(&ctx, kinds[k], CODEC_LEVEL_DEFAULT,
                                 str_make(data + 150000, 50000), &packed, &err));
        for (size_t step = 1; step < 200000; step = step * 10 + 7) {
            buf_reset(&back);
            assert_ok(read_packed(env, kinds[k], buf_str(&packed), step, &back, &err));
            assert_int_equal(back.len, 200000);
            assert_memory_equal(back.data, data, 200000);
        }
        buf_reset(&back);
        assert_ok(codec_decompress_buf(&ctx, kinds[k], buf_str(&packed), &back, &err));
        assert_int_equal(back.len, 200000);
        if (kinds[k] != CODEC_NONE) {
            buf_reset(&back);
            tarn_str cut = str_sub(buf_str(&packed), 0, packed.len - 5);
            assert_code(read_packed(env, kinds[k], cut, 4096, &back, &err), TARN_CORRUPT);
            packed.data[packed.len / 3] ^= 0x10;
            buf_reset(&back);
            assert_code(read_packed(env, kinds[k], buf_str(&packed), 4096, &back, &err),
                        TARN_CORRUPT);
        }
        buf_release(&packed);
        buf_release(&back);
    }
    tarn_buf none;
    buf_init(&none, env, 0);
    assert_code(read_packed(env, CODEC_SNAPPY, STR("x"), 1, &none, &err), TARN_UNSUPPORTED);
    assert_ok(read_packed(env, CODEC_GZIP, STR(""), 1, &none, &err));
    assert_int_equal(none.len, 0);
    buf_release(&none);
    codec_ctx_release(&ctx);
    free(data);
    test_env_done(env);
}

static tarn_code use_everything(tarn_env *env, tarn_error *err) {
    static const codec_kind kinds[] = {CODEC_GZIP, CODEC_ZSTD};
    tarn_code code = TARN_OK;
    codec_ctx ctx;
    tarn_buf packed;
    tarn_buf back;
    codec_ctx_init(&ctx, env);
    buf_init(&packed, env, 0);
    buf_init(&back, env, 0);
    for (int k = 0; k < N_KINDS && code == TARN_OK; k++) {
        buf_reset(&packed);
        buf_reset(&back);
        TRY(codec_compress(&ctx, (codec_kind)k, CODEC_LEVEL_DEFAULT, STR("some text"), &packed,
                           err));
        TRY(codec_decompress_buf(&ctx, (codec_kind)k, buf_str(&packed), &back, err));
    }
    for (size_t k = 0; k < 2; k++) {
        buf_reset(&packed);
        buf_reset(&back);
        TRY(write_packed(env, kinds[k], STR("some text"), 3, &packed, err));
        TRY(read_packed(env, kinds[k], buf_str(&packed), 5, &back, err));
    }
done:
    buf_release(&packed);
    buf_release(&back);
    codec_ctx_release(&ctx);
    return code;
}

static void test_codec_no_memory(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_code code = use_everything(env, &err);
        bool failed = plan.failed;
        if (code != (failed ? TARN_NOMEM : TARN_OK)) {
            fail_msg("allocation %llu: %s: %s", (unsigned long long)k, tarn_code_name(code),
                     err.message);
        }
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codec_round_trip), cmocka_unit_test(test_codec_limit),
        cmocka_unit_test(test_codec_damaged),    cmocka_unit_test(test_codec_names),
        cmocka_unit_test(test_codec_levels),     cmocka_unit_test(test_codec_lz4_hadoop_forms),
        cmocka_unit_test(test_codec_streams),    cmocka_unit_test(test_codec_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
