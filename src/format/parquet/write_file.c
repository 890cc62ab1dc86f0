/* write_file.c - the writer's face: batches to leaves, row groups to the sink, indexes and footer.
 *
 * File: "PAR1"; per row group the column chunks in schema order (dictionary page, data pages), then
 * its bloom filters; column indexes, offset indexes, footer, its length, "PAR1". Offsets are
 * counted by this file alone: nothing else writes to the sink. After a failure the writer is
 * poisoned, since leaves may have gone different ways. */
#include "base/pool.h"
#include "format/parquet/parquet_write_int.h"

#define MAGIC      "PAR1"
#define CREATED_BY "tarn version 0.1.0"
/* Rows of a batch between two looks at the row group's size. */
#define SLICE_ROWS       65536
#define SLICE_FIRST_ROWS 16384
#define SLICE_LEAST_ROWS 256
/* Less work than this is done on the caller's thread alone. */
#define PARALLEL_VALUES 32768
/* A writer that holds this much is busy and keeps its compressors between calls. */
#define KEEP_SCRATCH_BYTES (4u << 20)

struct parquet_writer {
    tarn_env *env;
    tarn_arena arena;
    parquet_write_options options;
    const parquet_schema *schema;
    const tarn_type *root;
    io_sink *sink;
    write_leaf *leaves;
    int32_t n_leaves;
    write_scratch *scratch; /* one per thread that may work at once */
    uint32_t n_scratch;
    int64_t offset; /* bytes given to the sink */
    int64_t group_rows;
    int64_t rows;
    parquet_row_group *groups;
    int32_t n_groups;
    tarn_buf column_indexes;
    tarn_buf offset_indexes;
    bool failed;
    bool closed;
};

/* ---- life ---- */

static tarn_code check_options(const parquet_write_options *o, tarn_error *err) {
    if (o->page_version != 1 && o->page_version != 2) {
        return err_set(err, TARN_INVALID, "page version was %d, not 1 or 2", (int)o->page_version);
    }
    if (o->row_group_bytes < 1 || o->row_group_rows < 1 || o->page_bytes < 1 || o->page_rows < 1 ||
        o->page_rows > INT32_MAX || o->page_values < 1 || o->page_values > INT32_MAX ||
        o->dictionary_bytes < 0 || o->bloom_max_bytes < BLOOM_MIN_BYTES) {
        return err_set(err, TARN_INVALID,
                       "a size or row count of the Parquet options was out of "
                       "range");
    }
    if (o->codec == CODEC_DEFLATE || o->codec == CODEC_ZLIB || o->codec == CODEC_LZ4_HADOOP) {
        return err_set(err, TARN_INVALID, "codec %s is not one that Parquet files are written with",
                       codec_name(o->codec));
    }
    return TARN_OK;
}

static tarn_code init_writer(parquet_writer *w, const tarn_type *root, tarn_error *err) {
    tarn_code code = TARN_OK;
    w->root = type_copy(&w->arena, root);
    if (w->root == NULL) {
        return err_nomem(err);
    }
    TRY(parquet_schema_from_type(&w->arena, w->root, "table", &w->schema, err));
    TRY(leaves_make(w->env, &w->arena, w->schema, &w->options, &w->leaves, err));
    w->n_leaves = w->schema->n_leaves;
    TRY(metrics_choose(w->env, w->root, &w->options, w->leaves, w->n_leaves, err));
    for (int32_t i = 0; i < w->n_leaves; i++) {
        TRY(leaf_init(&w->leaves[i], err));
    }
    w->n_scratch = env_threads(w->env) + 1;
    w->scratch = ARENA_ARRAY(&w->arena, write_scratch, w->n_scratch);
    if (w->scratch == NULL) {
        return err_nomem(err);
    }
    for (uint32_t i = 0; i < w->n_scratch; i++) {
        scratch_init(&w->scratch[i], w->env);
    }
done:
    return code;
}

tarn_code parquet_writer_new(tarn_env *env, const tarn_type *root,
                             const parquet_write_options *options, io_sink *sink,
                             parquet_writer **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    parquet_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    arena_init(&w->arena, env);
    buf_init(&w->column_indexes, env, 0);
    buf_init(&w->offset_indexes, env, 0);
    parquet_write_options_init(&w->options);
    if (options != NULL) {
        w->options = *options;
    }
    TRY(check_options(&w->options, err));
    TRY(init_writer(w, root, err));
    w->sink = sink;
    *out = w;
    w = NULL;
done:
    parquet_writer_free(w);
    return code;
}

