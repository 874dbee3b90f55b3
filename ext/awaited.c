/* The waiting side of asyncio's constructs:
     gather            a future of a type of its own, which holds its children
     shield            a future with a callback whose closure holds the inner one
     wait              the coroutine that waits; its first argument is the set of what it waits for
     wait_for          the same with one future in 3.11, and while it cancels that; else it awaits it directly
     as_completed      a coroutine of its own, waiting for an item of a queue
     TaskGroup         the coroutine at the group's end, anyio's as well */
#include "awaited.h"

#include "anyio_groups.h"
#include "cpython/layout.h"
#include "read_object.h"
#include "safe_copy.h"
#include "task_set.h"

#define MAX_HOPS 6      /* constructs one inside the other */
#define MAX_CHILDREN 64 /* looked at in one construct */
#define MAX_LOOKS 256   /* in all: one gather may stand many times in another, and that many times in a third */
#define MAX_CELLS 8

static bool type_of(uint64_t object, uint64_t *type) { return object && safe_copy_word(type, object + OBJECT_TYPE); }

static bool is_future_type(uint64_t type) { return type == anchors.type_task || read_is_subtype(type, anchors.type_future); }

bool awaited_is_pending(uint64_t future) {
    uint64_t type;
    uint32_t state;
    if (!type_of(future, &type) || !is_future_type(type)) return true;
    return !safe_copy_half(&state, future + layout.future_state) || state == layout.future_pending;
}

/* left: looks that may still be spent. */
static bool leads_to_task(uint64_t future, unsigned hops, unsigned *left);

/* Whether one that is not done does. Of very many only the first are looked at; when those are done, they stand for the others. */
static bool any_leads_to_task(const uint64_t *futures, size_t count, unsigned hops, unsigned *left) {
    bool any_pending = false;
    for (size_t i = 0; i < count && *left; i++) {
        --*left;
        if (!awaited_is_pending(futures[i])) continue;
        any_pending = true;
        if (leads_to_task(futures[i], hops, left)) return true;
    }
    return !any_pending && count && leads_to_task(futures[0], hops, left);
}

/* The future that shield hands out: its own callback holds the inner one, last: cells stand in the order of their names. Before it
   there may be the task that has called shield (3.14.10, 3.15; not 3.14.3). */
static bool is_shield_of_task(uint64_t future, unsigned hops, unsigned *left) {
    uint64_t callback, type, code, closure, cells[MAX_CELLS];
    if (!safe_copy_word(&callback, future + layout.future_callback0) || !type_of(callback, &type) || type != anchors.type_function ||
        !safe_copy_word(&code, callback + layout.function_code) || !anchors.code_shield || code != anchors.code_shield ||
        !safe_copy_word(&closure, callback + layout.function_closure))
        return false;
    size_t count = read_tuple(closure, cells, MAX_CELLS);
    for (size_t i = count; i-- > 0;) {
        uint64_t held;
        if (!type_of(cells[i], &type) || type != anchors.type_cell || !safe_copy_word(&held, cells[i] + layout.cell_contents)) continue;
        if (type_of(held, &type) && is_future_type(type)) return leads_to_task(held, hops, left);
    }
    return false;
}

static bool leads_to_task(uint64_t future, unsigned hops, unsigned *left) {
    uint64_t type, list, children[MAX_CHILDREN];
    if (hops == MAX_HOPS || !type_of(future, &type)) return false;
    if (type == anchors.type_task) return true;
    if (type == anchors.type_gathering)
        return read_attribute(future, anchors.name_children, &list) &&
               any_leads_to_task(children, read_list(list, children, MAX_CHILDREN), hops + 1, left);
    if (type != anchors.type_future && !read_is_subtype(type, anchors.type_future)) return false;
    return (type != anchors.type_future && read_is_subtype(type, anchors.type_task)) || is_shield_of_task(future, hops + 1, left);
}

static bool set_leads_to_task(uint64_t address, unsigned *left) {
    uint64_t futures[TASK_SET_SLOTS_PER_READ];
    struct task_set set = task_set_at(address);
    return any_leads_to_task(futures, task_set_read(&set, 0, TASK_SET_SLOTS_PER_READ, futures), 0, left);
}

bool awaited_are_tasks(uint64_t future, const struct await_chain *chain) {
    uint64_t argument;
    unsigned left = MAX_LOOKS;
    if (leads_to_task(future, 0, &left)) return true;
    if (!chain->count) return false;
    const struct raw_frame *leaf = &chain->frames[chain->count - 1];
    if (leaf->code == anchors.code_group_end || anyio_groups_wait_in(leaf->code)) return true; /* it waits only while tasks of the group live */
    if (leaf->code == anchors.code_wait) return coroutine_first_argument(leaf, &argument) && set_leads_to_task(argument, &left);
    if (leaf->code == anchors.code_wait_for || leaf->code == anchors.code_cancel_and_wait)
        return coroutine_first_argument(leaf, &argument) && leads_to_task(argument, 0, &left);
    if (chain->count < 2 || leaf[-1].code != anchors.code_next_completed) return false;
    /* Up to 3.12 nothing leads from here to what as_completed waits for: tasks, as a rule. */
    uint64_t todo;
    if (!anchors.name_todo || !coroutine_first_argument(&leaf[-1], &argument) || !read_attribute(argument, anchors.name_todo, &todo))
        return true;
    return set_leads_to_task(todo, &left);
}
