/* Goal: manifests and manifest lists of every writer read as the writer meant them, and what is
 * written reads back the same.
 * Method: the tables of B05, B07, B17, B22, B23, B25; round trips in all versions; every list and
 * manifest of the shared fixtures beside the engines' own listing of it; damaged files; no memory.
 */
#include "fixture.h"

#include "iceberg/manifest.h"

#define HOME TARN_TEST_FIXTURES "/manifests/"

typedef struct bench {
    tarn_env *env;
    tarn_arena arena;
    const tarn_metadata *m;
    const tarn_manifest *manifests;
    int32_t n;
} bench;

static io_source *open_bytes(tarn_env *env, const char *name, tarn_str bytes) {
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    assert_ok(io_source_memory(env, name, bytes.data, bytes.len, &source, &err));
    return source;
}

/* The file of a path in metadata: what follows "metadata/", in the folder. */
static const char *local_path(bench *b, const char *folder, tarn_str path) {
    size_t slash;
    assert_true(str_find_last_char(path, '/', &slash));
    return arena_printf(&b->arena, "%s/%.*s", folder, STR_ARG(str_from(path, slash + 1)));
}

static void bench_open(bench *b, const char *folder) {
    tarn_error err = TARN_ERROR_INIT;
    memset(b, 0, sizeof *b);
    b->env = test_env();
    arena_init(&b->arena, b->env);
    const char *path = arena_printf(&b->arena, "%s/v1.metadata.json", folder);
    assert_ok(metadata_parse(&b->arena, fixture_read(&b->arena, path), path, &b->m, &err));
    const tarn_snapshot *s = metadata_current_snapshot(b->m);
    assert_non_null(s);
    const char *list = local_path(b, folder, s->manifest_list);
    io_source *source = open_bytes(b->env, list, fixture_read(&b->arena, list));
    assert_ok(manifest_list_read(&b->arena, source, &b->manifests, &b->n, &err));
    source->close(source);
}

static void bench_close(bench *b) {
    arena_release(&b->arena);
    test_env_done(b->env);
}

static tarn_code read_manifest(bench *b, const char *path, const tarn_manifest *manifest,
                               unsigned want, manifest_entries *out, tarn_error *err) {
    manifest_read_options options = {want, NULL, 0, false};
    io_source *source = open_bytes(b->env, path, fixture_read(&b->arena, path));
    tarn_code code = manifest_read(&b->arena, source, b->m, manifest, &options, out, err);
    source->close(source);
    return code;
}

static manifest_entries read_at(bench *b, const char *folder, int32_t i) {
    tarn_error err = TARN_ERROR_INIT;
    manifest_entries entries;
    const char *path = local_path(b, folder, b->manifests[i].path);
    assert_ok(read_manifest(b, path, &b->manifests[i], MANIFEST_WANT_ALL, &entries, &err));
    return entries;
}

static void null_partitions(void **state) { /* B05 */
    (void)state;
    bench b;
    bench_open(&b, HOME "B05_tbl");
    static const struct {
        int k; /* -1: null */
        const char *s;
    } want[] = {{-1, "a"}, {1, NULL}, {-1, NULL}, {2, "b"}, {0, ""}};
    assert_int_equal(b.n, 1);
    manifest_entries e = read_at(&b, HOME "B05_tbl", 0);
    assert_int_equal(e.count, 5);
    for (int i = 0; i < 5; i++) {
        const tarn_value *p = e.items[i].file.partition;
        assert_int_equal(p[0].is_null, want[i].k < 0);
        assert_int_equal(p[1].is_null, want[i].s == NULL);
        if (want[i].k >= 0) {
            assert_int_equal(p[0].type->kind == TARN_LONG ? p[0].as.i64 : p[0].as.i32, want[i].k);
        }
        if (want[i].s != NULL) {
            assert_true(str_is(p[1].as.bytes, want[i].s));
        }
    }
    bench_close(&b);
}

