/* write/files/data_writer.c - see data_writer.h.
 *
 * Rows of a batch are gathered per partition into a small stage, so that files are written in runs
 * of STAGE_ROWS whatever the number of partitions; a batch that lies in one partition goes through
 * uncopied when nothing is staged. In a sorted table the stage takes all rows up to the memory
 * budget; then they wait as a sorted run in a temporary file (row_runs), and all runs of the
 * partition are merged into its files when the writer closes.
 *
 * A file begins when its first row is staged (or written): its number and name are known from then
 * on. It ends only between stages, and a stage never outlives the file that its rows were promised
 * to: so with keep_order a row's position is known when it is staged. */
#include "write/files/data_writer.h"

#include "base/limits.h"
#include "iceberg/location.h"
#include "table/positions.h"
#include "write/files/file_writer.h"
#include "write/files/row_runs.h"
#include "write/partition/partition.h"

#define STAGE_ROWS      4096
#define SORT_PIECE_ROWS 16384       /* gathered at once from a sorted stage */
#define SORT_MAX_BYTES  (512 << 20) /* of a stage, whatever the budget: below LIMIT_BATCH_BYTES */
#define SPILL_TARGETS   32 /* rows wait on disk, unpacked, for so many files of the target size */
#define MEMORY_BYTES    (128u << 20)
#define RELIEVE_BYTES   (4 << 20)  /* a row group smaller than this is not worth ending */
#define NUMBER_FIELD_ID 2147483645 /* of held rows: that of _pos, which no table's column has */

typedef struct lane { /* one partition */
    const tarn_value *partition;
    int32_t number;    /* of the file that was begun; -1: none */
    int64_t file_rows; /* written to it; those in the stage come after them */
    bool open;         /* begun and has a writer */
    file_writer file;
    bool has_stage;
    tarn_builder stage;
    tarn_buf last_key; /* sorted: of the open file's last row */
    row_runs runs;     /* sorted: rows that memory does not hold, older than the stage */
    int64_t buffered;  /* counted in data_writer.buffered */
    uint64_t last_used;
} lane;

typedef struct begun_file {
    tarn_file entry; /* content, path, spec and partition from the beginning on */
    bool finished;
} begun_file;

/* The files that were begun between two closes. */
typedef struct file_round {
    tarn_arena arena;
    begun_file **files; /* number - first */
    int32_t first, n, cap;
} file_round;

struct data_writer {
    tarn_env *env;
    tarn_store *store;
    tarn_arena arena; /* for the writer's life */
    file_round now, before;
    const tarn_metadata *metadata;
    const tarn_spec *spec;
    tarn_content content;
    const int32_t *equality_ids;
    int32_t n_equality_ids;
    bool keep_order;
    const row_sorter *sorter; /* NULL: rows stay as they come */
    int32_t sort_order_id;
    row_spill spill;             /* zeroed without sorter */
    const tarn_type *stage_root; /* the format's root; of held rows with their numbers behind */
    bool held;                   /* hold, and there is a sorter */
    data_writer_placed placed;
    void *placed_ctx;
    int64_t next_number;
    tarn_positions *dropped; /* numbers; NULL: none */
    file_format_options format;
    tarn_partitioner *partitioner;
    int32_t partition_id, task_id;
    char operation_id[37];
    int64_t memory_bytes;
    int32_t max_open;
    lane **lanes; /* by partition_group.key */
    size_t n_lanes, lanes_cap;
    int32_t n_open;
    int64_t buffered;
    uint64_t tick;
    tarn_code broken; /* why nothing may be handed out any more; OK: it may */
};

