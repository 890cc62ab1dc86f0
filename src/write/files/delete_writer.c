/* write/files/delete_writer.c - see delete_writer.h.
 *
 * Positions are collected in one bitmap per data file. A close sorts the data files by partition
 * and path, and writes them out: as rows of (file_path, pos), or as vectors into Puffin files. */
#include "write/files/delete_writer.h"

#include <stdlib.h>

#include "base/map.h"
#include "format/puffin/puffin.h"
#include "iceberg/location.h"
#include "write/files/file_writer.h"

/* Spec, "Reserved Field IDs". */
#define ID_FILE_PATH    2147483546
#define ID_POS          2147483545
#define ID_ROW_POSITION 2147483645

#define PIECE_ROWS  16384
#define VECTORS_MAX 100000 /* of one Puffin file, so that its footer can be read in memory */

typedef struct delete_target { /* one data file */
    tarn_file data;            /* path, spec and partition */
    tarn_positions *positions;
    tarn_entry *replaced;
    int32_t n_replaced, replaced_cap;
} delete_target;

struct delete_writer {
    tarn_env *env;
    tarn_store *store;
    tarn_arena arena; /* for the writer's life */
    tarn_arena round; /* until close hands everything out */
    const tarn_metadata *metadata;
    delete_kind kind;
    bool by_partition; /* granularity of position deletes */
    file_format_options format;
    int32_t partition_id, task_id, file_count;
    char operation_id[37];
    tarn_map targets; /* path -> delete_target */
    tarn_file *files; /* finished, not handed out */
    int32_t n_files, files_cap;
    tarn_code broken; /* why nothing may be handed out any more; OK: it may */
};

static const tarn_type *delete_root(tarn_arena *arena) {
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, 2);
    if (fields == NULL) {
        return NULL;
    }
    fields[0] = (tarn_field){.id = ID_FILE_PATH,
                             .required = true,
                             .name = STR("file_path"),
                             .type = type_primitive(TARN_STRING)};
    fields[1] = (tarn_field){
        .id = ID_POS, .required = true, .name = STR("pos"), .type = type_primitive(TARN_LONG)};
    return type_struct(arena, fields, 2);
}

/* Spec, "Delete Formats": position delete files may not be added to a table of version 3, and
 * vectors are not known before. */
static tarn_code check_version(const delete_writer_options *options, tarn_error *err) {
    int32_t version = options->metadata->format_version;
    if (options->kind == DELETE_VECTOR && version < 3) {
        return err_set(err, TARN_INVALID,
                       "deletion vectors need format version 3, and this table has %d", version);
    }
    if (options->kind == DELETE_POSITION && version != 2) {
        return err_set(err, TARN_INVALID,
                       "position delete files are for tables of format version 2, and this one "
                       "has %d%s",
                       version, version > 2 ? ", where deletion vectors take their place" : "");
    }
    return TARN_OK;
}

static tarn_code read_granularity(delete_writer *w, tarn_error *err) {
    tarn_str text = properties_str(&w->metadata->properties, "write.delete.granularity", "file");
    w->by_partition = str_eq_nocase(text, STR("partition"));
    if (!w->by_partition && !str_eq_nocase(text, STR("file"))) {
        return err_set(
            err, TARN_INVALID,
            "property write.delete.granularity was \"%.*s\"; file and partition are known",
            STR_ARG(text));
    }
    return TARN_OK;
}

static tarn_code read_options(delete_writer *w, const delete_writer_options *options,
                              tarn_error *err) {
    static const int32_t full_ids[] = {ID_FILE_PATH, ID_POS};
    tarn_code code = TARN_OK;
    avro_meta *meta = ARENA_NEW(&w->arena, avro_meta);
    const tarn_type *root = delete_root(&w->arena);
    if (meta == NULL || root == NULL) {
        return err_nomem(err);
    }
    *meta = (avro_meta){STR("delete-type"), STR("position")};
    w->metadata = options->metadata;
    w->kind = options->kind;
    w->partition_id = options->partition_id;
    w->task_id = options->task_id;
    if (options->operation_id != NULL && strlen(options->operation_id) < sizeof w->operation_id) {
        memcpy(w->operation_id, options->operation_id, strlen(options->operation_id) + 1);
    } else {
        env_uuid_v4(w->env, w->operation_id);
    }
    file_purpose purpose = {true, root, full_ids, 2, meta, 1};
    TRY(check_version(options, err));
    TRY(read_granularity(w, err));
    if (w->kind == DELETE_VECTOR) { /* Puffin, whatever the format of rows */
        TRY(file_target_bytes(w->metadata, true, &w->format.target_bytes, err));
    } else {
        TRY(file_format_options_init(&w->arena, w->metadata, &purpose, &w->format, err));
    }
done:
    return code;
}

