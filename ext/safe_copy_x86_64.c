/* The guarded copy for x86-64. */
#include "safe_copy_guarded.h"

#ifdef SAFE_COPY_X86_64

#include "safe_copy.h"

#include <ucontext.h>

/* rdi destination, rsi address, rdx size. The fault handler may move any instruction of the range to the exit: the function is a
   leaf that never moves rsp and changes caller-saved registers only, so the exit's return is right from everywhere in it.
   Every load lies between the entry and safe_copy_guarded_end. After the 64-byte loop rdx is the rest minus 64, whose low six bits
   are those of the rest. */
__asm__(
    ".pushsection .text\n"
    ".p2align 5\n"
    ".globl safe_copy_guarded\n"
    ".hidden safe_copy_guarded\n"
    ".type safe_copy_guarded, @function\n"
    "safe_copy_guarded:\n"
    ".cfi_startproc\n"
    "   cmpq $8, %rdx\n"
    "   je 5f\n"
    "   subq $64, %rdx\n"
    "   jb 2f\n"
    "1: movups (%rsi), %xmm0\n"
    "   movups 16(%rsi), %xmm1\n"
    "   movups 32(%rsi), %xmm2\n"
    "   movups 48(%rsi), %xmm3\n"
    "   movups %xmm0, (%rdi)\n"
    "   movups %xmm1, 16(%rdi)\n"
    "   movups %xmm2, 32(%rdi)\n"
    "   movups %xmm3, 48(%rdi)\n"
    "   addq $64, %rsi\n"
    "   addq $64, %rdi\n"
    "   subq $64, %rdx\n"
    "   jae 1b\n"
    "2: testb $63, %dl\n"
    "   jz 9f\n"
    "   testb $32, %dl\n"
    "   jz 3f\n"
    "   movups (%rsi), %xmm0\n"
    "   movups 16(%rsi), %xmm1\n"
    "   movups %xmm0, (%rdi)\n"
    "   movups %xmm1, 16(%rdi)\n"
    "   addq $32, %rsi\n"
    "   addq $32, %rdi\n"
    "3: testb $16, %dl\n"
    "   jz 4f\n"
    "   movups (%rsi), %xmm0\n"
    "   movups %xmm0, (%rdi)\n"
    "   addq $16, %rsi\n"
    "   addq $16, %rdi\n"
    "4: testb $8, %dl\n"
    "   jz 6f\n"
    "5: movq (%rsi), %rax\n"
    "   movq %rax, (%rdi)\n"
    "   addq $8, %rsi\n"
    "   addq $8, %rdi\n"
    "6: testb $7, %dl\n"
    "   jz 9f\n"
    "   testb $4, %dl\n"
    "   jz 7f\n"
    "   movl (%rsi), %eax\n"
    "   movl %eax, (%rdi)\n"
    "   addq $4, %rsi\n"
    "   addq $4, %rdi\n"
    "7: testb $2, %dl\n"
    "   jz 8f\n"
    "   movzwl (%rsi), %eax\n"
    "   movw %ax, (%rdi)\n"
    "   addq $2, %rsi\n"
    "   addq $2, %rdi\n"
    "8: testb $1, %dl\n"
    "   jz 9f\n"
    "   movzbl (%rsi), %eax\n"
    "   movb %al, (%rdi)\n"
    ".globl safe_copy_guarded_end\n"
    ".hidden safe_copy_guarded_end\n"
    "safe_copy_guarded_end:\n"
    "9: movl $1, %eax\n"
    "   ret\n"
    ".globl safe_copy_guarded_exit\n"
    ".hidden safe_copy_guarded_exit\n"
    "safe_copy_guarded_exit:\n"
    "   xorl %eax, %eax\n"
    "   ret\n"
    ".cfi_endproc\n"
    ".size safe_copy_guarded, . - safe_copy_guarded\n"
    ".popsection\n");

extern const char safe_copy_guarded_end[] __attribute__((visibility("hidden")));
extern const char safe_copy_guarded_exit[] __attribute__((visibility("hidden")));

bool safe_copy_resolve_fault(void *ucontext) {
    greg_t *counter = &((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP];
    uintptr_t begin = (uintptr_t)safe_copy_guarded;
    bool in_copy = (uintptr_t)*counter - begin < (uintptr_t)safe_copy_guarded_end - begin;
    uintptr_t resume = in_copy ? (uintptr_t)safe_copy_guarded_exit : guarded_load_resume((uintptr_t)*counter);
    if (resume) *counter = (greg_t)resume;
    return resume;
}

#else
typedef int safe_copy_of_another_processor; /* C wants one declaration in a file */
#endif
