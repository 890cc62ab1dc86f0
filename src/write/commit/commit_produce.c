/* write/commit/commit_produce.c - one attempt's snapshot: manifests, manifest list, summary.
 * New files go to manifests that are written once and used again by later attempts, since an added
 * entry inherits its sequence number (spec, "Sequence Number Inheritance"). */
#include "write/commit/commit_int.h"

tarn_code path_list_add(tarn_arena *arena, path_list *list, tarn_str path, tarn_error *err) {
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 16 : list->cap * 2;
        tarn_str *items =
            arena_grow(arena, list->items, list->cap * sizeof *items, cap * sizeof *items);
        if (items == NULL) {
            return err_nomem(err);
        }
        list->items = items;
        list->cap = cap;
    }
    list->items[list->count++] = path;
    return TARN_OK;
}

tarn_code produce_add_manifest(commit_attempt *a, const tarn_manifest *manifest, tarn_error *err) {
    if (a->n_list == a->list_cap) {
        int32_t cap = a->list_cap == 0 ? 64 : a->list_cap * 2;
        tarn_manifest *list = arena_grow(&a->arena, a->list, (size_t)a->list_cap * sizeof *list,
                                         (size_t)cap * sizeof *list);
        if (list == NULL) {
            return err_nomem(err);
        }
        a->list = list;
        a->list_cap = cap;
    }
    a->list[a->n_list++] = *manifest;
    return TARN_OK;
}

tarn_code produce_count_partition(commit_attempt *a, const tarn_file *file, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf key;
    buf_init(&key, a->work->env, 0);
    TRY(produce_tuple_key(&a->arena, file, &key, err));
    if (map_find(&a->partitions, buf_str(&key)) == NULL) {
        tarn_str kept = arena_str(&a->arena, buf_str(&key));
        if (kept.data == NULL || map_put(&a->partitions, kept, NULL) == NULL) {
            code = err_nomem(err);
        }
    }
done:
    buf_release(&key);
    return code;
}

tarn_code produce_manifest_writer(commit_attempt *a, const tarn_spec *spec, bool is_deletes,
                                  tarn_str *path, manifest_writer **out, tarn_error *err) {
    commit_work *work = a->work;
    tarn_code code = TARN_OK;
    io_sink *sink = NULL;
    manifest_writer_options options;
    memset(&options, 0, sizeof options);
    char *name = arena_printf(&work->arena, "%s-m%d.avro", work->uuid, work->n_names++);
    if (name == NULL) {
        return err_nomem(err);
    }
    TRY(location_metadata_file(&work->arena, a->metadata, str_of(name), path, err));
    TRY(path_list_add(&work->arena, &work->written, *path, err));
    TRY(store_create(work->store, *path, STORE_CREATE_LATER, &sink, err));
    options.format_version = a->metadata->format_version;
    options.metadata = a->metadata;
    options.schema = metadata_schema(a->metadata);
    options.spec = spec;
    options.is_deletes = is_deletes;
    options.snapshot_id = work->snapshot_id;
    options.codec =
        properties_str(&a->metadata->properties, "write.avro.compression-codec", "gzip");
    TRY(manifest_writer_new(work->env, &options, sink, *path, out, err));
    sink = NULL;
done:
    if (sink != NULL) {
        sink->abort(sink);
    }
    return code;
}

