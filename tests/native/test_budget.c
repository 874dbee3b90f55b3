#include <stdint.h>

#include "allocations.h"
#include "budget.h"
#include "test_program.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

/* A program for the budget: what a tick costs of itself and for each slot looked at. */
struct program {
    uint64_t fixed_ns, slot_ns, slots, idle_thread_ns, idle_threads;
    uint64_t slots_per_visit; /* 0: each slot holds a task */
    uint64_t ticks_per_look, look_ns; /* suspended tasks are looked at in one of so many ticks only, and that costs */
};

struct result {
    uint64_t used_ns, end_ns, ticks, slots, idle_threads;
};

/* On a clock that the budget's own pauses move on, until seconds have passed. Slots and idle threads are those of the last tick. */
static struct result simulate(double share, struct program program, uint64_t seconds) {
    const uint64_t period_ns = 10 * MS;
    struct budget budget;
    struct result result = {0};
    uint64_t wait = 0;
    budget_init(&budget, share, (double)period_ns);
    while (result.end_ns < seconds * SECOND) {
        uint64_t step = wait > period_ns ? wait : period_ns, slots = budget_slots(&budget), threads = budget_idle_threads(&budget);
        if (program.ticks_per_look) slots = result.ticks % program.ticks_per_look ? 0 : slots * program.ticks_per_look;
        if (slots > program.slots) slots = program.slots;
        if (threads > program.idle_threads) threads = program.idle_threads;
        struct tick_cost cost = {
            .cpu_ns = program.fixed_ns + threads * program.idle_thread_ns + slots * program.slot_ns + (slots ? program.look_ns : 0),
            .tasks_ns = slots * program.slot_ns + (slots ? program.look_ns : 0),
            .slots = slots,
            .visits = program.slots_per_visit ? slots / program.slots_per_visit : slots,
            .all_slots = program.slots,
            .idle_threads = program.idle_threads,
            .wall_ns = step,
        };
        result.end_ns += step;
        result.used_ns += cost.cpu_ns;
        result.ticks++;
        if (slots) result.slots = slots;
        result.idle_threads = threads;
        wait = budget_spend(&budget, &cost);
    }
    return result;
}

TEST(cheap_ticks_are_never_held_back) {
    struct result result = simulate(0.01, (struct program){.fixed_ns = 50000, .slot_ns = 300, .slots = 100}, 10);
    CHECK(result.ticks == 1000);
    CHECK(result.slots == 100);
}

TEST(the_window_is_narrowed_and_the_rate_kept) {
    static const uint64_t slots[] = {1000, 100000, 10000000};
    for (unsigned i = 0; i < 3; i++) {
        struct result result = simulate(0.01, (struct program){.fixed_ns = 60000, .slot_ns = 300, .slots = slots[i]}, 100);
        CHECK(result.ticks >= 9900);
        CHECK(result.used_ns <= result.end_ns / 100 + 10 * MS);
        CHECK(result.slots > 120 && result.slots < 150); /* 40 us */
    }
}

TEST(looks_far_apart_use_the_share_without_holding_ticks_back) {
    static const uint64_t ticks[] = {1, 4, 16, 64};
    for (unsigned i = 0; i < 4; i++) {
        struct program program = {.fixed_ns = 60000, .slot_ns = 300, .slots = 10000000, .ticks_per_look = ticks[i], .look_ns = 10000 * ticks[i]};
        struct result result = simulate(0.01, program, 100);
        CHECK(result.ticks >= 9700);
        CHECK(result.used_ns <= result.end_ns / 100 + 10 * MS);
        CHECK(result.slots > 80 * ticks[i] && result.slots < 120 * ticks[i]); /* 30 us in each tick */
    }
}

TEST(idle_threads_come_after_the_window_and_before_the_rate) {
    struct program program = {.fixed_ns = 50000, .slot_ns = 300, .slots = 100000, .idle_thread_ns = 1000, .idle_threads = 200};
    struct result result = simulate(0.01, program, 100);
    CHECK(result.ticks >= 9500);
    CHECK(result.used_ns <= result.end_ns / 100 + 10 * MS);
    CHECK(result.idle_threads > 20 && result.idle_threads < 60);
    CHECK(result.slots < 60);
}

