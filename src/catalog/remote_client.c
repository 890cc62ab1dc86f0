/* catalog/remote_client.c - how a REST catalog's server is spoken to: its configuration, the token,
 * what is sent again, and errors as ours.
 *
 * Invariants
 * 1. Tokens, credentials and header values are in no message and no log.
 * 2. A request that is not repeatable is sent again only when it was not sent, or was answered by
 *    429 or 503 (not done: wait and come again), or by 401 or 419 before a new token was had.
 * 3. Where the server was not there (no answer, 502, 503, 504) the error says so (err_is_away).
 * 4. unclear stays set once an attempt may have had an effect, whatever a later one is answered. */
#include "catalog/remote_client.h"
#include "base/limits.h"
#include "net/url.h"

#include <pthread.h>
#include <stdatomic.h>

#define SMALL_REPLY      (64u << 20)
#define TRIES            6
#define FIRST_TRIES      3 /* before it ever answered: the address may be wrong */
#define FIRST_WAIT_MS    100
#define LONGEST_WAIT_MS  10000
#define TOKEN_MARGIN_MS  30000
#define SEPARATOR        "%1F"
#define MAX_HEADERS_SENT 32

struct remote_client {
    tarn_env *env;
    tarn_arena arena; /* all below that is not guarded; nothing changes after remote_client_new */
    http_client *http;
    tarn_str base; /* without a slash at its end */
    const char *label;
    tarn_properties defaults, options, overrides;
    tarn_str prefix, separator;
    const json_value *endpoints; /* NULL: not said */
    pthread_mutex_t lock;
    tarn_buf token;        /* guarded; empty: none */
    int64_t token_end_ms;  /* guarded; 0: not known */
    uint64_t token_number; /* guarded: of how many logins */
    bool renewable;        /* there is a credential */
    bool configured;       /* it has answered once */
    bool keyed;            /* it says how long it keeps answers */
    atomic_bool hasty;
};

const char *remote_client_label(const remote_client *client) {
    return client->label;
}

tarn_str remote_property(const remote_client *client, const char *key) {
    tarn_str value;
    if (properties_get(&client->overrides, key, &value) ||
        properties_get(&client->options, key, &value) ||
        properties_get(&client->defaults, key, &value)) {
        return value;
    }
    return STR_NULL;
}

/* ---- errors ---- */

static tarn_code code_of_status(int32_t status) {
    switch (status) {
    case 401:
    case 403:
    case 407:
    case 419:
        return TARN_DENIED;
    case 404:
        return TARN_NOT_FOUND;
    case 405:
    case 406:
    case 501:
        return TARN_UNSUPPORTED;
    case 409:
    case 412:
        return TARN_CONFLICT;
    case 413:
        return TARN_LIMIT;
    case 408:
    case 429:
        return TARN_IO;
    default:
        return status >= 400 && status < 500 ? TARN_INVALID : TARN_IO;
    }
}

