/* One export interval's worth of profile: strings, functions, locations, stacks (a trie), links, samples, events. Pure data:
   filled by the sampler thread, swapped, then read by the encoder. Every table is bounded; ids are dense and 0 is the zero value. */
#ifndef OTEL_ASYNCPROF_STACK_TABLE_H
#define OTEL_ASYNCPROF_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

enum sample_state { STATE_RUNNING = 1, STATE_BLOCKED, STATE_WAITING, STATE_READY };

struct link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

struct sample_key {
    uint32_t stack;           /* leaf node of the trie */
    uint32_t link;            /* 0 = none */
    uint32_t thread_name;     /* string ids; 0 = none */
    uint32_t task_name;
    uint32_t local_root_name;
    uint32_t state;           /* enum sample_state */
    uint64_t thread_id;       /* Python's thread ident; 0 = none */
};

struct stack_node {
    uint32_t parent;   /* towards the root; 0 = root */
    uint32_t location; /* 0 only for node 0, the empty stack */
    uint32_t depth;    /* frames from the root, this one included */
};

struct sample {
    struct sample_key key;
    uint64_t wall_ns;
    uint64_t cpu_periods; /* how many of the events below are CPU periods of this sample */
};

/* A timestamp of one sample: a CPU period (value 0), or with the timeline a wall observation (value = weight in ns). */
struct sample_event {
    uint32_t sample;
    uint32_t is_cpu;
    uint64_t time_unix_ns;
    uint64_t wall_ns;
};

struct function {
    uint32_t name, filename; /* string ids */
    uint32_t first_line;
};

struct location {
    uint32_t function;
    uint32_t line;
};

struct stack_table; /* the tables themselves: stack_table.c */

/* NULL when memory is short. max_bytes bounds all of one table's memory. */
struct stack_table *stack_table_new(size_t max_bytes);
void stack_table_destroy(struct stack_table *table);
/* Empties the table and keeps its memory: filling it again to the same size allocates nothing. */
void stack_table_reset(struct stack_table *table);

/* Interning: the id of an equal entry or of a new one; 0 for the zero value and when full (counted in drop_counts). */
uint32_t stack_table_string(struct stack_table *table, const char *utf8, size_t size);
uint32_t stack_table_function(struct stack_table *table, struct function function);
uint32_t stack_table_location(struct stack_table *table, struct location location);
uint32_t stack_table_link(struct stack_table *table, const struct link *link);
/* The stack that has location on the leaf side of parent. When full: the node of the one-frame stack <overflow>, which always
   exists once the table has been made. */
uint32_t stack_table_push(struct stack_table *table, uint32_t parent, uint32_t location);

/* All of these locations, root first. sequence: a name of theirs, by which a repetition is known as a whole; 0 = none. A name means
   the same until the table is reset, and its first count locations have that same name. */
uint32_t stack_table_push_all(struct stack_table *table, uint32_t parent, const uint32_t *locations, uint32_t count, uint32_t sequence);

/* Frames from the root. */
uint32_t stack_table_depth(const struct stack_table *table, uint32_t stack);

/* Adds one observation: wall_ns of weight and, when cpu_periods > 0, that many CPU periods that ended at time_unix_ns (their
   timestamps lie period_ns apart, none before not_before_unix_ns). with_event also records the wall observation as an event. */
struct observation {
    uint64_t wall_ns;
    uint64_t cpu_periods, period_ns;
    uint64_t time_unix_ns, not_before_unix_ns;
    bool with_event;
};
void stack_table_add(struct stack_table *table, const struct sample_key *key, const struct observation *seen);

/* For readers. Arrays are dense from 0; index 0 is the zero value, except of samples and events. */
struct stack_table_view {
    const struct stack_node *nodes;
    const struct location *locations;
    const struct function *functions;
    const struct link *links;
    const struct sample *samples;
    const struct sample_event *events;
    uint32_t n_nodes, n_locations, n_functions, n_links, n_strings, n_samples, n_events;
};
struct stack_table_view stack_table_view(const struct stack_table *table);
const char *stack_table_string_at(const struct stack_table *table, uint32_t id, size_t *size);

#endif
