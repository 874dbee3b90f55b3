/* What a suspended task waits for. */
#ifndef OTEL_ASYNCPROF_AWAITED_H
#define OTEL_ASYNCPROF_AWAITED_H

#include <stdbool.h>
#include <stdint.h>

#include "coroutine.h"

/* Whether a future, task included, is still pending; an object that is no future counts as pending. */
bool awaited_is_pending(uint64_t future);

/* Whether a task suspended on this future, with this await chain, waits for other tasks: for one directly, or in asyncio's gather,
   wait, wait_for, shield, as_completed, or at the end of a TaskGroup (contract R4). Answered from the waiting side, so that the
   tasks waited for need not be looked at. */
bool awaited_are_tasks(uint64_t future, const struct await_chain *chain);

#endif
