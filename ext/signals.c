/* Every (re-)installation uses a handler function of its own, a level, that passes on to what it found. So a level only ever leads
   to something older, also when a newcomer kept an earlier level as its previous action, calls it, or puts it back: newcomer and
   level cannot send a fault round in a circle. One function for all installations could not tell such a call from a new fault. */
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "os/os.h"
#include "safe_copy.h"
#include "safe_copy_guarded.h"
#include "signal_origin.h"

#define MAX_LEVELS 8
#define MAX_REINSTALLS 3
#define PASSING_SLOTS 256
#define QUIET_NS 5000000000ull /* longer than a crash takes */
#define MAX_QUIET_WAIT_NS 1000000000ull /* the reader may have to wait for a CPU in the middle of a copy */
#define QUIET_POLL_NS 1000000
#define KERNEL_ACTION_WORDS 64
#define KERNEL_MASK_BYTES ((size_t)(_NSIG / 8))

enum { SEGV, BUS, SIGNALS };
static const int signal_numbers[SIGNALS] = {SIGSEGV, SIGBUS};

/* Read by the handler in any thread, so previous is published whole and what it points to is not written while it is in use. */
struct level {
    const struct sigaction *previous;
    struct sigaction found[2]; /* before installing, and what the installation replaced when somebody came between */
    uintptr_t found_exactly[KERNEL_ACTION_WORDS]; /* found[0] as the kernel has it: the library sets a flag and a function of its own */
};
static struct level levels[SIGNALS][MAX_LEVELS];
static unsigned levels_used[SIGNALS], reinstalls[SIGNALS];
static uint32_t changing; /* 1 while a thread looks after the levels; others then leave it to that one */
static uint64_t passed_ns; /* when a signal was last passed on; 0 = never */
static uint32_t passed, passed_known; /* how many were, and how many of them the reader knows of */
static uint32_t reads;    /* 1 while the reader may be in a copy */
static uint32_t reader;   /* kernel id of the thread that reads, in which nothing of the application runs; 0 = none */
static const struct sigaction default_action; /* all zero: SIG_DFL */

static void entry_0(int, siginfo_t *, void *), entry_1(int, siginfo_t *, void *), entry_2(int, siginfo_t *, void *),
    entry_3(int, siginfo_t *, void *), entry_4(int, siginfo_t *, void *), entry_5(int, siginfo_t *, void *),
    entry_6(int, siginfo_t *, void *), entry_7(int, siginfo_t *, void *);
static void (*const entries[MAX_LEVELS])(int, siginfo_t *, void *) = {entry_0, entry_1, entry_2, entry_3,
                                                                     entry_4, entry_5, entry_6, entry_7};

/* ---- passing on what is not ours (in the handler: async-signal-safe calls only) ---- */

/* Which levels a fault has been through, for the case that a newcomer takes a level as its previous action twice. One slot for
   several threads, without a lock: a thread whose slot was taken over begins anew, which costs one more round. No thread-local
   storage: its first use may allocate, and the model that does not can keep the library from loading. */
struct passing {
    uint32_t thread, seen;
    uintptr_t context, frame;
};
static struct passing passings[PASSING_SLOTS];

static struct passing load_passing(const struct passing *slot) {
    return (struct passing){.thread = __atomic_load_n(&slot->thread, __ATOMIC_RELAXED),
                            .seen = __atomic_load_n(&slot->seen, __ATOMIC_RELAXED),
                            .context = __atomic_load_n(&slot->context, __ATOMIC_RELAXED),
                            .frame = __atomic_load_n(&slot->frame, __ATOMIC_RELAXED)};
}

static void store_passing(struct passing *slot, struct passing value) {
    __atomic_store_n(&slot->thread, value.thread, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->seen, value.seen, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->context, value.context, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->frame, value.frame, __ATOMIC_RELAXED);
}

/* A fault recurs on return and then dumps the right place; a sent signal must be sent again, and so what may be one. */
static void act_by_default(int number, enum signal_origin origin) {
    sigaction(number, &default_action, NULL);
    if (origin != ORIGIN_FAULT) syscall(SYS_tgkill, getpid(), (pid_t)os_thread_id(), number);
}

