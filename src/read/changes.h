/* read/changes.h - what happened to a table's rows between two snapshots, commit by commit, or in
 * all.
 *
 * A commit's changes are the rows that were there before and are gone, and those that are there and
 * were not; rows that it only carried over into another file are neither, and a commit that
 * replaces files by others of the same rows changes nothing. Deleted rows come before inserted
 * ones. Where key columns are known, the rows of one key that a commit both deletes and inserts are
 * updates. */
#ifndef READ_CHANGES_H
#define READ_CHANGES_H

#include "read/scan.h"

/* Columns behind the table's, as Iceberg Java and Spark name them. */
#define FIELD_ID_CHANGE_TYPE        2147483543 /* _change_type string */
#define FIELD_ID_CHANGE_ORDINAL     2147483542 /* _change_ordinal int: 0 for the first snapshot */
#define FIELD_ID_COMMIT_SNAPSHOT_ID 2147483541 /* _commit_snapshot_id long */

typedef struct changes_options {
    const tarn_metadata *metadata; /* outlives the changes */
    int64_t from_snapshot_id;      /* excluded; TARN_NO_SNAPSHOT: from the first on */
    int64_t to_snapshot_id;        /* included; TARN_NO_SNAPSHOT: main's current one */
    const tarn_str *key;           /* dotted names; NULL: the schema's identifier fields */
    int32_t n_key;
    bool net;           /* the difference between the two snapshots alone, as of the later one */
    int64_t batch_rows; /* 0: 16384 */
    /* Of the rows so told, the added columns too; a filter takes the two rows of an update each by
     * itself. */
    const tarn_str *columns; /* none: all */
    int32_t n_columns;
    const tarn_expr *filter; /* unbound; NULL: all */
    int64_t limit;           /* -1: all */
} changes_options;

typedef struct changes changes;
tarn_code changes_open(tarn_env *env, tarn_store *store, const changes_options *options,
                       changes **out, tarn_error *err) TARN_MUST_USE;
const tarn_type *changes_type(const changes *c); /* the table's columns and the three */
tarn_code changes_next(changes *c, tarn_batch *out,
                       tarn_error *err) TARN_MUST_USE; /* 0 rows: end */
void changes_close(changes *c);                        /* takes NULL */

#endif
