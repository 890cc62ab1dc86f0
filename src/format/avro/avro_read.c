/* format/avro/avro_read.c - container files: the header, then block after block.
 *
 * A file is read once at open (the header) and does not change after; a scan owns everything that
 * moves: its window over the source, the unpacked block, the decoder. Every length is checked
 * against the bytes that the file has before anything is allocated for it, every sync marker is
 * compared, and errors name the file and the byte. */
#include "base/limits.h"
#include "format/avro/avro_int.h"

#define READ_BYTES       ((size_t)1 << 20)  /* drawn from a source at once */
#define HEADER_BYTES     ((size_t)64 << 10) /* first guess of a header's size */
#define HEAD_BYTES       20                 /* the most that a block's count and size take */
#define BATCH_ROWS       4096
#define BATCH_SOFT_BYTES ((size_t)32 << 20) /* of a block's data that go into one batch */

/* Part of the source in memory: a view into it where it can be peeked at, else a copy. */
typedef struct avro_window {
    io_source *source;
    uint8_t *data;
    size_t cap;
    int64_t at; /* data[0] is this byte of the source */
    size_t len;
} avro_window;

struct avro_file {
    tarn_env *env;
    tarn_arena arena;
    io_source *source;
    const uint8_t *sync;
    avro_meta *meta;
    size_t n_meta;
    tarn_str schema_json;
    codec_kind codec;
    avro_schema *schema;
    const tarn_type *type;
    int64_t data_start; /* the first block */
};

struct avro_scan {
    avro_file *file;
    tarn_arena arena;
    avro_window window;
    avro_decoder decoder;
    codec_ctx codec;
    tarn_buf block; /* unpacked */
    const tarn_type *type;
    int64_t end;        /* blocks whose sync marker begins here or later are not ours */
    int64_t batch_rows; /* at most */
    int64_t offset;     /* the next block */
    int64_t block_at;   /* the present one, for errors */
    int64_t block_rows;
    int64_t block_left; /* rows not decoded yet */
    int64_t next_row;   /* number in the file of the row after those given, where it is known */
    int64_t first_row;  /* of the batch given last */
    const uint8_t *block_data;
    tarn_code failed;
};

/* ---- window ---- */

/* The n bytes at offset, which the source must have; draws ahead bytes where it has to read. */
static tarn_code window_get(avro_window *w, int64_t offset, size_t n, size_t ahead,
                            const uint8_t **out, tarn_error *err) {
    io_source *source = w->source;
    const uint8_t *peeked = source->peek != NULL ? source->peek(source, offset, n) : NULL;
    if (peeked != NULL) {
        *out = peeked;
        return TARN_OK;
    }
    if (offset >= w->at && (uint64_t)(offset - w->at) <= w->len &&
        n <= w->len - (size_t)(offset - w->at)) {
        *out = w->data + (offset - w->at);
        return TARN_OK;
    }
    uint64_t left = (uint64_t)(source->size_bytes - offset);
    size_t want = ahead > n ? ahead : n;
    want = left < want ? (size_t)left : want;
    if (want > w->cap) {
        env_free(source->env, w->data);
        w->len = 0;
        w->cap = 0;
        w->data = env_alloc(source->env, want);
        if (w->data == NULL) {
            return err_nomem(err);
        }
        w->cap = want;
    }
    w->len = 0;
    tarn_code code = io_read_at(source, offset, w->data, want, err);
    if (code == TARN_OK) {
        w->at = offset;
        w->len = want;
        *out = w->data;
    }
    return code;
}

static void window_release(avro_window *w) {
    if (w->source != NULL) {
        env_free(w->source->env, w->data);
    }
    w->data = NULL;
}

/* ---- header ---- */

typedef enum walk_result { WALK_OK, WALK_SHORT, WALK_BAD } walk_result;

static walk_result walk_long(const uint8_t **p, const uint8_t *end, int64_t *out) {
    const uint8_t *start = *p;
    if (num_get_varint(p, end, out)) {
        return WALK_OK;
    }
    return end - start < 10 ? WALK_SHORT : WALK_BAD;
}

