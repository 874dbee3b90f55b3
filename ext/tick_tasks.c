/* The step that looks at tasks: the frames of those in the window, and of those that await them. */
#include "tick.h"

#include "awaited.h"
#include "coroutine.h"
#include "cpython/layout.h"
#include "drop.h"
#include "reading.h"
#include "safe_copy.h"
#include "task_set.h"

#define GROUP 16       /* tasks walked at the same time */
#define TICKS_PER_SLICE 4
#define NODES_PER_SLOT 16     /* walking past a task costs a small part of a look at it */
#define MAX_TICKS_PER_WALK 64
#define MAX_ATTEMPTS 8   /* at a task that moves while it is read */
#define MAX_BLOCK 64    /* slots side by side */
#define LEAST_BLOCKS 32 /* in a look: with fewer, the shares of kinds that stand side by side are left to luck */

/* Tasks walked together. */
struct group {
    unsigned count;
    uint32_t positions[GROUP];
    uint64_t link_cursors[GROUP];
    struct await_chain chains[GROUP];
    struct raw_frame frames[GROUP][MAX_KNOWN_CHAIN]; /* a longer chain is walked alone */
};

/* The coroutine frames of a suspended task -> its locations. */
static bool keep_chain(struct tick *tick, uint32_t position, const struct await_chain *chain) {
    struct stitch_task *task = &tick->stitch[position];
    struct chain_locations kept = {.locations = tick_pool_reserve(tick, (uint32_t)chain->count)};
    if (!kept.locations || !code_table_resolve_chain(tick->codes, tick->stacks, chain->frames, chain->count, &kept)) return false;
    tick->seen[position].first_location = tick->pool_size;
    tick->pool_size += kept.count;
    task->sequence = kept.sequence;
    task->n_locations = kept.count;
    task->n_as_awaiter = kept.as_awaiter;
    return true;
}

static uint32_t find_loop(const struct tick *tick, uint64_t loop) {
    for (uint32_t i = 0; i < tick->n_loops; i++)
        if (tick->loops[i].loop == loop) return i;
    return NO_LOOP;
}

/* The walk is done: what does it say? Reads stack, link and name of one moment, as the walk and the task are confirmed after these were
   read. False when the task has moved meanwhile. */
static bool take_chain(struct tick *tick, uint32_t position, const struct await_chain *chain) {
    const struct task *task = &tick->tasks.tasks[position];
    struct seen_task *seen = &tick->seen[position];
    if (chain->state == CHAIN_FINISHED) return true;
    if (chain->state == CHAIN_EXECUTING || !task_is_pending(task)) return false; /* what belonged to one that has ended is freed by now */
    if (seen->in_window) seen->link = tick_read_link(tick, task->context);
    uint64_t faults = safe_copy_faults();
    bool waiting = task->waiter && awaited_is_pending(task->waiter);
    seen->awaits_tasks = waiting && tick->options.features & FEATURE_AWAITERS && awaited_are_tasks(task->waiter, chain);
    bool unknown = safe_copy_faults() != faults; /* what it waits for: it gives no sample, but stands below those that await it */
    seen->awaits_tasks |= unknown;
    if (seen->in_window && !seen->awaits_tasks) seen->name = tick_read_name(tick, position);
    if (!keep_chain(tick, position, chain) || !coroutine_unchanged(chain) || !task_lives(task)) return false;
    if (unknown) drop_count(DROP_unreadable_memory);
    seen->sight = SIGHT_SUSPENDED;
    seen->state = waiting ? STATE_WAITING : STATE_READY;
    tick->stitch[position].unusable = false;
    return true;
}

/* The memory that reading waiter and awaiters begins with. A processor has room for some twenty requests: so little by little. */
static void prefetch_rest(const struct tick *tick, const struct group *group, unsigned step) {
    for (unsigned i = 0; i < group->count; i++) {
        const struct task *task = &tick->tasks.tasks[group->positions[i]];
        uint64_t callback;
        if (step == 0) safe_copy_touch(task->waiter + OBJECT_TYPE), safe_copy_prefetch(task->waiter + layout.future_state);
        else if (step == 1) safe_copy_touch(task->callback0 + OBJECT_TYPE);
        else if (task->waiter && safe_copy_word(&callback, task->waiter + layout.future_callback0))
            safe_copy_touch(callback + OBJECT_TYPE);
    }
}
#define REST_STEPS 3

