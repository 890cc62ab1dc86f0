/* format/text/text_reader.c - records of a stream as batches: pieces of whole records are decoded
 * on the pool, their batches and bad records given in input order.
 *
 * A slot is one piece in flight. Its task decodes until a batch is full, bad records have gathered,
 * or the piece ends; then it waits to be taken and is sent on. So memory is bounded by the number
 * of slots whatever the records expand to. Only the caller's thread reads the stream and calls
 * reject. Line numbers are counted within a piece and added up as pieces are taken, in order. */
#include "base/pool.h"
#include "format/text/text_int.h"
#include "format/text/text_scan.h"

#define MAX_SLOTS        16
#define REJECTS_TOGETHER 256

typedef struct text_reject {
    int64_t line; /* from 0 within the piece */
    size_t at;
    size_t len;
    size_t reason_len; /* reasons lie one behind the other in slot.reasons */
} text_reject;

typedef struct text_slot {
    pool_task task;
    text_reader *reader;
    text_decoder decoder;
    tarn_buf bytes;
    int64_t base;  /* of the piece in the stream */
    int64_t whole; /* its bytes there */
    tarn_batch batch;
    int64_t line;  /* lines passed in the piece */
    int64_t usual; /* rows of the last batch, to make room for at once */
    text_reject rejects[REJECTS_TOGETHER];
    int32_t n_rejects;
    tarn_buf reasons;
    bool queued;
    bool done; /* the piece is decoded to its end */
} text_slot;

struct text_reader {
    tarn_env *env;
    io_stream *stream;
    text_plan plan;
    text_chunker chunker;
    text_slot **slots;
    int32_t n_slots;
    int32_t first; /* the oldest slot in flight */
    int32_t n_flying;
    int64_t line; /* lines of all pieces taken */
    int64_t given_bytes;
    int64_t given_lines;
    int64_t head_bytes;
    int64_t head_lines;
    tarn_buf kinds; /* of the last batch */
    bool bound;     /* CSV: the header was read */
    bool drained;   /* the stream gave all, or failed */
    tarn_code failed;
    tarn_error read_error; /* of the stream: told when what came before it was given */
    tarn_code read_code;
};

/* ---- decoding a piece: runs on the pool ---- */

static tarn_code note_reject(text_slot *s, const char *start, const char *stop) {
    text_decoder *d = &s->decoder;
    text_reject *reject = &s->rejects[s->n_rejects];
    size_t len = (size_t)(stop - start);
    len -= len > 0 && start[len - 1] == '\n';
    len -= len > 0 && start[len - 1] == '\r';
    reject->line = s->line;
    reject->at = (size_t)(start - (const char *)s->bytes.data);
    reject->len = len;
    reject->reason_len = strlen(d->reason);
    tarn_code code = buf_append(&s->reasons, d->reason, reject->reason_len, d->err);
    s->n_rejects += code == TARN_OK;
    return code;
}

static const char *record_end(const text_decoder *d, const char *start) {
    if (d->plan->options.kind == TEXT_CSV) {
        const char *end = text_csv_record_end(&d->plan->options, start, d->end, true);
        return end != NULL ? end : d->end;
    }
    const char *line = memchr(start, '\n', (size_t)(d->end - start));
    return line != NULL ? line + 1 : d->end;
}

/* A bad record is taken back whole and passed. */
static tarn_code drop_record(text_slot *s, const char *start, int64_t rows) {
    text_decoder *d = &s->decoder;
    builder_truncate(&d->rows, rows);
    d->kinds.len = d->plan->has_kinds ? (size_t)rows : 0;
    const char *stop = record_end(d, start);
    tarn_code code = note_reject(s, start, stop);
    s->line += text_count_lines(start, stop);
    d->p = stop;
    return code;
}

static tarn_code finish_row(text_decoder *d) {
    return d->plan->options.kind_column > 0 ? text_kind_row(d) : TARN_OK;
}

static tarn_code json_record(text_decoder *d) {
    if (d->plan->options.debezium) {
        return text_change_record(d);
    }
    tarn_code code = text_json_record(d);
    return code == TARN_OK ? finish_row(d) : code;
}

/* The next record, or what stands for none: a blank line. */
static tarn_code decode_record(text_slot *s) {
    text_decoder *d = &s->decoder;
    const char *start = d->p;
    int64_t rows = d->rows.length;
    tarn_code code;
    d->record = start;
    if (d->plan->options.kind == TEXT_CSV) {
        size_t blank = *start == '\n' ? 1 : start[0] == '\r' && start[1] == '\n' ? 2 : 0;
        if (blank > 0 && d->plan->n_columns != 1) {
            s->line++;
            d->p = start + blank;
            return TARN_OK;
        }
        d->lines = 0;
        code = text_csv_record(d);
        code = code == TARN_OK ? finish_row(d) : code;
        s->line += code == TARN_OK ? d->lines + 1 : 0;
    } else {
        while (*d->p == ' ' || *d->p == '\t' || *d->p == '\r') {
            d->p++;
        }
        code = *d->p == '\n' ? TARN_OK : json_record(d);
        s->line += code == TARN_OK;
        d->p += code == TARN_OK;
    }
    return code == TARN_INVALID ? drop_record(s, start, rows) : code;
}

