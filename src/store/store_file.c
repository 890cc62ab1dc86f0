/* store/store_file.c - objects as local files.
 *
 * Writing: a temporary file beside the target takes the bytes through one buffer, is synced and
 * closed, and then gets its name by link(2) (STORE_CREATE: the file system picks one winner) or
 * rename(2) (STORE_REPLACE); then the folder is synced. With STORE_CREATE_LATER both syncs wait for
 * the next barrier (store_file_sync.c), with STORE_REPLACE_LATER the name does too. A file under
 * its own name is therefore always whole. Temporary names are ".NAME.tmp-" and 16 hex digits;
 * listing leaves them out.
 *
 * Names are bytes: no percent decoding, no folding. Only a file: scheme in front is taken off. */
#include "store/store.h"

#include "base/limits.h"
#include "store/store_file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUFFER_BYTES    ((size_t)128 << 10)
#define TEMP_TAIL_BYTES 21  /* ".tmp-" and 16 digits */
#define TEMP_NAME_BYTES 200 /* longer names are not repeated in the temporary one */
#define CREATE_TRIES    8

typedef struct file_store {
    tarn_store base;
    bool sync;
    sync_queue later;
} file_store;

typedef struct file_source {
    io_source base;
    int fd;
    char path[];
} file_source;

typedef struct file_sink {
    io_sink base;
    int fd;
    file_store *store;
    bool failed; /* a write failed: finish must not make the rest visible */
    store_mode mode;
    uint8_t *buffer; /* made at the first write that fits into it */
    size_t buffered;
    size_t folder_len; /* of path, with its slash; 0: the working folder */
    char *temp;        /* path of the temporary file */
    char path[];
} file_sink;

/* The plain path of a location with a NUL behind it. */
static tarn_code copy_path(tarn_env *env, tarn_str location, char **out, tarn_error *err) {
    tarn_str path;
    if (!store_local_path(location, &path)) {
        return err_set(err, TARN_UNSUPPORTED, "location %.*s was not a local file",
                       STR_ARG(location));
    }
    if (path.len == 0) {
        return err_set(err, TARN_INVALID, "location %.*s had no path", STR_ARG(location));
    }
    char *copy = env_alloc(env, path.len + 1);
    if (copy == NULL) {
        return err_nomem(err);
    }
    memcpy(copy, path.data, path.len);
    copy[path.len] = 0;
    *out = copy;
    return TARN_OK;
}

static unsigned file_traits(tarn_store *store) {
    const file_store *self = (const file_store *)store;
    return STORE_ATOMIC_CREATE | STORE_LIST_CONSISTENT | STORE_SETTLED | STORE_LOCAL |
           (self->sync ? STORE_DURABLE : 0u);
}

static tarn_code source_read_at(io_source *source, int64_t offset, void *dst, size_t len,
                                tarn_error *err) {
    file_source *self = (file_source *)source;
    uint8_t *to = dst;
    if (offset < 0 || offset > source->size_bytes ||
        len > (uint64_t)(source->size_bytes - offset)) {
        return err_set(err, TARN_CORRUPT, "file %s of %lld bytes ended before offset %lld + %zu",
                       self->path, (long long)source->size_bytes, (long long)offset, len);
    }
    while (len > 0) {
        ssize_t got = pread(self->fd, to, len, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_os(err, errno, "file %s could not be read at offset %lld", self->path,
                          (long long)offset);
        }
        if (got == 0) {
            return err_set(err, TARN_CORRUPT, "file %s was cut short at offset %lld", self->path,
                           (long long)offset);
        }
        to += got;
        offset += got;
        len -= (size_t)got;
    }
    return TARN_OK;
}

static void source_close(io_source *source) {
    file_source *self = (file_source *)source;
    (void)close(self->fd); /* nothing was written */
    env_free(source->env, self);
}