void parquet_writer_free(parquet_writer *w) {
    if (w == NULL) {
        return;
    }
    if (w->sink != NULL) {
        w->sink->abort(w->sink);
    }
    for (int32_t i = 0; i < w->n_leaves; i++) {
        leaf_release(&w->leaves[i]);
    }
    for (uint32_t i = 0; w->scratch != NULL && i < w->n_scratch; i++) {
        scratch_release(&w->scratch[i]);
    }
    buf_release(&w->column_indexes);
    buf_release(&w->offset_indexes);
    arena_release(&w->arena);
    env_free(w->env, w);
}

/* ---- leaves, in parallel ---- */

static write_scratch *take_scratch(parquet_writer *w) {
    for (uint32_t i = 0; i < w->n_scratch; i++) {
        if (!atomic_flag_test_and_set(&w->scratch[i].busy)) {
            return &w->scratch[i];
        }
    }
    return NULL;
}

/* One round of work over all leaves: rows of a batch, or the end of the row group. */
typedef struct leaf_work {
    parquet_writer *w;
    const tarn_batch *batch; /* NULL: end the row group */
    int64_t start;
    int64_t end;
} leaf_work;

static tarn_code work_leaf(write_leaf *leaf, const leaf_work *work, write_scratch *scratch,
                           tarn_error *err) {
    if (work->batch == NULL) {
        return chunk_end(leaf, scratch, err);
    }
    tarn_view column;
    view_column(work->batch, leaf->column, &column);
    return leaf_add(leaf, scratch, &column, work->start, work->end, err);
}

static tarn_code run_leaf(void *ctx, size_t index, tarn_error *err) {
    const leaf_work *work = ctx;
    write_leaf *leaf = &work->w->leaves[index];
    write_scratch *scratch = take_scratch(work->w);
    tarn_code code = TARN_OK;
    if (scratch != NULL) {
        code = work_leaf(leaf, work, scratch, err);
        atomic_flag_clear(&scratch->busy);
    } else { /* more helpers than threads: work on memory of its own */
        write_scratch own;
        scratch_init(&own, work->w->env);
        code = work_leaf(leaf, work, &own, err);
        scratch_release(&own);
    }
    return code;
}

static tarn_code run_leaves(parquet_writer *w, const leaf_work *work, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t values = (work->batch == NULL ? w->group_rows : work->end - work->start) * w->n_leaves;
    if (env_threads(w->env) > 1 && values >= PARALLEL_VALUES) {
        return pool_for(w->env, (size_t)w->n_leaves, run_leaf, (void *)(uintptr_t)work, err);
    }
    for (int32_t i = 0; i < w->n_leaves && code == TARN_OK; i++) {
        code = run_leaf((void *)(uintptr_t)work, (size_t)i, err);
    }
    return code;
}

/* ---- row groups ---- */

static tarn_code put(parquet_writer *w, const void *data, size_t len, tarn_error *err) {
    tarn_code code = len == 0 ? TARN_OK : io_write(w->sink, data, len, err);
    if (code == TARN_OK) {
        w->offset += (int64_t)len;
    }
    return code;
}

static tarn_code put_magic_once(parquet_writer *w, tarn_error *err) {
    return w->offset == 0 ? put(w, MAGIC, 4, err) : TARN_OK;
}

