/* The extension as Python sees it: arguments in, one call, a result out. Compiled against the limited API of 3.11,
   without formats that hold '#' (headers of 3.13 and later give them another meaning than earlier interpreters do), and without
   Py_RETURN_NONE and its like (headers of 3.12 take None for immortal, which it is not in 3.11). */
#include <Python.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "asyncio_table.h"
#include "caller_stack.h"
#include "cpython/debug_offsets.h"
#include "cpython/layout.h"
#include "drop.h"
#include "exit_functions.h"
#include "libraries.h"
#include "os/os.h"
#include "otlp_encode.h"
#include "reading.h"
#include "sampler.h"
#include "self_check.h"
#include "span_context.h"
#include "task_switch.h"

/* Anchors that only C can give: the interpreter, and where 3.11 keeps the running loop of a thread. */
static int find_native_anchors(void) {
    anchors.interpreter = (uint64_t)(uintptr_t)PyInterpreterState_Get();
    anchors.type_span_view = span_context_view_type();
    anchors.span_view_offset = span_context_view_offset();
    anchors.type_loop_holder = 0;
    if (layout.minor != 11) return 0;
    /* Setting the running loop to what it is makes sure that there is a holder. */
    PyObject *asyncio = PyImport_ImportModule("_asyncio"), *loop = NULL, *done = NULL;
    if (asyncio) loop = PyObject_CallMethod(asyncio, "_get_running_loop", NULL);
    if (loop) done = PyObject_CallMethod(asyncio, "_set_running_loop", "O", loop);
    PyObject *dict = PyThreadState_GetDict(), *holder = NULL;
    if (done && dict) holder = PyDict_GetItemString(dict, "__asyncio_running_event_loop__");
    if (holder) anchors.type_loop_holder = (uint64_t)(uintptr_t)Py_TYPE(holder);
    Py_XDECREF(asyncio), Py_XDECREF(loop), Py_XDECREF(done);
    return done ? 0 : -1;
}

static int refuse(const char *reason) {
    PyErr_SetString(PyExc_RuntimeError, reason);
    return -1;
}

static int select_layout(void) {
    unsigned long minor = Py_Version >> 16 & 0xff;
    span_context_see_loop_again();
    if (Py_Version >> 24 != 3 || !layout_select((unsigned)minor)) {
        PyErr_Format(PyExc_RuntimeError, "there is no layout table for CPython %lu.%lu", Py_Version >> 24, minor);
        return -1;
    }
    const uint8_t *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime"); /* not in the limited API, but exported by every build */
    if (minor < 13) return 0;
    const char *refusal = runtime ? debug_offsets_apply(runtime, (uint32_t)Py_Version) : "the interpreter hides _PyRuntime";
    return refusal ? refuse(refusal) : 0;
}

/* From 3.14 on: the tasks of a thread, among other things, stand where asyncio's module says. */
static int ask_asyncio(void) {
    if (layout.thread_tasks == LAYOUT_ABSENT) return 0;
    const char *refusal = sampler_is_running() ? NULL : reading_begin_self_check();
    if (refusal) return refuse(refusal);
    bool applied = asyncio_table_apply(anchors.task_wakeup, anchors.type_task);
    reading_end_self_check();
    return applied ? 0 : refuse("asyncio's own table of offsets (AsyncioDebug) is not in its module, or is not what it was");
}

static int take_anchors(PyObject *given) {
    uint64_t *place = (uint64_t *)(void *)&anchors;
    if (select_layout() != 0) return -1;
    memset(&anchors, 0, sizeof anchors);
    for (unsigned i = 0; i < anchor_count; i++) {
        PyObject *address = PyDict_GetItemString(given, anchor_names[i]);
        if (!address) continue;
        place[i] = PyLong_AsUnsignedLongLong(address);
        if (PyErr_Occurred()) return -1;
        if (place[i] == (uint64_t)(uintptr_t)Py_None && strcmp(anchor_names[i], "none") != 0) place[i] = 0; /* not in this version */
    }
    /* The builtin was given; what tells it from others is its definition. */
    if (anchors.task_wakeup) memcpy(&anchors.task_wakeup, (char *)(uintptr_t)anchors.task_wakeup + layout.builtin_definition, 8);
    return ask_asyncio() == 0 ? find_native_anchors() : -1;
}

static PyObject *prepare(PyObject *Py_UNUSED(module), PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"anchors", NULL};
    PyObject *given;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "$O!:prepare", names, &PyDict_Type, &given)) return NULL;
    if (sampler_is_running()) {
        PyErr_SetString(PyExc_RuntimeError, "the sampler runs already");
        return NULL;
    }
    if (take_anchors(given) != 0) return NULL;
    return Py_NewRef(Py_None);
}

static PyObject *begin_self_check(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    const char *refusal = sampler_is_running() ? NULL : reading_begin_self_check();
    if (!refusal) return Py_NewRef(Py_None);
    PyErr_SetString(PyExc_RuntimeError, refusal);
    return NULL;
}

static PyObject *end_self_check(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    reading_end_self_check();
    return Py_NewRef(Py_None);
}

