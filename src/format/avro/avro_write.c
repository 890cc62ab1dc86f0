/* format/avro/avro_write.c - batches into a container file.
 *
 * Rows gather in one block until it holds block_bytes; then it is packed and goes out with its
 * count, size and the file's sync marker (Avro 1.12, "Object Container Files"). After a failure the
 * writer stays failed, so that finish can not publish a file with a hole. */
#include "base/limits.h"
#include "format/avro/avro_int.h"

#define BLOCK_BYTES ((size_t)128 << 10)

struct avro_writer {
    tarn_env *env;
    tarn_arena arena;
    io_sink *sink;
    const tarn_type *type;
    avro_encoder *encoder;
    codec_kind codec;
    int level;
    codec_ctx codec_ctx;
    size_t block_bytes;
    tarn_buf block;  /* rows encoded */
    tarn_buf packed; /* the same, packed; also the header */
    int64_t block_rows;
    int64_t rows; /* in blocks that went out */
    uint8_t sync[AVRO_SYNC_BYTES];
    tarn_code failed;
};

static tarn_code put_long(tarn_buf *out, int64_t v, tarn_error *err) {
    uint8_t bytes[10];
    return buf_append(out, bytes, num_put_varint(bytes, v), err);
}

static tarn_code put_meta(tarn_buf *out, tarn_str key, tarn_str value, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(put_long(out, (int64_t)key.len, err));
    TRY(buf_append_str(out, key, err));
    TRY(put_long(out, (int64_t)value.len, err));
    TRY(buf_append_str(out, value, err));
done:
    return code;
}

static tarn_code choose_codec(avro_writer *w, const avro_write_options *options, tarn_str *name,
                              tarn_error *err) {
    w->codec = options->codec == CODEC_GZIP ? CODEC_DEFLATE : options->codec;
    w->level = options->level;
    if (w->codec == CODEC_NONE) {
        *name = STR("null");
    } else if (w->codec == CODEC_DEFLATE) {
        *name = STR("deflate");
    } else if (w->codec == CODEC_SNAPPY) {
        *name = STR("snappy");
    } else if (w->codec == CODEC_ZSTD) {
        *name = STR("zstandard");
    } else if (w->codec == CODEC_BZIP2) {
        *name = STR("bzip2");
    } else {
        return err_set(err, TARN_INVALID, "%s can not be packed with %s: avro has no such codec",
                       w->sink->name, codec_name(w->codec));
    }
    return TARN_OK;
}

static tarn_code write_header(avro_writer *w, const avro_write_options *options, tarn_str schema,
                              tarn_error *err) {
    tarn_str codec = STR_NULL;
    tarn_buf *out = &w->packed;
    tarn_code code = TARN_OK;
    TRY(choose_codec(w, options, &codec, err));
    TRY(buf_append(out, AVRO_MAGIC, 4, err));
    TRY(put_long(out, (int64_t)options->n_meta + 2, err));
    TRY(put_meta(out, STR("avro.schema"), schema, err));
    TRY(put_meta(out, STR("avro.codec"), codec, err));
    for (size_t i = 0; i < options->n_meta; i++) {
        if (str_starts_with(options->meta[i].key, STR("avro."))) {
            code = err_set(err, TARN_INVALID, "key %.*s of %s belongs to avro itself",
                           STR_ARG(options->meta[i].key), w->sink->name);
            goto done;
        }
        TRY(put_meta(out, options->meta[i].key, options->meta[i].value, err));
    }
    TRY(put_long(out, 0, err));
    env_random(w->env, w->sync, sizeof w->sync);
    TRY(buf_append(out, w->sync, sizeof w->sync, err));
    TRY(io_write(w->sink, out->data, out->len, err));
done:
    return code;
}

static tarn_code open_writer(avro_writer *w, const tarn_type *type,
                             const avro_write_options *options, tarn_error *err) {
    tarn_buf generated;
    tarn_str json = options->schema_json;
    avro_schema *schema = NULL;
    const tarn_type *schema_type = NULL;
    tarn_code code = TARN_OK;
    buf_init(&generated, w->env, LIMIT_METADATA_JSON_BYTES);
    w->type = type_copy(&w->arena, type);
    if (w->type == NULL) {
        code = err_nomem(err);
        goto done;
    }
    if (json.len == 0) {
        TRY(avro_schema_from_type(w->env, type, options->record_name, &generated, err));
        json = buf_str(&generated);
    }
    TRY(avro_schema_parse(&w->arena, json, w->sink->name, &schema, err));
    /* also what refuses recursion, on which the encoder relies */
    TRY(avro_type_from_schema(&w->arena, schema, w->sink->name, &schema_type, err));
    TRY(avro_encoder_new(&w->arena, schema, w->type, &w->encoder, err));
    TRY(write_header(w, options, json, err));
done:
    buf_release(&generated);
    return code;
}

