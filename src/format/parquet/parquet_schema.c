/* format/parquet/parquet_schema.c - a file's schema elements as a tarn type with levels
 * (parquet-format, LogicalTypes.md, with its rules of backward compatibility for lists and maps).
 *
 * Elements are walked once, depth first; nodes and leaves come out in the order of type_node and of
 * the row groups' column chunks. Annotations that do not fit their physical type are ignored. */
#include "format/parquet/parquet_schema.h"

#include "format/parquet/parquet_schema_int.h"

typedef struct walker {
    tarn_arena *arena;
    tarn_error *err;
    const parquet_element *elements;
    int32_t n_elements;
    const int32_t *ends; /* element after the subtree of each */
    bool int96_zoned;
    parquet_node *nodes;
    int32_t n_nodes;
    parquet_leaf *leaves;
    int32_t n_leaves;
    parquet_trail trail;
} walker;

/* Where in the tree something stands: levels above it, and how many names lead to it. */
typedef struct place {
    uint32_t def;
    uint32_t rep;
    int32_t depth;
    int32_t n_names;
} place;

static bool is_group(const parquet_element *e) {
    return !THRIFT_HAS(e, PARQUET_ELEMENT_TYPE);
}

static int32_t child_count(const parquet_element *e) {
    return is_group(e) && THRIFT_HAS(e, PARQUET_ELEMENT_NUM_CHILDREN) ? e->num_children : 0;
}

static bool is_repeated(const parquet_element *e) {
    return THRIFT_HAS(e, PARQUET_ELEMENT_REPETITION) && e->repetition == PARQUET_REPEATED;
}

static bool is_optional(const parquet_element *e) {
    return THRIFT_HAS(e, PARQUET_ELEMENT_REPETITION) && e->repetition == PARQUET_OPTIONAL;
}

static bool is_logical(const parquet_element *e, int id) {
    return THRIFT_HAS(e, PARQUET_ELEMENT_LOGICAL) && THRIFT_HAS(&e->logical, id);
}

static bool is_converted(const parquet_element *e, int32_t converted) {
    return THRIFT_HAS(e, PARQUET_ELEMENT_CONVERTED) && e->converted == converted;
}

static bool is_list(const parquet_element *e) {
    return is_logical(e, PARQUET_LOGICAL_LIST) || is_converted(e, PARQUET_CONVERTED_LIST);
}

static bool is_map(const parquet_element *e) {
    return is_logical(e, PARQUET_LOGICAL_MAP) || is_converted(e, PARQUET_CONVERTED_MAP) ||
           is_converted(e, PARQUET_CONVERTED_MAP_KEY_VALUE);
}

static tarn_code bad_element(walker *w, int32_t at, const char *problem) {
    return err_set(w->err, TARN_CORRUPT, "schema element %d (%.*s) %s", at,
                   STR_ARG(w->elements[at].name), problem);
}

/* Checks the shape of the whole list of elements and fills ends. */
static tarn_code measure(walker *w, int32_t *ends) {
    int32_t open[LIMIT_NESTING + 2];    /* groups whose children are not all seen */
    int32_t missing[LIMIT_NESTING + 2]; /* how many */
    int depth = 0;
    for (int32_t i = 0; i < w->n_elements; i++) {
        const parquet_element *e = &w->elements[i];
        if (i > 0 && depth == 0) {
            return bad_element(w, i, "stood after the end of the schema");
        }
        if (child_count(e) < 0) {
            return bad_element(w, i, "had a negative number of children");
        }
        if (!is_group(e) && THRIFT_HAS(e, PARQUET_ELEMENT_NUM_CHILDREN) && e->num_children > 0) {
            return bad_element(w, i, "had a type and children");
        }
        if (THRIFT_HAS(e, PARQUET_ELEMENT_REPETITION) &&
            (e->repetition < 0 || e->repetition > PARQUET_REPEATED)) {
            return bad_element(w, i, "had an unknown repetition");
        }
        if (!str_utf8_valid(e->name)) {
            return bad_element(w, i, "had a name that was not UTF-8");
        }
        ends[i] = i + 1;
        if (child_count(e) > 0) {
            if (depth > LIMIT_NESTING) {
                return err_set(w->err, TARN_LIMIT, "the schema was nested deeper than %d levels",
                               LIMIT_NESTING);
            }
            open[depth] = i;
            missing[depth++] = child_count(e);
            continue;
        }
        while (depth > 0 && --missing[depth - 1] == 0) {
            ends[open[--depth]] = i + 1;
        }
    }
    return depth == 0 ? TARN_OK : bad_element(w, open[depth - 1], "lacked children");
}

