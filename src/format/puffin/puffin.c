/* format/puffin/puffin.c - Puffin files: footers read and checked, files written blob by blob. Of
 * use to readers of statistics and vectors, and to write/files, which puts vectors here.
 *
 * Layout (Puffin spec, "File structure"): magic, blobs, then the footer: magic, JSON, its length
 * (4 bytes, signed, little-endian), 4 bytes of flags, magic.
 *
 * Invariants: a footer that was given out lies whole in its file, and so does each of its blobs, in
 * front of the footer; a writer that failed once writes nothing more, and its close removes the
 * file. LZ4F's own memory is the only one that does not come from the env. */
#include "format/puffin/puffin.h"

#include <lz4frame.h>

#include "base/limits.h"
#include "base/num.h"

#define MAGIC       "PFA1"
#define MAGIC_BYTES 4
#define TAIL_BYTES  12 /* length, flags, magic */
#define LEAST_BYTES (MAGIC_BYTES + MAGIC_BYTES + TAIL_BYTES)
#define CREATED_BY  "tarn version 0.1.0"
#define FLAG_LZ4    1u /* of the first byte: the JSON is one LZ4 frame */
#define UNPACK_STEP (64u << 10)

static tarn_code corrupt(const io_source *source, int64_t offset, const char *what,
                         tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "%s: at offset %lld of the Puffin file, %s", source->name,
                   (long long)offset, what);
}

/* The bytes that a source holds of its JSON. */
typedef struct payload {
    int64_t offset;
    tarn_str bytes;
    bool packed;
} payload;

static tarn_code check_magic(io_source *source, int64_t offset, tarn_error *err) {
    char magic[MAGIC_BYTES];
    tarn_code code = io_read_at(source, offset, magic, sizeof magic, err);
    if (code == TARN_OK && memcmp(magic, MAGIC, MAGIC_BYTES) != 0) {
        code = corrupt(source, offset, "the magic PFA1 was missing", err);
    }
    return code;
}

static tarn_code read_payload(tarn_arena *arena, io_source *source, payload *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint8_t tail[TAIL_BYTES];
    int64_t size = source->size_bytes;
    if (size < LEAST_BYTES) {
        return err_set(err, TARN_CORRUPT,
                       "%s: %lld bytes are too few for a Puffin file with its magic PFA1",
                       source->name, (long long)size);
    }
    TRY(check_magic(source, 0, err));
    TRY(check_magic(source, size - MAGIC_BYTES, err));
    TRY(io_read_at(source, size - TAIL_BYTES, tail, sizeof tail, err));
    int32_t len = num_load_i32(tail);
    uint32_t flags = num_load_u32(tail + 4);
    if (len < 0 || len > size - LEAST_BYTES) {
        code = corrupt(source, size - TAIL_BYTES, "the length of the footer did not fit", err);
        goto done;
    }
    if ((flags & ~FLAG_LZ4) != 0) {
        code = corrupt(source, size - TAIL_BYTES + 4, "unknown flags were set", err);
        goto done;
    }
    if ((uint32_t)len > LIMIT_PUFFIN_FOOTER_BYTES) {
        code = err_set(err, TARN_LIMIT, "%s: the footer of the Puffin file took %d bytes, above %u",
                       source->name, len, LIMIT_PUFFIN_FOOTER_BYTES);
        goto done;
    }
    out->offset = size - TAIL_BYTES - len;
    out->packed = (flags & FLAG_LZ4) != 0;
    TRY(check_magic(source, out->offset - MAGIC_BYTES, err));
    char *bytes = arena_alloc(arena, (size_t)len);
    if (bytes == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(io_read_at(source, out->offset, bytes, (size_t)len, err));
    out->bytes = str_make(bytes, (size_t)len);
done:
    return code;
}

/* One LZ4 frame that fills src (Puffin spec, "Compression codecs"), appended to out. */
static tarn_code unpack_frame(LZ4F_dctx *ctx, tarn_str src, tarn_buf *out, bool *whole,
                              tarn_error *err) {
    *whole = false;
    while (src.len > 0) {
        tarn_code code = buf_reserve(out, UNPACK_STEP, err);
        if (code != TARN_OK) {
            return code;
        }
        size_t got = out->cap - out->len;
        size_t taken = src.len;
        size_t hint = LZ4F_decompress(ctx, out->data + out->len, &got, src.data, &taken, NULL);
        if (LZ4F_isError(hint) || (got == 0 && taken == 0)) {
            return TARN_OK;
        }
        out->len += got;
        src = str_from(src, taken);
        if (hint == 0) {
            *whole = src.len == 0;
            return TARN_OK;
        }
    }
    return TARN_OK;
}

static tarn_code unpack_payload(const io_source *source, const payload *p, tarn_buf *out,
                                tarn_error *err) {
    LZ4F_dctx *ctx = NULL;
    bool whole = false;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&ctx, LZ4F_VERSION))) {
        return err_nomem(err);
    }
    tarn_code code = unpack_frame(ctx, p->bytes, out, &whole, err);
    if (code == TARN_OK && !whole) {
        code = corrupt(source, p->offset, "the footer was no whole LZ4 frame", err);
    }
    (void)LZ4F_freeDecompressionContext(ctx);
    return code;
}

