#include "string_table.h"

#include <string.h>

static bool has_key(const void *entry, const void *key, size_t key_size) {
    const struct string_entry *string = entry;
    return string->size == key_size && !memcmp(string->bytes, key, key_size);
}

bool string_table_init(struct string_table *table, struct memory_account *account, uint32_t max_size) {
    intern_table_init(&table->entries, account, sizeof(struct string_entry), max_size);
    table->entries.has_key = has_key;
    arena_init(&table->text, 0);
    return string_table_add(table, "", 0) == 0;
}

void string_table_reset(struct string_table *table) {
    intern_table_reset(&table->entries);
    arena_reset(&table->text);
    string_table_add(table, "", 0); /* cannot fail: there was room for it before */
}

void string_table_destroy(struct string_table *table) {
    table->entries.account->used -= table->text.used;
    arena_destroy(&table->text);
    intern_table_destroy(&table->entries);
}

static char *allocate_text(struct string_table *table, size_t size) {
    struct memory_account *account = table->entries.account;
    size_t before = table->text.used;
    table->text.limit = before + (account->limit - account->used);
    char *text = arena_alloc(&table->text, size);
    account->used += table->text.used - before;
    return text;
}

uint32_t string_table_add(struct string_table *table, const char *bytes, size_t size) {
    if (size > MAX_STRING_BYTES) return INTERN_NONE;
    uint32_t hash = intern_table_hash(&table->entries, bytes, size);
    uint32_t id = intern_table_find(&table->entries, hash, bytes, size);
    if (id != INTERN_NONE) return id;
    if (!intern_table_reserve(&table->entries, 1)) return INTERN_NONE;
    char *text = allocate_text(table, size);
    if (!text) return INTERN_NONE;
    if (size) memcpy(text, bytes, size);
    *(struct string_entry *)intern_table_append(&table->entries, hash) = (struct string_entry){text, size};
    return table->entries.size - 1;
}

const struct string_entry *string_table_at(const struct string_table *table, uint32_t id) {
    return (const struct string_entry *)table->entries.entries + id;
}
