/* service/places.c - see places.h. */
#include "service/places.h"

static tarn_str without_slashes(tarn_str s) {
    while (s.len > 0 && s.data[s.len - 1] == '/') {
        s.len--;
    }
    return s;
}

/* The folder that all namespaces lie in: what is above a table's namespace. */
static tarn_str warehouse_of(tarn_arena *arena, tarn_catalog *catalog) {
    static const tarn_str level = {"n", 1};
    const tarn_ident table = {1, &level, STR("t")};
    tarn_str location;
    size_t slash;
    if (catalog_default_location(catalog, arena, &table, &location, NULL) != TARN_OK) {
        return STR_NULL;
    }
    for (int i = 0; i < 2; i++) {
        location = without_slashes(location);
        if (!str_find_last_char(location, '/', &slash)) {
            return STR_NULL;
        }
        location = str_sub(location, 0, slash);
    }
    return location;
}

tarn_str places_plain(tarn_str location) {
    tarn_str path;
    return without_slashes(store_local_path(location, &path) ? path : location);
}

tarn_code places_init(tarn_arena *arena, tarn_catalog *catalog, tarn_str allowed,
                      service_places *out, tarn_error *err) {
    tarn_str rest = arena_str(arena, allowed);
    tarn_str piece;
    tarn_str *roots = ARENA_ARRAY(arena, tarn_str, allowed.len + 2);
    if (roots == NULL || (allowed.len > 0 && rest.data == NULL)) {
        return err_nomem(err);
    }
    tarn_str warehouse = warehouse_of(arena, catalog);
    if (warehouse.len > 0) {
        roots[out->n++] = out->warehouse = places_plain(warehouse);
    }
    while (rest.len > 0 && str_split(&rest, ',', &piece)) {
        piece = str_trim(piece);
        if (piece.len > 0) {
            roots[out->n++] = places_plain(piece);
        }
    }
    out->roots = roots;
    return TARN_OK;
}

tarn_code places_check(tarn_str allowed, tarn_error *err) {
    tarn_str piece;
    while (allowed.len > 0 && str_split(&allowed, ',', &piece)) {
        piece = str_trim(piece);
        if (piece.len > 0 && piece.data[0] != '/' && store_scheme(piece).len == 0) {
            return err_set(err, TARN_INVALID,
                           "allowed location \"%.*s\" is no absolute path and no URI",
                           STR_ARG(piece));
        }
    }
    return TARN_OK;
}

bool places_climbs(tarn_str path) {
    tarn_str piece;
    while (path.len > 0 && str_split(&path, '/', &piece)) {
        if (str_is(piece, "..") || str_is(piece, ".")) {
            return true;
        }
    }
    return false;
}

bool places_is_below(tarn_str root, tarn_str path) {
    return str_starts_with(path, root) &&
           (path.len == root.len || root.len == 0 || path.data[root.len] == '/');
}

bool places_are_own(const tarn_metadata *m, tarn_str path) {
    static const char *const FOLDERS[] = {"write.data.path", "write.metadata.path",
                                          "write.object-storage.path", "write.folder-storage.path"};
    if (places_climbs(path)) {
        return false;
    }
    if (store_path_below(m->location, path, NULL)) {
        return true;
    }
    for (size_t i = 0; i < sizeof FOLDERS / sizeof FOLDERS[0]; i++) {
        tarn_str folder;
        if (properties_get(&m->properties, FOLDERS[i], &folder) && folder.len > 0 &&
            store_path_below(folder, path, NULL)) {
            return true;
        }
    }
    return false;
}

tarn_code places_allow(const service_places *p, tarn_str location, tarn_error *err) {
    tarn_str path = places_plain(location);
    if (places_climbs(path)) {
        return err_set(err, TARN_DENIED, "location \"%.*s\" goes through . or ..",
                       STR_ARG(location));
    }
    for (int32_t i = 0; i < p->n; i++) {
        if (places_is_below(p->roots[i], path)) {
            return TARN_OK;
        }
    }
    return err_set(err, TARN_DENIED,
                   "location \"%.*s\" lies outside the warehouse (the service's --allow-location "
                   "names other places)",
                   STR_ARG(location));
}
