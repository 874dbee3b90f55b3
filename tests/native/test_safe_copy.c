/* safe_copy(): exact bytes, exact faults. With the argument "no-syscall" the system call is left out (qemu-user has none). */
#include "check.h"

#include "clock.h"
#include "safe_copy.h"
#include "signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { CANARY = 0xA5, ROOM = 16, MAX_SIZE = 9000, CHURN_MS = 1000 };

static size_t page;

static unsigned char pattern(size_t i) { return (unsigned char)(i * 131 + (i >> 8) * 7 + 1); }

/* count pages of which only [first, end) can be read; the readable part holds the pattern. */
static unsigned char *pages_readable(size_t count, size_t first, size_t end) {
    unsigned char *memory = mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (size_t i = first * page; i < end * page; i++) memory[i] = pattern(i);
    if (first > 0) CHECK(mprotect(memory, first * page, PROT_NONE) == 0);
    if (end < count) CHECK(munmap(memory + end * page, (count - end) * page) == 0);
    return memory;
}

/* One copy: its result, its bytes, and nothing written before or behind the destination, whatever its alignment. */
static void copy_and_check(const unsigned char *memory, size_t from, size_t size, bool readable, size_t shift) {
    static unsigned char buffer[ROOM + MAX_SIZE + 2 * ROOM];
    size_t start = ROOM + shift;
    CHECK(shift < ROOM && size <= MAX_SIZE);
    memset(buffer, CANARY, start + size + ROOM);
    uint64_t faults = safe_copy_faults();
    bool copied = safe_copy(buffer + start, (uintptr_t)memory + from, size);
    if (copied != readable) fprintf(stderr, "%zu bytes from %zu, shift %zu\n", size, from, shift);
    CHECK_EQUAL(copied, readable);
    CHECK_EQUAL(safe_copy_faults() - faults, !readable);
    for (size_t i = 0; i < start; i++) CHECK_EQUAL(buffer[i], CANARY);
    for (size_t i = 0; copied && i < size; i++) CHECK_EQUAL(buffer[start + i], pattern(from + i));
    for (size_t i = start + size; i < start + size + ROOM; i++) CHECK_EQUAL(buffer[i], CANARY);
}

static void test_a_copy_fails_exactly_when_it_crosses_into_an_unmapped_page(size_t offsets, size_t sizes) {
    unsigned char *memory = pages_readable(3, 0, 2);
    for (size_t offset = 0; offset <= offsets; offset++)
        for (size_t size = 0; size <= sizes; size++)
            copy_and_check(memory, 2 * page - offset, size, size <= offset, (offset + size) % ROOM);
    for (size_t size = 4000; size <= 4200; size += 1)
        for (size_t offset = size - 1; offset <= size + 1; offset++)
            copy_and_check(memory, 2 * page - offset, size, size <= offset, size % ROOM);
    copy_and_check(memory, 1, 2 * page - 1, true, 0);
    copy_and_check(memory, 1, 2 * page, false, 0);
    munmap(memory, 2 * page);
}

static void test_nothing_before_the_start_is_read(void) {
    unsigned char *memory = pages_readable(2, 1, 2);
    for (size_t size = 0; size <= 200; size++)
        for (size_t start = 0; start <= 16; start++) copy_and_check(memory, page + start, size, true, start % ROOM);
    for (size_t size = 1; size <= 200; size++) copy_and_check(memory, page - 1, size, false, 0);
    munmap(memory, 2 * page);
}

static void test_every_alignment_of_source_and_destination_is_copied_whole(void) {
    unsigned char *memory = pages_readable(2, 0, 2);
    for (size_t from = 0; from < 16; from++)
        for (size_t shift = 0; shift < 16; shift++)
            for (size_t size = 0; size <= 140; size += 1 + (size > 80) * 3) copy_and_check(memory, from, size, true, shift);
    munmap(memory, 2 * page);
}

