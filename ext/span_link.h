/* The span that is current in a context: the context's variables -> the view -> ids. */
#ifndef OTEL_ASYNCPROF_SPAN_LINK_H
#define OTEL_ASYNCPROF_SPAN_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "span_view.h"

/* Learns the kinds of hash trie nodes from live contexts. False when they are not laid out as expected. */
bool span_link_learn_nodes(void);

/* The view in a context, whole and checked; without one, what can be read of the span itself. False when the context carries no span, or the view could not be read. */
bool span_link_read(uint64_t context, struct span_view *view);

/* Asks for the memory that span_link_read will read in these contexts, a step at a time; cursors are the contexts at step 0, 0 for none,
   and belong to the function afterwards. Further steps do nothing. */
#define SPAN_LINK_STEPS 5
void span_link_prefetch(unsigned step, uint64_t *cursors, unsigned count);

/* How often a span has become current in the thread, or is no more: a link that was read twice may have been another in between. Noted
   by the thread itself, under the GIL, before each change. */
uint64_t span_link_changes(uint64_t thread_ident);
void span_link_note_change(void);

/* The name that the local root's span had when it was activated. text must hold MAX_STRING_BYTES. */
bool span_link_root_name(const struct span_view *view, char *text, size_t *size);

/* Whether the span of a cell has ended, or the cell is no more. */
bool span_link_ended(uint64_t cell);

#endif
