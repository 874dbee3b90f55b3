/* co_linetable of CPython 3.11+: instruction -> line. Pure. */
#ifndef OTEL_ASYNCPROF_LINE_TABLE_H
#define OTEL_ASYNCPROF_LINE_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The line of the instruction at byte offset instruction (f_lasti); first_line when instruction < 0 (not started);
   0 when the table gives it no line or does not reach it. Any bytes are safe. */
int line_table_find(const uint8_t *table, size_t size, int first_line, int instruction);

#endif
