#include "task_switch.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "span_objects.h"
#include "thread_context.h"

/* From 3.14 on CPython tells of each switch of contexts, for two nanoseconds; a task's context is entered at each of its steps. */
enum { CONTEXT_SWITCHED = 1 };
typedef int (*context_callback)(int event, PyObject *context);
static int (*add_context_watcher)(context_callback);
static int (*clear_context_watcher)(int watcher);
static int (*get_variable)(PyObject *variable, PyObject *otherwise, PyObject **value);

/* Before, asyncio keeps the running task of each loop in a dict, and CPython tells of each change of a watched dict (since 3.12). None
   of this is in the limited API. */
enum { DICT_ADDED = 0, DICT_MODIFIED = 1 };
typedef int (*dict_callback)(int event, PyObject *dict, PyObject *key, PyObject *value);
static int (*add_watcher)(dict_callback);
static int (*watch)(int watcher, PyObject *dict);
static int (*unwatch)(int watcher, PyObject *dict);

static PyObject *context_var;   /* owned; NULL: off */
static PyObject *current_tasks; /* owned; NULL: off, or contexts are watched */
static int context_watcher = -1;
static PyObject *name_get_context, *name_get;
static int watcher = -1; /* kept for good: there are eight in an interpreter */
static unsigned long switches;

static void show_value(PyObject *value) {
    const struct view_part *view = value != NULL ? span_view_of(value) : NULL;
    bool ended = view != NULL && view->cell != NULL && view->cell->fields.ended;
    thread_context_show(view != NULL && !ended ? &view->fields : NULL);
}

static void show_context(void) {
    PyObject *value = NULL;
    if (get_variable(context_var, NULL, &value) < 0) PyErr_Clear();
    show_value(value);
    Py_XDECREF(value);
}

/* The thread's context is another one, or none. An exception may be on its way through: rarely, so it is put aside only then. */
static int context_switched(int event, PyObject *Py_UNUSED(context)) {
    if (event != CONTEXT_SWITCHED || context_var == NULL) return 0;
    PyObject *type, *error, *traceback;
    switches++;
    if (PyErr_Occurred() == NULL) return show_context(), 0;
    PyErr_Fetch(&type, &error, &traceback);
    show_context();
    PyErr_Restore(type, error, traceback);
    return 0;
}

/* The view in the task's own context, which in an eager step is not the one that is entered. Any error: no span. */
static void show_task(PyObject *task) {
    PyObject *context = PyObject_CallMethodObjArgs(task, name_get_context, NULL), *value = NULL;
    if (context != NULL) value = PyObject_CallMethodObjArgs(context, name_get, context_var, NULL);
    if (value == NULL) PyErr_Clear();
    show_value(value);
    Py_XDECREF(context), Py_XDECREF(value);
}

static int task_switched(int event, PyObject *dict, PyObject *Py_UNUSED(loop), PyObject *task) {
    if (dict != current_tasks) return 0;
    switches++;
    if ((event != DICT_ADDED && event != DICT_MODIFIED) || task == NULL || task == Py_None) return thread_context_show(NULL), 0;
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    show_task(task);
    PyErr_Restore(type, error, traceback);
    return 0;
}

static bool find(const char *name, void *function) {
    void *address = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static void forget(void) {
    if (current_tasks != NULL && unwatch(watcher, current_tasks) < 0) PyErr_Clear();
    if (context_watcher >= 0 && clear_context_watcher(context_watcher) < 0) PyErr_Clear();
    context_watcher = -1;
    Py_CLEAR(context_var);
    Py_CLEAR(current_tasks);
}

static bool publish(PyObject *payload) {
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(payload, &bytes, &size) < 0) return PyErr_Clear(), false;
    return thread_context_publish((const uint8_t *)bytes, (size_t)size);
}

/* Whether asyncio's tasks are seen to change: asked of asyncio itself, as other versions keep them elsewhere. */
static bool changes_are_seen(PyObject *enter_task, PyObject *leave_task) {
    unsigned long before = switches;
    PyObject *entered = PyObject_CallFunctionObjArgs(enter_task, Py_True, Py_True, NULL);
    PyObject *left = entered != NULL ? PyObject_CallFunctionObjArgs(leave_task, Py_True, Py_True, NULL) : NULL;
    PyErr_Clear();
    Py_XDECREF(entered), Py_XDECREF(left);
    return left != NULL && switches == before + 2;
}

