/* Functions of the module by which Python notices signals that end the process, and by which its export thread is woken. */
#ifndef OTEL_ASYNCPROF_EXIT_FUNCTIONS_H
#define OTEL_ASYNCPROF_EXIT_FUNCTIONS_H

#include <Python.h>

/* Adds its functions to the module. 0, or -1 with an exception. */
int exit_functions_init(PyObject *module);

#endif
