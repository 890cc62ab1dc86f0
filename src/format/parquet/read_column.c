/* format/parquet/read_column.c - rows of one leaf: its levels and values into a builder.
 *
 * Two ways. A flat leaf whose only level is its own null bit goes straight from the page into
 * validity and values. All others decode levels in blocks (read ahead across pages, since only the
 * next entry tells that a row is over), keep them for read_nested.c, and put one slot into the
 * builder for each entry of the innermost list. Values are read dense and then spread over their
 * slots. */
#include "format/parquet/parquet_read_int.h"

#include "base/limits.h"

/* Entries of one column of one batch: bounds memory whatever the levels claim. */
#define MAX_ENTRIES (INT64_C(1) << 27)

tarn_code column_open(read_column *c, tarn_error *err) {
    const parquet_column_meta *meta = &c->chunk->meta;
    const int64_t rows = c->file->footer.row_groups[c->group].num_rows;
    if (meta->type != c->leaf->physical) {
        return column_error(c, TARN_CORRUPT, err, "had physical type %d, its schema says %d",
                            meta->type, c->leaf->physical);
    }
    if (c->leaf->max_rep == 0 ? meta->num_values != rows : meta->num_values < rows) {
        return column_error(c, TARN_CORRUPT, err, "had %lld values for %lld rows",
                            (long long)meta->num_values, (long long)rows);
    }
    buf_init(&c->page, c->env, LIMIT_DECODE_BLOCK_BYTES + 16);
    buf_init(&c->values.last, c->env, LIMIT_DECODE_BLOCK_BYTES);
    c->segment = -1;
    c->bad_value = -1;
    if (c->with_levels) {
        c->block_defs = env_alloc(c->env, READ_BLOCK);
        c->block_reps = env_calloc(c->env, 1, READ_BLOCK);
        if (c->block_defs == NULL || c->block_reps == NULL) {
            return err_nomem(err);
        }
    }
    return TARN_OK;
}

void column_release(read_column *c) {
    if (c->env == NULL) {
        return;
    }
    values_release(c);
    buf_release(&c->page);
    env_free(c->env, c->block_defs);
    env_free(c->env, c->block_reps);
    env_free(c->env, c->defs);
    env_free(c->env, c->reps);
    env_free(c->env, c->bits);
    memset(c, 0, sizeof *c);
}

/* The message of a bad value gets the number of its row in the file. */
static tarn_code name_row(const read_column *c, tarn_code code, int64_t row, tarn_error *err) {
    return err_add(err, code, "row %lld of the file",
                   (long long)(c->file->group_first_rows[c->group] + row));
}

static tarn_code need_bits(read_column *c, int64_t n, tarn_error *err) {
    const size_t size = bit_bytes(n) + 8;
    if (size <= c->bits_cap) {
        return TARN_OK;
    }
    uint8_t *bits = env_realloc(c->env, c->bits, size);
    if (bits == NULL) {
        return err_nomem(err);
    }
    c->bits = bits;
    c->bits_cap = size;
    return TARN_OK;
}

/* ---- dense values to slots, from the back, so that they may share memory ---- */

#define SPREAD(type)                                                                               \
    do {                                                                                           \
        for (int64_t i = n - 1, k = n_dense - 1; k < i; i--) {                                     \
            type value_;                                                                           \
            memset(&value_, 0, sizeof value_);                                                     \
            if (bit_get(validity, first + i)) {                                                    \
                memcpy(&value_, values + (size_t)k-- * sizeof value_, sizeof value_);              \
            }                                                                                      \
            memcpy(values + (size_t)i * sizeof value_, &value_, sizeof value_);                    \
        }                                                                                          \
    } while (0)

static void spread_fixed(uint8_t *values, size_t width, const uint8_t *validity, int64_t first,
                         int64_t n, int64_t n_dense) {
    if (width == 4) {
        SPREAD(uint32_t);
    } else if (width == 8) {
        SPREAD(uint64_t);
    } else if (width == 16) {
        SPREAD(tarn_int128);
    } else {
        for (int64_t i = n - 1, k = n_dense - 1; k < i; i--) {
            uint8_t *dst = values + (size_t)i * width;
            if (bit_get(validity, first + i)) {
                memmove(dst, values + (size_t)k-- * width, width);
            } else {
                memset(dst, 0, width);
            }
        }
    }
}

