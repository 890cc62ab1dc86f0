/* format/parquet/read_nested.c - structs, lists and maps out of the levels of a column below them
 * (the Dremel encoding).
 *
 * An entry of a column is a slot of a node when it does not merely continue something inside the
 * node (its repetition level is at most that of the list around the node) and when that list has an
 * entry there. Columns below one node are read one by one, so their lengths are compared: files
 * whose levels contradict each other are CORRUPT, never unequal children. */
#include "format/parquet/parquet_read_int.h"

typedef struct filler {
    const read_node *nodes;
    const read_column *columns;
    tarn_error *err;
} filler;

static tarn_code check_length(const filler *f, const read_node *n, int64_t length,
                              int64_t expected) {
    if (length == expected) {
        return TARN_OK;
    }
    const read_column *c = n->levels >= 0 ? &f->columns[n->levels] : NULL;
    if (c == NULL) {
        return err_set(f->err, TARN_CORRUPT, "column %.*s had %lld values for %lld rows",
                       STR_ARG(n->node->field->name), (long long)length, (long long)expected);
    }
    return column_error(c, TARN_CORRUPT, f->err, "had %lld values where its siblings had %lld",
                        (long long)length, (long long)expected);
}

static tarn_code room_for(tarn_builder *b, int64_t n, bool validity, tarn_error *err) {
    tarn_code code = builder_reserve(b, n > 0 ? n : 1, err); /* offsets[0] is there even for none */
    return code == TARN_OK && validity ? builder_need_validity(b, err) : code;
}

/* Slots of a struct or variant. */
static tarn_code fill_struct(const filler *f, const read_node *n, int64_t expected) {
    tarn_builder *b = n->builder;
    if (n->node->def <= n->context_def || n->levels < 0) {
        b->length = expected;
        return TARN_OK;
    }
    const read_column *c = &f->columns[n->levels];
    tarn_code code = room_for(b, expected, true, f->err);
    if (code != TARN_OK) {
        return code;
    }
    int64_t slots = 0, nulls = 0;
    for (int64_t i = 0; i < c->n_entries && slots <= expected; i++) {
        if (c->reps[i] > n->context_rep || c->defs[i] < n->context_def) {
            continue;
        }
        if (slots < expected && c->defs[i] >= n->node->def) {
            bit_set(b->validity, slots);
        } else if (slots < expected) {
            bit_clear(b->validity, slots);
            nulls++;
        }
        slots++;
    }
    b->length = slots < expected ? slots : expected;
    b->null_count = nulls;
    return check_length(f, n, slots, expected);
}

/* Slots and entries of a list or map; *entries is how long its children must be. */
static tarn_code fill_list(const filler *f, const read_node *n, int64_t expected,
                           int64_t *entries) {
    tarn_builder *b = n->builder;
    const read_column *c = &f->columns[n->levels];
    const uint8_t def = n->node->def, def_entry = n->node->def_entry, rep = n->node->rep;
    tarn_code code = room_for(b, expected, def > n->context_def, f->err);
    if (code != TARN_OK) {
        return code;
    }
    int64_t slots = 0, nulls = 0;
    int32_t child = 0;
    bool open = false; /* the last slot has an entry */
    for (int64_t i = 0; i < c->n_entries; i++) {
        const uint8_t d = c->defs[i], r = c->reps[i];
        if (r <= n->context_rep && d >= n->context_def) {
            if (slots == expected) {
                return check_length(f, n, slots + 1, expected);
            }
            b->offsets[slots] = child;
            if (b->validity != NULL && d >= def) {
                bit_set(b->validity, slots);
            } else if (b->validity != NULL) {
                bit_clear(b->validity, slots);
                nulls++;
            }
            slots++;
            open = d >= def_entry;
            child += open;
        } else if (r <= rep && d >= def_entry) {
            if (!open) {
                return column_error(c, TARN_CORRUPT, f->err,
                                    "had levels that went on with an empty list");
            }
            child++;
        }
    }
    b->offsets[slots] = child;
    b->length = slots;
    b->null_count = nulls;
    *entries = child;
    return check_length(f, n, slots, expected);
}

static tarn_code fill_node(const filler *f, int32_t *at, int64_t expected) {
    const read_node *n = &f->nodes[(*at)++];
    const tarn_type *type = n->builder->type;
    tarn_code code = TARN_OK;
    int64_t below = expected;
    switch ((int)type->kind) {
    case TARN_VARIANT:
        code = fill_struct(f, n, expected);
        for (int32_t i = 0; n->parts != NULL && i < n->parts->n_children && code == TARN_OK; i++) {
            code = fill_node(f, at, expected);
        }
        if (code == TARN_OK && n->parts != NULL) {
            code = variant_rebuild(n, &f->columns[n->levels], expected, f->err);
        }
        for (int32_t i = 0; i < n->builder->n_children && code == TARN_OK; i++) {
            code = check_length(f, n, n->builder->children[i].length, expected);
        }
        return code;
    case TARN_STRUCT:
        code = fill_struct(f, n, expected);
        break;
    case TARN_LIST:
    case TARN_MAP:
        code = fill_list(f, n, expected, &below);
        break;
    default:
        return check_length(f, n, n->builder->length, expected);
    }
    for (int32_t i = 0; i < type->n_fields && code == TARN_OK; i++) {
        code = fill_node(f, at, below);
    }
    return code;
}

tarn_code nested_fill(const read_node *nodes, int32_t n_nodes, const read_column *columns,
                      int64_t rows, tarn_error *err) {
    const filler f = {nodes, columns, err};
    tarn_code code = TARN_OK;
    for (int32_t at = 0; at < n_nodes && code == TARN_OK;) {
        code = fill_node(&f, &at, rows);
    }
    return code;
}
