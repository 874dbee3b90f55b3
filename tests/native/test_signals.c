/* Whose fault is it: faults outside the copy and sent signals reach whom they would reach without us. */
#include "signals_common.h"

#include <sys/syscall.h>
#include <ucontext.h>

static void crash_with_nobody_below(void) {
    install_ours();
    check_copies_fail_safely();
    crash();
}

static void *crash_in_thread(void *unused) {
    crash();
    return unused;
}

static void crash_of_another_thread(void) {
    install_ours();
    pthread_t thread;
    pthread_create(&thread, NULL, crash_in_thread, NULL);
    pthread_join(thread, NULL);
}

static void test_a_crash_elsewhere_dies_of_its_signal(void) {
    CHECK_EQUAL(outcome(crash_with_nobody_below), -SIGSEGV);
    CHECK_EQUAL(outcome(crash_of_another_thread), -SIGSEGV);
}

static void *copy_for_ever(void *unused) {
    char buffer[64];
    for (;;) CHECK(!safe_copy(buffer, (uintptr_t)bad_page, sizeof buffer));
    return unused;
}

static void start_copying(void) {
    install_ours();
    pthread_t thread;
    pthread_create(&thread, NULL, copy_for_ever, NULL);
    pthread_create(&thread, NULL, copy_for_ever, NULL);
}

static void killed(void) { start_copying(), kill(getpid(), SIGSEGV), pause(); }
static void killed_by_bus(void) { start_copying(), kill(getpid(), SIGBUS), pause(); }
static void raised(void) { install_ours(), raise(SIGSEGV); }
static void queued(void) { start_copying(), sigqueue(getpid(), SIGSEGV, (union sigval){0}), pause(); }
static void killed_copying_thread(void) {
    install_ours();
    pthread_t thread;
    pthread_create(&thread, NULL, copy_for_ever, NULL);
    for (;; usleep(1000)) pthread_kill(thread, SIGSEGV); /* one that meets a pending fault is merged into it by the kernel */
}

static void test_a_sent_signal_still_kills_even_amid_copies(void) {
    CHECK_EQUAL(outcome(killed), -SIGSEGV);
    CHECK_EQUAL(outcome(killed_by_bus), -SIGBUS);
    CHECK_EQUAL(outcome(raised), -SIGSEGV);
    CHECK_EQUAL(outcome(queued), -SIGSEGV);
    CHECK_EQUAL(outcome(killed_copying_thread), -SIGSEGV);
}

enum { SENDINGS = 300 };
static volatile sig_atomic_t sendings_seen;
static bool sendings_ended;
static void count_sending(int number) {
    CHECK_EQUAL(number, SIGSEGV);
    sendings_seen++;
}

static void *copy_good_memory(void *unused) {
    static unsigned char source[4096];
    unsigned char buffer[sizeof source];
    /* After a signal that was passed on, copies go by the system call for a while, which an emulator may not have. */
    bool either_works = os_read_memory(buffer, (uintptr_t)source, sizeof source);
    while (!__atomic_load_n(&sendings_ended, __ATOMIC_ACQUIRE))
        CHECK(safe_copy(buffer, (uintptr_t)source, sizeof source) || !either_works);
    return unused;
}

