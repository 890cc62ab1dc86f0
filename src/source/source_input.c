/* source/source_input.c - one path of a source: a file, a pipe, or a folder's files one behind the
 * other.
 *
 * Files are read whole (file_reader) where nothing can change on the way; in pieces (piece_reader)
 * where bytes may have to be waited for, or the schema may grow. A pipe is gone on with when it
 * begins with the same bytes again; one that begins otherwise is read whole, if the one before was
 * read to its end, and an error, if it was not. */
#include "source/source_int.h"

#include <stdio.h>

#include "source/file_stream.h"
#include "store/store_path.h"
#include "store/store_stdio.h"

#define CHECK_BYTES MARK_HEAD_BYTES

tarn_code input_init(source_input *in, source_setup *setup, const char *path, tarn_error *err) {
    memset(in, 0, sizeof *in);
    in->setup = setup;
    in->size = -1;
    in->whole = -1;
    arena_init(&in->names, setup->env);
    in->path = arena_strdup(&setup->arena, path);
    folder_init(&in->folder, setup->env, in->path);
    if (in->path == NULL) {
        return err_nomem(err);
    }
    in->kind = store_is_pipe(path) ? INPUT_PIPE : store_is_folder(path) ? INPUT_FOLDER : INPUT_FILE;
    return TARN_OK;
}

/* Of the file that is open. */
static int64_t open_bytes(const source_input *in) {
    int64_t read = 0;
    if (in->reader != NULL) {
        read = file_reader_taken(in->reader);
    } else if (in->pieces != NULL && in->at.bytes > in->from_bytes) {
        read = in->at.bytes - in->from_bytes;
    }
    return read;
}

static void close_file(source_input *in) {
    in->taken_bytes += open_bytes(in);
    if (in->pipe != NULL && in->reader == NULL && in->pieces == NULL) {
        in->pipe->close(in->pipe);
    }
    in->pipe = NULL;
    file_reader_close(in->reader);
    piece_reader_close(in->pieces);
    in->reader = NULL;
    in->pieces = NULL;
}

void input_release(source_input *in) {
    if (in->setup == NULL) {
        return;
    }
    close_file(in);
    folder_release(&in->folder);
    arena_release(&in->names);
}

/* ---- knowing a file again ---- */

static tarn_code look_at_file(tarn_env *env, const char *path, int64_t check_len, int64_t *size,
                              uint64_t *check, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_store *store = NULL;
    io_source *source = NULL;
    char bytes[CHECK_BYTES];
    TRY(store_for_location(env, str_of(path), &store, err));
    TRY(store_open(store, str_of(path), -1, &source, err));
    *size = source->size_bytes;
    int64_t len = *size < check_len ? *size : check_len;
    TRY(io_read_at(source, 0, bytes, (size_t)len, err));
    *check = mark_hash(MARK_NOTHING, bytes, (size_t)len);
done:
    if (source != NULL) {
        source->close(source);
    }
    store_close(store);
    return code;
}

static tarn_code identify(source_input *in, tarn_error *err) {
    tarn_code code =
        look_at_file(in->setup->env, in->file, CHECK_BYTES, &in->size, &in->check, err);
    in->check_len = in->size < CHECK_BYTES ? in->size : CHECK_BYTES;
    return code;
}

/* The file that an earlier run stood in is still that file. */
static tarn_code check_again(source_input *in, tarn_error *err) {
    int64_t size = 0;
    uint64_t check = 0;
    tarn_code code = look_at_file(in->setup->env, in->file, in->check_len, &size, &check, err);
    if (code != TARN_OK) {
        return code;
    }
    if (size < in->size && !in->setup->follow) {
        return err_set(err, TARN_INVALID,
                       "file %s has %lld bytes now and had %lld when it was read last: it is "
                       "shorter, and not the same",
                       in->file, (long long)size, (long long)in->size);
    }
    if (size < in->check_len || check != in->check) {
        return err_set(err, TARN_INVALID,
                       "file %s does not begin as it did when it was read last: it is not the same",
                       in->file);
    }
    in->size = size;
    return TARN_OK;
}

/* ---- opening ---- */