static tarn_code decode_piece(void *ctx, tarn_error *err) {
    text_slot *s = ctx;
    text_decoder *d = &s->decoder;
    const text_options *o = &d->plan->options;
    tarn_code code = TARN_OK;
    int32_t most_rejects = o->reject != NULL ? REJECTS_TOGETHER : 1;
    d->err = err;
    s->n_rejects = 0;
    buf_reset(&s->reasons);
    buf_reset(&d->kinds);
    TRY(env_check_cancel(d->env, err));
    TRY(builder_reserve(&d->rows, s->usual, err));
    while (d->p < d->end && d->rows.length < o->batch_rows && s->n_rejects < most_rejects) {
        TRY(decode_record(s));
    }
    s->done = d->p == d->end;
    if (d->rows.length > 0) {
        s->usual = d->rows.length;
        TRY(builder_finish_batch(&d->rows, &s->batch, err));
    }
done:
    return code;
}

/* ---- slots ---- */

static void free_slot(text_reader *r, text_slot *s) {
    if (s == NULL) {
        return;
    }
    if (s->queued) {
        (void)pool_wait(r->env, &s->task, NULL);
    }
    batch_release(&s->batch);
    text_decoder_release(&s->decoder);
    buf_release(&s->bytes);
    buf_release(&s->reasons);
    env_free(r->env, s);
}

