#include "otlp_dictionary.h"

#include <stdlib.h>
#include <string.h>

/* Field numbers of the messages in the tables. */
enum { LOCATION_LINES = 3, LOCATION_ATTRIBUTES = 4, LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { FUNCTION_NAME = 1, FUNCTION_FILENAME = 3, FUNCTION_START_LINE = 4 };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2, STACK_LOCATIONS = 1 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, VALUE_STRING = 1, VALUE_INT = 3 };

#define MAX_INDEX_BYTES 5 /* a varint of 32 bits */
#define MAX_FIXED_STRING_BYTES 25u
#define MAX_ATTRIBUTES (1u << 20) /* more than the samples of one request can have */
#define MAX_STACKS (1u << 20)     /* likewise */
#define FRAME_TYPE "cpython"

struct attribute {
    uint64_t key; /* enum fixed_string; never 0 but for the zero value */
    uint64_t value;
};

static const struct {
    const char *text;
    size_t size;
} fixed_strings[FIXED_STRINGS] = {
#define FIXED_TEXT(name, text) {text, sizeof text - 1},
    FIXED_STRING_LIST(FIXED_TEXT)
#undef FIXED_TEXT
};

static const char *const state_names[] = {
    [STATE_RUNNING] = "running", [STATE_BLOCKED] = "blocked", [STATE_WAITING] = "waiting", [STATE_READY] = "ready"};

static void find_fixed_strings(struct otlp_dictionary *dictionary) {
    uint32_t n_strings = dictionary->view.n_strings;
    for (uint32_t i = 0; i < FIXED_STRINGS; i++) dictionary->fixed_ids[i] = n_strings + i;
    for (uint32_t id = 1; id < n_strings; id++) {
        size_t size;
        const char *text = stack_table_string_at(dictionary->table, id, &size);
        for (uint32_t i = 0; size <= MAX_FIXED_STRING_BYTES && i < FIXED_STRINGS; i++)
            if (fixed_strings[i].size == size && !memcmp(fixed_strings[i].text, text, size)) dictionary->fixed_ids[i] = id;
    }
}

bool otlp_dictionary_init(struct otlp_dictionary *dictionary, const struct stack_table *table) {
    *dictionary = (struct otlp_dictionary){.table = table, .view = stack_table_view(table), .account = {.limit = SIZE_MAX}};
    intern_table_init(&dictionary->attributes, &dictionary->account, sizeof(struct attribute), MAX_ATTRIBUTES);
    intern_table_init(&dictionary->stacks, &dictionary->account, sizeof(uint32_t), MAX_STACKS);
    dictionary->n_ids[TABLE_LOCATION] = dictionary->view.n_locations;
    dictionary->n_ids[TABLE_FUNCTION] = dictionary->view.n_functions;
    dictionary->n_ids[TABLE_LINK] = dictionary->view.n_links;
    dictionary->n_ids[TABLE_STRING] = dictionary->view.n_strings + FIXED_STRINGS;
    for (unsigned i = 0; i < TABLES; i++) {
        if (!dictionary->n_ids[i]) continue;
        dictionary->indices[i] = calloc(dictionary->n_ids[i], sizeof(uint32_t));
        if (!dictionary->indices[i]) return false;
    }
    find_fixed_strings(dictionary);
    otlp_dictionary_reset(dictionary);
    return !otlp_dictionary_failed(dictionary);
}

void otlp_dictionary_free(struct otlp_dictionary *dictionary) {
    for (unsigned i = 0; i < TABLES; i++) {
        pb_free(&dictionary->tables[i]);
        free(dictionary->indices[i]);
    }
    intern_table_destroy(&dictionary->attributes);
    intern_table_destroy(&dictionary->stacks);
}

void otlp_dictionary_reset(struct otlp_dictionary *dictionary) {
    for (unsigned i = TABLE_MAPPING; i < TABLES; i++) {
        if (dictionary->indices[i]) memset(dictionary->indices[i], 0, dictionary->n_ids[i] * sizeof(uint32_t));
        dictionary->tables[i].size = 0;
        pb_bytes_field(&dictionary->tables[i], i, NULL, 0);
        dictionary->sizes[i] = 1;
    }
    dictionary->frame_type = 0;
    intern_table_reset(&dictionary->attributes);
    intern_table_reset(&dictionary->stacks);
    if (intern_table_add(&dictionary->attributes, &(struct attribute){0}, sizeof(struct attribute)) != 0)
        dictionary->tables[TABLE_ATTRIBUTE].failed = true;
    if (intern_table_add(&dictionary->stacks, &(uint32_t){0}, sizeof(uint32_t)) != 0) dictionary->tables[TABLE_STACK].failed = true;
}

