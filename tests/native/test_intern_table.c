#include "allocations.h"
#include "test_program.h"
#include "intern_table.h"

#define ENTRIES (1u << 17) /* exactly full, so the index is at its fullest: one half */

/* How far entries lie behind the slot that their hash names. */
static void check_spread(const struct intern_table *table) {
    uint32_t mask = table->capacity * 2 - 1, longest = 0;
    uint64_t sum = 0;
    for (uint32_t at = 0; at <= mask; at++) {
        if (!table->slots[at].id_plus_one) continue;
        uint32_t distance = (at - table->slots[at].hash) & mask;
        sum += distance;
        if (distance > longest) longest = distance;
    }
    CHECK(table->size == ENTRIES && table->capacity == ENTRIES);
    CHECK(sum < table->size * 6 / 10); /* theory for ideal hashing at one half: 0.5 */
    CHECK(longest < 100);
}

static void fill(uint64_t (*key_of)(uint32_t)) {
    struct memory_account account = {.limit = SIZE_MAX};
    struct intern_table table;
    intern_table_init(&table, &account, 12, ENTRIES);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        uint64_t key = key_of(i);
        CHECK(intern_table_add(&table, &key, sizeof key) == i);
    }
    for (uint32_t i = 0; i < ENTRIES; i++) {
        uint64_t key = key_of(i);
        CHECK(intern_table_add(&table, &key, sizeof key) == i);
    }
    check_spread(&table);
    CHECK(intern_table_add(&table, &(uint64_t){UINT64_MAX}, sizeof(uint64_t)) == INTERN_NONE);
    CHECK(intern_table_add(&table, &(uint64_t){key_of(77)}, sizeof(uint64_t)) == 77);
    intern_table_destroy(&table);
    CHECK(account.used == 0 && allocated_bytes == 0);
}

static uint64_t counting(uint32_t i) { return i; }
static uint64_t high_half(uint32_t i) { return (uint64_t)i << 32; }
static uint64_t addresses(uint32_t i) { return 0x7f0000000000u + (uint64_t)i * 4096; }
static uint64_t grid(uint32_t i) { return (uint64_t)(i >> 8) << 32 | (i & 255); }
static uint64_t powers(uint32_t i) { return (uint64_t)i << 17 ^ (uint64_t)i << 40; }

TEST(keys_that_count_up_spread_evenly) { fill(counting); }
TEST(keys_that_differ_in_their_high_half_spread_evenly) { fill(high_half); }
TEST(keys_that_are_addresses_spread_evenly) { fill(addresses); }
TEST(keys_that_are_pairs_of_small_numbers_spread_evenly) { fill(grid); }
TEST(keys_that_differ_in_few_bits_spread_evenly) { fill(powers); }

TEST(two_tables_hash_the_same_key_differently) {
    struct memory_account account = {.limit = SIZE_MAX};
    struct intern_table tables[2];
    for (int i = 0; i < 2; i++) intern_table_init(&tables[i], &account, 8, INTERN_FIRST_CAPACITY);
    CHECK(intern_table_hash(&tables[0], "key", 3) != intern_table_hash(&tables[1], "key", 3));
}

TEST(keys_of_every_length_are_told_apart) {
    struct memory_account account = {.limit = SIZE_MAX};
    struct intern_table table;
    intern_table_init(&table, &account, 8, INTERN_FIRST_CAPACITY);
    unsigned char zeros[64] = {0};
    uint32_t seen[65];
    for (size_t size = 0; size <= 64; size++) {
        seen[size] = intern_table_hash(&table, zeros, size);
        for (size_t shorter = 0; shorter < size; shorter++) CHECK(seen[shorter] != seen[size]);
    }
}

TEST(an_account_is_exact_and_is_not_exceeded_while_an_array_moves) {
    for (size_t limit = 0; limit < 200000; limit += 3333) {
        struct memory_account account = {.limit = limit};
        struct intern_table table;
        peak_allocated_bytes = 0;
        intern_table_init(&table, &account, 16, ENTRIES);
        for (uint32_t i = 0; i < 10000; i++) intern_table_add(&table, &i, sizeof i);
        CHECK(account.used == allocated_bytes && peak_allocated_bytes <= limit);
        CHECK((table.size > 0) == (limit >= INTERN_FIRST_CAPACITY * 32));
        intern_table_destroy(&table);
        CHECK(account.used == 0 && allocated_bytes == 0);
    }
}

TEST(when_memory_is_short_what_is_there_stays) {
    for (size_t fail_at = 0; fail_at < 8; fail_at++) {
        struct memory_account account = {.limit = SIZE_MAX};
        struct intern_table table;
        intern_table_init(&table, &account, 8, ENTRIES);
        allocations_until_fail = fail_at;
        for (uint32_t i = 0; i < 1000; i++) intern_table_add(&table, &i, sizeof i);
        allocations_until_fail = SIZE_MAX;
        CHECK(table.size == (fail_at < 2 ? 0 : INTERN_FIRST_CAPACITY << (fail_at / 2 - 1)));
        for (uint32_t i = 0; i < 1000; i++) CHECK(intern_table_add(&table, &i, sizeof i) == i);
        intern_table_destroy(&table);
        CHECK(account.used == 0 && allocated_bytes == 0);
    }
}
