/* Goal: a snapshot that a standard client sends is held against the table, its parent and itself:
 * what is so is taken, and each lie is refused by name before it is anybody's.
 * Method: a client makes a good snapshot; its manifest, its list or the snapshot is then written
 * again with one thing wrong, and read as the service reads it. Each case says what it changes and
 * what must be said of it; the cases that change nothing wrong must be taken. */
#include "unit/service/rebase_case.h"

#define MAX_ENTRIES 4
#define MAX_LIST    6

typedef struct forgery {
    table_case c;
    late_client late;
    tarn_file file;
    tarn_entry entries[MAX_ENTRIES]; /* of the client's own manifest, as they will be written */
    int32_t n_entries;
    tarn_manifest list[MAX_LIST]; /* own last */
    int32_t n_list;
    tarn_manifest *own;
    const tarn_schema *schema; /* of the manifest's header */
    const tarn_spec *spec;
    bool is_deletes;
    tarn_snapshot snapshot;
    service_places places;
    tarn_arena arena;
} forgery;

/* ---- a good one ---- */

static void forge_begin(forgery *f, tarn_env *env, int32_t version) {
    static const tarn_str anywhere = {"", 0};
    memset(f, 0, sizeof *f);
    case_open(&f->c, env, CASE_DIR_MEMORY);
    case_table(&f->c, version, "p int, v string", "p", NULL);
    arena_init(&f->arena, env);
    commit_append_file(&f->c, "f0", 5);
    late_open(&f->late, &f->c);
    f->file = commit_file(&f->c, "f1", 5, 10);
    f->late.request.added = &f->file;
    f->late.request.n_added = 1;
    late_make(&f->late);
    f->places = (service_places){1, &anywhere, {NULL, 0}};
    f->entries[0] = commit_entry(f->file);
    f->entries[0].status = TARN_ENTRY_ADDED;
    f->entries[0].snapshot_id = -1;
    f->n_entries = 1;
    f->snapshot = *f->late.sent.set.changes[0].snapshot;
    f->schema = metadata_schema(f->late.base->metadata);
    f->spec = metadata_spec(f->late.base->metadata);
}

static io_sink *new_file(forgery *f, const char *name, tarn_str *path) {
    tarn_error err = TARN_ERROR_INIT;
    io_sink *sink;
    *path = str_of(arena_printf(&f->arena, "%.*s/metadata/%s",
                                STR_ARG(f->late.base->metadata->location), name));
    assert_ok(store_create(f->c.catalog->store, *path, STORE_REPLACE, &sink, &err));
    return sink;
}

/* The entries as a manifest, and the client's list with it. */
static void forge_manifest(forgery *f) {
    tarn_error err = TARN_ERROR_INIT;
    manifest_writer_options options = {.format_version = f->late.base->metadata->format_version,
                                       .metadata = f->late.base->metadata,
                                       .schema = f->schema,
                                       .spec = f->spec,
                                       .is_deletes = f->is_deletes,
                                       .snapshot_id = f->snapshot.snapshot_id};
    manifest_writer *w;
    const tarn_manifest *parent;
    io_source *source;
    tarn_str path;
    io_sink *sink = new_file(f, "own.avro", &path);
    assert_ok(manifest_writer_new(f->c.env, &options, sink, path, &w, &err));
    for (int32_t i = 0; i < f->n_entries; i++) {
        assert_ok(manifest_writer_add(w, &f->entries[i], &err));
    }
    assert_ok(store_open(f->c.catalog->store,
                         metadata_current_snapshot(f->late.base->metadata)->manifest_list, -1,
                         &source, &err));
    assert_ok(manifest_list_read(&f->arena, source, &parent, &f->n_list, &err));
    source->close(source);
    assert_int_equal(f->n_list, 1);
    f->list[0] = parent[0];
    f->own = &f->list[f->n_list++];
    assert_ok(manifest_writer_close(w, &f->arena, f->own, &err));
    f->own->added_snapshot_id = f->snapshot.snapshot_id;
    f->own->sequence_number = f->snapshot.sequence_number;
    f->own->min_sequence_number = f->snapshot.sequence_number;
    if (options.format_version > 2) {
        f->snapshot.added_rows = f->own->added_rows + f->own->existing_rows;
    }
    for (int32_t i = 0; i < f->n_entries; i++) {
        if (f->entries[i].status == TARN_ENTRY_EXISTING) {
            f->own->min_sequence_number = f->entries[i].sequence_number;
        }
    }
}

