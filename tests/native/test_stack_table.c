#include "allocations.h"
#include "test_program.h"
#include "drop.h"
#include "stack_table.h"

#define ROOMY ((size_t)1 << 30)

static uint32_t number_string(struct stack_table *table, uint32_t number) {
    char text[16];
    return stack_table_string(table, text, (size_t)snprintf(text, sizeof text, "%u", number));
}

static uint32_t number_location(struct stack_table *table, uint32_t number) {
    struct function function = {.name = number_string(table, number % 1000), .filename = number_string(table, 7), .first_line = 3};
    return stack_table_location(table, (struct location){stack_table_function(table, function), number});
}

static const struct observation one_ns = {.wall_ns = 1};

/* A bit of everything, with distinct stacks, links, samples and events. */
static void fill(struct stack_table *table, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t stack = stack_table_push(table, stack_table_push(table, 0, number_location(table, i % 97)), number_location(table, i));
        struct link link = {{1, (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16)}, {2}};
        struct sample_key key = {.stack = stack, .link = stack_table_link(table, &link), .task_name = number_string(table, i)};
        struct observation seen = {.wall_ns = 5, .cpu_periods = i % 3, .period_ns = 10, .time_unix_ns = 1000, .with_event = i % 2};
        stack_table_add(table, &key, &seen);
    }
}

static uint64_t total_wall(const struct stack_table *table) {
    struct stack_table_view view = stack_table_view(table);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < view.n_samples; i++) sum += view.samples[i].wall_ns;
    return sum;
}

TEST(a_new_table_holds_the_zero_values_and_the_overflow_stack) {
    struct stack_table *table = stack_table_new(ROOMY);
    struct stack_table_view view = stack_table_view(table);
    CHECK(view.n_strings == 2 && view.n_functions == 2 && view.n_locations == 2 && view.n_links == 1 && view.n_nodes == 2);
    CHECK(view.n_samples == 0 && view.n_events == 0);
    CHECK(view.nodes[0].parent == 0 && view.nodes[0].location == 0 && view.nodes[0].depth == 0);
    CHECK(view.nodes[1].parent == 0 && view.nodes[1].location == 1 && view.nodes[1].depth == 1);
    size_t size;
    CHECK(!memcmp(stack_table_string_at(table, view.functions[view.locations[1].function].name, &size), "<overflow>", 10));
    CHECK(size == 10);
    CHECK(stack_table_string_at(table, 0, &size) && size == 0);
    stack_table_destroy(table);
    stack_table_destroy(NULL);
    CHECK(allocated_bytes == 0);
}

TEST(equal_entries_have_one_id_and_zero_values_have_zero) {
    struct stack_table *table = stack_table_new(ROOMY);
    CHECK(stack_table_string(table, "", 0) == 0 && stack_table_function(table, (struct function){0, 0, 0}) == 0);
    CHECK(stack_table_location(table, (struct location){0, 0}) == 0 && stack_table_link(table, &(struct link){{0}, {0}}) == 0);
    uint32_t nul = stack_table_string(table, "a\0b", 3);
    CHECK(nul == 2 && stack_table_string(table, "a\0c", 3) == 3 && stack_table_string(table, "a", 1) == 4);
    CHECK(stack_table_string(table, "a\0b", 3) == nul);
    size_t size;
    CHECK(!memcmp(stack_table_string_at(table, nul, &size), "a\0b", 3) && size == 3);
    uint32_t function = stack_table_function(table, (struct function){nul, 3, 4});
    CHECK(function == 2 && stack_table_function(table, (struct function){nul, 3, 5}) == 3);
    CHECK(stack_table_function(table, (struct function){nul, 3, 4}) == function);
    uint32_t first = stack_table_location(table, (struct location){function, 10});
    uint32_t second = stack_table_location(table, (struct location){function, 11});
    CHECK(first == 2 && second == 3 && stack_table_location(table, (struct location){function, 10}) == first);
    uint32_t stack = stack_table_push(table, stack_table_push(table, 0, first), second);
    CHECK(stack == 3 && stack_table_push(table, stack_table_push(table, 0, first), second) == stack);
    CHECK(stack_table_push(table, 0, second) == 4 && stack_table_view(table).nodes[stack].depth == 2);
    CHECK(stack_table_link(table, &(struct link){{0}, {1}}) == 1 && stack_table_link(table, &(struct link){{1}, {0}}) == 2);
    stack_table_destroy(table);
}

