/* What a thread's stack says: which loop runs there, what started it, and which frames belong to which task. */
#include "tick.h"

#include "cpython/layout.h"
#include "drop.h"
#include "safe_copy.h"
#include "task_set.h"

#define MAX_MAKERS 32
#define TICKS_WITHOUT_MAKER 16 /* until one is looked for again */
#define MAX_MAKER_SLOTS 8192 /* of the task set; some hundred microseconds */

/* Frames [from, to) become the own frames of a task. is_leaf: nothing stands above them on the stack. What a loop library or
   opentelemetry.instrumentation puts in between is left out, and below another task the loop machinery too. */
static bool keep_frames(struct tick *tick, uint32_t position, uint32_t from, uint32_t to, bool is_leaf) {
    struct stitch_task *task = &tick->stitch[position];
    uint32_t *pool = tick_pool_reserve(tick, to - from), count = 0, as_awaiter = 0;
    if (!pool) return false;
    for (uint32_t i = from; i < to; i++) {
        const struct resolved_frame *frame = &tick->frames[i];
        bool last = is_leaf && i + 1 == to;
        if (frame->flags & FRAME_LOOP_WRAPPER) continue;
        if (frame->flags & FRAME_INSTRUMENTATION && frame->generator && !last) continue;
        if (frame->flags & FRAME_MACHINERY && !is_leaf && !frame->generator && !tick->options.loop_frames) continue;
        pool[count++] = frame->location;
        if (!(frame->flags & FRAME_INSTRUMENTATION && frame->generator)) as_awaiter = count;
    }
    tick->seen[position].first_location = tick->pool_size;
    tick->pool_size += count;
    task->sequence = 0;
    task->n_locations = count;
    task->n_as_awaiter = as_awaiter;
    task->unusable = false;
    return true;
}

/* How many frames, from the root, are the code that started the loop. That code stays where it is while the loop runs, so it is no
   longer than what stands below the loop's machinery, below a task, or than the whole stack, at any tick so far. (With uvloop, whose
   machinery has no Python frames, a single look at a callback could not tell.) */
static uint32_t entry_depth(struct thread_record *record, uint64_t loop, uint32_t below_machinery, uint32_t below_task) {
    uint32_t depth = below_machinery < below_task ? below_machinery : below_task;
    if (record->loop != loop || depth < record->entry_depth) record->entry_depth = depth;
    record->loop = loop;
    return record->entry_depth;
}

/* first_task: position of the first frame of a task; count when no task runs. */
static uint32_t add_loop(struct tick *tick, const struct thread_sight *sight, uint32_t first_task) {
    uint32_t machinery = 0;
    while (machinery < sight->count && !(tick->frames[machinery].flags & FRAME_MACHINERY)) machinery++;
    uint32_t end = entry_depth(sight->record, sight->loop, machinery, first_task);
    if (tick->options.loop_frames) /* and the machinery itself, as far as it is on the stack whatever the loop does */
        while (end < sight->count && end < first_task && tick->frames[end].flags & FRAME_MACHINERY) end++;
    tick->loops[tick->n_loops] = (struct running_loop){
        .loop = sight->loop, .thread_ident = sight->thread->ident, .entry = tick_push(tick, 0, 0, end), .thread_name = sight->thread_name};
    return tick->n_loops++;
}

static uint32_t task_at(const struct tick *tick, uint32_t frame) {
    return tick->frames[frame].generator ? tasks_find_by_coroutine(&tick->tasks, tick->frames[frame].generator) : NO_TASK;
}

static bool is_made_by(uint64_t address, uint64_t coroutine) {
    struct task task;
    return task_read(address, &task) && task.coroutine == coroutine;
}

/* A task in an eager first step runs inside the step of the task that made it. That one is asyncio's current task no more, and when it
   is new no tick has met it: so the tasks are asked whose coroutine the outermost one on the stack is, if they are not too many. */
static uint32_t find_maker(struct tick *tick, uint64_t coroutine) {
    struct task_set set = task_set_scheduled();
    if (set.slots > MAX_MAKER_SLOTS) return NO_TASK;
    for (uint64_t slot = 0; slot < set.slots; slot += TASK_SET_SLOTS_PER_READ) {
        uint64_t addresses[TASK_SET_SLOTS_PER_READ];
        size_t count = task_set_read(&set, slot, TASK_SET_SLOTS_PER_READ, addresses);
        for (size_t i = 0; i < count; i++) task_prefetch(addresses[i]);
        for (size_t i = 0; i < count; i++)
            if (is_made_by(addresses[i], coroutine)) return tick_meet(tick, addresses[i]);
    }
    return NO_TASK;
}

/* Where tasks stand in lists, nothing tells a task in its first step from others, nor the outer one of nested loops: so the tasks are
   asked for every coroutine on the stack that belongs to none that was met. Mostly there is none. */
