/* Memories that chance hardly makes, each of one kind that once kept a reader busy without an end. */
#include <sanitizer/asan_interface.h>
#include <stdlib.h>

#include "awaited.h"
#include "cpython/layout.h"
#include "drop.h"
#include "fuzz.h"
#include "inputs.h"
#include "memory_of_tape.h"
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

/* The frame on top of a stack that gets shorter, what its caller was called by, and how many frames there are. */
static struct {
    uint64_t top, caller_of_caller;
    size_t count;
} shorter;

static bool shorten(uint64_t address, size_t size) {
    if (address == shorter.top && size == layout.frame_localsplus) write_word(shorter.top + layout.frame_previous, shorter.caller_of_caller);
    return mutate_count(address, size);
}

/* A function that calls itself, on top of a thread's stack of at least three frames. False when there is none in the data stack. */
static bool make_recursion(const struct thread_state *thread, struct unwind_buffer *buffer) {
    uint64_t caller, words[MAX_FRAME_HEAD_BYTES / 8];
    size_t size = layout.frame_localsplus;
    if (!unwind_thread(thread, buffer, &shorter.count) || shorter.count < 3 || buffer->frames[0].generator || buffer->frames[1].generator)
        return false;
    CHECK(safe_copy_word(&shorter.top, thread->address + layout.thread_frame));
    if (layout.cframe_frame != LAYOUT_ABSENT) CHECK(safe_copy_word(&shorter.top, shorter.top + layout.cframe_frame));
    if (!safe_copy_word(&caller, shorter.top + layout.frame_previous) || !safe_copy(words, caller, size)) return false;
    shorter.caller_of_caller = words[layout.frame_previous / 8];
    words[layout.frame_previous / 8] = caller;
    pages_write(shorter.top, words, size);
    return unwind_thread(thread, buffer, &shorter.count) && memcmp(&buffer->frames[0], &buffer->frames[1], sizeof buffer->frames[0]) == 0;
}

/* A thread's stack that is a frame shorter when it is walked a second time, and of which all that is left was there the first time. */
static void run_shorter_stack(void) {
    struct unwind_buffer *buffer = exactly(sizeof *buffer);
    for (size_t i = 0; i < n_input_threads; i++) {
        size_t count;
        if (!make_recursion(&input_threads[i], buffer)) continue;
        void *before_again = &buffer->frames[MAX_THREAD_FRAMES - 1];
        ASAN_POISON_MEMORY_REGION(before_again, sizeof buffer->frames[0]);
        memory_before_copy = shorten;
        CHECK(unwind_thread(&input_threads[i], buffer, &count) && count == shorter.count);
        ASAN_UNPOISON_MEMORY_REGION(before_again, sizeof buffer->frames[0]);
        free(buffer);
        return;
    }
    CHECK(!"a function called by another on the tape");
}

/* The thread that runs has another context each time it is asked for. */
static uint64_t restless;
static bool switch_context(uint64_t address, size_t size) {
    static uint64_t contexts;
    if (address == restless) write_word(restless, 8 * ++contexts);
    return mutate_count(address, size);
}

static void run_restless_thread(void) {
    struct tick_options options = {.period_ns = 1000000, .max_frames = 128};
    struct tick_limits limits = {.slots = 64, .idle_threads = 1};
    struct tick *tick = tick_new(&options, "/asyncio");
    struct stack_table *stacks = stack_table_new(8u << 20);
    CHECK(tick && stacks);
    for (size_t i = 0; i < n_input_threads; i++)
        if (input_threads[i].native_id == running_thread) restless = input_threads[i].address + layout.thread_context;
    CHECK(restless);
    tick_use(tick, stacks);
    memory_before_copy = switch_context;
    mutate_allow(1u << 16);
    tick_run(tick, &limits, 1000000, 1000000, 1000000);
    CHECK(drop_counts[DROP_torn_stack] > 0);
    tick_destroy(tick);
    stack_table_destroy(stacks);
}

const struct target crafted_targets[] = {
    {"thread cycle", inputs_take, run_thread_cycle, false},
    {"eager set", inputs_take, run_eager_set, false},
    {"trie cycle", inputs_take, run_trie_cycle, false},
    {"gather cycle", inputs_take, run_gather_cycle, false},
    {"shorter stack", inputs_take, run_shorter_stack, false},
    {"restless thread", inputs_take, run_restless_thread, false},
    {0},
};
