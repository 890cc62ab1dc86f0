/* iceberg/delete_index.c - deletes by what they can reach: vectors and position deletes of one data
 * file by its path, the others by spec and partition tuple, global equality deletes in one list;
 * each list by rising sequence number, so that those that are new enough lie at its end. */
#include "iceberg/delete_index.h"

#include "base/map.h"

#include <stdlib.h>

#define FIELD_ID_DELETE_FILE_PATH 2147483546

/* What bounds and counts say of one key column of an equality delete. */
typedef struct key_facts {
    const tarn_field *field; /* NULL: nothing can be concluded from it */
    bool no_nulls, all_nulls;
    bool bounded;
    tarn_value lower, upper;
} key_facts;

typedef struct indexed_delete {
    const tarn_entry *entry;
    const key_facts *keys; /* equality deletes: one an equality id */
} indexed_delete;

typedef struct delete_list {
    indexed_delete *items;
    int64_t n, cap;
} delete_list;

struct delete_index {
    tarn_arena *arena;
    const tarn_metadata *m;
    tarn_map vectors;    /* by data file */
    tarn_map files;      /* position deletes of one data file, by it */
    tarn_map partitions; /* other position deletes, by tuple */
    tarn_map equality;   /* by tuple */
    delete_list global;  /* equality deletes that reach all */
};

bool files_share_partition(const tarn_file *a, const tarn_file *b) {
    if (a->spec_id != b->spec_id || a->n_partition != b->n_partition) {
        return false;
    }
    for (int32_t i = 0; i < a->n_partition; i++) {
        if (!value_eq(&a->partition[i], &b->partition[i])) {
            return false;
        }
    }
    return true;
}

/* ---- tuples as keys of maps ---- */

static size_t value_room(const tarn_value *v) {
    const bool text = v->type != NULL && !v->is_null &&
                      (v->type->kind == TARN_STRING || v->type->kind == TARN_BINARY ||
                       v->type->kind == TARN_FIXED || v->type->kind == TARN_UUID);
    return 1 + (text ? v->as.bytes.len + sizeof(uint64_t) : sizeof(tarn_int128));
}

static uint8_t *put_value(uint8_t *p, const tarn_value *v) {
    tarn_int128 word = 0;
    uint64_t len;
    double d;
    *p++ = v->type != NULL && !v->is_null;
    if (p[-1] == 0) {
        return p;
    }
    switch (v->type->kind) {
    case TARN_BOOLEAN:
        word = v->as.boolean;
        break;
    case TARN_INT:
    case TARN_DATE:
        word = v->as.i32;
        break;
    case TARN_FLOAT:
    case TARN_DOUBLE:
        d = v->type->kind == TARN_FLOAT ? (double)v->as.f32 : v->as.f64;
        len = UINT64_C(0x7ff8000000000000); /* every NaN is one partition */
        if (d == d) {
            memcpy(&len, &d, sizeof len);
        }
        word = (tarn_int128)len;
        break;
    case TARN_DECIMAL:
        word = v->as.i128;
        break;
    case TARN_STRING:
    case TARN_BINARY:
    case TARN_FIXED:
    case TARN_UUID:
        len = v->as.bytes.len;
        memcpy(p, &len, sizeof len);
        if (len > 0) {
            memcpy(p + sizeof len, v->as.bytes.data, len);
        }
        return p + sizeof len + len;
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        word = v->as.i64;
        break;
    }
    num_store_i128(p, word);
    return p + sizeof word;
}

/* Spec and tuple as bytes, in room if they fit there, else in arena; data NULL: no memory. */
static tarn_str tuple_key(tarn_arena *arena, const tarn_file *file, uint8_t *room, size_t cap) {
    size_t len = sizeof file->spec_id;
    for (int32_t i = 0; i < file->n_partition; i++) {
        len += value_room(&file->partition[i]);
    }
    uint8_t *bytes = len <= cap ? room : arena_alloc(arena, len);
    if (bytes == NULL) {
        return STR_NULL;
    }
    memcpy(bytes, &file->spec_id, sizeof file->spec_id);
    uint8_t *p = bytes + sizeof file->spec_id;
    for (int32_t i = 0; i < file->n_partition; i++) {
        p = put_value(p, &file->partition[i]);
    }
    return str_make(bytes, (size_t)(p - bytes));
}

