/* dml/key_runs.c - see key_runs.h.
 *
 *   add -> records (memory) -> sorted, in parts side by side on the pool -> runs (file)
 *   merge: runs -> cursors, each with a piece of its run -> heap -> fn
 *
 * A record of a run is the length of the key, the key, file and position, numbers as varints. */
#include "dml/key_runs.h"

#include "base/num.h"
#include "base/pool.h"

#define MERGED_AT_ONCE   64
#define PART_KEYS        65536 /* fewer are not worth another thread */
#define MOST_PARTS       4
#define LEAST_PIECE      ((size_t)4096)
#define MOST_PIECE       ((size_t)1 << 20)
#define MOST_RECORD_HEAD 25 /* three varints: of 32, 32 and 64 bits */

typedef struct record_head {
    key_location location;
    uint32_t len;
} record_head;

void key_runs_init(key_runs *r, tarn_env *env, size_t memory_bytes) {
    memset(r, 0, sizeof *r);
    r->env = env;
    r->memory_bytes = memory_bytes;
    buf_init(&r->records, env, 0);
    buf_init(&r->first, env, 0);
}

void key_runs_release(key_runs *r) {
    buf_release(&r->records);
    buf_release(&r->first);
    store_temp_free(r->file);
    if (r->runs != NULL) {
        env_free(r->env, r->runs);
    }
    memset(r, 0, sizeof *r);
}

/* As key_item_set, but what all keys begin with is left out of the prefix. */
static void set_item(const key_runs *r, key_item *item, tarn_str key, uint32_t index) {
    key_item_set(item, str_from(key, r->first.len), index);
    item->key = (const uint8_t *)key.data;
    item->len = (uint32_t)key.len;
}

/* ---- writing runs ---- */

typedef struct run_writer {
    key_runs *runs;
    key_run run;
    tarn_buf piece;
    size_t piece_bytes;
} run_writer;

static size_t piece_of(size_t memory, size_t n) {
    size_t piece = memory / n;
    piece = piece < LEAST_PIECE ? LEAST_PIECE : piece;
    return piece > MOST_PIECE ? MOST_PIECE : piece;
}

