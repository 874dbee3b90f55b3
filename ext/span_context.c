#include "span_context.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "cpython/layout.h"
#include "span_link.h"
#include "span_objects.h"
#include "thread_context.h"

struct runtime_context {
    PyObject_HEAD
    PyObject *context_var, *span_key, *current_tasks, *get_running_loop;
    struct span_source source;
    unsigned long long failures;
};

/* Not in the limited API, but exported by every CPython we support. */
static int (*context_var_get)(PyObject *, PyObject *, PyObject **);
static PyObject *(*context_var_set)(PyObject *, PyObject *);
static int (*context_var_reset)(PyObject *, PyObject *);
static int (*context_enter)(PyObject *);
static int (*context_exit)(PyObject *);

uint64_t span_context_view_type(void) { return (uint64_t)(uintptr_t)span_view_type; }
size_t span_context_view_offset(void) { return span_view_offset; }

static struct runtime_context *as_runtime(PyObject *object) { return (struct runtime_context *)(void *)object; }

/* ---- the running loop and its task. asyncio keeps the loop in the thread state, or in the dict of that (since 3.12), or there in a
   holder with the process id (3.11, where asking for the loop costs a system call). Which of these holds is seen from the first loop
   that asyncio itself names. */

static enum { NOT_SEEN_YET, IN_THREAD, IN_DICT, IN_HOLDER, ELSEWHERE } loop_place;
static PyTypeObject *holder_type; /* owned */
static PyObject *running_loop_name;
static pid_t own_pid;

static void note_pid(void) { own_pid = getpid(); }

void span_context_see_loop_again(void) {
    loop_place = NOT_SEEN_YET;
    Py_CLEAR(holder_type);
}

static uintptr_t word_at(const void *object, size_t offset) {
    uintptr_t word;
    memcpy(&word, (const char *)object + offset, sizeof word);
    return word;
}

static bool is_loop_in(const void *holder, const PyObject *loop) {
    pid_t pid;
    memcpy(&pid, (const char *)holder + layout.wrapper_inner + sizeof loop, sizeof pid);
    return word_at(holder, layout.wrapper_inner) == (uintptr_t)loop && pid == own_pid;
}

/* Borrowed, or NULL. */
static PyObject *in_thread_dict(void) {
    PyObject *dict = PyThreadState_GetDict();
    return dict != NULL ? PyDict_GetItemWithError(dict, running_loop_name) : NULL;
}

static void see_where(PyObject *get_running_loop, const PyObject *loop) {
    enum { HOLDER_SIZE = 32 };
    PyObject *value = in_thread_dict();
    loop_place = ELSEWHERE;
    if (layout.minor == 0 || Py_TYPE(get_running_loop) != &PyCFunction_Type) return;
    if (layout.thread_running_loop != LAYOUT_ABSENT) {
        if (word_at(PyThreadState_Get(), layout.thread_running_loop) == (uintptr_t)loop) loop_place = IN_THREAD;
    } else if (value == loop) {
        loop_place = IN_DICT;
    } else if (value != NULL && word_at(Py_TYPE(value), layout.type_basicsize) >= HOLDER_SIZE && is_loop_in(value, loop)) {
        holder_type = (PyTypeObject *)Py_NewRef((PyObject *)Py_TYPE(value));
        loop_place = IN_HOLDER;
    }
}

/* A new reference to the loop that runs in this thread; NULL, maybe with an exception, when none does. */
static PyObject *running_loop(struct runtime_context *self) {
    PyObject *loop = NULL;
    if (loop_place == IN_THREAD) {
        loop = (PyObject *)word_at(PyThreadState_Get(), layout.thread_running_loop);
    } else if (loop_place == IN_DICT || loop_place == IN_HOLDER) {
        PyObject *value = in_thread_dict();
        if (loop_place == IN_DICT) loop = value;
        else if (value != NULL && Py_TYPE(value) == holder_type) {
            loop = (PyObject *)word_at(value, layout.wrapper_inner);
            if (!is_loop_in(value, loop)) loop = NULL;
        }
    } else {
        loop = PyObject_CallNoArgs(self->get_running_loop);
        if (loop == Py_None) return Py_DECREF(loop), NULL;
        if (loop != NULL && loop_place == NOT_SEEN_YET) see_where(self->get_running_loop, loop);
        return loop;
    }
    return loop != Py_None ? Py_XNewRef(loop) : NULL;
}

