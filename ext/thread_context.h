/* The span that is current in each thread, for profilers outside of the process: OpenTelemetry's thread context (OTEP 4947) beside
   its process context (OTEP 4719). Everything is called with the GIL. The sampler knows nothing of it. */
#ifndef OTEL_ASYNCPROF_THREAD_CONTEXT_H
#define OTEL_ASYNCPROF_THREAD_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "span_view.h"

#define MAX_PROCESS_CONTEXT_BYTES (64u << 10) /* more is read by nobody */

/* Whether anything is to be shown. */
extern bool thread_context_is_on;

/* Makes the process context readable, or changes it: a serialised ProcessContext. False when the system does not let us. */
bool thread_context_publish(const uint8_t *payload, size_t size);

/* Takes the process context back and shows no span in any thread. */
void thread_context_withdraw(void);

/* In the child of a fork, which has no mapping and one thread. */
void thread_context_after_fork_in_child(void);

/* The span that is current in the calling thread from now on; NULL: none. */
void thread_context_show(const struct span_view *view);

#endif
