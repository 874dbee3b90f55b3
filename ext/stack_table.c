#include "stack_table.h"

#include <stdlib.h>
#include <string.h>

#include "drop.h"
#include "intern_table.h"
#include "string_table.h"

/* Powers of two; the zero values count. */
#define MAX_NODES (1u << 20)
#define MAX_LOCATIONS (1u << 18)
#define MAX_FUNCTIONS (1u << 18)
#define MAX_STRINGS (1u << 18)
#define MAX_LINKS (1u << 18)
#define MAX_SAMPLES (1u << 18)
#define MAX_EVENTS (1u << 18)
#define MAX_WALL_EVENTS (MAX_EVENTS / 2) /* CPU time exists only as events, wall time also as the sample's sum */
#define FIRST_EVENTS 64u

#define OVERFLOW_NAME "<overflow>"
enum { OVERFLOW_NODE = 1 }; /* the first stack that is pushed */

/* Keys are the first bytes of an entry, compared as bytes: none of these may hold padding. */
_Static_assert(sizeof(struct function) == 3 * sizeof(uint32_t), "padding");
_Static_assert(sizeof(struct location) == 2 * sizeof(uint32_t), "padding");
_Static_assert(sizeof(struct link) == 24, "padding");
_Static_assert(offsetof(struct stack_node, depth) == 2 * sizeof(uint32_t), "padding");
_Static_assert(sizeof(struct sample_key) == 6 * sizeof(uint32_t) + sizeof(uint64_t), "padding");
_Static_assert(offsetof(struct sample, key) == 0, "the key comes first");

/* What was pushed lately: most pushes repeat one of the last look. A direct-mapped cache; location 0 = empty. */
#define RECENT_BITS 11
#define RECENT_PUSHES (1u << RECENT_BITS)
struct recent_push {
    uint32_t parent, location, id;
};

/* The same of whole sequences; sequence 0 = empty. */
#define RECENT_SEQUENCE_BITS 10
#define RECENT_SEQUENCES (1u << RECENT_SEQUENCE_BITS)
struct recent_sequence {
    uint32_t parent, sequence, count, id;
};

/* The same of links; id 0 = empty. */
#define RECENT_LINKS 2048u
struct recent_link {
    struct link link;
    uint32_t id;
};

/* And of samples; stack 0 of the key = empty. */
#define RECENT_SAMPLE_BITS 11
#define RECENT_SAMPLES (1u << RECENT_SAMPLE_BITS)
struct recent_sample {
    struct sample_key key;
    uint32_t id;
};

struct stack_table {
    struct memory_account account;
    struct string_table strings;
    struct intern_table functions, locations, links, nodes, samples;
    struct sample_event *events;
    uint32_t n_events, n_wall_events, events_capacity;
    struct recent_push recent[RECENT_PUSHES];
    struct recent_sequence recent_sequences[RECENT_SEQUENCES];
    struct recent_link recent_links[RECENT_LINKS];
    struct recent_sample recent_samples[RECENT_SAMPLES];
};

/* The zero values and the overflow stack. False when memory is short. */
static bool add_first_entries(struct stack_table *table) {
    uint32_t name = stack_table_string(table, OVERFLOW_NAME, sizeof OVERFLOW_NAME - 1);
    bool zeros = intern_table_add(&table->functions, &(struct function){0}, sizeof(struct function)) == 0 &&
                 intern_table_add(&table->locations, &(struct location){0}, sizeof(struct location)) == 0 &&
                 intern_table_add(&table->links, &(struct link){{0}, {0}}, sizeof(struct link)) == 0 &&
                 intern_table_add(&table->nodes, &(struct stack_node){0}, offsetof(struct stack_node, depth)) == 0;
    if (!zeros || !name) return false;
    uint32_t function = stack_table_function(table, (struct function){.name = name});
    uint32_t location = stack_table_location(table, (struct location){.function = function});
    return location && stack_table_push(table, 0, location) == OVERFLOW_NODE && intern_table_reserve(&table->samples, 1);
}

