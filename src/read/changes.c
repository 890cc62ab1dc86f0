/* read/changes.c - commits as changes of rows.
 *
 * A commit is a list of parts: scans of a data file that give the rows which it deleted or
 * inserted. An append's parts are the files that it added. Of any other commit the plans before and
 * after it are compared: a file of one of them alone is a part, and a file of both whose row
 * deletes differ is one that gives the rows which only the others' deletes take. Where both kinds
 * of parts are there, two passes count the rows of all, so that what is on both sides cancels out;
 * then the parts are scanned once more, and what is left is given.
 * Invariant: deleting parts come before inserting ones. */
#include "read/changes.h"

#include "read/history.h"
#include "read/plan_deletes.h"
#include "read/row_bag.h"
#include "read/row_choice.h"

#define CHANGE_COLUMNS 3

typedef struct change_part {
    tarn_plan *plan;
    const scan_task *task;
    tarn_plan *other; /* its deletes take the rows that are given; NULL: all rows are */
    const scan_task *other_task;
    bool inserts;
} change_part;

typedef struct part_list {
    change_part *items;
    int64_t n, cap;
    int64_t n_inserts;
} part_list;

typedef struct commit_step {
    int64_t before, after; /* snapshots; before TARN_NO_SNAPSHOT: the empty table */
    bool append;
} commit_step;

struct changes {
    tarn_env *env;
    tarn_store *store;
    changes_options options;
    tarn_arena arena;
    const tarn_type *root, *whole; /* the table's columns; with those of changes */
    row_choice choice;
    int32_t *key_ids;
    int32_t n_key_ids;
    commit_step *steps;
    int32_t n_steps, step; /* step: the present one */

    /* of the present step */
    bool open;
    tarn_arena step_arena;
    tarn_plan *before, *after;
    part_list parts;
    bool matched; /* rows are counted in rows, keys of changed ones in keys */
    row_bag rows, keys;
    row_digester row_digests, key_digests;
    int64_t part;
    file_scan *scan;
    scan_counters counters;
};

static const tarn_type text_type = {.kind = TARN_STRING};
static const tarn_type int_type = {.kind = TARN_INT};
static const tarn_type long_type = {.kind = TARN_LONG};
static const tarn_field change_fields[CHANGE_COLUMNS] = {
    {.id = FIELD_ID_CHANGE_TYPE, .required = true, .name = {"_change_type", 12}, &text_type},
    {.id = FIELD_ID_CHANGE_ORDINAL, .required = true, .name = {"_change_ordinal", 15}, &int_type},
    {.id = FIELD_ID_COMMIT_SNAPSHOT_ID,
     .required = true,
     .name = {"_commit_snapshot_id", 19},
     &long_type},
};

/* ---- parts ---- */

static tarn_code add_part(changes *c, const change_part *part, tarn_error *err) {
    part_list *to = &c->parts;
    if (to->n == to->cap) {
        const int64_t cap = to->cap == 0 ? 64 : to->cap * 2;
        change_part *items = arena_grow(&c->step_arena, to->items, (size_t)to->cap * sizeof *items,
                                        (size_t)cap * sizeof *items);
        if (items == NULL) {
            return err_nomem(err);
        }
        to->items = items;
        to->cap = cap;
    }
    to->items[to->n++] = *part;
    to->n_inserts += part->inserts;
    return TARN_OK;
}

static bool same_delete(const tarn_entry *a, const tarn_entry *b) {
    return str_eq(a->file.path, b->file.path) && a->file.content_offset == b->file.content_offset;
}

