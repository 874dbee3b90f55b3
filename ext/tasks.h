/* Tasks as memory has them, and the table of those that one tick has met. */
#ifndef OTEL_ASYNCPROF_TASKS_H
#define OTEL_ASYNCPROF_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_TASKS (1u << 20)
#define MAX_TASK_NAME 512
#define NO_TASK UINT32_MAX

/* The words of a task object that everything else is read from. */
struct task {
    uint64_t address;
    uint64_t loop, callback0, callbacks;
    uint64_t waiter; /* the future it is suspended on; 0 = it could run */
    uint64_t coroutine, name, context;
    uint64_t awaited_by;     /* 3.14: who awaits it, one future or a set of them; 0 = nobody */
    bool awaited_by_is_set;
    uint32_t state;  /* of the future that the task is; layout.future_pending while it lives */
};

struct task_table {
    struct task *tasks;
    uint32_t count, capacity;
    uint32_t *by_address; /* hash index: position + 1; 0 = empty */
    uint32_t slots;
    uint64_t known_types[64]; /* type addresses that are Task or derive from it; a direct-mapped cache */
};

void task_table_init(struct task_table *table);
void task_table_destroy(struct task_table *table);

/* A new tick: no task has been met. */
void task_table_clear(struct task_table *table);

/* Forgets which types are tasks: types may be freed and their addresses used again. */
void tasks_forget_types(struct task_table *table);

/* The position of the task at an address, read at its first meeting. NO_TASK when there is no pending task, or no room. */
uint32_t tasks_meet(struct task_table *table, uint64_t address);

/* Whether a task may be at an address that was remembered: where there is none any more, tasks_meet would count a drop. */
bool tasks_is_task(struct task_table *table, uint64_t address);

/* Looks through all: for the few that are met before the window is. */
uint32_t tasks_find_by_coroutine(const struct task_table *table, uint64_t coroutine);

bool task_read(uint64_t address, struct task *task);

/* Whether two readings of an address are of one task. The next task often gets the memory of what this one had too: but seldom of all of
   it. */
static inline bool task_is_same(const struct task *one, const struct task *other) {
    return one->coroutine == other->coroutine && one->name == other->name && one->context == other->context;
}

/* Whether there is still a task that has not ended. */
bool task_is_pending(const struct task *task);

/* Whether the task that was read is still there: when it ends, another one is soon at its address. */
bool task_lives(const struct task *task);

/* 3.14: who awaits a future or a task, as asyncio has noted it. */
bool future_read_awaited_by(uint64_t future, uint64_t *awaited_by, bool *is_set);

/* Asks for the memory of a task, without waiting for it. */
void task_prefetch(uint64_t address);

/* The task's name: a str, or from 3.12 on the number of a "Task-N" that nobody has asked for yet. */
bool task_read_name(const struct task *task, char *text, size_t *size);

#endif
