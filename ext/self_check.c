#include "self_check.h"

#include <stdlib.h>

#include "awaited.h"
#include "awaiters.h"
#include "code_table.h"
#include "coroutine.h"
#include "cpython/layout.h"
#include "read_object.h"
#include "span_link.h"
#include "stack_table.h"
#include "task_list.h"
#include "task_set.h"
#include "tasks.h"
#include "threads.h"
#include "unwind.h"

#define TABLE_BYTES (16u << 20)

/* What a reader needs to give names and lines; made for one call. */
struct workspace {
    struct code_table *codes;
    struct stack_table *stacks;
    struct unwind_buffer *unwind;
    struct await_chain chain;
    struct thread_state *threads;
};

static void workspace_free(struct workspace *space) {
    code_table_destroy(space->codes);
    stack_table_destroy(space->stacks);
    free(space->unwind);
    free(space->chain.frames);
    free(space->threads);
}

static bool workspace_make(struct workspace *space) {
    if (!anchors.interpreter) {
        PyErr_SetString(PyExc_RuntimeError, "prepare() comes first");
        *space = (struct workspace){0};
        return false;
    }
    *space = (struct workspace){
        .codes = code_table_new(""),
        .stacks = stack_table_new(TABLE_BYTES),
        .unwind = malloc(sizeof *space->unwind),
        .chain = {.frames = malloc(MAX_AWAIT_CHAIN * sizeof(struct raw_frame)), .capacity = MAX_AWAIT_CHAIN},
        .threads = malloc(MAX_THREADS * sizeof *space->threads),
    };
    if (space->codes && space->stacks && space->unwind && space->chain.frames && space->threads) return true;
    PyErr_NoMemory();
    return false;
}

/* Appends (function, file, line). */
static bool append_frame(struct workspace *space, const struct raw_frame *raw, PyObject *frames) {
    struct resolved_frame frame;
    size_t name_size, file_size;
    if (!code_table_resolve(space->codes, space->stacks, raw, &frame)) return true;
    struct stack_table_view view = stack_table_view(space->stacks);
    struct location location = view.locations[frame.location];
    struct function function = view.functions[location.function];
    const char *name = stack_table_string_at(space->stacks, function.name, &name_size);
    const char *file = stack_table_string_at(space->stacks, function.filename, &file_size);
    PyObject *item = Py_BuildValue("(NNI)", PyUnicode_FromStringAndSize(name, (Py_ssize_t)name_size),
                                   PyUnicode_FromStringAndSize(file, (Py_ssize_t)file_size), location.line);
    if (!item) return false;
    int appended = PyList_Append(frames, item);
    Py_DECREF(item);
    return appended == 0;
}

/* Not told by ids: in 3.11 the state of a thread that could not be started stays in the list, with those of its maker. */
static bool is_current(const struct thread_state *thread) { return thread->address == (uint64_t)(uintptr_t)PyThreadState_Get(); }

/* The calling thread's stack, root first, as the sampler would read it. */
static PyObject *read_thread(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    struct workspace space;
    PyObject *frames = workspace_make(&space) ? PyList_New(0) : NULL;
    if (frames) {
        bool whole;
        size_t count = threads_read(space.threads, MAX_THREADS, &whole);
        for (size_t i = 0; i < count; i++) {
            if (!is_current(&space.threads[i])) continue;
            size_t left = 0;
            unwind_thread(&space.threads[i], space.unwind, &left);
            for (; left > 0 && frames; left--)
                if (!append_frame(&space, &space.unwind->frames[left - 1], frames)) Py_CLEAR(frames);
            break;
        }
    }
    workspace_free(&space);
    return frames;
}

/* Whether the calling thread holds the interpreter's lock, as the sampler would read it: it does. */
static PyObject *read_holds_gil(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    struct workspace space;
    bool holds = false;
    if (workspace_make(&space)) {
        bool whole;
        size_t count = threads_read(space.threads, MAX_THREADS, &whole);
        for (size_t i = 0; i < count; i++)
            if (is_current(&space.threads[i])) holds = threads_gil_holder() == space.threads[i].address;
    }
    workspace_free(&space);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(holds);
}

/* What the sampler reads of the calling thread besides its stack: addresses of its context, its loop and the loop's task. */
static PyObject *read_moment(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    struct thread_state thread;
    uint64_t task = 0;
    if (!anchors.interpreter || !threads_read_one((uint64_t)(uintptr_t)PyThreadState_Get(), &thread)) {
        PyErr_SetString(PyExc_RuntimeError, "the state of this thread cannot be read");
        return NULL;
    }
    uint64_t loop = threads_running_loop(&thread);
    threads_read_task(&thread, loop, &task);
    return Py_BuildValue("(KKKK)", thread.ident, thread.context, loop, task);
}

static bool append_address(PyObject *addresses, uint64_t address) {
    PyObject *item = PyLong_FromUnsignedLongLong(address);
    bool appended = item && PyList_Append(addresses, item) == 0;
    Py_XDECREF(item);
    return appended;
}

static bool meet_all(struct task_table *table, const struct task_set *set, PyObject *addresses) {
    for (uint64_t slot = 0; slot < set->slots; slot += TASK_SET_SLOTS_PER_READ) {
        uint64_t found[TASK_SET_SLOTS_PER_READ];
        size_t count = task_set_read(set, slot, TASK_SET_SLOTS_PER_READ, found);
        for (size_t i = 0; i < count; i++) {
            uint32_t before = table->count;
            tasks_meet(table, found[i]);
            if (table->count > before && !append_address(addresses, found[i])) return false;
        }
    }
    return true;
}

