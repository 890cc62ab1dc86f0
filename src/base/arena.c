/* base/arena.c - memory freed whole.
 * Blocks hang in a list, newest first; small allocations are cut from the newest, large ones get a
 * block of their own that is hung behind it. Invariants: every pointer given out is 16-byte
 * aligned; bytes of a block that were not given out are poisoned under ASan. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/num.h"

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif

#if defined(UNDER_ASAN)
#include <sanitizer/asan_interface.h>
#define REDZONE_BYTES      ((size_t)16) /* between allocations, so that stepping over is seen */
#define POISON(ptr, len)   ASAN_POISON_MEMORY_REGION((ptr), (len))
#define UNPOISON(ptr, len) ASAN_UNPOISON_MEMORY_REGION((ptr), (len))
#else
#define REDZONE_BYTES      ((size_t)0)
#define POISON(ptr, len)   ((void)(ptr), (void)(len))
#define UNPOISON(ptr, len) ((void)(ptr), (void)(len))
#endif

#define ALIGN_BYTES     ((size_t)16)
#define FIRST_BLOCK     ((size_t)4096)
#define LARGEST_BLOCK   ((size_t)1 << 20)
#define LARGEST_REQUEST (SIZE_MAX / 4)

typedef struct arena_block {
    struct arena_block *next; /* older */
    size_t cap;               /* bytes after this header */
    size_t used;
    size_t alone; /* 1: holds a single large allocation */
} arena_block;

_Static_assert(sizeof(arena_block) % 16 == 0, "the first allocation of a block must be aligned");

static unsigned char *block_data(arena_block *block) {
    return (unsigned char *)(block + 1);
}

static size_t round_up(size_t size) {
    size_t rounded = size == 0 ? ALIGN_BYTES : (size + ALIGN_BYTES - 1) & ~(ALIGN_BYTES - 1);
    return rounded + REDZONE_BYTES;
}

void arena_init(tarn_arena *arena, tarn_env *env) {
    arena->env = env;
    arena->head = NULL;
    arena->used_bytes = 0;
}

void arena_release(tarn_arena *arena) {
    arena_block *block = arena->head;
    while (block != NULL) {
        arena_block *older = block->next;
        UNPOISON(block_data(block), block->cap);
        env_free(arena->env, block);
        block = older;
    }
    arena->head = NULL;
    arena->used_bytes = 0;
}

void arena_move(tarn_arena *dst, tarn_arena *src) {
    *dst = *src;
    src->head = NULL;
    src->used_bytes = 0;
}

static arena_block *new_block(tarn_arena *arena, size_t cap, bool alone) {
    arena_block *block = env_alloc(arena->env, sizeof *block + cap);
    if (block == NULL) {
        return NULL;
    }
    block->next = NULL;
    block->cap = cap;
    block->used = 0;
    block->alone = alone ? 1 : 0;
    POISON(block_data(block), cap);
    return block;
}

static void *cut(tarn_arena *arena, arena_block *block, size_t size, size_t rounded) {
    unsigned char *ptr = block_data(block) + block->used;
    block->used += rounded;
    arena->used_bytes += rounded;
    UNPOISON(ptr, size == 0 ? 1 : size);
    return ptr;
}

static void *alloc_slow(tarn_arena *arena, size_t size, size_t rounded) {
    arena_block *head = arena->head;
    size_t cap = FIRST_BLOCK - sizeof(arena_block) - ALIGN_BYTES;
    while (cap < arena->used_bytes && cap < LARGEST_BLOCK) {
        cap *= 2;
    }
    if (rounded > cap / 4) {
        arena_block *block = new_block(arena, rounded, true);
        if (block == NULL) {
            return NULL;
        }
        if (head != NULL) {
            block->next = head->next;
            head->next = block;
        } else {
            arena->head = block;
        }
        return cut(arena, block, size, rounded);
    }
    arena_block *block = new_block(arena, cap & ~(ALIGN_BYTES - 1), false);
    if (block == NULL) {
        return NULL;
    }
    block->next = head;
    arena->head = block;
    return cut(arena, block, size, rounded);
}

