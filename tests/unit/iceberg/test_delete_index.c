/* Goal: each data file gets the deletes that the spec's "Scan Planning" gives it, and no others.
 * Method: random entries of two partitioned specs and an unpartitioned one, every answer against
 * the rules said plainly; two vectors of one file; memory that fails. */
#include "torture.h"

#include "iceberg/delete_index.h"

#include "base/limits.h"

#define FILES   12
#define DELETES 60

static tarn_error err;

static const char METADATA[] =
    "{\"format-version\":2,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
    "\"location\":\"/t\",\"last-sequence-number\":34,\"last-updated-ms\":1602638573590,"
    "\"last-column-id\":2,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\",\"schema-id\":"
    "0,"
    "\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"int\"},"
    "{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":\"string\"}]}],"
    "\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]},"
    "{\"spec-id\":1,\"fields\":[{\"name\":\"a\",\"transform\":\"identity\",\"source-id\":1,"
    "\"field-id\":1000}]},{\"spec-id\":2,\"fields\":[{\"name\":\"b\",\"transform\":\"identity\","
    "\"source-id\":2,\"field-id\":1001},{\"name\":\"a\",\"transform\":\"identity\","
    "\"source-id\":1,\"field-id\":1002}]}],"
    "\"last-partition-id\":1002,\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,"
    "\"fields\":[]}],\"properties\":{}}";

typedef struct index_case {
    tarn_env *env;
    tarn_arena arena;
    const tarn_metadata *m;
    tarn_entry data[FILES];
    tarn_entry deletes[DELETES];
    const tarn_entry *pointers[DELETES];
    bool pruned[DELETES]; /* its bounds are below those of all data */
} index_case;

static void open_case(index_case *c, tarn_env *env) {
    memset(c, 0, sizeof *c);
    c->env = env;
    arena_init(&c->arena, c->env);
    assert_ok(metadata_parse(&c->arena, str_of(METADATA), "m", &c->m, &err));
}

static void place_file(index_case *c, tarn_file *f) {
    static const char *const names[] = {"x", "xy", ""};
    tarn_value *tuple = ARENA_ARRAY(&c->arena, tarn_value, 2);
    f->spec_id = rand() % 3;
    f->n_partition = f->spec_id;
    f->partition = tuple;
    tarn_value number = value_i32(type_primitive(TARN_INT), rand() % 2);
    if (rand() % 4 == 0) {
        number = value_null(type_primitive(TARN_INT));
    }
    tuple[0] = number;
    if (f->spec_id == 2) {
        tuple[0] = value_str(type_primitive(TARN_STRING), str_of(names[rand() % 3]));
        tuple[1] = number;
    }
}

static tarn_str name_of(index_case *c, const char *prefix, int i) {
    return str_of(arena_printf(&c->arena, "%s%d", prefix, i));
}

static void set_bounds(index_case *c, tarn_file *f, int32_t id, tarn_str lower, tarn_str upper) {
    metric_bound *bounds = ARENA_ARRAY(&c->arena, metric_bound, 2);
    metric_count *nulls = ARENA_ARRAY(&c->arena, metric_count, 1);
    bounds[0] = (metric_bound){id, lower};
    bounds[1] = (metric_bound){id, upper};
    nulls[0] = (metric_count){id, 0};
    f->lower = bounds;
    f->upper = bounds + 1;
    f->null_counts = nulls;
    f->n_lower = f->n_upper = f->n_null_counts = 1;
}

