#include "budget.h"

#include <stdbool.h>

#define MAX_CREDIT_SECONDS 1.0 /* of the share may be saved up: what makes up for one costly tick, but no burst */
#define SMOOTHING (1.0 / 16)
#define STEP (1.0 / 32)        /* of the way to where the budget would be used up */
#define FIRST_SLOT_NS 1000.0   /* assumed before anything was measured: a cautious start */
#define RESERVE_SECONDS 0.25   /* of the share are left unspent: a costly tick then takes them, and no pause follows */
#define LONGEST_PAUSE_NS 40e6  /* where ticks usually cost what they may */
#define MAX_DEBT_SECONDS 1.0   /* of the share may be owed after a pause */
#define SLOWLY (1.0 / 8)       /* as if so much of a tick had passed: a costly one among many hardly counts */
#define LEAST_TASKS 6.0        /* looked at in a tick, whatever the rest costs */
#define LEAST_SLOTS 32.0       /* which is enough, however few tasks are found there */
#define ALMOST 0.9             /* of what a tick may cost: beyond it idle threads are left out */
#define FEWER_IDLE_THREADS 0.95
#define MORE_IDLE_THREADS 1.02

void budget_init(struct budget *budget, double share, double period_ns) {
    *budget = (struct budget){
        .share = share,
        .period_ns = period_ns,
        .credit_ns = MAX_CREDIT_SECONDS * 1e9 * share,
        .slots = share * period_ns / FIRST_SLOT_NS,
        .slot_ns = FIRST_SLOT_NS,
        .idle_threads = 1e6,
    };
    if (budget->slots < LEAST_SLOTS) budget->slots = LEAST_SLOTS;
}

/* For one tick: its share, and a part of what is saved up beyond the reserve or missing from it, so that this is used or paid within
   about a second. */
static double allowance(const struct budget *budget) {
    double beyond_reserve = budget->credit_ns - RESERVE_SECONDS * 1e9 * budget->share;
    return budget->share * budget->period_ns + beyond_reserve * budget->period_ns / 1e9;
}

uint64_t budget_slots(const struct budget *budget) { return (uint64_t)budget->slots; }

uint64_t budget_idle_threads(const struct budget *budget) { return (uint64_t)budget->idle_threads; }

static double at_most_1(double value) { return value < 1 ? value : 1; }

static void smooth_over(double *value, double now, double ticks) { *value += *value ? at_most_1(SMOOTHING * ticks) * (now - *value) : now; }
static void smooth(double *value, double now) { smooth_over(value, now, 1); }

static double least_slots(const struct budget *budget) {
    double slots = budget->visits_per_slot ? LEAST_TASKS / budget->visits_per_slot : LEAST_SLOTS;
    if (slots < 1) return 1; /* where a task is awaited by very many */
    return slots < LEAST_SLOTS ? slots : LEAST_SLOTS;
}

/* A part of the cost for tasks does not grow with their number, so that no division gives the right one: it is felt for. */
static void adjust_slots(struct budget *budget, uint64_t all_slots, double ticks) {
    double least = least_slots(budget), most = 2.0 * (double)all_slots;
    double step = at_most_1(STEP * ticks) * (allowance(budget) - budget->tick_ns) / budget->slot_ns;
    budget->slots += step < budget->slots ? step : budget->slots; /* at most twice as many at once */
    if (budget->slots > most) budget->slots = most;
    if (budget->slots < least) budget->slots = least;
}

static void adjust_idle_threads(struct budget *budget, uint64_t all_threads) {
    bool too_dear = budget->fixed_ns > ALMOST * allowance(budget);
    if (budget->idle_threads > (double)all_threads) budget->idle_threads = (double)all_threads;
    budget->idle_threads *= too_dear ? FEWER_IDLE_THREADS : MORE_IDLE_THREADS;
    if (!too_dear) budget->idle_threads += 0.1;
    if (budget->idle_threads < 1) budget->idle_threads = 1;
}

/* What one costly tick owes is paid little by little, by pauses that are longer than ticks as they usually are need. More than the share
   of MAX_DEBT_SECONDS is never owed after a pause. */
static uint64_t pause_ns(const struct budget *budget) {
    double owed = -budget->credit_ns / budget->share, longest = 2 * budget->usual_ns / budget->share, least = owed - MAX_DEBT_SECONDS * 1e9;
    if (longest < LONGEST_PAUSE_NS) longest = LONGEST_PAUSE_NS;
    if (longest < least) longest = least;
    return owed <= 0 ? 0 : (uint64_t)(owed < longest ? owed : longest);
}

uint64_t budget_spend(struct budget *budget, const struct tick_cost *cost) {
    double most = MAX_CREDIT_SECONDS * 1e9 * budget->share;
    smooth_over(&budget->usual_ns, (double)cost->cpu_ns, SLOWLY);
    smooth(&budget->fixed_ns, (double)(cost->cpu_ns - cost->tasks_ns));
    if (cost->slots && cost->tasks_ns) smooth(&budget->slot_ns, (double)cost->tasks_ns / (double)cost->slots);
    if (cost->slots) smooth(&budget->visits_per_slot, (double)cost->visits / (double)cost->slots);
    if (cost->visits && cost->tasks_ns) smooth(&budget->visit_ns, (double)cost->tasks_ns / (double)cost->visits);
    if (cost->idle_threads) adjust_idle_threads(budget, cost->idle_threads);
    budget->credit_ns += (double)cost->wall_ns * budget->share;
    if (budget->credit_ns > most) budget->credit_ns = most;
    budget->credit_ns -= (double)cost->cpu_ns;
    /* A look at suspended tasks stands for all ticks since the one before: it costs much, and they little. */
    budget->cpu_ns_since_look += (double)cost->cpu_ns;
    budget->ticks_since_look++;
    if (cost->slots || !cost->all_slots) {
        smooth_over(&budget->tick_ns, budget->cpu_ns_since_look / budget->ticks_since_look, budget->ticks_since_look);
        if (cost->all_slots) adjust_slots(budget, cost->all_slots, budget->ticks_since_look);
        budget->cpu_ns_since_look = budget->ticks_since_look = 0;
    }
    return pause_ns(budget);
}
