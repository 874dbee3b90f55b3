/* One look at every thread and at a window of the tasks. tick_run() is the list of steps; each step has a file of its own. */
#ifndef OTEL_ASYNCPROF_TICK_H
#define OTEL_ASYNCPROF_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "awaiters.h"
#include "code_table.h"
#include "span_link.h"
#include "stack_table.h"
#include "stitch.h"
#include "task_list.h"
#include "tasks.h"
#include "thread_records.h"
#include "threads.h"
#include "unwind.h"
#include "window.h"

#define MAX_IGNORED_THREADS 8
#define MAX_LOOPS MAX_THREADS
#define MAX_OWN_LOOPS 64

enum { FEATURE_TASKS = 1, FEATURE_AWAITERS = 2, FEATURE_SPANS = 4 };

struct tick_options {
    uint64_t period_ns;
    uint32_t max_frames;
    uint32_t attributes; /* ATTRIBUTE_… of otlp_encode.h: what is not asked for is not read */
    uint32_t features;   /* FEATURE_…: what the self-check found sound */
    uint32_t max_slots;  /* of the task set at a tick, whatever the budget allows; 0 = no such limit */
    bool link_local_root, link_unsampled, loop_frames, timeline;
    bool is_forked;      /* this process is the child of a fork */
};

/* How much this tick may look at, besides the threads and tasks that run. */
struct tick_limits {
    uint64_t slots;        /* of the task set, on average */
    uint64_t idle_threads;
};

/* What it has looked at, and at what cost. */
struct tick_work {
    uint64_t tasks_ns; /* time for suspended tasks: of the wall clock, which is cheaper to ask */
    uint64_t slots, visits, idle_threads, all_slots;
    double window;     /* each task is looked at in one of so many ticks */
    double task_share; /* of the elapsed time: what a sample of a suspended task stands for */
};

enum task_sight {
    SIGHT_NONE,     /* not looked at yet, ended or moved: gives no sample */
    SIGHT_ON_STACK, /* on a thread's stack, below a task that it started or a loop that it runs */
    SIGHT_SUSPENDED,
    SIGHT_RUNNING,
    SIGHT_CAUGHT, /* running, but not yet when its thread was looked at: weighs what a suspended one weighs */
};

/* The span that a stack belongs to, read together with that stack: ids in the stack table. */
struct seen_link {
    uint32_t link, local_root_name;
};

/* What this tick has seen of a task; stands at the same position as the task in the task table. */
struct seen_task {
    enum task_sight sight;
    enum sample_state state;
    bool in_window;          /* gives a sample if it is suspended; otherwise it is here for what stands on it */
    bool eager;              /* in its eager first step */
    bool lost;               /* it lives, but could not be read whole in this tick */
    bool looked_again;       /* it moved while it was read: no longer where those that led to it have seen it */
    bool awaits_tasks, has_fixed_parent, is_awaiter;
    bool is_spawned;         /* its parent is only the task in which its span was activated (contract R5) */
    uint32_t first_location; /* in the pool */
    uint32_t name;           /* string id; read with the stack */
    uint32_t record;         /* of the thread it runs on, for its CPU time; NO_RECORD when it does not run */
    uint32_t loop;           /* position in loops; NO_LOOP when its loop does not run */
    struct seen_link link;
};
#define NO_RECORD UINT32_MAX
#define NO_LOOP UINT32_MAX

/* A loop that runs in a thread. */
struct running_loop {
    uint64_t loop, thread_ident;
    uint32_t entry;       /* the stack that started it */
    uint32_t thread_name; /* string id */
    bool lost;            /* its thread's stack could not be had in this tick: neither can those of its tasks */
};

/* In the child of a fork, tasks of the parent stay in asyncio's sets for good, and will never run: those count whose loop has been
   seen to run in this process, the last ones of such loops. */
struct own_loops {
    uint64_t loops[MAX_OWN_LOOPS];
    uint32_t next;
};

/* Samples of one look, to be given weight again without another look. */
struct replay_sample {
    struct sample_key key;
    double share; /* of the elapsed time */
};
struct replay {
    struct replay_sample *samples;
    uint32_t count, capacity;
};
#define MAX_REPLAY (1u << 21)

struct tick {
    struct tick_options options;
    struct stack_table *stacks; /* of the current interval: set by tick_use */
    uint32_t interval;          /* counts the intervals */
    struct code_table *codes;
    struct thread_records records;
    struct window task_window, thread_window;
    struct task_list list;        /* of all tasks, where asyncio keeps them in lists */
    uint64_t list_tick;           /* in which it was read */
    bool list_whole;
    uint32_t ticks_without_tasks; /* since the last look at suspended tasks */
    uint64_t since_tasks_ns;      /* of it nothing is in the tables */
    struct replay last_part;      /* that look, if it was at a part of the tasks: when the tables go before the next, it stands for this time */
    uint64_t last_part_ns;        /* the time that its shares are of; 0 = there is none in these tables */
    uint32_t ignored_threads[MAX_IGNORED_THREADS]; /* kernel ids; 0 = free place */

    /* of this tick */
    struct tick_limits limits;
    struct tick_work work;
    uint64_t now_ns, real_ns, elapsed_ns;
    struct task_table tasks;     /* those met */
    struct seen_task *seen;      /* parallel to tasks.tasks */
    struct stitch_task *stitch;  /* the same */
    uint32_t seen_capacity;
    uint32_t *pool;              /* locations of the tasks' frames */
    uint32_t pool_size, pool_capacity;
    struct running_loop loops[MAX_LOOPS];
    uint32_t n_loops;
    struct own_loops own_loops;
    bool loops_known;            /* no loop runs but those, and all tasks that may stand on a stack are met */
    bool threads_whole;          /* the list of threads was read to its end */
    uint32_t omitted;            /* location of <frames omitted> */
    struct awaiter_memo memo;

