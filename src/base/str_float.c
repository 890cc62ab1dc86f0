/* base/str_float.c - binary floats from decimal text and to the shortest decimal text; always
 * rounded right, whatever the locale of the process is.
 *
 * Both ways stand on one thing: w * 10^q as an interval of 128 bits, made of a table of powers.
 * When the interval leaves a question open (a tie, or nearly one) it is settled by compare_exact,
 * in whole numbers of any size. Invariants: the true value lies in [low, low + error] * 2^exponent;
 * the top bit of low is set; error is 0 only where low is exact. */
#include <math.h>

#include "base/err.h"
#include "base/num.h"
#include "base/str.h"

#define TABLE_STEP  27 /* 5^27 is the greatest power of five in 63 bits */
#define TABLE_FIRST (-13)
#define MAX_DIGITS  800 /* a point halfway between two doubles has at most 767 */
#define BIG_LIMBS   64

/* What is particular to float and double. */
typedef struct float_kind {
    int mantissa_bits; /* with the hidden one */
    int min_exponent;  /* of the last bit of a subnormal number */
    int max_exponent;  /* of the last bit of the greatest number */
} float_kind;

static const float_kind kind_f64 = {53, -1074, 971};
static const float_kind kind_f32 = {24, -149, 104};

/* 10^(27 i) for i from TABLE_FIRST: the top 128 bits of its power of five, rounded down. */
static const struct {
    uint64_t high;
    uint64_t low;
} coarse_powers[] = {
    {UINT64_C(0x8049A4AC0C5811AE), UINT64_C(0x205B896D777D6278)}, /* 10^-351 */
    {UINT64_C(0xCF42894A5DCE35EA), UINT64_C(0x52064CAC828675B9)}, /* 10^-324 */
    {UINT64_C(0xA76C582338ED2621), UINT64_C(0xAF2AF2B80AF6F24E)}, /* 10^-297 */
    {UINT64_C(0x873E4F75E2224E68), UINT64_C(0x5A7744A6E804A291)}, /* 10^-270 */
    {UINT64_C(0xDA7F5BF590966848), UINT64_C(0xAF39A475506A899E)}, /* 10^-243 */
    {UINT64_C(0xB080392CC4349DEC), UINT64_C(0xBD8D794D96AACFB3)}, /* 10^-216 */
    {UINT64_C(0x8E938662882AF53E), UINT64_C(0x547EB47B7282EE9C)}, /* 10^-189 */
    {UINT64_C(0xE65829B3046B0AFA), UINT64_C(0x0CB4A5A3112A5112)}, /* 10^-162 */
    {UINT64_C(0xBA121A4650E4DDEB), UINT64_C(0x92F34D62616CE413)}, /* 10^-135 */
    {UINT64_C(0x964E858C91BA2655), UINT64_C(0x3A6A07F8D510F86F)}, /* 10^-108 */
    {UINT64_C(0xF2D56790AB41C2A2), UINT64_C(0xFAE27299423FB9C3)}, /* 10^-81 */
    {UINT64_C(0xC428D05AA4751E4C), UINT64_C(0xAA97E14C3C26B886)}, /* 10^-54 */
    {UINT64_C(0x9E74D1B791E07E48), UINT64_C(0x775EA264CF55347D)}, /* 10^-27 */
    {UINT64_C(0x8000000000000000), UINT64_C(0x0000000000000000)}, /* 10^0 */
    {UINT64_C(0xCECB8F27F4200F3A), UINT64_C(0x0000000000000000)}, /* 10^27 */
    {UINT64_C(0xA70C3C40A64E6C51), UINT64_C(0x999090B65F67D924)}, /* 10^54 */
    {UINT64_C(0x86F0AC99B4E8DAFD), UINT64_C(0x69A028BB3DED71A3)}, /* 10^81 */
    {UINT64_C(0xDA01EE641A708DE9), UINT64_C(0xE80E6F4820CC9495)}, /* 10^108 */
    {UINT64_C(0xB01AE745B101E9E4), UINT64_C(0x5EC05DCFF72E7F8F)}, /* 10^135 */
    {UINT64_C(0x8E41ADE9FBEBC27D), UINT64_C(0x14588F13BE847307)}, /* 10^162 */
    {UINT64_C(0xE5D3EF282A242E81), UINT64_C(0x8F1668C8A86DA5FA)}, /* 10^189 */
    {UINT64_C(0xB9A74A0637CE2EE1), UINT64_C(0x6D953E2BD7173692)}, /* 10^216 */
    {UINT64_C(0x95F83D0A1FB69CD9), UINT64_C(0x4ABDAF101564F98E)}, /* 10^243 */
    {UINT64_C(0xF24A01A73CF2DCCF), UINT64_C(0xBC633B39673C8CEC)}, /* 10^270 */
    {UINT64_C(0xC3B8358109E84F07), UINT64_C(0x0A862F80EC4700C8)}, /* 10^297 */
    {UINT64_C(0x9E19DB92B4E31BA9), UINT64_C(0x6C07A2C26A8346D1)}, /* 10^324 */
};

