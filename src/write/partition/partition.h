/* write/partition/partition.h - hidden partitioning: a batch becomes groups of rows with one
 * partition tuple each. Transforms run over whole columns; tuples are hashed by value (null, 0 and
 * '' stay apart, B05). One partitioner per thread. */
#ifndef WRITE_PARTITION_PARTITION_H
#define WRITE_PARTITION_PARTITION_H

#include "iceberg/metadata.h"
#include "table/batch.h"

typedef struct tarn_partitioner tarn_partitioner;

typedef struct partition_group {
    int64_t
        key; /* dense number of this tuple within the partitioner, from 0, stable over its life */
    const tarn_value *partition; /* n_fields values; live as long as the partitioner */
    const int32_t *rows;         /* indexes into the batch, rising */
    int64_t n_rows;
} partition_group;

/* spec's sources must be in schema; unknown transforms are UNSUPPORTED. schema, spec must outlive
 * it. */
tarn_code partitioner_new(tarn_env *env, const tarn_type *root, const tarn_spec *spec,
                          const tarn_type *partition_type, tarn_partitioner **out,
                          tarn_error *err) TARN_MUST_USE;
/* Groups hold until the next call. An unpartitioned spec gives one group. */
tarn_code partitioner_split(tarn_partitioner *p, const tarn_batch *batch,
                            const partition_group **groups, size_t *n_groups,
                            tarn_error *err) TARN_MUST_USE;
void partitioner_free(tarn_partitioner *p); /* takes NULL */

#endif
