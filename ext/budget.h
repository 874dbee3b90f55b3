/* The sampler's share of one core: what ticks have cost decides how much the next one may look at and when it may come. First the
   window over the tasks becomes narrower, then the number of idle threads looked at in a tick smaller; only when that does not
   suffice do ticks come later. Pure. */
#ifndef OTEL_ASYNCPROF_BUDGET_H
#define OTEL_ASYNCPROF_BUDGET_H

#include <stdint.h>

struct budget {
    double share;     /* of one core */
    double period_ns; /* of the ticks */
    double credit_ns; /* CPU time that may be used now; below 0: used ahead of time */
    double tick_ns;   /* a tick's cost; smoothed, like the following */
    double usual_ns;  /* the same of most ticks, whatever a few have cost */
    double cpu_ns_since_look; /* at suspended tasks, that one included */
    double ticks_since_look;
    double fixed_ns;  /* the part of it that is not for suspended tasks */
    double slots;     /* of the task set, to be looked at in a tick */
    double slot_ns;   /* cost of one slot of the task set */
    double visit_ns;  /* of one task visited */
    double visits_per_slot;
    double idle_threads; /* to be looked at in a tick */
};

/* What a tick has used, and for what. */
struct tick_cost {
    uint64_t cpu_ns;   /* of all, waking up included */
    uint64_t tasks_ns; /* of it for suspended tasks */
    uint64_t slots, visits;
    uint64_t all_slots; /* of the task set; 0: it was not looked at */
    uint64_t idle_threads; /* there were, looked at or not */
    uint64_t wall_ns;  /* since the tick before */
};

void budget_init(struct budget *budget, double share, double period_ns);

/* How many slots of the task set the next tick may look at, on average. */
uint64_t budget_slots(const struct budget *budget);

/* How many idle threads; at least one. */
uint64_t budget_idle_threads(const struct budget *budget);

/* Accounts for a tick. Returns how long to wait before the next one, in ns: 0 when the share allows it at once. */
uint64_t budget_spend(struct budget *budget, const struct tick_cost *cost);

#endif
