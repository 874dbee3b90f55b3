/* The only way to read interpreter memory: a copy that may fail and never faults. */
#ifndef OTEL_ASYNCPROF_SAFE_COPY_H
#define OTEL_ASYNCPROF_SAFE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies size bytes from address. False when any byte is unreadable: the destination then holds garbage.
   Size 0 is true. Addresses below 4096 and ranges that wrap are refused without a read.
   Any number of threads may call it, if they do not block SIGSEGV and SIGBUS: a blocked fault kills.
   Addresses of the interpreter are uint64_t everywhere, so that no code can follow one. */
bool safe_copy(void *destination, uint64_t address, size_t size);

static inline bool safe_copy_word(uint64_t *word, uint64_t address) { return safe_copy(word, address, sizeof *word); }

#define CACHE_LINE 64

/* Asks for the memory that a later copy will read. Never faults, whatever the address. */
static inline void safe_copy_prefetch(uint64_t address) { __builtin_prefetch((const void *)(uintptr_t)address); }

enum safe_copy_method {
    SAFE_COPY_GUARDED, /* plain loads; the fault handler makes a fault return false. Needs signals_install(). */
    SAFE_COPY_SYSCALL, /* process_vm_readv on ourselves: when the handlers cannot be had */
};

/* SAFE_COPY_SYSCALL until something else is said. */
void safe_copy_use(enum safe_copy_method method);
enum safe_copy_method safe_copy_method(void);

/* Copies that failed since the process started, refused ones included. */
uint64_t safe_copy_faults(void);

/* For the fault handler: when the faulting instruction lies in the guarded copy, moves the context to its exit and
   returns true (or, on processors without a copy in assembly, jumps out of the handler). */
bool safe_copy_resolve_fault(void *ucontext);

#endif
