/* embedding LIBPYTHON PROGRAM ROUNDS: runs a program in one interpreter after the other, each initialized and finalized, as an
   application that embeds Python may. Ends with the number of programs that failed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int failed = 0, rounds = argc == 4 ? atoi(argv[3]) : 0;
    void *python = rounds ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!python) return fprintf(stderr, "no Python: %s\n", rounds ? dlerror() : "three arguments are needed"), 100;
    void (*initialize)(void) = (void (*)(void))dlsym(python, "Py_Initialize");
    int (*run)(const char *) = (int (*)(const char *))dlsym(python, "PyRun_SimpleString");
    int (*finalize)(void) = (int (*)(void))dlsym(python, "Py_FinalizeEx");
    for (int i = 0; i < rounds; i++) {
        initialize();
        failed += run(argv[2]) != 0;
        failed += finalize() != 0;
    }
    return failed;
}
