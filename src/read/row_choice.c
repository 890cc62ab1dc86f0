/* read/row_choice.c - see row_choice.h. */
#include "read/row_choice.h"

#include "read/read_columns.h"
#include "table/project.h"

tarn_code row_choice_init(row_choice *c, tarn_arena *arena, const tarn_type *root,
                          const scan_options *options, const char *name, tarn_error *err) {
    tarn_code code = TARN_OK;
    project_options plain;
    memset(&plain, 0, sizeof plain);
    memset(c, 0, sizeof *c);
    c->env = arena->env;
    plain.file = name;
    plain.whole = true;
    c->left = options->limit;
    TRY(columns_select(arena, root, options->columns, options->n_columns, options->case_insensitive,
                       &c->output, err));
    if (options->filter != NULL) {
        TRY(expr_bind(arena, options->filter, root, !options->case_insensitive, &c->filter, err));
    }
    if (c->output != root) {
        TRY(project_plan(arena, root, c->output, &plain, &c->to_output, err));
    }
done:
    return code;
}

static tarn_code cut_rows(row_choice *c, tarn_batch *batch, tarn_error *err) {
    tarn_batch cut;
    if (c->left < 0 || batch_rows(batch) <= c->left) {
        return TARN_OK;
    }
    tarn_code code = batch_slice(c->env, batch, 0, c->left, &cut, err);
    if (code == TARN_OK) {
        batch_release(batch);
        batch_move(batch, &cut);
    }
    return code;
}

static tarn_code filter_rows(const row_choice *c, tarn_batch *batch, tarn_error *err) {
    tarn_batch some;
    memset(&some, 0, sizeof some);
    uint8_t *bits = env_alloc(c->env, bit_bytes(batch_rows(batch)) + 8);
    if (bits == NULL) {
        return err_nomem(err);
    }
    tarn_code code = expr_eval(c->env, c->filter, batch, bits, NULL, err);
    if (code == TARN_OK) {
        code = batch_filter(c->env, batch, bits, &some, err);
    }
    env_free(c->env, bits);
    if (code == TARN_OK) {
        batch_release(batch);
        batch_move(batch, &some);
    }
    return code;
}

tarn_code row_choice_apply(row_choice *c, tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch part;
    memset(&part, 0, sizeof part);
    if (c->filter != NULL && batch_rows(batch) > 0) {
        TRY(filter_rows(c, batch, err));
    }
    TRY(cut_rows(c, batch, err));
    if (c->left > 0) {
        c->left -= batch_rows(batch);
    }
    if (c->to_output != NULL && batch_rows(batch) > 0) {
        TRY(project_apply(c->to_output, c->env, batch, &part, err));
        batch_release(batch);
        batch_move(batch, &part);
    }
done:
    return code;
}
