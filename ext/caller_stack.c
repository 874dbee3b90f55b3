#include "caller_stack.h"

#include <string.h>

#include "awaiters.h"
#include "coroutine.h"
#include "cpython/layout.h"
#include "greenlets.h"
#include "libraries.h"
#include "read_object.h"
#include "safe_copy.h"
#include "tasks.h"
#include "threads.h"
#include "unwind.h"

/* Bounds of a stack's three parts, of which the frames nearest to the leaf are kept. */
#define MAX_ENTRY_FRAMES 64    /* what started the loop */
#define MAX_AWAITING_FRAMES 64 /* the tasks that await the one that runs */
#define MAX_OWN_FRAMES 96      /* the task, or a thread without one */
#define MAX_AWAITING 32        /* tasks in a row */
#define MAX_CALLER_FRAMES (MAX_ENTRY_FRAMES + MAX_AWAITING_FRAMES + MAX_OWN_FRAMES + 3)

/* A frame whose code object is held. NULL: this many frames are left out here. */
struct caller_frame {
    PyObject *code;
    unsigned offset; /* of the instruction executing now, in bytes; the number of frames left out */
};

struct caller_stack {
    struct caller_frame frames[MAX_CALLER_FRAMES]; /* root first */
    size_t count, n_entry;
};

/* Work space. Used under the GIL only, and no Python code runs, nor is memory asked for, between its first and its last use. */
static struct unwind_buffer unwind;
static struct raw_frame chain_frames[MAX_AWAIT_CHAIN];

static bool is_code(uint64_t address) {
    uint64_t type;
    return address > RAW_FRAME_TRUNCATED && safe_copy_word(&type, address + OBJECT_TYPE) && type == anchors.type_code;
}

static void push(struct caller_stack *stack, const struct raw_frame *raw) {
    if (stack->count == MAX_CALLER_FRAMES || !is_code(raw->code)) return; /* 3.13: an entry frame has no code */
    uint64_t begin = raw->code + layout.code_instructions;
    PyObject *code = (PyObject *)(uintptr_t)raw->code;
    Py_INCREF(code); /* alive: a frame on this thread's stack, or of a suspended coroutine, holds it, and we hold the GIL */
    stack->frames[stack->count++] = (struct caller_frame){code, raw->instruction > begin ? (unsigned)(raw->instruction - begin) : 0};
}

static void push_omitted(struct caller_stack *stack, size_t n_omitted) {
    if (n_omitted && stack->count < MAX_CALLER_FRAMES) stack->frames[stack->count++] = (struct caller_frame){NULL, (unsigned)n_omitted};
}

/* Frames [leaf, root) of the thread's stack, which has them leaf first. */
static void push_thread_frames(struct caller_stack *stack, size_t leaf, size_t root, size_t most) {
    size_t end = root - leaf > most ? leaf + most : root;
    push_omitted(stack, root - end);
    while (end-- > leaf) push(stack, &unwind.frames[end]);
}

/* Who awaits the task, who awaits that one, and so on; with several awaiters the first. */
static size_t find_awaiting(const struct task *task, struct task awaiting[MAX_AWAITING]) {
    size_t count = 0;
    while (count < MAX_AWAITING) {
        struct awaiter awaiters[MAX_AWAITERS];
        bool by_loop;
        const struct task *last = count ? &awaiting[count - 1] : task;
        if (!awaiters_find(last, NULL, awaiters, &by_loop) || !task_read(awaiters[0].task, &awaiting[count])) break;
        bool met = awaiting[count].address == task->address;
        for (size_t i = 0; i < count; i++) met |= awaiting[i].address == awaiting[count].address;
        if (met) break; /* a cycle ends once round */
        count++;
    }
    return count;
}

static size_t count_frames(const struct task *awaiting, size_t count) {
    size_t n_frames = 0;
    for (size_t i = 0; i < count; i++) {
        struct await_chain chain = {.frames = chain_frames, .capacity = MAX_AWAIT_CHAIN};
        coroutine_walk(&chain, awaiting[i].coroutine);
        n_frames += chain.count;
    }
    return n_frames;
}

