/* iceberg/partition_check.h - whether a file can be of the partition that its entry says, by the
 * rest of that entry. */
#ifndef ICEBERG_PARTITION_CHECK_H
#define ICEBERG_PARTITION_CHECK_H

#include "iceberg/metadata.h"
#include "table/file_entry.h"

typedef enum partition_fault {
    PARTITION_FITS,
    PARTITION_IMPOSSIBLE, /* the transform has no such result (B01) */
    PARTITION_ELSEWHERE   /* the column's bounds or nulls say that the rows are of another */
} partition_fault;

/* value: the file's for this field. source: the field's column, where it is known; else NULL.
 * *what: the fault, to be put after the value's name. Faults that writers are known for, and
 * readers bear (B02), are none. */
partition_fault partition_check_value(const tarn_partition_field *field, const tarn_field *source,
                                      const tarn_file *file, const tarn_value *value,
                                      const char **what);

#endif
