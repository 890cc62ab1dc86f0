/* service/rebase.c - see rebase.h.
 *
 * client's list against its parent's -> files that come and go (rebase_delta.h) -> a commit request
 *   -> made on the head like any other, validated against all that came since (write/commit)
 *
 * What is taken: a snapshot, put on one branch, on a parent that is still an ancestor of the
 * branch's head; snapshots on it, one on the other, that are appends (what is right after the first
 * is right after it wherever it is made); properties may change besides; every other requirement
 * holds. The server knows the files, not the client's query, so it takes only what holds for every
 * query:
 *
 *   append: adds data files alone. It mostly read no rows, so no rows that came since matter. An
 *   engine's merge that finds nothing to change is called an append too: where the table asks for
 *   serializable merges, and not only because it says nothing, no rows may have come but by
 *   rewrites.
 *
 *   replace: the same rows in other files. What came since matters only where it concerns those
 *   files: each must be live still, and no row deletes may have come that concern them, since the
 *   new files would bring the rows back. Equality deletes may where all new files keep a sequence
 *   number of the parent's time: then they reach the new files as they did the old. More rows than
 *   before are no rewrite. Position deletes may be written anew for themselves; equality deletes
 *   not, since files that are rewritten at the same time count on them.
 *
 *   delete, overwrite: files and rows that went because of a query.
 *     - Each file that goes, or of which rows go, must be live still, and nobody may have deleted
 *       rows of it since: two changes of one row would both be done, or one be lost. A delete
 *       file or vector that a new one stands in for must be the one that is there.
 *     - Rows that came since may be rows of the query. Under serializable isolation, which is
 *       what tables have that do not say, none may have come but by rewrites; under snapshot
 *       isolation they stay as they are. Which of write.delete, write.update and
 *       write.merge.isolation-level holds is not known: all that may must say snapshot.
 *     - Equality deletes get a higher sequence number, and so would reach rows that their writer
 *       did not mean: no data files may have come, but by rewrites, in the partitions that they
 *       reach. A commit with no other deletes read nothing, and is held to this alone.
 *     - Files keep no sequence numbers of their own; and whoever replaces whole partitions means
 *       them as they are, which only its writer can do again.
 *
 *   all: the client may have looked whether the data files that it adds are in the table, and their
 *   rows would be there twice: none of them may have come since, wherever it went.
 *
 *   And it may have looked where its stream stands: no other step of that may have come.
 *
 * Everything else is refused, and the client makes it anew. */
#include "service/rebase.h"

#include "base/map.h"
#include "iceberg/delete_index.h"
#include "service/file_index.h"
#include "service/stream_step.h"
#include "write/commit/commit.h"

typedef struct rebase {
    rebase_commit *commit;
    written_files *files;
    const tarn_metadata *before; /* the table */
    const tarn_metadata *base;   /* with the snapshots that were made so far */
    tarn_str branch;
    const sent_snapshot *sent; /* that is made now */
    const rebase_delta *delta;
    commit_request request;
    commit_origin origin;
    tarn_error *err;
} rebase;

static tarn_code refuse(const rebase *b, const char *why) {
    return err_set(b->err, TARN_CONFLICT,
                   "requirement failed: the branch has changed, and the commit could not follow: "
                   "%s",
                   why);
}

/* ---- what is asked ---- */

static const char *operation_of(const tarn_snapshot *s) {
    static const char *const known[] = {"append", "replace", "delete", "overwrite"};
    tarn_str operation;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (properties_get(&s->summary, "operation", &operation) && str_is(operation, known[i])) {
            return known[i];
        }
    }
    return NULL;
}

/* Finds the snapshots, each with the branch's move to it, and the branch; false: the commit is of
 * another kind. */
