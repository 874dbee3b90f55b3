#include "protobuf.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY ((size_t)4 << 10)
#define FIXED64_BYTES 8u

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };

void pb_free(struct pb_buffer *buffer) {
    free(buffer->bytes);
    *buffer = (struct pb_buffer){0};
}

bool pb_grow(struct pb_buffer *buffer, size_t more) {
    if (buffer->failed) return false;
    size_t capacity = buffer->capacity ? buffer->capacity : FIRST_CAPACITY;
    while (capacity - buffer->size < more && capacity <= SIZE_MAX / 2) capacity *= 2;
    uint8_t *bytes = capacity - buffer->size < more ? NULL : realloc(buffer->bytes, capacity);
    if (!bytes) {
        buffer->failed = true;
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

void pb_fixed64(struct pb_buffer *buffer, uint64_t value) {
    if (!pb_reserve(buffer, FIXED64_BYTES)) return;
    for (unsigned i = 0; i < FIXED64_BYTES; i++) buffer->bytes[buffer->size++] = (uint8_t)(value >> 8 * i);
}

static void put_tag(struct pb_buffer *buffer, unsigned field, unsigned wire) { pb_varint(buffer, field << 3 | wire); }

void pb_varint_field(struct pb_buffer *buffer, unsigned field, uint64_t value) {
    if (!value) return;
    put_tag(buffer, field, WIRE_VARINT);
    pb_varint(buffer, value);
}

void pb_fixed64_field(struct pb_buffer *buffer, unsigned field, uint64_t value) {
    if (!value) return;
    put_tag(buffer, field, WIRE_FIXED64);
    pb_fixed64(buffer, value);
}

void pb_bytes_field(struct pb_buffer *buffer, unsigned field, const void *bytes, size_t size) {
    put_tag(buffer, field, WIRE_LENGTH);
    pb_varint(buffer, size);
    if (!size || !pb_reserve(buffer, size)) return;
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
}

struct pb_nested pb_begin(struct pb_buffer *buffer, unsigned field, size_t expected_size) {
    put_tag(buffer, field, WIRE_LENGTH);
    size_t length_bytes = pb_varint_size(expected_size);
    if (pb_reserve(buffer, length_bytes)) buffer->size += length_bytes;
    return (struct pb_nested){buffer->size, length_bytes};
}

void pb_end(struct pb_buffer *buffer, struct pb_nested nested) {
    if (!pb_reserve(buffer, PB_MAX_VARINT_BYTES)) return;
    size_t size = buffer->size - nested.content, length_bytes = pb_varint_size(size);
    size_t start = nested.content - nested.length_bytes;
    if (length_bytes != nested.length_bytes) memmove(buffer->bytes + start + length_bytes, buffer->bytes + nested.content, size);
    buffer->size = start;
    pb_put_varint(buffer, size);
    buffer->size += size;
}
