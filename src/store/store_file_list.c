/* store/store_file_list.c - walks a local folder: every file below it at any depth, names of one
 * folder in the order of their bytes. Links are followed, but never into a folder that the walk
 * is inside of. Files and folders that go while the walk runs are left out. */
#include "base/limits.h"
#include "store/store_file_int.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

/* Where the walk is: one for each folder from the current one up to the first. */
typedef struct walk_level {
    const struct walk_level *up;
    dev_t device;
    ino_t inode;
    int depth;
} walk_level;

typedef struct walk {
    tarn_env *env;
    tarn_buf path;     /* as the caller spelled it, then what was entered */
    size_t plain_from; /* where the plain path begins in it (after a file: scheme) */
    store_list_fn fn;
    void *ctx;
} walk;

typedef struct name_list {
    tarn_str *items;
    size_t count, cap;
} name_list;

static int compare_names(const void *a, const void *b) {
    return str_cmp(*(const tarn_str *)a, *(const tarn_str *)b);
}

static tarn_code add_name(tarn_arena *arena, name_list *names, tarn_str name, tarn_error *err) {
    if (names->count == names->cap) {
        size_t cap = names->cap == 0 ? 32 : names->cap * 2;
        tarn_str *grown =
            arena_grow(arena, names->items, names->cap * sizeof *grown, cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        names->items = grown;
        names->cap = cap;
    }
    tarn_str copy = arena_str(arena, name);
    if (copy.data == NULL) {
        return err_nomem(err);
    }
    names->items[names->count++] = copy;
    return TARN_OK;
}

static bool is_listed(const char *name) {
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !store_file_is_temp(str_of(name));
}

/* The walk's path with a NUL behind it, as the system takes it. */
static tarn_code plain_path(walk *w, const char **out, tarn_error *err) {
    tarn_code code = buf_append_char(&w->path, 0, err);
    if (code == TARN_OK) {
        w->path.len--;
        *out = (const char *)w->path.data + w->plain_from;
    }
    return code;
}

static tarn_code read_names(walk *w, tarn_arena *arena, name_list *names, tarn_error *err) {
    const char *path = NULL;
    DIR *dir = NULL;
    tarn_code code;
    TRY(plain_path(w, &path, err));
    dir = opendir(path);
    if (dir == NULL) {
        code = errno == ENOENT || errno == ENOTDIR
                   ? TARN_OK
                   : err_os(err, errno, "folder %s could not be listed", path);
        goto done;
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            code = errno == 0 ? TARN_OK : err_os(err, errno, "folder %s could not be read", path);
            break;
        }
        if (is_listed(entry->d_name)) {
            TRY(add_name(arena, names, str_of(entry->d_name), err));
        }
    }
done:
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return code;
}

static bool is_inside(const walk_level *level, const struct stat *st) {
    for (; level != NULL; level = level->up) {
        if (level->device == st->st_dev && level->inode == st->st_ino) {
            return true;
        }
    }
    return false;
}

static tarn_code walk_folder(walk *w, const walk_level *level, tarn_error *err);

/* One name of a folder: the walk's path already ends with it. */
static tarn_code visit(walk *w, const walk_level *level, tarn_error *err) {
    const char *path = NULL;
    struct stat st;
    tarn_code code = plain_path(w, &path, err);
    if (code != TARN_OK) {
        return code;
    }
    if (stat(path, &st) != 0) {
        bool gone = errno == ENOENT || errno == ELOOP || errno == ENOTDIR;
        return gone ? TARN_OK : err_os(err, errno, "file %s could not be looked at", path);
    }
    if (S_ISREG(st.st_mode)) {
        store_stat_info info = store_file_info(&st);
        return w->fn(w->ctx, buf_str(&w->path), &info, err);
    }
    if (!S_ISDIR(st.st_mode) || is_inside(level, &st)) {
        return TARN_OK;
    }
    walk_level below = {level, st.st_dev, st.st_ino, level->depth + 1};
    if (below.depth > LIMIT_FOLDER_DEPTH) {
        return err_set(err, TARN_LIMIT, "folder %s was more than %d deep", path,
                       LIMIT_FOLDER_DEPTH);
    }
    return walk_folder(w, &below, err);
}

