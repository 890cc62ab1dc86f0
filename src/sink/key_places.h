/* sink/key_places.h - where the rows lie that deletes by position go for: key indexes and data
 * files, kept in step with the sink's own checkpoints while those are still on their way to the
 * table.
 *
 *   key_places_begin (the table as it is) -> rows -> key_places_push (closed, not committed yet) ->
 * rows
 * ... what became of them -> key_places_settle
 *
 * A checkpoint is written as if those before it were in the table already. That holds unless one of
 * them fails, which ends the sink, or somebody else's snapshot comes between: then what was written
 * so far is committed or refused by what the commit finds, as any work on an older snapshot is, and
 * the next checkpoint waits until nothing is on its way and reads the table (docs/decisions/0011).
 *
 * Invariants: 1 indexes and files stand for `base` and the checkpoints on their way, in their
 * order, and for nothing else, unless lost; 2 every snapshot between base and those checkpoints is
 * of this sink, as far as it knows: a commit is validated from base. */
#ifndef SINK_KEY_PLACES_H
#define SINK_KEY_PLACES_H

#include "catalog/catalog.h"
#include "sink/keys.h"
#include "sink/old_files.h"

typedef struct key_places {
    tarn_env *env;
    tarn_store *store;
    sink_keys *keys; /* those of deletes by position or vectors */
    old_files old;
    tarn_table_version *planned; /* that old was planned of */
    tarn_table_version *version; /* that it began with: keys look into it */
    int64_t base;
    int32_t on_way; /* checkpoints */
    bool lost;      /* the table is to be read before the next checkpoint */
} key_places;

void key_places_init(key_places *p, tarn_env *env, tarn_store *store, sink_keys *keys);
void key_places_release(key_places *p); /* also of a zeroed one */
/* All of this is said between checkpoints, when no rows are being written: but for key_places_lose.
 */
/* Whether a checkpoint can begin on top of those on their way; it has begun then. Else it begins
 * with key_places_clear, keys_begin and key_places_begin, when nothing is on its way. */
bool key_places_go_on(key_places *p);
void key_places_clear(key_places *p); /* forgets what was lost */
/* As the head of the version is, whose keys have begun. */
tarn_code key_places_begin(key_places *p, tarn_table_version *version, int64_t head,
                           tarn_error *err) TARN_MUST_USE;
/* A checkpoint is closed. Never fails: at worst it is lost. */
void key_places_push(key_places *p, const write_result *written);
/* Whether so much is on its way that it should be waited for. */
bool key_places_are_full(const key_places *p);
/* The oldest n that were on their way are done, with so many snapshots, of which this is the last;
 * version NULL: none, or not known. */
void key_places_settle(key_places *p, int32_t n, int64_t snapshots,
                       const tarn_table_version *version, int64_t snapshot_id);
void key_places_lose(key_places *p); /* before the next checkpoint the table is read */

#endif
