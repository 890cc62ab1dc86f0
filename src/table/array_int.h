/* table/array_int.h - how this room makes Arrow arrays: one kind of node, whose buffers are its own
 * or belong to a counted owner. Inside table only.
 *
 * Invariants: every ArrowArray made here has release array_release and an array_node as private
 * data; each node keeps alive what its own buffers point into, so a child may be moved out of its
 * parent at any time, as the Arrow C data interface allows. */
#ifndef TABLE_ARRAY_INT_H
#define TABLE_ARRAY_INT_H

#include "table/batch.h"

typedef struct array_owner array_owner;

typedef struct array_node {
    tarn_env *env;
    array_owner *owner; /* one reference, or NULL */
    bool whole;         /* the tree below has no buffers but the owner's: slices may share it */
    const void *buffers[3];
    void *owned[3]; /* env memory freed with the node */
} array_node;

/* Keeps an outside array alive until the last node lets go. Made with one reference and no array.
 */
array_owner *array_owner_new(tarn_env *env);
void array_owner_take(array_owner *owner, struct ArrowArray *array); /* moves */
void array_owner_unref(array_owner *owner);

/* An array of length 0 with n_children zeroed children; adds a reference to owner (may be NULL). */
tarn_code array_node_init(tarn_env *env, array_owner *owner, int64_t n_buffers, int64_t n_children,
                          struct ArrowArray *out, tarn_error *err) TARN_MUST_USE;
static inline array_node *array_node_of(struct ArrowArray *array) {
    return array->private_data;
}
void array_release(struct ArrowArray *array);
/* Lets the node own a buffer (env memory). */
static inline void array_node_own(struct ArrowArray *array, int i, void *buffer) {
    array_node *node = array_node_of(array);
    node->buffers[i] = buffer;
    node->owned[i] = buffer;
}

/* Parts of a type as views and builders see them: fields of a struct, a list's element, a map's key
 * and value, a variant's metadata and value. */
int32_t array_part_count(const tarn_type *type);
const tarn_type *array_part_type(const tarn_type *type, int32_t i);
/* Buffers of the canonical array of a type. */
int64_t array_buffer_count(const tarn_type *type);
int64_t array_child_count(const tarn_type *type);
/* Only rows [start, start + n) of an array that nobody else sees. */
void array_cut(struct ArrowArray *array, int64_t start, int64_t n);
/* The same of a batch's root, whose offset moves into its columns. */
void array_cut_root(struct ArrowArray *root, int64_t start, int64_t n);

void array_view(const struct ArrowArray *array, const tarn_type *type, int64_t start,
                int64_t length, tarn_view *out);

#endif
