#include "clock.h"

#include <errno.h>
#include <time.h>

#define NS_PER_SECOND 1000000000u

static uint64_t read_clock(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

uint64_t clock_monotonic_ns(void) { return read_clock(CLOCK_MONOTONIC); }

uint64_t clock_realtime_ns(void) { return read_clock(CLOCK_REALTIME); }

bool clock_alarm_init(struct clock_alarm *alarm) {
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) return false;
    bool made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 && pthread_cond_init(&alarm->rang, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return made && pthread_mutex_init(&alarm->lock, NULL) == 0;
}

bool clock_alarm_wait(struct clock_alarm *alarm, uint64_t deadline_monotonic_ns) {
    struct timespec deadline = {(time_t)(deadline_monotonic_ns / NS_PER_SECOND), (long)(deadline_monotonic_ns % NS_PER_SECOND)};
    return pthread_cond_timedwait(&alarm->rang, &alarm->lock, &deadline) != ETIMEDOUT;
}

void clock_alarm_ring(struct clock_alarm *alarm) { pthread_cond_broadcast(&alarm->rang); }
