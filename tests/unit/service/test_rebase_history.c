/* Goal: a commit that was put on a newer head means by its rows what it meant: the table is as if
 * the commits had been done one after the other.
 * Method: histories made from a seed: two clients make appends, row deletes (position deletes,
 * vectors), updates that write files anew, rewrites, upserts by equality deletes and deletes of
 * whole partitions, some with an append as a second snapshot on the first, each on a head that may
 * be an old one when they send it, alone or in one group. Every file's rows are kept in a list, the
 * table's rows are worked out from the head's entries by the rules of sequence numbers, and
 * compared with a list of rows that commands were done to. A failing seed is printed;
 * TARN_HISTORY_SEED runs it alone, TARN_HISTORIES says how many. */
#include "histories.h"
#include "unit/service/rebase_case.h"

#include <stdlib.h>

#define MAX_ROWS  200
#define MAX_FILES 200
#define KEYS      4
#define PARTS     3
#define STEPS     40
#define CLIENTS   2

typedef struct row {
    int id, key, part;
} row;

typedef struct row_list {
    int n;
    row items[MAX_ROWS];
} row_list;

/* What a file holds: rows; rows of one data file that are gone; a key of a partition. */
typedef struct made_file {
    tarn_file file;
    row_list *rows;
    int key, part;
} made_file;

typedef enum command_kind {
    DO_APPEND,
    DO_DELETE,   /* where key = k */
    DO_UPDATE,   /* set key = k + 1 where key = k */
    DO_REWRITE,  /* a partition's files */
    DO_UPSERT,   /* of one key of a partition */
    DO_DROP_PART /* delete where part = p */
} command_kind;
#define COMMANDS 6

typedef struct live_file {
    tarn_entry entry;
    made_file *made;
    row_list rows; /* without what deletes take */
} live_file;

typedef struct view {
    tarn_arena arena;
    live_file *files; /* data */
    int n_files;
    tarn_entry *deletes;
    int n_deletes;
} view;

typedef struct client {
    late_client late;
    bool open;
    command_kind kind;
    int key, part;
    row_list gone, came; /* by the command, on what it was made on */
    tarn_file added[8], deletes[32];
    tarn_entry removed[64], removed_deletes[32];
    tarn_str referenced[32];
    int64_t sequences[8];
    commit_maker *second; /* NULL, or: of an append on the first */
    commit_request append;
    tarn_file appended;
    row_list more; /* its rows */
} client;

typedef struct history {
    table_case c;
    uint64_t random;
    bool serializable;
    int32_t version;
    made_file files[MAX_FILES];
    int n_files, n_rows;
    row_list now; /* as it must be */
    client clients[CLIENTS];
} history;

static int late_won[COMMANDS], late_lost[COMMANDS], late_seconds; /* over all histories */

static uint32_t chance(history *h, uint32_t n) {
    return history_chance(&h->random, n);
}

/* ---- rows ---- */

static void put_row(row_list *l, row r) {
    assert_true(l->n < MAX_ROWS);
    l->items[l->n++] = r;
}

static bool has_row(const row_list *l, int id) {
    for (int i = 0; i < l->n; i++) {
        if (l->items[i].id == id) {
            return true;
        }
    }
    return false;
}

static bool take_row(row_list *l, int id) {
    for (int i = 0; i < l->n; i++) {
        if (l->items[i].id == id) {
            l->items[i] = l->items[--l->n];
            return true;
        }
    }
    return false;
}

static int compare_rows(const void *a, const void *b) {
    const row *x = a, *y = b;
    return x->id != y->id ? x->id - y->id : x->key - y->key;
}

static void compare_lists(row_list *got, row_list *want) {
    qsort(got->items, (size_t)got->n, sizeof(row), compare_rows);
    qsort(want->items, (size_t)want->n, sizeof(row), compare_rows);
    assert_int_equal(got->n, want->n);
    for (int i = 0; i < got->n; i++) {
        if (compare_rows(&got->items[i], &want->items[i]) != 0 ||
            got->items[i].part != want->items[i].part) {
            fail_msg("row %d of key %d where row %d of key %d should be", got->items[i].id,
                     got->items[i].key, want->items[i].id, want->items[i].key);
        }
    }
}