/* A list of n items in the writer's arena. */
static tarn_code list_encodings(parquet_writer *w, const write_leaf *leaf,
                                parquet_column_meta *meta, tarn_error *err) {
    int32_t *encodings = ARENA_ARRAY(&w->arena, int32_t, 4);
    parquet_encoding_stats *stats = ARENA_ARRAY(&w->arena, parquet_encoding_stats, 3);
    if (encodings == NULL || stats == NULL) {
        return err_nomem(err);
    }
    int32_t page = w->options.page_version == 2 ? PARQUET_DATA_PAGE_V2 : PARQUET_DATA_PAGE;
    int32_t other = leaf_other_encoding(leaf);
    int32_t n = 0;
    int32_t n_stats = 0;
    encodings[n++] = PARQUET_RLE; /* levels */
    if (leaf->n_dict_pages > 0) {
        encodings[n++] = PARQUET_PLAIN;
        encodings[n++] = PARQUET_RLE_DICTIONARY;
        stats[n_stats++] = (parquet_encoding_stats){0, PARQUET_DICTIONARY_PAGE, PARQUET_PLAIN, 1};
        stats[n_stats++] =
            (parquet_encoding_stats){0, page, PARQUET_RLE_DICTIONARY, leaf->n_dict_pages};
    }
    if (leaf->n_other_pages > 0) {
        if (other != PARQUET_RLE && (other != PARQUET_PLAIN || leaf->n_dict_pages == 0)) {
            encodings[n++] = other;
        }
        stats[n_stats++] = (parquet_encoding_stats){0, page, other, leaf->n_other_pages};
    }
    meta->encodings = encodings;
    meta->n_encodings = n;
    meta->encoding_stats = stats;
    meta->n_encoding_stats = n_stats;
    THRIFT_SET(meta, PARQUET_COLUMN_ENCODING_STATS);
    return TARN_OK;
}

static tarn_code put_extreme(parquet_writer *w, const write_leaf *leaf, bool maximum, tarn_str *out,
                             bool *exact, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf bytes;
    buf_init(&bytes, w->env, 0);
    TRY(stats_put(leaf, &leaf->stats, maximum, &bytes, exact, err));
    *out = arena_str(&w->arena, buf_str(&bytes));
    code = out->data == NULL ? err_nomem(err) : TARN_OK;
done:
    buf_release(&bytes);
    return code;
}

static tarn_code chunk_statistics(parquet_writer *w, const write_leaf *leaf,
                                  parquet_column_meta *meta, tarn_error *err) {
    tarn_code code = TARN_OK;
    parquet_statistics *s = &meta->statistics;
    if (!leaf->stats_on) {
        return TARN_OK;
    }
    THRIFT_SET(meta, PARQUET_COLUMN_STATISTICS);
    THRIFT_SET(s, PARQUET_STATS_NULL_COUNT);
    s->null_count = leaf->nulls;
    if (!leaf->stats.has) {
        return TARN_OK;
    }
    TRY(put_extreme(w, leaf, false, &s->min_value, &s->is_min_exact, err));
    TRY(put_extreme(w, leaf, true, &s->max_value, &s->is_max_exact, err));
    THRIFT_SET(s, PARQUET_STATS_MIN_VALUE);
    THRIFT_SET(s, PARQUET_STATS_MAX_VALUE);
    THRIFT_SET(s, PARQUET_STATS_IS_MIN_EXACT);
    THRIFT_SET(s, PARQUET_STATS_IS_MAX_EXACT);
done:
    return code;
}

static tarn_code chunk_sizes(parquet_writer *w, const write_leaf *leaf, parquet_column_meta *meta,
                             tarn_error *err) {
    parquet_size_statistics *s = &meta->size_statistics;
    int32_t n_def = leaf->leaf->max_def + 1;
    int32_t n_rep = leaf->leaf->max_rep + 1;
    if (leaf->leaf->physical == PARQUET_BYTE_ARRAY) {
        s->unencoded_byte_array_data_bytes = leaf->value_bytes;
        THRIFT_SET(s, PARQUET_SIZES_UNENCODED);
    }
    if (leaf->leaf->max_def > 0) {
        int64_t *counts = ARENA_ARRAY(&w->arena, int64_t, (size_t)n_def + (size_t)n_rep);
        if (counts == NULL) {
            return err_nomem(err);
        }
        if (leaf->def_counts != NULL) {
            memcpy(counts, leaf->def_counts, (size_t)n_def * sizeof *counts);
            memcpy(counts + n_def, leaf->rep_counts, (size_t)n_rep * sizeof *counts);
        } else {
            counts[0] = leaf->nulls;
            counts[1] = leaf->levels - leaf->nulls;
        }
        s->definition_histogram = counts;
        s->n_definition = n_def;
        THRIFT_SET(s, PARQUET_SIZES_DEFINITION);
        if (leaf->leaf->max_rep > 0) {
            s->repetition_histogram = counts + n_def;
            s->n_repetition = n_rep;
            THRIFT_SET(s, PARQUET_SIZES_REPETITION);
        }
    }
    if (s->has != 0) {
        THRIFT_SET(meta, PARQUET_COLUMN_SIZE_STATISTICS);
    }
    return TARN_OK;
}

