/* The step that looks at threads: each thread's stack and link of one moment. */
#include "tick.h"

#include "coroutine.h"
#include "cpython/layout.h"
#include "drop.h"
#include "exit_signals.h"
#include "greenlets.h"
#include "read_object.h"
#include "reading.h"
#include "safe_copy.h"
#include "task_set.h"

#define MAX_ATTEMPTS 16 /* at a thread that switches tasks meanwhile; giving up would hide all tasks of its loop */
#define MAX_LIST_READINGS 4 /* of the threads; one that ends meanwhile cuts a reading short, which would hide all tasks */
#define MAX_CURRENT_TASKS 256
#define MAX_EAGER_SLOTS 8192 /* of the set of tasks in their first step: there are no more than calls fit on stacks */
#define TICKS_PER_READING 64 /* of the clocks of ignored threads */

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

static bool has_frame(const struct tick *tick, uint32_t count, uint32_t flags) {
    for (uint32_t i = 0; i < count; i++)
        if (tick->frames[i].flags & flags) return true;
    return false;
}

/* What can change only while its thread runs Python. */
struct moment {
    uint64_t context, switches; /* of contexts, so far: read before the rest */
    uint64_t task, coroutine;
    bool in_coroutine; /* its task runs Python code; in the task's C code before and after that, collecting garbage for one, it does not */
};

/* How often the thread has entered or left a context, which each step of a task and each callback of a loop does. */
static bool read_switches(const struct thread_state *thread, uint64_t *switches) {
    return safe_copy_word(switches, thread->address + layout.thread_context_version);
}

/* task: the one that the loop runs now; 0 = none. */
static bool read_moment(const struct thread_state *thread, uint64_t loop, struct moment *moment) {
    *moment = (struct moment){0};
    if (!read_switches(thread, &moment->switches) || !threads_read_task(thread, loop, &moment->task) ||
        !safe_copy_word(&moment->context, thread->address + layout.thread_context))
        return false;
    if (!moment->task) return true;
    if (!safe_copy_word(&moment->coroutine, moment->task + layout.task_coroutine)) return false;
    uint64_t faults = safe_copy_faults();
    moment->in_coroutine = coroutine_is_executing(moment->coroutine);
    return safe_copy_faults() == faults; /* else it may well be: what stands on the stack would not be asked for its root */
}

/* Where the loop ran no task before and after, one may have run in between for a whole step: its frames would pass for those of a
   callback. Then its coroutine does not run any more, or the thread has left the step's context. */
static bool still_runs(const struct tick *tick, const struct thread_state *thread, const struct moment *before, size_t n_raw) {
    uint64_t switches, n_coroutines = 0;
    for (size_t i = 0; i < n_raw; i++) {
        if (!tick->unwind.frames[i].generator) continue;
        if (!coroutine_is_executing(tick->unwind.frames[i].generator)) return false;
        n_coroutines++;
    }
    return !n_coroutines || (read_switches(thread, &switches) && switches == before->switches);
}

/* Context and task may be the same again after others: that a thread has not entered or left a context since tells. One that does all
   the time is not let go for that: giving up would hide the busiest code. */
static bool is_one_moment(const struct moment *before, const struct moment *after, unsigned attempt) {
    return before->context == after->context && before->task == after->task &&
           (before->switches == after->switches || attempt >= MAX_ATTEMPTS / 2);
}

/* A task that runs has its coroutine on the stack. Sync code that runs in a greenlet for the task has a stack of its own, to which the
   rest is added; where that cannot be had, the stack is no one's: without its root it would pass for the loop's. */
static bool complete_stack(struct tick *tick, const struct moment *before, const struct moment *after, size_t *n_raw) {
    if (!before->coroutine || greenlets_complete(before->coroutine, tick->unwind.frames, MAX_THREAD_FRAMES, n_raw)) return true;
    return !before->in_coroutine && !after->in_coroutine;
}

static bool has_coroutine(const struct tick *tick, size_t n_raw, uint64_t coroutine) {
    for (size_t i = 0; i < n_raw; i++)
        if (tick->unwind.frames[i].generator == coroutine) return true;
    return false;
}

