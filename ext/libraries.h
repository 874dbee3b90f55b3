/* What of libraries the readers know, beside asyncio: found out and checked under the GIL once the application imports them. */
#ifndef OTEL_ASYNCPROF_LIBRARIES_H
#define OTEL_ASYNCPROF_LIBRARIES_H

#include <Python.h>

/* Adds its functions to the module. */
int libraries_init(PyObject *module);

/* The greenlet that the calling thread was in before its present one may have a task's frames. */
void libraries_note_greenlet(void);

#endif
