#include "asyncio_offsets.h"

#include "layout.h"

/* The same in 3.14 and 3.15. */
enum {
    TASK_SIZE, TASK_NAME, TASK_AWAITED_BY, TASK_IS_TASK, TASK_AWAITED_BY_IS_SET, TASK_COROUTINE, TASK_NODE,
    INTERP_SIZE, INTERP_TASKS,
    THREAD_SIZE, THREAD_RUNNING_LOOP, THREAD_RUNNING_TASK, THREAD_TASKS,
};

enum { WORD = 8, NODE = 16, STATE = 4, FUTURE_HEAD = 16 };

static bool is_inside(uint64_t offset, uint64_t from, uint64_t size, uint64_t end) {
    return offset >= from && offset % (size < WORD ? size : WORD) == 0 && offset <= end && size <= end - offset;
}

bool asyncio_offsets_fit(const uint64_t words[ASYNCIO_OFFSETS_WORDS], uint64_t task_size) {
    uint64_t interp = words[INTERP_SIZE], thread = words[THREAD_SIZE];
    if (words[TASK_SIZE] != task_size || interp != layout.interp_size || interp > MAX_LAYOUT_OFFSET || thread > MAX_LAYOUT_OFFSET)
        return false;
    return is_inside(words[TASK_NAME], FUTURE_HEAD, 2 * WORD, task_size) &&
           is_inside(words[TASK_AWAITED_BY], FUTURE_HEAD, WORD, task_size) &&
           is_inside(words[TASK_IS_TASK], FUTURE_HEAD + STATE, 1, task_size) && words[TASK_IS_TASK] % STATE == 0 &&
           is_inside(words[TASK_AWAITED_BY_IS_SET], FUTURE_HEAD, 1, task_size) &&
           is_inside(words[TASK_COROUTINE], FUTURE_HEAD + WORD, WORD, task_size) &&
           is_inside(words[TASK_NODE], FUTURE_HEAD, NODE, task_size) && is_inside(words[INTERP_TASKS], 0, NODE, interp) &&
           is_inside(words[THREAD_RUNNING_LOOP], layout.thread_size, WORD, thread) &&
           is_inside(words[THREAD_RUNNING_TASK], layout.thread_size, WORD, thread) &&
           is_inside(words[THREAD_TASKS], layout.thread_size, NODE, thread);
}

void asyncio_offsets_apply(const uint64_t words[ASYNCIO_OFFSETS_WORDS]) {
    layout.task_size = (uint32_t)words[TASK_SIZE];
    layout.task_name = (uint32_t)words[TASK_NAME];
    layout.task_context = layout.task_name + WORD; /* not published, but the next field; so with the two below */
    layout.future_awaited_by = (uint32_t)words[TASK_AWAITED_BY];
    layout.future_awaited_by_is_set = (uint32_t)words[TASK_AWAITED_BY_IS_SET];
    layout.future_state = (uint32_t)words[TASK_IS_TASK] - STATE;
    layout.task_coroutine = (uint32_t)words[TASK_COROUTINE];
    layout.task_waiter = layout.task_coroutine - WORD;
    layout.task_node = (uint32_t)words[TASK_NODE];
    layout.interp_tasks = (uint32_t)words[INTERP_TASKS];
    layout.thread_running_loop = (uint32_t)words[THREAD_RUNNING_LOOP];
    layout.thread_running_task = (uint32_t)words[THREAD_RUNNING_TASK];
    layout.thread_tasks = (uint32_t)words[THREAD_TASKS];
}
