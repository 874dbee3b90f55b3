#include "span_facts.h"

#include <string.h>

#include "cpython/layout.h"
#include "span_view.h"

#define NAME_LIST(X) X(name) X(get_span_context) X(is_recording) X(trace_id) X(span_id) X(is_remote) X(trace_flags) X(is_valid)
#define NAME_DECLARE(name) static PyObject *str_##name;
NAME_LIST(NAME_DECLARE)

static const char *bytes_of(PyObject *object) { return (const char *)(void *)object; }

static uint64_t word_at(const char *address) {
    uint64_t word;
    memcpy(&word, address, sizeof word);
    return word;
}

/* ---- attributes. OpenTelemetry's spans keep what we ask for in their instances: to read it there costs no Python call. Where, is a
   fact of the type, learned from its first span and compared there with what the interpreter says: the generic lookup costs many
   times as much, and an activation needs two to four of them. A property that a class is given later is not seen. */

enum attribute { CONTEXT, END_TIME, PROCESSOR, NAME, ATTRIBUTES };
static const char *const attribute_names[ATTRIBUTES] = {"_context", "_end_time", "_span_processor", "_name"};
static PyObject *attribute_name[ATTRIBUTES];

enum { SHAPES = 4, MAX_SHARED_KEYS = 30, NOWHERE = -1, KEYS_OF_STR = 1, KEY_WORDS = 2 };
static struct shape {
    PyTypeObject *type; /* owned, so that no other type comes to live at this address */
    size_t inline_at;   /* of the values in an instance; 0: they stand elsewhere */
    int32_t offset[ATTRIBUTES];
} shapes[SHAPES];

static PyObject *generic(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return value;
}

/* Borrowed; NULL when it is not there, which does not say that there is no such attribute. */
static PyObject *value_in(PyObject *span, const struct shape *shape, enum attribute which) {
    const char *object = bytes_of(span), *values = NULL;
    if (shape->offset[which] == NOWHERE) return NULL;
    if (shape->inline_at != 0) {
        if (object[shape->inline_at + layout.values_valid]) values = object + shape->inline_at;
    } else if (layout.instance_values != 0) {
        values = (const char *)(uintptr_t)word_at(object + layout.instance_values);
    } else if (layout.instance_dict_tagged) {
        uint64_t word = word_at(object + layout.instance_dict);
        if (word & 1) values = (const char *)(uintptr_t)(word + 1);
    }
    return values != NULL ? (PyObject *)(uintptr_t)word_at(values + shape->offset[which]) : NULL;
}

/* Where the instances of a type have an attribute among their values: the keys of all are the type's own, and only ever grow. */
static int32_t offset_in_type(PyTypeObject *type, PyObject *name) {
    const char *keys = (const char *)(uintptr_t)word_at(bytes_of((PyObject *)type) + layout.type_cached_keys);
    if (keys == NULL || keys[layout.keys_kind] < KEYS_OF_STR) return NOWHERE;
    const char *entries = keys + layout.keys_indices + (1u << (uint8_t)keys[layout.keys_log2_index_bytes]);
    uint64_t used = word_at(keys + layout.keys_entries_used);
    for (uint64_t i = 0; i < used && i < MAX_SHARED_KEYS; i++)
        if (word_at(entries + 8 * KEY_WORDS * i) == (uint64_t)(uintptr_t)name) return (int32_t)(layout.values_items + 8 * i);
    return NOWHERE;
}

/* What is found at the offset must be what the interpreter finds, and the class must have nothing to say about it. */
static bool is_right(PyObject *span, const struct shape *shape, enum attribute which) {
    PyObject *of_class = generic((PyObject *)Py_TYPE(span), attribute_name[which]);
    PyObject *value = of_class == NULL && !PyErr_Occurred() ? generic(span, attribute_name[which]) : NULL;
    bool right = value != NULL && value == value_in(span, shape, which);
    Py_XDECREF(of_class), Py_XDECREF(value);
    PyErr_Clear();
    return right;
}

static void learn(struct shape *shape, PyObject *span) {
    PyTypeObject *type = Py_TYPE(span);
    struct shape learned = {.type = type};
    unsigned long flags = PyType_GetFlags(type);
    bool known = layout.minor != 0 && (flags & Py_TPFLAGS_HEAPTYPE) && (flags & layout.type_flag_managed_dict) &&
                 PyType_GetSlot(type, Py_tp_getattro) == (void *)PyObject_GenericGetAttr;
    if (known && (flags & layout.type_flag_inline_values))
        learned.inline_at = (size_t)word_at(bytes_of((PyObject *)type) + layout.type_basicsize);
    for (int i = 0; i < ATTRIBUTES; i++) {
        learned.offset[i] = known ? offset_in_type(type, attribute_name[i]) : NOWHERE;
        if (learned.offset[i] != NOWHERE && !is_right(span, &learned, (enum attribute)i)) learned.offset[i] = NOWHERE;
    }
    if (shape->type == NULL) *shape = learned, Py_INCREF((PyObject *)type); /* unless another thread was let in meanwhile */
}

