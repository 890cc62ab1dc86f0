/* write/files/data_writer.c - see data_writer.h.
 *
 * Rows of a batch are gathered per partition into a small stage, so that files are written in runs
 * of STAGE_ROWS whatever the number of partitions; a batch that lies in one partition goes through
 * uncopied when nothing is staged. */
#include "write/files/data_writer.h"

#include "base/limits.h"
#include "iceberg/location.h"
#include "write/files/file_writer.h"
#include "write/partition/partition.h"

#define STAGE_ROWS        4096
#define TARGET_FILE_BYTES INT64_C(536870912)
#define MEMORY_BYTES      (128u << 20)
#define RELIEVE_BYTES     (4 << 20) /* a row group smaller than this is not worth ending */

typedef struct lane { /* one partition */
    const tarn_value *partition;
    bool open;
    file_writer file;
    bool has_stage;
    tarn_builder stage;
    int64_t row_bytes; /* of a staged row, roughly */
    int64_t buffered;  /* counted in data_writer.buffered */
    uint64_t last_used;
} lane;

struct data_writer {
    tarn_env *env;
    tarn_store *store;
    tarn_arena arena;       /* for the writer's life */
    tarn_arena files_arena; /* of finished files, until close hands them out */
    const tarn_metadata *metadata;
    const tarn_spec *spec;
    const tarn_type *root;
    file_format_options format;
    tarn_partitioner *partitioner;
    int32_t partition_id, task_id, file_count;
    char operation_id[37];
    int64_t target_bytes;
    int64_t memory_bytes;
    int32_t max_open;
    lane **lanes; /* by partition_group.key */
    size_t n_lanes, lanes_cap;
    int32_t n_open;
    int64_t buffered;
    uint64_t tick;
    tarn_file *files; /* finished, not handed out */
    int32_t n_files, files_cap;
    tarn_code broken; /* why nothing may be handed out any more; OK: it may */
};

static tarn_code read_options(data_writer *w, const data_writer_options *options, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *partition_type;
    w->metadata = options->metadata;
    w->spec = options->spec != NULL ? options->spec : metadata_spec(options->metadata);
    w->root = metadata_schema(options->metadata)->root;
    w->partition_id = options->partition_id;
    w->task_id = options->task_id;
    w->memory_bytes = (int64_t)(options->memory_bytes != 0 ? options->memory_bytes : MEMORY_BYTES);
    w->max_open = options->max_open > 0 ? options->max_open : LIMIT_OPEN_WRITERS;
    if (options->operation_id != NULL && strlen(options->operation_id) < sizeof w->operation_id) {
        memcpy(w->operation_id, options->operation_id, strlen(options->operation_id) + 1);
    } else {
        env_uuid_v4(w->env, w->operation_id);
    }
    TRY(properties_i64(&w->metadata->properties, "write.target-file-size-bytes", TARGET_FILE_BYTES,
                       &w->target_bytes, err));
    TRY(file_format_options_init(&w->arena, w->metadata, &w->format, err));
    TRY(spec_partition_type(&w->arena, w->spec, w->metadata, &partition_type, err));
    TRY(partitioner_new(w->env, w->root, w->spec, partition_type, &w->partitioner, err));
done:
    return code;
}

tarn_code data_writer_new(tarn_env *env, tarn_store *store, const data_writer_options *options,
                          data_writer **out, tarn_error *err) {
    data_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    w->store = store;
    arena_init(&w->arena, env);
    arena_init(&w->files_arena, env);
    tarn_code code = read_options(w, options, err);
    if (code == TARN_OK) {
        *out = w;
    } else {
        data_writer_free(w);
    }
    return code;
}

static tarn_code lane_for(data_writer *w, const partition_group *group, lane **out,
                          tarn_error *err) {
    size_t key = (size_t)group->key;
    if (key >= w->lanes_cap) {
        size_t cap = w->lanes_cap * 2 > key + 16 ? w->lanes_cap * 2 : key + 16;
        lane **lanes = env_realloc(w->env, w->lanes, cap * sizeof(lane *));
        if (lanes == NULL) {
            return err_nomem(err);
        }
        memset(lanes + w->lanes_cap, 0, (cap - w->lanes_cap) * sizeof(lane *));
        w->lanes = lanes;
        w->lanes_cap = cap;
    }
    if (w->lanes[key] == NULL) {
        w->lanes[key] = ARENA_NEW(&w->arena, lane);
        if (w->lanes[key] == NULL) {
            return err_nomem(err);
        }
        w->lanes[key]->partition = group->partition;
        w->n_lanes = key >= w->n_lanes ? key + 1 : w->n_lanes;
    }
    *out = w->lanes[key];
    return TARN_OK;
}

static void count_buffered(data_writer *w, lane *l) {
    int64_t staged = l->has_stage ? l->stage.length * l->row_bytes : 0;
    int64_t now = (l->open ? file_writer_buffered_bytes(&l->file) : 0) + staged;
    w->buffered += now - l->buffered;
    l->buffered = now;
}

