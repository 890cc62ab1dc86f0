/* tests/sim/sim_net.c - HTTP without a network: the client's http_send calls the service's handler,
 * on the caller's thread as one of the service's connections. On the way requests are refused,
 * lost, delivered after their sender gave up, and answers are lost. Services die at any of their
 * calls, answer nobody from then on, and are started anew with nothing but what the store holds. */
#include "sim.h"

#include "net/http.h"
#include "service/daemon.h"

#include <string.h>

#define MAX_SERVERS 4
#define MAX_LATE    16

struct http_client {
    tarn_env *env;
    sim_process *process;
};

struct http_server {
    http_handle_fn handle;
    void *ctx;
};

typedef struct sim_server {
    sim_process process;
    char name[16];
    tarn_catalog *catalog;
    rest_service *service;
    struct http_server http;
    bool up;
    int inside; /* requests at work */
} sim_server;

/* What a handler asks of its connection. */
typedef struct exchange {
    const http_header *headers;
    int32_t n_headers;
    tarn_arena arena;
    tarn_str query;
} exchange;

typedef struct late_request {
    sim_server *server;
    http_request request;
} late_request;

static sim_server servers[MAX_SERVERS];
static late_request late[MAX_LATE];
static int n_late;

tarn_code __wrap_http_client_new(tarn_env *env, const http_options *options, http_client **out,
                                 tarn_error *err);
void __wrap_http_client_free(http_client *client);
tarn_code __wrap_http_send(http_client *client, tarn_arena *arena, const http_request *request,
                           http_response *out, bool *sent, tarn_error *err);
tarn_code __wrap_http_start(tarn_env *env, const service_options *options, http_handle_fn handle,
                            void *ctx, http_server **out, tarn_error *err);
uint16_t __wrap_http_port(const http_server *server);
void __wrap_http_stop(http_server *server);
const char *__wrap_http_value(void *connection, bool header, const char *name);
const char *__wrap_http_other_parameter(void *connection, const char *const *names);

/* ---- the service's side ---- */

tarn_code __wrap_http_start(tarn_env *env, const service_options *options, http_handle_fn handle,
                            void *ctx, http_server **out, tarn_error *err) {
    sim_server *s = (sim_server *)sim_process_of(env); /* the process is its first member */
    (void)options;
    (void)err;
    s->http = (struct http_server){handle, ctx};
    *out = &s->http;
    return TARN_OK;
}

uint16_t __wrap_http_port(const http_server *server) {
    (void)server;
    return 1;
}

void __wrap_http_stop(http_server *server) {
    (void)server;
}

static const char *query_value(exchange *x, const char *name) {
    tarn_str rest = x->query;
    tarn_str pair;
    size_t at;
    while (str_split(&rest, '&', &pair)) {
        if (str_find_char(pair, '=', &at) && str_is(str_sub(pair, 0, at), name)) {
            return arena_str(&x->arena, str_from(pair, at + 1)).data;
        }
    }
    return NULL;
}

const char *__wrap_http_value(void *connection, bool header, const char *name) {
    exchange *x = connection;
    if (!header) {
        return query_value(x, name);
    }
    for (int32_t i = 0; i < x->n_headers; i++) {
        if (str_eq_nocase(x->headers[i].name, str_of(name))) {
            return arena_str(&x->arena, x->headers[i].value).data;
        }
    }
    return NULL;
}

const char *__wrap_http_other_parameter(void *connection, const char *const *names) {
    exchange *x = connection;
    tarn_str rest = x->query;
    tarn_str pair;
    size_t at;
    while (rest.len > 0 && str_split(&rest, '&', &pair)) {
        tarn_str name = str_find_char(pair, '=', &at) ? str_sub(pair, 0, at) : pair;
        const char *const *known = names;
        while (*known != NULL && !str_is(name, *known)) {
            known++;
        }
        if (*known == NULL) {
            return arena_str(&x->arena, name).data;
        }
    }
    return NULL;
}

