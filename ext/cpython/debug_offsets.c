#include "debug_offsets.h"

#include <string.h>

#include "layout.h"

enum { COOKIE = 0, VERSION = 8, FREE_THREADED = 16 };
enum { OBJECT_BYTES = 16, SCRIPT_PATH_BYTES = 512 };
#define NO_SIZE UINT32_MAX

struct published {
    uint32_t position; /* in the published structure */
    uint32_t size;     /* position of the size of what holds the field */
    uint32_t *field;   /* of layout */
    uint32_t limit;    /* the largest offset that readers can do with */
};

enum {
    IN_THREAD = MAX_THREAD_STATE_BYTES - 8,
    IN_FRAME = MAX_FRAME_HEAD_BYTES - 8,
    IN_CODE = MAX_CODE_HEAD_BYTES - 8,
    IN_STR = MAX_STR_HEAD_BYTES - 8,
};

/* The structure as each minor version lays it out. */
static const struct published in_3_13[] = {
    {48, NO_SIZE, &layout.interp_size, MAX_LAYOUT_OFFSET},
    {72, 48, &layout.interp_threads_head, MAX_LAYOUT_OFFSET},
    {112, 48, &layout.interp_gil, MAX_LAYOUT_OFFSET},
    {152, NO_SIZE, &layout.thread_running_loop, IN_THREAD}, /* the size: asyncio's loop follows the public thread state */
    {160, 152, &layout.thread_prev, IN_THREAD},
    {168, 152, &layout.thread_next, IN_THREAD},
    {176, 152, &layout.thread_interp, IN_THREAD},
    {184, 152, &layout.thread_frame, IN_THREAD},
    {192, 152, &layout.thread_ident, IN_THREAD},
    {200, 152, &layout.thread_native_id, IN_THREAD},
    {208, 152, &layout.thread_datastack_chunk, IN_THREAD - 8},
    {232, 224, &layout.frame_previous, IN_FRAME},
    {240, 224, &layout.frame_code, IN_FRAME},
    {248, 224, &layout.frame_instruction, IN_FRAME},
    {256, 224, &layout.frame_localsplus, MAX_FRAME_HEAD_BYTES},
    {264, 224, &layout.frame_owner, IN_FRAME + 7},
    {280, 272, &layout.code_filename, IN_CODE},
    {296, 272, &layout.code_qualname, IN_CODE},
    {304, 272, &layout.code_linetable, IN_CODE},
    {312, 272, &layout.code_first_line, IN_CODE},
    {344, 272, &layout.code_instructions, MAX_CODE_HEAD_BYTES},
    {392, 368, &layout.type_flags, MAX_LAYOUT_OFFSET},
    {544, 536, &layout.str_state, IN_STR},
    {552, 536, &layout.str_length, IN_STR},
    {560, 536, &layout.str_ascii_data, MAX_LAYOUT_OFFSET},
};

static const struct published in_3_14[] = {
    {48, NO_SIZE, &layout.interp_size, MAX_LAYOUT_OFFSET},
    {72, 48, &layout.interp_threads_head, MAX_LAYOUT_OFFSET},
    {120, 48, &layout.interp_gil, MAX_LAYOUT_OFFSET},
    {184, 176, &layout.thread_prev, IN_THREAD},
    {192, 176, &layout.thread_next, IN_THREAD},
    {200, 176, &layout.thread_interp, IN_THREAD},
    {208, 176, &layout.thread_frame, IN_THREAD},
    {216, 176, &layout.thread_ident, IN_THREAD},
    {224, 176, &layout.thread_native_id, IN_THREAD},
    {232, 176, &layout.thread_datastack_chunk, IN_THREAD - 8},
    {256, 248, &layout.frame_previous, IN_FRAME},
    {264, 248, &layout.frame_code, IN_FRAME},
    {272, 248, &layout.frame_instruction, IN_FRAME},
    {280, 248, &layout.frame_localsplus, MAX_FRAME_HEAD_BYTES},
    {288, 248, &layout.frame_owner, IN_FRAME + 7},
    {296, 248, &layout.frame_stackpointer, IN_FRAME},
    {320, 312, &layout.code_filename, IN_CODE},
    {336, 312, &layout.code_qualname, IN_CODE},
    {344, 312, &layout.code_linetable, IN_CODE},
    {352, 312, &layout.code_first_line, IN_CODE},
    {384, 312, &layout.code_instructions, MAX_CODE_HEAD_BYTES},
    {440, 416, &layout.type_flags, MAX_LAYOUT_OFFSET},
    {456, 448, &layout.tuple_items, MAX_LAYOUT_OFFSET},
    {480, 472, &layout.list_items, MAX_LAYOUT_OFFSET},
    {488, 472, &layout.var_size, MAX_LAYOUT_OFFSET},
    {504, 496, &layout.set_used, MAX_LAYOUT_OFFSET},
    {512, 496, &layout.set_table, MAX_LAYOUT_OFFSET},
    {520, 496, &layout.set_mask, MAX_LAYOUT_OFFSET},
    {536, 528, &layout.dict_keys, MAX_LAYOUT_OFFSET},
    {544, 528, &layout.dict_values, MAX_LAYOUT_OFFSET},
    {576, 568, &layout.int_tag, MAX_LAYOUT_OFFSET},
    {584, 568, &layout.int_digits, MAX_LAYOUT_OFFSET},
    {608, 592, &layout.bytes_data, MAX_LAYOUT_OFFSET},
    {624, 616, &layout.str_state, IN_STR},
    {632, 616, &layout.str_length, IN_STR},
    {640, 616, &layout.str_ascii_data, MAX_LAYOUT_OFFSET},
    {680, 664, &layout.generator_frame, MAX_LAYOUT_OFFSET},
    {688, 664, &layout.generator_state, MAX_LAYOUT_OFFSET},
    {696, NO_SIZE, &layout.node_next, MAX_LAYOUT_OFFSET},
    {704, NO_SIZE, &layout.node_previous, MAX_LAYOUT_OFFSET},
};