tarn_code parquet_schema_path(tarn_arena *arena, const parquet_trail *trail, int32_t n,
                              parquet_leaf *leaf, tarn_error *err) {
    size_t len = 0;
    for (int32_t i = 0; i < n; i++) {
        len += trail->names[i].len + 1;
    }
    char *text = arena_alloc(arena, len + 1);
    tarn_str *parts = ARENA_ARRAY(arena, tarn_str, (size_t)n + 1);
    if (text == NULL || parts == NULL) {
        return err_nomem(err);
    }
    size_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        if (i > 0) {
            text[at++] = '.';
        }
        parts[i] = trail->names[i];
        if (parts[i].len > 0) {
            memcpy(text + at, parts[i].data, parts[i].len);
        }
        at += parts[i].len;
    }
    leaf->path = str_make(text, at);
    leaf->parts = parts;
    leaf->n_parts = n;
    return TARN_OK;
}

/* The place below one more named element. Measuring has bounded how deep that goes. */
static place below_name(walker *w, const place *at, int32_t e) {
    place below = *at;
    w->trail.names[below.n_names++] = w->elements[e].name;
    return below;
}

static const tarn_type *int_type(const parquet_element *e) {
    int width = e->type == PARQUET_INT32 ? 32 : 64;
    bool is_signed = true;
    if (is_logical(e, PARQUET_LOGICAL_INTEGER)) {
        width = e->logical.integer.bit_width;
        is_signed = e->logical.integer.is_signed;
    } else if (is_converted(e, PARQUET_CONVERTED_UINT_32)) {
        width = 32;
        is_signed = false;
    } else if (is_converted(e, PARQUET_CONVERTED_UINT_64)) {
        width = 64;
        is_signed = false;
    }
    if (e->type == PARQUET_INT32) {
        return type_primitive(!is_signed && width == 32 ? TARN_LONG : TARN_INT);
    }
    return !is_signed && width == 64 ? NULL : type_primitive(TARN_LONG);
}

static int time_unit(const parquet_time_unit *unit) {
    for (int id = PARQUET_UNIT_MILLIS; id <= PARQUET_UNIT_NANOS; id++) {
        if (THRIFT_HAS(unit, id)) {
            return id;
        }
    }
    return 0;
}

/* NULL: no annotation of time. Times of day in nanoseconds stay long, so that nothing is lost. */
static const tarn_type *time_type(const parquet_element *e) {
    bool is_long = e->type == PARQUET_INT64;
    if (!is_long &&
        (is_logical(e, PARQUET_LOGICAL_DATE) || is_converted(e, PARQUET_CONVERTED_DATE))) {
        return type_primitive(TARN_DATE);
    }
    if (is_logical(e, PARQUET_LOGICAL_TIME)) {
        int want = is_long ? PARQUET_UNIT_MICROS : PARQUET_UNIT_MILLIS;
        return time_unit(&e->logical.time.unit) == want ? type_primitive(TARN_TIME) : NULL;
    }
    if (is_long && is_logical(e, PARQUET_LOGICAL_TIMESTAMP)) {
        bool zoned = e->logical.timestamp.is_adjusted_to_utc;
        int unit = time_unit(&e->logical.timestamp.unit);
        if (unit == PARQUET_UNIT_NANOS) {
            return type_primitive(zoned ? TARN_TIMESTAMPTZ_NS : TARN_TIMESTAMP_NS);
        }
        return unit == 0 ? NULL : type_primitive(zoned ? TARN_TIMESTAMPTZ : TARN_TIMESTAMP);
    }
    if (is_converted(e, is_long ? PARQUET_CONVERTED_TIME_MICROS : PARQUET_CONVERTED_TIME_MILLIS)) {
        return type_primitive(TARN_TIME);
    }
    if (is_long && (is_converted(e, PARQUET_CONVERTED_TIMESTAMP_MILLIS) ||
                    is_converted(e, PARQUET_CONVERTED_TIMESTAMP_MICROS))) {
        return type_primitive(TARN_TIMESTAMPTZ);
    }
    return NULL;
}

