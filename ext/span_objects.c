#include "span_objects.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "cpython/layout.h"
#include "span_facts.h"
#include "span_view.h"

/* A span that is never ended must not hold memory for ever. */
enum { MAX_OPEN_SPANS = 1 << 16, MIN_BUCKET_BITS = 8, MAX_BUCKET_BITS = 16, BUCKET_BITS_STEP = 2 };

PyTypeObject *span_context_type, *span_view_type;
size_t span_view_offset;
static PyTypeObject *cell_type;
static newfunc dict_new;
static freefunc cell_free;
static destructor context_dealloc;
static bool views_are_simple; /* the base adds to a dict nothing but weak references and a dict for attributes */
static PyObject *no_arguments;

static struct view_part *part_of(PyObject *view) { return (struct view_part *)(void *)((char *)view + span_view_offset); }

const struct view_part *span_view_of(PyObject *object) {
    if (object == NULL || span_view_type == NULL || Py_TYPE(object) != span_view_type) return NULL;
    return part_of(object)->fields.magic == SPAN_VIEW_MAGIC ? part_of(object) : NULL;
}

static void retain(struct cell_object *cell) { Py_XINCREF((PyObject *)(void *)cell); }
static void release(struct cell_object *cell) { Py_XDECREF((PyObject *)(void *)cell); }

/* ---- cells of open spans: a hash table by span id, and the same cells in a list by age. Guarded by the GIL: nothing here runs
   Python code or can start a garbage collection. */

static struct cell_object *buckets[1 << MAX_BUCKET_BITS];
static unsigned bucket_bits = MIN_BUCKET_BITS; /* so many are in use: a few spans need few cache lines */
static struct cell_object *oldest, *newest;
static size_t open_spans;

static struct cell_object **bucket_of(uint64_t span_id) {
    return &buckets[(span_id * 0x9e3779b97f4a7c15ull) >> (64 - bucket_bits)];
}

static void put_in_bucket(struct cell_object *cell) {
    struct cell_object **bucket = bucket_of(cell->span_id);
    cell->next_in_bucket = *bucket;
    *bucket = cell;
}

static void use_more_buckets(void) {
    memset(buckets, 0, sizeof buckets[0] << bucket_bits);
    bucket_bits += BUCKET_BITS_STEP;
    for (struct cell_object *cell = oldest; cell != NULL; cell = cell->newer) put_in_bucket(cell);
}

/* Borrowed. */
static struct cell_object *find_cell(uint64_t span_id) {
    struct cell_object *cell = *bucket_of(span_id);
    while (cell != NULL && cell->span_id != span_id) cell = cell->next_in_bucket;
    return cell;
}

static void close_cell(struct cell_object *cell) {
    __atomic_store_n(&cell->fields.ended, 1, __ATOMIC_RELAXED);
    if (!cell->open) return;
    struct cell_object **link = bucket_of(cell->span_id);
    while (*link != cell) link = &(*link)->next_in_bucket;
    *link = cell->next_in_bucket;
    *(cell->older != NULL ? &cell->older->newer : &oldest) = cell->newer;
    *(cell->newer != NULL ? &cell->newer->older : &newest) = cell->older;
    open_spans--;
    cell->open = false;
    release(cell);
}

static void open_cell(struct cell_object *cell) {
    if (open_spans == MAX_OPEN_SPANS) close_cell(oldest);
    if (open_spans >> bucket_bits != 0 && bucket_bits < MAX_BUCKET_BITS) use_more_buckets();
    put_in_bucket(cell);
    cell->older = newest;
    *(newest != NULL ? &newest->newer : &oldest) = cell;
    newest = cell;
    open_spans++;
    cell->open = true;
    retain(cell);
}

/* Objects that wait to be used again: an activation mostly needs what the one before it has left. Without a reference, unknown to the
   garbage collector. */
enum { MAX_SPARE = 16 };
static PyObject *spare_cells[MAX_SPARE], *spare_views[MAX_SPARE];
static unsigned n_spare_cells, n_spare_views;

static void cell_dealloc(PyObject *object) {
    struct cell_object *cell = (struct cell_object *)(void *)object;
    __atomic_store_n(&cell->fields.magic, 0, __ATOMIC_RELAXED);
    Py_XDECREF(cell->name);
    release(cell->root);
    if (n_spare_cells < MAX_SPARE) spare_cells[n_spare_cells++] = object;
    else cell_free(object);
    Py_DECREF((PyObject *)cell_type);
}

