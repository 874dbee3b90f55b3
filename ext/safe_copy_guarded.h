/* The copy that each processor has in a file of its own. For safe_copy.c and signals.c only. */
#ifndef OTEL_ASYNCPROF_SAFE_COPY_GUARDED_H
#define OTEL_ASYNCPROF_SAFE_COPY_GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exactly one of the three files has a body; SAFE_COPY_FORCE_PORTABLE lets any machine test the portable one. */
#if defined(__x86_64__) && defined(__LP64__) && !defined(SAFE_COPY_FORCE_PORTABLE)
#define SAFE_COPY_X86_64
#elif defined(__aarch64__) && defined(__LP64__) && !defined(SAFE_COPY_FORCE_PORTABLE)
#define SAFE_COPY_AARCH64
#else
#define SAFE_COPY_PORTABLE
#endif

/* Plain loads from [address, address + size) and from nowhere else, each byte once; false when one of them faulted. An aligned word
   of the source that lies a multiple of its size behind the start is read by one load, so the copy itself tears no pointer.
   The fault handler must be in place, and the calling thread must not block SIGSEGV or SIGBUS: a blocked fault kills. */
__attribute__((visibility("hidden"))) bool safe_copy_guarded(void *destination, uint64_t address, size_t size);

#endif
