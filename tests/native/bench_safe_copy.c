/* Nanoseconds per copy, of safe_copy() by either method and of memcpy(). Not run by the tests:
   gcc -std=c11 -D_GNU_SOURCE -O2 -pthread -Iext tests/native/bench_safe_copy.c \
       ext/safe_copy*.c ext/signals.c ext/clock.c ext/os/linux.c */
#include "clock.h"
#include "safe_copy.h"
#include "signals.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 5, SOURCES = 16, LARGEST = 4096 };

static unsigned char sources[SOURCES][LARGEST], destination[LARGEST];

static bool plain_copy(void *to, uint64_t address, size_t size) {
    memcpy(to, (const void *)(uintptr_t)address, size);
    __asm__ volatile("" ::: "memory");
    return true;
}

/* The best of some rounds: the machine may be busy. */
static double best_ns(bool (*copy)(void *, uint64_t, size_t), size_t size, unsigned count, uint64_t fixed_address) {
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clock_monotonic_ns();
        for (unsigned i = 0; i < count; i++)
            copy(destination, fixed_address ? fixed_address : (uintptr_t)sources[i % SOURCES], size);
        double ns = (double)(clock_monotonic_ns() - start) / count;
        if (ns < best) best = ns;
    }
    return best;
}

int main(void) {
    static const size_t sizes[] = {8, 16, 24, 64, 80, 200, 512, 4096};
    bool (*volatile through_pointer)(void *, uint64_t, size_t) = plain_copy;
    if (!signals_install()) return 1;
    puts("bytes    memcpy   guarded   syscall  (ns)");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double plain = best_ns(through_pointer, sizes[i], 1000000, 0);
        safe_copy_use(SAFE_COPY_GUARDED);
        double guarded = best_ns(safe_copy, sizes[i], 1000000, 0);
        safe_copy_use(SAFE_COPY_SYSCALL);
        printf("%5zu %9.2f %9.2f %9.0f\n", sizes[i], plain, guarded, best_ns(safe_copy, sizes[i], 20000, 0));
    }
    void *bad = mmap(NULL, LARGEST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double syscall_fault = best_ns(safe_copy, 64, 20000, (uintptr_t)bad);
    safe_copy_use(SAFE_COPY_GUARDED);
    printf("fault           %9.0f %9.0f\n", best_ns(safe_copy, 64, 20000, (uintptr_t)bad), syscall_fault);
    return 0;
}
