/* fuzz TAPE TARGET SEED RUNS: runs a target on mutated memory. Ends with an error at the first read out of bounds, undefined behaviour,
   wrong result, or run without an end, and says which. "list" instead of a target names all of them. */
#include "fuzz.h"

#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "inputs.h"
#include "memory_of_tape.h"
#include "os_of_tape.h"
#include "tape.h"

#define CPU_SECONDS_PER_RUN 10

static uint64_t random_state, seed, current_run;
static const struct target *current;

uint64_t fuzz_random(void) {
    uint64_t value = random_state += 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "abort_on_error=1"; } /* so that die() is called */

static void say_where(void) {
    if (current) dprintf(2, "target %s, seed %llu, run %llu\n", current->name, (unsigned long long)seed, (unsigned long long)current_run);
}

static void die(int signal_number) {
    if (signal_number == SIGVTALRM) dprintf(2, "a run that takes longer than %d s of CPU time\n", CPU_SECONDS_PER_RUN);
    say_where();
    _exit(1);
}

static const struct target *find(const char *name) {
    const struct target *const lists[] = {memory_targets, object_targets, pure_targets, crafted_targets};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const struct target *target = lists[i]; target->name; target++) {
            if (strcmp(name, "list") == 0) puts(target->name);
            if (strcmp(name, target->name) == 0) return target;
        }
    return NULL;
}

static void limit_run(void) {
    struct itimerval limit = {.it_value.tv_sec = CPU_SECONDS_PER_RUN};
    setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

int main(int argc, char **argv) {
    struct tape_head head;
    const struct target *target = argc > 2 ? find(argv[2]) : NULL;
    if (argc == 3 && strcmp(argv[2], "list") == 0) return 0;
    if (!target || argc != 5 || !tape_load(argv[1], &head)) return 2;
    __sanitizer_set_death_callback(say_where);
    signal(SIGVTALRM, die);
    signal(SIGABRT, die);
    running_thread = (uint32_t)head.running_thread;
    seed = strtoull(argv[3], NULL, 10);
    uint64_t runs = strtoull(argv[4], NULL, 10);
    if (target->of_memory) mutate_watch();
    if (target->begin) target->begin();
    current = target;
    if (target->of_memory) {
        target->run();
        mutate_learn(input_objects, n_input_objects);
    }
    for (current_run = 0; current_run < runs; current_run++) {
        random_state = seed << 32 ^ current_run * 0xff51afd7ed558ccdull;
        limit_run();
        if (target->of_memory) mutate();
        else memory_before_copy = mutate_count;
        target->run();
        if (target->of_memory) mutate_undo();
    }
    puts("passed");
    return 0;
}
