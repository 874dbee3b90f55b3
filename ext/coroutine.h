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
    CHAIN_LONG,       /* the frames given, fewer than MAX_AWAIT_CHAIN, do not suffice */
};

struct await_chain {
    struct raw_frame *frames; /* outermost first; the caller's, capacity of them */
    size_t count, capacity;
    enum chain_state state;
    uint64_t next;     /* the awaited object to be looked at in the next step; 0 = none */
    unsigned wrappers; /* objects passed since the last frame */
};

/* Frames and capacity are set by the caller. */
void coroutine_walk(struct await_chain *chain, uint64_t coroutine);

/* The same in steps: many walks at once, a step of each in turn, overlap their waits for memory. Those that have to go on come first
   in chains afterwards; returns how many. */
void coroutine_begin(struct await_chain *chain, uint64_t coroutine);
unsigned coroutine_step_all(struct await_chain **chains, unsigned count);

/* Reads every word the walk depended on once more: false when the coroutine ran meanwhile. */
bool coroutine_unchanged(const struct await_chain *chain);

/* Whether a thread runs it, for itself or for what it awaits. Only coroutines and generators written in Python are known to. */
bool coroutine_is_executing(uint64_t coroutine);

/* The first parameter of a coroutine function, as its suspended frame has it. */
bool coroutine_first_argument(const struct raw_frame *frame, uint64_t *argument);

#endif
