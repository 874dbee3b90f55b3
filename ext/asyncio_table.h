/* Where asyncio's C module says how it lays out tasks: looked for in the memory of its loaded file. */
#ifndef OTEL_ASYNCPROF_ASYNCIO_TABLE_H
#define OTEL_ASYNCPROF_ASYNCIO_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Applies the table of the file that has something at this address to layout. False when there is none that fits. task_type: the
   address of the type of tasks. Memory must be readable (reading.h). */
bool asyncio_table_apply(uint64_t address, uint64_t task_type);

#endif
