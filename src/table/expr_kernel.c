/* table/expr_kernel.c - comparisons of whole columns with literals, 64 rows at a time into bits.
 *
 * Every comparison is one of x < y, x <= y, x == y, or its complement. That is right for NaN too,
 * which lies above all values and equals itself: with y an ordinary value the three are false of a
 * NaN x, and complements are true of it; with y NaN they become tests for NaN. */
#include "table/expr_int.h"

typedef struct comparison {
    expr_op base; /* LT, LE or EQ */
    bool inverted;
} comparison;

static comparison base_of(expr_op op) {
    switch ((int)op) {
    case EXPR_GE:
        return (comparison){EXPR_LT, true};
    case EXPR_GT:
        return (comparison){EXPR_LE, true};
    case EXPR_NE:
    case EXPR_NOT_IN:
        return (comparison){EXPR_EQ, true};
    case EXPR_IN:
        return (comparison){EXPR_EQ, false};
    default:
        return (comparison){op, false};
    }
}

static void invert(uint8_t *bits, int64_t n) {
    for (size_t i = 0; i < bit_bytes(n); i++) {
        bits[i] = (uint8_t)~bits[i];
    }
}

/* 64 bytes of 0 or 1 as 64 bits: each multiplication moves eight low bits into the top byte. */
static void pack_flags(const uint8_t flags[64], uint8_t *bits, int64_t n) {
    uint8_t packed[8];
    for (size_t i = 0; i < 8; i++) {
        packed[i] = (uint8_t)((num_load_u64(flags + 8 * i) * UINT64_C(0x0102040810204080)) >> 56);
    }
    memcpy(bits, packed, bit_bytes(n));
}

/* TEST uses row i; it is evaluated over blocks of a constant length so that it becomes vector code.
 */
#define FOR_BLOCKS(n, bits, TEST)                                                                  \
    do {                                                                                           \
        uint8_t flags[64];                                                                         \
        int64_t at = 0;                                                                            \
        for (; at + 64 <= (n); at += 64) {                                                         \
            for (int64_t j = 0; j < 64; j++) {                                                     \
                int64_t i = at + j;                                                                \
                flags[j] = (uint8_t)(TEST);                                                        \
            }                                                                                      \
            pack_flags(flags, (bits) + at / 8, 64);                                                \
        }                                                                                          \
        if (at < (n)) {                                                                            \
            memset(flags, 0, sizeof flags);                                                        \
            for (int64_t i = at; i < (n); i++) {                                                   \
                flags[i - at] = (uint8_t)(TEST);                                                   \
            }                                                                                      \
            pack_flags(flags, (bits) + at / 8, (n)-at);                                            \
        }                                                                                          \
    } while (0)

#define NUMBER_KERNEL(name, type)                                                                  \
    static void name(expr_op base, const type *x, int64_t n, type y, uint8_t *bits) {              \
        if (base == EXPR_LT) {                                                                     \
            FOR_BLOCKS(n, bits, x[i] < y);                                                         \
        } else if (base == EXPR_LE) {                                                              \
            FOR_BLOCKS(n, bits, x[i] <= y);                                                        \
        } else {                                                                                   \
            FOR_BLOCKS(n, bits, x[i] == y);                                                        \
        }                                                                                          \
    }

NUMBER_KERNEL(compare_i32, int32_t)
NUMBER_KERNEL(compare_i64, int64_t)
NUMBER_KERNEL(compare_f32, float)
NUMBER_KERNEL(compare_f64, double)

static void compare_i128(expr_op base, const uint8_t *x, int64_t n, tarn_int128 y, uint8_t *bits) {
    if (base == EXPR_LT) {
        FOR_BLOCKS(n, bits, num_load_i128(x + i * 16) < y);
    } else if (base == EXPR_LE) {
        FOR_BLOCKS(n, bits, num_load_i128(x + i * 16) <= y);
    } else {
        FOR_BLOCKS(n, bits, num_load_i128(x + i * 16) == y);
    }
}