/* Whether every delete of a is one of b's. */
static bool deletes_within(const scan_task *a, const scan_task *b) {
    for (int32_t i = 0; i < a->n_deletes; i++) {
        bool found = false;
        for (int32_t k = 0; k < b->n_deletes && !found; k++) {
            found = same_delete(a->deletes[i], b->deletes[k]);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* Whether all that one takes is taken by the other; false where that is not told by positions. */
static tarn_code covers(tarn_env *env, const row_deletes *d, const row_deletes *taken, bool *out,
                        tarn_error *err) {
    tarn_positions *both = NULL;
    tarn_code code = TARN_OK;
    *out = false;
    if (taken->n_keys > 0 || d == NULL || d->positions == NULL) {
        return TARN_OK;
    }
    TRY(positions_new(env, &both, err));
    TRY(positions_add_all(both, d->positions, err));
    TRY(positions_add_all(both, taken->positions, err));
    *out = positions_count(both) == positions_count(d->positions);
done:
    positions_free(both);
    return code;
}

/* A part of the rows of one plan that the other plan's deletes take. */
static tarn_code add_difference(changes *c, tarn_plan *plan, const scan_task *task,
                                tarn_plan *other, const scan_task *other_task, bool inserts,
                                tarn_error *err) {
    const row_deletes *own = NULL, *taken = NULL;
    const change_part part = {plan, task, other, other_task, inserts};
    bool covered = false;
    tarn_code code = TARN_OK;
    TRY(plan_deletes_of(other->deletes, other_task, false, &taken, err));
    TRY(plan_deletes_of(plan->deletes, task, false, &own, err));
    if (taken != NULL) {
        TRY(covers(c->env, own, taken, &covered, err));
    }
    if (taken != NULL && !covered) {
        TRY(add_part(c, &part, err));
    }
done:
    return code;
}

static tarn_code index_tasks(tarn_plan *plan, tarn_map *map, tarn_error *err) {
    for (int64_t i = 0; plan != NULL && i < plan->n_tasks; i++) {
        map_entry *slot = map_put(map, plan->tasks[i].file.path, NULL);
        if (slot == NULL) {
            return err_nomem(err);
        }
        slot->value.ptr = &plan->tasks[i];
    }
    return TARN_OK;
}

/* One side's files: those that the other side has not, and those whose deletes differ. */
static tarn_code compare_side(changes *c, tarn_plan *plan, tarn_plan *other, const tarn_map *others,
                              bool inserts, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int64_t i = 0; plan != NULL && i < plan->n_tasks; i++) {
        const scan_task *task = &plan->tasks[i];
        const map_entry *slot = map_find(others, task->file.path);
        const change_part alone = {plan, task, NULL, NULL, inserts};
        if (slot == NULL) {
            TRY(add_part(c, &alone, err));
        } else if (!deletes_within(slot->value.ptr, task)) {
            TRY(add_difference(c, plan, task, other, slot->value.ptr, inserts, err));
        }
    }
done:
    return code;
}

static tarn_code plan_of(changes *c, int64_t snapshot_id, tarn_plan **out, tarn_error *err) {
    scan_options options;
    memset(&options, 0, sizeof options);
    options.metadata = c->options.metadata;
    options.snapshot_id = snapshot_id;
    options.limit = -1;
    return plan_new(c->env, c->store, &options, out, err);
}

static tarn_code plan_append(changes *c, const commit_step *step, tarn_error *err) {
    tarn_code code = TARN_OK;
    scan_options options;
    memset(&options, 0, sizeof options);
    options.metadata = c->options.metadata;
    options.snapshot_id = step->after;
    options.limit = -1;
    options.appends = true;
    options.from_snapshot_id = step->before;
    TRY(plan_new(c->env, c->store, &options, &c->after, err));
    for (int64_t i = 0; i < c->after->n_tasks; i++) {
        const change_part part = {c->after, &c->after->tasks[i], NULL, NULL, true};
        TRY(add_part(c, &part, err));
    }
done:
    return code;
}

static tarn_code plan_difference(changes *c, const commit_step *step, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_map before, after;
    map_init(&before, &c->step_arena);
    map_init(&after, &c->step_arena);
    if (step->before != TARN_NO_SNAPSHOT) {
        TRY(plan_of(c, step->before, &c->before, err));
    }
    TRY(plan_of(c, step->after, &c->after, err));
    TRY(index_tasks(c->before, &before, err));
    TRY(index_tasks(c->after, &after, err));
    TRY(compare_side(c, c->before, c->after, &after, false, err));
    TRY(compare_side(c, c->after, c->before, &before, true, err));
done:
    return code;
}

/* ---- scanning parts ---- */

static tarn_code open_part(changes *c, const change_part *part, tarn_error *err) {
    file_scan_options options;
    memset(&options, 0, sizeof options);
    options.wanted = c->root;
    options.parallel = true;
    options.batch_rows = c->options.batch_rows;
    if (part->other != NULL) {
        tarn_code code =
            plan_deletes_of(part->other->deletes, part->other_task, false, &options.only, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    return task_scan_open(part->plan, part->task, &options, &c->scan, err);
}

/* The next batch of the parts from c->part up to end; no rows: they are through. */
static tarn_code next_of_parts(changes *c, int64_t end, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    while (batch_rows(out) == 0 && c->part < end) {
        if (c->scan == NULL) {
            TRY(open_part(c, &c->parts.items[c->part], err));
        }
        TRY(file_scan_next(c->scan, out, &c->counters, err));
        if (batch_rows(out) == 0) {
            file_scan_close(c->scan);
            c->scan = NULL;
            c->part++;
        }
    }
done:
    return code;
}

/* ---- counting ---- */

static tarn_code count_removed(changes *c, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = digester_run(&c->row_digests, batch, err);
    for (int64_t i = 0; i < batch_rows(batch) && code == TARN_OK; i++) {
        bag_item *item;
        code = bag_put(&c->rows, c->row_digests.digests[i], &item, err);
        if (code == TARN_OK) {
            item->count++;
        }
    }
    return code;
}

/* Added rows that were removed too cancel out; of the others the keys are noted. */
static tarn_code count_added(changes *c, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(digester_run(&c->row_digests, batch, err));
    if (c->n_key_ids > 0) {
        TRY(digester_run(&c->key_digests, batch, err));
    }
    for (int64_t i = 0; i < batch_rows(batch); i++) {
        bag_item *item = bag_find(&c->rows, c->row_digests.digests[i]);
        if (item != NULL && item->count > 0) {
            item->count--;
            item->carried++;
        } else if (c->n_key_ids > 0) {
            TRY(bag_put(&c->keys, c->key_digests.digests[i], &item, err));
            item->added = true;
        }
    }
done:
    return code;
}

static tarn_code count_parts(changes *c, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    const int64_t n_removing = c->parts.n - c->parts.n_inserts;
    c->part = 0;
    for (int pass = 0; pass < 2; pass++) {
        do {
            batch_release(&batch);
            TRY(next_of_parts(c, pass == 0 ? n_removing : c->parts.n, &batch, err));
            if (batch_rows(&batch) > 0) {
                TRY(pass == 0 ? count_removed(c, &batch, err) : count_added(c, &batch, err));
            }
        } while (batch_rows(&batch) > 0);
    }
    c->part = 0;
done:
    batch_release(&batch);
    return code;
}

/* ---- giving ---- */

static const char *const type_names[] = {"INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"};
enum { IS_INSERT, IS_DELETE, IS_BEFORE, IS_AFTER };

/* Whether a row of a matched step is given, and as what. */
static bool judge_row(changes *c, int64_t i, bool inserts, uint8_t *type) {
    bag_item *item = bag_find(&c->rows, c->row_digests.digests[i]);
    bool given;
    *type = inserts ? IS_INSERT : IS_DELETE;
    if (inserts) {
        given = item == NULL || item->carried == 0;
        if (!given) {
            item->carried--;
        }
    } else {
        given = item != NULL && item->count > 0;
        if (given) {
            item->count--;
        }
    }
    if (!given || c->n_key_ids == 0) {
        return given;
    }
    bag_item *key = bag_find(&c->keys, c->key_digests.digests[i]);
    if (inserts && key != NULL && key->removed) {
        *type = IS_AFTER;
    } else if (!inserts && key != NULL && key->added) {
        key->removed = true;
        *type = IS_BEFORE;
    }
    return true;
}

/* Rows that are given, their types in types, which has room for all. */
static tarn_code judge_batch(changes *c, tarn_batch *batch, bool inserts, uint8_t *types,
                             tarn_error *err) {
    const int64_t rows = batch_rows(batch);
    tarn_code code = TARN_OK;
    tarn_batch kept;
    int64_t n = 0;
    uint8_t *selection = env_calloc(c->env, 1, bit_bytes(rows) + 8);
    memset(&kept, 0, sizeof kept);
    if (selection == NULL) {
        return err_nomem(err);
    }
    TRY(digester_run(&c->row_digests, batch, err));
    if (c->n_key_ids > 0) {
        TRY(digester_run(&c->key_digests, batch, err));
    }
    for (int64_t i = 0; i < rows; i++) {
        if (judge_row(c, i, inserts, &types[n])) {
            bit_set(selection, i);
            n++;
        }
    }
    if (n < rows) {
        TRY(batch_filter(c->env, batch, selection, &kept, err));
        batch_release(batch);
        batch_move(batch, &kept);
    }
done:
    env_free(c->env, selection);
    return code;
}

static tarn_code fill_column(changes *c, int32_t column, const uint8_t *types, int64_t rows,
                             struct ArrowArray *out, tarn_error *err) {
    const commit_step *step = &c->steps[c->step];
    tarn_builder b;
    tarn_code code = builder_init(&b, c->env, change_fields[column].type, err);
    if (code != TARN_OK) {
        return code;
    }
    TRY(builder_reserve(&b, rows, err));
    for (int64_t i = 0; i < rows; i++) {
        switch (change_fields[column].id) {
        case FIELD_ID_CHANGE_TYPE:
            TRY(builder_bytes(&b, str_of(type_names[types[i]]), err));
            break;
        case FIELD_ID_CHANGE_ORDINAL:
            TRY(builder_fixed(&b, &c->step, err));
            break;
        default:
            TRY(builder_fixed(&b, &step->after, err));
            break;
        }
    }
    TRY(builder_finish(&b, out, err));
done:
    builder_release(&b);
    return code;
}

/* batch's columns and the three. */
static tarn_code add_columns(changes *c, tarn_batch *batch, const uint8_t *types, tarn_batch *out,
                             tarn_error *err) {
    const int32_t n = c->whole->n_fields;
    tarn_code code = TARN_OK;
    struct ArrowArray *columns = env_calloc(c->env, (size_t)n, sizeof *columns);
    if (columns == NULL) {
        return err_nomem(err);
    }
    tarn_assert(batch->array.offset == 0);
    for (int32_t i = 0; i < CHANGE_COLUMNS; i++) {
        TRY(fill_column(c, i, types, batch_rows(batch), &columns[n - CHANGE_COLUMNS + i], err));
    }
    for (int32_t i = 0; i < n - CHANGE_COLUMNS; i++) {
        columns[i] = *batch->array.children[i];
        batch->array.children[i]->release = NULL;
    }
    code = batch_assemble(c->env, c->whole, batch_rows(batch), columns, out, err);
done:
    for (int32_t i = 0; i < n; i++) {
        if (columns[i].release != NULL) {
            columns[i].release(&columns[i]);
        }
    }
    env_free(c->env, columns);
    return code;
}

/* ---- steps ---- */

static void close_step(changes *c) {
    file_scan_close(c->scan);
    plan_free(c->before);
    plan_free(c->after);
    c->scan = NULL;
    c->before = c->after = NULL;
    arena_release(&c->step_arena);
    memset(&c->parts, 0, sizeof c->parts);
    bag_release(&c->rows);
    bag_release(&c->keys);
    c->open = false;
}

static tarn_code open_step(changes *c, tarn_error *err) {
    const commit_step *step = &c->steps[c->step];
    tarn_code code = TARN_OK;
    c->part = 0;
    if (step->append) {
        TRY(plan_append(c, step, err));
    } else {
        TRY(plan_difference(c, step, err));
    }
    c->matched = c->parts.n_inserts > 0 && c->parts.n_inserts < c->parts.n;
    if (c->matched) {
        TRY(count_parts(c, err));
    }
    c->open = true;
done:
    return code;
}

static tarn_code give_batch(changes *c, tarn_batch *batch, tarn_batch *out, tarn_error *err) {
    const bool inserts = c->parts.items[c->part].inserts;
    tarn_code code = TARN_OK;
    uint8_t *types = env_alloc(c->env, (size_t)batch_rows(batch) + 1);
    if (types == NULL) {
        return err_nomem(err);
    }
    memset(types, inserts ? IS_INSERT : IS_DELETE, (size_t)batch_rows(batch));
    if (c->matched) {
        TRY(judge_batch(c, batch, inserts, types, err));
    }
    if (batch_rows(batch) > 0) {
        TRY(add_columns(c, batch, types, out, err));
    }
done:
    env_free(c->env, types);
    return code;
}

tarn_code changes_next(changes *c, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    memset(out, 0, sizeof *out);
    memset(&batch, 0, sizeof batch);
    while (batch_rows(out) == 0 && c->step < c->n_steps && c->choice.left != 0) {
        TRY(env_check_cancel(c->env, err));
        if (!c->open) {
            TRY(open_step(c, err));
        }
        TRY(next_of_parts(c, c->parts.n, &batch, err));
        if (batch_rows(&batch) == 0) {
            close_step(c);
            c->step++;
        } else {
            TRY(give_batch(c, &batch, out, err));
            batch_release(&batch);
            TRY(row_choice_apply(&c->choice, out, err));
            if (batch_rows(out) == 0) {
                batch_release(out);
            }
        }
    }
done:
    batch_release(&batch);
    if (code != TARN_OK) {
        batch_release(out);
    }
    return code;
}

/* ---- opening ---- */

static tarn_code make_steps(changes *c, const tarn_snapshot *last, tarn_error *err) {
    const int64_t from = c->options.from_snapshot_id;
    const tarn_snapshot *const *snapshots = &last;
    int32_t n = last != NULL;
    tarn_code code = TARN_OK;
    if (!c->options.net || from != TARN_NO_SNAPSHOT) { /* else the rows of now are all */
        code = history_between(&c->arena, c->options.metadata, last, from, &snapshots, &n, err);
        if (code == TARN_OK && n > 0 && from == TARN_NO_SNAPSHOT) {
            code = history_check_first(&c->arena, c->store, snapshots[0], err);
        }
    }
    if (code == TARN_OK && from != TARN_NO_SNAPSHOT &&
        metadata_snapshot_by_id(c->options.metadata, from) == NULL) {
        code = err_set(err, TARN_NOT_FOUND,
                       "snapshot %lld was expired: what changed since cannot be told, as the rows "
                       "before are not known",
                       (long long)from);
    }
    if (code != TARN_OK) {
        return code;
    }
    c->steps = ARENA_ARRAY(&c->arena, commit_step, (size_t)n + 1);
    if (c->steps == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        const bool last_one = i + 1 == n;
        commit_step step = {i > 0 ? snapshots[i - 1]->snapshot_id : from, snapshots[i]->snapshot_id,
                            false};
        step.append = step.before != TARN_NO_SNAPSHOT &&
                      snapshot_operation_of(snapshots[i]) == OPERATION_APPEND;
        if (c->options.net) {
            step = (commit_step){from, step.after, false};
        }
        if (c->options.net ? last_one : snapshot_operation_of(snapshots[i]) != OPERATION_REPLACE) {
            c->steps[c->n_steps++] = step;
        }
    }
    return TARN_OK;
}

static tarn_code find_keys(changes *c, tarn_error *err) {
    const tarn_schema *schema = metadata_schema(c->options.metadata);
    const int32_t n = c->options.key != NULL ? c->options.n_key : schema->n_identifier_ids;
    c->key_ids = ARENA_ARRAY(&c->arena, int32_t, (size_t)n + 1);
    if (c->key_ids == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        if (c->options.key == NULL) {
            c->key_ids[i] = schema->identifier_ids[i];
            continue;
        }
        const tarn_field *field = type_find_name(schema->root, c->options.key[i], true);
        if (field == NULL || type_is_nested(field->type)) {
            return err_set(err, TARN_INVALID, "there is no column %.*s that can be a key",
                           STR_ARG(c->options.key[i]));
        }
        c->key_ids[i] = field->id;
    }
    c->n_key_ids = n;
    return TARN_OK;
}

static tarn_code choose_rows(changes *c, tarn_error *err) {
    scan_options asked;
    memset(&asked, 0, sizeof asked);
    asked.columns = c->options.columns;
    asked.n_columns = c->options.n_columns;
    asked.filter = c->options.filter;
    asked.limit = c->options.limit;
    return row_choice_init(&c->choice, &c->arena, c->whole, &asked, "changes", err);
}

/* Rows tell their columns by name. */
static tarn_code check_names(const tarn_type *root, tarn_error *err) {
    for (int32_t i = 0; i < CHANGE_COLUMNS; i++) {
        const tarn_str name = change_fields[i].name;
        if (type_child(root, name) != NULL) {
            return err_set(err, TARN_INVALID,
                           "the table has a column %.*s, which is what changes call one of theirs: "
                           "they can be told when it is renamed",
                           STR_ARG(name));
        }
    }
    return TARN_OK;
}

static tarn_code prepare(changes *c, tarn_error *err) {
    const tarn_metadata *m = c->options.metadata;
    const tarn_type added = {
        .kind = TARN_STRUCT, .n_fields = CHANGE_COLUMNS, .fields = change_fields};
    const tarn_snapshot *last = metadata_current_snapshot(m);
    tarn_code code = TARN_OK;
    if (c->options.to_snapshot_id != TARN_NO_SNAPSHOT) {
        last = metadata_snapshot_by_id(m, c->options.to_snapshot_id);
        if (last == NULL) {
            return err_set(err, TARN_NOT_FOUND, "there is no snapshot %lld",
                           (long long)c->options.to_snapshot_id);
        }
    }
    c->root = metadata_schema(m)->root;
    TRY(check_names(c->root, err));
    TRY(columns_merge(&c->arena, c->root, &added, &c->whole, err));
    TRY(choose_rows(c, err));
    TRY(find_keys(c, err));
    TRY(digester_init(&c->row_digests, c->env, c->root, NULL, 0, err));
    TRY(digester_init(&c->key_digests, c->env, c->root, c->key_ids, c->n_key_ids, err));
    TRY(make_steps(c, last, err));
done:
    return code;
}

tarn_code changes_open(tarn_env *env, tarn_store *store, const changes_options *options,
                       changes **out, tarn_error *err) {
    changes *c = env_calloc(env, 1, sizeof *c);
    if (c == NULL) {
        return err_nomem(err);
    }
    c->env = env;
    c->store = store;
    c->options = *options;
    arena_init(&c->arena, env);
    arena_init(&c->step_arena, env);
    bag_init(&c->rows, env);
    bag_init(&c->keys, env);
    tarn_code code = prepare(c, err);
    if (code == TARN_OK) {
        *out = c;
    } else {
        changes_close(c);
    }
    return code;
}

const tarn_type *changes_type(const changes *c) {
    return c->choice.output;
}

void changes_close(changes *c) {
    if (c == NULL) {
        return;
    }
    close_step(c);
    digester_release(&c->row_digests);
    digester_release(&c->key_digests);
    arena_release(&c->arena);
    env_free(c->env, c);
}