/* As 3.15 publishes it, by its source: fields were added up to its last beta. */
static const struct published in_3_15[] = {
    {48, NO_SIZE, &layout.interp_size, MAX_LAYOUT_OFFSET},
    {72, 48, &layout.interp_threads_head, MAX_LAYOUT_OFFSET},
    {120, 48, &layout.interp_gil, MAX_LAYOUT_OFFSET},
    {184, 176, &layout.thread_prev, IN_THREAD},
    {192, 176, &layout.thread_next, IN_THREAD},
    {200, 176, &layout.thread_interp, IN_THREAD},
    {208, 176, &layout.thread_frame, IN_THREAD},
    {240, 176, &layout.thread_ident, IN_THREAD},
    {248, 176, &layout.thread_native_id, IN_THREAD},
    {256, 176, &layout.thread_datastack_chunk, IN_THREAD - 8},
    {320, 312, &layout.frame_previous, IN_FRAME},
    {328, 312, &layout.frame_code, IN_FRAME},
    {336, 312, &layout.frame_instruction, IN_FRAME},
    {344, 312, &layout.frame_localsplus, MAX_FRAME_HEAD_BYTES},
    {352, 312, &layout.frame_owner, IN_FRAME + 7},
    {360, 312, &layout.frame_stackpointer, IN_FRAME},
    {384, 376, &layout.code_filename, IN_CODE},
    {400, 376, &layout.code_qualname, IN_CODE},
    {408, 376, &layout.code_linetable, IN_CODE},
    {416, 376, &layout.code_first_line, IN_CODE},
    {448, 376, &layout.code_instructions, MAX_CODE_HEAD_BYTES},
    {504, 480, &layout.type_flags, MAX_LAYOUT_OFFSET},
    {512, 480, &layout.type_basicsize, MAX_LAYOUT_OFFSET},
    {520, 480, &layout.type_dictoffset, MAX_LAYOUT_OFFSET},
    {536, 528, &layout.type_cached_keys, MAX_LAYOUT_OFFSET},
    {552, 544, &layout.tuple_items, MAX_LAYOUT_OFFSET},
    {576, 568, &layout.list_items, MAX_LAYOUT_OFFSET},
    {584, 568, &layout.var_size, MAX_LAYOUT_OFFSET},
    {600, 592, &layout.set_used, MAX_LAYOUT_OFFSET},
    {608, 592, &layout.set_table, MAX_LAYOUT_OFFSET},
    {616, 592, &layout.set_mask, MAX_LAYOUT_OFFSET},
    {632, 624, &layout.dict_keys, MAX_LAYOUT_OFFSET},
    {640, 624, &layout.dict_values, MAX_LAYOUT_OFFSET},
    {672, 664, &layout.int_tag, MAX_LAYOUT_OFFSET},
    {680, 664, &layout.int_digits, MAX_LAYOUT_OFFSET},
    {704, 688, &layout.bytes_data, MAX_LAYOUT_OFFSET},
    {720, 712, &layout.str_state, IN_STR},
    {728, 712, &layout.str_length, IN_STR},
    {736, 712, &layout.str_ascii_data, MAX_LAYOUT_OFFSET},
    {744, NO_SIZE, &layout.str_compact_data, IN_STR},
    {808, 792, &layout.generator_frame, MAX_LAYOUT_OFFSET},
    {816, 792, &layout.generator_state, MAX_LAYOUT_OFFSET},
    {824, NO_SIZE, &layout.node_next, MAX_LAYOUT_OFFSET},
    {832, NO_SIZE, &layout.node_previous, MAX_LAYOUT_OFFSET},
};