static void meet_makers(struct tick *tick, struct thread_record *record, uint32_t first) {
    uint64_t coroutines[MAX_MAKERS], coroutine, faults = safe_copy_faults();
    unsigned count = 0;
    bool found = false;
    for (uint32_t i = 0; i < first && count < MAX_MAKERS; i++)
        if (tick->frames[i].generator) coroutines[count++] = tick->frames[i].generator;
    if (!count || (record->no_maker == coroutines[0] && tick->records.tick - record->no_maker_tick < TICKS_WITHOUT_MAKER)) return;
    if (!tick_read_list(tick) || tick->list.count > MAX_MAKER_SLOTS) return;
    for (uint32_t i = 0; i < tick->list.count; i++) {
        if (!safe_copy_word(&coroutine, tick->list.tasks[i] + layout.task_coroutine)) continue;
        for (unsigned k = 0; k < count; k++)
            if (coroutines[k] == coroutine) found |= tick_meet(tick, tick->list.tasks[i]) != NO_TASK;
    }
    if (found || safe_copy_faults() != faults) return;
    record->no_maker = coroutines[0]; /* a generator in the code that started the loop, say */
    record->no_maker_tick = tick->records.tick;
}

static uint32_t first_of_any_task(const struct tick *tick, uint32_t count, uint32_t *position) {
    uint32_t first = 0;
    while (first < count && (*position = task_at(tick, first)) == NO_TASK) first++;
    return first;
}

/* Where the frames of tasks begin, and whose the first ones are. For an eager task whose maker is not found, the maker's frames count
   as its own: they are there, only what awaits the maker is not. */
static uint32_t find_first_task(struct tick *tick, const struct thread_sight *sight, uint32_t *position) {
    uint32_t count = sight->count, first = first_of_any_task(tick, count, position), outermost = 0;
    if (task_list_exists() && sight->loop) {
        meet_makers(tick, sight->record, first);
        return first_of_any_task(tick, count, position);
    }
    if (first == count || !tick->seen[*position].eager) return first;
    while (outermost < first && !tick->frames[outermost].generator) outermost++;
    if (outermost == first) return first;
    uint32_t maker = find_maker(tick, tick->frames[outermost].generator);
    if (maker != NO_TASK) *position = maker;
    return outermost;
}

/* The tasks whose coroutines stand on the stack from frame start on, where those of the first one (above) begin; each but the last is below one that
   it started (an eager task) or whose loop it runs. running: what holds for the last one, which has the thread. */
static void mark_tasks(struct tick *tick, uint32_t above, uint32_t start, uint32_t count, const struct seen_task *running) {
    for (uint32_t i = start + 1; i < count; i++) {
        uint32_t position = task_at(tick, i);
        if (position == NO_TASK || position == above) continue;
        if (!keep_frames(tick, above, start, i, false)) return;
        tick->seen[above].sight = SIGHT_ON_STACK;
        tick->seen[above].state = running->state;
        tick->seen[above].loop = running->loop;
        tick->seen[position].has_fixed_parent = true;
        tick->stitch[position].parents[0] = above;
        tick->stitch[position].n_parents = 1;
        above = position;
        start = i;
    }
    if (!keep_frames(tick, above, start, count, true)) return;
    struct seen_task *seen = &tick->seen[above];
    uint32_t first_location = seen->first_location, name = seen->name;
    bool has_fixed_parent = seen->has_fixed_parent;
    if (!name) { /* not the loop's current one: in the C code of the eager step of one that it made, say */
        name = tick_read_name(tick, above);
        if (name && !task_lives(&tick->tasks.tasks[above])) name = 0;
    }
    *seen = *running;
    seen->first_location = first_location;
    seen->name = name;
    seen->has_fixed_parent = has_fixed_parent;
}

/* A loop's thread that runs no task runs a callback, or waits for events. asyncio's own loop shows which; the others, written in C,
   have no frame but the callback's above those that started them. */
static bool runs_callback(const struct tick *tick, uint32_t count, uint32_t entry_depth) {
    uint32_t flags = 0;
    for (uint32_t i = entry_depth; i < count; i++) flags |= tick->frames[i].flags;
    if (flags & FRAME_STOCK_LOOP) return flags & FRAME_CALLBACK;
    return !(tick->frames[count - 1].flags & FRAME_MACHINERY) && count > entry_depth;
}

enum stack_owner tick_take_stack(struct tick *tick, const struct thread_sight *sight) {
    uint32_t count = sight->count, position, first_task = find_first_task(tick, sight, &position), loop_position = NO_LOOP;
    if (safe_copy_faults() != sight->faults) return STACK_UNKNOWN;
    if (sight->loop) loop_position = add_loop(tick, sight, first_task);
    if (first_task == count)
        return sight->loop && runs_callback(tick, count, sight->record->entry_depth) ? STACK_OF_CALLBACK : STACK_OF_THREAD;
    struct seen_task running = {
        .sight = SIGHT_RUNNING,
        .state = sight->on_cpu ? STATE_RUNNING : STATE_BLOCKED,
        .record = (uint32_t)(sight->record - tick->records.records),
        .loop = loop_position,
        .link = sight->link,
    };
    mark_tasks(tick, position, first_task, count, &running);
    return STACK_OF_TASK;
}

bool tick_keep_running(struct tick *tick, uint32_t position, uint32_t count) {
    uint32_t first = 0;
    while (first < count && tick->frames[first].generator != tick->tasks.tasks[position].coroutine) first++;
    for (uint32_t i = first + 1; i < count; i++)
        if (task_at(tick, i) != NO_TASK && task_at(tick, i) != position) return false; /* another one is above */
    return first < count && keep_frames(tick, position, first, count, true);
}
