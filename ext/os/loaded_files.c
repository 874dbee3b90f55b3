#include <link.h>
#include <stddef.h>

#include "os/os.h"

/* A look for the file around an address, by the loader's own list. */
struct search {
    uint64_t address;
    struct os_segment *segments;
    size_t count;
};

static bool is_part(const ElfW(Phdr) *header, bool writable) {
    return header->p_type == PT_LOAD && header->p_flags & PF_R && writable == !!(header->p_flags & PF_W);
}

static int look_at_file(struct dl_phdr_info *file, size_t size, void *argument) {
    (void)size;
    struct search *search = argument;
    bool inside = false;
    for (unsigned i = 0; i < file->dlpi_phnum; i++) {
        uint64_t begin = file->dlpi_addr + file->dlpi_phdr[i].p_vaddr;
        inside |= file->dlpi_phdr[i].p_type == PT_LOAD && search->address >= begin && search->address - begin < file->dlpi_phdr[i].p_memsz;
    }
    for (unsigned pass = 0; pass < 2 && inside; pass++)
        for (unsigned i = 0; i < file->dlpi_phnum && search->count < OS_MAX_SEGMENTS; i++) {
            const ElfW(Phdr) *header = &file->dlpi_phdr[i];
            if (!is_part(header, pass == 0)) continue;
            uint64_t begin = file->dlpi_addr + header->p_vaddr;
            search->segments[search->count++] = (struct os_segment){begin, begin + header->p_memsz};
        }
    return inside;
}

size_t os_segments_of(uint64_t address, struct os_segment segments[OS_MAX_SEGMENTS]) {
    struct search search = {.address = address, .segments = segments};
    dl_iterate_phdr(look_at_file, &search);
    return search.count;
}
