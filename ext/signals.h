/* SIGSEGV and SIGBUS: ours on top while the sampler runs, everybody else's chained below, put back at stop.
   Install and restore are called only while no sampler runs, the check by the sampler alone. */
#ifndef OTEL_ASYNCPROF_SIGNALS_H
#define OTEL_ASYNCPROF_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* Installs the handlers, asks the kernel whether they are in force, then proves them by one deliberate fault. False when they
   cannot be had: the caller then uses SAFE_COPY_SYSCALL. Idempotent; not counted by signals_check.
   The fault is made here and not in a forked child first: fork() in a large process copies its page tables, makes every later write
   of the application fault once, and runs its atfork handlers; a child that shares memory takes the parent with it when it dumps
   core on older kernels. What the child could still find is a kernel that names our handler and then does not call it. The known
   way to lose a signal, an interposed sigaction() (sanitizers, libjsig), shows in the kernel's answer and is refused unfaulted. */
bool signals_install(void);

/* Two queries of the kernel. True while both signals are ours. Otherwise puts ours back on top (chaining to the newcomer), each
   signal at most MAX_REINSTALLS times in a process' life; false once the newcomer insists: it is then left in peace. Called by
   the reader often, since a copy that faults between a newcomer's arrival and the next call depends on the newcomer. It survives one
   that calls us, by sigaction() or by signal(), that puts ours back, or that raises the signal anew in the reader. It dies with one
   that ends the process, and waits for signals_take_back() under one that just returns. */
bool signals_check(void);

/* For another thread, when the reader seems to be stuck: puts ours on top of whoever returns from its fault again and again. */
void signals_take_back(void);

/* For the reader: whether a signal that was not ours has been passed on lately. The handlers may then vanish at any moment, while others
   report a crash; safe_copy_use(SAFE_COPY_SYSCALL) has been called, and is to hold until this is false. Asked often: a crash waits for
   the answer as long as the reader has said that it reads. */
bool signals_are_passed_on(void);
void signals_reader_reads(bool now);

/* The thread that reads, and in which nothing else runs; 0 when there is none. What is sent to the process and arrives there is given
   to the application's threads. */
void signals_set_reader(uint32_t thread_id);

/* Puts back what was there before install, to the byte, for each signal that is still ours. */
void signals_restore(void);

/* The reader is gone, perhaps in the middle of a check. */
void signals_after_fork_in_child(void);

#endif
