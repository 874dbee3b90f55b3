#include "reading.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "os/os.h"
#include "safe_copy.h"
#include "signals.h"

static const char *const refusal = "memory can be read neither with handlers of SIGSEGV and SIGBUS, which another component keeps for "
                                   "itself, nor by process_vm_readv, which is refused here (seccomp?)";
static bool have_handlers, checking_self;
static unsigned self_checks; /* begun and not ended: one inside the other */
static enum safe_copy_method method = SAFE_COPY_SYSCALL; /* of the sampler; written by its thread while it runs */
static sigset_t mask_before_self_check;

static bool system_call_works(void) {
    static const uint64_t written = 0x5a17c0de5a17c0deull;
    uint64_t read = 0;
    return os_read_memory(&read, (uintptr_t)&written, sizeof read) && read == written;
}

static void use(enum safe_copy_method chosen) {
    __atomic_store_n(&method, chosen, __ATOMIC_RELAXED);
    safe_copy_use(chosen);
}

const char *reading_begin(bool no_signal_handlers) {
    have_handlers = !no_signal_handlers && signals_install();
    if (!have_handlers && !system_call_works()) return refusal;
    use(have_handlers ? SAFE_COPY_GUARDED : SAFE_COPY_SYSCALL);
    return NULL;
}

void reading_use_this_thread(void) { signals_set_reader(os_thread_id()); }

void reading_enter(void) { signals_reader_reads(true); }
void reading_leave(void) { signals_reader_reads(false); }

bool reading_check(void) {
    if (!have_handlers || signals_are_passed_on()) return method != SAFE_COPY_NONE;
    if (!signals_check() && method == SAFE_COPY_GUARDED) use(system_call_works() ? SAFE_COPY_SYSCALL : SAFE_COPY_NONE);
    if (method == SAFE_COPY_GUARDED && safe_copy_method() != SAFE_COPY_GUARDED) {
        safe_copy_use(SAFE_COPY_GUARDED);
        if (signals_are_passed_on()) safe_copy_use(SAFE_COPY_SYSCALL); /* just now */
    }
    return method != SAFE_COPY_NONE;
}

void reading_unblock(void) {
    if (have_handlers && __atomic_load_n(&method, __ATOMIC_RELAXED) == SAFE_COPY_GUARDED) signals_take_back();
}

void reading_end(void) {
    safe_copy_use(SAFE_COPY_SYSCALL);
    signals_set_reader(0);
    if (have_handlers) signals_restore();
    have_handlers = false;
}

/* A filter of system calls may kill who makes a wrong one: where there is one, the handlers are tried first. */
const char *reading_begin_self_check(void) {
    bool filtered = os_filters_system_calls();
    if (self_checks++ || (!filtered && system_call_works())) return NULL;
    if (!signals_install()) return filtered && system_call_works() ? NULL : (self_checks--, refusal);
    sigset_t faults; /* a blocked fault kills */
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &faults, &mask_before_self_check);
    safe_copy_use(SAFE_COPY_GUARDED);
    checking_self = true;
    return NULL;
}

void reading_end_self_check(void) {
    if (self_checks && --self_checks) return;
    if (!checking_self) return;
    checking_self = false;
    safe_copy_use(SAFE_COPY_SYSCALL);
    pthread_sigmask(SIG_SETMASK, &mask_before_self_check, NULL);
    signals_restore();
}

const char *reading_method(void) {
    static const char *const names[] = {[SAFE_COPY_GUARDED] = "guarded", [SAFE_COPY_SYSCALL] = "syscall", [SAFE_COPY_NONE] = "none"};
    return names[__atomic_load_n(&method, __ATOMIC_RELAXED)];
}

void reading_after_fork_in_child(void) {
    signals_after_fork_in_child();
    reading_end();
}
