/* iceberg/manifest.h - manifests and manifest lists (spec, "Manifests", "Manifest Lists", Appendix
 * A Avro), read and written through io ends. Writers follow the spec to the letter (record names
 * manifest_entry and manifest_file, field ids, header keys); readers take what the field leaves
 * (B05, B22, B23). */
#ifndef ICEBERG_MANIFEST_H
#define ICEBERG_MANIFEST_H

#include "base/io.h"
#include "iceberg/metadata.h"
#include "table/file_entry.h"

typedef struct tarn_field_summary {
    bool contains_null;
    int8_t contains_nan; /* -1: not known */
    bool has_lower, has_upper;
    tarn_str lower, upper; /* single-value binary */
} tarn_field_summary;

typedef struct tarn_manifest {
    tarn_str path;
    int64_t length;
    int32_t spec_id;
    bool is_deletes;
    int64_t sequence_number;     /* -1: to be assigned by the snapshot that commits it */
    int64_t min_sequence_number; /* -1: same */
    int64_t added_snapshot_id;
    int32_t added_files, existing_files, deleted_files; /* -1: not known (v1) */
    int64_t added_rows, existing_rows, deleted_rows;    /* -1: not known */
    int32_t n_partitions;
    const tarn_field_summary *partitions; /* one a field of the spec; NULL: unknown */
    tarn_str key_metadata;                /* data NULL: none */
    int64_t first_row_id;                 /* -1: none */
} tarn_manifest;

/* Columns of an entry that a reader wants: path, status, ids, sequence numbers, partition,
 * record_count, size, content are always there. */
enum {
    MANIFEST_WANT_STATS = 1,        /* value, null, nan counts and bounds */
    MANIFEST_WANT_COLUMN_SIZES = 2, /* column_sizes */
    MANIFEST_WANT_REST = 4, /* split offsets, key metadata, equality ids, sort order, v3 fields */
    MANIFEST_WANT_ALL = 7
};

typedef struct manifest_read_options {
    unsigned want;
    const int32_t
        *stat_ids; /* with WANT_STATS: keep only bounds and counts of these field ids; NULL: all */
    int32_t n_stat_ids;
    bool live_only; /* drop DELETED entries while decoding */
} manifest_read_options;

typedef struct manifest_entries {
    int64_t count;
    tarn_entry *items; /* in the arena given */
} manifest_entries;

/* Reads a whole manifest; source stays the caller's. manifest gives what is inherited (sequence
 * numbers, snapshot id, spec id); NULL: nothing is inherited, spec id comes from the header.
 * Partition values are matched by partition field id and come in the order of m's spec. */
tarn_code manifest_read(tarn_arena *arena, io_source *source, const tarn_metadata *m,
                        const tarn_manifest *manifest, const manifest_read_options *options,
                        manifest_entries *out, tarn_error *err) TARN_MUST_USE;

typedef struct manifest_writer manifest_writer;
typedef struct manifest_writer_options {
    int32_t format_version;
    const tarn_metadata *metadata; /* for spec's types */
    const tarn_schema *schema;     /* header "schema" */
    const tarn_spec *spec;
    bool is_deletes;
    int64_t snapshot_id; /* committing snapshot */
    tarn_str codec;      /* write.avro-like name: "gzip" (deflate, default), "zstd", "snappy",
                            "uncompressed"; len 0: gzip */
} manifest_writer_options;
/* path is written into the resulting tarn_manifest. Takes sink on success. */
tarn_code manifest_writer_new(tarn_env *env, const manifest_writer_options *options, io_sink *sink,
                              tarn_str path, manifest_writer **out, tarn_error *err) TARN_MUST_USE;
/* Status, ids and sequence numbers are written as they stand (-1: null, to be inherited), whatever
 * else the entry borrows is not kept. */
tarn_code manifest_writer_add(manifest_writer *w, const tarn_entry *entry,
                              tarn_error *err) TARN_MUST_USE;
int64_t manifest_writer_bytes(const manifest_writer *w); /* so far, roughly: for rolling at
                                                            commit.manifest.target-size-bytes */
/* Finishes the sink and frees w in every case; out's parts live in arena. */
tarn_code manifest_writer_close(manifest_writer *w, tarn_arena *arena, tarn_manifest *out,
                                tarn_error *err) TARN_MUST_USE;
void manifest_writer_abort(manifest_writer *w); /* takes NULL */

/* source stays the caller's. */
tarn_code manifest_list_read(tarn_arena *arena, io_source *source, const tarn_manifest **out,
                             int32_t *n, tarn_error *err) TARN_MUST_USE;
/* v3: gives every data manifest that has no first_row_id its own, from next on, in list order;
 * returns the id after the last (less next: the snapshot's added-rows). */
int64_t manifest_assign_row_ids(tarn_manifest *manifests, int32_t n, int64_t next);
/* An entry of the header's metadata, in arena; data NULL: absent. source stays the caller's. */
tarn_code manifest_list_property(tarn_arena *arena, io_source *source, const char *key,
                                 tarn_str *out, tarn_error *err) TARN_MUST_USE;
#define MANIFEST_LIST_MAX_EXTRA 4
typedef struct manifest_list_options {
    int32_t format_version;
    int64_t snapshot_id, parent_id, sequence_number;
    int64_t first_row_id; /* v3; -1 */
    tarn_str codec;
    tarn_properties extra; /* more entries of the header's metadata: at most
                              MANIFEST_LIST_MAX_EXTRA */
} manifest_list_options;
/* Manifests with sequence_number -1 get the snapshot's. Writes to sink, and leaves it to the caller
 * to finish it (or, after a failure, to abort it). */
tarn_code manifest_list_write(tarn_env *env, const manifest_list_options *options,
                              const tarn_manifest *manifests, int32_t n, io_sink *sink,
                              tarn_error *err) TARN_MUST_USE;

#endif
