/* dml/merge.c - MERGE by key: source rows update or delete the rows of their key, or are added.
 *
 *   source (whole, in memory) -> as the table's columns -> key -> row of the source
 *     -> filter (the keys, or their bounds), by which files are pruned
 *     -> rows of the table look their key up: matched ones are chosen, and mark the source row
 *     -> source rows that nobody marked are added
 *
 * Invariants: 1 a key is in the source once, and never null; 2 a source row is added only when no
 * live row of the table has its key. */
#include "base/map.h"
#include "dml/dml_int.h"
#include "table/key_rows.h"

#define MOST_IN 200 /* keys that the filter names one by one */

typedef struct merge_work {
    const dml_merge_options *options;
    const tarn_type *root; /* of the table */
    int32_t *key_ids;
    int32_t n_key_ids;
    tarn_batch source;         /* as columns of the table, those that the source has */
    const tarn_type *key_type; /* a struct of the key columns */
    tarn_map rows;             /* key -> row of source */
    key_rows source_keys;
    key_rows keys;    /* of the batch last looked at */
    tarn_buf matches; /* int32: rows of source of the rows chosen last */
    uint8_t *marked;  /* bits: source rows that were met */
} merge_work;

/* ---- the source ---- */

static tarn_code find_keys(dml_work *w, merge_work *m, tarn_error *err) {
    const tarn_schema *schema = metadata_schema(w->base->metadata);
    int32_t n = m->options->n_key > 0 ? m->options->n_key : schema->n_identifier_ids;
    if (n == 0) {
        return err_set(err, TARN_INVALID,
                       "a merge needs key columns: the table has no identifier fields");
    }
    m->key_ids = ARENA_ARRAY(&w->arena, int32_t, (size_t)n);
    tarn_field *fields = ARENA_ARRAY(&w->arena, tarn_field, (size_t)n);
    if (m->key_ids == NULL || fields == NULL) {
        return err_nomem(err);
    }
    m->n_key_ids = n;
    for (int32_t i = 0; i < n; i++) {
        const tarn_field *field =
            m->options->n_key > 0
                ? type_find_name(m->root, m->options->key[i], !w->options->case_insensitive)
                : type_find_id(m->root, schema->identifier_ids[i]);
        if (field == NULL) {
            tarn_str name = m->options->n_key > 0 ? m->options->key[i] : STR("of its identifiers");
            return err_set(err, TARN_INVALID, "the table has no key column %.*s", STR_ARG(name));
        }
        if (type_child(m->root, field->name) != field) {
            return err_set(err, TARN_UNSUPPORTED,
                           "key column %.*s lies inside another; a merge takes whole columns",
                           STR_ARG(field->name));
        }
        fields[i] = *field;
        m->key_ids[i] = field->id;
    }
    m->key_type = type_struct(&w->arena, fields, n);
    return m->key_type != NULL ? TARN_OK : err_nomem(err);
}

/* The table's columns that the source has, in the table's order. */
static tarn_code source_type(dml_work *w, const merge_work *m, const tarn_type **out,
                             tarn_error *err) {
    const tarn_type *given = m->options->source->type;
    tarn_field *fields = ARENA_ARRAY(&w->arena, tarn_field, (size_t)m->root->n_fields + 1);
    int32_t n = 0;
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < given->n_fields; i++) {
        if (type_child(m->root, given->fields[i].name) == NULL) {
            return err_set(err, TARN_INVALID, "the source has column %.*s, which the table lacks",
                           STR_ARG(given->fields[i].name));
        }
    }
    for (int32_t i = 0; i < m->root->n_fields; i++) {
        if (type_child(given, m->root->fields[i].name) != NULL) {
            fields[n++] = m->root->fields[i];
        }
    }
    for (int32_t i = 0; i < m->n_key_ids; i++) {
        const tarn_field *key = &m->key_type->fields[i];
        if (type_child(given, key->name) == NULL) {
            return err_set(err, TARN_INVALID, "the source lacks key column %.*s",
                           STR_ARG(key->name));
        }
    }
    *out = type_struct(&w->arena, fields, n);
    return *out != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code take_source(dml_work *w, merge_work *m, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *type;
    tarn_projection *plan;
    project_options options;
    tarn_batch copy;
    memset(&options, 0, sizeof options);
    memset(&copy, 0, sizeof copy);
    options.by_name = true;
    options.file = "source";
    int64_t rows = batch_rows(m->options->source);
    if (rows > INT32_MAX) {
        return err_set(err, TARN_LIMIT, "the source had more than %d rows", INT32_MAX);
    }
    TRY(source_type(w, m, &type, err));
    m->source.type = type;
    if (rows == 0) {
        goto done;
    }
    TRY(project_plan(&w->arena, m->options->source->type, type, &options, &plan, err));
    TRY(batch_slice(w->env, m->options->source, 0, rows, &copy, err));
    TRY(project_apply(plan, w->env, &copy, &m->source, err));
done:
    batch_release(&copy);
    return code;
}

