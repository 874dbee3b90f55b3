/* The readers of single objects: strings, numbers, containers, attributes, code. */
#include <stdlib.h>

#include "code_table.h"
#include "cpython/debug_offsets.h"
#include "cpython/layout.h"
#include "fuzz.h"
#include "inputs.h"
#include "read_object.h"
#include "threads.h"

#define OBJECTS_PER_RUN 64
#define ITEMS 16

static uint64_t any_input(void) { return input_objects[fuzz_below(n_input_objects)]; }

/* In the clean run all objects are read, later some of them. */
static bool first_run = true;

static void begin(void) {
    inputs_take();
    first_run = true;
}

static size_t runs(void) { return first_run ? n_input_objects : OBJECTS_PER_RUN; }
static uint64_t nth(size_t i) { return first_run ? input_objects[i] : any_input(); }

static void run_strings(void) {
    char *text = exactly(MAX_STRING_BYTES);
    size_t size;
    for (size_t i = 0; i < runs(); i++)
        if (read_string(nth(i), text, &size)) CHECK(size <= MAX_STRING_BYTES);
    free(text);
    first_run = false;
}

static void run_numbers(void) {
    for (size_t i = 0; i < runs(); i++) {
        uint64_t object = nth(i);
        uint8_t *bytes = exactly(16);
        int64_t value;
        read_int(object, &value);
        read_int_bytes(object, bytes, 16);
        read_int_bytes(object, bytes, 8);
        free(bytes);
    }
    first_run = false;
}

static void run_containers(void) {
    for (size_t i = 0; i < runs(); i++) {
        uint64_t object = nth(i), *items = exactly(ITEMS * sizeof *items), value;
        CHECK(read_list(object, items, ITEMS) <= ITEMS);
        CHECK(read_tuple(object, items, ITEMS) <= ITEMS);
        CHECK(read_deque(object, items, ITEMS) <= ITEMS);
        CHECK(read_dict_values(object, items, ITEMS) <= ITEMS);
        read_dict_value(object, anchors.name_running_loop, &value);
        read_derives(object, anchors.type_task);
        free(items);
    }
    CHECK(read_dict_values(anchors.current_tasks, &(uint64_t){0}, 1) <= 1);
    read_dict_int_value(anchors.threads, (int64_t)input_threads[0].ident, &(uint64_t){0});
    first_run = false;
}

static void run_attributes(void) {
    const uint64_t names[] = {anchors.name_parent_task, anchors.name_children, anchors.name_getters, anchors.name_name, anchors.name_context};
    uint64_t thread, value;
    for (size_t i = 0; i < runs(); i++) read_attribute(nth(i), names[i % 5], &value);
    for (size_t i = 0; i < n_input_threads; i++)
        if (read_dict_int_value(anchors.threads, (int64_t)input_threads[i].ident, &thread)) read_attribute(thread, anchors.name_name, &value);
    first_run = false;
}

static struct code_table *codes;
static struct stack_table *stacks;

static void begin_code(void) {
    inputs_take();
    codes = code_table_new("/asyncio");
    stacks = stack_table_new(8u << 20);
    CHECK(codes && stacks);
}

static void run_code(void) {
    static unsigned n;
    struct resolved_frame frame;
    if (n++ % 8 == 0) {
        stack_table_reset(stacks);
        code_table_reset(codes);
    }
    for (size_t i = 0; i < n_input_frames; i++) {
        struct raw_frame raw = input_frames[i];
        if (n > 1 && fuzz_one_in(16)) raw.instruction += fuzz_below(64) - 32;
        if (n > 1 && fuzz_one_in(64)) raw.code = any_input();
        if (code_table_resolve(codes, stacks, &raw, &frame)) CHECK(frame.location < stack_table_view(stacks).n_locations);
    }
}

/* What 3.13 publishes of itself, changed: either refused, or taken and then harmless. */
static struct layout clean_layout;

static void begin_offsets(void) {
    inputs_take();
    clean_layout = layout;
}

static void run_offsets(void) {
    static uint8_t published[DEBUG_OFFSETS_BYTES];
    uint32_t version = 0x030d00f0;
    uint64_t word = version, none = 0;
    for (size_t i = 0; i < sizeof published; i += 8) {
        uint64_t value = fuzz_one_in(16) ? fuzz_random() >> fuzz_below(64) : fuzz_below(64) * 8;
        memcpy(published + i, &value, 8);
    }
    memcpy(published, "xdebugpy", 8);
    memcpy(published + 8, &word, 8);
    memcpy(published + 16, &none, 8);
    layout = layout_3_13;
    if (!debug_offsets_apply(published, version)) {
        struct thread_state *threads = exactly(sizeof *threads);
        CHECK(threads_read(threads, 1) <= 1);
        free(threads);
        run_code();
    }
    layout = clean_layout;
}

static void begin_offsets_and_code(void) {
    begin_code();
    begin_offsets();
}

#define READS (MAX_INPUT_OBJECTS * 64u)
#define READS_OF_DICTS (5u * OBJECTS_PER_RUN * (2u << 16)) /* MAX_DICT_ENTRIES, an int key each */
const struct target object_targets[] = {
    {"strings", begin, run_strings, true, READS},
    {"numbers", begin, run_numbers, true, READS},
    {"containers", begin, run_containers, true, READS_OF_DICTS},
    {"attributes", begin, run_attributes, true, READS_OF_DICTS},
    {"code", begin_code, run_code, true, MAX_INPUT_FRAMES * 100},
    {"offsets", begin_offsets_and_code, run_offsets, false, 0},
    {0},
};
