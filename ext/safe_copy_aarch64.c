/* The guarded copy for 64-bit Arm. */
#include "safe_copy_guarded.h"

#ifdef SAFE_COPY_AARCH64

#include "safe_copy.h"

#include <ucontext.h>

/* x0 destination, x1 address, x2 size. The fault handler may move any instruction of the range to the exit: the function is a leaf
   that never moves sp or x30 and changes caller-saved registers only, so the exit's return is right from everywhere in it.
   Every load lies between the entry and safe_copy_guarded_end. Pairs of general registers, not vectors: each half of a pair is a
   single-copy atomic word on every Armv8. After the 64-byte loop x2 is the rest minus 64, whose low six bits are those of the rest.
   hint 34 is BTI c, and a no-op where branch targets are not checked. */
__asm__(
    ".pushsection .text\n"
    ".p2align 5\n"
    ".globl safe_copy_guarded\n"
    ".hidden safe_copy_guarded\n"
    ".type safe_copy_guarded, %function\n"
    "safe_copy_guarded:\n"
    ".cfi_startproc\n"
    "   hint #34\n"
    "   subs x2, x2, #64\n"
    "   b.lo 2f\n"
    "1: ldp x3, x4, [x1]\n"
    "   ldp x5, x6, [x1, #16]\n"
    "   ldp x7, x8, [x1, #32]\n"
    "   ldp x9, x10, [x1, #48]\n"
    "   stp x3, x4, [x0]\n"
    "   stp x5, x6, [x0, #16]\n"
    "   stp x7, x8, [x0, #32]\n"
    "   stp x9, x10, [x0, #48]\n"
    "   add x1, x1, #64\n"
    "   add x0, x0, #64\n"
    "   subs x2, x2, #64\n"
    "   b.hs 1b\n"
    "2: tbz x2, #5, 3f\n"
    "   ldp x3, x4, [x1]\n"
    "   ldp x5, x6, [x1, #16]\n"
    "   stp x3, x4, [x0]\n"
    "   stp x5, x6, [x0, #16]\n"
    "   add x1, x1, #32\n"
    "   add x0, x0, #32\n"
    "3: tbz x2, #4, 4f\n"
    "   ldp x3, x4, [x1], #16\n"
    "   stp x3, x4, [x0], #16\n"
    "4: tbz x2, #3, 5f\n"
    "   ldr x3, [x1], #8\n"
    "   str x3, [x0], #8\n"
    "5: tbz x2, #2, 6f\n"
    "   ldr w3, [x1], #4\n"
    "   str w3, [x0], #4\n"
    "6: tbz x2, #1, 7f\n"
    "   ldrh w3, [x1], #2\n"
    "   strh w3, [x0], #2\n"
    "7: tbz x2, #0, 8f\n"
    "   ldrb w3, [x1]\n"
    "   strb w3, [x0]\n"
    ".globl safe_copy_guarded_end\n"
    ".hidden safe_copy_guarded_end\n"
    "safe_copy_guarded_end:\n"
    "8: mov w0, #1\n"
    "   ret\n"
    ".globl safe_copy_guarded_exit\n"
    ".hidden safe_copy_guarded_exit\n"
    "safe_copy_guarded_exit:\n"
    "   mov w0, #0\n"
    "   ret\n"
    ".cfi_endproc\n"
    ".size safe_copy_guarded, . - safe_copy_guarded\n"
    ".popsection\n");

extern const char safe_copy_guarded_end[] __attribute__((visibility("hidden")));
extern const char safe_copy_guarded_exit[] __attribute__((visibility("hidden")));

bool safe_copy_resolve_fault(void *ucontext) {
    mcontext_t *machine = &((ucontext_t *)ucontext)->uc_mcontext;
    uintptr_t begin = (uintptr_t)safe_copy_guarded;
    bool in_copy = machine->pc - begin < (uintptr_t)safe_copy_guarded_end - begin;
    uintptr_t resume = in_copy ? (uintptr_t)safe_copy_guarded_exit : guarded_load_resume(machine->pc);
    if (resume) machine->pc = resume;
    return resume;
}

#else
typedef int safe_copy_of_another_processor; /* C wants one declaration in a file */
#endif
