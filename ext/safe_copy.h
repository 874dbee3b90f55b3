/* The only way to read interpreter memory: a copy that may fail and never faults. */
#ifndef OTEL_ASYNCPROF_SAFE_COPY_H
#define OTEL_ASYNCPROF_SAFE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safe_copy_guarded.h"

/* Copies size bytes from address. False when any byte is unreadable: the destination then holds garbage.
   Size 0 is true. Addresses below 4096 and ranges that wrap are refused without a read.
   Any number of threads may call it, if they do not block SIGSEGV and SIGBUS: a blocked fault kills.
   Addresses of the interpreter are uint64_t everywhere, so that no code can follow one. */
bool safe_copy(void *destination, uint64_t address, size_t size);

/* The same for one word and for half of one, inline: most of what is read. */
static inline bool safe_copy_word(uint64_t *word, uint64_t address);
static inline bool safe_copy_half(uint32_t *half, uint64_t address);

#define CACHE_LINE 64

/* Asks for the memory that a later copy will read. Never faults, whatever the address. */
static inline void safe_copy_prefetch(uint64_t address) { __builtin_prefetch((const void *)(uintptr_t)address); }

enum safe_copy_method {
    SAFE_COPY_GUARDED, /* plain loads; the fault handler makes a fault return false. Needs signals_install(). */
    SAFE_COPY_SYSCALL, /* process_vm_readv on ourselves: when the handlers cannot be had */
    SAFE_COPY_NONE,    /* every copy fails: when that is refused, too */
};

/* SAFE_COPY_SYSCALL until something else is said. */
void safe_copy_use(enum safe_copy_method method);
enum safe_copy_method safe_copy_method(void);

/* Copies that failed since the process started, refused ones included. */
uint64_t safe_copy_faults(void);

/* For the fault handler: when the faulting instruction lies in the guarded copy, moves the context to its exit and
   returns true (or, on processors without a copy in assembly, jumps out of the handler). */
bool safe_copy_resolve_fault(void *ucontext);

/* For the inline functions only. */
#define SAFE_COPY_FIRST_ADDRESS 4096u /* the NULL page */
/* Guarded loads may be used above this address, and nowhere when it is the last one: they need the handlers too. */
extern uint64_t safe_copy_loads_above __attribute__((visibility("hidden")));
bool safe_copy_failed(void);

#ifdef SAFE_COPY_FAULT_INJECTION
/* In a test build: the address that a read takes, an unreadable one for a read that is to fail. Asked once for each read. */
uint64_t safe_copy_redirect(uint64_t address);
#else
static inline uint64_t safe_copy_redirect(uint64_t address) { return address; }
#endif

static inline bool safe_copy_word(uint64_t *word, uint64_t address) {
#ifdef SAFE_COPY_LOADS
    if (__builtin_expect(address > __atomic_load_n(&safe_copy_loads_above, __ATOMIC_RELAXED), 1))
        return __builtin_expect(guarded_load_word(word, safe_copy_redirect(address)), 1) ? true : safe_copy_failed();
#endif
    return safe_copy(word, address, sizeof *word);
}

static inline bool safe_copy_half(uint32_t *half, uint64_t address) {
#ifdef SAFE_COPY_LOADS
    if (__builtin_expect(address > __atomic_load_n(&safe_copy_loads_above, __ATOMIC_RELAXED), 1))
        return __builtin_expect(guarded_load_half(half, safe_copy_redirect(address)), 1) ? true : safe_copy_failed();
#endif
    return safe_copy(half, address, sizeof *half);
}

/* Loads a word for nothing but to have it near, and what leads to its page: processors drop a prefetch whose page they would have to
   look up. Calls in a row overlap. */
static inline void safe_copy_touch(uint64_t address) {
#ifdef SAFE_COPY_LOADS
    uint64_t word;
    if (address > __atomic_load_n(&safe_copy_loads_above, __ATOMIC_RELAXED)) guarded_load_word(&word, safe_copy_redirect(address));
#else
    safe_copy_prefetch(address);
#endif
}

#endif
