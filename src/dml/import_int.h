/* dml/import_int.h - what the files of the import share. */
#ifndef DML_IMPORT_INT_H
#define DML_IMPORT_INT_H

#include "dml/import.h"
#include "format/avro/avro.h"
#include "format/parquet/parquet.h"

#define NAME_MAPPING_PROPERTY "schema.name-mapping.default"

typedef struct import_key { /* one folder's "key=value", decoded */
    tarn_str name;
    tarn_str value;
    bool is_null;
} import_key;

typedef struct import_file {
    tarn_str path;
    int64_t size_bytes;
    int32_t n_keys;
    const import_key *keys; /* in the order of the path */
} import_file;

typedef struct importer {
    tarn_env *env;
    tarn_catalog *catalog;
    const tarn_ident *ident;
    const import_options *options;
    tarn_arena arena;
    import_file *files;
    int64_t n_files, files_cap;
    tarn_table_version *version; /* of a table that is there; NULL: to be made */
    const tarn_metadata *m;      /* its metadata, or what it would be */
    const json_value *mapping;   /* names to ids, for files without ids */
    bool set_mapping;            /* the table has no mapping yet */
    metadata_new_options make;   /* with create */
    tarn_file *entries;
    int64_t n_entries;
} importer;

/* An open file of either format. */
typedef struct import_open {
    tarn_env *env;
    const import_file *file;
    tarn_file_format format;
    io_source *source;
    parquet_file *parquet;
    avro_file *avro;
    const tarn_type *root; /* as the file says it; lives as long as the file is open */
} import_open;

/* import_files.c */
tarn_code import_list(importer *im, tarn_error *err) TARN_MUST_USE;
/* UNSUPPORTED: a format that is not read; INVALID: none at all. */
tarn_code import_open_file(importer *im, const import_file *file, import_open *out,
                           tarn_error *err) TARN_MUST_USE;
void import_close_file(import_open *open);

/* import_schema.c: fills im->make. */
tarn_code import_schema(importer *im, tarn_error *err) TARN_MUST_USE;
/* The first field of a file, at any depth, whose id is not that of root's field of its name; NULL:
 * there is none. */
const tarn_field *import_ids_differ(const tarn_type *root, const tarn_type *file);
/* The name mapping of a schema, as the property's JSON (spec, "Name Mapping Serialization"). */
tarn_code import_mapping(tarn_arena *arena, const tarn_type *root, json_value **out,
                         tarn_error *err) TARN_MUST_USE;

/* import_entry.c: one file as an entry of the table's default spec, in arena. */
tarn_code import_entry(importer *im, tarn_arena *arena, const import_file *file, tarn_file *out,
                       tarn_error *err) TARN_MUST_USE;
/* import_partition.c. p is NULL for formats without statistics. */
tarn_code import_partition(importer *im, tarn_arena *arena, const import_file *file,
                           const tarn_projection *plan, const parquet_file *p, tarn_value *out,
                           tarn_error *err) TARN_MUST_USE;

#endif
