/* A task that is awaited carries the awaiting task's wakeup. A task inside gather, wait, shield, as_completed or a TaskGroup carries
   a callback of that construct instead, which leads to a future that the awaiting task waits for, or to the task itself:
     wakeup            builtin bound to the awaiting task
     gather, wait,     closure -> cell with a future that is no task -> that future's callbacks
     shield
     wait_for (3.11)   functools.partial -> argument that is such a future
     as_completed      closure (up to 3.12) or bound method (3.13) -> queue -> futures of its getters
     run_until_complete   callback of the loop itself
     TaskGroup         bound method -> group -> parent task, which waits once it stands at the group's own future
     anyio's groups    closure -> group -> host task, likewise
   From 3.14 on a future also notes who awaits it. Constructs outside of asyncio's tasks, other libraries' too, are known by that alone.
   asyncio's own note the task that has called them, and also when that awaits something else by now: so their callbacks are asked first.
   Only asyncio's and anyio's own callbacks are followed: what an application's callback holds says nothing of who waits. */
#include "awaiters.h"

#include "anyio_groups.h"
#include "cpython/layout.h"
#include "drop.h"
#include "read_object.h"
#include "safe_copy.h"
#include "task_set.h"

#define MAX_FUTURES 32  /* futures looked through for one task */
#define MAX_HOPS 6      /* futures in a row */
#define MAX_CALLBACKS 64
#define MAX_CELLS 16
#define MAX_GETTERS 16
#define MAX_AWAITED_BY_SLOTS 256

struct search {
    struct awaiter *found;
    size_t n_found;
    struct { uint64_t address; unsigned hops; } futures[MAX_FUTURES];
    size_t n_futures;
    unsigned hops; /* of the future being looked through */
    bool by_loop;
    bool by_asyncio; /* a construct of asyncio's looks after the task */
    struct awaiter_memo *memo; /* NULL: nothing is remembered */
};

static void found_task(struct search *search, uint64_t task, bool waits) {
    for (size_t i = 0; i < search->n_found; i++) {
        if (search->found[i].task != task) continue;
        search->found[i].waits |= waits;
        return;
    }
    if (search->n_found < MAX_AWAITERS) search->found[search->n_found++] = (struct awaiter){task, waits};
}

static void found_future(struct search *search, uint64_t future) {
    if (search->hops == MAX_HOPS || search->n_futures == MAX_FUTURES) return;
    for (size_t i = 0; i < search->n_futures; i++)
        if (search->futures[i].address == future) return;
    search->futures[search->n_futures].address = future;
    search->futures[search->n_futures++].hops = search->hops + 1;
}

static bool type_of(uint64_t object, uint64_t *type) { return object && safe_copy_word(type, object + OBJECT_TYPE); }

/* Something a callback holds: a future is followed, a queue leads to the futures of those who wait for an item. A task is not
   followed: gather and shield keep their children at hand too. */
static void look_at_held(struct search *search, uint64_t object) {
    uint64_t type, getters, items[MAX_GETTERS];
    if (!type_of(object, &type)) return;
    if (read_is_subtype(type, anchors.type_future)) {
        if (!read_is_subtype(type, anchors.type_task)) found_future(search, object);
        return;
    }
    if (!anchors.type_queue || !read_is_subtype(type, anchors.type_queue)) return;
    if (!read_attribute(object, anchors.name_getters, &getters) || !type_of(getters, &type) || type != anchors.type_deque) return;
    size_t count = read_deque(getters, items, MAX_GETTERS);
    for (size_t i = 0; i < count; i++) found_future(search, items[i]);
}

static void look_at_tuple(struct search *search, uint64_t tuple, bool of_cells) {
    uint64_t items[MAX_CELLS], type;
    size_t count = tuple ? read_tuple(tuple, items, MAX_CELLS) : 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t held = items[i];
        if (of_cells && (!type_of(held, &type) || type != anchors.type_cell || !safe_copy_word(&held, held + layout.cell_contents)))
            continue;
        look_at_held(search, held);
    }
}

