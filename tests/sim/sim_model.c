/* tests/sim/sim_model.c - what must hold of every version of the table, looked at in the moment in
 * which it becomes current, with no fault and nobody in between:
 *   - it follows from the one before: same table, branch goes forward, numbers grow;
 *   - a new snapshot is whole: every file that it names is there; no file, no row is in it twice;
 *     its totals are its sums; row ids of version 3 do not overlap; sequence numbers grow;
 *   - a commit is on its own branch, which begins at main's head when its first commit makes it,
 * and no other has a row of it;
 *   - rows of one commit came together, never without the delete that came with them; what was
 *     refused is not there, what was acknowledged stays, what was deleted does not come back;
 * and between versions: nothing that a live snapshot names is removed. */
#include "sim.h"

#include "maintain/check.h"
#include "read/scan.h"

#include <string.h>

#define SETS (SIM_MAX_ROWS / 64)

typedef struct row_set {
    uint64_t bits[SETS];
} row_set;

typedef struct seen_snapshot {
    int64_t id, parent_id, sequence_number, end_row_id;
    int64_t n_files; /* live ones, data and deletes */
    row_set rows;
    tarn_map paths; /* all that it lives by */
} seen_snapshot;

typedef struct seen_manifest {
    manifest_entries entries; /* live ones */
} seen_manifest;

static struct {
    sim_op ops[SIM_MAX_OPS];
    int n_ops;
    int n_rows;
    int row_op[SIM_MAX_ROWS];  /* that adds the row */
    bool may_go[SIM_MAX_ROWS]; /* somebody sent a delete of it */
    row_set gone;              /* rows that were there and are not any more */
    tarn_map files, snapshots, manifests;
    tarn_table_version *now; /* the newest */
    row_set heads[SIM_BRANCHES];
} model;

static bool has(const row_set *s, int row) {
    return (s->bits[row / 64] >> (row % 64) & 1) != 0;
}
static void put(row_set *s, int row) {
    s->bits[row / 64] |= UINT64_C(1) << (row % 64);
}
static void drop(row_set *s, int row) {
    s->bits[row / 64] &= ~(UINT64_C(1) << (row % 64));
}

void sim_model_begin(void) {
    memset(&model, 0, sizeof model);
    map_init(&model.files, &SIM.arena);
    map_init(&model.snapshots, &SIM.arena);
    map_init(&model.manifests, &SIM.arena);
    model.n_rows = 1; /* 0 is none */
    model.n_ops = 1;
}

static void need(bool there) {
    if (!there) {
        sim_fail("no memory");
    }
}

/* ---- what actors want ---- */

const tarn_metadata *sim_table(void) {
    return model.now->metadata;
}

tarn_str sim_branch(int branch) {
    static const char *const names[SIM_BRANCHES] = {TARN_MAIN_BRANCH, "side"};
    return str_of(names[branch]);
}

const tarn_snapshot *sim_head(const tarn_metadata *m, int branch) {
    const tarn_ref *ref = metadata_ref(m, sim_branch(branch));
    return ref != NULL ? metadata_snapshot_by_id(m, ref->snapshot_id) : NULL;
}

sim_op *sim_op_new(const char *client, int number, int branch) {
    if (model.n_ops == SIM_MAX_OPS) {
        sim_fail("more than %d commits", SIM_MAX_OPS);
    }
    sim_op *op = &model.ops[model.n_ops++];
    *op = (sim_op){
        .client = client, .number = number, .branch = branch, .snapshot_id = TARN_NO_SNAPSHOT};
    return op;
}

int sim_row_new(sim_op *op) {
    if (model.n_rows == SIM_MAX_ROWS || op->n_rows == SIM_OP_ROWS) {
        sim_fail("more than %d rows", SIM_MAX_ROWS);
    }
    model.row_op[model.n_rows] = (int)(op - model.ops);
    op->rows[op->n_rows++] = model.n_rows;
    return model.n_rows++;
}

