/* What the C tests share: a check that ends the process, and a body run in a child whose end is looked at. */
#ifndef OTEL_ASYNCPROF_TEST_CHECK_H
#define OTEL_ASYNCPROF_TEST_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, __func__, #condition); \
            _exit(1);                                                                 \
        }                                                                             \
    } while (0)

#define CHECK_EQUAL(actual, expected)                                                          \
    do {                                                                                       \
        long long actual_value = (long long)(actual), expected_value = (long long)(expected);  \
        if (actual_value != expected_value) {                                                  \
            fprintf(stderr, "%s:%d: %s: %s is %lld, not %lld\n", __FILE__, __LINE__, __func__, #actual, actual_value, \
                    expected_value);                                                           \
            _exit(1);                                                                          \
        }                                                                                      \
    } while (0)

enum { CHILD_SECONDS = 30 };

/* The exit status of a child that runs body, or minus the signal that killed it (minus SIGALRM: it hung). */
static inline int outcome(void (*body)(void)) {
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        alarm(CHILD_SECONDS);
        body();
        _exit(0);
    }
    int status;
    pid_t ended;
    do ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
    CHECK_EQUAL(ended, child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

#endif