static void fill_request(source_input *in, file_request *q) {
    const source_setup *s = in->setup;
    memset(q, 0, sizeof *q);
    q->options = &s->file;
    q->root = s->root;
    q->debezium = s->debezium;
    q->kind_column = s->kind_column;
    q->keys = s->keys;
    q->n_keys = s->n_keys;
    q->start = &in->at;
}

static tarn_code on_reject(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                           tarn_error *err) {
    source_input *in = ctx;
    return file_tell_reject(&in->setup->file, in->file, line, raw, reason, err);
}

tarn_code input_open_pieces(source_input *in, byte_feed *feed, file_kind kind, tarn_error *err) {
    tarn_code code = TARN_OK;
    source_setup *s = in->setup;
    piece_request q;
    memset(&q, 0, sizeof q);
    q.root = s->root;
    q.kind_column = s->kind_column;
    q.grow = s->grow;
    q.start = &in->at;
    q.mark = input_is_followed(in) ? &in->mark : NULL;
    TRY(file_text_options(&s->arena, &s->file, kind, &q.text, err));
    if (s->file.csv_delimiter == NULL && str_ends_with(str_of(in->file), STR(".tsv"))) {
        q.text.delimiter = '\t';
    }
    q.text.debezium = s->debezium;
    q.text.keys = s->keys;
    q.text.n_keys = s->n_keys;
    q.text.reject = on_reject;
    q.text.reject_ctx = in;
    TRY(piece_reader_open(feed, &q, &in->pieces, err));
    feed = NULL;
done:
    if (feed != NULL) {
        feed->close(feed);
    }
    return code;
}

/* What is kept of a pipe's beginning, as it came: of plain text what was read, else all. */
static void note_pipe(source_input *in) {
    tarn_str first = store_pipe_first(in->pipe);
    int64_t len = (int64_t)first.len;
    len = in->pieces != NULL && !in->packed && in->at.bytes < len ? in->at.bytes : len;
    if (len > in->check_len) {
        in->check = mark_hash(MARK_NOTHING, first.data, (size_t)len);
        in->check_len = len;
    }
}

/* Whether a pipe that begins so is the one that an earlier run read of. Nothing is passed over that
 * was not read then. */
static tarn_code check_pipe(source_input *in, tarn_str first, tarn_error *err) {
    bool begun = in->at.bytes > 0 || in->at.rows > 0;
    bool same = in->check_len > 0 && first.len >= (size_t)in->check_len &&
                mark_hash(MARK_NOTHING, first.data, (size_t)in->check_len) == in->check;
    if (begun && in->ended && first.len == 0) {
        in->done = true;
        return TARN_OK;
    }
    if (begun && !same && !(in->ended && in->check_len > 0)) {
        return err_set(err, TARN_INVALID,
                       "%s does not begin as the one that was read up to byte %lld before, and not "
                       "to its end: give that one again from its beginning, or read this one with "
                       "another state folder (--state)",
                       in->pipe->name, (long long)in->at.bytes);
    }
    if (!begun || !same) {
        memset(&in->at, 0, sizeof in->at);
        in->check_len = 0;
        in->ended = false;
    }
    return TARN_OK;
}

/* Enough to know a pipe again, or to tell a format by: a line of text is. */
static bool is_enough(tarn_str first, size_t want, size_t known) {
    tarn_str text = str_trim(first);
    return first.len >= want ||
           (first.len >= known && text.len >= 4 &&
            memchr(text.data, '\n', first.len - (size_t)(text.data - first.data)) != NULL);
}

