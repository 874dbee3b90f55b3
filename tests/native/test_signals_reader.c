/* The thread that reads: it survives newcomers between two checks, dies of its own crashes, and keeps nothing that is sent to others.
   Nothing of this is for qemu-user, which has signals of its own making. */
#include "signals_common.h"

#include "os/os.h"
#include "reading.h"

#include <sys/syscall.h>

enum { ROUNDS = 20, FAULTS_PER_ROUND = 50, SENDINGS = 8, KERNEL_WORDS = 64 };

/* ---- a reader whose every copy faults ---- */

static pthread_t reader_thread;
static unsigned long reader_faults;
static bool reader_ends;

static void *read_bad_memory(void *unused) {
    char buffer[64];
    signals_set_reader(os_thread_id());
    while (!__atomic_load_n(&reader_ends, __ATOMIC_ACQUIRE)) {
        CHECK(!safe_copy(buffer, (uintptr_t)bad_page, sizeof buffer));
        __atomic_add_fetch(&reader_faults, 1, __ATOMIC_RELEASE);
    }
    return unused;
}

static unsigned long faults(void) { return __atomic_load_n(&reader_faults, __ATOMIC_ACQUIRE); }

static void await_more_faults(void) {
    for (unsigned long before = faults(); faults() < before + FAULTS_PER_ROUND;) sched_yield(); /* a reader that is stuck hangs here */
}

static void start_reader(void) {
    install_ours();
    CHECK(pthread_create(&reader_thread, NULL, read_bad_memory, NULL) == 0);
    await_more_faults();
}

static void end_reader(void) {
    __atomic_store_n(&reader_ends, true, __ATOMIC_RELEASE);
    CHECK(pthread_join(reader_thread, NULL) == 0);
}

/* A component that knows signal() only: it calls what it found with the number, and other arguments are gone by then. */
static void (*found_by_number)(int);
static volatile sig_atomic_t calls_by_number;
__attribute__((noinline)) static long use_registers(long a, long b, long c) {
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c));
    return syscall(SYS_getpid) + a + b + c;
}
static void chain_by_number(int number) {
    calls_by_number++;
    use_registers(-1, 1, 2);
    found_by_number(number);
}
static void take_signal_by_number(void) { CHECK((found_by_number = signal(SIGSEGV, chain_by_number)) != SIG_ERR); }

static struct sigaction in_force(void) {
    struct sigaction action;
    CHECK(sigaction(SIGSEGV, NULL, &action) == 0);
    return action;
}

/* ---- newcomers that no check has seen ---- */

static int flags;
static void (*newcomer)(int, siginfo_t *, void *);
static struct foreign *its_memory;

static void newcomers_between_checks(void) {
    start_reader();
    its_memory->saved = in_force(); /* sigaction() fills it in after the handler stands */
    for (int i = 0; i < ROUNDS; i++) {
        take_signal(its_memory, newcomer, flags);
        await_more_faults();
        CHECK(sigaction(SIGSEGV, &its_memory->saved, NULL) == 0);
    }
    CHECK(log_size > 0);
    end_reader();
    _exit(OWNER_STATUS);
}

static void newcomers_by_number(void) {
    start_reader();
    struct sigaction ours = in_force();
    found_by_number = ours.sa_handler;
    take_signal_by_number();
    await_more_faults();
    CHECK(calls_by_number > 0);
    CHECK(in_force().sa_handler != chain_by_number); /* ours again, without a check */
    int calls = calls_by_number;
    await_more_faults();
    CHECK_EQUAL(calls_by_number, calls);
    end_reader();
    _exit(OWNER_STATUS);
}

static void test_a_reader_survives_newcomers_that_let_it(void) {
    static const struct { struct foreign *memory; void (*handler)(int, siginfo_t *, void *); } kinds[] = {
        {&chainer, chain}, {&restorer, restore_and_return}, {&raiser, restore_and_raise}};
    static const int all_flags[] = {0, SA_NODEFER, (int)SA_RESETHAND};
    for (unsigned kind = 0; kind < 3; kind++)
        for (unsigned i = 0; i < 3; i++) {
            if (all_flags[i] == (int)SA_RESETHAND && kind == 0) continue; /* leaves the default in force, and nobody to come back to */
            its_memory = kinds[kind].memory, newcomer = kinds[kind].handler, flags = all_flags[i];
            int ended = outcome(newcomers_between_checks);
            if (ended != OWNER_STATUS) fprintf(stderr, "kind %u, flags %d\n", kind, flags);
            CHECK_EQUAL(ended, OWNER_STATUS);
        }
    CHECK_EQUAL(outcome(newcomers_by_number), OWNER_STATUS);
}

