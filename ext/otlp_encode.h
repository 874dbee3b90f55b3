/* A filled stack table -> the bytes of ExportProfilesServiceRequest messages (opentelemetry-proto v1.10, development version 1).
   Pure: no clock, no lock, no Python. Follows the Export section of docs/stacks-and-links.md. */
#ifndef OTEL_ASYNCPROF_OTLP_ENCODE_H
#define OTEL_ASYNCPROF_OTLP_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack_table.h"

#define PROFILES_DEVELOPMENT_VERSION 1
#define MAX_SAMPLES_PER_PROFILE 15000
#define MAX_PROFILE_BYTES (3u << 20)   /* of a profile with the dictionary, as a receiver that stores profiles one by one counts */
#define MAX_REQUEST_BYTES (3900u << 10) /* below the 4 MiB that gRPC servers accept unless told otherwise */

enum { ATTRIBUTE_THREAD_NAME = 1, ATTRIBUTE_STATE = 2, ATTRIBUTE_THREAD_ID = 4, ATTRIBUTE_TASK_NAME = 8, ATTRIBUTE_LOCAL_ROOT_NAME = 16 };

struct otlp_options {
    const uint8_t *resource; /* a serialised opentelemetry.proto.resource.v1.Resource */
    size_t resource_size;
    const char *resource_schema_url, *scope_version;
    uint64_t time_unix_nano, duration_nano; /* of the interval */
    uint64_t period_ns;                     /* CPU period */
    uint32_t attributes;                    /* ATTRIBUTE_… */
    bool timeline;                          /* wall samples as values with timestamps */
    /* Fills size bytes of OS entropy: one profile_id of 16 bytes for each profile. */
    void (*random_bytes)(void *bytes, size_t size);
};

/* Calls emit once per request, with bytes that live until emit returns; stops when emit returns false. An interval with no samples
   emits nothing. Samples that would exceed the limits above go on in a further request with a dictionary of its own; only a sample
   that exceeds them all alone (names of kilobytes in every frame) makes a larger request, for no weight may vanish.
   False when memory is short or emit refused. */
bool otlp_encode(const struct stack_table *table, const struct otlp_options *options,
                 bool (*emit)(void *context, const uint8_t *bytes, size_t size), void *context);

#endif
