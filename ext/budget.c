#include "budget.h"

#include <stdbool.h>

#define MAX_CREDIT_SECONDS 1.0 /* of the share may be saved up: what makes up for one costly tick, but no burst */
#define SMOOTHING (1.0 / 16)
#define FIRST_SLOTS 128        /* before anything was measured: a cautious start */
#define FIRST_SLOT_NS 1000.0
#define STEP 0.125             /* of the way to where the budget would be used up */
#define LEAST_FOR_TASKS 0.1    /* of the share of a tick, however much the rest costs */
#define FEWER_IDLE_THREADS 0.95
#define MORE_IDLE_THREADS 1.02

void budget_init(struct budget *budget, double share, double period_ns) {
    *budget = (struct budget){
        .share = share,
        .period_ns = period_ns,
        .credit_ns = MAX_CREDIT_SECONDS * 1e9 * share,
        .slots = FIRST_SLOTS,
        .slot_ns = FIRST_SLOT_NS,
        .idle_threads = 1e6,
    };
}

/* For one tick: its share, and a part of what is saved up or owed, so that this is used or paid within about a second. */
static double allowance(const struct budget *budget) {
    return budget->share * budget->period_ns + budget->credit_ns * budget->period_ns / 1e9;
}

uint64_t budget_slots(const struct budget *budget) { return (uint64_t)budget->slots; }

uint64_t budget_idle_threads(const struct budget *budget) { return (uint64_t)budget->idle_threads; }

/* A part of the cost for tasks does not grow with their number, so that no division gives the right one: it is felt for. */
static void adjust_slots(struct budget *budget, const struct tick_cost *cost) {
    double left = allowance(budget) - budget->tick_ns;
    if (left > 0 && (double)cost->slots < budget->slots) return; /* there were no more */
    budget->slots += STEP * left / budget->slot_ns;
    double least = LEAST_FOR_TASKS * budget->share * budget->period_ns / budget->slot_ns;
    if (budget->slots < least) budget->slots = least;
    if (budget->slots < 1) budget->slots = 1;
}

static void smooth(double *value, double now) { *value += *value ? SMOOTHING * (now - *value) : now; }

uint64_t budget_spend(struct budget *budget, const struct tick_cost *cost) {
    double most = MAX_CREDIT_SECONDS * 1e9 * budget->share;
    smooth(&budget->tick_ns, (double)cost->cpu_ns);
    smooth(&budget->fixed_ns, (double)(cost->cpu_ns - cost->tasks_ns));
    if (cost->slots) smooth(&budget->slot_ns, (double)cost->tasks_ns / (double)cost->slots);
    if (cost->visits) smooth(&budget->visit_ns, (double)cost->tasks_ns / (double)cost->visits);
    if (budget->slot_ns < 1) budget->slot_ns = 1;
    if (cost->slots) adjust_slots(budget, cost);
    if (cost->idle_threads) {
        if (budget->idle_threads > (double)cost->idle_threads) budget->idle_threads = (double)cost->idle_threads;
        bool too_dear = budget->fixed_ns > (1 - LEAST_FOR_TASKS) * allowance(budget);
        budget->idle_threads = budget->idle_threads * (too_dear ? FEWER_IDLE_THREADS : MORE_IDLE_THREADS) + (too_dear ? 0 : 0.1);
        if (budget->idle_threads < 1) budget->idle_threads = 1;
    }
    budget->credit_ns += (double)cost->wall_ns * budget->share;
    if (budget->credit_ns > most) budget->credit_ns = most;
    budget->credit_ns -= (double)cost->cpu_ns;
    return budget->credit_ns >= 0 ? 0 : (uint64_t)(-budget->credit_ns / budget->share);
}
