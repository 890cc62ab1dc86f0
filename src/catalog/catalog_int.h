/* catalog/catalog_int.h - what the catalogs share: the next document of a table
 * (catalog_document.c) and the versions that a folder holds (catalog_folder.c). */
#ifndef CATALOG_CATALOG_INT_H
#define CATALOG_CATALOG_INT_H

#include "catalog/catalog.h"

/* The checked wrappers call these before any catalog sees an ident. */
tarn_code ident_check_namespace(const tarn_ident *ident, tarn_error *err) TARN_MUST_USE;
tarn_code ident_check_table(const tarn_ident *ident, tarn_error *err) TARN_MUST_USE;
/* "a.b.c" for messages, in arena; "?" when there is no memory. */
const char *ident_label(tarn_arena *arena, const tarn_ident *ident);
/* A name as one part of a path that no reader can misread: slashes, percent and the characters that
 * some URI readers cut at become %XX, and so do "." and "..". NULL data: no memory. */
tarn_str ident_path_part(tarn_arena *arena, tarn_str name);

/* catalog_wait.c: one call's part in an outage, zero at first. catalog_wait: after a while whether
 * to make the call again, whose failure err is; catalog_wait_end: however it ended. */
typedef struct catalog_outage {
    bool began;
    int32_t tries;
} catalog_outage;
bool catalog_wait(tarn_catalog *c, catalog_outage *o, const tarn_error *err);
void catalog_wait_end(tarn_catalog *c, catalog_outage *o, bool back);
void catalog_waiting_free(tarn_catalog *c);

tarn_table_version *table_version_new(tarn_env *env); /* NULL: no memory */
/* Before v has its metadata: *m becomes, in arena, the same with all its snapshots in a pool that v
 * holds; which is that of base (may be NULL) where there is one, so that only what is new is made.
 */
tarn_code table_version_share(tarn_table_version *v, tarn_arena *arena,
                              const tarn_table_version *base, const tarn_metadata **m,
                              tarn_error *err) TARN_MUST_USE;
/* Two loads of one document. */
bool table_version_is_same(const tarn_table_version *a, const tarn_table_version *b);
size_t table_version_bytes(const tarn_table_version *v); /* also of what it shares */
/* Where it is, and the document there, as it is stored. */
tarn_code table_version_name(tarn_table_version *v, tarn_str location, tarn_str document,
                             tarn_error *err) TARN_MUST_USE;
/* Whether the document at location is still that of v. Reads but its beginning. */
tarn_code table_version_is_at(const tarn_table_version *v, tarn_store *store, tarn_str location,
                              bool *same, tarn_error *err) TARN_MUST_USE;

/* The versions seen last, newest first, one a table. Guarded by its owner's lock. */
#define RECENT_VERSIONS 4
typedef struct recent_versions {
    tarn_table_version *items[RECENT_VERSIONS];
} recent_versions;
tarn_table_version *recent_find(const recent_versions *r, tarn_str location); /* kept; or NULL */
/* Keeps version. What fell out is the caller's to release, without the lock. */
tarn_table_version *recent_put(recent_versions *r, tarn_table_version *version);
void recent_release(recent_versions *r);
/* A view's version from its document, which may be packed. */
tarn_code catalog_view_new(tarn_env *env, tarn_str bytes, tarn_str location, catalog_view **out,
                           tarn_error *err) TARN_MUST_USE;

/* The document that a commit wants to make current. All of version was parsed back from the very
 * bytes that are written, the snapshots when they were new, so what becomes current can be read. */
typedef struct catalog_document {
    tarn_arena arena;
    tarn_buf json;
    tarn_buf packed; /* gzip; empty when stored plain */
    tarn_table_version *version;
    int32_t n_removed; /* older documents that fall out of the log */
    const tarn_str *removed;
    bool remove_old; /* write.metadata.delete-after-commit.enabled */
    bool trims;      /* the same, of base or of this: old documents may vanish */
    bool unique;     /* nobody else's commit can have the same bytes */
} catalog_document;

void document_init(catalog_document *doc, tarn_env *env);
void document_release(catalog_document *doc);
/* Checks the requirements on base (NULL: no table), applies the changes, writes and reads back. */
tarn_code document_build(catalog_document *doc, tarn_table_version *base,
                         const tarn_change_set *set, tarn_error *err) TARN_MUST_USE;
/* Fixes where it will be and how it is stored. */
tarn_code document_pack(catalog_document *doc, tarn_str location, bool gzip,
                        tarn_error *err) TARN_MUST_USE;
tarn_str document_bytes(const catalog_document *doc);
/* Writes it if nothing is there. *sent: the store was asked to show it, so that a failure other
 * than CONFLICT may have taken effect. */
tarn_code document_send(const catalog_document *doc, tarn_store *store, store_mode mode, bool *sent,
                        tarn_error *err) TARN_MUST_USE;
/* Removes the documents that fell out of the log, when the table wants that; failures are logged.
 */
void document_remove_old(const catalog_document *doc, tarn_store *store);
/* Whether the table once was at this document: current is it, or names it in its log. */
bool document_is_in_history(const catalog_document *doc, const tarn_table_version *current);

bool metadata_wants_gzip(const tarn_metadata *m);
bool metadata_wants_removal(const tarn_metadata *m); /* of old documents, after commits */

/* vN.metadata.json, vN.gz.metadata.json and the older vN.metadata.json.gz. */
bool folder_parse_version(tarn_str file_name, int64_t *number);
/* NNNNN-<anything>.metadata.json (and with gz), as catalogs with a pointer name them. */
bool folder_parse_sequence(tarn_str file_name, int64_t *number);
tarn_str folder_file_name(tarn_str path); /* after the last slash */
const char *folder_version_name(tarn_arena *arena, int64_t number, bool gzip);

/* The current vN of a metadata folder: from the hint forward, else by listing. NOT_FOUND when it
 * holds none. what names the table in errors. */
tarn_code folder_current_version(tarn_store *store, tarn_arena *arena, tarn_str folder,
                                 const char *what, int64_t *number, tarn_str *location,
                                 tarn_error *err) TARN_MUST_USE;
/* Where old versions are removed, one that escaped that (a writer died) and a hint that went back
 * to it look like the current one: then the highest by listing is, and takes the place of what was
 * found. */
tarn_code folder_prefer_highest(tarn_store *store, tarn_arena *arena, tarn_str folder,
                                int64_t *number, tarn_str *location, tarn_error *err) TARN_MUST_USE;
/* The object of one version in any of its spellings; *location has no data when there is none. */
tarn_code folder_find_version(tarn_store *store, tarn_arena *arena, tarn_str folder, int64_t number,
                              tarn_str *location, tarn_error *err) TARN_MUST_USE;
/* The highest vN by listing alone; 0 when there is none. */
tarn_code folder_highest_version(tarn_store *store, tarn_str folder, int64_t *number,
                                 tarn_error *err) TARN_MUST_USE;
/* Best effort: a failure is logged, and the old hint stays. */
void folder_write_hint(tarn_store *store, tarn_arena *arena, tarn_str folder, int64_t number);
#define FOLDER_HINT_NAME "version-hint.text"

#endif
