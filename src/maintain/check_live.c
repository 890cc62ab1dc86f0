/* maintain/check_live.c - the live files of one snapshot together: no path twice, delete files that
 * have something to delete, one vector a data file, row ids of their own, files that are there; and
 * the totals of the summary. */
#include <stdlib.h>

#include "base/pool.h"
#include "maintain/check_int.h"

typedef struct live_file {
    int64_t sequence_number;
    bool has_vector;
} live_file;

typedef struct row_range {
    int64_t start, count;
} row_range;

struct check_live {
    checker *c;
    const tarn_snapshot *snapshot;
    tarn_arena arena;
    tarn_map files;    /* data files by digest of their path -> live_file */
    tarn_map deletes;  /* delete files by digest, vectors with their offset */
    row_range *ranges; /* of row ids */
    size_t n_ranges, ranges_cap;
    int64_t min_data_sequence; /* of data files */
    int64_t n_data, n_deletes, records;
};

tarn_code check_live_new(checker *c, const tarn_snapshot *snapshot, check_live **out,
                         tarn_error *err) {
    check_live *live = env_calloc(c->env, 1, sizeof *live);
    if (live == NULL) {
        return err_nomem(err);
    }
    live->c = c;
    live->snapshot = snapshot;
    arena_init(&live->arena, c->env);
    map_init(&live->files, &live->arena);
    map_init(&live->deletes, &live->arena);
    live->min_data_sequence = INT64_MAX;
    *out = live;
    return TARN_OK;
}

void check_live_free(check_live *live) {
    if (live != NULL) {
        checker *c = live->c;
        arena_release(&live->arena);
        env_free(c->env, live->ranges);
        env_free(c->env, live);
    }
}

/* ---- what is there ---- */

typedef struct stat_work {
    checker *c;
    const tarn_file *const *files;
    store_stat_info *infos;
    tarn_code *codes;
} stat_work;

static tarn_code stat_one(void *ctx, size_t i, tarn_error *err) {
    const stat_work *w = ctx;
    tarn_error why = TARN_ERROR_INIT;
    (void)err;
    w->codes[i] = store_stat(w->c->store, w->files[i]->path, &w->infos[i], &why);
    return TARN_OK;
}

static tarn_code judge_stat(checker *c, const tarn_file *f, tarn_code code,
                            const store_stat_info *info, tarn_error *err) {
    c->counts->files++;
    if (code == TARN_NOT_FOUND) {
        return check_found(c, CHECK_FILE_MISSING, f->path, err, "the file is not there");
    }
    if (code != TARN_OK) {
        return check_is_finding(code)
                   ? check_found(c, CHECK_FILE_UNREADABLE, f->path, err,
                                 "the file could not be looked at: %s", tarn_code_name(code))
                   : err_set(err, code, "file %.*s could not be looked at", STR_ARG(f->path));
    }
    if (info->size_bytes != f->size_bytes) {
        return check_found(c, CHECK_FILE_SIZE, f->path, err,
                           "file_size_in_bytes was %lld and the file has %lld bytes",
                           (long long)f->size_bytes, (long long)info->size_bytes);
    }
    return c->options->deep ? check_file(c, f, err) : TARN_OK;
}

static tarn_code check_there(check_live *live, const tarn_file *const *files, size_t n,
                             tarn_error *err) {
    checker *c = live->c;
    tarn_code code = TARN_OK;
    stat_work work = {c, files, env_calloc(c->env, n + 1, sizeof(store_stat_info)),
                      env_calloc(c->env, n + 1, sizeof(tarn_code))};
    if (work.infos == NULL || work.codes == NULL) {
        code = err_nomem(err);
    }
    if (code == TARN_OK) {
        code = pool_for_blocking(n, stat_one, &work, err);
    }
    for (size_t i = 0; i < n && code == TARN_OK; i++) {
        code = env_check_cancel(c->env, err);
        if (code == TARN_OK) {
            code = judge_stat(c, files[i], work.codes[i], &work.infos[i], err);
        }
        if (c->options->progress != NULL && (i & 255) == 255) {
            c->options->progress(c->options->ctx, c->counts);
        }
    }
    env_free(c->env, work.infos);
    env_free(c->env, work.codes);
    return code;
}

/* ---- entries ---- */