static made_file *new_file(history *h, int part, int n_rows) {
    char name[32];
    assert_true(h->n_files < MAX_FILES);
    made_file *f = &h->files[h->n_files];
    (void)snprintf(name, sizeof name, "f%d", h->n_files++);
    f->file = commit_file(&h->c, name, part, n_rows > 0 ? n_rows : 1);
    f->part = part;
    f->rows = ARENA_NEW(&h->c.arena, row_list);
    assert_non_null(f->rows);
    return f;
}

static made_file *find_file(history *h, tarn_str path) {
    for (int i = 0; i < h->n_files; i++) {
        if (str_eq(h->files[i].file.path, path)) {
            return &h->files[i];
        }
    }
    fail_msg("%.*s is nobody's", STR_ARG(path));
    return NULL;
}

/* ---- what the table holds ---- */

static bool is_gone(history *h, const view *v, const live_file *f, const row *r) {
    for (int i = 0; i < v->n_deletes; i++) {
        const tarn_entry *d = &v->deletes[i];
        const made_file *m = find_file(h, d->file.path);
        if (d->file.content == TARN_CONTENT_EQUALITY_DELETES
                ? m->part == r->part && m->key == r->key &&
                      d->sequence_number > f->entry.sequence_number
                : str_eq(d->file.referenced_data_file, f->entry.file.path) &&
                      d->sequence_number >= f->entry.sequence_number && has_row(m->rows, r->id)) {
            return true;
        }
    }
    return false;
}

static void read_entries(history *h, view *v, const tarn_metadata *m) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_snapshot *s = metadata_current_snapshot(m);
    const tarn_manifest *manifests;
    io_source *source;
    int32_t n = 0;
    if (s == NULL) {
        return;
    }
    assert_ok(store_open(h->c.catalog->store, s->manifest_list, -1, &source, &err));
    assert_ok(manifest_list_read(&v->arena, source, &manifests, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        manifest_read_options options = {.want = MANIFEST_WANT_ALL, .live_only = true};
        manifest_entries entries;
        assert_ok(store_open(h->c.catalog->store, manifests[i].path, -1, &source, &err));
        assert_ok(manifest_read(&v->arena, source, m, &manifests[i], &options, &entries, &err));
        source->close(source);
        for (int64_t k = 0; k < entries.count; k++) {
            if (manifests[i].is_deletes) {
                v->deletes[v->n_deletes++] = entries.items[k];
            } else {
                v->files[v->n_files++].entry = entries.items[k];
            }
        }
    }
}

static void view_open(history *h, view *v, const tarn_metadata *m) {
    memset(v, 0, sizeof *v);
    arena_init(&v->arena, h->c.env);
    v->files = ARENA_ARRAY(&v->arena, live_file, MAX_FILES / 2);
    v->deletes = ARENA_ARRAY(&v->arena, tarn_entry, MAX_FILES);
    read_entries(h, v, m);
    for (int i = 0; i < v->n_files; i++) {
        live_file *f = &v->files[i];
        f->made = find_file(h, f->entry.file.path);
        for (int k = 0; k < f->made->rows->n; k++) {
            if (!is_gone(h, v, f, &f->made->rows->items[k])) {
                put_row(&f->rows, f->made->rows->items[k]);
            }
        }
    }
}

static void check_table(history *h) {
    static row_list got;
    view v;
    tarn_table_version *version = case_load(&h->c);
    got.n = 0;
    view_open(h, &v, version->metadata);
    for (int i = 0; i < v.n_files; i++) {
        for (int k = 0; k < v.files[i].rows.n; k++) {
            put_row(&got, v.files[i].rows.items[k]);
        }
    }
    compare_lists(&got, &h->now);
    arena_release(&v.arena);
    table_version_release(version);
}

/* ---- what a client makes of what it sees ---- */

static void keep_entry(history *h, tarn_entry *out, const tarn_entry *e) {
    tarn_error err = TARN_ERROR_INIT;
    *out = *e;
    assert_ok(file_copy(&h->c.arena, &e->file, &out->file, &err));
}

