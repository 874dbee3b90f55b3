/* A thread that goes on while its stack is copied: what is copied of it is of two moments. */
#include "test_program.h"

#include "cpython/layout.h"
#include "drop.h"
#include "safe_copy.h"
#include "unwind.h"

#define FRAME_BYTES 160
#define CODE(n) (0x7000001000ull + 256 * (n))
#define ALWAYS 1000u

enum { OWNER_THREAD = 0, OWNER_INTERPRETER = 3, ROOT = 1, ONE = 2, OTHER = 3, LEAF_OF_ONE = 4, LEAF_OF_OTHER = 5 };

static _Alignas(16) uint8_t chunk[1024], thread[1024];
static unsigned moves_left; /* copies in whose midst the thread goes on */
static bool in_other;

static uint64_t address_of(const void *object) { return (uint64_t)(uintptr_t)object; }
static void put(uint64_t address, uint64_t word) { memcpy((void *)(uintptr_t)address, &word, sizeof word); }
static uint64_t slot(unsigned n) { return address_of(chunk) + layout.chunk_data + n * FRAME_BYTES; }

static void lay_frame(unsigned n, unsigned function, int owner) {
    put(slot(n) + layout.frame_code, CODE(function));
    put(slot(n) + layout.frame_instruction, CODE(function) + 8);
    put(slot(n) + layout.frame_previous, n ? slot(n - 1) : 0);
    *(uint8_t *)(uintptr_t)(slot(n) + layout.frame_owner) = (uint8_t)owner;
}

/* The one function has called its leaf, or the other has called the other's. */
static void go_to(bool other) {
    in_other = other;
    lay_frame(2, other ? OTHER : ONE, OWNER_THREAD);
    lay_frame(3, other ? LEAF_OF_OTHER : LEAF_OF_ONE, OWNER_THREAD);
}

static void begin(unsigned moves) {
    CHECK(layout_select(14));
    memset(chunk, 0, sizeof chunk), memset(thread, 0, sizeof thread);
    lay_frame(0, 0, OWNER_INTERPRETER);
    lay_frame(1, ROOT, OWNER_THREAD);
    go_to(false);
    put(address_of(thread) + layout.thread_datastack_chunk, address_of(chunk));
    put(address_of(thread) + layout.thread_datastack_top, slot(4));
    put(address_of(thread) + layout.thread_frame, slot(3));
    moves_left = moves;
}

/* All reads come here: none is a plain load. Between the callers and the leaf the thread goes on. */
uint64_t safe_copy_loads_above = UINT64_MAX;
bool safe_copy_failed(void) { return false; }
bool safe_copy(void *destination, uint64_t address, size_t size) {
    size_t callers = 3 * FRAME_BYTES;
    if (address != slot(0) || size <= callers || !moves_left) return memcpy(destination, (void *)(uintptr_t)address, size), true;
    memcpy(destination, (void *)(uintptr_t)address, callers);
    moves_left--;
    go_to(!in_other);
    memcpy((uint8_t *)destination + callers, (void *)(uintptr_t)(address + callers), size - callers);
    return true;
}

static size_t unwind(struct unwind_buffer *buffer) {
    size_t count;
    struct thread_state state = {.address = address_of(thread)};
    CHECK(unwind_thread(&state, buffer, &count));
    return count;
}

static struct unwind_buffer buffer;

TEST(callers_and_callees_of_two_moments_are_no_stack) {
    for (unsigned moves = 0; moves < 8; moves++) {
        begin(moves);
        CHECK(unwind(&buffer) == 3);
        CHECK(buffer.frames[0].code == CODE(in_other ? LEAF_OF_OTHER : LEAF_OF_ONE));
        CHECK(buffer.frames[1].code == CODE(in_other ? OTHER : ONE));
        CHECK(buffer.frames[2].code == CODE(ROOT));
        CHECK(drop_counts[DROP_torn_stack] == 0);
    }
}

TEST(of_a_thread_that_never_keeps_still_the_callers_that_do_are_seen) {
    begin(ALWAYS);
    CHECK(unwind(&buffer) == 1 && buffer.frames[0].code == CODE(ROOT));
    CHECK(moves_left >= ALWAYS - 64); /* after a bounded number of walks */
}
