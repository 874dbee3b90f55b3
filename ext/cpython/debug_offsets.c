#include "debug_offsets.h"

#include <string.h>

#include "layout.h"

enum { COOKIE = 0, VERSION = 8, FREE_THREADED = 16 };

struct published {
    uint32_t position; /* in the published structure */
    uint32_t *field;   /* of layout */
};

/* The structure as 3.13 lays it out; each minor version has its own. */
static const struct published in_3_13[] = {
    {72, &layout.interp_threads_head}, {160, &layout.thread_prev},       {168, &layout.thread_next},
    {176, &layout.thread_interp},      {184, &layout.thread_frame},      {192, &layout.thread_ident},
    {200, &layout.thread_native_id},   {208, &layout.thread_datastack_chunk}, {152, &layout.thread_running_loop},
    {232, &layout.frame_previous},     {240, &layout.frame_code},        {248, &layout.frame_instruction},
    {256, &layout.frame_localsplus},   {264, &layout.frame_owner},       {280, &layout.code_filename},
    {296, &layout.code_qualname},      {304, &layout.code_linetable},    {312, &layout.code_first_line},
    {344, &layout.code_instructions},  {544, &layout.str_state},         {552, &layout.str_length},
    {560, &layout.str_ascii_data},     {392, &layout.type_flags},
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
        if (value > MAX_LAYOUT_OFFSET) return "the interpreter's own table of offsets is out of range";
        *in_3_13[i].field = (uint32_t)value;
    }
    /* Not published, but neighbours: the top of the data stack follows its chunk, asyncio's loop follows the public thread state. */
    layout.thread_datastack_top = layout.thread_datastack_chunk + 8;
    layout.thread_size = layout.thread_running_loop + 8;
    return layout.thread_size > MAX_THREAD_STATE_BYTES ? "the interpreter's thread state is larger than expected" : NULL;
}