static tarn_code name_key(const merge_work *m, int64_t row, tarn_buf *text, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < m->n_key_ids; i++) {
        const tarn_field *field = &m->key_type->fields[i];
        tarn_view view;
        tarn_value value;
        for (int32_t j = 0; j < m->source.type->n_fields; j++) {
            if (m->source.type->fields[j].id == field->id) {
                view_column(&m->source, j, &view);
            }
        }
        view_value(&view, row, &value);
        TRY(buf_printf(text, err, "%s%.*s = ", i > 0 ? ", " : "", STR_ARG(field->name)));
        TRY(value_to_text(&value, text, err));
    }
done:
    return code;
}

static tarn_code refuse_twice(dml_work *w, const merge_work *m, int64_t first, int64_t second,
                              tarn_error *err) {
    tarn_buf text;
    buf_init(&text, w->env, 0);
    tarn_code code = name_key(m, second, &text, err);
    if (code == TARN_OK) {
        code = err_set(err, TARN_INVALID, "the source has a key twice, in rows %lld and %lld: %.*s",
                       (long long)first + 1, (long long)second + 1, STR_ARG(buf_str(&text)));
    }
    buf_release(&text);
    return code;
}

static tarn_code check_nulls(const merge_work *m, tarn_error *err) {
    for (int32_t j = 0; j < m->source.type->n_fields; j++) {
        tarn_view view;
        if (type_find_id(m->key_type, m->source.type->fields[j].id) == NULL) {
            continue;
        }
        view_column(&m->source, j, &view);
        for (int64_t i = 0; view.validity != NULL && i < view.length; i++) {
            if (view_is_null(&view, i)) {
                return err_set(err, TARN_INVALID,
                               "key column %.*s is null in row %lld of the source",
                               STR_ARG(m->source.type->fields[j].name), (long long)i + 1);
            }
        }
    }
    return TARN_OK;
}

static tarn_code map_source(dml_work *w, merge_work *m, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t rows = batch_rows(&m->source);
    map_init(&m->rows, &w->arena);
    m->marked = ARENA_ARRAY(&w->arena, uint8_t, bit_bytes(rows) + 1);
    if (m->marked == NULL) {
        return err_nomem(err);
    }
    if (rows == 0) {
        return TARN_OK;
    }
    TRY(check_nulls(m, err));
    TRY(key_encode(&m->source_keys, &m->source, m->key_ids, m->n_key_ids, err));
    for (int64_t i = 0; i < rows; i++) {
        bool added;
        map_entry *entry = map_put(&m->rows, key_at(&m->source_keys, i), &added);
        if (entry == NULL) {
            code = err_nomem(err);
            goto done;
        }
        if (!added) {
            code = refuse_twice(w, m, entry->value.i64, i, err);
            goto done;
        }
        entry->value.i64 = i;
    }
done:
    return code;
}

/* ---- the filter ---- */

static bool is_ordered(const tarn_type *type) {
    return !type_is_nested(type) && type->kind != TARN_FLOAT && type->kind != TARN_DOUBLE &&
           type->kind != TARN_UNKNOWN && type->kind != TARN_VARIANT &&
           type->kind != TARN_GEOMETRY && type->kind != TARN_GEOGRAPHY;
}

