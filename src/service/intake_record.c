/* service/intake_record.c - see intake_record.h. Numbers are little-endian; texts follow their
 * lengths. */
#include "service/intake_record.h"

#include "base/num.h"

#define ROWS_FIXED 52 /* bytes in front of the texts */
#define KEY_BYTES  56

static tarn_code put_i64(tarn_buf *out, int64_t v, tarn_error *err) {
    return buf_append(out, &v, sizeof v, err);
}

static tarn_code put_u32(tarn_buf *out, size_t v, tarn_error *err) {
    uint32_t word = (uint32_t)v;
    return buf_append(out, &word, sizeof word, err);
}

tarn_code intake_rows_write(const intake_rows *rows, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(put_u32(out, rows->keyed ? 1 : 0, err));
    TRY(buf_append(out, rows->key, INTAKE_DIGEST, err));
    TRY(buf_append(out, rows->digest, INTAKE_DIGEST, err));
    TRY(put_i64(out, rows->rows, err));
    TRY(put_u32(out, rows->ident.len, err));
    TRY(put_u32(out, rows->identity.len, err));
    TRY(buf_append_str(out, rows->ident, err));
    TRY(buf_append_str(out, rows->identity, err));
done:
    return code;
}

static tarn_code refuse(const store_log_record *record, tarn_error *err) {
    return err_set(err, TARN_CORRUPT,
                   "the record at offset %lld of segment %lld of the log is none that is known",
                   (long long)record->place.offset, (long long)record->place.segment);
}

tarn_code intake_rows_read(const store_log_record *record, intake_rows *out, tarn_error *err) {
    const char *p = record->payload.data;
    if (record->payload.len < ROWS_FIXED) {
        return refuse(record, err);
    }
    memset(out, 0, sizeof *out);
    out->keyed = num_load_u32(p) != 0;
    memcpy(out->key, p + 4, INTAKE_DIGEST);
    memcpy(out->digest, p + 20, INTAKE_DIGEST);
    out->rows = num_load_i64(p + 36);
    size_t ident = num_load_u32(p + 44);
    size_t identity = num_load_u32(p + 48);
    if (ident + identity > record->payload.len - ROWS_FIXED) {
        return refuse(record, err);
    }
    out->ident = str_make(p + ROWS_FIXED, ident);
    out->identity = str_make(p + ROWS_FIXED + ident, identity);
    out->body = str_from(record->payload, ROWS_FIXED + ident + identity);
    return TARN_OK;
}

tarn_code intake_note_write(tarn_str identity, int64_t committed, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(put_i64(out, committed, err));
    TRY(put_u32(out, identity.len, err));
    TRY(buf_append_str(out, identity, err));
done:
    return code;
}

tarn_code intake_note_read(const store_log_record *record, size_t *at, tarn_str *identity,
                           int64_t *committed, bool *more, tarn_error *err) {
    tarn_str rest = str_from(record->payload, *at);
    *more = rest.len > 0;
    if (!*more) {
        return TARN_OK;
    }
    size_t len = rest.len >= 12 ? num_load_u32(rest.data + 8) : 0;
    if (rest.len < 12 || len > rest.len - 12) {
        return refuse(record, err);
    }
    *committed = num_load_i64(rest.data);
    *identity = str_sub(rest, 12, len);
    *at += 12 + len;
    return TARN_OK;
}

tarn_code intake_mark_write(const intake_mark *mark, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(put_i64(out, mark->keys_end, err));
    TRY(put_i64(out, mark->time_ms, err));
done:
    return code;
}

tarn_code intake_mark_read(const store_log_record *record, intake_mark *out, tarn_error *err) {
    if (record->payload.len < 16) {
        return refuse(record, err);
    }
    out->keys_end = num_load_i64(record->payload.data);
    out->time_ms = num_load_i64(record->payload.data + 8);
    return TARN_OK;
}

tarn_code intake_key_write(const intake_key *key, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(buf_append(out, key->key, INTAKE_DIGEST, err));
    TRY(buf_append(out, key->body, INTAKE_DIGEST, err));
    TRY(put_i64(out, key->position, err));
    TRY(put_i64(out, key->time_ms, err));
    TRY(put_i64(out, key->rows, err));
done:
    return code;
}

bool intake_key_read(tarn_str payload, size_t i, intake_key *out) {
    tarn_str bytes = str_sub(payload, i * KEY_BYTES, KEY_BYTES);
    if (bytes.len < KEY_BYTES) {
        return false;
    }
    memcpy(out->key, bytes.data, INTAKE_DIGEST);
    memcpy(out->body, bytes.data + 16, INTAKE_DIGEST);
    out->position = num_load_i64(bytes.data + 32);
    out->time_ms = num_load_i64(bytes.data + 40);
    out->rows = num_load_i64(bytes.data + 48);
    return true;
}
