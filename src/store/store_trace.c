/* store/store_trace.c - a store that counts what is asked of another one: for tests of "how many
 * reads does a plan cost" and for statistics. Counts are atomic; calls that fail count too. */
#include "store/store.h"

typedef struct trace_store {
    tarn_store base;
    tarn_store *inner;
    store_trace *trace;
} trace_store;

typedef struct trace_source {
    io_source base;
    io_source *inner;
    store_trace *trace;
} trace_source;

typedef struct trace_sink {
    io_sink base;
    io_sink *inner;
    store_trace *trace;
} trace_sink;

static void count(int64_t *counter, int64_t n) {
    (void)__atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}

static unsigned trace_traits(tarn_store *store) {
    return store_traits_of(((trace_store *)store)->inner);
}

static tarn_code source_read_at(io_source *source, int64_t offset, void *dst, size_t len,
                                tarn_error *err) {
    trace_source *self = (trace_source *)source;
    count(&self->trace->reads, 1);
    count(&self->trace->read_bytes, (int64_t)len);
    return self->inner->read_at(self->inner, offset, dst, len, err);
}

static void source_close(io_source *source) {
    trace_source *self = (trace_source *)source;
    self->inner->close(self->inner);
    env_free(source->env, self);
}

static tarn_code trace_open(tarn_store *store, tarn_str path, int64_t size_hint, io_source **out,
                            tarn_error *err) {
    trace_store *self = (trace_store *)store;
    io_source *inner = NULL;
    count(&self->trace->opens, 1);
    trace_source *source = env_calloc(store->env, 1, sizeof *source);
    if (source == NULL) {
        return err_nomem(err);
    }
    tarn_code code = self->inner->vt->open(self->inner, path, size_hint, &inner, err);
    if (code != TARN_OK) {
        env_free(store->env, source);
        return code;
    }
    /* No peek: bytes taken without read_at would not be counted. */
    source->base =
        (io_source){store->env, inner->name, inner->size_bytes, source_read_at, NULL, source_close};
    source->inner = inner;
    source->trace = self->trace;
    *out = &source->base;
    return TARN_OK;
}

static tarn_code sink_write(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    trace_sink *self = (trace_sink *)sink;
    count(&self->trace->writes, 1);
    count(&self->trace->written_bytes, (int64_t)len);
    return self->inner->write(self->inner, data, len, err);
}

static tarn_code sink_finish(io_sink *sink, tarn_error *err) {
    trace_sink *self = (trace_sink *)sink;
    tarn_code code = self->inner->finish(self->inner, err);
    env_free(sink->env, self);
    return code;
}

static void sink_abort(io_sink *sink) {
    trace_sink *self = (trace_sink *)sink;
    self->inner->abort(self->inner);
    env_free(sink->env, self);
}

static tarn_code trace_create(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                              tarn_error *err) {
    trace_store *self = (trace_store *)store;
    io_sink *inner = NULL;
    count(&self->trace->creates, 1);
    trace_sink *sink = env_calloc(store->env, 1, sizeof *sink);
    if (sink == NULL) {
        return err_nomem(err);
    }
    tarn_code code = self->inner->vt->create(self->inner, path, mode, &inner, err);
    if (code != TARN_OK) {
        env_free(store->env, sink);
        return code;
    }
    sink->base = (io_sink){store->env, inner->name, 0, sink_write, sink_finish, sink_abort};
    sink->inner = inner;
    sink->trace = self->trace;
    *out = &sink->base;
    return TARN_OK;
}

static tarn_code trace_stat(tarn_store *store, tarn_str path, store_stat_info *out,
                            tarn_error *err) {
    trace_store *self = (trace_store *)store;
    count(&self->trace->stats, 1);
    return self->inner->vt->stat(self->inner, path, out, err);
}

static tarn_code trace_remove(tarn_store *store, tarn_str path, tarn_error *err) {
    trace_store *self = (trace_store *)store;
    count(&self->trace->removes, 1);
    return self->inner->vt->remove(self->inner, path, err);
}

static tarn_code trace_list(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                            tarn_error *err) {
    trace_store *self = (trace_store *)store;
    count(&self->trace->lists, 1);
    return self->inner->vt->list(self->inner, prefix, fn, ctx, err);
}

static tarn_code trace_list_folder(tarn_store *store, tarn_str folder, store_folder_fn fn,
                                   void *ctx, tarn_error *err) {
    trace_store *self = (trace_store *)store;
    count(&self->trace->folders, 1);
    return self->inner->vt->list_folder(self->inner, folder, fn, ctx, err);
}

static tarn_code trace_make_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    trace_store *self = (trace_store *)store;
    count(&self->trace->folders, 1);
    return self->inner->vt->make_folder(self->inner, folder, err);
}

static tarn_code trace_sync(tarn_store *store, tarn_error *err) {
    return store_sync(((trace_store *)store)->inner, err);
}

static tarn_code trace_remove_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    trace_store *self = (trace_store *)store;
    count(&self->trace->folders, 1);
    return self->inner->vt->remove_folder(self->inner, folder, err);
}

static void trace_close(tarn_store *store) {
    trace_store *self = (trace_store *)store;
    store_close(self->inner);
    env_free(store->env, self);
}

static const store_vtable TRACE_VTABLE = {
    .name = "trace",
    .traits = trace_traits,
    .open = trace_open,
    .create = trace_create,
    .stat = trace_stat,
    .remove = trace_remove,
    .list = trace_list,
    .list_folder = trace_list_folder,
    .make_folder = trace_make_folder,
    .remove_folder = trace_remove_folder,
    .sync = trace_sync,
    .close = trace_close,
};

tarn_code store_trace_new(tarn_store *inner, store_trace *trace, tarn_store **out,
                          tarn_error *err) {
    trace_store *self = env_calloc(inner->env, 1, sizeof *self);
    if (self == NULL) {
        return err_nomem(err);
    }
    self->base = (tarn_store){&TRACE_VTABLE, inner->env};
    self->inner = inner;
    self->trace = trace;
    *out = &self->base;
    return TARN_OK;
}
