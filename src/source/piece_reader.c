/* source/piece_reader.c - see piece_reader.h.
 *
 * bytes holds what came and is not cut yet, piece what is being decoded: a CSV header (head) and
 * whole records. With grow, bad records are held back until a call's batch is given: where they
 * teach the schema a column, the batch is dropped and the piece is read again from where the batch
 * before it ended, so that no row is given twice or in two shapes. */
#include "source/piece_reader.h"

#include "base/limits.h"
#include "source/schema_grow.h"
#include "table/project.h"

#define PIECE_BYTES ((size_t)8 << 20)

typedef struct held_reject {
    int64_t line;
    size_t raw_len; /* raw and reason lie in held, one behind the other */
    size_t reason_len;
} held_reject;

struct piece_reader {
    tarn_env *env;
    tarn_arena arena; /* types; grows with the schema */
    byte_feed *feed;
    piece_request request;
    const tarn_type *root;   /* with ids; the column of kinds too */
    const tarn_type *output; /* without it */
    int32_t kind_at;
    bool guessing; /* the piece told of no column: the next one is asked again */
    tarn_projection *to_output;
    tarn_buf bytes;
    bool ended;
    tarn_buf head;  /* CSV header, once known */
    tarn_buf piece; /* being decoded */
    text_reader *text;
    file_position at;    /* behind the rows given */
    file_position begun; /* where the present text reader began */
    tarn_buf held;
    tarn_buf held_list;
    tarn_code failed;
};

static int64_t head_of(const piece_reader *r) {
    return (int64_t)r->head.len;
}

/* ---- types ---- */

static tarn_code add_kind_column(piece_reader *r, const tarn_type **root, tarn_error *err) {
    const char *name = r->request.kind_column;
    const tarn_type *old = *root;
    if (name == NULL || type_child(old, str_of(name)) != NULL) {
        return TARN_OK;
    }
    tarn_field *fields = ARENA_ARRAY(&r->arena, tarn_field, (size_t)old->n_fields + 1);
    if (fields == NULL) {
        return err_nomem(err);
    }
    if (old->n_fields > 0) {
        memcpy(fields, old->fields, (size_t)old->n_fields * sizeof *fields);
    }
    fields[old->n_fields].id = TARN_NO_ID;
    fields[old->n_fields].name = str_of(name);
    fields[old->n_fields].type = type_primitive(TARN_STRING);
    *root = type_struct(&r->arena, fields, old->n_fields + 1);
    return *root != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code set_root(piece_reader *r, const tarn_type *root, tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t next_id = 1;
    TRY(add_kind_column(r, &root, err));
    r->root = type_assign_ids(&r->arena, root, &next_id);
    if (r->root == NULL) {
        return err_nomem(err);
    }
    r->kind_at = -1;
    for (int32_t i = 0; r->request.kind_column != NULL && i < r->root->n_fields; i++) {
        r->kind_at = str_is(r->root->fields[i].name, r->request.kind_column) ? i : r->kind_at;
    }
    r->output = NULL; /* made with the next text reader, whose type it is of */
done:
    return code;
}

/* The rows' type of the present text reader, without the column of kinds. */
static tarn_code set_output(piece_reader *r, tarn_error *err) {
    const tarn_type *all = text_reader_type(r->text);
    project_options options;
    tarn_field *fields = ARENA_ARRAY(&r->arena, tarn_field, (size_t)all->n_fields + 1);
    int32_t n = 0;
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < all->n_fields; i++) {
        if (i != r->kind_at) {
            fields[n++] = all->fields[i];
        }
    }
    r->output = type_struct(&r->arena, fields, n);
    if (r->output == NULL) {
        return err_nomem(err);
    }
    memset(&options, 0, sizeof options);
    options.file = r->feed->name;
    options.whole = true;
    const tarn_type *from = type_copy(&r->arena, all);
    return from == NULL ? err_nomem(err)
                        : project_plan(&r->arena, from, r->output, &options, &r->to_output, err);
}

static tarn_code memory_stream(piece_reader *r, const tarn_buf *bytes, io_stream **out,
                               tarn_error *err) {
    io_source *source = NULL;
    tarn_code code = io_source_memory(r->env, r->feed->name, bytes->data, bytes->len, &source, err);
    if (code != TARN_OK) {
        return code;
    }
    code = io_stream_source(source, out, err);
    if (code != TARN_OK) {
        source->close(source);
    }
    return code;
}

