/* Goal: whatever befalls writers, services, store and database, every acknowledged commit is in the
 * table exactly once, no other is there by half, readers see whole snapshots, and nothing that is
 * alive is removed. Method: histories made from seeds in a simulated world (sim.h), the model
 * looking at every version in the moment in which it appears (sim_model.c).
 *
 *     sim_commits [--seed N] [--histories N] [--from N]
 *
 * One seed is one history. TARN_SIM_SEED and TARN_SIM_HISTORIES do what the options do. */
#include "sim.h"

#include <string.h>

#define HISTORIES 100

sim_world SIM;

static uint32_t rate(const uint32_t *rates) {
    return rates[sim_chance(4)];
}

static void make_plan(uint64_t seed) {
    static const uint32_t STORE[] = {0, 0, 400, 120}, SWAP[] = {0, 60, 15, 6},
                          NET[] = {0, 30, 12, 6}, LIVES[] = {0, 0, 2000, 500},
                          STALLS[] = {0, 0, 400, 100};
    sim_plan *p = &SIM.plan;
    p->seed = seed;
    p->kind = (sim_kind)sim_chance(3);
    p->format_version = 2 + (int32_t)sim_chance(2);
    p->partitioned = sim_chance(2) == 0;
    p->trims = sim_chance(3) == 0;
    p->gzip = sim_chance(4) == 0;
    p->removes_old = sim_chance(4) == 0;
    p->settled = sim_chance(3) > 0;
    p->servers = (int)sim_chance(4);
    p->store_faults = rate(STORE);
    p->swap_faults = rate(SWAP);
    p->stalls = rate(STALLS);
    p->crowd = p->servers > 0 && sim_chance(3) == 0;
    p->net_faults = rate(NET);
    p->server_calls = rate(LIVES);
    p->client_calls = rate(LIVES);
    p->branches = sim_chance(3) == 0;
    p->compacts = p->servers > 0 && sim_chance(3) == 0;
}

static void run_history(uint64_t seed) {
    static const char *const KINDS[] = {"dir", "sqlite", "postgresql"};
    sim_process world;
    tarn_error err = TARN_ERROR_INIT;
    memset(&SIM, 0, sizeof SIM);
    sim_schedule_begin(seed);
    make_plan(seed);
    SIM.calm = true; /* while the table is made */
    sim_process_begin(&world, "world", 0);
    world.skew_us = 0;
    SIM.env = world.env;
    arena_init(&SIM.arena, SIM.env);
    if (store_memory_new(SIM.env, &SIM.disk, &err) != TARN_OK) {
        sim_fail("%s", err.message);
    }
    sim_model_begin();
    sim_db_begin();
    sim_make_table();
    sim_net_begin();
    sim_actors_begin();
    SIM.calm = false;
    sim_trace("%s, version %d%s%s%s%s%s%s%s, %d services", KINDS[SIM.plan.kind],
              SIM.plan.format_version, SIM.plan.partitioned ? ", partitioned" : "",
              SIM.plan.trims ? ", trims" : "", SIM.plan.gzip ? ", gzip" : "",
              SIM.plan.removes_old ? ", removes old versions" : "",
              SIM.plan.settled ? "" : ", not settled", SIM.plan.branches ? ", branches" : "",
              SIM.plan.compacts ? ", merges files" : "", SIM.plan.servers);
    sim_run();
    sim_model_end();
    store_close(SIM.disk);
    arena_release(&SIM.arena);
    sim_process_end(&world);
}

static uint64_t number_of(const char *text, uint64_t fallback) {
    return text != NULL ? strtoull(text, NULL, 10) : fallback;
}

int main(int argc, char **argv) {
    const char *seed = getenv("TARN_SIM_SEED");
    uint64_t n = number_of(getenv("TARN_SIM_HISTORIES"), HISTORIES);
    uint64_t first = 1;
    sim_world sum;
    memset(&sum, 0, sizeof sum);
    for (int i = 1; i + 1 < argc; i += 2) {
        seed = strcmp(argv[i], "--seed") == 0 ? argv[i + 1] : seed;
        n = strcmp(argv[i], "--histories") == 0 ? number_of(argv[i + 1], n) : n;
        first = strcmp(argv[i], "--from") == 0 ? number_of(argv[i + 1], first) : first;
    }
    first = number_of(seed, first);
    n = seed != NULL ? 1 : n;
    for (uint64_t i = first; i < first + n; i++) {
        run_history(i);
        sum.swaps += SIM.swaps;
        sum.acked += SIM.acked;
        sum.open += SIM.open;
        sum.refused += SIM.refused;
        sum.deaths += SIM.deaths;
        sum.replies_lost += SIM.replies_lost;
        sum.merged += SIM.merged;
    }
    printf(
        "%llu histories: %lld versions; %lld commits acknowledged, %lld refused, %lld open; %lld "
        "deaths, %lld answers lost; %lld merged files\n",
        (unsigned long long)n, (long long)sum.swaps, (long long)sum.acked, (long long)sum.refused,
        (long long)sum.open, (long long)sum.deaths, (long long)sum.replies_lost,
        (long long)sum.merged);
    return n >= HISTORIES && sum.merged == 0; /* then it was not looked at */
}
