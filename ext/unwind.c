#include "unwind.h"

#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "safe_copy.h"

#define MAX_CHUNKS 64
#define MAX_WALKS 16       /* of a thread that makes and ends frames faster than they are copied */
#define MAX_EMPTY_LOOKS 3
#define MAX_SKIPPED (2 * MAX_THREAD_FRAMES) /* entry frames make no raw frame, so that the frame bound alone ends no cycle of them */
#define CHUNK_HEAD 24

/* A part of the data stack that was copied. */
struct piece {
    uint64_t address, size;
    const uint8_t *bytes;
};

struct pieces {
    struct piece piece[MAX_CHUNKS];
    unsigned count;
};

/* Copies the live part of each chunk, newest first. In the current chunk it ends at the thread's datastack_top (the chunk's own
   top is stale), in older ones at their top. */
static void copy_chunks(const struct thread_state *thread, uint8_t *bytes, struct pieces *pieces) {
    uint64_t chunk = thread->chunk, end = thread->chunk_top, room = MAX_STACK_BYTES;
    pieces->count = 0;
    for (unsigned i = 0; i < MAX_CHUNKS && chunk; i++) {
        uint64_t head[CHUNK_HEAD / 8], start = chunk + layout.chunk_data;
        if (!safe_copy(head, chunk, sizeof head)) return;
        if (i > 0) end = start + 8 * head[layout.chunk_top / 8];
        if (end < start || end - start > room) return;
        if (!safe_copy(bytes, start, end - start)) return;
        pieces->piece[pieces->count++] = (struct piece){.address = start, .size = end - start, .bytes = bytes};
        bytes += end - start;
        room -= end - start;
        chunk = head[layout.chunk_previous / 8];
    }
}

/* Newest chunk first and walking from the leaf: the piece of the last frame is the likely one. */
static bool read_head(const struct pieces *pieces, unsigned *last, uint64_t frame, uint8_t *head) {
    for (unsigned i = 0; i < pieces->count; i++) {
        const struct piece *piece = &pieces->piece[(*last + i) % pieces->count];
        if (frame < piece->address || frame - piece->address + layout.frame_localsplus > piece->size) continue;
        memcpy(head, piece->bytes + (frame - piece->address), layout.frame_localsplus);
        *last = (*last + i) % pieces->count;
        return true;
    }
    return safe_copy(head, frame, layout.frame_localsplus); /* a generator's frame lies in the generator */
}

/* Whether the frame is one from which C entered Python: the only kind that may have none below it. The memory of a frame that is
   just being made may say otherwise. */
static bool is_entry(const uint8_t *head) {
    if (layout.frame_is_entry != LAYOUT_ABSENT) /* a generator resumed from C has the mark too, and none below it once suspended */
        return head[layout.frame_is_entry] == 1 && head[layout.frame_owner] != layout.owner_generator;
    return head[layout.frame_owner] >= layout.owner_skip_from;
}

/* True when the walk came to the root, or to its bound; why it did not is set only where that is not that the thread moved. */
static bool walk(uint64_t frame, const struct pieces *pieces, struct raw_frame *frames, size_t *n_frames, enum drop_reason *why) {
    size_t count = 0;
    unsigned last = 0;
    bool entry = false;
    uint64_t mark = 0; /* an earlier frame, farther and farther back: meeting it again is a cycle, which no stack has */
    for (unsigned steps = 0; frame; steps++) {
        if (frame == mark) return false;
        if ((steps & (steps + 1)) == 0) mark = frame;
        uint8_t head[MAX_FRAME_HEAD_BYTES];
        *n_frames = count;
        if (count == MAX_THREAD_FRAMES - 1 || steps == MAX_SKIPPED) {
            frames[(*n_frames)++] = (struct raw_frame){.code = RAW_FRAME_TRUNCATED};
            return true;
        }
        if (frame % 8 || !read_head(pieces, &last, frame, head)) {
            *why = DROP_unreadable_memory;
            return false;
        }
        struct raw_frame *raw = &frames[count];
        uint8_t owner = head[layout.frame_owner];
        memcpy(&raw->code, head + layout.frame_code, 8);
        raw->code &= ~(uint64_t)layout.reference_tags;
        memcpy(&raw->instruction, head + layout.frame_instruction, 8);
        raw->generator = owner == layout.owner_generator ? frame - layout.generator_frame : 0;
        if (owner < layout.owner_skip_from) count++;
        entry = is_entry(head);
        memcpy(&frame, head + layout.frame_previous, 8);
    }
    *n_frames = count;
    return entry;
}