/* False: not a decimal, or one that no tarn type holds (its bytes are then read as they are). */
static bool decimal_of(const parquet_element *e, int32_t *precision, int32_t *scale) {
    if (is_logical(e, PARQUET_LOGICAL_DECIMAL)) {
        *precision = e->logical.decimal.precision;
        *scale = e->logical.decimal.scale;
    } else if (is_converted(e, PARQUET_CONVERTED_DECIMAL)) {
        *precision = e->precision;
        *scale = THRIFT_HAS(e, PARQUET_ELEMENT_SCALE) ? e->scale : 0;
    } else {
        return false;
    }
    return *precision >= 1 && *precision <= 38 && *scale >= 0 && *scale <= *precision;
}

static const tarn_type *geo_type(walker *w, tarn_kind kind, const parquet_logical_geo *geo) {
    static const char *const algorithms[] = {"spherical", "vincenty", "thomas", "andoyer",
                                             "karney"};
    const char *algorithm = NULL;
    if (kind == TARN_GEOGRAPHY && THRIFT_HAS(geo, PARQUET_GEO_ALGORITHM) && geo->algorithm > 0 &&
        geo->algorithm < 5) {
        algorithm = algorithms[geo->algorithm];
    }
    tarn_type *type = ARENA_NEW(w->arena, tarn_type);
    if (type == NULL) {
        return NULL;
    }
    type->kind = kind;
    if (algorithm == NULL && !THRIFT_HAS(geo, PARQUET_GEO_CRS)) {
        return type;
    }
    tarn_str crs = THRIFT_HAS(geo, PARQUET_GEO_CRS) ? geo->crs : STR("OGC:CRS84");
    char *text = arena_printf(w->arena, "%s(%.*s%s%s)", type_kind_name(kind), STR_ARG(crs),
                              algorithm != NULL ? ", " : "", algorithm != NULL ? algorithm : "");
    type->text = str_of(text);
    return text != NULL ? type : NULL;
}

static const tarn_type *bytes_type(walker *w, const parquet_element *e) {
    if (is_logical(e, PARQUET_LOGICAL_STRING) || is_logical(e, PARQUET_LOGICAL_ENUM) ||
        is_logical(e, PARQUET_LOGICAL_JSON) || is_converted(e, PARQUET_CONVERTED_UTF8) ||
        is_converted(e, PARQUET_CONVERTED_ENUM) || is_converted(e, PARQUET_CONVERTED_JSON)) {
        return type_primitive(TARN_STRING);
    }
    if (is_logical(e, PARQUET_LOGICAL_GEOMETRY)) {
        return geo_type(w, TARN_GEOMETRY, &e->logical.geometry);
    }
    if (is_logical(e, PARQUET_LOGICAL_GEOGRAPHY)) {
        return geo_type(w, TARN_GEOGRAPHY, &e->logical.geography);
    }
    return type_primitive(TARN_BINARY);
}

