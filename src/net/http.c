/* net/http.c - HTTP over libcurl, which only this room knows.
 *
 * Invariants
 * 1. A client's handles of libcurl are each used by one request at a time; idle ones wait in a list
 *    with their open connections.
 * 2. Nothing of an answer is kept beyond its limits: body, headers' bytes, headers' number.
 * 3. Nothing is global but libcurl's own start, which happens once. */
#include "net/http.h"
#include "base/limits.h"
#include "net/url.h"

#ifdef TARN_HTTP

#include <curl/curl.h>
#include <pthread.h>

#define CONNECT_MS 10000
#define ANSWER_MS  60000

typedef struct idle_handle {
    CURL *curl;
    struct idle_handle *next;
} idle_handle;

struct http_client {
    tarn_env *env;
    http_options options;
    pthread_mutex_t lock;
    idle_handle *idle; /* guarded by lock */
};

/* One exchange, as libcurl's callbacks see it. */
typedef struct exchange {
    http_client *client;
    tarn_arena *arena;
    const http_request *request;
    http_response response;
    int32_t cap;
    size_t header_bytes;
    tarn_code code; /* of a callback that stopped it */
    tarn_error *err;
    const char *label;
} exchange;

static void start_curl(void) {
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

tarn_code http_client_new(tarn_env *env, const http_options *options, http_client **out,
                          tarn_error *err) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, start_curl);
    http_client *client = env_calloc(env, 1, sizeof *client);
    if (client == NULL) {
        return err_nomem(err);
    }
    client->env = env;
    client->options = options != NULL ? *options : (http_options){0};
    if (pthread_mutex_init(&client->lock, NULL) != 0) {
        env_free(env, client);
        return err_set(err, TARN_IO, "a lock could not be made");
    }
    *out = client;
    return TARN_OK;
}

void http_client_free(http_client *client) {
    if (client == NULL) {
        return;
    }
    while (client->idle != NULL) {
        idle_handle *next = client->idle->next;
        curl_easy_cleanup(client->idle->curl);
        env_free(client->env, client->idle);
        client->idle = next;
    }
    (void)pthread_mutex_destroy(&client->lock);
    env_free(client->env, client);
}

static idle_handle *take_handle(http_client *client) {
    (void)pthread_mutex_lock(&client->lock);
    idle_handle *handle = client->idle;
    if (handle != NULL) {
        client->idle = handle->next;
    }
    (void)pthread_mutex_unlock(&client->lock);
    if (handle == NULL) {
        handle = env_calloc(client->env, 1, sizeof *handle);
        if (handle != NULL) {
            handle->curl = curl_easy_init();
        }
        if (handle != NULL && handle->curl == NULL) {
            env_free(client->env, handle);
            handle = NULL;
        }
    }
    return handle;
}

static void give_handle(http_client *client, idle_handle *handle) {
    curl_easy_reset(handle->curl); /* keeps its connections */
    (void)pthread_mutex_lock(&client->lock);
    handle->next = client->idle;
    client->idle = handle;
    (void)pthread_mutex_unlock(&client->lock);
}

static size_t take_body(char *data, size_t size, size_t n, void *ctx) {
    exchange *x = ctx;
    if (x->response.body.len + size * n > x->request->max_body) {
        x->code = err_set(x->err, TARN_LIMIT, "%s answered with more than %llu bytes", x->label,
                          (unsigned long long)x->request->max_body);
        return 0;
    }
    x->code = buf_append(&x->response.body, data, size * n, x->err);
    return x->code == TARN_OK ? size * n : 0;
}

static tarn_code add_header(exchange *x, tarn_str line) {
    size_t colon;
    if (str_starts_with(line, STR("HTTP/"))) { /* of an answer after "100 Continue" */
        x->response.n_headers = 0;
        return TARN_OK;
    }
    if (!str_find_char(line, ':', &colon)) {
        return TARN_OK; /* the empty line at the end */
    }
    if (x->response.n_headers == x->cap) {
        int32_t cap = x->cap == 0 ? 16 : x->cap * 2;
        http_header *grown =
            arena_grow(x->arena, x->response.headers, (size_t)x->cap * sizeof *grown,
                       (size_t)cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(x->err);
        }
        x->response.headers = grown;
        x->cap = cap;
    }
    http_header h = {arena_str(x->arena, str_trim(str_sub(line, 0, colon))),
                     arena_str(x->arena, str_trim(str_from(line, colon + 1)))};
    if (h.name.data == NULL || h.value.data == NULL) {
        return err_nomem(x->err);
    }
    x->response.headers[x->response.n_headers++] = h;
    return TARN_OK;
}