/* Equality delete files say by what they delete (as Iceberg's own do). */
static tarn_code read_equality(data_writer *w, const data_writer_options *options,
                               file_purpose *purpose, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf ids;
    avro_meta *meta = ARENA_ARRAY(&w->arena, avro_meta, 2);
    int32_t *copy = ARENA_ARRAY(&w->arena, int32_t, (size_t)options->n_equality_ids + 1);
    buf_init(&ids, w->env, 0);
    if (meta == NULL || copy == NULL) {
        code = err_nomem(err);
        goto done;
    }
    if (w->metadata->format_version < 2) {
        code =
            err_set(err, TARN_INVALID,
                    "equality deletes need a table of format version 2 or 3, and this one has 1");
        goto done;
    }
    for (int32_t i = 0; i < options->n_equality_ids; i++) {
        copy[i] = options->equality_ids[i];
        if (type_find_id(options->root, copy[i]) == NULL) {
            code = err_set(err, TARN_INTERNAL, "equality column %d was not among the rows' columns",
                           copy[i]);
            goto done;
        }
        TRY(buf_printf(&ids, err, i == 0 ? "%d" : ",%d", copy[i]));
    }
    meta[0] = (avro_meta){STR("delete-type"), STR("equality")};
    meta[1] = (avro_meta){STR("delete-field-ids"), arena_str(&w->arena, buf_str(&ids))};
    if (meta[1].value.data == NULL) {
        code = err_nomem(err);
        goto done;
    }
    w->content = TARN_CONTENT_EQUALITY_DELETES;
    w->equality_ids = copy;
    w->n_equality_ids = options->n_equality_ids;
    *purpose = (file_purpose){true, options->root, copy, options->n_equality_ids, meta, 2};
done:
    buf_release(&ids);
    return code;
}

static tarn_code read_order(data_writer *w, const data_writer_options *options, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_sort_order *order = metadata_sort_order(options->metadata);
    const tarn_type *root = w->format.root;
    w->keep_order = options->keep_order && !options->hold;
    w->stage_root = root;
    if (!w->keep_order) {
        TRY(row_sorter_new(&w->arena, root, order, &w->sorter, err));
    }
    if (w->sorter == NULL) {
        w->keep_order = w->keep_order || options->hold;
        return TARN_OK;
    }
    if (options->hold) {
        tarn_field *fields = ARENA_ARRAY(&w->arena, tarn_field, (size_t)root->n_fields + 1);
        if (fields == NULL) {
            return err_nomem(err);
        }
        memcpy(fields, root->fields, (size_t)root->n_fields * sizeof *fields);
        fields[root->n_fields] = (tarn_field){
            .id = NUMBER_FIELD_ID, .name = STR("_pos"), .type = type_primitive(TARN_LONG)};
        w->stage_root = type_struct(&w->arena, fields, root->n_fields + 1);
        if (w->stage_root == NULL) {
            return err_nomem(err);
        }
        w->held = true;
        w->placed = options->placed;
        w->placed_ctx = options->placed_ctx;
    }
    w->sort_order_id = order->order_id;
    row_spill_init(&w->spill, w->env, w->sorter, w->stage_root, w->memory_bytes);
done:
    return code;
}

static tarn_code read_options(data_writer *w, const data_writer_options *options, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *partition_type;
    file_purpose purpose = {0};
    w->metadata = options->metadata;
    w->spec = options->spec != NULL ? options->spec : metadata_spec(options->metadata);
    w->partition_id = options->partition_id;
    w->task_id = options->task_id;
    w->memory_bytes = (int64_t)(options->memory_bytes != 0 ? options->memory_bytes : MEMORY_BYTES);
    w->max_open = options->max_open > 0 ? options->max_open : LIMIT_OPEN_WRITERS;
    if (options->operation_id != NULL && strlen(options->operation_id) < sizeof w->operation_id) {
        memcpy(w->operation_id, options->operation_id, strlen(options->operation_id) + 1);
    } else {
        env_uuid_v4(w->env, w->operation_id);
    }
    if (options->n_equality_ids > 0) {
        TRY(read_equality(w, options, &purpose, err));
    } else {
        purpose.root = options->root;
    }
    TRY(file_format_options_init(&w->arena, w->metadata, &purpose, &w->format, err));
    w->format.target_bytes =
        options->target_bytes > 0 ? options->target_bytes : w->format.target_bytes;
    TRY(spec_partition_type(&w->arena, w->spec, w->metadata, &partition_type, err));
    TRY(partitioner_new(w->env, w->format.root, w->spec, partition_type, &w->partitioner, err));
    TRY(read_order(w, options, err));
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
    arena_init(&w->now.arena, env);
    arena_init(&w->before.arena, env);
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
        w->lanes[key]->number = -1;
        buf_init(&w->lanes[key]->last_key, w->env, 0);
        w->n_lanes = key >= w->n_lanes ? key + 1 : w->n_lanes;
    }
    *out = w->lanes[key];
    return TARN_OK;
}

