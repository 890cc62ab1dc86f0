/* service/service.c - the table of routes, and a request's way to its handler. */
#include "service/service_int.h"
#include "service/tls.h"

#include <stdio.h>

#define NS "/v1/{prefix}/namespaces"

const service_route SERVICE_ROUTES[] = {
    {"GET", "/healthz", rest_health, REPLY_REQUEST, AUTH_NONE, ROUTE_PUBLIC},
    {"GET", "/metrics", rest_counters, REPLY_REQUEST, AUTH_NONE, ROUTE_HIDDEN},
    {"POST", "/v1/oauth/tokens", rest_token, REPLY_REQUEST, AUTH_NONE, ROUTE_PUBLIC},
    {"GET", "/v1/config", rest_config, REPLY_REQUEST, AUTH_NONE, ROUTE_HIDDEN},
    {"GET", NS, rest_list_namespaces, REPLY_NAMESPACE, AUTH_NONE, ROUTE_LISTED},
    {"POST", NS, rest_create_namespace, REPLY_NAMESPACE, AUTH_NONE, ROUTE_LISTED},
    {"GET", NS "/{namespace}", rest_load_namespace, REPLY_NAMESPACE, AUTH_READ, ROUTE_LISTED},
    {"HEAD", NS "/{namespace}", rest_has_namespace, REPLY_NAMESPACE, AUTH_READ, ROUTE_LISTED},
    {"DELETE", NS "/{namespace}", rest_drop_namespace, REPLY_NAMESPACE, AUTH_ADMIN, ROUTE_LISTED},
    {"POST", NS "/{namespace}/properties", rest_update_namespace, REPLY_NAMESPACE, AUTH_ADMIN,
     ROUTE_LISTED},
    {"GET", NS "/{namespace}/tables", rest_list_tables, REPLY_NAMESPACE, AUTH_READ, ROUTE_LISTED},
    {"POST", NS "/{namespace}/tables", rest_create_table, REPLY_NAMESPACE, AUTH_WRITE,
     ROUTE_LISTED},
    {"POST", NS "/{namespace}/register", rest_register_table, REPLY_NAMESPACE, AUTH_WRITE,
     ROUTE_LISTED},
    {"GET", NS "/{namespace}/tables/{table}", rest_load_table, REPLY_TABLE, AUTH_READ,
     ROUTE_LISTED},
    {"HEAD", NS "/{namespace}/tables/{table}", rest_has_table, REPLY_TABLE, AUTH_READ,
     ROUTE_LISTED},
    {"POST", NS "/{namespace}/tables/{table}", rest_commit_table, REPLY_COMMIT, AUTH_WRITE,
     ROUTE_LISTED},
    {"POST", NS "/{namespace}/tables/{table}/write-results", rest_write_results, REPLY_COMMIT,
     AUTH_WRITE, ROUTE_LISTED},
    {"POST", NS "/{namespace}/tables/{table}/rows", rest_rows, REPLY_TABLE, AUTH_WRITE,
     ROUTE_LISTED},
    {"DELETE", NS "/{namespace}/tables/{table}", rest_drop_table, REPLY_TABLE, AUTH_WRITE,
     ROUTE_LISTED},
    {"POST", NS "/{namespace}/tables/{table}/metrics", rest_metrics, REPLY_TABLE, AUTH_READ,
     ROUTE_LISTED},
    {"POST", NS "/{namespace}/tables/{table}/plan", rest_plan_scan, REPLY_TABLE, AUTH_READ,
     ROUTE_LISTED},
    {"GET", NS "/{namespace}/tables/{table}/plan/{plan-id}", rest_load_plan, REPLY_TABLE, AUTH_READ,
     ROUTE_LISTED},
    {"DELETE", NS "/{namespace}/tables/{table}/plan/{plan-id}", rest_cancel_plan, REPLY_TABLE,
     AUTH_READ, ROUTE_LISTED},
    {"POST", NS "/{namespace}/tables/{table}/tasks", rest_scan_tasks, REPLY_TABLE, AUTH_READ,
     ROUTE_LISTED},
    {"POST", NS "/{namespace}/tables/{table}/unregister", rest_unregister_table, REPLY_TABLE,
     AUTH_WRITE, ROUTE_LISTED},
    {"GET", NS "/{namespace}/views", rest_list_views, REPLY_NAMESPACE, AUTH_READ, ROUTE_LISTED},
    {"POST", NS "/{namespace}/views", rest_create_view, REPLY_NAMESPACE, AUTH_WRITE, ROUTE_LISTED},
    {"POST", NS "/{namespace}/register-view", rest_register_view, REPLY_NAMESPACE, AUTH_WRITE,
     ROUTE_LISTED},
    {"GET", NS "/{namespace}/views/{view}", rest_load_view, REPLY_VIEW, AUTH_READ, ROUTE_LISTED},
    {"HEAD", NS "/{namespace}/views/{view}", rest_has_view, REPLY_VIEW, AUTH_READ, ROUTE_LISTED},
    {"POST", NS "/{namespace}/views/{view}", rest_commit_view, REPLY_VIEW_COMMIT, AUTH_WRITE,
     ROUTE_LISTED},
    {"DELETE", NS "/{namespace}/views/{view}", rest_drop_view, REPLY_VIEW, AUTH_WRITE,
     ROUTE_LISTED},
    {"POST", "/v1/{prefix}/views/rename", rest_rename_view, REPLY_VIEW, AUTH_NONE, ROUTE_LISTED},
    {"POST", "/v1/{prefix}/transactions/commit", rest_commit_transaction, REPLY_COMMIT, AUTH_NONE,
     ROUTE_LISTED},
    {"POST", "/v1/{prefix}/tables/rename", rest_rename_table, REPLY_TABLE, AUTH_NONE, ROUTE_LISTED},
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

const char *rest_ident_text(service_request *r, const tarn_ident *ident) {
    tarn_buf out;
    tarn_code code = TARN_OK;
    buf_init(&out, r->service->env, 0);
    for (int32_t i = 0; i < ident->n_levels && code == TARN_OK; i++) {
        code = buf_append_str(&out, ident->levels[i], NULL);
        if (code == TARN_OK && (i + 1 < ident->n_levels || ident->name.len > 0)) {
            code = buf_append_char(&out, '.', NULL);
        }
    }
    code = code == TARN_OK ? buf_append_str(&out, ident->name, NULL) : code;
    const char *text = code == TARN_OK ? arena_str(&r->arena, buf_str(&out)).data : NULL;
    buf_release(&out);
    return text != NULL ? text : "?";
}

const char *rest_taken_by(service_request *r, bool view) {
    tarn_catalog *catalog = r->service->catalog;
    tarn_table_version *table = NULL;
    catalog_view *other = NULL;
    bool is_table = catalog_load(catalog, &r->table, &table, NULL) == TARN_OK;
    bool is_view = !is_table && catalog_has_views(catalog) &&
                   catalog_load_view(catalog, &r->table, &other, NULL) == TARN_OK;
    table_version_release(table);
    catalog_view_release(other);
    if (is_view) {
        return view ? "View" : "View with same name";
    }
    return view && is_table ? "Table with same name" : view ? "View" : "Table";
}

/* What is missing or there already, in the words that clients of other catalogs know. */
static void say_as_known(service_request *r, const service_route *route, tarn_code code,
                         tarn_error *err) {
    reply_subject subject = route->subject;
    bool commits = subject == REPLY_COMMIT || subject == REPLY_VIEW_COMMIT;
    bool view = subject == REPLY_VIEW || subject == REPLY_VIEW_COMMIT ||
                route->handle == rest_create_view || route->handle == rest_register_view;
    const char *what = view ? "View" : "Table";
    bool missing = code == TARN_NOT_FOUND;
    const tarn_ident *name = &r->table;
    if ((!missing && (code != TARN_CONFLICT || commits)) || subject == REPLY_REQUEST) {
        return;
    }
    if (subject == REPLY_NAMESPACE && (missing || r->table.name.len == 0)) {
        what = "Namespace";
        name = &r->ns;
    } else if (!missing) {
        what = rest_taken_by(r, view);
    }
    (void)err_set(err, code, "%s %s: %s", what, missing ? "does not exist" : "already exists",
                  rest_ident_text(r, name));
    err->detail[0] = '\0';
}

tarn_code request_deny(service_request *r, const tarn_ident *ns, auth_role role, tarn_error *err) {
    const tarn_ident space = {ns->n_levels, ns->levels, STR("")};
    return err_set(err, TARN_DENIED,
                   "the caller %.*s may not do this: it takes the role %s in %s%s",
                   STR_ARG(r->caller->name), auth_role_name(role),
                   space.n_levels > 0 ? "namespace " : "every namespace",
                   space.n_levels > 0 ? rest_ident_text(r, &space) : "");
}

tarn_code request_allow(service_request *r, const tarn_ident *ns, auth_role role, tarn_error *err) {
    if (auth_allows(r->caller, ns, role)) {
        return TARN_OK;
    }
    if (!auth_sees(r->caller, ns)) {
        return err_set(err, TARN_NOT_FOUND, "there is no such namespace");
    }
    return request_deny(r, ns, role, err);
}

static tarn_code run_route(service_request *r, const service_route *route, service_reply *reply) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = TARN_OK;
    reply->status = 200;
    TRY(take_names(r, route->pattern, &err));
    TRY(request_allow(r, &r->ns, route->role, &err));
    code = route->handle(r, reply, &err);
done:
    if (code != TARN_OK) {
        say_as_known(r, route, code, &err);
        reply_error(r, reply, route->subject, code, &err);
    }
    return code;
}

