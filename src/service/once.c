/* service/once.c - see once.h. Entries hang in buckets by their key, and in a list by age: the
 * oldest go when their time is over or when there are too many. */
#include "service/once.h"
#include "table/value.h"

#include <pthread.h>

#define N_BUCKETS   4096
#define MAX_ENTRIES 100000
#define MAX_BODY    4096 /* longer ones can be had anew */
#define KEY_BYTES   36

typedef struct once_entry {
    char key[KEY_BYTES];
    uint64_t request;
    int64_t at_ms;
    int status; /* 0: at work */
    int waiters;
    bool open; /* it came to nothing: the next that waits does it */
    bool has_body;
    char *body;
    size_t body_len;
    struct once_entry *next;          /* in the bucket */
    struct once_entry *older, *newer; /* by age */
} once_entry;

struct once_keys {
    tarn_env *env;
    pthread_mutex_t lock;
    pthread_cond_t done;
    int64_t n_entries;
    once_entry *oldest, *newest;
    once_entry *buckets[N_BUCKETS];
};

tarn_code once_keys_new(tarn_env *env, once_keys **out, tarn_error *err) {
    once_keys *keys = env_calloc(env, 1, sizeof *keys);
    if (keys == NULL) {
        return err_nomem(err);
    }
    keys->env = env;
    (void)pthread_mutex_init(&keys->lock, NULL);
    (void)pthread_cond_init(&keys->done, NULL);
    *out = keys;
    return TARN_OK;
}

static once_entry **slot_of(once_keys *keys, tarn_str key) {
    once_entry **slot = &keys->buckets[str_hash(key) % N_BUCKETS];
    while (*slot != NULL && memcmp((*slot)->key, key.data, KEY_BYTES) != 0) {
        slot = &(*slot)->next;
    }
    return slot;
}

static void remove_entry(once_keys *keys, once_entry *e) {
    once_entry **slot = slot_of(keys, str_make(e->key, KEY_BYTES));
    *slot = e->next;
    *(e->older != NULL ? &e->older->newer : &keys->oldest) = e->newer;
    *(e->newer != NULL ? &e->newer->older : &keys->newest) = e->older;
    keys->n_entries--;
    if (e->body != NULL) {
        env_free(keys->env, e->body);
    }
    env_free(keys->env, e);
}

void once_keys_free(once_keys *keys) {
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

bool once_key_valid(tarn_str key) {
    uint8_t unused[16];
    return key.len == KEY_BYTES && value_parse_uuid(key, unused);
}

static void expire(once_keys *keys, int64_t now_ms) {
    once_entry *next;
    for (once_entry *e = keys->oldest; e != NULL; e = next) {
        next = e->newer;
        if (keys->n_entries < MAX_ENTRIES && now_ms - e->at_ms < ONCE_LIFETIME_MS) {
            return;
        }
        if (e->status != 0 && e->waiters == 0) {
            remove_entry(keys, e);
        }
    }
}

static void add_entry(once_keys *keys, tarn_str key, uint64_t request, int64_t now_ms) {
    once_entry *e = env_calloc(keys->env, 1, sizeof *e);
    if (e == NULL) {
        return; /* it is done, and not known again */
    }
    memcpy(e->key, key.data, KEY_BYTES);
    e->request = request;
    e->at_ms = now_ms;
    once_entry **slot = slot_of(keys, key);
    *slot = e;
    e->older = keys->newest;
    *(keys->newest != NULL ? &keys->newest->newer : &keys->oldest) = e;
    keys->newest = e;
    keys->n_entries++;
}

once_turn once_begin(once_keys *keys, tarn_str key, uint64_t request, int *status, bool *has_body,
                     tarn_buf *body) {
    once_turn turn = ONCE_RUN;
    int64_t now_ms = env_now_ms(keys->env);
    (void)pthread_mutex_lock(&keys->lock);
    expire(keys, now_ms);
    once_entry *e = *slot_of(keys, key);
    while (e != NULL && e->request == request && e->status == 0 && !e->open) {
        e->waiters++; /* an entry that is waited for stays */
        (void)pthread_cond_wait(&keys->done, &keys->lock);
        e->waiters--;
    }
    if (e == NULL) {
        add_entry(keys, key, request, now_ms);
    } else if (e->request != request) {
        turn = ONCE_MISUSED;
    } else if (e->status == 0) {
        e->open = false;
    } else {
        turn = ONCE_REPLAY;
        *status = e->status;
        *has_body = e->has_body;
        if (e->body_len > 0 && buf_append(body, e->body, e->body_len, NULL) != TARN_OK) {
            buf_reset(body);
        }
    }
    (void)pthread_mutex_unlock(&keys->lock);
    return turn;
}

static bool is_final(int status) {
    return (status >= 200 && status < 300) ||
           (status >= 400 && status < 500 && status != 401 && status != 403 && status != 408 &&
            status != 413 && status != 429);
}

void once_end(once_keys *keys, tarn_str key, int status, tarn_str body) {
    (void)pthread_mutex_lock(&keys->lock);
    once_entry *e = *slot_of(keys, key);
    if (e != NULL && !is_final(status)) {
        e->open = true;
        if (e->waiters == 0) {
            remove_entry(keys, e);
        }
    } else if (e != NULL) {
        e->status = status;
        e->has_body = body.len > 0;
        e->body = body.len > 0 && body.len <= MAX_BODY ? env_alloc(keys->env, body.len) : NULL;
        if (e->body != NULL) {
            memcpy(e->body, body.data, body.len);
            e->body_len = body.len;
        }
    }
    (void)pthread_cond_broadcast(&keys->done);
    (void)pthread_mutex_unlock(&keys->lock);
}
