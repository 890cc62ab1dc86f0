/* format/parquet/read_scan.c - a scan: row groups, runs of rows within them, batches.
 *
 * Once for a scan the wanted nodes become columns to read and builders to fill; for every row group
 * the columns are opened anew on its bytes. A batch never crosses a gap or a row group, so that its
 * rows have consecutive numbers. */
#include "base/pool.h"
#include "format/parquet/parquet_read_int.h"

struct parquet_scan {
    parquet_file *file;
    tarn_env *env;
    tarn_arena arena;       /* plan */
    tarn_arena group_arena; /* bytes and runs of the present row group */
    codec_ctx codec;
    codec_ctx *codecs; /* one a column, when they are decoded in parallel; else NULL */
    const tarn_type *type;
    uint8_t *selected;
    uint8_t *groups;
    const parquet_range *ranges;
    size_t n_ranges;
    size_t range; /* first one that may reach into the present row group */
    int64_t batch_rows;

    read_node *nodes;
    int32_t n_nodes;
    read_column *columns;
    int32_t n_columns;
    tarn_builder root;
    tarn_builder *parts; /* of shredded variants */
    int32_t n_parts;

    int32_t group; /* next one to open */
    bool open;
    bool failed;
    read_run *runs;
    size_t n_runs, run;
    int64_t at; /* next row, within the row group */

    parquet_reject_fn reject;
    void *reject_ctx;
    uint8_t *bad;     /* rows of the batch that are left out; NULL: none so far in this scan */
    tarn_batch whole; /* a batch with such rows, given out in the pieces between them */
    int64_t whole_first, whole_at;
};

/* ---- the plan ---- */

static void add_column(parquet_scan *s, int32_t leaf, tarn_builder *builder, uint8_t slot_def,
                       bool own_bit) {
    const parquet_leaf *l = &s->file->schema->leaves[leaf];
    read_column *c = &s->columns[s->n_columns++];
    *c = (read_column){.file = s->file,
                       .codec = &s->codec,
                       .index = leaf,
                       .leaf = l,
                       .builder = builder,
                       .slot_def = slot_def,
                       .convert = builder != NULL ? convert_choose(l) : CONVERT_NOTHING};
    /* One null bit that is the leaf's own needs no levels kept. */
    c->with_levels =
        builder == NULL || l->max_rep > 0 || l->max_def > 1 || (l->max_def == 1 && !own_bit);
}

/* Where nodes are planned: the file's schema, or the parts of a shredded variant (all selected). */
typedef struct plan_place {
    const parquet_schema *schema;
    const uint8_t *selected; /* NULL: all */
    uint8_t def, rep;        /* of the list around */
} plan_place;

static tarn_code plan_node(parquet_scan *s, const plan_place *at, int32_t index, tarn_builder *b,
                           tarn_error *err);

static tarn_code plan_children(parquet_scan *s, const plan_place *at, int32_t index,
                               tarn_builder *b, tarn_error *err) {
    const tarn_type *type = index < 0 ? at->schema->root : at->schema->nodes[index].field->type;
    int32_t child = index + 1, slot = 0;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < type->n_fields && code == TARN_OK; i++) {
        if (at->selected == NULL || at->selected[child]) {
            code = plan_node(s, at, child, &b->children[slot++], err);
        }
        child += at->schema->nodes[child].span;
    }
    return code;
}

static tarn_code plan_variant(parquet_scan *s, const plan_place *at, const parquet_node *node,
                              read_node *n, tarn_error *err) {
    if (node->shredded == NULL) {
        add_column(s, node->leaf, &n->builder->children[0], at->def, false);
        add_column(s, node->value_leaf, &n->builder->children[1], at->def, false);
        return TARN_OK;
    }
    n->parts = &s->parts[s->n_parts];
    tarn_code code = builder_init(n->parts, s->env, node->shredded->root, err);
    if (code != TARN_OK) {
        return code;
    }
    s->n_parts++;
    const plan_place inside = {node->shredded, NULL, at->def, at->rep};
    return plan_children(s, &inside, -1, n->parts, err);
}

