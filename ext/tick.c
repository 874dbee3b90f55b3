#include "tick.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "drop.h"
#include "os/os.h"
#include "otlp_encode.h"
#include "safe_copy.h"

#define MAX_POOL (1u << 26)
#define FIRST_CAPACITY 256 /* tasks */
/* Where a hypervisor takes CPU time away, the kernel counts it against whoever ran: a short run may then show no CPU time at all,
   and what it has changed is found at the latest after so many ticks. */
#define MAX_REST_TICKS 100

struct tick *tick_new(const struct tick_options *options, const char *asyncio_directory) {
    struct tick *tick = calloc(1, sizeof *tick);
    if (!tick) return NULL;
    tick->options = *options;
    tick->threads_whole = true;
    tick->cpu_is_exact = os_thread_cpu_is_exact();
    task_table_init(&tick->tasks);
    task_list_init(&tick->list);
    window_init(&tick->task_window, clock_monotonic_ns());
    window_init(&tick->thread_window, clock_monotonic_ns());
    tick->codes = code_table_new(asyncio_directory);
    if (tick->codes && thread_records_init(&tick->records)) return tick;
    tick_destroy(tick);
    return NULL;
}

void tick_destroy(struct tick *tick) {
    if (!tick) return;
    code_table_destroy(tick->codes);
    thread_records_destroy(&tick->records);
    task_table_destroy(&tick->tasks);
    task_list_destroy(&tick->list);
    free(tick->seen);
    free(tick->stitch);
    free(tick->pool);
    free(tick->replay.samples);
    free(tick->last_part.samples);
    free(tick);
}

uint32_t *tick_pool_reserve(struct tick *tick, uint32_t count) {
    if (tick->pool_size + count > tick->pool_capacity) {
        uint32_t capacity = 2 * (tick->pool_size + count);
        uint32_t *pool = capacity <= MAX_POOL ? realloc(tick->pool, capacity * sizeof *pool) : NULL;
        if (!pool) return NULL;
        tick->pool = pool;
        tick->pool_capacity = capacity;
    }
    return tick->pool + tick->pool_size;
}

/* Room for the next task, made before it enters the table. */
static bool reserve_seen(struct tick *tick) {
    if (tick->tasks.count < tick->seen_capacity) return true;
    uint32_t capacity = tick->seen_capacity ? 2 * tick->seen_capacity : FIRST_CAPACITY;
    struct seen_task *seen = realloc(tick->seen, capacity * sizeof *seen);
    if (seen) tick->seen = seen;
    struct stitch_task *stitch = realloc(tick->stitch, capacity * sizeof *stitch);
    if (stitch) tick->stitch = stitch;
    if (seen && stitch) tick->seen_capacity = capacity;
    return seen && stitch;
}

static bool is_own_loop(const struct own_loops *own, uint64_t loop) {
    for (unsigned i = 0; i < MAX_OWN_LOOPS; i++)
        if (own->loops[i] == loop) return true;
    return false;
}

void tick_note_loop(struct tick *tick, uint64_t loop) {
    struct own_loops *own = &tick->own_loops;
    if (tick->options.is_forked && !is_own_loop(own, loop)) own->loops[own->next++ % MAX_OWN_LOOPS] = loop;
}

static bool is_inherited(const struct tick *tick, uint64_t address) {
    struct task task;
    return tick->options.is_forked && task_read(address, &task) && !is_own_loop(&tick->own_loops, task.loop);
}

uint32_t tick_meet(struct tick *tick, uint64_t address) {
    if (is_inherited(tick, address)) return NO_TASK;
    if (!reserve_seen(tick)) return drop_count(DROP_too_many_tasks), NO_TASK;
    uint32_t before = tick->tasks.count, position = tasks_meet(&tick->tasks, address);
    if (tick->tasks.count == before) return position;
    tick->seen[position] = (struct seen_task){.record = NO_RECORD, .loop = NO_LOOP};
    struct stitch_task *stitch = &tick->stitch[position];
    stitch->unusable = true;
    stitch->on_path = stitch->has_prefix = false;
    stitch->n_parents = stitch->sequence = stitch->n_locations = stitch->n_as_awaiter = 0;
    return position;
}

bool tick_read_list(struct tick *tick) {
    if (tick->list_tick == tick->ticks) return tick->list_whole;
    tick->list_tick = tick->ticks;
    return tick->list_whole = task_list_read(&tick->list, tick->threads, tick->n_threads);
}

