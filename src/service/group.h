/* service/group.h - what a leader does with the commits of one group. Invariants in queue.h. */
#ifndef SERVICE_GROUP_H
#define SERVICE_GROUP_H

#include "service/commit_index.h"
#include "service/file_index.h"
#include "service/queue.h"

typedef struct commit_group {
    tarn_env *env;
    tarn_catalog *catalog;
    const tarn_ident *table;
    commit_index *index;
    tarn_table_version *known; /* in: last seen, or NULL; out: seen now, or NULL. Owned. */
    service_counters *counters;
    file_index *files; /* NULL, as counters: nothing is compacted */
} commit_group;

/* Fills every job's outcome. */
void group_run(commit_group *group, commit_job *jobs);

#endif