static tarn_code plan_node(parquet_scan *s, const plan_place *at, int32_t index, tarn_builder *b,
                           tarn_error *err) {
    const parquet_node *node = &at->schema->nodes[index];
    const tarn_kind kind = node->field->type->kind;
    const int32_t first = s->n_columns;
    read_node *n = &s->nodes[s->n_nodes++];
    *n = (read_node){
        .node = node, .builder = b, .levels = -1, .context_def = at->def, .context_rep = at->rep};
    tarn_code code = TARN_OK;
    if (kind == TARN_VARIANT) {
        code = plan_variant(s, at, node, n, err);
    } else if (node->leaf >= 0) {
        add_column(s, node->leaf, b, at->def, node->is_nullable);
    } else {
        const bool list = kind == TARN_LIST || kind == TARN_MAP;
        const plan_place inside = {at->schema, at->selected, list ? node->def_entry : at->def,
                                   list ? node->rep : at->rep};
        code = plan_children(s, &inside, index, b, err);
        /* Whether and how often it is there is only told by a column below it. */
        if (code == TARN_OK && s->n_columns == first && node->first_leaf < node->end_leaf &&
            (list || node->def > at->def)) {
            add_column(s, node->first_leaf, NULL, at->def, false);
        }
        if (code == TARN_OK && list && s->n_columns == first) {
            code = err_set(err, TARN_CORRUPT, "list %.*s had no column below it",
                           STR_ARG(node->field->name));
        }
    }
    n->levels = s->n_columns > first ? first : -1;
    return code;
}

/* Nodes of the type, and of the parts of its shredded variants. */
static void count_nodes(const parquet_schema *schema, size_t *n_nodes, size_t *n_parts) {
    *n_nodes += (size_t)schema->n_nodes;
    for (int32_t i = 0; i < schema->n_nodes; i++) {
        if (schema->nodes[i].shredded != NULL) {
            ++*n_parts;
            count_nodes(schema->nodes[i].shredded, n_nodes, n_parts);
        }
    }
}

