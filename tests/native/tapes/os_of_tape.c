#include "os_of_tape.h"

#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

#define STEP_NS 4000000ull /* CPU time that the running thread has used whenever its clock is read */

uint32_t running_thread;
static uint64_t used_ns;

void os_of_tape_begin(void) { used_ns = 0; }

uint32_t os_thread_id(void) { return (uint32_t)syscall(SYS_gettid); }

bool os_thread_cpu_ns(uint32_t thread_id, uint64_t *ns) {
    *ns = thread_id == running_thread ? used_ns += STEP_NS : 0;
    return true;
}

bool os_thread_cpu_is_exact(void) { return true; }

enum os_thread_state os_thread_state(uint32_t thread_id) { return thread_id == running_thread ? OS_THREAD_RUNNABLE : OS_THREAD_OFF_CPU; }

void os_wait(const uint32_t *word, uint32_t value, uint64_t deadline_monotonic_ns) {
    struct timespec deadline = {(time_t)(deadline_monotonic_ns / 1000000000u), (long)(deadline_monotonic_ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
}

void os_wake(const uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

bool os_read_memory(void *destination, uint64_t address, size_t size) {
    (void)destination, (void)address, (void)size;
    errno = ENOSYS; /* memory comes from pages */
    return false;
}
