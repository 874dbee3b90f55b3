"""Types of the C extension. Everything here is private; users see Profiler and testing.capture."""

from contextvars import ContextVar, Token
from typing import Any, Final, TypedDict

class Stats(TypedDict):
    ticks: int
    samples: int
    faults: int
    tasks_seen: int
    tasks_visited: int
    threads_seen: int
    sampler_cpu_ns: int
    copy_method: str  # "guarded" or "syscall"
    drops: dict[str, int]  # reason -> count

class CollectedProfile(TypedDict):
    """What one interval held: requests are serialised ExportProfilesServiceRequest messages, empty when there were no samples."""

    requests: list[bytes]
    samples: int
    time_unix_nano: int
    duration_nano: int

ATTRIBUTE_THREAD_NAME: Final[int]
ATTRIBUTE_STATE: Final[int]
ATTRIBUTE_THREAD_ID: Final[int]
ATTRIBUTE_TASK_NAME: Final[int]
ATTRIBUTE_LOCAL_ROOT_NAME: Final[int]

def start(
    *,
    rate: int,
    max_frames: int,
    link_local_root: bool,
    link_unsampled: bool,
    loop_frames: bool,
    timeline: bool,
    attributes: int,
    anchors: dict[str, int],
    asyncio_directory: str,
    no_signal_handlers: bool = False,
) -> None:
    """Starts the sampler thread. RuntimeError when it runs already or cannot be made, with the reason."""

def stop() -> None:
    """Ends the sampler thread and waits for it; what it has seen stays until collect(). Harmless when it does not run."""

def is_running() -> bool: ...
def collect(*, resource: bytes, resource_schema_url: str, scope_version: str) -> CollectedProfile:
    """Swaps the tables and encodes what the last interval held, without the GIL."""

def stats() -> Stats: ...
def self_check(*, anchors: dict[str, int]) -> dict[str, str]:
    """Runs the readers over live objects: feature (threads, tasks, awaiters, spans) -> "" or what does not match."""

def ignore_thread() -> None:
    """Leaves the calling thread out of the profile: for our own export thread."""

def after_fork_in_child() -> None:
    """Forgets the sampler thread of the parent and everything it was writing."""

# span_context.c
class SpanCell:
    """One span as the sampler sees it, shared by all its views."""

class ContextVarsRuntimeContext:
    """attach/get_current/detach over one ContextVar, putting a SpanContextView in place of a Context that carries a span."""

    def __init__(
        self,
        context_var: ContextVar[Any],
        context_type: type,
        span_key: str,
        current_tasks: dict[Any, Any],
        get_running_loop: Any,
    ) -> None: ...
    def attach(self, context: Any) -> Token[Any]: ...
    def get_current(self) -> Any: ...
    def detach(self, token: Token[Any]) -> None: ...
    def view(self, context: Any) -> Any:
        """The view of a context, or the context itself when it carries no span: what attach() would set."""
    def span_ended(self, span_id: int) -> None:
        """Marks the span: from now on no sample is linked to it."""
    @property
    def view_type(self) -> type: ...
