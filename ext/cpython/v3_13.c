/* CPython 3.13: constants, checked by offsetof in tests/native/test_layout.py and by the self-check at start. */
#include "layout.h"

const struct layout layout_3_13 = {
    .minor = 13, .thread_prev = 0, .thread_next = 8, .thread_interp = 16, .thread_dict = 128, .thread_ident = 152,
    .thread_native_id = 160, .thread_context = 208, .thread_frame = 72, .cframe_frame = LAYOUT_ABSENT,
    .thread_unique_id = 224, .thread_datastack_chunk = 232, .thread_datastack_top = 240, .thread_size = 312,
    .thread_running_loop = 304, .interp_threads_head = 7344, .frame_previous = 8, .frame_code = 0,
    .frame_instruction = 56, .frame_stacktop = 64, .frame_owner = 70, .frame_localsplus = 72, .owner_generator = 1,
    .owner_skip_from = 3, .frame_is_entry = LAYOUT_ABSENT, .generator_frame = 72, .generator_state = 67,
    .state_created = -3, .state_suspended_from = -2, .state_suspended_to = -1, .state_executing = 0,
    .state_awaiting = -1, .resume_opcodes = {0, 0}, .code_size = 16, .code_first_line = 68, .code_filename = 112,
    .code_qualname = 128, .code_linetable = 136, .code_first_traceable = 184, .code_instructions = 200,
    .code_nlocalsplus = 72, .code_stacksize = 64, .code_version = 92, .str_length = 16, .str_hash = 24,
    .str_state = 32, .str_ascii_data = 40, .str_compact_data = 56, .str_legacy_data = 56, .int_tag = 16,
    .int_digits = 24, .int_tag_is_size = false, .tuple_items = 24, .list_items = 24, .var_size = 16, .bytes_data = 32,
    .dict_used = 16, .dict_keys = 32, .dict_values = 40, .keys_log2_index_bytes = 9, .keys_kind = 10,
    .keys_entries_used = 24, .keys_indices = 32, .set_fill = 16, .set_mask = 32, .set_table = 40,
    .deque_left_block = 24, .deque_left_index = 40, .deque_block_items = 8, .deque_block_length = 64,
    .type_flags = 168, .type_base = 256, .type_basicsize = 32, .type_dictoffset = 288, .type_cached_keys = 880,
    .type_flag_managed_dict = 1u << 4, .type_flag_inline_values = 1u << 2, .instance_dict = -24, .instance_values = 0,
    .instance_dict_tagged = false, .values_items = 8, .values_valid = 3, .function_closure = 72, .cell_contents = 16,
    .method_self = 24, .builtin_definition = 16, .builtin_self = 24, .partial_function = 16, .partial_args = 24,
    .wrapper_inner = 16, .weakref_object = 16, .future_loop = 16, .future_callback0 = 24, .future_callbacks = 40,
    .future_state = 96, .task_waiter = 112, .task_coroutine = 120, .task_name = 128, .task_context = 136,
    .task_size = 144, .future_pending = 0, .context_vars = 24, .hamt_root = 16, .contextvar_hash = 56,
    .hamt_bitmap = 24, .hamt_bitmap_items = 32, .hamt_array_items = 16, .hamt_collision_items = 32,
    .hamt_collision_size = 16, .chunk_previous = 0, .chunk_size = 8, .chunk_top = 16, .chunk_data = 24,
};
