/* Seeded, structure-aware mutations of recorded memory, and what the readers make of them. A target runs one reader; after its clean
   run the words that it has read are known, and those are what is changed. */
#ifndef OTEL_ASYNCPROF_TEST_FUZZ_H
#define OTEL_ASYNCPROF_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check.h"

struct target {
    const char *name;
    void (*begin)(void);    /* before the first run, on clean memory; may be NULL */
    void (*run)(void);
    bool of_memory;         /* false: it makes its own input out of fuzz_random() */
};
extern const struct target memory_targets[], object_targets[], pure_targets[], crafted_targets[]; /* the last has no name */

uint64_t fuzz_random(void);
static inline uint64_t fuzz_below(uint64_t bound) { return fuzz_random() % bound; }
static inline bool fuzz_one_in(uint64_t count) { return fuzz_below(count) == 0; }

/* The words that the clean run read, and the addresses that they name. */
extern uint64_t *fuzz_words, *fuzz_objects;
extern size_t fuzz_n_words, fuzz_n_objects;

/* Around the clean run. */
void mutate_watch(void);
/* objects: known to be some, beside those that the words lead to. */
void mutate_learn(const uint64_t *objects, size_t n_objects);
/* Changes memory for one run; puts it back. */
void mutate(void);
void mutate_undo(void);
/* A target says before each call how many reads the named bounds of the reader allow. */
void mutate_allow(uint64_t reads);
/* Ends the process when there are more, or too large a one. */
bool mutate_count(uint64_t address, size_t size);

/* The largest copy that any reader may ask for. */
#define MAX_COPY_BYTES (1u << 20)

#endif
