/* What is done to recorded memory: pointers are led to other objects, to their own, to a neighbour, to the end of a page, to nowhere;
   numbers, flags and whole objects are changed; pages vanish between two reads, words change between them; what was never read is
   unreadable, or holds anything. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "memory_of_tape.h"
#include "pages.h"

#define MAX_CHANGES 12
#define MAX_UNDO 256
#define MAX_FLICKERS 4
#define OBJECT_BYTES 512 /* within which a word belongs to the object before it */
#define OBJECT_WORDS 16
#define COPIED_BYTES 64
#define MAX_ANCESTORS 6

uint64_t *fuzz_words, *fuzz_objects;
size_t fuzz_n_words, fuzz_n_objects;

static struct undo {
    struct page *page;
    size_t offset;
    uint8_t byte;
} undone[MAX_UNDO * 8];
static size_t n_undone;

static struct {
    uint64_t address, other;
} flickers[MAX_FLICKERS];
static size_t n_flickers;
static uint64_t n_copies, n_reads, max_reads = UINT64_MAX, vanishing_page, vanishing_from, fill_seed;
static enum { FILL_NOTHING, FILL_ZEROS, FILL_ONES, FILL_SMALL, FILL_POINTERS, FILL_OWN, FILL_KINDS } fill_kind;

static bool read_word(uint64_t address, uint64_t *word) {
    const struct page *page = page_find(address / PAGE_BYTES);
    if (!page || memchr(page->known + address % PAGE_BYTES, 0, 8)) return false;
    memcpy(word, page->bytes + address % PAGE_BYTES, 8);
    return true;
}

static bool is_known(uint64_t address) {
    const struct page *page = page_find(address / PAGE_BYTES);
    return page && page->known[address % PAGE_BYTES];
}

/* Bytes that no page holds stay so. */
static void change_bytes(uint64_t address, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        struct page *page = page_find((address + i) / PAGE_BYTES);
        size_t offset = (address + i) % PAGE_BYTES;
        if (!page || !page->known[offset] || n_undone == sizeof undone / sizeof undone[0]) continue;
        undone[n_undone++] = (struct undo){page, offset, page->bytes[offset]};
        page->bytes[offset] = ((const uint8_t *)bytes)[i];
    }
}

static void change_word(uint64_t address, uint64_t value) { change_bytes(address, &value, 8); }

/* Objects in the order of the word that stands where a type does: kinds that are rare are changed as often as others. */
static struct typed {
    uint64_t type, object;
} *typed;
static size_t n_typed, *kinds, n_kinds; /* kinds: where each type's objects begin */

/* Which word leads to which object, in the order of the objects. */
static struct pointer {
    uint64_t value, address;
} *pointers;
static size_t n_pointers;

static uint64_t any_of_kind(size_t kind) {
    size_t end = kind + 1 < n_kinds ? kinds[kind + 1] : n_typed;
    return typed[kinds[kind] + fuzz_below(end - kinds[kind])].object;
}

static uint64_t any_object(void) {
    return fuzz_one_in(2) ? fuzz_objects[fuzz_below(fuzz_n_objects)] : any_of_kind(fuzz_below(n_kinds));
}

/* The first of the sorted words that is not below an address. */
static size_t word_from(uint64_t address) {
    size_t low = 0, high = fuzz_n_words;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (fuzz_words[middle] < address) low = middle + 1;
        else high = middle;
    }
    return low;
}

static uint64_t any_word(void) {
    if (fuzz_one_in(2)) return fuzz_words[fuzz_below(fuzz_n_words)];
    uint64_t object = any_of_kind(fuzz_below(n_kinds));
    size_t first = word_from(object), end = first;
    while (end < fuzz_n_words && end - first < OBJECT_WORDS && fuzz_words[end] < object + OBJECT_BYTES) end++;
    return fuzz_words[first + fuzz_below(end - first)]; /* the type at least has been read */
}

static uint64_t object_of(uint64_t address) {
    size_t low = 0, high = fuzz_n_objects;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (fuzz_objects[middle] <= address) low = middle + 1;
        else high = middle;
    }
    return low && address - fuzz_objects[low - 1] < OBJECT_BYTES ? fuzz_objects[low - 1] : address;
}

/* An object from which pointers lead to this word: a pointer back to it makes a cycle. */
static uint64_t ancestor_of(uint64_t address) {
    uint64_t object = object_of(address);
    for (uint64_t left = fuzz_below(MAX_ANCESTORS); left > 0; left--) {
        size_t low = 0, high = n_pointers, end;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (pointers[middle].value < object) low = middle + 1;
            else high = middle;
        }
        for (end = low; end < n_pointers && pointers[end].value == object; end++) continue;
        if (end == low) break;
        object = object_of(pointers[low + fuzz_below(end - low)].address);
    }
    return object;
}

static uint64_t any_number(void) {
    static const uint64_t numbers[] = {0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 4095, 4096, 65535, 65536, 1u << 20, 1u << 24, 1u << 28,
                                       INT32_MAX, 1ull << 31, UINT32_MAX, 1ull << 32, 1ull << 47, INT64_MAX, 1ull << 63, UINT64_MAX - 7, UINT64_MAX};
    uint64_t number = numbers[fuzz_below(sizeof numbers / sizeof numbers[0])];
    return fuzz_one_in(3) ? number - 1 + fuzz_below(3) : number;
}

