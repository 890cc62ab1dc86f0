/* Goal: a commit that replaces vectors writes only those delete manifests anew that held them, lays
 * old entries apart from new ones, and reads none that it knows to hold nothing of what goes; after
 * however many commits every data file has the vector that was given last, with the numbers of
 * that commit, and the manifests stay few.
 * Method: made-up files with vectors; what the head's manifests hold is compared with a model. */
#include "fail_alloc.h"
#include "unit/write/commit/commit_case.h"

static tarn_error err;

#define MAX_FILES 4000

typedef struct given { /* a data file's vector */
    tarn_file vector;  /* path.data NULL: none */
    int64_t sequence_number, snapshot_id;
    bool seen;
} given;

typedef struct model {
    table_case c;
    tarn_map by_path; /* of data files: index */
    tarn_file data[MAX_FILES];
    given given[MAX_FILES];
    int32_t n;
    int32_t turn;
    int64_t head;
    int32_t replaced; /* vectors that the last commit replaced or removed */
    commit_memory *memory;
    fail_alloc *plan; /* NULL, or: allocation number fail_at of the commit fails */
    uint64_t fail_at;
} model;

static void begin(model *t, tarn_env *env, const char *const *properties) {
    memset(t, 0, sizeof *t);
    case_open(&t->c, env, CASE_DIR_MEMORY);
    case_table(&t->c, 3, "p int, v string", NULL, properties);
    map_init(&t->by_path, &t->c.arena);
    t->head = TARN_NO_SNAPSHOT;
    t->memory = commit_memory_new(env);
}

static void end(model *t) {
    commit_memory_free(t->memory);
    case_done(&t->c);
}

/* Numbers of n data files that are new. */
static int32_t add_files(model *t, int32_t n) {
    int32_t first = t->n;
    tarn_file like = commit_file(&t->c, "f", 1, 10);
    assert_true(t->n + n <= MAX_FILES);
    for (; t->n < first + n; t->n++) {
        t->data[t->n] = like;
        t->data[t->n].path = str_of(arena_printf(&t->c.arena, "%.*s-%d", STR_ARG(like.path), t->n));
        map_put(&t->by_path, t->data[t->n].path, NULL)->value.i64 = t->n;
    }
    return first;
}

/* Adds the data files from first_new on, and gives each of these a new vector. */
static tarn_code give(model *t, int32_t first_new, const int32_t *to, int32_t n,
                      commit_memory *memory) {
    commit_outcome outcome;
    tarn_arena arena;
    arena_init(&arena, t->c.env);
    tarn_file *vectors = ARENA_ARRAY(&arena, tarn_file, (size_t)n + 1);
    tarn_entry *old = ARENA_ARRAY(&arena, tarn_entry, (size_t)n + 1);
    char *name = arena_printf(&t->c.arena, "v%d", t->turn++);
    tarn_file like = commit_file(&t->c, name, 1, 1);
    commit_request r = commit_of(COMMIT_ROW_DELTA, &t->data[first_new], t->n - first_new);
    for (int32_t i = 0; i < n; i++) {
        vectors[i] = like;
        vectors[i].content = TARN_CONTENT_POSITION_DELETES;
        vectors[i].format = TARN_FORMAT_PUFFIN;
        vectors[i].n_value_counts = vectors[i].n_null_counts = 0;
        vectors[i].n_lower = vectors[i].n_upper = 0;
        vectors[i].content_offset = 4 + 10 * i;
        vectors[i].content_size = 10;
        vectors[i].referenced_data_file = t->data[to[i]].path;
        if (t->given[to[i]].vector.path.data != NULL) {
            old[r.n_removed_deletes++] = commit_entry(t->given[to[i]].vector);
        }
    }
    r.added_deletes = vectors;
    r.n_added_deletes = n;
    r.removed_deletes = old;
    r.merge = true;
    r.memory = memory;
    if (t->plan != NULL) {
        atomic_store(&t->plan->count, 0);
        t->plan->fail_at = t->fail_at;
    }
    tarn_code code = commit_now(&t->c, t->c.catalog, &r, &outcome, &err);
    if (t->plan != NULL) {
        t->plan->fail_at = 0;
    }
    for (int32_t i = 0; i < n && code == TARN_OK; i++) {
        tarn_table_version *v = case_load(&t->c);
        t->head = outcome.snapshot_id;
        t->given[to[i]] =
            (given){vectors[i], v->metadata->last_sequence_number, outcome.snapshot_id, false};
        t->replaced = r.n_removed_deletes;
        table_version_release(v);
    }
    arena_release(&arena);
    return code;
}

