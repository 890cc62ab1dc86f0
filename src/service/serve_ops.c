/* service/serve_ops.c - for those who run the service: health and counters. */
#include "service/service_int.h"

/* Rows that wait for long are lost to nobody, but somebody should look. */
static tarn_code check_intake(service_request *r, tarn_error *err) {
    tarn_buf text;
    tarn_code code = TARN_OK;
    buf_init(&text, r->service->env, 0);
    if (!intake_health(r->service->intake, &text)) {
        code = err_set(err, TARN_IO, "%.*s", STR_ARG(buf_str(&text)));
    }
    buf_release(&text);
    return code;
}

tarn_code rest_health(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_ident *items;
    tarn_ident root;
    int32_t n;
    tarn_code code = TARN_OK;
    memset(&root, 0, sizeof root);
    /* well is who can answer: the catalog is asked */
    TRY(catalog_list_namespaces(r->service->catalog, &r->arena, &root, &items, &n, err));
    TRY(buf_append_str(&reply->body, STR("{\"status\":\"ok\"}"), err));
    if (r->service->intake != NULL) {
        TRY(check_intake(r, err));
    }
done:
    if (code != TARN_OK) {
        reply_refuse(r, reply, 503, "ServiceUnavailableException", err->message);
    }
    return TARN_OK;
}

tarn_code rest_counters(service_request *r, service_reply *reply, tarn_error *err) {
    reply->content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    tarn_code code = counters_write(&r->service->counters, &reply->body, err);
    if (code == TARN_OK && r->service->intake != NULL) {
        code = intake_metrics(r->service->intake, &reply->body, err);
    }
    return code == TARN_OK ? buf_append_str(&reply->body, STR("# EOF\n"), err) : code;
}
