/* source/source_followed.c - one file that grows, over rotations and cuts.
 *
 * What was read of the file is known by its inode and a mark of its text (text_mark.h), so that it
 * is found again under another name, as a copy, or packed. Its end is reached when its name has
 * another file (over), or when it was cut (over and cut). Then come, in order, the files that were
 * rotated away behind it (rotated.h), each known by its inode while names move on, and last the one
 * that has the name now. Until the next one is open the offsets are those of the end of the one
 * before: nothing is forgotten of where reading stands.
 *
 * Where rows may be lost it is never silent: what is known to be missing, or what was not followed
 * to its end, is an error, or a warning where gaps are accepted; a file that went while it was
 * followed was read to its end, and is a warning. */
#include <errno.h>
#include <stdio.h>

#include "source/file_stream.h"
#include "source/rotated.h"
#include "source/source_int.h"

#define LOOK_AGAIN_MS 50
#define SETTLE_MS     1000 /* a file that is missing for so long is gone: names may move just now */
#define MOVED_TRIES   100

typedef struct followed_target {
    int32_t file; /* in the list; -1: none is there yet */
    bool fresh;   /* read from its beginning, as another file than the one before */
    bool settle;  /* look again first: what is missing may come */
    tarn_code refused;
    const char *told; /* what to say of it; NULL: nothing */
} followed_target;

bool input_is_followed(const source_input *in) {
    return in->setup->follow && in->kind == INPUT_FILE;
}

/* ---- the file that was followed ---- */

static bool is_it(const source_input *in, const store_beside *file) {
    return in->inode != 0 && file->inode == in->inode &&
           (in->born == 0 || file->born == 0 || file->born == in->born);
}

/* Its text, unpacked. counter as in file_stream.h. */
static tarn_code open_text(tarn_env *env, const char *path, file_stream_part *part, io_stream **out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_store *store = NULL;
    io_source *source = NULL;
    char head[4];
    TRY(store_for_location(env, str_of(path), &store, err));
    TRY(store_open(store, str_of(path), -1, &source, err));
    size_t len = source->size_bytes < 4 ? (size_t)source->size_bytes : 4;
    TRY(io_read_at(source, 0, head, len, err));
    part->codec = codec_sniff(head, len);
    TRY(file_stream_open(source, part, out, err));
    source = NULL;
done:
    if (source != NULL) {
        source->close(source);
    }
    store_close(store);
    return code;
}

static tarn_code read_text(tarn_env *env, const char *path, file_stream_part *part, char *bytes,
                           size_t want, size_t *got, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_stream *stream = NULL;
    size_t n = 1;
    *got = 0;
    TRY(open_text(env, path, part, &stream, err));
    while (*got < want && n > 0) {
        TRY(stream->read(stream, bytes + *got, want - *got, &n, err));
        *got += n;
    }
done:
    if (stream != NULL) {
        stream->close(stream);
    }
    return code;
}

/* Whether the file has what was read, up to where reading stands. One that can't be read has not,
 * unless it is known to be it: then that is an error. */
static tarn_code has_text(const source_input *in, const store_beside *file, bool *same,
                          tarn_error *err) {
    char bytes[MARK_HEAD_BYTES + MARK_TAIL_BYTES];
    int64_t passed = 0;
    int64_t at = in->at.bytes;
    int64_t head = in->check_len;
    int64_t upto = at > head ? at : head;
    bool whole = upto <= (int64_t)sizeof bytes;
    file_stream_part part = {CODEC_NONE, whole ? 0 : head, whole ? 0 : at - in->tail_len, &passed};
    size_t want = (size_t)(whole ? upto : head + in->tail_len);
    size_t got = 0;
    tarn_error why = TARN_ERROR_INIT;
    *same = at == 0;
    if (at == 0) {
        return TARN_OK;
    }
    tarn_code code = read_text(in->setup->env, file->path, &part, bytes, want, &got, &why);
    if (code == TARN_NOMEM || code == TARN_CANCELLED ||
        ((code == TARN_IO || code == TARN_DENIED) && is_it(in, file))) {
        if (err != NULL) {
            *err = why;
        }
        return code;
    }
    const char *tail = bytes + (whole ? at - in->tail_len : head);
    *same = code == TARN_OK && got == want &&
            (head == 0 || mark_hash(MARK_NOTHING, bytes, (size_t)head) == in->check) &&
            (in->tail_len == 0 || mark_hash(MARK_NOTHING, tail, (size_t)in->tail_len) == in->tail);
    if (*same && !whole && part.codec == CODEC_NONE) {
        *same = file->size >= at;
    }
    return TARN_OK;
}

