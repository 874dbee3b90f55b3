/* Compiled with the internal headers of CPython 3.13 or later: prints "field, its position in _Py_DebugOffsets, the position that
   ext/cpython/debug_offsets.c reads" for each field that is read. */
#define Py_BUILD_CORE 1
#include <Python.h>

#include <stdio.h>

#include "internal/pycore_runtime.h"
#if PY_MINOR_VERSION >= 14
#include "internal/pycore_debug_offsets.h"
#endif

#include TABLE_FILE

#include "debug_offsets.c"
#include "layout.c"

/* No table but this version's is looked at. */
const struct layout layout_3_11, layout_3_12;
#if PY_MINOR_VERSION != 13
const struct layout layout_3_13;
#endif
#if PY_MINOR_VERSION != 14
const struct layout layout_3_14;
#endif
#if PY_MINOR_VERSION != 15
const struct layout layout_3_15;
#endif

static const struct {
    const char *name;
    const uint32_t *field;
    size_t position;
} in_header[] = {
#define IN_HEADER(field, member) {#field, &layout.field, offsetof(_Py_DebugOffsets, member)}
    IN_HEADER(interp_size, interpreter_state.size),
    IN_HEADER(interp_threads_head, interpreter_state.threads_head),
    IN_HEADER(interp_gil, interpreter_state.ceval_gil),
    IN_HEADER(thread_prev, thread_state.prev),
    IN_HEADER(thread_next, thread_state.next),
    IN_HEADER(thread_interp, thread_state.interp),
    IN_HEADER(thread_frame, thread_state.current_frame),
    IN_HEADER(thread_ident, thread_state.thread_id),
    IN_HEADER(thread_native_id, thread_state.native_thread_id),
    IN_HEADER(thread_datastack_chunk, thread_state.datastack_chunk),
#if PY_MINOR_VERSION == 13
    IN_HEADER(thread_running_loop, thread_state.size), /* asyncio's loop follows the public thread state */
#endif
    IN_HEADER(frame_previous, interpreter_frame.previous),
    IN_HEADER(frame_code, interpreter_frame.executable),
    IN_HEADER(frame_instruction, interpreter_frame.instr_ptr),
    IN_HEADER(frame_localsplus, interpreter_frame.localsplus),
    IN_HEADER(frame_owner, interpreter_frame.owner),
    IN_HEADER(code_filename, code_object.filename),
    IN_HEADER(code_qualname, code_object.qualname),
    IN_HEADER(code_linetable, code_object.linetable),
    IN_HEADER(code_first_line, code_object.firstlineno),
    IN_HEADER(code_instructions, code_object.co_code_adaptive),
    IN_HEADER(type_flags, type_object.tp_flags),
    IN_HEADER(str_state, unicode_object.state),
    IN_HEADER(str_length, unicode_object.length),
    IN_HEADER(str_ascii_data, unicode_object.asciiobject_size),
#if PY_MINOR_VERSION >= 14
    IN_HEADER(frame_stackpointer, interpreter_frame.stackpointer),
    IN_HEADER(tuple_items, tuple_object.ob_item),
    IN_HEADER(list_items, list_object.ob_item),
    IN_HEADER(var_size, list_object.ob_size),
    IN_HEADER(set_used, set_object.used),
    IN_HEADER(set_table, set_object.table),
    IN_HEADER(set_mask, set_object.mask),
    IN_HEADER(dict_keys, dict_object.ma_keys),
    IN_HEADER(dict_values, dict_object.ma_values),
    IN_HEADER(int_tag, long_object.lv_tag),
    IN_HEADER(int_digits, long_object.ob_digit),
    IN_HEADER(bytes_data, bytes_object.ob_sval),
    IN_HEADER(generator_frame, gen_object.gi_iframe),
    IN_HEADER(generator_state, gen_object.gi_frame_state),
    IN_HEADER(node_next, llist_node.next),
    IN_HEADER(node_previous, llist_node.prev),
#endif
#if PY_MINOR_VERSION >= 15
    IN_HEADER(type_basicsize, type_object.tp_basicsize),
    IN_HEADER(type_dictoffset, type_object.tp_dictoffset),
    IN_HEADER(type_cached_keys, heap_type_object.ht_cached_keys),
    IN_HEADER(str_compact_data, unicode_object.compactunicodeobject_size),
#endif
};

