/* Time: one monotonic clock for all measures, the wall clock for timestamps, and a sleep that can be cut short. */
#ifndef OTEL_ASYNCPROF_CLOCK_H
#define OTEL_ASYNCPROF_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);

/* A lock and a condition on the monotonic clock. */
struct clock_alarm {
    pthread_mutex_t lock;
    pthread_cond_t rang;
};

bool clock_alarm_init(struct clock_alarm *alarm);

/* Waits, with the lock held, until deadline or a ring. True when rung (or spuriously woken), false at the deadline. */
bool clock_alarm_wait(struct clock_alarm *alarm, uint64_t deadline_monotonic_ns);
/* With or without the lock; a ring that nobody waits for is lost, so what the waiter looks at is changed under the lock. */
void clock_alarm_ring(struct clock_alarm *alarm);

#endif
