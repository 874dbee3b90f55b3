/* The stitched stack of the calling thread, taken by that thread itself: who starts this span? */
#ifndef OTEL_ASYNCPROF_CALLER_STACK_H
#define OTEL_ASYNCPROF_CALLER_STACK_H

#include <Python.h>

/* Adds caller_stack() to the module. */
int caller_stack_init(PyObject *module);

#endif
