#include "pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (4 * MAX_PAGES)

struct page *pages[MAX_PAGES];
size_t n_pages;
static struct page *by_number[SLOTS]; /* open addressing, at most a quarter full */

static struct page **slot_of(uint64_t number) {
    size_t slot = (size_t)(number * 0x9e3779b97f4a7c15ull >> 40) % SLOTS;
    while (by_number[slot] && by_number[slot]->number != number) slot = (slot + 1) % SLOTS;
    return &by_number[slot];
}

struct page *page_find(uint64_t number) { return *slot_of(number); }

struct page *page_make(uint64_t number) {
    struct page **slot = slot_of(number);
    if (*slot) return *slot;
    struct page *page = n_pages < MAX_PAGES ? calloc(1, sizeof *page) : NULL;
    if (!page) {
        fprintf(stderr, "more than %u pages\n", MAX_PAGES);
        abort();
    }
    page->number = number;
    *slot = pages[n_pages++] = page;
    return page;
}

static int compare(const void *left, const void *right) {
    uint64_t a = (*(struct page *const *)left)->number, b = (*(struct page *const *)right)->number;
    return (a > b) - (a < b);
}

void pages_sort(void) { qsort(pages, n_pages, sizeof *pages, compare); }

void pages_write(uint64_t address, const void *bytes, size_t size) {
    const uint8_t *from = bytes;
    while (size > 0) {
        struct page *page = page_make(address / PAGE_BYTES);
        size_t offset = address % PAGE_BYTES, count = PAGE_BYTES - offset < size ? PAGE_BYTES - offset : size;
        memcpy(page->bytes + offset, from, count);
        memset(page->known + offset, 1, count);
        from += count, address += count, size -= count;
    }
}
