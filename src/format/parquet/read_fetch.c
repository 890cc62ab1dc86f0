/* format/parquet/read_fetch.c - the bytes of a row group: whole chunks, or the pages that hold the
 * wanted rows, in few reads.
 *
 * Ranges that lie close together are read as one; sources that can be pointed into are not copied.
 * All offsets come from the chunk's metadata and its offset index and are checked against the file.
 */
#include "base/pool.h"
#include "format/parquet/parquet_read_int.h"

#include <stdlib.h>

/* A gap is cheaper to read than another request, up to here; a read does not grow beyond the other.
 */
#define JOIN_GAP_BYTES  (64 << 10)
#define JOIN_MOST_BYTES (64 << 20)
/* Some old writers forgot the dictionary page's header when they summed a chunk's size
 * (PARQUET-816). */
#define SLACK_BYTES 100

typedef struct want {
    int64_t start, len;
    read_segment *segment;
} want;

typedef struct wants {
    tarn_arena *arena;
    want *items;
    size_t n, cap;
} wants;

static tarn_code bad_chunk(const parquet_file *file, int32_t group, int32_t leaf, tarn_error *err,
                           const char *what, int64_t start, int64_t len) {
    return err_set(err, TARN_CORRUPT,
                   "%s: column %.*s of row group %d had %s at %lld of %lld bytes in a file of %lld",
                   file->source->name, STR_ARG(file->schema->leaves[leaf].path), group, what,
                   (long long)start, (long long)len, (long long)file->source->size_bytes);
}

static bool inside(const parquet_file *file, int64_t start, int64_t len) {
    return start >= 4 && len >= 0 && start <= file->source->size_bytes &&
           len <= file->source->size_bytes - start;
}

tarn_code chunk_bounds(const parquet_file *file, int32_t group, int32_t leaf, int64_t *start,
                       int64_t *len, tarn_error *err) {
    const parquet_column_meta *meta = &file->footer.row_groups[group].columns[leaf].meta;
    *start = meta->data_page_offset;
    *len = meta->total_compressed_size;
    if (THRIFT_HAS(meta, PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET) &&
        meta->dictionary_page_offset >= 4 && meta->dictionary_page_offset < *start) {
        *start = meta->dictionary_page_offset;
    }
    return inside(file, *start, *len) ? TARN_OK
                                      : bad_chunk(file, group, leaf, err, "pages", *start, *len);
}

/* NULL: the bytes have to be read. */
static const uint8_t *bytes_at_hand(const parquet_file *file, int64_t start, int64_t len) {
    io_source *source = file->source;
    if (start >= file->tail_start) {
        return file->tail + (start - file->tail_start);
    }
    return source->peek != NULL ? source->peek(source, start, (size_t)len) : NULL;
}

tarn_code file_bytes(const parquet_file *file, int64_t start, int64_t len, tarn_arena *arena,
                     const uint8_t **out, tarn_error *err) {
    const uint8_t *bytes = bytes_at_hand(file, start, len);
    if (bytes == NULL) {
        uint8_t *copy = arena_alloc(arena, (size_t)len + 16);
        if (copy == NULL) {
            return err_nomem(err);
        }
        tarn_code code = io_read_at(file->source, start, copy, (size_t)len, err);
        if (code != TARN_OK) {
            return code;
        }
        memset(copy + len, 0, 16);
        bytes = copy;
    }
    *out = bytes;
    return TARN_OK;
}

static bool index_is_sound(const parquet_file *file, const parquet_offset_index *index,
                           int64_t rows) {
    for (int32_t i = 0; i < index->n_pages; i++) {
        const parquet_page_location *p = &index->pages[i];
        const parquet_page_location *before = i > 0 ? p - 1 : NULL;
        if (!inside(file, p->offset, p->compressed_page_size) || p->first_row_index > rows ||
            (before == NULL ? p->first_row_index != 0
                            : p->first_row_index < before->first_row_index ||
                                  p->offset < before->offset + before->compressed_page_size)) {
            return false;
        }
    }
    return true;
}