static uint32_t add_index(struct otlp_dictionary *dictionary, unsigned table, uint32_t id) {
    return dictionary->indices[table][id] = dictionary->sizes[table]++;
}

static uint32_t index_of_string(struct otlp_dictionary *dictionary, uint32_t id) {
    if (!id || dictionary->indices[TABLE_STRING][id]) return dictionary->indices[TABLE_STRING][id];
    uint32_t n_strings = dictionary->view.n_strings;
    size_t size = id < n_strings ? 0 : fixed_strings[id - n_strings].size;
    const char *text = id < n_strings ? stack_table_string_at(dictionary->table, id, &size) : fixed_strings[id - n_strings].text;
    pb_bytes_field(&dictionary->tables[TABLE_STRING], TABLE_STRING, text, size);
    return add_index(dictionary, TABLE_STRING, id);
}

uint32_t otlp_dictionary_fixed_string(struct otlp_dictionary *dictionary, enum fixed_string string) {
    return index_of_string(dictionary, dictionary->fixed_ids[string]);
}

static void put_attribute_value(struct otlp_dictionary *dictionary, struct pb_buffer *buffer, struct attribute attribute) {
    size_t size;
    if (attribute.key == STRING_THREAD_ID) {
        pb_varint_field(buffer, VALUE_INT, attribute.value);
    } else if (attribute.key == STRING_FRAME_TYPE) {
        pb_bytes_field(buffer, VALUE_STRING, FRAME_TYPE, sizeof FRAME_TYPE - 1);
    } else if (attribute.key == STRING_STATE) {
        pb_bytes_field(buffer, VALUE_STRING, state_names[attribute.value], strlen(state_names[attribute.value]));
    } else {
        const char *text = stack_table_string_at(dictionary->table, (uint32_t)attribute.value, &size);
        pb_bytes_field(buffer, VALUE_STRING, text, size);
    }
}

static uint32_t index_of_attribute(struct otlp_dictionary *dictionary, enum fixed_string key, uint64_t value) {
    struct attribute attribute = {key, value};
    uint32_t before = dictionary->attributes.size;
    uint32_t index = intern_table_add(&dictionary->attributes, &attribute, sizeof attribute);
    struct pb_buffer *buffer = &dictionary->tables[TABLE_ATTRIBUTE];
    if (index == INTERN_NONE) buffer->failed = true;
    if (dictionary->attributes.size == before) return index;
    uint32_t key_index = otlp_dictionary_fixed_string(dictionary, key);
    struct pb_nested entry = pb_begin(buffer, TABLE_ATTRIBUTE, 0);
    pb_varint_field(buffer, ATTRIBUTE_KEY, key_index);
    struct pb_nested any_value = pb_begin(buffer, ATTRIBUTE_VALUE, 0);
    put_attribute_value(dictionary, buffer, attribute);
    pb_end(buffer, any_value);
    pb_end(buffer, entry);
    return index;
}

size_t otlp_dictionary_attributes(struct otlp_dictionary *dictionary, const struct sample_key *key,
                                  uint32_t indices[MAX_SAMPLE_ATTRIBUTES]) {
    size_t count = 0;
    if (key->thread_name) indices[count++] = index_of_attribute(dictionary, STRING_THREAD_NAME, key->thread_name);
    if (key->state) indices[count++] = index_of_attribute(dictionary, STRING_STATE, key->state);
    if (key->thread_id) indices[count++] = index_of_attribute(dictionary, STRING_THREAD_ID, key->thread_id);
    if (key->task_name) indices[count++] = index_of_attribute(dictionary, STRING_TASK_NAME, key->task_name);
    if (key->local_root_name) indices[count++] = index_of_attribute(dictionary, STRING_LOCAL_ROOT_NAME, key->local_root_name);
    return count;
}

