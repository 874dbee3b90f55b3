#include "test_program.h"

#include "cpython/debug_offsets.c"

#define FIRST 13 /* minor version that publishes anything */
#define HUGE (1u << 24) /* the size of every structure, in these tables */

/* Tables of constants: nothing that is published may come from them. */
const struct layout layout_3_11 = {.minor = 11}, layout_3_12 = {.minor = 12};
const struct layout layout_3_13 = {.minor = 13, .code_size = 64};
const struct layout layout_3_14 = {.minor = 14, .code_size = 65}, layout_3_15 = {.minor = 15, .code_size = 66};

static uint8_t bytes[DEBUG_OFFSETS_BYTES];
static unsigned minor; /* of the table that is looked at */

static uint32_t version_hex(void) { return 0x030000f0u | minor << 16; }
static void put(uint32_t position, uint64_t value) { memcpy(bytes + position, &value, sizeof value); }
static size_t n_published(void) { return tables[minor].count; }
static const struct published *row(size_t i) { return &tables[minor].fields[i]; }

/* The largest offset of a field that can be done with, and for some a little less. */
static uint64_t published_for(size_t i) {
    for (size_t k = 0; k < n_published(); k++)
        if (row(k)->size == row(i)->position) return row(i)->limit; /* it is the size of what holds others */
    return row(i)->limit - 8 * (i % 3);
}

/* What an interpreter might publish whose every offset is another one than expected. */
static void shifted(void) {
    const struct table *table = &tables[minor];
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "xdebugpy", 8);
    put(VERSION, version_hex());
    for (size_t i = 0; i < n_published(); i++)
        if (row(i)->size != NO_SIZE) put(row(i)->size, HUGE);
    for (size_t i = 0; i < n_published(); i++) put(row(i)->position, published_for(i));
    put(table->gil, 8000), put(table->gil_locked, 8048), put(table->gil_holder, 8016);
    put(table->object_size, 16), put(table->object_type, 8);
    if (table->path_size) put(table->path_size, 512);
    CHECK(layout_select(minor));
}

#define EVERY_VERSION for (minor = FIRST; minor < COUNT_OF(tables); minor++)

static bool refused_as(const char *reason) {
    const char *said = debug_offsets_apply(bytes, version_hex());
    if (said && strcmp(said, reason) == 0) return true;
    fprintf(stderr, "said: %s\n", said ? said : "nothing");
    return false;
}

TEST(every_version_that_publishes_offsets_is_looked_at) { CHECK(COUNT_OF(tables) == 16); }

TEST(published_offsets_take_the_place_of_the_tables) {
    EVERY_VERSION {
        shifted();
        CHECK(debug_offsets_apply(bytes, version_hex()) == NULL);
        for (size_t i = 0; i < n_published(); i++) CHECK(*row(i)->field == published_for(i));
        CHECK(layout.minor == minor && layout.code_size == 64 + minor - FIRST);
    }
}

TEST(every_published_field_has_a_place_of_its_own) {
    EVERY_VERSION for (size_t i = 0; i < n_published(); i++) {
        for (size_t k = 0; k < i; k++) CHECK(row(i)->field != row(k)->field && row(i)->position > row(k)->position);
        CHECK(row(i)->position % 8 == 0 && row(i)->position + 8 <= DEBUG_OFFSETS_BYTES);
        CHECK(row(i)->size == NO_SIZE || (row(i)->size < row(i)->position && row(i)->size % 8 == 0));
    }
}

TEST(what_follows_a_published_field_moves_with_it) {
    const uint32_t chunk[] = {[13] = 208, [14] = 232, [15] = 256};
    EVERY_VERSION {
        shifted();
        put(chunk[minor], 400); /* the thread state's chunk */
        CHECK(debug_offsets_apply(bytes, version_hex()) == NULL);
        CHECK(layout.thread_datastack_chunk == 400 && layout.thread_datastack_top == 408);
        CHECK(layout.thread_context == 376 && layout.thread_context_version == 384 && layout.thread_unique_id == 392);
        CHECK(minor == 13 ? layout.thread_running_loop == 504 && layout.thread_size == 512 : layout.thread_size == 416);
        CHECK(layout.gil_locked == 48 && layout.gil_holder == 16);
        CHECK(layout.interp_next_thread_id == layout.interp_threads_head - 8);
    }
}

TEST(a_table_without_its_cookie_is_refused) {
    EVERY_VERSION {
        shifted();
        bytes[7] = 'z';
        CHECK(refused_as("the interpreter's own table of offsets has no cookie"));
        CHECK(layout.frame_previous == 0);
    }
}

TEST(a_table_of_another_version_is_refused) {
    EVERY_VERSION {
        shifted();
        put(VERSION, version_hex() ^ 1u << 16);
        CHECK(refused_as("the interpreter's own table of offsets is of another version"));
        put(VERSION, version_hex() | 1ull << 32);
        CHECK(refused_as("the interpreter's own table of offsets is of another version"));
        CHECK(layout.frame_previous == 0);
    }
}