tarn_code chunk_offset_index(const parquet_file *file, int32_t group, int32_t leaf,
                             tarn_arena *arena, const parquet_offset_index **out, tarn_error *err) {
    const parquet_row_group *g = &file->footer.row_groups[group];
    const parquet_chunk *chunk = &g->columns[leaf];
    const int64_t start = chunk->offset_index_offset, len = chunk->offset_index_length;
    const uint8_t *bytes = NULL;
    *out = NULL;
    if (!THRIFT_HAS(chunk, PARQUET_CHUNK_OFFSET_INDEX_OFFSET) ||
        !THRIFT_HAS(chunk, PARQUET_CHUNK_OFFSET_INDEX_LENGTH) || len <= 0) {
        return TARN_OK;
    }
    if (!inside(file, start, len)) {
        return bad_chunk(file, group, leaf, err, "an offset index", start, len);
    }
    parquet_offset_index *index = ARENA_NEW(arena, parquet_offset_index);
    if (index == NULL) {
        return err_nomem(err);
    }
    tarn_code code = file_bytes(file, start, len, arena, &bytes, err);
    if (code == TARN_OK) {
        code = thrift_decode(arena, &parquet_offset_index_thrift, str_make(bytes, (size_t)len),
                             "offset index", index, NULL, err);
    }
    if (code == TARN_OK && !index_is_sound(file, index, g->num_rows)) {
        code = bad_chunk(file, group, leaf, err, "a contradictory offset index", start, len);
    }
    if (code == TARN_OK && index->n_pages > 0) {
        *out = index;
    }
    return code;
}

static tarn_code add_want(wants *w, int64_t start, int64_t len, read_segment *segment,
                          tarn_error *err) {
    if (w->n == w->cap) {
        const size_t cap = w->cap > 0 ? w->cap * 2 : 32;
        want *items = arena_grow(w->arena, w->items, w->cap * sizeof *items, cap * sizeof *items);
        if (items == NULL) {
            return err_nomem(err);
        }
        w->items = items;
        w->cap = cap;
    }
    w->items[w->n++] = (want){start, len, segment};
    return TARN_OK;
}

/* The pages of one column that hold rows of the runs, as segments of pages that lie together. */
static tarn_code want_pages(read_column *c, const parquet_offset_index *index, const read_run *runs,
                            size_t n_runs, int64_t chunk_start, wants *w, tarn_error *err) {
    const int64_t rows = c->file->footer.row_groups[c->group].num_rows;
    read_segment *segments = ARENA_ARRAY(w->arena, read_segment, (size_t)index->n_pages);
    if (segments == NULL) {
        return err_nomem(err);
    }
    int32_t n = 0;
    size_t run = 0;
    int64_t end = -1; /* where the last segment ends in the file */
    for (int32_t i = 0; i < index->n_pages; i++) {
        const parquet_page_location *p = &index->pages[i];
        const int64_t last = i + 1 < index->n_pages ? p[1].first_row_index : rows;
        while (run < n_runs && runs[run].end <= p->first_row_index) {
            run++;
        }
        if (run == n_runs) {
            break;
        }
        if (runs[run].start >= last) {
            continue;
        }
        if (p->offset != end) {
            segments[n++] = (read_segment){.offset = p->offset, .first_row = p->first_row_index};
        }
        segments[n - 1].len += (size_t)p->compressed_page_size;
        end = p->offset + p->compressed_page_size;
    }
    c->segments = segments;
    c->n_segments = n;
    c->indexed = true;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < n && code == TARN_OK; i++) {
        code = add_want(w, segments[i].offset, (int64_t)segments[i].len, &segments[i], err);
    }
    if (code == TARN_OK && chunk_start < index->pages[0].offset) {
        c->dictionary_bytes.len = (size_t)(index->pages[0].offset - chunk_start);
        code =
            add_want(w, chunk_start, (int64_t)c->dictionary_bytes.len, &c->dictionary_bytes, err);
    }
    return code;
}