/* Calls an older handler as the kernel would have, and leaves its mask for the caller to undo. Kept are the arguments (so si_addr
   and a changed context work), sa_mask, SA_NODEFER, SA_SIGINFO and SA_RESETHAND. Not kept is the absence of SA_ONSTACK: it runs on
   the thread's alternate stack if there is one, as ours must (Go and deep recursions need it). SIG_IGN does not hold for a fault:
   the kernel kills there too. */
static void call_previous(const struct sigaction **previous, int number, siginfo_t *info, void *context, enum signal_origin origin) {
    const struct sigaction *action = __atomic_load_n(previous, __ATOMIC_ACQUIRE);
    if (action->sa_handler == SIG_IGN && (origin == ORIGIN_SENT || origin == ORIGIN_RAISED)) return;
    if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN) {
        act_by_default(number, origin);
        return;
    }
    if (action->sa_flags & SA_RESETHAND) __atomic_store_n(previous, &default_action, __ATOMIC_RELEASE);
    sigset_t blocked = action->sa_mask;
    if (!(action->sa_flags & SA_NODEFER)) sigaddset(&blocked, number);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction(number, info, context);
    else
        action->sa_handler(number);
}

/* A fault comes back to us while the handler that we passed it to still runs: by a direct call, with the same context, or because
   that handler raised the signal in its turn. A slot that a handler left behind by siglongjmp is told by the stack: a new fault at
   the same place has the same frame, not a deeper one. (Stacks grow down on every Linux processor that CPython supports.) */
static void pass_on(unsigned level, uint32_t thread, int number, siginfo_t *info, void *context, enum signal_origin origin) {
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct passing *slot = &passings[thread % PASSING_SLOTS];
    struct passing outer = load_passing(slot);
    bool same = outer.context == (uintptr_t)context || origin == ORIGIN_RAISED || origin == ORIGIN_UNKNOWN;
    bool again = outer.thread == thread && frame < outer.frame && same;
    uint32_t seen = again ? outer.seen : 0;
    unsigned rest = level + 1; /* levels from here down that may still be passed */
    while (rest > 0 && seen >> (rest - 1) & 1) rest--;
    if (rest == 0) {
        act_by_default(number, origin);
        return;
    }
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    store_passing(slot, (struct passing){thread, seen | 1u << (rest - 1), (uintptr_t)context, frame});
    call_previous(&levels[number == SIGBUS ? BUS : SEGV][rest - 1].previous, number, info, context, origin);
    store_passing(slot, outer);
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* what comes now was kept waiting by the handler's mask, and is a new signal */
}

/* An older handler may take all handlers away before it reports a crash (faulthandler puts the default back first): a copy that
   faults then would end the process in the middle of the report. So the reader does without handlers for a while, and the crash waits
   for the copy that may be under way. */
static void quieten_reader(uint32_t thread) {
    uint32_t number = __atomic_add_fetch(&passed, 1, __ATOMIC_SEQ_CST);
    uint64_t now = clock_monotonic_ns();
    __atomic_store_n(&passed_ns, now, __ATOMIC_SEQ_CST);
    if (safe_copy_method() != SAFE_COPY_GUARDED) return;
    safe_copy_use(SAFE_COPY_SYSCALL);
    if (thread == __atomic_load_n(&reader, __ATOMIC_RELAXED)) return;
    while (clock_monotonic_ns() - now < MAX_QUIET_WAIT_NS) {
        bool knows = (int32_t)(__atomic_load_n(&passed_known, __ATOMIC_SEQ_CST) - number) >= 0;
        if (knows || !__atomic_load_n(&reads, __ATOMIC_SEQ_CST)) break;
        nanosleep(&(struct timespec){0, QUIET_POLL_NS}, NULL);
    }
}

static bool take_back(int number);

/* In the reading thread there is nothing of the application, so that a signal means something else there. True: no more to do. */
static bool answer_in_reader(int number, siginfo_t *info, enum signal_origin origin) {
    if (origin == ORIGIN_FAULT) return false; /* a crash of our own */
    /* A newcomer that is on top now, whether for a fault of the copy or not: with ours on top the fault comes again, with its details. */
    if (origin == ORIGIN_UNKNOWN) return take_back(number);
    if (info->si_code > 0) return false;
    if (origin == ORIGIN_SENT || info->si_code != SI_TKILL) return signal_give_away(number, info);
    /* A newcomer was on top when a copy faulted, has put ours back and has raised the signal anew (so does faulthandler): on return
       the copy faults again, and that comes to us. When we passed on a crash of our own, it is the next one's turn instead. */
    struct passing outer = load_passing(&passings[reader % PASSING_SLOTS]);
    return !(outer.thread == reader && (uintptr_t)__builtin_frame_address(0) < outer.frame);
}