static tarn_code writer_open(run_writer *w, key_runs *r, int32_t level, tarn_error *err) {
    memset(w, 0, sizeof *w);
    w->runs = r;
    w->piece_bytes = piece_of(r->memory_bytes, 64);
    buf_init(&w->piece, r->env, 0);
    if (r->file == NULL) {
        tarn_code code = store_temp_new(r->env, &r->file, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    w->run.at = store_temp_bytes(r->file);
    w->run.level = level;
    return TARN_OK;
}

static tarn_code writer_flush(run_writer *w, tarn_error *err) {
    tarn_code code = store_temp_append(w->runs->file, w->piece.data, w->piece.len, err);
    w->run.crc = num_crc32(w->run.crc, w->piece.data, w->piece.len);
    w->run.bytes += (int64_t)w->piece.len;
    buf_reset(&w->piece);
    return code;
}

static tarn_code writer_add(void *ctx, tarn_str key, key_location location, tarn_error *err) {
    run_writer *w = ctx;
    tarn_code code = TARN_OK;
    TRY(buf_reserve(&w->piece, key.len + MOST_RECORD_HEAD, err));
    uint8_t *to = w->piece.data + w->piece.len;
    to += num_put_uvarint(to, key.len);
    if (key.len > 0) {
        memcpy(to, key.data, key.len);
    }
    to += key.len;
    to += num_put_uvarint(to, (uint64_t)location.file);
    to += num_put_uvarint(to, (uint64_t)location.position);
    w->piece.len = (size_t)(to - w->piece.data);
    if (w->piece.len >= w->piece_bytes) {
        code = writer_flush(w, err);
    }
done:
    return code;
}

static tarn_code push_run(key_runs *r, const key_run *run, tarn_error *err) {
    if (r->n_runs == r->cap_runs) {
        size_t cap = r->cap_runs == 0 ? 16 : r->cap_runs * 2;
        key_run *runs = env_realloc(r->env, r->runs, cap * sizeof *runs);
        if (runs == NULL) {
            return err_nomem(err);
        }
        r->runs = runs;
        r->cap_runs = cap;
    }
    r->runs[r->n_runs++] = *run;
    return TARN_OK;
}

/* ---- merging ---- */

typedef struct run_cursor {
    key_runs *runs;
    key_item item; /* the record at hand */
    key_location location;
    tarn_buf piece;
    size_t at; /* the next record in it */
    int64_t next, left;
    uint32_t crc;
} run_cursor;

static bool parse_record(run_cursor *c) {
    const uint8_t *p = c->piece.data + c->at;
    const uint8_t *end = c->piece.data + c->piece.len;
    uint64_t len;
    uint64_t file;
    uint64_t position;
    if (!num_get_uvarint(&p, end, &len) || len > (uint64_t)(end - p)) {
        return false;
    }
    tarn_str key = str_make(p, (size_t)len);
    p += len;
    if (!num_get_uvarint(&p, end, &file) || !num_get_uvarint(&p, end, &position)) {
        return false;
    }
    set_item(c->runs, &c->item, key, c->item.index);
    c->location = (key_location){(int32_t)file, (int64_t)position};
    c->at = (size_t)(p - c->piece.data);
    return true;
}

/* More of the run behind the rest of the piece, which grows where a record does not fit in. */
static tarn_code read_more(run_cursor *c, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t rest = c->piece.len - c->at;
    memmove(c->piece.data, c->piece.data + c->at, rest);
    c->piece.len = rest;
    c->at = 0;
    if (rest == c->piece.cap) {
        TRY(buf_reserve(&c->piece, rest, err));
    }
    size_t some = c->piece.cap - rest;
    some = (int64_t)some < c->left ? some : (size_t)c->left;
    TRY(store_temp_read(c->runs->file, c->next, c->piece.data + rest, some, err));
    c->crc = num_crc32(c->crc, c->piece.data + rest, some);
    c->piece.len += some;
    c->next += (int64_t)some;
    c->left -= (int64_t)some;
done:
    return code;
}

/* *more false: that was the last record. */
static tarn_code next_record(run_cursor *c, bool *more, tarn_error *err) {
    tarn_code code = TARN_OK;
    *more = true;
    while (!parse_record(c)) {
        if (c->left == 0) {
            *more = false;
            break;
        }
        TRY(read_more(c, err));
    }
    const key_run *run = &c->runs->runs[c->item.index];
    if (!*more && (c->at != c->piece.len || c->crc != run->crc)) {
        code = err_set(err, TARN_CORRUPT, "keys in a temporary file are not what was written");
    }
done:
    return code;
}

static void sift(run_cursor **heap, size_t at, size_t n) {
    run_cursor *c = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < n && key_item_less(&heap[child + 1]->item, &heap[child]->item)) {
            child++;
        }
        if (child >= n || !key_item_less(&heap[child]->item, &c->item)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = c;
}

static tarn_code merge_cursors(run_cursor **heap, size_t n, key_runs_fn fn, void *ctx,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    bool more;
    for (size_t i = n / 2; i-- > 0;) {
        sift(heap, i, n);
    }
    while (n > 0) {
        run_cursor *c = heap[0];
        TRY(fn(ctx, str_make(c->item.key, c->item.len), c->location, err));
        TRY(next_record(c, &more, err));
        if (!more) {
            heap[0] = heap[--n];
        }
        if (n > 0) {
            sift(heap, 0, n);
        }
    }
done:
    return code;
}

static tarn_code merge_runs(key_runs *r, size_t first, key_runs_fn fn, void *ctx, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = r->n_runs - first;
    size_t opened = 0;
    size_t alive = 0;
    run_cursor *cursors = env_calloc(r->env, n + 1, sizeof *cursors);
    run_cursor **heap = env_calloc(r->env, n + 1, sizeof(run_cursor *));
    if (cursors == NULL || heap == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (; opened < n; opened++) {
        const key_run *run = &r->runs[first + opened];
        run_cursor *c = &cursors[opened];
        bool more;
        c->runs = r;
        c->item.index = (uint32_t)(first + opened); /* of equal keys, the earlier run's is first */
        c->next = run->at;
        c->left = run->bytes;
        buf_init(&c->piece, r->env, 0);
        TRY(buf_reserve(&c->piece, piece_of(r->memory_bytes / 2, n), err));
        TRY(next_record(c, &more, err));
        if (more) {
            heap[alive++] = c;
        }
    }
    TRY(merge_cursors(heap, alive, fn, ctx, err));
done:
    for (size_t i = 0; cursors != NULL && i < n; i++) {
        buf_release(&cursors[i].piece);
    }
    env_free(r->env, cursors);
    env_free(r->env, heap);
    return code;
}

/* Many runs of one level become one of the next. */
static tarn_code merge_level(key_runs *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t first = r->n_runs - MERGED_AT_ONCE;
    run_writer w;
    TRY(writer_open(&w, r, r->runs[first].level + 1, err));
    TRY(merge_runs(r, first, writer_add, &w, err));
    TRY(writer_flush(&w, err));
    r->n_runs = first;
    TRY(push_run(r, &w.run, err));
done:
    buf_release(&w.piece);
    return code;
}

static bool level_is_full(const key_runs *r) {
    return r->n_runs >= MERGED_AT_ONCE &&
           r->runs[r->n_runs - MERGED_AT_ONCE].level == r->runs[r->n_runs - 1].level;
}

/* ---- what waits ---- */

typedef struct sort_work {
    key_item *items;
    size_t n, parts;
    uint64_t seed;
} sort_work;

static size_t part_at(const sort_work *w, size_t part) {
    return w->n / w->parts * part + (part < w->n % w->parts ? part : w->n % w->parts);
}

static tarn_code sort_part(void *ctx, size_t part, tarn_error *err) {
    const sort_work *w = ctx;
    size_t at = part_at(w, part);
    (void)err;
    key_items_sort(w->items + at, part_at(w, part + 1) - at, w->seed);
    return TARN_OK;
}

static record_head head_of(const uint8_t *record) {
    record_head head;
    memcpy(&head, record, sizeof head);
    return head;
}

static void list_items(const key_runs *r, key_item *items) {
    const uint8_t *at = r->records.data;
    for (size_t i = 0; i < r->n_waiting; i++) {
        size_t len = head_of(at).len;
        at += sizeof(record_head);
        set_item(r, &items[i], str_make(at, len), (uint32_t)i);
        at += len;
    }
}

static tarn_code write_run(key_runs *r, const key_item *items, size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    run_writer w;
    TRY(writer_open(&w, r, 0, err));
    for (size_t i = 0; i < n; i++) {
        const record_head head = head_of(items[i].key - sizeof(record_head));
        TRY(writer_add(&w, str_make(items[i].key, head.len), head.location, err));
    }
    TRY(writer_flush(&w, err));
    TRY(push_run(r, &w.run, err));
done:
    buf_release(&w.piece);
    return code;
}

static tarn_code sort_waiting(key_runs *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    sort_work work = {NULL, r->n_waiting, r->n_waiting / PART_KEYS, env_random_u64(r->env)};
    size_t most = env_threads(r->env) < MOST_PARTS ? env_threads(r->env) : MOST_PARTS;
    work.parts = work.parts < most ? work.parts : most;
    work.parts = work.parts > 0 ? work.parts : 1;
    work.items = env_alloc(r->env, r->n_waiting * sizeof *work.items);
    if (work.items == NULL) {
        return err_nomem(err);
    }
    list_items(r, work.items);
    TRY(pool_for(r->env, work.parts, sort_part, &work, err));
    for (size_t i = 0; i < work.parts; i++) {
        size_t at = part_at(&work, i);
        TRY(write_run(r, work.items + at, part_at(&work, i + 1) - at, err));
    }
    buf_reset(&r->records);
    r->n_waiting = 0;
done:
    env_free(r->env, work.items);
    return code;
}

static tarn_code write_waiting(key_runs *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (r->n_waiting > 0) {
        TRY(sort_waiting(r, err));
    }
    if (level_is_full(r)) {
        buf_release(&r->records);
    }
    while (level_is_full(r)) {
        TRY(merge_level(r, err));
    }
done:
    return code;
}

/* All keys begin with what the first of them and this one begin with. */
static tarn_code keep_common(key_runs *r, tarn_str key, tarn_error *err) {
    tarn_buf *first = &r->first;
    if (r->n == 0) {
        buf_reset(first);
        return buf_append_str(first, key, err);
    }
    first->len = first->len < key.len ? first->len : key.len;
    while (first->len > 0 && memcmp(first->data, key.data, first->len) != 0) {
        first->len--;
    }
    return TARN_OK;
}

tarn_code key_runs_add(key_runs *r, tarn_str key, key_location location, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t half = r->memory_bytes / 2; /* records; what sorting takes is the other */
    const record_head head = {location, (uint32_t)key.len};
    size_t more = sizeof head + key.len;
    if (key.len > UINT32_MAX) {
        return err_set(err, TARN_LIMIT, "a key had %zu bytes", key.len);
    }
    if (r->records.len + more > half || (r->n_waiting + 1) * sizeof(key_item) > half) {
        TRY(write_waiting(r, err));
    }
    TRY(keep_common(r, key, err));
    r->records.max = more > half ? more : half;
    TRY(buf_append(&r->records, &head, sizeof head, err));
    TRY(buf_append_str(&r->records, key, err));
    r->n_waiting++;
    r->n++;
done:
    return code;
}

tarn_code key_runs_merge(key_runs *r, key_runs_fn fn, void *ctx, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(write_waiting(r, err));
    buf_release(&r->records);
    TRY(merge_runs(r, 0, fn, ctx, err));
done:
    return code;
}