static void test_addresses_that_no_program_can_read_are_refused(void) {
    static unsigned char buffer[512];
    const uint64_t addresses[] = {0, 1, 8, 4095, 0x0000800000000000ull, 0x00007fffffffffffull, 0x0123456789abcdefull,
                                  0xdeadbeefdeadbeefull, 0x8000000000000000ull, 0xffff800000000000ull, UINT64_MAX - 7, UINT64_MAX};
    const size_t sizes[] = {1, 2, 4, 7, 8, 15, 16, 63, 64, 65, 200, 512};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            uint64_t faults = safe_copy_faults();
            CHECK(!safe_copy(buffer, addresses[i], sizes[j]));
            CHECK_EQUAL(safe_copy_faults() - faults, 1);
        }
    uint64_t faults = safe_copy_faults(), word = 0, value = 0x0102030405060708ull;
    CHECK(safe_copy(buffer, 0, 0) && safe_copy(buffer, UINT64_MAX, 0) && safe_copy(buffer, 0xdeadbeefdeadbeefull, 0));
    CHECK_EQUAL(safe_copy_faults(), faults);
    unsigned char *memory = pages_readable(1, 0, 1);
    CHECK(!safe_copy(buffer, (uintptr_t)memory, SIZE_MAX) && !safe_copy(buffer, (uintptr_t)memory, (size_t)-(uintptr_t)memory));
    munmap(memory, page);
    CHECK(safe_copy_word(&word, (uintptr_t)&value));
    CHECK(word == value);
}

static void test_a_word_and_half_of_one_are_read_or_refused_like_any_size(void) {
    const uint64_t bad[] = {0, 8, 4095, 0xdeadbeefdeadbeefull, 0x8000000000000000ull, UINT64_MAX - 7};
    uint64_t value = 0x0102030405060708ull, word;
    uint32_t half;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t faults = safe_copy_faults();
        CHECK(!safe_copy_word(&word, bad[i]) && !safe_copy_half(&half, bad[i]));
        CHECK_EQUAL(safe_copy_faults() - faults, 2);
    }
    unsigned char *memory = pages_readable(2, 0, 1);
    memcpy(memory + page - 8, &value, 8);
    CHECK(safe_copy_word(&word, (uintptr_t)memory + page - 8) && word == value);
    CHECK(safe_copy_half(&half, (uintptr_t)memory + page - 8) && half == 0x05060708);
    CHECK(!safe_copy_word(&word, (uintptr_t)memory + page - 7) && !safe_copy_word(&word, (uintptr_t)memory + page));
    CHECK(!safe_copy_half(&half, (uintptr_t)memory + page - 3));
    munmap(memory, page);
}

static void test_a_page_behind_the_end_of_its_file_is_unreadable(void) {
    FILE *file = tmpfile();
    CHECK(file && ftruncate(fileno(file), (off_t)page) == 0);
    unsigned char *memory = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fileno(file), 0), buffer[64];
    CHECK(memory != MAP_FAILED);
    CHECK(safe_copy(buffer, (uintptr_t)memory + page - 64, 64));
    CHECK(!safe_copy(buffer, (uintptr_t)memory + page, 8));
    CHECK(!safe_copy(buffer, (uintptr_t)memory + page - 32, 64));
    munmap(memory, 2 * page);
    fclose(file);
}

static unsigned char *churned;
static bool churn_ended;