static void forge_list(forgery *f) {
    tarn_error err = TARN_ERROR_INIT;
    const manifest_list_options options = {.format_version = f->late.base->metadata->format_version,
                                           .snapshot_id = f->snapshot.snapshot_id,
                                           .parent_id = f->snapshot.parent_id,
                                           .sequence_number = f->snapshot.sequence_number,
                                           .first_row_id = f->snapshot.first_row_id};
    tarn_str path;
    io_sink *sink = new_file(f, "list.avro", &path);
    assert_ok(manifest_list_write(f->c.env, &options, f->list, f->n_list, sink, &err));
    assert_ok(sink->finish(sink, &err));
    f->snapshot.manifest_list = path;
}

static tarn_code forge_send(forgery *f, tarn_error *err) {
    tarn_change changes[2];
    memcpy(changes, f->late.sent.set.changes, sizeof changes);
    changes[0].snapshot = &f->snapshot;
    const tarn_change_set set = {.n_changes = 2, .changes = changes};
    const sent_snapshot *out;
    int32_t n;
    return sent_snapshots_read(&f->arena, f->c.catalog->store, &f->places, f->late.base->metadata,
                               &set, &out, &n, err);
}

static void forge_end(forgery *f) {
    commit_maker_end(f->late.maker, TARN_OUTCOME_UNKNOWN);
    table_version_release(f->late.base);
    arena_release(&f->arena);
    case_done(&f->c);
}

/* ---- lies ---- */

/* Each is called where it says: before the manifest is written, before the list is, and after. */
typedef struct lie {
    const char *name;
    void (*in_manifest)(forgery *f);
    void (*in_list)(forgery *f);
    void (*in_snapshot)(forgery *f);
    const char *said; /* NULL: it is taken */
    tarn_code code;   /* OK: INVALID */
} lie;

static void run_lie(const lie *l, int32_t version) {
    static forgery f;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    print_message("%s, version %d\n", l->name, version);
    forge_begin(&f, env, version);
    if (l->in_manifest != NULL) {
        l->in_manifest(&f);
    }
    forge_manifest(&f);
    if (l->in_list != NULL) {
        l->in_list(&f);
    }
    forge_list(&f);
    if (l->in_snapshot != NULL) {
        l->in_snapshot(&f);
    }
    tarn_code code = forge_send(&f, &err);
    assert_int_equal(code, l->said == NULL ? TARN_OK : l->code == TARN_OK ? TARN_INVALID : l->code);
    if (l->said != NULL && strstr(err.message, l->said) == NULL) {
        fail_msg("\"%s\" is not in: %s", l->said, err.message);
    }
    forge_end(&f);
    test_env_done(env);
}

static void run_lies(const lie *lies, size_t n, int32_t version) {
    for (size_t i = 0; i < n; i++) {
        run_lie(&lies[i], version);
    }
}
#define RUN_LIES(lies, version) run_lies(lies, sizeof(lies) / sizeof(lies)[0], version)

/* ---- the list, and what it names ---- */

