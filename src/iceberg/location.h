/* iceberg/location.h - where new files of a table go: names only, no I/O (Iceberg's
 * LocationProviders). */
#ifndef ICEBERG_LOCATION_H
#define ICEBERG_LOCATION_H

#include "iceberg/metadata.h"

/* A data file: write.data.path (older: write.object-storage.path, write.folder-storage.path) or
 * <location>/data, then the partition path and name; with write.object-storage.enabled the hashed
 * layout, whose directories come from the name's hash. */
tarn_code location_data_file(tarn_arena *arena, const tarn_metadata *m, const tarn_spec *spec,
                             const tarn_value *partition, tarn_str name, tarn_str *out,
                             tarn_error *err) TARN_MUST_USE;
/* write.metadata.path or <location>/metadata, and the name. */
tarn_code location_metadata_file(tarn_arena *arena, const tarn_metadata *m, tarn_str name,
                                 tarn_str *out, tarn_error *err) TARN_MUST_USE;

#endif
