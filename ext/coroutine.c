#include "coroutine.h"

#include "cpython/layout.h"
#include "drop.h"
#include "greenlets.h"
#include "read_object.h"
#include "safe_copy.h"

#define MAX_WRAPPERS 4       /* awaitables around one generator-like object */
#define MAX_STACK_SLOTS (1u << 20)
#define AWAIT_ARGUMENT 2

static bool is_generator_type(uint64_t type) {
    return type == anchors.type_coroutine || type == anchors.type_generator || type == anchors.type_async_generator;
}

static bool is_wrapper_type(uint64_t type) {
    return type == anchors.type_asend || type == anchors.type_athrow || type == anchors.type_coroutine_wrapper ||
           type == anchors.type_anext;
}

/* The state is a byte, read with its neighbours; objects lie at multiples of 8. */
static inline bool read_state(uint64_t generator, int32_t *state) {
    uint32_t half, place = layout.generator_state % sizeof half;
    if (!safe_copy_half(&half, generator + layout.generator_state - place)) return false;
    *state = (int8_t)(half >> 8 * place);
    return true;
}

bool coroutine_is_executing(uint64_t coroutine) {
    uint64_t type;
    int32_t state;
    return coroutine && safe_copy_word(&type, coroutine + OBJECT_TYPE) && is_generator_type(type) && read_state(coroutine, &state) &&
           state == layout.state_executing;
}

static bool is_suspended(int32_t state) { return state >= layout.state_suspended_from && state <= layout.state_suspended_to; }

/* A suspended coroutine always awaits. A generator or async generator may as well have yielded: from 3.13 on the state tells,
   before that the next instruction does. */
static bool read_awaiting(uint64_t type, int32_t state, uint64_t instruction, bool *awaiting) {
    uint8_t next[2];
    *awaiting = type == anchors.type_coroutine || (layout.state_awaiting && state >= layout.state_awaiting);
    if (*awaiting || layout.state_awaiting) return true;
    if (!safe_copy(next, instruction + 2, sizeof next)) return false;
    *awaiting = (next[0] == layout.resume_opcodes[0] || next[0] == layout.resume_opcodes[1]) && next[1] >= AWAIT_ARGUMENT;
    return true;
}

/* How many bytes of localsplus a suspended frame uses, the value stack included; 0: not as many as it awaits with. */
static bool read_stack_top(uint64_t frame, uint64_t *top) {
    uint32_t entries;
    if (layout.frame_stackpointer != LAYOUT_ABSENT) {
        if (!safe_copy_word(top, frame + layout.frame_stackpointer)) return false;
        *top = *top > frame + layout.frame_localsplus ? *top - frame - layout.frame_localsplus : 0;
    } else {
        if (!safe_copy_half(&entries, frame + layout.frame_stacktop)) return false;
        *top = (int32_t)entries > 0 ? 8ull * entries : 0;
    }
    if (*top < 8 * layout.awaited_depth) *top = 0;
    return true;
}

static bool fail(struct await_chain *chain, enum drop_reason reason, uint64_t code) {
    drop_count(reason);
    if (chain->count == chain->capacity) chain->count--;
    chain->frames[chain->count++] = (struct raw_frame){.code = code};
    chain->state = CHAIN_UNREADABLE;
    return false;
}

static bool end(struct await_chain *chain, enum chain_state state) {
    chain->state = state;
    return false;
}

void coroutine_begin(struct await_chain *chain, uint64_t coroutine) {
    chain->count = 0;
    chain->wrappers = 0;
    chain->state = CHAIN_SUSPENDED;
    chain->next = coroutine;
}

static bool go_on(struct await_chain *chain, uint64_t next) {
    chain->next = next;
    return next;
}

static bool fail_to_read(struct await_chain *chain) { return fail(chain, DROP_unreadable_memory, RAW_FRAME_UNREADABLE); }

/* A future or anything else, of which no frames can be read, or one of the objects that lead to what they wrap. */
static bool pass_wrapper(struct await_chain *chain, uint64_t type) {
    uint64_t next;
    if (!chain->count || !is_wrapper_type(type) || chain->wrappers++ == MAX_WRAPPERS) return end(chain, CHAIN_SUSPENDED);
    if (!safe_copy_word(&next, chain->next + layout.wrapper_inner)) return fail_to_read(chain);
    return go_on(chain, next);
}

