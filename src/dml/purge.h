/* dml/purge.h - the files of a table whose name is gone. */
#ifndef DML_PURGE_H
#define DML_PURGE_H

#include "catalog/catalog.h"

/* Drops the table as it is: *out (to be released) is what went. CONFLICT: it was made anew while
 * this went on, or did not stand still; nothing was dropped. */
tarn_code purge_drop(tarn_catalog *catalog, const tarn_ident *table, tarn_table_version **out,
                     tarn_error *err) TARN_MUST_USE;

/* Removes every data, delete, manifest, list and metadata file that any snapshot of this last
 * version names, and earlier metadata files. The table's name must have been dropped before. Files
 * of others below the location are left. With gc.enabled=false data files are left too, as in
 * Iceberg Java. A file that is gone already is no error; the first other failure is reported after
 * all was tried, and what names a file that is still there stays with it: so the same version can
 * be purged again. Folders of the table that are empty then go, too. is_own: what it is false of is
 * another's, and stays; NULL: nothing is. Metadata files that went with the name are left alone: by
 * now they may be those of a table that was made anew. */
typedef bool (*purge_own_fn)(const tarn_metadata *m, tarn_str path);
tarn_code purge_table(tarn_env *env, tarn_catalog *catalog, const tarn_table_version *version,
                      purge_own_fn is_own, tarn_error *err) TARN_MUST_USE;

/* For who made a table, of this uuid, for work that came to nothing: drops and purges it where it
 * still is that one and nobody has put a snapshot into it, else CONFLICT. *gone: it was dropped,
 * also where the purge failed. */
tarn_code purge_take_back(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                          tarn_str uuid, bool *gone, tarn_error *err) TARN_MUST_USE;

#endif
