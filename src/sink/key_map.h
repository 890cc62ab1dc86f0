/* sink/key_map.h - where the rows of keys lie, for one task: numbers of targets (data files that
 * the task knows) and positions. Three kinds of memory behind one face: a key index of the table,
 * which outlives the checkpoint, or, for the keys of one checkpoint alone, an overlay in memory
 * that spills into a scratch index on disk. */
#ifndef SINK_KEY_MAP_H
#define SINK_KEY_MAP_H

#include "base/map.h"
#include "dml/key_overlay.h"

#define KEY_ABSENT  (-1) /* nothing is known of the key */
#define KEY_DELETED (-2) /* an equality delete of this checkpoint took its older rows */
#define KEY_HELD    (-3) /* its row is held by the writer; position is the row's number */

typedef struct key_place {
    int32_t target; /* or KEY_ABSENT, KEY_DELETED, KEY_HELD */
    int64_t position;
} key_place;

typedef struct key_map {
    tarn_env *env;
    tarn_arena arena;
    key_index *index;   /* the table's; NULL: keys of this checkpoint alone */
    key_index *scratch; /* own; NULL: not spilled */
    const char *scratch_dir;
    size_t memory_bytes;
    key_overlay overlay;
    tarn_idmap target_of; /* index number -> target */
    int32_t *number_of;   /* target -> index number, -1: not asked yet */
    int32_t n_numbers;
    int32_t no_file[2];      /* index numbers of KEY_DELETED and KEY_HELD, -1: not asked yet */
    key_location *locations; /* of one call */
    size_t cap;
} key_map;

/* Names a target's path, finds or makes the target of a path (KEY_ABSENT: no such data file any
 * more), and hears of places that a found key has beside its own: the table held it more than
 * once. */
typedef struct key_targets {
    void *ctx;
    tarn_str (*path)(void *ctx, int32_t target);
    tarn_code (*find)(void *ctx, tarn_str path, int32_t *out, tarn_error *err);
    tarn_code (*older)(void *ctx, key_place place, tarn_error *err);
} key_targets;

void key_map_init(key_map *m, tarn_env *env, key_index *index, const char *scratch_dir,
                  size_t memory_bytes);
void key_map_release(key_map *m);
tarn_code key_map_find(key_map *m, const key_targets *targets, const tarn_str *keys, size_t n,
                       key_place *out, tarn_error *err) TARN_MUST_USE;
tarn_code key_map_put(key_map *m, const key_targets *targets, tarn_str *keys,
                      const key_place *places, size_t n,
                      tarn_error *err) TARN_MUST_USE; /* keys are reordered */

#endif
