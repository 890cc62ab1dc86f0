/* maintain/check_header.c - the Avro headers of manifests and manifest lists (spec, "Manifests":
 * the key table; "Appendix A: Avro"). Each deviation is named with what was expected (B23): readers
 * differ in which they bear, and the table's own schema and spec stand in for broken ones. */
#include "format/avro/avro.h"
#include "maintain/check_int.h"

typedef struct header {
    checker *c;
    tarn_error *err;
    tarn_arena *arena;
    const tarn_manifest *manifest; /* NULL: a manifest list */
    tarn_str place;
    avro_file *file;
} header;

#define HEADER(h, ...) check_found((h)->c, CHECK_MANIFEST_HEADER, (h)->place, (h)->err, __VA_ARGS__)

static tarn_code open_header(header *h, tarn_str path, tarn_error *why) {
    io_source *source = NULL;
    tarn_code code = store_open(h->c->store, path, -1, &source, why);
    if (code == TARN_OK) {
        code = avro_open(h->c->env, source, &h->file, why);
        if (code != TARN_OK) {
            source->close(source);
        }
    }
    return code;
}

/* Parses a header entry as JSON; NULL in *out after a finding, or when it is not there. */
static tarn_code header_json(header *h, const char *key, bool *there, json_value **out) {
    tarn_str text;
    tarn_error why = TARN_ERROR_INIT;
    *out = NULL;
    *there = avro_file_meta(h->file, key, &text);
    if (!*there) {
        return TARN_OK;
    }
    tarn_code code = json_parse(h->arena, text, key, out, &why);
    if (check_is_finding(code)) {
        *out = NULL;
        return HEADER(h, "header entry \"%s\" was no JSON: %s", key, why.message);
    }
    return code == TARN_OK ? TARN_OK : err_set(h->err, code, "%s", why.message);
}

/* ---- the Avro schema itself ---- */

static tarn_code check_record_name(header *h, const char *want, check_rule rule) {
    json_value *schema = NULL;
    tarn_str name = STR("");
    tarn_error why = TARN_ERROR_INIT;
    tarn_code code =
        json_parse(h->arena, avro_file_schema_json(h->file), "avro.schema", &schema, &why);
    if (code != TARN_OK) {
        return err_set(h->err, code, "%s", why.message);
    }
    if (json_str(json_get(schema, "name"), &name) && str_is(name, want)) {
        return TARN_OK;
    }
    return check_found(h->c, rule, h->place, h->err,
                       "the Avro record was named \"%.*s\" where \"%s\" belongs", STR_ARG(name),
                       want);
}

static tarn_code check_codec(header *h, check_rule rule) {
    tarn_str codec;
    return avro_file_meta(h->file, "avro.codec", &codec)
               ? TARN_OK
               : check_found(h->c, rule, h->place, h->err,
                             "header entry \"avro.codec\" was missing; \"null\" was expected for "
                             "blocks that are not packed");
}

static tarn_code check_ids(header *h) {
    const tarn_type *root = avro_file_type(h->file);
    for (int32_t i = 0; i < root->n_fields; i++) {
        if (root->fields[i].id == TARN_NO_ID) {
            return check_found(h->c, CHECK_FIELD_IDS, h->place, h->err,
                               "field \"%.*s\" of the Avro schema had no field-id",
                               STR_ARG(root->fields[i].name));
        }
    }
    return TARN_OK;
}

/* ---- header entries ---- */

static bool is_table_type(const json_value *type) {
    tarn_str name;
    if (json_str(type, &name)) {
        return true;
    }
    return json_str(json_get(type, "type"), &name) &&
           (str_is(name, "struct") || str_is(name, "list") || str_is(name, "map"));
}

/* Not the table's: an id that the table never gave, or a type that Iceberg has not. Old schemas may
 * be gone from the document, so names and types of known ids are not compared. */
