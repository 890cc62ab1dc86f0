/* format/avro/avro_plan.c - a schema and a selection as a decode plan.
 *
 * Schema, full type and selection are walked side by side, once; the ops that come out know nothing
 * of JSON or names. What is not selected becomes as few skip ops as possible: neighbours of one
 * sort are merged, an array of numbers is skipped as one run of varints. */
#include "format/avro/avro_op.h"

typedef struct planner {
    avro_decoder *d;
    tarn_arena *arena;
    size_t cap;
    size_t barrier; /* ops before this one are closed to merging: they belong to another body */
    const uint8_t *selected;
    tarn_error *err;
} planner;

static bool is_selected(const planner *pl, int32_t node) {
    return pl->selected == NULL || pl->selected[node];
}

static size_t add_sizes(size_t a, size_t b) {
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

/* The least bytes that one value takes. */
static size_t least_bytes(const avro_schema *schema) {
    size_t n = 0;
    switch (schema->kind) {
    case AVRO_NULL:
        return 0;
    case AVRO_FLOAT:
        return 4;
    case AVRO_DOUBLE:
        return 8;
    case AVRO_FIXED:
        return (size_t)schema->size;
    case AVRO_RECORD:
        for (int32_t i = 0; i < schema->n; i++) {
            n = add_sizes(n, least_bytes(schema->fields[i].schema));
        }
        return n;
    case AVRO_UNION:
        n = SIZE_MAX;
        for (int32_t i = 0; i < schema->n; i++) {
            size_t branch = least_bytes(schema->branches[i]);
            n = branch < n ? branch : n;
        }
        return add_sizes(n, 1);
    case AVRO_BOOLEAN:
    case AVRO_INT:
    case AVRO_LONG:
    case AVRO_BYTES:
    case AVRO_STRING:
    case AVRO_ENUM:
    case AVRO_ARRAY:
    case AVRO_MAP:
        break;
    }
    return 1;
}

static tarn_code push(planner *pl, avro_opcode code, tarn_builder *b, avro_op **out) {
    avro_decoder *d = pl->d;
    if (d->n_ops == pl->cap) {
        size_t cap = pl->cap > 0 ? pl->cap * 2 : 32;
        avro_op *ops = arena_grow(pl->arena, d->ops, pl->cap * sizeof *ops, cap * sizeof *ops);
        if (ops == NULL) {
            return err_nomem(pl->err);
        }
        d->ops = ops;
        pl->cap = cap;
    }
    avro_op *op = &d->ops[d->n_ops++];
    memset(op, 0, sizeof *op);
    op->code = code;
    op->span = 1;
    op->b = b;
    op->null_at = -1;
    *out = op;
    return TARN_OK;
}

/* Ends the body of the op at index. */
static void end_body(planner *pl, size_t index) {
    pl->d->ops[index].span = (uint32_t)(pl->d->n_ops - index);
    pl->barrier = pl->d->n_ops;
}

/* ---- skipping ---- */

static tarn_code skip_value(planner *pl, const avro_schema *schema);

static tarn_code skip_simple(planner *pl, avro_opcode code, size_t n) {
    avro_decoder *d = pl->d;
    avro_op *op = NULL;
    if (d->n_ops > pl->barrier && d->ops[d->n_ops - 1].code == code) {
        d->ops[d->n_ops - 1].n += n;
        return TARN_OK;
    }
    tarn_code result = push(pl, code, NULL, &op);
    if (result == TARN_OK) {
        op->n = n;
    }
    return result;
}

/* Items that are only varints and then only sized values need no ops to be run for each of them; so
 * are nearly all statistics of a manifest entry. */
static void flatten_items(planner *pl, size_t at) {
    avro_op *op = &pl->d->ops[at];
    const avro_op *item = op + 1;
    const avro_op *stop = pl->d->ops + pl->d->n_ops;
    if (item < stop && item->code == AVRO_OP_SKIP_VARINTS) {
        op->n = item->n;
        item++;
    }
    if (item < stop && item->code == AVRO_OP_SKIP_SIZED) {
        op->n_sized = item->n;
        item++;
    }
    op->flat = item == stop && op->n + op->n_sized > 0;
}

static tarn_code skip_items(planner *pl, const avro_schema *schema) {
    avro_op *op = NULL;
    size_t at = pl->d->n_ops;
    tarn_code code = TARN_OK;
    TRY(push(pl, AVRO_OP_SKIP_ITEMS, NULL, &op));
    op->min_bytes = least_bytes(schema->branches[0]) + (schema->kind == AVRO_MAP ? 1 : 0);
    if (schema->kind == AVRO_MAP) {
        TRY(skip_simple(pl, AVRO_OP_SKIP_SIZED, 1));
    }
    TRY(skip_value(pl, schema->branches[0]));
    flatten_items(pl, at);
    end_body(pl, at);
done:
    return code;
}

static tarn_code new_jumps(planner *pl, size_t at, const avro_schema *schema, size_t **jumps) {
    *jumps = ARENA_ARRAY(pl->arena, size_t, (size_t)schema->n + 1);
    if (*jumps == NULL) {
        return err_nomem(pl->err);
    }
    pl->d->ops[at].jumps = *jumps;
    pl->d->ops[at].schema = schema;
    pl->d->ops[at].null_at = schema->null_at;
    return TARN_OK;
}

static tarn_code skip_union(planner *pl, const avro_schema *schema) {
    int32_t null_at;
    const avro_schema *value = avro_schema_value(schema, &null_at);
    avro_op *op = NULL;
    size_t *jumps = NULL;
    size_t at = pl->d->n_ops;
    tarn_code code = TARN_OK;
    if (value != NULL && null_at >= 0) {
        TRY(push(pl, AVRO_OP_SKIP_OPTIONAL, NULL, &op));
        op->null_at = null_at;
        TRY(skip_value(pl, value));
    } else {
        TRY(push(pl, AVRO_OP_SKIP_UNION, NULL, &op));
        TRY(new_jumps(pl, at, schema, &jumps));
        for (int32_t i = 0; i < schema->n; i++) {
            jumps[i] = pl->d->n_ops - at;
            pl->barrier = pl->d->n_ops;
            TRY(skip_value(pl, schema->branches[i]));
        }
        jumps[schema->n] = pl->d->n_ops - at;
    }
    end_body(pl, at);
done:
    return code;
}

static tarn_code skip_value(planner *pl, const avro_schema *schema) {
    tarn_code code = TARN_OK;
    switch (schema->kind) {
    case AVRO_NULL:
        return TARN_OK;
    case AVRO_BOOLEAN:
        return skip_simple(pl, AVRO_OP_SKIP_BYTES, 1);
    case AVRO_INT:
    case AVRO_LONG:
    case AVRO_ENUM:
        return skip_simple(pl, AVRO_OP_SKIP_VARINTS, 1);
    case AVRO_FLOAT:
        return skip_simple(pl, AVRO_OP_SKIP_BYTES, 4);
    case AVRO_DOUBLE:
        return skip_simple(pl, AVRO_OP_SKIP_BYTES, 8);
    case AVRO_FIXED:
        return skip_simple(pl, AVRO_OP_SKIP_BYTES, (size_t)schema->size);
    case AVRO_BYTES:
    case AVRO_STRING:
        return skip_simple(pl, AVRO_OP_SKIP_SIZED, 1);
    case AVRO_ARRAY:
    case AVRO_MAP:
        return skip_items(pl, schema);
    case AVRO_UNION:
        return skip_union(pl, schema);
    case AVRO_RECORD:
        for (int32_t i = 0; i < schema->n && code == TARN_OK; i++) {
            code = skip_value(pl, schema->fields[i].schema);
        }
        return code;
    }
    return code;
}

/* ---- reading ---- */

static tarn_code read_value(planner *pl, const avro_schema *schema, const tarn_type *type,
                            int32_t below, tarn_builder *b);

static avro_opcode simple_opcode(const avro_schema *schema, size_t *n) {
    *n = 0;
    switch (schema->kind) {
    case AVRO_BOOLEAN:
        return AVRO_OP_BOOLEAN;
    case AVRO_INT:
        *n = 1000;
        return schema->logical == AVRO_TIME_MILLIS ? AVRO_OP_SCALED : AVRO_OP_INT;
    case AVRO_LONG:
        *n = 1000;
        return schema->logical == AVRO_TIMESTAMP_MILLIS || schema->logical == AVRO_LOCAL_MILLIS
                   ? AVRO_OP_SCALED
                   : AVRO_OP_LONG;
    case AVRO_FLOAT:
        *n = 4;
        return AVRO_OP_FIXED;
    case AVRO_DOUBLE:
        *n = 8;
        return AVRO_OP_FIXED;
    case AVRO_FIXED:
        *n = (size_t)schema->size;
        return schema->logical == AVRO_DECIMAL ? AVRO_OP_DECIMAL : AVRO_OP_FIXED;
    case AVRO_BYTES:
        return schema->logical == AVRO_DECIMAL ? AVRO_OP_DECIMAL : AVRO_OP_BYTES;
    case AVRO_STRING:
        return schema->logical == AVRO_UUID ? AVRO_OP_UUID_TEXT : AVRO_OP_STRING;
    case AVRO_ENUM:
        return AVRO_OP_ENUM;
    case AVRO_NULL:
    case AVRO_RECORD:
    case AVRO_ARRAY:
    case AVRO_MAP:
    case AVRO_UNION:
        break;
    }
    return AVRO_OP_NULL;
}

static tarn_code read_simple(planner *pl, const avro_schema *schema, tarn_builder *b) {
    avro_op *op = NULL;
    size_t n = 0;
    avro_opcode opcode = simple_opcode(schema, &n);
    tarn_code code = push(pl, opcode, b, &op);
    if (code == TARN_OK) {
        op->n = n;
        op->schema = schema;
    }
    return code;
}

/* A value if its node was selected, else what jumps over it; *child counts the builders used. */
static tarn_code read_or_skip(planner *pl, const avro_schema *schema, const tarn_field *field,
                              int32_t node, tarn_builder *b, int32_t *child) {
    if (!is_selected(pl, node)) {
        return skip_value(pl, schema);
    }
    return read_value(pl, schema, field->type, node + 1, &b->children[(*child)++]);
}

static tarn_code read_record(planner *pl, const avro_schema *schema, const tarn_type *type,
                             int32_t below, tarn_builder *b) {
    avro_op *op = NULL;
    int32_t child = 0;
    tarn_code code = TARN_OK;
    if (schema->logical == AVRO_VARIANT && type->kind == TARN_VARIANT) {
        TRY(read_simple(pl, schema->fields[0].schema, &b->children[0]));
        TRY(read_simple(pl, schema->fields[1].schema, &b->children[1]));
        return push(pl, AVRO_OP_CLOSE, b, &op);
    }
    for (int32_t i = 0; i < schema->n; i++) {
        TRY(read_or_skip(pl, schema->fields[i].schema, &type->fields[i], below, b, &child));
        below += type_field_span(&type->fields[i]);
    }
    TRY(push(pl, AVRO_OP_CLOSE, b, &op));
done:
    return code;
}

static tarn_code read_items(planner *pl, const avro_schema *schema, const tarn_type *type,
                            int32_t below, tarn_builder *b) {
    const avro_schema *items = schema->branches[0];
    avro_op *op = NULL;
    size_t at = pl->d->n_ops;
    int32_t child = 0;
    tarn_code code = TARN_OK;
    TRY(push(pl, AVRO_OP_ITEMS, b, &op));
    op->min_bytes = least_bytes(items) + (schema->kind == AVRO_MAP ? 1 : 0);
    if (type->kind == TARN_LIST) {
        TRY(read_or_skip(pl, items, &type->fields[0], below, b, &child));
    } else {
        int32_t value_node = below + type_field_span(&type->fields[0]);
        if (schema->kind == AVRO_MAP) {
            TRY(push(pl, AVRO_OP_STRING, &b->children[0], &op));
            child = 1;
        } else {
            TRY(read_or_skip(pl, items->fields[0].schema, &type->fields[0], below, b, &child));
            items = items->fields[1].schema;
        }
        TRY(read_or_skip(pl, items, &type->fields[1], value_node, b, &child));
    }
    end_body(pl, at);
done:
    return code;
}

/* Several branches: the type is a struct with a member for each that is not null. */
static tarn_code read_members(planner *pl, const avro_schema *schema, const tarn_type *type,
                              int32_t below, tarn_builder *b) {
    avro_op *op = NULL;
    size_t *jumps = NULL;
    size_t at = pl->d->n_ops;
    int32_t child = 0;
    int32_t member = 0;
    tarn_code code = TARN_OK;
    TRY(push(pl, AVRO_OP_UNION, b, &op));
    TRY(new_jumps(pl, at, schema, &jumps));
    for (int32_t i = 0; i < schema->n; i++) {
        jumps[i] = pl->d->n_ops - at;
        pl->barrier = pl->d->n_ops;
        if (i != schema->null_at) {
            const tarn_field *field = &type->fields[member++];
            TRY(read_or_skip(pl, schema->branches[i], field, below, b, &child));
            below += type_field_span(field);
        }
    }
    jumps[schema->n] = pl->d->n_ops - at;
    end_body(pl, at);
done:
    return code;
}

static tarn_code read_union(planner *pl, const avro_schema *schema, const tarn_type *type,
                            int32_t below, tarn_builder *b) {
    int32_t null_at;
    const avro_schema *value = avro_schema_value(schema, &null_at);
    avro_op *op = NULL;
    size_t at = pl->d->n_ops;
    tarn_code code = TARN_OK;
    if (schema->n == 1) { /* its branch number is always 0 and says nothing */
        TRY(skip_simple(pl, AVRO_OP_SKIP_VARINTS, 1));
        return read_value(pl, schema->branches[0], type, below, b);
    }
    if (value == NULL) {
        return read_members(pl, schema, type, below, b);
    }
    TRY(push(pl, AVRO_OP_OPTIONAL, b, &op));
    op->null_at = null_at;
    TRY(read_value(pl, value, type, below, b));
    end_body(pl, at);
done:
    return code;
}

/* below: the node of the first field of type, if it has any. */
static tarn_code read_value(planner *pl, const avro_schema *schema, const tarn_type *type,
                            int32_t below, tarn_builder *b) {
    switch (schema->kind) {
    case AVRO_RECORD:
        return read_record(pl, schema, type, below, b);
    case AVRO_ARRAY:
    case AVRO_MAP:
        return read_items(pl, schema, type, below, b);
    case AVRO_UNION:
        return read_union(pl, schema, type, below, b);
    case AVRO_NULL:
    case AVRO_BOOLEAN:
    case AVRO_INT:
    case AVRO_LONG:
    case AVRO_FLOAT:
    case AVRO_DOUBLE:
    case AVRO_BYTES:
    case AVRO_STRING:
    case AVRO_ENUM:
    case AVRO_FIXED:
        break;
    }
    return read_simple(pl, schema, b);
}

tarn_code avro_decoder_init(avro_decoder *d, tarn_arena *arena, const avro_schema *schema,
                            const tarn_type *full, const uint8_t *selected,
                            const tarn_type *read_type, tarn_error *err) {
    memset(d, 0, sizeof *d);
    d->env = arena->env;
    planner pl = {.d = d, .arena = arena, .selected = selected, .err = err};
    avro_op *op = NULL;
    tarn_code code = TARN_OK;
    TRY(builder_init(&d->rows, d->env, read_type, err));
    d->min_bytes = least_bytes(schema);
    if (schema->kind == AVRO_RECORD && schema->logical != AVRO_VARIANT) {
        TRY(read_record(&pl, schema, full, 0, &d->rows));
    } else {
        int32_t child = 0;
        TRY(read_or_skip(&pl, schema, &full->fields[0], 0, &d->rows, &child));
        TRY(push(&pl, AVRO_OP_CLOSE, &d->rows, &op));
    }
done:
    if (code != TARN_OK) {
        avro_decoder_release(d);
    }
    return code;
}

void avro_decoder_release(avro_decoder *d) {
    builder_release(&d->rows);
}
