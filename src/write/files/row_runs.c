/* write/files/row_runs.c - see row_runs.h.
 *
 * A run is a row of blocks, each an int64 of its length and a dumped builder. A merge holds a block
 * of each run. What may be given is bounded by the smallest last row of the blocks behind which
 * there are more: all rows up to it are there. So each step uses up a block at least. */
#include "write/files/row_runs.h"

#define BLOCKS_HELD                                                                                \
    8 /* times its size a block costs in a merge, with keys and its rows gathered                  \
       */
#define BLOCK_LEAST 4096
#define BLOCK_MOST  (1 << 20)

struct row_run {
    int64_t start, end; /* in the temporary file */
};

typedef struct run_cursor {
    int64_t next, end; /* what was not read yet */
    tarn_batch block;
    row_order order;
    int64_t at, shown; /* ranks of the block that wait; those behind come as a block of their own */
} run_cursor;

struct row_merge {
    row_spill *spill;
    int32_t n;
    run_cursor cursors[RUNS_MERGED + 1];
};

/* ---- writing ---- */

void row_spill_init(row_spill *s, tarn_env *env, const row_sorter *sorter, const tarn_type *root,
                    int64_t memory_bytes) {
    size_t block = (size_t)memory_bytes / RUNS_MERGED / BLOCKS_HELD;
    memset(s, 0, sizeof *s);
    s->env = env;
    s->sorter = sorter;
    s->root = root;
    s->block_bytes = block < BLOCK_LEAST ? BLOCK_LEAST : block;
    s->block_bytes = s->block_bytes > BLOCK_MOST ? BLOCK_MOST : s->block_bytes;
    buf_init(&s->bytes, env, 0);
}

void row_spill_release(row_spill *s) {
    store_temp_free(s->temp);
    builder_release(&s->piece);
    buf_release(&s->bytes);
    memset(s, 0, sizeof *s);
}

int64_t row_spill_bytes(const row_spill *s) {
    return s->temp != NULL ? store_temp_bytes(s->temp) : 0;
}

tarn_code row_spill_clear(row_spill *s, tarn_error *err) {
    builder_release(&s->piece);
    buf_release(&s->bytes);
    buf_init(&s->bytes, s->env, 0);
    return row_spill_bytes(s) > 0 ? store_temp_clear(s->temp, err) : TARN_OK;
}

void row_runs_release(row_runs *runs, tarn_env *env) {
    env_free(env, runs->items);
    memset(runs, 0, sizeof *runs);
}

static int64_t rows_a_block(const row_spill *s, const tarn_batch *batch) {
    int64_t rows = batch_rows(batch);
    int64_t fit = (int64_t)s->block_bytes * rows / (batch_bytes(batch) + 1);
    return fit > 1 ? fit : 1;
}

static tarn_code put_blocks(row_spill *s, const tarn_batch *batch, const row_order *order,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_view rows;
    int64_t most = rows_a_block(s, batch);
    view_array(&batch->array, batch->type, &rows);
    if (s->piece.env == NULL) {
        TRY(builder_init(&s->piece, s->env, s->root, err));
    }
    for (int64_t at = 0; at < order->n; at += most) {
        int64_t n = order->n - at < most ? order->n - at : most;
        int64_t len = 0;
        builder_reset(&s->piece);
        buf_reset(&s->bytes);
        TRY(builder_gather(&s->piece, &rows, order->rows + at, n, err));
        TRY(buf_append(&s->bytes, &len, sizeof len, err));
        TRY(builder_dump(&s->piece, &s->bytes, err));
        len = (int64_t)(s->bytes.len - sizeof len);
        memcpy(s->bytes.data, &len, sizeof len);
        TRY(store_temp_append(s->temp, s->bytes.data, s->bytes.len, err));
    }
done:
    return code;
}

tarn_code row_spill_add(row_spill *s, row_runs *runs, const tarn_batch *batch,
                        const row_order *order, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (s->temp == NULL) {
        TRY(store_temp_new(s->env, &s->temp, err));
    }
    if (runs->n == runs->cap) {
        int32_t cap = runs->cap * 2 + 8;
        struct row_run *grown = env_realloc(s->env, runs->items, (size_t)cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        runs->items = grown;
        runs->cap = cap;
    }
    struct row_run *run = &runs->items[runs->n];
    run->start = store_temp_bytes(s->temp);
    TRY(put_blocks(s, batch, order, err));
    run->end = store_temp_bytes(s->temp);
    runs->n++;
done:
    return code;
}

/* ---- merging ---- */

static void drop_block(run_cursor *c) {
    batch_release(&c->block);
    row_order_release(&c->order);
    memset(&c->order, 0, sizeof c->order);
    c->at = 0;
    c->shown = 0;
}

static tarn_code read_block(row_spill *s, run_cursor *c, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder b;
    int64_t len;
    memset(&b, 0, sizeof b);
    drop_block(c);
    TRY(store_temp_read(s->temp, c->next, &len, sizeof len, err));
    if (len < 0 || len > c->end - c->next - (int64_t)sizeof len) {
        code = err_set(err, TARN_CORRUPT, "a block of sorted rows was not as written");
        goto done;
    }
    buf_reset(&s->bytes);
    TRY(buf_reserve(&s->bytes, (size_t)len, err));
    TRY(store_temp_read(s->temp, c->next + (int64_t)sizeof len, s->bytes.data, (size_t)len, err));
    TRY(builder_init(&b, s->env, s->root, err));
    TRY(builder_load(&b, str_make(s->bytes.data, (size_t)len), err));
    TRY(builder_finish_batch(&b, &c->block, err));
    TRY(row_order_make(s->sorter, s->env, &c->block, &c->order, err));
    c->shown = c->order.n;
    c->next += (int64_t)sizeof len + len;
done:
    builder_release(&b);
    return code;
}

static bool has_more(const run_cursor *c) {
    return c->shown < c->order.n || c->next < c->end;
}

/* Rows that wait in every cursor that has any left. */
static tarn_code fill_cursors(row_merge *m, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < m->n; i++) {
        run_cursor *c = &m->cursors[i];
        if (c->at < c->shown) {
            continue;
        }
        if (c->shown < c->order.n) {
            int64_t more = rows_a_block(m->spill, &c->block);
            c->shown = c->order.n - c->shown < more ? c->order.n : c->shown + more;
        } else if (c->next < c->end) {
            TRY(read_block(m->spill, c, err));
        } else {
            drop_block(c);
        }
    }
done:
    return code;
}

