/* store/store_file_sync.c - what was written and need not be durable yet, kept until it must be.
 *
 * Files are kept by their open descriptors, folders (whose entries are new) by path. A flush syncs
 * all of them at once, since a disk merges what waits at the same time: a commit of several files
 * then costs little more than one. Files that wait for their names get them after that, and their
 * folders are synced: so a name never outlives a power cut that the file, or what came before it,
 * did not; of several names of one flush any may outlive it, in any order, until it is over. An
 * fsync that failed is never trusted again (the kernel may have dropped the pages): every later
 * flush fails too. */
#include "store/store_file_int.h"

#include "base/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void sync_queue_init(sync_queue *queue, tarn_env *env) {
    memset(queue, 0, sizeof *queue);
    queue->env = env;
    (void)pthread_mutex_init(&queue->flushing, NULL);
    (void)pthread_mutex_init(&queue->lock, NULL);
}

static void forget_file(tarn_env *env, sync_file *file) {
    (void)close(file->fd);
    if (file->temp != NULL) {
        (void)unlink(file->temp);
    }
    env_free(env, file->temp);
    env_free(env, file->path);
}

static void forget(tarn_env *env, sync_batch *batch) {
    for (int i = 0; i < batch->n_files; i++) {
        forget_file(env, &batch->files[i]);
    }
    for (int i = 0; i < batch->n_folders; i++) {
        env_free(env, batch->folders[i]);
    }
    batch->n_files = 0;
    batch->n_folders = 0;
}

void sync_queue_release(sync_queue *queue) {
    forget(queue->env, &queue->waiting);
    (void)pthread_mutex_destroy(&queue->lock);
    (void)pthread_mutex_destroy(&queue->flushing);
}

tarn_code sync_queue_sync_folder(const char *folder, tarn_error *err) {
    tarn_code code = TARN_OK;
    int fd;
    do {
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return err_os(err, errno, "folder %s could not be opened to sync it", folder);
    }
    /* some file systems have no sync of folders to offer, which they say by EINVAL */
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) {
        code = err_os(err, errno, "folder %s could not be synced", folder);
    }
    (void)close(fd);
    return code;
}

typedef struct flush_round {
    const sync_batch *batch;
    int fd; /* one more file; -1: none */
} flush_round;

static tarn_code sync_folder(const sync_batch *batch, int i, tarn_error *err) {
    tarn_code code = sync_queue_sync_folder(batch->folders[i], err);
    /* a folder that was removed meanwhile took what was new in it along */
    return code == TARN_NOT_FOUND ? TARN_OK : code;
}

static tarn_code sync_one(void *ctx, size_t index, tarn_error *err) {
    const flush_round *round = ctx;
    const sync_batch *batch = round->batch;
    int i = (int)index;
    int fd = i < batch->n_files ? batch->files[i].fd : round->fd;
    if (i >= batch->n_files && i < batch->n_files + batch->n_folders) {
        return sync_folder(batch, i - batch->n_files, err);
    }
    return fsync(fd) == 0 ? TARN_OK : err_os(err, errno, "a new file could not be synced");
}

static tarn_code sync_one_folder(void *ctx, size_t index, tarn_error *err) {
    return sync_folder(ctx, (int)index, err);
}

static tarn_code note_folder(tarn_env *env, sync_batch *batch, const char *folder, size_t len,
                             tarn_error *err) {
    tarn_str name = len > 0 ? str_make(folder, len) : STR(".");
    for (int i = 0; i < batch->n_folders; i++) {
        if (str_eq(str_of(batch->folders[i]), name)) {
            return TARN_OK;
        }
    }
    char *copy = env_alloc(env, name.len + 1);
    if (copy == NULL) {
        return err_nomem(err);
    }
    memcpy(copy, name.data, name.len);
    copy[name.len] = '\0';
    batch->folders[batch->n_folders++] = copy;
    return TARN_OK;
}