static tarn_code walk_folder(walk *w, const walk_level *level, tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, w->env);
    name_list names = {0};
    size_t len = w->path.len;
    tarn_code code;
    TRY(env_check_cancel(w->env, err));
    TRY(read_names(w, &arena, &names, err));
    if (names.count > 1) {
        qsort(names.items, names.count, sizeof *names.items, compare_names);
    }
    for (size_t i = 0; i < names.count; i++) {
        if (w->path.data[len - 1] != '/') {
            TRY(buf_append_char(&w->path, '/', err));
        }
        TRY(buf_append_str(&w->path, names.items[i], err));
        TRY(visit(w, level, err));
        w->path.len = len;
    }
done:
    w->path.len = len;
    arena_release(&arena);
    return code;
}

/* Makes w->path the folder; *there tells whether it is one. */
static tarn_code start_walk(walk *w, tarn_str folder, struct stat *st, bool *there,
                            tarn_error *err) {
    tarn_str plain;
    const char *path = NULL;
    if (!store_local_path(folder, &plain) || plain.len == 0) {
        return err_set(err, TARN_UNSUPPORTED, "location %.*s was not a local folder",
                       STR_ARG(folder));
    }
    w->plain_from = folder.len - plain.len;
    tarn_code code = buf_append_str(&w->path, folder, err);
    if (code == TARN_OK) {
        code = plain_path(w, &path, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    *there = stat(path, st) == 0 && S_ISDIR(st->st_mode);
    if (*there || S_ISREG(st->st_mode) || errno == ENOENT || errno == ENOTDIR) {
        return TARN_OK;
    }
    return err_os(err, errno, "folder %s could not be listed", path);
}

tarn_code store_file_list(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                          tarn_error *err) {
    walk w = {.env = store->env, .fn = fn, .ctx = ctx};
    struct stat st = {0};
    bool there = false;
    tarn_code code;
    buf_init(&w.path, store->env, 0);
    TRY(start_walk(&w, prefix, &st, &there, err));
    if (there) {
        walk_level first = {NULL, st.st_dev, st.st_ino, 0};
        code = walk_folder(&w, &first, err);
    }
done:
    buf_release(&w.path);
    return code;
}

/* Gives one name of the folder that w->path is. */
static tarn_code give_name(walk *w, tarn_str name, store_folder_fn fn, void *ctx, tarn_error *err) {
    const char *path = NULL;
    struct stat st;
    size_t len = w->path.len;
    tarn_code code;
    TRY(buf_append_char(&w->path, '/', err));
    TRY(buf_append_str(&w->path, name, err));
    TRY(plain_path(w, &path, err));
    if (stat(path, &st) != 0) {
        bool gone = errno == ENOENT || errno == ELOOP || errno == ENOTDIR;
        code = gone ? TARN_OK : err_os(err, errno, "file %s could not be looked at", path);
    } else if (S_ISDIR(st.st_mode)) {
        code = fn(ctx, name, NULL, err);
    } else if (S_ISREG(st.st_mode)) {
        store_stat_info info = store_file_info(&st);
        code = fn(ctx, name, &info, err);
    }
done:
    w->path.len = len;
    return code;
}

tarn_code store_file_list_folder(tarn_store *store, tarn_str folder, store_folder_fn fn, void *ctx,
                                 tarn_error *err) {
    walk w = {.env = store->env};
    tarn_arena arena;
    name_list names = {0};
    struct stat st = {0};
    bool there = false;
    tarn_code code;
    arena_init(&arena, store->env);
    buf_init(&w.path, store->env, 0);
    TRY(start_walk(&w, folder, &st, &there, err));
    if (there) {
        TRY(read_names(&w, &arena, &names, err));
    }
    if (names.count > 1) {
        qsort(names.items, names.count, sizeof *names.items, compare_names);
    }
    for (size_t i = 0; i < names.count; i++) {
        TRY(give_name(&w, names.items[i], fn, ctx, err));
    }
done:
    buf_release(&w.path);
    arena_release(&arena);
    return code;
}
