/* Bounded reads of the interpreter's basic objects. Every function returns false, and counts the reason, when memory is unreadable
   or is no object of the expected kind. */
#ifndef OTEL_ASYNCPROF_READ_OBJECT_H
#define OTEL_ASYNCPROF_READ_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpython/layout.h"

#define MAX_STRING_BYTES 16384 /* UTF-8; a longer name is cut at a character and ends in … */

bool read_type(uint64_t object, uint64_t *type);

/* str -> UTF-8, exact: any kind, compact or not. A lone surrogate, which UTF-8 cannot hold, becomes its \udcxx escape.
   text must hold MAX_STRING_BYTES. */
bool read_string(uint64_t string, char *text, size_t *size);

bool read_int(uint64_t integer, int64_t *value);

/* A non-negative int as size bytes, most significant first. False when it needs more. */
bool read_int_bytes(uint64_t integer, uint8_t *bytes, size_t size);

/* The value stored under an interned string (compared by address). False without counting when there is none. */
bool read_dict_value(uint64_t dict, uint64_t key, uint64_t *value);

/* The value stored under an int key. */
bool read_dict_int_value(uint64_t dict, int64_t key, uint64_t *value);

/* The values of a dict of a few entries, up to capacity; returns how many. */
size_t read_dict_values(uint64_t dict, uint64_t *values, size_t capacity);

/* An instance attribute by interned name, in whichever of CPython's ways the instance keeps it. No descriptors, no class. */
bool read_attribute(uint64_t object, uint64_t name, uint64_t *value);

/* Up to capacity items of a list, a tuple or a deque; returns how many. */
size_t read_list(uint64_t list, uint64_t *items, size_t capacity);
size_t read_tuple(uint64_t tuple, uint64_t *items, size_t capacity);
size_t read_deque(uint64_t deque, uint64_t *items, size_t capacity);

/* Whether type is base or derives from it, following tp_base. */
bool read_derives(uint64_t type, uint64_t base);
static inline bool read_is_subtype(uint64_t type, uint64_t base) { return type == base || read_derives(type, base); }

#endif
