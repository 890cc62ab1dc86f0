/* sink/state.c - see state.h. Every document is one line "tarn-sink 1 CRC LENGTH" and a JSON body,
 * so that a cut or changed one is told from an older or newer one. */
#include "sink/state.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/num.h"
#include "sink/state_int.h"

#define MAX_DOCUMENT_BYTES (512u << 20)
#define HEAD_BYTES         64
#define EPOCH_TRIES        1000 /* other jobs that start at the same moment */

/* ---- documents ---- */

tarn_code state_document_put(sink_state *s, const char *path, store_mode mode, tarn_str body,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    io_sink *sink = NULL;
    char head[HEAD_BYTES];
    int len = snprintf(head, sizeof head, "tarn-sink 1 %08" PRIx32 " %zu\n",
                       num_crc32(0, body.data, body.len), body.len);
    TRY(store_create(s->store, str_of(path), mode, &sink, err));
    TRY(io_write(sink, head, (size_t)len, err));
    TRY(io_write(sink, body.data, body.len, err));
    io_sink *whole = sink;
    sink = NULL;
    TRY(whole->finish(whole, err));
done:
    if (sink != NULL) {
        sink->abort(sink);
    }
    return code;
}

static tarn_code damaged(const char *path, const char *why, tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "sink state file %s was damaged: %s", path, why);
}

/* "tarn-sink 1 CRC LENGTH" of the head line. */
static tarn_code check_head(const char *path, tarn_str head, tarn_str body, tarn_error *err) {
    tarn_str piece;
    tarn_str crc;
    uint64_t len;
    char want[16];
    if (!str_split(&head, ' ', &piece) || !str_is(piece, "tarn-sink") ||
        !str_split(&head, ' ', &piece)) {
        return damaged(path, "it does not begin with \"tarn-sink\"", err);
    }
    if (!str_is(piece, "1")) {
        return err_set(err, TARN_UNSUPPORTED, "sink state file %s has version %.*s, not 1", path,
                       STR_ARG(piece));
    }
    if (!str_split(&head, ' ', &crc) || !str_split(&head, ' ', &piece) ||
        !str_to_u64(piece, &len)) {
        return damaged(path, "its first line is incomplete", err);
    }
    if (len != body.len) {
        return err_set(
            err, TARN_CORRUPT,
            "sink state file %s was damaged: %zu bytes after the first line, not %" PRIu64, path,
            body.len, len);
    }
    (void)snprintf(want, sizeof want, "%08" PRIx32, num_crc32(0, body.data, body.len));
    return str_is(crc, want) ? TARN_OK : damaged(path, "its checksum does not match", err);
}

tarn_code state_document_get(sink_state *s, tarn_arena *arena, const char *path, json_value **out,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf text;
    size_t end;
    buf_init(&text, s->env, MAX_DOCUMENT_BYTES);
    TRY(store_get(s->store, str_of(path), MAX_DOCUMENT_BYTES, &text, err));
    tarn_str all = buf_str(&text);
    if (all.len == 0 || !str_find_char(all, '\n', &end) || end >= HEAD_BYTES) {
        code = damaged(path, "it has no first line", err);
        goto done;
    }
    tarn_str body = str_from(all, end + 1);
    TRY(check_head(path, str_sub(all, 0, end), body, err));
    TRY(json_parse(arena, body, path, out, err));
done:
    buf_release(&text);
    return code;
}

tarn_code state_path(sink_state *s, tarn_arena *arena, const char *name, char **out,
                     tarn_error *err) {
    *out = store_join(arena, s->dir, str_of(name));
    return *out != NULL ? TARN_OK : err_nomem(err);
}

/* ---- identity ---- */

