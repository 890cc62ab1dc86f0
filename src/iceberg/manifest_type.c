/* iceberg/manifest_type.c - the schemas of manifests and manifest lists, with the ids, names and
 * descriptions of the specification. */
#include "format/codec.h"
#include "iceberg/manifest_int.h"

/* The fastest: manifests are mostly names and bounds that hardly repeat, level 6 makes them 1 to 4
 * % smaller in twice the time, and a stream writes some with every commit. */
#define DEFLATE_LEVEL 1

const field_row entry_rows[N_ENTRY_FIELDS] = {
    {0, "status", NULL, SHAPE_INT, IN_ALL, IN_ALL, 0, 0, 0, NULL},
    {1, "snapshot_id", NULL, SHAPE_LONG, IN_ALL, 0, 0, 0, 0, NULL},
    {3, "sequence_number", NULL, SHAPE_LONG, IN_V23, 0, 0, 0, 0, NULL},
    {4, "file_sequence_number", NULL, SHAPE_LONG, IN_V23, 0, 0, 0, 0, NULL},
    {2, "data_file", NULL, SHAPE_STRUCT, IN_ALL, IN_ALL, 0, 0, 0, NULL},
};

const field_row file_rows[N_FILE_FIELDS] = {
    [F_CONTENT] = {134, "content", NULL, SHAPE_INT, IN_V23, IN_V23, 0, 0, 0,
                   "Contents of the file: 0=data, 1=position deletes, 2=equality deletes"},
    [F_PATH] = {100, "file_path", NULL, SHAPE_STRING, IN_ALL, IN_ALL, 0, 0, 0,
                "Location URI with FS scheme"},
    [F_FORMAT] = {101, "file_format", NULL, SHAPE_STRING, IN_ALL, IN_ALL, 0, 0, 0,
                  "File format name: avro, orc, or parquet"},
    [F_PARTITION] = {102, "partition", NULL, SHAPE_STRUCT, IN_ALL, IN_ALL, 0, 0, 0,
                     "Partition data tuple, schema based on the partition spec"},
    [F_RECORDS] = {103, "record_count", NULL, SHAPE_LONG, IN_ALL, IN_ALL, 0, 0, 0,
                   "Number of records in the file"},
    [F_SIZE] = {104, "file_size_in_bytes", NULL, SHAPE_LONG, IN_ALL, IN_ALL, 0, 0, 0,
                "Total file size in bytes"},
    [F_BLOCK_SIZE] = {105, "block_size_in_bytes", NULL, SHAPE_LONG, IN_V1, IN_V1, 0, 0, 0, NULL},
    [F_COLUMN_SIZES] = {108, "column_sizes", NULL, SHAPE_COUNTS, IN_ALL, 0,
                        MANIFEST_WANT_COLUMN_SIZES, 117, 118,
                        "Map of column id to total size on disk"},
    [F_VALUE_COUNTS] = {109, "value_counts", NULL, SHAPE_COUNTS, IN_ALL, 0, MANIFEST_WANT_STATS,
                        119, 120, "Map of column id to total count, including null and NaN"},
    [F_NULL_COUNTS] = {110, "null_value_counts", NULL, SHAPE_COUNTS, IN_ALL, 0, MANIFEST_WANT_STATS,
                       121, 122, "Map of column id to null value count"},
    [F_NAN_COUNTS] = {137, "nan_value_counts", NULL, SHAPE_COUNTS, IN_ALL, 0, MANIFEST_WANT_STATS,
                      138, 139, "Map of column id to number of NaN values in the column"},
    [F_LOWER] = {125, "lower_bounds", NULL, SHAPE_BOUNDS, IN_ALL, 0, MANIFEST_WANT_STATS, 126, 127,
                 "Map of column id to lower bound"},
    [F_UPPER] = {128, "upper_bounds", NULL, SHAPE_BOUNDS, IN_ALL, 0, MANIFEST_WANT_STATS, 129, 130,
                 "Map of column id to upper bound"},
    [F_KEY] = {131, "key_metadata", NULL, SHAPE_BYTES, IN_ALL, 0, MANIFEST_WANT_REST, 0, 0,
               "Encryption key metadata blob"},
    [F_SPLITS] = {132, "split_offsets", NULL, SHAPE_LONGS, IN_ALL, 0, MANIFEST_WANT_REST, 133, 0,
                  "Splittable offsets"},
    [F_EQUALITY] = {135, "equality_ids", NULL, SHAPE_INTS, IN_V23, 0, MANIFEST_WANT_REST, 136, 0,
                    "Equality comparison field IDs"},
    [F_SORT] = {140, "sort_order_id", NULL, SHAPE_INT, IN_ALL, 0, MANIFEST_WANT_REST, 0, 0,
                "Sort order ID"},
    [F_FIRST_ROW] = {142, "first_row_id", NULL, SHAPE_LONG, IN_V3, 0, MANIFEST_WANT_REST, 0, 0,
                     "The first row ID assigned to the first row in the data file"},
    [F_REFERENCED] = {143, "referenced_data_file", NULL, SHAPE_STRING, IN_V23, 0,
                      MANIFEST_WANT_REST, 0, 0,
                      "Fully qualified location (URI with FS scheme) of a data file that all "
                      "deletes reference"},
    [F_OFFSET] = {144, "content_offset", NULL, SHAPE_LONG, IN_V3, 0, MANIFEST_WANT_REST, 0, 0,
                  "The offset in the file where the content starts"},
    [F_LENGTH] = {145, "content_size_in_bytes", NULL, SHAPE_LONG, IN_V3, 0, MANIFEST_WANT_REST, 0,
                  0, "The length of referenced content stored in the file"},
};

