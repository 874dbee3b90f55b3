/* What a handler is called for: a fault, a signal that somebody sent, or a call by another handler that says neither. */
#ifndef OTEL_ASYNCPROF_SIGNAL_ORIGIN_H
#define OTEL_ASYNCPROF_SIGNAL_ORIGIN_H

#include <signal.h>
#include <stdbool.h>

/* All of this is for signal handlers: async-signal-safe calls only. */

enum signal_origin {
    ORIGIN_FAULT,   /* returning runs into it again */
    ORIGIN_SENT,    /* by another process, or an error reported some time afterwards */
    ORIGIN_RAISED,  /* sent by this process */
    ORIGIN_UNKNOWN, /* info and context must not be touched: a component that took the signal with signal() calls the handler that it
                       found with the number alone */
};

enum signal_origin signal_origin(int number, const siginfo_t *info, const void *context);

/* Hands a signal that was sent to the process, and happened to arrive in the calling thread, to the thread that would have got it
   without this one. The sender's identity is lost when it was sent by kill(). False when it could not be sent again. */
bool signal_give_away(int number, siginfo_t *info);

#endif
