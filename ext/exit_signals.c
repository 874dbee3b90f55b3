#include "exit_signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

#define NS_PER_SECOND 1000000000u

enum { TERMINATE, HANG_UP, SIGNALS };
static const int signal_numbers[SIGNALS] = {SIGTERM, SIGHUP};

enum { NOBODY_WATCHES = 0, WATCHED = -1 }; /* above: the signal to die by */
static int state;
static pid_t watched_process; /* a forked child has the handler, but neither thread nor timer */
static uint32_t latest_watch, bell;
static int timer; /* the kernel's */
static uint64_t patience;

/* Written once per installation, before the handler stands. Both lead to the default action: it itself, or Python's handler. */
static struct sigaction found[SIGNALS];
static void (*pythons_handler)(int);
static const struct sigaction default_action; /* all zero: SIG_DFL */

/* ---- dying (async-signal-safe, as all that the handler reaches) ---- */

void exit_signals_die(int number) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    sigaction(number, &default_action, NULL);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    syscall(SYS_tgkill, getpid(), (pid_t)os_thread_id(), number);
    _exit(128 + number); /* as a shell tells it; not reached, but by the first process of a container */
}

void exit_signals_ring(void) {
    __atomic_fetch_add(&bell, 1, __ATOMIC_RELEASE);
    os_wake(&bell);
}

static void set_timer(uint64_t nanoseconds) {
    struct itimerspec time = {.it_value = {(time_t)(nanoseconds / NS_PER_SECOND), (long)(nanoseconds % NS_PER_SECOND)}};
    syscall(SYS_timer_settime, timer, 0, &time, NULL);
}

void exit_signals_begin(int number) {
    int expected = WATCHED;
    if (getpid() != __atomic_load_n(&watched_process, __ATOMIC_ACQUIRE)) exit_signals_die(number);
    if (!__atomic_compare_exchange_n(&state, &expected, number, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (expected == NOBODY_WATCHES) exit_signals_die(number);
        return; /* one has come before: the process is dying */
    }
    set_timer(patience);
    exit_signals_ring();
}

static void on_signal(int number, siginfo_t *info, void *context) {
    int error = errno;
    (void)context;
    int seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &state && seen > 0) exit_signals_die(seen);
    exit_signals_begin(number);
    /* Python then stops its main thread as soon as that runs Python; one that does not is stopped by death alone. */
    void (*next)(int) = found[number == SIGTERM ? TERMINATE : HANG_UP].sa_handler;
    if (next != SIG_DFL) next(number);
    errno = error;
}

/* ---- taking and giving back ---- */

static int index_of(int number) {
    for (int i = 0; i < SIGNALS; i++)
        if (signal_numbers[i] == number) return i;
    return -1;
}

static bool is_ours(const struct sigaction *action) { return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal; }

bool exit_signals_is_default(int number) {
    struct sigaction current;
    return sigaction(number, NULL, &current) == 0 && !(current.sa_flags & SA_SIGINFO) && current.sa_handler == SIG_DFL;
}

bool exit_signals_take(int number, bool is_pythons) {
    int i = index_of(number);
    struct sigaction current, replaced;
    if (i < 0 || sigaction(number, NULL, &current) != 0) return false;
    if (is_ours(&current)) return true;
    if (current.sa_flags & SA_SIGINFO || current.sa_handler == SIG_IGN) return false;
    if (is_pythons && !pythons_handler && current.sa_handler != SIG_DFL) pythons_handler = current.sa_handler;
    if (current.sa_handler != SIG_DFL && !(is_pythons && current.sa_handler == pythons_handler)) return false;
    found[i] = current;
    /* Over Python's handler without SA_RESTART: what is interrupted must come back to Python, which then looks for signals. */
    struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | (is_pythons ? 0 : SA_RESTART)};
    sigemptyset(&ours.sa_mask);
    if (sigaction(number, &ours, &replaced) != 0) return false;
    if (replaced.sa_handler == current.sa_handler) return true;
    sigaction(number, &replaced, NULL); /* C code came between the two calls */
    return false;
}

void exit_signals_give_back(void) {
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction replaced;
        if (sigaction(signal_numbers[i], NULL, &replaced) != 0 || !is_ours(&replaced)) continue;
        sigaction(signal_numbers[i], &default_action, &replaced);
        if (!is_ours(&replaced)) sigaction(signal_numbers[i], &replaced, NULL);
    }
}

/* ---- the export thread ---- */

static bool make_timer(void) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGTERM;
    event.sigev_value.sival_ptr = &state;
    return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0;
}

uint32_t exit_signals_watch(uint64_t patience_ns) {
    /* One that gave up waiting for its export thread is still watched: its timer serves on. */
    bool has_timer = watched_process == getpid() && __atomic_load_n(&state, __ATOMIC_ACQUIRE) != NOBODY_WATCHES;
    if (!has_timer && !make_timer()) return 0;
    patience = patience_ns;
    if (++latest_watch == 0) latest_watch = 1;
    if (watched_process != getpid()) __atomic_store_n(&state, NOBODY_WATCHES, __ATOMIC_RELEASE); /* the parent's */
    __atomic_store_n(&watched_process, getpid(), __ATOMIC_RELEASE);
    int expected = NOBODY_WATCHES; /* a signal that has come stays */
    __atomic_compare_exchange_n(&state, &expected, WATCHED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return latest_watch;
}

bool exit_signals_came(void) { return __atomic_load_n(&state, __ATOMIC_ACQUIRE) > 0 && watched_process == getpid(); }

int exit_signals_seen(uint32_t watch) {
    int seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    return watch == latest_watch && seen > 0 ? seen : 0;
}

void exit_signals_end(uint32_t watch) {
    if (watch != latest_watch || watched_process != getpid()) return;
    int seen = __atomic_exchange_n(&state, NOBODY_WATCHES, __ATOMIC_ACQ_REL);
    if (seen == NOBODY_WATCHES) return;
    if (seen > 0) exit_signals_die(seen);
    syscall(SYS_timer_delete, timer);
}

uint32_t exit_signals_bell(void) { return __atomic_load_n(&bell, __ATOMIC_ACQUIRE); }

void exit_signals_wait(uint32_t rung, uint64_t deadline_monotonic_ns) {
    if (exit_signals_bell() == rung) os_wait(&bell, rung, deadline_monotonic_ns);
}