static volatile sig_atomic_t returns;
static void just_return(int number) { returns = returns + (number == SIGSEGV); }

static void newcomer_that_just_returns(void) {
    start_reader();
    for (int i = 0; i < ROUNDS / 4; i++) {
        CHECK(signal(SIGSEGV, just_return) != SIG_ERR);
        sig_atomic_t before = returns;
        while (returns - before < FAULTS_PER_ROUND) sched_yield();
        unsigned long stuck_at = faults();
        while (returns - before < 2 * FAULTS_PER_ROUND) sched_yield();
        CHECK_EQUAL(faults(), stuck_at);
        signals_take_back();
        await_more_faults();
    }
    end_reader();
    CHECK(kill(getpid(), SIGSEGV) == 0); /* is still the newcomer's */
    signals_restore();
    _exit(OWNER_STATUS);
}

static void test_a_stuck_reader_is_freed_by_another_thread(void) {
    CHECK_EQUAL(outcome(newcomer_that_just_returns), OWNER_STATUS);
}

/* ---- crashes ---- */

static void *crash_in_reader(void *unused) {
    signals_set_reader(os_thread_id());
    check_copies_fail_safely();
    crash();
    return unused;
}

static void crash_of_the_reader(void) {
    pthread_t thread;
    if (its_memory && flags & SA_RESTART) take_signal(its_memory, newcomer, SA_NODEFER); /* below ours */
    install_ours();
    if (its_memory && flags & SA_RESTART) signals_check();
    if (its_memory && !(flags & SA_RESTART)) take_signal(its_memory, newcomer, flags); /* on top */
    if (!its_memory && flags) take_signal_by_number();
    if (!its_memory && flags == SA_NODEFER) signals_check();
    pthread_create(&thread, NULL, crash_in_reader, NULL);
    pthread_join(thread, NULL);
}

static void raise_for_ever(int number, siginfo_t *info, void *context) { (void)info, (void)context, raise(number); }
static void crash_of_the_reader_above_a_raiser(void) {
    pthread_t thread;
    take_signal(&raiser, raise_for_ever, SA_NODEFER);
    install_ours();
    pthread_create(&thread, NULL, crash_in_reader, NULL);
    pthread_join(thread, NULL);
}

static void test_a_crash_of_the_reader_itself_kills(void) {
    CHECK_EQUAL(outcome(crash_of_the_reader_above_a_raiser), -SIGSEGV);
    static const int all_flags[] = {0, SA_NODEFER, SA_RESTART};
    for (unsigned i = 0; i < 3; i++) {
        flags = all_flags[i];
        its_memory = &restorer, newcomer = restore_and_return;
        CHECK_EQUAL(outcome(crash_of_the_reader), -SIGSEGV);
        its_memory = &raiser, newcomer = restore_and_raise;
        CHECK_EQUAL(outcome(crash_of_the_reader), -SIGSEGV);
        its_memory = &chainer, newcomer = chain;
        CHECK_EQUAL(outcome(crash_of_the_reader), -SIGSEGV);
        its_memory = NULL;
        CHECK_EQUAL(outcome(crash_of_the_reader), -SIGSEGV);
    }
}

static void crash_above_chaining_by_number(void) { take_signal_by_number(), install_ours(), crash(); }
static void crash_below_chaining_by_number(void) { install_ours(), take_signal_by_number(), crash(); }
static void kill_below_chaining_by_number(void) { install_ours(), take_signal_by_number(), kill(getpid(), SIGSEGV), pause(); }
static void crash_amid_chaining_by_number(void) {
    install_ours(), take_signal_by_number();
    CHECK(signals_check());
    check_copies_fail_safely();
    CHECK_EQUAL(calls_by_number, 0);
    crash();
}
static void crash_of_who_ignores(void) { signal(SIGSEGV, SIG_IGN), install_ours(), take_signal_by_number(), crash(); }

