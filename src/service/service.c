/* service/service.c - the table of routes, and a request's way to its handler. */
#include "service/service_int.h"

#define NS "/v1/{prefix}/namespaces"

const service_route SERVICE_ROUTES[] = {
    {"GET", "/v1/config", rest_config, REPLY_REQUEST, true},
    {"GET", NS, rest_list_namespaces, REPLY_NAMESPACE, false},
    {"POST", NS, rest_create_namespace, REPLY_NAMESPACE, false},
    {"GET", NS "/{namespace}", rest_load_namespace, REPLY_NAMESPACE, false},
    {"HEAD", NS "/{namespace}", rest_has_namespace, REPLY_NAMESPACE, false},
    {"DELETE", NS "/{namespace}", rest_drop_namespace, REPLY_NAMESPACE, false},
    {"POST", NS "/{namespace}/properties", rest_update_namespace, REPLY_NAMESPACE, false},
    {"GET", NS "/{namespace}/tables", rest_list_tables, REPLY_NAMESPACE, false},
    {"POST", NS "/{namespace}/tables", rest_create_table, REPLY_NAMESPACE, false},
    {"POST", NS "/{namespace}/register", rest_register_table, REPLY_NAMESPACE, false},
    {"GET", NS "/{namespace}/tables/{table}", rest_load_table, REPLY_TABLE, false},
    {"HEAD", NS "/{namespace}/tables/{table}", rest_has_table, REPLY_TABLE, false},
    {"POST", NS "/{namespace}/tables/{table}", rest_commit_table, REPLY_COMMIT, false},
    {"DELETE", NS "/{namespace}/tables/{table}", rest_drop_table, REPLY_TABLE, false},
    {"POST", NS "/{namespace}/tables/{table}/metrics", rest_metrics, REPLY_TABLE, false},
    {"POST", "/v1/{prefix}/tables/rename", rest_rename_table, REPLY_TABLE, false},
};
const size_t SERVICE_N_ROUTES = sizeof SERVICE_ROUTES / sizeof SERVICE_ROUTES[0];

/* Cuts the path at slashes; more than any route has is no route. */
static bool split_path(service_request *r) {
    tarn_str rest = str_from(r->path, 1);
    tarn_str piece;
    while (str_split(&rest, '/', &piece)) {
        if (r->n_segments == REQUEST_MAX_SEGMENTS) {
            return false;
        }
        r->segments[r->n_segments++] = piece;
    }
    return str_starts_with(r->path, STR("/"));
}

static bool matches(const service_request *r, const char *pattern) {
    tarn_str rest = str_of(pattern + 1);
    tarn_str part;
    int32_t i = 0;
    while (str_split(&rest, '/', &part)) {
        if (str_is(part, "{prefix}")) {
            continue;
        }
        if (i == r->n_segments ||
            (part.data[0] == '{' ? r->segments[i].len == 0 : !str_eq(part, r->segments[i]))) {
            return false;
        }
        i++;
    }
    return i == r->n_segments;
}

/* Levels of a namespace are joined by the unit separator. */
static tarn_code take_namespace(service_request *r, tarn_str encoded, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str text = STR_NULL;
    tarn_str piece;
    TRY(request_decode(r, encoded, &text, err));
    tarn_str *levels = ARENA_ARRAY(&r->arena, tarn_str, text.len + 1);
    if (levels == NULL) {
        return err_nomem(err);
    }
    while (str_split(&text, '\x1f', &piece)) {
        levels[r->ns.n_levels++] = piece;
    }
    r->ns.levels = levels;
done:
    return code;
}

static tarn_code take_names(service_request *r, const char *pattern, tarn_error *err) {
    tarn_str rest = str_of(pattern + 1);
    tarn_str part;
    tarn_code code = TARN_OK;
    int32_t i = 0;
    while (str_split(&rest, '/', &part)) {
        if (str_is(part, "{prefix}")) {
            continue;
        }
        tarn_str encoded = r->segments[i++];
        if (str_is(part, "{namespace}")) {
            TRY(take_namespace(r, encoded, err));
        } else if (str_is(part, "{table}") || str_is(part, "{view}")) {
            r->table = r->ns;
            TRY(request_decode(r, encoded, &r->table.name, err));
        } else if (part.data[0] == '{') {
            TRY(request_decode(r, encoded, &r->id, err));
        }
    }
done:
    return code;
}

