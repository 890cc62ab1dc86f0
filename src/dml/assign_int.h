/* dml/assign_int.h - the tree of a SET expression, between its parser and its evaluation. */
#ifndef DML_ASSIGN_INT_H
#define DML_ASSIGN_INT_H

#include "dml/assign.h"

typedef enum assign_op {
    ASSIGN_LITERAL,
    ASSIGN_COLUMN,
    ASSIGN_ADD,
    ASSIGN_SUBTRACT,
    ASSIGN_MULTIPLY,
    ASSIGN_DIVIDE,
    ASSIGN_CONCAT
} assign_op;

struct assign_node {
    assign_op op;
    assign_node *left, *right;
    tarn_value literal;      /* type NULL: null */
    tarn_str name;           /* column as written */
    const tarn_field *field; /* bound column */
    const tarn_type *type;   /* bound: of the result; NULL: always null */
    int32_t column;          /* bound column: its number among those of the expression */
};

#endif
