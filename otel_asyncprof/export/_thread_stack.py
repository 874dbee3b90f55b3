"""How much stack the export thread has."""

import threading

EXPORT_STACK_BYTES = 8 << 20  # what Linux gives by default; TLS, imports and foreign exporters take what they want


def start_with_room(thread: threading.Thread) -> None:
    """Starts a thread with enough stack, whatever threading.stack_size() or the shell's limit says of the others."""
    before = threading.stack_size()
    if before < EXPORT_STACK_BYTES:
        threading.stack_size(EXPORT_STACK_BYTES)
    try:
        thread.start()
    finally:
        if before < EXPORT_STACK_BYTES and threading.stack_size() == EXPORT_STACK_BYTES:  # else somebody set another
            threading.stack_size(before)
