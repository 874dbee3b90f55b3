#include "allocations.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);

size_t allocations, allocated_bytes, peak_allocated_bytes, allocations_until_fail = SIZE_MAX;

static int may_allocate(void) {
    allocations++;
    if (!allocations_until_fail) return 0;
    if (allocations_until_fail != SIZE_MAX) allocations_until_fail--;
    return 1;
}

static void *count(void *block) {
    if (block) allocated_bytes += malloc_usable_size(block);
    if (allocated_bytes > peak_allocated_bytes) peak_allocated_bytes = allocated_bytes;
    return block;
}

void *__wrap_malloc(size_t size) { return may_allocate() ? count(__real_malloc(size)) : NULL; }

void *__wrap_calloc(size_t number, size_t size) { return may_allocate() ? count(__real_calloc(number, size)) : NULL; }

void *__wrap_realloc(void *block, size_t size) {
    if (!may_allocate()) return NULL;
    size_t old = malloc_usable_size(block);
    void *moved = count(__real_realloc(block, size));
    if (moved) allocated_bytes -= old;
    return moved;
}

void __wrap_free(void *block) {
    allocated_bytes -= malloc_usable_size(block);
    __real_free(block);
}
