/* The sampling thread: starts, ticks, swaps its tables when asked, stops. One in a process. */
#ifndef OTEL_ASYNCPROF_SAMPLER_H
#define OTEL_ASYNCPROF_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "stack_table.h"
#include "tick.h"

struct sampler_stats {
    uint64_t ticks, samples, faults, tasks_seen, tasks_visited, threads_seen, sampler_cpu_ns, export_cpu_ns, elapsed_ns;
    uint64_t visit_ns, tick_ns; /* cost of one task visited and of a whole tick, smoothed */
    double window;              /* a task is looked at in one of so many ticks */
};

/* NULL when started; otherwise why not, in words for the user. cpu_budget: the share of one core that it may use. */
const char *sampler_start(const struct tick_options *options, const char *asyncio_directory, double cpu_budget,
                          bool no_signal_handlers);

/* Ends the thread and waits for it. What it has seen stays until the next sampler_swap or sampler_start. */
void sampler_stop(void);

bool sampler_is_running(void);

/* What one interval held; table is NULL when there never was one. */
struct interval {
    const struct stack_table *table;
    uint64_t begin_unix_ns, end_unix_ns;
};

/* Gives the tables of the interval that ends now and lets the sampler go on with empty ones. The tables are the caller's until it
   calls sampler_release(); another swap, or a start, waits for that. */
struct interval sampler_swap(void);
void sampler_release(void);

struct tick_options sampler_options(void);
struct sampler_stats sampler_stats(void);

/* Leaves a thread out of the profile; false when there is no place for another. */
bool sampler_ignore_thread(uint32_t native_id);

/* In the child of a fork the thread is gone and its locks and tables may be half written: they are left behind, not touched. */
void sampler_after_fork_in_child(void);

#endif
