/* A bounded bump allocator: blocks are kept at reset, so that a steady state allocates nothing. */
#ifndef OTEL_ASYNCPROF_ARENA_H
#define OTEL_ASYNCPROF_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *first, *current;
    size_t used, limit; /* bytes */
};

void arena_init(struct arena *arena, size_t limit);
/* 8-byte aligned; NULL when the limit is reached or memory is short. */
void *arena_alloc(struct arena *arena, size_t size);
void arena_reset(struct arena *arena);
void arena_destroy(struct arena *arena);

#endif
