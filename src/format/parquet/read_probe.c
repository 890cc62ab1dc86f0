/* format/parquet/read_probe.c - equality filters against bloom filters and dictionaries of row
 * groups.
 *
 * Both only ever say "certainly not": anything unclear, other types, damage, may hold the value. A
 * dictionary speaks for a chunk only if every data page uses it, which is read from encoding_stats
 * or from the pages' own headers, never from the list of encodings (B50). */
#include "format/parquet/parquet_read_int.h"

#include <stdlib.h>

/* Larger dictionaries, and chunks whose page headers have to be walked, cost more than they save.
 */
#define DICTIONARY_MOST_BYTES (2 << 20)
#define WALK_MOST_BYTES       (1 << 20)
#define BLOOM_HEADER_GUESS    64

/* ---- the literal in plain bytes ---- */

static size_t put_i32(int64_t v, uint8_t *out) {
    const int32_t narrow = (int32_t)v;
    if (narrow != v) {
        return 0;
    }
    memcpy(out, &narrow, 4);
    return 4;
}

static size_t put_fixed_decimal(tarn_int128 v, size_t width, uint8_t *out) {
    for (size_t i = 0; i < width; i++) {
        out[width - 1 - i] = (uint8_t)(v >> (i < 16 ? 8 * i : 127));
    }
    return width;
}

/* A literal of the table's type as one of the file's: only widening that can be undone exactly. */
static bool as_i64(const tarn_value *v, int64_t *out) {
    switch ((int)v->type->kind) {
    case TARN_INT:
    case TARN_DATE:
        *out = v->as.i32;
        return true;
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        *out = v->as.i64;
        return true;
    case TARN_DECIMAL:
        *out = (int64_t)v->as.i128;
        return *out == v->as.i128;
    default:
        return false;
    }
}

static size_t put_float(const parquet_leaf *leaf, const tarn_value *v, uint8_t *out) {
    const double wide = v->type->kind == TARN_DOUBLE ? v->as.f64 : (double)v->as.f32;
    const float narrow = (float)wide;
    if (wide == 0 || wide != wide ||
        (v->type->kind != TARN_DOUBLE && v->type->kind != TARN_FLOAT)) {
        return 0; /* both zeros are equal, and NaN has many forms */
    }
    if (leaf->physical == PARQUET_DOUBLE) {
        memcpy(out, &wide, 8);
        return 8;
    }
    memcpy(out, &narrow, 4);
    return (double)narrow == wide ? 4 : 0;
}

/* 0: it can't be said. Bytes are borrowed or in out, of 300 bytes. */
static size_t plain_of(const parquet_leaf *leaf, const tarn_value *v, uint8_t *out,
                       const void **bytes) {
    int64_t number = 0;
    *bytes = out;
    const bool same = v->type->kind == leaf->type->kind &&
                      (v->type->kind != TARN_DECIMAL || v->type->scale == leaf->type->scale);
    switch (convert_choose(leaf)) {
    case CONVERT_BYTES:
        *bytes = v->as.bytes.data != NULL ? v->as.bytes.data : "";
        return same ? v->as.bytes.len : 0;
    case CONVERT_COPY:
        if (leaf->physical == PARQUET_FIXED_LEN_BYTE_ARRAY) {
            *bytes = v->as.bytes.data;
            return same && v->as.bytes.len == (size_t)leaf->type_length ? v->as.bytes.len : 0;
        }
        if (leaf->physical == PARQUET_FLOAT || leaf->physical == PARQUET_DOUBLE) {
            return put_float(leaf, v, out);
        }
        if ((!same && leaf->type->kind != TARN_INT) || !as_i64(v, &number)) {
            return 0;
        }
        if (leaf->physical == PARQUET_INT32) {
            return put_i32(number, out);
        }
        memcpy(out, &number, 8);
        return 8;
    case CONVERT_I32_DECIMAL:
        return same && as_i64(v, &number) ? put_i32(number, out) : 0;
    case CONVERT_I64_DECIMAL:
        if (!same || !as_i64(v, &number)) {
            return 0;
        }
        memcpy(out, &number, 8);
        return 8;
    case CONVERT_FIXED_DECIMAL:
        return same && leaf->type_length <= 256
                   ? put_fixed_decimal(v->as.i128, (size_t)leaf->type_length, out)
                   : 0;
    case CONVERT_I64_MILLIS:
        if (!same || v->as.i64 % 1000 != 0) {
            return 0;
        }
        number = v->as.i64 / 1000;
        memcpy(out, &number, 8);
        return 8;
    case CONVERT_NOTHING:
    case CONVERT_BOOL:
    case CONVERT_U32_LONG:
    case CONVERT_I32_MILLIS:
    case CONVERT_U64_DECIMAL:
    case CONVERT_BYTES_DECIMAL:
    case CONVERT_INT96:
    case CONVERT_FLOAT16:
        break;
    }
    return 0;
}

