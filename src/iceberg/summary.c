/* iceberg/summary.c - snapshot summaries, with the keys and rules of Iceberg Java: counts that are
 * zero are left out, totals go on from the parent's where the parent has them. */
#include "iceberg/summary.h"

void summary_add(summary_counts *counts, const tarn_file *file) {
    bool vector = file->content_size >= 0; /* only its own part of the Puffin file counts */
    counts->files_size += vector ? file->content_size : file->size_bytes;
    switch (file->content) {
    case TARN_CONTENT_DATA:
        counts->data_files++;
        counts->records += file->record_count;
        break;
    case TARN_CONTENT_POSITION_DELETES:
        counts->delete_files++;
        if (file->format == TARN_FORMAT_PUFFIN) {
            counts->dvs++;
        } else {
            counts->position_delete_files++;
        }
        counts->position_deletes += file->record_count;
        break;
    case TARN_CONTENT_EQUALITY_DELETES:
        counts->delete_files++;
        counts->equality_delete_files++;
        counts->equality_deletes += file->record_count;
        break;
    }
}

typedef struct summary_list {
    tarn_arena *arena;
    tarn_property *items;
    int32_t n;
    bool failed;
} summary_list;

static void put(summary_list *l, const char *key, int64_t value) {
    char text[24];
    size_t len = str_from_i64(value, text);
    tarn_str copy = arena_str(l->arena, str_make(text, len));
    l->failed |= copy.data == NULL;
    l->items[l->n++] = (tarn_property){str_of(key), copy};
}

static void put_some(summary_list *l, const char *key, int64_t value) {
    if (value > 0) {
        put(l, key, value);
    }
}

static void put_counts(summary_list *l, const summary_builder *b) {
    const summary_counts *a = &b->added, *r = &b->removed;
    put_some(l, "added-data-files", a->data_files);
    put_some(l, "deleted-data-files", r->data_files);
    put_some(l, "added-equality-delete-files", a->equality_delete_files);
    put_some(l, "removed-equality-delete-files", r->equality_delete_files);
    put_some(l, "added-position-delete-files", a->position_delete_files);
    put_some(l, "removed-position-delete-files", r->position_delete_files);
    put_some(l, "added-delete-files", a->delete_files);
    put_some(l, "removed-delete-files", r->delete_files);
    put_some(l, "added-dvs", a->dvs);
    put_some(l, "removed-dvs", r->dvs);
    put_some(l, "added-records", a->records);
    put_some(l, "deleted-records", r->records);
    put_some(l, "added-files-size", a->files_size);
    put_some(l, "removed-files-size", r->files_size);
    put_some(l, "added-position-deletes", a->position_deletes);
    put_some(l, "removed-position-deletes", r->position_deletes);
    put_some(l, "added-equality-deletes", a->equality_deletes);
    put_some(l, "removed-equality-deletes", r->equality_deletes);
    if (b->changed_partitions >= 0) {
        put(l, "changed-partition-count", b->changed_partitions);
    }
}

static void put_total(summary_list *l, const char *key, const tarn_snapshot *parent, int64_t added,
                      int64_t removed) {
    int64_t before = 0, after;
    tarn_str text;
    if (parent != NULL &&
        (!properties_get(&parent->summary, key, &text) || !str_to_i64(text, &before))) {
        return; /* the parent does not know, so nobody does */
    }
    if (num_add_i64(before, added, &after) && num_add_i64(after, -removed, &after) && after >= 0) {
        put(l, key, after);
    }
}

static bool is_ours(tarn_str key) {
    static const char *const keys[] = {"operation",
                                       "added-data-files",
                                       "deleted-data-files",
                                       "added-equality-delete-files",
                                       "removed-equality-delete-files",
                                       "added-position-delete-files",
                                       "removed-position-delete-files",
                                       "added-delete-files",
                                       "removed-delete-files",
                                       "added-dvs",
                                       "removed-dvs",
                                       "added-records",
                                       "deleted-records",
                                       "added-files-size",
                                       "removed-files-size",
                                       "added-position-deletes",
                                       "removed-position-deletes",
                                       "added-equality-deletes",
                                       "removed-equality-deletes",
                                       "changed-partition-count",
                                       "total-records",
                                       "total-files-size",
                                       "total-data-files",
                                       "total-delete-files",
                                       "total-position-deletes",
                                       "total-equality-deletes"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (str_is(key, keys[i])) {
            return true;
        }
    }
    return false;
}

tarn_code summary_make(tarn_arena *arena, const char *operation, const summary_builder *b,
                       const tarn_properties *extra, const tarn_snapshot *parent,
                       tarn_properties *out, tarn_error *err) {
    int32_t n_extra = extra != NULL ? extra->count : 0;
    summary_list l = {arena, ARENA_ARRAY(arena, tarn_property, (size_t)n_extra + 32), 0, false};
    const summary_counts *a = &b->added, *r = &b->removed;
    if (l.items == NULL) {
        return err_nomem(err);
    }
    l.items[l.n++] = (tarn_property){STR("operation"), str_of(operation)};
    for (int32_t i = 0; i < n_extra; i++) {
        if (!is_ours(extra->items[i].key)) {
            tarn_property p = {arena_str(arena, extra->items[i].key),
                               arena_str(arena, extra->items[i].value)};
            l.failed |= p.key.data == NULL || p.value.data == NULL;
            l.items[l.n++] = p;
        }
    }
    put_counts(&l, b);
    const tarn_snapshot *from = b->replaced_all ? NULL : parent;
    int64_t none = b->replaced_all ? 0 : 1; /* a table begun anew has nothing to take away from */
    put_total(&l, "total-records", from, a->records, none * r->records);
    put_total(&l, "total-files-size", from, a->files_size, none * r->files_size);
    put_total(&l, "total-data-files", from, a->data_files, none * r->data_files);
    put_total(&l, "total-delete-files", from, a->delete_files, none * r->delete_files);
    put_total(&l, "total-position-deletes", from, a->position_deletes, none * r->position_deletes);
    put_total(&l, "total-equality-deletes", from, a->equality_deletes, none * r->equality_deletes);
    if (l.failed) {
        return err_nomem(err);
    }
    *out = (tarn_properties){l.n, l.items};
    return TARN_OK;
}
