/* service/tls.h - a certificate and its key as GnuTLS keeps them, shared by the connections that
 * were opened while they were the service's. GnuTLS is known here and nowhere else. */
#ifndef SERVICE_TLS_H
#define SERVICE_TLS_H

#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

typedef struct tls_keys tls_keys;

/* From PEM: the certificate with those it was issued by, and its key without a password. INVALID
 * says which of the two is wrong, or that they are not of each other; never what is in them. */
tarn_code tls_keys_new(tarn_env *env, tarn_str cert, tarn_str key, tls_keys **out,
                       tarn_error *err) TARN_MUST_USE;
tls_keys *tls_keys_hold(tls_keys *keys);
void tls_keys_release(tls_keys *keys); /* takes NULL */
/* For the handshake of a session, which the caller ends before it releases the keys. */
void tls_keys_use(const tls_keys *keys, void *session);

#endif
