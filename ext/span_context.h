/* The runtime context of OpenTelemetry with span views in it. The Python side; what the sampler reads of it is in span_view.h. */
#ifndef OTEL_ASYNCPROF_SPAN_CONTEXT_H
#define OTEL_ASYNCPROF_SPAN_CONTEXT_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

/* Adds ContextVarsRuntimeContext, SpanCell, span_ended() and read_view() to the module. 0, or -1 with an exception. */
int span_context_init(PyObject *module);

/* Address of the type of all views; 0 before the first ContextVarsRuntimeContext was made. It never changes afterwards. */
uint64_t span_context_view_type(void);

/* Where struct span_view begins in a view: the size of the base, asked at run time. */
size_t span_context_view_offset(void);

/* To be called before the layout changes: where asyncio keeps the running loop was seen with the old one. */
void span_context_see_loop_again(void);

#endif
