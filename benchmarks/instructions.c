/* Ticks driven by hand, one after the other, under callgrind: which thread looks and how often is decided by the caller, no clock
   decides anything. Linked with all sources of the extension into one library that takes the extension's place in the process. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <valgrind/callgrind.h>

#include "os/os.h"
#include "safe_copy.h"
#include "signals.h"
#include "span_link.h"
#include "stack_table.h"
#include "tick.h"

#define EXPORTED __attribute__((visibility("default")))
#define TABLE_BYTES (256u << 20)
#define STEP_NS 10000000ull               /* between two ticks, on the clock that they are given */
#define PERIOD_NS 1000000000000000000ull  /* no CPU time fills a period: how slow the emulation is makes no difference */
#define PAUSE_NS 2000000
#define QUIET_PAUSES 25                   /* a thread whose CPU clock has stood still for so many has gone to sleep */
#define MAX_PAUSES 10000
#define LOOKS_UNTIL_REST 4                /* at the least: the caller has run until it waited for us */

struct order {
    uint32_t looks, waits_for; /* kernel id of the thread that must have gone to sleep */
    bool done;
};

static struct tick *tick;
static struct tick_limits limits = {.slots = UINT32_MAX, .idle_threads = UINT32_MAX};
static uint64_t now_ns = 1000000000000ull;

EXPORTED bool instructions_open(const char *asyncio_directory, uint32_t features, uint32_t attributes) {
    struct tick_options options = {
        .period_ns = PERIOD_NS, .max_frames = 128, .features = features, .attributes = attributes};
    if (!span_link_learn_nodes() || !signals_install()) return false;
    safe_copy_use(SAFE_COPY_GUARDED);
    tick = tick_new(&options, asyncio_directory);
    struct stack_table *stacks = stack_table_new(TABLE_BYTES);
    if (!tick || !stacks) return false;
    tick_use(tick, stacks);
    return true;
}

static void look(uint32_t looks) {
    for (uint32_t i = 0; i < looks; i++) {
        now_ns += STEP_NS;
        tick_run(tick, &limits, now_ns, now_ns, STEP_NS);
    }
}

static void count_looks(uint32_t looks) {
    CALLGRIND_START_INSTRUMENTATION;
    look(looks);
    CALLGRIND_STOP_INSTRUMENTATION;
}

/* How many slots of the task set a look may look at, instead of all. */
EXPORTED void instructions_limit_slots(uint32_t slots) { limits.slots = slots; }

/* Looks from the calling thread, which is thereby one that runs. */
EXPORTED void instructions_look(uint32_t looks) { look(looks); }
EXPORTED void instructions_count_looks(uint32_t looks) { count_looks(looks); }

static bool wait_for_sleep(uint32_t thread) {
    uint64_t before = 0, now;
    for (unsigned pauses = 0, quiet = 0; pauses < MAX_PAUSES; pauses++) {
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        if (!os_thread_cpu_ns(thread, &now)) return false;
        quiet = now == before ? quiet + 1 : 0;
        if (quiet == QUIET_PAUSES) return true;
        before = now;
    }
    return false;
}

static void *look_from_outside(void *argument) {
    struct order *order = argument;
    order->done = wait_for_sleep(order->waits_for);
    look(LOOKS_UNTIL_REST);
    count_looks(order->looks);
    return NULL;
}

/* Looks from a thread that Python does not know, as the sampler does, while the calling thread sleeps and all is at rest. */
EXPORTED bool instructions_count_looks_at_rest(uint32_t looks) {
    struct order order = {.looks = looks, .waits_for = os_thread_id()};
    pthread_t thread;
    return pthread_create(&thread, NULL, look_from_outside, &order) == 0 && pthread_join(thread, NULL) == 0 && order.done;
}

/* All that was counted since the last call goes into a file of this name. */
EXPORTED void instructions_write(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }

EXPORTED bool instructions_wait_for_sleep(uint32_t thread) { return wait_for_sleep(thread); }

EXPORTED uint64_t instructions_samples(void) { return tick->samples; }
