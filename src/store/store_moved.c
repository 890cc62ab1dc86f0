/* store/store_moved.c - a store that finds paths below one place at another: the metadata of a
 * table that was copied names its old paths, and stays as it is. Paths elsewhere pass unchanged.
 * Listings give paths in the spelling that was asked for. */
#include "store/store.h"

typedef struct moved_store {
    tarn_store base;
    tarn_store *inner;
    tarn_str from, to; /* behind this struct; without slashes at their ends */
} moved_store;

typedef struct moved_list {
    tarn_buf path;
    tarn_str asked;   /* the prefix as the caller spelled it */
    size_t inner_len; /* bytes of the prefix that inner was asked for */
    store_list_fn fn;
    void *ctx;
} moved_list;

/* path as inner knows it: into buf when it is moved, else path itself. */
static tarn_code map_path(const moved_store *self, tarn_str path, tarn_buf *buf, tarn_str *out,
                          tarn_error *err) {
    tarn_str rest;
    if (!store_path_below(self->from, path, &rest)) {
        *out = path;
        return TARN_OK;
    }
    tarn_code code = buf_append_str(buf, self->to, err);
    if (code == TARN_OK) {
        code = buf_append_str(buf, rest, err);
    }
    if (code == TARN_OK) {
        *out = buf_str(buf);
    }
    return code;
}

static unsigned moved_traits(tarn_store *store) {
    return store_traits_of(((moved_store *)store)->inner) & ~(unsigned)STORE_LOCAL;
}

static tarn_code moved_open(tarn_store *store, tarn_str path, int64_t size_hint, io_source **out,
                            tarn_error *err) {
    const moved_store *self = (const moved_store *)store;
    tarn_buf buf;
    buf_init(&buf, store->env, 0);
    tarn_code code = map_path(self, path, &buf, &path, err);
    if (code == TARN_OK) {
        code = self->inner->vt->open(self->inner, path, size_hint, out, err);
    }
    buf_release(&buf);
    return code;
}

static tarn_code moved_create(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                              tarn_error *err) {
    const moved_store *self = (const moved_store *)store;
    tarn_buf buf;
    buf_init(&buf, store->env, 0);
    tarn_code code = map_path(self, path, &buf, &path, err);
    if (code == TARN_OK) {
        code = self->inner->vt->create(self->inner, path, mode, out, err);
    }
    buf_release(&buf);
    return code;
}

static tarn_code moved_stat(tarn_store *store, tarn_str path, store_stat_info *out,
                            tarn_error *err) {
    const moved_store *self = (const moved_store *)store;
    tarn_buf buf;
    buf_init(&buf, store->env, 0);
    tarn_code code = map_path(self, path, &buf, &path, err);
    if (code == TARN_OK) {
        code = self->inner->vt->stat(self->inner, path, out, err);
    }
    buf_release(&buf);
    return code;
}

static tarn_code moved_remove(tarn_store *store, tarn_str path, tarn_error *err) {
    const moved_store *self = (const moved_store *)store;
    tarn_buf buf;
    buf_init(&buf, store->env, 0);
    tarn_code code = map_path(self, path, &buf, &path, err);
    if (code == TARN_OK) {
        code = self->inner->vt->remove(self->inner, path, err);
    }
    buf_release(&buf);
    return code;
}

static tarn_code give_path(void *ctx, tarn_str path, const store_stat_info *info, tarn_error *err) {
    moved_list *list = ctx;
    tarn_code code;
    buf_reset(&list->path);
    TRY(buf_append_str(&list->path, list->asked, err));
    TRY(buf_append_str(&list->path, str_from(path, list->inner_len), err));
    code = list->fn(list->ctx, buf_str(&list->path), info, err);
done:
    return code;
}

static tarn_str trim_slashes(tarn_str s) {
    while (s.len > 0 && s.data[s.len - 1] == '/') {
        s.len--;
    }
    return s;
}

static tarn_code moved_list_below(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                                  tarn_error *err) {
    const moved_store *self = (const moved_store *)store;
    moved_list list = {.fn = fn, .ctx = ctx};
    tarn_buf buf;
    tarn_str mapped;
    tarn_code code;
    buf_init(&buf, store->env, 0);
    buf_init(&list.path, store->env, 0);
    TRY(map_path(self, trim_slashes(prefix), &buf, &mapped, err));
    if (buf.len == 0) {
        code = self->inner->vt->list(self->inner, prefix, fn, ctx, err);
        goto done;
    }
    list.asked = trim_slashes(prefix);
    list.inner_len = mapped.len;
    code = self->inner->vt->list(self->inner, mapped, give_path, &list, err);
done:
    buf_release(&list.path);
    buf_release(&buf);
    return code;
}

static tarn_code moved_list_folder(tarn_store *store, tarn_str folder, store_folder_fn fn,
                                   void *ctx, tarn_error *err) {
    const moved_store *self = (const moved_store *)store;
    tarn_buf buf;
    buf_init(&buf, store->env, 0);
    tarn_code code = map_path(self, folder, &buf, &folder, err);
    if (code == TARN_OK) {
        code = self->inner->vt->list_folder(self->inner, folder, fn, ctx, err);
    }
    buf_release(&buf);
    return code;
}

static tarn_code moved_make_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    const moved_store *self = (const moved_store *)store;
    tarn_buf buf;
    buf_init(&buf, store->env, 0);
    tarn_code code = map_path(self, folder, &buf, &folder, err);
    if (code == TARN_OK) {
        code = self->inner->vt->make_folder(self->inner, folder, err);
    }
    buf_release(&buf);
    return code;
}

static tarn_code moved_sync(tarn_store *store, tarn_error *err) {
    return store_sync(((moved_store *)store)->inner, err);
}

static tarn_code moved_remove_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    const moved_store *self = (const moved_store *)store;
    tarn_buf buf;
    buf_init(&buf, store->env, 0);
    tarn_code code = map_path(self, folder, &buf, &folder, err);
    if (code == TARN_OK) {
        code = self->inner->vt->remove_folder(self->inner, folder, err);
    }
    buf_release(&buf);
    return code;
}

static void moved_close(tarn_store *store) {
    moved_store *self = (moved_store *)store;
    store_close(self->inner);
    env_free(store->env, self);
}

static const store_vtable MOVED_VTABLE = {
    .name = "moved",
    .traits = moved_traits,
    .open = moved_open,
    .create = moved_create,
    .stat = moved_stat,
    .remove = moved_remove,
    .list = moved_list_below,
    .list_folder = moved_list_folder,
    .make_folder = moved_make_folder,
    .remove_folder = moved_remove_folder,
    .sync = moved_sync,
    .close = moved_close,
};

tarn_code store_moved_new(tarn_store *inner, tarn_str from, tarn_str to, tarn_store **out,
                          tarn_error *err) {
    from = trim_slashes(from);
    to = trim_slashes(to);
    if (from.len == 0 || to.len == 0) {
        return err_set(err, TARN_INVALID, "a moved prefix needs two non-empty paths");
    }
    moved_store *self = env_calloc(inner->env, 1, sizeof *self + from.len + to.len);
    if (self == NULL) {
        return err_nomem(err);
    }
    char *text = (char *)(self + 1);
    memcpy(text, from.data, from.len);
    memcpy(text + from.len, to.data, to.len);
    self->base = (tarn_store){&MOVED_VTABLE, inner->env};
    self->inner = inner;
    self->from = str_make(text, from.len);
    self->to = str_make(text + from.len, to.len);
    *out = &self->base;
    return TARN_OK;
}
