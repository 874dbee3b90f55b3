/* The samples of a stack table as an export tells them apart: merged where they differ only in attributes that were not asked for,
   each with its timestamps in ascending order. */
#ifndef OTEL_ASYNCPROF_SAMPLE_GROUPS_H
#define OTEL_ASYNCPROF_SAMPLE_GROUPS_H

#include "intern_table.h"
#include "otlp_encode.h"

struct sample_time {
    uint64_t time_unix_ns;
    uint64_t wall_ns; /* 0 for a CPU period */
};

struct sample_group {
    struct sample_key key; /* what was not asked for is 0 */
    uint64_t wall_ns;
    struct sample_time *cpu, *wall; /* wall: only with the timeline; its values then add up to wall_ns */
    size_t n_cpu, n_wall;
};

struct sample_groups {
    struct memory_account account;
    struct intern_table groups; /* struct sample_group, in the order of their first sample */
    struct sample_time *times;
};

/* False when memory is short; to be freed in any case. */
bool sample_groups_make(struct sample_groups *groups, const struct stack_table_view *view, const struct otlp_options *options);
void sample_groups_free(struct sample_groups *groups);

#endif
