/* maintain/check_int.h - what the files of the check share. */
#ifndef MAINTAIN_CHECK_INT_H
#define MAINTAIN_CHECK_INT_H

#include "base/map.h"
#include "iceberg/manifest.h"
#include "maintain/check.h"

typedef struct check_column_info {
    const tarn_field *field;
    bool nested; /* writers differ in what they count below nulls */
} check_column_info;

typedef struct checker {
    tarn_env *env;
    tarn_store *store;
    const tarn_metadata *m;
    tarn_str location;
    const check_options *options;
    check_counts *counts;
    tarn_arena arena;           /* of the whole run */
    tarn_map seen;              /* manifests that were looked at, by digest of their path */
    check_column_info *columns; /* of all schemas, one an id; the current schema's field first */
    int32_t n_columns, columns_cap;
    tarn_idmap column_ids;
} checker;

/* Reports a finding; OK unless the receiver or memory says otherwise. */
tarn_code check_found(checker *c, check_rule rule, tarn_str place, tarn_error *err, const char *fmt,
                      ...) TARN_PRINTF(5, 6) TARN_MUST_USE;
/* Whether code only says what is wrong with the table; the others end the check. */
bool check_is_finding(tarn_code code);

/* check_metadata.c: the document alone. */
tarn_code check_metadata(checker *c, tarn_error *err) TARN_MUST_USE;

/* check_header.c: a manifest's or a list's Avro header. */
tarn_code check_manifest_header(checker *c, const tarn_manifest *manifest,
                                tarn_error *err) TARN_MUST_USE;
tarn_code check_list_header(checker *c, tarn_str path, tarn_error *err) TARN_MUST_USE;

/* check_entry.c: entries against their manifest, spec and schema. type is the spec's tuple. */
tarn_code check_entries(checker *c, const tarn_manifest *manifest, const tarn_spec *spec,
                        const manifest_entries *entries, tarn_error *err) TARN_MUST_USE;
/* check_values.c */
tarn_code check_partition(checker *c, tarn_str place, const tarn_spec *spec, const tarn_file *file,
                          tarn_error *err) TARN_MUST_USE;
tarn_code check_metrics(checker *c, tarn_str place, const tarn_file *file,
                        tarn_error *err) TARN_MUST_USE;
tarn_code check_columns_find(checker *c, tarn_error *err) TARN_MUST_USE; /* before all else */
/* A column in any schema of the table, the current one first; NULL: none has it. nested (may be
 * NULL): it is not one of the table's own columns but below one. */
const tarn_field *check_column(const checker *c, int32_t id, bool *nested);

/* check_live.c: one snapshot's live files together. Data manifests come before delete manifests. */
typedef struct check_live check_live;
tarn_code check_live_new(checker *c, const tarn_snapshot *snapshot, check_live **out,
                         tarn_error *err) TARN_MUST_USE;
tarn_code check_live_add(check_live *live, const tarn_manifest *manifest,
                         const manifest_entries *entries, tarn_error *err) TARN_MUST_USE;
/* After all manifests; whole: none of them was left out. */
tarn_code check_live_end(check_live *live, bool whole, tarn_error *err) TARN_MUST_USE;
void check_live_free(check_live *live); /* takes NULL */

/* check_file.c: a live file's own footer. */
tarn_code check_file(checker *c, const tarn_file *file, tarn_error *err) TARN_MUST_USE;

#endif
