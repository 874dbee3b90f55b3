#include "libraries.h"

#include "anyio_groups.h"
#include "greenlets.h"

#define MAX_CHECKED_FRAMES 64

static struct greenlet_facts learned; /* not in use before Python has compared */
static PyObject *getcurrent;          /* held for good */

static PyObject *learn_greenlets(PyObject *Py_UNUSED(module), PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"greenlet", "frame", "code", "parent", "greenlet_type", "spawn_code", "spawn_local", NULL};
    unsigned long long greenlet, frame, code, parent, type, spawn_code;
    unsigned local;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "$KKKKKKI:learn_greenlets", names, &greenlet, &frame, &code, &parent, &type,
                                     &spawn_code, &local))
        return NULL;
    learned = (struct greenlet_facts){.type = type, .spawn_code = spawn_code, .spawn_local = local};
    return PyBool_FromLong(greenlets_find(greenlet, frame, code, parent, &learned));
}

/* Addresses of the code of its frames, leaf first. */
static PyObject *read_greenlet(PyObject *Py_UNUSED(module), PyObject *address) {
    struct raw_frame frames[MAX_CHECKED_FRAMES];
    size_t count;
    uint64_t greenlet = PyLong_AsUnsignedLongLong(address);
    if (PyErr_Occurred()) return NULL;
    if (!greenlets_read(greenlet, &learned, frames, MAX_CHECKED_FRAMES, &count)) return Py_NewRef(Py_None);
    PyObject *codes = PyList_New(0);
    for (size_t i = 0; i < count && i < MAX_CHECKED_FRAMES && codes; i++) {
        PyObject *code = PyLong_FromUnsignedLongLong(frames[i].code);
        if (!code || PyList_Append(codes, code) != 0) Py_CLEAR(codes);
        Py_XDECREF(code);
    }
    return codes;
}

void libraries_note_greenlet(void) {
    PyObject *current = getcurrent ? PyObject_CallNoArgs(getcurrent) : NULL;
    if (current) greenlets_note_parent((uint64_t)(uintptr_t)current);
    else PyErr_Clear();
    Py_XDECREF(current);
}

static PyObject *use_greenlets(PyObject *Py_UNUSED(module), PyObject *function) {
    if (!getcurrent) getcurrent = Py_NewRef(function);
    greenlets_use(&learned);
    PyObject *current = PyObject_CallNoArgs(getcurrent);
    if (!current) return NULL;
    greenlets_note((uint64_t)(uintptr_t)current); /* the thread that learns is likely to be the one that makes greenlets */
    greenlets_note_parent((uint64_t)(uintptr_t)current);
    Py_DECREF(current);
    return Py_NewRef(Py_None);
}

static PyObject *use_anyio_groups(PyObject *Py_UNUSED(module), PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"callback_code", "end_code", "start_code", "name_scope", "name_host", "name_completed",
                            "group_cell", "start_cell", "host_offset", NULL};
    unsigned long long callback, end, start, scope, host, completed;
    unsigned group_cell, start_cell, host_offset;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "$KKKKKKIII:use_anyio_groups", names, &callback, &end, &start, &scope, &host,
                                     &completed, &group_cell, &start_cell, &host_offset))
        return NULL;
    anyio_groups_use(&(struct anyio_facts){callback, end, start, scope, host, completed, group_cell, start_cell, host_offset});
    return Py_NewRef(Py_None);
}

static PyObject *find_slot(PyObject *Py_UNUSED(module), PyObject *arguments) {
    unsigned long long object, value;
    unsigned size;
    if (!PyArg_ParseTuple(arguments, "KKI:find_slot", &object, &value, &size)) return NULL;
    return PyLong_FromUnsignedLong(anyio_groups_find_slot(object, value, size));
}

static PyMethodDef functions[] = {
    {"learn_greenlets", (PyCFunction)(void (*)(void))learn_greenlets, METH_VARARGS | METH_KEYWORDS,
     "Finds the addresses of frame and parent in a greenlet that is switched away from; whether they were found."},
    {"read_greenlet", read_greenlet, METH_O, "Addresses of the code of a greenlet's frames as the sampler reads them, leaf first."},
    {"use_greenlets", use_greenlets, METH_O, "What was learned is right: readers use it. Takes greenlet.getcurrent."},
    {"use_anyio_groups", (PyCFunction)(void (*)(void))use_anyio_groups, METH_VARARGS | METH_KEYWORDS,
     "Readers follow anyio's task groups from now on."},
    {"find_slot", find_slot, METH_VARARGS, "Where an address stands in the object at an address, of a size; 0 when nowhere."},
    {NULL, NULL, 0, NULL},
};

int libraries_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