/* ---- bloom filters ---- */

static tarn_code load_bloom(pruner *p, prune_column *c, tarn_error *err) {
    const parquet_file *file = p->file;
    const parquet_column_meta *meta = &file->footer.row_groups[p->group].columns[c->leaf].meta;
    const int64_t start = meta->bloom_filter_offset, size = file->source->size_bytes;
    size_t header = 0, bits = 0;
    const uint8_t *head = NULL, *bytes = NULL;
    c->bloom_tried = true;
    if (!THRIFT_HAS(meta, PARQUET_COLUMN_BLOOM_FILTER_OFFSET) || start < 4 || start >= size) {
        return TARN_OK;
    }
    const int64_t guess = size - start < BLOOM_HEADER_GUESS ? size - start : BLOOM_HEADER_GUESS;
    tarn_code code = file_bytes(file, start, guess, &p->scratch, &head, err);
    if (code == TARN_OK) {
        code = bloom_header(str_make(head, (size_t)guess), &header, &bits, err);
    }
    if (code != TARN_OK || (int64_t)(header + bits) > size - start) {
        return code;
    }
    code = file_bytes(file, start + (int64_t)header, (int64_t)bits, &p->scratch, &bytes, err);
    return code == TARN_OK ? bloom_get(&c->bloom, file->env, str_make(bytes, bits), err) : code;
}

static bool bloom_has(const parquet_leaf *leaf, const parquet_bloom *bloom, const tarn_value *v) {
    uint8_t plain[300];
    const void *bytes = NULL;
    const size_t len = plain_of(leaf, v, plain, &bytes);
    return len == 0 || bloom_may_hold(bloom, bloom_hash(bytes, len));
}

static bool bloom_leaf(pruner *p, const tarn_expr *e) {
    prune_column *c = prune_find(p, e->field);
    if (c == NULL) {
        return true;
    }
    if (!c->bloom_tried && !prune_note(p, load_bloom(p, c, p->err))) {
        return true;
    }
    if (c->bloom.n_blocks == 0) {
        return true;
    }
    for (int32_t i = 0; i < e->n_values; i++) {
        if (bloom_has(&p->file->schema->leaves[c->leaf], &c->bloom, &e->values[i])) {
            return true;
        }
    }
    return false;
}

bool prune_bloom(pruner *p, const tarn_expr *e) {
    switch ((int)e->op) {
    case EXPR_AND:
        return prune_bloom(p, e->left) && prune_bloom(p, e->right);
    case EXPR_OR:
        return prune_bloom(p, e->left) || prune_bloom(p, e->right);
    case EXPR_EQ:
    case EXPR_IN:
        return bloom_leaf(p, e);
    default:
        return true;
    }
}

/* ---- dictionaries ---- */

static bool is_dictionary_encoding(int32_t encoding) {
    return encoding == PARQUET_PLAIN_DICTIONARY || encoding == PARQUET_RLE_DICTIONARY;
}

/* By encoding_stats: 1 all data pages use the dictionary, 0 not all, -1 not told. */
static int told_by_stats(const parquet_column_meta *meta) {
    int told = -1;
    for (int32_t i = 0; i < meta->n_encoding_stats; i++) {
        const parquet_encoding_stats *s = &meta->encoding_stats[i];
        if (s->count <= 0 ||
            (s->page_type != PARQUET_DATA_PAGE && s->page_type != PARQUET_DATA_PAGE_V2)) {
            continue;
        }
        if (!is_dictionary_encoding(s->encoding)) {
            return 0;
        }
        told = 1;
    }
    return told;
}

/* By the header of every page. c->dictionary is made on the way. */
static tarn_code walk_pages(read_column *c, bool *only, tarn_error *err) {
    bool more = true;
    *only = true;
    while (*only) {
        tarn_code code = column_next_page(c, &more, err);
        if (code != TARN_OK || !more) {
            return code;
        }
        *only = is_dictionary_encoding(c->header.type == PARQUET_DATA_PAGE_V2
                                           ? c->header.v2.encoding
                                           : c->header.data.encoding);
        c->page_waiting = false;
        c->page_left = 0;
    }
    return TARN_OK;
}

