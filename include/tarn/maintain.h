/* tarn/maintain.h - looking after tables: the check, and the import of files
 * that are there already. */
#ifndef TARN_MAINTAIN_H
#define TARN_MAINTAIN_H

#include <tarn/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One thing that a check found. All text is borrowed for the call that gives it. */
typedef struct tarn_finding {
    uint32_t struct_size;
    bool is_error;       /* rows may be lost, wrong or unreadable for somebody; else a warning */
    const char *rule;    /* what kind: "partition-value"; stable names */
    const char *section; /* of the Iceberg specification */
    const char *place;   /* the file that holds it */
    const char *message;
} tarn_finding;

typedef struct tarn_check_report {
    uint32_t struct_size;
    int64_t errors, warnings;
    int64_t snapshots, manifests, entries; /* looked at, each once */
    int64_t files;                         /* live files whose presence and size was looked at */
    int64_t opened;                        /* files whose footer was read (deep) */
} tarn_check_report;

#define TARN_CHECK_REPORT_INIT                                                                     \
    { sizeof(tarn_check_report), 0, 0, 0, 0, 0, 0, 0 }

typedef struct tarn_check_options {
    uint32_t struct_size;
    bool deep; /* opens every live file: rows, field ids, statistics against the entries */
    /* Each finding as it is met; other than 0 ends the check as CANCELLED. NULL: only counted. */
    int (*found)(void *ctx, const tarn_finding *finding); /* @keep */
    /* Now and then, with what was done so far; may be NULL. */
    void (*progress)(void *ctx, const tarn_check_report *so_far); /* @keep */
    void *ctx;                                                    /* @keep */
} tarn_check_options;

#define TARN_CHECK_OPTIONS_INIT                                                                    \
    { sizeof(tarn_check_options), false, NULL, NULL, NULL }

/* Whether the table's metadata, manifests and files follow the specification and agree with each
 * other. Reads only. A damaged table is no failure: the report says what was found. Cost: every
 * manifest is read once (those of a branch's or tag's snapshot once for each), and the size of
 * every live file asked for; deep also reads every footer. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_table_check(tarn_table *table,                 /* @borrow */
                 const tarn_check_options *options, /* @borrow, may be NULL */
                 tarn_check_report *report,         /* @borrow */
                 tarn_error *err /* @borrow, may be NULL */);

typedef struct tarn_import_options {
    uint32_t struct_size;
    bool create; /* make the table where there is none: columns are the union of the files' */
    /* create: "day(ts), region"; NULL: each key of the folders' names, as it is. @borrow */
    const char *partition_by;
    /* create: types of folder keys that are not to be inferred, "month int, code string"; NULL:
       int, long or date where every value is written so, else string. @borrow */
    const char *key_types;
    int32_t format_version;      /* create; 0: 2 */
    const char *properties_json; /* create; NULL: none. @borrow */
    bool dry_run;                /* look at every file, change nothing */
    bool skip_existing;          /* files that the table has are left out, not refused */
    bool merge_append;           /* merge small manifests, as commit.manifest.* say */
    void (*progress)(void *ctx, int64_t done, int64_t total); /* files; NULL: none. @borrow */
    void *progress_ctx;                                       /* @borrow */
} tarn_import_options;

#define TARN_IMPORT_OPTIONS_INIT                                                                   \
    { sizeof(tarn_import_options), false, NULL, NULL, 0, NULL, false, false, false, NULL, NULL }

typedef struct tarn_import_report {
    uint32_t struct_size;
    int64_t files, skipped, rows, bytes;
    bool created;
} tarn_import_report;

#define TARN_IMPORT_REPORT_INIT                                                                    \
    { sizeof(tarn_import_report), 0, 0, 0, 0, false }

/* Makes the Parquet and Avro files below a folder (hive-style, "k=v" folders, or flat) a table's
 * data files, where they lie and as they are, in one commit. Partition values come from the
 * folders' names, each percent-decoded once, "__HIVE_DEFAULT_PARTITION__" being null; where a
 * folder is silent, from statistics that leave one value. Counts and bounds come from the footers.
 * Field ids in files must be those of the table; a new table takes over the files' where all of
 * them agree, and no server makes the table. Files without field ids are read by the property
 * schema.name-mapping.default, which is set where it is missing. INVALID, UNSUPPORTED and CORRUPT
 * name the file and the reason; then nothing was committed. The files belong to the table from then
 * on. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_table_import(tarn_catalog_handle *catalog,       /* @borrow */
                  const char *table,                  /* @borrow */
                  const char *folder,                 /* @borrow */
                  const tarn_import_options *options, /* @borrow, may be NULL */
                  tarn_import_report *report,         /* @borrow */
                  tarn_outcome *outcome,              /* @borrow */
                  tarn_error *err /* @borrow, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
