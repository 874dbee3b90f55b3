#include "tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/layout.h"
#include "pages.h"

static bool refuse(const char *path, const char *reason) { return fprintf(stderr, "%s: %s\n", path, reason), false; }

static uint64_t *anchor_named(const char *name) {
    for (unsigned i = 0; i < anchor_count; i++)
        if (strcmp(anchor_names[i], name) == 0) return (uint64_t *)(void *)&anchors + i;
    return NULL;
}

static bool read_anchors(FILE *file, uint64_t count) {
    struct tape_anchor anchor;
    for (uint64_t i = 0; i < count; i++) {
        if (fread(&anchor, sizeof anchor, 1, file) != 1) return false;
        uint64_t *place = anchor_named(anchor.name);
        if (!place) return false;
        *place = anchor.value;
    }
    return true;
}

static bool read_runs(FILE *file, uint64_t count) {
    struct tape_run run;
    uint8_t bytes[PAGE_BYTES];
    for (uint64_t i = 0; i < count; i++) {
        if (fread(&run, sizeof run, 1, file) != 1) return false;
        for (uint64_t done = 0, part; done < run.size; done += part) {
            part = run.size - done < sizeof bytes ? run.size - done : sizeof bytes;
            if (fread(bytes, part, 1, file) != 1) return false;
            pages_write(run.address + done, bytes, part);
        }
    }
    return true;
}

bool tape_load(const char *path, struct tape_head *head) {
    FILE *file = fopen(path, "rb");
    if (!file) return refuse(path, "cannot be opened");
    bool whole = fread(head, sizeof *head, 1, file) == 1 && head->magic == TAPE_MAGIC;
    memset(&anchors, 0, sizeof anchors);
    whole = whole && layout_select((unsigned)(head->version_hex >> 16 & 0xff)) &&
            !debug_offsets_apply(head->debug_offsets, (uint32_t)head->version_hex) && read_anchors(file, head->n_anchors) &&
            read_runs(file, head->n_runs) && fgetc(file) == EOF;
    fclose(file);
    pages_sort();
    return whole || refuse(path, "is no tape of a known interpreter");
}

/* The end of the run of known bytes that begins at an offset of a page; runs end with their page. */
static size_t run_end(const struct page *page, size_t offset) {
    while (offset < PAGE_BYTES && page->known[offset]) offset++;
    return offset;
}

/* Calls write for each run, or with file NULL only counts them. */
static uint64_t write_runs(FILE *file) {
    uint64_t count = 0;
    for (size_t i = 0; i < n_pages; i++)
        for (size_t at = 0; at < PAGE_BYTES;) {
            size_t end = run_end(pages[i], at);
            if (end > at) {
                struct tape_run run = {pages[i]->number * PAGE_BYTES + at, end - at};
                count++;
                if (file && (fwrite(&run, sizeof run, 1, file) != 1 || fwrite(pages[i]->bytes + at, end - at, 1, file) != 1)) return 0;
            }
            at = end + 1;
        }
    return count;
}

bool tape_save(const char *path, struct tape_head *head) {
    FILE *file = fopen(path, "wb");
    if (!file) return refuse(path, "cannot be written");
    pages_sort();
    head->magic = TAPE_MAGIC;
    head->n_anchors = anchor_count;
    head->n_runs = write_runs(NULL);
    bool whole = fwrite(head, sizeof *head, 1, file) == 1;
    for (unsigned i = 0; i < anchor_count && whole; i++) {
        struct tape_anchor anchor = {.value = ((uint64_t *)(void *)&anchors)[i]};
        snprintf(anchor.name, sizeof anchor.name, "%s", anchor_names[i]);
        whole = fwrite(&anchor, sizeof anchor, 1, file) == 1;
    }
    whole = whole && write_runs(file) == head->n_runs;
    return (fclose(file) == 0 && whole) || refuse(path, "cannot be written");
}