/* NULL: no memory. Element's type and length were checked. */
static const tarn_type *leaf_type(walker *w, const parquet_element *e) {
    int32_t precision = 0, scale = 0;
    const tarn_type *type = NULL;
    if (is_logical(e, PARQUET_LOGICAL_UNKNOWN)) {
        return type_primitive(TARN_UNKNOWN);
    }
    switch ((parquet_physical)e->type) {
    case PARQUET_BOOLEAN:
        return type_primitive(TARN_BOOLEAN);
    case PARQUET_FLOAT:
        return type_primitive(TARN_FLOAT);
    case PARQUET_DOUBLE:
        return type_primitive(TARN_DOUBLE);
    case PARQUET_INT96:
        return type_primitive(w->int96_zoned ? TARN_TIMESTAMPTZ : TARN_TIMESTAMP);
    case PARQUET_INT32:
    case PARQUET_INT64:
        if (decimal_of(e, &precision, &scale)) {
            return type_decimal(w->arena, precision, scale);
        }
        type = time_type(e);
        type = type != NULL ? type : int_type(e);
        return type != NULL ? type : type_decimal(w->arena, 20, 0);
    case PARQUET_BYTE_ARRAY:
        return decimal_of(e, &precision, &scale) ? type_decimal(w->arena, precision, scale)
                                                 : bytes_type(w, e);
    case PARQUET_FIXED_LEN_BYTE_ARRAY:
        break;
    }
    if (decimal_of(e, &precision, &scale)) {
        return type_decimal(w->arena, precision, scale);
    }
    if (is_logical(e, PARQUET_LOGICAL_UUID) && e->type_length == 16) {
        return type_primitive(TARN_UUID);
    }
    if (is_logical(e, PARQUET_LOGICAL_FLOAT16) && e->type_length == 2) {
        return type_primitive(TARN_FLOAT);
    }
    return type_fixed(w->arena, e->type_length);
}

static tarn_code add_node(walker *w, const place *at, bool nullable, int32_t *out) {
    if (w->n_nodes >= LIMIT_SCHEMA_FIELDS) {
        return err_set(w->err, TARN_LIMIT, "the schema had more than %d fields",
                       LIMIT_SCHEMA_FIELDS);
    }
    parquet_node *node = &w->nodes[w->n_nodes];
    node->leaf = -1;
    node->value_leaf = -1;
    node->is_nullable = nullable;
    node->def = (uint8_t)at->def;
    node->def_entry = (uint8_t)at->def;
    node->rep = (uint8_t)at->rep;
    node->first_leaf = w->n_leaves;
    *out = w->n_nodes++;
    return TARN_OK;
}

static void end_node(walker *w, int32_t node) {
    w->nodes[node].span = w->n_nodes - node;
    w->nodes[node].end_leaf = w->n_leaves;
}

static tarn_code add_leaf(walker *w, int32_t e, const place *at, int32_t node,
                          const tarn_type *type) {
    const parquet_element *element = &w->elements[e];
    if (element->type < 0 || element->type > PARQUET_FIXED_LEN_BYTE_ARRAY) {
        return bad_element(w, e, "had an unknown physical type");
    }
    if (element->type == PARQUET_FIXED_LEN_BYTE_ARRAY &&
        (element->type_length <= 0 || element->type_length > (1 << 28))) {
        return bad_element(w, e, "had a bad length");
    }
    parquet_leaf *leaf = &w->leaves[w->n_leaves++];
    leaf->element = element;
    leaf->type = type;
    leaf->node = node;
    leaf->physical = element->type;
    leaf->type_length = element->type_length;
    leaf->max_def = (uint8_t)at->def;
    leaf->max_rep = (uint8_t)at->rep;
    place end = below_name(w, at, e);
    return parquet_schema_path(w->arena, &w->trail, end.n_names, leaf, w->err);
}

static tarn_code convert(walker *w, int32_t e, place at, bool as_element, tarn_field *out);

static tarn_code check_levels(walker *w, int32_t e, const place *at) {
    if (at->depth > LIMIT_NESTING || at->def > PARQUET_MAX_LEVEL || at->rep > PARQUET_MAX_LEVEL) {
        return err_set(w->err, TARN_LIMIT, "schema element %d was nested deeper than %d levels", e,
                       LIMIT_NESTING);
    }
    return TARN_OK;
}

