/* format/parquet/parquet_schema_make.c - the Parquet schema that tarn writes for a tarn type:
 * three-level lists and maps, logical and converted annotations, field ids (Iceberg specification,
 * Appendix A, "Parquet"). */
#include "base/num.h"
#include "format/parquet/parquet_schema_int.h"

typedef struct maker {
    tarn_arena *arena;
    tarn_error *err;
    parquet_element *elements;
    int32_t n_elements;
    parquet_node *nodes;
    int32_t n_nodes;
    parquet_leaf *leaves;
    int32_t n_leaves;
    parquet_trail trail;
} maker;

typedef struct spot {
    uint32_t def;
    uint32_t rep;
    int32_t depth;
    int32_t n_names;
} spot;

static void annotate(parquet_element *e, int logical, int32_t converted) {
    THRIFT_SET(e, PARQUET_ELEMENT_LOGICAL);
    THRIFT_SET(&e->logical, logical);
    if (converted >= 0) {
        THRIFT_SET(e, PARQUET_ELEMENT_CONVERTED);
        e->converted = converted;
    }
}

static parquet_element *add_element(maker *m, tarn_str name, int32_t repetition) {
    parquet_element *e = &m->elements[m->n_elements++];
    memset(e, 0, sizeof *e);
    e->name = name;
    e->repetition = repetition;
    THRIFT_SET(e, PARQUET_ELEMENT_REPETITION);
    return e;
}

static void set_children(parquet_element *e, int32_t n) {
    e->num_children = n;
    THRIFT_SET(e, PARQUET_ELEMENT_NUM_CHILDREN);
}

static void set_physical(parquet_element *e, int32_t physical, int32_t length) {
    e->type = physical;
    THRIFT_SET(e, PARQUET_ELEMENT_TYPE);
    if (physical == PARQUET_FIXED_LEN_BYTE_ARRAY) {
        e->type_length = length;
        THRIFT_SET(e, PARQUET_ELEMENT_TYPE_LENGTH);
    }
}

/* The fewest bytes that hold precision digits and a sign. */
static int32_t decimal_bytes(int32_t precision) {
    tarn_int128 top = num_pow10_i128(precision) - 1;
    int32_t bits = 1;
    while (top > 0) {
        bits++;
        top >>= 1;
    }
    return (bits + 7) / 8;
}

static void set_decimal(parquet_element *e, const tarn_type *type) {
    if (type->precision <= 9) {
        set_physical(e, PARQUET_INT32, 0);
    } else if (type->precision <= 18) {
        set_physical(e, PARQUET_INT64, 0);
    } else {
        set_physical(e, PARQUET_FIXED_LEN_BYTE_ARRAY, decimal_bytes(type->precision));
    }
    annotate(e, PARQUET_LOGICAL_DECIMAL, PARQUET_CONVERTED_DECIMAL);
    e->logical.decimal.precision = e->precision = type->precision;
    e->logical.decimal.scale = e->scale = type->scale;
    THRIFT_SET(e, PARQUET_ELEMENT_PRECISION);
    THRIFT_SET(e, PARQUET_ELEMENT_SCALE);
}

static void set_timestamp(parquet_element *e, bool zoned, int unit) {
    set_physical(e, PARQUET_INT64, 0);
    /* The converted type cannot say "local time"; readers of it take UTC, as parquet-format asks.
     */
    annotate(e, PARQUET_LOGICAL_TIMESTAMP,
             unit == PARQUET_UNIT_MICROS && zoned ? PARQUET_CONVERTED_TIMESTAMP_MICROS : -1);
    e->logical.timestamp.is_adjusted_to_utc = zoned;
    THRIFT_SET(&e->logical.timestamp.unit, unit);
}

/* The text of the type is "geometry(crs)" or "geography(crs, algorithm)", or empty. */
static void set_geo(parquet_element *e, const tarn_type *type) {
    static const char *const algorithms[] = {"spherical", "vincenty", "thomas", "andoyer",
                                             "karney"};
    const bool geography = type->kind == TARN_GEOGRAPHY;
    set_physical(e, PARQUET_BYTE_ARRAY, 0);
    annotate(e, geography ? PARQUET_LOGICAL_GEOGRAPHY : PARQUET_LOGICAL_GEOMETRY, -1);
    parquet_logical_geo *geo = geography ? &e->logical.geography : &e->logical.geometry;
    tarn_str crs = type->text;
    size_t open = 0;
    size_t comma = 0;
    if (str_find_char(crs, '(', &open) && str_ends_with(crs, STR(")"))) {
        crs = str_trim(str_sub(crs, open + 1, crs.len - open - 2));
    }
    if (geography && str_find_last_char(crs, ',', &comma)) {
        tarn_str algorithm = str_trim(str_from(crs, comma + 1));
        for (int32_t i = 0; i < 5; i++) {
            if (str_eq_nocase(algorithm, str_of(algorithms[i]))) {
                geo->algorithm = i;
                THRIFT_SET(geo, PARQUET_GEO_ALGORITHM);
            }
        }
        crs = str_trim(str_sub(crs, 0, comma));
    }
    if (crs.len > 0) {
        geo->crs = crs;
        THRIFT_SET(geo, PARQUET_GEO_CRS);
    }
}