static const uint64_t powers_of_five[TABLE_STEP] = {
    UINT64_C(1),
    UINT64_C(5),
    UINT64_C(25),
    UINT64_C(125),
    UINT64_C(625),
    UINT64_C(3125),
    UINT64_C(15625),
    UINT64_C(78125),
    UINT64_C(390625),
    UINT64_C(1953125),
    UINT64_C(9765625),
    UINT64_C(48828125),
    UINT64_C(244140625),
    UINT64_C(1220703125),
    UINT64_C(6103515625),
    UINT64_C(30517578125),
    UINT64_C(152587890625),
    UINT64_C(762939453125),
    UINT64_C(3814697265625),
    UINT64_C(19073486328125),
    UINT64_C(95367431640625),
    UINT64_C(476837158203125),
    UINT64_C(2384185791015625),
    UINT64_C(11920928955078125),
    UINT64_C(59604644775390625),
    UINT64_C(298023223876953125),
    UINT64_C(1490116119384765625),
};

typedef struct interval {
    tarn_uint128 low;
    tarn_uint128 error;
    int exponent;
} interval;

/* Top 128 bits of a * b, where the top bits of both are set; *shifted says whether the product
 * had one bit less. */
static tarn_uint128 multiply_top(tarn_uint128 a, uint64_t b, int *shifted) {
    tarn_uint128 high = (tarn_uint128)(uint64_t)(a >> 64) * b;
    tarn_uint128 low = (tarn_uint128)(uint64_t)a * b;
    tarn_uint128 top = high + (low >> 64);
    *shifted = 0;
    if ((top >> 127) == 0) {
        top = top << 1 | ((uint64_t)low >> 63);
        *shifted = 1;
    }
    return top;
}

/* floor(log2(10^q)), checked for |q| < 400. */
static int floor_log2_pow10(int q) {
    return (q * 1741647) >> 19;
}

/* w * 10^q, w not 0, |q| <= 350; truncated: the true w lies between w and w + 1. */
static interval approximate(uint64_t w, int q, bool truncated) {
    int row = (int)num_floor_div(q, TABLE_STEP);
    int rest = q - row * TABLE_STEP;
    tarn_uint128 power = (tarn_uint128)coarse_powers[row - TABLE_FIRST].high << 64 |
                         coarse_powers[row - TABLE_FIRST].low;
    uint64_t five = powers_of_five[rest];
    int shifted;
    power = multiply_top(power, five << __builtin_clzll(five), &shifted);
    int zeros = __builtin_clzll(w);
    interval v;
    v.low = multiply_top(power, w << zeros, &shifted);
    /* The power is short by less than 3 units: under 2 from the table, under 1 from the product.
     * The second product carries at most twice that, and less than 1 of its own. */
    v.error = row == 0 ? 0 : 8;
    if (truncated) {
        v.error += ((power >> 64) + 1) << (zeros + shifted);
    }
    /* power is 10^q * 2^(127 - floor(log2(10^q))), up to its error. */
    v.exponent = floor_log2_pow10(q) - 127 + 64 - zeros - shifted;
    return v;
}