static bool is_foreign(const header *h, const json_value *field) {
    int32_t id = -1;
    return !json_i32(json_get(field, "id"), &id) || !is_table_type(json_get(field, "type")) ||
           (check_column(h->c, id, NULL) == NULL && (id < 1 || id > h->c->m->last_column_id));
}

static tarn_code check_schema(header *h) {
    bool there = false;
    json_value *schema = NULL;
    tarn_code code = header_json(h, "schema", &there, &schema);
    if (code != TARN_OK || schema == NULL) {
        return code != TARN_OK || there
                   ? code
                   : HEADER(h,
                            "header entry \"schema\" was missing; the table's schema as JSON was "
                            "expected");
    }
    const json_value *fields = json_get(schema, "fields");
    if (!json_is(fields, JSON_ARRAY)) {
        return HEADER(h, "header entry \"schema\" had no fields; the table's schema as JSON was "
                         "expected");
    }
    for (const json_value *f = fields->first; f != NULL; f = f->next) {
        tarn_str name = STR("");
        if (is_foreign(h, f)) {
            (void)json_str(json_get(f, "name"), &name);
            return HEADER(h,
                          "header entry \"schema\" held field \"%.*s\", which is none of the "
                          "table's; the table's schema was expected, not the manifest's own",
                          STR_ARG(name));
        }
    }
    return TARN_OK;
}

static bool same_field(const json_value *f, const tarn_partition_field *want, tarn_arena *arena) {
    int32_t source = -1, id = want->field_id;
    tarn_str text = STR("");
    tarn_transform transform;
    tarn_error why = TARN_ERROR_INIT;
    (void)json_i32(json_get(f, "field-id"), &id); /* early writers gave none */
    return json_i32(json_get(f, "source-id"), &source) &&
           json_str(json_get(f, "transform"), &text) &&
           transform_parse(arena, text, &transform, &why) == TARN_OK && id == want->field_id &&
           (source == want->source_id || want->transform.kind == TRANSFORM_VOID) &&
           transform_eq(&transform, &want->transform);
}

static tarn_code check_spec_fields(header *h, const json_value *fields, const tarn_spec *spec) {
    const json_value *f = fields->first;
    for (int32_t i = 0; spec != NULL && i < spec->n_fields; i++) {
        if (f == NULL || !same_field(f, &spec->fields[i], h->arena)) {
            return HEADER(h,
                          "field %d of header entry \"partition-spec\" was not that of the "
                          "table's spec %d (\"%.*s\")",
                          i, spec->spec_id, STR_ARG(spec->fields[i].name));
        }
        f = f->next;
    }
    return f == NULL || spec == NULL
               ? TARN_OK
               : HEADER(h,
                        "header entry \"partition-spec\" had more fields than the table's spec "
                        "%d",
                        spec->spec_id);
}

static tarn_code check_spec(header *h, bool is_v1) {
    bool there = false;
    json_value *json = NULL;
    tarn_str text;
    int32_t id = h->manifest->spec_id;
    tarn_code code = header_json(h, "partition-spec", &there, &json);
    if (code == TARN_OK && !there) {
        code = HEADER(h, "header entry \"partition-spec\" was missing; the array of the spec's "
                         "fields was expected");
    } else if (code == TARN_OK && json != NULL && json->kind != JSON_ARRAY) {
        code = HEADER(h,
                      "header entry \"partition-spec\" was %s; only the array of its fields was "
                      "expected",
                      json->kind == JSON_OBJECT ? "the whole spec object" : "no list");
        json = NULL;
    }
    const bool has_id = avro_file_meta(h->file, "partition-spec-id", &text);
    if (code == TARN_OK && !has_id && !is_v1) {
        code = HEADER(h, "header entry \"partition-spec-id\" was missing; %d was expected", id);
    } else if (code == TARN_OK && has_id &&
               (!str_to_i32(text, &id) ||
                (h->manifest->spec_id >= 0 && id != h->manifest->spec_id))) {
        code = check_found(h->c, CHECK_SPEC, h->place, h->err,
                           "header entry \"partition-spec-id\" was \"%.*s\" and the manifest list "
                           "says %d",
                           STR_ARG(text), h->manifest->spec_id);
    }
    return code == TARN_OK && json != NULL
               ? check_spec_fields(h, json, metadata_spec_by_id(h->c->m, id))
               : code;
}

