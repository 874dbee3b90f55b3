/* Code objects seen in this interval: names and line tables, copied at first sight, and a check on every later sight that the
   address still holds the same code. */
#ifndef OTEL_ASYNCPROF_CODE_TABLE_H
#define OTEL_ASYNCPROF_CODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw_frame.h"
#include "stack_table.h"

enum {
    FRAME_MACHINERY = 1,       /* asyncio's or uvloop's loop internals */
    FRAME_LOOP_WRAPPER = 2,    /* a coroutine that a loop library puts around the user's */
    FRAME_INSTRUMENTATION = 4, /* put in between by opentelemetry.instrumentation */
    FRAME_SYNTHETIC = 8,       /* <unreadable> and its like */
    FRAME_STOCK_LOOP = 16,     /* asyncio's own loop, which has Python frames for everything it does */
    FRAME_CALLBACK = 32,       /* by which asyncio's own loop runs a callback */
    FRAME_GARBAGE = 64,        /* no code object: the memory of a frame that was just made or gone */
};

struct resolved_frame {
    uint32_t location; /* id in the stack table */
    uint32_t flags;    /* FRAME_… */
    uint64_t generator;
};

struct code_table;
/* asyncio_directory: where asyncio's own files are, to know loop machinery from users' files of the same names. */
struct code_table *code_table_new(const char *asyncio_directory);
void code_table_destroy(struct code_table *table);
/* Forgets all: the stack table was swapped. */
void code_table_reset(struct code_table *table);

/* Raw frame -> location. False for a frame that Python does not show either: an entry frame without code, or one whose function
   has not begun. */
bool code_table_resolve(struct code_table *table, struct stack_table *stacks, const struct raw_frame *raw, struct resolved_frame *frame);

/* The location of a synthetic frame such as <frames omitted>. */
uint32_t code_table_synthetic(struct stack_table *stacks, const char *name);

#endif