static void on_signal(unsigned level, int number, siginfo_t *info, void *context) {
    int error = errno;
    enum signal_origin origin = signal_origin(number, info, context);
    /* A signal that was sent while the copy ran is no fault of the copy. */
    if (origin != ORIGIN_FAULT || !safe_copy_resolve_fault(context)) {
        uint32_t thread = os_thread_id();
        if (thread != __atomic_load_n(&reader, __ATOMIC_RELAXED) || !answer_in_reader(number, info, origin)) {
            quieten_reader(thread);
            pass_on(level, thread, number, info, context, origin);
        }
    }
    errno = error;
}

#define ENTRY(level) \
    static void entry_##level(int number, siginfo_t *info, void *context) { on_signal(level, number, info, context); }
ENTRY(0) ENTRY(1) ENTRY(2) ENTRY(3) ENTRY(4) ENTRY(5) ENTRY(6) ENTRY(7)

/* ---- installing, checking, restoring (one thread at a time) ---- */

static bool begin_change(void) { return !__atomic_exchange_n(&changing, 1, __ATOMIC_ACQUIRE); }
static void end_change(void) { __atomic_store_n(&changing, 0, __ATOMIC_RELEASE); }

static int level_of(uintptr_t handler) {
    for (int level = 0; level < MAX_LEVELS; level++)
        if (handler == (uintptr_t)entries[level]) return level;
    return -1;
}

/* The level the kernel will call, or -1. Asked of the kernel, because libraries interpose sigaction() and answer what was asked of
   them, not what is in force. The handler is the first word of the kernel's structure; where it is not (MIPS), we are never
   found on top, and the caller uses system calls. */
static bool read_kernel_action(int signal, uintptr_t action[KERNEL_ACTION_WORDS]) {
    return syscall(SYS_rt_sigaction, signal_numbers[signal], NULL, action, KERNEL_MASK_BYTES) == 0;
}

static int level_in_force(int signal) {
    uintptr_t action[KERNEL_ACTION_WORDS] = {0};
    return read_kernel_action(signal, action) ? level_of(action[0]) : -1;
}

/* The newcomer on top has been there before: it installed itself anew and may now hold one of our levels as its previous action.
   The levels that still lead to it would come round to themselves, without a nested call when it puts that level back and returns:
   a hang on a crash that only this can prevent, and only for a newcomer that is still on top when we look. */
static void forget_newcomer(int signal, unsigned levels_below, const struct sigaction *newcomer) {
    struct level *below = levels[signal];
    if (newcomer->sa_handler == SIG_DFL || newcomer->sa_handler == SIG_IGN) return;
    for (unsigned i = 0; i < levels_below; i++)
        if (below[i].previous->sa_handler == newcomer->sa_handler)
            __atomic_store_n(&below[i].previous, i > 0 ? below[i - 1].previous : &default_action, __ATOMIC_RELEASE);
}

static void leave_newcomer(int signal) {
    struct sigaction newcomer;
    if (sigaction(signal_numbers[signal], NULL, &newcomer) == 0) forget_newcomer(signal, levels_used[signal], &newcomer);
}

static bool is_on_top(int signal) {
    int level = level_in_force(signal);
    if (level < 0) return false;
    levels_used[signal] = (unsigned)level + 1; /* a newcomer has put this one back; nobody leads to the levels above any more */
    return true;
}