static tarn_code copy_choices(parquet_scan *s, const parquet_scan_options *options,
                              tarn_error *err) {
    const size_t n_nodes = (size_t)s->file->schema->n_nodes;
    const size_t n_groups = (size_t)s->file->footer.n_row_groups;
    s->selected = arena_alloc(&s->arena, n_nodes + 1);
    s->groups = arena_alloc(&s->arena, n_groups + 1);
    size_t n_all = 0, n_parts = 0;
    count_nodes(s->file->schema, &n_all, &n_parts);
    s->nodes = ARENA_ARRAY(&s->arena, read_node, n_all + 1);
    s->parts = ARENA_ARRAY(&s->arena, tarn_builder, n_parts + 1);
    s->columns = ARENA_ARRAY(&s->arena, read_column, (size_t)s->file->schema->n_leaves + 1);
    if (s->selected == NULL || s->groups == NULL || s->nodes == NULL || s->columns == NULL ||
        s->parts == NULL) {
        return err_nomem(err);
    }
    memset(s->selected, 1, n_nodes);
    memset(s->groups, 1, n_groups);
    if (options != NULL && options->selected != NULL) {
        memcpy(s->selected, options->selected, n_nodes);
    }
    if (options != NULL && options->groups != NULL) {
        memcpy(s->groups, options->groups, n_groups);
    }
    if (options != NULL) {
        s->ranges = options->ranges;
        s->n_ranges = options->n_ranges;
        s->reject = options->reject;
        s->reject_ctx = options->reject_ctx;
    }
    s->batch_rows =
        options != NULL && options->batch_rows > 0 ? options->batch_rows : PARQUET_BATCH_ROWS;
    s->type = type_prune(&s->arena, s->file->schema->root, s->selected);
    return s->type != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code part_codecs(parquet_scan *s, tarn_error *err) {
    codec_ctx *codecs = ARENA_ARRAY(&s->arena, codec_ctx, (size_t)s->n_columns);
    if (codecs == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < s->n_columns; i++) {
        codec_ctx_init(&codecs[i], s->env);
        s->columns[i].codec = &codecs[i];
    }
    s->codecs = codecs;
    return TARN_OK;
}

tarn_code parquet_scan_open(parquet_file *file, const parquet_scan_options *options,
                            parquet_scan **out, tarn_error *err) {
    parquet_scan *s = env_calloc(file->env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    tarn_code code = TARN_OK;
    s->file = file;
    s->env = file->env;
    arena_init(&s->arena, s->env);
    arena_init(&s->group_arena, s->env);
    codec_ctx_init(&s->codec, s->env);
    TRY(copy_choices(s, options, err));
    TRY(builder_init(&s->root, s->env, s->type, err));
    const plan_place top = {file->schema, s->selected, 0, 0};
    TRY(plan_children(s, &top, -1, &s->root, err));
    if (options != NULL && options->parallel && s->n_columns > 1 && env_threads(s->env) > 1) {
        TRY(part_codecs(s, err));
    }
    *out = s;
    s = NULL;
done:
    parquet_scan_close(s);
    return code;
}

static void close_group(parquet_scan *s) {
    for (int32_t i = 0; i < s->n_columns; i++) {
        read_column *c = &s->columns[i];
        const read_column plan = {.file = c->file,
                                  .codec = c->codec,
                                  .index = c->index,
                                  .leaf = c->leaf,
                                  .builder = c->builder,
                                  .slot_def = c->slot_def,
                                  .convert = c->convert,
                                  .with_levels = c->with_levels};
        column_release(c);
        *c = plan;
    }
    arena_release(&s->group_arena);
    s->open = false;
}

void parquet_scan_close(parquet_scan *s) {
    if (s == NULL) {
        return;
    }
    close_group(s);
    batch_release(&s->whole);
    env_free(s->env, s->bad);
    builder_release(&s->root);
    for (int32_t i = 0; i < s->n_parts; i++) {
        builder_release(&s->parts[i]);
    }
    codec_ctx_release(&s->codec);
    for (int32_t i = 0; s->codecs != NULL && i < s->n_columns; i++) {
        codec_ctx_release(&s->codecs[i]);
    }
    arena_release(&s->arena);
    env_free(s->env, s);
}

const tarn_type *parquet_scan_type(const parquet_scan *scan) {
    return scan->type;
}

/* ---- row groups ---- */

/* The rows of a group that are wanted, as runs. */
static tarn_code find_runs(parquet_scan *s, int32_t group, tarn_error *err) {
    const int64_t first = s->file->group_first_rows[group];
    const int64_t rows = s->file->footer.row_groups[group].num_rows;
    s->n_runs = 0;
    s->run = 0;
    size_t n = 1;
    if (s->ranges != NULL) {
        while (s->range < s->n_ranges && s->ranges[s->range].end <= first) {
            s->range++;
        }
        for (n = 0; s->range + n < s->n_ranges && s->ranges[s->range + n].start < first + rows;) {
            n++;
        }
    }
    s->runs = ARENA_ARRAY(&s->group_arena, read_run, n + 1);
    if (s->runs == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        read_run run = {0, rows};
        if (s->ranges != NULL) {
            const parquet_range *r = &s->ranges[s->range + i];
            run.start = r->start > first ? r->start - first : 0;
            run.end = r->end < first + rows ? r->end - first : rows;
        }
        if (run.start < run.end) {
            s->runs[s->n_runs++] = run;
        }
    }
    return TARN_OK;
}

static tarn_code open_columns(parquet_scan *s, int32_t group, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < s->n_columns && code == TARN_OK; i++) {
        read_column *c = &s->columns[i];
        c->env = s->env;
        c->group = group;
        c->chunk = &s->file->footer.row_groups[group].columns[c->index];
        if (!THRIFT_HAS(c->chunk, PARQUET_CHUNK_META) ||
            THRIFT_HAS(c->chunk, PARQUET_CHUNK_CRYPTO)) {
            return column_error(c, TARN_UNSUPPORTED, err, "was encrypted");
        }
        if (THRIFT_HAS(c->chunk, PARQUET_CHUNK_FILE_PATH) && c->chunk->file_path.len > 0) {
            return column_error(c, TARN_UNSUPPORTED, err, "was in another file, %.*s",
                                STR_ARG(c->chunk->file_path));
        }
        code = column_open(c, err);
    }
    if (code == TARN_OK) {
        code = fetch_group(s->file, s->columns, s->n_columns, s->runs, s->n_runs, &s->group_arena,
                           err);
    }
    return code;
}

/* Opens the next wanted row group that has wanted rows; none: s->open stays false. */
static tarn_code open_group(parquet_scan *s, tarn_error *err) {
    for (; s->group < s->file->footer.n_row_groups; s->group++) {
        if (!s->groups[s->group] || s->file->footer.row_groups[s->group].num_rows == 0) {
            continue;
        }
        tarn_code code = find_runs(s, s->group, err);
        if (code != TARN_OK) {
            return code;
        }
        if (s->n_runs == 0) {
            continue;
        }
        code = open_columns(s, s->group, err);
        s->open = code == TARN_OK;
        s->at = s->runs[0].start;
        return code;
    }
    return TARN_OK;
}

/* Lets go of a row group that is read, and opens the next; *more is false at the end. */
static tarn_code need_group(parquet_scan *s, bool *more, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (s->open && s->at == s->runs[s->run].end) {
        s->run++;
        if (s->run < s->n_runs) {
            s->at = s->runs[s->run].start;
        } else {
            close_group(s);
            s->group++;
        }
    }
    if (!s->open) {
        code = open_group(s, err);
    }
    *more = s->open;
    return code;
}

/* The part of one column in the next n rows. */
typedef struct batch_task {
    parquet_scan *scan;
    int64_t n;
} batch_task;

static tarn_code read_one(void *ctx, size_t index, tarn_error *err) {
    const batch_task *task = ctx;
    read_column *c = &task->scan->columns[index];
    tarn_code code = column_seek(c, task->scan->at, err);
    if (code == TARN_OK && c->builder != NULL) {
        code = builder_reserve(c->builder, task->n, err);
    }
    return code == TARN_OK ? column_read(c, task->n, err) : code;
}

/* ---- rows with values that can't be said ---- */

static tarn_code reject_row(parquet_scan *s, const read_column *c, int64_t row, tarn_error *err) {
    static const char PROBLEM[] = "had a value out of range of a timestamp";
    const int64_t number = s->file->group_first_rows[s->group] + s->at + row;
    tarn_error why = TARN_ERROR_INIT;
    if (s->reject == NULL) {
        return err_add(err, column_error(c, TARN_CORRUPT, err, PROBLEM), "row %lld of the file",
                       (long long)number);
    }
    (void)column_error(c, TARN_CORRUPT, &why, PROBLEM);
    return s->reject(s->reject_ctx, number, str_of(why.message), err);
}

/* Judges the marks of a column's rows that were just read. */
static tarn_code check_beyond(parquet_scan *s, const read_column *c, int64_t n, bool *any,
                              tarn_error *err) {
    const tarn_builder *b = c->builder;
    tarn_code code = TARN_OK;
    for (int64_t i = 0; i < n && code == TARN_OK; i++) {
        if (num_load_i64(b->values + i * 8) != INT96_BEYOND ||
            (b->validity != NULL && !bit_get(b->validity, i)) || (*any && s->bad[i])) {
            continue;
        }
        if (!*any) {
            uint8_t *bad = env_realloc(s->env, s->bad, (size_t)s->batch_rows);
            if (bad == NULL) {
                return err_nomem(err);
            }
            s->bad = bad;
            memset(bad, 0, (size_t)n);
            *any = true;
        }
        s->bad[i] = 1;
        code = reject_row(s, c, i, err);
    }
    return code;
}

/* The next piece of a batch between the rows that are left out; *out stays empty at its end. */
static tarn_code next_piece(parquet_scan *s, tarn_batch *out, int64_t *first_row, tarn_error *err) {
    const int64_t rows = batch_rows(&s->whole);
    while (s->whole_at < rows && s->bad[s->whole_at]) {
        s->whole_at++;
    }
    int64_t end = s->whole_at;
    while (end < rows && !s->bad[end]) {
        end++;
    }
    if (end == s->whole_at) {
        batch_release(&s->whole);
        return TARN_OK;
    }
    tarn_code code = batch_slice(s->env, &s->whole, s->whole_at, end - s->whole_at, out, err);
    if (code == TARN_OK && first_row != NULL) {
        *first_row = s->whole_first + s->whole_at;
    }
    s->whole_at = end;
    return code;
}

/* *any: rows of it are to be left out, those marked in s->bad. */
static tarn_code read_batch(parquet_scan *s, int64_t n, bool *any, tarn_error *err) {
    batch_task task = {s, n};
    tarn_code code = TARN_OK;
    if (s->codecs != NULL) {
        code = pool_for(s->env, (size_t)s->n_columns, read_one, &task, err);
    }
    for (int32_t i = 0; s->codecs == NULL && i < s->n_columns && code == TARN_OK; i++) {
        code = read_one(&task, (size_t)i, err);
    }
    for (int32_t i = 0; i < s->n_columns && code == TARN_OK; i++) {
        if (s->columns[i].beyond && s->columns[i].builder != NULL) {
            code = check_beyond(s, &s->columns[i], n, any, err);
        }
    }
    if (code == TARN_OK) {
        code = nested_fill(s->nodes, s->n_nodes, s->columns, n, err);
    }
    s->root.length = n;
    return code;
}

/* The next batch of the present row group into *out, or into s->whole when rows of it are left out.
 */
static tarn_code next_whole(parquet_scan *s, tarn_batch *out, int64_t *first_row, tarn_error *err) {
    const int64_t left = s->runs[s->run].end - s->at;
    const int64_t n = left < s->batch_rows ? left : s->batch_rows;
    const int64_t first = s->file->group_first_rows[s->group] + s->at;
    bool any = false;
    tarn_code code = read_batch(s, n, &any, err);
    if (code == TARN_OK) {
        code = builder_finish_batch(&s->root, any ? &s->whole : out, err);
    }
    if (code == TARN_OK) {
        s->whole_first = first;
        s->whole_at = 0;
        s->at += n;
    }
    if (code == TARN_OK && first_row != NULL) {
        *first_row = first;
    }
    return code;
}

tarn_code parquet_scan_next(parquet_scan *s, tarn_batch *out, int64_t *first_row, tarn_error *err) {
    bool more = true;
    if (s->failed) {
        return err_set(err, TARN_INVALID, "%s: a scan that had failed was read on",
                       s->file->source->name);
    }
    tarn_code code = env_check_cancel(s->env, err);
    memset(out, 0, sizeof *out);
    while (code == TARN_OK && more && batch_rows(out) == 0) {
        if (s->whole.array.release != NULL) {
            code = next_piece(s, out, first_row, err);
            continue;
        }
        code = need_group(s, &more, err);
        if (code == TARN_OK && more) {
            code = next_whole(s, out, first_row, err);
        }
    }
    s->failed = code != TARN_OK;
    return code;
}
