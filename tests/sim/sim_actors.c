/* tests/sim/sim_actors.c - who works on the table: each a process with a catalog of its own,
 * straight or through a service, that dies and begins anew.
 *
 *   appenders   files of one row or more; with a commit id they send again until they know
 *   changers    take a row away by position (version 2) or vector (3), some put one in its place
 *   compactors  write the live rows of some files into one
 *   tuners      set a property, counting up
 *   readers     load, and read all that the snapshot names
 *
 * What outlives a process is what its source would remember: which commit is open, and its files.
 */
#include "sim.h"

#include "read/scan.h"

#include <string.h>

#define MAX_ACTORS 24
#define MAX_FILES  6
#define MAX_LIVE   256
#define CALM_AFTER                                                                                 \
    25 /* attempts at one commit: then the faults end, so that every history does                  \
        */
#define NEVER_AFTER  60
#define FILE_BYTES   10
#define VECTOR_BYTES 8

typedef enum way { STRAIGHT, WHOLE, PLAIN } way;

typedef struct sim_actor {
    char name[16];
    way way;
    int branch;
    bool has_id; /* commits carry ids, and are sent again */
    int n_ops;
    sim_process process;
    tarn_catalog *catalog;
    int tuned; /* the last value that was acknowledged */
} sim_actor;

static sim_actor actors[MAX_ACTORS];
static int n_actors;

/* ---- lives ---- */

static void close_life(sim_actor *a) {
    if (a->process.env != NULL) {
        catalog_close(a->catalog);
        a->catalog = NULL;
        sim_process_end(&a->process);
    }
}

/* A process that is alive, with a catalog. */
static void need_life(sim_actor *a) {
    while (a->process.env == NULL || a->process.dead || a->catalog == NULL) {
        close_life(a);
        sim_sleep_us(1000 * (int64_t)sim_chance(200));
        sim_process_begin(&a->process, a->name, SIM.plan.client_calls);
        a->catalog = a->way == STRAIGHT ? sim_catalog_new(&a->process)
                                        : sim_remote_new(&a->process, a->way == WHOLE);
    }
}

static void begin_work(sim_actor *a) {
    sim_sleep_us(1000 * (int64_t)sim_chance(SIM.plan.crowd ? 5 : 300));
    need_life(a);
}

static void end_work(sim_actor *a) {
    close_life(a);
    SIM.working--;
}

/* ---- files ---- */

/* A file in the store, known to the model; in the arena of the history. */
static tarn_file make_file(tarn_str target, int part, int n_rows, const int *rows) {
    static const char bytes[FILE_BYTES] = {0};
    tarn_file f;
    tarn_error err = TARN_ERROR_INIT;
    bool vector = target.len > 0 && SIM.plan.format_version >= 3;
    if (SIM.plan.compacts && target.len == 0) {
        f = sim_rows_write(part, n_rows, rows);
        sim_file_add(f.path, target, n_rows, rows);
        return f;
    }
    memset(&f, 0, sizeof f);
    f.path = str_of(arena_printf(&SIM.arena, "%s/ns/t/data/f%d.%s", SIM_WAREHOUSE, ++SIM.files,
                                 vector ? "puffin" : "avro"));
    f.content = target.len > 0 ? TARN_CONTENT_POSITION_DELETES : TARN_CONTENT_DATA;
    f.format = vector ? TARN_FORMAT_PUFFIN : TARN_FORMAT_AVRO;
    f.size_bytes = FILE_BYTES;
    f.record_count = n_rows;
    f.sort_order_id = target.len > 0 ? -1 : 0;
    f.first_row_id = -1;
    f.content_offset = vector ? 1 : -1;
    f.content_size = vector ? VECTOR_BYTES : -1;
    f.referenced_data_file = target;
    if (SIM.plan.partitioned) {
        tarn_value *tuple = ARENA_ARRAY(&SIM.arena, tarn_value, 1);
        tuple[0] = value_i32(type_primitive(TARN_INT), part);
        f.n_partition = 1;
        f.partition = tuple;
    }
    if (store_put(SIM.disk, f.path, STORE_CREATE, str_make(bytes, sizeof bytes), &err) != TARN_OK) {
        sim_fail("%s", err.message);
    }
    sim_file_add(f.path, target, n_rows, rows);
    return f;
}

