/* Every live task of every event loop, as memory has it. */
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
    uint32_t state;  /* of the future that the task is; layout.future_pending while it lives */
};

struct task_table {
    struct task *tasks;
    uint32_t count, capacity;
    uint32_t *by_address, *by_coroutine; /* hash indexes: position + 1; 0 = empty */
    uint32_t slots;
    uint64_t known_types[64]; /* type addresses that are Task or derive from it; a direct-mapped cache */
    uint64_t visible, foreign; /* in the last enumeration */
};

void task_table_init(struct task_table *table);
void task_table_destroy(struct task_table *table);

/* Reads the task sets of asyncio and each pending task once. False when memory for the table is short. */
bool tasks_enumerate(struct task_table *table);

/* Forgets which types are tasks: types may be freed and their addresses used again. */
void tasks_forget_types(struct task_table *table);

bool task_read(uint64_t address, struct task *task);
uint32_t tasks_find(const struct task_table *table, uint64_t address);
uint32_t tasks_find_by_coroutine(const struct task_table *table, uint64_t coroutine);

/* The task's name: a str, or from 3.12 on the number of a "Task-N" that nobody has asked for yet. */
bool task_read_name(const struct task *task, char *text, size_t *size);

#endif
