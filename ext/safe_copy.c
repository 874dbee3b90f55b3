#include "safe_copy.h"

#include "os/os.h"
#include "safe_copy_guarded.h"

#define FIRST_ADDRESS 4096u /* the NULL page */

/* The system call needs no handler, so it is right until somebody says that the handlers stand. */
static enum safe_copy_method method_in_use = SAFE_COPY_SYSCALL;
static uint64_t faults;

void safe_copy_use(enum safe_copy_method method) { __atomic_store_n(&method_in_use, method, __ATOMIC_RELAXED); }

enum safe_copy_method safe_copy_method(void) { return __atomic_load_n(&method_in_use, __ATOMIC_RELAXED); }

uint64_t safe_copy_faults(void) { return __atomic_load_n(&faults, __ATOMIC_RELAXED); }

bool safe_copy(void *destination, uint64_t address, size_t size) {
    if (__builtin_expect(address >= FIRST_ADDRESS && size <= UINTPTR_MAX - address && address <= UINTPTR_MAX, 1)) {
        bool copied = safe_copy_method() == SAFE_COPY_GUARDED ? safe_copy_guarded(destination, address, size)
                                                              : os_read_memory(destination, address, size);
        if (__builtin_expect(copied, 1)) return true;
    } else if (size == 0) {
        return true;
    }
    __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
    return false;
}
