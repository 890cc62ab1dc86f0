/* catalog/remote_namespace.c - namespaces of a REST catalog, and lists, which come in pages. */
#include "base/limits.h"
#include "catalog/catalog_rest_int.h"
#include "net/url.h"

#include <stdlib.h>

#define ONE        "namespaces/{namespace}"
#define PAGES_MOST 1000000

void remote_put_levels(json_writer *w, const tarn_ident *ident) {
    json_put_array(w);
    for (int32_t i = 0; i < ident->n_levels; i++) {
        json_put_string(w, ident->levels[i]);
    }
    json_end_array(w);
}

void remote_put_ident(json_writer *w, const tarn_ident *table) {
    json_put_object(w);
    json_put_name(w, STR("namespace"));
    remote_put_levels(w, table);
    json_member_str(w, "name", table->name);
    json_end_object(w);
}

/* path with page parameters behind what query it has. NULL: no memory. */
static const char *page_path(remote_catalog *self, tarn_arena *arena, const char *path,
                             tarn_str token) {
    tarn_str size = remote_property(self->client, "rest-page-size");
    const char *mark = strchr(path, '?') != NULL ? "&" : "?";
    tarn_str text = url_encode(arena, token);
    tarn_str size_text = url_encode(arena, size);
    if (text.data == NULL || size_text.data == NULL) {
        return NULL;
    }
    if (token.len == 0 && size.len == 0) {
        return path;
    }
    return size.len > 0 ? arena_printf(arena, "%s%spageToken=%s&pageSize=%s", path, mark, text.data,
                                       size_text.data)
                        : arena_printf(arena, "%s%spageToken=%s", path, mark, text.data);
}

tarn_code remote_list(remote_catalog *self, tarn_arena *arena, const char *endpoint,
                      const char *path, remote_take_page take, void *ctx, tarn_error *err) {
    tarn_str token = STR("");
    for (int64_t page = 0; page < PAGES_MOST; page++) {
        remote_reply reply;
        tarn_str next = STR_NULL;
        remote_request request = {
            .method = "GET", .endpoint = endpoint, .repeatable = true, .path = NULL};
        request.path = path != NULL ? page_path(self, arena, path, token) : NULL;
        tarn_code code = remote_send(self->client, arena, &request, &reply, err);
        if (code == TARN_OK) {
            code = take(ctx, reply.json, err);
        }
        if (code != TARN_OK) {
            return code;
        }
        (void)json_str(json_get(reply.json, "next-page-token"), &next);
        if (next.len == 0) {
            return TARN_OK;
        }
        if (str_eq(next, token)) {
            return err_set(err, TARN_CORRUPT, "the catalog at %s gave the same page again",
                           remote_client_label(self->client));
        }
        token = next;
    }
    return err_set(err, TARN_LIMIT, "the catalog at %s gave more than %d pages",
                   remote_client_label(self->client), PAGES_MOST);
}

/* The namespaces of all pages. */
typedef struct level_list {
    tarn_arena *arena;
    const tarn_ident *parent;
    const char *label; /* of the server */
    tarn_ident *items;
    int32_t n, cap;
} level_list;

static tarn_code add_namespace(level_list *list, const json_value *item, tarn_error *err) {
    int32_t n_levels = list->parent->n_levels + 1;
    if (list->n == list->cap) {
        int32_t cap = list->cap == 0 ? 16 : list->cap * 2;
        tarn_ident *grown = arena_grow(list->arena, list->items, (size_t)list->cap * sizeof *grown,
                                       (size_t)cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        list->items = grown;
        list->cap = cap;
    }
    tarn_str *levels = ARENA_ARRAY(list->arena, tarn_str, (size_t)n_levels);
    if (levels == NULL) {
        return err_nomem(err);
    }
    int32_t i = 0;
    for (const json_value *v = json_is(item, JSON_ARRAY) ? item->first : NULL; v != NULL;
         v = v->next, i++) {
        if (i >= n_levels || !json_str(v, &levels[i]) ||
            (i < list->parent->n_levels && !str_eq(levels[i], list->parent->levels[i]))) {
            i = -1;
            break;
        }
    }
    if (i != n_levels) {
        return err_set(err, TARN_CORRUPT,
                       "the catalog at %s listed a namespace that is not below the one asked for",
                       list->label);
    }
    list->items[list->n++] = (tarn_ident){n_levels, levels, STR_NULL};
    return TARN_OK;
}

static tarn_code take_namespaces(void *ctx, const json_value *page, tarn_error *err) {
    level_list *list = ctx;
    const json_value *names = json_get(page, "namespaces");
    if (!json_is(names, JSON_ARRAY)) {
        return err_set(err, TARN_CORRUPT, "the catalog at %s gave no list of namespaces",
                       list->label);
    }
    tarn_code code = TARN_OK;
    for (const json_value *v = names->first; v != NULL && code == TARN_OK; v = v->next) {
        code = add_namespace(list, v, err);
    }
    return code;
}

static int compare_last_level(const void *a, const void *b) {
    const tarn_ident *x = a;
    const tarn_ident *y = b;
    return str_cmp(x->levels[x->n_levels - 1], y->levels[y->n_levels - 1]);
}

tarn_code remote_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                                 tarn_ident **out, int32_t *n, tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    level_list list = {arena, parent, remote_client_label(self->client), NULL, 0, 0};
    tarn_str text = remote_namespace_text(self->client, arena, parent);
    const char *path = parent->n_levels == 0 ? "namespaces"
                       : text.data != NULL ? arena_printf(arena, "namespaces?parent=%s", text.data)
                                           : NULL;
    tarn_code code = remote_list(self, arena, "namespaces", path, take_namespaces, &list, err);
    if (code == TARN_OK) {
        if (list.n > 1) {
            qsort(list.items, (size_t)list.n, sizeof *list.items, compare_last_level);
        }
        *out = list.items;
        *n = list.n;
    }
    return code;
}

