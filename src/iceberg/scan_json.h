/* iceberg/scan_json.h - what server-side scan planning says in JSON (REST specification,
 * "Predicate", "ContentFile"): filters, both ways, and files. */
#ifndef ICEBERG_SCAN_JSON_H
#define ICEBERG_SCAN_JSON_H

#include "iceberg/metadata.h"
#include "table/expr.h"
#include "table/file_entry.h"

/* An unbound filter; literals are read as the type of their column in root. It may keep more rows
 * than the JSON says, and *exact is false then: of a transform of a column, which is taken as true,
 * and of "not equal", which is Iceberg's and keeps nulls. INVALID names what is wrong. */
tarn_code filter_from_json(tarn_arena *arena, const json_value *json, const tarn_type *root,
                           bool case_sensitive, const tarn_expr **out, bool *exact,
                           tarn_error *err) TARN_MUST_USE;
/* A bound filter. */
void filter_put_json(const tarn_expr *expr, json_writer *w);

/* One data or delete file, without the statistics of its columns. */
void content_file_put_json(const tarn_file *file, json_writer *w);

#endif
