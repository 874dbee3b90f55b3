#include "read_object.h"

#include <string.h>

#include "cpython/layout.h"
#include "drop.h"
#include "safe_copy.h"

#define MAX_BASES 16      /* depth of a class hierarchy */
#define MAX_INT_DIGITS 8  /* 240 bits: more than any id has */
#define MAX_SEQUENCE (1u << 24)
#define MAX_CHARACTERS (1ull << 40) /* no more than a check: only the first are read */
#define INT_DIGIT_BITS 30
#define CHARACTERS_PER_READ 512

enum { STR_KIND_SHIFT = 2, STR_COMPACT = 1 << 5, STR_ASCII = 1 << 6 };

static bool copy(void *destination, uint64_t address, size_t size) {
    if (safe_copy(destination, address, size)) return true;
    drop_count(DROP_unreadable_memory);
    return false;
}

static bool reject(void) {
    drop_count(DROP_unreadable_object);
    return false;
}

bool read_type(uint64_t object, uint64_t *type) { return copy(type, object + OBJECT_TYPE, sizeof *type); }

bool read_derives(uint64_t type, uint64_t base) {
    for (unsigned depth = 0; depth < MAX_BASES && type; depth++) {
        if (type == base) return true;
        if (!safe_copy_word(&type, type + layout.type_base)) return drop_count(DROP_unreadable_memory), false;
    }
    return false;
}

static size_t put_character(char *text, uint32_t character) {
    unsigned char *out = (unsigned char *)text;
    if (character < 0x80) return out[0] = (unsigned char)character, 1;
    if (character < 0x800) {
        out[0] = (unsigned char)(0xc0 | character >> 6);
        out[1] = (unsigned char)(0x80 | (character & 0x3f));
        return 2;
    }
    if (character >= 0xd800 && character < 0xe000) { /* what Python's backslashreplace writes */
        static const char hex[] = "0123456789abcdef";
        out[0] = '\\', out[1] = 'u';
        for (unsigned i = 0; i < 4; i++) out[2 + i] = (unsigned char)hex[character >> (12 - 4 * i) & 15];
        return 6;
    }
    if (character < 0x10000) {
        out[0] = (unsigned char)(0xe0 | character >> 12);
        out[1] = (unsigned char)(0x80 | (character >> 6 & 0x3f));
        out[2] = (unsigned char)(0x80 | (character & 0x3f));
        return 3;
    }
    if (character > 0x10ffff) character = 0xfffd;
    out[0] = (unsigned char)(0xf0 | character >> 18);
    out[1] = (unsigned char)(0x80 | (character >> 12 & 0x3f));
    out[2] = (unsigned char)(0x80 | (character >> 6 & 0x3f));
    out[3] = (unsigned char)(0x80 | (character & 0x3f));
    return 4;
}

static uint32_t character_at(const unsigned char *data, size_t index, unsigned kind) {
    uint16_t two;
    uint32_t four;
    if (kind == 1) return data[index];
    if (kind == 2) return memcpy(&two, data + 2 * index, 2), two;
    return memcpy(&four, data + 4 * index, 4), four;
}

bool read_string(uint64_t string, char *text, size_t *size) {
    enum { LONGEST_CHARACTER = 6, ELLIPSIS = 3 };
    unsigned char head[MAX_STR_HEAD_BYTES], data[4 * CHARACTERS_PER_READ];
    uint64_t type, length, address = string;
    uint32_t state;
    if (!copy(head, string, layout.str_compact_data)) return false;
    memcpy(&type, head + OBJECT_TYPE, 8);
    memcpy(&length, head + layout.str_length, 8);
    memcpy(&state, head + layout.str_state, 4);
    /* A subclass of str (an enum member as a task name, say) has the layout of str. */
    if (type != anchors.type_str && !read_is_subtype(type, anchors.type_str)) return reject();
    unsigned kind = state >> STR_KIND_SHIFT & 7;
    if ((kind != 1 && kind != 2 && kind != 4) || length > MAX_CHARACTERS) return reject();
    if (!(state & STR_COMPACT)) {
        if (!copy(&address, string + layout.str_legacy_data, 8)) return false;
    } else {
        address += state & STR_ASCII ? layout.str_ascii_data : layout.str_compact_data;
    }
    size_t used = 0;
    for (uint64_t done = 0; done < length;) {
        size_t count = length - done < CHARACTERS_PER_READ ? (size_t)(length - done) : CHARACTERS_PER_READ;
        if (!copy(data, address + done * kind, count * kind)) return false;
        for (size_t i = 0; i < count; i++) {
            if (used > MAX_STRING_BYTES - LONGEST_CHARACTER - ELLIPSIS) {
                memcpy(text + used, "\xe2\x80\xa6", ELLIPSIS);
                *size = used + ELLIPSIS;
                return true;
            }
            used += put_character(text + used, character_at(data, i, kind));
        }
        done += count;
    }
    *size = used;
    return true;
}

