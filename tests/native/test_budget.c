#include <stdint.h>

#include "allocations.h"
#include "budget.h"
#include "test_program.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

/* CPU time used by ticks that cost cpu_ns each, on a clock that the budget's own pauses move on, until seconds have passed. */
static uint64_t used_over(double share, uint64_t cpu_ns, uint64_t period_ns, uint64_t seconds, uint64_t *ticks, uint64_t *end) {
    struct budget budget;
    uint64_t now = 0, used = 0, wait = 0;
    budget_init(&budget, share);
    *ticks = 0;
    while (now < seconds * SECOND) {
        uint64_t step = wait > period_ns ? wait : period_ns;
        now += step;
        used += cpu_ns;
        ++*ticks;
        wait = budget_spend(&budget, cpu_ns, step);
    }
    *end = now;
    return used;
}

TEST(cheap_ticks_are_never_held_back) {
    uint64_t ticks, end;
    used_over(0.01, 90000, 10 * MS, 10, &ticks, &end);
    CHECK(ticks == 1000);
}

TEST(costly_ticks_use_the_share_and_one_second_of_it_saved_up) {
    static const uint64_t costs[] = {150000, MS, 25 * MS, 300 * MS};
    for (unsigned i = 0; i < 4; i++) {
        uint64_t ticks, end, used = used_over(0.01, costs[i], 10 * MS, 100, &ticks, &end);
        CHECK(used <= end / 100 + 10 * MS + costs[i]);
        CHECK(used + costs[i] >= end / 100);
    }
}

TEST(rest_is_saved_up_for_one_second_only) {
    struct budget budget;
    budget_init(&budget, 0.01);
    CHECK(budget_spend(&budget, 0, 3600 * SECOND) == 0);
    CHECK(budget_spend(&budget, 10 * MS, 0) == 0);
    uint64_t wait = budget_spend(&budget, MS, 0);
    CHECK(wait > 99 * MS && wait < 101 * MS);
}