static tarn_code new_slot(text_reader *r, text_slot **out, tarn_error *err) {
    text_slot *s = env_calloc(r->env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->reader = r;
    s->task.run = decode_piece;
    s->task.ctx = s;
    buf_init(&s->bytes, r->env, 0);
    buf_init(&s->reasons, r->env, 0);
    tarn_code code = text_decoder_init(&s->decoder, r->env, &r->plan, err);
    if (code != TARN_OK) {
        free_slot(r, s);
        return code;
    }
    *out = s;
    return TARN_OK;
}

static void submit(text_reader *r, text_slot *s) {
    s->queued = true;
    pool_submit(r->env, &s->task);
}

/* The header of a CSV file, at the front of its first piece. */
static tarn_code bind_header(text_reader *r, text_slot *s, tarn_error *err) {
    text_decoder *d = &s->decoder;
    tarn_str *names = NULL;
    int32_t n = 0;
    const text_options *o = &r->plan.options;
    if (o->kind == TEXT_CSV && !o->no_header) {
        const char *start = d->p;
        tarn_code code =
            text_csv_header(&r->plan.arena, o, r->stream->name, &d->p, d->end, &names, &n, err);
        if (code != TARN_OK) {
            return code;
        }
        s->line = text_count_lines(start, d->p);
        r->head_bytes = d->p - (const char *)s->bytes.data;
        r->head_bytes = r->head_bytes < s->whole ? r->head_bytes : s->whole;
        r->head_lines = s->line;
    }
    r->bound = true;
    return o->kind == TEXT_CSV ? text_csv_bind(&r->plan, r->stream->name, names, n, err) : TARN_OK;
}

/* Reads the next piece into a free slot and sends it to the pool. */
static tarn_code launch(text_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    text_slot **place = &r->slots[(r->first + r->n_flying) % r->n_slots];
    size_t skip;
    size_t len;
    if (*place == NULL) {
        TRY(new_slot(r, place, err));
    }
    text_slot *s = *place;
    s->base = r->chunker.bytes_given;
    TRY(text_chunker_next(&r->chunker, r->plan.options.chunk_bytes, &s->bytes, &skip, &len, err));
    if (len == 0) {
        r->drained = true;
        goto done;
    }
    s->decoder.p = (const char *)s->bytes.data + skip;
    s->decoder.end = (const char *)s->bytes.data + len;
    s->whole = r->chunker.bytes_given - s->base;
    s->line = 0;
    s->done = false;
    if (!r->bound) {
        TRY(bind_header(r, s, err));
    }
    submit(r, s);
    r->n_flying++;
done:
    return code;
}

static void launch_all(text_reader *r) {
    while (!r->drained && r->n_flying < r->n_slots) {
        tarn_error clean = TARN_ERROR_INIT;
        r->read_error = clean;
        r->read_code = launch(r, &r->read_error);
        r->drained = r->drained || r->read_code != TARN_OK;
    }
}

/* ---- giving ---- */

static tarn_code tell_rejects(text_reader *r, const text_slot *s, tarn_error *err) {
    const text_options *o = &r->plan.options;
    const char *reason = (const char *)s->reasons.data;
    for (int32_t i = 0; i < s->n_rejects; i++) {
        const text_reject *reject = &s->rejects[i];
        int64_t line = r->line + reject->line + 1;
        if (o->reject == NULL) {
            return err_set(err, TARN_INVALID, "%s line %lld: %.*s", r->stream->name,
                           (long long)line, (int)reject->reason_len, reason);
        }
        tarn_code code =
            o->reject(o->reject_ctx, line, str_make(s->bytes.data + reject->at, reject->len),
                      str_make(reason, reject->reason_len), err);
        if (code != TARN_OK) {
            return code;
        }
        reason += reject->reason_len;
    }
    return TARN_OK;
}

/* Where the batch at hand ends; the last piece may have got a line's end that is not its own. */
static void note_position(text_reader *r, const text_slot *s) {
    int64_t at = s->decoder.p - (const char *)s->bytes.data;
    r->given_bytes = s->base + (at < s->whole ? at : s->whole);
    r->given_lines = r->line + s->line - r->plan.options.first_line;
}

static void take_kinds(text_reader *r, text_slot *s) {
    tarn_buf kinds = r->kinds;
    r->kinds = s->decoder.kinds;
    s->decoder.kinds = kinds;
}

/* Waits for the oldest slot, takes what it made, and sends it on or sets it free. */
static tarn_code take(text_reader *r, tarn_batch *out, tarn_error *err) {
    text_slot *s = r->slots[r->first];
    s->queued = false;
    tarn_code code = pool_wait(r->env, &s->task, err);
    if (code != TARN_OK) {
        return err_add(err, code, "file %s", r->stream->name);
    }
    code = tell_rejects(r, s, err);
    if (code != TARN_OK) {
        return code;
    }
    batch_move(out, &s->batch);
    note_position(r, s);
    take_kinds(r, s);
    if (!s->done) {
        submit(r, s);
        return TARN_OK;
    }
    r->line += s->line;
    r->first = (r->first + 1) % r->n_slots;
    r->n_flying--;
    return TARN_OK;
}

tarn_code text_reader_next(text_reader *r, tarn_batch *out, tarn_error *err) {
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    if (r->failed != TARN_OK) {
        return err_set(err, r->failed, "%s: reading had failed before", r->stream->name);
    }
    while (batch_rows(&batch) == 0) {
        launch_all(r);
        if (r->n_flying > 0) {
            r->failed = take(r, &batch, err);
        } else if (r->read_code == TARN_OK) {
            break;
        } else {
            r->failed = r->read_code;
            if (err != NULL) {
                *err = r->read_error;
            }
        }
        if (r->failed != TARN_OK) {
            return r->failed;
        }
    }
    *out = batch;
    return TARN_OK;
}

int64_t text_reader_bytes_read(const text_reader *r) {
    return r->chunker.bytes_read;
}

const uint8_t *text_reader_kinds(const text_reader *r) {
    return r->plan.has_kinds ? r->kinds.data : NULL;
}

const tarn_type *text_reader_type(const text_reader *r) {
    return r->plan.root.type;
}

void text_reader_position(const text_reader *r, int64_t *bytes, int64_t *lines) {
    *bytes = r->given_bytes;
    *lines = r->given_lines;
}

void text_reader_head(const text_reader *r, int64_t *bytes, int64_t *lines) {
    *bytes = r->head_bytes;
    *lines = r->head_lines;
}

/* ---- opening ---- */

tarn_code text_reader_open(tarn_env *env, io_stream *stream, const tarn_type *root,
                           const text_options *options, text_reader **out, tarn_error *err) {
    if (root->kind != TARN_STRUCT || options->kind == TEXT_TABLE) {
        return err_set(err, TARN_INVALID, "%s: only NDJSON and CSV can be read, as a struct",
                       stream->name);
    }
    text_reader *r = env_calloc(env, 1, sizeof *r);
    if (r == NULL) {
        return err_nomem(err);
    }
    r->env = env;
    tarn_code code = text_plan_init(&r->plan, env, root, options, err);
    TRY(code);
    uint32_t threads = env_threads(env);
    r->n_slots = threads <= 1 ? 1 : threads + 2 < MAX_SLOTS ? (int32_t)threads + 2 : MAX_SLOTS;
    r->slots = env_calloc(env, (size_t)r->n_slots, sizeof(text_slot *));
    if (r->slots == NULL) {
        code = err_nomem(err);
        goto done;
    }
    buf_init(&r->kinds, env, 0);
    r->line = r->plan.options.first_line;
    r->stream = stream;
    text_chunker_init(&r->chunker, env, stream, &r->plan.options);
    *out = r;
    r = NULL;
done:
    text_reader_close(r);
    return code;
}

void text_reader_close(text_reader *r) {
    if (r == NULL) {
        return;
    }
    for (int32_t i = 0; i < r->n_slots && r->slots != NULL; i++) {
        free_slot(r, r->slots[i]);
    }
    env_free(r->env, r->slots);
    text_chunker_release(&r->chunker);
    buf_release(&r->kinds);
    text_plan_release(&r->plan);
    if (r->stream != NULL) {
        r->stream->close(r->stream);
    }
    env_free(r->env, r);
}
