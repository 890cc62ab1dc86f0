/* service/serve_ops.c - for those who run the service: health and counters. */
#include "service/service_int.h"

tarn_code rest_health(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_ident *items;
    tarn_ident root;
    int32_t n;
    tarn_code code = TARN_OK;
    memset(&root, 0, sizeof root);
    /* well is who can answer: the catalog is asked */
    TRY(catalog_list_namespaces(r->service->catalog, &r->arena, &root, &items, &n, err));
    TRY(buf_append_str(&reply->body, STR("{\"status\":\"ok\"}"), err));
done:
    if (code != TARN_OK) {
        reply_refuse(r, reply, 503, "ServiceUnavailableException", err->message);
    }
    return TARN_OK;
}

tarn_code rest_counters(service_request *r, service_reply *reply, tarn_error *err) {
    reply->content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    return counters_write(&r->service->counters, &reply->body, err);
}