static walk_result walk_bytes(const uint8_t **p, const uint8_t *end, tarn_str *out) {
    int64_t len;
    walk_result result = walk_long(p, end, &len);
    if (result != WALK_OK) {
        return result;
    }
    if (len < 0 || len > (int64_t)LIMIT_METADATA_JSON_BYTES) {
        return WALK_BAD;
    }
    if (len > end - *p) {
        return WALK_SHORT;
    }
    *out = str_make(*p, (size_t)len);
    *p += len;
    return WALK_OK;
}

/* Over the metadata map; meta NULL: only counts. */
static walk_result walk_meta(const uint8_t **p, const uint8_t *end, avro_meta *meta, size_t *n) {
    *n = 0;
    for (;;) {
        int64_t count;
        int64_t size;
        walk_result result = walk_long(p, end, &count);
        if (result == WALK_OK && count < 0) {
            result = walk_long(p, end, &size);
            if (count == INT64_MIN) {
                return WALK_BAD;
            }
            count = -count;
        }
        if (result != WALK_OK || count == 0) {
            return result;
        }
        for (; count > 0; count--) {
            avro_meta one;
            result = walk_bytes(p, end, &one.key);
            if (result == WALK_OK) {
                result = walk_bytes(p, end, &one.value);
            }
            if (result != WALK_OK) {
                return result;
            }
            if (meta != NULL) {
                meta[*n] = one;
            }
            (*n)++;
        }
    }
}

static tarn_code header_damaged(const avro_file *file, const char *what, tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "%s was not a whole avro file: %s", file->source->name, what);
}

/* Finds where the header ends, drawing more of the file until it is whole. */
static tarn_code find_header(avro_file *file, avro_window *w, const uint8_t **header, size_t *len,
                             tarn_error *err) {
    int64_t size = file->source->size_bytes;
    size_t limit =
        size < (int64_t)LIMIT_METADATA_JSON_BYTES ? (size_t)size : LIMIT_METADATA_JSON_BYTES;
    size_t have = HEADER_BYTES;
    if (size < 4) {
        return header_damaged(file, "it was shorter than its first bytes", err);
    }
    for (;; have *= 4) {
        have = have < limit ? have : limit;
        const uint8_t *data = NULL;
        tarn_code code = window_get(w, 0, have, have, &data, err);
        if (code != TARN_OK) {
            return code;
        }
        if (memcmp(data, AVRO_MAGIC, 4) != 0) {
            return header_damaged(file, "it did not begin with Obj 1", err);
        }
        const uint8_t *p = data + 4;
        size_t n = 0;
        walk_result result = walk_meta(&p, data + have, NULL, &n);
        if (result == WALK_BAD) {
            return header_damaged(file, "its header's metadata were damaged", err);
        }
        if (result == WALK_OK && (size_t)(data + have - p) >= AVRO_SYNC_BYTES) {
            *header = data;
            *len = (size_t)(p - data) + AVRO_SYNC_BYTES;
            file->n_meta = n;
            return TARN_OK;
        }
        if (have == limit) {
            return limit < (size_t)size
                       ? err_set(err, TARN_LIMIT, "the header of %s was longer than %u bytes",
                                 file->source->name, LIMIT_METADATA_JSON_BYTES)
                       : header_damaged(file, "it ended within its header", err);
        }
    }
}

static tarn_code read_codec(avro_file *file, tarn_error *err) {
    tarn_str name = STR("null");
    (void)avro_file_meta(file, "avro.codec", &name);
    if (str_is(name, "null") || name.len == 0) {
        file->codec = CODEC_NONE;
    } else if (str_is(name, "deflate")) {
        file->codec = CODEC_DEFLATE;
    } else if (str_is(name, "snappy")) {
        file->codec = CODEC_SNAPPY;
    } else if (str_is(name, "zstandard") || str_is(name, "zstd")) {
        file->codec = CODEC_ZSTD;
    } else if (str_is(name, "bzip2")) {
        file->codec = CODEC_BZIP2;
    } else {
        return err_set(err, TARN_UNSUPPORTED, "%s was packed with avro codec %.*s",
                       file->source->name, STR_ARG(name));
    }
    return TARN_OK;
}

