#include "tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "read_object.h"
#include "safe_copy.h"

#define MAX_SET_SLOTS (1u << 22)
#define SET_ENTRIES_PER_READ 256
#define SET_HEAD 48
#define TASK_BYTES 192
#define FIRST_CAPACITY 256
#define DELETED_HASH UINT64_MAX

struct set_entry {
    uint64_t key, hash;
};

void task_table_init(struct task_table *table) { memset(table, 0, sizeof *table); }

void task_table_destroy(struct task_table *table) {
    free(table->tasks);
    free(table->by_address);
    free(table->by_coroutine);
    task_table_init(table);
}

void tasks_forget_types(struct task_table *table) { memset(table->known_types, 0, sizeof table->known_types); }

static uint64_t hash_address(uint64_t address) {
    address *= 0x9e3779b97f4a7c15ull;
    return address >> 32;
}

static void index_task(uint32_t *index, uint32_t slots, uint64_t key, uint32_t position) {
    uint64_t slot = hash_address(key) & (slots - 1);
    while (index[slot]) slot = (slot + 1) & (slots - 1); /* ends: at most half of the slots are used */
    index[slot] = position + 1;
}

/* Twice the room, and indexes twice as large as that. */
static bool grow(struct task_table *table) {
    uint32_t capacity = table->capacity ? 2 * table->capacity : FIRST_CAPACITY;
    struct task *tasks = realloc(table->tasks, capacity * sizeof *tasks);
    if (tasks) table->tasks = tasks;
    uint32_t *by_address = realloc(table->by_address, 2 * capacity * sizeof *by_address);
    if (by_address) table->by_address = by_address;
    uint32_t *by_coroutine = realloc(table->by_coroutine, 2 * capacity * sizeof *by_coroutine);
    if (by_coroutine) table->by_coroutine = by_coroutine;
    if (!tasks || !by_address || !by_coroutine) return false;
    table->capacity = capacity;
    table->slots = 2 * capacity;
    memset(by_address, 0, table->slots * sizeof *by_address);
    memset(by_coroutine, 0, table->slots * sizeof *by_coroutine);
    for (uint32_t i = 0; i < table->count; i++) {
        index_task(by_address, table->slots, tasks[i].address, i);
        index_task(by_coroutine, table->slots, tasks[i].coroutine, i);
    }
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

static bool is_task_type(struct task_table *table, uint64_t type) {
    uint64_t *known = &table->known_types[type >> 4 & (sizeof table->known_types / sizeof table->known_types[0] - 1)];
    if (*known == type) return true;
    if (!read_is_subtype(type, anchors.type_task)) return false;
    *known = type;
    return true;
}

static bool add(struct task_table *table, uint64_t address) {
    uint8_t bytes[TASK_BYTES];
    uint64_t type;
    struct task task;
    if (!safe_copy(bytes, address, layout.task_size)) return drop_count(DROP_unreadable_memory), true;
    memcpy(&type, bytes + OBJECT_TYPE, 8);
    if (!is_task_type(table, type)) {
        table->foreign++; /* a task written in Python: its fields stand in a dict, and asyncio alone knows them */
        return drop_count(DROP_foreign_task), true;
    }
    decode(bytes, address, &task);
    if (task.state != layout.future_pending || !task.coroutine || tasks_find(table, address) != NO_TASK) return true;
    if (table->count == MAX_TASKS) return drop_count(DROP_too_many_tasks), true;
    if (table->count == table->capacity && !grow(table)) return false;
    table->tasks[table->count] = task;
    index_task(table->by_address, table->slots, task.address, table->count);
    index_task(table->by_coroutine, table->slots, task.coroutine, table->count);
    table->count++;
    return true;
}

/* weak: the set holds weak references to the tasks. The set may be resized while it is read: its old table is then freed memory,
   and what is found there is checked like everything else. */
static bool read_set(struct task_table *table, uint64_t set, bool weak) {
    struct set_entry entries[SET_ENTRIES_PER_READ];
    uint8_t head[SET_HEAD];
    uint64_t mask, address;
    if (!set) return true;
    if (!safe_copy(head, set, sizeof head)) return drop_count(DROP_unreadable_memory), true;
    memcpy(&mask, head + layout.set_mask, 8);
    memcpy(&address, head + layout.set_table, 8);
    if (mask >= MAX_SET_SLOTS) return drop_count(DROP_too_many_tasks), true;
    for (uint64_t done = 0; done <= mask;) {
        uint64_t count = mask + 1 - done < SET_ENTRIES_PER_READ ? mask + 1 - done : SET_ENTRIES_PER_READ;
        if (!safe_copy(entries, address + done * sizeof entries[0], count * sizeof entries[0]))
            return drop_count(DROP_unreadable_memory), true;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t task = entries[i].key, reference[3];
            if (!task || entries[i].hash == DELETED_HASH) continue;
            if (weak) {
                if (!safe_copy(reference, task, sizeof reference) || reference[1] != anchors.type_weakref) {
                    drop_count(DROP_unreadable_object);
                    continue;
                }
                task = reference[layout.weakref_object / 8];
                if (task == anchors.none) continue;
            }
            if (!add(table, task)) return false;
        }
        done += count;
    }
    return true;
}

bool tasks_enumerate(struct task_table *table) {
    if (table->count) {
        memset(table->by_address, 0, table->slots * sizeof *table->by_address);
        memset(table->by_coroutine, 0, table->slots * sizeof *table->by_coroutine);
    }
    table->count = 0;
    table->foreign = 0;
    bool ok = read_set(table, anchors.scheduled_tasks, true) && read_set(table, anchors.eager_tasks, false);
    table->visible = table->count;
    return ok;
}

uint32_t tasks_find(const struct task_table *table, uint64_t address) {
    if (!table->count) return NO_TASK;
    uint64_t slot = hash_address(address) & (table->slots - 1);
    for (; table->by_address[slot]; slot = (slot + 1) & (table->slots - 1))
        if (table->tasks[table->by_address[slot] - 1].address == address) return table->by_address[slot] - 1;
    return NO_TASK;
}

uint32_t tasks_find_by_coroutine(const struct task_table *table, uint64_t coroutine) {
    if (!table->count) return NO_TASK;
    uint64_t slot = hash_address(coroutine) & (table->slots - 1);
    for (; table->by_coroutine[slot]; slot = (slot + 1) & (table->slots - 1))
        if (table->tasks[table->by_coroutine[slot] - 1].coroutine == coroutine) return table->by_coroutine[slot] - 1;
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