static const struct shape *find_shape(PyObject *span) {
    for (int i = 0; i < SHAPES; i++) {
        if (shapes[i].type == NULL) learn(&shapes[i], span);
        if (shapes[i].type == Py_TYPE(span)) return &shapes[i];
    }
    return NULL;
}

/* A new reference; NULL without an exception when there is none. */
static PyObject *attribute(PyObject *span, enum attribute which) {
    const struct shape *shape = shapes[0].type == Py_TYPE(span) ? &shapes[0] : find_shape(span);
    PyObject *value = shape != NULL ? value_in(span, shape, which) : NULL;
    return value != NULL ? Py_NewRef(value) : generic(span, attribute_name[which]);
}

PyObject *span_facts_name(PyObject *span) {
    PyObject *name = attribute(span, NAME);
    return name != NULL || PyErr_Occurred() ? name : generic(span, str_name);
}

PyObject *span_facts_processor(PyObject *span) { return attribute(span, PROCESSOR); }

/* ---- ids: read out of ints and tuples where the table says, if that comes out right for objects that we know (try_objects) */

enum { DIGIT_BITS = 30 };
static bool objects_are_known;
static PyObject *sixty_four;

static uint64_t digit_at(const char *digits, unsigned i) {
    uint32_t digit;
    memcpy(&digit, digits + sizeof digit * i, sizeof digit);
    return digit;
}

/* The low 128 bits of an int, high word first; false for a negative one, or one that is too large for an id. */
static bool read_digits(PyObject *integer, uint64_t words[2]) {
    const char *digits = bytes_of(integer) + layout.int_digits;
    uint64_t tag = word_at(bytes_of(integer) + layout.int_tag), count = tag;
    if (!layout.int_tag_is_size) {
        if (tag & 2) return false;
        count = tag >> 3;
    }
    words[0] = words[1] = 0;
    switch (count) {
    case 5: words[0] = digit_at(digits, 4) << (4 * DIGIT_BITS - 64); /* fall through */
    case 4: words[0] |= digit_at(digits, 3) << (3 * DIGIT_BITS - 64); /* fall through */
    case 3: words[0] |= digit_at(digits, 2) >> (64 - 2 * DIGIT_BITS), words[1] = digit_at(digits, 2) << 2 * DIGIT_BITS; /* fall through */
    case 2: words[1] |= digit_at(digits, 1) << DIGIT_BITS; /* fall through */
    case 1: words[1] |= digit_at(digits, 0); /* fall through */
    case 0: return true;
    default: return false;
    }
}

static int read_words(PyObject *integer, uint64_t words[2]) {
    if (objects_are_known && read_digits(integer, words)) return 0;
    PyObject *high = PyNumber_Rshift(integer, sixty_four);
    if (high == NULL) return -1;
    words[0] = PyLong_AsUnsignedLongLongMask(high);
    words[1] = PyLong_AsUnsignedLongLongMask(integer);
    Py_DECREF(high);
    return 0;
}

static bool is_int(PyObject *object) { return Py_TYPE(object) == &PyLong_Type || PyLong_Check(object); }

/* The items of a SpanContext. is_valid has checked the width of the ids. */
enum { TRACE_ID, SPAN_ID, IS_REMOTE, TRACE_FLAGS, TRACE_STATE, IS_VALID, FACTS };

static int facts_from(PyObject *const item[FACTS], struct span_facts *facts) {
    if (!is_int(item[TRACE_ID]) || !is_int(item[SPAN_ID]) || !is_int(item[TRACE_FLAGS])) return 0;
    int valid = item[IS_VALID] == Py_True ? 1 : PyObject_IsTrue(item[IS_VALID]);
    if (valid <= 0) return valid;
    int remote = item[IS_REMOTE] == Py_False ? 0 : PyObject_IsTrue(item[IS_REMOTE]);
    uint64_t id[2], bits[2];
    if (remote < 0 || read_words(item[TRACE_ID], facts->trace_id) < 0 || read_words(item[SPAN_ID], id) < 0 ||
        read_words(item[TRACE_FLAGS], bits) < 0)
        return -1;
    facts->span_id = id[1];
    facts->flags = (remote ? SPAN_REMOTE : 0) | (bits[1] & 1 ? SPAN_SAMPLED : 0) | (bits[1] & 2 ? SPAN_RANDOM_TRACE_ID : 0);
    return 1;
}