static tarn_code convert_primitive(walker *w, int32_t e, const place *at, int32_t node,
                                   tarn_field *out) {
    tarn_code code = add_leaf(w, e, at, node, NULL);
    if (code != TARN_OK) {
        return code;
    }
    out->type = leaf_type(w, &w->elements[e]);
    w->nodes[node].leaf = w->n_leaves - 1;
    w->leaves[w->n_leaves - 1].type = out->type;
    return out->type != NULL ? TARN_OK : err_nomem(w->err);
}

static tarn_code convert_struct(walker *w, int32_t e, const place *at, tarn_field *out) {
    int32_t n = child_count(&w->elements[e]);
    tarn_field *fields = ARENA_ARRAY(w->arena, tarn_field, n > 0 ? (size_t)n : 1);
    if (fields == NULL) {
        return err_nomem(w->err);
    }
    place below = e == 0 ? *at : below_name(w, at, e);
    int32_t child = e + 1;
    for (int32_t i = 0; i < n; i++) {
        tarn_code code = convert(w, child, below, false, &fields[i]);
        if (code != TARN_OK) {
            return code;
        }
        child = w->ends[child];
    }
    out->type = type_struct(w->arena, fields, n);
    return out->type != NULL ? TARN_OK : err_nomem(w->err);
}

static bool is_plain_bytes(const parquet_element *e) {
    return !is_group(e) && e->type == PARQUET_BYTE_ARRAY && !is_repeated(e);
}

/* A variant that is more than metadata and value: its group becomes a schema of its own, from which
 * read_variant.c makes values. */
static tarn_code convert_shredded(walker *w, int32_t e, const place *at, int32_t node) {
    const walker outer = *w;
    parquet_schema *parts = ARENA_NEW(w->arena, parquet_schema);
    w->nodes = ARENA_ARRAY(w->arena, parquet_node, (size_t)(w->ends[e] - e) * 2);
    w->n_nodes = 0;
    if (parts == NULL || w->nodes == NULL) {
        return err_nomem(w->err);
    }
    tarn_field group = {0};
    tarn_code code = convert_struct(w, e, at, &group);
    if (code != TARN_OK) {
        return code;
    }
    int32_t linked = 0;
    parquet_schema_link(w->nodes, group.type, &linked);
    *parts = (parquet_schema){group.type, w->elements, w->n_elements, w->nodes,
                              w->n_nodes, w->leaves,   w->n_leaves};
    w->nodes = outer.nodes;
    w->n_nodes = outer.n_nodes;
    w->nodes[node].shredded = parts;
    for (int32_t i = 0; i < parts->n_nodes; i += parts->nodes[i].span) {
        if (str_is(parts->nodes[i].field->name, "metadata") &&
            parts->nodes[i].field->type->kind == TARN_BINARY) {
            w->nodes[node].leaf = parts->nodes[i].leaf;
        }
    }
    for (int32_t i = outer.n_leaves; i < w->n_leaves; i++) {
        w->leaves[i].node = node;
    }
    return TARN_OK;
}