static tarn_code make_offset_index(parquet_writer *w, const write_leaf *leaf, int64_t start,
                                   parquet_chunk *chunk, tarn_error *err) {
    tarn_code code = TARN_OK;
    parquet_page_location *pages = env_calloc(w->env, leaf->n_pages + 1, sizeof *pages);
    if (pages == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < leaf->n_pages; i++) {
        pages[i].offset = start;
        pages[i].compressed_page_size = (int32_t)leaf->pages[i].size_bytes;
        pages[i].first_row_index = leaf->pages[i].first_row;
        start += (int64_t)leaf->pages[i].size_bytes;
    }
    parquet_offset_index index = {0};
    index.pages = pages;
    index.n_pages = (int32_t)leaf->n_pages;
    size_t before = w->offset_indexes.len;
    TRY(thrift_encode(&parquet_offset_index_thrift, &index, &w->offset_indexes, err));
    chunk->offset_index_offset = (int64_t)before; /* moved at close */
    chunk->offset_index_length = (int32_t)(w->offset_indexes.len - before);
    THRIFT_SET(chunk, PARQUET_CHUNK_OFFSET_INDEX_OFFSET);
    THRIFT_SET(chunk, PARQUET_CHUNK_OFFSET_INDEX_LENGTH);
done:
    env_free(w->env, pages);
    return code;
}

static tarn_code make_column_index(parquet_writer *w, const write_leaf *leaf, parquet_chunk *chunk,
                                   tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = leaf->n_pages;
    tarn_str *values = env_calloc(w->env, 2 * n + 1, sizeof *values);
    int64_t *nulls = env_calloc(w->env, n + 1, sizeof *nulls);
    bool *null_pages = env_calloc(w->env, n + 1, sizeof *null_pages);
    if (values == NULL || nulls == NULL || null_pages == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        const write_page *page = &leaf->pages[i];
        nulls[i] = page->n_nulls;
        null_pages[i] = page->is_null;
        if (page->has_bounds) {
            values[i] = str_make(leaf->bounds.data + page->min_at, page->min_len);
            values[n + i] = str_make(leaf->bounds.data + page->max_at, page->max_len);
        }
    }
    parquet_column_index index = {0};
    index.null_pages = null_pages;
    index.min_values = values;
    index.max_values = values + n;
    index.null_counts = nulls;
    index.n_null_pages = index.n_min_values = index.n_max_values = index.n_null_counts = (int32_t)n;
    THRIFT_SET(&index, PARQUET_COLUMN_INDEX_NULL_COUNTS);
    index.boundary_order = leaf->ascending    ? PARQUET_ASCENDING
                           : leaf->descending ? PARQUET_DESCENDING
                                              : PARQUET_UNORDERED;
    size_t before = w->column_indexes.len;
    TRY(thrift_encode(&parquet_column_index_thrift, &index, &w->column_indexes, err));
    chunk->column_index_offset = (int64_t)before; /* moved at close */
    chunk->column_index_length = (int32_t)(w->column_indexes.len - before);
    THRIFT_SET(chunk, PARQUET_CHUNK_COLUMN_INDEX_OFFSET);
    THRIFT_SET(chunk, PARQUET_CHUNK_COLUMN_INDEX_LENGTH);
done:
    env_free(w->env, values);
    env_free(w->env, nulls);
    env_free(w->env, null_pages);
    return code;
}

static int32_t codec_of(codec_kind codec) {
    switch (codec) {
    case CODEC_SNAPPY:
        return PARQUET_SNAPPY;
    case CODEC_GZIP:
        return PARQUET_GZIP;
    case CODEC_ZSTD:
        return PARQUET_ZSTD;
    case CODEC_LZ4_RAW:
        return PARQUET_LZ4_RAW;
    case CODEC_BROTLI:
        return PARQUET_BROTLI;
    case CODEC_NONE:
    case CODEC_DEFLATE:
    case CODEC_ZLIB:
    case CODEC_LZ4_HADOOP:
    case CODEC_BZIP2:
        break;
    }
    return PARQUET_UNCOMPRESSED;
}