static void remove_file(history *h, client *c, const live_file *f) {
    keep_entry(h, &c->removed[c->late.request.n_removed++], &f->entry);
}

/* Rows of one file by position: a file of positions, or the file's one vector, with all that it
 * had. */
static void delete_rows(history *h, client *c, const view *v, const live_file *f,
                        const row_list *rows) {
    commit_request *r = &c->late.request;
    made_file *d = new_file(h, f->made->part, 1);
    char name[32];
    (void)snprintf(name, sizeof name, "f%d", h->n_files - 1);
    *d->rows = *rows;
    for (int i = 0; i < v->n_deletes && h->version >= 3; i++) {
        const tarn_entry *old = &v->deletes[i];
        if (old->file.content == TARN_CONTENT_POSITION_DELETES &&
            str_eq(old->file.referenced_data_file, f->entry.file.path)) {
            const row_list *had = find_file(h, old->file.path)->rows;
            for (int k = 0; k < had->n; k++) {
                put_row(d->rows, had->items[k]);
            }
            keep_entry(h, &c->removed_deletes[r->n_removed_deletes++], old);
        }
    }
    d->file = h->version >= 3 ? commit_vector(&h->c, name, &f->made->file, 4, d->rows->n)
                              : commit_position_file(&h->c, name, &f->made->file, d->rows->n);
    c->deletes[r->n_added_deletes++] = d->file;
    c->referenced[r->n_referenced++] = f->made->file.path;
}

static void add_file(client *c, made_file *f) {
    f->file.record_count = f->rows->n;
    c->added[c->late.request.n_added++] = f->file;
}

static bool matches(const client *c, const row *r) {
    return c->kind == DO_DROP_PART ? r->part == c->part
           : c->kind == DO_UPSERT
               ? r->part == c->part && r->key == c->key
               : (c->kind == DO_DELETE || c->kind == DO_UPDATE) && r->key == c->key;
}

static void make_append(history *h, client *c, int part) {
    made_file *f = new_file(h, part, 3);
    for (uint32_t i = 0, n = 1 + chance(h, 3); i < n; i++) {
        int key = c->kind == DO_UPSERT ? c->key : (int)chance(h, KEYS);
        put_row(f->rows, (row){h->n_rows++, key, part});
        put_row(&c->came, f->rows->items[i]);
    }
    add_file(c, f);
}

static void make_delete(history *h, client *c, const view *v) {
    for (int i = 0; i < v->n_files; i++) {
        const live_file *f = &v->files[i];
        row_list hit = {0};
        for (int k = 0; k < f->rows.n; k++) {
            if (matches(c, &f->rows.items[k])) {
                put_row(&hit, f->rows.items[k]);
                put_row(&c->gone, f->rows.items[k]);
            }
        }
        if (hit.n > 0 && hit.n == f->rows.n) {
            remove_file(h, c, f);
        } else if (hit.n > 0) {
            delete_rows(h, c, v, f, &hit);
        }
    }
}

/* All rows of the files, as they are then, in one new file of their partition. */
static void write_anew(history *h, client *c, const view *v, int part, bool all) {
    made_file *f = NULL;
    for (int i = 0; i < v->n_files; i++) {
        const live_file *old = &v->files[i];
        bool hit = all;
        for (int k = 0; k < old->rows.n; k++) {
            hit |= matches(c, &old->rows.items[k]);
        }
        if (old->made->part != part || !hit || old->rows.n == 0) {
            continue;
        }
        f = f == NULL ? new_file(h, part, 3) : f;
        remove_file(h, c, old);
        for (int k = 0; k < old->rows.n; k++) {
            row r = old->rows.items[k];
            if (matches(c, &r)) {
                put_row(&c->gone, r);
                r.key++;
                put_row(&c->came, r);
            }
            put_row(f->rows, r);
        }
    }
    if (f != NULL) {
        add_file(c, f);
    }
}

static void make_upsert(history *h, client *c) {
    char name[32];
    made_file *d = new_file(h, c->part, 1);
    (void)snprintf(name, sizeof name, "f%d", h->n_files - 1);
    d->file = commit_delete_file(&h->c, name, TARN_CONTENT_EQUALITY_DELETES, c->part, 1);
    d->key = c->key;
    c->deletes[c->late.request.n_added_deletes++] = d->file;
    make_append(h, c, c->part);
}

