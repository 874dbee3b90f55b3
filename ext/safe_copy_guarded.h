/* The copy that each processor has in a file of its own, and the load of one word that stands inline wherever it is used. For
   safe_copy.[ch] and signals.c only. */
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

/* One word, or half of one, as one load between the label of its fault and the label where the fault handler lets it go on: then ok
   is still 0. Each use adds both to a table that the linker gathers. */
#if defined(SAFE_COPY_X86_64) || defined(SAFE_COPY_AARCH64)
#define SAFE_COPY_LOADS
#define GUARDED_LOAD_ENTRY                                                                                                    \
    "2:\n"                                                                                                                    \
    ".pushsection guarded_loads, \"a\"\n"                                                                                     \
    ".balign 4\n"                                                                                                             \
    ".long 1b - ., 2b - .\n"                                                                                                  \
    ".popsection\n"
#ifdef SAFE_COPY_X86_64
#define GUARDED_LOAD_WORD "1: movq (%[address]), %q[value]\n movl $1, %k[ok]\n" GUARDED_LOAD_ENTRY
#define GUARDED_LOAD_HALF "1: movl (%[address]), %k[value]\n movl $1, %k[ok]\n" GUARDED_LOAD_ENTRY
#else
#define GUARDED_LOAD_WORD "1: ldr %x[value], [%[address]]\n mov %w[ok], #1\n" GUARDED_LOAD_ENTRY
#define GUARDED_LOAD_HALF "1: ldr %w[value], [%[address]]\n mov %w[ok], #1\n" GUARDED_LOAD_ENTRY
#endif

static inline bool guarded_load_word(uint64_t *word, uint64_t address) {
    uint64_t value = 0;
    uint32_t ok = 0;
    __asm__ volatile(GUARDED_LOAD_WORD : [value] "+&r"(value), [ok] "+&r"(ok) : [address] "r"(address));
    *word = value;
    return ok;
}

static inline bool guarded_load_half(uint32_t *half, uint64_t address) {
    uint32_t value = 0, ok = 0;
    __asm__ volatile(GUARDED_LOAD_HALF : [value] "+&r"(value), [ok] "+&r"(ok) : [address] "r"(address));
    *half = value;
    return ok;
}

struct guarded_load {
    int32_t fault, resume; /* distances from the fields themselves */
};

/* Where a fault at this instruction goes on; 0 when it is no guarded load's. */
uintptr_t guarded_load_resume(uintptr_t fault) __attribute__((visibility("hidden")));
#endif

#endif
