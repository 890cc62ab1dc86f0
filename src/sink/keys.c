/* sink/keys.c - see keys.h: what is asked of a key, and kinds of deletes. Indexes are kept in step
 * by sink/keys_index.c. */
#include "sink/keys.h"

#include "sink/keys_int.h"

static tarn_code find_key(sink_keys *k, const tarn_metadata *m, tarn_error *err) {
    const tarn_schema *schema = metadata_schema(m);
    const keys_options *o = &k->options;
    int32_t n = o->names != NULL ? o->n_names : schema->n_identifier_ids;
    int32_t *ids = ARENA_ARRAY(&k->arena, int32_t, (size_t)n + 1);
    if (ids == NULL) {
        return err_nomem(err);
    }
    if (n == 0) {
        return err_set(
            err, TARN_INVALID,
            "changes and upserts need a key: no columns were given (--key), and the table "
            "has no identifier fields");
    }
    for (int32_t i = 0; i < n; i++) {
        if (o->names == NULL) {
            ids[i] = schema->identifier_ids[i];
            continue;
        }
        const tarn_field *field = type_find_name(schema->root, o->names[i], true);
        if (field == NULL) {
            return err_set(err, TARN_INVALID, "the table has no key column %.*s",
                           STR_ARG(o->names[i]));
        }
        ids[i] = field->id;
    }
    k->ids = ids;
    k->n_ids = n;
    return TARN_OK;
}

/* As Iceberg asks of identifier fields, and directly in the row. */
static tarn_code check_columns(const sink_keys *k, const tarn_metadata *m, tarn_error *err) {
    const tarn_type *root = metadata_schema(m)->root;
    for (int32_t i = 0; i < k->n_ids; i++) {
        const tarn_field *field = type_find_id(root, k->ids[i]);
        if (field == NULL) {
            return err_set(err, TARN_INVALID, "key column with field id %d is no longer there",
                           k->ids[i]);
        }
        if (type_child(root, field->name) != field) {
            return err_set(err, TARN_UNSUPPORTED,
                           "key column %.*s lies in another column; keys are columns of the table",
                           STR_ARG(field->name));
        }
        if (type_is_nested(field->type) || field->type->kind == TARN_FLOAT ||
            field->type->kind == TARN_DOUBLE) {
            return err_set(err, TARN_INVALID, "column %.*s has type %s, which can't be a key",
                           STR_ARG(field->name), type_kind_name(field->type->kind));
        }
        for (int32_t j = 0; j < i; j++) {
            if (k->ids[j] == k->ids[i]) {
                return err_set(err, TARN_INVALID, "key column %.*s was named twice",
                               STR_ARG(field->name));
            }
        }
    }
    return TARN_OK;
}

static tarn_code choose_kind(sink_keys *k, const tarn_metadata *m, tarn_error *err) {
    tarn_str text = k->options.deletes;
    if (text.len == 0) {
        text = properties_str(&m->properties, "tarn.row-deletes", "");
    }
    if (str_is(text, "equality")) {
        k->kind = DELETE_EQUALITY;
    } else if (str_is(text, "position")) {
        k->kind = DELETE_POSITION;
    } else if (str_is(text, "vector")) {
        k->kind = DELETE_VECTOR;
    } else if (text.len > 0) {
        return err_set(err, TARN_INVALID,
                       "deletes are \"equality\", \"position\" or \"vector\", not \"%.*s\"",
                       STR_ARG(text));
    } else {
        return err_set(err, TARN_INVALID,
                       "the kind of deletes was not chosen, by an option or the table's property "
                       "tarn.row-deletes: equality (no state, but some engines can't read it), "
                       "position (format version 2, keeps an index of keys), vector (format "
                       "version 3, the same)");
    }
    return TARN_OK;
}

