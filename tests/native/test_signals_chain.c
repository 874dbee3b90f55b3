/* Foreign handlers before, after and between ours: no copy dies, no crash hangs, and everybody's action is put back.
   With the argument "no-syscall" the copy by system call is left out (qemu-user has none). */
#include "signals_common.h"

#include "clock.h"

enum { MAX_REINSTALLS = 3, ROUNDS = 100, JUMP_ROUNDS = 20, RUN_MS = 1000 };

static bool with_syscall = true;

static struct sigaction current(int number) {
    struct sigaction action;
    CHECK(sigaction(number, NULL, &action) == 0);
    return action;
}

static bool is_on_top(void (*handler)(int, siginfo_t *, void *)) { return current(SIGSEGV).sa_sigaction == handler; }

/* ---- install and restore ---- */

static void restore_puts_everything_back(void) {
    struct sigaction segv = {.sa_sigaction = end_process, .sa_flags = SA_SIGINFO | SA_RESTART}, bus = {.sa_handler = SIG_IGN};
    sigemptyset(&segv.sa_mask);
    sigaddset(&segv.sa_mask, SIGUSR2);
    sigemptyset(&bus.sa_mask);
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        install_ours();
        install_ours();
        CHECK(signals_check());
        CHECK(current(SIGSEGV).sa_flags & SA_ONSTACK && current(SIGSEGV).sa_flags & SA_NODEFER);
        check_copies_fail_safely();
        signals_restore();
        CHECK(is_on_top(end_process) && current(SIGBUS).sa_handler == SIG_IGN);
        struct sigaction back = current(SIGSEGV);
        CHECK_EQUAL(sigismember(&back.sa_mask, SIGUSR2), 1);
        CHECK_EQUAL(back.sa_flags & (SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER), SA_SIGINFO | SA_RESTART);
    }
    signals_restore();
    crash();
}

static void restore_leaves_a_newcomer(void) {
    take_signal(&owner, end_process, 0);
    install_ours();
    take_signal(&chainer, chain, 0);
    signals_restore();
    CHECK(is_on_top(chain) && current(SIGBUS).sa_handler == SIG_DFL);
    check_copies_fail_safely(); /* passes through the newcomer to us */
    check_log("ccccccccccc");
    crash();
}

static void newcomers_between_starts(void) {
    for (int i = 0; i < ROUNDS; i++) {
        install_ours();
        take_signal(&chainer, chain, 0);
        signals_restore();
        CHECK(is_on_top(chain));
        CHECK(sigaction(SIGSEGV, &chainer.saved, NULL) == 0); /* it goes, and puts ours back */
        install_ours();
        check_copies_fail_safely();
        signals_restore();
        CHECK(current(SIGSEGV).sa_handler == SIG_DFL);
    }
    check_log("");
}

static void toggled_by_its_owner(void) {
    for (int i = 0; i < ROUNDS; i++) {
        install_ours();
        take_signal(&chainer, chain, 0);
        install_ours();
        CHECK(!is_on_top(chain));
        CHECK(sigaction(SIGSEGV, &chainer.saved, NULL) == 0);
        check_copies_fail_safely();
    }
    check_log("");
    CHECK(signals_check());
}

static void test_restore_puts_back_what_is_ours_and_leaves_what_is_not(void) {
    CHECK_EQUAL(outcome(restore_puts_everything_back), OWNER_STATUS);
    CHECK_EQUAL(outcome(restore_leaves_a_newcomer), OWNER_STATUS);
    CHECK_EQUAL(outcome(newcomers_between_starts), 0);
    CHECK_EQUAL(outcome(toggled_by_its_owner), 0);
}

/* ---- newcomers ---- */

static void newcomer_that_does_not_chain(void) {
    install_ours();
    take_signal(&owner, end_process, 0);
    CHECK(signals_check());
    CHECK(!is_on_top(end_process));
    check_copies_fail_safely();
    crash();
}