static void spread_bits(uint8_t *bits, const uint8_t *validity, int64_t first, int64_t n,
                        int64_t n_dense) {
    for (int64_t i = n - 1, k = n_dense - 1; k < i; i--) {
        bool value = false;
        if (bit_get(validity, first + i)) {
            value = bit_get(bits, first + k--);
        }
        if (value) {
            bit_set(bits, first + i);
        } else {
            bit_clear(bits, first + i);
        }
    }
}

/* ends[i] is where slot i ends; slot 0 begins at ends[-1]. */
static void spread_ends(int32_t *ends, const uint8_t *validity, int64_t first, int64_t n,
                        int64_t n_dense) {
    for (int64_t i = n - 1, k = n_dense - 1; k < i; i--) {
        ends[i] = ends[k];
        k -= bit_get(validity, first + i) ? 1 : 0;
    }
}

/* Appends n slots, those with a set bit of the builder's validity (NULL: all) from the page. The
 * builder has room. */
static tarn_code append_slots(read_column *c, int64_t n, int64_t n_dense, tarn_error *err) {
    tarn_builder *b = c->builder;
    if (b->type->kind == TARN_UNKNOWN) {
        return builder_nulls(b, n, err);
    }
    tarn_code code = values_read(c, b, n_dense, err);
    if (code != TARN_OK) {
        return code;
    }
    if (n_dense < n) {
        const size_t width = (size_t)type_width(b->type);
        if (b->type->kind == TARN_BOOLEAN) {
            spread_bits(b->values, b->validity, b->length, n, n_dense);
        } else if (width > 0) {
            spread_fixed(b->values + (size_t)b->length * width, width, b->validity, b->length, n,
                         n_dense);
        } else {
            spread_ends(b->offsets + b->length + 1, b->validity, b->length, n, n_dense);
        }
    }
    b->length += n;
    b->null_count += n - n_dense;
    return TARN_OK;
}

/* ---- flat leaves ---- */

/* Validity of the next n entries of the page into bits from `start`; *n_set of them are there. */
static tarn_code read_validity(read_column *c, int64_t n, uint8_t *bits, int64_t start,
                               int64_t *n_set, tarn_error *err) {
    if (c->def_msb == NULL) {
        return hybrid_read_bits(&c->def, (size_t)n, bits, start, n_set)
                   ? TARN_OK
                   : column_error(c, TARN_CORRUPT, err, "had a page too short for its levels");
    }
    *n_set = 0;
    for (int64_t i = 0; i < n; i++) {
        uint8_t level = 0;
        unpack_msb_u8(c->def_msb, c->msb_at++, 1, 1, &level);
        if (level != 0) {
            bit_set(bits, start + i);
        } else {
            bit_clear(bits, start + i);
        }
        *n_set += level;
    }
    return TARN_OK;
}

/* Makes validity of the run part of the builder; none is made while nothing is null. */
static tarn_code flat_validity(read_column *c, int64_t n, int64_t *n_dense, tarn_error *err) {
    tarn_builder *b = c->builder;
    *n_dense = n;
    if (c->leaf->max_def == 0) {
        if (b->validity != NULL) {
            bit_fill(b->validity, b->length, n, true);
        }
        return TARN_OK;
    }
    if (b->validity != NULL) {
        return read_validity(c, n, b->validity, b->length, n_dense, err);
    }
    tarn_code code = need_bits(c, n, err);
    if (code == TARN_OK) {
        code = read_validity(c, n, c->bits, 0, n_dense, err);
    }
    if (code == TARN_OK && *n_dense < n) {
        code = builder_need_validity(b, err);
        if (code == TARN_OK && b->validity != NULL) {
            bit_copy(b->validity, b->length, c->bits, 0, n);
        }
    }
    return code;
}

/* Makes a page with entries the present one, unpacked. */
static tarn_code need_page(read_column *c, bool *more, tarn_error *err) {
    tarn_code code = TARN_OK;
    *more = true;
    if (c->page_left == 0) {
        code = column_next_page(c, more, err);
    }
    if (code == TARN_OK && *more && c->page_waiting) {
        code = column_unpack_page(c, err);
    }
    return code;
}