void sim_op_sent(sim_op *op) {
    op->state = OP_SENT;
    if (op->kills > 0) {
        model.may_go[op->kills] = true;
    }
}

static void check_op(const sim_op *op) {
    const row_set *head = &model.heads[op->branch];
    for (int i = 0; i < op->n_rows; i++) {
        int row = op->rows[i];
        if (op->state == OP_DONE && !has(head, row) && !model.may_go[row]) {
            sim_fail("commit %d of %s was acknowledged, and its row %d is not there", op->number,
                     op->client, row);
        }
        if (op->state == OP_REFUSED && (has(head, row) || has(&model.gone, row))) {
            sim_fail("commit %d of %s was refused, and its row %d is there", op->number, op->client,
                     row);
        }
    }
    if (op->state == OP_DONE && op->kills > 0 && has(head, op->kills)) {
        sim_fail("commit %d of %s was acknowledged, and row %d that it deletes is there",
                 op->number, op->client, op->kills);
    }
    if (op->state == OP_DONE && op->n_rows > 0 && op->snapshot_id == TARN_NO_SNAPSHOT) {
        sim_fail("commit %d of %s was acknowledged and never seen", op->number, op->client);
    }
}

void sim_op_done(sim_op *op) {
    sim_trace("commit %d of %s is acknowledged", op->number, op->client);
    op->state = OP_DONE;
    SIM.acked++;
    check_op(op);
}

void sim_op_refused(sim_op *op) {
    sim_trace("commit %d of %s is refused", op->number, op->client);
    op->state = OP_REFUSED;
    SIM.refused++;
    check_op(op);
}

void sim_file_add(tarn_str path, tarn_str target, int n_rows, const int *rows) {
    sim_file *f = ARENA_NEW(&SIM.arena, sim_file);
    int *copy = ARENA_ARRAY(&SIM.arena, int, (size_t)n_rows + 1);
    need(f != NULL && copy != NULL);
    memcpy(copy, rows, (size_t)n_rows * sizeof *rows);
    *f = (sim_file){path, target, n_rows, copy};
    map_entry *e = map_put(&model.files, path, NULL);
    need(e != NULL);
    e->value.ptr = f;
}

const sim_file *sim_file_find(tarn_str path) {
    const map_entry *e = map_find(&model.files, path);
    return e != NULL ? e->value.ptr : NULL;
}

/* ---- a new snapshot ---- */

static tarn_str id_key(const int64_t *id) {
    return str_make((const char *)id, sizeof *id);
}

static seen_snapshot *find_seen(int64_t id) {
    const map_entry *e = map_find(&model.snapshots, id_key(&id));
    return e != NULL ? e->value.ptr : NULL;
}

bool sim_is_live(int64_t snapshot_id) {
    return metadata_snapshot_by_id(model.now->metadata, snapshot_id) != NULL;
}

static void name_path(seen_snapshot *seen, tarn_str path) {
    if (!store_exists(SIM.disk, path)) {
        sim_fail("snapshot %lld names %.*s, which is not there", (long long)seen->id,
                 STR_ARG(path));
    }
    need(map_put(&seen->paths, path, NULL) != NULL);
}

static const manifest_entries *read_manifest(const tarn_metadata *m,
                                             const tarn_manifest *manifest) {
    bool added;
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    manifest_read_options options = {.live_only = true, .want = MANIFEST_WANT_REST};
    char key[400];
    (void)snprintf(key, sizeof key, "%.*s#%lld#%lld", STR_ARG(manifest->path),
                   (long long)manifest->first_row_id, (long long)manifest->sequence_number);
    map_entry *e = map_put(&model.manifests, str_of(arena_strdup(&SIM.arena, key)), &added);
    need(e != NULL);
    if (!added) {
        return &((seen_manifest *)e->value.ptr)->entries;
    }
    seen_manifest *read = ARENA_NEW(&SIM.arena, seen_manifest);
    need(read != NULL);
    e->value.ptr = read;
    if (store_open(SIM.disk, manifest->path, -1, &source, &err) != TARN_OK ||
        manifest_read(&SIM.arena, source, m, manifest, &options, &read->entries, &err) != TARN_OK) {
        sim_fail("manifest %.*s: %s", STR_ARG(manifest->path), err.message);
    }
    source->close(source);
    return &read->entries;
}

