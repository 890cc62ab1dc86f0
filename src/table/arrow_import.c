/* table/arrow_import.c - outside arrays as canonical batches.
 *
 * The whole outside array moves into a counted owner; every node made here either points into it
 * (what is canonical already) or owns converted buffers. Lengths, offsets, indexes and UTF-8 are
 * checked; that buffers are as long as the lengths say is the producer's word, since the interface
 * carries no sizes. */
#include "base/limits.h"
#include "table/arrow_import_int.h"

static tarn_code bad_array(const array_import *im, const struct ArrowSchema *schema,
                           const char *what) {
    return err_set(im->err, TARN_INVALID, "the Arrow array of column %s was not valid: %s",
                   schema->name != NULL ? schema->name : "", what);
}

tarn_code arrow_bad_value(const array_import *im, const struct ArrowSchema *schema, int64_t row,
                          const char *what) {
    return err_set(im->err, TARN_INVALID, "column %s, row %lld: %s",
                   schema->name != NULL ? schema->name : "", (long long)row, what);
}

/* ---- shape ---- */

static int64_t buffers_of(const arrow_format *f) {
    switch (f->layout) {
    case ARROW_NULL:
    case ARROW_RUNS:
        return 0;
    case ARROW_STRUCT:
    case ARROW_FIXED_LIST:
        return 1;
    case ARROW_BYTES:
    case ARROW_VIEWS:
    case ARROW_LIST_VIEW:
        return 3;
    case ARROW_BOOL:
    case ARROW_INT:
    case ARROW_FLOAT:
    case ARROW_DECIMAL:
    case ARROW_DATE:
    case ARROW_TIME:
    case ARROW_TIMESTAMP:
    case ARROW_FIXED:
    case ARROW_LIST:
    case ARROW_MAP:
    case ARROW_DICTIONARY:
        return 2;
    }
    return 0;
}

static tarn_code check_shape(const array_import *im, const struct ArrowSchema *schema,
                             const struct ArrowArray *a, const arrow_format *f) {
    int64_t n = buffers_of(f);
    int64_t end;
    if (a == NULL || a->length < 0 || a->offset < 0 || !num_add_i64(a->length, a->offset, &end) ||
        end > INT64_MAX / 64) {
        return bad_array(im, schema, "its length was not valid");
    }
    if (a->length > INT32_MAX) {
        return err_set(im->err, TARN_LIMIT, "a column of a batch had more than %d rows", INT32_MAX);
    }
    if (a->n_buffers < n || (n > 0 && a->buffers == NULL)) {
        return bad_array(im, schema, "it had too few buffers");
    }
    if (a->n_children != schema->n_children || (a->n_children > 0 && a->children == NULL) ||
        (f->layout == ARROW_DICTIONARY && a->dictionary == NULL)) {
        return bad_array(im, schema, "its children were not those of its schema");
    }
    bool needs_values = n >= 2 && end > 0;
    if (needs_values && a->buffers[1] == NULL) {
        return bad_array(im, schema, "it had no values");
    }
    if (n > 0 && a->null_count > 0 && a->buffers[0] == NULL) {
        return bad_array(im, schema, "it had nulls but no validity");
    }
    return TARN_OK;
}

/* ---- sharing ---- */

/* A node like a, with its own buffers and none of its children yet. */
static tarn_code share_node(const array_import *im, const struct ArrowArray *a, int64_t n_buffers,
                            int64_t n_children, struct ArrowArray *out) {
    tarn_code code = array_node_init(im->env, im->owner, n_buffers, n_children, out, im->err);
    if (code == TARN_OK) {
        for (int64_t i = 0; i < n_buffers; i++) {
            array_node_of(out)->buffers[i] = a->buffers[i];
        }
        out->length = a->length;
        out->offset = a->offset;
        out->null_count = n_buffers == 0              ? a->length
                          : a->buffers[0] == NULL     ? 0
                          : a->null_count > a->length ? -1
                                                      : a->null_count;
    }
    return code;
}

