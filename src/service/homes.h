/* service/homes.h - where a caller may point the service to: service/places.h, narrowed by roles
 * and by what the catalog has.
 *
 * Files are written, merged and removed where tables say that theirs lie. So who may write some
 * namespaces only puts tables, and what belongs to them, below the folders of those; and nobody
 * puts a table on a namespace's folder, or on or in another table's as far as the places of tables
 * that were put by default tell. A table's default location is always its own. */
#ifndef SERVICE_HOMES_H
#define SERVICE_HOMES_H

#include "service/places.h"
#include "service/request.h"

/* What sent snapshots may name: the service's places, or the folders of what the caller may write
 * and of the namespace of ident. */
tarn_code homes_places(service_request *r, const tarn_ident *ident, service_places *out,
                       tarn_error *err) TARN_MUST_USE;
/* A table or view at a location, or where it is put by default. All of these: DENIED names the
 * place and what is wrong with it. */
tarn_code homes_allow(service_request *r, const tarn_ident *ident, tarn_str location,
                      tarn_error *err) TARN_MUST_USE;
tarn_code homes_allow_default(service_request *r, const tarn_ident *ident,
                              tarn_error *err) TARN_MUST_USE;
/* Of a table or view, or without a name of a namespace: those that say where files go. */
tarn_code homes_allow_properties(service_request *r, const tarn_ident *ident,
                                 const tarn_properties *properties, tarn_error *err) TARN_MUST_USE;
tarn_code homes_allow_changes(service_request *r, const tarn_ident *table,
                              const tarn_change_set *set, tarn_error *err) TARN_MUST_USE;
tarn_code homes_allow_view(service_request *r, const tarn_ident *view, const view_change_set *set,
                           tarn_error *err) TARN_MUST_USE;
/* A metadata file, and where its table or view lies. INVALID: there is none. */
tarn_code homes_allow_register(service_request *r, const tarn_ident *table, tarn_str location,
                               tarn_error *err) TARN_MUST_USE;
tarn_code homes_allow_register_view(service_request *r, const tarn_ident *view, tarn_str location,
                                    tarn_error *err) TARN_MUST_USE;
/* DENIED: the place is on or in that of another table than ident. */
tarn_code homes_check_tables(service_request *r, const tarn_ident *ident, tarn_str location,
                             tarn_error *err) TARN_MUST_USE;

#endif
