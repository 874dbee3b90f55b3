/* A tape: all that the readers have read of one interpreter in one look, and what they began with.
   In the file, little-endian: magic, version, running thread, the published offsets, asyncio's directory, the anchors by name, then
   runs of bytes with their addresses, ascending. */
#ifndef OTEL_ASYNCPROF_TEST_TAPE_H
#define OTEL_ASYNCPROF_TEST_TAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "cpython/debug_offsets.h"

#define TAPE_MAGIC 0x31657061745f6f61ull /* "ao_tape1" */
#define MAX_DIRECTORY 512
#define MAX_ANCHOR_NAME 64

struct tape_head {
    uint64_t magic, version_hex, running_thread, n_anchors, n_runs;
    uint8_t debug_offsets[DEBUG_OFFSETS_BYTES];
    char asyncio_directory[MAX_DIRECTORY];
};

struct tape_anchor {
    char name[MAX_ANCHOR_NAME];
    uint64_t value;
};

struct tape_run {
    uint64_t address, size; /* the bytes follow */
};

/* Fills pages, layout and anchors. False, with a word on stderr, when the file is no tape or names an unknown version or anchor. */
bool tape_load(const char *path, struct tape_head *head);

/* Writes what pages and anchors hold. */
bool tape_save(const char *path, struct tape_head *head);

#endif
