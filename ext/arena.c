#include "arena.h"

#include <stdint.h>
#include <stdlib.h>

#define ARENA_BLOCK_BYTES ((size_t)64 << 10) /* with its header */
#define ARENA_ALIGNMENT 8

/* Blocks form a list in the order of filling: those before current are full, those after it are empty. */
struct arena_block {
    struct arena_block *next;
    size_t size, filled; /* of data */
    uint64_t data[];
};

void arena_init(struct arena *arena, size_t limit) { *arena = (struct arena){.limit = limit}; }

/* A new block right after current, with room for size bytes. */
static struct arena_block *add_block(struct arena *arena, size_t size) {
    if (size > SIZE_MAX - sizeof(struct arena_block)) return NULL;
    size_t bytes = sizeof(struct arena_block) + size;
    if (bytes < ARENA_BLOCK_BYTES) bytes = ARENA_BLOCK_BYTES;
    if (arena->used > arena->limit || bytes > arena->limit - arena->used) return NULL;
    struct arena_block *block = malloc(bytes);
    if (!block) return NULL;
    arena->used += bytes;
    block->size = bytes - sizeof *block;
    block->filled = 0;
    struct arena_block **link = arena->current ? &arena->current->next : &arena->first;
    block->next = *link;
    *link = block;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size) {
    if (size > SIZE_MAX - ARENA_ALIGNMENT) return NULL;
    size = (size + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    struct arena_block *block = arena->current;
    if (!block || size > block->size - block->filled) {
        block = block ? block->next : arena->first;
        if (!block || size > block->size) block = add_block(arena, size);
        if (!block) return NULL;
        block->filled = 0; /* kept from before a reset */
        arena->current = block;
    }
    void *bytes = (unsigned char *)block->data + block->filled;
    block->filled += size;
    return bytes;
}

void arena_reset(struct arena *arena) { arena->current = NULL; }

void arena_destroy(struct arena *arena) {
    for (struct arena_block *block = arena->first, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    arena_init(arena, arena->limit);
}