static bool put_on_top(int signal) {
    int number = signal_numbers[signal];
    if (is_on_top(signal)) return true;
    if (levels_used[signal] == MAX_LEVELS) return false;
    unsigned above = levels_used[signal];
    struct level *level = &levels[signal][above];
    if (sigaction(number, NULL, &level->found[0]) != 0 || !read_kernel_action(signal, level->found_exactly)) return false;
    __atomic_store_n(&level->previous, &level->found[0], __ATOMIC_RELEASE);
    levels_used[signal]++; /* before the handler stands, so that a child forked in between does not use this level twice */
    struct sigaction ours = {.sa_sigaction = entries[above], .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&ours.sa_mask);
    if (sigaction(number, &ours, &level->found[1]) != 0) {
        levels_used[signal]--;
        return false;
    }
    if (level->found[1].sa_handler != level->found[0].sa_handler)
        __atomic_store_n(&level->previous, &level->found[1], __ATOMIC_RELEASE);
    forget_newcomer(signal, above, level->previous);
    if (level_in_force(signal) == (int)above) return true;
    /* Somebody came or went since, and may lead to this level; or an interposer, who says it is ours, kept the signal for itself. */
    struct sigaction said;
    if (sigaction(number, NULL, &said) == 0 && level_of((uintptr_t)said.sa_sigaction) == (int)above &&
        level_in_force(signal) != (int)above) {
        sigaction(number, level->previous, NULL);
        levels_used[signal]--;
    }
    return is_on_top(signal);
}

static bool prove(void) {
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    sigset_t faults, before; /* a blocked fault kills */
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &faults, &before);
    unsigned char byte;
    bool proven = !safe_copy_guarded(&byte, (uintptr_t)page, 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(page, size);
    return proven;
}

bool signals_install(void) {
    bool installed = true;
    for (int signal = 0; signal < SIGNALS; signal++) installed = put_on_top(signal) && installed;
    if (installed && prove()) return true;
    signals_restore();
    return false;
}

bool signals_check(void) {
    bool ours = true;
    if (!begin_change()) return true;
    for (int signal = 0; signal < SIGNALS; signal++) {
        bool on_top = is_on_top(signal);
        for (; !on_top && reinstalls[signal] < MAX_REINSTALLS; reinstalls[signal]++) on_top = put_on_top(signal);
        if (!on_top) leave_newcomer(signal);
        ours = on_top && ours;
    }
    end_change();
    return ours;
}

static bool take_back(int number) {
    int signal = number == SIGBUS ? BUS : SEGV;
    if (!begin_change()) return false;
    bool back = !is_on_top(signal) && put_on_top(signal);
    end_change();
    return back;
}

void signals_take_back(void) {
    for (int signal = 0; signal < SIGNALS; signal++) take_back(signal_numbers[signal]);
}

bool signals_are_passed_on(void) {
    uint32_t number = __atomic_load_n(&passed, __ATOMIC_SEQ_CST);
    uint64_t last = __atomic_load_n(&passed_ns, __ATOMIC_SEQ_CST);
    __atomic_store_n(&passed_known, number, __ATOMIC_SEQ_CST);
    return last && clock_monotonic_ns() - last < QUIET_NS;
}

void signals_reader_reads(bool now) { __atomic_store_n(&reads, now, __ATOMIC_SEQ_CST); }

void signals_set_reader(uint32_t thread_id) { __atomic_store_n(&reader, thread_id, __ATOMIC_RELAXED); }

/* To the byte, so that nobody can tell: the library has told interposers, but writes a flag and a function of its own. */
static void put_back_exactly(int signal, const struct level *level) {
    uintptr_t now[KERNEL_ACTION_WORDS] = {0};
    bool is_found = __atomic_load_n(&level->previous, __ATOMIC_RELAXED) == &level->found[0];
    if (!is_found || !read_kernel_action(signal, now) || now[0] != level->found_exactly[0]) return;
    if (memcmp(now, level->found_exactly, sizeof now) != 0)
        syscall(SYS_rt_sigaction, signal_numbers[signal], level->found_exactly, NULL, KERNEL_MASK_BYTES);
}

void signals_restore(void) {
    for (int signal = 0; signal < SIGNALS; signal++) {
        int level = level_in_force(signal);
        if (level < 0) { /* it stays, and may lead to us: the levels go on passing through */
            leave_newcomer(signal);
            continue;
        }
        struct sigaction replaced;
        sigaction(signal_numbers[signal], levels[signal][level].previous, &replaced);
        if (level_of((uintptr_t)replaced.sa_sigaction) == level) {
            levels_used[signal] = (unsigned)level;
            put_back_exactly(signal, &levels[signal][level]);
        } else {
            sigaction(signal_numbers[signal], &replaced, NULL); /* somebody came between the two calls */
        }
    }
}

void signals_after_fork_in_child(void) {
    end_change();
    signals_reader_reads(false);
    signals_set_reader(0);
}