/* Servers that answer 400 where the specification now has its own status. */
static tarn_code code_of_type(tarn_str type, tarn_code by_status) {
    static const struct {
        const char *type;
        tarn_code code;
    } TYPES[] = {
        {"NoSuchTableException", TARN_NOT_FOUND},
        {"NoSuchIcebergTableException", TARN_NOT_FOUND},
        {"NoSuchNamespaceException", TARN_NOT_FOUND},
        {"NoSuchWarehouseException", TARN_NOT_FOUND},
        {"NotFoundException", TARN_NOT_FOUND},
        {"AlreadyExistsException", TARN_CONFLICT},
        {"NamespaceNotEmptyException", TARN_CONFLICT},
        {"CommitFailedException", TARN_CONFLICT},
        {"NotAuthorizedException", TARN_DENIED},
        {"ForbiddenException", TARN_DENIED},
        {"UnsupportedOperationException", TARN_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (str_is(type, TYPES[i].type)) {
            return TYPES[i].code;
        }
    }
    return by_status;
}

static bool is_away(int32_t status) {
    return status == 502 || status == 503 || status == 504;
}

static bool leaves_open(int32_t status) {
    return status >= 500 && status != 501 && status != 503;
}

static bool is_json(const http_response *http) {
    tarn_str type = http_response_header(http, "content-type");
    size_t at;
    tarn_str plain = str_trim(str_find_char(type, ';', &at) ? str_sub(type, 0, at) : type);
    return type.data == NULL || str_eq_nocase(plain, STR("application/json")) ||
           str_ends_with(plain, STR("+json"));
}

static tarn_code fail_status(tarn_arena *arena, const http_response *http, const char *what,
                             remote_reply *out, tarn_error *err) {
    json_value *json = NULL;
    tarn_str message = STR_NULL;
    tarn_str type = STR_NULL;
    tarn_code code = code_of_status(http->status);
    if (http->body.len > 0 && is_json(http) &&
        json_parse(arena, buf_str(&http->body), "the answer", &json, NULL) == TARN_OK) {
        const json_value *e = json_get(json, "error");
        (void)json_str(json_get(e, "message"), &message);
        (void)json_str(json_get(e, "type"), &type);
        if (json_is(e, JSON_STRING)) { /* OAuth2's own form */
            (void)json_str(e, &type);
            (void)json_str(json_get(json, "error_description"), &message);
        }
    }
    if (http->status < 500) {
        code = code_of_type(type, code);
    }
    out->unclear =
        out->unclear || leaves_open(http->status) || str_is(type, "CommitStateUnknownException");
    if (http->status >= 300 && http->status < 400) {
        return err_set(err, TARN_IO,
                       "%s was answered %d, a redirection to %s, which is not followed", what,
                       http->status, url_label(arena, http_response_header(http, "location")));
    }
    if (message.len == 0) {
        (void)err_set(err, code, "%s was answered %d%s%.*s", what, http->status,
                      type.len > 0 ? " " : " without a reason", STR_ARG(type));
    } else {
        (void)err_set(err, code, "%.*s", STR_ARG(message)); /* the server's own words */
        (void)err_add(err, code, "%s was answered %d %.*s", what, http->status, STR_ARG(type));
    }
    return is_away(http->status) ? err_set_away(err, code) : code;
}

/* ---- one attempt ---- */

typedef struct call {
    remote_client *client;
    tarn_arena *arena;
    const remote_request *request;
    tarn_str url;
    const char *what; /* "GET http://..." */
    uint64_t token_number;
    int64_t wait_ms; /* Retry-After; -1: not said */
    remote_reply *out;
    tarn_error *err;
} call;

static void add_header(http_header *headers, int32_t *n, tarn_str name, tarn_str value) {
    for (int32_t i = 0; i < *n; i++) {
        if (str_eq_nocase(headers[i].name, name)) {
            return;
        }
    }
    if (*n < MAX_HEADERS_SENT) {
        headers[(*n)++] = (http_header){name, value};
    }
}

static void add_configured(const tarn_properties *from, http_header *headers, int32_t *n) {
    for (int32_t i = 0; i < from->count; i++) {
        if (str_starts_with(from->items[i].key, STR("header."))) {
            add_header(headers, n, str_from(from->items[i].key, 7), from->items[i].value);
        }
    }
}

static tarn_code add_token(call *c, http_header *headers, int32_t *n) {
    remote_client *client = c->client;
    const char *bearer = NULL;
    bool have;
    (void)pthread_mutex_lock(&client->lock);
    have = client->token.len > 0;
    c->token_number = client->token_number;
    if (have) {
        bearer = arena_printf(c->arena, "Bearer %.*s", (int)client->token.len,
                              (const char *)client->token.data);
    }
    (void)pthread_mutex_unlock(&client->lock);
    if (have && bearer == NULL) {
        return err_nomem(c->err);
    }
    if (have) {
        add_header(headers, n, STR("Authorization"), str_of(bearer));
    }
    return TARN_OK;
}

static int64_t retry_after(const http_response *http) {
    int64_t seconds;
    tarn_str text = http_response_header(http, "retry-after");
    return str_to_i64(text, &seconds) && seconds >= 0 && seconds < 3600 ? seconds * 1000 : -1;
}

/* The answer's document. A body that is no JSON is no answer: what was asked for may be done. */
static tarn_code read_body(call *c, const http_response *http) {
    json_value *json = NULL;
    tarn_code code;
    if (http->body.len == 0 || strcmp(c->request->method, "HEAD") == 0) {
        return TARN_OK;
    }
    if (!is_json(http)) {
        c->out->unclear = true;
        return err_set(c->err, TARN_CORRUPT, "%s was answered in %.*s, not in JSON", c->what,
                       STR_ARG(http_response_header(http, "content-type")));
    }
    code = json_parse(c->arena, buf_str(&http->body), c->what, &json, c->err);
    c->out->unclear = c->out->unclear || code != TARN_OK;
    c->out->json = json;
    return code;
}

static tarn_code attempt(call *c) {
    http_header headers[MAX_HEADERS_SENT];
    http_response http;
    int32_t n = 0;
    bool sent = false;
    const remote_request *r = c->request;
    tarn_code code;
    c->wait_ms = -1;
    c->out->status = 0;
    c->out->json = NULL;
    if (r->body.data != NULL) {
        add_header(headers, &n, STR("Content-Type"), STR("application/json"));
    }
    add_header(headers, &n, STR("Accept"), STR("application/json"));
    if (r->etag.data != NULL) {
        add_header(headers, &n, STR("If-None-Match"), r->etag);
    }
    if (r->key.data != NULL) {
        add_header(headers, &n, STR("Idempotency-Key"), r->key);
    }
    if (r->match.data != NULL) {
        add_header(headers, &n, STR("If-Match"), r->match);
    }
    if (r->exact) {
        add_header(headers, &n, STR(REMOTE_EXACT_HEADER), STR(REMOTE_EXACT));
    }
    code = add_token(c, headers, &n);
    if (code != TARN_OK) {
        return code;
    }
    add_configured(&c->client->overrides, headers, &n);
    add_configured(&c->client->options, headers, &n);
    add_configured(&c->client->defaults, headers, &n);
    http_request request = {.method = r->method,
                            .url = c->url,
                            .n_headers = n,
                            .headers = headers,
                            .body = r->body,
                            .max_body = LIMIT_METADATA_JSON_BYTES,
                            .once = !r->repeatable};
    code = http_send(c->client->http, c->arena, &request, &http, &sent, c->err);
    if (code != TARN_OK) {
        c->out->unclear = c->out->unclear || sent;
        return code == TARN_IO ? err_set_away(c->err, code) : code;
    }
    c->out->status = http.status;
    c->out->etag = http_response_header(&http, "etag");
    c->wait_ms = retry_after(&http);
    if ((http.status >= 200 && http.status < 300) || (http.status == 304 && r->may_be_304)) {
        code = read_body(c, &http);
    } else {
        code = fail_status(c->arena, &http, c->what, c->out, c->err);
    }
    http_response_release(&http);
    return code;
}

/* ---- the token ---- */

static tarn_code put_form(tarn_buf *form, tarn_arena *arena, const char *name, tarn_str value,
                          tarn_error *err) {
    tarn_str text = url_encode(arena, value);
    if (text.data == NULL) {
        return err_nomem(err);
    }
    return buf_printf(form, err, "%s%s=%s", form->len > 0 ? "&" : "", name, text.data);
}

static tarn_code make_form(const remote_client *client, tarn_arena *arena, tarn_buf *form,
                           tarn_error *err) {
    tarn_str credential = remote_property(client, "credential");
    tarn_str scope = remote_property(client, "scope");
    tarn_str audience = remote_property(client, "audience");
    tarn_str resource = remote_property(client, "resource");
    size_t colon;
    tarn_code code;
    TRY(put_form(form, arena, "grant_type", STR("client_credentials"), err));
    if (str_find_char(credential, ':', &colon)) {
        TRY(put_form(form, arena, "client_id", str_sub(credential, 0, colon), err));
        credential = str_from(credential, colon + 1);
    }
    TRY(put_form(form, arena, "client_secret", credential, err));
    TRY(put_form(form, arena, "scope", scope.data != NULL ? scope : STR("catalog"), err));
    if (audience.len > 0) {
        TRY(put_form(form, arena, "audience", audience, err));
    }
    if (resource.len > 0) {
        TRY(put_form(form, arena, "resource", resource, err));
    }
done:
    return code;
}

static tarn_code token_uri(const remote_client *client, tarn_arena *arena, tarn_str *out,
                           tarn_error *err) {
    tarn_str given = remote_property(client, "oauth2-server-uri");
    given = given.len > 0 ? given : STR("v1/oauth/tokens");
    if (str_starts_with(given, STR("http://")) || str_starts_with(given, STR("https://"))) {
        *out = given;
        return TARN_OK;
    }
    while (given.len > 0 && given.data[0] == '/') {
        given = str_from(given, 1);
    }
    *out = str_of(arena_printf(arena, "%.*s/%.*s", (int)client->base.len, client->base.data,
                               (int)given.len, given.data));
    return out->data != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code keep_token(remote_client *client, const json_value *json, const char *what,
                            tarn_error *err) {
    tarn_str token;
    tarn_str type = STR("bearer");
    int64_t seconds = 0;
    (void)json_str(json_get(json, "token_type"), &type);
    if (!json_str(json_get(json, "access_token"), &token) || token.len == 0) {
        return err_set(err, TARN_CORRUPT, "%s was answered without a token", what);
    }
    if (!str_eq_nocase(type, STR("bearer"))) {
        return err_set(err, TARN_UNSUPPORTED, "%s was answered by a token of type %.*s", what,
                       STR_ARG(type));
    }
    (void)json_i64(json_get(json, "expires_in"), &seconds);
    (void)pthread_mutex_lock(&client->lock);
    buf_reset(&client->token);
    tarn_code code = buf_append_str(&client->token, token, err);
    client->token_number++;
    client->token_end_ms =
        seconds > 0 && seconds < INT32_MAX ? env_now_ms(client->env) + seconds * 1000 : 0;
    (void)pthread_mutex_unlock(&client->lock);
    return code;
}

/* OAuth2 client credentials (RFC 6749, section 4.4). The answer is read into an arena of its own.
 */
static tarn_code log_in(remote_client *client, tarn_error *err) {
    tarn_arena arena;
    tarn_buf form;
    http_response http = {0};
    json_value *json = NULL;
    remote_reply reply = {0};
    tarn_str uri;
    tarn_code code;
    arena_init(&arena, client->env);
    buf_init(&form, client->env, 0);
    TRY(make_form(client, &arena, &form, err));
    TRY(token_uri(client, &arena, &uri, err));
    const char *what = arena_printf(&arena, "POST %s", url_label(&arena, uri));
    if (what == NULL) {
        TRY(err_nomem(err));
    }
    const http_header headers[] = {{STR("Content-Type"), STR("application/x-www-form-urlencoded")},
                                   {STR("Accept"), STR("application/json")}};
    const http_request request = {.method = "POST",
                                  .url = uri,
                                  .n_headers = 2,
                                  .headers = headers,
                                  .body = buf_str(&form),
                                  .max_body = SMALL_REPLY};
    code = http_send(client->http, &arena, &request, &http, NULL, err);
    if (code != TARN_OK) {
        code = code == TARN_IO ? err_set_away(err, code) : code;
        goto done;
    }
    if (http.status != 200) {
        code = fail_status(&arena, &http, what, &reply, err);
        /* RFC 6749, section 5.2: a wrong credential is answered 400 or 401. */
        code = http.status == 400 ? err_set(err, TARN_DENIED, "%s refused the credential", what)
                                  : code;
        goto done;
    }
    TRY(json_parse(&arena, buf_str(&http.body), what, &json, err));
    code = keep_token(client, json, what, err);
done:
    http_response_release(&http);
    buf_release(&form);
    arena_release(&arena);
    return code;
}

/* Before a token ends, a new one. */
static tarn_code need_token(remote_client *client, tarn_error *err) {
    if (!client->renewable) {
        return TARN_OK;
    }
    (void)pthread_mutex_lock(&client->lock);
    bool old = client->token.len == 0 ||
               (client->token_end_ms > 0 &&
                client->token_end_ms - TOKEN_MARGIN_MS < env_now_ms(client->env));
    (void)pthread_mutex_unlock(&client->lock);
    return old ? log_in(client, err) : TARN_OK;
}

/* ---- requests ---- */

/* Milliseconds until the next attempt; -1: there is none. */
static int64_t next_wait(const call *c, tarn_code code, bool sent_unclear, int tries) {
    bool repeatable = c->request->repeatable;
    int32_t status = c->out->status;
    bool refused = status == 429 || status == 503;
    bool unreached = status == 0 && code == TARN_IO && !sent_unclear;
    bool lost = repeatable && ((status == 0 && code == TARN_IO) || leaves_open(status) ||
                               (status == 200 && code == TARN_CORRUPT));
    bool hasty = c->request->waited && atomic_load(&c->client->hasty) && status != 429;
    int most = hasty ? 1 : c->client->configured ? TRIES : FIRST_TRIES;
    if (tries >= most || !(refused || unreached || lost)) {
        return -1;
    }
    if (c->wait_ms >= 0) {
        return c->wait_ms > LONGEST_WAIT_MS ? -1 : c->wait_ms;
    }
    int64_t wait = (int64_t)FIRST_WAIT_MS << tries;
    return wait / 2 + (int64_t)(env_random_u64(c->client->env) % (uint64_t)(wait / 2 + 1));
}

static bool is_login_refused(const call *c) {
    return (c->out->status == 401 || c->out->status == 419) && c->client->renewable;
}

static tarn_code send_call(call *c) {
    bool renewed = false;
    tarn_code code = TARN_OK;
    for (int tries = 1;; tries++) {
        bool before = c->out->unclear;
        c->out->unclear = false;
        TRY(need_token(c->client, c->err));
        code = attempt(c);
        bool sent_unclear = c->out->unclear;
        c->out->unclear = c->out->unclear || before;
        if (is_login_refused(c) && !renewed) {
            renewed = true;
            TRY(log_in(c->client, c->err));
            continue;
        }
        int64_t wait = code == TARN_OK ? -1 : next_wait(c, code, sent_unclear, tries);
        if (wait < 0) {
            break;
        }
        env_log(c->client->env, TARN_LOG_INFO, "catalog", "again", "what=%s status=%d wait_ms=%lld",
                c->what, (int)c->out->status, (long long)wait);
        env_sleep_ms(c->client->env, wait);
        TRY(env_check_cancel(c->client->env, c->err));
    }
done:
    return code;
}

tarn_code remote_send(remote_client *client, tarn_arena *arena, const remote_request *request,
                      remote_reply *out, tarn_error *err) {
    *out = (remote_reply){0};
    if (request->path == NULL) {
        return err_nomem(err);
    }
    if (!remote_has_endpoint(client, request->method, request->endpoint)) {
        return err_set(err, TARN_UNSUPPORTED, "the catalog at %s does not offer %s %s",
                       client->label, request->method, request->endpoint);
    }
    const char *url =
        arena_printf(arena, "%.*s/v1/%.*s%s%s", (int)client->base.len, client->base.data,
                     (int)client->prefix.len, client->prefix.len > 0 ? client->prefix.data : "",
                     client->prefix.len > 0 ? "/" : "", request->path);
    const char *what =
        url != NULL ? arena_printf(arena, "%s %s", request->method, url_label(arena, str_of(url)))
                    : NULL;
    if (what == NULL) {
        return err_nomem(err);
    }
    call c = {client, arena, request, str_of(url), what, 0, -1, out, err};
    tarn_code code = send_call(&c);
    if (code == TARN_OK) {
        err_reset(err);
    }
    return code;
}

bool remote_takes_keys(const remote_client *client) {
    return client->keyed;
}

bool remote_has_endpoint(const remote_client *client, const char *method, const char *endpoint) {
    static const char *const OLD[] = {
        "GET namespaces",
        "POST namespaces",
        "GET namespaces/{namespace}",
        "DELETE namespaces/{namespace}",
        "POST namespaces/{namespace}/properties",
        "GET namespaces/{namespace}/tables",
        "POST namespaces/{namespace}/tables",
        "GET namespaces/{namespace}/tables/{table}",
        "POST namespaces/{namespace}/tables/{table}",
        "DELETE namespaces/{namespace}/tables/{table}",
        "POST namespaces/{namespace}/register",
        "POST tables/rename",
    };
    const tarn_str middle = STR(" /v1/{prefix}/");
    size_t n = strlen(method);
    if (strcmp(endpoint, "config") == 0) {
        return true;
    }
    if (client->endpoints == NULL) {
        for (size_t i = 0; i < sizeof OLD / sizeof OLD[0]; i++) {
            if (strncmp(OLD[i], method, n) == 0 && OLD[i][n] == ' ' &&
                strcmp(OLD[i] + n + 1, endpoint) == 0) {
                return true;
            }
        }
        return false;
    }
    for (const json_value *v = client->endpoints->first; v != NULL; v = v->next) {
        tarn_str text;
        if (json_str(v, &text) && str_starts_with(text, str_make(method, n)) &&
            str_starts_with(str_from(text, n), middle) &&
            str_is(str_from(text, n + middle.len), endpoint)) {
            return true;
        }
    }
    return false;
}

tarn_str remote_namespace_text(const remote_client *client, tarn_arena *arena,
                               const tarn_ident *ns) {
    tarn_buf text;
    tarn_code code = TARN_OK;
    buf_init(&text, arena->env, 0);
    for (int32_t i = 0; i < ns->n_levels && code == TARN_OK; i++) {
        tarn_str level = url_encode(arena, ns->levels[i]);
        if (i > 0) {
            code = buf_append_str(&text, client->separator, NULL);
        }
        code =
            code == TARN_OK && level.data != NULL ? buf_append_str(&text, level, NULL) : TARN_NOMEM;
    }
    tarn_str out = code == TARN_OK ? arena_str(arena, buf_str(&text)) : STR_NULL;
    buf_release(&text);
    return out;
}

const char *remote_namespace_path(const remote_client *client, tarn_arena *arena,
                                  const tarn_ident *ns, const char *more) {
    tarn_str text = remote_namespace_text(client, arena, ns);
    return text.data != NULL ? arena_printf(arena, "namespaces/%s%s", text.data, more) : NULL;
}

const char *remote_table_path(const remote_client *client, tarn_arena *arena,
                              const tarn_ident *table) {
    tarn_str name = url_encode(arena, table->name);
    const char *more = name.data != NULL ? arena_printf(arena, "/tables/%s", name.data) : NULL;
    return more != NULL ? remote_namespace_path(client, arena, table, more) : NULL;
}

/* ---- opening ---- */

static tarn_code copy_properties(tarn_arena *arena, const tarn_properties *from,
                                 tarn_properties *out, tarn_error *err) {
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)from->count);
    if (items == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < from->count; i++) {
        items[i].key = arena_str(arena, from->items[i].key);
        items[i].value = arena_str(arena, from->items[i].value);
        if (items[i].key.data == NULL || items[i].value.data == NULL) {
            return err_nomem(err);
        }
    }
    *out = (tarn_properties){from->count, items};
    return TARN_OK;
}