static void set_kind(history *h, client *c) {
    commit_request *r = &c->late.request;
    if (c->kind == DO_APPEND) {
        r->kind = chance(h, 2) == 0 ? COMMIT_FAST_APPEND : COMMIT_MERGE_APPEND;
    } else if (c->kind == DO_REWRITE) {
        r->kind = COMMIT_OVERWRITE;
        late_origin(&c->late, "replace");
        if (chance(h, 3) > 0) { /* as of what it read */
            c->sequences[0] = metadata_current_snapshot(c->late.base->metadata)->sequence_number;
            c->late.origin.added_sequences = c->sequences;
        }
    } else {
        r->kind = r->n_added_deletes > 0 ? COMMIT_ROW_DELTA : COMMIT_OVERWRITE;
        r->merge = chance(h, 3) == 0;
    }
}

/* false: there is nothing to do. */
static bool make_command(history *h, client *c) {
    commit_request *r = &c->late.request;
    view v;
    view_open(h, &v, c->late.base->metadata);
    if (c->kind == DO_APPEND) {
        make_append(h, c, c->part);
    } else if (c->kind == DO_UPSERT) {
        make_upsert(h, c);
    } else if (c->kind == DO_REWRITE) {
        write_anew(h, c, &v, c->part, true);
    } else if (c->kind == DO_UPDATE) {
        for (int part = 0; part < PARTS; part++) {
            write_anew(h, c, &v, part, false);
        }
    } else {
        make_delete(h, c, &v);
    }
    r->added = c->added;
    r->added_deletes = c->deletes;
    r->removed = c->removed;
    r->removed_deletes = c->removed_deletes;
    r->referenced = c->referenced;
    arena_release(&v.arena);
    return r->n_added + r->n_added_deletes + r->n_removed > 0;
}

static void make_second(history *h, client *c) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_change_set step;
    const tarn_metadata *m;
    made_file *f = new_file(h, (int)chance(h, PARTS), 1);
    put_row(f->rows, (row){h->n_rows++, (int)chance(h, KEYS), f->part});
    put_row(&c->more, f->rows->items[0]);
    c->appended = f->file;
    c->append =
        commit_of(chance(h, 2) == 0 ? COMMIT_FAST_APPEND : COMMIT_MERGE_APPEND, &c->appended, 1);
    tarn_change_set *set = &c->late.sent.set;
    tarn_change *changes = ARENA_ARRAY(&h->c.arena, tarn_change, 4);
    assert_ok(
        change_apply(&h->c.arena, c->late.base->metadata, set, env_now_ms(h->c.env), &m, &err));
    assert_ok(commit_maker_new(h->c.env, h->c.catalog->store, &c->append, &c->second, &err));
    assert_ok(commit_maker_attempt(c->second, m, &step, &err));
    assert_int_equal(step.n_changes, 2);
    memcpy(changes, set->changes, 2 * sizeof *changes);
    memcpy(changes + 2, step.changes, 2 * sizeof *changes);
    set->changes = changes;
    set->n_changes = 4;
}

static void end_command(client *c) {
    commit_maker_end(c->second, TARN_OUTCOME_UNKNOWN);
    late_done(&c->late);
}

static void begin_command(history *h, client *c) {
    memset(c, 0, sizeof *c);
    c->kind = (command_kind)chance(h, COMMANDS);
    c->key = (int)chance(h, KEYS);
    c->part = (int)chance(h, PARTS);
    late_open(&c->late, &h->c);
    if (!make_command(h, c)) {
        late_done(&c->late);
        return;
    }
    set_kind(h, c);
    late_make(&c->late);
    if (chance(h, 4) == 0) {
        make_second(h, c);
    }
    c->open = true;
}

/* ---- what it must mean ---- */