static tarn_code convert_plain_variant(walker *w, int32_t e, const place *at, int32_t node) {
    int32_t child = e + 1;
    for (int32_t i = 0; i < child_count(&w->elements[e]); i++, child++) {
        place below = below_name(w, at, e);
        below.def += is_optional(&w->elements[child]) ? 1 : 0;
        if (str_is(w->elements[child].name, "metadata")) {
            w->nodes[node].leaf = w->n_leaves;
        } else {
            w->nodes[node].value_leaf = w->n_leaves;
        }
        tarn_code code = add_leaf(w, child, &below, node, type_primitive(TARN_BINARY));
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static tarn_code convert_variant(walker *w, int32_t e, const place *at, int32_t node,
                                 tarn_field *out) {
    const int32_t n = child_count(&w->elements[e]);
    int32_t n_metadata = 0, n_value = 0;
    for (int32_t i = 0, child = e + 1; i < n; i++, child = w->ends[child]) {
        const parquet_element *c = &w->elements[child];
        n_metadata += is_plain_bytes(c) && str_is(c->name, "metadata");
        n_value += is_plain_bytes(c) && str_is(c->name, "value");
    }
    out->type = type_primitive(TARN_VARIANT);
    tarn_code code = n == 2 && n_metadata == 1 && n_value == 1
                         ? convert_plain_variant(w, e, at, node)
                         : convert_shredded(w, e, at, node);
    if (code == TARN_OK && w->nodes[node].leaf < 0) {
        code = bad_element(w, e, "was a variant without metadata");
    }
    return code;
}

/* The repeated group below a list is its element itself, not a wrapper of it (rules 1 to 4). */
static bool repeated_is_element(const parquet_element *list, const parquet_element *repeated,
                                const parquet_element *only_child) {
    if (is_group(repeated) && child_count(repeated) == 1) {
        if (is_repeated(only_child) || is_list(repeated) || is_map(repeated)) {
            return true;
        }
        tarn_str name = repeated->name;
        return str_is(name, "array") ||
               (name.len == list->name.len + 6 && str_starts_with(name, list->name) &&
                str_ends_with(name, STR("_tuple")));
    }
    return true;
}

static tarn_code finish_list(walker *w, tarn_field element, tarn_field *out) {
    element.name = STR("element");
    out->type = type_list(w->arena, element);
    return out->type != NULL ? TARN_OK : err_nomem(w->err);
}

static tarn_code convert_list(walker *w, int32_t e, const place *at, int32_t node,
                              tarn_field *out) {
    const parquet_element *list = &w->elements[e];
    int32_t r = e + 1;
    place below = below_name(w, at, e);
    below.def++;
    below.rep++;
    below.depth++;
    w->nodes[node].def_entry = (uint8_t)below.def;
    w->nodes[node].rep = (uint8_t)below.rep;
    tarn_field element = {0};
    tarn_code code = check_levels(w, e, &below);
    if (code == TARN_OK && repeated_is_element(list, &w->elements[r], &w->elements[r] + 1)) {
        code = convert(w, r, below, true, &element);
    } else if (code == TARN_OK) {
        code = convert(w, r + 1, below_name(w, &below, r), false, &element);
    }
    return code == TARN_OK ? finish_list(w, element, out) : code;
}

/* A repeated field that stands alone is a required list of required elements. */
static tarn_code convert_repeated(walker *w, int32_t e, const place *at, int32_t node,
                                  tarn_field *out) {
    place below = *at;
    below.def++;
    below.rep++;
    below.depth++;
    w->nodes[node].def_entry = (uint8_t)below.def;
    w->nodes[node].rep = (uint8_t)below.rep;
    tarn_field element = {0};
    tarn_code code = check_levels(w, e, &below);
    if (code == TARN_OK) {
        code = convert(w, e, below, true, &element);
    }
    element.id = TARN_NO_ID;
    return code == TARN_OK ? finish_list(w, element, out) : code;
}

static tarn_code convert_map(walker *w, int32_t e, const place *at, int32_t node, tarn_field *out) {
    int32_t key = e + 2;
    place below = below_name(w, at, e);
    below = below_name(w, &below, e + 1);
    below.def++;
    below.rep++;
    below.depth++;
    w->nodes[node].def_entry = (uint8_t)below.def;
    w->nodes[node].rep = (uint8_t)below.rep;
    tarn_field fields[2] = {{0}, {0}};
    tarn_code code = check_levels(w, e, &below);
    if (code == TARN_OK) {
        code = convert(w, key, below, false, &fields[0]);
    }
    if (code == TARN_OK) {
        code = convert(w, w->ends[key], below, false, &fields[1]);
    }
    if (code != TARN_OK) {
        return code;
    }
    fields[0].name = STR("key");
    fields[1].name = STR("value");
    out->type = type_map(w->arena, fields[0], fields[1]);
    return out->type != NULL ? TARN_OK : err_nomem(w->err);
}

static bool has_list_shape(const parquet_element *e) {
    return is_list(e) && child_count(e) == 1 && is_repeated(e + 1) &&
           (!is_group(e + 1) || child_count(e + 1) > 0);
}

static bool has_map_shape(const parquet_element *e) {
    return is_map(e) && child_count(e) == 1 && is_repeated(e + 1) && is_group(e + 1) &&
           child_count(e + 1) == 2;
}

/* One field. as_element: its repetition is the enclosing list's and was counted there. */
static tarn_code convert(walker *w, int32_t e, place at, bool as_element, tarn_field *out) {
    const parquet_element *element = &w->elements[e];
    const bool alone = !as_element && is_repeated(element);
    const bool nullable = !as_element && is_optional(element);
    int32_t node = 0;
    at.depth++;
    at.def += nullable ? 1 : 0;
    tarn_code code = check_levels(w, e, &at);
    if (code == TARN_OK) {
        code = add_node(w, &at, nullable, &node);
    }
    if (code != TARN_OK) {
        return code;
    }
    out->id = THRIFT_HAS(element, PARQUET_ELEMENT_FIELD_ID) && element->field_id >= 0
                  ? element->field_id
                  : TARN_NO_ID;
    out->name = element->name;
    out->required = !nullable;
    if (alone) {
        code = convert_repeated(w, e, &at, node, out);
    } else if (!is_group(element)) {
        code = convert_primitive(w, e, &at, node, out);
    } else if (is_logical(element, PARQUET_LOGICAL_VARIANT)) {
        code = convert_variant(w, e, &at, node, out);
    } else if (has_list_shape(element)) {
        code = convert_list(w, e, &at, node, out);
    } else if (has_map_shape(element)) {
        code = convert_map(w, e, &at, node, out);
    } else {
        code = convert_struct(w, e, &at, out);
    }
    end_node(w, node);
    return code;
}

void parquet_schema_link(parquet_node *nodes, const tarn_type *type, int32_t *at) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        nodes[(*at)++].field = &type->fields[i];
        parquet_schema_link(nodes, type->fields[i].type, at);
    }
}

