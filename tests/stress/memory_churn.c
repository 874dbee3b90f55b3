/* Linked into the test build: memory that a thread takes away and gives back page by page, in every way in which a program can lose
   memory. What a page holds never changes: a read gives the right bytes or faults. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define REGION ((unsigned char *)0x200000000000ull) /* where the system itself puts nothing: a hole there stays one */
#define PAGE 4096u
#define LOST_AT_ONCE 2

enum loss { UNMAPPED, PROTECTED, TRUNCATED, LOSSES };

static int content_file;
static uint32_t n_pages;
static pthread_t churner;
static bool ending, failed;
static uint64_t random_state = 88172645463325252ull;

EXPORT uint64_t churn_address(void) { return (uint64_t)(uintptr_t)REGION; }

static uint32_t next_random(uint32_t bound) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % bound;
}

static bool map(uint32_t page, int file, off_t offset) {
    return mmap(REGION + page * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, offset) != MAP_FAILED;
}

static bool give_back(uint32_t page) { return map(page, content_file, (off_t)page * PAGE); }

/* The page is that of a file of its own, which then gets shorter. */
static bool truncate_below(uint32_t page) {
    unsigned char bytes[PAGE];
    int file = memfd_create("truncated", MFD_CLOEXEC);
    bool lost = file >= 0 && pread(content_file, bytes, PAGE, (off_t)page * PAGE) == PAGE && write(file, bytes, PAGE) == PAGE &&
                map(page, file, 0) && ftruncate(file, 0) == 0;
    if (file >= 0) close(file);
    return lost;
}

static bool lose(uint32_t page, enum loss how) {
    switch (how) {
    case UNMAPPED: return munmap(REGION + page * PAGE, PAGE) == 0;
    case PROTECTED: return mprotect(REGION + page * PAGE, PAGE, PROT_NONE) == 0;
    case TRUNCATED: return truncate_below(page);
    default: return false;
    }
}

static void *churn(void *unused) {
    uint32_t lost[LOST_AT_ONCE] = {0};
    bool good = true;
    for (uint32_t i = 0; good && !__atomic_load_n(&ending, __ATOMIC_ACQUIRE); i++) {
        uint32_t *page = &lost[i % LOST_AT_ONCE];
        good = give_back(*page);
        *page = (lost[(i + 1) % LOST_AT_ONCE] + 1 + next_random(n_pages - 1)) % n_pages; /* another one than is lost already */
        good = good && lose(*page, (enum loss)next_random(LOSSES));
    }
    for (uint32_t i = 0; i < LOST_AT_ONCE; i++) good = give_back(lost[i]) && good;
    __atomic_store_n(&failed, !good, __ATOMIC_RELEASE);
    return unused;
}

/* The bytes, whole pages of them, are at churn_address() from now on. */
EXPORT bool churn_map(const void *bytes, uint32_t size) {
    n_pages = size / PAGE;
    content_file = memfd_create("content", MFD_CLOEXEC);
    if (content_file < 0 || write(content_file, bytes, size) != (ssize_t)size) return false;
    for (uint32_t page = 0; page < n_pages; page++)
        if (!give_back(page)) return false;
    return true;
}

EXPORT bool churn_begin(void) { return pthread_create(&churner, NULL, churn, NULL) == 0; }

/* All pages are back. Whether each loss was one. */
EXPORT bool churn_end(void) {
    __atomic_store_n(&ending, true, __ATOMIC_RELEASE);
    return pthread_join(churner, NULL) == 0 && !failed;
}
