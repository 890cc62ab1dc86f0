/* dml/key_layers.h - what a key index knows and its disk does not: what was said since the last
 * step, the steps that wait for their snapshots, and what settled since it was last written.
 *
 *   overlay_set(now) -> layers_step -> steps, oldest first -> layers_settle -> settled -> disk
 *
 * Invariant: of a key the newest layer that names it counts, and all of them before the disk. */
#ifndef DML_KEY_LAYERS_H
#define DML_KEY_LAYERS_H

#include "dml/key_overlay.h"

typedef struct key_layers {
    key_overlay now;
    key_overlay settled;
    key_overlay steps[KEY_INDEX_STEPS]; /* oldest first */
    int32_t n_steps;
} key_layers;

void layers_init(key_layers *l, tarn_env *env);
void layers_release(key_layers *l);                                  /* can be used on, empty */
size_t layers_step_bytes(const key_layers *l);                       /* memory of the steps */
size_t layers_held_bytes(const key_layers *l);                       /* memory of all but now */
const overlay_entry *layers_find(const key_layers *l, tarn_str key); /* NULL: nothing said */
/* What is in now becomes the newest step. LIMIT: there are KEY_INDEX_STEPS. */
tarn_code layers_step(key_layers *l, tarn_error *err) TARN_MUST_USE;
/* The oldest n steps join what settled. On failure some of them may have. */
tarn_code layers_settle(key_layers *l, int32_t n, tarn_error *err) TARN_MUST_USE;
void layers_drop(key_layers *l); /* now and the steps */

#endif
