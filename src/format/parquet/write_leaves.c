/* write_leaves.c - from the type of the batches to the leaves of the file: the steps down to each,
 * how its values are compared, what the options say of it. The walk goes in the order in which
 * parquet_schema_from_type made the schema's leaves. */
#include "base/limits.h"
#include "format/parquet/parquet_write_int.h"

#define BLOOM_FPP 0.01

typedef struct walk {
    tarn_env *env;
    tarn_arena *arena;
    const parquet_schema *schema;
    const parquet_write_options *options;
    write_leaf *leaves;
    int32_t n_leaves;
    int32_t column;
    write_step steps[LIMIT_NESTING + 2];
    int32_t n_steps;
    tarn_str names[2 * LIMIT_NESTING + 4];
    int32_t n_names;
    tarn_error *err;
} walk;

static write_order order_of(const parquet_leaf *leaf, const tarn_type *type) {
    switch (type->kind) {
    case TARN_BOOLEAN:
        return ORDER_BOOL;
    case TARN_INT:
    case TARN_DATE:
        return ORDER_I32;
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return ORDER_I64;
    case TARN_FLOAT:
        return ORDER_F32;
    case TARN_DOUBLE:
        return ORDER_F64;
    case TARN_DECIMAL:
        return leaf->physical == PARQUET_INT32   ? ORDER_I32
               : leaf->physical == PARQUET_INT64 ? ORDER_I64
                                                 : ORDER_DECIMAL;
    case TARN_UUID:
    case TARN_FIXED:
        return ORDER_FIXED;
    case TARN_STRING:
    case TARN_BINARY:
        return ORDER_BYTES;
    case TARN_UNKNOWN:
    case TARN_VARIANT:  /* bytes of a variant have no order */
    case TARN_GEOMETRY: /* nor have those of shapes */
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return ORDER_NONE;
}

static size_t width_of(const parquet_leaf *leaf) {
    switch (leaf->physical) {
    case PARQUET_INT32:
    case PARQUET_FLOAT:
        return 4;
    case PARQUET_INT64:
    case PARQUET_DOUBLE:
        return 8;
    case PARQUET_FIXED_LEN_BYTE_ARRAY:
        return (size_t)leaf->type_length;
    default:
        return 0;
    }
}

static const void *copy_array(tarn_arena *arena, const void *from, size_t size_bytes) {
    void *copy = arena_alloc(arena, size_bytes);
    if (copy != NULL) {
        memcpy(copy, from, size_bytes);
    }
    return copy;
}

/* Options are given by the name in the table's schema: without "list" and "key_value". */
static tarn_code apply_options(walk *w, write_leaf *leaf, const tarn_field *field) {
    tarn_code code = TARN_OK;
    tarn_buf name;
    buf_init(&name, w->env, 0);
    leaf->stats_on = true;
    leaf->bloom_fpp = BLOOM_FPP;
    if (w->options->n_columns == 0) {
        return TARN_OK;
    }
    if (field->id >= 0) {
        TRY(type_full_name(w->schema->root, field->id, &name, w->err));
    } else {
        TRY(buf_append_str(&name, leaf->leaf->path, w->err));
    }
    for (size_t i = 0; i < w->options->n_columns; i++) {
        const parquet_column_options *c = &w->options->columns[i];
        if (!str_eq(c->name, buf_str(&name))) {
            continue;
        }
        leaf->stats_on = c->has_stats ? c->stats : leaf->stats_on;
        leaf->bloom_on = c->has_bloom && c->bloom && leaf->leaf->physical != PARQUET_BOOLEAN;
        leaf->bloom_fpp = c->bloom_fpp > 0 ? c->bloom_fpp : BLOOM_FPP;
        leaf->wanted = c->has_encoding ? c->encoding : PARQUET_WRITE_AUTO;
    }
done:
    buf_release(&name);
    return code;
}

static tarn_code add_leaf(walk *w, const tarn_field *field, const tarn_type *type, bool repeated) {
    if (w->n_leaves >= w->schema->n_leaves) {
        return err_set(w->err, TARN_INTERNAL, "the schema had fewer leaves than its type");
    }
    write_leaf *leaf = &w->leaves[w->n_leaves];
    leaf->options = w->options;
    leaf->leaf = &w->schema->leaves[w->n_leaves];
    leaf->field = field;
    leaf->column = w->column;
    leaf->n_steps = w->n_steps;
    leaf->n_path = w->n_names;
    leaf->steps = copy_array(w->arena, w->steps, (size_t)w->n_steps * sizeof *w->steps);
    leaf->path = copy_array(w->arena, w->names, (size_t)w->n_names * sizeof *w->names);
    if (leaf->steps == NULL || leaf->path == NULL) {
        return err_nomem(w->err);
    }
    leaf->order = field->type == type ? order_of(leaf->leaf, type) : ORDER_NONE;
    leaf->width = width_of(leaf->leaf);
    leaf->is_text = type->kind == TARN_STRING;
    leaf->in_repeated = repeated;
    leaf->env = w->env;
    w->n_leaves++;
    return apply_options(w, leaf, field);
}

static void push_step(walk *w, step_kind kind, bool optional, int32_t child) {
    w->steps[w->n_steps++] = (write_step){kind, optional, child};
}

static tarn_code walk_field(walk *w, const tarn_field *field, bool repeated);

static tarn_code walk_variant(walk *w, const tarn_field *field, bool repeated) {
    static const char *const names[2] = {"metadata", "value"};
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < 2 && code == TARN_OK; i++) {
        push_step(w, STEP_STRUCT, !field->required, i);
        push_step(w, STEP_LEAF, false, 0);
        w->names[w->n_names++] = str_of(names[i]);
        code = add_leaf(w, field, type_primitive(TARN_BINARY), repeated);
        w->n_steps -= 2;
        w->n_names--;
    }
    return code;
}