struct stack_table *stack_table_new(size_t max_bytes) {
    if (max_bytes < sizeof(struct stack_table)) return NULL;
    struct stack_table *table = calloc(1, sizeof *table);
    if (!table) return NULL;
    table->account = (struct memory_account){.used = sizeof *table, .limit = max_bytes};
    intern_table_init(&table->functions, &table->account, sizeof(struct function), MAX_FUNCTIONS);
    intern_table_init(&table->locations, &table->account, sizeof(struct location), MAX_LOCATIONS);
    intern_table_init(&table->links, &table->account, sizeof(struct link), MAX_LINKS);
    intern_table_init(&table->nodes, &table->account, sizeof(struct stack_node), MAX_NODES);
    intern_table_init(&table->samples, &table->account, sizeof(struct sample), MAX_SAMPLES);
    if (!string_table_init(&table->strings, &table->account, MAX_STRINGS) || !add_first_entries(table)) {
        stack_table_destroy(table);
        return NULL;
    }
    return table;
}

void stack_table_destroy(struct stack_table *table) {
    if (!table) return;
    string_table_destroy(&table->strings);
    intern_table_destroy(&table->functions);
    intern_table_destroy(&table->locations);
    intern_table_destroy(&table->links);
    intern_table_destroy(&table->nodes);
    intern_table_destroy(&table->samples);
    free(table->events);
    free(table);
}

void stack_table_reset(struct stack_table *table) {
    string_table_reset(&table->strings);
    intern_table_reset(&table->functions);
    intern_table_reset(&table->locations);
    intern_table_reset(&table->links);
    intern_table_reset(&table->nodes);
    intern_table_reset(&table->samples);
    table->n_events = table->n_wall_events = 0;
    memset(table->recent, 0, sizeof table->recent);
    memset(table->recent_sequences, 0, sizeof table->recent_sequences);
    memset(table->recent_links, 0, sizeof table->recent_links);
    memset(table->recent_samples, 0, sizeof table->recent_samples);
    add_first_entries(table); /* cannot fail: there was room for them before */
}

static uint32_t id_or_drop(uint32_t id) {
    if (id != INTERN_NONE) return id;
    drop_count(DROP_stack_table_full);
    return 0;
}

uint32_t stack_table_string(struct stack_table *table, const char *utf8, size_t size) {
    return id_or_drop(string_table_add(&table->strings, utf8, size));
}

uint32_t stack_table_function(struct stack_table *table, struct function function) {
    return id_or_drop(intern_table_add(&table->functions, &function, sizeof function)); /* 0 is the zero value */
}

uint32_t stack_table_location(struct stack_table *table, struct location location) {
    return location.function ? id_or_drop(intern_table_add(&table->locations, &location, sizeof location)) : 0;
}

uint32_t stack_table_link(struct stack_table *table, const struct link *link) {
    /* Ids of spans are random. */
    struct recent_link *recent = &table->recent_links[(link->span_id[7] | link->span_id[6] << 8u) % RECENT_LINKS];
    if (recent->id && memcmp(&recent->link, link, sizeof *link) == 0) return recent->id;
    uint32_t id = id_or_drop(intern_table_add(&table->links, link, sizeof *link));
    *recent = (struct recent_link){*link, id};
    return id;
}

uint32_t stack_table_push(struct stack_table *table, uint32_t parent, uint32_t location) {
    struct recent_push *recent = &table->recent[(parent * 0x9e3779b1u ^ location * 0x85ebca77u) >> (32 - RECENT_BITS)];
    if (recent->parent == parent && recent->location == location && location) return recent->id;
    if (parent == OVERFLOW_NODE || parent >= table->nodes.size) return OVERFLOW_NODE;
    if (!location || location >= table->locations.size) return OVERFLOW_NODE;
    struct stack_node key = {.parent = parent, .location = location};
    uint32_t before = table->nodes.size;
    uint32_t id = intern_table_add(&table->nodes, &key, offsetof(struct stack_node, depth));
    if (id == INTERN_NONE) {
        drop_count(DROP_stack_table_full);
        return OVERFLOW_NODE;
    }
    struct stack_node *nodes = table->nodes.entries;
    if (table->nodes.size > before) nodes[id].depth = nodes[parent].depth + 1;
    *recent = (struct recent_push){parent, location, id};
    return id;
}

uint32_t stack_table_push_all(struct stack_table *table, uint32_t parent, const uint32_t *locations, uint32_t count, uint32_t sequence) {
    uint32_t slot = (parent * 0x9e3779b1u ^ (sequence + count) * 0x85ebca77u) >> (32 - RECENT_SEQUENCE_BITS), stack = parent;
    struct recent_sequence *recent = &table->recent_sequences[slot];
    if (sequence && recent->sequence == sequence && recent->parent == parent && recent->count == count) return recent->id;
    for (uint32_t i = 0; i < count; i++) stack = stack_table_push(table, stack, locations[i]);
    if (sequence) *recent = (struct recent_sequence){parent, sequence, count, stack};
    return stack;
}

