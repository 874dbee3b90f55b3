/* The sets in which asyncio keeps its tasks: all of their members, or those of a few slots of the hash table. */
#ifndef OTEL_ASYNCPROF_TASK_SET_H
#define OTEL_ASYNCPROF_TASK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TASK_SET_SLOTS_PER_READ 64

/* A set as copied at one instant. It may be resized at any time: its old table is then freed memory, and what is found there is
   checked like everything else. */
struct task_set {
    uint64_t table;
    uint64_t slots; /* 0: there is no such set, or nothing in it */
    bool weak;      /* it holds weak references to the tasks */
    const uint64_t *listed; /* no set, but addresses that the caller has copied */
    uint32_t n_listed;
};

/* Tasks that a list holds (task_list.h), as if they stood in the first slots of a set; the number of slots is a power of two. */
struct task_set task_set_of_list(const uint64_t *tasks, uint32_t count);

/* Every task of every loop; from 3.12 on without those in an eager first step, which the other set has; from 3.14 on only those of
   foreign classes. */
struct task_set task_set_scheduled(void);
struct task_set task_set_python(void); /* 3.14: those whose class is written in Python, which the set above does not have there */
struct task_set task_set_eager(void);
/* A set of futures that is not asyncio's own. */
struct task_set task_set_at(uint64_t set);

/* The addresses of what stands in slots [first, first + count), which may run past the end and begin again; count is at most
   TASK_SET_SLOTS_PER_READ. Never more than the whole set once, whose slots are a power of two: steps of
   TASK_SET_SLOTS_PER_READ meet each slot once. Returns how many addresses. */
size_t task_set_read(const struct task_set *set, uint64_t first, uint32_t count, uint64_t addresses[TASK_SET_SLOTS_PER_READ]);

#endif
