/* The threads of our interpreter, found without its lock. */
#ifndef OTEL_ASYNCPROF_THREADS_H
#define OTEL_ASYNCPROF_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind.h"

#define MAX_THREADS 4096

/* Copies the thread states of the interpreter, newest first; returns how many. The list changes only under a lock we do not take:
   each state must name its interpreter and its neighbour, so a state freed meanwhile ends the walk instead of leading astray. whole:
   whether the walk came to the end, so that a thread that is not among them is no more. */
size_t threads_read(struct thread_state *threads, size_t capacity, bool *whole);

/* Copies one thread state. False when there is none of our interpreter. */
bool threads_read_one(uint64_t address, struct thread_state *thread);

/* Asks for the memory of the states that an earlier reading has found, all at once: the list itself leads from one to the next. */
void threads_prefetch(const struct thread_state *threads, size_t count);

/* Python's name of the thread, from threading's own table. */
bool threads_read_name(uint64_t ident, char *name, size_t *size);

/* The thread that holds the interpreter's lock now: it runs Python, or would if it had a CPU. 0 = nobody, or not readable. */
uint64_t threads_gil_holder(void);

/* The event loop that runs in the thread now; 0 = none. */
uint64_t threads_running_loop(const struct thread_state *thread);

/* The task that this loop of the thread runs now; 0 = none. False when that could not be read. */
bool threads_read_task(const struct thread_state *thread, uint64_t loop, uint64_t *task);

#endif
