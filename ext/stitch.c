#include "stitch.h"

#include "drop.h"

#define MAX_KEPT_FRAMES 512

struct way {
    struct stitch_task *tasks;
    struct stack_table *stacks;
    uint32_t path[1 + MAX_AWAITING_TASKS]; /* leaf first */
    size_t length;
    struct stitched *out;
    size_t n_out;
};

static uint32_t push_frames(struct stack_table *stacks, uint32_t stack, const struct stitch_task *task, uint32_t count) {
    return stack_table_push_all(stacks, stack, task->locations, count, task->sequence);
}

/* From the root of the way down to its leaf. base is what stands below the last task of the path. plain: no way but this one leads
   up from the path's tasks, so each one's prefix holds for all its children. */
static void finish(struct way *way, uint32_t base, double share, bool plain) {
    uint32_t stack = base;
    for (size_t i = way->length; i-- > 1;) {
        struct stitch_task *task = &way->tasks[way->path[i]];
        stack = push_frames(way->stacks, stack, task, task->n_as_awaiter);
        if (plain) {
            task->prefix = stack;
            task->has_prefix = true;
        }
    }
    const struct stitch_task *leaf = &way->tasks[way->path[0]];
    way->out[way->n_out++] = (struct stitched){push_frames(way->stacks, stack, leaf, leaf->n_locations), share};
}

/* budget: how many stacks this part of the tree may still give. */
static void climb(struct way *way, uint32_t position, double share, size_t budget, bool plain) {
    struct stitch_task *task = &way->tasks[position];
    if (task->unusable) {
        drop_count(DROP_moved_awaiter);
        return;
    }
    if (way->length && task->has_prefix) return finish(way, task->prefix, share, false);
    task->on_path = true;
    way->path[way->length++] = position;
    uint32_t parents[MAX_PARENTS], count = 0;
    for (uint32_t i = 0; i < task->n_parents; i++)
        if (!way->tasks[task->parents[i]].on_path) parents[count++] = task->parents[i];
    bool cut = count < task->n_parents; /* a cycle: what stands below depends on where the climb began */
    if (count && way->length == 1 + MAX_AWAITING_TASKS) {
        drop_count(DROP_too_deep);
        count = 0;
        cut = true;
    }
    if (count > budget) count = (uint32_t)budget;
    plain = plain && !cut && count <= 1;
    if (!count) finish(way, task->entry, share, plain);
    for (uint32_t i = 0; i < count; i++) climb(way, parents[i], share / count, budget / count, plain);
    way->length--;
    task->on_path = false;
}

size_t stitch(struct stitch_task *tasks, uint32_t leaf, struct stack_table *stacks, struct stitched out[MAX_PATHS]) {
    const struct stitch_task *task = &tasks[leaf], *parent = task->n_parents == 1 ? &tasks[task->parents[0]] : NULL;
    if (!task->unusable && (!task->n_parents || (parent && parent->has_prefix && !parent->unusable && task->parents[0] != leaf))) {
        uint32_t base = parent ? parent->prefix : task->entry; /* most tasks */
        out[0] = (struct stitched){push_frames(stacks, base, task, task->n_locations), 1.0};
        return 1;
    }
    struct way way;
    way.tasks = tasks, way.stacks = stacks, way.out = out;
    way.length = way.n_out = 0; /* the path is written before it is read */
    climb(&way, leaf, 1.0, MAX_PATHS, true);
    return way.n_out;
}

uint32_t stitch_limit(struct stack_table *stacks, uint32_t stack, uint32_t max_frames, uint32_t omitted) {
    uint32_t depth = stack_table_depth(stacks, stack), locations[MAX_KEPT_FRAMES];
    if (max_frames > MAX_KEPT_FRAMES) max_frames = MAX_KEPT_FRAMES;
    if (depth <= max_frames) return stack;
    struct stack_table_view view = stack_table_view(stacks);
    uint32_t near_root = (max_frames - 1) / 2, near_leaf = max_frames - 1 - near_root;
    for (; depth > 0; depth--, stack = view.nodes[stack].parent) {
        if (depth <= near_root) locations[depth - 1] = view.nodes[stack].location;
        if (near_leaf) {
            near_leaf--;
            locations[near_root + 1 + near_leaf] = view.nodes[stack].location;
        }
    }
    locations[near_root] = omitted;
    uint32_t limited = 0;
    for (uint32_t i = 0; i < max_frames; i++) limited = stack_table_push(stacks, limited, locations[i]);
    return limited;
}