/* A whole number, least limb first. */
typedef struct big {
    size_t len;
    uint64_t limbs[BIG_LIMBS];
} big;

static void big_multiply_add(big *b, uint64_t factor, uint64_t addend) {
    tarn_uint128 carry = addend;
    for (size_t i = 0; i < b->len; i++) {
        carry += (tarn_uint128)b->limbs[i] * factor;
        b->limbs[i] = (uint64_t)carry;
        carry >>= 64;
    }
    if (carry != 0) {
        tarn_assert(b->len < BIG_LIMBS);
        b->limbs[b->len++] = (uint64_t)carry;
    }
}

static void big_multiply_pow5(big *b, int n) {
    for (; n >= TABLE_STEP - 1; n -= TABLE_STEP - 1) {
        big_multiply_add(b, powers_of_five[TABLE_STEP - 1], 0);
    }
    big_multiply_add(b, powers_of_five[n], 0);
}

static void big_shift_left(big *b, int bits) {
    size_t limbs = (size_t)bits / 64;
    tarn_assert(b->len + limbs < BIG_LIMBS);
    memmove(b->limbs + limbs, b->limbs, b->len * sizeof *b->limbs);
    memset(b->limbs, 0, limbs * sizeof *b->limbs);
    b->len += limbs;
    big_multiply_add(b, UINT64_C(1) << (bits % 64), 0);
}

static int big_compare(const big *a, const big *b) {
    if (a->len != b->len) {
        return a->len < b->len ? -1 : 1;
    }
    for (size_t i = a->len; i > 0; i--) {
        if (a->limbs[i - 1] != b->limbs[i - 1]) {
            return a->limbs[i - 1] < b->limbs[i - 1] ? -1 : 1;
        }
    }
    return 0;
}

/* Sign of d * 10^q - m * 2^x. d is changed. The two must be of like size, so that BIG_LIMBS hold
 * them: 800 digits, or 54 bits times 5^1125, are under 2700 bits. */
static int compare_exact(big *d, int q, uint64_t m, int x) {
    big right;
    right.len = m != 0 ? 1 : 0;
    right.limbs[0] = m;
    if (q >= 0) {
        big_multiply_pow5(d, q);
    } else {
        big_multiply_pow5(&right, -q);
    }
    if (q >= x) {
        big_shift_left(d, q - x);
    } else {
        big_shift_left(&right, x - q);
    }
    return big_compare(d, &right);
}

/* Sign of w * 10^q - m * 2^x; w and m not 0. */
static int compare(uint64_t w, int q, uint64_t m, int x) {
    interval v = approximate(w, q, false);
    int zeros = __builtin_clzll(m);
    tarn_uint128 right = (tarn_uint128)m << (64 + zeros);
    int right_exponent = x - 64 - zeros;
    if (v.exponent > right_exponent) {
        return 1;
    }
    tarn_uint128 high = v.low + v.error;
    bool carried = high < v.low;
    if (v.exponent < right_exponent) {
        if (!carried) {
            return -1;
        }
    } else if (right < v.low) {
        return 1;
    } else if (!carried && right > high) {
        return -1;
    } else if (v.error == 0) {
        return 0;
    }
    big d;
    d.len = 1;
    d.limbs[0] = w;
    return compare_exact(&d, q, m, x);
}

/* A decimal number in text: sign, digits with at most one point, exponent. */
typedef struct decimal {
    bool negative;
    bool truncated; /* digits after the 19th were dropped from w and some may not be 0 */
    uint64_t w;     /* first 19 digits that count */
    int64_t q;      /* value is w * 10^q */
    const char *digits;
    const char *digits_end;
    int64_t q_last; /* the exponent of the last digit in the text */
} decimal;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool read_exponent(const char **p, const char *end, int64_t *exponent) {
    *exponent = 0;
    if (*p == end || (**p | 0x20) != 'e') {
        return true;
    }
    (*p)++;
    bool negative = *p < end && **p == '-';
    if (*p < end && (**p == '-' || **p == '+')) {
        (*p)++;
    }
    if (*p == end || !is_digit(**p)) {
        return false;
    }
    for (; *p < end && is_digit(**p); (*p)++) {
        if (*exponent < INT64_C(1000000000000000)) {
            *exponent = *exponent * 10 + (**p - '0');
        }
    }
    if (negative) {
        *exponent = -*exponent;
    }
    return true;
}

