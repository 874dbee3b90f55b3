/* Recorded memory does not fault, and nobody else wants its signals: the copy may always be used. */
#include "reading.h"

#include <stddef.h>

const char *reading_begin(bool no_signal_handlers) {
    (void)no_signal_handlers;
    return NULL;
}
void reading_use_this_thread(void) {}
void reading_enter(void) {}
void reading_leave(void) {}
bool reading_check(void) { return true; }
void reading_unblock(void) {}
void reading_end(void) {}
const char *reading_begin_self_check(void) { return NULL; }
void reading_end_self_check(void) {}
const char *reading_method(void) { return "guarded"; }
void reading_after_fork_in_child(void) {}