static uint64_t changed_pointer(uint64_t address, uint64_t value) {
    switch (fuzz_below(9)) {
    case 0: return any_object();
    case 1: return object_of(address);
    case 7:
    case 8: return ancestor_of(address);
    case 2: return value + 8;
    case 3: return value - 8;
    case 4: return (value | (PAGE_BYTES - 1)) - fuzz_below(24); /* the last bytes of its page */
    case 5: return object_of(any_word());
    default: return fuzz_one_in(2) ? 0 : fuzz_random() >> fuzz_below(48);
    }
}

static uint64_t changed(uint64_t address, uint64_t value) {
    if (value % 2 == 0 && is_known(value) && !fuzz_one_in(6)) return changed_pointer(address, value);
    switch (fuzz_below(5)) {
    case 0: return any_number();
    case 1: return value + 1 - fuzz_below(3);
    case 2: return any_object();
    case 3: return value ^ 1ull << fuzz_below(64);
    default: return object_of(address);
    }
}

static void change_one(uint64_t address) {
    uint64_t value = 0;
    uint8_t bytes[COPIED_BYTES];
    if (!read_word(address, &value)) return;
    switch (fuzz_below(11)) {
    case 0:
        bytes[0] = (uint8_t)(fuzz_one_in(2) ? fuzz_random() : any_number());
        change_bytes(address + fuzz_below(8), bytes, 1);
        break;
    case 1: {
        uint32_t half = (uint32_t)any_number();
        change_bytes(address + 4 * fuzz_below(2), &half, 4);
        break;
    }
    case 2: { /* one object becomes like another */
        uint64_t from = any_object();
        for (size_t i = 0; i < sizeof bytes; i += 8) {
            uint64_t word = 0;
            read_word(from + i, &word);
            memcpy(bytes + i, &word, 8);
        }
        change_bytes(object_of(address), bytes, 8 + 8 * fuzz_below(sizeof bytes / 8));
        break;
    }
    case 3:
        if (n_flickers == MAX_FLICKERS) break;
        flickers[n_flickers].address = address;
        flickers[n_flickers++].other = changed(address, value);
        break;
    case 4:
    case 5: /* two neighbours, such as the links of a list */
        value = changed(address, value);
        change_word(address, value);
        change_word(address + 8, value);
        break;
    default: change_word(address, changed(address, value)); break;
    }
}

/* A word near another: what belongs together is changed together. */
static uint64_t near(uint64_t address) {
    size_t low = word_from(address), span = fuzz_n_words < 32 ? fuzz_n_words : 32, first = low > span / 2 ? low - span / 2 : 0;
    if (first + span > fuzz_n_words) first = fuzz_n_words - span;
    return fuzz_words[first + fuzz_below(span)];
}

bool mutate_count(uint64_t address, size_t size) {
    (void)address;
    if (size > MAX_COPY_BYTES) {
        fprintf(stderr, "a copy of %zu bytes\n", size);
        abort();
    }
    if (++n_reads > max_reads) {
        fprintf(stderr, "more than %llu reads\n", (unsigned long long)max_reads);
        abort();
    }
    return true;
}

static bool before_copy(uint64_t address, size_t size) {
    mutate_count(address, size);
    if (++n_copies > vanishing_from && address / PAGE_BYTES <= vanishing_page && (address + size) / PAGE_BYTES >= vanishing_page) return false;
    for (size_t i = 0; i < n_flickers; i++) {
        uint64_t value;
        if (flickers[i].address + 8 <= address || flickers[i].address >= address + size) continue;
        if (!read_word(flickers[i].address, &value)) continue;
        change_word(flickers[i].address, flickers[i].other);
        flickers[i].other = value;
    }
    return true;
}

static uint8_t *seen_by_page[MAX_PAGES]; /* which bytes the clean run has read */

static bool note_read(uint64_t address, size_t size) {
    for (size_t i = 0; i < n_pages; i++) {
        uint64_t begin = pages[i]->number * PAGE_BYTES, from = address > begin ? address - begin : 0;
        if (address >= begin + PAGE_BYTES || address + size <= begin) continue;
        uint64_t end = address + size - begin < PAGE_BYTES ? address + size - begin : PAGE_BYTES;
        memset(seen_by_page[i] + from, 1, end - from);
    }
    return true;
}