/* Room to note a file, had before it is finished: so it is handed out or removed whatever fails
 * later (invariant 2). */
static tarn_code reserve_file(data_writer *w, tarn_error *err) {
    if (w->n_files < w->files_cap) {
        return TARN_OK;
    }
    int32_t cap = w->files_cap == 0 ? 64 : w->files_cap * 2;
    tarn_file *files = arena_grow(&w->files_arena, w->files, (size_t)w->files_cap * sizeof *files,
                                  (size_t)cap * sizeof *files);
    if (files == NULL) {
        return err_nomem(err);
    }
    w->files = files;
    w->files_cap = cap;
    return TARN_OK;
}

static tarn_code open_file(data_writer *w, lane *l, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str path;
    char *name = arena_printf(&w->files_arena, "%05d-%d-%s-%05d.%s", w->partition_id, w->task_id,
                              w->operation_id, ++w->file_count, w->format.extension);
    if (name == NULL) {
        return err_nomem(err);
    }
    TRY(location_data_file(&w->files_arena, w->metadata, w->spec, l->partition, str_of(name), &path,
                           err));
    TRY(file_writer_open(&l->file, w->env, w->store, &w->format, path, err));
    l->open = true;
    w->n_open++;
done:
    return code;
}

static tarn_code finish_file(data_writer *w, lane *l, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_file file;
    TRY(reserve_file(w, err));
    l->open = false;
    w->n_open--;
    code = file_writer_close(&l->file, &w->files_arena, &file, err);
    count_buffered(w, l);
    if (code != TARN_OK) {
        /* It may lie there all the same: a lost answer (B64). Its name is ours alone. */
        store_discard(w->store, l->file.path);
        goto done;
    }
    file.spec_id = w->spec->spec_id;
    file.n_partition = w->spec->n_fields;
    file.partition = l->partition;
    w->files[w->n_files++] = file;
done:
    return code;
}

static tarn_code make_room(data_writer *w, tarn_error *err);

static tarn_code write_to_file(data_writer *w, lane *l, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!l->open) {
        TRY(make_room(w, err));
        TRY(open_file(w, l, err));
    }
    l->last_used = ++w->tick;
    TRY(file_writer_write(&l->file, batch, err));
    if (file_writer_written_bytes(&l->file) >= w->target_bytes) {
        TRY(finish_file(w, l, err));
    }
done:
    count_buffered(w, l);
    return code;
}

static tarn_code flush_stage(data_writer *w, lane *l, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    if (!l->has_stage || l->stage.length == 0) {
        return TARN_OK;
    }
    TRY(builder_finish_batch(&l->stage, &batch, err));
    TRY(write_to_file(w, l, &batch, err));
done:
    batch_release(&batch);
    return code;
}

static tarn_code close_lane(data_writer *w, lane *l, tarn_error *err) {
    tarn_code code = flush_stage(w, l, err);
    if (code == TARN_OK && l->open) {
        code = finish_file(w, l, err);
    }
    if (l->has_stage) {
        builder_release(&l->stage);
        l->has_stage = false;
        count_buffered(w, l);
    }
    return code;
}

/* Before a file is opened: below max_open by finishing the one written to longest ago (invariant
 * 3). */
static tarn_code make_room(data_writer *w, tarn_error *err) {
    if (w->n_open < w->max_open) {
        return TARN_OK;
    }
    lane *coldest = NULL;
    for (size_t i = 0; i < w->n_lanes; i++) {
        lane *l = w->lanes[i];
        if (l != NULL && l->open && (coldest == NULL || l->last_used < coldest->last_used)) {
            coldest = l;
        }
    }
    tarn_assert(coldest != NULL);
    return finish_file(w, coldest, err);
}

/* Keeps buffered bytes under the budget (invariant 4): a large row group is written out, and where
 * all are small the coldest lane is closed. */
static tarn_code relieve_memory(data_writer *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    while (w->buffered > w->memory_bytes) {
        lane *largest = NULL;
        lane *coldest = NULL;
        for (size_t i = 0; i < w->n_lanes; i++) {
            lane *l = w->lanes[i];
            if (l == NULL || l->buffered == 0) {
                continue;
            }
            largest = largest == NULL || l->buffered > largest->buffered ? l : largest;
            coldest = coldest == NULL || l->last_used < coldest->last_used ? l : coldest;
        }
        if (largest == NULL) {
            break;
        }
        int64_t before = w->buffered;
        if (largest->open && largest->buffered >= RELIEVE_BYTES) {
            TRY(file_writer_relieve(&largest->file, err));
            count_buffered(w, largest);
        }
        if (w->buffered >= before) {
            TRY(close_lane(w, coldest, err));
        }
    }
done:
    return code;
}

