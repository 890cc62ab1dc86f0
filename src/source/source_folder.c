/* source/source_folder.c - files that arrive in a folder, each taken once, in the order of names
 * among those that are there.
 *
 * A file is taken when it has its name: whoever writes it does so under another one first, with a
 * dot or an underscore in front or .tmp or .part behind, and renames it. One that has another size
 * later is told of, once. Names that are gone from the folder are forgotten, so what is remembered
 * stays as small as the folder. */
#include "source/source_int.h"

#include <stdlib.h>

void folder_init(source_folder *f, tarn_env *env, const char *path) {
    memset(f, 0, sizeof *f);
    f->env = env;
    f->path = path;
    arena_init(&f->arena, env);
    arena_init(&f->waiting_arena, env);
    map_init(&f->done, &f->arena);
}

void folder_release(source_folder *f) {
    arena_release(&f->arena);
    arena_release(&f->waiting_arena);
}

static tarn_code put_done(tarn_map *done, tarn_str kept, int64_t size, tarn_error *err) {
    map_entry *entry = kept.data != NULL ? map_put(done, kept, NULL) : NULL;
    if (entry == NULL) {
        return err_nomem(err);
    }
    entry->value.i64 = size;
    return TARN_OK;
}

tarn_code folder_note_done(source_folder *f, tarn_str name, int64_t size, tarn_error *err) {
    return put_done(&f->done, arena_str(&f->arena, name), size, err);
}

static bool is_complete(tarn_str name) {
    return name.len > 0 && name.data[0] != '.' && name.data[0] != '_' &&
           !str_ends_with(name, STR(".tmp")) && !str_ends_with(name, STR(".part"));
}

/* What size of a file that was read is remembered, when it has this one. */
static int64_t look_again(const source_folder *f, tarn_str name, int64_t read, int64_t now) {
    if (read < 0 || read == now) {
        return read;
    }
    env_log(f->env, TARN_LOG_WARN, "source", "folder",
            "file %s/%.*s has %lld bytes now and had %lld when it was read: what changed in it is "
            "not read, as each file of a folder is read once",
            f->path, STR_ARG(name), (long long)now, (long long)read);
    return -1;
}

typedef struct listing {
    source_folder *folder;
    tarn_arena kept_arena; /* names done that are still there */
    tarn_map kept;
    tarn_arena arena;
    tarn_str *names;
    size_t n;
    size_t cap;
} listing;

static tarn_code on_name(void *ctx, tarn_str name, const store_stat_info *info, tarn_error *err) {
    listing *l = ctx;
    if (info == NULL || !is_complete(name)) {
        return TARN_OK;
    }
    const map_entry *done = map_find(&l->folder->done, name);
    tarn_str kept = arena_str(done != NULL ? &l->kept_arena : &l->arena, name);
    if (kept.data == NULL) {
        return err_nomem(err);
    }
    if (done != NULL) {
        return put_done(&l->kept, kept,
                        look_again(l->folder, name, done->value.i64, info->size_bytes), err);
    }
    if (l->n == l->cap) {
        size_t cap = l->cap > 0 ? l->cap * 2 : 64;
        tarn_str *names =
            arena_grow(&l->arena, l->names, l->cap * sizeof *names, cap * sizeof *names);
        if (names == NULL) {
            return err_nomem(err);
        }
        l->names = names;
        l->cap = cap;
    }
    l->names[l->n++] = kept;
    return TARN_OK;
}

static int compare_names(const void *a, const void *b) {
    return str_cmp(*(const tarn_str *)a, *(const tarn_str *)b);
}

static tarn_code list(source_folder *f, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_store *store = NULL;
    listing l;
    memset(&l, 0, sizeof l);
    l.folder = f;
    arena_init(&l.kept_arena, f->env);
    arena_init(&l.arena, f->env);
    map_init(&l.kept, &l.kept_arena);
    TRY(store_for_location(f->env, str_of(f->path), &store, err));
    TRY(store_list_folder(store, str_of(f->path), on_name, &l, err));
    if (l.n > 0) {
        qsort(l.names, l.n, sizeof *l.names, compare_names);
    }
    arena_release(&f->arena);
    arena_release(&f->waiting_arena);
    arena_move(&f->arena, &l.kept_arena);
    arena_move(&f->waiting_arena, &l.arena);
    f->done = l.kept;
    f->done.arena = &f->arena;
    f->waiting = l.names;
    f->n_waiting = (int32_t)l.n;
    f->next = 0;
done:
    arena_release(&l.kept_arena);
    arena_release(&l.arena);
    store_close(store);
    return code;
}

tarn_code folder_next(source_folder *f, tarn_str *name, tarn_error *err) {
    *name = STR_NULL;
    if (f->next == f->n_waiting) {
        tarn_code code = list(f, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (f->next < f->n_waiting) {
        *name = f->waiting[f->next++];
    }
    return TARN_OK;
}