tarn_str file_partition_key(tarn_arena *arena, const tarn_file *file) {
    return tuple_key(arena, file, NULL, 0);
}

/* ---- what is known of keys ---- */

static bool kind_is_ordered(const tarn_type *type) {
    return type->kind < TARN_UNKNOWN && type->kind != TARN_FLOAT && type->kind != TARN_DOUBLE;
}

/* A column at the top of a schema, the current one's first. Below structs counts leave rows out. */
static const tarn_field *key_field(const tarn_metadata *m, int32_t id) {
    for (int32_t i = -1; i < m->n_schemas; i++) {
        const tarn_schema *schema = i < 0 ? metadata_schema(m) : m->schemas[i];
        for (int32_t k = 0; schema != NULL && k < schema->root->n_fields; k++) {
            if (schema->root->fields[k].id == id) {
                return &schema->root->fields[k];
            }
        }
    }
    return NULL;
}

static void learn_key(const tarn_file *f, const tarn_field *field, key_facts *out) {
    int64_t nulls = 0, values = 0;
    tarn_str lower, upper;
    memset(out, 0, sizeof *out);
    out->field = field;
    if (metric_find_count(f->null_counts, f->n_null_counts, field->id, &nulls)) {
        out->no_nulls = nulls == 0;
        out->all_nulls =
            metric_find_count(f->value_counts, f->n_value_counts, field->id, &values) &&
            nulls == values && nulls > 0;
    }
    out->bounded = kind_is_ordered(field->type) &&
                   metric_find_bound(f->lower, f->n_lower, field->id, &lower) &&
                   metric_find_bound(f->upper, f->n_upper, field->id, &upper) &&
                   value_from_binary(field->type, lower, &out->lower, NULL) == TARN_OK &&
                   value_from_binary(field->type, upper, &out->upper, NULL) == TARN_OK;
}

/* False only where no row of the data file can have a key of the delete file. */
static bool may_share_keys(const indexed_delete *d, const tarn_file *data) {
    for (int32_t i = 0; i < d->entry->file.n_equality_ids; i++) {
        const key_facts *theirs = &d->keys[i];
        key_facts ours;
        if (theirs->field == NULL) {
            continue;
        }
        learn_key(data, theirs->field, &ours);
        if (!ours.no_nulls && !theirs->no_nulls) {
            continue;
        }
        if ((ours.all_nulls && theirs->no_nulls) || (theirs->all_nulls && ours.no_nulls)) {
            return false;
        }
        if (ours.bounded && theirs->bounded &&
            (value_cmp(&ours.upper, &theirs->lower) < 0 ||
             value_cmp(&theirs->upper, &ours.lower) < 0)) {
            return false;
        }
    }
    return true;
}

/* ---- making ---- */