static void *churn(void *unused) {
    uint64_t end = clock_monotonic_ns() + CHURN_MS * 1000000ull;
    for (unsigned round = 0; clock_monotonic_ns() < end; round++) {
        if (round % 2) {
            CHECK(munmap(churned, page) == 0);
            CHECK(mmap(churned, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == churned);
        } else {
            CHECK(mprotect(churned, page, PROT_NONE) == 0);
        }
        unsigned char *fresh = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(fresh != MAP_FAILED);
        for (size_t i = 0; i < page; i++) fresh[i] = pattern(i);
        CHECK(mremap(fresh, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, churned) == churned);
    }
    __atomic_store_n(&churn_ended, true, __ATOMIC_RELEASE);
    return unused;
}

/* The page is only ever whole or absent, so each copy that succeeds has the right bytes. */
static void *read_churned(void *counts) {
    static const size_t sizes[] = {8, 17, 64, 200, 1000, 4096};
    unsigned char buffer[4096];
    for (size_t i = 0; !__atomic_load_n(&churn_ended, __ATOMIC_ACQUIRE); i++) {
        size_t size = sizes[i % 6], from = (i * 37) % (page - size + 1);
        bool copied;
        if (size == 8) {
            uint64_t word;
            copied = safe_copy_word(&word, (uintptr_t)churned + from);
            memcpy(buffer, &word, sizeof word);
        } else {
            copied = safe_copy(buffer, (uintptr_t)churned + from, size);
        }
        for (size_t j = 0; copied && j < size; j++) CHECK_EQUAL(buffer[j], pattern(from + j));
        ((uint64_t *)counts)[copied]++;
    }
    return NULL;
}

static void test_memory_that_comes_and_goes_is_copied_right_or_not_at_all(void) {
    churned = pages_readable(1, 0, 1);
    churn_ended = false;
    pthread_t churner, readers[2];
    uint64_t counts[2][2] = {{0}}, faults = safe_copy_faults();
    CHECK(pthread_create(&churner, NULL, churn, NULL) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&readers[i], NULL, read_churned, counts[i]) == 0);
    pthread_join(churner, NULL);
    for (int i = 0; i < 2; i++) pthread_join(readers[i], NULL);
    CHECK(counts[0][0] + counts[1][0] > 0 && counts[0][1] + counts[1][1] > 0);
    CHECK_EQUAL(safe_copy_faults() - faults, counts[0][0] + counts[1][0]);
    munmap(churned, page);
}

static uint64_t shared_word;
static bool words_ended;

static void *flip_words(void *unused) {
    for (unsigned i = 0; i < 2000000; i++) __atomic_store_n(&shared_word, i % 2 ? UINT64_MAX : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&words_ended, true, __ATOMIC_RELEASE);
    return unused;
}

static void test_an_aligned_word_is_never_torn(void) {
    pthread_t flipper;
    words_ended = false;
    CHECK(pthread_create(&flipper, NULL, flip_words, NULL) == 0);
    while (!__atomic_load_n(&words_ended, __ATOMIC_ACQUIRE)) {
        uint64_t word;
        CHECK(safe_copy_word(&word, (uintptr_t)&shared_word));
        CHECK(word == 0 || word == UINT64_MAX);
    }
    pthread_join(flipper, NULL);
}

static void copy_without_a_handler(void) {
    unsigned char buffer[512];
    safe_copy_use(SAFE_COPY_GUARDED);
    CHECK(!safe_copy(buffer, 0, 1) && !safe_copy(buffer, 8, 8) && !safe_copy(buffer, 4095, 512));
    CHECK(!safe_copy(buffer, UINT64_MAX, 1) && !safe_copy(buffer, UINT64_MAX - 7, 64));
    CHECK(!safe_copy(buffer, (uintptr_t)buffer, SIZE_MAX));
    _exit(3);
}

static void test_the_null_page_and_ranges_that_wrap_are_refused_without_a_read(void) {
    CHECK_EQUAL(outcome(copy_without_a_handler), 3);
}

static void everything(size_t offsets, size_t sizes) {
    test_a_copy_fails_exactly_when_it_crosses_into_an_unmapped_page(offsets, sizes);
    test_nothing_before_the_start_is_read();
    test_every_alignment_of_source_and_destination_is_copied_whole();
    test_addresses_that_no_program_can_read_are_refused();
    test_a_word_and_half_of_one_are_read_or_refused_like_any_size();
    test_a_page_behind_the_end_of_its_file_is_unreadable();
    test_memory_that_comes_and_goes_is_copied_right_or_not_at_all();
}

int main(int count, char **arguments) {
    page = (size_t)sysconf(_SC_PAGESIZE);
    alarm(120);
    CHECK_EQUAL(safe_copy_method(), SAFE_COPY_SYSCALL);
    test_the_null_page_and_ranges_that_wrap_are_refused_without_a_read();
    if (count < 2 || strcmp(arguments[1], "no-syscall") != 0) everything(64, 200);
    CHECK(signals_install());
    safe_copy_use(SAFE_COPY_GUARDED);
    CHECK_EQUAL(safe_copy_method(), SAFE_COPY_GUARDED);
    everything(200, 260);
    test_an_aligned_word_is_never_torn();
    signals_restore();
    puts("passed");
    return 0;
}