typedef struct gathered {
    const tarn_entry *data[SIM_MAX_ROWS], *deletes[SIM_MAX_ROWS];
    int n_data, n_deletes;
} gathered;

static void gather(const tarn_metadata *m, seen_snapshot *seen, const tarn_snapshot *s,
                   gathered *out) {
    const tarn_manifest *list;
    int32_t n;
    tarn_error err = TARN_ERROR_INIT;
    out->n_data = out->n_deletes = 0;
    name_path(seen, arena_str(&SIM.arena, s->manifest_list));
    if (snapshot_manifests(&SIM.arena, SIM.disk, s, &list, &n, &err) != TARN_OK) {
        sim_fail("manifest list of %lld: %s", (long long)s->snapshot_id, err.message);
    }
    for (int32_t i = 0; i < n; i++) {
        const manifest_entries *entries = read_manifest(m, &list[i]);
        name_path(seen, list[i].path);
        for (int64_t k = 0; k < entries->count; k++) {
            const tarn_entry *e = &entries->items[k];
            bool is_data = e->file.content == TARN_CONTENT_DATA;
            bool added;
            (void)map_put(&seen->paths, e->file.path, &added);
            if (!added) {
                sim_fail("snapshot %lld names %.*s twice", (long long)s->snapshot_id,
                         STR_ARG(e->file.path));
            }
            name_path(seen, e->file.path);
            bool own = e->status == TARN_ENTRY_ADDED && e->snapshot_id == s->snapshot_id;
            if (own ? e->sequence_number != s->sequence_number
                    : e->sequence_number > s->sequence_number) {
                sim_fail("%.*s has sequence number %lld in snapshot %lld of %lld",
                         STR_ARG(e->file.path), (long long)e->sequence_number,
                         (long long)s->snapshot_id, (long long)s->sequence_number);
            }
            *(is_data ? &out->data[out->n_data++] : &out->deletes[out->n_deletes++]) = e;
        }
    }
    seen->n_files = out->n_data + out->n_deletes;
}

/* A file that no actor wrote is one that a service made of theirs. */
static const sim_file *find_data(const tarn_file *file) {
    int rows[SIM_MAX_ROWS];
    const sim_file *f = sim_file_find(file->path);
    if (f == NULL && SIM.plan.compacts) {
        sim_file_add(arena_str(&SIM.arena, file->path), STR_NULL, sim_rows_read(file, rows), rows);
        SIM.merged++;
        f = sim_file_find(file->path);
    }
    return f;
}

static void count_rows(seen_snapshot *seen, const gathered *g) {
    for (int i = 0; i < g->n_data; i++) {
        const sim_file *f = find_data(&g->data[i]->file);
        for (int k = 0; f != NULL && k < f->n_rows; k++) {
            if (has(&seen->rows, f->rows[k])) {
                sim_fail("row %d is twice in snapshot %lld", f->rows[k], (long long)seen->id);
            }
            put(&seen->rows, f->rows[k]);
        }
        if (f == NULL) {
            sim_fail("nobody wrote %.*s", STR_ARG(g->data[i]->file.path));
        }
    }
    for (int i = 0; i < g->n_deletes; i++) {
        const sim_file *d = sim_file_find(g->deletes[i]->file.path);
        for (int k = 0; k < g->n_data; k++) {
            if (str_eq(g->data[k]->file.path, d->target) &&
                g->data[k]->sequence_number <= g->deletes[i]->sequence_number) {
                for (int r = 0; r < d->n_rows; r++) {
                    drop(&seen->rows, d->rows[r]);
                }
            }
        }
    }
}