static tarn_code check_version(const sink_keys *k, const tarn_metadata *m, tarn_error *err) {
    if (m->format_version < 2) {
        return err_set(err, TARN_INVALID,
                       "row deletes need format version 2 or 3; the table has 1");
    }
    if (k->kind == DELETE_POSITION && m->format_version > 2) {
        return err_set(err, TARN_INVALID,
                       "format version %d has deletion vectors instead of position delete files; "
                       "choose deletes \"vector\"",
                       m->format_version);
    }
    if (k->kind == DELETE_VECTOR && m->format_version < 3) {
        return err_set(err, TARN_INVALID,
                       "deletion vectors need format version 3; the table has %d: choose deletes "
                       "\"position\" or \"equality\"",
                       m->format_version);
    }
    if (k->kind != DELETE_EQUALITY && k->options.shared) {
        return err_set(err, TARN_UNSUPPORTED,
                       "deletes by position and vectors need an index of keys, which one process "
                       "alone has: several that share an input take deletes by equality");
    }
    if (k->kind != DELETE_EQUALITY && k->options.state_dir.len == 0) {
        return err_set(err, TARN_INVALID,
                       "deletes by position keep an index of keys; they need a local state folder, "
                       "and none was given (--state)");
    }
    return TARN_OK;
}

static tarn_code name_scratch(sink_keys *k, tarn_error *err) {
    k->scratch = ARENA_ARRAY(&k->arena, const char *, (size_t)k->options.n_tasks + 1);
    if (k->scratch == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < k->options.n_tasks && k->options.state_dir.len > 0; i++) {
        k->scratch[i] = arena_printf(&k->arena, "%.*s/scratch-%d", (int)k->options.state_dir.len,
                                     k->options.state_dir.data, i);
        if (k->scratch[i] == NULL) {
            return err_nomem(err);
        }
    }
    return TARN_OK;
}

tarn_code keys_init(sink_keys *k, tarn_env *env, tarn_store *store, const keys_options *options,
                    const tarn_metadata *m, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(k, 0, sizeof *k);
    k->env = env;
    k->store = store;
    k->options = *options;
    arena_init(&k->arena, env);
    arena_init(&k->now, env);
    if (!options->wanted) {
        return TARN_OK;
    }
    TRY(find_key(k, m, err));
    TRY(check_columns(k, m, err));
    TRY(choose_kind(k, m, err));
    TRY(check_version(k, m, err));
    TRY(name_scratch(k, err));
done:
    if (code != TARN_OK) {
        k->kind = DELETE_NONE;
    }
    return code;
}

void keys_release(sink_keys *k) {
    if (k->env == NULL) {
        return;
    }
    keys_close_indexes(k);
    arena_release(&k->now);
    arena_release(&k->arena);
    memset(k, 0, sizeof *k);
}

/* ---- equality ---- */

static tarn_code make_type(sink_keys *k, const tarn_type *root, tarn_error *err) {
    tarn_field *fields = ARENA_ARRAY(&k->now, tarn_field, (size_t)k->n_ids + 1);
    if (fields == NULL) {
        return err_nomem(err);
    }
    int32_t n = 0;
    for (int32_t i = 0; i < root->n_fields; i++) {
        for (int32_t j = 0; j < k->n_ids; j++) {
            if (root->fields[i].id == k->ids[j]) {
                fields[n++] = root->fields[i];
            }
        }
    }
    k->type = type_struct(&k->now, fields, n);
    return k->type != NULL ? TARN_OK : err_nomem(err);
}

/* The key decides the partition, so that a delete lies where its row does. */
static tarn_code check_spec(const sink_keys *k, const tarn_metadata *m, const tarn_spec *spec,
                            tarn_error *err) {
    for (int32_t i = 0; i < spec->n_fields; i++) {
        bool found = spec->fields[i].transform.kind == TRANSFORM_VOID;
        for (int32_t j = 0; j < k->n_ids; j++) {
            found = found || spec->fields[i].source_id == k->ids[j];
        }
        if (!found) {
            const tarn_field *source =
                type_find_id(metadata_schema(m)->root, spec->fields[i].source_id);
            return err_set(err, TARN_INVALID,
                           "rows are partitioned by %.*s (spec %d), whose column %.*s is not in "
                           "the key; equality deletes need it there, deletes by position do not",
                           STR_ARG(spec->fields[i].name), spec->spec_id,
                           STR_ARG(source != NULL ? source->name : STR("(dropped)")));
        }
    }
    return TARN_OK;
}

