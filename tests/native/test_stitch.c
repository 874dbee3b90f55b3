/* Tasks are letters. The task A shows the frame A below a task that it awaits, and A and a on top of its own stack; e is what
   started the loop. So in A <- B (A awaits B) the stack of B is "eABb". */
#include "test_program.h"

#include <math.h>

#include "drop.h"
#include "stack_table.h"
#include "stitch.h"

#define N_LETTERS 26
#define ROOMY ((size_t)1 << 30)
#define TEXT 4096

static struct stack_table *stacks;
static struct stitch_task tasks[N_LETTERS];
static uint32_t frames[N_LETTERS][2], entry;
static char answer[TEXT];

static uint32_t location_of(const char *name, size_t size) {
    struct function function = {.name = stack_table_string(stacks, name, size)};
    return stack_table_location(stacks, (struct location){stack_table_function(stacks, function), 1});
}

static void clear(void) {
    stack_table_destroy(stacks);
    stacks = stack_table_new(ROOMY);
    CHECK(stacks);
    entry = stack_table_push(stacks, 0, location_of("e", 1));
    memset(drop_counts, 0, sizeof drop_counts);
    for (uint32_t i = 0; i < N_LETTERS; i++) {
        frames[i][0] = location_of(&(char){(char)('A' + i)}, 1);
        frames[i][1] = location_of(&(char){(char)('a' + i)}, 1);
        tasks[i] = (struct stitch_task){.locations = frames[i], .n_locations = 2, .n_as_awaiter = 1, .entry = entry};
    }
}

/* "BA CA": B and C are awaited by A. A small letter alone: that task is unusable. */
static void draw(const char *edges) {
    clear();
    for (const char *edge = edges; *edge; edge += *edge == ' ') {
        if (*edge >= 'a') {
            tasks[*edge++ - 'a'].unusable = true;
            continue;
        }
        struct stitch_task *child = &tasks[edge[0] - 'A'];
        child->parents[child->n_parents++] = (uint32_t)(edge[1] - 'A');
        edge += 2;
    }
}

/* Root first. */
static size_t write_stack(char *text, uint32_t stack) {
    struct stack_table_view view = stack_table_view(stacks);
    size_t depth = view.nodes[stack].depth, size;
    for (size_t i = depth; i > 0; i--, stack = view.nodes[stack].parent)
        text[i - 1] = *stack_table_string_at(stacks, view.functions[view.locations[view.nodes[stack].location].function].name, &size);
    text[depth] = 0;
    return depth;
}

static double share_sum;

/* "stack*share stack*share" in the order in which stitch gives them. */
static const char *ways(char leaf) {
    struct stitched out[MAX_PATHS];
    size_t count = stitch(tasks, (uint32_t)(leaf - 'A'), stacks, out), used = 0;
    CHECK(count <= MAX_PATHS);
    answer[0] = 0;
    share_sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (i) answer[used++] = ' ';
        used += write_stack(answer + used, out[i].stack);
        used += (size_t)snprintf(answer + used, TEXT - used, "*%g", out[i].share);
        share_sum += out[i].share;
    }
    return answer;
}

#define CHECK_WAYS(leaf, expected)                                                  \
    do {                                                                            \
        if (strcmp(ways(leaf), expected) == 0) break;                               \
        fprintf(stderr, "%d: %s, not %s\n", __LINE__, answer, (const char *)(expected)); \
        exit(1);                                                                    \
    } while (0)

TEST(a_task_that_nobody_awaits_stands_on_what_started_the_loop) {
    draw("");
    CHECK_WAYS('A', "eAa*1");
}

TEST(an_awaiter_shows_only_the_frames_that_lead_to_what_it_awaits) {
    draw("BA");
    tasks[0].n_as_awaiter = 0;
    CHECK_WAYS('B', "eBb*1");
    CHECK_WAYS('A', "eAa*1");
}

TEST(tasks_stand_on_the_entry_of_the_outermost_awaiter) {
    draw("BA");
    tasks[1].entry = 0;
    CHECK_WAYS('B', "eABb*1");
    draw("BA");
    tasks[0].entry = 0;
    CHECK_WAYS('B', "ABb*1");
}

/* A <- B <- C <- D */
TEST(a_chain_gives_one_stack) {
    draw("BA CB DC");
    CHECK_WAYS('D', "eABCDd*1");
    CHECK_WAYS('C', "eABCc*1");
    CHECK_WAYS('A', "eAa*1");
}