static tarn_code read_header(avro_file *file, tarn_error *err) {
    avro_window w = {.source = file->source};
    const uint8_t *data = NULL;
    size_t len = 0;
    uint8_t *copy = NULL;
    tarn_code code = TARN_OK;
    TRY(find_header(file, &w, &data, &len, err));
    copy = arena_alloc(&file->arena, len);
    file->meta = ARENA_ARRAY(&file->arena, avro_meta, file->n_meta + 1);
    if (copy == NULL || file->meta == NULL) {
        code = err_nomem(err);
        goto done;
    }
    memcpy(copy, data, len);
    const uint8_t *p = copy + 4;
    (void)walk_meta(&p, copy + len, file->meta, &file->n_meta);
    file->sync = p;
    file->data_start = (int64_t)len;
    TRY(read_codec(file, err));
    if (!avro_file_meta(file, "avro.schema", &file->schema_json)) {
        code = header_damaged(file, "its header had no avro.schema", err);
        goto done;
    }
    TRY(avro_schema_parse(&file->arena, file->schema_json, file->source->name, &file->schema, err));
    TRY(avro_type_from_schema(&file->arena, file->schema, file->source->name, &file->type, err));
done:
    window_release(&w);
    return code;
}

tarn_code avro_open(tarn_env *env, io_source *source, avro_file **out, tarn_error *err) {
    avro_file *file = env_calloc(env, 1, sizeof *file);
    if (file == NULL) {
        return err_nomem(err);
    }
    file->env = env;
    file->source = source;
    arena_init(&file->arena, env);
    tarn_code code = read_header(file, err);
    if (code != TARN_OK) {
        arena_release(&file->arena);
        env_free(env, file);
        return code;
    }
    *out = file;
    return TARN_OK;
}

void avro_close(avro_file *file) {
    if (file != NULL) {
        file->source->close(file->source);
        arena_release(&file->arena);
        env_free(file->env, file);
    }
}

const tarn_type *avro_file_type(const avro_file *file) {
    return file->type;
}

tarn_str avro_file_schema_json(const avro_file *file) {
    return file->schema_json;
}

codec_kind avro_file_codec(const avro_file *file) {
    return file->codec;
}

const char *avro_file_name(const avro_file *file) {
    return file->source->name;
}

bool avro_file_meta(const avro_file *file, const char *key, tarn_str *value) {
    for (size_t i = 0; i < file->n_meta; i++) {
        if (str_is(file->meta[i].key, key)) {
            *value = file->meta[i].value;
            return true;
        }
    }
    return false;
}

size_t avro_file_meta_count(const avro_file *file) {
    return file->n_meta;
}

void avro_file_meta_at(const avro_file *file, size_t i, tarn_str *key, tarn_str *value) {
    *key = file->meta[i].key;
    *value = file->meta[i].value;
}

/* ---- blocks ---- */

typedef struct block_head {
    int64_t rows;
    size_t size;
    int64_t data_at; /* in the file */
} block_head;

static tarn_code block_damaged(const avro_file *file, int64_t at, const char *what,
                               tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "%s was damaged at byte %lld: %s", file->source->name,
                   (long long)at, what);
}