static void make_delete(index_case *c, int i, bool vectors) {
    static const int32_t ids[] = {1, 2};
    tarn_entry *e = &c->deletes[i];
    tarn_file *f = &e->file;
    const tarn_entry *about = &c->data[rand() % FILES];
    e->status = rand() % 8 == 0 ? TARN_ENTRY_DELETED : TARN_ENTRY_ADDED;
    e->sequence_number = rand() % 6;
    f->path = name_of(c, "delete", i);
    place_file(c, f);
    if (rand() % 2 == 0) { /* else few would meet */
        f->spec_id = about->file.spec_id;
        f->n_partition = about->file.n_partition;
        f->partition = about->file.partition;
    }
    f->content = rand() % 2 == 0 ? TARN_CONTENT_EQUALITY_DELETES : TARN_CONTENT_POSITION_DELETES;
    if (f->content == TARN_CONTENT_EQUALITY_DELETES) {
        f->equality_ids = ids;
        f->n_equality_ids = 1 + rand() % 2;
        c->pruned[i] = rand() % 3 == 0;
        if (c->pruned[i]) {
            set_bounds(c, f, 1, str_make("\x01\0\0\0", 4), str_make("\x05\0\0\0", 4));
        }
        return;
    }
    const int kind = rand() % (vectors ? 4 : 3);
    if (kind == 3 && i < FILES) { /* at most one for each data file */
        f->format = TARN_FORMAT_PUFFIN;
        f->referenced_data_file = c->data[i].file.path;
    } else if (kind == 2) {
        f->referenced_data_file = about->file.path;
    } else if (kind == 1) {
        set_bounds(c, f, 2147483546, about->file.path, about->file.path);
    }
}

static void fill_case(index_case *c, bool vectors) {
    for (int i = 0; i < FILES; i++) {
        c->data[i].sequence_number = rand() % 6;
        c->data[i].file.path = name_of(c, "data", i);
        place_file(c, &c->data[i].file);
        set_bounds(c, &c->data[i].file, 1, str_make("\x10\0\0\0", 4), str_make("\x20\0\0\0", 4));
    }
    for (int i = 0; i < DELETES; i++) {
        make_delete(c, i, vectors);
        c->pointers[i] = &c->deletes[i];
    }
}

static bool same_place(const tarn_file *a, const tarn_file *b) {
    bool same = a->spec_id == b->spec_id;
    for (int32_t i = 0; same && i < a->n_partition; i++) {
        same = value_eq(&a->partition[i], &b->partition[i]);
    }
    return same;
}

/* The rules, one after the other. */
static bool applies(const index_case *c, int i, const tarn_entry *data) {
    const tarn_entry *d = &c->deletes[i];
    if (d->status == TARN_ENTRY_DELETED) {
        return false;
    }
    if (d->file.content == TARN_CONTENT_EQUALITY_DELETES) {
        return data->sequence_number < d->sequence_number && !c->pruned[i] &&
               (d->file.spec_id == 0 || same_place(&d->file, &data->file));
    }
    const bool other = (d->file.referenced_data_file.data != NULL &&
                        !str_eq(d->file.referenced_data_file, data->file.path)) ||
                       (d->file.n_lower > 0 && !str_eq(d->file.lower[0].bytes, data->file.path));
    return data->sequence_number <= d->sequence_number && same_place(&d->file, &data->file) &&
           !other;
}

static void check_data(index_case *c, const delete_index *index, const tarn_entry *data) {
    const tarn_entry *const *found = NULL;
    int32_t n = -1;
    bool vector = false;
    int want = 0;
    assert_ok(
        delete_index_find(index, &c->arena, &data->file, data->sequence_number, &found, &n, &err));
    for (int i = 0; i < DELETES; i++) {
        vector = vector || (c->deletes[i].file.format == TARN_FORMAT_PUFFIN && applies(c, i, data));
    }
    for (int i = 0; i < DELETES; i++) {
        const tarn_file *f = &c->deletes[i].file;
        const bool covered = vector && f->content == TARN_CONTENT_POSITION_DELETES &&
                             f->format != TARN_FORMAT_PUFFIN;
        int times = 0;
        for (int32_t k = 0; k < n; k++) {
            times += found[k] == &c->deletes[i];
        }
        assert_int_equal(times, applies(c, i, data) && !covered);
        want += times;
    }
    assert_int_equal(n, want);
    for (int32_t k = 1; k < n; k++) {
        assert_true(found[k]->file.content >= found[k - 1]->file.content);
        assert_true(found[k]->file.format != TARN_FORMAT_PUFFIN);
        assert_true(found[k]->file.content != TARN_CONTENT_EQUALITY_DELETES ||
                    found[k - 1]->file.content != TARN_CONTENT_EQUALITY_DELETES ||
                    found[k - 1]->sequence_number <= found[k]->sequence_number);
    }
}

