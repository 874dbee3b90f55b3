/* Linked into a test build of the extension (SAFE_COPY_FAULT_INJECTION), beside all of its own sources: chosen reads of the sampler's
   go to a page that nobody can read, so that they fault where they stand. Faults are given to one look made by a call of
   faults_look(), or, with OTEL_ASYNCPROF_TEST_FAIL_EVERY=k in the environment, to every k-th read of the sampler thread. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "drop.h"
#include "os/os.h"
#include "otlp_encode.h"
#include "reading.h"
#include "safe_copy.h"
#include "span_link.h"
#include "tick.h"

#define EXPORT __attribute__((visibility("default")))
#define TABLE_BYTES (256u << 20)
#define UNREADABLE_BYTES (2u << 20) /* more than any one copy */
#define ELAPSED_NS 1000000ull
#define MAX_SLOTS (1u << 20)
#define MAX_LOOK_SAMPLES 65536

/* ---- which reads fail ---- */

static uint64_t unreadable, reads, fail_at, fail_every;
static _Thread_local enum { UNKNOWN, OTHER, SAMPLER } role;

/* The sampler thread blocks every signal but those of a fault from its first instruction on. */
static bool is_sampler(void) {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    return sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGCHLD) && !sigismember(&blocked, SIGSEGV);
}

uint64_t safe_copy_redirect(uint64_t address) {
    if (role == UNKNOWN) role = fail_every && is_sampler() ? SAMPLER : OTHER;
    if (role != SAMPLER) return address;
    reads++;
    return reads == fail_at || (fail_every && reads % fail_every == 0) ? unreadable : address;
}

__attribute__((constructor)) static void set_up(void) {
    const char *every = getenv("OTEL_ASYNCPROF_TEST_FAIL_EVERY");
    void *pages = mmap(NULL, UNREADABLE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) abort();
    unreadable = (uint64_t)(uintptr_t)pages;
    fail_every = every ? strtoull(every, NULL, 10) : 0;
}

/* ---- looks made one by one ---- */

static struct tick *tick;
static uint64_t weights[MAX_LOOK_SAMPLES], sums[MAX_LOOK_SAMPLES], now_ns;

/* The calling thread looks from now on, and is not looked at itself. */
EXPORT bool faults_begin(const char *asyncio_directory, bool guarded) {
    struct tick_options options = {
        .period_ns = 10 * ELAPSED_NS,
        .max_frames = 128,
        .attributes = ATTRIBUTE_THREAD_NAME | ATTRIBUTE_STATE | ATTRIBUTE_TASK_NAME | ATTRIBUTE_LOCAL_ROOT_NAME,
        .features = FEATURE_TASKS | FEATURE_AWAITERS | FEATURE_SPANS,
    };
    if (!span_link_learn_nodes() || reading_begin(!guarded)) return false;
    if (safe_copy_method() != (guarded ? SAFE_COPY_GUARDED : SAFE_COPY_SYSCALL)) return false;
    struct stack_table *stacks = stack_table_new(TABLE_BYTES);
    tick = tick_new(&options, asyncio_directory);
    if (!tick || !stacks) return false;
    tick_use(tick, stacks);
    tick->ignored_threads[0] = os_thread_id();
    now_ns = clock_monotonic_ns();
    memset(sums, 0, sizeof sums);
    return true;
}

EXPORT void faults_end(void) {
    stack_table_destroy(tick->stacks);
    tick_destroy(tick);
    tick = NULL;
    reading_end();
}

static void look(uint64_t fail) {
    struct tick_limits limits = {MAX_SLOTS, MAX_THREADS};
    fail_at = fail, reads = 0;
    role = SAMPLER;
    reading_use_this_thread();
    reading_enter();
    tick_run(tick, &limits, now_ns, now_ns, ELAPSED_NS);
    reading_leave();
    role = OTHER;
}

