/* A task's own frames on top of those of the tasks that await it, on top of what started the loop: one logical stack. Pure. */
#ifndef OTEL_ASYNCPROF_STITCH_H
#define OTEL_ASYNCPROF_STITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack_table.h"

#define MAX_PARENTS 8       /* tasks that await one task (contract R3) */
#define MAX_PATHS 32        /* stacks of one task, when its awaiters have several awaiters in turn */
#define MAX_AWAITING_TASKS 256 /* in a row above one task */

struct stitch_task {
    const uint32_t *locations; /* its frames, root first */
    uint32_t sequence;         /* their name in the stack table; 0 = none */
    uint32_t n_locations;
    uint32_t n_as_awaiter;     /* how many of them show below a task that it awaits */
    uint32_t entry;            /* stack of what started its loop */
    uint32_t n_parents;
    uint32_t parents[MAX_PARENTS]; /* positions of the awaiting tasks */
    bool unusable;             /* moved while it was read: a stack over it would be a mixture */
    /* stitch's own */
    bool on_path, has_prefix;
    uint32_t prefix;           /* the stack it gives its children, once known */
};

struct stitched {
    uint32_t stack;
    double share; /* of the weight; all shares of one task sum to 1, less what unusable awaiters take */
};

/* The stacks of task leaf, one per way up through its awaiters; returns how many. A task met again ends the way (R10). */
size_t stitch(struct stitch_task *tasks, uint32_t leaf, struct stack_table *stacks, struct stitched out[MAX_PATHS]);

/* The stack itself when it has at most max_frames; otherwise its two ends around one frame omitted. */
uint32_t stitch_limit(struct stack_table *stacks, uint32_t stack, uint32_t max_frames, uint32_t omitted);

#endif
