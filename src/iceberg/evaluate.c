/* iceberg/evaluate.c - which manifests and files may hold rows that match a filter, which hold only
 * such rows, and what is left to check per row (spec, "Scan Planning").
 *
 * A filter is projected onto the partition tuple twice: inclusive (true whenever a row can match)
 * and strict (true only where every row must). Both are then asked of what is known: field
 * summaries of a manifest, the tuple of a file, the column bounds of a file. Not known always means
 * that rows may match and that some may not. */
#include "iceberg/evaluate.h"

/* ---- projection of whole filters ---- */

typedef struct projector {
    tarn_arena *arena;
    const tarn_evaluator *e;
    bool strict;
    tarn_error *err;
} projector;

static tarn_code project_leaf(const projector *p, const tarn_expr *leaf, const tarn_expr **out) {
    const tarn_expr *all = p->strict ? expr_false() : expr_true();
    for (int32_t i = 0; i < p->e->spec->n_fields; i++) {
        const tarn_partition_field *f = &p->e->spec->fields[i];
        const tarn_expr *one = NULL;
        if (f->source_id != leaf->field_id) {
            continue;
        }
        const tarn_field *target = &p->e->partition_type->fields[i];
        tarn_code code =
            p->strict
                ? transform_project_strict(p->arena, &f->transform, leaf, target, &one, p->err)
                : transform_project(p->arena, &f->transform, leaf, target, &one, p->err);
        if (code != TARN_OK) {
            return code;
        }
        all = p->strict ? expr_or(p->arena, all, one) : expr_and(p->arena, all, one);
        if (all == NULL) {
            return err_nomem(p->err);
        }
    }
    *out = all;
    return TARN_OK;
}

static tarn_code project_filter(const projector *p, const tarn_expr *e, const tarn_expr **out) {
    if (e->op == EXPR_TRUE || e->op == EXPR_FALSE) {
        *out = e;
        return TARN_OK;
    }
    if (e->op != EXPR_AND && e->op != EXPR_OR) {
        return project_leaf(p, e, out);
    }
    const tarn_expr *left, *right;
    tarn_code code = project_filter(p, e->left, &left);
    if (code == TARN_OK) {
        code = project_filter(p, e->right, &right);
    }
    if (code != TARN_OK) {
        return code;
    }
    *out = e->op == EXPR_AND ? expr_and(p->arena, left, right) : expr_or(p->arena, left, right);
    return *out != NULL ? TARN_OK : err_nomem(p->err);
}

tarn_code evaluator_init(tarn_arena *arena, const tarn_metadata *m, const tarn_spec *spec,
                         const tarn_expr *bound, tarn_evaluator *out, tarn_error *err) {
    tarn_evaluator e;
    memset(&e, 0, sizeof e);
    e.filter = bound;
    e.spec = spec;
    e.metadata = m;
    projector p = {arena, &e, false, err};
    tarn_code code = spec_partition_type(arena, spec, m, &e.partition_type, err);
    if (code == TARN_OK) {
        code = project_filter(&p, bound, &e.inclusive);
    }
    if (code == TARN_OK) {
        p.strict = true;
        code = project_filter(&p, bound, &e.strict);
    }
    if (code == TARN_OK) {
        *out = e;
    }
    return code;
}

/* ---- what is known ---- */

static int32_t tuple_index(const tarn_evaluator *e, int32_t field_id) {
    for (int32_t i = 0; i < e->partition_type->n_fields; i++) {
        if (e->partition_type->fields[i].id == field_id) {
            return i;
        }
    }
    return -1;
}

static bool is_floating(const tarn_field *field) {
    return field->type->kind == TARN_FLOAT || field->type->kind == TARN_DOUBLE;
}

static bool load_bound(const tarn_field *field, bool here, tarn_str bytes, tarn_value *out) {
    return here && value_from_binary(field->type, bytes, out, NULL) == TARN_OK;
}

typedef struct manifest_facts {
    const tarn_evaluator *e;
    const tarn_manifest *manifest;
} manifest_facts;

