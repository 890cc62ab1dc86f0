/* store/store.c - the face of every store: argument checks, cancellation, whole small objects, and
 * what a location's text says (scheme, local path). Nothing here touches a disk; the vtables do.
 *
 * Invariant: the bytes of a path are literal. Only a scheme in front of it is ever looked at. */
#include "store/store.h"

#include "base/limits.h"

unsigned store_traits_of(tarn_store *store) {
    return store->vt->traits(store);
}

static tarn_code check_name(tarn_store *store, tarn_str path, tarn_error *err) {
    if (path.len == 0) {
        return err_set(err, TARN_INVALID, "path for store %s was empty", store->vt->name);
    }
    if (path.len > LIMIT_PATH_BYTES) {
        return err_set(err, TARN_LIMIT, "path of %zu bytes was longer than %d: %.*s", path.len,
                       LIMIT_PATH_BYTES, STR_ARG(path));
    }
    if (memchr(path.data, 0, path.len) != NULL) {
        return err_set(err, TARN_INVALID, "path held a zero byte: %.*s", STR_ARG(path));
    }
    return TARN_OK;
}

static tarn_code check_path(tarn_store *store, tarn_str path, tarn_error *err) {
    tarn_code code = check_name(store, path, err);
    return code != TARN_OK ? code : env_check_cancel(store->env, err);
}

tarn_code store_open(tarn_store *store, tarn_str path, int64_t size_hint, io_source **out,
                     tarn_error *err) {
    tarn_code code = check_path(store, path, err);
    return code != TARN_OK ? code : store->vt->open(store, path, size_hint, out, err);
}

tarn_code store_create(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                       tarn_error *err) {
    tarn_code code = check_path(store, path, err);
    return code != TARN_OK ? code : store->vt->create(store, path, mode, out, err);
}

tarn_code store_stat(tarn_store *store, tarn_str path, store_stat_info *out, tarn_error *err) {
    tarn_code code = check_path(store, path, err);
    return code != TARN_OK ? code : store->vt->stat(store, path, out, err);
}

tarn_code store_remove(tarn_store *store, tarn_str path, tarn_error *err) {
    tarn_code code = check_name(store, path, err);
    return code != TARN_OK ? code : store->vt->remove(store, path, err);
}

tarn_code store_list(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                     tarn_error *err) {
    tarn_code code = check_path(store, prefix, err);
    return code != TARN_OK ? code : store->vt->list(store, prefix, fn, ctx, err);
}

tarn_code store_list_folder(tarn_store *store, tarn_str folder, store_folder_fn fn, void *ctx,
                            tarn_error *err) {
    tarn_code code = check_path(store, folder, err);
    return code != TARN_OK ? code : store->vt->list_folder(store, folder, fn, ctx, err);
}

tarn_code store_make_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    tarn_code code = check_path(store, folder, err);
    return code != TARN_OK ? code : store->vt->make_folder(store, folder, err);
}

tarn_code store_sync(tarn_store *store, tarn_error *err) {
    return store->vt->sync != NULL ? store->vt->sync(store, err) : TARN_OK;
}

tarn_code store_remove_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    tarn_code code = check_name(store, folder, err);
    return code != TARN_OK ? code : store->vt->remove_folder(store, folder, err);
}

void store_close(tarn_store *store) {
    if (store != NULL) {
        store->vt->close(store);
    }
}

tarn_code store_put(tarn_store *store, tarn_str path, store_mode mode, tarn_str bytes,
                    tarn_error *err) {
    io_sink *sink = NULL;
    tarn_code code;
    TRY(store_create(store, path, mode, &sink, err));
    TRY(io_write(sink, bytes.data, bytes.len, err));
    code = sink->finish(sink, err);
    sink = NULL;
done:
    if (sink != NULL) {
        sink->abort(sink);
    }
    return code;
}

tarn_code store_get(tarn_store *store, tarn_str path, size_t max_bytes, tarn_buf *out,
                    tarn_error *err) {
    io_source *source = NULL;
    tarn_code code;
    TRY(store_open(store, path, -1, &source, err));
    if (source->size_bytes < 0 || (uint64_t)source->size_bytes > max_bytes) {
        code = err_set(err, TARN_LIMIT, "object %.*s of %lld bytes was larger than %zu",
                       STR_ARG(path), (long long)source->size_bytes, max_bytes);
        goto done;
    }
    code = io_read_all(source, out, err);
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

bool store_exists(tarn_store *store, tarn_str path) {
    store_stat_info info;
    return store_stat(store, path, &info, NULL) == TARN_OK;
}

static void log_orphan(tarn_store *store, tarn_code code, const tarn_error *err) {
    if (code != TARN_OK && code != TARN_NOT_FOUND && code != TARN_CONFLICT) {
        env_log(store->env, TARN_LOG_WARN, "store", "orphan", "%s", err->message);
    }
}

void store_discard(tarn_store *store, tarn_str path) {
    tarn_error err = TARN_ERROR_INIT;
    log_orphan(store, store_remove(store, path, &err), &err);
}

void store_discard_folder(tarn_store *store, tarn_str folder) {
    tarn_error err = TARN_ERROR_INIT;
    log_orphan(store, store_remove_folder(store, folder, &err), &err);
}

static bool is_scheme_char(char c, bool first) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    return letter || (!first && other);
}