static bool add_event(struct stack_table *table, struct sample_event event) {
    if (table->n_events == table->events_capacity) {
        uint32_t capacity = table->events_capacity ? table->events_capacity * 2 : FIRST_EVENTS;
        void *events = table->events;
        size_t old_bytes = table->events_capacity * sizeof event, new_bytes = capacity * sizeof event;
        if (capacity > MAX_EVENTS || !memory_account_resize(&table->account, &events, old_bytes, new_bytes)) return false;
        table->events = events;
        table->events_capacity = capacity;
    }
    table->events[table->n_events++] = event;
    return true;
}

/* The sample of this key; when full the one of <overflow>, for which one place is always kept. */
static uint32_t find_sample(struct stack_table *table, const struct sample_key *key) {
    struct recent_sample *recent = &table->recent_samples[(key->stack * 0x9e3779b1u ^ key->link * 0x85ebca77u) >> (32 - RECENT_SAMPLE_BITS)];
    if (key->stack && memcmp(&recent->key, key, sizeof *key) == 0) return recent->id;
    uint32_t hash = intern_table_hash(&table->samples, key, sizeof *key);
    uint32_t id = intern_table_find(&table->samples, hash, key, sizeof *key);
    if (id == INTERN_NONE && intern_table_reserve(&table->samples, 2)) id = intern_table_add(&table->samples, key, sizeof *key);
    if (id != INTERN_NONE) {
        *recent = (struct recent_sample){*key, id};
        return id;
    }
    drop_count(DROP_sample_table_full);
    struct sample_key overflow = {.stack = OVERFLOW_NODE};
    return intern_table_add(&table->samples, &overflow, sizeof overflow);
}

/* Oldest period first, so that the times of one sample mostly ascend. */
static void add_cpu_events(struct stack_table *table, uint32_t sample, const struct observation *seen) {
    struct sample *samples = table->samples.entries;
    uint64_t window = seen->time_unix_ns > seen->not_before_unix_ns ? seen->time_unix_ns - seen->not_before_unix_ns : 0;
    uint64_t room = MAX_EVENTS - table->n_events, count = seen->cpu_periods < room ? seen->cpu_periods : room;
    bool lost = count < seen->cpu_periods;
    for (uint64_t back = count; back-- > 0;) { /* count <= MAX_EVENTS */
        uint64_t age = back && seen->period_ns > window / back ? window : back * seen->period_ns;
        uint64_t time = window ? seen->time_unix_ns - age : seen->not_before_unix_ns;
        if (!add_event(table, (struct sample_event){.sample = sample, .is_cpu = 1, .time_unix_ns = time})) {
            lost = true;
            break;
        }
        samples[sample].cpu_periods++;
    }
    if (lost) drop_count(DROP_event_table_full);
}

void stack_table_add(struct stack_table *table, const struct sample_key *key, const struct observation *seen) {
    uint32_t id = find_sample(table, key);
    ((struct sample *)table->samples.entries)[id].wall_ns += seen->wall_ns;
    if (seen->cpu_periods) add_cpu_events(table, id, seen);
    if (!seen->with_event || !seen->wall_ns) return;
    struct sample_event event = {.sample = id, .time_unix_ns = seen->time_unix_ns, .wall_ns = seen->wall_ns};
    if (table->n_wall_events < MAX_WALL_EVENTS && add_event(table, event)) table->n_wall_events++;
    else drop_count(DROP_event_table_full);
}

uint32_t stack_table_depth(const struct stack_table *table, uint32_t stack) {
    return ((const struct stack_node *)table->nodes.entries)[stack].depth;
}

struct stack_table_view stack_table_view(const struct stack_table *table) {
    return (struct stack_table_view){
        .nodes = table->nodes.entries,
        .locations = table->locations.entries,
        .functions = table->functions.entries,
        .links = table->links.entries,
        .samples = table->samples.entries,
        .events = table->events,
        .n_nodes = table->nodes.size,
        .n_locations = table->locations.size,
        .n_functions = table->functions.size,
        .n_links = table->links.size,
        .n_strings = table->strings.entries.size,
        .n_samples = table->samples.size,
        .n_events = table->n_events,
    };
}

const char *stack_table_string_at(const struct stack_table *table, uint32_t id, size_t *size) {
    const struct string_entry *string = string_table_at(&table->strings, id);
    *size = string->size;
    return string->bytes;
}