/* Writes the leaf's pages and fills the chunk's metadata. */
static tarn_code put_chunk(parquet_writer *w, const write_leaf *leaf, parquet_chunk *chunk,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    parquet_column_meta *meta = &chunk->meta;
    THRIFT_SET(chunk, PARQUET_CHUNK_FILE_OFFSET);
    THRIFT_SET(chunk, PARQUET_CHUNK_META);
    meta->type = leaf->leaf->physical;
    meta->path = leaf->path;
    meta->n_path = leaf->n_path;
    meta->codec = codec_of(w->options.codec);
    meta->num_values = leaf->levels;
    meta->total_uncompressed_size = leaf->unpacked_bytes;
    meta->total_compressed_size = (int64_t)leaf->held_bytes;
    if (leaf->dict_page_bytes > 0) {
        meta->dictionary_page_offset = w->offset;
        THRIFT_SET(meta, PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET);
        TRY(put(w, leaf->dict_page, leaf->dict_page_bytes, err));
    }
    meta->data_page_offset = w->offset;
    for (size_t i = 0; i < leaf->n_pages; i++) {
        TRY(put(w, leaf->pages[i].data, leaf->pages[i].size_bytes, err));
    }
    TRY(list_encodings(w, leaf, meta, err));
    TRY(chunk_statistics(w, leaf, meta, err));
    TRY(chunk_sizes(w, leaf, meta, err));
    if (!w->options.no_page_index) {
        TRY(make_offset_index(w, leaf, meta->data_page_offset, chunk, err));
        if (leaf->stats_on && leaf->order != ORDER_NONE && leaf->bounds_known) {
            TRY(make_column_index(w, leaf, chunk, err));
        }
    }
done:
    return code;
}

static tarn_code put_bloom(parquet_writer *w, const write_leaf *leaf, parquet_chunk *chunk,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf bytes;
    buf_init(&bytes, w->env, 0);
    if (leaf->bloom.words == NULL) {
        return TARN_OK;
    }
    TRY(bloom_put(&leaf->bloom, &bytes, err));
    chunk->meta.bloom_filter_offset = w->offset;
    chunk->meta.bloom_filter_length = (int32_t)bytes.len;
    THRIFT_SET(&chunk->meta, PARQUET_COLUMN_BLOOM_FILTER_OFFSET);
    THRIFT_SET(&chunk->meta, PARQUET_COLUMN_BLOOM_FILTER_LENGTH);
    TRY(put(w, bytes.data, bytes.len, err));
done:
    buf_release(&bytes);
    return code;
}

static tarn_code put_row_group(parquet_writer *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = (size_t)w->n_groups;
    parquet_chunk *chunks = ARENA_ARRAY(&w->arena, parquet_chunk, (size_t)w->n_leaves + 1);
    parquet_row_group *groups =
        arena_grow(&w->arena, w->groups, n * sizeof *groups, (n + 1) * sizeof *groups);
    if (chunks == NULL || groups == NULL) {
        return err_nomem(err);
    }
    w->groups = groups;
    parquet_row_group *group = &groups[n];
    memset(group, 0, sizeof *group);
    TRY(put_magic_once(w, err));
    group->file_offset = w->offset;
    for (int32_t i = 0; i < w->n_leaves; i++) {
        TRY(put_chunk(w, &w->leaves[i], &chunks[i], err));
        group->total_byte_size += chunks[i].meta.total_uncompressed_size;
        group->total_compressed_size += chunks[i].meta.total_compressed_size;
    }
    for (int32_t i = 0; i < w->n_leaves; i++) {
        TRY(put_bloom(w, &w->leaves[i], &chunks[i], err));
        chunk_reset(&w->leaves[i]);
    }
    group->columns = chunks;
    group->n_columns = w->n_leaves;
    group->num_rows = w->group_rows;
    THRIFT_SET(group, PARQUET_ROW_GROUP_FILE_OFFSET);
    THRIFT_SET(group, PARQUET_ROW_GROUP_TOTAL_COMPRESSED_SIZE);
    if (w->n_groups <= INT16_MAX) {
        group->ordinal = (int16_t)w->n_groups;
        THRIFT_SET(group, PARQUET_ROW_GROUP_ORDINAL);
    }
    w->n_groups++;
    w->group_rows = 0;
done:
    return code;
}

static tarn_code end_row_group(parquet_writer *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (w->group_rows == 0) {
        return TARN_OK;
    }
    leaf_work work = {w, NULL, 0, 0};
    TRY(run_leaves(w, &work, err));
    TRY(put_row_group(w, err));
done:
    return code;
}