static void begin_walk(struct tick *tick, uint32_t position, struct group *group) {
    const struct task *task = &tick->tasks.tasks[position];
    struct seen_task *seen = &tick->seen[position];
    if (seen->sight != SIGHT_NONE) return;
    tick->work.visits++;
    seen->loop = find_loop(tick, task->loop);
    if (seen->loop == NO_LOOP ? !tick->loops_known : tick->loops[seen->loop].lost) {
        seen->lost = true;
        return drop_count(DROP_torn_stack);
    }
    unsigned at = group->count++;
    group->positions[at] = position;
    group->link_cursors[at] = seen->in_window ? task->context : 0;
    group->chains[at].frames = group->frames[at];
    group->chains[at].capacity = MAX_KNOWN_CHAIN;
    coroutine_begin(&group->chains[at], task->coroutine);
}

/* A task that has moved is looked at again, where it is now: suspended anew, or on its thread's stack. */
static void look_again(struct tick *tick, uint32_t position) {
    struct seen_task *seen = &tick->seen[position];
    seen->looked_again = true;
    for (unsigned attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        struct await_chain chain = {.frames = tick->long_chain, .capacity = MAX_AWAIT_CHAIN};
        struct task now;
        if (!task_read(tick->tasks.tasks[position].address, &now)) break;
        if (now.state != layout.future_pending || !task_is_same(&now, &tick->tasks.tasks[position]))
            return drop_count(DROP_moved_task); /* it has ended */
        tick->tasks.tasks[position] = now;
        coroutine_walk(&chain, now.coroutine);
        if (chain.state != CHAIN_EXECUTING) {
            if (take_chain(tick, position, &chain)) return;
        } else if (!seen->in_window) { /* it awaits nothing, so nothing stands on it */
            break;
        } else if (tick_catch_running(tick, position)) {
            return;
        }
    }
    seen->lost = true;
    drop_count(DROP_moved_task);
}

static void finish_walk(struct tick *tick, uint32_t position, struct await_chain *chain) {
    if (chain->state == CHAIN_LONG) {
        *chain = (struct await_chain){.frames = tick->long_chain, .capacity = MAX_AWAIT_CHAIN};
        coroutine_walk(chain, tick->tasks.tasks[position].coroutine);
    }
    if (!take_chain(tick, position, chain)) look_again(tick, position);
}

/* Walks of a group go forward in turns: while one waits for memory, the others use what has arrived. */
static void walk_group(const struct tick *tick, struct group *group) {
    struct await_chain *unfinished[GROUP];
    unsigned n = group->count;
    for (unsigned i = 0; i < n; i++) unfinished[i] = &group->chains[i];
    for (unsigned step = 0; n || step < SPAN_LINK_STEPS; step++) { /* ends: a walk has no more steps than frames */
        n = coroutine_step_all(unfinished, n);
        if (step < REST_STEPS) prefetch_rest(tick, group, step);
        span_link_prefetch(step, group->link_cursors, group->count);
    }
}

void tick_look_at(struct tick *tick, uint32_t begin, uint32_t end) {
    struct group group;
    while (begin < end) {
        uint32_t first = begin;
        reading_check();
        for (group.count = 0; begin < end && group.count < GROUP; begin++) begin_walk(tick, begin, &group);
        walk_group(tick, &group);
        for (unsigned i = 0; i < group.count; i++) finish_walk(tick, group.positions[i], &group.chains[i]);
        tick_find_awaiters(tick, first, begin); /* now, while what has been read of these tasks is near */
    }
}

/* Tasks made one after the other stand side by side in the task set, often all of one kind. So what is looked at in one tick is a
   number of blocks far from each other. */
static void meet_slots(struct tick *tick, const struct task_set *set, struct slice slice, uint32_t block) {
    uint64_t blocks = set->slots / block;
    for (uint64_t done = 0; done < slice.count;) {
        uint64_t addresses[TASK_SET_SLOTS_PER_READ];
        size_t count = 0;
        for (; done < slice.count && count + block <= TASK_SET_SLOTS_PER_READ; done++)
            count += task_set_read(set, window_spread(slice.first + done, blocks) * block, block, addresses + count);
        for (size_t i = 0; i < count; i++) task_prefetch(addresses[i]);
        for (size_t i = 0; i < count; i++) {
            uint32_t position = tick_meet(tick, addresses[i]);
            if (position != NO_TASK) tick->seen[position].in_window = true;
        }
    }
}