/* Count and size of the block at offset; after it the file has size bytes and a sync marker. */
static tarn_code read_head(const avro_file *file, avro_window *w, int64_t offset, size_t ahead,
                           block_head *head, tarn_error *err) {
    int64_t left = file->source->size_bytes - offset;
    size_t n = left < HEAD_BYTES ? (size_t)left : HEAD_BYTES;
    const uint8_t *data = NULL;
    int64_t size = 0;
    tarn_code code = window_get(w, offset, n, ahead, &data, err);
    if (code != TARN_OK) {
        return code;
    }
    const uint8_t *p = data;
    if (!num_get_varint(&p, data + n, &head->rows) || !num_get_varint(&p, data + n, &size)) {
        return block_damaged(file, offset, "a block's head was not two numbers", err);
    }
    if (head->rows < 0) {
        return block_damaged(file, offset, "a block had a negative count of records", err);
    }
    left -= p - data;
    if (size < 0 || left < AVRO_SYNC_BYTES || size > left - AVRO_SYNC_BYTES) {
        return block_damaged(file, offset, "a block's size passed the end of the file", err);
    }
    if ((uint64_t)size > LIMIT_DECODE_BLOCK_BYTES) {
        return err_set(err, TARN_LIMIT, "%s had a block of %lld bytes at byte %lld, at most %llu",
                       file->source->name, (long long)size, (long long)offset,
                       (unsigned long long)LIMIT_DECODE_BLOCK_BYTES);
    }
    head->size = (size_t)size;
    head->data_at = offset + (p - data);
    return TARN_OK;
}

static tarn_code check_sync(const avro_file *file, const uint8_t *sync, int64_t at,
                            tarn_error *err) {
    return memcmp(sync, file->sync, AVRO_SYNC_BYTES) == 0
               ? TARN_OK
               : block_damaged(file, at, "a sync marker was not the file's", err);
}

/* Unpacks into scan->block; a block that is not packed is used where it lies. */
static tarn_code unpack_block(avro_scan *scan, tarn_str packed, tarn_str *out, tarn_error *err) {
    const avro_file *file = scan->file;
    tarn_code code = TARN_OK;
    if (file->codec == CODEC_NONE) {
        *out = packed;
        return TARN_OK;
    }
    size_t crc_bytes = file->codec == CODEC_SNAPPY ? 4 : 0;
    if (packed.len < crc_bytes) {
        return block_damaged(file, scan->block_at, "a block had no checksum", err);
    }
    tarn_str body = str_sub(packed, 0, packed.len - crc_bytes);
    buf_reset(&scan->block);
    code = codec_decompress_buf(&scan->codec, file->codec, body, &scan->block, err);
    if (code != TARN_OK) {
        return err_add(err, code, "%s, block at byte %lld", file->source->name,
                       (long long)scan->block_at);
    }
    *out = buf_str(&scan->block);
    if (crc_bytes > 0 &&
        num_crc32(0, out->data, out->len) != num_load_be32(packed.data + body.len)) {
        return block_damaged(file, scan->block_at, "a block's checksum was wrong", err);
    }
    return TARN_OK;
}

/* Makes the next block of our range the present one; *more false: there is none. */
static tarn_code next_block(avro_scan *scan, bool *more, tarn_error *err) {
    const avro_file *file = scan->file;
    block_head head;
    tarn_str data = STR_NULL;
    const uint8_t *packed = NULL;
    tarn_code code = TARN_OK;
    *more = scan->offset < file->source->size_bytes && scan->offset - AVRO_SYNC_BYTES < scan->end;
    if (!*more) {
        return TARN_OK;
    }
    TRY(env_check_cancel(file->env, err));
    scan->block_at = scan->offset;
    TRY(read_head(file, &scan->window, scan->offset, READ_BYTES, &head, err));
    TRY(window_get(&scan->window, head.data_at, head.size + AVRO_SYNC_BYTES, READ_BYTES, &packed,
                   err));
    int64_t sync_at = head.data_at + (int64_t)head.size;
    TRY(check_sync(file, packed + head.size, sync_at, err));
    TRY(unpack_block(scan, str_make(packed, head.size), &data, err));
    size_t least = scan->decoder.min_bytes;
    uint64_t most = least > 0 ? data.len / least : AVRO_EMPTY_ITEMS;
    if ((uint64_t)head.rows > most) {
        code = block_damaged(file, scan->block_at,
                             "a block's count of records was more than its bytes can hold", err);
        goto done;
    }
    scan->block_rows = head.rows;
    scan->block_left = head.rows;
    scan->block_data = (const uint8_t *)data.data;
    scan->decoder.p = scan->block_data;
    scan->decoder.end = scan->block_data + data.len;
    scan->offset = sync_at + AVRO_SYNC_BYTES;
done:
    return code;
}