tarn_code produce_read_manifest(commit_attempt *a, tarn_arena *arena, const tarn_manifest *manifest,
                                unsigned want, bool live_only, manifest_entries *out,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    manifest_read_options options;
    memset(&options, 0, sizeof options);
    options.want = want;
    options.live_only = live_only;
    TRY(store_open(a->work->store, manifest->path, manifest->length, &source, err));
    TRY(manifest_read(arena, source, a->metadata, manifest, &options, out, err));
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

static bool counts_known(const tarn_manifest *m) {
    return m->added_files >= 0 && m->existing_files >= 0 && m->deleted_files >= 0 &&
           m->added_rows >= 0 && m->existing_rows >= 0 && m->deleted_rows >= 0;
}

static tarn_code count_manifest(commit_attempt *a, tarn_manifest *m, tarn_error *err) {
    tarn_arena arena;
    manifest_entries entries;
    int32_t files[3] = {0, 0, 0};
    int64_t rows[3] = {0, 0, 0};
    arena_init(&arena, a->work->env);
    tarn_code code = produce_read_manifest(a, &arena, m, 0, false, &entries, err);
    for (int64_t i = 0; code == TARN_OK && i < entries.count; i++) {
        files[entries.items[i].status]++;
        rows[entries.items[i].status] += entries.items[i].file.record_count;
    }
    arena_release(&arena);
    if (code == TARN_OK) {
        m->added_files = files[TARN_ENTRY_ADDED];
        m->existing_files = files[TARN_ENTRY_EXISTING];
        m->deleted_files = files[TARN_ENTRY_DELETED];
        m->added_rows = rows[TARN_ENTRY_ADDED];
        m->existing_rows = rows[TARN_ENTRY_EXISTING];
        m->deleted_rows = rows[TARN_ENTRY_DELETED];
    }
    return code;
}

/* Version 1 may leave the counts open. Later versions cannot, and here 0 would say that a manifest
 * has no live files, and needs no row ids. */
static tarn_code count_manifests(commit_attempt *a, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_manifest *counted = NULL;
    for (int32_t i = 0; i < a->n_manifests; i++) {
        if (counts_known(&a->manifests[i])) {
            continue;
        }
        if (counted == NULL) {
            counted = ARENA_ARRAY(&a->arena, tarn_manifest, (size_t)a->n_manifests);
            if (counted == NULL) {
                return err_nomem(err);
            }
            memcpy(counted, a->manifests, (size_t)a->n_manifests * sizeof *counted);
            a->manifests = counted;
        }
        TRY(count_manifest(a, &counted[i], err));
    }
done:
    return code;
}

/* Some of the request's files: data or deletes. */
typedef struct added_files {
    const tarn_file *items;
    int32_t n;
    bool is_deletes;
    const int64_t *sequences; /* NULL, or one a file; -1: the snapshot's */
} added_files;

static tarn_code close_added(commit_work *work, manifest_writer **writer, tarn_error *err) {
    manifest_writer *closing = *writer;
    *writer = NULL;
    tarn_code code = manifest_writer_close(closing, &work->arena, &work->added[work->n_added], err);
    work->n_added += code == TARN_OK;
    return code;
}

/* Their manifests of one spec, rolled by size. */
static tarn_code write_added(commit_attempt *a, const added_files *files, const tarn_spec *spec,
                             int64_t target_bytes, tarn_error *err) {
    commit_work *work = a->work;
    tarn_code code = TARN_OK;
    manifest_writer *writer = NULL;
    tarn_str path;
    for (int32_t i = 0; i < files->n; i++) {
        if (files->items[i].spec_id != spec->spec_id) {
            continue;
        }
        if (writer == NULL) {
            TRY(produce_manifest_writer(a, spec, files->is_deletes, &path, &writer, err));
        }
        tarn_entry entry;
        memset(&entry, 0, sizeof entry);
        entry.status = TARN_ENTRY_ADDED;
        entry.snapshot_id = work->snapshot_id;
        entry.sequence_number = files->sequences != NULL ? files->sequences[i] : -1;
        entry.file_sequence_number = -1;
        entry.file = files->items[i];
        entry.file.first_row_id = -1; /* spec, "First Row ID Inheritance": not before the commit */
        TRY(manifest_writer_add(writer, &entry, err));
        if (manifest_writer_bytes(writer) >= target_bytes) {
            TRY(close_added(work, &writer, err));
        }
    }
    if (writer != NULL) {
        TRY(close_added(work, &writer, err));
    }
done:
    manifest_writer_abort(writer);
    return code;
}

static tarn_code write_all_added(commit_attempt *a, const added_files *files, int64_t target_bytes,
                                 tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < files->n; i++) {
        if (metadata_spec_by_id(a->metadata, files->items[i].spec_id) == NULL) {
            return err_set(err, TARN_INVALID,
                           "file %.*s was written for partition spec %d, which the table lacks",
                           STR_ARG(files->items[i].path), files->items[i].spec_id);
        }
    }
    for (int32_t i = 0; i < a->metadata->n_specs && files->n > 0; i++) {
        TRY(write_added(a, files, a->metadata->specs[i], target_bytes, err));
    }
done:
    return code;
}