/* What the parts of a footer are read with. */
typedef struct footer_reader {
    tarn_arena *arena;
    const io_source *source;
    int64_t end; /* of the blobs */
    tarn_error *err;
} footer_reader;

static tarn_code refuse(const footer_reader *r, int32_t blob, const char *what) {
    return err_set(r->err, TARN_CORRUPT, "%s: blob %d of the Puffin file's footer %s",
                   r->source->name, blob, what);
}

static tarn_code read_properties(const footer_reader *r, const json_value *object,
                                 const puffin_property **out, int32_t *n_out) {
    *out = NULL;
    *n_out = 0;
    if (object == NULL) {
        return TARN_OK;
    }
    if (!json_is(object, JSON_OBJECT)) {
        return err_set(r->err, TARN_CORRUPT, "%s: properties of the Puffin file were no object",
                       r->source->name);
    }
    puffin_property *properties = ARENA_ARRAY(r->arena, puffin_property, object->count + 1);
    if (properties == NULL) {
        return err_nomem(r->err);
    }
    int32_t n = 0;
    for (const json_value *member = object->first; member != NULL; member = member->next) {
        properties[n].key = member->name;
        if (!json_str(member, &properties[n++].value)) {
            return err_set(r->err, TARN_CORRUPT,
                           "%s: property %.*s of the Puffin file was no string", r->source->name,
                           STR_ARG(member->name));
        }
    }
    *out = properties;
    *n_out = n;
    return TARN_OK;
}

static tarn_code read_fields(const footer_reader *r, const json_value *array, int32_t number,
                             puffin_blob *blob) {
    if (!json_is(array, JSON_ARRAY)) {
        return refuse(r, number, "had no list of fields");
    }
    int32_t *fields = ARENA_ARRAY(r->arena, int32_t, array->count + 1);
    if (fields == NULL) {
        return err_nomem(r->err);
    }
    for (const json_value *item = array->first; item != NULL; item = item->next) {
        if (!json_i32(item, &fields[blob->n_fields++])) {
            return refuse(r, number, "had a field that was no id");
        }
    }
    blob->fields = fields;
    return TARN_OK;
}

/* Puffin spec, "BlobMetadata". */
static tarn_code read_blob(const footer_reader *r, const json_value *object, int32_t number,
                           puffin_blob *blob) {
    tarn_code code;
    const json_value *codec = json_get(object, "compression-codec");
    if (!json_str(json_get(object, "type"), &blob->type)) {
        return refuse(r, number, "had no type");
    }
    if (!json_i64(json_get(object, "snapshot-id"), &blob->snapshot_id) ||
        !json_i64(json_get(object, "sequence-number"), &blob->sequence_number)) {
        return refuse(r, number, "had no snapshot-id or no sequence-number");
    }
    if (!json_i64(json_get(object, "offset"), &blob->offset) ||
        !json_i64(json_get(object, "length"), &blob->length) || blob->offset < MAGIC_BYTES ||
        blob->length < 0 || blob->offset > r->end || blob->length > r->end - blob->offset) {
        return refuse(r, number, "had an offset and length outside of the file's blobs");
    }
    blob->codec = STR("");
    if (codec != NULL && !json_is(codec, JSON_NULL) && !json_str(codec, &blob->codec)) {
        return refuse(r, number, "had a compression-codec that was no text");
    }
    TRY(read_fields(r, json_get(object, "fields"), number, blob));
    TRY(read_properties(r, json_get(object, "properties"), &blob->properties, &blob->n_properties));
done:
    return code;
}

static tarn_code read_document(const footer_reader *r, const json_value *document,
                               puffin_footer *out) {
    const json_value *list = json_get(document, "blobs");
    if (!json_is(list, JSON_ARRAY)) {
        return err_set(r->err, TARN_CORRUPT, "%s: the Puffin file's footer had no list of blobs",
                       r->source->name);
    }
    puffin_blob *blobs = ARENA_ARRAY(r->arena, puffin_blob, list->count + 1);
    if (blobs == NULL) {
        return err_nomem(r->err);
    }
    int32_t n = 0;
    for (const json_value *item = list->first; item != NULL; item = item->next, n++) {
        tarn_code code = read_blob(r, item, n, &blobs[n]);
        if (code != TARN_OK) {
            return code;
        }
    }
    out->blobs = blobs;
    out->n_blobs = n;
    return read_properties(r, json_get(document, "properties"), &out->properties,
                           &out->n_properties);
}

tarn_code puffin_read_footer(tarn_arena *arena, io_source *source, puffin_footer *out,
                             tarn_error *err) {
    tarn_code code;
    payload p = {0};
    puffin_footer footer = {0};
    json_value *document = NULL;
    tarn_buf unpacked;
    buf_init(&unpacked, arena->env, LIMIT_PUFFIN_FOOTER_BYTES);
    TRY(read_payload(arena, source, &p, err));
    if (p.packed) {
        TRY(unpack_payload(source, &p, &unpacked, err));
    }
    TRY(json_parse(arena, p.packed ? buf_str(&unpacked) : p.bytes, source->name, &document, err));
    footer_reader r = {arena, source, p.offset - MAGIC_BYTES, err};
    TRY(read_document(&r, document, &footer));
    footer.document = document;
    *out = footer;
done:
    buf_release(&unpacked);
    return code;
}

