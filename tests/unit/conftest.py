"""A stand-in for the extension, so that the lifecycle is tested step by step, and receivers on real sockets."""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from otel_asyncprof import _profiler


class FakeNative(SimpleNamespace):
    """Records the calls; every collect() gives the next request."""

    ATTRIBUTE_THREAD_NAME, ATTRIBUTE_STATE, ATTRIBUTE_THREAD_ID = 1, 2, 4
    ATTRIBUTE_TASK_NAME, ATTRIBUTE_LOCAL_ROOT_NAME = 8, 16
    FEATURE_TASKS, FEATURE_AWAITERS, FEATURE_SPANS = 1, 2, 4

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.started_with: dict[str, Any] = {}
        self.collected_with: list[dict[str, Any]] = []
        self.ignored_threads: list[str] = []
        self.check: dict[str, str] = {"threads": "", "tasks": "", "awaiters": "", "spans": ""}
        self.fail_at: str | None = None
        self.running = False

    def _step(self, name: str) -> None:
        self.calls.append(name)
        if name == self.fail_at:
            raise RuntimeError(f"{name} failed")

    def run_self_check(self, anchors: dict[str, int]) -> dict[str, str]:
        self._step("self_check")
        return self.check

    def start(self, **options: Any) -> None:
        self._step("start")
        self.started_with = options
        self.running = True

    def stop(self) -> None:
        self._step("stop")
        self.running = False

    def is_running(self) -> bool:
        return self.running

    def is_main_interpreter(self) -> bool:
        return True

    def collect(self, **arguments: Any) -> dict[str, Any]:
        self._step("collect")
        self.collected_with.append(arguments)
        return {"requests": [b"request %d" % len(self.collected_with)]}

    def stats(self) -> dict[str, Any]:
        return {
            "ticks": 50,
            "samples": 200,
            "faults": 0,
            "tasks_seen": 40,
            "tasks_visited": 10,
            "threads_seen": 50,
            "sampler_cpu_ns": 4_000_000,
            "export_cpu_ns": 0,
            "elapsed_ns": 500_000_000,
            "visit_ns": 800,
            "tick_ns": 80_000,
            "window": 4.0,
            "copy_method": "guarded",
            "drops": {"too_deep": 3, "late_tick": 0},
        }

    def ignore_thread(self, native_id: int) -> None:
        self._step("ignore")
        self.ignored_threads += [each.name for each in threading.enumerate() if each.native_id == native_id]

    def after_fork_in_child(self) -> None:
        self._step("after_fork_in_child")
        self.running = False

    def collect_anchors(self) -> dict[str, int]:
        self._step("anchors")
        return {"anchor": 1}

    def install(self) -> bool:
        self._step("install")
        return True

    def uninstall(self) -> None:
        self._step("uninstall")

    def register(self, provider: object) -> bool:
        self._step("register")
        return True


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNative]:
    """The profiler with a fake extension; whatever runs at the end is shut down."""
    fake = FakeNative()
    context = SimpleNamespace(install=fake.install, uninstall=fake.uninstall, retry_backfill=lambda: 0)
    anchors = SimpleNamespace(collect=fake.collect_anchors, asyncio_directory=lambda: "/asyncio")
    monkeypatch.setattr(_profiler, "_native", fake, raising=False)
    monkeypatch.setattr(_profiler, "_anchors", anchors, raising=False)
    monkeypatch.setattr(_profiler, "_runtime_context", context, raising=False)
    span_processor = SimpleNamespace(ensure_registered=fake.register, watch=lambda config: None)
    monkeypatch.setattr(_profiler, "span_processor", span_processor, raising=False)
    monkeypatch.setattr(_profiler, "_self_check", SimpleNamespace(run=fake.run_self_check), raising=False)
    monkeypatch.setattr(_profiler, "_import_error", None)
    yield fake
    fake.fail_at = None
    if _profiler._active is not None and (profiler := _profiler._active()) is not None:
        profiler.shutdown()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No OTEL_ variable of the machine that runs the tests counts."""
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture
def warnings_logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The texts of the warnings that this package logged so far."""
    caplog.set_level(logging.DEBUG)
    return lambda: [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("otel_asyncprof") and record.levelno >= logging.WARNING
    ]


@dataclass
class Reply:
    """What the receiver answers to one request; before it does, it waits for the event."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    wait_for: threading.Event | None = None


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """An HTTP server in a thread: keeps what it gets, answers with the queued replies and then with 200."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.replies: deque[Reply] = deque()
        self.arrived = threading.Semaphore(0)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.received.append(Received(self.path, headers, body))
                reply = outer.replies.popleft() if outer.replies else Reply()
                outer.arrived.release()
                if reply.wait_for is not None:
                    reply.wait_for.wait(30)
                self.send_response(reply.status)
                for name, value in {"content-length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # A client that goes away is part of some tests.
        self.server.handle_error = lambda request, client: None  # type: ignore[method-assign]
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running HTTP receiver."""
    server = Receiver()
    server.start()
    yield server
    server.close()


@pytest.fixture
def reply() -> type[Reply]:
    """The class of what the receiver answers."""
    return Reply
