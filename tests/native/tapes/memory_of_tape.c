#include "memory_of_tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"
#include "safe_copy.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define OUT_OF_BOUNDS(destination, size) (__asan_region_is_poisoned(destination, size) != NULL)
#else
#define OUT_OF_BOUNDS(destination, size) false
#endif

uint64_t safe_copy_loads_above = UINT64_MAX; /* never: each read comes to safe_copy() */
bool (*memory_before_copy)(uint64_t address, size_t size);
void (*memory_fill)(uint8_t *bytes, uint64_t address, size_t size);

void safe_copy_use(enum safe_copy_method method) { (void)method; }
enum safe_copy_method safe_copy_method(void) { return SAFE_COPY_SYSCALL; }
uint64_t safe_copy_faults(void) { return 0; }
bool safe_copy_failed(void) { return false; }
bool safe_copy_resolve_fault(void *ucontext) { return (void)ucontext, false; }

/* Words whole, as the real copy does; other threads may write them meanwhile. */
static void copy_bytes(uint8_t *to, const uint8_t *from, size_t size) {
    for (; size >= 8 && (uintptr_t)from % 8 == 0; to += 8, from += 8, size -= 8) {
        uint64_t word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_RELAXED);
        memcpy(to, &word, sizeof word);
    }
    for (; size > 0; size--) *to++ = __atomic_load_n(from++, __ATOMIC_RELAXED);
}

static bool copy_part(uint8_t *to, uint64_t address, size_t size) {
    const struct page *page = page_find(address / PAGE_BYTES);
    size_t offset = address % PAGE_BYTES;
    bool known = page && !memchr(page->known + offset, 0, size);
    if (known) copy_bytes(to, page->bytes + offset, size);
    else if (memory_fill) memory_fill(to, address, size);
    return known || memory_fill;
}

bool safe_copy(void *destination, uint64_t address, size_t size) {
    uint8_t *to = destination;
    if (!size) return true;
    /* The destination must hold all of it whatever becomes of the reading: on a live process all may be readable. */
    if (OUT_OF_BOUNDS(destination, size)) {
        fprintf(stderr, "a copy of %zu bytes is more than its destination holds\n", size);
        abort();
    }
    if (memory_before_copy && !memory_before_copy(address, size)) return false;
    if (address < SAFE_COPY_FIRST_ADDRESS || size > UINT64_MAX - address) return false;
    while (size > 0) {
        size_t in_page = PAGE_BYTES - address % PAGE_BYTES, count = in_page < size ? in_page : size;
        if (!copy_part(to, address, count)) return false;
        to += count, address += count, size -= count;
    }
    return true;
}
