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

/* The tasks that wait for task, each once; returns how many. by_loop: whether the loop runs until this task is done, so that what
   waits for it is the code that started the loop. */
size_t awaiters_find(const struct task *task, struct awaiter awaiters[MAX_AWAITERS], bool *by_loop);

/* Whether a future, task included, is still pending; an object that is no future counts as pending. */
bool awaiters_future_pending(uint64_t future);

#endif
