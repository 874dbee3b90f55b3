/* The steps after the looks: who awaits whom, and the samples of tasks. */
#include "tick.h"

#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "safe_copy.h"

/* For a task that nobody awaits (contract R5): the task in which its span was activated, if that one lives and is still inside the
   same local root, and the span has not ended. */
static uint32_t find_spawner(struct tick *tick, uint32_t position) {
    struct span_view view, spawner_view;
    if (!(tick->options.features & FEATURE_SPANS) || !span_link_read(tick->tasks.tasks[position].context, &view)) return NO_TASK;
    bool inherited = view.owner != tick->tasks.tasks[position].address;
    uint64_t address = inherited ? view.owner : view.spawner;
    if (!address || span_link_ended(inherited ? view.cell : view.spawner_cell)) return NO_TASK;
    if (!tasks_is_task(&tick->tasks, address)) return NO_TASK;
    uint32_t spawner = tick_meet(tick, address);
    if (spawner == NO_TASK || spawner == position) return NO_TASK;
    if (!span_link_read(tick->tasks.tasks[spawner].context, &spawner_view) || span_link_ended(spawner_view.cell)) return NO_TASK;
    return memcmp(view.trace_id, spawner_view.trace_id, sizeof view.trace_id) == 0 &&
                   memcmp(view.local_root, spawner_view.local_root, sizeof view.local_root) == 0
               ? spawner
               : NO_TASK;
}

/* What awaits a task is found by its callbacks, which may be those of one that had its address before. A task that ends gives them up,
   and what awaited it has gone on, and may be no more. */
static bool has_callbacks(const struct task *met) {
    uint64_t callback0;
    return safe_copy_word(&callback0, met->address + layout.future_callback0) && callback0 == met->callback0;
}

static void find_awaiters(struct tick *tick, uint32_t position) {
    struct awaiter awaiters[MAX_AWAITERS];
    uint32_t parents[MAX_PARENTS], n_parents = 0;
    size_t count = 0;
    bool by_loop = false;
    uint64_t faults = safe_copy_faults();
    if (tick->options.features & FEATURE_AWAITERS)
        count = awaiters_find(&tick->tasks.tasks[position], &tick->memo, awaiters, &by_loop);
    for (size_t i = 0; i < count && n_parents < MAX_PARENTS; i++) {
        uint32_t awaiter = tick_meet(tick, awaiters[i].task);
        if (awaiter == NO_TASK || awaiter == position) continue;
        parents[n_parents++] = awaiter;
        tick->seen[awaiter].is_awaiter |= awaiters[i].waits;
    }
    if (!n_parents && !by_loop) {
        uint32_t spawner = find_spawner(tick, position);
        if (spawner != NO_TASK) parents[n_parents++] = spawner;
        tick->seen[position].is_spawned = n_parents;
        tick->stitch[position].unusable |= !task_lives(&tick->tasks.tasks[position]);
    } else if (tick->seen[position].sight == SIGHT_SUSPENDED) {
        tick->stitch[position].unusable |= !has_callbacks(&tick->tasks.tasks[position]);
    }
    if (safe_copy_faults() != faults) { /* it may have another awaiter than what was found, and its stack another root */
        drop_count(DROP_unreadable_memory);
        tick->stitch[position].unusable = true;
    }
    memcpy(tick->stitch[position].parents, parents, n_parents * sizeof parents[0]); /* only now: meeting may move the arrays */
    tick->stitch[position].n_parents = n_parents;
}

void tick_find_awaiters(struct tick *tick, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; i++)
        if (tick->seen[i].sight != SIGHT_NONE && !tick->seen[i].has_fixed_parent) find_awaiters(tick, i);
}

/* An awaiter whose future is another one by now has gone on: what it awaits is no longer the task that led to it. */
static void check_awaiter(struct tick *tick, uint32_t position) {
    struct task now;
    if (tick->seen[position].record != NO_RECORD || tick->stitch[position].unusable) return;
    if (tick->seen[position].looked_again || !task_read(tick->tasks.tasks[position].address, &now) ||
        now.waiter != tick->tasks.tasks[position].waiter)
        tick->stitch[position].unusable = true;
}

static void emit_task(struct tick *tick, uint32_t position) {
    const struct seen_task *seen = &tick->seen[position];
    struct stitched ways[MAX_PATHS];
    size_t n_ways = stitch(tick->stitch, position, tick->stacks, ways);
    struct thread_record *record = seen->record == NO_RECORD ? NULL : &tick->records.records[seen->record];
    uint64_t periods = 0;
    if (record && seen->state == STATE_RUNNING && n_ways) periods = thread_record_take_periods(record, tick->options.period_ns);
    struct emission emission = {
        .task_name = seen->name,
        .link = seen->link,
        .state = seen->state,
        .of_window = seen->sight != SIGHT_RUNNING,
    };
    if (seen->loop != NO_LOOP) {
        emission.thread_name = tick->loops[seen->loop].thread_name;
        emission.thread_ident = tick->loops[seen->loop].thread_ident;
    }
    for (size_t i = 0; i < n_ways; i++) {
        emission.stack = ways[i].stack;
        emission.share = ways[i].share * (emission.of_window ? tick->work.task_share : 1);
        /* CPU time comes in whole periods: with several ways up they take turns. */
        emission.cpu_periods = i == tick->ticks % n_ways ? periods : 0;
        tick_emit(tick, &emission);
    }
}

static bool gives_sample(const struct seen_task *seen) {
    if (seen->sight == SIGHT_RUNNING || seen->sight == SIGHT_CAUGHT) return true;
    return seen->sight == SIGHT_SUSPENDED && seen->in_window && !seen->awaits_tasks;
}

void tick_emit_tasks(struct tick *tick) {
    for (uint32_t i = 0; i < tick->tasks.count; i++) { /* the pool has its final place only now */
        struct stitch_task *task = &tick->stitch[i];
        if (tick->seen[i].is_awaiter) check_awaiter(tick, i);
        const struct seen_task *spawner = tick->seen[i].is_spawned ? &tick->seen[task->parents[0]] : NULL;
        if (spawner && spawner->sight == SIGHT_NONE && !spawner->lost) task->n_parents = 0; /* it has ended */
        tick->stitch[i].locations = tick->pool + tick->seen[i].first_location;
        tick->stitch[i].entry = tick->seen[i].loop == NO_LOOP ? 0 : tick->loops[tick->seen[i].loop].entry;
    }
    for (uint32_t i = 0; i < tick->tasks.count; i++)
        if (gives_sample(&tick->seen[i])) emit_task(tick, i);
}