static void newcomer_insists(void) {
    install_ours();
    for (int i = 0; i < MAX_REINSTALLS; i++) {
        take_signal(&owner, end_process, 0);
        CHECK(signals_check());
        CHECK(signals_check());
        check_copies_fail_safely();
    }
    for (int i = 0; i < 3; i++) {
        take_signal(&owner, end_process, 0);
        CHECK(!signals_check());
        CHECK(!signals_check());
        CHECK(is_on_top(end_process));
    }
    signals_restore();
    CHECK(is_on_top(end_process) && current(SIGBUS).sa_handler == SIG_DFL);
    safe_copy_use(SAFE_COPY_SYSCALL);
    if (with_syscall) check_copies_fail_safely();
    crash();
}

static void newcomer_on_bus_only(void) {
    install_ours();
    struct sigaction action = {.sa_handler = SIG_IGN};
    for (int i = 0; i < MAX_REINSTALLS; i++) {
        CHECK(sigaction(SIGBUS, &action, NULL) == 0);
        CHECK(signals_check());
    }
    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    CHECK(!signals_check());
    take_signal(&chainer, chain, 0); /* each signal has its own count */
    CHECK(!signals_check() && !is_on_top(chain));
}

static void test_a_newcomer_is_chained_below_until_it_insists(void) {
    CHECK_EQUAL(outcome(newcomer_that_does_not_chain), OWNER_STATUS);
    CHECK_EQUAL(outcome(newcomer_insists), OWNER_STATUS);
    CHECK_EQUAL(outcome(newcomer_on_bus_only), 0);
}

/* ---- the order in which a crash is passed on ---- */

static int log_pipe[2];
static void report_and_end(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    note('o');
    CHECK(write(log_pipe[1], log_text, (size_t)log_size) == log_size);
    _exit(OWNER_STATUS);
}

static void check_order(void (*body)(void), const char *expected) {
    CHECK(pipe(log_pipe) == 0);
    int ended = outcome(body);
    if (ended != OWNER_STATUS) fprintf(stderr, "where \"%s\" was to run\n", expected);
    CHECK_EQUAL(ended, OWNER_STATUS);
    close(log_pipe[1]);
    memset(log_text, 0, sizeof log_text);
    CHECK(read(log_pipe[0], log_text, sizeof log_text - 1) >= 0);
    check_log(expected);
    memset(log_text, 0, sizeof log_text);
    close(log_pipe[0]);
}

static void owner_ours(void) { take_signal(&owner, report_and_end, 0), install_ours(), crash(); }
static void owner_ours_chainer(void) {
    take_signal(&owner, report_and_end, 0), install_ours(), take_signal(&chainer, chain, 0), crash();
}
static void owner_ours_chainer_ours(void) {
    take_signal(&owner, report_and_end, 0), install_ours(), take_signal(&chainer, chain, 0);
    CHECK(signals_check());
    check_copies_fail_safely();
    crash();
}
static void owner_chainer_ours_second_ours(void) {
    take_signal(&owner, report_and_end, 0), take_signal(&chainer, chain, 0), install_ours();
    take_signal(&second_chainer, chain_second, 0);
    CHECK(signals_check());
    check_copies_fail_safely();
    crash();
}
static void owner_ours_raiser_ours(void) {
    take_signal(&owner, report_and_end, 0), install_ours(), take_signal(&raiser, restore_and_raise, SA_NODEFER);
    CHECK(signals_check());
    check_copies_fail_safely();
    crash();
}
static void owner_raiser_ours(void) {
    take_signal(&owner, report_and_end, 0), take_signal(&raiser, restore_and_raise, 0), install_ours(), crash();
}
static void owner_ours_restorer_ours(void) {
    take_signal(&owner, report_and_end, 0), install_ours(), take_signal(&restorer, restore_and_return, 0);
    CHECK(signals_check());
    check_copies_fail_safely();
    crash();
}
/* It saves one of our levels that already leads to it. Then we look, or do not. */
static void chainer_twice(void) {
    take_signal(&owner, report_and_end, 0), install_ours(), take_signal(&chainer, chain, 0);
    CHECK(signals_check());
    take_signal(&chainer, chain, 0);
}
static void chainer_twice_unseen(void) { chainer_twice(), crash(); }
static void chainer_twice_seen(void) {
    chainer_twice();
    CHECK(signals_check());
    check_copies_fail_safely();
    crash();
}
static void raiser_twice_unseen(void) {
    take_signal(&owner, report_and_end, 0), install_ours(), take_signal(&raiser, restore_and_raise, SA_NODEFER);
    CHECK(signals_check());
    take_signal(&raiser, restore_and_raise, SA_NODEFER);
    crash();
}
static void sent_to_a_circle_of_chainers(void) { chainer_twice(), raise(SIGSEGV); }
static void restorer_twice_seen(void) {
    take_signal(&owner, report_and_end, 0), install_ours();
    for (int i = 0; i <= MAX_REINSTALLS; i++) {
        take_signal(&restorer, restore_and_return, 0);
        CHECK_EQUAL(signals_check(), i < MAX_REINSTALLS);
    }
    crash();
}

