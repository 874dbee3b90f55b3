/* Goes in front of a program that has an interpreter of CPython 3.14 in it, and makes a python3 of it: takes the place of its main()
   and does what Python's own does, so that stacks, exit statuses and signals are the same. No headers are at hand: what is used of the
   API is declared here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct object PyObject;
typedef struct init_config PyInitConfig;
enum { FILE_INPUT = 257 };

PyInitConfig *PyInitConfig_Create(void);
int PyInitConfig_SetStr(PyInitConfig *, const char *, const char *);
int PyInitConfig_SetInt(PyInitConfig *, const char *, long long);
int PyInitConfig_SetStrList(PyInitConfig *, const char *, size_t, char *const *);
int PyInitConfig_GetError(PyInitConfig *, const char **);
int PyInitConfig_GetExitCode(PyInitConfig *, int *);
int Py_InitializeFromInitConfig(PyInitConfig *);
int Py_FinalizeEx(void);
PyObject *PyConfig_Get(const char *);
int PyConfig_GetInt(const char *, int *);
PyObject *PyImport_AddModuleRef(const char *), *PyImport_ImportModule(const char *);
PyObject *PyModule_GetDict(PyObject *), *PySys_GetObject(const char *);
PyObject *PyObject_CallMethod(PyObject *, const char *, const char *, ...);
PyObject *PyUnicode_DecodeFSDefault(const char *);
const char *PyUnicode_AsUTF8AndSize(PyObject *, ssize_t *);
PyObject *Py_CompileString(const char *, const char *, int), *PyEval_EvalCode(PyObject *, PyObject *, PyObject *);
PyObject *PyRun_FileExFlags(FILE *, const char *, int, PyObject *, PyObject *, int, void *);
int PyRun_InteractiveLoopFlags(FILE *, const char *, void *);
int PyDict_SetItemString(PyObject *, const char *, PyObject *);
int PyErr_ExceptionMatches(PyObject *), PyList_Insert(PyObject *, ssize_t, PyObject *);
void PyErr_Print(void), PyErr_Clear(void), Py_DecRef(PyObject *);
extern PyObject *PyExc_KeyboardInterrupt;

static int interrupted;

/* A setting as text in UTF-8; NULL when there is none. */
static const char *setting(const char *name) {
    PyObject *value = PyConfig_Get(name);
    const char *text = value ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL; /* None is no text */
    if (!text) PyErr_Clear();
    return text;
}

static void put_first_on_path(const char *folder) {
    int safe = 0;
    PyObject *path = PySys_GetObject("path");
    PyConfig_GetInt("safe_path", &safe);
    if (!safe && path) PyList_Insert(path, 0, PyUnicode_DecodeFSDefault(folder));
}

/* What ran has ended, with a result or an exception. */
static int end(PyObject *result) {
    if (result) return 0;
    interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    PyErr_Print(); /* does not come back from SystemExit */
    return 1;
}

static int run_text(const char *text, PyObject *globals) {
    PyObject *code = Py_CompileString(text, "<string>", FILE_INPUT);
    put_first_on_path("");
    PyObject *result = code ? PyEval_EvalCode(code, globals, globals) : NULL;
    Py_DecRef(code);
    return end(result);
}

static int run_module(const char *name, int change_argv) {
    PyObject *runpy = PyImport_ImportModule("runpy");
    return end(runpy ? PyObject_CallMethod(runpy, "_run_module_as_main", "si", name, change_argv) : NULL);
}

static int is_archive(const char *path) {
    char magic[2] = "";
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return 1;
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(magic, 1, sizeof magic, file) : 0;
    if (file) fclose(file);
    return size == sizeof magic && memcmp(magic, "PK", sizeof magic) == 0;
}

static int run_file(const char *path, PyObject *globals) {
    char real[PATH_MAX];
    if (is_archive(path)) {
        put_first_on_path(path);
        return run_module("__main__", 0);
    }
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: can't open file '%s'\n", setting("executable"), path);
        return 2;
    }
    snprintf(real, sizeof real, "%s", path);
    char *resolved = realpath(path, NULL), *slash;
    if (resolved) snprintf(real, sizeof real, "%s", resolved);
    free(resolved);
    if ((slash = strrchr(real, '/'))) *slash = 0;
    put_first_on_path(real);
    PyDict_SetItemString(globals, "__file__", PyUnicode_DecodeFSDefault(path));
    return end(PyRun_FileExFlags(file, path, FILE_INPUT, globals, globals, 1, NULL));
}

static int run_program(void) {
    PyObject *program = PyImport_AddModuleRef("__main__"), *globals = PyModule_GetDict(program);
    Py_DecRef(program); /* or it would outlive the other modules, and its finalizers would come too late to use them */
    const char *command = setting("run_command"), *module = setting("run_module"), *file = setting("run_filename");
    char folder[PATH_MAX];
    if (command) return run_text(command, globals);
    if (module) {
        put_first_on_path(getcwd(folder, sizeof folder) ? folder : "");
        return run_module(module, 1);
    }
    if (file) return run_file(file, globals);
    put_first_on_path("");
    if (isatty(STDIN_FILENO)) return PyRun_InteractiveLoopFlags(stdin, "<stdin>", NULL) ? 1 : 0;
    return end(PyRun_FileExFlags(stdin, "<stdin>", FILE_INPUT, globals, globals, 0, NULL));
}

static void put(const char *name, const char *value) {
    if (value && *value) setenv(name, value, 1);
    else unsetenv(name);
}

static int start(int argc, char **argv) {
    char *called = strdup(getenv("PYTHON_3_14_CALLED"));
    const char *home = getenv("PYTHON_3_14_HOME"), *error = NULL;
    int status;
    PyInitConfig *config = PyInitConfig_Create();
    const char *const on[] = {"use_environment", "parse_argv", "user_site_directory", "install_signal_handlers", "configure_locale"};
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++) PyInitConfig_SetInt(config, on[i], 1);
    PyInitConfig_SetInt(config, "isolated", 0);
    PyInitConfig_SetInt(config, "safe_path", 0);
    argv[0] = called;
    PyInitConfig_SetStr(config, "program_name", called);
    PyInitConfig_SetStr(config, "executable", called);
    if (home && !getenv("PYTHONHOME")) PyInitConfig_SetStr(config, "home", home);
    PyInitConfig_SetStrList(config, "argv", (size_t)argc, argv);
    put("LD_PRELOAD", getenv("PYTHON_3_14_PRELOAD"));
    put("PYTHON_3_14_PRELOAD", ""), put("PYTHON_3_14_HOME", ""), put("PYTHON_3_14_CALLED", "");
    if (Py_InitializeFromInitConfig(config) < 0) {
        if (PyInitConfig_GetExitCode(config, &status)) return status;
        PyInitConfig_GetError(config, &error);
        fprintf(stderr, "%s: %s\n", called, error ? error : "cannot start");
        return 1;
    }
    status = run_program();
    if (Py_FinalizeEx() < 0 && !status) status = 120;
    if (!interrupted) return status;
    signal(SIGINT, SIG_DFL); /* who waits for this process is to see what ended it */
    kill(getpid(), SIGINT);
    return 130;
}

typedef int (*main_function)(int, char **, char **);
typedef int (*starter)(main_function, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

static int our_main(int argc, char **argv, char **environment) {
    (void)environment;
    return start(argc, argv);
}

int __libc_start_main(main_function theirs, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*rtld)(void), void *end_) {
    starter real;
    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    return real(getenv("PYTHON_3_14_CALLED") ? our_main : theirs, argc, argv, init, fini, rtld, end_);
}