static tarn_code ended(const read_column *c, tarn_error *err) {
    return column_error(c, TARN_CORRUPT, err, "ended at row %lld of %lld", (long long)c->row,
                        (long long)c->file->footer.row_groups[c->group].num_rows);
}

static tarn_code read_flat(read_column *c, int64_t n, tarn_error *err) {
    while (n > 0) {
        bool more = false;
        int64_t n_dense = 0;
        tarn_code code = need_page(c, &more, err);
        if (code == TARN_OK && !more) {
            code = ended(c, err);
        }
        const int64_t take = n < c->page_left ? n : c->page_left;
        const int64_t first = c->builder->length;
        if (code == TARN_OK) {
            code = flat_validity(c, take, &n_dense, err);
        }
        if (code == TARN_OK) {
            code = append_slots(c, take, n_dense, err);
        }
        if (code != TARN_OK) {
            int64_t slot = 0;
            for (int64_t k = c->bad_value; k >= 0 && slot < take; slot++) {
                const uint8_t *v = c->builder->validity;
                k -= v == NULL || bit_get(v, first + slot) ? 1 : 0;
            }
            return c->bad_value >= 0 ? name_row(c, code, c->row + slot - 1, err) : code;
        }
        c->page_left -= take;
        c->row += take;
        n -= take;
    }
    return TARN_OK;
}

static tarn_code skip_flat(read_column *c, int64_t n, tarn_error *err) {
    while (n > 0) {
        bool more = true;
        tarn_code code = TARN_OK;
        if (c->page_left == 0) {
            code = column_next_page(c, &more, err);
        }
        if (code == TARN_OK && !more) {
            code = ended(c, err);
        }
        if (code != TARN_OK) {
            return code;
        }
        const int64_t take = n < c->page_left ? n : c->page_left;
        if (c->page_waiting && take == c->page_left) {
            c->page_waiting = false; /* dropped whole */
        } else {
            int64_t n_dense = take;
            code = c->page_waiting ? column_unpack_page(c, err) : TARN_OK;
            if (code == TARN_OK && c->leaf->max_def > 0) {
                code = need_bits(c, take, err);
                if (code == TARN_OK) {
                    code = read_validity(c, take, c->bits, 0, &n_dense, err);
                }
            }
            if (code == TARN_OK) {
                code = values_skip(c, n_dense, err);
            }
            if (code != TARN_OK) {
                return code;
            }
        }
        c->page_left -= take;
        c->row += take;
        n -= take;
    }
    return TARN_OK;
}

/* ---- leaves with levels ---- */

static int width_of(uint8_t max) {
    int width = 0;
    while (max >> width != 0) {
        width++;
    }
    return width;
}

static bool read_level_block(hybrid_reader *h, const uint8_t *msb, uint64_t msb_at, uint8_t max,
                             size_t n, uint8_t *out) {
    if (max == 0) {
        memset(out, 0, n);
        return true;
    }
    if (msb != NULL) {
        unpack_msb_u8(msb, msb_at * (uint64_t)width_of(max), width_of(max), n, out);
    } else if (!hybrid_read_u8(h, n, out)) {
        return false;
    }
    uint8_t top = 0;
    for (size_t i = 0; i < n; i++) {
        top = out[i] > top ? out[i] : top;
    }
    return top <= max;
}

/* Decodes the next block of levels when the last one is used up; *more is false at the end. */
static tarn_code need_block(read_column *c, bool *more, tarn_error *err) {
    *more = true;
    if (c->block_at < c->block_len) {
        return TARN_OK;
    }
    const bool new_page = c->page_left == 0 || c->page_waiting;
    tarn_code code = need_page(c, more, err);
    if (code != TARN_OK || !*more) {
        return code;
    }
    const int64_t n = c->page_left < READ_BLOCK ? c->page_left : READ_BLOCK;
    if (!read_level_block(&c->rep, c->rep_msb, c->msb_at, c->leaf->max_rep, (size_t)n,
                          c->block_reps) ||
        !read_level_block(&c->def, c->def_msb, c->msb_at, c->leaf->max_def, (size_t)n,
                          c->block_defs)) {
        return column_error(c, TARN_CORRUPT, err, "had a page with bad or too few levels");
    }
    c->msb_at += (uint64_t)n;
    c->page_left -= n;
    c->block_at = 0;
    c->block_len = (int32_t)n;
    const bool must_begin = c->indexed || c->header.type == PARQUET_DATA_PAGE_V2;
    return new_page && must_begin && c->block_reps[0] != 0
               ? column_error(c, TARN_CORRUPT, err, "had a page that began within a row")
               : TARN_OK;
}

