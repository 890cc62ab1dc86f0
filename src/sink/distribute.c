/* sink/distribute.c - see distribute.h. */
#include "sink/distribute.h"

#include "write/partition/partition.h"

#define SAMPLE_ROWS 10000 /* of the first batch, for ranges */

typedef enum distribution { BY_TURNS, BY_PARTITION, BY_RANGE, BY_KEY } distribution;

struct distributor {
    tarn_env *env;
    tarn_arena arena;
    const tarn_metadata *metadata;
    const sink_keys *keys;
    distribution mode;
    int32_t n_tasks;
    tarn_partitioner *partitioner;
    key_rows key_bytes;
    const tarn_sort_field *sort;
    tarn_value *bounds; /* rising in the sort's order; task i takes what is not above bounds[i] */
    int32_t n_bounds;
    bool has_bounds;
    task_rows *lists;
    int32_t *task_of; /* row -> task */
    int32_t *rows;    /* the lists' memory */
    size_t cap;
};

static tarn_code read_mode(distributor *d, tarn_str mode, tarn_error *err) {
    bool asked = mode.len > 0;
    if (!asked) {
        mode = properties_str(&d->metadata->properties, "write.distribution-mode", "none");
    }
    bool range = str_is(mode, "range");
    if (!range && !str_is(mode, "hash") && !str_is(mode, "none")) {
        return err_set(err, TARN_INVALID,
                       "a distribution is \"none\", \"hash\" or \"range\", not \"%.*s\"",
                       STR_ARG(mode));
    }
    if (d->keys->kind != DELETE_NONE) {
        if (range && asked) {
            return err_set(err, TARN_INVALID,
                           "changes by key are distributed by key; \"range\" would part rows of "
                           "one key");
        }
        d->mode = BY_KEY;
        return TARN_OK;
    }
    const tarn_sort_order *order = metadata_sort_order(d->metadata);
    bool sorted = order != NULL && order->n_fields > 0 &&
                  order->fields[0].transform.kind != TRANSFORM_BUCKET &&
                  order->fields[0].transform.kind < TRANSFORM_VOID;
    bool partitioned = metadata_spec(d->metadata)->n_fields > 0;
    d->mode = BY_TURNS;
    if (range && sorted) {
        d->mode = BY_RANGE;
        d->sort = &order->fields[0];
    } else if (!str_is(mode, "none") && partitioned) {
        d->mode = BY_PARTITION;
    }
    return TARN_OK;
}

tarn_code distributor_new(tarn_env *env, const tarn_metadata *m, tarn_str mode,
                          const sink_keys *keys, int32_t n_tasks, distributor **out,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    distributor *d = env_calloc(env, 1, sizeof *d);
    if (d == NULL) {
        return err_nomem(err);
    }
    d->env = env;
    d->metadata = m;
    d->keys = keys;
    d->n_tasks = n_tasks;
    arena_init(&d->arena, env);
    key_rows_init(&d->key_bytes, env);
    TRY(read_mode(d, mode, err));
    if (d->mode == BY_PARTITION) {
        const tarn_type *type;
        TRY(spec_partition_type(&d->arena, metadata_spec(m), m, &type, err));
        TRY(partitioner_new(env, metadata_schema(m)->root, metadata_spec(m), type, &d->partitioner,
                            err));
    }
    d->lists = ARENA_ARRAY(&d->arena, task_rows, (size_t)n_tasks);
    if (d->lists == NULL) {
        code = err_nomem(err);
        goto done;
    }
    *out = d;
    d = NULL;
done:
    distributor_free(d);
    return code;
}

bool distributor_is_whole(const distributor *d) {
    return d->mode == BY_TURNS || d->n_tasks == 1;
}

static tarn_code route_keys(distributor *d, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = key_encode(&d->key_bytes, batch, d->keys->ids, d->keys->n_ids, err);
    for (int64_t row = 0; code == TARN_OK && row < batch_rows(batch); row++) {
        d->task_of[row] = keys_task(key_at(&d->key_bytes, row), d->n_tasks);
    }
    return code;
}

static tarn_code route_partitions(distributor *d, const tarn_batch *batch, tarn_error *err) {
    const partition_group *groups;
    size_t n;
    tarn_code code = partitioner_split(d->partitioner, batch, &groups, &n, err);
    for (size_t g = 0; code == TARN_OK && g < n; g++) {
        int32_t task = (int32_t)(groups[g].key % d->n_tasks);
        for (int64_t i = 0; i < groups[g].n_rows; i++) {
            d->task_of[groups[g].rows[i]] = task;
        }
    }
    return code;
}

/* ---- ranges ---- */

static int compare_sorted(const tarn_sort_field *sort, const tarn_value *a, const tarn_value *b) {
    if (a->is_null || b->is_null) {
        int nulls = (b->is_null ? 1 : 0) - (a->is_null ? 1 : 0); /* nulls first: null < value */
        return sort->nulls_last ? -nulls : nulls;
    }
    int order = value_cmp(a, b);
    return sort->descending ? -order : order;
}

