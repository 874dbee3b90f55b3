#include <limits.h>
#include <stdint.h>

#include "test_program.h"
#include "line_table.h"

/* xorshift: the same bytes on every run. */
static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static int find(const uint8_t *bytes, size_t size, int first_line, int instruction) {
    uint8_t *exact = malloc(size ? size : 1); /* so that a read past the end is seen */
    memcpy(exact, bytes, size);
    int line = line_table_find(exact, size, first_line, instruction);
    free(exact);
    return line;
}

TEST(each_kind_of_entry_gives_its_line) {
    const uint8_t table[] = {
        0x80 | 14 << 3 | 1, 0x02 << 1, 0, 0, 0, /* long: +2, two code units */
        0x80 | 13 << 3 | 0, 0x03,               /* no columns: -1 */
        0x80 | 15 << 3 | 0,                     /* no location */
        0x80 | 12 << 3 | 0, 0, 0,               /* one line: +2 */
        0x80 | 3 << 3 | 7, 0,                   /* short: the same line, eight code units */
    };
    const int lines[] = {12, 12, 11, 0, 13, 13, 13, 13, 13, 13, 13, 13, 13};
    for (int i = 0; i < 13; i++) {
        CHECK(find(table, sizeof table, 10, 2 * i) == lines[i]);
        CHECK(find(table, sizeof table, 10, 2 * i + 1) == lines[i]);
    }
    CHECK(find(table, sizeof table, 10, 26) == 0 && find(table, sizeof table, 10, INT_MAX) == 0);
    CHECK(find(table, sizeof table, 10, -1) == 10 && find(table, sizeof table, 10, INT_MIN) == 10);
}

TEST(a_delta_of_many_bytes_is_read_whole) {
    const uint8_t table[] = {0x80 | 13 << 3, 0x40 | (100000 << 1 & 63), 0x40 | (100000 << 1 >> 6 & 63), 100000 << 1 >> 12};
    CHECK(find(table, sizeof table, 5, 0) == 100005);
}

TEST(no_line_for_an_empty_table_or_one_that_starts_in_the_middle_of_an_entry) {
    const uint8_t middle[] = {0x01, 0x80, 0x00};
    CHECK(find(middle, 0, 7, 0) == 0);
    CHECK(find(middle, sizeof middle, 7, 0) == 0);
}

TEST(lines_out_of_range_are_no_lines) {
    const uint8_t back[] = {0x80 | 13 << 3, 0x40 | 63, 0x03}; /* far before the first line */
    const uint8_t forth[] = {0x80 | 13 << 3, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03};
    CHECK(find(back, sizeof back, 7, 0) == 0);
    CHECK(find(forth, sizeof forth, INT_MAX, 0) == 0);
}

TEST(any_bytes_are_safe) {
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[64];
        size_t size = next_random() % (sizeof bytes + 1);
        for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(next_random() >> 20);
        for (int instruction = -2; instruction < 300; instruction += 7)
            CHECK(find(bytes, size, (int)next_random(), instruction) >= (instruction < 0 ? INT_MIN : 0));
    }
}
