#include "code_table.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "cpython/layout.h"
#include "drop.h"
#include "line_table.h"
#include "read_object.h"
#include "safe_copy.h"

#define CODE_SLOTS 16384      /* power of two; code objects in one interval before names are read again at each sight */
#define LOCATION_SLOTS 4096   /* power of two; a cache: a collision only costs a decoding */
#define CHAIN_SLOTS 1024      /* power of two; the same, of whole await chains */
#define MAX_PROBES 16
#define MAX_LINE_TABLE_BYTES (1u << 20)
#define MAX_CODE_UNITS (1u << 26)
#define ARENA_BYTES (16u << 20) /* of line tables; when they are full, all codes are read anew */
#define INSTRUCTION_BYTES 2

/* What must be unchanged for an address to hold the same code object: CPython frees and reuses them. version never repeats
   (3.12+); before, the hash of the name stands in, since an exec'd function of the same shape gets the very same addresses. */
struct code_identity {
    uint64_t address, filename, qualname, line_table, size, version_or_hash;
    uint32_t first_line, first_traceable;
};

struct code_entry {
    struct code_identity identity;
    const uint8_t *line_table;
    size_t line_table_size;
    uint32_t function, flags;
    uint32_t generation; /* of this content of the entry; 0 = empty */
};

/* All that is needed of a frame seen before, in one cache line. */
struct cached_location {
    uint64_t address, instruction; /* of the code object; the instruction's own */
    const struct code_entry *code;
    uint32_t generation;           /* of the code entry */
    uint32_t version;              /* of the code; 0 = none, all its identity must be compared */
    uint32_t location, flags;
    uint64_t begin;                /* address of the first instruction that Python shows */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct cached_location) == 64, "a cache line");

/* An await chain seen before, all of whose code objects have versions. */
struct known_chain {
    uint32_t n_frames; /* 0 = empty */
    uint32_t sequence, count, as_awaiter;
    struct { uint64_t code, instruction; } frames[MAX_KNOWN_CHAIN];
    uint32_t versions[MAX_KNOWN_CHAIN], locations[MAX_KNOWN_CHAIN];
};

struct code_table {
    struct arena arena;
    char asyncio_directory[MAX_STRING_BYTES];
    size_t asyncio_directory_size;
    uint32_t generation, n_sequences;
    struct code_entry codes[CODE_SLOTS];
    struct cached_location locations[LOCATION_SLOTS];
    struct known_chain chains[CHAIN_SLOTS];
};

struct code_table *code_table_new(const char *asyncio_directory) {
    struct code_table *table = aligned_alloc(_Alignof(struct code_table), sizeof *table);
    if (!table) return NULL;
    memset(table, 0, sizeof *table);
    arena_init(&table->arena, ARENA_BYTES);
    table->asyncio_directory_size = strlen(asyncio_directory);
    if (table->asyncio_directory_size >= sizeof table->asyncio_directory) table->asyncio_directory_size = 0;
    memcpy(table->asyncio_directory, asyncio_directory, table->asyncio_directory_size);
    return table;
}

void code_table_destroy(struct code_table *table) {
    if (!table) return;
    arena_destroy(&table->arena);
    free(table);
}

void code_table_reset(struct code_table *table) {
    arena_reset(&table->arena);
    memset(table->codes, 0, sizeof table->codes);
    memset(table->locations, 0, sizeof table->locations);
    memset(table->chains, 0, sizeof table->chains);
}

static uint64_t mix(uint64_t value) {
    value *= 0x9e3779b97f4a7c15ull;
    return value ^ value >> 29;
}

uint32_t code_table_synthetic(struct stack_table *stacks, const char *name) {
    struct function function = {.name = stack_table_string(stacks, name, strlen(name))};
    return stack_table_location(stacks, (struct location){.function = stack_table_function(stacks, function)});
}

static bool ends_with(const char *text, size_t size, const char *end) {
    size_t end_size = strlen(end);
    return size >= end_size && memcmp(text + size - end_size, end, end_size) == 0;
}

static bool is_name(const char *text, size_t size, const char *name) { return size == strlen(name) && memcmp(text, name, size) == 0; }

