/* read/scan.c - file tasks become batches, in plan order, in parallel, in bounded memory.
 *
 * Tasks are cut into units: a file, or byte ranges of a large one (each row group begins in exactly
 * one). A window of units is worked on at once. Each unit has a front of batches that the consumer
 * takes, and a back that a pool task fills with a chunk at a time; when the front is empty the
 * consumer waits for the task, swaps, and sends it off again. So no lock is needed: a batch is
 * touched by one thread at a time, and what waits is at most window x 2 x CHUNK_BYTES.
 *
 * Invariants: 1 a unit's task is waited for before its back is looked at; 2 units are consumed in
 * order; 3 after a failure no row is given any more, so that a reader who goes on cannot miss some.
 */
#include "read/read_int.h"

#define UNIT_BYTES    (INT64_C(32) << 20) /* of a file */
#define CHUNK_BYTES   (INT64_C(8) << 20)
#define CHUNK_BATCHES 64

typedef struct batch_queue {
    tarn_batch items[CHUNK_BATCHES];
    int32_t first, count;
} batch_queue;

typedef struct scan_unit {
    struct tarn_scan *scan;
    const scan_task *task;
    int64_t start, end;
    file_scan *file;
    batch_queue front, back;
    pool_task fill;
    bool filling;          /* fill was submitted and not waited for */
    bool finished;         /* the file has no more rows; valid when not filling */
    int32_t chunk_batches; /* of the next fill: small at first, so that a limit costs little */
    scan_counters counters;
} scan_unit;

struct tarn_scan {
    tarn_env *env;
    tarn_arena arena;
    tarn_plan *plan;
    int64_t next_task;
    int64_t next_start; /* within that task's file */
    scan_unit **window; /* ring of units at work, oldest first */
    int32_t window_cap, n_window;
    int64_t rows_left; /* of the limit; -1: none */
    tarn_code failed;  /* OK, or what the scan ended with */
    scan_counters counters;
};

static tarn_code open_unit(scan_unit *u, tarn_error *err) {
    tarn_plan *plan = u->scan->plan;
    file_scan_options options;
    memset(&options, 0, sizeof options);
    options.wanted = plan->output;
    options.root = plan->schema->root;
    options.filter =
        u->task->residual != NULL && u->task->residual->op != EXPR_TRUE ? u->task->residual : NULL;
    options.no_prune = plan->options.no_prune;
    options.batch_rows = plan->options.batch_rows;
    options.parallel = plan->n_tasks < (int64_t)env_threads(u->scan->env);
    options.start = u->start;
    options.end = u->end;
    return task_scan_open(plan, u->task, &options, &u->file, err);
}

static tarn_code fill_unit(void *ctx, tarn_error *err) {
    scan_unit *u = ctx;
    tarn_code code = TARN_OK;
    int64_t bytes = 0;
    if (u->file == NULL) {
        TRY(open_unit(u, err));
    }
    while (u->back.count < u->chunk_batches && bytes < CHUNK_BYTES) {
        tarn_batch *batch = &u->back.items[u->back.count];
        TRY(file_scan_next(u->file, batch, &u->counters, err));
        if (batch_rows(batch) == 0) {
            u->finished = true;
            file_scan_close(
                u->file); /* its memory is not needed while the unit waits to be consumed */
            u->file = NULL;
            break;
        }
        bytes += batch_bytes(batch);
        u->back.count++;
    }
done:
    return code;
}

static void submit_fill(scan_unit *u) {
    u->fill.run = fill_unit;
    u->fill.ctx = u;
    u->filling = true;
    pool_submit(u->scan->env, &u->fill);
}

static tarn_code wait_fill(scan_unit *u, tarn_error *err) {
    u->filling = false;
    return pool_wait(u->scan->env, &u->fill, err);
}

static void queue_release(batch_queue *q) {
    while (q->count > 0) {
        batch_release(&q->items[q->first++]);
        q->count--;
    }
    q->first = 0;
}

static void unit_free(scan_unit *u) {
    if (u->filling) {
        (void)wait_fill(u, NULL);
    }
    file_scan_close(u->file);
    queue_release(&u->front);
    queue_release(&u->back);
    env_free(u->scan->env, u);
}