static tarn_str strip_slashes(tarn_str s) {
    while (s.len > 0 && s.data[s.len - 1] == '/') {
        s.len--;
    }
    while (s.len > 0 && s.data[0] == '/') {
        s = str_from(s, 1);
    }
    return s;
}

/* What the server says of itself, over what the caller said. */
static tarn_code configure(remote_client *client, tarn_error *err) {
    tarn_str warehouse = remote_property(client, "warehouse");
    tarn_str text = url_encode(&client->arena, warehouse);
    remote_request request = {.method = "GET", .endpoint = "config", .repeatable = true};
    remote_reply reply;
    tarn_code code;
    request.path = warehouse.len == 0 ? "config"
                   : text.data != NULL
                       ? arena_printf(&client->arena, "config?warehouse=%s", text.data)
                       : NULL;
    TRY(remote_send(client, &client->arena, &request, &reply, err));
    if (!json_is(reply.json, JSON_OBJECT)) {
        code = err_set(err, TARN_CORRUPT, "the catalog at %s gave no configuration", client->label);
        goto done;
    }
    TRY(properties_from_json(&client->arena, json_get(reply.json, "defaults"),
                             "the catalog's defaults", &client->defaults, err));
    TRY(properties_from_json(&client->arena, json_get(reply.json, "overrides"),
                             "the catalog's overrides", &client->overrides, err));
    const json_value *endpoints = json_get(reply.json, "endpoints");
    client->endpoints = json_is(endpoints, JSON_ARRAY) ? endpoints : NULL;
    client->configured = true;
    client->keyed = json_get(reply.json, "idempotency-key-lifetime") != NULL;
    client->prefix = strip_slashes(remote_property(client, "prefix"));
    tarn_str separator = remote_property(client, "namespace-separator");
    client->separator = separator.len > 0 ? separator : STR(SEPARATOR);
    tarn_str uri;
    if (properties_get(&client->overrides, "uri", &uri)) {
        client->base = strip_slashes(uri);
    }
done:
    return code;
}

