/* Fuzz target: bounds and partition values as bytes (table/value.h, spec Appendix D). The first
 * byte chooses the type; what is read is written and read the same again. rooms: table */
#include "fuzz.h"

#include "table/value.h"

static const char *const types[] = {
    "boolean",  "int",    "long",         "float",          "double",         "decimal(9, 2)",
    "date",     "time",   "timestamp",    "timestamptz",    "string",         "uuid",
    "fixed[5]", "binary", "timestamp_ns", "timestamptz_ns", "decimal(38, 0)", "decimal(1, 1)"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) {
        return 0;
    }
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    const char *name = types[data[0] % (sizeof types / sizeof *types)];
    const tarn_type *type = NULL;
    fuzz_check(type_from_text(&arena, str_make(name, strlen(name)), &type, &err) == TARN_OK);
    tarn_value value;
    tarn_code code = value_from_binary(type, str_make(data + 1, size - 1), &value, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        tarn_str binary;
        tarn_value again;
        tarn_buf out;
        buf_init(&out, env, 0);
        fuzz_check(value_to_text(&value, &out, &err) == TARN_OK);
        fuzz_check(value_to_binary(&arena, &value, &binary, &err) == TARN_OK);
        fuzz_check(value_from_binary(type, binary, &again, &err) == TARN_OK);
        fuzz_check(value_eq(&value, &again) && value_hash(&value) == value_hash(&again));
        buf_release(&out);
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