static int facts_from_properties(PyObject *span_context, struct span_facts *facts) {
    PyObject *const name[FACTS] = {str_trace_id, str_span_id, str_is_remote, str_trace_flags, Py_None, str_is_valid};
    PyObject *item[FACTS] = {NULL};
    int valid = 1;
    for (int i = 0; i < FACTS && valid > 0; i++)
        if (i != TRACE_STATE && (item[i] = PyObject_GetAttr(span_context, name[i])) == NULL) valid = -1;
    if (valid > 0) valid = facts_from(item, facts);
    for (int i = 0; i < FACTS; i++) Py_XDECREF(item[i]);
    return valid;
}

/* Borrowed items of a tuple that is as long as a SpanContext; false if it is not. */
static bool read_items(PyObject *tuple, PyObject *item[FACTS]) {
    if (objects_are_known) {
        if (word_at(bytes_of(tuple) + layout.var_size) != FACTS) return false;
        memcpy(item, bytes_of(tuple) + layout.tuple_items, FACTS * sizeof item[0]);
        return true;
    }
    if (PyTuple_Size(tuple) != FACTS) return false;
    for (int i = 0; i < FACTS; i++) item[i] = PyTuple_GetItem(tuple, i);
    return true;
}

int span_facts_read_ids(PyObject *span, struct span_facts *facts) {
    PyObject *span_context = attribute(span, CONTEXT), *item[FACTS];
    if (span_context == NULL && PyErr_Occurred()) return -1;
    bool is_tuple = span_context != NULL && PyTuple_Check(span_context);
    if (!is_tuple) {
        Py_XDECREF(span_context);
        span_context = PyObject_CallMethodObjArgs(span, str_get_span_context, NULL);
        if (span_context == NULL) return -1;
        is_tuple = PyTuple_Check(span_context);
    }
    int valid = 0;
    if (is_tuple && read_items(span_context, item)) valid = facts_from(item, facts);
    else if (span_context != Py_None) valid = facts_from_properties(span_context, facts);
    Py_DECREF(span_context);
    return valid;
}

int span_facts_read_end(PyObject *span, struct span_facts *facts) {
    PyObject *end_time = attribute(span, END_TIME);
    if (end_time != NULL) {
        facts->ended = end_time != Py_None;
        Py_DECREF(end_time);
    } else {
        if (PyErr_Occurred()) return -1;
        PyObject *answer = PyObject_CallMethodObjArgs(span, str_is_recording, NULL);
        int recording = answer != NULL ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        if (recording < 0) return -1;
        facts->denies = !recording;
    }
    if (!facts->ended && !facts->denies) facts->flags |= SPAN_RECORDING;
    return 0;
}

static int try_objects(void) {
    uint64_t words[2] = {0};
    PyObject *number = PyLong_FromString("0123456789abcdeffedcba9876543210", NULL, 16), *item[FACTS] = {NULL};
    PyObject *tuple = number != NULL ? PyTuple_Pack(FACTS, Py_None, Py_True, Py_False, number, Py_None, number) : NULL;
    if (tuple == NULL) return Py_XDECREF(number), -1;
    objects_are_known = layout.minor != 0;
    if (objects_are_known)
        objects_are_known = read_items(tuple, item) && item[0] == Py_None && item[1] == Py_True && item[FACTS - 1] == number &&
                            read_digits(number, words) && words[0] == 0x0123456789abcdefull && words[1] == 0xfedcba9876543210ull;
    Py_DECREF(number), Py_DECREF(tuple);
    return 0;
}

int span_facts_init(void) {
#define NAME_MAKE(name) if (str_##name == NULL && (str_##name = PyUnicode_InternFromString(#name)) == NULL) return -1;
    NAME_LIST(NAME_MAKE)
    for (int i = 0; i < ATTRIBUTES; i++)
        if (attribute_name[i] == NULL && (attribute_name[i] = PyUnicode_InternFromString(attribute_names[i])) == NULL) return -1;
    if (sixty_four == NULL && (sixty_four = PyLong_FromLong(64)) == NULL) return -1;
    return try_objects(); /* without a table for this version, the interpreter is asked for everything */
}
