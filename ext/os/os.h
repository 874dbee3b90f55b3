/* What the operating system knows about threads and time. */
#ifndef OTEL_ASYNCPROF_OS_H
#define OTEL_ASYNCPROF_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum os_thread_state { OS_THREAD_GONE, OS_THREAD_OFF_CPU, OS_THREAD_RUNNABLE };

/* Kernel id of the calling thread. */
uint32_t os_thread_id(void);

/* CPU time used by a thread of this process, in ns. The clock is made from the kernel id: a pthread_t may be stale.
   False when the thread is gone. */
bool os_thread_cpu_ns(uint32_t thread_id, uint64_t *ns);

/* Whether that clock shows even the shortest run: true of Linux itself, not of every kernel that speaks its interface. */
bool os_thread_cpu_is_exact(void);

/* Whether the kernel has the thread on a CPU or in a run queue (RUNNABLE), or asleep (OFF_CPU). A few microseconds. */
enum os_thread_state os_thread_state(uint32_t thread_id);

/* Sleeps while *word is value, at most until the deadline on the monotonic clock. May also end for no reason. */
void os_wait(const uint32_t *word, uint32_t value, uint64_t deadline_monotonic_ns);
/* Ends the sleep of all who wait for a change of the word. */
void os_wake(const uint32_t *word);

/* Whether the calling thread's system calls pass a filter (seccomp), which may refuse some, or kill for them. */
bool os_filters_system_calls(void);

/* Reads our own memory by a system call (process_vm_readv). False on any short read. */
bool os_read_memory(void *destination, uint64_t address, size_t size);

/* A part of a loaded file as it stands in memory. */
struct os_segment {
    uint64_t begin, end;
};
#define OS_MAX_SEGMENTS 16

/* The readable parts of the loaded file that has something at an address, the writable ones first; returns how many. */
size_t os_segments_of(uint64_t address, struct os_segment segments[OS_MAX_SEGMENTS]);

#endif