void *arena_alloc(tarn_arena *arena, size_t size_bytes) {
    if (size_bytes > LARGEST_REQUEST) {
        return NULL;
    }
    size_t rounded = round_up(size_bytes);
    arena_block *head = arena->head;
    if (head != NULL && head->cap - head->used >= rounded) {
        return cut(arena, head, size_bytes, rounded);
    }
    return alloc_slow(arena, size_bytes, rounded);
}

void *arena_calloc(tarn_arena *arena, size_t count, size_t size_bytes) {
    size_t total;
    if (!num_mul_size(count, size_bytes, &total)) {
        return NULL;
    }
    void *ptr = arena_alloc(arena, total);
    if (ptr != NULL) {
        memset(ptr, 0, total);
    }
    return ptr;
}

/* Where the block that holds only ptr hangs, when it is one of the two newest; else NULL. */
static arena_block **find_alone(tarn_arena *arena, const void *ptr) {
    arena_block **link = &arena->head;
    for (int i = 0; i < 2 && *link != NULL; i++) {
        if ((*link)->alone && block_data(*link) == ptr) {
            return link;
        }
        link = &(*link)->next;
    }
    return NULL;
}

static void *grow_alone(tarn_arena *arena, arena_block **link, size_t new_bytes) {
    arena_block *block = *link;
    size_t rounded = round_up(new_bytes);
    UNPOISON(block_data(block), block->cap);
    arena_block *moved = env_realloc(arena->env, block, sizeof *block + rounded);
    if (moved == NULL) {
        return NULL;
    }
    arena->used_bytes += rounded - moved->used;
    moved->cap = rounded;
    moved->used = rounded;
    POISON(block_data(moved) + new_bytes, rounded - new_bytes);
    *link = moved;
    return block_data(moved);
}

void *arena_grow(tarn_arena *arena, void *ptr, size_t old_bytes, size_t new_bytes) {
    if (ptr == NULL) {
        return arena_alloc(arena, new_bytes);
    }
    if (new_bytes <= old_bytes) {
        return ptr;
    }
    if (new_bytes > LARGEST_REQUEST) {
        return NULL;
    }
    arena_block *head = arena->head;
    size_t old_rounded = round_up(old_bytes);
    size_t more = round_up(new_bytes) - old_rounded;
    if (head != NULL && !head->alone && head->used >= old_rounded &&
        block_data(head) + head->used - old_rounded == ptr && head->cap - head->used >= more) {
        head->used += more;
        arena->used_bytes += more;
        UNPOISON(ptr, new_bytes);
        return ptr;
    }
    arena_block **link = find_alone(arena, ptr);
    if (link != NULL) {
        return grow_alone(arena, link, new_bytes);
    }
    void *moved = arena_alloc(arena, new_bytes);
    if (moved != NULL) {
        memcpy(moved, ptr, old_bytes);
    }
    return moved;
}

tarn_str arena_str(tarn_arena *arena, tarn_str s) {
    if (s.len > LARGEST_REQUEST) {
        return STR_NULL;
    }
    char *copy = arena_alloc(arena, s.len + 1);
    if (copy == NULL) {
        return STR_NULL;
    }
    if (s.len > 0) {
        memcpy(copy, s.data, s.len);
    }
    copy[s.len] = '\0';
    return str_make(copy, s.len);
}

char *arena_strdup(tarn_arena *arena, const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(arena, size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

char *arena_printf(tarn_arena *arena, const char *fmt, ...) {
    char small[256];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    if (len < 0) {
        return NULL;
    }
    size_t size = (size_t)len + 1;
    char *text = arena_alloc(arena, size);
    if (text == NULL) {
        return NULL;
    }
    if (size <= sizeof small) {
        memcpy(text, small, size);
        return text;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, size, fmt, args);
    va_end(args);
    return text;
}
