/* sink/delta.c - see delta.h. A batch is worked on at once: its keys are looked up together, its
 * new rows are written together, and then each row's delete is decided in order, over the places
 * that the batch's keys have by then. */
#include "sink/delta.h"

#include "sink/key_map.h"
#include "table/key_rows.h"

#define MEMORY_BYTES (128u << 20)
#define RUN          128 /* positions that are added to a bitmap at once */

typedef struct delta_target { /* a data file of which rows may be deleted */
    const tarn_file *file;
    old_file *old; /* NULL: written by this task since the last checkpoint */
    tarn_positions *positions;
    int64_t run[RUN];
    int32_t n_run;
} delta_target;

struct delta_writer {
    tarn_env *env;
    tarn_arena arena; /* for the writer's life: targets */
    delta_options options;
    data_writer *data;
    data_writer **equality; /* one a key spec */
    key_map map;
    key_targets face;
    tarn_map by_path; /* target numbers */
    delta_target **targets;
    int32_t n_targets, targets_cap;
    int32_t *own; /* data_writer's file number -> target */
    int32_t n_own;
    bool has_positions;
    /* of one batch */
    key_rows keys;
    size_t cap;
    uint32_t *slot_of; /* row -> distinct key */
    tarn_str *distinct;
    key_place *places;
    uint32_t *table;
    size_t n_table;
    int32_t *inserts;
    row_location *located;
    int32_t *by_key; /* rows whose key columns go into an equality delete */
    int64_t n_by_key;
};

/* ---- targets ---- */

static tarn_code add_target(delta_writer *w, const tarn_file *file, old_file *old, int32_t *out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    if (w->n_targets == w->targets_cap) {
        int32_t cap = w->targets_cap * 2 + 64;
        delta_target **grown = env_realloc(w->env, w->targets, (size_t)cap * sizeof(void *));
        if (grown == NULL) {
            return err_nomem(err);
        }
        w->targets = grown;
        w->targets_cap = cap;
    }
    delta_target *t = ARENA_NEW(&w->arena, delta_target);
    if (t == NULL) {
        return err_nomem(err);
    }
    t->old = old;
    t->file = file;
    if (old == NULL) { /* the writer's own entry lives less long */
        tarn_file *copy = ARENA_NEW(&w->arena, tarn_file);
        if (copy == NULL) {
            return err_nomem(err);
        }
        TRY(file_copy(&w->arena, file, copy, err));
        t->file = copy;
    }
    map_entry *e = map_put(&w->by_path, t->file->path, NULL);
    if (e == NULL) {
        return err_nomem(err);
    }
    e->value.i64 = w->n_targets;
    *out = w->n_targets;
    w->targets[w->n_targets++] = t;
done:
    return code;
}

static tarn_str target_path(void *ctx, int32_t target) {
    const delta_writer *w = ctx;
    return w->targets[target]->file->path;
}

static tarn_code find_target(void *ctx, tarn_str path, int32_t *out, tarn_error *err) {
    delta_writer *w = ctx;
    const map_entry *known = map_find(&w->by_path, path);
    if (known != NULL) {
        *out = (int32_t)known->value.i64;
        return TARN_OK;
    }
    old_file *old = w->options.old != NULL ? old_files_find(w->options.old, path) : NULL;
    if (old == NULL) {
        *out = KEY_ABSENT; /* the file is gone, and what it held of the key with it */
        return TARN_OK;
    }
    return add_target(w, old->file, old, out, err);
}