/* What the stage holds, also where few rows fill it: of 10,000 partitions that is most of it. */
static int64_t staged_bytes(const data_writer *w, const lane *l) {
    int64_t to_sort = w->sorter != NULL ? l->stage.length * ROW_ORDER_BYTES : 0;
    return l->has_stage ? (int64_t)builder_held(&l->stage) + to_sort : 0;
}

static void count_buffered(data_writer *w, lane *l) {
    int64_t now = (l->open ? file_writer_buffered_bytes(&l->file) : 0) + staged_bytes(w, l);
    w->buffered += now - l->buffered;
    l->buffered = now;
}

static tarn_code name_file(data_writer *w, const lane *l, begun_file *file, tarn_error *err) {
    const char *suffix = w->content == TARN_CONTENT_DATA ? "" : "-eq-deletes";
    char *name =
        arena_printf(&w->now.arena, "%05d-%d-%s-%05d%s.%s", w->partition_id, w->task_id,
                     w->operation_id, w->now.first + w->now.n + 1, suffix, w->format.extension);
    if (name == NULL) {
        return err_nomem(err);
    }
    return location_data_file(&w->now.arena, w->metadata, w->spec, l->partition, str_of(name),
                              &file->entry.path, err);
}

/* Gives the lane a file: a number, a name and a place for its entry, had before there is anything
 * in the store, so that it is handed out or removed whatever fails later (invariant 2). */
static tarn_code begin_file(data_writer *w, lane *l, tarn_error *err) {
    file_round *round = &w->now;
    if (l->number >= 0) {
        return TARN_OK;
    }
    if (round->n == round->cap) {
        int32_t cap = round->cap == 0 ? 64 : round->cap * 2;
        begun_file **files =
            arena_grow(&round->arena, round->files, (size_t)round->cap * sizeof *files,
                       (size_t)cap * sizeof *files);
        if (files == NULL) {
            return err_nomem(err);
        }
        round->files = files;
        round->cap = cap;
    }
    begun_file *file = ARENA_NEW(&round->arena, begun_file);
    if (file == NULL) {
        return err_nomem(err);
    }
    tarn_code code = name_file(w, l, file, err);
    if (code != TARN_OK) {
        return code;
    }
    file->entry.content = w->content;
    file->entry.spec_id = w->spec->spec_id;
    file->entry.n_partition = w->spec->n_fields;
    file->entry.partition = l->partition;
    round->files[round->n] = file;
    l->number = round->first + round->n++;
    l->file_rows = 0;
    return TARN_OK;
}

static begun_file *file_of(const data_writer *w, const lane *l) {
    return w->now.files[l->number - w->now.first];
}

static tarn_code make_room(data_writer *w, tarn_error *err);

static tarn_code open_file(data_writer *w, lane *l, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(make_room(w, err));
    TRY(begin_file(w, l, err));
    TRY(file_writer_open(&l->file, w->env, w->store, &w->format, file_of(w, l)->entry.path, err));
    l->open = true;
    w->n_open++;
done:
    return code;
}

static tarn_code finish_file(data_writer *w, lane *l, tarn_error *err) {
    tarn_file entry;
    begun_file *file = file_of(w, l);
    l->open = false;
    l->number = -1;
    w->n_open--;
    tarn_code code = file_writer_close(&l->file, &w->now.arena, &entry, err);
    count_buffered(w, l);
    if (code != TARN_OK) {
        /* It may lie there all the same: a lost answer (B64). Its name is ours alone. */
        store_discard(w->store, file->entry.path);
        return code;
    }
    entry.content = w->content;
    entry.spec_id = file->entry.spec_id;
    entry.n_partition = file->entry.n_partition;
    entry.partition = file->entry.partition;
    entry.sort_order_id = w->sort_order_id;
    entry.equality_ids = w->equality_ids;
    entry.n_equality_ids = w->n_equality_ids;
    file->entry = entry;
    file->finished = true;
    return TARN_OK;
}