static tarn_code make_identity(sink_state *s, const char *path, tarn_str sink_id, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf body;
    json_writer w;
    char uuid[37];
    buf_init(&body, s->env, 0);
    if (sink_id.len == 0) {
        env_uuid_v4(s->env, uuid);
        sink_id = str_of(uuid);
    }
    s->who.sink_id = arena_str(&s->arena, sink_id);
    s->who.operator_id = STR("writer");
    if (s->who.sink_id.data == NULL) {
        return err_nomem(err);
    }
    json_begin(&w, &body, false, err);
    json_put_object(&w);
    json_member_str(&w, "sink-id", s->who.sink_id);
    json_member_str(&w, "operator-id", s->who.operator_id);
    json_member_str(&w, "table", s->who.table);
    json_member_str(&w, "table-uuid", s->who.table_uuid);
    json_member_str(&w, "branch", s->who.branch);
    json_end_object(&w);
    TRY(json_end(&w));
    TRY(state_document_put(s, path, STORE_CREATE, buf_str(&body), err));
done:
    buf_release(&body);
    return code;
}

static tarn_code check_identity(sink_state *s, const char *path, const json_value *json,
                                tarn_str sink_id, tarn_error *err) {
    tarn_str uuid;
    tarn_str branch;
    tarn_str table = STR_NULL;
    if (!json_str(json_get(json, "sink-id"), &s->who.sink_id) || s->who.sink_id.len == 0 ||
        !json_str(json_get(json, "operator-id"), &s->who.operator_id) ||
        !json_str(json_get(json, "table-uuid"), &uuid) ||
        !json_str(json_get(json, "branch"), &branch)) {
        return damaged(path, "it does not say whose it is", err);
    }
    (void)json_str(json_get(json, "table"), &table);
    if (!str_eq(uuid, s->who.table_uuid)) {
        return err_set(
            err, TARN_INVALID,
            "sink state %s is of table %.*s with uuid %.*s; table %.*s has uuid %.*s: it was "
            "made anew or is another; name a state folder of its own (--state), or remove "
            "this one if nothing of that table is to be gone on with",
            path, STR_ARG(table), STR_ARG(uuid), STR_ARG(s->who.table), STR_ARG(s->who.table_uuid));
    }
    if (!str_eq(branch, s->who.branch)) {
        return err_set(err, TARN_INVALID, "sink state %s is of branch %.*s, not of %.*s", path,
                       STR_ARG(branch), STR_ARG(s->who.branch));
    }
    if (sink_id.len > 0 && !str_eq(sink_id, s->who.sink_id)) {
        return err_set(err, TARN_INVALID, "sink state %s is of sink %.*s, not of %.*s", path,
                       STR_ARG(s->who.sink_id), STR_ARG(sink_id));
    }
    return TARN_OK;
}

static tarn_code read_identity(sink_state *s, tarn_str sink_id, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_error first = TARN_ERROR_INIT;
    char *path;
    json_value *json;
    TRY(state_path(s, &s->arena, "sink", &path, err));
    code = state_document_get(s, &s->arena, path, &json, err);
    if (code == TARN_NOT_FOUND) {
        err_reset(err);
        code = make_identity(s, path, sink_id, &first);
        if (code != TARN_CONFLICT) { /* else another job was first, with a name of its own */
            if (code != TARN_OK && err != NULL) {
                *err = first;
            }
            return code;
        }
        code = state_document_get(s, &s->arena, path, &json, err);
    }
    if (code == TARN_OK) {
        code = check_identity(s, path, json, sink_id, err);
    }
done:
    return code;
}