/* Up to 3.12 the current frame hangs on the C frame on top, which lies on the C stack and is gone when its function has returned:
   so it is found anew each time, never remembered. */
static bool read_current_frame(const struct thread_state *thread, uint64_t *frame) {
    if (!safe_copy_word(frame, thread->address + layout.thread_frame)) return false;
    return layout.cframe_frame == LAYOUT_ABSENT || safe_copy_word(frame, *frame + layout.cframe_frame);
}

/* How many frames, from the root, are the same in both walks, and one more whose function is the same. */
static size_t count_same(const struct raw_frame *frames, size_t count, const struct raw_frame *again, size_t n_again) {
    size_t same = 0, most = count < n_again ? count : n_again;
    while (same < most && memcmp(&frames[count - 1 - same], &again[n_again - 1 - same], sizeof *frames) == 0) same++;
    if (same == most) return same;
    const struct raw_frame *one = &frames[count - 1 - same], *other = &again[n_again - 1 - same];
    return same + (one->code == other->code && one->generator == other->generator);
}

/* The copy is made from the root to the leaf, the second walk is from the leaf to the root: a caller that is the same in both has
   called one function all the time in between, and that is the one copied above it. */
static size_t count_sound(uint64_t frame, struct unwind_buffer *buffer, size_t count) {
    static const struct pieces none;
    enum drop_reason why;
    size_t n_again;
    return walk(frame, &none, buffer->again, &n_again, &why) ? count_same(buffer->frames, count, buffer->again, n_again) : 0;
}

static bool read_stack(const struct thread_state *thread, struct unwind_buffer *buffer, size_t *count) {
    struct thread_state now = *thread;
    bool has_frames = false;
    enum drop_reason why = DROP_torn_stack;
    *count = 0;
    for (unsigned walks = 0, empty = 0; walks < MAX_WALKS; walks++) {
        struct pieces pieces;
        uint64_t frame;
        if (!safe_copy_word(&now.chunk, now.address + layout.thread_datastack_chunk) ||
            !safe_copy_word(&now.chunk_top, now.address + layout.thread_datastack_top) || !read_current_frame(&now, &frame))
            return drop_count(DROP_unreadable_memory), false;
        if (!frame && ++empty == MAX_EMPTY_LOOKS) break;
        if (!frame) continue;
        has_frames = true;
        why = DROP_torn_stack;
        copy_chunks(&now, buffer->bytes, &pieces);
        if (!walk(frame, &pieces, buffer->frames, count, &why)) continue;
        size_t sound = count_sound(frame, buffer, *count);
        if (sound + 1 >= *count) return true; /* the leaf itself may have gone on */
        if (walks + 1 < MAX_WALKS / 2 || !sound) continue;
        /* A thread that calls and returns all the time is never caught at rest. To give up on it would hide just the busiest code. */
        memmove(buffer->frames, buffer->frames + (*count - sound), sound * sizeof buffer->frames[0]);
        *count = sound;
        return true;
    }
    if (has_frames) drop_count(why);
    return false;
}

bool unwind_thread(const struct thread_state *thread, struct unwind_buffer *buffer, size_t *count) {
    if (!read_stack(thread, buffer, count)) return false;
    if (*count && buffer->frames[*count - 1].code == RAW_FRAME_TRUNCATED) drop_count(DROP_too_deep);
    return true;
}
