/* The await chain of one coroutine that is not running: through coroutines, generators, async generators and the C awaitables
   between them, down to what it waits for. */
#ifndef OTEL_ASYNCPROF_COROUTINE_H
#define OTEL_ASYNCPROF_COROUTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw_frame.h"

enum chain_state {
    CHAIN_SUSPENDED, /* frames are whole */
    CHAIN_EXECUTING, /* a thread runs it: its frames are on that thread's stack */
    CHAIN_FINISHED,
    CHAIN_UNREADABLE, /* frames end where the memory could not be read */
};

struct await_chain {
    enum chain_state state;
    size_t count;
    struct raw_frame frames[MAX_AWAIT_CHAIN]; /* outermost first */
};

void coroutine_walk(uint64_t coroutine, struct await_chain *chain);

/* Reads every word the walk depended on once more: false when the coroutine ran meanwhile. */
bool coroutine_unchanged(const struct await_chain *chain);

#endif
