#include "tick.h"

#include <stdlib.h>
#include <string.h>

#include "drop.h"
#include "os/os.h"
#include "otlp_encode.h"

#define MAX_POOL (1u << 26)

struct tick *tick_new(const struct tick_options *options, const char *asyncio_directory) {
    struct tick *tick = calloc(1, sizeof *tick);
    if (!tick) return NULL;
    tick->options = *options;
    tick->cpu_is_exact = os_thread_cpu_is_exact();
    task_table_init(&tick->tasks);
    tick->codes = code_table_new(asyncio_directory);
    if (tick->codes && thread_records_init(&tick->records)) return tick;
    tick_destroy(tick);
    return NULL;
}

void tick_destroy(struct tick *tick) {
    if (!tick) return;
    code_table_destroy(tick->codes);
    thread_records_destroy(&tick->records);
    task_table_destroy(&tick->tasks);
    free(tick->seen);
    free(tick->stitch);
    free(tick->pool);
    free(tick->replay);
    free(tick);
}

uint32_t *tick_pool_reserve(struct tick *tick, uint32_t count) {
    if (tick->pool_size + count > tick->pool_capacity) {
        uint32_t capacity = 2 * (tick->pool_size + count);
        uint32_t *pool = capacity <= MAX_POOL ? realloc(tick->pool, capacity * sizeof *pool) : NULL;
        if (!pool) return NULL;
        tick->pool = pool;
        tick->pool_capacity = capacity;
    }
    return tick->pool + tick->pool_size;
}

bool tick_find_tasks(struct tick *tick) {
    tick->pool_size = 0;
    tick->n_loops = 0;
    if (!(tick->options.features & FEATURE_TASKS)) return true;
    if (!tasks_enumerate(&tick->tasks)) return false;
    if (tick->tasks.capacity > tick->seen_capacity) {
        free(tick->seen);
        free(tick->stitch);
        tick->seen = malloc(tick->tasks.capacity * sizeof *tick->seen);
        tick->stitch = malloc(tick->tasks.capacity * sizeof *tick->stitch);
        tick->seen_capacity = tick->seen && tick->stitch ? tick->tasks.capacity : 0;
        if (!tick->seen_capacity) return false;
    }
    for (uint32_t i = 0; i < tick->tasks.count; i++) {
        tick->seen[i] = (struct seen_task){.record = NO_RECORD, .loop = NO_LOOP};
        tick->stitch[i] = (struct stitch_task){.unusable = true};
    }
    tick->tasks_seen += tick->tasks.count;
    return true;
}

void tick_use(struct tick *tick, struct stack_table *stacks) {
    tick->stacks = stacks;
    tick->replay_whole = false; /* its keys are of other tables */
    code_table_reset(tick->codes);
    tasks_forget_types(&tick->tasks);
}

void tick_run(struct tick *tick, uint64_t now_ns, uint64_t real_ns, uint64_t elapsed_ns) {
    tick->now_ns = now_ns;
    tick->real_ns = real_ns;
    tick->elapsed_ns = elapsed_ns;
    thread_records_next_tick(&tick->records);
    tick->ticks++;
    bool nothing_ran = tick_nothing_ran(tick);
    if (nothing_ran && tick->settled) return tick_replay(tick);
    tick->settled = nothing_ran;
    tick->omitted = code_table_synthetic(tick->stacks, "<frames omitted>");
    tick->n_replay = 0;
    tick->replay_whole = true;
    if (!tick_find_tasks(tick)) {
        tick->replay_whole = false;
        return;
    }
    tick_look_at_threads(tick);
    tick_look_at_tasks(tick);
    tick_find_awaiters(tick);
    tick_emit_tasks(tick);
}

void tick_replay(struct tick *tick) {
    struct observation seen = {
        .period_ns = tick->options.period_ns,
        .time_unix_ns = tick->real_ns,
        .not_before_unix_ns = tick->real_ns - tick->elapsed_ns,
        .with_event = tick->options.timeline,
    };
    for (uint32_t i = 0; i < tick->n_replay; i++) {
        seen.wall_ns = (uint64_t)((double)tick->elapsed_ns * tick->replay[i].share);
        stack_table_add(tick->stacks, &tick->replay[i].key, &seen);
    }
    tick->samples += tick->n_replay;
    tick->tasks_seen += tick->tasks.count;
    tick->tasks_visited += tick->tasks.count;
    tick->threads_seen += tick->n_threads;
}

static void keep_for_replay(struct tick *tick, const struct sample_key *key, uint64_t wall_ns) {
    if (tick->n_replay == tick->replay_capacity) {
        uint32_t capacity = tick->replay_capacity ? 2 * tick->replay_capacity : 256;
        struct replay_sample *replay = capacity <= MAX_REPLAY ? realloc(tick->replay, capacity * sizeof *replay) : NULL;
        if (!replay) {
            tick->replay_whole = false;
            return;
        }
        tick->replay = replay;
        tick->replay_capacity = capacity;
    }
    tick->replay[tick->n_replay++] = (struct replay_sample){*key, (double)wall_ns / (double)tick->elapsed_ns};
}

struct seen_link tick_read_link(struct tick *tick, uint64_t context) {
    struct span_view view;
    struct link link;
    struct seen_link seen = {0, 0};
    char name[MAX_STRING_BYTES];
    size_t size;
    if (!(tick->options.features & FEATURE_SPANS) || !span_link_read(context, &view)) return seen;
    if (view.flags & SPAN_REMOTE) return seen;
    bool recorded = view.flags & SPAN_SAMPLED && view.flags & SPAN_RECORDING;
    if (!recorded && !tick->options.link_unsampled) return seen;
    if (span_link_ended(view.cell)) return seen;
    memcpy(link.trace_id, view.trace_id, sizeof link.trace_id);
    memcpy(link.span_id, tick->options.link_local_root ? view.local_root : view.span_id, sizeof link.span_id);
    seen.link = stack_table_link(tick->stacks, &link);
    if (tick->options.attributes & ATTRIBUTE_LOCAL_ROOT_NAME && span_link_root_name(&view, name, &size))
        seen.local_root_name = stack_table_string(tick->stacks, name, size);
    return seen;
}

void tick_emit(struct tick *tick, const struct emission *emission) {
    struct sample_key key = {
        .stack = stitch_limit(tick->stacks, emission->stack, tick->options.max_frames, tick->omitted),
        .thread_name = emission->thread_name,
        .task_name = emission->task_name,
        .thread_id = tick->options.attributes & ATTRIBUTE_THREAD_ID ? emission->thread_ident : 0,
        .state = emission->state,
        .link = emission->link.link,
        .local_root_name = emission->link.local_root_name,
    };
    struct observation seen = {
        .wall_ns = emission->wall_ns,
        .cpu_periods = emission->cpu_periods,
        .period_ns = tick->options.period_ns,
        .time_unix_ns = tick->real_ns,
        .not_before_unix_ns = tick->real_ns - tick->elapsed_ns,
        .with_event = tick->options.timeline,
    };
    stack_table_add(tick->stacks, &key, &seen);
    keep_for_replay(tick, &key, emission->wall_ns);
    tick->samples++;
}