/* Nothing is open still where its beginning did not come in time. */
static tarn_code open_pipe(source_input *in, int64_t timeout_ms, tarn_error *err) {
    tarn_code code = TARN_OK;
    source_setup *s = in->setup;
    byte_feed *feed = NULL;
    size_t known = (size_t)in->check_len;
    size_t want = known > STORE_PIPE_HEAD ? known : STORE_PIPE_HEAD;
    tarn_str head;
    bool ended;
    file_kind kind;
    codec_kind codec;
    file_request q;
    if (in->pipe == NULL) {
        TRY(store_pipe_open(s->env, in->path, &in->pipe, err));
    }
    TRY(store_pipe_look(in->pipe, want, timeout_ms, &head, &ended, err));
    if (!ended && !is_enough(head, want, known)) {
        return TARN_OK;
    }
    TRY(check_pipe(in, head, err));
    if (in->done) {
        return TARN_OK;
    }
    TRY(file_kind_choose(str_of(in->path), &s->file, head, &kind, &codec, err));
    bool text = kind == FILE_NDJSON || kind == FILE_CSV;
    if (text && (s->pieces || s->grow)) {
        io_stream *pipe = in->pipe;
        const feed_part part = {codec, in->at.head_bytes, in->at.bytes, in->ended ? in->whole : -1};
        TRY(feed_pipe(pipe, &part, &feed, err));
        in->feed = feed;
        in->packed = codec != CODEC_NONE;
        in->pipe = NULL;
        TRY(input_open_pieces(in, feed, kind, err));
        in->pipe = pipe;
        return TARN_OK;
    }
    TRY(store_pipe_look(in->pipe, STORE_PIPE_FIRST, timeout_ms, &head, &ended, err));
    if (!ended && head.len < STORE_PIPE_FIRST) {
        return TARN_OK;
    }
    note_pipe(in);
    fill_request(in, &q);
    q.pipe = in->pipe;
    q.head = head;
    code = file_reader_open(s->env, in->path, &q, &in->reader, err);
done:
    return code;
}

static tarn_code open_growing(source_input *in, file_kind kind, codec_kind codec, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_store *store = NULL;
    io_source *source = NULL;
    io_stream *stream = NULL;
    byte_feed *feed = NULL;
    file_stream_part part = {codec, in->at.head_bytes, in->at.bytes, &in->done_bytes};
    TRY(store_for_location(in->setup->env, str_of(in->file), &store, err));
    TRY(store_open(store, str_of(in->file), -1, &source, err));
    TRY(file_stream_open(source, &part, &stream, err));
    source = NULL;
    TRY(feed_stream(stream, &feed, err));
    stream = NULL;
    code = input_open_pieces(in, feed, kind, err);
done:
    if (source != NULL) {
        source->close(source);
    }
    if (stream != NULL) {
        stream->close(stream);
    }
    store_close(store);
    return code;
}

/* *read_first: the head of a file decides its kind. */
static tarn_code kind_of_file(source_input *in, file_kind *kind, codec_kind *codec,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_store *store = NULL;
    io_source *source = NULL;
    char bytes[64];
    TRY(store_for_location(in->setup->env, str_of(in->file), &store, err));
    TRY(store_open(store, str_of(in->file), -1, &source, err));
    size_t len = source->size_bytes < 64 ? (size_t)source->size_bytes : 64;
    TRY(io_read_at(source, 0, bytes, len, err));
    TRY(file_kind_choose(str_of(in->file), &in->setup->file, str_make(bytes, len), kind, codec,
                         err));
done:
    if (source != NULL) {
        source->close(source);
    }
    store_close(store);
    return code;
}

/* Parquet and Avro have a schema of their own; what the table lacks is left out of them, if asked.
 */
static tarn_code choose_columns(source_input *in, file_request *q, tarn_error *err) {
    tarn_code code = TARN_OK;
    const source_setup *s = in->setup;
    const tarn_type *type = file_reader_type(in->reader);
    tarn_str *columns = ARENA_ARRAY(&in->names, tarn_str, (size_t)type->n_fields + 2);
    int32_t n = 0;
    if (columns == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < type->n_fields; i++) {
        if (type_child(s->root, type->fields[i].name) != NULL) {
            columns[n] = arena_str(&in->names, type->fields[i].name);
            if (columns[n++].data == NULL) {
                return err_nomem(err);
            }
        }
    }
    if (n == type->n_fields || n == 0) {
        return TARN_OK;
    }
    if (s->kind_column != NULL) {
        columns[n++] = str_of(s->kind_column);
    }
    close_file(in);
    q->columns = columns;
    q->n_columns = n;
    code = file_reader_open(s->env, in->file, q, &in->reader, err);
    return code;
}

