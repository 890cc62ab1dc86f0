/* iceberg/change_int.h - a metadata document in the making: one change after the other is applied
 * to it (change_step.c), between the frame of change.c. */
#ifndef ICEBERG_CHANGE_INT_H
#define ICEBERG_CHANGE_INT_H

#include "iceberg/change.h"

typedef struct change_work {
    tarn_arena *arena;
    tarn_error *err;
    int64_t now_ms;
    const tarn_metadata *base; /* NULL: a new table */
    tarn_metadata m; /* its lists are the arrays below, which have room for every change */
    const tarn_schema **schemas;
    const tarn_spec **specs;
    const tarn_sort_order **sort_orders;
    const tarn_snapshot **snapshots;
    tarn_ref *refs;
    tarn_snapshot_log_entry *log;
    int32_t last_schema, last_spec, last_order; /* ids added last; -1: none */
    int32_t n_base_snapshots; /* snapshots at or beyond this index were added by this change set */
    bool removed_snapshots;
    int32_t n_set_main; /* snapshots that main was set to on the way */
    int64_t *set_main;
} change_work;

tarn_code change_step(change_work *w, const tarn_change *change) TARN_MUST_USE;

#endif
