/* iceberg/metadata_int.h - small helpers that the readers and writers of this room's JSON share. */
#ifndef ICEBERG_METADATA_INT_H
#define ICEBERG_METADATA_INT_H

#include "iceberg/metadata.h"

/* A member whose null means the same as its absence (B26). */
static inline const json_value *json_member(const json_value *object, const char *name) {
    const json_value *v = json_get(object, name);
    return v != NULL && v->kind == JSON_NULL ? NULL : v;
}

/* CORRUPT "<where>: "<name>" was missing" or "... was not a whole number". where names the document
 * and the place in it. */
tarn_code json_need_i64(const json_value *object, const char *name, const char *where, int64_t *out,
                        tarn_error *err) TARN_MUST_USE;
tarn_code json_need_i32(const json_value *object, const char *name, const char *where, int32_t *out,
                        tarn_error *err) TARN_MUST_USE;
tarn_code json_need_str(const json_value *object, const char *name, const char *where,
                        tarn_str *out, tarn_error *err) TARN_MUST_USE;
/* Absent or null: fallback. */
tarn_code json_want_i64(const json_value *object, const char *name, const char *where,
                        int64_t fallback, int64_t *out, tarn_error *err) TARN_MUST_USE;
tarn_code json_want_i32(const json_value *object, const char *name, const char *where,
                        int32_t fallback, int32_t *out, tarn_error *err) TARN_MUST_USE;
tarn_code json_want_array(const json_value *object, const char *name, const char *where,
                          const json_value **out, tarn_error *err) TARN_MUST_USE; /* or NULL */

/* Members of object that are not among known (NULL-ended), as an object of their own; NULL when
 * there are none. */
tarn_code json_unknown(tarn_arena *arena, const json_value *object, const char *const *known,
                       const json_value **out, tarn_error *err) TARN_MUST_USE;
void json_put_members(json_writer *w, const json_value *object); /* takes NULL */

/* A document's tree; text may be gzip (found by its magic). */
tarn_code metadata_parse_json(tarn_arena *arena, tarn_str text, const char *what, json_value **out,
                              tarn_error *err) TARN_MUST_USE;

/* Keys alone, from an array of strings: INVALID where one is none. */
tarn_code properties_keys_from_json(tarn_arena *arena, const json_value *json, tarn_properties *out,
                                    tarn_error *err) TARN_MUST_USE;
/* old with the pairs of set put over it, in old's order and then set's; old without keys. */
tarn_code properties_with(tarn_arena *arena, const tarn_properties *old, const tarn_properties *set,
                          tarn_properties *out, tarn_error *err) TARN_MUST_USE;
tarn_code properties_without(tarn_arena *arena, const tarn_properties *old,
                             const tarn_properties *keys, tarn_properties *out,
                             tarn_error *err) TARN_MUST_USE;

tarn_code ref_from_json(const json_value *json, tarn_str name, tarn_ref *out,
                        tarn_error *err) TARN_MUST_USE;
void ref_put_members(const tarn_ref *ref, json_writer *w); /* without braces */

/* The legacy array of fields without spec id (v1 "partition-spec"). */
tarn_code spec_fields_from_json(tarn_arena *arena, const json_value *fields, tarn_spec *out,
                                tarn_error *err) TARN_MUST_USE;
void spec_put_fields(const tarn_spec *spec, json_writer *w);
void transform_put_json(const tarn_transform *transform, json_writer *w);

#endif