static void push_awaiting(struct caller_stack *stack, const struct task *task) {
    struct task awaiting[MAX_AWAITING];
    size_t count = find_awaiting(task, awaiting), n_frames = count_frames(awaiting, count);
    size_t omitted = n_frames > MAX_AWAITING_FRAMES ? n_frames - MAX_AWAITING_FRAMES : 0;
    push_omitted(stack, omitted);
    while (count-- > 0) {
        struct await_chain chain = {.frames = chain_frames, .capacity = MAX_AWAIT_CHAIN};
        coroutine_walk(&chain, awaiting[count].coroutine);
        for (size_t i = 0; i < chain.count; i++) {
            if (omitted) omitted--;
            else push(stack, &chain_frames[i]);
        }
    }
}

/* The task that the thread's loop runs now. */
static bool read_current_task(const struct thread_state *thread, struct task *task) {
    uint64_t loop = threads_running_loop(thread), address;
    return threads_read_task(thread, loop, &address) && address && task_read(address, task);
}

/* How many frames, from the leaf, belong to the task: up to the outermost coroutine on the stack, which is its own, or for a task in
   an eager first step that of the task that made it. */
static size_t find_root_of_task(size_t n_raw) {
    while (n_raw > 0 && !unwind.frames[n_raw - 1].generator) n_raw--;
    return n_raw;
}

/* Sync code that runs in a greenlet for the task has a stack of its own. */
static bool complete_stack(const struct thread_state *thread, const struct task *task, size_t *n_raw) {
    if (!greenlets_are_known() || greenlets_complete(task->coroutine, unwind.frames, MAX_THREAD_FRAMES, n_raw)) return true;
    libraries_note_greenlet(); /* may run Python code: the work space is filled anew */
    if (!unwind_thread(thread, &unwind, n_raw)) return false;
    greenlets_complete(task->coroutine, unwind.frames, MAX_THREAD_FRAMES, n_raw);
    return true;
}

static bool take(struct caller_stack *stack) {
    struct thread_state thread;
    struct task task;
    size_t n_raw = 0;
    stack->count = stack->n_entry = 0;
    uint64_t faults = safe_copy_faults();
    if (safe_copy_method() != SAFE_COPY_GUARDED) return false; /* some hundred reads: by system calls they would take a millisecond */
    if (!anchors.interpreter || !threads_read_one((uint64_t)(uintptr_t)PyThreadState_Get(), &thread)) return false;
    if (!unwind_thread(&thread, &unwind, &n_raw)) return false;
    if (!read_current_task(&thread, &task)) return push_thread_frames(stack, 0, n_raw, MAX_OWN_FRAMES), true;
    if (!complete_stack(&thread, &task, &n_raw)) return false;
    size_t root = find_root_of_task(n_raw);
    push_thread_frames(stack, root, n_raw, MAX_ENTRY_FRAMES);
    stack->n_entry = stack->count;
    if (root > 0 && unwind.frames[root - 1].generator == task.coroutine) push_awaiting(stack, &task);
    push_thread_frames(stack, 0, root, MAX_OWN_FRAMES);
    return safe_copy_faults() == faults; /* else something may be missing from the middle */
}

/* (number of frames that started the loop, code, offset, code, offset, …) */
static PyObject *build(const struct caller_stack *stack) {
    PyObject *result = PyTuple_New((Py_ssize_t)(1 + 2 * stack->count));
    if (!result) return NULL;
    PyTuple_SetItem(result, 0, PyLong_FromSize_t(stack->n_entry));
    for (size_t i = 0; i < stack->count; i++) {
        PyObject *code = stack->frames[i].code;
        PyTuple_SetItem(result, (Py_ssize_t)(1 + 2 * i), Py_NewRef(code ? code : Py_None));
        PyTuple_SetItem(result, (Py_ssize_t)(2 + 2 * i), PyLong_FromUnsignedLong(stack->frames[i].offset));
    }
    if (PyErr_Occurred()) Py_CLEAR(result);
    return result;
}

static PyObject *caller_stack(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    struct caller_stack stack;
    PyObject *result = take(&stack) ? build(&stack) : Py_NewRef(Py_None);
    for (size_t i = 0; i < stack.count; i++) Py_XDECREF(stack.frames[i].code);
    return result;
}

static PyMethodDef functions[] = {
    {"caller_stack", caller_stack, METH_NOARGS,
     "The calling thread's stitched stack, root first: (number of entry frames, code, offset, code, offset, ...)."},
    {NULL, NULL, 0, NULL},
};

int caller_stack_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