static uint32_t classify(const struct code_table *table, const char *file, size_t file_size, const char *name, size_t name_size) {
    static const char *const machinery[] = {"/runners.py", "/base_events.py", "/selector_events.py", "/unix_events.py"};
    size_t directory = table->asyncio_directory_size;
    if (directory && file_size > directory && memcmp(file, table->asyncio_directory, directory) == 0) {
        const char *rest = file + directory;
        size_t rest_size = file_size - directory;
        for (size_t i = 0; i < sizeof machinery / sizeof machinery[0]; i++)
            if (is_name(rest, rest_size, machinery[i])) return FRAME_MACHINERY | (i > 0 ? FRAME_STOCK_LOOP : 0);
        return is_name(rest, rest_size, "/events.py") && is_name(name, name_size, "Handle._run") ? FRAME_MACHINERY | FRAME_CALLBACK : 0;
    }
    if (ends_with(file, file_size, "/uvloop/__init__.py")) return FRAME_MACHINERY | FRAME_LOOP_WRAPPER;
    /* memmem: file is no C string, it may hold a NUL */
    if (memmem(file, file_size, "/opentelemetry/instrumentation/", 31)) return FRAME_INSTRUMENTATION;
    return 0;
}

static bool read_identity(const struct raw_frame *raw, struct code_identity *identity, int64_t *instruction) {
    uint8_t head[MAX_CODE_HEAD_BYTES];
    uint64_t type;
    if (!safe_copy(head, raw->code, layout.code_instructions)) return drop_count(DROP_unreadable_memory), false;
    memcpy(&type, head + OBJECT_TYPE, 8);
    memset(identity, 0, sizeof *identity);
    identity->address = raw->code;
    memcpy(&identity->size, head + layout.code_size, 8);
    memcpy(&identity->filename, head + layout.code_filename, 8);
    memcpy(&identity->qualname, head + layout.code_qualname, 8);
    memcpy(&identity->line_table, head + layout.code_linetable, 8);
    memcpy(&identity->first_line, head + layout.code_first_line, 4);
    memcpy(&identity->first_traceable, head + layout.code_first_traceable, 4);
    *instruction = (int64_t)(raw->instruction - raw->code - layout.code_instructions);
    if (type != anchors.type_code || identity->size > MAX_CODE_UNITS || *instruction < -INSTRUCTION_BYTES ||
        *instruction >= (int64_t)identity->size * INSTRUCTION_BYTES || *instruction % INSTRUCTION_BYTES)
        return drop_count(DROP_unreadable_object), false;
    uint32_t version = 0;
    if (layout.code_version != LAYOUT_ABSENT) memcpy(&version, head + layout.code_version, 4);
    identity->version_or_hash = version;
    if (!version && !safe_copy_word(&identity->version_or_hash, identity->qualname + layout.str_hash))
        return drop_count(DROP_unreadable_memory), false;
    return true;
}

/* Room for a line table. What is forgotten when there is none is a cache: locations in the stack table stay as they are. */
static uint8_t *reserve_lines(struct code_table *table, uint64_t size) {
    if (size > MAX_LINE_TABLE_BYTES) return NULL;
    uint8_t *lines = arena_alloc(&table->arena, size);
    if (lines || !table->arena.first) return lines;
    arena_destroy(&table->arena); /* its blocks may all be smaller than what is asked for */
    code_table_reset(table);
    return arena_alloc(&table->arena, size);
}

static bool fill(struct code_table *table, struct stack_table *stacks, const struct code_identity *identity, struct code_entry *entry) {
    char name[MAX_STRING_BYTES], file[MAX_STRING_BYTES];
    size_t name_size, file_size;
    uint64_t size;
    if (!read_string(identity->qualname, name, &name_size) || !read_string(identity->filename, file, &file_size)) return false;
    memset(entry, 0, sizeof *entry);
    if (!safe_copy_word(&size, identity->line_table + layout.var_size)) return drop_count(DROP_unreadable_memory), false;
    uint8_t *lines = reserve_lines(table, size);
    if (lines && !safe_copy(lines, identity->line_table + layout.bytes_data, size))
        return drop_count(DROP_unreadable_memory), false;
    entry->line_table = lines; /* when memory is short the frame keeps its name and has line 0 */
    entry->line_table_size = lines ? size : 0;
    entry->flags = classify(table, file, file_size, name, name_size);
    struct function function = {
        .name = stack_table_string(stacks, name, name_size),
        .filename = stack_table_string(stacks, file, file_size),
        .first_line = identity->first_line,
    };
    /* Without room for its name the frame becomes the zero value, and its stack <overflow>. A name may be empty, too. */
    entry->function = function.name || !name_size ? stack_table_function(stacks, function) : 0;
    entry->identity = *identity;
    entry->generation = ++table->generation;
    return true;
}