/* Takes the data file away. */
static void take(model *t, int32_t at) {
    commit_outcome outcome;
    tarn_entry gone = commit_entry(t->data[at]);
    commit_request r = commit_of(COMMIT_ROW_DELTA, NULL, 0);
    r.removed = &gone;
    r.n_removed = 1;
    r.from_snapshot_id = t->head;
    r.merge = true;
    r.memory = t->memory;
    assert_ok(commit_now(&t->c, t->c.catalog, &r, &outcome, &err));
    t->head = outcome.snapshot_id;
    t->replaced = t->given[at].vector.path.data != NULL;
    memset(&t->given[at], 0, sizeof t->given[at]);
}

/* ---- what the table holds ---- */

typedef struct found {
    tarn_arena arena;
    const tarn_manifest *manifests; /* delete manifests first to last */
    int32_t n;
    int64_t rewritten; /* entries that the head wrote, but new ones */
} found;

static void check_live(model *t, const tarn_entry *e) {
    const map_entry *named = map_find(&t->by_path, e->file.referenced_data_file);
    assert_non_null(named);
    given *g = &t->given[named->value.i64];
    assert_false(g->seen);
    g->seen = true;
    assert_true(str_eq(e->file.path, g->vector.path));
    assert_int_equal(e->file.content_offset, g->vector.content_offset);
    assert_int_equal(e->sequence_number, g->sequence_number);
    assert_int_equal(e->file_sequence_number, g->sequence_number);
    assert_int_equal(e->snapshot_id, g->snapshot_id);
}

static void check_manifest(model *t, const tarn_metadata *m, const tarn_manifest *manifest,
                           found *f, int32_t *n_deleted) {
    manifest_read_options options = {.want = MANIFEST_WANT_REST};
    manifest_entries entries;
    io_source *source;
    int32_t counts[3] = {0, 0, 0};
    int64_t least = INT64_MAX;
    assert_ok(store_open(t->c.catalog->store, manifest->path, manifest->length, &source, &err));
    assert_ok(manifest_read(&f->arena, source, m, manifest, &options, &entries, &err));
    source->close(source);
    for (int64_t i = 0; i < entries.count; i++) {
        const tarn_entry *e = &entries.items[i];
        counts[e->status]++;
        if (e->status != TARN_ENTRY_DELETED) {
            check_live(t, e);
            least = e->sequence_number < least ? e->sequence_number : least;
        }
        *n_deleted += e->status == TARN_ENTRY_DELETED && e->snapshot_id == t->head;
    }
    assert_int_equal(counts[TARN_ENTRY_ADDED], manifest->added_files);
    assert_int_equal(counts[TARN_ENTRY_EXISTING], manifest->existing_files);
    assert_int_equal(counts[TARN_ENTRY_DELETED], manifest->deleted_files);
    if (least < INT64_MAX) {
        assert_int_equal(least, manifest->min_sequence_number);
    }
    if (manifest->added_snapshot_id == t->head) {
        f->rewritten += manifest->existing_files + manifest->deleted_files;
    }
}

