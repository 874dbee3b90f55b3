#include "allocations.h"
#include "test_program.h"
#include "protobuf.h"

static void check_bytes(const struct pb_buffer *buffer, const char *bytes, size_t size) {
    CHECK(!buffer->failed && buffer->size == size && !memcmp(buffer->bytes, bytes, size));
}

TEST(varints_have_their_shortest_form) {
    struct pb_buffer buffer = {0};
    const uint64_t values[] = {0, 1, 127, 128, 300, 1u << 21, UINT64_MAX};
    for (unsigned i = 0; i < 7; i++) {
        size_t before = buffer.size;
        pb_varint(&buffer, values[i]);
        CHECK(buffer.size - before == pb_varint_size(values[i]));
    }
    check_bytes(&buffer, "\0\1\177\200\1\254\2\200\200\200\1\377\377\377\377\377\377\377\377\377\1", 21);
    pb_free(&buffer);
}

TEST(scalar_zero_is_left_out_and_empty_bytes_are_not) {
    struct pb_buffer buffer = {0};
    pb_varint_field(&buffer, 1, 0);
    pb_fixed64_field(&buffer, 2, 0);
    pb_bytes_field(&buffer, 3, NULL, 0);
    pb_varint_field(&buffer, 16, 5);
    pb_fixed64_field(&buffer, 2, 0x0102030405060708u);
    pb_bytes_field(&buffer, 4, "a\0b", 3);
    check_bytes(&buffer, "\x1a\0\x80\1\5\x11\x08\x07\x06\x05\x04\x03\x02\x01\x22\3a\0b", 19);
    pb_free(&buffer);
}

TEST(a_nested_message_has_the_shortest_length_however_wrong_the_guess_was) {
    const size_t sizes[] = {0, 1, 127, 128, 16383, 16384, 70000}, guesses[] = {0, 127, 128, 16384, 1u << 21, 1u << 28};
    for (unsigned i = 0; i < 7; i++) {
        for (unsigned j = 0; j < 6; j++) {
            struct pb_buffer buffer = {0}, expected = {0};
            char *content = malloc(sizes[i] + 1);
            memset(content, 'x', sizes[i]);
            struct pb_nested outer = pb_begin(&buffer, 1, guesses[j]);
            struct pb_nested inner = pb_begin(&buffer, 2, guesses[5 - j]);
            for (size_t k = 0; k < sizes[i]; k++) pb_varint(&buffer, 'x');
            pb_end(&buffer, inner);
            pb_end(&buffer, outer);
            pb_varint(&buffer, 7);

            pb_varint(&expected, 1 << 3 | 2);
            pb_varint(&expected, 1 + pb_varint_size(sizes[i]) + sizes[i]);
            pb_bytes_field(&expected, 2, content, sizes[i]);
            pb_varint(&expected, 7);
            check_bytes(&buffer, (const char *)expected.bytes, expected.size);
            pb_free(&buffer);
            pb_free(&expected);
            free(content);
        }
    }
}

TEST(a_failure_stays_and_every_later_call_is_harmless) {
    for (size_t fail_at = 0; fail_at < 5; fail_at++) {
        struct pb_buffer buffer = {0};
        allocations_until_fail = fail_at;
        for (int i = 0; i < 200000; i++) {
            struct pb_nested nested = pb_begin(&buffer, 1, 1u << 20);
            pb_varint_field(&buffer, 2, 1);
            pb_fixed64_field(&buffer, 2, 1);
            pb_bytes_field(&buffer, 2, "abc", 3);
            pb_end(&buffer, nested);
        }
        CHECK(buffer.failed);
        allocations_until_fail = SIZE_MAX;
        pb_varint(&buffer, 1);
        CHECK(buffer.failed);
        pb_free(&buffer);
        CHECK(!buffer.failed && allocated_bytes == 0);
    }
}
