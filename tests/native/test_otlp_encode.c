#include "allocations.h"
#include "test_program.h"
#include "otlp_encode.h"

struct requests {
    size_t count, bytes, refuse_after;
    uint64_t checksum;
};

static bool take(void *context, const uint8_t *bytes, size_t size) {
    struct requests *requests = context;
    if (requests->count == requests->refuse_after) return false;
    requests->count++;
    requests->bytes += size;
    for (size_t i = 0; i < size; i++) requests->checksum = requests->checksum * 31 + bytes[i];
    return true;
}

static void sevens(void *bytes, size_t size) { memset(bytes, 7, size); }

static const struct otlp_options options = {
    .resource = (const uint8_t *)"",
    .resource_schema_url = "https://example.org/schema",
    .scope_version = "1",
    .time_unix_nano = 1000,
    .duration_nano = 1000,
    .period_ns = 10,
    .attributes = 31,
    .timeline = true,
    .random_bytes = sevens,
};

static struct stack_table *make_table(uint32_t samples) {
    struct stack_table *table = stack_table_new((size_t)1 << 28);
    for (uint32_t i = 0; i < samples; i++) {
        char text[32];
        uint32_t stack = 0;
        for (uint32_t frame = 0; frame < 20; frame++) {
            uint32_t name = stack_table_string(table, text, (size_t)snprintf(text, sizeof text, "function_%u", (i + frame * frame) % 500));
            uint32_t function = stack_table_function(table, (struct function){.name = name, .filename = name, .first_line = frame});
            stack = stack_table_push(table, stack, stack_table_location(table, (struct location){function, i % 50}));
        }
        struct link link = {{1, (uint8_t)i, (uint8_t)(i >> 8)}, {1}};
        struct sample_key key = {.stack = stack, .link = stack_table_link(table, &link), .state = 1 + i % 4, .thread_id = i};
        struct observation seen = {.wall_ns = i, .cpu_periods = i % 3, .period_ns = 10, .time_unix_ns = i, .with_event = i % 2};
        stack_table_add(table, &key, &seen);
        stack_table_add(table, &key, &seen);
    }
    return table;
}

TEST(encoding_twice_gives_the_same_bytes_and_leaves_nothing_behind) {
    struct stack_table *table = make_table(20000);
    size_t before = allocated_bytes;
    struct requests first = {.refuse_after = SIZE_MAX}, second = first;
    CHECK(otlp_encode(table, &options, take, &first) && otlp_encode(table, &options, take, &second));
    CHECK(first.count > 1 && first.checksum == second.checksum && first.count == second.count && first.bytes == second.bytes);
    CHECK(allocated_bytes == before);
    stack_table_destroy(table);
}

TEST(an_interval_without_samples_emits_nothing) {
    struct stack_table *table = make_table(0);
    struct requests requests = {.refuse_after = SIZE_MAX};
    CHECK(otlp_encode(table, &options, take, &requests) && requests.count == 0);
    stack_table_add(table, &(struct sample_key){.stack = 1}, &(struct observation){.wall_ns = 0});
    CHECK(otlp_encode(table, &options, take, &requests) && requests.count == 0);
    stack_table_destroy(table);
}

TEST(a_refusal_stops_the_encoding) {
    struct stack_table *table = make_table(20000);
    for (size_t refuse_after = 0; refuse_after < 2; refuse_after++) {
        struct requests requests = {.refuse_after = refuse_after};
        CHECK(!otlp_encode(table, &options, take, &requests) && requests.count == refuse_after);
    }
    stack_table_destroy(table);
}

TEST(short_memory_at_any_point_makes_the_encoding_fail_cleanly) {
    struct stack_table *table = make_table(1000);
    size_t before = allocated_bytes, failures = 0;
    struct requests whole = {.refuse_after = SIZE_MAX};
    CHECK(otlp_encode(table, &options, take, &whole) && whole.count == 1);
    for (bool good = false; !good; failures++) {
        struct requests requests = {.refuse_after = SIZE_MAX};
        allocations_until_fail = failures;
        good = otlp_encode(table, &options, take, &requests);
        CHECK(requests.count == good && allocated_bytes == before);
        CHECK(!good || requests.checksum == whole.checksum);
    }
    allocations_until_fail = SIZE_MAX;
    CHECK(failures > 20 && failures < 200);
    stack_table_destroy(table);
}