static bool can_watch_contexts(void) {
    return find("PyContext_AddWatcher", &add_context_watcher) && find("PyContext_ClearWatcher", &clear_context_watcher) &&
           find("PyContextVar_Get", &get_variable);
}

/* NULL, or why contexts are not watched. One is entered and left to see whether it is told. */
static const char *watch_contexts(void) {
    if ((context_watcher = add_context_watcher(context_switched)) < 0) return PyErr_Clear(), "all of CPython's context watchers are taken";
    unsigned long before = switches;
    PyObject *module = PyImport_ImportModule("contextvars"), *context = NULL, *done = NULL;
    if (module != NULL) context = PyObject_CallMethod(module, "copy_context", NULL);
    if (context != NULL) done = PyObject_CallMethod(context, "run", "O", (PyObject *)&PyLong_Type);
    PyErr_Clear();
    Py_XDECREF(module), Py_XDECREF(context), Py_XDECREF(done);
    return switches == before + 2 ? NULL : "this version of CPython does not tell of changes";
}

/* The same of asyncio's running tasks. */
static const char *watch_tasks(PyObject *tasks, PyObject *enter_task, PyObject *leave_task) {
    if (!find("PyDict_AddWatcher", &add_watcher) || !find("PyDict_Watch", &watch) || !find("PyDict_Unwatch", &unwatch))
        return "this version of CPython does not tell of changes";
    if (watcher < 0 && (watcher = add_watcher(task_switched)) < 0) return PyErr_Clear(), "all of CPython's dict watchers are taken";
    if (watch(watcher, tasks) < 0) return PyErr_Clear(), "this version of CPython does not tell of changes";
    current_tasks = Py_NewRef(tasks);
    return changes_are_seen(enter_task, leave_task) ? NULL : "asyncio keeps its running tasks elsewhere";
}

static PyObject *start(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *variable, *tasks, *enter_task, *leave_task, *payload;
    if (!PyArg_ParseTuple(arguments, "OO!OOO!:thread_context_start", &variable, &PyDict_Type, &tasks, &enter_task, &leave_task,
                          &PyBytes_Type, &payload))
        return NULL;
    forget();
    context_var = Py_NewRef(variable);
    const char *reason = can_watch_contexts() ? watch_contexts() : watch_tasks(tasks, enter_task, leave_task);
    if (!reason && !publish(payload)) reason = "the system does not let memory be named";
    if (!reason) return Py_NewRef(Py_None);
    forget();
    return PyUnicode_FromString(reason);
}

static PyObject *update(PyObject *Py_UNUSED(module), PyObject *payload) {
    return PyBool_FromLong(thread_context_is_on && PyBytes_Check(payload) && publish(payload));
}

static PyObject *stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    forget();
    thread_context_withdraw();
    return Py_NewRef(Py_None);
}

static PyObject *after_fork_in_child(PyObject *Py_UNUSED(module), PyObject *payload) {
    thread_context_after_fork_in_child();
    return PyBool_FromLong(context_var != NULL && publish(payload));
}

static PyMethodDef functions[] = {
    {"thread_context_start", start, METH_VARARGS, "Shows the span of the running task to readers outside; or says why not."},
    {"thread_context_update", update, METH_O, "Replaces the process context."},
    {"thread_context_stop", stop, METH_NOARGS, "Shows nothing any more."},
    {"thread_context_after_fork_in_child", after_fork_in_child, METH_O, "Shows the child's process context."},
    {NULL, NULL, 0, NULL},
};

int task_switch_init(PyObject *module) {
    if (name_get_context == NULL) name_get_context = PyUnicode_InternFromString("get_context");
    if (name_get == NULL) name_get = PyUnicode_InternFromString("get");
    if (name_get_context == NULL || name_get == NULL) return -1;
    return PyModule_AddFunctions(module, functions);
}
