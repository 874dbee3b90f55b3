/* The sampler's share of one core: what a tick has cost decides when the next one may come. Pure. */
#ifndef OTEL_ASYNCPROF_BUDGET_H
#define OTEL_ASYNCPROF_BUDGET_H

#include <stdint.h>

struct budget {
    double share;     /* of one core */
    double credit_ns; /* CPU time that may be used now; below 0: used ahead of time */
};

void budget_init(struct budget *budget, double share);

/* Accounts for a tick that used cpu_ns, wall_ns after the one before. Returns how long to wait before the next one, in ns: 0 when
   the share allows it at once. */
uint64_t budget_spend(struct budget *budget, uint64_t cpu_ns, uint64_t wall_ns);

#endif
