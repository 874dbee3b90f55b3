#include "otlp_encode.h"

#include <string.h>

#include "otlp_dictionary.h"
#include "sample_groups.h"

#define SCOPE_NAME "otel_asyncprof"
#define SCOPE_SCHEMA_URL "https://opentelemetry.io/schemas/1.44.0"
#define PROFILE_ID_BYTES 16
#define PROFILE_OVERHEAD 128 /* at most, of a profile's fields but for the samples */
#define REQUEST_OVERHEAD 256 /* at most, of tags and lengths around resource, scope and profiles */

enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum { RESOURCE_RESOURCE = 1, RESOURCE_SCOPE_PROFILES = 2, RESOURCE_SCHEMA_URL = 3 };
enum { SCOPE_SCOPE = 1, SCOPE_PROFILES = 2, SCOPE_SCHEMA = 3, SCOPE_SCOPE_NAME = 1, SCOPE_SCOPE_VERSION = 2 };
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLES, PROFILE_TIME, PROFILE_DURATION, PROFILE_PERIOD_TYPE, PROFILE_PERIOD, PROFILE_ID };
enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES, SAMPLE_LINK, SAMPLE_VALUES, SAMPLE_TIMESTAMPS };

enum { PROFILE_CPU, PROFILE_WALL, PROFILES };

static const struct {
    enum fixed_string sample_type, sample_unit, period_type, period_unit;
} profile_types[PROFILES] = {
    [PROFILE_CPU] = {STRING_SAMPLES, STRING_COUNT, STRING_CPU, STRING_NANOSECONDS},
    [PROFILE_WALL] = {STRING_WALL, STRING_NANOSECONDS, STRING_WALL, STRING_NANOSECONDS},
};

/* One request in the making: everything of variable size is encoded as it comes, so its size is known at any time. */
struct encoder {
    const struct otlp_options *options;
    const char *resource_schema_url, *scope_version;
    size_t fixed_bytes; /* of a request, at most */
    struct otlp_dictionary dictionary;
    struct pb_buffer samples[PROFILES];
    uint32_t n_samples[PROFILES];
    struct pb_buffer request;
};

/* The part of a sample that both profiles share. */
struct sample_identity {
    uint32_t stack, link;
    uint32_t attributes[MAX_SAMPLE_ATTRIBUTES];
    size_t n_attributes;
};

static void put_values(struct pb_buffer *buffer, const struct sample_group *group, bool timeline) {
    struct pb_nested values = pb_begin(buffer, SAMPLE_VALUES, timeline ? group->n_wall * pb_varint_size(group->wall_ns) : 1);
    if (!timeline) pb_varint(buffer, group->wall_ns);
    for (size_t i = 0; timeline && i < group->n_wall; i++) pb_varint(buffer, group->wall[i].wall_ns);
    pb_end(buffer, values);
}

static void put_timestamps(struct pb_buffer *buffer, const struct sample_time *times, size_t count) {
    if (!count) return;
    struct pb_nested timestamps = pb_begin(buffer, SAMPLE_TIMESTAMPS, count * sizeof(uint64_t));
    for (size_t i = 0; i < count; i++) pb_fixed64(buffer, times[i].time_unix_ns);
    pb_end(buffer, timestamps);
}

static void put_sample(struct encoder *encoder, unsigned profile, const struct sample_identity *identity,
                       const struct sample_group *group) {
    struct pb_buffer *buffer = &encoder->samples[profile];
    if (!encoder->n_samples[profile]++) {
        otlp_dictionary_fixed_string(&encoder->dictionary, profile_types[profile].sample_type);
        otlp_dictionary_fixed_string(&encoder->dictionary, profile_types[profile].sample_unit);
        otlp_dictionary_fixed_string(&encoder->dictionary, profile_types[profile].period_type);
        otlp_dictionary_fixed_string(&encoder->dictionary, profile_types[profile].period_unit);
    }
    struct pb_nested sample = pb_begin(buffer, PROFILE_SAMPLES, 0);
    pb_varint_field(buffer, SAMPLE_STACK, identity->stack);
    if (identity->n_attributes) {
        struct pb_nested attributes = pb_begin(buffer, SAMPLE_ATTRIBUTES, 0);
        for (size_t i = 0; i < identity->n_attributes; i++) pb_varint(buffer, identity->attributes[i]);
        pb_end(buffer, attributes);
    }
    pb_varint_field(buffer, SAMPLE_LINK, identity->link);
    if (profile == PROFILE_WALL) put_values(buffer, group, encoder->options->timeline);
    if (profile == PROFILE_CPU) put_timestamps(buffer, group->cpu, group->n_cpu);
    else if (encoder->options->timeline) put_timestamps(buffer, group->wall, group->n_wall);
    pb_end(buffer, sample);
}

