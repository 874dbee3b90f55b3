/* The span in a context that has no view: one set before the profiler started, in a thread that has not set another since. */
#ifndef OTEL_ASYNCPROF_PLAIN_SPAN_H
#define OTEL_ASYNCPROF_PLAIN_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "span_view.h"

/* Fills a view from the context object at address and the span in it. Who activated it is not known: no owner, and it is its own
   local root. False when it is no such context, or carries no valid span, or one that has ended. */
bool plain_span_read(uint64_t context, struct span_view *view);

#endif