static void begin_round(delete_writer *w) {
    for (size_t i = 0; i < w->targets.count; i++) {
        positions_free(((delete_target *)w->targets.entries[i].value.ptr)->positions);
    }
    arena_release(&w->round);
    arena_init(&w->round, w->env);
    map_init(&w->targets, &w->round);
    w->files = NULL;
    w->n_files = 0;
    w->files_cap = 0;
}

tarn_code delete_writer_new(tarn_env *env, tarn_store *store, const delete_writer_options *options,
                            delete_writer **out, tarn_error *err) {
    delete_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    w->store = store;
    arena_init(&w->arena, env);
    begin_round(w);
    tarn_code code = read_options(w, options, err);
    if (code == TARN_OK) {
        *out = w;
    } else {
        delete_writer_free(w);
    }
    return code;
}

/* A target is in the map only once it has its bitmap. */
static tarn_code add_target(delete_writer *w, const tarn_file *data, delete_target **out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    delete_target *target = ARENA_NEW(&w->round, delete_target);
    tarn_value *partition = ARENA_ARRAY(&w->round, tarn_value, (size_t)data->n_partition + 1);
    tarn_positions *positions = NULL;
    if (target == NULL || partition == NULL) {
        return err_nomem(err);
    }
    target->data.path = arena_str(&w->round, data->path);
    if (target->data.path.data == NULL) {
        return err_nomem(err);
    }
    const tarn_spec *spec = metadata_spec_by_id(w->metadata, data->spec_id);
    if (spec == NULL || spec->n_fields != data->n_partition) {
        return err_set(err, TARN_INVALID, "data file %.*s has partition spec %d, which is unknown",
                       STR_ARG(data->path), data->spec_id);
    }
    for (int32_t i = 0; i < data->n_partition; i++) {
        TRY(value_copy(&w->round, &data->partition[i], &partition[i], err));
    }
    target->data.spec_id = data->spec_id;
    target->data.n_partition = data->n_partition;
    target->data.partition = partition;
    TRY(positions_new(w->env, &positions, err));
    map_entry *entry = map_put(&w->targets, target->data.path, NULL);
    if (entry == NULL) {
        positions_free(positions);
        return err_nomem(err);
    }
    target->positions = positions;
    entry->value.ptr = target;
    *out = target;
done:
    return code;
}

static tarn_code target_for(delete_writer *w, const tarn_file *data, delete_target **out,
                            tarn_error *err) {
    if (w->broken != TARN_OK) {
        return err_set(err, w->broken,
                       "an earlier write of this writer failed; its deletes were dropped");
    }
    map_entry *entry = map_find(&w->targets, data->path);
    if (entry == NULL) {
        return add_target(w, data, out, err);
    }
    *out = entry->value.ptr;
    return TARN_OK;
}

tarn_code delete_writer_add(delete_writer *w, const tarn_file *data, const int64_t *positions,
                            size_t n, tarn_error *err) {
    delete_target *target = NULL;
    tarn_code code = target_for(w, data, &target, err);
    if (code == TARN_OK) {
        code = positions_add(target->positions, positions, n, err);
    }
    return code;
}

