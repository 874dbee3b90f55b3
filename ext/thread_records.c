#include "thread_records.h"

#include <stdlib.h>
#include <string.h>

#include "os/os.h"

#define ELLIPSIS "\xe2\x80\xa6"
#define ELLIPSIS_BYTES 3u
/* A thread that has run is looked at in each tick for so long: one that works and sleeps in turn, in one frame, has the same words at
   every look. */
#define RECENTLY_NS 250000000ull
#define MUCH 4 /* a share of the time: more than it rests */
#define MAX_UNSEEN_TICKS 1000 /* while the list of threads could not be read whole */
#define NAME_LIFETIME_NS 1000000000ull /* a thread may be renamed: its name is read again this often */
#define NO_NAME_LIFETIME_NS 50000000ull /* a thread enters threading's table a little after it has begun */

bool thread_records_init(struct thread_records *records) {
    *records = (struct thread_records){.records = aligned_alloc(_Alignof(struct thread_record), MAX_THREADS * sizeof *records->records)};
    return records->records != NULL;
}

void thread_records_destroy(struct thread_records *records) {
    free(records->records);
    *records = (struct thread_records){0};
}

/* A thread that comes back after it was forgotten is taken for a new one, and the CPU time of its whole life is counted again. */
void thread_records_next_tick(struct thread_records *records, bool seen_all,
                              void (*forget)(void *context, struct thread_record *record), void *context) {
    uint32_t kept_for = seen_all ? 0 : MAX_UNSEEN_TICKS;
    size_t kept = 0;
    for (size_t i = 0; i < records->count; i++) {
        if (records->tick - records->records[i].last_tick > kept_for) {
            forget(context, &records->records[i]);
            continue;
        }
        if (kept != i) records->records[kept] = records->records[i];
        kept++;
    }
    records->count = kept;
    records->first_tick_done = records->tick > 0;
    records->tick++;
}

static void read_name(struct thread_record *record, uint64_t ident, uint64_t now_ns) {
    char name[MAX_STRING_BYTES];
    size_t size;
    record->name_read_ns = now_ns;
    if (!threads_read_name(ident, name, &size)) return; /* not registered yet, or made outside threading */
    if (size > sizeof record->name) {
        size = sizeof record->name - ELLIPSIS_BYTES;
        while (size && (name[size] & 0xc0) == 0x80) size--; /* cut before a character, not in it */
        memcpy(name + size, ELLIPSIS, ELLIPSIS_BYTES);
        size += ELLIPSIS_BYTES;
    }
    memcpy(record->name, name, size);
    record->name_size = size;
}

static struct thread_record *find(struct thread_records *records, const struct thread_state *thread) {
    for (size_t i = 0; i < records->count; i++) {
        size_t at = (records->next + i) % records->count;
        struct thread_record *record = &records->records[at];
        if (record->unique_id != thread->unique_id || record->native_id != (uint32_t)thread->native_id) continue;
        records->next = at + 1;
        return record;
    }
    return NULL;
}

struct thread_words thread_words(const struct thread_state *thread) {
    return (struct thread_words){thread->context, thread->chunk_top, thread->frame};
}

bool thread_record_looks_rested(const struct thread_record *record, const struct thread_words *now, uint32_t interval) {
    return record->rested && record->interval == interval && memcmp(now, &record->words, sizeof *now) == 0;
}

struct thread_record *thread_records_find_resting(struct thread_records *records, const struct thread_state *thread, uint32_t interval,
                                                  uint64_t now_ns) {
    struct thread_record *record = find(records, thread);
    struct thread_words now = thread_words(thread);
    if (!record || !thread_record_looks_rested(record, &now, interval)) return NULL;
    if (record->ran_ns && now_ns - record->ran_ns < RECENTLY_NS) return NULL;
    record->last_tick = records->tick;
    return record;
}

bool thread_records_keep_unread(struct thread_records *records, const struct thread_state *thread) {
    struct thread_record *record = find(records, thread);
    if (!record || record->asked_tick == records->tick) return false;
    record->last_tick = records->tick;
    return true;
}

/* A clock is asked once in a tick: it is a system call. */
static bool ask_clock(const struct thread_records *records, struct thread_record *record) {
    if (record->asked_tick == records->tick) return true;
    if (!os_thread_cpu_ns(record->native_id, &record->asked_cpu_ns)) return false;
    record->asked_tick = records->tick;
    return true;
}

bool thread_records_is_idle(struct thread_records *records, const struct thread_state *thread) {
    struct thread_record *record = find(records, thread);
    if (!record || !ask_clock(records, record) || record->asked_cpu_ns != record->cpu_ns) return false;
    record->last_tick = records->tick;
    return true;
}

struct thread_record *thread_records_find(struct thread_records *records, const struct thread_state *thread, uint64_t now_ns) {
    struct thread_record *record = find(records, thread);
    if (!record) {
        if (records->count == MAX_THREADS) return NULL;
        record = &records->records[records->count++];
        *record = (struct thread_record){.native_id = (uint32_t)thread->native_id, .unique_id = thread->unique_id};
        /* A thread that was there before the sampler has used CPU that is not ours to report. */
        if (!records->first_tick_done && !os_thread_cpu_ns(record->native_id, &record->cpu_ns)) record->cpu_ns = 0;
    }
    record->last_tick = records->tick;
    if (now_ns - record->name_read_ns > (record->name_size ? NAME_LIFETIME_NS : NO_NAME_LIFETIME_NS)) read_name(record, thread->ident, now_ns);
    return record;
}

uint64_t thread_record_read_cpu(struct thread_records *records, struct thread_record *record) {
    if (!ask_clock(records, record) || record->asked_cpu_ns <= record->cpu_ns) return 0;
    uint64_t used = record->asked_cpu_ns - record->cpu_ns;
    record->pending_cpu_ns += used;
    record->cpu_ns = record->asked_cpu_ns;
    return used;
}

bool thread_record_on_cpu(const struct thread_record *record, bool holds_gil, uint64_t used_ns, uint64_t elapsed_ns) {
    uint64_t cpu;
    /* With the interpreter's lock it runs, or has lost its CPU to us or to others: it goes on as soon as it can. Where it has used no
       CPU since the last look, either others had it all that time or C code sleeps with the lock: both are rare, and the kernel is
       asked. Without the lock, a clock that went on while the stack was copied belongs to a running thread. One that stood still
       sleeps, unless it lost its CPU in code of an extension: the kernel knows, but is asked only about one that has run much, since
       the answer takes as long as a tick. */
    if (!used_ns) return holds_gil && os_thread_state(record->native_id) == OS_THREAD_RUNNABLE;
    if (holds_gil) return true;
    if (os_thread_cpu_ns(record->native_id, &cpu) && cpu > record->cpu_ns) return true;
    return used_ns >= elapsed_ns / MUCH && os_thread_state(record->native_id) == OS_THREAD_RUNNABLE;
}

uint64_t thread_record_take_periods(struct thread_record *record, uint64_t period_ns) {
    uint64_t periods = record->pending_cpu_ns / period_ns;
    record->pending_cpu_ns -= periods * period_ns;
    return periods;
}