/* The request as the service answers it; *status 0: it died meanwhile. */
static void handle(sim_server *s, const http_request *request, tarn_arena *arena,
                   http_response *out) {
    exchange x = {request->headers, request->n_headers, {0}, STR_NULL};
    service_request r;
    service_reply reply;
    size_t at;
    memset(&r, 0, sizeof r);
    memset(&reply, 0, sizeof reply);
    arena_init(&x.arena, s->process.env);
    arena_init(&r.arena, s->process.env);
    buf_init(&r.body, s->process.env, 0);
    buf_init(&reply.body, s->process.env, 0);
    r.connection = &x;
    r.method = request->method;
    r.path = str_from(request->url, strlen("http://s0"));
    if (str_find_char(r.path, '?', &at)) {
        x.query = str_from(r.path, at + 1);
        r.path = str_sub(r.path, 0, at);
    }
    r.path = arena_str(&r.arena, r.path);
    s->inside++;
    if (buf_append_str(&r.body, request->body, NULL) != TARN_OK) {
        sim_fail("no memory");
    }
    s->http.handle(s->http.ctx, &r, &reply);
    out->status = s->process.dead ? 0 : reply.status;
    out->headers = ARENA_ARRAY(arena, http_header, (size_t)reply.n_headers + 1);
    for (int32_t i = 0; i < reply.n_headers; i++) {
        out->headers[out->n_headers++] =
            (http_header){str_of(arena_strdup(arena, reply.headers[i].name)),
                          str_of(arena_strdup(arena, reply.headers[i].value))};
    }
    if (buf_append_str(&out->body, buf_str(&reply.body), NULL) != TARN_OK) {
        sim_fail("no memory");
    }
    sim_trace("%s answers %d to %s %.*s: %.*s", s->name, out->status, request->method,
              STR_ARG(r.path), reply.body.len < 120 ? (int)reply.body.len : 120,
              reply.body.len > 0 ? (const char *)reply.body.data : "");
    buf_release(&reply.body);
    buf_release(&r.body);
    arena_release(&r.arena);
    arena_release(&x.arena);
    s->inside--;
}

/* ---- the client's side ---- */

tarn_code __wrap_http_client_new(tarn_env *env, const http_options *options, http_client **out,
                                 tarn_error *err) {
    http_client *client = env_calloc(env, 1, sizeof *client);
    (void)options;
    if (client == NULL) {
        return err_nomem(err);
    }
    *client = (http_client){env, sim_process_of(env)};
    *out = client;
    return TARN_OK;
}

void __wrap_http_client_free(http_client *client) {
    if (client != NULL) {
        env_free(client->env, client);
    }
}

static tarn_code refuse(const char *why, tarn_error *err) {
    sim_trace("request: %s", why);
    return err_set(err, TARN_IO, "%s", why);
}

/* A request whose sender will not hear of it. */
static void put_off(sim_server *s, const http_request *request) {
    if (n_late == MAX_LATE || sim_chance(2) == 0) {
        return;
    }
    http_request copy = *request;
    copy.url = arena_str(&SIM.arena, request->url);
    copy.body = arena_str(&SIM.arena, request->body);
    copy.n_headers = 0;
    late[n_late++] = (late_request){s, copy};
}

tarn_code __wrap_http_send(http_client *client, tarn_arena *arena, const http_request *request,
                           http_response *out, bool *sent, tarn_error *err) {
    sim_server *s = &servers[request->url.data[strlen("http://s")] - '0'];
    bool ignored;
    sent = sent != NULL ? sent : &ignored;
    *sent = false;
    memset(out, 0, sizeof *out);
    sim_verdict verdict = sim_call(client->process, SIM.plan.net_faults);
    if (client->process->dead && verdict == SIM_FAILED) {
        return refuse("the sender is dead", err);
    }
    if (!s->up || s->process.dead) {
        return refuse("nobody listens", err);
    }
    if (verdict == SIM_FAILED) {
        *sent = sim_chance(3) > 0;
        if (*sent) {
            put_off(s, request);
        }
        return refuse("the request was lost", err);
    }
    *sent = true;
    buf_init(&out->body, client->env, 0);
    handle(s, request, arena, out);
    sim_yield();
    if (out->status == 0 || verdict == SIM_LOST || client->process->dead) {
        SIM.replies_lost++;
        buf_release(&out->body);
        return refuse("the answer was lost", err);
    }
    return TARN_OK;
}