/* Columns of the first records. */
static tarn_code infer(piece_reader *r, const tarn_buf *bytes, const tarn_type **out,
                       tarn_error *err) {
    io_stream *stream = NULL;
    tarn_code code = memory_stream(r, bytes, &stream, err);
    if (code == TARN_OK) {
        code = text_infer(&r->arena, &stream, &r->request.text, 0, out, err);
    }
    if (stream != NULL) {
        stream->close(stream);
    }
    return code;
}

/* ---- bad records ---- */

static tarn_code hold_reject(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                             tarn_error *err) {
    piece_reader *r = ctx;
    tarn_code code = TARN_OK;
    held_reject one = {line, raw.len, reason.len};
    TRY(buf_append_str(&r->held, raw, err));
    TRY(buf_append_str(&r->held, reason, err));
    TRY(buf_append(&r->held_list, &one, sizeof one, err));
done:
    return code;
}

static void forget_rejects(piece_reader *r) {
    buf_reset(&r->held);
    buf_reset(&r->held_list);
}

static tarn_code tell_rejects(piece_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    const char *at = (const char *)r->held.data;
    for (size_t i = 0; i + sizeof(held_reject) <= r->held_list.len && code == TARN_OK;
         i += sizeof(held_reject)) {
        held_reject one;
        memcpy(&one, r->held_list.data + i, sizeof one);
        tarn_str raw = str_make(at, one.raw_len);
        tarn_str reason = str_make(at + one.raw_len, one.reason_len);
        code = r->request.text.reject != NULL
                   ? r->request.text.reject(r->request.text.reject_ctx, one.line, raw, reason, err)
                   : err_set(err, TARN_INVALID, "%s line %lld: %.*s", r->feed->name,
                             (long long)one.line, STR_ARG(reason));
        at += one.raw_len + one.reason_len;
    }
    forget_rejects(r);
    return code;
}

/* ---- growing ---- */

static bool reason_has(tarn_str reason, tarn_str words) {
    for (size_t i = 0; i + words.len <= reason.len; i++) {
        if (memcmp(reason.data + i, words.data, words.len) == 0) {
            return true;
        }
    }
    return false;
}

static bool skip(tarn_str *rest, tarn_str words) {
    bool there = str_starts_with(*rest, words);
    *rest = there ? str_from(*rest, words.len) : *rest;
    return there;
}

/* The reason names the column of a CSV record, which is at the top, and what does not fit it. */
static tarn_code widen_column(piece_reader *r, tarn_str reason, const tarn_type **root,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *now = *root;
    for (int32_t i = 0; i < now->n_fields && code == TARN_OK; i++) {
        json_value value = {.kind = JSON_NUMBER, .name = now->fields[i].name};
        json_value record = {.kind = JSON_OBJECT, .first = &value, .count = 1};
        tarn_str rest = reason;
        if (skip(&rest, STR("column ")) && skip(&rest, value.name) && skip(&rest, STR(": ")) &&
            str_split(&rest, ' ', &value.text)) {
            code = schema_widen(&r->arena, *root, &record, root, err);
        }
    }
    return code;
}

/* Of an envelope its images, else the record. */
static tarn_code widen_by(piece_reader *r, const json_value *record, const tarn_type **root,
                          tarn_error *err) {
    static const char *const images[] = {"before", "after"};
    if (!r->request.text.debezium) {
        return schema_widen(&r->arena, *root, record, root, err);
    }
    const json_value *payload = json_get(record, "payload");
    tarn_code code = TARN_OK;
    for (int i = 0; i < 2 && code == TARN_OK; i++) {
        const json_value *image = json_get(payload != NULL ? payload : record, images[i]);
        code = json_is(image, JSON_OBJECT) ? schema_widen(&r->arena, *root, image, root, err)
                                           : TARN_OK;
    }
    return code;
}

static bool is_unknown(tarn_str reason) {
    return reason_has(reason, STR("was not in the schema"));
}

