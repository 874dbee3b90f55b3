#include "clock.h"

#include <time.h>

#include "os/os.h"

#define NS_PER_SECOND 1000000000u

static uint64_t read_clock(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

uint64_t clock_monotonic_ns(void) { return read_clock(CLOCK_MONOTONIC); }

uint64_t clock_realtime_ns(void) { return read_clock(CLOCK_REALTIME); }

uint64_t clock_thread_cpu_ns(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

bool clock_alarm_wait(struct clock_alarm *alarm, uint64_t deadline_monotonic_ns) {
    while (!__atomic_load_n(&alarm->rung, __ATOMIC_ACQUIRE)) {
        if (clock_monotonic_ns() >= deadline_monotonic_ns) return false;
        os_wait(&alarm->rung, 0, deadline_monotonic_ns);
    }
    return true;
}

void clock_alarm_ring(struct clock_alarm *alarm) {
    __atomic_store_n(&alarm->rung, 1, __ATOMIC_RELEASE);
    os_wake(&alarm->rung);
}
