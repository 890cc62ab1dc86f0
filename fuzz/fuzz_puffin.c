/* Fuzz target: Puffin footers, deletion vectors and their bitmaps (format/puffin/puffin.h,
 * table/positions.h). The first byte chooses the decoder; what is read is written and read the same
 * again. rooms: format */
#include "fuzz.h"

#include "format/puffin/puffin.h"

/* A set of few bytes may hold billions of positions: such a one is not listed. */
#define LIST_MAX (1 << 20)

static void read_footer(tarn_env *env, const uint8_t *data, size_t size) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    io_source *source = NULL;
    puffin_footer footer;
    arena_init(&arena, env);
    fuzz_check(io_source_memory(env, "input", data, size, &source, &err) == TARN_OK);
    tarn_code code = puffin_read_footer(&arena, source, &footer, &err);
    fuzz_check_error(code, &err);
    for (int32_t i = 0; code == TARN_OK && i < footer.n_blobs; i++) {
        const puffin_blob *blob = &footer.blobs[i];
        fuzz_check(blob->offset >= 4 && blob->length >= 0);
        fuzz_check((uint64_t)blob->offset + (uint64_t)blob->length <= size);
        uint8_t sum = 0;
        for (int32_t k = 0; k < blob->n_properties; k++) {
            sum = (uint8_t)(sum + blob->properties[k].key.len + blob->properties[k].value.len);
        }
        (void)sum;
    }
    source->close(source);
    arena_release(&arena);
}

static void check_set(tarn_env *env, const tarn_positions *p) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_positions *again = NULL;
    tarn_buf bytes;
    uint8_t keep[64];
    int64_t n = positions_count(p);
    int64_t max = positions_max(p);
    buf_init(&bytes, env, 0);
    fuzz_check((n == 0) == (max == -1));
    fuzz_check(n == 0 || positions_has(p, max));
    memset(keep, 0xff, sizeof keep);
    fuzz_check(positions_clear(p, n == 0 ? 0 : max, 512, keep) == (n != 0));
    fuzz_check(vector_encode(p, &bytes, &err) == TARN_OK);
    fuzz_check(vector_decode(env, buf_str(&bytes), n, &again, &err) == TARN_OK);
    if (n <= LIST_MAX) {
        int64_t *list = env_alloc(env, (size_t)(n + 1) * sizeof *list);
        int64_t *list_again = env_alloc(env, (size_t)(n + 1) * sizeof *list);
        fuzz_check(list != NULL && list_again != NULL);
        positions_list(p, list);
        positions_list(again, list_again);
        fuzz_check(memcmp(list, list_again, (size_t)n * sizeof *list) == 0);
        for (int64_t i = 1; i < n; i++) {
            fuzz_check(list[i - 1] < list[i]);
        }
        env_free(env, list);
        env_free(env, list_again);
    }
    positions_free(again);
    buf_release(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) {
        return 0;
    }
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_positions *p = NULL;
    tarn_code code = TARN_OK;
    if (data[0] % 3 == 0) {
        read_footer(env, data + 1, size - 1);
    } else if (data[0] % 3 == 1) {
        code = vector_decode(env, str_make(data + 1, size - 1), -1, &p, &err);
    } else {
        code = positions_read(env, data + 1, size - 1, &p, &err);
    }
    fuzz_check_error(code, &err);
    if (p != NULL) {
        check_set(env, p);
    }
    positions_free(p);
    fuzz_env_done(env);
    return 0;
}