static int32_t index_of(const source_input *in, const store_beside_list *list) {
    for (int32_t i = 0; i < list->n; i++) {
        if (is_it(in, &list->files[i])) {
            return i;
        }
    }
    return -1;
}

/* What was written before reading stood where it stands is none; of others that begin so, as short
 * texts do, the oldest is it. */
static bool is_better_copy(const source_input *in, const store_beside *a, const store_beside *b) {
    if (in->modified == 0) {
        return b == NULL || a->modified > b->modified;
    }
    return a->modified >= in->modified && (b == NULL || a->modified < b->modified);
}

/* By its inode, unless that was seen cut; else as a copy of it, packed or not. What has the name
 * now is one only where it was not seen to be another file. -1: it is not there. */
static tarn_code find_again(const source_input *in, const store_beside_list *list, int32_t *out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    bool same = false;
    *out = -1;
    int32_t it = in->cut ? -1 : index_of(in, list);
    if (it >= 0) {
        TRY(has_text(in, &list->files[it], &same, err));
    }
    if (same) {
        *out = it;
        return TARN_OK;
    }
    if (in->at.bytes == 0 || in->check_len + in->tail_len == 0) {
        return TARN_OK;
    }
    for (int32_t i = 0; i < list->n; i++) {
        const store_beside *file = &list->files[i];
        bool may_be = i == list->named ? !in->over : rotated_is(list, i);
        if (!may_be || is_it(in, file) ||
            !is_better_copy(in, file, *out >= 0 ? &list->files[*out] : NULL)) {
            continue;
        }
        TRY(has_text(in, file, &same, err));
        *out = same ? i : *out;
    }
done:
    return code;
}

/* ---- what comes next ---- */

static tarn_code tell(followed_target *t, tarn_arena *arena, const char *text, tarn_error *err) {
    t->told = text != NULL && t->told != NULL ? arena_printf(arena, "%s; %s", t->told, text) : text;
    return t->told != NULL ? TARN_OK : err_nomem(err);
}

/* Another run read of the file, and it is not there any more, or was cut. */
static tarn_code after_a_gap(source_input *in, const store_beside_list *list, tarn_arena *arena,
                             followed_target *t, tarn_error *err) {
    rotated_next next = {-1, -1, false, -1};
    bool cut = list->named >= 0 && is_it(in, &list->files[list->named]);
    t->refused = in->setup->accept_gap ? TARN_OK : TARN_INVALID;
    t->fresh = true;
    if (in->modified > 0) {
        rotated_find_next(list, -1, in->modified, &next);
    }
    t->file = next.file >= 0 ? next.file : list->named;
    t->settle = t->file >= 0;
    const char *goes_on = t->file >= 0 ? list->files[t->file].path : in->path;
    return tell(
        t, arena,
        cut ? arena_printf(arena,
                           "file %s was cut or replaced since it was followed up to byte "
                           "%lld, and no copy of what it held is beside it: rows may be "
                           "lost. Put the copy there, as %s.1, or go on at the beginning of "
                           "%s (--accept-gap)",
                           in->path, (long long)in->at.bytes, in->path, goes_on)
            : arena_printf(arena,
                           "file %s is not the one that was followed up to byte %lld, and "
                           "that one is not beside it: rows may be lost. Put it there, as "
                           "%s.1, or go on at the beginning of %s (--accept-gap)",
                           in->path, (long long)in->at.bytes, in->path, goes_on),
        err);
}

