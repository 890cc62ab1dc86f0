/* net/url.c - URLs taken apart by hand: what is sent is checked again by libcurl. */
#include "net/url.h"

static bool is_unreserved(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

tarn_str url_encode(tarn_arena *arena, tarn_str text) {
    bool dots = str_is(text, ".") || str_is(text, ".."); /* which are no names in a path */
    char *out = arena_alloc(arena, text.len * 3 + 1);
    size_t len = 0;
    if (out == NULL) {
        return STR_NULL;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (is_unreserved(c) && !dots) {
            out[len++] = (char)c;
        } else {
            out[len++] = '%';
            out[len++] = "0123456789ABCDEF"[c >> 4];
            out[len++] = "0123456789ABCDEF"[c & 15];
        }
    }
    out[len] = 0;
    return str_make(out, len);
}

/* The bytes between "://" and the path, and where the path begins. */
static tarn_str authority_of(tarn_str url, size_t *start, size_t *end) {
    size_t at;
    *start = 0;
    if (str_find_char(url, ':', &at) && str_starts_with(str_from(url, at), STR("://"))) {
        *start = at + 3;
    }
    *end = *start;
    while (*end < url.len && memchr("/?#", url.data[*end], 3) == NULL) {
        ++*end;
    }
    tarn_str all = str_sub(url, *start, *end - *start);
    return str_find_last_char(all, '@', &at) ? str_from(all, at + 1) : all;
}

const char *url_label(tarn_arena *arena, tarn_str url) {
    size_t start;
    size_t end;
    tarn_str host = authority_of(url, &start, &end);
    size_t stop = end;
    while (stop < url.len && url.data[stop] != '?' && url.data[stop] != '#') {
        stop++;
    }
    tarn_str path = str_sub(url, end, stop - end);
    const char *label = arena_printf(arena, "%.*s%.*s%.*s", (int)(start > 16 ? 16 : start),
                                     url.data, STR_ARG(host), STR_ARG(path));
    return label != NULL ? label : "?";
}

tarn_str url_host(tarn_str url) {
    size_t start;
    size_t end;
    size_t at;
    tarn_str host = authority_of(url, &start, &end);
    if (host.len > 0 && host.data[0] == '[') {
        return str_find_char(host, ']', &at) ? str_sub(host, 1, at - 1) : STR_NULL;
    }
    return str_find_char(host, ':', &at) ? str_sub(host, 0, at) : host;
}

bool url_is_loopback(tarn_str url) {
    tarn_str host = url_host(url);
    return str_eq_nocase(host, STR("localhost")) || str_starts_with(host, STR("127.")) ||
           str_is(host, "::1");
}