/* Address of the task that runs in this thread, 0 outside a task. */
static int current_task(struct runtime_context *self, uint64_t *address) {
    PyObject *loop = running_loop(self), *key, *task;
    Py_ssize_t position = 0;
    *address = 0;
    if (loop == NULL) return PyErr_Occurred() ? -1 : 0;
    if (layout.thread_running_task != LAYOUT_ABSENT && loop_place == IN_THREAD) {
        *address = word_at(PyThreadState_Get(), layout.thread_running_task);
        Py_DECREF(loop);
        return 0;
    }
    /* Mostly one loop runs: then its task is the only item, and need not be looked up. */
    if (!PyDict_Next(self->current_tasks, &position, &key, &task) || key != loop)
        task = PyDict_GetItemWithError(self->current_tasks, loop);
    if (task != NULL && task != Py_None) *address = (uint64_t)(uintptr_t)task;
    Py_DECREF(loop);
    return task == NULL && PyErr_Occurred() ? -1 : 0;
}

/* Borrowed. Mostly the span is what a context was made for, and comes first. */
static PyObject *span_in(struct runtime_context *self, PyObject *context) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (PyDict_Next(context, &position, &key, &value) && key == self->span_key) return value;
    return PyDict_GetItemWithError(context, self->span_key);
}

/* What attach() sets: a new reference. Whatever goes wrong, the context itself is good enough; only what is no Exception, such as
   KeyboardInterrupt, passes through. owner: NULL for the task that runs now. inherit: from the view that is current now. */
static PyObject *view_or_context(struct runtime_context *self, PyObject *context, const uint64_t *owner, bool inherit) {
    const struct view_part *view = span_view_of(context);
    if (view == NULL && Py_TYPE(context) != span_context_type) return Py_NewRef(context);
    PyObject *span = span_in(self, context), *current = NULL, *result = NULL;
    uint64_t task = owner != NULL ? *owner : 0;
    if (span == NULL || span == Py_None) {
        if (span != NULL || !PyErr_Occurred()) result = Py_NewRef(context);
    } else {
        Py_INCREF(span);
        if (owner != NULL || current_task(self, &task) == 0) {
            if (view != NULL && view->fields.owner == task)
                result = Py_NewRef(context);
            else if (!inherit || context_var_get(self->context_var, NULL, &current) == 0)
                result = span_view_make(&self->source, context, span, current, task);
        }
        Py_DECREF(span);
        Py_XDECREF(current);
    }
    if (result == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        self->failures++;
        result = Py_NewRef(context);
    }
    return result;
}

/* For readers outside of the process, when that was asked for. */
static void show(PyObject *context) {
    const struct view_part *part = context != NULL ? span_view_of(context) : NULL;
    bool ended = part != NULL && part->cell != NULL && part->cell->fields.ended;
    thread_context_show(part != NULL && !ended ? &part->fields : NULL);
}

static PyObject *attach(PyObject *object, PyObject *context) {
    PyObject *view = view_or_context(as_runtime(object), context, NULL, true);
    if (view == NULL) return NULL;
    span_link_note_change();
    PyObject *token = context_var_set(as_runtime(object)->context_var, view);
    if (thread_context_is_on && token != NULL) show(view);
    Py_DECREF(view);
    return token;
}

static PyObject *get_current(PyObject *object, PyObject *Py_UNUSED(unused)) {
    PyObject *context = NULL, *context_var = as_runtime(object)->context_var;
    if (context_var_get(context_var, NULL, &context) < 0) return NULL;
    if (context == NULL) PyErr_SetObject(PyExc_LookupError, context_var);
    return context;
}