/* As somebody wrote them; what they inherit is this commit's. */
static tarn_code take_manifests(commit_work *work, const commit_origin *origin, tarn_error *err) {
    work->added = ARENA_ARRAY(&work->arena, tarn_manifest, (size_t)origin->n_manifests);
    if (work->added == NULL) {
        return err_nomem(err);
    }
    work->n_added = origin->n_manifests;
    for (int32_t i = 0; i < work->n_added; i++) {
        tarn_manifest *m = &work->added[i];
        *m = origin->manifests[i];
        m->sequence_number = m->min_sequence_number = m->first_row_id = -1;
    }
    return TARN_OK;
}

/* The manifests of added files: once per commit, again only if the base's format version changed
 * meanwhile. */
static tarn_code ensure_added(commit_attempt *a, tarn_error *err) {
    commit_work *work = a->work;
    const commit_request *request = work->request;
    tarn_code code = TARN_OK;
    int64_t target;
    const commit_origin *origin = request->origin;
    const added_files data = {request->added, request->n_added, false,
                              origin != NULL ? origin->added_sequences : NULL};
    const added_files deletes = {request->added_deletes, request->n_added_deletes, true,
                                 origin != NULL ? origin->added_delete_sequences : NULL};
    if (work->added != NULL && work->added_format == a->metadata->format_version) {
        return TARN_OK;
    }
    if (origin != NULL && origin->n_manifests > 0) {
        return work->added != NULL ? TARN_OK : take_manifests(work, origin, err);
    }
    TRY(properties_i64(&a->metadata->properties, "commit.manifest.target-size-bytes",
                       MERGE_TARGET_BYTES, &target, err));
    work->added = ARENA_ARRAY(&work->arena, tarn_manifest, (size_t)data.n + (size_t)deletes.n + 1);
    if (work->added == NULL) {
        return err_nomem(err);
    }
    work->n_added = 0;
    work->added_format = a->metadata->format_version;
    TRY(write_all_added(a, &data, target, err));
    TRY(write_all_added(a, &deletes, target, err));
done:
    return code;
}