/* Whether function is one of the module with these globals. */
static bool is_of_module(uint64_t function, uint64_t globals) {
    uint64_t type, its_globals;
    return type_of(function, &type) && type == anchors.type_function &&
           safe_copy_word(&its_globals, function + layout.function_globals) && its_globals == globals;
}

static void look_at_group(struct search *search, uint64_t group) {
    uint64_t parent, type, waiter, completed;
    if (!read_attribute(group, anchors.name_parent_task, &parent) || !type_of(parent, &type) ||
        !read_is_subtype(type, anchors.type_task))
        return;
    found_task(search, parent, safe_copy_word(&waiter, parent + layout.task_waiter) && waiter &&
                                   read_attribute(group, anchors.name_on_completed, &completed) && waiter == completed);
}

static void look_at_method(struct search *search, uint64_t method) {
    uint64_t function, self, done;
    if (!safe_copy_word(&function, method + layout.method_function) || !safe_copy_word(&self, method + layout.method_self)) return;
    if (is_of_module(function, anchors.globals_task_groups)) look_at_group(search, self);
    else if (is_of_module(function, anchors.globals_tasks) && read_attribute(self, anchors.name_done, &done)) look_at_held(search, done);
}

static void look_at_anyio(struct search *search, const struct anyio_parents *parents) {
    if (parents->host) found_task(search, parents->host, parents->host_waits);
    if (parents->starting) found_future(search, parents->starting);
}

static struct remembered_callback *memo_entry(struct awaiter_memo *memo, uint64_t callback) {
    return &memo->entries[callback / 16 % MAX_REMEMBERED_CALLBACKS];
}

/* What this very function led to a moment ago: all children of one gather carry the same. */
static bool recall(struct search *search, uint64_t callback) {
    const struct remembered_callback *entry = memo_entry(search->memo, callback);
    if (entry->callback != callback || entry->tick != search->memo->tick) return false;
    for (size_t i = 0; i < entry->count; i++) found_task(search, entry->tasks[i], true);
    return true;
}

static void remember(const struct search *search, uint64_t callback) {
    if (search->n_found > MAX_REMEMBERED_AWAITERS || search->by_loop) return;
    struct remembered_callback *entry = memo_entry(search->memo, callback);
    *entry = (struct remembered_callback){.callback = callback, .tick = search->memo->tick, .count = (uint32_t)search->n_found};
    for (size_t i = 0; i < search->n_found; i++) {
        if (!search->found[i].waits) entry->callback = 0;
        entry->tasks[i] = search->found[i].task;
    }
}

static void look_at_callback(struct search *search, uint64_t callback) {
    uint64_t type, word, self;
    struct anyio_parents parents;
    if (!type_of(callback, &type)) return;
    if (type == anchors.type_builtin) {
        if (safe_copy_word(&word, callback + layout.builtin_definition) && word == anchors.task_wakeup &&
            safe_copy_word(&self, callback + layout.builtin_self) && self)
            found_task(search, self, true);
    } else if (type == anchors.type_function) {
        if (search->hops == 0 && search->memo && recall(search, callback)) {
            search->by_asyncio = true;
            return;
        }
        if (is_of_module(callback, anchors.globals_base_events)) search->by_loop |= search->hops == 0;
        if (is_of_module(callback, anchors.globals_tasks)) {
            search->by_asyncio = true;
            if (safe_copy_word(&word, callback + layout.function_closure)) look_at_tuple(search, word, true);
        }
        if (anyio_groups_read(callback, &parents)) {
            search->by_asyncio = true;
            look_at_anyio(search, &parents);
        }
    } else if (type == anchors.type_method) {
        look_at_method(search, callback);
    } else if (type == anchors.type_partial) {
        if (safe_copy_word(&word, callback + layout.partial_function) && is_of_module(word, anchors.globals_tasks) &&
            safe_copy_word(&word, callback + layout.partial_args))
            look_at_tuple(search, word, false);
    }
}