/*        /- C
   A <- B <- D
          \- E   */
TEST(children_of_one_task_share_its_prefix) {
    draw("BA CB DB EB");
    CHECK_WAYS('C', "eABCc*1");
    CHECK_WAYS('D', "eABDd*1");
    CHECK_WAYS('E', "eABEe*1");
    /* the zero stack, <overflow>, e, A, B and two frames for each leaf */
    CHECK(stack_table_view(stacks).n_nodes == 5 + 3 * 2);
    CHECK(tasks['B' - 'A'].has_prefix && tasks['A' - 'A'].has_prefix);
}

/*    /- B -\
   A <       < D
      \- C -/    */
TEST(a_diamond_halves_the_weight) {
    draw("BA CA DB DC");
    CHECK_WAYS('D', "eABDd*0.5 eACDd*0.5");
}

/* A   B   D   E
    \ /     \ /
     C       F
      \     /
       - G -     */
TEST(two_awaiters_with_two_each_give_quarters) {
    draw("CA CB FD FE GC GF");
    CHECK_WAYS('G', "eACGg*0.25 eBCGg*0.25 eDFGg*0.25 eEFGg*0.25");
}

/* A   B
    \ /
     C   D
      \ /
       E     */
TEST(the_weight_is_split_at_each_task_anew) {
    draw("CA CB EC ED");
    CHECK_WAYS('E', "eACEe*0.25 eBCEe*0.25 eDEe*0.5");
}

TEST(eight_awaiters_take_an_eighth_each) {
    draw("IA IB IC ID IE IF IG IH");
    CHECK_WAYS('I', "eAIi*0.125 eBIi*0.125 eCIi*0.125 eDIi*0.125 eEIi*0.125 eFIi*0.125 eGIi*0.125 eHIi*0.125");
}

/* Levels of several tasks, each awaited by all of the level above it; the last task is awaited by all of the lowest level. */
static char draw_levels(unsigned levels, unsigned width) {
    clear();
    for (uint32_t task = width; task < levels * width + 1; task++) {
        uint32_t above = task / width * width - width;
        for (uint32_t i = 0; i < width; i++) tasks[task].parents[tasks[task].n_parents++] = above + i;
    }
    return (char)('A' + levels * width);
}

TEST(more_ways_than_there_is_room_for_still_share_the_whole_weight) {
    const struct { unsigned levels, width, ways; } cases[] = {{2, 8, 32}, {5, 2, 32}, {6, 2, 32}, {8, 3, 27}, {3, 7, 28}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stitched out[MAX_PATHS];
        char leaf = draw_levels(cases[i].levels, cases[i].width);
        CHECK(stitch(tasks, (uint32_t)(leaf - 'A'), stacks, out) == cases[i].ways);
        double sum = 0;
        for (unsigned k = 0; k < cases[i].ways; k++) {
            char text[64];
            sum += out[k].share;
            CHECK(write_stack(text, out[k].stack) == 1 + cases[i].levels + 2); /* each way goes all the way up */
            for (unsigned other = 0; other < k; other++) CHECK(out[other].stack != out[k].stack);
        }
        CHECK(fabs(sum - 1) < 1e-12);
    }
}

/* A <-> B,  A <- C */
TEST(a_cycle_of_two_ends_once_round_from_each_start) {
    draw("AB BA CA");
    CHECK_WAYS('A', "eBAa*1");
    CHECK_WAYS('B', "eABb*1");
    CHECK_WAYS('C', "eBACc*1");
    CHECK_WAYS('A', "eBAa*1");
}

/* A <- B <- C <- A,  C <- D */
TEST(a_cycle_of_three_ends_once_round_from_each_start) {
    draw("BA CB AC DC");
    CHECK_WAYS('A', "eBCAa*1");
    CHECK_WAYS('B', "eCABb*1");
    CHECK_WAYS('C', "eABCc*1");
    CHECK_WAYS('D', "eABCDd*1");
}

TEST(a_task_that_awaits_itself_stands_alone) {
    draw("AA BA");
    CHECK_WAYS('A', "eAa*1");
    CHECK_WAYS('B', "eABb*1");
}

/*      A <-> B
   X <-/          */
