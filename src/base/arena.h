/* base/arena.h - memory for one unit of work (a plan, a metadata document, a commit attempt), freed
 * whole. An arena is an argument, never a hidden current one. One thread at a time. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/env.h"
#include "base/str.h"

typedef struct tarn_arena {
    tarn_env *env;
    struct arena_block *head; /* newest block */
    size_t used_bytes;        /* in all blocks */
} tarn_arena;

void arena_init(tarn_arena *arena, tarn_env *env); /* allocates nothing yet */
void arena_release(tarn_arena *arena);             /* also of a zeroed arena; twice is fine */
void arena_move(tarn_arena *dst, tarn_arena *src); /* dst must be empty; src becomes empty */

/* 16-byte aligned, NOT zeroed; NULL when there is no memory. Size 0 gives a non-NULL pointer. */
void *arena_alloc(tarn_arena *arena, size_t size_bytes);
void *arena_calloc(tarn_arena *arena, size_t count,
                   size_t size_bytes); /* zeroed, product checked */
/* Grows the array; cheap when ptr was the last allocation. The old content is copied. */
void *arena_grow(tarn_arena *arena, void *ptr, size_t old_bytes, size_t new_bytes);
/* Copies; out.data is NUL-terminated for convenience; data is NULL only when there is no memory. */
tarn_str arena_str(tarn_arena *arena, tarn_str s);
char *arena_strdup(tarn_arena *arena, const char *text);
char *arena_printf(tarn_arena *arena, const char *fmt, ...) TARN_PRINTF(2, 3);

#define ARENA_NEW(arena, type)          ((type *)arena_calloc((arena), 1, sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_calloc((arena), (count), sizeof(type)))

#endif