    /* rest */
    struct replay replay;        /* the last full look, for as long as no thread runs */
    bool cpu_is_exact;           /* CPU clocks show even the shortest run, as a rule, so that rest can be told */
    bool replay_whole;           /* it holds all that the last full look has seen */
    bool settled;                /* that look was itself one at a process in which nothing ran: it has missed nothing */
    uint64_t rest_ns;            /* since that look, not given to its samples yet */
    uint32_t rest_ticks;         /* since that look */
    size_t n_threads;            /* in the last full look */
    uint64_t next_thread_id;     /* at that look: another one now means that a thread has come, and perhaps gone */

    /* work space of one walk */
    struct thread_state threads[MAX_THREADS];
    struct thread_record *resting[MAX_THREADS]; /* NULL for those to be looked at whatever the limits are */
    struct resolved_frame frames[MAX_THREAD_FRAMES];
    struct unwind_buffer unwind;
    struct raw_frame long_chain[MAX_AWAIT_CHAIN];

    /* sums since start */
    uint64_t ticks, samples, tasks_seen, tasks_visited, threads_seen;
    uint64_t ignored_cpu_ns; /* CPU time of the ignored threads */
};

/* NULL when memory is short. */
struct tick *tick_new(const struct tick_options *options, const char *asyncio_directory);
void tick_destroy(struct tick *tick);

/* From now on, into these tables. */
void tick_use(struct tick *tick, struct stack_table *stacks);

/* Looks once and adds what it sees to tick->stacks. elapsed_ns is the real time since the tick before: the weight. */
void tick_run(struct tick *tick, const struct tick_limits *limits, uint64_t now_ns, uint64_t real_ns, uint64_t elapsed_ns);

/* The steps, in order. */
bool tick_nothing_ran(struct tick *tick);
void tick_end_rest(struct tick *tick);
void tick_end_window(struct tick *tick);
void tick_end_owed(struct tick *tick, struct thread_record *record, uint64_t end_unix_ns);
void tick_find_running_tasks(struct tick *tick);
void tick_look_at_threads(struct tick *tick);
void tick_look_at_tasks(struct tick *tick);
void tick_emit_tasks(struct tick *tick);

/* For the steps: the position of the task at an address, met in this tick; NO_TASK when there is none. */
uint32_t tick_meet(struct tick *tick, uint64_t address);

/* For the steps: the string id of a task's name. */
uint32_t tick_read_name(struct tick *tick, uint32_t position);

/* For the steps: reads the lists of tasks, once in a tick. False when that could not be done, wholly. */
bool tick_read_list(struct tick *tick);

/* For the steps: a loop has been seen to run. */
void tick_note_loop(struct tick *tick, uint64_t loop);

/* For the steps: looks at the tasks from position begin on that no step has looked at, and finds who awaits all of these; further
   ones are met meanwhile. */
void tick_look_at(struct tick *tick, uint32_t begin, uint32_t end);

/* For the steps: who awaits the tasks from position begin on; those are met. */
void tick_find_awaiters(struct tick *tick, uint32_t begin, uint32_t end);

/* For the steps: a thread's stack, resolved in tick->frames, root first -> what of it belongs to which loop and which task, and so
   whose the sample is. */
enum stack_owner {
    STACK_OF_TASK,
    STACK_OF_CALLBACK, /* the thread's, whose loop runs no task */
    STACK_OF_THREAD,
    STACK_UNKNOWN,     /* memory that tells could not be read: nothing has been taken */
};
struct thread_sight {
    const struct thread_state *thread;
    struct thread_record *record;
    uint32_t thread_name, count;
    uint64_t loop;
    uint64_t faults; /* of all reads, before the stack was read */
    bool on_cpu;
    struct seen_link link;
};
enum stack_owner tick_take_stack(struct tick *tick, const struct thread_sight *sight);

/* For the steps: a task has begun to run after its thread was looked at. That thread is looked at again, for this task alone. False
   when it does not run any more. */
bool tick_catch_running(struct tick *tick, uint32_t position);

/* For the steps: the frames of a running task, in tick->frames. False when they are not there, or not on top. */
bool tick_keep_running(struct tick *tick, uint32_t position, uint32_t count);

/* For the steps: adds one sample of a stack, its depth limited. */
struct emission {
    uint32_t stack, thread_name, task_name;
    struct seen_link link;
    uint64_t thread_ident, cpu_periods;
    double share; /* of the elapsed time; more than 1 for tasks that are not looked at in each tick */
    enum sample_state state;
    bool of_window; /* the share is that of the window */
};
struct sample_key tick_emit(struct tick *tick, const struct emission *emission);

/* For the steps: the string id of an attribute's text. Receivers refuse a whole profile for one that is longer, so it is cut at a
   character and ends in … */
#define MAX_ATTRIBUTE_BYTES 2048
uint32_t tick_attribute(struct tick *tick, char *text, size_t size);

/* For the steps: what a context links to, as the options want it. */
struct seen_link tick_read_link(struct tick *tick, uint64_t context);

/* For the steps: the stack of frames [from, to) of tick->frames on top of another. */
uint32_t tick_push(struct tick *tick, uint32_t stack, uint32_t from, uint32_t to);

/* For the steps: room for count locations; NULL when memory is short. */
uint32_t *tick_pool_reserve(struct tick *tick, uint32_t count);

#endif
