/* _AsyncioDebug: what the _asyncio module of CPython 3.14+ says of tasks and of where it keeps them. Pure. */
#ifndef OTEL_ASYNCPROF_ASYNCIO_OFFSETS_H
#define OTEL_ASYNCPROF_ASYNCIO_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#define ASYNCIO_OFFSETS_WORDS 13

/* Whether these words are that table. It stands in a section of the module's file, whose name is not in memory and not the same in
   all versions; but it begins with the size of a task, which the type says too, and names the size of the interpreter, which
   _Py_DebugOffsets has, and all its offsets lie within these. */
bool asyncio_offsets_fit(const uint64_t words[ASYNCIO_OFFSETS_WORDS], uint64_t task_size);

/* Overrides in layout what the module publishes, and what stands beside it. */
void asyncio_offsets_apply(const uint64_t words[ASYNCIO_OFFSETS_WORDS]);

#endif