/* Tokens made before we were installed bring back plain contexts: those get their view here. */
static PyObject *detach(PyObject *object, PyObject *token) {
    struct runtime_context *self = as_runtime(object);
    PyObject *context = NULL, *view = NULL, *unused = NULL;
    span_link_note_change();
    if (context_var_reset(self->context_var, token) < 0 || context_var_get(self->context_var, NULL, &context) < 0) return NULL;
    bool plain = context != NULL && Py_TYPE(context) == span_context_type && PyDict_Size(context) != 0, failed = false;
    if (plain) {
        view = view_or_context(self, context, NULL, false);
        if (view != NULL && view != context) unused = context_var_set(self->context_var, view);
        failed = view == NULL || (view != context && unused == NULL);
    }
    if (thread_context_is_on && !failed) show(view != NULL ? view : context);
    Py_XDECREF(context), Py_XDECREF(view), Py_XDECREF(unused);
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyObject *view(PyObject *object, PyObject *arguments) {
    PyObject *context, *owner = NULL;
    if (!PyArg_ParseTuple(arguments, "O|O:view", &context, &owner)) return NULL;
    uint64_t address = owner != Py_None ? (uint64_t)(uintptr_t)owner : 0;
    return view_or_context(as_runtime(object), context, owner != NULL ? &address : NULL, owner == NULL);
}

/* The value is compared inside: while the view was made, the context may have been entered and left by its task. From context_enter
   to context_exit no Python code runs, so no other thread meets an entered context. */
static PyObject *backfill(PyObject *object, PyObject *arguments) {
    struct runtime_context *self = as_runtime(object);
    PyObject *context, *owner, *inside = NULL, *unused = NULL;
    if (!PyArg_ParseTuple(arguments, "OO:backfill", &context, &owner)) return NULL;
    PyObject *value = PyObject_CallMethod(context, "get", "O", self->context_var);
    if (value == NULL) return NULL;
    uint64_t address = owner != Py_None ? (uint64_t)(uintptr_t)owner : 0;
    PyObject *view = span_view_of(value) == NULL ? view_or_context(self, value, &address, false) : Py_NewRef(value);
    bool replaced = false;
    if (view != NULL && view != value && context_enter(context) == 0) {
        if (context_var_get(self->context_var, NULL, &inside) == 0 && inside == value) {
            unused = context_var_set(self->context_var, view);
            replaced = unused != NULL;
        }
        if (context_exit(context) < 0) replaced = false;
    }
    Py_DECREF(value);
    Py_XDECREF(view), Py_XDECREF(inside), Py_XDECREF(unused);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(replaced);
}

static void runtime_dealloc(PyObject *object) {
    struct runtime_context *self = as_runtime(object);
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->context_var), Py_XDECREF(self->span_key), Py_XDECREF(self->current_tasks);
    Py_XDECREF(self->get_running_loop), Py_XDECREF((PyObject *)self->source.non_recording);
    Py_XDECREF(self->source.notice), Py_XDECREF(self->source.noticed);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *runtime_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"context_var",   "context_type",     "span_key",              "non_recording_span",
                            "current_tasks", "get_running_loop", "notice_span_processor", NULL};
    PyObject *context_var, *context_type, *span_key, *non_recording, *current_tasks, *get_running_loop, *notice;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO!UO!O!OO", names, &context_var, &PyType_Type, &context_type, &span_key,
                                     &PyType_Type, &non_recording, &PyDict_Type, &current_tasks, &get_running_loop, &notice))
        return NULL;
    PyObject *current = NULL;
    if (context_var_get(context_var, Py_None, &current) < 0) return NULL; /* TypeError: no ContextVar */
    Py_DECREF(current);
    if (span_view_type_make((PyTypeObject *)context_type) < 0) return NULL;
    struct runtime_context *self = as_runtime(PyType_GenericAlloc(type, 0));
    if (self == NULL) return NULL;
    self->context_var = Py_NewRef(context_var);
    self->span_key = Py_NewRef(span_key);
    self->source.non_recording = (PyTypeObject *)Py_NewRef(non_recording);
    self->source.notice = Py_NewRef(notice);
    self->current_tasks = Py_NewRef(current_tasks);
    self->get_running_loop = Py_NewRef(get_running_loop);
    return (PyObject *)self;
}

static PyObject *get_context_var(PyObject *object, void *Py_UNUSED(closure)) { return Py_NewRef(as_runtime(object)->context_var); }
static PyObject *get_failures(PyObject *object, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(as_runtime(object)->failures);
}
static PyObject *get_open_spans(PyObject *Py_UNUSED(object), void *Py_UNUSED(closure)) { return PyLong_FromSize_t(span_open_count()); }
static PyObject *get_view_type(PyObject *Py_UNUSED(object), void *Py_UNUSED(closure)) { return Py_NewRef((PyObject *)span_view_type); }

