/* The readers of single objects: strings, numbers, containers, attributes, code. */
#include <stdlib.h>

#include "code_table.h"
#include "cpython/debug_offsets.h"
#include "cpython/layout.h"
#include "fuzz.h"
#include "inputs.h"
#include "read_object.h"
#include "safe_copy.h"
#include "threads.h"

#define ITEMS 16

/* What a reader may read at most, from the bounds named in its file. */
#define READS_OF_TYPE 16                                     /* MAX_BASES */
#define READS_OF_STRING (2 + READS_OF_TYPE + 16384 / 512 + 1)
#define READS_OF_KEYS (8 + (1u << 16) / 32)                  /* MAX_DICT_ENTRIES, ENTRIES_PER_READ */
#define READS_OF_CODE (1 + 2 * READS_OF_STRING + 4)

static bool is_of_type(uint64_t object, uint64_t type) {
    uint64_t its_type;
    return safe_copy_word(&its_type, object + OBJECT_TYPE) && its_type == type;
}

/* The objects of some types, chosen while memory is clean. */
static uint64_t chosen[MAX_INPUT_OBJECTS];
static size_t n_chosen;

static void choose(const uint64_t *types, size_t count) {
    inputs_take();
    n_chosen = 0;
    for (size_t i = 0; i < n_input_objects; i++)
        for (size_t j = 0; j < count; j++)
            if (is_of_type(input_objects[i], types[j])) chosen[n_chosen++] = input_objects[i];
    CHECK(n_chosen);
}

static void begin_strings(void) { choose(&anchors.type_str, 1); }

static void run_strings(void) {
    char *text = exactly(MAX_STRING_BYTES);
    size_t size;
    for (size_t i = 0; i < n_chosen; i++) {
        mutate_allow(READS_OF_STRING);
        if (read_string(chosen[i], text, &size)) CHECK(size <= MAX_STRING_BYTES);
    }
    free(text);
}

static void begin_numbers(void) { choose(&anchors.type_int, 1); }

static void run_numbers(void) {
    for (size_t i = 0; i < n_chosen; i++) {
        uint8_t *large = exactly(16), *small = exactly(8);
        int64_t value;
        mutate_allow(3 * (3 + READS_OF_TYPE));
        read_int(chosen[i], &value);
        read_int_bytes(chosen[i], large, 16);
        read_int_bytes(chosen[i], small, 8);
        free(large);
        free(small);
    }
}

static void begin_containers(void) {
    const uint64_t types[] = {anchors.type_deque, anchors.type_cell, anchors.type_partial, anchors.type_queue, anchors.type_task, anchors.type_gathering};
    choose(types, sizeof types / sizeof types[0]);
}

/* Every object as every kind, and the dicts that are known to be some. */
static void run_containers(void) {
    const uint64_t dicts[] = {anchors.threads, anchors.current_tasks, input_threads[0].dict};
    for (size_t i = 0; i < n_chosen; i++) {
        uint64_t *items = exactly(ITEMS * sizeof *items);
        mutate_allow(3 * (3 + ITEMS) + 64 + READS_OF_TYPE);
        CHECK(read_list(chosen[i], items, ITEMS) <= ITEMS);
        CHECK(read_tuple(chosen[i], items, ITEMS) <= ITEMS);
        CHECK(read_deque(chosen[i], items, ITEMS) <= ITEMS);
        read_derives(chosen[i], anchors.type_task);
        free(items);
    }
    for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++) {
        uint64_t *values = exactly(ITEMS * sizeof *values), value;
        mutate_allow(2 * READS_OF_KEYS + (1u << 16));
        CHECK(read_dict_values(dicts[i], values, ITEMS) <= ITEMS);
        read_dict_value(dicts[i], anchors.name_running_loop, &value);
        free(values);
    }
    mutate_allow(READS_OF_KEYS + (3 + READS_OF_TYPE) * (1u << 16)); /* each key may have to be read */
    read_dict_int_value(anchors.threads, (int64_t)input_threads[0].ident, &(uint64_t){0});
}