static bool is_full(struct await_chain *chain) {
    if (chain->capacity < MAX_AWAIT_CHAIN) return end(chain, CHAIN_LONG);
    return fail(chain, DROP_too_deep, RAW_FRAME_TRUNCATED);
}

/* A frame that is not suspended: running, done, or not begun. */
static bool end_at(struct await_chain *chain, int32_t state) {
    if (state == layout.state_executing) return end(chain, CHAIN_EXECUTING);
    if (state != layout.state_created) return end(chain, chain->count ? CHAIN_UNREADABLE : CHAIN_FINISHED);
    chain->count++;
    return false;
}

/* The sync code that greenlet_spawn() runs for the coroutine, and that what it awaits comes from. False: the walk ends here. */
static bool add_greenlet(struct await_chain *chain, uint64_t frame) {
    size_t count, room = chain->capacity - chain->count;
    if (!greenlets_read_spawned(frame, chain->frames + chain->count, room, &count)) return fail_to_read(chain);
    if (count > room) return is_full(chain);
    chain->count += count;
    return true;
}

/* One object further. False after the last one. */
static bool step(struct await_chain *chain) {
    uint64_t generator = chain->next, at = generator + layout.generator_frame, type, code, instruction, top, next;
    int32_t state;
    bool awaiting;
    if (!generator) return false;
    if (!safe_copy_word(&type, generator + OBJECT_TYPE)) return fail_to_read(chain);
    if (!is_generator_type(type)) return pass_wrapper(chain, type);
    if (chain->count == chain->capacity) return is_full(chain);
    if (!read_state(generator, &state) || !safe_copy_word(&code, at + layout.frame_code) ||
        !safe_copy_word(&instruction, at + layout.frame_instruction) || !read_stack_top(at, &top))
        return fail_to_read(chain);
    code &= ~(uint64_t)layout.reference_tags;
    chain->frames[chain->count] = (struct raw_frame){code, instruction, generator};
    chain->wrappers = 0;
    if (!is_suspended(state)) return end_at(chain, state);
    chain->count++;
    /* What it awaits, of whatever type, is the uppermost entry, or from 3.15 on the one below. */
    if (!read_awaiting(type, state, instruction, &awaiting)) return fail_to_read(chain);
    if (!awaiting || !top) return go_on(chain, 0);
    if (top / 8 > MAX_STACK_SLOTS || !safe_copy_word(&next, at + layout.frame_localsplus + top - 8 * layout.awaited_depth))
        return fail_to_read(chain);
    if (greenlets_belong_to(code) && !add_greenlet(chain, at)) return false;
    return go_on(chain, next & ~(uint64_t)layout.reference_tags);
}

unsigned coroutine_step_all(struct await_chain **chains, unsigned count) {
    unsigned left = 0;
    for (unsigned i = 0; i < count; i++) {
        safe_copy_touch(chains[i]->next + OBJECT_TYPE);
        safe_copy_prefetch(chains[i]->next + CACHE_LINE);
        safe_copy_prefetch(chains[i]->next + layout.generator_frame + layout.frame_localsplus);
    }
    for (unsigned i = 0; i < count; i++)
        if (step(chains[i])) chains[left++] = chains[i];
    return left;
}

void coroutine_walk(struct await_chain *chain, uint64_t coroutine) {
    coroutine_begin(chain, coroutine);
    while (coroutine_step_all(&chain, 1)) continue; /* ends: a step adds a frame, or is one of a few between two frames */
}

bool coroutine_unchanged(const struct await_chain *chain) {
    for (size_t i = 0; i < chain->count; i++) {
        const struct raw_frame *frame = &chain->frames[i];
        uint64_t instruction;
        int32_t state;
        if (!frame->generator) continue;
        if (!safe_copy_word(&instruction, frame->generator + layout.generator_frame + layout.frame_instruction)) return false;
        if (!read_state(frame->generator, &state)) return false;
        if (instruction != frame->instruction || state == layout.state_executing) return false;
    }
    return true;
}

bool coroutine_first_argument(const struct raw_frame *frame, uint64_t *argument) {
    if (!frame->generator || !safe_copy_word(argument, frame->generator + layout.generator_frame + layout.frame_localsplus)) return false;
    *argument &= ~(uint64_t)layout.reference_tags;
    return true;
}