static void weigh(void) {
    struct stack_table_view view = stack_table_view(tick->stacks);
    for (uint32_t i = 0; i < view.n_samples && i < MAX_LOOK_SAMPLES; i++) {
        weights[i] = view.samples[i].wall_ns - sums[i];
        sums[i] = view.samples[i].wall_ns;
    }
}

/* One look whose read number fail does, or none with 0. cold: nothing that earlier looks have learned of code is known; the ids in
   the tables stay. pause_ns: how long ago the last look is said to have been; names of threads are read again at times. */
EXPORT void faults_look(uint64_t fail, bool cold, uint64_t pause_ns) {
    if (cold) tick_use(tick, tick->stacks);
    now_ns += pause_ns;
    look(fail);
    weigh();
}

static uint64_t second_reads;

/* Three looks by a thread that Python does not know, while nothing else in the process runs: the first two find that out, and in the
   second a read fails. What the third has given. */
static void *look_three_times(void *fail) {
    look(0);
    look(*(uint64_t *)fail);
    second_reads = reads;
    weigh();
    look(0);
    tick_end_rest(tick);
    weigh();
    return NULL;
}

/* How many reads the second look has taken. They are few when it is taken for one at rest, because the hypervisor has stolen the CPU
   time of the thread that makes the lookers. */
EXPORT uint64_t faults_look_after_rest(uint64_t fail) {
    pthread_t looker;
    if (pthread_create(&looker, NULL, look_three_times, &fail) != 0) abort();
    pthread_join(looker, NULL);
    return second_reads;
}

/* Of the last look. */
EXPORT uint64_t faults_reads(void) { return reads; }
EXPORT const uint64_t *faults_weights(void) { return weights; }
EXPORT uint32_t faults_samples(void) { return stack_table_view(tick->stacks).n_samples; }

/* CPU time that waits to be given to a stack that is seen running. */
EXPORT uint64_t faults_pending_cpu_ns(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < tick->records.count; i++)
        if (tick->records.records[i].native_id != tick->ignored_threads[0]) sum += tick->records.records[i].pending_cpu_ns;
    return sum;
}

EXPORT uint64_t faults_drops(void) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < DROP_REASONS; i++) sum += drop_counts[i];
    return sum;
}

static const char *string(uint32_t id) {
    static char texts[4][1024]; /* for as many strings in one line of output */
    static unsigned next;
    size_t size;
    const char *bytes = stack_table_string_at(tick->stacks, id, &size);
    char *text = texts[next++ % 4];
    snprintf(text, sizeof texts[0], "%.*s", (int)size, bytes);
    return text;
}

/* Weight in the last look, thread, task, state, local root, link and frames (root first: function, file, line, first line), a tab between any two. */
EXPORT void faults_describe(uint32_t sample, char *text, size_t capacity) {
    struct stack_table_view view = stack_table_view(tick->stacks);
    const struct sample_key *key = &view.samples[sample].key;
    const struct link *link = &view.links[key->link];
    uint32_t depth = view.nodes[key->stack].depth, nodes[512];
    size_t used = (size_t)snprintf(text, capacity, "%llu\t%s\t%s\t%u\t%s\t", (unsigned long long)weights[sample],
                                   string(key->thread_name), string(key->task_name), key->state, string(key->local_root_name));
    for (unsigned i = 0; i < sizeof link->span_id; i++) used += (size_t)snprintf(text + used, capacity - used, "%02x", link->span_id[i]);
    for (uint32_t i = depth, node = key->stack; i-- > 0; node = view.nodes[node].parent) nodes[i] = node;
    for (uint32_t i = 0; i < depth && used < capacity; i++) {
        struct location location = view.locations[view.nodes[nodes[i]].location];
        struct function function = view.functions[location.function];
        used += (size_t)snprintf(text + used, capacity - used, "\t%s %s:%u(%u)", string(function.name), string(function.filename),
                                 location.line, function.first_line);
    }
}
