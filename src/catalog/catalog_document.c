/* catalog/catalog_document.c - the next metadata document of a table: made from base and changes,
 * written as bytes, read back, and only then offered to a store. */
#include "base/limits.h"
#include "catalog/catalog_int.h"
#include "format/codec.h"

void document_init(catalog_document *doc, tarn_env *env) {
    memset(doc, 0, sizeof *doc);
    arena_init(&doc->arena, env);
    buf_init(&doc->json, env, LIMIT_METADATA_JSON_BYTES);
    buf_init(&doc->packed, env, LIMIT_METADATA_JSON_BYTES);
}

void document_release(catalog_document *doc) {
    table_version_release(doc->version);
    buf_release(&doc->packed);
    buf_release(&doc->json);
    arena_release(&doc->arena);
}

bool metadata_wants_gzip(const tarn_metadata *m) {
    return str_eq_nocase(properties_str(&m->properties, "write.metadata.compression-codec", "none"),
                         STR("gzip"));
}

/* Snapshot ids and table uuids are random: a document that brings one is nobody else's. */
static bool is_unique(const tarn_change_set *set) {
    for (int32_t i = 0; i < set->n_changes; i++) {
        if (set->changes[i].kind == CHANGE_ADD_SNAPSHOT ||
            set->changes[i].kind == CHANGE_ASSIGN_UUID) {
            return true;
        }
    }
    return false;
}

/* As Iceberg reads it: what is not "true" is false, so that junk in a property cannot stop commits.
 */
bool metadata_wants_removal(const tarn_metadata *m) {
    bool wanted = false;
    tarn_code code = properties_bool(&m->properties, "write.metadata.delete-after-commit.enabled",
                                     false, &wanted, NULL);
    return code == TARN_OK && wanted;
}

tarn_code document_build(catalog_document *doc, tarn_table_version *base,
                         const tarn_change_set *set, tarn_error *err) {
    tarn_env *env = doc->arena.env;
    const tarn_metadata *old = base != NULL ? base->metadata : NULL;
    const tarn_metadata *m = NULL;
    tarn_code code;
    TRY(change_check(old, set, err));
    TRY(change_apply(&doc->arena, old, set, env_now_ms(env), &m, err));
    if (base != NULL) {
        TRY(change_log_previous(&doc->arena, m, base->metadata_location, old->last_updated_ms, &m,
                                &doc->removed, &doc->n_removed, err));
    }
    doc->version = table_version_new(env);
    if (doc->version == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(table_version_share(doc->version, &doc->arena, base, &m, err));
    TRY(metadata_write(m, &doc->json, err));
    TRY(metadata_read_back(&doc->version->arena, m, "the new metadata", &doc->version->metadata,
                           err));
    doc->remove_old = metadata_wants_removal(doc->version->metadata);
    doc->trims = doc->remove_old || (old != NULL && metadata_wants_removal(old));
    doc->unique = is_unique(set);
done:
    return code;
}

static tarn_code pack(catalog_document *doc, tarn_error *err) {
    codec_ctx ctx;
    codec_ctx_init(&ctx, doc->arena.env);
    tarn_code code = codec_compress(&ctx, CODEC_GZIP, CODEC_LEVEL_DEFAULT, buf_str(&doc->json),
                                    &doc->packed, err);
    codec_ctx_release(&ctx);
    return code;
}

tarn_code document_pack(catalog_document *doc, tarn_str location, bool gzip, tarn_error *err) {
    tarn_code code = gzip ? pack(doc, err) : TARN_OK;
    return code != TARN_OK ? code
                           : table_version_name(doc->version, location, document_bytes(doc), err);
}

tarn_str document_bytes(const catalog_document *doc) {
    return doc->packed.len > 0 ? buf_str(&doc->packed) : buf_str(&doc->json);
}

tarn_code document_send(const catalog_document *doc, tarn_store *store, store_mode mode, bool *sent,
                        tarn_error *err) {
    tarn_str bytes = document_bytes(doc);
    io_sink *sink = NULL;
    tarn_code code;
    *sent = false;
    TRY(store_create(store, doc->version->metadata_location, mode, &sink, err));
    TRY(io_write(sink, bytes.data, bytes.len, err));
    TRY(env_check_cancel(store->env, err));
    *sent = true;
    code = sink->finish(sink, err);
    sink = NULL;
done:
    if (sink != NULL) {
        sink->abort(sink);
    }
    return code;
}

void document_remove_old(const catalog_document *doc, tarn_store *store) {
    for (int32_t i = 0; doc->remove_old && i < doc->n_removed; i++) {
        store_discard(store, doc->removed[i]);
    }
}

bool document_is_in_history(const catalog_document *doc, const tarn_table_version *current) {
    tarn_str location = doc->version->metadata_location;
    const tarn_metadata *m = current->metadata;
    if (str_eq(current->metadata_location, location)) {
        return true;
    }
    for (int32_t i = 0; i < m->n_metadata_log; i++) {
        if (str_eq(m->metadata_log[i].metadata_file, location) &&
            m->metadata_log[i].timestamp_ms == doc->version->metadata->last_updated_ms) {
            return true;
        }
    }
    return false;
}
