/* Puts CinderX's evaluation loop, compiled with tail calls, in the place of the interpreter's own: its first instruction becomes a jump
   there. What that loop asks CinderX for is answered here as for a program that uses nothing of it. */
#define _GNU_SOURCE
#include "cinderx/python.h"
#include "cinderx/python_runtime.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "internal/pycore_dict.h"
#include "internal/pycore_genobject.h"
#include "internal/pycore_interpframe.h"
#include "internal/pycore_opcode_utils.h"

enum { PAGE = 4096, JUMP_TO = 6, JUMP_SIZE = 14 };

PyObject *Ci_EvalFrame(PyThreadState *, _PyInterpreterFrame *, int);
int init_upstream_borrow(void);

struct _Py_static_objects *_static_objects;
PyObject *Ci_common_consts[NUM_COMMON_CONSTANTS];
vectorcallfunc Ci_PyFunction_Vectorcall;
PyTypeObject PyStaticArray_Type; /* no object is of it */

/* The headers are those of the interpreter that runs: nothing is elsewhere. */
static int64_t deltas[8];
const void *Ci_GetRuntimeDeltas(void) { return deltas; }

/* Specialized from the first call on; one counter for all code objects. */
static uint64_t extra[64];
void *codeExtra(PyCodeObject *Py_UNUSED(code)) { return extra; }
int Ci_GetDelayAdaptiveCode(void) { return 0; }
uint64_t Ci_GetAdaptiveThreshold(void) { return 0; }
void *Ci_GetEvalFrameFunc(void) { return NULL; }

/* No coroutine is one of CinderX's compiler, no list and dict one of its checked ones. */
int JitCoro_CheckExact(PyObject *Py_UNUSED(object)) { return 0; }
PyObject *JitCoro_GetAwaitableIter(PyObject *object) { return _PyCoro_GetAwaitableIter(object); }
PyObject *JitGen_yf(PyGenObject *generator) { return _PyGen_yf(generator); }
int Ci_CheckedDict_Check(PyObject *Py_UNUSED(object)) { return 0; }
int Ci_CheckedList_Check(PyObject *Py_UNUSED(object)) { return 0; }
int Ci_DictOrChecked_SetItem(PyObject *dict, PyObject *key, PyObject *value) { return PyDict_SetItem(dict, key, value); }
int Ci_ListOrCheckedList_Append(PyListObject *list, PyObject *value) { return PyList_Append((PyObject *)list, value); }

/* Instructions that only its own compiler for static Python makes. */
#define NEVER(name) \
    void name(void) { Py_FatalError(#name); }
NEVER(Ci_CheckedDict_NewPresized)
NEVER(Ci_CheckedDict_SetItem)
NEVER(Ci_CheckedList_GetItem)
NEVER(Ci_CheckedList_New)
NEVER(Ci_GetStaticTypeError)
NEVER(_Ci_StaticArray_Get)
NEVER(_Ci_StaticArray_Set)
NEVER(_PyClassLoader_GetCodeArgumentTypeDescrs)
NEVER(_PyClassLoader_GetTypeCode)
NEVER(_PyClassLoader_LoadStaticMethod)
NEVER(_PyClassLoader_ResolveFieldOffset)
NEVER(_PyClassLoader_ResolveFunction)
NEVER(_PyClassLoader_ResolveMethod)
NEVER(_PyClassLoader_ResolvePrimitiveType)
NEVER(_PyClassLoader_ResolveType)
NEVER(_PyClassloader_InvokeNativeFunction)

static int find_constants(void) {
    PyObject *builtins = PyEval_GetBuiltins(), *space = PyDict_New();
    PyObject *done = space != NULL ? PyRun_String("def function(): pass", Py_file_input, space, space) : NULL;
    if (done == NULL) return -1;
    Ci_PyFunction_Vectorcall = ((PyFunctionObject *)PyDict_GetItemString(space, "function"))->vectorcall;
    _static_objects = (struct _Py_static_objects *)PyLong_FromLong(-_PY_NSMALLNEGINTS); /* the first of them */
    Ci_common_consts[CONSTANT_ASSERTIONERROR] = PyExc_AssertionError;
    Ci_common_consts[CONSTANT_NOTIMPLEMENTEDERROR] = PyExc_NotImplementedError;
    Ci_common_consts[CONSTANT_BUILTIN_TUPLE] = (PyObject *)&PyTuple_Type;
    Ci_common_consts[CONSTANT_BUILTIN_ALL] = PyDict_GetItemString(builtins, "all");
    Ci_common_consts[CONSTANT_BUILTIN_ANY] = PyDict_GetItemString(builtins, "any");
#if PY_VERSION_HEX >= 0x030F0000
    Ci_common_consts[CONSTANT_BUILTIN_LIST] = (PyObject *)&PyList_Type;
    Ci_common_consts[CONSTANT_BUILTIN_SET] = (PyObject *)&PySet_Type;
    Ci_common_consts[CONSTANT_NONE] = Py_None;
    Ci_common_consts[CONSTANT_EMPTY_STR] = Py_GetConstantBorrowed(Py_CONSTANT_EMPTY_STR);
    Ci_common_consts[CONSTANT_TRUE] = Py_True;
    Ci_common_consts[CONSTANT_FALSE] = Py_False;
    Ci_common_consts[CONSTANT_MINUS_ONE] = PyLong_FromLong(-1);
#endif
    Py_DECREF(done), Py_DECREF(space);
    return init_upstream_borrow();
}

static int replace_loop(void) {
    unsigned char *loop = (unsigned char *)_PyEval_EvalFrameDefault;
    unsigned char jump[JUMP_SIZE] = {0xff, 0x25}; /* jmp *0(%rip): to the address that follows */
    void *target = (void *)Ci_EvalFrame;
    memcpy(jump + JUMP_TO, &target, sizeof target);
    void *page = (void *)((uintptr_t)loop & ~(uintptr_t)(PAGE - 1));
    if (mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) < 0) return PyErr_SetFromErrno(PyExc_OSError), -1;
    memcpy(loop, jump, sizeof jump);
    return mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC);
}

/* Once in the process; other interpreters run in the same loop. */
static int execute(PyObject *Py_UNUSED(module)) {
    static int done;
    if (done) return 0;
    if (find_constants() < 0 || replace_loop() < 0) return -1;
    return done = 1, 0;
}

static PyObject *calls(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) { return PyLong_FromUnsignedLongLong(extra[0]); }

static PyMethodDef functions[] = {{"calls", calls, METH_NOARGS, "Grows with each frame that the loop has begun."}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tail_calls", NULL, 0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_tail_calls(void) { return PyModuleDef_Init(&definition); }