static void sent_to_a_thread_that_copies(void) {
    CHECK(signal(SIGSEGV, count_sending) != SIG_ERR);
    install_ours();
    pthread_t thread;
    pthread_create(&thread, NULL, copy_good_memory, NULL);
    for (int i = 1; i <= SENDINGS; i++) {
        CHECK(pthread_kill(thread, SIGSEGV) == 0);
        while (sendings_seen < i) sched_yield(); /* one that is swallowed hangs here */
    }
    __atomic_store_n(&sendings_ended, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    CHECK_EQUAL(sendings_seen, SENDINGS);
}

static void raise_once_more(int number) {
    if (++sendings_seen < 3) raise(number);
}

static void sent_again_while_it_is_handled(void) {
    CHECK(signal(SIGSEGV, raise_once_more) != SIG_ERR); /* its mask keeps the second one waiting until it has returned */
    install_ours();
    raise(SIGSEGV);
    CHECK_EQUAL(sendings_seen, 3);
}

static void test_a_signal_sent_amid_a_copy_is_passed_on_and_the_copy_succeeds(void) {
    CHECK_EQUAL(outcome(sent_to_a_thread_that_copies), 0);
    CHECK_EQUAL(outcome(sent_again_while_it_is_handled), 0);
}

static void *expected_context_counter;
static void check_details(int number, siginfo_t *info, void *context) {
    CHECK_EQUAL(number, SIGSEGV);
    CHECK(info->si_addr == bad_page && info->si_code == SEGV_ACCERR && context != NULL);
    const char *counter;
#if defined(__x86_64__)
    counter = (const char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    counter = (const char *)(uintptr_t)((ucontext_t *)context)->uc_mcontext.pc;
#endif
    CHECK(counter >= (const char *)expected_context_counter && counter < (const char *)expected_context_counter + 512);
    errno = EDOM;
    mprotect(bad_page, 4096, PROT_READ | PROT_WRITE);
}

static void previous_gets_details_and_cures(void) {
    expected_context_counter = (void *)(uintptr_t)crash;
    take_signal(&owner, check_details, 0);
    install_ours();
    errno = ERANGE;
    crash();
    CHECK_EQUAL(errno, ERANGE);
    CHECK_EQUAL(bad_page[0], 1);
    mprotect(bad_page, 4096, PROT_NONE);
    check_copies_fail_safely();
}

static volatile sig_atomic_t plain_calls;
static void plain(int number) {
    CHECK_EQUAL(number, SIGSEGV);
    if (++plain_calls == 3) mprotect(bad_page, 4096, PROT_READ | PROT_WRITE);
}

static void previous_with_one_argument(void) {
    CHECK(signal(SIGSEGV, plain) != SIG_ERR);
    install_ours();
    crash();
    CHECK_EQUAL(plain_calls, 3);
}

static void test_an_older_handler_gets_the_fault_as_the_kernel_would_give_it(void) {
    CHECK_EQUAL(outcome(previous_gets_details_and_cures), 0);
    CHECK_EQUAL(outcome(previous_with_one_argument), 0);
}

static void ignoring_and_killed(void) {
    signal(SIGSEGV, SIG_IGN);
    install_ours();
    CHECK(kill(getpid(), SIGSEGV) == 0 && raise(SIGSEGV) == 0);
    check_copies_fail_safely();
    _exit(7);
}
static void ignoring_and_crashing(void) {
    signal(SIGSEGV, SIG_IGN);
    install_ours();
    crash();
}

static void test_an_ignored_signal_is_ignored_when_sent_and_kills_when_it_is_a_fault(void) {
    CHECK_EQUAL(outcome(ignoring_and_killed), 7);
    CHECK_EQUAL(outcome(ignoring_and_crashing), -SIGSEGV);
}

static sigset_t mask_seen;
static void keep_mask(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    pthread_sigmask(SIG_BLOCK, NULL, &mask_seen);
    mprotect(bad_page, 4096, PROT_READ | PROT_WRITE);
}

/* A newcomer that calls us: what the older handler blocked must not stay blocked in the rest of it. */
static void check_mask_after_chaining(int number, siginfo_t *info, void *context) {
    sigset_t after;
    chain(number, info, context);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    CHECK_EQUAL(sigismember(&after, SIGUSR1), 0);
}

static void run_with_mask(int flags, int expect_own_signal) {
    struct sigaction action = {.sa_sigaction = keep_mask, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, NULL);
    install_ours();
    take_signal(&chainer, check_mask_after_chaining, SA_NODEFER);
    mprotect(bad_page, 4096, PROT_NONE);
    crash();
    CHECK_EQUAL(sigismember(&mask_seen, SIGUSR1), 1);
    CHECK_EQUAL(sigismember(&mask_seen, SIGUSR2), 0);
    CHECK_EQUAL(sigismember(&mask_seen, SIGSEGV), expect_own_signal);
    pthread_sigmask(SIG_BLOCK, NULL, &mask_seen);
    CHECK_EQUAL(sigismember(&mask_seen, SIGUSR1) + sigismember(&mask_seen, SIGSEGV), 0);
}
static void mask_deferring(void) { run_with_mask(0, 1); }
static void mask_not_deferring(void) { run_with_mask(SA_NODEFER, 0); }
static void reset_handler(void) {
    take_signal(&owner, check_details, SA_RESETHAND);
    expected_context_counter = (void *)(uintptr_t)crash;
    install_ours();
    crash();
    mprotect(bad_page, 4096, PROT_NONE);
    crash();
}

static void test_mask_and_flags_of_an_older_handler_hold(void) {
    CHECK_EQUAL(outcome(mask_deferring), 0);
    CHECK_EQUAL(outcome(mask_not_deferring), 0);
    CHECK_EQUAL(outcome(reset_handler), -SIGSEGV);
}

static char *alternate_stack;
enum { ALTERNATE_SIZE = 1 << 16 };
static void check_on_alternate_stack(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    stack_t stack;
    CHECK(sigaltstack(NULL, &stack) == 0 && stack.ss_flags == SS_ONSTACK && stack.ss_sp == (void *)alternate_stack);
    _exit(OWNER_STATUS);
}

static volatile sig_atomic_t for_ever = 1;
__attribute__((noinline, no_sanitize("address"))) static int overflow(volatile const char *above) {
    volatile char frame[4096];
    frame[0] = above[0];
    return for_ever ? overflow(frame) + frame[0] : 0;
}

static void *overflow_in_thread(void *unused) {
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = ALTERNATE_SIZE};
    CHECK(sigaltstack(&stack, NULL) == 0);
    check_copies_fail_safely();
    return overflow("") ? unused : NULL;
}

static void overflow_on_alternate_stack(void) {
    alternate_stack = malloc(ALTERNATE_SIZE);
    take_signal(&owner, check_on_alternate_stack, 0);
    install_ours();
    pthread_t thread;
    pthread_create(&thread, NULL, overflow_in_thread, NULL);
    pthread_join(thread, NULL);
}

static void test_a_stack_overflow_reaches_its_handler_on_the_alternate_stack(void) {
    CHECK_EQUAL(outcome(overflow_on_alternate_stack), OWNER_STATUS);
}

static void install_with_faults_blocked(void) {
    sigset_t faults, before, after;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_BLOCK, &faults, NULL);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    install_ours();
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int number = 1; number < SIGRTMAX; number++) CHECK_EQUAL(sigismember(&after, number), sigismember(&before, number));
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
    check_copies_fail_safely();
}

static void test_installing_in_a_thread_that_blocks_faults_works_and_keeps_its_mask(void) {
    CHECK_EQUAL(outcome(install_with_faults_blocked), 0);
}

int main(void) {
    alarm(240);
    bad_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bad_page != MAP_FAILED);
    test_a_crash_elsewhere_dies_of_its_signal();
    test_a_sent_signal_still_kills_even_amid_copies();
    test_a_signal_sent_amid_a_copy_is_passed_on_and_the_copy_succeeds();
    test_an_older_handler_gets_the_fault_as_the_kernel_would_give_it();
    test_an_ignored_signal_is_ignored_when_sent_and_kills_when_it_is_a_fault();
    test_mask_and_flags_of_an_older_handler_hold();
    test_a_stack_overflow_reaches_its_handler_on_the_alternate_stack();
    test_installing_in_a_thread_that_blocks_faults_works_and_keeps_its_mask();
    puts("passed");
    return 0;
}
