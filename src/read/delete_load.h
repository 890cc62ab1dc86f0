/* read/delete_load.h - one delete file's content. No pool is used, so that others may wait for it
 * on the pool's threads. */
#ifndef READ_DELETE_LOAD_H
#define READ_DELETE_LOAD_H

#include "read/read_int.h"
#include "read/row_deletes.h"

/* Where the positions of one data file go. */
typedef struct delete_target {
    tarn_str path;
    tarn_positions *positions; /* made when the first one comes */
} delete_target;

typedef struct delete_loader {
    tarn_env *env;
    tarn_store *store;
    const tarn_metadata *metadata;
    const json_value *name_mapping;
    pthread_mutex_t *fill; /* held while targets and sets change */
} delete_loader;

/* The columns of a position delete file: file_path and pos. */
const tarn_type *delete_position_type(void);
/* A position delete file: only the targets' positions are kept. */
tarn_code load_positions(const delete_loader *l, const tarn_entry *entry,
                         delete_target *const *targets, int32_t n_targets,
                         tarn_error *err) TARN_MUST_USE;
/* The data files that a position delete file names, put into paths, in its arena. */
tarn_code load_paths(const delete_loader *l, const tarn_file *file, tarn_map *paths,
                     tarn_error *err) TARN_MUST_USE;
/* A deletion vector, which takes rows of all targets. */
tarn_code load_vector(const delete_loader *l, const tarn_entry *entry,
                      delete_target *const *targets, int32_t n_targets,
                      tarn_error *err) TARN_MUST_USE;
/* An equality delete file: its keys, columns ids of key_type, go into set. */
tarn_code load_keys(const delete_loader *l, const tarn_entry *entry, const tarn_type *key_type,
                    const row_delete_keys *keys, key_set *set, tarn_error *err) TARN_MUST_USE;

#endif
