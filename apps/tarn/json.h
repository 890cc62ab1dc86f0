/* apps/tarn/json.h - reading the JSON documents that libtarn gives, and writing the ones that it
 * takes. */
#ifndef TARN_APP_JSON_H
#define TARN_APP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct json json;
struct json {
    char kind; /* n b # s [ { */
    bool boolean;
    char *name; /* of a member */
    char *text; /* string unescaped, number as written */
    json *first;
    json *next;
};

/* NULL: not JSON, or no memory. Free with json_free. */
json *json_read(const char *text);
void json_free(json *value);
const json *json_at(const json *object, const char *name); /* NULL: absent */
const char *json_text(const json *object, const char *name, const char *fallback);
int64_t json_number(const json *object, const char *name, int64_t fallback);
size_t json_count(const json *list);

/* A growing text. */
typedef struct text {
    char *data;
    size_t len, cap;
} text;
void text_add(text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_add_json(text *t, const char *s); /* quoted and escaped */
/* The same of bytes that may hold anything: what is not UTF-8 becomes U+FFFD. False: there was
 * such. */
bool text_add_json_bytes(text *t, const char *data, size_t len);

#endif