static tarn_code write_to_file(data_writer *w, lane *l, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!l->open) {
        TRY(open_file(w, l, err));
    }
    l->last_used = ++w->tick;
    TRY(file_writer_write(&l->file, batch, err));
    l->file_rows += batch_rows(batch);
    if (file_writer_written_bytes(&l->file) >= w->format.target_bytes) {
        TRY(finish_file(w, l, err));
    }
done:
    count_buffered(w, l);
    return code;
}

/* Numbers of held rows stay behind. */
static tarn_code gather_rows(data_writer *w, const tarn_batch *batch, const int32_t *rows,
                             int64_t n, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder b;
    tarn_view view;
    view_array(&batch->array, batch->type, &view);
    TRY(builder_init(&b, w->env, w->format.root, err));
    TRY(builder_gather(&b, &view, rows, n, err));
    TRY(builder_finish_batch(&b, out, err));
done:
    builder_release(&b);
    return code;
}

static tarn_code write_piece(data_writer *w, lane *l, const tarn_batch *piece, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!l->open) {
        TRY(open_file(w, l, err));
    }
    int32_t file = l->number; /* the file may end with these rows */
    int64_t position = l->file_rows;
    TRY(write_to_file(w, l, piece, err));
    if (w->placed != NULL) {
        TRY(w->placed(w->placed_ctx, piece, file, position, err));
    }
done:
    return code;
}

/* Sorted without those that were dropped. */
static tarn_code sort_rows(const data_writer *w, const tarn_batch *batch, row_order *out,
                           tarn_error *err) {
    tarn_code code = row_order_make(w->sorter, w->env, batch, out, err);
    if (code == TARN_OK && w->dropped != NULL) {
        tarn_view numbers;
        int64_t n = 0;
        view_column(batch, w->stage_root->n_fields - 1, &numbers);
        for (int64_t i = 0; i < out->n; i++) {
            int32_t row = out->rows[i];
            out->rows[n] = row;
            n += positions_has(w->dropped, ((const int64_t *)numbers.values)[row]) ? 0 : 1;
        }
        out->n = n;
    }
    return code;
}

/* Writes rows in the table's order. The open file goes on only where it stays sorted. */
static tarn_code write_sorted(data_writer *w, lane *l, const tarn_batch *batch,
                              const row_order *order, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch piece;
    memset(&piece, 0, sizeof piece);
    if (l->open && str_cmp(row_order_key(order, 0), buf_str(&l->last_key)) < 0) {
        TRY(finish_file(w, l, err));
    }
    for (int64_t row = 0; row < order->n; row += SORT_PIECE_ROWS) {
        int64_t n = order->n - row < SORT_PIECE_ROWS ? order->n - row : SORT_PIECE_ROWS;
        TRY(gather_rows(w, batch, order->rows + row, n, &piece, err));
        TRY(write_piece(w, l, &piece, err));
        batch_release(&piece);
    }
    buf_reset(&l->last_key);
    TRY(buf_append_str(&l->last_key, row_order_key(order, order->n - 1), err));
done:
    batch_release(&piece);
    return code;
}

static tarn_code sort_and_write(data_writer *w, lane *l, const tarn_batch *batch, tarn_error *err) {
    row_order order;
    tarn_code code = sort_rows(w, batch, &order, err);
    if (code == TARN_OK && order.n > 0) {
        code = write_sorted(w, l, batch, &order, err);
    }
    row_order_release(&order);
    return code;
}

/* Many rows that came in order behind those of the file may well go on so: they go into it. Others
 * wait in a temporary file for those to come. */
static tarn_code put_aside(data_writer *w, lane *l, const tarn_batch *batch, tarn_error *err) {
    row_order order;
    tarn_code code = TARN_OK;
    TRY(sort_rows(w, batch, &order, err));
    if (order.n == 0) {
        goto done;
    }
    if (!w->held && l->runs.n == 0 && order.as_came && batch_bytes(batch) >= RELIEVE_BYTES &&
        (!l->open || str_cmp(row_order_key(&order, 0), buf_str(&l->last_key)) >= 0)) {
        TRY(write_sorted(w, l, batch, &order, err));
    } else {
        TRY(row_spill_add(&w->spill, &l->runs, batch, &order, err));
    }
done:
    row_order_release(&order);
    return code;
}

