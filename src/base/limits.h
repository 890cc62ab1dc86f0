/* base/limits.h - everything growable has its maximum here; docs/limits.md is made from this page.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#define LIMIT_METADATA_JSON_BYTES (512u << 20)    /* one metadata.json, unpacked */
#define LIMIT_MANIFEST_BYTES      (2048ull << 20) /* one manifest or manifest list */
#define LIMIT_SCHEMA_FIELDS       100000          /* fields of one schema, nested ones too */
#define LIMIT_NESTING             100             /* levels of a type */
#define LIMIT_DECODE_BLOCK_BYTES  (1024ull << 20) /* one unpacked page or block */
#define LIMIT_BATCH_BYTES         (1024ull << 20) /* string bytes of one column of one batch */
#define LIMIT_NAME_BYTES          4096            /* a table, namespace or column name */
#define LIMIT_PATH_BYTES          16384           /* a path or URI of an object */
#define LIMIT_FOLDER_DEPTH        256             /* folders in folders when listing */
#define LIMIT_PUFFIN_FOOTER_BYTES (256u << 20)    /* the footer of a Puffin file, unpacked */
#define LIMIT_TEXT_LINE_BYTES     (64u << 20)     /* one NDJSON or CSV record */
#define LIMIT_EXPR_DEPTH          200             /* nesting of a filter */
#define LIMIT_EXPR_LITERALS       100000          /* literals of one filter */
#define LIMIT_DELETE_KEY_BYTES    (4096ull << 20) /* keys of equality deletes of one scan */
#define LIMIT_CHANGED_ROWS_BYTES  (4096ull << 20) /* telling changed rows of a commit from moved */
#define LIMIT_FILE_ROWS           1000000000000ll /* rows said of one data or delete file */
#define LIMIT_THREADS             1024            /* worker threads of one env */
#define LIMIT_OPEN_WRITERS        1000 /* partitions open at once; then the coldest closes */
#define LIMIT_HTTP_HEADERS        256  /* headers of one answer */
#define LIMIT_HTTP_HEADER_BYTES   (256u << 10) /* the same, in bytes */
#define LIMIT_INTAKE_KEYS         1000000      /* idempotency keys of rows remembered at once */
#define LIMIT_INTAKE_TABLES       100000       /* tables that rows were sent for */
#define LIMIT_SQL_TEXT_BYTES      (16u << 20)  /* one text given to a catalog's database */

#endif
