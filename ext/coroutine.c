#include "coroutine.h"

#include "cpython/layout.h"
#include "drop.h"
#include "read_object.h"
#include "safe_copy.h"

#define MAX_WRAPPERS 4       /* awaitables around one generator-like object */
#define MAX_STACK_SLOTS (1u << 20)
#define AWAIT_ARGUMENT 2

/* A generator-like object as read. */
struct generator {
    uint64_t type, address;
    int8_t state;
    struct raw_frame frame;
    int32_t stack_top; /* entries in localsplus, the value stack included */
};

static bool is_generator_type(uint64_t type) {
    return type == anchors.type_coroutine || type == anchors.type_generator || type == anchors.type_async_generator;
}

static bool is_wrapper_type(uint64_t type) {
    return type == anchors.type_asend || type == anchors.type_athrow || type == anchors.type_coroutine_wrapper ||
           type == anchors.type_anext;
}

/* The state is a byte, read with its neighbours. */
static bool read_state(uint64_t generator, int8_t *state) {
    uint32_t half, place = layout.generator_state % sizeof half;
    if (!safe_copy_half(&half, generator + layout.generator_state - place)) return false;
    *state = (int8_t)(half >> 8 * place);
    return true;
}

static bool read_generator(uint64_t address, struct generator *generator) {
    uint64_t frame = address + layout.generator_frame;
    uint32_t stack_top;
    generator->frame.generator = generator->address = address;
    if (!read_state(address, &generator->state) ||
        !safe_copy_word(&generator->frame.code, frame + layout.frame_code) ||
        !safe_copy_word(&generator->frame.instruction, frame + layout.frame_instruction) ||
        !safe_copy_half(&stack_top, frame + layout.frame_stacktop))
        return false;
    generator->stack_top = (int32_t)stack_top;
    return true;
}

static bool is_suspended(int8_t state) { return state >= layout.state_suspended_from && state <= layout.state_suspended_to; }

/* A suspended coroutine always awaits. A generator or async generator may as well have yielded: from 3.13 on the state tells,
   before that the next instruction does. */
static bool read_awaiting(const struct generator *generator, bool *awaiting) {
    uint8_t next[2];
    *awaiting = generator->type == anchors.type_coroutine || (layout.state_awaiting && generator->state == layout.state_awaiting);
    if (*awaiting || layout.state_awaiting) return true;
    if (!safe_copy(next, generator->frame.instruction + 2, sizeof next)) return false;
    *awaiting = (next[0] == layout.resume_opcodes[0] || next[0] == layout.resume_opcodes[1]) && next[1] >= AWAIT_ARGUMENT;
    return true;
}

/* What the suspended generator-like object awaits, of whatever type; 0 when it awaits nothing. */
static bool read_awaited(const struct generator *generator, uint64_t *awaited) {
    bool awaiting;
    *awaited = 0;
    if (!read_awaiting(generator, &awaiting)) return false;
    if (!awaiting || generator->stack_top <= 0) return true;
    if ((uint32_t)generator->stack_top > MAX_STACK_SLOTS) return false;
    return safe_copy_word(awaited, generator->address + layout.generator_frame + layout.frame_localsplus +
                                       8 * ((uint64_t)generator->stack_top - 1));
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

void coroutine_prefetch(const struct await_chain *chain) {
    safe_copy_touch(chain->next + OBJECT_TYPE);
    safe_copy_prefetch(chain->next + CACHE_LINE);
    safe_copy_prefetch(chain->next + layout.generator_frame + layout.frame_localsplus);
}

bool coroutine_step(struct await_chain *chain) {
    struct generator generator;
    uint64_t next;
    if (!chain->next) return false;
    if (!safe_copy_word(&generator.type, chain->next + OBJECT_TYPE)) return fail(chain, DROP_unreadable_memory, RAW_FRAME_UNREADABLE);
    if (!is_generator_type(generator.type)) { /* a future or anything else: no frames of it can be read */
        if (!chain->count || !is_wrapper_type(generator.type) || chain->wrappers++ == MAX_WRAPPERS) return end(chain, CHAIN_SUSPENDED);
        if (!safe_copy_word(&next, chain->next + layout.wrapper_inner)) return fail(chain, DROP_unreadable_memory, RAW_FRAME_UNREADABLE);
        return go_on(chain, next);
    }
    if (chain->count == chain->capacity) {
        if (chain->capacity < MAX_AWAIT_CHAIN) return end(chain, CHAIN_LONG);
        return fail(chain, DROP_too_deep, RAW_FRAME_TRUNCATED);
    }
    if (!read_generator(chain->next, &generator)) return fail(chain, DROP_unreadable_memory, RAW_FRAME_UNREADABLE);
    if (generator.state == layout.state_executing) return end(chain, CHAIN_EXECUTING);
    bool suspended = is_suspended(generator.state);
    if (!suspended && generator.state != layout.state_created) return end(chain, chain->count ? CHAIN_UNREADABLE : CHAIN_FINISHED);
    chain->frames[chain->count++] = generator.frame;
    chain->wrappers = 0;
    if (!suspended) return false;
    if (!read_awaited(&generator, &next)) return fail(chain, DROP_unreadable_memory, RAW_FRAME_UNREADABLE);
    return go_on(chain, next);
}

void coroutine_walk(struct await_chain *chain, uint64_t coroutine) {
    coroutine_begin(chain, coroutine);
    while (coroutine_step(chain)) continue; /* ends: a step adds a frame, or is one of a few between two frames */
}

bool coroutine_unchanged(const struct await_chain *chain) {
    for (size_t i = 0; i < chain->count; i++) {
        const struct raw_frame *frame = &chain->frames[i];
        uint64_t instruction;
        int8_t state;
        if (!frame->generator) continue;
        if (!safe_copy_word(&instruction, frame->generator + layout.generator_frame + layout.frame_instruction)) return false;
        if (!read_state(frame->generator, &state)) return false;
        if (instruction != frame->instruction || state == layout.state_executing) return false;
    }
    return true;
}

bool coroutine_first_argument(const struct raw_frame *frame, uint64_t *argument) {
    return frame->generator && safe_copy_word(argument, frame->generator + layout.generator_frame + layout.frame_localsplus);
}