const field_row list_rows[N_LIST_FIELDS] = {
    [L_PATH] = {500, "manifest_path", NULL, SHAPE_STRING, IN_ALL, IN_ALL, 0, 0, 0,
                "Location URI with FS scheme"},
    [L_LENGTH] = {501, "manifest_length", NULL, SHAPE_LONG, IN_ALL, IN_ALL, 0, 0, 0,
                  "Total file size in bytes"},
    [L_SPEC] = {502, "partition_spec_id", NULL, SHAPE_INT, IN_ALL, IN_ALL, 0, 0, 0,
                "Spec ID used to write"},
    [L_CONTENT] = {517, "content", NULL, SHAPE_INT, IN_V23, IN_V23, 0, 0, 0,
                   "Contents of the manifest: 0=data, 1=deletes"},
    [L_SEQUENCE] = {515, "sequence_number", NULL, SHAPE_LONG, IN_V23, IN_V23, 0, 0, 0,
                    "Sequence number when the manifest was added"},
    [L_MIN_SEQUENCE] = {516, "min_sequence_number", NULL, SHAPE_LONG, IN_V23, IN_V23, 0, 0, 0,
                        "Lowest sequence number in the manifest"},
    [L_SNAPSHOT] = {503, "added_snapshot_id", NULL, SHAPE_LONG, IN_ALL, IN_ALL, 0, 0, 0,
                    "Snapshot ID that added the manifest"},
    [L_ADDED_FILES] = {504, "added_files_count", "added_data_files_count", SHAPE_INT, IN_ALL,
                       IN_V23, 0, 0, 0, "Added entry count"},
    [L_EXISTING_FILES] = {505, "existing_files_count", "existing_data_files_count", SHAPE_INT,
                          IN_ALL, IN_V23, 0, 0, 0, "Existing entry count"},
    [L_DELETED_FILES] = {506, "deleted_files_count", "deleted_data_files_count", SHAPE_INT, IN_ALL,
                         IN_V23, 0, 0, 0, "Deleted entry count"},
    [L_ADDED_ROWS] = {512, "added_rows_count", NULL, SHAPE_LONG, IN_ALL, IN_V23, 0, 0, 0,
                      "Added rows count"},
    [L_EXISTING_ROWS] = {513, "existing_rows_count", NULL, SHAPE_LONG, IN_ALL, IN_V23, 0, 0, 0,
                         "Existing rows count"},
    [L_DELETED_ROWS] = {514, "deleted_rows_count", NULL, SHAPE_LONG, IN_ALL, IN_V23, 0, 0, 0,
                        "Deleted rows count"},
    [L_PARTITIONS] = {507, "partitions", NULL, SHAPE_SUMMARIES, IN_ALL, 0, 0, 508, 0,
                      "Summary for each partition"},
    [L_KEY] = {519, "key_metadata", NULL, SHAPE_BYTES, IN_ALL, 0, 0, 0, 0,
               "Encryption key metadata blob"},
    [L_FIRST_ROW] = {520, "first_row_id", NULL, SHAPE_LONG, IN_V3, 0, 0, 0, 0,
                     "Starting row ID to assign to new rows in ADDED data files"},
};

