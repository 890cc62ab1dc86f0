/* store/store_memory.c - a store in memory with all traits, for tests and for short-lived tables.
 *
 * Objects are an array sorted by path, so that a listing is a range. An object is immutable and
 * counted: sources that are open keep it when it is removed or replaced. A folder that was made is
 * an empty object whose path ends with a slash; other objects' paths never do. */
#include "store/store.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct memory_object {
    int64_t refs; /* atomic */
    int64_t modified_ms;
    tarn_buf bytes;
    tarn_str path; /* behind this struct */
} memory_object;

typedef struct memory_store {
    tarn_store base;
    pthread_mutex_t lock;
    memory_object **objects; /* guarded by lock */
    size_t count, cap;       /* guarded by lock */
} memory_store;

typedef struct memory_source {
    io_source base;
    memory_object *object;
} memory_source;

typedef struct memory_sink {
    io_sink base;
    memory_store *store;
    store_mode mode;
    bool failed;
    memory_object *object;
} memory_sink;

static void release_object(memory_object *object) {
    if (__atomic_sub_fetch(&object->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        tarn_env *env = object->bytes.env;
        buf_release(&object->bytes);
        env_free(env, object);
    }
}

static memory_object *keep_object(memory_object *object) {
    (void)__atomic_add_fetch(&object->refs, 1, __ATOMIC_RELAXED);
    return object;
}

/* Index of the first object whose path is not before this one. */
static size_t lower_bound(const memory_store *self, tarn_str path, bool *found) {
    size_t low = 0;
    size_t high = self->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(self->objects[middle]->path, path) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *found = low < self->count && str_eq(self->objects[low]->path, path);
    return low;
}

/* The object of this path with one more reference, or NULL. */
static memory_object *take_object(memory_store *self, tarn_str path) {
    bool found;
    (void)pthread_mutex_lock(&self->lock);
    size_t at = lower_bound(self, path, &found);
    memory_object *object = found ? keep_object(self->objects[at]) : NULL;
    (void)pthread_mutex_unlock(&self->lock);
    return object;
}

static tarn_code not_found(tarn_str path, tarn_error *err) {
    return err_set(err, TARN_NOT_FOUND, "object %.*s was not in memory", STR_ARG(path));
}

static unsigned memory_traits(tarn_store *store) {
    (void)store;
    return STORE_ATOMIC_CREATE | STORE_CONDITIONAL_PUT | STORE_LIST_CONSISTENT | STORE_DURABLE |
           STORE_SETTLED;
}

static tarn_code source_check(const io_source *source, int64_t offset, size_t len,
                              tarn_error *err) {
    if (offset < 0 || offset > source->size_bytes ||
        len > (uint64_t)(source->size_bytes - offset)) {
        return err_set(err, TARN_CORRUPT, "object %s of %lld bytes ended before offset %lld + %zu",
                       source->name, (long long)source->size_bytes, (long long)offset, len);
    }
    return TARN_OK;
}

static tarn_code source_read_at(io_source *source, int64_t offset, void *dst, size_t len,
                                tarn_error *err) {
    const memory_source *self = (const memory_source *)source;
    tarn_code code = source_check(source, offset, len, err);
    if (code == TARN_OK && len > 0) {
        memcpy(dst, self->object->bytes.data + offset, len);
    }
    return code;
}

static const uint8_t *source_peek(io_source *source, int64_t offset, size_t len) {
    const memory_source *self = (const memory_source *)source;
    if (source_check(source, offset, len, NULL) != TARN_OK || self->object->bytes.data == NULL) {
        return NULL;
    }
    return self->object->bytes.data + offset;
}

static void source_close(io_source *source) {
    memory_source *self = (memory_source *)source;
    release_object(self->object);
    env_free(source->env, self);
}

static tarn_code memory_open(tarn_store *store, tarn_str path, int64_t size_hint, io_source **out,
                             tarn_error *err) {
    (void)size_hint;
    memory_object *object = take_object((memory_store *)store, path);
    if (object == NULL) {
        return not_found(path, err);
    }
    memory_source *self = env_calloc(store->env, 1, sizeof *self);
    if (self == NULL) {
        release_object(object);
        return err_nomem(err);
    }
    self->object = object;
    self->base = (io_source){store->env,     object->path.data, (int64_t)object->bytes.len,
                             source_read_at, source_peek,       source_close};
    *out = &self->base;
    return TARN_OK;
}

static tarn_code sink_write(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    memory_sink *self = (memory_sink *)sink;
    tarn_code code =
        self->failed ? err_set(err, TARN_IO, "an earlier write of object %s had failed", sink->name)
                     : buf_append(&self->object->bytes, data, len, err);
    self->failed = code != TARN_OK;
    return code;
}

static void sink_abort(io_sink *sink) {
    memory_sink *self = (memory_sink *)sink;
    release_object(self->object);
    env_free(sink->env, self);
}

/* Puts object into the map; *replaced is what was there. Called under the lock. */
static tarn_code insert_object(memory_store *self, memory_object *object, store_mode mode,
                               memory_object **replaced, tarn_error *err) {
    bool found;
    size_t at = lower_bound(self, object->path, &found);
    if (found && mode != STORE_REPLACE && mode != STORE_REPLACE_LATER) {
        return err_set(err, TARN_CONFLICT, "object %.*s was already there", STR_ARG(object->path));
    }
    if (found) {
        *replaced = self->objects[at];
        self->objects[at] = object;
        return TARN_OK;
    }
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 64 : self->cap * 2;
        memory_object **grown =
            (memory_object **)env_realloc(self->base.env, self->objects, cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        self->objects = grown;
        self->cap = cap;
    }
    memmove(self->objects + at + 1, self->objects + at, (self->count - at) * sizeof *self->objects);
    self->objects[at] = object;
    self->count++;
    return TARN_OK;
}

static tarn_code sink_finish(io_sink *sink, tarn_error *err) {
    memory_sink *self = (memory_sink *)sink;
    memory_store *store = self->store;
    memory_object *replaced = NULL;
    tarn_code code;
    if (self->failed) {
        code = err_set(err, TARN_IO, "an earlier write of object %s had failed", sink->name);
        goto done;
    }
    self->object->modified_ms = env_now_ms(sink->env);
    (void)pthread_mutex_lock(&store->lock);
    code = insert_object(store, self->object, self->mode, &replaced, err);
    (void)pthread_mutex_unlock(&store->lock);
    if (code == TARN_OK) {
        self->object = NULL;
    }
done:
    if (self->object != NULL) {
        release_object(self->object);
    }
    if (replaced != NULL) {
        release_object(replaced);
    }
    env_free(sink->env, self);
    return code;
}

static bool is_folder_path(tarn_str path) {
    return path.len > 0 && path.data[path.len - 1] == '/';
}

static tarn_code make_sink(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                           tarn_error *err) {
    tarn_env *env = store->env;
    memory_object *object = env_calloc(env, 1, sizeof *object + path.len + 1);
    memory_sink *self = env_calloc(env, 1, sizeof *self);
    if (object == NULL || self == NULL) {
        env_free(env, object);
        env_free(env, self);
        return err_nomem(err);
    }
    char *name = (char *)(object + 1);
    memcpy(name, path.data, path.len);
    object->path = str_make(name, path.len);
    object->refs = 1;
    buf_init(&object->bytes, env, 0);
    self->store = (memory_store *)store;
    self->mode = mode;
    self->object = object;
    self->base = (io_sink){env, name, 0, sink_write, sink_finish, sink_abort};
    *out = &self->base;
    return TARN_OK;
}

static tarn_code memory_create(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                               tarn_error *err) {
    if (is_folder_path(path)) {
        return err_set(err, TARN_INVALID, "path %.*s named a folder", STR_ARG(path));
    }
    return make_sink(store, path, mode, out, err);
}

static tarn_code memory_stat(tarn_store *store, tarn_str path, store_stat_info *out,
                             tarn_error *err) {
    memory_object *object = take_object((memory_store *)store, path);
    if (object == NULL) {
        return not_found(path, err);
    }
    *out = (store_stat_info){(int64_t)object->bytes.len, object->modified_ms};
    release_object(object);
    return TARN_OK;
}

static tarn_code memory_remove(tarn_store *store, tarn_str path, tarn_error *err) {
    memory_store *self = (memory_store *)store;
    memory_object *removed = NULL;
    bool found;
    (void)pthread_mutex_lock(&self->lock);
    size_t at = lower_bound(self, path, &found);
    if (found) {
        removed = self->objects[at];
        self->count--;
        memmove(self->objects + at, self->objects + at + 1,
                (self->count - at) * sizeof *self->objects);
    }
    (void)pthread_mutex_unlock(&self->lock);
    if (removed == NULL) {
        return not_found(path, err);
    }
    release_object(removed);
    return TARN_OK;
}

/* References to all objects below the folder prefix, in the order of their paths. */
static tarn_code take_range(memory_store *self, tarn_str prefix, tarn_arena *arena,
                            memory_object ***out, size_t *n, tarn_error *err) {
    bool found;
    size_t taken = 0;
    tarn_code code = TARN_OK;
    (void)pthread_mutex_lock(&self->lock);
    size_t first = lower_bound(self, prefix, &found);
    size_t last = first;
    while (last < self->count && str_starts_with(self->objects[last]->path, prefix)) {
        last++;
    }
    memory_object **range =
        (memory_object **)arena_alloc(arena, (last - first) * sizeof(memory_object *));
    if (range == NULL) {
        code = err_nomem(err);
    }
    for (size_t i = first; i < last && range != NULL; i++) {
        range[taken++] = keep_object(self->objects[i]);
    }
    (void)pthread_mutex_unlock(&self->lock);
    *out = range;
    *n = taken;
    return code;
}

/* path with exactly one slash at its end. */
static tarn_code folder_path(tarn_arena *arena, tarn_str path, tarn_str *out, tarn_error *err) {
    const char *joined = store_join(arena, path, STR_NULL);
    if (joined == NULL) {
        return err_nomem(err);
    }
    *out = str_of(joined);
    return TARN_OK;
}

static tarn_code memory_list(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                             tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, store->env);
    memory_object **range = NULL;
    tarn_str folder;
    size_t n = 0;
    tarn_code code;
    TRY(folder_path(&arena, prefix, &folder, err));
    TRY(take_range((memory_store *)store, folder, &arena, &range, &n, err));
    for (size_t i = 0; i < n; i++) {
        store_stat_info info = {(int64_t)range[i]->bytes.len, range[i]->modified_ms};
        if (!is_folder_path(range[i]->path)) {
            TRY(fn(ctx, range[i]->path, &info, err));
        }
    }
done:
    for (size_t i = 0; i < n; i++) {
        release_object(range[i]);
    }
    arena_release(&arena);
    return code;
}