static PyObject *start(PyObject *Py_UNUSED(module), PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"rate",       "max_frames", "link_local_root", "link_unsampled",    "loop_frames", "timeline",
                            "attributes", "features",   "anchors",         "asyncio_directory", "cpu_budget",  "no_signal_handlers",
                            "tasks_per_tick", NULL};
    int rate, max_frames, local_root, unsampled, loop_frames, timeline, no_handlers;
    unsigned attributes, features, max_slots;
    double cpu_budget;
    PyObject *given;
    const char *directory;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "$iippppIIO!sdpI:start", names, &rate, &max_frames, &local_root, &unsampled,
                                     &loop_frames, &timeline, &attributes, &features, &PyDict_Type, &given, &directory, &cpu_budget,
                                     &no_handlers, &max_slots))
        return NULL;
    if (rate < 1 || rate > 100000 || max_frames < 3 || !(cpu_budget > 0)) {
        PyErr_SetString(PyExc_ValueError, "rate must be 1 to 100000, max_frames at least 3, cpu_budget above 0");
        return NULL;
    }
    if (sampler_is_running()) {
        PyErr_SetString(PyExc_RuntimeError, "the sampler runs already");
        return NULL;
    }
    if (take_anchors(given) != 0) return NULL;
    struct tick_options options = {
        .period_ns = 1000000000ull / (unsigned)rate,
        .max_frames = (uint32_t)max_frames,
        .attributes = attributes,
        .features = features,
        .max_slots = max_slots,
        .link_local_root = local_root,
        .link_unsampled = unsampled,
        .loop_frames = loop_frames,
        .timeline = timeline,
    };
    const char *refusal = sampler_start(&options, directory, cpu_budget, no_handlers);
    if (refusal) {
        PyErr_SetString(PyExc_RuntimeError, refusal);
        return NULL;
    }
    return Py_NewRef(Py_None);
}

static PyObject *stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    Py_BEGIN_ALLOW_THREADS
    sampler_stop();
    Py_END_ALLOW_THREADS
    return Py_NewRef(Py_None);
}

static PyObject *is_running(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) { return PyBool_FromLong(sampler_is_running()); }

static void random_bytes(void *bytes, size_t size) {
    /* Up to 256 bytes come whole. Without entropy the ids stay zero, which says "no id". */
    if (getrandom(bytes, size, 0) != (ssize_t)size) memset(bytes, 0, size);
}

#define MAX_REQUESTS 64

/* Requests are copied as they come: the GIL is not held, so that they become objects only afterwards. */
struct requests {
    struct { uint8_t *bytes; size_t size; } items[MAX_REQUESTS];
    size_t count;
};

static bool keep_request(void *context, const uint8_t *bytes, size_t size) {
    struct requests *requests = context;
    if (requests->count == MAX_REQUESTS) return false;
    uint8_t *copy = malloc(size);
    if (!copy) return false;
    memcpy(copy, bytes, size);
    requests->items[requests->count].bytes = copy;
    requests->items[requests->count++].size = size;
    return true;
}

static PyObject *take_requests(struct requests *requests) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < requests->count; i++) {
        PyObject *bytes = list ? PyBytes_FromStringAndSize((const char *)requests->items[i].bytes, (Py_ssize_t)requests->items[i].size) : NULL;
        if (list && (!bytes || PyList_Append(list, bytes) != 0)) Py_CLEAR(list);
        Py_XDECREF(bytes);
        free(requests->items[i].bytes);
    }
    return list;
}

static PyObject *collect(PyObject *Py_UNUSED(module), PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"resource", "resource_schema_url", "scope_version", NULL};
    struct otlp_options options = {.random_bytes = random_bytes};
    struct requests requests = {.count = 0};
    struct interval interval;
    PyObject *resource;
    uint32_t samples = 0;
    bool encoded = true;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "$Sss:collect", names, &resource, &options.resource_schema_url,
                                     &options.scope_version))
        return NULL;
    options.resource = (const uint8_t *)PyBytes_AsString(resource); /* the caller holds it */
    options.resource_size = (size_t)PyBytes_Size(resource);
    Py_BEGIN_ALLOW_THREADS
    interval = sampler_swap();
    if (interval.table) {
        struct tick_options sampled = sampler_options();
        samples = stack_table_view(interval.table).n_samples;
        options.time_unix_nano = interval.begin_unix_ns;
        options.duration_nano = interval.end_unix_ns - interval.begin_unix_ns;
        options.period_ns = sampled.period_ns;
        options.attributes = sampled.attributes;
        options.timeline = sampled.timeline;
        encoded = otlp_encode(interval.table, &options, keep_request, &requests);
    }
    sampler_release();
    Py_END_ALLOW_THREADS
    PyObject *list = take_requests(&requests);
    if (!list) return NULL;
    if (!encoded && !requests.count) {
        Py_DECREF(list);
        return PyErr_NoMemory();
    }
    return Py_BuildValue("{s:N,s:I,s:K,s:K}", "requests", list, "samples", samples, "time_unix_nano", interval.begin_unix_ns,
                         "duration_nano", interval.end_unix_ns - interval.begin_unix_ns);
}