/* Takes the first 19 digits that count, after leading zeros. */
static void truncate_digits(decimal *d) {
    int64_t behind = 0; /* digits not taken */
    int taken = 0;
    d->w = 0;
    for (const char *p = d->digits; p < d->digits_end; p++) {
        if (*p == '.' || (taken == 0 && *p == '0')) {
            continue;
        }
        if (taken < 19) {
            d->w = d->w * 10 + (uint64_t)(*p - '0');
            taken++;
        } else {
            behind++;
            d->truncated = d->truncated || *p != '0';
        }
    }
    d->q = d->q_last + behind;
}

static bool read_decimal(tarn_str s, decimal *d) {
    const char *p = s.data;
    const char *end = p + s.len;
    d->negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    d->digits = p;
    d->truncated = false;
    uint64_t w = 0;
    for (; p < end && is_digit(*p); p++) {
        w = w * 10 + (uint64_t)(*p - '0');
    }
    int64_t n_digits = p - d->digits;
    int64_t fraction = 0;
    if (p < end && *p == '.') {
        const char *from = ++p;
        for (; p < end && is_digit(*p); p++) {
            w = w * 10 + (uint64_t)(*p - '0');
        }
        fraction = p - from;
        n_digits += fraction;
    }
    d->digits_end = p;
    int64_t exponent;
    if (n_digits == 0 || !read_exponent(&p, end, &exponent) || p != end) {
        return false;
    }
    d->w = w;
    d->q_last = exponent - fraction;
    d->q = d->q_last;
    if (n_digits > 19) {
        truncate_digits(d);
    }
    return true;
}

/* All digits, or the first MAX_DIGITS and one more digit that stands for the rest. */
static int load_digits(const decimal *d, big *out) {
    int64_t behind = 0;
    int taken = 0;
    bool rest = false;
    out->len = 0;
    for (const char *p = d->digits; p < d->digits_end; p++) {
        if (*p == '.' || (taken == 0 && *p == '0')) {
            continue;
        }
        if (taken < MAX_DIGITS) {
            big_multiply_add(out, 10, (uint64_t)(*p - '0'));
            taken++;
        } else {
            behind++;
            rest = rest || *p != '0';
        }
    }
    int64_t q = d->q_last + behind;
    if (rest) {
        big_multiply_add(out, 10, 1);
        q--;
    }
    return (int)q;
}

/* Whether d lies above the point halfway between m and m + 1 (times 2^x), or on it with m odd. */
static bool rounds_up(const decimal *d, uint64_t m, int x) {
    big digits;
    int q = load_digits(d, &digits);
    int order = compare_exact(&digits, q, 2 * m + 1, x - 1);
    return order > 0 || (order == 0 && (m & 1) != 0);
}

/* The mantissa and exponent nearest to d, ties to even; false when it is above the greatest. */
static bool round_decimal(const decimal *d, const float_kind *kind, uint64_t *mantissa,
                          int *exponent) {
    *mantissa = 0;
    *exponent = kind->min_exponent;
    if (d->w == 0 || d->q < -343) {
        return true; /* less than 10^19 * 10^-344 is below half of the least double */
    }
    if (d->q > 310) {
        return false;
    }
    interval v = approximate(d->w, (int)d->q, d->truncated);
    int drop = 128 - kind->mantissa_bits;
    if (v.exponent + drop < kind->min_exponent) {
        drop = kind->min_exponent - v.exponent;
    }
    int x = v.exponent + drop;
    tarn_uint128 high = v.low + v.error;
    bool carried = high < v.low;
    if (drop > 128) {
        /* Below half of the least number, but for what the error may bring to its very edge. */
        *mantissa = drop == 129 && carried && rounds_up(d, 0, x);
        return true;
    }
    uint64_t m = drop == 128 ? 0 : (uint64_t)(v.low >> drop);
    tarn_uint128 half = (tarn_uint128)1 << (drop - 1);
    tarn_uint128 rest = drop == 128 ? v.low : v.low & (((tarn_uint128)1 << drop) - 1);
    bool up = rest > half || (rest == half && (m & 1) != 0);
    if (v.error != 0 && rest <= half && half - rest <= v.error) {
        up = rounds_up(d, m, x);
    }
    m += up;
    if (m >> kind->mantissa_bits != 0) {
        m >>= 1;
        x++;
    }
    *mantissa = m;
    *exponent = x;
    return x <= kind->max_exponent;
}

