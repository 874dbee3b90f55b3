/* Signals that end the process by default, kept back until the export thread has sent the last profile; then the process dies by
   them as it would have. Taken, given back and looked after with the GIL held, as Python's own signal.signal() is. */
#ifndef OTEL_ASYNCPROF_EXIT_SIGNALS_H
#define OTEL_ASYNCPROF_EXIT_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the kernel acts by default. Python does not know of handlers that C code has installed. */
bool exit_signals_is_default(int number);

/* Puts our handler in place of the default action, or over Python's handler where that leads to the default action. is_pythons: what
   is in place now is Python's. False, and nothing done, when anything else is in place. */
bool exit_signals_take(int number, bool is_pythons);

/* Puts the default action back wherever our handler still stands. */
void exit_signals_give_back(void);

/* From now on a signal is left to the calling process' export thread, for at most patience_ns; then it kills. Returns a number that
   stands for that thread; 0 when the kernel gives no timer, and signals kill at once. */
uint32_t exit_signals_watch(uint64_t patience_ns);

/* What the handler does: tells the export thread; where none is watching, dies at once. */
void exit_signals_begin(int number);

/* Whether the process is dying. */
bool exit_signals_came(void);

/* The signal that the process is to die by; 0 when there was none, or another thread watches. */
int exit_signals_seen(uint32_t watch);

/* The export thread has done its last export: dies if a signal has come, and lets those to come kill at once. */
void exit_signals_end(uint32_t watch);

/* Dies by the signal. */
_Noreturn void exit_signals_die(int number);

/* A bell that a signal rings as well: wait() returns when it was rung after bell() gave its argument, or after a time. */
uint32_t exit_signals_bell(void);
void exit_signals_ring(void);
void exit_signals_wait(uint32_t bell, uint64_t deadline_monotonic_ns);

#endif
