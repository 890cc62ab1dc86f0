/* tests/sim/sim_schedule.c - who runs, when it is, and what comes out of chance: all from the seed.
 *
 * Every actor is a thread that runs only while it is the current one. Whoever reaches a simulated
 * call hands on: the next is drawn from those that can run. Time goes on a little with every
 * step, and jumps to the next sleeper's end where everybody waits. Locks, semaphores and
 * conditions of the code under test are waited for here, so that none blocks a thread for real. */
#include "sim.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>

#define MAX_ACTORS  64
#define STACK_BYTES (2u << 20)
#define EVENTS      400
#define EVENT_BYTES 240
#define MAX_STEPS   3000000
#define POLL_US     200

typedef struct actor {
    const char *name;
    void (*run)(void *ctx);
    void *ctx;
    pthread_t thread;
    sem_t go;
    bool ended;
    int64_t wake_us; /* 0: it can run */
    bool (*ready)(void *ctx);
    void *ready_ctx;
    const char *waits_for;
} actor;

static struct {
    uint64_t seed, random, steps;
    int64_t now_us;
    actor actors[MAX_ACTORS];
    int n;
    sem_t all_ended;
    char events[EVENTS][EVENT_BYTES];
    uint64_t n_events;
} schedule;
static _Thread_local actor *me;

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_sem_wait(sem_t *sem);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_sem_wait(sem_t *sem);

void sim_schedule_begin(uint64_t seed) {
    memset(&schedule, 0, sizeof schedule);
    schedule.seed = seed;
    schedule.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    schedule.now_us = INT64_C(1700000000000000);
    (void)sem_init(&schedule.all_ended, 0, 0);
}

bool sim_is_actor(void) {
    return me != NULL;
}

int64_t sim_now_us(void) {
    return schedule.now_us;
}

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = schedule.random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t sim_chance(uint32_t n) {
    return (uint32_t)((draw() >> 16) % n);
}

bool sim_one_in(uint32_t n) {
    return n > 0 && sim_chance(n) == 0;
}

void sim_random(void *out, size_t len) {
    uint8_t *to = out;
    for (size_t i = 0; i < len; i++) {
        to[i] = (uint8_t)(draw() >> 24);
    }
}

void sim_trace(const char *fmt, ...) {
    char *to = schedule.events[schedule.n_events++ % EVENTS];
    va_list args;
    int n = snprintf(to, EVENT_BYTES, "%10.3f %-10s ",
                     (double)(schedule.now_us - INT64_C(1700000000000000)) / 1e3,
                     me != NULL ? me->name : "world");
    va_start(args, fmt);
    (void)vsnprintf(to + n, EVENT_BYTES - (size_t)n, fmt, args);
    va_end(args);
}

void sim_fail(const char *fmt, ...) {
    va_list args;
    uint64_t first = schedule.n_events > EVENTS ? schedule.n_events - EVENTS : 0;
    for (uint64_t i = first; i < schedule.n_events; i++) {
        printf("%s\n", schedule.events[i % EVENTS]);
    }
    printf("history %llu failed (sim_commits --seed %llu runs it again): ",
           (unsigned long long)schedule.seed, (unsigned long long)schedule.seed);
    va_start(args, fmt);
    (void)vprintf(fmt, args);
    va_end(args);
    printf("\n");
    (void)fflush(stdout);
    _Exit(1);
}

/* ---- who runs ---- */

static bool can_run(const actor *a) {
    return !a->ended && a->wake_us <= schedule.now_us &&
           (a->ready == NULL || a->ready(a->ready_ctx));
}

static void report_standstill(void) {
    for (int i = 0; i < schedule.n; i++) {
        const actor *a = &schedule.actors[i];
        if (!a->ended) {
            sim_trace("%s waits for %s", a->name, a->waits_for != NULL ? a->waits_for : "nothing");
        }
    }
    sim_fail("nobody can go on");
}