/* False: the request has no token that counts, and was answered so. */
static bool find_caller(service_request *r, const service_route *route, service_reply *reply) {
    const char *header = request_header(r, "Authorization");
    if (route->kind == ROUTE_PUBLIC || auth_is_open(r->service->auth)) {
        return true;
    }
    if (header != NULL && strncmp(header, "Bearer ", 7) == 0) {
        r->caller = auth_by_token(r->service->auth, str_of(header + 7));
    }
    if (r->caller == NULL) {
        reply_refuse(r, reply, 401, "NotAuthorizedException",
                     header == NULL ? "The request has no token"
                                    : "The token is not known or ended");
        reply->headers[reply->n_headers].name = "WWW-Authenticate";
        reply->headers[reply->n_headers++].value = "Bearer";
    }
    return r->caller != NULL;
}

/* What a long answer said, as it is now. */
static void show_again(service_request *r, const service_route *route, service_reply *reply) {
    tarn_error err = TARN_ERROR_INIT;
    bool view = strstr(route->pattern, "view") != NULL;
    const json_value *body;
    tarn_code code = TARN_OK;
    TRY(take_names(r, route->pattern, &err));
    if (r->table.name.len == 0) {
        r->table = r->ns;
        TRY(request_json(r, &body, &err));
        TRY(request_member_str(body, "name", true, &r->table.name, &err));
    }
    code = view ? rest_load_view(r, reply, &err) : rest_load_table(r, reply, &err);
done:
    if (code != TARN_OK) {
        say_as_known(r, route, code, &err);
        reply_error(r, reply, route->subject, code, &err);
    }
}

