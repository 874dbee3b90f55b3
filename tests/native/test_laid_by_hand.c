/* Readers on memory that is laid out here as the sources of CPython 3.14 and 3.15 say, with every published offset moved: frames with
   tagged references, suspended coroutines, a thread's stack down to its oldest frame, lists of tasks. */
#include "test_program.h"

#include "coroutine.h"
#include "cpython/layout.h"
#include "task_list.h"
#include "tasks.h"
#include "threads.h"
#include "unwind.h"

#define FRAME_BYTES 160
#define OBJECT_BYTES 512
#define N_OBJECTS 16
#define SHIFT 8 /* of each offset that CPython publishes */
#define TAG 1   /* of a reference that is not counted */
#define CODE 0x7000001000ull
#define INSTRUCTION(n) (0x7000002000ull + 16 * (n))

enum { OWNER_THREAD = 0, OWNER_GENERATOR = 1, OWNER_INTERPRETER = 3, OWNER_THREAD_STATE = 4 };

static _Alignas(16) uint8_t objects[N_OBJECTS][OBJECT_BYTES];
static _Alignas(16) uint8_t thread[2048], interpreter[1 << 18], chunk[4096];
static unsigned n_objects, minor;

static uint64_t address_of(const void *object) { return (uint64_t)(uintptr_t)object; }
static void put(uint64_t address, uint64_t word) { memcpy((void *)(uintptr_t)address, &word, sizeof word); }
static void put_byte(uint64_t address, int value) { *(uint8_t *)(uintptr_t)address = (uint8_t)value; }
static uint64_t new_object(uint64_t type) {
    uint64_t object = address_of(objects[n_objects++]);
    put(object + OBJECT_TYPE, type);
    return object;
}

static void begin(unsigned version) {
    minor = version;
    CHECK(layout_select(minor));
    uint32_t *const published[] = {&layout.thread_prev, &layout.thread_next, &layout.thread_interp, &layout.thread_frame, &layout.thread_ident,
                                   &layout.thread_native_id, &layout.thread_context, &layout.thread_context_version, &layout.thread_unique_id,
                                   &layout.thread_datastack_chunk, &layout.thread_datastack_top, &layout.thread_size, &layout.thread_running_loop, &layout.thread_running_task,
                                   &layout.thread_tasks, &layout.interp_tasks, &layout.interp_threads_head, &layout.frame_previous,
                                   &layout.frame_code, &layout.frame_instruction, &layout.frame_owner, &layout.frame_localsplus,
                                   &layout.frame_stackpointer, &layout.generator_frame, &layout.generator_state, &layout.task_node,
                                   &layout.task_waiter, &layout.task_coroutine, &layout.task_name, &layout.task_context, &layout.task_size,
                                   &layout.future_state, &layout.future_awaited_by, &layout.future_awaited_by_is_set};
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) *published[i] += SHIFT;
    anchors.type_coroutine = 0x100, anchors.type_generator = 0x200, anchors.type_async_generator = 0x300, anchors.type_asend = 0x400;
    anchors.type_future = 0x500, anchors.type_task = 0x600, anchors.interpreter = address_of(interpreter);
    n_objects = 0;
    memset(objects, 0, sizeof objects), memset(thread, 0, sizeof thread), memset(interpreter, 0, sizeof interpreter);
}

static void lay_frame(uint64_t frame, unsigned n, int owner, uint64_t previous) {
    put(frame + layout.frame_code, (CODE + 256 * n) | TAG);
    put(frame + layout.frame_instruction, INSTRUCTION(n));
    put(frame + layout.frame_previous, previous);
    put_byte(frame + layout.frame_owner, owner);
}

/* The states by name, as the header of each version numbers them. */
enum state { CREATED, SUSPENDED, AWAITING, AWAITING_LOCKED, EXECUTING, CLEARED };
static int number_of(enum state state) {
    static const int in_3_14[] = {-3, -2, -1, -1, 0, 4}, in_3_15[] = {0, 1, 2, 3, 4, 5};
    return minor == 14 ? in_3_14[state] : in_3_15[state];
}

/* A coroutine or generator; what it awaits stands on its value stack, from 3.15 on below one more entry. */
static uint64_t lay_generator(uint64_t type, unsigned n, enum state state, uint64_t awaited) {
    uint64_t generator = new_object(type), frame = generator + layout.generator_frame, stack = frame + layout.frame_localsplus + 3 * 8;
    lay_frame(frame, n, OWNER_GENERATOR, 0);
    put_byte(generator + layout.generator_state, number_of(state));
    put(stack - 8, 0xbad0); /* a local variable */
    put(stack, awaited | TAG);
    stack += 8;
    if (minor == 15) put(stack, 0xbad8), stack += 8;
    if (state != EXECUTING && state != CREATED) put(frame + layout.frame_stackpointer, stack);
    return generator;
}

