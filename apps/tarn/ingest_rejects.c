/* apps/tarn/ingest_rejects.c - the file that bad rows are set aside in (--rejects).
 *
 * What is in it is never overwritten, but for what this stream wrote behind its last committed
 * checkpoint: those rows come again. Which file a stream writes to is in its offsets, with how much
 * of it belongs to them; until the first checkpoint, in a file `rejects` of the state folder, which
 * is written before anything else. A file that neither names must be new, or empty. A job that was
 * taken over may still have it open, and write to it when it wakes: then the newer one goes on in a
 * copy that takes its name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ingest.h"

tarn_code ingest_rejects_error(void) {
    return app_error(app_file_code(errno), "rejects file %s could not be written: %s",
                     ingest_options.rejects, strerror(errno));
}

/* Its folder has a new name; where one may write but not read there is no way to sync it. */
static bool sync_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd < 0 || (fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP);
    if (fd >= 0) {
        (void)close(fd);
    }
    free(folder);
    return ok;
}

/* ---- whose it is ---- */

/* The one name of a file that is there. */
static void add_name(text *t, const char *path) {
    char full[PATH_MAX];
    text_add_json(t, realpath(path, full) != NULL ? full : path);
}

/* The state folder's note; no data: there is no state. */
static text note_path(void) {
    text t = {0};
    const char *state = ingest_options.state;
    if (state != NULL) {
        text_add(&t, "%s/rejects", strncmp(state, "file:", 5) == 0 ? state + 5 : state);
    }
    return t;
}

