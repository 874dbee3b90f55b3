/* The steps that look at tasks: the frames of those that do not run, who awaits whom, and the samples of all. */
#include "tick.h"

#include <string.h>

#include "awaiters.h"
#include "cpython/layout.h"
#include "drop.h"
#include "otlp_encode.h"

/* The coroutine frames of a suspended task -> its locations, without what a loop library or opentelemetry.instrumentation puts
   in between. */
static bool keep_chain(struct tick *tick, uint32_t position) {
    const struct await_chain *chain = &tick->chain;
    struct stitch_task *task = &tick->stitch[position];
    uint32_t *pool = tick_pool_reserve(tick, (uint32_t)chain->count), count = 0, as_awaiter = 0;
    if (!pool) return false;
    for (size_t i = 0; i < chain->count; i++) {
        struct resolved_frame frame;
        if (!code_table_resolve(tick->codes, tick->stacks, &chain->frames[i], &frame) || frame.flags & FRAME_LOOP_WRAPPER) continue;
        if (frame.flags & FRAME_GARBAGE) return false; /* the task has ended, its memory is something else by now */
        bool between = frame.flags & FRAME_INSTRUMENTATION;
        if (between && i + 1 < chain->count) continue;
        pool[count++] = frame.location;
        if (!between) as_awaiter = count;
    }
    tick->seen[position].first_location = tick->pool_size;
    tick->pool_size += count;
    task->n_locations = count;
    task->n_as_awaiter = as_awaiter;
    return true;
}

static uint32_t find_loop(const struct tick *tick, uint64_t loop) {
    for (uint32_t i = 0; i < tick->n_loops; i++)
        if (tick->loops[i].loop == loop) return i;
    return NO_LOOP;
}

static void look_at_task(struct tick *tick, uint32_t position) {
    struct task *task = &tick->tasks.tasks[position];
    struct seen_task *seen = &tick->seen[position];
    tick->tasks_visited++;
    if (!task_read(task->address, task) || task->state != layout.future_pending) return; /* has ended since */
    seen->loop = find_loop(tick, task->loop);
    if (seen->loop != NO_LOOP && tick->loops[seen->loop].lost) return drop_count(DROP_torn_stack);
    coroutine_walk(task->coroutine, &tick->chain);
    if (tick->chain.state == CHAIN_FINISHED) return;
    seen->link = tick_read_link(tick, task->context);
    /* It began to run after its thread was looked at: its frames are neither here nor in that thread's copied stack. */
    if (tick->chain.state == CHAIN_EXECUTING || !keep_chain(tick, position) || !coroutine_unchanged(&tick->chain))
        return drop_count(DROP_moved_task);
    seen->sight = SIGHT_SAMPLED;
    seen->state = task->waiter && awaiters_future_pending(task->waiter) ? STATE_WAITING : STATE_READY;
    tick->stitch[position].unusable = false;
    /* Known even if that task's own sample is lost: this one must not stand in for it. */
    if (tick->options.features & FEATURE_AWAITERS && seen->state == STATE_WAITING)
        seen->awaits_only_tasks = tasks_find(&tick->tasks, task->waiter) != NO_TASK;
}

void tick_look_at_tasks(struct tick *tick) {
    for (uint32_t i = 0; i < tick->tasks.count; i++)
        if (tick->seen[i].sight == SIGHT_NONE) look_at_task(tick, i);
}

/* For a task that nobody awaits (contract R5): the task in which its span was activated, if that one lives and is still inside the
   same local root, and the span has not ended. */
static uint32_t find_spawner(const struct tick *tick, uint32_t position) {
    struct span_view view, spawner_view;
    if (!(tick->options.features & FEATURE_SPANS) || !span_link_read(tick->tasks.tasks[position].context, &view)) return NO_TASK;
    bool inherited = view.owner != tick->tasks.tasks[position].address;
    uint64_t address = inherited ? view.owner : view.spawner;
    if (!address || span_link_ended(inherited ? view.cell : view.spawner_cell)) return NO_TASK;
    uint32_t spawner = tasks_find(&tick->tasks, address);
    if (spawner == NO_TASK || spawner == position || tick->seen[spawner].sight == SIGHT_NONE) return NO_TASK;
    if (!span_link_read(tick->tasks.tasks[spawner].context, &spawner_view) || span_link_ended(spawner_view.cell)) return NO_TASK;
    return memcmp(view.trace_id, spawner_view.trace_id, sizeof view.trace_id) == 0 &&
                   memcmp(view.local_root, spawner_view.local_root, sizeof view.local_root) == 0
               ? spawner
               : NO_TASK;
}

