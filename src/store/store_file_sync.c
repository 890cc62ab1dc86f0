/* store/store_file_sync.c - what was written and need not be durable yet, kept until it must be.
 *
 * Files are kept by their open descriptors, folders (whose entries are new) by path. A flush syncs
 * all of them at once, since a disk merges what waits at the same time: a commit of several files
 * then costs little more than one. An fsync that failed is never trusted again (the kernel may have
 * dropped the pages): every later flush fails too. */
#include "store/store_file_int.h"

#include "base/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void sync_queue_init(sync_queue *queue, tarn_env *env) {
    memset(queue, 0, sizeof *queue);
    queue->env = env;
    (void)pthread_mutex_init(&queue->lock, NULL);
}

static void forget(sync_queue *queue) {
    for (int i = 0; i < queue->n_files; i++) {
        (void)close(queue->files[i]);
    }
    for (int i = 0; i < queue->n_folders; i++) {
        env_free(queue->env, queue->folders[i]);
    }
    queue->n_files = 0;
    queue->n_folders = 0;
}

void sync_queue_release(sync_queue *queue) {
    forget(queue);
    (void)pthread_mutex_destroy(&queue->lock);
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

static tarn_code sync_one(void *ctx, size_t index, tarn_error *err) {
    const sync_queue *queue = ctx;
    int i = (int)index;
    if (i >= queue->n_files) {
        tarn_code code = sync_queue_sync_folder(queue->folders[i - queue->n_files], err);
        /* a folder that was removed meanwhile took what was new in it along */
        return code == TARN_NOT_FOUND ? TARN_OK : code;
    }
    return fsync(queue->files[i]) == 0 ? TARN_OK
                                       : err_os(err, errno, "a new file could not be synced");
}

static tarn_code flush_locked(sync_queue *queue, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (queue->failed) {
        forget(queue);
        return err_set(err, TARN_IO, "files could not be synced since an earlier sync failed");
    }
    code = pool_for_blocking((size_t)(queue->n_files + queue->n_folders), sync_one, queue, err);
    queue->failed = code != TARN_OK;
    forget(queue);
    return code;
}

tarn_code sync_queue_flush(sync_queue *queue, tarn_error *err) {
    (void)pthread_mutex_lock(&queue->lock);
    tarn_code code = flush_locked(queue, err);
    (void)pthread_mutex_unlock(&queue->lock);
    return code;
}

static tarn_code add_folder(sync_queue *queue, const char *folder, size_t len, tarn_error *err) {
    tarn_str name = len > 0 ? str_make(folder, len) : STR(".");
    for (int i = 0; i < queue->n_folders; i++) {
        if (str_eq(str_of(queue->folders[i]), name)) {
            return TARN_OK;
        }
    }
    if (queue->n_folders == SYNC_QUEUE_FOLDERS) {
        tarn_code code = flush_locked(queue, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    char *copy = env_alloc(queue->env, name.len + 1);
    if (copy == NULL) {
        return err_nomem(err);
    }
    memcpy(copy, name.data, name.len);
    copy[name.len] = '\0';
    queue->folders[queue->n_folders++] = copy;
    return TARN_OK;
}

tarn_code sync_queue_folder(sync_queue *queue, const char *folder, size_t len, tarn_error *err) {
    (void)pthread_mutex_lock(&queue->lock);
    tarn_code code = add_folder(queue, folder, len, err);
    (void)pthread_mutex_unlock(&queue->lock);
    return code;
}

tarn_code sync_queue_file(sync_queue *queue, int fd, const char *folder, size_t len,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    (void)pthread_mutex_lock(&queue->lock);
    if (queue->n_files == SYNC_QUEUE_FILES) {
        code = flush_locked(queue, err);
    }
    if (code == TARN_OK) {
        queue->files[queue->n_files++] = fd;
        code = add_folder(queue, folder, len, err);
    } else {
        (void)close(fd);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return code;
}
