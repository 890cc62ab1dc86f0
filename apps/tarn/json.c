/* apps/tarn/json.c - see json.h. Documents come from libtarn, so they are well formed; anything
 * else gives NULL. */
#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 200

static json *read_value(const char **at, int depth);

static void skip_space(const char **at) {
    while (**at == ' ' || **at == '\n' || **at == '\r' || **at == '\t') {
        (*at)++;
    }
}

static int hex4(const char *s) {
    char digits[5] = {0};
    for (int i = 0; i < 4; i++) {
        if (s[i] == '\0') {
            return -1;
        }
        digits[i] = s[i];
    }
    return (int)strtol(digits, NULL, 16);
}

static size_t put_utf8(char *out, unsigned long c) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* After the backslash; moves *at. */
static size_t read_escape(const char **at, char *out) {
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    char c = *(*at)++;
    const char *known = c != '\0' ? strchr(from, c) : NULL;
    if (known != NULL) {
        *out = to[known - from];
        return 1;
    }
    int unit = c == 'u' ? hex4(*at) : -1;
    if (unit < 0) {
        return 0;
    }
    *at += 4;
    unsigned long code = (unsigned long)unit;
    if (unit >= 0xd800 && unit < 0xdc00 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        int low = hex4(*at + 2);
        code = 0x10000 + (((unsigned long)unit - 0xd800) << 10) + ((unsigned long)low - 0xdc00);
        *at += 6;
    }
    return put_utf8(out, code);
}

static char *read_string(const char **at) {
    if (**at != '"') {
        return NULL;
    }
    (*at)++;
    size_t cap = 0;
    while ((*at)[cap] != '\0' && (*at)[cap] != '"') {
        cap += (*at)[cap] == '\\' && (*at)[cap + 1] != '\0' ? 2 : 1;
    }
    char *out = malloc(cap + 5);
    size_t len = 0;
    while (out != NULL && **at != '"') {
        if (**at == '\0') {
            free(out);
            return NULL;
        }
        if (**at == '\\') {
            (*at)++;
            len += read_escape(at, out + len);
        } else {
            out[len++] = *(*at)++;
        }
    }
    if (out != NULL) {
        (*at)++;
        out[len] = '\0';
    }
    return out;
}

static bool read_items(const char **at, json *parent, char close, int depth) {
    json **tail = &parent->first;
    (*at)++;
    for (skip_space(at); **at != close; skip_space(at)) {
        char *name = NULL;
        if (parent->first != NULL && *(*at)++ != ',') {
            return false;
        }
        skip_space(at);
        if (close == '}') {
            name = read_string(at);
            skip_space(at);
            if (name == NULL || *(*at)++ != ':') {
                free(name);
                return false;
            }
        }
        json *item = read_value(at, depth + 1);
        if (item == NULL) {
            free(name);
            return false;
        }
        item->name = name;
        *tail = item;
        tail = &item->next;
    }
    (*at)++;
    return true;
}

static bool read_word(const char **at, const char *word) {
    size_t len = strlen(word);
    if (strncmp(*at, word, len) != 0) {
        return false;
    }
    *at += len;
    return true;
}

static bool read_into(const char **at, json *value, int depth) {
    skip_space(at);
    switch (**at) {
    case '{':
        value->kind = '{';
        return read_items(at, value, '}', depth);
    case '[':
        value->kind = '[';
        return read_items(at, value, ']', depth);
    case '"':
        value->kind = 's';
        value->text = read_string(at);
        return value->text != NULL;
    case 't':
        value->kind = 'b';
        value->boolean = true;
        return read_word(at, "true");
    case 'f':
        value->kind = 'b';
        return read_word(at, "false");
    case 'n':
        value->kind = 'n';
        return read_word(at, "null");
    default:
        break;
    }
    size_t len = strspn(*at, "+-.0123456789eE");
    value->kind = '#';
    value->text = len > 0 ? strndup(*at, len) : NULL;
    *at += len;
    return value->text != NULL;
}

static json *read_value(const char **at, int depth) {
    json *value = depth < MAX_DEPTH ? calloc(1, sizeof *value) : NULL;
    if (value != NULL && !read_into(at, value, depth)) {
        json_free(value);
        return NULL;
    }
    return value;
}

json *json_read(const char *document) {
    const char *at = document;
    return read_value(&at, 0);
}

void json_free(json *value) {
    while (value != NULL) {
        json *next = value->next;
        json_free(value->first);
        free(value->name);
        free(value->text);
        free(value);
        value = next;
    }
}

const json *json_at(const json *object, const char *name) {
    for (const json *m = object != NULL ? object->first : NULL; m != NULL; m = m->next) {
        if (m->name != NULL && strcmp(m->name, name) == 0) {
            return m;
        }
    }
    return NULL;
}

const char *json_text(const json *object, const char *name, const char *fallback) {
    const json *m = json_at(object, name);
    if (m != NULL && m->kind == 'b') {
        return m->boolean ? "true" : "false";
    }
    return m != NULL && m->text != NULL ? m->text : fallback;
}

int64_t json_number(const json *object, const char *name, int64_t fallback) {
    const json *m = json_at(object, name);
    return m != NULL && m->text != NULL ? strtoll(m->text, NULL, 10) : fallback;
}

size_t json_count(const json *list) {
    size_t n = 0;
    for (const json *m = list != NULL ? list->first : NULL; m != NULL; m = m->next) {
        n++;
    }
    return n;
}

static void text_reserve(text *t, size_t extra) {
    if (t->len + extra + 1 > t->cap) {
        size_t cap = (t->len + extra + 1) * 2;
        char *data = realloc(t->data, cap);
        if (data == NULL) {
            fprintf(stderr, "tarn: out of memory\n");
            exit(1);
        }
        t->data = data;
        t->cap = cap;
    }
}

void text_add(text *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    text_reserve(t, (size_t)len);
    va_start(args, fmt);
    vsnprintf(t->data + t->len, (size_t)len + 1, fmt, args);
    va_end(args);
    t->len += (size_t)len;
}

/* Bytes of the UTF-8 character at s; 0: not one. */
static size_t utf8_length(const unsigned char *s, size_t len) {
    static const unsigned char least[] = {0, 0, 0x80, 0xa0, 0x90};
    size_t n = s[0] < 0x80   ? 1
               : s[0] < 0xc2 ? 0
               : s[0] < 0xe0 ? 2
               : s[0] < 0xf0 ? 3
               : s[0] < 0xf5 ? 4
                             : 0;
    if (n > len) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool shortest = (s[0] != 0xe0 && s[0] != 0xf0) || s[1] >= least[n];
    bool in_range = !(s[0] == 0xed && s[1] >= 0xa0) && !(s[0] == 0xf4 && s[1] >= 0x90);
    return n < 2 || (shortest && in_range) ? n : 0;
}

bool text_add_json_bytes(text *t, const char *data, size_t len) {
    bool whole = true;
    text_add(t, "\"");
    for (size_t at = 0; at < len;) {
        unsigned char c = (unsigned char)data[at];
        size_t n = utf8_length((const unsigned char *)data + at, len - at);
        if (n == 0) {
            text_add(t, "\\ufffd");
            whole = false;
            n = 1;
        } else if (c == '"' || c == '\\') {
            text_add(t, "\\%c", c);
        } else if (c < 0x20) {
            text_add(t, "\\u%04x", c);
        } else {
            text_add(t, "%.*s", (int)n, data + at);
        }
        at += n;
    }
    text_add(t, "\"");
    return whole;
}

void text_add_json(text *t, const char *s) {
    (void)text_add_json_bytes(t, s, strlen(s));
}
