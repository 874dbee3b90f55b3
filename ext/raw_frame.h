/* A frame as memory has it, before names and lines are known. */
#ifndef OTEL_ASYNCPROF_RAW_FRAME_H
#define OTEL_ASYNCPROF_RAW_FRAME_H

#include <stdint.h>

struct raw_frame {
    uint64_t code;        /* the code object; RAW_FRAME_UNREADABLE, RAW_FRAME_TRUNCATED */
    uint64_t instruction; /* address of the instruction executing now */
    uint64_t generator;   /* the generator-like object that owns the frame; 0 = a function call */
};

/* Instead of a code address: the walk could not go on here. */
enum { RAW_FRAME_UNREADABLE = 1, RAW_FRAME_TRUNCATED = 2 };

/* Bounds of one walk. A thread's stack beyond it ends in <truncated>. */
#define MAX_THREAD_FRAMES 4096
#define MAX_AWAIT_CHAIN 512

#endif