static PyObject *stats(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    struct sampler_stats sums = sampler_stats();
    PyObject *drops = PyDict_New();
    for (unsigned i = 0; i < DROP_REASONS && drops; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(__atomic_load_n(&drop_counts[i], __ATOMIC_RELAXED));
        if (!count || PyDict_SetItemString(drops, drop_names[i], count) != 0) Py_CLEAR(drops);
        Py_XDECREF(count);
    }
    if (!drops) return NULL;
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:d,s:s,s:N}", "ticks", sums.ticks, "samples",
                         sums.samples, "faults", sums.faults, "tasks_seen", sums.tasks_seen, "tasks_visited", sums.tasks_visited,
                         "threads_seen", sums.threads_seen, "sampler_cpu_ns", sums.sampler_cpu_ns, "export_cpu_ns",
                         sums.export_cpu_ns, "elapsed_ns", sums.elapsed_ns, "visit_ns", sums.visit_ns, "tick_ns", sums.tick_ns,
                         "window", sums.window, "copy_method", reading_method(), "drops", drops);
}

static PyObject *ignore_thread(PyObject *Py_UNUSED(module), PyObject *native_id) {
    uint32_t id = (uint32_t)PyLong_AsUnsignedLong(native_id);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(sampler_ignore_thread(id));
}

static PyObject *after_fork_in_child(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    sampler_after_fork_in_child();
    return Py_NewRef(Py_None);
}

static bool in_main_interpreter(void) { return PyInterpreterState_GetID(PyInterpreterState_Get()) == 0; }

static PyObject *is_main_interpreter(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    return PyBool_FromLong(in_main_interpreter());
}

#define WITH_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))
static PyMethodDef functions[] = {
    {"prepare", WITH_KEYWORDS(prepare), METH_VARARGS | METH_KEYWORDS, "Takes the anchors, so that readers can be called."},
    {"start", WITH_KEYWORDS(start), METH_VARARGS | METH_KEYWORDS, "Starts the sampler thread."},
    {"begin_self_check", begin_self_check, METH_NOARGS, "Makes memory readable in the calling thread before a start."},
    {"end_self_check", end_self_check, METH_NOARGS, "Gives back what begin_self_check() took."},
    {"stop", stop, METH_NOARGS, "Ends the sampler thread and waits for it."},
    {"is_running", is_running, METH_NOARGS, "Whether the sampler thread runs."},
    {"collect", WITH_KEYWORDS(collect), METH_VARARGS | METH_KEYWORDS, "Swaps the tables and encodes what the last interval held."},
    {"stats", stats, METH_NOARGS, "Sums since the start."},
    {"ignore_thread", ignore_thread, METH_O, "Leaves a thread out of the profile."},
    {"after_fork_in_child", after_fork_in_child, METH_NOARGS, "Forgets the parent's sampler thread."},
    {"is_main_interpreter", is_main_interpreter, METH_NOARGS, "Whether the caller's interpreter is the one that is sampled."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "otel_asyncprof._native", "The sampler of otel_asyncprof.", -1, functions, NULL, NULL, NULL, NULL};

static int add_constants(PyObject *module) {
    /* Once: what prepare() has read at run time stays, when a second interpreter imports us. */
    bool known = layout.minor != 0 || layout_select(Py_Version >> 16 & 0xff), in_threads = known && layout.thread_running_task != LAYOUT_ABSENT;
    const struct { const char *name; long value; } constants[] = {
        {"ATTRIBUTE_THREAD_NAME", ATTRIBUTE_THREAD_NAME},   {"ATTRIBUTE_STATE", ATTRIBUTE_STATE},
        {"ATTRIBUTE_THREAD_ID", ATTRIBUTE_THREAD_ID},       {"ATTRIBUTE_TASK_NAME", ATTRIBUTE_TASK_NAME},
        {"ATTRIBUTE_LOCAL_ROOT_NAME", ATTRIBUTE_LOCAL_ROOT_NAME},
        {"FEATURE_TASKS", FEATURE_TASKS},                   {"FEATURE_AWAITERS", FEATURE_AWAITERS},
        {"FEATURE_SPANS", FEATURE_SPANS},                   {"TASKS_IN_THREADS", in_threads},
    };
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) != 0) return -1;
    return 0;
}

/* What is kept here is of one interpreter. Once that has loaded this, others get a copy of the module without a call of this. */
PyMODINIT_FUNC PyInit__native(void) {
    static bool loaded; /* by an interpreter that has been finalized, and whose objects are known here still */
    if (!in_main_interpreter()) return PyErr_SetString(PyExc_ImportError, "otel_asyncprof does not support subinterpreters"), NULL;
    if (loaded) return PyErr_SetString(PyExc_ImportError, "otel_asyncprof does not support a second Py_Initialize()"), NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    if (add_constants(module) == 0 && span_context_init(module) == 0 && self_check_init(module) == 0 && caller_stack_init(module) == 0 &&
        libraries_init(module) == 0 && task_switch_init(module) == 0 && exit_functions_init(module) == 0)
        return loaded = true, module;
    Py_DECREF(module);
    return NULL;
}
