/* Where CPython keeps things: offsets, values and flags of the running version. Readers know no version, only this table. */
#ifndef OTEL_ASYNCPROF_LAYOUT_H
#define OTEL_ASYNCPROF_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* Largest offset or size that a table may name: a larger one is a broken table. Keeps sums far from overflow. */
#define MAX_LAYOUT_OFFSET (1u << 20)
/* What readers copy of an object at once: the fields that they take from the copy lie inside. */
#define MAX_THREAD_STATE_BYTES 512
#define MAX_FRAME_HEAD_BYTES 88 /* up to localsplus */
#define MAX_CODE_HEAD_BYTES 224 /* up to the instructions */
#define MAX_STR_HEAD_BYTES 80
/* Field of every object, behind its reference count. */
#define OBJECT_TYPE 8
#define LAYOUT_ABSENT UINT32_MAX /* the field does not exist in this version */

struct layout {
    uint32_t minor; /* 11 for 3.11 */

    /* PyThreadState */
    uint32_t thread_prev, thread_next, thread_interp, thread_dict, thread_ident, thread_native_id, thread_context;
    uint32_t thread_frame;      /* of current_frame, or of cframe when frames are reached through it */
    uint32_t cframe_frame;      /* of current_frame in _PyCFrame; absent from 3.13 on */
    uint32_t thread_context_version; /* PyThreadState.context_ver: counted up with each entering and leaving of a context */
    uint32_t thread_unique_id;  /* PyThreadState.id: never used twice */
    uint32_t thread_datastack_chunk, thread_datastack_top;
    uint32_t thread_size;       /* bytes to copy to have all of the above */
    uint32_t thread_running_loop; /* asyncio's loop; up to 3.12 it stands in the thread's dict instead */
    uint32_t thread_running_task; /* and its task; up to 3.13 asyncio keeps that in a dict of its own */
    uint32_t interp_threads_head, interp_size;
    uint32_t interp_next_thread_id; /* of the unique id that the next thread state gets */
    uint32_t interp_gil;        /* pointer to the lock */
    uint32_t interp_runtime, runtime_gil; /* 3.11: pointer to the runtime, and the lock in it, instead */
    uint32_t gil_holder;        /* the thread state that holds it, or held it last */
    uint32_t gil_locked;        /* int: 1 while it is held */

    /* _PyInterpreterFrame */
    uint32_t frame_previous, frame_code, frame_instruction, frame_owner, frame_localsplus;
    uint32_t frame_stacktop;     /* int: entries in localsplus, the value stack included; absent from 3.14 on */
    uint32_t frame_stackpointer; /* pointer behind the uppermost of them; absent before */
    uint32_t reference_tags;     /* bits of a reference in a frame that are no part of the address: 0 before 3.14 */
    uint32_t awaited_depth;      /* what a suspended frame awaits: 1 = the uppermost entry */
    uint32_t owner_generator;   /* value of owner for a frame inside a generator object */
    uint32_t owner_skip_from;   /* owners from this value on are entry frames without code of their own */
    uint32_t frame_is_entry;    /* 3.11: byte that marks a frame entered from C; later, each of those stands on an entry frame */

    /* generator, coroutine, async generator */
    uint32_t generator_frame, generator_state;
    int32_t state_created, state_suspended_from, state_suspended_to, state_executing;
    int32_t state_awaiting;     /* from this suspended state on it awaits; 0 = the next instruction tells */
    uint8_t resume_opcodes[2];  /* RESUME in its forms; an argument of 2 or more follows an await */

    /* PyCodeObject */
    uint32_t code_size, code_first_line, code_filename, code_qualname, code_linetable, code_first_traceable, code_instructions;
    uint32_t code_version;      /* differs in two code objects at one address; absent in 3.11 */

    /* str: 8 bytes after hash stands the state bit field, whose bits 3..7 hold kind, compact, ascii */
    uint32_t str_length, str_hash, str_state, str_ascii_data, str_compact_data, str_legacy_data;
    /* int */
    uint32_t int_tag, int_digits;
    bool int_tag_is_size;       /* up to 3.11: signed number of digits; later: number << 3 | sign */