/* How many entries of the block belong to the rows still wanted; counts the rows that begin. */
static int32_t take_entries(const read_column *c, int64_t want, int64_t *begun) {
    int32_t i = c->block_at;
    if (c->leaf->max_rep == 0) {
        const int64_t left = want - *begun;
        const int32_t n = c->block_len - i;
        i += n < left ? n : (int32_t)left;
        *begun += i - c->block_at;
        return i - c->block_at;
    }
    for (; i < c->block_len; i++) {
        if (c->block_reps[i] == 0) {
            if (*begun == want) {
                break;
            }
            ++*begun;
        }
    }
    return i - c->block_at;
}

static tarn_code keep_levels(read_column *c, int32_t n, tarn_error *err) {
    const int64_t need = c->n_entries + n;
    if (need > MAX_ENTRIES) {
        return column_error(c, TARN_LIMIT, err, "had more than %lld entries in one batch",
                            (long long)MAX_ENTRIES);
    }
    if (need > c->entries_cap) {
        const int64_t cap = c->entries_cap * 2 > need ? c->entries_cap * 2 : need + READ_BLOCK;
        uint8_t *defs = env_realloc(c->env, c->defs, (size_t)cap);
        if (defs == NULL) {
            return err_nomem(err);
        }
        c->defs = defs;
        uint8_t *reps = env_realloc(c->env, c->reps, (size_t)cap);
        if (reps == NULL) {
            return err_nomem(err);
        }
        c->reps = reps;
        c->entries_cap = cap;
    }
    memcpy(c->defs + c->n_entries, c->block_defs + c->block_at, (size_t)n);
    memcpy(c->reps + c->n_entries, c->block_reps + c->block_at, (size_t)n);
    c->n_entries = need;
    return TARN_OK;
}

/* Validity of the slots that n entries of the block make; entries below slot_def make none. */
static tarn_code slot_validity(read_column *c, int32_t n, int64_t *n_slots, int64_t *n_dense,
                               tarn_error *err) {
    tarn_builder *b = c->builder;
    const uint8_t *defs = c->block_defs + c->block_at;
    const uint8_t max = c->leaf->max_def, slot = c->slot_def;
    int32_t slots = 0, dense = 0;
    for (int32_t i = 0; i < n; i++) {
        slots += defs[i] >= slot;
        dense += defs[i] == max;
    }
    *n_slots = slots;
    *n_dense = dense;
    tarn_code code = builder_reserve(b, slots, err);
    if (code == TARN_OK && dense < slots) {
        code = builder_need_validity(b, err);
    }
    if (code != TARN_OK || b->validity == NULL) {
        return code;
    }
    if (dense == slots) {
        bit_fill(b->validity, b->length, slots, true);
        return TARN_OK;
    }
    int64_t at = b->length;
    for (int32_t i = 0; i < n; i++) {
        if (defs[i] == max) {
            bit_set(b->validity, at++);
        } else if (defs[i] >= slot) {
            bit_clear(b->validity, at++);
        }
    }
    return TARN_OK;
}

static tarn_code take_values(read_column *c, int32_t n, tarn_error *err) {
    int64_t slots = 0, dense = 0;
    tarn_code code = slot_validity(c, n, &slots, &dense, err);
    if (code == TARN_OK) {
        code = append_slots(c, slots, dense, err);
    }
    if (code != TARN_OK && c->bad_value >= 0) {
        int64_t row = c->row - 1;
        int64_t left = c->bad_value + 1;
        for (int32_t i = c->block_at; left > 0; i++) {
            row += c->block_reps[i] == 0;
            left -= c->block_defs[i] == c->leaf->max_def;
        }
        return name_row(c, code, row, err);
    }
    return code;
}

