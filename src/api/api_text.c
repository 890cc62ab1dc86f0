/* api/api_text.c - texts in and out of the API: JSON results, property lists, column lists, names
 * of codes. */
#include "api/handles.h"

const char *tarn_version(void) {
    return "0.1.0";
}

void tarn_text_free(tarn_env *env, char *text) {
    env_free(env, text);
}

tarn_code api_give_text(tarn_env *env, tarn_buf *text, char **out, tarn_error *err) {
    char *copy = env_alloc(env, text->len + 1);
    if (copy == NULL) {
        buf_release(text);
        return err_nomem(err);
    }
    if (text->len > 0) {
        memcpy(copy, text->data, text->len);
    }
    copy[text->len] = '\0';
    buf_release(text);
    *out = copy;
    return TARN_OK;
}

tarn_code api_blame_caller(tarn_code code, tarn_error *err) {
    if (code != TARN_CORRUPT) {
        return code;
    }
    err->code = TARN_INVALID;
    return TARN_INVALID;
}

tarn_code api_json(tarn_arena *arena, const char *text, const char *what, json_value **out,
                   tarn_error *err) {
    return api_blame_caller(json_parse(arena, str_of(text), what, out, err), err);
}

tarn_code api_properties(tarn_arena *arena, const char *json, const char *what,
                         tarn_properties *out, tarn_error *err) {
    json_value *root;
    memset(out, 0, sizeof *out);
    if (json == NULL) {
        return TARN_OK;
    }
    tarn_code code = api_json(arena, json, what, &root, err);
    if (code != TARN_OK) {
        return code;
    }
    if (root->kind != JSON_OBJECT) {
        return err_set(err, TARN_INVALID, "%s was not a JSON object", what);
    }
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, root->count + 1);
    if (items == NULL) {
        return err_nomem(err);
    }
    int32_t n = 0;
    for (const json_value *member = root->first; member != NULL; member = member->next) {
        items[n].key = member->name;
        if (member->kind == JSON_STRING || member->kind == JSON_NUMBER) {
            items[n].value = member->text;
        } else if (member->kind == JSON_BOOL) {
            items[n].value = member->boolean ? STR("true") : STR("false");
        } else {
            return err_set(err, TARN_INVALID, "%s had member %.*s, which is not a text", what,
                           STR_ARG(member->name));
        }
        n++;
    }
    out->items = items;
    out->count = n;
    return TARN_OK;
}

/* Where the next name of the list ends: at a comma outside quotes. */
static size_t name_end(tarn_str text) {
    char quote = '\0';
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '`' || c == '"') {
            quote = c;
        } else if (c == ',') {
            return i;
        }
    }
    return text.len;
}

/* A quoted name without its quotes, where a doubled quote stands for one. NULL data: no memory. */
static tarn_str without_quotes(tarn_arena *arena, tarn_str name) {
    if (name.len < 2 || (name.data[0] != '`' && name.data[0] != '"') ||
        name.data[name.len - 1] != name.data[0]) {
        return name;
    }
    char *text = arena_alloc(arena, name.len);
    size_t len = 0;
    for (size_t i = 1; text != NULL && i + 1 < name.len; i++) {
        text[len++] = name.data[i];
        i += name.data[i] == name.data[0] && name.data[i + 1] == name.data[0];
    }
    return str_make(text, len);
}

tarn_code api_names(tarn_arena *arena, const char *text, const tarn_str **out, int32_t *n,
                    tarn_error *err) {
    tarn_str rest = text != NULL ? arena_str(arena, str_of(text)) : STR_NULL;
    *out = NULL;
    *n = 0;
    if (text == NULL) {
        return TARN_OK;
    }
    tarn_str *names = ARENA_ARRAY(arena, tarn_str, rest.len / 2 + 2);
    if (rest.data == NULL || names == NULL) {
        return err_nomem(err);
    }
    for (;;) {
        size_t end = name_end(rest);
        tarn_str name = without_quotes(arena, str_trim(str_sub(rest, 0, end)));
        if (name.data == NULL) {
            return err_nomem(err);
        }
        if (name.len == 0) {
            return err_set(err, TARN_INVALID, "column list \"%s\" has an empty name", text);
        }
        names[(*n)++] = name;
        if (end == rest.len) {
            break;
        }
        rest = str_from(rest, end + 1);
    }
    *out = names;
    return TARN_OK;
}

tarn_code api_filter(tarn_arena *arena, const char *text, const tarn_expr **out, tarn_error *err) {
    *out = NULL;
    if (text == NULL) {
        return TARN_OK;
    }
    tarn_str kept = arena_str(arena, str_of(text));
    return kept.data != NULL ? expr_parse(arena, kept, out, err) : err_nomem(err);
}
