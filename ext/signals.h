/* SIGSEGV and SIGBUS: ours on top while the sampler runs, everybody else's chained below, put back at stop. */
#ifndef OTEL_ASYNCPROF_SIGNALS_H
#define OTEL_ASYNCPROF_SIGNALS_H

#include <stdbool.h>

/* Installs the handlers and proves them by one deliberate fault in a forked child first, then here.
   False when they cannot be had: the caller then uses SAFE_COPY_SYSCALL. Idempotent. */
bool signals_install(void);

/* Two sigaction() queries. True while both signals are ours. Otherwise puts ours back on top (chaining to the newcomer),
   at most MAX_REINSTALLS times in a process' life; false once the newcomer insists. Called by the sampler before each tick. */
bool signals_check(void);

/* Puts back what was there before install, for each signal that is still ours. */
void signals_restore(void);

#endif