typedef struct folder_entry {
    tarn_str name;
    bool is_folder;
    store_stat_info info;
} folder_entry;

static int compare_entries(const void *a, const void *b) {
    const folder_entry *x = a;
    const folder_entry *y = b;
    int order = str_cmp(x->name, y->name);
    return order != 0 ? order : (int)x->is_folder - (int)y->is_folder;
}

/* What one object below folder says of the folder's own names; false: it is the folder itself. */
static bool entry_of(const memory_object *object, tarn_str folder, folder_entry *out) {
    size_t slash;
    tarn_str rest = str_from(object->path, folder.len);
    out->is_folder = str_find_char(rest, '/', &slash);
    out->name = out->is_folder ? str_sub(rest, 0, slash) : rest;
    out->info = (store_stat_info){(int64_t)object->bytes.len, object->modified_ms};
    return out->name.len > 0;
}

static tarn_code memory_list_folder(tarn_store *store, tarn_str path, store_folder_fn fn, void *ctx,
                                    tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, store->env);
    memory_object **range = NULL;
    tarn_str folder;
    size_t n = 0;
    size_t count = 0;
    tarn_code code;
    TRY(folder_path(&arena, path, &folder, err));
    TRY(take_range((memory_store *)store, folder, &arena, &range, &n, err));
    folder_entry *entries = ARENA_ARRAY(&arena, folder_entry, n);
    if (entries == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        count += entry_of(range[i], folder, &entries[count]);
    }
    if (count > 1) {
        qsort(entries, count, sizeof *entries, compare_entries);
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_entries(&entries[i - 1], &entries[i]) != 0) {
            TRY(fn(ctx, entries[i].name, entries[i].is_folder ? NULL : &entries[i].info, err));
        }
    }