static void set_type(parquet_element *e, const tarn_type *type) {
    switch (type->kind) {
    case TARN_BOOLEAN:
        set_physical(e, PARQUET_BOOLEAN, 0);
        break;
    case TARN_INT:
        set_physical(e, PARQUET_INT32, 0);
        break;
    case TARN_LONG:
        set_physical(e, PARQUET_INT64, 0);
        break;
    case TARN_FLOAT:
        set_physical(e, PARQUET_FLOAT, 0);
        break;
    case TARN_DOUBLE:
        set_physical(e, PARQUET_DOUBLE, 0);
        break;
    case TARN_DECIMAL:
        set_decimal(e, type);
        break;
    case TARN_DATE:
        set_physical(e, PARQUET_INT32, 0);
        annotate(e, PARQUET_LOGICAL_DATE, PARQUET_CONVERTED_DATE);
        break;
    case TARN_TIME:
        set_physical(e, PARQUET_INT64, 0);
        annotate(e, PARQUET_LOGICAL_TIME, -1);
        THRIFT_SET(&e->logical.time.unit, PARQUET_UNIT_MICROS);
        break;
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
        set_timestamp(e, type->kind == TARN_TIMESTAMPTZ, PARQUET_UNIT_MICROS);
        break;
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        set_timestamp(e, type->kind == TARN_TIMESTAMPTZ_NS, PARQUET_UNIT_NANOS);
        break;
    case TARN_STRING:
        set_physical(e, PARQUET_BYTE_ARRAY, 0);
        annotate(e, PARQUET_LOGICAL_STRING, PARQUET_CONVERTED_UTF8);
        break;
    case TARN_UUID:
        set_physical(e, PARQUET_FIXED_LEN_BYTE_ARRAY, 16);
        annotate(e, PARQUET_LOGICAL_UUID, -1);
        break;
    case TARN_FIXED:
        set_physical(e, PARQUET_FIXED_LEN_BYTE_ARRAY, type->length);
        break;
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
        set_geo(e, type);
        break;
    case TARN_BINARY:
        set_physical(e, PARQUET_BYTE_ARRAY, 0);
        break;
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
}

static spot below_name(maker *m, spot at, tarn_str name) {
    m->trail.names[at.n_names++] = name;
    return at;
}

static tarn_code make_leaf(maker *m, parquet_element *e, spot at, int32_t node,
                           const tarn_type *type) {
    parquet_leaf *leaf = &m->leaves[m->n_leaves++];
    *leaf = (parquet_leaf){.element = e,
                           .type = type,
                           .node = node,
                           .physical = e->type,
                           .type_length = e->type_length,
                           .max_def = (uint8_t)at.def,
                           .max_rep = (uint8_t)at.rep};
    at = below_name(m, at, e->name);
    return parquet_schema_path(m->arena, &m->trail, at.n_names, leaf, m->err);
}

static tarn_code make_field(maker *m, const tarn_field *field, spot at);

static tarn_code make_variant(maker *m, spot at, int32_t node) {
    static const char *const names[2] = {"metadata", "value"};
    m->nodes[node].leaf = m->n_leaves;
    m->nodes[node].value_leaf = m->n_leaves + 1;
    for (int i = 0; i < 2; i++) {
        parquet_element *e = add_element(m, str_of(names[i]), PARQUET_REQUIRED);
        set_physical(e, PARQUET_BYTE_ARRAY, 0);
        tarn_code code = make_leaf(m, e, at, node, type_primitive(TARN_BINARY));
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static int32_t stored_fields(const tarn_type *type) {
    int32_t n = 0;
    for (int32_t i = 0; i < type->n_fields; i++) {
        n += type->fields[i].type->kind != TARN_UNKNOWN;
    }
    return n;
}

/* What lies below a nested element e. */
static tarn_code make_children(maker *m, parquet_element *e, const tarn_type *type, spot at,
                               int32_t node) {
    if (type->kind == TARN_VARIANT) {
        annotate(e, PARQUET_LOGICAL_VARIANT, -1);
        e->logical.variant.specification_version = 1;
        THRIFT_SET(&e->logical.variant, PARQUET_VARIANT_VERSION);
        set_children(e, 2);
        return make_variant(m, at, node);
    }
    int32_t n = stored_fields(type);
    if (n == 0 || (type->kind != TARN_STRUCT && n != type->n_fields)) {
        return err_set(m->err, TARN_INVALID, "column %.*s held nothing that Parquet can store",
                       STR_ARG(e->name));
    }
    if (type->kind == TARN_STRUCT) {
        set_children(e, n);
    } else {
        const bool list = type->kind == TARN_LIST;
        annotate(e, list ? PARQUET_LOGICAL_LIST : PARQUET_LOGICAL_MAP,
                 list ? PARQUET_CONVERTED_LIST : PARQUET_CONVERTED_MAP);
        set_children(e, 1);
        tarn_str name = list ? STR("list") : STR("key_value");
        set_children(add_element(m, name, PARQUET_REPEATED), n);
        at.def++;
        at.rep++;
        at = below_name(m, at, name);
        m->nodes[node].def_entry = (uint8_t)at.def;
        m->nodes[node].rep = (uint8_t)at.rep;
    }
    for (int32_t i = 0; i < type->n_fields; i++) {
        tarn_code code = make_field(m, &type->fields[i], at);
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static tarn_code make_field(maker *m, const tarn_field *field, spot at) {
    if (++at.depth > LIMIT_NESTING) {
        return err_set(m->err, TARN_LIMIT, "the schema was nested deeper than %d levels",
                       LIMIT_NESTING);
    }
    const tarn_type *type = field->type;
    int32_t index = m->n_nodes++;
    parquet_node *node = &m->nodes[index];
    at.def += field->required ? 0 : 1;
    *node = (parquet_node){.field = field,
                           .leaf = -1,
                           .value_leaf = -1,
                           .is_nullable = !field->required,
                           .def = (uint8_t)at.def,
                           .def_entry = (uint8_t)at.def,
                           .rep = (uint8_t)at.rep,
                           .first_leaf = m->n_leaves};
    tarn_code code = TARN_OK;
    if (type->kind != TARN_UNKNOWN) {
        parquet_element *e =
            add_element(m, field->name, field->required ? PARQUET_REQUIRED : PARQUET_OPTIONAL);
        if (field->id >= 0) {
            e->field_id = field->id;
            THRIFT_SET(e, PARQUET_ELEMENT_FIELD_ID);
        }
        if (type_is_nested(type) || type->kind == TARN_VARIANT) {
            at = below_name(m, at, field->name);
            code = make_children(m, e, type, at, index);
        } else {
            set_type(e, type);
            node->leaf = m->n_leaves;
            code = make_leaf(m, e, at, index, type);
        }
    }
    node->span = m->n_nodes - index;
    node->end_leaf = m->n_leaves;
    return code;
}

tarn_code parquet_schema_from_type(tarn_arena *arena, const tarn_type *root, const char *name,
                                   const parquet_schema **out, tarn_error *err) {
    const size_t n_nodes = (size_t)type_node_count(root);
    if (n_nodes > LIMIT_SCHEMA_FIELDS) {
        return err_set(err, TARN_LIMIT, "the schema had more than %d fields", LIMIT_SCHEMA_FIELDS);
    }
    /* A variant takes three elements and two leaves, a list or map two elements. */
    maker m = {.arena = arena,
               .err = err,
               .elements = ARENA_ARRAY(arena, parquet_element, n_nodes * 3 + 1),
               .nodes = ARENA_ARRAY(arena, parquet_node, n_nodes + 1),
               .leaves = ARENA_ARRAY(arena, parquet_leaf, n_nodes * 2 + 1)};
    parquet_schema *schema = ARENA_NEW(arena, parquet_schema);
    if (m.elements == NULL || m.nodes == NULL || m.leaves == NULL || schema == NULL) {
        return err_nomem(err);
    }
    parquet_element *top = add_element(&m, str_of(name), PARQUET_REQUIRED);
    THRIFT_UNSET(top, PARQUET_ELEMENT_REPETITION);
    set_children(top, stored_fields(root));
    spot at = {0, 0, 0, 0};
    for (int32_t i = 0; i < root->n_fields; i++) {
        tarn_code code = make_field(&m, &root->fields[i], at);
        if (code != TARN_OK) {
            return code;
        }
    }
    *schema =
        (parquet_schema){root, m.elements, m.n_elements, m.nodes, m.n_nodes, m.leaves, m.n_leaves};
    *out = schema;
    return TARN_OK;
}
