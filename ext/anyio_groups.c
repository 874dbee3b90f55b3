#include "anyio_groups.h"

#include "cpython/layout.h"
#include "read_object.h"
#include "safe_copy.h"

#define MAX_CELLS 8

/* Written once, before known is. */
static struct anyio_facts facts_in_use;
static bool known;

static const struct anyio_facts *facts_or_null(void) {
    return __atomic_load_n(&known, __ATOMIC_ACQUIRE) ? &facts_in_use : NULL;
}

void anyio_groups_use(const struct anyio_facts *facts) {
    if (facts_or_null()) return;
    facts_in_use = *facts;
    __atomic_store_n(&known, true, __ATOMIC_RELEASE);
}

uint32_t anyio_groups_find_slot(uint64_t object, uint64_t value, uint32_t size) {
    for (uint32_t offset = 2 * OBJECT_TYPE; offset < size; offset += 8) {
        uint64_t word;
        if (safe_copy_word(&word, object + offset) && word == value) return offset;
    }
    return 0;
}

static bool read_cell(const uint64_t *cells, size_t count, uint32_t number, uint64_t *held) {
    uint64_t type;
    return number < count && safe_copy_word(&type, cells[number] + OBJECT_TYPE) && type == anchors.type_cell &&
           safe_copy_word(held, cells[number] + layout.cell_contents) && *held;
}

static bool is_a(uint64_t object, uint64_t base) {
    uint64_t type;
    return object && safe_copy_word(&type, object + OBJECT_TYPE) && read_is_subtype(type, base);
}

static void read_host(const struct anyio_facts *facts, uint64_t group, struct anyio_parents *parents) {
    uint64_t scope, host, waiter, completed;
    if (!read_attribute(group, facts->name_scope, &scope)) return;
    if (facts->host_offset ? !safe_copy_word(&host, scope + facts->host_offset) : !read_attribute(scope, facts->name_host, &host)) return;
    if (!is_a(host, anchors.type_task)) return;
    parents->host = host;
    parents->host_waits = safe_copy_word(&waiter, host + layout.task_waiter) && waiter &&
                          read_attribute(group, facts->name_completed, &completed) && waiter == completed;
}

bool anyio_groups_read(uint64_t function, struct anyio_parents *parents) {
    const struct anyio_facts *facts = facts_or_null();
    uint64_t code, closure, cells[MAX_CELLS], held;
    *parents = (struct anyio_parents){0};
    if (!facts || !safe_copy_word(&code, function + layout.function_code) || code != facts->callback_code) return false;
    if (!safe_copy_word(&closure, function + layout.function_closure) || !closure) return true;
    size_t count = read_tuple(closure, cells, MAX_CELLS);
    if (read_cell(cells, count, facts->group_cell, &held)) read_host(facts, held, parents);
    if (read_cell(cells, count, facts->start_cell, &held) && is_a(held, anchors.type_future)) parents->starting = held;
    return true;
}

bool anyio_groups_wait_in(uint64_t code) {
    const struct anyio_facts *facts = facts_or_null();
    return facts && (code == facts->end_code || code == facts->start_code);
}
