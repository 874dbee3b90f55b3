/* safe_copy() that writes down what it reads, in an extension otherwise like the real one. Called with the GIL held, so that what it
   reads stands still. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cpython/layout.h"
#include "look.h"
#include "os/os.h"
#include "os_of_tape.h"
#include "pages.h"
#include "safe_copy.h"
#include "tape.h"

uint64_t safe_copy_loads_above = UINT64_MAX; /* never: each read comes to safe_copy() */
static bool recording;
static char text[MAX_LOOK_BYTES];

void safe_copy_use(enum safe_copy_method method) { (void)method; }
enum safe_copy_method safe_copy_method(void) { return SAFE_COPY_SYSCALL; }
uint64_t safe_copy_faults(void) { return 0; }
bool safe_copy_failed(void) { return false; }
bool safe_copy_resolve_fault(void *ucontext) { return (void)ucontext, false; }

bool safe_copy(void *destination, uint64_t address, size_t size) {
    struct iovec local = {destination, size}, remote = {(void *)(uintptr_t)address, size};
    if (address < SAFE_COPY_FIRST_ADDRESS || process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)size) return size == 0;
    if (recording) pages_write(address, destination, size);
    return true;
}

/* What a look at this process says, NULL when it could not be had; path gets the tape. Anchors must have been taken. */
__attribute__((visibility("default"))) const char *tape_record(const char *path, const char *asyncio_directory, uint64_t version_hex) {
    struct tape_head head = {.version_hex = version_hex, .running_thread = os_thread_id()};
    const uint8_t *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    if (runtime) memcpy(head.debug_offsets, runtime, sizeof head.debug_offsets);
    snprintf(head.asyncio_directory, sizeof head.asyncio_directory, "%s", asyncio_directory);
    running_thread = (uint32_t)head.running_thread;
    os_of_tape_begin();
    recording = true;
    int seen = look(asyncio_directory, text);
    recording = false;
    return seen && tape_save(path, &head) ? text : NULL;
}
