/* What a read of 64 bytes costs by several methods, some of which survive an address that cannot be read. Prints one line per method:
   name, then nanoseconds per read (medians over rounds in which all methods take their turns), tab between them, "-" for what a
   method cannot do. Built and explained by copy_methods.py. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "safe_copy.h"
#include "signals.h"

enum { SIZE = 64, ADDRESSES = 1 << 15, WARM_SOURCES = 16, WARM_READS = 2048, ROUNDS = 21, MAX_BATCH = 1024 };
#define FIELD_BYTES ((size_t)512 << 20)

enum place { WARM, RANDOM, CHASE, FAULT, PLACES };

static unsigned char destination[MAX_BATCH * SIZE] __attribute__((aligned(64)));
static uint64_t addresses[PLACES][ADDRESSES];
static sigjmp_buf escape;
static volatile sig_atomic_t armed;

static void jump_out(int signal) {
    if (!armed) _exit(128 + signal);
    siglongjmp(escape, 1);
}

/* ---- one read ---- */

__attribute__((noinline)) static bool by_memcpy(uint64_t address) {
    memcpy(destination, (const void *)(uintptr_t)address, SIZE);
    __asm__ volatile("" ::: "memory");
    return true;
}

__attribute__((noinline)) static bool by_guarded(uint64_t address) { return safe_copy(destination, address, SIZE); }

__attribute__((noinline)) static bool by_jump_without_mask(uint64_t address) {
    if (sigsetjmp(escape, 0)) {
        armed = 0;
        return false;
    }
    armed = 1;
    by_memcpy(address);
    armed = 0;
    return true;
}

__attribute__((noinline)) static bool by_jump_with_mask(uint64_t address) {
    if (sigsetjmp(escape, 1)) {
        armed = 0;
        return false;
    }
    armed = 1;
    by_memcpy(address);
    armed = 0;
    return true;
}

/* ---- many reads ---- */

/* chase: the next address is known only when the last read is done, as when an object leads to the next (the bytes read are 0).
   Two loops, because a conditional move would make the addresses of both wait. */
#define READ_EACH(name, copy)                                                \
    static void name(const uint64_t *from, unsigned count, bool chase) {     \
        uint64_t offset = 0;                                                 \
        if (!chase)                                                          \
            for (unsigned i = 0; i < count; i++) copy(from[i]);              \
        else                                                                 \
            for (unsigned i = 0; i < count; i++) {                           \
                copy(from[i] + offset);                                      \
                memcpy(&offset, destination, sizeof offset);                 \
            }                                                                \
    }
READ_EACH(memcpy_each, by_memcpy)
READ_EACH(safe_copy_each, by_guarded)
READ_EACH(jump_without_mask_each, by_jump_without_mask)
READ_EACH(jump_with_mask_each, by_jump_with_mask)

static void vectors(const uint64_t *from, unsigned count, unsigned batch, bool chase) {
    static struct iovec remote[MAX_BATCH];
    pid_t self = getpid();
    uint64_t offset = 0;
    for (unsigned done = 0; done < count; done += batch) {
        for (unsigned i = 0; i < batch; i++)
            remote[i] = (struct iovec){(void *)(uintptr_t)(from[done + i] + offset), SIZE};
        struct iovec local = {destination, (size_t)batch * SIZE};
        ssize_t copied = process_vm_readv(self, &local, 1, remote, batch, 0);
        (void)copied; /* an address that cannot be read is a case of its own */
        if (chase) memcpy(&offset, destination, sizeof offset);
    }
}
static void one_vector(const uint64_t *from, unsigned count, bool chase) { vectors(from, count, 1, chase); }
static void some_vectors(const uint64_t *from, unsigned count, bool chase) { vectors(from, count, 64, chase); }
static void many_vectors(const uint64_t *from, unsigned count, bool chase) { vectors(from, count, MAX_BATCH, chase); }

enum handlers { NONE, PROJECT, JUMP };

