/* tarn/scan.h - reading rows of a table, or of one of its metadata tables. */
#ifndef TARN_SCAN_H
#define TARN_SCAN_H

#include <tarn/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_scan_options {
    uint32_t struct_size;
    const char *metadata_table; /* "snapshots", "files"...; NULL: the rows. @borrow */
    const char *columns;        /* comma separated, dotted for nested ones; NULL: all. @borrow */
    const char *where;          /* filter text (docs/cli.md, "Filters"); NULL: all rows. @borrow */
    int64_t limit;              /* -1: all */
    int64_t snapshot_id;        /* -1: not by id */
    int64_t as_of_ms;           /* state of main at this time; -1: not by time */
    const char *ref;            /* branch or tag; NULL: main. At most one of the three. @borrow */
    int64_t batch_rows;         /* 0: 16384 */
    bool case_insensitive;
    bool no_prune; /* read everything and only filter rows: for comparing */
    /* Only rows that were appended after this snapshot, up to the chosen one, its descendant; 0:
     * since the table began; -1: all rows. INVALID where a snapshot between changed rows. @since
     * 0.2 */
    int64_t from_snapshot_id;
} tarn_scan_options;

#define TARN_SCAN_OPTIONS_INIT                                                                     \
    { sizeof(tarn_scan_options), NULL, NULL, NULL, -1, -1, -1, NULL, 0, false, false, -1 }

typedef struct tarn_scan_stats {
    uint32_t struct_size;
    int64_t manifests, manifests_skipped;
    int64_t files, files_skipped;
    int64_t row_groups, row_groups_skipped, pages_skipped;
    int64_t rows_read, rows_matched, bytes_read;
    int64_t snapshot_id; /* that is read; -1: none. @since 0.2 */
} tarn_scan_stats;

#define TARN_SCAN_STATS_INIT                                                                       \
    { sizeof(tarn_scan_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1 }

/* Rows of the version that the handle shows, as an Arrow stream. The stream keeps what it needs:
 * the table handle may be freed before it. A failure in get_next is an errno value with
 * get_last_error's text; memory is bounded whatever the table's size. stats (may be NULL) is filled
 * as the stream goes and must outlive it. INVALID: unknown column, bad filter; NOT_FOUND: no such
 * snapshot or ref. spec: "Scan Planning". @since 0.1 */
TARN_API TARN_MUST_USE tarn_code
tarn_table_scan(tarn_table *table,                /* @borrow */
                const tarn_scan_options *options, /* @borrow, may be NULL */
                struct ArrowArrayStream *out,     /* @give: its release */
                tarn_scan_stats *stats,           /* @keep, may be NULL */
                tarn_error *err /* @borrow, may be NULL */);

typedef struct tarn_changes_options {
    uint32_t struct_size;
    int64_t from_snapshot_id; /* changes after this snapshot; 0: since the table began */
    int64_t to_snapshot_id;   /* up to this one, its descendant; -1: the newest of ref */
    const char *ref;          /* branch or tag; NULL: main. @borrow */
    const char *key;          /* comma separated columns by which deleted and inserted rows of one
                                 commit are told as updates; NULL: the identifier fields. @borrow */
    bool net;                 /* only what is left of all commits, as one change */
    int64_t batch_rows;       /* 0: 16384 */
    /* Of the changes so told, _change_type and its kin too; as of tarn_scan_options. where takes
     * the two rows of an update each by itself. @since 0.2 */
    const char *columns; /* @borrow */
    const char *where;   /* @borrow */
    int64_t limit;       /* -1: all */
} tarn_changes_options;

#define TARN_CHANGES_OPTIONS_INIT                                                                  \
    { sizeof(tarn_changes_options), 0, -1, NULL, NULL, false, 0, NULL, NULL, -1 }

/* Rows that commits inserted and deleted, in commit order, deleted ones first, as an Arrow stream:
 * the table's columns, _change_type (INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER),
 * _change_ordinal (of the commit) and _commit_snapshot_id. Rows that a commit only moved to other
 * files are left out. INVALID: from is no ancestor of to, an unknown key column, a
 * column of the table named as one of the three; NOT_FOUND: no such snapshot, or one between was
 * expired (since the table began: the first; net, its rows of now are told whatever was); LIMIT:
 * one commit changed more rows than can be told from moved ones. The stream as tarn_table_scan's.
 * @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_table_changes(tarn_table *table,                   /* @borrow */
                   const tarn_changes_options *options, /* @borrow, may be NULL */
                   struct ArrowArrayStream *out,        /* @give: its release */
                   tarn_error *err /* @borrow, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