static void find_awaiters(struct tick *tick, uint32_t position) {
    struct stitch_task *task = &tick->stitch[position];
    struct awaiter awaiters[MAX_AWAITERS];
    size_t count = 0;
    bool by_loop = false;
    if (tick->options.features & FEATURE_AWAITERS) count = awaiters_find(&tick->tasks.tasks[position], awaiters, &by_loop);
    for (size_t i = 0; i < count && task->n_parents < MAX_PARENTS; i++) {
        uint32_t awaiter = tasks_find(&tick->tasks, awaiters[i].task);
        if (awaiter == NO_TASK || awaiter == position) continue;
        task->parents[task->n_parents++] = awaiter;
        if (awaiters[i].waits && tick->seen[awaiter].state == STATE_WAITING) tick->seen[awaiter].awaits_only_tasks = true;
    }
    if (task->n_parents || by_loop) return;
    uint32_t spawner = find_spawner(tick, position);
    if (spawner != NO_TASK) task->parents[task->n_parents++] = spawner;
}

/* An awaiter whose future is another one by now has gone on: what it awaits is no longer the task that led to it. */
static void check_awaiter(struct tick *tick, uint32_t position) {
    struct task now;
    if (tick->seen[position].record != NO_RECORD || tick->stitch[position].unusable) return;
    if (!task_read(tick->tasks.tasks[position].address, &now) || now.waiter != tick->tasks.tasks[position].waiter)
        tick->stitch[position].unusable = true;
}

void tick_find_awaiters(struct tick *tick) {
    for (uint32_t i = 0; i < tick->tasks.count; i++)
        if (tick->seen[i].sight != SIGHT_NONE && !tick->seen[i].has_fixed_parent) find_awaiters(tick, i);
    for (uint32_t i = 0; i < tick->tasks.count; i++)
        if (tick->seen[i].awaits_only_tasks) check_awaiter(tick, i);
}

static uint32_t read_name(struct tick *tick, uint32_t position) {
    char name[MAX_STRING_BYTES];
    size_t size;
    if (!(tick->options.attributes & ATTRIBUTE_TASK_NAME)) return 0;
    return task_read_name(&tick->tasks.tasks[position], name, &size) ? stack_table_string(tick->stacks, name, size) : 0;
}

static void emit_task(struct tick *tick, uint32_t position) {
    const struct seen_task *seen = &tick->seen[position];
    struct stitched ways[MAX_PATHS];
    size_t n_ways = stitch(tick->stitch, position, tick->stacks, ways);
    struct thread_record *record = seen->record == NO_RECORD ? NULL : &tick->records.records[seen->record];
    uint64_t periods = 0;
    if (record && seen->state == STATE_RUNNING && n_ways) periods = thread_record_take_periods(record, tick->options.period_ns);
    struct emission emission = {
        .task_name = read_name(tick, position),
        .link = seen->link,
        .state = seen->state,
    };
    if (seen->loop != NO_LOOP) {
        emission.thread_name = tick->loops[seen->loop].thread_name;
        emission.thread_ident = tick->loops[seen->loop].thread_ident;
    }
    for (size_t i = 0; i < n_ways; i++) {
        emission.stack = ways[i].stack;
        emission.wall_ns = (uint64_t)((double)tick->elapsed_ns * ways[i].share);
        /* CPU time comes in whole periods: with several ways up they take turns. */
        emission.cpu_periods = i == tick->ticks % n_ways ? periods : 0;
        tick_emit(tick, &emission);
    }
}

void tick_emit_tasks(struct tick *tick) {
    for (uint32_t i = 0; i < tick->tasks.count; i++) { /* the pool has its final place only now */
        tick->stitch[i].locations = tick->pool + tick->seen[i].first_location;
        tick->stitch[i].entry = tick->seen[i].loop == NO_LOOP ? 0 : tick->loops[tick->seen[i].loop].entry;
    }
    for (uint32_t i = 0; i < tick->tasks.count; i++)
        if (tick->seen[i].sight == SIGHT_SAMPLED && !tick->seen[i].awaits_only_tasks) emit_task(tick, i);
}
