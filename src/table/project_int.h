/* table/project_int.h - a projection plan as its maker and its runner see it. */
#ifndef TABLE_PROJECT_INT_H
#define TABLE_PROJECT_INT_H

#include "table/project.h"

typedef enum project_op {
    PROJECT_SHARE,    /* the file's column as it is */
    PROJECT_CONVERT,  /* a leaf of another type */
    PROJECT_REBUILD,  /* struct, list, map: other children below the same rows */
    PROJECT_CONSTANT, /* value on every row */
    PROJECT_DEFAULT,  /* a nested initial default on every row */
    PROJECT_NULL
} project_op;

typedef struct project_node project_node;
struct project_node {
    project_op op;
    const tarn_field *wanted;
    int32_t file_node;  /* number in the file's type, -1: not in the file */
    int32_t file_index; /* its place among its siblings in the file */
    int32_t read_index; /* and in what is read */
    const tarn_field *file_field;
    tarn_value value;       /* CONSTANT */
    project_node *children; /* REBUILD and SHARE: one for each part of the wanted type */
    int32_t n_children;
};

struct tarn_projection {
    project_node root; /* wanted is NULL */
    const tarn_type *wanted;
    const tarn_type *read_type;
    uint8_t *selected;
    bool writes;
    const char *file;
};

/* Whether a leaf of one type can be read as another. */
bool project_can_convert(const tarn_type *from, const tarn_type *to);
/* The view's rows as a leaf of another type, without offset. */
tarn_code project_convert(tarn_env *env, const tarn_view *from, const tarn_type *to,
                          struct ArrowArray *out, tarn_error *err) TARN_MUST_USE;

#endif