/* All rows of a lane, those in stage the last, in order. */
static tarn_code merge_rows(data_writer *w, lane *l, tarn_batch *stage, tarn_error *err) {
    tarn_code code = TARN_OK;
    row_merge *merge = NULL;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    TRY(row_merge_open(&w->spill, &l->runs, stage, &merge, err));
    for (;;) {
        TRY(row_merge_next(merge, &batch, err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        TRY(sort_and_write(w, l, &batch, err));
        batch_release(&batch);
    }
done:
    batch_release(&batch);
    row_merge_free(merge);
    row_runs_release(&l->runs, w->env);
    return code;
}

/* last: nothing comes behind it in the lane's files. */
static tarn_code flush_stage(data_writer *w, lane *l, bool last, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    if (l->has_stage && l->stage.length > 0) {
        TRY(builder_finish_batch(&l->stage, &batch, err));
    }
    if (last && l->runs.n > 0) {
        TRY(merge_rows(w, l, &batch, err));
    } else if (batch_rows(&batch) == 0) {
        return TARN_OK;
    } else if (w->sorter == NULL) {
        TRY(write_to_file(w, l, &batch, err));
    } else if (last) {
        TRY(sort_and_write(w, l, &batch, err));
    } else {
        TRY(put_aside(w, l, &batch, err));
    }
done:
    batch_release(&batch);
    count_buffered(w, l);
    return code;
}

static tarn_code close_lane(data_writer *w, lane *l, tarn_error *err) {
    tarn_code code = flush_stage(w, l, true, err);
    if (code == TARN_OK && l->open) {
        code = finish_file(w, l, err);
    }
    if (l->has_stage) {
        builder_release(&l->stage);
        l->has_stage = false;
        count_buffered(w, l);
    }
    buf_release(&l->last_key);
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
    /* rows that are to be sorted were promised to no file */
    return w->sorter != NULL ? finish_file(w, coldest, err) : close_lane(w, coldest, err);
}

/* Writes out what a lane holds most of. */
static tarn_code relieve_lane(data_writer *w, lane *l, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (staged_bytes(w, l) >= RELIEVE_BYTES) {
        TRY(flush_stage(w, l, false, err));
    } else if (l->open) {
        TRY(file_writer_relieve(&l->file, err));
    }
    count_buffered(w, l);
done:
    return code;
}

/* Keeps buffered bytes under the budget (invariant 4): a large stage or row group is written out,
 * and where all are small a stage that is to be sorted, or else the coldest lane is closed. */
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
        if (largest->buffered >= RELIEVE_BYTES) {
            TRY(relieve_lane(w, largest, err));
        } else if (w->sorter != NULL && staged_bytes(w, largest) > 0) {
            TRY(flush_stage(w, largest, false, err));
        }
        if (w->buffered >= before) {
            TRY(close_lane(w, coldest, err));
        }
    }
done:
    return code;
}

/* Rows with their numbers behind. After a failure the stage is only good to be released. */
static tarn_code gather_held(const data_writer *w, tarn_builder *stage, const tarn_view *rows,
                             const partition_group *group, tarn_error *err) {
    tarn_code code = TARN_OK;
    const int32_t n = w->format.root->n_fields;
    TRY(builder_reserve(stage, group->n_rows, err));
    for (int32_t i = 0; i < n; i++) {
        tarn_view column;
        view_child(rows, i, &column);
        TRY(builder_gather(&stage->children[i], &column, group->rows, group->n_rows, err));
    }
    for (int64_t i = 0; i < group->n_rows; i++) {
        int64_t number = w->next_number + group->rows[i];
        TRY(builder_fixed(&stage->children[n], &number, err));
    }
    stage->length += group->n_rows;
done:
    return code;
}