static size_t take_header(char *data, size_t size, size_t n, void *ctx) {
    exchange *x = ctx;
    x->header_bytes += size * n;
    if (x->header_bytes > LIMIT_HTTP_HEADER_BYTES || x->response.n_headers >= LIMIT_HTTP_HEADERS) {
        x->code = err_set(x->err, TARN_LIMIT, "%s answered with too many headers", x->label);
        return 0;
    }
    x->code = add_header(x, str_make(data, size * n));
    return x->code == TARN_OK ? size * n : 0;
}

static int watch(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    exchange *x = ctx;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    if (x->code == TARN_OK) {
        x->code = env_check_cancel(x->client->env, x->err);
    }
    return x->code != TARN_OK;
}

static bool is_line(tarn_str s) {
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.data[i] < 0x20 && s.data[i] != '\t') {
            return false;
        }
    }
    return true;
}

static tarn_code make_headers(exchange *x, struct curl_slist **out) {
    const http_request *request = x->request;
    struct curl_slist *list = curl_slist_append(NULL, "Expect:"); /* no round trip before a body */
    bool whole = list != NULL;
    for (int32_t i = 0; i < request->n_headers && whole; i++) {
        const http_header *h = &request->headers[i];
        if (!is_line(h->name) || !is_line(h->value)) {
            curl_slist_free_all(list);
            return err_set(x->err, TARN_INVALID, "header %.*s held a control character",
                           STR_ARG(h->name));
        }
        const char *line = h->value.len == 0
                               ? arena_printf(x->arena, "%.*s;", (int)h->name.len, h->name.data)
                               : arena_printf(x->arena, "%.*s: %.*s", (int)h->name.len,
                                              h->name.data, (int)h->value.len, h->value.data);
        struct curl_slist *longer = line != NULL ? curl_slist_append(list, line) : NULL;
        whole = longer != NULL;
        list = whole ? longer : list;
    }
    if (!whole) {
        curl_slist_free_all(list);
        return err_nomem(x->err);
    }
    *out = list;
    return TARN_OK;
}

#define SET(option, value)                                                                         \
    (result = result == CURLE_OK ? curl_easy_setopt(curl, option, value) : result)

static CURLcode set_limits(CURL *curl, const http_client *client, exchange *x) {
    const http_options *o = &client->options;
    CURLcode result = CURLE_OK;
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(o->connect_ms > 0 ? o->connect_ms : CONNECT_MS));
    SET(CURLOPT_TIMEOUT_MS, (long)(o->answer_ms > 0 ? o->answer_ms : ANSWER_MS));
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_ACCEPT_ENCODING, "gzip");
    SET(CURLOPT_USERAGENT, "tarn");
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, x);
    SET(CURLOPT_HEADERFUNCTION, take_header);
    SET(CURLOPT_HEADERDATA, x);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, watch);
    SET(CURLOPT_XFERINFODATA, x);
    if (o->ca_file != NULL) {
        SET(CURLOPT_CAINFO, o->ca_file);
    }
    return result;
}

static CURLcode set_request(CURL *curl, const http_request *request, const char *url,
                            struct curl_slist *headers) {
    CURLcode result = CURLE_OK;
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_HTTPHEADER, headers);
    if (url_is_loopback(request->url)) {
        SET(CURLOPT_PROXY, "");
    }
    if (strcmp(request->method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
    } else {
        if (request->body.data != NULL) {
            SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
            SET(CURLOPT_POSTFIELDS, request->body.data);
        }
        SET(CURLOPT_CUSTOMREQUEST, request->method);
    }
    if (request->once) {
        SET(CURLOPT_FRESH_CONNECT, 1L);
    }
    return result;
}

