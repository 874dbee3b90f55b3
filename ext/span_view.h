/* The span that a context carries, as the sampler reads it from memory: the inline part of a SpanContextView object, and the cell
   that all views of one span share. Written by span_context.c under the GIL, before the object can be seen; never changed after,
   but for span_cell.ended. Read by span_link.c without the GIL: magic and checksum tell a freed object from a live one. */
#ifndef OTEL_ASYNCPROF_SPAN_VIEW_H
#define OTEL_ASYNCPROF_SPAN_VIEW_H

#include <stdint.h>

#define SPAN_VIEW_MAGIC 0x6f7461735f766965ull
#define SPAN_CELL_MAGIC 0x6f7461735f63656cull

enum { SPAN_SAMPLED = 1, SPAN_REMOTE = 2, SPAN_RECORDING = 4, SPAN_RANDOM_TRACE_ID = 8 };

struct span_view {
    uint64_t magic;
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t local_root[8];  /* span id of the first span of this trace in this process */
    uint64_t flags;
    uint64_t owner;         /* address of the task in which this span was activated; 0 = none. Never followed, only compared. */
    uint64_t spawner;       /* owner of the view from which this task inherited its context; 0 = none */
    uint64_t cell;          /* address of the span_cell (of the fields, not of the object); 0 = none */
    uint64_t spawner_cell;  /* the cell of the span that was inherited */
    uint64_t root_cell;     /* the cell of the local root */
    uint64_t checksum;      /* span_view_checksum() */
};

struct span_cell {
    uint64_t magic;
    uint64_t ended;  /* 1 once the span has ended */
    uint64_t name;   /* address of a str: the span's name when it was activated; 0 = unknown */
    uint8_t span_id[8];
};

static inline uint64_t span_view_checksum(const struct span_view *view) {
    const uint64_t *word = (const uint64_t *)(const void *)view;
    uint64_t sum = 0x9e3779b97f4a7c15ull;
    for (unsigned i = 0; i < sizeof *view / 8 - 1; i++) sum = ((sum << 7) | (sum >> 57)) ^ (word[i] * 0xff51afd7ed558ccdull);
    return sum;
}

#endif