static void bring_late(void *ctx) {
    (void)ctx;
    while (SIM.working > 0 || n_late > 0) {
        sim_sleep_us(sim_delay_us());
        if (n_late == 0) {
            continue;
        }
        late_request l = late[0];
        late[0] = late[--n_late];
        if (l.server->up && !l.server->process.dead) {
            http_response reply;
            tarn_arena arena;
            memset(&reply, 0, sizeof reply);
            arena_init(&arena, SIM.env);
            buf_init(&reply.body, SIM.env, 0);
            sim_trace("a request arrives late at %s", l.server->name);
            handle(l.server, &l.request, &arena, &reply);
            buf_release(&reply.body);
            arena_release(&arena);
        }
    }
}

/* ---- lives of services ---- */

static void start_server(sim_server *s) {
    service_options options;
    tarn_error err = TARN_ERROR_INIT;
    memset(&options, 0, sizeof options);
    options.warehouse = STR("sim");
    sim_process_begin(&s->process, s->name, SIM.plan.server_calls);
    s->catalog = sim_catalog_new(&s->process);
    if (s->catalog != NULL &&
        service_start(s->process.env, s->catalog, &options, &s->service, &err) == TARN_OK) {
        sim_trace("%s is up", s->name);
        s->up = true;
    } else {
        s->process.dead = true;
    }
}

static void stop_server(sim_server *s) {
    service_stop(s->service);
    catalog_close(s->catalog);
    s->service = NULL;
    s->catalog = NULL;
    sim_process_end(&s->process);
}

static bool is_over(void *ctx) {
    const sim_server *s = ctx;
    return s->inside == 0 && (s->process.dead || (SIM.working == 0 && n_late == 0));
}

static void run_server(void *ctx) {
    sim_server *s = ctx;
    while (SIM.working > 0) {
        start_server(s);
        sim_wait("its end", is_over, s);
        s->up = false;
        stop_server(s);
        sim_sleep_us(1000 * (int64_t)sim_chance(3000));
    }
}

void sim_net_begin(void) {
    n_late = 0;
    memset(servers, 0, sizeof servers);
    for (int i = 0; i < SIM.plan.servers; i++) {
        (void)snprintf(servers[i].name, sizeof servers[i].name, "s%d", i);
        sim_spawn(servers[i].name, run_server, &servers[i]);
    }
    if (SIM.plan.servers > 0) {
        sim_spawn("late-net", bring_late, NULL);
    }
}

/* ---- a catalog that does not say that it takes write results ---- */

typedef struct plain_catalog {
    tarn_catalog base;
    tarn_catalog *inner;
} plain_catalog;

static tarn_code plain_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                            tarn_error *err) {
    return catalog_load(((plain_catalog *)c)->inner, table, out, err);
}

static tarn_code plain_commit(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                              const tarn_change_set *set, tarn_outcome_kind *outcome,
                              tarn_table_version **out, tarn_error *err) {
    return catalog_commit(((plain_catalog *)c)->inner, table, base, set, outcome, out, err);
}

static void plain_close(tarn_catalog *c) {
    catalog_close(((plain_catalog *)c)->inner);
    env_free(c->env, c);
}

static const catalog_vtable PLAIN_VTABLE = {
    .name = "plain", .load = plain_load, .commit = plain_commit, .close = plain_close};

tarn_catalog *sim_remote_new(sim_process *p, bool whole) {
    static const tarn_properties none = {0, NULL};
    char uri[32];
    tarn_error err = TARN_ERROR_INIT;
    tarn_catalog *catalog = NULL;
    tarn_store *store = sim_store_new(p);
    (void)snprintf(uri, sizeof uri, "http://s%u", sim_chance((uint32_t)SIM.plan.servers));
    if (catalog_rest_new(p->env, store, str_of(uri), &none, &catalog, &err) != TARN_OK) {
        store_close(store);
        return NULL;
    }
    if (whole) {
        return catalog;
    }
    plain_catalog *self = env_calloc(p->env, 1, sizeof *self);
    if (self == NULL) {
        sim_fail("no memory");
    }
    self->base = (tarn_catalog){.vt = &PLAIN_VTABLE, .env = p->env, .store = catalog->store};
    self->inner = catalog;
    return &self->base;
}