struct puffin_writer {
    tarn_env *env;
    io_sink *sink;
    tarn_buf footer;
    json_writer json;
    tarn_code broken; /* OK: nothing failed yet */
};

tarn_code puffin_writer_new(tarn_env *env, io_sink *sink, puffin_writer **out, tarn_error *err) {
    puffin_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    buf_init(&w->footer, env, LIMIT_PUFFIN_FOOTER_BYTES);
    json_begin(&w->json, &w->footer, false, err);
    json_put_object(&w->json);
    json_put_name(&w->json, STR("blobs"));
    json_put_array(&w->json);
    tarn_code code = w->json.code;
    if (code == TARN_OK) {
        code = io_write(sink, MAGIC, MAGIC_BYTES, err);
    }
    if (code == TARN_OK) {
        w->sink = sink;
        *out = w;
    } else {
        puffin_writer_abort(w);
    }
    return code;
}

static void put_properties(json_writer *json, const puffin_property *properties, int32_t n) {
    json_put_name(json, STR("properties"));
    json_put_object(json);
    for (int32_t i = 0; i < n; i++) {
        json_put_name(json, properties[i].key);
        json_put_string(json, properties[i].value);
    }
    json_end_object(json);
}

static void put_blob(json_writer *json, const puffin_blob *blob, int64_t offset, int64_t length) {
    json_put_object(json);
    json_member_str(json, "type", blob->type);
    json_put_name(json, STR("fields"));
    json_put_array(json);
    for (int32_t i = 0; i < blob->n_fields; i++) {
        json_put_i64(json, blob->fields[i]);
    }
    json_end_array(json);
    json_member_i64(json, "snapshot-id", blob->snapshot_id);
    json_member_i64(json, "sequence-number", blob->sequence_number);
    json_member_i64(json, "offset", offset);
    json_member_i64(json, "length", length);
    if (blob->n_properties > 0) {
        put_properties(json, blob->properties, blob->n_properties);
    }
    json_end_object(json);
}

static tarn_code refuse_broken(const puffin_writer *w, tarn_error *err) {
    return err_set(err, w->broken, "%s: an earlier write of this Puffin file failed",
                   w->sink->name);
}

tarn_code puffin_writer_add(puffin_writer *w, const puffin_blob *blob, tarn_str bytes,
                            int64_t *out_offset, tarn_error *err) {
    if (w->broken != TARN_OK) {
        return refuse_broken(w, err);
    }
    int64_t offset = w->sink->written_bytes;
    tarn_code code = io_write(w->sink, bytes.data, bytes.len, err);
    if (code == TARN_OK) {
        w->json.err = err;
        put_blob(&w->json, blob, offset, (int64_t)bytes.len);
        code = w->json.code;
    }
    if (code == TARN_OK) {
        *out_offset = offset;
    }
    w->broken = code;
    return code;
}

tarn_code puffin_writer_gap(puffin_writer *w, tarn_error *err) {
    if (w->broken != TARN_OK) {
        return refuse_broken(w, err);
    }
    w->broken = io_write(w->sink, "", 1, err);
    return w->broken;
}

static tarn_code write_footer(puffin_writer *w, tarn_error *err) {
    static const puffin_property created = {{"created-by", 10},
                                            {CREATED_BY, sizeof CREATED_BY - 1}};
    tarn_code code;
    uint8_t tail[TAIL_BYTES] = {0}; /* no flags */
    w->json.err = err;
    json_end_array(&w->json);
    put_properties(&w->json, &created, 1);
    json_end_object(&w->json);
    TRY(json_end(&w->json));
    uint32_t len = (uint32_t)w->footer.len;
    memcpy(tail, &len, sizeof len);
    memcpy(tail + TAIL_BYTES - MAGIC_BYTES, MAGIC, MAGIC_BYTES);
    TRY(io_write(w->sink, MAGIC, MAGIC_BYTES, err));
    TRY(io_write(w->sink, w->footer.data, w->footer.len, err));
    TRY(io_write(w->sink, tail, sizeof tail, err));
done:
    return code;
}

tarn_code puffin_writer_close(puffin_writer *w, int64_t *size_bytes, tarn_error *err) {
    tarn_code code = w->broken != TARN_OK ? refuse_broken(w, err) : write_footer(w, err);
    if (code == TARN_OK) {
        int64_t size = w->sink->written_bytes;
        code = w->sink->finish(w->sink, err);
        w->sink = NULL;
        if (code == TARN_OK) {
            *size_bytes = size;
        }
    }
    puffin_writer_abort(w);
    return code;
}

void puffin_writer_abort(puffin_writer *w) {
    if (w == NULL) {
        return;
    }
    if (w->sink != NULL) {
        w->sink->abort(w->sink);
    }
    buf_release(&w->footer);
    env_free(w->env, w);
}
