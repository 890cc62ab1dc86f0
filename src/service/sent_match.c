/* service/sent_match.c - see sent_match.h. */
#include "service/sent_match.h"

#include "base/map.h"

typedef struct matcher {
    tarn_arena *arena;
    tarn_store *store;
    const sent_snapshot *sent;
    tarn_map added;
    tarn_map before; /* said to be there before; value 1: found in the parent's */
    tarn_error *err;
} matcher;

static tarn_code lies(const matcher *d, const tarn_manifest *m, const tarn_file *f,
                      const char *what) {
    return err_set(d->err, TARN_INVALID, "manifest %.*s: file %.*s %s", STR_ARG(m->path),
                   STR_ARG(f->path), what);
}

tarn_str sent_file_key(tarn_arena *arena, const tarn_file *file) {
    return file->content_offset < 0 ? file->path
                                    : str_of(arena_printf(arena, "%.*s#%lld", STR_ARG(file->path),
                                                          (long long)file->content_offset));
}

static tarn_code note_own(matcher *d, const sent_manifest *m) {
    for (int64_t i = 0; i < m->entries.count; i++) {
        const tarn_entry *e = &m->entries.items[i];
        tarn_str key = sent_file_key(d->arena, &e->file);
        bool first;
        if (key.data == NULL ||
            map_put(e->status == TARN_ENTRY_ADDED ? &d->added : &d->before, key, &first) == NULL) {
            return err_nomem(d->err);
        }
        if (!first) {
            return lies(d, &m->listed, &e->file, "is named twice");
        }
    }
    return TARN_OK;
}

static tarn_code find_dropped(matcher *d, const tarn_manifest *m) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    manifest_entries entries;
    manifest_read_options options = {.want = MANIFEST_WANT_REST, .live_only = true};
    TRY(store_open(d->store, m->path, m->length, &source, d->err));
    TRY(manifest_read(d->arena, source, d->sent->metadata, m, &options, &entries, d->err));
    for (int64_t i = 0; i < entries.count; i++) {
        const tarn_file *f = &entries.items[i].file;
        tarn_str key = sent_file_key(d->arena, f);
        map_entry *found = key.data != NULL ? map_find(&d->before, key) : NULL;
        if (found == NULL) {
            code = key.data == NULL ? err_nomem(d->err)
                                    : lies(d, m, f,
                                           "is left out, and no entry of the snapshot says that "
                                           "it is removed");
            goto done;
        }
        found->value.i64 = 1;
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    if (code == TARN_NOT_FOUND) { /* the parent's own file, not the client's */
        tarn_error why = *d->err;
        code = err_set(d->err, TARN_CORRUPT, "%s", why.message);
    }
    return code;
}

static tarn_code check_found(const matcher *d, const sent_manifest *m) {
    for (int64_t i = 0; i < m->entries.count; i++) {
        const tarn_entry *e = &m->entries.items[i];
        if (e->status == TARN_ENTRY_ADDED) {
            continue;
        }
        tarn_str key = sent_file_key(d->arena, &e->file);
        if (key.data == NULL) {
            return err_nomem(d->err);
        }
        if (map_find(&d->before, key)->value.i64 == 0) {
            return lies(d, &m->listed, &e->file,
                        "was not in the parent's manifests that it replaces");
        }
    }
    return TARN_OK;
}

tarn_code sent_match(tarn_arena *arena, tarn_store *store, const sent_snapshot *sent,
                     tarn_error *err) {
    matcher d = {.arena = arena, .store = store, .sent = sent, .err = err};
    tarn_code code = TARN_OK;
    map_init(&d.added, arena);
    map_init(&d.before, arena);
    for (int32_t i = 0; i < sent->n_own; i++) {
        TRY(note_own(&d, &sent->own[i]));
    }
    for (int32_t i = 0; i < sent->n_dropped; i++) {
        TRY(find_dropped(&d, &sent->dropped[i]));
    }
    for (int32_t i = 0; i < sent->n_own && d.before.count > 0; i++) {
        TRY(check_found(&d, &sent->own[i]));
    }
done:
    return code;
}