static void no_list(forgery *f) {
    f->snapshot.manifest_list = str_of(
        arena_printf(&f->arena, "%.*s/metadata/none", STR_ARG(f->late.base->metadata->location)));
}
static void list_is_a_manifest(forgery *f) {
    f->snapshot.manifest_list = f->own->path;
}
static void list_is_data(forgery *f) {
    f->snapshot.manifest_list = f->file.path;
}
static void list_is_elsewhere(forgery *f) {
    f->snapshot.manifest_list = STR("/elsewhere/list.avro");
    f->places.n = 0;
}
static void list_climbs(forgery *f) {
    f->snapshot.manifest_list = str_of(
        arena_printf(&f->arena, "%.*s/../../x.avro", STR_ARG(f->late.base->metadata->location)));
}
static void no_manifest(forgery *f) {
    f->own->path = str_of(arena_printf(&f->arena, "%.*s/metadata/none.avro",
                                       STR_ARG(f->late.base->metadata->location)));
}
static void manifest_is_data(forgery *f) {
    f->own->path = f->file.path;
    f->own->length = 1;
}
static void manifest_is_a_list(forgery *f) {
    tarn_error err = TARN_ERROR_INIT;
    store_stat_info info;
    f->own->path = f->late.sent.set.changes[0].snapshot->manifest_list;
    assert_ok(store_stat(f->c.catalog->store, f->own->path, &info, &err));
    f->own->length = info.size_bytes;
}
static void manifest_is_elsewhere(forgery *f) {
    f->own->path = STR("/elsewhere/m.avro");
    f->places.n = 0;
}
static void longer(forgery *f) {
    f->own->length++;
}
static void twice_in_list(forgery *f) {
    f->list[f->n_list++] = *f->own;
}
static void parents_changed(forgery *f) {
    f->list[0].length++;
}
static void parents_kind_changed(forgery *f) {
    f->list[0].is_deletes = true;
}
static void parents_number_changed(forgery *f) {
    f->list[0].sequence_number++;
}
static void parents_rows_changed(forgery *f) {
    f->list[0].added_rows++;
}
static void parents_files_changed(forgery *f) {
    f->list[0].added_files = 0;
}
/* Of p from 6 to 7, where all files have 5. */
static void set_partitions(tarn_manifest *m) {
    static tarn_field_summary only[1];
    only[0] = (tarn_field_summary){.contains_nan = -1,
                                   .has_lower = true,
                                   .has_upper = true,
                                   .lower = {"\6\0\0\0", 4},
                                   .upper = {"\7\0\0\0", 4}};
    m->partitions = only;
    m->n_partitions = 1;
}
static void parents_partitions_changed(forgery *f) {
    set_partitions(&f->list[0]);
}

static void test_lists(void **state) {
    static const lie lies[] = {
        {"nothing is wrong", NULL, NULL, NULL, NULL, 0},
        {"the list is not there", NULL, NULL, no_list, "none does not exist", 0},
        {"the list is a manifest", NULL, NULL, list_is_a_manifest, "cannot be read", 0},
        {"the list is no Avro file", NULL, NULL, list_is_data, "cannot be read", 0},
        {"the list lies elsewhere", NULL, NULL, list_is_elsewhere, "outside the warehouse", 0},
        {"the list's path climbs", NULL, NULL, list_climbs, "goes through . or ..", 0},
        {"the manifest is not there", NULL, no_manifest, NULL, "none.avro does not exist", 0},
        {"the manifest is no Avro file", NULL, manifest_is_data, NULL, "cannot be read", 0},
        {"the manifest is a list", NULL, manifest_is_a_list, NULL, "cannot be read", 0},
        {"the manifest lies elsewhere", NULL, manifest_is_elsewhere, NULL, "outside the warehouse",
         0},
        {"the manifest is shorter", NULL, longer, NULL, "and the list says", 0},
        {"the manifest is there twice", NULL, twice_in_list, NULL, "in the list twice", 0},
        {"the parent's manifest is longer", NULL, parents_changed, NULL,
         "what the parent's list does not", 0},
        {"the parent's manifest has more rows", NULL, parents_rows_changed, NULL,
         "added rows, and the list says", 0},
        {"the parent's manifest has no files", NULL, parents_files_changed, NULL,
         "added files, and the list says", 0},
        {"the parent's manifest has other partitions", NULL, parents_partitions_changed, NULL,
         "outside the partitions that the list says", 0},
    };
    static const lie from_2[] = {
        {"the parent's manifest is of deletes", NULL, parents_kind_changed, NULL,
         "what the parent's list does not", 0},
        {"the parent's manifest has another number", NULL, parents_number_changed, NULL,
         "what the parent's list does not", 0},
    };
    (void)state;
    for (int32_t version = 1; version <= 3; version++) {
        RUN_LIES(lies, version);
    }
    RUN_LIES(from_2, 2);
    RUN_LIES(from_2, 3);
}

/* ---- what the list says of the manifest ---- */

