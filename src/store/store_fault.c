/* store/store_fault.c - a store whose k-th call fails, for tests: before it takes effect, after it
 * took effect (a lost answer), or by the death of the process at that point.
 *
 * Counted calls: open, read_at, create, write, finish, stat, remove, list, list_folder,
 * make_folder, remove_folder, sync. Abort and close are not: they cannot fail. The plan is the
 * caller's and is touched under the store's lock only. */
#include "store/store.h"

#include <pthread.h>

typedef struct fault_store {
    tarn_store base;
    tarn_store *inner;
    pthread_mutex_t lock;
    store_fault_plan *plan; /* guarded by lock */
} fault_store;

typedef struct fault_source {
    io_source base;
    io_source *inner;
    fault_store *store;
} fault_source;

typedef struct fault_sink {
    io_sink base;
    io_sink *inner;
    fault_store *store;
    bool failed; /* a write failed by plan: finish must fail as a real one would */
} fault_sink;

/* What one call shall do: fail with code (TARN_OK: not), before or after the effect, or die. */
typedef struct fault {
    const char *call;
    tarn_code code;
    bool after;
    void (*die)(void);
} fault;

static fault next_fault(fault_store *self, const char *call) {
    fault f = {call, TARN_OK, false, NULL};
    (void)pthread_mutex_lock(&self->lock);
    store_fault_plan *plan = self->plan;
    plan->calls++;
    plan->last_call = call;
    bool hit = plan->fail_at == 1; /* stays 1 when later calls shall fail too */
    if (plan->fail_at > 1) {
        plan->fail_at--;
    } else if (hit && !plan->fail_forever) {
        plan->fail_at = 0;
    }
    if (hit) {
        plan->struck = call;
        f.code = plan->code != TARN_OK ? plan->code : TARN_IO;
        f.after = plan->after;
        f.die = plan->die;
    }
    (void)pthread_mutex_unlock(&self->lock);
    return f;
}

/* At the point before (or after) the effect: what the call reports now; TARN_OK: it goes on. */
static tarn_code strike(const fault *f, bool after, tarn_str path, tarn_error *err) {
    if (f->code == TARN_OK || f->after != after) {
        return TARN_OK;
    }
    if (f->die != NULL) {
        f->die();
    }
    return err_set(err, f->code, "%s of %.*s failed by plan %s its effect", f->call, STR_ARG(path),
                   after ? "after" : "before");
}

static unsigned fault_traits(tarn_store *store) {
    return store_traits_of(((fault_store *)store)->inner);
}

static tarn_code source_read_at(io_source *source, int64_t offset, void *dst, size_t len,
                                tarn_error *err) {
    fault_source *self = (fault_source *)source;
    fault f = next_fault(self->store, "read_at");
    tarn_code code;
    TRY(strike(&f, false, str_of(source->name), err));
    TRY(self->inner->read_at(self->inner, offset, dst, len, err));
    code = strike(&f, true, str_of(source->name), err);
done:
    return code;
}

static void source_close(io_source *source) {
    fault_source *self = (fault_source *)source;
    self->inner->close(self->inner);
    env_free(source->env, self);
}

static tarn_code fault_open(tarn_store *store, tarn_str path, int64_t size_hint, io_source **out,
                            tarn_error *err) {
    fault_store *self = (fault_store *)store;
    fault f = next_fault(self, "open");
    io_source *inner = NULL;
    fault_source *source = NULL;
    tarn_code code;
    TRY(strike(&f, false, path, err));
    TRY(self->inner->vt->open(self->inner, path, size_hint, &inner, err));
    TRY(strike(&f, true, path, err));
    source = env_calloc(store->env, 1, sizeof *source);
    if (source == NULL) {
        code = err_nomem(err);
        goto done;
    }
    source->base =
        (io_source){store->env, inner->name, inner->size_bytes, source_read_at, NULL, source_close};
    source->inner = inner;
    source->store = self;
    *out = &source->base;
    inner = NULL;
done:
    if (inner != NULL) {
        inner->close(inner);
    }
    return code;
}

static tarn_code sink_write(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    fault_sink *self = (fault_sink *)sink;
    fault f = next_fault(self->store, "write");
    tarn_code code;
    TRY(strike(&f, false, str_of(sink->name), err));
    TRY(self->inner->write(self->inner, data, len, err));
    code = strike(&f, true, str_of(sink->name), err);
done:
    self->failed = self->failed || code != TARN_OK;
    return code;
}

static void sink_abort(io_sink *sink) {
    fault_sink *self = (fault_sink *)sink;
    if (self->inner != NULL) {
        self->inner->abort(self->inner);
    }
    env_free(sink->env, self);
}

static tarn_code sink_finish(io_sink *sink, tarn_error *err) {
    fault_sink *self = (fault_sink *)sink;
    fault f = next_fault(self->store, "finish");
    io_sink *inner = self->inner;
    tarn_code code;
    if (self->failed) {
        code = err_set(err, TARN_IO, "an earlier write of %s had failed", sink->name);
        goto done;
    }
    TRY(strike(&f, false, str_of(sink->name), err));
    self->inner = NULL;
    code = inner->finish(inner, err);
    if (code == TARN_OK) {
        code = strike(&f, true, STR("a finished object"), err); /* its name went with inner */
    }
done:
    sink_abort(sink);
    return code;
}

