/* source/registry.c - see registry.h. GET URL/schemas/ids/N answers {"schema": "<JSON as text>"}.
 */
#include "source/registry.h"

#include "base/json.h"
#include "base/map.h"
#include "net/http.h"

#define SCHEMA_BYTES ((uint64_t)64 << 20)

typedef struct known_schema known_schema;
struct known_schema {
    int32_t id;
    tarn_str json;
    known_schema *next;
};

struct schema_registry {
    tarn_env *env;
    tarn_arena arena;
    const char *url;
    http_client *http;
    known_schema *known;
};

tarn_code registry_new(tarn_env *env, const char *url, schema_registry **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    http_options options;
    memset(&options, 0, sizeof options);
    schema_registry *r = env_calloc(env, 1, sizeof *r);
    if (r == NULL) {
        return err_nomem(err);
    }
    r->env = env;
    arena_init(&r->arena, env);
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/') {
        len--;
    }
    r->url = arena_str(&r->arena, str_make(url, len)).data;
    if (r->url == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(http_client_new(env, &options, &r->http, err));
    *out = r;
    r = NULL;
done:
    registry_free(r);
    return code;
}

void registry_free(schema_registry *r) {
    if (r == NULL) {
        return;
    }
    tarn_env *env = r->env;
    http_client_free(r->http);
    arena_release(&r->arena);
    env_free(env, r);
}

/* Kafka Connect's and Debezium's names of meanings, by those of Avro. */
static const char *logical_type(tarn_str name) {
    static const char *const names[][2] = {
        {"io.debezium.time.Date", "date"},
        {"org.apache.kafka.connect.data.Date", "date"},
        {"io.debezium.time.Time", "time-millis"},
        {"org.apache.kafka.connect.data.Time", "time-millis"},
        {"io.debezium.time.MicroTime", "time-micros"},
        {"io.debezium.time.Timestamp", "local-timestamp-millis"},
        {"org.apache.kafka.connect.data.Timestamp", "timestamp-millis"},
        {"io.debezium.time.MicroTimestamp", "local-timestamp-micros"},
        {"io.debezium.time.NanoTimestamp", "local-timestamp-nanos"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_is(name, names[i][0])) {
            return names[i][1];
        }
    }
    return NULL;
}

static bool translate(tarn_arena *arena, json_value *schema) {
    tarn_str name;
    bool ok = true;
    for (json_value *part = schema->first; part != NULL && ok; part = part->next) {
        ok = translate(arena, part);
    }
    const char *meant = schema->kind == JSON_OBJECT &&
                                json_str(json_get(schema, "connect.name"), &name) &&
                                json_get(schema, "logicalType") == NULL
                            ? logical_type(name)
                            : NULL;
    if (ok && meant != NULL) {
        json_value *value = json_new_str(arena, str_of(meant));
        ok = value != NULL && json_put(arena, schema, "logicalType", value);
    }
    return ok;
}

static tarn_code read_answer(schema_registry *r, tarn_arena *arena, int32_t id, tarn_str body,
                             tarn_str *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    json_value *answer;
    json_value *schema;
    json_writer w;
    tarn_str text;
    tarn_str type;
    tarn_buf written;
    buf_init(&written, r->env, 0);
    TRY(json_parse(arena, body, "the registry's answer", &answer, err));
    if (!json_str(json_get(answer, "schema"), &text)) {
        code = err_set(err, TARN_CORRUPT, "%s: the answer for schema %d held none", r->url, id);
        goto done;
    }
    if (json_str(json_get(answer, "schemaType"), &type) && !str_is(type, "AVRO")) {
        code = err_set(err, TARN_UNSUPPORTED, "%s: schema %d is %.*s, not Avro", r->url, id,
                       STR_ARG(type));
        goto done;
    }
    TRY(json_parse(arena, text, "an Avro schema of the registry", &schema, err));
    if (!translate(arena, schema)) {
        code = err_nomem(err);
        goto done;
    }
    json_begin(&w, &written, false, err);
    json_put_value(&w, schema);
    TRY(json_end(&w));
    *out = arena_str(&r->arena, buf_str(&written));
    code = out->data != NULL ? TARN_OK : err_nomem(err);
done:
    buf_release(&written);
    return code;
}

static tarn_code fetch(schema_registry *r, int32_t id, tarn_str *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    http_response response;
    http_request request;
    http_header accept = {STR("Accept"), STR("application/vnd.schemaregistry.v1+json, "
                                             "application/json")};
    bool answered = false;
    memset(&request, 0, sizeof request);
    arena_init(&arena, r->env);
    const char *url = arena_printf(&arena, "%s/schemas/ids/%d", r->url, id);
    if (url == NULL) {
        code = err_nomem(err);
        goto done;
    }
    request.method = "GET";
    request.url = str_of(url);
    request.headers = &accept;
    request.n_headers = 1;
    request.max_body = SCHEMA_BYTES;
    TRY(http_send(r->http, &arena, &request, &response, NULL, err));
    answered = true;
    if (response.status == 200) {
        code = read_answer(r, &arena, id, buf_str(&response.body), out, err);
    } else {
        tarn_code kind = response.status == 404   ? TARN_NOT_FOUND
                         : response.status == 401 ? TARN_DENIED
                         : response.status == 403 ? TARN_DENIED
                         : response.status >= 500 ? TARN_IO
                                                  : TARN_INVALID;
        code = err_set(err, kind, "%s answered with status %d", url, response.status);
    }
done:
    if (answered) {
        http_response_release(&response);
    }
    arena_release(&arena);
    return code;
}

tarn_code registry_schema(schema_registry *r, int32_t id, tarn_str *out, tarn_error *err) {
    for (const known_schema *s = r->known; s != NULL; s = s->next) {
        if (s->id == id) {
            *out = s->json;
            return TARN_OK;
        }
    }
    tarn_str json;
    tarn_code code = fetch(r, id, &json, err);
    if (code != TARN_OK) {
        return code;
    }
    known_schema *s = ARENA_NEW(&r->arena, known_schema);
    if (s == NULL) {
        return err_nomem(err);
    }
    *s = (known_schema){id, json, r->known};
    r->known = s;
    *out = json;
    return TARN_OK;
}