/* NaN, Infinity and their kin, in any case. */
static bool read_special(tarn_str s, double *out) {
    bool negative = s.len > 0 && s.data[0] == '-';
    if (s.len > 0 && (negative || s.data[0] == '+')) {
        s = str_from(s, 1);
    }
    if (str_eq_nocase(s, STR("nan"))) {
        *out = (double)NAN;
        return true;
    }
    if (str_eq_nocase(s, STR("infinity")) || str_eq_nocase(s, STR("inf"))) {
        *out = negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    return false;
}

bool str_to_f64(tarn_str s, double *out) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    decimal d;
    if (s.len == 0) {
        return false;
    }
    if (!read_decimal(s, &d)) {
        return read_special(s, out);
    }
    /* Both exact in a double, so one operation rounds once. */
    if (!d.truncated && d.w <= UINT64_C(1) << 53 && d.q >= -22 && d.q <= 22) {
        double v = (double)d.w;
        v = d.q < 0 ? v / powers[-d.q] : v * powers[d.q];
        *out = d.negative ? -v : v;
        return true;
    }
    uint64_t mantissa;
    int exponent;
    if (!round_decimal(&d, &kind_f64, &mantissa, &exponent)) {
        return false;
    }
    uint64_t bits = mantissa & ((UINT64_C(1) << 52) - 1);
    if (mantissa >> 52 != 0) {
        bits |= (uint64_t)(exponent + 1075) << 52;
    }
    bits |= (uint64_t)d.negative << 63;
    memcpy(out, &bits, sizeof bits);
    return true;
}

bool str_to_f32(tarn_str s, float *out) {
    decimal d;
    double special;
    if (s.len == 0) {
        return false;
    }
    if (!read_decimal(s, &d)) {
        if (!read_special(s, &special)) {
            return false;
        }
        *out = (float)special;
        return true;
    }
    uint64_t mantissa;
    int exponent;
    if (!round_decimal(&d, &kind_f32, &mantissa, &exponent)) {
        return false;
    }
    uint32_t bits = (uint32_t)mantissa & ((UINT32_C(1) << 23) - 1);
    if (mantissa >> 23 != 0) {
        bits |= (uint32_t)(exponent + 150) << 23;
    }
    bits |= (uint32_t)d.negative << 31;
    memcpy(out, &bits, sizeof bits);
    return true;
}

/* floor(m * 2^e / 10^k). */
static uint64_t scale_down(uint64_t m, int e, int k) {
    interval v = approximate(m, -k, false);
    int shift = -(v.exponent + e);
    tarn_assert(shift > 0 && shift < 128);
    uint64_t low = (uint64_t)(v.low >> shift);
    tarn_uint128 next = ((tarn_uint128)low + 1) << shift;
    /* next is 0 when it is 2^128: what is left up to it is right in any case. */
    if (v.error < next - v.low) {
        return low;
    }
    return compare(low + 1, k, m, e) > 0 ? low : low + 1;
}

/* The shortest decimal in the interval that rounds to m * 2^e, of those the nearest: digits * 10^k.
 * The interval is as wide as 10^k or wider and narrower than 10^(k+1), so it holds a multiple of
 * 10^k, and at most one of 10^(k+1), which has fewer digits. */
