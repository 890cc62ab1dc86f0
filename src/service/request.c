/* service/request.c - what clients sent, taken apart: headers, query, escapes, JSON members. */
#include "service/request.h"

#include "service/daemon.h"

#include <stdlib.h>

const char *request_header(service_request *r, const char *name) {
    return http_value(r->connection, true, name);
}

tarn_code request_decode(service_request *r, tarn_str encoded, tarn_str *out, tarn_error *err) {
    char *bytes = arena_alloc(&r->arena, encoded.len + 1);
    size_t n = 0;
    if (bytes == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < encoded.len; i++) {
        char c = encoded.data[i];
        if (c == '%') {
            int high = i + 2 < encoded.len ? str_hex_digit(encoded.data[i + 1]) : -1;
            int low = i + 2 < encoded.len ? str_hex_digit(encoded.data[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return err_set(err, TARN_INVALID, "\"%.*s\" has a broken %%-escape at %zu",
                               STR_ARG(encoded), i);
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0') {
            return err_set(err, TARN_INVALID, "\"%.*s\" holds a NUL", STR_ARG(encoded));
        }
        bytes[n++] = c;
    }
    bytes[n] = '\0';
    *out = str_make(bytes, n);
    return str_utf8_valid(*out)
               ? TARN_OK
               : err_set(err, TARN_INVALID, "\"%.*s\" is not UTF-8", STR_ARG(encoded));
}

tarn_code request_query(service_request *r, const char *name, const char **out, tarn_error *err) {
    const char *raw = http_value(r->connection, false, name);
    tarn_str text = STR_NULL;
    *out = NULL;
    if (raw == NULL) {
        return TARN_OK;
    }
    char *plus = arena_strdup(&r->arena, raw);
    if (plus == NULL) {
        return err_nomem(err);
    }
    for (char *c = plus; *c != '\0'; c++) { /* forms write a space so */
        *c = *c == '+' ? ' ' : *c;
    }
    tarn_code code = request_decode(r, str_of(plus), &text, err);
    if (code == TARN_OK) {
        *out = text.data;
    }
    return code;
}

tarn_code request_check_query(service_request *r, const char *const *names, tarn_error *err) {
    const char *odd = http_other_parameter(r->connection, names);
    return odd == NULL
               ? TARN_OK
               : err_set(err, TARN_INVALID, "query parameter \"%s\" is not known here", odd);
}

tarn_code request_query_bool(service_request *r, const char *name, bool fallback, bool *out,
                             tarn_error *err) {
    const char *text;
    tarn_code code = request_query(r, name, &text, err);
    *out = fallback;
    if (code == TARN_OK && text != NULL && !str_to_bool(str_of(text), out)) {
        code = err_set(err, TARN_INVALID, "query parameter %s is \"%s\", not true or false", name,
                       text);
    }
    return code;
}

tarn_code request_json(service_request *r, const json_value **out, tarn_error *err) {
    json_value *json;
    if (r->body.len == 0) {
        return err_set(err, TARN_INVALID, "the request has no body");
    }
    tarn_code code = json_parse(&r->arena, buf_str(&r->body), "the request's body", &json, err);
    if (code == TARN_CORRUPT) {
        err->code = code = TARN_INVALID;
    }
    if (code == TARN_OK && json->kind != JSON_OBJECT) {
        code = err_set(err, TARN_INVALID, "the request's body is no JSON object");
    }
    if (code == TARN_OK) {
        *out = json;
    }
    return code;
}

tarn_code request_member_str(const json_value *object, const char *name, bool required,
                             tarn_str *out, tarn_error *err) {
    const json_value *v = json_get(object, name);
    *out = STR_NULL;
    if (v == NULL || v->kind == JSON_NULL) {
        return required ? err_set(err, TARN_INVALID, "member \"%s\" is missing", name) : TARN_OK;
    }
    return json_str(v, out) ? TARN_OK
                            : err_set(err, TARN_INVALID, "member \"%s\" is no string", name);
}

tarn_code request_member_properties(service_request *r, const json_value *object, const char *name,
                                    tarn_properties *out, tarn_error *err) {
    const json_value *v = json_get(object, name);
    memset(out, 0, sizeof *out);
    if (v == NULL || v->kind == JSON_NULL) {
        return TARN_OK;
    }
    if (v->kind != JSON_OBJECT) {
        return err_set(err, TARN_INVALID, "member \"%s\" is no object", name);
    }
    tarn_property *items = ARENA_ARRAY(&r->arena, tarn_property, v->count + 1);
    if (items == NULL) {
        return err_nomem(err);
    }
    for (const json_value *m = v->first; m != NULL; m = m->next) {
        if (m->kind != JSON_STRING) {
            return err_set(err, TARN_INVALID, "\"%.*s\" in \"%s\" is no string", STR_ARG(m->name),
                           name);
        }
        items[out->count++] = (tarn_property){m->name, m->text};
    }
    out->items = items;
    return TARN_OK;
}

tarn_code request_member_levels(service_request *r, const json_value *object, const char *name,
                                tarn_ident *out, tarn_error *err) {
    const json_value *v = json_get(object, name);
    memset(out, 0, sizeof *out);
    if (!json_is(v, JSON_ARRAY)) {
        return err_set(err, TARN_INVALID, "member \"%s\" is missing or no array", name);
    }
    tarn_str *levels = ARENA_ARRAY(&r->arena, tarn_str, v->count + 1);
    if (levels == NULL) {
        return err_nomem(err);
    }
    for (const json_value *m = v->first; m != NULL; m = m->next) {
        if (m->kind != JSON_STRING) {
            return err_set(err, TARN_INVALID, "a level of \"%s\" is no string", name);
        }
        levels[out->n_levels++] = m->text;
    }
    out->levels = levels;
    return TARN_OK;
}

tarn_code request_member_ident(service_request *r, const json_value *object, const char *name,
                               tarn_ident *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str table;
    const json_value *v = name != NULL ? json_get(object, name) : object;
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(err, TARN_INVALID, "member \"%s\" is missing or no object", name);
    }
    TRY(request_member_levels(r, v, "namespace", out, err));
    TRY(request_member_str(v, "name", true, &table, err));
    out->name = table;
done:
    return code;
}

static int compare_idents(const void *a, const void *b) {
    const tarn_ident *x = a;
    const tarn_ident *y = b;
    for (int32_t i = 0; i < x->n_levels && i < y->n_levels; i++) {
        int order = str_cmp(x->levels[i], y->levels[i]);
        if (order != 0) {
            return order;
        }
    }
    return x->n_levels != y->n_levels ? (x->n_levels < y->n_levels ? -1 : 1)
                                      : str_cmp(x->name, y->name);
}

tarn_code rest_as_invalid(tarn_code code, tarn_error *err) {
    if (code == TARN_CORRUPT) {
        err->code = code = TARN_INVALID;
    }
    return code;
}

tarn_code rest_as_named(tarn_code code, tarn_error *err) {
    if (code == TARN_NOT_FOUND) {
        err->code = code = TARN_INVALID;
    }
    return rest_as_invalid(code, err);
}

tarn_code request_same_ident(service_request *r, const json_value *body, tarn_error *err) {
    tarn_ident named;
    const json_value *v = json_get(body, "identifier");
    if (v == NULL || v->kind == JSON_NULL) {
        return TARN_OK;
    }
    tarn_code code = request_member_ident(r, body, "identifier", &named, err);
    if (code == TARN_OK && compare_idents(&named, &r->table) != 0) {
        code = err_set(err, TARN_INVALID,
                       "member \"identifier\" names %.*s, and the path is that of %.*s",
                       STR_ARG(named.name), STR_ARG(r->table.name));
    }
    return code;
}

/* A token is the last name given, so that pages hold while others create and drop. */
static tarn_str page_name(const tarn_ident *item) {
    return item->name.len > 0 ? item->name : item->levels[item->n_levels - 1];
}

tarn_code request_page(service_request *r, const tarn_ident *items, int32_t n, int32_t *first,
                       int32_t *end, const char **next, tarn_error *err) {
    const char *token;
    const char *size_text;
    int32_t size = 1000;
    tarn_code code = TARN_OK;
    *first = 0;
    *end = n;
    *next = NULL;
    TRY(request_query(r, "pageToken", &token, err));
    TRY(request_query(r, "pageSize", &size_text, err));
    if (token == NULL && size_text == NULL) {
        goto done;
    }
    if (size_text != NULL && (!str_to_i32(str_of(size_text), &size) || size <= 0)) {
        code = err_set(err, TARN_INVALID, "pageSize is \"%s\", not a positive number", size_text);
        goto done;
    }
    if (n > 1) {
        qsort((void *)(uintptr_t)items, (size_t)n, sizeof *items, compare_idents);
    }
    while (token != NULL && token[0] != '\0' && *first < n &&
           str_cmp(page_name(&items[*first]), str_of(token)) <= 0) {
        (*first)++;
    }
    if (n - *first > size) {
        *end = *first + size;
        *next = arena_str(&r->arena, page_name(&items[*end - 1])).data;
        code = *next != NULL ? TARN_OK : err_nomem(err);
    }
done:
    return code;
}