void mutate_watch(void) {
    for (size_t i = 0; i < n_pages; i++) {
        free(seen_by_page[i]);
        seen_by_page[i] = calloc(1, PAGE_BYTES);
        CHECK(seen_by_page[i]);
    }
    memory_before_copy = note_read;
    memory_fill = NULL;
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static bool is_read(uint64_t address) {
    size_t at = word_from(address);
    return at < fuzz_n_words && fuzz_words[at] == address;
}

static void learn_kinds(void) {
    free(typed), free(kinds), free(pointers);
    typed = malloc((fuzz_n_objects + 1) * sizeof *typed);
    kinds = malloc((fuzz_n_objects + 1) * sizeof *kinds);
    pointers = malloc((fuzz_n_words + 1) * sizeof *pointers);
    CHECK(typed && kinds && pointers);
    n_typed = n_kinds = n_pointers = 0;
    for (size_t i = 0; i < fuzz_n_objects; i++) {
        struct typed entry = {.object = fuzz_objects[i]};
        if (is_read(entry.object + 8) && read_word(entry.object + 8, &entry.type)) typed[n_typed++] = entry;
    }
    qsort(typed, n_typed, sizeof *typed, compare);
    for (size_t i = 0; i < n_typed; i++)
        if (!i || typed[i].type != typed[i - 1].type) kinds[n_kinds++] = i;
    for (size_t i = 0; i < fuzz_n_words; i++) {
        struct pointer entry = {.address = fuzz_words[i]};
        if (read_word(entry.address, &entry.value)) pointers[n_pointers++] = entry;
    }
    qsort(pointers, n_pointers, sizeof *pointers, compare);
}

void mutate_learn(const uint64_t *objects, size_t n_objects) {
    size_t capacity = n_pages * (PAGE_BYTES / 8) + n_objects;
    free(fuzz_words), free(fuzz_objects);
    fuzz_words = malloc(capacity * sizeof *fuzz_words);
    fuzz_objects = malloc(capacity * sizeof *fuzz_objects);
    CHECK(fuzz_words && fuzz_objects);
    fuzz_n_words = fuzz_n_objects = 0;
    for (size_t i = 0; i < n_pages; i++)
        for (size_t offset = 0; offset < PAGE_BYTES; offset += 8) {
            uint64_t value;
            if (!memchr(seen_by_page[i] + offset, 1, 8) || !read_word(pages[i]->number * PAGE_BYTES + offset, &value)) continue;
            fuzz_words[fuzz_n_words++] = pages[i]->number * PAGE_BYTES + offset;
            if (value % 8 == 0 && is_known(value)) fuzz_objects[fuzz_n_objects++] = value;
        }
    for (size_t i = 0; i < n_objects; i++)
        if (is_read(objects[i] + 8)) fuzz_objects[fuzz_n_objects++] = objects[i];
    qsort(fuzz_objects, fuzz_n_objects, sizeof *fuzz_objects, compare);
    size_t kept = 0;
    for (size_t i = 0; i < fuzz_n_objects; i++)
        if (!kept || fuzz_objects[i] != fuzz_objects[kept - 1]) fuzz_objects[kept++] = fuzz_objects[i];
    fuzz_n_objects = kept;
    memory_before_copy = NULL;
    learn_kinds();
    CHECK(fuzz_n_words && n_kinds);
}

static uint64_t hash(uint64_t value) {
    value = (value ^ fill_seed) * 0x9e3779b97f4a7c15ull;
    return value ^ value >> 29;
}

static void fill(uint8_t *bytes, uint64_t address, size_t size) {
    for (size_t i = 0; i < size; i++) {
        uint64_t at = address + i, word = 0, random = hash(at / 8);
        if (fill_kind == FILL_ONES) word = UINT64_MAX;
        else if (fill_kind == FILL_SMALL) word = random % 5;
        else if (fill_kind == FILL_POINTERS) word = fuzz_objects[random % fuzz_n_objects];
        else if (fill_kind == FILL_OWN) word = object_of(at / 8 * 8);
        else if (fill_kind == FILL_KINDS) word = random % 4 ? fuzz_objects[random % fuzz_n_objects] : random >> random % 64;
        bytes[i] = (uint8_t)(word >> 8 * (at % 8));
    }
}

void mutate_allow(uint64_t reads) {
    n_reads = 0;
    max_reads = reads;
}

void mutate(void) {
    mutate_allow(UINT64_MAX); /* until the target says how many */
    n_copies = n_flickers = n_undone = 0;
    fill_seed = fuzz_random();
    fill_kind = fuzz_one_in(2) ? FILL_NOTHING : fuzz_one_in(3) ? FILL_OWN : (int)(1 + fuzz_below(FILL_KINDS));
    memory_fill = fill_kind == FILL_NOTHING ? NULL : fill;
    memory_before_copy = before_copy;
    vanishing_from = UINT64_MAX;
    if (fuzz_one_in(8)) {
        vanishing_page = any_word() / PAGE_BYTES;
        vanishing_from = fuzz_below(fuzz_one_in(2) ? 16 : 1000);
    }
    uint64_t address = any_word();
    for (uint64_t left = 1 + fuzz_below(fuzz_one_in(2) ? 2 : MAX_CHANGES); left > 0; left--) {
        change_one(address);
        address = fuzz_one_in(2) ? near(address) : any_word();
    }
}

void mutate_undo(void) {
    while (n_undone > 0) {
        const struct undo *undo = &undone[--n_undone];
        undo->page->bytes[undo->offset] = undo->byte;
    }
    memory_before_copy = NULL;
    memory_fill = NULL;
}