static bool find_parts(rebase *b) {
    const rebase_commit *commit = b->commit;
    const tarn_change_set *set = &commit->set;
    int32_t n = 0;
    bool moved = true;
    for (int32_t i = 0; i < set->n_changes; i++) {
        const tarn_change *c = &set->changes[i];
        if (c->kind == CHANGE_ADD_SNAPSHOT) {
            if (n >= commit->n_snapshots || commit->snapshots[n].snapshot != c->snapshot ||
                !commit->snapshots[n].understood) {
                return false;
            }
            n++;
            moved = false;
        } else if (c->kind == CHANGE_SET_SNAPSHOT_REF) {
            if (moved || c->ref.is_tag || (b->branch.len > 0 && !str_eq(b->branch, c->ref.name)) ||
                c->ref.snapshot_id != commit->snapshots[n - 1].snapshot->snapshot_id) {
                return false;
            }
            b->branch = c->ref.name;
            moved = true;
        } else if (c->kind != CHANGE_SET_PROPERTIES && c->kind != CHANGE_REMOVE_PROPERTIES) {
            return false;
        }
    }
    return n > 0 && n == commit->n_snapshots && moved;
}

static void begin_request(rebase *b) {
    const tarn_snapshot *s = b->sent->snapshot;
    memset(&b->request, 0, sizeof b->request);
    memset(&b->origin, 0, sizeof b->origin);
    b->origin.operation = operation_of(s);
    b->origin.snapshot_id = s->snapshot_id;
    b->origin.schema_id = s->schema_id;
    b->request.branch = b->branch;
    b->request.origin = &b->origin;
    b->request.from_snapshot_id = s->parent_id;
    b->request.summary = s->summary;
}

/* Whether its parent is under the branch's head, main's where it makes the branch; of a later one,
 * whether that is the one before. */
static bool may_follow(const rebase *b) {
    const tarn_snapshot *s = b->sent->snapshot;
    const tarn_ref *ref = metadata_ref(b->base, b->branch);
    const tarn_snapshot *head = metadata_head(b->base, b->branch);
    if (b->origin.operation == NULL || (ref != NULL && ref->is_tag) ||
        metadata_schema_by_id(b->base, s->schema_id) == NULL ||
        metadata_snapshot_by_id(b->base, s->snapshot_id) != NULL) {
        return false;
    }
    const bool append = strcmp(b->origin.operation, "append") == 0;
    if (b->sent != b->commit->snapshots) {
        return append && s->parent_id == b->sent[-1].snapshot->snapshot_id;
    }
    return s->parent_id == TARN_NO_SNAPSHOT
               ? append
               : head != NULL && metadata_is_ancestor(b->base, head->snapshot_id, s->parent_id);
}

/* All but where the branch stood: elsewhere refs stand as they are said to. */
static tarn_code check_others(const rebase *b) {
    const tarn_change_set *set = &b->commit->set;
    for (int32_t i = 0; i < set->n_requirements; i++) {
        const tarn_requirement *r = &set->requirements[i];
        tarn_change_set one = {1, r, 0, NULL};
        if (r->kind != REQUIRE_REF_SNAPSHOT_ID || !str_eq(r->text, b->branch)) {
            tarn_code code = change_check(b->base, &one, b->err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    return TARN_OK;
}

/* ---- the rules ---- */

static int64_t rows_of(const tarn_file *files, int32_t n) {
    int64_t rows = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!num_add_i64(rows, files[i].record_count, &rows)) {
            return INT64_MAX;
        }
    }
    return rows;
}

static int64_t rows_of_entries(const tarn_entry *entries, int32_t n) {
    int64_t rows = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!num_add_i64(rows, entries[i].file.record_count, &rows)) {
            return INT64_MAX;
        }
    }
    return rows;
}

/* Whether all numbers are given, and any is. */
static void look_at(const int64_t *sequences, int32_t n, bool *all, bool *any) {
    *all = n > 0;
    *any = false;
    for (int32_t i = 0; i < n; i++) {
        *all &= sequences[i] >= 0;
        *any |= sequences[i] >= 0;
    }
}

static bool has_equality(const tarn_file *files, int32_t n) {
    bool any = false;
    for (int32_t i = 0; i < n; i++) {
        any |= files[i].content == TARN_CONTENT_EQUALITY_DELETES;
    }
    return any;
}

