/* An operating system that answers the same each time: one thread runs, all others rest. */
#ifndef OTEL_ASYNCPROF_TEST_OS_OF_TAPE_H
#define OTEL_ASYNCPROF_TEST_OS_OF_TAPE_H

#include <stdint.h>

extern uint32_t running_thread; /* kernel id */

/* From now on as at the beginning. */
void os_of_tape_begin(void);

#endif
