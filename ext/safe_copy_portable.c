/* The guarded copy for processors without one in assembly: C under sigsetjmp. */
#include "safe_copy_guarded.h"

#ifdef SAFE_COPY_PORTABLE

#include "safe_copy.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

/* The handler reads this, so its access must not allocate: on glibc that is what initial-exec says; musl refuses that model in a
   library opened at run time, and needs it not: there the storage of every thread exists before the library's code runs. */
#ifdef __GLIBC__
#define SIGNAL_SAFE_THREAD_LOCAL static _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define SIGNAL_SAFE_THREAD_LOCAL static _Thread_local
#endif

/* Where a fault of this thread goes; NULL outside the copy. */
SIGNAL_SAFE_THREAD_LOCAL sigjmp_buf *volatile escape;

typedef uintptr_t __attribute__((may_alias)) word;

/* A function of its own: the variables that a jump may spoil are then none of its caller's. */
__attribute__((noinline, no_sanitize("address"))) static void copy_words(unsigned char *to, const volatile unsigned char *from,
                                                                          size_t size) {
    if (((uintptr_t)to | (uintptr_t)from) % sizeof(word) == 0)
        for (; size >= sizeof(word); size -= sizeof(word), to += sizeof(word), from += sizeof(word))
            *(word *)(void *)to = *(const volatile word *)(const volatile void *)from;
    for (; size > 0; size--) *to++ = *from++;
}

bool safe_copy_guarded(void *destination, uint64_t address, size_t size) {
    sigjmp_buf here;
    /* The mask is not saved here, which would cost a system call, but taken from the context of the fault. */
    bool faulted = sigsetjmp(here, 0);
    if (!faulted) {
        escape = &here;
        copy_words(destination, (const volatile unsigned char *)(uintptr_t)address, size);
    }
    escape = NULL;
    return !faulted;
}

bool safe_copy_resolve_fault(void *ucontext) {
    if (!escape) return false;
    pthread_sigmask(SIG_SETMASK, &((ucontext_t *)ucontext)->uc_sigmask, NULL);
    siglongjmp(*escape, 1);
}

#else
typedef int safe_copy_of_another_processor; /* C wants one declaration in a file */
#endif
