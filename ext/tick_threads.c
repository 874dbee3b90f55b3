/* The step that looks at threads: each thread's stack, which task runs on it, which loop, and what started that loop. */
#include "tick.h"

#include "cpython/layout.h"
#include "drop.h"
#include "safe_copy.h"

#define MAX_LINK_ATTEMPTS 3

static bool is_ignored(const struct tick *tick, uint64_t native_id) {
    for (unsigned i = 0; i < MAX_IGNORED_THREADS; i++)
        if (tick->ignored_threads[i] == (uint32_t)native_id) return true;
    return false;
}

/* Raw frames, leaf first -> resolved frames, root first. */
static uint32_t resolve(struct tick *tick, size_t n_raw) {
    uint32_t count = 0;
    while (n_raw-- > 0)
        count += code_table_resolve(tick->codes, tick->stacks, &tick->unwind.frames[n_raw], &tick->frames[count]);
    return count;
}

static uint32_t push(struct tick *tick, uint32_t stack, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) stack = stack_table_push(tick->stacks, stack, tick->frames[i].location);
    return stack;
}

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
static uint32_t add_loop(struct tick *tick, struct thread_record *record, const struct thread_state *thread, uint32_t thread_name,
                         uint64_t loop, uint32_t count, uint32_t first_task) {
    uint32_t machinery = 0;
    while (machinery < count && !(tick->frames[machinery].flags & FRAME_MACHINERY)) machinery++;
    uint32_t end = entry_depth(record, loop, machinery, first_task);
    if (tick->options.loop_frames) /* and the machinery itself, as far as it is on the stack whatever the loop does */
        while (end < count && end < first_task && tick->frames[end].flags & FRAME_MACHINERY) end++;
    tick->loops[tick->n_loops] = (struct running_loop){
        .loop = loop, .thread_ident = thread->ident, .entry = push(tick, 0, 0, end), .thread_name = thread_name};
    return tick->n_loops++;
}

static uint32_t task_at(const struct tick *tick, uint32_t frame) {
    return tick->frames[frame].generator ? tasks_find_by_coroutine(&tick->tasks, tick->frames[frame].generator) : NO_TASK;
}

/* The tasks whose coroutines stand on the stack from frame start on, where the first one stands; each but the last is below one that
   it started (an eager task) or whose loop it runs. running: what holds for the last one, which has the thread. */