static void sift(const tarn_sort_field *sort, tarn_value *v, size_t at, size_t n) {
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && compare_sorted(sort, &v[child], &v[child + 1]) < 0) {
            child++;
        }
        if (compare_sorted(sort, &v[at], &v[child]) >= 0) {
            return;
        }
        tarn_value t = v[at];
        v[at] = v[child];
        v[child] = t;
        at = child;
    }
}

static void sort_values(const tarn_sort_field *sort, tarn_value *v, size_t n) {
    for (size_t i = n / 2; i-- > 0;) {
        sift(sort, v, i, n);
    }
    for (size_t end = n; end-- > 1;) {
        tarn_value t = v[0];
        v[0] = v[end];
        v[end] = t;
        sift(sort, v, 0, end);
    }
}

static tarn_code find_bounds(distributor *d, const tarn_view *column, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t step = (size_t)column->length / SAMPLE_ROWS + 1;
    size_t n = ((size_t)column->length + step - 1) / step;
    tarn_value *sample = env_calloc(d->env, n + 1, sizeof *sample);
    d->bounds = ARENA_ARRAY(&d->arena, tarn_value, (size_t)d->n_tasks);
    if (sample == NULL || d->bounds == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        view_value(column, (int64_t)(i * step), &sample[i]);
    }
    sort_values(d->sort, sample, n);
    for (int32_t i = 1; i < d->n_tasks; i++) {
        TRY(value_copy(&d->arena, &sample[n * (size_t)i / (size_t)d->n_tasks], &d->bounds[i - 1],
                       err));
    }
    d->n_bounds = d->n_tasks - 1;
    d->has_bounds = true;
done:
    env_free(d->env, sample);
    return code;
}

static int32_t range_of(const distributor *d, const tarn_value *v) {
    int32_t low = 0;
    int32_t high = d->n_bounds;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (compare_sorted(d->sort, &d->bounds[middle], v) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static tarn_code route_ranges(distributor *d, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_path_view column;
    memset(&column, 0, sizeof column);
    TRY(path_view_init(&column, d->env, batch, d->sort->source_id, err));
    if (!d->has_bounds) {
        TRY(find_bounds(d, &column.view, err));
    }
    for (int64_t row = 0; row < batch_rows(batch); row++) {
        tarn_value v;
        view_value(&column.view, row, &v);
        d->task_of[row] = range_of(d, &v);
    }
done:
    path_view_release(&column);
    return code;
}

/* ---- all of them ---- */

static tarn_code reserve_rows(distributor *d, size_t n, tarn_error *err) {
    if (n <= d->cap) {
        return TARN_OK;
    }
    int32_t *task_of = env_realloc(d->env, d->task_of, n * sizeof *task_of);
    if (task_of == NULL) {
        return err_nomem(err);
    }
    d->task_of = task_of;
    int32_t *rows = env_realloc(d->env, d->rows, n * sizeof *rows);
    if (rows == NULL) {
        return err_nomem(err);
    }
    d->rows = rows;
    d->cap = n;
    return TARN_OK;
}

static void fill_lists(distributor *d, int64_t rows) {
    for (int32_t i = 0; i < d->n_tasks; i++) {
        d->lists[i].n = 0;
    }
    for (int64_t row = 0; row < rows; row++) {
        d->lists[d->task_of[row]].n++;
    }
    int32_t *at = d->rows;
    for (int32_t i = 0; i < d->n_tasks; i++) {
        d->lists[i].rows = at;
        at += d->lists[i].n;
        d->lists[i].n = 0;
    }
    for (int64_t row = 0; row < rows; row++) {
        task_rows *list = &d->lists[d->task_of[row]];
        list->rows[list->n++] = (int32_t)row;
    }
}

tarn_code distributor_route(distributor *d, const tarn_batch *batch, const task_rows **out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t rows = batch_rows(batch);
    TRY(reserve_rows(d, (size_t)rows + 1, err));
    if (d->mode == BY_KEY) {
        TRY(route_keys(d, batch, err));
    } else if (d->mode == BY_PARTITION) {
        TRY(route_partitions(d, batch, err));
    } else if (d->mode == BY_RANGE) {
        TRY(route_ranges(d, batch, err));
    } else {
        memset(d->task_of, 0, (size_t)rows * sizeof *d->task_of);
    }
    fill_lists(d, rows);
    *out = d->lists;
done:
    return code;
}

void distributor_free(distributor *d) {
    if (d == NULL) {
        return;
    }
    partitioner_free(d->partitioner);
    key_rows_release(&d->key_bytes);
    env_free(d->env, d->task_of);
    env_free(d->env, d->rows);
    arena_release(&d->arena);
    env_free(d->env, d);
}