void tick_use(struct tick *tick, struct stack_table *stacks) {
    if (tick->stacks) {
        tick_end_rest(tick);
        tick_end_window(tick);
        for (size_t i = 0; i < tick->records.count; i++) tick_end_owed(tick, &tick->records.records[i], tick->real_ns);
    }
    tick->stacks = stacks;
    tick->interval++;
    tick->replay_whole = false; /* its keys are of other tables */
    code_table_reset(tick->codes);
    tasks_forget_types(&tick->tasks);
}

static void forget_thread(void *context, struct thread_record *record) {
    struct tick *tick = context;
    tick_end_owed(tick, record, tick->real_ns - tick->elapsed_ns);
}

void tick_run(struct tick *tick, const struct tick_limits *limits, uint64_t now_ns, uint64_t real_ns, uint64_t elapsed_ns) {
    tick->limits = *limits;
    tick->work = (struct tick_work){.window = tick->work.window};
    tick->now_ns = now_ns;
    tick->real_ns = real_ns;
    tick->elapsed_ns = elapsed_ns;
    tick->ticks++;
    uint64_t faults = safe_copy_faults();
    thread_records_next_tick(&tick->records, tick->threads_whole, forget_thread, tick);
    bool nothing_ran = tick_nothing_ran(tick);
    if (nothing_ran && tick->settled && tick->rest_ticks++ < MAX_REST_TICKS) {
        tick->rest_ns += elapsed_ns;
        if (tick->options.timeline) tick_end_rest(tick);
        return;
    }
    tick_end_rest(tick);
    tick->settled = nothing_ran;
    tick->rest_ticks = 0;
    tick->replay_whole = true;
    tick->replay.count = 0;
    tick->pool_size = 0;
    tick->n_loops = 0;
    tick->loops_known = true;
    tick->memo.tick++;
    tick->omitted = code_table_synthetic(tick->stacks, "<frames omitted>");
    task_table_clear(&tick->tasks);
    if (tick->options.features & FEATURE_TASKS) tick_find_running_tasks(tick);
    tick_look_at_threads(tick);
    uint64_t before = clock_monotonic_ns();
    if (tick->options.features & FEATURE_TASKS) tick_look_at_tasks(tick);
    tick_emit_tasks(tick);
    tick->work.tasks_ns = clock_monotonic_ns() - before;
    if (safe_copy_faults() != faults) tick->replay_whole = false; /* what is missing is looked for again, rest or not */
}

uint32_t tick_attribute(struct tick *tick, char *text, size_t size) {
    static const char ellipsis[] = {'\xe2', '\x80', '\xa6'};
    if (size > MAX_ATTRIBUTE_BYTES) {
        size = MAX_ATTRIBUTE_BYTES - sizeof ellipsis;
        while (size && ((unsigned char)text[size] & 0xc0) == 0x80) size--; /* in the middle of a character */
        memcpy(text + size, ellipsis, sizeof ellipsis);
        size += sizeof ellipsis;
    }
    return stack_table_string(tick->stacks, text, size);
}

uint32_t tick_read_name(struct tick *tick, uint32_t position) {
    char name[MAX_STRING_BYTES];
    size_t size;
    if (!(tick->options.attributes & ATTRIBUTE_TASK_NAME)) return 0;
    return task_read_name(&tick->tasks.tasks[position], name, &size) ? tick_attribute(tick, name, size) : 0;
}

struct seen_link tick_read_link(struct tick *tick, uint64_t context) {
    struct span_view view;
    struct link link;
    struct seen_link seen = {0, 0};
    char name[MAX_STRING_BYTES];
    size_t size;
    if (!(tick->options.features & FEATURE_SPANS) || !span_link_read(context, &view)) return seen;
    if (view.flags & SPAN_REMOTE) return seen;
    bool recorded = view.flags & SPAN_SAMPLED && view.flags & SPAN_RECORDING;
    if (!recorded && !tick->options.link_unsampled) return seen;
    if (span_link_ended(view.cell)) return seen;
    memcpy(link.trace_id, view.trace_id, sizeof link.trace_id);
    memcpy(link.span_id, tick->options.link_local_root ? view.local_root : view.span_id, sizeof link.span_id);
    seen.link = stack_table_link(tick->stacks, &link);
    if (tick->options.attributes & ATTRIBUTE_LOCAL_ROOT_NAME && span_link_root_name(&view, name, &size))
        seen.local_root_name = tick_attribute(tick, name, size);
    return seen;
}

uint32_t tick_push(struct tick *tick, uint32_t stack, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) stack = stack_table_push(tick->stacks, stack, tick->frames[i].location);
    return stack;
}