static tarn_code want_column(read_column *c, const read_run *runs, size_t n_runs, bool whole,
                             wants *w, tarn_error *err) {
    int64_t start = 0, len = 0;
    const parquet_offset_index *index = NULL;
    tarn_code code = chunk_bounds(c->file, c->group, c->index, &start, &len, err);
    if (code == TARN_OK && !whole) {
        code = chunk_offset_index(c->file, c->group, c->index, w->arena, &index, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    if (index != NULL) {
        return want_pages(c, index, runs, n_runs, start, w, err);
    }
    read_segment *segment = ARENA_NEW(w->arena, read_segment);
    if (segment == NULL) {
        return err_nomem(err);
    }
    const int64_t after = c->file->source->size_bytes - start - len;
    len += after < SLACK_BYTES ? after : SLACK_BYTES;
    segment->offset = start;
    segment->len = (size_t)len;
    c->segments = segment;
    c->n_segments = 1;
    return add_want(w, start, len, segment, err);
}

static int by_start(const void *a, const void *b) {
    const want *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* One request: wants [first, next) and the memory for their bytes. */
typedef struct request {
    const parquet_file *file;
    int64_t start, len;
    uint8_t *bytes;
} request;

static tarn_code run_request(void *ctx, size_t index, tarn_error *err) {
    const request *r = (const request *)ctx + index;
    return io_read_at(r->file->source, r->start, r->bytes, (size_t)r->len, err);
}

/* The wants from i on that are read as one; *len is how much that is. */
static size_t join_wants(const wants *w, size_t i, int64_t *len) {
    const int64_t start = w->items[i].start;
    int64_t end = start + w->items[i].len;
    size_t next = i + 1;
    for (; next < w->n; next++) {
        const want *more = &w->items[next];
        const int64_t new_end = more->start + more->len;
        if (more->start > end + JOIN_GAP_BYTES ||
            (new_end - start > JOIN_MOST_BYTES && more->start >= end)) {
            break;
        }
        end = new_end > end ? new_end : end;
    }
    *len = end - start;
    return next;
}

/* Sets every segment's data, and lists what has to be read for it. */
static tarn_code plan_requests(const parquet_file *file, wants *w, request *requests, size_t *n,
                               tarn_error *err) {
    *n = 0;
    for (size_t i = 0; i < w->n;) {
        const int64_t start = w->items[i].start;
        int64_t len = 0;
        const size_t next = join_wants(w, i, &len);
        const uint8_t *bytes = bytes_at_hand(file, start, len);
        if (bytes == NULL) {
            uint8_t *copy = arena_alloc(w->arena, (size_t)len + 16);
            if (copy == NULL) {
                return err_nomem(err);
            }
            memset(copy + len, 0, 16);
            requests[(*n)++] = (request){file, start, len, copy};
            bytes = copy;
        }
        for (; i < next; i++) {
            w->items[i].segment->data = bytes + (w->items[i].start - start);
        }
    }
    return TARN_OK;
}

/* Requests go out together: a store far away answers them side by side. */
static tarn_code read_wants(const parquet_file *file, wants *w, tarn_error *err) {
    size_t n = 0;
    if (w->n == 0) {
        return TARN_OK;
    }
    qsort(w->items, w->n, sizeof *w->items, by_start);
    request *requests = ARENA_ARRAY(w->arena, request, w->n);
    if (requests == NULL) {
        return err_nomem(err);
    }
    tarn_code code = plan_requests(file, w, requests, &n, err);
    if (code != TARN_OK || n == 0) {
        return code;
    }
    return n == 1 ? run_request(requests, 0, err)
                  : pool_for(file->env, n, run_request, requests, err);
}

tarn_code fetch_group(const parquet_file *file, read_column *columns, int32_t n_columns,
                      const read_run *runs, size_t n_runs, tarn_arena *arena, tarn_error *err) {
    wants w = {.arena = arena};
    int64_t rows = 0;
    for (size_t i = 0; i < n_runs; i++) {
        rows += runs[i].end - runs[i].start;
    }
    const bool whole = n_columns > 0 && rows == file->footer.row_groups[columns[0].group].num_rows;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < n_columns && code == TARN_OK; i++) {
        code = want_column(&columns[i], runs, n_runs, whole, &w, err);
    }
    return code == TARN_OK ? read_wants(file, &w, err) : code;
}
