/* A tick in two halves: threads are looked at, then whatever the caller does happens, then tasks. Linked with all sources of the
   extension into one library that takes the extension's place in the process. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "drop.h"
#include "safe_copy.h"
#include "signals.h"
#include "span_link.h"
#include "stack_table.h"
#include "tick.h"

#define EXPORTED __attribute__((visibility("default")))
#define TABLE_BYTES (64u << 20)
#define STEP_NS 10000000ull

static struct tick *tick;
static uint64_t now_ns = 1000000000000ull;

EXPORTED bool halves_open(const char *asyncio_directory, uint32_t features, uint32_t attributes) {
    struct tick_options options = {.period_ns = STEP_NS, .max_frames = 128, .features = features, .attributes = attributes};
    if (!span_link_learn_nodes() || !signals_install()) return false;
    safe_copy_use(SAFE_COPY_GUARDED);
    tick = tick_new(&options, asyncio_directory);
    struct stack_table *stacks = stack_table_new(TABLE_BYTES);
    if (!tick || !stacks) return false;
    tick_use(tick, stacks);
    return true;
}

static void forget_nothing(void *context, struct thread_record *record) { (void)context, (void)record; }

EXPORTED void halves_threads(void) {
    tick->limits = (struct tick_limits){.slots = UINT32_MAX, .idle_threads = UINT32_MAX};
    tick->now_ns = tick->real_ns = now_ns += STEP_NS;
    tick->elapsed_ns = STEP_NS;
    tick->work = (struct tick_work){0};
    tick->pool_size = tick->n_loops = tick->replay.count = 0;
    tick->ticks++, tick->memo.tick++;
    tick->loops_known = true;
    thread_records_next_tick(&tick->records, true, forget_nothing, NULL);
    task_table_clear(&tick->tasks);
    tick_find_running_tasks(tick);
    tick_look_at_threads(tick);
}

EXPORTED void halves_tasks(void) {
    tick_look_at_tasks(tick);
    tick_emit_tasks(tick);
}

EXPORTED uint64_t halves_moved(void) { return drop_counts[DROP_moved_task]; }

/* The state in which the task of this name has been seen, and the functions of its stack, root first, with a blank after each. NULL
   when it gave no sample, or several. */
EXPORTED const char *halves_seen(const char *task_name, uint32_t *state) {
    static char text[1 << 16];
    struct stack_table_view view = stack_table_view(tick->stacks);
    size_t size, end = sizeof text, found = 0;
    text[--end] = 0;
    for (uint32_t i = 0; i < view.n_samples; i++) {
        const struct sample_key *key = &view.samples[i].key;
        const char *name = stack_table_string_at(tick->stacks, key->task_name, &size);
        if (size != strlen(task_name) || memcmp(name, task_name, size) != 0) continue;
        if (found++) return NULL;
        *state = key->state;
        for (uint32_t node = key->stack; node; node = view.nodes[node].parent) {
            name = stack_table_string_at(tick->stacks, view.functions[view.locations[view.nodes[node].location].function].name, &size);
            if (size + 1 > end) return NULL;
            text[--end] = ' ';
            memcpy(text + (end -= size), name, size);
        }
    }
    return found ? text + end : NULL;
}