static tarn_code after_rotation(source_input *in, const store_beside_list *list, int32_t at,
                                tarn_arena *arena, followed_target *t, tarn_error *err) {
    tarn_code code = TARN_OK;
    rotated_next next;
    rotated_find_next(list, at, in->modified, &next);
    t->file = next.file >= 0 ? next.file : list->named;
    t->fresh = true;
    if (at < 0) {
        t->settle = t->file >= 0;
        TRY(tell(t, arena,
                 arena_printf(arena,
                              "file %s, which was followed and read to its end, is gone: whether "
                              "others came behind it that are gone too is not known",
                              in->path),
                 err));
    }
    if (next.missing >= 0 && t->file >= 0) {
        t->settle = true;
        t->refused = next.sure && !in->setup->accept_gap ? TARN_INVALID : TARN_OK;
        TRY(tell(t, arena,
                 arena_printf(arena,
                              "file %s was followed and read to its end, and the one behind it, of "
                              "number %lld, is not there: rows may be lost. Put it there, or go on "
                              "at the beginning of %s (--accept-gap)",
                              list->files[at].path, (long long)next.missing,
                              list->files[t->file].path),
                 err));
    }
    if (next.disputed >= 0) {
        TRY(tell(t, arena,
                 arena_printf(arena,
                              "the names of %s and %s say another order than the times of their "
                              "last writes: they are taken in the order of their names",
                              list->files[next.disputed].path, list->files[at].path),
                 err));
    }
done:
    return code;
}

/* Where reading goes on. */
static tarn_code find_target(source_input *in, const store_beside_list *list, tarn_arena *arena,
                             followed_target *t, tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t at = -1;
    memset(t, 0, sizeof *t);
    t->file = list->named;
    if (in->inode == 0 && in->at.bytes == 0) {
        t->fresh = true;
        return TARN_OK;
    }
    TRY(find_again(in, list, &at, err));
    if (in->cut && at < 0) {
        int32_t it = index_of(in, list);
        t->file = it >= 0 ? it : list->named;
        t->settle = t->file >= 0;
        t->fresh = true;
        return tell(t, arena,
                    arena_printf(arena,
                                 "file %s was cut while it was followed, behind byte %lld: what "
                                 "was written behind that byte before it was cut is not known",
                                 in->path, (long long)in->at.bytes),
                    err);
    }
    if (!in->over && at < 0) {
        return after_a_gap(in, list, arena, t, err);
    }
    if (!in->over || in->cut || (at >= 0 && at == list->named)) {
        t->file = at; /* it, or the copy that was made before it was cut */
        return TARN_OK;
    }
    code = after_rotation(in, list, at, arena, t, err);
done:
    return code;
}

/* ---- opening ---- */

/* *known false: nothing says it yet. */
static tarn_code kind_of_text(const source_input *in, const store_beside *file, bool named,
                              file_kind *kind, codec_kind *packed, bool *known, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_file_options *o = &in->setup->file;
    char head[64];
    int64_t passed = 0;
    size_t len = 0;
    codec_kind codec;
    file_stream_part part = {CODEC_NONE, 0, 0, &passed};
    TRY(read_text(in->setup->env, file->path, &part, head, sizeof head, &len, err));
    *packed = part.codec;
    *known = len > 0 || o->format != NULL || file_kind_by_name(str_of(in->path), kind, &codec);
    if (!*known) {
        return TARN_OK;
    }
    TRY(file_kind_choose(str_of(in->path), o, str_make(head, len), kind, &codec, err));
    bool text = *kind == FILE_NDJSON || *kind == FILE_CSV;
    if (!text || codec != CODEC_NONE || (named && *packed != CODEC_NONE)) {
        return err_set(err, TARN_INVALID,
                       "file %s cannot be followed: only plain NDJSON and CSV grow line by line",
                       in->path);
    }
    if (*packed == CODEC_NONE && len > 0 && !named && rotated_is_packed(file->name)) {
        return err_set(err, TARN_UNSUPPORTED,
                       "file %s comes next, and is packed in a way that is not read (gzip and zstd "
                       "are): unpack it there",
                       file->path);
    }
done:
    return code;
}