static void other_snapshot(forgery *f) {
    f->own->added_snapshot_id++;
}
static void other_sequence(forgery *f) {
    f->own->sequence_number--;
}
static void no_such_spec(forgery *f) {
    f->own->spec_id = 9;
}
static void says_deletes(forgery *f) {
    f->own->is_deletes = true;
}
static void low_row_id(forgery *f) {
    f->own->first_row_id = f->snapshot.first_row_id - 1;
}
static void high_row_id(forgery *f) {
    f->own->first_row_id = f->snapshot.first_row_id + 1;
}
static void own_row_ids(forgery *f) {
    f->own->first_row_id = f->snapshot.first_row_id;
}
static void few_row_ids(forgery *f) {
    own_row_ids(f);
    f->snapshot.added_rows--;
}
static void more_added(forgery *f) {
    f->own->added_files++;
}
static void more_existing(forgery *f) {
    f->own->existing_files++;
}
static void more_deleted(forgery *f) {
    f->own->deleted_files++;
}
static void fewer_rows(forgery *f) {
    f->own->added_rows--;
}
static void more_existing_rows(forgery *f) {
    f->own->existing_rows++;
}
static void more_deleted_rows(forgery *f) {
    f->own->deleted_rows++;
}
static void counts_not_said(forgery *f) { /* version 1 may leave them out */
    f->own->added_files = f->own->existing_files = f->own->deleted_files = -1;
    f->own->added_rows = f->own->existing_rows = f->own->deleted_rows = -1;
}
static void other_partitions(forgery *f) {
    set_partitions(f->own);
}
static void high_least(forgery *f) {
    f->entries[0].sequence_number = f->entries[0].file_sequence_number = 1;
}

static void test_manifests(void **state) {
    static const lie all[] = {
        {"another snapshot added it", NULL, other_snapshot, NULL, "another snapshot added it", 0},
        {"more added files", NULL, more_added, NULL, "has 1 added files, and the list says 2", 0},
        {"more existing files", NULL, more_existing, NULL, "existing files", 0},
        {"more deleted files", NULL, more_deleted, NULL, "deleted files", 0},
        {"fewer rows", NULL, fewer_rows, NULL, "has 10 added rows, and the list says 9", 0},
        {"more existing rows", NULL, more_existing_rows, NULL, "existing rows", 0},
        {"more deleted rows", NULL, more_deleted_rows, NULL, "deleted rows", 0},
        {"a spec that is not there", NULL, no_such_spec, NULL, "partition spec", 0},
        {"other partitions", NULL, other_partitions, NULL, "outside the partitions", 0},
    };
    static const lie from_2[] = {
        {"another sequence number", NULL, other_sequence, NULL, "sequence number in the list", 0},
        {"it is of deletes", NULL, says_deletes, NULL, "its content is not what the list says", 0},
        {"a number below the least", high_least, NULL, NULL, "below the least one in the list", 0},
    };
    static const lie in_1[] = {
        {"no counts", NULL, counts_not_said, NULL, NULL, 0},
    };
    static const lie in_3[] = {
        {"row ids of others before", NULL, low_row_id, NULL, "its row ids are not among", 0},
        {"row ids of others after", NULL, high_row_id, NULL, "its row ids are not among", 0},
        {"fewer row ids than rows", NULL, few_row_ids, NULL, "its row ids are not among", 0},
        {"ids for all rows", NULL, own_row_ids, NULL, NULL, 0},
    };
    (void)state;
    for (int32_t version = 1; version <= 3; version++) {
        RUN_LIES(all, version);
    }
    RUN_LIES(in_1, 1);
    RUN_LIES(from_2, 2);
    RUN_LIES(from_2, 3);
    RUN_LIES(in_3, 3);
}

/* ---- entries ---- */

