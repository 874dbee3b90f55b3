/* Who waits for a task: read from the callbacks that the waiting side has left on it. asyncio is not patched. */
#ifndef OTEL_ASYNCPROF_AWAITERS_H
#define OTEL_ASYNCPROF_AWAITERS_H

#include <stddef.h>
#include <stdint.h>

#include "tasks.h"

#define MAX_AWAITERS 8

/* Addresses of the tasks that wait for task, each once; returns how many. */
size_t awaiters_find(const struct task *task, uint64_t awaiters[MAX_AWAITERS]);

/* Whether a future, task included, is still pending; an object that is no future counts as pending. */
int awaiters_future_pending(uint64_t future);

#endif