static tarn_code learn_from(piece_reader *r, tarn_str raw, tarn_str reason, bool *unknown,
                            const tarn_type **root, tarn_error *err) {
    tarn_arena parsed;
    json_value *record;
    tarn_error why = TARN_ERROR_INIT;
    if (is_unknown(reason)) {
        *unknown = true;
        return TARN_OK;
    }
    if (!reason_has(reason, STR("out of the range of an int")) &&
        !reason_has(reason, STR("out of the range of a float")) &&
        !reason_has(reason, STR("did not fit decimal"))) {
        return TARN_OK;
    }
    if (r->request.text.kind == TEXT_CSV) {
        return widen_column(r, reason, root, err);
    }
    if (r->request.text.debezium) {
        raw = text_change_envelope(raw);
    }
    arena_init(&parsed, r->env);
    tarn_code code = json_parse(&parsed, raw, "record", &record, &why);
    code = code == TARN_OK      ? widen_by(r, record, root, err)
           : code == TARN_NOMEM ? err_nomem(err)
                                : TARN_OK;
    arena_release(&parsed);
    return code;
}

/* The piece tells most of its columns, the records that did not fit the rest: they may stand far
 * behind, or bring a schema of their own. */
static tarn_code learn_members(piece_reader *r, const tarn_type **root, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *before = *root;
    const tarn_type *seen = NULL;
    const char *at = (const char *)r->held.data;
    tarn_buf records;
    buf_init(&records, r->env, 0);
    TRY(infer(r, &r->piece, &seen, err));
    TRY(schema_grow(&r->arena, before, seen, root, err));
    for (size_t i = 0; *root == before && i + sizeof(held_reject) <= r->held_list.len;
         i += sizeof(held_reject)) {
        held_reject one;
        memcpy(&one, r->held_list.data + i, sizeof one);
        if (is_unknown(str_make(at + one.raw_len, one.reason_len))) {
            TRY(buf_append_str(&records, str_make(at, one.raw_len), err));
            TRY(buf_append(&records, "\n", 1, err));
        }
        at += one.raw_len + one.reason_len;
    }
    if (records.len > 0) {
        TRY(infer(r, &records, &seen, err));
        TRY(schema_grow(&r->arena, before, seen, root, err));
    }
done:
    buf_release(&records);
    return code;
}

/* *grown: the held records taught something; root is new. */
static tarn_code learn(piece_reader *r, bool *grown, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *root = r->root;
    bool unknown = false;
    const char *at = (const char *)r->held.data;
    for (size_t i = 0; i + sizeof(held_reject) <= r->held_list.len; i += sizeof(held_reject)) {
        held_reject one;
        memcpy(&one, r->held_list.data + i, sizeof one);
        TRY(learn_from(r, str_make(at, one.raw_len), str_make(at + one.raw_len, one.reason_len),
                       &unknown, &root, err));
        at += one.raw_len + one.reason_len;
    }
    if (unknown) {
        TRY(learn_members(r, &root, err));
    }
    *grown = root != r->root;
    if (*grown) {
        TRY(set_root(r, root, err));
    }
done:
    return code;
}

/* ---- pieces ---- */

static void end_piece(piece_reader *r) {
    text_reader_close(r->text);
    r->text = NULL;
}

/* Opens the piece, of which *at says how far it was read. */
static tarn_code open_piece(piece_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_stream *stream = NULL;
    text_options options = r->request.text;
    options.kind_column = r->kind_at + 1;
    options.first_line = r->at.lines - (r->head.len > 0 ? r->at.head_lines : 0);
    options.reject = hold_reject;
    options.reject_ctx = r;
    r->begun = r->at;
    TRY(memory_stream(r, &r->piece, &stream, err));
    TRY(text_reader_open(r->env, stream, r->root, &options, &r->text, err));
    stream = NULL;
    if (r->output == NULL) {
        TRY(set_output(r, err));
    }
done:
    if (stream != NULL) {
        stream->close(stream);
    }
    return code;
}

/* Columns that the piece suggests; of one that has bad records alone, or none that say a column,
 * nothing is known: its records are read as having none. */
static tarn_code guess_root(piece_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *root = NULL;
    tarn_error why = TARN_ERROR_INIT;
    code = infer(r, &r->piece, &root, &why);
    if (code != TARN_OK && (code != TARN_INVALID || r->request.text.kind == TEXT_CSV)) {
        if (err != NULL) {
            *err = why;
        }
        return code;
    }
    r->guessing = code != TARN_OK || root->n_fields == 0;
    if (r->guessing) {
        root = type_struct(&r->arena, NULL, 0);
    }
    code = root != NULL ? set_root(r, root, err) : err_nomem(err);
    r->request.text.scalars_as_text = true;
    return code;
}

