/* What works on data alone: line tables, stitching, the tables of samples and their encoding. */
#include <stdlib.h>

#include "fuzz.h"
#include "inputs.h"
#include "line_table.h"
#include "otlp_encode.h"
#include "stack_table.h"
#include "stitch.h"

static void run_lines(void) {
    size_t size = fuzz_below(64);
    uint8_t *table = exactly(size);
    for (size_t i = 0; i < size; i++) table[i] = (uint8_t)(fuzz_one_in(3) ? fuzz_random() | 0x80 : fuzz_random() & 0x7f);
    for (int instruction = -2; instruction < 600; instruction += 2) CHECK(line_table_find(table, size, (int)fuzz_below(1000), instruction) >= 0);
    free(table);
}

#define STITCHED 300 /* more than MAX_AWAITING_TASKS */

static void run_stitch(void) {
    static struct stack_table *stacks;
    if (!stacks) stacks = stack_table_new(1u << 20);
    CHECK(stacks);
    stack_table_reset(stacks);
    struct stitch_task *tasks = exactly(STITCHED * sizeof *tasks);
    struct stitched *out = exactly(MAX_PATHS * sizeof *out);
    uint32_t locations[8];
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t name = stack_table_string(stacks, (const char *)&i, 4);
        locations[i] = stack_table_location(stacks, (struct location){stack_table_function(stacks, (struct function){name, name, i}), i});
    }
    bool line = fuzz_one_in(2);
    for (uint32_t i = 0; i < STITCHED; i++) {
        tasks[i] = (struct stitch_task){.locations = locations, .n_locations = (uint32_t)fuzz_below(9)};
        tasks[i].n_as_awaiter = tasks[i].n_locations;
        tasks[i].unusable = fuzz_one_in(100);
        tasks[i].n_parents = line ? 1 : (uint32_t)fuzz_below(MAX_PARENTS + 1);
        for (uint32_t j = 0; j < tasks[i].n_parents; j++)
            tasks[i].parents[j] = line && !fuzz_one_in(1000) ? (i + 1) % STITCHED : (uint32_t)fuzz_below(STITCHED);
    }
    for (uint32_t i = 0; i < 8; i++) {
        size_t count = stitch(tasks, (uint32_t)fuzz_below(STITCHED), stacks, out);
        double sum = 0;
        CHECK(count <= MAX_PATHS);
        for (size_t way = 0; way < count; way++) {
            sum += out[way].share;
            uint32_t frames = 3 + (uint32_t)fuzz_below(600), limited = stitch_limit(stacks, out[way].stack, frames, locations[0]);
            CHECK(stack_table_depth(stacks, limited) <= frames || limited == out[way].stack);
        }
        CHECK(sum < 1.000001);
    }
    free(out);
    free(tasks);
}

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

/* Whether the bytes are fields of the wire format from the first to the last. */
static bool is_message(const uint8_t *at, const uint8_t *end) {
    uint64_t tag, value;
    while (at < end) {
        if (!read_varint(&at, end, &tag) || !(tag >> 3)) return false;
        if ((tag & 7) == 1) value = 8;
        else if (!read_varint(&at, end, &value) || ((tag & 7) != 0 && (tag & 7) != 2)) return false;
        if ((tag & 7) == 0) continue;
        if (value > (uint64_t)(end - at)) return false;
        at += value;
    }
    return true;
}

static bool take(void *context, const uint8_t *bytes, size_t size) {
    (void)context;
    CHECK(is_message(bytes, bytes + size));
    return !fuzz_one_in(8);
}

static void no_entropy(void *bytes, size_t size) { memset(bytes, 1, size); }

static uint32_t any_id(uint32_t count) { return fuzz_one_in(32) ? (uint32_t)fuzz_random() : (uint32_t)fuzz_below(count); }

/* Names of all sizes, now and then ids that are none (from a table that was full), and tables with hardly any memory. */
static void run_tables(void) {
    struct stack_table *table = stack_table_new(fuzz_one_in(2) ? 1u << 16 : 1u << 22);
    char name[2000];
    if (!table) return;
    for (uint64_t left = fuzz_below(400); left > 0; left--) {
        size_t size = fuzz_one_in(8) ? fuzz_below(sizeof name) : fuzz_below(16);
        memset(name, (int)fuzz_random(), size);
        struct stack_table_view view = stack_table_view(table);
        uint32_t string = stack_table_string(table, name, size), stack = any_id(view.n_nodes);
        uint32_t function = stack_table_function(table, (struct function){string, (uint32_t)fuzz_below(view.n_strings), (uint32_t)fuzz_random()});
        uint32_t location = stack_table_location(table, (struct location){function, (uint32_t)fuzz_below(3)});
        for (uint64_t depth = fuzz_below(8); depth > 0; depth--) stack = stack_table_push(table, stack, fuzz_one_in(4) ? any_id(view.n_locations) : location);
        if (stack >= stack_table_view(table).n_nodes) continue;
        struct link link = {.trace_id = {1, (uint8_t)fuzz_random()}, .span_id = {1}};
        struct sample_key key = {.stack = stack, .link = stack_table_link(table, &link), .thread_name = string, .task_name = string, .state = 1 + (uint32_t)fuzz_below(4)};
        struct observation seen = {.wall_ns = fuzz_random() >> fuzz_below(64), .cpu_periods = fuzz_one_in(5000) ? fuzz_random() : fuzz_below(3),
                                   .period_ns = fuzz_random() >> fuzz_below(64), .time_unix_ns = fuzz_random(), .not_before_unix_ns = fuzz_random(), .with_event = fuzz_one_in(2)};
        stack_table_add(table, &key, &seen);
    }
    struct otlp_options options = {.resource = (const uint8_t *)"", .resource_schema_url = "schema", .scope_version = "1", .time_unix_nano = 1, .duration_nano = 1,
                                   .period_ns = fuzz_random(), .attributes = (uint32_t)fuzz_random(), .timeline = fuzz_one_in(2), .random_bytes = no_entropy};
    otlp_encode(table, &options, take, NULL);
    stack_table_destroy(table);
}

const struct target pure_targets[] = {
    {"lines", NULL, run_lines, false},
    {"stitch", NULL, run_stitch, false},
    {"tables", NULL, run_tables, false},
    {0},
};