/* The literal is NaN: everything else lies below it. */
static void compare_nan(expr_op base, const tarn_view *view, uint8_t *bits) {
    int64_t n = view->length;
    bool want_nan = base == EXPR_EQ;
    if (base == EXPR_LE) {
        memset(bits, 0xff, bit_bytes(n));
    } else if (view->type->kind == TARN_FLOAT) {
        const float *x = view->values;
        FOR_BLOCKS(n, bits, (x[i] != x[i]) == want_nan);
    } else {
        const double *x = view->values;
        FOR_BLOCKS(n, bits, (x[i] != x[i]) == want_nan);
    }
}

static void compare_bool(const tarn_expr *expr, expr_op base, const tarn_view *view,
                         uint8_t *bits) {
    bool of_false = false;
    bool of_true = false;
    for (int32_t i = 0; i < expr->n_values; i++) {
        int y = expr->values[i].as.boolean;
        of_false |= base == EXPR_LT ? 0 < y : base == EXPR_LE || y == 0;
        of_true |= base == EXPR_LT ? false : y == 1;
    }
    memset(bits, 0, bit_bytes(view->length));
    bit_copy(bits, 0, view->values, view->start, view->length);
    if (of_false && of_true) {
        memset(bits, 0xff, bit_bytes(view->length));
    } else if (of_false) {
        invert(bits, view->length);
    } else if (!of_true) {
        memset(bits, 0, bit_bytes(view->length));
    }
}

/* ---- bytes ---- */

static bool bytes_equal(const uint8_t *x, size_t len, tarn_str y) {
    return len == y.len && (len == 0 || memcmp(x, y.data, len) == 0);
}

static tarn_str cell(const tarn_view *view, int64_t i) {
    if (view->offsets != NULL) {
        return view_bytes(view, i);
    }
    size_t width = (size_t)type_width(view->type);
    return str_make((const uint8_t *)view->values + (size_t)i * width, width);
}

/* The first eight bytes as a big-endian number, zeros behind the end: unequal numbers are in the
 * order of the bytes, equal ones decide nothing. room: bytes that may be read from p on. */
static inline uint64_t first_eight(const uint8_t *p, size_t len, size_t room) {
    uint8_t padded[8] = {0};
    if (len >= 8) {
        return num_load_be64(p);
    }
    if (len == 0) {
        return 0;
    }
    if (room >= 8) {
        return num_load_be64(p) & (~UINT64_C(0) << (8 * (8 - len)));
    }
    memcpy(padded, p, len);
    return num_load_be64(padded);
}

typedef struct text_literal {
    tarn_str text;
    uint64_t first;
} text_literal;

static inline int order_text(const tarn_view *view, int64_t i, const text_literal *y) {
    int32_t start = view->offsets[i];
    size_t len = (size_t)(view->offsets[i + 1] - start);
    const uint8_t *p = view->bytes + start;
    uint64_t first = first_eight(p, len, (size_t)(view->offsets[view->length] - start));
    if (first != y->first) {
        return first < y->first ? -1 : 1;
    }
    return str_cmp(str_make(p, len), y->text);
}

static inline bool has_prefix(const tarn_view *view, int64_t i, const text_literal *y) {
    size_t n = y->text.len;
    int32_t start = view->offsets[i];
    size_t len = (size_t)(view->offsets[i + 1] - start);
    const uint8_t *p = view->bytes + start;
    if (len < n || n == 0) {
        return n == 0;
    }
    uint64_t first = first_eight(p, n, (size_t)(view->offsets[view->length] - start));
    return first == y->first && (n <= 8 || memcmp(p + 8, y->text.data + 8, n - 8) == 0);
}

