/* _Py_DebugOffsets: what CPython 3.13+ says of its own layout, at the very beginning of _PyRuntime. Pure. */
#ifndef OTEL_ASYNCPROF_DEBUG_OFFSETS_H
#define OTEL_ASYNCPROF_DEBUG_OFFSETS_H

#include <stddef.h>
#include <stdint.h>

#define DEBUG_OFFSETS_BYTES 888 /* covers every field that is read */

/* Overrides in layout what the interpreter publishes. NULL when done, or when this version publishes nothing; otherwise why the
   bytes cannot be trusted, in words for the user. */
const char *debug_offsets_apply(const uint8_t bytes[DEBUG_OFFSETS_BYTES], uint32_t version_hex);

#endif
