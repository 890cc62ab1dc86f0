/* service/written.c - see written.h. */
#include "service/written.h"

tarn_code written_add(written_files *files, tarn_str path, tarn_error *err) {
    if (files->n == files->cap) {
        int32_t cap = files->cap == 0 ? 8 : files->cap * 2;
        tarn_str *paths = arena_grow(files->arena, files->paths, (size_t)files->cap * sizeof *paths,
                                     (size_t)cap * sizeof *paths);
        if (paths == NULL) {
            return err_nomem(err);
        }
        files->paths = paths;
        files->cap = cap;
    }
    files->paths[files->n++] = path;
    return TARN_OK;
}

void written_discard(written_files *files, int32_t keep) {
    while (files->n > keep) {
        store_discard(files->store, files->paths[--files->n]);
    }
}