static bool summary_stats(void *ctx, const tarn_field *field, expr_stats *out) {
    const manifest_facts *facts = ctx;
    int32_t i = tuple_index(facts->e, field->id);
    memset(out, 0, sizeof *out);
    if (i < 0 || i >= facts->manifest->n_partitions) {
        return false;
    }
    const tarn_field_summary *s = &facts->manifest->partitions[i];
    bool no_nan = !is_floating(field) || s->contains_nan == 0;
    out->has_lower = load_bound(field, s->has_lower, s->lower, &out->lower);
    out->has_upper = load_bound(field, s->has_upper, s->upper, &out->upper);
    out->has_nan_count = no_nan;
    if (!s->contains_null) {
        out->has_null_count = true;
    } else if (!s->has_lower && !s->has_upper && no_nan) {
        out->has_null_count = out->has_value_count = true; /* nulls and nothing else */
        out->null_count = out->value_count = 1;
    }
    return true;
}

typedef struct tuple_facts {
    const tarn_evaluator *e;
    const tarn_value *partition;
} tuple_facts;

static bool tuple_stats(void *ctx, const tarn_field *field, expr_stats *out) {
    const tuple_facts *facts = ctx;
    int32_t i = tuple_index(facts->e, field->id);
    memset(out, 0, sizeof *out);
    if (i < 0) {
        return false;
    }
    const tarn_value *v = &facts->partition[i];
    bool nan = !v->is_null && ((v->type->kind == TARN_FLOAT && v->as.f32 != v->as.f32) ||
                               (v->type->kind == TARN_DOUBLE && v->as.f64 != v->as.f64));
    out->has_value_count = out->has_null_count = out->has_nan_count = true;
    out->value_count = 1;
    out->null_count = v->is_null;
    out->nan_count = nan;
    out->has_lower = out->has_upper = !v->is_null && !nan;
    out->lower = out->upper = *v;
    return true;
}

static bool file_stats(void *ctx, const tarn_field *field, expr_stats *out) {
    const tarn_file *f = ctx;
    tarn_str bytes = STR_NULL;
    int32_t id = field->id;
    memset(out, 0, sizeof *out);
    out->has_value_count =
        metric_find_count(f->value_counts, f->n_value_counts, id, &out->value_count);
    out->has_null_count = metric_find_count(f->null_counts, f->n_null_counts, id, &out->null_count);
    out->has_nan_count = metric_find_count(f->nan_counts, f->n_nan_counts, id, &out->nan_count);
    bool here = metric_find_bound(f->lower, f->n_lower, id, &bytes);
    out->has_lower = load_bound(field, here, bytes, &out->lower);
    here = metric_find_bound(f->upper, f->n_upper, id, &bytes);
    out->has_upper = load_bound(field, here, bytes, &out->upper);
    return true;
}

typedef struct strict_facts {
    const tarn_evaluator *e;
    const tarn_file *file;
} strict_facts;

/* Counts of a field below a struct leave out rows whose struct is null: of those nothing certain
 * can be said. */
static bool strict_stats(void *ctx, const tarn_field *field, expr_stats *out) {
    const strict_facts *facts = ctx;
    const tarn_metadata *m = facts->e->metadata;
    for (int32_t i = 0; i < m->n_schemas; i++) {
        const tarn_type *root = m->schemas[i]->root;
        for (int32_t k = 0; k < root->n_fields; k++) {
            if (root->fields[k].id == field->id) {
                return file_stats((void *)(uintptr_t)facts->file, field, out);
            }
        }
    }
    return false;
}

/* ---- the questions ---- */

bool evaluator_manifest(const tarn_evaluator *e, const tarn_manifest *manifest) {
    manifest_facts facts = {e, manifest};
    return expr_may_match(e->inclusive, summary_stats, &facts);
}

static bool is_nan(const tarn_value *v) {
    return (v->type->kind == TARN_FLOAT && v->as.f32 != v->as.f32) ||
           (v->type->kind == TARN_DOUBLE && v->as.f64 != v->as.f64);
}