static void check_total(const tarn_snapshot *s, const char *key, int64_t want) {
    tarn_str text;
    int64_t n = -1;
    if (properties_get(&s->summary, key, &text) && (!str_to_i64(text, &n) || n != want)) {
        sim_fail("snapshot %lld says %s=%.*s, and it is %lld", (long long)s->snapshot_id, key,
                 STR_ARG(text), (long long)want);
    }
    if (n < 0) {
        sim_fail("snapshot %lld lacks %s", (long long)s->snapshot_id, key);
    }
}

static void check_totals(const tarn_snapshot *s, const gathered *g) {
    int64_t records = 0, positions = 0, bytes = 0;
    for (int i = 0; i < g->n_data; i++) {
        records += g->data[i]->file.record_count;
        bytes += g->data[i]->file.size_bytes;
    }
    for (int i = 0; i < g->n_deletes; i++) {
        const tarn_file *f = &g->deletes[i]->file;
        positions += f->record_count;
        bytes += f->format == TARN_FORMAT_PUFFIN ? f->content_size : f->size_bytes;
    }
    check_total(s, "total-records", records);
    check_total(s, "total-data-files", g->n_data);
    check_total(s, "total-delete-files", g->n_deletes);
    check_total(s, "total-position-deletes", positions);
    check_total(s, "total-files-size", bytes);
}

static int compare_row_ids(const void *a, const void *b) {
    const tarn_entry *x = *(const tarn_entry *const *)a;
    const tarn_entry *y = *(const tarn_entry *const *)b;
    return x->file.first_row_id < y->file.first_row_id   ? -1
           : x->file.first_row_id > y->file.first_row_id ? 1
                                                         : 0;
}

static void check_row_ids(const tarn_metadata *m, const tarn_snapshot *s, gathered *g) {
    if (m->format_version < 3) {
        return;
    }
    qsort(g->data, (size_t)g->n_data, sizeof g->data[0], compare_row_ids);
    for (int i = 0; i < g->n_data; i++) {
        const tarn_file *f = &g->data[i]->file;
        int64_t end =
            i > 0 ? g->data[i - 1]->file.first_row_id + g->data[i - 1]->file.record_count : 0;
        if (f->first_row_id < end || f->first_row_id + f->record_count > m->next_row_id) {
            sim_fail("row ids of %.*s overlap others' in snapshot %lld", STR_ARG(f->path),
                     (long long)s->snapshot_id);
        }
    }
}

/* Rows that are new, or went, against the parent. */
static void check_steps(seen_snapshot *seen, const seen_snapshot *parent, int branch) {
    for (int row = 1; row < model.n_rows; row++) {
        sim_op *op = &model.ops[model.row_op[row]];
        bool before = parent != NULL && has(&parent->rows, row);
        bool after = has(&seen->rows, row);
        if (after && !before && op->branch != branch) {
            sim_fail("row %d of commit %d of %s is on another branch", row, op->number, op->client);
        }
        if (after && !before) {
            if (has(&model.gone, row) || op->state == OP_NEW) {
                sim_fail("row %d of commit %d of %s %s", row, op->number, op->client,
                         op->state == OP_NEW ? "was never sent" : "came back");
            }
            if (op->snapshot_id != TARN_NO_SNAPSHOT && op->snapshot_id != seen->id) {
                sim_fail("commit %d of %s came in pieces, or twice", op->number, op->client);
            }
            op->snapshot_id = seen->id;
        } else if (before && !after) {
            if (!model.may_go[row]) {
                sim_fail("row %d of commit %d of %s was lost in snapshot %lld", row, op->number,
                         op->client, (long long)seen->id);
            }
            put(&model.gone, row);
        }
    }
    for (int i = 1; i < model.n_ops; i++) {
        const sim_op *op = &model.ops[i];
        for (int k = 0; op->snapshot_id == seen->id && k < op->n_rows; k++) {
            if (!has(&seen->rows, op->rows[k])) {
                sim_fail("half of commit %d of %s is there", op->number, op->client);
            }
        }
        if (op->snapshot_id == seen->id && op->kills > 0 && has(&seen->rows, op->kills)) {
            sim_fail("commit %d of %s came without its delete", op->number, op->client);
        }
    }
}

