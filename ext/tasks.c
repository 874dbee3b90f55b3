#include "tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "read_object.h"
#include "safe_copy.h"

#define TASK_BYTES 192
#define FIRST_CAPACITY 256
#define KNOWN_TYPES (sizeof ((struct task_table *)0)->known_types / sizeof(uint64_t))

void task_table_init(struct task_table *table) { memset(table, 0, sizeof *table); }

void task_table_destroy(struct task_table *table) {
    free(table->tasks);
    free(table->by_address);
    task_table_init(table);
}

void tasks_forget_types(struct task_table *table) { memset(table->known_types, 0, sizeof table->known_types); }

static uint32_t first_slot(const struct task_table *table, uint64_t address) {
    return (uint32_t)(address * 0x9e3779b97f4a7c15ull >> 32) & (table->slots - 1);
}

static void index_task(const struct task_table *table, uint32_t position) {
    uint32_t slot = first_slot(table, table->tasks[position].address);
    while (table->by_address[slot]) slot = (slot + 1) & (table->slots - 1); /* ends: at most half of the slots are used */
    table->by_address[slot] = position + 1;
}

void task_table_clear(struct task_table *table) {
    if (table->count) memset(table->by_address, 0, table->slots * sizeof *table->by_address);
    table->count = 0;
}

/* Twice the room, and an index twice as large as that. */
static bool grow(struct task_table *table) {
    uint32_t capacity = table->capacity ? 2 * table->capacity : FIRST_CAPACITY;
    struct task *tasks = realloc(table->tasks, capacity * sizeof *tasks);
    if (tasks) table->tasks = tasks;
    uint32_t *by_address = realloc(table->by_address, 2 * capacity * sizeof *by_address);
    if (by_address) table->by_address = by_address;
    if (!tasks || !by_address) return false;
    table->capacity = capacity;
    table->slots = 2 * capacity;
    memset(by_address, 0, table->slots * sizeof *by_address);
    for (uint32_t i = 0; i < table->count; i++) index_task(table, i);
    return true;
}

static void decode(const uint8_t *bytes, uint64_t address, struct task *task) {
    task->address = address;
    memcpy(&task->loop, bytes + layout.future_loop, 8);
    memcpy(&task->callback0, bytes + layout.future_callback0, 8);
    memcpy(&task->callbacks, bytes + layout.future_callbacks, 8);
    memcpy(&task->state, bytes + layout.future_state, 4);
    memcpy(&task->waiter, bytes + layout.task_waiter, 8);
    memcpy(&task->coroutine, bytes + layout.task_coroutine, 8);
    memcpy(&task->name, bytes + layout.task_name, 8);
    memcpy(&task->context, bytes + layout.task_context, 8);
}

bool task_read(uint64_t address, struct task *task) {
    uint8_t bytes[TASK_BYTES];
    if (!safe_copy(bytes, address, layout.task_size)) return drop_count(DROP_unreadable_memory), false;
    decode(bytes, address, task);
    return true;
}

void task_prefetch(uint64_t address) {
    safe_copy_touch(address);
    safe_copy_prefetch(address + CACHE_LINE);
    safe_copy_prefetch(address + layout.task_size - 1);
}

static bool is_task_type(struct task_table *table, uint64_t type) {
    uint64_t *known = &table->known_types[type >> 4 & (KNOWN_TYPES - 1)];
    if (*known == type) return true;
    if (!read_is_subtype(type, anchors.type_task)) return false;
    *known = type;
    return true;
}

bool tasks_is_task(struct task_table *table, uint64_t address) {
    uint64_t type;
    return safe_copy_word(&type, address + OBJECT_TYPE) && is_task_type(table, type);
}

uint32_t tasks_meet(struct task_table *table, uint64_t address) {
    uint8_t bytes[TASK_BYTES];
    uint64_t type;
    uint32_t position = tasks_find(table, address);
    if (position != NO_TASK) return position;
    if (!safe_copy(bytes, address, layout.task_size)) return drop_count(DROP_unreadable_memory), NO_TASK;
    memcpy(&type, bytes + OBJECT_TYPE, 8);
    /* A task written in Python has its fields in a dict, and asyncio alone knows them. */
    if (!is_task_type(table, type)) return drop_count(DROP_foreign_task), NO_TASK;
    if (table->count == MAX_TASKS || (table->count == table->capacity && !grow(table))) return drop_count(DROP_too_many_tasks), NO_TASK;
    struct task *task = &table->tasks[table->count];
    decode(bytes, address, task);
    if (task->state != layout.future_pending || !task->coroutine) return NO_TASK; /* it has ended */
    index_task(table, table->count);
    return table->count++;
}

uint32_t tasks_find(const struct task_table *table, uint64_t address) {
    if (!table->count) return NO_TASK;
    uint32_t slot = first_slot(table, address);
    for (; table->by_address[slot]; slot = (slot + 1) & (table->slots - 1))
        if (table->tasks[table->by_address[slot] - 1].address == address) return table->by_address[slot] - 1;
    return NO_TASK;
}

uint32_t tasks_find_by_coroutine(const struct task_table *table, uint64_t coroutine) {
    for (uint32_t i = 0; i < table->count; i++)
        if (table->tasks[i].coroutine == coroutine) return i;
    return NO_TASK;
}

bool task_read_name(const struct task *task, char *text, size_t *size) {
    uint64_t type;
    int64_t number;
    if (!task->name || !read_type(task->name, &type)) return false;
    if (type != anchors.type_int) return read_string(task->name, text, size);
    if (!read_int(task->name, &number)) return false;
    *size = (size_t)snprintf(text, MAX_TASK_NAME, "Task-%lld", (long long)number);
    return true;
}