static void test_a_crash_kills_though_a_handler_calls_us_by_number(void) {
    CHECK_EQUAL(outcome(crash_above_chaining_by_number), -SIGSEGV);
    CHECK_EQUAL(outcome(crash_below_chaining_by_number), -SIGSEGV);
    CHECK_EQUAL(outcome(kill_below_chaining_by_number), -SIGSEGV);
    CHECK_EQUAL(outcome(crash_amid_chaining_by_number), -SIGSEGV);
    CHECK_EQUAL(outcome(crash_of_who_ignores), -SIGSEGV);
}

/* As faulthandler: the default first, the report then. */
static void (*reporting)(void);
static void take_away_and_report(int number, siginfo_t *info, void *context) {
    (void)info, (void)context;
    signal(number, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    usleep(20000);
    _exit(OWNER_STATUS);
}

static void *sample_bad_memory(void *unused) {
    char buffer[64];
    reading_use_this_thread();
    for (;;) {
        reading_enter();
        CHECK(reading_check());
        for (int i = 0; i < 20; i++) CHECK(!safe_copy(buffer, (uintptr_t)bad_page, sizeof buffer));
        __atomic_add_fetch(&reader_faults, 20, __ATOMIC_RELEASE);
        reading_leave();
    }
    return unused;
}

static void crash_and_report_while_the_reader_faults(void) {
    take_signal(&owner, take_away_and_report, 0);
    CHECK(reading_begin(false) == NULL && strcmp(reading_method(), "guarded") == 0);
    CHECK(pthread_create(&reader_thread, NULL, sample_bad_memory, NULL) == 0);
    await_more_faults();
    reporting();
    pause();
}
static void raise_once(void) { raise(SIGSEGV); }

static void test_no_fault_of_the_reader_cuts_a_report_short(void) {
    for (int i = 0; i < ROUNDS / 2; i++) {
        reporting = i % 2 ? crash : raise_once;
        CHECK_EQUAL(outcome(crash_and_report_while_the_reader_faults), OWNER_STATUS);
    }
}

/* ---- what is sent to the process ---- */

static pid_t handled_in;
static volatile sig_atomic_t sendings_seen;
static void note_thread(int number) {
    CHECK_EQUAL(number, SIGSEGV);
    handled_in = (pid_t)os_thread_id();
    sendings_seen++;
}

static sigset_t only_segv(void) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGSEGV);
    return one;
}

static void sent_while_the_main_thread_blocks(void) {
    sigset_t one = only_segv();
    CHECK(signal(SIGSEGV, note_thread) != SIG_ERR);
    start_reader();
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    for (int i = 0; i < SENDINGS; i++) {
        siginfo_t info;
        CHECK((i % 2 ? kill(getpid(), SIGSEGV) : sigqueue(getpid(), SIGSEGV, (union sigval){i})) == 0);
        await_more_faults();
        CHECK_EQUAL(sendings_seen, 0);
        CHECK_EQUAL(sigtimedwait(&one, &info, &(struct timespec){20, 0}), SIGSEGV);
    }
    CHECK(kill(getpid(), SIGSEGV) == 0);
    await_more_faults();
    CHECK_EQUAL(sendings_seen, 0);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    CHECK_EQUAL(sendings_seen, 1);
    CHECK_EQUAL(handled_in, getpid());
    end_reader();
}

