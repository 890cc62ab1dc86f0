/* store/store_file_int.h - what the two files of the local store share: store_file.c writes and
 * reads, store_file_list.c walks folders. */
#ifndef STORE_STORE_FILE_INT_H
#define STORE_STORE_FILE_INT_H

#include "store/store.h"

#include <pthread.h>
#include <sys/stat.h>

#define SYNC_QUEUE_FILES   32
#define SYNC_QUEUE_FOLDERS 64

typedef struct sync_file {
    int fd;     /* open */
    char *temp; /* its name so far; NULL: it has its name */
    char *path; /* with temp: the name that it gets when all is durable */
} sync_file;

typedef struct sync_batch {
    sync_file files[SYNC_QUEUE_FILES];
    int n_files;
    char *folders[SYNC_QUEUE_FOLDERS];
    int n_folders;
} sync_batch;

/* store_file_sync.c: files and folders that are to become durable together. Any thread. */
typedef struct sync_queue {
    tarn_env *env;
    pthread_mutex_t flushing; /* held while a batch is synced; taken before lock */
    pthread_mutex_t lock;
    sync_batch waiting; /* guarded by lock, as failed */
    bool failed;
} sync_queue;

void sync_queue_init(sync_queue *queue, tarn_env *env);
void sync_queue_release(sync_queue *queue); /* what waits is forgotten */
/* Takes fd (also on failure); folder[0..len) holds the file's name. A full queue is flushed first.
 */
tarn_code sync_queue_file(sync_queue *queue, int fd, const char *folder, size_t len,
                          tarn_error *err) TARN_MUST_USE;
/* The same for a file that is renamed from temp to path once it, and all that waited before it, is
 * durable. On failure the temporary file is removed. */
tarn_code sync_queue_named(sync_queue *queue, int fd, const char *temp, const char *path,
                           tarn_error *err) TARN_MUST_USE;
/* A folder with a new entry. */
tarn_code sync_queue_folder(sync_queue *queue, const char *folder, size_t len,
                            tarn_error *err) TARN_MUST_USE;
/* All that waits, and fd with it, which stays the caller's; -1: none. */
tarn_code sync_queue_flush(sync_queue *queue, int fd, tarn_error *err) TARN_MUST_USE;
tarn_code sync_queue_sync_folder(const char *folder, tarn_error *err) TARN_MUST_USE; /* at once */

bool store_file_is_temp(tarn_str name); /* left by a writer that died */
bool store_file_is_folder(const char *path);
tarn_code store_file_list(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                          tarn_error *err);
tarn_code store_file_list_folder(tarn_store *store, tarn_str folder, store_folder_fn fn, void *ctx,
                                 tarn_error *err);

static inline store_stat_info store_file_info(const struct stat *st) {
    return (store_stat_info){(int64_t)st->st_size,
                             (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000};
}

#endif