static struct cell_object *alloc_cell(void) {
    if (n_spare_cells == 0) return (struct cell_object *)(void *)PyType_GenericAlloc(cell_type, 0);
    PyObject *object = spare_cells[--n_spare_cells];
    const size_t head = offsetof(struct cell_object, fields);
    memset((char *)object + head, 0, sizeof(struct cell_object) - head);
    return (struct cell_object *)(void *)PyObject_Init(object, cell_type);
}

/* Lets somebody add a span processor, which calls span_ended(), before the first span of a provider can end. */
static int notice_processor(struct span_source *source, PyObject *span) {
    PyObject *processor = span_facts_processor(span);
    if (processor == NULL) return PyErr_Occurred() ? -1 : 0;
    if (processor == source->noticed) return Py_DECREF(processor), 0;
    PyObject *old = source->noticed, *answer = NULL;
    source->noticed = processor;
    Py_XDECREF(old);
    answer = PyObject_CallFunctionObjArgs(source->notice, processor, NULL);
    Py_XDECREF(answer);
    return answer != NULL ? 0 : -1;
}

/* A new reference to a cell that is not in the table yet. */
static struct cell_object *new_cell(struct span_source *source, PyObject *span, uint64_t span_id) {
    PyObject *name = notice_processor(source, span) == 0 ? span_facts_name(span) : NULL;
    if (name == NULL && PyErr_Occurred()) return NULL;
    struct cell_object *cell = alloc_cell();
    if (cell != NULL && name != NULL && PyUnicode_Check(name)) cell->name = PyUnicode_FromObject(name);
    Py_XDECREF(name);
    if (cell == NULL || (name != NULL && cell->name == NULL && PyErr_Occurred())) return release(cell), NULL;
    cell->span_id = span_id;
    cell->fields = (struct span_cell){.magic = SPAN_CELL_MAGIC, .name = (uint64_t)(uintptr_t)cell->name};
    uint64_t id = htobe64(span_id);
    memcpy(cell->fields.span_id, &id, sizeof id);
    return cell;
}

/* A new reference: the cell of a span that records or has recorded; NULL without an exception when it never did.
   *known: it was made by an earlier activation. Between reading _end_time and opening the cell nothing lets another thread in:
   span_ended() finds every cell that was opened for a span not yet ended. */
static struct cell_object *cell_of(struct span_source *source, PyObject *span, struct span_facts *facts, bool *known) {
    *known = false;
    if (facts->flags & SPAN_REMOTE) return NULL;
    struct cell_object *found = find_cell(facts->span_id), *cell = NULL;
    if (found == NULL) {
        if (Py_TYPE(span) == source->non_recording || (cell = new_cell(source, span, facts->span_id)) == NULL) return NULL;
    }
    if (Py_TYPE(span) != source->non_recording && span_facts_read_end(span, facts) < 0) return release(cell), NULL;
    found = find_cell(facts->span_id); /* again: the attributes of a foreign span may be code */
    if (found != NULL) {
        *known = true;
        release(cell);
        retain(found);
        if (facts->ended || facts->denies) close_cell(found);
        return found;
    }
    if (cell == NULL || !(facts->ended || facts->flags & SPAN_RECORDING)) return release(cell), NULL;
    if (facts->ended) cell->fields.ended = 1;
    else open_cell(cell);
    return cell;
}

/* ---- views */

/* The garbage collector calls this once in an object's life, and view_dealloc does. */
static void view_finalize(PyObject *view) {
    struct view_part *part = part_of(view);
    struct cell_object *cell = part->cell, *spawner_cell = part->spawner_cell, *root_cell = part->root_cell;
    __atomic_store_n(&part->fields.magic, 0, __ATOMIC_RELEASE);
    memset(part, 0, sizeof *part);
    release(cell), release(spawner_cell), release(root_cell);
}

/* Contexts in contexts are freed one within the other: below this depth by subtype_dealloc, which knows how to put that off. */
enum { MAX_NESTED_DEALLOCS = 20 };
static unsigned nested_deallocs;

/* What there is to do for a Context and not for a dict: to clear weak references and the instance dict. */
static bool is_nothing_but_a_dict(const char *object) {
    uint64_t dict, values = 0;
    if (!views_are_simple) return false;
    memcpy(&dict, object + layout.instance_dict, sizeof dict);
    if (layout.instance_values != 0) memcpy(&values, object + layout.instance_values, sizeof values);
    return dict == 0 && values == 0;
}

