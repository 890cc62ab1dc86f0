/* dml/assign.c - SET expressions worked out for the rows of a batch. A literal is made once, a
 * column of the same type is copied whole; the rest goes row by row through tarn_value. */
#include "dml/assign_int.h"

typedef struct set_values {
    tarn_env *env;
    tarn_arena arena;      /* of one batch: texts that were put together */
    tarn_path_view *views; /* by assign_node.column */
    int32_t n_views;
    tarn_error *err;
} set_values;

static int32_t count_columns(const assign_node *node) {
    if (node->op == ASSIGN_COLUMN) {
        return 1;
    }
    return node->op == ASSIGN_LITERAL ? 0 : count_columns(node->left) + count_columns(node->right);
}

static tarn_code open_views(set_values *s, const assign_node *node, const tarn_batch *rows) {
    tarn_code code = TARN_OK;
    if (node->op == ASSIGN_COLUMN) {
        return path_view_init(&s->views[node->column], s->env, rows, node->field->id, s->err);
    }
    if (node->op != ASSIGN_LITERAL) {
        TRY(open_views(s, node->left, rows));
        TRY(open_views(s, node->right, rows));
    }
done:
    return code;
}

static double as_double(const tarn_value *v) {
    char text[64];
    double d = 0;
    tarn_kind kind = v->type->kind;
    if (kind == TARN_INT || kind == TARN_LONG) {
        return kind == TARN_INT ? (double)v->as.i32 : (double)v->as.i64;
    }
    if (kind != TARN_DECIMAL) {
        return kind == TARN_FLOAT ? (double)v->as.f32 : v->as.f64;
    }
    size_t n = value_format_decimal(v->as.i128, v->type->scale, text);
    return str_to_f64(str_make(text, n), &d) ? d : 0;
}

/* unscaled * 10^-scale; false: too large. */
static bool as_decimal(const tarn_value *v, int32_t scale, tarn_int128 *out) {
    tarn_int128 unscaled = v->type->kind == TARN_DECIMAL ? v->as.i128
                           : v->type->kind == TARN_LONG  ? v->as.i64
                                                         : v->as.i32;
    int32_t own = v->type->kind == TARN_DECIMAL ? v->type->scale : 0;
    return !__builtin_mul_overflow(unscaled, num_pow10_i128(scale - own), out);
}

static tarn_code too_large(const set_values *s, const char *what) {
    return err_set(s->err, TARN_INVALID, "a result of SET was too large for a %s", what);
}

static tarn_code of_decimals(const set_values *s, const assign_node *node, const tarn_value *a,
                             const tarn_value *b, tarn_value *out) {
    tarn_int128 x = 0;
    tarn_int128 y = 0;
    bool product = node->op == ASSIGN_MULTIPLY;
    int32_t left = product && a->type->kind == TARN_DECIMAL ? a->type->scale
                   : product                                ? 0
                                                            : node->type->scale;
    int32_t right = product ? node->type->scale - left : node->type->scale;
    bool good = as_decimal(a, left, &x) && as_decimal(b, right, &y);
    if (node->op == ASSIGN_ADD) {
        good = good && !__builtin_add_overflow(x, y, &out->as.i128);
    } else if (product) {
        good = good && !__builtin_mul_overflow(x, y, &out->as.i128);
    } else {
        good = good && !__builtin_sub_overflow(x, y, &out->as.i128);
    }
    tarn_int128 most = num_pow10_i128(38) - 1;
    good = good && out->as.i128 <= most && out->as.i128 >= -most;
    return good ? TARN_OK : too_large(s, "decimal");
}

static int64_t as_long(const tarn_value *v) {
    return v->type->kind == TARN_INT ? v->as.i32 : v->as.i64;
}

static tarn_code of_longs(const set_values *s, assign_op op, const tarn_value *a,
                          const tarn_value *b, tarn_value *out) {
    int64_t x = as_long(a);
    int64_t y = as_long(b);
    bool bad = op == ASSIGN_ADD        ? __builtin_add_overflow(x, y, &out->as.i64)
               : op == ASSIGN_MULTIPLY ? __builtin_mul_overflow(x, y, &out->as.i64)
                                       : __builtin_sub_overflow(x, y, &out->as.i64);
    return bad ? too_large(s, "long") : TARN_OK;
}

static tarn_code of_doubles(const set_values *s, assign_op op, const tarn_value *a,
                            const tarn_value *b, tarn_value *out) {
    double x = as_double(a);
    double y = as_double(b);
    if (op == ASSIGN_DIVIDE && y == 0) {
        return err_set(s->err, TARN_INVALID, "SET divided by zero");
    }
    out->as.f64 = op == ASSIGN_ADD        ? x + y
                  : op == ASSIGN_SUBTRACT ? x - y
                  : op == ASSIGN_MULTIPLY ? x * y
                                          : x / y;
    return TARN_OK;
}