tarn_code parquet_writer_end_row_group(parquet_writer *w, tarn_error *err) {
    if (w->failed || w->closed) {
        return err_set(err, TARN_INTERNAL, "file %s: the writer had failed or was closed",
                       w->sink != NULL ? w->sink->name : "");
    }
    tarn_code code = end_row_group(w, err);
    w->failed = code != TARN_OK;
    return code;
}

/* ---- rows ---- */

static int64_t held_bytes(const parquet_writer *w) {
    int64_t held = 0;
    for (int32_t i = 0; i < w->n_leaves; i++) {
        held += (int64_t)(w->leaves[i].held_bytes + leaf_open_bytes(&w->leaves[i]));
    }
    return held;
}

/* Idle writers give their working memory back: many may be open at once. */
static void rest(parquet_writer *w) {
    if (w->offset + held_bytes(w) >= (int64_t)KEEP_SCRATCH_BYTES) {
        return;
    }
    for (uint32_t i = 0; i < w->n_scratch; i++) {
        scratch_release(&w->scratch[i]);
        scratch_init(&w->scratch[i], w->env);
    }
}

/* Rows to take before the row group's size is looked at again: as many as it seems to have room
 * for by what its rows took so far. */
static int64_t slice_rows(const parquet_writer *w) {
    int64_t room = w->options.row_group_rows - w->group_rows;
    int64_t held = held_bytes(w) + 1;
    int64_t rows = SLICE_FIRST_ROWS;
    if (w->group_rows > 0) {
        double fit =
            (double)w->group_rows / (double)held * (double)(w->options.row_group_bytes - held);
        rows = fit > SLICE_ROWS ? SLICE_ROWS : (int64_t)fit + 1;
        rows = rows < SLICE_LEAST_ROWS ? SLICE_LEAST_ROWS : rows;
    }
    return rows < room ? rows : room;
}

static tarn_code put_rows(parquet_writer *w, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t n = batch_rows(batch);
    for (int64_t start = 0; start < n;) {
        int64_t rows = slice_rows(w);
        rows = rows < n - start ? rows : n - start;
        leaf_work work = {w, batch, start, start + rows};
        TRY(run_leaves(w, &work, err));
        w->group_rows += rows;
        w->rows += rows;
        start += rows;
        if (w->group_rows >= w->options.row_group_rows ||
            held_bytes(w) >= w->options.row_group_bytes) {
            TRY(end_row_group(w, err));
        }
    }
done:
    return code;
}

tarn_code parquet_writer_write(parquet_writer *w, const tarn_batch *batch, tarn_error *err) {
    if (w->failed || w->closed) {
        return err_set(err, TARN_INTERNAL, "file %s: the writer had failed or was closed",
                       w->sink != NULL ? w->sink->name : "");
    }
    tarn_code code = TARN_OK;
    if (batch_rows(batch) > 0 && !type_same_shape(batch->type, w->root)) {
        return err_set(err, TARN_INVALID, "file %s: the batch had another type than the writer",
                       w->sink->name);
    }
    TRY(put_rows(w, batch, err));
    rest(w);
done:
    w->failed = code != TARN_OK;
    return code == TARN_OK ? code : err_add(err, code, "file %s", w->sink->name);
}

int64_t parquet_writer_rows(const parquet_writer *w) {
    return w->rows;
}

int64_t parquet_writer_buffered_bytes(const parquet_writer *w) {
    size_t bytes = w->arena.used_bytes + w->column_indexes.cap + w->offset_indexes.cap;
    for (int32_t i = 0; i < w->n_leaves; i++) {
        bytes += leaf_memory(&w->leaves[i]);
    }
    for (uint32_t i = 0; i < w->n_scratch; i++) {
        bytes += scratch_memory(&w->scratch[i]);
    }
    return (int64_t)bytes;
}

int64_t parquet_writer_written_bytes(const parquet_writer *w) {
    return w->offset + held_bytes(w);
}

/* ---- close ---- */

static tarn_code put_indexes(parquet_writer *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t columns = w->offset;
    TRY(put(w, w->column_indexes.data, w->column_indexes.len, err));
    int64_t offsets = w->offset;
    TRY(put(w, w->offset_indexes.data, w->offset_indexes.len, err));
    for (int32_t g = 0; g < w->n_groups; g++) {
        parquet_chunk *chunks = (parquet_chunk *)(uintptr_t)w->groups[g].columns;
        for (int32_t i = 0; i < w->n_leaves; i++) {
            chunks[i].column_index_offset += columns;
            chunks[i].offset_index_offset += offsets;
        }
    }
done:
    return code;
}

