/* service/tls.c - see tls.h. */
#include "service/tls.h"

#ifdef TARN_SERVICE

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdatomic.h>

struct tls_keys {
    tarn_env *env;
    gnutls_certificate_credentials_t credentials;
    atomic_int refs;
};

static gnutls_datum_t datum_of(tarn_str text) {
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text.data, (unsigned)text.len};
}

/* Each alone first, so that the message can say which one is wrong. */
static tarn_code check_cert(const gnutls_datum_t *pem, tarn_error *err) {
    gnutls_x509_crt_t *list = NULL;
    unsigned n = 0;
    int status = gnutls_x509_crt_list_import2(&list, &n, pem, GNUTLS_X509_FMT_PEM,
                                              GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    for (unsigned i = 0; status >= 0 && i < n; i++) {
        gnutls_x509_crt_deinit(list[i]);
    }
    if (status >= 0) {
        gnutls_free(list);
        return TARN_OK;
    }
    return err_set(err, TARN_INVALID, "the certificate cannot be used: %s",
                   gnutls_strerror(status));
}

static tarn_code check_key(const gnutls_datum_t *pem, tarn_error *err) {
    gnutls_x509_privkey_t key;
    if (gnutls_x509_privkey_init(&key) < 0) {
        return err_nomem(err);
    }
    int status = gnutls_x509_privkey_import2(key, pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    gnutls_x509_privkey_deinit(key);
    return status >= 0
               ? TARN_OK
               : err_set(err, TARN_INVALID, "the key cannot be used: %s", gnutls_strerror(status));
}

tarn_code tls_keys_new(tarn_env *env, tarn_str cert, tarn_str key, tls_keys **out,
                       tarn_error *err) {
    gnutls_datum_t cert_pem = datum_of(cert);
    gnutls_datum_t key_pem = datum_of(key);
    tarn_code code = TARN_OK;
    tls_keys *keys = env_calloc(env, 1, sizeof *keys);
    if (keys == NULL) {
        return err_nomem(err);
    }
    keys->env = env;
    atomic_init(&keys->refs, 1);
    TRY(check_cert(&cert_pem, err));
    TRY(check_key(&key_pem, err));
    if (gnutls_certificate_allocate_credentials(&keys->credentials) < 0) {
        TRY(err_nomem(err));
    }
    int status = gnutls_certificate_set_x509_key_mem2(keys->credentials, &cert_pem, &key_pem,
                                                      GNUTLS_X509_FMT_PEM, NULL, 0);
    if (status < 0) {
        TRY(err_set(err, TARN_INVALID, "the key is not the certificate's: %s",
                    gnutls_strerror(status)));
    }
    *out = keys;
    keys = NULL;
done:
    tls_keys_release(keys);
    return code;
}

tls_keys *tls_keys_hold(tls_keys *keys) {
    (void)atomic_fetch_add(&keys->refs, 1);
    return keys;
}

void tls_keys_release(tls_keys *keys) {
    if (keys != NULL && atomic_fetch_sub(&keys->refs, 1) == 1) {
        if (keys->credentials != NULL) {
            gnutls_certificate_free_credentials(keys->credentials);
        }
        env_free(keys->env, keys);
    }
}

void tls_keys_use(const tls_keys *keys, void *session) {
    (void)gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, keys->credentials);
}

#else

tarn_code tls_keys_new(tarn_env *env, tarn_str cert, tarn_str key, tls_keys **out,
                       tarn_error *err) {
    (void)env;
    (void)cert;
    (void)key;
    (void)out;
    return err_set(err, TARN_UNSUPPORTED, "this build has no service (TARN_SERVICE is off)");
}

void tls_keys_release(tls_keys *keys) {
    (void)keys;
}

#endif