/* Compares all of it; out is the caller's. */
static void look(model *t, found *out) {
    tarn_table_version *v = case_load(&t->c);
    const tarn_snapshot *s = metadata_current_snapshot(v->metadata);
    io_source *source;
    const tarn_manifest *all;
    int32_t n, n_deleted = 0;
    memset(out, 0, sizeof *out);
    arena_init(&out->arena, t->c.env);
    assert_int_equal(s->snapshot_id, t->head);
    assert_ok(store_open(t->c.catalog->store, s->manifest_list, -1, &source, &err));
    assert_ok(manifest_list_read(&out->arena, source, &all, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < t->n; i++) {
        t->given[i].seen = false;
    }
    for (int32_t i = 0; i < n; i++) {
        if (all[i].is_deletes) {
            out->manifests = out->n == 0 ? &all[i] : out->manifests;
            out->n++;
            check_manifest(t, v->metadata, &all[i], out, &n_deleted);
        }
    }
    for (int32_t i = 0; i < t->n; i++) {
        assert_true(t->given[i].seen == (t->given[i].vector.path.data != NULL));
    }
    assert_int_equal(n_deleted, t->replaced);
    table_version_release(v);
}

/* Gives the next n data files, which are new, one vector each. */
static void give_new(model *t, int32_t n) {
    static int32_t to[MAX_FILES];
    int32_t first = add_files(t, n);
    for (int32_t i = 0; i < n; i++) {
        to[i] = first + i;
    }
    assert_ok(give(t, first, to, n, t->memory));
}

static void give_one(model *t, int32_t to) {
    assert_ok(give(t, t->n, &to, 1, t->memory));
}

/* ---- what is written anew ---- */

/* Live entries of the delete manifests in their order, as text. */
static void check_sizes(model *t, const char *want) {
    found f;
    char text[512] = "";
    size_t len = 0;
    look(t, &f);
    for (int32_t i = 0; i < f.n; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%d/%d", i > 0 ? " " : "",
                                f.manifests[i].added_files + f.manifests[i].existing_files,
                                (int)f.manifests[i].min_sequence_number);
    }
    assert_string_equal(text, want);
    arena_release(&f.arena);
}

static void test_regroup_by_age(void **state) {
    static model t;
    static const int32_t OF_EACH[] = {1, 1101, 1601};
    tarn_env *env = test_env();
    (void)state;
    begin(&t, env, NULL);
    give_new(&t, 1100);
    give_new(&t, 500);
    give_new(&t, 300);
    check_sizes(&t, "300/3 500/2 1100/1");
    assert_ok(give(&t, t.n, OF_EACH, 3, t.memory)); /* all three are written anew */
    check_sizes(&t, "3/4 256/3 512/2 1129/1");
    give_one(&t, 1101); /* the newest manifest alone */
    check_sizes(&t, "1/5 2/4 256/3 512/2 1129/1");
    give_one(&t, 0); /* the oldest alone */
    check_sizes(&t, "1/6 256/1 512/1 360/1 1/5 2/4 256/3 512/2");
    give_one(&t, 1102); /* one of 512 */
    check_sizes(&t, "1/7 256/2 255/2 1/6 256/1 512/1 360/1 1/5 2/4 256/3");
    take(&t, 1101); /* a data file takes its vector along */
    check_sizes(&t, "0/8 1/7 256/2 255/2 1/6 256/1 512/1 360/1 2/4 256/3");
    end(&t);
    test_env_done(env);
}

/* Where few manifests are enough for merging, they are not made. */
static void test_regroup_merged(void **state) {
    static const char *const properties[] = {"commit.manifest.min-count-to-merge", "4", NULL};
    static const char *const apart[] = {"commit.manifest-merge.enabled", "false", NULL};
    static model t;
    tarn_env *env = test_env();
    (void)state;
    begin(&t, env, properties);
    give_new(&t, 1000);
    give_one(&t, 1);
    check_sizes(&t, "1/2 999/1");
    give_one(&t, 2);
    check_sizes(&t, "1/3 998/1 1/2");
    give_one(&t, 3);
    check_sizes(&t, "1000/1");
    end(&t);
    begin(&t, env, apart);
    give_new(&t, 1000);
    give_one(&t, 1);
    check_sizes(&t, "1/2 999/1");
    end(&t);
    test_env_done(env);
}

/* A manifest that was read and kept is not read again, also where the store could not give it. */
static void test_regroup_memory(void **state) {
    static model t;
    found f;
    tarn_buf bytes;
    tarn_env *env = test_env();
    int32_t at = 0;
    (void)state;
    begin(&t, env, NULL);
    give_new(&t, 10);
    give_new(&t, 10);
    give_one(&t, 0); /* of the first ten, so that it knows the others */
    look(&t, &f);
    buf_init(&bytes, env, 0);
    const tarn_manifest *others = &f.manifests[2];
    assert_int_equal(others->added_files, 10);
    assert_ok(store_get(t.c.catalog->store, others->path, 1 << 20, &bytes, &err));
    assert_ok(store_remove(t.c.catalog->store, others->path, &err));
    give_one(&t, 0);
    assert_code(give(&t, t.n, &at, 1, NULL), TARN_NOT_FOUND);
    err_reset(&err);
    at = 10; /* which is in there */
    assert_code(give(&t, t.n, &at, 1, t.memory), TARN_NOT_FOUND);
    err_reset(&err);
    /* a vector that is not replaced would be a second one */
    t.given[10].vector.path = STR_NULL;
    assert_code(give(&t, t.n, &at, 1, t.memory), TARN_NOT_FOUND);
    err_reset(&err);
    assert_ok(store_put(t.c.catalog->store, others->path, STORE_CREATE, buf_str(&bytes), &err));
    assert_code(give(&t, t.n, &at, 1, t.memory), TARN_CONFLICT);
    err_reset(&err);
    buf_release(&bytes);
    arena_release(&f.arena);
    end(&t);
    test_env_done(env);
}