/* Fills the window with the next units and sets them to work. */
static tarn_code advance_window(tarn_scan *scan, tarn_error *err) {
    tarn_plan *plan = scan->plan;
    while (scan->n_window < scan->window_cap && scan->next_task < plan->n_tasks) {
        scan_unit *u = env_calloc(scan->env, 1, sizeof *u);
        if (u == NULL) {
            return err_nomem(err);
        }
        u->scan = scan;
        u->task = &plan->tasks[scan->next_task];
        u->chunk_batches = scan->n_window == 0 && scan->next_task == 0 ? 1 : CHUNK_BATCHES;
        int64_t size = u->task->file.size_bytes;
        if (size > 2 * UNIT_BYTES) {
            u->start = scan->next_start;
            u->end = size - u->start > 2 * UNIT_BYTES ? u->start + UNIT_BYTES : size;
            scan->next_start = u->end;
        }
        if (u->end == size || u->end == 0) {
            scan->next_task++;
            scan->next_start = 0;
        }
        scan->window[scan->n_window++] = u;
        submit_fill(u);
    }
    return TARN_OK;
}

static void add_counters(scan_counters *to, scan_counters *from) {
    to->row_groups += from->row_groups;
    to->row_groups_skipped += from->row_groups_skipped;
    to->pages_skipped += from->pages_skipped;
    to->rows_read += from->rows_read;
    to->rows_matched += from->rows_matched;
    to->bytes_read += from->bytes_read;
    memset(from, 0, sizeof *from);
}

static void drop_first(tarn_scan *scan) {
    unit_free(scan->window[0]);
    scan->n_window--;
    memmove(scan->window, scan->window + 1, (size_t)scan->n_window * sizeof *scan->window);
}

/* Makes the first unit's front non-empty, or takes the unit out of the window. */
static tarn_code turn_over(tarn_scan *scan, scan_unit *u, tarn_error *err) {
    tarn_code code = wait_fill(u, err);
    add_counters(&scan->counters, &u->counters);
    if (code != TARN_OK) {
        return code;
    }
    queue_release(&u->front);
    u->front = u->back;
    memset(&u->back, 0, sizeof u->back);
    u->chunk_batches = u->chunk_batches * 2 > CHUNK_BATCHES ? CHUNK_BATCHES : u->chunk_batches * 2;
    if (!u->finished) {
        submit_fill(u);
    }
    return TARN_OK;
}

tarn_code scan_open(tarn_plan *plan, tarn_scan **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_scan *scan = env_calloc(plan->env, 1, sizeof *scan);
    if (scan == NULL) {
        return err_nomem(err);
    }
    scan->env = plan->env;
    scan->plan = plan;
    scan->rows_left = plan->options.limit;
    scan->counters = plan->counters;
    arena_init(&scan->arena, plan->env);
    scan->window_cap = (int32_t)env_threads(plan->env) + 1;
    scan->window = ARENA_ARRAY(&scan->arena, scan_unit *, (size_t)scan->window_cap);
    if (scan->window == NULL) {
        code = err_nomem(err);
        goto done;
    }
    *out = scan;
    scan = NULL;
done:
    scan_close(scan);
    return code;
}

static tarn_code cut_to_limit(tarn_scan *scan, tarn_batch *out, tarn_error *err) {
    if (scan->rows_left < 0) {
        return TARN_OK;
    }
    if (batch_rows(out) > scan->rows_left) {
        tarn_batch cut;
        tarn_code code = batch_slice(scan->env, out, 0, scan->rows_left, &cut, err);
        if (code != TARN_OK) {
            batch_release(out);
            return code;
        }
        batch_release(out);
        batch_move(out, &cut);
    }
    scan->rows_left -= batch_rows(out);
    return TARN_OK;
}

static tarn_code next_batch(tarn_scan *scan, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    while (scan->rows_left != 0) {
        TRY(env_check_cancel(scan->env, err));
        TRY(advance_window(scan, err));
        if (scan->n_window == 0) {
            break;
        }
        scan_unit *u = scan->window[0];
        if (u->front.count > 0) {
            batch_move(out, &u->front.items[u->front.first++]);
            u->front.count--;
            return cut_to_limit(scan, out, err);
        }
        if (u->filling) {
            TRY(turn_over(scan, u, err));
        } else {
            drop_first(scan);
        }
    }
done:
    return code;
}

tarn_code scan_next(tarn_scan *scan, tarn_batch *out, tarn_error *err) {
    memset(out, 0, sizeof *out);
    if (scan->failed != TARN_OK) {
        return err_set(err, scan->failed, "the scan had failed before");
    }
    scan->failed = next_batch(scan, out, err);
    return scan->failed;
}

const scan_counters *scan_counters_of(tarn_scan *scan) {
    return &scan->counters;
}

void scan_close(tarn_scan *scan) {
    if (scan == NULL) {
        return;
    }
    while (scan->n_window > 0) {
        drop_first(scan);
    }
    tarn_env *env = scan->env;
    arena_release(&scan->arena);
    env_free(env, scan);
}