/* What is known of a task when it is met a second time may be that of one which had its address before. */
static void read_again(struct tick *tick, uint32_t position) {
    struct seen_task *seen = &tick->seen[position];
    struct task *task = &tick->tasks.tasks[position], now;
    if (!task_read(task->address, &now)) return;
    seen->eager &= task_is_same(&now, task);
    *task = now;
}

/* Meets the task while it lives. One that has ended since its stack was read is not met any more, or another one that is at its address
   by now: its frames would pass for those of a callback. Nor would those that await it be found. caught: the task that the stack is
   read for; NO_TASK = whichever runs. */
static bool meet_on_stack(struct tick *tick, const struct moment *moment, size_t n_raw, uint32_t caught) {
    if (!moment->task || (caught != NO_TASK && tick->tasks.tasks[caught].address != moment->task)) return true;
    uint64_t faults = safe_copy_faults();
    uint32_t before = tick->tasks.count, position = tick_meet(tick, moment->task);
    if (position != NO_TASK && position < before && tick->seen[position].sight == SIGHT_NONE) read_again(tick, position);
    if (position != NO_TASK && tick->tasks.tasks[position].coroutine == moment->coroutine) {
        tick->seen[position].name = tick_read_name(tick, position);
        return task_lives(&tick->tasks.tasks[position]);
    }
    return safe_copy_faults() == faults && !(moment->coroutine && has_coroutine(tick, n_raw, moment->coroutine));
}

/* Stack, link and task of one moment: the link and the task are read before and after the stack, and both readings must agree. */
static bool read_thread(struct tick *tick, const struct thread_state *thread, uint64_t loop, uint32_t caught, size_t *n_raw,
                        struct seen_link *link, uint64_t *task) {
    for (unsigned attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        struct moment before, after;
        uint64_t changes = span_link_changes(thread->ident);
        reading_check();
        if (!read_moment(thread, loop, &before)) continue;
        struct seen_link first = tick_read_link(tick, before.context);
        if (!unwind_thread(thread, &tick->unwind, n_raw)) return false;
        if (!meet_on_stack(tick, &before, *n_raw, caught)) continue;
        *link = tick_read_link(tick, before.context);
        if (!read_moment(thread, loop, &after) || !complete_stack(tick, &before, &after, n_raw)) continue;
        *task = after.task;
        if (!is_one_moment(&before, &after, attempt)) continue;
        if (loop && !before.task && !still_runs(tick, thread, &before, *n_raw)) continue;
        if (first.link == link->link && span_link_changes(thread->ident) == changes) return true;
        if (attempt < MAX_ATTEMPTS / 2) continue;
        *link = (struct seen_link){0}; /* spans come and go all the time: rather none than another */
        return true;
    }
    drop_count(DROP_torn_stack);
    return false;
}

/* The same with the stack resolved, in tick->frames. */
static bool read_stack(struct tick *tick, const struct thread_state *thread, uint64_t loop, uint32_t caught, uint32_t *count,
                       struct seen_link *link, uint64_t *task) {
    size_t n_raw = 0;
    *count = 0;
    if (!read_thread(tick, thread, loop, caught, &n_raw, link, task)) return false;
    *count = resolve(tick, n_raw);
    /* Garbage: a frame of another moment got into the copy, and the whole is no stack that ever was. A frame whose code could not be
       read stands for itself, but does not tell where in a loop's stack the loop begins. */
    if (!has_frame(tick, *count, loop ? FRAME_GARBAGE | FRAME_SYNTHETIC : FRAME_GARBAGE)) return true;
    drop_count(DROP_torn_stack);
    return false;
}

