/* service/service_int.h - what the handlers share. */
#ifndef SERVICE_SERVICE_INT_H
#define SERVICE_SERVICE_INT_H

#include "service/auth.h"
#include "service/counters.h"
#include "service/daemon.h"
#include "service/intake.h"
#include "service/once.h"
#include "service/places.h"
#include "service/queue.h"
#include "service/rebase.h"

struct rest_service {
    tarn_env *env;
    tarn_catalog *catalog;
    tarn_str warehouse;
    service_places places;
    auth *auth;
    service_counters counters;
    service_log_fn log;
    void *log_ctx;
    commit_queues *queues;
    once_keys *keys;
    added_files *added;
    intake *intake; /* NULL: no rows are taken */
    http_server *http;
    tarn_arena arena;
};

/* One line of the table of routes; pattern's parts in braces are taken from the path. */
typedef struct service_route {
    const char *method;
    const char *pattern; /* "/v1/{prefix}/namespaces/{namespace}"; {prefix} is left out */
    service_handler handle;
    reply_subject subject;
    auth_role role; /* for {namespace}; what a body names is the handler's to check */
    enum {
        ROUTE_LISTED,
        ROUTE_HIDDEN,
        ROUTE_PUBLIC
    } kind; /* hidden: not in config's list;
               public: nor in need of a token */
} service_route;
extern const service_route SERVICE_ROUTES[];
extern const size_t SERVICE_N_ROUTES;

/* DENIED, with the role that is needed and where. */
tarn_code request_deny(service_request *r, const tarn_ident *ns, auth_role role, tarn_error *err);
/* DENIED, or for those who may not even know of the namespace NOT_FOUND. */
tarn_code request_allow(service_request *r, const tarn_ident *ns, auth_role role,
                        tarn_error *err) TARN_MUST_USE;

/* serve_ops.c, serve_token.c */
tarn_code rest_health(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_counters(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_token(service_request *r, service_reply *reply, tarn_error *err);
/* serve_namespace.c */
tarn_code rest_config(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_list_namespaces(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_create_namespace(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_load_namespace(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_has_namespace(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_drop_namespace(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_update_namespace(service_request *r, service_reply *reply, tarn_error *err);
/* serve_table.c */
tarn_code rest_list_tables(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_create_table(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_register_table(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_load_table(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_has_table(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_drop_table(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_rename_table(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_unregister_table(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_metrics(service_request *r, service_reply *reply, tarn_error *err);
/* serve_batch.c */
tarn_code rest_write_results(service_request *r, service_reply *reply, tarn_error *err);
/* serve_rows.c */
tarn_code rest_rows(service_request *r, service_reply *reply, tarn_error *err);
/* serve_commit.c, serve_transaction.c */
tarn_code rest_commit_table(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_commit_transaction(service_request *r, service_reply *reply, tarn_error *err);
/* serve_plan.c */
tarn_code rest_plan_scan(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_load_plan(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_cancel_plan(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_scan_tasks(service_request *r, service_reply *reply, tarn_error *err);
/* serve_view.c */
tarn_code rest_list_views(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_create_view(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_register_view(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_load_view(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_has_view(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_commit_view(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_drop_view(service_request *r, service_reply *reply, tarn_error *err);
tarn_code rest_rename_view(service_request *r, service_reply *reply, tarn_error *err);

/* "a.b.t", as it is; in the request's arena. */
const char *rest_ident_text(service_request *r, const tarn_ident *ident);
/* What has the name that a new table or view asked for: "Table", "View with same name". */
const char *rest_taken_by(service_request *r, bool view);
typedef tarn_code (*rename_fn)(tarn_catalog *catalog, const tarn_ident *from, const tarn_ident *to,
                               tarn_error *err);
/* A rename as the body says it, of tables or views. */
tarn_code rest_rename(service_request *r, service_reply *reply, rename_fn move,
                      tarn_error *err) TARN_MUST_USE;

bool rest_creates(const tarn_change_set *set); /* they require that there is no table */
/* The request has an Idempotency-Key, and the table shows that it was done before: its snapshots
 * are there, and what it creates is. */
bool rest_was_done(const service_request *r, const tarn_metadata *now, const tarn_change_set *set);
/* Reads the snapshots that the commit (its set is there) adds; see sent_snapshots_read. */
tarn_code rest_read_sent(service_request *r, const tarn_metadata *base, rebase_commit *commit,
                         tarn_error *err) TARN_MUST_USE;
/* The client has asked not to follow others' commits (catalog/remote_client.h). */
bool rest_wants_exact(service_request *r);
/* A client's changes for a base: as they were sent where that holds, else put on what the table is
 * now where that is safe and wanted; see rebase_make. */
tarn_code rest_fit_changes(written_files *files, const tarn_metadata *base, rebase_commit *sent,
                           tarn_change_set *out, tarn_error *err) TARN_MUST_USE;

/* Idents as the specification writes lists of them, and one LoadTableResult. */
tarn_code rest_put_page(service_request *r, service_reply *reply, const char *name,
                        const tarn_ident *items, int32_t n, tarn_error *err) TARN_MUST_USE;
tarn_code rest_put_table(service_reply *reply, const tarn_metadata *m, tarn_str location,
                         bool config, tarn_error *err) TARN_MUST_USE;

#endif