TEST(a_frame_without_a_function_makes_the_overflow_stack_and_nothing_stands_on_it) {
    struct stack_table *table = stack_table_new(ROOMY);
    CHECK(stack_table_function(table, (struct function){0, 0, 0}) == 0);
    CHECK(stack_table_function(table, (struct function){0, 1, 1}) == 2); /* a name may be empty */
    CHECK(stack_table_location(table, (struct location){0, 5}) == 0);
    CHECK(stack_table_push(table, 0, 0) == 1 && stack_table_push(table, 0, 999) == 1 && stack_table_push(table, 999, 1) == 1);
    CHECK(stack_table_push(table, 1, number_location(table, 5)) == 1);
    CHECK(stack_table_view(table).n_nodes == 2);
    stack_table_destroy(table);
}

TEST(ids_and_contents_survive_growth) {
    struct stack_table *table = stack_table_new(ROOMY);
    fill(table, 20000);
    struct stack_table_view view = stack_table_view(table);
    for (uint32_t i = 0; i < 20000; i++) {
        char text[16];
        size_t size, length = (size_t)snprintf(text, sizeof text, "%u", i);
        const char *found = stack_table_string_at(table, view.samples[i].key.task_name, &size);
        CHECK(size == length && !memcmp(found, text, length));
        const struct stack_node *leaf = &view.nodes[view.samples[i].key.stack];
        CHECK(view.locations[leaf->location].line == i && leaf->depth == 2);
        CHECK(view.locations[view.nodes[leaf->parent].location].line == i % 97);
    }
    CHECK(view.n_samples == 20000 && total_wall(table) == 100000);
    stack_table_destroy(table);
}

TEST(samples_merge_by_every_field_of_their_key) {
    struct stack_table *table = stack_table_new(ROOMY);
    struct sample_key keys[8];
    for (unsigned i = 0; i < 8; i++) keys[i] = (struct sample_key){1, 0, 0, 0, 0, 0, 0};
    keys[1].stack = 0;
    keys[2].link = stack_table_link(table, &(struct link){{1}, {2}});
    keys[3].thread_name = keys[4].task_name = keys[5].local_root_name = number_string(table, 5);
    keys[6].state = STATE_BLOCKED;
    keys[7].thread_id = (uint64_t)1 << 40;
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 8; i++) stack_table_add(table, &keys[i], &(struct observation){.wall_ns = i + 1});
    struct stack_table_view view = stack_table_view(table);
    CHECK(view.n_samples == 8 && view.n_events == 0);
    for (unsigned i = 0; i < 8; i++)
        CHECK(!memcmp(&view.samples[i].key, &keys[i], sizeof keys[i]) && view.samples[i].wall_ns == 3 * (i + 1));
    stack_table_destroy(table);
}

static void check_times(struct observation seen, const uint64_t *times, uint32_t count) {
    struct stack_table *table = stack_table_new(ROOMY);
    stack_table_add(table, &(struct sample_key){.stack = 1}, &seen);
    struct stack_table_view view = stack_table_view(table);
    CHECK(view.n_events == count && view.samples[0].cpu_periods == count);
    for (uint32_t i = 0; i < count; i++)
        CHECK(view.events[i].is_cpu && !view.events[i].wall_ns && !view.events[i].sample && view.events[i].time_unix_ns == times[i]);
    stack_table_destroy(table);
}

TEST(cpu_periods_end_at_the_observation_and_lie_one_period_apart) {
    check_times((struct observation){.cpu_periods = 3, .period_ns = 10, .time_unix_ns = 100}, (uint64_t[]){80, 90, 100}, 3);
}

TEST(no_cpu_period_lies_before_the_bound_even_where_the_arithmetic_would_wrap) {
    check_times((struct observation){.cpu_periods = 4, .period_ns = 10, .time_unix_ns = 100, .not_before_unix_ns = 85},
                (uint64_t[]){85, 85, 90, 100}, 4);
    check_times((struct observation){.cpu_periods = 3, .period_ns = UINT64_MAX / 2 + 1, .time_unix_ns = 100, .not_before_unix_ns = 1},
                (uint64_t[]){1, 1, 100}, 3);
    check_times((struct observation){.cpu_periods = 2, .period_ns = 10, .time_unix_ns = 100, .not_before_unix_ns = 200},
                (uint64_t[]){200, 200}, 2);
    check_times((struct observation){.cpu_periods = 3, .period_ns = 80, .time_unix_ns = 100}, (uint64_t[]){0, 20, 100}, 3);
}

