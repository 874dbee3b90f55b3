/* The readers that follow threads, tasks and spans, each on its own and all in a tick. */
#include <stdlib.h>

#include "awaited.h"
#include "awaiters.h"
#include "coroutine.h"
#include "cpython/layout.h"
#include "fuzz.h"
#include "inputs.h"
#include "os_of_tape.h"
#include "otlp_encode.h"
#include "plain_span.h"
#include "span_link.h"
#include "task_list.h"
#include "task_set.h"
#include "threads.h"
#include "tick.h"
#include "unwind.h"

/* What each reader may read at most, from the bounds named in its file. */
#define READS_OF_TYPE 16                                      /* MAX_BASES */
#define READS_OF_DICT (8 + (1u << 16) / 32 + (2 + READS_OF_TYPE) * (1u << 16)) /* MAX_DICT_ENTRIES, an int key each */
#define READS_OF_ATTRIBUTE (16 + (1u << 16) / 32)
#define READS_OF_CHAIN (MAX_AWAIT_CHAIN * (7 + 2 * 5))        /* MAX_WRAPPERS + 1 between two frames */
#define READS_OF_STACK (16 * (5 + 64 + 2 * 2 * MAX_THREAD_FRAMES)) /* MAX_WALKS, MAX_CHUNKS, MAX_SKIPPED twice */
#define READS_OF_VARIABLE (4 + 8 * 3 + 16)                    /* MAX_LEVELS, MAX_COLLISIONS */
#define READS_OF_STRING (2 + READS_OF_TYPE + 16384 / 512 + 1)
#define READS_OF_PLAIN_SPAN (READS_OF_TYPE + 3 * READS_OF_ATTRIBUTE + 16)
#define READS_OF_LINK (READS_OF_VARIABLE + READS_OF_PLAIN_SPAN)
#define READS_OF_HELD (3 * READS_OF_TYPE + READS_OF_ATTRIBUTE + 64)
#define READS_OF_AWAITERS (33 * 33 * 16 * READS_OF_HELD)      /* MAX_FUTURES, MAX_CALLBACKS / 2, MAX_CELLS */
#define READS_OF_AWAITED (2 * 256 * (8 * READS_OF_TYPE + READS_OF_ATTRIBUTE)) /* MAX_LOOKS */
#define READS_OF_LISTS (65 * (64 + 2) * 64 * 2 + 2 * 2 * MAX_INPUT_TASKS) /* MAX_INPUT_THREADS and the interpreter, MAX_RETRIES, MAX_STEPS_BACK */
#define READS_OF_TICK (1u << 22)

static void run_threads(void) {
    enum { CAPACITY = 8 };
    struct thread_state *threads = exactly(CAPACITY * sizeof *threads);
    char *name = exactly(MAX_STRING_BYTES);
    mutate_allow(1 + 2 * CAPACITY);
    bool whole;
    size_t size, count = threads_read(threads, CAPACITY, &whole);
    CHECK(count <= CAPACITY);
    for (size_t i = 0; i < count; i++) {
        mutate_allow(8 + READS_OF_DICT);
        threads_gil_holder();
        threads_running_loop(&threads[i]);
        mutate_allow(READS_OF_DICT + READS_OF_ATTRIBUTE + READS_OF_STRING);
        if (threads_read_name(threads[i].ident, name, &size)) CHECK(size <= MAX_STRING_BYTES);
    }
    free(name);
    free(threads);
}

static void run_stacks(void) {
    struct unwind_buffer *buffer = exactly(sizeof *buffer);
    for (size_t i = 0, count = 0; i < n_input_threads; i++) {
        mutate_allow(READS_OF_STACK);
        unwind_thread(&input_threads[i], buffer, &count);
        CHECK(count <= MAX_THREAD_FRAMES);
    }
    free(buffer);
}

static void run_coroutines(void) {
    static const size_t capacities[] = {MAX_AWAIT_CHAIN, 15};
    for (size_t i = 0; i < 2 * n_input_tasks; i++) {
        size_t capacity = capacities[i % 2];
        uint64_t argument;
        struct await_chain chain = {.frames = exactly(capacity * sizeof(struct raw_frame)), .capacity = capacity};
        mutate_allow(READS_OF_CHAIN);
        coroutine_walk(&chain, input_tasks[i / 2].coroutine);
        CHECK(chain.count <= capacity);
        coroutine_unchanged(&chain);
        if (chain.count) coroutine_first_argument(&chain.frames[chain.count - 1], &argument);
        free(chain.frames);
    }
}

static void run_awaiters(void) {
    static struct awaiter_memo memo;
    memo.tick++;
    for (size_t i = 0; i < n_input_tasks; i++) {
        struct task task;
        bool by_loop;
        struct awaiter *found = exactly(MAX_AWAITERS * sizeof *found);
        mutate_allow(READS_OF_AWAITERS);
        if (task_read(input_tasks[i].address, &task)) CHECK(awaiters_find(&task, i % 2 ? &memo : NULL, found, &by_loop) <= MAX_AWAITERS);
        free(found);
    }
}

static void run_awaited(void) {
    for (size_t i = 0; i < n_input_tasks; i++) {
        struct raw_frame frames[MAX_AWAIT_CHAIN];
        struct await_chain chain = {.frames = frames, .capacity = MAX_AWAIT_CHAIN};
        mutate_allow(READS_OF_CHAIN);
        coroutine_walk(&chain, input_tasks[i].coroutine);
        mutate_allow(READS_OF_AWAITED);
        awaited_is_pending(input_tasks[i].waiter);
        awaited_are_tasks(input_tasks[i].waiter, &chain);
    }
}

