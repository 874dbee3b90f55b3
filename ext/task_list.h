/* The lists in which asyncio keeps its tasks from CPython 3.14 on: one in each thread state, and one in the interpreter for tasks
   whose thread has ended. They can only be walked from end to end, so they are copied whole. */
#ifndef OTEL_ASYNCPROF_TASK_LIST_H
#define OTEL_ASYNCPROF_TASK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "threads.h"

struct task_list {
    uint64_t *tasks;  /* addresses; of each list the oldest task first */
    uint64_t *before; /* the same of the reading before: where the next ones are likely to stand */
    uint32_t count, before_count;
    uint32_t capacity;
};

void task_list_init(struct task_list *list);
void task_list_destroy(struct task_list *list);

/* Whether tasks are in lists at all. */
bool task_list_exists(void);

/* Copies the lists of these threads and of the interpreter. The lists change meanwhile: each node must name its neighbour, and where
   one does not, the walk goes on from the last that still stands in the list. False when a list could not be walked to its end. */
bool task_list_read(struct task_list *list, const struct thread_state *threads, size_t n_threads);

#endif