static tarn_code put_footer(parquet_writer *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf bytes;
    buf_init(&bytes, w->env, 0);
    parquet_footer footer = {0};
    size_t n_pairs = w->options.n_key_values;
    parquet_key_value *pairs = ARENA_ARRAY(&w->arena, parquet_key_value, n_pairs + 1);
    parquet_column_order *orders =
        ARENA_ARRAY(&w->arena, parquet_column_order, (size_t)w->n_leaves + 1);
    if (pairs == NULL || orders == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < n_pairs; i++) {
        pairs[i].key = w->options.key_values[i].key;
        pairs[i].value = w->options.key_values[i].value;
        THRIFT_SET(&pairs[i], PARQUET_KEY_VALUE_VALUE);
    }
    for (int32_t i = 0; i < w->n_leaves; i++) {
        THRIFT_SET(&orders[i], PARQUET_TYPE_ORDER);
    }
    footer.version = w->options.page_version;
    footer.schema = w->schema->elements;
    footer.n_schema = w->schema->n_elements;
    footer.num_rows = w->rows;
    footer.row_groups = w->groups;
    footer.n_row_groups = w->n_groups;
    footer.key_values = pairs;
    footer.n_key_values = (int32_t)n_pairs;
    footer.created_by = STR(CREATED_BY);
    footer.column_orders = orders;
    footer.n_column_orders = w->n_leaves;
    if (n_pairs > 0) {
        THRIFT_SET(&footer, PARQUET_FOOTER_KEY_VALUES);
    }
    THRIFT_SET(&footer, PARQUET_FOOTER_CREATED_BY);
    THRIFT_SET(&footer, PARQUET_FOOTER_COLUMN_ORDERS);
    TRY(thrift_encode(&parquet_footer_thrift, &footer, &bytes, err));
    if (bytes.len > INT32_MAX) {
        code = err_set(err, TARN_LIMIT, "the footer had %zu bytes, more than %d", bytes.len,
                       INT32_MAX);
        goto done;
    }
    uint32_t len = (uint32_t)bytes.len;
    TRY(buf_append(&bytes, &len, sizeof len, err));
    TRY(buf_append(&bytes, MAGIC, 4, err));
    TRY(put(w, bytes.data, bytes.len, err));
done:
    buf_release(&bytes);
    return code;
}

static tarn_code make_result(parquet_writer *w, tarn_arena *arena, tarn_file *out,
                             tarn_error *err) {
    int64_t *splits = ARENA_ARRAY(arena, int64_t, (size_t)w->n_groups + 1);
    if (splits == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < w->n_groups; i++) {
        splits[i] = w->groups[i].file_offset;
    }
    tarn_code code = metrics_make(w->leaves, w->n_leaves, arena, out, err);
    if (code != TARN_OK) {
        return code;
    }
    out->format = TARN_FORMAT_PARQUET;
    out->record_count = w->rows;
    out->size_bytes = w->offset;
    out->n_split_offsets = w->n_groups;
    out->split_offsets = splits;
    return TARN_OK;
}

tarn_code parquet_writer_close(parquet_writer *w, tarn_arena *arena, tarn_file *out,
                               tarn_error *err) {
    if (w->failed || w->closed) {
        return err_set(err, TARN_INTERNAL, "file %s: the writer had failed or was closed",
                       w->sink != NULL ? w->sink->name : "");
    }
    tarn_code code = TARN_OK;
    tarn_file result;
    w->closed = true;
    TRY(end_row_group(w, err));
    TRY(put_magic_once(w, err));
    TRY(put_indexes(w, err));
    TRY(put_footer(w, err));
    if (out != NULL) {
        result = *out;
        TRY(make_result(w, arena, &result, err));
    }
    io_sink *sink = w->sink;
    w->sink = NULL;
    TRY(sink->finish(sink, err));
    if (out != NULL) {
        *out = result;
    }
done:
    w->failed = code != TARN_OK;
    return w->failed && w->sink != NULL ? err_add(err, code, "file %s", w->sink->name) : code;
}
