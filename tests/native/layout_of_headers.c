/* Compiled with the internal headers of one CPython: prints "field, what the headers say, what the table says" for each field of
   struct layout that a header offers. TABLE_FILE is the table that is looked at. */
#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>
#include <opcode.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "internal/pycore_code.h"
#include "internal/pycore_context.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_gil.h"
#include "internal/pycore_genobject.h"
#include "internal/pycore_hamt.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_object.h"
#include "internal/pycore_pystate.h"
#include "internal/pycore_runtime.h"
#if PY_MINOR_VERSION >= 13
#include "internal/pycore_tstate.h"
#endif
#if PY_MINOR_VERSION >= 14
#include "internal/pycore_interpframe.h"
#include "internal/pycore_llist.h"
#endif

#include TABLE_FILE

#if PY_MINOR_VERSION >= 14
#define LAST_OF_THREAD offsetof(PyThreadState, datastack_top) /* what asyncio keeps stands far behind and is read alone */
#elif PY_MINOR_VERSION >= 13
#define LAST_OF_THREAD offsetof(_PyThreadStateImpl, asyncio_running_loop)
#else
#define LAST_OF_THREAD offsetof(PyThreadState, cframe)
#endif
#if PY_MINOR_VERSION == 11
#define TABLE layout_3_11
#elif PY_MINOR_VERSION == 12
#define TABLE layout_3_12
#elif PY_MINOR_VERSION == 13
#define TABLE layout_3_13
#elif PY_MINOR_VERSION == 14
#define TABLE layout_3_14
#elif PY_MINOR_VERSION == 15
#define TABLE layout_3_15
#endif

static void print_line(const char *name, long long header, long long table) { printf("%s %lld %lld\n", name, header, table); }

#define VALUE(field, expected) print_line(#field, (long long)(expected), (long long)TABLE.field)
#define OFFSET(field, type, member) VALUE(field, offsetof(type, member))
#define ABSENT(field) VALUE(field, LAYOUT_ABSENT)

static void print_threads(void) {
    OFFSET(thread_prev, PyThreadState, prev);
    OFFSET(thread_next, PyThreadState, next);
    OFFSET(thread_interp, PyThreadState, interp);
    OFFSET(thread_dict, PyThreadState, dict);
    OFFSET(thread_ident, PyThreadState, thread_id);
    OFFSET(thread_native_id, PyThreadState, native_thread_id);
    OFFSET(thread_context, PyThreadState, context);
    OFFSET(thread_context_version, PyThreadState, context_ver);
    OFFSET(thread_unique_id, PyThreadState, id);
    OFFSET(thread_datastack_chunk, PyThreadState, datastack_chunk);
    OFFSET(thread_datastack_top, PyThreadState, datastack_top);
    OFFSET(interp_threads_head, PyInterpreterState, threads.head);
#if PY_MINOR_VERSION >= 14
    VALUE(interp_size, sizeof(PyInterpreterState));
#else
    VALUE(interp_size, 0); /* used with what asyncio publishes, from 3.14 on */
#endif
    OFFSET(gil_holder, struct _gil_runtime_state, last_holder);
    OFFSET(gil_locked, struct _gil_runtime_state, locked);
#if PY_MINOR_VERSION >= 12
    OFFSET(interp_gil, PyInterpreterState, ceval.gil);
    ABSENT(interp_runtime);
    ABSENT(runtime_gil);
#else
    ABSENT(interp_gil);
    OFFSET(interp_runtime, PyInterpreterState, runtime);
    OFFSET(runtime_gil, _PyRuntimeState, ceval.gil);
#endif
#if PY_MINOR_VERSION >= 13
    OFFSET(thread_frame, PyThreadState, current_frame);
    ABSENT(cframe_frame);
    OFFSET(thread_running_loop, _PyThreadStateImpl, asyncio_running_loop);
#else
    OFFSET(thread_frame, PyThreadState, cframe);
    OFFSET(cframe_frame, _PyCFrame, current_frame);
    ABSENT(thread_running_loop);
#endif
    /* Enough bytes for all of them. */
    const size_t last[] = {offsetof(PyThreadState, dict),         offsetof(PyThreadState, context),
                           offsetof(PyThreadState, id),           offsetof(PyThreadState, native_thread_id),
                           offsetof(PyThreadState, datastack_top), LAST_OF_THREAD};
    size_t most = 0;
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) most = last[i] > most ? last[i] : most;
    VALUE(thread_size, most + sizeof(void *));
}