static PyObject *read_tasks(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    struct task_table table;
    struct task_list list;
    struct workspace space;
    PyObject *addresses = workspace_make(&space) ? PyList_New(0) : NULL;
    task_table_init(&table);
    task_list_init(&list);
    struct task_set scheduled = task_set_scheduled(), python = task_set_python(), eager = task_set_eager(), listed = {0};
    if (addresses && task_list_exists()) {
        bool whole;
        task_list_read(&list, space.threads, threads_read(space.threads, MAX_THREADS, &whole));
        listed = task_set_of_list(list.tasks, list.count);
    }
    const struct task_set *const sets[] = {&scheduled, &python, &eager, &listed};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0] && addresses; i++)
        if (!meet_all(&table, sets[i], addresses)) Py_CLEAR(addresses);
    task_table_destroy(&table);
    task_list_destroy(&list);
    workspace_free(&space);
    return addresses;
}

/* While we hold the GIL the lists do not change, and what is in them lives: a task leaves its list before its memory is given back. */
static PyObject *listed_tasks(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    if (!anchors.interpreter || !task_list_exists()) return PyList_New(0);
    struct workspace space;
    struct task_list list;
    PyObject *tasks = workspace_make(&space) ? PyList_New(0) : NULL;
    task_list_init(&list);
    if (tasks) {
        bool whole;
        task_list_read(&list, space.threads, threads_read(space.threads, MAX_THREADS, &whole));
    }
    for (uint32_t i = 0; i < list.count && tasks; i++)
        if (PyList_Append(tasks, (PyObject *)(uintptr_t)list.tasks[i]) != 0) Py_CLEAR(tasks);
    task_list_destroy(&list);
    workspace_free(&space);
    return tasks;
}

static PyObject *describe_task(struct workspace *space, const struct task *task) {
    char name[MAX_STRING_BYTES];
    size_t name_size = 0;
    struct awaiter awaiting[MAX_AWAITERS];
    PyObject *frames = PyList_New(0), *awaiters = PyList_New(0);
    coroutine_walk(&space->chain, task->coroutine);
    for (size_t i = 0; i < space->chain.count && frames; i++)
        if (!append_frame(space, &space->chain.frames[i], frames)) Py_CLEAR(frames);
    bool by_loop;
    size_t n_awaiters = awaiters_find(task, NULL, awaiting, &by_loop);
    for (size_t i = 0; i < n_awaiters && awaiters; i++)
        if (!append_address(awaiters, awaiting[i].task)) Py_CLEAR(awaiters);
    if (!task_read_name(task, name, &name_size)) name_size = 0;
    bool waiting = task->waiter && awaited_is_pending(task->waiter);
    if (frames && awaiters)
        return Py_BuildValue("{s:N,s:N,s:N,s:O,s:O,s:K}", "name", PyUnicode_FromStringAndSize(name, (Py_ssize_t)name_size), "frames",
                             frames, "awaiters", awaiters, "waiting", waiting ? Py_True : Py_False, "awaits_tasks",
                             waiting && awaited_are_tasks(task->waiter, &space->chain) ? Py_True : Py_False, "context", task->context);
    Py_XDECREF(frames);
    Py_XDECREF(awaiters);
    return NULL;
}

static PyObject *read_task(PyObject *Py_UNUSED(module), PyObject *address) {
    struct workspace space;
    struct task task;
    PyObject *description = NULL;
    uint64_t where = PyLong_AsUnsignedLongLong(address);
    if (PyErr_Occurred()) return NULL;
    if (workspace_make(&space)) {
        if (task_read(where, &task)) description = describe_task(&space, &task);
        else PyErr_SetString(PyExc_ValueError, "there is no task at this address");
    }
    workspace_free(&space);
    return description;
}

static PyObject *read_link(PyObject *Py_UNUSED(module), PyObject *address) {
    struct span_view view;
    uint64_t context = PyLong_AsUnsignedLongLong(address);
    if (PyErr_Occurred()) return NULL;
    if (!span_link_learn_nodes() || !span_link_read(context, &view)) return Py_NewRef(Py_None);
    return Py_BuildValue("(NN)", PyBytes_FromStringAndSize((const char *)view.trace_id, (Py_ssize_t)sizeof view.trace_id),
                         PyBytes_FromStringAndSize((const char *)view.span_id, (Py_ssize_t)sizeof view.span_id));
}

static PyMethodDef functions[] = {
    {"read_thread", read_thread, METH_NOARGS, "The calling thread's stack as the sampler reads it: (function, file, line), root first."},
    {"read_holds_gil", read_holds_gil, METH_NOARGS, "Whether the sampler sees that the calling thread holds the interpreter's lock."},
    {"read_moment", read_moment, METH_NOARGS, "(ident, context, running loop, running task) of the calling thread."},
    {"read_tasks", read_tasks, METH_NOARGS, "Addresses of the live tasks of all loops."},
    {"listed_tasks", listed_tasks, METH_NOARGS, "The tasks that asyncio keeps in lists; none before 3.14."},
    {"read_task", read_task, METH_O, "What the sampler reads of the task at an address."},
    {"read_link", read_link, METH_O, "(trace id, span id) of the contextvars.Context at an address; None without a span."},
    {NULL, NULL, 0, NULL},
};

int self_check_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
