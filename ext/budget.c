#include "budget.h"

#define MAX_CREDIT_SECONDS 1.0 /* of the share may be saved up: what makes up for one costly tick, but no burst */

void budget_init(struct budget *budget, double share) { *budget = (struct budget){share, MAX_CREDIT_SECONDS * 1e9 * share}; }

uint64_t budget_spend(struct budget *budget, uint64_t cpu_ns, uint64_t wall_ns) {
    double most = MAX_CREDIT_SECONDS * 1e9 * budget->share;
    budget->credit_ns += (double)wall_ns * budget->share;
    if (budget->credit_ns > most) budget->credit_ns = most;
    budget->credit_ns -= (double)cpu_ns;
    return budget->credit_ns >= 0 ? 0 : (uint64_t)(-budget->credit_ns / budget->share);
}
