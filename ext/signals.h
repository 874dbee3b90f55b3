/* SIGSEGV and SIGBUS: ours on top while the sampler runs, everybody else's chained below, put back at stop.
   The three functions are called by one thread at a time: install and restore only while no sampler runs. */
#ifndef OTEL_ASYNCPROF_SIGNALS_H
#define OTEL_ASYNCPROF_SIGNALS_H

#include <stdbool.h>

/* Installs the handlers, asks the kernel whether they are in force, then proves them by one deliberate fault. False when they
   cannot be had: the caller then uses SAFE_COPY_SYSCALL. Idempotent; not counted by signals_check.
   The fault is made here and not in a forked child first: fork() in a large process copies its page tables, makes every later write
   of the application fault once, and runs its atfork handlers; a child that shares memory takes the parent with it when it dumps
   core on older kernels. What the child could still find is a kernel that names our handler and then does not call it. The known
   way to lose a signal, an interposed sigaction() (sanitizers, libjsig), shows in the kernel's answer and is refused unfaulted. */
bool signals_install(void);

/* Two queries of the kernel. True while both signals are ours. Otherwise puts ours back on top (chaining to the newcomer), each
   signal at most MAX_REINSTALLS times in a process' life; false once the newcomer insists: it is then left in peace. Called by
   the sampler before each tick; a copy between a newcomer's arrival and the next call dies unless the newcomer chains to us. */
bool signals_check(void);

/* Puts back what was there before install, for each signal that is still ours. */
void signals_restore(void);

#endif