/* ---- scan ---- */

static tarn_code find_sync(avro_scan *scan, int64_t from, tarn_error *err) {
    const avro_file *file = scan->file;
    int64_t size = file->source->size_bytes;
    while (size - from >= AVRO_SYNC_BYTES) {
        const uint8_t *data = NULL;
        size_t n = size - from < (int64_t)READ_BYTES ? (size_t)(size - from) : READ_BYTES;
        tarn_code code = window_get(&scan->window, from, n, READ_BYTES, &data, err);
        if (code != TARN_OK) {
            return code;
        }
        size_t last = n - AVRO_SYNC_BYTES;
        for (size_t i = 0; i <= last; i++) {
            const uint8_t *hit = memchr(data + i, file->sync[0], last - i + 1);
            if (hit == NULL) {
                break;
            }
            i = (size_t)(hit - data);
            if (memcmp(hit, file->sync, AVRO_SYNC_BYTES) == 0) {
                scan->offset = from + (int64_t)i + AVRO_SYNC_BYTES;
                return TARN_OK;
            }
        }
        from += (int64_t)last + 1;
    }
    scan->offset = size;
    return TARN_OK;
}

/* Goes to the first block of the range by the heads of those before it, counting their rows. */
static tarn_code count_to(avro_scan *scan, int64_t start, tarn_error *err) {
    const avro_file *file = scan->file;
    tarn_code code = TARN_OK;
    while (scan->offset < file->source->size_bytes && scan->offset - AVRO_SYNC_BYTES < start) {
        block_head head;
        TRY(env_check_cancel(file->env, err));
        TRY(read_head(file, &scan->window, scan->offset, HEAD_BYTES, &head, err));
        if (!num_add_i64(scan->next_row, head.rows, &scan->next_row)) {
            code = block_damaged(file, scan->offset, "the counts of records were too large", err);
            goto done;
        }
        scan->offset = head.data_at + (int64_t)head.size + AVRO_SYNC_BYTES;
    }
done:
    return code;
}

static tarn_code prepare_scan(avro_scan *scan, const avro_scan_options *options, tarn_error *err) {
    avro_file *file = scan->file;
    uint8_t *selected = NULL;
    tarn_code code = TARN_OK;
    scan->type = file->type;
    if (options->selected != NULL) {
        size_t n = (size_t)type_node_count(file->type);
        selected = arena_alloc(&scan->arena, n);
        if (selected == NULL) {
            return err_nomem(err);
        }
        memcpy(selected, options->selected, n);
        scan->type = type_prune(&scan->arena, file->type, selected);
        if (scan->type == NULL) {
            return err_nomem(err);
        }
    }
    TRY(avro_decoder_init(&scan->decoder, &scan->arena, file->schema, file->type, selected,
                          scan->type, err));
    scan->end = options->end > 0 ? options->end : INT64_MAX;
    scan->batch_rows = options->batch_rows > 0 ? options->batch_rows : BATCH_ROWS;
    scan->offset = file->data_start;
    if (options->numbered) {
        code = count_to(scan, options->start, err);
    } else if (options->start > file->data_start - AVRO_SYNC_BYTES) {
        code = find_sync(scan, options->start, err);
    }
done:
    return code;
}

tarn_code avro_scan_open(avro_file *file, const avro_scan_options *options, avro_scan **out,
                         tarn_error *err) {
    static const avro_scan_options everything = {0};
    avro_scan *scan = env_calloc(file->env, 1, sizeof *scan);
    if (scan == NULL) {
        return err_nomem(err);
    }
    scan->file = file;
    scan->window.source = file->source;
    arena_init(&scan->arena, file->env);
    codec_ctx_init(&scan->codec, file->env);
    buf_init(&scan->block, file->env, LIMIT_DECODE_BLOCK_BYTES);
    tarn_code code = prepare_scan(scan, options != NULL ? options : &everything, err);
    if (code != TARN_OK) {
        avro_scan_close(scan);
        return code;
    }
    *out = scan;
    return TARN_OK;
}