static void print_frames(void) {
    OFFSET(frame_previous, _PyInterpreterFrame, previous);
    OFFSET(frame_owner, _PyInterpreterFrame, owner);
    OFFSET(frame_localsplus, _PyInterpreterFrame, localsplus);
    VALUE(owner_generator, FRAME_OWNED_BY_GENERATOR);
    OFFSET(generator_frame, PyGenObject, gi_iframe);
    OFFSET(generator_state, PyGenObject, gi_frame_state);
    /* One pair of fields stands for three types. */
    OFFSET(generator_frame, PyCoroObject, cr_iframe);
    OFFSET(generator_state, PyCoroObject, cr_frame_state);
    OFFSET(generator_frame, PyAsyncGenObject, ag_iframe);
    OFFSET(generator_state, PyAsyncGenObject, ag_frame_state);
    VALUE(state_created, FRAME_CREATED);
    VALUE(state_suspended_from, FRAME_SUSPENDED);
    VALUE(state_executing, FRAME_EXECUTING);
#if PY_MINOR_VERSION >= 14
    ABSENT(frame_stacktop);
    OFFSET(frame_stackpointer, _PyInterpreterFrame, stackpointer);
#else
    OFFSET(frame_stacktop, _PyInterpreterFrame, stacktop);
    ABSENT(frame_stackpointer);
#endif
#if PY_MINOR_VERSION >= 13
    OFFSET(frame_code, _PyInterpreterFrame, f_executable);
    OFFSET(frame_instruction, _PyInterpreterFrame, instr_ptr);
    VALUE(state_awaiting, FRAME_SUSPENDED_YIELD_FROM);
    VALUE(resume_opcodes[0], 0); /* the state tells */
    VALUE(resume_opcodes[1], 0);
#else
    OFFSET(frame_code, _PyInterpreterFrame, f_code);
    OFFSET(frame_instruction, _PyInterpreterFrame, prev_instr);
    VALUE(state_suspended_to, FRAME_SUSPENDED);
    VALUE(state_awaiting, 0);
    VALUE(resume_opcodes[0], RESUME);
#endif
#if PY_MINOR_VERSION >= 12
    ABSENT(frame_is_entry);
#endif
#if PY_MINOR_VERSION >= 15
    VALUE(state_suspended_to, FRAME_SUSPENDED_YIELD_FROM_LOCKED);
#elif PY_MINOR_VERSION >= 13
    VALUE(state_suspended_to, FRAME_SUSPENDED_YIELD_FROM);
#endif
#if PY_MINOR_VERSION >= 14
    VALUE(owner_skip_from, FRAME_OWNED_BY_INTERPRETER);
#elif PY_MINOR_VERSION >= 12
    VALUE(owner_skip_from, FRAME_OWNED_BY_CSTACK);
#endif
#if PY_MINOR_VERSION == 12
    VALUE(resume_opcodes[1], INSTRUMENTED_RESUME);
#elif PY_MINOR_VERSION == 11
    VALUE(owner_skip_from, FRAME_OWNED_BY_FRAME_OBJECT + 1); /* no frame is skipped */
    OFFSET(frame_is_entry, _PyInterpreterFrame, is_entry);
    VALUE(resume_opcodes[1], RESUME_QUICK);
#endif
    OFFSET(chunk_previous, _PyStackChunk, previous);
    OFFSET(chunk_top, _PyStackChunk, top);
    OFFSET(chunk_data, _PyStackChunk, data);
}

