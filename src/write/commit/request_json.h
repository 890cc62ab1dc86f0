/* write/commit/request_json.h - commits as clients of a batch commit service send them, and their
 * answers (docs/serve.md, "Batch commit"). */
#ifndef WRITE_COMMIT_REQUEST_JSON_H
#define WRITE_COMMIT_REQUEST_JSON_H

#include "write/commit/commit.h"

#define COMMIT_ID_MAX_BYTES 256
#define COMMIT_ID_RULE      "1 to 256 bytes, none of them a space or a control character"

/* Whether it can be sent: filters cannot, nor questions to the caller that uuid and fence do not
 * ask too (check_each). */
bool commit_request_can_travel(const commit_request *request);
tarn_code commit_request_put_json(const commit_request *request, tarn_buf *out,
                                  tarn_error *err) TARN_MUST_USE;
/* COMMIT_ID_RULE holds. */
bool commit_id_is_good(tarn_str id);
/* Into arena. m gives the types of partitions. INVALID, CONFLICT as file_from_json, and INVALID for
 * a member that is not known; whether what it says is true is the caller's to find out. */
tarn_code commit_request_from_json(tarn_arena *arena, const json_value *json,
                                   const tarn_metadata *m, commit_request *out,
                                   tarn_error *err) TARN_MUST_USE;

#endif