static tarn_code stage_rows(data_writer *w, lane *l, const tarn_batch *batch,
                            const partition_group *group, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!l->has_stage) {
        TRY(builder_init(&l->stage, w->env, w->stage_root, err));
        l->has_stage = true;
    }
    l->last_used = ++w->tick;
    tarn_view rows;
    view_array(&batch->array, batch->type, &rows);
    if (w->held) {
        TRY(gather_held(w, &l->stage, &rows, group, err));
    } else {
        TRY(builder_gather(&l->stage, &rows, group->rows, group->n_rows, err));
    }
    if (w->sorter != NULL ? staged_bytes(w, l) >= SORT_MAX_BYTES : l->stage.length >= STAGE_ROWS) {
        TRY(flush_stage(w, l, false, err));
    }
    count_buffered(w, l);
done:
    return code;
}

/* Where the group's rows will be: behind those that are written or staged. */
static void locate_rows(const lane *l, const partition_group *group, row_location *out) {
    int64_t position = l->file_rows + (l->has_stage ? l->stage.length : 0);
    for (int64_t i = 0; i < group->n_rows; i++) {
        out[group->rows[i]] = (row_location){l->number, position + i};
    }
}

static tarn_code check_required(const data_writer *w, const tarn_batch *batch, tarn_error *err) {
    const tarn_type *root = w->format.root;
    for (int32_t i = 0; i < root->n_fields; i++) {
        tarn_view column;
        if (!root->fields[i].required) {
            continue;
        }
        view_column(batch, i, &column);
        if (view_null_count(&column) > 0) {
            return err_set(err, TARN_INVALID, "column %.*s is required and held a null",
                           STR_ARG(root->fields[i].name));
        }
    }
    return TARN_OK;
}

static tarn_code refuse_broken(const data_writer *w, tarn_error *err) {
    return err_set(err, w->broken, "an earlier write of this writer failed; its rows were dropped");
}

/* Whether the whole batch may go to the lane's file as it is. */
static bool goes_through(const data_writer *w, const lane *l, int64_t rows) {
    return w->sorter == NULL && rows >= STAGE_ROWS / 4 && (!l->has_stage || l->stage.length == 0);
}

static tarn_code close_lanes(data_writer *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (size_t i = 0; i < w->n_lanes; i++) {
        if (w->lanes[i] != NULL) {
            TRY(close_lane(w, w->lanes[i], err));
        }
    }
    TRY(row_spill_clear(&w->spill, err));
done:
    return code;
}

static tarn_code write_rows(data_writer *w, const tarn_batch *batch, row_location *out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    const partition_group *groups;
    size_t n_groups;
    int64_t rows = batch_rows(batch);
    TRY(partitioner_split(w->partitioner, batch, &groups, &n_groups, err));
    for (size_t g = 0; g < n_groups; g++) {
        lane *l = NULL;
        TRY(lane_for(w, &groups[g], &l, err));
        if (out != NULL && !w->held) {
            TRY(begin_file(w, l, err));
            locate_rows(l, &groups[g], out);
        }
        if (n_groups == 1 && goes_through(w, l, rows)) {
            TRY(write_to_file(w, l, batch, err));
        } else {
            TRY(stage_rows(w, l, batch, &groups[g], err));
        }
    }
    for (int64_t row = 0; out != NULL && w->held && row < rows; row++) {
        out[row] = (row_location){DATA_HELD, w->next_number + row};
    }
    w->next_number += rows;
    TRY(relieve_memory(w, err));
    if (!w->held && row_spill_bytes(&w->spill) / SPILL_TARGETS >= w->format.target_bytes) {
        TRY(close_lanes(w, err));
    }
done:
    return code;
}

static tarn_code write_batch(data_writer *w, const tarn_batch *batch, row_location *out,
                             tarn_error *err) {
    if (w->broken != TARN_OK) {
        return refuse_broken(w, err);
    }
    if (batch_rows(batch) == 0) {
        return TARN_OK;
    }
    tarn_code code = check_required(w, batch, err);
    if (code == TARN_OK) {
        w->broken = code =
            write_rows(w, batch, out, err); /* half of the batch may be in (invariant 5) */
    }
    return code;
}

tarn_code data_writer_write(data_writer *w, const tarn_batch *batch, tarn_error *err) {
    return write_batch(w, batch, NULL, err);
}

