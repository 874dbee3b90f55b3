#include "sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "budget.h"
#include "clock.h"
#include "code_table.h"
#include "drop.h"
#include "exit_signals.h"
#include "os/os.h"
#include "reading.h"
#include "safe_copy.h"

#define SAMPLER_STACK_BYTES (1u << 20)
#define STACK_TABLE_BYTES (256u << 20) /* the most that one interval may hold */
#define MAX_GAP_NS 1000000000ull       /* a tick later than this means that the process itself stood still: nobody's waiting time */
#define JITTER_SHARE 4                 /* of the period: a program with a timer of our period must not be seen at one phase only */

struct sampler {
    pthread_t thread;
    bool thread_made;
    struct clock_alarm end;
    pthread_mutex_t tick_lock;  /* held during a tick and during a swap */
    struct tick *tick;
    struct stack_table *spare;  /* empty, or being encoded since the last swap */
    struct budget budget;
    uint64_t begin_ns, end_ns;  /* of the sampler, monotonic */
    uint64_t interval_begin_ns;
    uint64_t cpu_ns;
    struct sampler_stats sums;  /* for sampler_stats(): written by the thread after each tick, word by word, and read at any time */
};

static struct sampler *sampler; /* NULL until the first start; kept after stop for its last interval and its sums */
static bool running, stopping, is_forked;
static pthread_mutex_t swapped = PTHREAD_MUTEX_INITIALIZER; /* held from a swap to its release */
static uint32_t ignored_threads[MAX_IGNORED_THREADS];

static void free_sampler(struct sampler *old) {
    if (!old) return;
    if (old->tick) stack_table_destroy(old->tick->stacks);
    stack_table_destroy(old->spare);
    tick_destroy(old->tick);
    free(old);
}

/* Real time since the last tick; one period when it is much longer than the wait that was meant: then the process stood still. */
static uint64_t weight(uint64_t elapsed, uint64_t meant, uint64_t period) { return elapsed > meant + MAX_GAP_NS ? period : elapsed; }

static void put(uint64_t *sum, uint64_t value) { __atomic_store_n(sum, value, __ATOMIC_RELAXED); }
static uint64_t take(const uint64_t *sum) { return __atomic_load_n(sum, __ATOMIC_RELAXED); }

/* Before the tick's lock is given back: who has swapped the tables finds the sums of all that they hold. */
static void publish_sums(struct sampler *self) {
    const struct tick *tick = self->tick;
    put(&self->sums.ticks, tick->ticks);
    put(&self->sums.samples, tick->samples);
    put(&self->sums.tasks_seen, tick->tasks_seen);
    put(&self->sums.tasks_visited, tick->tasks_visited);
    put(&self->sums.threads_seen, tick->threads_seen);
    put(&self->sums.export_cpu_ns, tick->ignored_cpu_ns);
    __atomic_store(&self->sums.window, &tick->work.window, __ATOMIC_RELAXED);
}

static void publish_cost(struct sampler *self) {
    put(&self->sums.sampler_cpu_ns, self->cpu_ns);
    put(&self->sums.visit_ns, (uint64_t)self->budget.visit_ns);
    put(&self->sums.tick_ns, (uint64_t)self->budget.tick_ns);
}