static const struct method {
    const char *name;
    void (*read)(const uint64_t *from, unsigned count, bool chase);
    unsigned count, faults; /* reads in one turn; 0 faults: it has no answer to them, or they end a whole batch */
    enum handlers handlers;
    bool batched;           /* cannot chase */
} methods[] = {
    {"memcpy", memcpy_each, 16384, 0, NONE, false},
    {"guarded copy (`safe_copy`)", safe_copy_each, 16384, 500, PROJECT, false},
    {"`sigsetjmp(env, 0)` per read", jump_without_mask_each, 16384, 500, JUMP, false},
    {"`sigsetjmp(env, 1)` per read", jump_with_mask_each, 8192, 500, JUMP, false},
    {"`process_vm_readv`, 1 vector", one_vector, 2048, 500, NONE, false},
    {"`process_vm_readv`, 64 vectors", some_vectors, 8192, 0, NONE, true},
    {"`process_vm_readv`, 1024 vectors", many_vectors, 16384, 0, NONE, true},
};
enum { METHODS = sizeof methods / sizeof *methods };

static double measured[METHODS][PLACES][ROUNDS];

static bool can(const struct method *method, enum place place) {
    return place == FAULT ? method->faults > 0 : place == CHASE ? !method->batched : true;
}

static void set_handlers(enum handlers handlers) {
    struct sigaction jump = {.sa_handler = jump_out, .sa_flags = SA_NODEFER}, standard = {.sa_handler = SIG_DFL};
    if (handlers == PROJECT) {
        if (!signals_install()) exit(1);
        safe_copy_use(SAFE_COPY_GUARDED);
        return;
    }
    signals_restore();
    sigaction(SIGSEGV, handlers == JUMP ? &jump : &standard, NULL);
    sigaction(SIGBUS, handlers == JUMP ? &jump : &standard, NULL);
}

static double ns_per_read(const struct method *method, enum place place) {
    unsigned count = place == FAULT ? method->faults : place == WARM ? WARM_READS : method->count;
    /* Where in the list the turn begins changes, so that no turn finds the last one's lines in the caches. */
    unsigned begin = place == WARM || place == FAULT ? 0 : (unsigned)rand() % (ADDRESSES / MAX_BATCH) * MAX_BATCH;
    if (begin + count > ADDRESSES) begin = ADDRESSES - count;
    if (place == WARM) method->read(addresses[WARM], WARM_READS, false);
    uint64_t start = clock_monotonic_ns();
    method->read(&addresses[place][begin], count, place == CHASE);
    return (double)(clock_monotonic_ns() - start) / count;
}

static int by_size(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(void) {
    unsigned char *field = mmap(NULL, FIELD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *bad = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (field == MAP_FAILED || bad == MAP_FAILED) return 1;
    madvise(field, FIELD_BYTES, MADV_NOHUGEPAGE); /* objects are scattered over small pages */
    for (size_t i = 0; i < FIELD_BYTES; i += 4096) field[i] = 0; /* has every page a frame of its own */
    for (unsigned i = 0; i < ADDRESSES; i++) {
        addresses[WARM][i] = (uintptr_t)field + i % WARM_SOURCES * SIZE;
        addresses[FAULT][i] = (uintptr_t)bad;
        for (enum place place = RANDOM; place <= CHASE; place++)
            addresses[place][i] = (uintptr_t)field + ((size_t)rand() << 16 ^ (size_t)rand()) % (FIELD_BYTES / SIZE) * SIZE;
    }
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < METHODS; i++) {
            set_handlers(methods[i].handlers);
            for (enum place place = WARM; place < PLACES; place++)
                if (can(&methods[i], place)) measured[i][place][round] = ns_per_read(&methods[i], place);
        }
    for (unsigned i = 0; i < METHODS; i++) {
        printf("%s", methods[i].name);
        for (enum place place = WARM; place < PLACES; place++) {
            qsort(measured[i][place], ROUNDS, sizeof(double), by_size);
            if (can(&methods[i], place)) printf("\t%.2f", measured[i][place][ROUNDS / 2]);
            else printf("\t-");
        }
        putchar('\n');
    }
    return 0;
}