tarn_code remote_create_namespace(tarn_catalog *c, const tarn_ident *ns,
                                  const tarn_properties *properties, tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    tarn_arena arena;
    tarn_buf body;
    json_writer w;
    remote_reply reply;
    tarn_code code;
    arena_init(&arena, c->env);
    buf_init(&body, c->env, 0);
    json_begin(&w, &body, false, err);
    json_put_object(&w);
    json_put_name(&w, STR("namespace"));
    remote_put_levels(&w, ns);
    json_put_name(&w, STR("properties"));
    properties_put_json(properties, &w);
    json_end_object(&w);
    TRY(json_end(&w));
    const remote_request request = {
        .method = "POST", .endpoint = "namespaces", .path = "namespaces", .body = buf_str(&body)};
    code = remote_send(self->client, &arena, &request, &reply, err);
    if (code != TARN_OK && reply.unclear) { /* is it there now? */
        const remote_request look = {.method = "GET",
                                     .endpoint = ONE,
                                     .path = remote_namespace_path(self->client, &arena, ns, ""),
                                     .repeatable = true};
        if (remote_send(self->client, &arena, &look, &reply, NULL) == TARN_OK) {
            err_reset(err);
            code = TARN_OK;
        }
    }
done:
    buf_release(&body);
    arena_release(&arena);
    return code;
}

tarn_code remote_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                tarn_properties *out, tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    remote_reply reply;
    const remote_request request = {.method = "GET",
                                    .endpoint = ONE,
                                    .path = remote_namespace_path(self->client, arena, ns, ""),
                                    .repeatable = true};
    tarn_code code = remote_send(self->client, arena, &request, &reply, err);
    if (code != TARN_OK) {
        return code;
    }
    const json_value *properties = json_get(reply.json, "properties");
    return properties_from_json(arena, json_is(properties, JSON_NULL) ? NULL : properties,
                                "the namespace's properties", out, err);
}

/* A key that is set is not removed as well: the specification refuses that. */
static bool is_set(const tarn_properties *set, tarn_str key) {
    for (int32_t i = 0; i < set->count; i++) {
        if (str_eq(set->items[i].key, key)) {
            return true;
        }
    }
    return false;
}

tarn_code remote_update_namespace(tarn_catalog *c, const tarn_ident *ns, const tarn_properties *set,
                                  const tarn_properties *remove, tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    tarn_arena arena;
    tarn_buf body;
    json_writer w;
    remote_reply reply;
    tarn_code code;
    arena_init(&arena, c->env);
    buf_init(&body, c->env, 0);
    json_begin(&w, &body, false, err);
    json_put_object(&w);
    json_put_name(&w, STR("removals"));
    json_put_array(&w);
    for (int32_t i = 0; i < remove->count; i++) {
        if (!is_set(set, remove->items[i].key)) {
            json_put_string(&w, remove->items[i].key);
        }
    }
    json_end_array(&w);
    json_put_name(&w, STR("updates"));
    properties_put_json(set, &w);
    json_end_object(&w);
    TRY(json_end(&w));
    /* What comes twice changes nothing more. */
    const remote_request request = {
        .method = "POST",
        .endpoint = ONE "/properties",
        .path = remote_namespace_path(self->client, &arena, ns, "/properties"),
        .body = buf_str(&body),
        .repeatable = true};
    code = remote_send(self->client, &arena, &request, &reply, err);
done:
    buf_release(&body);
    arena_release(&arena);
    return code;
}

tarn_code remote_drop_namespace(tarn_catalog *c, const tarn_ident *ns, tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    tarn_arena arena;
    remote_reply reply;
    bool unclear;
    arena_init(&arena, c->env);
    remote_request request = {.method = "DELETE",
                              .endpoint = ONE,
                              .path = remote_namespace_path(self->client, &arena, ns, "")};
    tarn_code code = remote_send(self->client, &arena, &request, &reply, err);
    unclear = code != TARN_OK && reply.unclear;
    if (unclear) { /* again: it is gone, or it goes now */
        request.repeatable = true;
        code = remote_send(self->client, &arena, &request, &reply, err);
        if (code == TARN_NOT_FOUND) {
            err_reset(err);
            code = TARN_OK;
        }
    }
    arena_release(&arena);
    return code;
}
