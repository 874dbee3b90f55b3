/* Foreign handlers that come and go in the middle of our own installation: nobody is put back who has gone, nobody is lost. */
#include "signals_common.h"

int __sigaction(int number, const struct sigaction *action, struct sigaction *before);

/* Runs once, right after the next installation of whomever. */
static void (*after_installation)(void);

int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    int result = __sigaction(number, action, before);
    void (*then)(void) = after_installation;
    if (action && then) {
        after_installation = NULL;
        then();
    }
    return result;
}

static bool is_on_top(void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action;
    CHECK(sigaction(SIGSEGV, NULL, &action) == 0);
    return action.sa_sigaction == handler;
}

static void chainer_goes(void) { CHECK(sigaction(SIGSEGV, &chainer.saved, NULL) == 0); }
static void second_comes(void) { take_signal(&second_chainer, chain_second, 0); }
static void second_comes_and_chainer_goes(void) { second_comes(), chainer_goes(); }

static void gone_while_ours_is_installed(void) {
    install_ours();
    take_signal(&chainer, chain, 0);
    after_installation = chainer_goes;
    CHECK(signals_check());
    CHECK(!after_installation && !is_on_top(chain));
    check_copies_fail_safely();
    take_signal(&chainer, chain, 0); /* had it been put back, it would now find itself, and call itself for ever */
    check_copies_fail_safely();
    log_size = 0;
    crash();
}

static void come_while_ours_is_installed(void) {
    install_ours();
    take_signal(&chainer, chain, 0);
    after_installation = second_comes;
    CHECK(signals_check());
    CHECK(!after_installation && !is_on_top(chain) && !is_on_top(chain_second));
    check_copies_fail_safely();
    check_log("");
    CHECK(sigaction(SIGSEGV, &second_chainer.saved, NULL) == 0); /* it goes in its turn: its level is ours and is nobody else's */
    check_copies_fail_safely();
    check_log("");
    signals_restore();
    CHECK(is_on_top(chain));
    crash();
}

static void come_and_gone_while_ours_is_installed(void) {
    install_ours();
    take_signal(&chainer, chain, 0);
    after_installation = second_comes_and_chainer_goes;
    CHECK(signals_check());
    CHECK(!is_on_top(chain) && !is_on_top(chain_second));
    check_copies_fail_safely();
    check_log("");
    crash();
}

static void test_who_comes_or_goes_while_ours_is_put_on_top_is_seen(void) {
    CHECK_EQUAL(outcome(gone_while_ours_is_installed), -SIGSEGV);
    CHECK_EQUAL(outcome(come_while_ours_is_installed), -SIGSEGV);
    CHECK_EQUAL(outcome(come_and_gone_while_ours_is_installed), -SIGSEGV);
}

int main(void) {
    alarm(100);
    bad_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bad_page != MAP_FAILED);
    test_who_comes_or_goes_while_ours_is_put_on_top_is_seen();
    puts("passed");
    return 0;
}