static int branch_of(const tarn_metadata *m, const tarn_snapshot *s) {
    int branch = 0; /* what a branch began with is main's */
    while (branch < SIM_BRANCHES - 1 &&
           (sim_head(m, branch) == NULL ||
            !metadata_is_ancestor(m, sim_head(m, branch)->snapshot_id, s->snapshot_id))) {
        branch++;
    }
    return branch;
}

static void look_at(const tarn_metadata *m, const tarn_snapshot *s) {
    static gathered g;
    seen_snapshot *seen = ARENA_NEW(&SIM.arena, seen_snapshot);
    const seen_snapshot *parent = find_seen(s->parent_id);
    need(seen != NULL);
    seen->id = s->snapshot_id;
    seen->parent_id = s->parent_id;
    seen->sequence_number = s->sequence_number;
    map_init(&seen->paths, &SIM.arena);
    gather(m, seen, s, &g);
    count_rows(seen, &g);
    check_totals(s, &g);
    check_row_ids(m, s, &g);
    check_steps(seen, parent, branch_of(m, s));
    if (parent != NULL && s->sequence_number <= parent->sequence_number) {
        sim_fail("snapshot %lld has sequence number %lld after %lld", (long long)s->snapshot_id,
                 (long long)s->sequence_number, (long long)parent->sequence_number);
    }
    if (m->format_version >= 3) {
        seen->end_row_id = s->first_row_id + s->added_rows;
        if (parent != NULL && s->first_row_id < parent->end_row_id) {
            sim_fail("row ids of snapshot %lld begin before those of its parent end",
                     (long long)s->snapshot_id);
        }
    }
    map_entry *e = map_put(&model.snapshots, id_key(&seen->id), NULL);
    need(e != NULL);
    e->value.ptr = seen;
}

/* ---- a new version ---- */

/* Also where the ones between have expired. */
static bool comes_from(int64_t id, int64_t ancestor_id) {
    const seen_snapshot *seen = find_seen(id);
    while (seen != NULL && seen->id != ancestor_id) {
        seen = find_seen(seen->parent_id);
    }
    return seen != NULL;
}

static void follow(const tarn_metadata *before, const tarn_metadata *m) {
    if (!str_eq(before->table_uuid, m->table_uuid)) {
        sim_fail("the table became another");
    }
    if (m->last_sequence_number < before->last_sequence_number ||
        m->next_row_id < before->next_row_id || m->last_updated_ms < before->last_updated_ms) {
        sim_fail("numbers of the table went back");
    }
    for (int i = 0; i < SIM_BRANCHES; i++) {
        const tarn_snapshot *main_was = sim_head(before, 0);
        const tarn_snapshot *was = sim_head(before, i), *is = sim_head(m, i);
        if (was == NULL && is != NULL && main_was != NULL &&
            !comes_from(is->snapshot_id, main_was->snapshot_id)) {
            sim_fail("branch %.*s does not begin at main's head %lld", STR_ARG(sim_branch(i)),
                     (long long)main_was->snapshot_id);
        }
        if (was != NULL && (is == NULL || !comes_from(is->snapshot_id, was->snapshot_id))) {
            sim_fail("branch %.*s: its head %lld is no longer part of it", STR_ARG(sim_branch(i)),
                     (long long)was->snapshot_id);
        }
    }
}

