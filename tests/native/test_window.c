#include "window.h"

#include <math.h>

#include "test_program.h"

#define MAX_SLOTS 5000

static unsigned visits[MAX_SLOTS];

static double visit(struct window *window, uint64_t slots, uint64_t count) {
    struct slice slice = window_next(window, slots, count);
    for (uint64_t i = 0; i < slice.count; i++) visits[(slice.first + i) % slots]++;
    CHECK(fabs(slice.weight * (double)slice.count - (double)slots) < 1e-6);
    return slice.weight;
}

TEST(a_window_that_holds_all_shows_all_each_time) {
    struct window window;
    window_init(&window, 1);
    for (unsigned i = 0; i < 3; i++) CHECK(visit(&window, 100, 100 + i) == 1);
    for (unsigned i = 0; i < 100; i++) CHECK(visits[i] == 3);
}

TEST(one_turn_shows_every_slot_once) {
    struct window window;
    window_init(&window, 7);
    for (unsigned i = 0; i < 40; i++) CHECK(visit(&window, 1000, 25) == 40);
    for (unsigned i = 0; i < 1000; i++) CHECK(visits[i] == 1);
}

TEST(the_last_slice_of_a_turn_may_run_into_its_first) {
    struct window window;
    window_init(&window, 7);
    for (unsigned i = 0; i < 4; i++) visit(&window, 10, 3);
    unsigned twice = 0;
    for (unsigned i = 0; i < 10; i++) {
        CHECK(visits[i] >= 1);
        twice += visits[i] == 2;
    }
    CHECK(twice == 2);
}

TEST(weights_add_up_to_the_number_of_slices_in_every_slot) {
    enum { SLOTS = 4096, SLICES = 200000 };
    static double seen[SLOTS];
    struct window window;
    window_init(&window, 99);
    for (unsigned i = 0; i < SLICES; i++) {
        struct slice slice = window_next(&window, SLOTS, 30 + i % 50); /* wide and narrow, whatever the slots hold */
        for (uint64_t k = 0; k < slice.count; k++) seen[(slice.first + k) % SLOTS] += slice.weight;
    }
    for (unsigned i = 0; i < SLOTS; i++) CHECK(fabs(seen[i] / SLICES - 1) < 0.1);
}

TEST(turns_begin_at_different_places) {
    struct window window;
    uint64_t first[8];
    window_init(&window, 3);
    for (unsigned turn = 0; turn < 8; turn++) {
        first[turn] = window_next(&window, 1000, 500).first;
        window_next(&window, 1000, 500);
    }
    for (unsigned turn = 1; turn < 8; turn++) CHECK(first[turn] != first[0]);
}

TEST(nothing_has_no_slice_and_of_something_at_least_one_slot_is_seen) {
    struct window window;
    window_init(&window, 0);
    CHECK(window_next(&window, 0, 5).count == 0);
    CHECK(window_next(&window, 5, 0).count == 1);
}

TEST(a_set_that_has_grown_or_shrunk_begins_a_new_turn) {
    struct window window;
    window_init(&window, 5);
    visit(&window, 64, 16);
    for (unsigned i = 0; i < 64; i++) visits[i] = 0;
    for (unsigned i = 0; i < 16; i++) visit(&window, 4096, 256);
    for (unsigned i = 0; i < 4096; i++) CHECK(visits[i] == 1);
    struct slice slice = window_next(&window, 32, 8);
    CHECK(slice.first < 32 && slice.count == 8);
}

TEST(places_are_each_given_once_and_runs_are_spread) {
    for (uint64_t places = 1; places <= 4096; places *= 2) {
        memset(visits, 0, sizeof visits);
        for (uint64_t i = 0; i < places; i++) visits[window_spread(i, places)]++;
        for (uint64_t i = 0; i < places; i++) CHECK(visits[i] == 1);
    }
    for (uint64_t begin = 0; begin < 4096; begin += 64) { /* a run of 64 has some in each quarter */
        unsigned quarters[4] = {0};
        for (uint64_t i = begin; i < begin + 64; i++) quarters[window_spread(i, 4096) / 1024]++;
        for (unsigned i = 0; i < 4; i++) CHECK(quarters[i] > 8 && quarters[i] < 24);
    }
}
