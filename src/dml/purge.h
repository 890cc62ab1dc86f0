/* dml/purge.h - the files of a table whose name is gone. */
#ifndef DML_PURGE_H
#define DML_PURGE_H

#include "catalog/catalog.h"

/* Removes every data, delete, manifest, list and metadata file that any snapshot of this last
 * version names, and earlier metadata files. The table's name must have been dropped before. Files
 * of others below the location are left. With gc.enabled=false data files are left too, as in
 * Iceberg Java. A file that is gone already is no error; the first other failure is reported after
 * all was tried, and what names a file that is still there stays with it: so the same version can
 * be purged again. Folders of the table that are empty then go, too. is_own: what it is false of is
 * another's, and stays; NULL: nothing is. */
typedef bool (*purge_own_fn)(const tarn_metadata *m, tarn_str path);
tarn_code purge_table(tarn_env *env, tarn_store *store, const tarn_table_version *version,
                      purge_own_fn is_own, tarn_error *err) TARN_MUST_USE;

#endif
