#include "threads.h"

#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "read_object.h"
#include "safe_copy.h"

#define MAX_STATES (2 * MAX_THREADS) /* read in one go, those that have no id yet included: a cycle of such adds no thread */

static bool unreadable(void) {
    drop_count(DROP_unreadable_memory);
    return false;
}

/* Inside of what was copied (3.13), or far behind it. */
static bool read_running_loop(uint64_t thread, const uint8_t *bytes, uint64_t *loop) {
    *loop = 0;
    if (layout.thread_running_loop == LAYOUT_ABSENT) return true;
    if (layout.thread_running_loop >= layout.thread_size) return safe_copy_word(loop, thread + layout.thread_running_loop);
    memcpy(loop, bytes + layout.thread_running_loop, 8);
    return true;
}

bool threads_read_one(uint64_t address, struct thread_state *thread) {
    uint8_t bytes[MAX_THREAD_STATE_BYTES];
    if (!safe_copy(bytes, address, layout.thread_size)) return false;
    thread->address = address;
    memcpy(&thread->prev, bytes + layout.thread_prev, 8);
    memcpy(&thread->next, bytes + layout.thread_next, 8);
    memcpy(&thread->interpreter, bytes + layout.thread_interp, 8);
    memcpy(&thread->dict, bytes + layout.thread_dict, 8);
    memcpy(&thread->context, bytes + layout.thread_context, 8);
    if (!read_running_loop(address, bytes, &thread->running_loop)) return false;
    memcpy(&thread->ident, bytes + layout.thread_ident, 8);
    memcpy(&thread->native_id, bytes + layout.thread_native_id, 8);
    memcpy(&thread->unique_id, bytes + layout.thread_unique_id, 8);
    memcpy(&thread->frame, bytes + layout.thread_frame, 8);
    memcpy(&thread->chunk, bytes + layout.thread_datastack_chunk, 8);
    memcpy(&thread->chunk_top, bytes + layout.thread_datastack_top, 8);
    return thread->interpreter == anchors.interpreter;
}

size_t threads_read(struct thread_state *threads, size_t capacity, bool *whole) {
    uint64_t address, previous = 0;
    size_t count = 0;
    *whole = false;
    if (!safe_copy_word(&address, anchors.interpreter + layout.interp_threads_head)) return unreadable();
    for (size_t states = 0; address; states++) {
        if (count == capacity || states == MAX_STATES) {
            drop_count(DROP_too_many_threads);
            return count;
        }
        struct thread_state *thread = &threads[count];
        if (!threads_read_one(address, thread)) {
            drop_count(DROP_unreadable_memory);
            return count;
        }
        if (thread->prev != previous && previous) { /* unlinked between the two reads */
            drop_count(DROP_unreadable_object);
            return count;
        }
        previous = address;
        address = thread->next;
        /* A state that was made but whose thread has not begun has no id yet. */
        if (thread->native_id) count++;
    }
    *whole = true;
    return count;
}

void threads_prefetch(const struct thread_state *threads, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (uint32_t offset = 0; offset < layout.thread_size; offset += CACHE_LINE) safe_copy_touch(threads[i].address + offset);
    for (size_t i = 0; layout.thread_running_task != LAYOUT_ABSENT && i < count; i++)
        safe_copy_touch(threads[i].address + layout.thread_running_task);
}

bool threads_read_name(uint64_t ident, char *name, size_t *size) {
    uint64_t thread, string;
    return read_dict_int_value(anchors.threads, (int64_t)ident, &thread) && read_attribute(thread, anchors.name_name, &string) &&
           read_string(string, name, size);
}

uint64_t threads_gil_holder(void) {
    uint64_t gil, holder;
    uint32_t locked;
    if (layout.interp_gil == LAYOUT_ABSENT) {
        if (!safe_copy_word(&gil, anchors.interpreter + layout.interp_runtime)) return unreadable(), 0;
        gil += layout.runtime_gil;
    } else if (!safe_copy_word(&gil, anchors.interpreter + layout.interp_gil)) {
        return unreadable(), 0;
    }
    if (!safe_copy_half(&locked, gil + layout.gil_locked) || !safe_copy_word(&holder, gil + layout.gil_holder))
        return unreadable(), 0;
    return locked == 1 ? holder : 0;
}

bool threads_read_task(const struct thread_state *thread, uint64_t loop, uint64_t *task) {
    uint64_t faults = safe_copy_faults();
    *task = 0;
    if (!loop) return true;
    if (layout.thread_running_task != LAYOUT_ABSENT) return safe_copy_word(task, thread->address + layout.thread_running_task);
    if (!anchors.current_tasks || !read_dict_value(anchors.current_tasks, loop, task)) *task = 0;
    return safe_copy_faults() == faults;
}

uint64_t threads_running_loop(const struct thread_state *thread) {
    uint64_t loop = thread->running_loop, type;
    if (layout.thread_running_loop == LAYOUT_ABSENT) {
        if (!thread->dict || !read_dict_value(thread->dict, anchors.name_running_loop, &loop)) return 0;
        /* 3.11 keeps the loop in a holder; None, later, when no loop runs any more. */
        if (anchors.type_loop_holder && read_type(loop, &type) && type == anchors.type_loop_holder &&
            !safe_copy_word(&loop, loop + layout.wrapper_inner))
            return unreadable();
    }
    return loop == anchors.none ? 0 : loop;
}
