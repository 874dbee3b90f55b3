/* The sampler's own readers, callable from Python one by one: for the self-check at start and for tests. */
#ifndef OTEL_ASYNCPROF_SELF_CHECK_H
#define OTEL_ASYNCPROF_SELF_CHECK_H

#include <Python.h>

/* Adds read_thread(), read_tasks(), read_task() and read_link() to the module. 0, or -1 with an exception. */
int self_check_init(PyObject *module);

#endif