tarn_code sink_state_open(tarn_env *env, const sink_state_options *options, sink_state **out,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    sink_state *s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->env = env;
    s->store = options->store;
    arena_init(&s->arena, env);
    buf_init(&s->spent, env, 0);
    s->dir = arena_str(&s->arena, options->dir);
    s->who.table = arena_str(&s->arena, options->table);
    s->who.table_uuid = arena_str(&s->arena, options->table_uuid);
    s->who.branch = arena_str(&s->arena, options->branch);
    if (s->dir.data == NULL || s->who.table.data == NULL || s->who.table_uuid.data == NULL ||
        s->who.branch.data == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(read_identity(s, options->sink_id, err));
    *out = s;
    s = NULL;
done:
    sink_state_close(s);
    return code;
}

void sink_state_close(sink_state *s) {
    if (s == NULL) {
        return;
    }
    if (s->spent.len > 0) {
        tarn_error err = TARN_ERROR_INIT;
        if (sink_state_sync(s, &err) != TARN_OK) { /* what is left over is read, and harmless */
            env_log(s->env, TARN_LOG_WARN, "sink", "cleanup", "%s", err.message);
        }
    }
    buf_release(&s->spent);
    arena_release(&s->arena);
    env_free(s->env, s);
}

tarn_str sink_state_id(const sink_state *s) {
    return s->who.sink_id;
}

tarn_str sink_state_operator(const sink_state *s) {
    return s->who.operator_id;
}

int64_t sink_state_epoch(const sink_state *s) {
    return s->epoch;
}

bool sink_state_is_in(const sink_state *s, const tarn_store *store) {
    return s->store == store;
}

/* ---- what lies in the folder ---- */

typedef struct name_list {
    tarn_arena *arena;
    tarn_str *names;
    size_t count, cap;
} name_list;

static tarn_code add_name(void *ctx, tarn_str name, const store_stat_info *info, tarn_error *err) {
    name_list *list = ctx;
    if (info == NULL) {
        return TARN_OK; /* a folder: the key index */
    }
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 32 : list->cap * 2;
        tarn_str *names =
            arena_grow(list->arena, list->names, list->cap * sizeof *names, cap * sizeof *names);
        if (names == NULL) {
            return err_nomem(err);
        }
        list->names = names;
        list->cap = cap;
    }
    list->names[list->count] = arena_str(list->arena, name);
    return list->names[list->count++].data != NULL ? TARN_OK : err_nomem(err);
}

/* "PREFIX-N" or "PREFIX-N-M"; false: another name. */
static bool parse_name(tarn_str name, const char *prefix, int64_t *first, int64_t *second) {
    tarn_str piece;
    if (!str_starts_with(name, str_of(prefix))) {
        return false;
    }
    tarn_str rest = str_from(name, strlen(prefix));
    if (!str_split(&rest, '-', &piece) || !str_to_i64(piece, first) || *first < 0) {
        return false;
    }
    if (second == NULL) {
        return rest.data == NULL || rest.len == 0;
    }
    return rest.len > 0 && str_to_i64(rest, second) && *second >= 0;
}

static tarn_code list_names(sink_state *s, tarn_arena *arena, name_list *list, tarn_error *err) {
    memset(list, 0, sizeof *list);
    list->arena = arena;
    return store_list_folder(s->store, s->dir, add_name, list, err);
}

static void discard(sink_state *s, tarn_arena *arena, tarn_str name) {
    char *path = store_join(arena, s->dir, name);
    if (path != NULL) {
        store_discard(s->store, str_of(path));
    }
}

/* Who it is goes last: without it the folder is as good as new. */
void sink_state_remove(sink_state *s) {
    static const char *const known[] = {"checkpoint-", "committed-", "epoch-", "key", "sink"};
    tarn_arena arena;
    name_list list;
    tarn_error err = TARN_ERROR_INIT;
    arena_init(&arena, s->env);
    tarn_code code = sink_state_check(s, &err); /* another's by now? */
    code = code == TARN_OK ? list_names(s, &arena, &list, &err) : code;
    for (size_t k = 0; code == TARN_OK && k < sizeof known / sizeof *known; k++) {
        bool numbered = known[k][strlen(known[k]) - 1] == '-';
        for (size_t i = 0; i < list.count; i++) {
            if (numbered ? str_starts_with(list.names[i], str_of(known[k]))
                         : str_is(list.names[i], known[k])) {
                discard(s, &arena, list.names[i]);
            }
        }
    }
    if (code == TARN_OK) {
        store_discard_folder(s->store, s->dir); /* where there is no key index */
    }
    arena_release(&arena);
    buf_reset(&s->spent);
    sink_state_close(s);
}

