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

/* One word, or half of one, as one load; its fault goes on where the load is said to have failed. Each use adds the places of both
   to a table that the linker gathers. Compilers that know no jump out of an assembly statement with results test a flag instead. */
#if defined(SAFE_COPY_X86_64) || defined(SAFE_COPY_AARCH64)
#define SAFE_COPY_LOADS
#define GUARDED_LOAD_ENTRY(resume)                                                                                            \
    ".pushsection guarded_loads, \"a\"\n"                                                                                     \
    ".balign 4\n"                                                                                                             \
    ".long 1b - ., " resume " - .\n"                                                                                         \
    ".popsection\n"
#ifdef SAFE_COPY_X86_64
#define LOAD_WORD "1: movq (%[address]), %q[value]\n"
#define LOAD_HALF "1: movl (%[address]), %k[value]\n"
#define SET_OK "movl $1, %k[ok]\n"
#else
#define LOAD_WORD "1: ldr %x[value], [%[address]]\n"
#define LOAD_HALF "1: ldr %w[value], [%[address]]\n"
#define SET_OK "mov %w[ok], #1\n"
#endif

#if (__GNUC__ >= 11 && !defined(__clang__)) || (defined(__clang__) && __clang_major__ >= 14)
/* volatile: GCC before 12.4 and 13.3 forgets otherwise that the statement is. */
#define GUARDED_LOAD(load, place)                                                                                             \
    __asm__ volatile goto(load GUARDED_LOAD_ENTRY("%l[fault]") : [value] "=r"(value) : [address] "r"(address) : : fault);     \
    *(place) = value;                                                                                                         \
    return true;                                                                                                              \
    fault:                                                                                                                    \
    *(place) = 0;                                                                                                             \
    return false
#else
#define GUARDED_LOAD(load, place)                                                                                             \
    uint32_t ok = 0;                                                                                                          \
    value = 0;                                                                                                                \
    __asm__ volatile(load SET_OK "2:\n" GUARDED_LOAD_ENTRY("2b") : [value] "+&r"(value), [ok] "+&r"(ok) : [address] "r"(address)); \
    *(place) = value;                                                                                                         \
    return ok
#endif

static inline bool guarded_load_word(uint64_t *word, uint64_t address) {
    uint64_t value;
    GUARDED_LOAD(LOAD_WORD, word);
}

static inline bool guarded_load_half(uint32_t *half, uint64_t address) {
    uint32_t value;
    GUARDED_LOAD(LOAD_HALF, half);
}

struct guarded_load {
    int32_t fault, resume; /* distances from the fields themselves */
};

/* Where a fault at this instruction goes on; 0 when it is no guarded load's. */
uintptr_t guarded_load_resume(uintptr_t fault) __attribute__((visibility("hidden")));
#endif

#endif
