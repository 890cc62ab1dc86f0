/* api/api_outcome.h - commits as the API tells them. */
#ifndef API_API_OUTCOME_H
#define API_API_OUTCOME_H

#include "api/handles.h"
#include "write/commit/commit.h"

void api_reset_outcome(tarn_outcome *out);
void api_fill_outcome(tarn_outcome *out, const commit_outcome *from);
/* The handle shows this version from now on; NULL: stays. Takes version. */
void api_take_version(tarn_table *table, tarn_table_version *version);
tarn_code api_check_writable(const tarn_table *table, tarn_error *err) TARN_MUST_USE;

#endif