/* One that the garbage collector has finalized is not used again: it would not be finalized a second time. */
static void view_dealloc(PyObject *view) {
    bool finalized = part_of(view)->fields.magic == 0;
    PyObject_GC_UnTrack(view);
    if (!finalized) view_finalize(view);
    if (nested_deallocs < MAX_NESTED_DEALLOCS && is_nothing_but_a_dict((const char *)(void *)view)) {
        nested_deallocs++;
        PyObject_ClearWeakRefs(view);
        PyDict_Clear(view);
        nested_deallocs--;
        if (!finalized && n_spare_views < MAX_SPARE) {
            spare_views[n_spare_views++] = view;
            Py_DECREF((PyObject *)span_view_type);
            return;
        }
    }
    /* It dies as the Context that it is besides. Every object has a reference to its type, which goes with it. */
    Py_SET_TYPE(view, (PyTypeObject *)Py_NewRef((PyObject *)span_context_type));
    Py_DECREF((PyObject *)span_view_type);
    context_dealloc(view);
}

/* An empty view. */
static PyObject *alloc_view(void) {
    if (n_spare_views == 0) return dict_new(span_view_type, no_arguments, NULL);
    PyObject *view = PyObject_Init(spare_views[--n_spare_views], span_view_type);
    PyObject_GC_Track(view);
    return view;
}

static struct cell_object *hold(struct cell_object *cell, uint64_t *address) {
    retain(cell);
    *address = cell != NULL ? (uint64_t)(uintptr_t)&cell->fields : 0;
    return cell;
}

static void fill(struct view_part *part, const struct span_facts *facts, struct cell_object *cell, bool known,
                 const struct view_part *current, const struct view_part *rooted, uint64_t owner) {
    struct span_view *fields = &part->fields;
    uint64_t ids[3] = {htobe64(facts->trace_id[0]), htobe64(facts->trace_id[1]), htobe64(facts->span_id)};
    memcpy(fields->trace_id, ids, 16);
    memcpy(fields->span_id, &ids[2], 8);
    fields->flags = facts->flags;
    fields->owner = owner;
    struct cell_object *root = cell, *spawner_cell = NULL;
    if (known) { /* the local root is a fact of the span: settled when it was first activated */
        memcpy(fields->local_root, cell->local_root, 8);
        if (cell->root != NULL) root = cell->root;
        else if (memcmp(cell->local_root, fields->span_id, 8) != 0) root = NULL;
    } else if (!(facts->flags & SPAN_REMOTE)) { /* a remote span has none */
        memcpy(fields->local_root, &ids[2], 8);
        if (rooted != NULL && !(rooted->fields.flags & SPAN_REMOTE) && memcmp(rooted->fields.trace_id, ids, 16) == 0) {
            memcpy(fields->local_root, rooted->fields.local_root, 8);
            root = rooted->root_cell;
        }
        if (cell != NULL) {
            memcpy(cell->local_root, fields->local_root, 8);
            if (root != cell) retain(root), cell->root = root;
        }
    }
    if (current != NULL && current->fields.owner != owner) {
        fields->spawner = current->fields.owner;
        if (fields->spawner != 0) spawner_cell = current->cell;
    } else if (current != NULL) {
        fields->spawner = current->fields.spawner;
        spawner_cell = current->spawner_cell;
    }
    part->cell = hold(cell, &fields->cell);
    part->root_cell = hold(root, &fields->root_cell);
    part->spawner_cell = hold(spawner_cell, &fields->spawner_cell);
    fields->magic = SPAN_VIEW_MAGIC;
    fields->checksum = span_view_checksum(fields);
}

PyObject *span_view_make(struct span_source *source, PyObject *context, PyObject *span, PyObject *current, uint64_t owner) {
    struct span_facts facts = {0};
    bool known = false;
    int valid = span_facts_read_ids(span, &facts);
    if (valid <= 0) return valid == 0 ? Py_NewRef(context) : NULL;
    struct cell_object *cell = cell_of(source, span, &facts, &known);
    if (cell == NULL && PyErr_Occurred()) return NULL;
    PyObject *view = alloc_view();
    if (view != NULL && PyDict_Merge(view, context, 1) < 0) Py_CLEAR(view);
    const struct view_part *before = span_view_of(current), *same = span_view_of(context);
    if (view != NULL) fill(part_of(view), &facts, cell, known, before, same != NULL ? same : before, owner);
    release(cell);
    return view;
}

int span_ended(uint64_t span_id) {
    struct cell_object *cell = find_cell(span_id);
    if (cell != NULL) close_cell(cell);
    return cell != NULL;
}

size_t span_open_count(void) { return open_spans; }

/* ---- types */