static void put_group(struct encoder *encoder, const struct sample_group *group) {
    if (!group->n_cpu && !group->wall_ns) return;
    struct sample_identity identity = {.stack = otlp_dictionary_stack(&encoder->dictionary, group->key.stack),
                                       .link = otlp_dictionary_link(&encoder->dictionary, group->key.link)};
    identity.n_attributes = otlp_dictionary_attributes(&encoder->dictionary, &group->key, identity.attributes);
    if (group->n_cpu) put_sample(encoder, PROFILE_CPU, &identity, group);
    if (group->wall_ns) put_sample(encoder, PROFILE_WALL, &identity, group);
}

static bool failed(const struct encoder *encoder) {
    return otlp_dictionary_failed(&encoder->dictionary) || encoder->samples[PROFILE_CPU].failed ||
           encoder->samples[PROFILE_WALL].failed || encoder->request.failed;
}

static size_t request_bytes(const struct encoder *encoder) {
    return encoder->fixed_bytes + otlp_dictionary_bytes(&encoder->dictionary) + encoder->samples[PROFILE_CPU].size +
           encoder->samples[PROFILE_WALL].size;
}

static bool fits(const struct encoder *encoder) {
    size_t dictionary_bytes = otlp_dictionary_bytes(&encoder->dictionary);
    for (unsigned i = 0; i < PROFILES; i++) {
        if (encoder->n_samples[i] > MAX_SAMPLES_PER_PROFILE) return false;
        if (encoder->samples[i].size + PROFILE_OVERHEAD + dictionary_bytes > MAX_PROFILE_BYTES) return false;
    }
    return request_bytes(encoder) <= MAX_REQUEST_BYTES;
}

static void put_type(struct encoder *encoder, unsigned field, enum fixed_string type, enum fixed_string unit) {
    struct pb_nested value_type = pb_begin(&encoder->request, field, 0);
    pb_varint_field(&encoder->request, TYPE_TYPE, otlp_dictionary_fixed_string(&encoder->dictionary, type));
    pb_varint_field(&encoder->request, TYPE_UNIT, otlp_dictionary_fixed_string(&encoder->dictionary, unit));
    pb_end(&encoder->request, value_type);
}

/* Appends what is encoded already, tags included. */
static void put_encoded(struct pb_buffer *buffer, const struct pb_buffer *encoded) {
    if (!encoded->size || !pb_reserve(buffer, encoded->size)) return;
    memcpy(buffer->bytes + buffer->size, encoded->bytes, encoded->size);
    buffer->size += encoded->size;
}

static void put_profile(struct encoder *encoder, unsigned profile) {
    struct pb_buffer *buffer = &encoder->request;
    uint8_t id[PROFILE_ID_BYTES];
    encoder->options->random_bytes(id, sizeof id);
    struct pb_nested nested = pb_begin(buffer, SCOPE_PROFILES, encoder->samples[profile].size + PROFILE_OVERHEAD);
    put_type(encoder, PROFILE_SAMPLE_TYPE, profile_types[profile].sample_type, profile_types[profile].sample_unit);
    put_encoded(buffer, &encoder->samples[profile]);
    pb_fixed64_field(buffer, PROFILE_TIME, encoder->options->time_unix_nano);
    pb_varint_field(buffer, PROFILE_DURATION, encoder->options->duration_nano);
    put_type(encoder, PROFILE_PERIOD_TYPE, profile_types[profile].period_type, profile_types[profile].period_unit);
    pb_varint_field(buffer, PROFILE_PERIOD, encoder->options->period_ns);
    pb_bytes_field(buffer, PROFILE_ID, id, sizeof id);
    pb_end(buffer, nested);
}

static void put_scope_profiles(struct encoder *encoder) {
    struct pb_buffer *buffer = &encoder->request;
    size_t samples_bytes = encoder->samples[PROFILE_CPU].size + encoder->samples[PROFILE_WALL].size;
    struct pb_nested scope_profiles = pb_begin(buffer, RESOURCE_SCOPE_PROFILES, samples_bytes + 2 * PROFILE_OVERHEAD);
    struct pb_nested scope = pb_begin(buffer, SCOPE_SCOPE, 0);
    pb_bytes_field(buffer, SCOPE_SCOPE_NAME, SCOPE_NAME, sizeof SCOPE_NAME - 1);
    if (*encoder->scope_version)
        pb_bytes_field(buffer, SCOPE_SCOPE_VERSION, encoder->scope_version, strlen(encoder->scope_version));
    pb_end(buffer, scope);
    for (unsigned i = 0; i < PROFILES; i++)
        if (encoder->n_samples[i]) put_profile(encoder, i);
    pb_bytes_field(buffer, SCOPE_SCHEMA, SCOPE_SCHEMA_URL, sizeof SCOPE_SCHEMA_URL - 1);
    pb_end(buffer, scope_profiles);
}

