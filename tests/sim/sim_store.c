/* tests/sim/sim_store.c - processes, and the store that they share: objects in memory behind calls
 * that hand on, fail, lose their answers, or (where the history says so) have their effect later
 * than they said. */
#include "sim.h"

#include <string.h>

/* ---- processes ---- */

static sim_process *processes;

static int64_t clock_us(void *ctx) {
    return sim_now_us() + ((sim_process *)ctx)->skew_us;
}

static void random_bytes(void *ctx, void *out, size_t len) {
    (void)ctx;
    sim_random(out, len);
}

static void sleep_ms(void *ctx, int64_t ms) {
    sim_sleep_us(((sim_process *)ctx)->dead ? 0 : ms * 1000);
}

static void log_event(void *ctx, tarn_log_level level, const char *room, const char *event,
                      const char *text) {
    (void)level;
    sim_trace("%s: %s %s: %s", ((sim_process *)ctx)->name, room, event, text);
}

void sim_process_begin(sim_process *p, const char *name, uint32_t calls) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_error err = TARN_ERROR_INIT;
    memset(p, 0, sizeof *p);
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    p->skew_us = (int64_t)sim_chance(4000000) - 2000000;
    p->calls_left = calls > 0 && !SIM.calm ? 1 + (int64_t)sim_chance(calls) : -1;
    options.threads = 1;
    options.clock_us = clock_us;
    options.random = random_bytes;
    options.sleep_ms = sleep_ms;
    options.ctx = p;
    options.log = log_event;
    options.log_ctx = p;
    if (tarn_env_new(&options, &p->env, &err) != TARN_OK) {
        sim_fail("%s", err.message);
    }
    p->next = processes;
    processes = p;
}

void sim_process_end(sim_process *p) {
    sim_process **at = &processes;
    while (*at != p) {
        at = &(*at)->next;
    }
    *at = p->next;
    if (tarn_env_memory_now(p->env) != 0) {
        sim_fail("process %s left %llu bytes", p->name,
                 (unsigned long long)tarn_env_memory_now(p->env));
    }
    tarn_env_free(p->env);
    p->env = NULL;
}

sim_process *sim_process_of(const tarn_env *env) {
    sim_process *p = processes;
    while (p != NULL && p->env != env) {
        p = p->next;
    }
    return p;
}

sim_verdict sim_call(sim_process *p, uint32_t faults) {
    sim_yield();
    if (!p->dead && !SIM.calm && sim_one_in(SIM.plan.stalls)) {
        sim_sleep_us(1000 * (int64_t)sim_chance(5000));
    }
    if (p->dead) {
        return SIM_FAILED;
    }
    if (SIM.calm) {
        return SIM_DONE;
    }
    if (p->calls_left > 0 && --p->calls_left == 0) {
        sim_trace("%s dies", p->name);
        p->dead = true;
        SIM.deaths++;
        return sim_chance(2) == 0 ? SIM_FAILED : SIM_LOST;
    }
    if (sim_one_in(faults)) {
        return sim_chance(2) == 0 ? SIM_FAILED : SIM_LOST;
    }
    return SIM_DONE;
}

bool sim_outage(int64_t *until_us, sim_verdict verdict) {
    if (verdict != SIM_DONE && sim_chance(4) == 0) {
        *until_us = sim_now_us() + 1000 * (int64_t)sim_chance(3000);
    }
    return !SIM.calm && sim_now_us() < *until_us;
}

int64_t sim_delay_us(void) {
    return 1000 * (int64_t)sim_chance(sim_chance(2) == 0 ? 60 : 4000);
}

/* ---- the store ---- */

typedef struct shared_store {
    tarn_store base;
    sim_process *process;
} shared_store;

typedef struct shared_sink {
    io_sink base;
    io_sink *inner;
    tarn_str path; /* behind this struct */
    sim_process *process;
} shared_sink;

static int64_t down_until_us;

static sim_process *process_of(tarn_store *store) {
    return ((shared_store *)store)->process;
}

static tarn_code fail_call(const char *what, tarn_str path, tarn_error *err) {
    sim_trace("%s of %.*s is failed", what, STR_ARG(path));
    return err_set(err, TARN_IO, "%s of %.*s came to nothing that is known", what, STR_ARG(path));
}

/* A call that reads has no effect that could be lost. */
static tarn_code begin_read(tarn_store *store, const char *what, tarn_str path, tarn_error *err) {
    sim_verdict verdict = sim_call(process_of(store), SIM.plan.store_faults);
    return !sim_outage(&down_until_us, verdict) && verdict == SIM_DONE ? TARN_OK
                                                                       : fail_call(what, path, err);
}

static unsigned shared_traits(tarn_store *store) {
    (void)store;
    return store_traits_of(SIM.disk) & ~(SIM.plan.settled ? 0u : (unsigned)STORE_SETTLED);
}

