/* iceberg/transform.c - the names of transforms, what types they take and give, and one value
 * through them (spec, "Partition Transforms"). Columns are in transform_column.c, filters in
 * transform_project.c. */
#include "iceberg/transform.h"

#include "base/limits.h"
#include "iceberg/transform_int.h"

static const struct {
    const char *name;
    transform_kind kind;
} plain_names[] = {
    {"identity", TRANSFORM_IDENTITY}, {"year", TRANSFORM_YEAR}, {"month", TRANSFORM_MONTH},
    {"day", TRANSFORM_DAY},           {"hour", TRANSFORM_HOUR}, {"void", TRANSFORM_VOID},
};

const char *transform_name(transform_kind kind) {
    for (size_t i = 0; i < sizeof plain_names / sizeof plain_names[0]; i++) {
        if (plain_names[i].kind == kind) {
            return plain_names[i].name;
        }
    }
    return kind == TRANSFORM_BUCKET     ? "bucket"
           : kind == TRANSFORM_TRUNCATE ? "truncate"
                                        : "unknown";
}

/* "bucket[16]" by prefix "bucket[": the text between the brackets. */
static bool bracketed(tarn_str text, const char *prefix, tarn_str *inside) {
    tarn_str head = str_of(prefix);
    if (!str_starts_with(text, head) || text.len <= head.len || text.data[text.len - 1] != ']') {
        return false;
    }
    *inside = str_sub(text, head.len, text.len - head.len - 1);
    return true;
}

tarn_code transform_parse(tarn_arena *arena, tarn_str text, tarn_transform *out, tarn_error *err) {
    tarn_transform t = {TRANSFORM_UNKNOWN, 0, STR_NULL};
    tarn_str inside;
    for (size_t i = 0; i < sizeof plain_names / sizeof plain_names[0]; i++) {
        if (str_eq_nocase(text, str_of(plain_names[i].name))) {
            t.kind = plain_names[i].kind;
            *out = t;
            return TARN_OK;
        }
    }
    bool bucket = bracketed(text, "bucket[", &inside);
    if (bucket || bracketed(text, "truncate[", &inside)) {
        if (!str_to_i32(inside, &t.param) || t.param <= 0) {
            return err_set(err, TARN_INVALID,
                           "transform \"%.*s\" did not have a positive number in its brackets",
                           STR_ARG(text));
        }
        t.kind = bucket ? TRANSFORM_BUCKET : TRANSFORM_TRUNCATE;
        *out = t;
        return TARN_OK;
    }
    if (text.len == 0 || text.len > LIMIT_NAME_BYTES) {
        return err_set(err, TARN_INVALID, "a transform name had %zu bytes", text.len);
    }
    t.text = arena_str(arena, text);
    if (t.text.data == NULL) {
        return err_nomem(err);
    }
    *out = t;
    return TARN_OK;
}

tarn_code transform_text(const tarn_transform *transform, tarn_buf *out, tarn_error *err) {
    switch (transform->kind) {
    case TRANSFORM_BUCKET:
        return buf_printf(out, err, "bucket[%d]", transform->param);
    case TRANSFORM_TRUNCATE:
        return buf_printf(out, err, "truncate[%d]", transform->param);
    case TRANSFORM_UNKNOWN:
        return buf_append_str(out, transform->text, err);
    case TRANSFORM_IDENTITY:
    case TRANSFORM_YEAR:
    case TRANSFORM_MONTH:
    case TRANSFORM_DAY:
    case TRANSFORM_HOUR:
    case TRANSFORM_VOID:
        break;
    }
    return buf_append_str(out, str_of(transform_name(transform->kind)), err);
}

bool transform_eq(const tarn_transform *a, const tarn_transform *b) {
    if (a->kind != b->kind) {
        return false;
    }
    if (a->kind == TRANSFORM_BUCKET || a->kind == TRANSFORM_TRUNCATE) {
        return a->param == b->param;
    }
    return a->kind != TRANSFORM_UNKNOWN || str_eq(a->text, b->text);
}

static bool takes_bucket(tarn_kind kind) {
    return kind == TARN_INT || kind == TARN_LONG || (kind >= TARN_DECIMAL && kind <= TARN_BINARY);
}

static bool takes_truncate(tarn_kind kind) {
    return kind == TARN_INT || kind == TARN_LONG || kind == TARN_DECIMAL || kind == TARN_STRING ||
           kind == TARN_BINARY;
}

static bool takes(transform_kind transform, tarn_kind kind) {
    switch (transform) {
    case TRANSFORM_IDENTITY:
        return kind <= TARN_UNKNOWN;
    case TRANSFORM_BUCKET:
        return takes_bucket(kind);
    case TRANSFORM_TRUNCATE:
        return takes_truncate(kind);
    case TRANSFORM_YEAR:
    case TRANSFORM_MONTH:
    case TRANSFORM_DAY:
        return kind == TARN_DATE || units_per_second(kind) != 0;
    case TRANSFORM_HOUR:
        return units_per_second(kind) != 0;
    case TRANSFORM_VOID:
    case TRANSFORM_UNKNOWN:
        return true;
    }
    return false;
}