static bool is_aligned(const void *p, size_t to) {
    return ((uintptr_t)p & (to - 1)) == 0;
}

static tarn_code check_offsets(const array_import *im, const struct ArrowSchema *schema,
                               const struct ArrowArray *a, int64_t limit) {
    if (a->length == 0) {
        return TARN_OK;
    }
    const int32_t *offsets = (const int32_t *)a->buffers[1] + a->offset;
    int32_t last = offsets[0];
    bool ordered = last >= 0;
    for (int64_t i = 1; i <= a->length; i++) {
        ordered &= offsets[i] >= last;
        last = offsets[i];
    }
    if (!ordered || last > limit) {
        return bad_array(im, schema,
                         ordered ? "its offsets ended beyond its child" : "its offsets decreased");
    }
    return TARN_OK;
}

/* All bytes at once, and no value starting inside a character; else row by row, since nulls may
 * hide any bytes. */
static tarn_code check_text(const array_import *im, const struct ArrowSchema *schema,
                            const tarn_view *v) {
    int32_t start = v->offsets[0];
    int32_t end = v->offsets[v->length];
    bool good = str_utf8_valid(str_make(v->bytes + start, (size_t)(end - start)));
    for (int64_t i = 0; good && i < v->length; i++) {
        good = v->offsets[i] == end || (v->bytes[v->offsets[i]] & 0xc0) != 0x80;
    }
    for (int64_t i = 0; !good && i < v->length; i++) {
        if (!view_is_null(v, i) && !str_utf8_valid(view_bytes(v, i))) {
            return arrow_bad_value(im, schema, i, "the string was not valid UTF-8");
        }
    }
    return TARN_OK;
}

static tarn_code import_bytes(const array_import *im, const struct ArrowSchema *schema,
                              const struct ArrowArray *a, const arrow_format *f,
                              const tarn_type *type, struct ArrowArray *out) {
    tarn_view view;
    if (f->width == 8 || !is_aligned(a->buffers[1], 4)) {
        return arrow_convert(im, schema, a, f, type, out);
    }
    tarn_code code = check_offsets(im, schema, a, INT32_MAX);
    if (code != TARN_OK) {
        return code;
    }
    array_view(a, type, 0, a->length, &view);
    bool any = a->length > 0 && view.offsets[a->length] > view.offsets[0];
    if (any && view.bytes == NULL) {
        return bad_array(im, schema, "it had no bytes");
    }
    if (any && f->is_text) {
        code = check_text(im, schema, &view);
    }
    return code == TARN_OK ? share_node(im, a, 3, 0, out) : code;
}

static bool is_canonical(const arrow_format *f) {
    switch (f->layout) {
    case ARROW_NULL:
    case ARROW_BOOL:
    case ARROW_FIXED:
        return true;
    case ARROW_INT:
        return (f->width == 4 || f->width == 8) && f->is_signed;
    case ARROW_FLOAT:
    case ARROW_DATE:
        return f->width == 4 || (f->layout == ARROW_FLOAT && f->width == 8);
    case ARROW_DECIMAL:
        return f->width == 16;
    case ARROW_TIME:
        return f->per_second == 1000000;
    case ARROW_TIMESTAMP:
        return f->per_second >= 1000000;
    case ARROW_BYTES:
    case ARROW_VIEWS:
    case ARROW_STRUCT:
    case ARROW_LIST:
    case ARROW_LIST_VIEW:
    case ARROW_FIXED_LIST:
    case ARROW_MAP:
    case ARROW_RUNS:
    case ARROW_DICTIONARY:
        break;
    }
    return false;
}

