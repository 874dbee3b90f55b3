/* Threads as the kernel sees them, memory by system call, and the clock. */
#include "check.h"

#include "clock.h"
#include "os/os.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

enum { BURN_MS = 50, PATIENCE_MS = 5000 };

struct thread {
    pthread_t handle;
    uint32_t id;
    bool stop;
    int wait_for[2];
};

static void *burn(void *argument) {
    struct thread *thread = argument;
    prctl(PR_SET_NAME, "R) S (Z ) 1 2 3");
    __atomic_store_n(&thread->id, os_thread_id(), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&thread->stop, __ATOMIC_ACQUIRE)) {}
    return NULL;
}

static void *sleep_in_read(void *argument) {
    struct thread *thread = argument;
    prctl(PR_SET_NAME, ") R ) R ) R ) R");
    __atomic_store_n(&thread->id, os_thread_id(), __ATOMIC_RELEASE);
    char byte;
    CHECK_EQUAL(read(thread->wait_for[0], &byte, 1), 1);
    return NULL;
}

static void start(struct thread *thread, void *(*body)(void *)) {
    CHECK(pipe(thread->wait_for) == 0);
    CHECK(pthread_create(&thread->handle, NULL, body, thread) == 0);
    while (!__atomic_load_n(&thread->id, __ATOMIC_ACQUIRE)) sched_yield();
}

/* Waits until the thread is in the state; a state that never comes fails. */
static void await_state(uint32_t id, enum os_thread_state expected) {
    uint64_t end = clock_monotonic_ns() + PATIENCE_MS * 1000000ull;
    while (os_thread_state(id) != expected && clock_monotonic_ns() < end) sched_yield();
    CHECK_EQUAL(os_thread_state(id), expected);
}

static void test_states_of_running_sleeping_and_ended_threads_are_told_apart(void) {
    struct thread burner = {0}, sleeper = {0};
    start(&burner, burn);
    start(&sleeper, sleep_in_read);
    await_state(burner.id, OS_THREAD_RUNNABLE);
    await_state(sleeper.id, OS_THREAD_OFF_CPU);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQUAL(os_thread_state(burner.id), OS_THREAD_RUNNABLE);
        CHECK_EQUAL(os_thread_state(sleeper.id), OS_THREAD_OFF_CPU);
    }
    CHECK_EQUAL(os_thread_state(os_thread_id()), OS_THREAD_RUNNABLE);
    __atomic_store_n(&burner.stop, true, __ATOMIC_RELEASE);
    CHECK_EQUAL(write(sleeper.wait_for[1], "", 1), 1);
    pthread_join(burner.handle, NULL);
    pthread_join(sleeper.handle, NULL);
    await_state(burner.id, OS_THREAD_GONE);
    await_state(sleeper.id, OS_THREAD_GONE);
    uint64_t ns;
    CHECK(!os_thread_cpu_ns(burner.id, &ns));
    CHECK_EQUAL(os_thread_state(1), OS_THREAD_GONE); /* a thread of another process */
    CHECK(!os_thread_cpu_ns(1, &ns) && !os_thread_cpu_ns(0, &ns) && !os_thread_cpu_ns(UINT32_MAX, &ns));
}

static void test_cpu_time_is_that_of_the_thread(void) {
    struct thread burner = {0}, sleeper = {0};
    start(&burner, burn);
    start(&sleeper, sleep_in_read);
    await_state(sleeper.id, OS_THREAD_OFF_CPU);
    uint64_t burner_before, sleeper_before, burner_after, sleeper_after;
    CHECK(os_thread_cpu_ns(burner.id, &burner_before) && os_thread_cpu_ns(sleeper.id, &sleeper_before));
    do CHECK(os_thread_cpu_ns(burner.id, &burner_after));
    while (burner_after - burner_before < BURN_MS * 1000000ull); /* the alarm ends a clock that stands still */
    CHECK(os_thread_cpu_ns(sleeper.id, &sleeper_after));
    CHECK_EQUAL(sleeper_after, sleeper_before);
    CHECK(os_thread_cpu_is_exact());
    struct timespec by_handle;
    clockid_t clock;
    __atomic_store_n(&burner.stop, true, __ATOMIC_RELEASE);
    CHECK(pthread_getcpuclockid(sleeper.handle, &clock) == 0 && clock_gettime(clock, &by_handle) == 0);
    CHECK_EQUAL(sleeper_after, (uint64_t)by_handle.tv_sec * 1000000000u + (uint64_t)by_handle.tv_nsec);
    CHECK_EQUAL(write(sleeper.wait_for[1], "", 1), 1);
    pthread_join(burner.handle, NULL);
    pthread_join(sleeper.handle, NULL);
}