/* Where the size of what holds a field is published. */
static const size_t sizes[] = {
    offsetof(_Py_DebugOffsets, interpreter_state.size), offsetof(_Py_DebugOffsets, thread_state.size),
    offsetof(_Py_DebugOffsets, interpreter_frame.size), offsetof(_Py_DebugOffsets, code_object.size),
    offsetof(_Py_DebugOffsets, type_object.size),       offsetof(_Py_DebugOffsets, unicode_object.size),
#if PY_MINOR_VERSION >= 14
    offsetof(_Py_DebugOffsets, tuple_object.size),      offsetof(_Py_DebugOffsets, list_object.size),
    offsetof(_Py_DebugOffsets, set_object.size),        offsetof(_Py_DebugOffsets, dict_object.size),
    offsetof(_Py_DebugOffsets, long_object.size),       offsetof(_Py_DebugOffsets, bytes_object.size),
    offsetof(_Py_DebugOffsets, gen_object.size),
#endif
#if PY_MINOR_VERSION >= 15
    offsetof(_Py_DebugOffsets, heap_type_object.size),
#endif
};

/* The last one before a position, which is the one of the structure that the position is in. */
static size_t size_before(size_t position) {
    size_t found = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i] < position && sizes[i] > found) found = sizes[i];
    return found;
}

int main(void) {
    printf("COOKIE %zu %d\n", offsetof(_Py_DebugOffsets, cookie), COOKIE);
    printf("VERSION %zu %d\n", offsetof(_Py_DebugOffsets, version), VERSION);
    printf("FREE_THREADED %zu %d\n", offsetof(_Py_DebugOffsets, free_threaded), FREE_THREADED);
    const struct table *table = &tables[PY_MINOR_VERSION];
    for (size_t i = 0; i < table->count; i++)
        for (size_t k = 0; k < sizeof in_header / sizeof in_header[0]; k++) {
            const struct published *field = &table->fields[i];
            if (field->field != in_header[k].field) continue;
            printf("%s %zu %u\n", in_header[k].name, in_header[k].position, field->position);
            if (field->size != NO_SIZE) printf("%s[size] %zu %u\n", in_header[k].name, size_before(field->position), field->size);
        }
    printf("gil %zu %u\n", offsetof(_Py_DebugOffsets, interpreter_state.gil_runtime_state), table->gil);
    printf("gil_locked %zu %u\n", offsetof(_Py_DebugOffsets, interpreter_state.gil_runtime_state_locked), table->gil_locked);
    printf("gil_holder %zu %u\n", offsetof(_Py_DebugOffsets, interpreter_state.gil_runtime_state_holder), table->gil_holder);
    printf("object_size %zu %u\n", offsetof(_Py_DebugOffsets, pyobject.size), table->object_size);
    printf("object_type %zu %u\n", offsetof(_Py_DebugOffsets, pyobject.ob_type), table->object_type);
#if PY_MINOR_VERSION >= 14
    printf("path_size %zu %u\n", offsetof(_Py_DebugOffsets, debugger_support.debugger_script_path_size), table->path_size);
    printf("length of a path %d %d\n", _Py_MAX_SCRIPT_PATH_SIZE, SCRIPT_PATH_BYTES);
#endif
    printf("offset of the table in _PyRuntime %zu 0\n", offsetof(_PyRuntimeState, debug_offsets));
    return sizeof(_PyRuntimeState) >= DEBUG_OFFSETS_BYTES ? 0 : 1; /* nothing is read behind its end */
}
