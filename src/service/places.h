/* service/places.h - where clients may put tables and views, and point the service to: the
 * catalog's own warehouse, and what whoever started the service allowed besides. */
#ifndef SERVICE_PLACES_H
#define SERVICE_PLACES_H

#include "catalog/catalog.h"
#include "iceberg/view.h"

typedef struct service_places {
    int32_t n;
    const tarn_str *roots; /* without a slash at the end; "" is everywhere */
} service_places;

/* allowed: comma separated; len 0: the warehouse alone. */
tarn_code places_init(tarn_arena *arena, tarn_catalog *catalog, tarn_str allowed,
                      service_places *out, tarn_error *err) TARN_MUST_USE;
/* Whether each of the allowed places means the same from every folder. INVALID names one. */
tarn_code places_check(tarn_str allowed, tarn_error *err) TARN_MUST_USE;
/* DENIED names the location, and how it could be allowed. ".." in a path is refused whatever is
 * allowed. */
bool places_climbs(tarn_str path); /* has . or .. as a part */
tarn_code places_allow(const service_places *p, tarn_str location, tarn_error *err) TARN_MUST_USE;
/* Properties that say where files go: write.data.path and the like, a namespace's location. */
tarn_code places_allow_properties(const service_places *p, const tarn_properties *properties,
                                  tarn_error *err) TARN_MUST_USE;
tarn_code places_allow_changes(const service_places *p, const tarn_change_set *set,
                               tarn_error *err) TARN_MUST_USE;
tarn_code places_allow_view(const service_places *p, const view_change_set *set,
                            tarn_error *err) TARN_MUST_USE;

#endif
