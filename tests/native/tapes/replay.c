/* Says what a tick sees in a tape: replay FILE. */
#include <stdio.h>

#include "look.h"
#include "os_of_tape.h"
#include "tape.h"

static char text[MAX_LOOK_BYTES];

int main(int argc, char **argv) {
    struct tape_head head;
    if (argc != 2 || !tape_load(argv[1], &head)) return 2;
    running_thread = (uint32_t)head.running_thread;
    os_of_tape_begin();
    if (!look(head.asyncio_directory, text)) return 1;
    fputs(text, stdout);
    return 0;
}
