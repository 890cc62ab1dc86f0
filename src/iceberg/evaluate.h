/* iceberg/evaluate.h - filters against what metadata knows: which manifests, which files, and what
 * is left to check per row. Pure. */
#ifndef ICEBERG_EVALUATE_H
#define ICEBERG_EVALUATE_H

#include "iceberg/manifest.h"

/* A bound row filter prepared for one spec: its inclusive and strict projections onto the partition
 * tuple. */
typedef struct tarn_evaluator {
    const tarn_expr *filter; /* bound to the table schema */
    const tarn_spec *spec;
    const tarn_type *partition_type;
    const tarn_expr *inclusive; /* bound to partition_type */
    const tarn_expr *strict;
    const tarn_metadata *metadata;
} tarn_evaluator;

tarn_code evaluator_init(tarn_arena *arena, const tarn_metadata *m, const tarn_spec *spec,
                         const tarn_expr *bound, tarn_evaluator *out,
                         tarn_error *err) TARN_MUST_USE;
bool evaluator_manifest(
    const tarn_evaluator *e,
    const tarn_manifest *manifest); /* may hold matching files, by field summaries */
/* Whether the manifest may hold a file of exactly this partition tuple (of the manifest's spec), by
 * field summaries. */
bool manifest_may_hold(const tarn_manifest *manifest, const tarn_value *partition, int32_t n);
bool evaluator_partition(const tarn_evaluator *e,
                         const tarn_value *partition); /* may match, by partition tuple */
bool evaluator_file(const tarn_evaluator *e,
                    const tarn_file *file); /* may match, by tuple and column bounds */
bool evaluator_file_all(
    const tarn_evaluator *e,
    const tarn_file *file); /* every row matches for certain, by tuple or strict bounds */
/* What is left of the filter for rows of this partition (parts that the partition decides fold to
 * true or false). */
tarn_code evaluator_residual(tarn_arena *arena, const tarn_evaluator *e,
                             const tarn_value *partition, const tarn_expr **out,
                             tarn_error *err) TARN_MUST_USE;

#endif