static const tarn_expr *predicate(tarn_arena *arena, expr_op op, tarn_str name,
                                  const tarn_value *values, int32_t n) {
    tarn_expr *e = ARENA_NEW(arena, tarn_expr);
    if (e != NULL) {
        e->op = op;
        e->name = name;
        e->values = values;
        e->n_values = n;
    }
    return e;
}

/* What the source's keys say of one column. */
static tarn_code bound_column(dml_work *w, const tarn_view *view, tarn_str name,
                              const tarn_expr **out, tarn_error *err) {
    int32_t n = view->length <= MOST_IN ? (int32_t)view->length : 2;
    tarn_value *values = ARENA_ARRAY(&w->arena, tarn_value, (size_t)n);
    if (values == NULL) {
        return err_nomem(err);
    }
    if (view->length <= MOST_IN) {
        for (int32_t i = 0; i < n; i++) {
            view_value(view, i, &values[i]);
        }
        *out = predicate(&w->arena, EXPR_IN, name, values, n);
        return *out != NULL ? TARN_OK : err_nomem(err);
    }
    view_value(view, 0, &values[0]);
    values[1] = values[0];
    for (int64_t i = 1; i < view->length; i++) {
        tarn_value v;
        view_value(view, i, &v);
        values[0] = value_cmp(&v, &values[0]) < 0 ? v : values[0];
        values[1] = value_cmp(&v, &values[1]) > 0 ? v : values[1];
    }
    const tarn_expr *low = predicate(&w->arena, EXPR_GE, name, &values[0], 1);
    const tarn_expr *high = predicate(&w->arena, EXPR_LE, name, &values[1], 1);
    *out = low != NULL && high != NULL ? expr_and(&w->arena, low, high) : NULL;
    return *out != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code make_filter(dml_work *w, const merge_work *m, tarn_error *err) {
    tarn_code code = TARN_OK;
    w->filter = batch_rows(&m->source) == 0 ? expr_false() : expr_true();
    for (int32_t j = 0; j < m->source.type->n_fields && batch_rows(&m->source) > 0; j++) {
        const tarn_field *field = &m->source.type->fields[j];
        const tarn_expr *bounds;
        tarn_view view;
        if (type_find_id(m->key_type, field->id) == NULL || !is_ordered(field->type)) {
            continue;
        }
        view_column(&m->source, j, &view);
        TRY(bound_column(w, &view, field->name, &bounds, err));
        w->filter = expr_and(&w->arena, w->filter, bounds);
        if (w->filter == NULL) {
            code = err_nomem(err);
            goto done;
        }
    }
done:
    return code;
}

static tarn_code begin_merge(dml_work *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    merge_work *m = w->action->ctx;
    batch_release(&m->source);
    m->root = metadata_schema(w->base->metadata)->root;
    TRY(find_keys(w, m, err));
    TRY(take_source(w, m, err));
    TRY(map_source(w, m, err));
    TRY(make_filter(w, m, err));
done:
    return code;
}

/* ---- rows of the table ---- */

static const tarn_type *merge_columns(dml_work *w) {
    return ((merge_work *)w->action->ctx)->key_type;
}

static tarn_code match_rows(dml_work *w, const tarn_batch *batch, bool last, uint8_t *selection,
                            int64_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    merge_work *m = w->action->ctx;
    int64_t rows = batch_rows(batch);
    bool ignore = m->options->matched == DML_MATCHED_IGNORE;
    memset(selection, 0, bit_bytes(rows));
    buf_reset(&m->matches);
    *n = 0;
    TRY(key_encode(&m->keys, batch, m->key_ids, m->n_key_ids, err));
    for (int64_t i = 0; i < rows; i++) {
        const map_entry *entry = map_find(&m->rows, key_at(&m->keys, i));
        if (entry == NULL) {
            continue;
        }
        bit_set(m->marked, entry->value.i64);
        if (!ignore) {
            int32_t row = (int32_t)entry->value.i64;
            bit_set(selection, i);
            ++*n;
            if (last && m->options->matched == DML_MATCHED_UPDATE) {
                TRY(buf_append(&m->matches, &row, sizeof row, err));
            }
        }
    }
done:
    return code;
}

static tarn_code merge_column(void *ctx, const tarn_field *field, const tarn_batch *rows,
                              tarn_builder *out, bool *made, tarn_error *err) {
    const merge_work *m = ctx;
    (void)rows;
    for (int32_t j = 0; j < m->source.type->n_fields; j++) {
        if (m->source.type->fields[j].id == field->id) {
            tarn_view view;
            view_column(&m->source, j, &view);
            *made = true;
            return builder_gather(out, &view, (const int32_t *)(const void *)m->matches.data,
                                  (int64_t)(m->matches.len / sizeof(int32_t)), err);
        }
    }
    return TARN_OK;
}

static tarn_code merge_rows(dml_work *w, const tarn_batch *rows, tarn_batch *out, tarn_error *err) {
    return dml_replace_columns(w, rows, merge_column, w->action->ctx, out, err);
}

/* ---- rows to add ---- */

/* Columns that the source lacks get the default for writing (spec, "Default values"). */
static tarn_code insert_type(dml_work *w, const merge_work *m, const tarn_type **out,
                             tarn_error *err) {
    int32_t n = w->row_type->n_fields;
    tarn_field *fields = ARENA_ARRAY(&w->arena, tarn_field, (size_t)n + 1);
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        fields[i] = w->row_type->fields[i];
        fields[i].initial_default = fields[i].write_default;
        if (fields[i].required && fields[i].write_default == NULL &&
            type_find_id(m->source.type, fields[i].id) == NULL) {
            return err_set(err, TARN_INVALID,
                           "column %.*s is required, and the source lacks it: no row can be added",
                           STR_ARG(fields[i].name));
        }
    }
    *out = type_struct(&w->arena, fields, n);
    return *out != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code insert_rest(dml_work *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    merge_work *m = w->action->ctx;
    const tarn_type *wanted;
    tarn_projection *plan;
    project_options options;
    tarn_batch rest;
    tarn_batch rows;
    memset(&options, 0, sizeof options);
    memset(&rest, 0, sizeof rest);
    memset(&rows, 0, sizeof rows);
    options.file = "source";
    int64_t n = batch_rows(&m->source);
    if (n == 0 || !m->options->insert) {
        return TARN_OK;
    }
    for (size_t i = 0; i < bit_bytes(n); i++) {
        m->marked[i] = (uint8_t)~m->marked[i];
    }
    TRY(batch_filter(w->env, &m->source, m->marked, &rest, err));
    w->out->rows_inserted = batch_rows(&rest);
    if (batch_rows(&rest) == 0) {
        goto done;
    }
    TRY(insert_type(w, m, &wanted, err));
    TRY(project_plan(&w->arena, m->source.type, wanted, &options, &plan, err));
    TRY(project_apply(plan, w->env, &rest, &rows, err));
    TRY(dml_write_rows(w, &rows, err));
done:
    batch_release(&rest);
    batch_release(&rows);
    return code;
}

tarn_code dml_merge(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                    const dml_options *options, const dml_merge_options *merge, dml_result *out,
                    tarn_error *err) {
    dml_work w;
    merge_work m;
    memset(&w, 0, sizeof w);
    memset(&m, 0, sizeof m);
    m.options = merge;
    key_rows_init(&m.source_keys, env);
    key_rows_init(&m.keys, env);
    buf_init(&m.matches, env, 0);
    dml_action action = {&m, begin_merge, NULL, merge_columns, match_rows, NULL, insert_rest};
    if (merge->matched == DML_MATCHED_UPDATE) {
        action.replace = merge_rows;
    }
    w.options = options;
    w.action = &action;
    w.out = out;
    tarn_code code = dml_run(env, catalog, table, &w, err);
    batch_release(&m.source);
    key_rows_release(&m.source_keys);
    key_rows_release(&m.keys);
    buf_release(&m.matches);
    return code;
}