static void cut_bounds(void **state) { /* B07: bytes, not text */
    (void)state;
    bench b;
    bench_open(&b, HOME "B07_tbl");
    manifest_entries e = read_at(&b, HOME "B07_tbl", 0);
    assert_int_equal(e.count, 1);
    bool invalid = false;
    for (int32_t i = 0; i < e.items[0].file.n_lower; i++) {
        invalid |= !str_utf8_valid(e.items[0].file.lower[i].bytes);
    }
    assert_true(invalid);
    bench_close(&b);
}

static void sequence_zero(void **state) { /* B17 */
    (void)state;
    bench b;
    bench_open(&b, HOME "B17_tbl");
    bool seen_data = false, seen_deletes = false;
    for (int32_t i = 0; i < b.n; i++) {
        manifest_entries e = read_at(&b, HOME "B17_tbl", i);
        for (int64_t k = 0; k < e.count; k++) {
            if (!b.manifests[i].is_deletes) {
                seen_data = true;
                assert_int_equal(e.items[k].sequence_number, 0);
                assert_int_equal(e.items[k].file_sequence_number, 0);
            } else {
                seen_deletes = true;
                assert_int_equal(e.items[k].sequence_number, 1);
            }
        }
    }
    assert_true(seen_data && seen_deletes);
    bench_close(&b);
}

static void odd_names(void **state) { /* B22 */
    (void)state;
    static const char *const folders[] = {HOME "B22_sanitized", HOME "B22_raw_names",
                                          HOME "B22_sanitized_no_property"};
    static const char *const want[] = {"v0", "v.1", NULL, "\xe2\x98\x83", ""};
    for (int f = 0; f < 3; f++) {
        bench b;
        bench_open(&b, folders[f]);
        manifest_entries e = read_at(&b, folders[f], 0);
        assert_int_equal(e.count, 1);
        assert_int_equal(e.items[0].file.n_partition, 5);
        for (int i = 0; i < 5; i++) {
            const tarn_value *v = &e.items[0].file.partition[i];
            assert_int_equal(v->is_null, want[i] == NULL);
            if (want[i] != NULL) {
                assert_true(str_is(v->as.bytes, want[i]));
            }
        }
        bench_close(&b);
    }
}

static void odd_headers(void **state) { /* B23 */
    (void)state;
    static const char *const folders[] = {
        HOME "B23_spec_whole_object",      HOME "B23_no_content",
        HOME "B23_no_schema_id",           HOME "B23_no_field_ids",
        HOME "B23_record_names",           HOME "B23_codec_missing",
        HOME "B23_schema_is_entry_schema", HOME "B23_no_spec",
        HOME "B23_no_format_version",      HOME "B23_unpartitioned_bad_schema"};
    for (size_t f = 0; f < sizeof folders / sizeof folders[0]; f++) {
        bench b;
        bench_open(&b, folders[f]);
        assert_int_equal(b.n, 1);
        manifest_entries e = read_at(&b, folders[f], 0);
        assert_int_equal(e.count, 1);
        assert_int_equal(e.items[0].file.record_count, 2);
        assert_int_equal(e.items[0].file.n_partition, metadata_spec(b.m)->n_fields);
        assert_int_equal(e.items[0].snapshot_id, 1001);
        if (e.items[0].file.n_partition == 1) {
            assert_int_equal(e.items[0].file.partition[0].as.i32, 5);
        }
        bench_close(&b);
    }
}

/* ---- writing ---- */

typedef struct written {
    tarn_buf buf;
    tarn_manifest manifest;
} written;

static tarn_code write_manifest(bench *b, const tarn_spec *spec, int32_t version, bool deletes,
                                const tarn_entry *entries, int64_t n, written *out,
                                tarn_error *err) {
    manifest_writer_options options = {.format_version = version,
                                       .metadata = b->m,
                                       .schema = metadata_schema(b->m),
                                       .spec = spec,
                                       .is_deletes = deletes,
                                       .snapshot_id = 77};
    manifest_writer *w = NULL;
    io_sink *sink = NULL;
    buf_init(&out->buf, b->env, 0);
    tarn_code code = io_sink_memory(b->env, &out->buf, &sink, err);
    if (code == TARN_OK) {
        code = manifest_writer_new(b->env, &options, sink, STR("/t/m.avro"), &w, err);
        if (code != TARN_OK) {
            sink->abort(sink);
        }
    }
    for (int64_t i = 0; i < n && code == TARN_OK; i++) {
        code = manifest_writer_add(w, &entries[i], err);
        if (code != TARN_OK) {
            manifest_writer_abort(w);
            return code;
        }
    }
    return code == TARN_OK ? manifest_writer_close(w, &b->arena, &out->manifest, err) : code;
}

