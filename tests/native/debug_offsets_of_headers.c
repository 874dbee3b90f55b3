/* Compiled with the internal headers of CPython 3.13: prints "field, its position in _Py_DebugOffsets, the position that
   ext/cpython/debug_offsets.c reads" for each field that is read. */
#define Py_BUILD_CORE 1
#include <Python.h>

#include <stdio.h>

#include "internal/pycore_runtime.h"

#include TABLE_FILE

#include "debug_offsets.c"
#include "layout.c"

/* No table but this version's is looked at. */
const struct layout layout_3_11, layout_3_12, layout_3_14, layout_3_15;

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
    IN_HEADER(thread_running_loop, thread_state.size), /* asyncio's loop follows the public thread state */
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
};

int main(void) {
    printf("COOKIE %zu %d\n", offsetof(_Py_DebugOffsets, cookie), COOKIE);
    printf("VERSION %zu %d\n", offsetof(_Py_DebugOffsets, version), VERSION);
    printf("FREE_THREADED %zu %d\n", offsetof(_Py_DebugOffsets, free_threaded), FREE_THREADED);
    for (size_t i = 0; i < sizeof in_3_13 / sizeof in_3_13[0]; i++)
        for (size_t k = 0; k < sizeof in_header / sizeof in_header[0]; k++)
            if (in_3_13[i].field == in_header[k].field)
                printf("%s %zu %u\n", in_header[k].name, in_header[k].position, in_3_13[i].position);
    printf("gil %zu %u\n", offsetof(_Py_DebugOffsets, interpreter_state.gil_runtime_state), tables[13].gil);
    printf("gil_locked %zu %u\n", offsetof(_Py_DebugOffsets, interpreter_state.gil_runtime_state_locked), tables[13].gil_locked);
    printf("gil_holder %zu %u\n", offsetof(_Py_DebugOffsets, interpreter_state.gil_runtime_state_holder), tables[13].gil_holder);
    printf("object_size %zu %u\n", offsetof(_Py_DebugOffsets, pyobject.size), tables[13].object_size);
    printf("object_type %zu %u\n", offsetof(_Py_DebugOffsets, pyobject.ob_type), tables[13].object_type);
    printf("offset of the table in _PyRuntime %zu 0\n", offsetof(_PyRuntimeState, debug_offsets));
    return sizeof(_PyRuntimeState) >= DEBUG_OFFSETS_BYTES ? 0 : 1; /* nothing is read behind its end */
}
