#include "greenlets.h"

#include "cpython/layout.h"
#include "read_object.h"
#include "safe_copy.h"

#define MAX_GREENLET_BYTES 64  /* of the object: its state hangs on one of the first words */
#define MAX_STATE_BYTES 512    /* of the state */
#define MAX_OBJECT_BYTES 64    /* of a frame object, up to the frame */
#define MAX_STEPS 1024         /* frames of one greenlet, those that are not shown included */
#define MAX_PARENTS_KNOWN 64   /* threads that use greenlets; a further one takes the place of the oldest */

/* Written once, before known is. */
static struct greenlet_facts facts_in_use;
static bool known;

/* Written by the sampler and under the GIL; each entry is checked when it is used. */
static uint64_t parents[MAX_PARENTS_KNOWN];
static uint32_t n_parents;

static const struct greenlet_facts *facts_or_null(void) {
    return __atomic_load_n(&known, __ATOMIC_ACQUIRE) ? &facts_in_use : NULL;
}

bool greenlets_are_known(void) { return facts_or_null(); }

bool greenlets_belong_to(uint64_t code) {
    const struct greenlet_facts *facts = facts_or_null();
    return facts && code == facts->spawn_code;
}

void greenlets_use(const struct greenlet_facts *facts) {
    if (greenlets_are_known()) return;
    facts_in_use = *facts;
    __atomic_store_n(&known, true, __ATOMIC_RELEASE);
}

/* A reference in a frame. */
static bool read_reference(uint64_t address, uint64_t *object) {
    if (!safe_copy_word(object, address)) return false;
    *object &= ~(uint64_t)layout.reference_tags;
    return true;
}

static bool find_word(uint64_t from, uint32_t begin, uint32_t end, uint64_t wanted, uint32_t *offset) {
    for (*offset = begin; *offset < end; *offset += 8) {
        uint64_t word;
        if (!safe_copy_word(&word, from + *offset)) return false;
        if (word == wanted) return true;
    }
    return false;
}

/* The frame that a frame object stands for, told by its code. */
static bool find_object_frame(uint64_t object, uint64_t code, uint32_t *offset) {
    for (*offset = 2 * OBJECT_TYPE; *offset < MAX_OBJECT_BYTES; *offset += 8) {
        uint64_t frame, word;
        if (!safe_copy_word(&frame, object + *offset)) return false;
        if (frame && frame % 8 == 0 && read_reference(frame + layout.frame_code, &word) && word == code) return true;
    }
    return false;
}

bool greenlets_find(uint64_t greenlet, uint64_t frame_object, uint64_t code, uint64_t parent, struct greenlet_facts *facts) {
    if (!find_object_frame(frame_object, code, &facts->object_frame)) return false;
    for (facts->state = 2 * OBJECT_TYPE; facts->state < MAX_GREENLET_BYTES; facts->state += 8) {
        uint64_t state;
        if (!safe_copy_word(&state, greenlet + facts->state)) return false;
        if (!state || state % 8 || !find_word(state, 0, MAX_STATE_BYTES, frame_object, &facts->top)) continue;
        return find_word(state, 0, MAX_STATE_BYTES, parent, &facts->parent);
    }
    return false;
}

static bool is_greenlet(uint64_t object, const struct greenlet_facts *facts) {
    uint64_t type;
    return object && safe_copy_word(&type, object + OBJECT_TYPE) && read_is_subtype(type, facts->type);
}

/* The frame object of a greenlet that is switched away from; 0 for one that runs, is done or has not begun. */
static bool read_top(uint64_t greenlet, const struct greenlet_facts *facts, uint64_t *top) {
    uint64_t state;
    return safe_copy_word(&state, greenlet + facts->state) && safe_copy_word(top, state + facts->top);
}

static bool read_frame(uint64_t frame, struct raw_frame *raw, bool *is_shown, uint64_t *previous) {
    uint32_t half, place = layout.frame_owner % sizeof half;
    if (frame % 8 || !safe_copy_half(&half, frame + layout.frame_owner - place) || !read_reference(frame + layout.frame_code, &raw->code) ||
        !safe_copy_word(&raw->instruction, frame + layout.frame_instruction) || !safe_copy_word(previous, frame + layout.frame_previous))
        return false;
    uint8_t owner = (uint8_t)(half >> 8 * place);
    raw->generator = owner == layout.owner_generator ? frame - layout.generator_frame : 0;
    *is_shown = owner < layout.owner_skip_from;
    return true;
}