done:
    for (size_t i = 0; i < n; i++) {
        release_object(range[i]);
    }
    arena_release(&arena);
    return code;
}

static tarn_code memory_make_folder(tarn_store *store, tarn_str path, tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, store->env);
    io_sink *sink = NULL;
    tarn_str folder;
    tarn_code code;
    TRY(folder_path(&arena, path, &folder, err));
    TRY(make_sink(store, folder, STORE_CREATE, &sink, err));
    code = sink->finish(sink, err);
done:
    arena_release(&arena);
    return code;
}

static tarn_code memory_remove_folder(tarn_store *store, tarn_str path, tarn_error *err) {
    memory_store *self = (memory_store *)store;
    tarn_arena arena;
    arena_init(&arena, store->env);
    tarn_str folder;
    bool found;
    memory_object *removed = NULL;
    tarn_code code;
    TRY(folder_path(&arena, path, &folder, err));
    (void)pthread_mutex_lock(&self->lock);
    size_t at = lower_bound(self, folder, &found);
    size_t inside = at + (found ? 1 : 0);
    if (inside < self->count && str_starts_with(self->objects[inside]->path, folder)) {
        code = err_set(err, TARN_CONFLICT, "folder %.*s was not empty", STR_ARG(folder));
    } else if (!found) {
        code = not_found(folder, err);
    } else {
        removed = self->objects[at];
        self->count--;
        memmove(self->objects + at, self->objects + at + 1,
                (self->count - at) * sizeof *self->objects);
    }
    (void)pthread_mutex_unlock(&self->lock);
    if (removed != NULL) {
        release_object(removed);
    }
done:
    arena_release(&arena);
    return code;
}

static void memory_close(tarn_store *store) {
    memory_store *self = (memory_store *)store;
    for (size_t i = 0; i < self->count; i++) {
        release_object(self->objects[i]);
    }
    (void)pthread_mutex_destroy(&self->lock);
    env_free(store->env, self->objects);
    env_free(store->env, self);
}

static const store_vtable MEMORY_VTABLE = {
    .name = "memory",
    .traits = memory_traits,
    .open = memory_open,
    .create = memory_create,
    .stat = memory_stat,
    .remove = memory_remove,
    .list = memory_list,
    .list_folder = memory_list_folder,
    .make_folder = memory_make_folder,
    .remove_folder = memory_remove_folder,
    .close = memory_close,
};

tarn_code store_memory_new(tarn_env *env, tarn_store **out, tarn_error *err) {
    memory_store *self = env_calloc(env, 1, sizeof *self);
    if (self == NULL) {
        return err_nomem(err);
    }
    self->base = (tarn_store){&MEMORY_VTABLE, env};
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        env_free(env, self);
        return err_set(err, TARN_IO, "a lock could not be made");
    }
    *out = &self->base;
    return TARN_OK;
}