static tarn_code read_back(bench *b, const written *w, const tarn_manifest *manifest,
                           const manifest_read_options *options, manifest_entries *out,
                           tarn_error *err) {
    io_source *source = NULL;
    tarn_code code = io_source_memory(b->env, "written", w->buf.data, w->buf.len, &source, err);
    if (code == TARN_OK) {
        code = manifest_read(&b->arena, source, b->m, manifest, options, out, err);
        source->close(source);
    }
    return code;
}

static void assert_str(tarn_str a, tarn_str b) {
    assert_int_equal(a.data == NULL, b.data == NULL);
    assert_true(str_eq(a, b));
}

static void assert_counts(const metric_count *a, int32_t n, const metric_count *b, int32_t m) {
    assert_int_equal(n, m);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(a[i].id, b[i].id);
        assert_int_equal(a[i].count, b[i].count);
    }
}

static void assert_bounds(const metric_bound *a, int32_t n, const metric_bound *b, int32_t m) {
    assert_int_equal(n, m);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(a[i].id, b[i].id);
        assert_true(str_eq(a[i].bytes, b[i].bytes));
    }
}

static void assert_same_file(const tarn_file *a, const tarn_file *b, int32_t version) {
    assert_int_equal(a->content, b->content);
    assert_int_equal(a->format, b->format);
    assert_str(a->path, b->path);
    assert_int_equal(a->n_partition, b->n_partition);
    for (int32_t i = 0; i < a->n_partition; i++) {
        assert_true(value_eq(&a->partition[i], &b->partition[i]));
    }
    assert_int_equal(a->record_count, b->record_count);
    assert_int_equal(a->size_bytes, b->size_bytes);
    assert_counts(a->column_sizes, a->n_column_sizes, b->column_sizes, b->n_column_sizes);
    assert_counts(a->value_counts, a->n_value_counts, b->value_counts, b->n_value_counts);
    assert_counts(a->null_counts, a->n_null_counts, b->null_counts, b->n_null_counts);
    assert_counts(a->nan_counts, a->n_nan_counts, b->nan_counts, b->n_nan_counts);
    assert_bounds(a->lower, a->n_lower, b->lower, b->n_lower);
    assert_bounds(a->upper, a->n_upper, b->upper, b->n_upper);
    assert_str(a->key_metadata, b->key_metadata); /* B25 */
    assert_int_equal(a->n_split_offsets, b->n_split_offsets);
    for (int32_t i = 0; i < a->n_split_offsets; i++) {
        assert_int_equal(a->split_offsets[i], b->split_offsets[i]);
    }
    assert_int_equal(a->n_equality_ids, b->n_equality_ids);
    for (int32_t i = 0; i < a->n_equality_ids; i++) {
        assert_int_equal(a->equality_ids[i], b->equality_ids[i]);
    }
    assert_int_equal(a->sort_order_id, b->sort_order_id);
    if (version > 1) {
        assert_str(a->referenced_data_file, b->referenced_data_file);
    }
    if (version > 2) {
        assert_int_equal(a->content_offset, b->content_offset);
        assert_int_equal(a->content_size, b->content_size);
    }
}

