/* catalog/remote_client.h - a REST catalog's server as its catalog sees it: configured, logged in
 * to, asked. Requests are made of a method, a path below the catalog's and a JSON body; answers are
 * JSON documents, or errors in our codes. Any thread. spec: Iceberg REST catalog, OpenAPI
 * description. */
#ifndef CATALOG_REMOTE_CLIENT_H
#define CATALOG_REMOTE_CLIENT_H

#include "catalog/catalog_int.h"
#include "net/http.h"

typedef struct remote_client remote_client;

/* Asks the server for its configuration (logging in first where there is a credential). options are
 * those that PyIceberg and Iceberg's Java library know: token, credential, oauth2-server-uri,
 * scope, audience, resource, prefix, warehouse, header.NAME, rest-page-size, ssl.cabundle,
 * rest.client.connection-timeout-ms, rest.client.socket-timeout-ms (of a whole answer). */
tarn_code remote_client_new(tarn_env *env, tarn_str uri, const tarn_properties *options,
                            remote_client **out, tarn_error *err) TARN_MUST_USE;
void remote_client_free(remote_client *client); /* takes NULL */
/* See set_hasty of catalog.h. */
void remote_client_set_hasty(remote_client *client, bool hasty);
const char *remote_client_label(const remote_client *client);
/* The server's override, else the caller's option, else the server's default; no data: none. */
tarn_str remote_property(const remote_client *client, const char *key);

/* "a%1Fb": a namespace as one segment of a path or value of a query. NULL data: no memory. */
tarn_str remote_namespace_text(const remote_client *client, tarn_arena *arena,
                               const tarn_ident *ns);
/* "namespaces/<ns>" with more behind it ("" or "/tables"); NULL: no memory. */
const char *remote_namespace_path(const remote_client *client, tarn_arena *arena,
                                  const tarn_ident *ns, const char *more);
/* "namespaces/<ns>/tables/<name>" */
const char *remote_table_path(const remote_client *client, tarn_arena *arena,
                              const tarn_ident *table);

/* A commit with this header is taken on the base that it was made for, or refused. Our commits ask
 * questions of their base that no server can ask again (is this file there already? where does the
 * stream stand?), and are made anew by ourselves. Servers that never do otherwise don't know it. */
#define REMOTE_EXACT_HEADER "X-Tarn-Base"
#define REMOTE_EXACT        "exact"

typedef struct remote_request {
    const char *method;
    const char *endpoint; /* as the specification writes it, below /v1/{prefix}/ */
    const char *path;     /* the same, filled in, with its query; NULL: no memory */
    tarn_str body;        /* JSON; no data: none */
    tarn_str etag;        /* If-None-Match; no data: none */
    /* May be sent again whatever became of it. Others are sent again only where the server says
     * that it did nothing, or could not be reached. */
    bool repeatable;
    tarn_str match; /* If-Match: the version that it is for, by its tag; no data: any */
    tarn_str key;   /* Idempotency-Key: however often it is sent, or arrives; no data: none */
    bool may_be_304;
    bool waited; /* the caller waits where the server is away, if that is wanted (set_hasty) */
    bool exact;  /* a commit that a server like ours must not put on a newer head (REMOTE_EXACT) */
} remote_request;

/* The server keeps answers by Idempotency-Key. */
bool remote_takes_keys(const remote_client *client);

typedef struct remote_reply {
    int32_t status; /* 0: none came */
    /* The request may have taken effect, or may yet: no answer, or one that leaves it open. */
    bool unclear;
    tarn_str etag;
    const json_value *json; /* in the arena of the call; NULL: an empty answer */
} remote_reply;

/* OK: 2xx (and 304 where asked for). Otherwise the server's error as ours: NOT_FOUND, CONFLICT,
 * DENIED, INVALID, UNSUPPORTED, LIMIT, IO; CORRUPT where the answer was not what it should be.
 * out is always filled. */
tarn_code remote_send(remote_client *client, tarn_arena *arena, const remote_request *request,
                      remote_reply *out, tarn_error *err) TARN_MUST_USE;
/* Whether the server has this endpoint ("HEAD namespaces/{namespace}"); those of the first version
 * of the specification are had where it does not say. */
bool remote_has_endpoint(const remote_client *client, const char *method, const char *endpoint);

#endif
