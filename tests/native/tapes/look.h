/* What a tick says of the memory that safe_copy() gives, as text: one line for each sample, sorted. */
#ifndef OTEL_ASYNCPROF_TEST_LOOK_H
#define OTEL_ASYNCPROF_TEST_LOOK_H

#include <stddef.h>

#define MAX_LOOK_BYTES (1u << 20)

/* state|thread|task|link|local root|wall ns|CPU periods|function@file:line > …, root first; then a line for each drop reason that was counted,
   and the sums of the ticks. text must hold MAX_LOOK_BYTES. False when memory is short. */
int look(const char *asyncio_directory, char *text);

#endif