tarn_code transform_result_type(tarn_arena *arena, const tarn_transform *transform,
                                const tarn_type *source, const tarn_type **out, tarn_error *err) {
    (void)arena; /* every result is static or the source itself */
    if (!takes(transform->kind, source->kind)) {
        return err_set(err, TARN_INVALID, "%s did not take a source of type %s",
                       transform_name(transform->kind), type_kind_name(source->kind));
    }
    switch (transform->kind) {
    case TRANSFORM_IDENTITY:
    case TRANSFORM_TRUNCATE:
    case TRANSFORM_VOID:
        *out = source;
        return TARN_OK;
    case TRANSFORM_BUCKET:
    case TRANSFORM_YEAR:
    case TRANSFORM_MONTH:
    case TRANSFORM_HOUR:
        *out = type_primitive(TARN_INT);
        return TARN_OK;
    case TRANSFORM_DAY:
        *out = type_primitive(TARN_DATE);
        return TARN_OK;
    case TRANSFORM_UNKNOWN:
        *out = type_primitive(TARN_STRING);
        return TARN_OK;
    }
    return err_set(err, TARN_INTERNAL, "transform kind %d had no result", (int)transform->kind);
}

static tarn_code refuse_truncate(const tarn_transform *transform, const tarn_value *in,
                                 tarn_error *err) {
    char text[64];
    if (in->type->kind == TARN_DECIMAL) {
        size_t len = value_format_decimal(in->as.i128, in->type->scale, text);
        text[len < sizeof text ? len : sizeof text - 1] = '\0';
    } else {
        size_t len = str_from_i64(in->type->kind == TARN_INT ? in->as.i32 : in->as.i64, text);
        text[len] = '\0';
    }
    return err_set(err, TARN_INVALID, "truncate[%d] of %s would have been below the least %s",
                   transform->param, text, type_kind_name(in->type->kind));
}

static tarn_code truncate_value(const tarn_transform *transform, const tarn_value *in,
                                tarn_value *out, tarn_error *err) {
    int64_t v = 0;
    size_t keep = (size_t)transform->param;
    switch (in->type->kind) {
    case TARN_INT:
        if (!truncate_long(in->as.i32, transform->param, INT32_MIN, &v)) {
            return refuse_truncate(transform, in, err);
        }
        out->as.i32 = (int32_t)v;
        return TARN_OK;
    case TARN_LONG:
        if (!truncate_long(in->as.i64, transform->param, INT64_MIN, &v)) {
            return refuse_truncate(transform, in, err);
        }
        out->as.i64 = v;
        return TARN_OK;
    case TARN_DECIMAL:
        out->as.i128 = truncate_i128(in->as.i128, transform->param);
        if (num_digits_i128(out->as.i128) > in->type->precision) {
            return refuse_truncate(transform, in, err);
        }
        return TARN_OK;
    case TARN_STRING:
        out->as.bytes = str_sub(in->as.bytes, 0, str_utf8_prefix(in->as.bytes, keep));
        return TARN_OK;
    case TARN_BINARY:
        out->as.bytes = str_sub(in->as.bytes, 0, keep);
        return TARN_OK;
    case TARN_BOOLEAN:
    case TARN_FLOAT:
    case TARN_DOUBLE:
    case TARN_DATE:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
    case TARN_UUID:
    case TARN_FIXED:
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return err_set(err, TARN_INVALID, "truncate did not take a source of type %s",
                   type_kind_name(in->type->kind));
}

static tarn_code time_value(const tarn_transform *transform, const tarn_value *in, tarn_value *out,
                            tarn_error *err) {
    int64_t second = units_per_second(in->type->kind);
    if (second == 0 && (in->type->kind != TARN_DATE || transform->kind == TRANSFORM_HOUR)) {
        return err_set(err, TARN_INVALID, "a time transform did not take a source of type %s",
                       type_kind_name(in->type->kind));
    }
    int64_t days = second == 0 ? in->as.i32 : num_floor_div(in->as.i64, second * 86400);
    int64_t v = days;
    if (transform->kind == TRANSFORM_HOUR) {
        v = num_floor_div(in->as.i64, second * 3600);
    } else if (transform->kind == TRANSFORM_MONTH) {
        v = months_of_days(days);
    } else if (transform->kind == TRANSFORM_YEAR) {
        v = years_of_days(days);
    }
    if (v != (int32_t)v) {
        return err_set(err, TARN_INVALID, "the time transform of %lld went out of range of int",
                       (long long)in->as.i64);
    }
    out->as.i32 = (int32_t)v;
    return TARN_OK;
}

tarn_code transform_value(const tarn_transform *transform, const tarn_value *in,
                          const tarn_type *result, tarn_value *out, tarn_error *err) {
    tarn_value v = value_null(result);
    tarn_code code = TARN_OK;
    uint32_t hash;
    if (in->is_null || transform->kind == TRANSFORM_VOID || transform->kind == TRANSFORM_UNKNOWN) {
        *out = v;
        return TARN_OK;
    }
    v.is_null = false;
    switch (transform->kind) {
    case TRANSFORM_IDENTITY:
        v.as = in->as;
        break;
    case TRANSFORM_BUCKET:
        if (!transform_hash(in, &hash)) {
            return err_set(err, TARN_INVALID, "bucket did not take a source of type %s",
                           type_kind_name(in->type->kind));
        }
        v.as.i32 = bucket_of(hash, transform->param);
        break;
    case TRANSFORM_TRUNCATE:
        code = truncate_value(transform, in, &v, err);
        break;
    case TRANSFORM_YEAR:
    case TRANSFORM_MONTH:
    case TRANSFORM_DAY:
    case TRANSFORM_HOUR:
        code = time_value(transform, in, &v, err);
        break;
    case TRANSFORM_VOID:
    case TRANSFORM_UNKNOWN:
        break;
    }
    if (code == TARN_OK) {
        *out = v;
    }
    return code;
}
