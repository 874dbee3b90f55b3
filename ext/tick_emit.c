/* How samples get into the tables: once for each look, and once more for the time of rest after it. */
#include "tick.h"

#include <stdlib.h>

#include "otlp_encode.h"

static struct observation observe(const struct tick *tick, uint64_t wall_ns, uint64_t cpu_periods) {
    return (struct observation){
        .wall_ns = wall_ns,
        .cpu_periods = cpu_periods,
        .period_ns = tick->options.period_ns,
        .time_unix_ns = tick->real_ns,
        .not_before_unix_ns = tick->real_ns - tick->elapsed_ns,
        .with_event = tick->options.timeline,
    };
}

static void keep_for_replay(struct tick *tick, const struct sample_key *key, double share) {
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
    tick->replay[tick->n_replay++] = (struct replay_sample){*key, share};
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
    struct observation seen = observe(tick, (uint64_t)((double)tick->elapsed_ns * emission->share), emission->cpu_periods);
    stack_table_add(tick->stacks, &key, &seen);
    if (tick->replay_whole) keep_for_replay(tick, &key, emission->share);
    tick->samples++;
}

void tick_end_rest(struct tick *tick) {
    if (!tick->rest_ns) return;
    for (uint32_t i = 0; i < tick->n_replay; i++) {
        struct observation seen = observe(tick, (uint64_t)((double)tick->rest_ns * tick->replay[i].share), 0);
        stack_table_add(tick->stacks, &tick->replay[i].key, &seen);
    }
    tick->rest_ns = 0;
}
