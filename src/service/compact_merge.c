/* service/compact_merge.c - see compact_merge.h. */
#include "service/compact_merge.h"

#include "read/scan.h"
#include "write/partition/partition.h"

#define MEMORY_BYTES        (16u << 20)
#define MEMORY_SORTED_BYTES (64u << 20) /* beyond it rows to be sorted take a detour by disk */

typedef struct file_merge {
    tarn_env *env;
    tarn_store *store;
    const compact_input_files *in;
    tarn_arena arena;
    const tarn_spec *spec;
    const json_value *name_mapping;
    tarn_partitioner *partitioner; /* NULL: there is no partition to hold rows against */
    data_writer *writer;
    int64_t rows; /* as they were said */
    int32_t liar;
} file_merge;

static tarn_code open_writer(file_merge *w, tarn_error *err) {
    data_writer_options options;
    const tarn_metadata *m = w->in->metadata;
    const int32_t order = w->in->files[0]->sort_order_id;
    const bool sorted = order > 0 && order == m->default_sort_order_id;
    memset(&options, 0, sizeof options);
    options.metadata = m;
    options.spec = w->spec;
    options.keep_order = !sorted;
    options.memory_bytes = sorted ? MEMORY_SORTED_BYTES : MEMORY_BYTES;
    options.target_bytes = w->in->target_bytes;
    return data_writer_new(w->env, w->store, &options, &w->writer, err);
}

static tarn_code begin_merge(file_merge *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str mapping;
    const tarn_metadata *m = w->in->metadata;
    const tarn_type *partition_type;
    w->spec = metadata_spec_by_id(m, w->in->files[0]->spec_id);
    if (w->spec == NULL) {
        return err_set(err, TARN_INTERNAL, "the table has no partition spec %d",
                       w->in->files[0]->spec_id);
    }
    if (properties_get(&m->properties, "schema.name-mapping.default", &mapping)) {
        json_value *json;
        TRY(json_parse(&w->arena, mapping, "property schema.name-mapping.default", &json, err));
        w->name_mapping = json;
    }
    if (w->spec->n_fields > 0) {
        TRY(spec_partition_type(&w->arena, w->spec, m, &partition_type, err));
        TRY(partitioner_new(w->env, metadata_schema(m)->root, w->spec, partition_type,
                            &w->partitioner, err));
    }
    TRY(open_writer(w, err));
done:
    return code;
}

static bool is_in_partition(const tarn_file *file, const partition_group *group) {
    bool same = true;
    for (int32_t i = 0; same && i < file->n_partition; i++) {
        const tarn_value *a = &file->partition[i];
        const tarn_value *b = &group->partition[i];
        same = a->is_null == b->is_null && (a->is_null || value_eq(a, b));
    }
    return same;
}

static tarn_code check_partition(file_merge *w, int32_t number, const tarn_batch *batch,
                                 tarn_error *err) {
    const partition_group *groups;
    size_t n;
    const tarn_file *file = w->in->files[number];
    if (w->partitioner == NULL) {
        return TARN_OK;
    }
    tarn_code code = partitioner_split(w->partitioner, batch, &groups, &n, err);
    if (code == TARN_OK && (n != 1 || !is_in_partition(file, &groups[0]))) {
        w->liar = number;
        code = err_set(err, TARN_INVALID,
                       "file %.*s holds rows of other partitions than the one that was said",
                       STR_ARG(file->path));
    }
    return code;
}

static tarn_code copy_batch(file_merge *w, int32_t number, const tarn_batch *batch,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_file *file = w->in->files[number];
    TRY(env_check_cancel(w->env, err));
    if (env_now_us(w->env) > w->in->deadline_us) {
        return err_set(err, TARN_LIMIT, "the time for merging files was over");
    }
    TRY(check_partition(w, number, batch, err));
    code = data_writer_write(w->writer, batch, err);
    if (code == TARN_INVALID) { /* nothing was written of it: a null where none may be */
        w->liar = number;
        (void)err_add(err, code, "file %.*s", STR_ARG(file->path));
    }
done:
    return code;
}

/* Rows that know their own ids would get new ones. */
static bool has_lineage(const file_scan *scan) {
    return file_scan_has(scan, FIELD_ID_ROW_ID) ||
           file_scan_has(scan, FIELD_ID_LAST_UPDATED_SEQUENCE);
}

static tarn_code copy_file(file_merge *w, int32_t number, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_file *file = w->in->files[number];
    file_scan *scan = NULL;
    file_scan_options options;
    scan_counters counters;
    tarn_batch batch;
    int64_t rows = 0;
    memset(&options, 0, sizeof options);
    memset(&counters, 0, sizeof counters);
    memset(&batch, 0, sizeof batch);
    options.wanted = metadata_schema(w->in->metadata)->root;
    options.name_mapping = w->name_mapping;
    code = file_scan_open(w->env, w->store, file, w->spec, &options, &scan, err);
    if (code == TARN_NOT_FOUND) {
        w->liar = number;
    }
    TRY(code);
    if (has_lineage(scan)) {
        code = err_set(err, TARN_UNSUPPORTED, "file %.*s holds the ids of its rows",
                       STR_ARG(file->path));
        goto done;
    }
    do {
        batch_release(&batch);
        TRY(file_scan_next(scan, &batch, &counters, err));
        rows += batch_rows(&batch);
        if (batch_rows(&batch) > 0) {
            TRY(copy_batch(w, number, &batch, err));
        }
    } while (batch_rows(&batch) > 0);
    if (rows != file->record_count) {
        w->liar = number;
        code = err_set(err, TARN_INVALID, "file %.*s has %lld rows, and %lld were said",
                       STR_ARG(file->path), (long long)rows, (long long)file->record_count);
    }
    w->rows += file->record_count;
done:
    batch_release(&batch);
    file_scan_close(scan);
    return code;
}

tarn_code compact_merge_files(tarn_env *env, tarn_store *store, const compact_input_files *in,
                              tarn_arena *arena, write_result *out, int32_t *liar,
                              tarn_error *err) {
    file_merge w = {.env = env, .store = store, .in = in, .liar = -1};
    tarn_code code = TARN_OK;
    arena_init(&w.arena, env);
    TRY(begin_merge(&w, err));
    for (int32_t i = 0; i < in->n; i++) {
        TRY(copy_file(&w, i, err));
    }
    TRY(data_writer_close(w.writer, arena, out, err));
    if (out->rows != w.rows || out->n_files >= in->n) {
        code = err_set(err, out->rows != w.rows ? TARN_INTERNAL : TARN_LIMIT,
                       "%d files of %lld rows became %d of %lld", in->n, (long long)w.rows,
                       out->n_files, (long long)out->rows);
        write_result_remove(store, out);
    }
done:
    *liar = code == TARN_INVALID || code == TARN_NOT_FOUND ? w.liar : -1;
    data_writer_free(w.writer);
    partitioner_free(w.partitioner);
    arena_release(&w.arena);
    return code;
}
