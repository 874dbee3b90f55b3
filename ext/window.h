/* Which part of something is looked at in a tick when there is no time for all of it: a slice that moves round. Each slot is in the
   slice of a tick with probability count / slots, whatever it holds, so that a sample that counts slots / count fold is an unbiased
   estimate. Pure. */
#ifndef OTEL_ASYNCPROF_WINDOW_H
#define OTEL_ASYNCPROF_WINDOW_H

#include <stdint.h>

struct window {
    uint64_t first, slots; /* of the next slice */
    uint64_t covered;      /* slots since the turn began */
    uint64_t random;
};

struct slice {
    uint64_t first, count; /* [first, first + count), which may run past the end and begin again */
    double weight;         /* slots / count */
};

void window_init(struct window *window, uint64_t seed);

/* The next slice, of at most count slots and at least one. Each turn begins at a random place: a program with the period of a turn
   must not be seen at one phase only. */
struct slice window_next(struct window *window, uint64_t slots, uint64_t count);

/* The place of each index, among a power of two of places, such that neighbours among the indexes lie far from each other and every
   run of them is spread evenly over all places. */
uint64_t window_spread(uint64_t index, uint64_t places);

#endif