tarn_code state_has_rows(sink_state *s, tarn_arena *arena, bool *out, tarn_error *err) {
    name_list list;
    tarn_code code = list_names(s, arena, &list, err);
    *out = false;
    for (size_t i = 0; code == TARN_OK && i < list.count; i++) {
        int64_t first;
        int64_t second;
        *out = *out || parse_name(list.names[i], "checkpoint-", &first, &second) ||
               parse_name(list.names[i], "committed-", &first, &second);
    }
    return code;
}

static int64_t highest(const name_list *list, const char *prefix) {
    int64_t max = -1;
    for (size_t i = 0; i < list->count; i++) {
        int64_t n;
        if (parse_name(list->names[i], prefix, &n, NULL) && n > max) {
            max = n;
        }
    }
    return max;
}

/* Removes the numbered files below `below`. */
static void discard_below(sink_state *s, tarn_arena *arena, const name_list *list,
                          const char *prefix, int64_t below) {
    for (size_t i = 0; i < list->count; i++) {
        int64_t n;
        if (parse_name(list->names[i], prefix, &n, NULL) && n < below) {
            discard(s, arena, list->names[i]);
        }
    }
}

static tarn_code take_epoch(sink_state *s, tarn_arena *arena, int64_t least, tarn_error *err) {
    tarn_code code = TARN_OK;
    name_list list;
    char name[64];
    char *path;
    TRY(list_names(s, arena, &list, err));
    int64_t epoch = highest(&list, "epoch-") + 1;
    epoch = epoch < least ? least : epoch;
    epoch = epoch < 1 ? 1 : epoch;
    for (int tries = 0;; tries++, epoch++) {
        (void)snprintf(name, sizeof name, "epoch-%08" PRId64, epoch);
        TRY(state_path(s, arena, name, &path, err));
        code = state_document_put(s, path, STORE_CREATE, STR("{}"), err);
        if (code != TARN_CONFLICT || tries >= EPOCH_TRIES) {
            break;
        }
        err_reset(err);
    }
    if (code == TARN_OK) {
        s->epoch = epoch;
        discard_below(s, arena, &list, "epoch-", epoch);
    }
done:
    return code;
}

tarn_code sink_state_check(sink_state *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    name_list list;
    arena_init(&arena, s->env);
    TRY(list_names(s, &arena, &list, err));
    int64_t newest = highest(&list, "epoch-");
    if (newest > s->epoch) {
        code = err_set(err, TARN_DENIED,
                       "sink %.*s was taken over: another job with state %.*s began as number "
                       "%" PRId64 " after this one, number %" PRId64,
                       STR_ARG(s->who.sink_id), STR_ARG(s->dir), newest, s->epoch);
    }
done:
    arena_release(&arena);
    return code;
}

/* ---- deltas ---- */

sink_pending *sink_pending_new(tarn_env *env) {
    sink_pending *p = env_calloc(env, 1, sizeof *p);
    if (p != NULL) {
        arena_init(&p->arena, env);
    }
    return p;
}

void sink_pending_free(sink_pending *p) {
    if (p != NULL) {
        tarn_env *env = p->arena.env;
        arena_release(&p->arena);
        env_free(env, p);
    }
}

static void insert_pending(sink_pending **list, sink_pending *p) {
    while (*list != NULL && ((*list)->delta.checkpoint < p->delta.checkpoint ||
                             ((*list)->delta.checkpoint == p->delta.checkpoint &&
                              (*list)->delta.epoch < p->delta.epoch))) {
        list = &(*list)->next;
    }
    p->next = *list;
    *list = p;
}

