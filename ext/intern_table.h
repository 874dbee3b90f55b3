/* A growing array of distinct entries with dense ids and an open-addressing index. Memory is kept at reset. */
#ifndef OTEL_ASYNCPROF_INTERN_TABLE_H
#define OTEL_ASYNCPROF_INTERN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The memory that several arrays share. The limit holds while an array is moved too: old and new are both counted then. */
struct memory_account {
    size_t used, limit; /* bytes; used <= limit */
};

/* Resizes an array within the account. False, with nothing changed, when the limit is reached or memory is short. */
bool memory_account_resize(struct memory_account *account, void **array, size_t old_bytes, size_t new_bytes);

#define INTERN_NONE UINT32_MAX
#define INTERN_FIRST_CAPACITY 64u

struct intern_slot {
    uint32_t hash;
    uint32_t id_plus_one; /* 0 = empty */
};

struct intern_table {
    struct memory_account *account;
    /* Whether entry has this key. NULL: the first key_size bytes of the entry are the key. */
    bool (*has_key)(const void *entry, const void *key, size_t key_size);
    void *entries;
    struct intern_slot *slots; /* twice the capacity, so never more than half full */
    uint32_t size, capacity, max_size, entry_size; /* capacity: 0 or a power of two */
    uint64_t seed; /* from the address: whoever chooses names cannot choose collisions */
};

/* max_size: a power of two, at least INTERN_FIRST_CAPACITY. */
void intern_table_init(struct intern_table *table, struct memory_account *account, uint32_t entry_size, uint32_t max_size);
void intern_table_reset(struct intern_table *table);
void intern_table_destroy(struct intern_table *table);

uint32_t intern_table_hash(const struct intern_table *table, const void *key, size_t key_size);
/* The id of the entry with this key, or INTERN_NONE. */
uint32_t intern_table_find(const struct intern_table *table, uint32_t hash, const void *key, size_t key_size);
/* Makes room for count more entries; false when full or memory is short. */
bool intern_table_reserve(struct intern_table *table, uint32_t count);
/* A new entry, for the caller to fill; its id is table->size - 1. NULL when full. The key must not be there yet. */
void *intern_table_append(struct intern_table *table, uint32_t hash);

/* Finds or appends the entry that starts with this key, its other bytes zero. INTERN_NONE when full. */
uint32_t intern_table_add(struct intern_table *table, const void *key, size_t key_size);

#endif