void avro_scan_close(avro_scan *scan) {
    if (scan != NULL) {
        avro_decoder_release(&scan->decoder);
        codec_ctx_release(&scan->codec);
        buf_release(&scan->block);
        window_release(&scan->window);
        arena_release(&scan->arena);
        env_free(scan->file->env, scan);
    }
}

const tarn_type *avro_scan_type(const avro_scan *scan) {
    return scan->type;
}

/* Rows of the present block until the batch is full or holds enough bytes (taken off *room). */
static tarn_code decode_rows(avro_scan *scan, int64_t rows, size_t *room, tarn_error *err) {
    avro_decoder *d = &scan->decoder;
    const uint8_t *start = d->p;
    const uint8_t *soft_end = (size_t)(d->end - start) > *room ? start + *room : d->end;
    int64_t n = scan->block_left < rows ? scan->block_left : rows;
    int64_t done = 0;
    tarn_code code = avro_decode(d, n, soft_end, &done, err);
    if (code != TARN_OK && d->reason != NULL) {
        return err_set(err, code,
                       "%s was damaged in the block at byte %lld, near byte %lld of its data: %s",
                       scan->file->source->name, (long long)scan->block_at,
                       (long long)(d->p - scan->block_data), d->reason);
    }
    if (code != TARN_OK) {
        return err_add(err, code, "%s, block at byte %lld", scan->file->source->name,
                       (long long)scan->block_at);
    }
    scan->block_left -= done;
    size_t used = (size_t)(d->p - start);
    *room = used < *room ? *room - used : 0;
    if (scan->block_left == 0 && d->p != d->end) {
        return block_damaged(scan->file, scan->block_at, "a block had bytes beyond its records",
                             err);
    }
    return TARN_OK;
}

tarn_code avro_scan_next(avro_scan *scan, tarn_batch *out, tarn_error *err) {
    tarn_builder *rows = &scan->decoder.rows;
    size_t room = BATCH_SOFT_BYTES;
    tarn_batch batch = {0};
    tarn_code code = scan->failed;
    if (code != TARN_OK) {
        return err_set(err, code, "a scan of %s had failed before", scan->file->source->name);
    }
    while (rows->length < scan->batch_rows && room > 0) {
        bool more = true;
        if (scan->block_left == 0) {
            TRY(next_block(scan, &more, err));
        }
        if (!more) {
            break;
        }
        TRY(decode_rows(scan, scan->batch_rows - rows->length, &room, err));
    }
    TRY(builder_finish_batch(rows, &batch, err));
    scan->first_row = scan->next_row;
    scan->next_row += batch_rows(&batch);
    *out = batch;
done:
    scan->failed = code;
    return code;
}

int64_t avro_scan_first_row(const avro_scan *scan) {
    return scan->first_row;
}

tarn_code avro_file_count(avro_file *file, int64_t *rows, tarn_error *err) {
    avro_window w = {.source = file->source};
    int64_t offset = file->data_start;
    int64_t size = file->source->size_bytes;
    int64_t total = 0;
    tarn_code code = TARN_OK;
    while (offset < size) {
        block_head head;
        const uint8_t *sync = NULL;
        TRY(env_check_cancel(file->env, err));
        TRY(read_head(file, &w, offset, HEAD_BYTES, &head, err));
        int64_t sync_at = head.data_at + (int64_t)head.size;
        TRY(window_get(&w, sync_at, AVRO_SYNC_BYTES, AVRO_SYNC_BYTES + HEAD_BYTES, &sync, err));
        TRY(check_sync(file, sync, sync_at, err));
        if (!num_add_i64(total, head.rows, &total)) {
            code = block_damaged(file, offset, "the counts of records were too large", err);
            goto done;
        }
        offset = sync_at + AVRO_SYNC_BYTES;
    }
    *rows = total;
done:
    window_release(&w);
    return code;
}