/* Numbers that were given are of the parent's time. */
static bool sequences_hold(const rebase *b) {
    const tarn_snapshot *parent = metadata_snapshot_by_id(b->base, b->sent->snapshot->parent_id);
    const rebase_delta *d = b->delta;
    bool hold = parent != NULL;
    for (int32_t i = 0; i < d->n_added && hold; i++) {
        hold = d->added_sequences[i] <= parent->sequence_number;
    }
    for (int32_t i = 0; i < d->n_added_deletes && hold; i++) {
        hold = d->added_delete_sequences[i] <= parent->sequence_number;
    }
    return hold;
}

static bool merges_are_serializable(const tarn_metadata *m) {
    tarn_str level;
    return properties_get(&m->properties, "write.merge.isolation-level", &level) &&
           !str_eq_nocase(level, STR("snapshot"));
}

static tarn_code rule_append(rebase *b) {
    const rebase_delta *d = b->delta;
    bool all, any;
    look_at(d->added_sequences, d->n_added, &all, &any);
    if (d->n_added_deletes > 0 || d->n_removed > 0 || d->n_removed_deletes > 0 || any) {
        return refuse(b, "it is called an append and does more than add data files");
    }
    b->request.kind = COMMIT_FAST_APPEND;
    b->request.allow_empty = true;
    b->origin.no_new_rows = merges_are_serializable(b->base);
    /* The client has read a list that another snapshot stands on, and may remember manifests by
     * their paths: under a new sequence number they are new ones. */
    if (b->sent == &b->commit->snapshots[b->commit->n_snapshots - 1]) {
        b->origin.manifests = d->manifests;
        b->origin.n_manifests = d->n_manifests;
    }
    return TARN_OK;
}

static tarn_code rule_replace_deletes(rebase *b) {
    const rebase_delta *d = b->delta;
    bool equality = has_equality(d->added_deletes, d->n_added_deletes);
    for (int32_t i = 0; i < d->n_removed_deletes; i++) {
        equality |= d->removed_deletes[i].file.content == TARN_CONTENT_EQUALITY_DELETES;
    }
    if (equality || d->n_added_deletes == 0 || d->n_removed_deletes == 0 ||
        rows_of(d->added_deletes, d->n_added_deletes) >
            rows_of_entries(d->removed_deletes, d->n_removed_deletes)) {
        return refuse(b, "its delete files do not stand in for those that it removes");
    }
    b->request.kind = COMMIT_OVERWRITE;
    return TARN_OK;
}

static tarn_code rule_replace(rebase *b) {
    const rebase_delta *d = b->delta;
    bool all, any;
    if (!sequences_hold(b)) {
        return refuse(b, "its files have sequence numbers that are not of its parent's time");
    }
    b->origin.added_sequences = d->added_sequences;
    b->origin.added_delete_sequences = d->added_delete_sequences;
    if (d->n_added == 0 && d->n_removed == 0) {
        return rule_replace_deletes(b);
    }
    if (d->n_removed == 0 || d->n_added_deletes > 0 || d->n_removed_deletes > 0 ||
        rows_of(d->added, d->n_added) > rows_of_entries(d->removed, d->n_removed)) {
        return refuse(b, "it is called a rewrite and does more than that");
    }
    look_at(d->added_sequences, d->n_added, &all, &any);
    b->origin.outlives_equality_deletes = all;
    b->request.kind = COMMIT_OVERWRITE;
    b->request.check_new_deletes = true;
    return TARN_OK;
}

static bool level_is_snapshot(const tarn_metadata *m, const char *key) {
    tarn_str level;
    return properties_get(&m->properties, key, &level) && str_eq_nocase(level, STR("snapshot"));
}

/* No update leaves data files as they are. */
static bool allows_new_rows(const rebase *b) {
    return level_is_snapshot(b->base, "write.delete.isolation-level") &&
           level_is_snapshot(b->base, "write.merge.isolation-level") &&
           (b->delta->n_added == 0 || level_is_snapshot(b->base, "write.update.isolation-level"));
}

