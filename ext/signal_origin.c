#include "signal_origin.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "os/os.h"

#define TAKING_POLLS 20
#define TAKING_POLL_NS 5000000

#ifndef SEGV_MTEAERR
#define SEGV_MTEAERR 8
#endif

/* Where the kernel puts siginfo, counted from the context of the same signal; its own ucontext is shorter than the library's. */
#if defined(__x86_64__) && defined(__LP64__)
#define INFO_FROM_CONTEXT (offsetof(ucontext_t, uc_sigmask) + 8)
#elif defined(__aarch64__)
#define INFO_FROM_CONTEXT (0 - sizeof(siginfo_t))
#endif

/* Handlers pass on what they were given, sometimes in a copy of their own. Anything else in these registers is left over from some
   call: not at the kernel's distance, and hardly ever readable with the signal's number in it. */
static bool has_details(int number, const siginfo_t *info, const void *context) {
#ifdef INFO_FROM_CONTEXT
    if ((uintptr_t)info - (uintptr_t)context == INFO_FROM_CONTEXT) return true;
    siginfo_t copied_info;
    unsigned char copied_context[offsetof(ucontext_t, uc_sigmask)];
    return os_read_memory(&copied_info, (uintptr_t)info, sizeof copied_info) && copied_info.si_signo == number &&
           os_read_memory(copied_context, (uintptr_t)context, sizeof copied_context);
#else
    (void)number;
    return info && context;
#endif
}

enum signal_origin signal_origin(int number, const siginfo_t *info, const void *context) {
    if (!has_details(number, info, context)) return ORIGIN_UNKNOWN;
    if (info->si_code > 0) return info->si_code == (number == SIGBUS ? BUS_MCEERR_AO : SEGV_MTEAERR) ? ORIGIN_SENT : ORIGIN_FAULT;
    return info->si_pid == getpid() ? ORIGIN_RAISED : ORIGIN_SENT;
}

/* Whether somebody takes what is pending for the process: the thread that the kernel has woken for it may have to wait for a CPU. */
static bool is_taken(int number) {
    sigset_t pending;
    for (unsigned i = 0; i < TAKING_POLLS; i++) {
        if (sigpending(&pending) == 0 && !sigismember(&pending, number)) return true;
        nanosleep(&(struct timespec){0, TAKING_POLL_NS}, NULL);
    }
    return false;
}

bool signal_give_away(int number, siginfo_t *info) {
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    /* The kernel lets nobody but the main thread repeat a kill() with its sender. */
    bool given = (info->si_code != SI_USER && syscall(SYS_rt_sigqueueinfo, getpid(), number, info) == 0) || kill(getpid(), number) == 0;
    /* All others block it. From now on it waits for the main thread, and no longer for the first that asks. */
    if (given && !is_taken(number) && sigtimedwait(&one, NULL, &(struct timespec){0, 0}) == number)
        given = syscall(SYS_tgkill, getpid(), getpid(), number) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return given;
}
