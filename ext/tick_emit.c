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

static bool keep(struct replay *replay, const struct sample_key *key, double share) {
    if (replay->count == replay->capacity) {
        uint32_t capacity = replay->capacity ? 2 * replay->capacity : 256;
        struct replay_sample *samples = capacity <= MAX_REPLAY ? realloc(replay->samples, capacity * sizeof *samples) : NULL;
        if (!samples) return false;
        replay->samples = samples;
        replay->capacity = capacity;
    }
    replay->samples[replay->count++] = (struct replay_sample){*key, share};
    return true;
}

static void add_again(struct tick *tick, const struct replay *replay, uint64_t elapsed_ns) {
    for (uint32_t i = 0; i < replay->count; i++) {
        struct observation seen = observe(tick, (uint64_t)((double)elapsed_ns * replay->samples[i].share), 0);
        stack_table_add(tick->stacks, &replay->samples[i].key, &seen);
    }
}

struct sample_key tick_emit(struct tick *tick, const struct emission *emission) {
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
    if (tick->replay_whole) tick->replay_whole = keep(&tick->replay, &key, emission->share);
    if (emission->of_window && tick->last_part_ns) {
        double share = emission->share * (double)tick->elapsed_ns / (double)tick->last_part_ns;
        if (!keep(&tick->last_part, &key, share)) tick->last_part_ns = 0;
    }
    tick->samples++;
    return key;
}

/* The time that a thread has been at rest without a look, which ends at end_unix_ns. */
void tick_end_owed(struct tick *tick, struct thread_record *record, uint64_t end_unix_ns) {
    if (!record->owed_ns) return;
    struct observation seen = observe(tick, record->owed_ns, 0);
    seen.time_unix_ns = end_unix_ns;
    stack_table_add(tick->stacks, &record->sample, &seen);
    record->owed_ns = 0;
}

void tick_end_rest(struct tick *tick) {
    if (!tick->rest_ns) return;
    add_again(tick, &tick->replay, tick->rest_ns);
    tick->rest_ns = 0;
}

/* What is left of the time goes into the next tables only where no look in these can stand for it: at the end of a profile there are
   no next ones, and with very many tasks the time from look to look is long. */
void tick_end_window(struct tick *tick) {
    if (!tick->last_part_ns) return;
    add_again(tick, &tick->last_part, tick->since_tasks_ns);
    tick->since_tasks_ns = tick->last_part_ns = 0;
}