/* NULL: all have ended. */
static actor *draw_next(void) {
    for (;;) {
        actor *able[MAX_ACTORS];
        uint32_t n = 0;
        bool any = false;
        int64_t wake_us = INT64_MAX;
        for (int i = 0; i < schedule.n; i++) {
            actor *a = &schedule.actors[i];
            any |= !a->ended;
            if (can_run(a)) {
                able[n++] = a;
            } else if (!a->ended && a->ready == NULL && a->wake_us < wake_us) {
                wake_us = a->wake_us;
            }
        }
        if (n > 0) {
            return able[sim_chance(n)];
        }
        if (!any) {
            return NULL;
        }
        if (wake_us == INT64_MAX) {
            report_standstill();
        }
        schedule.now_us = wake_us;
    }
}

static void step(void) {
    schedule.now_us += sim_chance(400);
    if (++schedule.steps > MAX_STEPS) {
        sim_fail("more than %d steps", MAX_STEPS);
    }
}

/* The current actor lets others run until it is drawn again. */
static void hand_on(void) {
    actor *self = me;
    step();
    actor *next = draw_next();
    if (next != self) {
        (void)sem_post(&next->go);
        while (__real_sem_wait(&self->go) != 0) { /* a signal came */
        }
    }
    self->wake_us = 0;
    self->ready = NULL;
    self->waits_for = NULL;
}

void sim_yield(void) {
    if (me == NULL) {
        return;
    }
    if (sim_chance(3) == 0) {
        step(); /* nobody came in between */
    } else {
        hand_on();
    }
}

void sim_sleep_us(int64_t us) {
    if (me != NULL) {
        me->wake_us = schedule.now_us + (us > 0 ? us : 0);
        me->waits_for = "time";
        hand_on();
    }
}

void sim_wait(const char *what, bool (*ready)(void *ctx), void *ctx) {
    me->ready = ready;
    me->ready_ctx = ctx;
    me->waits_for = what;
    hand_on();
}

static void *run_actor(void *ctx) {
    actor *self = ctx;
    me = self;
    while (__real_sem_wait(&self->go) != 0) {
    }
    self->run(self->ctx);
    self->ended = true;
    actor *next = draw_next();
    (void)sem_post(next != NULL ? &next->go : &schedule.all_ended);
    return NULL;
}

void sim_spawn(const char *name, void (*run)(void *ctx), void *ctx) {
    if (schedule.n == MAX_ACTORS) {
        sim_fail("too many actors");
    }
    actor *a = &schedule.actors[schedule.n++];
    *a = (actor){.name = name, .run = run, .ctx = ctx};
    (void)sem_init(&a->go, 0, 0);
}

void sim_run(void) {
    pthread_attr_t attr;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (int i = 0; i < schedule.n; i++) {
        actor *a = &schedule.actors[i];
        if (pthread_create(&a->thread, &attr, run_actor, a) != 0) {
            sim_fail("no thread could be had");
        }
    }
    actor *first = draw_next();
    if (first != NULL) {
        (void)sem_post(&first->go);
        while (__real_sem_wait(&schedule.all_ended) != 0) {
        }
    }
    for (int i = 0; i < schedule.n; i++) {
        (void)pthread_join(schedule.actors[i].thread, NULL);
        (void)sem_destroy(&schedule.actors[i].go);
    }
    (void)pthread_attr_destroy(&attr);
    (void)sem_destroy(&schedule.all_ended);
}

/* ---- what the code under test waits for ---- */

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock) {
    if (me == NULL) {
        return __real_pthread_mutex_lock(lock);
    }
    while (pthread_mutex_trylock(lock) == EBUSY) {
        sim_sleep_us(POLL_US);
    }
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock) {
    if (me == NULL) {
        return __real_pthread_cond_wait(cond, lock);
    }
    (void)pthread_mutex_unlock(lock); /* waking without a cause is allowed */
    sim_sleep_us(POLL_US);
    return __wrap_pthread_mutex_lock(lock);
}

static bool sem_is_up(void *ctx) {
    int value = 0;
    (void)sem_getvalue(ctx, &value);
    return value > 0;
}

int __wrap_sem_wait(sem_t *sem) {
    if (me == NULL) {
        return __real_sem_wait(sem);
    }
    while (sem_trywait(sem) != 0) {
        sim_wait("its turn", sem_is_up, sem);
    }
    return 0;
}
