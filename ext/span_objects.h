/* The cell of a span and the view of a context, as Python objects. Used by span_context.c only; everything needs the GIL. */
#ifndef OTEL_ASYNCPROF_SPAN_OBJECTS_H
#define OTEL_ASYNCPROF_SPAN_OBJECTS_H

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "span_view.h"

enum { MAX_VIEW_OFFSET = 4096 };

/* Holds no object that can run code or be part of a cycle: to free one never re-enters us. */
struct cell_object {
    PyObject_HEAD
    struct span_cell fields;
    PyObject *name;           /* exact str or NULL */
    struct cell_object *root; /* cell of the local root; NULL: this is the root, or the root has no cell */
    uint64_t span_id;
    uint8_t local_root[8];
    bool open; /* is in the table of open spans, which then owns a reference */
    struct cell_object *next_in_bucket, *older, *newer;
};

/* Follows the base's own memory in a view. */
struct view_part {
    struct span_view fields;
    struct cell_object *cell, *spawner_cell, *root_cell; /* keep alive what fields points to */
};

/* What a runtime context knows of the spans it is given. */
struct span_source {
    PyTypeObject *non_recording; /* a type whose spans never record */
    PyObject *notice;            /* called with the span processor of a span when it is not the one called with last */
    PyObject *noticed;
};

/* NULL and 0 until span_view_type_make() succeeded; then they never change. */
extern PyTypeObject *span_context_type, *span_view_type;
extern size_t span_view_offset;

int span_objects_init(PyObject *module);

/* Makes the type of views, a subclass of base: once in a process, since views outlive any runtime context. -1 with an exception. */
int span_view_type_make(PyTypeObject *base);

/* The view part of an object; NULL when it is no view, or one the garbage collector has finalized. */
const struct view_part *span_view_of(PyObject *object);

/* A new reference to the view of a context that carries span, or to the context itself when the span is not valid. NULL with an
   exception. current: what the context variable holds, or NULL. */
PyObject *span_view_make(struct span_source *source, PyObject *context, PyObject *span, PyObject *current, uint64_t owner);

/* 1 when a cell was open for this span. */
int span_ended(uint64_t span_id);

size_t span_open_count(void);

#endif
