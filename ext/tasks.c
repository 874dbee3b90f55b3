#include "tasks.h"

#include <stdlib.h>
#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "read_object.h"
#include "safe_copy.h"

#define FIRST_CAPACITY 256
#define MAX_DIGITS 20 /* of 64 bits */
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

/* The slot of the task at this address, or the empty one where it would stand. */
static uint32_t find_slot(const struct task_table *table, uint64_t address) {
    uint32_t slot = first_slot(table, address), occupant;
    while ((occupant = table->by_address[slot]) && table->tasks[occupant - 1].address != address)
        slot = (slot + 1) & (table->slots - 1); /* ends: at most half of the slots are used */
    return slot;
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
    for (uint32_t i = 0; i < table->count; i++) by_address[find_slot(table, table->tasks[i].address)] = i + 1;
    return true;
}

bool future_read_awaited_by(uint64_t future, uint64_t *awaited_by, bool *is_set) {
    uint32_t half, place = layout.future_awaited_by_is_set % sizeof half;
    *awaited_by = 0;
    *is_set = false;
    if (layout.future_awaited_by == LAYOUT_ABSENT) return true;
    if (!safe_copy_word(awaited_by, future + layout.future_awaited_by)) return false;
    if (!*awaited_by) return true;
    if (!safe_copy_half(&half, future + layout.future_awaited_by_is_set - place)) return false;
    *is_set = half >> 8 * place & 0xff;
    return true;
}

/* All words, each by one load. */
static bool read_words(uint64_t address, struct task *task) {
    task->address = address;
    return safe_copy_word(&task->loop, address + layout.future_loop) &&
           safe_copy_word(&task->callback0, address + layout.future_callback0) &&
           safe_copy_word(&task->callbacks, address + layout.future_callbacks) &&
           safe_copy_half(&task->state, address + layout.future_state) &&
           safe_copy_word(&task->waiter, address + layout.task_waiter) &&
           safe_copy_word(&task->coroutine, address + layout.task_coroutine) &&
           safe_copy_word(&task->name, address + layout.task_name) &&
           safe_copy_word(&task->context, address + layout.task_context) &&
           future_read_awaited_by(address, &task->awaited_by, &task->awaited_by_is_set);
}

bool task_read(uint64_t address, struct task *task) {
    return read_words(address, task) ? true : (drop_count(DROP_unreadable_memory), false);
}

bool task_is_pending(const struct task *task) {
    uint32_t state;
    return safe_copy_half(&state, task->address + layout.future_state) && state == layout.future_pending;
}

bool task_lives(const struct task *task) {
    struct task now;
    return task_is_pending(task) && safe_copy_word(&now.coroutine, task->address + layout.task_coroutine) &&
           safe_copy_word(&now.name, task->address + layout.task_name) &&
           safe_copy_word(&now.context, task->address + layout.task_context) && task_is_same(&now, task);
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
    uint64_t type;
    uint32_t *slot = table->slots ? &table->by_address[find_slot(table, address)] : NULL;
    if (slot && *slot) return *slot - 1;
    if (table->count == table->capacity) {
        if (table->count == MAX_TASKS || !grow(table)) return drop_count(DROP_too_many_tasks), NO_TASK;
        slot = &table->by_address[find_slot(table, address)];
    }
    if (!safe_copy_word(&type, address + OBJECT_TYPE)) return drop_count(DROP_unreadable_memory), NO_TASK;
    /* A task written in Python has its fields in a dict, and asyncio alone knows them. */
    if (!is_task_type(table, type)) return drop_count(DROP_foreign_task), NO_TASK;
    struct task *task = &table->tasks[table->count];
    if (!task_read(address, task)) return NO_TASK;
    if (task->state != layout.future_pending || !task->coroutine) return NO_TASK; /* it has ended */
    *slot = ++table->count;
    return *slot - 1;
}

uint32_t tasks_find_by_coroutine(const struct task_table *table, uint64_t coroutine) {
    for (uint32_t i = 0; i < table->count; i++)
        if (table->tasks[i].coroutine == coroutine) return i;
    return NO_TASK;
}

/* As asyncio writes it. By hand: printf costs as much as the rest of a look at a task. */
static size_t write_default_name(uint64_t number, char *text) {
    static const char prefix[] = {'T', 'a', 's', 'k', '-'};
    char digits[MAX_DIGITS];
    size_t size = sizeof prefix, count = 0;
    memcpy(text, prefix, sizeof prefix);
    do digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) && count < MAX_DIGITS);
    while (count) text[size++] = digits[--count];
    return size;
}

bool task_read_name(const struct task *task, char *text, size_t *size) {
    uint64_t type;
    int64_t number;
    if (!task->name || !read_type(task->name, &type)) return false;
    if (type != anchors.type_int) return read_string(task->name, text, size);
    if (!read_int(task->name, &number) || number < 0) return false;
    *size = write_default_name((uint64_t)number, text);
    return true;
}
