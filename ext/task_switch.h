/* Shows the span of the task that runs: tells thread_context.h of every switch of tasks. Needs the GIL. */
#ifndef OTEL_ASYNCPROF_TASK_SWITCH_H
#define OTEL_ASYNCPROF_TASK_SWITCH_H

#include <Python.h>

/* Adds thread_context_start(), _update(), _stop() and _after_fork_in_child() to the module. 0, or -1 with an exception. */
int task_switch_init(PyObject *module);

#endif
