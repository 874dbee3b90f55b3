"""Types of the C extension. Everything here is private; users see Profiler and testing.capture."""

import contextvars
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Final, TypeAlias, TypedDict

class Stats(TypedDict):
    ticks: int
    samples: int
    faults: int
    tasks_seen: int
    tasks_visited: int
    threads_seen: int
    sampler_cpu_ns: int
    export_cpu_ns: int  # of the threads given to ignore_thread()
    elapsed_ns: int  # since the start
    visit_ns: int  # cost of one suspended task, smoothed
    tick_ns: int  # cost of one tick, smoothed
    window: float  # a suspended task is looked at in one of so many ticks
    copy_method: str  # "guarded", "syscall" or "none": of the sampler that runs, or of the last one
    drops: dict[str, int]  # reason -> count

class CollectedProfile(TypedDict):
    """What one interval held: ExportProfilesServiceRequest messages, none without samples."""

    requests: list[bytes]
    samples: int
    time_unix_nano: int
    duration_nano: int

ATTRIBUTE_THREAD_NAME: Final[int]
ATTRIBUTE_STATE: Final[int]
ATTRIBUTE_THREAD_ID: Final[int]
ATTRIBUTE_TASK_NAME: Final[int]
ATTRIBUTE_LOCAL_ROOT_NAME: Final[int]
FEATURE_TASKS: Final[int]
FEATURE_AWAITERS: Final[int]
FEATURE_SPANS: Final[int]
TASKS_IN_THREADS: Final[int]  # 1 where asyncio keeps its tasks and the running one in thread states: from 3.14 on

def prepare(*, anchors: dict[str, int]) -> None:
    """Takes the anchors, so that readers can be called. RuntimeError when no layout fits, or the sampler runs."""

def begin_self_check() -> None:
    """Makes memory readable in the calling thread before a start. RuntimeError, with the reason, when it cannot be."""

def end_self_check() -> None:
    """Gives back what begin_self_check() took."""

def start(
    *,
    rate: int,
    max_frames: int,
    link_local_root: bool,
    link_unsampled: bool,
    loop_frames: bool,
    timeline: bool,
    attributes: int,
    features: int,
    anchors: dict[str, int],
    asyncio_directory: str,
    cpu_budget: float,
    no_signal_handlers: bool,
    tasks_per_tick: int,
) -> None:
    """Starts the sampler thread. RuntimeError when it runs already or cannot be made, with the reason."""

def stop() -> None:
    """Ends the sampler thread and waits for it; what it has seen stays until collect(). May be called twice."""

def is_running() -> bool: ...
def collect(*, resource: bytes, resource_schema_url: str, scope_version: str) -> CollectedProfile:
    """Swaps the tables and encodes what the last interval held, without the GIL."""

def stats() -> Stats: ...

class TaskDescription(TypedDict):
    name: str
    frames: list[tuple[str, str, int]]  # function, file, line; outermost first
    awaiters: list[int]  # addresses
    waiting: bool
    awaits_tasks: bool
    context: int  # address

# The sampler's own readers, for the self-check and for tests.
def read_thread() -> list[tuple[str, str, int]]:
    """The calling thread's stack: (function, file, line), root first."""

def read_holds_gil() -> bool:
    """Whether the sampler sees that the calling thread holds the interpreter's lock: always True."""

def read_moment() -> tuple[int, int, int, int]:
    """Of the calling thread: its ident, and the addresses of its context, its running loop and task; 0 without one."""

def read_tasks() -> list[int]:
    """Addresses of the live tasks of all loops."""

def listed_tasks() -> list[Any]:
    """The tasks that asyncio keeps in lists, which no module shows (CPython 3.14+); none before prepare()."""

def read_task(address: int, /) -> TaskDescription:
    """What is read of the task at an address."""

def read_link(address: int, /) -> tuple[bytes, bytes] | None:
    """(trace id, span id) of the contextvars.Context at an address; None without a span."""

# Number of frames that started the loop; then, root first, the code object of each frame and the offset in bytes of the
# instruction that it executes. None and a number: so many frames are left out here.
CallerStack: TypeAlias = tuple[Any, ...]