/* The sign and the digits, least significant first; returns how many. False when there are more than capacity. */
static bool read_digits(uint64_t integer, uint32_t *digits, size_t capacity, size_t *count, bool *negative) {
    uint64_t type, tag;
    if (!copy(&type, integer + OBJECT_TYPE, sizeof type) || !copy(&tag, integer + layout.int_tag, sizeof tag)) return false;
    if (type != anchors.type_int && !read_is_subtype(type, anchors.type_int)) return reject();
    if (layout.int_tag_is_size) {
        *negative = (int64_t)tag < 0;
        *count = *negative ? -tag : tag;
    } else {
        *negative = (tag & 3) == 2;
        *count = tag >> 3;
    }
    return *count <= capacity ? copy(digits, integer + layout.int_digits, *count * sizeof digits[0]) : reject();
}

bool read_int(uint64_t integer, int64_t *value) {
    uint32_t digits[3];
    size_t count;
    uint64_t magnitude = 0;
    bool negative;
    if (!read_digits(integer, digits, sizeof digits / sizeof digits[0], &count, &negative)) return false;
    while (count-- > 0) magnitude = magnitude << INT_DIGIT_BITS | digits[count];
    *value = (int64_t)(negative ? -magnitude : magnitude);
    return true;
}

bool read_int_bytes(uint64_t integer, uint8_t *bytes, size_t size) {
    uint32_t digits[MAX_INT_DIGITS];
    size_t count, bit = 0;
    bool negative;
    if (!read_digits(integer, digits, MAX_INT_DIGITS, &count, &negative) || negative) return false;
    memset(bytes, 0, size);
    for (size_t i = 0; i < count; i++)
        for (unsigned of_digit = 0; of_digit < INT_DIGIT_BITS; of_digit++, bit++) {
            if (!(digits[i] >> of_digit & 1)) continue;
            if (bit / 8 >= size) return false;
            bytes[size - 1 - bit / 8] |= (uint8_t)(1u << bit % 8);
        }
    return true;
}

size_t read_list(uint64_t list, uint64_t *items, size_t capacity) {
    uint64_t size, address;
    if (!copy(&size, list + layout.var_size, 8) || !copy(&address, list + layout.list_items, 8) || size > MAX_SEQUENCE) return 0;
    if (size > capacity) size = capacity;
    return copy(items, address, size * 8) ? size : 0;
}

size_t read_tuple(uint64_t tuple, uint64_t *items, size_t capacity) {
    uint64_t size;
    if (!copy(&size, tuple + layout.var_size, 8) || size > MAX_SEQUENCE) return 0;
    if (size > capacity) size = capacity;
    return copy(items, tuple + layout.tuple_items, size * 8) ? size : 0;
}

size_t read_deque(uint64_t deque, uint64_t *items, size_t capacity) {
    uint64_t size, block, index;
    if (!copy(&size, deque + layout.var_size, 8) || !copy(&block, deque + layout.deque_left_block, 8)) return 0;
    if (!copy(&index, deque + layout.deque_left_index, 8) || size > MAX_SEQUENCE || index > layout.deque_block_length) return 0;
    if (size > capacity) size = capacity;
    for (size_t i = 0; i < size; i++) {
        if (index == layout.deque_block_length) { /* the link to the right follows the items */
            if (!copy(&block, block + layout.deque_block_items + 8ull * layout.deque_block_length, 8)) return i;
            index = 0;
        }
        if (!copy(&items[i], block + layout.deque_block_items + 8 * index++, 8)) return i;
    }
    return size;
}
