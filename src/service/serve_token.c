/* service/serve_token.c - tokens for credentials (REST specification, "getToken"; RFC 6749 client
 * credentials, RFC 8693 token exchange as clients use it to renew). */
#include "service/service_int.h"

/* One field of the form, decoded; len 0: absent. */
static tarn_code form_field(service_request *r, const char *name, tarn_str *out, tarn_error *err) {
    tarn_str rest = buf_str(&r->body);
    tarn_str pair;
    size_t equals;
    *out = STR_NULL;
    while (rest.len > 0 && str_split(&rest, '&', &pair)) {
        if (!str_find_char(pair, '=', &equals) || !str_is(str_sub(pair, 0, equals), name)) {
            continue;
        }
        tarn_str value = arena_str(&r->arena, str_from(pair, equals + 1));
        if (value.data == NULL) {
            return err_nomem(err);
        }
        for (size_t i = 0; i < value.len; i++) {
            if (value.data[i] == '+') {
                ((char *)(uintptr_t)value.data)[i] = ' '; /* our own copy */
            }
        }
        return request_decode(r, value, out, err);
    }
    return TARN_OK;
}

/* "Basic ID:SECRET" in base64. */
static tarn_code basic_credentials(service_request *r, tarn_str *id, tarn_str *secret,
                                   tarn_error *err) {
    const char *header = request_header(r, "Authorization");
    if (header == NULL || strncmp(header, "Basic ", 6) != 0) {
        return TARN_OK;
    }
    char *out = arena_alloc(&r->arena, strlen(header));
    size_t n = 0, colon;
    uint32_t bits = 0;
    int held = 0;
    if (out == NULL) {
        return err_nomem(err);
    }
    for (const char *c = header + 6; *c != '\0' && *c != '='; c++) {
        int digit = str_base64_digit(*c);
        if (digit < 0) {
            return TARN_OK; /* no credentials, then */
        }
        bits = (bits << 6 | (uint32_t)digit) & 0xffffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[n++] = (char)(bits >> held & 0xff);
        }
    }
    tarn_str text = str_make(out, n);
    if (str_find_char(text, ':', &colon)) {
        *id = str_sub(text, 0, colon);
        *secret = str_from(text, colon + 1);
    }
    return TARN_OK;
}

static void refuse_token(service_request *r, service_reply *reply, int status, const char *error,
                         const char *text) {
    json_writer w;
    (void)r;
    json_begin(&w, &reply->body, false, NULL);
    json_put_object(&w);
    json_member_str(&w, "error", str_of(error));
    json_member_str(&w, "error_description", str_of(text));
    json_end_object(&w);
    if (json_end(&w) != TARN_OK) {
        buf_reset(&reply->body);
    }
    reply->status = status;
}

/* The one who asks becomes the request's caller. */
static tarn_code find_caller(service_request *r, tarn_str grant, tarn_error *err) {
    tarn_str id, secret, subject;
    tarn_code code = TARN_OK;
    TRY(form_field(r, "client_id", &id, err));
    TRY(form_field(r, "client_secret", &secret, err));
    if (secret.len == 0) {
        TRY(basic_credentials(r, &id, &secret, err));
    }
    if (str_is(grant, "client_credentials")) {
        r->caller = auth_by_secret(r->service->auth, id, secret);
    } else {
        TRY(form_field(r, "subject_token", &subject, err));
        r->caller = auth_by_token(r->service->auth, subject);
    }
done:
    return code;
}

tarn_code rest_token(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_str grant, token;
    int64_t seconds;
    json_writer w;
    tarn_code code = TARN_OK;
    TRY(form_field(r, "grant_type", &grant, err));
    if (!str_is(grant, "client_credentials") &&
        !str_is(grant, "urn:ietf:params:oauth:grant-type:token-exchange")) {
        refuse_token(r, reply, 400, "unsupported_grant_type",
                     "grant_type is client_credentials or token-exchange");
        goto done;
    }
    TRY(find_caller(r, grant, err));
    if (r->caller == NULL && !auth_is_open(r->service->auth)) {
        refuse_token(r, reply, 401, "invalid_client", "the credentials are not known");
        goto done;
    }
    TRY(auth_issue(r->service->auth, r->caller, &r->arena, &token, &seconds, err));
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    json_member_str(&w, "access_token", token);
    json_member_str(&w, "token_type", STR("bearer"));
    json_member_i64(&w, "expires_in", seconds);
    json_member_str(&w, "issued_token_type", STR("urn:ietf:params:oauth:token-type:access_token"));
    json_end_object(&w);
    TRY(json_end(&w));
done:
    return code;
}