static tarn_code import_leaf(const array_import *im, const struct ArrowSchema *schema,
                             const struct ArrowArray *a, const arrow_format *f,
                             const tarn_type *type, struct ArrowArray *out) {
    size_t width = (size_t)type_width(type);
    size_t alignment = width == 4 || width == 8 ? width : 1;
    if (f->layout == ARROW_BYTES) {
        return import_bytes(im, schema, a, f, type, out);
    }
    if (!is_canonical(f) || (a->n_buffers > 1 && !is_aligned(a->buffers[1], alignment))) {
        return arrow_convert(im, schema, a, f, type, out);
    }
    return share_node(im, a, buffers_of(f), 0, out);
}

/* ---- nested ---- */

static tarn_code import_parts(const array_import *im, const struct ArrowSchema *schema,
                              const struct ArrowArray *a, const tarn_type *type,
                              struct ArrowArray *out) {
    int32_t n = array_part_count(type);
    if (n != a->n_children) {
        return bad_array(im, schema, "its children were not those of the type");
    }
    for (int32_t i = 0; i < n; i++) {
        if (a->children[i] == NULL || a->children[i]->length < a->length + a->offset) {
            return bad_array(im, schema, "a child was shorter than its parent");
        }
        tarn_code code = arrow_import_array(im, schema->children[i], a->children[i],
                                            array_part_type(type, i), out->children[i]);
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static tarn_code import_struct(const array_import *im, const struct ArrowSchema *schema,
                               const struct ArrowArray *a, const tarn_type *type,
                               struct ArrowArray *out) {
    struct ArrowArray made;
    tarn_code code = share_node(im, a, 1, array_part_count(type), &made);
    if (code != TARN_OK) {
        return code;
    }
    code = import_parts(im, schema, a, type, &made);
    if (code != TARN_OK) {
        array_release(&made);
        return code;
    }
    *out = made;
    return TARN_OK;
}

static tarn_code import_entries(const array_import *im, const struct ArrowSchema *schema,
                                const struct ArrowArray *a, const tarn_type *type,
                                struct ArrowArray *out) {
    arrow_format f;
    tarn_code code;
    TRY(arrow_read_format(schema, &f, im->err));
    if (f.layout != ARROW_STRUCT) {
        return bad_array(im, schema, "the entries of a map were no struct");
    }
    TRY(check_shape(im, schema, a, &f));
    TRY(import_struct(im, schema, a, type, out));
    out->null_count = 0; /* entries themselves are never null */
    array_node_of(out)->buffers[0] = NULL;
done:
    return code;
}

static tarn_code import_list(const array_import *im, const struct ArrowSchema *schema,
                             const struct ArrowArray *a, const arrow_format *f,
                             const tarn_type *type, struct ArrowArray *out) {
    struct ArrowArray made;
    tarn_code code;
    bool shared = f->width == 4 && f->layout != ARROW_FIXED_LIST && is_aligned(a->buffers[1], 4);
    if (a->n_children != 1 || a->children[0] == NULL) {
        return bad_array(im, schema, "a list had no child");
    }
    const struct ArrowArray *child = a->children[0];
    if (shared) {
        code = check_offsets(im, schema, a, child->length);
        code = code == TARN_OK ? share_node(im, a, 2, 1, &made) : code;
    } else {
        code = arrow_convert_offsets(im, schema, a, f, &made);
    }
    if (code != TARN_OK) {
        return code;
    }
    if (type->kind == TARN_MAP) {
        code = import_entries(im, schema->children[0], child, type, made.children[0]);
    } else {
        code = arrow_import_array(im, schema->children[0], child, type->fields[0].type,
                                  made.children[0]);
    }
    if (code != TARN_OK) {
        array_release(&made);
        return code;
    }
    *out = made;
    return TARN_OK;
}

/* ---- the choice ---- */

static bool fits_type(const arrow_format *f, const tarn_type *type) {
    switch (f->layout) {
    case ARROW_STRUCT:
        return type->kind == TARN_STRUCT || type->kind == TARN_VARIANT;
    case ARROW_LIST:
    case ARROW_LIST_VIEW:
    case ARROW_FIXED_LIST:
        return type->kind == TARN_LIST;
    case ARROW_MAP:
        return type->kind == TARN_MAP;
    case ARROW_NULL:
        return type->kind == TARN_UNKNOWN;
    case ARROW_BOOL:
        return type->kind == TARN_BOOLEAN;
    case ARROW_INT:
        return type->kind == TARN_INT || type->kind == TARN_LONG || type->kind == TARN_DECIMAL;
    case ARROW_FLOAT:
        return type->kind == (f->width == 8 ? TARN_DOUBLE : TARN_FLOAT);
    case ARROW_DECIMAL:
        return type->kind == TARN_DECIMAL && type->scale == f->scale;
    case ARROW_DATE:
        return type->kind == TARN_DATE;
    case ARROW_TIME:
        return type->kind == TARN_TIME;
    case ARROW_TIMESTAMP:
        return type->kind >= TARN_TIMESTAMP && type->kind <= TARN_TIMESTAMPTZ_NS &&
               (f->per_second == 1000000000) ==
                   (type->kind == TARN_TIMESTAMP_NS || type->kind == TARN_TIMESTAMPTZ_NS);
    case ARROW_FIXED:
        return type_width(type) == f->width &&
               (type->kind == TARN_FIXED || type->kind == TARN_UUID);
    case ARROW_BYTES:
    case ARROW_VIEWS:
        return type_is_var(type) && (type->kind == TARN_STRING) == f->is_text;
    case ARROW_RUNS:
    case ARROW_DICTIONARY:
        return true;
    }
    return false;
}

tarn_code arrow_import_array(const array_import *im, const struct ArrowSchema *schema,
                             const struct ArrowArray *a, const tarn_type *type,
                             struct ArrowArray *out) {
    arrow_format f;
    tarn_code code;
    array_import below = *im;
    im = &below;
    if (++below.depth > LIMIT_NESTING) {
        return err_set(im->err, TARN_LIMIT, "an array was nested more than %d levels deep",
                       LIMIT_NESTING);
    }
    TRY(arrow_read_format(schema, &f, im->err));
    TRY(check_shape(im, schema, a, &f));
    if (!fits_type(&f, type)) {
        return bad_array(im, schema, "its format was not that of the type");
    }
    if (f.layout == ARROW_STRUCT) {
        return import_struct(im, schema, a, type, out);
    }
    if (f.layout == ARROW_LIST || f.layout == ARROW_FIXED_LIST || f.layout == ARROW_MAP) {
        return import_list(im, schema, a, &f, type, out);
    }
    if (f.layout == ARROW_DICTIONARY || f.layout == ARROW_RUNS || f.layout == ARROW_LIST_VIEW) {
        return arrow_import_indexed(im, schema, a, &f, type, out);
    }
    return import_leaf(im, schema, a, &f, type, out);
done:
    return code;
}

tarn_code batch_import(tarn_env *env, const struct ArrowSchema *schema, struct ArrowArray *array,
                       const tarn_type *type, tarn_batch *out, tarn_error *err) {
    array_import im = {env, array_owner_new(env), 0, err};
    struct ArrowArray made;
    tarn_view root;
    if (im.owner == NULL) {
        return err_nomem(err);
    }
    tarn_assert(type->kind == TARN_STRUCT);
    tarn_code code = arrow_import_array(&im, schema, array, type, &made);
    if (code == TARN_OK) {
        array_view(&made, type, 0, made.length, &root);
        if (view_null_count(&root) > 0) {
            code = err_set(err, TARN_INVALID, "a row of an Arrow batch was null as a whole");
            array_release(&made);
        }
    }
    if (code == TARN_OK) {
        array_node_of(&made)->buffers[0] = NULL;
        made.null_count = 0;
        array_cut_root(&made, 0, made.length);
        array_owner_take(im.owner, array);
        out->array = made;
        out->type = type;
    }
    array_owner_unref(im.owner);
    return code;
}
