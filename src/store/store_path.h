/* store/store_path.h - paths as people give them. */
#ifndef STORE_STORE_PATH_H
#define STORE_STORE_PATH_H

#include "base/arena.h"
#include "base/err.h"

/* A location that means the same from every folder, by one name: a relative path is put below the
 * working directory, and ".", ".." and doubled or trailing slashes go, also from file: URIs without
 * percent signs; other URIs stay as they are. Links are followed only where ".." goes back over
 * them. */
tarn_code store_absolute(tarn_arena *arena, tarn_str path, tarn_str *out,
                         tarn_error *err) TARN_MUST_USE;

#endif