/* What one minor version publishes. */
struct table {
    const struct published *fields;
    size_t count;
    /* positions */
    uint32_t gil, gil_locked, gil_holder;
    uint32_t object_size, object_type;
    uint32_t path_size; /* the last field, whose value shows that the structure has the length we think; 0: there is none */
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
static const struct table tables[] = {
    [13] = {in_3_13, COUNT_OF(in_3_13), 120, 136, 144, 352, 360, 0},
    [14] = {in_3_14, COUNT_OF(in_3_14), 128, 144, 152, 400, 408, 752},
    [15] = {in_3_15, COUNT_OF(in_3_15), 128, 144, 152, 464, 472, 880},
};

static uint64_t word_at(const uint8_t *bytes, uint32_t position) {
    uint64_t word;
    memcpy(&word, bytes + position, sizeof word);
    return word;
}

/* Beyond the limit, or outside of what holds it. */
static bool is_out_of_range(const uint8_t *bytes, const struct published *published) {
    uint64_t value = word_at(bytes, published->position);
    return value > published->limit || (published->size != NO_SIZE && value > word_at(bytes, published->size));
}

/* What is not published, but stands beside what is: the thread's context, the context's version, the thread's unique id, its data
   stack's chunk, the top of that. */
enum { CONTEXT_BEFORE_CHUNK = 24, VERSION_BEFORE_CHUNK = 16, ID_BEFORE_CHUNK = 8, TOP_AFTER_CHUNK = 8 };

/* False when there is no place for it. */
static bool derive(const uint8_t *bytes, const struct table *table) {
    uint64_t gil = word_at(bytes, table->gil), locked = word_at(bytes, table->gil_locked), holder = word_at(bytes, table->gil_holder);
    if (layout.interp_threads_head < 8 || layout.thread_datastack_chunk < CONTEXT_BEFORE_CHUNK) return false;
    if (locked - gil > MAX_LAYOUT_OFFSET || holder - gil > MAX_LAYOUT_OFFSET) return false;
    layout.interp_next_thread_id = layout.interp_threads_head - 8;
    layout.gil_locked = (uint32_t)(locked - gil);
    layout.gil_holder = (uint32_t)(holder - gil);
    layout.thread_context = layout.thread_datastack_chunk - CONTEXT_BEFORE_CHUNK;
    layout.thread_context_version = layout.thread_datastack_chunk - VERSION_BEFORE_CHUNK;
    layout.thread_unique_id = layout.thread_datastack_chunk - ID_BEFORE_CHUNK;
    layout.thread_datastack_top = layout.thread_datastack_chunk + TOP_AFTER_CHUNK;
    layout.thread_size = (layout.minor == 13 ? layout.thread_running_loop : layout.thread_datastack_top) + 8;
    return true;
}

const char *debug_offsets_apply(const uint8_t bytes[DEBUG_OFFSETS_BYTES], uint32_t version_hex) {
    if (layout.minor >= COUNT_OF(tables) || !tables[layout.minor].fields) return NULL;
    const struct table *table = &tables[layout.minor];
    if (memcmp(bytes + COOKIE, "xdebugpy", 8) != 0) return "the interpreter's own table of offsets has no cookie";
    if (word_at(bytes, VERSION) != version_hex) return "the interpreter's own table of offsets is of another version";
    if (word_at(bytes, FREE_THREADED)) return "the free-threaded build is not supported";
    if (word_at(bytes, table->object_size) != OBJECT_BYTES || word_at(bytes, table->object_type) != OBJECT_TYPE)
        return "objects begin with something else than a reference count and their type (a trace-refs build?)";
    if (table->path_size && word_at(bytes, table->path_size) != SCRIPT_PATH_BYTES)
        return "the interpreter's own table of offsets has another size than that of its version";
    for (size_t i = 0; i < table->count; i++) {
        if (is_out_of_range(bytes, &table->fields[i])) return "the interpreter's own table of offsets is out of range";
        *table->fields[i].field = (uint32_t)word_at(bytes, table->fields[i].position);
    }
    return derive(bytes, table) ? NULL : "the interpreter's own table of offsets is out of range";
}
