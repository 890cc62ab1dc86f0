/* write/commit/commit_memory.c - what delete manifests were found to hold, kept between commits: a
 * set of hashes for each, so that most are not read again (commit.h).
 *
 * Invariant: a set may say yes where the manifest does not hold a thing, never no where it does. */
#include "write/commit/commit_int.h"

#define MAX_HASHES                                                                                 \
    (1 << 20) /* of all manifests: 16 MiB at most; what is more is read each time                  \
               */

struct known_manifest {
    known_manifest *next;
    uint64_t path_hash;
    tarn_manifest like; /* without what it points to */
    bool asked;         /* since others were forgotten */
    size_t n_hashes, mask;
    uint64_t slots[]; /* open addressing; 0: free */
};

struct commit_memory {
    tarn_env *env;
    known_manifest *first;
    size_t n_hashes;
};

commit_memory *commit_memory_new(tarn_env *env) {
    commit_memory *memory = env_calloc(env, 1, sizeof *memory);
    if (memory != NULL) {
        memory->env = env;
    }
    return memory;
}

void commit_memory_free(commit_memory *memory) {
    if (memory != NULL) {
        while (memory->first != NULL) {
            known_manifest *known = memory->first;
            memory->first = known->next;
            env_free(memory->env, known);
        }
        env_free(memory->env, memory);
    }
}

/* Names are not given twice; a table that was made anew could have one by chance. */
static bool is_same(const known_manifest *known, uint64_t path_hash, const tarn_manifest *m) {
    return known->path_hash == path_hash && known->like.length == m->length &&
           known->like.added_snapshot_id == m->added_snapshot_id &&
           known->like.sequence_number == m->sequence_number;
}

const known_manifest *commit_memory_find(commit_memory *memory, const tarn_manifest *manifest) {
    if (memory == NULL) {
        return NULL;
    }
    uint64_t path_hash = str_hash(manifest->path);
    known_manifest *known = memory->first;
    while (known != NULL && !is_same(known, path_hash, manifest)) {
        known = known->next;
    }
    if (known != NULL) {
        known->asked = true;
    }
    return known;
}

static bool find_slot(const known_manifest *known, uint64_t hash, size_t *at) {
    *at = (size_t)hash & known->mask;
    while (known->slots[*at] != 0 && known->slots[*at] != hash) {
        *at = (*at + 1) & known->mask;
    }
    return known->slots[*at] != 0;
}

bool known_manifest_may_hold(const known_manifest *known, uint64_t hash) {
    size_t at;
    return hash == 0 || find_slot(known, hash, &at);
}

void commit_memory_keep(commit_memory *memory, const tarn_manifest *manifest,
                        const uint64_t *hashes, size_t n) {
    size_t n_slots = 16;
    if (commit_memory_find(memory, manifest) != NULL || n > MAX_HASHES - memory->n_hashes) {
        return;
    }
    while (n_slots < n * 2) {
        n_slots *= 2;
    }
    known_manifest *known = env_calloc(memory->env, 1, sizeof *known + n_slots * sizeof *hashes);
    if (known == NULL) {
        return;
    }
    known->path_hash = str_hash(manifest->path);
    known->like = *manifest;
    known->asked = true;
    known->n_hashes = n;
    known->mask = n_slots - 1;
    for (size_t i = 0; i < n; i++) {
        size_t at;
        if (!find_slot(known, hashes[i], &at)) {
            known->slots[at] = hashes[i];
        }
    }
    known->next = memory->first;
    memory->first = known;
    memory->n_hashes += n;
}

void commit_memory_forget(commit_memory *memory) {
    known_manifest **at = memory != NULL ? &memory->first : NULL;
    while (at != NULL && *at != NULL) {
        known_manifest *known = *at;
        if (known->asked) {
            known->asked = false;
            at = &known->next;
        } else {
            *at = known->next;
            memory->n_hashes -= known->n_hashes;
            env_free(memory->env, known);
        }
    }
}