TEST(a_cycle_with_a_way_out_gives_both_where_it_can) {
    draw("AB BA AX");
    CHECK_WAYS('A', "eBAa*0.5 eXAa*0.5");
    CHECK_WAYS('B', "eXABb*1");
}

/*    /- B (moved) -\
   A <               < D <- E
      \- C ---------/            */
TEST(the_share_of_an_awaiter_that_moved_is_lost_and_counted) {
    draw("BA CA DB DC ED b");
    CHECK_WAYS('D', "eACDd*0.5");
    CHECK(drop_counts[DROP_moved_awaiter] == 1);
    CHECK_WAYS('E', "eACDEe*0.5");
    CHECK(drop_counts[DROP_moved_awaiter] == 2);
}

TEST(nothing_stands_on_an_awaiter_that_moved_nor_on_what_it_awaits) {
    draw("BA CB b");
    CHECK_WAYS('C', "");
    CHECK_WAYS('B', "");
    CHECK_WAYS('A', "eAa*1");
    CHECK(drop_counts[DROP_moved_awaiter] == 2);
}

static unsigned plain_ends; /* of the way up, those at a task that moved included */

/* The stacks of a task by the definition alone: no bound, no memory of earlier climbs. */
static void climb_plainly(uint32_t task, char *path, size_t length, double share, char *text) {
    bool met[N_LETTERS] = {false};
    uint32_t count = 0;
    for (size_t i = 0; i < length; i++) met[path[i] - 'A'] = true;
    plain_ends += tasks[task].unusable;
    if (tasks[task].unusable) return;
    path[length++] = (char)('A' + task);
    met[task] = true;
    for (uint32_t i = 0; i < tasks[task].n_parents; i++) count += !met[tasks[task].parents[i]];
    for (uint32_t i = 0; i < tasks[task].n_parents; i++)
        if (!met[tasks[task].parents[i]]) climb_plainly(tasks[task].parents[i], path, length, share / count, text);
    if (count) return;
    plain_ends++;
    text += strlen(text);
    *text++ = ' ', *text++ = 'e';
    for (size_t i = length; i > 0; i--) *text++ = path[i - 1];
    sprintf(text, "%c*%g", path[0] - 'A' + 'a', share);
}

static const char *plain_ways(char leaf) {
    static char text[1 << 16];
    char path[N_LETTERS];
    text[0] = 0;
    plain_ends = 0;
    climb_plainly((uint32_t)(leaf - 'A'), path, 0, 1.0, text);
    return text[0] ? text + 1 : text;
}

static uint32_t next_random(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 16;
}

/* Small graphs of any shape, cycles and moved tasks among them: whichever leaf was looked at before, and how often. */
TEST(what_is_kept_of_earlier_climbs_never_shows) {
    enum { GRAPHS = 3000, N = 7, CLIMBS = 21 };
    unsigned compared = 0, shared = 0;
    for (unsigned graph = 0; graph < GRAPHS; graph++) {
        if (graph % 100 == 0) clear();
        unsigned density = 1 + graph % 5;
        for (uint32_t task = 0; task < N; task++) {
            tasks[task] = (struct stitch_task){.locations = frames[task], .n_locations = 2, .n_as_awaiter = 1, .entry = entry};
            tasks[task].unusable = next_random() % 16 == 0;
            for (uint32_t other = 0; other < N; other++)
                if (next_random() % 24 < density) tasks[task].parents[tasks[task].n_parents++] = other;
        }
        for (unsigned i = 0; i < CLIMBS; i++) {
            char leaf = (char)('A' + next_random() % N);
            const char *plain = plain_ways(leaf);
            for (uint32_t task = 0; task < N; task++) shared += tasks[task].has_prefix;
            if (plain_ends > 4) continue; /* so few cannot meet the bound on ways */
            CHECK_WAYS(leaf, plain);
            compared++;
        }
    }
    CHECK(compared > 20000 && shared > 20000);
}

/* T0 <- T1 <- ... */
static struct stitch_task *draw_row(uint32_t count, uint32_t *locations) {
    static struct stitch_task row[400];
    CHECK(count <= sizeof row / sizeof row[0]);
    clear();
    for (uint32_t i = 0; i < count; i++) {
        char name[8];
        locations[i] = location_of(name, (size_t)snprintf(name, sizeof name, "T%u", i));
        row[i] = (struct stitch_task){.locations = &locations[i], .n_locations = 1, .n_as_awaiter = 1, .entry = entry};
        if (i) row[i].parents[row[i].n_parents++] = i - 1;
    }
    return row;
}

