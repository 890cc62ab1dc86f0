/* read/plan_deletes.h - the row deletes of a plan, loaded when a task first needs them and once
 * only, whatever the number of tasks that share them (B19). */
#ifndef READ_PLAN_DELETES_H
#define READ_PLAN_DELETES_H

#include "read/read_int.h"
#include "read/row_deletes.h"

typedef struct plan_deletes plan_deletes;

/* For the tasks of a plan, which stay where they are; NULL in *out where none has deletes. */
tarn_code plan_deletes_new(tarn_plan *plan, plan_deletes **out, tarn_error *err) TARN_MUST_USE;
void plan_deletes_free(plan_deletes *d); /* takes NULL */

/* What is gone of a task's file; NULL: nothing. Loads what is missing, and waits for what others
 * load. Borrowed. Any thread. without_keys: only positions are looked at, and may be used. */
tarn_code plan_deletes_of(plan_deletes *d, const scan_task *task, bool without_keys,
                          const row_deletes **out, tarn_error *err) TARN_MUST_USE;

#endif