static void discard_files(const tarn_file *files, int n) {
    for (int i = 0; i < n; i++) {
        sim_saw_removed(files[i].path);
        store_discard(SIM.disk, files[i].path);
    }
}

/* ---- one commit, until its fate is known ---- */

typedef struct one_commit {
    sim_op *op;
    commit_request request;
    tarn_table_version *base; /* the work was made on it; NULL: none */
    char id[32];
} one_commit;

static commit_request new_request(const sim_actor *a, commit_kind kind) {
    commit_request r;
    memset(&r, 0, sizeof r);
    r.kind = kind;
    r.branch = sim_branch(a->branch);
    r.from_snapshot_id = TARN_NO_SNAPSHOT;
    return r;
}

static bool may_change(tarn_code code) { /* another attempt may be answered otherwise */
    return code != TARN_CONFLICT && code != TARN_INVALID;
}

/* True: it is settled. Afterwards nothing of a's process may be used but by need_life. */
static bool try_commit(sim_actor *a, one_commit *c, tarn_code *code) {
    commit_outcome outcome;
    tarn_error err = TARN_ERROR_INIT;
    sim_op_sent(c->op);
    *code =
        commit_run(a->process.env, a->catalog, &SIM_TABLE, c->base, &c->request, &outcome, &err);
    table_version_release(outcome.version);
    sim_trace("commit %d of %s: %s, %s", c->op->number, a->name,
              outcome.kind == TARN_COMMITTED       ? "committed"
              : outcome.kind == TARN_NOT_COMMITTED ? "not committed"
                                                   : "unknown",
              err.message);
    if (a->process.dead) { /* what it heard died with it */
        c->op->unclear = true;
        return false;
    }
    if (outcome.kind == TARN_COMMITTED) {
        sim_op_done(c->op);
        return true;
    }
    c->op->unclear |= outcome.kind == TARN_OUTCOME_UNKNOWN;
    return false;
}

static void give_up(one_commit *c) {
    if (!c->op->unclear) {
        sim_op_refused(c->op);
        discard_files(c->request.added, c->request.n_added);
        discard_files(c->request.added_deletes, c->request.n_added_deletes);
    }
}

/* Bases belong to the life that loaded them, so only what has none outlives a death. */
static void run_commit(sim_actor *a, one_commit *c) {
    bool appends = c->base == NULL;
    if (a->has_id) {
        (void)snprintf(c->id, sizeof c->id, "%s-%d", a->name, c->op->number);
        c->request.commit_id = c->id;
    }
    for (int i = 1;; i++) {
        tarn_code code;
        if (try_commit(a, c, &code)) {
            return;
        }
        bool again = appends && (a->has_id || (!c->op->unclear && sim_chance(2) == 0));
        if (!again ||
            (!c->op->unclear && !a->process.dead && !may_change(code) && sim_chance(4) == 0)) {
            give_up(c);
            return;
        }
        if (i == CALM_AFTER) {
            SIM.calm = true;
        }
        if (i == NEVER_AFTER) {
            sim_fail("commit %d of %s is not taken, and there are no faults", c->op->number,
                     a->name);
        }
        sim_sleep_us(1000 * (int64_t)sim_chance(500));
        need_life(a);
    }
}

/* ---- appenders ---- */

static void append_once(sim_actor *a, int number) {
    tarn_file files[MAX_FILES];
    one_commit c;
    memset(&c, 0, sizeof c);
    int n = 1 + (int)sim_chance(3) / 2;
    c.op = sim_op_new(a->name, number, a->branch);
    c.request = new_request(a, sim_chance(2) == 0 ? COMMIT_FAST_APPEND : COMMIT_MERGE_APPEND);
    for (int i = 0; i < n; i++) {
        int rows[2];
        int n_rows = 1 + (int)sim_chance(2);
        for (int k = 0; k < n_rows; k++) {
            rows[k] = sim_row_new(c.op);
        }
        files[i] = make_file(STR_NULL, (int)sim_chance(2), n_rows, rows);
    }
    c.request.added = files;
    c.request.n_added = n;
    c.request.share = sim_chance(4) > 0;
    run_commit(a, &c);
}

