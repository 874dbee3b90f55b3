/* Finds out and checks, under the GIL, how greenlets are kept in memory. */
#ifndef OTEL_ASYNCPROF_GREENLET_CHECK_H
#define OTEL_ASYNCPROF_GREENLET_CHECK_H

#include <Python.h>

/* Adds learn_greenlets(), read_greenlet() and use_greenlets() to the module. */
int greenlet_check_init(PyObject *module);

/* The greenlet that the calling thread was in before its present one may have a task's frames. */
void greenlet_check_note_current(void);

#endif
