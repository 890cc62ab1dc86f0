/* service/homes.c - see homes.h. */
#include "service/homes.h"

#include "service/service_int.h"

#define MAX_PARTS     16
#define HOMES_LONGEST 3000
#define LONGEST_PART  255 /* of a file's name */

static bool is_everywhere(const service_request *r) {
    const tarn_ident all = {0, NULL, STR("")};
    return auth_allows(r->caller, &all, AUTH_WRITE);
}

/* The folder that the namespace's tables are put in by default; false: there is none. */
static bool home_of(service_request *r, int32_t n, const tarn_str *levels, tarn_str *out) {
    const tarn_ident table = {n, levels, STR("t")};
    tarn_str location;
    size_t slash;
    if (n == 0 || catalog_default_location(r->service->catalog, &r->arena, &table, &location,
                                           NULL) != TARN_OK) {
        return false;
    }
    location = places_plain(location);
    if (!str_find_last_char(location, '/', &slash) || slash == 0) {
        return false;
    }
    *out = places_plain(str_sub(location, 0, slash));
    return true;
}

tarn_code homes_places(service_request *r, const tarn_ident *ident, service_places *out,
                       tarn_error *err) {
    *out = r->service->places;
    if (is_everywhere(r)) {
        return TARN_OK;
    }
    tarn_str *roots = ARENA_ARRAY(&r->arena, tarn_str, (size_t)r->caller->n_grants + 1);
    if (roots == NULL) {
        return err_nomem(err);
    }
    out->roots = roots;
    out->n = 0;
    /* a namespace's own location must not widen what it is held against */
    if (ident->name.len > 0 && home_of(r, ident->n_levels, ident->levels, &roots[0])) {
        out->n++;
    }
    for (int32_t i = 0; i < r->caller->n_grants; i++) {
        const auth_grant *g = &r->caller->grants[i];
        if (g->role >= AUTH_WRITE && home_of(r, g->n_levels, g->levels, &roots[out->n])) {
            out->n++;
        }
    }
    return TARN_OK;
}

/* One place by two names could not be told from two. */
static bool has_empty_part(tarn_str location) {
    tarn_str path = places_plain(location);
    for (size_t i = 1; i + 1 < path.len; i++) {
        if (path.data[i] == '/' && path.data[i + 1] == '/' && path.data[i - 1] != ':') {
            return true;
        }
    }
    return path.len > 1 && path.data[0] == '/' && path.data[1] == '/';
}

static tarn_code allow_place(service_request *r, const tarn_ident *ident, tarn_str location,
                             service_places *places, tarn_error *err) {
    tarn_code code = homes_places(r, ident, places, err);
    if (code == TARN_OK && has_empty_part(location)) {
        return err_set(err, TARN_DENIED, "location \"%.*s\" has an empty part", STR_ARG(location));
    }
    code = code == TARN_OK ? places_allow(places, location, err) : code;
    if (code == TARN_DENIED && !is_everywhere(r) && !places_climbs(location)) {
        code = err_set(err, code,
                       "location \"%.*s\" lies outside the folders of the namespaces that the "
                       "caller may write",
                       STR_ARG(location));
    }
    return code;
}

static bool same_ident(const tarn_ident *a, const tarn_ident *b) {
    bool same = a->n_levels == b->n_levels && str_eq(a->name, b->name);
    for (int32_t i = 0; same && i < a->n_levels; i++) {
        same = str_eq(a->levels[i], b->levels[i]);
    }
    return same;
}

/* The names of folders from the warehouse's down to the place; 0: it does not lie there. */
static int32_t parts_of(const service_request *r, tarn_str path, tarn_str *out) {
    tarn_str warehouse = r->service->places.warehouse;
    int32_t n = 0;
    if (warehouse.len == 0 || !places_is_below(warehouse, path) || path.len == warehouse.len) {
        return 0;
    }
    path = str_from(path, warehouse.len + 1);
    while (n < MAX_PARTS && path.len > 0 && str_split(&path, '/', &out[n])) {
        n += out[n].len > 0;
    }
    return n;
}

static bool is_absent(tarn_code code) {
    return code == TARN_NOT_FOUND || code == TARN_INVALID || code == TARN_UNSUPPORTED;
}

