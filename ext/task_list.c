#include "task_list.h"

#include <stdlib.h>

#include "cpython/layout.h"
#include "drop.h"
#include "safe_copy.h"
#include "tasks.h"

#define FIRST_CAPACITY 256
#define AHEAD 12       /* nodes whose memory is asked for before the walk comes to them */
#define MAX_SEARCH 64  /* entries of the reading before in which a node is looked for */
#define MAX_STEPS_BACK 64
#define MAX_RETRIES 64 /* in one list */

void task_list_init(struct task_list *list) { *list = (struct task_list){0}; }

void task_list_destroy(struct task_list *list) {
    free(list->tasks);
    free(list->before);
    task_list_init(list);
}

bool task_list_exists(void) { return layout.thread_tasks != LAYOUT_ABSENT; }

static bool grow(struct task_list *list) {
    uint32_t capacity = list->capacity ? 2 * list->capacity : FIRST_CAPACITY;
    uint64_t *tasks = list->capacity < MAX_TASKS ? realloc(list->tasks, capacity * sizeof *tasks) : NULL;
    if (tasks) list->tasks = tasks;
    uint64_t *before = tasks ? realloc(list->before, capacity * sizeof *before) : NULL;
    if (before) list->before = before;
    if (!before) return false;
    list->capacity = capacity;
    return true;
}

/* Asks for the memory of what is likely to come. at: where in the reading before the walk is; tasks that have ended since are passed. */
static void prefetch(const struct task_list *list, uint64_t task, uint32_t *at) {
    for (uint32_t i = *at; i < list->before_count && i < *at + MAX_SEARCH; i++) {
        if (list->before[i] != task) continue;
        *at = i + 1;
        if (i + AHEAD < list->before_count) safe_copy_prefetch(list->before[i + AHEAD] + layout.task_node);
        return;
    }
}

/* Whether next follows node in the list now. */
static bool step(uint64_t node, uint64_t *next) {
    uint64_t back;
    return safe_copy_word(next, node + layout.node_next) && *next && safe_copy_word(&back, *next + layout.node_previous) && back == node;
}

/* The last node copied that still stands in the list; the head when there is none near. Forgets those behind it. */
static uint64_t step_back(struct task_list *list, uint32_t first, uint64_t head) {
    uint64_t next;
    for (unsigned steps = 0; list->count > first && steps < MAX_STEPS_BACK; steps++) {
        uint64_t node = list->tasks[list->count - 1] + layout.task_node;
        if (step(node, &next)) return node;
        list->count--;
    }
    list->count = first;
    return head;
}

static bool read_one(struct task_list *list, uint64_t head, uint32_t *at) {
    uint32_t first = list->count, retries = 0;
    for (uint64_t node = head, next;;) {
        if (!step(node, &next)) {
            if (retries++ == MAX_RETRIES) return drop_count(DROP_unreadable_object), false;
            node = step_back(list, first, head);
            continue;
        }
        if (next == head) return true;
        if (list->count == list->capacity && !grow(list)) return drop_count(DROP_too_many_tasks), false;
        node = next;
        list->tasks[list->count++] = node - layout.task_node; /* ends: at the bound of their number */
        prefetch(list, node - layout.task_node, at);
    }
}

bool task_list_read(struct task_list *list, const struct thread_state *threads, size_t n_threads) {
    uint64_t *tasks = list->before;
    uint32_t at = 0;
    list->before = list->tasks;
    list->before_count = list->count;
    list->tasks = tasks;
    list->count = 0;
    bool whole = true;
    for (size_t i = 0; i < n_threads; i++) whole &= read_one(list, threads[i].address + layout.thread_tasks, &at);
    return read_one(list, anchors.interpreter + layout.interp_tasks, &at) && whole;
}