/* Specs of live data files. */
static tarn_code mark_live(sink_keys *k, const tarn_metadata *m, int64_t head, bool *live,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_manifest *manifests;
    int32_t n;
    const tarn_snapshot *s = metadata_snapshot_by_id(m, head);
    if (s == NULL) {
        return TARN_OK;
    }
    TRY(snapshot_manifests(&k->now, k->store, s, &manifests, &n, err));
    for (int32_t i = 0; i < n; i++) {
        bool has = manifests[i].added_files != 0 || manifests[i].existing_files != 0;
        for (int32_t j = 0; j < m->n_specs && has && !manifests[i].is_deletes; j++) {
            live[j] = live[j] || m->specs[j]->spec_id == manifests[i].spec_id;
        }
    }
done:
    return code;
}

/* An equality delete reaches its own spec and partition, or, from a spec without partitions, all of
 * the table. */
static tarn_code choose_specs(sink_keys *k, const tarn_metadata *m, int64_t head, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool *live = ARENA_ARRAY(&k->now, bool, (size_t)m->n_specs + 1);
    k->specs = ARENA_ARRAY(&k->now, const tarn_spec *, (size_t)m->n_specs + 1);
    k->n_specs = 0;
    if (live == NULL || k->specs == NULL) {
        return err_nomem(err);
    }
    if (m->n_specs > 1) {
        TRY(mark_live(k, m, head, live, err));
    }
    const tarn_spec *whole = NULL;
    for (int32_t i = 0; i < m->n_specs; i++) {
        if (live[i] || m->specs[i]->spec_id == m->default_spec_id) {
            k->specs[k->n_specs++] = m->specs[i];
        }
        whole = m->specs[i]->n_fields == 0 ? m->specs[i] : whole;
    }
    if (k->n_specs > 1 && whole != NULL) {
        k->specs[0] = whole;
        k->n_specs = 1;
    }
    for (int32_t i = 0; i < k->n_specs; i++) {
        TRY(check_spec(k, m, k->specs[i], err));
    }
done:
    return code;
}

/* ---- a checkpoint ---- */

tarn_code keys_begin(sink_keys *k, const tarn_metadata *m, int64_t head, bool follow,
                     tarn_error *err) {
    tarn_code code = TARN_OK;
    if (k->kind == DELETE_NONE) {
        return TARN_OK;
    }
    arena_release(&k->now);
    arena_init(&k->now, k->env);
    TRY(check_columns(k, m, err));
    TRY(check_version(k, m, err));
    TRY(make_type(k, metadata_schema(m)->root, err));
    if (k->kind == DELETE_EQUALITY) {
        TRY(choose_specs(k, m, head, err));
    } else if (follow) {
        TRY(keys_follow(k, m, head, err));
    }
done:
    return code;
}

tarn_code keys_check(const sink_keys *k, const tarn_batch *batch, tarn_error *err) {
    for (int32_t i = 0; i < k->n_ids && k->kind != DELETE_NONE; i++) {
        tarn_path_view column;
        memset(&column, 0, sizeof column);
        tarn_code code = path_view_init(&column, k->env, batch, k->ids[i], err);
        if (code != TARN_OK) {
            return code;
        }
        int64_t row = 0;
        int64_t rows = batch_rows(batch);
        if (view_null_count(&column.view) == 0) {
            row = rows;
        }
        while (row < rows && !view_is_null(&column.view, row)) {
            row++;
        }
        path_view_release(&column);
        if (row < rows) {
            const tarn_field *field = type_find_id(batch->type, k->ids[i]);
            return err_set(err, TARN_INVALID, "key column %.*s was null in row %lld of a batch",
                           STR_ARG(field != NULL ? field->name : STR("")), (long long)row + 1);
        }
    }
    return TARN_OK;
}