static uint32_t index_of_function(struct otlp_dictionary *dictionary, uint32_t id) {
    if (!id || dictionary->indices[TABLE_FUNCTION][id]) return dictionary->indices[TABLE_FUNCTION][id];
    struct function function = dictionary->view.functions[id];
    uint32_t name = index_of_string(dictionary, function.name), filename = index_of_string(dictionary, function.filename);
    struct pb_buffer *buffer = &dictionary->tables[TABLE_FUNCTION];
    struct pb_nested entry = pb_begin(buffer, TABLE_FUNCTION, 0);
    pb_varint_field(buffer, FUNCTION_NAME, name);
    pb_varint_field(buffer, FUNCTION_FILENAME, filename);
    pb_varint_field(buffer, FUNCTION_START_LINE, function.first_line);
    pb_end(buffer, entry);
    return add_index(dictionary, TABLE_FUNCTION, id);
}

static uint32_t index_of_location(struct otlp_dictionary *dictionary, uint32_t id) {
    uint32_t index = dictionary->indices[TABLE_LOCATION][id];
    if (index) return index;
    struct location location = dictionary->view.locations[id];
    uint32_t function = index_of_function(dictionary, location.function);
    if (!dictionary->frame_type) dictionary->frame_type = index_of_attribute(dictionary, STRING_FRAME_TYPE, 0);
    struct pb_buffer *buffer = &dictionary->tables[TABLE_LOCATION];
    struct pb_nested entry = pb_begin(buffer, TABLE_LOCATION, 0);
    struct pb_nested line = pb_begin(buffer, LOCATION_LINES, 0);
    pb_varint_field(buffer, LINE_FUNCTION, function);
    pb_varint_field(buffer, LINE_LINE, location.line);
    pb_end(buffer, line);
    struct pb_nested attributes = pb_begin(buffer, LOCATION_ATTRIBUTES, 0);
    pb_varint(buffer, dictionary->frame_type);
    pb_end(buffer, attributes);
    pb_end(buffer, entry);
    return add_index(dictionary, TABLE_LOCATION, id);
}

uint32_t otlp_dictionary_stack(struct otlp_dictionary *dictionary, uint32_t node) {
    const struct stack_node *nodes = dictionary->view.nodes;
    struct pb_buffer *buffer = &dictionary->tables[TABLE_STACK];
    uint32_t before = dictionary->stacks.size, index = intern_table_add(&dictionary->stacks, &node, sizeof node);
    if (index == INTERN_NONE) buffer->failed = true;
    if (dictionary->stacks.size == before) return index;
    size_t expected = nodes[node].depth * pb_varint_size(dictionary->sizes[TABLE_LOCATION]);
    struct pb_nested entry = pb_begin(buffer, TABLE_STACK, expected + 1 + pb_varint_size(expected));
    struct pb_nested locations = pb_begin(buffer, STACK_LOCATIONS, expected);
    if (pb_reserve(buffer, (size_t)nodes[node].depth * MAX_INDEX_BYTES))
        for (uint32_t at = node; at; at = nodes[at].parent) /* depth steps: a parent has a smaller id */
            pb_put_varint(buffer, index_of_location(dictionary, nodes[at].location));
    pb_end(buffer, locations);
    pb_end(buffer, entry);
    return index;
}

uint32_t otlp_dictionary_link(struct otlp_dictionary *dictionary, uint32_t link) {
    if (!link || dictionary->indices[TABLE_LINK][link]) return dictionary->indices[TABLE_LINK][link];
    const struct link *ids = &dictionary->view.links[link];
    struct pb_buffer *buffer = &dictionary->tables[TABLE_LINK];
    struct pb_nested entry = pb_begin(buffer, TABLE_LINK, 0);
    pb_bytes_field(buffer, LINK_TRACE_ID, ids->trace_id, sizeof ids->trace_id);
    pb_bytes_field(buffer, LINK_SPAN_ID, ids->span_id, sizeof ids->span_id);
    pb_end(buffer, entry);
    return add_index(dictionary, TABLE_LINK, link);
}

size_t otlp_dictionary_bytes(const struct otlp_dictionary *dictionary) {
    size_t bytes = 0;
    for (unsigned i = TABLE_MAPPING; i < TABLES; i++) bytes += dictionary->tables[i].size;
    return bytes;
}

bool otlp_dictionary_failed(const struct otlp_dictionary *dictionary) {
    for (unsigned i = TABLE_MAPPING; i < TABLES; i++)
        if (dictionary->tables[i].failed) return true;
    return false;
}