tarn_code produce_read_list(commit_attempt *a, const tarn_snapshot *snapshot,
                            const tarn_manifest **out, int32_t *n, tarn_error *err) {
    io_source *source = NULL;
    tarn_code code = TARN_OK;
    if (snapshot->manifest_list.len == 0) {
        return err_set(err, TARN_UNSUPPORTED,
                       "snapshot %lld lists its manifests inline (format version 1); such a table "
                       "is only read",
                       (long long)snapshot->snapshot_id);
    }
    TRY(store_open(a->work->store, snapshot->manifest_list, -1, &source, err));
    TRY(manifest_list_read(&a->arena, source, out, n, err));
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

static bool is_append(const commit_request *request) {
    return request->kind == COMMIT_FAST_APPEND || request->kind == COMMIT_MERGE_APPEND;
}

/* As Iceberg's row delta names itself; but rows that come back because a delete file went are no
 * append. */
static const char *row_delta_name(const commit_request *request) {
    if (request->n_added_deletes > 0 && request->n_added == 0) {
        return "delete";
    }
    return request->n_added_deletes == 0 && request->n_removed == 0 &&
                   request->n_removed_deletes == 0
               ? "append"
               : "overwrite";
}

static const char *operation_name(const commit_attempt *a) {
    const commit_request *request = a->work->request;
    if (request->origin != NULL) {
        return request->origin->operation;
    }
    if (is_append(request)) {
        return "append";
    }
    if (request->kind == COMMIT_ROW_DELTA) {
        return row_delta_name(request);
    }
    if (request->n_added == 0 && request->n_added_deletes == 0 && a->n_removed > 0) {
        return "delete";
    }
    return a->n_removed > 0 || request->n_added_deletes > 0 ||
                   request->kind == COMMIT_REPLACE_PARTITIONS
               ? "overwrite"
               : "append";
}

static tarn_code make_summary(commit_attempt *a, tarn_properties *out, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_properties extra = request->summary;
    size_t cap = (size_t)request->summary.count + 3;
    tarn_property *items = ARENA_ARRAY(&a->arena, tarn_property, cap);
    if (items == NULL) {
        return err_nomem(err);
    }
    if (request->summary.count > 0) {
        memcpy(items, request->summary.items, (size_t)request->summary.count * sizeof *items);
    }
    int32_t n = request->summary.count;
    if (request->commit_id != NULL) {
        items[n++] = (tarn_property){STR("tarn.commit-id"), str_of(request->commit_id)};
    }
    if (request->n_shared_ids > 0) {
        char *count = arena_printf(&a->arena, "%d", request->n_shared_ids);
        if (count == NULL) {
            return err_nomem(err);
        }
        items[n++] = (tarn_property){STR(COMMIT_SHARED_COUNT), str_of(count)};
    }
    if (request->kind == COMMIT_REPLACE_PARTITIONS) {
        items[n++] = (tarn_property){STR("replace-partitions"), STR("true")};
    }
    extra.items = items;
    extra.count = n;
    a->summary.changed_partitions = (int64_t)a->partitions.count;
    return summary_make(&a->arena, operation_name(a), &a->summary, &extra, a->parent, out, err);
}

/* Ids one a line: they hold no line ends. */
static tarn_code put_shared_ids(commit_attempt *a, tarn_property *out, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    tarn_buf text;
    buf_init(&text, a->work->env, 0);
    for (int32_t i = 0; i < request->n_shared_ids; i++) {
        TRY(buf_append_str(&text, request->shared_ids[i], err));
        TRY(buf_append_char(&text, '\n', err));
    }
    *out = (tarn_property){STR(SHARED_IDS_KEY), arena_str(&a->arena, buf_str(&text))};
    code = out->value.data != NULL ? TARN_OK : err_nomem(err);
done:
    buf_release(&text);
    return code;
}

static tarn_code write_list(commit_attempt *a, const tarn_snapshot *s, tarn_str *path,
                            tarn_error *err) {
    commit_work *work = a->work;
    tarn_code code = TARN_OK;
    io_sink *sink = NULL;
    manifest_list_options options;
    const tarn_properties *more = &work->request->list_properties;
    tarn_property *extra = ARENA_ARRAY(&work->arena, tarn_property, (size_t)more->count + 1);
    if (extra == NULL) {
        return err_nomem(err);
    }
    memset(&options, 0, sizeof options);
    options.extra = (tarn_properties){more->count, extra};
    for (int32_t i = 0; i < more->count; i++) {
        extra[i] = more->items[i];
    }
    if (work->request->n_shared_ids > 0) {
        TRY(put_shared_ids(a, &extra[options.extra.count++], err));
    }
    char *name = arena_printf(&work->arena, "snap-%lld-%d-%s.avro", (long long)work->snapshot_id,
                              work->attempt, work->uuid);
    if (name == NULL) {
        return err_nomem(err);
    }
    TRY(location_metadata_file(&work->arena, a->metadata, str_of(name), path, err));
    TRY(path_list_add(&work->arena, &work->written, *path, err));
    TRY(store_create(work->store, *path, STORE_CREATE_LATER, &sink, err));
    options.format_version = a->metadata->format_version;
    options.snapshot_id = work->snapshot_id;
    options.parent_id = s->parent_id;
    options.sequence_number = s->sequence_number;
    options.first_row_id = s->first_row_id;
    options.codec =
        properties_str(&a->metadata->properties, "write.avro.compression-codec", "gzip");
    code = manifest_list_write(work->env, &options, a->list, a->n_list, sink, err);
    if (code != TARN_OK) {
        sink->abort(sink);
        goto done;
    }
    TRY(sink->finish(sink, err));
done:
    return code;
}

static tarn_code count_added(commit_attempt *a, const tarn_file *files, int32_t n,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < n; i++) {
        summary_add(&a->summary.added, &files[i]);
        TRY(produce_count_partition(a, &files[i], err));
    }
done:
    return code;
}

