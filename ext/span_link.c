#include "span_link.h"

#include <pthread.h>
#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "plain_span.h"
#include "read_object.h"
#include "safe_copy.h"

#define MAX_LEVELS 8      /* 32 hash bits, 5 a level, and one for collisions */
#define MAX_COLLISIONS 16
#define LEVEL_BITS 5
#define CHANGE_PLACES 64
#define STACK_PAGE_BITS 12 /* a thread's ident lies on its stack, at the same place of a page as that of most others */

static uint64_t bitmap_node_type, array_node_type;

#ifdef __SANITIZE_THREAD__ /* which knows no fences, and sees the atomic accesses beside them */
#define FENCE()
#else
#define FENCE() __atomic_thread_fence(__ATOMIC_ACQ_REL)
#endif

/* Written under the GIL, read by the sampler. Other threads with the same place only cost another look. */
static uint64_t n_changes[CHANGE_PLACES];

static uint64_t *changes_of(uint64_t thread_ident) { return &n_changes[(thread_ident >> STACK_PAGE_BITS) % CHANGE_PLACES]; }

uint64_t span_link_changes(uint64_t thread_ident) {
    FENCE(); /* after what was read so far */
    return __atomic_load_n(changes_of(thread_ident), __ATOMIC_ACQUIRE);
}

