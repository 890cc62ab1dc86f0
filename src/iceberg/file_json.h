/* iceberg/file_json.h - data and delete files as JSON, in the words of the REST specification's
 * content files: "content", "file-path", "file-format", "spec-id", "partition" (single values),
 * "record-count", "file-size-in-bytes" and so on. Bounds and key metadata are hex of the
 * single-value binary form, as Iceberg Java writes them. What is not known is left out. Pure. */
#ifndef ICEBERG_FILE_JSON_H
#define ICEBERG_FILE_JSON_H

#include "iceberg/metadata.h"
#include "table/file_entry.h"

void file_put_json(const tarn_file *file, json_writer *w);
/* m gives the partition's types. INVALID names the member that is missing or wrong; CONFLICT: a
 * partition spec that m lacks. All but the syntax is the caller's to judge. */
tarn_code file_from_json(tarn_arena *arena, const json_value *json, const tarn_metadata *m,
                         tarn_file *out, tarn_error *err) TARN_MUST_USE;
/* [file, ...] under a name; absent or null: none. */
void files_put_json(const char *name, const tarn_file *files, int32_t n, json_writer *w);
tarn_code files_from_json(tarn_arena *arena, const json_value *object, const char *name,
                          const tarn_metadata *m, tarn_file **out, int32_t *n,
                          tarn_error *err) TARN_MUST_USE;
/* Entries: {"snapshot-id", "sequence-number", "file-sequence-number", "file"}. */
void entries_put_json(const char *name, const tarn_entry *entries, int32_t n, json_writer *w);
tarn_code entries_from_json(tarn_arena *arena, const json_value *object, const char *name,
                            const tarn_metadata *m, tarn_entry **out, int32_t *n,
                            tarn_error *err) TARN_MUST_USE;
/* Texts: paths. */
void texts_put_json(const char *name, const tarn_str *texts, int32_t n, json_writer *w);
tarn_code texts_from_json(tarn_arena *arena, const json_value *object, const char *name,
                          const tarn_str **out, int32_t *n, tarn_error *err) TARN_MUST_USE;

#endif
