#include "intern_table.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_PER_ENTRY 2u

bool memory_account_resize(struct memory_account *account, void **array, size_t old_bytes, size_t new_bytes) {
    if (new_bytes > account->limit - account->used) return false;
    void *moved = realloc(*array, new_bytes);
    if (!moved) return false;
    *array = moved;
    account->used += new_bytes - old_bytes;
    return true;
}

/* One round of a multiply-xorshift mixer: each input bit reaches every output bit after two rounds. */
static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9fb21c651e98df25ull;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93ull;
    return hash ^ hash >> 29;
}

void intern_table_init(struct intern_table *table, struct memory_account *account, uint32_t entry_size, uint32_t max_size) {
    *table = (struct intern_table){.account = account, .entry_size = entry_size, .max_size = max_size};
    table->seed = mix(0, (uint64_t)(uintptr_t)table);
}

void intern_table_reset(struct intern_table *table) {
    table->size = 0;
    if (table->slots) memset(table->slots, 0, (size_t)table->capacity * SLOTS_PER_ENTRY * sizeof *table->slots);
}

void intern_table_destroy(struct intern_table *table) {
    free(table->entries);
    free(table->slots);
    table->account->used -= (size_t)table->capacity * (table->entry_size + SLOTS_PER_ENTRY * sizeof *table->slots);
    table->entries = NULL;
    table->slots = NULL;
    table->size = table->capacity = 0;
}

uint32_t intern_table_hash(const struct intern_table *table, const void *key, size_t key_size) {
    const unsigned char *bytes = key;
    uint64_t hash = mix(table->seed, key_size), word;
    for (; key_size >= sizeof word; bytes += sizeof word, key_size -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = mix(hash, word);
    }
    if (key_size) {
        word = 0;
        memcpy(&word, bytes, key_size);
        hash = mix(hash, word);
    }
    return (uint32_t)(hash ^ hash >> 32);
}

static void *entry_at(const struct intern_table *table, uint32_t id) {
    return (unsigned char *)table->entries + (size_t)id * table->entry_size;
}

uint32_t intern_table_find(const struct intern_table *table, uint32_t hash, const void *key, size_t key_size) {
    if (!table->capacity) return INTERN_NONE;
    uint32_t mask = table->capacity * SLOTS_PER_ENTRY - 1;
    for (uint32_t at = hash & mask;; at = (at + 1) & mask) { /* ends: half of the slots are empty */
        struct intern_slot slot = table->slots[at];
        if (!slot.id_plus_one) return INTERN_NONE;
        if (slot.hash != hash) continue;
        const void *entry = entry_at(table, slot.id_plus_one - 1);
        if (table->has_key ? table->has_key(entry, key, key_size) : !memcmp(entry, key, key_size)) return slot.id_plus_one - 1;
    }
}

static void put_slot(struct intern_slot *slots, uint32_t mask, struct intern_slot slot) {
    uint32_t at = slot.hash & mask;
    while (slots[at].id_plus_one) at = (at + 1) & mask; /* ends: half of the slots are empty */
    slots[at] = slot;
}

static bool double_capacity(struct intern_table *table) {
    uint32_t capacity = table->capacity ? table->capacity * 2 : INTERN_FIRST_CAPACITY;
    if (capacity > table->max_size) return false;
    size_t slots_bytes = (size_t)capacity * SLOTS_PER_ENTRY * sizeof *table->slots;
    size_t entries_bytes = (size_t)capacity * table->entry_size;
    /* Asked first, as a full table comes here for every new entry. */
    if (slots_bytes + entries_bytes > table->account->limit - table->account->used) return false;
    void *slots = NULL;
    if (!memory_account_resize(table->account, &slots, 0, slots_bytes)) return false;
    if (!memory_account_resize(table->account, &table->entries, (size_t)table->capacity * table->entry_size, entries_bytes)) {
        free(slots);
        table->account->used -= slots_bytes;
        return false;
    }
    memset(slots, 0, slots_bytes);
    for (uint32_t at = 0; at < table->capacity * SLOTS_PER_ENTRY; at++)
        if (table->slots[at].id_plus_one) put_slot(slots, capacity * SLOTS_PER_ENTRY - 1, table->slots[at]);
    free(table->slots);
    table->account->used -= (size_t)table->capacity * SLOTS_PER_ENTRY * sizeof *table->slots;
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

bool intern_table_reserve(struct intern_table *table, uint32_t count) {
    while (table->capacity - table->size < count)
        if (!double_capacity(table)) return false;
    return true;
}

void *intern_table_append(struct intern_table *table, uint32_t hash) {
    if (!intern_table_reserve(table, 1)) return NULL;
    uint32_t id = table->size++;
    put_slot(table->slots, table->capacity * SLOTS_PER_ENTRY - 1, (struct intern_slot){hash, id + 1});
    return entry_at(table, id);
}

uint32_t intern_table_add(struct intern_table *table, const void *key, size_t key_size) {
    uint32_t hash = intern_table_hash(table, key, key_size);
    uint32_t id = intern_table_find(table, hash, key, key_size);
    if (id != INTERN_NONE) return id;
    unsigned char *entry = intern_table_append(table, hash);
    if (!entry) return INTERN_NONE;
    memcpy(entry, key, key_size);
    memset(entry + key_size, 0, table->entry_size - key_size);
    return table->size - 1;
}
