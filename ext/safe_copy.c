#include "safe_copy.h"

#include "os/os.h"

/* The system call needs no handler, so it is right until somebody says that the handlers stand. */
static enum safe_copy_method method_in_use = SAFE_COPY_SYSCALL;
uint64_t safe_copy_loads_above = UINT64_MAX;
static uint64_t faults;

void safe_copy_use(enum safe_copy_method method) {
    __atomic_store_n(&method_in_use, method, __ATOMIC_RELAXED);
    uint64_t above = method == SAFE_COPY_GUARDED ? SAFE_COPY_FIRST_ADDRESS - 1 : UINT64_MAX;
    __atomic_store_n(&safe_copy_loads_above, above, __ATOMIC_RELAXED);
}

enum safe_copy_method safe_copy_method(void) { return __atomic_load_n(&method_in_use, __ATOMIC_RELAXED); }

uint64_t safe_copy_faults(void) { return __atomic_load_n(&faults, __ATOMIC_RELAXED); }

bool safe_copy_failed(void) {
    __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
    return false;
}

bool safe_copy(void *destination, uint64_t address, size_t size) {
    if (__builtin_expect(address >= SAFE_COPY_FIRST_ADDRESS && size <= UINTPTR_MAX - address && address <= UINTPTR_MAX, 1)) {
        enum safe_copy_method method = safe_copy_method();
        uint64_t source = safe_copy_redirect(address);
        bool copied = method == SAFE_COPY_GUARDED ? safe_copy_guarded(destination, source, size)
                                                  : method == SAFE_COPY_SYSCALL && os_read_memory(destination, source, size);
        if (__builtin_expect(copied, 1)) return true;
    } else if (size == 0) {
        return true;
    }
    return safe_copy_failed();
}

#ifdef SAFE_COPY_LOADS
/* Named by the linker. */
extern const struct guarded_load __start_guarded_loads[] __attribute__((visibility("hidden")));
extern const struct guarded_load __stop_guarded_loads[] __attribute__((visibility("hidden")));

uintptr_t guarded_load_resume(uintptr_t fault) {
    for (const struct guarded_load *load = __start_guarded_loads; load < __stop_guarded_loads; load++)
        if ((uintptr_t)&load->fault + (uintptr_t)(intptr_t)load->fault == fault)
            return (uintptr_t)&load->resume + (uintptr_t)(intptr_t)load->resume;
    return 0;
}

/* The table exists also in a program that has no other load. */
__attribute__((used)) static bool any_load(uint64_t *word, uint64_t address) { return safe_copy_word(word, address); }
#endif