static tarn_code fetch_dictionary(pruner *p, read_column *c, bool walk, bool *usable,
                                  tarn_error *err) {
    int64_t start = 0, len = 0;
    tarn_code code = chunk_bounds(p->file, p->group, c->index, &start, &len, err);
    *usable = false;
    if (code != TARN_OK) {
        return code;
    }
    if (!walk) {
        len = c->chunk->meta.data_page_offset - start;
    }
    if (len <= 0 || len > (walk ? WALK_MOST_BYTES : DICTIONARY_MOST_BYTES)) {
        return TARN_OK;
    }
    const uint8_t *bytes = NULL;
    code = file_bytes(p->file, start, len, &p->scratch, &bytes, err);
    if (code == TARN_OK) {
        code = column_open(c, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    c->dictionary_bytes = (read_segment){.data = bytes, .len = (size_t)len};
    c->at = bytes;
    c->end = bytes + len;
    bool only = true;
    code = walk ? walk_pages(c, &only, err) : column_load_dictionary(c, err);
    *usable = code == TARN_OK && only && c->dictionary.present;
    return code;
}

static tarn_code load_dictionary(pruner *p, prune_column *pc, tarn_error *err) {
    const parquet_chunk *chunk = &p->file->footer.row_groups[p->group].columns[pc->leaf];
    const parquet_leaf *leaf = &p->file->schema->leaves[pc->leaf];
    pc->dictionary_tried = true;
    const int told = told_by_stats(&chunk->meta);
    const bool may_have =
        THRIFT_HAS(&chunk->meta, PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET) || told < 0;
    if (told == 0 || !may_have || leaf->type->kind == TARN_FLOAT ||
        leaf->type->kind == TARN_DOUBLE || !THRIFT_HAS(chunk, PARQUET_CHUNK_META) ||
        THRIFT_HAS(chunk, PARQUET_CHUNK_CRYPTO)) {
        return TARN_OK;
    }
    read_column *c = ARENA_NEW(&p->scratch, read_column);
    if (c == NULL) {
        return err_nomem(err);
    }
    *c = (read_column){.env = p->file->env,
                       .file = p->file,
                       .codec = &p->codec,
                       .group = p->group,
                       .index = pc->leaf,
                       .leaf = leaf,
                       .chunk = chunk,
                       .convert = convert_choose(leaf)};
    bool usable = false;
    tarn_code code = fetch_dictionary(p, c, told < 0, &usable, err);
    if (usable) {
        pc->dictionary = c;
    } else {
        column_release(c);
    }
    return code;
}

static void dictionary_value(const tarn_builder *b, uint32_t i, tarn_value *out) {
    *out = value_null(b->type);
    out->is_null = false;
    const size_t width = (size_t)type_width(b->type);
    if (b->type->kind == TARN_UUID || b->type->kind == TARN_FIXED) {
        out->as.bytes = str_make(b->values + i * width, width);
    } else if (width > 0) {
        memcpy(&out->as, b->values + i * width, width);
    } else {
        out->as.bytes =
            str_make(b->bytes + b->offsets[i], (size_t)(b->offsets[i + 1] - b->offsets[i]));
    }
}

static bool dictionary_leaf(pruner *p, const tarn_expr *e) {
    prune_column *c = prune_find(p, e->field);
    if (c == NULL) {
        return true;
    }
    if (!c->dictionary_tried && !prune_note(p, load_dictionary(p, c, p->err))) {
        return true;
    }
    if (c->dictionary == NULL) {
        return true;
    }
    const read_dictionary *d = &c->dictionary->dictionary;
    for (uint32_t k = 0; k < d->count; k++) {
        tarn_value v;
        dictionary_value(&d->values, k, &v);
        if (!stats_promote(e->field->type, &v)) {
            return true;
        }
        for (int32_t i = 0; i < e->n_values; i++) {
            if (e->op == EXPR_STARTS_WITH ? str_starts_with(v.as.bytes, e->values[i].as.bytes)
                                          : value_eq(&v, &e->values[i])) {
                return true;
            }
        }
    }
    return false;
}

bool prune_dictionary(pruner *p, const tarn_expr *e) {
    switch ((int)e->op) {
    case EXPR_AND:
        return prune_dictionary(p, e->left) && prune_dictionary(p, e->right);
    case EXPR_OR:
        return prune_dictionary(p, e->left) || prune_dictionary(p, e->right);
    case EXPR_EQ:
    case EXPR_IN:
    case EXPR_STARTS_WITH:
        return dictionary_leaf(p, e);
    default:
        return true;
    }
}

void prune_drop_group(pruner *p) {
    for (size_t i = 0; i < p->n_columns; i++) {
        prune_column *c = &p->columns[i];
        if (c->dictionary != NULL) {
            column_release(c->dictionary);
        }
        bloom_release(&c->bloom);
        *c = (prune_column){.field_id = c->field_id, .leaf = c->leaf};
    }
    arena_release(&p->scratch);
}