/* Each delete file that goes is of one data file, for which a new one comes. */
static tarn_code check_replaced(const rebase *b) {
    const rebase_delta *d = b->delta;
    tarn_map added;
    map_init(&added, b->files->arena);
    for (int32_t i = 0; i < d->n_added_deletes; i++) {
        tarn_str only = delete_only_file(&d->added_deletes[i]);
        if (only.len > 0 && map_put(&added, only, NULL) == NULL) {
            return err_nomem(b->err);
        }
    }
    for (int32_t i = 0; i < d->n_removed_deletes; i++) {
        tarn_str only = delete_only_file(&d->removed_deletes[i].file);
        if (only.len == 0 || map_find(&added, only) == NULL) {
            return refuse(b, "it removes a delete file for which none comes");
        }
    }
    return TARN_OK;
}

static tarn_code rule_change(rebase *b) {
    const rebase_delta *d = b->delta;
    const bool equality = has_equality(d->added_deletes, d->n_added_deletes);
    const bool blind = equality && d->n_removed == 0 && d->n_referenced == 0;
    bool all, any, any_delete;
    tarn_str text;
    look_at(d->added_sequences, d->n_added, &all, &any);
    look_at(d->added_delete_sequences, d->n_added_deletes, &all, &any_delete);
    if (any || any_delete) {
        return refuse(b, "its files have sequence numbers of their own");
    }
    if (properties_get(&b->sent->snapshot->summary, "replace-partitions", &text) &&
        !str_eq_nocase(text, STR("false"))) {
        return refuse(b, "it replaces whole partitions");
    }
    if (d->n_added == 0 && d->n_added_deletes == 0 && d->n_removed == 0) {
        return refuse(b, "it changes no rows");
    }
    b->origin.no_new_rows = !blind && !allows_new_rows(b);
    b->origin.keeps_reach = equality;
    b->request.kind =
        d->n_added == 0 && d->n_added_deletes == 0 ? COMMIT_DELETE_FILES : COMMIT_OVERWRITE;
    b->request.check_new_deletes = true;
    return check_replaced(b);
}

static tarn_code make_request(rebase *b) {
    const rebase_delta *d = b->delta;
    b->request.added = d->added;
    b->request.n_added = d->n_added;
    b->request.added_deletes = d->added_deletes;
    b->request.n_added_deletes = d->n_added_deletes;
    b->request.removed = d->removed;
    b->request.n_removed = d->n_removed;
    b->request.removed_deletes = d->removed_deletes;
    b->request.n_removed_deletes = d->n_removed_deletes;
    b->request.referenced = d->referenced;
    b->request.n_referenced = d->n_referenced;
    if (strcmp(b->origin.operation, "append") == 0) {
        return rule_append(b);
    }
    if (strcmp(b->origin.operation, "replace") == 0) {
        b->request.n_referenced = 0; /* the rows were gone before */
        return rule_replace(b);
    }
    return rule_change(b);
}

/* Whether a file of this hash is among those that are added. */
static tarn_str find_file(const rebase_delta *d, uint64_t hash) {
    int32_t i = 0;
    while (i + 1 < d->n_added && file_index_hash(d->added[i].path) != hash) {
        i++;
    }
    return d->added[i].path;
}

/* What the client has not seen came after its first snapshot's parent. */
static tarn_code check_files(const rebase *b) {
    const rebase_delta *d = b->delta;
    const added_question question = {.store = b->files->store,
                                     .metadata = b->before,
                                     .head = metadata_head(b->before, b->branch),
                                     .since_id = b->commit->snapshots[0].snapshot->parent_id,
                                     .paths = d->paths};
    const tarn_snapshot *by = NULL;
    uint64_t hash;
    tarn_code code = TARN_OK;
    if (d->n_added == 0) {
        return TARN_OK;
    }
    TRY(added_files_ask(b->commit->added, &question, &by, &hash, b->err));
    if (by != NULL) {
        tarn_str path = find_file(d, hash);
        code = err_set(b->err, TARN_CONFLICT,
                       "requirement failed: snapshot %lld has added file %.*s since",
                       (long long)by->snapshot_id, STR_ARG(path));
    }
done:
    return code;
}