static uint64_t shortest(uint64_t m, int e, bool narrow_below, int *k_out) {
    int k = narrow_below ? (e * 1262611 - 524031) >> 22 : (e * 1262611) >> 22;
    uint64_t below = 4 * m - (narrow_below ? 1 : 2);
    uint64_t above = 4 * m + 2;
    int edge = (m & 1) == 0 ? 0 : 1; /* an even mantissa wins ties: the ends belong to it */
    uint64_t s = scale_down(m, e, k);
    uint64_t tens = s - s % 10;
    *k_out = k;
    if (tens != 0 && compare(tens, k, below, e - 2) >= edge) {
        return tens;
    }
    if (compare(tens + 10, k, above, e - 2) <= -edge) {
        return tens + 10;
    }
    bool low_in = s != 0 && compare(s, k, below, e - 2) >= edge;
    bool high_in = compare(s + 1, k, above, e - 2) <= -edge;
    if (low_in && high_in) {
        int order = compare(2 * s + 1, k, m, e + 1);
        return s + (order < 0 || (order == 0 && (s & 1) != 0));
    }
    return low_in ? s : s + 1;
}

/* Writes digits * 10^k. Plain from 1e-5 to 1e16, with an exponent beyond. */
static size_t write_decimal(char *out, uint64_t digits, int k) {
    char text[24];
    size_t len = 0;
    while (digits != 0 && digits % 10 == 0) {
        digits /= 10;
        k++;
    }
    size_t n = str_from_i64((int64_t)digits, text);
    int point = (int)n + k; /* digits before the point */
    if (point > 16 || point < -4) {
        out[len++] = text[0];
        if (n > 1) {
            out[len++] = '.';
            memcpy(out + len, text + 1, n - 1);
            len += n - 1;
        }
        out[len++] = 'e';
        return len + str_from_i64(point - 1, out + len);
    }
    if (point <= 0) {
        memcpy(out, "0.00000", 7);
        len = 2 + (size_t)-point;
        memcpy(out + len, text, n);
        return len + n;
    }
    size_t whole = (size_t)point;
    if (whole >= n) {
        memcpy(out, text, n);
        memset(out + n, '0', whole - n);
        memcpy(out + whole, ".0", 2);
        return whole + 2;
    }
    memcpy(out, text, whole);
    out[whole] = '.';
    memcpy(out + whole + 1, text + whole, n - whole);
    return n + 1;
}

static size_t write_float(char out[32], bool negative, uint64_t m, int e, const float_kind *kind) {
    size_t sign = 0;
    if (negative) {
        out[sign++] = '-';
    }
    int k = 0;
    uint64_t digits;
    if (m == 0) {
        digits = 0;
    } else if (e <= 0 && e > -kind->mantissa_bits && (m & ((UINT64_C(1) << -e) - 1)) == 0) {
        digits = m >> -e; /* a whole number, its neighbours at most 1 away */
    } else {
        bool narrow_below = m == UINT64_C(1) << (kind->mantissa_bits - 1) && e > kind->min_exponent;
        digits = shortest(m, e, narrow_below, &k);
    }
    size_t len = sign + write_decimal(out + sign, digits, k);
    out[len] = '\0';
    return len;
}

static size_t write_special(char out[32], bool nan, bool negative) {
    const char *text = nan ? "NaN" : negative ? "-Infinity" : "Infinity";
    size_t len = strlen(text);
    memcpy(out, text, len + 1);
    return len;
}

size_t str_from_f64(double v, char out[32]) {
    if (!isfinite(v)) {
        return write_special(out, isnan(v), v < 0);
    }
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    uint64_t m = bits & ((UINT64_C(1) << 52) - 1);
    int biased = (int)(bits >> 52 & 0x7FF);
    if (biased > 0) {
        m |= UINT64_C(1) << 52;
    } else {
        biased = 1;
    }
    return write_float(out, bits >> 63 != 0, m, biased - 1075, &kind_f64);
}

size_t str_from_f32(float v, char out[32]) {
    if (!isfinite(v)) {
        return write_special(out, isnan(v), v < 0);
    }
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    uint64_t m = bits & ((UINT32_C(1) << 23) - 1);
    int biased = (int)(bits >> 23 & 0xFF);
    if (biased > 0) {
        m |= UINT32_C(1) << 23;
    } else {
        biased = 1;
    }
    return write_float(out, bits >> 31 != 0, m, biased - 150, &kind_f32);
}