static tarn_code check_table(service_request *r, const tarn_ident *other, tarn_str location,
                             tarn_error *err) {
    tarn_table_version *version = NULL;
    tarn_code code = catalog_load(r->service->catalog, other, &version, err);
    if (is_absent(code)) {
        err_reset(err);
        return TARN_OK;
    }
    if (code == TARN_OK &&
        places_is_below(places_plain(version->metadata->location), places_plain(location))) {
        code = err_set(err, TARN_DENIED, "location \"%.*s\" is the place of table %s",
                       STR_ARG(location), rest_ident_text(r, other));
    }
    table_version_release(version);
    return code;
}

tarn_code homes_check_tables(service_request *r, const tarn_ident *ident, tarn_str location,
                             tarn_error *err) {
    tarn_str parts[MAX_PARTS];
    int32_t n = parts_of(r, places_plain(location), parts);
    tarn_code code = TARN_OK;
    for (int32_t k = 1; k < n && code == TARN_OK; k++) {
        const tarn_ident other = {k, parts, parts[k]};
        if (!same_ident(&other, ident)) {
            code = check_table(r, &other, location, err);
        }
    }
    return code;
}

/* A folder that tables are put in. */
static tarn_code check_namespaces(service_request *r, const tarn_ident *ident,
                                  const service_places *places, tarn_str location,
                                  tarn_error *err) {
    tarn_str parts[MAX_PARTS];
    tarn_str path = places_plain(location);
    tarn_str home;
    tarn_properties unused;
    bool is_one = path.len > 0 && str_eq(path, r->service->places.warehouse);
    for (int32_t i = 0; i < places->n && !is_everywhere(r); i++) {
        is_one = is_one || str_eq(path, places->roots[i]);
    }
    is_one = is_one ||
             (home_of(r, ident->n_levels, ident->levels, &home) && places_is_below(path, home));
    int32_t n = is_one ? 0 : parts_of(r, path, parts);
    if (n > 0) {
        const tarn_ident other = {n, parts, STR("")};
        tarn_code code =
            catalog_load_namespace(r->service->catalog, &r->arena, &other, &unused, err);
        if (code != TARN_OK && !is_absent(code)) {
            return code;
        }
        is_one = code == TARN_OK;
        err_reset(err);
    }
    return is_one ? err_set(err, TARN_DENIED,
                            "location \"%.*s\" is a folder of namespaces, not one in it",
                            STR_ARG(location))
                  : TARN_OK;
}

static tarn_code check_chars(tarn_str location, tarn_error *err) {
    size_t part = 0;
    for (size_t i = 0; i < location.len; i++) {
        part = location.data[i] == '/' ? 0 : part + 1;
        if (part > LONGEST_PART) {
            return err_set(err, TARN_INVALID, "a part of location \"%.*s\" has more than %d bytes",
                           STR_ARG(location), LONGEST_PART);
        }
        if ((unsigned char)location.data[i] < ' ' || location.data[i] == 0x7f) {
            return err_set(err, TARN_INVALID, "location \"%.*s\" has a control character",
                           STR_ARG(location));
        }
    }
    return location.len <= HOMES_LONGEST
               ? TARN_OK
               : err_set(err, TARN_INVALID, "a location has %zu bytes, and %d are the most",
                         location.len, HOMES_LONGEST);
}

/* Its own from the start, also where the folder has another table's or namespace's name; but not
 * where a table keeps its files, whose folder is the namespace's. */
static bool is_default(service_request *r, const tarn_ident *ident, tarn_str location) {
    tarn_str own;
    return ident->name.len > 0 &&
           catalog_default_location(r->service->catalog, &r->arena, ident, &own, NULL) == TARN_OK &&
           str_eq(places_plain(own), places_plain(location));
}

tarn_code homes_allow_default(service_request *r, const tarn_ident *ident, tarn_error *err) {
    tarn_str own;
    tarn_code code = catalog_default_location(r->service->catalog, &r->arena, ident, &own, err);
    if (code == TARN_UNSUPPORTED) { /* a catalog that answers for its places itself */
        err_reset(err);
        return TARN_OK;
    }
    TRY(code);
    TRY(check_chars(own, err));
    if (str_is(ident->name, "data") || str_is(ident->name, "metadata")) {
        TRY(homes_check_tables(r, ident, own, err));
    }
done:
    return code;
}

tarn_code homes_allow(service_request *r, const tarn_ident *ident, tarn_str location,
                      tarn_error *err) {
    service_places places;
    tarn_code code = TARN_OK;
    TRY(check_chars(location, err));
    if (is_default(r, ident, location)) {
        TRY(homes_allow_default(r, ident, err));
        goto done;
    }
    TRY(allow_place(r, ident, location, &places, err));
    if (ident->name.len > 0) {
        TRY(check_namespaces(r, ident, &places, location, err));
    }
    TRY(homes_check_tables(r, ident, location, err));
done:
    return code;
}

