/* read/task_scan.c - a plan's task as a scan of its file, without the rows that are gone. */
#include "read/delete_load.h"
#include "read/plan_deletes.h"

tarn_code task_scan_open(tarn_plan *plan, const scan_task *task, const file_scan_options *options,
                         file_scan **out, tarn_error *err) {
    file_scan_options filled = *options;
    tarn_code code = plan_deletes_of(plan->deletes, task, false, &filled.deletes, err);
    if (code != TARN_OK) {
        return code;
    }
    filled.sequence_number = task->sequence_number;
    filled.name_mapping = plan->name_mapping;
    filled.root = options->root != NULL ? options->root : plan->schema->root;
    return file_scan_open(plan->env, plan->store, &task->file,
                          metadata_spec_by_id(plan->options.metadata, task->file.spec_id), &filled,
                          out, err);
}

tarn_code task_positions(tarn_plan *plan, const scan_task *task, const tarn_positions **out,
                         tarn_error *err) {
    const row_deletes *deletes = NULL;
    tarn_code code = plan_deletes_of(plan->deletes, task, true, &deletes, err);
    if (code == TARN_OK) {
        *out = deletes != NULL ? deletes->positions : NULL;
    }
    return code;
}

tarn_code vector_positions(tarn_env *env, tarn_store *store, const tarn_entry *vector,
                           tarn_positions **out, tarn_error *err) {
    pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
    delete_target target = {vector->file.referenced_data_file, NULL};
    delete_target *const targets[1] = {&target};
    const delete_loader loader = {env, store, NULL, NULL, &alone};
    tarn_code code = load_vector(&loader, vector, targets, 1, err);
    pthread_mutex_destroy(&alone);
    if (code == TARN_OK) {
        *out = target.positions;
    } else {
        positions_free(target.positions);
    }
    return code;
}
