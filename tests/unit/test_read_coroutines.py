"""The await chain of a suspended task, frame by frame what Python says of it."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from reader_helpers import await_chain, event_loop, on_probe_loop, on_real_loop, prepare, settle

from otel_asyncprof import _native

Future = asyncio.Future[None]
CASES: dict[str, tuple[Callable[[Future], Coroutine[Any, Any, Any]], list[str]]] = {}
INLINED = sys.version_info >= (3, 12)  # comprehensions have no frame of their own
MAX_AWAIT_CHAIN = 512


def case(*names: str) -> Callable[[Any], Any]:
    """Names the functions of the chain below the decorated coroutine function."""

    def keep(function: Any) -> Any:
        CASES[function.__name__] = function, [function.__name__, *names]
        return function

    return keep


@case()
async def a_future(future: Future) -> None:
    await future


@case("a_future")
async def a_coroutine(future: Future) -> None:
    await a_future(
        future,
    )


@case("a_coroutine", "a_future")
async def three_coroutines(future: Future) -> None:
    x = [1]
    x.append(await a_coroutine(future))  # type: ignore[func-returns-value]


async def numbers(future: Future) -> AsyncIterator[int]:
    async for number in inner_numbers(future):
        yield number


async def inner_numbers(future: Future) -> AsyncIterator[int]:
    yield 0

    await a_future(future)
    yield 1


@case("numbers", "inner_numbers", "a_future")
async def async_for(future: Future) -> None:
    async for _ in numbers(future):
        pass


@case(*(["async_comprehension.<locals>.<listcomp>"] if not INLINED else []), "numbers", "inner_numbers", "a_future")
async def async_comprehension(future: Future) -> None:
    _ = [number async for number in numbers(future)]


@case("async_generator_expression.<locals>.<genexpr>", "numbers", "inner_numbers", "a_future")
async def async_generator_expression(future: Future) -> None:
    async for _ in (number async for number in numbers(future)):
        pass


@case("numbers", "inner_numbers", "a_future")
async def asend(future: Future) -> None:
    generator: Any = numbers(future)
    await generator.asend(None)
    await generator.asend(7)


@case("numbers", "inner_numbers", "a_future")
async def anext_plain(future: Future) -> None:
    generator = numbers(future)
    await anext(generator)
    await anext(generator)


@case("numbers", "inner_numbers", "a_future")
async def anext_with_default(future: Future) -> None:
    generator = numbers(future)
    await anext(generator, None)
    await anext(generator, None)


async def stubborn(future: Future) -> AsyncIterator[int]:
    try:
        yield 0
    finally:
        await a_coroutine(future)


@case("stubborn", "a_coroutine", "a_future")
async def athrow(future: Future) -> None:
    generator: Any = stubborn(future)
    await anext(generator)
    await generator.athrow(ValueError())


@case("stubborn", "a_coroutine", "a_future")
async def aclose(future: Future) -> None:
    generator: Any = stubborn(future)
    await anext(generator)
    await generator.aclose()


class ByGenerator:
    def __init__(self, future: Future) -> None:
        self.future = future

    def __await__(self) -> Generator[Any, None, None]:
        yield from a_coroutine(self.future).__await__()


class ByWrapper(ByGenerator):
    def __await__(self) -> Generator[Any, None, None]:
        return a_coroutine(self.future).__await__()


class ByFuture(ByGenerator):
    def __await__(self) -> Generator[Any, None, None]:
        return self.future.__await__()


@case("ByGenerator.__await__", "a_coroutine", "a_future")
async def await_of_a_generator(future: Future) -> None:
    await ByGenerator(future)


@case("a_coroutine", "a_future")
async def await_of_a_wrapper(future: Future) -> None:
    await ByWrapper(future)


@case()
async def await_of_a_future_iterator(future: Future) -> None:
    await ByFuture(future)


@types.coroutine
def old_style(future: Future) -> Generator[Any, None, None]:
    yield from plain_generator(future)


def plain_generator(future: Future) -> Generator[Any, None, None]:
    yield from older(future)


@types.coroutine
def older(future: Future) -> Generator[Any, None, None]:
    yield from a_coroutine(future)  # type: ignore[misc]


@case("old_style", "plain_generator", "older", "a_coroutine", "a_future")
async def generators_as_coroutines(future: Future) -> None:
    await old_style(future)


@types.coroutine
def bare_yield_with_local(future: Future) -> Generator[Any, None, None]:
    future._asyncio_future_blocking = True
    last_local = a_future(future)
    try:
        yield future
    finally:
        last_local.close()


@types.coroutine
def bare_yield_over_operand(future: Future) -> Generator[Any, None, None]:
    kept = a_future(future)
    future._asyncio_future_blocking = True
    try:
        _ = [kept, (yield future)]
    finally:
        kept.close()


@case("bare_yield_with_local")
async def a_coroutine_in_a_variable_is_not_awaited(future: Future) -> None:
    await bare_yield_with_local(future)


@case("bare_yield_over_operand")
async def a_coroutine_on_the_value_stack_is_not_awaited(future: Future) -> None:
    await bare_yield_over_operand(future)


class Manager:
    def __init__(self, enter: Future | None, leave: Future | None) -> None:
        self.enter, self.leave = enter, leave

    async def __aenter__(self) -> None:
        if self.enter:
            await a_future(self.enter)

    async def __aexit__(self, *_: object) -> None:
        if self.leave:
            await a_future(self.leave)


@case("Manager.__aenter__", "a_future")
async def entering(future: Future) -> None:
    async with Manager(None, None), Manager(future, None):
        pass


@case("a_future")
async def in_the_body(future: Future) -> None:
    async with Manager(None, None):
        pass
    async with (
        Manager(None, None),
        Manager(None, None),
    ):
        await a_future(future)


@case("Manager.__aexit__", "a_future")
async def leaving(future: Future) -> None:
    async with (
        Manager(None, future),
        Manager(None, None),
    ):
        len("")


@asynccontextmanager
async def resource(future: Future) -> AsyncIterator[None]:
    yield
    await a_future(future)


@case("_AsyncGeneratorContextManager.__aexit__", "resource", "a_future")
async def leaving_a_generator_manager(future: Future) -> None:
    async with resource(future):
        pass


async def deep(future: Future, depth: int) -> None:
    if depth:
        await deep(future, depth - 1)
    else:
        await future


@case(*["deep"] * 300)
async def three_hundred_deep(future: Future) -> None:
    await deep(future, 299)


@case("in_handler_and_finally", "a_future")
async def nested_handlers(future: Future) -> None:
    async def in_handler() -> None:
        try:
            raise ValueError
        except ValueError:
            try:
                raise KeyError
            finally:
                await a_future(future)

    in_handler.__code__ = in_handler.__code__.replace(co_qualname="in_handler_and_finally")
    await in_handler()


DRIVERS = {"asyncio": on_real_loop, "probe": on_probe_loop}


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS.keys())
@pytest.mark.parametrize("name", CASES)
def test_the_chain_of_a_suspended_task_is_what_python_says(name: str, driver: Any) -> None:
    """Every kind of awaitable, with names and lines."""
    function, names = CASES[name]
    prepare()
    with driver(function) as task:
        read = _native.read_task(id(task))
        assert [function for function, _, _ in read["frames"]] == names
        assert read["frames"] == await_chain(task.get_coro())
        assert read["waiting"] is True


@pytest.mark.parametrize("by_instruction", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_tracing_changes_nothing_in_what_is_read(name: str, by_instruction: bool) -> None:
    """A debugger or a coverage tool replaces instructions, by which up to 3.12 an await is known."""
    function, _ = CASES[name]
    prepare()

    def trace(frame: types.FrameType, event: str, argument: object) -> Any:
        frame.f_trace_opcodes = by_instruction
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with on_real_loop(function) as task:
            assert _native.read_task(id(task))["frames"] == await_chain(task.get_coro())
    finally:
        sys.settrace(before)


def test_a_chain_longer_than_the_bound_ends_in_truncated() -> None:
    """The outermost frames are kept."""
    prepare()
    with on_real_loop(lambda future: deep(future, 600)) as task:
        said = await_chain(task.get_coro())
        assert len(said) == 601
        assert _native.read_task(id(task))["frames"] == [*said[: MAX_AWAIT_CHAIN - 1], ("<truncated>", "", 0)]


def test_a_chain_as_long_as_the_bound_is_whole() -> None:
    """The last frame has its place too."""
    prepare()
    with on_real_loop(lambda future: deep(future, MAX_AWAIT_CHAIN - 1)) as task:
        said = await_chain(task.get_coro())
        assert len(said) == MAX_AWAIT_CHAIN
        assert _native.read_task(id(task))["frames"] == said


def test_a_coroutine_that_has_not_begun_stands_on_its_first_line() -> None:
    """It waits for nothing: it could run."""
    prepare()
    with event_loop() as loop:
        task = loop.create_task(a_future(loop.create_future()))
        code = a_future.__code__
        read = _native.read_task(id(task))
        assert read["frames"] == [("a_future", code.co_filename, code.co_firstlineno)]
        assert read["waiting"] is False


def test_a_running_task_has_its_frames_on_the_stack_of_its_thread() -> None:
    """So none are read from its coroutine, however deep in it the reading happens."""
    prepare()

    async def inner() -> tuple[list[Any], list[Any]]:
        task = asyncio.current_task()
        return _native.read_task(id(task))["frames"], _native.read_thread()

    async def outer() -> tuple[list[Any], list[Any]]:
        return await inner()

    with event_loop() as loop:
        of_task, of_thread = loop.run_until_complete(outer())
    assert of_task == []
    names = [name.rpartition(".")[2] for name, _, _ in of_thread]
    assert names[names.index("outer") :] == ["outer", "inner"]


def test_a_task_that_has_ended_has_no_frames() -> None:
    """Its coroutine is gone."""
    prepare()
    with event_loop() as loop:
        task = loop.create_task(asyncio.sleep(0), name="ended")
        settle(loop)
        assert _native.read_task(id(task)) == {
            "name": "ended",
            "frames": [],
            "awaiters": [],
            "waiting": False,
            "awaits_tasks": False,
            "context": _native.read_task(id(task))["context"],
        }


def test_a_task_whose_future_is_done_waits_no_more() -> None:
    """It is suspended where it was, and could go on."""
    prepare()
    with on_real_loop(a_coroutine) as task:
        before = _native.read_task(id(task))
        future = task._fut_waiter  # type: ignore[attr-defined]
        future.set_result(None)
        assert (before["waiting"], _native.read_task(id(task))) == (True, before | {"waiting": False})