static void put_request(struct encoder *encoder) {
    struct pb_buffer *buffer = &encoder->request;
    size_t dictionary_bytes = otlp_dictionary_bytes(&encoder->dictionary);
    buffer->size = 0;
    if (!pb_reserve(buffer, request_bytes(encoder))) return;
    struct pb_nested resource_profiles = pb_begin(buffer, REQUEST_RESOURCE_PROFILES, request_bytes(encoder) - dictionary_bytes);
    pb_bytes_field(buffer, RESOURCE_RESOURCE, encoder->options->resource, encoder->options->resource_size);
    put_scope_profiles(encoder);
    if (*encoder->resource_schema_url)
        pb_bytes_field(buffer, RESOURCE_SCHEMA_URL, encoder->resource_schema_url, strlen(encoder->resource_schema_url));
    pb_end(buffer, resource_profiles);
    struct pb_nested dictionary = pb_begin(buffer, REQUEST_DICTIONARY, dictionary_bytes);
    for (unsigned i = TABLE_MAPPING; i < TABLES; i++) put_encoded(buffer, &encoder->dictionary.tables[i]);
    pb_end(buffer, dictionary);
}

/* Where a request stood before its last group. */
struct mark {
    size_t tables[TABLES], samples[PROFILES];
    uint32_t n_samples[PROFILES];
};

static struct mark take_mark(const struct encoder *encoder) {
    struct mark mark;
    for (unsigned i = 0; i < TABLES; i++) mark.tables[i] = encoder->dictionary.tables[i].size;
    for (unsigned i = 0; i < PROFILES; i++) {
        mark.samples[i] = encoder->samples[i].size;
        mark.n_samples[i] = encoder->n_samples[i];
    }
    return mark;
}

/* After this only put_request() and start_request() may follow: the dictionary still believes in the entries that were cut off. */
static void cut_back(struct encoder *encoder, const struct mark *mark) {
    for (unsigned i = 0; i < TABLES; i++) encoder->dictionary.tables[i].size = mark->tables[i];
    for (unsigned i = 0; i < PROFILES; i++) {
        encoder->samples[i].size = mark->samples[i];
        encoder->n_samples[i] = mark->n_samples[i];
    }
}

static void start_request(struct encoder *encoder) {
    otlp_dictionary_reset(&encoder->dictionary);
    for (unsigned i = 0; i < PROFILES; i++) encoder->samples[i].size = encoder->n_samples[i] = 0;
}

static bool encode_groups(struct encoder *encoder, const struct intern_table *groups,
                          bool (*emit)(void *context, const uint8_t *bytes, size_t size), void *context) {
    const struct sample_group *all = groups->entries;
    for (uint32_t i = 0; i < groups->size; i++) {
        struct mark mark = take_mark(encoder);
        put_group(encoder, &all[i]);
        if (fits(encoder) || !(mark.n_samples[PROFILE_CPU] + mark.n_samples[PROFILE_WALL])) continue;
        cut_back(encoder, &mark);
        put_request(encoder);
        if (failed(encoder) || !emit(context, encoder->request.bytes, encoder->request.size)) return false;
        start_request(encoder);
        put_group(encoder, &all[i]);
    }
    if (failed(encoder)) return false;
    if (!(encoder->n_samples[PROFILE_CPU] + encoder->n_samples[PROFILE_WALL])) return true;
    put_request(encoder);
    return !failed(encoder) && emit(context, encoder->request.bytes, encoder->request.size);
}

bool otlp_encode(const struct stack_table *table, const struct otlp_options *options,
                 bool (*emit)(void *context, const uint8_t *bytes, size_t size), void *context) {
    struct encoder encoder = {.options = options,
                              .resource_schema_url = options->resource_schema_url ? options->resource_schema_url : "",
                              .scope_version = options->scope_version ? options->scope_version : ""};
    encoder.fixed_bytes = options->resource_size + strlen(encoder.resource_schema_url) + strlen(encoder.scope_version) +
                          sizeof SCOPE_NAME + sizeof SCOPE_SCHEMA_URL + PROFILES * PROFILE_OVERHEAD + REQUEST_OVERHEAD;
    struct stack_table_view view = stack_table_view(table);
    struct sample_groups groups;
    bool good = sample_groups_make(&groups, &view, options) & otlp_dictionary_init(&encoder.dictionary, table);
    good = good && encode_groups(&encoder, &groups.groups, emit, context);
    otlp_dictionary_free(&encoder.dictionary);
    for (unsigned i = 0; i < PROFILES; i++) pb_free(&encoder.samples[i]);
    pb_free(&encoder.request);
    sample_groups_free(&groups);
    return good;
}
