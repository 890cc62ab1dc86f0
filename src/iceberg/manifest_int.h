/* iceberg/manifest_int.h - the fields of manifests and manifest lists (spec, "Manifests", "Manifest
 * Lists") in one table each, for readers and writers. */
#ifndef ICEBERG_MANIFEST_INT_H
#define ICEBERG_MANIFEST_INT_H

#include "format/avro/avro.h"
#include "iceberg/manifest.h"
#include "table/batch.h"

typedef enum field_shape {
    SHAPE_INT,
    SHAPE_LONG,
    SHAPE_STRING,
    SHAPE_BYTES,
    SHAPE_STRUCT,    /* data_file, partition: made by code */
    SHAPE_COUNTS,    /* map<int, long> */
    SHAPE_BOUNDS,    /* map<int, binary> */
    SHAPE_LONGS,     /* list<long> */
    SHAPE_INTS,      /* list<int> */
    SHAPE_SUMMARIES, /* list<struct> */
    SHAPE_BOOLEAN
} field_shape;

enum { IN_V1 = 1, IN_V2 = 2, IN_V3 = 4, IN_ALL = 7, IN_V23 = 6 };

typedef struct field_row {
    int32_t id;
    const char *name;
    const char *old_name; /* of early writers, or NULL */
    field_shape shape;
    uint8_t versions; /* where it is written */
    uint8_t required; /* where it is required */
    uint8_t want;     /* MANIFEST_WANT_*; 0: always read */
    int32_t key_id;   /* maps; lists: the element */
    int32_t value_id;
    const char *doc; /* or NULL */
} field_row;

enum { E_STATUS, E_SNAPSHOT, E_SEQUENCE, E_FILE_SEQUENCE, E_FILE, N_ENTRY_FIELDS };
enum {
    F_CONTENT,
    F_PATH,
    F_FORMAT,
    F_PARTITION,
    F_RECORDS,
    F_SIZE,
    F_BLOCK_SIZE,
    F_COLUMN_SIZES,
    F_VALUE_COUNTS,
    F_NULL_COUNTS,
    F_NAN_COUNTS,
    F_LOWER,
    F_UPPER,
    F_KEY,
    F_SPLITS,
    F_EQUALITY,
    F_SORT,
    F_FIRST_ROW,
    F_REFERENCED,
    F_OFFSET,
    F_LENGTH,
    N_FILE_FIELDS
};
enum {
    L_PATH,
    L_LENGTH,
    L_SPEC,
    L_CONTENT,
    L_SEQUENCE,
    L_MIN_SEQUENCE,
    L_SNAPSHOT,
    L_ADDED_FILES,
    L_EXISTING_FILES,
    L_DELETED_FILES,
    L_ADDED_ROWS,
    L_EXISTING_ROWS,
    L_DELETED_ROWS,
    L_PARTITIONS,
    L_KEY,
    L_FIRST_ROW,
    N_LIST_FIELDS
};
enum { S_NULL, S_NAN, S_LOWER, S_UPPER, N_SUMMARY_FIELDS };

extern const field_row entry_rows[N_ENTRY_FIELDS];
extern const field_row file_rows[N_FILE_FIELDS];
extern const field_row list_rows[N_LIST_FIELDS];
extern const field_row summary_rows[N_SUMMARY_FIELDS];

/* What is written: the type of entries and of the list, by version. slots[field] is its place among
 * the children, -1: not in this version. NULL: no memory. */
const tarn_type *manifest_entry_type(tarn_arena *arena, const tarn_type *partition, int32_t version,
                                     int32_t entry_slots[N_ENTRY_FIELDS],
                                     int32_t file_slots[N_FILE_FIELDS]);
const tarn_type *manifest_list_type(tarn_arena *arena, int32_t version,
                                    int32_t slots[N_LIST_FIELDS]);

/* What is read: which child of a file's struct is which field, by id, or by name where the file has
 * no ids (B23). -1: absent. */
void manifest_find_fields(const tarn_type *type, const field_row *rows, int32_t n, int32_t *slots);

/* A source that lends another: closing it does not close that. */
tarn_code manifest_lend_source(io_source *source, io_source **out, tarn_error *err) TARN_MUST_USE;

/* What a name as in table properties says of packing (empty: deflate), into options. */
tarn_code manifest_codec(tarn_str name, avro_write_options *options, tarn_error *err) TARN_MUST_USE;

#endif
