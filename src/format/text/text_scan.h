/* format/text/text_scan.h - finding bytes: 16 at a time where the processor can, else 8.
 * All may read up to TEXT_PADDING bytes past what they look for. */
#ifndef FORMAT_TEXT_TEXT_SCAN_H
#define FORMAT_TEXT_TEXT_SCAN_H

#include "base/num.h"
#include "base/str.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define TEXT_ONES  UINT64_C(0x0101010101010101)
#define TEXT_HIGHS UINT64_C(0x8080808080808080)

/* First byte from p on that is a quote, a backslash or a control character. *high: whether a byte
 * before it was not ASCII. */
static inline const char *text_find_special(const char *p, bool *high) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i slash = _mm_set1_epi8('\\');
    const __m128i control = _mm_set1_epi8(0x1F);
    unsigned highs = 0;
    for (;;) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash));
        hit = _mm_or_si128(hit, _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        unsigned above = (unsigned)_mm_movemask_epi8(v);
        if (mask != 0) {
            *high = (highs | (above & (mask - 1) & ~mask)) != 0;
            return p + __builtin_ctz(mask);
        }
        highs |= above;
        p += 16;
    }
#else
    uint64_t highs = 0;
    for (;;) {
        uint64_t v = num_load_u64(p);
        uint64_t quote = v ^ (TEXT_ONES * '"');
        uint64_t slash = v ^ (TEXT_ONES * '\\');
        uint64_t hit = (quote - TEXT_ONES) & ~quote;
        hit |= (slash - TEXT_ONES) & ~slash;
        hit |= (v - TEXT_ONES * 0x20) & ~v;
        hit &= TEXT_HIGHS;
        if (hit != 0) {
            *high = (highs | (v & TEXT_HIGHS & (hit - 1) & ~hit)) != 0;
            return p + (__builtin_ctzll(hit) >> 3);
        }
        highs |= v & TEXT_HIGHS;
        p += 8;
    }
#endif
}

/* First byte from p on that is a or '\n'. */
static inline const char *text_find_either(const char *p, char a) {
#if defined(__SSE2__)
    const __m128i first = _mm_set1_epi8(a);
    const __m128i line = _mm_set1_epi8('\n');
    for (;;) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, first), _mm_cmpeq_epi8(v, line));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask != 0) {
            return p + __builtin_ctz(mask);
        }
        p += 16;
    }
#else
    const uint64_t firsts = TEXT_ONES * (unsigned char)a;
    for (;;) {
        uint64_t v = num_load_u64(p);
        uint64_t first = v ^ firsts;
        uint64_t line = v ^ (TEXT_ONES * '\n');
        uint64_t hit = (((first - TEXT_ONES) & ~first) | ((line - TEXT_ONES) & ~line)) & TEXT_HIGHS;
        if (hit != 0) {
            return p + (__builtin_ctzll(hit) >> 3);
        }
        p += 8;
    }
#endif
}

/* Whether s is ASCII; reads up to 7 bytes past it. */
static inline bool text_is_ascii(const char *p, size_t len) {
    uint64_t all = 0;
    for (; len >= 8; len -= 8, p += 8) {
        all |= num_load_u64(p);
    }
    if (len > 0) {
        all |= num_load_u64(p) << (64 - 8 * len);
    }
    return (all & TEXT_HIGHS) == 0;
}

static inline bool text_is_digit(char c) {
    return (unsigned char)(c - '0') <= 9;
}

/* Ends of lines in [p, end). */
static inline int64_t text_count_lines(const char *p, const char *end) {
    int64_t n = 0;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        n++;
        p++;
    }
    return n;
}

/* The last '\n' in [p, end), or NULL. */
static inline const char *text_last_line(const char *p, const char *end) {
    while (end > p) {
        end--;
        if (*end == '\n') {
            return end;
        }
    }
    return NULL;
}

#endif