static void compare_texts(expr_op base, const tarn_view *view, tarn_str text, uint8_t *bits) {
    int64_t n = view->length;
    text_literal y = {text, first_eight((const uint8_t *)text.data, text.len, text.len)};
    if (view->bytes == NULL) { /* every value is empty or null */
        bool yes = base == EXPR_LT ? text.len > 0 : base == EXPR_LE || text.len == 0;
        memset(bits, yes ? 0xff : 0, bit_bytes(n));
    } else if (base == EXPR_STARTS_WITH) {
        FOR_BLOCKS(n, bits, has_prefix(view, i, &y));
    } else if (base == EXPR_EQ) {
        const int32_t *at_of = view->offsets;
        FOR_BLOCKS(n, bits,
                   bytes_equal(view->bytes + at_of[i], (size_t)(at_of[i + 1] - at_of[i]), text));
    } else if (base == EXPR_LT) {
        FOR_BLOCKS(n, bits, order_text(view, i, &y) < 0);
    } else {
        FOR_BLOCKS(n, bits, order_text(view, i, &y) <= 0);
    }
}

static void compare_fixed(expr_op base, const tarn_view *view, tarn_str y, uint8_t *bits) {
    int64_t n = view->length;
    if (base == EXPR_EQ) {
        FOR_BLOCKS(n, bits, str_eq(cell(view, i), y));
    } else if (base == EXPR_LT) {
        FOR_BLOCKS(n, bits, str_cmp(cell(view, i), y) < 0);
    } else {
        FOR_BLOCKS(n, bits, str_cmp(cell(view, i), y) <= 0);
    }
}

/* ---- sets ---- */

