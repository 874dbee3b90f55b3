/* A test program: each TEST is run by its name, in a process of its own. */
#ifndef OTEL_ASYNCPROF_TEST_PROGRAM_H
#define OTEL_ASYNCPROF_TEST_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (condition) break;                                                     \
        fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
        exit(1);                                                                  \
    } while (0)

#define MAX_TESTS 64

static struct {
    const char *name;
    void (*run)(void);
} tests[MAX_TESTS];
static unsigned n_tests;

#define TEST(test)                                                    \
    static void test(void);                                           \
    __attribute__((constructor)) static void register_##test(void) {  \
        tests[n_tests].name = #test;                                  \
        tests[n_tests++].run = test;                                  \
    }                                                                 \
    static void test(void)

int main(int argc, char **argv) {
    for (unsigned i = 0; argc == 2 && i < n_tests; i++) {
        if (strcmp(tests[i].name, argv[1])) continue;
        tests[i].run();
        return 0;
    }
    fprintf(stderr, "usage: %s name-of-a-test\n", argv[0]);
    return 2;
}

#endif