void sim_saw_version(tarn_str location) {
    tarn_table_version *version = NULL;
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = catalog_read_version(SIM.env, SIM.disk, location, &version, &err);
    if (code != TARN_OK) {
        sim_fail("version %.*s became current and cannot be read: %s", STR_ARG(location),
                 err.message);
    }
    const tarn_metadata *m = version->metadata;
    sim_trace("version %.*s is current: snapshot %lld of %d", STR_ARG(location),
              (long long)m->current_snapshot_id, m->n_snapshots);
    for (int32_t i = 0; i < m->n_snapshots; i++) {
        if (find_seen(m->snapshots[i]->snapshot_id) == NULL) {
            look_at(m, m->snapshots[i]);
        }
    }
    if (model.now != NULL) {
        follow(model.now->metadata, m);
    }
    table_version_release(model.now);
    model.now = version;
    for (int i = 0; i < SIM_BRANCHES; i++) {
        if (sim_head(m, i) != NULL) {
            model.heads[i] = find_seen(sim_head(m, i)->snapshot_id)->rows;
        }
    }
    for (int i = 1; i < model.n_ops; i++) {
        check_op(&model.ops[i]);
    }
    SIM.swaps++;
}

/* vN of the table's metadata folder. */
static int64_t version_number(tarn_str path) {
    size_t slash;
    int64_t n = -1;
    if (!str_find_last_char(path, '/', &slash) || slash + 2 > path.len ||
        path.data[slash + 1] != 'v' || !str_ends_with(path, STR(".metadata.json"))) {
        return -1;
    }
    tarn_str name = str_from(path, slash + 2);
    size_t dot;
    return str_find_char(name, '.', &dot) && str_to_i64(str_sub(name, 0, dot), &n) ? n : -1;
}

void sim_saw_created(tarn_str path) {
    int64_t n = SIM.plan.kind == SIM_DIR ? version_number(path) : -1;
    if (n > 0 && (model.now == NULL || n > version_number(model.now->metadata_location))) {
        sim_saw_version(path);
    }
}

void sim_saw_removed(tarn_str path) {
    const tarn_metadata *m = model.now != NULL ? model.now->metadata : NULL;
    if (m != NULL && str_eq(path, model.now->metadata_location)) {
        sim_fail("the current version was removed");
    }
    for (int32_t i = 0; m != NULL && i < m->n_snapshots; i++) {
        if (map_find(&find_seen(m->snapshots[i]->snapshot_id)->paths, path) != NULL) {
            sim_fail("%.*s was removed, which snapshot %lld lives by", STR_ARG(path),
                     (long long)m->snapshots[i]->snapshot_id);
        }
    }
}

void sim_saw_read(int64_t snapshot_id, int64_t n_files) {
    const seen_snapshot *seen = find_seen(snapshot_id);
    if (seen == NULL || seen->n_files != n_files) {
        sim_fail("a reader saw %lld files in snapshot %lld, which %s", (long long)n_files,
                 (long long)snapshot_id, seen == NULL ? "never was" : "has others");
    }
}

/* ---- the end ---- */

static tarn_code say_finding(void *ctx, const check_finding *f, tarn_error *err) {
    (void)err;
    if (f->severity == CHECK_ERROR || strcmp(f->rule, "deletes-idle") != 0) {
        sim_trace("%s: %.*s: %.*s", f->rule, STR_ARG(f->place), STR_ARG(f->message));
        *(int *)ctx += 1;
    }
    return TARN_OK;
}

void sim_model_end(void) {
    int findings = 0;
    check_options options = {.found = say_finding, .ctx = &findings};
    check_counts counts;
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = check_table(SIM.env, SIM.disk, model.now->metadata,
                                 model.now->metadata_location, &options, &counts, &err);
    if (code != TARN_OK || findings > 0) {
        sim_fail("the check of the table found %d things", findings);
    }
    for (int i = 1; i < model.n_ops; i++) {
        SIM.open += model.ops[i].state == OP_SENT;
    }
    table_version_release(model.now);
    model.now = NULL;
}
