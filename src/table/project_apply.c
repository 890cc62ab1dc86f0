/* table/project_apply.c - running a projection plan on a batch. Works on a slice that shares the
 * input's buffers, so a failure half way leaves the input whole. */
#include "table/array_int.h"
#include "table/project_int.h"

typedef struct project_run {
    tarn_env *env;
    bool writes;
    tarn_error *err;
} project_run;

static tarn_code map_array(const project_run *run, const project_node *node, struct ArrowArray *src,
                           const tarn_type *src_type, struct ArrowArray *out);

static tarn_code fill(const project_run *run, const project_node *node, int64_t rows,
                      struct ArrowArray *out) {
    tarn_builder b;
    tarn_error *err = run->err;
    tarn_code code = builder_init(&b, run->env, node->wanted->type, err);
    if (code != TARN_OK) {
        return code;
    }
    if (node->op == PROJECT_NULL) {
        TRY(builder_nulls(&b, rows, err));
    } else {
        TRY(builder_reserve(&b, rows, err));
        for (int64_t i = 0; i < rows && node->op == PROJECT_CONSTANT; i++) {
            TRY(builder_value(&b, &node->value, err));
        }
        for (int64_t i = 0; i < rows && node->op == PROJECT_DEFAULT; i++) {
            TRY(builder_default(&b, node->wanted, run->writes, err));
        }
    }
    TRY(builder_finish(&b, out, err));
done:
    builder_release(&b);
    return code;
}

/* Children of a struct (or a map's entries) from those of src; rows: what the parent's rows reach
 * into. */
static tarn_code map_children(const project_run *run, const project_node *node,
                              struct ArrowArray *src, const tarn_type *src_type, int64_t rows,
                              struct ArrowArray *out) {
    for (int32_t i = 0; i < node->n_children; i++) {
        const project_node *child = &node->children[i];
        tarn_code code;
        if (child->file_node < 0) {
            code = fill(run, child, rows, out->children[i]);
        } else {
            code = map_array(run, child, src->children[child->read_index],
                             src_type->fields[child->read_index].type, out->children[i]);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

/* A node with src's own buffers and room for other children. */
static tarn_code like_array(const project_run *run, array_owner *owner,
                            const struct ArrowArray *src, int64_t n_children,
                            struct ArrowArray *out) {
    tarn_code code = array_node_init(run->env, owner, src->n_buffers, n_children, out, run->err);
    if (code == TARN_OK) {
        for (int64_t i = 0; i < src->n_buffers; i++) {
            array_node_of(out)->buffers[i] = src->buffers[i];
        }
        out->length = src->length;
        out->null_count = src->null_count;
        out->offset = src->offset;
    }
    return code;
}

/* The rows of src stay, with other children below. src is moved into the owner of what is made, on
 * failure too; its children may have moved out by then. */
static tarn_code rebuild_array(const project_run *run, const project_node *node,
                               struct ArrowArray *src, const tarn_type *src_type,
                               struct ArrowArray *out) {
    array_owner *owner = array_owner_new(run->env);
    if (owner == NULL) {
        return err_nomem(run->err);
    }
    struct ArrowArray made;
    bool is_map = src_type->kind == TARN_MAP;
    tarn_code code = like_array(run, owner, src, is_map ? 1 : node->n_children, &made);
    if (code == TARN_OK) {
        struct ArrowArray *to = &made;
        struct ArrowArray *from = src;
        if (is_map) {
            to = made.children[0];
            from = src->children[0];
            code = like_array(run, owner, from, node->n_children, to);
        }
        if (code == TARN_OK) {
            code = map_children(run, node, from, src_type, from->offset + from->length, to);
        }
        if (code != TARN_OK) {
            array_release(&made);
        }
    }
    if (code == TARN_OK) {
        array_owner_take(owner, src);
        *out = made;
    }
    array_owner_unref(owner);
    return code;
}

static tarn_code map_array(const project_run *run, const project_node *node, struct ArrowArray *src,
                           const tarn_type *src_type, struct ArrowArray *out) {
    tarn_view view;
    switch (node->op) {
    case PROJECT_SHARE:
        *out = *src;
        src->release = NULL;
        return TARN_OK;
    case PROJECT_CONVERT: {
        view_array(src, src_type, &view);
        tarn_code code = project_convert(run->env, &view, node->wanted->type, out, run->err);
        return code == TARN_OK
                   ? code
                   : err_add(run->err, code, "column %.*s", STR_ARG(node->wanted->name));
    }
    case PROJECT_REBUILD:
        return rebuild_array(run, node, src, src_type, out);
    case PROJECT_CONSTANT:
    case PROJECT_DEFAULT:
    case PROJECT_NULL:
        break;
    }
    return err_set(run->err, TARN_INTERNAL, "a projection plan was inconsistent");
}

tarn_code project_apply(const tarn_projection *plan, tarn_env *env, tarn_batch *in, tarn_batch *out,
                        tarn_error *err) {
    project_run run = {env, plan->writes, err};
    tarn_batch work;
    struct ArrowArray made;
    int64_t rows = batch_rows(in);
    tarn_assert(in->array.release != NULL);
    if (plan->root.op == PROJECT_SHARE) {
        batch_move(out, in);
        out->type = plan->wanted;
        return TARN_OK;
    }
    tarn_code code = batch_slice(env, in, 0, rows, &work, err);
    if (code != TARN_OK) {
        return code;
    }
    code = array_node_init(env, NULL, 1, plan->root.n_children, &made, err);
    if (code == TARN_OK) {
        made.length = rows;
        code = map_children(&run, &plan->root, &work.array, plan->read_type, rows, &made);
        if (code != TARN_OK) {
            array_release(&made);
        }
    }
    batch_release(&work);
    if (code != TARN_OK) {
        return err_add(err, code, "file %s", plan->file);
    }
    batch_release(in);
    out->array = made;
    out->type = plan->wanted;
    return TARN_OK;
}