/* It is what is read now, from at on, or from its beginning. */
static tarn_code begin_file(source_input *in, const store_beside *file, bool named, bool fresh,
                            tarn_error *err) {
    if (fresh) {
        in->done_bytes += in->size > 0 ? in->size : 0;
        memset(&in->at, 0, sizeof in->at);
        in->check_len = 0;
        in->tail_len = 0;
    }
    memset(&in->mark, 0, sizeof in->mark);
    in->mark.head_len = in->check_len;
    in->mark.head = in->check;
    in->inode = file->inode;
    in->born = file->born;
    in->modified = file->modified;
    in->size = file->size;
    in->from_bytes = in->at.bytes;
    in->over = false;
    in->cut = false;
    in->file = in->path;
    arena_release(&in->names);
    if (!named) {
        const char *path = arena_strdup(&in->names, file->path);
        in->file = path != NULL ? path : in->file;
        return path != NULL ? TARN_OK : err_nomem(err);
    }
    return TARN_OK;
}

static tarn_code open_plain(source_input *in, const store_beside *file, bool named, bool fresh,
                            file_kind kind, bool *moved, tarn_error *err) {
    tarn_code code = TARN_OK;
    store_tail *tail = NULL;
    byte_feed *feed = NULL;
    TRY(store_tail_open(in->setup->env, file->path, in->path, &tail, err));
    *moved = store_tail_inode(tail) != file->inode;
    if (*moved) {
        goto done;
    }
    TRY(begin_file(in, file, named, fresh, err));
    in->open = tail;
    TRY(feed_tail(in->setup->env, in->file, tail, in->at.head_bytes, in->at.bytes, &feed, err));
    tail = NULL;
    code = input_open_pieces(in, feed, kind, err);
done:
    store_tail_close(tail);
    in->open = code == TARN_OK && !*moved ? in->open : NULL;
    return code;
}

static tarn_code open_packed(source_input *in, const store_beside *file, bool fresh, file_kind kind,
                             bool *moved, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_stream *stream = NULL;
    byte_feed *feed = NULL;
    file_position start = in->at;
    if (fresh) {
        memset(&start, 0, sizeof start);
    }
    file_stream_part part = {CODEC_NONE, start.head_bytes, start.bytes, &in->done_bytes};
    TRY(open_text(in->setup->env, file->path, &part, &stream, err));
    *moved = store_inode_of(file->path) != file->inode;
    if (*moved) {
        goto done;
    }
    TRY(begin_file(in, file, false, fresh, err));
    TRY(feed_stream(stream, &feed, err));
    stream = NULL;
    code = input_open_pieces(in, feed, kind, err);
done:
    if (stream != NULL) {
        stream->close(stream);
    }
    return code;
}