static void set_part(forgery *f, tarn_value value) {
    tarn_value *tuple = ARENA_ARRAY(&f->arena, tarn_value, 1);
    assert_non_null(tuple);
    tuple[0] = value;
    f->entries[0].file.partition = tuple;
}
static void part_is_not_the_bounds(forgery *f) {
    set_part(f, value_i32(type_primitive(TARN_INT), 6));
}
static void part_is_null(forgery *f) {
    set_part(f, value_null(type_primitive(TARN_INT)));
}
static void part_without_bounds(forgery *f) { /* nothing tells */
    part_is_not_the_bounds(f);
    f->entries[0].file.n_lower = f->entries[0].file.n_upper = 0;
}
/* What the manifest's header says that its files were written with. */
static void other_schema(forgery *f, tarn_kind first, int32_t second_id) {
    static tarn_field fields[2];
    static tarn_type root;
    static tarn_schema schema;
    memcpy(fields, f->schema->root->fields, sizeof fields);
    fields[0].type = type_primitive(first);
    fields[1].id = second_id;
    root = *f->schema->root;
    root.fields = fields;
    schema = *f->schema;
    schema.root = &root;
    f->schema = &schema;
}
static void foreign_type(forgery *f) {
    other_schema(f, TARN_STRING, 2);
}
static void foreign_column(forgery *f) {
    other_schema(f, TARN_INT, 77);
}
static metric_count *own_count(forgery *f, int32_t id, int64_t count) {
    metric_count *out = ARENA_NEW(&f->arena, metric_count);
    assert_non_null(out);
    *out = (metric_count){id, count};
    return out;
}
static void foreign_count(forgery *f) {
    f->entries[0].file.value_counts = own_count(f, 77, 10);
}
static void negative_count(forgery *f) {
    f->entries[0].file.null_counts = own_count(f, 1, -1);
}
static void foreign_bound(forgery *f) {
    static metric_bound bound;
    bound = (metric_bound){77, {"\5\0\0\0", 4}};
    f->entries[0].file.lower = &bound;
}
static void short_bound(forgery *f) {
    static metric_bound bound;
    bound = (metric_bound){1, {"\5\0", 2}};
    f->entries[0].file.upper = &bound;
}
static void reserved_count(forgery *f) { /* row ids may be counted too */
    f->entries[0].file.value_counts = own_count(f, INT32_MAX - 107, 10);
}
static void file_twice(forgery *f) {
    f->entries[f->n_entries++] = f->entries[0];
}
static void file_is_elsewhere(forgery *f) {
    f->entries[0].file.path = STR("/elsewhere/f1.parquet");
    f->places.n = 0;
}
static void by_another(forgery *f) {
    f->entries[0].snapshot_id = f->snapshot.snapshot_id + 1;
}
static void number_ahead(forgery *f) {
    f->entries[0].sequence_number = f->entries[0].file_sequence_number =
        f->snapshot.sequence_number + 1;
}
/* The parent's file, as one that stays or goes. */
static void set_old(forgery *f, tarn_entry *e, tarn_entry_status status) {
    const tarn_snapshot *parent = metadata_current_snapshot(f->late.base->metadata);
    *e = commit_entry(commit_file(&f->c, "f0", 5, 10));
    e->status = status;
    e->snapshot_id = status == TARN_ENTRY_DELETED ? f->snapshot.snapshot_id : parent->snapshot_id;
    e->sequence_number = e->file_sequence_number = parent->sequence_number;
}
static void keeps_it(forgery *f) {
    set_old(f, &f->entries[f->n_entries++], TARN_ENTRY_EXISTING);
}
static void removes_it(forgery *f) {
    set_old(f, &f->entries[f->n_entries++], TARN_ENTRY_DELETED);
}
static void keeps_another(forgery *f) {
    keeps_it(f);
    f->entries[1].file.path = f->file.path;
    f->entries[0] = f->entries[--f->n_entries];
}
static void removes_another(forgery *f) {
    removes_it(f);
    f->entries[1].file.path = STR("/elsewhere/passwords.parquet");
}
static void keeps_and_removes(forgery *f) {
    keeps_it(f);
    removes_it(f);
}
static void leave_out_parents(forgery *f) {
    f->list[0] = *f->own;
    f->own = &f->list[0];
    f->n_list = 1;
}
static void deletes_among_data(forgery *f) {
    f->is_deletes = true;
    f->entries[0].file = commit_delete_file(&f->c, "d1", TARN_CONTENT_POSITION_DELETES, 5, 1);
}
static void says_data(forgery *f) {
    f->own->is_deletes = false;
}