const field_row summary_rows[N_SUMMARY_FIELDS] = {
    [S_NULL] = {509, "contains_null", NULL, SHAPE_BOOLEAN, IN_ALL, IN_ALL, 0, 0, 0,
                "True if any file has a null partition value"},
    [S_NAN] = {518, "contains_nan", NULL, SHAPE_BOOLEAN, IN_ALL, 0, 0, 0, 0,
               "True if any file has a nan partition value"},
    [S_LOWER] = {510, "lower_bound", NULL, SHAPE_BYTES, IN_ALL, 0, 0, 0, 0,
                 "Partition lower bound for all files"},
    [S_UPPER] = {511, "upper_bound", NULL, SHAPE_BYTES, IN_ALL, 0, 0, 0, 0,
                 "Partition upper bound for all files"},
};

static tarn_field part(int32_t id, const char *name, const tarn_type *type) {
    return (tarn_field){.id = id, .required = true, .name = str_of(name), .type = type};
}

static const tarn_type *row_type(tarn_arena *arena, const field_row *row, const tarn_type *nested) {
    switch (row->shape) {
    case SHAPE_INT:
        return type_primitive(TARN_INT);
    case SHAPE_LONG:
        return type_primitive(TARN_LONG);
    case SHAPE_STRING:
        return type_primitive(TARN_STRING);
    case SHAPE_BYTES:
        return type_primitive(TARN_BINARY);
    case SHAPE_BOOLEAN:
        return type_primitive(TARN_BOOLEAN);
    case SHAPE_STRUCT:
        return nested;
    case SHAPE_COUNTS:
        return type_map(arena, part(row->key_id, "key", type_primitive(TARN_INT)),
                        part(row->value_id, "value", type_primitive(TARN_LONG)));
    case SHAPE_BOUNDS:
        return type_map(arena, part(row->key_id, "key", type_primitive(TARN_INT)),
                        part(row->value_id, "value", type_primitive(TARN_BINARY)));
    case SHAPE_LONGS:
        return type_list(arena, part(row->key_id, "element", type_primitive(TARN_LONG)));
    case SHAPE_INTS:
        return type_list(arena, part(row->key_id, "element", type_primitive(TARN_INT)));
    case SHAPE_SUMMARIES:
        return type_list(arena, part(row->key_id, "element", nested));
    }
    return NULL;
}

/* A struct of the rows that this version writes. */
static const tarn_type *rows_type(tarn_arena *arena, const field_row *rows, int32_t n,
                                  int32_t version, const tarn_type *nested, int32_t *slots) {
    uint8_t bit = (uint8_t)(version <= 1 ? IN_V1 : version == 2 ? IN_V2 : IN_V3);
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)n);
    int32_t count = 0;
    if (fields == NULL) {
        return NULL;
    }
    for (int32_t i = 0; i < n; i++) {
        slots[i] = -1;
        if ((rows[i].versions & bit) == 0) {
            continue;
        }
        tarn_field *f = &fields[count];
        *f = part(rows[i].id, rows[i].name, row_type(arena, &rows[i], nested));
        f->required = (rows[i].required & bit) != 0;
        f->doc = rows[i].doc != NULL ? str_of(rows[i].doc) : STR_NULL;
        if (f->type == NULL) {
            return NULL;
        }
        slots[i] = count++;
    }
    return type_struct(arena, fields, count);
}