/* "a.b.t", as it is. */
static tarn_code ident_plain(const tarn_ident *ident, tarn_buf *out) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < ident->n_levels && code == TARN_OK; i++) {
        code = buf_append_str(out, ident->levels[i], NULL);
        if (code == TARN_OK && (i + 1 < ident->n_levels || ident->name.len > 0)) {
            code = buf_append_char(out, '.', NULL);
        }
    }
    return code == TARN_OK ? buf_append_str(out, ident->name, NULL) : code;
}

/* What is missing or there already, in the words that clients of other catalogs know. */
static void say_as_known(service_request *r, reply_subject subject, tarn_code code,
                         tarn_error *err) {
    tarn_buf name;
    bool missing = code == TARN_NOT_FOUND;
    bool is_table = subject == REPLY_TABLE || subject == REPLY_VIEW || subject == REPLY_COMMIT;
    if ((!missing && code != TARN_CONFLICT) || (subject == REPLY_COMMIT && !missing) ||
        subject == REPLY_REQUEST) {
        return;
    }
    is_table |= !missing && r->table.name.len > 0;
    buf_init(&name, r->service->env, 0);
    if (ident_plain(is_table ? &r->table : &r->ns, &name) == TARN_OK) {
        (void)err_set(err, code, "%s %s: %.*s",
                      !is_table               ? "Namespace"
                      : subject == REPLY_VIEW ? "View"
                                              : "Table",
                      missing ? "does not exist" : "already exists", STR_ARG(buf_str(&name)));
        err->detail[0] = '\0';
    }
    buf_release(&name);
}

static void run_route(service_request *r, const service_route *route, service_reply *reply) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = TARN_OK;
    reply->status = 200;
    TRY(take_names(r, route->pattern, &err));
    code = route->handle(r, reply, &err);
done:
    if (code != TARN_OK) {
        say_as_known(r, route->subject, code, &err);
        reply_error(r, reply, route->subject, code, &err);
    }
}

static void handle(void *ctx, service_request *r, service_reply *reply) {
    bool known = false;
    r->service = ctx;
    if (r->too_large) {
        reply_refuse(r, reply, 413, "BadRequestException", "the request's body is too large");
        return;
    }
    if (split_path(r)) {
        for (size_t i = 0; i < SERVICE_N_ROUTES; i++) {
            if (matches(r, SERVICE_ROUTES[i].pattern)) {
                known = true;
                if (strcmp(r->method, SERVICE_ROUTES[i].method) == 0) {
                    run_route(r, &SERVICE_ROUTES[i], reply);
                    return;
                }
            }
        }
    }
    if (known) {
        reply_refuse(r, reply, 405, "BadRequestException", "the path is known, the method is not");
    } else {
        reply_refuse(r, reply, 404, "NotFoundException", "there is nothing at this path");
    }
}

tarn_code service_start(tarn_env *env, tarn_catalog *catalog, const service_options *options,
                        rest_service **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    rest_service *s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->env = env;
    s->catalog = catalog;
    arena_init(&s->arena, env);
    s->warehouse = arena_str(&s->arena, options->warehouse);
    TRY(commit_queues_new(env, catalog, &s->queues, err));
    TRY(http_start(env, options, handle, s, &s->http, err));
    *out = s;
    s = NULL;
done:
    service_stop(s);
    return code;
}

uint16_t service_port(const rest_service *s) {
    return http_port(s->http);
}

void service_stop(rest_service *s) {
    if (s == NULL) {
        return;
    }
    http_stop(s->http);
    commit_queues_free(s->queues);
    arena_release(&s->arena);
    env_free(s->env, s);
}