static tarn_file sample_file(bench *b, int i, tarn_content content, tarn_value *tuple) {
    static const metric_count counts[] = {{1, 10}, {2, 3}};
    static const metric_bound bounds[] = {{1, {"\1\0\0\0\0\0\0\0", 8}}, {2, {"abc", 3}}};
    static const int64_t splits[] = {4, 5000000000};
    static const int32_t equality[] = {1, 2};
    char *path = arena_printf(&b->arena, "/t/data/f%d.parquet", i);
    tarn_file f = {.content = content,
                   .path = str_of(path),
                   .n_partition = metadata_spec(b->m)->n_fields,
                   .partition = tuple,
                   .record_count = 10 + i,
                   .size_bytes = 1000 + i,
                   .n_column_sizes = 2,
                   .column_sizes = counts,
                   .n_value_counts = 2,
                   .value_counts = counts,
                   .n_null_counts = 1,
                   .null_counts = counts,
                   .n_lower = 2,
                   .lower = bounds,
                   .n_upper = 1,
                   .upper = bounds + 1,
                   .sort_order_id = -1,
                   .first_row_id = -1,
                   .content_offset = -1,
                   .content_size = -1};
    if (i % 2 == 0) {
        f.key_metadata = STR("key\0bytes");
        f.n_split_offsets = 2;
        f.split_offsets = splits;
        f.sort_order_id = 1;
    }
    if (content == TARN_CONTENT_EQUALITY_DELETES) {
        f.n_equality_ids = 2;
        f.equality_ids = equality;
    }
    return f;
}

static void bench_new(bench *b, int32_t version, const char *by) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *root;
    memset(b, 0, sizeof *b);
    b->env = test_env();
    arena_init(&b->arena, b->env);
    assert_ok(type_from_text(
        &b->arena,
        STR("struct<a: long not null, s: string, ts: timestamp, x: double, d: decimal(9,2), u: "
            "uuid, \"1 odd.name\": int>"),
        &root, &err));
    metadata_new_options options = {
        .format_version = version, .root = root, .partition_by = str_of(by), .location = STR("/t")};
    assert_ok(metadata_new(&b->arena, &options, &b->m, &err));
}

static const char wide_spec[] =
    "s, day(ts), bucket(16, a), x as xx, truncate(10, d), u as uu, identity(\"1 odd.name\") as "
    "\"1 odd.name\"";

static tarn_value *sample_tuple(bench *b, int i) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *tuple;
    assert_ok(spec_partition_type(&b->arena, metadata_spec(b->m), b->m, &tuple, &err));
    tarn_value *v = ARENA_ARRAY(&b->arena, tarn_value, (size_t)tuple->n_fields);
    for (int32_t k = 0; k < tuple->n_fields; k++) {
        v[k] = value_null(tuple->fields[k].type);
        v[k].is_null = (i + k) % 5 == 0;
        if (v[k].is_null) {
            continue;
        }
        switch ((int)v[k].type->kind) {
        case TARN_STRING:
            v[k].as.bytes = str_of(arena_printf(&b->arena, "s%03d", (i * 37) % 100));
            break;
        case TARN_UUID:
            v[k].as.bytes = str_make(i % 2 ? "0123456789abcdef" : "fedcba9876543210", 16);
            break;
        case TARN_DOUBLE:
            v[k].as.f64 = i % 7 == 0 ? 0.0 / 0.0 : i * 1.5;
            break;
        case TARN_DECIMAL:
            v[k].as.i128 = -i * 10;
            break;
        default:
            v[k].as.i32 = i - 20;
        }
    }
    return v;
}