/* Whether the route changes something, under a key of the specification's kind. */
static bool takes_key(const service_route *route) {
    return (strcmp(route->method, "POST") == 0 || strcmp(route->method, "DELETE") == 0) &&
           route->kind == ROUTE_LISTED && route->handle != rest_metrics &&
           route->handle != rest_plan_scan && route->handle != rest_cancel_plan &&
           route->handle != rest_scan_tasks && route->handle != rest_write_results &&
           route->handle != rest_rows;
}

static uint64_t request_number(const service_request *r) {
    uint64_t parts[] = {str_hash(str_of(r->method)), str_hash(r->path), str_hash(buf_str(&r->body)),
                        r->caller != NULL ? str_hash(r->caller->name) : 0};
    return str_hash(str_make((const char *)parts, sizeof parts));
}

static void run_once(service_request *r, const service_route *route, service_reply *reply) {
    const char *header = takes_key(route) ? request_header(r, "Idempotency-Key") : NULL;
    tarn_str key = str_of(header != NULL ? header : "");
    bool has_body = false;
    int status = 200;
    if (header == NULL) {
        (void)run_route(r, route, reply);
        return;
    }
    if (!once_key_valid(key)) {
        reply_refuse(r, reply, 400, "BadRequestException", "The Idempotency-Key is no UUID");
        return;
    }
    r->once_key = key;
    switch (
        once_begin(r->service->keys, key, request_number(r), &status, &has_body, &reply->body)) {
    case ONCE_RUN:
        (void)run_route(r, route, reply);
        once_end(r->service->keys, key, reply->status, buf_str(&reply->body));
        break;
    case ONCE_MISUSED:
        reply_refuse(r, reply, 400, "BadRequestException",
                     "The Idempotency-Key was another request's");
        break;
    case ONCE_REPLAY:
        reply->status = status;
        if (has_body && reply->body.len == 0) {
            show_again(r, route, reply);
        }
        break;
    }
}

