/* tarn/maintain.h - looking after tables: the check. */
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

#ifdef __cplusplus
}
#endif
#endif