static void print_code(void) {
    OFFSET(code_size, PyVarObject, ob_size);
    OFFSET(code_first_line, PyCodeObject, co_firstlineno);
    OFFSET(code_filename, PyCodeObject, co_filename);
    OFFSET(code_qualname, PyCodeObject, co_qualname);
    OFFSET(code_linetable, PyCodeObject, co_linetable);
    OFFSET(code_first_traceable, PyCodeObject, _co_firsttraceable);
    OFFSET(code_instructions, PyCodeObject, co_code_adaptive);
#if PY_MINOR_VERSION >= 12
    OFFSET(code_version, PyCodeObject, co_version);
#else
    ABSENT(code_version);
#endif
}

/* The bits that read_string() takes for granted, as a name with the value that they must have. */
static void print_string_bits(void) {
    PyASCIIObject string;
    uint32_t state;
    memset(&string, 0, sizeof string);
    string.state.kind = 5, string.state.compact = 0, string.state.ascii = 1;
    memcpy(&state, &string.state, sizeof state);
    print_line("bits of kind and ascii", state, 5 << 2 | 1 << 6);
    string.state.kind = 2, string.state.compact = 1, string.state.ascii = 0;
    memcpy(&state, &string.state, sizeof state);
    print_line("bits of kind and compact", state, 2 << 2 | 1 << 5);
}

static void print_scalars_and_containers(void) {
    OFFSET(str_length, PyASCIIObject, length);
    OFFSET(str_hash, PyASCIIObject, hash);
    OFFSET(str_state, PyASCIIObject, state);
    VALUE(str_ascii_data, sizeof(PyASCIIObject));
    VALUE(str_compact_data, sizeof(PyCompactUnicodeObject));
    OFFSET(str_legacy_data, PyUnicodeObject, data);
    print_string_bits();
#if PY_MINOR_VERSION >= 12
    OFFSET(int_tag, PyLongObject, long_value.lv_tag);
    OFFSET(int_digits, PyLongObject, long_value.ob_digit);
    VALUE(int_tag_is_size, 0);
#else
    OFFSET(int_tag, PyVarObject, ob_size);
    OFFSET(int_digits, PyLongObject, ob_digit);
    VALUE(int_tag_is_size, 1);
#endif
    OFFSET(var_size, PyVarObject, ob_size);
    OFFSET(tuple_items, PyTupleObject, ob_item);
    OFFSET(list_items, PyListObject, ob_item);
    OFFSET(bytes_data, PyBytesObject, ob_sval);
    OFFSET(dict_keys, PyDictObject, ma_keys);
    OFFSET(dict_values, PyDictObject, ma_values);
    OFFSET(keys_log2_index_bytes, struct _dictkeysobject, dk_log2_index_bytes);
    OFFSET(keys_kind, struct _dictkeysobject, dk_kind);
    OFFSET(keys_entries_used, struct _dictkeysobject, dk_nentries);
    OFFSET(keys_indices, struct _dictkeysobject, dk_indices);
    print_line("kinds of dictionary keys", DICT_KEYS_GENERAL << 8 | DICT_KEYS_UNICODE << 4 | DICT_KEYS_SPLIT, 0x012);
    OFFSET(set_used, PySetObject, used);
    OFFSET(set_mask, PySetObject, mask);
    OFFSET(set_table, PySetObject, table);
}