static void mark_tasks(struct tick *tick, uint32_t start, uint32_t count, const struct seen_task *running) {
    uint32_t above = task_at(tick, start);
    for (uint32_t i = start + 1; i < count; i++) {
        uint32_t position = task_at(tick, i);
        if (position == NO_TASK) continue;
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
    uint32_t first_location = seen->first_location;
    bool has_fixed_parent = seen->has_fixed_parent;
    *seen = *running;
    seen->first_location = first_location;
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

/* Stack and link of one moment: the link is read before and after the stack, and both readings must agree. */
static bool read_thread(struct tick *tick, const struct thread_state *thread, size_t *n_raw, struct seen_link *link) {
    for (unsigned attempt = 0; attempt < MAX_LINK_ATTEMPTS; attempt++) {
        uint64_t before, after;
        if (!safe_copy_word(&before, thread->address + layout.thread_context)) break;
        struct seen_link first = tick_read_link(tick, before);
        if (!unwind_thread(thread, &tick->unwind, n_raw)) return false;
        if (!safe_copy_word(&after, thread->address + layout.thread_context)) break;
        *link = tick_read_link(tick, after);
        if (before == after && first.link == link->link) return true;
    }
    drop_count(DROP_torn_stack);
    return false;
}

static bool has_garbage(const struct tick *tick, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (tick->frames[i].flags & FRAME_GARBAGE) return true;
    return false;
}

static void look_at_thread(struct tick *tick, const struct thread_state *thread) {
    struct thread_record *record = thread_records_find(&tick->records, thread, tick->now_ns);
    if (!record) return drop_count(DROP_too_many_threads);
    struct seen_link link = {0, 0};
    size_t n_raw = 0;
    bool used_cpu = thread_record_read_cpu(record), whole = read_thread(tick, thread, &n_raw, &link);
    bool on_cpu = used_cpu && thread_record_on_cpu(record);
    uint64_t loop = threads_running_loop(thread);
    tick->settled &= !used_cpu;
    uint32_t count = whole ? resolve(tick, n_raw) : 0, first_task = 0;
    if (has_garbage(tick, count)) { /* a frame of another moment got into the copy: the whole is no stack that ever was */
        drop_count(DROP_torn_stack);
        whole = false;
    }
    if (!whole) { /* runs no Python, or ran too fast */
        if (loop) tick->loops[tick->n_loops++] = (struct running_loop){.loop = loop, .lost = true};
        return;
    }
    if (!count) return;
    tick->threads_seen++;

    uint32_t name = stack_table_string(tick->stacks, record->name, record->name_size), loop_position = NO_LOOP;
    while (first_task < count && task_at(tick, first_task) == NO_TASK) first_task++;
    if (loop) loop_position = add_loop(tick, record, thread, name, loop, count, first_task);
    if (first_task < count) { /* the sample is the task's: it waits until its awaiters are known */
        struct seen_task running = {
            .sight = SIGHT_SAMPLED,
            .state = on_cpu ? STATE_RUNNING : STATE_BLOCKED,
            .record = (uint32_t)(record - tick->records.records),
            .loop = loop_position,
            .link = link,
        };
        mark_tasks(tick, first_task, count, &running);
        return;
    }
    bool has_loop = loop && runs_callback(tick, count, record->entry_depth);
    tick_emit(tick, &(struct emission){
        .stack = push(tick, 0, 0, count),
        .thread_name = name,
        .thread_ident = thread->ident,
        .link = link,
        .state = on_cpu ? STATE_RUNNING : has_loop ? STATE_BLOCKED : STATE_WAITING,
        .wall_ns = tick->elapsed_ns,
        .cpu_periods = on_cpu ? thread_record_take_periods(record, tick->options.period_ns) : 0,
    });
}

static uint64_t next_thread_id(void) {
    uint64_t id;
    return safe_copy_word(&id, anchors.interpreter + layout.interp_next_thread_id) ? id : 0;
}

/* Whether no thread has run Python, or anything else, since the last full look: then all stacks, tasks, awaiters and spans are as
   they were. Frames and objects are changed by threads of this process alone, and running takes CPU time. Our own export thread
   counts too: it may run anybody's finalizers. The oldest thread, which is the likeliest to have run, is asked first. */
bool tick_nothing_ran(struct tick *tick) {
    if (!tick->cpu_is_exact || !tick->replay_whole) return false;
    uint64_t next_id = next_thread_id();
    if (!next_id || next_id != tick->next_thread_id) return false; /* a thread of C code may come, run Python and be gone */
    size_t count = threads_read(tick->threads, MAX_THREADS);
    for (size_t i = count; i-- > 0;)
        if (!thread_records_is_idle(&tick->records, &tick->threads[i])) return false;
    return count == tick->n_threads;
}

/* Of an ignored thread only the CPU clock is read: to know whether it ran. */
static void note_ignored_thread(struct tick *tick, const struct thread_state *thread) {
    struct thread_record *record = thread_records_find(&tick->records, thread, tick->now_ns);
    if (record && thread_record_read_cpu(record)) tick->settled = false;
}

void tick_look_at_threads(struct tick *tick) {
    tick->next_thread_id = next_thread_id();
    tick->n_threads = threads_read(tick->threads, MAX_THREADS);
    for (size_t i = 0; i < tick->n_threads; i++) {
        if (is_ignored(tick, tick->threads[i].native_id)) note_ignored_thread(tick, &tick->threads[i]);
        else look_at_thread(tick, &tick->threads[i]);
    }
}