tarn_code homes_allow_properties(service_request *r, const tarn_ident *ident,
                                 const tarn_properties *properties, tarn_error *err) {
    static const char *const KEYS[] = {"location", "write.data.path", "write.metadata.path",
                                       "write.object-storage.path", "write.folder-storage.path"};
    for (int32_t i = 0; i < properties->count; i++) { /* what reads them as text would end there */
        const tarn_property *p = &properties->items[i];
        if ((p->key.len > 0 && memchr(p->key.data, '\0', p->key.len) != NULL) ||
            (p->value.len > 0 && memchr(p->value.data, '\0', p->value.len) != NULL)) {
            return err_set(err, TARN_INVALID, "property \"%.*s\" has a NUL in it", STR_ARG(p->key));
        }
    }
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        tarn_str place;
        if (properties_get(properties, KEYS[i], &place)) {
            tarn_code code = homes_allow(r, ident, place, err);
            if (code != TARN_OK) {
                return err_add(err, code, "property %s", KEYS[i]);
            }
        }
    }
    return TARN_OK;
}

/* Where the table is already it may stay. */
static tarn_code allow_move(service_request *r, const tarn_ident *table, tarn_str location,
                            tarn_error *err) {
    tarn_table_version *now = NULL;
    tarn_code code = homes_allow(r, table, location, err);
    if (code == TARN_DENIED && catalog_load(r->service->catalog, table, &now, NULL) == TARN_OK &&
        str_eq(places_plain(now->metadata->location), places_plain(location))) {
        err_reset(err);
        code = TARN_OK;
    }
    table_version_release(now);
    return code;
}

tarn_code homes_allow_changes(service_request *r, const tarn_ident *table,
                              const tarn_change_set *set, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < set->n_changes && code == TARN_OK; i++) {
        const tarn_change *c = &set->changes[i];
        if (c->kind == CHANGE_SET_LOCATION) {
            code = allow_move(r, table, c->text, err);
        } else if (c->kind == CHANGE_SET_PROPERTIES) {
            code = homes_allow_properties(r, table, &c->properties, err);
        }
    }
    return code;
}

tarn_code homes_allow_view(service_request *r, const tarn_ident *view, const view_change_set *set,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < set->n_changes && code == TARN_OK; i++) {
        if (set->changes[i].kind == VIEW_SET_LOCATION) {
            code = homes_allow(r, view, set->changes[i].text, err);
        } else if (set->changes[i].kind == VIEW_SET_PROPERTIES) {
            code = homes_allow_properties(r, view, &set->changes[i].properties, err);
        }
    }
    return code;
}

static tarn_code allow_file(service_request *r, const tarn_ident *ident, tarn_str location,
                            tarn_error *err) {
    service_places places;
    tarn_code code = TARN_OK;
    TRY(check_chars(location, err));
    TRY(allow_place(r, ident, location, &places, err));
done:
    return code;
}

/* Who may write everything may give a table another name beside the one it has. */
static tarn_code allow_found(service_request *r, const tarn_ident *ident, tarn_str location,
                             const tarn_properties *properties, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (is_everywhere(r)) {
        TRY(places_allow(&r->service->places, location, err));
    } else {
        TRY(homes_allow(r, ident, location, err));
        TRY(homes_allow_properties(r, ident, properties, err));
    }
done:
    return code;
}

tarn_code homes_allow_register(service_request *r, const tarn_ident *table, tarn_str location,
                               tarn_error *err) {
    tarn_table_version *found = NULL;
    tarn_code code = TARN_OK;
    TRY(allow_file(r, table, location, err));
    TRY(rest_as_named(
        catalog_read_version(r->service->env, r->service->catalog->store, location, &found, err),
        err));
    TRY(allow_found(r, table, found->metadata->location, &found->metadata->properties, err));
done:
    table_version_release(found);
    return code;
}

tarn_code homes_allow_register_view(service_request *r, const tarn_ident *view, tarn_str location,
                                    tarn_error *err) {
    catalog_view *found = NULL;
    tarn_code code = TARN_OK;
    TRY(allow_file(r, view, location, err));
    TRY(rest_as_named(
        catalog_read_view(r->service->env, r->service->catalog->store, location, &found, err),
        err));
    TRY(allow_found(r, view, found->metadata->location, &found->metadata->properties, err));
done:
    catalog_view_release(found);
    return code;
}