static tarn_code own_target(delta_writer *w, int32_t number, int32_t *out, tarn_error *err) {
    if (number >= w->n_own) {
        int32_t cap = number * 2 + 16;
        int32_t *grown = env_realloc(w->env, w->own, (size_t)cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        for (int32_t i = w->n_own; i < cap; i++) {
            grown[i] = -1;
        }
        w->own = grown;
        w->n_own = cap;
    }
    tarn_code code = TARN_OK;
    if (w->own[number] < 0) {
        code = add_target(w, data_writer_file(w->data, number), NULL, &w->own[number], err);
    }
    *out = w->own[number];
    return code;
}

static tarn_code flush_run(delta_writer *w, delta_target *t, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (t->positions == NULL) {
        TRY(positions_new(w->env, &t->positions, err));
    }
    TRY(positions_add(t->positions, t->run, (size_t)t->n_run, err));
    t->n_run = 0;
done:
    return code;
}

static tarn_code delete_at(delta_writer *w, key_place place, tarn_error *err) {
    delta_target *t = w->targets[place.target];
    w->has_positions = true;
    t->run[t->n_run++] = place.position;
    return t->n_run == RUN ? flush_run(w, t, err) : TARN_OK;
}

/* Every change of a key takes away what the table held of it, by whatever kind of row. */
static tarn_code delete_older(void *ctx, key_place place, tarn_error *err) {
    return delete_at(ctx, place, err);
}

/* ---- opening ---- */

static tarn_code open_equality(delta_writer *w, const delta_options *o, size_t memory,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    w->equality = ARENA_ARRAY(&w->arena, data_writer *, (size_t)o->n_key_specs + 1);
    if (w->equality == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < o->n_key_specs; i++) {
        data_writer_options options;
        memset(&options, 0, sizeof options);
        options.metadata = o->metadata;
        options.spec = o->key_specs[i];
        options.task_id = o->task_id;
        options.memory_bytes = memory / (size_t)o->n_key_specs;
        options.root = o->key_type;
        options.equality_ids = o->key_ids;
        options.n_equality_ids = o->n_key_ids;
        TRY(data_writer_new(w->env, o->store, &options, &w->equality[i], err));
    }
done:
    return code;
}

static tarn_code reserve_rows(delta_writer *w, size_t n, tarn_error *err);

/* Rows of a sorted table, at the end of the checkpoint: their keys have a place now. */
static tarn_code place_rows(void *ctx, const tarn_batch *rows, int32_t file, int64_t position,
                            tarn_error *err) {
    delta_writer *w = ctx;
    tarn_code code = TARN_OK;
    size_t n = (size_t)batch_rows(rows);
    int32_t target;
    TRY(own_target(w, file, &target, err));
    TRY(reserve_rows(w, n, err));
    TRY(key_encode(&w->keys, rows, w->options.key_ids, w->options.n_key_ids, err));
    for (size_t i = 0; i < n; i++) {
        w->distinct[i] = key_at(&w->keys, (int64_t)i);
        w->places[i] = (key_place){target, position + (int64_t)i};
    }
    TRY(key_map_put(&w->map, &w->face, w->distinct, w->places, n, err));
done:
    return code;
}

tarn_code delta_writer_new(tarn_env *env, const delta_options *options, delta_writer **out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    data_writer_options data;
    size_t memory = options->memory_bytes != 0 ? options->memory_bytes : MEMORY_BYTES;
    delta_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    w->options = *options;
    arena_init(&w->arena, env);
    map_init(&w->by_path, &w->arena);
    key_rows_init(&w->keys, env);
    bool by_key = options->kind == DELETE_EQUALITY;
    key_map_init(&w->map, env, options->index, options->scratch_dir, memory / 4);
    w->face = (key_targets){w, target_path, find_target, delete_older};
    memset(&data, 0, sizeof data);
    data.metadata = options->metadata;
    data.task_id = options->task_id;
    data.memory_bytes = by_key ? memory / 2 : memory;
    data.keep_order = options->kind != DELETE_NONE;
    data.hold = data.keep_order;
    data.placed = options->index != NULL ? place_rows : NULL;
    data.placed_ctx = w;
    TRY(data_writer_new(env, options->store, &data, &w->data, err));
    if (by_key) {
        TRY(open_equality(w, options, memory / 4, err));
    }
    *out = w;
    w = NULL;
done:
    delta_writer_free(w);
    return code;
}

/* ---- a batch ---- */

static tarn_code reserve_rows(delta_writer *w, size_t n, tarn_error *err) {
    if (n <= w->cap) {
        return TARN_OK;
    }
    size_t cap = n < 1024 ? 1024 : n;
    size_t table = 1;
    while (table < 2 * cap) {
        table *= 2;
    }
#define GROW(array, count)                                                                         \
    do {                                                                                           \
        void *grown_ = env_realloc(w->env, w->array, (count) * sizeof *w->array);                  \
        if (grown_ == NULL) {                                                                      \
            return err_nomem(err);                                                                 \
        }                                                                                          \
        w->array = grown_;                                                                         \
    } while (0)
    GROW(slot_of, cap);
    GROW(distinct, cap);
    GROW(places, cap);
    GROW(inserts, cap);
    GROW(located, cap);
    GROW(by_key, cap);
    GROW(table, table);
#undef GROW
    w->n_table = table;
    w->cap = cap;
    return TARN_OK;
}

/* The distinct keys of the batch, in order of first sight. */
static size_t find_distinct(delta_writer *w, size_t n) {
    size_t n_distinct = 0;
    memset(w->table, 0, w->n_table * sizeof *w->table);
    for (size_t row = 0; row < n; row++) {
        tarn_str key = key_at(&w->keys, (int64_t)row);
        size_t at = (size_t)str_hash(key) & (w->n_table - 1);
        while (w->table[at] != 0 && !str_eq(w->distinct[w->table[at] - 1], key)) {
            at = (at + 1) & (w->n_table - 1);
        }
        if (w->table[at] == 0) {
            w->distinct[n_distinct++] = key;
            w->table[at] = (uint32_t)n_distinct;
        }
        w->slot_of[row] = w->table[at] - 1;
    }
    return n_distinct;
}

static bool is_new_row(uint8_t kind) {
    return kind == TARN_ROW_INSERT || kind == TARN_ROW_UPDATE_AFTER;
}

static uint8_t kind_at(const uint8_t *kinds, size_t row) {
    return kinds != NULL ? kinds[row] : (uint8_t)TARN_ROW_INSERT;
}

static tarn_code write_new_rows(delta_writer *w, const tarn_batch *batch, const uint8_t *kinds,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch some;
    size_t n = (size_t)batch_rows(batch);
    int64_t n_new = 0;
    memset(&some, 0, sizeof some);
    for (size_t row = 0; row < n; row++) {
        w->inserts[n_new] = (int32_t)row;
        n_new += is_new_row(kind_at(kinds, row)) ? 1 : 0;
    }
    if (n_new == (int64_t)n) {
        return data_writer_locate(w->data, batch, w->located, err);
    }
    if (n_new > 0) {
        TRY(batch_gather(w->env, batch, w->inserts, n_new, &some, err));
        TRY(data_writer_locate(w->data, &some, w->located, err));
    }
done:
    batch_release(&some);
    return code;
}

/* Written since the last checkpoint, or known where it lies. */
static bool has_row(const key_place *place) {
    return place->target >= 0 || place->target == KEY_HELD;
}

/* Takes away the row that a key has, whatever it is known by. Older rows of a key are taken by an
 * equality delete once a checkpoint. */
static tarn_code delete_key(delta_writer *w, key_place *place, size_t row, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool by_key = w->options.kind == DELETE_EQUALITY;
    if (has_row(place)) {
        TRY(place->target == KEY_HELD ? data_writer_drop(w->data, place->position, err)
                                      : delete_at(w, *place, err));
        /* In an upsert stream the first row of a key came with its equality delete. */
        place->target = by_key && w->options.upsert ? KEY_DELETED : KEY_ABSENT;
    } else if (by_key && place->target == KEY_ABSENT) {
        w->by_key[w->n_by_key++] = (int32_t)row;
        place->target = KEY_DELETED;
    }
done:
    return code;
}

/* In an upsert stream an insert takes the place of its key's row, and an update's new row always
 * does: its old one may not have come. An equality delete is not spent on a plain insert. */
static bool replaces(const delta_writer *w, uint8_t kind, const key_place *place) {
    return kind != TARN_ROW_INSERT || w->options.upsert || w->options.kind != DELETE_EQUALITY ||
           has_row(place);
}

static tarn_code apply_rows(delta_writer *w, const uint8_t *kinds, size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t next = 0; /* of located */
    w->n_by_key = 0;
    for (size_t row = 0; row < n; row++) {
        uint8_t kind = kind_at(kinds, row);
        key_place *place = &w->places[w->slot_of[row]];
        if (replaces(w, kind, place)) {
            TRY(delete_key(w, place, row, err));
        }
        if (is_new_row(kind)) {
            const row_location *at = &w->located[next++];
            place->target = KEY_HELD;
            if (at->file != DATA_HELD) {
                TRY(own_target(w, at->file, &place->target, err));
            }
            place->position = at->position;
        }
    }
done:
    return code;
}

/* The key columns of some rows, as rows of an equality delete file. */
static tarn_code gather_keys(delta_writer *w, const tarn_batch *batch, tarn_batch *out,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *type = w->options.key_type;
    struct ArrowArray *children = env_calloc(w->env, (size_t)type->n_fields, sizeof *children);
    if (children == NULL) {
        return err_nomem(err);
    }
    tarn_builder b;
    memset(&b, 0, sizeof b);
    int32_t done_fields = 0;
    for (; done_fields < type->n_fields; done_fields++) {
        tarn_path_view column;
        memset(&column, 0, sizeof column);
        const tarn_field *field = &type->fields[done_fields];
        TRY(path_view_init(&column, w->env, batch, field->id, err));
        code = builder_init(&b, w->env, field->type, err);
        if (code == TARN_OK) {
            code = builder_gather(&b, &column.view, w->by_key, w->n_by_key, err);
        }
        path_view_release(&column);
        if (code == TARN_OK) {
            code = builder_finish(&b, &children[done_fields], err);
        }
        builder_release(&b);
        memset(&b, 0, sizeof b);
        if (code != TARN_OK) {
            goto done;
        }
    }
    code = batch_assemble(w->env, type, w->n_by_key, children, out, err);
    done_fields = 0; /* moved, or released by it */
done:
    for (int32_t i = 0; i < done_fields; i++) {
        if (children[i].release != NULL) {
            children[i].release(&children[i]);
        }
    }
    env_free(w->env, children);
    return code;
}

static tarn_code write_key_deletes(delta_writer *w, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch keys;
    memset(&keys, 0, sizeof keys);
    if (w->n_by_key == 0) {
        return TARN_OK;
    }
    TRY(gather_keys(w, batch, &keys, err));
    for (int32_t i = 0; i < w->options.n_key_specs; i++) {
        TRY(data_writer_write(w->equality[i], &keys, err));
    }
done:
    batch_release(&keys);
    return code;
}

tarn_code delta_writer_write(delta_writer *w, const tarn_batch *batch, const uint8_t *kinds,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = (size_t)batch_rows(batch);
    if (w->options.kind == DELETE_NONE) {
        return data_writer_write(w->data, batch, err);
    }
    TRY(reserve_rows(w, n, err));
    TRY(key_encode(&w->keys, batch, w->options.key_ids, w->options.n_key_ids, err));
    size_t n_distinct = find_distinct(w, n);
    TRY(key_map_find(&w->map, &w->face, w->distinct, n_distinct, w->places, err));
    TRY(write_new_rows(w, batch, kinds, err));
    TRY(apply_rows(w, kinds, n, err));
    TRY(write_key_deletes(w, batch, err));
    TRY(key_map_put(&w->map, &w->face, w->distinct, w->places, n_distinct, err));
done:
    return code;
}

/* ---- the end of a checkpoint ---- */

static tarn_code add_equality(tarn_arena *arena, write_result *out, const write_result *keys,
                              tarn_error *err) {
    size_t have = (size_t)out->n_deletes;
    tarn_file *deletes = ARENA_ARRAY(arena, tarn_file, have + (size_t)keys->n_deletes + 1);
    if (deletes == NULL) {
        return err_nomem(err);
    }
    if (have > 0) {
        memcpy(deletes, out->deletes, have * sizeof *deletes);
    }
    memcpy(deletes + have, keys->deletes, (size_t)keys->n_deletes * sizeof *deletes);
    out->deletes = deletes;
    out->n_deletes += keys->n_deletes;
    out->deleted_rows += keys->deleted_rows;
    return TARN_OK;
}

tarn_code delta_writer_close(delta_writer *w, tarn_arena *arena, write_result *out,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    write_result result;
    memset(&result, 0, sizeof result);
    TRY(data_writer_close(w->data, arena, &result, err));
    for (int32_t i = 0; w->equality != NULL && i < w->options.n_key_specs; i++) {
        write_result keys;
        memset(&keys, 0, sizeof keys);
        TRY(data_writer_close(w->equality[i], arena, &keys, err));
        code = add_equality(arena, &result, &keys, err);
        if (code != TARN_OK) {
            write_result_remove(w->options.store, &keys);
            goto done;
        }
    }
    *out = result;
done:
    if (code != TARN_OK) {
        write_result_remove(w->options.store, &result);
    }
    return code;
}

bool delta_writer_has_deletes(const delta_writer *w) {
    return w->has_positions;
}

/* What is left of a file's rows before this checkpoint's deletes is the reader's business; a vector
 * must hold all of them. */
static tarn_code merge_before(delta_writer *w, old_file *old, delete_writer *to, tarn_error *err) {
    tarn_code code = TARN_OK;
    const old_files *all = w->options.old;
    const tarn_positions *before;
    tarn_positions *made = NULL;
    const tarn_entry *const *replaced = NULL;
    int32_t n;
    if (old == NULL || old->merged == all->turn || w->options.kind != DELETE_VECTOR) {
        return TARN_OK;
    }
    TRY(old_file_deleted(all, old, &before, &made, &replaced, &n, err));
    if (before != NULL) {
        TRY(delete_writer_merge(to, old->file, before, replaced, n, err));
    }
    old->merged = all->turn;
done:
    positions_free(made);
    return code;
}

tarn_code delta_writer_give(delta_writer *w, delete_writer *to, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t *list = NULL;
    for (int32_t i = 0; i < w->n_targets; i++) {
        delta_target *t = w->targets[i];
        if (t->positions == NULL && t->n_run == 0) {
            continue;
        }
        TRY(flush_run(w, t, err));
        TRY(merge_before(w, t->old, to, err));
        size_t n = (size_t)positions_count(t->positions);
        list = env_alloc(w->env, n * sizeof *list);
        if (list == NULL) {
            code = err_nomem(err);
            goto done;
        }
        positions_list(t->positions, list);
        TRY(delete_writer_add(to, t->file, list, n, err));
        env_free(w->env, list);
        list = NULL;
        positions_free(t->positions);
        t->positions = NULL;
    }
done:
    env_free(w->env, list);
    return code;
}

static int32_t count_files(const delta_writer *w, int32_t (*count)(const data_writer *)) {
    int32_t n = count(w->data);
    for (int32_t i = 0; w->equality != NULL && i < w->options.n_key_specs; i++) {
        n += count(w->equality[i]);
    }
    return n;
}

int32_t delta_writer_open_files(const delta_writer *w) {
    return count_files(w, data_writer_open_files);
}

int32_t delta_writer_finished_files(const delta_writer *w) {
    return count_files(w, data_writer_finished_files);
}

void delta_writer_free(delta_writer *w) {
    if (w == NULL) {
        return;
    }
    for (int32_t i = 0; w->equality != NULL && i < w->options.n_key_specs; i++) {
        data_writer_free(w->equality[i]);
    }
    for (int32_t i = 0; i < w->n_targets; i++) {
        positions_free(w->targets[i]->positions);
    }
    data_writer_free(w->data);
    key_map_release(&w->map);
    key_rows_release(&w->keys);
    env_free(w->env, w->targets);
    env_free(w->env, w->own);
    env_free(w->env, w->slot_of);
    env_free(w->env, w->distinct);
    env_free(w->env, w->places);
    env_free(w->env, w->inserts);
    env_free(w->env, w->located);
    env_free(w->env, w->by_key);
    env_free(w->env, w->table);
    arena_release(&w->arena);
    env_free(w->env, w);
}
