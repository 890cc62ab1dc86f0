/* fuzz/base_table.h - the table that the targets of manifests and changes start from: schema and
 * spec are those of the seeds. */
#ifndef FUZZ_BASE_TABLE_H
#define FUZZ_BASE_TABLE_H

#include "fuzz.h"

#include "iceberg/metadata.h"

static const char base_table_text[] =
    "{\"format-version\":2,\"table-uuid\":\"f79c3e09-677c-4bbd-a479-3f349cb785e7\",\"location\":"
    "\"/x\",\"last-sequence-number\":3,\"last-updated-ms\":1,\"last-column-id\":6,\"schemas\":[{"
    "\"type\":\"struct\",\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\",\"required\":false,"
    "\"type\":\"long\"},{\"id\":2,\"name\":\"s\",\"required\":false,\"type\":\"string\"},{\"id\":3,"
    "\"name\":\"ts\",\"required\":false,\"type\":\"timestamp\"},{\"id\":4,\"name\":\"t\","
    "\"required\":false,\"type\":\"string\"},{\"id\":5,\"name\":\"l\",\"required\":false,\"type\":{"
    "\"type\":\"list\",\"element-id\":6,\"element\":\"int\",\"element-required\":false}}]}],"
    "\"current-schema-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[{\"source-id\":1,"
    "\"field-id\":1000,\"name\":\"id_bucket\",\"transform\":\"bucket[4]\"},{\"source-id\":2,"
    "\"field-id\":1001,\"name\":\"s\",\"transform\":\"identity\"},{\"source-id\":3,\"field-id\":"
    "1002,\"name\":\"ts_day\",\"transform\":\"day\"},{\"source-id\":4,\"field-id\":1003,\"name\":"
    "\"t_trunc\",\"transform\":\"truncate[2]\"}]}],\"default-spec-id\":0,\"last-partition-id\":"
    "1003,\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"default-sort-order-id\":0}";

static inline const tarn_metadata *base_table(tarn_arena *arena) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_metadata *metadata = NULL;
    tarn_str text = str_make(base_table_text, sizeof base_table_text - 1);
    fuzz_check(metadata_parse(arena, text, "base table", &metadata, &err) == TARN_OK);
    return metadata;
}

#endif