const tarn_type *manifest_entry_type(tarn_arena *arena, const tarn_type *partition, int32_t version,
                                     int32_t entry_slots[N_ENTRY_FIELDS],
                                     int32_t file_slots[N_FILE_FIELDS]) {
    const tarn_type *file =
        rows_type(arena, file_rows, N_FILE_FIELDS, version, partition, file_slots);
    return file == NULL ? NULL
                        : rows_type(arena, entry_rows, N_ENTRY_FIELDS, version, file, entry_slots);
}

const tarn_type *manifest_list_type(tarn_arena *arena, int32_t version,
                                    int32_t slots[N_LIST_FIELDS]) {
    int32_t ignored[N_SUMMARY_FIELDS];
    const tarn_type *summary =
        rows_type(arena, summary_rows, N_SUMMARY_FIELDS, version, NULL, ignored);
    return summary == NULL ? NULL
                           : rows_type(arena, list_rows, N_LIST_FIELDS, version, summary, slots);
}

static bool is_row(const tarn_field *f, const field_row *row, bool by_name) {
    if (!by_name) {
        return f->id == row->id;
    }
    return str_is(f->name, row->name) || (row->old_name != NULL && str_is(f->name, row->old_name));
}

void manifest_find_fields(const tarn_type *type, const field_row *rows, int32_t n, int32_t *slots) {
    bool by_name = true;
    for (int32_t i = 0; i < type->n_fields; i++) {
        by_name &= type->fields[i].id == TARN_NO_ID;
    }
    for (int32_t r = 0; r < n; r++) {
        slots[r] = -1;
        for (int32_t i = 0; i < type->n_fields && slots[r] < 0; i++) {
            slots[r] = is_row(&type->fields[i], &rows[r], by_name) ? i : -1;
        }
    }
}

typedef struct lent_source {
    io_source base;
    io_source *inner;
} lent_source;

static tarn_code lent_read_at(io_source *source, int64_t offset, void *dst, size_t len,
                              tarn_error *err) {
    io_source *inner = ((lent_source *)source)->inner;
    return inner->read_at(inner, offset, dst, len, err);
}

static const uint8_t *lent_peek(io_source *source, int64_t offset, size_t len) {
    io_source *inner = ((lent_source *)source)->inner;
    return inner->peek(inner, offset, len);
}

static void lent_close(io_source *source) {
    env_free(source->env, source);
}

tarn_code manifest_lend_source(io_source *source, io_source **out, tarn_error *err) {
    lent_source *lent = env_calloc(source->env, 1, sizeof *lent);
    if (lent == NULL) {
        return err_nomem(err);
    }
    lent->base = *source;
    lent->base.read_at = lent_read_at;
    lent->base.peek = source->peek != NULL ? lent_peek : NULL;
    lent->base.close = lent_close;
    lent->inner = source;
    *out = &lent->base;
    return TARN_OK;
}

tarn_code manifest_codec(tarn_str name, avro_write_options *options, tarn_error *err) {
    codec_kind kind = CODEC_DEFLATE;
    if (name.len > 0 && !codec_from_name(name, &kind)) {
        return err_set(err, TARN_INVALID, "compression \"%.*s\" of manifests is unknown",
                       STR_ARG(name));
    }
    options->codec = kind;
    options->level =
        kind == CODEC_DEFLATE || kind == CODEC_GZIP ? DEFLATE_LEVEL : CODEC_LEVEL_DEFAULT;
    return TARN_OK;
}