static bool note_names(const char *name) {
    char there[2 * PATH_MAX];
    text path = note_path();
    FILE *file = path.data != NULL ? fopen(path.data, "re") : NULL;
    size_t n = file != NULL ? fread(there, 1, sizeof there, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    free(path.data);
    return n == strlen(name) && memcmp(there, name, n) == 0;
}

static tarn_code write_note(const char *name) {
    text path = note_path();
    FILE *file = path.data != NULL ? fopen(path.data, "we") : NULL;
    bool ok = path.data == NULL || (file != NULL && fputs(name, file) >= 0 && fflush(file) == 0 &&
                                    (the_app.no_sync || fsync(fileno(file)) == 0));
    tarn_code code = ok ? TARN_OK
                        : app_error(app_file_code(errno), "%s could not be written: %s", path.data,
                                    strerror(errno));
    if (file != NULL) {
        (void)fclose(file);
    }
    if (ok && file != NULL && !the_app.no_sync && !sync_folder_of(path.data)) {
        code = ingest_rejects_error();
    }
    free(path.data);
    return code;
}

void ingest_add_rejects(const ingest *in, text *offsets) {
    text_add(offsets, "\"rejects-bytes\":%ld,", in->rejects != NULL ? ftell(in->rejects) : 0L);
    if (in->rejects != NULL) {
        text_add(offsets, "\"rejects\":");
        add_name(offsets, ingest_options.rejects);
        text_add(offsets, ",");
    }
}

/* How much of the file belongs to these offsets; -1: it is not this stream's. */
static int64_t bytes_of_stream(const char *name, const char *offsets) {
    json *said = offsets != NULL ? json_read(offsets) : NULL;
    int64_t bytes = json_number(said, "rejects-bytes", 0);
    const char *path = json_text(said, "rejects", NULL);
    text named = {0};
    if (path != NULL) {
        text_add_json(&named, path);
    }
    /* Offsets of older versions have no name. */
    bool is_named = path != NULL ? strcmp(named.data, name) == 0 : bytes > 0;
    free(named.data);
    json_free(said);
    return is_named ? bytes : note_names(name) ? 0 : -1;
}

/* ---- opening it ---- */

/* What is no file, a pipe, say, is opened as its reader expects it. */
static tarn_code open_file(ingest *in, struct stat *info) {
    const char *path = ingest_options.rejects;
    memset(info, 0, sizeof *info);
    if (stat(path, info) == 0 && !S_ISREG(info->st_mode)) {
        in->rejects = fopen(path, "we");
        return in->rejects != NULL ? TARN_OK : ingest_rejects_error();
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    in->rejects = fd >= 0 ? fdopen(fd, "r+") : NULL;
    if (in->rejects == NULL || fstat(fd, info) != 0) {
        tarn_code code = ingest_rejects_error();
        if (in->rejects == NULL && fd >= 0) {
            (void)close(fd);
        }
        return code;
    }
    return TARN_OK;
}

static tarn_code refuse(ingest *in) {
    (void)fclose(in->rejects);
    in->rejects = NULL;
    return app_error(TARN_CONFLICT, "--rejects %s is there already and is not overwritten",
                     ingest_options.rejects);
}

tarn_code ingest_create_rejects(ingest *in) {
    struct stat info;
    if (ingest_options.rejects == NULL) {
        return TARN_OK;
    }
    tarn_code code = open_file(in, &info);
    if (code == TARN_OK && S_ISREG(info.st_mode)) {
        (void)flock(fileno(in->rejects), LOCK_EX | LOCK_NB);
        return info.st_size > 0 ? refuse(in) : TARN_OK;
    }
    return code;
}

/* The first `end` bytes, in a file of its own under the same name. */
static bool move_away(ingest *in, off_t end) {
    char path[PATH_MAX];
    char temp[PATH_MAX + 32];
    char bytes[1 << 14];
    FILE *to = NULL;
    struct stat old;
    bool ok =
        fstat(fileno(in->rejects), &old) == 0 && realpath(ingest_options.rejects, path) != NULL;
    (void)snprintf(temp, sizeof temp, "%s.tmp-%ld", ok ? path : "", (long)getpid());
    int fd = ok ? open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    to = fd >= 0 ? fdopen(fd, "r+") : NULL;
    ok = to != NULL && fchmod(fd, old.st_mode & 07777) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    for (off_t at = 0; ok && at < end;) {
        size_t want = end - at < (off_t)sizeof bytes ? (size_t)(end - at) : sizeof bytes;
        size_t n = fread(bytes, 1, want, in->rejects);
        ok = n > 0 && fwrite(bytes, 1, n, to) == n;
        at += (off_t)n;
    }
    ok = ok && fflush(to) == 0 && (the_app.no_sync || fsync(fd) == 0) && rename(temp, path) == 0;
    if (!ok) {
        int why = errno;
        (void)(fd >= 0 ? unlink(temp) : 0);
        (void)(to != NULL ? fclose(to) : fd >= 0 ? close(fd) : 0);
        errno = why;
        return false;
    }
    (void)fclose(in->rejects);
    in->rejects = to;
    return true;
}

tarn_code ingest_open_rejects(ingest *in, const char *offsets) {
    struct stat info;
    bool is_open = in->rejects != NULL; /* before there was a state */
    int64_t keep = -1;
    text name = {0};
    if (ingest_options.rejects == NULL) {
        return TARN_OK;
    }
    tarn_code code = is_open ? TARN_OK : open_file(in, &info);
    if (code != TARN_OK || (!is_open && !S_ISREG(info.st_mode))) {
        return code;
    }
    add_name(&name, ingest_options.rejects);
    keep = is_open ? -1 : bytes_of_stream(name.data, offsets);
    if (!is_open && keep < 0 && info.st_size > 0) {
        code = refuse(in);
    } else if (keep < 0) {
        code = write_note(name.data);
    }
    if (code == TARN_OK && !is_open) { /* one that was emptied meanwhile goes on from there */
        off_t end = keep < 0 ? 0 : keep < info.st_size ? (off_t)keep : info.st_size;
        bool alone = flock(fileno(in->rejects), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        bool ok = (alone ? ftruncate(fileno(in->rejects), end) == 0 : move_away(in, end)) &&
                  fseek(in->rejects, 0, SEEK_END) == 0 &&
                  (the_app.no_sync || sync_folder_of(ingest_options.rejects));
        code = ok ? TARN_OK : ingest_rejects_error();
    }
    free(name.data);
    return code;
}

/* ---- writing it ---- */

int ingest_on_reject(void *ctx, int64_t line, const char *raw, size_t raw_len, const char *reason) {
    ingest *in = ctx;
    in->rejected++;
    if (in->rejects != NULL) {
        text t = {0};
        text_add(&t, "{\"file\":");
        text_add_json(&t, tarn_source_name(in->source));
        text_add(&t, ",\"line\":%" PRId64 ",\"reason\":", line);
        text_add_json(&t, reason);
        text_add(&t, ",\"row\":");
        if (!text_add_json_bytes(&t, raw, raw_len)) {
            text_add(&t, ",\"row-hex\":\"");
            for (size_t i = 0; i < raw_len; i++) {
                text_add(&t, "%02x", (unsigned char)raw[i]);
            }
            text_add(&t, "\"");
        }
        text_add(&t, "}\n");
        in->rejects_failed |= fwrite(t.data, 1, t.len, in->rejects) != t.len;
        free(t.data);
        return in->rejects_failed ? -1 : 0; /* a row that can't be set aside must not be lost */
    }
    return in->skip_bad ? 0 : -1;
}

/* What is no file can't be synced, and says so by EINVAL. */
tarn_code ingest_keep_rejects(const ingest *in) {
    if (in->rejects == NULL) {
        return TARN_OK;
    }
    bool ok = fflush(in->rejects) == 0;
    if (ok && in->rejected > in->rejected_before && !the_app.no_sync) {
        ok = fsync(fileno(in->rejects)) == 0 || errno == EINVAL;
    }
    return ok ? TARN_OK : ingest_rejects_error();
}
