/* A growing buffer of protobuf wire format. Once memory is short, failed stays set and every call does nothing. */
#ifndef OTEL_ASYNCPROF_PROTOBUF_H
#define OTEL_ASYNCPROF_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_MAX_VARINT_BYTES 10

struct pb_buffer {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed;
};

void pb_free(struct pb_buffer *buffer);
bool pb_grow(struct pb_buffer *buffer, size_t more);

/* Room for more bytes behind size. */
static inline bool pb_reserve(struct pb_buffer *buffer, size_t more) {
    return more <= buffer->capacity - buffer->size && !buffer->failed ? true : pb_grow(buffer, more);
}

static inline size_t pb_varint_size(uint64_t value) {
    size_t size = 1;
    for (; value >= 0x80; value >>= 7) size++;
    return size;
}

/* Without a check: the caller has reserved the room. */
static inline void pb_put_varint(struct pb_buffer *buffer, uint64_t value) {
    for (; value >= 0x80; value >>= 7) buffer->bytes[buffer->size++] = (uint8_t)(value | 0x80);
    buffer->bytes[buffer->size++] = (uint8_t)value;
}

static inline void pb_varint(struct pb_buffer *buffer, uint64_t value) {
    if (pb_reserve(buffer, PB_MAX_VARINT_BYTES)) pb_put_varint(buffer, value);
}
void pb_fixed64(struct pb_buffer *buffer, uint64_t value);

/* Fields. A scalar 0 is left out, as proto3 does; bytes are always written, for an empty element of a repeated field counts. */
void pb_varint_field(struct pb_buffer *buffer, unsigned field, uint64_t value);
void pb_fixed64_field(struct pb_buffer *buffer, unsigned field, uint64_t value);
void pb_bytes_field(struct pb_buffer *buffer, unsigned field, const void *bytes, size_t size);

/* A nested message or a packed field: what is written between begin and end becomes its content. A good guess of its size
   spares moving it, for the length stands in front and has no fixed width. */
struct pb_nested {
    size_t content;
    size_t length_bytes;
};
struct pb_nested pb_begin(struct pb_buffer *buffer, unsigned field, size_t expected_size);
void pb_end(struct pb_buffer *buffer, struct pb_nested nested);

#endif