/* A step of a stream is taken on what its engine has seen of the stream: which may have sent it
 * long ago, and have a successor by now. */
static tarn_code check_stream(const rebase *b) {
    const int64_t since_id = b->commit->snapshots[0].snapshot->parent_id;
    const tarn_snapshot *s = metadata_head(b->before, b->branch);
    if (!stream_step_is_any(b->sent->snapshot)) {
        return TARN_OK;
    }
    for (int32_t steps = 0; s != NULL && s->snapshot_id != since_id; steps++) {
        if (steps > b->before->n_snapshots || stream_step_is_same(s, b->sent->snapshot)) {
            return err_set(b->err, TARN_CONFLICT,
                           "requirement failed: snapshot %lld is of the same stream and came since",
                           (long long)s->snapshot_id);
        }
        s = metadata_parent(b->before, s);
    }
    return TARN_OK;
}

/* ---- the snapshot ---- */

/* In the arena of the files: the maker's own ends with it. */
static tarn_code copy_snapshot(const rebase *b, const tarn_snapshot *from, tarn_snapshot **out) {
    tarn_arena *arena = b->files->arena;
    tarn_snapshot *s = ARENA_NEW(arena, tarn_snapshot);
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)from->summary.count + 1);
    if (s == NULL || items == NULL) {
        return err_nomem(b->err);
    }
    *s = *from;
    s->extra = b->sent->snapshot->extra;
    s->manifest_list = arena_str(arena, from->manifest_list);
    bool good = s->manifest_list.data != NULL;
    for (int32_t i = 0; i < from->summary.count && good; i++) {
        items[i].key = arena_str(arena, from->summary.items[i].key);
        items[i].value = arena_str(arena, from->summary.items[i].value);
        good = items[i].key.data != NULL && items[i].value.data != NULL;
    }
    s->summary.items = items;
    *out = s;
    return good ? TARN_OK : err_nomem(b->err);
}