static tarn_code set_up(remote_client *client, tarn_str uri, const tarn_properties *options,
                        tarn_error *err) {
    tarn_str token;
    http_options http = {0};
    tarn_code code;
    TRY(copy_properties(&client->arena, options, &client->options, err));
    client->base = strip_slashes(arena_str(&client->arena, uri));
    client->label = url_label(&client->arena, client->base);
    client->separator = STR(SEPARATOR);
    if (url_host(client->base).len == 0) {
        TRY(err_set(err, TARN_INVALID, "\"%s\" is no address of a catalog", client->label));
    }
    tarn_str ca = remote_property(client, "ssl.cabundle");
    TRY(properties_i64(&client->options, "rest.client.connection-timeout-ms", 0, &http.connect_ms,
                       err));
    TRY(properties_i64(&client->options, "rest.client.socket-timeout-ms", 0, &http.answer_ms, err));
    http.ca_file = ca.len > 0 ? ca.data : NULL; /* in the arena, with a NUL */
    TRY(http_client_new(client->env, &http, &client->http, err));
    client->renewable = remote_property(client, "credential").len > 0;
    token = remote_property(client, "token");
    if (token.len > 0) {
        TRY(buf_append_str(&client->token, token, err));
    }
    TRY(configure(client, err));
    client->renewable = remote_property(client, "credential").len > 0;
    token = remote_property(client, "token");
    if (token.len > 0 && !client->renewable) {
        buf_reset(&client->token);
        TRY(buf_append_str(&client->token, token, err));
    }
done:
    return code;
}

tarn_code remote_client_new(tarn_env *env, tarn_str uri, const tarn_properties *options,
                            remote_client **out, tarn_error *err) {
    remote_client *client = env_calloc(env, 1, sizeof *client);
    if (client == NULL) {
        return err_nomem(err);
    }
    if (pthread_mutex_init(&client->lock, NULL) != 0) {
        env_free(env, client);
        return err_set(err, TARN_IO, "a lock could not be made");
    }
    client->env = env;
    arena_init(&client->arena, env);
    buf_init(&client->token, env, 1u << 20);
    tarn_code code = set_up(client, uri, options, err);
    if (code == TARN_OK) {
        *out = client;
    } else {
        remote_client_free(client);
    }
    return code;
}

void remote_client_set_hasty(remote_client *client, bool hasty) {
    atomic_store(&client->hasty, hasty);
}

void remote_client_free(remote_client *client) {
    if (client != NULL) {
        tarn_env *env = client->env;
        http_client_free(client->http);
        buf_release(&client->token);
        arena_release(&client->arena);
        (void)pthread_mutex_destroy(&client->lock);
        env_free(env, client);
    }
}
