/* The sampler thread over a tape, while another thread swaps and encodes its tables, one asks for its sums, and one goes on writing
   spans where the sampler reads them: races TAPE, under the thread sanitizer. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "check.h"
#include "drop.h"
#include "memory_of_tape.h"
#include "os_of_tape.h"
#include "otlp_encode.h"
#include "pages.h"
#include "sampler.h"
#include "span_view.h"
#include "tape.h"

#define COLLECTIONS 40
#define MAX_VIEWS 64

static bool ended;
static uint64_t *views[MAX_VIEWS]; /* the words of each struct span_view in a page */
static size_t n_views;
static size_t n_links;

static bool is_ended(void) { return __atomic_load_n(&ended, __ATOMIC_ACQUIRE); }

static void find_views(void) {
    for (size_t i = 0; i < n_pages; i++)
        for (size_t offset = 0; offset + sizeof(struct span_view) <= PAGE_BYTES && n_views < MAX_VIEWS; offset += 8) {
            uint64_t *words = (uint64_t *)(void *)(pages[i]->bytes + offset);
            if (*words == SPAN_VIEW_MAGIC) views[n_views++] = words;
        }
    CHECK(n_views > 0);
}

/* Memory in which one span after the other is laid out, word by word as any processor may show it: freed and used again at once. */
static void *publish(void *unused) {
    for (unsigned version = 1; !is_ended(); version = version % 255 + 1) {
        for (size_t i = 0; i < n_views; i++) {
            struct span_view view;
            for (size_t word = 0; word < sizeof view / 8; word++)
                ((uint64_t *)(void *)&view)[word] = __atomic_load_n(&views[i][word], __ATOMIC_RELAXED);
            memset(view.trace_id, (int)version, sizeof view.trace_id);
            memset(view.span_id, (int)version, sizeof view.span_id);
            memset(view.local_root, (int)version, sizeof view.local_root);
            view.checksum = span_view_checksum(&view);
            for (size_t word = 0; word < sizeof view / 8; word++)
                __atomic_store_n(&views[i][word], ((uint64_t *)(void *)&view)[word], __ATOMIC_RELAXED);
        }
        sched_yield();
    }
    return unused;
}

static void *ask(void *unused) {
    uint64_t sum = 0;
    while (!is_ended()) {
        struct sampler_stats stats = sampler_stats();
        sum += stats.ticks + stats.samples + stats.tasks_seen + sampler_options().period_ns + sampler_is_running();
        for (unsigned i = 0; i < DROP_REASONS; i++) sum += __atomic_load_n(&drop_counts[i], __ATOMIC_RELAXED);
        sampler_ignore_thread((uint32_t)(sum % 3 + 1));
        sched_yield();
    }
    return unused;
}

/* A link is of one span, never of two. */
static void check_links(const struct stack_table *table) {
    struct stack_table_view view = stack_table_view(table);
    for (uint32_t i = 1; i < view.n_links; i++, n_links++) {
        bool recorded = view.links[i].trace_id[0] == 0; /* as the tape has it, before the first version */
        for (size_t byte = 0; byte < sizeof view.links[i].trace_id && !recorded; byte++)
            CHECK(view.links[i].trace_id[byte] == view.links[i].span_id[byte % sizeof view.links[i].span_id]);
    }
}

static bool take(void *sum, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) *(uint64_t *)sum += bytes[i];
    return true;
}

static void no_entropy(void *bytes, size_t size) { memset(bytes, 1, size); }

static void *collect(void *unused) {
    struct otlp_options options = {.resource = (const uint8_t *)"", .resource_schema_url = "", .scope_version = "1", .time_unix_nano = 1,
                                   .duration_nano = 1, .period_ns = 1000000, .attributes = UINT32_MAX, .random_bytes = no_entropy};
    uint64_t sum = 0;
    for (unsigned collections = 0; collections < COLLECTIONS;) {
        struct interval interval = sampler_swap();
        CHECK(interval.table && otlp_encode(interval.table, &options, take, &sum));
        check_links(interval.table);
        collections += stack_table_view(interval.table).n_samples > 0; /* an interval without a tick proves nothing */
        sampler_release();
        sched_yield();
    }
    CHECK(sum && n_links);
    return unused;
}

static void together(void) {
    void *(*const work[])(void *) = {publish, ask, collect};
    pthread_t threads[3];
    __atomic_store_n(&ended, false, __ATOMIC_RELEASE);
    for (size_t i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, work[i], NULL) == 0);
    pthread_join(threads[2], NULL);
    sampler_stop(); /* while the others still ask */
    __atomic_store_n(&ended, true, __ATOMIC_RELEASE);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

int main(int argc, char **argv) {
    static struct tape_head head;
    struct tick_options options = {.period_ns = 1000000, .max_frames = 128, .attributes = UINT32_MAX, .timeline = true,
                                   .features = FEATURE_TASKS | FEATURE_AWAITERS | FEATURE_SPANS};
    if (argc != 2 || !tape_load(argv[1], &head)) return 2;
    running_thread = (uint32_t)head.running_thread;
    find_views();
    for (unsigned start = 0; start < 2; start++) { /* the second start frees what the first has left */
        CHECK(sampler_start(&options, head.asyncio_directory, 1.0, false) == NULL);
        together();
    }
    puts("passed");
    return 0;
}
