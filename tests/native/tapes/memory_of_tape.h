/* safe_copy() out of pages instead of live memory. */
#ifndef OTEL_ASYNCPROF_TEST_MEMORY_OF_TAPE_H
#define OTEL_ASYNCPROF_TEST_MEMORY_OF_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called before each copy, when set: may change pages. False: the copy fails. */
extern bool (*memory_before_copy)(uint64_t address, size_t size);
/* Called for a part that no page knows, when set: gives bytes for it. Otherwise the copy fails. */
extern void (*memory_fill)(uint8_t *bytes, uint64_t address, size_t size);

#endif