static void round_trip(int32_t version, const char *by, tarn_content content) {
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    enum { N = 50 };
    tarn_entry entries[N];
    written w;
    manifest_entries got;
    bench_new(&b, version, by);
    memset(entries, 0, sizeof entries);
    for (int i = 0; i < N; i++) {
        entries[i].file = sample_file(&b, i, content, sample_tuple(&b, i));
        entries[i].status = (tarn_entry_status)(i % 3);
        entries[i].snapshot_id = i % 3 == 1 ? -1 : 50 + i;
        bool fresh = i % 3 == 1 || version == 1;
        entries[i].sequence_number = fresh ? -1 : 5 + i;
        entries[i].file_sequence_number = fresh ? -1 : 5 + i;
    }
    assert_ok(write_manifest(&b, metadata_spec(b.m), version, content != TARN_CONTENT_DATA, entries,
                             N, &w, &err));
    const tarn_manifest *m = &w.manifest;
    assert_int_equal(m->length, w.buf.len);
    assert_int_equal(m->added_files, 17);
    assert_int_equal(m->existing_files, 17);
    assert_int_equal(m->deleted_files, 16);
    assert_int_equal(m->min_sequence_number, version == 1 ? 0 : 5);
    assert_int_equal(m->n_partitions, metadata_spec(b.m)->n_fields);
    tarn_manifest committed = *m;
    committed.sequence_number = version == 1 ? 0 : 99;
    assert_ok(read_back(&b, &w, &committed, NULL, &got, &err));
    assert_int_equal(got.count, N);
    for (int i = 0; i < N; i++) {
        const tarn_entry *e = &got.items[i];
        assert_int_equal(e->status, entries[i].status);
        assert_int_equal(e->snapshot_id, i % 3 == 1 ? 77 : 50 + i);
        int64_t sequence = version == 1 ? 0 : i % 3 == 1 ? 99 : 5 + i;
        assert_int_equal(e->sequence_number, sequence);
        assert_int_equal(e->file_sequence_number, sequence);
        assert_same_file(&e->file, &entries[i].file, version);
    }
    manifest_read_options lean = {0, NULL, 0, true};
    assert_ok(read_back(&b, &w, &committed, &lean, &got, &err));
    assert_int_equal(got.count, 34);
    assert_int_equal(got.items[0].file.n_lower, 0);
    int32_t id = 2;
    manifest_read_options some = {MANIFEST_WANT_STATS, &id, 1, false};
    assert_ok(read_back(&b, &w, &committed, &some, &got, &err));
    assert_int_equal(got.items[3].file.n_lower, 1);
    assert_int_equal(got.items[3].file.lower[0].id, 2);
    assert_true(str_is(got.items[3].file.lower[0].bytes, "abc"));
    assert_int_equal(got.items[3].file.n_null_counts, 0);
    buf_release(&w.buf);
    bench_close(&b);
}

static void round_trips(void **state) {
    (void)state;
    for (int32_t version = 1; version <= 3; version++) {
        round_trip(version, wide_spec, TARN_CONTENT_DATA);
        round_trip(version, "", TARN_CONTENT_DATA);
        if (version > 1) {
            round_trip(version, "s", TARN_CONTENT_EQUALITY_DELETES);
            round_trip(version, wide_spec, TARN_CONTENT_POSITION_DELETES);
        }
    }
}

static void refused_entries(void **state) {
    (void)state;
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    written w;
    bench_new(&b, 2, "s");
    tarn_entry e = {.status = TARN_ENTRY_ADDED, .snapshot_id = -1, .sequence_number = -1};
    tarn_value *tuple = sample_tuple(&b, 1);
    e.file = sample_file(&b, 1, TARN_CONTENT_EQUALITY_DELETES, tuple);
    const tarn_spec *spec = metadata_spec(b.m);
    assert_code(write_manifest(&b, spec, 2, false, &e, 1, &w, &err), TARN_INVALID);
    e.file.content = TARN_CONTENT_DATA;
    e.status = TARN_ENTRY_EXISTING; /* must know its sequence number */
    assert_code(write_manifest(&b, spec, 2, false, &e, 1, &w, &err), TARN_INVALID);
    e.status = TARN_ENTRY_ADDED;
    tuple[0] = value_i32(type_primitive(TARN_INT), 4);
    assert_code(write_manifest(&b, spec, 2, false, &e, 1, &w, &err), TARN_INVALID);
    e.file.record_count = INT64_MAX / 2; /* two of it could not be counted */
    tuple[0] = sample_tuple(&b, 1)[0];
    assert_code(write_manifest(&b, spec, 2, false, &e, 1, &w, &err), TARN_LIMIT);
    e.file.record_count = 1;
    e.file.n_partition = 0;
    assert_code(write_manifest(&b, spec, 2, false, &e, 1, &w, &err), TARN_INVALID);
    buf_release(&w.buf);
    bench_close(&b);
}