/* The cursor whose last row bounds what is known of all; -1: all is there. Of equal ones the first,
 * so that what came first goes first. */
static int32_t bounding(const row_merge *m) {
    int32_t found = -1;
    tarn_str least = STR_NULL;
    for (int32_t i = 0; i < m->n; i++) {
        const run_cursor *c = &m->cursors[i];
        if (!has_more(c)) {
            continue;
        }
        tarn_str last = row_order_key(&c->order, c->shown - 1);
        if (found < 0 || str_cmp(last, least) < 0) {
            found = i;
            least = last;
        }
    }
    return found;
}

/* The first rank that waits and lies behind key, or, where with_equal is not, is not before it. */
static int64_t rank_behind(const run_cursor *c, tarn_str key, bool with_equal) {
    int64_t low = c->at;
    int64_t high = c->shown;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = str_cmp(row_order_key(&c->order, middle), key);
        if (order < 0 || (order == 0 && with_equal)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

tarn_code row_merge_next(row_merge *m, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder b;
    memset(&b, 0, sizeof b);
    TRY(fill_cursors(m, err));
    TRY(builder_init(&b, m->spill->env, m->spill->root, err));
    int32_t bound = bounding(m);
    tarn_str key =
        bound >= 0 ? row_order_key(&m->cursors[bound].order, m->cursors[bound].shown - 1) : STR("");
    for (int32_t i = 0; i < m->n; i++) {
        run_cursor *c = &m->cursors[i];
        int64_t to = bound >= 0 ? rank_behind(c, key, i <= bound) : c->shown;
        if (to > c->at) {
            tarn_view rows;
            view_array(&c->block.array, c->block.type, &rows);
            TRY(builder_gather(&b, &rows, c->order.rows + c->at, to - c->at, err));
            c->at = to;
        }
    }
    TRY(builder_finish_batch(&b, out, err));
done:
    builder_release(&b);
    return code;
}

void row_merge_free(row_merge *m) {
    if (m == NULL) {
        return;
    }
    for (int32_t i = 0; i < m->n; i++) {
        drop_block(&m->cursors[i]);
    }
    env_free(m->spill->env, m);
}

static tarn_code open_some(row_spill *s, const struct row_run *runs, int32_t n, row_merge **out,
                           tarn_error *err) {
    row_merge *m = env_calloc(s->env, 1, sizeof *m);
    if (m == NULL) {
        return err_nomem(err);
    }
    m->spill = s;
    m->n = n;
    for (int32_t i = 0; i < n; i++) {
        m->cursors[i].next = runs[i].start;
        m->cursors[i].end = runs[i].end;
    }
    *out = m;
    return TARN_OK;
}

/* Some runs as one, written behind all others. */
static tarn_code join_runs(row_spill *s, const struct row_run *runs, int32_t n, struct row_run *out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    row_merge *m = NULL;
    struct row_run joined = {.start = store_temp_bytes(s->temp)};
    tarn_batch batch;
    row_order order;
    int64_t rows;
    memset(&batch, 0, sizeof batch);
    memset(&order, 0, sizeof order);
    TRY(open_some(s, runs, n, &m, err));
    do {
        row_order_release(&order);
        batch_release(&batch);
        TRY(row_merge_next(m, &batch, err));
        rows = batch_rows(&batch);
        TRY(row_order_make(s->sorter, s->env, &batch, &order, err));
        TRY(put_blocks(s, &batch, &order, err));
    } while (rows > 0);
    joined.end = store_temp_bytes(s->temp);
    *out = joined;
done:
    row_order_release(&order);
    batch_release(&batch);
    row_merge_free(m);
    return code;
}

tarn_code row_merge_open(row_spill *s, row_runs *runs, tarn_batch *tail, row_merge **out,
                         tarn_error *err) {
    tarn_code code = TARN_OK;
    row_merge *m = NULL;
    row_order order;
    memset(&order, 0, sizeof order);
    while (runs->n > RUNS_MERGED) {
        int32_t n = 0;
        for (int32_t i = 0; i < runs->n; i += RUNS_MERGED) {
            int32_t some = runs->n - i < RUNS_MERGED ? runs->n - i : RUNS_MERGED;
            TRY(join_runs(s, &runs->items[i], some, &runs->items[n], err));
            n++;
        }
        runs->n = n;
    }
    TRY(open_some(s, runs->items, runs->n, &m, err));
    if (batch_rows(tail) > 0) {
        TRY(row_order_make(s->sorter, s->env, tail, &order, err));
        run_cursor *c = &m->cursors[m->n++];
        batch_move(&c->block, tail);
        c->order = order;
        memset(&order, 0, sizeof order);
    }
    *out = m;
    m = NULL;
done:
    row_order_release(&order);
    row_merge_free(m);
    return code;
}