/* *moved: names have moved since they were listed, or an empty file was passed over. */
static tarn_code open_target(source_input *in, const store_beside_list *list,
                             const followed_target *t, bool *moved, tarn_error *err) {
    tarn_code code = TARN_OK;
    const store_beside *file = &list->files[t->file];
    bool named = t->file == list->named;
    bool known;
    file_kind kind;
    codec_kind packed;
    TRY(kind_of_text(in, file, named, &kind, &packed, &known, err));
    if (!known && named) {
        return TARN_OK; /* its first lines say what it holds */
    }
    if (!known) {
        *moved = store_inode_of(file->path) == file->inode;
        code = *moved ? begin_file(in, file, false, t->fresh, err) : TARN_OK;
        in->over = *moved;
        *moved = true;
        return code;
    }
    code = packed == CODEC_NONE ? open_plain(in, file, named, t->fresh, kind, moved, err)
                                : open_packed(in, file, t->fresh, kind, moved, err);
    if (code == TARN_OK && !*moved && t->told != NULL) {
        env_log(in->setup->env, TARN_LOG_WARN, "source", "follow", "%s", t->told);
    }
done:
    if (code != TARN_OK && in->pieces == NULL && store_inode_of(file->path) != file->inode) {
        err_reset(err);
        *moved = true;
        code = TARN_OK;
    }
    return code;
}

/* One look. *again: at once, or (*settle) after a while, until it was so for long. */
static tarn_code look(source_input *in, bool settled, bool *again, bool *settle, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    store_beside_list list;
    followed_target t;
    arena_init(&arena, in->setup->env);
    *again = false;
    TRY(store_list_beside(in->setup->env, &arena, in->path, &list, err));
    TRY(find_target(in, &list, &arena, &t, err));
    *settle = t.settle && !settled;
    if (*settle || t.file < 0) {
        goto done;
    }
    if (t.refused != TARN_OK) {
        code = err_set(err, t.refused, "%s", t.told);
        goto done;
    }
    code = open_target(in, &list, &t, again, err);
done:
    arena_release(&arena);
    return code;
}

tarn_code followed_open(source_input *in, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t waited = 0;
    for (int i = 0; i < MOVED_TRIES; i++) {
        bool again;
        bool settle;
        TRY(look(in, waited >= SETTLE_MS, &again, &settle, err));
        if (!again && !settle) {
            return TARN_OK;
        }
        TRY(env_check_cancel(in->setup->env, err));
        if (settle) {
            env_sleep_ms(in->setup->env, LOOK_AGAIN_MS);
            waited += LOOK_AGAIN_MS;
        }
    }
done:
    return code; /* names move without end: the next call looks again */
}

/* ---- while it is read ---- */

void followed_note(source_input *in) {
    if (in->mark.head_len > in->check_len) {
        in->check_len = in->mark.head_len;
        in->check = in->mark.head;
    }
    if (in->mark.n_tail > 0) {
        in->tail_len = (int64_t)in->mark.n_tail;
        in->tail = mark_hash(MARK_NOTHING, in->mark.tail, in->mark.n_tail);
    }
    in->modified = in->open != NULL ? store_tail_modified(in->open) : in->modified;
    in->size = in->at.bytes > in->size ? in->at.bytes : in->size;
}

void followed_end(source_input *in) {
    in->over = true;
    in->cut = in->open != NULL && store_tail_was_cut(in->open);
    in->open = NULL;
}

/* ---- offsets ---- */

void followed_put(const source_input *in, json_writer *w) {
    if (in->tail_len > 0) {
        json_member_i64(w, "tail-bytes", in->tail_len);
        input_put_hash(w, "tail", in->tail);
    }
    if (in->modified > 0) {
        json_member_i64(w, "modified-ns", in->modified);
    }
    if (in->born > 0) {
        json_member_i64(w, "born-ns", in->born);
    }
}

void followed_seek(source_input *in, const json_value *offsets) {
    int64_t value;
    bool known = json_i64(json_get(offsets, "tail-bytes"), &value) && value > 0 &&
                 value <= MARK_TAIL_BYTES && value <= in->at.bytes &&
                 input_read_hash(offsets, "tail", &in->tail);
    in->tail_len = known ? value : 0;
    in->modified = json_i64(json_get(offsets, "modified-ns"), &value) && value > 0 ? value : 0;
    in->born = json_i64(json_get(offsets, "born-ns"), &value) && value > 0 ? value : 0;
}
