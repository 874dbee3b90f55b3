/* The ProfilesDictionary of one request in the making: what its samples use, each entry encoded when it is first used. */
#ifndef OTEL_ASYNCPROF_OTLP_DICTIONARY_H
#define OTEL_ASYNCPROF_OTLP_DICTIONARY_H

#include "intern_table.h"
#include "protobuf.h"
#include "stack_table.h"

/* Field numbers of ProfilesDictionary. */
enum { TABLE_MAPPING = 1, TABLE_LOCATION, TABLE_FUNCTION, TABLE_LINK, TABLE_STRING, TABLE_ATTRIBUTE, TABLE_STACK, TABLES };

/* Strings that every export needs; a profiled program may well use the same ones. */
#define FIXED_STRING_LIST(X)                                 \
    X(STRING_SAMPLES, "samples")                             \
    X(STRING_COUNT, "count")                                 \
    X(STRING_CPU, "cpu")                                     \
    X(STRING_WALL, "wall")                                   \
    X(STRING_NANOSECONDS, "nanoseconds")                     \
    X(STRING_FRAME_TYPE, "profile.frame.type")               \
    X(STRING_THREAD_NAME, "thread.name")                     \
    X(STRING_STATE, "asyncprof.state")                       \
    X(STRING_THREAD_ID, "thread.id")                         \
    X(STRING_TASK_NAME, "asyncio.task.name")                 \
    X(STRING_LOCAL_ROOT_NAME, "asyncprof.local_root.name")

enum fixed_string {
#define FIXED_ENUM(name, text) name,
    FIXED_STRING_LIST(FIXED_ENUM)
#undef FIXED_ENUM
    FIXED_STRINGS
};

struct otlp_dictionary {
    const struct stack_table *table;
    struct stack_table_view view;
    struct memory_account account;
    struct pb_buffer tables[TABLES];     /* encoded entries, by field number; the first is the zero value */
    uint32_t sizes[TABLES];              /* entries */
    uint32_t *indices[TABLES];           /* id in the stack table -> index in this request; 0 = not used yet */
    uint32_t n_ids[TABLES];
    uint32_t fixed_ids[FIXED_STRINGS];   /* the stack table's id, or one behind its last */
    struct intern_table attributes;      /* struct attribute: id = index */
    struct intern_table stacks;          /* node: id = index; far fewer than there are nodes */
    uint32_t frame_type;                 /* index of the attribute that all locations have; 0 = not used yet */
};

/* False when memory is short; to be freed in any case. */
bool otlp_dictionary_init(struct otlp_dictionary *dictionary, const struct stack_table *table);
void otlp_dictionary_free(struct otlp_dictionary *dictionary);
/* Starts the dictionary of another request: only the zero values. */
void otlp_dictionary_reset(struct otlp_dictionary *dictionary);

/* The index in this request of something that a sample uses. */
uint32_t otlp_dictionary_fixed_string(struct otlp_dictionary *dictionary, enum fixed_string string);
uint32_t otlp_dictionary_stack(struct otlp_dictionary *dictionary, uint32_t node);
uint32_t otlp_dictionary_link(struct otlp_dictionary *dictionary, uint32_t link);

/* The attributes of a sample that are not absent (0), in a fixed order; returns how many. */
#define MAX_SAMPLE_ATTRIBUTES 5
size_t otlp_dictionary_attributes(struct otlp_dictionary *dictionary, const struct sample_key *key,
                                  uint32_t indices[MAX_SAMPLE_ATTRIBUTES]);

size_t otlp_dictionary_bytes(const struct otlp_dictionary *dictionary);
bool otlp_dictionary_failed(const struct otlp_dictionary *dictionary);

#endif