static tarn_code shared_open(tarn_store *store, tarn_str path, int64_t size_hint, io_source **out,
                             tarn_error *err) {
    tarn_code code = begin_read(store, "open", path, err);
    return code != TARN_OK ? code : SIM.disk->vt->open(SIM.disk, path, size_hint, out, err);
}

static tarn_code shared_stat(tarn_store *store, tarn_str path, store_stat_info *out,
                             tarn_error *err) {
    tarn_code code = begin_read(store, "stat", path, err);
    return code != TARN_OK ? code : SIM.disk->vt->stat(SIM.disk, path, out, err);
}

static tarn_code sink_write(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    shared_sink *self = (shared_sink *)sink;
    return self->inner->write(self->inner, data, len, err);
}

static void sink_abort(io_sink *sink) {
    shared_sink *self = (shared_sink *)sink;
    self->inner->abort(self->inner);
    env_free(sink->env, self);
}

static tarn_code finish_inner(io_sink *inner, tarn_str path, tarn_error *err) {
    tarn_code code = inner->finish(inner, err);
    if (code == TARN_OK) {
        sim_saw_created(path);
    }
    return code;
}

/* What arrives after its caller was told that it failed. */
typedef struct late_finish {
    io_sink *inner;
    tarn_str path;
} late_finish;

static late_finish late[64];
static int n_late;

/* The document whose creation moves the pointer. */
static bool is_swap(tarn_str path) {
    return SIM.plan.kind == SIM_DIR && str_ends_with(path, STR(".metadata.json"));
}

static bool put_off(shared_sink *self) {
    if (SIM.plan.settled || n_late == 64 || sim_chance(2) == 0) {
        return false;
    }
    late[n_late++] = (late_finish){self->inner, arena_str(&SIM.arena, self->path)};
    return true;
}

static void arrive(int i) {
    late_finish f = late[i];
    late[i] = late[--n_late];
    sim_trace("%.*s arrives late", STR_ARG(f.path));
    (void)finish_inner(f.inner, f.path, NULL);
}

static void bring_late(void *ctx) {
    (void)ctx;
    while (SIM.working > 0 || n_late > 0) {
        sim_sleep_us(sim_delay_us());
        if (n_late > 0) {
            arrive((int)sim_chance((uint32_t)n_late));
        }
    }
}

static tarn_code sink_finish(io_sink *sink, tarn_error *err) {
    shared_sink *self = (shared_sink *)sink;
    bool swap = is_swap(self->path);
    sim_verdict verdict =
        sim_call(self->process, swap ? SIM.plan.swap_faults : SIM.plan.store_faults);
    tarn_code code = TARN_OK;
    if (sim_outage(&down_until_us, verdict) || verdict == SIM_FAILED) {
        code = fail_call("create", self->path, err);
        if (!put_off(self)) {
            self->inner->abort(self->inner);
        }
    } else {
        code = finish_inner(self->inner, self->path, err);
        if (verdict == SIM_LOST && swap && sim_chance(2) == 0) { /* sent twice (B28, B29) */
            code =
                err_set(err, TARN_CONFLICT, "object %.*s was already there", STR_ARG(self->path));
        } else if (verdict == SIM_LOST) {
            code = fail_call("create (and it was done)", self->path, err);
        }
    }
    env_free(sink->env, self);
    return code;
}

static tarn_code shared_create(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                               tarn_error *err) {
    tarn_code code = begin_read(store, "opening", path, err);
    if (code != TARN_OK) {
        return code;
    }
    shared_sink *self = env_calloc(store->env, 1, sizeof *self + path.len);
    if (self == NULL) {
        return err_nomem(err);
    }
    code = SIM.disk->vt->create(SIM.disk, path, mode, &self->inner, err);
    if (code != TARN_OK) {
        env_free(store->env, self);
        return code;
    }
    memcpy(self + 1, path.data, path.len);
    self->path = str_make((const char *)(self + 1), path.len);
    self->process = process_of(store);
    self->base = (io_sink){store->env, self->inner->name, 0, sink_write, sink_finish, sink_abort};
    *out = &self->base;
    return TARN_OK;
}

static tarn_code shared_remove(tarn_store *store, tarn_str path, tarn_error *err) {
    sim_verdict verdict = sim_call(process_of(store), SIM.plan.store_faults);
    if (verdict == SIM_FAILED) {
        return fail_call("remove", path, err);
    }
    tarn_code code = SIM.disk->vt->remove(SIM.disk, path, err);
    if (code == TARN_OK) {
        sim_trace("%.*s is removed", STR_ARG(path));
        sim_saw_removed(path);
    }
    return verdict == SIM_LOST ? fail_call("remove (and it was done)", path, err) : code;
}

static tarn_code shared_list(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                             tarn_error *err) {
    tarn_code code = begin_read(store, "list", prefix, err);
    return code != TARN_OK ? code : SIM.disk->vt->list(SIM.disk, prefix, fn, ctx, err);
}