    /* containers */
    uint32_t tuple_items, list_items, var_size, bytes_data;
    uint32_t dict_keys, dict_values;
    uint32_t keys_log2_index_bytes, keys_kind, keys_entries_used, keys_indices;
    uint32_t set_used, set_mask, set_table;
    uint32_t deque_left_block, deque_left_index, deque_block_items, deque_block_length;

    /* type objects, and where an instance keeps its attributes */
    uint32_t type_flags, type_base, type_basicsize, type_dictoffset, type_cached_keys;
    uint64_t type_flag_managed_dict, type_flag_inline_values; /* inline: 0 before 3.13 */
    int32_t instance_dict;      /* pointer before the object: to the dict (or tagged to the values in 3.12) */
    int32_t instance_values;    /* 3.11: pointer before the object to the values; 0 = not so */
    bool instance_dict_tagged;  /* 3.12: bit 0 set means values, one byte further */
    uint32_t values_items;      /* offset of the first value */
    uint32_t values_valid;      /* 3.13: byte that is 0 once the values have moved to a dict; absent before */

    /* callables and cells */
    uint32_t function_globals, function_code, function_closure, cell_contents, method_function, method_self;
    uint32_t builtin_definition, builtin_self, partial_function, partial_args;

    /* awaitables that hold the inner one, all at the same place: asend, athrow, coroutine wrapper, anext, future iterator */
    uint32_t wrapper_inner;
    uint32_t weakref_object;

    /* _asyncio Future and Task */
    uint32_t future_loop, future_callback0, future_callbacks, future_state;
    uint32_t task_waiter, task_coroutine, task_name, task_context, task_size;
    uint32_t future_pending;    /* value of state */
    uint32_t future_awaited_by, future_awaited_by_is_set; /* 3.14: one future or a set of them, and a byte that tells which */

    /* 3.14: tasks in lists, one in each thread state, and one in the interpreter for those whose thread has ended */
    uint32_t thread_tasks, interp_tasks, task_node, node_next, node_previous;

    /* contextvars */
    uint32_t context_vars, hamt_root, contextvar_hash;
    uint32_t hamt_bitmap, hamt_bitmap_items, hamt_array_items, hamt_collision_items, hamt_collision_size;

    /* data stack */
    uint32_t chunk_previous, chunk_top, chunk_data;
};

extern const struct layout layout_3_11, layout_3_12, layout_3_13, layout_3_14, layout_3_15;

/* The table of the running version; set once by layout_select, before any reader runs. */
extern struct layout layout;

/* False when no table describes this minor version. */
bool layout_select(unsigned minor);

/* Addresses of this process' objects, taken under the GIL before the sampler starts. Types are immortal for our purposes: Python
   holds a reference to each while the sampler runs. X(name) in the order of the struct. */
#define ANCHOR_LIST(X) \
    X(type_code) X(type_coroutine) X(type_generator) X(type_async_generator) X(type_asend) X(type_athrow) \
    X(type_coroutine_wrapper) X(type_anext) X(type_task) X(type_future) X(type_gathering) X(type_weakref) \
    X(type_function) X(type_method) X(type_builtin) X(type_cell) X(type_partial) X(type_deque) X(type_queue) \
    X(type_str) X(type_int) X(type_loop_holder) X(none) X(false_object) X(scheduled_tasks) X(python_tasks) X(eager_tasks) \
    X(current_tasks) X(threads) X(task_wakeup) X(globals_tasks) X(globals_task_groups) X(globals_base_events) \
    X(code_wait) X(code_wait_for) X(code_cancel_and_wait) X(code_group_end) X(code_next_completed) X(code_shield) \
    X(name_running_loop) X(name_parent_task) X(name_on_completed) X(name_children) X(name_todo) X(name_getters) X(name_done) \
    X(name_name) X(name_context) X(name_end_time) X(span_key) X(context_var) X(context_bitmap) X(context_array) \
    X(type_span_view) X(span_view_offset) X(type_span_context_holder) X(interpreter)

struct anchors {
#define ANCHOR_FIELD(name) uint64_t name;
    ANCHOR_LIST(ANCHOR_FIELD)
#undef ANCHOR_FIELD
};
extern struct anchors anchors;
extern const char *const anchor_names[];
extern const unsigned anchor_count;

#endif