static tarn_code walk_children(walk *w, const tarn_field *field, bool repeated) {
    const tarn_type *type = field->type;
    bool is_struct = type->kind == TARN_STRUCT;
    int32_t names = w->n_names;
    tarn_code code = TARN_OK;
    if (!is_struct) {
        w->names[w->n_names++] = type->kind == TARN_LIST ? STR("list") : STR("key_value");
    }
    for (int32_t i = 0; i < type->n_fields && code == TARN_OK; i++) {
        push_step(w, is_struct ? STEP_STRUCT : STEP_LIST, !field->required, i);
        code = walk_field(w, &type->fields[i], repeated || !is_struct);
        w->n_steps--;
    }
    w->n_names = names;
    return code;
}

static tarn_code walk_field(walk *w, const tarn_field *field, bool repeated) {
    tarn_code code = TARN_OK;
    if (field->type->kind == TARN_UNKNOWN) {
        return TARN_OK;
    }
    if (w->n_steps >= LIMIT_NESTING) {
        return err_set(w->err, TARN_LIMIT, "the schema was nested deeper than %d levels",
                       LIMIT_NESTING);
    }
    w->names[w->n_names++] = field->name;
    if (field->type->kind == TARN_VARIANT) {
        code = walk_variant(w, field, repeated);
    } else if (type_is_nested(field->type)) {
        code = walk_children(w, field, repeated);
    } else {
        push_step(w, STEP_LEAF, !field->required, 0);
        code = add_leaf(w, field, field->type, repeated);
        w->n_steps--;
    }
    w->n_names--;
    return code;
}

tarn_code leaves_make(tarn_env *env, tarn_arena *arena, const parquet_schema *schema,
                      const parquet_write_options *options, write_leaf **out, tarn_error *err) {
    write_leaf *leaves = ARENA_ARRAY(arena, write_leaf, (size_t)schema->n_leaves + 1);
    walk *w = ARENA_NEW(arena, walk);
    if (leaves == NULL || w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    w->arena = arena;
    w->schema = schema;
    w->options = options;
    w->leaves = leaves;
    w->err = err;
    for (int32_t i = 0; i < schema->root->n_fields; i++) {
        w->column = i;
        tarn_code code = walk_field(w, &schema->root->fields[i], false);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (w->n_leaves != schema->n_leaves) {
        return err_set(err, TARN_INTERNAL, "the schema had more leaves than its type");
    }
    *out = leaves;
    return TARN_OK;
}