/* *out NULL: it was there before. */
static tarn_code put_digest(check_live *live, tarn_map *map, const void *key, size_t len,
                            map_entry **out, tarn_error *err) {
    bool added = false;
    *out = NULL;
    if (map_find(map, str_make(key, len)) != NULL) {
        return TARN_OK;
    }
    const tarn_str kept = arena_str(&live->arena, str_make(key, len));
    map_entry *entry = kept.data != NULL ? map_put(map, kept, &added) : NULL;
    *out = entry;
    return entry != NULL ? TARN_OK : err_nomem(err);
}

static live_file *find_data(const check_live *live, tarn_str path) {
    uint8_t digest[16];
    str_digest(path, digest);
    const map_entry *entry = map_find(&live->files, str_make(digest, sizeof digest));
    return entry != NULL ? entry->value.ptr : NULL;
}

static tarn_code add_range(check_live *live, const tarn_file *f, tarn_error *err) {
    if (f->first_row_id < 0 || f->record_count == 0) {
        return TARN_OK;
    }
    if (live->n_ranges == live->ranges_cap) {
        const size_t cap = live->ranges_cap * 2 + 256;
        row_range *ranges = env_realloc(live->c->env, live->ranges, cap * sizeof *ranges);
        if (ranges == NULL) {
            return err_nomem(err);
        }
        live->ranges = ranges;
        live->ranges_cap = cap;
    }
    live->ranges[live->n_ranges++] = (row_range){f->first_row_id, f->record_count};
    return TARN_OK;
}

static tarn_code add_data(check_live *live, tarn_str place, const tarn_entry *e, tarn_error *err) {
    uint8_t digest[16];
    map_entry *entry = NULL;
    str_digest(e->file.path, digest);
    tarn_code code = put_digest(live, &live->files, digest, sizeof digest, &entry, err);
    if (code != TARN_OK) {
        return code;
    }
    live->n_data++;
    live->records += e->file.record_count;
    if (entry == NULL) {
        return check_found(live->c, CHECK_DUPLICATE, place, err,
                           "data file %.*s was live twice in snapshot %lld", STR_ARG(e->file.path),
                           (long long)live->snapshot->snapshot_id);
    }
    live_file *file = ARENA_NEW(&live->arena, live_file);
    if (file == NULL) {
        return err_nomem(err);
    }
    file->sequence_number = e->sequence_number;
    entry->value.ptr = file;
    if (e->sequence_number < live->min_data_sequence) {
        live->min_data_sequence = e->sequence_number;
    }
    return add_range(live, &e->file, err);
}

/* A delete that names its data file: the file is live and not newer, and has one vector at most. */
static tarn_code check_reference(check_live *live, tarn_str place, const tarn_entry *e,
                                 tarn_error *err) {
    const tarn_str path = e->file.referenced_data_file;
    live_file *data = find_data(live, path);
    if (data == NULL) {
        return check_found(live->c, CHECK_DELETES_IDLE, place, err,
                           "data file %.*s of delete file %.*s was not live in snapshot %lld",
                           STR_ARG(path), STR_ARG(e->file.path),
                           (long long)live->snapshot->snapshot_id);
    }
    if (e->sequence_number < data->sequence_number) {
        return check_found(live->c, CHECK_DELETES_IDLE, place, err,
                           "delete file %.*s of sequence number %lld was older than data file "
                           "%.*s of %lld",
                           STR_ARG(e->file.path), (long long)e->sequence_number, STR_ARG(path),
                           (long long)data->sequence_number);
    }
    if (e->file.format != TARN_FORMAT_PUFFIN) {
        return TARN_OK;
    }
    if (data->has_vector) {
        return check_found(live->c, CHECK_DELETES, place, err,
                           "data file %.*s had two deletion vectors in snapshot %lld",
                           STR_ARG(path), (long long)live->snapshot->snapshot_id);
    }
    data->has_vector = true;
    return TARN_OK;
}

