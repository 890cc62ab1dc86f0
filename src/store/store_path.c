/* store/store_path.c - see store_path.h. */
#include "store/store_path.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "store/store.h"

tarn_code store_absolute(tarn_arena *arena, tarn_str path, tarn_str *out, tarn_error *err) {
    char folder[PATH_MAX];
    if (path.len == 0) {
        return err_set(err, TARN_INVALID, "a path was empty");
    }
    while (path.len > 1 && path.data[path.len - 1] == '/') {
        path.len--;
    }
    if (path.data[0] == '/' || store_scheme(path).len > 0) {
        *out = arena_str(arena, path);
        return out->data != NULL ? TARN_OK : err_nomem(err);
    }
    while (str_starts_with(path, STR("./"))) {
        path = str_from(path, 2);
    }
    if (getcwd(folder, sizeof folder) == NULL) {
        return err_os(err, errno, "could not find the working directory");
    }
    if (path.len == 0 || str_is(path, ".")) {
        *out = arena_str(arena, str_of(folder));
    } else {
        *out = str_of(store_join(arena, str_of(folder), path));
    }
    return out->data != NULL ? TARN_OK : err_nomem(err);
}