TEST(the_free_threaded_build_is_refused) {
    EVERY_VERSION {
        shifted();
        put(FREE_THREADED, 1);
        CHECK(refused_as("the free-threaded build is not supported"));
    }
}

TEST(a_build_whose_objects_begin_otherwise_is_refused) {
    EVERY_VERSION {
        shifted();
        put(tables[minor].object_type, 24);
        CHECK(refused_as("objects begin with something else than a reference count and their type (a trace-refs build?)"));
        shifted();
        put(tables[minor].object_size, 32);
        CHECK(refused_as("objects begin with something else than a reference count and their type (a trace-refs build?)"));
    }
}

/* Of a pre-release, say, which lacks a field or has one more: everything behind that stands elsewhere. */
TEST(a_table_of_another_length_is_refused) {
    for (minor = 14; minor < COUNT_OF(tables); minor++) {
        shifted();
        memmove(bytes + 168, bytes + 160, sizeof bytes - 168);
        CHECK(refused_as("objects begin with something else than a reference count and their type (a trace-refs build?)"));
        shifted();
        uint32_t from = tables[minor].path_size - 40;
        memmove(bytes + from + 8, bytes + from, sizeof bytes - from - 8);
        CHECK(refused_as("the interpreter's own table of offsets has another size than that of its version"));
    }
}

TEST(any_offset_out_of_range_is_refused) {
    EVERY_VERSION for (size_t i = 0; i < n_published(); i++) {
        const uint64_t broken[] = {row(i)->limit + 1, MAX_LAYOUT_OFFSET + 1, UINT32_MAX, 1ull << 32, UINT64_MAX};
        for (size_t k = 0; k < COUNT_OF(broken); k++) {
            shifted();
            put(row(i)->position, broken[k]);
            CHECK(refused_as("the interpreter's own table of offsets is out of range"));
        }
    }
}

TEST(an_offset_outside_of_what_holds_it_is_refused) {
    EVERY_VERSION for (size_t i = 0; i < n_published(); i++) {
        if (row(i)->size == NO_SIZE) continue;
        shifted();
        put(row(i)->size, published_for(i) - 1);
        CHECK(refused_as("the interpreter's own table of offsets is out of range"));
    }
}

TEST(what_has_no_place_beside_a_published_field_is_refused) {
    const uint32_t chunk[] = {[13] = 208, [14] = 232, [15] = 256};
    EVERY_VERSION {
        shifted();
        put(chunk[minor], 16);
        CHECK(refused_as("the interpreter's own table of offsets is out of range"));
        shifted();
        put(72, 0);
        CHECK(refused_as("the interpreter's own table of offsets is out of range"));
        shifted();
        put(tables[minor].gil_holder, 7992);
        CHECK(refused_as("the interpreter's own table of offsets is out of range"));
    }
}

/* Readers copy so much of an object and look into the copy. */
TEST(fields_behind_what_is_copied_are_refused) {
    const struct { uint32_t *field; uint32_t first, bytes; } ends[] = {
        {&layout.thread_datastack_chunk, MAX_THREAD_STATE_BYTES - 16, 16}, {&layout.frame_previous, MAX_FRAME_HEAD_BYTES - 8, 8},
        {&layout.frame_owner, MAX_FRAME_HEAD_BYTES - 1, 1},                {&layout.frame_localsplus, MAX_FRAME_HEAD_BYTES, 0},
        {&layout.code_qualname, MAX_CODE_HEAD_BYTES - 8, 8},               {&layout.code_instructions, MAX_CODE_HEAD_BYTES, 0},
        {&layout.str_length, MAX_STR_HEAD_BYTES - 8, 8},
    };
    EVERY_VERSION for (size_t k = 0; k < COUNT_OF(ends); k++)
        for (size_t i = 0; i < n_published(); i++) {
            if (row(i)->field != ends[k].field) continue;
            shifted();
            put(row(i)->position, ends[k].first);
            CHECK(debug_offsets_apply(bytes, version_hex()) == NULL && *ends[k].field == ends[k].first);
            put(row(i)->position, ends[k].first + 1);
            CHECK(refused_as("the interpreter's own table of offsets is out of range"));
        }
}

TEST(versions_that_publish_nothing_are_left_alone) {
    for (minor = 11; minor < FIRST; minor++) {
        CHECK(layout_select(minor));
        struct layout before = layout;
        CHECK(debug_offsets_apply(bytes, version_hex()) == NULL);
        CHECK(memcmp(&before, &layout, sizeof layout) == 0);
    }
}

TEST(versions_without_a_table_are_not_selected) { CHECK(!layout_select(10) && !layout_select(16) && !layout_select(0)); }
