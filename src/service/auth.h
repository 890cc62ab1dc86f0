/* service/auth.h - who may do what: clients with secrets, tokens, and roles by namespace.
 *
 * Without a configuration everybody may do everything. With one, a request needs a bearer token: a
 * fixed one of the configuration, or one that a client got for its credentials (OAuth2 client
 * credentials, REST specification "getToken"), which lives in this process and ends by time.
 * Secrets and tokens are never logged and are compared in constant time.
 *
 * {"token-seconds": 3600,
 *  "clients": [{"id": "spark", "secret": "...", "grants": [{"namespace": "a.b", "role":
 * "write"}]}], "tokens": [{"token": "...", "name": "ops", "grants": [{"namespace": "*", "role":
 * "admin"}]}]} A grant holds for its namespace and all below it; "*" for all. */
#ifndef SERVICE_AUTH_H
#define SERVICE_AUTH_H

#include <stdatomic.h>

#include "catalog/catalog.h"

typedef enum auth_role {
    AUTH_NONE = 0, /* a known caller is enough */
    AUTH_READ,
    AUTH_WRITE, /* rows, tables and views */
    AUTH_ADMIN  /* namespaces too */
} auth_role;

typedef struct auth_grant {
    int32_t n_levels; /* 0: every namespace */
    const tarn_str *levels;
    auth_role role;
} auth_grant;

typedef struct auth_caller {
    tarn_str name;
    tarn_str secret; /* of a client; or the fixed token */
    int32_t n_grants;
    const auth_grant *grants;
    struct auth_book *book; /* that it stands in */
} auth_caller;

/* All of one configuration. It lives while somebody holds it or one of its callers. */
typedef struct auth_book auth_book;
/* INVALID names what is wrong, never a secret. */
tarn_code auth_read(tarn_env *env, tarn_str config, auth_book **out, tarn_error *err) TARN_MUST_USE;
void auth_book_release(auth_book *book); /* takes NULL */

typedef struct auth auth;
/* config len 0: no authentication. */
tarn_code auth_new(tarn_env *env, tarn_str config, auth **out, tarn_error *err) TARN_MUST_USE;
void auth_free(auth *a);
bool auth_is_open(const auth *a);
/* From now on this one counts (and is a's). Tokens that were issued hold on where their caller is
 * in it under the same secret. */
void auth_replace(auth *a, auth_book *book);
/* The caller of a bearer token, to be released; NULL: unknown or expired. */
const auth_caller *auth_by_token(auth *a, tarn_str token);
const auth_caller *auth_by_secret(auth *a, tarn_str id, tarn_str secret);
void auth_release(const auth_caller *caller); /* takes NULL */
/* A fresh token of a caller, in arena, and how long it lives. */
tarn_code auth_issue(auth *a, const auth_caller *caller, tarn_arena *arena, tarn_str *token,
                     int64_t *seconds, tarn_error *err) TARN_MUST_USE;
/* Whether the caller has this role for the namespace. caller NULL: an open service. */
bool auth_allows(const auth_caller *caller, const tarn_ident *ns, auth_role role);
const char *auth_role_name(auth_role role);
/* Whether it may know of the namespace: has a role there, above, or somewhere below. */
bool auth_sees(const auth_caller *caller, const tarn_ident *ns);

#endif
