/* What is remembered of a thread from one tick to the next: its CPU clock, its name, how deep the code that started its loop is. */
#ifndef OTEL_ASYNCPROF_THREAD_RECORDS_H
#define OTEL_ASYNCPROF_THREAD_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read_object.h"
#include "safe_copy.h"
#include "stack_table.h"
#include "threads.h"

#define MAX_THREAD_NAME 256

/* Words of a thread state that differ when its thread has run Python, as a rule: a hint that costs nothing, no proof. */
struct thread_words {
    uint64_t context, chunk_top, frame;
};

struct thread_record {
    /* All that is asked about a thread which goes on resting: one cache line. */
    _Alignas(CACHE_LINE) uint64_t unique_id; /* of the Python thread state: kernel ids are used again */
    uint32_t native_id;
    uint32_t last_tick;
    uint32_t interval;         /* in whose tables sample and stack are */
    bool rested;               /* it had used no CPU when it was last looked at, and runs no loop */
    struct thread_words words; /* at that look */
    uint64_t owed_ns;          /* time at rest since that look: of its sample then, and not in the tables yet */
    uint64_t ran_ns;           /* when it was last found to have used CPU; 0 = never */

    struct sample_key sample;  /* what was seen of it at that look */
    uint32_t stack;            /* its whole stack then */
    uint64_t cpu_ns;           /* at that look */
    uint64_t asked_cpu_ns;     /* the last answer of the clock, which may be later than that look */
    uint32_t asked_tick;       /* when that was */
    uint64_t pending_cpu_ns;   /* used but not yet given to a stack seen running */
    uint64_t loop;             /* the loop that entry_depth belongs to */
    uint32_t entry_depth;      /* frames of the code that started it */
    uint64_t no_maker;         /* a coroutine on its stack for which no task was found */
    uint32_t no_maker_tick;    /* when that was */
    uint64_t name_read_ns;
    char name[MAX_THREAD_NAME];
    size_t name_size;
};

struct thread_records {
    struct thread_record *records;
    size_t count;
    size_t next;             /* where the next search begins: threads are looked up in the order of the list */
    uint32_t tick;
    bool first_tick_done;
};

bool thread_records_init(struct thread_records *records);
void thread_records_destroy(struct thread_records *records);

/* A new tick: whoever was not met in the one before is forgotten, after a last call of forget, unless that one has not seen all
   threads. */
void thread_records_next_tick(struct thread_records *records, bool seen_all,
                              void (*forget)(void *context, struct thread_record *record), void *context);

/* Whether a thread has used no CPU since it was last looked at: then nothing that only it can change has changed. */
bool thread_records_is_idle(struct thread_records *records, const struct thread_state *thread);

struct thread_words thread_words(const struct thread_state *thread);

/* Whether the thread was at rest when it was last looked at, in this interval, and its state holds the same words still. */
bool thread_record_looks_rested(const struct thread_record *record, const struct thread_words *now, uint32_t interval);

/* The record of a thread that was at rest when it was last looked at, in this interval, had been for a while, and looks as if it still
   were; it lives on without a look. NULL for any other thread. */
struct thread_record *thread_records_find_resting(struct thread_records *records, const struct thread_state *thread, uint32_t interval,
                                                  uint64_t now_ns);

/* Keeps the record of a thread that this tick need not look at. False when there is none, or its clock has been read already. */
bool thread_records_keep_unread(struct thread_records *records, const struct thread_state *thread);

/* The record of a thread, made when it is new; NULL when there are too many. */
struct thread_record *thread_records_find(struct thread_records *records, const struct thread_state *thread, uint64_t now_ns);

/* Adds the CPU used since the last look to what is pending. Returns how much that was. */
uint64_t thread_record_read_cpu(struct thread_records *records, struct thread_record *record);

/* Whether the thread is on a CPU, or waits for one, now: asked after its stack was copied. used_ns is what it has used in the
   elapsed_ns before. */
bool thread_record_on_cpu(const struct thread_record *record, bool holds_gil, uint64_t used_ns, uint64_t elapsed_ns);

/* Takes the whole periods out of the pending CPU time. */
uint64_t thread_record_take_periods(struct thread_record *record, uint64_t period_ns);

#endif
