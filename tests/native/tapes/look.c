#include "look.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drop.h"
#include "otlp_encode.h"
#include "span_link.h"
#include "tick.h"

#define TICKS 3 /* the later ones meet what the first has remembered */
#define TICK_NS 10000000ull
#define START_NS 10000000000ull
#define MAX_LINES 1024
#define MAX_DEPTH 512

struct out {
    char *text;
    size_t size;
};

static void put(struct out *out, const char *bytes, size_t size) {
    if (out->size + size >= MAX_LOOK_BYTES) abort();
    memcpy(out->text + out->size, bytes, size);
    out->size += size;
    out->text[out->size] = 0;
}

static void put_word(struct out *out, const char *word) { put(out, word, strlen(word)); }

static void put_number(struct out *out, unsigned long long number) {
    char digits[24];
    put(out, digits, (size_t)snprintf(digits, sizeof digits, "%llu", number));
}

static void put_string(struct out *out, const struct stack_table *table, uint32_t id) {
    size_t size;
    const char *bytes = stack_table_string_at(table, id, &size);
    put(out, bytes, size);
}

static void put_link(struct out *out, const struct link *link) {
    char hex[3];
    for (size_t i = 0; i < sizeof link->span_id; i++) put(out, hex, (size_t)snprintf(hex, sizeof hex, "%02x", link->span_id[i]));
}

static void put_stack(struct out *out, const struct stack_table *table, const struct stack_table_view *view, uint32_t stack) {
    uint32_t path[MAX_DEPTH], depth = 0;
    for (; stack && depth < MAX_DEPTH; stack = view->nodes[stack].parent) path[depth++] = stack;
    while (depth-- > 0) {
        struct location location = view->locations[view->nodes[path[depth]].location];
        struct function function = view->functions[location.function];
        put_string(out, table, function.name);
        put_word(out, "@");
        put_string(out, table, function.filename);
        put_word(out, ":");
        put_number(out, location.line);
        if (depth) put_word(out, " > ");
    }
}

static void put_sample(struct out *out, const struct stack_table *table, const struct stack_table_view *view, const struct sample *sample) {
    static const char *const states[] = {"", "running", "blocked", "waiting", "ready"};
    put_word(out, states[sample->key.state % 5]);
    put_word(out, "|");
    put_string(out, table, sample->key.thread_name);
    put_word(out, "|");
    put_string(out, table, sample->key.task_name);
    put_word(out, "|");
    if (sample->key.link) put_link(out, &view->links[sample->key.link]);
    put_word(out, "|");
    put_string(out, table, sample->key.local_root_name);
    put_word(out, "|");
    put_number(out, sample->wall_ns);
    put_word(out, "|");
    put_number(out, sample->cpu_periods);
    put_word(out, "|");
    put_stack(out, table, view, sample->key.stack);
    put_word(out, "\n");
}

static int compare(const void *left, const void *right) { return strcmp(*(const char *const *)left, *(const char *const *)right); }

/* Which sample comes first depends on addresses. */
static bool sort_lines(struct out *out) {
    char *lines[MAX_LINES], *copy = strdup(out->text);
    size_t count = 0;
    for (char *line = copy ? strtok(copy, "\n") : NULL; line; line = strtok(NULL, "\n")) {
        if (count == MAX_LINES) abort();
        lines[count++] = line;
    }
    qsort(lines, count, sizeof *lines, compare);
    out->size = 0;
    for (size_t i = 0; i < count; i++) put_word(out, lines[i]), put_word(out, "\n");
    free(copy);
    return copy;
}

int look(const char *asyncio_directory, char *text) {
    struct out out = {.text = text};
    struct tick_options options = {
        .period_ns = TICK_NS,
        .max_frames = 128,
        .attributes = ATTRIBUTE_THREAD_NAME | ATTRIBUTE_STATE | ATTRIBUTE_TASK_NAME | ATTRIBUTE_LOCAL_ROOT_NAME,
        .features = FEATURE_TASKS | FEATURE_AWAITERS | FEATURE_SPANS,
    };
    struct tick_limits limits = {.slots = UINT32_MAX, .idle_threads = MAX_THREADS};
    bool learnt = span_link_learn_nodes();
    struct stack_table *stacks = stack_table_new((size_t)64 << 20);
    struct tick *tick = tick_new(&options, asyncio_directory);
    text[0] = 0;
    if (learnt && stacks && tick) {
        memset(drop_counts, 0, sizeof drop_counts);
        tick_use(tick, stacks);
        for (uint64_t i = 1; i <= TICKS; i++) tick_run(tick, &limits, START_NS + i * TICK_NS, START_NS + i * TICK_NS, TICK_NS);
        struct stack_table_view view = stack_table_view(stacks);
        for (uint32_t i = 0; i < view.n_samples; i++) put_sample(&out, stacks, &view, &view.samples[i]);
        learnt = sort_lines(&out);
        for (unsigned i = 0; i < DROP_REASONS; i++) {
            if (!drop_counts[i]) continue;
            put_word(&out, "dropped|"), put_word(&out, drop_names[i]), put_word(&out, "|"), put_number(&out, drop_counts[i]);
            put_word(&out, "\n");
        }
        put_word(&out, "tasks visited|"), put_number(&out, tick->tasks_visited);
        put_word(&out, "\nthreads seen|"), put_number(&out, tick->threads_seen);
        put_word(&out, "\n");
    }
    tick_destroy(tick);
    stack_table_destroy(stacks);
    return learnt && text[0];
}
