/* What a span says of itself. Used by span_objects.c only; everything needs the GIL. */
#ifndef OTEL_ASYNCPROF_SPAN_FACTS_H
#define OTEL_ASYNCPROF_SPAN_FACTS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

struct span_facts {
    uint64_t trace_id[2]; /* high, low */
    uint64_t span_id;
    uint64_t flags;       /* of span_view.h */
    bool ended;
    bool denies;          /* does not record, without saying whether it ever did */
};

int span_facts_init(void);

/* Ids and flags. 1 valid, 0 not, -1 with an exception. */
int span_facts_read_ids(PyObject *span, struct span_facts *facts);

/* Whether the span records or has ended. 0, or -1 with an exception. */
int span_facts_read_end(PyObject *span, struct span_facts *facts);

/* A new reference; NULL, with or without an exception. */
PyObject *span_facts_name(PyObject *span);
PyObject *span_facts_processor(PyObject *span);

#endif