/* One tick, and what it and the pause before it have cost. Returns how long to pause now. */
static uint64_t run_tick(struct sampler *self, uint64_t now, uint64_t weight_ns, uint64_t elapsed_ns) {
    reading_enter();
    if (!reading_check()) return reading_leave(), self->tick->options.period_ns;
    struct tick_limits limits = {budget_slots(&self->budget), budget_idle_threads(&self->budget)};
    uint32_t max_slots = self->tick->options.max_slots;
    if (max_slots && limits.slots > max_slots) limits.slots = max_slots;
    pthread_mutex_lock(&self->tick_lock);
    for (unsigned i = 0; i < MAX_IGNORED_THREADS; i++)
        self->tick->ignored_threads[i] = __atomic_load_n(&ignored_threads[i], __ATOMIC_RELAXED);
    tick_run(self->tick, &limits, now, clock_realtime_ns(), weight_ns);
    struct tick_work work = self->tick->work;
    publish_sums(self);
    pthread_mutex_unlock(&self->tick_lock);
    reading_leave();
    uint64_t cpu = clock_thread_cpu_ns();
    struct tick_cost cost = {
        .cpu_ns = cpu - self->cpu_ns,
        .tasks_ns = work.tasks_ns < cpu - self->cpu_ns ? work.tasks_ns : 0, /* we lost the CPU meanwhile: not known */
        .slots = work.slots,
        .visits = work.visits,
        .all_slots = work.all_slots,
        .idle_threads = work.idle_threads,
        .wall_ns = elapsed_ns,
    };
    self->cpu_ns = cpu;
    uint64_t pause = budget_spend(&self->budget, &cost);
    publish_cost(self);
    return pause;
}

static uint64_t next_random(uint64_t *random) {
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return *random;
}

static void *run(void *argument) {
    struct sampler *self = argument;
    reading_use_this_thread();
    uint64_t period = self->tick->options.period_ns, last = clock_monotonic_ns(), deadline = last + period, random = last | 1;
    while (!clock_alarm_wait(&self->end, deadline + next_random(&random) % (period / JITTER_SHARE + 1))) {
        if (exit_signals_came()) break; /* what runs now is our own wait for the last export */
        uint64_t now = clock_monotonic_ns(), elapsed = now - last;
        if (now > deadline + period) drop_count(DROP_late_tick);
        uint64_t pause = run_tick(self, now, weight(elapsed, deadline - last, period), elapsed);
        last = now;
        /* No burst to catch up: the elapsed time is in the next weight. */
        now = clock_monotonic_ns();
        deadline += period;
        if (deadline < now) deadline = now + period;
        if (deadline < now + pause) deadline = now + pause;
    }
    return NULL;
}

/* Our own small stack whatever RLIMIT_STACK says, and no signal but the two that a read may raise, and the one by which a sandbox
   answers system calls: when it is blocked, the kernel kills. */
static bool make_thread(struct sampler *self) {
    pthread_attr_t attributes;
    sigset_t blocked, before;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, SAMPLER_STACK_BYTES);
    sigfillset(&blocked);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGSYS);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    self->thread_made = pthread_create(&self->thread, &attributes, run, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (self->thread_made) pthread_setname_np(self->thread, "otel_asyncprof");
    return self->thread_made;
}

/* Nothing is left of it. */
static const char *give_up(const char *reason) {
    free_sampler(sampler);
    sampler = NULL;
    reading_end();
    return reason;
}

const char *sampler_start(const struct tick_options *options, const char *asyncio_directory, double cpu_budget,
                          bool no_signal_handlers) {
    if (sampler_is_running()) return "the sampler runs already";
    const char *refusal = reading_begin_self_check();
    if (refusal) return refusal;
    bool learned = span_link_learn_nodes();
    reading_end_self_check();
    if (!learned) return "contexts are not laid out as expected";
    refusal = reading_begin(no_signal_handlers);
    if (refusal) return refusal;
    pthread_mutex_lock(&swapped);
    free_sampler(sampler);
    sampler = calloc(1, sizeof *sampler);
    pthread_mutex_unlock(&swapped);
    if (sampler) {
        struct tick_options all_options = *options;
        all_options.is_forked = is_forked;
        sampler->tick = tick_new(&all_options, asyncio_directory);
        sampler->spare = stack_table_new(STACK_TABLE_BYTES);
        if (sampler->tick) sampler->tick->stacks = stack_table_new(STACK_TABLE_BYTES);
    }
    if (!sampler || !sampler->tick || !sampler->spare || !sampler->tick->stacks) return give_up("memory is short");
    sampler->begin_ns = clock_monotonic_ns();
    sampler->interval_begin_ns = clock_realtime_ns();
    budget_init(&sampler->budget, cpu_budget, (double)options->period_ns);
    if (pthread_mutex_init(&sampler->tick_lock, NULL) != 0 || !make_thread(sampler)) return give_up("its thread could not be made");
    __atomic_store_n(&running, true, __ATOMIC_RELEASE);
    return NULL;
}