TEST(a_wall_observation_becomes_an_event_only_on_request) {
    struct stack_table *table = stack_table_new(ROOMY);
    struct sample_key key = {.stack = 1};
    stack_table_add(table, &key, &(struct observation){.wall_ns = 5, .time_unix_ns = 10});
    stack_table_add(table, &key, &(struct observation){.wall_ns = 6, .time_unix_ns = 20, .with_event = true});
    stack_table_add(table, &key, &(struct observation){.wall_ns = 0, .time_unix_ns = 30, .with_event = true});
    struct stack_table_view view = stack_table_view(table);
    CHECK(view.n_samples == 1 && view.samples[0].wall_ns == 11 && view.samples[0].cpu_periods == 0 && view.n_events == 1);
    CHECK(!view.events[0].is_cpu && view.events[0].time_unix_ns == 20 && view.events[0].wall_ns == 6);
    stack_table_destroy(table);
}

TEST(strings_functions_locations_links_and_nodes_stop_at_their_bounds) {
    struct stack_table *table = stack_table_new(ROOMY);
    uint32_t max = 1u << 18, name = number_string(table, 0);
    for (uint32_t i = 3; i < max; i++) CHECK(number_string(table, i) == i);
    for (uint32_t i = 2; i < max; i++) CHECK(stack_table_function(table, (struct function){name, 0, i}) == i);
    for (uint32_t i = 2; i < max; i++) CHECK(stack_table_location(table, (struct location){1, i}) == i);
    for (uint32_t i = 1; i < max; i++) CHECK(stack_table_link(table, &(struct link){{(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16)}, {9}}) == i);
    for (uint32_t i = 2; i < max * 4; i++) CHECK(stack_table_push(table, i < max ? 0 : i - max + 2, i < max ? i : 2) == i);
    CHECK(drop_counts[DROP_stack_table_full] == 0);
    CHECK(number_string(table, max) == 0 && stack_table_function(table, (struct function){name, 1, 1}) == 0);
    CHECK(stack_table_location(table, (struct location){2, 1}) == 0 && stack_table_link(table, &(struct link){{7}, {7}}) == 0);
    CHECK(stack_table_push(table, 5, 5) == 1);
    CHECK(drop_counts[DROP_stack_table_full] == 5);
    CHECK(number_string(table, 4) == 4 && stack_table_push(table, 0, 4) == 4 && drop_counts[DROP_stack_table_full] == 5);
    stack_table_destroy(table);
}

TEST(a_string_beyond_its_bound_is_refused) {
    struct stack_table *table = stack_table_new(ROOMY);
    char *text = calloc(1, (1 << 20) + 1);
    CHECK(stack_table_string(table, text, 1 << 20) == 2 && drop_counts[DROP_stack_table_full] == 0);
    CHECK(stack_table_string(table, text, (1 << 20) + 1) == 0 && drop_counts[DROP_stack_table_full] == 1);
    free(text);
    stack_table_destroy(table);
}

TEST(when_samples_are_full_their_weight_goes_to_one_overflow_sample) {
    struct stack_table *table = stack_table_new(ROOMY);
    uint32_t max = 1u << 18;
    for (uint32_t i = 0; i < max + 1000; i++) stack_table_add(table, &(struct sample_key){.thread_id = i + 1}, &one_ns);
    struct observation busy = {.wall_ns = 7, .cpu_periods = 2, .period_ns = 1, .time_unix_ns = 9};
    stack_table_add(table, &(struct sample_key){.thread_id = max + 5000}, &busy);
    stack_table_add(table, &(struct sample_key){.thread_id = 3}, &one_ns);
    struct stack_table_view view = stack_table_view(table);
    CHECK(view.n_samples == max && total_wall(table) == max + 1000 + 7 + 1);
    struct sample overflow = view.samples[max - 1];
    CHECK(!memcmp(&overflow.key, &(struct sample_key){.stack = 1}, sizeof overflow.key));
    CHECK(overflow.wall_ns == 1001 + 7 && overflow.cpu_periods == 2 && view.events[0].sample == max - 1);
    CHECK(drop_counts[DROP_sample_table_full] == 1002);
    stack_table_destroy(table);
}

