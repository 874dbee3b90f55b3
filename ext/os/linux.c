#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREAD_ID (1u << 22) /* the kernel's own limit */
#define STAT_BYTES 256 /* id, name of at most 64 bytes and state come first */

uint32_t os_thread_id(void) { return (uint32_t)syscall(SYS_gettid); }

bool os_thread_cpu_ns(uint32_t thread_id, uint64_t *ns) {
    /* The kernel's form of a CPU clock: the complement of the id, then "of one thread" (4) and "scheduler time" (2). The kernel
       refuses ids of other processes. Id 0 would mean the caller, an id beyond the limit some other clock. */
    clockid_t clock = (clockid_t)(~thread_id << 3 | 6);
    struct timespec time;
    if (thread_id == 0 || thread_id > MAX_THREAD_ID || clock_gettime(clock, &time) != 0) return false;
    *ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    return true;
}

bool os_thread_cpu_is_exact(void) {
    enum { READINGS = 1000, LARGEST_STEP_NS = 100000 };
    uint64_t before, now;
    uint32_t self = os_thread_id();
    if (!os_thread_cpu_ns(self, &before)) return false;
    for (unsigned i = 0; i < READINGS; i++) { /* each takes a fraction of a microsecond: an exact clock moves in steps as small */
        if (!os_thread_cpu_ns(self, &now) || now == before) continue;
        if (now - before < LARGEST_STEP_NS) return true;
        before = now;
    }
    return false;
}

/* Where it cannot be told (no /proc, no free descriptor), the thread is not said to be in a blocking call. */
static enum os_thread_state without_state(uint32_t thread_id) {
    uint64_t cpu;
    return os_thread_cpu_ns(thread_id, &cpu) ? OS_THREAD_RUNNABLE : OS_THREAD_GONE;
}

enum os_thread_state os_thread_state(uint32_t thread_id) {
    char path[64], line[STAT_BYTES];
    snprintf(path, sizeof path, "/proc/self/task/%u/stat", (unsigned)thread_id);
    int file;
    do file = open(path, O_RDONLY | O_CLOEXEC);
    while (file < 0 && errno == EINTR);
    if (file < 0) return without_state(thread_id);
    ssize_t size;
    do size = read(file, line, sizeof line);
    while (size < 0 && errno == EINTR);
    int error = errno;
    close(file);
    if (size <= 0) return error == ESRCH || size == 0 ? OS_THREAD_GONE : without_state(thread_id);
    /* The name between the parentheses may itself hold parentheses; nothing behind it does. */
    const char *name_end = memrchr(line, ')', (size_t)size);
    if (!name_end || name_end + 2 >= line + size) return OS_THREAD_RUNNABLE;
    switch (name_end[2]) {
    case 'R': return OS_THREAD_RUNNABLE;
    case 'X':
    case 'x':
    case 'Z': return OS_THREAD_GONE;
    default: return OS_THREAD_OFF_CPU;
    }
}

void os_wait(const uint32_t *word, uint32_t value, uint64_t deadline_monotonic_ns) {
    struct timespec deadline = {(time_t)(deadline_monotonic_ns / 1000000000u), (long)(deadline_monotonic_ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
}

void os_wake(const uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

bool os_filters_system_calls(void) { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2; }

bool os_read_memory(void *destination, uint64_t address, size_t size) {
    if (address > UINTPTR_MAX) return false;
    struct iovec local = {destination, size}, remote = {(void *)(uintptr_t)address, size};
    /* getpid() each time: a cached id would read the parent's memory after a fork. */
    ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    return copied >= 0 && (size_t)copied == size;
}
