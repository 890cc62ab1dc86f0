/* encode_dict.h - the dictionary of one column chunk: values to indices in the order of first
 * sight. The values are kept as the dictionary page will hold them (PLAIN).
 *
 * Invariants: 1 count values lie in values; for byte arrays value i begins (with its length) at
 * starts[i]; 2 at most half of the slots are taken, and a slot holds a tag of the value's hash in
 * its high half and index + 1 in its low half; 3 no probe is longer than a fixed number of steps:
 * when one would be, the dictionary says it is full, so hostile values cannot make it slow. */
#ifndef FORMAT_PARQUET_ENCODE_DICT_H
#define FORMAT_PARQUET_ENCODE_DICT_H

#include "base/buf.h"
#include "base/num.h"

typedef struct encode_dict {
    tarn_env *env;
    size_t width;     /* of a fixed value; 0: byte arrays */
    size_t max_bytes; /* of values */
    uint32_t count;
    uint32_t n_slots; /* a power of two, or 0 before the first value */
    uint64_t *slots;
    tarn_buf values;
    tarn_buf starts; /* byte arrays: uint32_t each */
} encode_dict;

/* Allocates nothing yet. */
void encode_dict_init(encode_dict *dict, tarn_env *env, size_t width, size_t max_bytes);
void encode_dict_release(encode_dict *dict);
void encode_dict_reset(encode_dict *dict); /* empty again; gives big tables back */
size_t encode_dict_memory(const encode_dict *dict);

/* Indices of n values. *done is n, or less when the dictionary got full at that value. */
tarn_code encode_dict_fixed(encode_dict *dict, const uint8_t *values, size_t n, uint32_t *indices,
                            size_t *done, tarn_error *err) TARN_MUST_USE;
tarn_code encode_dict_bytes(encode_dict *dict, const int32_t *offsets, const uint8_t *bytes,
                            size_t n, uint32_t *indices, size_t *done,
                            tarn_error *err) TARN_MUST_USE;
/* The values of n indices as PLAIN, appended. */
tarn_code encode_dict_expand(const encode_dict *dict, const uint32_t *indices, size_t n,
                             tarn_buf *out, tarn_error *err) TARN_MUST_USE;
static inline tarn_str encode_dict_value(const encode_dict *dict, uint32_t index) {
    if (dict->width > 0) {
        return str_make(dict->values.data + index * dict->width, dict->width);
    }
    const uint8_t *p =
        dict->values.data + ((const uint32_t *)(const void *)dict->starts.data)[index];
    return str_make(p + 4, num_load_u32(p));
}

#endif