tarn_code parquet_schema_from_elements(tarn_arena *arena, const parquet_element *elements,
                                       int32_t n_elements, bool int96_zoned,
                                       const parquet_schema **out, tarn_error *err) {
    if (n_elements < 1 || !is_group(&elements[0])) {
        return err_set(err, TARN_CORRUPT, "the schema had no root");
    }
    /* A repeated primitive becomes two nodes. */
    const size_t cap = (size_t)n_elements * 2;
    int32_t *ends = ARENA_ARRAY(arena, int32_t, (size_t)n_elements);
    parquet_schema *schema = ARENA_NEW(arena, parquet_schema);
    walker w = {.arena = arena,
                .err = err,
                .elements = elements,
                .n_elements = n_elements,
                .ends = ends,
                .int96_zoned = int96_zoned,
                .nodes = ARENA_ARRAY(arena, parquet_node, cap),
                .leaves = ARENA_ARRAY(arena, parquet_leaf, (size_t)n_elements)};
    if (ends == NULL || schema == NULL || w.nodes == NULL || w.leaves == NULL) {
        return err_nomem(err);
    }
    tarn_code code = measure(&w, ends);
    if (code != TARN_OK) {
        return code;
    }
    tarn_field root = {0};
    place top = {0, 0, 0, 0};
    code = convert_struct(&w, 0, &top, &root);
    if (code != TARN_OK) {
        return code;
    }
    int32_t at = 0;
    parquet_schema_link(w.nodes, root.type, &at);
    tarn_assert(at == w.n_nodes);
    *schema =
        (parquet_schema){root.type, elements, n_elements, w.nodes, w.n_nodes, w.leaves, w.n_leaves};
    *out = schema;
    return TARN_OK;
}
