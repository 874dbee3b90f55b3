/* Dictionaries and instance attributes: the part of read_object.h that knows hash tables. */
#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "read_object.h"
#include "safe_copy.h"

#define MAX_DICT_ENTRIES (1u << 16)
#define MAX_INDEX_BYTES_LOG2 24
#define ENTRIES_PER_READ 32
#define KEYS_HEAD 32

enum { KEYS_GENERAL = 0, KEYS_UNICODE = 1, KEYS_SPLIT = 2 };

/* The entries of a keys object: where they stand, how many words each has, in which word the key is. */
struct entries {
    uint64_t address;
    uint64_t count;
    unsigned words, key_word;
};

static bool copy(void *destination, uint64_t address, size_t size) {
    if (safe_copy(destination, address, size)) return true;
    drop_count(DROP_unreadable_memory);
    return false;
}

static bool open_keys(uint64_t keys, struct entries *entries) {
    uint8_t head[KEYS_HEAD];
    if (!copy(head, keys, sizeof head)) return false;
    uint8_t log2_index_bytes = head[layout.keys_log2_index_bytes], kind = head[layout.keys_kind];
    memcpy(&entries->count, head + layout.keys_entries_used, 8);
    if (log2_index_bytes > MAX_INDEX_BYTES_LOG2 || kind > KEYS_SPLIT || entries->count > MAX_DICT_ENTRIES) {
        drop_count(DROP_unreadable_object);
        return false;
    }
    entries->words = kind == KEYS_GENERAL ? 3 : 2;
    entries->key_word = kind == KEYS_GENERAL ? 1 : 0;
    entries->address = keys + layout.keys_indices + (1ull << log2_index_bytes);
    return true;
}

/* Finds the entry for which match(key, wanted) holds. The value is the word after the key (of no meaning in split keys). */
static bool find_entry(const struct entries *entries, bool (*match)(uint64_t key, int64_t wanted), int64_t wanted, uint64_t *index,
                       uint64_t *value) {
    uint64_t words[ENTRIES_PER_READ * 3];
    for (uint64_t done = 0; done < entries->count;) {
        uint64_t count = entries->count - done < ENTRIES_PER_READ ? entries->count - done : ENTRIES_PER_READ;
        if (!copy(words, entries->address + done * entries->words * 8, count * entries->words * 8)) return false;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t key = words[i * entries->words + entries->key_word];
            if (!key || !match(key, wanted)) continue;
            *index = done + i;
            *value = words[i * entries->words + entries->key_word + 1];
            return true;
        }
        done += count;
    }
    return false;
}

static bool is_same_object(uint64_t key, int64_t wanted) { return key == (uint64_t)wanted; }

static bool is_equal_int(uint64_t key, int64_t wanted) {
    int64_t value;
    return read_int(key, &value) && value == wanted;
}

static bool dict_value(uint64_t dict, bool (*match)(uint64_t, int64_t), int64_t wanted, uint64_t *value) {
    struct entries entries;
    uint64_t keys, values, index;
    if (!copy(&keys, dict + layout.dict_keys, 8) || !copy(&values, dict + layout.dict_values, 8)) return false;
    if (!keys || !open_keys(keys, &entries) || !find_entry(&entries, match, wanted, &index, value)) return false;
    if (values && !copy(value, values + layout.values_items + 8 * index, 8)) return false;
    return *value != 0;
}

bool read_dict_value(uint64_t dict, uint64_t key, uint64_t *value) { return dict_value(dict, is_same_object, (int64_t)key, value); }
bool read_dict_int_value(uint64_t dict, int64_t key, uint64_t *value) { return dict_value(dict, is_equal_int, key, value); }

size_t read_dict_values(uint64_t dict, uint64_t *values, size_t capacity) {
    struct entries entries;
    uint64_t keys, array, words[3];
    size_t count = 0;
    if (!copy(&keys, dict + layout.dict_keys, 8) || !copy(&array, dict + layout.dict_values, 8)) return 0;
    if (array || !keys || !open_keys(keys, &entries)) return 0; /* values of their own have only instances' dicts */
    for (uint64_t i = 0; i < entries.count && count < capacity; i++) {
        if (!copy(words, entries.address + i * entries.words * 8, entries.words * 8)) return count;
        if (words[entries.key_word] && words[entries.key_word + 1]) values[count++] = words[entries.key_word + 1];
    }
    return count;
}

/* Instances of one class share their keys: the class holds them, each instance has an array of values in the same order. */
static bool shared_value(uint64_t type, uint64_t values, uint64_t name, uint64_t *value) {
    struct entries entries;
    uint64_t keys, index, unused;
    if (!copy(&keys, type + layout.type_cached_keys, 8) || !keys || !open_keys(keys, &entries)) return false;
    if (!find_entry(&entries, is_same_object, (int64_t)name, &index, &unused)) return false;
    return copy(value, values + layout.values_items + 8 * index, 8) && *value != 0;
}

bool read_attribute(uint64_t object, uint64_t name, uint64_t *value) {
    uint64_t type, flags, dict = 0;
    if (!read_type(object, &type) || !copy(&flags, type + layout.type_flags, 8)) return false;
    if (!(flags & layout.type_flag_managed_dict)) {
        int64_t offset;
        if (!copy(&offset, type + layout.type_dictoffset, 8) || offset <= 0 || offset > (int64_t)MAX_LAYOUT_OFFSET) return false;
        return copy(&dict, object + (uint64_t)offset, 8) && dict && read_dict_value(dict, name, value);
    }
    if (flags & layout.type_flag_inline_values) {
        uint64_t basicsize;
        uint8_t valid;
        if (!copy(&basicsize, type + layout.type_basicsize, 8) || basicsize > MAX_LAYOUT_OFFSET) return false;
        if (!copy(&valid, object + basicsize + layout.values_valid, 1)) return false;
        if (valid) return shared_value(type, object + basicsize, name, value);
    }
    if (layout.instance_values) {
        uint64_t values;
        if (!copy(&values, object + (uint64_t)(int64_t)layout.instance_values, 8)) return false;
        if (values) return shared_value(type, values, name, value);
    }
    if (!copy(&dict, object + (uint64_t)(int64_t)layout.instance_dict, 8) || !dict) return false;
    if (layout.instance_dict_tagged && (dict & 1)) return shared_value(type, dict + 1, name, value);
    return read_dict_value(dict, name, value);
}
