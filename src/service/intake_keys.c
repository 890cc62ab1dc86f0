/* service/intake_keys.c - see intake_keys.h. Entries hang in buckets by their key, and in a list by
 * age, whose oldest go when their time is over. None that is young enough is forgotten. */
#include "service/intake_keys.h"

#include "base/num.h"

#include <pthread.h>

#define N_BUCKETS 65536u

typedef struct key_entry {
    intake_key key;
    bool working;
    int32_t waiters;
    struct key_entry *next;          /* in the bucket */
    struct key_entry *older, *newer; /* by age */
} key_entry;

struct intake_keys {
    tarn_env *env;
    int64_t lifetime_ms, most;
    pthread_mutex_t lock;
    pthread_cond_t done;
    int64_t n_entries;
    key_entry *oldest, *newest;
    key_entry *buckets[N_BUCKETS];
};

tarn_code intake_keys_new(tarn_env *env, int64_t lifetime_ms, int64_t most, intake_keys **out,
                          tarn_error *err) {
    intake_keys *keys = env_calloc(env, 1, sizeof *keys);
    if (keys == NULL) {
        return err_nomem(err);
    }
    keys->env = env;
    keys->lifetime_ms = lifetime_ms;
    keys->most = most;
    (void)pthread_mutex_init(&keys->lock, NULL);
    (void)pthread_cond_init(&keys->done, NULL);
    *out = keys;
    return TARN_OK;
}

static key_entry **slot_of(intake_keys *keys, const uint8_t *key) {
    key_entry **slot = &keys->buckets[num_load_u32(key) % N_BUCKETS];
    while (*slot != NULL && memcmp((*slot)->key.key, key, INTAKE_DIGEST) != 0) {
        slot = &(*slot)->next;
    }
    return slot;
}

static void unlink_age(intake_keys *keys, key_entry *e) {
    *(e->older != NULL ? &e->older->newer : &keys->oldest) = e->newer;
    *(e->newer != NULL ? &e->newer->older : &keys->newest) = e->older;
}

static void link_newest(intake_keys *keys, key_entry *e) {
    e->newer = NULL;
    e->older = keys->newest;
    *(keys->newest != NULL ? &keys->newest->newer : &keys->oldest) = e;
    keys->newest = e;
}

static void remove_entry(intake_keys *keys, key_entry *e) {
    key_entry **slot = slot_of(keys, e->key.key);
    *slot = e->next;
    unlink_age(keys, e);
    keys->n_entries--;
    env_free(keys->env, e);
}

void intake_keys_free(intake_keys *keys) {
    if (keys == NULL) {
        return;
    }
    while (keys->oldest != NULL) {
        remove_entry(keys, keys->oldest);
    }
    (void)pthread_cond_destroy(&keys->done);
    (void)pthread_mutex_destroy(&keys->lock);
    env_free(keys->env, keys);
}

static void expire(intake_keys *keys, int64_t now_ms) {
    key_entry *e = keys->oldest;
    while (e != NULL && now_ms - e->key.time_ms >= keys->lifetime_ms) {
        key_entry *newer = e->newer;
        if (!e->working && e->waiters == 0) {
            remove_entry(keys, e);
        }
        e = newer;
    }
}

static key_entry *add_entry(intake_keys *keys, const intake_key *key) {
    key_entry *e = env_calloc(keys->env, 1, sizeof *e);
    if (e != NULL) {
        e->key = *key;
        key_entry **slot = slot_of(keys, key->key);
        *slot = e;
        link_newest(keys, e);
        keys->n_entries++;
    }
    return e;
}

intake_turn intake_keys_begin(intake_keys *keys, const intake_key *key, intake_key *done) {
    intake_turn turn = INTAKE_TURN_TAKE;
    int64_t now_ms = env_now_ms(keys->env);
    (void)pthread_mutex_lock(&keys->lock);
    expire(keys, now_ms);
    key_entry *e = *slot_of(keys, key->key);
    while (e != NULL && e->working && memcmp(e->key.body, key->body, INTAKE_DIGEST) == 0) {
        e->waiters++; /* an entry that is waited for stays */
        (void)pthread_cond_wait(&keys->done, &keys->lock);
        e->waiters--;
    }
    if (e != NULL && !e->working && e->key.position < 0) { /* it came to nothing */
        memcpy(e->key.body, key->body, INTAKE_DIGEST);
        e->working = true;
        goto done;
    }
    if (e != NULL) {
        turn = memcmp(e->key.body, key->body, INTAKE_DIGEST) != 0 ? INTAKE_TURN_MISUSED
                                                                  : INTAKE_TURN_REPEATED;
        *done = e->key;
        goto done;
    }
    e = keys->n_entries < keys->most ? add_entry(keys, key) : NULL;
    if (e == NULL) {
        turn = INTAKE_TURN_FULL;
        goto done;
    }
    e->working = true;
    e->key.position = -1;
    e->key.time_ms = now_ms;
done:
    (void)pthread_mutex_unlock(&keys->lock);
    return turn;
}

void intake_keys_end(intake_keys *keys, const intake_key *key, const intake_key *done) {
    (void)pthread_mutex_lock(&keys->lock);
    key_entry *e = *slot_of(keys, key->key);
    tarn_assert(e != NULL && e->working);
    e->working = false;
    if (done != NULL) {
        e->key = *done;
        unlink_age(keys, e); /* its time begins anew */
        link_newest(keys, e);
    } else if (e->waiters == 0) {
        remove_entry(keys, e);
    }
    (void)pthread_cond_broadcast(&keys->done);
    (void)pthread_mutex_unlock(&keys->lock);
}

tarn_code intake_keys_add(intake_keys *keys, const intake_key *key, tarn_error *err) {
    tarn_code code = TARN_OK;
    (void)pthread_mutex_lock(&keys->lock);
    if (env_now_ms(keys->env) - key->time_ms < keys->lifetime_ms &&
        *slot_of(keys, key->key) == NULL && add_entry(keys, key) == NULL) {
        code = err_nomem(err);
    }
    (void)pthread_mutex_unlock(&keys->lock);
    return code;
}

int64_t intake_keys_count(intake_keys *keys) {
    (void)pthread_mutex_lock(&keys->lock);
    int64_t n = keys->n_entries;
    (void)pthread_mutex_unlock(&keys->lock);
    return n;
}