static void compare_child(void) {
    static int value;
    int copy = 1;
    value = 77; /* in the child only */
    CHECK(os_read_memory(&copy, (uintptr_t)&value, sizeof value));
    CHECK_EQUAL(copy, 77);
    CHECK_EQUAL(os_thread_state(os_thread_id()), OS_THREAD_RUNNABLE);
    CHECK_EQUAL(os_thread_id(), (uint32_t)getpid());
}

static void test_memory_read_by_system_call_is_whole_or_refused_also_after_a_fork(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes[16];
    CHECK(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0);
    memset(memory, 9, page);
    CHECK(os_read_memory(bytes, (uintptr_t)memory + page - 16, 16) && bytes[0] == 9 && bytes[15] == 9);
    CHECK(!os_read_memory(bytes, (uintptr_t)memory + page - 15, 16));
    CHECK(!os_read_memory(bytes, (uintptr_t)memory + page, 1));
    CHECK_EQUAL(outcome(compare_child), 0);
}

static void test_without_free_descriptors_no_thread_is_said_to_be_gone_or_blocked(void) {
    struct rlimit limit = {0, 0};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK_EQUAL(os_thread_state(os_thread_id()), OS_THREAD_RUNNABLE);
}
static void run_without_descriptors(void) { test_without_free_descriptors_no_thread_is_said_to_be_gone_or_blocked(); }

/* As in a container of its own; without the right to change the root, a user namespace gives it. */
static void run_without_proc(void) {
    char folder[] = "/tmp/no_proc_XXXXXX";
    struct thread burner = {0};
    CHECK(mkdtemp(folder) != NULL);
    start(&burner, burn);
    bool changed = chroot(folder) == 0;
    if (!changed && errno == EPERM) changed = unshare(CLONE_NEWUSER) == 0 && chroot(folder) == 0;
    CHECK(changed && access("/proc", F_OK) != 0);
    CHECK_EQUAL(os_thread_state(os_thread_id()), OS_THREAD_RUNNABLE);
    CHECK_EQUAL(os_thread_state(burner.id), OS_THREAD_RUNNABLE);
    __atomic_store_n(&burner.stop, true, __ATOMIC_RELEASE);
    pthread_join(burner.handle, NULL);
    await_state(burner.id, OS_THREAD_GONE);
}

static struct clock_alarm alarm_clock;
static void *ring(void *unused) {
    clock_alarm_ring(&alarm_clock);
    return unused;
}

static void test_a_wait_ends_at_its_deadline_or_by_a_ring(void) {
    CHECK(!clock_alarm_wait(&alarm_clock, 0));
    uint64_t deadline = clock_monotonic_ns() + 20000000;
    CHECK(!clock_alarm_wait(&alarm_clock, deadline));
    CHECK(clock_monotonic_ns() >= deadline);
    const uint64_t far[] = {clock_monotonic_ns() + 3600000000000ull, UINT64_MAX};
    for (int i = 0; i < 2; i++) {
        pthread_t ringer;
        alarm_clock = (struct clock_alarm){0};
        CHECK(pthread_create(&ringer, NULL, ring, NULL) == 0);
        CHECK(clock_alarm_wait(&alarm_clock, far[i]));
        pthread_join(ringer, NULL);
    }
    CHECK(clock_alarm_wait(&alarm_clock, 0)); /* it stays rung */
}

static void test_the_clocks_are_monotonic_and_wall_time(void) {
    struct timespec before, after;
    clock_gettime(CLOCK_REALTIME, &before);
    uint64_t real = clock_realtime_ns(), last = clock_monotonic_ns();
    clock_gettime(CLOCK_REALTIME, &after);
    CHECK(real >= (uint64_t)before.tv_sec * 1000000000u + (uint64_t)before.tv_nsec);
    CHECK(real <= (uint64_t)after.tv_sec * 1000000000u + (uint64_t)after.tv_nsec);
    clock_gettime(CLOCK_MONOTONIC, &before);
    CHECK(last <= (uint64_t)before.tv_sec * 1000000000u + (uint64_t)before.tv_nsec);
    CHECK(clock_monotonic_ns() > last);
}

int main(void) {
    alarm(60);
    test_states_of_running_sleeping_and_ended_threads_are_told_apart();
    test_cpu_time_is_that_of_the_thread();
    test_memory_read_by_system_call_is_whole_or_refused_also_after_a_fork();
    CHECK_EQUAL(outcome(run_without_descriptors), 0);
    CHECK_EQUAL(outcome(run_without_proc), 0);
    test_a_wait_ends_at_its_deadline_or_by_a_ring();
    test_the_clocks_are_monotonic_and_wall_time();
    puts("passed");
    return 0;
}