static void row_ids_are_inherited(void **state) { /* v3 */
    (void)state;
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    written w;
    manifest_entries got;
    tarn_entry entries[3];
    bench_new(&b, 3, "");
    memset(entries, 0, sizeof entries);
    for (int i = 0; i < 3; i++) {
        entries[i] = (tarn_entry){.status = i == 1 ? TARN_ENTRY_EXISTING : TARN_ENTRY_ADDED,
                                  .snapshot_id = -1,
                                  .sequence_number = i == 1 ? 1 : -1,
                                  .file_sequence_number = i == 1 ? 1 : -1};
        entries[i].file = sample_file(&b, i, TARN_CONTENT_DATA, NULL);
    }
    entries[1].file.first_row_id = 7;
    assert_ok(write_manifest(&b, metadata_spec(b.m), 3, false, entries, 3, &w, &err));
    tarn_manifest list[2] = {w.manifest, w.manifest};
    list[1].is_deletes = true;
    assert_int_equal(manifest_assign_row_ids(list, 2, 1000), 1000 + 10 + 11 + 12);
    assert_int_equal(list[0].first_row_id, 1000);
    assert_int_equal(list[1].first_row_id, -1);
    list[0].sequence_number = 2;
    assert_ok(read_back(&b, &w, &list[0], NULL, &got, &err));
    assert_int_equal(got.items[0].file.first_row_id, 1000);
    assert_int_equal(got.items[1].file.first_row_id, 7);
    assert_int_equal(got.items[2].file.first_row_id, 1010);
    buf_release(&w.buf);
    bench_close(&b);
}

static void assert_same_manifest(const tarn_manifest *a, const tarn_manifest *b) {
    assert_true(str_eq(a->path, b->path));
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->spec_id, b->spec_id);
    assert_int_equal(a->is_deletes, b->is_deletes);
    assert_int_equal(a->added_snapshot_id, b->added_snapshot_id);
    assert_int_equal(a->added_files, b->added_files);
    assert_int_equal(a->deleted_rows, b->deleted_rows);
    assert_str(a->key_metadata, b->key_metadata); /* B25 */
    assert_int_equal(a->n_partitions, b->n_partitions);
    assert_int_equal(a->partitions == NULL, b->partitions == NULL); /* no fields, or unknown */
    for (int32_t i = 0; i < a->n_partitions; i++) {
        const tarn_field_summary *s = &a->partitions[i], *t = &b->partitions[i];
        assert_int_equal(s->contains_null, t->contains_null);
        assert_int_equal(s->contains_nan, t->contains_nan);
        assert_int_equal(s->has_lower, t->has_lower);
        assert_true(str_eq(s->lower, t->lower));
        assert_true(str_eq(s->upper, t->upper));
    }
}

static void list_round_trip(bench *b, int32_t version, const tarn_manifest *in, int32_t n) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    io_sink *sink;
    io_source *source;
    const tarn_manifest *out;
    int32_t got;
    manifest_list_options options = {version,     77, -1, 12, version == 3 ? 500 : -1,
                                     STR("zstd"), {0}};
    buf_init(&buf, b->env, 0);
    assert_ok(io_sink_memory(b->env, &buf, &sink, &err));
    assert_ok(manifest_list_write(b->env, &options, in, n, sink, &err));
    assert_ok(sink->finish(sink, &err));
    assert_ok(io_source_memory(b->env, "list", buf.data, buf.len, &source, &err));
    assert_ok(manifest_list_read(&b->arena, source, &out, &got, &err));
    source->close(source);
    assert_int_equal(got, n);
    for (int32_t i = 0; i < n; i++) {
        assert_same_manifest(&out[i], &in[i]);
        int64_t sequence = in[i].sequence_number < 0 ? 12 : in[i].sequence_number;
        assert_int_equal(out[i].sequence_number, version == 1 ? 0 : sequence);
        if (version == 3 && !in[i].is_deletes && in[i].first_row_id < 0) {
            assert_true(out[i].first_row_id >= 500);
        }
    }
    buf_release(&buf);
}

static void lists(void **state) {
    (void)state;
    for (int32_t version = 1; version <= 3; version++) {
        bench b;
        tarn_error err = TARN_ERROR_INIT;
        written w;
        bench_new(&b, version, wide_spec);
        tarn_entry e = {.status = TARN_ENTRY_ADDED, .snapshot_id = -1, .sequence_number = -1};
        e.file = sample_file(&b, 1, TARN_CONTENT_DATA, sample_tuple(&b, 3));
        assert_ok(write_manifest(&b, metadata_spec(b.m), version, false, &e, 1, &w, &err));
        tarn_manifest m[4] = {w.manifest, w.manifest, w.manifest, w.manifest};
        m[1].sequence_number = version == 1 ? 0 : 4;
        m[1].min_sequence_number = 0;
        m[1].is_deletes = version > 1;
        m[1].key_metadata = STR("\1\2\0\3");
        m[2].n_partitions = m[3].n_partitions = 0;
        m[3].partitions = NULL;
        list_round_trip(&b, version, m, 4);
        list_round_trip(&b, version, m, 0);
        buf_release(&w.buf);
        bench_close(&b);
    }
}

