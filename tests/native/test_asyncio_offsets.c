#include "test_program.h"

#include "cpython/asyncio_offsets.c"

struct layout layout;

#define TASK_BYTES 200u

/* As asyncio's module of a CPython might publish them in which all fields have moved. */
static uint64_t words[ASYNCIO_OFFSETS_WORDS];

static void shifted(void) {
    layout = (struct layout){.interp_size = 300000, .thread_size = 256};
    const uint64_t table[ASYNCIO_OFFSETS_WORDS] = {TASK_BYTES, 152, 112, 124, 126, 144, 176, 300000, 20000, 1000, 904, 912, 928};
    memcpy(words, table, sizeof words);
}

TEST(what_is_published_and_what_stands_beside_it_is_applied) {
    shifted();
    CHECK(asyncio_offsets_fit(words, TASK_BYTES));
    asyncio_offsets_apply(words);
    CHECK(layout.task_size == TASK_BYTES && layout.task_name == 152 && layout.task_context == 160);
    CHECK(layout.task_coroutine == 144 && layout.task_waiter == 136 && layout.task_node == 176);
    CHECK(layout.future_awaited_by == 112 && layout.future_awaited_by_is_set == 126 && layout.future_state == 120);
    CHECK(layout.interp_tasks == 20000 && layout.thread_tasks == 928);
    CHECK(layout.thread_running_loop == 904 && layout.thread_running_task == 912);
}

TEST(a_table_of_another_task_or_interpreter_does_not_fit) {
    shifted();
    CHECK(!asyncio_offsets_fit(words, TASK_BYTES + 8));
    shifted();
    layout.interp_size += 8;
    CHECK(!asyncio_offsets_fit(words, TASK_BYTES));
}

/* Each field just outside, far outside, or where no such field can stand. */
TEST(a_table_with_one_offset_out_of_place_does_not_fit) {
    const uint64_t ends[ASYNCIO_OFFSETS_WORDS] = {[TASK_NAME] = TASK_BYTES - 8,  [TASK_AWAITED_BY] = TASK_BYTES,
                                                  [TASK_IS_TASK] = TASK_BYTES,   [TASK_AWAITED_BY_IS_SET] = TASK_BYTES,
                                                  [TASK_COROUTINE] = TASK_BYTES, [TASK_NODE] = TASK_BYTES - 8,
                                                  [INTERP_TASKS] = 300000 - 8,   [THREAD_RUNNING_LOOP] = 1000,
                                                  [THREAD_RUNNING_TASK] = 1000,  [THREAD_TASKS] = 1000 - 8};
    for (unsigned i = 0; i < ASYNCIO_OFFSETS_WORDS; i++) {
        if (!ends[i]) continue;
        const uint64_t broken[] = {ends[i], ends[i] + 8, MAX_LAYOUT_OFFSET, UINT32_MAX, UINT64_MAX, UINT64_MAX - 7, i == INTERP_TASKS ? 4 : 0};
        for (unsigned k = 0; k < sizeof broken / sizeof broken[0]; k++) {
            shifted();
            words[i] = broken[k];
            CHECK(!asyncio_offsets_fit(words, TASK_BYTES));
        }
    }
}

TEST(fields_that_are_not_aligned_do_not_fit) {
    const unsigned fields[] = {TASK_NAME, TASK_AWAITED_BY, TASK_COROUTINE, TASK_NODE, INTERP_TASKS, THREAD_RUNNING_LOOP, THREAD_TASKS};
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        shifted();
        words[fields[i]] -= 4;
        CHECK(!asyncio_offsets_fit(words, TASK_BYTES));
    }
    shifted();
    words[TASK_IS_TASK] = 125; /* an int ends before it */
    CHECK(!asyncio_offsets_fit(words, TASK_BYTES));
}

TEST(a_structure_larger_than_any_does_not_fit) {
    shifted();
    words[THREAD_SIZE] = MAX_LAYOUT_OFFSET + 1;
    CHECK(!asyncio_offsets_fit(words, TASK_BYTES));
    shifted();
    layout.interp_size = words[INTERP_SIZE] = MAX_LAYOUT_OFFSET + 8;
    CHECK(!asyncio_offsets_fit(words, TASK_BYTES));
}