tarn_code data_writer_locate(data_writer *w, const tarn_batch *batch, row_location *out,
                             tarn_error *err) {
    if (!w->keep_order && !w->held) {
        return err_set(err, TARN_INTERNAL, "rows were to be located by a writer that moves them");
    }
    return write_batch(w, batch, out, err);
}

tarn_code data_writer_drop(data_writer *w, int64_t number, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (w->dropped == NULL) {
        TRY(positions_new(w->env, &w->dropped, err));
    }
    TRY(positions_add(w->dropped, &number, 1, err));
done:
    return code;
}

const tarn_file *data_writer_file(const data_writer *w, int32_t number) {
    const file_round *round = number >= w->now.first ? &w->now : &w->before;
    tarn_assert(number >= round->first && number - round->first < round->n);
    return &round->files[number - round->first]->entry;
}

static void remove_finished(data_writer *w) {
    for (int32_t i = 0; i < w->now.n; i++) {
        if (w->now.files[i]->finished) {
            store_discard(w->store, w->now.files[i]->entry.path);
            w->now.files[i]->finished = false;
        }
    }
}

static void begin_round(data_writer *w) {
    int32_t next = w->now.first + w->now.n;
    arena_release(&w->before.arena);
    w->before = w->now;
    arena_init(&w->before.arena, w->env);
    arena_move(&w->before.arena, &w->now.arena);
    w->now = (file_round){.first = next};
    positions_free(w->dropped);
    w->dropped = NULL;
    arena_init(&w->now.arena, w->env);
}

static tarn_code copy_files(data_writer *w, tarn_arena *arena, write_result *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t n = w->now.n;
    int64_t rows = 0;
    tarn_file *files = ARENA_ARRAY(arena, tarn_file, (size_t)n + 1);
    if (files == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        tarn_assert(w->now.files[i]->finished);
        TRY(file_copy(arena, &w->now.files[i]->entry, &files[i], err));
        rows += files[i].record_count;
    }
    *out = w->content == TARN_CONTENT_DATA
               ? (write_result){.files = files, .n_files = n, .rows = rows}
               : (write_result){.deletes = files, .n_deletes = n, .deleted_rows = rows};
done:
    return code;
}

tarn_code data_writer_close(data_writer *w, tarn_arena *arena, write_result *out, tarn_error *err) {
    tarn_code code = w->broken;
    if (code != TARN_OK) {
        remove_finished(w);
        return refuse_broken(w, err);
    }
    TRY(close_lanes(w, err));
    TRY(copy_files(w, arena, out, err));
    begin_round(w);
done:
    if (code != TARN_OK) {
        w->broken = code;
        remove_finished(w);
    }
    return code;
}

int32_t data_writer_open_files(const data_writer *w) {
    return w->n_open;
}

int32_t data_writer_finished_files(const data_writer *w) {
    return w->now.n > w->n_open ? w->now.n - w->n_open : 0;
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
        if (l != NULL) {
            row_runs_release(&l->runs, w->env);
            buf_release(&l->last_key);
        }
    }
    remove_finished(w);
    row_spill_release(&w->spill);
    positions_free(w->dropped);
    partitioner_free(w->partitioner);
    env_free(w->env, w->lanes);
    arena_release(&w->now.arena);
    arena_release(&w->before.arena);
    arena_release(&w->arena);
    env_free(w->env, w);
}

int64_t write_result_bytes(const write_result *result) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < result->n_files; i++) {
        bytes += result->files[i].size_bytes;
    }
    for (int32_t i = 0; i < result->n_deletes; i++) {
        bytes += result->deletes[i].size_bytes;
    }
    return bytes;
}

void write_result_remove(tarn_store *store, const write_result *result) {
    for (int32_t i = 0; i < result->n_files; i++) {
        store_discard(store, result->files[i].path);
    }
    for (int32_t i = 0; i < result->n_deletes; i++) { /* vectors of one file stand in a row */
        if (i == 0 || !str_eq(result->deletes[i].path, result->deletes[i - 1].path)) {
            store_discard(store, result->deletes[i].path);
        }
    }
}