static struct code_entry *find(struct code_table *table, struct stack_table *stacks, const struct code_identity *identity) {
    uint64_t start = mix(identity->address) & (CODE_SLOTS - 1);
    for (unsigned probe = 0; probe < MAX_PROBES; probe++) {
        struct code_entry *entry = &table->codes[(start + probe) & (CODE_SLOTS - 1)];
        if (entry->identity.address == identity->address) {
            if (memcmp(&entry->identity, identity, sizeof *identity) == 0) return entry;
        } else if (entry->identity.address) {
            continue;
        }
        return fill(table, stacks, identity, entry) ? entry : NULL;
    }
    struct code_entry *first = &table->codes[start]; /* crowded: the newcomer takes the first place */
    return fill(table, stacks, identity, first) ? first : NULL;
}

static struct cached_location *location_slot(struct code_table *table, const struct raw_frame *raw) {
    return &table->locations[mix(raw->code + raw->instruction * 31) & (LOCATION_SLOTS - 1)];
}

/* The address of the first instruction with which Python shows the frame. */
static uint64_t first_shown(const struct code_identity *identity) {
    return identity->address + layout.code_instructions + (uint64_t)identity->first_traceable * INSTRUCTION_BYTES;
}

static uint32_t locate(struct code_table *table, struct stack_table *stacks, const struct code_entry *code, const struct raw_frame *raw) {
    int instruction = (int)(raw->instruction - raw->code - layout.code_instructions);
    int line = line_table_find(code->line_table, code->line_table_size, (int)code->identity.first_line, instruction);
    bool has_version = layout.code_version != LAYOUT_ABSENT && code->identity.version_or_hash <= UINT32_MAX;
    struct cached_location cached = {
        .address = raw->code,
        .instruction = raw->instruction,
        .code = code,
        .generation = code->generation,
        .version = has_version ? (uint32_t)code->identity.version_or_hash : 0,
        .location = stack_table_location(stacks, (struct location){.function = code->function, .line = line > 0 ? (uint32_t)line : 0}),
        .flags = code->flags,
        .begin = first_shown(&code->identity),
    };
    *location_slot(table, raw) = cached;
    return cached.location;
}

/* Whether the address still holds this code: one word tells where a version never repeats, else all of them are compared. */
static bool is_current(const struct cached_location *cached, const struct raw_frame *raw) {
    struct code_identity identity;
    int64_t instruction;
    uint32_t version;
    if (cached->address != raw->code || cached->instruction != raw->instruction || !cached->code) return false;
    if (cached->version)
        return safe_copy_half(&version, raw->code + layout.code_version) && version == cached->version;
    return cached->generation == cached->code->generation && read_identity(raw, &identity, &instruction) &&
           memcmp(&identity, &cached->code->identity, sizeof identity) == 0;
}

