#include "thread_context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define MAPPING_NAME "OTEL_CTX"
enum { PROCESS_CONTEXT_VERSION = 2 };

/* A reader finds it by its name in /proc/<pid>/maps. While published_at_ns is 0, it is being changed. */
struct process_context {
    char signature[8];
    uint32_t version, payload_size;
    uint64_t published_at_ns;
    uint64_t payload; /* address */
};

/* Read while its thread is stopped: what is written in order by the thread itself needs no more than that the compiler keeps the order. */
struct thread_record {
    uint8_t trace_id[16], span_id[8];
    uint8_t valid; /* 1: what is here is whole */
    uint8_t trace_flags;
    uint16_t attributes_size;
};
_Static_assert(sizeof(struct thread_record) == 28, "the record is laid out as OTEP 4947 says");

/* One for each thread that has ever had a span while this was on. Reused after the end of its thread, never freed. */
struct record_node {
    struct thread_record record;
    bool in_use;
    struct record_node *next;
};

/* The name and the type are the interface: readers find the symbol among the dynamic ones. */
__attribute__((visibility("default"), used)) _Thread_local void *otel_thread_ctx_v1;

bool thread_context_is_on;
static struct process_context *mapping;
static uint8_t *current_payload;
static struct record_node *nodes;
static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER; /* threads end without the GIL */
static pthread_key_t at_thread_end;
static bool has_key;

/* Never inlined, and its registers are not looked into: before glibc 2.40, resolving a TLS descriptor may change vector registers. */
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((noinline, noipa))
#else
__attribute__((noinline))
#endif
static void **slot_of_this_thread(void) { return &otel_thread_ctx_v1; }

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static uint64_t boot_time_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return ns ? ns : 1;
}

static struct process_context *new_mapping(void) {
    int file = memfd_create(MAPPING_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (file < 0) file = memfd_create(MAPPING_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *address = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t)page_size()) == 0)
        address = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (file >= 0) close(file);
    if (address == MAP_FAILED) address = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return NULL;
    if (madvise(address, page_size(), MADV_DONTFORK) != 0) return munmap(address, page_size()), NULL;
    return address;
}

bool thread_context_publish(const uint8_t *payload, size_t size) {
    if (size == 0 || size > MAX_PROCESS_CONTEXT_BYTES) return false;
    uint8_t *copy = malloc(size);
    if (!copy) return false;
    memcpy(copy, payload, size);
    if (!mapping && !(mapping = new_mapping())) return free(copy), false;
    volatile struct process_context *context = mapping;
    context->published_at_ns = 0;
    atomic_thread_fence(memory_order_seq_cst);
    memcpy(mapping->signature, MAPPING_NAME, sizeof mapping->signature);
    context->version = PROCESS_CONTEXT_VERSION;
    context->payload_size = (uint32_t)size;
    context->payload = (uint64_t)(uintptr_t)copy;
    atomic_thread_fence(memory_order_seq_cst);
    context->published_at_ns = boot_time_ns();
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, mapping, page_size(), MAPPING_NAME); /* not every kernel names mappings */
    free(current_payload);
    current_payload = copy;
    thread_context_is_on = true;
    return true;
}

void thread_context_withdraw(void) {
    thread_context_is_on = false;
    pthread_mutex_lock(&nodes_lock);
    for (struct record_node *node = nodes; node; node = node->next) *(volatile uint8_t *)&node->record.valid = 0;
    pthread_mutex_unlock(&nodes_lock);
    if (mapping) munmap(mapping, page_size());
    free(current_payload);
    mapping = NULL;
    current_payload = NULL;
}

void thread_context_after_fork_in_child(void) {
    struct thread_record *own = *slot_of_this_thread();
    pthread_mutex_init(&nodes_lock, NULL);
    for (struct record_node *node = nodes; node; node = node->next) {
        node->record.valid = 0;
        node->in_use = &node->record == own; /* the other threads are not here */
    }
    free(current_payload);
    mapping = NULL; /* not inherited */
    current_payload = NULL;
    thread_context_is_on = false;
}

static void end_of_thread(void *argument) {
    struct record_node *node = argument;
    *slot_of_this_thread() = NULL;
    pthread_mutex_lock(&nodes_lock);
    node->record.valid = 0;
    node->in_use = false;
    pthread_mutex_unlock(&nodes_lock);
}

/* The record of the calling thread, which has none yet; NULL when there is no memory for it. */
static struct thread_record *own_record(void) {
    if (!has_key && pthread_key_create(&at_thread_end, end_of_thread) != 0) return NULL;
    has_key = true;
    pthread_mutex_lock(&nodes_lock);
    struct record_node *node = nodes;
    while (node && node->in_use) node = node->next;
    if (!node && (node = calloc(1, sizeof *node))) {
        node->next = nodes;
        nodes = node;
    }
    if (node) node->in_use = true;
    pthread_mutex_unlock(&nodes_lock);
    if (!node || pthread_setspecific(at_thread_end, node) != 0) {
        if (node) node->in_use = false;
        return NULL;
    }
    *slot_of_this_thread() = &node->record;
    return &node->record;
}

void thread_context_show(const struct span_view *view) {
    bool is_span = view && !(view->flags & SPAN_REMOTE);
    struct thread_record *record = *slot_of_this_thread();
    if (!record && (!is_span || !(record = own_record()))) return;
    volatile uint8_t *valid = &record->valid;
    *valid = 0;
    atomic_signal_fence(memory_order_seq_cst);
    if (!is_span) return;
    memcpy(record->trace_id, view->trace_id, sizeof record->trace_id);
    memcpy(record->span_id, view->span_id, sizeof record->span_id);
    record->trace_flags = (view->flags & SPAN_SAMPLED ? 1 : 0) | (view->flags & SPAN_RANDOM_TRACE_ID ? 2 : 0); /* those of W3C */
    record->attributes_size = 0;
    atomic_signal_fence(memory_order_seq_cst);
    *valid = 1;
}