/* The files that wait for it, which are durable by now; then their folders are the batch's. */
static tarn_code give_names(tarn_env *env, sync_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int i = 0; i < batch->n_folders; i++) {
        env_free(env, batch->folders[i]);
    }
    batch->n_folders = 0;
    for (int i = 0; i < batch->n_files; i++) {
        sync_file *file = &batch->files[i];
        if (file->temp == NULL) {
            continue;
        }
        const char *slash = strrchr(file->path, '/');
        size_t len = slash != NULL ? (size_t)(slash - file->path) + 1 : 0;
        TRY(note_folder(env, batch, file->path, len, err));
        if (rename(file->temp, file->path) != 0) {
            code = err_os(err, errno, "file %s could not be given its name", file->path);
            goto done;
        }
        env_free(env, file->temp);
        file->temp = NULL;
    }
done:
    return code;
}

static tarn_code sync_all(tarn_env *env, sync_batch *batch, int fd, tarn_error *err) {
    tarn_code code = TARN_OK;
    flush_round round = {batch, fd};
    size_t n = (size_t)(batch->n_files + batch->n_folders) + (fd >= 0 ? 1u : 0u);
    TRY(pool_for_blocking(n, sync_one, &round, err));
    TRY(give_names(env, batch, err));
    code = pool_for_blocking((size_t)batch->n_folders, sync_one_folder, batch, err);
done:
    return code;
}

/* Others add to the queue meanwhile; who flushes too waits, since what it means may be in here. */
tarn_code sync_queue_flush(sync_queue *queue, int fd, tarn_error *err) {
    tarn_code code;
    (void)pthread_mutex_lock(&queue->flushing);
    (void)pthread_mutex_lock(&queue->lock);
    sync_batch batch = queue->waiting;
    queue->waiting.n_files = 0;
    queue->waiting.n_folders = 0;
    bool failed = queue->failed;
    (void)pthread_mutex_unlock(&queue->lock);
    code = failed ? err_set(err, TARN_IO, "files could not be synced since an earlier sync failed")
                  : sync_all(queue->env, &batch, fd, err);
    if (code != TARN_OK) {
        (void)pthread_mutex_lock(&queue->lock);
        queue->failed = true;
        (void)pthread_mutex_unlock(&queue->lock);
    }
    forget(queue->env, &batch);
    (void)pthread_mutex_unlock(&queue->flushing);
    return code;
}

/* Takes the lock, with room for one more file and folder. */
static tarn_code lock_with_room(sync_queue *queue, tarn_error *err) {
    tarn_code code = TARN_OK;
    (void)pthread_mutex_lock(&queue->lock);
    while (code == TARN_OK && (queue->waiting.n_files == SYNC_QUEUE_FILES ||
                               queue->waiting.n_folders == SYNC_QUEUE_FOLDERS)) {
        (void)pthread_mutex_unlock(&queue->lock);
        code = sync_queue_flush(queue, -1, err);
        (void)pthread_mutex_lock(&queue->lock);
    }
    return code;
}

tarn_code sync_queue_folder(sync_queue *queue, const char *folder, size_t len, tarn_error *err) {
    tarn_code code = lock_with_room(queue, err);
    if (code == TARN_OK) {
        code = note_folder(queue->env, &queue->waiting, folder, len, err);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return code;
}

tarn_code sync_queue_file(sync_queue *queue, int fd, const char *folder, size_t len,
                          tarn_error *err) {
    tarn_code code = lock_with_room(queue, err);
    if (code == TARN_OK) {
        queue->waiting.files[queue->waiting.n_files++] = (sync_file){fd, NULL, NULL};
        code = note_folder(queue->env, &queue->waiting, folder, len, err);
    } else {
        (void)close(fd);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return code;
}

static char *copy_text(tarn_env *env, const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = env_alloc(env, size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

tarn_code sync_queue_named(sync_queue *queue, int fd, const char *temp, const char *path,
                           tarn_error *err) {
    sync_file file = {fd, copy_text(queue->env, temp), copy_text(queue->env, path)};
    tarn_code code = lock_with_room(queue, err);
    if (code == TARN_OK && (file.temp == NULL || file.path == NULL)) {
        code = err_nomem(err);
    }
    if (code == TARN_OK) {
        queue->waiting.files[queue->waiting.n_files++] = file;
    } else {
        (void)unlink(temp);
        forget_file(queue->env, &file);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return code;
}
