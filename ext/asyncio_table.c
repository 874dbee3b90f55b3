#include "asyncio_table.h"

#include "cpython/asyncio_offsets.h"
#include "cpython/layout.h"
#include "os/os.h"
#include "safe_copy.h"

#define WORDS_PER_READ 4096
#define MAX_SEGMENT_BYTES (1ull << 28)

static bool find_in(const struct os_segment *segment, uint64_t task_size) {
    static uint64_t words[WORDS_PER_READ]; /* used under the GIL only */
    uint64_t begin = (segment->begin + 7) & ~7ull, end = segment->end;
    if (end < begin || end - begin > MAX_SEGMENT_BYTES) return false;
    while (end - begin >= ASYNCIO_OFFSETS_WORDS * 8) {
        uint64_t count = (end - begin) / 8 < WORDS_PER_READ ? (end - begin) / 8 : WORDS_PER_READ;
        bool readable = safe_copy(words, begin, count * 8);
        for (uint64_t i = 0; readable && i + ASYNCIO_OFFSETS_WORDS <= count; i++)
            if (words[i] == task_size && asyncio_offsets_fit(words + i, task_size)) return asyncio_offsets_apply(words + i), true;
        begin += (count - ASYNCIO_OFFSETS_WORDS + 1) * 8; /* one may lie across the end of what was read */
    }
    return false;
}

bool asyncio_table_apply(uint64_t address, uint64_t task_type) {
    struct os_segment segments[OS_MAX_SEGMENTS];
    uint64_t task_size;
    if (!task_type || !safe_copy_word(&task_size, task_type + layout.type_basicsize)) return false;
    size_t count = os_segments_of(address, segments);
    for (size_t i = 0; i < count; i++)
        if (find_in(&segments[i], task_size)) return true;
    return false;
}
