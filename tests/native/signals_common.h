/* Foreign handlers of every kind, and the copies and crashes that the signal tests make. */
#ifndef OTEL_ASYNCPROF_TEST_SIGNALS_COMMON_H
#define OTEL_ASYNCPROF_TEST_SIGNALS_COMMON_H

#include "check.h"

#include "os/os.h"
#include "safe_copy.h"
#include "signals.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static char *bad_page; /* PROT_NONE */

/* What ran, in order: one letter a handler. */
static char log_text[64];
static volatile sig_atomic_t log_size;
static inline void note(char letter) {
    if ((size_t)log_size < sizeof log_text - 1) log_text[log_size++] = letter;
}
static inline void check_log(const char *expected) {
    if (strcmp(log_text, expected) != 0) fprintf(stderr, "ran \"%s\", not \"%s\"\n", log_text, expected);
    CHECK(strcmp(log_text, expected) == 0);
}

static inline void install_ours(void) {
    CHECK(signals_install());
    safe_copy_use(SAFE_COPY_GUARDED);
}

static inline void check_copies_fail_safely(void) {
    char buffer[64];
    for (int i = 0; i < 10; i++) CHECK(!safe_copy(buffer, (uintptr_t)bad_page + (unsigned)i, 1 + (unsigned)i * 7));
    CHECK(!safe_copy(buffer, 0xdeadbeefdeadbeefull, 8));
    char source[64] = "source";
    /* After a signal that was passed on, copies go by the system call for a while, which an emulator may not have. */
    if (safe_copy_method() == SAFE_COPY_SYSCALL && !os_read_memory(buffer, (uintptr_t)source, sizeof source)) return;
    CHECK(safe_copy(buffer, (uintptr_t)source, sizeof source) && memcmp(buffer, source, sizeof source) == 0);
}

__attribute__((noinline, no_sanitize("undefined", "address"))) static void crash(void) { *(volatile char *)bad_page = 1; }

/* One kind of foreign component: what it saved when it installed itself, and its handler. */
struct foreign {
    struct sigaction saved;
};
__attribute__((unused)) static struct foreign chainer, second_chainer, restorer, raiser, jumper, owner;

static inline void take_signal(struct foreign *foreign, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | flags};
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(SIGSEGV, &action, &foreign->saved) == 0);
}

static inline void call_saved(const struct sigaction *saved, int number, siginfo_t *info, void *context) {
    if (saved->sa_handler == SIG_DFL) {
        note('d');
        sigaction(number, saved, NULL); /* and fault again */
    } else if (saved->sa_flags & SA_SIGINFO) {
        saved->sa_sigaction(number, info, context);
    } else {
        saved->sa_handler(number);
    }
}
/* Calls what it saved. */
static inline void chain(int number, siginfo_t *info, void *context) {
    note('c');
    call_saved(&chainer.saved, number, info, context);
}
static inline void chain_second(int number, siginfo_t *info, void *context) {
    note('s');
    call_saved(&second_chainer.saved, number, info, context);
}
/* Puts back what it saved and returns into the fault. */
static inline void restore_and_return(int number, siginfo_t *info, void *context) {
    (void)info, (void)context;
    note('t');
    sigaction(number, &restorer.saved, NULL);
}
/* As faulthandler: puts back what it saved and raises the signal again, which arrives at once (SA_NODEFER) or on return. */
static inline void restore_and_raise(int number, siginfo_t *info, void *context) {
    (void)info, (void)context;
    note('r');
    sigaction(number, &raiser.saved, NULL);
    raise(number);
}
/* As a runtime that turns faults into exceptions. */
static sigjmp_buf jump_target;
static inline void jump(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    note('j');
    siglongjmp(jump_target, 1);
}
/* Keeps the signal and ends the process in its own way. */
enum { OWNER_STATUS = 42 };
static inline void end_process(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    _exit(OWNER_STATUS);
}

#endif
