#include "task_set.h"

#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "read_object.h"
#include "safe_copy.h"

#define MAX_SLOTS (1ull << 28) /* no more than a check: it costs nothing that a table is large */
#define DELETED_HASH UINT64_MAX

struct set_entry {
    uint64_t key, hash;
};

static struct task_set open_set(uint64_t set, bool weak) {
    uint64_t mask, used;
    struct task_set opened = {.weak = weak};
    if (!set || set == anchors.none) return opened;
    if (!safe_copy_word(&used, set + layout.set_used) || !safe_copy_word(&mask, set + layout.set_mask) ||
        !safe_copy_word(&opened.table, set + layout.set_table))
        return drop_count(DROP_unreadable_memory), opened;
    if (mask >= MAX_SLOTS) drop_count(DROP_unreadable_object);
    else if (used) opened.slots = mask + 1;
    return opened;
}

struct task_set task_set_scheduled(void) { return open_set(anchors.scheduled_tasks, true); }
struct task_set task_set_python(void) { return open_set(anchors.python_tasks, true); }
struct task_set task_set_eager(void) { return open_set(anchors.eager_tasks, false); }

struct task_set task_set_of_list(const uint64_t *tasks, uint32_t count) {
    uint64_t slots = count ? 1 : 0;
    while (slots < count) slots *= 2;
    return (struct task_set){.slots = slots, .listed = tasks, .n_listed = count};
}

struct task_set task_set_at(uint64_t set) { return open_set(set, false); }

static bool copy_entries(const struct task_set *set, uint64_t first, uint64_t count, struct set_entry *entries) {
    if (safe_copy(entries, set->table + first * sizeof *entries, count * sizeof *entries)) return true;
    drop_count(DROP_unreadable_memory);
    return false;
}

static size_t follow_references(uint64_t *addresses, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) safe_copy_touch(addresses[i]);
    for (size_t i = 0; i < count; i++) {
        uint64_t type, task;
        if (!safe_copy_word(&task, addresses[i] + layout.weakref_object) || !safe_copy_word(&type, addresses[i] + OBJECT_TYPE) ||
            type != anchors.type_weakref) {
            drop_count(DROP_unreadable_object);
            continue;
        }
        if (task != anchors.none) addresses[kept++] = task;
    }
    return kept;
}

/* Slots behind the last task are empty. */
static size_t read_listed(const struct task_set *set, uint64_t first, uint32_t count, uint64_t *addresses) {
    size_t found = 0;
    for (uint64_t i = first; i < first + count; i++)
        if (i % set->slots < set->n_listed) addresses[found++] = set->listed[i % set->slots];
    return found;
}

size_t task_set_read(const struct task_set *set, uint64_t first, uint32_t count, uint64_t addresses[TASK_SET_SLOTS_PER_READ]) {
    struct set_entry entries[TASK_SET_SLOTS_PER_READ];
    if (count > TASK_SET_SLOTS_PER_READ) count = TASK_SET_SLOTS_PER_READ;
    if (count > set->slots) count = (uint32_t)set->slots;
    if (!count) return 0;
    first %= set->slots;
    if (set->listed) return read_listed(set, first, count, addresses);
    uint64_t to_end = set->slots - first, n = to_end < count ? to_end : count;
    if (!copy_entries(set, first, n, entries) || (n < count && !copy_entries(set, 0, count - n, entries + n))) return 0;
    size_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].key && entries[i].hash != DELETED_HASH) addresses[found++] = entries[i].key;
    return set->weak ? follow_references(addresses, found) : found;
}