/* "file:" stands alone; any other scheme needs a slash after its colon and two letters, so that
 * plain paths with a colon stay plain paths. */
tarn_str store_scheme(tarn_str location) {
    size_t i = 0;
    while (i < location.len && is_scheme_char(location.data[i], i == 0)) {
        i++;
    }
    if (i < 2 || i >= location.len || location.data[i] != ':') {
        return STR_NULL;
    }
    tarn_str scheme = str_sub(location, 0, i);
    if (str_eq_nocase(scheme, STR("file")) ||
        (i + 1 < location.len && location.data[i + 1] == '/')) {
        return scheme;
    }
    return STR_NULL;
}

bool store_local_path(tarn_str location, tarn_str *path) {
    tarn_str scheme = store_scheme(location);
    if (scheme.len == 0) {
        *path = location;
        return true;
    }
    if (!str_eq_nocase(scheme, STR("file"))) {
        return false;
    }
    tarn_str rest = str_from(location, scheme.len + 1);
    if (!str_starts_with(rest, STR("//"))) {
        *path = rest;
        return true;
    }
    rest = str_from(rest, 2);
    if (str_starts_with(rest, STR("localhost/"))) {
        rest = str_from(rest, 9);
    }
    if (rest.len == 0 || rest.data[0] != '/') {
        return false; /* another machine's file */
    }
    *path = rest;
    return true;
}

static bool is_s3(tarn_str scheme) {
    return str_eq_nocase(scheme, STR("s3")) || str_eq_nocase(scheme, STR("s3a")) ||
           str_eq_nocase(scheme, STR("s3n"));
}

/* The part of a location that is compared, when the schemes of both say that it may be. */
static bool comparable(tarn_str a, tarn_str b, tarn_str *rest_a, tarn_str *rest_b) {
    if (store_local_path(a, rest_a)) {
        return store_local_path(b, rest_b);
    }
    tarn_str scheme_a = store_scheme(a);
    tarn_str scheme_b = store_scheme(b);
    *rest_a = str_from(a, scheme_a.len);
    *rest_b = str_from(b, scheme_b.len);
    return str_eq_nocase(scheme_a, scheme_b) || (is_s3(scheme_a) && is_s3(scheme_b));
}

bool store_path_below(tarn_str base, tarn_str path, tarn_str *rest) {
    tarn_str base_path;
    tarn_str full;
    if (!comparable(base, path, &base_path, &full)) {
        return false;
    }
    while (base_path.len > 0 && base_path.data[base_path.len - 1] == '/') {
        base_path.len--;
    }
    if (!str_starts_with(full, base_path)) {
        return false;
    }
    tarn_str tail = str_from(full, base_path.len);
    if (tail.len > 0 && tail.data[0] != '/') {
        return false;
    }
    if (rest != NULL) {
        *rest = tail;
    }
    return true;
}

tarn_code store_for_location(tarn_env *env, tarn_str location, tarn_store **out, tarn_error *err) {
    tarn_str path;
    if (!store_local_path(location, &path)) {
        tarn_str scheme = store_scheme(location);
        if (str_eq_nocase(scheme, STR("file"))) {
            return err_set(err, TARN_UNSUPPORTED, "location %.*s named another machine",
                           STR_ARG(location));
        }
        return err_set(err, TARN_UNSUPPORTED, "scheme %.*s of location %.*s has no store",
                       STR_ARG(scheme), STR_ARG(location));
    }
    return store_file_new(env, true, out, err);
}

char *store_join(tarn_arena *arena, tarn_str base, tarn_str rest) {
    while (base.len > 0 && base.data[base.len - 1] == '/') {
        base.len--;
    }
    while (rest.len > 0 && rest.data[0] == '/') {
        rest = str_from(rest, 1);
    }
    char *joined = arena_alloc(arena, base.len + rest.len + 2);
    if (joined == NULL) {
        return NULL;
    }
    if (base.len > 0) {
        memcpy(joined, base.data, base.len);
    }
    joined[base.len] = '/';
    if (rest.len > 0) {
        memcpy(joined + base.len + 1, rest.data, rest.len);
    }
    joined[base.len + rest.len + 1] = 0;
    return joined;
}
