"""How the export thread begins: with enough stack, and never waited for without an end."""

import threading

EXPORT_STACK_BYTES = 8 << 20  # what Linux gives by default; TLS, imports and foreign exporters take what they want
BEGIN_SECONDS = 10.0


class _Beginning(threading.Event):
    """Set by a thread that runs. CPython's own is waited for without an end, also when there is no memory to run in."""

    def wait(self, timeout: float | None = None) -> bool:
        """Like the base's, but not for ever."""
        return super().wait(BEGIN_SECONDS if timeout is None else timeout)


def start_with_room(thread: threading.Thread) -> None:
    """Starts a thread with enough stack, whatever threading.stack_size() or the shell's limit says of the others."""
    beginning = thread._started = _Beginning()  # type: ignore[attr-defined]
    before = threading.stack_size()
    if before < EXPORT_STACK_BYTES:
        threading.stack_size(EXPORT_STACK_BYTES)
    try:
        thread.start()
    finally:
        if before < EXPORT_STACK_BYTES and threading.stack_size() == EXPORT_STACK_BYTES:  # else somebody set another
            threading.stack_size(before)
    if not beginning.is_set():
        getattr(threading, "_limbo", {}).pop(thread, None)  # where it would be one of the living for good
        raise RuntimeError("its export thread does not begin")
