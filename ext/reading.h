/* Which of the copies may read memory now: it is asked for at start, looked after while sampling, and given back at the end. */
#ifndef OTEL_ASYNCPROF_READING_H
#define OTEL_ASYNCPROF_READING_H

#include <stdbool.h>

/* NULL when memory can be read; otherwise why not, in words for the user. */
const char *reading_begin(bool no_signal_handlers);

/* By the thread that reads, first. */
void reading_use_this_thread(void);

/* By that thread, around each tick. */
void reading_enter(void);
void reading_leave(void);

/* By that thread, before each thread's stack and each few tasks: whether other components have taken the signals meanwhile, and the
   copy must be another one. False when nothing can be read any more: every copy then fails. */
bool reading_check(void);

/* By other threads, each time that they have waited for that thread for READING_PATIENCE_MS. */
#define READING_PATIENCE_MS 200
void reading_unblock(void);

/* The handlers are gone and reads go by the system call. The thread that reads has ended. */
void reading_end(void);

/* For a self-check in the calling thread, between these two calls: by the system call, which needs nothing, or with our handlers
   where that is refused. NULL, or why memory cannot be read. */
const char *reading_begin_self_check(void);
void reading_end_self_check(void);

/* "guarded", "syscall" or "none": of the sampler that runs, or of the last one. */
const char *reading_method(void);

/* As reading_end(), while the thread that read is gone in the middle of anything. */
void reading_after_fork_in_child(void);

#endif