/* count: also of those that do not fit. */
static bool walk(uint64_t frame, struct raw_frame *frames, size_t capacity, size_t *count) {
    *count = 0;
    for (unsigned steps = 0; frame; steps++) {
        struct raw_frame raw;
        bool is_shown;
        if (steps == MAX_STEPS || !read_frame(frame, &raw, &is_shown, &frame)) return false;
        if (!is_shown) continue;
        if (*count < capacity) frames[*count] = raw;
        ++*count;
    }
    return true;
}

/* The greenlet has not moved when its uppermost frame object is the same afterwards: one that goes on gives it up. */
bool greenlets_read(uint64_t greenlet, const struct greenlet_facts *facts, struct raw_frame *frames, size_t capacity, size_t *count) {
    uint64_t top, after, frame;
    *count = 0;
    if (!is_greenlet(greenlet, facts) || !read_top(greenlet, facts, &top)) return false;
    if (!top) return true;
    return safe_copy_word(&frame, top + facts->object_frame) && walk(frame, frames, capacity, count) &&
           read_top(greenlet, facts, &after) && after == top;
}

void greenlets_note(uint64_t parent) {
    uint32_t count = __atomic_load_n(&n_parents, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count && i < MAX_PARENTS_KNOWN; i++)
        if (__atomic_load_n(&parents[i], __ATOMIC_RELAXED) == parent) return;
    count = __atomic_fetch_add(&n_parents, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&parents[count % MAX_PARENTS_KNOWN], parent, __ATOMIC_RELAXED);
}

void greenlets_note_parent(uint64_t greenlet) {
    const struct greenlet_facts *facts = facts_or_null();
    uint64_t state, parent;
    if (facts && is_greenlet(greenlet, facts) && safe_copy_word(&state, greenlet + facts->state) &&
        safe_copy_word(&parent, state + facts->parent) && is_greenlet(parent, facts))
        greenlets_note(parent);
}

static void reverse(struct raw_frame *frames, size_t count) {
    for (size_t low = 0, high = count; low + 1 < high; low++) {
        struct raw_frame swapped = frames[low];
        frames[low] = frames[--high];
        frames[high] = swapped;
    }
}

bool greenlets_read_spawned(uint64_t frame, struct raw_frame *frames, size_t capacity, size_t *count) {
    const struct greenlet_facts *facts = facts_or_null();
    uint64_t greenlet;
    *count = 0;
    if (!facts || !read_reference(frame + layout.frame_localsplus + 8 * (uint64_t)facts->spawn_local, &greenlet)) return false;
    if (!greenlet) return true;
    if (!greenlets_read(greenlet, facts, frames, capacity, count)) return false;
    greenlets_note_parent(greenlet);
    if (*count <= capacity) reverse(frames, *count);
    return true;
}

static bool has_coroutine(const struct raw_frame *frames, size_t count, uint64_t coroutine) {
    for (size_t i = 0; i < count; i++)
        if (frames[i].generator == coroutine) return true;
    return false;
}

/* The frames of the greenlet that was switched away from and has the coroutine. */
static bool append_parent(const struct greenlet_facts *facts, uint64_t coroutine, struct raw_frame *frames, size_t capacity, size_t *count) {
    uint32_t n = __atomic_load_n(&n_parents, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n && i < MAX_PARENTS_KNOWN; i++) {
        size_t more;
        struct raw_frame *rest = frames + *count;
        if (!greenlets_read(__atomic_load_n(&parents[i], __ATOMIC_RELAXED), facts, rest, capacity - *count, &more)) continue;
        if (more > capacity - *count || !has_coroutine(rest, more, coroutine)) continue;
        *count += more;
        return true;
    }
    return false;
}

/* A greenlet_spawn() that has called something, from place on towards the leaf: what it awaits for its greenlet, which waits
   meanwhile. (When it has called the greenlet itself, that one runs and has no frames put by.) */
static void insert_spawned(const struct greenlet_facts *facts, struct raw_frame *frames, size_t capacity, size_t *count) {
    for (size_t place = *count; place-- > 1;) {
        size_t more, room = capacity - *count;
        if (frames[place].code != facts->spawn_code || !frames[place].generator) continue;
        if (!greenlets_read_spawned(frames[place].generator + layout.generator_frame, frames + *count, room, &more) || more > room) continue;
        reverse(frames + place, *count - place); /* root first, as those to be inserted are */
        *count += more;
        reverse(frames + place, *count - place);
    }
}

bool greenlets_complete(uint64_t coroutine, struct raw_frame *frames, size_t capacity, size_t *count) {
    const struct greenlet_facts *facts = facts_or_null();
    if (!has_coroutine(frames, *count, coroutine) && !(facts && append_parent(facts, coroutine, frames, capacity, count))) return false;
    if (facts) insert_spawned(facts, frames, capacity, count);
    return true;
}