/* The stack consists of e and then the tasks first to last. */
static bool is_row(uint32_t stack, const uint32_t *locations, uint32_t first, uint32_t last) {
    struct stack_table_view view = stack_table_view(stacks);
    for (uint32_t i = last + 1; i-- > first; stack = view.nodes[stack].parent)
        if (view.nodes[stack].location != locations[i]) return false;
    return stack == entry;
}

TEST(as_many_awaiters_in_a_row_as_allowed_are_all_there) {
    uint32_t locations[400];
    struct stitched out[MAX_PATHS];
    struct stitch_task *row = draw_row(MAX_AWAITING_TASKS + 1, locations);
    CHECK(stitch(row, MAX_AWAITING_TASKS, stacks, out) == 1 && out[0].share == 1);
    CHECK(is_row(out[0].stack, locations, 0, MAX_AWAITING_TASKS));
    CHECK(drop_counts[DROP_too_deep] == 0);
}

TEST(of_more_awaiters_in_a_row_the_nearest_are_kept_and_the_cut_is_counted) {
    uint32_t locations[400];
    struct stitched out[MAX_PATHS];
    struct stitch_task *row = draw_row(300, locations);
    CHECK(stitch(row, 299, stacks, out) == 1 && out[0].share == 1);
    CHECK(is_row(out[0].stack, locations, 299 - MAX_AWAITING_TASKS, 299));
    CHECK(drop_counts[DROP_too_deep] == 1);
    /* The cut depends on the leaf: nothing of it may be kept for others. */
    CHECK(stitch(row, 200, stacks, out) == 1 && is_row(out[0].stack, locations, 0, 200));
    CHECK(drop_counts[DROP_too_deep] == 1);
}

/* A stack of count different frames. */
static uint32_t push_numbers(uint32_t count, uint32_t *locations) {
    uint32_t stack = 0;
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        locations[i] = location_of(name, (size_t)snprintf(name, sizeof name, "frame %u", i));
        stack = stack_table_push(stacks, stack, locations[i]);
    }
    return stack;
}

TEST(a_stack_within_the_limit_stays_what_it_is) {
    static uint32_t locations[512];
    const uint32_t limits[] = {3, 128, 512};
    clear();
    uint32_t omitted = location_of("<frames omitted>", 16);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint32_t whole = push_numbers(limits[i], locations), less = push_numbers(limits[i] - 1, locations);
        CHECK(stitch_limit(stacks, whole, limits[i], omitted) == whole && stitch_limit(stacks, less, limits[i], omitted) == less);
    }
    CHECK(stitch_limit(stacks, 0, 3, omitted) == 0);
}

TEST(of_a_deeper_stack_both_ends_are_kept_around_one_omitted_frame) {
    static uint32_t locations[4096];
    const uint32_t limits[] = {3, 4, 128, 511, 512};
    clear();
    uint32_t omitted = location_of("<frames omitted>", 16);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const uint32_t depths[] = {limits[i] + 1, limits[i] + 2, 4096};
        for (size_t k = 0; k < sizeof depths / sizeof depths[0]; k++) {
            uint32_t stack = stitch_limit(stacks, push_numbers(depths[k], locations), limits[i], omitted);
            struct stack_table_view view = stack_table_view(stacks);
            uint32_t at_root = (limits[i] - 1) / 2, at_leaf = limits[i] - 1 - at_root;
            CHECK(view.nodes[stack].depth == limits[i]);
            for (uint32_t frame = 0; frame < at_leaf; frame++, stack = view.nodes[stack].parent)
                CHECK(view.nodes[stack].location == locations[depths[k] - 1 - frame]);
            CHECK(view.nodes[stack].location == omitted);
            stack = view.nodes[stack].parent;
            for (uint32_t frame = at_root; frame-- > 0; stack = view.nodes[stack].parent)
                CHECK(view.nodes[stack].location == locations[frame]);
            CHECK(stack == 0);
        }
    }
}

TEST(a_limit_beyond_what_is_kept_is_that_bound) {
    static uint32_t locations[4096];
    clear();
    uint32_t stack = stitch_limit(stacks, push_numbers(600, locations), 4096, location_of("<frames omitted>", 16));
    CHECK(stack_table_view(stacks).nodes[stack].depth == 512);
}
