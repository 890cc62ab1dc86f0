/* table/array.c - the nodes and owners behind every ArrowArray that tarn makes. */
#include "table/array_int.h"

#include <stdatomic.h>

struct array_owner {
    tarn_env *env;
    atomic_int references; /* batches may be released on any thread */
    struct ArrowArray array;
};

array_owner *array_owner_new(tarn_env *env) {
    array_owner *owner = env_calloc(env, 1, sizeof *owner);
    if (owner != NULL) {
        owner->env = env;
        atomic_init(&owner->references, 1);
    }
    return owner;
}

void array_owner_take(array_owner *owner, struct ArrowArray *array) {
    tarn_assert(owner->array.release == NULL);
    owner->array = *array;
    memset(array, 0, sizeof *array);
}

void array_owner_unref(array_owner *owner) {
    if (owner != NULL && atomic_fetch_sub(&owner->references, 1) == 1) {
        if (owner->array.release != NULL) {
            owner->array.release(&owner->array);
        }
        env_free(owner->env, owner);
    }
}

void array_release(struct ArrowArray *array) {
    array_node *node = array_node_of(array);
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release != NULL) {
            array->children[i]->release(array->children[i]);
        }
    }
    for (int i = 0; i < 3; i++) {
        env_free(node->env, node->owned[i]);
    }
    array_owner_unref(node->owner);
    env_free(node->env, node);
    array->release = NULL;
}

tarn_code array_node_init(tarn_env *env, array_owner *owner, int64_t n_buffers, int64_t n_children,
                          struct ArrowArray *out, tarn_error *err) {
    size_t pair = sizeof(struct ArrowArray) + sizeof(struct ArrowArray *);
    size_t size;
    tarn_assert(n_buffers >= 0 && n_buffers <= 3 && n_children >= 0);
    if (!num_mul_size((size_t)n_children, pair, &size) ||
        !num_add_size(size, sizeof(array_node), &size)) {
        return err_nomem(err);
    }
    array_node *node = env_calloc(env, 1, size);
    if (node == NULL) {
        return err_nomem(err);
    }
    struct ArrowArray *children = (struct ArrowArray *)(void *)(node + 1);
    struct ArrowArray **pointers = (struct ArrowArray **)(void *)(children + n_children);
    for (int64_t i = 0; i < n_children; i++) {
        pointers[i] = &children[i];
    }
    node->env = env;
    node->owner = owner;
    if (owner != NULL) {
        atomic_fetch_add(&owner->references, 1);
    }
    memset(out, 0, sizeof *out);
    out->n_buffers = n_buffers;
    out->buffers = node->buffers;
    out->n_children = n_children;
    out->children = n_children > 0 ? pointers : NULL;
    out->release = array_release;
    out->private_data = node;
    return TARN_OK;
}

int32_t array_part_count(const tarn_type *type) {
    return type->kind == TARN_VARIANT ? 2 : type->n_fields;
}

const tarn_type *array_part_type(const tarn_type *type, int32_t i) {
    return type->kind == TARN_VARIANT ? type_primitive(TARN_BINARY) : type->fields[i].type;
}

int64_t array_buffer_count(const tarn_type *type) {
    if (type->kind == TARN_UNKNOWN) {
        return 0;
    }
    if (type->kind == TARN_STRUCT || type->kind == TARN_VARIANT) {
        return 1;
    }
    return type_is_var(type) ? 3 : 2;
}

int64_t array_child_count(const tarn_type *type) {
    return type->kind == TARN_MAP ? 1 : array_part_count(type);
}

void array_cut(struct ArrowArray *array, int64_t start, int64_t n) {
    if (start != 0 || n != array->length) {
        array->null_count = array->null_count == 0 ? 0 : -1;
    }
    array->offset += start;
    array->length = n;
}

void array_cut_root(struct ArrowArray *root, int64_t start, int64_t n) {
    for (int64_t i = 0; i < root->n_children; i++) {
        array_cut(root->children[i], root->offset + start, n);
    }
    root->offset = 0;
    root->length = n;
}

void array_view(const struct ArrowArray *array, const tarn_type *type, int64_t start,
                int64_t length, tarn_view *out) {
    int64_t first = array->offset + start;
    int64_t n_buffers = array_buffer_count(type);
    memset(out, 0, sizeof *out);
    out->type = type;
    out->array = array;
    out->start = first;
    out->length = length;
    if (n_buffers == 0) {
        return;
    }
    if (array->null_count != 0) {
        out->validity = array->buffers[0];
    }
    if (type_is_var(type) || type->kind == TARN_LIST || type->kind == TARN_MAP) {
        const int32_t *offsets = array->buffers[1];
        out->offsets = offsets != NULL ? offsets + first : NULL;
        out->bytes = n_buffers == 3 ? array->buffers[2] : NULL;
    } else if (n_buffers == 2) {
        const uint8_t *values = array->buffers[1];
        size_t skip = type->kind == TARN_BOOLEAN ? 0 : (size_t)first * (size_t)type_width(type);
        out->values = values != NULL ? values + skip : NULL;
    }
}
