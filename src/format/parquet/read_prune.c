/* format/parquet/read_prune.c - which row groups and rows a filter leaves: statistics first, then
 * bloom filters, dictionaries, page indexes. Each is asked only where those before it left
 * something. */
#include "format/parquet/parquet_read_int.h"

static int32_t find_node(const parquet_file *file, const tarn_projection *plan, int32_t field_id) {
    if (plan != NULL) {
        return project_source_node(plan, field_id);
    }
    for (int32_t i = 0; i < file->schema->n_nodes; i++) {
        if (file->schema->nodes[i].field->id == field_id) {
            return i;
        }
    }
    return -1;
}

prune_column *prune_find(pruner *p, const tarn_field *field) {
    for (size_t i = 0; i < p->n_columns; i++) {
        if (p->columns[i].field_id == field->id) {
            return p->columns[i].leaf >= 0 ? &p->columns[i] : NULL;
        }
    }
    return NULL;
}

bool prune_note(pruner *p, tarn_code code) {
    if (code != TARN_OK && code != TARN_CORRUPT && code != TARN_UNSUPPORTED && p->code == TARN_OK) {
        p->code = code;
    }
    return code == TARN_OK;
}

static bool group_stats(void *ctx, const tarn_field *field, expr_stats *out) {
    pruner *p = ctx;
    const prune_column *c = prune_find(p, field);
    if (c == NULL ||
        !parquet_group_stats(p->file, p->group, p->file->schema->leaves[c->leaf].node, out)) {
        return false;
    }
    out->has_lower = out->has_lower && stats_promote(field->type, &out->lower);
    out->has_upper = out->has_upper && stats_promote(field->type, &out->upper);
    return true;
}

static tarn_code find_columns(pruner *p, const tarn_expr *bound, const tarn_projection *plan) {
    const size_t n = expr_field_ids(bound, NULL, 0);
    int32_t *ids = ARENA_ARRAY(p->arena, int32_t, n + 1);
    p->columns = ARENA_ARRAY(p->arena, prune_column, n + 1);
    if (ids == NULL || p->columns == NULL) {
        return err_nomem(p->err);
    }
    p->n_columns = expr_field_ids(bound, ids, n);
    p->n_columns = p->n_columns < n ? p->n_columns : n;
    for (size_t i = 0; i < p->n_columns; i++) {
        const parquet_schema *schema = p->file->schema;
        const int32_t node = find_node(p->file, plan, ids[i]);
        int32_t leaf = node >= 0 ? schema->nodes[node].leaf : -1;
        if (leaf >= 0 && (schema->leaves[leaf].max_rep > 0 || schema->leaves[leaf].type == NULL ||
                          schema->nodes[node].field->type->kind == TARN_VARIANT)) {
            leaf = -1;
        }
        p->columns[i] = (prune_column){.field_id = ids[i], .leaf = leaf};
    }
    return TARN_OK;
}

/* One row group; false when it holds nothing. */
static bool group_may_match(pruner *p, const tarn_expr *bound, parquet_pruned *out) {
    if (!expr_may_match(bound, group_stats, p)) {
        out->groups_by_stats++;
        return false;
    }
    if (!prune_bloom(p, bound) && p->code == TARN_OK) {
        out->groups_by_bloom++;
        return false;
    }
    if (p->code == TARN_OK && !prune_dictionary(p, bound) && p->code == TARN_OK) {
        out->groups_by_dictionary++;
        return false;
    }
    return true;
}

typedef struct range_list {
    parquet_range *items;
    size_t n, cap;
    bool partial; /* some group's rows are not all wanted */
} range_list;

static tarn_code add_ranges(pruner *p, range_list *list, const read_run *runs, size_t n) {
    const int64_t first = p->file->group_first_rows[p->group];
    if (list->n + n > list->cap) {
        const size_t cap = list->cap * 2 > list->n + n ? list->cap * 2 : list->n + n + 16;
        parquet_range *items =
            arena_grow(p->arena, list->items, list->cap * sizeof *items, cap * sizeof *items);
        if (items == NULL) {
            return err_nomem(p->err);
        }
        list->items = items;
        list->cap = cap;
    }
    for (size_t i = 0; i < n; i++) {
        const parquet_range r = {first + runs[i].start, first + runs[i].end};
        if (list->n > 0 && list->items[list->n - 1].end == r.start) {
            list->items[list->n - 1].end = r.end;
        } else {
            list->items[list->n++] = r;
        }
    }
    return TARN_OK;
}

static tarn_code prune_group(pruner *p, const tarn_expr *bound, uint8_t *wanted, range_list *list,
                             parquet_pruned *out) {
    const int64_t rows = p->file->footer.row_groups[p->group].num_rows;
    const read_run *runs = NULL;
    size_t n = 0;
    int64_t skipped = 0, kept = 0;
    *wanted = group_may_match(p, bound, out) ? 1 : 0;
    if (p->code != TARN_OK || !*wanted) {
        return p->code;
    }
    tarn_code code = prune_pages(p, bound, &runs, &n, &skipped);
    if (code != TARN_OK) {
        return code;
    }
    for (size_t i = 0; i < n; i++) {
        kept += runs[i].end - runs[i].start;
    }
    if (kept == 0 && rows > 0) {
        *wanted = 0;
        out->groups_by_stats++;
        return TARN_OK;
    }
    list->partial = list->partial || kept < rows;
    out->groups_kept++;
    out->pages_skipped += skipped;
    out->rows_kept += kept;
    return add_ranges(p, list, runs, n);
}

tarn_code parquet_prune(parquet_file *file, const tarn_expr *bound, const tarn_projection *plan,
                        tarn_arena *arena, uint8_t *groups, parquet_pruned *out, tarn_error *err) {
    pruner p = {.file = file, .arena = arena, .err = err};
    parquet_pruned result = {0};
    range_list list = {0};
    tarn_code code = TARN_OK;
    arena_init(&p.scratch, file->env);
    codec_ctx_init(&p.codec, file->env);
    TRY(find_columns(&p, bound, plan));
    for (p.group = 0; p.group < file->footer.n_row_groups; p.group++) {
        if (groups[p.group]) {
            code = prune_group(&p, bound, &groups[p.group], &list, &result);
            prune_drop_group(&p);
            TRY(code);
        }
    }
    if (list.partial) {
        result.ranges = list.items;
        result.n_ranges = list.n;
    }
    err_reset(err);
    *out = result;
done:
    codec_ctx_release(&p.codec);
    arena_release(&p.scratch);
    return code;
}
