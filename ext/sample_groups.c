#include "sample_groups.h"

#include <stdlib.h>

static struct sample_key asked_for(struct sample_key key, uint32_t attributes) {
    if (!(attributes & ATTRIBUTE_THREAD_NAME)) key.thread_name = 0;
    if (!(attributes & ATTRIBUTE_STATE) || key.state > STATE_READY) key.state = 0;
    if (!(attributes & ATTRIBUTE_THREAD_ID)) key.thread_id = 0;
    if (!(attributes & ATTRIBUTE_TASK_NAME)) key.task_name = 0;
    if (!(attributes & ATTRIBUTE_LOCAL_ROOT_NAME)) key.local_root_name = 0;
    return key;
}

static uint64_t last_time(const struct otlp_options *options) {
    return options->time_unix_nano + (options->duration_nano ? options->duration_nano - 1 : 0);
}

static uint64_t clamp(uint64_t time, const struct otlp_options *options) {
    if (time < options->time_unix_nano) return options->time_unix_nano;
    return time > last_time(options) ? last_time(options) : time;
}

static int compare_times(const void *a, const void *b) {
    const struct sample_time *left = a, *right = b;
    return (left->time_unix_ns > right->time_unix_ns) - (left->time_unix_ns < right->time_unix_ns);
}

/* Events come in the order of the ticks, so almost every list is sorted already. */
static void sort_times(struct sample_time *times, size_t count) {
    for (size_t i = 1; i < count; i++) {
        if (times[i].time_unix_ns >= times[i - 1].time_unix_ns) continue;
        qsort(times, count, sizeof *times, compare_times);
        return;
    }
}

/* Wall time whose event was lost or not asked for: added to the last value, or on its own at the end of the interval. */
static void complete_wall(struct sample_group *group, const struct otlp_options *options) {
    if (!group->wall_ns) return;
    uint64_t sum = 0;
    for (size_t i = 0; i < group->n_wall; i++) sum += group->wall[i].wall_ns;
    if (!group->n_wall) group->wall[group->n_wall++] = (struct sample_time){.time_unix_ns = last_time(options)};
    group->wall[group->n_wall - 1].wall_ns += group->wall_ns - sum;
}

static bool place_times(struct sample_groups *groups, const uint32_t *group_of, const struct stack_table_view *view,
                        const struct otlp_options *options) {
    struct sample_group *all = groups->groups.entries, *end = all + groups->groups.size;
    for (uint32_t i = 0; i < view->n_events; i++) {
        if (view->events[i].is_cpu) all[group_of[view->events[i].sample]].n_cpu++;
        else all[group_of[view->events[i].sample]].n_wall++;
    }
    groups->times = calloc((size_t)view->n_events + groups->groups.size, sizeof *groups->times);
    if (!groups->times) return false;
    struct sample_time *next = groups->times;
    for (struct sample_group *group = all; group < end; group++) {
        group->cpu = next;
        group->wall = group->cpu + group->n_cpu;
        next = group->wall + group->n_wall + 1; /* one more for complete_wall() */
        group->n_cpu = group->n_wall = 0;
    }
    for (uint32_t i = 0; i < view->n_events; i++) {
        const struct sample_event *event = &view->events[i];
        struct sample_group *group = &all[group_of[event->sample]];
        struct sample_time time = {clamp(event->time_unix_ns, options), event->wall_ns};
        if (event->is_cpu) group->cpu[group->n_cpu++] = time;
        else if (options->timeline) group->wall[group->n_wall++] = time;
    }
    for (struct sample_group *group = all; group < end; group++) {
        sort_times(group->cpu, group->n_cpu);
        sort_times(group->wall, group->n_wall);
        if (options->timeline) complete_wall(group, options);
    }
    return true;
}

bool sample_groups_make(struct sample_groups *groups, const struct stack_table_view *view, const struct otlp_options *options) {
    *groups = (struct sample_groups){.account = {.limit = SIZE_MAX}};
    uint32_t max_size = INTERN_FIRST_CAPACITY;
    while (max_size < view->n_samples) max_size *= 2; /* n_samples is bounded far below 2^31 */
    intern_table_init(&groups->groups, &groups->account, sizeof(struct sample_group), max_size);
    uint32_t *group_of = malloc(((size_t)view->n_samples + 1) * sizeof *group_of);
    bool good = group_of && intern_table_reserve(&groups->groups, 1);
    for (uint32_t i = 0; good && i < view->n_samples; i++) {
        struct sample_key key = asked_for(view->samples[i].key, options->attributes);
        group_of[i] = intern_table_add(&groups->groups, &key, sizeof key);
        good = group_of[i] != INTERN_NONE;
        if (good) ((struct sample_group *)groups->groups.entries)[group_of[i]].wall_ns += view->samples[i].wall_ns;
    }
    good = good && place_times(groups, group_of, view, options);
    free(group_of);
    return good;
}

void sample_groups_free(struct sample_groups *groups) {
    free(groups->times);
    intern_table_destroy(&groups->groups);
}