static tarn_code drop_values(read_column *c, int32_t n, tarn_error *err) {
    int64_t dense = 0;
    for (int32_t i = 0; i < n; i++) {
        dense += c->block_defs[c->block_at + i] == c->leaf->max_def;
    }
    return values_skip(c, dense, err);
}

/* Drops pages whose rows are all to be dropped, without unpacking them: where their headers say how
 * many rows they have. */
static tarn_code drop_pages(read_column *c, int64_t n, int64_t *begun, tarn_error *err) {
    while (c->block_at == c->block_len) {
        bool more = true;
        tarn_code code = c->page_left == 0 ? column_next_page(c, &more, err) : TARN_OK;
        if (code != TARN_OK || !more || !c->page_waiting) {
            return code;
        }
        const bool v2 = c->header.type == PARQUET_DATA_PAGE_V2;
        const int64_t rows = v2 ? c->header.v2.num_rows : c->page_left;
        if ((!v2 && c->leaf->max_rep > 0) || rows > n - *begun) {
            return TARN_OK;
        }
        c->page_waiting = false;
        c->page_left = 0;
        c->row += rows;
        *begun += rows;
    }
    return TARN_OK;
}

/* The next n rows, kept or dropped. */
static tarn_code walk_rows(read_column *c, int64_t n, bool keep, tarn_error *err) {
    int64_t begun = 0;
    for (;;) {
        bool more = false;
        tarn_code code = keep ? TARN_OK : drop_pages(c, n, &begun, err);
        if (code == TARN_OK) {
            code = need_block(c, &more, err);
        }
        if (code != TARN_OK) {
            return code;
        }
        if (!more) {
            return begun == n ? TARN_OK : ended(c, err);
        }
        const int64_t before = begun;
        const int32_t entries = take_entries(c, n, &begun);
        if (entries == 0) {
            return TARN_OK; /* the next row begins here */
        }
        if (before == 0 && c->n_entries == 0 && c->block_reps[c->block_at] != 0) {
            return column_error(c, TARN_CORRUPT, err, "began within a row");
        }
        if (keep) {
            code = keep_levels(c, entries, err);
            if (code == TARN_OK && c->builder != NULL) {
                code = take_values(c, entries, err);
            } else if (code == TARN_OK) {
                code = drop_values(c, entries, err);
            }
        } else {
            code = drop_values(c, entries, err);
        }
        if (code != TARN_OK) {
            return code;
        }
        c->block_at += entries;
        c->row += begun - before;
        if (c->leaf->max_rep == 0 && begun == n) {
            return TARN_OK;
        }
    }
}

tarn_code column_read(read_column *c, int64_t n, tarn_error *err) {
    c->n_entries = 0;
    if (n == 0) {
        return TARN_OK;
    }
    return c->with_levels ? walk_rows(c, n, true, err) : read_flat(c, n, err);
}

/* The segment that holds a row: the last one that begins at or before it. */
static void enter_segment(read_column *c, int64_t row) {
    int32_t want = c->segment < 0 ? 0 : c->segment;
    while (want + 1 < c->n_segments && c->segments[want + 1].first_row <= row) {
        want++;
    }
    if (want == c->segment) {
        return;
    }
    const read_segment *s = &c->segments[want];
    c->segment = want;
    c->at = s->data;
    c->end = s->data + s->len;
    c->row = s->first_row;
    c->page_left = 0;
    c->page_waiting = false;
    c->block_at = 0;
    c->block_len = 0;
}

/* row is at or after where the column stands. */
tarn_code column_seek(read_column *c, int64_t row, tarn_error *err) {
    enter_segment(c, row);
    c->n_entries = 0;
    if (c->dictionary_bytes.len > 0) {
        tarn_code code = column_load_dictionary(c, err);
        c->dictionary_bytes.len = 0;
        if (code != TARN_OK) {
            return code;
        }
    }
    if (row == c->row) {
        return TARN_OK;
    }
    return c->with_levels ? walk_rows(c, row - c->row, false, err)
                          : skip_flat(c, row - c->row, err);
}
