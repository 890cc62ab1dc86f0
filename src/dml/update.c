/* dml/update.c - UPDATE ... SET ... WHERE: rows of the filter, with some columns set. */
#include "dml/assign.h"
#include "dml/dml_int.h"

typedef struct update_work {
    assign_list parsed;
    assign_list bound; /* in dml_work.arena, of one plan */
    tarn_env *env;
} update_work;

static tarn_code bind_update(dml_work *w, tarn_error *err) {
    update_work *u = w->action->ctx;
    u->env = w->env;
    return assign_bind(&w->arena, &u->parsed, w->plan->schema->root, w->options->case_insensitive,
                       &u->bound, err);
}

static tarn_code set_column(void *ctx, const tarn_field *field, const tarn_batch *rows,
                            tarn_builder *out, bool *made, tarn_error *err) {
    update_work *u = ctx;
    const assignment *a = assign_of(&u->bound, field->id);
    *made = a != NULL;
    return a != NULL ? assign_values(a, u->env, rows, out, err) : TARN_OK;
}

static tarn_code update_rows(dml_work *w, const tarn_batch *rows, tarn_batch *out,
                             tarn_error *err) {
    return dml_replace_columns(w, rows, set_column, w->action->ctx, out, err);
}

tarn_code dml_update(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     const dml_options *options, tarn_str set, dml_result *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    dml_work w;
    update_work u;
    memset(&w, 0, sizeof w);
    memset(&u, 0, sizeof u);
    arena_init(&arena, env);
    const dml_action action = {&u, NULL, bind_update, NULL, NULL, update_rows, NULL};
    if (options->filter == NULL) {
        code = err_set(err, TARN_INVALID, "an update needs a filter; \"true\" sets every row");
        goto done;
    }
    TRY(assign_parse(&arena, set, &u.parsed, err));
    w.options = options;
    w.action = &action;
    w.out = out;
    TRY(dml_run(env, catalog, table, &w, err));
done:
    arena_release(&arena);
    return code;
}