/* What cannot be told counts as yes. */
static bool summary_may_hold(const tarn_field_summary *s, const tarn_value *v) {
    tarn_value bound;
    if (v->is_null) {
        return s->contains_null;
    }
    if (is_nan(v)) {
        return s->contains_nan != 0;
    }
    if (s->has_lower && value_from_binary(v->type, s->lower, &bound, NULL) == TARN_OK &&
        value_cmp(v, &bound) < 0) {
        return false;
    }
    return !s->has_upper || value_from_binary(v->type, s->upper, &bound, NULL) != TARN_OK ||
           value_cmp(v, &bound) <= 0;
}

bool manifest_may_hold(const tarn_manifest *manifest, const tarn_value *partition, int32_t n) {
    if (manifest->partitions == NULL || manifest->n_partitions != n) {
        return true;
    }
    for (int32_t i = 0; i < n; i++) {
        if (!summary_may_hold(&manifest->partitions[i], &partition[i])) {
            return false;
        }
    }
    return true;
}

bool evaluator_partition(const tarn_evaluator *e, const tarn_value *partition) {
    tuple_facts facts = {e, partition};
    return expr_may_match(e->inclusive, tuple_stats, &facts);
}

bool evaluator_file(const tarn_evaluator *e, const tarn_file *file) {
    if (file->record_count == 0) {
        return false;
    }
    return evaluator_partition(e, file->partition) &&
           expr_may_match(e->filter, file_stats, (void *)(uintptr_t)file);
}

bool evaluator_file_all(const tarn_evaluator *e, const tarn_file *file) {
    tuple_facts tuple = {e, file->partition};
    strict_facts strict = {e, file};
    return file->record_count == 0 || expr_all_match(e->strict, tuple_stats, &tuple) ||
           expr_all_match(e->filter, strict_stats, &strict);
}

/* ---- residuals ---- */

typedef struct reducer {
    tarn_arena *arena;
    const tarn_evaluator *e;
    tuple_facts facts;
    tarn_error *err;
} reducer;

static tarn_code reduce_leaf(reducer *r, const tarn_expr *leaf, const tarn_expr **out) {
    projector p = {r->arena, r->e, true, r->err};
    const tarn_expr *projected;
    tarn_code code = project_leaf(&p, leaf, &projected);
    if (code == TARN_OK && expr_all_match(projected, tuple_stats, &r->facts)) {
        *out = expr_true();
        return TARN_OK;
    }
    if (code == TARN_OK) {
        p.strict = false;
        code = project_leaf(&p, leaf, &projected);
    }
    if (code == TARN_OK) {
        *out = expr_may_match(projected, tuple_stats, &r->facts) ? leaf : expr_false();
    }
    return code;
}

static tarn_code reduce(reducer *r, const tarn_expr *e, const tarn_expr **out) {
    if (e->op == EXPR_TRUE || e->op == EXPR_FALSE) {
        *out = e;
        return TARN_OK;
    }
    if (e->op != EXPR_AND && e->op != EXPR_OR) {
        return reduce_leaf(r, e, out);
    }
    const tarn_expr *left, *right;
    tarn_code code = reduce(r, e->left, &left);
    if (code == TARN_OK) {
        code = reduce(r, e->right, &right);
    }
    if (code != TARN_OK) {
        return code;
    }
    *out = e->op == EXPR_AND ? expr_and(r->arena, left, right) : expr_or(r->arena, left, right);
    return *out != NULL ? TARN_OK : err_nomem(r->err);
}

tarn_code evaluator_residual(tarn_arena *arena, const tarn_evaluator *e,
                             const tarn_value *partition, const tarn_expr **out, tarn_error *err) {
    reducer r = {arena, e, {e, partition}, err};
    const tarn_expr *result;
    tarn_code code = reduce(&r, e->filter, &result);
    if (code == TARN_OK) {
        *out = result;
    }
    return code;
}
