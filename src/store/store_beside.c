/* store/store_beside.c - see store_beside.h.
 *
 * A folder is read name by name while others may rename in it, so that a file may be seen twice or
 * not at all. Two readings that agree were not disturbed. */
#define _GNU_SOURCE /* statx: when a file was made */
#include "store/store_beside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 16
#define MAX_LOOKS 50
#define PATH_CAP  4096

static tarn_str base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return str_of(slash != NULL ? slash + 1 : path);
}

/* What path means, through links that are its last part, also where nothing is there. */
static const char *follow_links(tarn_arena *arena, const char *path) {
    char target[PATH_CAP];
    for (int i = 0; i < MAX_LINKS && path != NULL; i++) {
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n <= 0) {
            return path;
        }
        target[n] = '\0';
        int folder = (int)(str_of(path).len - base_of(path).len);
        path = target[0] == '/' ? arena_strdup(arena, target)
                                : arena_printf(arena, "%.*s%s", folder, path, target);
    }
    return path;
}

static int64_t ns_of(const struct statx_timestamp *t) {
    return (int64_t)t->tv_sec * 1000000000 + (int64_t)t->tv_nsec;
}

static tarn_code add_file(tarn_arena *arena, const char *folder, const char *name,
                          store_beside_list *list, tarn_error *err) {
    struct statx st;
    const char *path = arena_printf(arena, "%s%s", folder, name);
    if (path == NULL) {
        return err_nomem(err);
    }
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st) != 0 ||
        !S_ISREG(st.stx_mode)) {
        return TARN_OK;
    }
    if ((list->n & (list->n - 1)) == 0) { /* full at each power of two */
        size_t cap = list->n > 0 ? (size_t)list->n * 2 : 1;
        store_beside *files =
            arena_grow(arena, list->files, (size_t)list->n * sizeof *files, cap * sizeof *files);
        if (files == NULL) {
            return err_nomem(err);
        }
        list->files = files;
    }
    list->files[list->n++] = (store_beside){
        path,
        base_of(path),
        st.stx_ino,
        (int64_t)st.stx_size,
        ns_of(&st.stx_mtime),
        (st.stx_mask & STATX_BTIME) != 0 ? ns_of(&st.stx_btime) : 0,
    };
    return TARN_OK;
}

static tarn_code list_once(tarn_arena *arena, const char *path, store_beside_list *out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    DIR *dir = NULL;
    struct dirent *entry;
    memset(out, 0, sizeof *out);
    out->named = -1;
    const char *target = follow_links(arena, path);
    const char *folder =
        target == NULL
            ? NULL
            : arena_printf(arena, "%.*s", (int)(str_of(target).len - base_of(target).len), target);
    if (folder == NULL) {
        return err_nomem(err);
    }
    out->name = base_of(path);
    out->target = base_of(target);
    dir = opendir(folder[0] != '\0' ? folder : ".");
    if (dir == NULL && errno != ENOENT) {
        return err_os(err, errno, "the folder of %s could not be listed", path);
    }
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        TRY(add_file(arena, folder, entry->d_name, out, err));
    }
    for (int32_t i = 0; i < out->n; i++) {
        out->named = str_eq(out->files[i].name, out->target) ? i : out->named;
    }
done:
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return code;
}

static bool is_same(const store_beside_list *a, const store_beside_list *b) {
    bool same = a->n == b->n && a->named == b->named && str_eq(a->target, b->target);
    for (int32_t i = 0; i < a->n && same; i++) {
        same = a->files[i].inode == b->files[i].inode && str_eq(a->files[i].name, b->files[i].name);
    }
    return same;
}

tarn_code store_list_beside(tarn_env *env, tarn_arena *arena, const char *path,
                            store_beside_list *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    store_beside_list before;
    TRY(list_once(arena, path, out, err));
    for (int i = 0; i < MAX_LOOKS; i++) {
        before = *out;
        TRY(list_once(arena, path, out, err));
        if (is_same(&before, out)) {
            return TARN_OK;
        }
        env_sleep_ms(env, 1);
    }
done:
    return code;
}
