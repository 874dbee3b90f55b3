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

/* What an await chain shows: without what a loop library or opentelemetry.instrumentation puts in between. */
#define MAX_KNOWN_CHAIN 15 /* frames */
struct chain_locations {
    uint32_t sequence;   /* names these locations within the interval; 0 = no name */
    uint32_t count;
    uint32_t as_awaiter; /* how many of them show below a task that it awaits */
    uint32_t *locations; /* the caller's: room for as many as there are frames */
};

/* Raw frames of an await chain, outermost first -> locations. One that has been met before is known as a whole, by the codes and
   instructions of all its frames, as long as each code object still is the one it was. False when a frame is garbage: the task has
   ended, its memory is something else by now. */
bool code_table_resolve_chain(struct code_table *table, struct stack_table *stacks, const struct raw_frame *frames, size_t count,
                              struct chain_locations *chain);

/* The location of a synthetic frame such as <frames omitted>. */
uint32_t code_table_synthetic(struct stack_table *stacks, const char *name);

#endif