/* Sorted literals as an array of the column's own type, found by halving. */
#define SET_KERNEL(name, type, LOAD)                                                               \
    static bool find_##name(const type *set, int32_t n, type x) {                                  \
        int32_t low = 0;                                                                           \
        while (n > 1) {                                                                            \
            int32_t half = n / 2;                                                                  \
            low += set[low + half] <= x ? half : 0;                                                \
            n -= half;                                                                             \
        }                                                                                          \
        return set[low] == x;                                                                      \
    }                                                                                              \
    static void name(const type *set, int32_t n_set, const uint8_t *x, int64_t n, uint8_t *bits) { \
        FOR_BLOCKS(n, bits, find_##name(set, n_set, LOAD));                                        \
    }

static float load_f32(const uint8_t *p) {
    float f;
    memcpy(&f, p, sizeof f);
    return f;
}

static double load_f64(const uint8_t *p) {
    double d;
    memcpy(&d, p, sizeof d);
    return d;
}

SET_KERNEL(in_i32, int32_t, num_load_i32(x + i * 4))
SET_KERNEL(in_i64, int64_t, num_load_i64(x + i * 8))
SET_KERNEL(in_f32, float, load_f32(x + i * 4))
SET_KERNEL(in_f64, double, load_f64(x + i * 8))
SET_KERNEL(in_i128, tarn_int128, num_load_i128(x + i * 16))

static tarn_code compare_set(tarn_env *env, const tarn_expr *expr, const tarn_view *view,
                             uint8_t *bits, tarn_error *err) {
    size_t width = (size_t)type_width(view->type);
    int32_t n = expr->n_values;
    bool has_nan = expr_value_is_nan(&expr->values[n - 1]); /* sorts last */
    n -= has_nan;
    uint8_t *set = env_calloc(env, (size_t)n + 1, width);
    if (set == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        memcpy(set + (size_t)i * width, &expr->values[i].as, width);
    }
    const void *literals = set;
    if (n == 0) {
        memset(bits, 0, bit_bytes(view->length));
    } else if (view->type->kind == TARN_FLOAT) {
        in_f32(literals, n, view->values, view->length, bits);
    } else if (view->type->kind == TARN_DOUBLE) {
        in_f64(literals, n, view->values, view->length, bits);
    } else if (width == 4) {
        in_i32(literals, n, view->values, view->length, bits);
    } else if (width == 8) {
        in_i64(literals, n, view->values, view->length, bits);
    } else {
        in_i128(literals, n, view->values, view->length, bits);
    }
    for (int64_t i = 0; has_nan && i < view->length; i++) {
        tarn_value x;
        view_value(view, i, &x);
        if (!x.is_null && expr_value_is_nan(&x)) {
            bit_set(bits, i);
        }
    }
    env_free(env, set);
    return TARN_OK;
}

/* Open addressing over the literals' hashes; slots hold index + 1. */
typedef struct string_set {
    const tarn_value *values;
    uint32_t *slots;
    uint64_t mask;
} string_set;

static bool set_has(const string_set *set, tarn_str x) {
    for (uint64_t at = str_hash(x) & set->mask; set->slots[at] != 0; at = (at + 1) & set->mask) {
        if (str_eq(set->values[set->slots[at] - 1].as.bytes, x)) {
            return true;
        }
    }
    return false;
}

static tarn_code compare_string_set(tarn_env *env, const tarn_expr *expr, const tarn_view *view,
                                    uint8_t *bits, tarn_error *err) {
    string_set set = {.values = expr->values, .mask = 15};
    int64_t n = view->length;
    while (set.mask < (uint64_t)expr->n_values * 2) {
        set.mask = set.mask * 2 + 1;
    }
    set.slots = env_calloc(env, (size_t)set.mask + 1, sizeof *set.slots);
    if (set.slots == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < expr->n_values; i++) {
        uint64_t at = str_hash(expr->values[i].as.bytes) & set.mask;
        while (set.slots[at] != 0) {
            at = (at + 1) & set.mask;
        }
        set.slots[at] = (uint32_t)i + 1;
    }
    FOR_BLOCKS(n, bits, set_has(&set, cell(view, i)));
    env_free(env, set.slots);
    return TARN_OK;
}

/* ---- the choice ---- */

static bool is_bytes(const tarn_type *type) {
    return type_is_var(type) || type->kind == TARN_UUID || type->kind == TARN_FIXED;
}

static void compare_one(const tarn_expr *expr, expr_op base, const tarn_view *view, uint8_t *bits) {
    const tarn_value *y = &expr->values[0];
    int64_t n = view->length;
    if (type_is_var(view->type)) {
        compare_texts(base, view, y->as.bytes, bits);
    } else if (is_bytes(view->type)) {
        compare_fixed(base, view, y->as.bytes, bits);
    } else if (expr_value_is_nan(y)) {
        compare_nan(base, view, bits);
    } else if (view->type->kind == TARN_FLOAT) {
        compare_f32(base, view->values, n, y->as.f32, bits);
    } else if (view->type->kind == TARN_DOUBLE) {
        compare_f64(base, view->values, n, y->as.f64, bits);
    } else if (type_width(view->type) == 4) {
        compare_i32(base, view->values, n, y->as.i32, bits);
    } else if (type_width(view->type) == 8) {
        compare_i64(base, view->values, n, y->as.i64, bits);
    } else {
        compare_i128(base, view->values, n, y->as.i128, bits);
    }
}

tarn_code expr_compare(tarn_env *env, const tarn_expr *expr, const tarn_view *view, uint8_t *bits,
                       tarn_error *err) {
    comparison c = base_of(expr->op);
    tarn_code code = TARN_OK;
    if (expr->op == EXPR_IS_NAN || expr->op == EXPR_NOT_NAN) {
        compare_nan(EXPR_EQ, view, bits);
        c.inverted = expr->op == EXPR_NOT_NAN;
    } else if (expr->op == EXPR_STARTS_WITH || expr->op == EXPR_NOT_STARTS_WITH) {
        compare_texts(EXPR_STARTS_WITH, view, expr->values[0].as.bytes, bits);
        c.inverted = expr->op == EXPR_NOT_STARTS_WITH;
    } else if (view->type->kind == TARN_BOOLEAN) {
        compare_bool(expr, c.base, view, bits);
    } else if (expr->n_values == 1) {
        compare_one(expr, c.base, view, bits);
    } else if (is_bytes(view->type)) {
        code = compare_string_set(env, expr, view, bits, err);
    } else {
        code = compare_set(env, expr, view, bits, err);
    }
    if (code == TARN_OK && c.inverted) {
        invert(bits, view->length);
    }
    return code;
}