static tarn_code open_file(source_input *in, tarn_error *err) {
    tarn_code code = TARN_OK;
    source_setup *s = in->setup;
    file_kind kind;
    codec_kind codec;
    file_request q;
    if (input_is_followed(in)) {
        return followed_open(in, err);
    }
    in->from_bytes = in->at.bytes;
    if (in->check_len > 0) {
        TRY(check_again(in, err));
    } else {
        TRY(identify(in, err));
    }
    TRY(kind_of_file(in, &kind, &codec, err));
    bool text = kind == FILE_NDJSON || kind == FILE_CSV;
    if (text && s->grow) {
        return open_growing(in, kind, codec, err);
    }
    fill_request(in, &q);
    TRY(file_reader_open(s->env, in->file, &q, &in->reader, err));
    if (!text && s->file.ignore_unknown && s->root != NULL) {
        code = choose_columns(in, &q, err);
    }
done:
    return code;
}

/* ---- going on ---- */

static void forget_file(source_input *in) {
    close_file(in);
    arena_release(&in->names);
    in->done_bytes += in->size > 0 ? in->size : 0;
    memset(&in->at, 0, sizeof in->at);
    in->file = NULL;
    in->size = -1;
    in->check_len = 0;
}

/* Names the file to read next; in->file NULL: there is none now. */
static tarn_code choose_file(source_input *in, tarn_error *err) {
    tarn_str name;
    if (in->kind != INPUT_FOLDER) {
        in->file = in->path;
        return TARN_OK;
    }
    tarn_code code = folder_next(&in->folder, &name, err);
    if (code != TARN_OK || name.data == NULL) {
        return code;
    }
    in->name = arena_str(&in->names, name);
    in->file = store_join(&in->names, str_of(in->path), name);
    return in->name.data != NULL && in->file != NULL ? TARN_OK : err_nomem(err);
}

/* What one file taught is known for the next. */
static tarn_code keep_root(source_input *in, tarn_error *err) {
    const tarn_type *root = piece_reader_root(in->pieces);
    if (root == in->root || root == NULL) {
        return TARN_OK;
    }
    const tarn_type *copy = type_copy(&in->setup->arena, root);
    if (copy == NULL) {
        return err_nomem(err);
    }
    in->root = root;
    in->setup->root = copy;
    return TARN_OK;
}

static tarn_code read_on(source_input *in, int64_t timeout_ms, tarn_batch *out,
                         const uint8_t **kinds, bool *ended, tarn_error *err) {
    tarn_code code;
    if (in->pieces != NULL) {
        code = piece_reader_next(in->pieces, timeout_ms, out, ended, err);
        *kinds = piece_reader_kinds(in->pieces);
        piece_reader_position(in->pieces, &in->at);
        if (input_is_followed(in)) {
            followed_note(in);
        }
        if (in->pipe != NULL && code == TARN_OK) {
            note_pipe(in);
            int64_t bytes;
            int64_t sum = feed_pipe_sum(in->feed, &bytes);
            if (*ended) {
                in->whole = bytes == in->at.bytes ? sum : -1;
            }
        }
        return code == TARN_OK && in->setup->grow ? keep_root(in, err) : code;
    }
    code = file_reader_next(in->reader, out, err);
    *kinds = file_reader_kinds(in->reader);
    *ended = code == TARN_OK && batch_rows(out) == 0;
    if (code == TARN_OK) {
        file_reader_position(in->reader, &in->at);
    }
    return code;
}

