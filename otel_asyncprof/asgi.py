"""ASGI, in development: where the time of a response went, told to the browser by the response itself.

Browsers show the header Server-Timing beside the request in their developer tools.
"""

import asyncio
import threading
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from opentelemetry import trace

from . import _collection
from .formats.stack_sample import stack_samples

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

STATES = ("running", "waiting", "ready", "blocked")
NEW_ENOUGH_SECONDS = 0.01  # responses that begin together share one collection, which is one message more to export
MAX_TRACES = 1000  # of which the times are kept; the oldest make room


class _TraceTimes:
    """The wall time of each trace by state, as far as it has been seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: OrderedDict[int, Counter[str]] = OrderedDict()

    def add(self, requests: list[bytes]) -> None:
        """Adds what was collected."""
        samples = [sample for sample in stack_samples(requests) if sample.trace_id and sample.state]
        with self._lock:
            for sample in samples:
                self._times.setdefault(sample.trace_id, Counter())[sample.state or ""] += sample.wall_ns
                self._times.move_to_end(sample.trace_id)
            while len(self._times) > MAX_TRACES:
                self._times.popitem(last=False)

    def take(self, trace_id: int) -> Counter[str]:
        """The times of a trace, which are forgotten."""
        with self._lock:
            return self._times.pop(trace_id, Counter())


class ServerTimingMiddleware:
    """Adds Server-Timing and X-Trace-Id to each response that has a span.

    Times are task time: children that run side by side count in full, as in the profile. To be put inside what makes
    the request's span, which OpenTelemetry's instrumentations of frameworks do by themselves. A response costs about
    half a millisecond of CPU, for a collection of samples: this is for development. Without a running profiler it has
    the trace id alone.
    """

    def __init__(self, app: App, *, enabled: bool = True) -> None:
        self._app = app
        self._enabled = enabled
        self._times = _TraceTimes()
        if enabled:
            _collection.listen(self._times)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or anything else that ASGI has."""
        if not self._enabled or scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_times(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *await self._headers()]}
            await send(message)

        await self._app(scope, receive, send_with_times)

    async def _headers(self) -> list[tuple[bytes, bytes]]:
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return []
        headers = [(b"x-trace-id", format(context.trace_id, "032x").encode())]
        if await asyncio.to_thread(_collection.look, NEW_ENOUGH_SECONDS):
            times = self._times.take(context.trace_id)
            shown = [f"{state};dur={times[state] / 1e6:.1f}" for state in STATES if times[state]]
            if shown:
                headers.append((b"server-timing", ", ".join(shown).encode()))
        return headers