static void test_a_crash_reaches_every_handler_once_in_the_order_of_age(void) {
    check_order(owner_ours, "o");
    check_order(owner_ours_chainer, "co");
    check_order(owner_ours_chainer_ours, "co");
    check_order(owner_chainer_ours_second_ours, "sco");
    check_order(owner_ours_raiser_ours, "ro");
    check_order(owner_raiser_ours, "ro");
    check_order(owner_ours_restorer_ours, "to");
    check_order(chainer_twice_unseen, "cco");
    check_order(chainer_twice_seen, "co");
    check_order(raiser_twice_unseen, "rro");
    check_order(sent_to_a_circle_of_chainers, "cco");
    check_order(restorer_twice_seen, "to");
}

/* ---- nobody at the end: death by the signal, no hang ---- */

typedef void (*handler)(int, siginfo_t *, void *);
static struct foreign *const kinds[] = {&chainer, &restorer, &raiser};
static const handler handlers[] = {chain, restore_and_return, restore_and_raise};
static unsigned script; /* base 4 digits: 0 to 2 a newcomer, 3 our look; ours is installed at the digit start_at */
static int flags_of_all, start_at;
enum { SCRIPT_DIGITS = 4, SCRIPTS = 256 };

static void run_script(void) {
    unsigned rest = script;
    for (int digit = 0; digit <= SCRIPT_DIGITS; digit++, rest /= 4) {
        if (digit == start_at) install_ours();
        if (digit == SCRIPT_DIGITS) break;
        if (rest % 4 < 3)
            take_signal(kinds[rest % 4], handlers[rest % 4], flags_of_all);
        else if (digit >= start_at)
            CHECK(signals_check());
    }
    if (signals_check()) check_copies_fail_safely();
    crash();
}

/* A component that installs itself again while itself or another newcomer is below makes a circle without us. Left are the scripts
   in which a circle could only come from us: no kind twice, but for one that comes straight back onto ours and is seen there. */
static bool circle_is_ours_only(void) {
    bool seen[3] = {false};
    int newest = -1, ours_above_newest = 0;
    unsigned rest = script;
    for (int digit = 0; digit < SCRIPT_DIGITS; digit++, rest /= 4) {
        int kind = (int)(rest % 4);
        if (digit == start_at || (kind == 3 && digit > start_at)) ours_above_newest = 1;
        if (kind == 3) continue;
        bool seen_back = digit == SCRIPT_DIGITS - 1 || rest / 4 % 4 == 3;
        if (seen[kind] && !(newest == kind && ours_above_newest && seen_back)) return false;
        seen[kind] = true;
        newest = kind;
        ours_above_newest = 0;
    }
    return true;
}