static tarn_code add_new(commit_attempt *a, bool deletes, tarn_error *err) {
    const commit_work *work = a->work;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < work->n_added; i++) {
        if (work->added[i].is_deletes == deletes) {
            TRY(produce_add_manifest(a, &work->added[i], err));
        }
    }
done:
    return code;
}

/* The new snapshot's list: data manifests, new ones first, then delete manifests alike. */
static tarn_code collect_manifests(commit_attempt *a, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    TRY(merge_is_wanted(a, &a->merges, err));
    TRY(deletes_check(a, err));
    TRY(ensure_added(a, err));
    TRY(count_added(a, request->added, request->n_added, err));
    TRY(count_added(a, request->added_deletes, request->n_added_deletes, err));
    TRY(add_new(a, false, err));
    if (is_append(request)) {
        for (int32_t i = 0; i < a->n_manifests; i++) {
            TRY(produce_add_manifest(a, &a->manifests[i], err));
        }
    } else {
        TRY(filter_manifests(a, err));
        TRY(add_new(a, true, err));
        TRY(deletes_filter(a, err));
    }
    if (a->merges) {
        TRY(merge_manifests(a, err));
    }
done:
    return code;
}

tarn_code produce_snapshot(commit_attempt *a, tarn_error *err) {
    commit_work *work = a->work;
    tarn_code code = TARN_OK;
    const tarn_metadata *m = a->metadata;
    if (a->parent != NULL) {
        TRY(produce_read_list(a, a->parent, &a->manifests, &a->n_manifests, err));
    }
    if (m->format_version > 1) {
        TRY(count_manifests(a, err));
    }
    map_init(&a->partitions, &a->arena);
    map_init(&a->gone, &a->arena);
    map_init(&a->replaced, &a->arena);
    for (int32_t i = 0; i < a->n_manifests; i++) {
        a->has_deletes |= a->manifests[i].is_deletes && !filter_is_spent(&a->manifests[i]);
    }
    TRY(validate_history(a, err));
    a->summary.changed_partitions = -1;
    TRY(collect_manifests(a, err));
    if (work->request->n_added == 0 && work->request->n_added_deletes == 0 && a->n_removed == 0 &&
        !work->request->allow_empty) {
        a->snapshot = NULL;
        return TARN_OK;
    }
    tarn_snapshot *s = ARENA_NEW(&a->arena, tarn_snapshot);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->snapshot_id = work->snapshot_id;
    s->parent_id = a->parent != NULL ? a->parent->snapshot_id : TARN_NO_SNAPSHOT;
    s->sequence_number = m->format_version == 1 ? 0 : m->last_sequence_number + 1;
    s->timestamp_ms = env_now_ms(work->env);
    if (s->timestamp_ms <= m->last_updated_ms) {
        s->timestamp_ms =
            m->last_updated_ms + 1; /* clocks differ; the log must not run backwards */
    }
    s->schema_id =
        work->request->origin != NULL ? work->request->origin->schema_id : m->current_schema_id;
    s->first_row_id = -1;
    s->added_rows = -1;
    if (m->format_version >= 3) { /* spec, "Snapshot Row IDs": anew on each attempt */
        s->first_row_id = m->next_row_id;
        s->added_rows =
            manifest_assign_row_ids(a->list, a->n_list, m->next_row_id) - m->next_row_id;
    }
    TRY(write_list(a, s, &s->manifest_list, err));
    TRY(make_summary(a, &s->summary, err));
    a->snapshot = s;
done:
    return code;
}