TEST(wall_events_leave_room_for_cpu_events_and_losses_are_counted) {
    struct stack_table *table = stack_table_new(ROOMY);
    uint32_t max = 1u << 18;
    struct sample_key key = {.stack = 1};
    struct observation wall = {.wall_ns = 1, .time_unix_ns = 5, .with_event = true};
    for (uint32_t i = 0; i < max; i++) stack_table_add(table, &key, &wall);
    CHECK(stack_table_view(table).n_events == max / 2 && drop_counts[DROP_event_table_full] == max / 2);
    CHECK(total_wall(table) == max);
    struct observation cpu = {.cpu_periods = max / 2 - 1, .period_ns = 1, .time_unix_ns = max};
    stack_table_add(table, &key, &cpu);
    CHECK(drop_counts[DROP_event_table_full] == max / 2);
    cpu.cpu_periods = UINT64_MAX;
    stack_table_add(table, &key, &cpu);
    struct stack_table_view view = stack_table_view(table);
    CHECK(view.n_events == max && view.samples[0].cpu_periods == max / 2 && drop_counts[DROP_event_table_full] == max / 2 + 1);
    CHECK(view.events[max - 1].time_unix_ns == max);
    stack_table_destroy(table);
}

TEST(refilling_after_reset_allocates_nothing_and_gives_the_same_ids) {
    struct stack_table *table = stack_table_new(ROOMY);
    fill(table, 30000);
    size_t calls = allocations;
    struct stack_table_view first = stack_table_view(table);
    struct sample *samples = malloc(first.n_samples * sizeof *samples);
    memcpy(samples, first.samples, first.n_samples * sizeof *samples);
    for (int round = 0; round < 3; round++) {
        calls = allocations;
        stack_table_reset(table);
        struct stack_table_view empty = stack_table_view(table);
        CHECK(empty.n_strings == 2 && empty.n_nodes == 2 && empty.n_samples == 0 && empty.n_events == 0);
        fill(table, 30000);
        CHECK(allocations == calls);
        struct stack_table_view again = stack_table_view(table);
        CHECK(again.n_samples == first.n_samples && again.n_nodes == first.n_nodes && again.n_strings == first.n_strings);
        CHECK(again.n_events == first.n_events && !memcmp(again.samples, samples, first.n_samples * sizeof *samples));
    }
    free(samples);
    stack_table_destroy(table);
}

TEST(all_memory_stays_within_max_bytes_and_no_weight_is_lost) {
    const size_t limits[] = {0, 100, 100000, 400000, 500000, 1000000, 3000000, 7777777};
    size_t made = 0;
    for (unsigned i = 0; i < 8; i++) {
        peak_allocated_bytes = 0;
        struct stack_table *table = stack_table_new(limits[i]);
        for (int round = 0; table && round < 2; round++) {
            stack_table_reset(table);
            fill(table, 50000);
            CHECK(total_wall(table) == 250000);
        }
        made += table != NULL;
        CHECK(peak_allocated_bytes <= limits[i]);
        stack_table_destroy(table);
        CHECK(allocated_bytes == 0);
    }
    CHECK(made == 5 && drop_counts[DROP_stack_table_full] > 0 && drop_counts[DROP_sample_table_full] > 0 && drop_counts[DROP_event_table_full] > 0);
}

TEST(short_memory_at_any_point_is_survived) {
    size_t made = 0;
    for (size_t fail_at = 0; fail_at < 120; fail_at++) {
        allocations_until_fail = fail_at;
        struct stack_table *table = stack_table_new(ROOMY);
        if (table) {
            fill(table, 3000);
            CHECK(total_wall(table) == 15000);
        }
        allocations_until_fail = SIZE_MAX;
        if (table) {
            stack_table_reset(table);
            fill(table, 3000);
            CHECK(total_wall(table) == 15000 && stack_table_view(table).n_samples == 3000);
        }
        made += table != NULL;
        stack_table_destroy(table);
        CHECK(allocated_bytes == 0);
    }
    CHECK(made > 60 && made < 120);
}