static int open_retry(const char *path, int flags) {
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static tarn_code file_open(tarn_store *store, tarn_str path, int64_t size_hint, io_source **out,
                           tarn_error *err) {
    (void)size_hint; /* fstat is nearer to the truth and costs little */
    tarn_env *env = store->env;
    char *name = NULL;
    file_source *self = NULL;
    int fd = -1;
    struct stat st;
    tarn_code code;
    TRY(copy_path(env, path, &name, err));
    /* O_NONBLOCK: a named pipe must not hold the caller for ever. */
    fd = open_retry(name, O_RDONLY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        code = err_os(err, errno, "file %s could not be opened", name);
        goto done;
    }
    if (!S_ISREG(st.st_mode)) {
        code = err_set(err, TARN_INVALID, "%s was not a file", name);
        goto done;
    }
    size_t len = strlen(name) + 1;
    self = env_alloc(env, sizeof *self + len);
    if (self == NULL) {
        code = err_nomem(err);
        goto done;
    }
    memcpy(self->path, name, len);
    self->fd = fd;
    self->base =
        (io_source){env, self->path, (int64_t)st.st_size, source_read_at, NULL, source_close};
    fd = -1;
    *out = &self->base;
done:
    if (fd >= 0) {
        (void)close(fd);
    }
    env_free(env, name);
    return code;
}

/* Length of the folder that holds the first len bytes of path, with its slash. */
static size_t parent_len(const char *path, size_t len) {
    while (len > 0 && path[len - 1] == '/') {
        len--;
    }
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    return len;
}

static tarn_code sync_parent(char *path, size_t len, tarn_error *err) {
    len = parent_len(path, len);
    if (len == 0) {
        return sync_queue_sync_folder(".", err);
    }
    char kept = path[len];
    path[len] = 0;
    tarn_code code = sync_queue_sync_folder(path, err);
    path[len] = kept;
    return code;
}

/* Nothing can be made below a file: whoever named the place is wrong, and nothing is missing. */
static tarn_code below_a_file(char *path, tarn_error *err) {
    struct stat st;
    for (size_t i = 1; path[i] != 0; i++) {
        if (path[i] != '/') {
            continue;
        }
        path[i] = 0;
        bool is_file = stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
        if (is_file) {
            (void)err_set(err, TARN_INVALID, "%s is a file, and was named as a folder", path);
        }
        path[i] = '/';
        if (is_file) {
            return TARN_INVALID;
        }
    }
    return err_os(err, ENOTDIR, "file %s could not be made", path);
}

/* Makes the folder named by the first len bytes of path, and those above it; durable now or later.
 */
static tarn_code make_folders(file_store *store, char *path, size_t len, bool later,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    for (size_t i = 1; i <= len && code == TARN_OK; i++) {
        if (path[i - 1] == '/' || (i < len && path[i] != '/')) {
            continue;
        }
        char kept = path[i];
        path[i] = 0;
        if (mkdir(path, 0777) == 0) {
            if (store->sync && later) {
                code = sync_queue_folder(&store->later, path, parent_len(path, i), err);
            } else if (store->sync) {
                code = sync_parent(path, i, err);
            }
        } else if (errno == ENOTDIR) {
            path[i] = kept;
            return below_a_file(path, err);
        } else if (errno != EEXIST) {
            int os_code = errno; /* a folder that is there is no error, whatever mkdir said */
            code = store_file_is_folder(path)
                       ? TARN_OK
                       : err_os(err, os_code, "folder %s could not be made", path);
        }
        path[i] = kept;
    }
    return code;
}

/* Writes the name of a new temporary file behind self->path's folder into self->temp. */
static void name_temp(file_sink *self) {
    uint64_t chance = env_random_u64(self->base.env);
    const char *name = self->path + self->folder_len;
    size_t name_len = strlen(name);
    char *to = self->temp;
    memcpy(to, self->path, self->folder_len);
    to += self->folder_len;
    *to++ = '.';
    if (name_len <= TEMP_NAME_BYTES) {
        memcpy(to, name, name_len);
        to += name_len;
    }
    memcpy(to, ".tmp-", 5);
    to += 5;
    for (int shift = 60; shift >= 0; shift -= 4) {
        *to++ = "0123456789abcdef"[(chance >> shift) & 15];
    }
    *to = 0;
}

bool store_file_is_temp(tarn_str name) {
    if (name.len < TEMP_TAIL_BYTES + 1 || name.data[0] != '.') {
        return false;
    }
    tarn_str tail = str_from(name, name.len - TEMP_TAIL_BYTES);
    if (!str_starts_with(tail, STR(".tmp-"))) {
        return false;
    }
    for (size_t i = 5; i < tail.len; i++) {
        char c = tail.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return true;
}

bool store_file_is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static tarn_code write_all(file_sink *self, const uint8_t *data, size_t len, tarn_error *err) {
    while (len > 0) {
        ssize_t put = write(self->fd, data, len);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            self->failed = true;
            return err_os(err, put < 0 ? errno : EIO, "file %s could not be written", self->path);
        }
        data += put;
        len -= (size_t)put;
    }
    return TARN_OK;
}

static tarn_code flush_buffer(file_sink *self, tarn_error *err) {
    size_t len = self->buffered;
    self->buffered = 0;
    return len > 0 ? write_all(self, self->buffer, len, err) : TARN_OK;
}

static tarn_code sink_write(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    file_sink *self = (file_sink *)sink;
    if (self->failed) {
        return err_set(err, TARN_IO, "an earlier write of file %s had failed", self->path);
    }
    if (len >= BUFFER_BYTES || len > BUFFER_BYTES - self->buffered) {
        tarn_code code = flush_buffer(self, err);
        if (code != TARN_OK || len >= BUFFER_BYTES) {
            return code != TARN_OK ? code : write_all(self, data, len, err);
        }
    }
    if (self->buffer == NULL) {
        self->buffer = env_alloc(sink->env, BUFFER_BYTES);
        if (self->buffer == NULL) {
            self->failed = true;
            return err_nomem(err);
        }
    }
    if (len > 0) {
        memcpy(self->buffer + self->buffered, data, len);
        self->buffered += len;
    }
    return TARN_OK;
}

static void free_sink(file_sink *self) {
    tarn_env *env = self->base.env;
    if (self->fd >= 0) {
        (void)close(self->fd);
    }
    env_free(env, self->buffer);
    env_free(env, self->temp);
    env_free(env, self);
}

static void sink_abort(io_sink *sink) {
    file_sink *self = (file_sink *)sink;
    (void)unlink(self->temp); /* a leftover is never listed */
    free_sink(self);
}

/* Moves temp to path unless path is there, for file systems that have no hard links. Linux only
 * knows this by number: the C library's wrapper needs its GNU face. */
static int rename_if_absent(const char *temp, const char *path) {
#ifdef SYS_renameat2
    return (int)syscall(SYS_renameat2, AT_FDCWD, temp, AT_FDCWD, path, 1u /* RENAME_NOREPLACE */);
#else
    (void)temp;
    (void)path;
    errno = ENOTSUP;
    return -1;
#endif
}

/* link(2) may report EEXIST for its own success when a network file system sent it twice; two
 * links on the temporary file tell. */
static bool was_linked(const char *temp) {
    struct stat st;
    return lstat(temp, &st) == 0 && st.st_nlink == 2;
}

static tarn_code publish_new(file_sink *self, tarn_error *err) {
    int error = 0;
    if (link(self->temp, self->path) != 0) {
        error = errno;
        if (was_linked(self->temp)) {
            error = 0;
        } else if (error == EPERM || error == ENOTSUP || error == ENOSYS || error == EMLINK) {
            error = rename_if_absent(self->temp, self->path) == 0 ? 0 : errno;
        }
    }
    if (error == EEXIST) {
        return err_set(err, TARN_CONFLICT, "file %s was already there", self->path);
    }
    if (error != 0) {
        return err_os(err, error, "file %s could not be given its name", self->path);
    }
    (void)unlink(self->temp);
    return TARN_OK;
}

/* The file's content, durable before it gets its name; what was put off comes first, since whoever
 * reads the name may follow it there. */
static tarn_code settle(file_sink *self, tarn_error *err) {
    if (self->store->sync) {
        tarn_code code = sync_queue_flush(&self->store->later, self->fd, err);
        if (code != TARN_OK) {
            return err_add(err, code, "file %s", self->path);
        }
    }
    int fd = self->fd;
    self->fd = -1;
    if (close(fd) != 0 && errno != EINTR) { /* network file systems tell of lost writes here */
        return err_os(err, errno, "file %s could not be closed", self->path);
    }
    return TARN_OK;
}

/* The name comes with the next barrier, which takes the temporary file over. */
static tarn_code finish_unnamed(file_sink *self, tarn_error *err) {
    int fd = self->fd;
    self->fd = -1;
    return sync_queue_named(&self->store->later, fd, self->temp, self->path, err);
}

static tarn_code finish_later(file_sink *self, tarn_error *err) {
    int fd = self->fd;
    if (!self->store->sync) {
        return TARN_OK;
    }
    self->fd = -1;
    return sync_queue_file(&self->store->later, fd, self->path, self->folder_len, err);
}

static tarn_code sink_finish(io_sink *sink, tarn_error *err) {
    file_sink *self = (file_sink *)sink;
    tarn_code code;
    bool published = false;
    bool later = self->mode == STORE_CREATE_LATER;
    if (self->failed) {
        code = err_set(err, TARN_IO, "an earlier write of file %s had failed", self->path);
        goto done;
    }
    TRY(flush_buffer(self, err));
    if (self->mode == STORE_REPLACE_LATER && self->store->sync) {
        published = true; /* or gone */
        TRY(finish_unnamed(self, err));
        goto done;
    }
    if (!later) {
        TRY(settle(self, err));
    }
    if (self->mode == STORE_CREATE || later) {
        TRY(publish_new(self, err));
    } else if (rename(self->temp, self->path) != 0) {
        code = err_os(err, errno, "file %s could not be given its name", self->path);
        goto done;
    }
    published = true;
    if (later) {
        TRY(finish_later(self, err));
    } else if (self->store->sync) {
        TRY(sync_parent(self->path, strlen(self->path), err));
    }
done:
    if (!published) {
        (void)unlink(self->temp);
    }
    free_sink(self);
    return code;
}

/* Opens a temporary file beside the target, making the folder when it is missing. */
static tarn_code open_temp(file_sink *self, tarn_error *err) {
    for (int tries = 0; tries < CREATE_TRIES; tries++) {
        name_temp(self);
        self->fd = open_retry(self->temp, O_WRONLY | O_CREAT | O_EXCL);
        if (self->fd >= 0) {
            return TARN_OK;
        }
        if (errno == ENOENT && self->folder_len > 0) {
            tarn_code code = make_folders(
                self->store, self->path, self->folder_len,
                self->mode == STORE_CREATE_LATER || self->mode == STORE_REPLACE_LATER, err);
            if (code != TARN_OK) {
                return code;
            }
        } else if (errno != EEXIST) {
            break;
        }
    }
    return errno == ENOTDIR ? below_a_file(self->path, err)
                            : err_os(err, errno, "file %s could not be made", self->path);
}

static tarn_code file_create(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                             tarn_error *err) {
    tarn_env *env = store->env;
    char *name = NULL;
    file_sink *self = NULL;
    tarn_code code;
    TRY(copy_path(env, path, &name, err));
    size_t len = strlen(name);
    if (name[len - 1] == '/') {
        code = err_set(err, TARN_INVALID, "path %s named a folder", name);
        goto done;
    }
    self = env_alloc(env, sizeof *self + len + 1);
    if (self == NULL) {
        code = err_nomem(err);
        goto done;
    }
    memset(self, 0, sizeof *self);
    memcpy(self->path, name, len + 1);
    self->base = (io_sink){env, self->path, 0, sink_write, sink_finish, sink_abort};
    self->fd = -1;
    self->store = (file_store *)store;
    self->mode = mode;
    const char *slash = strrchr(self->path, '/');
    self->folder_len = slash != NULL ? (size_t)(slash - self->path) + 1 : 0;
    self->temp = env_alloc(env, len + TEMP_TAIL_BYTES + 2);
    if (self->temp == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(open_temp(self, err));
    *out = &self->base;
    self = NULL;
done:
    if (self != NULL) {
        free_sink(self);
    }
    env_free(env, name);
    return code;
}

static tarn_code file_stat(tarn_store *store, tarn_str path, store_stat_info *out,
                           tarn_error *err) {
    char *name = NULL;
    struct stat st;
    tarn_code code;
    TRY(copy_path(store->env, path, &name, err));
    if (stat(name, &st) != 0) {
        code = err_os(err, errno, "file %s could not be found", name);
        goto done;
    }
    if (!S_ISREG(st.st_mode)) {
        code = err_set(err, TARN_NOT_FOUND, "%s was not a file", name);
        goto done;
    }
    *out = store_file_info(&st);
done:
    env_free(store->env, name);
    return code;
}

static tarn_code file_remove(tarn_store *store, tarn_str path, tarn_error *err) {
    char *name = NULL;
    struct stat st;
    tarn_code code;
    TRY(copy_path(store->env, path, &name, err));
    if (lstat(name, &st) == 0 && S_ISDIR(st.st_mode)) {
        code = err_set(err, TARN_NOT_FOUND, "%s was a folder, not a file", name);
        goto done;
    }
    if (unlink(name) != 0) {
        code = err_os(err, errno, "file %s could not be removed", name);
    }
done:
    env_free(store->env, name);
    return code;
}

static tarn_code file_make_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    file_store *self = (file_store *)store;
    char *name = NULL;
    tarn_code code;
    TRY(copy_path(store->env, folder, &name, err));
    size_t len = strlen(name);
    while (len > 1 && name[len - 1] == '/') {
        name[--len] = 0;
    }
    const char *slash = strrchr(name, '/');
    if (slash != NULL) {
        TRY(make_folders(self, name, (size_t)(slash - name), false, err));
    }
    if (mkdir(name, 0777) != 0) {
        code = errno == EEXIST ? err_set(err, TARN_CONFLICT, "folder %s was already there", name)
                               : err_os(err, errno, "folder %s could not be made", name);
        goto done;
    }
    code = self->sync ? sync_parent(name, len, err) : TARN_OK;
done:
    env_free(store->env, name);
    return code;
}

static tarn_code file_remove_folder(tarn_store *store, tarn_str folder, tarn_error *err) {
    char *name = NULL;
    tarn_code code;
    TRY(copy_path(store->env, folder, &name, err));
    if (rmdir(name) == 0) {
        goto done;
    }
    if (errno == ENOTEMPTY || errno == EEXIST) {
        code = err_set(err, TARN_CONFLICT, "folder %s was not empty", name);
    } else if (errno == ENOTDIR) {
        code = err_set(err, TARN_NOT_FOUND, "%s was not a folder", name);
    } else {
        code = err_os(err, errno, "folder %s could not be removed", name);
    }
done:
    env_free(store->env, name);
    return code;
}

static tarn_code file_sync(tarn_store *store, tarn_error *err) {
    return sync_queue_flush(&((file_store *)store)->later, -1, err);
}

static void file_close(tarn_store *store) {
    sync_queue_release(&((file_store *)store)->later);
    env_free(store->env, store);
}

static const store_vtable FILE_VTABLE = {
    .name = "file",
    .traits = file_traits,
    .open = file_open,
    .create = file_create,
    .stat = file_stat,
    .remove = file_remove,
    .list = store_file_list,
    .list_folder = store_file_list_folder,
    .make_folder = file_make_folder,
    .remove_folder = file_remove_folder,
    .sync = file_sync,
    .close = file_close,
};

tarn_code store_file_new(tarn_env *env, bool sync, tarn_store **out, tarn_error *err) {
    file_store *self = env_calloc(env, 1, sizeof *self);
    if (self == NULL) {
        return err_nomem(err);
    }
    self->base = (tarn_store){&FILE_VTABLE, env};
    self->sync = sync;
    sync_queue_init(&self->later, env);
    *out = &self->base;
    return TARN_OK;
}