/* As the command, done now. */
static void do_command(history *h, const client *c) {
    row_list was = h->now;
    for (int i = 0; i < was.n; i++) {
        row r = was.items[i];
        if (matches(c, &r)) {
            assert_true(take_row(&h->now, r.id));
            if (c->kind == DO_UPDATE) {
                r.key++;
                put_row(&h->now, r);
            }
        }
    }
    for (int i = 0; i < c->came.n && c->kind != DO_UPDATE; i++) {
        put_row(&h->now, c->came.items[i]);
    }
}

/* As what it did to the rows that it saw, which nobody else changed since. */
static void do_rows(history *h, const client *c) {
    for (int i = 0; i < c->gone.n; i++) {
        assert_true(take_row(&h->now, c->gone.items[i].id));
    }
    for (int i = 0; i < c->came.n; i++) {
        put_row(&h->now, c->came.items[i]);
    }
}

static void take_answer(history *h, client *c, bool late) {
    tarn_code code = c->late.job.code;
    if (code != TARN_OK && code != TARN_CONFLICT) {
        fail_msg("%s: %s", tarn_code_name(code), c->late.job.err.message);
    }
    assert_true(code == TARN_OK || late);
    if (code == TARN_OK && (h->serializable || c->kind == DO_UPSERT || c->kind == DO_APPEND)) {
        do_command(h, c);
    } else if (code == TARN_OK) {
        do_rows(h, c);
    }
    for (int i = 0; i < c->more.n && code == TARN_OK; i++) {
        put_row(&h->now, c->more.items[i]);
    }
    if (late) {
        *(code == TARN_OK ? &late_won[c->kind] : &late_lost[c->kind]) += 1;
    }
    late_seconds += late && code == TARN_OK && c->more.n > 0;
    end_command(c);
    c->open = false;
}

static void send_one(history *h, client *c) {
    tarn_table_version *version = case_load(&h->c);
    bool late =
        version->metadata->current_snapshot_id != c->late.base->metadata->current_snapshot_id;
    table_version_release(version);
    late_run(&h->c, late_send(&c->late));
    take_answer(h, c, late);
}

/* Both in one group: the second is put on what no document has yet. */
static void send_both(history *h) {
    commit_job *first = late_send(&h->clients[0].late);
    first->next = late_send(&h->clients[1].late);
    late_run(&h->c, first);
    take_answer(h, &h->clients[0], true);
    take_answer(h, &h->clients[1], true);
}

static void run_history(uint64_t seed) {
    static history h;
    static const char *const snapshot[] = {"write.delete.isolation-level",
                                           "snapshot",
                                           "write.update.isolation-level",
                                           "snapshot",
                                           "write.merge.isolation-level",
                                           "snapshot",
                                           "commit.manifest.min-count-to-merge",
                                           "3",
                                           NULL};
    tarn_env *env = test_env();
    print_message("history %llu\n", (unsigned long long)seed);
    memset(&h, 0, sizeof h);
    h.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    h.serializable = chance(&h, 2) == 0;
    h.version = 2 + (int32_t)chance(&h, 2);
    case_open(&h.c, env, CASE_DIR_MEMORY);
    case_table(&h.c, h.version, "p int, v string", "p", h.serializable ? NULL : snapshot);
    for (int step = 0; step < STEPS; step++) {
        client *c = &h.clients[chance(&h, CLIENTS)];
        if (!c->open) {
            begin_command(&h, c);
        } else if (h.clients[0].open && h.clients[1].open && chance(&h, 4) == 0) {
            send_both(&h);
        } else {
            send_one(&h, c);
        }
        check_table(&h);
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (h.clients[i].open) {
            end_command(&h.clients[i]);
        }
    }
    case_done(&h.c);
    test_env_done(env);
}

static void test_rebase_histories(void **state) {
    (void)state;
    uint64_t n = run_histories(run_history, 60);
    for (int i = 0; i < COMMANDS && n >= 60; i++) { /* each was put on a newer head, and refused */
        print_message("command %d: %d late ones done, %d refused\n", i, late_won[i], late_lost[i]);
        assert_true(late_won[i] > 0 && (late_lost[i] > 0 || i == DO_APPEND));
    }
    print_message("%d late ones of two snapshots done\n", late_seconds);
    assert_true(late_seconds > 0 || n < 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rebase_histories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