TEST(some_tasks_are_looked_at_whatever_the_rest_costs) {
    struct result dense = simulate(0.01, (struct program){.fixed_ns = 500000, .slot_ns = 300, .slots = 256}, 100);
    struct result half = simulate(0.01, (struct program){.fixed_ns = 500000, .slot_ns = 300, .slots = 100000, .slots_per_visit = 2}, 100);
    struct result sparse = simulate(0.01, (struct program){.fixed_ns = 500000, .slot_ns = 300, .slots = 100000, .slots_per_visit = 1000}, 100);
    CHECK(dense.slots == 6 && half.slots == 12 && sparse.slots == 32);
    CHECK(dense.used_ns <= dense.end_ns / 100 + 11 * MS);
}

/* Ticks of 60 us of which one in a thousand, every ten seconds, costs so much. */
static uint64_t longest_wait(uint64_t costly_ns, uint64_t *used_ns, uint64_t *end_ns) {
    struct budget budget;
    uint64_t wait = 0, longest = 0;
    budget_init(&budget, 0.01, 10.0 * MS);
    *used_ns = *end_ns = 0;
    for (unsigned tick = 0; tick < 10000; tick++) {
        uint64_t step = wait > 10 * MS ? wait : 10 * MS, cpu_ns = tick % 1000 == 500 ? costly_ns : 60000;
        *end_ns += step;
        *used_ns += cpu_ns;
        wait = budget_spend(&budget, &(struct tick_cost){.cpu_ns = cpu_ns, .wall_ns = step});
        if (wait > longest) longest = wait;
    }
    return longest;
}

TEST(one_costly_tick_is_paid_by_its_reserve_or_by_many_short_pauses) {
    uint64_t used_ns, end_ns;
    CHECK(longest_wait(2 * MS, &used_ns, &end_ns) == 0);
    CHECK(longest_wait(12 * MS, &used_ns, &end_ns) <= 45 * MS);
    CHECK(longest_wait(100 * MS, &used_ns, &end_ns) > SECOND); /* nothing is owed for long */
    CHECK(used_ns <= end_ns / 100 + 20 * MS);
}

TEST(what_ticks_use_leaves_a_reserve) {
    struct budget budget;
    budget_init(&budget, 0.01, 10.0 * MS);
    for (unsigned tick = 0; tick < 1000; tick++) {
        uint64_t cpu_ns = 60000 + 300 * budget_slots(&budget);
        budget_spend(&budget, &(struct tick_cost){.cpu_ns = cpu_ns, .tasks_ns = cpu_ns - 60000, .slots = budget_slots(&budget), .all_slots = 1 << 20, .wall_ns = 10 * MS});
    }
    CHECK(budget.credit_ns > 2 * MS && budget.credit_ns < 3 * MS);
}

TEST(costly_ticks_use_the_share_and_one_second_of_it_saved_up) {
    static const uint64_t costs[] = {150000, MS, 25 * MS, 300 * MS};
    for (unsigned i = 0; i < 4; i++) {
        struct result result = simulate(0.01, (struct program){.fixed_ns = costs[i], .slot_ns = 300, .slots = 1}, 100);
        CHECK(result.used_ns <= result.end_ns / 100 + 10 * MS + costs[i] + 300);
        CHECK(result.used_ns + costs[i] + 300 >= result.end_ns / 100);
    }
}

TEST(rest_is_saved_up_for_one_second_only) {
    struct budget budget;
    budget_init(&budget, 0.01, 10.0 * MS);
    CHECK(budget_spend(&budget, &(struct tick_cost){.wall_ns = 3600 * SECOND}) == 0);
    CHECK(budget_spend(&budget, &(struct tick_cost){.cpu_ns = 10 * MS}) == 0);
    uint64_t wait = budget_spend(&budget, &(struct tick_cost){.cpu_ns = MS});
    CHECK(wait > 99 * MS && wait < 101 * MS);
}
