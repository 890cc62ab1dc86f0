/* service/stream_step.h - snapshots that are steps of one stream, by what engines write in their
 * summaries to know where a stream stands. */
#ifndef SERVICE_STREAM_STEP_H
#define SERVICE_STREAM_STEP_H

#include "iceberg/metadata.h"

bool stream_step_is_any(const tarn_snapshot *s);
/* Whether both are steps of the same stream. */
bool stream_step_is_same(const tarn_snapshot *a, const tarn_snapshot *b);

#endif