static tarn_code hand_over(const rebase *b, const commit_maker *maker) {
    const tarn_str *written;
    int32_t n;
    commit_maker_written(maker, &written, &n);
    for (int32_t i = 0; i < n; i++) {
        tarn_str path = arena_str(b->files->arena, written[i]);
        tarn_code code =
            path.data != NULL ? written_add(b->files, path, b->err) : err_nomem(b->err);
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

/* The client's changes with these snapshots for its own. */
static tarn_code swap_snapshots(const rebase *b, const tarn_snapshot *const *made,
                                tarn_change_set *out) {
    const tarn_change_set *set = &b->commit->set;
    tarn_change *changes = ARENA_ARRAY(b->files->arena, tarn_change, (size_t)set->n_changes);
    if (changes == NULL) {
        return err_nomem(b->err);
    }
    for (int32_t i = 0; i < set->n_changes; i++) {
        changes[i] = set->changes[i];
        if (changes[i].kind == CHANGE_ADD_SNAPSHOT) {
            changes[i].snapshot = *made++;
        }
    }
    memset(out, 0, sizeof *out); /* its requirements were checked */
    out->changes = changes;
    out->n_changes = set->n_changes;
    return TARN_OK;
}

static tarn_code make_snapshot(const rebase *b, tarn_snapshot **made) {
    tarn_code code = TARN_OK;
    commit_maker *maker = NULL;
    tarn_change_set step;
    tarn_outcome_kind outcome = TARN_NOT_COMMITTED;
    TRY(commit_maker_new(b->commit->arena->env, b->files->store, &b->request, &maker, b->err));
    TRY(commit_maker_attempt(maker, b->base, &step, b->err));
    if (step.n_changes == 0) {
        code = refuse(b, "it changes nothing");
        goto done;
    }
    TRY(hand_over(b, maker));
    TRY(copy_snapshot(b, step.changes[0].snapshot, made));
    outcome = TARN_OUTCOME_UNKNOWN; /* what it wrote is looked after elsewhere */
done:
    commit_maker_end(maker, outcome);
    return code;
}

/* A commit that could not be made again is one to be made anew, whatever stood in the way. */
static tarn_code as_conflict(const rebase *b, tarn_code code) {
    if (code == TARN_NOT_FOUND || code == TARN_INVALID || code == TARN_UNSUPPORTED ||
        code == TARN_CORRUPT || code == TARN_LIMIT) {
        tarn_error why = *b->err;
        return refuse(b, why.message);
    }
    return code;
}

static tarn_code find_delta(rebase *b) {
    rebase_commit *c = b->commit;
    const ptrdiff_t i = b->sent - c->snapshots;
    tarn_code code = TARN_OK;
    if (c->deltas == NULL) {
        c->deltas = ARENA_ARRAY(c->arena, rebase_delta *, (size_t)c->n_snapshots);
        if (c->deltas == NULL) {
            return err_nomem(b->err);
        }
        memset(c->deltas, 0, (size_t)c->n_snapshots * sizeof *c->deltas);
    }
    if (c->deltas[i] == NULL) {
        rebase_delta *delta = ARENA_NEW(c->arena, rebase_delta);
        if (delta == NULL) {
            return err_nomem(b->err);
        }
        TRY(as_conflict(b, rebase_delta_find(c->arena, b->files->store, b->sent, delta, b->err)));
        c->deltas[i] = delta;
    }
    b->delta = c->deltas[i];
done:
    return code;
}

/* The table with this snapshot, for the one that stands on it. */
static tarn_code step_on(rebase *b, const tarn_snapshot *made) {
    tarn_change changes[2] = {{.kind = CHANGE_ADD_SNAPSHOT, .snapshot = made},
                              {.kind = CHANGE_SET_SNAPSHOT_REF}};
    const tarn_change_set set = {.n_changes = 2, .changes = changes};
    const tarn_ref *ref = metadata_ref(b->base, b->branch);
    changes[1].ref = ref != NULL ? *ref : (tarn_ref){b->branch, 0, false, -1, -1, -1};
    changes[1].ref.snapshot_id = made->snapshot_id;
    return change_apply(b->files->arena, b->base, &set, made->timestamp_ms, &b->base, b->err);
}

static tarn_code refuse_kind(const rebase *b, const tarn_metadata *base) {
    tarn_code code = change_check(base, &b->commit->set, b->err);
    return code != TARN_OK ? code : refuse(b, "it is of a kind that cannot be put on another");
}

tarn_code rebase_make(rebase_commit *commit, written_files *files, const tarn_metadata *base,
                      tarn_change_set *out, tarn_error *err) {
    rebase b = {.commit = commit, .files = files, .before = base, .base = base, .err = err};
    tarn_code code = TARN_OK;
    tarn_snapshot **made =
        ARENA_ARRAY(files->arena, tarn_snapshot *, (size_t)commit->n_snapshots + 1);
    if (made == NULL) {
        return err_nomem(err);
    }
    TRY(find_parts(&b) ? check_others(&b) : refuse_kind(&b, base));
    for (int32_t i = 0; i < commit->n_snapshots; i++) {
        b.sent = &commit->snapshots[i];
        begin_request(&b);
        TRY(may_follow(&b) ? TARN_OK : refuse_kind(&b, base));
        TRY(find_delta(&b));
        TRY(make_request(&b));
        TRY(check_stream(&b));
        TRY(as_conflict(&b, check_files(&b)));
        TRY(as_conflict(&b, make_snapshot(&b, &made[i])));
        added_files_remember(commit->added, made[i], b.delta->paths);
        if (i + 1 < commit->n_snapshots) {
            TRY(step_on(&b, made[i]));
        }
    }
    TRY(swap_snapshots(&b, (const tarn_snapshot *const *)made, out));
done:
    return code;
}
