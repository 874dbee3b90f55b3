/* Memories that chance hardly makes, each of one kind that once kept a reader busy without an end. */
#include <stdlib.h>

#include "awaited.h"
#include "cpython/layout.h"
#include "fuzz.h"
#include "inputs.h"
#include "os_of_tape.h"
#include "pages.h"
#include "read_object.h"
#include "safe_copy.h"
#include "span_link.h"
#include "tick.h"

static void write_word(uint64_t address, uint64_t word) { pages_write(address, &word, sizeof word); }

/* The first thread state follows itself and has no kernel id, as one that was made but has not begun: it is not counted. */
static void run_thread_cycle(void) {
    uint64_t state;
    struct thread_state *threads = exactly(MAX_THREADS * sizeof *threads);
    CHECK(safe_copy_word(&state, anchors.interpreter + layout.interp_threads_head));
    write_word(state + layout.thread_prev, state);
    write_word(state + layout.thread_next, state);
    write_word(state + layout.thread_native_id, 0);
    /* From 3.14 on the running loop is far behind what is copied of a state, and read alone. */
    unsigned reads = layout.thread_running_loop != LAYOUT_ABSENT && layout.thread_running_loop >= layout.thread_size ? 2 : 1;
    mutate_allow(1 + 2 * MAX_THREADS * reads + 1);
    bool whole;
    CHECK(threads_read(threads, MAX_THREADS, &whole) == 0 && !whole);
    free(threads);
}

/* A set of eager tasks with a table of garbage, as large as a table may be. */
static void run_eager_set(void) {
    struct tick_options options = {.period_ns = 1000000, .max_frames = 128, .features = FEATURE_TASKS};
    struct tick_limits limits = {.slots = 64, .idle_threads = 1};
    struct tick *tick = tick_new(&options, "/asyncio");
    struct stack_table *stacks = stack_table_new(8u << 20);
    CHECK(tick && stacks);
    if (!anchors.eager_tasks) anchors.eager_tasks = anchors.scheduled_tasks; /* 3.11 has none */
    write_word(anchors.eager_tasks + layout.set_used, 1);
    write_word(anchors.eager_tasks + layout.set_mask, (1u << 28) - 1);
    tick_use(tick, stacks);
    mutate_allow(1u << 16);
    tick_run(tick, &limits, 1000000, 1000000, 1000000);
    tick_destroy(tick);
    stack_table_destroy(stacks);
}

/* A node of a hash trie that stands below itself at every place. */
static void run_trie_cycle(void) {
    enum { SLOTS = 32, MAX_READS = 4 + 8 * 3 + 16 }; /* MAX_LEVELS, MAX_COLLISIONS */
    uint64_t vars, root;
    struct span_view view;
    CHECK(safe_copy_word(&vars, anchors.context_array + layout.context_vars) && safe_copy_word(&root, vars + layout.hamt_root));
    for (uint64_t slot = 0; slot < SLOTS; slot++) write_word(root + layout.hamt_array_items + 8 * slot, root);
    mutate_allow(MAX_READS);
    CHECK(!span_link_read(anchors.context_array, &view));
}

/* A gather whose children are all itself: every way through it is another one. */
static void run_gather_cycle(void) {
    enum { CHILDREN = 64, LIST_ITEMS_AT = 1 << 30 };
    for (size_t i = 0; i < n_input_objects; i++) {
        uint64_t type, list, gather = input_objects[i];
        if (!safe_copy_word(&type, gather + OBJECT_TYPE) || type != anchors.type_gathering) continue;
        if (!read_attribute(gather, anchors.name_children, &list)) continue;
        write_word(list + layout.var_size, CHILDREN);
        write_word(list + layout.list_items, LIST_ITEMS_AT);
        for (uint64_t child = 0; child < CHILDREN; child++) write_word(LIST_ITEMS_AT + 8 * child, gather);
        mutate_allow(1u << 16);
        CHECK(!awaited_are_tasks(gather, &(struct await_chain){0}));
        return;
    }
    CHECK(!"a gather on the tape");
}

const struct target crafted_targets[] = {
    {"thread cycle", inputs_take, run_thread_cycle, false},
    {"eager set", inputs_take, run_eager_set, false},
    {"trie cycle", inputs_take, run_trie_cycle, false},
    {"gather cycle", inputs_take, run_gather_cycle, false},
    {0},
};
