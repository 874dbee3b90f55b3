/* A thread's Python stack: from its current frame to the root, in raw frames. */
#ifndef OTEL_ASYNCPROF_UNWIND_H
#define OTEL_ASYNCPROF_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw_frame.h"

/* A thread state as copied at one instant. */
struct thread_state {
    uint64_t address, interpreter, next, prev;
    uint64_t dict, context, running_loop, ident, native_id, unique_id;
    uint64_t chunk, chunk_top;
    uint64_t frame; /* the current frame, or up to 3.12 what leads to it */
};

#define MAX_STACK_BYTES (1u << 20) /* of the data stack copied at once; frames beyond are read one by one */

struct unwind_buffer {
    struct raw_frame frames[MAX_THREAD_FRAMES], again[MAX_THREAD_FRAMES];
    uint8_t bytes[MAX_STACK_BYTES];
};

/* Fills buffer->frames leaf first. False when the thread runs no Python (count 0) or its stack could not be had whole, which is
   counted as torn (count as far as the last walk came). The data stack is copied in one go and the walk stays inside the copy. When
   the walk did not end where a thread's stack begins, or the callers are others afterwards, it is done again, a bounded number of
   times; of a thread that never keeps still for so long, the stack ends above the last caller that did. */
bool unwind_thread(const struct thread_state *thread, struct unwind_buffer *buffer, size_t *count);

#endif
