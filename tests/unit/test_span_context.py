"""What a span view holds."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry.context.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace.propagation import _SPAN_KEY
from span_helpers import (
    NO_ID,
    RANDOM,
    RECORDING,
    REMOTE,
    SAMPLED,
    Runtimes,
    child,
    remote_span,
    span_id,
    trace_id,
    tracer,
)

from otel_asyncprof import _native

pytest_plugins = "span_fixtures"

# What a view holds


def test_view_holds_the_ids_of_the_span(runtimes: Runtimes) -> None:
    """Both ids are big-endian bytes, and a first span is its own local root."""
    span = tracer.start_span("request")
    with runtimes.active(span) as view:
        address = view["cell_address"]
        assert address != 0
        assert view == {
            "trace_id": trace_id(span),
            "span_id": span_id(span),
            "local_root": span_id(span),
            "flags": SAMPLED | RECORDING | RANDOM,
            "owner": 0,
            "spawner": 0,
            "cell_address": address,
            "spawner_cell": 0,
            "root_cell": address,
            "cell": {"span_id": span_id(span), "ended": False, "name": "request"},
        }


@pytest.mark.parametrize("number", [1, 1 << 63, (1 << 64) - 1, 1 << 64, (1 << 127) + 7, (1 << 128) - 1])
def test_ids_of_every_width_are_exact(runtimes: Runtimes, number: int) -> None:
    """Ids are read by digits, so every width is tried, twice for what is remembered."""
    span = remote_span(number, min(number, (1 << 64) - 1))
    for _ in range(2):
        with runtimes.active(span) as view:
            assert (view["trace_id"], view["span_id"]) == (trace_id(span), span_id(span))


def test_flags_say_what_kind_of_span_it_is(runtimes: Runtimes) -> None:
    """Sampled, remote and recording are three different things."""
    unsampled = TracerProvider(sampler=ALWAYS_OFF).get_tracer("test").start_span("unsampled")
    ended = tracer.start_span("ended")
    ended.end()
    spans = [
        tracer.start_span("recording"),
        unsampled,
        remote_span(),
        remote_span(flags=0),
        remote_span(remote=False),
        ended,
    ]
    flags = []
    for span in spans:
        with runtimes.active(span) as view:
            flags.append(view["flags"])
    assert flags == [SAMPLED | RECORDING | RANDOM, RANDOM, SAMPLED | REMOTE, REMOTE, SAMPLED, SAMPLED | RANDOM]


def test_only_a_span_that_has_recorded_has_a_cell(runtimes: Runtimes) -> None:
    """What never records never ends either."""
    unsampled = TracerProvider(sampler=ALWAYS_OFF).get_tracer("test").start_span("unsampled")
    for span in (unsampled, remote_span(), remote_span(remote=False)):
        with runtimes.active(span) as view:
            assert (view["cell"], view["cell_address"]) == (None, 0)


def test_name_is_the_one_at_the_first_activation(runtimes: Runtimes) -> None:
    """A name given later does not change what the sampler may be reading."""
    span = tracer.start_span("GET /größe/\U0001f40d")
    with runtimes.active(span):
        span.update_name("later")
        with runtimes.active(span) as view:
            assert view["cell"] == {"span_id": span_id(span), "ended": False, "name": "GET /größe/\U0001f40d"}


def test_memory_of_a_view_is_where_the_sampler_expects_it(runtimes: Runtimes) -> None:
    """The inline part begins where the base ends, and is nothing but twelve words and three references."""
    assert runtimes.ours.view_type.__basicsize__ == Context.__basicsize__ + 12 * 8 + 3 * 8
    assert runtimes.ours.view_type.__base__ is Context


# Local root


def test_local_root_is_inherited_within_a_trace(runtimes: Runtimes) -> None:
    """However deep, the first span of the trace stays the root."""
    root = tracer.start_span("root")
    middle = child(root)
    leaf = child(middle)
    with runtimes.active(root) as root_view, runtimes.active(middle), runtimes.active(leaf) as view:
        assert (view["local_root"], view["root_cell"]) == (span_id(root), root_view["cell_address"])
        assert view["cell_address"] != view["root_cell"]


def test_span_of_another_trace_is_its_own_local_root(runtimes: Runtimes) -> None:
    """Nesting alone makes no relation."""
    other = tracer.start_span("other", context=Context())
    with runtimes.active(tracer.start_span("root")), runtimes.active(other) as view:
        assert (view["local_root"], view["root_cell"]) == (span_id(other), view["cell_address"])


def test_remote_parent_is_never_a_local_root(runtimes: Runtimes) -> None:
    """The first span made in this process is the root, and stays it below."""
    remote = remote_span()
    server = child(remote, "server")
    query = child(server, "query")
    with (
        runtimes.active(remote) as remote_view,
        runtimes.active(server) as server_view,
        runtimes.active(query) as query_view,
    ):
        assert (remote_view["local_root"], remote_view["root_cell"]) == (NO_ID, 0)
        assert (server_view["local_root"], query_view["local_root"]) == (span_id(server), span_id(server))
        assert query_view["root_cell"] == server_view["cell_address"]


def test_local_root_of_a_span_is_settled_at_its_first_activation(runtimes: Runtimes) -> None:
    """Attached again elsewhere, with nothing or a sibling current, it keeps its root."""
    root = tracer.start_span("root")
    leaf, sibling = child(root), child(root)
    with runtimes.active(root), runtimes.active(leaf):
        pass
    with runtimes.active(leaf) as alone:
        assert alone["local_root"] == span_id(root)
    with runtimes.active(sibling), runtimes.active(leaf) as beside:
        assert beside["local_root"] == span_id(root)


def test_unsampled_span_has_a_local_root_too(runtimes: Runtimes) -> None:
    """It has no cell, so the id is handed from view to view."""
    root, leaf = remote_span(5, 6, 0, remote=False), remote_span(5, 7, 0, remote=False)
    with runtimes.active(root), runtimes.active(leaf) as view:
        assert (view["local_root"], view["root_cell"]) == (span_id(root), 0)


def test_unsampled_view_keeps_its_local_root_in_an_empty_context(runtimes: Runtimes) -> None:
    """Attached in another task, where nothing is current, it is taken from the view itself."""
    root, leaf = remote_span(5, 6, 0, remote=False), remote_span(5, 7, 0, remote=False)

    async def adopt(context: Any) -> bytes:
        runtimes.ours.attach(context)
        return runtimes.view["local_root"]

    with runtimes.active(root), runtimes.active(leaf):
        view = runtimes.ours.get_current()
    assert contextvars.Context().run(asyncio.run, adopt(view)) == span_id(root)


def test_root_that_is_gone_is_still_read_through_its_descendants(runtimes: Runtimes) -> None:
    """A view keeps the cells alive that it points to."""
    root = tracer.start_span("root")
    leaf = child(root)
    token = runtimes.ours.attach(Context({_SPAN_KEY: root}))
    inner = runtimes.ours.attach(Context({_SPAN_KEY: leaf}))
    address = runtimes.view["root_cell"]
    _native.span_ended(root.get_span_context().span_id)
    held = runtimes.ours.get_current()
    runtimes.ours.detach(inner)
    runtimes.ours.detach(token)
    del root, leaf, inner, token
    gc.collect()
    fields = _native.read_view(held)
    assert fields is not None
    assert fields["root_cell"] == address


# Owner and spawner


def test_owner_is_the_task_that_attached(runtimes: Runtimes) -> None:
    """Outside a task there is none."""

    async def main() -> tuple[int, int]:
        with runtimes.active(tracer.start_span("in task")) as view:
            return view["owner"], id(asyncio.current_task())

    owner, task = asyncio.run(main())
    assert owner == task
    with runtimes.active(tracer.start_span("outside")) as view:
        assert view["owner"] == 0


def test_child_task_inherits_the_view_as_it_is(runtimes: Runtimes) -> None:
    """The owner of what a child inherits is the parent: that is how an un-awaited child finds it."""

    async def inherited() -> tuple[int, int]:
        return runtimes.view["owner"], runtimes.view["spawner"]

    async def main() -> None:
        with runtimes.active(tracer.start_span("parent")):
            assert await asyncio.create_task(inherited()) == (id(asyncio.current_task()), 0)

    asyncio.run(main())


def test_spawner_is_the_owner_of_the_inherited_view(runtimes: Runtimes) -> None:
    """Also for a second, nested span in the child, and for a span put back after it."""

    async def spawned(expected: tuple[int, int]) -> None:
        with runtimes.active(tracer.start_span("outer")) as outer:
            with runtimes.active(tracer.start_span("inner")) as inner:
                assert (outer["spawner"], outer["spawner_cell"]) == expected
                assert (inner["spawner"], inner["spawner_cell"]) == expected
            assert runtimes.view == outer

    async def main() -> None:
        with runtimes.active(tracer.start_span("parent")) as view:
            await asyncio.create_task(spawned((id(asyncio.current_task()), view["cell_address"])))

    asyncio.run(main())


def test_grandchild_is_spawned_by_the_child(runtimes: Runtimes) -> None:
    """Each task names the task right above it."""

    async def grandchild(parent: int) -> None:
        with runtimes.active(tracer.start_span("grandchild")) as view:
            assert view["spawner"] == parent

    async def middle() -> None:
        with runtimes.active(tracer.start_span("child")):
            await asyncio.create_task(grandchild(id(asyncio.current_task())))

    async def main() -> None:
        with runtimes.active(tracer.start_span("parent")):
            await asyncio.create_task(middle())

    asyncio.run(main())


def test_task_in_an_empty_context_has_no_spawner(runtimes: Runtimes) -> None:
    """Nothing was inherited."""

    async def alone() -> None:
        with runtimes.active(tracer.start_span("alone")) as view:
            assert (view["owner"], view["spawner"], view["spawner_cell"]) == (id(asyncio.current_task()), 0, 0)

    async def main() -> None:
        with runtimes.active(tracer.start_span("parent")):
            await asyncio.create_task(alone(), context=contextvars.Context())

    asyncio.run(main())


def test_span_from_outside_any_task_spawns_nothing(runtimes: Runtimes) -> None:
    """asyncio.run() below a span of the main thread."""

    async def main() -> None:
        assert runtimes.view["owner"] == 0
        with runtimes.active(tracer.start_span("inner")) as view:
            assert (view["spawner"], view["spawner_cell"]) == (0, 0)

    with runtimes.active(tracer.start_span("outer")):
        asyncio.run(main())


def test_worker_thread_is_spawned_by_the_task_it_works_for(runtimes: Runtimes) -> None:
    """to_thread() copies the context; run_in_executor() does not."""

    def work() -> tuple[bytes, int, int]:
        inherited = runtimes.view["span_id"]
        with runtimes.active(tracer.start_span("work")) as view:
            return inherited, view["owner"], view["spawner"]

    def unlinked() -> Any:
        return _native.read_view(runtimes.ours.get_current())

    async def main() -> None:
        span = tracer.start_span("request")
        with runtimes.active(span):
            assert await asyncio.to_thread(work) == (span_id(span), 0, id(asyncio.current_task()))
            with ThreadPoolExecutor(1) as pool:
                assert await asyncio.get_running_loop().run_in_executor(pool, unlinked) is None

    asyncio.run(main())


def test_attached_view_of_another_task_gets_a_new_owner(runtimes: Runtimes) -> None:
    """The span, its cell and its local root stay the same."""

    async def adopt(context: Any) -> _native.ViewFields:
        token = runtimes.ours.attach(context)
        try:
            assert runtimes.view["owner"] == id(asyncio.current_task())
            return runtimes.view
        finally:
            runtimes.ours.detach(token)

    async def main() -> None:
        root = tracer.start_span("root")
        with runtimes.active(root), runtimes.active(child(root)) as original:
            context = runtimes.ours.get_current()
            adopted = await asyncio.create_task(adopt(context), context=contextvars.Context())
        same = ("trace_id", "span_id", "local_root", "flags", "cell_address", "root_cell", "cell")
        assert [adopted[key] for key in same] == [original[key] for key in same]  # type: ignore[literal-required]

    asyncio.run(main())


def test_view_of_the_same_owner_is_attached_as_it_is(runtimes: Runtimes) -> None:
    """No new object for what is already right."""
    with runtimes.active(tracer.start_span("request")):
        context = runtimes.ours.get_current()
        token = runtimes.ours.attach(context)
        assert runtimes.ours.get_current() is context
        runtimes.ours.detach(token)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in 3.12")
def test_eager_task_owns_what_it_attaches(runtimes: Runtimes) -> None:
    """In its first step too, which runs inside the step of its parent."""

    async def eager(parent: int) -> None:
        for _ in range(2):
            with runtimes.active(tracer.start_span("eager")) as view:
                assert (view["owner"], view["spawner"]) == (id(asyncio.current_task()), parent)
            await asyncio.sleep(0)

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        with runtimes.active(tracer.start_span("parent")) as parent:
            task = asyncio.create_task(eager(id(asyncio.current_task())))
            assert runtimes.view == parent
            await task

    asyncio.run(main())


def test_200_concurrent_tasks_each_see_their_own_span(runtimes: Runtimes) -> None:
    """Across suspensions, with nested spans and children."""

    async def inside(expected: bytes) -> None:
        await asyncio.sleep(0)
        assert runtimes.view["span_id"] == expected

    async def request(number: int) -> None:
        span = tracer.start_span(f"request {number}")
        with runtimes.active(span):
            for _ in range(5):
                inner = child(span)
                with runtimes.active(inner):
                    await asyncio.gather(inside(span_id(inner)), asyncio.sleep(0))
                view = runtimes.view
                assert (view["trace_id"], view["span_id"]) == (trace_id(span), span_id(span))
                assert (view["owner"], view["cell"]["name"]) == (id(asyncio.current_task()), f"request {number}")  # type: ignore[index]

    async def main() -> None:
        await asyncio.gather(*(request(number) for number in range(200)))

    asyncio.run(main())
