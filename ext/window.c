#include "window.h"

void window_init(struct window *window, uint64_t seed) { *window = (struct window){.random = seed | 1}; }

static uint64_t random_below(struct window *window, uint64_t bound) {
    window->random ^= window->random << 13, window->random ^= window->random >> 7, window->random ^= window->random << 17;
    return window->random % bound;
}

struct slice window_next(struct window *window, uint64_t slots, uint64_t count) {
    if (!slots) return (struct slice){0, 0, 1};
    if (count < 1) count = 1;
    if (count >= slots) { /* everything: the next turn may begin anywhere */
        *window = (struct window){.slots = slots, .covered = slots, .random = window->random};
        return (struct slice){0, slots, 1};
    }
    if (window->covered >= window->slots || slots != window->slots) {
        window->first = random_below(window, slots);
        window->covered = 0;
        window->slots = slots;
    }
    struct slice slice = {window->first, count, (double)slots / (double)count};
    window->first = (window->first + count) % slots;
    window->covered += count;
    return slice;
}

uint64_t window_spread(uint64_t index, uint64_t places) {
    uint64_t stride = (uint64_t)((double)places * 0.6180339887498949) | 1; /* multiples of the golden ratio; odd: each place once */
    return index * stride & (places - 1);
}