static bool waiter_ready;
static void *wait_for_signals(void *received) {
    sigset_t one = only_segv();
    __atomic_store_n(&waiter_ready, true, __ATOMIC_RELEASE);
    for (int i = 0, number; i < SENDINGS; i++) {
        CHECK(sigwait(&one, &number) == 0);
        CHECK_EQUAL(number, SIGSEGV);
        __atomic_add_fetch((int *)received, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void sent_while_another_thread_waits_for_it(void) {
    sigset_t one = only_segv();
    pthread_t waiter;
    int received = 0;
    CHECK(signal(SIGSEGV, note_thread) != SIG_ERR);
    start_reader();
    pthread_sigmask(SIG_BLOCK, &one, NULL); /* inherited by the waiter */
    CHECK(pthread_create(&waiter, NULL, wait_for_signals, &received) == 0);
    while (!__atomic_load_n(&waiter_ready, __ATOMIC_ACQUIRE)) sched_yield();
    for (int i = 1; i <= SENDINGS; i++) {
        CHECK(kill(getpid(), SIGSEGV) == 0);
        /* When it did not come to wait for long, it was left to the main thread, which passes it on. */
        for (int waited = 0; __atomic_load_n(&received, __ATOMIC_ACQUIRE) < i; waited++, usleep(1000))
            if (waited > 1000 && sigtimedwait(&one, NULL, &(struct timespec){0, 0}) == SIGSEGV) pthread_kill(waiter, SIGSEGV);
    }
    pthread_join(waiter, NULL);
    CHECK_EQUAL(sendings_seen, 0);
    await_more_faults();
    end_reader();
}

static void test_a_signal_of_the_application_is_not_the_readers(void) {
    CHECK_EQUAL(outcome(sent_while_the_main_thread_blocks), 0);
    CHECK_EQUAL(outcome(sent_while_another_thread_waits_for_it), 0);
}

/* ---- put back to the byte ---- */

static void raw_actions(uintptr_t raw[2][KERNEL_WORDS]) {
    memset(raw, 0, 2 * KERNEL_WORDS * sizeof(uintptr_t));
    CHECK(syscall(SYS_rt_sigaction, SIGSEGV, NULL, raw[0], (size_t)(_NSIG / 8)) == 0);
    CHECK(syscall(SYS_rt_sigaction, SIGBUS, NULL, raw[1], (size_t)(_NSIG / 8)) == 0);
}

static void check_put_back(void) {
    uintptr_t before[2][KERNEL_WORDS], after[2][KERNEL_WORDS];
    raw_actions(before);
    for (int i = 0; i < ROUNDS; i++) {
        install_ours();
        check_copies_fail_safely();
        signals_restore();
        raw_actions(after);
        CHECK(memcmp(before, after, sizeof before) == 0);
    }
}

static void put_back_everything(void) {
    check_put_back(); /* what a process begins with */
    signal(SIGBUS, SIG_IGN);
    check_put_back();
    for (int flag = 0; flag < 4; flag++) {
        take_signal(&owner, end_process, (int[]){0, (int)SA_RESETHAND, SA_NODEFER, SA_RESTART}[flag]);
        check_put_back();
    }
    signal(SIGSEGV, just_return);
    check_put_back();
}

static void test_what_was_there_is_put_back_to_the_byte(void) { CHECK_EQUAL(outcome(put_back_everything), 0); }

/* ---- a check, and others that take back, at the same time ---- */

static void *take_back_often(void *unused) {
    while (!__atomic_load_n(&reader_ends, __ATOMIC_ACQUIRE)) signals_take_back(), sched_yield();
    return unused;
}

static void taken_back_amid_checks(void) {
    pthread_t thread;
    install_ours();
    signals_set_reader(os_thread_id());
    CHECK(pthread_create(&thread, NULL, take_back_often, NULL) == 0);
    chainer.saved = in_force();
    for (int i = 0; i < 50 * ROUNDS; i++) {
        take_signal(&chainer, chain, 0);
        signals_check();
        check_copies_fail_safely();
        CHECK(sigaction(SIGSEGV, &chainer.saved, NULL) == 0);
        log_size = 0;
    }
    __atomic_store_n(&reader_ends, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    crash();
}

static void test_two_threads_may_take_the_signals_back(void) { CHECK_EQUAL(outcome(taken_back_amid_checks), -SIGSEGV); }

int main(void) {
    alarm(110);
    bad_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bad_page != MAP_FAILED);
    test_a_reader_survives_newcomers_that_let_it();
    test_a_stuck_reader_is_freed_by_another_thread();
    test_a_crash_of_the_reader_itself_kills();
    test_a_crash_kills_though_a_handler_calls_us_by_number();
    test_no_fault_of_the_reader_cuts_a_report_short();
    test_a_signal_of_the_application_is_not_the_readers();
    test_what_was_there_is_put_back_to_the_byte();
    test_two_threads_may_take_the_signals_back();
    puts("passed");
    return 0;
}
