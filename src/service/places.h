/* service/places.h - where clients may put tables and views, and point the service to: the
 * catalog's own warehouse, and what whoever started the service allowed besides. What a caller may
 * of that is in homes.h. */
#ifndef SERVICE_PLACES_H
#define SERVICE_PLACES_H

#include "catalog/catalog.h"
#include "iceberg/view.h"

typedef struct service_places {
    int32_t n;
    const tarn_str *roots; /* without a slash at the end; "" is everywhere */
    tarn_str warehouse;    /* the first of them; len 0: the catalog has none */
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
bool places_is_below(tarn_str root, tarn_str path); /* or at it; both plain */
/* file:/x, file:///x and /x are one place, and so are those with slashes at the end. */
tarn_str places_plain(tarn_str location);
/* A file of the table's, by the place: below its location, or where its properties say that new
 * files go. */
bool places_are_own(const tarn_metadata *m, tarn_str path);

#endif