static void print_types_and_attributes(void) {
    PyObject object = {0};
    OFFSET(type_flags, PyTypeObject, tp_flags);
    OFFSET(type_base, PyTypeObject, tp_base);
    OFFSET(type_basicsize, PyTypeObject, tp_basicsize);
    OFFSET(type_dictoffset, PyTypeObject, tp_dictoffset);
    OFFSET(type_cached_keys, PyHeapTypeObject, ht_cached_keys);
    VALUE(type_flag_managed_dict, Py_TPFLAGS_MANAGED_DICT);
    OFFSET(values_items, PyDictValues, values);
#if PY_MINOR_VERSION >= 13
    VALUE(type_flag_inline_values, Py_TPFLAGS_INLINE_VALUES);
    VALUE(instance_dict, MANAGED_DICT_OFFSET);
    VALUE(instance_values, 0);
    VALUE(instance_dict_tagged, 0);
    OFFSET(values_valid, PyDictValues, valid);
#elif PY_MINOR_VERSION == 12
    VALUE(type_flag_inline_values, 0);
    VALUE(instance_dict, (char *)_PyObject_DictOrValuesPointer(&object) - (char *)&object);
    VALUE(instance_values, 0);
    PyDictOrValues tagged = {.values = (char *)&object + 7};
    VALUE(instance_dict_tagged, _PyDictOrValues_IsValues(tagged) && (char *)_PyDictOrValues_GetValues(tagged) == tagged.values + 1);
    ABSENT(values_valid);
#else
    VALUE(type_flag_inline_values, 0);
    VALUE(instance_dict, MANAGED_DICT_OFFSET);
    VALUE(instance_values, (char *)_PyObject_ValuesPointer(&object) - (char *)&object);
    VALUE(instance_dict_tagged, 0);
    ABSENT(values_valid);
#endif
    (void)object;
    OFFSET(interp_next_thread_id, PyInterpreterState, threads.next_unique_id);
    OFFSET(function_globals, PyFunctionObject, func_globals);
    OFFSET(function_code, PyFunctionObject, func_code);
    OFFSET(function_closure, PyFunctionObject, func_closure);
    OFFSET(cell_contents, PyCellObject, ob_ref);
    OFFSET(method_function, PyMethodObject, im_func);
    OFFSET(method_self, PyMethodObject, im_self);
    OFFSET(builtin_definition, PyCFunctionObject, m_ml);
    OFFSET(builtin_self, PyCFunctionObject, m_self);
    OFFSET(weakref_object, PyWeakReference, wr_object);
    print_line("type of an object", offsetof(PyObject, ob_type), 8);
}

static void print_contexts(void) {
    OFFSET(context_vars, PyContext, ctx_vars);
    OFFSET(hamt_root, PyHamtObject, h_root);
    OFFSET(contextvar_hash, PyContextVar, var_hash);
#if PY_MINOR_VERSION >= 12
    OFFSET(hamt_bitmap, PyHamtNode_Bitmap, b_bitmap);
    OFFSET(hamt_bitmap_items, PyHamtNode_Bitmap, b_array);
#endif
}

static void print_later(void) {
#if PY_MINOR_VERSION >= 14
    VALUE(reference_tags, Py_TAG_BITS);
    OFFSET(thread_running_task, _PyThreadStateImpl, asyncio_running_task);
    OFFSET(thread_tasks, _PyThreadStateImpl, asyncio_tasks_head);
    OFFSET(interp_tasks, PyInterpreterState, asyncio_tasks_head);
    OFFSET(node_next, struct llist_node, next);
    OFFSET(node_previous, struct llist_node, prev);
#else
    VALUE(reference_tags, 0);
    VALUE(awaited_depth, 1);
    ABSENT(thread_running_task);
    ABSENT(future_awaited_by);
    ABSENT(future_awaited_by_is_set);
    ABSENT(thread_tasks);
    ABSENT(interp_tasks);
    ABSENT(task_node);
    ABSENT(node_next);
    ABSENT(node_previous);
#endif
}

int main(void) {
    print_later();
    VALUE(minor, PY_MINOR_VERSION);
    print_threads();
    print_frames();
    print_code();
    print_scalars_and_containers();
    print_types_and_attributes();
    print_contexts();
    return 0;
}