static void test_entries(void **state) {
    static const lie all[] = {
        {"a value that is not in the bounds", part_is_not_the_bounds, NULL, NULL,
         "above what the column's upper bound", 0},
        {"null for rows that are not", part_is_null, NULL, NULL, "rows that are not null", 0},
        {"a value without bounds", part_without_bounds, NULL, NULL, NULL, 0},
        {"a schema with another type", foreign_type, NULL, NULL, "has string in its column p", 0},
        {"a schema with another column", foreign_column, NULL, NULL,
         "id 77, which no schema of the table has", 0},
        {"a count of another column", foreign_count, NULL, NULL, "values of field 77", 0},
        {"a negative count", negative_count, NULL, NULL, "-1 nulls of field 1", 0},
        {"a bound of another column", foreign_bound, NULL, NULL, "bound of field 77", 0},
        {"a bound of another width", short_bound, NULL, NULL, "field 1 that is no int", 0},
        {"a count of a reserved column", reserved_count, NULL, NULL, NULL, 0},
        {"a file twice", file_twice, NULL, NULL, "is named twice", 0},
        {"a file elsewhere", file_is_elsewhere, NULL, NULL, "outside the warehouse", 0},
        {"a file of another snapshot", by_another, NULL, NULL, "added by another snapshot", 0},
    };
    static const lie from_2[] = {
        {"a number ahead", number_ahead, NULL, NULL, "above the snapshot's", 0},
        {"delete files in a manifest of data", deletes_among_data, says_data, NULL,
         "its content is not what the list says", 0},
    };
    (void)state;
    for (int32_t version = 1; version <= 3; version++) {
        RUN_LIES(all, version);
    }
    RUN_LIES(from_2, 2);
    RUN_LIES(from_2, 3);
}

static void test_files_of_before(void **state) {
    static const lie all[] = {
        {"the parent's file stays", keeps_it, leave_out_parents, NULL, NULL, 0},
        {"the parent's file goes", removes_it, leave_out_parents, NULL, NULL, 0},
        {"the parent's file is forgotten", NULL, leave_out_parents, NULL, "is left out", 0},
        {"another file is there before", keeps_another, leave_out_parents, NULL, "is left out", 0},
        {"one more is there before", keeps_another, NULL, NULL, "was not in the parent's", 0},
        {"another file goes", removes_another, NULL, NULL, "was not in the parent's", 0},
        {"the parent's file stays, and again", keeps_it, NULL, NULL, "was not in the parent's", 0},
        {"it stays and goes", keeps_and_removes, leave_out_parents, NULL, "is named twice", 0},
    };
    (void)state;
    for (int32_t version = 1; version <= 3; version++) {
        RUN_LIES(all, version);
    }
}

/* ---- the snapshot ---- */

static void no_such_schema(forgery *f) {
    f->snapshot.schema_id = 7;
}
static void no_such_parent(forgery *f) {
    f->snapshot.parent_id++;
}
static void no_parent(forgery *f) { /* then the parent's manifests are foreign ones */
    f->snapshot.parent_id = TARN_NO_SNAPSHOT;
}
static void parents_list_is_gone(forgery *f) {
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(store_remove(f->c.catalog->store,
                           metadata_current_snapshot(f->late.base->metadata)->manifest_list, &err));
}

static void test_snapshots(void **state) {
    static const lie all[] = {
        {"a schema that is not there", NULL, NULL, no_such_schema, "schema 7", 0},
        {"a parent that is not there", NULL, NULL, no_such_parent, "is not in the table",
         TARN_CONFLICT},
        {"manifests of no parent", NULL, NULL, no_parent, "another snapshot added it", 0},
        {"a parent that is damaged", NULL, NULL, parents_list_is_gone, "was not in memory",
         TARN_CORRUPT},
    };
    (void)state;
    for (int32_t version = 1; version <= 3; version++) {
        RUN_LIES(all, version);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),     cmocka_unit_test(test_manifests),
        cmocka_unit_test(test_entries),   cmocka_unit_test(test_files_of_before),
        cmocka_unit_test(test_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