static tarn_code read_delta(sink_state *s, tarn_str name, const tarn_metadata *m,
                            sink_pending **list, tarn_error *err) {
    tarn_code code = TARN_OK;
    char *path;
    json_value *json;
    sink_pending *p = sink_pending_new(s->env);
    if (p == NULL) {
        return err_nomem(err);
    }
    path = store_join(&p->arena, s->dir, name);
    if (path == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(state_document_get(s, &p->arena, path, &json, err));
    TRY(delta_read(&p->arena, &s->who, json, m, path, &p->delta, err));
    insert_pending(list, p);
    p = NULL;
done:
    sink_pending_free(p);
    return code;
}

/* ---- spent files ---- */

static tarn_code spent_path(sink_state *s, tarn_arena *arena, const spent_file *file, char **out,
                            tarn_error *err) {
    char name[96];
    (void)snprintf(name, sizeof name,
                   file->is_delta ? "checkpoint-%012" PRId64 "-%08" PRId64
                                  : "committed-%08" PRId64 "-%012" PRId64,
                   file->first, file->second);
    return state_path(s, arena, name, out, err);
}

static spent_file delta_file(const sink_delta *delta) {
    return (spent_file){true, delta->checkpoint, delta->epoch};
}

static void spend(sink_state *s, const spent_file *file) {
    if (buf_append(&s->spent, file, sizeof *file, NULL) != TARN_OK) {
        env_log(s->env, TARN_LOG_WARN, "sink", "cleanup", "a file of the state is left over");
    }
}

static void discard_spent(sink_state *s) {
    tarn_arena arena;
    tarn_error ignored = TARN_ERROR_INIT;
    arena_init(&arena, s->env);
    for (size_t at = 0; at < s->spent.len; at += sizeof(spent_file)) {
        spent_file file;
        char *path;
        memcpy(&file, s->spent.data + at, sizeof file);
        if (spent_path(s, &arena, &file, &path, &ignored) == TARN_OK) {
            store_discard(s->store, str_of(path));
        }
    }
    s->spent.len = 0;
    arena_release(&arena);
}

/* ---- what is committed ---- */

static tarn_code read_note(sink_state *s, const spent_file *note, sink_committed *out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    char *path;
    json_value *json;
    TRY(spent_path(s, &s->arena, note, &path, err));
    TRY(state_document_get(s, &s->arena, path, &json, err));
    if (!json_i64(json_get(json, "checkpoint"), &out->checkpoint) ||
        !json_i64(json_get(json, "snapshot-id"), &out->snapshot_id)) {
        return damaged(path, "it does not say what was committed", err);
    }
    (void)json_str(json_get(json, "offsets"), &out->offsets);
    (void)json_i64(json_get(json, "epoch"), &out->epoch);
done:
    return code;
}

static bool is_newer(const spent_file *a, const spent_file *b) {
    return a->first != b->first ? a->first > b->first : a->second > b->second;
}

/* The newest note below `below` (NULL: of all). */
static bool find_note(const name_list *list, const spent_file *below, spent_file *out) {
    bool found = false;
    for (size_t i = 0; i < list->count; i++) {
        spent_file f = {false, 0, 0};
        if (parse_name(list->names[i], "committed-", &f.first, &f.second) &&
            (below == NULL || is_newer(below, &f)) && (!found || is_newer(&f, out))) {
            *out = f;
            found = true;
        }
    }
    return found;
}

static bool has_delta(const name_list *list, int64_t checkpoint) {
    for (size_t i = 0; i < list->count; i++) {
        int64_t n;
        int64_t epoch;
        if (parse_name(list->names[i], "checkpoint-", &n, &epoch) && n == checkpoint) {
            return true;
        }
    }
    return false;
}

/* A note need not have survived a power cut whole: then its delta did (invariant 2), and the table
 * says what became of that. A damaged note without its delta is damage. */
static tarn_code read_committed(sink_state *s, const name_list *list, sink_committed *out,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    spent_file note = {false, 0, 0};
    bool more = find_note(list, NULL, &note);
    memset(out, 0, sizeof *out);
    out->snapshot_id = TARN_NO_SNAPSHOT;
    while (more) {
        spent_file older;
        bool has_older = find_note(list, &note, &older);
        if (s->has_note) {
            spend(s, &note);
        } else {
            code = read_note(s, &note, out, err);
            if (code == TARN_CORRUPT && has_delta(list, note.second)) {
                err_reset(err);
                memset(out, 0, sizeof *out);
                out->snapshot_id = TARN_NO_SNAPSHOT;
                spend(s, &note);
                code = TARN_OK;
            } else {
                s->note = note;
                s->has_note = true;
            }
            TRY(code);
        }
        note = older;
        more = has_older;
    }
done:
    return code;
}

tarn_code sink_state_begin(sink_state *s, int64_t least, const tarn_metadata *m,
                           sink_committed *committed, sink_pending **pending, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    name_list list;
    sink_pending *all = NULL;
    arena_init(&arena, s->env);
    TRY(take_epoch(s, &arena, least, err));
    TRY(list_names(s, &arena, &list, err));
    TRY(read_committed(s, &list, committed, err));
    for (size_t i = 0; i < list.count; i++) {
        int64_t checkpoint;
        int64_t epoch;
        if (parse_name(list.names[i], "checkpoint-", &checkpoint, &epoch)) {
            TRY(read_delta(s, list.names[i], m, &all, err));
        }
    }
    *pending = all;
    all = NULL;
done:
    while (all != NULL) {
        sink_pending *next = all->next;
        sink_pending_free(all);
        all = next;
    }
    arena_release(&arena);
    return code;
}

/* Its name comes with the sync, so that it is not seen before what it names is durable, where both
 * lie in one store. */
tarn_code sink_state_put(sink_state *s, const sink_delta *delta, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_buf body;
    char *path;
    const spent_file file = delta_file(delta);
    arena_init(&arena, s->env);
    buf_init(&body, s->env, MAX_DOCUMENT_BYTES - HEAD_BYTES);
    TRY(delta_write(&s->who, delta, &body, err));
    TRY(spent_path(s, &arena, &file, &path, err));
    /* Replaced where an attempt before had its answer lost. */
    TRY(state_document_put(s, path, STORE_REPLACE_LATER, buf_str(&body), err));
done:
    buf_release(&body);
    arena_release(&arena);
    return code;
}

tarn_code sink_state_sync(sink_state *s, tarn_error *err) {
    tarn_code code = store_sync(s->store, err);
    if (code == TARN_OK) {
        discard_spent(s);
    }
    return code;
}

tarn_code sink_state_commit(sink_state *s, const sink_committed *committed, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_buf body;
    json_writer w;
    char *path;
    const spent_file note = {false, s->epoch, committed->checkpoint};
    arena_init(&arena, s->env);
    buf_init(&body, s->env, 0);
    json_begin(&w, &body, false, err);
    json_put_object(&w);
    json_member_i64(&w, "checkpoint", committed->checkpoint);
    json_member_i64(&w, "snapshot-id", committed->snapshot_id);
    json_member_i64(&w, "epoch", committed->epoch);
    if (committed->offsets.data != NULL) {
        json_member_str(&w, "offsets", committed->offsets);
    }
    json_end_object(&w);
    TRY(json_end(&w));
    TRY(spent_path(s, &arena, &note, &path, err));
    code = state_document_put(s, path, STORE_CREATE_LATER, buf_str(&body), err);
    if (code == TARN_CONFLICT) { /* ours: an attempt before had its answer lost */
        err_reset(err);
        code = TARN_OK;
    }
    TRY(code);
    if (s->has_note && is_newer(&note, &s->note)) {
        spend(s, &s->note);
    }
    s->note = note;
    s->has_note = true;
done:
    buf_release(&body);
    arena_release(&arena);
    return code;
}

void sink_state_done(sink_state *s, const sink_delta *delta) {
    const spent_file file = delta_file(delta);
    spend(s, &file);
}

tarn_code sink_state_drop(sink_state *s, const sink_delta *delta, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_error unsynced = TARN_ERROR_INIT;
    char *path;
    const spent_file file = delta_file(delta);
    arena_init(&arena, s->env);
    TRY(spent_path(s, &arena, &file, &path, err));
    /* It may wait for its name, which must not come later; after a failed sync none ever does. */
    if (store_sync(s->store, &unsynced) != TARN_OK) {
        env_log(s->env, TARN_LOG_WARN, "sink", "cleanup", "%s", unsynced.message);
    }
    code = store_remove(s->store, str_of(path), err);
    if (code == TARN_NOT_FOUND) {
        err_reset(err);
        code = TARN_OK;
    }
done:
    arena_release(&arena);
    return code;
}