static PyMethodDef runtime_methods[] = {
    {"attach", attach, METH_O, "Sets a context, or the view of it when it carries a span; returns the token for detach()."},
    {"get_current", get_current, METH_NOARGS, "The context that is set."},
    {"detach", detach, METH_O, "Sets what was set before the attach() that returned this token."},
    {"view", view, METH_VARARGS, "What attach() would set for a context, or would have set in the task given as owner."},
    {"backfill", backfill, METH_VARARGS, "Puts the view in a contextvars.Context that is not entered; RuntimeError when it is."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef runtime_properties[] = {
    {"_current_context", get_context_var, NULL, "The ContextVar, under the name that OpenTelemetry's own class gives it.", NULL},
    {"failures", get_failures, NULL, "How often a context was set without a view because the span could not be read.", NULL},
    {"open_spans", get_open_spans, NULL, "Spans that were activated and have not ended.", NULL},
    {"view_type", get_view_type, NULL, "The type of all views.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot runtime_slots[] = {
    {Py_tp_doc, "attach, get_current and detach over one ContextVar, with a view in place of a Context that carries a span."},
    {Py_tp_new, (void *)runtime_new},
    {Py_tp_dealloc, (void *)runtime_dealloc},
    {Py_tp_methods, runtime_methods},
    {Py_tp_getset, runtime_properties},
    {0, NULL},
};
static PyType_Spec runtime_spec = {"otel_asyncprof._native.ContextVarsRuntimeContext", sizeof(struct runtime_context), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, runtime_slots};

static PyObject *module_span_ended(PyObject *Py_UNUSED(module), PyObject *span_id) {
    uint64_t id = PyLong_AsUnsignedLongLong(span_id);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(span_ended(id));
}

static PyObject *id_bytes(const uint8_t *id, size_t size) { return PyBytes_FromStringAndSize((const char *)id, (Py_ssize_t)size); }

static PyObject *read_view(PyObject *Py_UNUSED(module), PyObject *context) {
    const struct view_part *part = span_view_of(context);
    if (part == NULL || part->fields.checksum != span_view_checksum(&part->fields)) return Py_NewRef(Py_None);
    const struct span_view *fields = &part->fields;
    PyObject *cell = Py_None;
    if (part->cell == NULL) Py_INCREF(cell);
    else cell = Py_BuildValue("{s:N,s:O,s:O}", "span_id", id_bytes(part->cell->fields.span_id, 8), "ended",
                              part->cell->fields.ended ? Py_True : Py_False, "name", part->cell->name ? part->cell->name : Py_None);
    if (cell == NULL) return NULL;
    return Py_BuildValue("{s:N,s:N,s:N,s:K,s:K,s:K,s:K,s:K,s:K,s:N}", "trace_id", id_bytes(fields->trace_id, 16), "span_id",
                         id_bytes(fields->span_id, 8), "local_root", id_bytes(fields->local_root, 8), "flags", fields->flags, "owner",
                         fields->owner, "spawner", fields->spawner, "cell_address", fields->cell, "spawner_cell",
                         fields->spawner_cell, "root_cell", fields->root_cell, "cell", cell);
}

static PyMethodDef module_functions[] = {
    {"span_ended", module_span_ended, METH_O, "Marks a span: from now on no sample is linked to it. True when it was known."},
    {"read_view", read_view, METH_O, "The fields of a view; None for a context that is none."},
    {NULL, NULL, 0, NULL},
};

static bool find_function(const char *name, void *function) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL) PyErr_Format(PyExc_ImportError, "this interpreter does not export %s", name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

int span_context_init(PyObject *module) {
    if (!find_function("PyContextVar_Get", &context_var_get) || !find_function("PyContextVar_Set", &context_var_set) ||
        !find_function("PyContextVar_Reset", &context_var_reset) || !find_function("PyContext_Enter", &context_enter) ||
        !find_function("PyContext_Exit", &context_exit) || span_objects_init(module) < 0 ||
        PyModule_AddFunctions(module, module_functions) < 0)
        return -1;
    if (running_loop_name == NULL) {
        running_loop_name = PyUnicode_InternFromString("__asyncio_running_event_loop__");
        note_pid();
        pthread_atfork(NULL, NULL, note_pid);
    }
    PyObject *type = PyType_FromSpec(&runtime_spec);
    if (type == NULL || running_loop_name == NULL) return -1;
    int result = PyModule_AddObjectRef(module, "ContextVarsRuntimeContext", type);
    Py_DECREF(type);
    return result;
}