static struct raw_frame frames[MAX_AWAIT_CHAIN];

static struct await_chain walk(uint64_t coroutine) {
    struct await_chain chain = {.frames = frames, .capacity = MAX_AWAIT_CHAIN};
    coroutine_walk(&chain, coroutine);
    return chain;
}

#define BOTH_VERSIONS for (unsigned version = 14; version <= 15 && (begin(version), true); version++)

TEST(an_await_chain_is_followed_down_to_a_future) {
    BOTH_VERSIONS {
        uint64_t future = new_object(anchors.type_future), generator, asend;
        uint64_t inner = lay_generator(anchors.type_coroutine, 3, AWAITING, future);
        generator = lay_generator(anchors.type_async_generator, 2, AWAITING, inner);
        asend = new_object(anchors.type_asend);
        put(asend + layout.wrapper_inner, generator);
        struct await_chain chain = walk(lay_generator(anchors.type_coroutine, 1, AWAITING, asend));
        CHECK(chain.state == CHAIN_SUSPENDED && chain.count == 3);
        for (unsigned i = 0; i < 3; i++) CHECK(frames[i].code == CODE + 256 * (i + 1) && frames[i].instruction == INSTRUCTION(i + 1));
        CHECK(frames[1].generator == generator && frames[2].generator == inner);
        CHECK(coroutine_unchanged(&chain));
    }
}

TEST(a_generator_that_has_yielded_awaits_nothing) {
    BOTH_VERSIONS {
        uint64_t other = lay_generator(anchors.type_coroutine, 2, AWAITING, 0);
        struct await_chain chain = walk(lay_generator(anchors.type_generator, 1, SUSPENDED, other));
        CHECK(chain.state == CHAIN_SUSPENDED && chain.count == 1);
    }
}

TEST(a_locked_generator_awaits_as_well) {
    BOTH_VERSIONS {
        uint64_t inner = lay_generator(anchors.type_coroutine, 2, AWAITING, 0);
        struct await_chain chain = walk(lay_generator(anchors.type_generator, 1, AWAITING_LOCKED, inner));
        CHECK(chain.state == CHAIN_SUSPENDED && chain.count == 2);
    }
}

TEST(the_states_of_a_coroutine_are_told_apart) {
    BOTH_VERSIONS {
        struct await_chain chain = walk(lay_generator(anchors.type_coroutine, 1, CREATED, 0));
        CHECK(chain.state == CHAIN_SUSPENDED && chain.count == 1);
        CHECK(walk(lay_generator(anchors.type_coroutine, 1, EXECUTING, 0)).state == CHAIN_EXECUTING);
        CHECK(walk(lay_generator(anchors.type_coroutine, 1, CLEARED, 0)).state == CHAIN_FINISHED);
    }
}

TEST(a_stack_pointer_from_elsewhere_ends_the_chain) {
    BOTH_VERSIONS {
        uint64_t inner = lay_generator(anchors.type_coroutine, 2, AWAITING, 0);
        uint64_t outer = lay_generator(anchors.type_coroutine, 1, AWAITING, inner), frame = outer + layout.generator_frame;
        const uint64_t strange[] = {0, 8, frame, frame + layout.frame_localsplus};
        for (unsigned i = 0; i < sizeof strange / sizeof strange[0]; i++) {
            put(frame + layout.frame_stackpointer, strange[i]);
            struct await_chain chain = walk(outer);
            CHECK(chain.state == CHAIN_SUSPENDED && chain.count == 1);
        }
        put(frame + layout.frame_stackpointer, frame + (1ull << 40));
        CHECK(walk(outer).state == CHAIN_UNREADABLE);
    }
}

/* function > (called from C) coroutine > function, on an entry frame; 3.15: and that on the sentinel in the thread state. */
static struct thread_state lay_thread(void) {
    uint64_t state = address_of(thread), data = address_of(chunk) + layout.chunk_data, sentinel = state + 600, entry = new_object(0);
    uint64_t coroutine = lay_generator(anchors.type_coroutine, 2, EXECUTING, 0);
    lay_frame(sentinel, 9, OWNER_THREAD_STATE, 0);
    lay_frame(entry, 8, OWNER_INTERPRETER, minor == 15 ? sentinel : 0);
    lay_frame(data, 1, OWNER_THREAD, entry);
    lay_frame(coroutine + layout.generator_frame, 2, OWNER_GENERATOR, data);
    lay_frame(data + FRAME_BYTES, 3, OWNER_THREAD, coroutine + layout.generator_frame);
    put(state + layout.thread_interp, anchors.interpreter), put(state + layout.thread_native_id, 77), put(state + layout.thread_ident, 78);
    put(state + layout.thread_frame, data + FRAME_BYTES), put(state + layout.thread_context, 79), put(state + layout.thread_unique_id, 80);
    put(state + layout.thread_datastack_chunk, address_of(chunk)), put(state + layout.thread_datastack_top, data + 2 * FRAME_BYTES);
    put(state + layout.thread_running_loop, 81), put(state + layout.thread_running_task, 82);
    put(anchors.interpreter + layout.interp_threads_head, state);
    struct thread_state read;
    bool whole;
    CHECK(threads_read(&read, 1, &whole) == 1 && whole);
    return read;
}