static void foreign_sequence_number_is_refused(void **state) {
    (void)state;
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    io_sink *sink;
    bench_new(&b, 2, "");
    tarn_manifest m = {.path = STR("x"), .sequence_number = -1, .added_snapshot_id = 5};
    manifest_list_options options = {2, 77, -1, 12, -1, STR_NULL, {0}};
    buf_init(&buf, b.env, 0);
    assert_ok(io_sink_memory(b.env, &buf, &sink, &err));
    assert_code(manifest_list_write(b.env, &options, &m, 1, sink, &err), TARN_INVALID);
    sink->abort(sink);
    buf_release(&buf);
    bench_close(&b);
}

static void keys_stay(void **state) { /* B25: what is read keeps its key, and is written with it */
    (void)state;
    bench b;
    bench_open(&b, HOME "B25_tbl");
    bool file_key = false, manifest_key = false;
    for (int32_t i = 0; i < b.n; i++) {
        tarn_error err = TARN_ERROR_INIT;
        written w;
        manifest_entries back, e = read_at(&b, HOME "B25_tbl", i);
        manifest_key |= b.manifests[i].key_metadata.data != NULL;
        assert_ok(write_manifest(&b, metadata_spec_by_id(b.m, b.manifests[i].spec_id), 2,
                                 b.manifests[i].is_deletes, e.items, e.count, &w, &err));
        assert_ok(read_back(&b, &w, NULL, NULL, &back, &err));
        for (int64_t k = 0; k < e.count; k++) {
            file_key |= e.items[k].file.key_metadata.data != NULL;
            assert_same_file(&back.items[k].file, &e.items[k].file, 2);
        }
        buf_release(&w.buf);
    }
    assert_true(file_key && manifest_key);
    list_round_trip(&b, 2, b.manifests, b.n);
    bench_close(&b);
}

/* Every cut and many changed bytes: an error or other values, never a crash. */
static void damaged_files(void **state) {
    (void)state;
    bench b;
    bench_open(&b, HOME "B05_tbl");
    tarn_arena scratch;
    const char *path = local_path(&b, HOME "B05_tbl", b.manifests[0].path);
    tarn_str whole = fixture_read(&b.arena, path);
    char *copy = malloc(whole.len);
    for (size_t i = 0; i < whole.len; i++) {
        tarn_error err = TARN_ERROR_INIT;
        manifest_entries e;
        memcpy(copy, whole.data, whole.len);
        copy[i] = (char)(copy[i] ^ (1 << (i % 8)));
        size_t len = i % 2 ? whole.len : i;
        io_source *source = open_bytes(b.env, "damaged", str_make(copy, len));
        arena_init(&scratch, b.env);
        tarn_code code = manifest_read(&scratch, source, b.m, &b.manifests[0], NULL, &e, &err);
        assert_true(code == TARN_OK || err.message[0] != '\0');
        const tarn_manifest *list;
        int32_t n;
        (void)!manifest_list_read(&scratch, source, &list, &n, &err);
        arena_release(&scratch);
        source->close(source);
    }
    free(copy);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_partitions), cmocka_unit_test(cut_bounds),
        cmocka_unit_test(sequence_zero),   cmocka_unit_test(odd_names),
        cmocka_unit_test(odd_headers),     cmocka_unit_test(round_trips),
        cmocka_unit_test(refused_entries), cmocka_unit_test(row_ids_are_inherited),
        cmocka_unit_test(lists),           cmocka_unit_test(foreign_sequence_number_is_refused),
        cmocka_unit_test(keys_stay),       cmocka_unit_test(damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