static void free_writer(avro_writer *w) {
    codec_ctx_release(&w->codec_ctx);
    buf_release(&w->block);
    buf_release(&w->packed);
    arena_release(&w->arena);
    env_free(w->env, w);
}

tarn_code avro_writer_open(tarn_env *env, io_sink *sink, const tarn_type *type,
                           const avro_write_options *options, avro_writer **out, tarn_error *err) {
    static const avro_write_options defaults = AVRO_WRITE_OPTIONS_INIT;
    options = options != NULL ? options : &defaults;
    avro_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    w->sink = sink;
    w->block_bytes = options->block_bytes > 0 ? options->block_bytes : BLOCK_BYTES;
    arena_init(&w->arena, env);
    codec_ctx_init(&w->codec_ctx, env);
    buf_init(&w->block, env, LIMIT_DECODE_BLOCK_BYTES);
    buf_init(&w->packed, env, 0);
    tarn_code code = open_writer(w, type, options, err);
    if (code != TARN_OK) {
        free_writer(w);
        return code;
    }
    *out = w;
    return TARN_OK;
}

static tarn_code flush_block(avro_writer *w, tarn_error *err) {
    tarn_buf *out = &w->packed;
    tarn_str body = buf_str(&w->block);
    uint8_t head[20];
    tarn_code code = TARN_OK;
    if (w->block_rows == 0) {
        return TARN_OK;
    }
    if (w->codec != CODEC_NONE) {
        buf_reset(out);
        TRY(codec_compress(&w->codec_ctx, w->codec, w->level, body, out, err));
        if (w->codec == CODEC_SNAPPY) {
            uint32_t crc = __builtin_bswap32(num_crc32(0, body.data, body.len));
            TRY(buf_append(out, &crc, sizeof crc, err));
        }
        body = buf_str(out);
    }
    size_t n = num_put_varint(head, w->block_rows);
    n += num_put_varint(head + n, (int64_t)body.len);
    TRY(io_write(w->sink, head, n, err));
    TRY(io_write(w->sink, body.data, body.len, err));
    TRY(io_write(w->sink, w->sync, sizeof w->sync, err));
    w->rows += w->block_rows;
    w->block_rows = 0;
    buf_reset(&w->block);
done:
    return code;
}

static tarn_code write_rows(avro_writer *w, const tarn_batch *batch, tarn_error *err) {
    int64_t n = batch_rows(batch);
    avro_encoder_bind(w->encoder, batch);
    for (int64_t i = 0; i < n; i++) {
        tarn_code code = avro_encode(w->encoder, i, &w->block, err);
        if (code != TARN_OK) {
            return err_add(err, code, "%s, row %lld", w->sink->name,
                           (long long)(w->rows + w->block_rows));
        }
        w->block_rows++;
        if (w->block.len >= w->block_bytes || w->block_rows >= AVRO_EMPTY_ITEMS) {
            code = flush_block(w, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    return TARN_OK;
}

tarn_code avro_writer_write(avro_writer *writer, const tarn_batch *batch, tarn_error *err) {
    if (writer->failed != TARN_OK) {
        return err_set(err, writer->failed, "writing of %s had failed before", writer->sink->name);
    }
    if (batch_rows(batch) == 0) {
        return TARN_OK;
    }
    if (batch->type != writer->type && !type_same_shape(batch->type, writer->type)) {
        return err_set(err, TARN_INVALID, "rows for %s were not of its type", writer->sink->name);
    }
    writer->failed = write_rows(writer, batch, err);
    return writer->failed;
}

int64_t avro_writer_bytes(const avro_writer *writer) {
    return writer->sink->written_bytes + (int64_t)writer->block.len;
}

int64_t avro_writer_rows(const avro_writer *writer) {
    return writer->rows + writer->block_rows;
}

tarn_code avro_writer_finish(avro_writer *writer, int64_t *bytes, int64_t *rows, tarn_error *err) {
    tarn_code code = writer->failed;
    if (code != TARN_OK) {
        err_set(err, code, "%s was not finished, writing had failed", writer->sink->name);
    } else {
        code = flush_block(writer, err);
    }
    int64_t n_bytes = writer->sink->written_bytes;
    int64_t n_rows = writer->rows;
    if (code == TARN_OK) {
        code = writer->sink->finish(writer->sink, err);
    } else {
        writer->sink->abort(writer->sink);
    }
    free_writer(writer);
    if (code == TARN_OK && bytes != NULL) {
        *bytes = n_bytes;
    }
    if (code == TARN_OK && rows != NULL) {
        *rows = n_rows;
    }
    return code;
}

void avro_writer_abort(avro_writer *writer) {
    if (writer != NULL) {
        writer->sink->abort(writer->sink);
        free_writer(writer);
    }
}
