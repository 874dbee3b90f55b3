/* What the targets begin with, taken from clean memory. */
#ifndef OTEL_ASYNCPROF_TEST_INPUTS_H
#define OTEL_ASYNCPROF_TEST_INPUTS_H

#include <stddef.h>

#include "tasks.h"
#include "unwind.h"

#define MAX_INPUT_TASKS 256
#define MAX_INPUT_THREADS 64
#define MAX_INPUT_FRAMES 1024
#define MAX_INPUT_OBJECTS 4096

extern struct task input_tasks[MAX_INPUT_TASKS];
extern size_t n_input_tasks;
extern struct thread_state input_threads[MAX_INPUT_THREADS];
extern size_t n_input_threads;
extern struct raw_frame input_frames[MAX_INPUT_FRAMES]; /* of all threads and tasks */
extern size_t n_input_frames;
extern uint64_t input_objects[MAX_INPUT_OBJECTS]; /* the address of everything that is an object by its type */
extern size_t n_input_objects;

void inputs_take(void);

/* A buffer of exactly this size, so that the first byte beyond is out of bounds. */
void *exactly(size_t size);

#endif