void span_link_note_change(void) {
    uint64_t *changes = changes_of((uint64_t)pthread_self());
    __atomic_store_n(changes, __atomic_load_n(changes, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    FENCE(); /* before the change */
}

static bool node_type_of(uint64_t context, uint64_t *type) {
    uint64_t vars, root;
    return context && safe_copy_word(&vars, context + layout.context_vars) && safe_copy_word(&root, vars + layout.hamt_root) &&
           safe_copy_word(type, root + OBJECT_TYPE);
}

bool span_link_learn_nodes(void) {
    return node_type_of(anchors.context_bitmap, &bitmap_node_type) && node_type_of(anchors.context_array, &array_node_type) &&
           bitmap_node_type != array_node_type;
}

/* As CPython folds a hash for its tries: -1 is not a hash. */
static uint32_t fold(uint64_t hash) {
    uint32_t folded = (uint32_t)hash ^ (uint32_t)(hash >> 32);
    return folded == UINT32_MAX ? UINT32_MAX - 1 : folded;
}

/* Inline: without a flag for a processor that has an instruction for it, compilers call a function. */
static uint32_t count_bits(uint32_t bits) {
    bits -= bits >> 1 & 0x55555555u;
    bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
    return ((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

static bool find_in_collision(uint64_t node, uint64_t key, uint64_t *value) {
    uint64_t size, pair[2];
    if (!safe_copy_word(&size, node + layout.hamt_collision_size)) return drop_count(DROP_unreadable_memory), false;
    if (size > 2 * MAX_COLLISIONS) return false;
    for (uint64_t i = 0; i + 1 < size; i += 2) {
        if (!safe_copy(pair, node + layout.hamt_collision_items + 8 * i, sizeof pair)) return drop_count(DROP_unreadable_memory), false;
        if (pair[0] == key) return *value = pair[1], true;
    }
    return false;
}

/* Nodes are never changed once made: what can go wrong is that they are freed meanwhile. */
static bool find_variable(uint64_t node, uint32_t hash, uint64_t key, uint64_t *value) {
    for (unsigned level = 0; level < MAX_LEVELS && node; level++, hash >>= LEVEL_BITS) {
        uint64_t type, at, found;
        uint32_t bit = hash & ((1u << LEVEL_BITS) - 1), bitmap;
        if (!safe_copy_word(&type, node + OBJECT_TYPE)) return drop_count(DROP_unreadable_memory), false;
        if (type == array_node_type) {
            if (!safe_copy_word(&node, node + layout.hamt_array_items + 8ull * bit)) return drop_count(DROP_unreadable_memory), false;
            continue;
        }
        if (type != bitmap_node_type) return find_in_collision(node, key, value);
        if (!safe_copy_half(&bitmap, node + layout.hamt_bitmap)) return drop_count(DROP_unreadable_memory), false;
        if (!(bitmap >> bit & 1)) return false;
        at = node + layout.hamt_bitmap_items + 16ull * count_bits(bitmap & ((1u << bit) - 1));
        if (!safe_copy_word(&found, at) || !safe_copy_word(&node, at + 8)) return drop_count(DROP_unreadable_memory), false;
        if (found) return *value = node, found == key;
        /* no key: the value is the node below */
    }
    return false;
}

bool span_link_read(uint64_t context, struct span_view *view) {
    uint64_t vars, root, hash, value, type;
    if (!context || !anchors.context_var || !anchors.type_span_view) return false;
    if (!safe_copy_word(&vars, context + layout.context_vars) || !safe_copy_word(&root, vars + layout.hamt_root) ||
        !safe_copy_word(&hash, anchors.context_var + layout.contextvar_hash))
        return drop_count(DROP_unreadable_memory), false;
    if (!find_variable(root, fold(hash), anchors.context_var, &value)) return false;
    if (!safe_copy_word(&type, value + OBJECT_TYPE)) return drop_count(DROP_unreadable_memory), false;
    if (type != anchors.type_span_view) return plain_span_read(value, view);
    if (!safe_copy(view, value + anchors.span_view_offset, sizeof *view)) return drop_count(DROP_unreadable_memory), false;
    if (view->magic != SPAN_VIEW_MAGIC || view->checksum != span_view_checksum(view))
        return drop_count(DROP_unreadable_object), false;
    return true;
}

/* An object of which the first three cache lines are read. */
static void touch_lines(uint64_t address) {
    safe_copy_touch(address + OBJECT_TYPE);
    safe_copy_prefetch(address + CACHE_LINE);
    safe_copy_prefetch(address + 2ull * CACHE_LINE);
}

static uint64_t word_or_0(uint64_t address) {
    uint64_t word;
    return safe_copy_word(&word, address) ? word : 0;
}

/* What cannot be read gives 0, which no later step reads. */
void span_link_prefetch(unsigned step, uint64_t *cursors, unsigned count) {
    uint64_t hash, view, cell = anchors.span_view_offset + offsetof(struct span_view, cell);
    switch (step) {
    case 0: /* the context */
        for (unsigned i = 0; i < count; i++) safe_copy_touch(cursors[i] + layout.context_vars);
        break;
    case 1: /* -> its variables */
        for (unsigned i = 0; i < count; i++)
            if (cursors[i] && (cursors[i] = word_or_0(cursors[i] + layout.context_vars))) safe_copy_touch(cursors[i] + layout.hamt_root);
        break;
    case 2: /* -> the root of their trie */
        for (unsigned i = 0; i < count; i++)
            if (cursors[i] && (cursors[i] = word_or_0(cursors[i] + layout.hamt_root))) touch_lines(cursors[i]);
        break;
    case 3: /* -> the view */
        hash = word_or_0(anchors.context_var + layout.contextvar_hash);
        for (unsigned i = 0; i < count; i++) {
            bool found = cursors[i] && find_variable(cursors[i], fold(hash), anchors.context_var, &view);
            cursors[i] = found ? view : 0;
            if (found) touch_lines(view);
        }
        break;
    case 4: /* -> the span's cell */
        for (unsigned i = 0; i < count && anchors.span_view_offset; i++)
            if (cursors[i] && (cursors[i] = word_or_0(cursors[i] + cell))) safe_copy_touch(cursors[i]);
        break;
    default: break;
    }
}

static bool read_cell(uint64_t address, struct span_cell *cell) {
    if (!address) return false;
    if (!safe_copy(cell, address, sizeof *cell)) return drop_count(DROP_unreadable_memory), false;
    return cell->magic == SPAN_CELL_MAGIC;
}

bool span_link_root_name(const struct span_view *view, char *text, size_t *size) {
    struct span_cell cell;
    return read_cell(view->root_cell, &cell) && cell.name && read_string(cell.name, text, size);
}

bool span_link_ended(uint64_t address) {
    uint64_t magic, ended;
    if (!address) return false;
    if (!safe_copy_word(&ended, address + offsetof(struct span_cell, ended)) ||
        !safe_copy_word(&magic, address + offsetof(struct span_cell, magic)))
        return drop_count(DROP_unreadable_memory), true;
    return magic != SPAN_CELL_MAGIC || ended;
}