static tarn_code stage_rows(data_writer *w, lane *l, const tarn_batch *batch,
                            const partition_group *group, int64_t row_bytes, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!l->has_stage) {
        TRY(builder_init(&l->stage, w->env, w->root, err));
        l->has_stage = true;
    }
    l->row_bytes = row_bytes;
    l->last_used = ++w->tick;
    tarn_view rows;
    view_array(&batch->array, batch->type, &rows);
    TRY(builder_gather(&l->stage, &rows, group->rows, group->n_rows, err));
    if (l->stage.length >= STAGE_ROWS) {
        TRY(flush_stage(w, l, err));
    }
    count_buffered(w, l);
done:
    return code;
}

static tarn_code check_required(const data_writer *w, const tarn_batch *batch, tarn_error *err) {
    for (int32_t i = 0; i < w->root->n_fields; i++) {
        tarn_view column;
        if (!w->root->fields[i].required) {
            continue;
        }
        view_column(batch, i, &column);
        if (view_null_count(&column) > 0) {
            return err_set(err, TARN_INVALID, "column %.*s is required and held a null",
                           STR_ARG(w->root->fields[i].name));
        }
    }
    return TARN_OK;
}

static tarn_code refuse_broken(const data_writer *w, tarn_error *err) {
    return err_set(err, w->broken, "an earlier write of this writer failed; its rows were dropped");
}

static tarn_code write_rows(data_writer *w, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    const partition_group *groups;
    size_t n_groups;
    int64_t rows = batch_rows(batch);
    TRY(partitioner_split(w->partitioner, batch, &groups, &n_groups, err));
    int64_t row_bytes = batch_bytes(batch) / rows + 1;
    for (size_t g = 0; g < n_groups; g++) {
        lane *l = NULL;
        TRY(lane_for(w, &groups[g], &l, err));
        if (n_groups == 1 && rows >= STAGE_ROWS / 4 && (!l->has_stage || l->stage.length == 0)) {
            TRY(write_to_file(w, l, batch, err));
        } else {
            TRY(stage_rows(w, l, batch, &groups[g], row_bytes, err));
        }
    }
    TRY(relieve_memory(w, err));
done:
    return code;
}

tarn_code data_writer_write(data_writer *w, const tarn_batch *batch, tarn_error *err) {
    if (w->broken != TARN_OK) {
        return refuse_broken(w, err);
    }
    if (batch_rows(batch) == 0) {
        return TARN_OK;
    }
    tarn_code code = check_required(w, batch, err);
    if (code == TARN_OK) {
        w->broken = code =
            write_rows(w, batch, err); /* half of the batch may be in (invariant 5) */
    }
    return code;
}

static void remove_finished(data_writer *w) {
    write_result result = {.files = w->files, .n_files = w->n_files};
    write_result_remove(w->store, &result);
    w->n_files = 0;
}

static void forget_files(data_writer *w) {
    arena_release(&w->files_arena);
    arena_init(&w->files_arena, w->env);
    w->files = NULL;
    w->n_files = 0;
    w->files_cap = 0;
}

tarn_code data_writer_close(data_writer *w, tarn_arena *arena, write_result *out, tarn_error *err) {
    tarn_code code = w->broken;
    if (code != TARN_OK) {
        remove_finished(w);
        return refuse_broken(w, err);
    }
    for (size_t i = 0; i < w->n_lanes; i++) {
        if (w->lanes[i] != NULL) {
            TRY(close_lane(w, w->lanes[i], err));
        }
    }
    tarn_file *files = ARENA_ARRAY(arena, tarn_file, (size_t)w->n_files + 1);
    if (files == NULL) {
        code = err_nomem(err);
        goto done;
    }
    int64_t rows = 0;
    for (int32_t i = 0; i < w->n_files; i++) {
        TRY(file_copy(arena, &w->files[i], &files[i], err));
        rows += files[i].record_count;
    }
    out->files = files;
    out->n_files = w->n_files;
    out->rows = rows;
    forget_files(w);
done:
    if (code != TARN_OK) {
        w->broken = code;
        remove_finished(w);
    }
    return code;
}

void data_writer_free(data_writer *w) {
    if (w == NULL) {
        return;
    }
    for (size_t i = 0; i < w->n_lanes; i++) {
        lane *l = w->lanes[i];
        if (l != NULL && l->open) {
            file_writer_abort(&l->file);
        }
        if (l != NULL && l->has_stage) {
            builder_release(&l->stage);
        }
    }
    remove_finished(w);
    partitioner_free(w->partitioner);
    env_free(w->env, w->lanes);
    arena_release(&w->files_arena);
    arena_release(&w->arena);
    env_free(w->env, w);
}

void write_result_remove(tarn_store *store, const write_result *result) {
    for (int32_t i = 0; i < result->n_files; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_code code = store_remove(store, result->files[i].path, &err);
        if (code != TARN_OK && code != TARN_NOT_FOUND) {
            env_log(store->env, TARN_LOG_WARN, "files", "cleanup", "%s", err.message);
        }
    }
}
