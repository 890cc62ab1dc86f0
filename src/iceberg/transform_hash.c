/* iceberg/transform_hash.c - the bucket hash of one value (spec, Appendix B "32-bit Hash
 * Requirements"). Columns of integers hash inline (transform_int.h). */
#include "iceberg/transform_int.h"

bool transform_hash(const tarn_value *value, uint32_t *out) {
    uint8_t digits[16];
    switch (value->type->kind) {
    case TARN_INT:
    case TARN_DATE:
        *out = hash_long(value->as.i32);
        return true;
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
        *out = hash_long(value->as.i64);
        return true;
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        *out = hash_long(num_floor_div(value->as.i64, 1000)); /* as microseconds */
        return true;
    case TARN_DECIMAL:
        *out = num_murmur3(digits, num_put_be_i128(value->as.i128, digits));
        return true;
    case TARN_STRING:
    case TARN_UUID:
    case TARN_FIXED:
    case TARN_BINARY:
        *out = num_murmur3(value->as.bytes.data, value->as.bytes.len);
        return true;
    case TARN_BOOLEAN:
    case TARN_FLOAT:
    case TARN_DOUBLE:
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return false;
}