static tarn_code add_replaced(delete_writer *w, delete_target *target, const tarn_entry *entry,
                              tarn_error *err) {
    if (target->n_replaced == target->replaced_cap) {
        int32_t cap = target->replaced_cap == 0 ? 1 : target->replaced_cap * 2;
        tarn_entry *grown =
            arena_grow(&w->round, target->replaced, (size_t)target->replaced_cap * sizeof *grown,
                       (size_t)cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        target->replaced = grown;
        target->replaced_cap = cap;
    }
    tarn_entry *copy = &target->replaced[target->n_replaced];
    *copy = *entry;
    tarn_code code = file_copy(&w->round, &entry->file, &copy->file, err);
    if (code == TARN_OK) {
        target->n_replaced++;
    }
    return code;
}

tarn_code delete_writer_merge(delete_writer *w, const tarn_file *data, const tarn_positions *before,
                              const tarn_entry *const *replaced, int32_t n_replaced,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    delete_target *target = NULL;
    TRY(target_for(w, data, &target, err));
    TRY(positions_add_all(target->positions, before, err));
    for (int32_t i = 0; i < n_replaced; i++) {
        TRY(add_replaced(w, target, replaced[i], err));
    }
done:
    return code;
}

/* By partition, then by path: what goes to one file of partition granularity stands together, and
 * files come out the same whatever the order of the deletes. */
static int compare_tuples(const tarn_file *a, const tarn_file *b) {
    if (a->spec_id != b->spec_id) {
        return a->spec_id < b->spec_id ? -1 : 1;
    }
    for (int32_t i = 0; i < a->n_partition; i++) {
        const tarn_value *x = &a->partition[i];
        const tarn_value *y = &b->partition[i];
        int order = x->is_null || y->is_null ? y->is_null - x->is_null : value_cmp(x, y);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

static bool is_above(const delete_target *a, const delete_target *b) {
    int order = compare_tuples(&a->data, &b->data);
    return order > 0 || (order == 0 && str_cmp(a->data.path, b->data.path) > 0);
}

static void sift_down(delete_target **heap, size_t root, size_t n) {
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && is_above(heap[child + 1], heap[child])) {
            child++;
        }
        if (!is_above(heap[child], heap[root])) {
            return;
        }
        delete_target *swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
        root = child;
    }
}

static void sort_targets(delete_target **targets, size_t n) {
    for (size_t i = n / 2; i-- > 0;) {
        sift_down(targets, i, n);
    }
    for (size_t last = n; last-- > 1;) {
        delete_target *swap = targets[0];
        targets[0] = targets[last];
        targets[last] = swap;
        sift_down(targets, 0, last);
    }
}

/* Those that have positions, sorted; in the round's arena. */
static tarn_code list_targets(delete_writer *w, delete_target ***out, size_t *n_out,
                              tarn_error *err) {
    size_t n = 0;
    delete_target **targets = ARENA_ARRAY(&w->round, delete_target *, w->targets.count + 1);
    if (targets == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < w->targets.count; i++) {
        delete_target *target = w->targets.entries[i].value.ptr;
        if (positions_max(target->positions) >= 0) {
            targets[n++] = target;
        }
    }
    sort_targets(targets, n);
    *out = targets;
    *n_out = n;
    return TARN_OK;
}

static tarn_code name_file(delete_writer *w, const tarn_spec *spec, const tarn_value *partition,
                           const char *extension, tarn_str *out, tarn_error *err) {
    char *name = arena_printf(&w->round, "%05d-%d-%s-%05d-deletes.%s", w->partition_id, w->task_id,
                              w->operation_id, ++w->file_count, extension);
    if (name == NULL) {
        return err_nomem(err);
    }
    return location_data_file(&w->round, w->metadata, spec, partition, str_of(name), out, err);
}

/* Room for the entries of a file, had before it is finished. */
static tarn_code reserve_files(delete_writer *w, int32_t n, tarn_error *err) {
    if (w->n_files + n <= w->files_cap) {
        return TARN_OK;
    }
    int32_t cap = w->files_cap * 2 > w->n_files + n ? w->files_cap * 2 : w->n_files + n + 16;
    tarn_file *files = arena_grow(&w->round, w->files, (size_t)w->files_cap * sizeof *files,
                                  (size_t)cap * sizeof *files);
    if (files == NULL) {
        return err_nomem(err);
    }
    w->files = files;
    w->files_cap = cap;
    return TARN_OK;
}

/* ---- position delete files ---- */

/* A position delete file in the making. */
typedef struct open_deletes {
    file_writer file;
    bool open;
    const delete_target *first, *last; /* data files in it */
} open_deletes;

static tarn_code open_deletes_for(delete_writer *w, const delete_target *target, open_deletes *o,
                                  tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str path;
    const tarn_spec *spec = metadata_spec_by_id(w->metadata, target->data.spec_id);
    TRY(name_file(w, spec, target->data.partition, w->format.extension, &path, err));
    TRY(file_writer_open(&o->file, w->env, w->store, &w->format, path, err));
    o->open = true;
    o->first = target;
done:
    return code;
}

/* Avro files count nothing, and readers leave delete files out by the bounds of their paths: so
 * these are always there, uncut. */
static tarn_code set_path_bounds(delete_writer *w, const open_deletes *o, tarn_file *entry,
                                 tarn_error *err) {
    tarn_str bound;
    if (metric_find_bound(entry->lower, entry->n_lower, ID_FILE_PATH, &bound) &&
        metric_find_bound(entry->upper, entry->n_upper, ID_FILE_PATH, &bound)) {
        return TARN_OK;
    }
    metric_bound *bounds = ARENA_ARRAY(&w->round, metric_bound, 2);
    if (bounds == NULL) {
        return err_nomem(err);
    }
    bounds[0] = (metric_bound){ID_FILE_PATH, o->first->data.path};
    bounds[1] = (metric_bound){ID_FILE_PATH, o->last->data.path};
    entry->lower = &bounds[0];
    entry->upper = &bounds[1];
    entry->n_lower = 1;
    entry->n_upper = 1;
    return TARN_OK;
}

static tarn_code finish_deletes(delete_writer *w, open_deletes *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_file entry;
    TRY(reserve_files(w, 1, err));
    o->open = false;
    code = file_writer_close(&o->file, &w->round, &entry, err);
    if (code != TARN_OK) {
        store_discard(w->store, o->file.path); /* it may lie there all the same (B64) */
        goto done;
    }
    entry.content = TARN_CONTENT_POSITION_DELETES;
    entry.spec_id = o->first->data.spec_id;
    entry.n_partition = o->first->data.n_partition;
    entry.partition = o->first->data.partition;
    entry.sort_order_id = -1; /* spec: null for position deletes */
    if (o->first == o->last) {
        entry.referenced_data_file = o->first->data.path;
    }
    w->files[w->n_files++] = entry; /* from here on it is removed if anything fails */
    TRY(set_path_bounds(w, o, &w->files[w->n_files - 1], err));
done:
    return code;
}

static tarn_code make_rows(delete_writer *w, const delete_target *target, const int64_t *positions,
                           size_t n, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder builder;
    memset(&builder, 0, sizeof builder);
    TRY(builder_init(&builder, w->env, w->format.root, err));
    TRY(builder_reserve(&builder, (int64_t)n, err));
    TRY(builder_reserve_bytes(&builder.children[0], n * target->data.path.len, err));
    for (size_t i = 0; i < n; i++) {
        TRY(builder_bytes(&builder.children[0], target->data.path, err));
        TRY(builder_fixed(&builder.children[1], &positions[i], err));
        TRY(builder_close(&builder, err));
    }
    TRY(builder_finish_batch(&builder, out, err));
done:
    builder_release(&builder);
    return code;
}

/* All positions of one data file, in pieces; the file rolls between them. */
static tarn_code write_target(delete_writer *w, const delete_target *target, open_deletes *o,
                              int64_t *piece, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    int64_t from = 0;
    for (;;) {
        size_t n = positions_from(target->positions, from, piece, PIECE_ROWS);
        if (n == 0) {
            break;
        }
        from = piece[n - 1] + 1;
        if (!o->open) {
            TRY(open_deletes_for(w, target, o, err));
        }
        o->last = target;
        TRY(make_rows(w, target, piece, n, &batch, err));
        TRY(file_writer_write(&o->file, &batch, err));
        batch_release(&batch);
        if (file_writer_written_bytes(&o->file) >= w->format.target_bytes) {
            TRY(finish_deletes(w, o, err));
        }
    }
done:
    batch_release(&batch);
    return code;
}

static tarn_code write_positions(delete_writer *w, delete_target *const *targets, size_t n,
                                 tarn_error *err) {
    tarn_code code = TARN_OK;
    open_deletes o = {0};
    int64_t *piece = env_alloc(w->env, PIECE_ROWS * sizeof *piece);
    if (piece == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        TRY(write_target(w, targets[i], &o, piece, err));
        bool goes_on = w->by_partition && i + 1 < n &&
                       compare_tuples(&targets[i]->data, &targets[i + 1]->data) == 0;
        if (o.open && !goes_on) {
            TRY(finish_deletes(w, &o, err));
        }
    }
done:
    if (o.open) {
        file_writer_abort(&o.file);
    }
    env_free(w->env, piece);
    return code;
}

/* ---- deletion vectors ---- */

/* A Puffin file in the making; its entries stand behind those of finished files until it is one. */
typedef struct open_vectors {
    puffin_writer *puffin;
    tarn_str path;
    int32_t n;
    int64_t bytes;
    size_t last_len;
} open_vectors;

static tarn_code open_puffin(delete_writer *w, open_vectors *o, tarn_error *err) {
    static const tarn_spec nowhere = {0}; /* vectors of all partitions lie together */
    tarn_code code = TARN_OK;
    io_sink *sink = NULL;
    TRY(name_file(w, &nowhere, NULL, "puffin", &o->path, err));
    TRY(store_create(w->store, o->path, STORE_CREATE_LATER, &sink, err));
    code = puffin_writer_new(w->env, sink, &o->puffin, err);
    if (code != TARN_OK) {
        sink->abort(sink);
    }
    o->n = 0;
    o->bytes = 0;
    o->last_len = 0;
done:
    return code;
}

static tarn_code finish_puffin(delete_writer *w, open_vectors *o, tarn_error *err) {
    int64_t size = 0;
    puffin_writer *puffin = o->puffin;
    o->puffin = NULL;
    tarn_code code = puffin_writer_close(puffin, &size, err);
    if (code != TARN_OK) {
        store_discard(w->store, o->path); /* it may lie there all the same (B64) */
        return code;
    }
    for (int32_t i = 0; i < o->n; i++) {
        w->files[w->n_files++].size_bytes = size;
    }
    return TARN_OK;
}

static void describe_vector(const delete_target *target, const open_vectors *o, int64_t offset,
                            int64_t length, tarn_file *out) {
    *out = (tarn_file){.content = TARN_CONTENT_POSITION_DELETES,
                       .format = TARN_FORMAT_PUFFIN,
                       .path = o->path,
                       .spec_id = target->data.spec_id,
                       .n_partition = target->data.n_partition,
                       .partition = target->data.partition,
                       .record_count = positions_count(target->positions),
                       .sort_order_id = -1,
                       .first_row_id = -1,
                       .referenced_data_file = target->data.path,
                       .content_offset = offset,
                       .content_size = length};
}

static tarn_code write_vector(delete_writer *w, const delete_target *target, open_vectors *o,
                              tarn_buf *vector, tarn_error *err) {
    static const int32_t field = ID_ROW_POSITION;
    tarn_code code = TARN_OK;
    char cardinality[24];
    int64_t offset = 0;
    buf_reset(vector);
    TRY(vector_encode(target->positions, vector, err));
    size_t digits = str_from_i64(positions_count(target->positions), cardinality);
    const puffin_property properties[] = {
        {STR("referenced-data-file"), target->data.path},
        {STR("cardinality"), str_make(cardinality, digits)},
    };
    const puffin_blob blob = {.type = STR("deletion-vector-v1"),
                              .fields = &field,
                              .n_fields = 1,
                              .snapshot_id = -1,
                              .sequence_number = -1,
                              .properties = properties,
                              .n_properties = 2};
    TRY(reserve_files(w, o->n + 1, err));
    if (vector->len == o->last_len) {
        TRY(puffin_writer_gap(o->puffin, err));
    }
    TRY(puffin_writer_add(o->puffin, &blob, buf_str(vector), &offset, err));
    describe_vector(target, o, offset, (int64_t)vector->len, &w->files[w->n_files + o->n]);
    o->n++;
    o->bytes += (int64_t)vector->len;
    o->last_len = vector->len;
done:
    return code;
}

typedef struct sized_vector {
    delete_target *target;
    size_t len, order;
} sized_vector;

static int compare_sized(const void *a, const void *b) {
    const sized_vector *x = a;
    const sized_vector *y = b;
    if (x->len != y->len) {
        return x->len < y->len ? -1 : 1;
    }
    return x->order < y->order ? -1 : 1;
}

/* Short vectors come before long ones, and a byte lies between two of one length: DuckDB 1.5 reads
 * up to the next vector that it has read before where no more than a vector's own length lies
 * between (a cache of ranges), takes what starts there for any vector in that range, and says
 * nothing. In this order more than that always lies between, whichever way they are read. */
static tarn_code sort_vectors(delete_writer *w, delete_target *const *targets, size_t n,
                              tarn_buf *vector, sized_vector **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    sized_vector *sorted = ARENA_ARRAY(&w->round, sized_vector, n + 1);
    if (sorted == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        buf_reset(vector);
        TRY(vector_encode(targets[i]->positions, vector, err));
        sorted[i] = (sized_vector){targets[i], vector->len, i};
    }
    qsort(sorted, n, sizeof *sorted, compare_sized);
    *out = sorted;
done:
    return code;
}

static tarn_code write_vectors(delete_writer *w, delete_target *const *targets, size_t n,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    open_vectors o = {0};
    sized_vector *sorted = NULL;
    tarn_buf vector;
    buf_init(&vector, w->env, 0);
    TRY(sort_vectors(w, targets, n, &vector, &sorted, err));
    for (size_t i = 0; i < n; i++) {
        if (o.puffin == NULL) {
            TRY(open_puffin(w, &o, err));
        }
        TRY(write_vector(w, sorted[i].target, &o, &vector, err));
        if (i + 1 == n || o.bytes >= w->format.target_bytes || o.n >= VECTORS_MAX) {
            TRY(finish_puffin(w, &o, err));
        }
    }
done:
    puffin_writer_abort(o.puffin);
    buf_release(&vector);
    return code;
}

/* ---- handing out ---- */

static tarn_code add_files(delete_writer *w, tarn_arena *arena, write_result *out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t have = (size_t)out->n_deletes;
    tarn_file *files = ARENA_ARRAY(arena, tarn_file, have + (size_t)w->n_files + 1);
    if (files == NULL) {
        return err_nomem(err);
    }
    if (have > 0) {
        memcpy(files, out->deletes, have * sizeof *files);
    }
    for (int32_t i = 0; i < w->n_files; i++) {
        TRY(file_copy(arena, &w->files[i], &files[have + (size_t)i], err));
        out->deleted_rows += w->files[i].record_count;
    }
    out->deletes = files;
    out->n_deletes += w->n_files;
done:
    return code;
}

static tarn_code add_referenced(delete_target *const *targets, size_t n, tarn_arena *arena,
                                write_result *out, tarn_error *err) {
    size_t have = (size_t)out->n_referenced;
    tarn_str *referenced = ARENA_ARRAY(arena, tarn_str, have + n + 1);
    if (referenced == NULL) {
        return err_nomem(err);
    }
    if (have > 0) {
        memcpy(referenced, out->referenced, have * sizeof *referenced);
    }
    for (size_t i = 0; i < n; i++) {
        referenced[have + i] = arena_str(arena, targets[i]->data.path);
        if (referenced[have + i].data == NULL) {
            return err_nomem(err);
        }
    }
    out->referenced = referenced;
    out->n_referenced += (int32_t)n;
    return TARN_OK;
}

static tarn_code add_removed(delete_target *const *targets, size_t n, tarn_arena *arena,
                             write_result *out, tarn_error *err) {
    size_t have = (size_t)out->n_removed_deletes;
    size_t more = 0;
    for (size_t i = 0; i < n; i++) {
        more += (size_t)targets[i]->n_replaced;
    }
    tarn_entry *removed = ARENA_ARRAY(arena, tarn_entry, have + more + 1);
    if (removed == NULL) {
        return err_nomem(err);
    }
    if (have > 0) {
        memcpy(removed, out->removed_deletes, have * sizeof *removed);
    }
    for (size_t i = 0; i < n; i++) {
        for (int32_t k = 0; k < targets[i]->n_replaced; k++) {
            const tarn_entry *from = &targets[i]->replaced[k];
            removed[have] = *from;
            tarn_code code = file_copy(arena, &from->file, &removed[have].file, err);
            if (code != TARN_OK) {
                return code;
            }
            have++;
        }
    }
    out->removed_deletes = removed;
    out->n_removed_deletes = (int32_t)have;
    return TARN_OK;
}

static void remove_finished(delete_writer *w) {
    const write_result result = {.deletes = w->files, .n_deletes = w->n_files};
    write_result_remove(w->store, &result);
    w->n_files = 0;
}

tarn_code delete_writer_close(delete_writer *w, tarn_arena *arena, write_result *out,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = 0;
    delete_target **targets = NULL;
    write_result result = *out;
    if (w->broken != TARN_OK) {
        return err_set(err, w->broken,
                       "an earlier write of this writer failed; its deletes were dropped");
    }
    TRY(list_targets(w, &targets, &n, err));
    if (w->kind == DELETE_VECTOR) {
        TRY(write_vectors(w, targets, n, err));
    } else {
        TRY(write_positions(w, targets, n, err));
    }
    TRY(add_files(w, arena, &result, err));
    TRY(add_referenced(targets, n, arena, &result, err));
    TRY(add_removed(targets, n, arena, &result, err));
    *out = result;
    begin_round(w);
done:
    if (code != TARN_OK) {
        w->broken = code;
        remove_finished(w);
    }
    return code;
}

void delete_writer_free(delete_writer *w) {
    if (w == NULL) {
        return;
    }
    begin_round(w);
    arena_release(&w->arena);
    env_free(w->env, w);
}