/* A CSV file's header may have columns that the schema lacks, and then says so at once. */
static tarn_code grow_by_header(piece_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *seen = NULL;
    const tarn_type *root = r->root;
    TRY(infer(r, &r->piece, &seen, err));
    TRY(schema_grow(&r->arena, root, seen, &root, err));
    code = root != r->root ? set_root(r, root, err) : TARN_OK;
done:
    return code;
}

static tarn_code begin_piece(piece_reader *r, size_t whole, tarn_error *err) {
    tarn_code code = TARN_OK;
    buf_reset(&r->piece);
    TRY(buf_append_str(&r->piece, buf_str(&r->head), err));
    TRY(buf_append(&r->piece, r->bytes.data, whole, err));
    memmove(r->bytes.data, r->bytes.data + whole, r->bytes.len - whole);
    r->bytes.len -= whole;
    if (r->root == NULL) {
        TRY(guess_root(r, err));
    } else if (r->request.grow && r->request.text.kind == TEXT_CSV && r->at.bytes == 0) {
        TRY(grow_by_header(r, err));
    }
    TRY(open_piece(r, err));
done:
    return code;
}

/* Reads on in the piece from where the last batch ended, with the schema of now. */
static tarn_code reopen_piece(piece_reader *r, tarn_error *err) {
    int64_t read = r->at.bytes - r->begun.bytes;
    end_piece(r);
    if (read > 0) {
        size_t head = r->head.len;
        size_t gone = r->begun.bytes == 0 ? (size_t)read - head : (size_t)read;
        memmove(r->piece.data + head, r->piece.data + head + gone, r->piece.len - head - gone);
        r->piece.len -= gone;
    }
    return open_piece(r, err);
}

/* The CSV header is kept for the pieces to come. */
static tarn_code keep_head(piece_reader *r, tarn_error *err) {
    int64_t bytes;
    int64_t lines;
    text_reader_head(r->text, &bytes, &lines);
    if (r->begun.bytes > 0 || r->head.len > 0 || bytes == 0) {
        return TARN_OK;
    }
    r->at.head_bytes = bytes;
    r->at.head_lines = lines;
    return buf_append(&r->head, r->piece.data, (size_t)bytes, err);
}

static void note_position(piece_reader *r) {
    int64_t bytes;
    int64_t lines;
    text_reader_position(r->text, &bytes, &lines);
    if (r->begun.bytes > 0) { /* the head came again */
        bytes -= head_of(r);
        lines -= r->head.len > 0 ? r->at.head_lines : 0;
    }
    int64_t before = r->at.bytes;
    r->at.bytes = r->begun.bytes + (bytes > 0 ? bytes : 0);
    if (r->request.mark != NULL && r->at.bytes > before) {
        int64_t head = r->begun.bytes > 0 ? head_of(r) : 0;
        mark_add(r->request.mark, before,
                 (const char *)r->piece.data + (before - r->begun.bytes) + head,
                 (size_t)(r->at.bytes - before));
    }
    r->at.lines = r->begun.lines + (lines > 0 ? lines : 0);
}

/* Rows of the present piece; none: it is done. */
static tarn_code next_of_piece(piece_reader *r, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    bool grown = true;
    memset(&batch, 0, sizeof batch);
    while (grown) {
        grown = false;
        batch_release(&batch);
        TRY(text_reader_next(r->text, &batch, err));
        TRY(keep_head(r, err));
        if (r->request.grow && r->held_list.len > 0) {
            TRY(learn(r, &grown, err));
        }
        if (grown) {
            forget_rejects(r);
            batch_release(&batch);
            TRY(reopen_piece(r, err));
        }
    }
    note_position(r);
    TRY(tell_rejects(r, err));
    if (batch_rows(&batch) == 0) {
        end_piece(r);
        r->root = r->guessing ? NULL : r->root;
        r->guessing = false;
    } else if (r->kind_at >= 0) {
        TRY(project_apply(r->to_output, r->env, &batch, out, err));
    } else {
        batch_move(out, &batch);
        out->type = r->output; /* which outlives the piece's own */
    }
done:
    batch_release(&batch);
    return code;
}