static void rules_of_scan_planning(void **state) {
    (void)state;
    srand(11);
    for (int round = 0; round < 60; round++) {
        index_case c;
        delete_index *index = NULL;
        open_case(&c, test_env());
        fill_case(&c, round % 2 == 0);
        assert_ok(delete_index_new(&c.arena, c.m, c.pointers, DELETES, &index, &err));
        for (int i = 0; i < FILES; i++) {
            check_data(&c, index, &c.data[i]);
        }
        arena_release(&c.arena);
        test_env_done(c.env);
    }
}

static void bad_deletes(void **state) {
    (void)state;
    index_case c;
    delete_index *index = NULL;
    open_case(&c, test_env());
    tarn_entry *d = c.deletes;
    for (int i = 0; i < 2; i++) {
        d[i].file.path = name_of(&c, "dv", i);
        d[i].file.content = TARN_CONTENT_POSITION_DELETES;
        d[i].file.format = TARN_FORMAT_PUFFIN;
        d[i].file.referenced_data_file = STR("data1");
        c.pointers[i] = &d[i];
    }
    assert_code(delete_index_new(&c.arena, c.m, c.pointers, 2, &index, &err), TARN_CORRUPT);
    assert_string_equal(err.message, "data file data1 had two deletion vectors, dv0 and dv1");
    err = (tarn_error)TARN_ERROR_INIT;
    d[1].status = TARN_ENTRY_DELETED;
    assert_ok(delete_index_new(&c.arena, c.m, c.pointers, 2, &index, &err));
    d[0].file.referenced_data_file = STR_NULL;
    assert_code(delete_index_new(&c.arena, c.m, c.pointers, 2, &index, &err), TARN_CORRUPT);
    err = (tarn_error)TARN_ERROR_INIT;
    d[0].file.content = TARN_CONTENT_EQUALITY_DELETES;
    assert_code(delete_index_new(&c.arena, c.m, c.pointers, 2, &index, &err), TARN_CORRUPT);
    assert_string_equal(err.message, "equality delete file dv0 named no columns");
    err = (tarn_error)TARN_ERROR_INIT;
    arena_release(&c.arena);
    test_env_done(c.env);
}

static void indexes_without_memory(void **state) {
    (void)state;
    index_case c;
    tarn_code code = TARN_NOMEM;
    srand(3);
    open_case(&c, test_env());
    fill_case(&c, true);
    for (int64_t k = 1; code != TARN_OK; k++) {
        test_memory memory = {0};
        tarn_env *env = test_env_memory(&memory);
        tarn_error e = TARN_ERROR_INIT;
        tarn_arena arena;
        delete_index *index = NULL;
        const tarn_entry *const *found;
        int32_t n;
        arena_init(&arena, env);
        memory.fail_at = k;
        code = delete_index_new(&arena, c.m, c.pointers, DELETES, &index, &e);
        for (int i = 0; i < FILES && code == TARN_OK; i++) {
            code = delete_index_find(index, &arena, &c.data[i].file, c.data[i].sequence_number,
                                     &found, &n, &e);
        }
        memory.fail_at = 0;
        assert_true(code == TARN_OK || code == TARN_NOMEM);
        arena_release(&arena);
        test_env_done(env);
    }
    arena_release(&c.arena);
    test_env_done(c.env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_scan_planning),
        cmocka_unit_test(bad_deletes),
        cmocka_unit_test(indexes_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
