/* base/str.c - slices of bytes, UTF-8, hashing. Pure functions that never allocate. */
#include "base/str.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

int str_cmp(tarn_str a, tarn_str b) {
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);
    if (order != 0) {
        return order < 0 ? -1 : 1;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool str_starts_with(tarn_str s, tarn_str prefix) {
    return s.len >= prefix.len && str_eq(str_make(s.data, prefix.len), prefix);
}

bool str_ends_with(tarn_str s, tarn_str suffix) {
    return s.len >= suffix.len && str_eq(str_from(s, s.len - suffix.len), suffix);
}

static char to_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool str_eq_nocase(tarn_str a, tarn_str b) {
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (to_lower(a.data[i]) != to_lower(b.data[i])) {
            return false;
        }
    }
    return true;
}

bool str_find_char(tarn_str s, char c, size_t *at) {
    const char *found = s.len == 0 ? NULL : memchr(s.data, c, s.len);
    if (found == NULL) {
        return false;
    }
    *at = (size_t)(found - s.data);
    return true;
}

bool str_find_last_char(tarn_str s, char c, size_t *at) {
    for (size_t i = s.len; i > 0; i--) {
        if (s.data[i - 1] == c) {
            *at = i - 1;
            return true;
        }
    }
    return false;
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

tarn_str str_trim(tarn_str s) {
    while (s.len > 0 && is_space(s.data[0])) {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.data[s.len - 1])) {
        s.len--;
    }
    return s;
}

/* When the last piece was given, rest->data becomes NULL: so an empty last piece is given once. */
bool str_split(tarn_str *rest, char sep, tarn_str *piece) {
    if (rest->data == NULL) {
        return false;
    }
    size_t at;
    if (str_find_char(*rest, sep, &at)) {
        *piece = str_make(rest->data, at);
        rest->data += at + 1;
        rest->len -= at + 1;
    } else {
        *piece = *rest;
        *rest = STR_NULL;
    }
    return true;
}

bool str_to_bool(tarn_str s, bool *out) {
    if (str_eq_nocase(s, STR("true"))) {
        *out = true;
        return true;
    }
    if (str_eq_nocase(s, STR("false"))) {
        *out = false;
        return true;
    }
    return false;
}

/* Length of the valid UTF-8 sequence at p, 0 when there is none (RFC 3629). */
static size_t sequence_len(const unsigned char *p, size_t left) {
    unsigned char c = p[0];
    if (c < 0x80) {
        return 1;
    }
    if (c < 0xC2 || c > 0xF4) {
        return 0; /* a continuation byte, an overlong form, or above U+10FFFF */
    }
    size_t need = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (left < need) {
        return 0;
    }
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (c == 0xE0) {
        low = 0xA0;
    } else if (c == 0xED) {
        high = 0x9F; /* surrogates */
    } else if (c == 0xF0) {
        low = 0x90;
    } else if (c == 0xF4) {
        high = 0x8F;
    }
    if (p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < need; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return need;
}

bool str_utf8_valid(tarn_str s) {
    const unsigned char *p = (const unsigned char *)s.data;
    size_t i = 0;
    while (i < s.len) {
        while (s.len - i >= 16) {
            uint64_t a;
            uint64_t b;
            memcpy(&a, p + i, sizeof a);
            memcpy(&b, p + i + 8, sizeof b);
            if (((a | b) & UINT64_C(0x8080808080808080)) != 0) {
                break;
            }
            i += 16;
        }
        size_t stop = s.len - i > 16 ? i + 16 : s.len;
        while (i < stop) {
            size_t len = sequence_len(p + i, s.len - i);
            if (len == 0) {
                return false;
            }
            i += len;
        }
    }
    return true;
}

size_t str_utf8_prefix(tarn_str s, size_t n_code_points) {
    size_t i = 0;
    while (i < s.len) {
        if (((unsigned char)s.data[i] & 0xC0) != 0x80) {
            if (n_code_points == 0) {
                return i;
            }
            n_code_points--;
        }
        i++;
    }
    return s.len;
}

uint32_t str_utf8_next(tarn_str s, size_t *at) {
    const unsigned char *p = (const unsigned char *)s.data + *at;
    size_t len = sequence_len(p, s.len - *at);
    if (len == 0) {
        *at += 1;
        return 0xFFFD;
    }
    *at += len;
    if (len == 1) {
        return p[0];
    }
    uint32_t v = p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        v = v << 6 | (p[i] & 0x3Fu);
    }
    return v;
}

size_t str_utf8_put(uint32_t code_point, char out[4]) {
    uint32_t c = code_point;
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
        c = 0xFFFD;
    }
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

void str_digest(tarn_str s, uint8_t out[16]) {
    const XXH128_hash_t hash = XXH3_128bits(s.data != NULL ? s.data : "", s.len);
    memcpy(out, &hash.low64, 8);
    memcpy(out + 8, &hash.high64, 8);
}

uint64_t str_hash(tarn_str s) {
    return XXH3_64bits(s.data != NULL ? s.data : "", s.len);
}

int str_hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int str_base64_digit(char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}
