#include <stdint.h>

#include "allocations.h"
#include "arena.h"
#include "test_program.h"

#define BLOCK ((size_t)64 << 10)

TEST(allocations_are_aligned_and_do_not_overlap) {
    struct arena arena;
    arena_init(&arena, SIZE_MAX);
    unsigned char *pieces[2000];
    for (size_t i = 0; i < 2000; i++) {
        pieces[i] = arena_alloc(&arena, i % 300);
        CHECK(pieces[i] && (uintptr_t)pieces[i] % 8 == 0);
        memset(pieces[i], (int)(i % 251), i % 300);
    }
    for (size_t i = 0; i < 2000; i++)
        for (size_t j = 0; j < i % 300; j++) CHECK(pieces[i][j] == i % 251);
    arena_destroy(&arena);
    CHECK(allocated_bytes == 0);
}

TEST(refilling_after_reset_allocates_nothing) {
    struct arena arena;
    arena_init(&arena, SIZE_MAX);
    size_t before = 0;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 5000; i++) CHECK(arena_alloc(&arena, i % 700));
        CHECK(arena_alloc(&arena, 3 * BLOCK));
        for (size_t i = 0; i < 5000; i++) CHECK(arena_alloc(&arena, i % 700));
        if (round) CHECK(allocations == before);
        before = allocations;
        arena_reset(&arena);
    }
    CHECK(before > 10);
    arena_destroy(&arena);
}

TEST(a_large_piece_after_a_reset_does_not_lose_the_small_blocks) {
    struct arena arena;
    arena_init(&arena, 4 * BLOCK);
    for (int i = 0; i < 2; i++) CHECK(arena_alloc(&arena, BLOCK / 2 + 1));
    arena_reset(&arena);
    CHECK(arena_alloc(&arena, BLOCK + BLOCK / 2));
    size_t before = allocations;
    for (int i = 0; i < 2; i++) CHECK(arena_alloc(&arena, BLOCK / 2 + 1));
    CHECK(allocations == before);
    arena_destroy(&arena);
}

TEST(the_limit_bounds_all_memory_and_is_not_exceeded_by_a_byte) {
    struct arena arena;
    arena_init(&arena, 3 * BLOCK + BLOCK / 2);
    size_t pieces = 0;
    while (arena_alloc(&arena, 1000)) pieces++;
    CHECK(arena.used == 3 * BLOCK && peak_allocated_bytes == 3 * BLOCK);
    CHECK(pieces == 3 * ((BLOCK - 24) / 1000));
    CHECK(!arena_alloc(&arena, SIZE_MAX) && !arena_alloc(&arena, SIZE_MAX - 8) && !arena_alloc(&arena, SIZE_MAX / 2));
    arena_reset(&arena);
    CHECK(arena_alloc(&arena, 1000) && arena.used == 3 * BLOCK);
    arena_destroy(&arena);
    CHECK(arena.used == 0 && allocated_bytes == 0);
}

TEST(short_memory_gives_null_and_changes_nothing) {
    struct arena arena;
    arena_init(&arena, SIZE_MAX);
    allocations_until_fail = 1;
    CHECK(arena_alloc(&arena, 10));
    CHECK(!arena_alloc(&arena, BLOCK));
    CHECK(arena_alloc(&arena, 10) && arena.used == BLOCK);
    arena_destroy(&arena);
}
