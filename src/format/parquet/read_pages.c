/* format/parquet/read_pages.c - rows that page indexes leave (parquet-format, PageIndex.md).
 *
 * Pages of different columns do not begin at the same rows, so every predicate becomes runs of
 * rows, and AND and OR meet and join them. A column without an index leaves all rows. */
#include "format/parquet/parquet_read_int.h"

typedef struct runs {
    read_run *items;
    size_t n;
} runs;

static tarn_code load_column_index(pruner *p, prune_column *c, tarn_error *err) {
    const parquet_chunk *chunk = &p->file->footer.row_groups[p->group].columns[c->leaf];
    const int64_t start = chunk->column_index_offset, len = chunk->column_index_length;
    c->pages_tried = true;
    if (!THRIFT_HAS(chunk, PARQUET_CHUNK_COLUMN_INDEX_OFFSET) ||
        !THRIFT_HAS(chunk, PARQUET_CHUNK_COLUMN_INDEX_LENGTH) || start < 4 || len <= 0 ||
        len > p->file->source->size_bytes - start || !stats_are_ordered(p->file, c->leaf)) {
        return TARN_OK;
    }
    const parquet_offset_index *offsets = NULL;
    tarn_code code = chunk_offset_index(p->file, p->group, c->leaf, &p->scratch, &offsets, err);
    if (code != TARN_OK || offsets == NULL) {
        return code;
    }
    const uint8_t *bytes = NULL;
    parquet_column_index *index = ARENA_NEW(&p->scratch, parquet_column_index);
    if (index == NULL) {
        return err_nomem(err);
    }
    code = file_bytes(p->file, start, len, &p->scratch, &bytes, err);
    if (code == TARN_OK) {
        code = thrift_decode(&p->scratch, &parquet_column_index_thrift,
                             str_make(bytes, (size_t)len), "column index", index, NULL, err);
    }
    const int32_t n = offsets->n_pages;
    if (code == TARN_OK && index->n_null_pages == n && index->n_min_values == n &&
        index->n_max_values == n && (index->n_null_counts == 0 || index->n_null_counts == n)) {
        c->offsets = offsets;
        c->index = index;
    }
    return code;
}

typedef struct page_ctx {
    const pruner *p;
    const prune_column *column;
    int32_t page;
    int64_t rows;
} page_ctx;

static bool page_stats(void *ctx, const tarn_field *field, expr_stats *out) {
    const page_ctx *pc = ctx;
    const parquet_column_index *index = pc->column->index;
    const parquet_leaf *leaf = &pc->p->file->schema->leaves[pc->column->leaf];
    const int32_t i = pc->page;
    memset(out, 0, sizeof *out);
    out->has_value_count = true;
    out->value_count = pc->rows;
    if (index->null_pages[i]) {
        out->has_null_count = true;
        out->null_count = pc->rows;
        return true;
    }
    if (index->n_null_counts > 0 && index->null_counts[i] >= 0 &&
        index->null_counts[i] < pc->rows) {
        out->has_null_count = true;
        out->null_count = index->null_counts[i];
    }
    stats_bounds(leaf, index->min_values[i], index->max_values[i], out);
    out->has_lower = out->has_lower && stats_promote(field->type, &out->lower);
    out->has_upper = out->has_upper && stats_promote(field->type, &out->upper);
    return true;
}

static tarn_code all_rows(const pruner *p, runs *out) {
    out->items = ARENA_NEW(p->arena, read_run);
    if (out->items == NULL) {
        return err_nomem(p->err);
    }
    out->items[0] = (read_run){0, p->file->footer.row_groups[p->group].num_rows};
    out->n = out->items[0].end > 0;
    return TARN_OK;
}

static void add_run(runs *r, int64_t start, int64_t end) {
    if (start >= end) {
        return;
    }
    if (r->n > 0 && r->items[r->n - 1].end >= start) {
        read_run *last = &r->items[r->n - 1];
        last->end = end > last->end ? end : last->end;
    } else {
        r->items[r->n++] = (read_run){start, end};
    }
}

