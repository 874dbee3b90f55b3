/* Greenlets, in which SQLAlchemy runs sync code for a coroutine. greenlet_spawn() switches to a greenlet of its own; that one switches
   back with something to await, and its frames are on no thread's stack and in no coroutine until it goes on. While it runs, the
   thread's stack is the greenlet's alone, and the frames of the task stand in the greenlet that was switched away from.

   A greenlet that is switched away from has a frame object for its uppermost frame. From 3.12 on greenlet links its frames past the
   interpreter's entry frames meanwhile, which are on a C stack that other greenlets use; before there are none. */
#ifndef OTEL_ASYNCPROF_GREENLETS_H
#define OTEL_ASYNCPROF_GREENLETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw_frame.h"

/* Found out with greenlets of our own: no offset is compiled in. */
struct greenlet_facts {
    uint64_t type;         /* greenlet.greenlet */
    uint64_t spawn_code;   /* of greenlet_spawn() */
    uint32_t spawn_local;  /* number of the local variable that holds the greenlet */
    uint32_t state;        /* in a greenlet: the pointer to its state */
    uint32_t top, parent;  /* in that state: the frame object of its uppermost frame, and the greenlet that it came from */
    uint32_t object_frame; /* in a frame object: the frame */
};

/* Where these addresses stand in a greenlet that is switched away from in a function with this code, and has this parent. False when
   they are not found. */
bool greenlets_find(uint64_t greenlet, uint64_t frame_object, uint64_t code, uint64_t parent, struct greenlet_facts *facts);

/* Under the GIL, once checked: they hold until the process ends. Readers begin to use them. */
void greenlets_use(const struct greenlet_facts *facts);
bool greenlets_are_known(void);

/* Whether a suspended coroutine with this code may have a greenlet. */
bool greenlets_belong_to(uint64_t code);

/* The frames of the greenlet of a suspended greenlet_spawn() with this frame, root first; count is 0 when it has none. When there are
   more than capacity, count is larger than that. False when memory could not be read or the greenlet has moved. */
bool greenlets_read_spawned(uint64_t frame, struct raw_frame *frames, size_t capacity, size_t *count);

/* Frames of a greenlet that is switched away from, leaf first, as many as fit. False as above. */
bool greenlets_read(uint64_t greenlet, const struct greenlet_facts *facts, struct raw_frame *frames, size_t capacity, size_t *count);

/* A stack, leaf first, of a thread that runs the task with this coroutine. While a greenlet of the task runs, the coroutine is not on
   it: the frames of the greenlet that was switched away from and has it are appended. While the task runs what its greenlet awaits,
   the frames of that one are put in their place. Both are of the moment after the stack was read, some microseconds later. False when
   the coroutine is still not on it: no greenlet known has it, or the thread went on. */
bool greenlets_complete(uint64_t coroutine, struct raw_frame *frames, size_t capacity, size_t *count);

/* This greenlet, or the one from which it came, is one of those that may have a task's frames. */
void greenlets_note(uint64_t greenlet);
void greenlets_note_parent(uint64_t greenlet);

#endif
