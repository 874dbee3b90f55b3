/* The end of the process as Python sees it. Compiled against the limited API, as module.c. */
#include "exit_functions.h"

#include <signal.h>

#include "clock.h"
#include "exit_signals.h"

static PyObject *exit_signal_is_default(PyObject *Py_UNUSED(module), PyObject *number) {
    int signal = (int)PyLong_AsLong(number);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(exit_signals_is_default(signal));
}

static PyObject *exit_signal_take(PyObject *Py_UNUSED(module), PyObject *arguments) {
    int number, is_pythons;
    if (!PyArg_ParseTuple(arguments, "ip:exit_signal_take", &number, &is_pythons)) return NULL;
    return PyBool_FromLong(exit_signals_take(number, is_pythons));
}

static PyObject *exit_signals_restore(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    exit_signals_give_back();
    return Py_NewRef(Py_None);
}

static PyObject *exit_signal_unmoved(PyObject *Py_UNUSED(module), PyObject *arguments) {
    int number;
    PyObject *function;
    struct sigaction action;
    if (!PyArg_ParseTuple(arguments, "iO:exit_signal_unmoved", &number, &function)) return NULL;
    if (sigaction(number, NULL, &action) != 0) return PyErr_SetFromErrno(PyExc_OSError);
    PyObject *result = PyObject_CallNoArgs(function);
    sigaction(number, &action, NULL);
    return result;
}

static PyObject *exit_begin(PyObject *Py_UNUSED(module), PyObject *number) {
    int signal = (int)PyLong_AsLong(number);
    if (PyErr_Occurred()) return NULL;
    exit_signals_begin(signal);
    return Py_NewRef(Py_None);
}

static PyObject *exit_die(PyObject *Py_UNUSED(module), PyObject *number) {
    int signal = (int)PyLong_AsLong(number);
    if (PyErr_Occurred()) return NULL;
    exit_signals_die(signal);
}

static PyObject *exit_watch(PyObject *Py_UNUSED(module), PyObject *seconds) {
    double patience = PyFloat_AsDouble(seconds);
    return PyErr_Occurred() ? NULL : PyLong_FromUnsignedLong(exit_signals_watch((uint64_t)(patience * 1e9)));
}

static PyObject *exit_seen(PyObject *Py_UNUSED(module), PyObject *watch) {
    unsigned long number = PyLong_AsUnsignedLong(watch);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(exit_signals_seen((uint32_t)number));
}

static PyObject *exit_end(PyObject *Py_UNUSED(module), PyObject *watch) {
    unsigned long number = PyLong_AsUnsignedLong(watch);
    if (PyErr_Occurred()) return NULL;
    exit_signals_end((uint32_t)number);
    return Py_NewRef(Py_None);
}

static PyObject *bell(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) { return PyLong_FromUnsignedLong(exit_signals_bell()); }

static PyObject *ring_bell(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    exit_signals_ring();
    return Py_NewRef(Py_None);
}

static PyObject *wait_for_bell(PyObject *Py_UNUSED(module), PyObject *arguments) {
    unsigned rung;
    double seconds;
    if (!PyArg_ParseTuple(arguments, "Id:wait_for_bell", &rung, &seconds)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    exit_signals_wait(rung, clock_monotonic_ns() + (uint64_t)(seconds * 1e9));
    Py_END_ALLOW_THREADS
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"exit_signal_is_default", exit_signal_is_default, METH_O, "Whether the kernel acts on a signal by default."},
    {"exit_signal_take", exit_signal_take, METH_VARARGS, "Keeps a signal back that ends the process by default."},
    {"exit_signals_restore", exit_signals_restore, METH_NOARGS, "Gives back the signals that were taken."},
    {"exit_signal_unmoved", exit_signal_unmoved, METH_VARARGS, "Calls a function, then puts the kernel's action back as it was."},
    {"exit_begin", exit_begin, METH_O, "Tells the export thread that the process is to die by a signal."},
    {"exit_die", exit_die, METH_O, "Dies by a signal."},
    {"exit_watch", exit_watch, METH_O, "Announces the export thread: signals are left to it."},
    {"exit_seen", exit_seen, METH_O, "The signal that has come, for the export thread."},
    {"exit_end", exit_end, METH_O, "The last export is done; dies by the signal that has come."},
    {"bell", bell, METH_NOARGS, "How often the bell was rung."},
    {"ring_bell", ring_bell, METH_NOARGS, "Wakes the export thread."},
    {"wait_for_bell", wait_for_bell, METH_VARARGS, "Waits until the bell is rung, or for some seconds."},
    {NULL, NULL, 0, NULL},
};

int exit_functions_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