static void run_appender(void *ctx) {
    sim_actor *a = ctx;
    for (int i = 0; i < a->n_ops; i++) {
        begin_work(a);
        append_once(a, i);
        if (SIM.plan.trims && sim_chance(8) == 0) { /* long enough for snapshots to grow old */
            sim_sleep_us(INT64_C(7200000000));
        }
    }
    end_work(a);
}

/* ---- what there is, for those who change it ---- */

typedef struct live_files {
    tarn_arena arena;
    tarn_table_version *version;
    const tarn_entry *data[MAX_LIVE], *deletes[MAX_LIVE];
    int n_data, n_deletes, n_files;
} live_files;

static tarn_code read_one(sim_actor *a, live_files *l, const tarn_manifest *m, tarn_error *err) {
    io_source *source = NULL;
    manifest_entries entries;
    manifest_read_options options = {.live_only = true, .want = MANIFEST_WANT_ALL};
    tarn_code code = TARN_OK;
    TRY(store_open(a->catalog->store, m->path, m->length, &source, err));
    TRY(manifest_read(&l->arena, source, l->version->metadata, m, &options, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        const tarn_entry *e = &entries.items[i];
        bool data = e->file.content == TARN_CONTENT_DATA;
        l->n_files++;
        if (data && l->n_data < MAX_LIVE) {
            l->data[l->n_data++] = e;
        } else if (!data && l->n_deletes < MAX_LIVE) {
            l->deletes[l->n_deletes++] = e;
        }
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

static void live_release(live_files *l) {
    table_version_release(l->version);
    arena_release(&l->arena);
}

/* snapshot NULL in the version: nothing is there. */
static tarn_code live_read(sim_actor *a, live_files *l, tarn_error *err) {
    const tarn_manifest *list = NULL;
    int32_t n = 0;
    tarn_code code = TARN_OK;
    memset(l, 0, sizeof *l);
    arena_init(&l->arena, a->process.env);
    TRY(catalog_load(a->catalog, &SIM_TABLE, &l->version, err));
    const tarn_snapshot *s = sim_head(l->version->metadata, a->branch);
    if (s != NULL) {
        TRY(snapshot_manifests(&l->arena, a->catalog->store, s, &list, &n, err));
    }
    for (int32_t i = 0; i < n; i++) {
        TRY(read_one(a, l, &list[i], err));
    }
done:
    return code;
}

/* The rows of a data file that no delete file takes; *vector: the one that it has. */
static int live_rows(const live_files *l, const tarn_entry *data, int *rows,
                     const tarn_entry **vector) {
    int n = 0;
    const sim_file *f = sim_file_find(data->file.path);
    *vector = NULL;
    for (int i = 0; i < f->n_rows; i++) {
        bool gone = false;
        for (int k = 0; k < l->n_deletes; k++) {
            const sim_file *d = sim_file_find(l->deletes[k]->file.path);
            bool applies = str_eq(d->target, data->file.path) &&
                           data->sequence_number <= l->deletes[k]->sequence_number;
            for (int r = 0; applies && r < d->n_rows; r++) {
                gone |= d->rows[r] == f->rows[i];
            }
            *vector = applies ? l->deletes[k] : *vector;
        }
        if (!gone) {
            rows[n++] = f->rows[i];
        }
    }
    return n;
}

static int part_of(const tarn_entry *e) {
    return e->file.n_partition > 0 ? e->file.partition[0].as.i32 : 0;
}

/* ---- changers ---- */

static void change_once(sim_actor *a, int number, live_files *l) {
    int rows[SIM_MAX_ROWS], taken[SIM_MAX_ROWS];
    const tarn_entry *vector;
    const tarn_entry *data = l->data[sim_chance((uint32_t)l->n_data)];
    tarn_file added, deletes;
    one_commit c;
    int n = live_rows(l, data, rows, &vector);
    if (n == 0) {
        return;
    }
    memset(&c, 0, sizeof c);
    c.op = sim_op_new(a->name, number, a->branch);
    c.op->kills = rows[sim_chance((uint32_t)n)];
    c.request = new_request(a, COMMIT_ROW_DELTA);
    c.base = l->version;
    c.request.from_snapshot_id = sim_head(l->version->metadata, a->branch)->snapshot_id;
    int n_taken = 0;
    taken[n_taken++] = c.op->kills;
    if (SIM.plan.format_version >= 3 && vector != NULL) { /* one a file: the old one's rows too */
        const sim_file *old = sim_file_find(vector->file.path);
        memcpy(taken + 1, old->rows, (size_t)old->n_rows * sizeof *taken);
        n_taken += old->n_rows;
        c.request.removed_deletes = vector;
        c.request.n_removed_deletes = 1;
    }
    deletes = make_file(arena_str(&SIM.arena, data->file.path), part_of(data), n_taken, taken);
    c.request.added_deletes = &deletes;
    c.request.n_added_deletes = 1;
    c.request.referenced = &deletes.referenced_data_file;
    c.request.n_referenced = 1;
    c.request.check_new_deletes = true;
    if (sim_chance(2) == 0) {
        int row = sim_row_new(c.op);
        added = make_file(STR_NULL, (int)sim_chance(2), 1, &row);
        c.request.added = &added;
        c.request.n_added = 1;
    }
    run_commit(a, &c);
}

/* ---- compactors ---- */

static void compact_once(sim_actor *a, int number, live_files *l) {
    tarn_entry removed[MAX_FILES];
    int rows[SIM_MAX_ROWS];
    int n = 0;
    tarn_file added;
    one_commit c;
    const tarn_entry *vector;
    uint32_t first = sim_chance((uint32_t)l->n_data);
    memset(&c, 0, sizeof c);
    c.request = new_request(a, COMMIT_OVERWRITE);
    for (int i = 0; i < l->n_data && c.request.n_removed < MAX_FILES; i++) {
        const tarn_entry *e = l->data[(first + (uint32_t)i) % (uint32_t)l->n_data];
        if (part_of(e) == part_of(l->data[first]) && sim_chance(3) > 0) {
            removed[c.request.n_removed++] = *e;
            n += live_rows(l, e, rows + n, &vector);
        }
    }
    if (c.request.n_removed == 0) {
        return;
    }
    c.op = sim_op_new(a->name, number, a->branch);
    if (n > 0) {
        added = make_file(STR_NULL, part_of(l->data[first]), n, rows);
        c.request.added = &added;
        c.request.n_added = 1;
    }
    c.request.removed = removed;
    c.request.check_new_deletes = true;
    c.request.merge = sim_chance(2) == 0;
    c.request.from_snapshot_id = sim_head(l->version->metadata, a->branch)->snapshot_id;
    c.base = l->version;
    run_commit(a, &c);
}

static void run_on_live(sim_actor *a, void (*once)(sim_actor *a, int number, live_files *l)) {
    for (int i = 0; i < a->n_ops; i++) {
        live_files *l = malloc(sizeof *l);
        tarn_error err = TARN_ERROR_INIT;
        begin_work(a);
        if (l != NULL && live_read(a, l, &err) == TARN_OK && l->n_data > 0) {
            once(a, i, l);
        }
        live_release(l);
        free(l);
    }
    end_work(a);
}

static void run_changer(void *ctx) {
    run_on_live(ctx, change_once);
}

static void run_compactor(void *ctx) {
    run_on_live(ctx, compact_once);
}

/* ---- tuners ---- */

typedef struct tuning {
    const char *key;
    char value[16];
    tarn_property property;
    tarn_change change;
} tuning;

static tarn_code make_tuning(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                             tarn_change_set *out, tarn_error *err) {
    tuning *t = ctx;
    (void)arena;
    (void)base;
    (void)err;
    t->property = (tarn_property){str_of(t->key), str_of(t->value)};
    t->change.kind = CHANGE_SET_PROPERTIES;
    t->change.properties = (tarn_properties){1, &t->property};
    memset(out, 0, sizeof *out);
    out->changes = &t->change;
    out->n_changes = 1;
    return TARN_OK;
}

static void run_tuner(void *ctx) {
    sim_actor *a = ctx;
    for (int i = 1; i <= a->n_ops; i++) {
        tuning t;
        commit_outcome outcome;
        tarn_error err = TARN_ERROR_INIT;
        begin_work(a);
        memset(&t, 0, sizeof t);
        t.key = a->name;
        (void)snprintf(t.value, sizeof t.value, "%d", i);
        tarn_code code =
            commit_changes(a->process.env, a->catalog, &SIM_TABLE, make_tuning, &t, &outcome, &err);
        if (code == TARN_OK && !a->process.dead) {
            int64_t value = 0;
            tarn_error none = TARN_ERROR_INIT;
            if (properties_i64(&outcome.version->metadata->properties, a->name, 0, &value, &none) !=
                    TARN_OK ||
                (value != i && SIM.plan.net_faults == 0)) { /* an older request may come late */
                sim_fail("%s set %d and it is %lld", a->name, i, (long long)value);
            }
            a->tuned = i;
        }
        table_version_release(outcome.version);
    }
    end_work(a);
}

/* ---- readers ---- */

static void run_reader(void *ctx) {
    sim_actor *a = ctx;
    int64_t newest = 0;
    for (int i = 0; i < a->n_ops; i++) {
        live_files *l = malloc(sizeof *l);
        tarn_error err = TARN_ERROR_INIT;
        begin_work(a);
        tarn_code code = l != NULL ? live_read(a, l, &err) : TARN_NOMEM;
        const tarn_metadata *m = l != NULL && l->version != NULL ? l->version->metadata : NULL;
        const tarn_snapshot *s = m != NULL ? sim_head(m, a->branch) : NULL;
        if (m != NULL && m->last_sequence_number < newest) {
            sim_fail("%s saw sequence number %lld after %lld", a->name,
                     (long long)m->last_sequence_number, (long long)newest);
        }
        newest = m != NULL ? m->last_sequence_number : newest;
        if (code == TARN_OK && s != NULL) {
            sim_saw_read(s->snapshot_id, l->n_files);
        } else if (code == TARN_NOT_FOUND && s != NULL && sim_is_live(s->snapshot_id)) {
            sim_fail("%s could not read the live snapshot %lld: %s", a->name,
                     (long long)s->snapshot_id, err.message);
        } else if (code == TARN_CORRUPT) {
            sim_fail("%s: %s", a->name, err.message);
        }
        live_release(l);
        free(l);
    }
    end_work(a);
}

/* ---- who is there ---- */

static way choose_way(void) {
    static const way ways[] = {STRAIGHT, WHOLE, WHOLE, PLAIN};
    way w = ways[sim_chance(4)];
    if (SIM.plan.crowd && sim_chance(5) > 0) {
        w = WHOLE;
    }
    return SIM.plan.servers == 0 ? STRAIGHT : w;
}

static void add_actor(const char *kind, int n_ops, void (*run)(void *ctx)) {
    sim_actor *a = &actors[n_actors];
    memset(a, 0, sizeof *a);
    (void)snprintf(a->name, sizeof a->name, "%s%d", kind, n_actors++);
    a->way = choose_way();
    a->branch = SIM.plan.branches ? (int)sim_chance(SIM_BRANCHES) : 0;
    a->has_id = a->way == WHOLE || (a->way == STRAIGHT && sim_chance(2) == 0);
    a->n_ops = n_ops;
    SIM.working++;
    sim_spawn(a->name, run, a);
}

void sim_actors_begin(void) {
    n_actors = 0;
    int appenders = 2 + (int)sim_chance(6) + (SIM.plan.crowd ? 6 : 0);
    for (int i = 0; i < appenders; i++) {
        add_actor("append", 2 + (int)sim_chance(6), run_appender);
    }
    if (!SIM.plan.trims && sim_chance(3) > 0) {
        int changers = 1 + (int)sim_chance(2);
        for (int i = 0; i < changers; i++) {
            add_actor("change", 2 + (int)sim_chance(6), run_changer);
        }
        if (sim_chance(3) > 0) {
            add_actor("compact", 2 + (int)sim_chance(5), run_compactor);
        }
    }
    if (sim_chance(3) == 0) {
        add_actor("tune", 3, run_tuner);
    }
    int readers = 1 + (int)sim_chance(2);
    for (int i = 0; i < readers; i++) {
        add_actor("read", 3 + (int)sim_chance(8), run_reader);
    }
}