static tarn_code check_content(header *h, bool is_v1) {
    tarn_str text;
    const char *want = h->manifest->is_deletes ? "deletes" : "data";
    if (!avro_file_meta(h->file, "content", &text)) {
        return is_v1 ? TARN_OK
                     : HEADER(h, "header entry \"content\" was missing; \"%s\" was expected", want);
    }
    return str_is(text, want)
               ? TARN_OK
               : check_found(h->c, CHECK_MANIFEST_CONTENT, h->place, h->err,
                             "header entry \"content\" was \"%.*s\" and the manifest list says "
                             "\"%s\"",
                             STR_ARG(text), want);
}

static tarn_code check_version(header *h, bool is_v1) {
    tarn_str text;
    int32_t version = 0;
    if (!avro_file_meta(h->file, "format-version", &text)) {
        return is_v1 ? TARN_OK
                     : HEADER(h, "header entry \"format-version\" was missing; \"%d\" was expected",
                              h->c->m->format_version);
    }
    return str_to_i32(text, &version) && version >= 1 && version <= h->c->m->format_version
               ? TARN_OK
               : HEADER(h, "header entry \"format-version\" was \"%.*s\" in a table of version %d",
                        STR_ARG(text), h->c->m->format_version);
}

static tarn_code check_entries_of(header *h) {
    tarn_str text;
    tarn_code code = TARN_OK;
    /* Manifests that a table kept from its time as version 1 have sequence number 0. */
    const bool is_v1 = h->c->m->format_version == 1 || h->manifest->sequence_number == 0;
    TRY(check_record_name(h, "manifest_entry", CHECK_MANIFEST_HEADER));
    TRY(check_codec(h, CHECK_MANIFEST_HEADER));
    TRY(check_ids(h));
    TRY(check_schema(h));
    if (!is_v1 && !avro_file_meta(h->file, "schema-id", &text)) {
        /* A rule of its own, for most writers leave it out. */
        TRY(check_found(h->c, CHECK_MANIFEST_SCHEMA_ID, h->place, h->err,
                        "header entry \"schema-id\" was missing; the id of the schema that the "
                        "manifest was written with was expected"));
    }
    TRY(check_spec(h, is_v1));
    TRY(check_version(h, is_v1));
    TRY(check_content(h, is_v1));
done:
    return code;
}

static tarn_code check_header(header *h) {
    tarn_error why = TARN_ERROR_INIT;
    tarn_code code = open_header(h, h->place, &why);
    if (code != TARN_OK) { /* told by whoever reads it whole */
        return check_is_finding(code) ? TARN_OK : err_set(h->err, code, "%s", why.message);
    }
    if (h->manifest != NULL) {
        code = check_entries_of(h);
    } else {
        TRY(check_record_name(h, "manifest_file", CHECK_LIST_HEADER));
        TRY(check_codec(h, CHECK_LIST_HEADER));
        TRY(check_ids(h));
    }
done:
    avro_close(h->file);
    return code;
}

tarn_code check_manifest_header(checker *c, const tarn_manifest *manifest, tarn_error *err) {
    tarn_arena arena;
    header h = {c, err, &arena, manifest, manifest->path, NULL};
    arena_init(&arena, c->env);
    tarn_code code = check_header(&h);
    arena_release(&arena);
    return code;
}

tarn_code check_list_header(checker *c, tarn_str path, tarn_error *err) {
    tarn_arena arena;
    header h = {c, err, &arena, NULL, path, NULL};
    arena_init(&arena, c->env);
    tarn_code code = check_header(&h);
    arena_release(&arena);
    return code;
}