static void begin_attributes(void) {
    const uint64_t types[] = {anchors.type_gathering, anchors.type_queue, anchors.type_task};
    choose(types, sizeof types / sizeof types[0]);
}

static void run_attributes(void) {
    const uint64_t names[] = {anchors.name_children, anchors.name_getters, anchors.name_parent_task};
    uint64_t thread, value;
    for (size_t i = 0; i < n_chosen; i++)
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++) {
            mutate_allow(READS_OF_KEYS);
            read_attribute(chosen[i], names[j], &value);
        }
    for (size_t i = 0; i < n_input_threads; i++) {
        mutate_allow(READS_OF_KEYS + (3 + READS_OF_TYPE) * (1u << 16));
        if (!read_dict_int_value(anchors.threads, (int64_t)input_threads[i].ident, &thread)) continue;
        mutate_allow(READS_OF_KEYS);
        read_attribute(thread, anchors.name_name, &value);
    }
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
        if (n > 1 && fuzz_one_in(64)) raw.code = input_objects[fuzz_below(n_input_objects)];
        mutate_allow(READS_OF_CODE);
        if (code_table_resolve(codes, stacks, &raw, &frame)) CHECK(frame.location < stack_table_view(stacks).n_locations);
    }
}

/* What a version publishes of itself, changed: either refused, or taken and then harmless. What is checked as a whole is right. */
static struct layout clean_layout;
static const struct {
    const struct layout *table;
    uint32_t version, sizes[16], object_size, object_type, path_size; /* positions */
} publishing[] = {
    {&layout_3_13, 0x030d00f0, {48, 224, 272, 368, 536}, 352, 360, 0},
    {&layout_3_14, 0x030e00f0, {48, 176, 248, 312, 416, 448, 472, 496, 528, 568, 592, 616, 664}, 400, 408, 752},
    {&layout_3_15, 0x030f00f0, {48, 176, 312, 376, 480, 528, 544, 568, 592, 624, 664, 688, 712, 792}, 464, 472, 880},
};

static void put(uint8_t *published, uint32_t position, uint64_t value) { memcpy(published + position, &value, sizeof value); }

static void begin_offsets(void) {
    inputs_take();
    clean_layout = layout;
}

static void run_offsets(void) {
    static uint8_t published[DEBUG_OFFSETS_BYTES];
    const unsigned which = (unsigned)fuzz_below(sizeof publishing / sizeof publishing[0]);
    uint32_t version = publishing[which].version;
    for (size_t i = 0; i < sizeof published; i += 8) {
        uint64_t value = fuzz_one_in(16) ? fuzz_random() >> fuzz_below(64) : fuzz_below(64) * 8;
        memcpy(published + i, &value, 8);
    }
    for (const uint32_t *size = publishing[which].sizes; *size; size++) put(published, *size, MAX_LAYOUT_OFFSET);
    if (which == 0) put(published, 152, MAX_THREAD_STATE_BYTES - 8);
    put(published, publishing[which].object_size, 16), put(published, publishing[which].object_type, 8);
    if (publishing[which].path_size) put(published, publishing[which].path_size, 512);
    memcpy(published, "xdebugpy", 8);
    put(published, 8, version), put(published, 16, 0);
    layout = *publishing[which].table;
    if (!debug_offsets_apply(published, version)) {
        struct thread_state *threads = exactly(sizeof *threads);
        bool whole;
        CHECK(threads_read(threads, 1, &whole) <= 1);
        free(threads);
        run_code();
    }
    layout = clean_layout;
}

static void begin_offsets_and_code(void) {
    begin_code();
    begin_offsets();
}

const struct target object_targets[] = {
    {"strings", begin_strings, run_strings, true},
    {"numbers", begin_numbers, run_numbers, true},
    {"containers", begin_containers, run_containers, true},
    {"attributes", begin_attributes, run_attributes, true},
    {"code", begin_code, run_code, true},
    {"offsets", begin_offsets_and_code, run_offsets, false},
    {0},
};