def learn_greenlets(
    *, greenlet: int, frame: int, code: int, parent: int, greenlet_type: int, spawn_code: int, spawn_local: int
) -> bool: ...
def read_greenlet(address: int, /) -> list[int] | None: ...
def use_anyio_groups(
    *,
    callback_code: int,
    end_code: int,
    start_code: int,
    name_scope: int,
    name_host: int,
    name_completed: int,
    group_cell: int,
    start_cell: int,
    host_offset: int,
) -> None: ...
def find_slot(address: int, value: int, size: int, /) -> int: ...
def use_greenlets(getcurrent: Callable[[], Any], /) -> None: ...
def caller_stack() -> CallerStack | None:
    """The calling thread's stitched stack; None where it cannot be read, and before prepare()."""

def ignore_thread(native_id: int, /) -> bool:
    """Leaves the thread with this id of the kernel's out of the profile: our own export thread."""

def after_fork_in_child() -> None:
    """Forgets the sampler thread of the parent and everything it was writing."""

# exit_signals.c: called with the GIL, and so never between the steps of signal.signal().
def exit_signal_is_default(signum: int, /) -> bool:
    """Whether the kernel acts on a signal by default."""

def exit_signal_take(signum: int, is_pythons: bool, /) -> bool:
    """Keeps a signal back until the export thread has ended; False when something else than expected is in place."""

def exit_signals_restore() -> None: ...
def exit_signal_unmoved(signum: int, function: Callable[[], object], /) -> object:
    """Calls a function, and puts the kernel's action of the signal back as it was before, flags included."""

def exit_begin(signum: int, /) -> None:
    """Tells the export thread that the process is to die by a signal; dies at once where none is watching."""

def exit_die(signum: int, /) -> None: ...
def exit_watch(patience: float, /) -> int:
    """Announces the export thread, which may take that many seconds; returns its number, 0 when it cannot be."""

def exit_seen(watch: int, /) -> int:
    """The signal that the process is to die by; 0 without one."""

def exit_end(watch: int, /) -> None:
    """The last export is done: dies by the signal that has come."""

def bell() -> int: ...
def ring_bell() -> None: ...
def wait_for_bell(bell: int, seconds: float, /) -> None:
    """Waits until the bell is rung again, or for some seconds; a signal to die by rings it too."""

def is_main_interpreter() -> bool:
    """Whether the caller's interpreter is the one that is sampled."""

# span_context.c
class SpanCell:
    """One span as the sampler sees it, shared by all its views."""

class CellFields(TypedDict):
    span_id: bytes
    ended: bool
    name: str | None

class ViewFields(TypedDict):
    trace_id: bytes
    span_id: bytes
    local_root: bytes  # eight zero bytes for a remote span
    flags: int  # SPAN_SAMPLED 1, SPAN_REMOTE 2, SPAN_RECORDING 4
    owner: int
    spawner: int
    cell_address: int
    spawner_cell: int
    root_cell: int
    cell: CellFields | None

class ContextVarsRuntimeContext:
    """attach, get_current, detach over one ContextVar; a SpanContextView stands for a Context with a span."""

    def __init__(
        self,
        context_var: ContextVar[Any],
        context_type: type,
        span_key: str,
        non_recording_span: type,
        current_tasks: dict[Any, Any],
        get_running_loop: Any,
        notice_span_processor: Callable[[Any], object],
    ) -> None: ...
    def attach(self, context: Any, /) -> Token[Any]: ...
    def get_current(self) -> Any: ...
    def detach(self, token: Token[Any], /) -> None: ...
    def view(self, context: Any, owner: Any = ..., /) -> Any:
        """What attach() would set for a context here, or in the task that is given (None: outside any task)."""
    def backfill(self, context: contextvars.Context, owner: Any, /) -> bool:
        """Puts the view in a context, if it needs one: whether it did. RuntimeError when the context is entered."""
    @property
    def _current_context(self) -> ContextVar[Any]: ...
    @property
    def failures(self) -> int:
        """How often a context was set without a view because its span could not be read."""
    @property
    def open_spans(self) -> int: ...
    @property
    def view_type(self) -> type: ...

def span_ended(span_id: int, /) -> bool:
    """Marks the span: from now on no sample is linked to it. Whether it was known to the process."""

def read_view(context: Any, /) -> ViewFields | None:
    """The fields of a view; None for a context that is none."""

# task_switch.c: the span of the running task, for readers outside of the process. None, or why it cannot be shown.
def thread_context_start(
    context_var: ContextVar[Any], current_tasks: dict[Any, Any], enter_task: Any, leave_task: Any, payload: bytes, /
) -> str | None: ...
def thread_context_update(payload: bytes, /) -> bool: ...
def thread_context_stop() -> None: ...
def thread_context_after_fork_in_child(payload: bytes, /) -> bool: ...