/* The first callback has a place of its own; the others stand in a list of (callback, context). */
static void look_at_callbacks(struct search *search, uint64_t callback0, uint64_t callbacks) {
    uint64_t pairs[MAX_CALLBACKS], callback;
    if (callback0 && callback0 != anchors.none) look_at_callback(search, callback0);
    if (!callbacks || callbacks == anchors.none) return;
    size_t count = read_list(callbacks, pairs, MAX_CALLBACKS);
    for (size_t i = 0; i < count; i++)
        if (read_tuple(pairs[i], &callback, 1) == 1) look_at_callback(search, callback);
}

/* 3.14: who awaits a future is noted there, one of them, or a set. Another future may stand for those who await that. */
static void look_at_awaited_by(struct search *search, uint64_t awaited_by, bool is_set) {
    uint64_t futures[TASK_SET_SLOTS_PER_READ] = {awaited_by}, type;
    struct task_set set = is_set ? task_set_at(awaited_by) : (struct task_set){0};
    for (uint64_t slot = 0; slot == 0 || (slot < set.slots && slot < MAX_AWAITED_BY_SLOTS); slot += TASK_SET_SLOTS_PER_READ) {
        size_t count = is_set ? task_set_read(&set, slot, TASK_SET_SLOTS_PER_READ, futures) : 1;
        for (size_t i = 0; i < count; i++) {
            if (!type_of(futures[i], &type)) continue;
            if (read_is_subtype(type, anchors.type_task)) found_task(search, futures[i], true);
            else if (read_is_subtype(type, anchors.type_future)) found_future(search, futures[i]);
        }
    }
}

static size_t find_noted(const struct task *task, struct awaiter awaiters[MAX_AWAITERS]) {
    struct search search;
    search.found = awaiters, search.memo = NULL, search.n_found = search.n_futures = search.hops = 0;
    look_at_awaited_by(&search, task->awaited_by, task->awaited_by_is_set);
    for (size_t i = 0; i < search.n_futures; i++) {
        uint64_t awaited_by;
        bool is_set;
        search.hops = search.futures[i].hops;
        if (!future_read_awaited_by(search.futures[i].address, &awaited_by, &is_set)) drop_count(DROP_unreadable_memory);
        else if (awaited_by) look_at_awaited_by(&search, awaited_by, is_set);
    }
    return search.n_found;
}

size_t awaiters_find(const struct task *task, struct awaiter_memo *memo, struct awaiter awaiters[MAX_AWAITERS], bool *by_loop) {
    struct search search;
    uint64_t faults = safe_copy_faults();
    search.found = awaiters, search.memo = memo;
    search.n_found = search.n_futures = search.hops = 0; /* the futures are written before they are read */
    search.by_loop = search.by_asyncio = false;
    look_at_callbacks(&search, task->callback0, task->callbacks);
    for (size_t i = 0; i < search.n_futures; i++) {
        uint64_t callback0, callbacks, future = search.futures[i].address;
        search.hops = search.futures[i].hops;
        if (!safe_copy_word(&callback0, future + layout.future_callback0) ||
            !safe_copy_word(&callbacks, future + layout.future_callbacks)) {
            drop_count(DROP_unreadable_memory);
            continue;
        }
        look_at_callbacks(&search, callback0, callbacks);
    }
    /* Nothing but this callback has led to what was found, and there was something to follow. */
    if (memo && search.n_futures && safe_copy_faults() == faults && (!task->callbacks || task->callbacks == anchors.none)) remember(&search, task->callback0);
    *by_loop = search.by_loop;
    if (search.n_found || search.by_loop || search.by_asyncio || !task->awaited_by) return search.n_found;
    return find_noted(task, awaiters);
}