static void refuse_size(service_request *r, service_reply *reply) {
    char why[128];
    snprintf(why, sizeof why,
             "The request's body is larger than %llu MiB (the service's --body-mb)",
             (unsigned long long)(r->body_limit >> 20));
    reply_refuse(r, reply, 413, "BadRequestException", why);
}

/* The path is one of ours; allow: the methods that it has, "GET, POST". */
static void refuse_method(service_request *r, service_reply *reply, const char *allow) {
    char why[160];
    snprintf(why, sizeof why, "This path takes %s", allow != NULL ? allow : "other methods");
    reply_refuse(r, reply, 405, "BadRequestException", why);
    if (allow != NULL) {
        reply->headers[reply->n_headers].name = "Allow";
        reply->headers[reply->n_headers++].value = allow;
    }
}

static void route_request(service_request *r, service_reply *reply) {
    const char *allow = NULL;
    bool known = false;
    if (r->refused == 400) {
        reply_refuse(r, reply, 400, "BadRequestException",
                     "the headers Content-Length, Transfer-Encoding or Idempotency-Key are given "
                     "twice or contradict each other, or the key has bytes that are no ASCII");
        return;
    }
    if (r->refused == 413) {
        refuse_size(r, reply);
        return;
    }
    if (r->refused != 0) {
        reply_refuse(r, reply, 503, "ServiceUnavailableException", "too many connections are open");
        reply->headers[reply->n_headers].name = "Retry-After";
        reply->headers[reply->n_headers++].value = "1";
        return;
    }
    bool whole = split_path(r);
    for (size_t i = 0; whole && i < SERVICE_N_ROUTES; i++) {
        const service_route *route = &SERVICE_ROUTES[i];
        if (!matches(r, route->pattern)) {
            continue;
        }
        allow = known && allow != NULL ? arena_printf(&r->arena, "%s, %s", allow, route->method)
                : known                ? NULL
                                       : route->method;
        known = true;
        if (strcmp(r->method, route->method) == 0) {
            if (find_caller(r, route, reply)) {
                run_once(r, route, reply);
            }
            return;
        }
    }
    if (known) {
        refuse_method(r, reply, allow);
    } else {
        reply_refuse(r, reply, 404, "NotFoundException", "there is nothing at this path");
    }
}

