/* How many blocks the extension holds: its allocations pass here (linked with --wrap). */
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);

extern long held_blocks;
__attribute__((visibility("default"))) long held_blocks;

static void *held(void *block) {
    if (block) __atomic_fetch_add(&held_blocks, 1, __ATOMIC_RELAXED);
    return block;
}

void *__wrap_malloc(size_t size) { return held(__real_malloc(size)); }
void *__wrap_calloc(size_t count, size_t size) { return held(__real_calloc(count, size)); }
void *__wrap_aligned_alloc(size_t alignment, size_t size) { return held(__real_aligned_alloc(alignment, size)); }
void *__wrap_realloc(void *block, size_t size) { return block ? __real_realloc(block, size) : held(__real_realloc(block, size)); }

void __wrap_free(void *block) {
    if (block) __atomic_fetch_sub(&held_blocks, 1, __ATOMIC_RELAXED);
    __real_free(block);
}