static void test_a_crash_never_hangs_whatever_the_order_of_handlers(void) {
    int run = 0;
    for (int flags = 0; flags < 2; flags++)
        for (start_at = 0; start_at <= SCRIPT_DIGITS; start_at += 2)
            for (script = 0; script < SCRIPTS; script++) {
                flags_of_all = flags ? SA_NODEFER : 0;
                if (!circle_is_ours_only()) continue;
                run++;
                int ended = outcome(run_script);
                if (ended != -SIGSEGV) fprintf(stderr, "script %u, started at %d, flags %d\n", script, start_at, flags);
                CHECK_EQUAL(ended, -SIGSEGV);
            }
    CHECK_EQUAL(run, 516);
}

/* ---- handlers that never return ---- */

__attribute__((noinline)) static void jump_out_at_depth(int depth) {
    volatile char frame[256];
    frame[0] = (char)depth;
    if (depth > 0)
        jump_out_at_depth(depth - 1);
    else if (sigsetjmp(jump_target, 1) == 0)
        crash();
    CHECK_EQUAL(frame[0], (char)depth);
}

static void jumping_out(void) {
    take_signal(&jumper, jump, 0);
    install_ours();
    take_signal(&chainer, chain, 0);
    for (int seen = 0; seen < 2; seen++) {
        for (int round = 0; round < JUMP_ROUNDS; round++)
            for (int depth = 0; depth < 10; depth++) {
                log_size = 0;
                memset(log_text, 0, sizeof log_text);
                jump_out_at_depth(depth / 2); /* twice the very same fault, then a deeper one */
                check_log("cj");
                log_size = 0;
                check_copies_fail_safely();
            }
        CHECK(signals_check());
    }
}

static void test_a_handler_that_jumps_out_is_called_every_time(void) { CHECK_EQUAL(outcome(jumping_out), 0); }

/* ---- a foreign library amid the run ---- */

static bool run_ended;
static void *come_and_go(void *unused) {
    uint64_t end = clock_monotonic_ns() + RUN_MS * 1000000ull;
    while (clock_monotonic_ns() < end) {
        take_signal(&chainer, chain, 0);
        sched_yield();
        CHECK(sigaction(SIGSEGV, &chainer.saved, NULL) == 0);
    }
    __atomic_store_n(&run_ended, true, __ATOMIC_RELEASE);
    return unused;
}

static void copy_while_a_library_comes_and_goes(void) {
    install_ours();
    chainer.saved = current(SIGSEGV); /* sigaction() fills it in after the handler stands */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, come_and_go, NULL) == 0);
    while (!__atomic_load_n(&run_ended, __ATOMIC_ACQUIRE)) {
        if (!signals_check()) safe_copy_use(SAFE_COPY_SYSCALL);
        if (with_syscall || safe_copy_method() == SAFE_COPY_GUARDED) check_copies_fail_safely();
    }
    pthread_join(thread, NULL);
    crash();
}

static void test_copies_survive_a_library_that_comes_and_goes(void) {
    CHECK_EQUAL(outcome(copy_while_a_library_comes_and_goes), -SIGSEGV);
}

int main(int count, char **arguments) {
    with_syscall = count < 2 || strcmp(arguments[1], "no-syscall") != 0;
    alarm(240);
    bad_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bad_page != MAP_FAILED);
    test_restore_puts_back_what_is_ours_and_leaves_what_is_not();
    test_a_newcomer_is_chained_below_until_it_insists();
    test_a_crash_reaches_every_handler_once_in_the_order_of_age();
    test_a_crash_never_hangs_whatever_the_order_of_handlers();
    test_a_handler_that_jumps_out_is_called_every_time();
    test_copies_survive_a_library_that_comes_and_goes();
    puts("passed");
    return 0;
}