/* Lists of very many tasks are walked so seldom that a tick's share of the walk stays in proportion to what it may look at. Each walk
   sees all tasks, and what is looked at is chosen among them: the chance of each is known, and a task that lives shortly has it too. */
static uint64_t ticks_per_walk(uint64_t n_tasks, uint64_t slots) {
    uint64_t ticks = n_tasks / (NODES_PER_SLOT * slots + 1);
    if (ticks < TICKS_PER_SLICE) return TICKS_PER_SLICE;
    return ticks < MAX_TICKS_PER_WALK ? ticks : MAX_TICKS_PER_WALK;
}

/* Those of foreign classes, which are counted, not read: a few of them, now and then. */
static void meet_foreign(struct tick *tick) {
    uint64_t addresses[TASK_SET_SLOTS_PER_READ];
    const struct task_set sets[] = {task_set_scheduled(), task_set_python()};
    for (size_t k = 0; k < sizeof sets / sizeof sets[0]; k++) {
        size_t count = task_set_read(&sets[k], 0, TASK_SET_SLOTS_PER_READ, addresses);
        for (size_t i = 0; i < count; i++) tick_meet(tick, addresses[i]);
    }
}

/* All tasks. False when it is not time yet to walk their lists: slots are then those of the last walk. */
static bool open_tasks(struct tick *tick, struct task_set *set) {
    if (!task_list_exists()) return *set = task_set_scheduled(), true;
    *set = task_set_of_list(tick->list.tasks, tick->list.count);
    if (set->slots > tick->limits.slots && tick->ticks_without_tasks < ticks_per_walk(tick->list.count, tick->limits.slots)) return false;
    if (!tick_read_list(tick)) tick->replay_whole = false;
    *set = task_set_of_list(tick->list.tasks, tick->list.count);
    meet_foreign(tick);
    return true;
}

/* The suspended tasks to be looked at in this tick: all, or when there are too many for one tick a slice, and that only in one of
   TICKS_PER_SLICE ticks, but then a larger one. Much of a look's cost is that code and tables have left the cache since the last. */
static void meet_window(struct tick *tick) {
    struct task_set set;
    tick->since_tasks_ns += tick->elapsed_ns;
    tick->ticks_without_tasks++;
    bool is_open = open_tasks(tick, &set), all = set.slots <= tick->limits.slots;
    tick->work.all_slots = set.slots;
    if (!all) tick->replay_whole = false;
    if (!is_open || (!all && tick->ticks_without_tasks < TICKS_PER_SLICE)) return;
    uint64_t slots = tick->limits.slots * tick->ticks_without_tasks;
    uint32_t block = 1;
    while (block < MAX_BLOCK && 2 * LEAST_BLOCKS * block <= slots && 2 * block <= set.slots) block *= 2;
    struct slice slice = window_next(&tick->task_window, set.slots / block, slots / block);
    tick->work.slots = slice.count * block;
    tick->work.window = slice.weight * tick->ticks_without_tasks;
    tick->work.task_share = slice.weight * (double)tick->since_tasks_ns / (double)tick->elapsed_ns;
    tick->last_part.count = 0;
    tick->last_part_ns = all ? 0 : tick->since_tasks_ns;
    tick->ticks_without_tasks = 0;
    tick->since_tasks_ns = 0;
    uint32_t before = tick->tasks.count;
    meet_slots(tick, &set, slice, block);
    tick->tasks_seen += (uint64_t)((double)(tick->tasks.count - before) * tick->work.window);
}

void tick_look_at_tasks(struct tick *tick) {
    meet_window(tick);
    /* Each round looks at those who await the tasks of the one before, as far up as a stack may reach. */
    for (uint32_t begin = 0, end, level = 0; begin < tick->tasks.count && level <= MAX_AWAITING_TASKS; begin = end, level++) {
        end = tick->tasks.count;
        tick_look_at(tick, begin, end);
    }
    tick->tasks_visited += tick->work.visits;
}
