/* Who waits for a task: read from the callbacks that the waiting side has left on it. asyncio is not patched. */
#ifndef OTEL_ASYNCPROF_AWAITERS_H
#define OTEL_ASYNCPROF_AWAITERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tasks.h"

#define MAX_AWAITERS 8

struct awaiter {
    uint64_t task;
    bool waits; /* false: it owns the group that the task is in, but is not at the group's end yet */
};

/* What callbacks have led to within one tick. A direct-mapped cache. */
#define MAX_REMEMBERED_CALLBACKS 1024
#define MAX_REMEMBERED_AWAITERS 2
struct remembered_callback {
    uint64_t callback;
    uint32_t tick, count;
    uint64_t tasks[MAX_REMEMBERED_AWAITERS];
};
struct awaiter_memo {
    uint32_t tick; /* the caller counts it up: what is of another tick counts for nothing */
    struct remembered_callback entries[MAX_REMEMBERED_CALLBACKS];
};

/* The tasks that wait for task, each once; returns how many. memo may be NULL. by_loop: whether the loop runs until this task is done, so that what
   waits for it is the code that started the loop. */
size_t awaiters_find(const struct task *task, struct awaiter_memo *memo, struct awaiter awaiters[MAX_AWAITERS], bool *by_loop);

#endif