/* Some slots of a set, as a tick looks at them: at most 4096, wherever they are. */
static void read_slots(const struct task_set *set) {
    for (uint64_t done = 0; done < 4096 && done < set->slots; done += TASK_SET_SLOTS_PER_READ) {
        uint64_t *addresses = exactly(TASK_SET_SLOTS_PER_READ * sizeof *addresses);
        mutate_allow(2 + 3 * TASK_SET_SLOTS_PER_READ); /* each reference is touched, then two words of it are read */
        CHECK(task_set_read(set, fuzz_random(), (uint32_t)fuzz_below(2 * TASK_SET_SLOTS_PER_READ), addresses) <= TASK_SET_SLOTS_PER_READ);
        free(addresses);
    }
}

static void run_task_sets(void) {
    static struct task_list list; /* what one run has seen is where the next expects it */
    mutate_allow(2 * 3);
    struct task_set sets[] = {task_set_scheduled(), task_set_eager()};
    for (size_t i = 0; i < 2; i++) read_slots(&sets[i]);
    if (!task_list_exists()) return;
    mutate_allow(READS_OF_LISTS);
    task_list_read(&list, input_threads, n_input_threads);
    CHECK(list.count <= list.capacity && list.count <= MAX_TASKS);
    struct task_set listed = task_set_of_list(list.tasks, list.count);
    read_slots(&listed);
}

static void run_tasks(void) {
    struct task_table table;
    char *name = exactly(MAX_STRING_BYTES);
    size_t size;
    task_table_init(&table);
    for (size_t i = 0; i < n_input_tasks; i++) {
        mutate_allow(4 + 2 * READS_OF_TYPE + READS_OF_STRING);
        uint32_t position = tasks_meet(&table, input_tasks[i].address);
        CHECK(position == NO_TASK || (position < table.count && table.tasks[position].address == input_tasks[i].address));
        tasks_is_task(&table, input_tasks[i].address);
        if (position != NO_TASK && task_read_name(&table.tasks[position], name, &size)) CHECK(size <= MAX_STRING_BYTES);
    }
    task_table_destroy(&table);
    free(name);
}

static void read_spans(uint64_t context) {
    struct span_view *view = exactly(sizeof *view);
    char *name = exactly(MAX_STRING_BYTES);
    size_t size;
    mutate_allow(SPAN_LINK_STEPS * (READS_OF_VARIABLE + 4));
    uint64_t cursor = context;
    for (unsigned step = 0; step < SPAN_LINK_STEPS; step++) span_link_prefetch(step, &cursor, 1);
    mutate_allow(READS_OF_LINK + READS_OF_STRING + 2);
    if (span_link_read(context, view)) {
        span_link_ended(view->cell);
        if (span_link_root_name(view, name, &size)) CHECK(size <= MAX_STRING_BYTES);
    }
    free(name);
    free(view);
}

static void run_spans(void) {
    for (size_t i = 0; i < n_input_tasks; i++) read_spans(input_tasks[i].context);
    for (size_t i = 0; i < n_input_threads; i++) read_spans(input_threads[i].context);
}

static struct tick *tick;
static struct stack_table *tables[2];

static void begin_tick(void) {
    struct tick_options options = {
        .period_ns = 10000000,
        .max_frames = 128,
        .attributes = UINT32_MAX,
        .features = FEATURE_TASKS | FEATURE_AWAITERS | FEATURE_SPANS,
    };
    inputs_take();
    for (size_t i = 0; i < 2; i++) tables[i] = stack_table_new(4u << 20);
    tick = tick_new(&options, "/asyncio");
    CHECK(tick && tables[0] && tables[1]);
    tick_use(tick, tables[0]);
    window_init(&tick->task_window, 1); /* not from the clock: each run is the same */
    window_init(&tick->thread_window, 1);
}

static bool take_request(void *context, const uint8_t *bytes, size_t size) { return (void)context, (void)bytes, size > 0; }
static void no_entropy(void *bytes, size_t size) { memset(bytes, 1, size); }

/* Ticks go on from one run to the next, so that what they remember is of memory that has changed. Now and then tables are swapped. */
static void run_tick(void) {
    static uint64_t now = 1000000000;
    static unsigned runs;
    struct tick_limits limits = {.slots = 1 + fuzz_below(64), .idle_threads = 1 + fuzz_below(4)};
    tick->options.timeline = fuzz_one_in(2);
    tick->options.loop_frames = fuzz_one_in(2);
    os_of_tape_begin();
    for (unsigned i = 0; i < 2; i++, now += 10000000) {
        mutate_allow(READS_OF_TICK);
        tick_run(tick, &limits, now, now, 10000000);
    }
    if (++runs % 16) return;
    struct stack_table *full = tick->stacks;
    struct otlp_options options = {.resource = (const uint8_t *)"", .resource_schema_url = "", .scope_version = "1", .time_unix_nano = 1,
                                   .duration_nano = 1, .period_ns = 10000000, .attributes = UINT32_MAX, .random_bytes = no_entropy};
    stack_table_reset(tables[full == tables[0]]);
    tick_use(tick, tables[full == tables[0]]);
    CHECK(otlp_encode(full, &options, take_request, NULL));
}

const struct target memory_targets[] = {
    {"threads", inputs_take, run_threads, true},
    {"stacks", inputs_take, run_stacks, true},
    {"coroutines", inputs_take, run_coroutines, true},
    {"awaiters", inputs_take, run_awaiters, true},
    {"awaited", inputs_take, run_awaited, true},
    {"task sets", inputs_take, run_task_sets, true},
    {"tasks", inputs_take, run_tasks, true},
    {"spans", inputs_take, run_spans, true},
    {"tick", begin_tick, run_tick, true},
    {0},
};