/* A Puffin file holds many vectors: it is the blob that must not be there twice. */
static tarn_code add_delete(check_live *live, tarn_str place, const tarn_entry *e,
                            tarn_error *err) {
    uint8_t key[24];
    map_entry *entry = NULL;
    tarn_code code = TARN_OK;
    str_digest(e->file.path, key);
    memcpy(key + 16, &e->file.content_offset, 8);
    live->n_deletes++;
    TRY(put_digest(live, &live->deletes, key, sizeof key, &entry, err));
    if (entry == NULL) {
        TRY(check_found(live->c, CHECK_DUPLICATE, place, err,
                        "delete file %.*s was live twice in snapshot %lld", STR_ARG(e->file.path),
                        (long long)live->snapshot->snapshot_id));
    }
    if (e->file.referenced_data_file.len > 0) {
        TRY(check_reference(live, place, e, err));
    } else if (live->n_data > 0 && e->sequence_number < live->min_data_sequence) {
        TRY(check_found(live->c, CHECK_DELETES_IDLE, place, err,
                        "delete file %.*s of sequence number %lld was older than every data file",
                        STR_ARG(e->file.path), (long long)e->sequence_number));
    }
done:
    return code;
}

/* A Puffin file's size is looked at once, whatever the number of its vectors. */
static bool same_file_again(const check_live *live, const manifest_entries *entries, int64_t i) {
    const tarn_file *f = &entries->items[i].file;
    return !live->c->options->deep && f->format == TARN_FORMAT_PUFFIN && i > 0 &&
           str_eq(entries->items[i - 1].file.path, f->path);
}

tarn_code check_live_add(check_live *live, const tarn_manifest *manifest,
                         const manifest_entries *entries, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = 0;
    const tarn_file **files =
        env_calloc(live->c->env, (size_t)entries->count + 1, sizeof(const tarn_file *));
    if (files == NULL) {
        return err_nomem(err);
    }
    for (int64_t i = 0; i < entries->count; i++) {
        const tarn_entry *e = &entries->items[i];
        if (e->status == TARN_ENTRY_DELETED) {
            continue;
        }
        TRY(e->file.content == TARN_CONTENT_DATA ? add_data(live, manifest->path, e, err)
                                                 : add_delete(live, manifest->path, e, err));
        if (!same_file_again(live, entries, i)) {
            files[n++] = &e->file;
        }
    }
    TRY(check_there(live, files, n, err));
done:
    env_free(live->c->env, files);
    return code;
}

/* ---- the end ---- */

static int compare_ranges(const void *a, const void *b) {
    const row_range *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static tarn_code check_ranges(check_live *live, tarn_error *err) {
    tarn_code code = TARN_OK;
    checker *c = live->c;
    if (live->n_ranges > 1) {
        qsort(live->ranges, live->n_ranges, sizeof *live->ranges, compare_ranges);
    }
    for (size_t i = 0; i < live->n_ranges; i++) {
        const row_range *r = &live->ranges[i];
        int64_t end = 0;
        if (!num_add_i64(r->start, r->count, &end) || end > c->m->next_row_id) {
            TRY(check_found(c, CHECK_ROW_IDS, live->snapshot->manifest_list, err,
                            "a data file had row ids from %lld on for %lld rows and next-row-id "
                            "was %lld",
                            (long long)r->start, (long long)r->count,
                            (long long)c->m->next_row_id));
        } else if (i + 1 < live->n_ranges && live->ranges[i + 1].start < end) {
            TRY(check_found(c, CHECK_ROW_IDS, live->snapshot->manifest_list, err,
                            "two data files shared row ids: %lld to %lld, and %lld on",
                            (long long)r->start, (long long)end - 1,
                            (long long)live->ranges[i + 1].start));
        }
    }
done:
    return code;
}

static tarn_code check_total(check_live *live, const char *key, int64_t found, tarn_error *err) {
    tarn_str text;
    int64_t said = 0;
    if (!properties_get(&live->snapshot->summary, key, &text)) {
        return TARN_OK;
    }
    return str_to_i64(text, &said) && said == found
               ? TARN_OK
               : check_found(live->c, CHECK_SUMMARY, live->c->location, err,
                             "%s of snapshot %lld was %.*s and its manifests have %lld", key,
                             (long long)live->snapshot->snapshot_id, STR_ARG(text),
                             (long long)found);
}

tarn_code check_live_end(check_live *live, bool whole, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(check_ranges(live, err));
    if (whole) {
        TRY(check_total(live, "total-data-files", live->n_data, err));
        TRY(check_total(live, "total-delete-files", live->n_deletes, err));
        TRY(check_total(live, "total-records", live->records, err));
    }
done:
    return code;
}