bool tick_catch_running(struct tick *tick, uint32_t position) {
    struct seen_task *seen = &tick->seen[position];
    const struct running_loop *loop = seen->loop == NO_LOOP ? NULL : &tick->loops[seen->loop];
    struct seen_link link;
    uint64_t task;
    uint32_t count;
    for (size_t i = 0; loop && i < tick->n_threads; i++) {
        if (tick->threads[i].ident != loop->thread_ident) continue;
        if (!read_stack(tick, &tick->threads[i], loop->loop, position, &count, &link, &task)) return false;
        if (task != tick->tasks.tasks[position].address || !tick_keep_running(tick, position, count)) return false;
        seen = &tick->seen[position];
        seen->sight = SIGHT_CAUGHT;
        seen->state = STATE_RUNNING;
        seen->link = link;
        return true;
    }
    return false;
}

static struct sample_key emit_thread(struct tick *tick, const struct thread_sight *sight, uint32_t stack, bool blocked) {
    return tick_emit(tick, &(struct emission){
        .stack = stack,
        .thread_name = sight->thread_name,
        .thread_ident = sight->thread->ident,
        .link = sight->link,
        .state = sight->on_cpu ? STATE_RUNNING : blocked ? STATE_BLOCKED : STATE_WAITING,
        .share = 1,
        .cpu_periods = sight->on_cpu ? thread_record_take_periods(sight->record, tick->options.period_ns) : 0,
    });
}

/* Of the loop's tasks nothing can be said in this tick: what started the loop is a part of their stacks. */
static void lose_loop(struct tick *tick, uint64_t loop) {
    if (loop) tick->loops[tick->n_loops++] = (struct running_loop){.loop = loop, .lost = true};
}

static void look_at_thread(struct tick *tick, const struct thread_state *thread) {
    struct thread_sight sight = {.thread = thread, .record = thread_records_find(&tick->records, thread, tick->now_ns)};
    struct thread_record *record = sight.record;
    if (!record) {
        tick->loops_known = tick->threads_whole = false;
        return drop_count(DROP_too_many_threads);
    }
    tick_end_owed(tick, record, tick->real_ns - tick->elapsed_ns);
    struct thread_words words = thread_words(thread);
    bool rested = thread_record_looks_rested(record, &words, tick->interval);
    uint64_t used_ns = thread_record_read_cpu(&tick->records, record), faults = safe_copy_faults();
    if (used_ns) record->ran_ns = tick->now_ns;
    sight.loop = threads_running_loop(thread);
    if (safe_copy_faults() != faults) {
        tick->loops_known = record->rested = false;
        return drop_count(DROP_unreadable_memory);
    }
    if (sight.loop) tick_note_loop(tick, sight.loop);
    record->rested = tick->cpu_is_exact && !used_ns && !sight.loop;
    record->words = words;
    tick->settled &= !used_ns;
    if (rested && record->rested) { /* the same stack as at the last look */
        sight.link = tick_read_link(tick, thread->context);
        sight.thread_name = stack_table_string(tick->stacks, record->name, record->name_size);
        tick->threads_seen++;
        record->sample = emit_thread(tick, &sight, record->stack, false);
        return;
    }
    uint64_t task = 0;
    if (sight.loop && !tick->loops_known) return lose_loop(tick, sight.loop);
    bool whole = read_stack(tick, thread, sight.loop, NO_TASK, &sight.count, &sight.link, &task);
    sight.on_cpu = thread_record_on_cpu(record, threads_gil_holder() == thread->address, used_ns, tick->elapsed_ns);
    record->rested &= !sight.on_cpu && whole && sight.count && !has_frame(tick, sight.count, FRAME_SYNTHETIC);
    if (!whole) return lose_loop(tick, sight.loop); /* runs no Python, or ran too fast */
    if (exit_signals_came()) return lose_loop(tick, sight.loop); /* during this tick: what was read may be our own wait for the end */
    if (!sight.count) return;
    tick->threads_seen++;
    sight.thread_name = stack_table_string(tick->stacks, record->name, record->name_size);
    sight.faults = safe_copy_faults();
    enum stack_owner owner = tick_take_stack(tick, &sight);
    if (owner == STACK_UNKNOWN) {
        drop_count(DROP_unreadable_memory);
        record->rested = false;
        return lose_loop(tick, sight.loop);
    }
    if (owner == STACK_OF_TASK) { /* the sample waits until the task's awaiters are known */
        record->rested = false;
        return;
    }
    record->stack = tick_push(tick, 0, 0, sight.count);
    record->interval = tick->interval;
    record->sample = emit_thread(tick, &sight, record->stack, owner == STACK_OF_CALLBACK);
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
    bool whole;
    size_t count = threads_read(tick->threads, MAX_THREADS, &whole);
    if (!whole) return false;
    for (size_t i = count; i-- > 0;)
        if (!thread_records_is_idle(&tick->records, &tick->threads[i])) return false;
    return count == tick->n_threads;
}