bool code_table_resolve(struct code_table *table, struct stack_table *stacks, const struct raw_frame *raw, struct resolved_frame *frame) {
    const struct cached_location *cached = location_slot(table, raw);
    struct code_identity identity;
    int64_t instruction;
    *frame = (struct resolved_frame){.flags = FRAME_SYNTHETIC, .generator = raw->generator};
    if (is_current(cached, raw)) {
        frame->location = cached->location;
        frame->flags = cached->flags;
        return raw->generator || raw->instruction >= cached->begin;
    }
    if (raw->code == anchors.none) return false; /* 3.13: an entry frame's executable is None */
    if (raw->code <= RAW_FRAME_TRUNCATED || !read_identity(raw, &identity, &instruction)) {
        frame->location = code_table_synthetic(stacks, raw->code == RAW_FRAME_TRUNCATED ? "<truncated>" : "<unreadable>");
        frame->flags = raw->code == RAW_FRAME_TRUNCATED ? 0 : FRAME_SYNTHETIC | FRAME_GARBAGE;
        return true;
    }
    /* Python hides a frame whose function has not begun: its locals are not set up yet. A generator's frame is always shown. */
    if (!raw->generator && raw->instruction < first_shown(&identity)) return false;
    const struct code_entry *code = find(table, stacks, &identity);
    frame->location = code ? locate(table, stacks, code, raw) : code_table_synthetic(stacks, "<unreadable>");
    frame->flags = code ? code->flags : FRAME_SYNTHETIC;
    return true;
}

static struct known_chain *chain_slot(struct code_table *table, const struct raw_frame *frames, size_t count) {
    uint64_t sum = count;
    for (size_t i = 0; i < count; i++) sum = (sum << 7 | sum >> 57) + frames[i].instruction;
    return &table->chains[mix(sum) & (CHAIN_SLOTS - 1)];
}

/* Every word is compared, and each code object's version read again: an address may hold another one by now. */
static bool is_known(const struct known_chain *known, const struct raw_frame *frames, size_t count) {
    if (known->n_frames != count) return false;
    for (size_t i = 0; i < count; i++) {
        uint32_t version;
        if (known->frames[i].code != frames[i].code || known->frames[i].instruction != frames[i].instruction ||
            !safe_copy_half(&version, frames[i].code + layout.code_version) || version != known->versions[i])
            return false;
    }
    return true;
}

static bool resolve_frames(struct code_table *table, struct stack_table *stacks, const struct raw_frame *frames, size_t count,
                           struct chain_locations *chain) {
    chain->sequence = chain->count = chain->as_awaiter = 0;
    for (size_t i = 0; i < count; i++) {
        struct resolved_frame frame;
        if (!code_table_resolve(table, stacks, &frames[i], &frame) || frame.flags & FRAME_LOOP_WRAPPER) continue;
        if (frame.flags & FRAME_GARBAGE) return false;
        bool between = frame.flags & FRAME_INSTRUMENTATION;
        if (between && i + 1 < count) continue;
        chain->locations[chain->count++] = frame.location;
        if (!between) chain->as_awaiter = chain->count;
    }
    return true;
}

/* Keeps what was just resolved, if each frame of it can be told again by its version. */
static void know(struct code_table *table, const struct raw_frame *frames, size_t count, struct chain_locations *chain,
                 struct known_chain *known) {
    known->n_frames = 0;
    for (size_t i = 0; i < count; i++) {
        const struct cached_location *cached = location_slot(table, &frames[i]);
        if (cached->address != frames[i].code || cached->instruction != frames[i].instruction || !cached->version) return;
        known->frames[i].code = frames[i].code;
        known->frames[i].instruction = frames[i].instruction;
        known->versions[i] = cached->version;
    }
    known->n_frames = (uint32_t)count;
    if (!++table->n_sequences) table->n_sequences = 1; /* goes on when the tables are swapped: a name must not come to mean something else */
    known->sequence = chain->sequence = table->n_sequences;
    known->count = chain->count;
    known->as_awaiter = chain->as_awaiter;
    memcpy(known->locations, chain->locations, chain->count * sizeof chain->locations[0]);
}

bool code_table_resolve_chain(struct code_table *table, struct stack_table *stacks, const struct raw_frame *frames, size_t count,
                              struct chain_locations *chain) {
    if (count > MAX_KNOWN_CHAIN) return resolve_frames(table, stacks, frames, count, chain);
    struct known_chain *known = chain_slot(table, frames, count);
    if (count && is_known(known, frames, count)) {
        chain->sequence = known->sequence;
        chain->count = known->count;
        chain->as_awaiter = known->as_awaiter;
        memcpy(chain->locations, known->locations, known->count * sizeof known->locations[0]);
        return true;
    }
    if (!resolve_frames(table, stacks, frames, count, chain)) return false;
    know(table, frames, count, chain, known);
    return true;
}
