/* Preloaded into a program under test. Counts what one thread allocates and opens and what the extension holds, and lets allocations
   and files of the extension fail, and new threads. Whose a call is shows its return address. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_PATHS 64u
#define PATH_BYTES 128u

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* Set and read through ctypes. */
uint32_t watched_thread;
uint64_t thread_allocations, thread_frees, thread_maps, thread_opens;
char thread_paths[MAX_PATHS][PATH_BYTES];
uintptr_t code_begin, code_end;
uint64_t code_allocations, code_failures, fail_from = UINT64_MAX, fail_count;
int64_t code_held_bytes;
uint64_t threads_left = UINT64_MAX; /* that may still be made */
bool hide_files;
bool stop_clocks; /* of CPU time: they show what they showed when it was set */

static __thread uint32_t self __attribute__((tls_model("initial-exec")));

static bool is_watched(void) {
    if (!watched_thread) return false;
    if (!self) self = (uint32_t)syscall(SYS_gettid);
    return self == watched_thread;
}

static bool is_code(const void *caller) { return (uintptr_t)caller >= code_begin && (uintptr_t)caller < code_end; }

static void add(uint64_t *sum) { __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED); }

static void hold(int64_t bytes) { __atomic_fetch_add(&code_held_bytes, bytes, __ATOMIC_RELAXED); }

static bool may_allocate(const void *caller) {
    if (is_watched()) add(&thread_allocations);
    if (!is_code(caller)) return true;
    uint64_t nth = __atomic_fetch_add(&code_allocations, 1, __ATOMIC_RELAXED);
    if (nth < fail_from || nth - fail_from >= fail_count) return true;
    add(&code_failures);
    errno = ENOMEM;
    return false;
}

static void *count(void *block, const void *caller) {
    if (block && is_code(caller)) hold((int64_t)malloc_usable_size(block));
    return block;
}

void *malloc(size_t size) {
    const void *caller = __builtin_return_address(0);
    return may_allocate(caller) ? count(__libc_malloc(size), caller) : NULL;
}

void *calloc(size_t number, size_t size) {
    const void *caller = __builtin_return_address(0);
    return may_allocate(caller) ? count(__libc_calloc(number, size), caller) : NULL;
}

void *realloc(void *block, size_t size) {
    const void *caller = __builtin_return_address(0);
    int64_t before = block ? (int64_t)malloc_usable_size(block) : 0;
    if (!may_allocate(caller)) return NULL;
    void *moved = count(__libc_realloc(block, size), caller);
    if (moved && is_code(caller)) hold(-before);
    return moved;
}

void *aligned_alloc(size_t alignment, size_t size) {
    const void *caller = __builtin_return_address(0);
    return may_allocate(caller) ? count(__libc_memalign(alignment, size), caller) : NULL;
}

void free(void *block) {
    if (is_watched()) add(&thread_frees);
    if (block && is_code(__builtin_return_address(0))) hold(-(int64_t)malloc_usable_size(block));
    int error = errno;
    __libc_free(block);
    errno = error;
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    if (is_watched()) add(&thread_maps);
    return (void *)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset) __attribute__((alias("mmap")));

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    int (*make)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *address = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&make, &address, sizeof make);
    if (threads_left == 0) return EAGAIN;
    if (threads_left != UINT64_MAX) threads_left--;
    return make(thread, attributes, run, argument);
}

static int open_path(const char *path, int flags, mode_t mode, const void *caller) {
    if (is_watched()) {
        uint64_t nth = __atomic_fetch_add(&thread_opens, 1, __ATOMIC_RELAXED);
        snprintf(thread_paths[nth % MAX_PATHS], PATH_BYTES, "%s", path);
    }
    if (hide_files && is_code(caller)) return errno = ENOENT, -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define DEFINE_OPEN(name)                                                       \
    int name(const char *path, int flags, ...) {                                \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;               \
        va_end(rest);                                                           \
        return open_path(path, flags, mode, __builtin_return_address(0));       \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define MAX_CLOCKS 64u

int clock_gettime(clockid_t clock, struct timespec *time) {
    static clockid_t clocks[MAX_CLOCKS];
    static struct timespec shown[MAX_CLOCKS];
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (clock >= 0 || result != 0 || !is_code(__builtin_return_address(0))) return result; /* the sampler's thread alone */
    unsigned i = 0;
    while (i < MAX_CLOCKS - 1 && clocks[i] && clocks[i] != clock) i++;
    clocks[i] = clock;
    if (stop_clocks) *time = shown[i];
    shown[i] = *time;
    return 0;
}
