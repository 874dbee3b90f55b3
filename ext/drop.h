/* Why a frame, a task or a sample was lost. Reasons are counted, never logged; some become a synthetic frame. */
#ifndef OTEL_ASYNCPROF_DROP_H
#define OTEL_ASYNCPROF_DROP_H

#include <stdint.h>

/* name, what happened */
#define DROP_REASON_LIST(X)                                                                   \
    X(unreadable_memory, "an address could not be copied")                                    \
    X(unreadable_object, "bytes were copied but are no object of the expected type")          \
    X(torn_stack, "no copy of a thread's stack led to its root, or its task changed meanwhile, on every retry") \
    X(moved_task, "the task ran or ended while it was read")                                  \
    X(moved_awaiter, "the awaiting task went on between its reading and the stitching")       \
    X(too_deep, "a walk reached its bound")                                                   \
    X(stack_table_full, "no room for another stack: counted as <overflow>")                   \
    X(sample_table_full, "no room for another sample in this interval")                       \
    X(event_table_full, "no room for another timestamp in this interval")                     \
    X(too_many_tasks, "more live tasks than the task table holds")                            \
    X(too_many_threads, "more threads than the thread table holds")                           \
    X(foreign_task, "a task that is no C task: its fields are not in memory we can read")     \
    X(late_tick, "the tick started more than one period late")

enum drop_reason {
#define DROP_ENUM(name, text) DROP_##name,
    DROP_REASON_LIST(DROP_ENUM)
#undef DROP_ENUM
    DROP_REASONS
};

/* Written by the sampler thread only; read by anyone, so a reader may see a value one tick old. */
extern uint64_t drop_counts[DROP_REASONS];
extern const char *const drop_names[DROP_REASONS];

static inline void drop_count(enum drop_reason reason) {
    __atomic_store_n(&drop_counts[reason], drop_counts[reason] + 1, __ATOMIC_RELAXED);
}

#endif