static tarn_code of_texts(set_values *s, const tarn_value *a, const tarn_value *b,
                          tarn_value *out) {
    size_t n = a->as.bytes.len + b->as.bytes.len;
    char *text = arena_alloc(&s->arena, n);
    if (text == NULL) {
        return err_nomem(s->err);
    }
    if (a->as.bytes.len > 0) {
        memcpy(text, a->as.bytes.data, a->as.bytes.len);
    }
    if (b->as.bytes.len > 0) {
        memcpy(text + a->as.bytes.len, b->as.bytes.data, b->as.bytes.len);
    }
    out->as.bytes = str_make(text, n);
    return TARN_OK;
}

static tarn_code value_at(set_values *s, const assign_node *node, int64_t row, tarn_value *out) {
    tarn_code code = TARN_OK;
    tarn_value a;
    tarn_value b;
    if (node->type == NULL) {
        *out = value_null(type_primitive(TARN_UNKNOWN));
        return TARN_OK;
    }
    if (node->op == ASSIGN_LITERAL) {
        *out = node->literal;
        return TARN_OK;
    }
    if (node->op == ASSIGN_COLUMN) {
        view_value(&s->views[node->column].view, row, out);
        return TARN_OK;
    }
    TRY(value_at(s, node->left, row, &a));
    TRY(value_at(s, node->right, row, &b));
    *out = value_null(node->type);
    if (a.is_null || b.is_null) {
        return TARN_OK;
    }
    out->is_null = false;
    if (node->op == ASSIGN_CONCAT) {
        return of_texts(s, &a, &b, out);
    }
    if (node->type->kind == TARN_DOUBLE) {
        return of_doubles(s, node->op, &a, &b, out);
    }
    return node->type->kind == TARN_LONG ? of_longs(s, node->op, &a, &b, out)
                                         : of_decimals(s, node, &a, &b, out);
done:
    return code;
}

static tarn_code fit_value(set_values *s, const tarn_type *type, tarn_value *v) {
    tarn_value converted;
    int range = 0;
    if (v->is_null || v->type == type) {
        return TARN_OK;
    }
    tarn_code code = value_convert(&s->arena, v, type, &converted, &range, s->err);
    if (code == TARN_OK && range != 0) {
        return too_large(s, type_kind_name(type->kind));
    }
    if (code == TARN_OK) {
        *v = converted;
    }
    return code;
}

static tarn_code put_value(const tarn_value *v, tarn_builder *out, tarn_error *err) {
    return v->is_null ? builder_null(out, err) : builder_value(out, v, err);
}

static tarn_code put_values(set_values *s, const assignment *a, int64_t n, tarn_builder *out) {
    tarn_code code = TARN_OK;
    const assign_node *node = a->value;
    const tarn_type *type = a->field->type;
    tarn_value v;
    if (node->type == NULL) {
        return builder_nulls(out, n, s->err);
    }
    if (node->op == ASSIGN_COLUMN && type_same_shape(node->type, type)) {
        return builder_view(out, &s->views[node->column].view, 0, n, s->err);
    }
    if (node->op == ASSIGN_LITERAL) {
        v = node->literal;
        TRY(fit_value(s, type, &v));
        for (int64_t i = 0; i < n; i++) {
            TRY(put_value(&v, out, s->err));
        }
        goto done;
    }
    for (int64_t i = 0; i < n; i++) {
        TRY(value_at(s, node, i, &v));
        TRY(fit_value(s, type, &v));
        TRY(put_value(&v, out, s->err));
    }
done:
    return code;
}

tarn_code assign_values(const assignment *a, tarn_env *env, const tarn_batch *rows,
                        tarn_builder *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    set_values s;
    memset(&s, 0, sizeof s);
    s.env = env;
    s.err = err;
    arena_init(&s.arena, env);
    s.n_views = count_columns(a->value);
    s.views = ARENA_ARRAY(&s.arena, tarn_path_view, (size_t)s.n_views + 1);
    if (s.views == NULL) {
        s.n_views = 0;
        code = err_nomem(err);
        goto done;
    }
    TRY(open_views(&s, a->value, rows));
    TRY(put_values(&s, a, batch_rows(rows), out));
done:
    for (int32_t i = 0; i < s.n_views; i++) {
        path_view_release(&s.views[i]);
    }
    arena_release(&s.arena);
    return code == TARN_OK ? code
                           : err_add(err, code, "SET of column %.*s", STR_ARG(a->field->name));
}
