#include "line_table.h"

#include <limits.h>

#define CODE_UNIT_BYTES 2
#define ENTRY_START 0x80u    /* only the first byte of an entry has it */
#define MAX_VARINT_SHIFT 30u /* six bits a byte: the last of them fills 32 */

enum { ENTRY_ONE_LINE0 = 10, ENTRY_ONE_LINE2 = 12, ENTRY_NO_COLUMNS = 13, ENTRY_LONG = 14, ENTRY_NO_LOCATION = 15 };

/* Magnitude shifted left by one, sign in the lowest bit; stops at the end of the table and at the start of the next entry. */
static int64_t read_svarint(const uint8_t *table, size_t size, size_t at) {
    uint32_t value = 0;
    for (unsigned shift = 0; at < size && !(table[at] & ENTRY_START) && shift <= MAX_VARINT_SHIFT; at++, shift += 6) {
        value |= (uint32_t)(table[at] & 0x3f) << shift;
        if (!(table[at] & 0x40)) break;
    }
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

int line_table_find(const uint8_t *table, size_t size, int first_line, int instruction) {
    if (instruction < 0) return first_line;
    int64_t line = first_line; /* at most 2^32 entries of 2^31 lines: no overflow */
    size_t end = 0;            /* instruction bytes covered so far */
    for (size_t at = 0; at < size && (table[at] & ENTRY_START);) {
        unsigned code = table[at] >> 3 & 15;
        end += ((size_t)(table[at] & 7) + 1) * CODE_UNIT_BYTES;
        if (code == ENTRY_LONG || code == ENTRY_NO_COLUMNS) line += read_svarint(table, size, at + 1);
        else if (code >= ENTRY_ONE_LINE0 && code <= ENTRY_ONE_LINE2) line += code - ENTRY_ONE_LINE0;
        if ((size_t)instruction < end) return code == ENTRY_NO_LOCATION || line < 0 || line > INT_MAX ? 0 : (int)line;
        do at++;
        while (at < size && !(table[at] & ENTRY_START));
    }
    return 0;
}
