#include "test_program.h"

#include "cpython/debug_offsets.c"

#define VERSION_HEX 0x030d01f0u
#define N_PUBLISHED (sizeof in_3_13 / sizeof in_3_13[0])

/* Tables of other versions: nothing that is published may come from them. */
const struct layout layout_3_11 = {.minor = 11}, layout_3_12 = {.minor = 12};
const struct layout layout_3_13 = {.minor = 13, .code_size = 64};

static uint8_t bytes[DEBUG_OFFSETS_BYTES];

static void put(uint32_t position, uint64_t value) { memcpy(bytes + position, &value, sizeof value); }

/* The largest offset of a field that can be done with, and for some a little less. */
static uint64_t published_for(size_t i) { return in_3_13[i].limit - 8 * (i % 3); }

/* What an interpreter might publish whose every offset is another one than expected. */
static void shifted(void) {
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "xdebugpy", 8);
    put(VERSION, VERSION_HEX);
    for (size_t i = 0; i < N_PUBLISHED; i++) put(in_3_13[i].position, published_for(i));
    CHECK(layout_select(13));
}

static bool refused_as(const char *reason) {
    const char *said = debug_offsets_apply(bytes, VERSION_HEX);
    if (said && strcmp(said, reason) == 0) return true;
    fprintf(stderr, "said: %s\n", said ? said : "nothing");
    return false;
}

TEST(published_offsets_take_the_place_of_the_tables) {
    shifted();
    CHECK(debug_offsets_apply(bytes, VERSION_HEX) == NULL);
    for (size_t i = 0; i < N_PUBLISHED; i++) CHECK(*in_3_13[i].field == published_for(i));
    CHECK(layout.minor == 13 && layout.code_size == 64);
}

TEST(every_published_field_has_a_place_of_its_own) {
    for (size_t i = 0; i < N_PUBLISHED; i++)
        for (size_t k = 0; k < i; k++) CHECK(in_3_13[i].field != in_3_13[k].field && in_3_13[i].position != in_3_13[k].position);
    for (size_t i = 0; i < N_PUBLISHED; i++) CHECK(in_3_13[i].position % 8 == 0 && in_3_13[i].position + 8 <= DEBUG_OFFSETS_BYTES);
}

TEST(what_follows_a_published_field_moves_with_it) {
    shifted();
    put(208, 400); /* the thread state's chunk, and its size */
    put(152, 480);
    CHECK(debug_offsets_apply(bytes, VERSION_HEX) == NULL);
    CHECK(layout.thread_datastack_chunk == 400 && layout.thread_datastack_top == 408);
    CHECK(layout.thread_running_loop == 480 && layout.thread_size == 488);
}

TEST(a_table_without_its_cookie_is_refused) {
    shifted();
    bytes[7] = 'z';
    CHECK(refused_as("the interpreter's own table of offsets has no cookie"));
    CHECK(layout.frame_previous == layout_3_13.frame_previous);
}

TEST(a_table_of_another_version_is_refused) {
    shifted();
    put(VERSION, 0x030e00f0u);
    CHECK(refused_as("the interpreter's own table of offsets is of another version"));
    put(VERSION, VERSION_HEX | 1ull << 32);
    CHECK(refused_as("the interpreter's own table of offsets is of another version"));
    CHECK(layout.frame_previous == layout_3_13.frame_previous);
}

TEST(the_free_threaded_build_is_refused) {
    shifted();
    put(FREE_THREADED, 1);
    CHECK(refused_as("the free-threaded build is not supported"));
}

TEST(any_offset_out_of_range_is_refused) {
    for (size_t i = 0; i < N_PUBLISHED; i++) {
        const uint64_t broken[] = {in_3_13[i].limit + 1, MAX_LAYOUT_OFFSET + 1, UINT32_MAX, 1ull << 32, UINT64_MAX};
        for (size_t k = 0; k < sizeof broken / sizeof broken[0]; k++) {
            shifted();
            put(in_3_13[i].position, broken[k]);
            CHECK(refused_as("the interpreter's own table of offsets is out of range"));
        }
    }
}

/* Readers copy so much of an object and look into the copy. */
TEST(fields_behind_what_is_copied_are_refused) {
    const struct { uint32_t *field; uint32_t first, bytes; } ends[] = {
        {&layout.thread_running_loop, MAX_THREAD_STATE_BYTES - 8, 8}, {&layout.thread_datastack_chunk, MAX_THREAD_STATE_BYTES - 16, 16},
        {&layout.frame_previous, MAX_FRAME_HEAD_BYTES - 8, 8},        {&layout.frame_owner, MAX_FRAME_HEAD_BYTES - 1, 1},
        {&layout.frame_localsplus, MAX_FRAME_HEAD_BYTES, 0},          {&layout.code_qualname, MAX_CODE_HEAD_BYTES - 8, 8},
        {&layout.code_instructions, MAX_CODE_HEAD_BYTES, 0},          {&layout.str_length, MAX_STR_HEAD_BYTES - 8, 8},
    };
    for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++)
        for (size_t i = 0; i < N_PUBLISHED; i++) {
            if (in_3_13[i].field != ends[k].field) continue;
            shifted();
            put(in_3_13[i].position, ends[k].first);
            CHECK(debug_offsets_apply(bytes, VERSION_HEX) == NULL && *ends[k].field == ends[k].first);
            put(in_3_13[i].position, ends[k].first + 1);
            CHECK(refused_as("the interpreter's own table of offsets is out of range"));
        }
}

TEST(versions_that_publish_nothing_are_left_alone) {
    for (unsigned minor = 11; minor < 13; minor++) {
        shifted();
        CHECK(layout_select(minor));
        struct layout before = layout;
        CHECK(debug_offsets_apply(bytes, VERSION_HEX) == NULL);
        CHECK(memcmp(&before, &layout, sizeof layout) == 0);
    }
}

TEST(versions_without_a_table_are_not_selected) { CHECK(!layout_select(10) && !layout_select(14) && !layout_select(0)); }
