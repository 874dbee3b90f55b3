/* Memory of another process, page by page: which bytes are known, and what they were. */
#ifndef OTEL_ASYNCPROF_TEST_PAGES_H
#define OTEL_ASYNCPROF_TEST_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 4096u
#define MAX_PAGES 8192u

struct page {
    uint64_t number; /* address / PAGE_BYTES */
    uint8_t bytes[PAGE_BYTES], known[PAGE_BYTES];
};

extern struct page *pages[MAX_PAGES]; /* in the order of their making, or sorted */
extern size_t n_pages;

/* NULL when nothing of the page is known. */
struct page *page_find(uint64_t number);
/* The same, made when there is none; ends the process when there are too many. */
struct page *page_make(uint64_t number);
/* Puts pages[] in ascending order of their addresses. */
void pages_sort(void);

void pages_write(uint64_t address, const void *bytes, size_t size);

#endif