static tarn_code fault_create(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                              tarn_error *err) {
    fault_store *self = (fault_store *)store;
    fault f = next_fault(self, "create");
    io_sink *inner = NULL;
    tarn_code code;
    TRY(strike(&f, false, path, err));
    TRY(self->inner->vt->create(self->inner, path, mode, &inner, err));
    TRY(strike(&f, true, path, err));
    fault_sink *sink = env_calloc(store->env, 1, sizeof *sink);
    if (sink == NULL) {
        code = err_nomem(err);
        goto done;
    }
    sink->base = (io_sink){store->env, inner->name, 0, sink_write, sink_finish, sink_abort};
    sink->inner = inner;
    sink->store = self;
    *out = &sink->base;
    inner = NULL;
done:
    if (inner != NULL) {
        inner->abort(inner);
    }
    return code;
}

static tarn_code fault_stat(tarn_store *store, tarn_str path, store_stat_info *out,
                            tarn_error *err) {
    fault_store *self = (fault_store *)store;
    fault f = next_fault(self, "stat");
    store_stat_info info;
    tarn_code code;
    TRY(strike(&f, false, path, err));
    TRY(self->inner->vt->stat(self->inner, path, &info, err));
    TRY(strike(&f, true, path, err));
    *out = info;
done:
    return code;
}

static tarn_code fault_remove(tarn_store *store, tarn_str path, tarn_error *err) {
    fault_store *self = (fault_store *)store;
    fault f = next_fault(self, "remove");
    tarn_code code;
    TRY(strike(&f, false, path, err));
    TRY(self->inner->vt->remove(self->inner, path, err));
    code = strike(&f, true, path, err);
done:
    return code;
}

static tarn_code fault_list(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                            tarn_error *err) {
    fault_store *self = (fault_store *)store;
    fault f = next_fault(self, "list");
    tarn_code code;
    TRY(strike(&f, false, prefix, err));
    TRY(self->inner->vt->list(self->inner, prefix, fn, ctx, err));
    code = strike(&f, true, prefix, err);
done:
    return code;
}

static tarn_code fault_list_folder(tarn_store *store, tarn_str folder, store_folder_fn fn,
                                   void *ctx, tarn_error *err) {
    fault_store *self = (fault_store *)store;
    fault f = next_fault(self, "list_folder");
    tarn_code code;
    TRY(strike(&f, false, folder, err));
    TRY(self->inner->vt->list_folder(self->inner, folder, fn, ctx, err));
    code = strike(&f, true, folder, err);
done:
    return code;
}

static tarn_code fault_make_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    fault_store *self = (fault_store *)store;
    fault f = next_fault(self, "make_folder");
    tarn_code code;
    TRY(strike(&f, false, folder, err));
    TRY(self->inner->vt->make_folder(self->inner, folder, err));
    code = strike(&f, true, folder, err);
done:
    return code;
}

static tarn_code fault_sync(tarn_store *store, tarn_error *err) {
    fault_store *self = (fault_store *)store;
    fault f = next_fault(self, "sync");
    tarn_code code;
    TRY(strike(&f, false, STR("everything"), err));
    TRY(store_sync(self->inner, err));
    code = strike(&f, true, STR("everything"), err);
done:
    return code;
}

static tarn_code fault_remove_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    fault_store *self = (fault_store *)store;
    fault f = next_fault(self, "remove_folder");
    tarn_code code;
    TRY(strike(&f, false, folder, err));
    TRY(self->inner->vt->remove_folder(self->inner, folder, err));
    code = strike(&f, true, folder, err);
done:
    return code;
}

static void fault_close(tarn_store *store) {
    fault_store *self = (fault_store *)store;
    store_close(self->inner);
    (void)pthread_mutex_destroy(&self->lock);
    env_free(store->env, self);
}

static const store_vtable FAULT_VTABLE = {
    .name = "fault",
    .traits = fault_traits,
    .open = fault_open,
    .create = fault_create,
    .stat = fault_stat,
    .remove = fault_remove,
    .list = fault_list,
    .list_folder = fault_list_folder,
    .make_folder = fault_make_folder,
    .remove_folder = fault_remove_folder,
    .sync = fault_sync,
    .close = fault_close,
};

tarn_code store_fault_new(tarn_store *inner, store_fault_plan *plan, tarn_store **out,
                          tarn_error *err) {
    fault_store *self = env_calloc(inner->env, 1, sizeof *self);
    if (self == NULL) {
        return err_nomem(err);
    }
    self->base = (tarn_store){&FAULT_VTABLE, inner->env};
    self->inner = inner;
    self->plan = plan;
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        env_free(inner->env, self);
        return err_set(err, TARN_IO, "a lock could not be made");
    }
    *out = &self->base;
    return TARN_OK;
}