/* Bytes until there is a whole record, the feed ended, or time is up. */
static tarn_code gather(piece_reader *r, int64_t timeout_ms, size_t *whole, tarn_error *err) {
    tarn_code code = TARN_OK;
    *whole = 0;
    for (;;) {
        size_t before = r->bytes.len;
        if (!r->ended) {
            TRY(r->feed->more(r->feed, &r->bytes, PIECE_BYTES, timeout_ms, &r->ended, err));
        }
        *whole = text_cut(&r->request.text, (const char *)r->bytes.data, r->bytes.len, r->ended);
        if (*whole > 0 || r->ended || r->bytes.len == before) {
            return TARN_OK;
        }
        if (r->bytes.len >= LIMIT_TEXT_LINE_BYTES) {
            return err_set(err, TARN_LIMIT, "%s: a record was longer than %u bytes", r->feed->name,
                           LIMIT_TEXT_LINE_BYTES);
        }
    }
done:
    return code;
}

static tarn_code next(piece_reader *r, int64_t timeout_ms, tarn_batch *out, bool *ended,
                      tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t whole;
    for (;;) {
        if (r->text != NULL) {
            TRY(next_of_piece(r, out, err));
            if (batch_rows(out) > 0) {
                return TARN_OK;
            }
            continue;
        }
        TRY(gather(r, timeout_ms, &whole, err));
        if (whole == 0) {
            *ended = r->ended;
            return TARN_OK;
        }
        TRY(begin_piece(r, whole, err));
    }
done:
    return code;
}

tarn_code piece_reader_next(piece_reader *r, int64_t timeout_ms, tarn_batch *out, bool *ended,
                            tarn_error *err) {
    tarn_batch batch;
    bool end = false;
    memset(&batch, 0, sizeof batch);
    if (r->failed != TARN_OK) {
        return err_set(err, r->failed, "%s: reading had failed before", r->feed->name);
    }
    tarn_code code = next(r, timeout_ms, &batch, &end, err);
    r->failed = code;
    if (code == TARN_OK) {
        *out = batch;
        *ended = end;
    }
    return code;
}

const uint8_t *piece_reader_kinds(const piece_reader *r) {
    return r->text != NULL ? text_reader_kinds(r->text) : NULL;
}

void piece_reader_position(const piece_reader *r, file_position *out) {
    *out = r->at;
}

const tarn_type *piece_reader_root(const piece_reader *r) {
    return r->guessing ? NULL : r->root;
}

tarn_code piece_reader_open(byte_feed *feed, const piece_request *request, piece_reader **out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_env *env = feed->env;
    size_t whole = 0;
    piece_reader *r = env_calloc(env, 1, sizeof *r);
    if (r == NULL) {
        return err_nomem(err);
    }
    r->env = env;
    arena_init(&r->arena, env);
    r->request = *request;
    r->kind_at = -1;
    buf_init(&r->bytes, env, 0);
    buf_init(&r->head, env, 0);
    buf_init(&r->piece, env, 0);
    buf_init(&r->held, env, 0);
    buf_init(&r->held_list, env, 0);
    if (request->root != NULL) {
        TRY(set_root(r, request->root, err));
    }
    if (request->start != NULL) {
        r->at = *request->start;
        whole = (size_t)r->at.head_bytes;
    }
    r->feed = feed;
    if (whole > 0 && r->at.bytes > 0) { /* the feed gives the head first */
        while (r->head.len < whole && !r->ended) {
            TRY(feed->more(feed, &r->head, whole - r->head.len, -1, &r->ended, err));
        }
    }
    *out = r;
    r = NULL;
done:
    if (r != NULL) {
        r->feed = NULL;
    }
    piece_reader_close(r);
    return code;
}

void piece_reader_close(piece_reader *r) {
    if (r == NULL) {
        return;
    }
    tarn_env *env = r->env;
    text_reader_close(r->text);
    if (r->feed != NULL) {
        r->feed->close(r->feed);
    }
    buf_release(&r->bytes);
    buf_release(&r->head);
    buf_release(&r->piece);
    buf_release(&r->held);
    buf_release(&r->held_list);
    arena_release(&r->arena);
    env_free(env, r);
}