static int64_t page_end(const pruner *p, const parquet_offset_index *offsets, int32_t page) {
    return page + 1 < offsets->n_pages ? offsets->pages[page + 1].first_row_index
                                       : p->file->footer.row_groups[p->group].num_rows;
}

static tarn_code predicate_runs(pruner *p, const tarn_expr *e, runs *out) {
    prune_column *c = prune_find(p, e->field);
    if (c != NULL && !c->pages_tried) {
        (void)prune_note(p, load_column_index(p, c, p->err));
    }
    if (p->code != TARN_OK || c == NULL || c->index == NULL) {
        return p->code != TARN_OK ? p->code : all_rows(p, out);
    }
    const int32_t n = c->offsets->n_pages;
    out->items = ARENA_ARRAY(p->arena, read_run, (size_t)n + 1);
    out->n = 0;
    if (out->items == NULL) {
        return err_nomem(p->err);
    }
    for (int32_t i = 0; i < n; i++) {
        const int64_t start = c->offsets->pages[i].first_row_index;
        page_ctx ctx = {p, c, i, page_end(p, c->offsets, i) - start};
        if (expr_may_match(e, page_stats, &ctx)) {
            add_run(out, start, start + ctx.rows);
        }
    }
    return TARN_OK;
}

static void meet(const runs *a, const runs *b, runs *out) {
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        const read_run *x = &a->items[i], *y = &b->items[k];
        add_run(out, x->start > y->start ? x->start : y->start, x->end < y->end ? x->end : y->end);
        if (x->end < y->end) {
            i++;
        } else {
            k++;
        }
    }
}

static void join(const runs *a, const runs *b, runs *out) {
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        const bool first = k == b->n || (i < a->n && a->items[i].start <= b->items[k].start);
        const read_run *r = first ? &a->items[i++] : &b->items[k++];
        add_run(out, r->start, r->end);
    }
}

static tarn_code expr_runs(pruner *p, const tarn_expr *e, runs *out) {
    if (e->op == EXPR_TRUE) {
        return all_rows(p, out);
    }
    if (e->op == EXPR_FALSE) {
        *out = (runs){NULL, 0};
        return TARN_OK;
    }
    if (e->op != EXPR_AND && e->op != EXPR_OR) {
        return predicate_runs(p, e, out);
    }
    runs a, b;
    tarn_code code = expr_runs(p, e->left, &a);
    if (code == TARN_OK) {
        code = expr_runs(p, e->right, &b);
    }
    if (code != TARN_OK) {
        return code;
    }
    out->items = ARENA_ARRAY(p->arena, read_run, a.n + b.n + 1);
    out->n = 0;
    if (out->items == NULL) {
        return err_nomem(p->err);
    }
    if (e->op == EXPR_AND) {
        meet(&a, &b, out);
    } else {
        join(&a, &b, out);
    }
    return TARN_OK;
}

/* Pages of the filter's columns that none of the runs touches. */
static int64_t count_skipped(const pruner *p, const runs *r) {
    int64_t skipped = 0;
    for (size_t i = 0; i < p->n_columns; i++) {
        const parquet_offset_index *offsets = p->columns[i].offsets;
        size_t run = 0;
        for (int32_t page = 0; offsets != NULL && page < offsets->n_pages; page++) {
            while (run < r->n && r->items[run].end <= offsets->pages[page].first_row_index) {
                run++;
            }
            skipped += run == r->n || r->items[run].start >= page_end(p, offsets, page);
        }
    }
    return skipped;
}

tarn_code prune_pages(pruner *p, const tarn_expr *bound, const read_run **items, size_t *n,
                      int64_t *skipped) {
    runs r = {NULL, 0};
    tarn_code code = expr_runs(p, bound, &r);
    if (code == TARN_OK) {
        *items = r.items;
        *n = r.n;
        *skipped = count_skipped(p, &r);
    }
    return code;
}