/* ---- streams ---- */

static uint32_t draw(uint64_t *seed, uint32_t below) {
    *seed = *seed * UINT64_C(6364136223846793005) + 1;
    return (uint32_t)(*seed >> 33) % below;
}

/* A data file each, and new vectors for some of the newest and hardly any old ones. Tells how many
 * entries were written anew by the last half of the commits. */
static int64_t run_stream(model *t, int32_t n, int32_t at_most) {
    uint64_t seed = 11;
    int64_t rewritten = 0;
    for (int32_t turn = 0; turn < n; turn++) {
        int32_t to[32];
        int32_t n_to = 0;
        int32_t first = add_files(t, 1);
        found f;
        for (int32_t back = 0; back < first && n_to < 32; back += 1 + back / 8) {
            int32_t at = first - 1 - back - (int32_t)draw(&seed, 1 + (uint32_t)back / 8);
            if (at >= 0 && draw(&seed, 1 + (uint32_t)back / 4) < 4 &&
                (n_to == 0 || to[n_to - 1] != at)) {
                to[n_to++] = at;
            }
        }
        assert_ok(give(t, first, to, n_to, draw(&seed, 8) > 0 ? t->memory : NULL));
        if (draw(&seed, 8) == 0) {
            take(t, (int32_t)draw(&seed, (uint32_t)t->n));
        }
        if (turn % 16 == 0 || turn >= n / 2) {
            look(t, &f);
            rewritten += turn >= n / 2 ? f.rewritten : 0;
            assert_true(f.n <= at_most);
            arena_release(&f.arena);
        }
    }
    return rewritten;
}

static void test_regroup_stream(void **state) {
    static const char *const counts[] = {"100", "16", "2"};
    static model t;
    int64_t rewritten[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *const properties[] = {"commit.manifest.min-count-to-merge", counts[i], NULL};
        tarn_env *env = test_env();
        begin(&t, env, properties);
        give_new(&t, 2000);
        rewritten[i] = run_stream(&t, 80, atoi(counts[i]));
        end(&t);
        test_env_done(env);
    }
    /* the last one writes everything with every commit */
    assert_true(rewritten[2] > INT64_C(40) * 2000);
    assert_true(rewritten[0] < rewritten[2] / 3 && rewritten[1] < rewritten[2] / 2);
}

/* Whatever allocation fails, in a commit that writes one manifest anew and remembers another. */
static void test_regroup_memory_faults(void **state) {
    static model t;
    bool failed = true;
    (void)state;
    for (uint64_t k = 1; failed; k += k < 40 || test_every() ? 1 : 4) {
        fail_alloc plan;
        int32_t at = 0;
        tarn_env *env = fail_alloc_env(&plan, 0);
        begin(&t, env, NULL);
        give_new(&t, 3);
        give_new(&t, 3);
        t.plan = &plan;
        t.fail_at = k;
        tarn_code code = give(&t, t.n, &at, 1, t.memory);
        failed = atomic_load(&plan.failed);
        if (code == TARN_OK) {
            check_sizes(&t, "1/3 2/1 3/2");
        } else if (!failed || (code != TARN_NOMEM && code != TARN_COMMIT_UNKNOWN)) {
            fail_msg("allocation %d failed: %s", (int)k, err.message);
        }
        err_reset(&err);
        end(&t);
        fail_alloc_done(&plan, env);
        assert_true(failed || k > 200);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regroup_by_age),        cmocka_unit_test(test_regroup_merged),
        cmocka_unit_test(test_regroup_memory),        cmocka_unit_test(test_regroup_stream),
        cmocka_unit_test(test_regroup_memory_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