TEST(a_threads_stack_is_read_down_to_its_oldest_frame) {
    static struct unwind_buffer buffer;
    BOTH_VERSIONS {
        struct thread_state read = lay_thread();
        size_t count;
        CHECK(unwind_thread(&read, &buffer, &count) && count == 3);
        for (unsigned i = 0; i < 3; i++) CHECK(buffer.frames[i].code == CODE + 256 * (3 - i) && buffer.frames[i].instruction == INSTRUCTION(3 - i));
        CHECK(!buffer.frames[0].generator && buffer.frames[1].generator && !buffer.frames[2].generator);
    }
}

TEST(a_threads_words_are_read) {
    BOTH_VERSIONS {
        struct thread_state read = lay_thread();
        uint64_t task;
        CHECK(read.native_id == 77 && read.ident == 78 && read.context == 79 && read.unique_id == 80);
        CHECK(threads_running_loop(&read) == 81 && threads_read_task(&read, 81, &task) && task == 82);
        CHECK(threads_read_task(&read, 0, &task) && task == 0);
    }
}

static void link(uint64_t node, uint64_t next) {
    put(node + layout.node_next, next);
    put(next + layout.node_previous, node);
}

static void lay_list(uint64_t head, const uint64_t *tasks, unsigned count) {
    uint64_t last = head;
    for (unsigned i = 0; i < count; i++) link(last, tasks[i] + layout.task_node), last = tasks[i] + layout.task_node;
    link(last, head);
}

TEST(tasks_of_threads_and_of_threads_that_ended_are_listed_oldest_first) {
    BOTH_VERSIONS {
        struct thread_state read = lay_thread();
        struct task_list list;
        uint64_t tasks[5];
        for (unsigned i = 0; i < 5; i++) tasks[i] = new_object(anchors.type_task);
        lay_list(read.address + layout.thread_tasks, tasks, 3);
        lay_list(anchors.interpreter + layout.interp_tasks, tasks + 3, 2);
        task_list_init(&list);
        for (unsigned k = 0; k < 3; k++) { /* the second and the third time with what the one before has left */
            CHECK(task_list_read(&list, &read, 1) && list.count == 5);
            CHECK(memcmp(list.tasks, tasks, sizeof tasks) == 0);
        }
        lay_list(read.address + layout.thread_tasks, NULL, 0);
        CHECK(task_list_read(&list, &read, 1) && list.count == 2 && list.tasks[0] == tasks[3]);
        task_list_destroy(&list);
    }
}

TEST(a_list_that_does_not_hold_together_is_not_whole) {
    BOTH_VERSIONS {
        struct thread_state read = lay_thread();
        struct task_list list;
        uint64_t tasks[3];
        for (unsigned i = 0; i < 3; i++) tasks[i] = new_object(anchors.type_task);
        lay_list(anchors.interpreter + layout.interp_tasks, NULL, 0);
        lay_list(read.address + layout.thread_tasks, tasks, 3);
        put(tasks[1] + layout.task_node + layout.node_next, 0); /* as one that has just left the list */
        task_list_init(&list);
        CHECK(!task_list_read(&list, &read, 1) && list.count <= 3);
        lay_list(read.address + layout.thread_tasks, tasks, 3);
        put(tasks[1] + layout.task_node + layout.node_next, tasks[0] + layout.task_node); /* round and round */
        CHECK(!task_list_read(&list, &read, 1));
        task_list_destroy(&list);
    }
}

TEST(the_words_of_a_task_are_read) {
    BOTH_VERSIONS {
        struct task task;
        uint64_t address = new_object(anchors.type_task);
        put(address + layout.task_waiter, 11), put(address + layout.task_coroutine, 12), put(address + layout.task_name, 13);
        put(address + layout.task_context, 14), put(address + layout.future_awaited_by, 15);
        CHECK(task_read(address, &task) && task.state == layout.future_pending && !task.awaited_by_is_set);
        CHECK(task.waiter == 11 && task.coroutine == 12 && task.name == 13 && task.context == 14 && task.awaited_by == 15);
        put_byte(address + layout.future_awaited_by_is_set, 1);
        CHECK(task_read(address, &task) && task.awaited_by_is_set);
    }
}