static PyType_Slot cell_slots[] = {
    {Py_tp_doc, "One span as the sampler sees it, shared by all its views."},
    {Py_tp_dealloc, (void *)cell_dealloc},
    {0, NULL},
};
static PyType_Spec cell_spec = {"otel_asyncprof._native.SpanCell", sizeof(struct cell_object), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, cell_slots};

int span_objects_init(PyObject *module) {
    if (span_facts_init() < 0) return -1;
    if (no_arguments == NULL && (no_arguments = PyTuple_New(0)) == NULL) return -1;
    dict_new = (newfunc)PyType_GetSlot(&PyDict_Type, Py_tp_new);
    if (cell_type == NULL && (cell_type = (PyTypeObject *)PyType_FromSpec(&cell_spec)) == NULL) return -1;
    cell_free = (freefunc)PyType_GetSlot(cell_type, Py_tp_free);
    return PyModule_AddObjectRef(module, "SpanCell", (PyObject *)cell_type);
}

/* Whoever asks a context for its type and calls that gets what he would get without us: a Context. */
static PyObject *view_new(PyTypeObject *Py_UNUSED(type), PyObject *arguments, PyObject *keywords) {
    return PyObject_Call((PyObject *)span_context_type, arguments, keywords);
}

/* Copied and pickled as the Context that it is besides. */
static PyObject *view_reduce_ex(PyObject *view, PyObject *protocol) {
    PyObject *context = PyObject_CallFunctionObjArgs((PyObject *)span_context_type, view, NULL);
    PyObject *reduced = context != NULL ? PyObject_CallMethod(context, "__reduce_ex__", "O", protocol) : NULL;
    Py_XDECREF(context);
    return reduced;
}

/* pickle compares it with the type that __reduce_ex__ names. */
static PyObject *view_class(PyObject *Py_UNUSED(view), void *Py_UNUSED(closure)) { return Py_NewRef((PyObject *)span_context_type); }

static PyGetSetDef view_properties[] = {
    {"__class__", view_class, NULL, "The type of which a view is a stand-in.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef view_methods[] = {
    {"__reduce_ex__", view_reduce_ex, METH_O, "How a Context with the same items is copied and pickled."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot view_slots[] = {
    {Py_tp_doc, "A Context that carries a span, with the span's ids where the sampler can read them."},
    {Py_tp_new, (void *)view_new},
    {Py_tp_methods, view_methods},
    {Py_tp_getset, view_properties},
    {Py_tp_finalize, (void *)view_finalize},
    {Py_tp_dealloc, (void *)view_dealloc},
    {0, NULL},
};
/* Traversal, clearing and the instance dict are inherited: HAVE_GC here would mean that we bring our own. */
static PyType_Spec view_spec = {"otel_asyncprof._native.SpanContextView", 0, 0, Py_TPFLAGS_DEFAULT, view_slots};

int span_view_type_make(PyTypeObject *base) {
    if (span_view_type != NULL && base == span_context_type) return 0;
    if (span_view_type != NULL || !PyType_IsSubtype(base, &PyDict_Type)) {
        PyErr_SetString(PyExc_RuntimeError, "spans cannot be read: the type of contexts is no dict or has changed");
        return -1;
    }
    PyObject *size = PyObject_GetAttrString((PyObject *)base, "__basicsize__");
    size_t offset = size != NULL ? PyLong_AsSize_t(size) : 0;
    Py_XDECREF(size);
    if (PyErr_Occurred()) return -1;
    if (offset % _Alignof(struct view_part) != 0 || offset > MAX_VIEW_OFFSET) {
        PyErr_Format(PyExc_RuntimeError, "spans cannot be read: a context has %zu bytes", offset);
        return -1;
    }
    view_spec.basicsize = (int)(offset + sizeof(struct view_part));
    PyObject *type = PyType_FromSpecWithBases(&view_spec, (PyObject *)base);
    if (type == NULL) return -1;
    unsigned long flags = PyType_GetFlags(base);
    context_dealloc = (destructor)PyType_GetSlot(base, Py_tp_dealloc);
    views_are_simple = layout.minor != 0 && PyType_GetSlot(base, Py_tp_base) == (void *)&PyDict_Type &&
                       PyType_GetSlot(base, Py_tp_finalize) == NULL && (flags & layout.type_flag_managed_dict) &&
                       !(flags & layout.type_flag_inline_values);
    span_view_offset = offset;
    span_context_type = (PyTypeObject *)Py_NewRef((PyObject *)base);
    span_view_type = (PyTypeObject *)type;
    return 0;
}
