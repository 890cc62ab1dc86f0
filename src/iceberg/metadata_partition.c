/* iceberg/metadata_partition.c - what a partition spec makes of a schema: the type of its tuples,
 * and the path of one tuple. */
#include "iceberg/metadata.h"

#define FOLDER_NAME_BYTES 240

static const tarn_type *find_source(const tarn_metadata *m, int32_t id) {
    const tarn_schema *current = metadata_schema(m);
    const tarn_field *field = current != NULL ? type_find_id(current->root, id) : NULL;
    /* A dropped column: the newest schema that still has it knows its widest type. */
    for (int32_t i = m->n_schemas - 1; i >= 0 && field == NULL; i--) {
        field = type_find_id(m->schemas[i]->root, id);
    }
    return field != NULL ? field->type : NULL;
}

tarn_code spec_partition_type(tarn_arena *arena, const tarn_spec *spec, const tarn_metadata *m,
                              const tarn_type **out, tarn_error *err) {
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)spec->n_fields);
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < spec->n_fields; i++) {
        const tarn_partition_field *f = &spec->fields[i];
        const tarn_type *source = find_source(m, f->source_id);
        const tarn_type *result = NULL;
        if (source == NULL ||
            transform_result_type(arena, &f->transform, source, &result, NULL) != TARN_OK ||
            type_is_nested(result)) {
            result = type_primitive(TARN_UNKNOWN);
        }
        fields[i].id = f->field_id;
        fields[i].name = f->name;
        fields[i].type = result;
    }
    const tarn_type *type = type_struct(arena, fields, spec->n_fields);
    if (type == NULL) {
        return err_nomem(err);
    }
    *out = type;
    return TARN_OK;
}

/* As java.net.URLEncoder does it, which Iceberg Java uses for paths. */
static tarn_code put_encoded(tarn_str s, tarn_buf *out, tarn_error *err) {
    static const char hex[] = "0123456789ABCDEF";
    if (s.len > SIZE_MAX / 3) {
        return err_nomem(err);
    }
    tarn_code code = buf_reserve(out, s.len * 3, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *dst = out->data + out->len;
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = (uint8_t)s.data[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '.' || c == '-' || c == '*' || c == '_') {
            *dst++ = c;
        } else if (c == ' ') {
            *dst++ = '+';
        } else {
            *dst++ = '%';
            *dst++ = (uint8_t)hex[c >> 4];
            *dst++ = (uint8_t)hex[c & 15];
        }
    }
    out->len = (size_t)(dst - out->data);
    return TARN_OK;
}

/* File systems take names of up to 255 bytes. Files have names of their own and the tuple is in the
 * manifest, so that two partitions may share a folder. No "%xx" is cut in two. */
static void shorten(tarn_buf *out, size_t start) {
    if (out->len - start <= FOLDER_NAME_BYTES) {
        return;
    }
    size_t end = start + FOLDER_NAME_BYTES;
    for (size_t i = 1; i <= 2; i++) {
        if (out->data[end - i] == '%') {
            end -= i;
            break;
        }
    }
    out->len = end;
}

tarn_code spec_partition_path(const tarn_spec *spec, const tarn_value *partition, tarn_buf *out,
                              tarn_error *err) {
    tarn_buf human;
    tarn_code code = TARN_OK;
    buf_init(&human, out->env, 0);
    for (int32_t i = 0; i < spec->n_fields; i++) {
        size_t start;
        buf_reset(&human);
        TRY(transform_human(&spec->fields[i].transform, &partition[i], &human, err));
        if (i > 0) {
            TRY(buf_append_char(out, '/', err));
        }
        start = out->len;
        TRY(put_encoded(spec->fields[i].name, out, err));
        TRY(buf_append_char(out, '=', err));
        TRY(put_encoded(buf_str(&human), out, err));
        shorten(out, start);
    }
done:
    buf_release(&human);
    return code;
}
