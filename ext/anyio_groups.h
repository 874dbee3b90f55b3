/* anyio's task groups on asyncio. A child carries a callback whose closure has the group, and for start() a future that the task which
   starts it awaits; the group's cancel scope knows the task that is in the group. */
#ifndef OTEL_ASYNCPROF_ANYIO_GROUPS_H
#define OTEL_ASYNCPROF_ANYIO_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

/* Taken from anyio itself once it is imported; addresses of objects that live as long as the process. */
struct anyio_facts {
    uint64_t callback_code;         /* of a child's callback */
    uint64_t end_code, start_code;  /* of the coroutines that wait for children */
    uint64_t name_scope, name_host, name_completed; /* attributes of the group, of its scope, of the group */
    uint32_t group_cell, start_cell; /* numbers in the callback's closure */
    uint32_t host_offset;           /* of the task in a scope with slots; 0 = it has a dict */
};

/* Under the GIL. Readers begin to use them. */
void anyio_groups_use(const struct anyio_facts *facts);

/* Where value stands in an object of size bytes; 0 = nowhere. */
uint32_t anyio_groups_find_slot(uint64_t object, uint64_t value, uint32_t size);

struct anyio_parents {
    uint64_t host;     /* a task, whose group the child is in; 0 = not known */
    bool host_waits;   /* for its children, and for nothing else */
    uint64_t starting; /* the future of start(); 0 = none */
};

/* False when the function is no child's callback. */
bool anyio_groups_read(uint64_t function, struct anyio_parents *parents);

/* Whether a coroutine with this code, which awaits a future directly, waits for children of a group. */
bool anyio_groups_wait_in(uint64_t code);

#endif
