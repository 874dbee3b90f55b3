/* For test_line_table.py: the lines of all instructions in one call. */
#include "line_table.h"

void find_lines(const uint8_t *table, size_t size, int first_line, int *lines, int instructions, int instruction_bytes);

void find_lines(const uint8_t *table, size_t size, int first_line, int *lines, int instructions, int instruction_bytes) {
    for (int i = 0; i < instructions; i++) lines[i] = line_table_find(table, size, first_line, i * instruction_bytes);
}