static tarn_code end_file(source_input *in, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (input_is_followed(in)) { /* until the next one is open it is where reading stands */
        followed_end(in);
        close_file(in);
        return TARN_OK;
    }
    if (in->kind == INPUT_FOLDER) {
        code = folder_note_done(&in->folder, in->name, in->size, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    if (in->kind == INPUT_FOLDER) {
        forget_file(in);
    } else {
        close_file(in);
        in->done_bytes += in->size > 0 ? in->size : 0;
        in->done = true;
    }
    return TARN_OK;
}

/* Whoever gave another input that begins with all of the one before should know. */
static void tell_of_passing(const source_input *in) {
    if (in->ended && (in->reader != NULL || in->pieces != NULL)) {
        env_log(in->setup->env, TARN_LOG_WARN, "source", "pipe",
                "%s begins as the one that was read to its end before: that is not read again",
                strcmp(in->path, "-") == 0 ? "standard input" : in->path);
    }
}

tarn_code input_next(source_input *in, int64_t timeout_ms, tarn_batch *out, const uint8_t **kinds,
                     tarn_error *err) {
    tarn_code code = TARN_OK;
    bool ended;
    while (!in->done) {
        if (in->file == NULL) {
            TRY(choose_file(in, err));
        }
        if (in->file == NULL) {
            in->done = !in->setup->follow;
            return TARN_OK;
        }
        if (in->reader == NULL && in->pieces == NULL) {
            TRY(in->kind == INPUT_PIPE ? open_pipe(in, timeout_ms, err) : open_file(in, err));
            tell_of_passing(in);
        }
        if (in->reader == NULL && in->pieces == NULL) { /* it has not begun, or is over */
            break;
        }
        ended = false;
        TRY(read_on(in, timeout_ms, out, kinds, &ended, err));
        in->ended = in->ended && batch_rows(out) == 0;
        if (batch_rows(out) > 0 || !ended) {
            return TARN_OK;
        }
        TRY(end_file(in, err));
    }
done:
    return code;
}

/* ---- offsets ---- */

void input_put_hash(json_writer *w, const char *name, uint64_t hash) {
    char text[17];
    (void)snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    json_member_str(w, name, str_of(text));
}

bool input_read_hash(const json_value *offsets, const char *name, uint64_t *out) {
    tarn_str text;
    if (!json_str(json_get(offsets, name), &text) || text.len != 16) {
        return false;
    }
    *out = 0;
    for (size_t i = 0; i < 16; i++) {
        char c = text.data[i];
        *out = *out << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return true;
}

static void put_position(const source_input *in, json_writer *w) {
    if (in->check_len > 0) {
        if (in->size >= 0) {
            json_member_i64(w, "size", in->size);
        }
        json_member_i64(w, "check-bytes", in->check_len);
        input_put_hash(w, "check", in->check);
    }
    if (in->inode != 0) {
        json_member_i64(w, "inode", (int64_t)in->inode);
        followed_put(in, w);
    }
    if (in->at.rows > 0) {
        json_member_i64(w, "rows", in->at.rows);
    }
    if (in->at.bytes > 0) {
        json_member_i64(w, "bytes", in->at.bytes);
        json_member_i64(w, "lines", in->at.lines);
    }
    if (in->at.head_bytes > 0) {
        json_member_i64(w, "head-bytes", in->at.head_bytes);
        json_member_i64(w, "head-lines", in->at.head_lines);
    }
}

/* JSON has text only: a name that is none is its bytes as numbers, so that it is known again. */
static void put_name(json_writer *w, tarn_str name) {
    if (str_utf8_valid(name)) {
        json_put_string(w, name);
        return;
    }
    json_put_array(w);
    for (size_t i = 0; i < name.len; i++) {
        json_put_i64(w, (uint8_t)name.data[i]);
    }
    json_end_array(w);
}

tarn_code input_read_name(tarn_arena *arena, const json_value *value, tarn_str *out,
                          tarn_error *err) {
    size_t n = 0;
    *out = STR_NULL;
    if (!json_is(value, JSON_ARRAY)) {
        (void)json_str(value, out);
        return TARN_OK;
    }
    for (const json_value *v = value->first; v != NULL; v = v->next) {
        n++;
    }
    char *bytes = arena_alloc(arena, n + 1);
    if (bytes == NULL) {
        return err_nomem(err);
    }
    n = 0;
    for (const json_value *v = value->first; v != NULL; v = v->next) {
        int64_t byte;
        if (!json_i64(v, &byte) || byte < 1 || byte > UINT8_MAX) {
            return TARN_OK;
        }
        bytes[n++] = (char)byte;
    }
    bytes[n] = '\0';
    *out = str_make(bytes, n);
    return TARN_OK;
}

void input_put(const source_input *in, json_writer *w) {
    json_put_object(w);
    json_put_name(w, STR("path"));
    put_name(w, str_of(in->path));
    if (in->kind == INPUT_FOLDER) {
        json_put_name(w, STR("files-done"));
        json_put_array(w);
        for (size_t i = 0; i < in->folder.done.count; i++) {
            put_name(w, in->folder.done.entries[i].key);
        }
        json_end_array(w);
        json_put_name(w, STR("sizes-done"));
        json_put_array(w);
        for (size_t i = 0; i < in->folder.done.count; i++) {
            json_put_i64(w, in->folder.done.entries[i].value.i64);
        }
        json_end_array(w);
        if (in->file != NULL) {
            json_put_name(w, STR("file"));
            put_name(w, in->name);
        }
    } else if (in->done || in->ended) {
        json_member_bool(w, "done", true);
        if (in->whole >= 0) {
            json_member_i64(w, "whole", in->whole);
        }
    }
    if (in->file != NULL) {
        put_position(in, w);
    }
    json_end_object(w);
}

static void read_number(const json_value *offsets, const char *name, int64_t *out) {
    int64_t value;
    if (json_i64(json_get(offsets, name), &value) && value >= 0) {
        *out = value;
    }
}

static tarn_code seek_folder(source_input *in, const json_value *offsets, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str name;
    const json_value *done = json_get(offsets, "files-done");
    const json_value *sizes = json_get(offsets, "sizes-done"); /* not in older offsets */
    const json_value *size_at = sizes != NULL ? sizes->first : NULL;
    for (const json_value *v = done != NULL ? done->first : NULL; v != NULL; v = v->next) {
        int64_t size = -1;
        TRY(input_read_name(&in->names, v, &name, err));
        if (name.data == NULL) {
            return err_set(err, TARN_INVALID, "the offsets of %s name a file that is no text",
                           in->path);
        }
        if (size_at != NULL) {
            (void)json_i64(size_at, &size);
            size_at = size_at->next;
        }
        TRY(folder_note_done(&in->folder, name, size, err));
    }
    TRY(input_read_name(&in->names, json_get(offsets, "file"), &name, err));
    if (name.data != NULL) {
        in->name = arena_str(&in->names, name);
        in->file = store_join(&in->names, str_of(in->path), name);
        code = in->name.data != NULL && in->file != NULL ? TARN_OK : err_nomem(err);
    }
done:
    return code;
}

tarn_code input_seek(source_input *in, const json_value *offsets, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t inode = 0;
    bool done = false;
    (void)json_bool(json_get(offsets, "done"), &done);
    if (in->kind == INPUT_FOLDER) {
        TRY(seek_folder(in, offsets, err));
    } else {
        in->file = in->path;
        in->ended = done && in->kind == INPUT_PIPE;
        in->done = done && !in->setup->follow && in->kind != INPUT_PIPE;
    }
    read_number(offsets, "size", &in->size);
    read_number(offsets, "check-bytes", &in->check_len);
    read_number(offsets, "rows", &in->at.rows);
    read_number(offsets, "bytes", &in->at.bytes);
    read_number(offsets, "lines", &in->at.lines);
    read_number(offsets, "head-bytes", &in->at.head_bytes);
    read_number(offsets, "head-lines", &in->at.head_lines);
    read_number(offsets, "inode", &inode);
    read_number(offsets, "whole", &in->whole);
    in->inode = (uint64_t)inode;
    in->check_len = in->check_len < CHECK_BYTES ? in->check_len : CHECK_BYTES;
    if (!input_read_hash(offsets, "check", &in->check)) {
        in->check_len = 0;
    }
    followed_seek(in, offsets);
    bool same = in->kind == INPUT_FILE && !in->setup->follow && in->check_len > 0;
    int64_t size = in->size;
    code = same ? check_again(in, err) : TARN_OK;
    in->done = in->done && !(same && in->size > size && in->at.bytes > 0); /* it grew since */
done:
    return code;
}

int64_t input_taken(const source_input *in) {
    return in->taken_bytes + open_bytes(in);
}

void input_progress(const source_input *in, int64_t *done, int64_t *total) {
    int64_t read = 0;
    int64_t all = -1;
    if (in->reader != NULL) {
        file_reader_progress(in->reader, &read, &all);
    } else if (in->pieces != NULL) {
        read = in->at.bytes;
    }
    *done += in->done_bytes + read;
    if (in->kind != INPUT_FILE || *total < 0) {
        *total = -1;
    } else {
        *total += in->size > 0 ? in->size : all > 0 ? all : 0;
    }
}
