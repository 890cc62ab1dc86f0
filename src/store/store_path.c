/* store/store_path.c - see store_path.h. */
#include "store/store_path.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "store/store.h"

/* Appends the pieces of path to out, "." and empty ones left out, ".." taken with the piece before
 * it. */
static tarn_code put_pieces(tarn_buf *out, tarn_str path, tarn_error *err) {
    tarn_str piece;
    tarn_code code = TARN_OK;
    while (path.len > 0 && str_split(&path, '/', &piece)) {
        size_t slash;
        if (piece.len == 0 || str_is(piece, ".")) {
            continue;
        }
        if (str_is(piece, "..")) {
            out->len = str_find_last_char(buf_str(out), '/', &slash) ? slash : 0;
            continue;
        }
        TRY(buf_append_char(out, '/', err));
        TRY(buf_append_str(out, piece, err));
    }
done:
    return code;
}

/* What the system makes of the part that ends with the last "..", which may go through links;
 * where it is not there, what the words say. */
static tarn_code put_climb(tarn_arena *arena, tarn_buf *out, tarn_str path, tarn_error *err) {
    char found[PATH_MAX];
    tarn_str whole = arena_str(arena, path);
    if (whole.data == NULL) {
        return err_nomem(err);
    }
    return put_pieces(out, realpath(whole.data, found) != NULL ? str_of(found) : path, err);
}

/* How much of path goes up to its last "..", 0: none. */
static size_t climb_len(tarn_str path) {
    size_t len = 0;
    tarn_str rest = path;
    tarn_str piece;
    while (rest.len > 0 && str_split(&rest, '/', &piece)) {
        len = str_is(piece, "..") ? (size_t)(piece.data - path.data) + piece.len : len;
    }
    return len;
}

static tarn_code clean(tarn_arena *arena, tarn_str path, tarn_str *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf text;
    size_t climb = climb_len(path);
    buf_init(&text, arena->env, 0);
    if (climb > 0) {
        TRY(put_climb(arena, &text, str_sub(path, 0, climb), err));
    }
    TRY(put_pieces(&text, str_from(path, climb), err));
    if (text.len == 0) {
        TRY(buf_append_char(&text, '/', err));
    }
    *out = arena_str(arena, buf_str(&text));
    code = out->data != NULL ? TARN_OK : err_nomem(err);
done:
    buf_release(&text);
    return code;
}

/* file:/x, file:///x and file://host/x: the words before the path stay. */
static tarn_code clean_uri(tarn_arena *arena, tarn_str uri, tarn_str *out, tarn_error *err) {
    tarn_str path;
    *out = arena_str(arena, uri);
    if (out->data == NULL) {
        return err_nomem(err);
    }
    if (!store_local_path(uri, &path) || path.len == 0 || path.data[0] != '/' ||
        memchr(uri.data, '%', uri.len) != NULL) {
        return TARN_OK;
    }
    tarn_str cleaned;
    tarn_code code = clean(arena, path, &cleaned, err);
    if (code == TARN_OK) {
        *out = str_of(arena_printf(arena, "%.*s%.*s", (int)(path.data - uri.data), uri.data,
                                   STR_ARG(cleaned)));
        code = out->data != NULL ? TARN_OK : err_nomem(err);
    }
    return code;
}

tarn_code store_absolute(tarn_arena *arena, tarn_str path, tarn_str *out, tarn_error *err) {
    char folder[PATH_MAX];
    if (path.len == 0) {
        return err_set(err, TARN_INVALID, "a path was empty");
    }
    while (path.len > 1 && path.data[path.len - 1] == '/') {
        path.len--;
    }
    if (store_scheme(path).len > 0) {
        return clean_uri(arena, path, out, err);
    }
    if (path.data[0] == '/') {
        return clean(arena, path, out, err);
    }
    if (getcwd(folder, sizeof folder) == NULL) {
        return err_os(err, errno, "could not find the working directory");
    }
    const char *joined = store_join(arena, str_of(folder), path);
    return joined != NULL ? clean(arena, str_of(joined), out, err) : err_nomem(err);
}
