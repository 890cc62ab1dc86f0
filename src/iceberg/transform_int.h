/* iceberg/transform_int.h - what the transform files share: the arithmetic of one value, inline so
 * that column loops hold no calls. */
#ifndef ICEBERG_TRANSFORM_INT_H
#define ICEBERG_TRANSFORM_INT_H

#include "base/num.h"
#include "base/time.h"
#include "iceberg/transform.h"

/* Hash of spec Appendix B for one long (ints, dates and times hash as longs). */
static inline uint32_t hash_long(int64_t value) {
    uint32_t h = 0;
    uint64_t bits = (uint64_t)value;
    for (int i = 0; i < 2; i++) {
        uint32_t k = (uint32_t)(bits >> (32 * i));
        k *= 0xcc9e2d51u;
        k = (k << 15) | (k >> 17);
        k *= 0x1b873593u;
        h ^= k;
        h = (h << 13) | (h >> 19);
        h = h * 5 + 0xe6546b64u;
    }
    h ^= 8;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    return h;
}

static inline int32_t bucket_of(uint32_t hash, int32_t n) {
    return (int32_t)((hash & 0x7fffffffu) % (uint32_t)n);
}

/* Microseconds per day or the like of a timestamp kind; 0 for kinds that are none. */
static inline int64_t units_per_second(tarn_kind kind) {
    if (kind == TARN_TIMESTAMP || kind == TARN_TIMESTAMPTZ) {
        return INT64_C(1000000);
    }
    return kind == TARN_TIMESTAMP_NS || kind == TARN_TIMESTAMPTZ_NS ? INT64_C(1000000000) : 0;
}

/* Years (or months) since 1970 of a day, by floor (B02). */
static inline int64_t years_of_days(int64_t days) {
    int64_t year;
    int32_t month, day;
    time_civil_from_days(days, &year, &month, &day);
    return year - 1970;
}
static inline int64_t months_of_days(int64_t days) {
    int64_t year;
    int32_t month, day;
    time_civil_from_days(days, &year, &month, &day);
    return (year - 1970) * 12 + month - 1;
}

/* The hash of one non-null value; false when the type has none. */
bool transform_hash(const tarn_value *value, uint32_t *out);
/* The lowest value of a kind that truncates within the kind, as long; only for int and long. */
static inline int64_t kind_min(tarn_kind kind) {
    return kind == TARN_INT ? INT32_MIN : INT64_MIN;
}
static inline int64_t kind_max(tarn_kind kind) {
    return kind == TARN_INT ? INT32_MAX : INT64_MAX;
}
/* Truncates v by width; false when that lies below the kind's minimum (B01). */
static inline bool truncate_long(int64_t v, int32_t width, int64_t min, int64_t *out) {
    int64_t rest = num_floor_mod(v, width);
    int64_t room = (int64_t)((uint64_t)v - (uint64_t)min) < 0 ? INT64_MAX : v - min;
    if (rest > room) {
        return false;
    }
    *out = v - rest;
    return true;
}
static inline tarn_int128 truncate_i128(tarn_int128 v, int32_t width) {
    tarn_int128 rest = v % width;
    return v - (rest < 0 ? rest + width : rest);
}

#endif