static tarn_code append_delete(tarn_arena *arena, delete_list *list, const indexed_delete *d,
                               tarn_error *err) {
    if (list->n == list->cap) {
        const int64_t cap = list->cap == 0 ? 1 : list->cap * 2;
        indexed_delete *items = arena_grow(arena, list->items, (size_t)list->cap * sizeof *items,
                                           (size_t)cap * sizeof *items);
        if (items == NULL) {
            return err_nomem(err);
        }
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = *d;
    return TARN_OK;
}

static tarn_code append_mapped(delete_index *index, tarn_map *map, tarn_str key,
                               const indexed_delete *d, tarn_error *err) {
    map_entry *slot = map_put(map, key, NULL);
    if (slot != NULL && slot->value.ptr == NULL) {
        slot->value.ptr = ARENA_NEW(index->arena, delete_list);
    }
    if (slot == NULL || slot->value.ptr == NULL) {
        return err_nomem(err);
    }
    return append_delete(index->arena, slot->value.ptr, d, err);
}

static tarn_code append_tuple(delete_index *index, tarn_map *map, const indexed_delete *d,
                              tarn_error *err) {
    tarn_str key = file_partition_key(index->arena, &d->entry->file);
    return key.data != NULL ? append_mapped(index, map, key, d, err) : err_nomem(err);
}

static tarn_code add_vector(delete_index *index, const indexed_delete *d, tarn_error *err) {
    const tarn_file *f = &d->entry->file;
    if (f->referenced_data_file.data == NULL) {
        return err_set(err, TARN_CORRUPT, "deletion vector %.*s named no data file",
                       STR_ARG(f->path));
    }
    const map_entry *slot = map_find(&index->vectors, f->referenced_data_file);
    if (slot != NULL) {
        const delete_list *other = slot->value.ptr;
        return err_set(err, TARN_CORRUPT, "data file %.*s had two deletion vectors, %.*s and %.*s",
                       STR_ARG(f->referenced_data_file), STR_ARG(other->items[0].entry->file.path),
                       STR_ARG(f->path));
    }
    return append_mapped(index, &index->vectors, f->referenced_data_file, d, err);
}

tarn_str delete_only_file(const tarn_file *f) {
    tarn_str lower, upper;
    if (f->content != TARN_CONTENT_POSITION_DELETES) {
        return STR_NULL;
    }
    if (f->referenced_data_file.len > 0) {
        return f->referenced_data_file;
    }
    if (metric_find_bound(f->lower, f->n_lower, FIELD_ID_DELETE_FILE_PATH, &lower) &&
        metric_find_bound(f->upper, f->n_upper, FIELD_ID_DELETE_FILE_PATH, &upper) &&
        lower.len > 0 && str_eq(lower, upper)) {
        return lower;
    }
    return STR_NULL;
}

bool delete_is_global(const tarn_metadata *m, const tarn_file *file) {
    const tarn_spec *spec = metadata_spec_by_id(m, file->spec_id);
    for (int32_t i = 0; spec != NULL && i < spec->n_fields; i++) {
        if (spec->fields[i].transform.kind != TRANSFORM_VOID) {
            return false;
        }
    }
    return spec != NULL || file->n_partition == 0;
}

static tarn_code add_equality(delete_index *index, indexed_delete *d, tarn_error *err) {
    const tarn_file *f = &d->entry->file;
    if (f->n_equality_ids <= 0) {
        return err_set(err, TARN_CORRUPT, "equality delete file %.*s named no columns",
                       STR_ARG(f->path));
    }
    key_facts *keys = ARENA_ARRAY(index->arena, key_facts, (size_t)f->n_equality_ids);
    if (keys == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < f->n_equality_ids; i++) {
        const tarn_field *field = key_field(index->m, f->equality_ids[i]);
        if (field != NULL) {
            learn_key(f, field, &keys[i]);
        }
    }
    d->keys = keys;
    return delete_is_global(index->m, f) ? append_delete(index->arena, &index->global, d, err)
                                         : append_tuple(index, &index->equality, d, err);
}

static tarn_code add_entry(delete_index *index, const tarn_entry *entry, tarn_error *err) {
    indexed_delete d = {entry, NULL};
    if (entry->status == TARN_ENTRY_DELETED || entry->file.content == TARN_CONTENT_DATA) {
        return TARN_OK;
    }
    if (entry->file.content == TARN_CONTENT_EQUALITY_DELETES) {
        return add_equality(index, &d, err);
    }
    if (entry->file.format == TARN_FORMAT_PUFFIN) {
        return add_vector(index, &d, err);
    }
    tarn_str sole = delete_only_file(&entry->file);
    return sole.data != NULL ? append_mapped(index, &index->files, sole, &d, err)
                             : append_tuple(index, &index->partitions, &d, err);
}

static int by_sequence(const void *a, const void *b) {
    const tarn_entry *x = ((const indexed_delete *)a)->entry;
    const tarn_entry *y = ((const indexed_delete *)b)->entry;
    if (x->sequence_number != y->sequence_number) {
        return x->sequence_number < y->sequence_number ? -1 : 1;
    }
    return str_cmp(x->file.path, y->file.path);
}

static void sort_list(delete_list *list) {
    if (list->n > 1) {
        qsort(list->items, (size_t)list->n, sizeof *list->items, by_sequence);
    }
}

static void sort_lists(tarn_map *map) {
    for (size_t i = 0; i < map->count; i++) {
        sort_list(map->entries[i].value.ptr);
    }
}

tarn_code delete_index_new(tarn_arena *arena, const tarn_metadata *m,
                           const tarn_entry *const *entries, int64_t n, delete_index **out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    delete_index *index = ARENA_NEW(arena, delete_index);
    if (index == NULL) {
        return err_nomem(err);
    }
    index->arena = arena;
    index->m = m;
    map_init(&index->vectors, arena);
    map_init(&index->files, arena);
    map_init(&index->partitions, arena);
    map_init(&index->equality, arena);
    for (int64_t i = 0; i < n; i++) {
        TRY(add_entry(index, entries[i], err));
    }
    sort_list(&index->global);
    sort_lists(&index->files);
    sort_lists(&index->partitions);
    sort_lists(&index->equality);
    *out = index;
done:
    return code;
}

/* ---- finding ---- */

/* The first item of at least this sequence number. */
static int64_t first_reaching(const delete_list *list, int64_t sequence_number) {
    int64_t low = 0, high = list != NULL ? list->n : 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (list->items[middle].entry->sequence_number < sequence_number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

typedef struct delete_finder {
    const delete_index *index;
    const tarn_file *data;
    int64_t sequence_number;
    const tarn_entry **items;
    int32_t n;
} delete_finder;

static void take_positions(delete_finder *f, const delete_list *list) {
    int64_t i = first_reaching(list, f->sequence_number);
    for (; list != NULL && i < list->n; i++) {
        if (files_share_partition(&list->items[i].entry->file, f->data)) {
            f->items[f->n++] = list->items[i].entry;
        }
    }
}

/* Both lists by sequence number, those that may share keys. */
static void take_equality(delete_finder *f, const delete_list *a, const delete_list *b) {
    const int64_t n_a = a != NULL ? a->n : 0;
    const int64_t n_b = b != NULL ? b->n : 0;
    int64_t i = first_reaching(a, f->sequence_number + 1);
    int64_t k = first_reaching(b, f->sequence_number + 1);
    while (i < n_a || k < n_b) {
        const bool from_a = k >= n_b || (i < n_a && by_sequence(&a->items[i], &b->items[k]) <= 0);
        const indexed_delete *d = from_a ? &a->items[i++] : &b->items[k++];
        if (may_share_keys(d, f->data)) {
            f->items[f->n++] = d->entry;
        }
    }
}

static const delete_list *list_of(const tarn_map *map, tarn_str key) {
    const map_entry *slot = map_find(map, key);
    return slot != NULL ? slot->value.ptr : NULL;
}

tarn_code delete_index_find(const delete_index *index, tarn_arena *arena, const tarn_file *data,
                            int64_t sequence_number, const tarn_entry *const **out, int32_t *n,
                            tarn_error *err) {
    uint8_t room[256];
    delete_finder f = {index, data, sequence_number, NULL, 0};
    const delete_list *lists[4] = {NULL, NULL, NULL, &index->global};
    const delete_list *vector = list_of(&index->vectors, data->path);
    if (vector != NULL && (vector->items[0].entry->sequence_number < sequence_number ||
                           !files_share_partition(&vector->items[0].entry->file, data))) {
        vector = NULL;
    }
    if (index->partitions.count > 0 || index->equality.count > 0) {
        tarn_str key = tuple_key(arena, data, room, sizeof room);
        if (key.data == NULL) {
            return err_nomem(err);
        }
        lists[1] = list_of(&index->partitions, key);
        lists[2] = list_of(&index->equality, key);
    }
    lists[0] = list_of(&index->files, data->path);
    int64_t most = 1;
    for (int i = 0; i < 4; i++) {
        const int64_t first = first_reaching(lists[i], sequence_number);
        most += lists[i] != NULL ? lists[i]->n - first : 0;
    }
    if (most > INT32_MAX) {
        return err_set(err, TARN_LIMIT, "more than %d row deletes applied to %.*s", INT32_MAX,
                       STR_ARG(data->path));
    }
    f.items =
        most > 1 || vector != NULL ? ARENA_ARRAY(arena, const tarn_entry *, (size_t)most) : NULL;
    if (f.items == NULL) {
        *out = NULL;
        *n = 0;
        return most > 1 || vector != NULL ? err_nomem(err) : TARN_OK;
    }
    if (vector != NULL) {
        f.items[f.n++] = vector->items[0].entry;
    } else {
        take_positions(&f, lists[0]);
        take_positions(&f, lists[1]);
    }
    take_equality(&f, lists[2], lists[3]);
    *out = f.items;
    *n = f.n;
    return TARN_OK;
}