static struct timespec soon(void) {
    uint64_t ns = clock_realtime_ns() + READING_PATIENCE_MS * 1000000ull;
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

void sampler_stop(void) {
    if (!sampler_is_running() || __atomic_exchange_n(&stopping, true, __ATOMIC_ACQ_REL)) return;
    clock_alarm_ring(&sampler->end);
    struct timespec patience = soon();
    while (pthread_timedjoin_np(sampler->thread, NULL, &patience) == ETIMEDOUT) { /* ends: its thread does, once it can go on */
        reading_unblock();
        patience = soon();
    }
    reading_end();
    put(&sampler->end_ns, clock_monotonic_ns());
    __atomic_store_n(&running, false, __ATOMIC_RELEASE); /* only now may another start free what the thread used */
    __atomic_store_n(&stopping, false, __ATOMIC_RELEASE);
}

bool sampler_is_running(void) { return __atomic_load_n(&running, __ATOMIC_ACQUIRE); }

struct interval sampler_swap(void) {
    pthread_mutex_lock(&swapped);
    if (!sampler) return (struct interval){0};
    struct timespec patience = soon();
    while (pthread_mutex_timedlock(&sampler->tick_lock, &patience) == ETIMEDOUT) { /* ends: a tick does, once it can go on */
        reading_unblock();
        patience = soon();
    }
    struct stack_table *full = sampler->tick->stacks;
    struct interval interval = {full, sampler->interval_begin_ns, clock_realtime_ns()};
    sampler->interval_begin_ns = interval.end_unix_ns;
    stack_table_reset(sampler->spare);
    tick_use(sampler->tick, sampler->spare);
    sampler->spare = full;
    pthread_mutex_unlock(&sampler->tick_lock);
    return interval;
}

void sampler_release(void) { pthread_mutex_unlock(&swapped); }

struct tick_options sampler_options(void) { return sampler ? sampler->tick->options : (struct tick_options){0}; }

struct sampler_stats sampler_stats(void) {
    struct sampler_stats stats = {.faults = safe_copy_faults()};
    if (!sampler) return stats;
    const struct sampler_stats *sums = &sampler->sums;
    uint64_t end_ns = take(&sampler->end_ns);
    stats.ticks = take(&sums->ticks);
    stats.samples = take(&sums->samples);
    stats.tasks_seen = take(&sums->tasks_seen);
    stats.tasks_visited = take(&sums->tasks_visited);
    stats.threads_seen = take(&sums->threads_seen);
    stats.export_cpu_ns = take(&sums->export_cpu_ns);
    stats.sampler_cpu_ns = take(&sums->sampler_cpu_ns);
    stats.elapsed_ns = (end_ns ? end_ns : clock_monotonic_ns()) - sampler->begin_ns;
    stats.visit_ns = take(&sums->visit_ns);
    stats.tick_ns = take(&sums->tick_ns);
    __atomic_load(&sums->window, &stats.window, __ATOMIC_RELAXED);
    return stats;
}

bool sampler_ignore_thread(uint32_t native_id) {
    for (unsigned i = 0; i < MAX_IGNORED_THREADS; i++)
        if (ignored_threads[i] == native_id) return true;
    for (unsigned i = 0; i < MAX_IGNORED_THREADS; i++) {
        if (ignored_threads[i] && os_thread_state(ignored_threads[i]) != OS_THREAD_GONE) continue;
        __atomic_store_n(&ignored_threads[i], native_id, __ATOMIC_RELAXED);
        return true;
    }
    return false;
}

void sampler_after_fork_in_child(void) {
    reading_after_fork_in_child();
    sampler = NULL;
    running = stopping = false;
    is_forked = true;
    pthread_mutex_init(&swapped, NULL);
    for (unsigned i = 0; i < MAX_IGNORED_THREADS; i++) ignored_threads[i] = 0;
}
