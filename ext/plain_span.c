#include "plain_span.h"

#include <string.h>

#include "cpython/layout.h"
#include "read_object.h"

/* The fields of a SpanContext, which is a tuple. */
enum { TRACE_ID, SPAN_ID, IS_REMOTE, TRACE_FLAGS, FIELDS };

bool plain_span_read(uint64_t context, struct span_view *view) {
    static const uint8_t invalid[sizeof view->trace_id];
    uint64_t type, span, span_context, end_time, fields[FIELDS];
    uint8_t flags[8];
    if (!anchors.span_key || !read_type(context, &type) || !read_is_subtype(type, anchors.type_span_context_holder)) return false;
    if (!read_dict_value(context, anchors.span_key, &span) || !read_attribute(span, anchors.name_context, &span_context)) return false;
    memset(view, 0, sizeof *view);
    if (read_tuple(span_context, fields, FIELDS) != FIELDS || !read_int_bytes(fields[TRACE_ID], view->trace_id, sizeof view->trace_id) ||
        !read_int_bytes(fields[SPAN_ID], view->span_id, sizeof view->span_id) || !read_int_bytes(fields[TRACE_FLAGS], flags, sizeof flags))
        return false;
    if (memcmp(view->trace_id, invalid, sizeof view->trace_id) == 0 || memcmp(view->span_id, invalid, sizeof view->span_id) == 0)
        return false;
    memcpy(view->local_root, view->span_id, sizeof view->local_root);
    if (fields[IS_REMOTE] != anchors.false_object) view->flags |= SPAN_REMOTE;
    if (flags[7] & 1) view->flags |= SPAN_SAMPLED;
    /* Only a recording span has an end; None until it has come. */
    if (!read_attribute(span, anchors.name_end_time, &end_time)) return true;
    view->flags |= SPAN_RECORDING;
    return end_time == anchors.none;
}