/* Of an ignored thread only the CPU clock is read: to know whether it ran, and how much. The first matters only while all others
   rest, the second now and then: a clock takes as long to read as a task. */
static void note_ignored_thread(struct tick *tick, const struct thread_state *thread) {
    if (!tick->settled && tick->ticks % TICKS_PER_READING && thread_records_keep_unread(&tick->records, thread)) return;
    struct thread_record *record = thread_records_find(&tick->records, thread, tick->now_ns);
    uint64_t used_ns = record ? thread_record_read_cpu(&tick->records, record) : 0;
    tick->ignored_cpu_ns += used_ns;
    tick->settled &= !used_ns;
}

static void read_threads(struct tick *tick) {
    for (unsigned reading = 0; reading < MAX_LIST_READINGS; reading++) {
        tick->n_threads = threads_read(tick->threads, MAX_THREADS, &tick->threads_whole);
        if (tick->threads_whole || tick->n_threads == MAX_THREADS) return;
    }
}

/* Every thread that runs, and as many of those at rest as there is time for. */
void tick_look_at_threads(struct tick *tick) {
    tick->next_thread_id = next_thread_id();
    threads_prefetch(tick->threads, tick->n_threads);
    read_threads(tick);
    tick->loops_known &= tick->threads_whole;
    uint64_t n_resting = 0, nth = 0, gil_holder = threads_gil_holder();
    for (size_t i = 0; i < tick->n_threads; i++) {
        const struct thread_state *thread = &tick->threads[i];
        bool runs = thread->address == gil_holder || is_ignored(tick, thread->native_id);
        tick->resting[i] = runs ? NULL : thread_records_find_resting(&tick->records, thread, tick->interval, tick->now_ns);
        n_resting += tick->resting[i] != NULL;
    }
    struct slice slice = window_next(&tick->thread_window, n_resting, tick->limits.idle_threads);
    if (slice.count < n_resting) tick->replay_whole = false;
    tick->work.idle_threads = n_resting;
    for (size_t i = 0; i < tick->n_threads; i++) {
        const struct thread_state *thread = &tick->threads[i];
        if (is_ignored(tick, thread->native_id)) note_ignored_thread(tick, thread);
        else if (!tick->resting[i] || (nth++ + n_resting - slice.first) % n_resting < slice.count) look_at_thread(tick, thread);
        else tick->resting[i]->owed_ns += tick->elapsed_ns;
    }
}

/* The tasks that may stand on a stack without being any loop's current one when that stack is looked at: below a nested loop, or
   above the task that made them. */
void tick_find_running_tasks(struct tick *tick) {
    uint64_t addresses[MAX_CURRENT_TASKS], faults = safe_copy_faults();
    size_t count = anchors.current_tasks ? read_dict_values(anchors.current_tasks, addresses, MAX_CURRENT_TASKS) : 0;
    for (size_t i = 0; i < count; i++) tick_meet(tick, addresses[i]);
    struct task_set set = task_set_eager();
    for (uint64_t slot = 0; slot < set.slots && slot < MAX_EAGER_SLOTS; slot += TASK_SET_SLOTS_PER_READ) {
        count = task_set_read(&set, slot, TASK_SET_SLOTS_PER_READ, addresses);
        for (size_t i = 0; i < count; i++) {
            uint32_t position = tick_meet(tick, addresses[i]);
            if (position != NO_TASK) tick->seen[position].eager = true;
        }
    }
    if (safe_copy_faults() != faults) tick->loops_known = false;
}
