/* api/api_service.c - include/tarn/service.h over the service room. */
#include <tarn/service.h>

#include <stdio.h>

#include "api/handles.h"
#include "service/service.h"

struct tarn_service {
    tarn_catalog_handle *catalog;
    rest_service *running;
    char url[300];
};

/* HOST:PORT, with brackets around an IPv6 host. host: 256 bytes. */
static tarn_code parse_listen(const char *text, char *host, uint16_t *port, tarn_error *err) {
    tarn_str all = str_of(text != NULL ? text : "127.0.0.1:8181");
    size_t colon;
    int32_t number;
    if (!str_find_last_char(all, ':', &colon) || !str_to_i32(str_from(all, colon + 1), &number) ||
        number < 0 || number > 65535) {
        return err_set(err, TARN_INVALID, "\"%.*s\" is no HOST:PORT to listen on", STR_ARG(all));
    }
    tarn_str name = str_sub(all, 0, colon);
    if (name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']') {
        name = str_sub(name, 1, name.len - 2);
    }
    if (name.len == 0 || name.len > 255) {
        return err_set(err, TARN_INVALID, "\"%.*s\" has no host to listen on", STR_ARG(all));
    }
    memcpy(host, name.data, name.len);
    host[name.len] = '\0';
    *port = (uint16_t)number;
    return TARN_OK;
}

static tarn_service_options known_options(const tarn_service_options *options) {
    tarn_service_options o = TARN_SERVICE_OPTIONS_INIT;
    if (options != NULL) {
        size_t known = options->struct_size < sizeof o ? options->struct_size : sizeof o;
        memcpy(&o, options, known);
    }
    return o;
}

static tarn_code read_options(const tarn_service_options *o, char host[256], service_options *inner,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(inner, 0, sizeof *inner);
    if ((o->tls_cert_pem != NULL) != (o->tls_key_pem != NULL)) {
        return err_set(err, TARN_INVALID, "HTTPS takes a certificate and a key, not one of them");
    }
    TRY(parse_listen(o->listen, host, &inner->port, err));
    inner->host = host;
    inner->connections = o->connections;
    inner->timeout_s = o->timeout_s;
    inner->body_bytes = (size_t)o->body_bytes;
    inner->warehouse = str_of(o->warehouse);
    inner->access = str_of(o->access_json);
    inner->allowed = str_of(o->allowed_locations);
    inner->request_timeout_s = o->request_timeout_s;
    inner->tls_cert = str_of(o->tls_cert_pem);
    inner->tls_key = str_of(o->tls_key_pem);
    inner->intake_dir = o->intake_dir;
    inner->intake_interval_ms = o->intake_interval_ms;
    inner->intake_bytes = o->intake_bytes;
    inner->log = o->log;
    inner->log_ctx = o->log_ctx;
done:
    return code;
}

tarn_code tarn_service_check(tarn_env *env, const tarn_service_options *options, tarn_error *err) {
    API_ERROR(err);
    tarn_service_options o = known_options(options);
    service_options inner;
    char host[256];
    tarn_code code = read_options(&o, host, &inner, err);
    return code == TARN_OK ? service_check(env, &inner, err) : code;
}

tarn_code tarn_service_start(tarn_catalog_handle *catalog, const tarn_service_options *options,
                             tarn_service **out, tarn_error *err) {
    API_ERROR(err);
    tarn_service_options o = known_options(options);
    service_options inner;
    char host[256];
    tarn_code code = TARN_OK;
    tarn_service *s = env_calloc(catalog->env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    TRY(read_options(&o, host, &inner, err));
    TRY(service_start(catalog->env, catalog->catalog, &inner, &s->running, err));
    snprintf(s->url, sizeof s->url, strchr(host, ':') != NULL ? "%s://[%s]:%u" : "%s://%s:%u",
             service_is_tls(s->running) ? "https" : "http", host, service_port(s->running));
    s->catalog = handle_keep(catalog);
    *out = s;
    s = NULL;
done:
    env_free(catalog->env, s);
    return code;
}

tarn_code tarn_service_reload(tarn_service *s, const tarn_service_options *options,
                              tarn_error *err) {
    API_ERROR(err);
    tarn_service_options o = known_options(options);
    return service_reload(s->running, str_of(o.access_json), str_of(o.tls_cert_pem),
                          str_of(o.tls_key_pem), err);
}

const char *tarn_service_url(const tarn_service *s) {
    return s->url;
}

void tarn_service_stop(tarn_service *s) {
    if (s == NULL) {
        return;
    }
    tarn_env *env = s->catalog->env;
    service_stop(s->running);
    handle_release(s->catalog);
    env_free(env, s);
}
