#include "debug_offsets.h"

#include <string.h>

#include "layout.h"

enum { COOKIE = 0, VERSION = 8, FREE_THREADED = 16 };

struct published {
    uint32_t position; /* in the published structure */
    uint32_t *field;   /* of layout */
    uint32_t limit;    /* the largest offset that readers can do with */
};

enum {
    IN_THREAD = MAX_THREAD_STATE_BYTES - 8,
    IN_FRAME = MAX_FRAME_HEAD_BYTES - 8,
    IN_CODE = MAX_CODE_HEAD_BYTES - 8,
    IN_STR = MAX_STR_HEAD_BYTES - 8,
};

/* The structure as 3.13 lays it out; each minor version has its own. */
static const struct published in_3_13[] = {
    {72, &layout.interp_threads_head, MAX_LAYOUT_OFFSET},
    {112, &layout.interp_gil, MAX_LAYOUT_OFFSET},
    {160, &layout.thread_prev, IN_THREAD},
    {168, &layout.thread_next, IN_THREAD},
    {176, &layout.thread_interp, IN_THREAD},
    {184, &layout.thread_frame, IN_THREAD},
    {192, &layout.thread_ident, IN_THREAD},
    {200, &layout.thread_native_id, IN_THREAD},
    {208, &layout.thread_datastack_chunk, IN_THREAD - 8},
    {152, &layout.thread_running_loop, IN_THREAD},
    {232, &layout.frame_previous, IN_FRAME},
    {240, &layout.frame_code, IN_FRAME},
    {248, &layout.frame_instruction, IN_FRAME},
    {256, &layout.frame_localsplus, MAX_FRAME_HEAD_BYTES},
    {264, &layout.frame_owner, IN_FRAME + 7},
    {280, &layout.code_filename, IN_CODE},
    {296, &layout.code_qualname, IN_CODE},
    {304, &layout.code_linetable, IN_CODE},
    {312, &layout.code_first_line, IN_CODE},
    {344, &layout.code_instructions, MAX_CODE_HEAD_BYTES},
    {544, &layout.str_state, IN_STR},
    {552, &layout.str_length, IN_STR},
    {560, &layout.str_ascii_data, MAX_LAYOUT_OFFSET},
    {392, &layout.type_flags, MAX_LAYOUT_OFFSET},
};

const char *debug_offsets_apply(const uint8_t bytes[DEBUG_OFFSETS_BYTES], uint32_t version_hex) {
    uint64_t version, free_threaded, value;
    if (layout.minor < 13) return NULL;
    if (memcmp(bytes + COOKIE, "xdebugpy", 8) != 0) return "the interpreter's own table of offsets has no cookie";
    memcpy(&version, bytes + VERSION, 8);
    memcpy(&free_threaded, bytes + FREE_THREADED, 8);
    if (version != version_hex) return "the interpreter's own table of offsets is of another version";
    if (free_threaded) return "the free-threaded build is not supported";
    for (size_t i = 0; i < sizeof in_3_13 / sizeof in_3_13[0]; i++) {
        memcpy(&value, bytes + in_3_13[i].position, 8);
        if (value > in_3_13[i].limit) return "the interpreter's own table of offsets is out of range";
        *in_3_13[i].field = (uint32_t)value;
    }
    /* Not published, but neighbours: the top of the data stack follows its chunk, asyncio's loop follows the public thread state. */
    layout.interp_next_thread_id = layout.interp_threads_head - 8;
    layout.thread_datastack_top = layout.thread_datastack_chunk + 8;
    layout.thread_size = layout.thread_running_loop + 8;
    return NULL;
}
