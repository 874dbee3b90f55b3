/* Distinct strings with dense ids; id 0 is the empty string. The bytes stay where they are until reset. */
#ifndef OTEL_ASYNCPROF_STRING_TABLE_H
#define OTEL_ASYNCPROF_STRING_TABLE_H

#include "arena.h"
#include "intern_table.h"

#define MAX_STRING_BYTES ((size_t)1 << 20)

struct string_entry {
    const char *bytes;
    size_t size;
};

struct string_table {
    struct intern_table entries; /* struct string_entry */
    struct arena text;           /* draws on the account of entries */
};

/* False when memory is short; to be destroyed then, too. */
bool string_table_init(struct string_table *table, struct memory_account *account, uint32_t max_size);
void string_table_reset(struct string_table *table);
void string_table_destroy(struct string_table *table);

/* The id of an equal string or of a new one; INTERN_NONE when full or longer than MAX_STRING_BYTES. */
uint32_t string_table_add(struct string_table *table, const char *bytes, size_t size);
const struct string_entry *string_table_at(const struct string_table *table, uint32_t id);

#endif
