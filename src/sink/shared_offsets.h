/* sink/shared_offsets.h - where a source stands, kept in the table with the rows instead of in a
 * state folder, so that several sinks share the parts of one input and hand them to each other.
 *
 * A checkpoint brings moves, {"kafka": {topic: {partition: [from, to]}}}: objects in objects, with
 * pairs of offsets as leaves. The summary of its snapshot says where every part stands now,
 * {"kafka": {topic: {partition: to}}}: what the branch said before, and the moves.
 *
 * Invariants, of all sinks that use one name on one branch:
 * 1 rows and the moves that they were read by are one snapshot, so the table alone says which
 *   messages it holds. After a kill nothing else is asked: no folder, and no group's offsets.
 * 2 a commit is refused with CONFLICT unless every move begins where its base says that the part
 *   stands (from -1: it says nothing). This is asked with every base, and the swap is from that
 *   base. So of sinks that read the same messages one commits them: a sink that does not know yet
 *   that a part was taken over, and one that reads again what a commit of unknown outcome held,
 *   which happens later all the same, are refused, drop their files and read again from where the
 *   table stands.
 * 3 a part is read from where the table says that it stands, as loaded after it was given to the
 *   reader: what is before is in the table, and what is behind is not.
 * 4 offsets that an expired snapshot may have held are not made up: CORRUPT, until the table's
 *   property of the same name says them. */
#ifndef SINK_SHARED_OFFSETS_H
#define SINK_SHARED_OFFSETS_H

#include "iceberg/metadata.h"

#define SHARED_OFFSETS_PREFIX "tarn.offsets." /* of the entry in summaries; the name follows */

/* Where everything stands in this version; NULL: nothing was read yet. key: with the prefix. */
tarn_code shared_offsets_find(tarn_arena *arena, const tarn_metadata *m, tarn_str branch,
                              tarn_str key, json_value **out, tarn_error *err) TARN_MUST_USE;
/* The new entry, after the moves of a checkpoint. CONFLICT: see invariant 2. */
tarn_code shared_offsets_move(tarn_arena *arena, const tarn_metadata *m, tarn_str branch,
                              tarn_str key, tarn_str moves, tarn_str *out,
                              tarn_error *err) TARN_MUST_USE;
/* Whether there are moves in it: a checkpoint of them is committed also without rows. */
tarn_code shared_offsets_any(tarn_env *env, tarn_str moves, bool *out,
                             tarn_error *err) TARN_MUST_USE;

#endif
