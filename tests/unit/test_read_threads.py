"""A thread's stack as read, against the frames that Python itself shows."""

from __future__ import annotations

import ctypes
import functools
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from reader_helpers import compared, look, prepare

from otel_asyncprof import _native


def by_sort_key() -> None:
    sorted([1], key=look)


def by_substitution() -> None:
    re.sub("a", lambda match: str(look()), "a")


def by_reduce() -> None:
    functools.reduce(look, [1, 2])  # type: ignore[arg-type]


def by_partial_and_map() -> None:
    list(map(functools.partial(look, 1), [2]))


def by_json_hook() -> None:
    json.loads("{}", object_hook=look)


def by_ctypes_callback() -> None:
    ctypes.CFUNCTYPE(ctypes.c_int)(look)()


class Finalized:
    def __del__(self) -> None:
        look()


def by_finalizer() -> None:
    finalized = Finalized()
    del finalized


def generator() -> Iterator[int]:
    yield look()


def outer_generator() -> Iterator[int]:
    yield from generator()


def by_generators() -> None:
    for _ in outer_generator():
        pass


def by_generator_expression() -> None:
    any(look() for _ in [1])


def by_class_body() -> None:
    class Body:
        value = look()


def by_list_comprehension() -> None:
    _ = [look() for _ in [1]]


def by_dict_comprehension() -> None:
    _ = {name: look() for name in "a"}


def by_lambda() -> None:
    (lambda: (lambda: look())())()


def by_exec() -> None:
    exec("def made():\n\n    look()\nmade()", {"look": look})


def by_eval() -> None:
    eval("look()", {"look": look})


class Descriptors:
    @property
    def value(self) -> int:
        return look()

    @staticmethod
    def of_static() -> int:
        return look()

    @classmethod
    def of_class(cls) -> int:
        return look()

    def __getattr__(self, name: str) -> int:
        return look()

    def __eq__(self, other: object) -> bool:
        return bool(look())

    def __init_subclass__(cls) -> None:
        look()

    def __call__(self) -> int:
        return look()


def by_property() -> None:
    _ = Descriptors().value


def by_static_method() -> None:
    Descriptors.of_static()


def by_class_method() -> None:
    Descriptors.of_class()


def by_missing_attribute() -> None:
    _ = Descriptors().missing


def by_comparison() -> None:
    [Descriptors()].count(1)  # type: ignore[list-item]


def by_subclassing() -> None:
    type("Sub", (Descriptors,), {})


def by_instance_call() -> None:
    Descriptors()()


def decorated(function: Callable[[], int]) -> Callable[[], int]:
    @functools.wraps(function)
    def wrapper() -> int:
        return function()

    return wrapper


@decorated
@functools.lru_cache(
    maxsize=1,
)
def behind_decorators() -> int:
    return look()


def by_decorators() -> None:
    behind_decorators.__wrapped__.cache_clear()  # type: ignore[attr-defined]
    behind_decorators()


def by_a_call_over_several_lines() -> None:
    max(
        1,
        look(
            2,
            3,
        ),
        4,
    )


def by_an_operator_over_several_lines() -> None:
    _ = (
        len("a")
        + look()
        + len("b")
    )  # fmt: skip


@contextmanager
def managed() -> Iterator[None]:
    yield
    look()


def by_leaving_a_manager() -> None:
    with managed():
        pass


def by_handlers() -> None:
    try:
        raise ValueError
    except ValueError:
        try:
            raise KeyError
        except KeyError:
            pass
        finally:
            look()


CASES = {
    by_sort_key: [],
    by_substitution: ["by_substitution.<locals>.<lambda>"],
    by_reduce: [],
    by_partial_and_map: [],
    by_json_hook: ["loads", "JSONDecoder.decode", "JSONDecoder.raw_decode"],
    by_ctypes_callback: [],
    by_finalizer: ["Finalized.__del__"],
    by_generators: ["outer_generator", "generator"],
    by_generator_expression: ["by_generator_expression.<locals>.<genexpr>"],
    by_class_body: ["by_class_body.<locals>.Body"],
    by_lambda: ["by_lambda.<locals>.<lambda>", "by_lambda.<locals>.<lambda>.<locals>.<lambda>"],
    by_exec: ["<module>", "made"],
    by_eval: ["<module>"],
    by_property: ["Descriptors.value"],
    by_static_method: ["Descriptors.of_static"],
    by_class_method: ["Descriptors.of_class"],
    by_missing_attribute: ["Descriptors.__getattr__"],
    by_comparison: ["Descriptors.__eq__"],
    by_subclassing: ["Descriptors.__init_subclass__"],
    by_instance_call: ["Descriptors.__call__"],
    by_decorators: ["decorated.<locals>.wrapper", "behind_decorators"],
    by_a_call_over_several_lines: [],
    by_an_operator_over_several_lines: [],
    by_leaving_a_manager: ["_GeneratorContextManager.__exit__", "managed"],
    by_handlers: [],
}
if sys.version_info >= (3, 12):
    CASES |= {by_list_comprehension: [], by_dict_comprehension: []}
else:
    CASES |= {
        by_list_comprehension: ["by_list_comprehension.<locals>.<listcomp>"],
        by_dict_comprehension: ["by_dict_comprehension.<locals>.<dictcomp>"],
    }


@pytest.mark.parametrize("call", CASES, ids=lambda call: call.__name__)
def test_a_stack_is_what_python_says_however_its_frames_were_entered(call: Callable[[], None]) -> None:
    """Called from C or from Python: the same functions, files and lines."""
    below = compared(call)
    if call is by_substitution:  # how re comes to the callback differs between versions
        below = [name for name in below if not name.startswith(("sub", "_subx", "template", "_compile"))]
    assert below == [call.__name__, *CASES[call]]


@pytest.mark.parametrize("call", CASES, ids=lambda call: call.__name__)
def test_a_stack_read_in_a_worker_thread_is_that_threads(call: Callable[[], None]) -> None:
    """Not the one of the thread that waits for it."""
    names: list[str] = []
    thread = threading.Thread(target=lambda: names.extend(compared(call)))
    thread.start()
    thread.join()
    assert names[0] == call.__name__


@pytest.mark.parametrize("call", CASES, ids=lambda call: call.__name__)
def test_a_stack_read_while_python_is_traced_is_the_same(call: Callable[[], None]) -> None:
    """With events for every line and instruction."""

    def trace(frame: Any, event: str, argument: object) -> Any:
        frame.f_trace_opcodes = True
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        compared(call)
    finally:
        sys.settrace(before)


def test_the_thread_that_asks_holds_the_interpreters_lock() -> None:
    """It runs Python."""
    prepare()
    assert _native.read_holds_gil()