static tarn_code shared_list_folder(tarn_store *store, tarn_str folder, store_folder_fn fn,
                                    void *ctx, tarn_error *err) {
    tarn_code code = begin_read(store, "list", folder, err);
    return code != TARN_OK ? code : SIM.disk->vt->list_folder(SIM.disk, folder, fn, ctx, err);
}

static tarn_code shared_make_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    tarn_code code = begin_read(store, "make", folder, err);
    return code != TARN_OK ? code : SIM.disk->vt->make_folder(SIM.disk, folder, err);
}

static tarn_code shared_remove_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    tarn_code code = begin_read(store, "remove", folder, err);
    return code != TARN_OK ? code : SIM.disk->vt->remove_folder(SIM.disk, folder, err);
}

static tarn_code shared_sync(tarn_store *store, tarn_error *err) {
    return begin_read(store, "sync", STR("all"), err);
}

static void shared_close(tarn_store *store) {
    env_free(store->env, store);
}

static const store_vtable SHARED_VTABLE = {
    .name = "sim",
    .traits = shared_traits,
    .open = shared_open,
    .create = shared_create,
    .stat = shared_stat,
    .remove = shared_remove,
    .list = shared_list,
    .list_folder = shared_list_folder,
    .make_folder = shared_make_folder,
    .remove_folder = shared_remove_folder,
    .sync = shared_sync,
    .close = shared_close,
};

tarn_store *sim_store_new(sim_process *p) {
    shared_store *self = env_calloc(p->env, 1, sizeof *self);
    if (self == NULL) {
        sim_fail("no memory");
    }
    self->base = (tarn_store){&SHARED_VTABLE, p->env};
    self->process = p;
    return &self->base;
}

tarn_catalog *sim_catalog_new(sim_process *p) {
    tarn_catalog *catalog = NULL;
    tarn_error err = TARN_ERROR_INIT;
    tarn_store *store = sim_store_new(p);
    tarn_code code = SIM.plan.kind == SIM_DIR
                         ? catalog_dir_new(p->env, store, STR(SIM_WAREHOUSE), &catalog, &err)
                         : catalog_postgres_new(p->env, store, STR("postgresql://sim"), STR("tarn"),
                                                STR(SIM_WAREHOUSE), &catalog, &err);
    if (code != TARN_OK) {
        store_close(store);
        return NULL;
    }
    return catalog;
}

/* ---- the world's beginning ---- */

static const tarn_str LEVEL = {"ns", 2};
const tarn_ident SIM_TABLE = {1, &LEVEL, {"t", 1}};

static void add_property(metadata_new_options *o, tarn_property *items, const char *key,
                         const char *value) {
    items[o->properties.count++] = (tarn_property){str_of(key), str_of(value)};
    o->properties.items = items;
}

void sim_make_table(void) {
    static const tarn_ident ns = {1, &LEVEL, {NULL, 0}};
    metadata_new_options o;
    tarn_property items[12];
    tarn_error err = TARN_ERROR_INIT;
    sim_process p;
    n_late = 0;
    down_until_us = 0;
    memset(&o, 0, sizeof o);
    sim_process_begin(&p, "setup", 0);
    p.skew_us = 0;
    tarn_catalog *catalog = sim_catalog_new(&p);
    o.format_version = SIM.plan.format_version;
    o.partition_by = SIM.plan.partitioned ? STR("p") : STR_NULL;
    add_property(&o, items, "commit.manifest.min-count-to-merge", "4");
    add_property(&o, items, "commit.retry.min-wait-ms", "20");
    if (SIM.plan.trims) { /* so old that nobody sends again what goes */
        add_property(&o, items, "tarn.expire-on-commit", "true");
        add_property(&o, items, "history.expire.max-snapshot-age-ms", "3600000");
    }
    if (SIM.plan.compacts) {
        add_property(&o, items, "tarn.compact-before-commit", "true");
        add_property(&o, items, "write.format.default", "avro");
    }
    if (SIM.plan.gzip) {
        add_property(&o, items, "write.metadata.compression-codec", "gzip");
    }
    if (SIM.plan.removes_old) {
        add_property(&o, items, "write.metadata.delete-after-commit.enabled", "true");
        add_property(&o, items, "write.metadata.previous-versions-max", "4");
    }
    tarn_code code = catalog != NULL ? type_from_text(&SIM.arena, STR("struct<p: int, v: string>"),
                                                      &o.root, &err)
                                     : TARN_IO;
    if (SIM.plan.kind == SIM_DIR && code == TARN_OK) { /* the database has it */
        code = catalog_create_namespace(catalog, &ns, NULL, &err);
    }
    code = code == TARN_OK ? catalog_create(catalog, &SIM_TABLE, &o, NULL, &err) : code;
    if (code != TARN_OK) {
        sim_fail("no table could be made: %s", err.message);
    }
    catalog_close(catalog);
    sim_process_end(&p);
    if (!SIM.plan.settled) {
        sim_spawn("late", bring_late, NULL);
    }
}