static void log_request(service_request *r, const service_reply *reply, int64_t began_us) {
    rest_service *s = r->service;
    tarn_buf line;
    json_writer w;
    if (s->log == NULL) {
        return;
    }
    buf_init(&line, s->env, 0);
    json_begin(&w, &line, false, NULL);
    json_put_object(&w);
    json_member_i64(&w, "time-ms", began_us / 1000);
    json_member_str(&w, "method", str_of(r->method));
    json_member_str(&w, "path", r->path);
    json_member_i64(&w, "status", reply->status);
    json_member_i64(&w, "microseconds", env_now_us(s->env) - began_us);
    json_member_i64(&w, "received", (int64_t)r->received);
    json_member_i64(&w, "sent", (int64_t)reply->body.len);
    if (r->caller != NULL) {
        json_member_str(&w, "caller", r->caller->name);
    }
    json_end_object(&w);
    if (json_end(&w) == TARN_OK && buf_append_char(&line, '\0', NULL) == TARN_OK) {
        s->log(s->log_ctx, (const char *)line.data);
    }
    buf_release(&line);
}

static void handle(void *ctx, service_request *r, service_reply *reply) {
    rest_service *s = ctx;
    int64_t began_us = env_now_us(s->env);
    r->service = s;
    route_request(r, reply);
    counters_request(&s->counters, reply->status, env_now_us(s->env) - began_us);
    log_request(r, reply, began_us);
    auth_release(r->caller);
}

static tarn_code open_intake(rest_service *s, const service_options *options, tarn_error *err) {
    intake_options o;
    if (options->intake_dir == NULL) {
        return TARN_OK;
    }
    memset(&o, 0, sizeof o);
    o.dir = options->intake_dir;
    o.interval_ms = options->intake_interval_ms;
    o.disk_bytes = (int64_t)(options->intake_bytes < INT64_MAX ? options->intake_bytes : 0);
    return intake_open(s->env, s->catalog, s->queues, &o, &s->intake, err);
}

tarn_code service_check(tarn_env *env, const service_options *options, tarn_error *err) {
    tarn_code code = TARN_OK;
    auth_book *book = NULL;
    tls_keys *keys = NULL;
    TRY(places_check(options->allowed, err));
    if (options->access.len > 0) {
        TRY(auth_read(env, options->access, &book, err));
    }
    if (options->tls_cert.len > 0) {
        code = tls_keys_new(env, options->tls_cert, options->tls_key, &keys, err);
    }
done:
    auth_book_release(book);
    tls_keys_release(keys);
    return code;
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
    s->log = options->log;
    s->log_ctx = options->log_ctx;
    TRY(places_check(options->allowed, err));
    TRY(places_init(&s->arena, catalog, options->allowed, &s->places, err));
    TRY(auth_new(env, options->access, &s->auth, err));
    TRY(commit_queues_new(env, catalog, &s->counters, &s->queues, err));
    TRY(once_keys_new(env, &s->keys, err));
    TRY(added_files_new(env, &s->added, err));
    TRY(open_intake(s, options, err));
    TRY(http_start(env, options, handle, s, &s->http, err));
    *out = s;
    s = NULL;
done:
    service_stop(s);
    return code;
}

tarn_code service_reload(rest_service *s, tarn_str access, tarn_str tls_cert, tarn_str tls_key,
                         tarn_error *err) {
    tarn_code code = TARN_OK;
    auth_book *book = NULL;
    if (access.len > 0 && !auth_is_open(s->auth)) {
        TRY(auth_read(s->env, access, &book, err));
    }
    if (tls_cert.len > 0 && service_is_tls(s)) {
        TRY(http_reload(s->http, tls_cert, tls_key, err));
    }
    if (book != NULL) {
        auth_replace(s->auth, book);
        book = NULL;
    }
done:
    auth_book_release(book);
    return code;
}

bool service_is_tls(const rest_service *s) {
    return http_is_tls(s->http);
}

uint16_t service_port(const rest_service *s) {
    return http_port(s->http);
}

void service_stop(rest_service *s) {
    if (s == NULL) {
        return;
    }
    intake_hurry(s->intake);
    http_stop(s->http);
    intake_close(s->intake);
    added_files_free(s->added);
    once_keys_free(s->keys);
    commit_queues_free(s->queues);
    auth_free(s->auth);
    arena_release(&s->arena);
    env_free(s->env, s);
}