/* Whether nothing of the request can have reached the server. */
static bool was_not_sent(CURL *curl, CURLcode result) {
    curl_off_t started = 0;
    switch ((int)result) {
    case CURLE_URL_MALFORMAT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return true;
    case CURLE_UNSUPPORTED_PROTOCOL: /* of the URL, or of the answer */
    case CURLE_OPERATION_TIMEDOUT:
        return curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &started) == CURLE_OK &&
               started == 0;
    default:
        return false;
    }
}

static tarn_code fail(const exchange *x, CURLcode result, const char *detail, bool sent) {
    if (x->code != TARN_OK) {
        return x->code; /* a callback's, with its words */
    }
    if (result == CURLE_OUT_OF_MEMORY) {
        return err_nomem(x->err);
    }
    bool bad_url = result == CURLE_URL_MALFORMAT || result == CURLE_UNSUPPORTED_PROTOCOL;
    tarn_code code = bad_url && !sent ? TARN_INVALID : TARN_IO;
    return err_set(x->err, code, "%s %s failed: %s", x->request->method, x->label,
                   detail[0] != '\0' ? detail : curl_easy_strerror(result));
}

static tarn_code perform(exchange *x, CURL *curl, const char *url, bool *sent) {
    char detail[CURL_ERROR_SIZE] = {0};
    struct curl_slist *headers = NULL;
    long status = 0;
    tarn_code code = make_headers(x, &headers);
    if (code != TARN_OK) {
        return code;
    }
    CURLcode result = set_limits(curl, x->client, x);
    result = result == CURLE_OK ? set_request(curl, x->request, url, headers) : result;
    result = result == CURLE_OK ? curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail) : result;
    if (result == CURLE_OK) {
        result = curl_easy_perform(curl);
        *sent = !was_not_sent(curl, result);
    }
    if (result == CURLE_OK) {
        result = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        x->response.status = (int32_t)status;
    }
    code = result == CURLE_OK ? TARN_OK : fail(x, result, detail, *sent);
    curl_slist_free_all(headers);
    return code;
}

tarn_code http_send(http_client *client, tarn_arena *arena, const http_request *request,
                    http_response *out, bool *sent, tarn_error *err) {
    exchange x = {.client = client, .arena = arena, .request = request, .err = err};
    bool reached = false;
    tarn_code code;
    idle_handle *handle = NULL;
    buf_init(&x.response.body, client->env, (size_t)request->max_body);
    x.label = url_label(arena, request->url);
    TRY(env_check_cancel(client->env, err));
    if (!is_line(request->url) || request->url.len > LIMIT_PATH_BYTES) {
        TRY(err_set(err, TARN_INVALID, "%s is no address", x.label));
    }
    tarn_str url = arena_str(arena, request->url);
    handle = take_handle(client);
    if (url.data == NULL || handle == NULL) {
        TRY(err_nomem(err));
    }
    TRY(perform(&x, handle->curl, url.data, &reached));
    env_log(client->env, TARN_LOG_DEBUG, "net", "request", "method=%s url=%s status=%d bytes=%zu",
            request->method, x.label, (int)x.response.status, x.response.body.len);
    *out = x.response;
    buf_init(&x.response.body, client->env, 0);
done:
    if (handle != NULL) {
        give_handle(client, handle);
    }
    if (sent != NULL) {
        *sent = reached;
    }
    buf_release(&x.response.body);
    return code;
}

#else

tarn_code http_client_new(tarn_env *env, const http_options *options, http_client **out,
                          tarn_error *err) {
    (void)env;
    (void)options;
    (void)out;
    return err_set(err, TARN_UNSUPPORTED, "HTTP was switched off when this was built (TARN_HTTP)");
}

void http_client_free(http_client *client) {
    (void)client;
}

tarn_code http_send(http_client *client, tarn_arena *arena, const http_request *request,
                    http_response *out, bool *sent, tarn_error *err) {
    (void)client;
    (void)arena;
    (void)out;
    (void)sent;
    return err_set(err, TARN_UNSUPPORTED, "%s could not be sent: HTTP was switched off",
                   request->method);
}

#endif

void http_response_release(http_response *response) {
    buf_release(&response->body);
}

tarn_str http_response_header(const http_response *response, const char *name) {
    for (int32_t i = response->n_headers - 1; i >= 0; i--) {
        if (str_eq_nocase(response->headers[i].name, str_of(name))) {
            return response->headers[i].value;
        }
    }
    return STR_NULL;
}
