#include "inputs.h"

#include <stdlib.h>

#include "check.h"
#include "coroutine.h"
#include "cpython/layout.h"
#include "memory_of_tape.h"
#include "pages.h"
#include "read_object.h"
#include "safe_copy.h"
#include "span_link.h"
#include "task_list.h"
#include "task_set.h"
#include "threads.h"

struct task input_tasks[MAX_INPUT_TASKS];
size_t n_input_tasks;
struct thread_state input_threads[MAX_INPUT_THREADS];
size_t n_input_threads;
struct raw_frame input_frames[MAX_INPUT_FRAMES];
size_t n_input_frames;
uint64_t input_objects[MAX_INPUT_OBJECTS];
size_t n_input_objects;

void *exactly(size_t size) {
    void *buffer = malloc(size);
    CHECK(buffer);
    return buffer;
}

static void add_frames(const struct raw_frame *frames, size_t count) {
    for (size_t i = 0; i < count && n_input_frames < MAX_INPUT_FRAMES; i++) input_frames[n_input_frames++] = frames[i];
}

static void add_tasks(struct task_set set) {
    uint64_t addresses[TASK_SET_SLOTS_PER_READ];
    for (uint64_t slot = 0; slot < set.slots; slot += TASK_SET_SLOTS_PER_READ) {
        size_t count = task_set_read(&set, slot, TASK_SET_SLOTS_PER_READ, addresses);
        for (size_t i = 0; i < count && n_input_tasks < MAX_INPUT_TASKS; i++)
            if (task_read(addresses[i], &input_tasks[n_input_tasks])) n_input_tasks++;
    }
}

static bool is_type_anchor(uint64_t type) {
    const uint64_t *word = (const uint64_t *)(const void *)&anchors;
    for (unsigned i = 0; i < anchor_count; i++)
        if (type && word[i] == type && strncmp(anchor_names[i], "type_", 5) == 0) return true;
    return false;
}

/* A word that is the address of a type that the readers know, eight bytes behind the beginning of an object. */
static void add_objects(void) {
    for (size_t i = 0; i < n_pages; i++)
        for (size_t offset = 0; offset < PAGE_BYTES; offset += 8) {
            uint64_t type, address = pages[i]->number * PAGE_BYTES + offset - OBJECT_TYPE;
            if (n_input_objects == MAX_INPUT_OBJECTS || !safe_copy_word(&type, address + OBJECT_TYPE) || !is_type_anchor(type)) continue;
            input_objects[n_input_objects++] = address;
        }
}

void inputs_take(void) {
    bool (*watch)(uint64_t, size_t) = memory_before_copy;
    memory_before_copy = NULL; /* what is read here is not the target's */
    CHECK(span_link_learn_nodes());
    bool whole;
    n_input_threads = threads_read(input_threads, MAX_INPUT_THREADS, &whole);
    add_tasks(task_set_scheduled());
    add_tasks(task_set_eager());
    struct task_list list;
    task_list_init(&list);
    if (task_list_exists() && task_list_read(&list, input_threads, n_input_threads)) add_tasks(task_set_of_list(list.tasks, list.count));
    task_list_destroy(&list);
    struct unwind_buffer *buffer = exactly(sizeof *buffer);
    for (size_t i = 0, count; i < n_input_threads; i++)
        if (unwind_thread(&input_threads[i], buffer, &count)) add_frames(buffer->frames, count);
    free(buffer);
    struct raw_frame frames[MAX_AWAIT_CHAIN];
    for (size_t i = 0; i < n_input_tasks; i++) {
        struct await_chain chain = {.frames = frames, .capacity = MAX_AWAIT_CHAIN};
        coroutine_walk(&chain, input_tasks[i].coroutine);
        add_frames(frames, chain.count);
    }
    add_objects();
    CHECK(n_input_threads && n_input_tasks && n_input_frames && n_input_objects);
    memory_before_copy = watch;
}
